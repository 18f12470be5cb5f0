"""Claims about answers: objectives, errors on held-out rows."""

from __future__ import annotations

from collections.abc import Callable

from reproduction.cell import Real
from reproduction.figures import mean_curves
from reproduction.store import Results
from reproduction.tables import LABELS, tolerance
from reproduction.verdict import CAVEAT, FAILS, HOLDS, REAL, Verdict, several
from reproduction.view import Point, families, pairs, real_games

__all__ = ["ACCURACY_CLAIMS"]


def _errors(results: Results, value: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"ltrsr": [], "rtr-newton": []}
    for family in families(results):
        for method, errors in found.items():
            errors += [
                (socp[value] - other[value]) / abs(socp[value])
                for socp, other in pairs(results, family, "socp", method)
                if socp[value] and other[value] is not None
            ]
    return found


def _accuracy(results: Results) -> Verdict | None:
    ids = ("wine", "insurance", "building", "blog", "dense-0.1", "dense-0.01")
    found = _errors(several(results, ids), "objective")
    worst = {m: max(map(abs, errors)) for m, errors in found.items() if errors}
    if not worst:
        return None
    largest = max(worst.values())
    gaps = [r["gap"] for r in several(results, ids).records if r.measured and r["gap"] is not None]
    return Verdict(
        "Objectives of LTRSR and RTRNewton differ from SOCP's by 4.6e-5 at most, relatively.",
        "Tables tab:SPGLS-real-reltol, tab:SPGLS-dense-reltol",
        HOLDS if largest <= 4.6e-5 else CAVEAT if largest <= 4.6e-4 else FAILS,
        "They differ by "
        + " and ".join(f"{error:.1e} ({LABELS[m]})" for m, error in worst.items())
        + f" at most; the largest certified gap is {max(gaps):.1e} of the labels' sum of squares.",
    )


def _test_accuracy(results: Results) -> Verdict | None:
    found = _errors(several(results, REAL), "test_mse")
    listed = [abs(error) for errors in found.values() for error in errors]
    if not listed:
        return None
    return Verdict(
        "Errors on test rows differ by 5.27e-4 at most, relatively.",
        "Table tab:SPGLS-real-MSE",
        HOLDS if max(listed) <= 5.27e-4 else CAVEAT if max(listed) <= 5.27e-3 else FAILS,
        f"They differ by {max(listed):.1e} at most.",
    )


def _more_accurate(results: Results) -> Verdict | None:
    found = _errors(several(results, REAL), "objective")
    errors = found["ltrsr"]
    if not errors:
        return None
    share = sum(error > 0 for error in errors) / len(errors)
    return Verdict(
        "LTRSR is more accurate than SOCP: its objective is never larger.",
        "Appendix C.1",
        HOLDS if share == 1.0 else CAVEAT if share > 0.5 else FAILS,
        f"Its objective is smaller in {100 * share:.0f}% of {len(errors)} games: our SOCP "
        "computes its answer from the multiplier, and an error of the multiplier enters the "
        "objective only squared.",
    )


def _agreement(results: Results) -> Verdict | None:
    part = results.where(experiment="agreement")
    worst: dict[str, float] = {}
    reasons: list[str] = []
    for data in dict.fromkeys(record.cell.data for record in part.records):
        group = part.where(data=data).records
        least = min((r["objective"] for r in group if r.measured), default=0.0)
        for r in group:
            if r.measured:
                error = (r["objective"] - least) / r["labels"]
                worst[r.cell.method] = max(worst.get(r.cell.method, 0.0), error)
            else:
                assert isinstance(data, Real)
                name = f"{r.cell.method} on {data.source}: {Point(0, 0, (r,)).trouble}"
                reasons.append(name)
    if not worst:
        return None
    good = all(error <= tolerance(method) for method, error in worst.items())
    left = ", ".join(dict.fromkeys(reasons))
    return Verdict(
        "All methods solve the same problem to a very high accuracy.",
        "Section 5.1",
        (CAVEAT if reasons else HOLDS) if good else FAILS,
        f"Objectives are at most {max(worst.values()):.1e} of the labels' sum of squares above the "
        "least" + (f"; without an answer: {left}." if left else "."),
    )


def _curves(results: Results) -> Verdict | None:
    part = results.where(experiment="error-curves")
    least, total, alone = 0, 0, 0
    for source, attacker in real_games(part):
        found = mean_curves(part, source, attacker)
        if not found:
            continue
        game, *others, goals = (
            found[m]["attacked"] for m in ("game", "least squares", "ridge", "y from z alone")
        )
        for at, error in enumerate(game):
            total += 1
            least += all(error <= other[at] for other in others)
            alone += error > goals[at]
    if not total:
        return None
    return Verdict(
        "Under attack the game has a smaller error on held-out rows than least squares and ridge.",
        "Wang et al. 2021",
        HOLDS if least == total else CAVEAT if least > total / 2 else FAILS,
        f"Its error is smaller at {least} of {total} gammas, and the ridge here is tuned for the "
        "attack. But a regression of the labels on the goals, without any feature, has a still "
        f"smaller error at {alone} of them.",
    )


#: What is judged, in the order of the page.
ACCURACY_CLAIMS: tuple[Callable[[Results], Verdict | None], ...] = (
    _accuracy,
    _test_accuracy,
    _more_accurate,
    _agreement,
    _curves,
)
