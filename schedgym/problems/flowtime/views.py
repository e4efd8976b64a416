"""Spaces of FlowtimePacking: the actions of each view, and the observations of each kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.problems.flowtime.rules import RULES
from schedgym.spaces import observation_space

__all__ = ["action_space", "make_spaces"]

MOST = 10**12  # slots, cores, GB, and their products
MOST_SLOTS = 12 * MOST + 1  # of the clock: three times Eq. 27, which is at most four times the work
MOST_DECLARED = 10**14  # core-slots
MOST_JOBS = 10**7


def action_space(view: str, window: int, servers: int) -> spaces.Box | spaces.Discrete:
    """The action space of a view with ``window`` visible jobs."""
    if view == "allocation":
        return spaces.Box(0, 10**6, (window, servers), np.int64)
    if view == "priority":
        return spaces.Box(-1.0, 1.0, (window,), np.float32)
    return spaces.Discrete({"pick": window + 1, "rule": len(RULES)}[view])


def make_spaces(simulator: Any) -> tuple[spaces.Dict, spaces.Box | spaces.Discrete]:
    """Observation and action space of one environment of a FlowtimePacking simulator."""
    limits: dict[str, Any] = {
        name: MOST for name, buffer in simulator.observation.items() if buffer.dtype.itemsize == 8
    }
    limits |= dict.fromkeys(("job", "active", "backlog"), MOST_JOBS)
    limits |= dict.fromkeys(("slot", "arrival", "age", "last"), MOST_SLOTS)
    limits |= {"volume": MOST_DECLARED, "eq27": 4 * MOST_DECLARED}
    limits["phase"] = 1
    return (
        observation_space(simulator, limits),
        action_space(simulator.parameters.view, simulator.window, simulator.servers),
    )
