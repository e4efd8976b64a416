"""BF-EXEC, the paper's own scheme, and DOT-EXEC, ours."""

from schedgym.baselines.queue_delay.scheme import SchemePolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["BFExec", "DotExec"]


@register_policy(
    "queue-delay/bf-exec",
    source="noroozoliaee2014, section IV",
    deviations="Best fit refers to what is left after the placement, in absolute normalised units.",
    knows=("execution",),
    views=carrying_views("bf-exec"),
)
class BFExec(SchemePolicy):
    """Best fit by L2 norm on arrival; on a completion the server scans the queue, shortest first.

    1. A task arrives: of the servers on which it fits, it starts on the one with the least L2 norm of what is
       left of both resources; if there is none, it joins the queue. Tasks that wait already are not tried.
    2. A task ends: its server takes the shortest waiting task that fits, again and again, until none fits.

    A task that does not fit is passed over and does not block. Ties go to the lowest server and to the
    earliest submission. Each call gives one placement, or ends the epoch; nothing is remembered between
    calls.

    Complexity: O(M) at an arrival, O(Q) for each start at a completion and once more for its end; M servers,
    Q waiting tasks that are visible. Counting the visible tasks of a window of W adds O(log W). In view rule
    the environment does it.
    """

    def __init__(self) -> None:
        super().__init__("bf-exec")


@register_policy(
    "queue-delay/dot-exec",
    source="schedgym (not in the paper): the arrival rule of ffd-dp, the completion rule of bf-exec",
    knows=("execution",),
    views=carrying_views("dot-exec"),
)
class DotExec(SchemePolicy):
    """Largest inner product of demand and free resources on arrival; then as bf-exec.

    1. A task arrives: of the servers on which it fits, it starts on the one with the largest inner product of
       its demand with what is free there before; if there is none, it joins the queue.
    2. A task ends: its server takes the shortest waiting task that fits, again and again, until none fits.

    Ties go to the lowest server and to the earliest submission; nothing is remembered between calls.

    Complexity: O(M) at an arrival, O(Q) for each start at a completion and once more for its end; M servers,
    Q waiting tasks that are visible. Counting the visible tasks of a window of W adds O(log W). In view rule
    the environment does it.
    """

    def __init__(self) -> None:
        super().__init__("dot-exec")
