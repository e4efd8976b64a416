"""What costs nothing to think of: waiting jobs in random order."""

from schedgym.baselines.parallel_jct.policy import KNOWS, LaunchPolicy
from schedgym.core.policy import register_policy

__all__ = ["Random"]


@register_policy(
    "parallel-jct/random",
    source="schedgym (not in the paper)",
    knows=KNOWS,
    views=("plan", "pick"),
    needs={"rounds": ("all", "ticks")},
)
class Random(LaunchPolicy):
    """Waiting jobs in random order, at ticks.

    Args:
        planner: of single jobs: "tapra-fast", "tapra", "min-min", "mm-ga" or "gsa".
        mar: launch only while more than ``max_percent`` of all vCPU is available.
        max_percent: threshold of that test, in [0, 1].
    """

    def __init__(self, planner: str = "tapra-fast", mar: bool = False, max_percent: float = 0.3) -> None:
        super().__init__("random", "random", planner, mar, max_percent)
