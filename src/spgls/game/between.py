"""A number of which only a range is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from spgls.base.types import Number
from spgls.base.validation import check_number, describe

__all__ = ["Between", "read_between"]


@dataclass(frozen=True)
class Between:
    """Any number from ``low`` to ``high``; nobody knows which.

    Stands for a strength, a pull or an honest share that is not known. The learner then minimises
    its worst loss over the range.

    Parameters
    ----------
    low, high : float
        Ends of the range; ``low`` is not above ``high``. As the end of a range of strengths
        ``inf`` means that nobody reacts.

    Examples
    --------
    >>> from spgls import Between
    >>> Between(0.5, 5)
    Between(0.5, 5)
    """

    low: float
    high: float

    def __init__(self, low: Number, high: Number) -> None:
        ends = _end(low, "low"), _end(high, "high")
        if ends[0] > ends[1]:
            raise ValueError(
                f"low must not be above high in Between; got {ends[0]:.6g} and {ends[1]:.6g}. "
                f"Pass Between({ends[1]:.6g}, {ends[0]:.6g})."
            )
        object.__setattr__(self, "low", ends[0])
        object.__setattr__(self, "high", ends[1])

    @property
    def known(self) -> bool:
        """Whether both ends are the same number."""
        return self.low == self.high

    def __repr__(self) -> str:
        return f"Between({self.low:.6g}, {self.high:.6g})"


def _end(value: Any, name: str) -> float:
    if type(value) is float and value == value:
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} of Between must be a number; got {describe(value)}.")
    if math.isnan(value):
        raise ValueError(f"{name} of Between must be a number; got nan.")
    return float(value)


def read_between(value: Any, name: str, *, infinite: bool = False, **limits: Any) -> Between:
    """Return the range of a number that may be known, each end within limits.

    Parameters
    ----------
    value : float or Between
        What was given.
    name : str
        Of the argument, for errors.
    infinite : bool
        Whether the upper end may be infinite.
    **limits
        As for :func:`check_number`.
    """
    if not isinstance(value, Between):
        number = check_number(value, name, **limits)
        return Between(number, number)
    low = check_number(value.low, f"low end of {name}", **limits)
    if infinite and value.high == math.inf:
        return Between(low, math.inf)
    return Between(low, check_number(value.high, f"high end of {name}", **limits))
