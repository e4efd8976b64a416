"""Metrics, fates and the validator of schedules: against the plain-Python model and slow definitions."""

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

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedgym.core.arrays import allocate, sizes_of
from schedgym.core.record import ScheduleRecord
from schedgym.core.tables import MADE_HERE, tabled
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.papers.guan2022 import model
from schedgym.papers.guan2022.model import Instance, Job
from schedgym.problems.geo.bounds import response_bound
from schedgym.problems.geo.metrics import (
    Episode,
    Metrics,
    Schedule,
    fates,
    measure,
    metrics,
    sort_pairs,
    validate,
)
from schedgym.problems.geo.problem import METRICS
from schedgym.problems.geo.workload import Jobs, tables
from tests.geo.instances import random_instance
from tests.long import long

ROOT = Path(__file__).resolve().parents[2]
NAMES = [metric.name for metric in METRICS if metric.recorded]
STATISTICS = {"mean": "mean", "median": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}


def make_workload(instance: Instance, order: list[int] | None = None) -> Workload:
    """The instance; its tasks, listed job by job, stand in ``order``."""
    rows = [(i, d, sites) for i, job in enumerate(instance.jobs) for d, sites in job.tasks]
    rows = rows if order is None else [rows[x] for x in order]
    sites = np.full((len(rows), max(len(row[2]) for row in rows)), -1)
    for x, row in enumerate(rows):
        sites[x, : len(row[2])] = row[2]
    return Workload(
        "geo",
        jobs={"arrival": np.array([float(job.arrival) for job in instance.jobs])},
        tasks={
            "job": np.array([row[0] for row in rows]),
            "duration": np.array([float(row[1]) for row in rows]),
            "sites": sites,
        },
        cluster={"slots": np.array(instance.slots)},
        parameters={},
    )


def make_record(
    workload: Workload, start: list[float], site: list[int], truncated: bool = False
) -> ScheduleRecord:
    """Rows in order of time, as an environment gives them; a start of NaN is left out."""
    begin, server = np.array(start, dtype=float), np.array(site)
    job = np.argsort(begin, kind="stable")
    job = job[~np.isnan(begin[job])]
    end = begin + workload.tasks["duration"]
    return ScheduleRecord(
        workload=workload,
        job=job,
        server=server[job],
        start=begin[job],
        end=end[job],
        amount=np.ones((len(job), 1)),
        final_time=float(max(end[job].max(initial=0.0), workload.jobs["arrival"][-1])),
        truncated=truncated,
    )


def record_of(instance: Instance, outcome: model.Outcome, shuffle: random.Random) -> ScheduleRecord:
    """The model's schedule, with the workload's tasks in random order."""
    order = list(range(sum(len(job.tasks) for job in instance.jobs)))
    shuffle.shuffle(order)
    start = [float(x) for row in outcome.start for x in row]
    site = [x for row in outcome.site for x in row]
    return make_record(make_workload(instance, order), [start[x] for x in order], [site[x] for x in order])


def schedules(count: int, seed: int) -> Iterator[tuple[Instance, model.Outcome]]:
    """Random instances under random policies of both chapters."""
    rng = random.Random(seed)
    for x in range(count):
        instance = random_instance(rng, adversarial=x % 2 == 0, window=x % 3 == 0)
        if x % 4 < 2:
            yield instance, model.simulate_assign(instance, rng.choice(model.ASSIGN_POLICIES))
        else:
            fast = [name for name in model.FAIR_POLICIES if not name.startswith("opt")]
            yield instance, model.simulate_fair(instance, rng.choice(fast), work_conserving=x % 8 < 4)


def expected_metrics(instance: Instance, outcome: model.Outcome) -> dict[str, float]:
    """The model's metrics under our names."""
    known = model.metrics_fair(instance, outcome)
    span = float(instance.span)
    result = {f"{name}_response": known[f"{q}_response"] for name, q in STATISTICS.items()}
    result |= {name: known[name] for name in ("max_response", "makespan", "fairness_integral", "mean_jain")}
    result["utilization"] = known["utilisation"]
    result["load"] = known["load"] or 0.0
    result["longest_over_span"] = known["longest_over_span"] or 0.0
    result["fairness"] = known["fairness_integral"] / (span or 1.0)
    for suffix in ("", "_no_drain"):
        for name, q in STATISTICS.items():
            result[f"{name}_std{suffix}"] = known.get(f"{q}_std{suffix}", 0.0)
    result["mean_jain_no_drain"] = known.get("mean_jain_no_drain", 1.0)
    return {name: float(value) for name, value in result.items()}


