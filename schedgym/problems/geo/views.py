"""Spaces of GeoAssign and GeoFair: what each view's actions and each kind of observation look like."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.geo.problem import GeoParameters
from schedgym.problems.geo.rules import ASSIGN_RULES, FAIR_RULES
from schedgym.problems.geo.tokens import GLOBAL_FEATURES, JOB_FEATURES, SITE_FEATURES
from schedgym.problems.geo.workload import LAST_TIME, MOST_SLOTS

__all__ = ["ORDER_VIEWS", "RATIO_VIEWS", "action_space", "make_spaces", "mask_length", "observation_space"]

MOST_TASKS = 10**7
#: views whose decision is an order with assigned tasks, and those whose decision are shares
ORDER_VIEWS = ("assignment", "priority", "rule")
RATIO_VIEWS = ("shares", "weights", "fair-rule")


def mask_length(parameters: GeoParameters, window: int) -> int:
    """Length of the mask of feasible actions; 0 where the view has none, or none is wanted."""
    lengths = {"pick": window, "rule": len(ASSIGN_RULES), "fair-rule": len(FAIR_RULES)}
    return lengths.get(parameters.view, 0) if parameters.action_mask else 0


def action_space(view: str, window: int, groups: int, choices: int) -> spaces.Box | spaces.Discrete:
    """The action space of a view with ``window`` visible jobs, K groups, and A sites at most per group."""
    if view == "assignment":
        low = np.zeros((window, 1 + groups * choices))
        high = np.full_like(low, MOST_TASKS)
        low[:, 0], high[:, 0] = -1.0, 1.0
        return spaces.Box(low, high, dtype=np.float64)
    if view == "shares":
        return spaces.Box(-1.0, MOST_SLOTS, (window, groups, choices), np.float64)
    if view == "priority":
        return spaces.Box(-1.0, 1.0, (window,), np.float32)
    if view == "weights":
        return spaces.Box(0.0, 1.0, (window,), np.float32)
    return spaces.Discrete({"pick": window, "rule": len(ASSIGN_RULES), "fair-rule": len(FAIR_RULES)}[view])


def observation_space(
    parameters: GeoParameters, window: int, sites: int, groups: int, choices: int
) -> spaces.Dict:
    """The observation space: named arrays in exact units, or float32 tokens."""

    def times(*shape: int) -> spaces.Box:
        return spaces.Box(0.0, LAST_TIME, shape, np.float64)

    def tasks(*shape: int) -> spaces.Box:
        return spaces.Box(0, MOST_TASKS, shape, np.int32)

    def counts(most: int, *shape: int, low: int = 0) -> spaces.Box:
        return spaces.Box(low, most, shape, np.int64)

    entries: dict[str, spaces.Space] = {}  # type: ignore[type-arg]
    in_order = parameters.view in ORDER_VIEWS
    if parameters.observation == "dict":
        entries = {
            "clock": times(1),
            "event": spaces.MultiBinary(3),
            "slots": counts(MOST_SLOTS, sites),
            "free": counts(MOST_SLOTS, sites),
            "sites": counts(sites - 1, groups, choices, low=-1),
            "group_mask": spaces.MultiBinary(groups),
            "arrival": times(window),
            "age": times(window),
            "remaining": tasks(window),
            "waiting": tasks(window, groups),
            "running": tasks(window, groups, choices),
            "new": spaces.MultiBinary(window),
            "job_mask": spaces.MultiBinary(window),
            "active": counts(MOST_TASKS, 1),
            "backlog": counts(MOST_TASKS, 1),
        }
        if in_order:
            entries["assigned"] = tasks(window, groups, choices)
        if parameters.view == "pick":
            entries["open_site"] = spaces.Discrete(sites + 1)
    else:
        features = JOB_FEATURES + groups + sites * (2 if in_order else 1)
        entries = {
            "jobs": spaces.Box(0.0, 1.0, (window, features), np.float32),
            "sites": spaces.Box(0.0, 1.0, (sites, SITE_FEATURES), np.float32),
            "globals": spaces.Box(0.0, 1.0, (GLOBAL_FEATURES,), np.float32),
            "job_mask": spaces.MultiBinary(window),
        }
    length = mask_length(parameters, window)
    if length:
        entries["action_mask"] = spaces.MultiBinary(length)
    return spaces.Dict(entries)


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a geo simulator."""
    parameters, window = simulator.parameters, simulator.window
    groups, choices = simulator.groups, simulator.choices
    return (
        observation_space(parameters, window, simulator.sites, groups, choices),
        action_space(parameters.view, window, groups, choices),
    )
