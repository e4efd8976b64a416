"""The one place where schedgym touches numba's decorators.

``kernel`` compiles an entry point: called from Python, cached on disk. ``helper`` compiles what kernels
call: inlined, and without reference counting (four times faster, because arrays in named tuples are
otherwise counted at every call); a helper must not allocate.

numba keys a cached kernel on its own source file only, and would keep serving a kernel whose helper in
another file has changed. Here the key covers every file that kernels are made of: ``schedgym/core``,
``schedgym/problems``, and the kernel's own folder.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

__all__ = ["helper", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])
PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def source_stamp(folder: Path) -> tuple[tuple[str, float, int], ...]:
    """Names, times and sizes of the sources that a kernel in ``folder`` may be made of."""
    shared = (*(PACKAGE / "core").glob("*.py"), *(PACKAGE / "problems").rglob("*.py"))
    files = sorted({*shared, *folder.glob("*.py")})
    return tuple((str(f), (s := f.stat()).st_mtime, s.st_size) for f in files)


def kernel(function: F) -> F:
    """Compile ``function`` at its first call and cache the machine code on disk."""
    dispatcher: Any = numba.njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")(function)
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None:  # none with NUMBA_DISABLE_JIT=1
        folder = Path(function.__code__.co_filename).resolve().parent
        cache_file._source_stamp = source_stamp(folder)
    return dispatcher  # type: ignore[no-any-return]


def helper(function: F) -> F:
    """Compile ``function`` into the kernels that call it."""
    # without the wrappers that nobody calls a kernel compiles in two thirds of the time
    return numba.njit(  # type: ignore[no-any-return]
        _nrt=False,
        forceinline=True,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        error_model="numpy",
    )(function)
