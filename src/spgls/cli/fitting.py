"""The commands that fit a model: what manipulation does to a table, and what to use instead."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from spgls.cli.console import Trouble, gathered_warnings, say, working
from spgls.cli.options import (
    ClassifyOptions,
    DecisionOptions,
    FitOptions,
    GameOptions,
    PathOptions,
    PeopleOptions,
    takes,
)
from spgls.cli.prepare import Prepared, prepare, read_goal_options, read_range
from spgls.game.classes import Opposite, Wants
from spgls.game.goals import Cap, Constant, Floor, Goal, Scale, Shift

__all__ = ["check_output", "classify", "fit", "levers", "path", "plain_json"]

#: How our model is called beside others.
OURS = "spgls"


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted game.

    Attributes
    ----------
    game : Prepared
        Rows and costs.
    estimator : estimator
        The fitted model of ours, without an encoder.
    doubts : list of str
        What the fit warned of.
    """

    game: Prepared
    estimator: Any
    doubts: list[str]

    @property
    def whole(self) -> Any:
        """The model as it takes rows of the table."""
        if self.game.encoder is None:
            return self.estimator
        from sklearn.pipeline import Pipeline

        return Pipeline([("encode", self.game.encoder), ("model", self.estimator)])

    @property
    def gamma(self) -> float:
        """Strength of the strategic people; the greatest there can be where it is not known."""
        return float(np.min(self.estimator.gamma_))

    @property
    def goals(self) -> Any:
        """What people of the rows to judge by want."""
        return self.estimator.goal if self.game.z_test is None else self.game.z_test


@takes(FitOptions)
def fit(options: FitOptions) -> None:
    """Fit a model that stays right when people change their data, and compare it with others."""
    _check_outputs(options)
    fitted = _fit_numbers(options)
    from spgls.study.baselines import fit_baselines

    game = fitted.game
    with working("Comparing"):
        models = fit_baselines(game.X, game.y, game.cost)
    _finish(options, fitted, models, "numbers")


@takes(ClassifyOptions)
def classify(options: ClassifyOptions) -> None:
    """Fit a classifier of two classes that stays right when people change their data."""
    _check_outputs(options)
    fitted = _fit_classes(options)
    from spgls.study.baselines import fit_logistic

    with working("Comparing"):
        models = fit_logistic(fitted.game.X, fitted.game.y)
    _finish(options, fitted, models, "classes")


@takes(GameOptions)
def levers(options: GameOptions) -> None:
    """Say which feature to verify, to drop, or to make dearer to change."""
    fitted = _fit_numbers(options)
    game = fitted.game
    with working("Trying features"):
        found = fitted.estimator.levers(game.X, game.y, game.z, groups=game.groups)
    if options.as_json:
        print(plain_json({"command": "levers", "assumed": game.notes, "levers": found.to_dict()}))
        return
    _tell_notes(game.notes, fitted.doubts)
    say(repr(found))


