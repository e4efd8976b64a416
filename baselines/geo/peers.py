"""What the thesis's algorithms are compared with: first come first served, shortest remaining, random."""

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["FirstComeFirstServed", "Random", "ShortestRemaining"]

_PLACEMENT = (
    "The thesis compares with none of its own: tasks are placed anew at every event, in the order of the "
    "jobs, by ATA-Greedy's rule (placement='greedy') or at their associated sites ('associated')."
)


@register_policy(
    "geo/fcfs",
    source="thesis 004, section 3.2.3 (named there as classical)",
    deviations=_PLACEMENT,
    views=carrying_views("fcfs"),
)
class FirstComeFirstServed(AssignmentPolicy):
    """Jobs in order of arrival.

    Args:
        placement: "greedy" or "associated"; None: as the environment does, greedy in view assignment.
        literal: place by the thesis's formula (see ata-greedy).
    """

    def __init__(self, placement: str | None = None, literal: bool = False) -> None:
        super().__init__("fcfs", placement=placement, literal=literal)


@register_policy(
    "geo/srpt",
    source="thesis 004, section 2.2.1 (shortest remaining processing time), by tasks",
    deviations=_PLACEMENT
    + " Durations are unknown, so that remaining tasks count, running ones too. In view pick the jobs are "
    "ordered when the first slot after an event is offered, by what has remained until then.",
    views=carrying_views("srpt"),
)
class ShortestRemaining(AssignmentPolicy):
    """Jobs with the fewest unfinished tasks first, ties by arrival.

    Args:
        placement: "greedy" or "associated"; None: as the environment does, greedy in view assignment.
        literal: place by the thesis's formula (see ata-greedy).
    """

    def __init__(self, placement: str | None = None, literal: bool = False) -> None:
        super().__init__("srpt", placement=placement, literal=literal)


@register_policy(
    "geo/random",
    source="schedgym (not in the thesis)",
    views=carrying_views("random"),
)
class Random(AssignmentPolicy):
    """Jobs in random order, drawn anew at every event.

    Args:
        placement: "greedy" or "associated"; None: as the environment does, greedy in view assignment.
    """

    def __init__(self, placement: str | None = None) -> None:
        super().__init__("random", placement=placement)
