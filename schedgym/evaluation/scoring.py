"""The objective of a policy that is one expression: for programs that search expressions."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from schedgym.core.expression import SCORE
from schedgym.core.random import EVALUATION_SEEDS
from schedgym.core.score_policy import ScorePolicy
from schedgym.documents import check_whole
from schedgym.envs import SchedulingEnv
from schedgym.evaluation.episodes import make_env, play
from schedgym.evaluation.plan import resolve_id

__all__ = ["score"]


@functools.lru_cache(maxsize=4)
def _environment(id: str, parameters: str) -> SchedulingEnv:
    return make_env(id, json.loads(parameters))


def score(
    id: str,
    expression: str,
    *,
    episodes: int = 5,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
) -> float:
    """The mean objective of the policy that serves the jobs by an expression, the highest value first.

    It plays the episodes that :func:`schedgym.evaluate` plays with ``score: EXPRESSION``, to the same
    objective, but computes no bounds and checks no schedules, and keeps the environment for the next call.

    Args:
        id: environment id, or the problem's name.
        expression: arithmetic over the columns of jobs, see :class:`schedgym.core.score_policy.ScorePolicy`.
        episodes: number of episodes.
        seed: seed of the episodes.
        parameters: parameters of the environment.

    Returns:
        the mean of the metric that the rewards sum to, in its unit; the metric says whether less is better.

    Raises:
        UnknownName: for a name that is no column, or an unknown id.
        InvalidParameter: for what is no expression, or another argument that is wrong.
    """
    problem, id = resolve_id(id)
    check_whole(episodes, "episodes", 1, EVALUATION_SEEDS - 1)
    check_whole(seed, "seed", 0, EVALUATION_SEEDS - 1)
    policy = ScorePolicy(expression if expression.startswith(SCORE) else f"{SCORE} {expression}")
    used = policy.acting_parameters(id, parameters or {})
    env = _environment(id, json.dumps(used, sort_keys=True))
    name, total = problem.objective_of(env.simulator.parameters), 0.0
    for episode in range(episodes):
        outcome = play(env, policy, seed=seed, episode=episode, label=expression, check=False)
        total += outcome.metrics[name]
    return total / episodes
