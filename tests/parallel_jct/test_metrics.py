"""Metrics, fates and the validator of schedules: against the exact model and slow definitions."""

from __future__ import annotations

import dataclasses
import itertools
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
from schedgym.core.arrays import allocate, sizes_of
from schedgym.core.record import ScheduleRecord
from schedgym.core.tables import tabled
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.papers.shi2017.model import one_job, online
from schedgym.problems.parallel_jct.bounds import lower_bound
from schedgym.problems.parallel_jct.metrics import (
    Episode,
    Log,
    Metrics,
    Schedule,
    fates,
    measure,
    metrics,
    pieces,
    validate,
)
from schedgym.problems.parallel_jct.problem import METRICS
from schedgym.problems.parallel_jct.workload import Jobs, tables
from tests.long import long, trials
from tests.parallel_jct import random_jobs

ROOT = Path(__file__).resolve().parents[2]
NAMES = [metric.name for metric in METRICS if metric.recorded]
FIELDS = ("job", "server", "start", "end", "amount")


def make_workload(instance: online.Workload) -> Workload:
    """The model's workload; its servers' rows come from ``server_caps``."""
    servers = range(len(instance.capacity))
    caps = all(any(limit.servers == (j,) and limit.share == 1 for limit in instance.limits) for j in servers)
    limits = instance.limits[len(servers) if caps else 0 :]
    rows = [
        (x, load, row, alpha)
        for x, job in enumerate(instance.jobs)
        for load, row, alpha in zip(job.load, job.efficiency, job.alphas, strict=True)
    ]
    jobs = {"arrival": np.array([float(job.arrival) for job in instance.jobs])}
    if instance.energy_cap_ratio is not None:
        jobs["energy_cap_ratio"] = np.full(len(instance.jobs), float(instance.energy_cap_ratio))
    return Workload(
        "parallel-jct",
        jobs=jobs,
        tasks={
            "job": np.array([row[0] for row in rows]),
            "load": np.array([float(row[1]) for row in rows]),
            "efficiency": np.array([[float(x) for x in row[2]] for row in rows]),
        }
        | ({"power": np.array([float(row[3]) for row in rows])} if instance.jobs[0].power else {}),
        cluster={
            "cpu": np.array([float(x) for x in instance.capacity]),
            "groups": np.array([[float(limit.weight(j)) for j in servers] for limit in limits]),
            "beta": np.array([float(limit.share) for limit in limits]),
            "server_caps": np.array(caps),
        },
        parameters={},
    )


def record_of(instance: online.Workload, outcome: online.Outcome) -> ScheduleRecord:
    """The model's schedule: shares that stay the same over several intervals are one row."""
    first = [0, *itertools.accumulate(len(job.load) for job in instance.jobs)]
    rows: list[tuple[float, int, int, float, float, float]] = []
    open_rows: dict[int, list[Any]] = {}

    def close(task: int) -> None:
        server, start, end, base, extra = open_rows.pop(task)
        rows.append((start, task, server, end, base, extra))

    for part in outcome.intervals:
        seen = set()
        for share in part.running:
            task = first[share.job] + share.task
            seen.add(task)
            now = (share.server, float(share.base), float(share.extra))
            if task in open_rows and (open_rows[task][0], *open_rows[task][3:]) != now:
                close(task)
            if task not in open_rows:
                open_rows[task] = [share.server, float(part.begin), 0.0, *now[1:]]
            open_rows[task][2] = float(part.end)
        for task in set(open_rows) - seen:
            close(task)
    for task in list(open_rows):
        close(task)
    table = np.array(sorted(rows)).reshape(-1, 6)
    return ScheduleRecord(
        workload=make_workload(instance),
        job=table[:, 1].astype(np.int64),
        server=table[:, 2].astype(np.int64),
        start=table[:, 0],
        end=table[:, 3],
        amount=table[:, 4:],
        final_time=float(outcome.end),
        truncated=any(x is None for x in outcome.finish),
    )


def draw(job: int, number: int) -> float:
    return random.Random(f"{job}/{number}").random()


def runs(count: int, seed: int, **options: Any) -> Iterator[tuple[online.Workload, online.Outcome]]:
    """Small workloads under random schedulers, planners and parameters."""
    rng = random.Random(seed)
    for x in trials(count):
        own = {"dyadic": x % 2 == 0, "fixed_ratio": x % 3 == 0, "weighted": x % 5 < 2, "power": x % 7 < 3}
        instance = random_jobs.random_workload(rng, jobs=6, **own)
        yield (
            instance,
            online.Simulation(
                instance,
                rng.choice(online.SCHEDULERS),
                rng.choice((one_job.tapra_fast, one_job.min_min)),
                **{
                    "drc": x % 4 < 2,
                    "mar": rng.choice((None, True, False)),
                    "delta_t": rng.choice((5.0, 10.0)),
                    "max_percent": rng.choice((0.1, 0.3)),
                    "draw": draw,
                    **options,
                },
            ).run(),
        )


