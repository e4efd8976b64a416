"""GAMF: max-min fair aggregates where the tasks of a group may run at several sites."""

from typing import Any

from schedgym.baselines.geo.sharing import SharingPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["GeneralAggregateMaxMin"]

_METHOD = (
    "Flows instead of linear programs, unless method='lp', in which Algorithm 7 is corrected: a_ijk >= 0 "
    "(5.2), demands summed over groups (line 12), a free site of an unserved group (line 15), candidates "
    "tried with the others at T or more. Shares are decided anew when a group of a job has finished, not "
    "a job's tasks at a site. Only the aggregates are unique."
)
_FLOORS = " Every job keeps its largest flow alone with u_j / n of every site, n the active jobs."
_OPTIMISED = " Only the y of the first job is unique."


def _general(sharing: bool, optimised: bool) -> Any:
    name = ("opt-" if optimised else "") + ("sig-" if sharing else "") + "gamf"
    printed = "Algorithms 7 and 8" if optimised else "Algorithm 7"
    return register_policy(
        f"geo/{name}",
        source=f"guan2022, {printed}" + (" with (5.24)" if sharing else ""),
        deviations=_METHOD + (_FLOORS if sharing else "") + (_OPTIMISED if optimised else ""),
        views=carrying_views(name),
        summary="Max-min fair aggregates, tasks at any of their sites"
        + (", with sharing incentive" if sharing else "")
        + (", rearranged so that jobs finish early." if optimised else "."),
        sharing=sharing,
        optimised=optimised,
    )


@_general(False, False)
@_general(True, False)
@_general(False, True)
@_general(True, True)
class GeneralAggregateMaxMin(SharingPolicy):
    """General aggregate max-min fairness: as AMF, with tasks at any of their available sites.

    A group's demand is its unfinished tasks, for which all its sites count. At every decision:

    1. Fill the sites one by one so as to level what jobs have so far, and enlarge that to a maximum flow. All
       jobs are one part.
    2. The level of a part is what its jobs have in sum over their number; those below a floor of their own
       keep the floor.
    3. Move slots along augmenting paths from jobs above the level to jobs below it (Dinic's method). If all
       reach it, the part is done. Else the minimum cut separates the jobs and sites above the level from
       those below: go to 2 with each.

    Rearranged, the jobs by unfinished tasks, fewest first, in turn get the largest common share of their
    groups' demands that the aggregates of all admit, and are frozen. Nothing is remembered.

    The names gamf, sig-gamf, opt-gamf and opt-sig-gamf differ by both options: sig- sets ``sharing``, by
    which a job's floor is what it could use alone of an equal part of every site; opt- sets ``optimised``.

    Complexity: at most 2 J flows per decision for J visible jobs, each O((J + M)^2 A E) at worst on M sites
    with E triples of a job, one of its K groups and one of its up to A sites. The flows of a depth of the
    cuts are of separate parts, and cost one flow of the whole together. Sharing adds a flow of K groups to
    their sites for each job. Rearranging adds some flows of the whole for each job with several groups that
    has not all it wants. With method "lp" O(J^2) linear programs of E variables. In views weights and
    fair-rule the environment does it.

    Args:
        sharing: with sharing incentive guaranteed: floors of the aggregates.
        optimised: rearranged, job by job, so that jobs finish early.
        method: "flow" or "lp" (the thesis's linear programs).
    """

    def __init__(self, sharing: bool, optimised: bool, method: str = "flow") -> None:
        name = ("opt-" if optimised else "") + ("sig-" if sharing else "") + "gamf"
        super().__init__(name, method=method)
