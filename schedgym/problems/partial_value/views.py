"""The action space of each view of PartialValue."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from schedgym.core.arrays import Sizes
from schedgym.problems.partial_value.problem import PartialValueParameters
from schedgym.problems.partial_value.rules import LARGEST, LEAST_LOG_PRICE, RULES


def action_space(parameters: PartialValueParameters, sizes: Sizes) -> spaces.Box | spaces.Discrete:
    """Return the action space of the view."""
    view, window = parameters.view, sizes["window"]
    if view == "allocation":
        dtype = np.int64 if parameters.model == "discrete" else np.float64
        return spaces.Box(0, int(LARGEST), (window,), dtype)
    if view == "prices":
        return spaces.Box(LEAST_LOG_PRICE, -LEAST_LOG_PRICE, (sizes["resource"],), np.float64)
    if view == "priority":
        return spaces.Box(-1.0, 1.0, (window,), np.float64)
    return spaces.Discrete(len(RULES))
