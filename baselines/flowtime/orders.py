"""FIFO, SRPT, SRVF, SVF, SRF and random: jobs one after another, in orders that differ by one key."""

from __future__ import annotations

from typing import Any

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy

_PAPER = "xu2021, section VI"
_GREEDY = (
    "Each job gets its cap while there are cores, which are then packed; if jobs have memory, each is placed "
    "on the servers with most free cores that have enough free memory. Keys use the declared demand."
)
#: rule -> what it does, its source, deviations
ORDERS = {
    "fifo": ("Serves jobs in order of arrival.", "schedgym (not in the paper): classical", ""),
    "srpt": ("Serves the job with the least remaining processing time first.", _PAPER, _GREEDY),
    "srvf": ("Serves the job with the fewest remaining core-slots first.", _PAPER, _GREEDY),
    "svf": ("Serves the job with the fewest total core-slots first.", _PAPER, _GREEDY),
    "srf": (
        "Serves the job that demands the fewest cores (MapReduce: for a task of its phase) first.",
        _PAPER,
        _GREEDY,
    ),
    "random": ("Serves jobs in random order, drawn anew in every slot.", "schedgym (not in the paper)", ""),
}


def _enter(policy: Any) -> Any:
    """Register the class once for each order."""
    for rule, (summary, source, deviations) in ORDERS.items():
        register_policy(
            f"flowtime/{rule}",
            source=source,
            deviations=deviations,
            views=carrying_views(rule),
            summary=summary,
            rule=rule,
        )(policy)
    return policy


@_enter
class InOrder(RulePolicy):
    """Serves jobs one after another, each up to its cap of cores; the name of the policy gives the order.

    These classical rules differ only in the key that sorts the jobs. Use them as baselines. fifo and random
    do not need processing times; srpt, srvf and svf favour short jobs, which lowers the mean flowtime but
    lets long jobs wait; srf favours jobs with few cores. All are fast.

    In every slot:

    1. Sort the visible jobs by the key, least first, ties by arrival. The key of fifo is the arrival; of srpt
       the remaining slots at full demand (MapReduce: the sum over the phases of the longest remaining task);
       of srvf the remaining core-slots; of svf the total core-slots; of srf the declared cores. random draws
       an order; all orders are equally likely.
    2. Give each job its cap in that order while cores are left; the last one gets what is left.
    3. Pack the cores: each server, the largest first, takes the jobs that fit on it as a whole, those with
       the most cores first; the other jobs are split over the servers with the most free cores. Sticky
       packing leaves jobs on their servers as far as possible.

    If jobs have memory, 2 and 3 are replaced: each job in turn takes its cap on the servers with the most
    free cores among those that host it or have enough free memory. If there are latencies, step 3 makes their
    sum least.

    Complexity: O(S + M (W + M)) per slot for W visible jobs and M servers, where S is Shell's sort of W
    numbers (about W log W). Sticky packing adds O(M) for each server on which a job had cores; with latencies
    step 3 is a transportation problem, as in ocorp+. In views priority and rule the environment does steps 2
    and 3.

    Args:
        rule: the order.
        packing: "fresh" or "sticky"; None: that of the environment.
    """

    def __init__(self, rule: str, packing: str | None = None) -> None:
        super().__init__(rule, packing)
