"""Metrics, fates and the validator of schedules: against the exact model."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schedgym  # noqa: F401  (registers the ids)
from schedgym.core.arrays import allocate
from schedgym.core.record import ScheduleRecord
from schedgym.core.tables import MADE_HERE, tabled
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.papers.shi2017.model import one_job
from schedgym.problems.single_job import metrics as module
from schedgym.problems.single_job.bounds import lower_bound
from schedgym.problems.single_job.metrics import fates, metrics, read_limits, validate
from schedgym.problems.single_job.problem import METRICS
from schedgym.problems.single_job.workload import tables
from tests.long import long
from tests.parallel_jct import random_jobs

ROOT = Path(__file__).resolve().parents[2]
NAMES = [metric.name for metric in METRICS if metric.recorded]
FIELDS = ("job", "server", "start", "end", "amount")


def make_record(
    workload: Workload, placement: tuple[int, ...], evaluation: one_job.Evaluation
) -> ScheduleRecord:
    tasks = len(placement)
    return ScheduleRecord(
        workload,
        job=np.arange(tasks),
        server=np.array(placement),
        start=np.zeros(tasks),
        end=np.array([float(x) for x in evaluation.times]),
        amount=np.array([[float(x)] for x in evaluation.vcpus]),
        final_time=float(evaluation.jct),
        truncated=False,
    )


def plans(count: int, seed: int) -> Iterator[tuple[one_job.SingleJob, tuple[int, ...], one_job.Evaluation]]:
    """Random placements within the cap, by Eq. 16 or equal shares; nothing is exhausted."""
    rng = random.Random(seed)
    while count:
        own = {"dyadic": count % 2 == 0, "exhausted": 0.0, "feasible": True, "power": count % 4 < 2}
        instance = random_jobs.random_instance(rng, weighted=count % 3 < 2, **own)
        placement = one_job.rec(instance, one_job.random_placement(instance, rng))
        assert placement is not None
        yield instance, placement, (one_job.optra if count % 3 else one_job.equal_share)(instance, placement)
        count -= 1


def test_metrics_equal_the_model() -> None:
    for instance, placement, evaluation in plans(200, 1):
        workload = random_jobs.job_workload(instance)
        record = make_record(workload, placement, evaluation)
        validate(record)
        computed = metrics(record)
        expected = {
            "jct": float(evaluation.jct),
            "energy": float(evaluation.energy),
            "energy_share": float(evaluation.energy) / float(workload.jobs["energy_cap"]),
            "allocated": float(sum(evaluation.vcpus)),
            "utilization": float(sum(evaluation.vcpus)) / (10.0 * instance.servers),
            "mean_task_time": float(sum(evaluation.times)) / instance.tasks,
            "servers_used": len(set(placement)),
            "equal_share_jct": float(one_job.equal_share(instance, placement).jct),
        }
        assert list(computed) == NAMES
        assert computed == pytest.approx(expected, rel=1e-12)
        assert computed["jct"] == record.final_time
        assert fates(record) == {
            "server": list(placement),
            "cpu": [float(x) for x in evaluation.vcpus],
            "completion": [float(x) for x in evaluation.times],
        }


def tree_workload(arity: int, cpu: np.ndarray, **cluster: Any) -> Workload:
    efficiency = np.ones((1, len(cpu)))
    return Workload(
        "single-job",
        {"load": np.array([6.0]), "efficiency": efficiency, "energy_cap": np.array(9.0)},
        {"cpu": cpu, "arity": np.array(arity), **cluster},
    )


@pytest.mark.parametrize("arity", [2, 4, 6])
@pytest.mark.parametrize("caps", [True, False])
def test_limits_of_a_fat_tree(arity: int, caps: bool) -> None:
    cpu = np.random.default_rng(arity).uniform(1, 10, arity**3 // 4)
    own = read_limits(tree_workload(arity, cpu, beta=np.array([0.5, 0.4, 0.3]), server_caps=np.array(caps)))
    known = one_job.fat_tree(arity, 0.5, 0.4, 0.3, caps)
    assert [tuple(np.flatnonzero(row)) for row in own.weight] == [limit.servers for limit in known]
    assert own.share.tolist() == [limit.share for limit in known]
    assert own.absolute.tolist() == list(one_job.limits_now(known, cpu.tolist()))
    assert own.name[-1] == "data centre [0]" and (own.name[0] == "server [0]") == caps
    assert len(own.name) == len(known)
    default = read_limits(tree_workload(arity, cpu))
    assert default.share[-1] == 0.2 and default.share[len(cpu)] == 0.3


def test_limits_of_groups() -> None:
    cpu = np.array([4.0, 6.0])
    groups = {"groups": np.array([[1, 1], [0, 1]])}
    shares = read_limits(tree_workload(2, cpu, **groups, beta=np.array([0.5, 0.25])))
    assert shares.absolute.tolist() == [4.0, 6.0, 5.0, 1.5] and shares.share.tolist() == [1, 1, 0.5, 0.25]
    heavy = {"groups": np.array([[1.0, 0.5], [0.0, 4.0]])}
    shares = read_limits(tree_workload(2, cpu, **heavy, beta=np.array([0.5, 0.25])))
    assert shares.absolute.tolist() == [4.0, 6.0, 3.5, 6.0]
    assert shares.weight.tolist() == [[1, 0], [0, 1], [1, 0.5], [0, 4]]
    given = read_limits(tree_workload(2, cpu, **groups, limit=np.array([7.0, 8.0]), server_caps=False))
    assert given.absolute.tolist() == [7.0, 8.0] and np.isnan(given.share).all()
    assert given.name == ("group [0]", "group [1]")


def test_tasks_that_are_not_placed_are_left_out() -> None:
    workload = random_jobs.job_workload(
        one_job.SingleJob((6.0, 3.0), ((1.0, 1.0),) * 2, ((0, 1), (0,)), (3.0, 1.0), 20.0)
    )
    record = make_record(workload, (1, 0), one_job.Evaluation((3.0, 3.0), (2.0, 1.0), 3.0, 9.0))
    part = dataclasses.replace(record, **{name: getattr(record, name)[:1] for name in FIELDS})
    computed = metrics(part)
    assert computed["energy"] == 6.0 and computed["equal_share_jct"] == 2.0 and computed["servers_used"] == 1
    assert fates(part) == {"server": [1, None], "cpu": [2.0, None], "completion": [3.0, None]}


def test_measure_takes_rows_of_any_size_and_leaves_the_others() -> None:
    made = list(plans(10, 4))
    mask = np.array([x % 3 != 1 for x in range(len(made))])
    sizes = {"task": 7, "server": 6, "group": 12, "shown_group": 0, "weighted_group": 0, "pair": 60}
    jobs, schedule = allocate(module.Jobs, sizes, len(made)), allocate(module.Schedule, sizes, len(made))
    found = allocate(module.Metrics, {}, len(made))
    for array in (*jobs[1:], *schedule):
        array[:] = -5  # behind what a workload fills
    schedule.placement[:] = 3
    found.values.view(np.float64)[:] = -1.0
    records = []
    for x, (instance, where, evaluation) in enumerate(made):
        records.append(make_record(random_jobs.job_workload(instance), where, evaluation))
        none = np.zeros((0, instance.servers))
        given = tables(records[-1].workload)._asdict() | {"groups": none, "weights": none}
        # servers that the workload lacks have no capacity, and are in no group
        given["capacity"] = np.append(given["capacity"], np.zeros(6 - instance.servers))
        for name, values in given.items():
            getattr(jobs, name)[(x, *(slice(length) for length in values.shape))] = values
        k = instance.tasks
        schedule.placement[x, :k], schedule.vcpu[x, :k] = where, evaluation.vcpus
        schedule.time[x, :k] = evaluation.times
    module.measure(*tabled(module.Episode(jobs, schedule, found, MADE_HERE), sizes), mask)
    for x, record in enumerate(records):
        out = {name: float(found.values[name][x]) for name in NAMES}
        assert out == (metrics(record) if mask[x] else dict.fromkeys(NAMES, -1.0))


@pytest.mark.parametrize("view", ["plan", "place", "search"])
@pytest.mark.parametrize("caps", [True, False])
def test_records_of_the_environment(view: str, caps: bool) -> None:
    """Random actions: a valid record, the environment's metrics bit for bit, and no better than the bound."""
    values: dict[str, Any] = {"view": view, "tasks": 9, "arity": 4, "server_caps": caps}
    env = gym.make("schedgym/SingleJob-v0", disable_env_checker=True, **values).unwrapped
    env.action_space.seed(1)
    rng = np.random.default_rng(1)
    for seed in range(3):
        observation, _ = env.reset(seed=seed)
        done = False
        while not done:
            if view == "plan":
                action = env.action_space.sample()
            else:
                action = int(rng.choice(np.flatnonzero(observation["action_mask"])))
            observation, _, done, _, info = env.step(action)
        record = env.record()
        validate(record)
        assert metrics(record).items() <= info["metrics"].items()
        assert lower_bound(record.workload) <= info["metrics"]["jct"] * (1 + 1e-9)


