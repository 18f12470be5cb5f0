"""NVIDIA's driver and compiler, called as they are: whichever array library holds the data.

Array libraries load both themselves, so nothing has to be installed for this. Everything here
works on addresses; who owns the memory is for the callers to know.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from ctypes import byref, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_ulonglong, c_void_p
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from spgls.base.types import Array

__all__ = ["Cuda", "Kernel", "Room", "cuda_of"]

_MULTIPROCESSORS, _SHARED_MEMORY, _MAJOR, _MINOR = 16, 97, 75, 76
_DYNAMIC_SHARED = 8
#: Milestones of work that goes on, and how events are made that nobody reads a time from.
_EVENTS, _NO_TIMING = 4, 2
_Pointer = c_void_p
#: What the driver's functions take, where ctypes would take numbers for shorter ones.
_TYPES: dict[str, list[Any]] = {
    "cuLaunchKernel": [_Pointer, *[c_uint] * 7, _Pointer, _Pointer, _Pointer],
    "cuMemHostAlloc": [_Pointer, c_size_t, c_uint],
    "cuMemFreeHost": [_Pointer],
    "cuMemAlloc_v2": [_Pointer, c_size_t],
    "cuMemFree_v2": [_Pointer],
    "cuMemsetD8Async": [_Pointer, c_ubyte, c_size_t, _Pointer],
    "cuMemcpyHtoDAsync_v2": [_Pointer, _Pointer, c_size_t, _Pointer],
    "cuMemcpyDtoHAsync_v2": [_Pointer, _Pointer, c_size_t, _Pointer],
    "cuStreamSynchronize": [_Pointer],
    "cuEventCreate": [_Pointer, c_uint],
    "cuEventRecord": [_Pointer, _Pointer],
    "cuEventSynchronize": [_Pointer],
    "cuCtxSetCurrent": [_Pointer],
    "cuModuleLoadData": [_Pointer, c_char_p],
    "cuModuleGetFunction": [_Pointer, _Pointer, c_char_p],
    "cuFuncSetAttribute": [_Pointer, c_int, c_int],
    "cuStreamCreate": [_Pointer, c_uint],
    "cuStreamBeginCapture_v2": [_Pointer, c_int],
    "cuStreamEndCapture": [_Pointer, _Pointer],
    "cuGraphInstantiateWithFlags": [_Pointer, _Pointer, c_ulonglong],
    "cuGraphLaunch": [_Pointer, _Pointer],
    "cuGraphDestroy": [_Pointer],
    "cuGraphExecDestroy": [_Pointer],
}
#: A queue that waits for no other; other threads may go on while one is recorded; graphs kept.
_NON_BLOCKING, _RELAXED, _GRAPHS = 1, 2, 24


class Kernel:
    """A compiled function.

    Parameters
    ----------
    cuda : Cuda
        The device it was compiled for.
    handle : c_void_p
        What the driver knows it by.
    """

    def __init__(self, cuda: Cuda, handle: c_void_p) -> None:
        self._cuda, self._handle = cuda, handle
        self._launch = cuda.library.cuLaunchKernel

    def __call__(
        self,
        grid: tuple[int, int],
        block: tuple[int, int],
        stream: int,
        *told: Any,
        shared: int = 0,
    ) -> None:
        """Start it, on arguments that are numbers of ctypes."""
        pointers = (c_void_p * len(told))(*map(ctypes.addressof, told))
        code = self._launch(self._handle, *grid, 1, *block, 1, shared, stream, pointers, None)
        if code:
            self._cuda.refuse("cuLaunchKernel", code)

    def allow_shared(self, size: int) -> None:
        """Let it have so many bytes of shared memory."""
        self._cuda.call("cuFuncSetAttribute", self._handle, _DYNAMIC_SHARED, size)


class _Room:
    """Memory that grows and is used again, in numbers of double precision.

    Taking memory from the driver takes as long as a product.
    """

    def __init__(self, cuda: Cuda, take: str, give: str, *how: int) -> None:
        self._cuda, self._take, self._give, self._how = cuda, take, give, how
        self.length = 0
        self._place = c_void_p()

    def reserve(self, length: int) -> int:
        """The address of so many numbers; what was there before is lost."""
        if length > self.length:
            if self._place.value:
                self._cuda.call(self._give, self._place)
            self.length, self._place = 0, c_void_p()
            self._cuda.call(self._take, byref(self._place), 8 * length, *self._how)
            self.length = length
        return self._place.value or 0


class Room:
    """Memory on both sides for work that goes on while others use the device, and its milestones.

    Parameters
    ----------
    cuda : Cuda
        The device.
    """

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self._scratch = _Room(cuda, "cuMemAlloc_v2", "cuMemFree_v2")
        self._pinned = _Room(cuda, "cuMemHostAlloc", "cuMemFreeHost", 3)
        self._shown: Array = np.zeros(0)
        self._events = [c_void_p() for _ in range(_EVENTS)]
        for event in self._events:
            cuda.call("cuEventCreate", byref(event), _NO_TIMING)

    def scratch(self, length: int) -> int:
        """Address of so many numbers on the device."""
        return self._scratch.reserve(length)

    def pinned(self, length: int) -> tuple[int, Array]:
        """Host memory that the device reads and writes by itself: its address, and the numbers."""
        address = self._pinned.reserve(length)
        if len(self._shown) < length:
            place = (ctypes.c_double * length).from_address(address)
            self._shown = np.ctypeslib.as_array(place)
        return address, self._shown[:length]

    def mark(self, which: int, stream: int) -> None:
        """Set a milestone behind all that was queued."""
        self._cuda.call("cuEventRecord", self._events[which], stream)

    def wait(self, which: int) -> None:
        """Wait for it."""
        self._cuda.call("cuEventSynchronize", self._events[which])


class Cuda:
    """One device.

    Parameters
    ----------
    number : int
        Which.
    """

    def __init__(self, number: int) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        for name, types in _TYPES.items():
            getattr(self.library, name).argtypes = types
        self._compiler = _compiler()
        self.call("cuInit", 0)
        device, self._context = c_int(), c_void_p()
        self.call("cuDeviceGet", byref(device), number)
        self.call("cuDevicePrimaryCtxRetain", byref(self._context), device)
        self._device = device
        self.multiprocessors = self._attribute(_MULTIPROCESSORS)
        self.shared_memory = self._attribute(_SHARED_MEMORY)
        self.capability = self._attribute(_MAJOR), self._attribute(_MINOR)
        self._compiled: dict[Any, dict[str, Kernel]] = {}
        #: One product at a time uses the memory below.
        self.busy = Lock()
        self._scratch = _Room(self, "cuMemAlloc_v2", "cuMemFree_v2")
        self._pinned = _Room(self, "cuMemHostAlloc", "cuMemFreeHost", 3)
        self._shared: Array = np.zeros(0)
        self._free: list[Room] = []
        self._recorded: dict[Hashable, c_void_p | None] = {}

    def call(self, name: str, *told: Any) -> None:
        """Call the driver, and raise an error that says what it said."""
        code = getattr(self.library, name)(*told)
        if code:
            self.refuse(name, code)

    def refuse(self, name: str, code: int) -> None:
        """Raise what the driver said to a call."""
        text = c_char_p()
        self.library.cuGetErrorString(code, byref(text))
        said = text.value.decode() if text.value else f"error {code}"
        wrong = MemoryError if code == 2 else RuntimeError
        raise wrong(f"the GPU's driver says to {name}: {said}.")

    def enter(self) -> None:
        """Make this device the one that the thread speaks to."""
        self.library.cuCtxSetCurrent(self._context)

    def kernels(self, source: str, names: Iterable[str], **macros: Any) -> dict[str, Kernel]:
        """Compile, once."""
        key = source, tuple(sorted(macros.items()))
        if key not in self._compiled:
            self.enter()
            image = self._compile("".join(f"#define {k} {v}\n" for k, v in macros.items()) + source)
            module = c_void_p()
            self.call("cuModuleLoadData", byref(module), image)
            found = {}
            for name in names:
                handle = c_void_p()
                self.call("cuModuleGetFunction", byref(handle), module, name.encode())
                found[name] = Kernel(self, handle)
            self._compiled[key] = found
        return self._compiled[key]

    def again(self, key: Hashable, stream: int, queue: Callable[[int], None]) -> None:
        """Queue work; from the second time on in one call, by a graph.

        Parameters
        ----------
        key : hashable
            All that the work depends on: addresses, sizes, kernels.
        stream : int
            Where to.
        queue : callable
            Queues the work on a given stream, by calls that may be recorded.
        """
        if key not in self._recorded:
            # The first time compiles kernels too, which is not to be recorded.
            queue(stream)
            self._keep(key)
            return
        graph = self._recorded[key]
        if graph is None:
            graph = self._recorded[key] = self._record(queue)
        self.call("cuGraphLaunch", graph, stream)

    def _keep(self, key: Hashable) -> None:
        while len(self._recorded) >= _GRAPHS:
            oldest = self._recorded.pop(next(iter(self._recorded)))
            if oldest is not None:
                self.call("cuGraphExecDestroy", oldest)
        self._recorded[key] = None

    def _record(self, queue: Callable[[int], None]) -> c_void_p:
        graph, ready, stream = c_void_p(), c_void_p(), self._recorder
        self.call("cuStreamBeginCapture_v2", stream, _RELAXED)
        try:
            queue(stream)
        finally:
            # Also after an error: until then the stream records.
            code = self.library.cuStreamEndCapture(stream, byref(graph))
        if code:
            self.refuse("cuStreamEndCapture", code)
        self.call("cuGraphInstantiateWithFlags", byref(ready), graph, 0)
        self.call("cuGraphDestroy", graph)
        return ready

    @cached_property
    def _recorder(self) -> int:
        """A stream that is used for recording alone."""
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), _NON_BLOCKING)
        return stream.value or 0

    def take_room(self) -> Room:
        """Memory for somebody who uses it alone."""
        try:
            return self._free.pop()
        except IndexError:
            return Room(self)

    def keep_room(self, room: Room) -> None:
        """Take it back; nothing is under way there any more."""
        self._free.append(room)

    def scratch(self, length: int) -> int:
        """Address of so many numbers on the device."""
        return self._scratch.reserve(length)

    def pinned(self, length: int) -> tuple[int, Array]:
        """Host memory that the device reads and writes by itself: its address, and the numbers."""
        address = self._pinned.reserve(length)
        if len(self._shared) != self._pinned.length:
            place = (ctypes.c_double * self._pinned.length).from_address(address)
            self._shared = np.ctypeslib.as_array(place)
        return address, self._shared

    def to_device(self, to: int, source: int, length: int, stream: int) -> None:
        """Copy numbers of pinned memory, without waiting."""
        self.call("cuMemcpyHtoDAsync_v2", to, source, 8 * length, stream)

    def to_host(self, to: int, source: int, length: int, stream: int) -> None:
        """Copy numbers to pinned memory, without waiting."""
        self.call("cuMemcpyDtoHAsync_v2", to, source, 8 * length, stream)

    def clear(self, place: int, length: int, stream: int) -> None:
        """Set numbers to zero, without waiting."""
        self.call("cuMemsetD8Async", place, 0, 8 * length, stream)

    def wait(self, stream: int) -> None:
        """Wait for all that was started."""
        self.call("cuStreamSynchronize", stream)

    def _attribute(self, which: int) -> int:
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), which, self._device)
        return value.value

    def _compile(self, source: str) -> bytes:
        program, size = c_void_p(), c_size_t()
        compiler = self._compiler
        compiler.nvrtcCreateProgram(byref(program), source.encode(), b"spgls.cu", 0, None, None)
        major, minor = self.capability
        options = [
            f"--gpu-architecture=sm_{major}{minor}".encode(),
            b"--std=c++17",
            b"-default-device",
        ]
        told = (c_char_p * len(options))(*options)
        failed = compiler.nvrtcCompileProgram(program, len(options), told)
        if failed:
            compiler.nvrtcGetProgramLogSize(program, byref(size))
            log = ctypes.create_string_buffer(size.value)
            compiler.nvrtcGetProgramLog(program, log)
            raise RuntimeError(f"products could not be compiled: {log.value.decode()[:2000]}")
        compiler.nvrtcGetCUBINSize(program, byref(size))
        image = ctypes.create_string_buffer(size.value)
        compiler.nvrtcGetCUBIN(program, image)
        compiler.nvrtcDestroyProgram(byref(program))
        return image.raw


@cache
def cuda_of(number: int) -> Cuda | None:
    """A device; None where there is none, no compiler for it, or a driver that lacks functions."""
    try:
        return Cuda(number)
    except (OSError, RuntimeError, AttributeError):
        return None


@cache
def _compiler() -> ctypes.CDLL:
    """NVIDIA's run-time compiler, where array libraries bring it along or CUDA is installed."""
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError("NVIDIA's run-time compiler was not found.")


def _candidates() -> Iterator[str]:
    folders = [Path(folder) / "nvidia" for folder in sys.path if folder]
    folders += [Path("/usr/local/cuda/lib64")]
    for folder in folders:
        if folder.is_dir():
            found = (str(path) for path in folder.glob("**/libnvrtc.so.[0-9]*"))
            yield from sorted(found, key=lambda path: (len(path), path), reverse=False)
    yield from ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
