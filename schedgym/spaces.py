"""Spaces of observations, derived from the marks of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces


def observation_space(simulator: Any) -> spaces.Dict:
    """Return the observation space of one environment: of each entry of ``simulator.observation`` its space.

    Single numbers are Discrete; all others are a Box of the array's shape and type, with the limits that
    :class:`~schedgym.core.arrays.Shown` declares, and those of bytes, which are flags, are 0 and 1. There is
    no MultiBinary, as several libraries do not read those of more than one dimension, or any.
    """
    entries: dict[str, spaces.Space[Any]] = {}
    for name, buffer in simulator.observation.items():
        mark, shape, dtype = simulator.shown[name], buffer.shape[1:], buffer.dtype
        least, most = (limit(simulator) if callable(limit) else limit for limit in (mark.least, mark.most))
        if mark.single:
            entries[name] = spaces.Discrete(int(most) + 1)
        elif dtype == np.int8:
            entries[name] = spaces.Box(0, 1, shape, np.int8)
        else:
            low, high = (np.broadcast_to(bound, shape).astype(dtype) for bound in (least, most))
            entries[name] = spaces.Box(low, high, shape, dtype.type)
    return spaces.Dict(entries)
