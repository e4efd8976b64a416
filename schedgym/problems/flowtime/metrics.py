"""Metrics of a FlowtimePacking schedule, and an independent validator of whole schedules.

What a job really used is not in the record. It is worked out again from the cores that it was granted: in
a slot a task takes at most its demand and what is left of it, the tasks of the current phase in their order.

A job that has not finished when the episode ends is charged until then; one that arrives no earlier than
that is left out.
"""

from __future__ import annotations

import bisect
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import helper, kernel, record_dtype
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.problems.flowtime.problem import METRICS
from schedgym.problems.flowtime.workload import Tables, tables

__all__ = ["PIECE", "fates", "measure", "metrics", "pieces", "validate"]

B1 = npt.NDArray[np.bool_]
F8 = npt.NDArray[np.float64]
I4 = npt.NDArray[np.int32]
I8 = npt.NDArray[np.int64]

NAMES = tuple(metric.name for metric in METRICS if metric.name != "repaired")
RECORDED = frozenset(metric.name for metric in METRICS if metric.recorded)

#: a maximal run of slots in which a job has the same cores, uses the same number, and is in one phase
PIECE = record_dtype(
    ("job", np.int64),
    ("start", np.int64),  # first slot - 1
    ("end", np.int64),  # last slot
    ("granted", np.int64),  # cores
    ("used", np.int64),  # cores
    ("phase", np.int64),
    ("hosts", np.int64),  # servers that it runs on
    ("moved", np.int64),  # whether one of them is none of those that it last ran on
    ("change", np.float64),  # its part of S(t), Eq. 31, in the first slot
)


class Jobs(NamedTuple):
    """Jobs as :func:`measure` reads them; [B, N, ...]."""

    arrival: I8
    tasks: I8
    processing: I8
    cpu: I8


class Rows(NamedTuple):
    """Rows of records as :func:`measure` reads them; [B, R]."""

    job: I4
    server: I4
    start: I8
    end: I8
    amount: I8


@helper
def capacity(jobs: Jobs, b: int, n: int, rows: int) -> int:
    """The most pieces that :func:`replay` may write for ``n`` jobs."""
    most = 2 * rows + 4 * n
    for j in range(n):
        most += 2 * (jobs.tasks[b, j, 0] + jobs.tasks[b, j, 1])
    return most


