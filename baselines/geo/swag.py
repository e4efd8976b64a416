"""SWAG: the job first that can be completed first, tasks at their associated sites."""

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["SWAG"]


@register_policy(
    "geo/swag",
    source="thesis 004, section 3.2.3; Hung, Golubchik, Yu: Scheduling Jobs Across Geo-distributed "
    "Datacenters, SoCC 2015",
    deviations="None: ties, which it leaves open, go to the earlier arrival.",
    views=carrying_views("swag"),
)
class SWAG(AssignmentPolicy):
    """Appends to the order the job with the least max (r_j + q_ij) / u_j; tasks stay at associated sites.

    q_ij are the job's waiting tasks at site j, r_j those of the jobs in the order so far. O(J^2 M).
    """

    def __init__(self) -> None:
        super().__init__("swag")
