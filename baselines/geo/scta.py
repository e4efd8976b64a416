"""SCTA: SWAG that balances a new job at every place of the order until it is placed."""

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["SCTA"]


@register_policy(
    "geo/scta",
    source="guan2022, Algorithm 3 (section 3.2.3)",
    deviations="Estimates are divided by the slots (line 23 omits it). Jobs that arrive at one instant are "
    "placed one after another, unless together=True. The order is SWAG's on the final placement. C is a "
    "multiple of 1 / gcd(slots), not a whole number, unless fine=False.",
    views=carrying_views("scta"),
)
class SCTA(AssignmentPolicy):
    """Schedule conscious task allocation: a new job gets the placement that suits its place in the order.

    Only new jobs are placed, with the loads that precede them in the order, and then keep their sites. Use it
    where tasks are bound to a site once their job has been admitted; it costs less than ata. It needs the
    numbers of waiting tasks and their sites, no durations.

    At every event, for each new job by arrival:

    1. Make SWAG's order of the jobs placed so far and the new one, r_j being the waiting tasks at site j of
       the jobs in the order so far.
    2. Whenever an estimate of the new job is needed, balance it on r (find by flows the least C tasks per
       slot): its estimate is $max_j (r_j + q_ij) / u_j$ for its q_ij tasks at site j of u_j slots under that
       placement. The job with the least estimate is appended, ties by arrival.
    3. When the new job is appended, it keeps the placement of that moment.

    In the end SWAG orders all jobs. The environment keeps the placements of earlier jobs.

    Complexity: O((N + 1) J^2 M + N J K A) per event and up to N J balances, for J visible jobs, N of them
    new, and M sites; with ``together`` O(J^2 M + J K A) and as many balances. A balance is two or three
    maximum flows as a rule, each O(K A + M log T) and O(K A + M) more per augmenting path, of which there are
    no more than tasks, for T tasks in K groups of up to A sites. In view rule the environment does this work.

    Args:
        fine: C in multiples of 1 / gcd(slots), so that a job of few tasks is spread evenly as well; False: in
            whole tasks per slot, as printed. The thesis's statements hold best with the former (its reading
            "evenness").
        together: jobs that arrive at one instant are placed in one pass.
    """

    def __init__(self, fine: bool = True, together: bool = False) -> None:
        super().__init__("scta", fine=fine, together=together)
