"""SWAG: the job first that can be completed first, tasks at their associated sites."""

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["SWAG"]


@register_policy(
    "geo/swag",
    source="guan2022, section 3.2.3; Hung, Golubchik, Yu: Scheduling Jobs Across Geo-distributed "
    "Datacenters, SoCC 2015",
    deviations="None: ties, which it leaves open, go to the earlier arrival.",
    views=carrying_views("swag"),
)
class SWAG(AssignmentPolicy):
    """Appends to the order the job with the least max (r_j + q_ij) / u_j; tasks stay at associated sites.

    q_ij are the job's waiting tasks at site j, r_j those of the jobs in the order so far, u_j the site's
    slots.

    At every event:

    1. Jobs without waiting tasks stand first. Set r to 0.
    2. Of the jobs not yet in the order, find the one with the least estimate, the maximum above over the
       sites where it has waiting tasks; ties by arrival.
    3. Append it and add its tasks to r. Go to 2 until all are in the order.

    An estimate is only computed again if r has grown at a site of the job and the job could still be the
    least. The order is made anew at every event; nothing else is remembered.

    Complexity: O(J^2 M + J K A) per event for J visible jobs and M sites, K groups of up to A sites. In view
    pick an order holds until the next event, and a slot offered costs O(J K). In view rule the environment
    does it.
    """

    def __init__(self) -> None:
        super().__init__("swag")
