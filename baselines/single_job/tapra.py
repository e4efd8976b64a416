"""TaPRA and TaPRA-fast: the paper's planners of one job."""

from schedgym.baselines.single_job.policy import KNOWS, PlanningPolicy
from schedgym.core.policy import register_policy
from schedgym.solvers.planning import Planner

__all__ = ["Tapra", "TapraFast"]

_SEARCH = (
    "The local search takes tasks as long as the job within 1e-9, in index order, and counts a move only if "
    "it makes the task faster by 1e-9 at least, which the paper leaves open. Ties go to the lowest server."
)


@register_policy(
    "single-job/tapra",
    source="shi2017, Algorithms 1 (TaPRA), 2 (REC) and 3 (local search)",
    deviations="REC chooses by the new completion time, not by its change, which is inf - inf where a group "
    "has nothing left; it fails where Algorithm 2 takes the minimum of nothing. " + _SEARCH,
    knows=KNOWS,
    views=("plan", "place"),
)
class Tapra(PlanningPolicy):
    """Rounds the linear relaxation, then reduces the energy to the cap and improves by a local search.

    The paper's main planner starts from the optimum in which tasks can be divided. Use it where the quality
    of a plan matters more than time: it is usually a little better than tapra-fast, and solves linear
    programs for it. It needs the loads and efficiencies of all tasks.

    1. Solve the relaxation in which tasks can be divided among servers (SJS-Relax-LP), first with the 8 most
       efficient servers of each task, then with more of them as long as the prices ask for some.
    2. Put every task on the server of its largest part, ties the lowest server.
    3. REC: while the energy cap is exceeded, move a task to a server where it is more efficient, such that
       the job takes least time; ties the lowest task, then server.
    4. The local search of tapra-fast: a task as long as the job moves to where it gets fastest, until none
       can.

    If no plan is found in this way, every task goes to its most efficient server. In view place the plan is
    made at the first task and then carried out.

    Complexity: linear programs of up to n M variables and n + R + 1 rows, by the dual simplex (exponential at
    worst), and O(M (n + R)) to price them; then O(n (R + M D)) for each move of REC and O(R + n M D) at worst
    for each of the search; n tasks, M servers, R groups of servers, D of them around a server.
    """

    def __init__(self) -> None:
        super().__init__(Planner("tapra"), ("plan", "place"))


@register_policy(
    "single-job/tapra-fast",
    source="shi2017, section 4 (TaPRA-fast)",
    deviations=_SEARCH,
    knows=KNOWS,
    views=("plan", "place", "search"),
)
class TapraFast(PlanningPolicy):
    """Improves a placement by a local search that starts with every task on its most efficient server.

    The paper's fast planner keeps to the energy cap from the start, and shortens the job move by move. Use it
    where many plans are needed, as the online problem does: it is nearly as good as tapra and needs no linear
    program. It needs the loads and efficiencies of all tasks.

    1. Put every task on its most efficient server. By Eq. 16 group k of servers then takes the time
       $T_k = sum_i A_jk Leq_i / B_k$, where Leq_i = load / efficiency is the equivalent load of a task i in
       it, on server j, a vCPU there counts $A_jk$ (1 in a fat tree), and B_k is its limit; a task takes as
       long as the slowest group around its server.
    2. Tasks on servers of a group without vCPU move first, each to where it is fastest within the energy cap.
    3. Of the tasks that take as long as the job, in order of index, take the first that gets faster on
       another server within the cap, and move it to where it gets fastest.
    4. Repeat 3 until no such task can move; size the tasks by Eq. 16.

    If no plan is found in this way, every task goes to its most efficient server. In view place the plan is
    made at the first task and then carried out. In view search each decision is one move of 3.

    Complexity: O(n M + L (R + n D + B M D)) per plan for L moves, in each of which B tasks are tried (usually
    few, n at worst); n tasks, M servers, R groups of servers, D of them around a server. The code sets no
    limit to L.
    """

    def __init__(self) -> None:
        super().__init__(Planner("tapra-fast"), ("plan", "place", "search"))
