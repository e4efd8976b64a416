"""Tetris: multi-resource packing that favours short jobs."""

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["Tetris"]


@register_policy(
    "flowtime/tetris",
    source="Grandl et al., Multi-resource packing for cluster schedulers, SIGCOMM 2014, sections 3.2 and 3.3",
    deviations="A job takes as many cores of a server as it can, not all or none. The alignment is "
    "d/C free/C, plus m/M free memory/M in 2D, where C and M are those of all servers. Without memory only "
    "the cores per job count, which are then packed. There is no fairness knob, no barrier, and no penalty "
    "for remote data.",
    views=carrying_views("tetris"),
)
class Tetris(RulePolicy):
    """Grants cores to the pair of a job and a server with the best score of alignment and shortness.

    Tetris packs several resources: it prefers jobs whose demand is aligned with what a server has free, and
    of these the ones with little work left. Use it as the packing heuristic of the literature, above all with
    memory. It needs the declared demands and the remaining work, and costs more than the sorted rules, as
    every grant looks at all pairs.

    In every slot, from no allocation:

    1. Of all pairs of a job below its cap and a server with free cores (2D: and its memory), take the one
       with the greatest score $a / a_mean - v / v_mean$, where a is the alignment, v the job's remaining
       volume, and the means are over these pairs; ties by arrival, then server.
    2. Grant it as many cores as the job's cap and the server admit.
    3. Repeat until no pair is left.

    Complexity: O((W + M) W M) per slot for W visible jobs and M servers: every grant completes a job or fills
    a server, and looks at all pairs twice. Without memory packing adds O(S + M (W + M)), where S is Shell's
    sort of W numbers (about W log W). In view rule the environment does this work.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("tetris", packing)
