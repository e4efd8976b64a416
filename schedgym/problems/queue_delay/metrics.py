"""Metrics of a QueueDelay schedule, and an independent validator of whole schedules.

Tasks that never ran are charged as if run one after another, in order of submission, from the instant at
which nothing could happen any more; they use no server. All windows and averages include that charge, so
that Little's law holds exactly: mean_queued = tasks / makespan * mean_delay.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import helper, kernel
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.problems.queue_delay.problem import METRICS
from schedgym.problems.queue_delay.rules import TOLERANCE

__all__ = ["fates", "measure", "metrics", "starts", "validate"]

F8 = npt.NDArray[np.float64]

NAMES = tuple(metric.name for metric in METRICS)
MEASURED = len(NAMES) - 1  # all but "repaired", which is no property of the schedule


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


@helper
def covered(begins: F8, ends: F8, before: F8, pieces: int, time: float) -> float:
    """Length of the union of disjoint ascending intervals up to ``time``; ``before`` are prefix sums."""
    low, high = 0, pieces
    while low < high:
        middle = (low + high) >> 1
        if begins[middle] <= time:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return 0.0
    k = low - 1
    return before[k] + min(time, ends[k]) - begins[k]


@kernel
def measure(
    mask: npt.NDArray[np.bool_],
    count: npt.NDArray[np.int64],
    tasks: F8,
    capacity: F8,
    start: F8,
    final_time: F8,
    out: F8,
) -> None:
    """Metrics of schedules.

    Args:
        mask: which rows to measure [B].
        count: number of tasks [B].
        tasks: arrival, execution, cpu, memory [B, >= K, 4].
        capacity: [B, M, 2].
        start: NaN for tasks that never ran [B, >= K].
        final_time: the instant at which the episode ended [B].
        out: written, [B, >= MEASURED], in the order of the descriptor.
    """
    size = tasks.shape[1]
    begin = np.empty(size)
    delay = np.empty(size)
    piece_begin = np.empty(size)
    piece_end = np.empty(size)
    piece_before = np.empty(size)
    for b in range(mask.shape[0]):
        if not mask[b]:
            continue
        n = count[b]
        first = tasks[b, 0, 0]
        last_arrival = tasks[b, n - 1, 0]
        end = first
        clock = final_time[b]
        stranded = 0
        total_delay = 0.0
        total_execution = 0.0
        total_cpu = 0.0
        total_memory = 0.0
        early_cpu = 0.0
        early_memory = 0.0
        pieces = 0
        for i in range(n):
            arrival = tasks[b, i, 0]
            execution = tasks[b, i, 1]
            if math.isnan(start[b, i]):
                stranded += 1
                begin[i] = clock
                clock += execution
            else:
                begin[i] = start[b, i]
                work = execution * tasks[b, i, 2]
                total_cpu += work
                total_memory += execution * tasks[b, i, 3]
                overlap = max(min(begin[i] + execution, last_arrival) - begin[i], 0.0)
                early_cpu += overlap * tasks[b, i, 2]
                early_memory += overlap * tasks[b, i, 3]
            end = max(end, begin[i] + execution)
            delay[i] = begin[i] - arrival
            total_delay += delay[i]
            total_execution += execution
            if delay[i] > 0.0:  # arrivals ascend, so the union grows at its end
                if pieces > 0 and arrival <= piece_end[pieces - 1]:
                    piece_end[pieces - 1] = max(piece_end[pieces - 1], begin[i])
                else:
                    piece_begin[pieces] = arrival
                    piece_end[pieces] = begin[i]
                    pieces += 1
        backlog = 0.0
        for k in range(pieces):
            piece_before[k] = backlog
            backlog += piece_end[k] - piece_begin[k]
        late_cpu = 0.0
        late_memory = 0.0
        if pieces > 0:
            for i in range(n):
                if not math.isnan(start[b, i]):
                    overlap = covered(
                        piece_begin, piece_end, piece_before, pieces, begin[i] + tasks[b, i, 1]
                    ) - covered(piece_begin, piece_end, piece_before, pieces, begin[i])
                    late_cpu += overlap * tasks[b, i, 2]
                    late_memory += overlap * tasks[b, i, 3]
        cpu = 0.0
        memory = 0.0
        for j in range(capacity.shape[1]):
            cpu += capacity[b, j, 0]
            memory += capacity[b, j, 1]
        makespan = end - first
        early = last_arrival - first
        ordered = np.sort(delay[:n])
        out[b, 0] = total_delay / n
        out[b, 1] = percentile(ordered, n, 0.5)
        out[b, 2] = percentile(ordered, n, 0.95)
        out[b, 3] = ordered[n - 1]
        out[b, 4] = makespan
        out[b, 5] = total_cpu / (cpu * makespan) if cpu * makespan > 0.0 else 0.0
        out[b, 6] = total_memory / (memory * makespan) if memory * makespan > 0.0 else 0.0
        out[b, 7] = early_cpu / (cpu * early) if cpu * early > 0.0 else 0.0
        out[b, 8] = early_memory / (memory * early) if memory * early > 0.0 else 0.0
        out[b, 9] = late_cpu / (cpu * backlog) if cpu * backlog > 0.0 else 0.0
        out[b, 10] = late_memory / (memory * backlog) if memory * backlog > 0.0 else 0.0
        # an execution time may vanish in the rounding of a large clock, and with it the makespan
        out[b, 11] = total_delay / makespan if makespan > 0.0 else 0.0
        out[b, 12] = total_execution / makespan if makespan > 0.0 else 0.0
        out[b, 13] = backlog / makespan if makespan > 0.0 else 0.0
        out[b, 14] = stranded


def table(workload: Workload) -> tuple[F8, F8]:
    """The workload as the kernels' tables: tasks [1, K, 4] and capacity [1, M, 2]."""
    jobs, cluster = workload.jobs, workload.cluster
    tasks = np.column_stack([jobs["arrival"], jobs["execution"], jobs["cpu"], jobs["memory"]])
    capacity = np.column_stack([cluster["cpu"], cluster["memory"]])
    return np.ascontiguousarray(tasks)[None], np.ascontiguousarray(capacity)[None]


