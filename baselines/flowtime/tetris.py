"""Tetris: multi-resource packing that favours short jobs."""

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy


@register_policy(
    "flowtime/tetris",
    source="Grandl et al., Multi-resource packing for cluster schedulers, SIGCOMM 2014, sections 3.2 and 3.3",
    deviations="A job takes as many cores of a server as it can, not all or none. The alignment is "
    "(d / C) * (free cores / C), in 2D plus (m / M) * (free memory / M), where C and M are those of all "
    "servers. If there is no memory, only the number of cores of each job is decided in this way; they are "
    "then packed. Fairness knob, barrier hint and penalty for remote data are left out.",
    views=carrying_views("tetris"),
)
class Tetris(RulePolicy):
    """Gives cores to pairs of a job and a server that match well, and first to jobs with little work left.

    Tetris packs several resources. Its score prefers jobs whose demand is similar to the free resources of a
    server (alignment), and jobs with little work left. Use it as a packing heuristic from the literature,
    above all if jobs have memory. It needs the declared demands and the remaining work, and takes longer than
    the rules that sort jobs, as it looks at all pairs for each grant.

    In every slot, starting with no cores allocated:

    1. Of all pairs of a job below its cap and a server with free cores (2D: and enough memory for the job),
       take the one with the greatest score $a / a_mean - v / v_mean$, where a is the alignment, v the job's
       remaining volume, and the means are over these pairs; ties by arrival, then server.
    2. Grant it as many cores as the job's cap and the server admit.
    3. Repeat until no pair is left.

    Complexity: O((W + M) W M) per slot for W visible jobs and M servers: every grant completes a job or fills
    a server, and looks at all pairs twice. If there is no memory, packing adds O(S + M (W + M)), where S is
    Shell's sort of W numbers (about W log W). In view rule the environment does this work.

    Args:
        packing: "fresh" or "sticky"; None: that of the environment.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("tetris", packing)
