"""Min-Min, MM-GA and GSA: the planners with which the paper compares TaPRA."""

from typing import Any

from schedgym.baselines.single_job.policy import KNOWS, PlanningPolicy
from schedgym.core.policy import register_policy
from schedgym.solvers.planning import Planner

VIEWS = ("plan", "place")  # by Eq. 16; by equal shares only plan

_SHARES = (
    "The paper says that these algorithms give tasks static resources (section 2), but not how much. With "
    "equal shares of every limit (allocation='equal-share') the planners rank as in the paper, with Eq. 16 "
    "('optra') they do not; its numbers fit neither well."
)
_GENETIC = _SHARES + (
    " The paper gives no parameters of the genetic algorithm. Here it has a population of 30, 60 "
    "generations, tournaments of 2, one-point crossover with probability 0.8, and mutation of each task with "
    "probability 0.02; the best 2 members are kept, and REC repairs every placement."
)


def _rival(name: str, title: str, deviations: str) -> Any:
    """Return a decorator that registers a rival twice: by Eq. 16, and with equal shares (``-equal``)."""

    def enter(policy: Any) -> Any:
        paper: dict[str, Any] = {"source": "shi2017, section 6.1", "deviations": deviations, "knows": KNOWS}
        summary = f"{title} that splits every limit equally among the tasks."
        equal: dict[str, Any] = {"views": ("plan",), "summary": summary, "allocation": "equal-share"}
        register_policy(f"single-job/{name}", **paper, views=VIEWS)(policy)
        register_policy(f"single-job/{name}-equal", **paper, **equal)(policy)
        return policy

    return enter


@_rival("min-min", "Min-Min", _SHARES)
class MinMin(PlanningPolicy):
    """Places one task after another so that the placed tasks complete soonest, then reduces the energy.

    Min-Min is the classical greedy heuristic for independent tasks. Use it as a baseline, or as a start for
    other searches. It is fast, but considers the energy cap only at the end. It needs the loads and
    efficiencies of all tasks.

    1. Of all pairs of an unplaced task and a server, choose the one after which the placed tasks complete
       soonest; ties: the shorter time of the task, then the lowest task, then the lowest server. Repeat until
       all tasks are placed.
    2. While the energy is above the cap, move one task to a server where it is more efficient, choosing the
       move after which the job takes the least time (REC).
    3. Size the tasks.

    With "optra" times are those of Eq. 16. As times never fall, tasks whose least time in an earlier round
    was too long are skipped. If no plan is found in this way, every task goes to its most efficient server.
    The name min-min-equal sets ``allocation="equal-share"``.

    Complexity: O(n^2 M D) per plan, by equal shares O(n^2 M + n M D), then O(n (R + M D)) for each move of
    REC; n tasks, M servers, R groups of servers, D of them with a given server.

    Args:
        allocation: "optra" (Eq. 16) or "equal-share": the sizes by which placements are evaluated.
    """

    def __init__(self, allocation: str = "optra") -> None:
        super().__init__(Planner("min-min", allocation), VIEWS)


@_rival("mm-ga", "MM-GA", _GENETIC)
class MinMinGenetic(PlanningPolicy):
    """Improves Min-Min's placement by a genetic algorithm.

    The search keeps a population of placements, one of which is that of Min-Min, and recombines the better
    ones. Use it if planning may take long: it evaluates thousands of placements, and its result is never
    worse than that of min-min. It needs the loads and efficiencies of all tasks.

    1. The first generation is Min-Min's placement and random ones.
    2. Order the members by completion time and keep the best two. Make each other child from two parents,
       each the better of two random members: apply one-point crossover with probability 0.8, and move each
       task to a random server with probability 0.02.
    3. Repair the child by REC and evaluate it.
    4. After all generations the best member is the plan.

    REC follows every change of a placement: while the energy is above the cap, one task moves to a server
    where it is more efficient; the move after which the job takes the least time is chosen. If no plan is
    found in this way, every task goes to its most efficient server. The name mm-ga-equal sets
    ``allocation="equal-share"``.

    Complexity: Min-Min's (see there), and O(G P (P + R + n D + V n (R + M D))) per plan for G generations of
    P members and V moves of REC per placement (many for random placements); n tasks, M servers, R groups of
    servers, D of them with a given server.

    Args:
        allocation: "optra" (Eq. 16) or "equal-share": the sizes by which placements are evaluated.
        size: number of members of the population.
        generations: number of generations.
    """

    def __init__(self, allocation: str = "optra", size: int = 30, generations: int = 60) -> None:
        super().__init__(Planner("mm-ga", allocation, size=size, generations=generations), VIEWS)


@_rival("gsa", "GSA", _GENETIC)
class GeneticAnnealing(PlanningPolicy):
    """Searches for a placement by a genetic algorithm that improves each child by simulated annealing.

    With the annealing steps a child can leave a local optimum before it is compared with others. Use it if
    planning may take long: it evaluates six placements for each child, mm-ga only one. It needs the loads and
    efficiencies of all tasks.

    1. The first generation is random.
    2. Order the members by completion time and keep the best two. Make each other child from two parents,
       each the better of two random members: apply one-point crossover with probability 0.8, and move each
       task to a random server with probability 0.02.
    3. Repair the child by REC. Then five times move a random task to a random server and repair. If the
       completion time changes by $delta <= 0$, accept the move, else accept it with probability $exp(-delta /
       T)$. The temperature T starts at a tenth of the best completion time and falls by 5% in each
       generation.
    4. After all generations the best member is the plan.

    REC: while the energy is above the cap, one task moves to a server where it is more efficient; the move
    after which the job takes the least time is chosen. If no plan is found in this way, every task goes to
    its most efficient server. The name gsa-equal sets ``allocation="equal-share"``.

    Complexity: O(G P (P + 6 (R + n D + V n (R + M D)))) per plan for G generations of P members and V moves
    of REC per placement; n tasks, M servers, R groups of servers, D of them with a given server.

    Args:
        allocation: "optra" (Eq. 16) or "equal-share": the sizes by which placements are evaluated.
        size: number of members of the population.
        generations: number of generations.
    """

    def __init__(self, allocation: str = "optra", size: int = 30, generations: int = 60) -> None:
        super().__init__(Planner("gsa", allocation, size=size, generations=generations), VIEWS)
