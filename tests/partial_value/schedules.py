"""Schedules of partial-value for the tests: see :mod:`tests.records`."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.papers.zheng2016 import model
from schedgym.papers.zheng2016.model import LINEAR, LOG, POWER, Instance, Outcome
from tests.partial_value.instances import instance_of, make_job, random_instance, workload_of
from tests.records import COLUMNS, Broken, Change, Run, put, rows_taken, section_changed

#: an episode of this problem is never cut off
RARE = {"truncated"}

JOBS = (
    make_job(1.0, 2.0, 2.0, 3.0, (2.0, 0.0), 2.0, LINEAR),
    make_job(1.0, 3.5, 2.0, 3.0, (1.0, 1.0), 3.0, POWER, 0.25),
    make_job(2.5, 4.0, 1.0, 2.0, (0.5, 4.0), 1.0, LOG),
)
INSTANCE = Instance(JOBS, (4.0, 4.0), discrete=True)
SCHEDULE = [[1.0, 2.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]


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


def expected_metrics(instance: Instance, outcome: Outcome) -> dict[str, float]:
    """The model's metrics under our names."""
    jobs, slots = instance.jobs, len(outcome.allocation)
    found = model.metrics(instance, outcome)
    loads = [model.load(instance, x) for x in outcome.allocation]
    return {
        "value": found.value,
        "value_share": found.value / sum(model.utility(job, job.tasks) for job in jobs),
        "mean_served": sum(y / job.tasks for job, y in zip(jobs, outcome.served, strict=True)) / len(jobs),
        "completed": len(jobs) - found.expired,
        "expired": found.expired,
        "never_served": found.never_served,
        "utilization": sum(found.utilisation) / len(found.utilisation),
        "peak_utilization": max(found.utilisation),
        "full_slots": sum(max(load) >= 1 - 1e-6 for load in loads) / model.horizon(instance),
        "slots": slots,
    }


def runs(count: int, seed: int) -> Iterator[Run]:
    """Runs of all policies of both models; one instance in two is adversarial."""
    rng = random.Random(seed)
    for n in range(seed, seed + count):
        own = {"discrete": n % 2 == 1, "resources": 1 + n % 3, "adversarial": n % 4 < 2}
        instance = random_instance(rng, max_share=rng.choice([0.3, 1.0]), **own)
        instance = instance._replace(jobs=tuple(sorted(instance.jobs, key=lambda job: job.arrival)))
        # the slow one is about slots, not about records
        names = set(model.policies(instance)) - {"deadline-aware", "local-optimal"}
        outcome = model.simulate(instance, rng.choice(sorted(names)))
        yield Run(
            record_of(instance, outcome),
            expected_metrics(instance, outcome),
            expected_fates(instance, outcome),
        )


def expected_fates(instance: Instance, outcome: Outcome) -> dict[str, list[float]]:
    """Tasks served, and what they are worth."""
    pairs = zip(instance.jobs, outcome.served, strict=True)
    return {"served": list(outcome.served), "value": [model.utility(job, served) for job, served in pairs]}


def is_valid(record: ScheduleRecord) -> bool:
    """The rules of rows here, those of amounts and of the end by the model."""
    instance = instance_of(record.workload)
    rows = list(zip(*(getattr(record, name).tolist() for name in COLUMNS), strict=True))
    keys = [(end, job) for job, _, _, end, _ in rows]
    if keys != sorted(set(keys)) or record.final_time not in range(model.horizon(instance) + 1):
        return False
    schedule = [[0.0] * len(instance.jobs) for _ in range(int(record.final_time))]
    for job, server, start, end, (tasks,) in rows:
        if job not in range(len(instance.jobs)) or server != 0 or tasks <= 0:
            return False
        if start not in range(len(schedule)) or end != start + 1:
            return False
        schedule[int(start)][job] = tasks
    try:
        end = len(model.replay(instance, schedule).allocation)
    except ValueError:
        return False
    return record.final_time == end or (record.truncated and record.final_time < end)


CHANGES: dict[str, Change] = {
    "capacity": lambda record, row, factor: section_changed(
        record, "cluster", capacity=record.workload.cluster["capacity"] * factor
    ),
    "parallelism": lambda record, row, factor: section_changed(
        record, "jobs", parallelism=record.workload.jobs["parallelism"] * factor
    ),
}


def example() -> ScheduleRecord:
    """Slots 1 to 4; job 1 is complete after slot 2, job 2 may be served in slots 3 and 4 only."""
    return record_of(INSTANCE, model.replay(INSTANCE, SCHEDULE))


