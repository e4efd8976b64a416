"""FCFS, SLF and LLF: the paper's rivals of OnTaPRA, with each planner of its Fig. 6."""

from schedgym.baselines.parallel_jct.policy import KNOWS, LaunchPolicy
from schedgym.core.policy import register_policy

__all__ = ["FirstComeFirstServed", "LargestLoadFirst", "SmallestLoadFirst"]

SOURCE = "paper 001, section 6.2"
_PASS = (
    "One pass over the waiting jobs; those that cannot be planned are skipped. With mar=True the MAR test is "
    "made before each job, and ends the pass."
)
_FCFS = _PASS + (
    " It decides at arrivals and at completions of tasks (the paper: at arrivals, after which the last jobs "
    "would never start), and takes back what DRC lent then."
)
ON_TICKS = {"rounds": ("all", "ticks")}
ON_EVENTS = {"rounds": ("all", "events")}


@register_policy(
    "parallel-jct/fcfs",
    source=SOURCE,
    deviations=_FCFS,
    knows=KNOWS,
    views=("plan", "pick"),
    needs=ON_EVENTS,
)
@register_policy(
    "parallel-jct/fcfs-mar",
    source=SOURCE,
    deviations=_FCFS,
    knows=KNOWS,
    views=("plan", "pick"),
    needs=ON_EVENTS,
    summary="FCFS with the MAR test of OnTaPRA.",
    mar=True,
)
@register_policy(
    "parallel-jct/fcfs-tapra",
    source=SOURCE,
    deviations=_FCFS,
    knows=KNOWS,
    views=("plan",),
    needs=ON_EVENTS,
    summary="FCFS that plans by TaPRA.",
    planner="tapra",
)
@register_policy(
    "parallel-jct/fcfs-min-min",
    source=SOURCE,
    deviations=_FCFS,
    knows=KNOWS,
    views=("plan",),
    needs=ON_EVENTS,
    summary="FCFS that plans by Min-Min.",
    planner="min-min",
)
@register_policy(
    "parallel-jct/fcfs-mm-ga",
    source=SOURCE,
    deviations=_FCFS,
    knows=KNOWS,
    views=("plan",),
    needs=ON_EVENTS,
    summary="FCFS that plans by MM-GA.",
    planner="mm-ga",
)
@register_policy(
    "parallel-jct/fcfs-gsa",
    source=SOURCE,
    deviations=_FCFS,
    knows=KNOWS,
    views=("plan",),
    needs=ON_EVENTS,
    summary="FCFS that plans by GSA.",
    planner="gsa",
)
class FirstComeFirstServed(LaunchPolicy):
    """Waiting jobs in order of arrival, at arrivals and completions.

    1. When a job arrives or tasks complete, the pass goes through the waiting jobs as they arrived.
    2. Job by job: with ``mar`` the pass ends unless more than ``max_percent`` of all vCPU is available. Plan
       the job alone on what is available now, within its own energy cap; launch it as planned, or pass over
       it if it cannot be planned.
    3. The pass ends after the last job. Every job has one turn in it.

    Each call launches one job, or ends the pass; within a pass it is remembered who has had a turn.

    The names differ by options: fcfs plans by TaPRA-fast; fcfs-tapra, fcfs-min-min, fcfs-mm-ga and fcfs-gsa
    set ``planner``; fcfs-mar sets ``mar``.

    Complexity: O(W) per launch for W visible waiting jobs, O(M) for the test with M servers, and at most W
    plans in a pass, each as costly as for a single job.

    Args:
        planner: of single jobs: "tapra-fast", "tapra", "min-min", "mm-ga" or "gsa".
        mar: launch only while more than max_percent of all vCPU is available.
        max_percent: threshold of that test, in [0, 1].
    """

    def __init__(self, planner: str = "tapra-fast", mar: bool = False, max_percent: float = 0.3) -> None:
        super().__init__("fcfs", "fcfs", planner, mar, max_percent)


