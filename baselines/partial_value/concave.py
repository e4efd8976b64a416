"""Algorithm 1: the best allocation of each slot by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.baselines.partial_value.policy import Floats, ValuePolicy
from schedgym.baselines.solvers.dual_prices import DualScratch, solve_slot
from schedgym.core.policy import register_policy
from schedgym.problems.partial_value.schemes import LEAST_LOG_PRICE, Visible

__all__ = ["Concave"]


@register_policy(
    "partial-value/concave",
    source="paper 002, Algorithm 1",
    deviations="None; solved through its dual to a relative gap of 1e-8 or less. View prices: a linear job "
    "whose value equals its cost takes nothing there, though Algorithm 1 may give it a part.",
    knows=("value",),
    views=("allocation", "rule", "prices"),
    needs={"model": "continuous"},
)
class Concave(ValuePolicy):
    """Serves what is worth most in this slot, deadlines unknown (continuous model).

    The largest sum of f_j(y_j + x_j) under the resources' capacities and the jobs' parallelism, by prices of
    the resources at which jobs buy until f' falls to their cost.
    """

    def __init__(self) -> None:
        super().__init__("concave", ("allocation", "rule", "prices"), "continuous")

    def price(self, observation: dict[str, Any], count: int, rows: Visible, dual: DualScratch) -> Floats:
        """Logarithms of the dual prices of the slot."""
        prices = np.zeros(self.resources)
        solve_slot(
            count,
            rows.served,
            rows.cap,
            rows.share,
            rows.utility,
            rows.value,
            rows.exponent,
            dual,
            prices,
            self.x,
        )
        with np.errstate(divide="ignore"):
            return np.clip(np.log(prices), LEAST_LOG_PRICE, -LEAST_LOG_PRICE)
