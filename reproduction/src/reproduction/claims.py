"""What the paper claims, and what our own results say about it."""

from __future__ import annotations

from reproduction.claims_accuracy import ACCURACY_CLAIMS
from reproduction.claims_time import TIME_CLAIMS
from reproduction.store import Results
from reproduction.verdict import CAVEAT, FAILS, HOLDS, Verdict

__all__ = ["CAVEAT", "FAILS", "HOLDS", "Verdict", "judge"]


def judge(results: Results) -> list[Verdict]:
    """Judge every claim that there are results for.

    Parameters
    ----------
    results : Results
        Of any experiments, at one scale and by one protocol.

    Returns
    -------
    list of Verdict
    """
    claims = (*TIME_CLAIMS, *ACCURACY_CLAIMS)
    return [verdict for claim in claims if (verdict := claim(results)) is not None]
