"""Metrics, fates and the validator of schedules: against the plain model, and by breaking each rule."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from schedgym.core.arrays import allocate
from schedgym.core.record import ScheduleRecord
from schedgym.core.tables import tabled
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.papers.zheng2016 import model
from schedgym.papers.zheng2016.model import LINEAR, LOG, POWER, Instance, Outcome
from schedgym.problems.partial_value.metrics import (
    FULL,
    Episode,
    Metrics,
    Schedule,
    fates,
    measure,
    metrics,
    validate,
)
from schedgym.problems.partial_value.problem import METRICS, UTILITIES
from schedgym.problems.partial_value.workload import Jobs, tables
from tests.partial_value.instances import make_job, random_instance

NAMES = [metric.name for metric in METRICS if metric.recorded]


def workload_of(instance: Instance) -> Workload:
    """The instance as a workload; its jobs must be in order of arrival."""
    jobs = instance.jobs
    assert [job.arrival for job in jobs] == sorted(job.arrival for job in jobs)
    columns = ("arrival", "deadline", "parallelism", "tasks")
    return Workload(
        "partial-value",
        jobs={
            **{name: np.array([float(getattr(job, name)) for job in jobs]) for name in columns},
            "value": np.array([float(job.values[0]) for job in jobs]),
            "demand": np.array([job.demand for job in jobs], dtype=float),
            "utility": np.array([UTILITIES.index(job.kind) for job in jobs]),
            "exponent": np.array([job.alpha for job in jobs]),
        },
        cluster={"capacity": np.array(instance.capacity, dtype=float)},
    )


def record_of(instance: Instance, outcome: Outcome) -> ScheduleRecord:
    """The model's schedule as rows."""
    rows = [(t, j, x) for t, row in enumerate(outcome.allocation, 1) for j, x in enumerate(row) if x > 0]
    slot = np.array([row[0] for row in rows], dtype=float)
    return ScheduleRecord(
        workload=workload_of(instance),
        job=np.array([row[1] for row in rows], dtype=np.int64),
        server=np.zeros(len(rows), dtype=np.int64),
        start=slot - 1,
        end=slot,
        amount=np.array([row[2] for row in rows], dtype=float).reshape(len(rows), 1),
        final_time=float(len(outcome.allocation)),
        truncated=False,
    )


def in_order(instance: Instance) -> Instance:
    return instance._replace(jobs=tuple(sorted(instance.jobs, key=lambda job: job.arrival)))


def runs(count: int, seed: int) -> Iterator[tuple[Instance, Outcome]]:
    """Runs of all policies of both models; one instance in two is adversarial."""
    rng = random.Random(seed)
    for n in range(count):
        instance = in_order(
            random_instance(
                rng,
                discrete=n % 2 == 1,
                resources=1 + n % 3,
                adversarial=n % 4 < 2,
                max_share=rng.choice([0.3, 1.0]),
            )
        )
        names = [name for name in model.policies(instance) if name != "deadline-aware"]
        # the slow one is about slots, not about records
        name = rng.choice([name for name in names if name != "local-optimal"])
        yield instance, model.simulate(instance, name)


def test_metrics_are_the_models() -> None:
    seen = {"full": 0, "early": 0, "expired": 0, "never": 0, "completed": 0}
    for instance, outcome in runs(80, 1):
        found = metrics(record_of(instance, outcome))
        assert list(found) == NAMES
        jobs, horizon, slots = instance.jobs, model.horizon(instance), len(outcome.allocation)
        wanted = model.metrics(instance, outcome)
        most = sum(model.utility(job, job.tasks) for job in jobs)
        loads = [model.load(instance, x) for x in outcome.allocation]
        full = sum(max(load) >= 1 - 1e-6 for load in loads)
        assert found == pytest.approx(
            {
                "value": wanted.value,
                "value_share": wanted.value / most,
                "mean_served": sum(y / job.tasks for job, y in zip(jobs, outcome.served, strict=True))
                / len(jobs),
                "completed": len(jobs) - wanted.expired,
                "expired": wanted.expired,
                "never_served": wanted.never_served,
                "utilization": sum(wanted.utilisation) / len(wanted.utilisation),
                "peak_utilization": max(wanted.utilisation),
                "full_slots": full / horizon,
                "slots": slots,
            },
            rel=1e-12,
        )
        assert all(type(value) is float for value in found.values())
        seen["full"] += full > 0
        seen["early"] += slots < horizon
        seen["expired"] += wanted.expired > 0
        seen["never"] += wanted.never_served > 0
        seen["completed"] += wanted.expired < len(jobs)
    assert min(seen.values()) >= 3, seen


