"""Compiled rollouts: columns against numpy, and episodes against the policy that is asked step by step."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from schedgym.agents.agent_policy import make_agent
from schedgym.agents.scorer import Scorer, ScorerOptions
from schedgym.agents.search import Rollouts
from schedgym.agents.simulation import play_scored
from schedgym.core import rollouts as core_rollouts
from schedgym.core.arrays import regrow
from schedgym.core.jit import pure_kernel
from schedgym.core.problem import get_problem
from schedgym.core.scorer import next_set
from schedgym.errors import InvalidParameter
from schedgym.evaluation.episodes import make_env, play
from schedgym.playing import steps
from tests.agents.cases import CASES, COMPILED_SLOWLY, PLAYED, SHIPPED, compiled, fitted, observations, vector
from tests.agents.columns import TokenRows
from tests.long import all_but, thinned
from tests.test_all_problems import IDS, small

next_of = pure_kernel(lambda mask, i, end: next_set(mask, i, end))
#: what a scorer may be made of, and how long the window is
FORMS = [({"hidden": 0, "context": "globals"}, "all"), ({"hidden": 2, "context": "pooled"}, 3)]


def parameters(id: str, view: str, window: Any) -> dict[str, Any]:
    """Those of a small environment, in which an untrained scorer does not go on for ever."""
    extra: dict[str, Any] = {"view": view, "observation": "features", "strict": True}
    names = {field.name for field in dataclasses.fields(get_problem(id).parameters)}
    if "window" in names:
        extra["window"] = window
    if get_problem(id).name == "flowtime":
        extra["gamma"] = 20.0
    if get_problem(id).name == "geo":  # where jobs seldom wait, nothing is decided
        extra["utilization"] = 3.0
    return small(id, **extra)


def prepared(
    id: str, view: str, count: int, window: Any = "all", **form: Any
) -> tuple[Rollouts, Scorer, np.ndarray]:
    """So many small environments, a scorer for them with measured columns, and its parameters."""
    rollouts = Rollouts(id, parameters(id, view, window), count)
    scorer, theta = fitted(*vector(id, view), **form)
    return rollouts, Scorer(rollouts.layout, scorer.options, scorer.statistics), theta


def outcome(rollouts: Rollouts) -> list[Any]:
    """The schedules of all environments."""
    simulator = rollouts.simulator
    records = (dataclasses.asdict(simulator.record(i)) for i in range(simulator.num_envs))
    return [{name: value for name, value in record.items() if name != "workload"} for record in records]


SITES = [
    ("schedgym/GeoAssign-v0", view, {"sites": n, "choices": 1})
    for view in ("priority", "pick")
    for n in (1, 2, 5)
]
NO_DRC = ("schedgym/ParallelJCT-v0", "pick", {"drc": False})


@pytest.mark.parametrize(
    ("id", "view", "extra"), [*((*case, {}) for case in CASES if "rule" not in case[1]), *SITES, NO_DRC]
)
def test_columns(id: str, view: str, extra: dict[str, Any]) -> None:
    env, layout = vector(id, view, **extra)
    scorer = Scorer(layout, ScorerOptions(context="none"))
    seen = 0
    for observation in observations(env, layout, 40):
        wanted = scorer.wanted(observation)
        found = scorer.inspect(observation, wanted)
        for index, (segment, here) in enumerate(zip(layout.segments, layout.places, strict=True)):
            env_of, slot = np.nonzero(wanted[:, here])
            if not segment.tokens or not len(env_of):
                continue
            rows = TokenRows(observation, segment.tokens, env_of, slot)
            columns = rows.columns(layout.problem, segment.columns)
            assert [name for name, _ in columns] == list(scorer.columns[index])
            for (name, expected), own in zip(columns, found[f"columns {index}"], strict=True):
                np.testing.assert_allclose(own, expected, rtol=2e-3, atol=2e-4, err_msg=name)
            seen += len(env_of)
    assert seen > 20


@pytest.mark.parametrize(("form", "window"), thinned(FORMS[::-1], of=2))
@pytest.mark.parametrize(("id", "view"), compiled(PLAYED))
def test_episodes_are_those_of_the_policy(id: str, view: str, form: dict[str, Any], window: Any) -> None:
    rollouts, scorer, _ = prepared(id, view, 8, window, **form)
    thetas = np.random.default_rng(3).normal(size=(4, scorer.size)).astype(np.float32)
    thetas[0] = 0.0  # all scores are equal
    assert scorer.plays
    compiled = rollouts.play(scorer, thetas, 5, 2)
    schedules, decisions = outcome(rollouts), rollouts.decisions
    asked: list[int] = []
    stepped = rollouts.play(scorer, thetas, 5, 2, lambda seen, wanted: asked.append(1))
    np.testing.assert_array_equal(compiled, stepped)
    assert asked and rollouts.decisions == 2 * decisions
    np.testing.assert_equal(outcome(rollouts), schedules)
    assert len(np.unique(compiled)) > 2


def test_a_pause_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel returns after so many decisions, so that a user can interrupt it."""
    values = []
    for most in (core_rollouts.MOST_DECISIONS, 7):
        monkeypatch.setattr(core_rollouts, "MOST_DECISIONS", most)
        rollouts, scorer, theta = prepared(*PLAYED[0], 3)
        played = rollouts.play(scorer, theta[np.newaxis], 5, 0)
        values.append((played, rollouts.decisions, outcome(rollouts)))
    assert values[0][1] > 3 * 7
    np.testing.assert_equal(values[0], values[1])


