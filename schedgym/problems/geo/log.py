"""Logs of clusters as workloads of GeoAssign: what :func:`schedgym.advise` needs to know of it.

The log tells the sites of each task, the first of which is the associated one (guan2022, section 3.1), and
which tasks form a job; the table of machines tells their sites. A site has slots, and a task takes one.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.errors import InvalidParameter
from schedgym.problems.geo.bounds import job_bounds
from schedgym.problems.geo.metrics import fates
from schedgym.problems.geo.workload import make_workload
from schedgym.traces.base import Trace
from schedgym.traces.feed import Feed, Outcome, select, without
from schedgym.traces.machines import MOST_LEFT_OUT

ID = "schedgym/GeoAssign-v0"
OUTCOME = Outcome("response", "a job is done {} after its submission on average")
POLICIES = ("ata", "ata-greedy", "scta", "swag", "btaaj-swag", "btawj-swag", "btaaj-fcfs", "fcfs")
REFERENCE = "fcfs"
REPLAYED = ()
KNOWS = ""
POOLED = False
LEFT_OUT = ("moving data between sites, and tasks outside the sites of their data", "dependencies of tasks")

_LIST = re.compile(r"[|;,]")


def lacks(trace: Trace) -> str:
    """Say what the log lacks for the problem: the sites of tasks and of machines."""
    if not len(trace.site):
        return "needs, of each task, the sites that hold its data"
    if not len(trace.machine_site):
        return "needs the site of each machine, a column of --machines FILE"
    if trace.gpu.any() and not trace.cores.any():
        return "needs cpus, and the log has GPUs only"
    return ""


def feed(trace: Trace) -> Feed:
    """The tasks by their jobs, and slots in place of cores.

    A slot is as large as the largest task. A job is submitted with the first of its tasks.
    """
    unknown = np.isnan(trace.site)
    trace, out = without(trace, unknown, "no site", "the problem is about tasks that have one")
    if not len(trace.arrival):
        return Feed(trace, 1.0, tuple(out))
    held, size = _held(trace)
    slots: dict[str, float] = {}
    for site, count in zip(trace.machine_site.astype(int).tolist(), held.tolist(), strict=True):
        slots[trace.sites[site]] = slots.get(trace.sites[site], 0.0) + count
    names = sorted(name for name, count in slots.items() if count > 0)
    lists = {i: [names.index(n) for n in _names(text) if n in names] for i, text in enumerate(trace.sites)}
    closed = np.array([not lists[site] for site in trace.site.astype(int).tolist()], dtype=np.bool_)
    where = trace.sites[int(trace.site[np.argmax(closed)])]
    detail = f"the first is at {where}, and the largest task takes {size}"
    if len(trace.job):  # a job ends with the last of its tasks
        closed |= np.isin(trace.job, trace.job[closed])
    if (share := trace.work[closed].sum() / (trace.work.sum() or 1.0)) > MOST_LEFT_OUT and not closed.all():
        reason = (
            f"machines: {100 * share:.3g}% of the work is of jobs with tasks that no machine at their sites"
        )
        raise InvalidParameter(f"{reason} takes: {detail}; machines are at {', '.join(names)}")
    trace, more = without(trace, closed, "no machine at its sites that holds the largest task", detail)
    trace = _by_job(trace)
    count = len(trace.arrival)
    lines = (
        f"slots: one holds the largest task, {size}; sites: {', '.join(f'{n} {slots[n]:g}' for n in names)}",
        f"jobs: {len(np.unique(trace.job))} of {count} tasks, submitted with the first of them; each task "
        "runs at one of its sites",
    )
    fed = dataclasses.replace(
        trace,
        cores=np.ones(count),
        memory=np.zeros(count),
        machine_cores=np.array([slots[name] for name in names]),
        machine_memory=np.zeros(len(names)),
        gpu=np.zeros(0),
        machine_gpu=np.zeros(0),
        machine_site=np.array([trace.sites.index(name) for name in names], dtype=np.float64),
        unit="slots",
    )
    return Feed(fed, 1.0, (*out, *more), lines)


def _by_job(trace: Trace) -> Trace:
    """The tasks sorted by their jobs, which are numbered by their first arrival; without jobs each is one."""
    count = len(trace.arrival)
    if not len(trace.job):
        return dataclasses.replace(trace, job=np.arange(count, dtype=np.float64))
    own = np.where(np.isnan(trace.job), -1.0 - np.arange(count), trace.job)  # without a number: alone
    _, first, place = np.unique(own, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    job = rank[place.reshape(-1)]
    order = np.argsort(job, kind="stable")
    arrival = trace.arrival[first][place.reshape(-1)][order]
    return select(trace, order, arrival=arrival, job=job[order].astype(np.float64))


def _names(text: str) -> list[str]:
    """The sites of a task, e.g. of "paris|rome", each once."""
    return list(dict.fromkeys(name for part in _LIST.split(text) if (name := part.strip())))


def _held(trace: Trace) -> tuple[Floats, str]:
    """Return the number of tasks of the largest size that fit each machine, and this size."""
    cores, memory = float(trace.cores.max()), float(trace.memory.max())
    limited = bool(memory > 0 and trace.machine_memory.any())
    held = [np.floor(trace.machine_cores / cores * (1 + 1e-12))] if cores > 0 else []
    if limited:
        held.append(np.floor(trace.machine_memory / memory * (1 + 1e-12)))
    text = f"cpus {cores:g}" + (f", memory {memory:.4g}" if limited else "") + f" [{trace.unit}]"
    return np.min(held, axis=0) if held else np.ones(len(trace.machine_cores)), text


def parameters(trace: Trace) -> dict[str, Any]:
    """Parameters of the environment: none."""
    return {}


def workload_of(trace: Trace, slot: float = 1.0) -> Workload:
    """Tasks and slots of a :func:`feed`, with the clock from 0 at the first arrival."""
    names = [trace.sites[int(site)] for site in trace.machine_site]
    lists = [[names.index(n) for n in _names(text) if n in names] for text in trace.sites]
    _, first, job = np.unique(trace.job, return_index=True, return_inverse=True)
    return make_workload(
        trace.arrival[first] - trace.arrival[0],
        job.reshape(-1),
        trace.duration,
        [lists[site] for site in trace.site.astype(int).tolist()],
        trace.machine_cores.astype(np.int64),
    )


def outcomes(record: ScheduleRecord) -> Floats:
    """Return the response time of each job [s]; infinite for one that does not end."""
    return np.array([np.inf if found is None else found for found in fates(record)["response"]])


def alone(workload: Workload) -> Floats:
    """Return a response time [s] of each job that it has at least, if it had the cluster to itself."""
    return job_bounds(workload)
