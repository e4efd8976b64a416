"""RulePolicy: the named rules, and given orders, in every view that can carry them."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.baselines.flowtime.policy import FlowtimePolicy, clear_rest, seen_rows
from schedgym.core.arrays import SHARED, Floats32, Integers
from schedgym.core.jit import pure_kernel
from schedgym.core.tables import accessor, pack
from schedgym.problems.flowtime import rules
from schedgym.problems.flowtime.problem import KINDS
from schedgym.solvers.transport import TransportScratch

GIVEN = -1  # rule of a policy that brings its own order


def carrying_views(rule: str) -> tuple[str, ...]:
    """Return the views in which a rule (or "random") can be expressed."""
    views = ["allocation"]
    if rule not in ("tetris", "drf", "fair"):
        views.append("priority")
    if rule in rules.RULES:
        views.append("rule")
    return tuple(views)


class Decision(NamedTuple):
    """Inputs and result of a decision.

    Of ``granted`` and ``scores``, the one that the view does not use has no rows.
    """

    options: Annotated[Integers, 2]  # rule, how
    given: Annotated[Integers, "row"]  # an order
    granted: Annotated[Integers, "slot", "server"]
    scores: Annotated[Floats32, "slot", 1]
    shown: Annotated[Integers, 1]  # rows of the action that are set


class Deciding(NamedTuple):
    """Arrays and scratch space of one decision."""

    scratch: Annotated[rules.Scratch, SHARED]
    net: Annotated[TransportScratch, SHARED]
    servers: Annotated[rules.Servers, SHARED]
    decision: Annotated[Decision, SHARED]


access = accessor(Deciding)


@pure_kernel
def decide(table: Any, seen: Any, n: int) -> None:
    """Decide on the first n jobs of an observation."""
    env, rows = access(table, table, 0), seen_rows(seen)
    scratch, net, servers, decision = env.scratch, env.net, env.servers, env.decision
    rule = decision.options[0]
    how = decision.options[1]
    granted = decision.granted
    scores = decision.scores
    if rule == GIVEN:
        for x in range(n):
            scratch.order[x] = decision.given[x]
    if scores.shape[0] > 0:
        if rule != GIVEN:
            rules.order_by_rule(rule, n, rows, scratch)
        for x in range(n):
            scores[scratch.order[x], 0] = 1.0 - x / scores.shape[0]
    elif rule == GIVEN:
        rules.allocate(how, n, n, rows, servers, scratch, net, granted)
    else:
        rules.allocate_by_rule(rule, how, n, rows, servers, scratch, net, granted)
    clear_rest(n, decision)


class RulePolicy(FlowtimePolicy):
    """Base of the policies that follow a rule.

    Args:
        rule: a name of :data:`~schedgym.problems.flowtime.rules.CODES`, or "random".
        packing: of :class:`FlowtimePolicy`.
        label: name of the policy in errors, by default the rule.
        views: the action views that can express it, by default all that can express the rule.
        kinds: the kinds of jobs that it can schedule, by default all.
    """

    def __init__(
        self,
        rule: str,
        packing: str | None = None,
        *,
        label: str | None = None,
        views: tuple[str, ...] | None = None,
        kinds: tuple[str, ...] = KINDS,
    ) -> None:
        super().__init__(label or rule, views or carrying_views(rule), kinds, packing)
        self.rule = rule
        self.code = rules.CODES.get(rule, GIVEN)

    def prepare(self, observation: dict[str, Any], rows: int) -> Any:
        """See :meth:`FlowtimePolicy.prepare`."""
        decision = Decision(
            options=np.array([self.code, self.how(observation)], dtype=np.int64),
            given=np.zeros(rows if self.code == GIVEN else 0, dtype=np.int64),
            granted=self.granted,
            scores=self.scores,
            shown=self.shown,
        )
        scratch, net = rules.make_scratch(rows, self.servers), self.network(observation, rows)
        bundles = Deciding(scratch, net, self.capacities(observation), decision)
        return pack(bundles), bundles

    def __call__(self, observation: dict[str, Any]) -> Any:
        """Return the decision of the rule, in the action of the environment's view."""
        if self.view == "rule":
            return self.code
        count = int(observation["active"][0] - observation["backlog"][0])
        table = self.ready(observation, count)
        if self.code == GIVEN:
            self.work[1].decision.given[:count] = self.rng.permutation(count)
        decide(table, self.look(observation), count)
        return self.action
