"""Simulator: the batch-first machine behind both faces of a problem.

A problem subclasses :class:`Simulator` and binds its arrays and kernels. The base keeps what does not
depend on the problem: which seed and episode each environment is at, and which workloads were given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.policy import Interface
from schedgym.core.problem import Parameters, Problem
from schedgym.core.random import root_seed
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload

__all__ = ["ACT", "BEGIN", "SKIP", "Simulator"]

#: what an environment does in a step of the simulator
SKIP, ACT, BEGIN = 0, 1, 2


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

    def __init__(self, problem: Problem, id: str, parameters: Parameters, num_envs: int) -> None:
        self.problem, self.id, self.parameters, self.num_envs = problem, id, parameters, num_envs
        self.metric_names = tuple(metric.name for metric in problem.metrics)
        self.seeded = np.zeros(num_envs, dtype=bool)
        self.seeds = np.zeros(num_envs, dtype=np.uint64)
        self.episodes = np.zeros(num_envs, dtype=np.int64)
        self.once: dict[int, Workload] = {}
        self.repeated: dict[int, Workload] = {}
        self.fixed: Workload | None = None  # in the place of drawn ones

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
        """Load the next episode's workload into each environment that ``mask`` [B] names.

        A step with the command BEGIN must follow.
        """
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
        self.episodes[mask] += 1

    @abstractmethod
    def check_workload(self, workload: Workload) -> None:
        """Raise InvalidWorkload if the environment cannot hold ``workload``."""

    @abstractmethod
    def load(self, index: int, workload: Workload) -> None:
        """Copy a checked workload into environment ``index``."""

    @abstractmethod
    def draw(self, mask: npt.NDArray[np.bool_]) -> None:
        """Draw workloads from (seed, episode) for the environments that ``mask`` names."""

    @abstractmethod
    def step(self, command: npt.NDArray[np.int8]) -> int:
        """Carry out ``command`` [B]: SKIP, ACT by ``actions``, or BEGIN the episode that was prepared.

        SKIP leaves all as it is, also reward and ends; BEGIN sets these to zero.

        Returns the number of episodes that ended. A negative number -(i + 1) says that environment i's
        action is out of range (a row that counts is not finite), or with strict actions infeasible, and
        that nothing has changed.
        """

    @abstractmethod
    def measure(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Metrics [B, metrics] of the finished episodes that ``mask`` names; other rows are undefined."""

    @abstractmethod
    def record(self, index: int) -> ScheduleRecord:
        """The schedule of environment ``index`` so far."""

    @abstractmethod
    def workload(self, index: int) -> Workload:
        """The workload of environment ``index``."""
