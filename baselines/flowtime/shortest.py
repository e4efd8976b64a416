"""SRPT, SRVF, SVF and SRF: the smallest job first, by four measures of size."""

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["ShortestRemaining", "SmallestDemand", "SmallestRemainingVolume", "SmallestVolume"]

_GREEDY = (
    "Each job gets its cap while there are cores, then they are packed; with memory each is placed on the "
    "servers with most free cores that have its memory free. Keys use the declared demand."
)


@register_policy(
    "flowtime/srpt", source="paper 000, section VI", deviations=_GREEDY, views=carrying_views("srpt")
)
class ShortestRemaining(RulePolicy):
    """The job with the least remaining processing time first.

    MapReduce: by the sum over the phases of the longest remaining task.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("srpt", packing)


@register_policy(
    "flowtime/srvf", source="paper 000, section VI", deviations=_GREEDY, views=carrying_views("srvf")
)
class SmallestRemainingVolume(RulePolicy):
    """The job with the fewest remaining core-slots first.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("srvf", packing)


@register_policy(
    "flowtime/svf", source="paper 000, section VI", deviations=_GREEDY, views=carrying_views("svf")
)
class SmallestVolume(RulePolicy):
    """The job with the fewest core-slots, done ones included, first.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("svf", packing)


@register_policy(
    "flowtime/srf", source="paper 000, section VI", deviations=_GREEDY, views=carrying_views("srf")
)
class SmallestDemand(RulePolicy):
    """The job that demands the fewest cores (MapReduce: per task of its phase) first.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("srf", packing)
