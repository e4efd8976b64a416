"""Schedules of queue-delay for the tests: see :mod:`tests.records`."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.papers.noroozoliaee2014 import model
from schedgym.papers.noroozoliaee2014.model import Instance, Schedule, Task
from schedgym.problems.queue_delay.workload import make_workload
from tests.queue_delay.instances import make_instance, random_instance, with_resources
from tests.records import COLUMNS, Change, Run, put, section_changed

RARE: set[str] = set()


def record_of(instance: Instance, schedule: Schedule) -> ScheduleRecord:
    """The model's schedule as rows, by start."""
    ran = [i for i, start in enumerate(schedule.start) if start is not None]
    ran.sort(key=lambda i: schedule.start[i])
    tasks, start = [instance.tasks[i] for i in ran], np.array([schedule.start[i] for i in ran], dtype=float)
    return ScheduleRecord(
        workload=make_workload(instance.tasks, instance.servers),
        job=np.array(ran, dtype=np.int64),
        server=np.array([schedule.server[i] for i in ran], dtype=np.int64),
        start=start,
        end=start + [task.execution for task in tasks],
        amount=np.array([task.demand for task in tasks], dtype=float).reshape(
            len(ran), len(instance.servers[0])
        ),
        final_time=float(schedule.end),
        truncated=len(ran) < len(instance.tasks),
    )


def runs(count: int, seed: int) -> Iterator[Run]:
    """Random instances under random schemes; in one of three the later tasks never run, one has GPUs."""
    rng = random.Random(seed)
    names = [name for name, scheme in model.SCHEMES.items() if scheme.rule != "random"]
    for x in range(seed, seed + count):
        instance = random_instance(rng, adversarial=x % 4 != 3)
        if x % 3 == 0:
            instance = with_resources(instance, 3, rng)
        whole = model.simulate(instance, rng.choice(names))
        ran = [begin for begin in whole.start if begin is not None]
        last = rng.choice(ran) if x % 3 == 2 else math.inf
        start = [None if begin is None or begin > last else begin for begin in whole.start]
        server = [-1 if begin is None else j for begin, j in zip(start, whole.server, strict=True)]
        end = [
            None if begin is None else float(begin + task.execution)
            for begin, task in zip(start, instance.tasks, strict=True)
        ]
        events = [instance.tasks[-1].arrival, *(instant for instant in end if instant is not None)]
        schedule = Schedule(start, server, max(events))
        fates = {"start": start, "server": server, "completion": end}
        record = record_of(instance, schedule)
        yield Run(record, model.metrics(instance, schedule, tuple(record.workload.cluster)), fates)


def toy_optimum(workload: Workload, environment: Mapping[str, Any]) -> float:
    """By brute force."""
    columns = [workload.jobs[name].tolist() for name in ("arrival", "execution", "cpu", "memory")]
    servers = zip(*(workload.cluster[name].tolist() for name in ("cpu", "memory")), strict=True)
    instance = make_instance(zip(*columns, strict=True), servers)
    return float(model.optimum(instance)[0] / len(instance.tasks))


def is_valid(record: ScheduleRecord) -> bool:
    """The rules row by row; capacities by the model."""
    jobs, cluster = record.workload.jobs, record.workload.cluster
    fields = ("arrival", "execution", *cluster)
    tasks = [Task(*row) for row in zip(*(jobs[name].tolist() for name in fields), strict=True)]
    servers = list(zip(*(own.tolist() for own in cluster.values()), strict=True))
    rows = list(zip(*(getattr(record, name).tolist() for name in COLUMNS), strict=True))
    for job, _, start, end, amount in rows:
        if job not in range(len(tasks)) or end != start + tasks[job].execution:
            return False
        if tuple(amount) != tasks[job].demand:
            return False
    ran = [row[0] for row in rows]
    if len(set(ran)) < len(ran) or (len(ran) < len(tasks) and not record.truncated):
        return False
    if record.final_time != max([*jobs["arrival"].tolist(), *(row[3] for row in rows)]):
        return False
    schedule = Schedule([row[2] for row in rows], [row[1] for row in rows])
    return model.feasible(Instance([tasks[job] for job in ran], servers), schedule)


CHANGES: dict[str, Change] = {
    "moved": lambda record, row, factor: {
        "start": put(record.start, row, record.start[row] - factor),
        "end": put(
            record.end,
            row,
            record.start[row] - factor + record.workload.jobs["execution"][record.job[row] % len(record.job)],
        ),
    },
    "small servers": lambda record, row, factor: section_changed(
        record, "cluster", cpu=record.workload.cluster["cpu"] * factor
    ),
}


def example() -> ScheduleRecord:
    """Two tasks at once on the larger server, then one on the smaller."""
    tasks = [Task(0.0, 2.0, 0.5, 0.25), Task(0.0, 3.0, 0.5, 0.5), Task(1.0, 1.0, 0.5, 0.5)]
    return record_of(Instance(tasks, [(1.0, 1.0), (0.5, 0.5)]), Schedule([0.0, 0.0, 1.0], [0, 0, 1], 3.0))
