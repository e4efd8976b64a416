"""Properties of QueueDelay through the real environment, on random instances and toy instances."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.papers.noroozoliaee2014 import model
from schedgym.problems.queue_delay.metrics import fates, metrics, validate
from schedgym.problems.queue_delay.rules import RULE_SCHEMES, TOLERANCE
from schedgym.problems.queue_delay.workload import make_workload
from schedgym.testing import sample_action
from tests.long import some
from tests.queue_delay.instances import make_instance

VIEWS = ("placement", "pick", "route", "rule")
ARRIVAL, COMPLETION, FINISHED = 0, 1, 2


# Instances ------------------------------------------------------------------------------------


@st.composite
def instances(draw: st.DrawFn, ties: bool | None = None, most: int = 9) -> Workload:
    """Up to ``most`` tasks on 1-3 servers; with ties on a coarse grid of times and sizes, else without."""
    if draw(st.booleans()) if ties is None else ties:
        side = st.sampled_from([0.25, 0.5, 0.75, 1.0])
        servers = draw(st.lists(st.tuples(side, side), min_size=1, max_size=3))
        rows = st.tuples(
            st.integers(0, 5),
            st.integers(1, 6),
            st.integers(0, len(servers) - 1),
            st.sampled_from([0.0, 0.2, 0.4, 0.6, 1.0]),
            st.sampled_from([0.2, 0.4, 0.6, 1.0]),
        )
        drawn = draw(st.lists(rows, min_size=1, max_size=most))
        tasks = sorted((at, e, servers[j][0] * c, servers[j][1] * m) for at, e, j, c, m in drawn)
    else:
        rng = random.Random(draw(st.integers(0, 10**6)))
        servers = [(rng.uniform(0.3, 1.0), rng.uniform(0.3, 1.0)) for _ in range(rng.randint(1, 3))]
        tasks = []
        for at in sorted(rng.uniform(0.0, 6.0) for _ in range(rng.randint(1, most))):
            cpu, memory = rng.choice(servers)
            sizes = (rng.uniform(0.2, 1.0) * cpu, rng.uniform(0.2, 1.0) * memory)
            tasks.append((at, rng.lognormvariate(1.0, 1.0), *sizes))
    return make_workload(tasks, servers)


seeds = st.integers(0, 2**31)


class Play(NamedTuple):
    observations: list[dict[str, Any]]
    actions: list[Any]
    rewards: list[float]
    ends: list[tuple[bool, bool]]
    info: dict[str, Any]
    record: ScheduleRecord


def make(workload: Workload, **parameters: Any) -> gym.Env[Any, Any]:
    return gym.make(
        "schedgym/QueueDelay-v0",
        disable_env_checker=True,
        **{
            "tasks": len(workload.jobs["arrival"]),
            "servers": len(workload.cluster["cpu"]),
            "window": "all",
            "strict": True,
            **parameters,
        },
    )


def play(env: gym.Env[Any, Any], workload: Workload, choose: Callable[[Any], Any]) -> Play:
    observation, info = env.reset(seed=0, options={"workload": workload})
    result = Play([observation], [], [], [], info, None)  # type: ignore[arg-type]
    while True:
        action = choose(observation)
        observation, reward, terminated, truncated, info = env.step(action)
        result.observations.append(observation)
        result.actions.append(action)
        result.rewards.append(reward)
        result.ends.append((terminated, truncated))
        if terminated or truncated:
            return result._replace(info=info, record=env.unwrapped.record())


def play_at_random(env: gym.Env[Any, Any], workload: Workload, seed: int) -> Play:
    rng = np.random.default_rng(seed)
    return play(env, workload, lambda observation: sample_action(env.action_space, observation, rng))


def rows(workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    """Tasks [K, 4] and servers [M, 2]."""
    jobs, cluster = workload.jobs, workload.cluster
    return (
        np.column_stack([jobs["arrival"], jobs["execution"], jobs["cpu"], jobs["memory"]]),
        np.column_stack([cluster["cpu"], cluster["memory"]]),
    )


# Whole schedules by random actions ------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
@given(workload=instances(), seed=seeds)
@settings(max_examples=60)
def test_random_play_gives_sound_schedules(view: str, workload: Workload, seed: int) -> None:
    result = play_at_random(make(workload, view=view), workload, seed)
    tasks, servers = rows(workload)
    record, measured = result.record, result.info["metrics"]
    assert record.workload == workload
    validate(record)

    assert record.truncated == result.ends[-1][1] == (len(record.job) < len(tasks))
    assert result.ends[-1][0] != result.ends[-1][1]
    for observation in result.observations:
        assert (observation["remaining"] >= -1.001 * TOLERANCE).all()
        assert (observation["remaining"] <= servers).all()

    # rewards, from the observations alone: tasks waiting x time that passes
    instance, schedule = make_instance(tasks.tolist(), servers.tolist()), schedule_of(record)
    waits = model.delays(instance, schedule)
    assert sum(result.rewards) == pytest.approx(-np.mean(waits), rel=1e-12, abs=1e-12)
    assert measured["mean_delay"] == pytest.approx(np.mean(waits), rel=1e-12, abs=1e-12)
    if view != "route" and not record.truncated:
        for before, after, reward in zip(
            result.observations, result.observations[1:], result.rewards, strict=False
        ):
            if view == "rule" and before["clock"] != after["clock"]:
                continue  # the scheme places before the time passes
            waiting = before["task_mask"].sum() + before["backlog"][0]
            passed = after["clock"][0] - before["clock"][0]
            assert reward == pytest.approx(-waiting * passed / len(tasks), rel=1e-12, abs=1e-15)
    assert all(reward <= 0.0 for reward in result.rewards)

    # all metrics as the model sums them over the intervals between events
    for name, value in model.metrics(instance, schedule).items():
        assert measured[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
    assert measured["repaired"] == 0.0


def schedule_of(record: ScheduleRecord) -> model.Schedule:
    fate = fates(record)
    return model.Schedule(fate["start"], fate["server"], record.final_time)


# Observations ---------------------------------------------------------------------------------


def expected_observation(
    workload: Workload, record: ScheduleRecord, epoch: int, submitted: int, clock: float, window: int
) -> dict[str, Any]:
    """The observation, from the schedule so far and what has been submitted, by the documentation."""
    tasks, servers = rows(workload)
    started = set(record.job.tolist())
    waiting = [i for i in range(submitted) if i not in started]
    last = submitted - 1
    arriving = epoch == ARRIVAL and last not in started
    shown = waiting[:window]
    if arriving and len(waiting) > window:
        shown = [*waiting[: window - 1], last]
    remaining = servers.copy()
    for job, j, end in zip(record.job, record.server, record.end, strict=True):
        if end > clock:
            remaining[j] -= tasks[job, 2:]

    def padded(values: Any, *shape: int) -> np.ndarray:
        out = np.zeros((window, *shape))
        out[: len(shown)] = values
        return out

    return {
        "clock": np.array([clock]),
        "epoch": epoch,
        "arriving": len(shown) - 1 if arriving else window,
        "capacity": servers,
        "remaining": remaining,
        "arrival": padded(tasks[shown, 0]),
        "execution": padded(tasks[shown, 1]),
        "demand": padded(tasks[shown, 2:], 2),
        "waiting": padded(clock - tasks[shown, 0]),
        "task_mask": padded(1.0),
        "mean_demand": tasks[:submitted, 2:].mean(axis=0),
        "backlog": np.array([len(waiting) - len(shown)]),
    }


def expected_mask(view: str, observation: dict[str, Any], scope: str) -> np.ndarray:
    """The mask of feasible actions, from the observation's other entries."""
    window, servers = len(observation["task_mask"]), len(observation["remaining"])
    over = observation["epoch"] == FINISHED
    pairs = (
        (observation["demand"][:, None, :] <= observation["remaining"][None] + TOLERANCE).all(axis=2)
        & (observation["task_mask"][:, None] == 1)
        & (not over)
    )
    if view == "placement":
        return pairs
    if view == "rule":
        return np.ones(len(RULE_SCHEMES), dtype=bool)
    if view == "route":
        arriving = observation["arriving"]
        fitting = pairs[arriving] if arriving < window else np.zeros(servers, dtype=bool)
        return np.append(fitting, True)
    if observation["epoch"] == COMPLETION and scope == "released":
        pairs = pairs[:, [observation["released"]]]
    return np.append(pairs.any(axis=1), True)


