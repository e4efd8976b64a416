"""Tetris: multi-resource packing that favours short jobs."""

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["Tetris"]


@register_policy(
    "flowtime/tetris",
    source="Grandl et al., Multi-resource packing for cluster schedulers, SIGCOMM 2014, sections 3.2 and 3.3",
    deviations="A job takes as many cores of a server as it can, not all or none. The alignment is "
    "d/C free/C, plus m/M free memory/M in 2D, where C and M are those of all servers. Without memory only "
    "the cores per job count, which are then packed. No fairness knob, no barriers, no remote penalty.",
    views=carrying_views("tetris"),
)
class Tetris(RulePolicy):
    """The pair of job and server with the best score first.

    The score is alignment / mean alignment - remaining volume / mean remaining volume, the means over the
    pairs that still fit.

    In every slot, from nothing:

    1. Of all pairs of a job below its cap and a server with free cores (2D: and its memory), find the means,
       then the pair with the greatest score; ties by arrival, then server.
    2. Grant it as many cores as the job's cap and the server admit.
    3. Repeat until no pair is left. Nothing is remembered.

    Complexity: O((W + M) W M) per slot for W visible jobs and M servers: every grant completes a job or fills
    a server, and looks at all pairs twice. Without memory packing adds O(S + M (W + M)), where S is Shell's
    sort of W numbers (about W log W). In view rule the environment does it.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("tetris", packing)
