"""What the game changes, on data that ships with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from spgls.base.files import write_whole
from spgls.base.types import Vector
from spgls.estimators.regressor import StackelbergRegressor
from spgls.estimators.scorers import make_attacked_scorer
from spgls.game.goals import Floor
from spgls.game.response import gamma_from_pull
from spgls.sphere import Certificate

__all__ = ["FORMATS", "DemoResult", "DemoRow", "run_demo"]

#: What a picture's name may end in.
FORMATS = (".png", ".svg", ".pdf")

GOAL = Floor(250)
PULL = 0.5
FOLDS = 10

LEAST_SQUARES = "least squares"
RIDGE = "ridge"
DEFAULT = "spgls default"
PAPER = "the paper's game"
FROM_GOAL = "y from z alone"

#: Colours that colour-blind readers can tell apart, dark enough for words on white.
_COLOURS = {
    LEAST_SQUARES: "#0072B2",
    RIDGE: "#00866A",
    DEFAULT: "#D55E00",
    PAPER: "#A8458A",
    FROM_GOAL: "#666666",
}
#: The chart ends here, a little above what predicting the mean label would give.
_TOP = 1.12
_BOTTOM = 0.4


@dataclass(frozen=True)
class DemoRow:
    """One model, cross-validated.

    Parameters
    ----------
    model : str
        Its name.
    honest : float or None
        R2 on rows as they are; None for a model that knows nothing but goals.
    attacked : float
        R2 on rows that everyone moved.
    seconds : float
        Time of a fit, the median of the folds.
    gap : float, optional
        Certified relative gap, in units of R2, the worst of the folds, ``inf`` where one is not
        proved; None for models that carry no certificate.
    status : str
        How the fits ended, if the model tells.
    """

    model: str
    honest: float | None
    attacked: float
    seconds: float
    gap: float | None = None
    status: str = ""

    def error(self, share: float | Vector) -> float | Vector:
        """Mean squared error over the variance of the labels.

        Parameters
        ----------
        share : float or ndarray
            Share of strategic people. The error is that of rows drawn from both kinds, hence
            linear in it.

        Returns
        -------
        float or ndarray
        """
        # Whoever reads goals only is granted everyone's.
        honest = self.attacked if self.honest is None else self.honest
        return (1.0 - share) * (1.0 - honest) + share * (1.0 - self.attacked)


@dataclass(frozen=True)
class DemoResult:
    """The table of the demonstration, and its picture.

    Parameters
    ----------
    gamma : float
        Strength of the people, the same for every model.
    patients : int
        Number of rows.
    rows : tuple of DemoRow
        One for each model.
    """

    gamma: float
    patients: int
    rows: tuple[DemoRow, ...]

    def plot(self, ax: Any) -> Any:
        """Draw the error of each model against the share of strategic people.

        Parameters
        ----------
        ax : matplotlib Axes
            Where to draw.

        Returns
        -------
        matplotlib Axes
        """
        shares = np.linspace(0.0, 1.0, 201)
        for row in self.rows:
            colour, told = _COLOURS[row.model], row.honest is None
            ax.plot(
                shares,
                row.error(shares),
                color=colour,
                linewidth=3.0 if row.model == DEFAULT else 1.8,
                linestyle=":" if told else "-",
                label=row.model,
            )
            ax.annotate(
                row.model,
                (1.0, float(row.error(1.0))),
                xytext=(6, 0),
                textcoords="offset points",
                color=colour,
                fontweight="bold" if row.model == DEFAULT else "normal",
                verticalalignment="center",
                annotation_clip=False,
            )
            start = float(row.error(0.0))
            if start > _TOP:
                leaves = (start - _TOP) / (start - float(row.error(1.0)))
                ax.annotate(
                    f"{row.model} leaves the chart\nand reaches {start:.1f} where all are honest",
                    (leaves, _TOP),
                    xytext=(-14, -4),
                    textcoords="offset points",
                    color=colour,
                    horizontalalignment="right",
                    verticalalignment="top",
                )
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(_BOTTOM, _TOP)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0\nall honest", "¼", "½", "¾", "1\nall react"])
        ax.set_xlabel("share of strategic people")
        ax.set_ylabel("mean squared error (1 = predicting the mean)")
        ax.set_title("Error on held-out people, who want a score of at least 250", loc="left")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def save(self, path: Path) -> None:
        """Write the picture; it needs matplotlib, the extra ``spgls[plot]``.

        Parameters
        ----------
        path : Path
            A file whose name ends in one of :data:`FORMATS`. If it cannot be written whole,
            nothing new stays behind.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError(
                "The picture needs matplotlib. Install it with: pip install 'spgls[plot]'"
            ) from None
        figure = Figure(figsize=(8.0, 4.4), layout="constrained")
        self.plot(figure.add_subplot())
        drawn = BytesIO()
        figure.savefig(drawn, format=path.suffix[1:].lower(), dpi=120)
        write_whole(path, drawn.getvalue())