def numbers_of_some_schedules() -> list[list[float]]:
    rows = []
    for instance, placement, evaluation in plans(6, 9):
        rows.append(
            [*metrics(make_record(random_jobs.job_workload(instance), placement, evaluation)).values()]
        )
    return rows


@long
def test_compiled_and_interpreted_agree() -> None:
    name = numbers_of_some_schedules.__name__
    code = f"import json; from {__name__} import {name}; print(json.dumps({name}()))"
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
    )
    assert result.returncode == 0, result.stderr
    np.testing.assert_allclose(numbers_of_some_schedules(), json.loads(result.stdout), rtol=1e-12)


# Validator ------------------------------------------------------------------------------------


def is_valid(record: ScheduleRecord) -> bool:
    """The rules, task by task and group by group, for schedules without close calls."""
    jobs, cluster = record.workload.jobs, record.workload.cluster
    rows = list(zip(*(getattr(record, name).tolist() for name in FIELDS), strict=True))
    tasks, servers = len(jobs["load"]), len(cluster["cpu"])
    if [row[0] for row in rows] != list(range(tasks)) or record.truncated:
        return False
    energy = 0.0
    for i, j, start, end, (vcpu,) in rows:
        if j not in range(servers) or start != 0 or not vcpu > 0 or end > record.final_time:
            return False
        leq = jobs["load"][i] / jobs["efficiency"][i, j]
        energy += leq * (jobs["power"][i] if "power" in jobs else 1.0)
        if abs(vcpu * end - leq) > 1e-6 * leq:
            return False
    for group, limit in zip(cluster["groups"], cluster["limit"], strict=True):
        if sum(group[row[1]] * row[4][0] for row in rows) > limit * (1 + 1e-6):
            return False
    return energy <= jobs["energy_cap"] * (1 + 1e-6) and record.final_time == max(row[3] for row in rows)


