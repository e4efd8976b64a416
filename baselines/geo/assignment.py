"""AssignmentPolicy: any rule of chapter 3 as a policy, in every view that can carry it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.baselines.geo.policy import GeoPolicy
from schedgym.core.jit import F8_2, I4_2, I8_1, pack, pure_kernel, unpacker
from schedgym.core.policy import Interface
from schedgym.errors import InvalidParameter
from schedgym.problems.geo.rules import (
    ASSIGN_RULES,
    AssignScratch,
    assign,
    make_assign_scratch,
    place_in_order,
)
from schedgym.solvers.balance import PlacementScratch, SiteLists, make_placement_scratch

__all__ = ["AssignmentPolicy", "carrying_views"]

GIVEN = -1  # rule of a policy that brings its own order
PLACEMENTS = ("greedy", "associated")


def carrying_views(rule: str) -> tuple[str, ...]:
    """The views in which a rule (or "random") can be expressed."""
    views = ["assignment"]
    if rule in ("fcfs", "srpt", "swag", "ata-greedy", "random"):
        views.append("priority")
    if rule in ("fcfs", "srpt", "swag"):
        views.append("pick")
    if rule in ASSIGN_RULES:
        views.append("rule")
    return tuple(views)


class Decision(NamedTuple):
    """What a policy decides by, and what it has decided. W window rows, E entries."""

    options: I8_1  # [5] rule, fine, literal, greedy, together
    slots: I8_1  # [M]
    order: I8_1  # [rows]
    counts: I4_2  # [rows, E]
    action: F8_2  # [W, 1 + E], or empty
    shown: I8_1  # [1] rows of the action that are set


unpack = unpacker(SiteLists, PlacementScratch, AssignScratch, Decision)


@pure_kernel
def decide(
    table: Any,
    n: int,
    waiting: npt.NDArray[np.int32],
    remaining: npt.NDArray[np.int32],
    assigned: npt.NDArray[np.int32],
    new: npt.NDArray[np.int8],
) -> None:
    """Decide on the first n jobs of an observation; into the action, if there is one."""
    lists, room, scratch, decision = unpack(table)
    rule = decision.options[0]
    fine = decision.options[1] != 0
    literal = decision.options[2] != 0
    greedy = decision.options[3] != 0
    together = decision.options[4] != 0
    slots = decision.slots
    order = decision.order
    counts = decision.counts
    if rule == GIVEN:
        place_in_order(greedy, literal, n, order, waiting, slots, lists, room, scratch, counts)
    else:
        assign(
            rule,
            fine,
            literal,
            greedy,
            together,
            n,
            waiting,
            remaining,
            assigned,
            new,
            slots,
            lists,
            room,
            scratch,
            order,
            counts,
        )
    action = decision.action
    rows = action.shape[0]
    if rows > 0:
        for x in range(n):
            i = order[x]
            action[i, 0] = 1.0 - x / rows
            for e in range(counts.shape[1]):
                action[i, 1 + e] = counts[i, e]
        for i in range(n, decision.shown[0]):
            for c in range(action.shape[1]):
                action[i, c] = 0.0
        decision.shown[0] = n


@pure_kernel
def first_in_order(
    order: npt.NDArray[np.int64],
    n: int,
    waiting: npt.NDArray[np.int32],
    sites: npt.NDArray[np.int64],
    site: int,
) -> int:
    """The first row of the order with a waiting task that has ``site`` as its associated site; 0 if none."""
    for x in range(n):
        i = order[x]
        for k in range(sites.shape[0]):
            if sites[k, 0] == site and waiting[i, k] > 0:
                return i
    return 0


class AssignmentPolicy(GeoPolicy):
    """Base of the policies that order jobs and assign tasks.

    Args:
        rule: a name of :data:`~schedgym.problems.geo.rules.ASSIGN_RULES`, or "random".
        fine: of balance: levels in multiples of 1 / gcd(slots).
        literal: of the greedy placement: the thesis's formula.
        placement: of fcfs, srpt and random: "greedy" or "associated"; None: what the environment places by
            in views priority and rule, greedy in view assignment.
        together: of scta: jobs of one instant are placed in one pass.
    """

    def __init__(
        self,
        rule: str,
        *,
        fine: bool = False,
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
        given: dict[str, Any] = {name: True for name, value in self.flags.items() if value}
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

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the policy."""
        super().reset(interface, rng)
        self.code = GIVEN if self.rule == "random" else ASSIGN_RULES.index(self.rule)
        greedy = self.placement != "associated" and self.view != "pick"
        flags = self.flags
        self.options = np.array(
            [self.code, flags["fine"], flags["literal"], greedy, flags["together"]], dtype=np.int64
        )
        entries = self.groups * self.choices
        self.action = np.zeros((self.window if self.view == "assignment" else 0, 1 + entries))
        self.shown = np.zeros(1, dtype=np.int64)
        self.order = np.zeros(0, dtype=np.int64)
        if self.view == "priority":
            self.steps = (1.0 - np.arange(self.window) / self.window).astype(np.float32)
            self.scores = np.zeros(self.window, dtype=np.float32)

    def prepare(self, observation: dict[str, Any], rows: int) -> Any:
        """See :meth:`GeoPolicy.prepare`."""
        lists, slots = self.lists(observation)
        order = np.zeros(rows, dtype=np.int64)
        order[: len(self.order)] = self.order[:rows]
        self.order = order
        entries = self.groups * self.choices
        bundles = (
            lists,
            make_placement_scratch(self.groups, self.sites),
            make_assign_scratch(rows, self.groups, self.choices, self.sites),
            Decision(
                options=self.options,
                slots=slots,
                order=order,
                counts=np.zeros((rows, entries), dtype=np.int32),
                action=self.action,
                shown=self.shown,
            ),
        )
        return pack(*bundles), bundles

    def decide(self, observation: dict[str, Any], count: int, assigned: Any) -> None:
        """Set ``order``, and the action in view assignment."""
        table, _ = self.ready(observation, count)
        if self.code == GIVEN:
            self.order[:count] = self.rng.permutation(count)
        decide(table, count, observation["waiting"], observation["remaining"], assigned, observation["new"])

    def __call__(self, observation: dict[str, Any]) -> Any:
        """The decision of the rule, in the action of the environment's view."""
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
        """The job that takes the open slot: the first in the order that has kept since the last event."""
        _, (lists, _, _, decision) = self.ready(observation, count)
        event = observation["event"]
        if event[0] or event[1]:
            counts = decision.counts  # all tasks are at their associated sites
            counts[:count, :: self.choices] = observation["waiting"][:count]
            self.decide(observation, count, counts)
        site = observation["open_site"]
        return int(first_in_order(self.order, count, observation["waiting"], lists.sites, int(site)))
