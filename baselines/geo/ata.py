"""ATA and ATA-Greedy: at every event all waiting tasks are placed anew, in SWAG's manner."""

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["ATA", "ATAGreedy"]


@register_policy(
    "geo/ata",
    source="thesis 004, Algorithm 4 (section 3.2.4)",
    deviations="Estimates are divided by the slots (line 22 omits it).",
    views=carrying_views("ata"),
)
class ATA(AssignmentPolicy):
    """Adaptive task allocation: balances every job at every place of the order until it is appended.

    Args:
        fine: C of balance in multiples of 1 / gcd(slots) instead of whole tasks per slot.
    """

    def __init__(self, fine: bool = False) -> None:
        super().__init__("ata", fine=fine)


@register_policy(
    "geo/ata-greedy",
    source="thesis 004, section 3.2.4",
    deviations="Loads are taken per slot, and what is left over goes to the lowest site; literal=True: loads "
    "in tasks, and the rest to the more loaded sites, as printed.",
    views=carrying_views("ata-greedy"),
)
class ATAGreedy(AssignmentPolicy):
    """As ATA, with groups placed by decreasing size, each task where the load per slot stays least.

    Args:
        literal: the thesis's formula.
    """

    def __init__(self, literal: bool = False) -> None:
        super().__init__("ata-greedy", literal=literal)
