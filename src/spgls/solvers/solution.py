"""What every solver returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from spgls.base.types import Vector
from spgls.game.providers import Population
from spgls.sphere.certificate import Certificate

__all__ = [
    "End",
    "Setting",
    "Solution",
    "Stats",
    "Status",
    "Step",
    "advise",
    "latest",
    "status_of",
]


class Status(Enum):
    """How a solve ended; :attr:`advice` says what to do about it.

    Examples
    --------
    >>> from spgls import Status
    >>> Status.OPTIMAL.ok
    True
    >>> print(Status.UNATTAINED.advice)
    No predictor is best: the loss keeps falling as the coefficients grow, because the goals \
reveal the labels. The predictor returned is within the tolerance of the infimum. Treat some \
providers as honest or penalise large coefficients (ridge).
    """

    OPTIMAL = "optimal"
    SEVERAL_OPTIMA = "several optima"
    LEAST_SQUARES = "least squares"
    UNATTAINED = "unattained"
    UNREPRESENTABLE = "unrepresentable"
    INACCURATE = "inaccurate"
    STATIONARY = "stationary"
    ITERATION_LIMIT = "iteration limit"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def advice(self) -> str:
        """One or two sentences for the user; :attr:`Solution.advice` knows the game too."""
        return advise(self, Setting())

    @property
    def ok(self) -> bool:
        """Whether the predictor is a certified global optimum."""
        return self in (Status.OPTIMAL, Status.SEVERAL_OPTIMA, Status.LEAST_SQUARES)


@dataclass(frozen=True)
class Setting:
    """What advice on a solve depends on, beside its status; by default the game of the paper.

    Attributes
    ----------
    honest : bool
        Whether some providers are honest.
    ridge : bool
        Whether large coefficients are penalised.
    avoids_null : bool
        Whether coefficients stay where the rows vary.
    immutable : bool
        Whether some columns cannot be changed.
    """

    honest: bool = False
    ridge: bool = False
    avoids_null: bool = False
    immutable: bool = False


#: What each status means.
_MEANING = {
    Status.OPTIMAL: "The predictor is the global optimum within the tolerance.",
    Status.SEVERAL_OPTIMA: (
        "Several predictors are equally good; the one that providers can exploit least (smallest "
        "alpha) is returned."
    ),
    Status.LEAST_SQUARES: (
        "No feature can be changed, so nobody can react: the predictor is ordinary least squares."
    ),
    Status.UNREPRESENTABLE: (
        "The best coefficients are so large against the labels that double precision cannot hold "
        "the predictions. The certificate bounds what was lost."
    ),
    Status.INACCURATE: (
        "The predictor could not be certified to the tolerance: rounding, or the accuracy of a "
        "cone solver, hides the difference. The certificate holds the gap that is certain."
    ),
    Status.STATIONARY: (
        "The method ended at a point it cannot improve, which is not proved to be the global "
        "optimum; the certificate holds what is."
    ),
    Status.ITERATION_LIMIT: (
        "The iteration limit, of the method or of the cone solver it calls, came before the "
        "tolerance; the certificate holds the gap reached."
    ),
    Status.STOPPED: (
        "The callback asked to stop; the predictor is the last one, and the certificate holds its "
        "gap."
    ),
    Status.FAILED: (
        "The method met numbers that are not finite, or the cone solver it calls broke down; the "
        "predictor is the last finite one."
    ),
}
#: What can be done about it, in any game.
_REMEDIES = {
    Status.SEVERAL_OPTIMA: ["have more rows or fewer columns to make it unique"],
    Status.LEAST_SQUARES: ["give at least one feature a finite cost to play a game"],
    Status.UNREPRESENTABLE: [
        "bring the columns of X to similar scales",
        "raise the cost of tiny ones",
        "lower gamma",
    ],
    Status.INACCURATE: ["bring the columns of X to similar scales", "allow a larger tol"],
    Status.STATIONARY: ["start this method elsewhere"],
    Status.ITERATION_LIMIT: ["raise max_iter", "allow a larger tol"],
    Status.FAILED: ["bring the columns of X to similar scales"],
}
#: Where the exact solver may do better, unless it is the one that was used.
_INEXACT = (Status.INACCURATE, Status.STATIONARY, Status.ITERATION_LIMIT, Status.FAILED)


def advise(status: Status, setting: Setting, solver: str = "") -> str:
    """What a status means in a game, and what can be done about it there."""
    if status is Status.UNATTAINED:
        return _on_an_infimum(setting)
    remedies = list(_REMEDIES.get(status, []))
    if status in _INEXACT and solver == "moments":
        remedies.append("add rows up with method='triangular', which keeps all digits")
    elif status in _INEXACT and solver not in ("spectral", "triangular"):
        remedies.append("use solver='spectral'")
    if status is Status.INACCURATE and setting.immutable:
        remedies.insert(0, "leave out immutable columns that other immutable ones nearly explain")
    if status is Status.UNREPRESENTABLE and not setting.ridge:
        remedies.append("penalise large coefficients (ridge)")
    if status is Status.OPTIMAL:
        remedies = ["nothing to do"]
    return f"{_MEANING[status]}{_sentence(remedies)}"


def _on_an_infimum(setting: Setting) -> str:
    """The same where no predictor is best."""
    why, remedies = "because the goals reveal the labels", []
    if setting.honest and not setting.avoids_null:
        why = (
            "because strategic providers reveal the labels along directions in which the rows of "
            "honest ones never vary"
        )
    if not setting.honest:
        remedies.append("treat some providers as honest")
    elif not setting.avoids_null:
        remedies.append("pass null_space='avoid'")
    if setting.ridge:
        remedies.append("raise the ridge")
    else:
        remedies.append("penalise large coefficients (ridge)")
    return (
        f"No predictor is best: the loss keeps falling as the coefficients grow, {why}. The "
        f"predictor returned is within the tolerance of the infimum.{_sentence(remedies)}"
    )


def _sentence(remedies: list[str]) -> str:
    """Remedies as one sentence, after a space."""
    if not remedies:
        return ""
    *others, last = remedies
    text = f"{', '.join(others)}{',' if len(others) > 1 else ''} or {last}" if others else last
    return f" {text[0].upper()}{text[1:]}."


def status_of(
    relative_gap: float,
    tol: float,
    outcome: str,
    *,
    otherwise: Status,
    representable: bool = True,
) -> Status:
    """How a solve ended: well, by its certificate, or ``otherwise``."""
    if not representable:
        return Status.UNREPRESENTABLE
    if not relative_gap <= tol:
        # Above it, or not a number.
        return otherwise
    if outcome == "least squares":
        return Status.LEAST_SQUARES
    if outcome == "unattained":
        return Status.UNATTAINED
    return Status.SEVERAL_OPTIMA if outcome == "several" else Status.OPTIMAL


@dataclass(frozen=True)
class Step:
    """One iteration of a solver.

    Attributes
    ----------
    iteration : int
        Number, from one.
    objective : float
        Learner's loss at the iterate, up to rounding of ``|y|^2 + |z|^2``.
    residual : float
        Norm of the residual of the optimality conditions of the sphere problem.
    passes : float
        Reads of the data so far.
    seconds : float
        Wall-clock time so far.
    """

    iteration: int
    objective: float
    residual: float
    passes: float
    seconds: float


@dataclass(frozen=True)
class Stats:
    """What a solve cost.

    Attributes
    ----------
    passes : float
        Passes over the whole data. A product ``A'(A v)`` counts as one, although data stored by
        sparse columns has to be read twice for it.
    iterations : int
        Iterations of the solver.
    seconds : float
        Wall-clock time, certificate included.
    stages : dict
        Seconds by stage, for solvers that work in stages; empty for the others.
    """

    passes: float
    iterations: int
    seconds: float
    stages: Mapping[str, float] = field(default_factory=dict)

    def plus(self, other: Stats) -> Stats:
        """Both together, one after the other."""
        stages = {
            stage: self.stages.get(stage, 0.0) + other.stages.get(stage, 0.0)
            for stage in (*self.stages, *other.stages)
        }
        return Stats(
            self.passes + other.passes,
            self.iterations + other.iterations,
            self.seconds + other.seconds,
            stages,
        )

    def __repr__(self) -> str:
        return f"Stats({self.passes:g} passes, {self.iterations} iterations, {self.seconds:.3g} s)"


@dataclass(frozen=True)
class End:
    """A population at an end of a range, and how the predictor fares against it.

    Attributes
    ----------
    population : Population
        The population.
    objective : float
        Objective of the predictor if this is whom it meets.
    best : float
        Objective of the best predictor there.
    binds : bool
        Whether it is the worst end, or one of them.
    """

    population: Population
    objective: float
    best: float
    binds: bool

    @property
    def regret(self) -> float:
        """What knowing that this is the population would have gained."""
        return max(0.0, self.objective - self.best)


@dataclass(frozen=True, eq=False)
class Solution:
    """A predictor, and the proof that comes with it.

    Attributes
    ----------
    coef : ndarray of shape (n,)
        Coefficients.
    intercept : float
        Intercept, zero unless one was asked for.
    alpha : float or ndarray of shape (k,)
        ``q/gamma``, the squared priced norm of the coefficients over the strength; one for each
        group of a population, zero for honest ones; one for each end of a range of strengths.
    multiplier : float
        Multiplier of the sphere constraint in the paper's formulation; against a population, of
        the squared priced norm of the coefficients.
    objective : float
        Learner's weighted sum of squares after the providers moved, measured on the data; against
        a population the mean over its groups, against a range the worst over it. A ridge term is
        included.
    status : Status
        How the solve ended.
    solver : str
        Name of the solver that found it.
    certificate : Certificate
        How far from the global optimum it can be.
    stats : Stats
        What it cost.
    history : tuple of Step
        The way there; empty for a direct solver.
    setting : Setting
        What of the game :attr:`advice` depends on.
    ends : tuple of End
        Against a range: the predictor against the population at each of its ends. Otherwise empty.
    """

    coef: Vector
    intercept: float
    alpha: float | Vector
    multiplier: float
    objective: float
    status: Status
    solver: str
    certificate: Certificate
    stats: Stats
    history: tuple[Step, ...] = ()
    setting: Setting = Setting()
    ends: tuple[End, ...] = ()

    @property
    def binding(self) -> tuple[Population, ...]:
        """The populations at the ends of a range that are worst for the predictor."""
        return tuple(end.population for end in self.ends if end.binds)

    @property
    def regret(self) -> float:
        """What knowing the truth would have gained, at the end of a range where that is most."""
        return max((end.regret for end in self.ends), default=0.0)

    @property
    def advice(self) -> str:
        """What the status means in this game, and what can be done about it."""
        return advise(self.status, self.setting, self.solver)

    @property
    def pull(self) -> float | Vector:
        """Share of the gap to its goal that a provider closes, ``alpha/(1+alpha)``."""
        return self.alpha / (1.0 + self.alpha)

    def __repr__(self) -> str:
        proof = self.certificate
        pull = ", ".join(f"{share:.4g}" for share in np.atleast_1d(self.pull))
        return (
            f"Solution({self.status.value}: objective {self.objective:.10g}, relative gap "
            f"{proof.relative_gap:.2g} {proof.kind}; pull {pull}; {self.coef.size} "
            f"coefficients; {self.solver}, {self.stats.passes:g} passes, "
            f"{self.stats.seconds:.3g} s)"
        )


def latest(solutions: Iterable[Solution]) -> Stats:
    """What had been spent when the last of several solutions on one count was found."""
    spent = [solution.stats for solution in solutions]
    if not spent:
        return Stats(0.0, 0, 0.0)
    last = max(spent, key=lambda stats: stats.seconds)
    return Stats(
        max(stats.passes for stats in spent),
        max(stats.iterations for stats in spent),
        last.seconds,
        last.stages,
    )
