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

    1. At a tick, draw an order of the waiting jobs, all alike, and again after every launch.
    2. Job by job: with ``mar`` the pass ends unless more than ``max_percent`` of all vCPU is available. Plan
       the job alone on what is available now, within its own energy cap; launch it as planned, or pass over
       it if it cannot be planned.
    3. The pass ends after the last job. Every job has one turn in it.

    Each call launches one job, or ends the pass; within a pass it is remembered who has had a turn.

    Complexity: O(W) per launch for W visible waiting jobs, O(M) for the test with M servers, and at most W
    plans in a pass, each as costly as for a single job.

    Args:
        planner: of single jobs: "tapra-fast", "tapra", "min-min", "mm-ga" or "gsa".
        mar: launch only while more than max_percent of all vCPU is available.
        max_percent: threshold of that test, in [0, 1].
    """

    def __init__(self, planner: str = "tapra-fast", mar: bool = False, max_percent: float = 0.3) -> None:
        super().__init__("random", "random", planner, mar, max_percent)
