"""Engines: they run units of work, and once more those whose worker died.

An engine calls a function on each unit and yields each result as soon as it is there. The exception of a
unit comes back as text. A unit whose worker dies is tried once more, alone, when all others are done. With a
time limit, the process that waits for the results kills the worker of a unit that exceeds it, whatever that
worker is at; the unit has failed.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from schedgym.errors import InvalidParameter, RunAborted, UnknownName
from schedgym.extras import require

U = TypeVar("U")
R = TypeVar("R")

ENGINES = ("local", "ray")
DIED = "worker died"
LONGEST = 1e6  # s that can be a unit's time limit
LOOK = 0.5  # s between two looks at the time of units that have a limit
START = 30.0  # s after which the time of a unit begins, also when its worker has not started
IDLE = 10.0  # s after which a worker without work ends, also when nobody is left to tell it
SLOW = 2.0  # s before a progress bar shows
HOUR = 3600.0  # s over which it takes the speed: units may last minutes
#: threads of a worker's libraries: as many as there are cores for each
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclasses.dataclass(frozen=True)
class Failure:
    """Stands in the place of the result of a unit that failed.

    Attributes:
        error: the traceback, or a message that its worker died, or that it took too long.
        exception: of the unit; None if there is none, or if it cannot be sent between processes.
    """

    error: str
    exception: BaseException | None = dataclasses.field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        exception = self.exception
        try:
            pickle.loads(pickle.dumps(exception))
        except Exception:
            exception = None
        return Failure, (self.error, exception)

    def reraise(self) -> NoReturn:
        """Raise the exception of the unit, or if it has none RunAborted."""
        if self.exception is None:
            raise RunAborted(self.error.strip().splitlines()[-1])
        if self.exception.__traceback__ is None:  # of another process
            self.exception.add_note(self.error)
        raise self.exception


@dataclasses.dataclass(frozen=True)
class WorkerDied:
    """Stands in the place of the result of a unit in the middle of which its process ended, and says why."""

    why: str


#: workers, each of which runs one unit at a time
_Pool: TypeAlias = "_Processes | _Ray"


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Yield a list that gets the signals to end which the user sends, and not what a policy raises."""
    received: list[int] = []
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # the others get no signals
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: Any) -> None:
        received.append(number)
        before[number](number, frame)

    handled = [number for number, handler in before.items() if callable(handler)]
    for number in handled:
        signal.signal(number, note)
    try:
        yield received
    finally:
        for number in handled:
            signal.signal(number, before[number])


def _guarded(function: Callable[[U], R], unit: U) -> R | Failure:
    with _signals() as interrupts:
        try:
            return function(unit)
        except BaseException as error:
            if interrupts or isinstance(error, GeneratorExit):
                raise
            return Failure(traceback.format_exc(), error)


def _drain(
    pool: _Pool, function: Callable[[U], R], units: Iterable[U], limit: float | None
) -> Generator[tuple[U, R | Failure], None, None]:
    """Keep a pool busy until no unit is left."""
    guarded = functools.partial(_guarded, function)
    running: dict[Any, U] = {}
    died: list[U] = []
    left = iter(units)

    def fill(units: Iterable[U], slots: int) -> None:
        for unit in itertools.islice(units, slots - len(running)):
            running[pool.submit(guarded, unit)] = unit

    def ended() -> Iterator[tuple[U, R | Failure | WorkerDied]]:
        """The units that are done, and those that are ended; possibly none yet."""
        for handle in pool.wait(list(running), None if limit is None else LOOK):
            yield running.pop(handle), pool.result(handle)
        if limit is not None:
            for handle in pool.kill_late(list(running), limit):
                yield running.pop(handle), Failure(f"TimeoutError: took longer than {limit:g} s")

    fill(left, pool.slots)
    while running:
        results = list(ended())
        fill(left, pool.slots)  # before whoever takes results takes time
        died += [unit for unit, result in results if isinstance(result, WorkerDied)]
        yield from ((unit, result) for unit, result in results if not isinstance(result, WorkerDied))
    for unit in died:
        fill([unit], 1)
        while running:
            for _, outcome in ended():
                if isinstance(outcome, WorkerDied):
                    why = " ".join(outcome.why.split())
                    outcome = Failure(f"{DIED}, also when tried again alone: {why}")
                yield unit, outcome


