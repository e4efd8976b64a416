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

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("tetris", packing)