@register_policy(
    "parallel-jct/slf",
    source=SOURCE,
    deviations=_PASS,
    knows=KNOWS,
    views=("plan", "pick"),
    needs=ON_TICKS,
)
@register_policy(
    "parallel-jct/slf-mar",
    source=SOURCE,
    deviations=_PASS,
    knows=KNOWS,
    views=("plan", "pick"),
    needs=ON_TICKS,
    summary="SLF with the MAR test of OnTaPRA.",
    mar=True,
)
@register_policy(
    "parallel-jct/slf-tapra",
    source=SOURCE,
    deviations=_PASS,
    knows=KNOWS,
    views=("plan",),
    needs=ON_TICKS,
    summary="SLF that plans by TaPRA.",
    planner="tapra",
)
@register_policy(
    "parallel-jct/slf-min-min",
    source=SOURCE,
    deviations=_PASS,
    knows=KNOWS,
    views=("plan",),
    needs=ON_TICKS,
    summary="SLF that plans by Min-Min.",
    planner="min-min",
)
@register_policy(
    "parallel-jct/slf-mm-ga",
    source=SOURCE,
    deviations=_PASS,
    knows=KNOWS,
    views=("plan",),
    needs=ON_TICKS,
    summary="SLF that plans by MM-GA.",
    planner="mm-ga",
)
@register_policy(
    "parallel-jct/slf-gsa",
    source=SOURCE,
    deviations=_PASS,
    knows=KNOWS,
    views=("plan",),
    needs=ON_TICKS,
    summary="SLF that plans by GSA.",
    planner="gsa",
)
class SmallestLoadFirst(LaunchPolicy):
    """Waiting jobs with the smallest total load first, at ticks.

    1. At a tick, sort the waiting jobs by the sum of their tasks' loads, smallest first, ties by arrival.
    2. Job by job: with ``mar`` the pass ends unless more than ``max_percent`` of all vCPU is available. Plan
       the job alone on what is available now, within its own energy cap; launch it as planned, or pass over
       it if it cannot be planned.
    3. The pass ends after the last job. Every job has one turn in it.

    Each call launches one job, or ends the pass; within a pass it is remembered who has had a turn.

    The names differ by options: slf plans by TaPRA-fast; slf-tapra, slf-min-min, slf-mm-ga and slf-gsa set
    ``planner``; slf-mar sets ``mar``.

    Complexity: O(W log W) per launch for W visible waiting jobs, O(M) for the test with M servers, and at
    most W plans in a pass, each as costly as for a single job.

    Args:
        planner: of single jobs: "tapra-fast", "tapra", "min-min", "mm-ga" or "gsa".
        mar: launch only while more than max_percent of all vCPU is available.
        max_percent: threshold of that test, in [0, 1].
    """

    def __init__(self, planner: str = "tapra-fast", mar: bool = False, max_percent: float = 0.3) -> None:
        super().__init__("slf", "slf", planner, mar, max_percent)


@register_policy(
    "parallel-jct/llf",
    source=SOURCE,
    deviations=_PASS,
    knows=KNOWS,
    views=("plan", "pick"),
    needs=ON_TICKS,
)
@register_policy(
    "parallel-jct/llf-mar",
    source=SOURCE,
    deviations=_PASS,
    knows=KNOWS,
    views=("plan", "pick"),
    needs=ON_TICKS,
    summary="LLF with the MAR test of OnTaPRA.",
    mar=True,
)
@register_policy(
    "parallel-jct/llf-tapra",
    source=SOURCE,
    deviations=_PASS,
    knows=KNOWS,
    views=("plan",),
    needs=ON_TICKS,
    summary="LLF that plans by TaPRA.",
    planner="tapra",
)
@register_policy(
    "parallel-jct/llf-min-min",
    source=SOURCE,
    deviations=_PASS,
    knows=KNOWS,
    views=("plan",),
    needs=ON_TICKS,
    summary="LLF that plans by Min-Min.",
    planner="min-min",
)
@register_policy(
    "parallel-jct/llf-mm-ga",
    source=SOURCE,
    deviations=_PASS,
    knows=KNOWS,
    views=("plan",),
    needs=ON_TICKS,
    summary="LLF that plans by MM-GA.",
    planner="mm-ga",
)
@register_policy(
    "parallel-jct/llf-gsa",
    source=SOURCE,
    deviations=_PASS,
    knows=KNOWS,
    views=("plan",),
    needs=ON_TICKS,
    summary="LLF that plans by GSA.",
    planner="gsa",
)
class LargestLoadFirst(LaunchPolicy):
    """Waiting jobs with the largest total load first, at ticks.

    1. At a tick, sort the waiting jobs by the sum of their tasks' loads, largest first, ties by arrival.
    2. Job by job: with ``mar`` the pass ends unless more than ``max_percent`` of all vCPU is available. Plan
       the job alone on what is available now, within its own energy cap; launch it as planned, or pass over
       it if it cannot be planned.
    3. The pass ends after the last job. Every job has one turn in it.

    Each call launches one job, or ends the pass; within a pass it is remembered who has had a turn.

    The names differ by options: llf plans by TaPRA-fast; llf-tapra, llf-min-min, llf-mm-ga and llf-gsa set
    ``planner``; llf-mar sets ``mar``.

    Complexity: O(W log W) per launch for W visible waiting jobs, O(M) for the test with M servers, and at
    most W plans in a pass, each as costly as for a single job.

    Args:
        planner: of single jobs: "tapra-fast", "tapra", "min-min", "mm-ga" or "gsa".
        mar: launch only while more than max_percent of all vCPU is available.
        max_percent: threshold of that test, in [0, 1].
    """

    def __init__(self, planner: str = "tapra-fast", mar: bool = False, max_percent: float = 0.3) -> None:
        super().__init__("llf", "llf", planner, mar, max_percent)
