"""Types and shapes of observations are those of their spaces, in every id, view, choice and batch."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from schedgym.core.problem import get_problem
from schedgym.errors import InvalidAction, InvalidParameter
from schedgym.evaluation.episodes import lower_bound
from schedgym.testing import all_views, sample_action
from tests.long import some
from tests.playing import play
from tests.tables import table
from tests.test_all_problems import CASES, IDS, short, small


def choices(id: str) -> Iterator[dict[str, Any]]:
    """Each choice of each parameter, in each view, where they go together."""
    problem = get_problem(id)
    for field in dataclasses.fields(problem.parameters):
        for choice in field.metadata.get("choices") or ():
            for view in all_views(problem) if field.name not in ("view", "observation") else [{}]:
                yield {**view, field.name: choice}
        if problem.parameters.kinds()[field.name] is bool:
            yield from ({**view, field.name: not field.default} for view in all_views(problem))


def differing(space: spaces.Dict, observation: dict[str, Any]) -> list[str]:
    """What of an observation is not of its space's type and shape."""
    found = [f"keys {space.keys() ^ observation.keys()}"] if space.keys() != observation.keys() else []
    for name, part in space.items():
        shown = observation[name]
        if shown.dtype != part.dtype or shown.shape != (part.shape or ()):
            found.append(f"{name}: {shown.dtype}{shown.shape}, and in the space {part.dtype}{part.shape}")
    return found


@pytest.mark.parametrize("id", some(IDS))
def test_observations_have_the_types_of_their_spaces(id: str) -> None:
    made, keys, page = 0, set(), ""
    for given in choices(id):
        try:
            envs: Any = gym.make_vec(id, num_envs=2, **small(id, **given))
        except InvalidParameter:
            continue  # a choice that goes with others only
        made += 1
        buffers = envs.simulator.observation
        assert not differing(envs.observation_space, buffers), given
        one = {name: buffer[0] for name, buffer in buffers.items()}
        assert not differing(envs.single_observation_space, one), given
        if envs.interface.observation == "dict":
            keys, page = keys | buffers.keys(), envs.env_class.__doc__
    assert made > 3
    described = set(re.findall(r"^ *\| `(\w+)` \| [(D]", page, re.MULTILINE))
    rare = {"latency", "least_work", "power"}  # which no single choice shows
    assert described - rare == keys - rare or (not described and "GeoFair" in id)


def forms(id: str) -> Iterator[dict[str, Any]]:
    """Every combination of what an observation's form depends on, except the view."""
    fields = get_problem(id).parameters.__dataclass_fields__
    axes: dict[str, tuple[Any, ...]] = {
        **{"window": (1, 3, "all"), "running_window": (1, "all"), "clairvoyant": (False, True)},
        **{"kind": ("1d", "2d", "mapreduce"), "model": ("continuous", "discrete"), "single": (False, True)},
    }
    shaping = {name: choices for name, choices in axes.items() if name in fields}
    for chosen in itertools.product(*shaping.values()):
        yield dict(zip(shaping, chosen, strict=True))


@pytest.mark.parametrize(("id", "view"), some(CASES, of=3))
def test_observations_lie_in_their_spaces(id: str, view: dict[str, Any]) -> None:
    """As they are handed out, of one environment and of a batch."""
    made, rng = 0, np.random.default_rng(0)
    for form in forms(id):
        given = short(id, **{**view, **form})
        try:
            envs: Any = gym.make_vec(id, num_envs=2, **given)
        except InvalidParameter:
            continue  # no view prices of whole tasks
        env: Any = gym.make(id, disable_env_checker=True, **given)
        shown, single = envs.reset(seed=0)[0], env.reset(seed=0)[0]
        for _ in range(4):
            for space, observation in ((envs.observation_space, shown), (env.observation_space, single)):
                assert not differing(space, observation), form
                assert space.contains(observation), form
            rows = [{name: array[i] for name, array in shown.items()} for i in range(2)]
            actions = [sample_action(envs.single_action_space, row, rng) for row in rows]
            shown = envs.step(np.array(actions, dtype=envs.single_action_space.dtype))[0]
            single, _, terminated, truncated, _ = env.step(actions[0])
            if terminated or truncated:
                single, _ = env.reset()
        made += 1
    assert made


@pytest.mark.parametrize(("id", "given", "sections"), table(__file__, "test_extremes"))
def test_extremes(id: str, given: dict[str, Any], sections: dict[str, Any] | None) -> None:
    """The latest jobs, the longest, the least: observations lie in their spaces, all else is finite."""
    problem, rng = get_problem(id), np.random.default_rng(0)
    env: Any = gym.make(id, disable_env_checker=True, **given).unwrapped

    def act(observation: Any) -> Any:
        assert env.observation_space.contains(observation)
        return sample_action(env.action_space, observation, rng)

    workload = None if sections is None else problem.schema.parse(sections)
    metrics, rewards, record = play(env, act, workload=workload)
    assert record.final_time > record.workload.jobs.get("arrival", [-1.0])[-1]
    assert np.isfinite([*rewards, *metrics.values()]).all()
    lower_bound(problem, record.workload, env.simulator.parameters)


@pytest.mark.parametrize("name", ["seed", "episode", "action"])
def test_a_time_is_no_number(name: str) -> None:
    value = np.timedelta64(1, "s")
    env = gym.make(IDS[0], disable_env_checker=True, view="pick")
    env.reset(seed=0)
    with pytest.raises((InvalidAction, InvalidParameter), match=rf"{name}:? (must|.*timedelta)"):
        if name == "action":
            env.step(value)
        env.reset(**({"seed": value} if name == "seed" else {"options": {"episode": value}}))
