"""What must hold of the answers to one game, whoever gave them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import gmpy2
import numpy as np
from gmpy2 import mpfr

from .exact import Exact
from .game import People
from .play import TOL, Answer, Outcome
from .rivals import Rival, rivals

#: Every kind of failure, in the order of the tables; what follows a colon is detail.
KINDS = (
    "false bound proved",
    "false bound estimated",
    "false optimum",
    "false limit",
    "wrong objective",
    "ok without proof",
    "false bound, labels explained",
    "false optimum, labels explained",
    "not a number",
    "exception",
    "warning",
    "hang",
    "path objective",
    "path status",
    "folds",
    "twin objective",
    "twin status",
)


class Failure(NamedTuple):
    """Something that must not be: whose, of which kind, by how much of ``|Py|^2``, and why."""

    solver: str
    kind: str
    excess: float
    note: str


class Verdict(NamedTuple):
    """The failures of a game's answers, and the best predictor known."""

    failures: list[Failure]
    best: Rival | None


def judge(
    exact: Exact,
    people: People,
    ridge: float,
    outcomes: Mapping[str, Outcome],
    *,
    seek: bool = True,
    known: Rival | None = None,
) -> Verdict:
    """Hold every answer against every predictor that anybody found.

    ``seek`` adds the rivals that no solver found, ``known`` one that is known already.
    """
    failures = [f for label, outcome in outcomes.items() for f in troubles(label, outcome)]
    sound: dict[str, Answer] = {}
    for label, outcome in outcomes.items():
        if isinstance(outcome.value, Answer):
            lost = not_numbers(outcome.value)
            if lost:
                failures.append(Failure(label, "not a number", math.inf, lost))
            else:
                sound[label] = outcome.value
    losses, field = {}, [] if known is None else [known]
    for label, answer in sound.items():
        point = exact.point(answer.coef, answer.intercept)
        losses[label] = exact.loss(point, people, ridge)
        field.append(Rival(label, point, losses[label]))
    best = min(field, key=lambda rival: rival.loss, default=None)
    if seek:
        field.extend(rivals(exact, people, ridge, best))
        best = min(field, key=lambda rival: rival.loss)
    if best is not None:
        for label, answer in sound.items():
            floor = exact.floor(exact.point(answer.coef, answer.intercept), people)
            failures += of_answer(exact, label, answer, losses[label], best, floor)
    return Verdict(failures, best)


def troubles(label: str, outcome: Outcome) -> list[Failure]:
    """Exceptions, warnings and hanging calls."""
    return [Failure(label, kind, math.inf, note) for kind, note in outcome.troubles]


def not_numbers(answer: Answer) -> str:
    """What of an answer is not a number, in words; nothing if all is well."""
    numbers = {
        "coef": answer.coef,
        "intercept": answer.intercept,
        "objective": answer.objective,
    }
    lost = [name for name, value in numbers.items() if not np.isfinite(value).all()]
    bounds = {"lower_bound": answer.lower_bound, "relative_gap": answer.relative_gap}
    # A gap may be infinite: nothing is known, or there is no unit to measure it in.
    lost += [name for name, value in bounds.items() if math.isnan(value)]
    return ", ".join(lost)


def of_answer(
    exact: Exact, label: str, answer: Answer, loss: mpfr, best: Rival, floor: mpfr
) -> list[Failure]:
    """What is wrong with one answer, by its own loss and the best predictor known."""
    slack = exact.slack
    # What is said of one predictor allows for its being made of floats; what is said of all of
    # them does not.
    # Numbers below 1e-308 are whole multiples of the smallest of all.
    allowed = mpfr(TOL) * exact.labels + slack + floor + mpfr(2.0**-1074)
    # Where intercept and immutable columns explain the labels a gap has no unit. What is wrong
    # there by less than labels and goals would allow before projection is counted apart.
    whole = exact.yy + exact.zz
    failures = []

    def fail(kind: str, excess: mpfr, note: str) -> None:
        failures.append(Failure(label, kind, in_units(excess, exact), note))

    over = mpfr(answer.lower_bound) - best.loss
    if over > slack:
        apart = exact.explained and (not whole or over <= mpfr("1e-12") * whole)
        kind = "false bound, labels explained" if apart else f"false bound {answer.kind}"
        fail(kind, over, f"{answer.status}; beaten by {best.name}")
    missed = loss - best.loss
    if missed > allowed and (answer.ok or answer.status == "unattained"):
        apart = exact.explained and (not whole or missed <= mpfr(TOL) * whole)
        kind = "false optimum" if answer.ok else "false limit"
        kind = "false optimum, labels explained" if apart else kind
        fail(kind, missed, f"{answer.status}; beaten by {best.name}")
    if answer.ok:
        off = abs(mpfr(answer.objective) - loss)
        # A loss that is nothing but rounding is known to a few digits only.
        few = max(2 * gmpy2.sqrt(abs(loss) * floor), mpfr("1e-6") * loss)
        if off > allowed + exact.explained * few:
            fail("wrong objective", off, f"says {answer.objective:.6g}, has {float(loss):.6g}")
        if answer.relative_gap > TOL and not exact.explained:
            fail("ok without proof", answer.relative_gap * exact.labels, answer.status)
    return failures


def in_units(excess: mpfr, exact: Exact) -> float:
    """An excess over the squared projected labels, or what there is if they are explained."""
    unit = exact.yy + exact.zz if exact.explained else exact.labels
    return float(excess / unit) if unit > 0 else math.inf


def allowed_between(exact: Exact, people: People, answer: Answer) -> mpfr:
    """How far two certified objectives of one game can be apart, the first being this one."""
    floor = exact.floor(exact.point(answer.coef, answer.intercept), people)
    return 2 * mpfr(TOL) * exact.labels + exact.slack + 4 * floor
