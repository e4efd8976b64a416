"""Metrics of a SingleJob schedule, and an independent validator of whole schedules.

A record has one row per task: the server and the vCPU that it holds from 0 to its completion.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import (
    SCRATCH,
    Fill,
    Flags,
    Floats,
    Integers,
    Integers32,
    Shown,
    allocate,
    length,
    sizes_of,
)
from schedgym.core.jit import helper, record_dtype
from schedgym.core.kernels import measure_kernel
from schedgym.core.record import ScheduleRecord, check_end, check_rows, refuse_first
from schedgym.core.tables import MADE_HERE, batch_of_one, tabled
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.problems.single_job.problem import METRICS
from schedgym.problems.single_job.workload import Jobs, tables

METRIC_VALUES = record_dtype(*((metric.name, np.float64) for metric in METRICS))
SHARES = (0.3, 0.2, 0.2)  # defaults for a rack, a pod and the data centre
ROUNDING = 1e-9  # relative, of sums and quotients
ENERGY_ROUNDING = 1e-11  # relative: an energy is within its cap up to 1e-12


class Schedule(NamedTuple):
    """The decisions of an episode: server, vCPU and time of each task."""

    placement: Annotated[
        Integers32, "task", Fill(-1), Shown("server of each task, -1: not placed", length("server", -1), -1)
    ]
    vcpu: Annotated[Floats, "task"]
    time: Annotated[Floats, "task"]  # [s]


class Metrics(NamedTuple):
    """The metrics of a finished episode, by name."""

    values: Annotated[Any, METRIC_VALUES]


class Scratch(NamedTuple):
    """Scratch space of :func:`measure_one`."""

    count: Annotated[Integers, "group"]  # type: ignore[assignment]  # tasks in the group
    used: Annotated[Flags, "server"]


class Episode(NamedTuple):
    """The arrays of :func:`measure_one`: workload, schedule, metrics and scratch space."""

    jobs: Jobs
    schedule: Schedule
    metrics: Metrics
    scratch: Annotated[Scratch, SCRATCH]


@helper
def measure_one(episode: Episode) -> None:
    """Write the metrics of one schedule; tasks that are not placed are ignored."""
    jobs, schedule, scratch = episode.jobs, episode.schedule, episode.scratch
    values = episode.metrics.values
    for k in range(scratch.count.shape[0]):
        scratch.count[k] = 0
    jct = 0.0
    total_time = 0.0
    energy = 0.0
    allocated = 0.0
    for i in range(jobs.size.tasks):
        j = schedule.placement[i]
        if j < 0:
            continue
        jct = max(jct, schedule.time[i])
        total_time += schedule.time[i]
        energy += jobs.power[i] * (jobs.load[i] / jobs.efficiency[i, j])
        allocated += schedule.vcpu[i]
        for e in range(jobs.server_start[j], jobs.server_start[j + 1]):
            scratch.count[jobs.server_group[e]] += 1
    cpu = 0.0
    for j in range(jobs.capacity.shape[0]):
        cpu += jobs.capacity[j]
        scratch.used[j] = False
    equal = 0.0
    used = 0
    for i in range(jobs.size.tasks):
        j = schedule.placement[i]
        if j < 0:
            continue
        share = math.inf
        for e in range(jobs.server_start[j], jobs.server_start[j + 1]):
            k = jobs.server_group[e]
            share = min(share, jobs.limits[k] / scratch.count[k] / jobs.server_weight[e])
        equal = max(equal, jobs.load[i] / jobs.efficiency[i, j] / share)
        used += not scratch.used[j]
        scratch.used[j] = True
    values.jct = jct
    values.energy = energy
    values.energy_share = energy / jobs.energy_cap[0]
    values.allocated = allocated
    values.utilization = allocated / cpu
    values.mean_task_time = total_time / jobs.size.tasks
    values.servers_used = used
    values.equal_share_jct = equal


measure = measure_kernel(__name__, Episode, measure_one)


class Limits(NamedTuple):
    """The limits of a workload's cluster on a job. R groups, M servers."""

    weight: npt.NDArray[Any]  # [R, M] what a vCPU on a server counts in a group; 0: it is not in the group
    share: Floats  # [R] of the group's available vCPU; NaN where the limit is absolute
    absolute: Floats  # [R] vCPU, by weight, that the job may use if nothing else runs
    name: tuple[str, ...]  # [R] for messages


