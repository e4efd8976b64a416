"""Threads that advance environments side by side.

Kernels run without the interpreter's lock, and environments share nothing that a step changes. To wake a
thread takes about as long as fifty short steps: there is one waking per step of the batch, and the
environments are handed out in blocks to the threads that are awake.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from schedgym.core.arrays import Bytes

#: parts of the environments, and in how many blocks per thread they are handed out: the last ones are small,
#: so that all are done at about the same time; each block costs some microseconds
PARTS = ((0.6, 1.0), (0.3, 1.0), (0.1, 0.5))

Advance = Callable[[Bytes, int], int]


class Workers:
    """``threads`` threads, the calling one among them, for ``num_envs`` environments; see :meth:`run`."""

    def __init__(self, num_envs: int, threads: int) -> None:
        self.threads = threads
        shares = [0.0]
        for part, per_thread in PARTS:
            blocks = max(round(threads * per_thread), 1)
            shares += [part / blocks] * blocks
        self.bounds = sorted({round(num_envs * share) for share in np.cumsum(shares).tolist()})
        self.commands = np.zeros((len(self.bounds) - 1, num_envs), dtype=np.int8)
        self.pool: ThreadPoolExecutor | None = None
        self.process = -1

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"pool": None, "process": -1}

    def _executor(self) -> ThreadPoolExecutor:
        """The threads of this process: they do not outlive a fork."""
        if self.pool is None or self.process != os.getpid():
            self.pool, self.process = ThreadPoolExecutor(self.threads - 1, "schedgym"), os.getpid()
        return self.pool

    def run(
        self,
        advance: Advance,
        command: Bytes,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> int:
        """Call ``advance`` for every block of environments.

        What it raises is raised here, when no thread is at work any more.

        Args:
            advance: called with a command [num_envs] and the thread's number from 0; it must leave alone the
                environments whose command is 0.
            command: for all environments.
            meanwhile: called in this thread while the others have begun; must not touch what they do.

        Returns:
            the sum of what ``advance`` returned, or its least number if that is negative.
        """
        blocks = deque(range(len(self.commands)))
        counts: list[int] = []

        def share(thread: int) -> None:
            """Advance blocks as long as there are any."""
            while True:
                try:
                    block = blocks.popleft()
                except IndexError:  # none is left
                    return
                own, bounds = self.commands[block], slice(self.bounds[block], self.bounds[block + 1])
                own[bounds] = command[bounds]
                try:
                    counts.append(advance(own, thread))
                except BaseException:
                    blocks.clear()
                    raise

        executor = self._executor()
        others = [executor.submit(share, thread) for thread in range(1, self.threads)]
        try:
            meanwhile()
            share(0)
            wait(others)
        except BaseException:  # also an interrupt: no thread may be at work when this returns
            blocks.clear()
            wait(others)
            raise
        for other in others:
            other.result()
        return min(counts) if min(counts) < 0 else sum(counts)
