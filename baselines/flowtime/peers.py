"""What the paper's algorithms are compared with beyond the paper: first come first served, random."""

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["FirstComeFirstServed", "Random"]


@register_policy(
    "flowtime/fifo", source="schedgym (not in the paper): classical", views=carrying_views("fifo")
)
class FirstComeFirstServed(RulePolicy):
    """Jobs in order of arrival.

    In every slot:

    1. Take the visible jobs in order of arrival, as they stand.
    2. Give each job its cap while cores are left; the last one gets what is left.
    3. Pack: the largest server first, each takes the jobs that fit whole, most cores first; the others are
       split over the servers with most free cores. Sticky packing lets jobs keep their places before that.

    With memory, in place of 2 and 3, each job in turn takes its cap on the servers with most free cores that
    host it or have its memory free. With latencies step 3 makes their sum least. Nothing is remembered.

    Complexity: O(S + M (W + M)) per slot for W visible jobs and M servers, where S is Shell's sort of W
    numbers (about W log W). Sticky packing adds O(M) for each server that a job was on; with latencies step 3
    is a transportation problem, as in ocorp+. In views priority and rule the environment does steps 2 and 3.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("fifo", packing)


@register_policy("flowtime/random", source="schedgym (not in the paper)", views=carrying_views("random"))
class Random(RulePolicy):
    """Jobs in random order, drawn anew in every slot.

    In every slot:

    1. Draw an order of the visible jobs, all orders alike.
    2. Give each job its cap while cores are left; the last one gets what is left.
    3. Pack: the largest server first, each takes the jobs that fit whole, most cores first; the others are
       split over the servers with most free cores. Sticky packing lets jobs keep their places before that.

    With memory, in place of 2 and 3, each job in turn takes its cap on the servers with most free cores that
    host it or have its memory free. With latencies step 3 makes their sum least. Nothing is remembered but
    the state of the generator.

    Complexity: O(S + M (W + M)) per slot for W visible jobs and M servers, where S is Shell's sort of W
    numbers (about W log W), for packing. Sticky packing adds O(M) for each server that a job was on; with
    latencies step 3 is a transportation problem, as in ocorp+. In view priority the environment does steps 2
    and 3.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__("random", packing)