@helper
def replay(
    b: int,
    n: int,
    servers: int,
    jobs: Jobs,
    count: int,
    rows: Rows,
    final: int,
    first: I8,
    order: I8,
    left: I8,
    on: I8,
    completion: I8,
    out: Any,
) -> int:
    """Cut the life of each job, arrival to completion or end, into pieces; returns how many there are.

    Args:
        b: the environment.
        n: its jobs.
        servers: its servers.
        jobs: of all environments.
        count: its rows.
        rows: of all environments.
        final: last slot.
        first: work space [n + 2].
        order: work space [rows].
        left: work space [tasks of a phase].
        on: work space [4, servers].
        completion: written: slot in which each job ends, -1 if it does not [n].
        out: written: PIECE [capacity], by job, then time.
    """
    for j in range(n + 2):
        first[j] = 0
    for r in range(count):
        first[rows.job[b, r] + 2] += 1
    for j in range(n):
        first[j + 2] += first[j + 1]
    for r in range(count):
        j = rows.job[b, r] + 1
        order[first[j]] = r
        first[j] += 1
    found = 0
    for j in range(n):
        completion[j] = -1
        x = first[j]
        last_row = first[j + 1]
        phase = 0
        d = jobs.cpu[b, j, 0]
        number = jobs.tasks[b, j, 0]
        unfinished = number
        head = 0
        for i in range(number):
            left[i] = jobs.processing[b, j, 0] * d
        for i in range(servers):
            on[0, i] = 0  # cores now,
            on[1, i] = 0  # and before,
            on[2, i] = 0  # last slot in which it has them
            on[3, i] = 0  # whether it last ran there
        ran = False
        granted = 0
        unit = d  # the demand in the slot before
        t = jobs.arrival[b, j]
        while t < final and completion[j] < 0:
            until = final
            for i in range(servers):
                on[1, i] = on[0, i]
                if on[0, i] > 0 and on[2, i] <= t:
                    granted -= on[0, i]
                    on[0, i] = 0
            while x < last_row and rows.start[b, order[x]] <= t:
                r = order[x]
                x += 1
                if rows.end[b, r] > t:
                    i = rows.server[b, r]
                    granted += rows.amount[b, r] - on[0, i]
                    on[0, i] = rows.amount[b, r]
                    on[2, i] = rows.end[b, r]
            if x < last_row:
                until = min(until, rows.start[b, order[x]])
            hosts = 0
            moved = 0
            change = 0.0
            for i in range(servers):
                step = on[0, i] / d - on[1, i] / unit
                change += step * step
                if on[0, i] > 0:
                    until = min(until, on[2, i])
                    hosts += 1
                    if ran and on[3, i] == 0:
                        moved = 1
            if granted > 0:
                ran = True
                for i in range(servers):
                    on[3, i] = 1 if on[0, i] > 0 else 0
            if t == jobs.arrival[b, j]:
                change = 0.0
            new = True
            while t < until and completion[j] < 0:
                rest = granted
                steps = until - t  # slots in which every task gets the same
                i = head
                while i < number and rest > 0:
                    grant = min(d, left[i], rest)
                    if grant > 0:
                        rest -= grant
                        steps = min(steps, left[i] // grant)
                    i += 1
                used = granted - rest
                rest = used
                i = head
                while rest > 0:
                    grant = min(d, left[i], rest)
                    if grant > 0:
                        rest -= grant
                        left[i] -= grant * steps
                        if left[i] == 0:
                            unfinished -= 1
                    i += 1
                while head < number and left[head] == 0:
                    head += 1
                if new or out[found - 1].used != used:
                    piece = out[found]
                    piece.job = j
                    piece.start = t
                    piece.granted = granted
                    piece.used = used
                    piece.phase = phase
                    piece.hosts = hosts
                    piece.moved = moved
                    piece.change = change
                    found += 1
                    new = False
                    moved = 0
                    change = 0.0
                t += steps
                out[found - 1].end = t
                unit = d
                if unfinished == 0:
                    if phase == 0 and jobs.tasks[b, j, 1] > 0:
                        phase = 1
                        d = jobs.cpu[b, j, 1]
                        number = jobs.tasks[b, j, 1]
                        unfinished = number
                        head = 0
                        for i in range(number):
                            left[i] = jobs.processing[b, j, 1] * d
                        new = True
                        for i in range(servers):
                            step = on[0, i] / d - on[0, i] / unit
                            change += step * step
                    else:
                        completion[j] = t
    return found


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
    arrival: I8,
    tasks: I8,
    processing: I8,
    cpu: I8,
    server_cpu: I8,
    rows: I8,
    row_job: I4,
    row_server: I4,
    row_start: I8,
    row_end: I8,
    row_amount: I8,
    final: I8,
    mapreduce: bool,
    norm: float,
    alpha: float,
    out: F8,
) -> None:
    """Metrics of schedules. Times are slots; phase 0 is map, or all of a plain job (one task), 1 reduce.

    Args:
        mask: which environments to measure [B].
        jobs: number of jobs [B].
        arrival: ascending [B, >= N].
        tasks: per phase [B, >= N, 2].
        processing: of a task, 0 in a phase without one [B, >= N, 2].
        cpu: true demand of a task [cores] [B, >= N, 2].
        server_cpu: cores, 0 pads [B, >= M].
        rows: number of rows of the record [B].
        row_job: [B, >= R].
        row_server: [B, >= R].
        row_start: first slot - 1, ascending [B, >= R].
        row_end: last slot [B, >= R].
        row_amount: granted cores [B, >= R].
        final: last slot that was run [B].
        mapreduce: whether the jobs are of that kind, which have a fractional flowtime of their own.
        norm: k.
        alpha: weight of the switching cost in the objective.
        out: written [B, >= len(NAMES)]: the descriptor's metrics, but for the last one.
    """
    work = Jobs(arrival, tasks, processing, cpu)
    log = Rows(row_job, row_server, row_start, row_end, row_amount)
    most_jobs = arrival.shape[1]
    servers = server_cpu.shape[1]
    most_rows = 0
    most_tasks = 1
    most_pieces = 0
    for b in range(mask.shape[0]):
        if mask[b]:
            most_rows = max(most_rows, rows[b])
            most_pieces = max(most_pieces, capacity(work, b, jobs[b], rows[b]))
            for j in range(jobs[b]):
                most_tasks = max(most_tasks, tasks[b, j, 0], tasks[b, j, 1])
    first = np.empty(most_jobs + 2, dtype=np.int64)
    order = np.empty(most_rows, dtype=np.int64)
    left = np.empty(most_tasks, dtype=np.int64)
    on = np.empty((4, servers), dtype=np.int64)
    completion = np.empty(most_jobs, dtype=np.int64)
    volume = np.empty(most_jobs, dtype=np.int64)
    flow = np.empty(most_jobs)
    found = np.empty(most_pieces, dtype=PIECE)
    for b in range(mask.shape[0]):
        if not mask[b]:
            continue
        n = jobs[b]
        end = final[b]
        count = replay(b, n, servers, work, rows[b], log, end, first, order, left, on, completion, found)
        row = out[b]
        for m in range(len(NAMES)):
            row[m] = 0.0
        cost = 0.0
        squares = 0.0
        arrived = 0
        makespan = 0
        for j in range(n):
            volume[j] = tasks[b, j, 0] * processing[b, j, 0] * cpu[b, j, 0]
            volume[j] += tasks[b, j, 1] * processing[b, j, 1] * cpu[b, j, 1]
            if arrival[b, j] >= end:
                continue
            length = processing[b, j, 0] + processing[b, j, 1]
            done = completion[j] if completion[j] >= 0 else end
            makespan = max(makespan, done)
            f = float(done - arrival[b, j])
            flow[arrived] = f
            arrived += 1
            cost += f * f if norm == 2.0 else f**norm
            squares += f * f
            row[2] += f
            row[8] += f / length
            row[12] += f - length
            if completion[j] >= 0:
                row[11] += 1.0
        if arrived > 0:
            ordered = np.sort(flow[:arrived])
            row[4] = row[2] / arrived
            row[5] = percentile(ordered, arrived, 0.5)
            row[6] = percentile(ordered, arrived, 0.95)
            row[7] = ordered[arrived - 1]
            row[8] /= arrived
            row[12] /= arrived
        size = processing[b, :n, 0] + processing[b, :n, 1]
        rank = np.argsort(size, kind="mergesort")
        small = (n + 1) // 2
        big = n - n // 10
        begin = 0
        for group in range(3):
            stop = small if group == 0 else big if group == 1 else n
            inside = 0
            for x in range(begin, stop):
                j = rank[x]
                if arrival[b, j] < end:
                    length = processing[b, j, 0] + processing[b, j, 1]
                    done = completion[j] if completion[j] >= 0 else end
                    row[13 + group] += float(done - arrival[b, j] - length)
                    inside += 1
            if inside > 0:
                row[13 + group] /= inside
            begin = max(begin, stop)
        inside = 0
        for x in range(n - 1, -1, -1):
            j = rank[x]
            if 5 * size[j] < 3 * size[rank[n - 1]]:
                break
            if arrival[b, j] < end:
                done = completion[j] if completion[j] >= 0 else end
                row[25] += float(done - arrival[b, j] - size[j])
                inside += 1
        if inside > 0:
            row[25] /= inside
        switching = 0.0
        used = 0.0
        longest_gap = 0
        before = -1
        held = 0
        gap = 0
        remaining = 0
        unfinished = 0.0
        for x in range(count):
            piece = found[x]
            j = piece.job
            if j != before:
                before = j
                held = 0
                gap = 0
                remaining = volume[j]
            slots = piece.end - piece.start
            if piece.granted == 0:
                gap += slots
                longest_gap = max(longest_gap, gap)
                if held > 0:
                    row[16] += 1.0
            else:
                gap = 0
                if held > 0 and held != piece.granted:
                    row[18] += 1.0
            held = piece.granted
            row[17] += piece.moved
            if piece.hosts > 1:
                row[19] += slots
            switching += piece.change
            long = float(slots)
            if piece.used > 0:
                used += float(piece.used) * long
                age = float(piece.start - arrival[b, j])
                # the sum of (age + 1)^2, (age + 2)^2, ...
                ages = long * age * age + age * long * (long + 1.0)
                ages += long * (long + 1.0) * (2.0 * long + 1.0) / 6.0
                p = float(processing[b, j, piece.phase])
                d = float(cpu[b, j, piece.phase])
                if mapreduce:  # the weight of problem P5
                    whole = float(processing[b, j, 0] + processing[b, j, 1])
                    weight = (2.0 * ages + whole * whole * long) / (2.0 * p * tasks[b, j, piece.phase])
                    row[9] += weight * piece.used / d
                else:
                    row[9] += (ages / p + p * long) * piece.used / d
            unfinished += remaining * long - piece.used * long * (long + 1.0) / 2.0
            remaining -= piece.used * slots
        cores = 0
        for i in range(servers):
            cores += server_cpu[b, i]
        granted = 0.0
        for r in range(rows[b]):
            granted += float(row_amount[b, r]) * (row_end[b, r] - row_start[b, r])
        row[0] = cost + alpha * switching
        row[1] = cost ** (1.0 / norm)
        row[3] = math.sqrt(squares)
        row[10] = makespan
        row[20] = switching
        if end > 0:
            row[21] = 1.0 - granted / (float(cores) * end)
        row[24] = unfinished / (arrival[b, n - 1] + 1)
        row[22] = granted - used
        row[23] = longest_gap


