"""Metrics of a SingleJob schedule, and an independent validator of whole schedules.

A record has one row per task: the server and the vCPU that it holds from 0 to its completion.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import kernel
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.problems.single_job.problem import METRICS

__all__ = ["Limits", "check_rows", "fates", "measure", "metrics", "read_limits", "validate"]

B1 = npt.NDArray[np.bool_]
F8 = npt.NDArray[np.float64]
I1 = npt.NDArray[np.int8]
I4 = npt.NDArray[np.int32]
I8 = npt.NDArray[np.int64]

NAMES = tuple(metric.name for metric in METRICS if metric.recorded)
SHARES = (0.3, 0.2, 0.2)  # of a rack, a pod, the data centre where a workload does not say
ROUNDING = 1e-9  # relative, of sums and quotients
ENERGY_ROUNDING = 1e-11  # relative: an energy is within its cap up to 1e-12


@kernel
def measure(
    mask: B1,
    tasks: I8,
    load: F8,
    efficiency: F8,
    capacity: F8,
    server_start: I8,
    server_group: I8,
    limits: F8,
    energy_cap: F8,
    placement: I4,
    vcpu: F8,
    time: F8,
    out: F8,
) -> None:
    """Metrics of schedules.

    Args:
        mask: which rows to measure [B].
        tasks: number of tasks [B].
        load: vCPU-seconds at efficiency 1 [B, >= N].
        efficiency: [B, >= N, M].
        capacity: vCPU of the servers [B, M].
        server_start: first entry of each server in ``server_group`` [B or 1, M + 1]; one row serves all.
        server_group: the groups of each server [B or 1, >= E].
        limits: vCPU that the job may use in each group [B, R].
        energy_cap: vCPU-seconds [B].
        placement: server of each task, -1: none, and the task is left out [B, >= N].
        vcpu: of each task [B, >= N].
        time: execution time of each task [s] [B, >= N].
        out: written [B, >= len(NAMES)], in the order of the descriptor.
    """
    count = np.empty(limits.shape[1], dtype=np.int64)
    seen = np.full(capacity.shape[1], -1, dtype=np.int64)
    for b in range(mask.shape[0]):
        if not mask[b]:
            continue
        g = b if server_start.shape[0] > 1 else 0
        for k in range(count.shape[0]):
            count[k] = 0
        jct = 0.0
        total_time = 0.0
        energy = 0.0
        allocated = 0.0
        for i in range(tasks[b]):
            j = placement[b, i]
            if j < 0:
                continue
            jct = max(jct, time[b, i])
            total_time += time[b, i]
            energy += load[b, i] / efficiency[b, i, j]
            allocated += vcpu[b, i]
            for x in range(server_start[g, j], server_start[g, j + 1]):
                count[server_group[g, x]] += 1
        cpu = 0.0
        for j in range(capacity.shape[1]):
            cpu += capacity[b, j]
        equal = 0.0
        used = 0
        for i in range(tasks[b]):
            j = placement[b, i]
            if j < 0:
                continue
            share = math.inf
            for x in range(server_start[g, j], server_start[g, j + 1]):
                k = server_group[g, x]
                share = min(share, limits[b, k] / count[k])
            equal = max(equal, load[b, i] / efficiency[b, i, j] / share)
            if seen[j] != b:
                seen[j] = b
                used += 1
        row = out[b]
        row[0] = jct
        row[1] = energy
        row[2] = energy / energy_cap[b]
        row[3] = allocated
        row[4] = allocated / cpu
        row[5] = total_time / tasks[b]
        row[6] = used
        row[7] = equal


class Limits(NamedTuple):
    """What a workload's cluster allows a job. R groups, M servers."""

    member: B1  # [R, M] whether a server is in a group
    share: F8  # [R] of the group's available vCPU; NaN where ``absolute`` says it
    absolute: F8  # [R] vCPU that the job may use if nothing else runs
    name: tuple[str, ...]  # [R] for messages


