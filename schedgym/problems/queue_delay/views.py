"""Spaces of QueueDelay: the actions of each view, and the observations of each kind."""

from __future__ import annotations

import math
from typing import Any

from gymnasium import spaces

from schedgym.problems.queue_delay.rules import RULE_SCHEMES, TOLERANCE
from schedgym.problems.queue_delay.tokens import DAY, TASK_COLUMNS
from schedgym.problems.queue_delay.workload import LAST_TIME
from schedgym.spaces import observation_space

__all__ = ["action_space", "make_spaces", "mask_shape"]

MOST_TASKS = 10**7


def mask_shape(view: str, window: int, servers: int) -> tuple[int, ...]:
    """Return the shape of the mask of feasible actions; that of view placement has no entry for closing."""
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


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Discrete | spaces.MultiDiscrete]:
    """Observation and action space of one environment of a QueueDelay simulator."""
    window, servers = simulator.window, simulator.servers
    log_execution = math.log1p(LAST_TIME) / math.log1p(DAY)
    limits: dict[str, Any] = {
        **dict.fromkeys(("clock", "arrival", "execution", "waiting"), LAST_TIME),
        "epoch": 2,
        "arriving": window,
        "released": servers,
        "remaining": (-2 * TOLERANCE, 1.0),  # the fitting test's tolerance can leave it slightly below zero
        "backlog": MOST_TASKS,
        "tasks": (0.0, [log_execution if column == "log execution" else 1.0 for column in TASK_COLUMNS]),
    }
    return (
        observation_space(simulator, limits),
        action_space(simulator.parameters.view, window, servers),
    )
