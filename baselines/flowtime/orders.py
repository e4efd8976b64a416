"""FIFO, SRPT, SRVF, SVF, SRF and random: jobs one after another, in orders that differ by one key."""

from __future__ import annotations

from typing import Any

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["InOrder"]

_PAPER = "xu2021, section VI"
_GREEDY = (
    "Each job gets its cap while there are cores, then they are packed; with memory each is placed on the "
    "servers with most free cores that have its memory free. Keys use the declared demand."
)
#: rule -> what it does, its source, deviations
ORDERS = {
    "fifo": ("Jobs in order of arrival.", "schedgym (not in the paper): classical", ""),
    "srpt": ("The job with the least remaining processing time first.", _PAPER, _GREEDY),
    "srvf": ("The job with the fewest remaining core-slots first.", _PAPER, _GREEDY),
    "svf": ("The job with the fewest core-slots, done ones included, first.", _PAPER, _GREEDY),
    "srf": (
        "The job that demands the fewest cores (MapReduce: per task of its phase) first.",
        _PAPER,
        _GREEDY,
    ),
    "random": ("Jobs in random order, drawn anew in every slot.", "schedgym (not in the paper)", ""),
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
    """Jobs in an order that the name says, each with its cap.

    In every slot:

    1. Sort the visible jobs, the least key first, ties by arrival. The key of fifo is the arrival, of srpt
       the remaining slots at full demand (MapReduce: the sum over the phases of the longest remaining task),
       of srvf the remaining core-slots, of svf the core-slots in all, of srf the declared cores; random draws
       an order, all orders alike.
    2. Give each job its cap while cores are left; the last one gets what is left.
    3. Pack: the largest server first, each takes the jobs that fit whole, most cores first; the others are
       split over the servers with most free cores. Sticky packing lets jobs keep their places before that.

    With memory, in place of 2 and 3, each job in turn takes its cap on the servers with most free cores that
    host it or have its memory free. With latencies step 3 makes their sum least. Nothing is remembered but,
    by random, the state of the generator.

    Complexity: O(S + M (W + M)) per slot for W visible jobs and M servers, where S is Shell's sort of W
    numbers (about W log W). Sticky packing adds O(M) for each server that a job was on; with latencies step 3
    is a transportation problem, as in ocorp+. In views priority and rule the environment does steps 2 and 3.

    Args:
        rule: the order.
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, rule: str, packing: str | None = None) -> None:
        super().__init__(rule, packing)
