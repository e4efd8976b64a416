"""The policies by name."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from schedgym.papers.zheng2016.model import divisible_tasks, whole_tasks
from schedgym.papers.zheng2016.model.jobs import (
    Amounts,
    Instance,
    Number,
    Outcome,
    Rule,
    State,
    edf,
    fifo,
    gain,
    padded,
    run,
)

__all__ = ["CONTINUOUS", "DEADLINE_POLICIES", "DISCRETE", "policies", "simulate", "slot_gaps"]

CONTINUOUS: dict[str, Rule] = {
    "concave": divisible_tasks.concave,
    "s-greedy": divisible_tasks.s_greedy_continuous,
    "equal-opp": divisible_tasks.equal_opp_continuous,
    "edf": edf,
    "fifo": fifo,
}
DISCRETE: dict[str, Rule] = {
    "m-greedy": whole_tasks.m_greedy,
    "m-greedy-skip": functools.partial(whole_tasks.m_greedy, skip=True),
    "primal-dual": whole_tasks.primal_dual,
    "local-optimal": whole_tasks.local_optimal,
    "deadline-aware": whole_tasks.deadline_aware,
    "s-greedy": whole_tasks.s_greedy,
    "s-greedy-skip": functools.partial(whole_tasks.s_greedy, skip=True),
    "equal-opp": whole_tasks.equal_opp,
    "equal-opp-skip": functools.partial(whole_tasks.equal_opp, skip=True),
    "edf": edf,
    "fifo": fifo,
}
DEADLINE_POLICIES = ("deadline-aware", "edf")


def policies(instance: Instance) -> dict[str, Rule]:
    """Return the policies for the tasks of an instance."""
    return DISCRETE if instance.discrete else CONTINUOUS


def simulate(instance: Instance, policy: str | Rule) -> Outcome:
    """Run a policy."""
    return run(instance, policy if callable(policy) else policies(instance)[policy])


def slot_gaps(instance: Instance, schedule: Sequence[Amounts]) -> list[Number]:
    """Return how much each slot's value lacks to the best of that slot, along the given trajectory.

    Where an optimum is not unique (linear utilities, local-optimal), only values can be compared.
    """
    best = whole_tasks.local_optimal if instance.discrete else divisible_tasks.concave
    rows = padded(instance, schedule)
    gaps: list[Number] = []

    def follow(state: State) -> Amounts:
        x = rows[state.slot - 1]
        gaps.append(gain(state, best(state)) - gain(state, x))
        return x

    run(instance, follow)
    return gaps
