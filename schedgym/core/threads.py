"""Threads that advance environments side by side.

Kernels run without the interpreter's lock, and environments share nothing that a step changes. To wake a
thread takes about as long as fifty short steps: there is one waking per step of the batch, the environments
are handed out in blocks to the threads that are awake, and a thread that is done early waits awake.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import pure_kernel

__all__ = ["Workers"]

#: parts of the environments, and in how many blocks per thread they are handed out: the last ones are small,
#: so that all are done at about the same time; each block costs some microseconds
PARTS = ((0.6, 1.0), (0.3, 1.0), (0.1, 0.5))
#: turns of :func:`idle`, some microseconds, and how often a thread takes them before it sleeps
TURNS, PATIENCE, SLEEP = 2000, 100, 1e-4

Advance = Callable[[npt.NDArray[np.int8], int], int]


@pure_kernel
def idle(turns: int) -> float:
    """Spend a short time without holding the interpreter's lock."""
    x = 1.0
    for _ in range(turns):
        x = 0.5 * x + 1.0
    return x


class _Work:
    """The blocks of one step, and their results."""

    def __init__(self, workers: Workers, advance: Advance, command: npt.NDArray[np.int8]) -> None:
        self.bounds, self.commands = workers.bounds, workers.commands
        self.advance, self.command = advance, command
        self.todo = deque(range(len(self.commands)))
        self.counts: list[int | None] = [None] * len(self.commands)
        self.gone = [False] * workers.threads  # threads that will do no more of it
        self.failure: BaseException | None = None

    def share(self, thread: int) -> None:
        """Advance blocks as long as there are any."""
        try:
            while self.todo:
                try:
                    block = self.todo.popleft()
                except IndexError:  # another thread was faster
                    break
                first, last = self.bounds[block], self.bounds[block + 1]
                own = self.commands[block]
                own[first:last] = self.command[first:last]
                self.counts[block] = int(self.advance(own, thread))
        except BaseException as error:
            self.todo.clear()
            self.failure = error
        self.gone[thread] = True

    def is_done(self) -> bool:
        """Return True if all blocks are done, or after a failure, if no thread is at work any more."""
        return None not in self.counts if self.failure is None else all(self.gone)


def _serve(thread: int, queue: SimpleQueue[_Work | None]) -> None:
    """Run a thread. Between steps it refers to its queue alone, so that its :class:`Workers` can be freed."""
    while True:
        work = queue.get()
        if work is None:
            return
        work.share(thread)
        del work


def _dismiss(queues: list[SimpleQueue[_Work | None]]) -> None:
    for queue in queues:
        queue.put(None)


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
        self.queues: list[SimpleQueue[_Work | None]] = []
        self.process = -1

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"queues": [], "process": -1}

    def _start(self) -> None:
        """Start the threads, in this process: they do not outlive a fork."""
        self.queues, self.process = [SimpleQueue() for _ in range(self.threads - 1)], os.getpid()
        weakref.finalize(self, _dismiss, self.queues)
        for k, queue in enumerate(self.queues, start=1):
            threading.Thread(target=_serve, args=(k, queue), name=f"schedgym-{k}", daemon=True).start()

    def run(
        self,
        advance: Advance,
        command: npt.NDArray[np.int8],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> int:
        """Call ``advance`` for every block of environments.

        Its exception, if it raises one, is raised here once no thread is at work any more.

        Args:
            advance: called with a command [num_envs] and the thread's number from 0; it must leave alone the
                environments whose command is 0.
            command: for all environments.
            meanwhile: called in this thread when the others have begun; must not use the arrays they change.

        Returns:
            the sum of the results of ``advance``, or the least of them if that is negative.
        """
        if self.process != os.getpid():
            self._start()
        work = _Work(self, advance, command)
        for queue in self.queues:
            queue.put(work)
        try:
            meanwhile()
            work.share(0)
            turns = 0
            while not work.is_done():
                if turns < PATIENCE:
                    idle(TURNS)
                    turns += 1
                else:
                    time.sleep(SLEEP)
        except BaseException:  # also an interrupt: no thread may be at work when this returns
            work.todo.clear()
            while not all(work.gone[1:]):
                time.sleep(SLEEP)
            raise
        if work.failure is not None:
            raise work.failure
        counts = [count for count in work.counts if count is not None]
        return min(counts) if min(counts) < 0 else sum(counts)
