"""SCTA: SWAG that balances a new job at every place of the order until it is placed."""

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["SCTA"]


@register_policy(
    "geo/scta",
    source="thesis 004, Algorithm 3 (section 3.2.3)",
    deviations="Estimates are divided by the slots (line 23 omits it). Jobs that arrive at one instant are "
    "placed one after another, unless together=True. The order is SWAG's on the final placement.",
    views=carrying_views("scta"),
)
class SCTA(AssignmentPolicy):
    """Schedule conscious task allocation: a new job gets the placement that suits its place in the order.

    Args:
        fine: C of balance in multiples of 1 / gcd(slots) instead of whole tasks per slot.
        together: jobs that arrive at one instant are placed in one pass.
    """

    def __init__(self, fine: bool = False, together: bool = False) -> None:
        super().__init__("scta", fine=fine, together=together)
