"""Spaces of ParallelJCT: what each view's actions and each kind of observation look like."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.parallel_jct.dynamics import (
    GLOBAL_FEATURES,
    JOB_FEATURES,
    MOVE_FEATURES,
    SERVER_FEATURES,
)
from schedgym.problems.parallel_jct.problem import ParallelJCTParameters
from schedgym.problems.parallel_jct.workload import LAST_TIME, MOST_CPU, MOST_ENERGY, MOST_LOAD

__all__ = ["TASK_VIEWS", "action_space", "make_spaces", "mask_length", "observation_space"]

MOST_JOBS = 10**7
#: views that plan a job task by task
TASK_VIEWS = ("place", "search")


def choices(view: str, window: int, servers: int, most_tasks: int) -> int:
    """Number of choices of a discrete view."""
    more = {"pick": 0, "place": servers, "search": most_tasks * servers + 1}
    return window + 1 + more[view]


def mask_length(parameters: ParallelJCTParameters, window: int, servers: int, most_tasks: int) -> int:
    """Length of the mask of feasible actions; 0 where the view has none, or none is wanted."""
    if parameters.view == "plan" or not parameters.action_mask:
        return 0
    return choices(parameters.view, window, servers, most_tasks)


def action_space(view: str, window: int, servers: int, most_tasks: int) -> spaces.Box | spaces.Discrete:
    """The action space of a view with ``window`` visible jobs of up to ``most_tasks`` tasks."""
    if view == "plan":
        high = np.empty((1 + most_tasks, 2))
        high[0] = window, 1.0
        high[1:] = servers - 1, MOST_CPU
        return spaces.Box(np.zeros_like(high), high, dtype=np.float64)
    return spaces.Discrete(choices(view, window, servers, most_tasks))


def observation_space(
    parameters: ParallelJCTParameters,
    window: int,
    running: int,
    rows: int,
    servers: int,
    groups: int,
    most_tasks: int,
) -> spaces.Dict:
    """The observation space: named arrays in exact units, or float32 tokens.

    Args:
        parameters: of the environment.
        window: W, visible waiting jobs.
        running: S, visible running tasks.
        rows: T, room for tasks of the visible jobs.
        servers: M.
        groups: R.
        most_tasks: of a job.
    """

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
    length = mask_length(parameters, window, servers, most_tasks)
    if length:
        entries["action_mask"] = spaces.MultiBinary(length)
    return spaces.Dict(entries)


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a simulator of ParallelJCT."""
    sizes = simulator.interface.sizes
    return (
        observation_space(
            simulator.parameters,
            sizes["window"],
            sizes["running"],
            sizes["rows"],
            sizes["servers"],
            sizes["groups"],
            sizes["tasks"],
        ),
        action_space(simulator.parameters.view, sizes["window"], sizes["servers"], sizes["tasks"]),
    )
