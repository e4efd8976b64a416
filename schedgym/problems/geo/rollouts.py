"""Whole episodes by the thesis's algorithms, compiled: what their policies decide, without observations."""

from __future__ import annotations

from typing import Any, NamedTuple

from schedgym.core.jit import helper, pure_kernel
from schedgym.problems.geo.dynamics import DYNAMICS, Environment, advance, count_violations
from schedgym.problems.geo.orders import Options, assign
from schedgym.problems.geo.rules import fair


class ShareRule(NamedTuple):
    """A rule of chapters 4 and 5."""

    rule: int  # index into FAIR_RULES
    timed: bool  # of the opt- rules: completion times are estimated by the known durations


@helper
def assign_all(env: Environment, options: Options) -> None:
    """Decide on the order and the placement of all active jobs."""
    state = env.state
    assign(options, state.scalars.active, state, env.jobs, env, state.order, state.assigned)


@helper
def share_out(env: Environment, sharing: ShareRule) -> None:
    """Decide on the shares."""
    state = env.state
    seconds = state.seconds if sharing.timed else state.seconds[:0]
    fair(sharing.rule, state.scalars.active, state.unfinished, seconds, env.jobs, env, state.share)
    count_violations(env)


access = DYNAMICS.access


@helper
def play(env: Environment, decide: Any, rule: Any, total: float, most: int) -> float:
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
    return play(access(table, tools, 0), assign_all, rule, total, most)


@pure_kernel
def play_shares(table: Any, tools: Any, rule: ShareRule, total: float, most: int) -> float:
    """Play the first environment by shares."""
    return play(access(table, tools, 0), share_out, rule, total, most)


#: action view -> the kernel; see :func:`~schedgym.core.rollouts.play_by_rule`
PLAY: dict[str, Any] = {
    "assignment": play_order,
    "rule": play_order,
    "shares": play_shares,
    "fair-rule": play_shares,
}
