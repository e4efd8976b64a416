"""SchemePolicy: any of the named schemes as a policy, in every view that can carry it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from schedgym.core.arrays import Bytes, Floats, Integers
from schedgym.core.jit import kernel
from schedgym.core.policy import Interface
from schedgym.core.rows import with_columns
from schedgym.errors import InvalidParameter
from schedgym.problems.queue_delay.problem import ORDERS, SERVER_RULES
from schedgym.problems.queue_delay.rules import (
    ARRIVING_ONLY,
    DOT,
    FIRST,
    HEADS_ALL,
    RANDOM,
    RULE_SCHEMES,
    SCAN_RELEASED,
    SCHEMES,
    Situation,
    choose,
    count_visible,
    scheme_row,
)

#: the schemes that compare L_p norms (bf-exec does, too, but the paper gives it the L2 norm)
NORMED = ("ffd-nb", "bfd-nb", "bf", "wf", "bf-all", "wf-all")
ONES = (1.0, 1.0)
WEIGHTS = ((1.0, 0.0), (4.0, 1.0), (2.0, 1.0), (1.0, 1.0), (1.0, 2.0), (1.0, 4.0), (0.0, 1.0))


def carrying_views(scheme: str) -> tuple[str, ...]:
    """Return the views in which a scheme (without blocking) can be expressed."""
    return _views_of(SCHEMES[scheme])


def candidates_of(scheme: str) -> dict[str, tuple[Any, ...]]:
    """Return what a tuning tries of the options that the scheme uses."""
    if scheme in NORMED:
        return {"p": (1.25, 1.5, 2.0, 4.0, 16.0)}
    return {"weights": WEIGHTS} if scheme.endswith("d-sum") else {}


def _views_of(row: Sequence[int]) -> tuple[str, ...]:
    arrival, rule, completion, _ = row
    if rule == RANDOM:
        return ("placement",)
    routes = arrival == ARRIVING_ONLY and completion == SCAN_RELEASED
    return ("placement", "pick", "route", "rule") if routes else ("placement", "pick", "rule")


@kernel
def decide(
    scheme: Integers,
    weights: tuple[float, ...],
    epoch: int,
    arriving: int,
    released: int,
    task_mask: Bytes,
    execution: Floats,
    demand: Floats,
    capacity: Floats,
    remaining: Floats,
    mean_demand: Floats,
    p: float,
    draw: float,
) -> tuple[int, int]:
    """Apply :func:`choose` to an observation's arrays: the next placement (slot, server), or (-1, -1)."""
    at = Situation(
        epoch,
        arriving,
        released,
        count_visible(task_mask),
        execution,
        with_columns(demand, weights),
        capacity,
        with_columns(remaining, weights),
        weights,
        p,
        mean_demand,
        draw,
    )
    return choose(scheme, at)


class SchemePolicy:
    """Base of the queue-delay policies.

    With a window smaller than the queue, a policy sees only the first tasks (and the arriving one), and does
    worse than the paper's scheme, which scans the whole queue: evaluate with ``window="all"``.

    Args:
        scheme: a name of :data:`~schedgym.problems.queue_delay.rules.SCHEMES`.
        blocking: use the variant in which the head of the queue blocks (ffd schemes).
        bypass: let an arriving task pass a queue that blocks.
        weights: of the resources in the size "sum", one for each; ones stand for any number of ones.
        p: exponent of the L_p norm, above 1 or infinity (schemes that compare norms: :data:`NORMED`).
    """

    def __init__(
        self,
        scheme: str,
        *,
        blocking: bool = False,
        bypass: bool = False,
        weights: tuple[float, ...] = ONES,
        p: float = 2.0,
    ) -> None:
        for name, value in (("blocking", blocking), ("bypass", bypass)):
            if not isinstance(value, bool):
                raise InvalidParameter(f"{name}: must be True or False, got {value!r}")
        self.scheme, self.blocking = scheme, blocking
        self.row = scheme_row(scheme, blocking, bypass)
        given = np.asarray(weights, dtype=float)
        if given.ndim != 1 or not (np.isfinite(given) & (given >= 0)).all():
            raise InvalidParameter(f"weights: must be numbers >= 0, got {weights!r}")
        self.weights: tuple[float, ...] = tuple(given.tolist())
        if isinstance(p, bool) or not isinstance(p, (int, float)) or not p > 1.0:
            raise InvalidParameter(f"p: must be a number above 1, got {p!r}")
        if p != 2.0 and scheme not in NORMED:
            raise InvalidParameter(f"p: {scheme} compares no norms, except the L2 norm; got {p!r}")
        self.p = float(p)

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the scheme."""
        interface.check(self.scheme, self.carrying_views())
        self.rng = rng
        self.view = interface.view
        resources = interface.parameters["resources"]
        if set(self.weights) == {1.0}:
            self.weights = (1.0,) * len(resources)
        if len(self.weights) != len(resources):
            names = ", ".join(resources)
            raise InvalidParameter(
                f"weights: must be {len(resources)} numbers >= 0 ({names}), got {self.weights}"
            )
        self.window, self.servers = interface.sizes["window"], interface.sizes["servers"]
        _, rule, completion, order = (int(code) for code in self.row)
        needs: dict[str, str] = {}
        if self.view == "pick":
            scope = "all" if completion == HEADS_ALL else "released"
            needs = {"rule": SERVER_RULES[rule], "scope": scope}
        elif self.view == "route":
            needs = {"order": ORDERS[order]}
        interface.check_needs(f"{self.scheme} in view {self.view!r}", needs)

    def carrying_views(self) -> tuple[str, ...]:
        """Return the views in which the scheme, with its options, can be expressed."""
        views = set(_views_of(self.row.tolist()))
        if self.blocking:
            views -= {"rule"}
        if self.p != 2.0 or set(self.weights) != {1.0}:  # sizes that the environment does not know
            views -= {"rule", "route"}
            if self.row[1] not in (FIRST, DOT):
                views -= {"pick"}
        return tuple(view for view in ("placement", "pick", "route", "rule") if view in views)

    def __call__(self, observation: dict[str, Any]) -> Any:
        """Return the next placement of the scheme, in the action of the environment's view."""
        if self.view == "rule":
            return RULE_SCHEMES.index(self.scheme)
        slot, server = decide(
            self.row,
            self.weights,
            observation["epoch"],
            observation["arriving"],
            observation["released"],
            observation["task_mask"],
            observation["execution"],
            observation["demand"],
            observation["capacity"],
            observation["remaining"],
            observation["mean_demand"],
            self.p,
            self.rng.random() if self.row[1] == RANDOM else 0.0,
        )
        if self.view == "placement":
            return (slot, server) if slot >= 0 else (self.window, 0)
        if self.view == "pick":
            return slot if slot >= 0 else self.window
        return server if slot >= 0 else self.servers
