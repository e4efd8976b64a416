"""The policies by name."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from schedgym.papers.zheng2016.model.divisible_tasks import concave, equal_opp_continuous, s_greedy_continuous
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
from schedgym.papers.zheng2016.model.whole_tasks import (
    deadline_aware,
    equal_opp,
    local_optimal,
    m_greedy,
    primal_dual,
    s_greedy,
)

CONTINUOUS: dict[str, Rule] = {
    "concave": concave,
    "s-greedy": s_greedy_continuous,
    "equal-opp": equal_opp_continuous,
    "edf": edf,
    "fifo": fifo,
}
DISCRETE: dict[str, Rule] = {
    "m-greedy": m_greedy,
    "m-greedy-skip": functools.partial(m_greedy, skip=True),
    "primal-dual": primal_dual,
    "local-optimal": local_optimal,
    "deadline-aware": deadline_aware,
    "s-greedy": s_greedy,
    "s-greedy-skip": functools.partial(s_greedy, skip=True),
    "equal-opp": equal_opp,
    "equal-opp-skip": functools.partial(equal_opp, skip=True),
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
    best = local_optimal if instance.discrete else concave
    rows = padded(instance, schedule)
    gaps: list[Number] = []

    def follow(state: State) -> Amounts:
        x = rows[state.slot - 1]
        gaps.append(gain(state, best(state)) - gain(state, x))
        return x

    run(instance, follow)
    return gaps