@takes(PathOptions)
def path(options: PathOptions) -> None:
    """Fit a model for each of several strengths, and say what each costs."""
    if options.gamma is not None or options.pull is not None:
        raise Trouble("path tries several strengths: pass --pulls in place of --gamma and --pull.")
    pulls = _numbers(options.pulls, "--pulls")
    if not all(0.0 < pull < 1.0 for pull in pulls):
        raise Trouble(f"--pulls must lie between 0 and 1; got {options.pulls!r}.")
    honest = read_range(options.honest, "--honest")
    if not isinstance(honest, float) or not 0.0 <= honest <= 1.0:
        raise Trouble(f"--honest must be one share from 0 to 1 here; got {options.honest!r}.")
    goal, game = _goal(options), prepare(options, classes=False)
    from spgls.game.providers import Population
    from spgls.game.response import gamma_from_pull
    from spgls.study.baselines import LEAST_SQUARES, fit_baselines
    from spgls.study.path import solve_path
    from spgls.study.robustness import robustness

    with working("Solving"):
        plain = fit_baselines(game.X, game.y, game.cost)[LEAST_SQUARES]
        gammas = [gamma_from_pull(pull, plain[0], game.cost) for pull in pulls]
        wish: Any = goal if game.z is None else game.z
        people = [Population.mixed(gamma, honest=honest) for gamma in gammas]
        solved = solve_path(
            game.X,
            game.y,
            wish,
            people,
            fit_intercept=True,
            feature_cost=game.cost,
            null_space="avoid",
        )
    wish = goal if game.z_test is None else game.z_test
    lines = []
    for pull, gamma, solution in zip(pulls, gammas, solved, strict=True):
        models = {OURS: (solution.coef, float(solution.intercept)), LEAST_SQUARES: plain}
        found: Any = robustness(
            models, game.X_test, game.y_test, wish, [gamma], feature_cost=game.cost
        )
        scores = 1.0 - np.column_stack([found.honest, found.attacked[:, 0]]) / found.variance
        proof = solution.certificate
        lines.append(
            {
                "pull": pull,
                "gamma": gamma,
                "honest_r2": scores[0, 0],
                "attacked_r2": scores[0, 1],
                "least_squares_attacked_r2": scores[1, 1],
                "status": solution.status.value,
                "gap": proof.relative_gap,
                "kind": proof.kind,
            }
        )
    if options.as_json:
        print(plain_json({"command": "path", "assumed": game.notes, "path": lines}))
        return
    _tell_notes(game.notes, [])
    table = Table()
    heads = ("pull against\nleast squares", "gamma", "honest\nR2", "attacked\nR2")
    for head in (*heads, "least squares\nattacked R2", "gap", "status"):
        table.add_column(head, justify="right")
    for line in lines:
        values = list(line.values())
        table.add_row(*(f"{value:.3g}" for value in values[:5]), f"{line['gap']:.0e}", values[5])
    Console().print(table)


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise Trouble(f"{option} must be numbers between commas; got {text!r}.") from None


def _goal(options: GameOptions) -> Goal | None:
    """What people want; None where a column says it."""
    kinds = {"--shift": Shift, "--floor": Floor, "--cap": Cap, "--scale": Scale}
    kinds["--constant"] = Constant
    given = {"--z": options.z} | {name: getattr(options, name[2:]) for name in kinds}
    chosen = read_goal_options(given)
    return None if chosen == "--z" else kinds[chosen](given[chosen])


def _people(options: PeopleOptions) -> dict[str, Any]:
    """Whom the model is to expect, as its parameters."""
    if options.gamma is not None and options.pull is not None:
        raise Trouble("--gamma was given and so was --pull; drop one of them.")
    told: dict[str, Any] = {"honest_share": read_range(options.honest, "--honest")}
    if options.gamma is not None:
        told["gamma"] = read_range(options.gamma, "--gamma")
    if options.pull is not None:
        told["pull"] = read_range(options.pull, "--pull")
    return told


def _fit_numbers(options: GameOptions) -> Fitted:
    from spgls.estimators.regressor import StackelbergRegressor

    goal, people = _goal(options), _people(options)
    with working("Reading"):
        game = prepare(options, classes=False)
    return _fitted(StackelbergRegressor(goal=goal, feature_cost=game.cost, **people), game)


def _fit_classes(options: DecisionOptions) -> Fitted:
    from spgls.estimators.classifier import StackelbergClassifier

    given = {"--z": options.z, "--wants": options.wants, "--opposite": options.opposite}
    chosen, people = read_goal_options(given), _people(options)
    with working("Reading"):
        game = prepare(options, classes=True)
    classes = np.unique(game.y)
    if len(classes) != 2:
        shown = ", ".join(map(str, classes[:5]))
        raise Trouble(
            f"--y must name a column of two classes; {options.y!r} has {len(classes)}: {shown}."
        )
    goal: Any = {"--opposite": Opposite()}.get(chosen)
    if chosen == "--wants":
        named = {str(one): one for one in classes.tolist()}
        if options.wants not in named:
            raise Trouble(
                f"--wants must be one of the classes of {options.y!r}, {' and '.join(named)}; got "
                f"{options.wants!r}."
            )
        goal = Wants(named[options.wants])
    return _fitted(StackelbergClassifier(goal=goal, feature_cost=game.cost, **people), game)


