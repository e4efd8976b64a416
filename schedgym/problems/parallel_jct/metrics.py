"""Metrics of a ParallelJCT schedule, and an independent validator of whole schedules.

A record has one row per piece of a task in which its vCPU are constant: base vCPU, and extra ones that DRC
adds. A job that has not completed when the episode ends counts as in the system until then, and one that has
not been launched as waiting. A task whose remaining work takes at most 1e-9 max(1, t) seconds has completed
at t.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import SCRATCH, Fill, Flags, Floats, Integers, Integers32, allocate, sizes_of
from schedgym.core.jit import helper, record_dtype
from schedgym.core.kernels import measure_kernel
from schedgym.core.order import percentile, sort
from schedgym.core.record import ScheduleRecord, check_end, check_rows, first_overload, refuse_first
from schedgym.core.tables import MADE_HERE, batch_of_one, tabled
from schedgym.errors import InvalidSchedule
from schedgym.problems.parallel_jct.problem import METRICS
from schedgym.problems.parallel_jct.workload import Jobs, is_granted, tables
from schedgym.problems.single_job.metrics import ENERGY_ROUNDING, ROUNDING, Limits, read_limits

LARGEST_RATIO = 1.1  # of a drawn energy cap to the energy at efficiency 1
INSTANT = 1e-9  # events closer than this, times max(1, t), are one
CRUMB = 1e-9  # share of a server's capacity that counts as 0

METRIC_VALUES = record_dtype(*((metric.name, np.float64) for metric in METRICS))
END = record_dtype(("clock", np.float64))  # the instant at which the episode ended
LOGGED = record_dtype(("rows", np.int64))


class Schedule(NamedTuple):
    """The outcome of an episode: launch, completion and energy of each job, and the completed tasks."""

    end: Annotated[Any, END]
    launch: Annotated[Floats, "job", Fill(math.nan)]  # [s] NaN: never launched
    completion: Annotated[Floats, "job", Fill(math.nan)]  # [s] NaN: not completed
    energy: Annotated[Floats, "job"]  # [power * vCPU s] of the placement
    completed: Annotated[Flags, "task"]


class Log(NamedTuple):
    """Pieces of tasks with constant vCPU on a server; those of a task are sorted by time."""

    size: Annotated[Any, LOGGED]
    task: Annotated[Integers32, "log"]
    server: Annotated[Integers32, "log"]
    start: Annotated[Floats, "log"]
    end: Annotated[Floats, "log"]
    base: Annotated[Floats, "log"]
    extra: Annotated[Floats, "log"]


class Metrics(NamedTuple):
    """The metrics of a finished episode, by name."""

    values: Annotated[Any, METRIC_VALUES]


class Scratch(NamedTuple):
    """Scratch space of :func:`measure_one`."""

    time: Annotated[Floats, "job"]
    waiting: Annotated[Floats, "job"]
    done: Annotated[Floats, "task"]  # vCPU s


class Episode(NamedTuple):
    """The arrays of :func:`measure_one`: workload, schedule, log, metrics and scratch space."""

    jobs: Jobs
    schedule: Schedule
    log: Log
    metrics: Metrics
    scratch: Annotated[Scratch, SCRATCH]


@helper
def settle_work(episode: Episode) -> None:
    """Set the work done of each task: all of it, or if the episode cut the task off, that of its pieces."""
    jobs, log, done = episode.jobs, episode.log, episode.scratch.done
    for task in range(jobs.first_task[jobs.size.jobs]):
        done[task] = 0.0
    for r in range(log.size.rows):
        task = log.task[r]
        if episode.schedule.completed[task]:
            done[task] = jobs.load[task] / jobs.efficiency[task, log.server[r]]
        else:
            done[task] += (log.base[r] + log.extra[r]) * (log.end[r] - log.start[r])


@helper
def work_of(episode: Episode, job: int) -> float:
    """Return the work done of a job [vCPU s]."""
    work = 0.0
    for task in range(episode.jobs.first_task[job], episode.jobs.first_task[job + 1]):
        work += episode.scratch.done[task]
    return work


@helper
def measure_one(episode: Episode) -> None:
    """Write the metrics of one schedule."""
    jobs, schedule, scratch = episode.jobs, episode.schedule, episode.scratch
    values, clock, n = episode.metrics.values, schedule.end.clock, jobs.size.jobs
    settle_work(episode)
    total_time = 0.0
    total_waiting = 0.0
    running = 0.0
    last = jobs.arrival[0]
    used = 0.0
    committed = 0.0
    ideal = 0.0
    finished = 0
    launched = 0
    grants = 0
    for i in range(n):
        arrival, launch, completion = jobs.arrival[i], schedule.launch[i], schedule.completion[i]
        if math.isnan(completion):
            scratch.time[i] = max(clock - arrival, 0.0)
            last = max(last, clock)
        else:
            scratch.time[i] = completion - arrival
            last = max(last, completion)
            finished += 1
            running += completion - launch
        if math.isnan(launch):
            scratch.waiting[i] = max(clock - arrival, 0.0)
        else:
            scratch.waiting[i] = launch - arrival
            launched += 1
            grants += is_granted(jobs, i)
            committed += schedule.energy[i]
            ideal += jobs.ideal_energy[i]
            used += work_of(episode, i)
        total_time += scratch.time[i]
        total_waiting += scratch.waiting[i]
    sort(scratch.time, n)
    sort(scratch.waiting, n)
    cpu = 0.0
    for j in range(jobs.cpu.shape[0]):
        cpu += jobs.cpu[j]
    makespan = last - jobs.arrival[0]
    values.average_jct = total_time / n
    values.median_jct = percentile(scratch.time, n, 0.5)
    values.p95_jct = percentile(scratch.time, n, 0.95)
    values.max_jct = scratch.time[n - 1]
    values.mean_waiting = total_waiting / n
    values.p95_waiting = percentile(scratch.waiting, n, 0.95)
    values.mean_running = running / finished if finished > 0 else 0.0
    values.makespan = makespan
    values.finished = finished
    values.launched = launched
    # a duration may vanish in the rounding of a large clock, and with it the makespan
    values.utilization = used / (cpu * makespan) if makespan > 0.0 else 0.0
    values.energy = committed
    values.energy_share = committed / ideal if launched > 0 else 0.0
    values.granted = grants


measure = measure_kernel(__name__, Episode, measure_one)


class Pieces(NamedTuple):
    """The rows of a record, gathered by task and job. T tasks, J jobs, R rows."""

    job: Integers  # [T] ascending
    first_task: Integers  # [J + 1]
    server: Integers  # [T] -1: never launched
    leq: Floats  # [T] equivalent load on that server [vCPU s]; 0 if never launched
    energy: Floats  # [J] of the placement [power * vCPU s]
    start: Floats  # [T] [s] NaN: never
    end: Floats  # [T] of the last piece [s] NaN: none
    base: Floats  # [T] vCPU in the first piece
    done: Floats  # [T] vCPU s
    completed: Flags  # [T]
    order: Integers  # [R] rows by task, then time
    launch: Floats  # [J] [s] NaN: never
    completion: Floats  # [J] [s] NaN: not completed


def pieces(record: ScheduleRecord) -> Pieces:
    """Gather the rows of a record, which are sorted by start, by task and by job."""
    check_rows(record, 2)
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
    energy = _totals(job, jobs, np.asarray(workload.tasks.get("power", 1.0)) * leq)
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
    kept = (start, end, base, done, completed, order, launch, completion)
    return Pieces(job, first_task, server, leq, energy, *kept)


def _totals(owner: Integers, owners: int, amount: Floats) -> Floats:
    """Sum the amounts of each owner [owners], one after the other, as the environment adds them."""
    return np.asarray(np.bincount(owner, weights=amount, minlength=owners), dtype=np.float64)


def metrics(record: ScheduleRecord) -> dict[str, float]:
    """Return all metrics of a schedule by name, except those that only the environment knows."""
    jobs, own = tables(record.workload), pieces(record)
    rows = len(record.job)
    sizes = sizes_of(jobs) | {"log": rows}
    schedule, log, found = allocate(Schedule, sizes, 1), allocate(Log, sizes, 1), allocate(Metrics, {}, 1)
    schedule.end["clock"] = record.final_time
    schedule.launch[0], schedule.completion[0] = own.launch, own.completion
    schedule.energy[0], schedule.completed[0] = own.energy, own.completed
    log.size["rows"] = rows
    log.task[0], log.server[0] = record.job, record.server
    log.start[0], log.end[0] = record.start, record.end
    log.base[0], log.extra[0] = record.amount.T
    table = tabled(Episode(batch_of_one(jobs), schedule, log, found, MADE_HERE), sizes)
    measure(*table, np.ones(1, dtype=bool))
    return {metric.name: float(found.values[metric.name][0]) for metric in METRICS if metric.recorded}


def fates(record: ScheduleRecord) -> dict[str, list[Any]]:
    """Return the outcome of each job, in the order of the input: start, completion [s] and energy.

    Events that did not happen are None; the energy [power * vCPU s] is that of the placement.
    """
    own = pieces(record)
    columns = {
        "start": own.launch,
        "completion": own.completion,
        "energy": np.where(np.isnan(own.launch), np.nan, own.energy),
    }
    return {name: [None if math.isnan(x) else x for x in column.tolist()] for name, column in columns.items()}


def validate(record: ScheduleRecord) -> None:
    """Check a whole schedule against the problem's constraints, independently of the dynamics.

    All tasks of a job start at once, not before it arrives, each on one server, and run to their end without
    a break, with a constant base vCPU > 0. A job's base vCPU are within every group's share of the capacity
    that no other base vCPU hold at its launch, both by the weights of the servers in the group; for jobs
    launched at one instant there is an order in which this is true. Servers never exceed their capacity
    (unless ``server_caps`` is false). Extra vCPU are all 0, or on every server the capacity that the base
    vCPU leave, divided by equivalent load. A placement's energy is within the largest cap that the job can
    have. Tasks do all their work, and all complete unless the episode was truncated.

    Raises:
        InvalidSchedule: naming the first row, task, job, server or group at fault.
    """
    workload = record.workload
    cpu = np.array(workload.cluster["cpu"], dtype=np.float64)
    own = pieces(record)
    descents = np.zeros(len(record.job), dtype=bool)
    descents[1:] = (np.diff(record.start) < 0) | ((np.diff(record.start) == 0) & (np.diff(record.job) < 0))
    refuse_first("row [{}]:", ((descents, "rows must be sorted by start and task"),))
    refuse_first("row [{}]", ((record.start < 0.0, "starts before time 0"),))
    _check_tasks(record, own)
    _check_jobs(record, own)
    limits = read_limits(workload)
    _check_launches(own, limits, cpu)
    _check_servers(record, own, cpu, bool(workload.cluster.get("server_caps", True)))
    if record.truncated:
        return
    refuse_first("job [{}]", ((np.isnan(own.launch), "never starts"),))
    check_end(record, record.end.max())


def _check_tasks(record: ScheduleRecord, own: Pieces) -> None:
    """Check that every task runs without a break on one server with constant base vCPU, and does its work."""
    job, base, extra = record.job, record.amount[:, 0], record.amount[:, 1]
    before, after = own.order[:-1], own.order[1:]
    broken = np.zeros(len(job), dtype=bool)
    broken[after] = (job[before] == job[after]) & (record.end[before] != record.start[after])
    refuse_first(
        "task [{}]",
        (
            (~(base > 0.0), "has no base vCPU"),
            (~(extra >= 0.0), "has less than no extra vCPU"),
            (record.server != own.server[job], "changes its server"),
            (base != own.base[job], "changes its base vCPU"),
            (broken, "does not run on where it stops"),
        ),
        job,
    )
    speed = np.zeros(len(own.leq))  # in the last piece: later assignments overwrite earlier ones
    speed[job[own.order]] = (base + extra)[own.order]
    slack = ROUNDING * own.leq + 3.0 * INSTANT * speed * np.fmax(own.end, 1.0)
    over = own.done > own.leq + slack
    bad = over | (own.completed & (own.done < own.leq - slack))
    if bad.any():
        i = int(np.argmax(bad))
        what = "does more than its work" if over[i] else "stops before its work is done"
        raise InvalidSchedule(f"task [{i}] {what}: {own.done[i]:.12g} of {own.leq[i]:.12g} vCPU s")


def _check_jobs(record: ScheduleRecord, own: Pieces) -> None:
    """Check that a job's tasks start at once, after its arrival, and within the largest energy cap."""
    workload = record.workload
    launch = own.launch[own.job]
    together = (own.start == launch) | (np.isnan(own.start) & np.isnan(launch))
    if not together.all():
        i = int(np.argmin(together))
        raise InvalidSchedule(f"task [{i}] does not start with the first task of job [{int(own.job[i])}]")
    refuse_first(
        "job [{}]", ((own.launch < np.asarray(workload.jobs["arrival"]), "starts before it arrives"),)
    )
    jobs = tables(workload)
    ratio = np.where(np.isnan(jobs.energy_cap_ratio), LARGEST_RATIO, jobs.energy_cap_ratio)
    cap = np.maximum(ratio * jobs.ideal_energy, jobs.least_energy)
    over = own.energy > cap * (1.0 + ENERGY_ROUNDING)
    if over.any():
        i = int(np.argmax(over))
        raise InvalidSchedule(f"job [{i}]: energy {own.energy[i]:.12g} of {cap[i]:.12g} vCPU s")


