"""Metrics of a FlowtimePacking schedule, and an independent validator of whole schedules.

The record does not say how many cores a job used. That number is recomputed from the cores that the job was
granted: in each slot they go to the tasks of its current phase in index order, to each at most its demand and
its remaining work.

A job that has not finished when the episode ends is charged until then; a job that arrives at the end or
later is ignored.
"""

from __future__ import annotations

import bisect
import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import SCRATCH, SHARED, Floats, Integers, Integers32, allocate, sizes_of
from schedgym.core.jit import helper, pure_kernel, record_dtype
from schedgym.core.kernels import measure_kernel
from schedgym.core.order import percentile, share, sort, sort_rows
from schedgym.core.record import ScheduleRecord, check_end, check_rows, first_overload, refuse_first
from schedgym.core.rows import resetter
from schedgym.core.tables import MADE_HERE, accessor, batch_of_one, make_tools, pack, tabled
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.problems.flowtime.problem import METRICS
from schedgym.problems.flowtime.workload import MAPREDUCE, Jobs, length_of, tables
from schedgym.solvers.arithmetic import power

METRIC_VALUES = record_dtype(*((metric.name, np.float64) for metric in METRICS))
reset = resetter(METRIC_VALUES, without=("repaired",))  # which the environment counts

#: the norm's k, and the weight of the switching cost in the objective
OBJECTIVE = record_dtype(("norm", np.float64), ("alpha", np.float64))

#: number of rows of a schedule, and the last slot that was carried out
EXTENT = record_dtype(("rows", np.int64), ("slot", np.int64))

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

#: the position of :func:`replay`
REPLAY = record_dtype(
    ("job", np.int64),
    ("slot", np.int64),  # the last slot that is done
    ("until", np.int64),  # the last slot in which the job's cores stay as they are
    ("row", np.int64),  # position in ``order`` of the job's next row
    ("last_row", np.int64),  # position behind the job's last row
    ("tasks", np.int64),  # of the phase
    ("demand", np.int64),  # of a task
    ("demand_before", np.int64),  # in the slot before
    ("head", np.int64),  # the first task that is not done
    ("unfinished", np.int64),  # tasks of the phase
    ("ran", np.int64),  # whether it has run
    ("pieces", np.int64),  # of the job, so far
    ("begins", np.int64),  # whether a piece begins, whatever is used
)

#: what :func:`charge` keeps from piece to piece
TALLY = record_dtype(
    ("job", np.int64),
    ("held", np.int64),  # cores in the piece before
    ("gap", np.int64),  # slots without cores so far
    ("remaining", np.int64),  # core-slots
    ("used", np.float64),  # by all jobs
)


class Objective(NamedTuple):
    """The weights of the objective."""

    weights: Annotated[Any, OBJECTIVE]


class Schedule(NamedTuple):
    """The schedule so far: runs of slots in which a job had the same cores on a server, by start."""

    extent: Annotated[Any, EXTENT]
    job: Annotated[Integers32, "run"]
    server: Annotated[Integers32, "run"]
    start: Annotated[Integers, "run"]  # first slot - 1
    end: Annotated[Integers, "run"]  # last slot
    cores: Annotated[Integers, "run"]


class Metrics(NamedTuple):
    """The metrics of a finished episode, by name."""

    values: Annotated[Any, METRIC_VALUES]


class Scratch(NamedTuple):
    """Scratch space of :func:`replay` and :func:`measure_one`."""

    at: Annotated[Any, REPLAY]
    piece: Annotated[Any, PIECE, 1]  # the present one
    coming: Annotated[Any, PIECE, 1]  # the next one, as far as it is known
    tally: Annotated[Any, TALLY]
    first: Annotated[Integers, "job+2"]  # of each job's rows in ``order``
    order: Annotated[Integers, "run"]
    left: Annotated[Integers, "most_tasks"]  # of the tasks of a phase
    cores: Annotated[Integers, "server"]  # of the job now,
    cores_before: Annotated[Integers, "server"]  # and before,
    end: Annotated[Integers, "server"]  # the last slot in which it has them,
    ran: Annotated[Integers, "server"]  # whether it last ran there
    completion: Annotated[Integers, "job"]  # slot in which each job ends, -1 if it does not
    flowtime: Annotated[Floats, "job"]  # of those that have arrived
    length: Annotated[Integers, "job"]
    rank: Annotated[Integers, "job"]  # the jobs by length


