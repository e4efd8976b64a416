"""The action space of each view of QueueDelay."""

from __future__ import annotations

from gymnasium import spaces

from schedgym.core.arrays import Sizes
from schedgym.problems.queue_delay.problem import QueueDelayParameters
from schedgym.problems.queue_delay.rules import RULE_SCHEMES


def action_space(parameters: QueueDelayParameters, sizes: Sizes) -> spaces.Discrete | spaces.MultiDiscrete:
    """Return the action space of the view; "none" is the last index."""
    window, servers = sizes["window"], sizes["server"]
    if parameters.view == "placement":
        return spaces.MultiDiscrete([window + 1, servers])
    return spaces.Discrete(
        {"pick": window + 1, "route": servers + 1, "rule": len(RULE_SCHEMES)}[parameters.view]
    )
