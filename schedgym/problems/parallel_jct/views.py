"""The action space of each view of ParallelJCT."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from schedgym.core.arrays import Sizes
from schedgym.problems.parallel_jct.problem import ParallelJCTParameters
from schedgym.problems.single_job.topology import MOST_CPU


def action_space(parameters: ParallelJCTParameters, sizes: Sizes) -> spaces.Box | spaces.Discrete:
    """Return the action space of the view."""
    window, servers, tasks = (sizes[name] for name in ("window", "server", "planned"))
    if parameters.view == "plan":
        high = np.empty((1 + tasks, 2))
        high[0] = window, 1.0
        high[1:] = servers - 1, MOST_CPU
        return spaces.Box(np.zeros_like(high), high, dtype=np.float64)
    more = {"pick": 0, "place": servers, "search": tasks * servers + 1}
    return spaces.Discrete(window + 1 + more[parameters.view])
