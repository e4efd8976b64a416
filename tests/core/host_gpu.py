"""A stand-in for ``numba.cuda`` whose GPU is the CPU: kernels are compiled, and each lane runs in its turn.

numba's own simulator runs kernels uncompiled. Here tables, addresses and work space are those that a GPU
gets, and so are the compiled functions that read them; what is missing is NVIDIA's compiler and driver.
"""

from __future__ import annotations

import types as python_types
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

#: the number of the lane that runs, and of all lanes
PLACE = np.zeros(2, dtype=np.int64)


def _reader(element: int) -> Any:
    """A compiled function that reads PLACE where it is: numba would freeze the array's values."""
    address = PLACE.ctypes.data + 8 * element

    @intrinsic
    def read(context: Any, dimensions: Any) -> Any:
        def code(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = target.get_constant(types.intp, address)
            return builder.load(builder.inttoptr(pointer, cgutils.intp_t.as_pointer()))

        return types.intp(dimensions), code

    return numba.njit(lambda dimensions: read(dimensions))


@numba.njit
def least(array: Any, index: int, value: int) -> None:
    array[index] = min(array[index], value)


@numba.njit
def largest(array: Any, index: int, value: int) -> None:
    array[index] = max(array[index], value)


@numba.njit
def add(array: Any, index: int, value: int) -> None:
    array[index] += value


def _device() -> Any:
    """What kernels know as the module ``cuda``."""
    device: Any = python_types.ModuleType("device")
    device.atomic = python_types.ModuleType("atomic")
    device.grid, device.gridsize = _reader(0), _reader(1)
    device.atomic.min, device.atomic.max, device.atomic.add = least, largest, add
    return device


DEVICE = _device()


class HostArray(np.ndarray):
    """An array of the stand-in's memory."""

    __cuda_ndarray__ = True  # by which numba knows an array in a GPU's memory

    def copy_to_host(self) -> np.ndarray:
        return np.array(self, subok=False, copy=True)

    def copy_to_device(self, values: Any) -> None:
        assert self.flags.c_contiguous and np.asarray(values).flags.c_contiguous
        assert self.shape == np.shape(values) and self.dtype == values.dtype
        self[...] = values

    def is_c_contiguous(self) -> bool:
        return bool(self.flags.c_contiguous)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.__array_interface__, "version": 3}


class Elsewhere:
    """An array of another library, which tells where its memory is, and nothing else."""

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__cuda_array_interface__ = self.__array_interface__ = interface
        self.owner = owner


class _Launcher:
    """A kernel, compiled for the CPU."""

    def __init__(self, function: Any) -> None:
        scope = {**function.__globals__, "cuda": DEVICE}
        own = python_types.FunctionType(function.__code__, scope, None, None, function.__closure__)
        self.compiled = numba.njit(error_model="numpy", _nrt=False)(own)

    def __getitem__(self, size: tuple[int, int]) -> Any:
        def launch(*arguments: Any) -> None:
            lanes = size[0] * size[1]
            for lane in range(lanes):
                PLACE[:] = lane, lanes
                self.compiled(*map(_plain, arguments))

        return launch


def _plain(argument: Any) -> Any:
    """An argument of a kernel with numpy's own class of arrays."""
    if isinstance(argument, tuple):
        return type(argument)(*map(_plain, argument))
    return argument.view(np.ndarray) if isinstance(argument, HostArray) else argument


class HostGPU:
    """The functions of ``numba.cuda`` that schedgym calls."""

    def __init__(self) -> None:
        self.memory_manager = python_types.SimpleNamespace(deallocations=[])

    def is_available(self) -> bool:
        return True

    def current_context(self) -> HostGPU:
        return self

    def get_memory_info(self) -> tuple[int, int]:
        return 2**40, 2**40  # bytes: more than any test takes

    def device_array(self, shape: Any, dtype: Any) -> HostArray:
        made = np.empty(shape, dtype)
        made.view(np.uint8)[...] = 0xA5  # a GPU's memory is not cleared
        return made.view(HostArray)

    def to_device(self, values: np.ndarray) -> HostArray:
        made = self.device_array(values.shape, values.dtype)
        made[...] = values
        return made

    def as_cuda_array(self, array: Any) -> HostArray:
        return self.from_cuda_array_interface(array.__cuda_array_interface__, array)

    def from_cuda_array_interface(self, interface: dict[str, Any], owner: Any) -> HostArray:
        return np.asarray(Elsewhere(interface, owner)).view(HostArray)

    def jit(self, function: Any) -> _Launcher:
        return _Launcher(function)