def percentile(values: list[float], share: float) -> float:
    return float(np.percentile(values, 100 * share))


def expected_metrics(instance: online.Workload, outcome: online.Outcome) -> dict[str, float]:
    """The metrics' definitions on what the model knows."""
    jobs = instance.jobs
    charged = [float(x) for x in outcome.charged]
    end = float(outcome.end)
    arrival = [float(job.arrival) for job in jobs]
    launched = [i for i in range(len(jobs)) if outcome.launch[i] is not None]
    waiting = [
        max(end - arrival[i], 0.0) if x is None else float(x) - arrival[i]
        for i, x in enumerate(outcome.launch)
    ]
    done = [i for i in range(len(jobs)) if outcome.finish[i] is not None]
    running = [float(outcome.finish[i]) - float(outcome.launch[i]) for i in done]
    last = max([float(outcome.finish[i]) for i in done] + [end] * (len(done) < len(jobs)))
    makespan = max(last - arrival[0], 0.0)
    ideal = sum(float(jobs[i].ideal_energy) for i in launched)
    ratio = 1.1 if instance.energy_cap_ratio is None else float(instance.energy_cap_ratio)
    grants = [i for i in launched if float(jobs[i].least_energy) > ratio * float(jobs[i].ideal_energy)]
    used = sum(float(x) for x in outcome.consumed)
    return {
        "average_jct": float(outcome.average_jct),
        "median_jct": percentile(charged, 0.5),
        "p95_jct": percentile(charged, 0.95),
        "max_jct": max(charged),
        "mean_waiting": sum(waiting) / len(jobs),
        "p95_waiting": percentile(waiting, 0.95),
        "mean_running": sum(running) / len(running) if running else 0.0,
        "makespan": makespan,
        "finished": len(done),
        "launched": len(launched),
        "utilization": used / (float(sum(instance.capacity)) * makespan) if makespan else 0.0,
        "energy": float(outcome.energy),
        "energy_share": float(outcome.energy) / ideal if launched else 0.0,
        "granted": len(grants),
    }


# Metrics --------------------------------------------------------------------------------------


