"""Schedules of geo for the tests: see :mod:`tests.records`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.papers.guan2022 import model
from schedgym.papers.guan2022.model import Instance, Job
from schedgym.problems.geo.bounds import response_bound
from tests.geo.instances import instance_of, random_instance, workload_of
from tests.geo.optima import optimum
from tests.records import COLUMNS, Change, Run, put, section_changed

STATISTICS = {"mean": "mean", "median": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
#: tasks that never run are left to a test by hand
RARE = {"truncated"}


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
    return make_record(workload_of(instance, order), [start[x] for x in order], [site[x] for x in order])


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


def runs(count: int, seed: int) -> Iterator[Run]:
    """Random instances under random policies of both chapters."""
    rng = random.Random(seed)
    for x in range(seed, seed + count):
        instance = random_instance(rng, adversarial=x % 2 == 0, window=x % 3 == 0)
        if x % 4 < 2:
            outcome = model.simulate_assign(instance, rng.choice(model.ASSIGN_POLICIES))
        else:
            fast = [name for name in model.FAIR_POLICIES if not name.startswith("opt")]
            outcome = model.simulate_fair(instance, rng.choice(fast), work_conserving=x % 8 < 4)
        completion = [float(c) for c in outcome.completion]
        response = [c - float(job.arrival) for c, job in zip(completion, instance.jobs, strict=True)]
        fates = {"completion": completion, "response": response}
        yield Run(record_of(instance, outcome, rng), expected_metrics(instance, outcome), fates)


def is_valid(record: ScheduleRecord) -> bool:
    """The rules, row by row and instant by instant."""
    tasks, arrival = record.workload.tasks, record.workload.jobs["arrival"]
    slots = record.workload.cluster["slots"].tolist()
    rows = list(zip(*(getattr(record, name).tolist() for name in COLUMNS[:4]), strict=True))
    if any(x not in range(len(tasks["job"])) or j not in range(len(slots)) for x, j, _, _ in rows):
        return False
    ran = [x for x, *_ in rows]
    if len(set(ran)) < len(ran) or (len(ran) < len(tasks["job"]) and not record.truncated):
        return False
    if record.final_time != max([*arrival.tolist(), *(end for *_, end in rows)]):
        return False
    for x, j, start, end in rows:
        if start < arrival[tasks["job"][x]]:
            return False
        if end != start + tasks["duration"][x] or j not in tasks["sites"][x]:
            return False
        if sum(a <= start < b for _, at, a, b in rows if at == j) > slots[j]:
            return False
    return record.amount.shape == (len(rows), 1) and bool((record.amount == 1).all())


def toy_optimum(workload: Workload, environment: Mapping[str, Any]) -> float:
    """By brute force."""
    return float(optimum(instance_of(workload)))


def numbers(record: ScheduleRecord) -> list[float]:
    """A bound, which a kernel computes, too."""
    return [response_bound(record.workload)]


CHANGES: dict[str, Change] = {
    "later": lambda record, row, factor: {
        "start": put(record.start, row, record.start[row] + factor),
        "end": put(record.end, row, record.start[row] + factor + (record.end[row] - record.start[row])),
    },
    "a rounding error": lambda record, row, factor: {"end": put(record.end, row, record.end[row] + 1e-9)},
    "few slots": lambda record, row, factor: section_changed(
        record, "cluster", slots=np.ones_like(record.workload.cluster["slots"])
    ),
}


def example() -> ScheduleRecord:
    """Site 0 has one slot, site 1 two; all tasks but the last run at once from 1."""
    jobs = [Job(1, ((2, (0, 1)), (2, (1,)))), Job(1, ((2, (1, 0)), (1, (0,))))]
    return make_record(workload_of(Instance((1, 2), jobs)), [1.0, 1.0, 1.0, 3.0], [0, 1, 1, 0])
