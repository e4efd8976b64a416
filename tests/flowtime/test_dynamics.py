"""The compiled dynamics against the plain-Python model: random allocations have equal consequences."""

from __future__ import annotations

import pickle
import random
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import schedgym  # noqa: F401  (registers the ids)
from schedgym.errors import InvalidAction, InvalidParameter
from schedgym.papers.xu2021 import model
from schedgym.problems.flowtime.dynamics import DYNAMICS
from schedgym.problems.flowtime.metrics import fates, validate
from schedgym.problems.flowtime.problem import FlowtimeParameters
from schedgym.problems.flowtime.simulator import FlowtimeSimulator
from schedgym.problems.flowtime.workload import make_workload
from tests.flowtime.instances import random_instance, workload_of
from tests.long import some, trials
from tests.papers.xu2021.test_model import VECTOR_1, VECTOR_8
from tests.playing import environment_of, play_both
from tests.tables import table

ID = "schedgym/FlowtimePacking-v0"
VECTORS = {"1d": [VECTOR_1], "mapreduce": [VECTOR_8]}


def instances(kind: str, count: int, seed: int) -> list[model.Instance]:
    """The specification's vectors of this kind, and random instances."""
    rng = random.Random(seed)
    return [*VECTORS.get(kind, ()), *(random_instance(rng, kind) for _ in trials(count))]


def make(tmp_path: Any, instance: model.Instance, kind: str, **parameters: Any) -> Any:
    values = {"window": "all", "action_mask": False, "kind": kind, **parameters}
    return environment_of(ID, workload_of(instance), tmp_path, **values)


def random_cores(rng: np.random.Generator, observation: dict[str, Any]) -> Any:
    """A random feasible allocation of the visible rows, [n, M]."""
    n = int(observation["active"][0])
    free = observation["server_cpu"].copy()
    memory = observation["server_memory"].copy() if "server_memory" in observation else None
    cores = np.zeros((n, len(free)), dtype=np.int64)
    for r in rng.permutation(n):
        left = int(rng.integers(0, observation["cap"][r] + 1)) if rng.random() < 0.8 else 0
        for i in rng.permutation(len(free)):
            if memory is not None and observation["memory"][r] > memory[i]:
                continue
            given = min(left, int(free[i]), int(rng.integers(0, 4)))
            cores[r, i] = given
            free[i] -= given
            left -= given
            if memory is not None and given:
                memory[i] -= observation["memory"][r]
    return cores


def play(env: Any, instance: model.Instance, rng: np.random.Generator, mode: str | None, k: float) -> Any:
    """Random allocations to the end; returns what the model makes of them, the return, and the info."""
    observation, _ = env.reset()
    cluster = model.Cluster(instance, mode, k)
    allocations: list[model.Matrix] = []
    nobody = [[0] * len(instance.cpu) for _ in instance.jobs]
    total, done = 0.0, False
    while not done:
        slot = int(observation["slot"][0])
        while len(allocations) < slot - 1:
            allocations.append([list(row) for row in nobody])
        n = int(observation["active"][0])
        numbers = observation["job"][:n].tolist()
        visible = [
            j for j, job in enumerate(instance.jobs) if job.arrival < slot and cluster.remaining(j) > 0
        ]
        assert numbers == visible
        for r, j in enumerate(numbers):
            entry = cluster.entry(j, slot)
            assert observation["age"][r] == entry.age
            assert observation["cap"][r] == entry.cap
            assert Fraction(observation["slots_left"][r]) == Fraction(float(entry.slots))
            assert observation["remaining"][r] == pytest.approx(float(entry.left), rel=1e-15)
            assert observation["volume"][r] == entry.whole
            before = allocations[-1][j] if allocations else nobody[j]
            assert observation["held"][r].tolist() == before
            ran = next((row[j] for row in reversed(allocations) if any(row[j])), nobody[j])
            assert observation["last"][r].tolist() == [int(x > 0) for x in ran]
            if "phase" in observation:
                assert observation["phase"][r] == entry.phase
                for z, left in enumerate(cluster.left[j]):
                    assert observation["task_remaining"][r, z, : len(left)].tolist() == left
            elif "memory" in observation:
                assert observation["memory"][r] == entry.reserve
        for name in ("job", "arrival", "age", "remaining", "cap", "held", "last"):
            assert not observation[name][n:].any()
        cores = random_cores(rng, observation)
        action = np.zeros(env.action_space.shape, dtype=np.int64)
        action[:n] = cores
        observation, reward, terminated, truncated, info = env.step(action)
        total += reward
        done = terminated or truncated
        u = [list(row) for row in nobody]
        for r, j in enumerate(numbers):
            u[j] = cores[r].tolist()
            cluster.serve(j, sum(u[j]))
        allocations.append(u)
    outcome = model.replay(instance, allocations, k=k, mode=mode)
    return outcome, total, info, truncated


