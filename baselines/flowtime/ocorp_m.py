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

    1. Prices lambda and weights are those of ocorp, with what it remembers.
    2. First cores: jobs by value, each up to its cap, packed as if there were no memory.
    3. On every server keep, of the jobs with cores there, those with the greatest value whose memory fits (a
       0/1 knapsack; ties: the lowest rows). The others lose their cores there.
    4. Find the most valuable cores on the servers that every job has been left, a transportation problem. If
       they are worth more than the present ones, take them and go to 3, else stop; stop too if 3 changes
       nothing.
    5. Backfill: by value, jobs take free cores where they are or where their memory fits.

    Complexity: O(S + M (W + M)) per slot to begin and to backfill, for W visible jobs, M servers and Shell's
    sort S of W numbers (about W log W). Every round (two, or three now and then) has knapsacks, O(H B) for H
    pairs of a job and a server that it is on and servers of B GB, and a transportation problem, O(C M^2 (W +
    M)) at worst with C cores in all, plus O(M (C + W M) (H + W)) for ties.

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
