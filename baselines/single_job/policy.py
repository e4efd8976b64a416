"""SingleJobPolicy: the base of all single-job policies, and PlanningPolicy, a planner as a policy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from schedgym.core.arrays import Integers32
from schedgym.core.jit import pure_kernel
from schedgym.core.policy import Interface
from schedgym.errors import InvalidParameter
from schedgym.solvers.placement import Job, PlanScratch, evaluate, local_search_step
from schedgym.solvers.planning import Planner

KNOWS = ("load", "efficiency", "power")


class SingleJobPolicy:
    """Base of the single-job policies, which make a whole plan and give it in the action of the view.

    In view place the plan is made at the first decision, and carried out task by task.

    Args:
        label: name of the policy in errors.
        views: the action views that can express it.
    """

    def __init__(self, label: str, views: tuple[str, ...]) -> None:
        self.label, self.views = label, views

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the policy."""
        interface.check(self.label, self.views)
        self.rng = rng
        self.view = interface.view
        self.tasks, self.servers = interface.sizes["tasks"], interface.sizes["servers"]
        self.action = np.zeros((self.tasks if self.view == "plan" else 0, 2))
        self.planned: Integers32 | None = None

    def plan(self, observation: dict[str, Any], count: int) -> tuple[Integers32, Any]:
        """Return the servers [count] of the job's tasks and their vCPU [count], or 0: sized by Eq. 16."""
        raise NotImplementedError

    def __call__(self, observation: dict[str, Any]) -> Any:
        """Return the plan, or the server of the next task."""
        if self.view == "place":
            task = int(observation["next_task"])
            if task == 0 or self.planned is None:
                self.planned = self.plan(observation, int(observation["task_mask"].sum()))[0].copy()
            return int(self.planned[task])
        count = int(observation["task_mask"].sum())
        self.action[:count, 0], self.action[:count, 1] = self.plan(observation, count)
        self.action[count:] = 0.0
        return self.action


@pure_kernel
def next_move(job: Job, placement: Integers32, scratch: PlanScratch) -> int:
    """Return the local search's next move from a placement, as task * M + server; -1 if there is none."""
    _, energy = evaluate(job, placement, scratch)
    return local_search_step(job, energy, placement, scratch)


class PlanningPolicy(SingleJobPolicy):
    """A planner as a policy.

    In view search (TaPRA-fast only, whose start is the environment's) it makes the moves of the local search.

    Args:
        planner: the planner of the job.
        views: the action views that can express it.
    """

    def __init__(self, planner: Planner, views: tuple[str, ...]) -> None:
        super().__init__(planner.name, views)
        self.planner = planner

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the policy."""
        super().reset(interface, rng)
        if self.planner.equal and self.view != "plan":
            raise InvalidParameter(
                f"{self.label} with allocation='equal-share' cannot be expressed in view {self.view!r}: "
                "its vCPU are those of Eq. 16"
            )
        self.ready = False

    def prepare(self, observation: dict[str, Any]) -> None:
        """Make the work space of an episode, as the groups differ between workloads."""
        if not self.ready:
            self.planner.prepare(observation["groups"], self.tasks)
            self.ready = True

    def plan(self, observation: dict[str, Any], count: int) -> tuple[Integers32, Any]:
        """Return the planner's plan, as :meth:`SingleJobPolicy.plan`; most efficient servers if it fails."""
        self.prepare(observation)
        planner = self.planner
        seed = int(self.rng.integers(2**63)) if planner.genetic else 0
        cap = float(observation["energy_cap"][0])
        efficiency = observation["efficiency"]
        planner.power = observation["power"]
        jct = planner(0, count, observation["load"], efficiency, observation["limits"], cap, seed)
        if jct == math.inf:
            return efficiency[:count].argmax(axis=1).astype(np.int32), 0.0
        return planner.placement[:count], planner.vcpu[:count] if planner.equal else 0.0

    def __call__(self, observation: dict[str, Any]) -> Any:
        """Return the plan, the server of the next task, or the next move."""
        if self.view != "search":
            return super().__call__(observation)
        self.prepare(observation)
        job = Job(
            0,
            int(observation["task_mask"].sum()),
            observation["load"],
            observation["efficiency"],
            self.planner.membership,
            observation["limits"],
            float(observation["energy_cap"][0]),
            observation["power"],
        )
        move = next_move(job, observation["placement"], self.planner.scratch)
        return move if move >= 0 else self.tasks * self.servers
