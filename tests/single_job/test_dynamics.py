"""The environment against the model: trajectories, masks, rewards, repairs, given workloads, tokens."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from schedgym.errors import InvalidAction, InvalidWorkload
from schedgym.papers.shi2017.model import one_job
from schedgym.problems.single_job.metrics import metrics, validate
from schedgym.problems.single_job.workload import tables
from schedgym.solvers.planning import plan
from tests.long import of_trials, some, trials
from tests.parallel_jct import linear_programs, random_jobs
from tests.playing import environment_of, play_both
from tests.single_job.schedules import ROOM, others, smaller

ID = "schedgym/SingleJob-v0"


def instances(count: int, seed: int, dyadic: bool, **options: Any) -> Iterator[one_job.SingleJob]:
    """Random feasible jobs; dyadic ones have exact sums, and many ties."""
    rng = random.Random(seed)
    for x in trials(count):
        own = {"dyadic": dyadic, "exhausted": 0.0, "feasible": True, "power": x % 2 == 0}
        own |= {"weighted": x % 3 == 0, **options}
        one = random_jobs.random_instance(rng, **own)
        if one.energy_cap == math.inf:
            most = one_job.total(
                max(one.own_energy(i, j) for j in range(one.servers)) for i in range(one.tasks)
            )
            one = dataclasses.replace(one, energy_cap=most)
        yield one


def make(**parameters: Any) -> Any:
    return gym.make(ID, disable_env_checker=True, **parameters).unwrapped


def of(one: one_job.SingleJob, folder: Path, **parameters: Any) -> Any:
    return environment_of(ID, random_jobs.job_workload(one), folder, **parameters)


def same(found: Any, wanted: Any, exact: bool) -> bool:
    return found == wanted if exact else found == pytest.approx(wanted, rel=1e-12)


def check_record(env: Any, one: one_job.SingleJob, placement: one_job.Placement, exact: bool) -> None:
    """The record is the model's evaluation of the placement by Eq. 16."""
    record, expected = env.record(), one_job.optra(one, placement)
    placed = [i for i, j in enumerate(placement) if j >= 0]
    assert record.job.tolist() == placed
    assert record.server.tolist() == [placement[i] for i in placed]
    assert (record.start == 0.0).all() and not record.truncated
    assert same(record.end.tolist(), [expected.times[i] for i in placed], exact)
    assert same(record.amount[:, 0].tolist(), [expected.vcpus[i] for i in placed], exact)
    assert same(record.final_time, expected.jct, exact)