def changed(record: ScheduleRecord, **fields: Any) -> ScheduleRecord:
    return dataclasses.replace(record, **fields)


def put(array: np.ndarray, row: Any, value: Any) -> np.ndarray:
    copy = array.copy()
    copy[row] = value
    return copy


@settings(deadline=None)
@given(st.integers(0, 10**6), st.data())
def test_validate_rejects_exactly_what_breaks_a_rule(seed: int, data: st.DataObject) -> None:
    ((instance, placement, evaluation),) = plans(1, seed)
    record = make_record(random_jobs.job_workload(instance), placement, evaluation)
    validate(record)
    assert is_valid(record)
    for _ in range(data.draw(st.integers(1, 2))):
        rows = len(record.job)
        row = data.draw(st.integers(0, rows - 1))
        factor = data.draw(st.sampled_from([0.5, 0.9, 1.1, 2.0]))
        workload = record.workload
        kinds = ("server", "time", "slower", "vcpu", "drop", "twice", "limit", "cap", "start", "truncated")
        kinds += ("weight",)
        kind = data.draw(st.sampled_from(kinds))
        if kind == "server":
            record = changed(
                record, server=put(record.server, row, data.draw(st.integers(-1, instance.servers)))
            )
        elif kind in ("time", "slower"):
            which = row if kind == "time" else slice(None)
            record = changed(record, end=put(record.end, which, record.end[which] * factor))
            if kind == "slower":
                record = changed(record, amount=record.amount / factor, final_time=record.final_time * factor)
        elif kind == "vcpu":
            record = changed(record, amount=put(record.amount, row, record.amount[row] * factor))
        elif kind == "drop":
            kept = np.arange(rows) != row
            record = changed(record, **{name: getattr(record, name)[kept] for name in FIELDS})
        elif kind == "twice":
            again = np.sort(np.append(np.arange(rows), row))
            record = changed(record, **{name: getattr(record, name)[again] for name in FIELDS})
        elif kind == "limit":
            cluster = {**workload.cluster, "limit": workload.cluster["limit"] * factor}
            record = changed(record, workload=dataclasses.replace(workload, cluster=cluster))
        elif kind == "weight":
            groups = put(workload.cluster["groups"], (slice(None), record.server[row]), 0.0)
            groups += factor * (workload.cluster["groups"] - groups)
            cluster = {**workload.cluster, "groups": groups}
            record = changed(record, workload=dataclasses.replace(workload, cluster=cluster))
        elif kind == "cap":
            jobs = {**workload.jobs, "energy_cap": np.array(record_energy(record) * factor)}
            record = changed(record, workload=dataclasses.replace(workload, jobs=jobs))
        elif kind == "start":
            record = changed(record, start=put(record.start, row, 0.5 * record.end[row]))
        else:
            record = changed(record, truncated=not record.truncated)
        if len(record.job) == 0 or not is_valid(record):
            break
    if is_valid(record):
        validate(record)
    else:
        with pytest.raises(InvalidSchedule):
            validate(record)


