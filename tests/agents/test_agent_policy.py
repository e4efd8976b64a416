"""Agents as policies: their actions, what they act from, and evaluations in which nothing but they differ."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from schedgym.agents.agent_policy import OWN, AgentPolicy, make_agent
from schedgym.agents.files import (
    Agent,
    InvalidAgentFile,
    list_pretrained,
    load_agent,
    load_pretrained,
    save_agent,
)
from schedgym.agents.network import initial
from schedgym.agents.search import TRAINING_SEEDS
from schedgym.core.problem import get_problem, list_problems
from schedgym.core.tokens import tokens_of
from schedgym.errors import InvalidParameter, SchedgymError, UnknownName
from schedgym.evaluation import sweeps
from schedgym.evaluation.episodes import make_env
from schedgym.evaluation.runner import compare, evaluate
from tests.agents.cases import CASES, COMPILED_SLOWLY, SHIPPED, agent_of, fitted, vector
from tests.long import long, some
from tests.tables import table
from tests.test_all_problems import IDS, small

ID = "schedgym/QueueDelay-v0"


def make(id: str, view: str, seed: int = 0, **parameters: Any) -> Agent:
    """An agent that nobody has trained: its parameters are drawn."""
    env, layout = vector(id, view)
    scorer, _ = fitted(env, layout, hidden=2, context="pooled")
    theta = np.random.default_rng(seed).normal(size=scorer.size).astype(np.float32)
    network = {"hidden": 2, "context": "pooled", "inputs": scorer.inputs}
    return agent_of(id, view, scorer, theta, small(id, **parameters), **network)


def changed(agent: Agent, weights: dict[str, Any] | None = None, **network: Any) -> Agent:
    data = copy.deepcopy(agent.metadata)
    data["network"] |= network
    return dataclasses.replace(agent, metadata=data, weights={**agent.weights, **(weights or {})})


def play(env: Any, policy: AgentPolicy, most: int | None = None, **reset: Any) -> list[Any]:
    """The actions of an episode, or the first ones of it."""
    observation, _ = env.reset(**reset)
    policy.reset(env.unwrapped.interface, np.random.default_rng(0))
    actions, done = [], False
    while not done and len(actions) != most:
        before = copy.deepcopy(observation)
        action = policy(observation)
        assert all(np.array_equal(observation[name], before[name]) for name in before)
        assert np.shape(action) == env.action_space.shape
        assert env.action_space.contains(
            action if np.shape(action) == () else np.asarray(action, dtype=env.action_space.dtype)
        )
        actions.append(np.array(action))
        observation, _, terminated, truncated, info = env.step(action)
        done = terminated or truncated
    assert not done or info["metrics"]["repaired"] == 0
    return actions


#: the views of the agents that the package brings, then the others
SHIPPED_FIRST = sorted(CASES, key=lambda case: SHIPPED[case[0]] != case[1])


def same(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(map(np.array_equal, first, second))


@pytest.mark.parametrize(("id", "view"), some(SHIPPED_FIRST, keep=3, late=6))
def test_actions(id: str, view: str, tmp_path: Path) -> None:
    """Open ones only; the same at first from its file, unpickled, after other episodes."""
    agent = make(id, view, strict=True)
    env = gym.make(id, disable_env_checker=True, **agent.environment)
    policy = AgentPolicy(agent)
    first, second = (play(env, policy, seed=seed) for seed in range(2))
    save_agent(tmp_path / "agent.npz", agent.weights, agent.metadata)
    loaded = make_agent(tmp_path / "agent.npz", id)
    assert same(play(env, loaded, 60, seed=0), first[:60])
    assert same(play(env, pickle.loads(pickle.dumps(loaded)), 60, seed=1), second[:60])
    assert same(play(env, policy, 60, seed=0), first[:60])
    zero_copy = gym.make(id, disable_env_checker=True, copy=False, **agent.environment)
    assert same(play(zero_copy, policy, 60, seed=0), first[:60])


def test_one_agent_in_environments_of_other_sizes() -> None:
    policy = AgentPolicy(make(ID, "placement"))
    for servers, window in ((3, 4), (5, 4), (2, 7), (3, 4)):
        values = {**policy.environment, "servers": servers, "window": window, "arrival_rate": 99.0}
        actions = play(gym.make(ID, disable_env_checker=True, **values), policy, seed=0)
        used = {int(server) for _, server in actions}
        assert len(used) > 1 and used <= set(range(servers))


STRANGE: list[Any] = [
    *("flowtime", "partial-value", "", None, 0, -1, 1.5, 10**30, True, [], [1], {}, {"a": 1}, "x" * 10**5),
    *({"hidden": 10**9}, {"form": "tokens", "width": 10**9}, {"seed": []}, {"trace": "/etc/passwd"}),
]


@pytest.mark.parametrize(
    "name", ["id", "problem", "view", "observation", "parameters", "network", "training"]
)
def test_forged_metadata_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    """With a checksum that fits: an agent acts, or is refused; the environment that it acts in counts."""
    shipped = load_agent(list_pretrained()[ID])
    acted = refused = 0
    own = shipped.metadata[name]
    for value in STRANGE:
        both = {**own, **value} if isinstance(own, dict) and isinstance(value, dict) else value
        path = tmp_path / "forged.npz"
        try:
            save_agent(path, shipped.weights, {**shipped.metadata, name: both})
            policy = make_agent(path, ID)
            spec = {"name": "x", "experiments": [{"id": ID, "policies": [], "agents": {"x": [str(path)]}}]}
            sweeps._agents(sweeps.make_spec(spec).experiments[0], ID)
            evaluate(ID, {"agent": policy}, 1, parameters={"tasks": 5, "servers": 2})
            acted += 1
        except SchedgymError as error:
            assert "\n" not in str(error) and len(str(error)) < 2000
            refused += 1
    assert refused and acted + refused == len(STRANGE)
    assert not acted or name in ("parameters", "network", "training")


def test_parameters_of_acting_are_no_part_of_the_problem() -> None:
    """Whatever they are, (seed, episode) draws the same jobs, with the same bound on the optimum."""
    for problem in list_problems().values():
        fields = {field.name: field for field in dataclasses.fields(problem.parameters)}
        for id in problem.ids:
            values = small(id, **problem.ids[id].baseline_parameters)
            values.pop("view", None)
            for name in (*tokens_of(id).acting, *OWN):
                # no effect elsewhere
                given = values | ({"model": "discrete"} if name == "single_task" else {})
                if views := fields[name].metadata["views"]:
                    given = {**given, "view": views[0]}
                usual = make_env(id, given)
                usual.reset(seed=5, options={"episode": 2})
                kind = problem.parameters.kinds()[name]
                others: list[Any] = [
                    view.name for view in problem.views
                ] if name == "view" else list(fields[name].metadata.get("choices") or ())  # fmt: skip
                others += [True, False] if kind is bool else [1, 3] if kind in (int, int | str) else []
                assert others
                for other in others:
                    env = make_env(id, {**given, name: other})
                    env.reset(seed=5, options={"episode": 2})
                    assert env.simulator.workload(0) == usual.simulator.workload(0), (id, name, other)
                    mine, theirs = env.simulator.parameters, usual.simulator.parameters
                    assert problem.objective_of(mine) == problem.objective_of(theirs)


@pytest.mark.parametrize("id", some(sorted(IDS, key=COMPILED_SLOWLY.__contains__), keep=2, late=9))
def test_agents_and_policies_play_the_same_episodes(id: str) -> None:
    view = SHIPPED[id]
    agents = {"first": AgentPolicy(make(id, view)), "second": AgentPolicy(make(id, view, seed=1))}
    names = list(get_problem(id).ids[id].policies[-2:])
    parameters = small(id)
    parameters.pop("window", None)
    acting = {**dict(zip(names, names, strict=True)), **agents}
    evaluation = compare(id, acting, {}, 3, 8, parameters=parameters)
    frame = evaluation.frame
    alone = evaluate(id, names, 3, 8, parameters=parameters)
    assert list(dict.fromkeys(frame["policy"])) == [*names, "first", "second"]
    before = frame[~frame["policy"].isin(agents)]
    assert before.reset_index(drop=True).equals(alone), "agents change what policies come to"
    assert {label: evaluation.views[label] for label in agents} == dict.fromkeys(agents, view)
    theirs, mine = make_env(id, parameters), make_env(id, agents["first"].acting_parameters(id, parameters))
    assert mine.interface.view == view and mine.interface.observation != theirs.interface.observation
    for episode in range(3):
        for env in (theirs, mine):
            env.reset(seed=8, options={"episode": episode})
        assert mine.simulator.workload(0) == theirs.simulator.workload(0)
    # labels in a dict, and what an agent comes to alone
    again = evaluate(id, {"other": names[0], "first": agents["first"]}, 3, 8, parameters=parameters)
    for label, known in (("first", "first"), ("other", names[0])):
        values = again[again["policy"] == label]["value"].to_numpy()
        np.testing.assert_array_equal(values, frame[frame["policy"] == known]["value"].to_numpy())


def test_whose_parameters_hold() -> None:
    agent = make(ID, "pick", window=4, rule="first", arrival_rate=99.0, tasks=33)
    own = AgentPolicy(agent).acting_parameters(ID, {"tasks": 20, "view": "placement", "action_mask": False})
    assert (own["view"], own["observation"], own["action_mask"]) == ("pick", "features", True)
    assert (own["window"], own["rule"], own["scope"]) == (4, "first", "released")
    assert own["tasks"] == 20 and "arrival_rate" not in own, "the problem is the evaluation's"
    assert AgentPolicy(agent).acting_parameters(ID, {"window": 9})["window"] == 9
    # what was left at its default is kept, too, also where baselines act otherwise
    jct = AgentPolicy(make("schedgym/ParallelJCT-v0", "pick"))
    assert jct.acting_parameters(jct.agent.id, {})["rounds"] == "ticks"
    assert jct.acting_parameters(jct.agent.id, {"rounds": "all"})["rounds"] == "all"


@long
def test_what_has_no_effect_in_another_problem_is_left_out() -> None:
    """An agent acts on whole tasks and on those that can be cut; what the evaluation asks for is refused."""
    id, kept = "schedgym/PartialValue-v0", {"serving": "program", "single_task": False}
    trained = {"serving": "continuous", "single_task": "discrete"}
    agents = {
        name: AgentPolicy(make(id, "priority", model=model, **{name: kept[name]}))
        for name, model in trained.items()
    }
    for name, model in trained.items():
        given = small(id, model=model)
        for own, agent in agents.items():
            assert (agent.acting_parameters(id, given).get(own) == kept[own]) is (own == name)
        frame = evaluate(id, agents, 1, parameters=given, progress=False)
        assert set(frame["policy"]) == set(agents)
        (other,) = kept.keys() - {name}
        with pytest.raises(InvalidParameter, match=f"^{other}: has no effect without model"):
            evaluate(id, agents, 1, parameters={**given, "view": "priority", other: kept[other]})


@long
def test_what_has_an_effect_in_the_views_of_others_is_left_out() -> None:
    """Each policy of a comparison acts in its own view, with the parameters that have an effect in that."""
    id, fair = "schedgym/GeoAssign-v0", "schedgym/GeoFair-v0"
    agent = AgentPolicy(load_pretrained(id))
    assert "placement" not in agent.acting_parameters(id, {"view": "priority", "placement": "associated"})
    policies = {"amf": "amf", "srpt": "srpt", "agent": AgentPolicy(load_pretrained(fair))}
    given = {"jobs": 30, "sites": 4, "utilization": 2.0}
    often, seldom = (
        evaluate(fair, policies, 1, parameters={**given, "aggressive": on}).query("metric == 'mean_response'")
        for on in (True, False)
    )
    same = dict(zip(often.policy, (often.value == seldom.value).tolist(), strict=True))
    assert same == {"amf": False, "srpt": True, "agent": True}


def test_shipped_agents_act_in_all_domains_of_their_training() -> None:
    for id, path in list_pretrained().items():
        agent = load_agent(path)
        for domain in agent.metadata["config"].get("domains", {}).values():
            given = domain.get("parameters", {})
            get_problem(id).build(id, AgentPolicy(agent).acting_parameters(id, given))


def test_refusals(tmp_path: Path) -> None:
    agent = make(ID, "pick")
    policy = AgentPolicy(agent)
    with pytest.raises(
        InvalidParameter, match="drawn: this agent is for environment 'schedgym/QueueDelay-v0'"
    ):
        make_agent(agent, "schedgym/GeoFair-v0")
    save_agent(tmp_path / "agent.npz", agent.weights, agent.metadata)
    with pytest.raises(InvalidParameter, match="agent: this agent is for environment"):
        make_agent(tmp_path / "agent.npz", "schedgym/GeoFair-v0")
    with pytest.raises(UnknownName, match="pretrained agent 'schedgym/Nothing-v0'"):
        make_agent("pretrained", "schedgym/Nothing-v0")
    for changes, message in table(__file__, "test_refusals"):
        env = gym.make(ID, disable_env_checker=True, **{**agent.environment, **changes})
        with pytest.raises(InvalidParameter, match=message):
            policy.reset(env.unwrapped.interface, np.random.default_rng(0))
    for arguments, message in (
        ((ID, [policy, policy], 1), "'drawn' is named twice"),
        (("schedgym/GeoFair-v0", {"a": policy}, 1), "this agent is for environment"),
        ((ID, {"a": policy}, 1, TRAINING_SEEDS), "seed: must be below 1099511627776"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            evaluate(*arguments, parameters=small(arguments[0]))


@pytest.mark.parametrize("id", list_pretrained())
def test_shipped_agents_fit_this_version(id: str) -> None:
    policy = make_agent("pretrained", id)
    env = make_env(id, policy.acting_parameters(id, small(id, strict=True, window="all")))
    assert play(env, policy, seed=0)


@pytest.mark.parametrize(("weights", "network", "message"), table(__file__, "UNFIT"))
def test_agents_that_do_not_fit(weights: dict[str, Any], network: dict[str, Any], message: str) -> None:
    agent = changed(make(ID, "pick"), {name: np.array(own) for name, own in weights.items()}, **network)
    env = gym.make(ID, disable_env_checker=True, **agent.environment)
    with pytest.raises(InvalidAgentFile, match=f"^drawn: .*{message}"):
        play(env, AgentPolicy(agent), seed=0)


def test_networks(tmp_path: Path) -> None:
    """Agents of the other form act through the same door, and are checked there, too."""
    _, layout = vector(ID, "pick")
    weights = initial(layout, np.random.default_rng(0), 8, 2)
    agent = dataclasses.replace(changed(make(ID, "pick"), form="tokens"), weights=weights)
    agent.metadata["network"] = {"form": "tokens", "width": 8, "rounds": 2}
    env = gym.make(ID, disable_env_checker=True, **agent.environment)
    save_agent(tmp_path / "agent.npz", agent.weights, agent.metadata)
    actions = play(env, AgentPolicy(agent), seed=0)
    assert same(play(env, make_agent(tmp_path / "agent.npz", ID), seed=0), actions)
    for network, more, message in (
        ({"width": 9}, {}, "other names or shapes"),
        ({"rounds": 3}, {}, "rounds: must be <= 2"),
        ({"width": None}, {}, "width: must be int"),
        ({"depth": 1}, {}, "unknown parameter 'depth'"),
        ({}, {"score/task/bias": np.zeros(3)}, "other names or shapes"),
    ):
        with pytest.raises(InvalidAgentFile, match=f"^drawn: does not fit this version: .*{message}"):
            play(env, AgentPolicy(changed(agent, more, **network)), seed=0)


def test_no_parameters() -> None:
    agent = make(ID, "pick")
    weights = {name: array for name, array in agent.weights.items() if name != "theta"}
    env = gym.make(ID, disable_env_checker=True, **agent.environment)
    with pytest.raises(InvalidAgentFile, match="does not fit"):
        play(env, AgentPolicy(dataclasses.replace(agent, weights=weights)), seed=0)
