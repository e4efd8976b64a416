"""Spaces of QueueDelay: what each view's actions and each kind of observation look like."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.queue_delay.problem import QueueDelayParameters
from schedgym.problems.queue_delay.rules import RULE_SCHEMES, TOLERANCE
from schedgym.problems.queue_delay.tokens import DAY, GLOBAL_FEATURES, SERVER_FEATURES, TASK_FEATURES
from schedgym.problems.queue_delay.workload import LAST_TIME

__all__ = ["action_space", "make_spaces", "mask_shape", "observation_space"]

MOST_TASKS = 10**7


def mask_shape(view: str, window: int, servers: int) -> tuple[int, ...]:
    """Shape of the mask of feasible actions; the pairs of view placement leave out closing."""
    return {
        "placement": (window, servers),
        "pick": (window + 1,),
        "route": (servers + 1,),
        "rule": (len(RULE_SCHEMES),),
    }[view]


def action_space(view: str, window: int, servers: int) -> spaces.Discrete | spaces.MultiDiscrete:
    """The action space of a view with ``window`` visible tasks; "none" is the last index."""
    if view == "placement":
        return spaces.MultiDiscrete([window + 1, servers])
    return spaces.Discrete(mask_shape(view, window, servers)[0])


def observation_space(parameters: QueueDelayParameters, window: int, servers: int) -> spaces.Dict:
    """The observation space: named arrays in exact units, or float32 tokens."""

    def times(*shape: int) -> spaces.Box:
        return spaces.Box(0.0, LAST_TIME, shape, np.float64)

    def shares(*shape: int, low: float = 0.0) -> spaces.Box:
        return spaces.Box(low, 1.0, shape, np.float64)

    entries: dict[str, spaces.Space] = {}  # type: ignore[type-arg]
    if parameters.observation == "dict":
        entries = {
            "clock": times(1),
            "epoch": spaces.Discrete(3),
            "arriving": spaces.Discrete(window + 1),
            "released": spaces.Discrete(servers + 1),
            "capacity": shares(servers, 2),
            # a fitting test with tolerance may leave a server a hair below zero
            "remaining": shares(servers, 2, low=-2 * TOLERANCE),
            "arrival": times(window),
            "execution": times(window),
            "demand": shares(window, 2),
            "waiting": times(window),
            "task_mask": spaces.MultiBinary(window),
            "mean_demand": shares(2),
            "backlog": spaces.Box(0, MOST_TASKS, (1,), np.int64),
        }
    else:
        largest = math.log1p(LAST_TIME) / math.log1p(DAY)
        task_high = np.array([1.0, 1.0, largest, 1.0, 1.0], dtype=np.float32)
        assert len(task_high) == TASK_FEATURES
        high = np.broadcast_to(task_high, (window, TASK_FEATURES))
        entries = {
            "tasks": spaces.Box(np.zeros_like(high), high, dtype=np.float32),
            "servers": spaces.Box(0.0, 1.0, (servers, SERVER_FEATURES), np.float32),
            "globals": spaces.Box(0.0, 1.0, (GLOBAL_FEATURES,), np.float32),
            "task_mask": spaces.MultiBinary(window),
        }
    if parameters.action_mask:
        entries["action_mask"] = spaces.MultiBinary(list(mask_shape(parameters.view, window, servers)))
    return spaces.Dict(entries)


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Discrete | spaces.MultiDiscrete]:
    """Observation and action space of one environment of a QueueDelay simulator."""
    parameters, window, servers = simulator.parameters, simulator.window, simulator.servers
    return (
        observation_space(parameters, window, servers),
        action_space(parameters.view, window, servers),
    )
