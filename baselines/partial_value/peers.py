"""Rivals that need no utilities: equal opportunity, earliest deadline, first in first out, random order."""

from __future__ import annotations

from typing import Any

from schedgym.baselines.partial_value.policy import ValuePolicy
from schedgym.core.policy import register_policy
from schedgym.problems.partial_value.rules import Rows, Scratch, allocate_in_order, equal_counts
from schedgym.solvers.dual_prices import DualScratch

__all__ = ["EarliestDeadlineFirst", "EqualOpportunity", "FirstInFirstOut", "Random"]


@register_policy(
    "partial-value/equal-opp",
    source="zheng2016, section V",
    deviations="The paper leaves the discrete model open. There each round serves one task per job, the job "
    "served least first, up to the first task that does not fit (with skip the other jobs go on).",
    views=("allocation", "rule"),
)
class EqualOpportunity(ValuePolicy):
    """Gives every job the same number of tasks, as far as its cap allows, until a resource is full.

    The paper's fair rival treats all jobs alike. Use it as the baseline without knowledge of utilities and
    deadlines; it suits concave utilities, of which the first tasks are worth most. It is cheap.

    Continuous model: one amount for all jobs, cut off at their caps, as large as fits; it grows in steps,
    each at least to the next cap. Discrete model: by bisection the largest whole number that fits for all;
    then one task more for jobs below their caps, those served least so far first, ties by arrival, until one
    does not fit; with ``skip`` the other jobs go on in the same way. There, jobs of which no task fits are
    left out.

    Complexity: continuous O(D N m) per slot for D different caps at worst (few steps as a rule), N visible
    jobs and m resources; discrete O(N m log U + S) for caps up to U, where S is Shell's sort of N numbers
    (about N log N); with skip N more per round after a misfit. In view rule the environment does this work.

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

    The classical rule for deadlines ignores what jobs are worth. Use it as the baseline that needs deadlines
    only; where not all jobs can be served, it wastes capacity on urgent jobs of little value. It is cheap.

    In every slot the visible jobs are sorted by deadline, ties by arrival. Each in turn takes the most that
    its cap and all resources admit (discrete: whole tasks); one that does not fit blocks none of the others.

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

    Use it as the baseline without any knowledge: neither utilities nor deadlines play a part. It is the
    cheapest policy, and early jobs can use up the capacity that later ones need more.

    In every slot the visible jobs have their turns as they arrived. Each in turn takes the most that its cap
    and all resources admit (discrete: whole tasks); one that does not fit blocks none of the others.

    Complexity: O(N m) per slot for N visible jobs and m resources. In view rule the environment does this
    work.
    """

    def __init__(self) -> None:
        super().__init__("fifo", ("allocation", "rule"))


@register_policy("partial-value/random", source="not in the paper: random order", views=("allocation",))
class Random(ValuePolicy):
    """Serves jobs in an order drawn for each slot, each as much as fits.

    Use it as the baseline that any rule should beat: neither utilities nor deadlines play a part. It is
    cheap.

    In every slot an order of the visible jobs is drawn; all orders are equally likely. Each in turn takes the
    most that its cap and all resources admit (discrete: whole tasks); one that does not fit blocks none of
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
