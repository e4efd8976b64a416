"""Properties of QueueDelay through the real environment, on random instances and toy instances."""

from __future__ import annotations

import copy
import functools
import itertools
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

import schedgym
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.papers.noroozoliaee2014 import model
from schedgym.problems.queue_delay.metrics import fates, metrics, validate
from schedgym.problems.queue_delay.rules import RULE_SCHEMES, SCHEMES, TOLERANCE
from schedgym.problems.queue_delay.workload import make_workload
from schedgym.problems.toys import load_toys
from schedgym.testing import policy_parameters, sample_action
from tests.long import long, some
from tests.queue_delay.instances import make_instance, random_instance

VIEWS = ("placement", "pick", "route", "rule")
FIXED = tuple(name for name in SCHEMES if not name.startswith("rf"))
SKIPPING = ("bf-exec", "dot-exec", *(n for n in SCHEMES if n.startswith(("ffd-", "bfd-"))))
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


@functools.cache
def carrying(name: str, view: str) -> dict[str, Any]:
    """Parameters under which the view carries the scheme."""
    return policy_parameters(f"queue-delay/{name}", view)


def play_scheme(name: str, workload: Workload, view: str = "placement", **extra: Any) -> Play:
    env = make(workload, **carrying(name, view) | extra)
    policy = schedgym.make_policy(name, "queue-delay")
    policy.reset(env.unwrapped.interface, np.random.default_rng(0))
    return play(env, workload, policy)


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

    # every task once and whole, in its time, with its own demand
    assert sorted(set(record.job.tolist())) == sorted(record.job.tolist())
    assert record.truncated == result.ends[-1][1] == (len(record.job) < len(tasks))
    assert result.ends[-1][0] != result.ends[-1][1]
    assert (record.start >= tasks[record.job, 0]).all()
    assert_array_equal(record.end, record.start + tasks[record.job, 1])
    assert_array_equal(record.amount, tasks[record.job, 2:])

    # capacity: at each start, what runs there then
    for row, at in enumerate(record.start):
        here = (record.server == record.server[row]) & (record.start <= at) & (at < record.end)
        assert (record.amount[here].sum(axis=0) <= servers[record.server[row]] + 1.001 * TOLERANCE).all()
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

    # Little's law over the makespan, exactly
    rate = len(tasks) / measured["makespan"]
    assert measured["mean_queued"] == pytest.approx(rate * measured["mean_delay"], rel=1e-12)
    assert measured["mean_running"] == pytest.approx(rate * tasks[:, 1].mean(), rel=1e-12)

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
    work = [(execution * jobs[name][:submitted]).sum() for name in ("cpu", "memory")]
    rooms = [cluster[name].sum() for name in ("cpu", "memory")]
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


# Schemes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", some(SKIPPING, of=4))
@given(workload=instances(most=12))
@settings(max_examples=25)
def test_skipping_schemes_leave_nothing_idle(name: str, workload: Workload) -> None:
    """Whenever time passes, no waiting task fits on any server."""
    result = play_scheme(name, workload)
    for before, after in itertools.pairwise(result.observations):
        if after["clock"][0] > before["clock"][0]:
            assert not expected_mask("placement", before, "released").any()
    assert not result.record.truncated


@pytest.mark.parametrize("name", some(FIXED, of=4))
@given(workload=instances(most=12))
@settings(max_examples=12)
def test_every_view_carries_the_same_trajectory(name: str, workload: Workload) -> None:
    """All views that a scheme declares, against full fidelity; rewards add up alike."""
    views = schedgym.core.policy.get_policy_spec(f"queue-delay/{name}").views
    reference = play_scheme(name, workload)
    for view in views:
        if view == "placement":
            continue
        other = play_scheme(name, workload, view)
        assert other.record.digest() == reference.record.digest(), view
        assert sum(other.rewards) == pytest.approx(sum(reference.rewards), rel=1e-12, abs=1e-12)
        assert other.info["metrics"] == reference.info["metrics"]


