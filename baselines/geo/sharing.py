"""SharingPolicy: any rule of chapters 4 and 5 as a policy, in every view that can carry it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.baselines.geo.policy import GeoPolicy
from schedgym.core.jit import F8_2, I4_2, I8_1, pack, pure_kernel, unpacker
from schedgym.core.policy import Interface
from schedgym.errors import InvalidParameter
from schedgym.problems.geo.rules import (
    CLOSED,
    FAIR_RULES,
    FairScratch,
    fair,
    make_fair_network,
    make_fair_scratch,
)
from schedgym.solvers.balance import PlacementScratch, SiteLists, make_placement_scratch
from schedgym.solvers.linear import linear_completion_shares, linear_max_min
from schedgym.solvers.max_min import Network, isolated_share

__all__ = ["SharingPolicy", "carrying_views"]

METHODS = ("flow", "lp")
#: in view weights equal weights are these rules, where tasks may start at these sites
EQUAL_WEIGHTS = {"amf": "associated", "gamf": "all"}


def carrying_views(rule: str) -> tuple[str, ...]:
    """The views in which a rule can be expressed."""
    return ("shares", "weights", "fair-rule") if rule in EQUAL_WEIGHTS else ("shares", "fair-rule")


class Decision(NamedTuple):
    """What a policy decides by, and what it has decided. W window rows, E entries."""

    slots: I8_1  # [M]
    unfinished: I4_2  # [rows, K]
    action: F8_2  # [W, E]
    shown: I8_1  # [2] rows of the action that are set; the rule


unpack = unpacker(SiteLists, Network, PlacementScratch, FairScratch, Decision)


@pure_kernel
def decide(table: Any, n: int, waiting: npt.NDArray[np.int32], running: npt.NDArray[np.int32]) -> None:
    """Share the sites among the first n jobs of an observation."""
    lists, net, room, scratch, decision = unpack(table)
    width = lists.sites.shape[1]
    unfinished = decision.unfinished
    for i in range(n):
        for k in range(unfinished.shape[1]):
            tasks = waiting[i, k]
            for e in range(k * width, k * width + width):
                tasks += running[i, e]
            unfinished[i, k] = tasks
    action = decision.action
    fair(decision.shown[1], n, unfinished, decision.slots, lists, net, room, scratch, action)
    for i in range(n, decision.shown[0]):
        for e in range(action.shape[1]):
            action[i, e] = 0.0
    decision.shown[0] = n


class SharingPolicy(GeoPolicy):
    """Base of the policies that share the sites' slots.

    Args:
        rule: a name of :data:`~schedgym.problems.geo.rules.FAIR_RULES`.
        method: "flow", or "lp": the thesis's linear programs, solved by HiGHS; the same aggregates, up to
            1e-7 slots, and thousands of times slower.
    """

    def __init__(self, rule: str, *, method: str = "flow") -> None:
        super().__init__(rule, carrying_views(rule))
        if method not in METHODS:
            raise InvalidParameter(f"method: must be 'flow' or 'lp', got {method!r}")
        self.method = method

    def beyond(self, interface: Interface) -> dict[str, Any]:
        """See :meth:`GeoPolicy.beyond`."""
        return {"method": "lp"} if self.method == "lp" and interface.view != "shares" else {}

    def needs(self, interface: Interface) -> dict[str, Any]:
        """See :meth:`GeoPolicy.needs`."""
        return {"dispatch_sites": EQUAL_WEIGHTS[self.rule]} if interface.view == "weights" else {}

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the policy."""
        super().reset(interface, rng)
        self.code = FAIR_RULES.index(self.rule)
        self.shown = np.array([0, self.code], dtype=np.int64)
        if self.view == "weights":
            self.ones = np.ones(self.window, dtype=np.float32)
        elif self.view == "shares":
            self.action = np.zeros((self.window, self.groups, self.choices))

    def prepare(self, observation: dict[str, Any], rows: int) -> Any:
        """See :meth:`GeoPolicy.prepare`."""
        lists, slots = self.lists(observation)
        shape = (rows, self.groups, self.choices, self.sites)
        bundles = (
            lists,
            make_fair_network(*shape),
            make_placement_scratch(self.groups, self.sites),
            make_fair_scratch(*shape),
            Decision(
                slots=slots,
                unfinished=np.zeros((rows, self.groups), dtype=np.int32),
                action=self.action.reshape(self.window, -1),
                shown=self.shown,
            ),
        )
        return pack(*bundles), bundles

    def __call__(self, observation: dict[str, Any]) -> Any:
        """The shares of the rule, in the action of the environment's view."""
        if self.view == "fair-rule":
            return self.code
        if self.view == "weights":
            return self.ones
        count = int(observation["active"][0] - observation["backlog"][0])
        if self.method == "lp":
            return self.solve(observation, count)
        table, _ = self.ready(observation, count)
        running = observation["running"]
        decide(table, count, observation["waiting"], running.reshape(len(running), -1))
        return self.action

    def solve(self, observation: dict[str, Any], count: int) -> npt.NDArray[np.float64]:
        """The shares by linear programs."""
        lists, slots = self.lists(observation)
        sites = lists.sites
        unfinished = observation["waiting"][:count] + observation["running"][:count].sum(axis=2)
        demand = unfinished.astype(np.int64)
        apart = self.rule.endswith("gamf")
        if not apart:
            demand = np.zeros((count, self.sites), dtype=np.int64)
            for k in range(self.groups):
                demand[:, sites[k, 0]] += unfinished[:, k]
            sites = np.arange(self.sites)[:, None]
        floors = None
        if "sig" in self.rule:
            floors = isolated_share(demand, sites, slots) if apart else np.minimum(demand, slots / count)
        aggregates, shares = linear_max_min(demand, sites, slots, floors=floors)
        if self.rule.startswith("opt-"):
            order = np.argsort(unfinished.sum(axis=1), kind="stable")
            held = None if apart else floors
            shares, _ = linear_completion_shares(demand, sites, slots, aggregates, floors=held, order=order)
        self.action[: max(count, int(self.shown[0]))] = 0.0
        self.shown[0] = count
        if apart:
            self.action[:count] = np.maximum(shares, 0.0)
            return self.action
        self.action[:count] = CLOSED
        for k in range(self.groups):
            j = lists.sites[k, 0]
            part = unfinished[:, k] / np.maximum(demand[:, j], 1)
            self.action[:count, k, 0] = np.maximum(shares[:, j, 0], 0.0) * part
        return self.action
