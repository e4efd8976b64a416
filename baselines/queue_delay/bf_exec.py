"""BF-EXEC, the paper's own scheme, and DOT-EXEC, ours."""

from schedgym.baselines.queue_delay.scheme import SchemePolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["BFExec", "DotExec"]


@register_policy(
    "queue-delay/bf-exec",
    source="NoroozOliaee et al., section IV",
    deviations="Best fit refers to what is left after the placement, in absolute normalised units.",
    knows=("execution",),
    views=carrying_views("bf-exec"),
)
class BFExec(SchemePolicy):
    """Best fit by L2 norm on arrival; on a completion the server scans the queue, shortest first.

    A task that does not fit is passed over and does not block. O(M) at an arrival, O(queue) per start.
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
    """Largest inner product of demand and free resources on arrival; then as bf-exec."""

    def __init__(self) -> None:
        super().__init__("dot-exec")
