"""IMF: every site by itself is shared max-min fairly."""

from schedgym.baselines.geo.sharing import SharingPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["IndependentMaxMin"]


@register_policy(
    "geo/imf",
    source="thesis 004, section 4.1 and 4.3",
    deviations='A demand equal to the water level is met ("<" is "<=").',
    views=carrying_views("imf"),
)
class IndependentMaxMin(SharingPolicy):
    """Independent max-min fairness: water-filling of each site; tasks run at their associated sites."""

    def __init__(self) -> None:
        super().__init__("imf")
