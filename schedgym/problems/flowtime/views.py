"""Spaces of FlowtimePacking: what each view's actions and each kind of observation look like."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.flowtime.problem import FlowtimeParameters
from schedgym.problems.flowtime.rules import RULES
from schedgym.problems.flowtime.tokens import GLOBAL_FEATURES, JOB_FEATURES, SERVER_FEATURES

__all__ = ["action_space", "make_spaces", "mask_length", "observation_space"]

MOST = 10**12  # slots, cores, GB, and their products
MOST_JOBS = 10**7


def mask_length(parameters: FlowtimeParameters, window: int) -> int:
    """Length of the mask of feasible actions; 0 where the view has none, or none is wanted."""
    lengths = {"pick": window + 1, "rule": len(RULES)}
    return lengths.get(parameters.view, 0) if parameters.action_mask else 0


def action_space(view: str, window: int, servers: int) -> spaces.Box | spaces.Discrete:
    """The action space of a view with ``window`` visible jobs."""
    if view == "allocation":
        return spaces.Box(0, 10**6, (window, servers), np.int64)
    if view == "priority":
        return spaces.Box(-1.0, 1.0, (window,), np.float32)
    return spaces.Discrete({"pick": window + 1, "rule": len(RULES)}[view])


def observation_space(
    parameters: FlowtimeParameters, window: int, servers: int, tasks: int, latency: bool
) -> spaces.Dict:
    """The observation space: named arrays in exact units, or float32 tokens."""

    def whole(*shape: int) -> spaces.Box:
        return spaces.Box(0, MOST, shape, np.int64)

    def real(*shape: int) -> spaces.Box:
        return spaces.Box(0.0, float(MOST), shape, np.float64)

    entries: dict[str, spaces.Space] = {}  # type: ignore[type-arg]
    if parameters.observation == "dict":
        phases = (2,) if parameters.kind == "mapreduce" else ()
        entries = {
            "slot": whole(1),
            "server_cpu": whole(servers),
            "job": spaces.Box(0, MOST_JOBS, (window,), np.int64),
            "arrival": whole(window),
            "age": whole(window),
            "processing": whole(window, *phases),
            "demand": whole(window, *phases),
            "slots_left": real(window),
            "remaining": real(window),
            "volume": whole(window),
            "cap": whole(window),
            "held": whole(window, servers),
            "last": spaces.MultiBinary([window, servers]),
            "job_mask": spaces.MultiBinary(window),
            "active": spaces.Box(0, MOST_JOBS, (1,), np.int64),
            "backlog": spaces.Box(0, MOST_JOBS, (1,), np.int64),
        }
        if parameters.kind == "2d":
            entries["server_memory"] = whole(servers)
            entries["memory"] = whole(window)
        if parameters.kind == "mapreduce":
            entries["tasks"] = whole(window, 2)
            entries["phase"] = spaces.MultiBinary(window)
            entries["task_remaining"] = whole(window, 2, tasks)
            if latency:
                entries["latency"] = real(window, 2, tasks, servers)
        if parameters.clairvoyant:
            entries["eq27"] = real(1)
        if parameters.view == "pick":
            entries["granted"] = whole(window, servers)
            entries["free"] = whole(servers)
            if parameters.kind == "2d":
                entries["free_memory"] = whole(servers)
    else:
        entries = {
            "jobs": spaces.Box(0.0, 1.0, (window, JOB_FEATURES + servers), np.float32),
            "servers": spaces.Box(0.0, 1.0, (servers, SERVER_FEATURES), np.float32),
            "globals": spaces.Box(0.0, 1.0, (GLOBAL_FEATURES,), np.float32),
            "job_mask": spaces.MultiBinary(window),
        }
    length = mask_length(parameters, window)
    if length:
        entries["action_mask"] = spaces.MultiBinary(length)
    return spaces.Dict(entries)


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a FlowtimePacking simulator."""
    parameters, window, servers = simulator.parameters, simulator.window, simulator.servers
    return (
        observation_space(parameters, window, servers, simulator.most_tasks, simulator.latency),
        action_space(parameters.view, window, servers),
    )
