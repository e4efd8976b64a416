"""What the paper's algorithms are compared with beyond the paper: first come first served, random."""

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["FirstComeFirstServed", "Random"]


@register_policy(
    "flowtime/fifo", source="schedgym (not in the paper): classical", views=carrying_views("fifo")
)
class FirstComeFirstServed(RulePolicy):
    """Jobs in order of arrival.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("fifo", packing)


@register_policy("flowtime/random", source="schedgym (not in the paper)", views=carrying_views("random"))
class Random(RulePolicy):
    """Jobs in random order, drawn anew in every slot.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("random", packing)
