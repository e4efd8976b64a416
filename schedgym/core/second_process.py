"""The kernels of a first step, compiled in two processes where a core is to spare.

numba compiles on one core, as it holds a lock meanwhile. So a second process compiles some of the kernels
into the cache on disk, where this process finds them. It is waited for before anything else happens, and it
ends when this process does, whatever the reason.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schedgym.core.compilation import COMPILATION
from schedgym.core.jit import KERNELS

__all__ = ["compile_calls", "compile_received"]

TOO_LONG = 60.0  # s by which the second process may take longer than this one, and as long again

#: what the second process runs: modules come from where this process has them from
CODE = "import sys; sys.path[:] = {}; from {} import compile_received; compile_received()"

_alone = threading.Lock()  # one second process at a time, however many threads reset environments


def compile_calls(calls: Sequence[tuple[Any, tuple[Any, ...]]]) -> None:
    """Compile kernels for arguments: this process from the last one on, a second one from the first one on.

    Nothing is done where fewer than two are missing in the cache, or no second process may help; and what the
    second process fails to compile is compiled here, when it is called.

    Args:
        calls: kernels, and the arguments that they will be called with.
    """
    missing = _missing([(kernel, tuple(map(kernel.typeof_pyval, arguments))) for kernel, arguments in calls])
    if len(missing) < 2 or not all(kernel.is_kept for kernel, _ in missing) or not _may_help():
        return
    if not _alone.acquire(blocking=False):
        return
    try:
        _compile_together(missing)
    finally:
        _alone.release()


def _missing(typed: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Those of the kernels, each with the types of its arguments, that are not compiled yet."""
    return [(kernel, types) for kernel, types in typed if not kernel.is_at_hand(types)]


def _may_help() -> bool:
    """Return True if a core is to spare, and this process is not itself one of several that work at once."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    is_worker = (
        multiprocessing.parent_process() is not None
        or "PYTEST_XDIST_WORKER" in os.environ
        or "ray" in sys.modules
    )
    is_python = Path(sys.executable or "").name.startswith("python")  # and not a program that embeds it
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0  # processes, over the last minute
    return cores > 1 and busy < cores and not is_worker and is_python


def _compile_together(missing: list[tuple[Any, Any]]) -> None:
    """Compile all kernels, the last one here and the first one in a second process; end both."""
    named = [(kernel.py_func.__module__, kernel.line, types) for kernel, types in missing[:-1]]
    code = CODE.format([str(path) for path in sys.path], __name__)
    quiet, began = subprocess.DEVNULL, time.perf_counter()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=quiet, stderr=quiet
        )
    except OSError:  # no processes can be started
        return
    try:
        assert process.stdin is not None
        process.stdin.write(pickle.dumps(named))
        process.stdin.flush()  # and it stays open: the second process ends when it is closed
        while len(missing) > 1:
            *missing, (kernel, types) = missing
            kernel.compile(types)
            missing = _missing(missing)  # the second process is at the first of these
        if missing:
            with COMPILATION.of(named[0][0]):
                process.wait(TOO_LONG + time.perf_counter() - began)
    except (BrokenPipeError, subprocess.TimeoutExpired):
        pass
    finally:
        process.kill()
        process.communicate()


def compile_received() -> None:
    """In the second process: compile what is missing of the kernels that stdin names, until it is closed."""
    given = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    for module, line, types in given:
        importlib.import_module(module)
        if not KERNELS[module, line].is_at_hand(types):
            KERNELS[module, line].compile(types)


def _end_with_stdin() -> None:
    """End this process when its stdin is closed."""
    while os.read(0, 1):  # not by sys.stdin, whose lock Python needs when it ends
        pass
    os._exit(1)
