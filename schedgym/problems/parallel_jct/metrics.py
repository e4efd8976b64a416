"""Metrics of a ParallelJCT schedule, and an independent validator of whole schedules.

A record has one row per piece of a task in which its vCPU are constant: base and extra, those that DRC adds.
A job that has not completed when the episode ends is in the system, and one that has not been launched waits,
until then. A task whose remaining work takes at most 1e-9 max(1, t) seconds has completed at t.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import helper, kernel
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.problems.parallel_jct.problem import METRICS
from schedgym.problems.single_job.metrics import (
    ENERGY_ROUNDING,
    ROUNDING,
    Limits,
    check_rows,
    read_limits,
)

__all__ = ["Pieces", "fates", "measure", "metrics", "pieces", "validate"]

B1 = npt.NDArray[np.bool_]
F8 = npt.NDArray[np.float64]
I8 = npt.NDArray[np.int64]

NAMES = tuple(metric.name for metric in METRICS if metric.recorded)
LARGEST_RATIO = 1.1  # of a drawn energy cap to the load
INSTANT = 1e-9  # events closer than this, times max(1, t), are one
CRUMB = 1e-9  # share of a server's capacity that counts as nothing


@helper
def percentile(ordered: F8, count: int, share: float) -> float:
    """Linear interpolation between order statistics (numpy's default definition)."""
    at = share * (count - 1)
    low = int(math.floor(at))
    high = min(low + 1, count - 1)
    t = at - low
    difference = ordered[high] - ordered[low]
    if t >= 0.5:  # as numpy does, so that both ends are exact
        return ordered[high] - difference * (1.0 - t)
    return ordered[low] + difference * t


@kernel
def measure(
    mask: B1,
    jobs: I8,
    arrival: F8,
    total_load: F8,
    granted: B1,
    launch: F8,
    completion: F8,
    energy: F8,
    work: F8,
    capacity: F8,
    clock: F8,
    out: F8,
) -> None:
    """Metrics of schedules.

    Args:
        mask: which rows to measure [B].
        jobs: number of jobs [B].
        arrival: ascending [s] [B, >= J].
        total_load: of each job [vCPU s] [B, >= J].
        granted: whether a job's least energy exceeds the largest cap [B, >= J].
        launch: NaN for jobs that never were [s] [B, >= J].
        completion: NaN for jobs that have not completed [s] [B, >= J].
        energy: of the placement of each launched job [vCPU s] [B, >= J].
        work: done for each job that is launched and not completed [vCPU s] [B, >= J].
        capacity: of the servers [vCPU] [B, M].
        clock: when the episode ended [s] [B].
        out: written [B, >= len(NAMES)], in the order of the descriptor.
    """
    time = np.empty(arrival.shape[1])
    waiting = np.empty(arrival.shape[1])
    for b in range(mask.shape[0]):
        if not mask[b]:
            continue
        n = jobs[b]
        total_time = 0.0
        total_waiting = 0.0
        running = 0.0
        last = arrival[b, 0]
        finished = 0
        launched = 0
        used = 0.0
        committed = 0.0
        load = 0.0
        grants = 0
        for i in range(n):
            if math.isnan(completion[b, i]):
                time[i] = max(clock[b] - arrival[b, i], 0.0)
                last = max(last, clock[b])
            else:
                time[i] = completion[b, i] - arrival[b, i]
                last = max(last, completion[b, i])
                finished += 1
                running += completion[b, i] - launch[b, i]
            if math.isnan(launch[b, i]):
                waiting[i] = max(clock[b] - arrival[b, i], 0.0)
            else:
                waiting[i] = launch[b, i] - arrival[b, i]
                launched += 1
                grants += granted[b, i]
                committed += energy[b, i]
                load += total_load[b, i]
                used += work[b, i] if math.isnan(completion[b, i]) else energy[b, i]
            total_time += time[i]
            total_waiting += waiting[i]
        time[:n].sort()
        waiting[:n].sort()
        cpu = 0.0
        for j in range(capacity.shape[1]):
            cpu += capacity[b, j]
        makespan = last - arrival[b, 0]
        row = out[b]
        row[0] = total_time / n
        row[1] = percentile(time, n, 0.5)
        row[2] = percentile(time, n, 0.95)
        row[3] = time[n - 1]
        row[4] = total_waiting / n
        row[5] = percentile(waiting, n, 0.95)
        row[6] = running / finished if finished > 0 else 0.0
        row[7] = makespan
        row[8] = finished
        row[9] = launched
        # a duration may vanish in the rounding of a large clock, and with it the makespan
        row[10] = used / (cpu * makespan) if makespan > 0.0 else 0.0
        row[11] = committed
        row[12] = committed / load if launched > 0 else 0.0
        row[13] = grants


class Pieces(NamedTuple):
    """What a record says of each task and job. T tasks, J jobs, R rows."""

    job: I8  # [T] ascending
    first_task: I8  # [J + 1]
    server: I8  # [T] -1: never launched
    leq: F8  # [T] equivalent load on that server [vCPU s]; 0 if never launched
    start: F8  # [T] [s] NaN: never
    end: F8  # [T] of the last piece [s] NaN: none
    base: F8  # [T] vCPU in the first piece
    done: F8  # [T] vCPU s
    completed: B1  # [T]
    order: I8  # [R] rows by task, then time
    launch: F8  # [J] [s] NaN: never
    completion: F8  # [J] [s] NaN: has not


def pieces(record: ScheduleRecord) -> Pieces:
    """Gather the rows of a record, sorted by start, by task and by job."""
    workload = record.workload
    job, load = np.asarray(workload.tasks["job"]), np.asarray(workload.tasks["load"])
    tasks, jobs = len(job), len(workload.jobs["arrival"])
    first_task = np.searchsorted(job, np.arange(jobs + 1))
    order = np.argsort(record.job, kind="stable")
    rows = np.bincount(record.job, minlength=tasks)
    ran = rows > 0
    upto = np.cumsum(rows)
    head, tail = order[(upto - rows)[ran]], order[(upto - 1)[ran]]
    server = np.full(tasks, -1)
    server[ran] = record.server[head]
    leq, base = np.zeros((2, tasks))
    leq[ran] = load[ran] / np.asarray(workload.tasks["efficiency"])[ran, server[ran]]
    base[ran] = record.amount[head, 0]
    start, end = np.full((2, tasks), np.nan)
    start[ran], end[ran] = record.start[head], record.end[tail]
    speed = record.amount.sum(axis=1)
    done = _totals(record.job, tasks, speed * (record.end - record.start))
    completed = ran.copy()
    if record.truncated:
        late = np.flatnonzero(ran)[record.end[tail] == record.final_time]
        slack = INSTANT * max(1.0, record.final_time)
        completed[late] = leq[late] - done[late] <= speed[order[upto[late] - 1]] * slack
    launch, completion = np.full((2, jobs), np.nan)
    some = np.flatnonzero(ran[first_task[:-1]])
    launch[some] = start[first_task[some]]
    whole = np.logical_and.reduceat(completed, first_task[:-1])
    completion[whole] = np.maximum.reduceat(end, first_task[:-1])[whole]
    return Pieces(job, first_task, server, leq, start, end, base, done, completed, order, launch, completion)


def _totals(owner: I8, owners: int, amount: F8) -> F8:
    """Sums over what each owner has [owners], one after the other, as the environment adds them."""
    return np.asarray(np.bincount(owner, weights=amount, minlength=owners), dtype=np.float64)


def _caps(workload: Workload) -> tuple[F8, F8, F8]:
    """Load, least energy and the largest possible cap of each job before anything is granted; [J]."""
    job, load = np.asarray(workload.tasks["job"]), np.asarray(workload.tasks["load"])
    jobs = len(workload.jobs["arrival"])
    total = _totals(job, jobs, load)
    least = _totals(job, jobs, load / np.asarray(workload.tasks["efficiency"]).max(axis=1))
    ratio = np.asarray(workload.jobs.get("energy_cap_ratio", LARGEST_RATIO))
    return total, least, ratio * total


def metrics(record: ScheduleRecord) -> dict[str, float]:
    """All metrics of a schedule by name, but for those that only the environment knows."""
    workload, own = record.workload, pieces(record)
    jobs = len(own.launch)
    total, least, cap = _caps(workload)
    out = np.zeros((1, len(NAMES)))
    measure(
        np.ones(1, dtype=bool),
        np.array([jobs]),
        # copies, since kernels are compiled anew for read-only arrays
        np.array(workload.jobs["arrival"], dtype=np.float64)[None],
        total[None],
        (least > cap)[None],
        own.launch[None],
        own.completion[None],
        _totals(own.job, jobs, own.leq)[None],
        _totals(own.job, jobs, np.where(own.completed, own.leq, own.done))[None],
        np.array(workload.cluster["cpu"], dtype=np.float64)[None],
        np.array([float(record.final_time)]),
        out,
    )
    return dict(zip(NAMES, out[0].tolist(), strict=True))


def fates(record: ScheduleRecord) -> dict[str, list[Any]]:
    """What became of each job, in the order of the input: start [s], completion [s] and energy [vCPU s].

    None for what has not happened; the energy is that of the placement.
    """
    own = pieces(record)
    energy = _totals(own.job, len(own.launch), own.leq)
    columns = {
        "start": own.launch,
        "completion": own.completion,
        "energy": np.where(np.isnan(own.launch), np.nan, energy),
    }
    return {name: [None if math.isnan(x) else x for x in column.tolist()] for name, column in columns.items()}


def validate(record: ScheduleRecord) -> None:
    """Check a whole schedule against the problem's constraints, independently of the dynamics.

    All tasks of a job start at once, not before it arrives, each on one server, and run to their end without
    a break, with a constant base vCPU > 0. A job's base vCPU keep every group's share of what is available
    when it is launched: capacity that no base holds; jobs launched at one instant must have an order in
    which they do. Servers are never over their capacity (unless ``server_caps`` is false). Extra vCPU are
    all 0, or everywhere what the bases leave, by equivalent load. A placement's energy is within the largest
    cap that the job can have. Tasks do their work; all complete unless the episode was truncated.

    Raises:
        InvalidSchedule: naming the first task, job, server or group at fault.
    """
    workload = record.workload
    cpu = np.array(workload.cluster["cpu"], dtype=np.float64)
    count, servers, rows = len(workload.tasks["job"]), len(cpu), len(record.job)
    check_rows(record, count, servers, 2)
    descents = (np.diff(record.start) < 0) | ((np.diff(record.start) == 0) & (np.diff(record.job) < 0))
    if descents.any():
        raise InvalidSchedule(f"row [{int(np.argmax(descents)) + 1}]: rows must be sorted by start and task")
    if rows and record.start[0] < 0.0:
        raise InvalidSchedule("row [0] starts before time 0")
    own = pieces(record)
    _check_tasks(record, own)
    _check_jobs(record, own)
    limits = read_limits(workload)
    _check_launches(own, limits, cpu)
    _check_servers(record, own, cpu, bool(workload.cluster.get("server_caps", True)))
    if record.truncated:
        return
    waiting = np.isnan(own.launch)
    if waiting.any():
        raise InvalidSchedule(f"job [{int(np.argmax(waiting))}] never starts")
    if record.final_time != record.end.max():
        raise InvalidSchedule(f"final_time: must be {record.end.max():.12g}, when the last task ends")


def _check_tasks(record: ScheduleRecord, own: Pieces) -> None:
    """Every task runs without a break on one server with one base, and does its work."""

    def refuse(bad: B1, task: I8, what: str) -> None:
        if bad.any():
            raise InvalidSchedule(f"task [{int(task[bad].min())}] {what}")

    job, base, extra = record.job, record.amount[:, 0], record.amount[:, 1]
    refuse(~(base > 0.0), job, "has no base vCPU")
    refuse(~(extra >= 0.0), job, "has less than no extra vCPU")
    refuse(record.server != own.server[job], job, "changes its server")
    refuse(base != own.base[job], job, "changes its base vCPU")
    before, after = own.order[:-1], own.order[1:]
    inside = job[before] == job[after]
    refuse(inside & (record.end[before] != record.start[after]), job[after], "does not run on where it stops")
    speed = np.zeros(len(own.leq))  # in the last piece: of what is written, the last stays
    speed[job[own.order]] = (base + extra)[own.order]
    slack = ROUNDING * own.leq + 3.0 * INSTANT * speed * np.fmax(own.end, 1.0)
    over = own.done > own.leq + slack
    bad = over | (own.completed & (own.done < own.leq - slack))
    if bad.any():
        i = int(np.argmax(bad))
        what = "does more than its work" if over[i] else "stops before its work is done"
        raise InvalidSchedule(f"task [{i}] {what}: {own.done[i]:.12g} of {own.leq[i]:.12g} vCPU s")


def _check_jobs(record: ScheduleRecord, own: Pieces) -> None:
    """The tasks of a job start at once, after its arrival, and within the largest energy cap."""
    workload = record.workload
    launch = own.launch[own.job]
    together = (own.start == launch) | (np.isnan(own.start) & np.isnan(launch))
    if not together.all():
        i = int(np.argmin(together))
        raise InvalidSchedule(f"task [{i}] does not start with the first task of job [{int(own.job[i])}]")
    early = own.launch < np.asarray(workload.jobs["arrival"])
    if early.any():
        raise InvalidSchedule(f"job [{int(np.argmax(early))}] starts before it arrives")
    _, least, cap = _caps(workload)
    cap = np.maximum(cap, least)
    energy = _totals(own.job, len(cap), own.leq)
    over = energy > cap * (1.0 + ENERGY_ROUNDING)
    if over.any():
        i = int(np.argmax(over))
        raise InvalidSchedule(f"job [{i}]: energy {energy[i]:.12g} of {cap[i]:.12g} vCPU s")


def _check_launches(own: Pieces, limits: Limits, cpu: F8) -> None:
    """Every launch keeps the groups' shares of what no base holds."""
    jobs = len(own.launch)
    base = np.where(own.end > own.start, own.base, 0.0)  # one that ends at once holds nothing
    launched = np.flatnonzero(~np.isnan(own.launch))
    # jobs launched at one instant: those that hold the least last
    launched = launched[np.lexsort((-_totals(own.job, jobs, base)[launched], own.launch[launched]))]
    held = np.flatnonzero(base > 0.0)
    server, server_group = np.nonzero(limits.member.T)
    group, group_server = np.nonzero(limits.member)
    found = _first_bad_launch(
        own.first_task,
        own.launch,
        launched,
        held[np.argsort(own.end[held], kind="stable")],
        own.server,
        base,
        own.end,
        np.searchsorted(server, np.arange(len(cpu) + 1)),
        server_group,
        np.searchsorted(group, np.arange(len(limits.name) + 1)),
        group_server,
        limits.share,
        cpu,
    )
    if found[0] >= 0:
        job, k, used, allowed = found
        raise InvalidSchedule(
            f"job [{int(job)}]: starts at {own.launch[int(job)]:.12g} s with {used:.12g} base vCPU in "
            f"{limits.name[int(k)]}, of {allowed:.12g}"
        )


@kernel
def _first_bad_launch(
    first_task: I8,
    launch: F8,
    launched: I8,
    ends: I8,
    server: I8,
    base: F8,
    end: F8,
    server_start: I8,
    server_group: I8,
    group_start: I8,
    group_server: I8,
    share: F8,
    cpu: F8,
) -> tuple[float, float, float, float]:
    """The first launch that exceeds a limit: job, group, base vCPU there and the limit; job -1 if none does.

    Of jobs launched at one instant one is last, and sees the base of all others. If one can be last, it can
    also be put there in any order that keeps the limits: the others then see less. So the order is found from
    its end, with any job that can be last.

    Args:
        first_task: of each job [J + 1].
        launch: [s] [J].
        launched: jobs by launch.
        ends: tasks that hold something, by end.
        server: of each task [T].
        base: held by each task from its launch to its end [vCPU] [T].
        end: of each task [s] [T].
        server_start: first entry of each server in ``server_group`` [M + 1].
        server_group: the groups of each server.
        group_start: first entry of each group in ``group_server`` [R + 1].
        group_server: the servers of each group.
        share: of each group's available vCPU that a job may have [R].
        cpu: of the servers [vCPU] [M].
    """
    held = np.zeros(cpu.shape[0])  # base of all tasks that run
    mine = np.zeros(cpu.shape[0])
    wanted = np.zeros(share.shape[0])
    over = np.array([-1.0, -1.0, 0.0, 0.0])
    ended = 0
    a = 0
    while a < launched.shape[0]:
        now = launch[launched[a]]
        while ended < ends.shape[0] and end[ends[ended]] <= now:
            held[server[ends[ended]]] -= base[ends[ended]]
            ended += 1
        b = a
        while b < launched.shape[0] and launch[launched[b]] == now:
            for i in range(first_task[launched[b]], first_task[launched[b] + 1]):
                held[server[i]] += base[i]
            b += 1
        while b > a:
            over[0] = -1.0
            x = b - 1
            while x >= a:
                job = launched[x]
                mine[:] = 0.0
                wanted[:] = 0.0
                for i in range(first_task[job], first_task[job + 1]):
                    j = server[i]
                    mine[j] += base[i]
                    for y in range(server_start[j], server_start[j + 1]):
                        wanted[server_group[y]] += base[i]
                fits = True
                for k in range(share.shape[0]):
                    if wanted[k] == 0.0:
                        continue
                    free = 0.0
                    whole = 0.0
                    for y in range(group_start[k], group_start[k + 1]):
                        j = group_server[y]
                        free += max(cpu[j] - (held[j] - mine[j]), 0.0)
                        whole += cpu[j]
                    allowed = share[k] * free
                    if wanted[k] > allowed + CRUMB * whole:
                        fits = False
                        if over[0] < 0.0:
                            over[0], over[1], over[2], over[3] = job, k, wanted[k], allowed
                        break
                if fits:
                    break
                x -= 1
            if x < a:
                return over[0], over[1], over[2], over[3]
            job = launched[x]
            for i in range(first_task[job], first_task[job + 1]):
                held[server[i]] -= base[i]
            for y in range(x, b - 1):
                launched[y] = launched[y + 1]
            b -= 1
            launched[b] = job
        while a < launched.shape[0] and launch[launched[a]] == now:
            for i in range(first_task[launched[a]], first_task[launched[a] + 1]):
                held[server[i]] += base[i]
            a += 1
    return -1.0, -1.0, 0.0, 0.0


def _check_servers(record: ScheduleRecord, own: Pieces, cpu: F8, caps: bool) -> None:
    """Servers are within their capacity, and extras are all 0 or what the bases leave, by equivalent load."""
    extra = record.amount[:, 1]
    rows = np.flatnonzero(record.end > record.start)
    rows = rows[np.lexsort((record.start[rows], record.server[rows]))]
    fault, row, time, value, wanted = _first_bad_piece(
        record.server[rows],
        record.start[rows],
        record.end[rows],
        record.amount[rows, 0],
        extra[rows],
        own.leq[record.job[rows]],
        cpu,
        caps,
        bool((extra > 0.0).any()),
    )
    if fault == OVERFULL:
        j = int(record.server[rows[row]])
        raise InvalidSchedule(f"server [{j}] at {time:.12g} s: {value:.12g} of {wanted:.12g} vCPU")
    if fault == UNEVEN:
        raise InvalidSchedule(
            f"task [{int(record.job[rows[row]])}] at {time:.12g} s: {value:.12g} extra vCPU, not its share "
            f"{wanted:.12g}"
        )


FINE, OVERFULL, UNEVEN = 0, 1, 2


@kernel
def _first_bad_piece(
    server: I8, start: F8, end: F8, base: F8, extra: F8, leq: F8, cpu: F8, caps: bool, drc: bool
) -> tuple[int, int, float, float, float]:
    """The first piece on a server where something is wrong: fault, row, time, what it has and what it should.

    Args:
        server: of each row, ascending [rows].
        start: ascending on each server [s].
        end: > start [s].
        base: vCPU.
        extra: vCPU.
        leq: of the row's task [vCPU s].
        cpu: of the servers [vCPU] [M].
        caps: whether servers' capacities are limits.
        drc: whether extras are checked.
    """
    rows = server.shape[0]
    active = np.empty(rows, dtype=np.int64)
    x = 0
    while x < rows:
        j = server[x]
        count = 0
        now = start[x]
        while True:
            left = 0
            for y in range(count):
                if end[active[y]] > now:
                    active[left] = active[y]
                    left += 1
            count = left
            while x < rows and server[x] == j and start[x] <= now:
                active[count] = x
                count += 1
                x += 1
            if count == 0:
                if x == rows or server[x] != j:
                    break
                now = start[x]
                continue
            held = 0.0
            added = 0.0
            whole = 0.0
            until = math.inf
            if x < rows and server[x] == j:
                until = start[x]
            for y in range(count):
                held += base[active[y]]
                added += extra[active[y]]
                whole += leq[active[y]]
                until = min(until, end[active[y]])
            slack = ROUNDING * cpu[j]
            if caps and held + added > cpu[j] + 2.0 * slack:
                return OVERFULL, active[0], now, held + added, cpu[j]
            if drc:
                rest = max(cpu[j] - held, 0.0)
                for y in range(count):
                    share = rest * (leq[active[y]] / whole)
                    if abs(extra[active[y]] - share) > slack:
                        return UNEVEN, active[y], now, extra[active[y]], share
            now = until
    return FINE, 0, 0.0, 0.0, 0.0
