"""Columns that depend neither on the unit of time nor on the number of servers, on scaled workloads."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from schedgym.agents.config import Config, load_config
from schedgym.agents.scorer import Scorer, ScorerOptions
from schedgym.agents.views import layout_of
from schedgym.core.problem import get_problem
from schedgym.core.workload import Workload
from schedgym.evaluation.episodes import make_env
from schedgym.problems.queue_delay.columns import COUNT_SCALE
from tests.playing import play

ID = "schedgym/QueueDelay-v0"
CONFIG = load_config("queue-delay-placement")
USED = CONFIG.scorer.columns["place"]


def scaled(workload: Workload, factor: float) -> Workload:
    """The workload with all times multiplied."""
    jobs = {name: workload.jobs[name] * factor for name in ("arrival", "execution")}
    return dataclasses.replace(workload, jobs={**workload.jobs, **jobs})


def played(workload: Workload | None) -> tuple[list[dict[str, Any]], Workload]:
    """The observations where the first task that fits starts on the first server, and the workload."""
    given = {"tasks": 60, "servers": 3, "strict": True, "action_mask": True}
    env: Any = make_env(ID, {**CONFIG.environment, **given})
    seen = []

    def act(observation: dict[str, Any]) -> Any:
        seen.append({name: np.array(value) for name, value in observation.items()})
        open_ = observation["action_mask"].astype(bool)
        first = open_.ravel().argmax()
        return np.array(divmod(int(first), open_.shape[1]) if open_.any() else (len(open_), 0))

    return seen, play(env, act, 5, workload=workload).record.workload


def columns(config: Config, seen: dict[str, Any], wanted: Any = None) -> dict[str, Any]:
    """The columns of the agent by name, of the tokens that can be chosen or of those that are wanted."""
    batch = {name: value[np.newaxis] for name, value in seen.items()}
    layout = layout_of(get_problem(config.id).name, config.view, seen)
    scorer = Scorer(layout, ScorerOptions(context="none"))
    found = scorer.inspect(batch, scorer.wanted(batch) if wanted is None else wanted)["columns 0"]
    return dict(zip(scorer.columns[0], found, strict=True))


def times(share: Any, factor: float) -> Any:
    """``factor`` n / (factor n + c), if ``share`` is n / (n + c)."""
    return factor * share / (1.0 + (factor - 1.0) * share)


def check_same(first: dict[str, Any], second: dict[str, Any], close: float) -> None:
    """The columns of the first tokens are the same."""
    for name, own in first.items():
        np.testing.assert_allclose(second[name][: len(own)], own, rtol=close, atol=close, err_msg=name)


def test_time_times_ten() -> None:
    """The agent's columns stay (log1p of an execution is nearly its logarithm), the absolute ones do not."""
    seen, workload = played(None)
    longer, _ = played(scaled(workload, 10.0))
    assert len(seen) == len(longer)
    count = 0
    for mine, theirs in zip(seen, longer, strict=True):
        first, second = columns(CONFIG, mine), columns(CONFIG, theirs)
        if not first["z execution"].size:
            continue
        count += 1
        for name in USED:
            np.testing.assert_allclose(second[name], first[name], rtol=0.03, atol=0.03, err_msg=name)
        assert (second["log execution"] - first["log execution"] > 2.0).all()
    assert count > 40


def test_twice_the_servers_with_twice_the_tasks_waiting() -> None:
    seen, _ = played(None)
    count = 0
    for mine in seen:
        twice = dict(mine)
        twice["servers"] = np.concatenate([mine["servers"], mine["servers"] * [1, 1, 1, 1, 0]]).astype("f4")
        twice["action_mask"] = np.concatenate([mine["action_mask"]] * 2, axis=-1)
        waiting = float(mine["globals"][2])
        twice["globals"] = mine["globals"].copy()
        twice["globals"][2] = 2.0 * waiting / (1.0 + waiting)  # of 2 n tasks, if n / (n + 32) is that of n
        first, second = columns(CONFIG, mine), columns(CONFIG, twice)
        pairs = len(first["z execution"])
        count += pairs > 0
        tasks, servers = np.nonzero(mine["action_mask"])
        own = np.searchsorted(np.flatnonzero(twice["action_mask"]), tasks * 6 + servers)
        for name in USED:
            np.testing.assert_allclose(second[name][own], first[name], rtol=1e-4, atol=1e-4, err_msg=name)
    assert count > 40 and COUNT_SCALE == 32.0


# FlowtimePacking: what all jobs of a slot share changes no order, so differences between jobs are compared


