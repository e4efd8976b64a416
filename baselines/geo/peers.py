"""Classical policies beside the thesis's algorithms: first come first served, shortest remaining, random."""

from typing import Any

from schedgym.baselines.geo.assignment import PLACEMENTS, AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

_PLACEMENT = (
    "The thesis gives no placement for this order: tasks are placed anew at every event, in the order of the "
    "jobs, by ATA-Greedy's rule (placement='greedy') or at their associated sites ('associated')."
)
_TASKS = (
    " As durations are unknown, remaining tasks are counted, running ones included. In view pick the jobs "
    "are ordered when the first slot after an event is offered, by the tasks that remain then."
)
#: rule -> what it does, its source, deviations, the options that its name fixes
ORDERS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "fcfs": (
        "Serves jobs in order of arrival.",
        "guan2022, section 3.2.3 (named there as classical)",
        _PLACEMENT,
        {},
    ),
    "srpt": (
        "Serves the jobs with the fewest unfinished tasks first, ties by arrival.",
        "guan2022, section 2.2.1 (shortest remaining processing time), by tasks",
        _PLACEMENT + _TASKS,
        {},
    ),
    "random": (
        "Serves jobs in random order, drawn anew at every event.",
        "schedgym (not in the thesis)",
        "",
        {"literal": False},
    ),
}


def _enter(policy: Any) -> Any:
    """Register the class once for each order."""
    for rule, (summary, source, deviations, fixed) in ORDERS.items():
        register_policy(
            f"geo/{rule}",
            source=source,
            deviations=deviations,
            views=carrying_views(rule),
            summary=summary,
            candidates={"placement": PLACEMENTS},
            rule=rule,
            **fixed,
        )(policy)
    return policy


@_enter
class InOrder(AssignmentPolicy):
    """Serves jobs in an order that ignores the load of the sites; the name of the policy gives the order.

    These classical rules are baselines, and fast. With fcfs no job overtakes another, so that long jobs delay
    all later ones; it needs to know nothing about the jobs' sizes. srpt is shortest remaining processing time
    with the number of tasks in place of their durations, which are unknown: the simplest rule that favours
    short jobs. Any rule should beat random, which only needs to know where tasks may run.

    At every event:

    1. Sort the jobs, ties by arrival: fcfs by arrival, srpt by unfinished tasks, running ones included, the
       fewest first; random draws an order, all equally likely.
    2. Place all waiting tasks anew, job by job and the largest group first: each at the available site with
       the least (load + 1) / slots, where the load includes the jobs before it; or (parameter ``placement``)
       each at its associated site.

    A free slot of a site then runs a task of the first job in the order that has one at this site.

    Complexity: O(S + J (K^2 + K A^2)) per event for J visible jobs, K groups of up to A sites, where S is
    Shell's sort of J numbers (about J log J; random: J); O(S + J K A) at associated sites. In view pick the
    order is kept until the next event, and each decision about a slot costs O(J K). In view rule the
    environment does this work.

    Args:
        rule: the order.
        placement: "greedy" or "associated"; None: that of the environment, "greedy" in view assignment.
        literal: place by the thesis's formula (see ata-greedy).
    """

    def __init__(self, rule: str, placement: str | None = None, literal: bool = False) -> None:
        super().__init__(rule, placement=placement, literal=literal)
