"""Schedules of partial-value for the tests: see :mod:`tests.records`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.papers.zheng2016 import model
from schedgym.papers.zheng2016.model import LINEAR, LOG, POWER, Instance, Outcome
from tests.partial_value.instances import instance_of, make_job, random_instance, workload_of
from tests.records import COLUMNS, Change, Run, section_changed

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


def toy_optimum(workload: Workload, environment: Mapping[str, Any]) -> float:
    """The value of the best schedule in hindsight; no policy of the model has more."""
    discrete = environment.get("model") == "discrete"
    instance = instance_of(workload, discrete)
    best = model.whole_best(instance)[0] if discrete else model.offline_continuous(instance).value
    for policy in model.policies(instance):
        if not discrete or len(instance.capacity) == 1 or policy != "deadline-aware":
            assert model.simulate(instance, policy).value <= best * (1 + 1e-8)
    return float(best)


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
