"""SWAG: the job that can be completed first goes first; tasks stay at their associated sites."""

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy


@register_policy(
    "geo/swag",
    source="guan2022, section 3.2.3; Hung, Golubchik, Yu: Scheduling Jobs Across Geo-distributed "
    "Datacenters, SoCC 2015",
    deviations="None. Ties, which the thesis leaves open, go to the earlier arrival.",
    views=carrying_views("swag"),
)
class SWAG(AssignmentPolicy):
    """Serves the job that can complete soonest under the load of its sites; tasks stay at associated sites.

    The thesis's own algorithms extend this order of jobs. Use it as the baseline if each task has to run at
    one given site; ata and scta also choose the sites. It needs the numbers of waiting tasks, no durations,
    and is fast.

    The estimate of job i is $max_j (r_j + q_ij) / u_j$ over the sites j where it has waiting tasks: q_ij is
    the number of these, r_j that of the jobs which are in the order already, and u_j the number of slots of
    the site. At every event the order is made anew:

    1. Jobs without waiting tasks stand first. Set r to 0.
    2. Of the jobs not yet in the order, find the one with the least estimate; ties by arrival.
    3. Append it and add its tasks to r. Go to 2 until all are in the order.

    Complexity: O(J^2 M + J K A) per event for J visible jobs and M sites, K groups of up to A sites. In view
    pick the order is kept until the next event, and each decision about a slot costs O(J K). In view rule the
    environment does this work.
    """

    def __init__(self) -> None:
        super().__init__("swag")
