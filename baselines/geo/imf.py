"""IMF: every site is shared max-min fairly, independently of the others."""

from schedgym.baselines.geo.sharing import SharingPolicy, carrying_views
from schedgym.core.policy import register_policy


@register_policy(
    "geo/imf",
    source="guan2022, section 4.1 and 4.3",
    deviations='A demand equal to the water level is met ("<" is "<=").',
    views=carrying_views("imf"),
)
class IndependentMaxMin(SharingPolicy):
    """Independent max-min fairness: shares each site by itself; tasks run at their associated sites.

    The slots of each site are shared by water-filling, without regard to a job's slots at other sites. Use it
    as the baseline for fair policies, or if sites cannot coordinate. It needs the numbers of unfinished tasks
    only, and is the fastest of the fair policies.

    At every decision, site by site:

    1. The demand of a job is its unfinished tasks there. The level is the site's slots divided by the number
       of jobs.
    2. Jobs whose demand is at most the level get their demand. The level becomes what is left, divided by the
       number of the other jobs. Repeat until no other demand is at most the level; then each remaining job
       gets the level.
    3. A job's share is split over its groups at the site in proportion to their tasks.

    Complexity: O(P J M + J K A) per decision for J visible jobs, M sites, K groups of up to A sites and P
    repetitions of step 2, usually few, at most J. In view fair-rule the environment does this work.
    """

    def __init__(self) -> None:
        super().__init__("imf")