@kernel
def cut(jobs: Jobs, rows: Rows, servers: int, final: int, completion: I8) -> Any:
    """The pieces of one schedule.

    Args:
        jobs: [1, N, ...].
        rows: [1, R].
        servers: their number.
        final: last slot.
        completion: written [N]: -1 without one.
    """
    n = jobs.arrival.shape[1]
    count = rows.job.shape[1]
    most = 1
    for j in range(n):
        most = max(most, jobs.tasks[0, j, 0], jobs.tasks[0, j, 1])
    first = np.empty(n + 2, dtype=np.int64)
    order = np.empty(count, dtype=np.int64)
    left = np.empty(most, dtype=np.int64)
    on = np.empty((4, servers), dtype=np.int64)
    out = np.empty(capacity(jobs, 0, n, count), dtype=PIECE)
    found = replay(0, n, servers, jobs, count, rows, final, first, order, left, on, completion, out)
    return out[:found]


def _jobs(own: Tables) -> Jobs:
    """One workload as the kernels read it: [1, N, ...]."""
    # copies, since kernels are compiled anew for read-only arrays
    return Jobs(*(np.array(a, order="C")[None] for a in (own.arrival, own.tasks, own.processing, own.cpu)))


def _rows(record: ScheduleRecord) -> Rows:
    """The record's rows as the kernels read them, each [1, R], in order of their starts."""
    order = np.argsort(record.start, kind="stable")
    for name, most in (
        ("job", len(record.workload.jobs["arrival"])),
        ("server", len(record.workload.cluster["cpu"])),
    ):
        index = getattr(record, name)
        if len(index) and not 0 <= index.min() <= index.max() < most:
            raise InvalidSchedule(f"{name}: must be from 0 to {most - 1}")
    return Rows(
        record.job[order].astype(np.int32)[None],
        record.server[order].astype(np.int32)[None],
        record.start[order].astype(np.int64)[None],
        record.end[order].astype(np.int64)[None],
        record.amount[order, 0].astype(np.int64)[None],
    )