@pytest.mark.parametrize(
    ("kind", "k", "alpha", "mode"),
    [
        *((kind, 2.5, 3.0, None) for kind in ("1d", "2d", "mapreduce")),
        *(("2d", 2.0, 0.0, mode) for mode in model.MODES),
        *some(
            [
                *((kind, k, 0.5, None) for kind in ("1d", "2d", "mapreduce") for k in (1.0, 2.0, 3.0)),
                *(("1d", 2.0, 0.0, mode) for mode in model.MODES),
            ],
            keep=0,
            late=4,
        ),
    ],
)
def test_random_allocations(kind: str, k: float, alpha: float, mode: str | None, tmp_path: Any) -> None:
    """With a mode of estimation, the declarations are mistaken."""
    rng, chance = np.random.default_rng(int(10 * k)), random.Random(5)
    for given in instances(kind, len(trials(40)), int(100 * k)):
        instance = given if mode is None else model.declare(given, chance, 0.5)
        own = {} if mode is None else {"estimation": mode}
        env = make(tmp_path, instance, kind, view="allocation", strict=True, norm=k, alpha=alpha, **own)
        outcome, total, info, truncated = play(env, instance, rng, mode, k)
        assert not truncated
        record = env.record()
        validate(record)
        assert fates(env.record())["completion"] == outcome.completion
        norm = sum(flowtime**k for flowtime in model.flowtimes(instance, outcome))
        charged = alpha * sum(model.switching_cost(instance, outcome))
        assert total == pytest.approx(-norm - charged, rel=1e-9)
        metrics = model.metrics(instance, outcome, k)
        for mine, theirs in table(__file__, "test_random_allocations"):
            assert info["metrics"][mine] == pytest.approx(metrics[theirs], rel=1e-9, abs=1e-12), mine
        assert info["metrics"]["cost"] == pytest.approx(-total, rel=1e-9)


def test_an_endless_schedule_is_cut_off(tmp_path: Any) -> None:
    instance = model.Instance([model.Job(0, 2, 1), model.Job(3, 1, 1)], [2])
    env = make(tmp_path, instance, "1d", view="allocation", gamma=5)
    env.reset()
    total, steps, truncated = 0.0, 0, False
    while not truncated:
        _, reward, terminated, truncated, info = env.step(np.zeros(env.action_space.shape, dtype=np.int64))
        assert not terminated
        total, steps = total + reward, steps + 1
    last = model.max_slots(instance, 5)
    assert steps == last and info["metrics"]["makespan"] == last
    assert total == -(last**2 + (last - 3) ** 2)
    validate(env.record())


def test_slots_without_jobs_are_skipped(tmp_path: Any) -> None:
    instance = model.Instance([model.Job(4, 1, 1), model.Job(90, 1, 2)], [2])
    env = make(tmp_path, instance, "1d", view="rule")
    observation, _ = env.reset()
    assert observation["slot"] == 5
    observation, reward, *_ = env.step(0)
    assert reward == -1.0 and observation["slot"] == 91
    assert env.step(0)[2]


def test_repair_takes_from_the_last_servers_and_the_latest_jobs(tmp_path: Any) -> None:
    jobs = [model.Job(0, 2, 3, 5), model.Job(0, 2, 2, 4), model.Job(0, 2, 2, 1)]
    instance = model.Instance(jobs, [2, 2], [9, 6])
    env = make(tmp_path, instance, "2d", view="allocation")
    env.reset()
    _, _, _, _, info = env.step(np.array([[2, 2], [1, 1], [1, 0]]))
    # job 0 has a cap of 3; server 0 has 2 cores and server 1 room for 6 GB
    assert info["repaired"]
    assert env.simulator.arrays.rows.held[0].tolist() == [[2, 1], [0, 0], [0, 0]]
    strict = make(tmp_path, instance, "2d", view="allocation", strict=True)
    strict.reset()
    with pytest.raises(InvalidAction):
        strict.step(np.array([[2, 2], [1, 1], [1, 0]]))
    assert strict.simulator.arrays.rows.granted.sum() == 0


