"""Planners without a search: every task on its most efficient server, or on a random one."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.baselines.single_job.policy import KNOWS, Places, SingleJobPolicy
from schedgym.core.policy import register_policy
from schedgym.solvers.placement import ENERGY_SLACK

__all__ = ["MostEfficient", "Random"]


@register_policy(
    "single-job/most-efficient",
    source="shi2017, section 4 (where TaPRA-fast starts)",
    knows=KNOWS,
    views=("plan", "place"),
)
class MostEfficient(SingleJobPolicy):
    """Puts every task on its most efficient server, sized by Eq. 16: the least energy.

    The plan uses as little energy as any can, and tapra-fast starts from it. Use it as the cheapest baseline
    that always keeps to a feasible cap; it needs the efficiencies, but ignores how many tasks share a server
    and how little vCPU its groups have.

    Ties go to the lowest server. In view place the plan is made at the first task and then carried out.

    Complexity: O(n M) per plan for n tasks and M servers.
    """

    def __init__(self) -> None:
        super().__init__("most-efficient", ("plan", "place"))

    def plan(self, observation: dict[str, Any], count: int) -> tuple[Places, Any]:
        """See :meth:`SingleJobPolicy.plan`."""
        return observation["efficiency"][:count].argmax(axis=1).astype(np.int32), 0.0


@register_policy(
    "single-job/random", source="schedgym (not in the paper)", knows=KNOWS, views=("plan", "place")
)
class Random(SingleJobPolicy):
    """Puts every task, in order, on a random server with which the energy cap can still be kept.

    Use it as the baseline that any planner should beat. It needs the loads and efficiencies, only to keep to
    the energy cap, and is cheap.

    1. Find the least energy of every task.
    2. Task by task: draw evenly among the servers with which the energy so far, its own, and the least of all
       tasks to come are within the cap; its most efficient server is always among them.

    The environment sizes the tasks by Eq. 16. In view place the plan is made at the first task and then
    carried out.

    Complexity: O(n M) per plan for n tasks and M servers.
    """

    def __init__(self) -> None:
        super().__init__("random", ("plan", "place"))

    def plan(self, observation: dict[str, Any], count: int) -> tuple[Places, Any]:
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
