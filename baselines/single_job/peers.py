"""What costs nothing to think of: the most efficient servers, and random ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.baselines.single_job.policy import KNOWS, Places, SingleJobPolicy
from schedgym.baselines.solvers.placement import ENERGY_SLACK
from schedgym.core.policy import register_policy

__all__ = ["MostEfficient", "Random"]


@register_policy(
    "single-job/most-efficient",
    source="paper 001, section 4 (where TaPRA-fast starts)",
    knows=KNOWS,
    views=("plan", "place"),
)
class MostEfficient(SingleJobPolicy):
    """Every task on its most efficient server, sized by Eq. 16: the least energy."""

    def __init__(self) -> None:
        super().__init__("most-efficient", ("plan", "place"))

    def plan(self, observation: dict[str, Any], count: int) -> tuple[Places, Any]:
        """See :meth:`SingleJobPolicy.plan`."""
        return observation["efficiency"][:count].argmax(axis=1).astype(np.int32), 0.0


@register_policy(
    "single-job/random", source="schedgym (not in the paper)", knows=KNOWS, views=("plan", "place")
)
class Random(SingleJobPolicy):
    """Every task, in order, on a random server with which the energy cap can still be kept."""

    def __init__(self) -> None:
        super().__init__("random", ("plan", "place"))

    def plan(self, observation: dict[str, Any], count: int) -> tuple[Places, Any]:
        """See :meth:`SingleJobPolicy.plan`."""
        leq = observation["load"][:count, np.newaxis] / observation["efficiency"][:count]
        least = leq.min(axis=1)
        rest = least.sum()
        cap = float(observation["energy_cap"][0]) * (1.0 + ENERGY_SLACK / 2)
        placement = np.zeros(count, dtype=np.int32)
        energy = 0.0
        for task in range(count):
            rest -= least[task]
            fits = np.flatnonzero((energy + leq[task] + rest <= cap) | (leq[task] == least[task]))
            placement[task] = fits[self.rng.integers(len(fits))]
            energy += leq[task, placement[task]]
        return placement, 0.0