@pytest.mark.parametrize("window", some([2, 1, 4, "all"]))
@pytest.mark.parametrize(
    ("view", "scope"), [("placement", "released"), ("pick", "released"), ("pick", "all")]
)
@given(workload=instances(), seed=seeds)
@settings(max_examples=25)
def test_observations_show_what_is_documented(
    view: str, scope: str, window: int | str, workload: Workload, seed: int
) -> None:
    """Also with a window smaller than the queue: the arriving task stands in the last slot."""
    env = make(workload, view=view, scope=scope, window=window)
    size = len(workload.jobs["arrival"]) if window == "all" else int(window)
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(options={"workload": workload})
    submitted, epoch = 1, ARRIVAL
    done = False
    while not done:
        record = env.unwrapped.record()
        clock = float(observation["clock"][0])
        expected = expected_observation(workload, record, epoch, submitted, clock, size)
        for name, value in expected.items():
            assert_allclose(observation[name], value, rtol=1e-12, atol=1e-12, err_msg=name)
        assert_array_equal(observation["action_mask"], expected_mask(view, observation, scope))
        assert (observation["released"] < len(expected["capacity"])) == (epoch == COMPLETION)
        action = sample_action(env.action_space, observation, rng)
        slot = action[0] if view == "placement" else action
        before = set(record.job.tolist())
        observation, _, terminated, truncated, _ = env.step(action)
        after = set(env.unwrapped.record().job.tolist())
        if slot < size:  # a placement: exactly the task that the slot showed has started, now
            (job,) = after - before
            shown = [workload.jobs[name][job] for name in ("arrival", "execution", "cpu", "memory")]
            assert shown == [
                expected["arrival"][slot],
                expected["execution"][slot],
                *expected["demand"][slot].tolist(),
            ]
            if slot == expected["arriving"]:
                assert job == submitted - 1, "the slot of the arriving task starts the arriving task"
        else:
            assert after == before
            epoch = int(observation["epoch"])
            submitted += epoch == ARRIVAL
        done = terminated or truncated
    assert observation["epoch"] == FINISHED
    assert observation["arriving"] == size
    assert_array_equal(observation["action_mask"], expected_mask(view, observation, scope))