def read_limits(workload: Workload) -> Limits:
    """The groups of a workload and their limits, read from its cluster alone.

    Rows: the servers (unless ``server_caps`` is false), then racks, pods and the data centre of the fat tree,
    or the groups given.
    """
    cluster = workload.cluster
    cpu = np.asarray(cluster["cpu"], dtype=np.float64)
    count = len(cpu)
    if "groups" in cluster:
        member = np.asarray(cluster["groups"]) != 0
        name = [f"group [{k}]" for k in range(len(member))]
        share = np.array(cluster.get("beta", np.full(len(member), np.nan)), dtype=np.float64)
    else:
        half = int(cluster["arity"]) // 2
        levels = ((half, "rack"), (half * half, "pod"), (count, "data centre"))
        index = np.arange(count)
        member = np.concatenate([index // w == np.arange(count // w)[:, None] for w, _ in levels])
        name = [f"{kind} [{k}]" for w, kind in levels for k in range(count // w)]
        share = np.repeat(cluster.get("beta", SHARES), [count // w for w, _ in levels])
    row, server = np.nonzero(member)
    # one after the other, as the environment adds them
    absolute = share * np.bincount(row, weights=cpu[server], minlength=len(member))
    if "limit" in cluster:
        absolute = np.array(cluster["limit"], dtype=np.float64)
    if cluster.get("server_caps", True):
        member = np.concatenate([np.eye(count, dtype=bool), member])
        share = np.concatenate([np.ones(count), share])
        absolute = np.concatenate([cpu, absolute])
        name = [f"server [{j}]" for j in range(count)] + name
    return Limits(member, share, absolute, tuple(name))


def metrics(record: ScheduleRecord) -> dict[str, float]:
    """All metrics of a schedule by name, but for those that only the environment knows."""
    workload = record.workload
    own = read_limits(workload)
    load = np.array(workload.jobs["load"], dtype=np.float64)
    placement = np.full(len(load), -1, dtype=np.int32)
    vcpu, time = np.zeros((2, len(load)))
    placement[record.job] = record.server
    vcpu[record.job] = record.amount[:, 0]
    time[record.job] = record.end
    server, group = np.nonzero(own.member.T)
    start = np.searchsorted(server, np.arange(own.member.shape[1] + 1))
    out = np.zeros((1, len(NAMES)))
    measure(
        np.ones(1, dtype=bool),
        np.array([len(load)]),
        load[None],
        # copies, since kernels are compiled anew for read-only arrays
        np.array(workload.jobs["efficiency"], dtype=np.float64)[None],
        np.array(workload.cluster["cpu"], dtype=np.float64)[None],
        start.astype(np.int64)[None],
        group.astype(np.int64)[None],
        own.absolute[None],
        np.array([float(workload.jobs["energy_cap"])]),
        placement[None],
        vcpu[None],
        time[None],
        out,
    )
    return dict(zip(NAMES, out[0].tolist(), strict=True))


def fates(record: ScheduleRecord) -> dict[str, list[Any]]:
    """What became of each task, in the order of the input: server, cpu [vCPU] and completion [s].

    None for a task that is not placed.
    """
    count = len(record.workload.jobs["load"])
    result: dict[str, list[Any]] = {name: [None] * count for name in ("server", "cpu", "completion")}
    columns = (record.server, record.amount[:, 0], record.end)
    for name, column in zip(result, columns, strict=True):
        for i, value in zip(record.job.tolist(), column.tolist(), strict=True):
            result[name][i] = value
    return result


def validate(record: ScheduleRecord) -> None:
    """Check a whole schedule against the problem's constraints, independently of the dynamics.

    Every task runs once, whole, on one server from 0, with a constant vCPU > 0; in no group do the vCPU
    exceed the limit (servers' own unless ``server_caps`` is false); the energy is within the cap.

    Raises:
        InvalidSchedule: naming the first task or group at fault.
    """
    workload = record.workload
    load = np.asarray(workload.jobs["load"])
    count, servers, rows = len(load), len(workload.cluster["cpu"]), len(record.job)
    check_rows(record, count, servers, 1)
    if record.truncated:
        raise InvalidSchedule("truncated: an episode cannot end with tasks left")
    runs = np.bincount(record.job, minlength=count)
    for bad, what in ((runs > 1, "runs more than once"), (runs == 0, "never runs")):
        if bad.any():
            raise InvalidSchedule(f"task [{int(np.argmax(bad))}] {what}")
    if (record.job != np.arange(rows)).any():
        raise InvalidSchedule("rows must be sorted by task")
    vcpu, end = record.amount[:, 0], record.end
    leq = load / np.asarray(workload.jobs["efficiency"])[record.job, record.server]
    for bad, what in (
        (record.start != 0.0, "does not start at 0"),
        (~(vcpu > 0.0), "has no vCPU"),
        (np.abs(vcpu * end - leq) > ROUNDING * leq, "does not do its work"),
    ):
        if bad.any():
            i = int(np.argmax(bad))
            detail = f": {vcpu[i] * end[i]:.12g} of {leq[i]:.12g} vCPU s" if what.endswith("work") else ""
            raise InvalidSchedule(f"task [{i}] {what}{detail}")
    own = read_limits(workload)
    used = own.member.astype(np.float64) @ np.bincount(record.server, weights=vcpu, minlength=servers)
    over = used > own.absolute * (1.0 + 1.001 * ROUNDING)  # plans may reach 1 + 1e-9, and sums are rounded
    if over.any():
        k = int(np.argmax(over))
        raise InvalidSchedule(f"{own.name[k]}: {used[k]:.12g} of {own.absolute[k]:.12g} vCPU")
    energy, cap = float(leq.sum()), float(workload.jobs["energy_cap"])
    if energy > cap * (1.0 + ENERGY_ROUNDING):
        raise InvalidSchedule(f"energy: {energy:.12g} of {cap:.12g} vCPU s")
    if record.final_time != end.max():
        raise InvalidSchedule(f"final_time: must be {end.max():.12g}, when the last task ends")


def check_rows(record: ScheduleRecord, tasks: int, servers: int, resources: int) -> None:
    """Check the shapes of a record's columns, and that every entry is a finite number or an index.

    Raises:
        InvalidSchedule: naming the column, or the first row at fault.
    """
    rows = len(record.job)
    for name in ("job", "server", "start", "end"):
        if getattr(record, name).shape != (rows,):
            raise InvalidSchedule(f"{name}: must have one value per row")
    if record.amount.shape != (rows, resources):
        raise InvalidSchedule(
            f"amount: must have the shape [{rows}, {resources}], got {list(record.amount.shape)}"
        )
    for bad, what in (
        ((record.job < 0) | (record.job >= tasks), "names a task that does not exist"),
        ((record.server < 0) | (record.server >= servers), "names a server that does not exist"),
        (~(np.isfinite(record.start) & np.isfinite(record.end)), "has no start or end"),
        (record.start > record.end, "ends before it starts"),
        (~np.isfinite(record.amount).all(axis=1), "has no amount"),
        (record.end > record.final_time, "ends after the episode"),
    ):
        if bad.any():
            raise InvalidSchedule(f"row [{int(np.argmax(bad))}] {what}")