def test_metrics_equal_the_model() -> None:
    granted = starved = 0
    for instance, outcome in runs(150, 1):
        record = record_of(instance, outcome)
        if record.truncated:  # FCFS: a job failed when the last task ended
            starved += 1
            continue
        computed = metrics(record)
        expected = expected_metrics(instance, outcome)
        assert list(computed) == NAMES and set(expected) == set(NAMES)
        for name, value in expected.items():
            assert computed[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
        validate(record)
        granted += computed["granted"] > 0
        for name, wanted in (
            ("start", outcome.launch),
            ("completion", outcome.finish),
            ("energy", outcome.committed),
        ):
            assert fates(record)[name] == pytest.approx([float(x) for x in wanted])
    assert granted > 10 and starved < 10


def test_truncated_runs() -> None:
    partly = unlaunched = 0
    for instance, outcome in itertools.chain.from_iterable(
        runs(50, 3, max_time=max_time) for max_time in (3.0, 7.5, 20.0)
    ):
        record = record_of(instance, outcome)
        computed = metrics(record)
        for name, value in expected_metrics(instance, outcome).items():
            assert computed[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
        validate(record)
        found = fates(record)
        assert [x is None for x in found["start"]] == [x is None for x in outcome.launch]
        assert [x is None for x in found["completion"]] == [x is None for x in outcome.finish]
        assert [x is None for x in found["energy"]] == [x is None for x in outcome.launch]
        partly += computed["launched"] > computed["finished"]
        unlaunched += computed["launched"] < len(instance.jobs)
        if record.truncated:
            with pytest.raises(InvalidSchedule):
                validate(dataclasses.replace(record, truncated=False))
    assert partly > 20 and unlaunched > 10


def vector_5() -> online.Workload:
    efficiency = ((1.0, 0.5),)
    jobs = (online.Job(0.0, (100.0,), efficiency), online.Job(2.0, (50.0,), efficiency))
    return online.Workload(jobs, (10.0, 10.0), one_job.fat_tree(2, 0.5, 0.5, 0.5))


@pytest.mark.parametrize(("drc", "finish"), [(True, [12.5, 15.0]), (False, [20.0, 25.0])])
def test_vector_5(drc: bool, finish: list[float]) -> None:
    outcome = online.Simulation(vector_5(), "ontapra", drc=drc, delta_t=5, max_percent=0.1).run()
    record = record_of(vector_5(), outcome)
    validate(record)
    assert fates(record) == {"start": [0.0, 5.0], "completion": finish, "energy": [100.0, 50.0]}
    computed = metrics(record)
    assert computed["average_jct"] == (finish[0] + finish[1] - 2.0) / 2
    assert computed["mean_waiting"] == 1.5
    assert computed["energy"] == 150.0 and computed["energy_share"] == 1.0
    assert computed["utilization"] == 150.0 / (20.0 * finish[1])


def test_nothing_launched_and_late_jobs() -> None:
    workload = make_workload(vector_5())
    empty = ScheduleRecord(
        workload,
        np.zeros(0, dtype=np.int64),
        np.zeros(0, dtype=np.int64),
        np.zeros(0),
        np.zeros(0),
        np.zeros((0, 2)),
        1.0,
        True,
    )
    validate(empty)
    computed = metrics(empty)
    assert computed["average_jct"] == computed["mean_waiting"] == 0.5  # the job that arrives at 2 counts 0
    assert computed["makespan"] == computed["max_jct"] == 1.0
    zero = ("mean_running", "finished", "launched", "utilization", "energy", "energy_share", "granted")
    assert all(computed[name] == 0.0 for name in zero)
    assert fates(empty) == {"start": [None] * 2, "completion": [None] * 2, "energy": [None] * 2}
    with pytest.raises(InvalidSchedule, match=r"^job \[0\] never starts$"):
        validate(dataclasses.replace(empty, truncated=False))


@pytest.mark.parametrize("seed", range(10))
def test_scaling_time(seed: int) -> None:
    """Loads and instants eight times as large; events within 1e-9 s do not scale, but seldom happen."""
    ((instance, outcome),) = runs(1, seed)
    record = record_of(instance, outcome)
    workload = record.workload
    slower = dataclasses.replace(
        record,
        workload=Workload(
            "parallel-jct",
            {**workload.jobs, "arrival": 8.0 * workload.jobs["arrival"]},
            workload.cluster,
            {},
            tasks={**workload.tasks, "load": 8.0 * workload.tasks["load"]},
        ),
        start=8.0 * record.start,
        end=8.0 * record.end,
        final_time=8.0 * record.final_time,
    )
    validate(slower)
    one, other = metrics(record), metrics(slower)
    for metric in METRICS:
        if metric.recorded:
            factor = 8.0 if metric.unit in ("s", "vCPU s") else 1.0
            assert other[metric.name] == pytest.approx(factor * one[metric.name], rel=1e-12), metric.name


def test_measure_takes_rows_of_any_size_and_leaves_the_others() -> None:
    records = []
    for x, (instance, outcome) in enumerate(runs(12, 5)):
        records.append(record_of(instance, outcome))
        if x % 2:  # cut it at half time
            cut = 0.5 * records[-1].final_time
            kept = records[-1].start < cut
            part = {name: getattr(records[-1], name)[kept] for name in FIELDS}
            part["end"] = np.minimum(part["end"], cut)
            records[-1] = dataclasses.replace(records[-1], **part, final_time=cut, truncated=True)
    b, instances = len(records), [tables(record.workload) for record in records]
    sizes = {name: max(sizes_of(own)[name] for own in instances) + 2 for name in ("job", "task", "group")}
    sizes |= {"server": max(len(own.cpu) for own in instances), "log": 500}
    episode = Episode(
        *(allocate(bundle, sizes, b) for bundle in (Jobs, Schedule, Log, Metrics)),
        None,  # type: ignore[arg-type]  # work space
    )
    for x in range(b):
        record, own, jobs = records[x], pieces(records[x]), instances[x]
        for name in ("size", "arrival", "first_task", "ideal_energy", "least_energy", "energy_cap_ratio"):
            put_row(getattr(episode.jobs, name), x, getattr(jobs, name))
        for name in ("load", "efficiency", "cpu"):
            put_row(getattr(episode.jobs, name), x, getattr(jobs, name))
        for name in ("launch", "completion"):
            put_row(getattr(episode.schedule, name), x, getattr(own, name))
        put_row(episode.schedule.energy, x, own.energy)
        put_row(episode.schedule.completed, x, own.completed)
        episode.schedule.end["clock"][x] = record.final_time
        episode.log.size["rows"][x] = len(record.job)
        columns = (record.job, record.server, record.start, record.end, *record.amount.T)
        for name, column in zip(Log._fields[1:], columns, strict=True):
            put_row(getattr(episode.log, name), x, column)
    episode.metrics.values.view(np.float64)[:] = -1.0
    mask = np.array([x % 3 != 1 for x in range(b)])
    table = tabled(episode, sizes)
    measure(*table, mask)
    out = episode.metrics.values.view(np.float64).reshape(b, -1)[:, : len(NAMES)]
    for x, record in enumerate(records):
        assert out[x].tolist() == (list(metrics(record).values()) if mask[x] else [-1.0] * len(NAMES))


def put_row(target: np.ndarray, x: int, values: np.ndarray) -> None:
    target[(x, *(slice(length) for length in values.shape))] = values


def test_a_job_ends_with_its_last_task_and_completes_at_the_cut_only_if_its_work_is_done() -> None:
    record = example()
    computed = fates(record)
    assert computed["completion"] == [4.0, 8.0]
    for end, whole in ((8.0, True), (8.0 - 1e-8, False), (8.0 - 1e-10, True)):
        cut = dataclasses.replace(
            record, end=np.where(record.end == 8.0, end, record.end), final_time=end, truncated=True
        )
        validate(cut)
        assert fates(cut)["completion"] == [4.0, end if whole else None]


def repeated(record: ScheduleRecord, times: int) -> ScheduleRecord:
    """The same schedule again and again, each time after the end of the one before."""
    workload = record.workload
    shift = np.arange(times)[:, None] * 2.0 ** math.ceil(math.log2(record.final_time + 1.0))
    jobs, tasks = len(workload.jobs["arrival"]), len(workload.tasks["job"])
    whole = Workload(
        "parallel-jct",
        {
            name: (np.tile(column, (times, 1)) + (shift if name == "arrival" else 0.0)).ravel()
            for name, column in workload.jobs.items()
        },
        workload.cluster,
        {},
        tasks={
            name: np.tile(column, (times, *(1,) * (column.ndim - 1)))
            for name, column in workload.tasks.items()
        }
        | {"job": (workload.tasks["job"] + jobs * np.arange(times)[:, None]).ravel()},
    )
    return ScheduleRecord(
        whole,
        job=(record.job + tasks * np.arange(times)[:, None]).ravel(),
        server=np.tile(record.server, times),
        start=(record.start + shift).ravel(),
        end=(record.end + shift).ravel(),
        amount=np.tile(record.amount, (times, 1)),
        final_time=float(record.final_time + shift[-1, 0]),
        truncated=record.truncated,
    )


@long
def test_many_rows() -> None:
    records = [record_of(instance, outcome) for instance, outcome in runs(4, 14)]
    complete = [record for record in records if not record.truncated]  # else a job waits for all repetitions
    assert len(complete) == 3
    for one in complete:
        times = 200_000 // len(one.job)
        record = repeated(one, times)
        validate(record)
        single, computed = metrics(one), metrics(record)
        for name in ("average_jct", "median_jct", "max_jct", "mean_running", "energy_share"):
            assert computed[name] == pytest.approx(single[name], rel=1e-6), name
        for name in ("finished", "launched", "energy", "granted"):
            assert computed[name] == pytest.approx(times * single[name], rel=1e-9), name
        row = int(np.random.default_rng(0).integers(len(record.job)))
        with pytest.raises(InvalidSchedule, match=rf"task \[{record.job[row]}\]"):
            validate(changed(record, amount=put(record.amount, row, record.amount[row] * 0.999)))


@pytest.mark.parametrize("view", ["pick", "place", "search"])
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"drc": False, "max_time": 150.0},
        {"server_caps": False},
        {"max_time": 400.0, "rounds": "all", "reading": "shape-half"},
    ],
    ids=str,
)
def test_records_of_the_environment(view: str, values: dict[str, Any]) -> None:
    """Random actions: a valid record, the environment's metrics bit for bit, and no better than the bound."""
    values = {"view": view, "jobs": 6, "arity": 4, **values}
    env = gym.make("schedgym/ParallelJCT-v0", disable_env_checker=True, **values).unwrapped
    rng = np.random.default_rng(1)
    for seed in range(2):
        observation, _ = env.reset(seed=seed)
        done = False
        while not done:
            action = int(rng.choice(np.flatnonzero(observation["action_mask"])))
            observation, _, terminated, truncated, info = env.step(action)
            done = terminated or truncated
        record = env.record()
        assert record.truncated == truncated
        validate(record)
        assert metrics(record).items() <= info["metrics"].items()
        bound = lower_bound(record.workload, env.simulator.parameters)
        assert bound <= info["metrics"]["average_jct"] * (1 + 1e-9)