@pytest.mark.parametrize("view", ["route", "rule"])
@given(workload=instances(), seed=seeds)
@settings(max_examples=25)
def test_masks_of_the_other_views(view: str, workload: Workload, seed: int) -> None:
    for observation in play_at_random(make(workload, view=view, window=3), workload, seed).observations:
        if view == "rule" or observation["epoch"] != ARRIVAL or observation["backlog"][0] == 0:
            assert_array_equal(observation["action_mask"], expected_mask(view, observation, "released"))


def count_submitted(view: str, observations: list[dict[str, Any]]) -> list[int]:
    """How many tasks have been submitted at each observation of an episode.

    A task has just been submitted if it is shown as arriving, unless the last decision has started another
    one while it waits, so that one task less waits (in views that take single tasks).
    """
    counts: list[int] = []
    arrived, before = 0, math.inf
    for observation in observations:
        shown = observation["epoch"] == ARRIVAL and observation["arriving"] < len(observation["task_mask"])
        waiting = float(observation["task_mask"].sum()) + float(observation["backlog"][0])
        if shown and (view in ("route", "rule") or waiting != before - 1.0):
            arrived += 1
        before = waiting if shown else math.inf
        counts.append(arrived)
    return counts


def submitted_features(workload: Workload, submitted: int, clock: float) -> list[float]:
    """What is shown of submitted tasks: mean and deviation of log execution, offered load, quiet."""
    jobs, cluster = workload.jobs, workload.cluster
    execution = jobs["execution"][:submitted]
    scaled = np.log1p(execution) / math.log1p(86400.0)
    work = [(execution * jobs[name][:submitted]).sum() for name in cluster]
    rooms = [cluster[name].sum() for name in cluster]
    time = max(own / room for own, room in zip(work, rooms, strict=True) if own > 0.0)  # on the whole cluster
    elapsed, since = clock - jobs["arrival"][0], clock - jobs["arrival"][submitted - 1]
    quiet = since / (since + elapsed / submitted) if since > 0.0 else 0.0
    return [scaled.mean(), scaled.std(), time / (time + elapsed), quiet]