FLOWTIME = load_config("flowtime-priority")
KINDS = ({}, {"kind": "2d", "norm": 1.0}, {"kind": "mapreduce", "norm": 3.0})


def slots(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Observations of a busy FlowtimePacking, in which jobs are served by arrival."""
    env: Any = make_env(FLOWTIME.id, {**FLOWTIME.environment, "load": 2.0, **parameters})
    observation, _ = env.reset(seed=5)
    seen = []
    for _ in range(60):
        observation, *_ = env.step(np.linspace(0.9, 0.1, len(observation["job_mask"])))
        if observation["job_mask"].sum() > 3:
            seen.append({name: np.array(value) for name, value in observation.items()})
    assert len(seen) > 20
    return seen


def differences(seen: dict[str, Any]) -> dict[str, Any]:
    """The columns of the agent, less those of the first job."""
    found = columns(FLOWTIME, seen)
    return {name: found[name] - found[name][0] for name in FLOWTIME.scorer.columns["job"]}


def later(mine: dict[str, Any]) -> dict[str, Any]:
    """All times ten times as long."""
    longer = dict(mine, jobs=mine["jobs"].copy(), globals=mine["globals"].copy())
    longer["jobs"][:, [0, 1, 4, 5]] = times(mine["jobs"][:, [0, 1, 4, 5]], 10.0)
    return longer


def twice(mine: dict[str, Any]) -> dict[str, Any]:
    """Twice the servers, and twice the jobs."""
    count = int(mine["job_mask"].sum())
    own = mine["jobs"][:count].copy()
    own[:, [2, 5]] = times(own[:, [2, 5]], 0.5)
    own[:, 6:9] /= 2.0
    own = np.concatenate([own, np.zeros((count, len(mine["servers"])), dtype="f4")], axis=1)
    servers = np.concatenate([mine["servers"] * np.array([0.5, 1, 1, 1], dtype="f4")] * 2)
    both = {"jobs": np.concatenate([own, own]), "servers": servers}
    return {**mine, **both, "job_mask": np.ones(2 * count, dtype=np.int8)}


@pytest.mark.parametrize("parameters", KINDS)
@pytest.mark.parametrize("change", [later, twice])
def test_flowtime(change: Any, parameters: dict[str, Any]) -> None:
    for mine in slots(parameters):
        check_same(differences(mine), differences(change(mine)), 2e-3)


# ParallelJCT: with twice the servers jobs have twice the tasks, as a job may use all servers


PARALLEL = load_config("parallel-jct-pick")


def rounds() -> list[dict[str, Any]]:
    """Observations of a busy ParallelJCT, in which every third decision launches the first job."""
    given = {"jobs": 40, "arity": 4, "rate": 2.0, "action_mask": True}
    env: Any = make_env(PARALLEL.id, {**PARALLEL.environment, **given})
    observation, _ = env.reset(seed=5)
    seen, done, turn = [], False, 0
    while not done and len(seen) < 150:
        turn += 1
        open_ = np.flatnonzero(observation["action_mask"])
        if len(open_) > 3:
            seen.append({name: np.array(value) for name, value in observation.items()})
        observation, _, terminated, truncated, _ = env.step(int(open_[0 if turn % 3 == 0 else -1]))
        done = terminated or truncated
    assert len(seen) > 40
    return seen


def columns_of_jobs(seen: dict[str, Any]) -> dict[str, Any]:
    """The columns of the agent, for all jobs that wait."""
    wanted = np.zeros((1, *seen["action_mask"].shape), dtype=bool)
    wanted[:, :-1] = seen["job_mask"]
    found = columns(PARALLEL, seen, wanted)
    return {name: found[name] for name in PARALLEL.scorer.columns["job"]}


def test_parallel_jct_time_times_ten() -> None:
    for mine in rounds():
        longer = dict(mine, jobs=mine["jobs"].copy(), globals=mine["globals"].copy())
        for place in (0, 2, 5):  # age, load, least time
            longer["jobs"][:, place] = times(mine["jobs"][:, place], 10.0)
        longer["globals"][11] = times(mine["globals"][11], 10.0)
        check_same(columns_of_jobs(mine), columns_of_jobs(longer), 3e-3)


def test_parallel_jct_twice_the_servers_with_twice_the_tasks() -> None:
    for mine in rounds():
        double = dict(mine, jobs=mine["jobs"].copy(), servers=np.concatenate([mine["servers"]] * 2))
        double["jobs"][:, 1] = times(mine["jobs"][:, 1], 2.0)
        check_same(columns_of_jobs(mine), columns_of_jobs(double), 2e-3)
