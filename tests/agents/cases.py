"""What the tests of agents share: every view that agents act in, random play, permutations of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import schedgym  # noqa: F401
from schedgym.agents.files import Agent, list_pretrained, load_agent
from schedgym.agents.scorer import Scorer, ScorerOptions, statistics_of
from schedgym.agents.views import Layout, make_layout
from schedgym.core.problem import get_problem
from schedgym.core.rollouts import scoring_of
from schedgym.core.tokens import tokens_of
from tests.long import WEEKLY, long
from tests.test_all_problems import IDS, small

#: every id with every view that agents act in
CASES = [(id, view) for id in IDS for view in tokens_of(id).views]
#: the views of each problem, in its first id; and those in which actions are choices
VIEWS = [case for case in CASES if case[0] == next(iter(get_problem(case[0]).ids))]
DISCRETE = [(id, view) for id, view in VIEWS if tokens_of(id).views[view].kind != "scores"]
#: those in which whole episodes are compiled
PLAYED = [(id, view) for id, view in CASES if view in scoring_of(id).played]
#: id -> the view of the agent that the package brings
SHIPPED = {id: str(load_agent(path).metadata["view"]) for id, path in list_pretrained().items()}
#: the ids whose kernels of whole episodes take long to compile
COMPILED_SLOWLY = tuple(
    f"schedgym/{name}-v0" for name in ("GeoAssign", "GeoFair", "ParallelJCT", "PartialValue")
)


def compiled(cases: Iterable[tuple[str, str]]) -> list[Any]:
    """Mark as long what compiles slowly; views of which no agent is shipped are left to .ci/checks."""
    return [
        pytest.param(id, view, marks=[long] if view != SHIPPED[id] or id in COMPILED_SLOWLY else [])
        for id, view in cases
        if view == SHIPPED[id] or WEEKLY
    ]


def vector(id: str, view: str, num_envs: int = 5, **extra: object) -> tuple[Any, Layout]:
    """A small vector environment, and the layout of its view."""
    if get_problem(id).name == "geo":  # where jobs seldom wait, nothing is decided
        extra = {"utilization": 3.0, **extra}
    parameters = small(id, view=view, observation="features", **extra)
    env: Any = gym.make_vec(id, num_envs=num_envs, autoreset_mode="SameStep", **parameters).unwrapped
    layout = make_layout(env.interface.problem, view, env.single_observation_space, env.single_action_space)
    return env, layout


def observations(env: Any, layout: Layout, count: int = 10, seed: int = 3) -> Iterator[dict[str, Any]]:
    """Batches of observations of random play."""
    observation, _ = env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield observation
        scores = rng.normal(size=(env.num_envs, layout.size))
        observation, *_ = env.step(layout.decode(scores, observation))


def fitted(env: Any, layout: Layout, **options: Any) -> tuple[Scorer, np.ndarray]:
    """A scorer with measured columns, and parameters that are all different."""
    plain = Scorer(layout, ScorerOptions.build(**{**options, "hidden": 0}))
    seen = [plain.inspect(o, plain.wanted(o)) for o in observations(env, layout, 40)]
    scorer = Scorer(layout, ScorerOptions.build(**options), statistics_of(seen))
    return scorer, np.random.default_rng(5).normal(size=scorer.size).astype(np.float32)


def agent_of(
    id: str, view: str, scorer: Scorer, theta: np.ndarray, parameters: dict[str, Any], **network: Any
) -> Agent:
    """An agent that nobody has trained: parameters of a scorer, and the least that metadata may say."""
    weights = {f"statistics/{name}": array for name, array in scorer.statistics.items()}
    metadata = {
        "id": id,
        "problem": get_problem(id).name,
        "view": view,
        "observation": "features",
        "parameters": parameters,
        "network": {"form": "scorer", **network},
        "config": {},
        "versions": {},
        "command": "none",
        "training": {},
    }
    return Agent({**weights, "theta": theta}, metadata, "", "drawn")


def permute(
    layout: Layout, observation: dict[str, Any], rng: np.random.Generator
) -> tuple[dict[str, Any], np.ndarray]:
    """The observation with its tokens in another order, and the order of scores that belongs to it.

    Sites and resources stay where they are unless they are scored: features of jobs refer to them by number.
    """
    scored = {sequence.key for segment in layout.segments for sequence in segment.tokens}
    orders, given = {}, dict(observation)
    for sequence in layout.context:
        count = given[sequence.key].shape[1]
        fixed = sequence.key in ("sites", "resources") and sequence.key not in scored
        order = orders[sequence.key] = np.arange(count) if fixed else rng.permutation(count)
        for name in (sequence.key, sequence.mask):
            if name is not None:
                given[name] = given[name][:, order]
    index, start = [], 0
    for segment in layout.segments:
        own = np.arange(start, start + segment.count)
        keys = [sequence.key for sequence in segment.tokens]
        if keys and (axes := segment.tokens[0].axes):
            rows, columns = given[keys[0]].shape[1:3]
            row = orders[axes[0]] if axes[0] else rng.permutation(rows)
            given[keys[0]] = given[keys[0]][:, row][:, :, orders[axes[1]]]
            own = own.reshape(rows, columns)[row][:, orders[axes[1]]].ravel()
        elif len(keys) == 2:
            rows, columns = (len(orders[key]) for key in keys)
            own = own.reshape(rows, columns)[orders[keys[0]]][:, orders[keys[1]]].ravel()
        elif keys:
            own = own[orders[keys[0]]]
        index.append(own)
        start += segment.count
    order = np.concatenate(index)
    mask = given.get("action_mask")
    if mask is not None and layout.kind == "choice":
        given["action_mask"] = mask[:, order]
    elif mask is not None and layout.kind == "pairs":
        task, server = (sequence.key for sequence in layout.segments[0].tokens)
        given["action_mask"] = mask[:, orders[task]][:, :, orders[server]]
    return given, order
