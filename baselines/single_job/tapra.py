"""TaPRA and TaPRA-fast: the paper's planners of one job."""

from schedgym.baselines.single_job.policy import KNOWS, PlanningPolicy
from schedgym.baselines.solvers.planning import Planner
from schedgym.core.policy import register_policy

__all__ = ["Tapra", "TapraFast"]

_SEARCH = (
    "The local search takes tasks as long as the job within 1e-9, in index order, and counts a move only if "
    "it makes the task faster by 1e-9 at least, which the paper leaves open. Of equal servers the lowest."
)


@register_policy(
    "single-job/tapra",
    source="paper 001, Algorithms 1 (TaPRA), 2 (REC) and 3 (local search)",
    deviations="REC chooses by the new completion time, not by its change, which is inf - inf where a group "
    "has nothing left; it fails where Algorithm 2 takes the minimum of nothing. " + _SEARCH,
    knows=KNOWS,
    views=("plan", "place"),
)
class Tapra(PlanningPolicy):
    """The linear relaxation, each task where its largest part is, then less energy and a local search."""

    def __init__(self) -> None:
        super().__init__(Planner("tapra"), ("plan", "place"))


@register_policy(
    "single-job/tapra-fast",
    source="paper 001, section 4 (TaPRA-fast)",
    deviations=_SEARCH,
    knows=KNOWS,
    views=("plan", "place", "search"),
)
class TapraFast(PlanningPolicy):
    """A local search from every task's most efficient server."""

    def __init__(self) -> None:
        super().__init__(Planner("tapra-fast"), ("plan", "place", "search"))