@dataclasses.dataclass
class Engine:
    """Runs a function on units.

    Attributes:
        pool: makes the workers; None: units run in this very process, which dies with a unit that dies.
        processes: units that run at once; -1: one per core of a cluster.
        limit: the longest that a unit may take [s]; None: as long as it takes.
        stays: True if workers wait for the next run, for some seconds; they know the code of when they began.
    """

    pool: Callable[[], _Pool] | None
    processes: int = 1
    limit: float | None = None
    stays: bool = False
    _waiting: _Pool | None = None

    def run(
        self, function: Callable[[U], R], units: Iterable[U]
    ) -> Generator[tuple[U, R | Failure], None, None]:
        """Yield (unit, result) in the order in which they end; closing the iterator ends all work."""
        if self.pool is None:
            yield from ((unit, _guarded(function, unit)) for unit in units)
            return
        pool, self._waiting = self._waiting or self.pool(), None
        try:
            yield from _drain(pool, function, units, self.limit)
        except BaseException:
            pool.close()
            raise
        if self.stays:
            self._waiting = pool
        else:
            pool.close()


def _load(function: Callable[[Any], Any]) -> None:
    """Import what a function needs: that comes with it."""


class _Processes:
    """Loky's processes, each in a pool of its own, so that the death of one costs its own unit only."""

    def __init__(self, processes: int) -> None:
        self.slots = processes
        self.idle: list[Any] = []
        #: unit -> its process, and when its time began: the last of these times counts
        self.busy: dict[Any, tuple[Any, list[float]]] = {}
        self.loky = require("joblib.externals.loky")
        threads = str(max(1, (os.cpu_count() or 1) // processes))
        self.environment = {name: os.environ.get(name, threads) for name in THREADS}

    def submit(self, function: Callable[[Any], Any], unit: Any) -> Any:
        while self.idle:
            pool = self.idle.pop()
            with contextlib.suppress(concurrent.futures.BrokenExecutor):  # it died of boredom
                return self._submit(pool, function, unit)
        pool = self.loky.ProcessPoolExecutor(max_workers=1, timeout=IDLE, env=self.environment)
        return self._submit(pool, function, unit)

    def _submit(self, pool: Any, function: Callable[[Any], Any], unit: Any) -> Any:
        began = [time.monotonic() + START]  # the latest time for it, until the process has started
        pool.submit(_load, function).add_done_callback(lambda _: began.append(time.monotonic()))
        handle = pool.submit(function, unit)
        self.busy[handle] = pool, began
        return handle

    def wait(self, handles: list[Any], timeout: float | None = None) -> list[Any]:
        """Wait until a unit is done, or for ``timeout`` [s]; return the handles of all that are done."""
        first = concurrent.futures.FIRST_COMPLETED
        return list(concurrent.futures.wait(handles, timeout, return_when=first).done)

    def result(self, handle: Any) -> Any:
        """Return the result of a unit that is done, or the death of its worker."""
        pool, _ = self.busy.pop(handle)
        try:
            result = handle.result()
        except concurrent.futures.BrokenExecutor as error:
            pool.shutdown(wait=False)
            return WorkerDied(str(error))
        except Exception:  # a unit or a result that cannot be sent
            result = Failure(traceback.format_exc())
        self.idle.append(pool)
        return result

    def kill_late(self, handles: list[Any], limit: float) -> list[Any]:
        """Kill the workers that have been at their units for longer than ``limit`` [s]; return these."""
        late = [handle for handle in handles if time.monotonic() - self.busy[handle][1][-1] > limit]
        for handle in late:
            self.busy.pop(handle)[0].shutdown(wait=False, kill_workers=True)
        return late

    def close(self) -> None:
        for pool in (*self.idle, *(pool for pool, _ in self.busy.values())):
            pool.shutdown(wait=True, kill_workers=True)


class _Clock:
    """An actor of a Ray cluster to which tasks say that they begin: they may wait for a core for long."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {}

    def begin(self, task: str) -> None:
        self.began[task] = time.monotonic()

    def late(self, tasks: list[str], limit: float) -> list[str]:
        """Of ``tasks``, all that are not done, those that have run for longer than ``limit`` [s]."""
        self.began = {task: self.began[task] for task in tasks if task in self.began}
        return [task for task, began in self.began.items() if time.monotonic() - began > limit]


def _call(function: Callable[[U], R], unit: U, clock: Any) -> R:
    """Run a unit, as a task of a Ray cluster."""
    if clock is not None:
        ray = require("ray", "ray")
        with contextlib.suppress(ray.exceptions.RayActorError):  # whoever waits for the task will notice
            ray.get(clock.begin.remote(ray.get_runtime_context().get_task_id()))
    return function(unit)


class _Ray:
    """Tasks of a Ray cluster: that of RAY_ADDRESS, the one running on this machine, or a new local one."""

    def __init__(self, tasks: int, limited: bool) -> None:
        self.ray = require("ray", "ray")
        self.own = not self.ray.is_initialized()
        if self.own:
            self.ray.init(log_to_driver=False, include_dashboard=False, logging_level="ERROR")
        # one more task than there are cores: it waits where it will run
        self.slots = tasks if tasks > 0 else int(self.ray.cluster_resources().get("CPU", 1)) + 1
        self.remote = self.ray.remote(max_retries=0, num_cpus=1)(_call)
        self.probe = self.ray.remote(num_cpus=0)(lambda: None)
        self.clock: Any = self.ray.remote(num_cpus=0)(_Clock).remote() if limited else None

    @contextlib.contextmanager
    def _living(self) -> Iterator[None]:
        """Abort the run if the cluster fails: that is no unit's fault."""
        try:
            yield
        except (self.ray.exceptions.RayError, ConnectionError) as error:
            why = " ".join(str(error).split())
            raise RunAborted(f"the Ray cluster died; run this again to continue: {why}") from None

    def submit(self, function: Callable[[Any], Any], unit: Any) -> Any:
        with self._living():
            return self.remote.remote(function, unit, self.clock)

    def wait(self, handles: list[Any], timeout: float | None = None) -> list[Any]:
        with self._living():
            return list(self.ray.wait(handles, num_returns=1, timeout=timeout)[0])

    def result(self, handle: Any) -> Any:
        try:
            return self.ray.get(handle)
        except self.ray.exceptions.RayTaskError as error:  # a unit or a result that cannot be sent
            return Failure(str(error))
        except (self.ray.exceptions.RayError, ConnectionError) as error:
            with self._living():
                self.ray.get(self.probe.remote())
            return WorkerDied(str(error))

    def kill_late(self, handles: list[Any], limit: float) -> list[Any]:
        tasks = {handle.task_id().hex(): handle for handle in handles}
        with self._living():
            late = self.ray.get(self.clock.late.remote(list(tasks), limit))
            for task in late:
                self.ray.cancel(tasks[task], force=True)
        return [tasks[task] for task in late]

    def close(self) -> None:
        if self.own:
            self.ray.shutdown()


def count_processes(n_jobs: int) -> int:
    """The number of processes that ``n_jobs`` means; -1: one per core."""
    whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool)
    if not whole or (n_jobs < 1 and n_jobs != -1):  # joblib would take -2 for all cores but one
        raise InvalidParameter(f"n_jobs: must be a number of processes, or -1 for all cores, got {n_jobs!r}")
    return 1 if n_jobs == 1 else int(require("joblib").effective_n_jobs(n_jobs))


def make_engine(name: str, n_jobs: int = -1, limit: float | None = None, *, stays: bool = False) -> Engine:
    """An engine.

    Args:
        name: "local" (processes of this machine) or "ray" (tasks of a Ray cluster, on which schedgym and the
            files that parameters name must be installed at the same places).
        n_jobs: units at once; -1: one per core, of the cluster. With 1 and "local" all runs in this process,
            unless there is a limit.
        limit: the longest that a unit may take [s], compilation included; None: as long as it takes.
        stays: see :class:`Engine`.

    Raises:
        UnknownName: for another name.
        InvalidParameter: for a bad ``n_jobs`` or ``limit``.
        gymnasium.error.DependencyNotInstalled: without the extra ``eval`` or ``ray``.
    """
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    if limit is not None and not 0.0 < limit <= LONGEST:
        raise InvalidParameter(f"unit_timeout: must be > 0 and <= {LONGEST:g} s, got {limit!r}")
    processes = count_processes(n_jobs)
    if name == "local":
        here = processes == 1 and limit is None
        return Engine(None if here else functools.partial(_Processes, processes), processes, limit, stays)
    require("ray", "ray")
    return Engine(functools.partial(_Ray, n_jobs, limit is not None), n_jobs, limit, stays)


@contextlib.contextmanager
def progress_bar(total: int, show: bool | None, what: str = "episodes") -> Iterator[Callable[[int], None]]:
    """Yield a function that counts episodes that have ended; a bar on stderr shows them after two seconds.

    Args:
        total: episodes to run.
        show: None: only where stderr is a terminal.
        what: the word for them.
    """
    rich, began = require("rich.progress"), time.monotonic()
    bar = rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeRemainingColumn(),
        console=require("rich.console").Console(stderr=True),
        transient=True,
        speed_estimate_period=HOUR,
    )
    task = bar.add_task(what, total=total)
    wanted = bar.console.is_terminal if show is None else show

    def advance(episodes: int) -> None:
        if wanted and time.monotonic() - began > SLOW:
            bar.start()
        bar.update(task, advance=episodes)

    try:
        yield advance
    finally:
        if bar.live.is_started:  # else it would print an empty line
            bar.stop()