def _fitted(estimator: Any, game: Prepared) -> Fitted:
    with working("Fitting"), gathered_warnings() as doubts:
        told = {} if game.z is None else {"z": game.z}
        estimator.fit(game.X, game.y, **told)
    return Fitted(game, estimator, doubts)


def _finish(options: Any, fitted: Fitted, models: dict[str, Any], kind: str) -> None:
    """Measure, keep, report and tell."""
    from spgls.study.robustness import robustness

    game = fitted.game
    models = models | {OURS: fitted.estimator}
    with working("Measuring"):
        found: Any = robustness(
            models,
            game.X_test,
            game.y_test,
            fitted.goals,
            [fitted.gamma],
            shares=[0.0, 1.0],
            feature_cost=game.cost,
            metric="mse" if kind == "numbers" else None,
        )
    files = _write(options, fitted, models)
    errors = _errors_of(found) if kind == "numbers" else _scores_of(found)
    if options.as_json:
        print(plain_json(_as_json(options, fitted, found, errors, files)))
        return
    _tell_notes(game.notes, fitted.doubts)
    _tell_errors(errors, kind)
    if kind == "numbers":
        r2 = 1.0 - found.from_goal / found.variance
        say(f"y from z alone: R2 {r2:.3g}. It needs the goals, which only strategic people reveal.")
    _tell_fit(fitted)
    for what, where in files.items():
        say(f"{what.capitalize()}: {where}")


def _errors_of(found: Any) -> list[dict[str, Any]]:
    """Errors of each model on rows as they are, and on rows that everyone moved."""
    lines = []
    for at, name in enumerate(found.models):
        honest, attacked = float(found.honest[at]), float(found.attacked[at, 0])
        lines.append(
            {
                "model": name,
                "honest_mse": honest,
                "attacked_mse": attacked,
                "honest_r2": 1.0 - honest / found.variance,
                "attacked_r2": 1.0 - attacked / found.variance,
                "pull": float(found.pull[at, 0]),
            }
        )
    return lines


def _scores_of(found: Any) -> list[dict[str, Any]]:
    return [
        {
            "model": name,
            "honest_accuracy": float(found.honest[at]),
            "attacked_accuracy": float(found.scores[at, 0, -1]),
            "crossed": float(found.crossed[at, 0]),
            "pull": float(found.pull[at, 0]),
        }
        for at, name in enumerate(found.models)
    ]


def _write(options: Any, fitted: Fitted, models: dict[str, Any]) -> dict[str, str]:
    """Keep the model and write the report, where they were asked for."""
    files = {}
    if options.model is not None:
        from spgls.io.model_file import save_model

        save_model(fitted.whole, options.model)
        files["model"] = str(options.model)
    if options.report is not None:
        from spgls.report.write import write_report

        game = fitted.game
        with working("Writing the report"):
            write_report(
                fitted.estimator,
                game.X_test,
                game.y_test,
                options.report,
                z=game.z_test,
                models={name: one for name, one in models.items() if name != OURS},
                groups=game.groups,
                rows=options.rows,
                title=f"What manipulation does to {options.y} in {options.data.name}",
                notes=[*game.notes, *fitted.doubts],
            )
        files["report"] = str(options.report)
    return files


