"""The action space of each view of SingleJob."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from schedgym.core.arrays import Sizes
from schedgym.problems.single_job.problem import SingleJobParameters
from schedgym.problems.single_job.topology import MOST_LIMIT

#: views whose features have a token for each task on each server
PAIR_VIEWS = ("plan", "search")


def action_space(parameters: SingleJobParameters, sizes: Sizes) -> spaces.Box | spaces.Discrete:
    """Return the action space of the view."""
    tasks, servers = sizes["task"], sizes["server"]
    if parameters.view == "plan":
        high = np.tile([servers - 1.0, MOST_LIMIT], (tasks, 1))
        return spaces.Box(np.zeros_like(high), high, dtype=np.float64)
    return spaces.Discrete({"place": servers, "search": tasks * servers + 1}[parameters.view])