def changed(name: str, row: int, value: float) -> Callable[[ScheduleRecord], dict[str, Any]]:
    """One number of a row changed."""
    return lambda record: {name: put(getattr(record, name), row, value)}


def with_rows(
    change: Callable[[list[Any]], list[Any]], **more: Any
) -> Callable[[ScheduleRecord], dict[str, Any]]:
    """Other rows (job, slot, tasks), sorted; and other attributes."""

    def fields(record: ScheduleRecord) -> dict[str, Any]:
        rows = list(zip(record.job.tolist(), record.end.tolist(), record.amount[:, 0].tolist(), strict=True))
        rows = sorted(change(rows), key=lambda row: (row[1], row[0]))
        job, slot, amount = (np.array(column) for column in zip(*rows, strict=True))
        columns = {"job": job, "server": np.zeros_like(job), "start": slot - 1, "end": slot}
        return {**columns, "amount": amount[:, None], **more}

    return fields


def moved(row: int, slot: float) -> Callable[[ScheduleRecord], dict[str, Any]]:
    """A row in another slot, in order."""
    return with_rows(
        lambda rows: [(*rows[r][:1], slot, rows[r][2]) if r == row else rows[r] for r in range(6)]
    )


# rows: (job 0, slot 1), (1, 1), (0, 2), (1, 2), (2, 3), (2, 4)
BROKEN: list[Broken] = [
    ("job: must have one value per row", lambda r: {"job": np.zeros((6, 1), dtype=np.int64)}),
    ("server: must have one value per row", lambda r: {"server": np.zeros(5, dtype=np.int64)}),
    ("start: must have one value per row", lambda r: {"start": np.zeros(7)}),
    ("end: must have one value per row", lambda r: {"end": np.zeros(0)}),
    ("amount: must have the shape [6, 1], got [6, 2]", lambda r: {"amount": np.ones((6, 2))}),
    ("row [5] names a job that does not exist", changed("job", 5, 3)),
    ("row [0] names a job that does not exist", changed("job", 0, -1)),
    ("row [2] names a server that does not exist", changed("server", 2, 1)),
    ("row [1] has no start or end", changed("start", 1, math.nan)),
    ("row [1] has no start or end", changed("end", 1, math.inf)),
    ("row [0] does not start with a slot", changed("start", 0, 0.5)),
    ("row [0] is not one slot", changed("end", 0, 2.0)),
    ("row [0] is not one slot", changed("end", 0, 0.0)),
    ("row [0] is before the first slot", with_rows(lambda rows: [(0, 0.0, 1.0), *rows[1:]])),
    ("row [5] is after the end of the episode", lambda r: {"final_time": 3.0}),
    ("row [0] is after the end of the episode", lambda r: {"final_time": math.nan}),
    (
        "job [0] in slot 1: rows must be sorted by slot and job, one for each",
        lambda r: rows_taken(r, [1, 0, 2, 3, 4, 5]),
    ),
    (
        "job [1] in slot 1: rows must be sorted by slot and job, one for each",
        lambda r: rows_taken(r, [0, 2, 1, 3, 4, 5]),
    ),
    (
        "job [2] in slot 3: rows must be sorted by slot and job, one for each",
        with_rows(lambda rows: [*rows[:4], (2, 3.0, 0.5), (2, 3.0, 0.5), rows[5]]),
    ),
    ("job [1] in slot 2: its tasks must be a number > 0", changed("amount", 3, 0.0)),
    ("job [1] in slot 2: its tasks must be a number > 0", changed("amount", 3, -1.0)),
    ("job [1] in slot 2: its tasks must be a number > 0", changed("amount", 3, math.nan)),
    ("job [1] in slot 2: its tasks must be a number > 0", changed("amount", 3, math.inf)),
    ("job [2] in slot 2: is served before it arrives", moved(4, 2.0)),
    ("job [0] in slot 3: is served after its deadline", moved(2, 3.0)),
    ("job [2] in slot 3: gets more tasks than it can run in a slot", changed("amount", 4, 2.0)),
    ("job [1] in slot 2: gets more tasks than it has", changed("amount", 3, 2.0)),
    ("job [1] in slot 3: is served although it is complete", with_rows(lambda rows: [*rows, (1, 3.0, 1.0)])),
    ("resource [0] in slot 1: its load is 1.5", changed("amount", 0, 2.0)),
    ("final_time: must be 4, got 5", lambda r: {"final_time": 5.0}),
    ("final_time: must be a slot, got 4.5", lambda r: {"final_time": 4.5}),
    ("final_time: must be 4, got 3", with_rows(lambda rows: rows[:5], final_time=3.0)),
]