def features_of(observation: dict[str, Any], submitted: list[float]) -> dict[str, np.ndarray]:
    """The documented formulae of the features, from the observation in exact units and what was submitted."""
    mask = observation["task_mask"].astype(float)
    window, servers = len(mask), len(observation["remaining"])
    arriving = np.arange(window) == observation["arriving"]
    log_day = math.log1p(86400.0)
    waiting = observation["waiting"]
    tasks = np.column_stack(
        [
            observation["demand"],
            np.log1p(observation["execution"]) / log_day,
            waiting / (waiting + 3600.0),
            arriving,
        ]
    )
    released = np.arange(servers) == observation["released"]
    free = np.maximum(observation["remaining"], 0.0)
    beyond = float(observation["backlog"][0])
    count = float(mask.sum()) + beyond
    return {
        "tasks": tasks * mask[:, None],
        "servers": np.column_stack([observation["capacity"], free, released]),
        "globals": np.array(
            [
                observation["epoch"] == ARRIVAL,
                observation["epoch"] == COMPLETION,
                count / (count + 32.0),
                beyond / (beyond + 32.0),
                *observation["mean_demand"],
                observation["clock"][0] / (observation["clock"][0] + 86400.0),
                *submitted,
            ]
        ),
        "task_mask": mask,
        "action_mask": observation["action_mask"],
    }


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("window", some([2, 32, "all"]))
@given(workload=instances(), seed=seeds)
@settings(max_examples=20)
def test_features_are_the_documented_formulae(
    view: str, window: int | str, workload: Workload, seed: int
) -> None:
    units = play_at_random(make(workload, view=view, window=window), workload, seed)
    actions = iter(units.actions)
    tokens = play(
        make(workload, view=view, window=window, observation="features"),
        workload,
        lambda observation: next(actions),
    )
    assert tokens.rewards == units.rewards
    counts = count_submitted(view, units.observations)
    for found, observation, count in zip(tokens.observations, units.observations, counts, strict=True):
        expected = features_of(
            observation, submitted_features(workload, count, float(observation["clock"][0]))
        )
        assert set(found) == set(expected)
        for name, value in expected.items():
            # a deviation from sums of squares loses half of the digits
            slack = 2e-7 if name == "globals" else 1e-7
            assert_allclose(found[name], value, rtol=2e-7, atol=slack, err_msg=name)
            assert found[name].dtype == (np.int8 if name.endswith("mask") else np.float32)


# Epochs, views, ends --------------------------------------------------------------------------


def completion_epochs(record: ScheduleRecord) -> int:
    """Servers x instants at which something ends; at the end of all work no epoch is held."""
    pairs = set(zip(record.server.tolist(), record.end.tolist(), strict=True))
    return sum(record.truncated or end < record.final_time for _, end in pairs)


@given(workload=instances(most=12), seed=seeds)
@settings(max_examples=50)
def test_the_rule_view_takes_one_action_an_epoch(workload: Workload, seed: int) -> None:
    result = play_at_random(make(workload, view="rule"), workload, seed)
    validate(result.record)
    count = len(workload.jobs["arrival"])
    assert len(result.actions) == count + completion_epochs(result.record)
    epochs = [int(observation["epoch"]) for observation in result.observations[:-1]]
    assert epochs.count(ARRIVAL) == count


@given(workload=instances(most=12), seed=seeds)
@settings(max_examples=50)
def test_the_route_view_takes_one_action_an_arrival(workload: Workload, seed: int) -> None:
    result = play_at_random(make(workload, view="route", window=2), workload, seed)
    assert len(result.actions) == len(workload.jobs["arrival"])
    assert all(int(o["epoch"]) == ARRIVAL for o in result.observations[:-1])
    assert [float(o["clock"][0]) for o in result.observations[:-1]] == workload.jobs["arrival"].tolist()


@pytest.mark.parametrize("view", ["placement", "pick", "route"])
@pytest.mark.parametrize("window", [1, "all"])
@given(workload=instances())
@settings(max_examples=20)
def test_placing_nothing_strands_all_and_is_charged(view: str, window: int | str, workload: Workload) -> None:
    env = make(workload, view=view, window=window)
    none: Any = [env.action_space.nvec[0] - 1, 0] if view == "placement" else env.action_space.n - 1
    result = play(env, workload, lambda observation: none)
    assert result.ends[-1] == (False, True) and not any(a or b for a, b in result.ends[:-1])
    tasks, _ = rows(workload)
    count = len(tasks)
    begin = tasks[-1, 0] + np.concatenate([[0.0], np.cumsum(tasks[:-1, 1])])
    delay = float(np.mean(begin - tasks[:, 0]))
    measured = result.info["metrics"]
    assert sum(result.rewards) == pytest.approx(-delay, rel=1e-12)
    assert measured["mean_delay"] == pytest.approx(delay, rel=1e-12)
    assert measured["stranded"] == count
    assert measured["makespan"] == pytest.approx(begin[-1] + tasks[-1, 1] - tasks[0, 0])
    assert measured["utilization_cpu"] == measured["utilization_memory_backlog"] == 0.0
    fate = fates(result.record)
    assert fate == {"start": [None] * count, "server": [-1] * count, "completion": [None] * count}
    assert result.record.truncated and metrics(result.record)["stranded"] == count
    validate(result.record)