def _check_launches(own: Pieces, limits: Limits, cpu: Floats) -> None:
    """Check that every launch is within the groups' shares of the capacity that no base vCPU hold.

    Of jobs launched at one instant one is last, after the base vCPU of all others. If a job can be last, it
    can be moved there in any order that keeps the limits, because the others then have fewer before them. So
    the order is found from its end, with any job that can be last.
    """
    weight = limits.weight.astype(np.float64)
    base = np.where(own.end > own.start, own.base, 0.0)  # a task that ends at once holds no vCPU
    held = np.zeros(len(cpu))  # base of all tasks that run
    end = np.where(np.isnan(own.end), math.inf, own.end)
    ending, ended = np.argsort(end, kind="stable"), 0
    for now in np.unique(own.launch[~np.isnan(own.launch)]):
        after = int(np.searchsorted(end, now, side="right", sorter=ending))
        np.subtract.at(held, own.server[ending[ended:after]], base[ending[ended:after]])
        ended = after
        waiting = {}
        for job in np.flatnonzero(own.launch == now).tolist():
            tasks = slice(own.first_task[job], own.first_task[job + 1])
            waiting[job] = np.bincount(own.server[tasks], base[tasks], len(cpu))
        before = held = held + sum(waiting.values())
        while waiting:
            found = ""
            for job in sorted(waiting, key=lambda job: float(waiting[job].sum())):
                used = weight @ waiting[job]
                allowed = limits.share * (weight @ np.maximum(cpu - (before - waiting[job]), 0.0))
                bad = (used > 0.0) & (used > allowed + CRUMB * (weight @ cpu))
                if not bad.any():
                    before = before - waiting.pop(job)
                    break
                k = int(np.argmax(bad))
                found = found or (
                    f"job [{job}]: starts at {now:.12g} s with {used[k]:.12g} base vCPU in "
                    f"{limits.name[k]}, of {allowed[k]:.12g}"
                )
            else:
                raise InvalidSchedule(found)