@given(workload=instances(ties=False), seed=seeds, order=st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_permuting_servers_relabels_the_schedule(workload: Workload, seed: int, order: random.Random) -> None:
    """Identical or not, as long as no two completions fall on one instant."""
    tasks, servers = rows(workload)
    if len(servers) > 1 and order.random() < 0.5:
        servers[1] = servers[0]
        workload = fitting(tasks, servers)
        tasks, servers = rows(workload)
    new_place = list(range(len(servers)))
    order.shuffle(new_place)
    moved = np.empty_like(servers)
    moved[new_place] = servers
    first = play_at_random(make(workload, view="placement"), workload, seed)
    window = len(tasks)
    actions = iter((t, new_place[j]) if t < window else (t, j) for t, j in first.actions)
    second = play(make(workload, view="placement"), make_workload(tasks, moved), lambda _: next(actions))
    assert second.rewards == first.rewards
    assert_array_equal(second.record.start, first.record.start)
    assert second.record.server.tolist() == [new_place[j] for j in first.record.server]


def fitting(tasks: np.ndarray, servers: np.ndarray) -> Workload:
    """The tasks cut to the size of the first server, so that the instance stays feasible."""
    cut = tasks.copy()
    cut[:, 2:] = np.minimum(cut[:, 2:], servers[0])
    return make_workload(cut, servers)


@pytest.mark.parametrize("name", ["bf-exec", "dot-exec", "bfd-sum", "wf", "bf-all"])
@given(workload=instances(ties=False, most=12), order=st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_schemes_without_an_index_do_not_mind_the_order_of_servers(
    name: str, workload: Workload, order: random.Random
) -> None:
    tasks, servers = rows(workload)
    new_place = list(range(len(servers)))
    order.shuffle(new_place)
    moved = np.empty_like(servers)
    moved[new_place] = servers
    first = play_scheme(name, workload).record
    second = play_scheme(name, make_workload(tasks, moved)).record
    assert_array_equal(second.start, first.start)
    assert second.server.tolist() == [new_place[j] for j in first.server]


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


@given(workload=instances(), seed=seeds)
@settings(max_examples=30)
def test_stranding_never_pays(workload: Workload, seed: int) -> None:
    """Placing nothing is no better than bf-exec."""
    none = [len(workload.jobs["arrival"]), 0]
    idle = play(make(workload, view="placement"), workload, lambda observation: none)
    busy = play_scheme("bf-exec", workload)
    assert sum(idle.rewards) <= sum(busy.rewards) + 1e-9


# Toy instances --------------------------------------------------------------------------------


def best_by_search(workload: Workload) -> tuple[float, float]:
    """Least mean delay over all sequences of feasible actions, and the largest sum of rewards."""
    best, most = math.inf, -math.inf
    env = make(workload, view="placement")
    observation, _ = env.reset(options={"workload": workload})
    stack = [(env.unwrapped, observation, 0.0)]
    while stack:
        env, observation, total = stack.pop()
        slots = int(observation["task_mask"].sum())
        window = len(observation["task_mask"])
        pairs = [(i, j) for i, j in np.argwhere(observation["action_mask"]) if i < slots]
        for action in [*pairs, (window, 0)]:
            branch = copy.deepcopy(env)
            following, reward, terminated, truncated, info = branch.step(action)
            if terminated or truncated:
                best = min(best, info["metrics"]["mean_delay"])
                most = max(most, total + reward)
            else:
                stack.append((branch, following, total + reward))
    return best, most


TOYS = load_toys("queue-delay")


@pytest.mark.parametrize("name", list(TOYS))
def test_toy_instances_have_the_optimum_that_they_claim(name: str) -> None:
    workload, claimed = TOYS[name][:2]
    best, most = best_by_search(workload)
    assert best == claimed
    assert most == -claimed


@pytest.mark.parametrize("name", list(TOYS))
def test_no_scheme_beats_the_optimum_of_a_toy(name: str) -> None:
    workload, claimed = TOYS[name][:2]
    for scheme in FIXED:
        assert play_scheme(scheme, workload).info["metrics"]["mean_delay"] >= claimed
    rows = (np.column_stack(list(fields.values())).tolist() for fields in (workload.jobs, workload.cluster))
    assert model.workload_bound(make_instance(*rows)) <= claimed + 1e-9


@long
def test_search_through_the_environment_finds_the_optimum_of_an_independent_search() -> None:
    """Actions can express an optimal schedule: trying all orders at the earliest instants finds no better."""
    source = random.Random(21)
    compared = 0
    while compared < 8:
        tasks, servers = random_instance(source, adversarial=compared % 2 == 0)
        servers = servers[:2]
        tasks = [t for t in tasks if any(t[2] <= c and t[3] <= m for c, m in servers)][:3]
        expected = model.optimum(make_instance(tasks, servers))[0] / 3 if len(tasks) == 3 else 0.0
        if expected == 0.0:
            continue
        compared += 1
        best, most = best_by_search(make_workload(tasks, servers))
        assert best == pytest.approx(expected, rel=1e-9)
        assert most == pytest.approx(-expected, rel=1e-9)
