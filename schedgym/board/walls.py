"""Play a candidate that nobody trusts: in a process of its own, which sees observations and gives actions.

The environments are here, the candidate is there. All instances with the same parameters are advanced as one
batch, and a step is a message each way. Their observations lie in a file that the environments write to and
the candidate's process can only read; its actions come back as bytes in another one, and nothing of it is
unpickled. :mod:`schedgym.board.sandbox` says what that process may do.

What it does not keep out: whoever knows the recipe of a public instance can make it again, and can carry its
best known schedule in the candidate's text. No candidate knows the instances of a secret set.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import mmap
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.board.candidate import DECIDED, FAILED, Expected
from schedgym.board.suites import Instance
from schedgym.core.arrays import Flags
from schedgym.core.policy_files import names_policy_file
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.stepping import ACT, SKIP
from schedgym.documents import canonical
from schedgym.errors import InvalidParameter, printable
from schedgym.evaluation.plan import baseline, check_acting

LONGEST = 2**16  # bytes of an answer in JSON, and those that are read at once
STARTING = 120.0  # s of CPU time for each part of the start: to load the candidate, to make it ready
PATIENCE = 3600.0  # s on the clock for each part of the start
LOOK = 50  # ms between two looks at the CPU time of a process that has not answered
ALIGNED = 64  # bytes
MOST_STOPS = 3  # processes that may end early in a batch before its remaining instances are refused
ENVIRONMENT = ("PATH", "HOME", "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT")  # what it gets of this process's own
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a candidate may use.

    Attributes:
        decision: CPU time of one decision, which may have to compile something [s].
        clock: time on the clock of one decision [s].
        episode: CPU time of an episode, on average over the episodes of a batch [s].
        memory: address space of its process [bytes].
        files: open files.

    Raises:
        InvalidParameter: for a limit that is not a number above 0.
    """

    decision: float = 60.0
    clock: float = 600.0
    episode: float = 60.0
    memory: int = 4 * 2**30
    files: int = 64

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < math.inf:
                raise InvalidParameter(f"limits: {name} must be a number above 0, got {value}")


@dataclasses.dataclass
class Run:
    """What a candidate has done.

    Attributes:
        played: number of each instance -> the whole schedule, or why the instance was refused.
        decisions: number of decisions.
        seconds: CPU time that the candidate's process took for them [s]; nan where the system does not tell.
        missing: what this system could not restrict, a text each.
    """

    played: dict[int, ScheduleRecord | str] = dataclasses.field(default_factory=dict)
    decisions: int = 0
    seconds: float = 0.0
    missing: list[str] = dataclasses.field(default_factory=list)


class Stopped(Exception):
    """The candidate's process has ended, or was ended, before it answered.

    Args:
        reason: one line.
        index: the environment whose action it owed; None: no single one.
    """

    def __init__(self, reason: str, index: int | None = None) -> None:
        super().__init__(reason)
        self.index = index


