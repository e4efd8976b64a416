"""AMF: max-min fair aggregates over all sites; tasks run at their associated sites."""

from typing import Any

from schedgym.baselines.geo.sharing import SharingPolicy, carrying_views
from schedgym.core.policy import register_policy

_METHOD = (
    "The shares are computed by flows, not by the linear programs of Algorithm 5: there the other jobs must "
    'have T_max or more; "= T_max", as printed, is wrong if a floor is above it. Only the aggregates are '
    "unique, not the shares."
)
_FLOORS = " Every job gets at least min(d_ij, u_j / n) at every site j, where n is the number of active jobs."
_OPTIMISED = " Of the y that rearranging finds, only that of the first job is unique."


def _aggregate(sharing: bool, optimised: bool) -> Any:
    name = ("opt-" if optimised else "") + ("sig-" if sharing else "") + "amf"
    printed = "Algorithms 5 and 6" if optimised else "Algorithm 5"
    return register_policy(
        f"geo/{name}",
        source=f"guan2022, {printed}" + (" with (4.3) and (4.4)" if sharing else ""),
        deviations=_METHOD + (_FLOORS if sharing else "") + (_OPTIMISED if optimised else ""),
        views=carrying_views(name),
        summary="Makes the jobs' total slots max-min fair; tasks run at their associated sites"
        + (", with sharing incentive" if sharing else "")
        + (", rearranged so that jobs finish early." if optimised else "."),
        candidates={"known_durations": ()},  # more knowledge is no better choice of a value
        sharing=sharing,
        optimised=optimised,
    )


@_aggregate(False, False)
@_aggregate(True, False)
@_aggregate(False, True)
@_aggregate(True, True)
class AggregateMaxMin(SharingPolicy):
    """Aggregate max-min fairness: each job's sum of slots over all sites (its aggregate) is max-min fair.

    A job that gets few slots at one site gets more at others, unlike with imf. Use it as the fair policy if
    each task has one site, its associated one; gamf also uses the other sites of a task. It needs the numbers
    of unfinished tasks only. The variants opt-... finish jobs earlier with the same aggregates; with sig-...
    every job gets at least what it could use of an equal part of every site.

    A job's demand at a site is its unfinished tasks there. At every decision:

    1. Give out the slots of one site after another so that the jobs' sums are as equal as possible, and
       enlarge the result to a maximum flow. At first all jobs and sites are one part.
    2. The level of a part is the mean number of slots of its jobs. A job whose floor (the number of slots
       that it must have, with ``sharing``) is above the level keeps its floor.
    3. Move slots along augmenting paths from jobs above the level to jobs below it (Dinic's method). If all
       jobs reach it, the part is done. Else the minimum cut divides the part into the jobs and sites above
       the level and those below; go to 2 with each of the two.

    With ``optimised`` the shares are then rearranged, so that the groups of a job finish at the same time. In
    the order of their unfinished tasks, fewest first, each job gets the same share y of the demand of each of
    its groups, with the largest y with which all aggregates stay as they are; then its shares are fixed.

    In the names, sig- sets ``sharing``: at every site a job gets at least an equal part of the slots, or its
    demand if that is less. opt- sets ``optimised``.

    Complexity: at most 2 J flows per decision for J visible jobs, each O((J + M)^2 E) at worst on M sites
    with E pairs of a job and a site where it has tasks. The flows of the parts of one level of cuts together
    cost as much as one flow of all jobs. Sharing adds O(J M). Rearranging adds some flows of all jobs for
    each job with several sites whose demand is not met. In views weights and fair-rule the environment does
    this work.

    Args:
        sharing: guarantee the sharing incentive by floors at every site.
        optimised: rearrange the shares, job by job, so that jobs finish early.
        known_durations: with ``optimised`` and ``clairvoyant=True``: estimate completion times by the
            durations of tasks, as the footnote of section 4.5.2 proposes, instead of by their number.
    """

    def __init__(self, sharing: bool, optimised: bool, known_durations: bool = False) -> None:
        name = ("opt-" if optimised else "") + ("sig-" if sharing else "") + "amf"
        super().__init__(name, known_durations=known_durations)
