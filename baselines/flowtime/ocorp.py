"""OCORP: online convex optimisation with a price per job, cores by Lemma 1."""

from schedgym.baselines.flowtime.pricing import PricingPolicy
from schedgym.core.policy import register_policy
from schedgym.problems.flowtime.problem import KINDS

__all__ = ["DEVIATIONS", "OCORP"]

DEVIATIONS = (
    "The cap of a job counts its remaining work (Eq. 22 does not); case 2 of Eq. 22 sums to j - 1; lambda "
    "grows by p / (Gamma - a) (Algorithm 1, line 7 has 1 - a_j), of at least one slot; mu is t^(k + 1/2) "
    "with the absolute slot t. Work-conserving unless literal=True. gamma='seen' is Eq. 27 over the jobs "
    "that have arrived; gamma='eq27', over all jobs, is not online: it reads the observation eq27. "
    "With mis-estimated demands the key uses the declared one, and the service is the change of the slots "
    "left."
)


@register_policy(
    "flowtime/ocorp",
    source="xu2021, Algorithm 1, Lemma 1 and Eq. 22; MapReduce: section V",
    deviations=DEVIATIONS + " In 2D the greedy placement of the rules; ocorp+m is the paper's.",
    views=("allocation", "priority"),
)
class OCORP(PricingPolicy):
    """The job with the least (weight - lambda) / d first, where lambda grows while it is not served.

    In every slot, for jobs of p slots with d cores that arrived at a, and the norm's k:

    1. Lambda of a job seen in the slot before, t, grows by t^(k + 1/2) (p / (Gamma - a) - s), s being the
       slots' worth of service that it got there, and is at least 0. That of a new job, or of a new phase, is
       ``lambda0``.
    2. Its weight is age^k / p + p^(k - 1) (MapReduce: the counterpart for a task of its phase).
    3. Sort by (weight - lambda) / d, least first, ties by arrival; literal leaves out what is not below 0.
    4. Give each job its cap in that order while cores are left, and pack, the largest server first.

    Remembered are lambda and the remaining work of the jobs of the last slot, and what ``gamma="seen"``
    needs.

    Complexity: O(S + M (W + M)) per slot for W visible jobs and M servers, where S is Shell's sort of W
    numbers (about W log W); prices are O(W). Sticky packing adds O(M) for each server that a job was on; with
    latencies a transportation problem as in ocorp+ replaces packing. In view priority the environment does
    step 4.

    Args:
        gamma: Gamma, by which all is hoped to be done [slots]: a number, "seen" or "eq27".
        lambda0: lambda of a job in its first slot: a number, "p": mu p, or "w": its weight.
        literal: serve only jobs with weight < lambda; the others wait even where cores are free.
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(
        self,
        gamma: float | str = 4000.0,
        lambda0: float | str = 0.0,
        literal: bool = False,
        packing: str | None = None,
    ) -> None:
        super().__init__("ocorp", ("allocation", "priority"), KINDS, packing, gamma, lambda0, literal)
