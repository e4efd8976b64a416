"""Metrics of a Geo schedule, and an independent validator of whole schedules.

The deviation at an instant is the population standard deviation, over the active jobs (arrived, not
completed), of the slots that they occupy. Time counts while a job is active, to the end or ("no drain") to
the last arrival. The span is the time from the first to the last arrival.

Tasks that never ran are charged as if run one after another, in order of their jobs, from the instant at
which nothing could happen any more; they occupy no slot. That costs what a feasible schedule would.
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
from schedgym.problems.geo.problem import METRICS

__all__ = ["fates", "measure", "metrics", "validate"]

F8 = npt.NDArray[np.float64]
I8 = npt.NDArray[np.int64]

NAMES = tuple(metric.name for metric in METRICS if metric.recorded)
TIE = 1e-12  # share of all time by which sums of lengths may differ through rounding


@helper
def sort_pairs(bits: I8, tag: I8, spare_bits: I8, spare_tag: I8, count: int, tally: I8) -> None:
    """Sort ``count`` pairs by the bits of floats >= 0, in place and stable (by bytes: no branch to guess).

    Args:
        bits: float64 numbers >= 0, viewed as int64: the order is the same.
        tag: moved along.
        spare_bits: work space.
        spare_tag: work space.
        count: how many of the pairs.
        tally: work space [8, 256].
    """
    for byte in range(8):
        for value in range(256):
            tally[byte, value] = 0
    for i in range(count):
        word = bits[i]
        for byte in range(8):
            tally[byte, (word >> (8 * byte)) & 255] += 1
    from_bits, from_tag, to_bits, to_tag = bits, tag, spare_bits, spare_tag
    moved = False
    for byte in range(8):
        if count == 0 or tally[byte, (bits[0] >> (8 * byte)) & 255] == count:
            continue  # all have this byte
        before = 0
        for value in range(256):
            here = tally[byte, value]
            tally[byte, value] = before
            before += here
        for i in range(count):
            word = from_bits[i]
            value = (word >> (8 * byte)) & 255
            j = tally[byte, value]
            tally[byte, value] = j + 1
            to_bits[j] = word
            to_tag[j] = from_tag[i]
        from_bits, from_tag, to_bits, to_tag = to_bits, to_tag, from_bits, from_tag
        moved = not moved
    if moved:
        for i in range(count):
            bits[i] = spare_bits[i]
            tag[i] = spare_tag[i]


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
def weighted_percentiles(
    value: F8, piece: I8, length: F8, count: int, pieces: int, zero: float, total: float, out: F8
) -> None:
    """The least deviation with at least 50, 90, 95, 99% of the time at or below it.

    Args:
        value: ascending deviations [count].
        piece: the piece of time that each belongs to [count].
        length: of a piece [s].
        count: number of deviations.
        pieces: only pieces before this one count.
        zero: time without a deviation [s], in no piece.
        total: all time [s].
        out: written [4]; 0 without time.
    """
    reached = zero
    now = 0.0
    i = 0
    for q in range(4):
        share = 0.5 if q == 0 else 0.9 if q == 1 else 0.95 if q == 2 else 0.99
        need = (share - TIE) * total
        while reached < need and i < count:
            if piece[i] < pieces:
                reached += length[piece[i]]
                now = value[i]
            i += 1
        out[q] = now


@kernel
def measure(
    mask: npt.NDArray[np.bool_],
    jobs: I8,
    arrival: F8,
    task_start: npt.NDArray[np.int32],
    duration: F8,
    slots: I8,
    start: F8,
    out: F8,
) -> None:
    """Metrics of schedules.

    Args:
        mask: which rows to measure [B].
        jobs: number of jobs [B].
        arrival: ascending [s] [B, >= N].
        task_start: the first task of each job, and the number of tasks [B, >= N + 1].
        duration: of the tasks [s] [B, >= T].
        slots: of each site [B, M].
        start: NaN for tasks that never ran [s] [B, >= T].
        out: written [B, len(NAMES)], in the order of the descriptor.
    """
    most_jobs, most_tasks = arrival.shape[1], duration.shape[1]
    begin_bits = np.empty(most_tasks, dtype=np.int64)
    begin = begin_bits.view(np.float64)
    begin_job = np.empty(most_tasks, dtype=np.int64)
    end_bits = np.empty(most_tasks, dtype=np.int64)
    end = end_bits.view(np.float64)
    end_job = np.empty(most_tasks, dtype=np.int64)
    completion = np.empty(most_jobs)
    running = np.empty(most_jobs, dtype=np.int64)
    unfinished = np.empty(most_jobs, dtype=np.int64)
    # a piece of time ends at an arrival, a start or an end
    most_pieces = most_jobs + 2 * most_tasks
    deviation_bits = np.empty(most_pieces, dtype=np.int64)
    deviation = deviation_bits.view(np.float64)
    piece = np.empty(most_pieces, dtype=np.int64)
    length = np.empty(most_pieces)
    spare = np.empty(most_pieces, dtype=np.int64)
    spare_tag = np.empty(most_pieces, dtype=np.int64)
    tally = np.empty((8, 256), dtype=np.int64)
    for b in range(mask.shape[0]):
        if not mask[b]:
            continue
        n = jobs[b]
        first = arrival[b, 0]
        last = arrival[b, n - 1]
        span = last - first
        work = 0.0
        busy = 0.0
        longest = 0.0
        final = last
        count = 0
        for i in range(n):
            completion[i] = arrival[b, i]
            running[i] = 0
            unfinished[i] = task_start[b, i + 1] - task_start[b, i]
            for x in range(task_start[b, i], task_start[b, i + 1]):
                work += duration[b, x]
                longest = max(longest, duration[b, x])
                if not math.isnan(start[b, x]):
                    busy += duration[b, x]
                    begin[count] = start[b, x]
                    begin_job[count] = i
                    end[count] = start[b, x] + duration[b, x]
                    end_job[count] = i
                    completion[i] = max(completion[i], end[count])
                    final = max(final, end[count])
                    count += 1
        sort_pairs(begin_bits, begin_job, spare, spare_tag, count, tally)
        sort_pairs(end_bits, end_job, spare, spare_tag, count, tally)
        active = 0
        occupied = 0  # slots, and the sum of the squares of the jobs' slots
        squares = 0
        arrived = 0
        begun = 0
        ended = 0
        clock = first
        time = 0.0
        integral = 0.0
        jain = 0.0
        zero = 0.0  # time without a deviation
        pieces = 0
        drain_time = -1.0  # as long as jobs arrive
        drain_integral = 0.0
        drain_jain = 0.0
        drain_zero = 0.0
        drain_pieces = 0
        while arrived < n or ended < count:
            now = math.inf
            if arrived < n:
                now = arrival[b, arrived]
            if ended < count:
                now = min(now, end[ended])
            if begun < count:
                now = min(now, begin[begun])
            if active > 0 and now > clock:
                passed = now - clock
                # exact below 2^53, and never negative
                spread = max(float(active) * float(squares) - float(occupied) * float(occupied), 0.0)
                if spread > 0.0:
                    d = math.sqrt(spread) / active
                    deviation[pieces] = d
                    piece[pieces] = pieces
                    length[pieces] = passed
                    pieces += 1
                    integral += d * passed
                    jain += float(occupied) * float(occupied) / (float(active) * float(squares)) * passed
                else:
                    zero += passed
                    jain += passed
                time += passed
            clock = now
            if now >= last and drain_time < 0.0:
                drain_time = time
                drain_integral = integral
                drain_jain = jain
                drain_zero = zero
                drain_pieces = pieces
            while ended < count and end[ended] == now:
                i = end_job[ended]
                ended += 1
                running[i] -= 1
                occupied -= 1
                squares -= 2 * running[i] + 1
                unfinished[i] -= 1
                if unfinished[i] == 0:
                    active -= 1
            while arrived < n and arrival[b, arrived] == now:
                arrived += 1
                active += 1
            while begun < count and begin[begun] == now:
                i = begin_job[begun]
                begun += 1
                squares += 2 * running[i] + 1
                occupied += 1
                running[i] += 1
        if active > 0:  # tasks never ran: they are charged
            for i in range(n):
                for x in range(task_start[b, i], task_start[b, i + 1]):
                    if math.isnan(start[b, x]):
                        final += duration[b, x]
                        completion[i] = final
            time += final - clock
            zero += final - clock
            jain += final - clock
        response = 0.0
        for i in range(n):
            completion[i] -= arrival[b, i]
            response += completion[i]
        ordered = np.sort(completion[:n])
        total_slots = 0
        for j in range(slots.shape[1]):
            total_slots += slots[b, j]
        makespan = final - first
        row = out[b]
        row[0] = response / n
        row[1] = percentile(ordered, n, 0.5)
        row[2] = percentile(ordered, n, 0.9)
        row[3] = percentile(ordered, n, 0.95)
        row[4] = percentile(ordered, n, 0.99)
        row[5] = ordered[n - 1]
        row[6] = makespan
        # a duration may vanish in the rounding of a large clock, and with it the makespan
        row[7] = busy / (total_slots * makespan) if makespan > 0.0 else 0.0
        row[8] = work / (total_slots * span) if span > 0.0 else 0.0
        row[9] = longest / span if span > 0.0 else 0.0
        row[10] = integral / span if span > 0.0 else integral
        row[11] = integral
        row[12] = integral / time if time > 0.0 else 0.0
        row[17] = drain_integral / drain_time if drain_time > 0.0 else 0.0
        sort_pairs(deviation_bits, piece, spare, spare_tag, pieces, tally)
        weighted_percentiles(deviation, piece, length, pieces, pieces, zero, time, row[13:17])
        weighted_percentiles(
            deviation, piece, length, pieces, drain_pieces, drain_zero, drain_time, row[18:22]
        )
        row[22] = jain / time if time > 0.0 else 1.0
        row[23] = drain_jain / drain_time if drain_time > 0.0 else 1.0


class Table(NamedTuple):
    """A workload as the kernel's arrays; its tasks are sorted by (job, site list, order in the workload)."""

    arrival: F8  # [N]
    task_start: npt.NDArray[np.int32]  # [N + 1]
    duration: F8  # [T]
    slots: I8  # [M]
    order: I8  # [T] index of each task in the workload


