"""Algorithm 2 of the paper with an exact local problem: the most valuable tasks that fit in a slot."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.baselines.partial_value.policy import ValuePolicy
from schedgym.core.policy import register_policy
from schedgym.problems.partial_value.metrics import values
from schedgym.problems.partial_value.rules import TOLERANCE, Rows, Scratch
from schedgym.solvers.dual_prices import DualScratch


@register_policy(
    "partial-value/local-optimal",
    source="zheng2016, Algorithm 2 with an optimal solution of the local problem",
    deviations="None; which of several optima is served is the solver's choice.",
    knows=("value",),
    views=("allocation",),
    needs={"model": "discrete"},
)
class LocalOptimal(ValuePolicy):
    """Serves the most valuable set of tasks in each slot, found by integer programming (slow).

    As the problem of each slot is solved exactly, it shows how much m-greedy and primal-dual lose within a
    slot. Use it for instances with few jobs. It needs the utilities, and ignores deadlines.

    Every task that could be served now (up to its job's cap, and as far as the job's tasks fit alone) has a
    variable, 0 or 1. The solver HiGHS maximises the sum of their values under one constraint per resource, to
    optimality. The tasks of a job have decreasing values, so that only the number of chosen tasks is used.

    Complexity: exponential in the number of variables at worst; O(V m) to build the program for V of them and
    m resources.
    """

    def __init__(self) -> None:
        super().__init__("local-optimal", ("allocation",), "discrete")

    def allocate(
        self, observation: dict[str, Any], count: int, rows: Rows, scratch: Scratch, dual: DualScratch
    ) -> None:
        """Allocate the tasks of this slot; ArithmeticError if the solver does not end with an optimum."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        self.x[:count] = 0.0
        share = rows.share[:count].max(axis=1)
        room = np.divide(1.0 + TOLERANCE, share, out=np.full(count, np.inf), where=share > 0.0)
        most = np.floor(np.minimum(rows.cap[:count], room)).astype(np.int64)
        if not most.sum():
            return
        job = np.repeat(np.arange(count), most)
        number = np.arange(len(job)) - np.repeat(np.cumsum(most) - most, most)
        k = rows.served[job] + number + 1.0
        own = rows.utility[job], np.ones(len(job)), rows.exponent[job]
        value = rows.value[job] * (values(*own, k) - values(*own, k - 1.0))
        result = milp(
            -value,
            constraints=LinearConstraint(rows.share[job].T, ub=np.ones(self.resources)),
            integrality=np.ones(len(job)),
            bounds=Bounds(0, 1),
            options={"mip_rel_gap": 0.0},
        )
        if result.status != 0:
            raise ArithmeticError(f"local-optimal: {result.message}")
        # tasks of a job need the same and are worth ever less: how many are served is all that matters
        np.add.at(self.x, job, np.round(result.x))
