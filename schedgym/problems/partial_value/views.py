"""Spaces of PartialValue: what each view's actions and each kind of observation look like."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.partial_value.dynamics import GLOBAL_FEATURES, JOB_FEATURES, RESOURCE_FEATURES
from schedgym.problems.partial_value.problem import UTILITIES, PartialValueParameters
from schedgym.problems.partial_value.rules import LEAST_LOG_PRICE, MOST_SCORE, RULES
from schedgym.problems.partial_value.workload import LARGEST, LAST_SLOT

__all__ = ["action_space", "make_spaces", "mask_length", "observation_space"]

MOST_JOBS = 10**7


def mask_length(parameters: PartialValueParameters) -> int:
    """Length of the mask of feasible actions; 0 where the view has none, or none is wanted."""
    return len(RULES) if parameters.view == "rule" and parameters.action_mask else 0


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
        return spaces.Box(-MOST_SCORE, MOST_SCORE, (window,), np.float64)
    return spaces.Discrete(len(RULES))


def observation_space(parameters: PartialValueParameters, window: int, resources: int) -> spaces.Dict:
    """The observation space: named arrays in exact units, or float32 tokens."""

    def sizes(*shape: int) -> spaces.Box:
        return spaces.Box(0.0, LARGEST, shape, np.float64)

    def slots(*shape: int) -> spaces.Box:
        return spaces.Box(0.0, LAST_SLOT, shape, np.float64)

    def counts(most: int, *shape: int) -> spaces.Box:
        return spaces.Box(0, most, shape, np.int64)

    entries: dict[str, spaces.Space] = {}  # type: ignore[type-arg]
    if parameters.observation == "dict":
        entries = {
            "slot": counts(LAST_SLOT + 1, 1),
            "capacity": sizes(resources),
            "job": counts(MOST_JOBS, window),
            "arrival": slots(window),
            "deadline": slots(window),
            "parallelism": sizes(window),
            "tasks": sizes(window),
            "served": sizes(window),
            "cap": sizes(window),
            "marginal": sizes(window),
            "value": sizes(window),
            "exponent": spaces.Box(0.0, 1.0, (window,), np.float64),
            "utility": counts(len(UTILITIES) - 1, window),
            "demand": sizes(window, resources),
            "job_mask": spaces.MultiBinary(window),
            "active": counts(MOST_JOBS, 1),
            "backlog": counts(MOST_JOBS, 1),
        }
        if parameters.deadlines == "hidden":
            del entries["deadline"]
    else:
        entries = {
            "jobs": spaces.Box(0.0, 1.0, (window, JOB_FEATURES + resources), np.float32),
            "resources": spaces.Box(0.0, 1.0, (resources, RESOURCE_FEATURES), np.float32),
            "globals": spaces.Box(0.0, 1.0, (GLOBAL_FEATURES,), np.float32),
            "job_mask": spaces.MultiBinary(window),
        }
    if mask_length(parameters):
        entries["action_mask"] = spaces.MultiBinary(len(RULES))
    return spaces.Dict(entries)


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a PartialValue simulator."""
    parameters, window, resources = simulator.parameters, simulator.window, simulator.resources
    return observation_space(parameters, window, resources), action_space(parameters, window, resources)
