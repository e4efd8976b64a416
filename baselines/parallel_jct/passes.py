"""FCFS, SLF, LLF and random: one pass over the waiting jobs, in orders that differ by one key.

The first three are the paper's rivals of OnTaPRA, with each planner of its Fig. 6, whose tasks are sized by
Eq. 16 or by equal shares.
"""

from __future__ import annotations

from typing import Any

from schedgym.baselines.parallel_jct.policy import CANDIDATES, KNOWS, LaunchPolicy
from schedgym.core.policy import register_policy
from schedgym.solvers.planning import RIVALS

__all__ = ["OnePass"]

_PAPER = "shi2017, section 6.2"
_PASS = (
    "One pass over the waiting jobs; those that cannot be planned are skipped. With mar=True the MAR test is "
    "made before each job, and ends the pass."
)
_SHARES = (
    " The paper does not say how its rivals size tasks; its numbers of one job fit equal shares of every "
    "limit (allocation='equal-share'), not Eq. 16 ('optra')."
)
_FCFS = _PASS + (
    " It decides at arrivals and at completions of tasks (the paper: at arrivals, after which the last jobs "
    "would never start), and then takes back the vCPU that DRC has added to running tasks."
)
_FIRST = "Waiting jobs with the {} total load first, at ticks."
#: order -> what it does, its source, deviations, the rounds that it needs
ORDERS = {
    "fcfs": ("Waiting jobs in order of arrival, at arrivals and completions.", _PAPER, _FCFS, "events"),
    "slf": (_FIRST.format("smallest"), _PAPER, _PASS, "ticks"),
    "llf": (_FIRST.format("largest"), _PAPER, _PASS, "ticks"),
    "random": ("Waiting jobs in random order, at ticks.", "schedgym (not in the paper)", "", "ticks"),
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
    """Launches waiting jobs in an order that the name says, each in its turn if it can be planned.

    The paper's rivals of OnTaPRA plan each job once, in the order of one key. Use slf, shortest load first,
    to keep the mean time in the system low at little cost, best with the MAR test (slf-mar); fcfs, llf and
    random are points of reference. All need the loads, efficiencies and power of the waiting jobs' tasks.

    1. At a tick (fcfs: when a job arrives or tasks complete), sort the waiting jobs, least key first, ties by
       arrival. The key of fcfs is the arrival, of slf the sum of the tasks' loads, of llf that sum, the
       largest first; random draws an order, all equally likely, and again after every launch.
    2. Job by job: with ``mar`` the pass ends unless more than ``max_percent`` of all vCPU is available. Plan
       the job alone on what is available now, within its own energy cap; launch it as planned, or pass over
       it if it cannot be planned.
    3. The pass ends after the last job. Every job has one turn in it.

    Each call launches one job, or ends the pass; within a pass the policy keeps which jobs have had a turn.

    The names of an order differ by options: slf plans by TaPRA-fast; slf-tapra, slf-min-min, slf-mm-ga and
    slf-gsa set ``planner``; slf-mar sets ``mar``. slf-min-min-equal, slf-mm-ga-equal and slf-gsa-equal set
    ``planner``, and ``allocation="equal-share"``: every limit is split equally among the tasks in its group,
    so that a task on server j gets $min_k B_k / (n_k A_jk)$ of its groups k, which hold n_k of the job's
    tasks, and in which a vCPU there counts $A_jk$ (1 in a fat tree).

    Complexity: O(W log W) per launch for W visible waiting jobs (fcfs and random: O(W)), O(M) for the test
    with M servers, and at most W plans in a pass, each as costly as for a single job.

    Args:
        order: "fcfs", "slf", "llf" or "random".
        planner: of single jobs: "tapra-fast", "tapra", "min-min", "mm-ga" or "gsa".
        mar: launch only while more than max_percent of all vCPU is available.
        max_percent: threshold of that test, in [0, 1].
        allocation: "optra" or "equal-share": how min-min, mm-ga and gsa evaluate candidates and size tasks.
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