class CandidateProcess:
    """The process of a candidate, for one batch.

    Args:
        candidate: its name.
        instance: one of the batch.
        limits: what it may use.
        episodes: how many it plays.

    Attributes:
        missing: what this system cannot restrict, a text each.
        acting: the parameters under which it wants to act.
    """

    def __init__(self, candidate: str, instance: Instance, limits: Limits, episodes: int) -> None:
        if os.name != "posix":
            raise InvalidParameter("a candidate cannot be restricted on this system: use Linux or macOS")
        self._limits, self._episodes = limits, episodes
        self._received, self._seconds, self._count = bytearray(), 0.0, 0
        self._actions = tempfile.TemporaryFile()
        with tempfile.NamedTemporaryFile() as shared:
            self._shared = os.open(shared.name, os.O_RDWR | os.O_CLOEXEC)
            seen = os.open(shared.name, os.O_RDONLY | os.O_CLOEXEC)
        kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-m", "schedgym.board.candidate"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=kept | dict.fromkeys(THREADS, "1"),
            pass_fds=(seen, self._actions.fileno()),
        )
        os.close(seen)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._orders, self._answers = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._orders, False)  # one that reads nothing must not hold up this process
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self._strange = names_policy_file(candidate)
        path = candidate.rpartition(":")[0] if self._strange else candidate
        order = {
            "candidate": candidate,
            "id": instance.id,
            "parameters": dict(instance.parameters),
            "readable": [path] if path.endswith((".py", ".npz")) else [],
            "memory": limits.memory,
            "files": limits.files,
            "seconds": int(limits.episode * episodes + STARTING),  # if nobody is left to end it
            "observations": seen,
            "actions": self._actions.fileno(),
        }
        try:
            self.missing: list[str] = self._ask(order)["missing"]
            self.acting: dict[str, Any] = self._answer().get("acting", {})
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        os.close(self._shared)
        self._actions.close()

    @property
    def seconds(self) -> float:
        """CPU time of the process so far [s]; nan where the system does not tell."""
        try:
            self._seconds = time.clock_gettime((~self._process.pid << 3) | 2)  # clock_getcpuclockid(3)
        except OSError:
            pass  # it has ended: what was read last
        return self._seconds if sys.platform == "linux" else math.nan

    def _send(self, order: bytes) -> None:
        try:
            sent = os.write(self._orders, order)
        except (BlockingIOError, BrokenPipeError):
            sent = 0
        if sent < len(order):
            raise Stopped(self._end())

    def _ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        self._send(json.dumps(order).encode() + b"\n")
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        """The next line of its answers as data; Stopped if it is an error, or none."""
        line = self._receive(STARTING, PATIENCE)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise Stopped("its process gave no answer that can be read")
        if "error" in answer:
            raise Stopped(printable(str(answer["error"])))
        return answer

    def _marks(self) -> npt.NDArray[np.uint8]:
        """The marks of the environments in the file of actions, of which it may have made anything."""
        marks = os.pread(self._actions.fileno(), self._count, 0)
        return np.frombuffer(marks.ljust(self._count, b"\0"), np.uint8)

    def _receive(self, limit: float, patience: float) -> bytes:
        """The next line of its answers.

        Raises:
            Stopped: after ``limit`` s of CPU time, or ``patience`` s on the clock, in which it has neither
                answered nor decided for one more environment; or if it has ended.
        """
        began, clock, decided = self.seconds, time.monotonic(), 0
        while not (end := self._received.find(b"\n") + 1):
            if len(self._received) > LONGEST:
                raise Stopped("its answer is too long")
            if self._poll.poll(LOOK):
                more = os.read(self._answers, LONGEST)
                if not more:
                    raise Stopped(self._end())
                self._received += more
            elif (marked := int(np.count_nonzero(self._marks()))) > decided:
                began, clock, decided = self.seconds, time.monotonic(), marked
            elif self.seconds - began > limit:
                raise Stopped(f"took more than {limit:g} s of CPU time")
            elif time.monotonic() - clock > patience:
                raise Stopped(f"gave no answer within {patience:g} s")
        taken = bytes(self._received[:end])
        del self._received[:end]
        return taken

    def _end(self) -> str:
        """End the process; return how it ended."""
        self._process.kill()
        code = self._process.wait()
        if code == -signal.SIGKILL:
            return "its process stopped to answer, or was killed"
        return f"its process ended: {signal.Signals(-code).name if code < 0 else f'exit code {code}'}"

    def begin(self, simulator: Simulator) -> None:
        """Describe the batch, whose episodes have begun, to the candidate."""
        layout, offsets, end = {}, {}, 0
        for name, entry in simulator.observation.items():
            layout[name] = entry.dtype.str, entry.shape[1:], end
            offsets[entry.ctypes.data] = end
            end += -(-entry.nbytes // ALIGNED) * ALIGNED
        os.ftruncate(self._shared, end)
        _move(simulator, mmap.mmap(self._shared, end), offsets)
        self.simulator, self._expected = simulator, Expected(simulator.action_shape, simulator.continuous)
        self._count = simulator.num_envs
        os.ftruncate(self._actions.fileno(), self._count * (1 + self._expected.length))
        order = {
            "interface": dataclasses.asdict(simulator.interface),
            "count": self._count,
            "layout": layout,
            "scalars": list(simulator.scalars),
            "shape": self._expected.shape,
            "real": self._expected.real,
        }
        answer = self._ask(order)
        if not self._strange:  # it restricts itself only now; what a stranger's says may be made up
            self.missing = answer["missing"]
        self._began = self.seconds

    def decide(self, live: Flags) -> Iterator[tuple[int, bytes, str]]:
        """Ask for the actions of the environments ``live`` [B]: see :func:`play_batch`."""
        size, length, limits = 8 * int(np.prod(self._expected.shape)), self._expected.length, self._limits
        file = self._actions.fileno()
        os.pwrite(file, bytes(self._count), 0)
        self._send(live.tobytes())
        try:
            self._receive(limits.decision, limits.clock)
        except Stopped as stop:
            owed = np.flatnonzero(live & (self._marks() == 0))
            raise Stopped(str(stop), int(owed[0]) if owed.size else None) from None
        marks = self._marks()
        for index in np.flatnonzero(live).tolist():
            answer = os.pread(file, length, self._count + index * length)
            if marks[index] == DECIDED and len(answer) == length:
                yield index, answer[:size], ""
            else:
                text = printable(answer.rstrip(b"\0").decode(errors="replace"))
                yield index, b"", text if marks[index] == FAILED and text else "gave no action"
        if self.seconds - self._began > limits.episode * self._episodes:
            raise Stopped(f"took more than {limits.episode:g} s of CPU time an episode")


def _move(simulator: Simulator, memory: mmap.mmap, offsets: Mapping[int, int]) -> None:
    """Let arrays of a simulator, named by their addresses, lie at these offsets of a memory.

    The environments then write their observations where the candidate's process reads them. The arrays stay:
    once episodes have begun, only logs grow, which no observation shows.
    """
    moved: dict[int, npt.NDArray[Any]] = {}

    def move(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        address = array.ctypes.data
        if address in offsets and address not in moved:  # an array may stand in several bundles
            own = np.frombuffer(memory, array.dtype, array.size, offsets[address]).reshape(array.shape)
            own[...] = array
            moved[address] = own
        return moved.get(address, array)

    bundles = simulator.arrays
    simulator.arrays = type(bundles)(*(type(bundle)(*map(move, bundle)) for bundle in bundles))
    simulator.use_threads(1)  # which tells the kernels of the new arrays


def prepare(instances: Sequence[Instance], acting: Mapping[str, Any]) -> Simulator:
    """The simulator of a batch, whose episodes have begun.

    Args:
        instances: of the same parameters.
        acting: the parameters under which the candidate wants to act.

    Raises:
        InvalidParameter: if these change more than what is visible and how the candidate acts.
    """
    given, id, problem = instances[0].parameters, instances[0].id, instances[0].problem
    if not isinstance(acting, dict):
        raise InvalidParameter("a candidate must give its parameters as a dict")
    built = problem.build(id, baseline(problem, id, check_acting(problem, given, acting)))
    simulator: Simulator = problem.module("simulator").make_simulator(built, len(instances), id)
    for index, instance in enumerate(instances):
        workload = instance.workload()
        simulator.check_workload(workload)
        simulator.seed(index, 0)
        simulator.give(index, workload, False)
    simulator.begin(np.ones(len(instances), dtype=bool))
    return simulator


def play_batch(
    simulator: Simulator,
    decide: Callable[[Flags], Iterable[tuple[int, bytes, str]]],
    finish: Callable[[int, ScheduleRecord | str], None],
) -> int:
    """Play the episodes of a batch, which have begun, to their ends.

    Args:
        simulator: of B environments.
        decide: which environments still play [B] -> the number of each of them, its action as bytes, and ""
            or why there is none.
        finish: is told the number of each environment whose episode has ended, and the whole schedule, or why
            there is none.

    Returns:
        the number of decisions.
    """
    expected, decisions = Expected(simulator.action_shape, simulator.continuous), 0
    live = np.ones(simulator.num_envs, dtype=bool)
    while live.any():
        for index, action, refusal in decide(live.copy()):
            if refusal:
                live[index] = False
                finish(index, refusal)
                continue
            array = np.frombuffer(action, expected.dtype)
            if expected.real:
                simulator.actions[index] = array.reshape(expected.shape)
            else:
                simulator.actions[index, : array.size] = array
        while (count := simulator.step(np.where(live, np.int8(ACT), np.int8(SKIP)))) < 0:
            refused = -count - 1  # nothing has changed: the others step without it
            live[refused] = False
            finish(refused, str(simulator.refusal(refused, "action")))
        decisions += int(np.count_nonzero(live))
        ended = live & (simulator.terminated | simulator.truncated)
        for index in np.flatnonzero(ended).tolist():
            finish(index, simulator.record(index))
        live &= ~ended
    return decisions


def play(candidate: str, instances: Sequence[Instance], limits: Limits | None = None) -> Run:
    """Play a candidate on instances of one environment id, each in the episode that it is.

    A process that ends early takes only the instance with it whose action it owed, if there is one: the
    others that have not ended are begun again in a new process.

    Args:
        candidate: ``score: EXPRESSION``, FILE.py:NAME, an agent file, or the name of a policy.
        instances: what is played.
        limits: what the candidate may use.

    Raises:
        InvalidParameter: if the candidate cannot be loaded, or cannot act in these environments.
    """
    limits = limits or Limits()
    groups: dict[str, list[int]] = {}
    for number, instance in enumerate(instances):
        groups.setdefault(canonical(dict(instance.parameters)), []).append(number)
    run = Run()
    for waiting in groups.values():
        stops = 0
        while waiting:
            try:
                stop = _play_once(candidate, instances, waiting, limits, run)
            except Stopped as error:
                raise InvalidParameter(f"{candidate}: {error}") from None
            if stop is not None:
                stops += 1
                lost = waiting if stop.index is None or stops >= MOST_STOPS else [waiting[stop.index]]
                for number in lost:
                    run.played.setdefault(number, str(stop))
            waiting = [number for number in waiting if number not in run.played]
    return run


def _play_once(
    candidate: str, instances: Sequence[Instance], numbers: Sequence[int], limits: Limits, run: Run
) -> Stopped | None:
    """Play the instances of these numbers as one batch; return how the candidate's process ended early.

    Raises:
        Stopped: if it ended before it had loaded the candidate.
    """
    batch = [instances[number] for number in numbers]

    def finish(index: int, played: ScheduleRecord | str) -> None:
        run.played[numbers[index]] = played

    with contextlib.closing(CandidateProcess(candidate, batch[0], limits, len(batch))) as process:
        process.begin(prepare(batch, process.acting))
        run.missing, began = process.missing, process.seconds
        try:
            run.decisions += play_batch(process.simulator, process.decide, finish)
        except Stopped as stop:
            return stop
        run.seconds += process.seconds - began
    return None
