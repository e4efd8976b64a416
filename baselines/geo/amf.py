"""AMF: max-min fair aggregates over all sites; tasks run at their associated sites."""

from typing import Any

from schedgym.baselines.geo.sharing import SharingPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["AggregateMaxMin"]

_METHOD = (
    "Flows replace the linear programs, unless method='lp', where Algorithm 5 tries a candidate with the "
    'others at T or more ("= T_max" is wrong with floors above it). Of the shares only the aggregates are '
    "unique."
)
_FLOORS = " Every job keeps min(d_ij, u_j / n) at every site, n being the number of active jobs."
_OPTIMISED = " Of the common shares (y) only that of the first job is unique."


def _aggregate(sharing: bool, optimised: bool) -> Any:
    name = ("opt-" if optimised else "") + ("sig-" if sharing else "") + "amf"
    printed = "Algorithms 5 and 6" if optimised else "Algorithm 5"
    return register_policy(
        f"geo/{name}",
        source=f"guan2022, {printed}" + (" with (4.3) and (4.4)" if sharing else ""),
        deviations=_METHOD + (_FLOORS if sharing else "") + (_OPTIMISED if optimised else ""),
        views=carrying_views(name),
        summary="Max-min fair aggregates, tasks at their associated sites"
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
    """Aggregate max-min fairness: the jobs' slots, summed over the sites, are max-min fair.

    A job that gets little at one site is compensated at others, unlike with imf. Use it as the fair policy
    where each task has one site, its associated one; gamf also uses the others. It needs the numbers of
    unfinished tasks only; opt- finishes jobs earlier with the same aggregates, and sig- gives no job less
    than an equal part of every site would.

    A job's demand at a site is its unfinished tasks there. At every decision:

    1. Fill the sites one by one so as to level what jobs have so far, and enlarge that to a maximum flow. All
       jobs form one part.
    2. The level of a part is the sum of its jobs' slots over the number of these jobs; a job whose floor is
       above the level keeps the floor.
    3. Move slots along augmenting paths from jobs above the level to jobs below it (Dinic's method). If all
       jobs reach it, the part is done. Else the minimum cut separates the jobs and sites above the level from
       those below: go to 2 with each.

    With ``optimised`` the shares are then rearranged: the jobs by unfinished tasks, fewest first, in turn get
    the largest common share of their groups' demands that the aggregates of all admit, and are frozen.

    The names amf, sig-amf, opt-amf and opt-sig-amf differ by both options: sig- sets ``sharing``, by which a
    job first gets the least of its demand and an equal part at every site; opt- sets ``optimised``.

    Complexity: at most 2 J flows per decision for J visible jobs, each O((J + M)^2 E) at worst on M sites
    with E pairs of a job and a site where it has tasks. The flows of one depth of the cuts are of separate
    parts, and together cost one flow of the whole. Sharing adds O(J M). Rearranging adds some flows of the
    whole for each job with several sites that has not all it wants. Method "lp" solves O(J^2) linear programs
    of E variables. In views weights and fair-rule the environment does this work.

    Args:
        sharing: guarantee the sharing incentive by floors at every site.
        optimised: rearrange the shares, job by job, so that jobs finish early.
        method: "flow" or "lp" (the thesis's linear programs).
        known_durations: with ``optimised``: estimate when a job finishes by the durations of its tasks, as
            the footnote of section 4.5.2 proposes, not by their number; for ``clairvoyant=True``.
    """

    def __init__(
        self, sharing: bool, optimised: bool, method: str = "flow", known_durations: bool = False
    ) -> None:
        name = ("opt-" if optimised else "") + ("sig-" if sharing else "") + "amf"
        super().__init__(name, method=method, known_durations=known_durations)
