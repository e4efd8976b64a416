"""Algorithm 1 of the paper: the best allocation of each slot by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.baselines.partial_value.policy import ValuePolicy
from schedgym.core.arrays import Floats
from schedgym.core.policy import register_policy
from schedgym.problems.partial_value.rules import LEAST_LOG_PRICE, Rows
from schedgym.solvers.dual_prices import DualScratch, solve_slot


@register_policy(
    "partial-value/concave",
    source="zheng2016, Algorithm 1",
    deviations="None; the program is solved through its dual to a relative gap of 1e-8 or less. In view "
    "prices a linear job whose value equals its cost takes nothing, though Algorithm 1 may give it a part.",
    knows=("value",),
    views=("allocation", "rule", "prices"),
    needs={"model": "continuous"},
)
class Concave(ValuePolicy):
    """Serves what has the most value in each slot, without looking at deadlines (continuous model).

    This is the paper's main algorithm. It solves a concave optimisation problem in each slot exactly. Use it
    as the main baseline of the continuous model; it needs the jobs' utilities. It takes longer than s-greedy
    and edf, as it searches for prices of the resources.

    It maximises $sum_j f_j(y_j + x_j)$ under the resources' capacities and the jobs' parallelism, where job
    j, which has had y_j tasks, gets x_j more. At given prices of the resources (the dual variables), a job
    gets tasks until the slope f' has fallen to the cost of a task (its response to the prices).

    1. If all jobs can have their caps together, they get them.
    2. Else start with one price for all resources that could be full, found by Newton's method.
    3. The dual function of the prices is convex, and its gradient is one minus the loads that follow from the
       jobs' responses, each at most its cap. Minimise it by Newton steps, which are shortened until the
       function decreases, or, where these do not help, by a search along one price.
    4. Linear jobs would respond with all or nothing. Therefore their utilities get a small curvature, which
       is reduced in up to 16 repetitions of 3.
    5. Scale the result of each repetition down to what fits, and keep the one with the smallest duality gap.

    In view prices the action is the logarithms of the prices instead of amounts.

    Complexity: O(E (N m^2 + m^4)) per slot for N visible jobs and m resources, where E counts how often the
    jobs' responses to prices are computed: some 5 to 10 times for 60 jobs with square roots, tens of times if
    some are linear. In view rule the environment does this work.
    """

    def __init__(self) -> None:
        super().__init__("concave", ("allocation", "rule", "prices"), "continuous")

    def price(self, observation: dict[str, Any], count: int, rows: Rows, dual: DualScratch) -> Floats:
        """Return the logarithms of the dual prices of the slot."""
        prices = np.zeros(self.resources)
        solve_slot(count, rows, dual, prices, self.x)
        with np.errstate(divide="ignore"):
            return np.clip(np.log(prices), LEAST_LOG_PRICE, -LEAST_LOG_PRICE)
