"""Metrics of a PartialValue schedule, and an independent validator of whole schedules.

A row of a record is a slot in which a job is served: job, server 0, start = slot - 1, end = slot, and the
amount, in tasks. Shares of time are shares of all slots 1..T, where T is the last deadline, also if the
episode ends earlier because nothing is left to do.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import Floats, Integers, allocate
from schedgym.core.jit import helper, record_dtype
from schedgym.core.kernels import measure_kernel
from schedgym.core.record import ScheduleRecord, check_rows, refuse_first
from schedgym.core.tables import batch_of_one, tabled
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.problems.partial_value.problem import METRICS
from schedgym.problems.partial_value.rules import TOLERANCE
from schedgym.problems.partial_value.workload import Jobs, horizon, tables
from schedgym.solvers.dual_prices import LINEAR, LOG

FULL = 1.0 - 1e-6  # a resource with this load is full
ROUNDING = 1e-12  # loads may be summed in another order than here

METRIC_VALUES = record_dtype(*((metric.name, np.float64) for metric in METRICS))
#: counts of the slots so far
TOTALS = record_dtype(
    ("slots", np.int64),  # slots that were run
    ("full", np.int64),  # those of them in which a resource was full
)


class Schedule(NamedTuple):
    """The outcome of the decisions: counts of slots, tasks served, and loads."""

    totals: Annotated[Any, TOTALS]
    served: Annotated[Floats, "job"]  # y, tasks
    load: Annotated[Floats, "resource"]  # summed over the slots


class Metrics(NamedTuple):
    """The metrics of a finished episode, by name."""

    values: Annotated[Any, METRIC_VALUES]


class Episode(NamedTuple):
    """The arrays of :func:`measure_one`: workload, schedule and metrics."""

    jobs: Jobs
    schedule: Schedule
    metrics: Metrics


@helper
def worth(kind: int, value: float, exponent: float, served: float) -> float:
    """Return f(y) of a job of utility ``kind``."""
    if kind == LINEAR:
        return value * served
    if kind == LOG:
        return value * math.log1p(served)
    if exponent == 0.5:
        return value * math.sqrt(served)
    return value * served**exponent


@helper
def measure_one(episode: Episode) -> None:
    """Write the metrics of one schedule."""
    jobs, schedule, values = episode.jobs, episode.schedule, episode.metrics.values
    n, slots = jobs.size.jobs, horizon(jobs)
    total = 0.0
    most = 0.0
    share = 0.0
    completed = 0
    never = 0
    for j in range(n):
        y = schedule.served[j]
        total += worth(jobs.utility[j], jobs.value[j], jobs.exponent[j], y)
        most += worth(jobs.utility[j], jobs.value[j], jobs.exponent[j], jobs.tasks[j])
        share += y / jobs.tasks[j]
        completed += y >= jobs.tasks[j] - TOLERANCE
        never += y <= TOLERANCE
    used = 0.0
    peak = 0.0
    resources = schedule.load.shape[0]
    for i in range(resources):
        used += schedule.load[i]
        peak = max(peak, schedule.load[i])
    values.value = total
    values.value_share = total / most
    values.mean_served = share / n
    values.completed = completed
    values.expired = n - completed
    values.never_served = never
    values.utilization = used / (resources * slots)
    values.peak_utilization = peak / slots
    values.full_slots = schedule.totals.full / slots
    values.slots = schedule.totals.slots


measure = measure_kernel(__name__, Episode, measure_one)


def last_slot(workload: Workload) -> int:
    """Return T, the last slot that is within the deadline of some job."""
    return int(np.floor(workload.jobs["deadline"]).max())


def _served(record: ScheduleRecord) -> Floats:
    """Return the tasks served of each job [N]; InvalidSchedule if one, or a server, does not exist."""
    check_rows(record, 1, outlasting=True)
    served = np.zeros(len(record.workload.jobs["tasks"]))
    np.add.at(served, record.job, record.amount[:, 0])
    return served


def _loads(record: ScheduleRecord) -> tuple[Floats, Floats]:
    """Return the slots in which something is served [slots], and each resource's load then [slots, m]."""
    share = record.workload.jobs["demand"] / record.workload.cluster["capacity"]
    slots, place = np.unique(record.end, return_inverse=True)
    load = np.zeros((len(slots), share.shape[1]))
    np.add.at(load, place, share[record.job] * record.amount)
    return slots, load


def metrics(record: ScheduleRecord) -> dict[str, float]:
    """Return all metrics of a schedule by name, except those that only the environment knows."""
    served, (_, load) = _served(record), _loads(record)
    total = np.zeros(load.shape[1])
    for in_slot in load:  # one after another, as in an episode, so that the sums are the same to the last bit
        total += in_slot
    full = int((load >= FULL).any(axis=1).sum())
    schedule = Schedule(np.array((record.final_time, full), dtype=TOTALS), served, total)
    found = allocate(Metrics, {}, 1)
    episode = Episode(batch_of_one(tables(record.workload)), batch_of_one(schedule), found)
    measure(*tabled(episode, {}), np.ones(1, dtype=bool))
    return {metric.name: float(found.values[metric.name][0]) for metric in METRICS if metric.recorded}