def table(workload: Workload) -> Table:
    """The workload as the kernel's arrays. Environments sort tasks alike, so that all sums agree."""
    arrival, tasks = workload.jobs["arrival"], workload.tasks
    job, sites = tasks["job"], tasks["sites"]
    order = np.lexsort((*sites.T[::-1], job))
    return Table(
        # copies, since kernels are compiled anew for read-only arrays
        arrival=np.array(arrival, dtype=np.float64),
        task_start=np.searchsorted(job[order], np.arange(len(arrival) + 1)).astype(np.int32),
        duration=tasks["duration"][order],
        slots=np.array(workload.cluster["slots"], dtype=np.int64),
        order=order,
    )


def metrics(record: ScheduleRecord) -> dict[str, float]:
    """All metrics of a schedule by name, but for those that only the environment knows."""
    own = table(record.workload)
    start = np.full(len(own.order), np.nan)
    start[record.job] = record.start
    out = np.zeros((1, len(NAMES)))
    measure(
        np.ones(1, dtype=bool),
        np.array([len(own.arrival)]),
        own.arrival[None],
        own.task_start[None],
        own.duration[None],
        own.slots[None],
        start[own.order][None],
        out,
    )
    return dict(zip(NAMES, out[0].tolist(), strict=True))


def fates(record: ScheduleRecord) -> dict[str, list[Any]]:
    """What became of each job, in the order of the input: completion [s] and response [s].

    Both are None for a job with a task that never ran.
    """
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

    Each task runs at most once, whole, in one slot, not before its job arrives, at a site of its list; all
    run unless the episode was truncated; at every instant at most u_j tasks run at site j.

    Raises:
        InvalidSchedule: naming the first task or site at fault.
    """
    tasks, slots = record.workload.tasks, record.workload.cluster["slots"]
    arrival = record.workload.jobs["arrival"]
    count, sites = len(tasks["job"]), len(slots)
    rows = len(record.job)
    for name in ("server", "start", "end", "amount"):
        if len(getattr(record, name)) != rows:
            raise InvalidSchedule(f"{name}: must have one row per piece")
    if record.amount.shape != (rows, 1):
        raise InvalidSchedule(f"amount: must have the shape [{rows}, 1], got {list(record.amount.shape)}")
    for bad, what in (
        ((record.job < 0) | (record.job >= count), "names a task that does not exist"),
        ((record.server < 0) | (record.server >= sites), "names a site that does not exist"),
    ):
        if bad.any():
            raise InvalidSchedule(f"row [{int(np.argmax(bad))}] {what}")
    runs = np.bincount(record.job, minlength=count)
    if (runs > 1).any():
        raise InvalidSchedule(f"task [{int(np.argmax(runs > 1))}] runs more than once")
    if not record.truncated and (runs == 0).any():
        raise InvalidSchedule(f"task [{int(np.argmax(runs == 0))}] never runs")
    for bad, what in (
        (~np.isfinite(record.start), "has no start"),
        (record.start < arrival[tasks["job"][record.job]], "starts before its job arrives"),
        (record.end != record.start + tasks["duration"][record.job], "does not run its whole time"),
        (record.amount[:, 0] != 1.0, "does not hold one slot"),
        (
            (tasks["sites"][record.job] != record.server[:, None]).all(axis=1),
            "runs at a site that is not in its list",
        ),
    ):
        if bad.any():
            raise InvalidSchedule(f"task [{int(record.job[bad].min())}] {what}")
    # per site in order of time, ends before starts; each site's changes sum to 0, so one sum serves all
    site = np.concatenate([record.server, record.server])
    time = np.concatenate([record.end, record.start])
    order = np.lexsort((time, site))
    change = np.repeat(np.array([-1, 1]), rows)
    used = np.cumsum(change[order])
    over = used > slots[site[order]]
    if over.any():
        at = int(np.argmax(over))
        j = int(site[order][at])
        raise InvalidSchedule(
            f"site [{j}] is over its capacity at {time[order][at]:g} s: {int(used[at])} tasks run in "
            f"{int(slots[j])} slots"
        )
