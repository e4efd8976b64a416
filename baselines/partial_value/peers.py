"""Peers that need no values: equal opportunity, earliest deadline, first in first out, random order."""

from __future__ import annotations

from typing import Any

from schedgym.baselines.partial_value.policy import ValuePolicy
from schedgym.core.policy import register_policy
from schedgym.problems.partial_value.rules import Rows, Scratch, allocate_in_order
from schedgym.solvers.dual_prices import DualScratch

__all__ = ["EarliestDeadlineFirst", "EqualOpportunity", "FirstInFirstOut", "Random"]


@register_policy(
    "partial-value/equal-opp",
    source="zheng2016, section V",
    deviations="Discrete, where the paper says no more: one task per job and round, in a round the job "
    "served least first, up to the first task that does not fit.",
    views=("allocation", "rule"),
)
class EqualOpportunity(ValuePolicy):
    """The same number of tasks for every job, as far as it may, until a resource is full.

    Continuous: one amount for all jobs, cut off at their caps, as large as fits; it grows in steps, each at
    least to the next cap. Discrete: by bisection the largest whole number that fits for all; then one task
    more for jobs below their caps, those served least so far first, ties by arrival, until one does not fit.
    Jobs of which no task fits are out there. Nothing is remembered.

    Complexity: continuous O(D N m) per slot for D different caps at worst (few steps as a rule), N visible
    jobs and m resources; discrete O(N m log U + S) for caps up to U, where S is Shell's sort of N numbers
    (about N log N). In view rule the environment does it.
    """

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
    """Jobs in order of deadline, each as much as fits.

    In every slot the visible jobs are sorted by deadline, ties by arrival. Each in turn takes the most that
    its cap and all resources admit (discrete: whole tasks); one that does not fit blocks none of the others.
    Values play no part, and nothing is remembered.

    Complexity: O(N m + S) per slot for N visible jobs and m resources, where S is Shell's sort of N numbers
    (about N log N). In view rule the environment does it.
    """

    def __init__(self) -> None:
        super().__init__("edf", ("allocation", "rule"), urgent=True)


@register_policy(
    "partial-value/fifo", source="not in the paper: first in, first out", views=("allocation", "rule")
)
class FirstInFirstOut(ValuePolicy):
    """Jobs in order of arrival, each as much as fits.

    In every slot the visible jobs have their turns as they arrived. Each in turn takes the most that its cap
    and all resources admit (discrete: whole tasks); one that does not fit blocks none of the others. Values
    play no part, and nothing is remembered.

    Complexity: O(N m) per slot for N visible jobs and m resources. In view rule the environment does it.
    """

    def __init__(self) -> None:
        super().__init__("fifo", ("allocation", "rule"))


@register_policy("partial-value/random", source="not in the paper: random order", views=("allocation",))
class Random(ValuePolicy):
    """Jobs in an order drawn for each slot, each as much as fits.

    In every slot an order of the visible jobs is drawn, all orders alike. Each in turn takes the most that
    its cap and all resources admit (discrete: whole tasks); one that does not fit blocks none of the others.
    Values play no part, and nothing is remembered.

    Complexity: O(N m) per slot for N visible jobs and m resources.
    """

    def __init__(self) -> None:
        super().__init__("random", ("allocation",))

    def allocate(
        self, observation: dict[str, Any], count: int, rows: Rows, scratch: Scratch, dual: DualScratch
    ) -> None:
        """The tasks of this slot."""
        allocate_in_order(self.discrete, count, self.rng.permutation(count), rows, scratch, self.x)