@pytest.mark.parametrize("kind", ["1d", "2d", "mapreduce"])
def test_picks_are_feasible_and_masked(kind: str, tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    for instance in instances(kind, 30, 3):
        env = make(tmp_path, instance, kind, view="pick", action_mask=True, window=3, strict=True)
        observation, _ = env.reset()
        done = False
        while not done:
            n = int(observation["job_mask"].sum())
            for r in range(3):
                able = False
                if r < n and observation["granted"][r].sum() < observation["cap"][r]:
                    able = any(
                        observation["free"][i] > 0
                        and (
                            kind != "2d"
                            or observation["granted"][r, i] > 0
                            or observation["memory"][r] <= observation["free_memory"][i]
                        )
                        for i in range(len(instance.cpu))
                    )
                assert bool(observation["action_mask"][r]) == able
            assert observation["action_mask"][3] == 1
            slot = int(observation["slot"][0])
            choice = (
                int(rng.choice(np.flatnonzero(observation["action_mask"][:3]))) if rng.random() < 0.9 else 3
            )
            observation, reward, terminated, truncated, _ = env.step(choice)
            assert (reward < 0) == (done or int(observation["slot"][0]) != slot or terminated or truncated)
            done = terminated or truncated
        validate(env.record())


@pytest.mark.parametrize("view", ["allocation", "pick", "priority"])
@pytest.mark.parametrize("kind", ["1d", "2d", "mapreduce"])
def test_features_are_the_exact_units_scaled(view: str, kind: str) -> None:
    parameters = {"view": view, "kind": kind, "jobs": 30, "window": 6, "servers": "8+4+2"}
    exact, tokens = (
        gym.make(ID, disable_env_checker=True, observation=units, **parameters).unwrapped
        for units in ("dict", "features")
    )
    play_both(exact, tokens, lambda one, two, step: check_tokens(one, two, kind))


def check_tokens(one: dict[str, Any], two: dict[str, Any], kind: str) -> None:
    """Tokens against the same state in exact units."""
    cpu = one["server_cpu"]
    cores, n = float(cpu.sum()), int(one["job_mask"].sum())
    phased = kind == "mapreduce"
    length = one["processing"].sum(axis=1) if phased else one["processing"]
    demand = one["demand"][np.arange(len(one["age"])), one["phase"]] if phased else one["demand"]

    def scaled(x: Any, scale: float = 50.0) -> Any:
        return x / (x + scale)

    columns = [
        scaled(one["age"]),
        scaled(length),
        demand / (demand + cores),
        one["memory"] / one["server_memory"].max() if kind == "2d" else 0.0 * one["age"],
        scaled(one["slots_left"]),
        scaled(one["remaining"], 50.0 * cores),
        np.minimum(one["cap"] / cores, 1.0),
        one["held"].sum(axis=1) / cores,
        one["granted"].sum(axis=1) / cores if "granted" in one else 0.0 * one["age"],
        one["phase"] if phased else 0.0 * one["age"],
        *(one["held"] / cpu).T,
    ]
    expected = np.stack(columns, axis=1).astype(float)
    expected[n:] = 0.0
    np.testing.assert_allclose(two["jobs"], expected, rtol=1e-6, atol=1e-7)
    free = one["free"] if "free" in one else cpu
    np.testing.assert_allclose(two["servers"][:, 0], cpu / cores, rtol=1e-6)
    np.testing.assert_allclose(two["servers"][:, 1], free / cpu, rtol=1e-6)
    if kind == "2d":
        memory = one["server_memory"]
        np.testing.assert_allclose(two["servers"][:, 2], memory / memory.max(), rtol=1e-6)
        free = one["free_memory"] if "free_memory" in one else memory
        np.testing.assert_allclose(two["servers"][:, 3], free / memory, rtol=1e-6)
    assert two["globals"][4] == 0.5  # 1 / k
    counts = scaled(np.array([one["active"][0], one["backlog"][0]]), 32.0)
    slot = one["slot"][0]
    np.testing.assert_allclose(two["globals"][:3], [slot / (slot + 1000.0), *counts], rtol=1e-6)
    if one["backlog"][0] == 0:
        np.testing.assert_allclose(
            two["globals"][3], scaled(one["remaining"].sum(), 50.0 * cores), rtol=1e-6, atol=1e-9
        )


def test_a_file_of_another_kind_is_refused(tmp_path: Any) -> None:
    workload = make_workload([0], [1], [1], [1, 1], memory=[1], server_memory=[2, 2])
    with pytest.raises(InvalidParameter, match="of kind '2d', got '1d'"):
        environment_of(ID, workload, tmp_path)


@pytest.mark.parametrize("view", ["allocation", "priority", "pick", "rule"])
def test_without_latencies_no_transport_is_compiled(view) -> None:
    """The kernel that can place by latency is the one that a workload with latencies gets."""
    parameters = {"kind": "mapreduce", "view": view, "jobs": 3}
    plain, late = (
        FlowtimeSimulator(FlowtimeParameters(**parameters, latency=latency), 1, "schedgym/FlowtimePacking-v0")
        for latency in (False, True)
    )
    assert late.kernels[0] is DYNAMICS.decide[DYNAMICS.general(view)]
    assert (plain.kernels[0] is late.kernels[0]) == (view in ("allocation", "pick"))
    assert pickle.loads(pickle.dumps(plain)).kernels[0] is plain.kernels[0]
