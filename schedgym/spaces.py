"""Spaces of observations, derived from the arrays that the simulator shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

__all__ = ["observation_space"]


def observation_space(simulator: Any, limits: Mapping[str, Any]) -> spaces.Dict:
    """Return the observation space of one environment: of each entry of ``simulator.observation`` its space.

    All are a Box of the array's shape and type: bytes are flags, 0 or 1, and float32 are tokens, in [0, 1]
    unless ``limits`` says otherwise. Only single numbers that ``simulator.scalars`` names are Discrete. There
    is no MultiBinary, as several libraries do not read those of more than one dimension, or any.

    Args:
        simulator: simulator of the environment.
        limits: name of an entry -> its largest value (the least is 0), (least, largest), or its space. Names
            that are not shown may be among them.
    """
    entries: dict[str, spaces.Space[Any]] = {}
    for name, buffer in simulator.observation.items():
        shape, limit = buffer.shape[1:], limits.get(name, 1.0)
        if isinstance(limit, spaces.Space):
            entries[name] = limit
        elif name in simulator.scalars:
            entries[name] = spaces.Discrete(int(limit) + 1)
        elif buffer.dtype == np.int8:
            entries[name] = spaces.Box(0, 1, shape, np.int8)
        else:
            low, high = limit if isinstance(limit, tuple) else (0, limit)
            low, high = (np.broadcast_to(bound, shape).astype(buffer.dtype) for bound in (low, high))
            entries[name] = spaces.Box(low, high, shape, buffer.dtype.type)
    return spaces.Dict(entries)
