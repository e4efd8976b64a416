"""BTAwJ and BTAaJ: balanced placement of a job on its arrival, in order of arrival or in SWAG's order."""

from typing import Any

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["BalancedTaskAllocation"]

_ALGORITHMS = {
    "btawj": ("Algorithm 1 (section 3.2.1)", "balanced on empty sites"),
    "btaaj": ("Algorithm 2 (section 3.2.2)", "balanced on what is assigned already"),
}
_ORDERS = {"fcfs": "in order of arrival", "swag": "in SWAG's order"}
_TIES = (
    "The thesis leaves open which of the balanced placements is taken: the flow of Edmonds and Karp with "
    "groups and sites in ascending order. Jobs of one instant are placed in order, each after the others. C is "
    "a multiple of 1 / gcd(slots), not a whole number, unless fine=False."
)


def _balanced(algorithm: str, order: str) -> Any:
    printed, words = _ALGORITHMS[algorithm]
    return register_policy(
        f"geo/{algorithm}-{order}",
        source=f"guan2022, {printed}",
        deviations=_TIES,
        views=carrying_views(f"{algorithm}-{order}"),
        summary=f"A job is {words} as it arrives; jobs {_ORDERS[order]}.",
        algorithm=algorithm,
        order=order,
    )


@_balanced("btawj", "fcfs")
@_balanced("btawj", "swag")
@_balanced("btaaj", "fcfs")
@_balanced("btaaj", "swag")
class BalancedTaskAllocation(AssignmentPolicy):
    """Places a job as it arrives, with the least C tasks per slot at any site, and never again.

    The thesis's two simplest algorithms balance each job once, by itself or on the load of the others. Use
    them where tasks cannot be moved after their job has arrived, and little time may go into a decision. They
    need the numbers of tasks and their sites, no durations.

    At every event, for each new job by arrival:

    1. r_j is 0 at all sites (within jobs), or the waiting tasks assigned to site j, also of new jobs before
       it (across jobs).
    2. Find the least C for which a flow brings all tasks of the job from groups to their sites, of which site
       j, with u_j slots, takes $max(C u_j - r_j, 0)$: begin with a C that the sites could bear in sum, and
       raise it by the cut that a flow violates, until none does.
    3. Assign the tasks as the flow goes.

    Then order the jobs by arrival, or as swag does. The environment keeps the placement.

    The names differ by both options: btawj places within jobs, btaaj across jobs; -fcfs orders by arrival,
    -swag in SWAG's order.

    Complexity: O(J K A) per event and a balance for each new job; in SWAG's order O(J^2 M) more; J visible
    jobs and M sites. A balance is two or three maximum flows as a rule, each O(K A + M log T) and O(K A + M)
    more per augmenting path, of which there are no more than tasks, for T tasks in K groups of up to A sites.
    In view rule the environment does this work.

    Args:
        algorithm: "btawj" (within jobs: r = 0) or "btaaj" (across jobs: r = what is assigned, not started).
        order: "fcfs" or "swag".
        fine: C in multiples of 1 / gcd(slots), so that a job of few tasks is spread evenly as well; False: in
            whole tasks per slot, as printed. The thesis's statements hold best with the former (its reading
            "evenness").
    """

    def __init__(self, algorithm: str, order: str, fine: bool = True) -> None:
        super().__init__(f"{algorithm}-{order}", fine=fine)
