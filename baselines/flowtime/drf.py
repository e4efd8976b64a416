"""DRF: dominant resource fairness."""

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["DominantResourceFairness"]


@register_policy(
    "flowtime/drf",
    source="Ghodsi et al., Dominant resource fairness, NSDI 2011, Algorithm 1",
    deviations="Filling proceeds core by core; a job's memory counts once on every server that it is on. "
    "A core is taken on a server that the job is on already, else on the one with most free cores. Without "
    "memory only the cores per job count, which are then packed.",
    views=carrying_views("drf"),
)
class DominantResourceFairness(RulePolicy):
    """Gives core after core to the job with the least dominant share.

    Dominant resource fairness lets the largest share that each job has of any resource grow evenly. Use it as
    the fair rule: no job waits long while others hold many cores, and it needs to know no processing times.
    It costs more than the sorted rules, as every core is a step of its own.

    In every slot, from no allocation:

    1. Take the job with the least dominant share $max(n / C, m / M)$, where the job has n of all C cores and
       reserves m of all M GB of memory; ties by arrival. Shares are compared as whole numbers.
    2. If the job has its cap, or no server can give it a core, it gets no more in this slot.
    3. Else it gets one core: on the server with the most free cores of those that it is on, or, if these are
       full, of those with enough free memory. Repeat until no job is left.

    Complexity: O((C + W) (W + N)) per slot for W visible jobs, N servers and C cores in all: every core costs
    a search for its job and one for its server. Without memory packing adds O(S + N (W + N)), where S is
    Shell's sort of W numbers (about W log W). In view rule the environment does this work.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("drf", packing)