def _as_json(
    options: Any, fitted: Fitted, found: Any, errors: list[dict[str, Any]], files: dict[str, str]
) -> dict[str, Any]:
    model, game = fitted.estimator, fitted.game
    proof = model.certificate_
    answer = {
        "command": "fit" if hasattr(found, "from_goal") else "classify",
        "data": str(options.data),
        "rows": {"fitted": len(game.y), "judged": len(game.y_test), "held_out": game.held_out},
        "assumed": game.notes,
        "warnings": fitted.doubts,
        "goal": None if model.goal is None else repr(model.goal),
        "gamma": np.atleast_1d(model.gamma_).tolist(),
        "judged_at_gamma": fitted.gamma,
        "status": model.status_.value,
        "certificate": {
            "kind": proof.kind,
            "relative_gap": proof.relative_gap,
            "lower_bound": proof.lower_bound,
        },
        "coefficients": dict(zip(map(str, game.X.columns), model.coef_.tolist(), strict=True)),
        "intercept": float(model.intercept_),
        "errors": errors,
        "files": files,
    }
    if hasattr(found, "from_goal"):
        answer["y_from_z_alone_mse"] = found.from_goal
    return answer


def _tell_notes(notes: Sequence[str], doubts: Sequence[str]) -> None:
    for note in notes:
        say(note)
    for doubt in doubts:
        say(f"Warning: {doubt}", error=True)


def _tell_errors(errors: Sequence[dict[str, Any]], kind: str) -> None:
    table = Table()
    table.add_column("model", no_wrap=True)
    heads: tuple[str, ...]
    if kind == "numbers":
        heads = ("honest\nR2", "attacked\nR2", "honest\nRMSE", "attacked\nRMSE", "pull")
    else:
        heads = ("honest\naccuracy", "attacked\naccuracy", "decisions\nchanged", "pull")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for line in errors:
        pull = f"{line['pull']:.2f}"
        if kind == "numbers":
            cells = [f"{line[name]:z.3f}" for name in ("honest_r2", "attacked_r2")]
            roots = (math.sqrt(line[name]) for name in ("honest_mse", "attacked_mse"))
            cells += [f"{root:.4g}" for root in roots]
        else:
            names = ("honest_accuracy", "attacked_accuracy", "crossed")
            cells = [f"{line[name]:.3f}" for name in names]
        table.add_row(line["model"], *cells, pull)
    Console().print(table)


def _tell_fit(fitted: Fitted) -> None:
    model = fitted.estimator
    proof, pull = model.certificate_, np.atleast_1d(model.alpha_ / (1.0 + model.alpha_))
    say(
        f"Strategic people close {100 * float(np.max(pull)):.2g}% of the gap to their goals "
        f"(gamma {fitted.gamma:.4g}). Attacked: all of them react. {OURS} is "
        f"{model.status_.value}, {proof.kind} to be within {proof.relative_gap:.1g}, in R2, of the "
        "best."
    )


def _check_outputs(options: Any) -> None:
    for path, option in ((options.model, "--model"), (options.report, "--report")):
        if path is not None:
            check_output(path, option, options.data)
    if options.model is not None and options.model == options.report:
        raise Trouble(f"--model and --report both name {options.model}.")
    if not 0 <= options.rows <= 200:
        raise Trouble(f"--rows must be from 0 to 200; got {options.rows}.")
    if options.rows and options.report is None:
        raise Trouble("--rows was given without --report, where rows are shown.")


def check_output(path: Path, option: str, *inputs: Path) -> None:
    """Refuse a place that cannot be written to before anything is computed.

    Parameters
    ----------
    path : Path
        Where to write.
    option : str
        The option that named it.
    *inputs : Path
        Files that must not be overwritten.
    """
    folder = path.absolute().parent
    trouble = None
    if path.is_dir():
        trouble = f"{path} is a folder; name a file in it"
    elif not folder.is_dir():
        trouble = f"the folder {folder} does not exist; create it or name another"
    elif path.exists() and any(one.exists() and path.samefile(one) for one in inputs):
        trouble = f"{path} is the table itself; name another file"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        trouble = f"you may not write to {path}; name another place"
    if trouble is not None:
        raise Trouble(f"{option}: {trouble}.")


def plain_json(answer: Any) -> str:
    """An answer as JSON; what is infinite is a text, and what is not a number is null."""
    return json.dumps(_jsonable(answer), indent=1, ensure_ascii=False, allow_nan=False)


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _jsonable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return _jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
