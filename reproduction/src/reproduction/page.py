"""The page of the documentation: what the paper says, what was measured, what holds."""

from __future__ import annotations

from pathlib import Path

from reproduction.catalogue import EXPERIMENTS
from reproduction.cell import Synthetic
from reproduction.claims import judge
from reproduction.environment import describe_environment
from reproduction.experiment import Experiment
from reproduction.fastest import fastest_section
from reproduction.figures import mean_curves, ratio_figure
from reproduction.outputs import NOTE, draw, figures_of
from reproduction.store import Record, Results, ResultsError, write_whole
from reproduction.tables import (
    agreement_table,
    error_table,
    markdown_table,
    number,
    real_time_table,
    time_table,
)
from reproduction.verdict import REAL, several
from reproduction.view import families, fit_law, points, real_games

__all__ = ["write_page"]

#: Beside the page, for its pictures.
STATIC = "_static"
_RATIOS = "reproduction-ratios.png"
_SPARSE = ("sparse-0.5n", "sparse-1n", "sparse-2n", "sparse-3n")
_DENSE = ("dense-0.1", "dense-0.01")
#: The largest number of features in the paper.
_FULL = 30000
#: gamma at which the table of honest errors is taken, or the nearest there is.
_SHOWN = 0.1


def write_page(results: Results, page: Path, *, protocol: str = "code") -> list[Path]:
    """Write the page, and its pictures into ``_static`` beside it.

    Parameters
    ----------
    results : Results
        Of a run.
    page : Path
        The Markdown file.
    protocol : {"code", "paper"}
        Which of the results to show.

    Returns
    -------
    list of Path
        What was written.
    """
    chosen = _by_protocol(results, protocol)
    if not chosen.records:
        raise ResultsError(f"There are no results by the protocol {protocol!r} to write about.")
    files: dict[Path, str | bytes] = {}
    for experiment in EXPERIMENTS.values():
        part = chosen.where(experiment=experiment.id)
        # The page has one picture of ratios for all, and errors need none.
        names = [name for name in figures_of(experiment) if not name.endswith("-ratios.png")]
        if experiment.id != "sparse-errors":
            for name, picture in draw(experiment, part, names).items():
                files[page.parent / STATIC / f"reproduction-{name}"] = picture
    compared = several(chosen, ("dense-0.1", *_SPARSE))
    if any(record.measured for record in compared.records):
        files[page.parent / STATIC / _RATIOS] = ratio_figure(compared)
    drawn = {path.name for path in files}
    files[page] = "\n".join(_page(chosen, protocol, drawn)).rstrip() + "\n"
    for path, content in files.items():
        write_whole(path, content)
    return list(files)


def _by_protocol(results: Results, protocol: str) -> Results:
    """Return those of a protocol, and those that know of none; of several scales the largest."""
    other = {"code": ("paper", "2022-text"), "paper": ("code", "2022")}[protocol]
    found: dict[tuple[object, ...], Record] = {}
    for record in results.records:
        cell = record.cell
        if cell.experiment == "agreement" or cell.data.protocol not in other:
            game = cell.experiment, cell.data, cell.method, cell.gamma
            known = found.get(game)
            if known is None or cell.seconds > known.cell.seconds:
                found[game] = record
    return Results(tuple(found.values()), results.environments)


def _page(results: Results, protocol: str, drawn: set[str]) -> list[str]:
    lines = [
        "# The paper, reproduced",
        "",
        "This page repeats the experiments of Wang, Huang, Jiang, Li and Wang, *Solving "
        "Stackelberg prediction game with least squares loss via spherically constrained least "
        "squares reformulation* (2022), and of its predecessor of 2021. Compare ratios between "
        "methods, not seconds: the paper's are MATLAB's on other machines. Ours are those of this "
        "library's solvers, validation and certificate included.",
        "",
        "- **SOCP**, **SDP** and **bisection** solve cone programs. **LTRSR**, **GLTR** and "
        "**RTRNew** (RTRNewton) multiply the data with vectors. All six are published methods, as "
        "this library implements them. `krylov` and `spectral` are its own "
        "([How each solver works](solver_methods.md)).",
        "- Names such as *tab:syn-dense* are labels of tables, figures and sections in the paper's "
        "source.",
        "- Most tables are folded; click to open them.",
        "",
        "## What holds",
        "",
        *_claims(results),
        *fastest_section(results),
        *_synthetic(results, drawn),
        *_real(results, drawn),
        *_agreement(results),
        *_curves(results, drawn),
        *_beyond(results, drawn),
        "## How it was measured",
        "",
        *_words(results),
        *_environments(results),
        f"Protocol: {_PROTOCOLS[protocol]}",
        "",
        "This page is written by `python -m reproduction --all --scale machine --out DIR`, then "
        "`python -m reproduction --page docs/reproduction.md --from DIR`.",
        "",
    ]
    return lines


