"""Spaces of SingleJob: what each view's actions and each kind of observation look like."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.single_job.problem import SingleJobParameters
from schedgym.problems.single_job.tokens import (
    GLOBAL_FEATURES,
    JOB_FEATURES,
    PAIR_FEATURES,
    PLACE_FEATURES,
    SERVER_FEATURES,
)
from schedgym.problems.single_job.workload import MOST_CPU, MOST_ENERGY, MOST_LIMIT, MOST_LOAD

__all__ = ["PAIR_VIEWS", "action_space", "make_spaces", "mask_length", "observation_space"]

#: views whose features tell of each task on each server
PAIR_VIEWS = ("plan", "search")


def mask_length(view: str, tasks: int, servers: int) -> int:
    """Length of a view's mask of feasible actions; 0 where it has none."""
    return {"plan": 0, "place": servers, "search": tasks * servers + 1}[view]


def action_space(view: str, tasks: int, servers: int) -> spaces.Box | spaces.Discrete:
    """The action space of a view with up to ``tasks`` tasks."""
    if view == "plan":
        high = np.tile([servers - 1.0, MOST_LIMIT], (tasks, 1))
        return spaces.Box(np.zeros_like(high), high, dtype=np.float64)
    return spaces.Discrete(mask_length(view, tasks, servers))


def observation_space(parameters: SingleJobParameters, tasks: int, servers: int, groups: int) -> spaces.Dict:
    """The observation space: named arrays in exact units, or float32 tokens."""

    def numbers(most: float, *shape: int) -> spaces.Box:
        return spaces.Box(0.0, most, shape, np.float64)

    def tokens(*shape: int, low: float = 0.0) -> spaces.Box:
        return spaces.Box(low, 1.0, shape, np.float32)

    view = parameters.view
    if parameters.observation == "dict":
        entries: dict[str, spaces.Space] = {  # type: ignore[type-arg]
            "load": numbers(MOST_LOAD, tasks),
            "efficiency": numbers(1.0, tasks, servers),
            "task_mask": spaces.MultiBinary(tasks),
            "capacity": numbers(MOST_CPU, servers),
            "groups": spaces.MultiBinary((groups, servers)),
            "limits": numbers(MOST_LIMIT, groups),
            "energy_cap": numbers(MOST_ENERGY, 1),
            "energy": numbers(MOST_ENERGY, 1),
            "placement": spaces.Box(-1, servers - 1, (tasks,), np.int32),
        }
        if view == "place":
            entries["next_task"] = spaces.Discrete(tasks + 1)
    else:
        features = SERVER_FEATURES + (PLACE_FEATURES if view == "place" else 0)
        entries = {
            "jobs": tokens(tasks, JOB_FEATURES),
            "servers": tokens(servers, features),
            "globals": tokens(GLOBAL_FEATURES),
            "job_mask": spaces.MultiBinary(tasks),
        }
        if view in PAIR_VIEWS:
            entries["pairs"] = tokens(tasks, servers, PAIR_FEATURES, low=-1.0)
    length = mask_length(view, tasks, servers)
    if length and parameters.action_mask:
        entries["action_mask"] = spaces.MultiBinary(length)
    return spaces.Dict(entries)


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a single-job simulator."""
    tasks, servers = simulator.tasks, simulator.servers
    return (
        observation_space(simulator.parameters, tasks, servers, simulator.groups),
        action_space(simulator.parameters.view, tasks, servers),
    )
