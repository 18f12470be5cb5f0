"""Block Krylov spaces: an orthonormal basis that grows by one read of the data at a time.

Block Lanczos with deflation and full reorthogonalisation. For an operator ``M`` and start columns
``C`` the basis ``Q`` of ``k`` columns spans ``[C, M C, M^2 C, ...]``, and

    M Q = Q T + (next block) (coupling) (last rows),      T = Q'MQ block tridiagonal,

so that a product with anything in the span is known without another read, and so is the residual
of every problem solved on it. Where the basis reaches its limit it is restarted from chosen
columns, whose products are then stored; all of the above stays true.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan

import numpy as np
from scipy.linalg import qr

from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import norm

__all__ = ["KrylovSpace", "combine"]

#: What orthogonalisation leaves of a column, below this share of it, is orthogonalised once more.
_CANCELLED = 0.1
#: A column shorter than this, in units of the terms it was computed from, is rounding.
_DEFLATED = 64 * EPS
#: What is left of a column of a seed, below this share of it, says nothing new.
_DEPENDENT = 1e-8
#: Columns of a seed that are multiplied at once.
_SEEDS = 8
#: Start columns closer to each other than this are one.
_SAME_START = 64 * EPS
#: Solutions at earlier restarts that are remembered.
_PAST = 20
#: Entries of long vectors that are made at once for their lengths alone.
_LONG = 2**20


class KrylovSpace:
    """A growing orthonormal basis ``Q`` with ``T = Q'MQ``.

    Parameters
    ----------
    product : callable
        ``M V`` for a vector or a block of columns; one read of the data. A vector may be changed
        by rounding, to what was multiplied.
    starts : ndarray of shape (n, w)
        Start columns, of any length and rank.
    limit : int
        Most columns of the basis.

    Attributes
    ----------
    count : int
        Columns of the basis.
    steps : int
        Products so far.
    restarts : int
        How often the basis was restarted.
    scale : float
        Estimate of ``|M|``, the largest entry of ``T``; not finite if anything was not.
    """

    def __init__(self, product: Callable[[Array], Array], starts: Array, limit: int) -> None:
        n, w = starts.shape
        self._product = product
        self.limit = max(min(limit, n), 1)
        room = min(2 * max(w, 2), self.limit + w)
        self._Q: Array = np.empty((n, room), order="F")
        self._T: Array = np.zeros((room, room))
        self.count = 0
        self.steps = 0
        self.restarts = 0
        self.scale = 0.0
        self._last = 0
        # Products of the first columns, stored after a restart only.
        self._head: Array | None = None
        self._next, self._starts = _start_columns(starts)
        self._coupling: Array = np.zeros((self._next.shape[1], 0))
        self._past: Array = np.zeros((0, 0))
        self._begun: Vector | None = None

    @property
    def size(self) -> int:
        """Length of the columns."""
        return len(self._Q)

    @property
    def projected(self) -> Array:
        """``T = Q'MQ``."""
        return self._T[: self.count, : self.count]

    @property
    def starts(self) -> Array:
        """``Q'C``, the coordinates of the start columns."""
        return self._padded(self._starts)

    @property
    def past(self) -> Array:
        """Coordinates of the solutions at earlier restarts, the newest first."""
        return self._padded(self._past)

    def _padded(self, coordinates: Array) -> Array:
        padded = np.zeros((self.count, coordinates.shape[1]))
        rows = min(len(coordinates), self.count)
        padded[:rows] = coordinates[:rows]
        return padded

    @property
    def width(self) -> int:
        """Columns that the next step adds; zero if the space is complete."""
        return int(self._next.shape[1])

    @property
    def full(self) -> bool:
        """Whether the next step would exceed the limit."""
        return self.width > 0 and self.count + self.width > self.limit

    def seed(self, inverse: Callable[[Array], Array], steps: int) -> None:
        """Begin a space, or begin it anew, with what an inverse makes of its start columns.

        Where the inverse is nearly that of ``M``, few of them hold what many products would lead
        to. The first step is corrected by a product, so that a rough inverse will do. All are
        multiplied like any others; the space goes on as after a restart.

        Parameters
        ----------
        inverse : callable
            Nearly ``M^{-1} V`` of a block of columns.
        steps : int
            How often it is applied.
        """
        w = len(self._starts)
        C = V = self._Q[:, :w].copy() if self.count else self._next
        for step in range(min(steps, self.limit // max(w, 1) - 1)):
            U, V = V, inverse(V)
            if step == 0:
                V = V + inverse(U - self._multiply(V))
                self.steps += 1
            V /= _lengths(V)
            for _ in range(2):
                V -= combine(C, _cross(C, V))
            V, _ = _orthonormal(V, np.full(V.shape[1], _DEPENDENT))
            if not V.shape[1]:
                break
            C = np.hstack([C, V])
        k = C.shape[1]
        pieces = [C[:, at : at + _SEEDS] for at in range(0, k, _SEEDS)]
        self._head = np.hstack([self._multiply(piece) for piece in pieces])
        self.steps += len(pieces)
        self._reserve(k)
        self._Q[:, :k] = C
        T = C.T @ self._head
        self._T[:k, :k] = (T + T.T) / 2
        self.scale = float(np.abs(T).max())
        self.count, self._last = k, 0
        self.restarts += 1
        left = self._head[:, :w] - combine(C, T[:, :w])
        for _ in range(2):
            left -= combine(C, _cross(C, left))
        room = len(C) - k
        self._next = _orthonormal(left, np.full(w, _DEFLATED * self.scale))[0][:, :room]
        self._coupling = np.zeros((self._next.shape[1], 0))

    def _multiply(self, V: Array) -> Array:
        return self._product(V)

    def begin(self) -> Vector:
        """The first column, multiplied; what follows from it is left to :meth:`extend`."""
        first = self._next[:, 0]
        self._begun = self._multiply(first)
        return first

    def extend(self) -> None:
        """Add the next block, at the cost of one product."""
        V, k = self._next, self.count
        b = V.shape[1]
        self._reserve(k + b)
        if b == 1:
            self._extend_by_one(V[:, 0])
            return
        self._Q[:, k : k + b] = V
        W = np.array(self._multiply(V), order="F")
        self.steps += 1
        self.count = k + b
        before = _lengths(W)
        # First what is large, the last two blocks; then all, where hardly anything is left to find.
        inner = np.zeros((k + b, b))
        recent = max(k - self._last, 0)
        for first in (recent, 0):
            Q = self._Q[:, first : k + b]
            part = _cross(Q, W)
            W -= combine(Q, part)
            inner[first:] += part
        self._T[: k + b, k : k + b] = inner
        self._T[k : k + b, : k + b] = inner.T
        corner = inner[k:]
        self._T[k : k + b, k : k + b] = (corner + corner.T) / 2
        largest = float(np.abs(inner).max())
        self.scale = largest if isnan(largest) else max(self.scale, largest)
        floor = np.full(b, _DEFLATED * self.scale)
        new, coupling = _orthonormal(W, floor)
        # Rounding may leave more columns than there are dimensions.
        room = len(V) - self.count
        new, coupling = new[:, :room], coupling[:room]
        if new.shape[1] and _smallest(coupling) < _CANCELLED * float(before.max()):
            Q = self._Q[:, : k + b]
            new -= combine(Q, _cross(Q, new))
            new, turn = _orthonormal(new, np.full(new.shape[1], 0.5))
            coupling = turn @ coupling
        self._next, self._coupling, self._last = new, coupling, b

    def _extend_by_one(self, v: Vector) -> None:
        """The same for a single column: vectors take a third of the time that tables do."""
        k = self.count
        image = self._multiply(v) if self._begun is None else self._begun
        self._begun = None
        self._Q[:, k] = v
        self.steps += 1
        self.count = k + 1
        before, recent = norm(image), max(k - self._last, 0)
        Q = self._Q[:, : k + 1]
        near = Q[:, recent:]
        part = near.T.dot(image)
        w = image - near.dot(part)
        inner = Q.T.dot(w)
        w -= Q.dot(inner)
        inner[recent:] += part
        self._T[: k + 1, k] = self._T[k, : k + 1] = inner
        # No entry beside the diagonal of a positive matrix is larger than those on it.
        largest = float(inner[k])
        self.scale = largest if isnan(largest) else max(self.scale, largest)
        length = norm(w)
        self._last = 1
        if length <= _DEFLATED * self.scale or self.count == len(v):
            self._next, self._coupling = w[:, None][:, :0], np.zeros((0, 1))
            return
        w /= length
        if length < _CANCELLED * before:
            w -= Q.dot(Q.T.dot(w))
            left = norm(w)
            if left <= 0.5:
                self._next, self._coupling = w[:, None][:, :0], np.zeros((0, 1))
                return
            w /= left
            length *= left
        self._next, self._coupling = w[:, None], np.array([[length]])

    def combine(self, h: Array) -> Array:
        """``Q h`` for coordinates ``h``, a vector or a block."""
        Q = self._Q[:, : len(h)]
        return np.asarray(Q @ h) if h.ndim == 1 else combine(Q, h)

    def product(self, h: Array) -> Array:
        """``M Q h``, without a read of the data."""
        image = self.combine(self.projected @ h)
        image += self.outside(h)
        return image

    def outside(self, h: Array) -> Array:
        """Part of ``M Q h`` outside the span: the residual of a problem solved on the span."""
        last = self._coupling @ h[len(h) - self._last :]
        out = np.asarray(self._next @ last) if h.ndim == 1 else combine(self._next, last)
        if self._head is not None:
            p = self._head.shape[1]
            out = out + self._head @ h[:p] - self.combine(self.projected[:, :p] @ h[:p])
        return out

    def residual(self, h: Vector) -> float:
        """``|outside(h)|``, which takes no long vector before the first restart."""
        if self._head is None:
            return norm(self._coupling.dot(h[len(h) - self._last :]))
        return norm(self.outside(h))

    def residuals(self, h: Array) -> Vector:
        """``|outside(h)|`` of each column."""
        if self._head is None:
            return _lengths(self._coupling @ h[len(h) - self._last :])
        width = max(_LONG // self.size, 1)
        pieces = [h[:, at : at + width] for at in range(0, h.shape[1], width)]
        return np.concatenate([_lengths(self.outside(piece)) for piece in pieces])

    def outside_factor(self, basis: Array) -> Array:
        """A small ``F`` with ``|F x| = |outside(basis x)|``, for many residuals at once."""
        if self._head is None:
            return np.asarray(self._coupling @ basis[len(basis) - self._last :])
        return np.asarray(np.linalg.qr(self.outside(basis), mode="r"))

    def restart(self, kept: Array, wanted: Array) -> None:
        """Shrink the basis to chosen columns, and go on from the residuals of some of them.

        Parameters
        ----------
        kept : ndarray of shape (count, p)
            Coordinates of what the new basis has to span; the start columns are added.
        wanted : ndarray of shape (count, g)
            Coordinates of the problems' solutions, in the span of ``kept``. The next block is made
            of what is missing from them.
        """
        residual = self.outside(wanted)
        starts, past = self.starts, np.hstack([wanted, self.past])[:, :_PAST]
        columns = np.hstack([starts, kept])
        lengths = _lengths(columns)
        columns /= np.where(lengths > 0.0, lengths, 1.0)
        C, _ = _orthonormal(columns, np.full(columns.shape[1], 1e-12))
        image = self.product(C)
        k = C.shape[1]
        T = C.T @ self.projected @ C
        self._Q[:, :k] = self.combine(C)
        self._head = image
        self._T[:] = 0.0
        self._T[:k, :k] = (T + T.T) / 2
        self.scale = float(np.abs(T).max())
        self._starts, self._past = C.T @ starts, C.T @ past
        self.count = k
        self.restarts += 1
        # As many columns as before: what is missing most, then what would have come next anyway.
        left, sizes, _ = np.linalg.svd(residual, full_matrices=False)
        some = sizes > _DEFLATED * self.scale * max(float(_lengths(wanted).max()), EPS)
        new = left[:, some]
        rest = self._next - new @ (new.T @ self._next)
        new = np.hstack([new, _orthonormal(rest, np.full(self.width, 1e-3))[0]])[:, : self.width]
        Q = self._Q[:, :k]
        for _ in range(2):
            new = new - combine(Q, _cross(Q, new))
        self._next, _ = _orthonormal(new, np.full(new.shape[1], 0.5))
        self._coupling = np.zeros((self._next.shape[1], 0))
        self._last = 0

    def _reserve(self, columns: int) -> None:
        """Make room, doubling it: nobody knows beforehand how many columns it takes."""
        room = self._Q.shape[1]
        if columns <= room:
            return
        room = max(columns, min(2 * room, self.limit + self.width))
        Q = np.empty((len(self._Q), room), order="F")
        Q[:, : self.count] = self._Q[:, : self.count]
        T = np.zeros((room, room))
        T[: self.count, : self.count] = self.projected
        self._Q, self._T = Q, T


def _start_columns(starts: Array) -> tuple[Array, Array]:
    """An orthonormal basis of start columns, and their coordinates in it."""
    w = starts.shape[1]
    if w == 1:
        length = norm(starts[:, 0])
        if not 0.0 < length < inf:
            return starts[:, :0], np.zeros((0, 1))
        return starts / length, np.array([[length]])
    lengths = _lengths(starts)
    unit = np.divide(starts, lengths, out=np.zeros_like(starts), where=lengths > 0.0)
    found, _ = _orthonormal(unit, np.full(w, _SAME_START))
    return found, found.T @ starts


def _lengths(W: Array) -> Vector:
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", W, W)))


def _cross(Q: Array, W: Array) -> Array:
    """``Q'W``, likewise."""
    out = np.empty((Q.shape[1], W.shape[1]))
    for j in range(W.shape[1]):
        out[:, j] = Q.T @ W[:, j]
    return out


def combine(Q: Array, h: Array) -> Array:
    """``Q h``, column by column: BLAS does badly with few of them."""
    if h.shape[1] > 4:
        return np.asarray((h.T @ Q.T).T)
    out = np.empty((len(Q), h.shape[1]), order="F")
    for j in range(h.shape[1]):
        np.dot(Q, h[:, j], out=out[:, j])
    return out


def _orthonormal(W: Array, floor: Vector) -> tuple[Array, Array]:
    """``V, B`` with ``W = V B`` up to columns of which less than ``floor`` would remain."""
    n, w = W.shape
    if w == 0:
        return W, np.zeros((0, 0))
    if w == 1:
        length = norm(W[:, 0])
        if length <= floor[0]:
            return W[:, :0], np.zeros((0, 1))
        return W / length, np.array([[length]])
    V, R, pivot = qr(W, mode="economic", pivoting=True, check_finite=False)
    rank = int((np.abs(np.diag(R)) > floor[: min(n, w)]).sum())
    B = np.empty((rank, w))
    B[:, pivot] = R[:rank]
    return np.asfortranarray(V[:, :rank]), B


def _smallest(B: Array) -> float:
    """Least pivot, which in a row is the largest entry."""
    return float(np.abs(B).max(axis=1).min())