def pieces(record: ScheduleRecord) -> tuple[npt.NDArray[Any], I8]:
    """The pieces (PIECE) that a schedule is made of, by job, then time; and completions [N], -1: none."""
    own = tables(record.workload)
    completion = np.empty(len(own.arrival), dtype=np.int64)
    final = int(record.final_time)
    return cut(_jobs(own), _rows(record), len(own.server_cpu), final, completion), completion


def metrics(record: ScheduleRecord) -> dict[str, float]:
    """All metrics of a schedule by name, but for those that only the environment knows."""
    own, rows = tables(record.workload), _rows(record)
    out = np.zeros((1, len(NAMES)))
    measure(
        np.ones(1, dtype=bool),
        np.array([len(own.arrival)]),
        *_jobs(own),
        np.array(own.server_cpu)[None],
        np.array([len(record.job)]),
        rows.job,
        rows.server,
        rows.start,
        rows.end,
        rows.amount,
        np.array([int(record.final_time)]),
        own.kind == "mapreduce",
        2.0,
        0.0,
        out,
    )
    return {name: x for name, x in zip(NAMES, out[0].tolist(), strict=True) if name in RECORDED}


def fates(record: ScheduleRecord) -> dict[str, list[Any]]:
    """What became of each job, in the order of the input.

    completion and flowtime [slots], None for a job that did not finish; preemptions and migrations.
    """
    found, completion = pieces(record)
    arrival = np.asarray(record.workload.jobs["arrival"])
    job, granted = found["job"], found["granted"]
    stopped = np.zeros(len(job), dtype=bool)
    stopped[1:] = (job[1:] == job[:-1]) & (granted[1:] == 0) & (granted[:-1] > 0)
    done = completion.tolist()
    flowtime = (completion - arrival).tolist()
    return {
        "completion": [None if c < 0 else c for c in done],
        "flowtime": [None if c < 0 else f for c, f in zip(done, flowtime, strict=True)],
        "preemptions": np.bincount(job[stopped], minlength=len(arrival)).tolist(),
        "migrations": np.bincount(job[found["moved"] > 0], minlength=len(arrival)).tolist(),
    }


