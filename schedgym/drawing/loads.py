"""The work of a schedule over time: pieces of work with their jobs, and the load of each resource."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats, Integers
from schedgym.core.problem import get_problem
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Schema


@dataclasses.dataclass(frozen=True)
class Load:
    """The amount of one resource that a schedule uses.

    Attributes:
        name: of the resource, e.g. "cpu".
        unit: of its amounts, e.g. "cores".
        capacity: of the whole cluster.
        amount: amount that each piece of work uses; [rows of the record].
    """

    name: str
    unit: str
    capacity: float
    amount: Floats


def owners(record: ScheduleRecord, schema: Schema) -> Integers:
    """The job of each row of the record, whose ``job`` numbers tasks where workloads always list these."""
    if any(field.name == "job" and not field.optional for field in schema.tasks):
        return np.asarray(record.workload.tasks["job"], dtype=np.int64)[record.job]
    return record.job


def loads_of(record: ScheduleRecord) -> list[Load]:
    """The load of each resource of a record's cluster.

    A problem whose amounts are not those of the servers' resources in the order of its schema says what they
    are by a function ``loads(record)`` in its module ``render``.
    """
    problem = get_problem(record.workload.problem)
    own: Callable[[ScheduleRecord], list[Load]] | None = getattr(problem.module("render"), "loads", None)
    if own is not None:
        return own(record)
    return loads_by_schema(record, problem.schema)


def loads_by_schema(record: ScheduleRecord, schema: Schema) -> list[Load]:
    """Take the columns of ``amount`` as the resources of the servers (sites), in the schema's order."""
    cluster, sections = record.workload.cluster, vars(record.workload)
    place = next((f.dimensions for f in schema.cluster if len(f.dimensions) == 1), None)
    known = schema.fields("cluster", sections)
    fields = [f for f in known if f.dimensions == place and f.name in cluster]
    return [
        Load(field.name, field.unit, float(np.sum(cluster[field.name])), record.amount[:, k])
        for k, field in enumerate(fields[: record.amount.shape[1]])
    ]


def spans(
    job: Integers, start: Floats, end: Floats, jobs: int, unfinished: Iterable[int] = (), deadline: Any = None
) -> tuple[Floats, Floats]:
    """The times of each job's first start and completion, [jobs] each; NaN and infinity if there are none.

    Args:
        job: of each piece of work.
        start: of each piece.
        end: of each piece.
        jobs: number of jobs.
        unfinished: jobs of which work is left.
        deadline: [jobs]; jobs then count as complete at their deadlines.
    """
    begin, finish = np.full(jobs, np.nan), np.full(jobs, -np.inf)
    np.fmin.at(begin, job, start)
    np.maximum.at(finish, job, end)
    if deadline is not None:
        finish = np.maximum(finish, deadline)
    else:
        finish[list(unfinished)] = np.inf
    return begin, finish


@dataclasses.dataclass(frozen=True)
class Past:
    """The work that has run in an episode until now.

    Attributes:
        job, start, end: pieces of work and their jobs; [pieces].
        share: of the cluster's capacity that a piece holds; [pieces].
        begin, finish: see :func:`spans`; [jobs].
        now: the clock.
        unit: of the times.
        resource: the resource of which these are shares.
    """

    job: Integers
    start: Floats
    end: Floats
    share: Floats
    begin: Floats
    finish: Floats
    now: float
    unit: str
    resource: str


def past(
    record: ScheduleRecord, unfinished: Iterable[int] = (), now: float | None = None, resource: int = 0
) -> Past:
    """Return the work of a record until now.

    Args:
        record: of the episode so far.
        unfinished: jobs of which work is left.
        now: the clock; None: the record's.
        resource: number of the load that is told.
    """
    schema = get_problem(record.workload.problem).schema
    job = owners(record, schema)
    load = loads_of(record)[resource]
    arrival = record.workload.jobs.get("arrival")
    count = len(arrival) if arrival is not None else int(np.max(job, initial=-1)) + 1
    deadline = record.workload.jobs.get("deadline")
    begin, finish = spans(job, record.start, record.end, count, unfinished, deadline)
    unit = next((field.unit for field in schema.jobs if field.name == "arrival"), "s")
    clock = record.final_time if now is None else now
    share = load.amount / load.capacity
    return Past(job, record.start, record.end, share, begin, finish, clock, unit, load.name)
