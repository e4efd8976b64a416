"""BTAwJ and BTAaJ: balanced placement of a job on its arrival, in order of arrival or in SWAG's order."""

from typing import Any

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["BalancedTaskAllocation"]

_ALGORITHMS = {
    "btawj": ("Algorithm 1 (section 3.2.1)", "balanced on empty sites"),
    "btaaj": ("Algorithm 2 (section 3.2.2)", "balanced on what is assigned already"),
}
_ORDERS = {"fcfs": "in order of arrival", "swag": "in SWAG's order"}
_TIES = (
    "The thesis leaves open which of the balanced placements is taken: the flow of Edmonds and Karp with "
    "groups and sites in ascending order. Jobs of one instant are placed in order, each after the others."
)


def _balanced(algorithm: str, order: str) -> Any:
    printed, words = _ALGORITHMS[algorithm]
    return register_policy(
        f"geo/{algorithm}-{order}",
        source=f"thesis 004, {printed}",
        deviations=_TIES,
        views=carrying_views(f"{algorithm}-{order}"),
        summary=f"A job is {words} as it arrives; jobs {_ORDERS[order]}.",
        algorithm=algorithm,
        order=order,
    )


@_balanced("btawj", "fcfs")
@_balanced("btawj", "swag")
@_balanced("btaaj", "fcfs")
@_balanced("btaaj", "swag")
class BalancedTaskAllocation(AssignmentPolicy):
    """Places a job as it arrives, with the least C tasks per slot at any site, and never again.

    Args:
        algorithm: "btawj" (within jobs: r = 0) or "btaaj" (across jobs: r = what is assigned, not started).
        order: "fcfs" or "swag".
        fine: C in multiples of 1 / gcd(slots) instead of whole tasks per slot.
    """

    def __init__(self, algorithm: str, order: str, fine: bool = False) -> None:
        super().__init__(f"{algorithm}-{order}", fine=fine)
