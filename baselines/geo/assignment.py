"""AssignmentPolicy: any rule of chapter 3 as a policy, in every view that can carry it."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.baselines.geo.policy import GeoPolicy
from schedgym.core.arrays import SHARED, Floats, Integers, Integers32, allocate
from schedgym.core.jit import pure_kernel
from schedgym.core.policy import Interface
from schedgym.core.tables import MADE_HERE, accessor, tabled
from schedgym.errors import InvalidParameter
from schedgym.problems.geo import orders

GIVEN = -1  # rule of a policy that brings its own order
PLACEMENTS = ("greedy", "associated")
ENVIRONMENT_FLAGS = {"fine": True, "literal": False, "together": False}  # what the environment's own rules do


def carrying_views(rule: str) -> tuple[str, ...]:
    """Return the views in which a rule (or "random") can be expressed."""
    views = ["assignment"]
    if rule in ("fcfs", "srpt", "swag", "ata-greedy", "random"):
        views.append("priority")
    if rule in ("fcfs", "srpt", "swag"):
        views.append("pick")
    if rule in orders.ASSIGN_RULES:
        views.append("rule")
    return tuple(views)


class Decision(NamedTuple):
    """Result of a decision."""

    order: Annotated[Integers, "job"]
    counts: Annotated[Integers32, "job", "entry"]
    action: Annotated[Floats, "action_row", "action_column"]  # no rows where the view has another action
    shown: Annotated[Integers, 1]  # rows of the action that are set


class Deciding(NamedTuple):
    """Arrays and scratch space of one decision."""

    cluster: Annotated[orders.Cluster, SHARED]
    decision: Annotated[Decision, SHARED]
    placing: orders.Placing
    assigning: orders.Assigning


access = accessor(Deciding)


@pure_kernel
def decide(table: Any, tools: Any, options: orders.Options, n: int, rows: orders.Rows) -> None:
    """Decide on the first n jobs of an observation, and write the action if there is one."""
    env = access(table, tools, 0)
    order, counts = env.decision.order, env.decision.counts
    if options.rule == GIVEN:
        orders.place_in_order(options, n, order, rows, env.cluster, env, counts)
    else:
        orders.assign(options, n, rows, env.cluster, env, order, counts)
    action, shown = env.decision.action, env.decision.shown
    length = action.shape[0]
    if length > 0:
        for x in range(n):
            i = order[x]
            action[i, 0] = 1.0 - x / length
            for e in range(counts.shape[1]):
                action[i, 1 + e] = counts[i, e]
        for i in range(n, shown[0]):
            for c in range(action.shape[1]):
                action[i, c] = 0.0
        shown[0] = n


@pure_kernel
def first_in_order(
    order: Integers,
    n: int,
    waiting: Integers32,
    sites: Integers,
    site: int,
) -> int:
    """Return the order's first row with a waiting task whose associated site is ``site``; 0 if none has."""
    for x in range(n):
        i = order[x]
        for k in range(sites.shape[0]):
            if sites[k, 0] == site and waiting[i, k] > 0:
                return i
    return 0