def numbers_of_some_schedules() -> list[list[float]]:
    rows = []
    for instance, outcome in runs(6, 9):
        record = record_of(instance, outcome)
        validate(record)
        rows.append([*metrics(record).values()])
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
    np.testing.assert_allclose(numbers_of_some_schedules(), json.loads(result.stdout), rtol=1e-12, atol=1e-15)


# Validator ------------------------------------------------------------------------------------


def is_valid(record: ScheduleRecord) -> bool:
    """The rules, task by task and instant by instant, for schedules without close calls."""
    workload = record.workload
    job = workload.tasks["job"].tolist()
    arrival, cpu = workload.jobs["arrival"].tolist(), workload.cluster["cpu"].tolist()
    columns = [getattr(record, name).tolist() for name in FIELDS]
    rows = list(zip(*columns, strict=True))
    if any(x not in range(len(job)) or j not in range(len(cpu)) for x, j, *_ in rows):
        return False
    if [(row[2], row[0]) for row in rows] != sorted((row[2], row[0]) for row in rows):
        return False
    near = 1e-7
    tasks: dict[int, list[Any]] = {}
    for x, j, start, end, (base, extra) in rows:
        if not (0 <= start <= end <= record.final_time and base > 0 and extra >= 0):
            return False
        if x in tasks and (tasks[x][-1][1], *tasks[x][-1][2:4]) != (start, j, base):
            return False
        tasks.setdefault(x, []).append((start, end, j, base, extra))
    leq = {
        x: workload.tasks["load"][x] / workload.tasks["efficiency"][x, own[0][2]] for x, own in tasks.items()
    }
    for x, own in tasks.items():
        done = sum((base + extra) * (end - start) for start, end, _, base, extra in own)
        if done > leq[x] + near or (
            done < leq[x] - near and not (record.truncated and own[-1][1] == record.final_time)
        ):
            return False
    launches: dict[float, list[int]] = {}
    for i in range(len(arrival)):
        own = [x for x in range(len(job)) if job[x] == i]
        ran = [x for x in own if x in tasks]
        if not ran:
            if not record.truncated:
                return False
            continue
        if len(ran) < len(own) or len({tasks[x][0][0] for x in own}) > 1 or tasks[own[0]][0][0] < arrival[i]:
            return False
        launches.setdefault(tasks[own[0]][0][0], []).append(i)
        alpha = workload.tasks.get("power", np.ones(len(job)))
        load = alpha[own] * workload.tasks["load"][own]
        ratio = workload.jobs.get("energy_cap_ratio", np.full(len(arrival), 1.1))[i]
        least = (load / workload.tasks["efficiency"][own].max(axis=1)).sum()
        if sum(alpha[x] * leq[x] for x in own) > max(ratio * load.sum(), least) + near:
            return False
    drc = any(row[4][1] > 0 for row in rows)
    caps = bool(workload.cluster["server_caps"])
    groups = [
        (row, share) for row, share in zip(workload.cluster["groups"], workload.cluster["beta"], strict=True)
    ]
    if caps:
        groups += [([j == x for j in range(len(cpu))], 1.0) for x in range(len(cpu))]
    for now in {row[2] for row in rows}:
        for j in range(len(cpu)):
            here = [(x, p) for x, own in tasks.items() for p in own if p[2] == j and p[0] <= now < p[1]]
            if caps and sum(p[3] + p[4] for _, p in here) > cpu[j] + near:
                return False
            rest = max(cpu[j] - sum(p[3] for _, p in here), 0.0)
            for x, p in here:
                if drc and abs(p[4] - rest * leq[x] / sum(leq[y] for y, _ in here)) > near:
                    return False
        running = [x for x, own in tasks.items() if own[0][0] < now < own[-1][1]]

        def fits(order: tuple[int, ...], running: list[int] = running) -> bool:
            free = [
                cpu[j] - sum(tasks[x][0][3] for x in running if tasks[x][0][2] == j) for j in range(len(cpu))
            ]
            for i in order:
                own = [tasks[x][0] for x in tasks if job[x] == i]
                for row, share in groups:
                    allowed = share * sum(row[j] * max(free[j], 0.0) for j in range(len(cpu)))
                    if sum(row[p[2]] * p[3] for p in own) > allowed + near:
                        return False
                for p in own:
                    free[p[2]] -= p[3]
            return True

        if not any(fits(order) for order in itertools.permutations(launches.get(now, []))):
            return False
    return record.truncated or record.final_time == max(row[3] for row in rows)


