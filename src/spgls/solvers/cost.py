"""What solving a game would take, before anything is computed.

Times are counted in what the work consists of: bytes read from memory, multiplications in BLAS or
by index, decompositions of small matrices. The rates were fitted on one machine
(``benchmarks/auto.py``); a faster machine is faster at all of them, so choices change little.
A device that holds the data is another matter: what it reads and multiplies in a second was
measured there (``Work.device``), and only what the host does goes by the host's rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log10

from spgls.matrix import FACTORISED, Work
from spgls.reduction.data import basis_bytes, takes_basis

__all__ = [
    "Cost",
    "FreeCost",
    "decomposition_seconds",
    "free_cost",
    "krylov_cost",
    "krylov_pass",
    "spectral_cost",
]

#: Bytes a second that one core reads.
_READ = 15e9
#: Multiplications a second and core in products of matrices, and the order that reaches half.
_MULTIPLY, _HALF = 3.3e10, 400.0
#: Of a decomposition: order cubed a second and core, and seconds for each entry.
_DECOMPOSE, _REFLECT = 4.0e9, 6e-8
#: Seconds for each entry that is brought to BLAS by rows, and by columns.
_BY_ROWS, _BY_COLUMNS = 1.7e-9, 2.4e-8
#: Products a second and core where entries are found by index, and seconds for each row.
_FETCH, _ROW = 3.6e8, 2e-8
#: Seconds a game takes besides, and each further one on the same data, decomposed or projected.
_GAME, _FURTHER_GAME, _FURTHER_PROJECTION = 5e-4, 1e-4, 5e-4
#: Seconds of a pass however small the data.
_PASS = 1.3e-4
#: Bytes a second of sums that travel from one process to another and are added up, and how many
#: of them a core holds that adds up two.
_TRAVEL, _SUMS = 2e8, 3.0
#: Passes that a game takes on data of moderate condition, and more for each decade of games.
_PASSES, _MORE_PASSES = 4.0, 4.0
#: Factorisations of free columns on the way to a basis and its accuracy, and products with them in
#: a projection by least squares.
_BASES, _INNER = 20.0, 60.0
#: Bytes a second between a device and the host, and how much longer than reading its entries a
#: product of sparse data takes there.
_LINK, _SCATTER = 1e10, 5.0
#: Seconds that a device takes for each column of a decomposition.
_DEVICE_STEP = 1e-5
#: Growth of speed with the number of cores: of memory, and of everything else.
_MEMORY_GROWTH, _GROWTH = 0.7, 0.9


@dataclass(frozen=True)
class Cost:
    """Predicted seconds, and bytes of memory beyond the data.

    ``there`` is what each core takes where the data is, if that is not this process.
    """

    seconds: float
    memory: float
    there: float = 0.0

    def fits(self, free: float, work: Work) -> bool:
        """Whether there is so much memory: free in this process, and where the data is."""
        return self.memory <= free and self.there <= work.room


def spectral_cost(work: Work, games: int, threads: int) -> Cost:
    """One reduction on the smaller side of the data, then all games on it."""
    m, n = work.rows, work.columns
    side, cores = min(m, n), float((work.threads or threads) ** _GROWTH)
    square, bring = (work.row_square, _BY_COLUMNS) if m < n else (work.square, _BY_ROWS)
    rate = _MULTIPLY * cores * side / (side + _HALF) if side else 1.0
    free = free_cost(work, threads)
    extra, fixed = 0.0, 0.0
    if work.free and m < n:
        extra, fixed = free.setup + n * free.each, free.memory
    elif work.free:
        # All columns are squared, and the free ones are decomposed to be eliminated.
        square, everything = work.moments, float(n + work.free)
        extra = 2.0 * work.free**3 / (_DECOMPOSE * cores)
        fixed = 8.0 * 4.0 * (everything**2 - side**2)
    reduce = extra + square / 2 / rate + bring * work.entries / cores
    if work.device is not None and m >= n:
        # Squared where it is; only the squares travel.
        reduce = extra + square / work.device.multiply + 2 * work.bytes / work.device.read
        reduce += 8.0 * side**2 / _LINK
    elif work.device is not None:
        reduce += 8.0 * m * n / _LINK
    decompose = decomposition_seconds(side, threads)
    if work.device is not None and n <= m:
        decompose = min(decompose, _DEVICE_STEP * side + 4 * side**3 / work.device.multiply)
    small = _GAME + _FURTHER_GAME * (games - 1)
    # The square, its vectors and room to find them; rows are squared in pieces of columns.
    squares = 4.9 if m < n else 4.0
    memory = 8.0 * (squares * side**2 + (games + 4) * n + 3 * m) + 4.5e6 + fixed
    # Rows that have to come first are read for the sums, and for the losses.
    sums = 8.0 * float(n + work.free) ** 2 if work.parts and m >= n else 0.0
    wait = 2 * work.wait + work.parts * sums / _TRAVEL
    return Cost(reduce + wait + decompose + small, memory, _SUMS * sums)


def decomposition_seconds(side: int, threads: int) -> float:
    """Time of one decomposition of a square matrix."""
    return side**3 / (_DECOMPOSE * float(threads**_GROWTH)) + _REFLECT * side**2


@dataclass(frozen=True)
class FreeCost:
    """What projecting free columns away takes: seconds to begin with and for each column."""

    setup: float
    each: float
    memory: float


def free_cost(work: Work, threads: int) -> FreeCost:
    """By a basis of few columns, or by least squares."""
    m, f, cores = work.rows, work.free, float(threads**_GROWTH)
    if not f:
        return FreeCost(0.0, 0.0, 0.0)
    if takes_basis(work):
        return FreeCost(_BASES * m * f**2 / _MULTIPLY, 32.0 * m * f / _READ, basis_bytes(m, f))
    proof, memory = 0.0, 8.0 * (12 * f + 6 * m)
    if f <= FACTORISED:
        proof, memory = f**3 / 3 / (_MULTIPLY * cores), memory + 12.0 * f**2
    share = f / (f + work.columns)
    return FreeCost(proof, _INNER * share * _read(work, threads), memory)


def _read(work: Work, threads: int) -> float:
    """Seconds of one product with the data alone."""
    threads = work.threads or threads
    cores = float(threads**_GROWTH)
    if work.device is not None:
        scatter = _SCATTER if work.by_index else 1.0
        return 1.1 * scatter * work.bytes / work.device.read + work.device.answer
    if work.by_index:
        return max(work.entries / (_FETCH * cores), work.wait)
    read = 1.2 * work.bytes / (_READ * float(threads**_MEMORY_GROWTH))
    return max(read + _ROW * work.rows / cores, work.wait)


def krylov_pass(work: Work, threads: int) -> float:
    """Seconds of one product, with two columns unless entries are found by index."""
    return _read(work, threads) + free_cost(work, threads).each


def krylov_cost(work: Work, games: int, threads: int) -> Cost:
    """As many passes as data of moderate condition needs."""
    passes = _PASSES + _MORE_PASSES * log10(games)
    # Two columns at once, for several games, are nearly free only where rows are read.
    width = 1.6 if games > 1 and work.by_index else 1.0
    columns = 2 * passes if games > 1 else passes
    orthogonalise = 8.0 * work.columns * columns**2 / _READ
    small = _PASS * passes + _GAME + _FURTHER_PROJECTION * (games - 1)
    memory = 8.0 * work.columns * (2 * columns + 8 + games) + 8.0 * 6 * work.rows + 1e6
    # Labels, goals and the predictor found are projected too.
    free = free_cost(work, threads)
    seconds = passes * width * krylov_pass(work, threads) + free.setup + 3 * free.each
    return Cost(seconds + orthogonalise + small, memory + free.memory)
