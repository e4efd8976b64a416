"""Min-Min, MM-GA and GSA: the planners with which the paper compares TaPRA."""

from typing import Any

from schedgym.baselines.single_job.policy import KNOWS, PlanningPolicy
from schedgym.core.policy import register_policy
from schedgym.solvers.planning import Planner

__all__ = ["GeneticAnnealing", "MinMin", "MinMinGenetic"]

VIEWS = ("plan", "place")  # by Eq. 16; by equal shares only plan

_SHARES = (
    "The paper calls the resources that its rivals give to a task static (section 2), without a size. Its "
    "order of planners holds with equal shares of every limit (allocation='equal-share'), not with Eq. 16 "
    "('optra'); its numbers fit neither well."
)
_GENETIC = _SHARES + (
    " The paper cites only the idea of the genetic algorithm; here it has a population of 30, 60 "
    "generations, tournaments of 2, one-point crossover with probability 0.8, every task reset with "
    "probability 0.02, the best 2 kept, REC on every placement."
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
    """Places task by task where the tasks placed so far complete first, then reduces the energy to the cap.

    Min-Min is the classical greedy heuristic for independent tasks. Use it as a baseline, or as a start for
    other searches: it is cheap, but looks at the energy cap only at the end. It needs the loads and
    efficiencies of all tasks.

    1. Of all tasks not yet placed and all servers, take the pair after which the tasks placed so far complete
       first; ties: the time of the task itself, then the lowest task, then server. Repeat until all are
       placed.
    2. While the energy cap is exceeded, move a task to a server where it is more efficient, such that the job
       takes least time (REC).
    3. Size the tasks.

    With "optra" times are those of Eq. 16; a task whose least time of an earlier round is too long already is
    not looked at again. If no plan is found in this way, every task goes to its most efficient server. The
    name min-min-equal sets ``allocation="equal-share"``.

    Complexity: O(n^2 M D) per plan, by equal shares O(n^2 M + n M D), then O(n (R + M D)) for each move of
    REC; n tasks, M servers, R groups of servers, D of them around a server.

    Args:
        allocation: "optra" or "equal-share": how candidates are evaluated and tasks sized.
    """

    def __init__(self, allocation: str = "optra") -> None:
        super().__init__(Planner("min-min", allocation), VIEWS)


@_rival("mm-ga", "MM-GA", _GENETIC)
class MinMinGenetic(PlanningPolicy):
    """Improves Min-Min's placement by a genetic algorithm.

    The search keeps a population of placements, of which Min-Min's is one, and recombines the better ones.
    Use it where a plan may cost much time: thousands of placements are evaluated, and its result is never
    worse than that of min-min. It needs the loads and efficiencies of all tasks.

    1. The first generation is Min-Min's placement and random ones.
    2. Order the members by completion time and keep the best two. Make each other child from two parents,
       each the better of two random members: cross them at one point, mostly, and send a few tasks to random
       servers.
    3. Repair the child by REC and evaluate it.
    4. After all generations the best member is the plan.

    REC follows every change of a placement: while the energy cap is exceeded, a task moves to a server where
    it is more efficient, such that the job takes least time. If no plan is found in this way, every task goes
    to its most efficient server. The name mm-ga-equal sets ``allocation="equal-share"``.

    Complexity: Min-Min's (see there), and O(G P (P + R + n D + V n (R + M D))) per plan for G generations of
    P members and V moves of REC per placement, of which random placements need many; n tasks, M servers, R
    groups of servers, D of them around a server.

    Args:
        allocation: "optra" or "equal-share": how candidates are evaluated and tasks sized.
        size: number of members of the population.
        generations: number of generations.
    """

    def __init__(self, allocation: str = "optra", size: int = 30, generations: int = 60) -> None:
        super().__init__(Planner("mm-ga", allocation, size=size, generations=generations), VIEWS)


@_rival("gsa", "GSA", _GENETIC)
class GeneticAnnealing(PlanningPolicy):
    """Searches by a genetic algorithm whose children are improved by simulated annealing.

    The annealing steps let a child leave a local optimum before it competes. Use it where a plan may cost
    much time: it evaluates six placements per child where mm-ga evaluates one. It needs the loads and
    efficiencies of all tasks.

    1. The first generation is random.
    2. Order the members by completion time and keep the best two. Make each other child from two parents,
       each the better of two random members: cross them at one point, mostly, and send a few tasks to random
       servers.
    3. Repair the child by REC. Five times move a random task to a random server, repair, and accept that if
       the completion time grows by $delta <= 0$, or else with probability $exp(-delta / T)$. The temperature
       T starts at a tenth of the best completion time and falls by 5% in each generation.
    4. After all generations the best member is the plan.

    REC: while the energy cap is exceeded, a task moves to a server where it is more efficient, such that the
    job takes least time. If no plan is found in this way, every task goes to its most efficient server. The
    name gsa-equal sets ``allocation="equal-share"``.

    Complexity: O(G P (P + 6 (R + n D + V n (R + M D)))) per plan for G generations of P members and V moves
    of REC per placement; n tasks, M servers, R groups of servers, D of them around a server.

    Args:
        allocation: "optra" or "equal-share": how candidates are evaluated and tasks sized.
        size: number of members of the population.
        generations: number of generations.
    """

    def __init__(self, allocation: str = "optra", size: int = 30, generations: int = 60) -> None:
        super().__init__(Planner("gsa", allocation, size=size, generations=generations), VIEWS)
