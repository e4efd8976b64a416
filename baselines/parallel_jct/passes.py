"""FCFS, SLF, LLF and random: one pass over the waiting jobs, in orders that differ by one key.

The paper compares OnTaPRA with the first three, each with every planner of its Fig. 6. The planners size
tasks by Eq. 16 or by equal shares.
"""

from __future__ import annotations

from typing import Any

from schedgym.baselines.parallel_jct.policy import CANDIDATES, KNOWS, LaunchPolicy
from schedgym.core.policy import register_policy
from schedgym.solvers.planning import RIVALS

_PAPER = "shi2017, section 6.2"
_PASS = (
    "Each waiting job is tried once; jobs that cannot be planned are skipped. With mar=True the MAR test is "
    "made before each job, and the pass ends if it fails."
)
_SHARES = (
    " The paper does not say how the planners Min-Min, MM-GA and GSA size tasks. Its numbers for one job fit "
    "equal shares of every limit (allocation='equal-share') better than Eq. 16 ('optra')."
)
_FCFS = _PASS + (
    " It decides at arrivals and at completions of tasks; the paper has arrivals only, with which the last "
    "jobs would never start. When it decides, it takes back the vCPU that DRC has added to running tasks."
)
_FIRST = "Launches jobs with the {} total load first, at ticks."
#: order -> what it does, its source, deviations, the rounds that it needs
ORDERS = {
    "fcfs": ("Launches jobs in order of arrival, at arrivals and completions.", _PAPER, _FCFS, "events"),
    "slf": (_FIRST.format("smallest"), _PAPER, _PASS, "ticks"),
    "llf": (_FIRST.format("largest"), _PAPER, _PASS, "ticks"),
    "random": ("Launches jobs in random order, at ticks.", "schedgym (not in the paper)", "", "ticks"),
}
#: end of a name -> what it adds, the options that it fixes
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "-mar": ("with the MAR test of OnTaPRA.", {"mar": True}),
    "-tapra": ("that plans by TaPRA.", {"planner": "tapra"}),
    "-min-min": ("that plans by Min-Min.", {"planner": "min-min"}),
    "-mm-ga": ("that plans by MM-GA.", {"planner": "mm-ga"}),
    "-gsa": ("that plans by GSA.", {"planner": "gsa"}),
}
for _planner, _title in (("min-min", "Min-Min"), ("mm-ga", "MM-GA"), ("gsa", "GSA")):
    VARIANTS[f"-{_planner}-equal"] = (
        f"that plans by {_title} and splits every limit equally among the tasks.",
        {"planner": _planner, "allocation": "equal-share"},
    )


def _enter(policy: Any) -> Any:
    """Register the class for each order, and those of the paper for each variant, too."""
    for order, (summary, source, deviations, rounds) in ORDERS.items():
        names: dict[str, tuple[str, dict[str, Any]]] = {"": (summary, {})}
        if source == _PAPER:
            names |= {end: (f"{order.upper()} {more}", fixed) for end, (more, fixed) in VARIANTS.items()}
        for end, (says, fixed) in names.items():
            register_policy(
                f"parallel-jct/{order}{end}",
                source=source,
                deviations=deviations + (_SHARES if fixed.get("planner") in RIVALS else ""),
                knows=KNOWS,
                views=("plan",) if "planner" in fixed else ("plan", "pick"),
                needs={"rounds": ("all", rounds)},
                summary=says,
                # slf with mar=True is slf-mar
                candidates=CANDIDATES if fixed.get("mar") else {"mar": ()},
                order=order,
                **fixed,
            )(policy)
    return policy


@_enter
class OnePass(LaunchPolicy):
    """Launches waiting jobs one after another, if they can be planned, in the order that the name gives.

    The paper compares OnTaPRA with these schedulers, which plan each job once, in the order of one key. Use
    slf (smallest load first) for a low mean time in the system with few plans, best with the MAR test
    (slf-mar). Use fcfs, llf and random as baselines. All need the loads, efficiencies and power of the
    waiting jobs' tasks.

    1. At a tick (fcfs: when a job arrives or tasks complete), sort the waiting jobs, least key first, ties by
       arrival. The key of fcfs is the arrival, of slf the sum of the tasks' loads, of llf that sum, the
       largest first; random draws an order, all equally likely, and draws again after every launch.
    2. Job by job: with ``mar`` the pass ends unless more than ``max_percent`` of all vCPU is available. Plan
       the job alone on what is available now, within its own energy cap; launch it as planned, or pass over
       it if it cannot be planned.
    3. The pass ends after the last job. Every job is tried once.

    Each call launches one job, or ends the pass; during a pass the policy remembers which jobs it has tried.

    The rest of a name gives options: slf plans by TaPRA-fast; slf-tapra, slf-min-min, slf-mm-ga and slf-gsa
    set ``planner``; slf-mar sets ``mar``. slf-min-min-equal, slf-mm-ga-equal and slf-gsa-equal also set
    ``allocation="equal-share"``, which splits every limit equally among the tasks in its group: a task on
    server j gets $min_k B_k / (n_k A_jk)$ vCPU over the groups k of the server, where n_k tasks of the job
    are in group k, and a vCPU of the server counts $A_jk$ there (1 in a fat tree).

    Complexity: O(W log W) per launch for W visible waiting jobs (fcfs and random: O(W)), O(M) for the test
    with M servers, and at most W plans in a pass, each as costly as for a single job.

    Args:
        order: "fcfs", "slf", "llf" or "random".
        planner: planner of each job: "tapra-fast", "tapra", "min-min", "mm-ga" or "gsa".
        mar: launch only while more than max_percent of all vCPU is available.
        max_percent: threshold of that test, in [0, 1].
        allocation: "optra" (Eq. 16) or "equal-share": the sizes of tasks in plans of min-min, mm-ga and gsa.
    """

    def __init__(
        self,
        order: str,
        planner: str = "tapra-fast",
        mar: bool = False,
        max_percent: float = 0.3,
        allocation: str = "optra",
    ) -> None:
        super().__init__(order, planner, mar, max_percent, allocation)
