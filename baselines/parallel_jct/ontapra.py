"""OnTaPRA: the paper's online scheduler."""

from schedgym.baselines.parallel_jct.policy import CANDIDATES, KNOWS, LaunchPolicy
from schedgym.core.policy import register_policy

__all__ = ["OnTapra"]

_DEVIATIONS = (
    "A job that cannot be planned leaves the round; if none can be, the round ends (Algorithm 4 takes the "
    "minimum of an empty set then). The paper leaves the MAR test's threshold open (max_percent). DRC is "
    "done by the environment (drc=False turns it off)."
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

    The paper's online scheduler is shortest job first with planned completion times. Use it for a low mean
    time in the system; it needs the loads, efficiencies and power of the waiting jobs' tasks, and plans many
    jobs per tick. ontapra-tapra plans a little better and takes much longer.

    1. MAR test (with ``mar``): end the round unless more than ``max_percent`` of all vCPU is available.
    2. Plan every waiting job alone on what is available now, within its own energy cap. A job that cannot be
       planned leaves the round.
    3. Launch the job with the least completion time, ties by arrival, as planned; go to 1. End the round if
       there is none.

    Each call is one iteration. Plans that cannot matter are spared: a job takes at least its least work, with
    every task on its most efficient server, over the most vCPU that its number of tasks can have, and is not
    planned if a better one is known. Within a round the policy keeps which jobs have left it, and what was
    available in each iteration, so that a job that was spared leaves as it would have done.

    The name ontapra-tapra sets ``planner="tapra"``; ontapra plans by TaPRA-fast.

    Complexity: O(M^2 + R + M D) per launch for the bounds (servers are sorted by insertion), O(W) to compare
    them (W log W with other planners than tapra-fast), and up to W plans, of which the bounds spare most; W
    visible waiting jobs, M servers, R groups of servers, D around a server. A job spared in i iterations is
    tried on each before its next plan, with tapra-fast only until its plan is finite. A plan costs what it
    does for a single job.

    Args:
        planner: of single jobs: "tapra-fast", "tapra", "min-min", "mm-ga" or "gsa".
        mar: launch only while more than max_percent of all vCPU is available.
        max_percent: threshold of that test, in [0, 1].
    """

    def __init__(self, planner: str = "tapra-fast", mar: bool = True, max_percent: float = 0.3) -> None:
        super().__init__("ontapra", planner, mar, max_percent)