def _check_servers(record: ScheduleRecord, own: Pieces, cpu: Floats, caps: bool) -> None:
    """Check that servers keep their capacity, and that extra vCPU are all 0 or what the base vCPU leave."""
    rows = np.flatnonzero(record.end > record.start)
    task, server, start, end = record.job[rows], record.server[rows], record.start[rows], record.end[rows]
    base, extra = record.amount[rows].T
    over = first_overload(server, start, end, base + extra, cpu * (1.0 + 2.0 * ROUNDING)) if caps else None
    if over is not None:
        j, now, held = over
        raise InvalidSchedule(f"server [{j}] at {now:.12g} s: {held:.12g} of {cpu[j]:.12g} vCPU")
    if not (extra > 0.0).any():
        return
    row, at, instant, share = _share_extra(own.leq[task], server, start, end, base, cpu)
    bad = np.flatnonzero(np.abs(extra[row] - share) > ROUNDING * cpu[server[row]])
    if len(bad):
        x = bad[np.argmin(at[bad])]
        raise InvalidSchedule(
            f"task [{int(task[row[x]])}] at {instant[at[x]]:.12g} s: {extra[row[x]]:.12g} extra vCPU, "
            f"not its share {share[x]:.12g}"
        )


def _share_extra(
    leq: Floats, server: Integers, start: Floats, end: Floats, base: Floats, cpu: Floats
) -> tuple[Integers, Integers, Floats, Floats]:
    """Share the vCPU that base vCPU leave on each server, by equivalent load, at each instant of a change.

    Returns:
        pairs of a row and an instant in [start, end) at which a row of the same server starts or ends: the
        rows, the instants by number, the time of each instant (those of a server follow each other), and the
        share of each pair [vCPU].
    """
    place, time = np.concatenate([server, server]), np.concatenate([start, end])
    order = np.lexsort((time, place))
    place, time = place[order], time[order]
    new = np.append(True, (np.diff(place) != 0) | (np.diff(time) != 0))
    instant = np.empty(len(order), dtype=np.int64)
    instant[order] = np.cumsum(new) - 1
    rows = len(leq)
    first, count = instant[:rows], instant[rows:] - instant[:rows]
    row = np.repeat(np.arange(rows), count)
    at = np.arange(len(row)) + np.repeat(first - np.cumsum(count) + count, count)
    rest = np.maximum(cpu[place[new]] - np.bincount(at, base[row], new.sum()), 0.0)
    return row, at, time[new], rest[at] * (leq[row] / np.bincount(at, leq[row], new.sum())[at])


