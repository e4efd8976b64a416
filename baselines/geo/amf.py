"""AMF: max-min fair aggregates over all sites, tasks at their associated sites."""

from typing import Any

from schedgym.baselines.geo.sharing import SharingPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["AggregateMaxMin"]

_METHOD = (
    "Flows instead of linear programs, unless method='lp', in which Algorithm 5 tries a candidate with the "
    'others at T or more ("= T_max" is wrong with floors above it). Only the aggregates are unique.'
)
_FLOORS = " Every job keeps min(d_ij, u_j / n) at every site, n being the number of active jobs."
_OPTIMISED = " Only the y of the first job is unique."


def _aggregate(sharing: bool, optimised: bool) -> Any:
    name = ("opt-" if optimised else "") + ("sig-" if sharing else "") + "amf"
    printed = "Algorithms 5 and 6" if optimised else "Algorithm 5"
    return register_policy(
        f"geo/{name}",
        source=f"thesis 004, {printed}" + (" with (4.3) and (4.4)" if sharing else ""),
        deviations=_METHOD + (_FLOORS if sharing else "") + (_OPTIMISED if optimised else ""),
        views=carrying_views(name),
        summary="Max-min fair aggregates, tasks at their associated sites"
        + (", with sharing incentive" if sharing else "")
        + (", rearranged so that jobs finish early." if optimised else "."),
        sharing=sharing,
        optimised=optimised,
    )


@_aggregate(False, False)
@_aggregate(True, False)
@_aggregate(False, True)
@_aggregate(True, True)
class AggregateMaxMin(SharingPolicy):
    """Aggregate max-min fairness: the jobs' slots, summed over the sites, are max-min fair.

    Args:
        sharing: with sharing incentive guaranteed: floors at every site.
        optimised: rearranged, job by job, so that jobs finish early.
        method: "flow" or "lp" (the thesis's linear programs).
    """

    def __init__(self, sharing: bool, optimised: bool, method: str = "flow") -> None:
        name = ("opt-" if optimised else "") + ("sig-" if sharing else "") + "amf"
        super().__init__(name, method=method)