# Trajectories ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dyadic", [True, False])
@pytest.mark.parametrize("reward", ["incremental", "terminal"])
def test_view_place_runs_as_the_model_says(dyadic: bool, reward: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    forbidden = 0
    for one in instances(60, 11, dyadic):
        env = of(one, tmp_path, view="place", strict=True, reward=reward)
        observation, _ = env.reset()
        placement: one_job.Placement = (-1,) * one.tasks
        charged = 0.0
        for i in range(one.tasks):
            assert observation["next_task"] == i
            assert observation["placement"].tolist() == list(placement)
            assert same(observation["energy"][0], one.energy(placement), dyadic)
            mask = one_job.place_mask(one, placement, i)
            assert observation["action_mask"].astype(bool).tolist() == mask
            for j in np.flatnonzero(~np.array(mask)).tolist():
                forbidden += 1
                with pytest.raises(InvalidAction, match=f"action: {j} is infeasible"):
                    env.step(j)
            check_record(env, one, placement, dyadic) if i else None
            j = int(rng.choice(np.flatnonzero(mask)))
            placement = one_job.moved(placement, i, j)
            observation, earned, done, truncated, info = env.step(j)
            now = one_job.optra(one, placement).jct
            wanted = charged - now if reward == "incremental" else (-now if done else 0.0)
            assert earned == wanted if dyadic else earned == pytest.approx(wanted, rel=1e-9, abs=1e-9)
            charged = now
            assert done == (i == one.tasks - 1) and not truncated
        assert observation["next_task"] == one.tasks and observation["action_mask"].all()
        check_record(env, one, placement, dyadic)
        validate(env.record())
        assert same(info["metrics"]["jct"], one_job.optra(one, placement).jct, dyadic)
        assert same(info["metrics"]["energy"], one.energy(placement), dyadic)
        assert same(info["metrics"]["equal_share_jct"], one_job.equal_share(one, placement).jct, dyadic)
        assert info["metrics"]["decisions"] == one.tasks and info["metrics"]["repaired"] == 0
    assert forbidden > of_trials(50)


@pytest.mark.parametrize("dyadic", [True, False])
def test_view_search_runs_as_the_model_says(dyadic: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    ends = {"stopped": 0, "nothing legal": 0, "max_moves": 0}
    for one in instances(120, 12, dyadic):
        env = of(one, tmp_path, view="search", strict=True, max_moves=3)
        observation, _ = env.reset()
        placement = one_job.most_efficient(one)
        charged, moves, done = 0.0, 0, False
        last = one.tasks * one.servers
        while not done:
            assert observation["placement"].tolist() == list(placement)
            assert same(observation["energy"][0], one.energy(placement), dyadic)
            legal = np.array(one_job.search_mask(one, placement)).reshape(-1)
            assert observation["action_mask"].astype(bool).tolist() == [*legal.tolist(), True]
            for bad in np.flatnonzero(~legal)[:2].tolist():
                with pytest.raises(InvalidAction, match="infeasible"):
                    env.step(bad)
            check_record(env, one, placement, dyadic)
            able = np.flatnonzero(legal)
            choice = last if len(able) == 0 or rng.random() < 0.1 else int(rng.choice(able))
            if choice < last:
                placement = one_job.moved(placement, *divmod(choice, one.servers))
                moves += 1
            observation, earned, done, truncated, info = env.step(choice)
            now = one_job.optra(one, placement).jct
            assert earned == charged - now if dyadic else earned == pytest.approx(charged - now, abs=1e-9)
            charged = now
            left = np.array(one_job.search_mask(one, placement)).any()
            assert done == (choice == last or moves == 3 or not left) and not truncated
        ends["stopped" if choice == last else "max_moves" if moves == 3 else "nothing legal"] += 1
        check_record(env, one, placement, dyadic)
        validate(env.record())
        assert info["metrics"]["decisions"] == moves + (choice == last)
    assert all(count > of_trials(5) for count in ends.values()), ends


def test_the_fallback_is_the_plan_of_gsa_where_the_search_ends_later(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    kept = {True: 0, False: 0}
    for one in instances(60, 14, True, tasks=7):
        env = of(one, tmp_path, view="search", strict=True, max_moves=3, fallback="gsa")
        observation, _ = env.reset()
        given = (one.load, one.efficiency, one.matrix(), one.limits, one.energy_cap)
        planned = plan(*given, "gsa", power=one.power or None)
        assert planned is not None
        placement, total, last = list(one_job.most_efficient(one)), 0.0, one.tasks * one.servers
        for moves in range(4):
            able = np.flatnonzero(observation["action_mask"][:last])
            legal = np.array(one_job.search_mask(one, tuple(placement))).reshape(-1) & (moves < 3)
            assert able.tolist() == np.flatnonzero(legal).tolist()
            choice = last if len(able) == 0 or rng.random() < 0.1 else int(rng.choice(able))
            found = one_job.optra(one, tuple(placement)).jct
            observation, earned, done, truncated, info = env.step(choice)
            total += earned
            assert done == (choice == last) and not truncated
            if done:
                break
            placement = list(one_job.moved(tuple(placement), *divmod(choice, one.servers)))
        better = planned.jct < found
        kept[better] += 1
        final = planned.placement.tolist() if better else placement
        check_record(env, one, final, True)
        validate(env.record())
        assert info["metrics"]["jct"] == -total == min(planned.jct, found)
    assert min(kept.values()) > of_trials(5), kept


@pytest.mark.parametrize("dyadic", some([False, True]))
def test_view_plan_runs_as_the_model_says(dyadic: bool, tmp_path: Path) -> None:
    """Any servers, vCPU by Eq. 16: what exceeds the cap is repaired by REC."""
    rng = np.random.default_rng(3)
    repairs = 0
    for one in instances(100, 14, dyadic):
        servers = rng.integers(one.servers, size=one.tasks)
        placement = tuple(servers.tolist())
        action = np.stack([servers.astype(float), np.zeros(one.tasks)], axis=1)
        env = of(one, tmp_path, view="plan")
        observation, _ = env.reset()
        assert (observation["placement"] == -1).all() and "action_mask" not in observation
        fits = one.affords(one.energy(placement))
        if not fits:
            strict = of(one, tmp_path, view="plan", strict=True)
            before, _ = strict.reset()
            with pytest.raises(InvalidAction, match=r"infeasible \(strict=True\)"):
                strict.step(action)
            assert (strict.simulator.arrays.schedule.placement == -1).all() and len(strict.record().job) == 0
        observation, reward, done, truncated, info = env.step(action)
        assert done and not truncated and info.get("repaired", False) == (not fits)
        final = one_job.rec(one, placement)
        assert final is not None and observation["placement"].tolist() == list(final)
        check_record(env, one, final, dyadic)
        validate(env.record())
        assert reward == -info["metrics"]["jct"] == -env.record().final_time
        assert same(info["metrics"]["energy"], one.energy(final), dyadic)
        repairs += not fits
    assert repairs > of_trials(20)


def test_given_vcpu_are_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    for one in instances(60, 15, False):
        placement = one_job.most_efficient(one)
        for evaluation in (one_job.optra(one, placement), one_job.equal_share(one, placement)):
            vcpu = np.array(evaluation.vcpus) * rng.choice([1.0, 0.9, 0.99 * rng.random() + 0.01], one.tasks)
            env = of(one, tmp_path, view="plan", strict=True)
            env.reset()
            _, reward, _, _, info = env.step(np.stack([np.array(placement, float), vcpu], axis=1))
            record = env.record()
            validate(record)
            assert record.amount[:, 0].tolist() == vcpu.tolist()
            leq = np.array([one.leq(i, j) for i, j in enumerate(placement)])
            assert record.end.tolist() == (leq / vcpu).tolist()
            assert reward == -info["metrics"]["jct"] == -(leq / vcpu).max()
            assert metrics(record)["allocated"] == info["metrics"]["allocated"]


def test_vcpu_that_do_not_fit_become_those_of_eq_16(tmp_path: Path) -> None:
    one = next(o for o in instances(100, 16, False) if o.tasks > 2)
    placement = one_job.most_efficient(one)
    good = np.array(one_job.optra(one, placement).vcpus)
    wrong = []
    for change in ({0: 0.0}, {1: -1.0}, {0: 1e-30}, {1: 1e12}):
        wrong.append(np.array([change.get(i, v) for i, v in enumerate(good)]))
    wrong += [good * (1 + 3e-9), -good]
    for vcpu in wrong:
        action = np.stack([np.array(placement, float), vcpu], axis=1)
        env = of(one, tmp_path, view="plan")
        env.reset()
        assert env.step(action)[4]["repaired"]
        check_record(env, one, placement, False)
        strict = of(one, tmp_path, view="plan", strict=True)
        strict.reset()
        with pytest.raises(InvalidAction):
            strict.step(action)
    env = of(one, tmp_path, view="plan")
    env.reset()
    almost = good * (1 + 0.9e-9)  # rounding
    assert not env.step(np.stack([np.array(placement, float), almost], axis=1))[4]["repaired"]
    assert env.record().amount[:, 0].tolist() == almost.tolist()
    validate(env.record())


def test_servers_are_rounded_and_clipped(tmp_path: Path) -> None:
    one = next(o for o in instances(300, 17, False) if o.tasks > 3 and o.servers > 3)
    most = one_job.total(max(one.leq(i, j) for j in range(one.servers)) for i in range(one.tasks))
    one = dataclasses.replace(one, energy_cap=most)  # no REC
    env = of(one, tmp_path, view="plan")
    env.reset()
    action = np.zeros((one.tasks, 2))
    action[:4, 0] = (-3.0, 0.5, 1.49, 1e9)
    observation, *_, info = env.step(action)
    assert info["repaired"] and observation["placement"][:4].tolist() == [0, 1, 1, one.servers - 1]


# Repairs --------------------------------------------------------------------------------------


def test_an_illegal_server_becomes_the_most_efficient_one(tmp_path: Path) -> None:
    repairs = 0
    for one in instances(40, 18, False):
        env = of(one, tmp_path, view="place", action_mask=False)
        env.reset()
        placement: one_job.Placement = (-1,) * one.tasks
        count = 0
        for i in range(one.tasks):
            worst = min(range(one.servers), key=lambda j: one.efficiency[i][j])
            legal = one_job.place_mask(one, placement, i)[worst]
            placement = one_job.moved(placement, i, worst if legal else one_job.most_efficient(one)[i])
            observation, *_, info = env.step(worst)
            assert info.get("repaired", False) == (not legal)
            assert observation["placement"].tolist() == list(placement)
            count += not legal
        assert info["metrics"]["repaired"] == count
        validate(env.record())
        repairs += count
    assert repairs > of_trials(10)


def test_an_illegal_move_stops() -> None:
    env = make(view="search", tasks=6, arity=2, energy_ratio=2.0)
    for seed in range(8):
        observation, _ = env.reset(seed=seed)
        before = observation["placement"].tolist()
        bad = int(observation["action_mask"].argmin())
        observation, _, done, _, info = env.step(bad)
        assert done and info["repaired"] and observation["placement"].tolist() == before
        assert info["metrics"]["repaired"] == info["metrics"]["decisions"] == 1


# Rewards --------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["plan", "place", "search"])
def test_normalized_rewards_are_over_the_pooled_time(view: str) -> None:
    """E_min over the vCPU that the limits allow: in a fat tree the data centre's."""
    parameters = {"view": view, "tasks": 8, "arity": 4, "data_centre_share": 0.1}
    plain, scaled = make(**parameters), make(**parameters, normalize=True)
    rng = np.random.default_rng(0)
    for seed in range(3):
        observation, _ = plain.reset(seed=seed)
        scaled.reset(seed=seed)
        least = (observation["load"] / observation["efficiency"].max(axis=1)).sum()
        pooled = least / (0.1 * observation["capacity"].sum())
        done, total = False, 0.0
        while not done:
            action: Any = np.zeros((8, 2))
            if view != "plan":
                action = int(rng.choice(np.flatnonzero(observation["action_mask"])))
            observation, reward, done, _, info = plain.step(action)
            assert scaled.step(action)[1] == pytest.approx(reward / pooled, rel=1e-12)
            total += reward
        assert total == pytest.approx(-info["metrics"]["jct"], rel=1e-12)
        assert info["metrics"]["jct"] >= pooled * (1 - 1e-12)


def test_the_pooled_time_is_a_lower_bound(tmp_path: Path) -> None:
    for one in instances(60, 19, False):
        env = of(one, tmp_path)
        env.reset()
        bound = linear_programs.lower_bound(one)
        assert env.simulator.state.scalars["pooled"][0] <= bound * (1 + 1e-7)


# Given workloads ------------------------------------------------------------------------------


@pytest.mark.parametrize("observation", ["dict", "features"])
def test_a_given_workload_may_be_smaller(observation: str) -> None:
    """What stands behind its tasks and groups says nothing."""
    env = make(view="place", observation=observation, tasks=6, arity=4)
    rows, mask = ("load", "task_mask") if observation == "dict" else ("jobs", "job_mask")
    for workload in others():
        seen, _ = env.reset(seed=0, options={"workload": workload})
        n, expected = len(workload.jobs["load"]), tables(workload)
        assert env.observation_space.contains(seen)
        assert seen[mask].tolist() == [1] * n + [0] * (6 - n)
        assert (seen[rows][n:] == 0).all() and (seen[rows][:n] != 0).reshape(n, -1).any(axis=1).all()
        if observation == "dict":
            r = len(expected.limits)
            assert seen["limits"].tolist() == [*expected.limits.tolist(), *[0.0] * (ROOM - r)]
            assert (seen["groups"][:r] == expected.groups).all() and not seen["groups"][r:].any()
            assert (seen["placement"][n:] == -1).all() and (seen["efficiency"][n:] == 0).all()


def test_weights_are_seen_where_the_file_has_them(tmp_path: Path) -> None:
    """Such an environment also shows 0 and 1; one of a tree shows nothing else, and says so."""
    rng = np.random.default_rng(1)
    weights = np.where(rng.random((3, 16)) < 0.5, rng.uniform(0.1, 5, (3, 16)), 0.0)
    given = smaller(4, groups=weights, limit=[7, 8, 9])
    env = environment_of(ID, given, tmp_path)
    features = make(tasks=4, arity=4, observation="features")
    plain = smaller(3, groups=(weights != 0).astype(int), limit=[7, 8, 9])
    for workload, shown in ((given, weights), (plain, weights != 0), (given, weights)):
        seen, _ = env.reset(options={"workload": workload})
        assert seen["groups"].dtype == np.float64 and env.observation_space.contains(seen)
        assert seen["groups"].tolist() == [*np.eye(16).tolist(), *shown.astype(float).tolist()]
        features.reset(seed=0, options={"workload": workload})
        done = False
        while not done:
            choice = int(rng.choice(np.flatnonzero(seen["action_mask"])))
            seen, reward, done, _, _ = env.step(choice)
            assert features.step(choice)[1] == reward
        validate(env.record())
        assert env.record().digest() == features.record().digest()
    tree = make(tasks=4, arity=4)
    assert tree.observation_space["groups"] == gym.spaces.Box(0, 1, (ROOM, 16), np.int8)
    with pytest.raises(
        InvalidWorkload, match="cluster.groups: the environment shows weights of 0 and 1 only"
    ):
        tree.reset(options={"workload": given})
    assert tree.reset(options={"workload": plain})[0]["groups"].dtype == np.int8


def test_more_groups_than_there_is_room_for_are_refused() -> None:
    env = make(tasks=4, arity=4)
    many = np.ones((ROOM - 15, 16), dtype=int)  # and the servers themselves
    with pytest.raises(InvalidWorkload, match="the environment holds 29 groups, the workload has 30"):
        env.reset(options={"workload": smaller(4, groups=many, limit=many.sum(axis=1))})


# Tokens ---------------------------------------------------------------------------------------


def frac(value: Any, unit: float) -> Any:
    return np.asarray(value) / (np.asarray(value) + unit)


def parts(value: Any, whole: float) -> Any:
    """A part of the whole, cut off at 1 and -1."""
    value = np.asarray(value, dtype=float)
    if whole <= 0.0:
        return np.sign(value)
    return np.clip(value / whole, -1.0, 1.0)


def check_tokens(one: dict[str, Any], two: dict[str, Any], view: str, env: Any, steps: int) -> None:
    """Tokens against the same state in exact units."""
    n, room, m = int(one["task_mask"].sum()), len(one["load"]), len(one["capacity"])
    load, efficiency, placement = one["load"][:n], one["efficiency"][:n], one["placement"][:n]
    cap, energy = float(one["energy_cap"][0]), float(one["energy"][0])
    leq = load[:, None] / efficiency
    least, best = leq.min(axis=1), efficiency.argmax(axis=1)
    groups = [k for k in range(len(one["limits"])) if one["groups"][k].any()]
    weights = one["groups"][groups].astype(float)
    inside = weights > 0
    limits = one["limits"][groups]
    placed = np.flatnonzero(placement >= 0)
    own = np.zeros(n)
    own[placed] = leq[placed, placement[placed]]

    def group_loads(skip: int = -1) -> Any:
        chosen = [i for i in placed if i != skip]
        return np.array([sum(row[placement[i]] * own[i] for i in chosen) for row in weights])

    def at_servers(values: Any) -> Any:
        return np.array([values[inside[:, j]].max() for j in range(m)])

    jct = float((group_loads() / limits).max())
    pooled = float(env.simulator.state.scalars["pooled"][0])
    unit = jct if view == "search" else pooled
    following = int(one["next_task"]) if view == "place" else room
    rest = sum(least[i] for i in range(n) if placement[i] < 0)
    time = at_servers(group_loads() / limits)
    narrow = np.array([(limits[inside[:, j]] / weights[inside[:, j], j]).min() for j in range(m)])
    pull = np.array([sum(least[i] for i in range(n) if placement[i] < 0 and best[i] == j) for j in range(m)])
    near = (efficiency >= 0.9 * efficiency.max(axis=1, keepdims=True)).mean(axis=1)
    jobs = np.zeros((room, 8))
    jobs[:n, 0], jobs[:n, 1] = frac(load, load.mean()), efficiency.max(axis=1)
    jobs[:n, 2], jobs[:n, 3] = efficiency.mean(axis=1), near
    jobs[placed, 4] = 1.0
    if following < room:
        jobs[following, 5] = 1.0
    jobs[placed, 6] = efficiency[placed, placement[placed]]
    jobs[placed, 7] = frac(time[placement[placed]], unit)
    if view == "search":
        jobs[:n, 5] = time[placement] >= jct * (1 - 1e-9)
    close = {"rtol": 2e-6, "atol": 2e-6}
    np.testing.assert_allclose(two["jobs"], jobs, **close)
    columns = [narrow / narrow.max(), frac(time, unit), frac(pull / narrow, unit)]
    if view == "place" and following < room:
        i = following
        loads = group_loads()
        joined = [(loads + weights[:, j] * leq[i, j]) / limits for j in range(m)]
        after = np.array([joined[j][inside[:, j]].max() for j in range(m)])
        legal = np.array([energy + leq[i, j] + rest - least[i] <= cap * (1 + 1e-12) for j in range(m)])
        spare = cap - energy - rest
        columns += [efficiency[i], frac(after, unit), parts(leq[i] - least[i], spare), legal]
    elif view == "place":
        columns += [np.zeros(m)] * 4
    np.testing.assert_allclose(two["servers"], np.stack(columns, axis=1), **close)
    progress = {"place": len(placed) / n, "plan": float(len(placed) > 0), "search": steps / 200}[view]
    whole = [progress, frac(jct, pooled), min(energy / cap, 1.0)]
    spare = cap - energy - rest
    whole.append(parts(max(spare, 0.0), cap - least.sum()))
    whole += [rest / least.sum(), n / (n + 40.0), frac(load, load.mean())[following] if following < n else 0]
    np.testing.assert_allclose(two["globals"], whole, rtol=1e-5, atol=1e-5)
    assert two["job_mask"].tolist() == one["task_mask"].tolist()
    if view == "place":
        return
    pairs = np.zeros((room, m, 3))
    for i in range(n):
        loads = group_loads(skip=i)
        joined = [(loads + weights[:, j] * leq[i, j]) / limits for j in range(m)]
        new = np.array([joined[j][inside[:, j]].max() for j in range(m)])
        there = own[i] if placement[i] >= 0 else least[i]
        spare = cap - (energy if placement[i] >= 0 else least.sum())
        pairs[i] = np.stack([efficiency[i], frac(new, unit), parts(leq[i] - there, spare)], axis=1)
    np.testing.assert_allclose(two["pairs"], pairs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("view", ["plan", "place", "search"])
def test_features_are_the_exact_units_scaled(view: str, weighted: bool, tmp_path: Path) -> None:
    parameters = {"view": view, "tasks": 7, "arity": 4, "energy_ratio": 1.5}
    rng = np.random.default_rng(0)
    if weighted:
        weights = np.where(rng.random((5, 16)) < 0.5, rng.uniform(0.1, 5, (5, 16)), 0.0)
        given = smaller(7, groups=weights, limit=rng.uniform(1, 9, 5))
        exact, tokens = (
            environment_of(ID, given, tmp_path, view=view, observation=kind) for kind in ("dict", "features")
        )
    else:
        exact, tokens = make(**parameters), make(observation="features", **parameters)
    other = None if weighted else smaller(5, arity=4)
    play_both(exact, tokens, lambda one, two, step: check_tokens(one, two, view, tokens, step), other)