def validate(record: ScheduleRecord) -> None:
    """Check a whole schedule against the problem's constraints, independently of the dynamics.

    Whole cores, never before a job arrives, never more than it can use in a slot by its demand and its
    remaining work (with declared demands: than any mode of mis-estimation allows); servers' cores, and in 2D
    their memory, of which every server that hosts a share reserves all that the job declares; rows sorted by
    start, job and server, each as long as it can be; all work done unless the episode was truncated.

    Raises:
        InvalidSchedule: naming the job or server at fault, and the slot.
    """
    workload = record.workload
    jobs, cluster = workload.jobs, workload.cluster
    rows, number, servers = len(record.job), len(jobs["arrival"]), len(cluster["cpu"])
    for name in ("server", "start", "end"):
        if getattr(record, name).shape != (rows,):
            raise InvalidSchedule(f"{name}: must have one value per row")
    resources = 2 if "memory" in cluster else 1
    if record.amount.shape != (rows, resources):
        raise InvalidSchedule(
            f"amount: must have the shape [{rows}, {resources}], got {list(record.amount.shape)}"
        )
    for bad, what in (
        ((record.job < 0) | (record.job >= number), "names a job that does not exist"),
        ((record.server < 0) | (record.server >= servers), "names a server that does not exist"),
        (~(np.isfinite(record.start) & np.isfinite(record.end)), "has no start or end"),
        (record.start >= record.end, "has no slot"),
        (np.floor(record.start) != record.start, "does not start with a slot"),
        (np.floor(record.end) != record.end, "does not end with a slot"),
        (~(record.end <= record.final_time), "ends after the episode"),
    ):
        if bad.any():
            raise InvalidSchedule(f"row [{int(np.argmax(bad))}] {what}")
    job, server = record.job.astype(np.int64), record.server.astype(np.int64)
    start, end = record.start.astype(np.int64), record.end.astype(np.int64)

    def refuse(bad: B1, what: str) -> None:
        if bad.any():
            r = int(np.argmax(bad))
            raise InvalidSchedule(f"job [{job[r]}] in slot {start[r] + 1} on server [{server[r]}]: {what}")

    cores = record.amount[:, 0]
    refuse(~((cores >= 1) & (cores == np.floor(cores))), "its cores must be a whole number >= 1")
    refuse(start < np.asarray(jobs["arrival"])[job], "runs before it arrives")
    amount = np.minimum(cores, 2.0**53).astype(np.int64)
    later = np.lexsort((server, job, start))
    refuse(later != np.arange(rows), "rows must be sorted by start, job and server")
    _check_runs(job, server, start, end, amount)
    _check_room(server, start, end, amount, np.asarray(cluster["cpu"]), "cores")
    if resources == 2:
        needs = np.asarray(jobs["declared_memory" if "declared_memory" in jobs else "memory"])
        refuse(record.amount[:, 1] != needs[job], "does not reserve all its memory")
        _check_room(server, start, end, needs[job], np.asarray(cluster["memory"]), "GB of memory")
    finish = _check_work(workload, *_totals(job, start, end, amount, number))
    if record.truncated:
        return
    if (finish < 0).any():
        raise InvalidSchedule(f"job [{int(np.argmax(finish < 0))}]: is not finished at the end")
    if record.final_time != finish.max():
        raise InvalidSchedule(f"final_time: must be {finish.max()}, when the last job ends")


