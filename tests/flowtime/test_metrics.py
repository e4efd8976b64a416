"""Metrics, fates and the validator of schedules: against the plain-Python model and slow definitions."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedgym.core.arrays import allocate, sizes_of
from schedgym.core.record import ScheduleRecord
from schedgym.core.tables import tabled
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.papers.xu2021 import model
from schedgym.papers.xu2021.model import Instance, Job, MapReduceJob
from schedgym.problems.flowtime import metrics as of_metrics
from schedgym.problems.flowtime.metrics import Episode, Metrics, Objective, Schedule, fates, metrics, validate
from schedgym.problems.flowtime.problem import METRICS, FlowtimeParameters
from schedgym.problems.flowtime.workload import Jobs, Source, generate, make_mapreduce, make_workload, tables
from tests.flowtime.instances import random_instance
from tests.long import long, some

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("1d", "2d", "mapreduce")
NAMES = [metric.name for metric in METRICS if metric.recorded]
POLICIES = {
    "1d": (*model.PRIORITY_RULES, "tetris", "drf", "ocorp", "ocorp+"),
    "2d": (*model.PRIORITY_RULES, "tetris", "drf", "ocorp", "ocorp+m"),
    "mapreduce": (*model.PRIORITY_RULES, "ocorp"),
}


def workload_of(instance: Instance) -> Workload:
    """An instance of the model, with what its jobs declare."""
    jobs = instance.jobs
    columns: dict[str, Any] = {"arrival": [job.arrival for job in jobs]}
    columns |= {name: [getattr(job, name) for job in jobs] for name in ("processing", "cpu")}
    if model.is_mapreduce(instance):
        return make_mapreduce(tasks=[job.tasks for job in jobs], servers=instance.cpu, **columns)
    names = ["declared_cpu"]
    if instance.memory is not None:
        names += ["memory", "declared_memory"]
        columns["server_memory"] = instance.memory
    for name in names:
        if getattr(jobs[0], name) is not None:
            columns[name] = [getattr(job, name) for job in jobs]
    return make_workload(servers=instance.cpu, **columns)


def record_of(instance: Instance, outcome: model.Outcome) -> ScheduleRecord:
    """The model's schedule as rows."""
    rows = []
    for j, job in enumerate(instance.jobs):
        for i in range(len(instance.cpu)):
            cores = [u[j][i] for u in outcome.allocations]
            start = 0
            for t in range(1, len(cores) + 1):
                if t == len(cores) or cores[t] != cores[start]:
                    if cores[start] > 0:
                        held = [] if instance.memory is None else [model.declared_memory(job)]
                        rows.append((start, j, i, t, [cores[start], *held]))
                    start = t
    rows.sort()
    return ScheduleRecord(
        workload=workload_of(instance),
        job=np.array([row[1] for row in rows], dtype=np.int64),
        server=np.array([row[2] for row in rows], dtype=np.int64),
        start=np.array([row[0] for row in rows], dtype=float),
        end=np.array([row[3] for row in rows], dtype=float),
        amount=np.array([row[4] for row in rows], dtype=float).reshape(
            len(rows), 1 if instance.memory is None else 2
        ),
        final_time=float(outcome.slots),
        truncated=None in outcome.completion,
    )


def runs(count: int, seed: int, kind: str) -> Iterator[tuple[Instance, model.Outcome]]:
    """Random instances under random policies; some mis-estimated, some cut off."""
    rng = random.Random(seed)
    for x in range(count):
        instance = random_instance(rng, kind)
        options: dict[str, Any] = {"gamma": rng.choice([20, 60, 4000])}
        if kind != "mapreduce" and x % 3 == 1:
            instance = model.declare(instance, rng, 0.5)
            options["mode"] = rng.choice(model.MODES)
        if x % 4 == 3:
            last = max(job.arrival for job in instance.jobs)
            options["limit"] = rng.randint(1, last + 8)
        policy = rng.choice(POLICIES[kind])
        options["packing"] = rng.choice(["fresh", "sticky"])
        if policy == "ocorp+":
            options["alpha"] = rng.choice([0.5, 40.0])
        if policy.startswith("ocorp"):
            options["literal"] = rng.random() < 0.3
            options["lambda0"] = rng.choice([0.0, 1e11])
        yield instance, model.simulate(instance, policy, **options)


