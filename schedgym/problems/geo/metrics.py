"""Metrics of a Geo schedule, and an independent validator of whole schedules.

The deviation at an instant is the population standard deviation, over the active jobs (arrived, not
completed), of the slots that they occupy. Time counts while a job is active, to the end or ("no drain") to
the last arrival. The span is the time from the first to the last arrival.

Tasks that never ran are charged as if run one after another, in order of their jobs, from the instant after
which there are no events; they occupy no slot. This is the cost of a feasible schedule.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import SCRATCH, Fill, Floats, Integers, Integers32, Sizes, allocate, sizes_of
from schedgym.core.jit import helper, record_dtype
from schedgym.core.kernels import measure_kernel
from schedgym.core.order import percentile, share, sort
from schedgym.core.record import ScheduleRecord, check_end, check_rows, first_overload, refuse_first
from schedgym.core.rows import resetter
from schedgym.core.tables import MADE_HERE, batch_of_one, tabled
from schedgym.errors import InvalidSchedule
from schedgym.problems.geo.orders import sort_by_key
from schedgym.problems.geo.problem import METRICS
from schedgym.problems.geo.workload import Jobs, tables

METRIC_VALUES = record_dtype(*((metric.name, np.float64) for metric in METRICS))
TIE = 1e-12  # share of all time by which sums of lengths may differ through rounding

#: integrals over a period, and the number of its pieces with a deviation
SUMS = record_dtype(
    ("time", np.float64),  # [s]
    ("deviation", np.float64),  # its integral
    ("jain", np.float64),  # integral of Jain's index
    ("zero", np.float64),  # time without a deviation [s]
    ("pieces", np.int64),
)
reset = resetter(SUMS)


class Schedule(NamedTuple):
    """The decisions of an episode: start and site of each task."""

    start: Annotated[Floats, "task", Fill(math.nan)]  # [s] NaN before the start
    choice: Annotated[Integers32, "task"]  # at which of its sites a task runs


class Metrics(NamedTuple):
    """The metrics of a finished episode, by name."""

    values: Annotated[Any, METRIC_VALUES]


class Scratch(NamedTuple):
    """Scratch space of :func:`measure_one`."""

    sums: Annotated[Any, SUMS]
    sums_to_last_arrival: Annotated[Any, SUMS]
    job: Annotated[Integers, "task"]  # of each task that ran
    begin: Annotated[Floats, "task"]
    end: Annotated[Floats, "task"]
    by_begin: Annotated[Integers, "task"]  # the tasks that ran, ascending
    by_end: Annotated[Integers, "task"]
    response: Annotated[Floats, "job"]
    running: Annotated[Integers, "job"]
    unfinished: Annotated[Integers, "job"]
    deviation: Annotated[Floats, "piece"]  # of the pieces of time that have one
    length: Annotated[Floats, "piece"]  # [s]
    by_deviation: Annotated[Integers, "piece"]  # the pieces, ascending


class Episode(NamedTuple):
    """The arrays of :func:`measure_one`: workload, schedule, metrics and scratch space."""

    jobs: Jobs
    schedule: Schedule
    metrics: Metrics
    scratch: Annotated[Scratch, SCRATCH]


def most_pieces(sizes: Sizes) -> int:
    """Return the length of dimension "piece": a piece of time ends at an arrival, a start or an end."""
    return sizes["job"] + 2 * sizes["task"]


@helper
def weighted_percentile(scratch: Scratch, sums: Any, part: float) -> float:
    """Return the least deviation with at least this part of the time at or below it; 0 without time.

    Args:
        scratch: with the pieces ``by_deviation``.
        sums: those of the period, which has the first pieces.
        part: 0 to 1.
    """
    need = (part - TIE) * sums.time
    reached = sums.zero
    found = 0.0
    for x in range(scratch.sums.pieces):
        if reached >= need:
            break
        piece = scratch.by_deviation[x]
        if piece < sums.pieces:
            reached += scratch.length[piece]
            found = scratch.deviation[piece]
    return found


@helper
def note_runs(episode: Episode) -> int:
    """Write the starts and the ends of the tasks that ran, their orders, and each job's last end.

    Returns the number of tasks that ran.
    """
    jobs, scratch = episode.jobs, episode.scratch
    count = 0
    for i in range(jobs.size.jobs):
        completion = jobs.arrival[i]
        for t in range(jobs.task_start[i], jobs.task_start[i + 1]):
            begin = episode.schedule.start[t]
            if not math.isnan(begin):
                scratch.job[count] = i
                scratch.begin[count] = begin
                scratch.end[count] = begin + jobs.duration[t]
                completion = max(completion, scratch.end[count])
                count += 1
        scratch.response[i] = completion - jobs.arrival[i]
    sort_by_key(scratch.by_begin, scratch.begin, count)
    sort_by_key(scratch.by_end, scratch.end, count)
    return count


@helper
def add_piece(scratch: Scratch, passed: float, active: int, occupied: int, squares: int) -> None:
    """Add a piece of time; the ``active`` jobs' slots sum to ``occupied``, their squares to ``squares``."""
    sums = scratch.sums
    sums.time += passed
    used, whole = float(occupied) * float(occupied), float(active) * float(squares)
    spread = max(whole - used, 0.0)  # exact below 2^53, and never negative
    if spread > 0.0:
        deviation = math.sqrt(spread) / active
        scratch.deviation[sums.pieces] = deviation
        scratch.length[sums.pieces] = passed
        sums.pieces += 1
        sums.deviation += deviation * passed
        sums.jain += used / whole * passed
    else:
        sums.zero += passed
        sums.jain += passed


