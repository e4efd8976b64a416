"""Spaces of ParallelJCT: what each view's actions and each kind of observation look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.parallel_jct.problem import ParallelJCTParameters
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


def observation_space(simulator: Any) -> spaces.Dict:
    """The observation space of one environment: named arrays in exact units, or float32 tokens."""
    parameters, sizes = simulator.parameters, simulator.interface.sizes
    longest = max(LAST_TIME, parameters.max_time)
    most = {
        **dict.fromkeys(("clock", "age"), longest),
        "time_to_tick": max(LAST_TIME, parameters.tick),
        "arrival": LAST_TIME,
        **dict.fromkeys(("capacity", "available", "run_base", "run_extra"), MOST_CPU),
        "limits": MOST_CPU * sizes["servers"],
        "load": MOST_LOAD,
        "efficiency": 1.0,
        **dict.fromkeys(("total_load", "least_energy", "run_leq", "run_remaining", "energy"), MOST_ENERGY),
        "energy_cap": 2 * MOST_ENERGY,
        "run_server": sizes["servers"] - 1,
        **dict.fromkeys(("jobs", "servers", "globals", "moves"), 1.0),
    }
    entries: dict[str, spaces.Space] = {  # type: ignore[type-arg]
        "open_job": spaces.Discrete(sizes["window"] + 1),
        "next_task": spaces.Discrete(sizes["tasks"] + 1),
        "placement": spaces.Box(-1, sizes["servers"] - 1, (sizes["tasks"],), np.int32),
    }
    for name, buffer in simulator.observation.items():
        shape = buffer.shape[1:]
        if buffer.dtype == np.int8:
            entries[name] = spaces.MultiBinary(shape[0] if len(shape) == 1 else list(shape))
        elif name not in entries:
            entries[name] = spaces.Box(0, most.get(name, MOST_JOBS), shape, buffer.dtype.type)
    return spaces.Dict({name: entries[name] for name in simulator.observation})


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a simulator of ParallelJCT."""
    return observation_space(simulator), action_space(simulator.parameters.view, simulator.interface.sizes)
