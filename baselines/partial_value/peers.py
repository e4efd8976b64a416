"""Policies that need no utilities: equal opportunity, earliest deadline, first in first out, random order."""

from __future__ import annotations

from typing import Any

from schedgym.baselines.partial_value.policy import ValuePolicy
from schedgym.core.policy import register_policy
from schedgym.problems.partial_value.rules import Rows, Scratch, allocate_in_order, equal_counts
from schedgym.solvers.dual_prices import DualScratch


@register_policy(
    "partial-value/equal-opp",
    source="zheng2016, section V",
    deviations="The paper does not describe the discrete model. Here each round serves one task per job, the "
    "job served least first, up to the first task that does not fit (with skip the other jobs go on).",
    views=("allocation", "rule"),
)
class EqualOpportunity(ValuePolicy):
    """Gives every job the same number of tasks, as far as its cap allows, until a resource is full.

    The paper compares its algorithms with this policy, which treats all jobs in the same way. Use it as a
    baseline that needs neither utilities nor deadlines. It does well with concave utilities, where the first
    tasks of a job are worth most. It is fast.

    Continuous model: all jobs get the same amount, but at most their cap; the amount is increased, from one
    cap to the next, until a resource is full. Discrete model: all jobs get the largest whole number that
    fits, found by bisection. Then jobs below their caps get one more task each, those that were served least
    first, ties by arrival, until a task does not fit (with ``skip`` the other jobs go on). Jobs whose tasks
    do not fit into an empty slot are left out.

    Complexity: continuous O(D N m) per slot for D different caps at worst (few steps as a rule), N visible
    jobs and m resources; discrete O(N m log U + S) for caps up to U, where S is Shell's sort of N numbers
    (about N log N); with skip N more for each round after the first task that does not fit. In view rule the
    environment does this work.

    Args:
        skip: pass over tasks that do not fit instead of stopping (discrete model, view allocation).
    """

    def __init__(self, skip: bool = False) -> None:
        super().__init__("equal-opp", ("allocation", "rule"), skip=skip)

    def allocate(
        self, observation: dict[str, Any], count: int, rows: Rows, scratch: Scratch, dual: DualScratch
    ) -> None:
        """Allocate the tasks of this slot."""
        if self.skip:
            equal_counts(True, count, rows, scratch, self.x)
        else:
            super().allocate(observation, count, rows, scratch, dual)


@register_policy(
    "partial-value/edf",
    source="not in the paper: earliest deadline first",
    knows=("deadline",),
    views=("allocation", "rule"),
    needs={"deadlines": "shown"},
)
class EarliestDeadlineFirst(ValuePolicy):
    """Serves jobs in order of deadline, each as much as fits.

    The classical rule for deadlines ignores the values of jobs. Use it as a baseline that needs deadlines
    only. If not all jobs can be served, it spends capacity on urgent jobs of little value. It is fast.

    In every slot the visible jobs are sorted by deadline, ties by arrival. Each in turn takes the most that
    its cap and all resources admit (discrete: whole tasks); a job that does not fit does not block the
    others.

    Complexity: O(N m + S) per slot for N visible jobs and m resources, where S is Shell's sort of N numbers
    (about N log N). In view rule the environment does this work.
    """

    def __init__(self) -> None:
        super().__init__("edf", ("allocation", "rule"), urgent=True)


@register_policy(
    "partial-value/fifo", source="not in the paper: first in, first out", views=("allocation", "rule")
)
class FirstInFirstOut(ValuePolicy):
    """Serves jobs in order of arrival, each as much as fits.

    Use it as a baseline that needs neither utilities nor deadlines. It is the fastest policy, but early jobs
    can take capacity that more valuable later jobs need.

    In every slot the visible jobs are served in order of arrival. Each in turn takes the most that its cap
    and all resources admit (discrete: whole tasks); a job that does not fit does not block the others.

    Complexity: O(N m) per slot for N visible jobs and m resources. In view rule the environment does this
    work.
    """

    def __init__(self) -> None:
        super().__init__("fifo", ("allocation", "rule"))


@register_policy("partial-value/random", source="not in the paper: random order", views=("allocation",))
class Random(ValuePolicy):
    """Serves jobs in random order, drawn anew in every slot, each as much as fits.

    Use it as the baseline that any rule should beat. It needs neither utilities nor deadlines, and is fast.

    In every slot an order of the visible jobs is drawn; all orders are equally likely. Each in turn takes the
    most that its cap and all resources admit (discrete: whole tasks); a job that does not fit does not block
    the others.

    Complexity: O(N m) per slot for N visible jobs and m resources.
    """

    def __init__(self) -> None:
        super().__init__("random", ("allocation",))

    def allocate(
        self, observation: dict[str, Any], count: int, rows: Rows, scratch: Scratch, dual: DualScratch
    ) -> None:
        """Allocate the tasks of this slot."""
        allocate_in_order(self.discrete, count, self.rng.permutation(count), rows, scratch, self.x)