def _check_runs(job: I8, server: I8, start: I8, end: I8, amount: I8) -> None:
    """Rows of one job on one server follow each other, and go on where the cores do not change."""
    order = np.lexsort((start, server, job))
    a, b = order[:-1], order[1:]
    same = (job[a] == job[b]) & (server[a] == server[b])
    for bad, what in (
        (same & (start[b] < end[a]), "has two rows for it"),
        (same & (start[b] == end[a]) & (amount[a] == amount[b]), "its row must go on: same cores"),
    ):
        if bad.any():
            r = int(b[np.argmax(bad)])
            raise InvalidSchedule(f"job [{job[r]}] in slot {start[r] + 1} on server [{server[r]}]: {what}")


def _check_room(server: I8, start: I8, end: I8, amount: I8, room: I8, unit: str) -> None:
    """Per server in order of time, ends before starts; each server's changes sum to 0: one sum for all."""
    place = np.concatenate([server, server])
    time = np.concatenate([end, start])
    change = np.concatenate([-amount, amount])
    order = np.lexsort((change > 0, time, place))
    used = np.cumsum(change[order])
    over = used > room[place[order]]
    if over.any():
        at = int(np.argmax(over))
        i, t = int(place[order][at]), int(time[order][at])
        held = int(amount[(server == i) & (start <= t) & (end > t)].sum())
        raise InvalidSchedule(f"server [{i}] in slot {t + 1}: {held} of {int(room[i])} {unit}")


def _totals(job: I8, start: I8, end: I8, amount: I8, number: int) -> tuple[I8, I8, I8, I8]:
    """Runs of slots in which a job has the same cores in all, by job, then time.

    Their start, slots and cores; the first run of each job, and last their number [number + 1].
    """
    who = np.concatenate([job, job])
    time = np.concatenate([start, end])
    change = np.concatenate([amount, -amount])
    order = np.lexsort((time, who))
    who, time = who[order], time[order]
    total = np.cumsum(change[order])  # back at 0 after each job
    length = np.diff(time, append=time[-1:])
    runs = (total > 0) & (length > 0)
    first = np.searchsorted(who[runs], np.arange(number + 1))
    return time[runs], length[runs], total[runs], first


