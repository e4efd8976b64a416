"""DRF: dominant resource fairness."""

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy


@register_policy(
    "flowtime/drf",
    source="Ghodsi et al., Dominant resource fairness, NSDI 2011, Algorithm 1",
    deviations="Cores are given one by one; a job's memory counts once on every server where it has cores. "
    "A core is taken on a server where the job has cores already, else on the one with most free cores. If "
    "there is no memory, only the number of cores of each job is decided in this way; they are then packed.",
    views=carrying_views("drf"),
)
class DominantResourceFairness(RulePolicy):
    """Gives core after core to the job with the least dominant share.

    A job's dominant share is the largest share that it has of any resource; dominant resource fairness keeps
    these shares as equal as possible. Use it where jobs should be treated fairly: no job waits long while
    others hold many cores. It needs no processing times. It takes longer than the rules that sort jobs, as it
    gives one core at a time.

    In every slot, starting with no cores allocated:

    1. Take the job with the least dominant share $max(n / C, m / M)$, where the job has n of all C cores and
       reserves m of all M GB of memory; ties by arrival. Shares are compared as whole numbers.
    2. If the job has its cap, or no server can give it a core, it gets no more in this slot.
    3. Else it gets one core. This is on the server with the most free cores among those on which it has cores
       already; if these are full, among those with enough free memory. Repeat until no job is left.

    Complexity: O((C + W) (W + N)) per slot for W visible jobs, N servers and C cores in all: every core costs
    a search for its job and one for its server. If there is no memory, packing adds O(S + N (W + N)), where S
    is Shell's sort of W numbers (about W log W). In view rule the environment does this work.

    Args:
        packing: "fresh" or "sticky"; None: that of the environment.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("drf", packing)
