"""IMF: every site is shared max-min fairly, independently of the others."""

from schedgym.baselines.geo.sharing import SharingPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["IndependentMaxMin"]


@register_policy(
    "geo/imf",
    source="guan2022, section 4.1 and 4.3",
    deviations='A demand equal to the water level is met ("<" is "<=").',
    views=carrying_views("imf"),
)
class IndependentMaxMin(SharingPolicy):
    """Independent max-min fairness: shares each site by itself; tasks run at their associated sites.

    The slots of each site are shared by water-filling, whatever a job gets elsewhere. Use it as the baseline
    of the fair policies, or where sites cannot coordinate. It needs the numbers of unfinished tasks only, and
    is the cheapest of them.

    At every decision, site by site:

    1. The demand of a job is its unfinished tasks there. The level is the site's slots over the number of
       jobs.
    2. Demands of at most the level are met; the others share what is left evenly, which raises the level.
       Repeat until no further demand is met; each remaining job gets the level.
    3. A job's share is split over its groups at the site in proportion to their tasks.

    Complexity: O(P J M + J K A) per decision for J visible jobs, M sites, K groups of up to A sites and P
    passes of 2, which are few as a rule and J at worst. In view fair-rule the environment does this work.
    """

    def __init__(self) -> None:
        super().__init__("imf")
