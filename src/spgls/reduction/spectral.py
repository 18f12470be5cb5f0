"""The exact reduction: which side of the data, and how carefully."""

from __future__ import annotations

from typing import Literal

from spgls.data import GameData
from spgls.reduction.columns import reduce_by_gram, reduce_by_qr
from spgls.reduction.reduction import Reduction
from spgls.reduction.rows import reduce_rows_by_gram, reduce_rows_by_qr

__all__ = ["Engine", "reduce_spectral"]

Engine = Literal["gram", "qr"]

#: Up to so many columns a triangular factor of their number is always affordable.
_MODERATE = 256


def reduce_spectral(data: GameData, engine: Engine) -> Reduction | None:
    """Reduce to singular coordinates on the smaller side of the data.

    Parameters
    ----------
    data : GameData
        The data of the game.
    engine : {"gram", "qr"}
        ``"gram"`` squares the data: the fastest way, good to about eight digits of conditioning.
        ``"qr"`` does not: about three times the work, good to what the data resolves.

    Returns
    -------
    Reduction or None
        None where squaring the data leaves a rank undecided.
    """
    # Every game on the same data starts here; what is found once is kept with the data.
    if engine not in data.reductions:
        data.reductions[engine] = _reduce(data, engine)
    kept: Reduction | None = data.reductions[engine]
    return kept


def _reduce(data: GameData, engine: Engine) -> Reduction | None:
    m, n = data.matrix.shape[0], len(data.changeable)
    if engine == "gram":
        return reduce_rows_by_gram(data) if m < n else reduce_by_gram(data)
    # The column side alone respects columns of very different scale: worth it while affordable.
    return reduce_rows_by_qr(data) if n > max(4 * m, _MODERATE) else reduce_by_qr(data)
