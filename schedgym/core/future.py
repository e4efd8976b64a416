"""The future of a workload: the jobs that have not arrived yet.

It is changed to test that nothing reads it, and drawn anew for a search that may not know it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Integers
from schedgym.core.workload import Schema, Workload

Fields = dict[str, npt.NDArray[Any]]


def change_future(
    schema: Schema,
    workload: Workload,
    time: float,
    rng: np.random.Generator,
    factors: Mapping[str, tuple[float, float]],
    instants: Collection[str] = (),
) -> Workload:
    """Return the workload with another future: jobs that arrive after ``time`` are reordered.

    A job keeps its fields and its tasks, but gets the arrival of another job, and arrivals become earlier.
    Fields of jobs or tasks change by random factors; whole numbers are rounded up.

    Args:
        schema: schema of the workload, whose jobs have an arrival; tasks, if any, name their job.
        workload: the instance.
        time: jobs that arrive at this instant or earlier stay as they are, with their tasks.
        rng: draws the new order and the factors.
        factors: name of a field -> (least, largest) factor of its values.
        instants: names of the jobs' fields that are times. Their distance from the arrival stays, or changes
            by their factors; none is later than the latest value of the field.
    """
    old, old_tasks = workload.jobs, workload.tasks
    later = np.flatnonzero(old["arrival"] > time)
    if len(later) == 0:
        return workload
    order = rng.permutation(later)
    jobs = {name: array.copy() for name, array in old.items()}
    for name, values in jobs.items():
        values[later] = old[name][order] - (old["arrival"][order] if name in instants else 0)
    jobs["arrival"][later] = _earlier(old["arrival"][later], time, rng)
    tasks, theirs = _moved_tasks(old_tasks, later, order) if old_tasks else ({}, later)
    for fields, rows in ((jobs, later), (tasks, theirs)):
        for name, (low, high) in factors.items():
            if name in fields:
                values = fields[name]
                changed = values[rows] * rng.uniform(low, high, (len(rows), *(1,) * (values.ndim - 1)))
                values[rows] = np.ceil(changed) if values.dtype.kind == "i" else changed
    for name in instants:
        latest = jobs["arrival"][later] + jobs[name][later]
        jobs[name][later] = np.minimum(latest, old[name].max())
    sections = {"jobs": jobs, "tasks": tasks, "cluster": workload.cluster, "parameters": workload.parameters}
    return schema.parse(sections)


def _earlier(arrival: npt.NDArray[Any], time: float, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Arrivals after ``time``, the gaps between them shortened by up to a half."""
    whole = arrival.dtype.kind == "i"
    first = np.floor(time) + 1 if whole else np.nextafter(time, np.inf)
    gaps = np.diff(arrival, prepend=first) * rng.uniform(0.5, 1.0, len(arrival))
    return first + np.cumsum(np.floor(gaps) if whole else gaps)


def _moved_tasks(
    tasks: Mapping[str, npt.NDArray[Any]], later: Integers, order: Integers
) -> tuple[Fields, Integers]:
    """The tasks when job ``order[i]`` gets the place of ``later[i]``, and which of the tasks are theirs."""
    place = np.arange(later[-1] + 1)
    place[order] = later
    theirs = np.flatnonzero(np.isin(tasks["job"], later))
    number = place[tasks["job"][theirs]]
    by_job = np.argsort(number, kind="stable")
    moved = {name: array.copy() for name, array in tasks.items()}
    for name, array in tasks.items():
        moved[name][theirs] = array[theirs[by_job]]
    moved["job"][theirs] = number[by_job]
    return moved, theirs


def join_future(
    schema: Schema,
    workload: Workload,
    other: Workload | None,
    time: float,
    arrived: int,
    instants: Collection[str],
) -> Workload:
    """Return the workload's first ``arrived`` jobs, followed by the later ones of another.

    The first of these comes as long after ``time`` as it comes after the job before it in the other workload,
    but after ``time``; so the future is drawn anew if arrivals have no memory, as those of a Poisson process.

    Args:
        schema: schema of both workloads, whose jobs are in the order of their arrivals.
        workload: the instance; jobs that arrive up to ``time`` are its first.
        other: an instance drawn by the same parameters; None: no job follows.
        time: the present.
        arrived: number of jobs that have arrived.
        instants: names of the jobs' fields that are times; their distance from the arrival stays.
    """
    first = arrived
    if other is None:
        other, first = workload, len(workload.jobs["arrival"])
    arrival = other.jobs["arrival"]
    whole = bool((arrival == np.floor(arrival)).all())  # slots, of which some problems keep real numbers
    before = arrival[arrived - 1] if arrived else arrival.dtype.type(0)
    soonest = time + 1 if whole else np.nextafter(time, np.inf)
    later = np.maximum(arrival[first:] - before + arrival.dtype.type(time), soonest)
    jobs = {
        name: np.concatenate([values[:arrived], other.jobs[name][first:]])
        for name, values in workload.jobs.items()
    }
    for name in instants:
        jobs[name][arrived:] += later - arrival[first:]
    jobs["arrival"][arrived:] = later
    tasks = {}
    if workload.tasks:
        known, drawn = workload.tasks["job"] < arrived, other.tasks["job"] >= first
        tasks = {
            name: np.concatenate([values[known], other.tasks[name][drawn]])
            for name, values in workload.tasks.items()
        }
    sections = {"jobs": jobs, "tasks": tasks, "cluster": workload.cluster, "parameters": workload.parameters}
    return schema.parse(sections)
