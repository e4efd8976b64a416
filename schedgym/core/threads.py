"""Threads that advance environments side by side.

Kernels run without the interpreter's lock, and environments share nothing that a step changes. To wake a
thread takes about as long as fifty short steps: there is one waking per step of the batch, the environments
are handed out in blocks to who is awake, and who is done first waits awake.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import pure_kernel

__all__ = ["Crew"]

BLOCKS = 2  # per thread: more share the work better, each costs some microseconds
#: what stands for the counts when a thread has failed
FAILED = -(2**63)
#: turns of :func:`idle`, some microseconds, and how often a thread takes them before it sleeps
TURNS, PATIENCE, SLEEP = 2000, 100, 1e-4


@pure_kernel
def idle(turns: int) -> float:
    """Pass a little time without the interpreter's lock."""
    x = 1.0
    for _ in range(turns):
        x = 0.5 * x + 1.0
    return x


class Crew:
    """``threads`` threads, the calling one among them, for ``num_envs`` environments; see :meth:`run`."""

    def __init__(self, num_envs: int, threads: int) -> None:
        blocks = min(num_envs, BLOCKS * threads)
        self.threads = threads
        self.bounds = [num_envs * k // blocks for k in range(blocks + 1)]
        self.commands = np.zeros((blocks, num_envs), dtype=np.int8)
        self.pool: ThreadPoolExecutor | None = None
        self.process = -1

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"pool": None}

    def run(
        self,
        advance: Callable[[npt.NDArray[np.int8], int], int],
        command: npt.NDArray[np.int8],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> int:
        """Call ``advance`` for every block of environments.

        Args:
            advance: called with a command [num_envs] and the thread's number from 0; it must leave alone the
                environments whose command is 0.
            command: for all environments.
            meanwhile: called in this thread while the others have begun; must not touch what they do.

        Returns:
            the sum of what ``advance`` returned, or its least number if that is negative.
        """
        if self.pool is None or self.process != os.getpid():  # threads do not outlive a fork
            self.pool, self.process = ThreadPoolExecutor(self.threads - 1, "schedgym"), os.getpid()
        todo = deque(range(len(self.commands)))
        counts: list[int | None] = [None] * len(todo)
        others = [
            self.pool.submit(self._work, k, advance, command, todo, counts) for k in range(1, self.threads)
        ]
        try:
            meanwhile()
            self._work(0, advance, command, todo, counts)
        except BaseException:
            todo.clear()
            wait(others)
            raise
        turns = 0
        while None in counts:
            if turns < PATIENCE:
                idle(TURNS)
                turns += 1
            else:
                time.sleep(SLEEP)
        found = [count for count in counts if count is not None]
        if FAILED in found:
            for other in others:
                other.result()  # raises what was raised there
        return min(found) if min(found) < 0 else sum(found)

    def _work(
        self,
        k: int,
        advance: Callable[[npt.NDArray[np.int8], int], int],
        command: npt.NDArray[np.int8],
        todo: deque[int],
        counts: list[int | None],
    ) -> None:
        """What thread ``k`` does in :meth:`run`: blocks, as long as there are any."""
        try:
            while todo:
                try:
                    block = todo.popleft()
                except IndexError:  # another thread was faster
                    break
                first, last = self.bounds[block], self.bounds[block + 1]
                own = self.commands[block]
                own[first:last] = command[first:last]
                counts[block] = int(advance(own, k))
        except BaseException:
            todo.clear()
            counts[:] = [FAILED] * len(counts)
            raise
