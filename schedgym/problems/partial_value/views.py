"""Spaces of PartialValue: what each view's actions and each kind of observation look like."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.partial_value.problem import UTILITIES, PartialValueParameters
from schedgym.problems.partial_value.rules import LEAST_LOG_PRICE, MOST_SCORE, RULES
from schedgym.problems.partial_value.tokens import GLOBAL_FEATURES, JOB_FEATURES, RESOURCE_FEATURES
from schedgym.problems.partial_value.workload import LARGEST, LAST_SLOT

__all__ = ["action_space", "make_spaces", "observation_entries"]

MOST_JOBS = 10**7


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


def observation_entries(
    parameters: PartialValueParameters, window: int, resources: int
) -> dict[str, spaces.Space[Any]]:
    """What an observation is made of, in order: named arrays in exact units, or float32 tokens."""

    def sizes(*shape: int, most: float = LARGEST) -> spaces.Box:
        return spaces.Box(0.0, most, shape, np.float64)

    def counts(most: int, *shape: int) -> spaces.Box:
        return spaces.Box(0, most, shape, np.int64)

    def tokens(*shape: int) -> spaces.Box:
        return spaces.Box(0.0, 1.0, shape, np.float32)

    entries: dict[str, spaces.Space[Any]]
    if parameters.observation == "dict":
        entries = {
            "slot": counts(LAST_SLOT + 1, 1),
            "capacity": sizes(resources),
            "job": counts(MOST_JOBS, window),
            "arrival": sizes(window, most=LAST_SLOT),
            "deadline": sizes(window, most=LAST_SLOT),
            "parallelism": sizes(window),
            "tasks": sizes(window),
            "served": sizes(window),
            "cap": sizes(window),
            "marginal": sizes(window),
            "value": sizes(window),
            "exponent": sizes(window, most=1.0),
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
            "jobs": tokens(window, JOB_FEATURES + resources),
            "resources": tokens(resources, RESOURCE_FEATURES),
            "globals": tokens(GLOBAL_FEATURES),
            "job_mask": spaces.MultiBinary(window),
        }
    if parameters.view == "rule" and parameters.action_mask:
        entries["action_mask"] = spaces.MultiBinary(len(RULES))
    return entries


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a PartialValue simulator."""
    sizes = simulator.parameters, simulator.window, simulator.resources
    return spaces.Dict(observation_entries(*sizes)), action_space(*sizes)
