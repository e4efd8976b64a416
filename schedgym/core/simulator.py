"""Simulator: the batch-first machine behind both faces of a problem.

A problem subclasses :class:`Simulator` and binds its arrays and kernels. The base keeps what does not
depend on the problem: which seed and episode each environment is at, and which workloads were given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import helper, pack
from schedgym.core.policy import Interface
from schedgym.core.problem import Parameters, Problem
from schedgym.core.random import root_seed
from schedgym.core.record import ScheduleRecord
from schedgym.core.threads import Crew
from schedgym.core.workload import Workload

__all__ = ["ACT", "BEGIN", "CHECK", "SHORT", "SKIP", "Kernel", "Simulator", "names_action"]

#: what an environment does in a call of a kernel; CHECK: say whether the action would be refused
SKIP, ACT, BEGIN, CHECK = 0, 1, 2, 3

#: what a kernel returns that needs more room in the log before it can go on; see :meth:`Simulator._resume`
SHORT = -(2**62)
#: (table, tools, command [B]) -> a count, or -(b + 1) for the first environment whose action is refused
Kernel = Callable[[Any, Any, npt.NDArray[np.int8]], int]

#: attributes that :meth:`Simulator._bind` makes, which are not pickled
DERIVED = frozenset(
    ("observation", "actions", "rows", "reward", "terminated", "truncated", "repaired")
    + ("kernels", "table", "tools", "toolboxes")
)


@helper
def names_action(command: int) -> Any:
    """Whether the environment's action counts for this command."""
    return command == ACT or command == CHECK


