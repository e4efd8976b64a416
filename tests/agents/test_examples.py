"""The examples of other libraries run, and what they train gets better."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled

from schedgym.agents.examples import tree_search
from schedgym.agents.simulation import held_out
from schedgym.core.score_policy import ScorePolicy
from schedgym.errors import InvalidParameter
from tests.lazy import Lazy
from tests.long import long
from tests.tables import table

torch = Lazy("torch")
cleanrl_ppo = Lazy("schedgym.agents.examples.cleanrl_ppo", "torch")
evolve = Lazy("schedgym.agents.examples.evolve", "deap")
rllib_ppo = Lazy("schedgym.agents.examples.rllib_ppo", "torch")

HELD_OUT = 2**20  # seed of episodes that are not trained on


def mean_delay(act) -> float:
    rows = held_out(cleanrl_ppo.ID, act, 100, HELD_OUT, parameters=cleanrl_ppo.PARAMETERS)
    return float(np.mean([row["mean_delay"] for row in rows]))


def test_the_committed_tree_searches_are_of_the_instances_of_today() -> None:
    """`python -m schedgym.agents.examples.tree_search --json FILE` must be run again when these change."""
    files = (Path(__file__).resolve().parents[2] / "docs" / "tree_search").glob("*.json")
    tried = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    assert {one["id"]: one["parameters"] for one in tried} == tree_search.PARAMETERS


@long
def test_a_tree_search_that_knows_the_future_beats_the_agent(capsys, monkeypatch, tmp_path) -> None:
    """The same command twice gives the same; every simulation starts from the state that it left."""
    small = {"tasks": 12, "servers": 2, "window": 8}
    monkeypatch.setitem(tree_search.PARAMETERS, "schedgym/QueueDelay-v0", small)
    command = ["--simulations", "16", "--episodes", "2"]
    found = tree_search.main(command)
    assert found == tree_search.main([*command, "--json", str(tmp_path / "found.json")])
    kept = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert kept["objectives"] == found and kept["parameters"] == small
    assert sum(found["16 simulations, clairvoyant"]) < sum(found["agent"])
    assert capsys.readouterr().out.count("16 simulations, resampled") == 2


@long
def test_cleanrl_learns() -> None:
    """Its tasks wait less than at random; that nothing infeasible is done, the strict environments see to."""
    told: list[str] = []
    agent, delays = cleanrl_ppo.main(steps=6144, seed=1, report=told.append)
    assert told and len(delays) > 40
    rng = np.random.default_rng(0)

    def at_random(observation):
        scores = rng.random(observation["action_mask"].shape)
        return np.where(observation["action_mask"] != 0, scores, -1.0).argmax(axis=-1)

    assert mean_delay(agent.act) < 0.8 * mean_delay(at_random)
    again, _ = cleanrl_ppo.main(steps=1024, seed=1, report=None)
    twice, _ = cleanrl_ppo.main(steps=1024, seed=1, report=None)
    for one, other in zip(again.parameters(), twice.parameters(), strict=True):
        assert torch.equal(one, other)


def test_cleanrl_needs_an_update() -> None:
    with pytest.raises(InvalidParameter, match="at least 1024, got 1000"):
        cleanrl_ppo.main(steps=1000)


def test_cleanrl_scores_tasks_in_any_order() -> None:
    env = cleanrl_ppo.gym.make(cleanrl_ppo.ID, **cleanrl_ppo.PARAMETERS)
    agent = cleanrl_ppo.Agent(env.observation_space)
    observation, _ = env.reset(seed=3)
    window = len(observation["tasks"])
    rng = np.random.default_rng(0)
    observation["tasks"] = rng.random((window, 5)).astype(np.float32)
    observation["task_mask"][:] = np.arange(window) < 5
    observation["action_mask"][:] = 1
    order = rng.permutation(window)
    permuted = {name: array.copy() for name, array in observation.items()}
    for name in ("tasks", "task_mask"):
        permuted[name] = observation[name][order]
    with torch.no_grad():
        (scores, value), (other, same) = (
            agent(cleanrl_ppo.tensors({name: array[None] for name, array in one.items()}))
            for one in (observation, permuted)
        )
    assert scores.std() > 1e-4
    assert torch.allclose(other[0], scores[0, [*order, window]], atol=1e-5)
    assert torch.allclose(value, same, atol=1e-5)


def test_rllib_trains_with_masks() -> None:
    pytest.importorskip(
        "ray.rllib",
        reason="needs ray[rllib], which pins another gymnasium than the tested one",
        exc_type=ImportError,
    )
    parameters = {"tasks": 30, "servers": 3, "window": 8, "strict": True}
    returns = rllib_ppo.main(iterations=3, parameters=parameters, report=None)
    assert len(returns) == 3 and np.isfinite(returns).all() and max(returns) < 0.0


def test_rllib_of_views_that_it_cannot_act_in() -> None:
    with pytest.raises(InvalidParameter, match="'priority' has no Discrete actions; those that have: pick"):
        rllib_ppo.configuration("schedgym/FlowtimePacking-v0", {"view": "priority"})


def test_rllib_without_ray_says_what_to_install(monkeypatch) -> None:
    rllib_ppo.token_module.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "ray"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DependencyNotInstalled, match=r"schedgym\[rllib\]"):
        rllib_ppo.configuration("schedgym/QueueDelay-v0", {"view": "pick"})


def test_rllib_with_ray_alone_says_what_to_install(monkeypatch) -> None:
    def broken(module: str, extra: str) -> None:
        raise ModuleNotFoundError("No module named 'tree'", name="tree")

    monkeypatch.setattr(rllib_ppo, "require", broken)
    with pytest.raises(DependencyNotInstalled, match=r"^tree, .*schedgym\[rllib\]"):
        rllib_ppo.configuration("schedgym/QueueDelay-v0", {"view": "pick"})


@pytest.mark.parametrize("num_envs", [None, 3])
def test_rllib_makes_what_is_registered(num_envs: int | None) -> None:
    context = {"id": "schedgym/QueueDelay-v0", "view": "pick", "tasks": 8}
    env = rllib_ppo.make_env(context if num_envs is None else context | {"num_envs": num_envs})
    assert getattr(env, "num_envs", None) == num_envs
    assert "id" in context, "what is given must stay as it is"
    assert env.unwrapped.interface.view == "pick"


def test_genetic_programming_finds_a_better_expression(capsys) -> None:
    """The same seed finds the same; what is printed is a command that scores it."""
    command = ["--suite", "QueueDelay-1", "--sizes", "small", "--instances", "2", "--seconds", "0.01"]
    text = evolve.main(command)
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == f'schedgym board run "score: {text}" --suite QueueDelay-1'
    assert ScorePolicy(f"score: {text}").expression.names
    assert float(printed[0].split()[2]) > 0  # of 60 at random, one beats the paper's algorithm


def test_expressions_have_columns_of_every_size() -> None:
    """Else a program that is good in training is refused in the size that it was not trained in."""
    names = evolve.columns_of("FlowtimePacking-1")  # five servers at the paper's size, ten at others
    assert "held_4" in names and "held_5" not in names


@pytest.mark.parametrize(("arguments", "message"), table(__file__, "test_a_mistake_in_a_search_is_one_line"))
def test_a_mistake_in_a_search_is_one_line(arguments, message, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        evolve.main(arguments)
    told = capsys.readouterr().err
    assert ended.value.code == 2 and re.match(f"error: {message}", told) and told.count("\n") == 1
