"""Metrics of a QueueDelay schedule, and an independent validator of whole schedules.

Tasks that never ran are charged as if run one after another, in order of submission, from the instant after
which there are no events; they use no server. All windows and averages include that charge, so
that Little's law holds exactly: mean_queued = tasks / makespan * mean_delay.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import SCRATCH, Fill, Floats, Integers, allocate, sizes_of
from schedgym.core.jit import helper, record_dtype
from schedgym.core.kernels import measure_kernel
from schedgym.core.order import percentile, share, sort
from schedgym.core.record import ScheduleRecord, check_end, check_rows, first_overload, refuse_first
from schedgym.core.tables import MADE_HERE, batch_of_one, tabled
from schedgym.errors import InvalidSchedule
from schedgym.problems.queue_delay.problem import (
    COUNTS_MEASURED,
    TIMES_MEASURED,
    WINDOWS_MEASURED,
    metrics_of,
)
from schedgym.problems.queue_delay.rules import TOLERANCE
from schedgym.problems.queue_delay.workload import Jobs, tables

TIME_VALUES, COUNT_VALUES = (
    record_dtype(*((metric.name, np.float64) for metric in own)) for own in (TIMES_MEASURED, COUNTS_MEASURED)
)
END = record_dtype(("clock", np.float64))  # the instant at which the episode ended


class Schedule(NamedTuple):
    """The decisions of an episode: start and server of each task, and the end of the episode."""

    end: Annotated[Any, END]
    start: Annotated[Floats, "task", Fill(math.nan)]  # NaN before the start
    server: Annotated[Integers, "task", Fill(-1)]  # -1 before the start


class Metrics(NamedTuple):
    """The metrics of a finished episode, in the order of the tables."""

    times: Annotated[Any, TIME_VALUES]
    utilization: Annotated[Floats, len(WINDOWS_MEASURED), "static_resource"]
    counts: Annotated[Any, COUNT_VALUES]


class Scratch(NamedTuple):
    """Scratch space of :func:`measure_one`."""

    begin: Annotated[Floats, "task"]
    delay: Annotated[Floats, "task"]
    piece_begin: Annotated[Floats, "task"]  # the times at which tasks wait, as disjoint ascending pieces
    piece_end: Annotated[Floats, "task"]
    piece_before: Annotated[Floats, "task"]  # length of all earlier pieces


class Episode(NamedTuple):
    """The arrays of :func:`measure_one`: workload, schedule, metrics and scratch space."""

    jobs: Jobs
    schedule: Schedule
    metrics: Metrics
    scratch: Annotated[Scratch, SCRATCH]


@helper
def waited_before(scratch: Scratch, pieces: int, time: float) -> float:
    """Return for how long up to ``time`` at least one task was waiting [s]."""
    low, high = 0, pieces
    while low < high:
        middle = (low + high) >> 1
        if scratch.piece_begin[middle] <= time:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return 0.0
    k = low - 1
    return scratch.piece_before[k] + min(time, scratch.piece_end[k]) - scratch.piece_begin[k]


@helper
def settle_starts(episode: Episode) -> int:
    """Set begin and delay of each task; run the stranded ones one after another; return their number."""
    jobs, scratch = episode.jobs, episode.scratch
    clock = episode.schedule.end.clock
    stranded = 0
    for i in range(jobs.size.tasks):
        begin = episode.schedule.start[i]
        if math.isnan(begin):
            stranded += 1
            begin = clock
            clock += jobs.execution[i]
        scratch.begin[i] = begin
        scratch.delay[i] = begin - jobs.arrival[i]
    return stranded


@helper
def join_pieces(episode: Episode) -> int:
    """Write the times at which tasks wait as disjoint pieces; return their number. Arrivals ascend."""
    jobs, scratch = episode.jobs, episode.scratch
    pieces = 0
    for i in range(jobs.size.tasks):
        if scratch.delay[i] > 0.0:  # arrivals ascend, so the union is extended at its end
            if pieces > 0 and jobs.arrival[i] <= scratch.piece_end[pieces - 1]:
                scratch.piece_end[pieces - 1] = max(scratch.piece_end[pieces - 1], scratch.begin[i])
            else:
                scratch.piece_begin[pieces] = jobs.arrival[i]
                scratch.piece_end[pieces] = scratch.begin[i]
                pieces += 1
    return pieces


@helper
def measure_one(episode: Episode) -> None:
    """Write the metrics of one schedule."""
    jobs, scratch, counts, times = (
        episode.jobs,
        episode.scratch,
        episode.metrics.counts,
        episode.metrics.times,
    )
    n = jobs.size.tasks
    counts.stranded = settle_starts(episode)
    pieces = join_pieces(episode)
    backlog = 0.0
    for k in range(pieces):
        scratch.piece_before[k] = backlog
        backlog += scratch.piece_end[k] - scratch.piece_begin[k]
    first = jobs.arrival[0]
    early = jobs.arrival[n - 1] - first
    end = first
    total_delay = 0.0
    total_execution = 0.0
    for i in range(n):
        end = max(end, scratch.begin[i] + jobs.execution[i])
        total_delay += scratch.delay[i]
        total_execution += jobs.execution[i]
    makespan = end - first
    # use of each resource: in total, up to the last arrival, and while tasks waited
    used = episode.metrics.utilization
    for w in range(used.shape[0]):
        for r in range(used.shape[1]):
            used[w, r] = 0.0
    for i in range(n):
        if math.isnan(episode.schedule.start[i]):
            continue
        begin = scratch.begin[i]
        over = begin + jobs.execution[i]
        before = max(min(over, jobs.arrival[n - 1]) - begin, 0.0)
        waited = 0.0
        if pieces > 0:
            waited = waited_before(scratch, pieces, over) - waited_before(scratch, pieces, begin)
        for r in range(used.shape[1]):
            used[0, r] += jobs.execution[i] * jobs.demand[i, r]
            used[1, r] += before * jobs.demand[i, r]
            used[2, r] += waited * jobs.demand[i, r]
    for r in range(used.shape[1]):
        capacity = 0.0
        for j in range(jobs.capacity.shape[0]):
            capacity += jobs.capacity[j, r]
        used[0, r] = share(used[0, r], capacity * makespan)
        used[1, r] = share(used[1, r], capacity * early)
        used[2, r] = share(used[2, r], capacity * backlog)
    times.makespan = makespan
    # an execution time may vanish in the rounding of a large clock, and with it the makespan
    counts.mean_queued = share(total_delay, makespan)
    counts.mean_running = share(total_execution, makespan)
    counts.beta = share(backlog, makespan)
    sort(scratch.delay, n)
    times.mean_delay = total_delay / n
    times.median_delay = percentile(scratch.delay, n, 0.5)
    times.p95_delay = percentile(scratch.delay, n, 0.95)
    times.max_delay = scratch.delay[n - 1]


measure = measure_kernel(__name__, Episode, measure_one)


def metrics(record: ScheduleRecord) -> dict[str, float]:
    """Return all metrics of a schedule by name, except ``repaired``, which only the environment knows."""
    check_rows(record, len(record.workload.cluster), outlasting=True)
    jobs = tables(record.workload)
    sizes = sizes_of(jobs)
    schedule, found = allocate(Schedule, sizes, 1), allocate(Metrics, sizes, 1)
    schedule.start[0, record.job] = record.start
    schedule.end["clock"] = record.final_time
    table = tabled(Episode(batch_of_one(jobs), schedule, found, MADE_HERE), sizes)  # it owns the scratch
    measure(*table, np.ones(1, dtype=bool))
    names = metrics_of({"resources": record.workload.cluster})
    values = np.concatenate([array.view(np.float64).ravel() for array in found]).tolist()
    return {own.name: value for own, value in zip(names, values, strict=True) if own.recorded}


def fates(record: ScheduleRecord) -> dict[str, list[Any]]:
    """Return the outcome of each task, in the order of the input: start, server, completion.

    A task that never ran has start and completion None and server -1.
    """
    check_rows(record, len(record.workload.cluster), outlasting=True)
    count = len(record.workload.jobs["arrival"])
    found = {"start": np.full(count, None), "server": np.full(count, -1), "completion": np.full(count, None)}
    for name, column in zip(found, (record.start, record.server, record.end), strict=True):
        found[name][record.job] = column
    return {name: column.tolist() for name, column in found.items()}


def validate(record: ScheduleRecord) -> None:
    """Check a whole schedule against the problem's constraints, independently of the dynamics.

    Each task runs at most once, without interruption, not before it arrives, on a server that exists, with
    its own demand. All tasks run unless the episode was truncated. At every instant the demands on a server
    sum to at most its capacity (up to the tolerance of the fitting test, and rounding).

    Raises:
        InvalidSchedule: naming the first row, task or server at fault.
    """
    jobs, cluster = record.workload.jobs, record.workload.cluster
    sizes = np.column_stack(list(cluster.values()))
    count = len(jobs["arrival"])
    check_rows(record, len(cluster), outlasting=True)
    runs = np.bincount(record.job, minlength=count)
    never = np.zeros(count, dtype=bool) if record.truncated else runs == 0
    refuse_first("task [{}]", ((runs > 1, "runs more than once"), (never, "never runs")))
    own = np.column_stack([jobs[name] for name in cluster])[record.job]
    refuse_first(
        "task [{}]",
        (
            (record.start < jobs["arrival"][record.job], "starts before it arrives"),
            (record.end != record.start + jobs["execution"][record.job], "does not run its whole time"),
            ((record.amount != own).any(axis=1), "does not hold its own demand"),
        ),
        record.job,
    )
    over = first_overload(record.server, record.start, record.end, record.amount, sizes + 2 * TOLERANCE)
    if over is not None:
        j, time, load = over
        raise InvalidSchedule(
            f"server [{j}] is over its capacity at {time:g} s: uses {load.tolist()} of {sizes[j].tolist()}"
        )
    last = max(jobs["arrival"].max(), record.end.max(initial=0.0))
    check_end(record, last, "the last task ends or arrives")
