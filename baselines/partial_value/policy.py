"""ValuePolicy: the base of all partial-value policies."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.core.arrays import Floats, allocate
from schedgym.core.policy import Interface
from schedgym.errors import InvalidParameter
from schedgym.problems.partial_value.rules import RULES, Rows, Scratch, allocate_by_rule, make_scratch
from schedgym.solvers.dual_prices import DualScratch, make_dual_scratch


class ValuePolicy:
    """Base of the partial-value policies.

    With a window smaller than the number of active jobs, a policy sees and serves only the first ones:
    evaluate with ``window="all"``.

    Args:
        label: name of the policy in errors; the name of a rule, if it is one.
        views: the action views that can express it.
        model: the model that it is for; None: both.
        urgent: True if it must know deadlines.
        skip: True if it passes over tasks that do not fit: then for the discrete model and view allocation.
    """

    def __init__(
        self,
        label: str,
        views: tuple[str, ...],
        model: str | None = None,
        urgent: bool = False,
        skip: bool = False,
    ) -> None:
        if not isinstance(skip, bool):
            raise InvalidParameter(f"skip: must be True or False, got {skip!r}")
        if skip:
            views, model = ("allocation",), "discrete"
        self.label, self.views, self.model, self.urgent, self.skip = label, views, model, urgent, skip
        self.rule = RULES.index(label) if label in RULES else -1

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the environment cannot carry it."""
        interface.check(self.label, self.views)
        needs: dict[str, Any] = {} if self.model is None else {"model": self.model}
        if self.urgent:
            needs["deadlines"] = "shown"
        interface.check_needs(self.label, needs | self.needs(interface))
        self.rng = rng
        self.view, self.discrete = interface.view, interface.parameters["model"] == "discrete"
        self.window, self.resources = interface.sizes["window"], interface.sizes["resources"]
        count = self.window if self.view in ("allocation", "priority") else 0
        whole = self.discrete and self.view == "allocation"
        self.action: Any = np.zeros(count, dtype=np.int64 if whole else np.float64)
        self.told = 0  # rows of the action that the last decision wrote
        self.rows = 0
        self.work: tuple[Scratch, DualScratch] | None = None

    def needs(self, interface: Interface) -> dict[str, Any]:
        """Return the parameters of the environment that the policy needs in this view."""
        return {}

    def see(self, observation: dict[str, Any]) -> tuple[int, Rows, Scratch, DualScratch]:
        """Return the number of visible jobs, these jobs as rules take them, and work space for them."""
        count = int(observation["active"][0]) - int(observation["backlog"][0])
        if count > self.rows or self.work is None:
            self.rows = min(max(count, 2 * self.rows, 64), self.window)
            # copies of its own: kernels would be compiled once more for arrays that cannot be written to
            self.seen = allocate(Rows, {"row": self.rows, "resource": self.resources})
            self.x = np.zeros(self.rows)
            self.work = (
                make_scratch(self.rows, self.resources),
                make_dual_scratch(self.rows, self.resources),
            )
        for name, own in zip(Rows._fields, self.seen, strict=True):
            if name in observation:
                own[:count] = observation[name][:count]
        self.capacity = np.array(observation["capacity"])
        np.divide(observation["demand"][:count], self.capacity, out=self.seen.share[:count])
        return count, self.seen, *self.work

    def __call__(self, observation: dict[str, Any]) -> Any:
        """Return the action of one slot."""
        if self.view == "rule":
            return self.rule
        count, rows, scratch, dual = self.see(observation)
        if self.view == "prices":
            return self.price(observation, count, rows, dual)
        if self.view == "priority":
            self.action[:count] = self.score(count)
        else:
            self.allocate(observation, count, rows, scratch, dual)
            self.action[:count] = self.x[:count]
        if self.told > count:
            self.action[count : self.told] = 0
        self.told = count
        return self.action

    def allocate(
        self, observation: dict[str, Any], count: int, rows: Rows, scratch: Scratch, dual: DualScratch
    ) -> None:
        """Write the tasks of the first ``count`` jobs in this slot to ``self.x``."""
        allocate_by_rule(self.rule, self.discrete, count, rows, self.capacity, scratch, dual, self.x)

    def price(self, observation: dict[str, Any], count: int, rows: Rows, dual: DualScratch) -> Floats:
        """Return the logarithms of the resources' prices [m] (view prices)."""
        raise NotImplementedError

    def score(self, count: int) -> Floats | float:
        """Return the scores of the first ``count`` jobs of ``self.seen`` (view priority)."""
        return 0.0

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({"work": None} if "work" in self.__dict__ else {})
