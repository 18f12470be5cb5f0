"""Synthetic games of the paper, dense and sparse, from a seed."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from spgls.base.types import Vector
from spgls.base.validation import check_choice, check_count, check_flag, check_number, describe
from spgls.game.goals import Floor

__all__ = ["make_dense", "make_sparse"]

#: Those in the lowest quarter would like to leave it.
QUANTILE = 0.25
#: The largest noise of the sparse games, or its standard deviation.
NOISE = 0.5
#: Standard deviations above the mean up to which entries are drawn at once.
SPARE = 4.0


def make_dense(
    m: int, n: int, *, noise: float = 0.1, scale: bool = True, random_state: int | None = None
) -> Bunch:
    """Make a dense game: scikit-learn's ``make_regression``, goals of at least the lower quartile.

    Parameters
    ----------
    m, n : int
        Rows and features; the paper has ``m`` = ``n``/2, ``n`` and 2 ``n``.
    noise : float
        Standard deviation of what is added to the labels.
    scale : bool
        Whether each feature is brought to [0, 1], as in the authors' code; the text of the paper
        does not mention it.
    random_state : int, optional
        Seed; None for other numbers every time.

    Returns
    -------
    Bunch
        ``X``, ``y``, ``z`` and ``goal``, the :class:`~spgls.Floor` that made ``z`` of ``y``.

    Examples
    --------
    >>> from spgls import solve
    >>> from spgls.datasets import make_dense
    >>> game = make_dense(200, 100, random_state=0)
    >>> game.X.shape, bool((game.z >= game.y).all())
    ((200, 100), True)
    >>> solve(game.X, game.y, game.z, 0.1).certificate.kind
    'proved'
    """
    from sklearn.datasets import make_regression

    m, n = _size(m, "m"), _size(n, "n")
    noise = check_number(noise, "noise", at_least=0.0)
    seed = _seed(random_state)
    X, y = make_regression(m, n, noise=noise, random_state=seed)
    if check_flag(scale, "scale"):
        X -= X.min(axis=0)
        span = X.max(axis=0)
        X /= np.where(span > 0.0, span, 1.0)
    return _game(X, y)


def make_sparse(
    m: int, n: int, density: float, *, noise: str = "uniform", random_state: int | None = None
) -> Bunch:
    """Make a sparse game: ``y = X coef + noise``, goals of at least the lower quartile.

    Each entry of ``X`` is non-zero with probability ``density``, independently of the others, and
    then standard normal. The paper does not tell the coefficients; here they are uniform on
    [0, 1], as a comment in its source has it.

    Parameters
    ----------
    m, n : int
        Rows and features; the paper has ``m`` = ``n``/2, ``n``, 2 ``n`` and 3 ``n``.
    density : float
        Share of non-zero entries, above 0 and at most 1; the paper has 0.01, 0.001 and 0.0001.
    noise : {"uniform", "normal"}
        What is added to the labels: uniform on [0, 0.5], as in the paper, or normal with standard
        deviation 0.5, as in the authors' code.
    random_state : int, optional
        Seed; None for other numbers every time.

    Returns
    -------
    Bunch
        ``X`` as a CSR array, ``y``, ``z``, ``coef``, and ``goal``, the :class:`~spgls.Floor` that
        made ``z`` of ``y``.

    Examples
    --------
    >>> from spgls.datasets import make_sparse
    >>> game = make_sparse(500, 1000, 0.01, random_state=0)
    >>> game.X.shape, 4500 < game.X.nnz < 5500
    ((500, 1000), True)
    """
    m, n = _size(m, "m"), _size(n, "n")
    density = check_number(density, "density", above=0.0, at_most=1.0)
    check_choice(noise, "noise", ("uniform", "normal"))
    rng = np.random.default_rng(_seed(random_state))
    X = _sparse_normal(m, n, density, rng)
    coef = rng.random(n)
    error = NOISE * (rng.random(m) if noise == "uniform" else rng.standard_normal(m))
    return _game(X, X @ coef + error, coef=coef)


def _sparse_normal(m: int, n: int, density: float, rng: np.random.Generator) -> Any:
    """Independent entries, by the gaps between those that are not zero: work and memory of those.

    The gaps of independent trials are geometric.
    """
    size = m * n
    batch = int(size * density + SPARE * np.sqrt(size * density)) + 16
    pieces, last = [], -1
    while last < size:
        # A gap beyond the end ends it, however long; sums of many would overflow.
        piece = last + np.cumsum(np.minimum(rng.geometric(density, batch), size + 1))
        pieces.append(piece)
        last = int(piece[-1])
    at = np.concatenate(pieces)
    at = at[: np.searchsorted(at, size)]
    small = max(len(at), n) <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64
    starts = np.searchsorted(at, np.arange(m + 1, dtype=np.int64) * n).astype(kind)
    return sp.csr_array((rng.standard_normal(len(at)), (at % n).astype(kind), starts), shape=(m, n))


def _game(X: Any, y: Vector, **more: Any) -> Bunch:
    goal = Floor(float(np.quantile(y, QUANTILE)))
    return Bunch(X=X, y=y, z=goal(y), goal=goal, **more)


def _size(value: Any, name: str) -> int:
    count = check_count(value, name)
    if count is None:
        raise TypeError(f"{name} must be a positive whole number; got None.")
    return count


def _seed(value: Any) -> int | None:
    if value is None:
        return None
    limit = 2**32
    message = (
        f"random_state must be None or a whole number from 0 to {limit - 1}; got {describe(value)}."
    )
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(message)
    if not 0 <= int(value) < limit:
        raise ValueError(message)
    return int(value)
