"""Compiling ahead of time: the kernels of environments, of their baselines and agents, by all cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from schedgym.agents.agent_policy import make_agent
from schedgym.agents.files import list_pretrained
from schedgym.core.arrays import STATIC
from schedgym.core.compilation import COMPILATION
from schedgym.core.problem import list_problems
from schedgym.evaluation.engines import Failure, count_processes, make_engine
from schedgym.evaluation.episodes import make_env
from schedgym.evaluation.plan import resolve_id
from schedgym.evaluation.runner import evaluate
from schedgym.testing import sample_action


def warm_up(*names: str, n_jobs: int = -1) -> Iterator[tuple[str, float]]:
    """Compile the kernels of environments in all their views, of their default policies and shipped agents.

    Presets with another number of resources have kernels of their own, which are compiled, too. The machine
    code is cached on disk, so the first step of later processes does not wait for it.

    Args:
        names: environment ids, as for :func:`~schedgym.evaluation.runner.evaluate`; all ids if none is given.
        n_jobs: number of processes; -1: one per core.

    Yields:
        each id, when it is ready, with the seconds for which its process compiled.

    Raises:
        UnknownName, InvalidParameter: for an id that does not exist or is ambiguous.
    """
    every = [id for problem in list_problems().values() for id in problem.ids]
    ids: Sequence[str] = [resolve_id(name)[1] for name in names] or every
    engine = make_engine("local", min(count_processes(n_jobs), len(ids)))
    for id, seconds in engine.run(_compile, ids):
        if isinstance(seconds, Failure):
            seconds.reraise()
        yield id, seconds


def _compile(id: str) -> float:
    """Compile what an id needs, for each number of resources that its presets have."""
    before, problem = COMPILATION.seconds, resolve_id(id)[0]
    small = problem.presets["small"]
    compiled: list[dict[str, int]] = []
    for preset in (small, *problem.presets.values()):
        parameters = {**preset, **small}
        sizes = make_env(id, parameters).simulator.sizes
        static = {name: size for name, size in sizes.items() if name.startswith(STATIC)}
        if static not in compiled:
            compiled.append(static)
            _compile_small(id, parameters)
    return COMPILATION.seconds - before


def _compile_small(id: str, small: Mapping[str, Any]) -> None:
    """Take a step in each view; run the default policies and the agent for a short episode."""
    for view in resolve_id(id)[0].views:
        env = make_env(id, {**small, "view": view.name})
        observation, _ = env.reset(seed=0)
        env.step(sample_action(env.action_space, observation, np.random.default_rng(0)))
    evaluate(id, None, 1, parameters=small, progress=False)
    if id in list_pretrained():
        agent = make_agent("pretrained", id)
        evaluate(id, {"agent": agent}, 1, parameters=small, progress=False)
        env = make_env(id, agent.acting_parameters(id, small))
        observation, _ = env.reset(seed=0)
        agent.reset(env.interface, np.random.default_rng(0))
        agent(observation)  # another kernel than the one that plays whole episodes
