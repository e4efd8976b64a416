"""BTAwJ and BTAaJ: balanced placement of a job on its arrival, in order of arrival or in SWAG's order."""

from typing import Any

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

_ALGORITHMS = {
    "btawj": ("Algorithm 1 (section 3.2.1)", "as if the sites were empty"),
    "btaaj": ("Algorithm 2 (section 3.2.2)", "on top of what is assigned already"),
}
_ORDERS = {"fcfs": "in order of arrival", "swag": "in SWAG's order"}
_TIES = (
    "The thesis does not say which of several balanced placements is used; here it is the flow of Edmonds "
    "and Karp with groups and sites in ascending order. Jobs that arrive at the same instant are placed one "
    "after another. C is a multiple of 1 / gcd(slots), not a whole number, unless fine=False."
)


def _balanced(algorithm: str, order: str) -> Any:
    printed, words = _ALGORITHMS[algorithm]
    return register_policy(
        f"geo/{algorithm}-{order}",
        source=f"guan2022, {printed}",
        deviations=_TIES,
        views=carrying_views(f"{algorithm}-{order}"),
        summary=f"Spreads a job evenly when it arrives, {words}; serves jobs {_ORDERS[order]}.",
        algorithm=algorithm,
        order=order,
    )


@_balanced("btawj", "fcfs")
@_balanced("btawj", "swag")
@_balanced("btaaj", "fcfs")
@_balanced("btaaj", "swag")
class BalancedTaskAllocation(AssignmentPolicy):
    """Places a job once, when it arrives, with as few tasks per slot as possible at the busiest site.

    These are the thesis's two simplest algorithms. Use them if tasks cannot be moved after their job has
    arrived, and decisions must be fast. They need the numbers of tasks and their sites, no durations.

    At every event, for each new job by arrival:

    1. r_j is 0 at all sites (btawj, within jobs), or the number of waiting tasks that are assigned to site j,
       including those of new jobs before it (btaaj, across jobs).
    2. Find the least C for which a flow sends all tasks of the job from its groups to their sites, where site
       j with u_j slots takes at most $max(C u_j - r_j, 0)$ tasks. Begin with the C at which the sites have
       enough capacity in total, and raise it according to the minimum cut until all tasks fit.
    3. Assign the tasks according to this flow.

    Then order the jobs by arrival, or as swag does. The environment keeps the placement.

    The names give the options: btawj or btaaj, and the order -fcfs or -swag.

    Complexity: O(J K A) per event and a balance for each new job; in SWAG's order O(J^2 M) more; J visible
    jobs and M sites. A balance is log T maximum flows, each O(K A + M) and as much more per augmenting path,
    of which there are no more than tasks of the job, for T tasks in all, in K groups of up to A sites. In
    view rule the environment does this work.

    Args:
        algorithm: "btawj" (within jobs: r = 0) or "btaaj" (across jobs: r = what is assigned, not started).
        order: "fcfs" or "swag".
        fine: C is a multiple of 1 / gcd(slots), so that a job of few tasks is spread evenly, too; False: C
            is a whole number of tasks per slot, as printed. With True the statements of the thesis hold best
            (its reading "evenness").
    """

    def __init__(self, algorithm: str, order: str, fine: bool = True) -> None:
        super().__init__(f"{algorithm}-{order}", fine=fine)
