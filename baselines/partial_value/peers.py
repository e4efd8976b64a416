"""Peers that need no values: equal opportunity, earliest deadline, first in first out, random order."""

from __future__ import annotations

from typing import Any

from schedgym.baselines.partial_value.policy import ValuePolicy
from schedgym.baselines.solvers.dual_prices import DualScratch
from schedgym.core.policy import register_policy
from schedgym.problems.partial_value.schemes import Scratch, Visible, allocate_in_order

__all__ = ["EarliestDeadlineFirst", "EqualOpportunity", "FirstInFirstOut", "Random"]


@register_policy(
    "partial-value/equal-opp",
    source="paper 002, section V",
    deviations="Discrete, where the paper says no more: one task per job and round, in a round the job "
    "served least first, up to the first task that does not fit.",
    views=("allocation", "rule"),
)
class EqualOpportunity(ValuePolicy):
    """The same number of tasks for every job, as far as it may, until a resource is full."""

    def __init__(self) -> None:
        super().__init__("equal-opp", ("allocation", "rule"))


@register_policy(
    "partial-value/edf",
    source="not in the paper: earliest deadline first",
    knows=("deadline",),
    views=("allocation", "rule"),
    needs={"deadlines": "shown"},
)
class EarliestDeadlineFirst(ValuePolicy):
    """Jobs in order of deadline, each as much as fits."""

    def __init__(self) -> None:
        super().__init__("edf", ("allocation", "rule"), urgent=True)


@register_policy(
    "partial-value/fifo", source="not in the paper: first in, first out", views=("allocation", "rule")
)
class FirstInFirstOut(ValuePolicy):
    """Jobs in order of arrival, each as much as fits."""

    def __init__(self) -> None:
        super().__init__("fifo", ("allocation", "rule"))


@register_policy("partial-value/random", source="not in the paper: random order", views=("allocation",))
class Random(ValuePolicy):
    """Jobs in an order drawn for each slot, each as much as fits."""

    def __init__(self) -> None:
        super().__init__("random", ("allocation",))

    def allocate(
        self, observation: dict[str, Any], count: int, rows: Visible, scratch: Scratch, dual: DualScratch
    ) -> None:
        """The tasks of this slot."""
        allocate_in_order(self.discrete, count, self.rng.permutation(count), rows, scratch, self.x)