def test_some_views_are_not_compiled() -> None:
    """They are asked step by step: views that name a rule, and one whose numbers depend on one another."""
    left = {view for id, view in CASES if (id, view) not in PLAYED}
    assert left == {"rule", "fair-rule", "weights"}
    assert {id for id, _ in PLAYED} == set(IDS)


LOGGED = [id for id in IDS if get_problem(id).module("simulator").make_simulator.log]


@pytest.mark.parametrize("id", all_but(LOGGED, COMPILED_SLOWLY))
def test_the_log_grows(id: str) -> None:
    values, sizes = [], []
    for length in (None, 1):
        rollouts, scorer, theta = prepared(id, SHIPPED[id], 3)
        simulator = rollouts.simulator
        if length is not None:
            simulator.sizes[simulator.log] = length
            simulator.arrays = regrow(simulator.arrays, simulator.sizes, 3)
            simulator._bind()
        played = rollouts.play(scorer, theta[np.newaxis], 5, 0)
        values.append((played, rollouts.decisions, outcome(rollouts)))
        sizes.append(simulator.sizes[simulator.log])
    assert sizes[1] > 1
    np.testing.assert_equal(values[0], values[1])


def test_environments_that_do_not_play() -> None:
    rollouts, scorer, theta = prepared(*PLAYED[0], 3)
    found, _ = play_scored(rollouts.simulator, scorer, theta, 5, np.array([0, -1, 1]))
    assert np.isnan(found[1]).all() and not np.isnan(found[[0, 2]]).any()


@pytest.mark.parametrize("id", all_but(IDS, COMPILED_SLOWLY))
def test_evaluations_of_shipped_agents(id: str) -> None:
    agent = make_agent("pretrained", id)
    env = make_env(id, agent.acting_parameters(id, small(id)))
    whole = play(env, agent, seed=3, episode=1)
    record = env.record()
    assert agent.compiled_rollout is not None
    *_, last = played = list(steps(env, agent, seed=3, episode=1))
    assert (last.info["metrics"], last.truncated) == (whole.metrics, whole.truncated)
    assert sum(step.reward for step in played) == pytest.approx(whole.total, rel=1e-12)
    for name, value in vars(env.record()).items():
        if name != "workload":
            np.testing.assert_array_equal(value, getattr(record, name), err_msg=name)


def test_a_rollout_that_stops_early_is_no_episode() -> None:
    env = make_env(IDS[0], small(IDS[0]))
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="did not play the episode to its end"):
        env.finish(lambda simulator: 0.0)


def test_what_does_not_count_is_passed_over() -> None:
    for mask in (np.zeros(200), np.eye(200)[150], np.eye(200)[199], np.arange(200) % 3 == 0, np.ones(0)):
        for end in (0, 1, 63, 64, 151, 200, 230):
            found, i = [], -1
            while (i := next_of(mask.astype(np.int8), i + 1, end)) < end:
                found.append(i)
            whole = np.concatenate([mask, np.ones(230 - len(mask))])  # beyond the mask everything counts
            assert found == np.flatnonzero(whole[:end]).tolist()


def test_scores_that_are_no_numbers() -> None:
    rollouts, scorer, theta = prepared(*PLAYED[0], 2)
    with pytest.raises(InvalidParameter, match="scores are no numbers"):
        rollouts.play(scorer, np.full_like(theta[np.newaxis], np.nan), 5, 0)
