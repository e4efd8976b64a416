"""SRPT, SRVF, SVF and SRF: the smallest job first, by four measures of size."""

from schedgym.baselines.flowtime.rules import RulePolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["ShortestRemaining", "SmallestDemand", "SmallestRemainingVolume", "SmallestVolume"]

_GREEDY = (
    "Each job gets its cap while there are cores, then they are packed; with memory each is placed on the "
    "servers with most free cores that have its memory free. Keys use the declared demand."
)


@register_policy(
    "flowtime/srpt", source="paper 000, section VI", deviations=_GREEDY, views=carrying_views("srpt")
)
class ShortestRemaining(RulePolicy):
    """The job with the least remaining processing time first.

    MapReduce: by the sum over the phases of the longest remaining task.

    In every slot:

    1. Sort the visible jobs by remaining slots at full demand, fewest first, ties by arrival.
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
        super().__init__("srpt", packing)


@register_policy(
    "flowtime/srvf", source="paper 000, section VI", deviations=_GREEDY, views=carrying_views("srvf")
)
class SmallestRemainingVolume(RulePolicy):
    """The job with the fewest remaining core-slots first.

    In every slot:

    1. Sort the visible jobs by remaining core-slots, fewest first, ties by arrival.
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
        super().__init__("srvf", packing)


@register_policy(
    "flowtime/svf", source="paper 000, section VI", deviations=_GREEDY, views=carrying_views("svf")
)
class SmallestVolume(RulePolicy):
    """The job with the fewest core-slots, done ones included, first.

    In every slot:

    1. Sort the visible jobs by core-slots in all, fewest first, ties by arrival.
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
        super().__init__("svf", packing)


@register_policy(
    "flowtime/srf", source="paper 000, section VI", deviations=_GREEDY, views=carrying_views("srf")
)
class SmallestDemand(RulePolicy):
    """The job that demands the fewest cores (MapReduce: per task of its phase) first.

    In every slot:

    1. Sort the visible jobs by declared cores, fewest first, ties by arrival.
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
        super().__init__("srf", packing)