# Metrics --------------------------------------------------------------------------------------


def test_metrics_equal_the_model() -> None:
    spread = 0
    for instance, outcome in schedules(300, 1):
        record = record_of(instance, outcome, random.Random(1))
        computed = metrics(record)
        expected = expected_metrics(instance, outcome)
        assert list(computed) == NAMES and set(expected) == set(NAMES)
        for name, value in expected.items():
            assert computed[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
        spread += computed["p95_std_no_drain"] > 0.0
        validate(record)
        assert fates(record) == {
            "completion": [float(c) for c in outcome.completion],
            "response": [
                float(c) - float(job.arrival)
                for c, job in zip(outcome.completion, instance.jobs, strict=True)
            ],
        }
    assert spread > 100


def test_by_hand() -> None:
    # one slot, two jobs at 0 and 2 with tasks of 3 and 1: 0-3 job 0 runs, 3-4 job 1
    workload = make_workload(Instance((1,), [Job(0, ((3, (0,)),)), Job(2, ((1, (0,)),))]))
    measured = metrics(make_record(workload, [0.0, 3.0], [0, 0]))
    wanted = {
        "mean_response": 2.5,
        "utilization": 1.0,
        "load": 2.0,
        "longest_over_span": 1.5,
        "fairness_integral": 0.5,
        "fairness": 0.25,
        "mean_std": 0.125,
        "median_std": 0.0,
        "p90_std": 0.5,
        "mean_std_no_drain": 0.0,
        "mean_jain": 0.875,
        "mean_jain_no_drain": 1.0,
    }
    assert {name: measured[name] for name in wanted} == wanted


def test_no_span() -> None:
    workload = make_workload(Instance((3,), [Job(7, ((2, (0,)), (2, (0,)))), Job(7, ((4, (0,)),))]))
    measured = metrics(make_record(workload, [7.0, 7.0, 7.0], [0, 0, 0]))
    assert measured["load"] == measured["longest_over_span"] == 0.0
    assert measured["fairness"] == measured["fairness_integral"] == pytest.approx(0.5 * 2)
    assert measured["mean_std_no_drain"] == measured["p99_std_no_drain"] == 0.0
    assert measured["mean_jain"] == pytest.approx((2 * 9 / (2 * 5) + 2) / 4)
    assert measured["mean_jain_no_drain"] == 1.0


def test_weighted_percentiles_do_not_hang_on_rounding() -> None:
    # 10 jobs of one task; job i joins at 0.1 i: exactly half of the time has the lower deviations
    jobs = [Job(0.1 * i, ((0.1, (0,)), *(((0.1, (0,)),) * (i % 2)))) for i in range(10)]
    instance = Instance((3,), [Job(job.arrival, job.tasks + ((0.1, (0,)),)) for job in jobs])
    outcome = model.simulate_assign(instance, "fcfs")
    computed = metrics(record_of(instance, outcome, random.Random(2)))
    for name, share in (("median_std", 50), ("p90_std", 90)):
        pairs = [
            (model.deviation(list(part.occupied.values())), part.end - part.begin) for part in outcome.series
        ]
        near = [model.weighted_percentile(pairs, share + e) for e in (-1e-7, 1e-7)]
        assert computed[name] == pytest.approx(near[0])


def test_tasks_that_never_ran_are_charged_one_after_another() -> None:
    jobs = [Job(0, ((2, (0,)), (3, (0,)))), Job(1, ((1, (0,)),)), Job(6, ((4, (0,)), (5, (0,))))]
    workload = make_workload(Instance((2,), jobs))
    nan = math.nan
    record = make_record(workload, [0.0, nan, 1.0, nan, 6.0], [0] * 5, truncated=True)
    # the last end is at 11; job 0 would end at 14, job 2 at 18
    measured = metrics(record)
    assert measured["mean_response"] == pytest.approx((14 + 1 + 12) / 3)
    assert measured["makespan"] == 18.0
    assert measured["utilization"] == pytest.approx((2 + 1 + 5) / (2 * 18))
    assert measured["fairness_integral"] == pytest.approx(0.5 * 5)  # (0, 1) from 6 to 11
    assert measured["mean_std"] == pytest.approx(0.5 * 5 / 18)
    # (1), (1, 1), (0), (0, 1), none
    assert measured["mean_jain"] == pytest.approx((13 + 5 * 0.5) / 18)
    assert fates(record) == {"completion": [None, 2.0, None], "response": [None, 1.0, None]}
    validate(record)
    # the same as if they ran, but for what hangs on slots
    ran = metrics(make_record(workload, [0.0, 11.0, 1.0, 14.0, 6.0], [0] * 5))
    for name in ("mean_response", "median_response", "p99_response", "max_response", "makespan"):
        assert measured[name] == pytest.approx(ran[name])


@pytest.mark.parametrize("seed", range(20))
def test_scaling_time(seed: int) -> None:
    ((instance, outcome),) = schedules(1, seed)
    times = {"s": 8.0, "slot s": 8.0}
    bigger = Instance(
        instance.slots,
        [Job(8 * job.arrival, tuple((8 * d, s) for d, s in job.tasks)) for job in instance.jobs],
    )
    start = [float(x) for row in outcome.start for x in row]
    site = [x for row in outcome.site for x in row]
    one = metrics(make_record(make_workload(instance), start, site))
    other = metrics(make_record(make_workload(bigger), [8 * x for x in start], site))
    for metric in METRICS:
        if metric.recorded:
            factor = times.get(metric.unit, 1.0)
            if metric.name == "fairness" and instance.span == 0:
                factor = 8.0
            assert other[metric.name] == pytest.approx(factor * one[metric.name], rel=1e-12), metric.name


def test_measure_takes_rows_of_any_size_and_leaves_the_others() -> None:
    records = [record_of(instance, outcome, random.Random(3)) for instance, outcome in schedules(12, 5)]
    own = [tables(record.workload) for record in records]
    sizes: dict[str, int] = {}
    for one in own:
        sizes = {name: max(length, sizes.get(name, 0)) for name, length in sizes_of(one).items()}
    sizes |= {"job": sizes["job"] + 2, "task": sizes["task"] + 3, "piece": 3 * sizes["task"] + 9}
    jobs, schedule, found = (allocate(bundle, sizes, len(own)) for bundle in (Jobs, Schedule, Metrics))
    jobs.arrival[:], jobs.task_start[:], jobs.duration[:], schedule.start[:] = -5.0, -7, 9.0, 2.0
    for name in NAMES:
        found.values[name] = -1.0
    for x, (one, record) in enumerate(zip(own, records, strict=True)):
        jobs.size[x] = one.size
        for name in ("arrival", "task_start", "duration", "slots"):
            array = getattr(one, name)
            getattr(jobs, name)[x, : len(array)] = array
        when = np.empty(len(one.duration))
        when[record.job] = record.start
        schedule.start[x, : len(when)] = when[one.task_index]
    mask = np.array([x % 3 != 1 for x in range(len(own))])
    measure(*tabled(Episode(jobs, schedule, found, MADE_HERE), sizes), mask)
    for x, record in enumerate(records):
        expected = metrics(record) if mask[x] else dict.fromkeys(NAMES, -1.0)
        assert {name: found.values[name][x] for name in NAMES} == expected


def test_table_sorts_by_job_then_sites_then_place() -> None:
    sites = ((1,), (0, 1), (0,), (0, 1))
    jobs = [Job(0, tuple((x + 1, s) for x, s in enumerate(sites))), Job(0, ((9, (1, 0)),))]
    own = tables(make_workload(Instance((1, 1), jobs), order=[4, 3, 0, 1, 2]))
    assert own.task_index.tolist() == [4, 1, 3, 2, 0]
    assert own.duration.tolist() == [3.0, 4.0, 2.0, 1.0, 9.0]
    assert own.task_start.tolist() == [0, 4, 5]


@given(st.integers(0, 150), st.integers(0, 10), st.integers(0, 10**6))
def test_sort_pairs(count: int, rest: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    key = rng.integers(0, rng.integers(1, 200), count + rest) * rng.choice([1.0, 0.3, 1e-3, 1e9])
    tag = np.arange(count + rest)
    order = np.concatenate([np.argsort(key[:count], kind="stable"), tag[count:]])
    expected = key[order].tolist(), order.tolist()
    sort = getattr(sort_pairs, "py_func", sort_pairs)
    spare = np.empty((2, count), dtype=np.int64)
    sort(key.view(np.int64), tag, *spare, count, np.empty((8, 256), dtype=np.int64))
    assert (key.tolist(), tag.tolist()) == expected


def test_many_tasks() -> None:
    """Sums and percentiles of a long schedule against their definitions on the instants."""
    rng = np.random.default_rng(4)
    n, t = 300, 6000
    arrival = np.sort(rng.uniform(0, 500, n))
    job = np.concatenate([np.arange(n), rng.integers(0, n, t - n)])
    duration = rng.exponential(3.0, t)
    start = arrival[job] + rng.exponential(20.0, t) * (rng.random(t) < 0.7)
    workload = Workload(
        "geo",
        {"arrival": arrival},
        {"slots": np.array([t])},
        {},
        tasks={"job": job, "duration": duration, "sites": np.zeros((t, 1), dtype=np.int64)},
    )
    record = make_record(workload, start.tolist(), [0] * t)
    validate(record)
    computed = metrics(record)
    end = start + duration
    completion = np.zeros(n)
    np.maximum.at(completion, job, end)
    response = completion - arrival
    for name, q in (("median", 50), ("p90", 90), ("p95", 95), ("p99", 99)):
        assert computed[f"{name}_response"] == pytest.approx(np.percentile(response, q), rel=1e-12)
    instants = np.unique(np.concatenate([arrival, start, end]))
    begin, length = instants[:-1], np.diff(instants)
    spread, even = np.zeros(len(begin)), np.zeros(len(begin))
    some = np.zeros(len(begin), dtype=bool)
    for x, now in enumerate(begin):
        active = (arrival <= now) & (now < completion)
        occupied = np.bincount(job[(start <= now) & (now < end)], minlength=n)[active]
        some[x] = active.any()
        if some[x]:
            spread[x] = occupied.std()
            even[x] = occupied.sum() ** 2 / (len(occupied) * (occupied**2).sum()) if occupied.any() else 1.0
    for suffix, window in (("", some), ("_no_drain", some & (begin < arrival[-1]))):
        s, e, w = spread[window], even[window], length[window]
        assert computed[f"mean_std{suffix}"] == pytest.approx(np.average(s, weights=w), rel=1e-10)
        assert computed[f"mean_jain{suffix}"] == pytest.approx(np.average(e, weights=w), rel=1e-10)
        ascending = np.argsort(s)
        reached = np.cumsum(w[ascending]) / w.sum()
        for name, q in (("median", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)):
            value = s[ascending][np.searchsorted(reached, q)]
            assert computed[f"{name}_std{suffix}"] == pytest.approx(value, rel=1e-12)
    assert computed["fairness_integral"] == pytest.approx((spread * length).sum(), rel=1e-10)


def numbers_of_some_schedules() -> list[list[float]]:
    rows = []
    for instance, outcome in schedules(6, 9):
        record = record_of(instance, outcome, random.Random(0))
        rows.append([*metrics(record).values(), response_bound(record.workload)])
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
    """The rules, row by row and instant by instant."""
    tasks, arrival = record.workload.tasks, record.workload.jobs["arrival"]
    slots = record.workload.cluster["slots"].tolist()
    rows = list(
        zip(*(getattr(record, name).tolist() for name in ("job", "server", "start", "end")), strict=True)
    )
    if any(x not in range(len(tasks["job"])) or j not in range(len(slots)) for x, j, _, _ in rows):
        return False
    ran = [x for x, *_ in rows]
    if len(set(ran)) < len(ran) or (len(ran) < len(tasks["job"]) and not record.truncated):
        return False
    for x, j, start, end in rows:
        if not math.isfinite(start) or start < arrival[tasks["job"][x]]:
            return False
        if end != start + tasks["duration"][x] or j not in tasks["sites"][x]:
            return False
        if sum(a <= start < b for _, at, a, b in rows if at == j) > slots[j]:
            return False
    return record.amount.shape == (len(rows), 1) and bool((record.amount == 1).all())


def changed(record: ScheduleRecord, **fields: Any) -> ScheduleRecord:
    return dataclasses.replace(record, **fields)


def put(array: np.ndarray, row: int, value: Any) -> np.ndarray:
    copy = array.copy()
    copy[row] = value
    return copy


FIELDS = ("job", "server", "start", "end", "amount")


@given(st.integers(0, 10**6), st.data())
def test_validate_rejects_exactly_what_breaks_a_rule(seed: int, data: st.DataObject) -> None:
    ((instance, outcome),) = schedules(1, seed)
    record = record_of(instance, outcome, random.Random(seed))
    validate(record)
    assert is_valid(record)
    rows = len(record.job)
    for _ in range(data.draw(st.integers(1, 2))):
        rows = len(record.job)
        row = data.draw(st.integers(0, rows - 1))
        kind = data.draw(
            st.sampled_from(["job", "server", "start", "end", "amount", "drop", "twice", "cut", "few slots"])
        )
        if kind == "job":
            other = data.draw(st.integers(-1, len(record.workload.tasks["job"])))
            record = changed(record, job=put(record.job, row, other))
        elif kind == "server":
            other = data.draw(st.integers(-1, len(instance.slots)))
            record = changed(record, server=put(record.server, row, other))
        elif kind == "start":
            shift = data.draw(st.sampled_from([-4.0, -1.0, -0.25, 0.25, 1.0, 3.0, math.nan, math.inf]))
            moved = record.start[row] + shift
            own = record.workload.tasks["duration"][record.job[row] % len(record.workload.tasks["job"])]
            end = put(record.end, row, moved + own)
            record = changed(record, start=put(record.start, row, moved), end=end)
        elif kind == "end":
            shift = data.draw(st.sampled_from([-0.5, 0.5, 1e-9, math.nan]))
            record = changed(record, end=put(record.end, row, record.end[row] + shift))
        elif kind == "amount":
            value = data.draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, math.nan]))
            record = changed(record, amount=put(record.amount, row, value))
        elif kind == "drop":
            kept = np.arange(rows) != row
            cut = data.draw(st.booleans())
            record = changed(record, truncated=cut, **{name: getattr(record, name)[kept] for name in FIELDS})
            if rows == 1:
                break
        elif kind == "twice":
            again = np.append(np.arange(rows), row)
            record = changed(record, **{name: getattr(record, name)[again] for name in FIELDS})
        elif kind == "cut":
            record = changed(record, truncated=not record.truncated)
        else:
            slots = {"slots": np.ones_like(record.workload.cluster["slots"])}
            record = changed(record, workload=dataclasses.replace(record.workload, cluster=slots))
    if is_valid(record):
        validate(record)
    else:
        with pytest.raises(InvalidSchedule):
            validate(record)