def changed(record: ScheduleRecord, **fields: Any) -> ScheduleRecord:
    return dataclasses.replace(record, **fields)


def put(array: np.ndarray, row: Any, value: Any) -> np.ndarray:
    copy = array.copy()
    copy[row] = value
    return copy


@settings(deadline=None)
@given(st.integers(0, 10**6), st.data())
def test_validate_rejects_exactly_what_breaks_a_rule(seed: int, data: st.DataObject) -> None:
    rng = random.Random(seed)
    own = {"dyadic": seed % 2 == 0, "fixed_ratio": seed % 3 == 0, "weighted": seed % 5 < 2}
    instance = random_jobs.random_workload(rng, power=seed % 7 < 3, **own)
    outcome = online.Simulation(
        instance, rng.choice(online.SCHEDULERS), drc=seed % 4 < 2, mar=False, delta_t=5.0, max_time=500.0
    ).run()
    record = record_of(instance, outcome)
    validate(record)
    assert is_valid(record)
    for _ in range(data.draw(st.integers(1, 2))):
        rows = len(record.job)
        if not rows:
            break
        row = data.draw(st.integers(0, rows - 1))
        kinds = ("server", "time", "base", "extra", "drop", "twice", "cut", "cpu", "beta", "arrival", "ratio")
        kinds += ("groups", "power")
        kind = data.draw(st.sampled_from(kinds))
        own = record.job == record.job[row]
        workload = record.workload
        factor = data.draw(st.sampled_from([0.25, 0.5, 0.9, 1.1, 2.0]))
        if kind == "server":
            other = data.draw(st.integers(-1, len(instance.capacity)))
            which = own if data.draw(st.booleans()) else row
            record = changed(record, server=put(record.server, which, other))
        elif kind == "time":
            name = data.draw(st.sampled_from(["start", "end"]))
            record = changed(
                record, **{name: put(getattr(record, name), row, getattr(record, name)[row] * factor)}
            )
        elif kind in ("base", "extra"):
            column = 0 if kind == "base" else 1
            which = data.draw(st.sampled_from([row, own, slice(None)]))
            amount = record.amount.copy()
            amount[which, column] = amount[which, column] * factor if factor < 2.0 else 0.0
            record = changed(record, amount=amount)
        elif kind == "drop":
            kept = data.draw(st.sampled_from([np.arange(rows) != row, ~own]))
            cut = data.draw(st.booleans())
            record = changed(record, truncated=cut, **{name: getattr(record, name)[kept] for name in FIELDS})
        elif kind == "twice":
            again = np.sort(np.append(np.arange(rows), row))
            record = changed(record, **{name: getattr(record, name)[again] for name in FIELDS})
        elif kind == "cut":
            record = changed(record, truncated=not record.truncated)
        elif kind in ("cpu", "beta"):
            cluster = {**workload.cluster, kind: workload.cluster[kind] * factor}
            record = changed(record, workload=dataclasses.replace(workload, cluster=cluster))
        elif kind == "groups":
            groups = workload.cluster["groups"].copy()
            groups[:, record.server[row]] *= factor
            cluster = {**workload.cluster, "groups": groups}
            record = changed(record, workload=dataclasses.replace(workload, cluster=cluster))
        elif kind == "power":
            alpha = np.array(workload.tasks.get("power", np.ones(len(workload.tasks["job"]))))
            alpha[record.job[row]] *= factor
            record = changed(record, **given_as(record, "tasks", power=alpha))
        elif kind == "arrival":
            jobs = {**workload.jobs, "arrival": workload.jobs["arrival"] + factor}
            record = changed(record, workload=dataclasses.replace(workload, jobs=jobs))
        else:
            jobs = {**workload.jobs, "energy_cap_ratio": np.full(len(instance.jobs), factor)}
            record = changed(record, workload=dataclasses.replace(workload, jobs=jobs))
    if len(record.job) == 0:
        return
    if is_valid(record):
        validate(record)
    else:
        with pytest.raises(InvalidSchedule):
            validate(record)