@helper
def keep(sums: Any, kept: Any) -> None:
    """Copy sums."""
    kept.time = sums.time
    kept.deviation = sums.deviation
    kept.jain = sums.jain
    kept.zero = sums.zero
    kept.pieces = sums.pieces


@helper
def replay(episode: Episode, count: int) -> float:
    """Sum up the schedule from instant to instant; return the last instant."""
    jobs, scratch = episode.jobs, episode.scratch
    n = jobs.size.jobs
    for i in range(n):
        scratch.running[i] = 0
        scratch.unfinished[i] = jobs.task_start[i + 1] - jobs.task_start[i]
    reset(scratch.sums)
    active = 0
    occupied = 0  # sum of the jobs' slots
    squares = 0  # sum of the squares of the jobs' slots
    arrived = 0
    begun = 0
    ended = 0
    clock = jobs.arrival[0]
    while arrived < n or ended < count:
        now = math.inf
        if arrived < n:
            now = jobs.arrival[arrived]
        if ended < count:
            now = min(now, scratch.end[scratch.by_end[ended]])
        if begun < count:
            now = min(now, scratch.begin[scratch.by_begin[begun]])
        if active > 0 and now > clock:
            add_piece(scratch, now - clock, active, occupied, squares)
        clock = now
        if arrived < n and now == jobs.arrival[n - 1]:
            keep(scratch.sums, scratch.sums_to_last_arrival)
        while ended < count and scratch.end[scratch.by_end[ended]] == now:
            i = scratch.job[scratch.by_end[ended]]
            ended += 1
            scratch.running[i] -= 1
            occupied -= 1
            squares -= 2 * scratch.running[i] + 1
            scratch.unfinished[i] -= 1
            if scratch.unfinished[i] == 0:
                active -= 1
        while arrived < n and jobs.arrival[arrived] == now:
            arrived += 1
            active += 1
        while begun < count and scratch.begin[scratch.by_begin[begun]] == now:
            i = scratch.job[scratch.by_begin[begun]]
            begun += 1
            squares += 2 * scratch.running[i] + 1
            occupied += 1
            scratch.running[i] += 1
    return clock


@helper
def charge(episode: Episode, clock: float) -> float:
    """Charge the tasks that never ran; return the time at which the last of them would end."""
    jobs, sums = episode.jobs, episode.scratch.sums
    final = clock
    for i in range(jobs.size.jobs):
        for t in range(jobs.task_start[i], jobs.task_start[i + 1]):
            if math.isnan(episode.schedule.start[t]):
                final += jobs.duration[t]
                episode.scratch.response[i] = final - jobs.arrival[i]
    sums.time += final - clock
    sums.zero += final - clock
    sums.jain += final - clock
    return final