def test_a_job_that_lacks_a_rounding_error_is_complete() -> None:
    job = make_job(1.0, 3.0, 1.0, 1.0, (1.0,))
    amounts = (0.7, 0.2, 0.1)
    assert sum(amounts) < 1.0
    outcome = Outcome([(x,) for x in amounts], list(amounts), (sum(amounts),), sum(amounts))
    assert metrics(record_of(Instance((job,), (1.0,)), outcome))["completed"] == 1.0


def test_fates_are_the_models() -> None:
    for instance, outcome in runs(40, 2):
        found = fates(record_of(instance, outcome))
        assert found["served"] == pytest.approx(list(outcome.served), rel=1e-12)
        values = [model.utility(job, y) for job, y in zip(instance.jobs, outcome.served, strict=True)]
        assert found["value"] == pytest.approx(values, rel=1e-12)
        assert sum(found["value"]) == pytest.approx(metrics(record_of(instance, outcome))["value"])
        assert all(type(value) is float for column in found.values() for value in column)


def test_valid_schedules_are_accepted() -> None:
    for instance, outcome in runs(120, 3):
        validate(record_of(instance, outcome), whole=instance.discrete)


# by hand --------------------------------------------------------------------------------------------

# slots 1 to 4; job 1 is complete after slot 2, job 2 may be served in slots 3 and 4 only
JOBS = (
    make_job(1.0, 2.0, 2.0, 3.0, (2.0, 0.0), 2.0, LINEAR),
    make_job(1.0, 3.5, 2.0, 3.0, (1.0, 1.0), 3.0, POWER, 0.25),
    make_job(2.5, 4.0, 1.0, 2.0, (0.5, 4.0), 1.0, LOG),
)
INSTANCE = Instance(JOBS, (4.0, 4.0), discrete=True)
SCHEDULE = [[1.0, 2.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]


def by_hand(**changes: Any) -> ScheduleRecord:
    record = record_of(INSTANCE, model.replay(INSTANCE, SCHEDULE))
    return dataclasses.replace(record, **changes)


def test_metrics_by_hand() -> None:
    value = 2 * 2 + 3 * 3**0.25 + math.log(3)
    most = 2 * 3 + 3 * 3**0.25 + math.log(3)
    # loads: (1, .5), (.75, .25), (.125, 1), (.125, 1)
    assert metrics(by_hand()) == pytest.approx(
        {
            "value": value,
            "value_share": value / most,
            "mean_served": (2 / 3 + 1 + 1) / 3,
            "completed": 2,
            "expired": 1,
            "never_served": 0,
            "utilization": (2.0 + 2.75) / 8,
            "peak_utilization": 2.75 / 4,
            "full_slots": 3 / 4,
            "slots": 4,
        },
        rel=1e-14,
    )
    assert fates(by_hand())["served"] == [2.0, 3.0, 2.0]
    validate(by_hand(), whole=True)


def test_without_a_row() -> None:
    nothing = model.replay(INSTANCE, [])
    record = record_of(INSTANCE, nothing)
    validate(record)
    found = metrics(record)
    assert found.pop("slots") == 4
    assert (found.pop("expired"), found.pop("never_served")) == (3, 3)
    assert set(found.values()) == {0.0}


def test_no_exponents() -> None:
    """A workload without powers need not give them."""
    instance = Instance(tuple(job._replace(kind=LOG) for job in JOBS), INSTANCE.capacity)
    record = record_of(instance, model.replay(instance, SCHEDULE))
    jobs = {name: values for name, values in record.workload.jobs.items() if name != "exponent"}
    without = dataclasses.replace(record, workload=dataclasses.replace(record.workload, jobs=jobs))
    assert metrics(without) == metrics(record)
    assert fates(without) == fates(record)


def test_full_slots() -> None:
    shares = ((FULL, 0.1), (math.nextafter(FULL, 0), 0.1), (0.5, 1.0))
    instance = Instance(tuple(make_job(1.0, 4.0, 1.0, 2.0, share) for share in shares), (1.0, 1.0))
    schedule = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.5]]
    record = record_of(instance, model.replay(instance, schedule))
    found = metrics(record)
    assert found["full_slots"] == 2 / 4
    assert fates(record)["served"] == [1.0, 1.0, 1.5]
    loads = [FULL + math.nextafter(FULL, 0) + 0.75, 1.7]
    assert found["utilization"] == pytest.approx(sum(loads) / 8, rel=1e-14)
    assert found["peak_utilization"] == pytest.approx(max(loads) / 4, rel=1e-14)