def example() -> ScheduleRecord:
    """Two servers of 10 vCPU in a group of which a job may have half; DRC.

    Job 0 (tasks 0 and 1, of 30 and 10) starts at 0 with 4 and 4 base vCPU on server 0, job 1 (task 2, of 60)
    at 2 with 5 base vCPU on server 1, where it has all 10.
    """
    ones = (1.0, 1.0)
    jobs = (online.Job(0.0, (30.0, 10.0), (ones, ones)), online.Job(2.0, (60.0,), ((1.0, 1.0),)))
    limits = (
        one_job.Limit("server", (0,), 1),
        one_job.Limit("server", (1,), 1),
        one_job.Limit("dc", (0, 1), 0.5),
    )
    workload = make_workload(online.Workload(jobs, (10.0, 10.0), limits))
    # extras of tasks 0, 1: 1.5 and 0.5; task 1 ends at 10 / 4.5, then task 0 has 10 vCPU in all
    turn = 10.0 / 4.5
    rest = 30.0 - 5.5 * turn
    return ScheduleRecord(
        workload,
        job=np.array([0, 1, 2, 0]),
        server=np.array([0, 0, 1, 0]),
        start=np.array([0.0, 0.0, 2.0, turn]),
        end=np.array([turn, turn, 8.0, turn + rest / 10.0]),
        amount=np.array([[4.0, 1.5], [4.0, 0.5], [5.0, 5.0], [4.0, 6.0]]),
        final_time=8.0,
        truncated=False,
    )


