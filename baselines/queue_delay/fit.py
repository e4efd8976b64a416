"""First, best, worst and random fit, as printed and in a corrected form, and first come first served."""

from typing import Any

from schedgym.baselines.queue_delay.scheme import SchemePolicy, candidates_of, carrying_views
from schedgym.core.policy import register_policy

_LITERAL = (
    "None. A task can wait for ever under this scheme: a head of the queue that does not fit on the released "
    "server is not tried on others, even if it fits there."
)
_REPAIRED = "On a completion the head is tried on all servers, so that no task waits for ever."


_NAMES = {"ff": "first", "bf": "best", "wf": "worst", "rf": "random"}


def _fit(code: str, everywhere: bool) -> Any:
    scheme = f"{code}-all" if everywhere else code
    return register_policy(
        f"queue-delay/{scheme}",
        source="noroozoliaee2014, section III-A1",
        deviations=_REPAIRED if everywhere else _LITERAL,
        views=carrying_views(scheme),
        candidates=candidates_of(scheme),
        summary=f"Places arriving tasks by {_NAMES[code]} fit; on a completion tries the head of the queue "
        + ("on all servers." if everywhere else "on that server only."),
        code=code,
        everywhere=everywhere,
    )


@_fit("ff", False)
@_fit("bf", False)
@_fit("wf", False)
@_fit("rf", False)
@_fit("ff", True)
@_fit("bf", True)
@_fit("wf", True)
@_fit("rf", True)
class Fit(SchemePolicy):
    """Arriving tasks bypass the queue; on a completion only the head of the queue is tried.

    First, best, worst and random fit are the paper's simplest schemes. Use them as simple baselines: they
    need demands only, and are fast. The head of the queue (the task that has waited longest) blocks all tasks
    behind it if it does not fit; without ``everywhere``, a task can even wait for ever.

    1. A task arrives: it starts on the server that the rule chooses among those on which it fits, or joins
       the queue.
    2. A task ends: the head of the queue starts on that server if it fits, then the next head, and so on; at
       the first that does not fit the epoch ends. With ``everywhere`` the rule chooses among all servers on
       which a head fits.

    Best and worst fit compare the L_p norm $(c^p + m^p)^(1/p)$ of the cpu c and the memory m that are left
    after the placement (p is 2 by default); ties go to the lowest server. Random fit draws evenly among the
    servers on which the task fits.

    The names ff, bf, wf and rf give the rule (first, best, worst, random fit); those that end in -all set
    ``everywhere``.

    Complexity: O(M) at an arrival, for M servers; O(1) for each head tried at a completion, with everywhere
    O(M). Counting the visible tasks in a window of W adds O(log W). In view rule the environment does this
    work.

    Args:
        code: ff, bf, wf or rf: the first server that fits, the one with the least or the largest norm, a
            random one.
        everywhere: try the head on all servers, not only on the released one.
        p: exponent of the norm of best and worst fit, above 1; with infinity the norm is the larger of cpu
            and memory. All views except placement support p = 2 only.
    """

    def __init__(self, code: str, everywhere: bool, p: float = 2.0) -> None:
        super().__init__(f"{code}-all" if everywhere else code, p=p)


@register_policy(
    "queue-delay/fcfs",
    source="noroozoliaee2014, section VI-A (footnote)",
    views=carrying_views("fcfs"),
)
class FirstComeFirstServed(SchemePolicy):
    """Starts tasks in order of submission, each on the first server that fits; the head blocks the rest.

    No task overtakes another. Use it as the simplest baseline. It needs demands only and is fast, but servers
    are idle while the head of the queue fits nowhere.

    At arrivals and completions alike, the task that has waited longest starts on the lowest server on which
    it fits; then the next one is tried. The epoch ends when one fits nowhere, or none is left.

    Complexity: O(M) for each head tried, M servers, whatever the length of the queue. Counting the visible
    tasks in a window of W adds O(log W). In view rule the environment does this work.
    """

    def __init__(self) -> None:
        super().__init__("fcfs")
