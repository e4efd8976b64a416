"""Min-Min, MM-GA and GSA: what the paper compares TaPRA with."""

from typing import Any

from schedgym.baselines.single_job.policy import KNOWS, PlanningPolicy
from schedgym.core.policy import register_policy
from schedgym.solvers.planning import Planner

__all__ = ["GeneticAnnealing", "MinMin", "MinMinGenetic"]

VIEWS = ("plan", "place")  # by Eq. 16; by equal shares only plan

_SHARES = (
    "The paper does not say how its rivals size tasks; its numbers fit equal shares of every limit "
    "(allocation='equal-share'), not Eq. 16 ('optra')."
)
_GENETIC = _SHARES + (
    " Of the genetic algorithm the paper cites the idea only: a population of 30, 60 generations, "
    "tournaments of 2, one-point crossover with probability 0.8, every task reset with probability 0.02, the "
    "best 2 kept, REC on every placement."
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
    """Task by task the placement after which the job so far ends first, then less energy.

    1. Of all tasks not yet placed and all servers, take the pair after which the tasks placed so far complete
       first; ties: the time of the task itself, then the lowest task, then server. Repeat until all are
       placed.
    2. While the energy cap is exceeded, move a task to a server where it is more efficient, such that the job
       takes least (REC).
    3. Size the tasks.

    With "optra" times are those of Eq. 16; a task whose least time of an earlier round is too long already is
    not looked at again. Where this fails, every task goes to its most efficient server. The name
    min-min-equal sets ``allocation="equal-share"``.

    Complexity: O(n^2 M D) per plan, by equal shares O(n^2 M + n M D), then O(n (R + M D)) for each move of
    REC; n tasks, M servers, R groups of servers, D of them around a server.

    Args:
        allocation: "optra" or "equal-share": how candidates are evaluated and tasks sized.
    """

    def __init__(self, allocation: str = "optra") -> None:
        super().__init__(Planner("min-min", allocation), VIEWS)


@_rival("mm-ga", "MM-GA", _GENETIC)
class MinMinGenetic(PlanningPolicy):
    """A genetic algorithm with Min-Min in its first generation.

    1. The first generation is Min-Min's placement and random ones.
    2. Order by completion time and keep the best two. Make the other children of two parents each, the better
       of two random members: cross them at one point, mostly, and send a few tasks to random servers.
    3. Repair the child by REC and evaluate it.
    4. After all generations the best member is the plan.

    REC follows every change of a placement: while the energy cap is exceeded, a task moves to a server where
    it is more efficient, such that the job takes least. Where this fails, every task goes to its most
    efficient server. The name mm-ga-equal sets ``allocation="equal-share"``.

    Complexity: Min-Min's (see there), and O(G P (P + R + n D + V n (R + M D))) per plan for G generations of
    P members and V moves of REC per placement, of which random placements need many; n tasks, M servers, R
    groups of servers, D of them around a server.

    Args:
        allocation: "optra" or "equal-share": how candidates are evaluated and tasks sized.
        size: of the population.
        generations: number of generations.
    """

    def __init__(self, allocation: str = "optra", size: int = 30, generations: int = 60) -> None:
        super().__init__(Planner("mm-ga", allocation, size=size, generations=generations), VIEWS)


@_rival("gsa", "GSA", _GENETIC)
class GeneticAnnealing(PlanningPolicy):
    """A genetic algorithm whose children are improved by simulated annealing.

    Five steps per child; the temperature starts at a tenth of the best completion time and falls by 5% in
    each generation.

    1. The first generation is random.
    2. Order by completion time and keep the best two. Make the other children of two parents each, the better
       of two random members: cross them at one point, mostly, and send a few tasks to random servers.
    3. Repair the child by REC. Five times move a random task to a random server, repair, and accept that if
       it is no worse, or with probability exp(-difference / temperature).
    4. After all generations the best member is the plan.

    REC: while the energy cap is exceeded, a task moves to a server where it is more efficient, such that the
    job takes least. Where this fails, every task goes to its most efficient server. The name gsa-equal sets
    ``allocation="equal-share"``.

    Complexity: O(G P (P + 6 (R + n D + V n (R + M D)))) per plan for G generations of P members and V moves
    of REC per placement: six placements per child, where mm-ga has one; n tasks, M servers, R groups of
    servers, D of them around a server.

    Args:
        allocation: "optra" or "equal-share": how candidates are evaluated and tasks sized.
        size: of the population.
        generations: number of generations.
    """

    def __init__(self, allocation: str = "optra", size: int = 30, generations: int = 60) -> None:
        super().__init__(Planner("gsa", allocation, size=size, generations=generations), VIEWS)
