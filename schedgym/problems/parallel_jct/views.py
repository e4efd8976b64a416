"""Spaces of ParallelJCT: the actions of each view, and the observations of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.parallel_jct.workload import LAST_TIME, MOST_CPU, MOST_ENERGY, MOST_LOAD, MOST_POWER
from schedgym.problems.single_job.topology import MOST_WEIGHT
from schedgym.spaces import observation_space

__all__ = ["TASK_VIEWS", "action_space", "make_spaces"]

MOST_JOBS = 10**7
#: views that plan a job task by task
TASK_VIEWS = ("place", "search")


def action_space(view: str, sizes: Mapping[str, int]) -> spaces.Box | spaces.Discrete:
    """The action space of a view; ``sizes`` are the interface's."""
    servers = sizes["servers"]
    if view == "plan":
        high = np.empty((1 + sizes["tasks"], 2))
        high[0] = sizes["window"], 1.0
        high[1:] = servers - 1, MOST_CPU
        return spaces.Box(np.zeros_like(high), high, dtype=np.float64)
    more = {"pick": 0, "place": servers, "search": sizes["tasks"] * servers + 1}
    return spaces.Discrete(sizes["window"] + 1 + more[view])


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a simulator of ParallelJCT."""
    parameters, sizes = simulator.parameters, simulator.interface.sizes
    limits = {
        **dict.fromkeys(("clock", "age"), max(LAST_TIME, parameters.max_time)),
        "time_to_tick": max(LAST_TIME, parameters.tick),
        "arrival": LAST_TIME,
        **dict.fromkeys(("capacity", "available", "run_base", "run_extra"), MOST_CPU),
        "groups": MOST_WEIGHT,
        "limits": MOST_CPU * sizes["servers"],
        "load": MOST_LOAD,
        "power": MOST_POWER,
        **dict.fromkeys(("total_load", "least_energy", "least_work", "energy"), MOST_ENERGY),
        **dict.fromkeys(("run_leq", "run_remaining"), MOST_ENERGY),
        "energy_cap": 2 * MOST_ENERGY,
        "run_server": sizes["servers"] - 1,
        **dict.fromkeys(
            ("job", "run_job", "tasks", "first_task", "waiting", "backlog", "running"), MOST_JOBS
        ),
        "open_job": sizes["window"],
        "next_task": sizes["tasks"],
        "placement": (-1, sizes["servers"] - 1),
    }
    return observation_space(simulator, limits), action_space(parameters.view, sizes)
