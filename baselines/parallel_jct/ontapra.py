"""OnTaPRA: the paper's online scheduler."""

from schedgym.baselines.parallel_jct.policy import KNOWS, LaunchPolicy
from schedgym.core.policy import register_policy

__all__ = ["OnTapra"]

_DEVIATIONS = (
    "A job that cannot be planned leaves the round; if none can be, the round ends (Algorithm 4 takes the "
    "minimum of nothing then). The paper leaves the MAR test's threshold open (max_percent). DRC is the "
    "environment's (drc=False turns it off)."
)
NEEDS = {"rounds": ("all", "ticks")}


@register_policy(
    "parallel-jct/ontapra",
    source="paper 001, Algorithm 4 (OnTaPRA with the policy SJF)",
    deviations=_DEVIATIONS,
    knows=KNOWS,
    views=("plan", "pick"),
    needs=NEEDS,
)
@register_policy(
    "parallel-jct/ontapra-tapra",
    source="paper 001, Algorithm 4 (OnTaPRA with the policy SJF)",
    deviations=_DEVIATIONS,
    knows=KNOWS,
    views=("plan",),
    needs=NEEDS,
    summary="OnTaPRA that plans by TaPRA.",
    planner="tapra",
)
class OnTapra(LaunchPolicy):
    """At each tick, of all waiting jobs planned anew, launch the one that would complete first, and so on.

    Args:
        planner: of single jobs: "tapra-fast", "tapra", "min-min", "mm-ga" or "gsa".
        mar: launch only while more than ``max_percent`` of all vCPU is available.
        max_percent: threshold of that test, in [0, 1].
    """

    def __init__(self, planner: str = "tapra-fast", mar: bool = True, max_percent: float = 0.3) -> None:
        super().__init__("sjf", "ontapra", planner, mar, max_percent)
