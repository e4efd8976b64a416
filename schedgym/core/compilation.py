"""The time of compilation: it is not counted as time of a policy, and is reported if it is long."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

PATIENCE = 1.0  # s of compiling in silence


class Compilation:
    """The compilation of kernels in this process.

    Attributes:
        seconds: time in which kernels were loaded or compiled [s].
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._told: set[str] = set()

    @contextlib.contextmanager
    def of(self, module: str) -> Iterator[None]:
        """Count the time of a block that compiles a kernel; if it is long, a terminal is told."""
        notice = threading.Timer(PATIENCE, self._tell, (module,))
        notice.daemon = True
        if sys.stderr.isatty():
            notice.start()
        began = time.perf_counter()
        try:
            yield
        finally:
            notice.cancel()
            self.seconds += time.perf_counter() - began

    def _tell(self, module: str) -> None:
        """Say once for each part of schedgym that it is compiled."""
        part = module.removeprefix("schedgym.").removeprefix("problems.").partition(".")[0]
        if part not in self._told:
            self._told.add(part)
            print(f"compiling {part} (once, some 10 s; schedgym warmup compiles all)", file=sys.stderr)


COMPILATION = Compilation()
