"""SCTA: SWAG that balances a new job at every place of the order until it is placed."""

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy


@register_policy(
    "geo/scta",
    source="guan2022, Algorithm 3 (section 3.2.3)",
    deviations="Estimates are divided by the slots (line 23 omits it). Jobs that arrive at one instant are "
    "placed one after another, unless together=True. The order is SWAG's on the final placement. C is a "
    "multiple of 1 / gcd(slots), not a whole number, unless fine=False.",
    views=carrying_views("scta"),
)
class SCTA(AssignmentPolicy):
    """Schedule conscious task allocation: places a new job on top of those before it in SWAG's order.

    Order and placement of a new job are decided together; its tasks then keep their sites. Use it if tasks
    cannot be moved after their job has arrived; it is faster than ata. It needs the numbers of waiting tasks
    and their sites, no durations.

    At every event, for each new job by arrival:

    1. Make SWAG's order of the jobs placed so far and the new one. r_j is the number of waiting tasks at site
       j of the jobs that are in the order already.
    2. To estimate the completion of the new job, balance it on top of r: find by maximum flows the least C
       with which no site has more than C tasks per slot. If q_ij of its tasks are at site j, which has u_j
       slots, the estimate is $max_j (r_j + q_ij) / u_j$. Append the job with the least estimate to the order,
       ties by arrival.
    3. When the new job is appended, it keeps the placement of that moment.

    When all new jobs are placed, the jobs are served in SWAG's order. The environment keeps the placements of
    earlier jobs.

    Complexity: O((N + 1) J^2 M + N J K A) per event and up to N J balances, for J visible jobs, N of them
    new, and M sites; with ``together`` O(J^2 M + J K A) and as many balances. A balance is log T maximum
    flows, each O(K A + M) and as much more per augmenting path, of which there are no more than tasks of the
    job, for T tasks in all, in K groups of up to A sites. In view rule the environment does this work.

    Args:
        fine: C is a multiple of 1 / gcd(slots), so that a job of few tasks is spread evenly, too; False: C
            is a whole number of tasks per slot, as printed. With True the statements of the thesis hold best
            (its reading "evenness").
        together: jobs that arrive at one instant are placed in one pass.
    """

    def __init__(self, fine: bool = True, together: bool = False) -> None:
        super().__init__("scta", fine=fine, together=together)