def mean(values: list[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def expected_metrics(instance: Instance, outcome: model.Outcome) -> dict[str, float]:
    """The model's metrics under our names; those that it lacks from their definitions."""
    jobs = instance.jobs
    arrived = [j for j, job in enumerate(jobs) if job.arrival < outcome.slots]
    flow = model.flowtimes(instance, outcome)
    waiting = {j: f - model.length(jobs[j]) for j, f in zip(arrived, flow, strict=True)}
    ranked = sorted(range(len(jobs)), key=lambda j: (model.length(jobs[j]), j))
    longest = model.length(jobs[ranked[-1]])
    half, tenth = math.ceil(len(jobs) / 2), len(jobs) // 10
    groups = {
        "small": ranked[:half],
        "medium": ranked[half : len(jobs) - tenth],
        "big": ranked[len(jobs) - tenth :],
        "longest": [j for j in ranked if 5 * model.length(jobs[j]) >= 3 * longest],
    }
    counted = model.counts(instance, outcome)
    granted = sum(sum(map(sum, u)) for u in outcome.allocations)
    result = {
        "l1": sum(flow),
        "l2": math.sqrt(sum(f * f for f in flow)),
        "mean_flowtime": mean(flow),
        "median_flowtime": np.percentile(flow or [0], 50),
        "p95_flowtime": np.percentile(flow or [0], 95),
        "max_flowtime": max(flow, default=0),
        "mean_slowdown": mean([f / model.length(jobs[j]) for j, f in zip(arrived, flow, strict=True)]),
        "fractional": model.regret_curve(instance, outcome, 2)[-1],
        "makespan": max((jobs[j].arrival + f for j, f in zip(arrived, flow, strict=True)), default=0),
        "finished": sum(end is not None for end in outcome.completion),
        "mean_waiting": mean(list(waiting.values())),
        **{
            f"waiting_{name}": mean([waiting[j] for j in group if j in waiting])
            for name, group in groups.items()
        },
        **{name: sum(getattr(counted, name)) for name in counted._fields},
        "switching_cost": sum(model.switching_cost(instance, outcome)),
        "idle": 1 - granted / (sum(instance.cpu) * outcome.slots),
        "wasted": granted - sum(map(sum, outcome.used)),
        "longest_gap": max(model.service_gaps(instance, outcome)),
        "mean_unfinished": sum(model.unfinished_curve(instance, outcome)) / (jobs[-1].arrival + 1),
    }
    return {name: float(value) for name, value in result.items()}


# Metrics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", some(KINDS))
def test_metrics_equal_the_model(kind: str) -> None:
    seen = dict.fromkeys(NAMES, 0)
    truncated = 0
    for instance, outcome in runs(150, 1, kind):
        record = record_of(instance, outcome)
        computed, expected = metrics(record), expected_metrics(instance, outcome)
        assert list(computed) == NAMES and sorted(expected) == sorted(NAMES)
        for name, value in expected.items():
            assert computed[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
            seen[name] += value != 0
        validate(record)
        counted = model.counts(instance, outcome)
        assert fates(record) == {
            "completion": outcome.completion,
            "flowtime": [
                None if end is None else end - job.arrival
                for end, job in zip(outcome.completion, instance.jobs, strict=True)
            ],
            "preemptions": counted.preemptions,
            "migrations": counted.migrations,
        }
        truncated += record.truncated
    rare = {"wasted"} if kind == "mapreduce" else set()
    assert all(count > 3 for name, count in seen.items() if name not in rare), seen
    assert truncated > 20


@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_is_what_the_rewards_sum_to(kind: str) -> None:
    for x, (instance, outcome) in enumerate(runs(40, 2, kind)):
        k, alpha = (1.0, 2.0, 2.5, 3.0)[x % 4], (0.0, 7.5)[x % 2]
        row = measured([record_of(instance, outcome)], k, alpha)[0]
        rewards = model.rewards(instance, outcome, k, alpha=alpha)
        assert row["cost"] == pytest.approx(-sum(rewards), rel=1e-9)
        flow = model.flowtimes(instance, outcome)
        assert row["flowtime_norm"] == pytest.approx(sum(f**k for f in flow) ** (1 / k), rel=1e-9)


def measured(
    records: list[ScheduleRecord],
    norm: float = 2.0,
    alpha: float = 0.0,
    mask: list[bool] | None = None,
    spare: int = 0,
) -> np.ndarray:
    """The kernel on several records at once, in arrays with ``spare`` places that are full of rubbish."""
    own = [(tables(record.workload), of_metrics._schedule(record)) for record in records]
    every = [sizes_of(jobs) | sizes_of(rows) | {"most_tasks": int(jobs.tasks.max())} for jobs, rows in own]
    sizes = {name: max(one[name] for one in every) + spare for name in every[0]}
    bundles = [allocate(kind, sizes, len(records)) for kind in (Jobs, Schedule, Metrics)]
    for target, *values in zip((*bundles[0], *bundles[1]), *(sum(one, ()) for one in own), strict=True):
        if target.dtype.names is None:
            target.fill(77)
        for x, value in enumerate(values):
            target[(x, *(slice(length) for length in value.shape))] = value
    for x, (jobs, _) in enumerate(own):
        bundles[0].server_cpu[x, len(jobs.server_cpu) :] = 0
    found = bundles[2].values
    found.view(float)[:] = -1.0
    objective = Objective(np.array((norm, alpha), dtype=of_metrics.OBJECTIVE))
    table = tabled(Episode(objective, *bundles, None, None), sizes)
    of_metrics.measure(*table, np.array([True] * len(records) if mask is None else mask))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_measure_takes_rows_of_any_size_and_leaves_the_others(kind: str) -> None:
    records = [record_of(instance, outcome) for instance, outcome in runs(12, 3, kind)]
    mask = [x % 3 != 1 for x in range(len(records))]
    out = measured(records, mask=mask, spare=3)
    for x, record in enumerate(records):
        assert out["repaired"][x] == -1.0  # that one is the environment's
        if mask[x]:
            assert {name: float(out[name][x]) for name in NAMES} == metrics(record)
        else:
            assert set(out[x].tolist()) == {-1.0}


def test_by_hand() -> None:
    # job 0 runs on both servers, is stopped in slot 3, goes on elsewhere; job 1 takes its place
    jobs = [Job(0, 3, 3), Job(2, 1, 3)]
    allocations = [[[2, 1], [0, 0]], [[2, 0], [0, 0]], [[0, 0], [2, 1]], [[0, 1], [0, 0]], [[2, 1], [0, 0]]]
    instance = Instance(jobs, [2, 1])
    record = record_of(instance, model.replay(instance, allocations))
    validate(record)
    computed = metrics(record)
    wanted = {
        "l1": 6.0,
        "mean_slowdown": (5 / 3 + 1) / 2,
        "makespan": 5.0,
        "mean_waiting": 1.0,
        "waiting_small": 0.0,
        "waiting_medium": 2.0,
        "waiting_big": 0.0,
        "waiting_longest": 2.0,
        "preemptions": 1.0,
        "migrations": 2.0,  # in slot 4 on server 1, in slot 5 on server 0
        "resizes": 2.0,  # in slots 2 and 5
        "splits": 3.0,
        "switching_cost": (1 + 4 + 1 + 4) / 9,  # in slots 2 to 5
        "idle": 3 / 15,
        "longest_gap": 1.0,
        "mean_unfinished": (6 + 4 + 4 + 3 + 0) / 3,
    }
    assert {name: computed[name] for name in wanted} == pytest.approx(wanted)
    assert computed["fractional"] == pytest.approx(
        (1 / 3 + 3) + (4 / 3 + 3) * 2 / 3 + (16 / 3 + 3) / 3 + (25 / 3 + 3) + 2
    )


def test_switching_cost_by_the_demand_of_the_phase() -> None:
    # one map task of 2 cores, one reduce task of 4; two cores all the time
    instance = Instance([MapReduceJob(0, (1, 1), (2, 1), (2, 4))], [4])
    record = record_of(instance, model.replay(instance, [[[2]]] * 4))
    validate(record)
    assert len(record.job) == 1
    computed = metrics(record)
    assert computed["switching_cost"] == 0.25  # from 2/2 to 2/4
    assert computed["resizes"] == 0.0
    assert computed["l1"] == 4.0


def test_nothing_ran() -> None:
    instance = Instance([Job(0, 2, 1), Job(9, 2, 1)], [3])
    record = record_of(instance, model.replay(instance, [[[0], [0]]] * 4))
    validate(record)
    computed = metrics(record)
    wanted = {"l1": 4.0, "finished": 0.0, "idle": 1.0, "longest_gap": 4.0, "makespan": 4.0}
    assert {name: computed[name] for name in wanted} == wanted
    assert computed["mean_waiting"] == 2.0
    assert fates(record)["completion"] == [None, None]
    none = dataclasses.replace(record, final_time=0.0)
    assert set(metrics(none).values()) == {0.0}


def test_slots_far_apart() -> None:
    """Long runs are not walked slot by slot."""
    p = 10**7
    workload = make_workload([0, 10**9], [p, 3], [2, 5], [3])
    record = ScheduleRecord(
        workload,
        job=np.array([0, 1]),
        server=np.array([0, 0]),
        start=np.array([0.0, 10**9]),
        end=np.array([2.0 * p, 10**9 + 5]),
        amount=np.array([[1.0], [3.0]]),
        final_time=10**9 + 5.0,
        truncated=False,
    )
    validate(record)
    computed = metrics(record)
    assert computed["l1"] == 2 * p + 5
    ages = 2 * p * (2 * p + 1) * (4 * p + 1) // 6
    second = (55 / 3 + 15) * 3 / 5
    assert computed["fractional"] == pytest.approx((ages / p + 2 * p * p) / 2 + second, rel=1e-12)
    work = 2 * p * (2 * p - 1) // 2 + 12 + 9 + 6 + 3
    assert computed["mean_unfinished"] == pytest.approx(work / (10**9 + 1), rel=1e-12)


def test_many_jobs() -> None:
    """An episode of the default size against the model."""
    workload = generate(3, 0, Source(FlowtimeParameters()))
    own = tables(workload)
    jobs = [
        Job(a, p, d)
        for a, p, d in zip(
            own.arrival.tolist(), own.processing[:, 0].tolist(), own.cpu[:, 0].tolist(), strict=True
        )
    ]
    instance = Instance(jobs, own.server_cpu.tolist())
    for policy in ("srpt", "ocorp"):
        outcome = model.simulate(instance, policy)
        record = record_of(instance, outcome)
        assert record.workload == workload
        validate(record)
        computed, expected = metrics(record), expected_metrics(instance, outcome)
        assert computed == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert expected["waiting_big"] > 0 and expected["migrations"] > 0


def numbers_of_some_schedules() -> list[list[float]]:
    from schedgym.papers.xu2021 import curves
    from schedgym.problems.flowtime import bounds

    rows = []
    for kind in KINDS:
        for instance, outcome in runs(4, 4, kind):
            record = record_of(instance, outcome)
            own = [*metrics(record).values(), bounds.queue_bound(record.workload, 3.0)]
            own += [*curves.regret_curve(record, 1.5), *curves.flowtime_curve(record)]
            if kind != "mapreduce":
                own += curves.fit_curve(record, np.arange(record.final_time)).tolist()
            rows.append(own)
        tiny = workload_of(random_instance(random.Random(4), kind, tiny=True))
        rows.append([bounds.lower_bound(tiny), bounds.priced_bound(tiny, 1.5)])
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
    for mine, theirs in zip(numbers_of_some_schedules(), json.loads(result.stdout), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-12)


# Validator ------------------------------------------------------------------------------------


def is_valid(record: ScheduleRecord, instance: Instance) -> bool:
    """The rules, row by row and slot by slot."""
    jobs, servers = instance.jobs, len(instance.cpu)
    if record.amount.shape != (len(record.job), 1 if instance.memory is None else 2):
        return False
    rows = list(
        zip(
            *(getattr(record, name).tolist() for name in ("job", "server", "start", "end", "amount")),
            strict=True,
        )
    )
    for j, i, start, end, amount in rows:
        if j not in range(len(jobs)) or i not in range(servers):
            return False
        if not all(map(math.isfinite, (start, end, *amount))):
            return False
        if any(x != int(x) for x in (start, end, *amount)) or amount[0] < 1:
            return False
        if not jobs[j].arrival <= start < end <= record.final_time:
            return False
        if instance.memory is not None and amount[1] != model.declared_memory(jobs[j]):
            return False
    keys = [(start, j, i) for j, i, start, _, _ in rows]
    if keys != sorted(keys):
        return False
    for x, (j, i, start, _, amount) in enumerate(rows):
        for y, (other, at, begin, end, cores) in enumerate(rows):
            if x != y and (j, i) == (other, at):
                if begin <= start < end or (end == start and cores == amount):
                    return False
    final = int(record.final_time)
    grants = [[[0] * servers for _ in jobs] for _ in range(final)]
    for j, i, start, end, amount in rows:
        for t in range(int(start), int(end)):
            grants[t][j][i] += int(amount[0])
    cluster = model.Cluster(instance, None, 2)
    last = 0
    for t, u in enumerate(grants, start=1):
        for i in range(servers):
            if sum(row[i] for row in u) > instance.cpu[i]:
                return False
            if instance.memory is not None:
                held = sum(model.declared_memory(job) for job, row in zip(jobs, u, strict=True) if row[i])
                if held > instance.memory[i]:
                    return False
        for j, job in enumerate(jobs):
            cores, left = sum(u[j]), cluster.remaining(j)
            caps = [cluster.cap(j)]
            if isinstance(job, Job) and job.declared_cpu is not None:
                caps.append(min(job.declared_cpu, math.ceil(left * job.declared_cpu / job.cpu)))
            if cores > max(caps):
                return False
            if isinstance(job, Job):
                cores = min(cores, job.cpu, left)
            cluster.serve(j, cores)
            if left > 0 and cluster.remaining(j) == 0:
                last = t
    done = all(cluster.remaining(j) == 0 for j in range(len(jobs)))
    return record.truncated or (done and final == last)


def changed(record: ScheduleRecord, **fields: Any) -> ScheduleRecord:
    return dataclasses.replace(record, **fields)


def put(array: np.ndarray, row: int, value: Any) -> np.ndarray:
    copy = array.copy()
    copy[row] = value
    return copy


FIELDS = ("job", "server", "start", "end", "amount")
MUTATIONS = (*FIELDS, "memory", "nan", "drop", "double", "split", "swap", "truncated", "final", "shift")


def mutate(record: ScheduleRecord, kind: str, row: int, data: st.DataObject) -> ScheduleRecord:
    arrays = {name: getattr(record, name) for name in FIELDS}
    if kind in FIELDS:
        array = arrays[kind]
        step = data.draw(st.sampled_from([-2, -1, 1, 2, 0.5] if kind not in ("job", "server") else [-1, 1]))
        if kind == "amount":
            array = array.copy()
            array[row, 0] += step
            return changed(record, amount=array)
        return changed(record, **{kind: put(array, row, array[row] + step)})
    if kind == "memory":
        return changed(record, amount=put(record.amount, row, record.amount[row] + 1))
    if kind == "nan":
        name = data.draw(st.sampled_from(["start", "end", "amount"]))
        return changed(record, **{name: put(arrays[name], row, data.draw(st.sampled_from([np.nan, np.inf])))})
    if kind == "drop":
        return changed(record, **{name: np.delete(array, row, axis=0) for name, array in arrays.items()})
    if kind in ("double", "split"):
        twice = {name: np.insert(array, row, array[row], axis=0) for name, array in arrays.items()}
        if kind == "split":
            middle = np.floor((record.start[row] + record.end[row]) / 2)
            twice["end"][row] = twice["start"][row + 1] = middle
        # in order of starts, as rows have to be
        order = np.lexsort((twice["server"], twice["job"], twice["start"]))
        return changed(record, **{name: array[order] for name, array in twice.items()})
    if kind == "swap":
        order = np.arange(len(record.job))
        other = data.draw(st.integers(0, len(order) - 1))
        order[[row, other]] = order[[other, row]]
        return changed(record, **{name: array[order] for name, array in arrays.items()})
    if kind == "truncated":
        return changed(record, truncated=not record.truncated)
    if kind == "final":
        return changed(record, final_time=record.final_time + data.draw(st.sampled_from([-1, 1, 3])))
    # the row moves in time
    step = data.draw(st.sampled_from([-3, -1, 1, 3]))
    moved = {"start": put(record.start, row, record.start[row] + step)}
    moved["end"] = put(record.end, row, record.end[row] + step)
    arrays |= moved
    order = np.lexsort((arrays["server"], arrays["job"], arrays["start"]))
    return changed(record, **{name: array[order] for name, array in arrays.items()})


@pytest.mark.parametrize("kind", some(KINDS))
@given(seed=st.integers(0, 10**6), data=st.data())
def test_validate_rejects_exactly_what_breaks_a_rule(kind: str, seed: int, data: st.DataObject) -> None:
    ((instance, outcome),) = runs(1, seed, kind)
    if kind != "mapreduce" and data.draw(st.booleans()):
        rng = random.Random(seed)
        instance = model.declare(instance, rng, 0.5)
        outcome = model.simulate(instance, "srpt", mode=rng.choice(model.MODES))
    record = record_of(instance, outcome)
    validate(record)
    assert is_valid(record, instance)
    for _ in range(data.draw(st.integers(1, 2))):
        if not len(record.job):
            return
        row = data.draw(st.integers(0, len(record.job) - 1))
        record = mutate(record, data.draw(st.sampled_from(MUTATIONS)), row, data)
    if is_valid(record, instance):
        validate(record)
    else:
        with pytest.raises(InvalidSchedule):
            validate(record)


def plain_record(
    workload: Workload, rows: list[tuple[float, ...]], truncated: bool = False
) -> ScheduleRecord:
    """Rows (job, server, start, end, cores, [memory])."""
    array = np.array(rows, dtype=float)
    return ScheduleRecord(
        workload,
        array[:, 0].astype(np.int64),
        array[:, 1].astype(np.int64),
        array[:, 2],
        array[:, 3],
        array[:, 4:],
        float(array[:, 3].max()),
        truncated=False,
    )


TWO = make_workload([0, 2], [3, 2], [2, 3], [2, 2])
LARGE = make_workload([0, 2], [3, 2], [2, 3], [2, 2], memory=[3, 4], server_memory=[6, 4])
DECLARED = make_workload([0], [2], [2], [8], declared_cpu=[5])
PHASES = make_mapreduce([0], [[2, 1]], [[2, 1]], [[1, 2]], [4])


@pytest.mark.parametrize(
    ("workload", "rows", "message"),
    [
        (TWO, [(0, 0, 0, 3, 2), (1, 1, 1, 4, 2)], r"job \[1\] in slot 2 on server \[1\]: runs before"),
        (TWO, [(0, 0, 0, 3, 2), (1, 0, 2, 4, 1), (1, 1, 2, 4, 2)], r"server \[0\] in slot 3: 3 of 2 cores"),
        (TWO, [(0, 0, 0, 4, 2), (1, 1, 2, 5, 2)], r"job \[0\] in slot 4: has 2 cores and can use 0"),
        (TWO, [(0, 0, 0, 3, 2), (1, 1, 2, 6, 2)], r"job \[1\] in slot 6: has 2 cores and can use 0"),
        (TWO, [(0, 0, 0, 2, 2), (0, 1, 1, 2, 1)], r"job \[0\] in slot 2: has 3 cores and can use 2"),
        (TWO, [(0, 0, 0, 3, 2), (1, 1, 3, 6, 1)], r"job \[1\]: is not finished"),
        (TWO, [(0, 0, 0, 2, 2), (0, 0, 2, 3, 2)], r"job \[0\] in slot 3 on server \[0\]: its row must go on"),
        (TWO, [(0, 0, 0, 2, 1), (0, 0, 1, 3, 1)], r"job \[0\] in slot 2 on server \[0\]: has two rows"),
        (
            TWO,
            [(0, 1, 0, 2, 1), (0, 0, 0, 2, 1)],
            r"job \[0\] in slot 1 on server \[1\]: rows must be",
        ),
        (TWO, [(0, 0, 0, 2, 0)], r"job \[0\] in slot 1 on server \[0\]: its cores must be a whole number"),
        (TWO, [(0, 0, 1, 1, 1)], r"row \[0\] has no slot"),
        (TWO, [(2, 0, 0, 1, 1)], r"row \[0\] names a job"),
        (TWO, [(0, 2, 0, 1, 1)], r"row \[0\] names a server"),
        (TWO, [(0, 0, 0.5, 1, 1)], r"row \[0\] does not start with a slot"),
        (TWO, [(0, 0, 0, 1, 1, 1)], r"amount: must have the shape \[1, 1\], got \[1, 2\]"),
        (
            LARGE,
            [(0, 0, 0, 2, 2, 2)],
            r"job \[0\] in slot 1 on server \[0\]: does not reserve",
        ),
        (
            LARGE,
            [(0, 0, 0, 4, 1, 3), (1, 0, 2, 4, 1, 4)],
            r"server \[0\] in slot 3: 7 of 6 GB of memory",
        ),
        # 4 core-slots: 2 used in slot 1, then ceil(2 * 5 / 2) = 5 allowed, then nothing is left
        (DECLARED, [(0, 0, 0, 3, 5)], r"job \[0\] in slot 3: has 5 cores and can use 0"),
        (DECLARED, [(0, 0, 0, 2, 6)], r"job \[0\] in slot 1: has 6 cores and can use 5"),
        (PHASES, [(0, 0, 0, 2, 2), (0, 0, 2, 3, 3)], r"job \[0\] in slot 3: has 3 cores and can use 2"),
        (PHASES, [(0, 0, 0, 4, 1), (0, 0, 4, 6, 2)], r"job \[0\] in slot 6: has 2 cores and can use 0"),
    ],
)
def test_what_is_wrong_is_named(workload: Workload, rows: list[tuple[float, ...]], message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        validate(plain_record(workload, rows))


def test_grants_beyond_use_need_declared_demands() -> None:
    validate(plain_record(DECLARED, [(0, 0, 0, 2, 5)]))
    validate(plain_record(DECLARED, [(0, 0, 0, 1, 5), (0, 0, 1, 3, 1)]))
    assert metrics(plain_record(DECLARED, [(0, 0, 0, 2, 5)]))["wasted"] == 6.0
    honest = make_workload([0], [2], [2], [8])
    with pytest.raises(InvalidSchedule, match=r"job \[0\] in slot 1: has 5 cores and can use 2"):
        validate(plain_record(honest, [(0, 0, 0, 2, 5)]))


def test_the_end_of_a_record() -> None:
    record = plain_record(TWO, [(0, 0, 0, 3, 2), (1, 1, 2, 5, 2)])
    validate(record)
    for final in (4.0, 6.0):
        with pytest.raises(InvalidSchedule):
            validate(changed(record, final_time=final))
    validate(changed(record, final_time=6.0, truncated=True))


def test_metrics_refuse_indices_out_of_range() -> None:
    record = plain_record(TWO, [(0, 0, 0, 3, 2), (1, 1, 2, 5, 2)])
    for name, bad in (("job", 2), ("server", 2), ("job", -1)):
        with pytest.raises(InvalidSchedule, match=name):
            metrics(changed(record, **{name: np.array([0, bad])}))
