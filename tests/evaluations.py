"""Results of an evaluation, made up for tests of what is made of them."""

from schedgym.core.problem import get_problem
from schedgym.evaluation.comparison import Evaluation


def evaluation_of(frame, id="schedgym/QueueDelay-v0", metric="mean_delay", **more):
    """An evaluation with these rows, of seed 0."""
    problem = get_problem(id)
    return Evaluation(problem, id, problem.metric(metric), frame.assign(seed=0), **more)
