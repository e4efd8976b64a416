"""First, best, worst and random fit, as printed and repaired, and first come first served."""

from typing import Any

from schedgym.baselines.queue_delay.scheme import SchemePolicy, candidates_of, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["FirstComeFirstServed", "Fit"]

_LITERAL = (
    "None. As printed, a task can wait for ever: a head of the queue that does not fit the released server "
    "is not tried on others, even where it fits."
)
_REPAIRED = "On a completion the head is tried on all servers, so that no task waits for ever."


_NAMES = {"ff": "First", "bf": "Best", "wf": "Worst", "rf": "Random"}


def _fit(code: str, everywhere: bool) -> Any:
    scheme = f"{code}-all" if everywhere else code
    return register_policy(
        f"queue-delay/{scheme}",
        source="noroozoliaee2014, section III-A1",
        deviations=_REPAIRED if everywhere else _LITERAL,
        views=carrying_views(scheme),
        candidates=candidates_of(scheme),
        summary=f"{_NAMES[code]} fit on arrival; on a completion the head of the queue, "
        + ("on any server." if everywhere else "on the released server only."),
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

    First, best, worst and random fit are the paper's simplest schemes: they need demands only, and cost next
    to nothing. Use them as plain baselines. A head of the queue that does not fit holds back all tasks behind
    it; without ``everywhere``, a task can even wait for ever.

    1. A task arrives: it starts on the server that the rule chooses among those on which it fits, or joins
       the queue.
    2. A task ends: the task that has waited longest starts on that server if it fits there, else the epoch
       ends; after a start the next one is tried. With ``everywhere`` the rule chooses among all servers on
       which it fits.

    Best and worst fit compare the L_p norm $(c^p + m^p)^(1/p)$ of the cpu c and the memory m that are left
    after the placement, the L2 norm unless ``p`` is set; ties go to the lowest server. Random fit draws
    evenly among the servers on which the task fits.

    The names ff, bf, wf and rf differ by the rule (first, best, worst, random); those that end in -all set
    ``everywhere``.

    Complexity: O(M) at an arrival, for M servers; O(1) for each head tried at a completion, with everywhere
    O(M). Counting the visible tasks of a window of W adds O(log W). In view rule the environment does this
    work.

    Args:
        code: ff (first), bf (least norm of what is left), wf (largest), rf (random) fitting server.
        everywhere: try the head on all servers, not only on the released one.
        p: of the norm of best and worst fit, above 1; infinity compares the larger of cpu and memory. With a
            p other than 2 only the view placement can carry the policy.
    """

    def __init__(self, code: str, everywhere: bool, p: float = 2.0) -> None:
        super().__init__(f"{code}-all" if everywhere else code, p=p)


@register_policy(
    "queue-delay/fcfs",
    source="noroozoliaee2014, section VI-A (footnote)",
    views=carrying_views("fcfs"),
)
class FirstComeFirstServed(SchemePolicy):
    """Tasks start in order of submission, each on the first fitting server; the head blocks the rest.

    This is the classical queue: no task overtakes another. Use it as the baseline without any knowledge or
    choice; it needs demands only and costs little, but servers idle while the head of the queue fits nowhere.

    At arrivals and completions alike, the task that has waited longest starts on the lowest server on which
    it fits; then the next one is tried. The epoch ends when one fits nowhere, or none is left.

    Complexity: O(M) for each head tried, M servers, whatever the length of the queue. Counting the visible
    tasks of a window of W adds O(log W). In view rule the environment does this work.
    """

    def __init__(self) -> None:
        super().__init__("fcfs")
