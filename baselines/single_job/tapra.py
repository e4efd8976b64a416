"""TaPRA and TaPRA-fast: the paper's planners of one job."""

from schedgym.baselines.single_job.policy import KNOWS, PlanningPolicy
from schedgym.core.policy import register_policy
from schedgym.solvers.planning import Planner

_SEARCH = (
    "The local search moves tasks that take as long as the job within 1e-9, in order of index, and only if "
    "the task becomes faster by at least 1e-9; the paper does not say so. Ties go to the lowest server."
)


@register_policy(
    "single-job/tapra",
    source="shi2017, Algorithms 1 (TaPRA), 2 (REC) and 3 (local search)",
    deviations="REC chooses the move with the least new completion time, not with the least change of it, "
    "which is inf - inf if a group has no vCPU left. If no move is possible, REC fails; Algorithm 2 would "
    "take the minimum of an empty set. " + _SEARCH,
    knows=KNOWS,
    views=("plan", "place"),
)
class Tapra(PlanningPolicy):
    """Rounds the optimum of a linear relaxation, then reduces its energy and improves it by local search.

    This is the paper's main planner. Use it if the quality of a plan matters more than the time to find it:
    its plans are usually a little better than those of tapra-fast, but it solves linear programs. It needs
    the loads and efficiencies of all tasks.

    1. Solve the relaxation in which tasks can be divided among servers (SJS-Relax-LP), first with the 8 most
       efficient servers of each task, then with further ones as long as the dual prices say that these
       improve the optimum.
    2. Put every task on the server that has its largest part; ties go to the lowest server.
    3. REC: while the energy is above the cap, move one task to a server where it is more efficient, choosing
       the move after which the job takes the least time; ties go to the lowest task, then server.
    4. Apply the local search of tapra-fast: a task that takes as long as the job moves to the server where it
       is fastest, until no such move is possible.

    If no plan is found in this way, every task goes to its most efficient server. In view place the plan is
    made at the first task and then carried out.

    Complexity: linear programs of up to n M variables and n + R + 1 rows, solved by the dual simplex method
    (exponential at worst), and O(M (n + R)) for the dual prices of their variables; then O(n (R + M D)) for
    each move of REC and O(R + n M D) at worst for each of the search; n tasks, M servers, R groups of
    servers, D of them with a given server.
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
    """Puts every task on its most efficient server, then moves single tasks as long as the job gets shorter.

    This is the paper's fast planner, a local search that stays within the energy cap from the start. Use it
    if many plans are needed, as in the online problem: it is nearly as good as tapra and solves no linear
    program. It needs the loads and efficiencies of all tasks.

    1. Put every task on its most efficient server. By Eq. 16 group k of servers takes the time $T_k = sum_i
       A_jk Leq_i / B_k$ over its tasks i, where Leq_i = load / efficiency is the equivalent load of the task
       on its server j, a vCPU of this server counts $A_jk$ in the group (1 in a fat tree), and B_k is the
       limit of the group. A task takes as long as the slowest group of its server.
    2. Tasks on servers of a group without vCPU move first, each to the server where it is fastest within the
       energy cap.
    3. Of the tasks that take as long as the job, find the first (by index) that is faster on another server
       within the cap, and move it to the server where it is fastest.
    4. Repeat 3 until no such task can move; size the tasks by Eq. 16.

    If no plan is found in this way, every task goes to its most efficient server. In view place the plan is
    made at the first task and then carried out. In view search each decision is one move of 3.

    Complexity: O(n M + L (R + n D + B M D)) per plan for L moves, in each of which B tasks are tried (usually
    few, n at worst); n tasks, M servers, R groups of servers, D of them with a given server. L is not
    limited.
    """

    def __init__(self) -> None:
        super().__init__(Planner("tapra-fast"), ("plan", "place", "search"))