def read_limits(workload: Workload) -> Limits:
    """Read the groups of a workload and their limits from its cluster alone.

    Rows: the servers (unless ``server_caps`` is false), then racks, pods and the data centre of the fat tree,
    or the groups given.
    """
    cluster = workload.cluster
    cpu = np.asarray(cluster["cpu"], dtype=np.float64)
    count = len(cpu)
    if "groups" in cluster:
        weight = np.asarray(cluster["groups"])
        name = [f"group [{k}]" for k in range(len(weight))]
        share = np.array(cluster.get("beta", np.full(len(weight), np.nan)), dtype=np.float64)
    else:
        half = int(cluster["arity"]) // 2
        levels = ((half, "rack"), (half * half, "pod"), (count, "data centre"))
        index = np.arange(count)
        weight = np.concatenate([index // w == np.arange(count // w)[:, None] for w, _ in levels])
        name = [f"{kind} [{k}]" for w, kind in levels for k in range(count // w)]
        share = np.repeat(cluster.get("beta", SHARES), [count // w for w, _ in levels])
    row, server = np.nonzero(weight)
    # one after the other, as the environment adds them
    absolute = share * np.bincount(row, weights=weight[row, server] * cpu[server], minlength=len(weight))
    if "limit" in cluster:
        absolute = np.array(cluster["limit"], dtype=np.float64)
    if cluster.get("server_caps", True):
        weight = np.concatenate([np.eye(count, dtype=bool), weight])
        share = np.concatenate([np.ones(count), share])
        absolute = np.concatenate([cpu, absolute])
        name = [f"server [{j}]" for j in range(count)] + name
    return Limits(weight, share, absolute, tuple(name))


def metrics(record: ScheduleRecord) -> dict[str, float]:
    """Return all metrics of a schedule by name, except those that only the environment knows."""
    check_rows(record, 1)
    jobs = tables(record.workload)
    sizes = sizes_of(jobs)
    schedule, found = allocate(Schedule, sizes, 1), allocate(Metrics, {}, 1)
    schedule.placement[0, record.job] = record.server
    schedule.vcpu[0, record.job] = record.amount[:, 0]
    schedule.time[0, record.job] = record.end
    measure(*tabled(Episode(batch_of_one(jobs), schedule, found, MADE_HERE), sizes), np.ones(1, dtype=bool))
    return {metric.name: float(found.values[metric.name][0]) for metric in METRICS if metric.recorded}


def fates(record: ScheduleRecord) -> dict[str, list[Any]]:
    """Return the outcome of each task, in the order of the input: server, cpu [vCPU] and completion [s].

    All are None for a task that is not placed.
    """
    check_rows(record, 1)
    columns = {"server": record.server, "cpu": record.amount[:, 0], "completion": record.end}
    found = {name: np.full(len(record.workload.jobs["load"]), None) for name in columns}
    for name, column in columns.items():
        found[name][record.job] = column
    return {name: column.tolist() for name, column in found.items()}


def validate(record: ScheduleRecord) -> None:
    """Check a whole schedule against the problem's constraints, independently of the dynamics.

    Every task runs once, without interruption, on one server from 0, with a constant vCPU > 0. In no group
    do the vCPU, each counted by the weight of its server there, exceed the limit (single servers are groups
    unless ``server_caps`` is false). The energy is within the cap.

    Raises:
        InvalidSchedule: naming the first row, task or group at fault.
    """
    workload = record.workload
    load = np.asarray(workload.jobs["load"])
    check_rows(record, 1)
    count, servers, rows = len(load), len(workload.cluster["cpu"]), len(record.job)
    if record.truncated:
        raise InvalidSchedule("truncated: an episode cannot end with tasks left")
    runs = np.bincount(record.job, minlength=count)
    refuse_first("task [{}]", ((runs > 1, "runs more than once"), (runs == 0, "never runs")))
    if (record.job != np.arange(rows)).any():
        raise InvalidSchedule("rows must be sorted by task")
    vcpu, end = record.amount[:, 0], record.end
    leq = load / np.asarray(workload.jobs["efficiency"])[record.job, record.server]
    refuse_first("task [{}]", ((record.start != 0.0, "does not start at 0"), (~(vcpu > 0.0), "has no vCPU")))
    bad = np.abs(vcpu * end - leq) > ROUNDING * leq
    if bad.any():
        i = int(np.argmax(bad))
        done = f"{vcpu[i] * end[i]:.12g} of {leq[i]:.12g} vCPU s"
        raise InvalidSchedule(f"task [{i}] does not do its work: {done}")
    own = read_limits(workload)
    used = own.weight.astype(np.float64) @ np.bincount(record.server, weights=vcpu, minlength=servers)
    over = used > own.absolute * (1.0 + 1.001 * ROUNDING)  # plans may reach 1 + 1e-9, and sums are rounded
    if over.any():
        k = int(np.argmax(over))
        raise InvalidSchedule(f"{own.name[k]}: {used[k]:.12g} of {own.absolute[k]:.12g} vCPU")
    power = np.asarray(workload.jobs.get("power", 1.0))  # per vCPU, of each task
    energy, cap = float((power * leq).sum()), float(workload.jobs["energy_cap"])
    if energy > cap * (1.0 + ENERGY_ROUNDING):
        raise InvalidSchedule(f"energy: {energy:.12g} of {cap:.12g} vCPU s")
    check_end(record, end.max())