@helper
def measure_one(episode: Episode) -> None:
    """Write the metrics of one schedule."""
    jobs, scratch, values = episode.jobs, episode.scratch, episode.metrics.values
    n = jobs.size.jobs
    count = note_runs(episode)
    final = replay(episode, count)
    if count < jobs.size.tasks:
        final = charge(episode, final)
    work = 0.0
    busy = 0.0
    longest = 0.0
    for t in range(jobs.size.tasks):
        work += jobs.duration[t]
        longest = max(longest, jobs.duration[t])
        if not math.isnan(episode.schedule.start[t]):
            busy += jobs.duration[t]
    response = 0.0
    for i in range(n):
        response += scratch.response[i]
    slots = 0
    for j in range(jobs.slots.shape[0]):
        slots += jobs.slots[j]
    sort(scratch.response, n)
    values.mean_response = response / n
    values.median_response = percentile(scratch.response, n, 0.5)
    values.p90_response = percentile(scratch.response, n, 0.9)
    values.p95_response = percentile(scratch.response, n, 0.95)
    values.p99_response = percentile(scratch.response, n, 0.99)
    values.max_response = scratch.response[n - 1]
    makespan = final - jobs.arrival[0]
    span = jobs.arrival[n - 1] - jobs.arrival[0]
    values.makespan = makespan
    # a duration may vanish in the rounding of a large clock, and with it the makespan
    values.utilization = share(busy, slots * makespan)
    values.load = share(work, slots * span)
    values.longest_over_span = share(longest, span)
    whole, early = scratch.sums, scratch.sums_to_last_arrival
    values.fairness = share(whole.deviation, span, whole.deviation)
    values.fairness_integral = whole.deviation
    sort_by_key(scratch.by_deviation, scratch.deviation, whole.pieces)
    values.mean_std = share(whole.deviation, whole.time)
    values.median_std = weighted_percentile(scratch, whole, 0.5)
    values.p90_std = weighted_percentile(scratch, whole, 0.9)
    values.p95_std = weighted_percentile(scratch, whole, 0.95)
    values.p99_std = weighted_percentile(scratch, whole, 0.99)
    values.mean_std_no_drain = share(early.deviation, early.time)
    values.median_std_no_drain = weighted_percentile(scratch, early, 0.5)
    values.p90_std_no_drain = weighted_percentile(scratch, early, 0.9)
    values.p95_std_no_drain = weighted_percentile(scratch, early, 0.95)
    values.p99_std_no_drain = weighted_percentile(scratch, early, 0.99)
    values.mean_jain = share(whole.jain, whole.time, 1.0)
    values.mean_jain_no_drain = share(early.jain, early.time, 1.0)


measure = measure_kernel(__name__, Episode, measure_one)


def metrics(record: ScheduleRecord) -> dict[str, float]:
    """Return all metrics of a schedule by name, except those that only the environment knows."""
    check_rows(record, 1, outlasting=True)
    jobs = tables(record.workload)
    sizes = sizes_of(jobs)
    sizes["piece"] = most_pieces(sizes)
    schedule, found = allocate(Schedule, sizes, 1), allocate(Metrics, {}, 1)
    start = np.full(sizes["task"], np.nan)
    start[record.job] = record.start
    schedule.start[0] = start[jobs.task_index]
    measure(*tabled(Episode(batch_of_one(jobs), schedule, found, MADE_HERE), sizes), np.ones(1, dtype=bool))
    return {metric.name: float(found.values[metric.name][0]) for metric in METRICS if metric.recorded}


def fates(record: ScheduleRecord) -> dict[str, list[Any]]:
    """Return the outcome of each job, in the order of the input: completion [s] and response [s].

    Both are None for a job with a task that never ran.
    """
    check_rows(record, 1, outlasting=True)
    arrival = record.workload.jobs["arrival"]
    job = record.workload.tasks["job"]
    completion = np.full(len(arrival), -np.inf)
    np.maximum.at(completion, job[record.job], record.end)
    ran = np.zeros(len(job), dtype=bool)
    ran[record.job] = True
    response = completion - arrival
    result: dict[str, list[Any]] = {"completion": completion.tolist(), "response": response.tolist()}
    for i in np.unique(job[~ran]).tolist():
        result["completion"][i] = result["response"][i] = None
    return result


def validate(record: ScheduleRecord) -> None:
    """Check a whole schedule against the problem's constraints, independently of the dynamics.

    Each task runs at most once, without interruption, in one slot, not before its job arrives, at a site of
    its list. All tasks run unless the episode was truncated. At every instant at most u_j tasks run at
    site j.

    Raises:
        InvalidSchedule: naming the first row, task or site at fault; the column of sites is ``server``.
    """
    tasks, slots = record.workload.tasks, record.workload.cluster["slots"]
    arrival = record.workload.jobs["arrival"]
    check_rows(record, 1, outlasting=True)
    count, rows = len(tasks["job"]), len(record.job)
    runs = np.bincount(record.job, minlength=count)
    never = np.zeros(count, dtype=bool) if record.truncated else runs == 0
    refuse_first("task [{}]", ((runs > 1, "runs more than once"), (never, "never runs")))
    refuse_first(
        "task [{}]",
        (
            (record.start < arrival[tasks["job"][record.job]], "starts before its job arrives"),
            (record.end != record.start + tasks["duration"][record.job], "does not run its whole time"),
            (record.amount[:, 0] != 1.0, "does not hold one slot"),
            (
                (tasks["sites"][record.job] != record.server[:, None]).all(axis=1),
                "runs at a site that is not in its list",
            ),
        ),
        record.job,
    )
    over = first_overload(record.server, record.start, record.end, np.ones(rows, dtype=np.int64), slots)
    if over is not None:
        j, time, used = over
        raise InvalidSchedule(
            f"site [{j}] is over its capacity at {time:g} s: {used} tasks run in {int(slots[j])} slots"
        )
    check_end(record, max(arrival.max(), record.end.max(initial=0.0)), "the last task ends or job arrives")