def example() -> ScheduleRecord:
    """Site 0 has one slot, site 1 two; all tasks but the last run at once from 1."""
    jobs = [Job(1, ((2, (0, 1)), (2, (1,)))), Job(1, ((2, (1, 0)), (1, (0,))))]
    return make_record(make_workload(Instance((1, 2), jobs)), [1.0, 1.0, 1.0, 3.0], [0, 1, 1, 0])


MUTATIONS: list[tuple[str, Callable[[ScheduleRecord], dict[str, Any]]]] = [
    ("start: must have one row per piece", lambda r: {"start": r.start[:-1]}),
    ("amount: must have the shape [4, 1], got [4, 2]", lambda r: {"amount": np.ones((4, 2))}),
    ("row [2] names a task that does not exist", lambda r: {"job": put(r.job, 2, 4)}),
    ("row [1] names a site that does not exist", lambda r: {"server": put(r.server, 1, -1)}),
    ("task [0] runs more than once", lambda r: {"job": put(r.job, 3, 0)}),
    ("task [3] never runs", lambda r: {name: getattr(r, name)[:3] for name in FIELDS}),
    ("task [1] has no start", lambda r: {"start": put(r.start, 1, math.nan)}),
    ("task [2] starts before its job arrives", lambda r: {"start": put(r.start, 2, 0.5)}),
    ("task [0] does not run its whole time", lambda r: {"end": put(r.end, 0, 2.5)}),
    ("task [3] does not hold one slot", lambda r: {"amount": put(r.amount, 3, 2.0)}),
    ("task [3] runs at a site that is not in its list", lambda r: {"server": put(r.server, 3, 1)}),
    (
        "site [0] is over its capacity at 2.5 s: 2 tasks run in 1 slots",
        lambda r: {"start": put(r.start, 3, 2.5), "end": put(r.end, 3, 3.5)},
    ),
    (
        "site [1] is over its capacity at 1 s: 3 tasks run in 2 slots",
        lambda r: {"server": put(r.server, 0, 1)},
    ),
]


@pytest.mark.parametrize(("message", "mutate"), MUTATIONS, ids=[message for message, _ in MUTATIONS])
def test_messages(message: str, mutate: Callable[[ScheduleRecord], dict[str, Any]]) -> None:
    record = example()
    validate(record)
    with pytest.raises(InvalidSchedule) as error:
        validate(changed(record, **mutate(record)))
    assert str(error.value) == message


def test_a_truncated_schedule_may_lack_tasks_or_all() -> None:
    record = example()
    for kept in (3, 0):
        validate(changed(record, truncated=True, **{name: getattr(record, name)[:kept] for name in FIELDS}))


def test_a_slot_is_free_at_the_instant_of_an_end() -> None:
    workload = make_workload(Instance((1,), [Job(0, ((1, (0,)),) * 3)]))
    validate(make_record(workload, [2.0, 0.0, 1.0], [0, 0, 0]))
    with pytest.raises(InvalidSchedule, match=r"site \[0\]"):
        validate(make_record(workload, [1.999, 0.0, 1.0], [0, 0, 0]))