def test_only_the_masked_are_measured() -> None:
    """Environments of different sizes, among padding that must not count."""
    records = [
        by_hand(),
        record_of(
            INSTANCE._replace(jobs=JOBS[:2]),
            model.replay(INSTANCE._replace(jobs=JOBS[:2]), [row[:2] for row in SCHEDULE[:2]]),
        ),
    ]
    wanted = [metrics(record) for record in records]
    sizes = {"job": 5, "resource": 2}
    episode = Episode(*(allocate(kind, sizes, 3) for kind in (Jobs, Schedule, Metrics)))
    jobs, schedule = episode.jobs, episode.schedule
    for array in (*jobs[1:], schedule.served):
        array[...] = 7
    for b, record in ((0, records[0]), (2, records[1])):
        for array, own in zip(jobs, tables(record.workload), strict=True):
            array[(b, *(slice(length) for length in own.shape))] = own
        n = jobs.size["jobs"][b]
        schedule.served[b, :n] = np.bincount(record.job, record.amount[:, 0], n)
        schedule.load[b] = (jobs.share[b, record.job] * record.amount).sum(axis=0)
        schedule.totals[b] = (
            record.final_time,
            round(wanted[b // 2]["full_slots"] * jobs.deadline[b, :n].max()),
        )
    episode.metrics.values.view(np.float64)[...] = -1.0
    measure(*tabled(episode, {}), np.array([True, False, True]))
    out = episode.metrics.values
    for b in (0, 2):
        assert {name: out[name][b] for name in NAMES} == wanted[b // 2]
    assert all(out[name][1] == -1.0 for name in NAMES)
    assert (out["repaired"] == -1.0).all()  # it is the simulator's


# the validator: every rule broken, one at a time -------------------------------------------------------


def changed(name: str, row: int, value: float) -> Callable[[], ScheduleRecord]:
    """The record by hand with one number of a row changed."""

    def make() -> ScheduleRecord:
        array = getattr(by_hand(), name).copy()
        array[row] = value
        return by_hand(**{name: array})

    return make


def moved(row: int, slot: float) -> Callable[[], ScheduleRecord]:
    """The record by hand with a row in another slot, in order."""
    return with_rows(
        lambda rows: [(*rows[r][:1], slot, rows[r][2]) if r == row else rows[r] for r in range(6)]
    )


def with_rows(change: Callable[[list[Any]], list[Any]], **more: Any) -> Callable[[], ScheduleRecord]:
    """The record by hand with other rows (job, slot, tasks), sorted; and other attributes."""

    def make() -> ScheduleRecord:
        record = by_hand()
        rows = list(zip(record.job.tolist(), record.end.tolist(), record.amount[:, 0].tolist(), strict=True))
        rows = sorted(change(rows), key=lambda row: (row[1], row[0]))
        job, slot, amount = (np.array(column) for column in zip(*rows, strict=True))
        return by_hand(
            job=job,
            server=np.zeros_like(job),
            start=slot - 1,
            end=slot,
            amount=amount[:, None],
            **more,
        )

    return make


def swapped(rows: list[int]) -> Callable[[], ScheduleRecord]:
    """The record by hand with its rows in another order."""

    def make() -> ScheduleRecord:
        record = by_hand()
        return by_hand(**{name: getattr(record, name)[rows] for name in ("job", "start", "end", "amount")})

    return make


# rows: (job 0, slot 1), (1, 1), (0, 2), (1, 2), (2, 3), (2, 4)
BROKEN: dict[str, tuple[Callable[[], ScheduleRecord], str]] = {
    "shape of job": (
        lambda: by_hand(job=np.zeros((6, 1), dtype=np.int64)),
        "job: must have one value",
    ),
    "shape of server": (lambda: by_hand(server=np.zeros(5, dtype=np.int64)), "server: must have one value"),
    "shape of start": (lambda: by_hand(start=np.zeros(7)), "start: must have one value"),
    "shape of end": (lambda: by_hand(end=np.zeros(0)), "end: must have one value"),
    "shape of amount": (lambda: by_hand(amount=np.ones((6, 2))), r"amount: must have the shape \[6, 1\]"),
    "no such job": (changed("job", 5, 3), r"row \[5\] names a job"),
    "negative job": (changed("job", 0, -1), r"row \[0\] names a job"),
    "no such server": (changed("server", 2, 1), r"row \[2\] names a server"),
    "no start": (changed("start", 1, math.nan), r"row \[1\] has no start"),
    "no end": (changed("end", 1, math.inf), r"row \[1\] has no start or end"),
    "half a slot": (changed("start", 0, 0.5), r"row \[0\] does not start with a slot"),
    "two slots": (changed("end", 0, 2.0), r"row \[0\] is not one slot"),
    "an empty slot": (changed("end", 0, 0.0), r"row \[0\] is not one slot"),
    "slot 0": (
        with_rows(lambda rows: [(0, 0.0, 1.0), *rows[1:]]),
        r"row \[0\] is before the first slot",
    ),
    "after the end": (lambda: by_hand(final_time=3.0), r"row \[5\] is after the end"),
    "without an end": (lambda: by_hand(final_time=math.nan), r"row \[0\] is after the end"),
    "jobs out of order": (swapped([1, 0, 2, 3, 4, 5]), r"job \[0\] in slot 1: rows must be sorted"),
    "slots out of order": (swapped([0, 2, 1, 3, 4, 5]), r"job \[1\] in slot 1: rows must be sorted"),
    "two rows of a job": (
        with_rows(lambda rows: [*rows[:4], (2, 3.0, 0.5), (2, 3.0, 0.5), rows[5]]),
        r"job \[2\] in slot 3: rows must be sorted by slot and job, one for each",
    ),
    "no tasks": (changed("amount", 3, 0.0), r"job \[1\] in slot 2: its tasks must be a number > 0"),
    "negative tasks": (changed("amount", 3, -1.0), r"its tasks must be a number > 0"),
    "NaN tasks": (changed("amount", 3, math.nan), r"its tasks must be a number > 0"),
    "infinitely many tasks": (changed("amount", 3, math.inf), r"its tasks must be a number > 0"),
    "part of a task": (changed("amount", 2, 0.5), r"job \[0\] in slot 2: its tasks must be a whole number"),
    "before it arrives": (moved(4, 2.0), r"job \[2\] in slot 2: is served before it arrives"),
    "after its deadline": (moved(2, 3.0), r"job \[0\] in slot 3: is served after its deadline"),
    "more than it can run": (changed("amount", 4, 2.0), r"job \[2\] in slot 3: gets more tasks than it can"),
    "more than it has": (changed("amount", 3, 2.0), r"job \[1\] in slot 2: gets more tasks than it has"),
    "complete": (
        with_rows(lambda rows: [*rows, (1, 3.0, 1.0)]),
        r"job \[1\] in slot 3: is served although it is complete",
    ),
    "overloaded": (changed("amount", 0, 2.0), r"resource \[0\] in slot 1: its load is 1.5"),
    "ends late": (lambda: by_hand(final_time=5.0), "final_time: must be 4, got 5"),
    "ends between slots": (lambda: by_hand(final_time=4.5), r"final_time: must be a slot, got 4.5"),
    "ends early": (with_rows(lambda rows: rows[:5], final_time=3.0), "final_time: must be 4, got 3"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_rules(name: str) -> None:
    make, message = BROKEN[name]
    with pytest.raises(InvalidSchedule, match=message):
        validate(make(), whole=True)


def test_parts_of_tasks_are_the_discrete_models_fault_only() -> None:
    validate(changed("amount", 2, 0.5)())
    with pytest.raises(InvalidSchedule, match="resource"):
        validate(changed("amount", 0, 1.0 + 1e-6)())


def test_rounding_is_no_fault() -> None:
    """A load of 1 + 1e-9 fits, amounts may be off by a relative 1e-9 only."""
    validate(changed("amount", 0, 1.0 + 1.9e-9)())  # half of it is its share: a load of 1 + .95e-9
    with pytest.raises(InvalidSchedule, match="load"):
        validate(changed("amount", 0, 1.0 + 2.1e-9)())
    validate(changed("amount", 4, 1.0 + 0.9e-9)())
    with pytest.raises(InvalidSchedule, match="gets more tasks than it can run"):
        validate(changed("amount", 4, 1.0 + 1.1e-9)())
    validate(changed("amount", 3, 1.0 + 2.9e-9)())
    with pytest.raises(InvalidSchedule, match="gets more tasks than it has"):
        validate(changed("amount", 3, 1.0 + 3.1e-9)())


def test_truncated_episodes() -> None:
    """They may end early, never late."""
    validate(with_rows(lambda rows: rows[:5], final_time=3.0, truncated=True)())
    validate(by_hand(truncated=True))
    with pytest.raises(InvalidSchedule, match="final_time"):
        validate(by_hand(final_time=5.0, truncated=True))


def test_episodes_end_when_nothing_is_left() -> None:
    """Once all have arrived, the slot after the last completion is not run; before, empty slots are."""
    jobs = (make_job(1, 9, 2, 2, (1.0,)), make_job(4, 9, 1, 1, (1.0,)))
    instance = Instance(jobs, (2.0,), discrete=True)
    record = record_of(instance, model.simulate(instance, "m-greedy"))
    assert record.end.tolist() == [1.0, 4.0] and record.final_time == 4.0
    validate(record)
    for final in (5.0, 9.0, 3.0):
        with pytest.raises(InvalidSchedule, match="final_time" if final > 4 else "after the end"):
            validate(dataclasses.replace(record, final_time=final))
    # the second job is not served: it could be to the end
    first = {name: getattr(record, name)[:1] for name in ("job", "server", "start", "end", "amount")}
    validate(dataclasses.replace(record, **first, final_time=9.0))
    for final in (3.0, 4.0, 8.0, 10.0):
        with pytest.raises(InvalidSchedule, match="final_time: must be 9"):
            validate(dataclasses.replace(record, **first, final_time=final))


def test_a_late_arrival_without_a_slot_keeps_the_episode_going() -> None:
    jobs = (make_job(1, 1, 1, 1, (1.0,)), make_job(3.2, 3.7, 1, 1, (1.0,)))
    instance = Instance(jobs, (1.0,))
    outcome = model.simulate(instance, "concave")
    assert len(outcome.allocation) == 3
    record = record_of(instance, outcome)
    validate(record)
    with pytest.raises(InvalidSchedule, match="final_time: must be 3"):
        validate(dataclasses.replace(record, final_time=2.0))
    assert metrics(record)["expired"] == 1