def run_demo(notify: Callable[[str], object] | None = None) -> DemoResult:
    """Cross-validate five models on diabetes patients, as they are and after they reacted.

    Everyone would like a score of at least 250. The people are the same for every model: as
    strong as those who would close half the gap to their goal against least squares.

    Parameters
    ----------
    notify : callable, optional
        Told the name of each model before it is fitted.

    Returns
    -------
    DemoResult

    Examples
    --------
    >>> from spgls.cli.demo import run_demo
    >>> for row in run_demo().rows:
    ...     print(row.model, "?" if row.honest is None else round(row.honest, 1))
    least squares 0.5
    ridge 0.5
    spgls default 0.5
    the paper's game -10.5
    y from z alone ?
    """
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import LinearRegression, RidgeCV

    X, y = load_diabetes(return_X_y=True)
    gamma = gamma_from_pull(PULL, LinearRegression().fit(X, y).coef_)
    world = {"honest": "r2", "attacked": make_attacked_scorer(gamma, goal=GOAL)}
    models = {
        LEAST_SQUARES: LinearRegression(),
        RIDGE: RidgeCV(alphas=np.geomspace(1e-3, 10.0, 30)),
        DEFAULT: StackelbergRegressor(goal=GOAL),
        PAPER: StackelbergRegressor(gamma, honest_share=0, goal=GOAL),
    }
    rows = []
    for name, model in models.items():
        if notify is not None:
            notify(name)
        rows.append(_cross_validate(name, model, X, y, world))
    if notify is not None:
        notify(FROM_GOAL)
    goals = GOAL(y)[:, np.newaxis]
    rows.append(_cross_validate(FROM_GOAL, LinearRegression(), goals, y, {"attacked": "r2"}))
    return DemoResult(gamma, len(y), tuple(rows))


def _cross_validate(name: str, model: Any, X: Any, y: Vector, scoring: dict[str, Any]) -> DemoRow:
    from sklearn.model_selection import KFold, cross_validate

    folds = KFold(FOLDS, shuffle=True, random_state=0)
    found = cross_validate(
        model, X, y, cv=folds, scoring=scoring, return_estimator=True, error_score="raise"
    )
    ours = [fitted for fitted in found["estimator"] if hasattr(fitted, "certificate_")]
    return DemoRow(
        name,
        honest=float(found["test_honest"].mean()) if "honest" in scoring else None,
        attacked=float(found["test_attacked"].mean()),
        seconds=float(np.median(found["fit_time"])),
        gap=max((_proved_gap(fitted.certificate_) for fitted in ours), default=None),
        status=", ".join(dict.fromkeys(fitted.status_.value for fitted in ours)),
    )


def _proved_gap(certificate: Certificate) -> float:
    return certificate.relative_gap if certificate.kind == "proved" else np.inf
