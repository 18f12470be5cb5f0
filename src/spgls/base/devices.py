"""Arrays of other libraries, and the two ways between a device's memory and ours.

Nothing else of the package moves numbers to or from a device but :meth:`Place.put` and
:meth:`Place.get`, and compiled products (:mod:`spgls.matrix.device`), which move vectors alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgls.base.cached import cached_property

__all__ = ["Place", "check_one_place", "is_foreign", "on_device", "on_host", "place_of"]

_COMPAT = "arrays of other libraries need the package array-api-compat: pip install 'spgls[gpu]'"


@dataclass(frozen=True)
class Place:
    """Where arrays of some library live.

    Attributes
    ----------
    library : str
        Name of the library.
    xp : module
        Its functions, by the names of the array API standard.
    device : object
        The device, as the library knows it.
    """

    library: str
    xp: Any
    device: Any

    @cached_property
    def _name(self) -> str:
        return f"{self.library} on {self.device}"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Place) and self._name == other._name)

    def __hash__(self) -> int:
        return hash(self._name)

    def __str__(self) -> str:
        return self._name

    def put(self, values: NDArray[Any]) -> Any:
        """A copy of a NumPy array on the device; what is there already, as it is."""
        if hasattr(values, "there"):
            return values.there(self)
        own = np.ascontiguousarray(values)
        # Libraries may go on using the memory they are given, if they can.
        if self.library != "torch" or "cpu" in str(self.device):
            own = own.copy() if own is values or own.base is not None else own
        with self.memory():
            return self.xp.asarray(own, device=self.device)

    def get(self, array: Any) -> NDArray[Any]:
        """A NumPy array of the same numbers."""
        if self.library == "torch":
            return np.asarray(array.detach().cpu().numpy())
        if self.library == "cupy":
            return np.asarray(array.get())
        if self.library == "array_api_strict":
            return np.array(array.to_device(self.xp.Device("CPU_DEVICE")))
        return np.array(array)

    @contextmanager
    def memory(self) -> Iterator[None]:
        """Say what to do where the device's memory is too small for something."""
        try:
            yield
        except Exception as error:
            full = "out of memory" in str(error).lower() or "RESOURCE_EXHAUSTED" in str(error)
            if not (full or isinstance(error, MemoryError)):
                raise
            raise MemoryError(
                f"the memory of the device {self.device} is too small beside X: {error}. Free "
                "arrays that are not needed, pass float32 data, or solve with solver='krylov', "
                "which needs a few vectors only."
            ) from None

    def stream(self) -> int:
        """Address of the queue of work that the library uses now."""
        if self.library == "torch":
            own = _raw_stream()
            if own is not None and self.device.index is not None:
                return int(own(self.device.index))
            return int(self.xp.cuda.current_stream(self.device).cuda_stream)
        if self.library == "cupy":
            return int(self.xp.cuda.get_current_stream().ptr)
        return 0


def is_foreign(value: Any) -> bool:
    """Whether something is an array, dense or sparse, of a library other than NumPy and SciPy."""
    if isinstance(value, np.ndarray | np.generic):
        return False
    if _root(value) in ("torch", "cupy", "cupyx"):
        return hasattr(value, "shape")
    return hasattr(type(value), "__array_namespace__")


def on_device(value: Any) -> bool:
    """Whether something is an array in memory that NumPy cannot see."""
    if type(value) is np.ndarray:
        return False
    return is_foreign(value) and not _is_host(_device_of(value))


def place_of(value: Any) -> Place:
    """Where an array of another library lives."""
    root = _root(value)
    if root == "cupyx":
        # Sparse matrices have no functions of the standard; their parts do.
        value, root = value.data, "cupy"
    library = "jax" if root in ("jax", "jaxlib") else root
    if root == "torch":
        return _torch_place(value.device)
    compat = _compat()
    return Place(library, compat.array_namespace(value), compat.device(value))


def _root(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _device_of(value: Any) -> Any:
    """The device, without any package but the library itself."""
    device = getattr(value.data if _root(value) == "cupyx" else value, "device", "cpu")
    return device() if callable(device) else device


def _is_host(device: Any) -> bool:
    return "cpu" in str(device).lower()


def on_host(value: Any) -> Any:
    """The same in memory that NumPy can see; anything but an array of a device as it is."""
    return place_of(value).get(value) if on_device(value) else value


def check_one_place(X: Any, **others: Any) -> None:
    """Refuse vectors on another device than the data's; those in the host's memory are moved."""
    home = place_of(X) if on_device(X) else None
    for name, value in others.items():
        if value is None or not on_device(value):
            continue
        place = place_of(value)
        if place != home:
            where = "in the host's memory" if home is None else f"with {home}"
            raise ValueError(
                f"{name} must be on the device of X, or in the host's memory; got {name} with "
                f"{place}, and X {where}. Move one of them first."
            )


@cache
def _compat() -> Any:
    try:
        import array_api_compat
    except ImportError:
        raise ImportError(_COMPAT) from None
    return array_api_compat


@cache
def _torch_place(device: Any) -> Place:
    try:
        import array_api_compat.torch as xp
    except ImportError:
        raise ImportError(_COMPAT) from None
    return Place("torch", xp, device)


@cache
def _raw_stream() -> Callable[[int], int] | None:
    """PyTorch's own short way to a stream, where this version has it; the other makes objects."""
    core = import_module("torch")._C
    own: Callable[[int], int] | None = getattr(core, "_cuda_getCurrentRawStream", None)
    return own
