"""Algorithm 3 of the paper: the most valuable tasks, and then urgent ones of nearly the same value."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.baselines.partial_value.policy import ValuePolicy
from schedgym.core.policy import Interface, register_policy
from schedgym.errors import InvalidParameter
from schedgym.problems.partial_value.rules import Rows, Scratch, deadline_aware
from schedgym.solvers.dual_prices import DualScratch


@register_policy(
    "partial-value/deadline-aware",
    source="zheng2016, Algorithm 3",
    deviations="For odd capacities C the paper's p = C / 2 is no whole number; here p = (C + 1) / 2 and "
    "rho = C / (2 C - p). Ties: larger value, earlier arrival, lower task.",
    knows=("value", "deadline"),
    views=("allocation", "rule"),
    needs={"model": "discrete", "single": True, "deadlines": "shown"},
    candidates={"p": (1, 5, 10, 25, 50), "rho": (0.05, 0.1, 0.25, 0.5, 1.0)},
)
class DeadlineAware(ValuePolicy):
    """Serves the p most valuable tasks, and then the most urgent of the tasks that are nearly as valuable.

    This algorithm of the paper serves the most valuable tasks in a part of each slot, and in the rest tasks
    whose deadline is near. It is for one resource whose capacity C is a whole number and of which every task
    needs one unit (discrete model); everything else is an error. It needs utilities and deadlines, and is
    fast.

    1. Choose the C most valuable tasks (by a heap; ties by arrival). Let v be the mean value of the first p
       of them.
    2. If the next task has a value of at most rho v, or if there is none, serve the C tasks.
    3. Else serve the first p, and then tasks with a value of at least rho v in the order of their jobs'
       deadlines (by value among jobs with the same deadline), until C are served.

    By default $p = C / 2$, rounded up, and $rho = C / (2 C - p)$.

    Complexity: O(N + S + C log N) per slot for N visible jobs and capacity C, where S is Shell's sort of N
    deadlines (about N log N). In view rule the environment does this work.

    Args:
        p: number of tasks that are served by value; None: C / 2, rounded up.
        rho: least value of tasks that are served by deadline, as a share of v; None: C / (2 C - p).
    """

    def __init__(self, p: int | None = None, rho: float | None = None) -> None:
        if p is not None and (isinstance(p, bool) or not isinstance(p, int) or p < 1):
            raise InvalidParameter(f"p: must be a whole number from 1, or none, got {p!r}")
        number = isinstance(rho, (int, float)) and not isinstance(rho, bool)
        if rho is not None and not (number and 0.0 < rho <= 1.0):
            raise InvalidParameter(f"rho: must be in (0, 1], or none, got {rho!r}")
        plain = p is None and rho is None
        super().__init__(
            "deadline-aware", ("allocation", "rule") if plain else ("allocation",), "discrete", urgent=True
        )
        self.p, self.rho = p, rho

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; it refuses more than one resource."""
        super().reset(interface, rng)
        if self.resources != 1:
            raise InvalidParameter(
                f"deadline-aware needs single=True, the environment has {self.resources} resources"
            )

    def allocate(
        self, observation: dict[str, Any], count: int, rows: Rows, scratch: Scratch, dual: DualScratch
    ) -> None:
        """Allocate the tasks of this slot; InvalidParameter if a task needs other than one unit."""
        capacity = float(observation["capacity"][0])
        if capacity != round(capacity) or (observation["demand"][:count] != 1.0).any():
            raise InvalidParameter("deadline-aware needs a whole capacity, and one unit of it per task")
        tasks = round(capacity)
        certain = min(self.p or (tasks + 1) // 2, tasks)
        rho = self.rho if self.rho is not None else tasks / (2 * tasks - certain)
        deadline_aware(certain, rho, count, rows, tasks, scratch, self.x)