def values(utility: Integers, value: Floats, exponent: Floats, served: Floats) -> Floats:
    """Return f(y) of each job; all [N], see :class:`~schedgym.problems.partial_value.workload.Jobs`."""
    found: Floats = value * np.choose(utility, (served, served**exponent, np.log1p(served)))
    return found


def fates(record: ScheduleRecord) -> dict[str, list[Any]]:
    """Return the outcome of each job, in the order of the input: tasks served, and their value."""
    jobs, served = tables(record.workload), _served(record)
    value = values(jobs.utility, jobs.value, jobs.exponent, served)
    return {"served": served.tolist(), "value": value.tolist()}


def validate(record: ScheduleRecord, whole: bool = False) -> None:
    """Check a whole schedule against the problem's constraints, independently of the dynamics.

    Jobs are served from their arrival to their deadline, at most X tasks a slot and Y in all; the load of
    no resource exceeds 1 (+ 1e-9); rows are sorted by slot and job, one for each; the episode ends after
    the last deadline, or before the first slot at which all jobs have arrived and none is active.

    Args:
        record: of an episode.
        whole: also demand whole tasks, as the discrete model does (a record does not know its model).

    Raises:
        InvalidSchedule: naming the row, or the job or resource at fault and the slot.
    """
    jobs = record.workload.jobs
    check_rows(record, 1)
    rows, number = len(record.job), len(jobs["arrival"])
    job, amount = record.job, record.amount[:, 0]
    refuse_first(
        "row [{}]",
        (
            (np.floor(record.start) != record.start, "does not start with a slot"),
            (record.end != record.start + 1.0, "is not one slot"),
            (record.start < 0.0, "is before the first slot"),
        ),
    )
    slot = record.end.astype(np.int64)
    a, b = slice(None, -1), slice(1, None)
    unordered = np.zeros(rows, dtype=bool)
    unordered[b] = (slot[b] < slot[a]) | ((slot[b] == slot[a]) & (job[b] <= job[a]))
    most, parallel = jobs["tasks"], jobs["parallelism"]
    served = np.zeros(number)
    before = np.empty(rows)
    for r, (j, tasks) in enumerate(zip(job.tolist(), amount.tolist(), strict=True)):
        before[r] = served[j]
        served[j] += tasks
    refuse_first(
        "job [{}] in slot {}:",
        (
            (unordered, "rows must be sorted by slot and job, one for each"),
            (~(amount > 0.0), "its tasks must be a number > 0"),
            (whole & (amount != np.floor(amount)), "its tasks must be a whole number"),
            (slot < jobs["arrival"][job], "is served before it arrives"),
            (slot > jobs["deadline"][job], "is served after its deadline"),
            (amount > parallel[job] * (1.0 + TOLERANCE), "gets more tasks than it can run in a slot"),
            (before >= most[job] - TOLERANCE, "is served although it is complete"),
            (before + amount > most[job] * (1.0 + TOLERANCE), "gets more tasks than it has"),
        ),
        job,
        slot,
    )
    _check_loads(record)
    _check_end(record, served)


def _check_loads(record: ScheduleRecord) -> None:
    """Check that no resource is overloaded in a slot."""
    slots, load = _loads(record)
    over = ~(load <= 1.0 + TOLERANCE + ROUNDING)
    if over.any():
        i, t = (int(k) for k in np.argwhere(over.T)[0])
        raise InvalidSchedule(f"resource [{i}] in slot {slots[t]:.0f}: its load is {load[t, i]:.12g}")


def _check_end(record: ScheduleRecord, served: Floats) -> None:
    """Check that the episode ends when it must."""
    jobs, final = record.workload.jobs, record.final_time
    if not (final == np.floor(final) and final >= 0.0):
        raise InvalidSchedule(f"final_time: must be a slot, got {final}")
    end = last_slot(record.workload)
    last = np.full(len(served), np.inf)  # a complete job is no longer active after its last slot of service
    last[record.job] = record.end  # in order of time: the last one stays
    done = served >= jobs["tasks"] - TOLERANCE
    gone = np.minimum(np.floor(jobs["deadline"]), np.where(done, last, np.inf))
    # slot t is run unless all have arrived, arrival <= t, and are gone, gone < t
    end = min(end, max(int(np.ceil(jobs["arrival"]).max()) - 1, int(gone.max())))
    if final > end or (final < end and not record.truncated):
        raise InvalidSchedule(f"final_time: must be {end}, got {final:g}")
