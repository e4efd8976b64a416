"""SWAG: the job that can be completed first goes first; tasks stay at their associated sites."""

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["SWAG"]


@register_policy(
    "geo/swag",
    source="guan2022, section 3.2.3; Hung, Golubchik, Yu: Scheduling Jobs Across Geo-distributed "
    "Datacenters, SoCC 2015",
    deviations="None. Ties, which the thesis leaves open, go to the earlier arrival.",
    views=carrying_views("swag"),
)
class SWAG(AssignmentPolicy):
    """Orders jobs by how soon the loads of their sites let them complete; tasks stay at associated sites.

    This is the workload-aware greedy order from which the thesis starts. Use it as the baseline where tasks
    cannot be moved between sites; ata and scta also choose the sites. It needs the numbers of waiting tasks,
    no durations, and is cheap.

    The estimate of job i is $max_j (r_j + q_ij) / u_j$, where q_ij are its waiting tasks at site j, r_j those
    of the jobs in the order so far, and u_j the site's slots; the maximum is over the sites where it has
    waiting tasks. At every event the order is made anew:

    1. Jobs without waiting tasks stand first. Set r to 0.
    2. Of the jobs not yet in the order, find the one with the least estimate; ties by arrival.
    3. Append it and add its tasks to r. Go to 2 until all are in the order.

    An estimate is only computed again if r has grown at a site of the job and the job could still be the
    least.

    Complexity: O(J^2 M + J K A) per event for J visible jobs and M sites, K groups of up to A sites. In view
    pick an order holds until the next event, and a slot offered costs O(J K). In view rule the environment
    does this work.
    """

    def __init__(self) -> None:
        super().__init__("swag")
