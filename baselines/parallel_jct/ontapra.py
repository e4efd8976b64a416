"""OnTaPRA: the paper's online scheduler."""

from schedgym.baselines.parallel_jct.policy import CANDIDATES, KNOWS, LaunchPolicy
from schedgym.core.policy import register_policy

_DEVIATIONS = (
    "A job that cannot be planned leaves the round. If no job can be planned, the round ends; Algorithm 4 "
    "would take the minimum of an empty set. The paper gives no threshold of the MAR test (max_percent). The "
    "environment does DRC (drc=False turns it off)."
)
NEEDS = {"rounds": ("all", "ticks")}


@register_policy(
    "parallel-jct/ontapra",
    source="shi2017, Algorithm 4 (OnTaPRA with the policy SJF)",
    deviations=_DEVIATIONS,
    knows=KNOWS,
    views=("plan", "pick"),
    needs=NEEDS,
    candidates=CANDIDATES,
)
@register_policy(
    "parallel-jct/ontapra-tapra",
    source="shi2017, Algorithm 4 (OnTaPRA with the policy SJF)",
    deviations=_DEVIATIONS,
    knows=KNOWS,
    views=("plan",),
    needs=NEEDS,
    candidates=CANDIDATES,
    summary="OnTaPRA that plans by TaPRA.",
    planner="tapra",
)
class OnTapra(LaunchPolicy):
    """Plans all waiting jobs at each tick, launches the one that would complete first, and repeats that.

    This is the paper's online scheduler: shortest job first, where the length of a job is its planned
    completion time. Use it for a low mean time in the system. It needs the loads, efficiencies and power of
    the waiting jobs' tasks, and makes many plans at each tick. ontapra-tapra plans a little better and takes
    much longer.

    1. MAR test (with ``mar``): end the round unless more than ``max_percent`` of all vCPU is available.
    2. Plan every waiting job alone on what is available now, within its own energy cap. A job that cannot be
       planned leaves the round.
    3. Launch the job with the least completion time, ties by arrival, as planned; go to 1. End the round if
       there is none.

    Each call is one iteration. Most plans are left out, without changing any decision. The completion time of
    a job has a lower bound: its work with every task on its most efficient server, divided by the most vCPU
    that its number of tasks can have. A job whose bound is above the best known completion time is not
    planned. During a round the policy remembers which jobs have left it, and what was available in each
    iteration, so that jobs without a plan leave the round exactly when they would have with one.

    The name ontapra-tapra sets ``planner="tapra"``; ontapra plans by TaPRA-fast.

    Complexity: O(M^2 + R + M D) per launch for the bounds (servers are sorted by insertion), O(W) to compare
    them (W log W with other planners than tapra-fast), and up to W plans, most of which the bounds avoid; W
    visible waiting jobs, M servers, R groups of servers, D groups of a server. A job that was not planned in
    i iterations is first planned for each of them when it is planned next (with tapra-fast only until a plan
    is finite). A plan costs the same as for a single job.

    Args:
        planner: planner of each job: "tapra-fast", "tapra", "min-min", "mm-ga" or "gsa".
        mar: launch only while more than max_percent of all vCPU is available.
        max_percent: threshold of that test, in [0, 1].
    """

    def __init__(self, planner: str = "tapra-fast", mar: bool = True, max_percent: float = 0.3) -> None:
        super().__init__("ontapra", planner, mar, max_percent)
