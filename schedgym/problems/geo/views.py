"""The action space of each view of GeoAssign and GeoFair."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from schedgym.core.arrays import Sizes
from schedgym.problems.geo.orders import ASSIGN_RULES
from schedgym.problems.geo.problem import GeoParameters
from schedgym.problems.geo.rules import FAIR_RULES
from schedgym.problems.geo.workload import MOST_SLOTS, MOST_TASKS

#: views that decide an order with assigned tasks, and views that decide shares
ORDER_VIEWS = ("assignment", "priority", "rule")
RATIO_VIEWS = ("shares", "weights", "fair-rule")


def action_space(parameters: GeoParameters, sizes: Sizes) -> spaces.Box | spaces.Discrete:
    """Return the action space of the view, for K groups with at most A sites each."""
    view = parameters.view
    window, groups, choices = (sizes[name] for name in ("window", "group", "choice"))
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