def _check_work(workload: Workload, start: I8, length: I8, total: I8, first: I8) -> I8:
    """No job has more cores than it can use; returns the slot in which each one ends, -1 if it does not."""
    jobs = workload.jobs
    number = len(first) - 1
    finish = np.full(number, -1, dtype=np.int64)
    if "map_tasks" in jobs:
        for j in range(number):
            runs = slice(int(first[j]), int(first[j + 1]))
            shape = [
                (int(jobs[f"{z}_tasks"][j]), int(jobs[f"{z}_processing"][j]), int(jobs[f"{z}_cpu"][j]))
                for z in ("map", "reduce")
            ]
            finish[j] = _check_phases(j, shape, start[runs], length[runs], total[runs])
        return finish
    job = np.repeat(np.arange(number), np.diff(first))
    demand = np.asarray(jobs["cpu"])
    volume = np.asarray(jobs["processing"]) * demand
    d = demand[job]
    rate = np.minimum(total, d)
    done = np.cumsum(rate * length)  # of all jobs up to here
    done -= np.concatenate([[0], done])[first[job]]  # of this one, to the end of the run
    left = volume[job] - (done - rate)  # when its last slot begins, and at least that in those before
    declared = np.asarray(jobs["declared_cpu"])[job] if "declared_cpu" in jobs else np.zeros_like(d)
    bad = (left <= 0) | (total > _most(left, d, declared))
    if bad.any():
        x = int(np.argmax(bad))
        begin = int(left[x] + rate[x] * (length[x] - 1))  # less and less can be used: the first bad slot

        def usable(slots: int) -> int:
            rest = np.array([max(begin - int(rate[x]) * slots, 0)])
            return int(_most(rest, d[x : x + 1], declared[x : x + 1])[0])

        slots = bisect.bisect_left(range(int(length[x])), True, key=lambda n: usable(n) < total[x])
        raise InvalidSchedule(
            f"job [{job[x]}] in slot {start[x] + 1 + slots}: has {total[x]} cores and can use {usable(slots)}"
        )
    last = first[1:] - 1
    ran = first[1:] > first[:-1]
    whole = ran.copy()
    whole[ran] = done[last[ran]] >= volume[ran]
    finish[whole] = (start + length)[last[whole]]
    return finish


def _most(left: I8, demand: I8, declared: I8) -> I8:
    """The most cores that a plain job may get, with ``left`` core-slots to go and no declared demand or 0."""
    by_mode = np.minimum(declared, -(-np.minimum(left, demand) * declared // demand))  # "waste"
    return np.maximum(np.minimum(demand, left), by_mode)


def _check_phases(j: int, shape: list[tuple[int, int, int]], start: I8, length: I8, total: I8) -> int:
    """The same for one job of two phases (tasks, processing, cpu); its end or -1."""
    phase, left = -1, np.zeros(0, dtype=np.int64)
    d = 0
    for t, slots, cores in zip(start.tolist(), length.tolist(), total.tolist(), strict=True):
        until = t + slots
        while t < until:
            while not left.any() and phase < 1:
                phase += 1
                tasks, p, d = shape[phase]
                left = np.full(tasks, p * d, dtype=np.int64)
            caps = np.minimum(left, d)
            if cores > caps.sum():
                raise InvalidSchedule(
                    f"job [{j}] in slot {t + 1}: has {cores} cores and can use {int(caps.sum())}"
                )
            grants = np.minimum(caps, np.maximum(cores - (np.cumsum(caps) - caps), 0))
            some = grants > 0
            same = min(until - t, int((left[some] // grants[some]).min()))
            left = left - grants * same
            t += same
    ended = not left.any() and (phase == 1 or (phase == 0 and shape[1][0] == 0))
    return int(start[-1] + length[-1]) if ended else -1