def _folded(words: str, table: str) -> list[str]:
    """A table that opens at a click, where pages are read on the web."""
    return ["<details>", f"<summary>{words}</summary>", "", table, "</details>", ""]


_SETS = (
    "In all games gamma is 0.1, features are scaled to [0, 1] over the whole set, and there is a "
    "column of ones, which providers can change at the same cost as a feature. Labels are divided "
    "by 100 for insurance, and by a hundredth of the largest label for building. The modest and "
    "the severe attacker want at least 6 or 7 (wine), 100 or 300 less (insurance), 20 or 40 more "
    "(building), 5 or 10 more (blog)."
)
_PROTOCOLS = {
    "code": "the authors' code (`--protocol code`): dense features scaled to [0, 1], normal noise "
    "on sparse labels, wine's severe attacker max(y, 7). `--protocol paper` follows the text.",
    "paper": "the text of the paper (`--protocol paper`): dense features as generated, uniform "
    "noise on sparse labels, wine's severe attacker max(y, 8). `--protocol code` follows the code.",
}


def _words(results: Results) -> list[str]:
    """What names mean, how accurate answers are, and how often they were timed."""
    timed = [e.id for e in EXPERIMENTS.values() if e.kind in ("real", "synthetic")]
    part = several(results, timed)
    counts = [
        len(point.records)
        for family, method in part.groups
        for point in points(part, family, method)
    ]
    steps = [
        r["iterations"]
        for r in results.where(method="ltrsr").records
        if isinstance(r.cell.data, Synthetic) and r["iterations"]
    ]
    lines = [
        "gamma says how expensive it is for providers to move: larger means weaker providers. "
        "Every method stops when it can certify a gap of 1e-9 of the labels' sum of squares."
    ]
    if steps:
        lines[0] += (
            f" On the synthetic games LTRSR needs {_range(steps)} iterations for that, so a "
            "handful of passes over the data is compared with a decomposition."
        )
    if counts:
        lines[0] += (
            f" A time is the mean over {_range(counts)} games, one at the largest sizes; the "
            "paper has ten."
        )
    return [*lines, ""]


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def _environments(results: Results) -> list[str]:
    used = {record.environment for record in results.records}
    lines = []
    for name, about in sorted(results.environments.items()):
        if name in used:
            lines += [describe_environment(about), ""]
    return lines


def _claims(results: Results) -> list[str]:
    rows = [f"| {v.claim} | **{v.verdict}** | {v.sentence} | {v.place} |" for v in judge(results)]
    return [
        "| the paper says | verdict | what we found | where it says so |",
        "| --- | --- | --- | --- |",
        *rows,
        "",
    ]


def _picture(name: str, words: str, drawn: set[str]) -> list[str]:
    return [f"![{words}]({STATIC}/{name})", ""] if name in drawn else []


def _pictures(experiment: Experiment, drawn: set[str]) -> list[str]:
    lines = []
    for name in figures_of(experiment):
        lines += _picture(f"reproduction-{name}", experiment.title, drawn)
    return lines


def _synthetic(results: Results, drawn: set[str]) -> list[str]:
    lines = ["## Synthetic games", "", NOTE, ""]
    ratios = _picture(_RATIOS, "Ratio of times over size and density", drawn)
    if ratios:
        lines += ["How many times as long SOCP takes as others, over features and density:", ""]
        lines += ratios
    for names in (*((name,) for name in _DENSE), _SPARSE):
        part = several(results, names)
        if not part.records:
            continue
        experiments = [EXPERIMENTS[name] for name in names]
        if len(names) == 1:
            lines += [f"### {experiments[0].title}", "", f"{experiments[0].place}.", ""]
        else:
            lines += ["### Sparse synthetic games, gamma 0.1: time against features", ""]
            lines += ["Tables tab:syn-sparse and tab:app-syn-sparse.", ""]
        for experiment in experiments:
            lines += _pictures(experiment, drawn)
        for family in families(part):
            kind = "" if family.density is None else f"density {family.density:g}, "
            lines += _folded(f"Seconds: {kind}{family.rows}", time_table(part, family))
    errors = several(results, (*_DENSE, *_SPARSE, "sparse-errors"))
    if errors.records:
        lines += [
            "### Relative errors",
            "",
            "(SOCP - method)/|SOCP| of objectives: the mean, the least and the largest over sizes "
            "and games (Tables tab:SPGLS-dense-reltol and tab:SPGLS-sparse-reltol).",
            "",
            *_folded("Relative errors of objectives", error_table(errors)),
        ]
    return lines


