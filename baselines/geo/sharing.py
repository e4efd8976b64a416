"""SharingPolicy: any rule of chapters 4 and 5 as a policy, in every view that can carry it."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.baselines.geo.policy import GeoPolicy
from schedgym.core.arrays import SHARED, Floats, Integers, Integers32, allocate
from schedgym.core.jit import pure_kernel
from schedgym.core.policy import Interface
from schedgym.core.tables import MADE_HERE, accessor, tabled
from schedgym.errors import InvalidParameter
from schedgym.problems.geo.orders import Cluster, Placing
from schedgym.problems.geo.rollouts import ShareRule
from schedgym.problems.geo.rules import FAIR_RULES, FairNetwork, Sharing, fair

#: in view weights equal weights are these rules, where tasks may start at these sites
EQUAL_WEIGHTS = {"amf": "associated", "gamf": "all"}


def carrying_views(rule: str) -> tuple[str, ...]:
    """Return the views in which a rule can be expressed."""
    return ("shares", "weights", "fair-rule") if rule in EQUAL_WEIGHTS else ("shares", "fair-rule")


class Decision(NamedTuple):
    """Inputs and result of a decision."""

    unfinished: Annotated[Integers32, "job", "group"]
    action: Annotated[Floats, "window", "entry"]
    shown: Annotated[Integers, 1]  # rows of the action that are set


class Deciding(NamedTuple):
    """Arrays and scratch space of one decision."""

    cluster: Annotated[Cluster, SHARED]
    decision: Annotated[Decision, SHARED]
    placing: Placing
    sharing: Sharing
    network: FairNetwork


access = accessor(Deciding)


@pure_kernel
def decide(table: Any, tools: Any, rule: int, n: int, waiting: Any, running: Any, seconds: Any) -> None:
    """Share the sites among the first n jobs of an observation; ``seconds`` without rows: not known."""
    env = access(table, tools, 0)
    unfinished, action, shown = env.decision.unfinished, env.decision.action, env.decision.shown
    groups, width = env.cluster.sites.shape
    for i in range(n):
        for k in range(groups):
            tasks = waiting[i, k]
            for e in range(k * width, k * width + width):
                tasks += running[i, e]
            unfinished[i, k] = tasks
    fair(rule, n, unfinished, seconds, env.cluster, env, action)
    for i in range(n, shown[0]):
        for e in range(action.shape[1]):
            action[i, e] = 0.0
    shown[0] = n


class SharingPolicy(GeoPolicy):
    """Base of the policies that share the sites' slots.

    Args:
        rule: a name of :data:`~schedgym.problems.geo.rules.FAIR_RULES`.
        known_durations: of the opt- rules: estimate completion times by the durations of the unfinished
            tasks, which a clairvoyant environment shows, and not by their number.
    """

    def __init__(self, rule: str, *, known_durations: bool = False) -> None:
        super().__init__(rule, carrying_views(rule))
        if not isinstance(known_durations, bool):
            raise InvalidParameter(f"known_durations: must be True or False, got {known_durations!r}")
        if known_durations and not rule.startswith("opt-"):
            raise InvalidParameter(f"known_durations: only the opt- policies use durations, not {rule}")
        self.known_durations = known_durations

    def needs(self, interface: Interface) -> dict[str, Any]:
        """See :meth:`GeoPolicy.needs`."""
        if interface.view == "weights":
            return {"dispatch_sites": EQUAL_WEIGHTS[self.rule]}
        in_environment = interface.view == "fair-rule" and self.rule.startswith("opt-")
        return {"clairvoyant": self.known_durations} if self.known_durations or in_environment else {}

    def ruled(self, interface: Interface) -> ShareRule | None:
        """See :meth:`GeoPolicy.ruled`."""
        if interface.view not in ("shares", "fair-rule"):
            return None
        return ShareRule(FAIR_RULES.index(self.rule), self.known_durations)

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the policy."""
        super().reset(interface, rng)
        self.code = FAIR_RULES.index(self.rule)
        self.shown = np.zeros(1, dtype=np.int64)
        if self.view == "weights":
            self.ones = np.ones(self.window, dtype=np.float32)
        elif self.view == "shares":
            self.action = np.zeros((self.window, self.groups, self.choices))
            self.unknown = np.zeros((0, self.groups))

    def prepare(self, observation: dict[str, Any], rows: int) -> tuple[Any, Any]:
        """See :meth:`GeoPolicy.prepare`."""
        cluster, sizes = self.cluster(observation), self.sizes(rows)
        decision = allocate(Decision, sizes | {"window": 0})
        action = self.action.reshape(self.window, -1)
        decision = decision._replace(action=action, shown=self.shown)
        return tabled(Deciding(cluster, decision, MADE_HERE, MADE_HERE, MADE_HERE), sizes)

    def __call__(self, observation: dict[str, Any]) -> Any:
        """Return the shares of the rule, in the action of the environment's view."""
        if self.view == "fair-rule":
            return self.code
        if self.view == "weights":
            return self.ones
        count = int(observation["active"][0] - observation["backlog"][0])
        table, running = self.ready(observation, count), observation["running"]
        seconds = observation["seconds"] if self.known_durations else self.unknown
        decide(*table, self.code, count, observation["waiting"], running.reshape(len(running), -1), seconds)
        return self.action
