"""BF-EXEC, the paper's own scheme, and DOT-EXEC, a variant of it that the paper does not have."""

from schedgym.baselines.queue_delay.scheme import SchemePolicy, carrying_views
from schedgym.core.policy import register_policy


@register_policy(
    "queue-delay/bf-exec",
    source="noroozoliaee2014, section IV",
    deviations="Best fit compares what is left after the placement, in shares of the largest server.",
    knows=("execution",),
    views=carrying_views("bf-exec"),
)
class BFExec(SchemePolicy):
    """Places arriving tasks by best fit; a server on which a task ends takes the shortest waiting tasks.

    This is the scheme that the paper proposes. Use it if execution times are known: with short tasks first
    the mean queuing delay is low, but long tasks may wait long. It is fast, and keeps no state between calls.

    1. A task arrives: of the servers on which it fits, it starts on the one with the least L2 norm
       $sqrt(x_1^2 + ... + x_R^2)$ of what is left of the R resources after the placement; if it fits on none,
       it joins the queue. Tasks that are waiting are not tried.
    2. A task ends: its server starts the shortest waiting task that fits, and so on, until none fits.

    A task that does not fit is passed over and does not block. Ties go to the lowest server and to the
    earliest submission. Each call gives one placement, or ends the epoch.

    Complexity: O(M) at an arrival; O(Q) for each start at a completion, and once more to find that no task
    fits; M servers, Q visible waiting tasks. Counting the visible tasks in a window of W adds O(log W). In
    view rule the environment does this work.
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
    """Places arriving tasks by the largest inner product of demand and free resources, else acts as bf-exec.

    This variant of bf-exec starts an arriving task on a server whose free resources are in a similar
    proportion to its demand. Use it beside bf-exec, to see the effect of the rule for arrivals. It needs
    execution times, is as fast, and keeps no state between calls.

    1. A task arrives: of the servers on which it fits, it starts on the one with the largest inner product of
       its demand and the free resources before the placement; if it fits on none, it joins the queue.
    2. A task ends: its server starts the shortest waiting task that fits, and so on, until none fits.

    Ties go to the lowest server and to the earliest submission.

    Complexity: O(M) at an arrival; O(Q) for each start at a completion, and once more to find that no task
    fits; M servers, Q visible waiting tasks. Counting the visible tasks in a window of W adds O(log W). In
    view rule the environment does this work.
    """

    def __init__(self) -> None:
        super().__init__("dot-exec")
