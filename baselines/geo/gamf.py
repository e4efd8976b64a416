"""GAMF: max-min fair aggregates where the tasks of a group may run at several sites."""

from typing import Any

from schedgym.baselines.geo.sharing import SharingPolicy, carrying_views
from schedgym.core.policy import register_policy

_METHOD = (
    "The shares are computed by flows, not by the linear programs of Algorithm 7, of which this corrects: "
    "a_ijk >= 0 (5.2); demands are summed over groups (line 12); the free site of line 15 must be one of an "
    "unserved group; and the other jobs have T_max or more, not T_max. Shares are computed again when a "
    "group of a job has finished, not when a job has finished at a site. Only the aggregates are unique, not "
    "the shares."
)
_FLOORS = " Every job gets at least its maximum flow into u_j / n slots of each site j, for n active jobs."
_OPTIMISED = " Of the y that rearranging finds, only that of the first job is unique."


def _general(sharing: bool, optimised: bool) -> Any:
    name = ("opt-" if optimised else "") + ("sig-" if sharing else "") + "gamf"
    printed = "Algorithms 7 and 8" if optimised else "Algorithm 7"
    return register_policy(
        f"geo/{name}",
        source=f"guan2022, {printed}" + (" with (5.24)" if sharing else ""),
        deviations=_METHOD + (_FLOORS if sharing else "") + (_OPTIMISED if optimised else ""),
        views=carrying_views(name),
        summary="Makes the jobs' total slots max-min fair; tasks run at any of their sites"
        + (", with sharing incentive" if sharing else "")
        + (", rearranged so that jobs finish early." if optimised else "."),
        candidates={"known_durations": ()},  # more knowledge is no better choice of a value
        sharing=sharing,
        optimised=optimised,
    )


@_general(False, False)
@_general(True, False)
@_general(False, True)
@_general(True, True)
class GeneralAggregateMaxMin(SharingPolicy):
    """General aggregate max-min fairness: like amf, but tasks run at any of their available sites.

    With a choice of sites the smallest aggregates (sums of a job's slots over all sites) can be larger than
    with amf. Use it as the fair policy if data are replicated, so that tasks may run at several sites. It
    needs the numbers of unfinished tasks only. The variants opt-... finish jobs earlier with the same
    aggregates; with sig-... every job gets at least what it could use of an equal part of every site.

    The demand of a group is its unfinished tasks, which can run at any of its sites. At every decision:

    1. Fill the sites one by one so as to level what jobs have so far, and enlarge that to a maximum flow. All
       jobs form one part.
    2. The level of a part is the sum of its jobs' slots over the number of these jobs; a job whose floor is
       above the level keeps the floor.
    3. Move slots along augmenting paths from jobs above the level to jobs below it (Dinic's method). If all
       jobs reach it, the part is done. Else the minimum cut separates the jobs and sites above the level from
       those below: go to 2 with each.

    With ``optimised`` the shares are then rearranged: the jobs by unfinished tasks, fewest first, in turn get
    the largest common share of their groups' demands that the aggregates of all admit, and are frozen.

    In the names, sig- sets ``sharing``: the floor of a job is the number of slots that it could use of an
    equal part of every site. opt- sets ``optimised``.

    Complexity: at most 2 J flows per decision for J visible jobs, each O((J + M)^2 A E) at worst on M sites
    with E triples of a job, one of its K groups and one of its up to A sites. The flows of the parts of one
    level of cuts together cost as much as one flow of all jobs. Sharing adds a flow of K groups to their
    sites for each job. Rearranging adds some flows of all jobs for each job with several groups whose demand
    is not met. In views weights and fair-rule the environment does this work.

    Args:
        sharing: guarantee the sharing incentive by floors of the aggregates.
        optimised: rearrange the shares, job by job, so that jobs finish early.
        known_durations: with ``optimised``: estimate when a job finishes by the durations of its tasks, as
            the footnote of section 4.5.2 proposes, not by their number; for ``clairvoyant=True``.
    """

    def __init__(self, sharing: bool, optimised: bool, known_durations: bool = False) -> None:
        name = ("opt-" if optimised else "") + ("sig-" if sharing else "") + "gamf"
        super().__init__(name, known_durations=known_durations)
