"""BF-EXEC, the paper's own scheme, and DOT-EXEC, a variant of it that the paper does not have."""

from schedgym.baselines.queue_delay.scheme import SchemePolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["BFExec", "DotExec"]


@register_policy(
    "queue-delay/bf-exec",
    source="noroozoliaee2014, section IV",
    deviations="Best fit compares what is left after the placement, in absolute normalised units.",
    knows=("execution",),
    views=carrying_views("bf-exec"),
)
class BFExec(SchemePolicy):
    """Best fit on arrival; on a completion the server takes waiting tasks, the shortest first.

    The paper's own scheme packs arriving tasks tightly and serves waiting tasks by execution time. Use it
    where execution times are known, which it needs: short tasks first keep the mean queuing delay low, though
    long tasks may wait long. It is cheap, and keeps no state between calls.

    1. A task arrives: of the servers on which it fits, it starts on the one with the least L2 norm
       $sqrt(c^2 + m^2)$, where c and m are the cpu and memory left after the placement; if there is none, it
       joins the queue. Tasks that wait already are not tried.
    2. A task ends: its server takes the shortest waiting task that fits, again and again, until none fits.

    A task that does not fit is passed over and does not block. Ties go to the lowest server and to the
    earliest submission. Each call gives one placement, or ends the epoch.

    Complexity: O(M) at an arrival, O(Q) for each start at a completion and once more for its end; M servers,
    Q visible waiting tasks. Counting the visible tasks of a window of W adds O(log W). In view rule the
    environment does this work.
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
    """Largest inner product of demand and free resources on arrival; completions as by bf-exec.

    This variant of bf-exec starts an arriving task where the free resources suit the mix of its demand. Use
    it beside bf-exec, to see what the rule for arrivals changes. It needs execution times, is as cheap, and
    keeps no state between calls.

    1. A task arrives: of the servers on which it fits, it starts on the one with the largest inner product of
       its demand with what is free there before; if there is none, it joins the queue.
    2. A task ends: its server takes the shortest waiting task that fits, again and again, until none fits.

    Ties go to the lowest server and to the earliest submission.

    Complexity: O(M) at an arrival, O(Q) for each start at a completion and once more for its end; M servers,
    Q visible waiting tasks. Counting the visible tasks of a window of W adds O(log W). In view rule the
    environment does this work.
    """

    def __init__(self) -> None:
        super().__init__("dot-exec")