def _real(results: Results, drawn: set[str]) -> list[str]:
    part = several(results, REAL)
    if not part.records:
        return []
    lines = ["## Real sets", "", _SETS, ""]
    for name in REAL:
        own = results.where(experiment=name)
        if own.records:
            experiment = EXPERIMENTS[name]
            lines += [f"### {experiment.title}", "", f"{experiment.place}.", ""]
            lines += _pictures(experiment, drawn)
            for family in families(own):
                table = real_time_table(own, family, experiment.methods)
                lines += _folded(f"Seconds by rows: {family.attacker} attacker", table)
    lines += [
        "### Relative errors",
        "",
        "Of objectives (Tables tab:SPGLS-real-reltol and tab:SPGLS-real-reltol-part):",
        "",
        error_table(part),
        "Of errors on test rows, which are those not fitted on (Table tab:SPGLS-real-MSE):",
        "",
        error_table(part, "test_mse"),
    ]
    return lines


def _agreement(results: Results) -> list[str]:
    part = results.where(experiment="agreement")
    if not part.records:
        return []
    reasons = dict.fromkeys(
        f"- `{r.cell.method}`: {r['reason']}" for r in part.records if r["reason"]
    )
    return [
        "## One objective by every method",
        "",
        "Each method solved the game on all rows of each real set. A cell says how far its "
        "objective is above the least one that any method found, in units of |y|^2. (Where goals "
        "nearly reveal the labels the objective itself is smaller than |y|^2, by up to 1e5.) The "
        "tolerance was 1e-12, and 1e-9 for semidefinite programs. An asterisk marks an answer "
        "whose certified gap is above the tolerance. We accept a difference of 1e-6 for cone "
        "programs and of 1e-9 for the others.",
        "",
        agreement_table(part, EXPERIMENTS["agreement"].methods),
        *([*reasons, ""] if reasons else []),
    ]


def _curves(results: Results, drawn: set[str]) -> list[str]:
    part = results.where(experiment="error-curves")
    rows = []
    for source, attacker in real_games(part):
        found = mean_curves(part, source, attacker)
        if found:
            gammas = found["gammas"]["gammas"]
            at = min(range(len(gammas)), key=lambda k: abs(gammas[k] - _SHOWN))
            row = [f"{source} {attacker}"]
            for model in ("game", "least squares", "ridge"):
                row += [number(found[model][kind][at]) for kind in ("attacked", "honest")]
            rows.append([*row, number(found["y from z alone"]["attacked"][at])])
    if not rows:
        return []
    header = ["MSE"]
    for model in ("game", "least squares", "ridge"):
        header += [f"{model}, attacked", "honest"]
    return [
        "## Errors on held-out rows, and what the papers do not show",
        "",
        "The protocol is that of 2021: ten folds, 40 values of gamma, and as intercept a column of "
        "ones that providers can change. The ridge in the paper of 2021 is no fair rival: it takes "
        "the worst penalty and is misaligned. Ours penalises the column of ones as the game does, "
        "and takes at each gamma the penalty with the least attacked error in cross-validation on "
        "the training rows. "
        "*y from z alone* is a regression of labels on goals without any feature: a model with a "
        "small attacked error may only have inferred labels from goals. *Honest* is the error on "
        "rows that nobody moved. The papers do not report it; [Populations](populations.md) says "
        "how to make it smaller.",
        "",
        *_pictures(EXPERIMENTS["error-curves"], drawn),
        f"At the gamma next to {_SHOWN:g}:",
        "",
        markdown_table([*header, "y from z alone"], rows),
    ]


def _duration(seconds: float) -> str:
    """A time in the largest unit that it fills."""
    units = (("years", 365.25 * 86400.0), ("days", 86400.0), ("hours", 3600.0))
    for name, length in units:
        if seconds >= length:
            return f"{number(seconds / length)} {name}"
    return f"{number(seconds)} seconds"


def _beyond(results: Results, drawn: set[str]) -> list[str]:
    """What a growth law says of sizes that do not fit."""
    part = results.where(experiment="conic")
    sentences = []
    for family in families(part):
        for method in ("bisection", "sdp"):
            times = {p.size: p.seconds for p in points(part, family, method) if p.seconds}
            law = fit_law({size: time for size, time in times.items() if time})
            if law is not None:
                sentences.append(
                    f"- `{method}` takes {number(times[law.high])} seconds at n = {law.high}. From "
                    f"n = {law.low} on its time grows like the power {law.exponent:.2f} of n. At n "
                    f"= {_FULL:,}, which is {_FULL / law.high:.0f} times the largest size that was "
                    f"run, that would be ~{_duration(law(_FULL))} or longer."
                )
    if not sentences:
        return []
    table = real_time_table(part, families(part)[0], EXPERIMENTS["conic"].methods)
    return [
        "## Beyond this machine",
        "",
        "Seconds by features on dense games with m = 2n:",
        "",
        table.replace("| rows |", "| n |"),
        *_pictures(EXPERIMENTS["conic"], drawn),
        *sentences,
        "",
        "Sizes of SOCP beyond the measured ones are extrapolated in the tables above; `python "
        "-m reproduction --all --scale paper` runs all of them where memory allows.",
        "",
    ]
