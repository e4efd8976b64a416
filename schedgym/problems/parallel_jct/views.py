"""Spaces of ParallelJCT: what each view's actions and each kind of observation look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.parallel_jct.problem import ParallelJCTParameters
from schedgym.problems.parallel_jct.tokens import (
    GLOBAL_FEATURES,
    JOB_FEATURES,
    MOVE_FEATURES,
    SERVER_FEATURES,
)
from schedgym.problems.parallel_jct.workload import LAST_TIME, MOST_CPU, MOST_ENERGY, MOST_LOAD

__all__ = ["TASK_VIEWS", "action_space", "make_spaces", "mask_length", "observation_space"]

MOST_JOBS = 10**7
#: views that plan a job task by task
TASK_VIEWS = ("place", "search")


def choices(view: str, sizes: Mapping[str, int]) -> int:
    """Number of choices of a discrete view."""
    servers = sizes["servers"]
    more = {"pick": 0, "place": servers, "search": sizes["tasks"] * servers + 1}
    return sizes["window"] + 1 + more[view]


def mask_length(parameters: ParallelJCTParameters, sizes: Mapping[str, int]) -> int:
    """Length of the mask of feasible actions; 0 where the view has none, or none is wanted."""
    if parameters.view == "plan" or not parameters.action_mask:
        return 0
    return choices(parameters.view, sizes)


def action_space(view: str, sizes: Mapping[str, int]) -> spaces.Box | spaces.Discrete:
    """The action space of a view; ``sizes`` are the interface's."""
    if view == "plan":
        high = np.empty((1 + sizes["tasks"], 2))
        high[0] = sizes["window"], 1.0
        high[1:] = sizes["servers"] - 1, MOST_CPU
        return spaces.Box(np.zeros_like(high), high, dtype=np.float64)
    return spaces.Discrete(choices(view, sizes))


def observation_space(parameters: ParallelJCTParameters, sizes: Mapping[str, int]) -> spaces.Dict:
    """The observation space: named arrays in exact units, or float32 tokens.

    Args:
        parameters: of the environment.
        sizes: the interface's: visible waiting jobs (window), visible running tasks (running), rows for tasks
            of the visible jobs (rows), servers, groups, tasks of a job (tasks).
    """
    window, running, rows = sizes["window"], sizes["running"], sizes["rows"]
    servers, groups, most_tasks = sizes["servers"], sizes["groups"], sizes["tasks"]

    def reals(most: float, *shape: int) -> spaces.Box:
        return spaces.Box(0.0, most, shape, np.float64)

    def counts(most: int, *shape: int) -> spaces.Box:
        return spaces.Box(0, most, shape, np.int64)

    entries: dict[str, spaces.Space] = {}  # type: ignore[type-arg]
    if parameters.observation == "dict":
        entries = {
            "clock": reals(max(LAST_TIME, parameters.max_time), 1),
            "event": spaces.MultiBinary(3),
            "time_to_tick": reals(max(LAST_TIME, parameters.tick), 1),
            "capacity": reals(MOST_CPU, servers),
            "available": reals(MOST_CPU, servers),
            "groups": spaces.MultiBinary([groups, servers]),
            "limits": reals(MOST_CPU * servers, groups),
            "job": counts(MOST_JOBS, window),
            "arrival": reals(LAST_TIME, window),
            "age": reals(max(LAST_TIME, parameters.max_time), window),
            "tasks": counts(MOST_JOBS, window),
            "first_task": counts(MOST_JOBS, window),
            "total_load": reals(MOST_ENERGY, window),
            "least_energy": reals(MOST_ENERGY, window),
            "energy_cap": reals(2 * MOST_ENERGY, window),
            "failed": spaces.MultiBinary(window),
            "job_mask": spaces.MultiBinary(window),
            "waiting": counts(MOST_JOBS, 1),
            "backlog": counts(MOST_JOBS, 1),
            "load": reals(MOST_LOAD, rows),
            "efficiency": reals(1.0, rows, servers),
            "running": counts(MOST_JOBS, 1),
            "run_job": counts(MOST_JOBS, running),
            "run_server": counts(servers - 1, running),
            "run_leq": reals(MOST_ENERGY, running),
            "run_remaining": reals(MOST_ENERGY, running),
            "run_base": reals(MOST_CPU, running),
            "run_extra": reals(MOST_CPU, running),
        }
        if parameters.view in TASK_VIEWS:
            entries["open_job"] = spaces.Discrete(window + 1)
            entries["next_task"] = spaces.Discrete(most_tasks + 1)
            entries["placement"] = spaces.Box(-1, servers - 1, (most_tasks,), np.int32)
            entries["energy"] = reals(MOST_ENERGY, 1)
    else:
        entries = {
            "jobs": spaces.Box(0.0, 1.0, (window, JOB_FEATURES), np.float32),
            "servers": spaces.Box(0.0, 1.0, (servers, SERVER_FEATURES), np.float32),
            "globals": spaces.Box(0.0, 1.0, (GLOBAL_FEATURES,), np.float32),
            "job_mask": spaces.MultiBinary(window),
        }
        if parameters.view == "search":
            entries["moves"] = spaces.Box(0.0, 1.0, (most_tasks, servers, MOVE_FEATURES), np.float32)
    length = mask_length(parameters, sizes)
    if length:
        entries["action_mask"] = spaces.MultiBinary(length)
    return spaces.Dict(entries)


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a simulator of ParallelJCT."""
    parameters, sizes = simulator.parameters, simulator.interface.sizes
    return observation_space(parameters, sizes), action_space(parameters.view, sizes)
