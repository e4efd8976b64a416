"""Fair: the Fair Scheduler, which shares out cores alone."""

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy


@register_policy(
    "flowtime/fair",
    source="xu2021, section II-C, Example 1 and Table I",
    deviations="The paper's rates are fractions; cores are whole here. No job gets more than its cap. Cores "
    "are given one by one; a core is taken on a server where the job has cores already, else on the one with "
    "most free cores. If there is no memory, only the number of cores of each job is decided in this way; "
    "they are then packed.",
    views=carrying_views("fair"),
)
class Fair(RulePolicy):
    """Gives core after core to the job that has the fewest: max-min fair shares of the cores.

    All jobs get equally many cores, and no job more than it can use, so that jobs with small demands leave
    cores to the others. Without memory this is what drf does; with memory, drf also counts what a job
    reserves of it. Use it as the scheduler by whose rates the paper explains the fractional flowtime. It
    needs no processing times. It takes longer than the rules that sort jobs, as it gives one core at a time.

    In every slot, starting with no cores allocated:

    1. Take the job with the fewest cores; ties by arrival.
    2. If the job has its cap, or no server can give it a core, it gets no more in this slot.
    3. Else it gets one core. This is on the server with the most free cores among those on which it has cores
       already; if these are full, among those with enough free memory. Repeat until no job is left.

    Complexity: that of drf, O((C + W) (W + N)) per slot for W visible jobs, N servers and C cores in all.

    Args:
        packing: "fresh" or "sticky"; None: that of the environment.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("fair", packing)