class Pieces(NamedTuple):
    """The pieces of a schedule, and their number."""

    number: Annotated[Integers, 1]
    found: Annotated[Any, PIECE, "piece"]


class Episode(NamedTuple):
    """The arrays of :func:`measure` and :func:`cut`: workload, schedule, results and scratch space."""

    objective: Annotated[Objective, SHARED]
    jobs: Jobs
    schedule: Schedule
    metrics: Metrics
    pieces: Pieces
    scratch: Annotated[Scratch, SCRATCH]


# The progress of each job, piece by piece -----------------------------------------------------


@helper
def sort_by_job(env: Episode) -> None:
    """Sort the rows into ``order`` by job, then start; those of job j are order[first[j]:first[j + 1]]."""
    first, schedule = env.scratch.first, env.schedule
    n = env.jobs.size.jobs
    for j in range(n + 2):
        first[j] = 0
    for r in range(schedule.extent.rows):
        first[schedule.job[r] + 2] += 1
    for j in range(n):
        first[j + 2] += first[j + 1]
    for r in range(schedule.extent.rows):
        j = schedule.job[r] + 1
        env.scratch.order[first[j]] = r
        first[j] += 1


@helper
def enter_phase(env: Episode, z: int) -> None:
    """Begin phase z, with all work of its tasks left."""
    at, jobs = env.scratch.at, env.jobs
    env.scratch.coming[0].phase = z
    at.demand = jobs.cpu[at.job, z]
    at.tasks = jobs.tasks[at.job, z]
    at.unfinished = at.tasks
    at.head = 0
    at.begins = 1
    for q in range(at.tasks):
        env.scratch.left[q] = jobs.processing[at.job, z] * at.demand


@helper
def begin_job(env: Episode, j: int) -> None:
    """Go to the arrival of a job, which has no cores."""
    scratch = env.scratch
    at = scratch.at
    at.job = j
    scratch.coming[0].job = j
    scratch.coming[0].granted = 0
    at.slot = env.jobs.arrival[j]
    at.row = scratch.first[j]
    at.last_row = scratch.first[j + 1]
    at.ran = 0
    at.pieces = 0
    enter_phase(env, 0)
    at.demand_before = at.demand
    scratch.completion[j] = -1
    for i in range(scratch.cores.shape[0]):
        scratch.cores[i] = 0
        scratch.cores_before[i] = 0
        scratch.end[i] = 0
        scratch.ran[i] = 0


@helper
def change_cores(env: Episode) -> None:
    """Apply the rows that end or start at the present slot; record the changes and until when they last."""
    scratch, schedule = env.scratch, env.schedule
    at, coming, cores = scratch.at, scratch.coming[0], scratch.cores
    servers = cores.shape[0]
    at.until = schedule.extent.slot
    for i in range(servers):
        scratch.cores_before[i] = cores[i]
        if cores[i] > 0 and scratch.end[i] <= at.slot:
            coming.granted -= cores[i]
            cores[i] = 0
    while at.row < at.last_row and schedule.start[scratch.order[at.row]] <= at.slot:
        r = scratch.order[at.row]
        at.row += 1
        if schedule.end[r] > at.slot:
            i = schedule.server[r]
            coming.granted += schedule.cores[r] - cores[i]
            cores[i] = schedule.cores[r]
            scratch.end[i] = schedule.end[r]
    if at.row < at.last_row:
        at.until = min(at.until, schedule.start[scratch.order[at.row]])
    coming.hosts = 0
    coming.moved = 0
    coming.change = 0.0
    for i in range(servers):
        step = cores[i] / at.demand - scratch.cores_before[i] / at.demand_before
        coming.change += step * step
        if cores[i] > 0:
            at.until = min(at.until, scratch.end[i])
            coming.hosts += 1
            if at.ran != 0 and scratch.ran[i] == 0:
                coming.moved = 1
    if coming.granted > 0:
        at.ran = 1
        for i in range(servers):
            scratch.ran[i] = cores[i] > 0
    if at.slot == env.jobs.arrival[at.job]:
        coming.change = 0.0  # the first slot is free
    at.begins = 1


