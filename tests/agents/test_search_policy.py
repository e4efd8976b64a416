"""Searches at decisions: they know what has arrived and no more, and do as well as their best plan."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from schedgym import cli
from schedgym.agents.agent_policy import make_agent
from schedgym.agents.files import load_pretrained
from schedgym.agents.search_policy import SearchPolicy, is_contender, make_contender
from schedgym.core.policy import make_policy
from schedgym.core.problem import get_problem
from schedgym.core.workload_files import save_workload
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.episodes import make_env, play
from schedgym.evaluation.runner import evaluate
from schedgym.playing import steps
from tests.agents.cases import SHIPPED
from tests.long import all_but, some

ID, FLOWTIME = "schedgym/QueueDelay-v0", "schedgym/FlowtimePacking-v0"
GEO = {"jobs": 12, "sites": 4, "utilization": 4.0, "durations": "constant", "dispatch_sites": "associated"}
#: small instances in which much waits, and a baseline that acts as the agent does, if there is one
SMALL: dict[str, tuple[dict[str, Any], str]] = {
    ID: ({"tasks": 25, "servers": 2, "arrival_rate": 0.5}, "dot-exec"),
    FLOWTIME: ({"jobs": 10}, "srvf"),
    "schedgym/PartialValue-v0": ({"jobs": 12, "model": "discrete", "single_task": True}, "m-greedy"),
    "schedgym/ParallelJCT-v0": ({"jobs": 6, "most_tasks": 4}, ""),
    "schedgym/GeoAssign-v0": (GEO, "swag"),
    "schedgym/GeoFair-v0": (GEO, "srpt"),
    "schedgym/SingleJob-v0": ({"tasks": 8, "fallback": "none"}, "tapra-fast"),
}


def environment(policy: Any, id: str = ID) -> Any:
    return make_env(id, policy.acting_parameters(id, SMALL[id][0]))


def actions(env: Any, policy: Any, **how: Any) -> tuple[list[Any], list[float]]:
    """The actions of an episode, and the time of each."""
    found, times = [], []
    for step in steps(env, policy, label="same", **how):
        if step.action is not None:
            found.append(np.array(step.action))
        times.append(env.simulator.now(0)[0])
    return found, times[:-1]


@pytest.mark.parametrize("name", some(["search-8:pretrained", "rollout:pretrained:dot-exec"]))
def test_another_future_changes_no_action_before_it_comes(name: str) -> None:
    """But it changes those of a search that knows the future."""
    policy = make_contender(name, ID)
    agent, baselines = policy.agent, policy.baselines
    seer = SearchPolicy(agent, samples=8, baselines=baselines, clairvoyant=True)
    env, rng = environment(policy), np.random.default_rng(0)
    actions(env, policy)
    workload = env.record().workload
    changed = 0
    for arrival in workload.jobs["arrival"][[2, 6, 12, 18]]:
        other = get_problem(ID).module("workload").shuffle_future(workload, float(arrival), rng)
        assert other != workload
        for own in (policy, seer):
            (first, times), (second, _) = (actions(env, own, workload=one) for one in (workload, other))
            count = sum(time <= arrival for time in times)
            same = [np.array_equal(*pair) for pair in zip(first[:count], second[:count], strict=True)]
            if own is policy:
                assert all(same) and count > 2
            else:
                changed += not all(same)
    assert changed


@pytest.mark.parametrize("id", all_but(SHIPPED, SHIPPED.keys() - {ID}))
def test_one_that_knows_the_future_is_no_worse_than_any_of_its_plans(id: str) -> None:
    """So plans are played as they are then followed, samples and baselines alike; some are better."""
    given, name = SMALL[id]
    problem = get_problem(id)
    agent = make_agent("pretrained", id)
    baselines = [make_policy(name, problem.name)] if name else []
    seer = SearchPolicy(agent.agent, samples=6, baselines=baselines, clairvoyant=True)
    nothing = SearchPolicy(agent.agent, samples=0)
    env = environment(agent, id)
    exact = make_env(id, {**agent.acting_parameters(id, given), "observation": "dict"})
    better = []
    for episode in range(3):
        alone, plain, own = (play(env, one, episode=episode) for one in (agent, nothing, seer))
        assert plain.metrics == alone.metrics
        best = max(alone.total, *(play(exact, rival, episode=episode).total for rival in baselines), -np.inf)
        assert own.total >= best - 1e-9 * abs(best)
        better.append(own.total > best + 1e-9 * abs(best))
    assert any(better) or id != ID


def test_the_same_again_from_a_pickle_and_only_where_it_is_bound() -> None:
    policy = make_contender("search-8:pretrained:bf-exec", ID)
    env = environment(policy)
    first, _ = actions(env, policy)
    for own in (policy, pickle.loads(pickle.dumps(policy)), make_contender(policy.name, ID)):
        again, _ = actions(env, own)
        assert_array_equal(first, again)
    observation, _ = env.reset(seed=0)
    for own in (policy, pickle.loads(pickle.dumps(policy))):
        own.reset(env.interface, np.random.default_rng(0))
        with pytest.raises(InvalidParameter, match="must be bound to a model"):
            own(observation)


def test_what_names_a_search() -> None:
    policy = make_contender("search:pretrained", ID)
    assert (policy.name, policy.samples, policy.baselines) == ("search:pretrained", 16, ())
    rollout = make_contender("rollout:pretrained:bf-exec:dot-exec", ID)
    assert (rollout.samples, rollout.futures, len(rollout.baselines)) == (0, 8, 2)
    assert not isinstance(make_contender("pretrained", ID), SearchPolicy)
    assert [is_contender(name) for name in ("x.npz", "search:a", "bf-exec", "search", "score: -cpu")] == [
        *(True, True, False, False, False)
    ]
    with pytest.raises(UnknownName, match="best-fit"):
        make_contender("rollout:pretrained:best-fit", ID)
    with pytest.raises(FileNotFoundError):
        make_contender("search:none.npz", ID)


def test_what_is_refused(tmp_path: Any) -> None:
    """Each in one line, before anything is played."""
    seer = SearchPolicy(load_pretrained(ID), "seer", clairvoyant=True)
    with pytest.raises(InvalidParameter, match="'seer' is clairvoyant, it knows the future: no policy"):
        evaluate(ID, {"seer": seer}, episodes=1)
    path = tmp_path / "workload.json"
    env = make_env(ID, {"tasks": 3})
    env.reset(seed=0)
    save_workload(env.record().workload, path)
    geo, partial = "schedgym/GeoAssign-v0", "schedgym/PartialValue-v0"
    for id, name, given, match in (
        (geo, "search:pretrained", {"jobs": 3}, "observations hide durations"),
        (partial, "search:pretrained", {"deadlines": "hidden"}, "observations hide deadlines"),
        (ID, "search:pretrained", {"window": 4}, "needs window='all'"),
        (ID, "rollout:pretrained:bf-exec", {"workload": str(path)}, "needs a generator"),
        (FLOWTIME, "rollout:pretrained:tetris", {}, "cannot be expressed in view 'priority'"),
    ):
        with pytest.raises(InvalidParameter, match=match):
            evaluate(id, [make_contender(name, id)], episodes=1, parameters=given)


def test_the_command_line_takes_it_where_it_takes_an_agent(capsys: Any, tmp_path: Any) -> None:
    small = ["--set", "tasks=12", "--set", "servers=2"]
    named = [
        "--policies",
        "search-4:pretrained,dot-exec",
        "--agents",
        "pretrained,rollout:pretrained:dot-exec",
    ]
    assert cli.main(["compare", ID, *named, *small, "--episodes", "2", "--plot", "none"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("search-4:pretrained", "rollout:pretrained:dot-exec"))
    assert cli.main(["run", ID, "--policy", "search-4:pretrained", *small, "--seed", "3"]) == 0
    assert "search-4:pretrained on seed 3" in capsys.readouterr().out
    late = ["--set", "jobs=1", "--set", "max_time=0.01"]  # it arrives after the end
    assert cli.main(["run", "schedgym/ParallelJCT-v0", "--policy", "search-4:pretrained", *late]) == 0
