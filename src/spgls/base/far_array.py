"""Numbers of rows that stay in a device's memory, used as if they were NumPy's.

Labels and goals of many rows take longer to bring to the host than the data takes to read. What a
game does with them is little: it adds, multiplies, compares, and sums up. All of that happens
where they are. Whatever else somebody does with them happens on a copy in the host's memory,
which is made once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spgls.base.devices import Place

__all__ = ["LONG", "FarArray", "far_of", "side_by_side"]

#: Rows from which on bringing numbers to the host takes longer than starting work on the device.
LONG = 2**17

#: What NumPy's functions are called on the device: operators, or functions of the standard.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "invert": operator.invert,
}
_FUNCTIONS = {"absolute": "abs", "isfinite": "isfinite", "isnan": "isnan", "sqrt": "sqrt"}
_FUNCTIONS |= {"square": "square"}


class FarArray:
    """A vector, or a few of them as columns, in a device's memory. Nobody writes to it.

    Parameters
    ----------
    place : Place
        Where it is.
    values : array
        The numbers there, in double precision, or truth values.
    host : ndarray, optional
        The same numbers in the host's memory, where they have been there already.
    """

    def __init__(self, place: Place, values: Any, host: NDArray[Any] | None = None) -> None:
        self.place, self.values, self._host = place, values, host

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, and columns where there are several."""
        return tuple(int(size) for size in self.values.shape)

    @property
    def ndim(self) -> int:
        """One or two."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Double precision, or truth values."""
        return np.dtype(bool if "bool" in str(self.values.dtype) else np.float64)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"FarArray of shape {self.shape} with {self.place}"

    def there(self, place: Place) -> Any:
        """The numbers at a place, which need not move if that is where they are."""
        return self.values if place == self.place else place.put(np.asarray(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self._host is None:
            self._host = self.place.get(self.values)
            self._host.flags.writeable = False
        return np.array(self._host, dtype=dtype, copy=bool(copy) or None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and not options:
            told = [self._known(one) for one in inputs]
            if all(one is not None for one in told):
                found = self._compute(ufunc.__name__, told)
                if found is not None:
                    return FarArray(self.place, found)
        return getattr(ufunc, method)(*_hosts(inputs), **options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function is np.count_nonzero and not options and len(args) == 1:
            some = self.values if self.dtype == bool else self.values != 0.0
            return int(self._number(self.place.xp.astype(some, self.place.xp.int64)))
        if function is np.zeros_like and not options and len(args) == 1:
            return FarArray(self.place, self.place.xp.zeros_like(self.values))
        if function is np.array_equal and not options and len(args) == 2:
            a, b = args
            if isinstance(a, FarArray) and isinstance(b, FarArray) and a.place == b.place:
                same = a.shape == b.shape
                return a is b or (same and not FarArray(a.place, a.values != b.values).any())
        return function(*_hosts(args), **options)

    def _known(self, value: Any) -> Any:
        """What takes part in a computation on the device; None for anything of the host's."""
        if isinstance(value, FarArray):
            return value.values if value.place == self.place else None
        if isinstance(value, np.ndarray | np.generic):
            return value.item() if value.ndim == 0 else None
        return value if isinstance(value, bool | int | float) else None

    def _compute(self, name: str, told: list[Any]) -> Any:
        if name in _OPERATORS:
            return _OPERATORS[name](*told)
        return getattr(self.place.xp, _FUNCTIONS[name])(*told) if name in _FUNCTIONS else None

    def __add__(self, other: Any) -> Any:
        return np.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return np.add(other, self)

    def __sub__(self, other: Any) -> Any:
        return np.subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        return np.subtract(other, self)

    def __mul__(self, other: Any) -> Any:
        return np.multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return np.multiply(other, self)

    def __truediv__(self, other: Any) -> Any:
        return np.divide(self, other)

    def __pow__(self, other: Any) -> Any:
        return np.square(self) if other == 2 else np.asarray(self) ** other

    def __neg__(self) -> Any:
        return np.negative(self)

    def __abs__(self) -> Any:
        return np.absolute(self)

    def __invert__(self) -> Any:
        return np.invert(self)

    def __lt__(self, other: Any) -> Any:
        return np.less(self, other)

    def __le__(self, other: Any) -> Any:
        return np.less_equal(self, other)

    def __gt__(self, other: Any) -> Any:
        return np.greater(self, other)

    def __ge__(self, other: Any) -> Any:
        return np.greater_equal(self, other)

    def __matmul__(self, other: Any) -> Any:
        return self.dot(other)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, FarArray):
            return FarArray(self.place, self.values[key.values])
        plain = key if isinstance(key, tuple) else (key,)
        if isinstance(plain[0], slice) and all(isinstance(one, slice | int) for one in plain[1:]):
            first, stop, step = plain[0].indices(len(self))
            if step > 0:
                return FarArray(self.place, self.values[(slice(first, stop, step), *plain[1:])])
        return np.asarray(self)[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def dot(self, other: Any) -> Any:
        """Sum of products with another vector."""
        known = self._known(other)
        if known is None or self.ndim > 1:
            return np.asarray(self).dot(np.asarray(other))
        return self._get(self.values @ known)

    def sum(self) -> float:
        """Sum of all entries."""
        return self._number(self.values)

    def max(self) -> float:
        """Largest entry."""
        return self._get(self.place.xp.max(self.values))

    def min(self) -> float:
        """Smallest entry."""
        return self._get(self.place.xp.min(self.values))

    def any(self) -> bool:
        """Whether any entry is not zero."""
        return bool(self._get(self.place.xp.any(self.values)))

    def all(self) -> bool:
        """Whether no entry is zero."""
        return bool(self._get(self.place.xp.all(self.values)))

    def _number(self, values: Any) -> float:
        return self._get(self.place.xp.sum(values))

    def _get(self, one: Any) -> float:
        """A single number, brought to the host."""
        return float(self.place.get(self.place.xp.reshape(one, (1,)))[0])


def far_of(value: Any) -> FarArray | None:
    """Numbers that stay on a device, as such; None for all others."""
    return value if isinstance(value, FarArray) else None


def side_by_side(*columns: Any, order: Literal["C", "F"] = "C") -> Any:
    """Vectors, and numbers for constant ones, as the columns of a table, where the vectors are.

    On a device they lie one behind the other, in the host's memory by the order asked for.
    """
    first = columns[0]
    far = [one for one in columns if isinstance(one, FarArray) and one.place == first.place]
    if len(far) == sum(not isinstance(one, float) for one in columns) > 0:
        xp = first.place.xp
        parts = [
            one.values if isinstance(one, FarArray) else xp.full_like(first.values, one)
            for one in columns
        ]
        return FarArray(first.place, xp.stack(parts).T)
    table = np.empty((len(first), len(columns)), order=order)
    for j, one in enumerate(columns):
        table[:, j] = one
    return table


def _hosts(values: Any) -> tuple[Any, ...]:
    """The same with copies in the host's memory; lists of them too."""
    return tuple(
        np.asarray(one)
        if isinstance(one, FarArray)
        else type(one)(_hosts(one))
        if isinstance(one, list | tuple)
        else one
        for one in values
    )
