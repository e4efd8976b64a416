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

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("drf", packing)