def given_as(record: ScheduleRecord, section: str, **fields: Any) -> dict[str, Any]:
    """The record's workload with other fields in a section."""
    merged = {**getattr(record.workload, section), **fields}
    return {"workload": dataclasses.replace(record.workload, **{section: merged})}


def wasteful(record: ScheduleRecord) -> dict[str, Any]:
    """Task 2 has a load of 50, and an efficiency on server 1 that makes 60 of it."""
    tasks = record.workload.tasks
    efficiency = put(tasks["efficiency"], (2, 1), 50.0 / 60.0)
    return given_as(record, "tasks", load=put(tasks["load"], 2, 50.0), efficiency=efficiency)


MUTATIONS: list[tuple[str, Callable[[ScheduleRecord], dict[str, Any]]]] = [
    ("start: must have one value per row", lambda r: {"start": r.start[:-1]}),
    ("amount: must have the shape [4, 2], got [4, 1]", lambda r: {"amount": np.ones((4, 1))}),
    ("row [2] names a task that does not exist", lambda r: {"job": put(r.job, 2, 3)}),
    ("row [1] names a server that does not exist", lambda r: {"server": put(r.server, 1, -1)}),
    ("row [1] has no start or end", lambda r: {"start": put(r.start, 1, math.nan)}),
    ("row [2] ends before it starts", lambda r: {"end": put(r.end, 2, 1.0)}),
    ("row [3] has no amount", lambda r: {"amount": put(r.amount, (3, 1), math.nan)}),
    ("row [2] ends after the episode", lambda r: {"final_time": 7.0}),
    ("row [1]: rows must be sorted by start and task", lambda r: {"job": np.array([1, 0, 2, 1])}),
    (
        "row [2]: rows must be sorted by start and task",
        lambda r: {name: getattr(r, name)[[0, 2, 1, 3]] for name in FIELDS},
    ),
    ("row [0] starts before time 0", lambda r: {"start": put(r.start, [0, 1], -1.0)}),
    ("task [1] has no base vCPU", lambda r: {"amount": put(r.amount, (1, 0), 0.0)}),
    ("task [2] has less than no extra vCPU", lambda r: {"amount": put(r.amount, (2, 1), -1.0)}),
    ("task [0] changes its server", lambda r: {"server": put(r.server, 3, 1)}),
    ("task [0] changes its base vCPU", lambda r: {"amount": put(r.amount, 3, [5.0, 5.0])}),
    ("task [0] does not run on where it stops", lambda r: {"start": put(r.start, 3, 2.5)}),
    (
        "task [2] stops before its work is done: 50 of 60 vCPU s",
        lambda r: {"end": put(r.end, 2, 7.0), "final_time": 7.0},
    ),
    (
        "task [2] does more than its work: 70 of 60 vCPU s",
        lambda r: {"end": put(r.end, 2, 9.0), "final_time": 9.0},
    ),
    (
        "task [2] stops before its work is done: 60 of 120 vCPU s",
        lambda r: given_as(r, "tasks", efficiency=put(r.workload.tasks["efficiency"], (2, 1), 0.5)),
    ),
    (
        "task [1] does not start with the first task of job [0]",
        lambda r: {name: getattr(r, name)[[0, 2, 3]] for name in FIELDS},
    ),
    (
        "task [1] does not start with the first task of job [0]",
        lambda r: {
            "start": put(r.start, 1, 1.0),
            "amount": put(r.amount, (1, 1), 10.0 / (r.end[1] - 1.0) - 4.0),
        },
    ),
    ("job [1] starts before it arrives", lambda r: given_as(r, "jobs", arrival=np.array([0.0, 2.5]))),
    ("job [0] never starts", lambda r: {name: getattr(r, name)[[2]] for name in FIELDS}),
    ("job [1]: energy 60 of 55 vCPU s", wasteful),
    (
        "job [1]: energy 60 of 50 vCPU s",
        lambda r: wasteful(changed(r, **given_as(r, "jobs", energy_cap_ratio=np.array([2.0, 0.5])))),
    ),
    (
        "job [0]: starts at 0 s with 8 base vCPU in group [0], of 7.8",
        lambda r: given_as(r, "cluster", beta=np.array([0.39])),
    ),
    (
        "job [1]: starts at 2 s with 5 base vCPU in group [0], of 4.8",
        lambda r: given_as(r, "cluster", beta=np.array([0.4])),
    ),
    (
        # 4 and 4 count 16 on server 0, and of 10 vCPU that count 2 there and 10 that count 1 it may have half
        "job [0]: starts at 0 s with 16 base vCPU in group [0], of 15",
        lambda r: given_as(r, "cluster", groups=np.array([[2.0, 1.0]])),
    ),
    (
        # 66 is 1.1 * 60; with power 1.5 on 50 of load it may use 82.5
        "job [1]: energy 90 of 82.5 vCPU s",
        lambda r: wasteful(changed(r, **given_as(r, "tasks", power=np.array([1.0, 1.0, 1.5])))),
    ),
    (
        "job [0]: starts at 0 s with 8 base vCPU in server [0], of 7",
        lambda r: given_as(r, "cluster", cpu=np.array([7.0, 13.0])),
    ),
    (
        "server [1] at 2 s: 10 of 9 vCPU",
        lambda r: given_as(r, "cluster", cpu=np.array([10.0, 9.0]), beta=np.array([0.6])),
    ),
    (
        "task [0] at 0 s: 1.5 extra vCPU, not its share 2.25",
        lambda r: given_as(r, "cluster", cpu=np.array([11.0, 10.0])),
    ),
    ("final_time: must be 8, when the last task ends", lambda r: {"final_time": 9.0}),
]


