"""The action space of each view of FlowtimePacking."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from schedgym.core.arrays import Sizes
from schedgym.problems.flowtime.problem import FlowtimeParameters
from schedgym.problems.flowtime.rules import RULES
from schedgym.problems.flowtime.workload import MOST_CORES


def action_space(parameters: FlowtimeParameters, sizes: Sizes) -> spaces.Box | spaces.Discrete:
    """Return the action space of the view."""
    window = sizes["window"]
    if parameters.view == "allocation":
        return spaces.Box(0, MOST_CORES, (window, sizes["server"]), np.int64)
    if parameters.view == "priority":
        return spaces.Box(-1.0, 1.0, (window,), np.float32)
    return spaces.Discrete({"pick": window + 1, "rule": len(RULES)}[parameters.view])
