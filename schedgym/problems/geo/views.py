"""Spaces of GeoAssign and GeoFair: the actions of each view, and the observations of each kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.geo.orders import ASSIGN_RULES
from schedgym.problems.geo.rules import FAIR_RULES
from schedgym.problems.geo.workload import LAST_TIME, MOST_SLOTS
from schedgym.spaces import observation_space

__all__ = ["ORDER_VIEWS", "RATIO_VIEWS", "action_space", "make_spaces"]

MOST_TASKS = 10**7
#: views that decide an order with assigned tasks, and views that decide shares
ORDER_VIEWS = ("assignment", "priority", "rule")
RATIO_VIEWS = ("shares", "weights", "fair-rule")


def action_space(view: str, window: int, groups: int, choices: int) -> spaces.Box | spaces.Discrete:
    """The action space of a view with ``window`` visible jobs, K groups, and at most A sites per group."""
    if view == "assignment":
        low = np.zeros((window, 1 + groups * choices))
        high = np.full_like(low, MOST_TASKS)
        low[:, 0], high[:, 0] = -1.0, 1.0
        return spaces.Box(low, high, dtype=np.float64)
    if view == "shares":
        return spaces.Box(-1.0, MOST_SLOTS, (window, groups, choices), np.float64)
    if view == "priority":
        return spaces.Box(-1.0, 1.0, (window,), np.float32)
    if view == "weights":
        return spaces.Box(0.0, 1.0, (window,), np.float32)
    return spaces.Discrete({"pick": window, "rule": len(ASSIGN_RULES), "fair-rule": len(FAIR_RULES)}[view])


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a geo simulator."""
    limits: dict[str, Any] = {
        **dict.fromkeys(("clock", "arrival", "age", "seconds"), LAST_TIME),
        **dict.fromkeys(("slots", "free"), MOST_SLOTS),
        **dict.fromkeys(("remaining", "waiting", "running", "assigned", "active", "backlog"), MOST_TASKS),
        "sites": (-1, simulator.sites - 1),
        "open_site": simulator.sites,
    }
    if simulator.parameters.observation == "features":
        del limits["sites"]  # tokens
    return (
        observation_space(simulator, limits),
        action_space(simulator.parameters.view, simulator.window, simulator.groups, simulator.choices),
    )