@helper
def work_alike(env: Episode) -> Any:
    """Do the work of the slots in which every task gets the same; return their number and the cores used."""
    at, left, granted = env.scratch.at, env.scratch.left, env.scratch.coming[0].granted
    rest = granted
    slots = at.until - at.slot
    i = at.head
    while i < at.tasks and rest > 0:
        grant = min(at.demand, left[i], rest)
        if grant > 0:
            rest -= grant
            slots = min(slots, left[i] // grant)
        i += 1
    used = granted - rest
    rest = used
    i = at.head
    while rest > 0:
        grant = min(at.demand, left[i], rest)
        if grant > 0:
            rest -= grant
            left[i] -= grant * slots
            if left[i] == 0:
                at.unfinished -= 1
        i += 1
    while at.head < at.tasks and left[at.head] == 0:
        at.head += 1
    return slots, used


@helper
def begin_piece(env: Episode, used: int) -> None:
    """Begin a piece at the present slot."""
    scratch = env.scratch
    coming = scratch.coming[0]
    coming.start = scratch.at.slot
    coming.used = used
    scratch.piece[0] = coming
    coming.moved = 0
    coming.change = 0.0
    scratch.at.pieces += 1
    scratch.at.begins = 0


@helper
def end_phase(env: Episode) -> None:
    """Go on with the next phase, or complete the job; all tasks of the present phase are done."""
    at, coming, cores = env.scratch.at, env.scratch.coming[0], env.scratch.cores
    if coming.phase == 0 and env.jobs.tasks[at.job, 1] > 0:
        enter_phase(env, 1)
        for i in range(cores.shape[0]):
            step = cores[i] / at.demand - cores[i] / at.demand_before
            coming.change += step * step
    else:
        env.scratch.completion[at.job] = at.slot


@helper
def replay(env: Episode, take: Any) -> None:
    """Cut the life of each job, arrival to completion or end, into pieces, by job, then time.

    Args:
        env: the schedule.
        take: called with ``env`` for each piece, which is ``env.scratch.piece[0]``.
    """
    scratch = env.scratch
    at, piece, completion = scratch.at, scratch.piece[0], scratch.completion
    sort_by_job(env)
    for j in range(env.jobs.size.jobs):
        begin_job(env, j)
        while at.slot < env.schedule.extent.slot and completion[j] < 0:
            change_cores(env)
            while at.slot < at.until and completion[j] < 0:
                slots, used = work_alike(env)
                if at.begins != 0 or piece.used != used:
                    if at.pieces > 0:
                        take(env)
                    begin_piece(env, used)
                at.slot += slots
                piece.end = at.slot
                at.demand_before = at.demand
                if at.unfinished == 0:
                    end_phase(env)
        if at.pieces > 0:
            take(env)


# Metrics --------------------------------------------------------------------------------------


@helper
def charge(env: Episode) -> None:
    """Add a piece to the metrics that are sums over pieces."""
    piece, tally, values, jobs = env.scratch.piece[0], env.scratch.tally, env.metrics.values, env.jobs
    j, z = piece.job, piece.phase
    if j != tally.job:
        tally.job = j
        tally.held = 0
        tally.gap = 0
        tally.remaining = jobs.tasks[j, 0] * jobs.processing[j, 0] * jobs.cpu[j, 0]
        tally.remaining += jobs.tasks[j, 1] * jobs.processing[j, 1] * jobs.cpu[j, 1]
    slots = piece.end - piece.start
    if piece.granted == 0:
        tally.gap += slots
        values.longest_gap = max(values.longest_gap, float(tally.gap))
        values.preemptions += tally.held > 0
    else:
        tally.gap = 0
        values.resizes += tally.held > 0 and tally.held != piece.granted
    tally.held = piece.granted
    values.migrations += piece.moved
    if piece.hosts > 1:
        values.splits += slots
    values.switching_cost += piece.change
    long = float(slots)
    if piece.used > 0:
        tally.used += float(piece.used) * long
        age = float(piece.start - jobs.arrival[j])
        # the sum of (age + 1)^2, (age + 2)^2, ...
        ages = long * age * age + age * long * (long + 1.0)
        ages += long * (long + 1.0) * (2.0 * long + 1.0) / 6.0
        p = float(jobs.processing[j, z])
        d = float(jobs.cpu[j, z])
        if jobs.size.kind == MAPREDUCE:  # the weight of problem P5
            whole = float(length_of(jobs, j))
            weight = (2.0 * ages + whole * whole * long) / (2.0 * p * jobs.tasks[j, z])
            values.fractional += weight * piece.used / d
        else:
            values.fractional += (ages / p + p * long) * piece.used / d
    values.mean_unfinished += tally.remaining * long - piece.used * long * (long + 1.0) / 2.0
    tally.remaining -= piece.used * slots


@helper
def measure_pieces(env: Episode) -> None:
    """Compute the metrics that follow from the pieces, and the completions."""
    values, tally, schedule = env.metrics.values, env.scratch.tally, env.schedule
    reset(values)
    tally.job = -1
    tally.used = 0.0
    replay(env, charge)
    cores = 0
    for i in range(env.jobs.server_cpu.shape[0]):
        cores += env.jobs.server_cpu[i]
    granted = 0.0
    for r in range(schedule.extent.rows):
        granted += float(schedule.cores[r]) * (schedule.end[r] - schedule.start[r])
    end = schedule.extent.slot
    values.idle = 1.0 - granted / (float(cores) * end) if end > 0 else 0.0
    values.wasted = granted - tally.used
    values.mean_unfinished /= env.jobs.arrival[env.jobs.size.jobs - 1] + 1


@helper
def mean_waiting(env: Episode, begin: int, stop: int, arrived: int) -> float:
    """Return the mean of flowtime minus length over the arrived jobs of these ranks; 0 if there are none."""
    total = 0.0
    count = 0
    for x in range(begin, stop):
        j = env.scratch.rank[x]
        if j < arrived:
            total += env.scratch.flowtime[j] - env.scratch.length[j]
            count += 1
    return share(total, count)


@helper
def measure_one(env: Episode) -> None:
    """Write the metrics of one schedule."""
    jobs, scratch, values = env.jobs, env.scratch, env.metrics.values
    norm = env.objective.weights.norm
    n = jobs.size.jobs
    end = env.schedule.extent.slot
    measure_pieces(env)
    cost = 0.0
    squares = 0.0
    arrived = 0
    for j in range(n):
        scratch.rank[j] = j
        scratch.length[j] = length_of(jobs, j)
        if jobs.arrival[j] >= end:  # and so do all that follow
            continue
        arrived += 1
        done = scratch.completion[j] if scratch.completion[j] >= 0 else end
        flowtime = float(done - jobs.arrival[j])
        scratch.flowtime[j] = flowtime
        cost += power(flowtime, norm)
        squares += flowtime * flowtime
        values.l1 += flowtime
        values.mean_slowdown += flowtime / scratch.length[j]
        values.finished += scratch.completion[j] >= 0
        values.makespan = max(values.makespan, float(done))
    values.cost = cost + env.objective.weights.alpha * values.switching_cost
    values.flowtime_norm = cost ** (1.0 / norm)
    values.l2 = math.sqrt(squares)
    values.mean_flowtime = share(values.l1, arrived)
    values.mean_slowdown = share(values.mean_slowdown, arrived)
    sort_rows(scratch.rank, scratch.length, n)
    small = (n + 1) // 2
    big = n - n // 10
    longest = 0
    while 5 * scratch.length[scratch.rank[longest]] < 3 * scratch.length[scratch.rank[n - 1]]:
        longest += 1
    values.mean_waiting = mean_waiting(env, 0, n, arrived)
    values.waiting_small = mean_waiting(env, 0, small, arrived)
    values.waiting_medium = mean_waiting(env, small, big, arrived)
    values.waiting_big = mean_waiting(env, big, n, arrived)
    values.waiting_longest = mean_waiting(env, longest, n, arrived)
    sort(scratch.flowtime, arrived)
    values.median_flowtime = percentile(scratch.flowtime, arrived, 0.5) if arrived > 0 else 0.0
    values.p95_flowtime = percentile(scratch.flowtime, arrived, 0.95) if arrived > 0 else 0.0
    values.max_flowtime = scratch.flowtime[arrived - 1] if arrived > 0 else 0.0


@helper
def keep(env: Episode) -> None:
    """Append the present piece to ``env.pieces``."""
    env.pieces.found[env.pieces.number[0]] = env.scratch.piece[0]
    env.pieces.number[0] += 1


measure = measure_kernel(__name__, Episode, measure_one)
access = accessor(Episode)


@pure_kernel
def cut(table: Any, tools: Any) -> None:
    """Write the pieces of one schedule."""
    replay(access(table, tools, 0), keep)


def _schedule(record: ScheduleRecord) -> Schedule:
    """Convert a record to the arrays that kernels take, with its rows in order of their starts."""
    check_rows(record, 2 if "memory" in record.workload.cluster else 1, outlasting=True)
    order = np.argsort(record.start, kind="stable")
    return Schedule(
        extent=np.array((len(order), int(record.final_time)), dtype=EXTENT),
        job=record.job[order].astype(np.int32),
        server=record.server[order].astype(np.int32),
        start=record.start[order].astype(np.int64),
        end=record.end[order].astype(np.int64),
        cores=record.amount[order, 0].astype(np.int64),
    )


def _episode(record: ScheduleRecord) -> tuple[Episode, dict[str, int]]:
    """A record as a batch of one :class:`Episode`, and the lengths of its dimensions."""
    jobs, schedule = tables(record.workload), _schedule(record)
    sizes = sizes_of(jobs) | sizes_of(schedule) | {"most_tasks": int(jobs.tasks.max())}
    most = 2 * sizes["run"] + 4 * sizes["job"] + 2 * int(jobs.tasks.sum())
    episode = Episode(
        objective=Objective(np.array((2.0, 0.0), dtype=OBJECTIVE)),
        jobs=batch_of_one(jobs),
        schedule=batch_of_one(schedule),
        metrics=allocate(Metrics, {}, 1),
        pieces=allocate(Pieces, {"piece": most}, 1),
        scratch=MADE_HERE,
    )
    return episode, sizes


def pieces(record: ScheduleRecord) -> tuple[npt.NDArray[Any], Integers]:
    """Return the pieces (PIECE) of a schedule, by job, then time; and completions [N] (-1: unfinished)."""
    episode, sizes = _episode(record)
    tools = make_tools(Episode, sizes)
    cut(pack(episode), pack(tools, scratch=True))
    made = episode.pieces
    return made.found[0, : made.number[0, 0]], tools.scratch.completion


def metrics(record: ScheduleRecord) -> dict[str, float]:
    """Return all metrics of a schedule by name, except those that only the environment knows."""
    episode, sizes = _episode(record)
    measure(*tabled(episode, sizes), np.ones(1, dtype=bool))
    found = episode.metrics.values
    return {metric.name: float(found[metric.name][0]) for metric in METRICS if metric.recorded}


def fates(record: ScheduleRecord) -> dict[str, list[Any]]:
    """Return the outcome of each job, in the order of the input.

    The keys are completion and flowtime [slots], None for a job that did not finish; preemptions and
    migrations.
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

    Cores are whole. A job gets none before it arrives, and in no slot more than its demand and its remaining
    work let it use (with declared demands: than any mode of mis-estimation allows). No server exceeds its
    cores, nor in 2D its memory; each server that hosts a share of a job reserves all memory that the job
    declares. Rows are sorted by start, job and server, each as long as it can be. All work is done unless
    the episode was truncated.

    Raises:
        InvalidSchedule: naming the row, or the job or server at fault and the slot.
    """
    workload = record.workload
    jobs, cluster = workload.jobs, workload.cluster
    resources = 2 if "memory" in cluster else 1
    check_rows(record, resources)
    rows, number = len(record.job), len(jobs["arrival"])
    refuse_first(
        "row [{}]",
        (
            (record.start >= record.end, "has no slot"),
            (np.floor(record.start) != record.start, "does not start with a slot"),
            (np.floor(record.end) != record.end, "does not end with a slot"),
        ),
    )
    job, server = record.job.astype(np.int64), record.server.astype(np.int64)
    start, end = record.start.astype(np.int64), record.end.astype(np.int64)
    cores = record.amount[:, 0]
    amount = np.minimum(cores, 2.0**53).astype(np.int64)
    unordered = np.lexsort((server, job, start)) != np.arange(rows)
    needs = np.asarray(jobs.get("declared_memory", jobs.get("memory", np.zeros(number))))[job]
    # rows of one job on one server follow each other, and go on where the cores do not change
    order = np.lexsort((start, server, job))
    a, b = order[:-1], order[1:]
    same = (job[a] == job[b]) & (server[a] == server[b])
    doubled, cut = np.zeros((2, rows), dtype=bool)
    doubled[b] = same & (start[b] < end[a])
    cut[b] = same & (start[b] == end[a]) & (amount[a] == amount[b])
    refuse_first(
        "job [{}] in slot {} on server [{}]:",
        (
            (~((cores >= 1) & (cores == np.floor(cores))), "its cores must be a whole number >= 1"),
            (start < np.asarray(jobs["arrival"])[job], "runs before it arrives"),
            (unordered, "rows must be sorted by start, job and server"),
            (doubled, "has two rows for it"),
            (cut, "its row must go on: same cores"),
            ((record.amount[:, 1:] != needs[:, None]).any(axis=1), "does not reserve all its memory"),
        ),
        *(job, start + 1, server),
    )
    _check_capacity(server, start, end, amount, np.asarray(cluster["cpu"]), "cores")
    if resources == 2:
        _check_capacity(server, start, end, needs, np.asarray(cluster["memory"]), "GB of memory")
    finish = _check_work(workload, *_totals(job, start, end, amount, number))
    if record.final_time != np.floor(record.final_time):
        raise InvalidSchedule(f"final_time: must be a slot, got {record.final_time}")
    if record.truncated:
        return
    if (finish < 0).any():
        raise InvalidSchedule(f"job [{int(np.argmax(finish < 0))}]: is not finished at the end")
    check_end(record, finish.max(), "the last job ends")


def _check_capacity(
    server: Integers, start: Integers, end: Integers, amount: Integers, capacity: Integers, unit: str
) -> None:
    over = first_overload(server, start, end, amount, capacity)
    if over is not None:
        i, t, held = over
        raise InvalidSchedule(f"server [{i}] in slot {int(t) + 1}: {held} of {int(capacity[i])} {unit}")


def _totals(
    job: Integers, start: Integers, end: Integers, amount: Integers, number: int
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return the runs of slots in which a job's total of cores is constant, by job, then time.

    Returns:
        The start, slots and cores of each run; the index of each job's first run, and at the end the number
        of runs [number + 1].
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


def _check_work(
    workload: Workload, start: Integers, length: Integers, total: Integers, first: Integers
) -> Integers:
    """Check that no job has more cores than it can use; return the slot in which each ends, or -1."""
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
    left = volume[job] - (done - rate)  # when its last slot begins; no less in the slots before
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


def _most(left: Integers, demand: Integers, declared: Integers) -> Integers:
    """Return the most cores a plain job may get with ``left`` core-slots to go; ``declared`` is 0 if true."""
    by_mode = np.minimum(declared, -(-np.minimum(left, demand) * declared // demand))  # "waste"
    return np.maximum(np.minimum(demand, left), by_mode)


def _check_phases(
    j: int, shape: list[tuple[int, int, int]], start: Integers, length: Integers, total: Integers
) -> int:
    """Do the same for a job of two phases (tasks, processing, cpu); return the slot of its end, or -1."""
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
