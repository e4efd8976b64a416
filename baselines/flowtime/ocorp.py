"""OCORP: online convex optimisation with a price per job, cores by Lemma 1."""

from schedgym.baselines.flowtime.pricing import CANDIDATES, LAMBDA0, PricingPolicy
from schedgym.core.policy import register_policy
from schedgym.problems.flowtime.problem import KINDS

DEVIATIONS = (
    "A job gets no more cores than its remaining work needs; Eq. 22 does not say so. In case 2 of Eq. 22 the "
    "sum ends at j - 1. Lambda grows by mu p / (Gamma - a), with Gamma - a at least one slot; Algorithm 1, "
    "line 7, has 1 - a_j in place of Gamma - a. The step size mu is t^(k + 1/2) with the absolute slot t. "
    "The paper does not say at which value lambda begins; with 1e11 its statements hold best. The policy is "
    "work-conserving unless literal=True. gamma='seen' is Eq. 27 for the jobs that have arrived; "
    "gamma='eq27', Eq. 27 for all jobs, is not online and reads the observation eq27. If declared demands "
    "are wrong, jobs are sorted by the declared demand, and the service of a job is the change of its "
    "slots_left."
)


@register_policy(
    "flowtime/ocorp",
    source="xu2021, Algorithm 1, Lemma 1 and Eq. 22; MapReduce: section V",
    deviations=DEVIATIONS + " In 2D jobs are placed greedily, as by srpt; the paper has ocorp+m for 2D.",
    views=("allocation", "priority"),
    candidates=CANDIDATES,
)
class OCORP(PricingPolicy):
    """Gives each job a price that grows while it is not served, and serves by weight minus price per core.

    This is the paper's algorithm, an online convex optimisation. The price of a job, lambda, rises while the
    job gets less service than it needs to finish by the slot Gamma. Use it to keep the l_k norm of the
    flowtimes low: it prefers short jobs, but does not let long jobs wait for ever. It needs the declared
    processing times and demands, and takes little longer than a sort per slot. By default prices begin so
    high that jobs with few cores come first.

    In every slot, where a job takes p slots with d cores and arrived in slot a, and k is that of the norm:

    1. The price of a job that was active in the slot before, t, becomes $max(0, lambda + t^(k + 1/2) (p /
       (Gamma - a) - s))$, where s is the share of its d cores that it got in slot t. A new job, or a new
       phase of a job, begins with the price ``lambda0``.
    2. The weight of a job is $w = age^k / p + p^(k - 1)$ (MapReduce: the same with the p of a task of its
       phase).
    3. Sort the jobs by $(w - lambda) / d$, least first, ties by arrival. With ``literal=True`` only jobs with
       a negative value are served; if ``lambda0`` is 0, these are none until prices have risen.
    4. Give each job its cap in that order while cores are left, and pack the cores, the largest server first.

    From slot to slot the policy keeps lambda and the remaining work of the visible jobs, and with
    ``gamma="seen"`` also the sums of Eq. 27 over the jobs that have arrived.

    Algorithm 1 does not say at which value lambda begins. The default of 1e11 is far above the weights, so
    that the key is nearly $-lambda / d$: jobs with the smallest demand come first, and prices and weights
    only break ties between jobs of equal demand. This changes when a job has been served for long, as a slot
    of service reduces its lambda by $t^(5/2)$, 8e8 in slot 3600. Thus the paper's numbers are reached with
    prices that hardly matter. If lambda begins at 0 or at the weight, jobs with the least weight per core
    come first. The table has means over 20 draws (seed 20); waiting is that of the shorter half of the jobs,
    in slots:

    | lambda0, or rule | 60 jobs: cost / bound | waiting | preset paper: cost / bound | waiting | makespan |
    |---|---|---|---|---|---|
    | 1e11 | 1.36 | 0.33 | 1.56 | 0.02 | 3652 |
    | 0 | 2.25 | 5.09 | 2.22 | 21.4 | 3861 |
    | "w" | 2.21 | 4.88 | 2.22 | 21.5 | 3861 |
    | srf | 1.46 | 5.07 | 1.18 | 19.4 | 3614 |
    | drf | 1.38 | 1.33 | 1.15 | 3.67 | 3625 |
    | srvf | 1.23 | 0.03 | 2.59 | 0.00 | 5416 |
    | svf | 1.29 | 0.01 | 2.79 | 0.00 | 5424 |
    | srpt | 1.57 | 0.02 | 3.15 | 0.00 | 5403 |

    Complexity: O(S + M (W + M)) per slot for W visible jobs and M servers, where S is Shell's sort of W
    numbers (about W log W); the prices cost O(W). Sticky packing adds O(M) for each server on which a job had
    cores. With latencies, packing is replaced by a transportation problem as in ocorp+. In view priority the
    environment does step 4.

    Args:
        gamma: Gamma, the slot by which all jobs are assumed to have finished: a number, "seen" or "eq27".
        lambda0: lambda of a job in its first slot: a number, "p" (mu p), or "w" (its weight). See above.
        literal: serve only jobs with weight < lambda; the others wait even where cores are free.
        packing: "fresh" or "sticky"; None: that of the environment.
    """

    def __init__(
        self,
        gamma: float | str = 4000.0,
        lambda0: float | str = LAMBDA0,
        literal: bool = False,
        packing: str | None = None,
    ) -> None:
        super().__init__("ocorp", ("allocation", "priority"), KINDS, packing, gamma, lambda0, literal)
