"""OCORP+M: OCORP with memory, cores and placement in turn."""

from schedgym.baselines.flowtime.ocorp import DEVIATIONS
from schedgym.baselines.flowtime.pricing import MEMORY, PricingPolicy
from schedgym.core.policy import register_policy
from schedgym.errors import InvalidParameter

__all__ = ["OCORPM"]


@register_policy(
    "flowtime/ocorp+m",
    source="paper 000, Algorithm 1 and Theorem 1",
    deviations=DEVIATIONS
    + " The value of a core is lifted so that all jobs have at least 1, unless literal=True. The alternation "
    "keeps the old placement unless the new one is strictly better, and takes three rounds now and then "
    "(Theorem 1 says two). What it leaves free is filled in order of value (backfill), which is not in the "
    "paper.",
    views=("allocation",),
)
class OCORPM(PricingPolicy):
    """Cores by value (lambda - weight) / d, and per server the jobs whose memory fits by a knapsack, in turn.

    Args:
        gamma: Gamma, by which all is hoped to be done [slots]: a number, "seen" or "eq27".
        lambda0: lambda of a job in its first slot: a number, "p": mu p, or "w": its weight.
        literal: serve only jobs with weight < lambda.
        backfill: give cores that are left to jobs whose memory fits.
        packing: "fresh" or "sticky": of the first round; None: as the environment's parameter says.
    """

    def __init__(
        self,
        gamma: float | str = 4000.0,
        lambda0: float | str = 0.0,
        literal: bool = False,
        backfill: bool = True,
        packing: str | None = None,
    ) -> None:
        super().__init__("ocorp+m", ("allocation",), ("2d",), packing, gamma, lambda0, literal)
        if not isinstance(backfill, bool):
            raise InvalidParameter(f"backfill: must be True or False, got {backfill!r}")
        self.method, self.backfill = MEMORY, backfill