def starts(record: ScheduleRecord) -> F8:
    """Start of each task [s], NaN for those that never ran; [K]."""
    start = np.full(len(record.workload.jobs["arrival"]), np.nan)
    start[record.job] = record.start
    return start


def metrics(record: ScheduleRecord) -> dict[str, float]:
    """All metrics of a schedule by name, but for ``repaired``, which only the environment knows."""
    tasks, capacity = table(record.workload)
    out = np.zeros((1, MEASURED))
    measure(
        np.ones(1, dtype=bool),
        np.array([tasks.shape[1]]),
        tasks,
        capacity,
        starts(record)[None],
        np.array([record.final_time]),
        out,
    )
    return dict(zip(NAMES, out[0].tolist(), strict=False))


def fates(record: ScheduleRecord) -> dict[str, list[Any]]:
    """What became of each task, in the order of the input: start, server, completion.

    A task that never ran has start and completion None and server -1.
    """
    count = len(record.workload.jobs["arrival"])
    start: list[Any] = [None] * count
    completion: list[Any] = [None] * count
    server = [-1] * count
    for job, j, begin, end in zip(
        record.job.tolist(),
        record.server.tolist(),
        record.start.tolist(),
        record.end.tolist(),
        strict=True,
    ):
        start[job], server[job], completion[job] = begin, j, end
    return {"start": start, "server": server, "completion": completion}


def validate(record: ScheduleRecord) -> None:
    """Check a whole schedule against the problem's constraints, independently of the dynamics.

    Each task runs at most once, whole, not before it arrives, on a server that exists, with its own
    demand; all run unless the episode was truncated; at every instant the demands on a server sum to at
    most its capacity (up to the tolerance of the fitting test, and rounding).

    Raises:
        InvalidSchedule: naming the first task or server at fault.
    """
    jobs, cluster = record.workload.jobs, record.workload.cluster
    count, servers = len(jobs["arrival"]), len(cluster["cpu"])
    for name in ("job", "server", "start", "end", "amount"):
        if len(getattr(record, name)) != len(record.job):
            raise InvalidSchedule(f"{name}: must have one row per piece")
    for bad, what in (
        ((record.job < 0) | (record.job >= count), "names a task that does not exist"),
        ((record.server < 0) | (record.server >= servers), "names a server that does not exist"),
    ):
        if bad.any():
            raise InvalidSchedule(f"row [{int(np.flatnonzero(bad)[0])}] {what}")
    runs = np.bincount(record.job, minlength=count)
    if (runs > 1).any():
        raise InvalidSchedule(f"task [{int(np.argmax(runs > 1))}] runs more than once")
    if not record.truncated and (runs == 0).any():
        raise InvalidSchedule(f"task [{int(np.argmax(runs == 0))}] never runs")
    own = np.column_stack([jobs["cpu"], jobs["memory"]])[record.job]
    for bad, what in (
        (~(record.start >= jobs["arrival"][record.job]), "starts before it arrives"),
        (record.end != record.start + jobs["execution"][record.job], "does not run its whole time"),
        ((record.amount != own).any(axis=1), "does not hold its own demand"),
    ):
        if bad.any():
            raise InvalidSchedule(f"task [{int(record.job[np.argmax(bad)])}] {what}")
    sizes = np.column_stack([cluster["cpu"], cluster["memory"]])
    for j in range(servers):
        here = record.server == j
        times = np.concatenate([record.end[here], record.start[here]])
        change = np.concatenate([-record.amount[here], record.amount[here]])
        # releases before starts at one instant; the load after all changes of the instant is what counts
        order = np.argsort(times, kind="stable")
        load = np.cumsum(change[order], axis=0)
        settled = np.append(np.diff(times[order]) > 0, True) if len(order) else np.zeros(0, bool)
        over = (load > sizes[j] + 2 * TOLERANCE) & settled[:, None]
        if over.any():
            at = int(np.flatnonzero(over.any(axis=1))[0])
            raise InvalidSchedule(
                f"server [{j}] is over its capacity at {times[order][at]:g} s: uses "
                f"{load[at].tolist()} of {sizes[j].tolist()}"
            )
