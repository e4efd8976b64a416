"""DRF: dominant resource fairness."""

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["DominantResourceFairness"]


@register_policy(
    "flowtime/drf",
    source="Ghodsi et al., Dominant resource fairness, NSDI 2011, Algorithm 1",
    deviations="Progressive filling core by core; a job's memory counts once on every server that it is on. "
    "A core is taken on a server that the job is on already, else on the one with most free cores. Without "
    "memory only the cores per job count, which are then packed.",
    views=carrying_views("drf"),
)
class DominantResourceFairness(RulePolicy):
    """The next core to the job with the least dominant share, max(cores/C, memory reserved/M).

    In every slot, from nothing:

    1. Take the job with the least dominant share, ties by arrival.
    2. If it has its cap, or no server can give it a core, it leaves for good.
    3. Else it gets one core: on the server with most free cores of those that it is on, or, if these are
       full, of those with its memory free. Its share grows. Repeat until no job is left.

    C and M are those of all servers; shares are compared as whole numbers. Nothing is remembered.

    Complexity: O((C + W) (W + N)) per slot for W visible jobs, N servers and C cores in all: every core costs
    a search for its job and one for its server. Without memory packing adds O(S + N (W + N)), where S is
    Shell's sort of W numbers (about W log W). In view rule the environment does it.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("drf", packing)
