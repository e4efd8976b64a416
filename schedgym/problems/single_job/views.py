"""Spaces of SingleJob: the actions of each view, and the observations of each kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.single_job.topology import MOST_WEIGHT
from schedgym.problems.single_job.workload import MOST_CPU, MOST_ENERGY, MOST_LIMIT, MOST_LOAD, MOST_POWER
from schedgym.spaces import observation_space

__all__ = ["PAIR_VIEWS", "action_space", "make_spaces"]

#: views whose features have a token for each task on each server
PAIR_VIEWS = ("plan", "search")


def action_space(view: str, tasks: int, servers: int) -> spaces.Box | spaces.Discrete:
    """The action space of a view with up to ``tasks`` tasks."""
    if view == "plan":
        high = np.tile([servers - 1.0, MOST_LIMIT], (tasks, 1))
        return spaces.Box(np.zeros_like(high), high, dtype=np.float64)
    return spaces.Discrete({"place": servers, "search": tasks * servers + 1}[view])


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a single-job simulator."""
    tasks, servers = simulator.tasks, simulator.servers
    limits = {
        "load": MOST_LOAD,
        "power": MOST_POWER,
        "capacity": MOST_CPU,
        "groups": MOST_WEIGHT,
        "limits": MOST_LIMIT,
        **dict.fromkeys(("energy_cap", "energy"), MOST_ENERGY),
        "placement": (-1, servers - 1),
        "next_task": tasks,
        "pairs": (-1.0, 1.0),
    }
    return (
        observation_space(simulator, limits),
        action_space(simulator.parameters.view, tasks, servers),
    )
