"""Spaces of FlowtimePacking: what each view's actions and each kind of observation look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from schedgym.problems.flowtime.problem import FlowtimeParameters
from schedgym.problems.flowtime.rules import RULES

__all__ = ["action_space", "make_spaces", "mask_length", "observation_space"]

MOST = 10**12  # slots, cores, GB, and their products
MOST_JOBS = 10**7
COUNTS = ("job", "active", "backlog")  # of jobs


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


def observation_space(name: str, buffer: npt.NDArray[Any]) -> spaces.Space[Any]:
    """The space of a named entry of the observation with such a buffer, [B, ...]."""
    shape: tuple[int, ...] = buffer.shape[1:]
    if buffer.dtype == np.int8 or name == "phase":
        return spaces.MultiBinary(shape[0] if len(shape) == 1 else shape)
    if buffer.dtype == np.int64:
        return spaces.Box(0, MOST_JOBS if name in COUNTS else MOST, shape, np.int64)
    if buffer.dtype == np.float32:
        return spaces.Box(0.0, 1.0, shape, np.float32)
    return spaces.Box(0.0, float(MOST), shape, np.float64)


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a FlowtimePacking simulator."""
    entries = {name: observation_space(name, buffer) for name, buffer in simulator.observation.items()}
    return (
        spaces.Dict(entries),
        action_space(simulator.parameters.view, simulator.window, simulator.servers),
    )