@pytest.mark.parametrize(("message", "mutate"), MUTATIONS, ids=[message for message, _ in MUTATIONS])
def test_messages(message: str, mutate: Callable[[ScheduleRecord], dict[str, Any]]) -> None:
    record = example()
    validate(record)
    with pytest.raises(InvalidSchedule) as error:
        validate(changed(record, **mutate(record)))
    assert str(error.value) == message


def test_capacities_that_are_no_limits() -> None:
    """Without ``server_caps`` a job may hold more than a server has, and then nothing is left to add."""
    record = example()
    cluster = {"cpu": np.array([7.0, 13.0]), "server_caps": np.array(False)}
    record = changed(
        record,
        **given_as(record, "cluster", **cluster),
        job=np.array([0, 1, 2]),
        server=np.array([0, 0, 1]),
        start=np.array([0.0, 0.0, 2.0]),
        end=np.array([7.5, 2.5, 2.0 + 60.0 / 13.0]),
        amount=np.array([[4.0, 0.0], [4.0, 0.0], [5.0, 8.0]]),
        final_time=7.5,
    )
    with pytest.raises(InvalidSchedule, match=r"^task \[0\] at 2.5 s: 0 extra vCPU, not its share 3$"):
        validate(record)
    record = changed(
        record,
        job=np.array([0, 1, 2, 0]),
        server=np.array([0, 0, 1, 0]),
        start=np.array([0.0, 0.0, 2.0, 2.5]),
        end=np.array([2.5, 2.5, 2.0 + 60.0 / 13.0, 2.5 + 20.0 / 7.0]),
        amount=np.array([[4.0, 0.0], [4.0, 0.0], [5.0, 8.0], [4.0, 3.0]]),
        final_time=2.0 + 60.0 / 13.0,
    )
    validate(record)
    with pytest.raises(
        InvalidSchedule, match=r"^job \[0\]: starts at 0 s with 8 base vCPU in server \[0\], of 7$"
    ):
        validate(changed(record, **given_as(record, "cluster", server_caps=np.array(True))))


def test_jobs_launched_at_once_need_an_order() -> None:
    """The first may have half of the 16 vCPU, the second half of what that leaves."""
    for first, second, valid in ((8, 4, True), (4, 8, True), (5, 5.5, True), (6, 6, False), (8, 4.5, False)):
        jobs = tuple(online.Job(0.0, (float(load),), ((1.0, 1.0),)) for load in (first, second))
        limits = (one_job.Limit("server", (0,), 1), one_job.Limit("server", (1,), 1))
        limits += (one_job.Limit("dc", (0, 1), 0.5),)
        record = ScheduleRecord(
            make_workload(online.Workload(jobs, (8.0, 8.0), limits)),
            job=np.array([0, 1]),
            server=np.array([0, 1]),
            start=np.array([1.0, 1.0]),
            end=np.array([2.0, 2.0]),
            amount=np.array([[first, 0.0], [second, 0.0]]),
            final_time=2.0,
            truncated=False,
        )
        if valid:
            validate(record)
        else:
            with pytest.raises(InvalidSchedule, match="base vCPU in group"):
                validate(record)