def compact(record: ScheduleRecord) -> ScheduleRecord:
    """Return one row for each task, without its extra vCPU, from which :func:`restore` makes the schedule.

    A valid schedule without extra vCPU, or with tasks that end at once, is returned as it is.
    """
    if not (record.amount[:, 1] > 0.0).any() or (record.end <= record.start).any():
        return record
    order = np.argsort(record.job, kind="stable")
    job = record.job[order]
    head = order[np.append(True, job[1:] != job[:-1])]
    tail = order[np.append(job[1:] != job[:-1], True)]
    columns = {name: getattr(record, name)[head] for name in ("job", "server", "start")}
    return dataclasses.replace(record, **columns, end=record.end[tail], amount=record.amount[head, :1])


def restore(record: ScheduleRecord) -> ScheduleRecord:
    """Return the schedule of which :func:`compact` made this, up to the rounding of its extra vCPU.

    Raises:
        InvalidSchedule: naming the first row that is of no task or server, or has no finite numbers.
    """
    if record.amount.shape[1] == 2:
        return record
    check_rows(record, 1)
    tasks, cpu = record.workload.tasks, np.array(record.workload.cluster["cpu"], dtype=np.float64)
    leq = np.asarray(tasks["load"])[record.job] / np.asarray(tasks["efficiency"])[record.job, record.server]
    base = record.amount[:, 0]
    row, at, instant, share = _share_extra(leq, record.server, record.start, record.end, base, cpu)
    order = np.lexsort((record.job[row], instant[at]))
    row, at, share = row[order], at[order], share[order]
    return dataclasses.replace(
        record,
        job=record.job[row],
        server=record.server[row],
        start=instant[at],
        end=instant[at + 1],
        amount=np.column_stack((base[row], share)),
    )
