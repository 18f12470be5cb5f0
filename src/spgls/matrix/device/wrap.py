"""From an array on a device to a matrix of the protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgls.base.devices import Place, place_of
from spgls.matrix.device.device_dense import DeviceDense
from spgls.matrix.device.device_sparse import Compressed, DeviceSparse
from spgls.matrix.protocol import Matrix

__all__ = ["device_matrix"]

_TYPES = ("float64", "float32")


def device_matrix(X: Any, name: str) -> Matrix:
    """Wrap data on a device; nothing is copied.

    Parameters
    ----------
    X : array on a device, or sparse matrix of PyTorch or CuPy by rows
        The data, float64 or float32.
    name : str
        How errors call it.
    """
    place = place_of(X)
    _check_type(str(X.dtype).rpartition(".")[2], place, name)
    if place.library == "torch" and str(X.layout) != "torch.strided":
        if str(X.layout) != "torch.sparse_csr":
            raise TypeError(
                f"{name} must be dense or in CSR format on a device; got {X.layout}. Pass "
                f"{name}.to_sparse_csr()."
            )
        return DeviceSparse(Compressed.of_torch(X), place)
    if type(X).__module__.startswith("cupyx"):
        if X.format != "csr":
            raise TypeError(
                f"{name} must be dense or in CSR format on a device; got {X.format}. Pass "
                f"{name}.tocsr()."
            )
        return DeviceSparse(Compressed.of_cupy(X), place)
    values = X.detach() if place.library == "torch" else X
    return DeviceDense(values, place)


def _check_type(given: str, place: Place, name: str) -> None:
    if given not in _TYPES:
        raise TypeError(
            f"{name} must hold float64 or float32 numbers on a device; got {given} with {place}. "
            "Convert it there first: nothing so large is copied unasked."
        )
    if not _has_double(place):
        advice = (
            " Call jax.config.update('jax_enable_x64', True)." if place.library == "jax" else ""
        )
        raise TypeError(
            f"{name} is with {place}, which has no double precision now; sums over the data need "
            f"it, whatever the data's own type.{advice}"
        )


#: Where double precision was found; what lacks it may be told to have it.
_DOUBLE: set[Place] = set()


def _has_double(place: Place) -> bool:
    if place not in _DOUBLE:
        try:
            there = "64" in str(place.put(np.zeros(1)).dtype)
        except (TypeError, ValueError):
            there = False
        if not there:
            return False
        _DOUBLE.add(place)
    return True
