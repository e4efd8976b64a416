"""Min-Min, MM-GA and GSA: what the paper compares TaPRA with."""

from schedgym.baselines.single_job.policy import KNOWS, PlanningPolicy
from schedgym.baselines.solvers.planning import Planner
from schedgym.core.policy import register_policy

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


@register_policy(
    "single-job/min-min", source="paper 001, section 6.1", deviations=_SHARES, knows=KNOWS, views=VIEWS
)
@register_policy(
    "single-job/min-min-equal",
    source="paper 001, section 6.1",
    deviations=_SHARES,
    knows=KNOWS,
    views=("plan",),
    summary="Min-Min that splits every limit equally among the tasks.",
    allocation="equal-share",
)
class MinMin(PlanningPolicy):
    """Task by task the placement after which the job so far ends first, then less energy.

    Args:
        allocation: "optra" or "equal-share": how candidates are evaluated and tasks sized.
    """

    def __init__(self, allocation: str = "optra") -> None:
        super().__init__(Planner("min-min", allocation), VIEWS)


@register_policy(
    "single-job/mm-ga", source="paper 001, section 6.1", deviations=_GENETIC, knows=KNOWS, views=VIEWS
)
@register_policy(
    "single-job/mm-ga-equal",
    source="paper 001, section 6.1",
    deviations=_GENETIC,
    knows=KNOWS,
    views=("plan",),
    summary="MM-GA that splits every limit equally among the tasks.",
    allocation="equal-share",
)
class MinMinGenetic(PlanningPolicy):
    """A genetic algorithm with Min-Min in its first generation.

    Args:
        allocation: "optra" or "equal-share": how candidates are evaluated and tasks sized.
        size: of the population.
        generations: number of generations.
    """

    def __init__(self, allocation: str = "optra", size: int = 30, generations: int = 60) -> None:
        super().__init__(Planner("mm-ga", allocation, size=size, generations=generations), VIEWS)


@register_policy(
    "single-job/gsa", source="paper 001, section 6.1", deviations=_GENETIC, knows=KNOWS, views=VIEWS
)
@register_policy(
    "single-job/gsa-equal",
    source="paper 001, section 6.1",
    deviations=_GENETIC,
    knows=KNOWS,
    views=("plan",),
    summary="GSA that splits every limit equally among the tasks.",
    allocation="equal-share",
)
class GeneticAnnealing(PlanningPolicy):
    """A genetic algorithm whose children are improved by simulated annealing.

    Five steps per child; the temperature starts at a tenth of the best completion time and falls by 5% in
    each generation.

    Args:
        allocation: "optra" or "equal-share": how candidates are evaluated and tasks sized.
        size: of the population.
        generations: number of generations.
    """

    def __init__(self, allocation: str = "optra", size: int = 30, generations: int = 60) -> None:
        super().__init__(Planner("gsa", allocation, size=size, generations=generations), VIEWS)
