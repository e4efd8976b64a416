"""AMF and GAMF: max-min fair aggregates over all sites, where tasks run at one or at any of their sites."""

import itertools
from typing import Any

from schedgym.baselines.geo.sharing import SharingPolicy, carrying_views
from schedgym.core.policy import register_policy

_ONLY = "Only the aggregates are unique, not the shares."
#: algorithm -> where tasks run, its algorithms in print, what "sig-" adds to them, deviations, also of "sig-"
ALGORITHMS = {
    "amf": (
        "at their associated sites",
        ("Algorithm 5", "Algorithms 5 and 6"),
        "(4.3) and (4.4)",
        "The shares are computed by flows, not by the linear programs of Algorithm 5: there the other jobs "
        'must have T_max or more; "= T_max", as printed, is wrong if a floor is above it. ' + _ONLY,
        " Every job gets at least min(d_ij, u_j / n) at every site j, where n is the number of active jobs.",
    ),
    "gamf": (
        "at any of their sites",
        ("Algorithm 7", "Algorithms 7 and 8"),
        "(5.24)",
        "The shares are computed by flows, not by the linear programs of Algorithm 7, of which this "
        "corrects: a_ijk >= 0 (5.2); demands are summed over groups (line 12); the free site of line 15 must "
        "be one of an unserved group; and the other jobs have T_max or more, not T_max. Shares are computed "
        "again when a group of a job has finished, not when a job has finished at a site. " + _ONLY,
        " Every job gets at least its maximum flow into u_j / n slots of each site j, for n active jobs.",
    ),
}
_OPTIMISED = " Of the y that rearranging finds, only that of the first job is unique."


def _name(algorithm: str, sharing: bool, optimised: bool) -> str:
    return f"{'opt-' if optimised else ''}{'sig-' if sharing else ''}{algorithm}"


def _enter(policy: Any) -> Any:
    """Register the class for each algorithm, with and without sharing incentive, rearranged or not."""
    for algorithm, optimised, sharing in itertools.product(ALGORITHMS, (False, True), (False, True)):
        sites, printed, floors, method, floored = ALGORITHMS[algorithm]
        name = _name(algorithm, sharing, optimised)
        register_policy(
            f"geo/{name}",
            source=f"guan2022, {printed[optimised]}" + (f" with {floors}" if sharing else ""),
            deviations=method + (floored if sharing else "") + (_OPTIMISED if optimised else ""),
            views=carrying_views(name),
            summary=f"Makes the jobs' total slots max-min fair; tasks run {sites}"
            + (", with sharing incentive" if sharing else "")
            + (", rearranged so that jobs finish early." if optimised else "."),
            candidates={"known_durations": ()},  # more knowledge is no better choice of a value
            algorithm=algorithm,
            sharing=sharing,
            optimised=optimised,
        )(policy)
    return policy


@_enter
class AggregateMaxMin(SharingPolicy):
    """Aggregate max-min fairness: each job's sum of slots over all sites (its aggregate) is max-min fair.

    A job that gets few slots at one site gets more at others, unlike with imf. Use amf as the fair policy if
    each task has one site, its associated one. With gamf tasks run at any of their available sites, so that
    the smallest aggregates can be larger; use it if data are replicated. Both need the numbers of unfinished
    tasks only. The variants opt-... finish jobs earlier with the same aggregates; with sig-... every job gets
    at least what it could use of an equal part of every site.

    With amf a job's demand at a site is its unfinished tasks there; with gamf the demand of a group is its
    unfinished tasks, which can run at any of its sites. At every decision:

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

    In the names, sig- sets ``sharing``: with amf a job gets at every site at least an equal part of the
    slots, or its demand if that is less; with gamf the floor of a job is the number of slots that it could
    use of an equal part of every site. opt- sets ``optimised``.

    Complexity: at most 2 J flows per decision for J visible jobs, each O((J + M)^2 E) at worst on M sites
    with E pairs of a job and a site where it has tasks (gamf: O((J + M)^2 A E) with E triples of a job, one
    of its K groups and one of its up to A sites). The flows of the parts of one level of cuts together cost
    as much as one flow of all jobs. Sharing adds O(J M) (gamf: a flow of K groups to their sites for each
    job). Rearranging adds some flows of all jobs for each job with several sites (gamf: groups) whose demand
    is not met. In views weights and fair-rule the environment does this work.

    Args:
        algorithm: "amf" or "gamf".
        sharing: guarantee the sharing incentive by floors: at every site (gamf: of the aggregates).
        optimised: rearrange the shares, job by job, so that jobs finish early.
        known_durations: with ``optimised`` and ``clairvoyant=True``: estimate completion times by the
            durations of tasks, as the footnote of section 4.5.2 proposes, instead of by their number.
    """

    def __init__(self, algorithm: str, sharing: bool, optimised: bool, known_durations: bool = False) -> None:
        super().__init__(_name(algorithm, sharing, optimised), known_durations=known_durations)