def record_energy(record: ScheduleRecord) -> float:
    jobs = record.workload.jobs
    return float((jobs["load"][record.job] / jobs["efficiency"][record.job, record.server]).sum())


def example() -> ScheduleRecord:
    """Two servers of 1 and 9 vCPU; both may give 3 in all. Test vector 1 with a cap of 10."""
    workload = Workload(
        "single-job",
        {"load": np.array([6.0, 3.0]), "efficiency": np.ones((2, 2)), "energy_cap": np.array(10.0)},
        {"cpu": np.array([9.0, 1.0]), "groups": np.array([[1, 1]]), "beta": np.array([0.3])},
    )
    return make_record(workload, (0, 1), one_job.Evaluation((3.0, 3.0), (2.0, 1.0), 3.0, 9.0))


def with_jobs(record: ScheduleRecord, **fields: Any) -> dict[str, Any]:
    return {"workload": dataclasses.replace(record.workload, jobs={**record.workload.jobs, **fields})}


def with_cluster(record: ScheduleRecord, **fields: Any) -> dict[str, Any]:
    cluster = {**record.workload.cluster, **fields}
    return {"workload": dataclasses.replace(record.workload, cluster=cluster)}


MUTATIONS: list[tuple[str, Callable[[ScheduleRecord], dict[str, Any]]]] = [
    ("end: must have one value per row", lambda r: {"end": r.end[:-1]}),
    ("amount: must have the shape [2, 1], got [2, 2]", lambda r: {"amount": np.ones((2, 2))}),
    ("row [1] names a task that does not exist", lambda r: {"job": put(r.job, 1, 2)}),
    ("row [0] names a server that does not exist", lambda r: {"server": put(r.server, 0, -1)}),
    ("row [1] has no start or end", lambda r: {"end": put(r.end, 1, math.nan)}),
    ("row [1] ends before it starts", lambda r: {"start": put(r.start, 1, 4.0)}),
    ("row [0] has no amount", lambda r: {"amount": put(r.amount, 0, math.inf)}),
    ("row [0] ends after the episode", lambda r: {"final_time": 2.0}),
    ("truncated: an episode cannot end with tasks left", lambda r: {"truncated": True}),
    ("task [0] runs more than once", lambda r: {"job": np.zeros(2, dtype=np.int64)}),
    ("task [1] never runs", lambda r: {name: getattr(r, name)[:1] for name in FIELDS}),
    ("rows must be sorted by task", lambda r: {name: getattr(r, name)[::-1] for name in FIELDS}),
    ("task [1] does not start at 0", lambda r: {"start": put(r.start, 1, 1.0)}),
    ("task [0] has no vCPU", lambda r: {"amount": put(r.amount, 0, 0.0)}),
    ("task [0] does not do its work: 3 of 6 vCPU s", lambda r: {"amount": put(r.amount, 0, 1.0)}),
    ("task [1] does not do its work: 3 of 6 vCPU s", lambda r: with_jobs(r, load=np.array([6.0, 6.0]))),
    ("server [1]: 1 of 0.9 vCPU", lambda r: with_cluster(r, cpu=np.array([9.0, 0.9]))),
    ("group [0]: 3 of 2.5 vCPU", lambda r: with_cluster(r, beta=np.array([0.25]))),
    # 2 vCPU count 4 on server 0, and 1 counts 3 on server 1; of 2 * 9 + 3 * 1 the job may have 0.3
    ("group [0]: 7 of 6.3 vCPU", lambda r: with_cluster(r, groups=np.array([[2.0, 3.0]]))),
    ("energy: 9 of 8 vCPU s", lambda r: with_jobs(r, energy_cap=np.array(8.0))),
    ("final_time: must be 3, when the last task ends", lambda r: {"final_time": 4.0}),
]


@pytest.mark.parametrize(("message", "mutate"), MUTATIONS, ids=[message for message, _ in MUTATIONS])
def test_messages(message: str, mutate: Callable[[ScheduleRecord], dict[str, Any]]) -> None:
    record = example()
    validate(record)
    with pytest.raises(InvalidSchedule) as error:
        validate(changed(record, **mutate(record)))
    assert str(error.value) == message


def test_limits_hold_up_to_rounding() -> None:
    record = example()
    for excess, valid in ((5e-10, True), (1e-8, False)):
        faster = changed(
            record,
            amount=record.amount * (1 + excess),
            end=record.end / (1 + excess),
            final_time=3.0 / (1 + excess),
        )
        if valid:
            validate(faster)
        else:
            with pytest.raises(InvalidSchedule, match=r"^server \[1\]: 1.00000001 of 1 vCPU$"):
                validate(faster)
