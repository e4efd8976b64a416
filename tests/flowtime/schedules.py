"""Schedules of flowtime for the tests: see :mod:`tests.records`."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.papers.xu2021 import curves, model
from schedgym.papers.xu2021.model import Instance, Job
from schedgym.problems.flowtime import bounds
from schedgym.problems.flowtime.workload import KINDS, SCHEMA
from tests.flowtime import optima
from tests.flowtime.instances import instance_of, random_instance, workload_of
from tests.records import COLUMNS, Run, put, record_of_rows, rows_taken
from tests.tables import declared

POLICIES = {
    "1d": (*model.PRIORITY_RULES, *model.FILLING_RULES, "ocorp", "ocorp+"),
    "2d": (*model.PRIORITY_RULES, *model.FILLING_RULES, "ocorp", "ocorp+m"),
    "mapreduce": (*model.PRIORITY_RULES, "ocorp"),
}
RARE: set[str] = set()


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


def expected_fates(instance: Instance, outcome: model.Outcome) -> dict[str, list[Any]]:
    """The model's ends and counts, job by job."""
    counted, completion = model.counts(instance, outcome), outcome.completion
    return {
        "completion": completion,
        "flowtime": [
            None if end is None else end - job.arrival
            for end, job in zip(completion, instance.jobs, strict=True)
        ],
        "preemptions": counted.preemptions,
        "migrations": counted.migrations,
    }


def simulations(count: int, seed: int, kind: str) -> Iterator[tuple[Instance, model.Outcome]]:
    """Random instances under random policies; some mis-estimated, some cut off."""
    rng = random.Random(seed)
    for x in range(seed, seed + count):
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


def runs(count: int, seed: int) -> Iterator[Run]:
    """The kinds take turns."""
    for x in range(seed, seed + count):
        ((instance, outcome),) = simulations(1, x // 3, KINDS[x % 3])
        fates = expected_fates(instance, outcome)
        yield Run(record_of(instance, outcome), expected_metrics(instance, outcome), fates)


def toy_optimum(workload: Workload, environment: Mapping[str, Any]) -> float:
    """By brute force."""
    return float(optima.optimum(instance_of(workload), 2))


def numbers(record: ScheduleRecord) -> list[float]:
    """Bounds and curves of a schedule, which kernels compute, too."""
    found = [bounds.queue_bound(record.workload, 3.0)]
    found += [*curves.regret_curve(record, 1.5), *curves.flowtime_curve(record)]
    if len(record.workload.jobs["arrival"]) < 4:
        found += [bounds.lower_bound(record.workload), bounds.priced_bound(record.workload, 1.5)]
    return found


def is_valid(record: ScheduleRecord) -> bool:
    """The rules, row by row and slot by slot."""
    instance = instance_of(record.workload)
    jobs, servers = instance.jobs, len(instance.cpu)
    if record.amount.shape != (len(record.job), 1 if instance.memory is None else 2):
        return False
    rows = list(zip(*(getattr(record, name).tolist() for name in COLUMNS), strict=True))
    for j, i, start, end, amount in rows:
        if j not in range(len(jobs)) or i not in range(servers):
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


def split(record: ScheduleRecord, row: int) -> dict[str, Any]:
    """A row cut in two."""
    twice = rows_taken(record, np.insert(np.arange(len(record.job)), row, row))
    twice["end"][row] = twice["start"][row + 1] = np.floor((record.start[row] + record.end[row]) / 2)
    order = np.lexsort((twice["server"], twice["job"], twice["start"]))
    return {name: array[order] for name, array in twice.items()}


CHANGES = {
    "split": lambda record, row, factor: split(record, row),
    "memory": lambda record, row, factor: {"amount": put(record.amount, row, record.amount[row] + 1)},
}


def example() -> ScheduleRecord:
    """Each job on a server of its own."""
    workload = SCHEMA.parse(declared("flowtime", "schedules")["workloads"]["two"])
    return record_of_rows(workload, [(0, 0, 0, 3, 2), (1, 1, 2, 5, 2)])
