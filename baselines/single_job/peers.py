"""Planners without a search: every task on its most efficient server, or on a random one."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.baselines.single_job.policy import KNOWS, SingleJobPolicy
from schedgym.core.arrays import Integers32
from schedgym.core.policy import register_policy
from schedgym.solvers.placement import ENERGY_SLACK


@register_policy(
    "single-job/most-efficient",
    source="shi2017, section 4 (where TaPRA-fast starts)",
    knows=KNOWS,
    views=("plan", "place"),
)
class MostEfficient(SingleJobPolicy):
    """Puts every task on its most efficient server, which needs the least energy, and sizes tasks by Eq. 16.

    No plan uses less energy, and tapra-fast starts from this one. Use it as the fastest baseline that stays
    within every feasible energy cap. It needs the efficiencies, but ignores how many tasks share a server and
    how much vCPU its groups have.

    Ties go to the lowest server. In view place the plan is made at the first task and then carried out.

    Complexity: O(n M) per plan for n tasks and M servers.
    """

    def __init__(self) -> None:
        super().__init__("most-efficient", ("plan", "place"))

    def plan(self, observation: dict[str, Any], count: int) -> tuple[Integers32, Any]:
        """See :meth:`SingleJobPolicy.plan`."""
        return observation["efficiency"][:count].argmax(axis=1).astype(np.int32), 0.0


@register_policy(
    "single-job/random", source="schedgym (not in the paper)", knows=KNOWS, views=("plan", "place")
)
class Random(SingleJobPolicy):
    """Puts every task on a random server, among those with which the energy cap can still be kept.

    Use it as the baseline that any planner should beat. It uses the loads and efficiencies only to stay
    within the energy cap, and is fast.

    1. Find the least energy of every task.
    2. For each task in order, draw a server, with equal probabilities, from those on which the energy so far,
       that of the task, and the least energy of all later tasks are within the cap. The most efficient server
       is always one of them.

    The environment sizes the tasks by Eq. 16. In view place the plan is made at the first task and then
    carried out.

    Complexity: O(n M) per plan for n tasks and M servers.
    """

    def __init__(self) -> None:
        super().__init__("random", ("plan", "place"))

    def plan(self, observation: dict[str, Any], count: int) -> tuple[Integers32, Any]:
        """See :meth:`SingleJobPolicy.plan`."""
        leq = observation["load"][:count, np.newaxis] / observation["efficiency"][:count]
        energy_on = observation["power"][:count, np.newaxis] * leq
        least = energy_on.min(axis=1)
        rest = least.sum()
        cap = float(observation["energy_cap"][0]) * (1.0 + ENERGY_SLACK / 2)
        placement = np.zeros(count, dtype=np.int32)
        energy = 0.0
        for task in range(count):
            rest -= least[task]
            fits = np.flatnonzero((energy + energy_on[task] + rest <= cap) | (energy_on[task] == least[task]))
            placement[task] = fits[self.rng.integers(len(fits))]
            energy += energy_on[task, placement[task]]
        return placement, 0.0
