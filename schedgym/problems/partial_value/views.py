"""Spaces of PartialValue: the actions of each view, and the observations of each kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.partial_value.problem import UTILITIES, PartialValueParameters
from schedgym.problems.partial_value.rules import LEAST_LOG_PRICE, RULES
from schedgym.problems.partial_value.workload import LARGEST, LAST_SLOT
from schedgym.spaces import observation_space

__all__ = ["action_space", "make_spaces"]

MOST_JOBS = 10**7
#: largest values of the entries of an observation in exact units
LIMITS = {
    "slot": LAST_SLOT + 1,
    **dict.fromkeys(("arrival", "deadline"), LAST_SLOT),
    **dict.fromkeys(
        ("capacity", "parallelism", "tasks", "served", "cap", "marginal", "value", "demand"), LARGEST
    ),
    "utility": len(UTILITIES) - 1,
    **dict.fromkeys(("job", "active", "backlog"), MOST_JOBS),
}


def action_space(
    parameters: PartialValueParameters, window: int, resources: int
) -> spaces.Box | spaces.Discrete:
    """The action space of a view with ``window`` visible jobs."""
    view = parameters.view
    if view == "allocation":
        dtype = np.int64 if parameters.model == "discrete" else np.float64
        return spaces.Box(0, int(LARGEST), (window,), dtype)
    if view == "prices":
        return spaces.Box(LEAST_LOG_PRICE, -LEAST_LOG_PRICE, (resources,), np.float64)
    if view == "priority":
        return spaces.Box(-1.0, 1.0, (window,), np.float64)
    return spaces.Discrete(len(RULES))


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a PartialValue simulator."""
    return (
        observation_space(simulator, LIMITS),
        action_space(simulator.parameters, simulator.window, simulator.resources),
    )
