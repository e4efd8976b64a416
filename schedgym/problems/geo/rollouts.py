"""Whole episodes by the thesis's algorithms, compiled: what their policies decide, without observations.

An order is made only as far as free slots ask for it. With a long backlog that is a small part of it: most
jobs have no task that could start before the next decision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from schedgym.core.jit import helper, pure_kernel
from schedgym.problems.geo.dynamics import (
    DYNAMICS,
    Environment,
    advance,
    begin_step,
    count_violations,
    finish_step,
    run_by,
)
from schedgym.problems.geo.orders import Options, begin_order, next_in_order
from schedgym.problems.geo.rules import fair


class ShareRule(NamedTuple):
    """A rule of chapters 4 and 5."""

    rule: int  # index into FAIR_RULES
    timed: bool  # of the opt- rules: completion times are estimated by the known durations


@helper
def begin_to_order(env: Environment, options: Options) -> None:
    """Decide on the part of the order that is not decided row by row."""
    state = env.state
    state.scalars.ordered = begin_order(
        options, state.scalars.active, state, env.jobs, env, state.order, state.assigned
    )


@helper
def order_next(env: Environment, j: int) -> Any:
    """Order one more row; return False if none of the others can have a task assigned to site j."""
    state = env.state
    s = state.scalars
    if s.ordered == s.active or env.assigning.able[j] == 0:
        return False
    state.order[s.ordered] = next_in_order(s.ordered, state, env.jobs, env, state.assigned)
    s.ordered += 1
    return True


@helper
def advance_in_order(env: Environment) -> None:
    """See :func:`~schedgym.problems.geo.dynamics.advance`, by an order that is made as it is needed."""
    begin_step(env)
    finish_step(env, run_by(env, order_next))


@helper
def share_out(env: Environment, sharing: ShareRule) -> None:
    """Decide on the shares."""
    state = env.state
    seconds = state.seconds if sharing.timed else state.seconds[:0]
    fair(sharing.rule, state.scalars.active, state.unfinished, seconds, env.jobs, env, state.share)
    count_violations(env)


access = DYNAMICS.access


@helper
def play(env: Environment, decide: Any, advance: Any, rule: Any, total: float, most: int) -> float:
    """Play up to ``most`` decisions of the episode; return ``total`` with their rewards added."""
    result = env.exchange.result
    result.repaired = False
    while most > 0 and not result.terminated:
        decide(env, rule)
        result.reward = 0.0
        advance(env)
        total += result.reward
        most -= 1
    return total


@pure_kernel
def play_order(table: Any, tools: Any, rule: Options, total: float, most: int) -> float:
    """Play the first environment by an order."""
    return play(access(table, tools, 0), begin_to_order, advance_in_order, rule, total, most)


@pure_kernel
def play_shares(table: Any, tools: Any, rule: ShareRule, total: float, most: int) -> float:
    """Play the first environment by shares."""
    return play(access(table, tools, 0), share_out, advance, rule, total, most)


#: action view -> the kernel; see :func:`~schedgym.core.rollouts.play_by_rule`
PLAY: dict[str, Any] = {
    "assignment": play_order,
    "rule": play_order,
    "shares": play_shares,
    "fair-rule": play_shares,
}