class AssignmentPolicy(GeoPolicy):
    """Base of the policies that order jobs and assign tasks.

    Args:
        rule: a name of :data:`~schedgym.problems.geo.orders.ASSIGN_RULES`, or "random".
        fine: balance in levels that are multiples of 1 / gcd(slots); False: whole tasks per slot, as printed.
        literal: place greedily by the thesis's formula.
        placement: of fcfs, srpt and random: "greedy" or "associated"; None: the environment's placement in
            views priority and rule, greedy in view assignment.
        together: of scta: jobs of one instant are placed in one pass.
    """

    def __init__(
        self,
        rule: str,
        *,
        fine: bool = True,
        literal: bool = False,
        placement: str | None = None,
        together: bool = False,
    ) -> None:
        super().__init__(rule, carrying_views(rule))
        self.flags = {"fine": fine, "literal": literal, "together": together}
        for name, value in self.flags.items():
            if not isinstance(value, bool):
                raise InvalidParameter(f"{name}: must be True or False, got {value!r}")
        if placement not in (None, *PLACEMENTS):
            raise InvalidParameter(f"placement: must be 'greedy' or 'associated', got {placement!r}")
        self.placement = placement

    def beyond(self, interface: Interface) -> dict[str, Any]:
        """See :meth:`GeoPolicy.beyond`."""
        if interface.view == "assignment":
            return {}
        given: dict[str, Any] = {
            name: value for name, value in self.flags.items() if value != ENVIRONMENT_FLAGS[name]
        }
        if interface.view == "pick" and self.placement == "greedy":
            given["placement"] = self.placement
        return given

    def needs(self, interface: Interface) -> dict[str, Any]:
        """See :meth:`GeoPolicy.needs`."""
        if interface.view == "pick":
            return {"dispatch_sites": "associated"}
        if interface.view == "priority" and self.rule in ("swag", "ata-greedy"):
            return {"placement": "associated" if self.rule == "swag" else "greedy"}
        if interface.view in ("priority", "rule") and self.placement is not None:
            return {"placement": self.placement}
        return {}

    def ruled(self, interface: Interface) -> orders.Options | None:
        """See :meth:`GeoPolicy.ruled`."""
        if self.rule not in orders.ASSIGN_RULES or interface.view not in ("assignment", "rule"):
            return None
        placement = self.placement if interface.view == "assignment" else interface.parameters["placement"]
        return orders.Options(
            orders.ASSIGN_RULES.index(self.rule), greedy=placement != "associated", **self.flags
        )

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the policy."""
        super().reset(interface, rng)
        self.code = GIVEN if self.rule == "random" else orders.ASSIGN_RULES.index(self.rule)
        greedy = self.placement != "associated" and self.view != "pick"
        self.options = orders.Options(self.code, greedy=greedy, **self.flags)
        rows = self.window if self.view == "assignment" else 0
        self.action = np.zeros((rows, 1 + self.groups * self.choices))
        self.shown = np.zeros(1, dtype=np.int64)
        self.order = np.zeros(0, dtype=np.int64)
        if self.view == "priority":
            self.steps = (1.0 - np.arange(self.window) / self.window).astype(np.float32)
            self.scores = np.zeros(self.window, dtype=np.float32)

    def prepare(self, observation: dict[str, Any], rows: int) -> tuple[Any, Any]:
        """See :meth:`GeoPolicy.prepare`."""
        cluster, sizes = self.cluster(observation), self.sizes(rows)
        decision = allocate(Decision, sizes | {"action_row": 0, "action_column": 0})
        decision.order[: len(self.order)] = self.order[:rows]
        self.order = decision.order
        self.decision = decision._replace(action=self.action, shown=self.shown)
        self.lists = cluster
        return tabled(Deciding(cluster, self.decision, MADE_HERE, MADE_HERE), sizes)

    def decide(self, observation: dict[str, Any], count: int, assigned: Any) -> None:
        """Set ``order``, and the action in view assignment."""
        table = self.ready(observation, count)
        if self.code == GIVEN:
            self.order[:count] = self.rng.permutation(count)
        rows = orders.Rows(observation["waiting"], observation["remaining"], assigned, observation["new"])
        decide(*table, self.options, count, rows)

    def __call__(self, observation: dict[str, Any]) -> Any:
        """Return the decision of the rule, in the action of the environment's view."""
        if self.view == "rule":
            return self.code
        count = int(observation["active"][0] - observation["backlog"][0])
        if self.view == "pick":
            return self.pick(observation, count)
        assigned = observation["assigned"]
        self.decide(observation, count, assigned.reshape(len(assigned), -1))
        if self.view == "assignment":
            return self.action
        self.scores[count : int(self.shown[0])] = 0.0
        self.shown[0] = count
        self.scores[self.order[:count]] = self.steps[:count]
        return self.scores

    def pick(self, observation: dict[str, Any], count: int) -> int:
        """Return the job that takes the open slot, the first in the order made after the last event."""
        self.ready(observation, count)
        event = observation["event"]
        if event[0] or event[1]:
            counts = self.decision.counts  # all tasks are at their associated sites
            counts[:count, :: self.choices] = observation["waiting"][:count]
            self.decide(observation, count, counts)
        site = observation["open_site"]
        return int(first_in_order(self.order, count, observation["waiting"], self.lists.sites, int(site)))
