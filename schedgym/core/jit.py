"""The one place where schedgym touches numba's decorators.

``kernel`` compiles an entry point: called from Python, cached on disk. ``helper`` compiles what kernels
call: inlined, and without reference counting (four times faster, because arrays in named tuples are
otherwise counted at every call); a helper must not allocate.

numba keys a cached kernel on its own source file only, and would keep serving a kernel whose helper in
another file has changed. Here the key covers every Python file of the folders that kernels are made of.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

__all__ = ["helper", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])
CORE = Path(__file__).resolve().parent


@functools.cache
def source_stamp(folder: Path) -> tuple[tuple[str, float, int], ...]:
    """Names, times and sizes of the sources in ``folder`` and in ``schedgym/core``."""
    files = sorted({*CORE.glob("*.py"), *folder.glob("*.py")})
    return tuple((f.name, (s := f.stat()).st_mtime, s.st_size) for f in files)


def kernel(function: F) -> F:
    """Compile ``function`` at its first call and cache the machine code on disk."""
    dispatcher: Any = numba.njit(cache=True, error_model="numpy")(function)
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None:  # none with NUMBA_DISABLE_JIT=1
        folder = Path(function.__code__.co_filename).resolve().parent
        cache_file._source_stamp = source_stamp(folder)
    return dispatcher  # type: ignore[no-any-return]


def helper(function: F) -> F:
    """Compile ``function`` into the kernels that call it."""
    return numba.njit(_nrt=False, forceinline=True, error_model="numpy")(function)  # type: ignore[no-any-return]