class Simulator(ABC):
    """``num_envs`` environments of one problem, advanced together.

    Each problem's room ``simulator`` has ``make_simulator(parameters, num_envs, id)``.

    Attributes:
        num_envs: B.
        problem: the descriptor.
        id: the environment id.
        parameters: the environment's checked parameters.
        interface: what policies may know.
        observation: name -> live buffer, [B, ...]; kernels overwrite it.
        scalars: names of observation entries that are one integer per environment (Discrete spaces).
        continuous: whether actions are real numbers (a Box space).
        action_shape: shape of one action; () for a single whole number.
        actions: buffer for a batch of actions: int64 [B, components], or with ``continuous`` float64
            [B, *action_shape]. The faces write the leading rows that count (up to ``rows``), no others.
        action_sizes: number of choices of each component of an action; with ``continuous`` ().
        rows: with ``continuous``, how many leading rows (axis 0) of an action count now; int64 [B].
        reward, terminated, truncated, repaired: of the last step, [B].
        metric_names: in the order of :meth:`measure`.
        kernels: what a step calls, one after another, until one refuses an action; the last one counts the
            episodes that ended. The first looks at every action before it changes anything, and with the
            command CHECK changes nothing.
        table: what the kernels work on, packed.
        threads: how many work side by side, each on a block of environments.
        draws_in_place: whether :meth:`draw` leaves all arrays where they are.
        tools: work space of the kernels, per thread.
        toolboxes: the same, packed.
    """

    observation: dict[str, npt.NDArray[Any]]
    scalars: tuple[str, ...]
    continuous: bool = False
    action_shape: tuple[int, ...]
    actions: npt.NDArray[np.int64] | npt.NDArray[np.float64]
    action_sizes: tuple[int, ...] = ()
    rows: npt.NDArray[np.int64]
    reward: npt.NDArray[np.float64]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    repaired: npt.NDArray[np.bool_]
    interface: Interface
    kernels: tuple[Kernel, ...]
    table: Any
    draws_in_place: bool = False
    tools: list[tuple[Any, ...]]
    toolboxes: list[Any]

    def __init__(self, problem: Problem, id: str, parameters: Parameters, num_envs: int) -> None:
        self.problem, self.id, self.parameters, self.num_envs = problem, id, parameters, num_envs
        self.metric_names = tuple(metric.name for metric in problem.metrics)
        self.seeded = np.zeros(num_envs, dtype=bool)
        self.seeds = np.zeros(num_envs, dtype=np.uint64)
        self.episodes = np.zeros(num_envs, dtype=np.int64)
        self.once: dict[int, Workload] = {}
        self.repeated: dict[int, Workload] = {}
        self.fixed: Workload | None = None  # in the place of drawn ones
        self.threads = 1
        self.crew: Crew | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind()

    def use_threads(self, count: int) -> None:
        """Let ``count`` threads advance the environments, at most one for each; nothing else changes."""
        self.threads = min(count, self.num_envs)
        self.crew = Crew(self.num_envs, self.threads) if self.threads > 1 else None
        self._bind()

    @abstractmethod
    def _bind(self) -> None:
        """Make DERIVED: views of other arrays (pickling and copying part them), kernels and work space."""

    def _bind_tools(self, make: Callable[[], tuple[Any, ...]]) -> None:
        """Give every thread the bundles of work space that ``make`` makes."""
        self.tools = [make() for _ in range(self.threads)]
        self.toolboxes = [pack(*own) for own in self.tools]

    def seed(self, index: int, seed: int) -> None:
        """Let the next episode of environment ``index`` be episode 0 of ``seed``."""
        self.seeds[index] = root_seed(seed)
        self.episodes[index] = 0
        self.seeded[index] = True

    def give(self, index: int, workload: Workload, repeat: bool) -> None:
        """Let ``workload`` serve the next episode of environment ``index``, with ``repeat`` all that follow.

        Raises:
            InvalidWorkload: if it does not fit the environment's spaces.
        """
        self.check_workload(workload)
        if repeat:
            self.repeated[index] = workload
            self.once.pop(index, None)
        else:
            self.once[index] = workload

    def take_back(self, index: int) -> None:
        """Forget the workloads given to environment ``index``."""
        self.once.pop(index, None)
        self.repeated.pop(index, None)

    def prepare(self, mask: npt.NDArray[np.bool_]) -> None:
        """Load the next episode's workload into each environment that ``mask`` [B] names."""
        drawn = mask
        if self.once or self.repeated or self.fixed is not None:
            drawn = mask.copy()
            for index in np.flatnonzero(mask).tolist():
                workload = self.once.pop(index, None) or self.repeated.get(index, self.fixed)
                if workload is not None:
                    self.load(index, workload)
                    drawn[index] = False
        if drawn.any():
            self.draw(drawn)
        self.episodes += mask

    @abstractmethod
    def check_workload(self, workload: Workload) -> None:
        """Raise InvalidWorkload if the environment cannot hold ``workload``."""

    @abstractmethod
    def load(self, index: int, workload: Workload) -> None:
        """Copy a checked workload into environment ``index``."""

    @abstractmethod
    def draw(self, mask: npt.NDArray[np.bool_]) -> None:
        """Draw workloads from (seed, episode) for the environments that ``mask`` names."""

    def begin(self, mask: npt.NDArray[np.bool_]) -> None:
        """Start the next episode of each environment that ``mask`` [B] names; the others stay as they are."""
        self.prepare(mask)
        command = self._begin_prepared(mask)
        if command is not None:
            self._resume(command)

    def _begin_prepared(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int8] | None:
        """Begin with what is prepared; returns the command if it has to be resumed."""
        command = np.multiply(mask, BEGIN, dtype=np.int8)
        return command if self.kernels[-1](self.table, self.toolboxes[0], command) == SHORT else None

    def step(self, command: npt.NDArray[np.int8], ended: npt.NDArray[np.bool_] | None = None) -> int:
        """Carry out ``command`` [B]: SKIP, or ACT by ``actions``; and start the next episodes of ``ended``.

        SKIP leaves all as it is, also reward and ends; a new episode sets these to zero.

        Args:
            command: of each environment.
            ended: [B], environments that are skipped by ``command`` and begin their next episode.

        Returns the number of episodes that ended. A negative number -(i + 1) says that environment i's
        action is out of range (a row that counts is not finite), or with strict actions infeasible, and
        that nothing has changed.
        """
        self._reserve_log()
        if self.crew is not None:
            return self._step_side_by_side(self.crew, command, ended)
        count = self._call_kernels(command, 0)
        if count == SHORT:
            count = self._resume(command)
        if count >= 0 and ended is not None:
            self.begin(ended)
        return count

    def _step_side_by_side(
        self, crew: Crew, command: npt.NDArray[np.int8], ended: npt.NDArray[np.bool_] | None
    ) -> int:
        """:meth:`step` by several threads."""
        checks = np.where(command == ACT, np.int8(CHECK), np.int8(SKIP))
        refused = self.kernels[0](self.table, self.toolboxes[0], checks)
        if refused < 0:
            return refused
        given = bool(self.once or self.repeated) or self.fixed is not None
        overlaps = self.draws_in_place and not given  # else arrays may grow, which must come first
        if ended is not None and not overlaps:
            self.prepare(ended)
        short: npt.NDArray[np.int8] | None = None

        def begin_ended() -> None:
            nonlocal short
            if ended is not None:
                if overlaps:
                    self.prepare(ended)
                short = self._begin_prepared(ended)

        count = crew.run(self._call_kernels, command, begin_ended)
        if count == SHORT:
            count = self._resume(command)
        if short is not None:
            self._resume(short)
        return count

    def _call_kernels(self, command: npt.NDArray[np.int8], thread: int) -> int:
        """What the last kernel returns, or the first that returns a negative number."""
        toolbox, count = self.toolboxes[thread], 0
        for kernel in self.kernels:
            count = kernel(self.table, toolbox, command)
            if count < 0:
                break
        return count

    def _reserve_log(self) -> None:  # noqa: B027  (most problems need none)
        """Make room for what a step may log, where that is bounded."""

    def _resume(self, command: npt.NDArray[np.int8]) -> int:
        """Give the log room, and finish what ``command`` began; returns how many episodes ended."""
        raise NotImplementedError("no kernel of this problem returns SHORT")

    @abstractmethod
    def measure(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Metrics [B, metrics] of the finished episodes that ``mask`` names; other rows are undefined."""

    @abstractmethod
    def record(self, index: int) -> ScheduleRecord:
        """The schedule of environment ``index`` so far."""

    @abstractmethod
    def workload(self, index: int) -> Workload:
        """The workload of environment ``index``."""
