"""Classical policies beside the thesis's algorithms: first come first served, shortest remaining, random."""

from schedgym.baselines.geo.assignment import PLACEMENTS, AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

_PLACEMENT = (
    "The thesis gives no placement for this order: tasks are placed anew at every event, in the order of the "
    "jobs, by ATA-Greedy's rule (placement='greedy') or at their associated sites ('associated')."
)


@register_policy(
    "geo/fcfs",
    source="guan2022, section 3.2.3 (named there as classical)",
    deviations=_PLACEMENT,
    views=carrying_views("fcfs"),
    candidates={"placement": PLACEMENTS},
)
class FirstComeFirstServed(AssignmentPolicy):
    """Serves jobs in order of arrival.

    No job overtakes another, so that long jobs delay all later ones. Use it as a baseline that knows nothing
    about the jobs' sizes; it is fast.

    1. Order the jobs as they arrived.
    2. Place all waiting tasks anew, job by job and the largest group first: each at the available site with
       the least (load + 1) / slots, where the load includes the jobs before it; or (parameter ``placement``)
       each at its associated site.

    A free slot of a site then runs a task of the first job in the order that has one at this site.

    Complexity: O(S + J (K^2 + K A^2)) per event for J visible jobs, K groups of up to A sites, where S is
    Shell's sort of J numbers (about J log J); O(S + J K A) at associated sites. In view pick the order is
    kept until the next event, and each decision about a slot costs O(J K). In view rule the environment does
    this work.

    Args:
        placement: "greedy" or "associated"; None: that of the environment, "greedy" in view assignment.
        literal: place by the thesis's formula (see ata-greedy).
    """

    def __init__(self, placement: str | None = None, literal: bool = False) -> None:
        super().__init__("fcfs", placement=placement, literal=literal)


@register_policy(
    "geo/srpt",
    source="guan2022, section 2.2.1 (shortest remaining processing time), by tasks",
    deviations=_PLACEMENT
    + " As durations are unknown, remaining tasks are counted, running ones included. In view pick the jobs "
    "are ordered when the first slot after an event is offered, by the tasks that remain then.",
    views=carrying_views("srpt"),
    candidates={"placement": PLACEMENTS},
)
class ShortestRemaining(AssignmentPolicy):
    """Serves the jobs with the fewest unfinished tasks first, ties by arrival.

    This is shortest remaining processing time, with the number of tasks in place of their durations, which
    are unknown. Use it as the simplest rule that favours short jobs; unlike swag and ata it ignores the load
    of the sites. It is fast.

    At every event:

    1. Sort the jobs by unfinished tasks, running ones included.
    2. Place all waiting tasks anew, job by job and the largest group first: each at the available site with
       the least (load + 1) / slots, where the load includes the jobs before it; or (parameter ``placement``)
       each at its associated site.

    A free slot of a site then runs a task of the first job in the order that has one at this site.

    Complexity: O(S + J (K^2 + K A^2)) per event for J visible jobs, K groups of up to A sites, where S is
    Shell's sort of J numbers (about J log J); O(S + J K A) at associated sites. In view pick the order is
    kept until the next event, and each decision about a slot costs O(J K). In view rule the environment does
    this work.

    Args:
        placement: "greedy" or "associated"; None: that of the environment, "greedy" in view assignment.
        literal: place by the thesis's formula (see ata-greedy).
    """

    def __init__(self, placement: str | None = None, literal: bool = False) -> None:
        super().__init__("srpt", placement=placement, literal=literal)


@register_policy(
    "geo/random",
    source="schedgym (not in the thesis)",
    views=carrying_views("random"),
    candidates={"placement": PLACEMENTS},
)
class Random(AssignmentPolicy):
    """Serves jobs in random order, drawn anew at every event.

    Use it as the baseline that any rule should beat. It only needs to know where tasks may run, and is fast.

    1. Draw an order of the jobs; all orders are equally likely.
    2. Place all waiting tasks anew, job by job and the largest group first: each at the available site with
       the least (load + 1) / slots, where the load includes the jobs before it; or (parameter ``placement``)
       each at its associated site.

    A free slot of a site then runs a task of the first job in the order that has one at this site.

    Complexity: O(J (K^2 + K A^2)) per event for J visible jobs, K groups of up to A sites; O(J K A) at
    associated sites.

    Args:
        placement: "greedy" or "associated"; None: that of the environment, "greedy" in view assignment.
    """

    def __init__(self, placement: str | None = None) -> None:
        super().__init__("random", placement=placement)
