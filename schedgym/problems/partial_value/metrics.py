"""Metrics of a PartialValue schedule, and an independent validator of whole schedules.

A row of a record is a slot in which a job is served: job, server 0, start = slot - 1, end = slot, and the
amount, in tasks. Shares of time are shares of all slots 1..T, T the last deadline, also where the episode
ends before because nothing is left to do.
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
from schedgym.problems.partial_value.problem import METRICS, UTILITIES

__all__ = [
    "FULL",
    "TOLERANCE",
    "fates",
    "last_slot",
    "measure",
    "metrics",
    "tally",
    "validate",
    "values",
]

B1 = npt.NDArray[np.bool_]
F8 = npt.NDArray[np.float64]
I8 = npt.NDArray[np.int64]

NAMES = tuple(metric.name for metric in METRICS if metric.recorded)
LINEAR, POWER, LOG = range(len(UTILITIES))
TOLERANCE = 1e-9  # a load of 1 + TOLERANCE fits; a job with y >= Y - TOLERANCE is complete
FULL = 1.0 - 1e-6  # a resource with this load is full
ROUNDING = 1e-12  # loads may be summed in another order than here


@helper
def worth(kind: int, value: float, exponent: float, served: float) -> float:
    """f(y) of a job of utility ``kind``."""
    if kind == LINEAR:
        return value * served
    if kind == LOG:
        return value * math.log1p(served)
    if exponent == 0.5:
        return value * math.sqrt(served)
    return value * served**exponent


@kernel
def measure(
    mask: B1,
    jobs: I8,
    served: F8,
    tasks: F8,
    utility: I8,
    value: F8,
    exponent: F8,
    load: F8,
    full: I8,
    slots: I8,
    horizon: I8,
    out: F8,
) -> None:
    """Metrics of schedules.

    Args:
        mask: which environments to measure [B].
        jobs: number of jobs [B].
        served: y at the end [B, >= N].
        tasks: Y [B, >= N].
        utility: kind, index in UTILITIES [B, >= N].
        value: v [B, >= N].
        exponent: alpha, any number where the utility has none [B, >= N].
        load: of each resource, summed over the slots [B, m].
        full: slots in which a resource was full [B].
        slots: slots that were run [B].
        horizon: T [B].
        out: written [B, >= len(NAMES)]: the descriptor's metrics, but for the last one.
    """
    resources = load.shape[1]
    for b in range(mask.shape[0]):
        if not mask[b]:
            continue
        n = jobs[b]
        total = 0.0
        most = 0.0
        share = 0.0
        completed = 0
        never = 0
        for j in range(n):
            y = served[b, j]
            total += worth(utility[b, j], value[b, j], exponent[b, j], y)
            most += worth(utility[b, j], value[b, j], exponent[b, j], tasks[b, j])
            share += y / tasks[b, j]
            if y >= tasks[b, j] - TOLERANCE:
                completed += 1
            if y <= TOLERANCE:
                never += 1
        used = 0.0
        peak = 0.0
        for i in range(resources):
            used += load[b, i]
            peak = max(peak, load[b, i])
        row = out[b]
        row[0] = total
        row[1] = total / most
        row[2] = share / n
        row[3] = completed
        row[4] = n - completed
        row[5] = never
        row[6] = used / (resources * horizon[b])
        row[7] = peak / horizon[b]
        row[8] = full[b] / horizon[b]
        row[9] = slots[b]


@kernel
def tally(job: I8, slot: I8, amount: F8, share: F8, served: F8, load: F8) -> int:
    """Sum up rows that are sorted by slot; returns in how many slots a resource is full.

    Args:
        job: [rows].
        slot: [rows].
        amount: tasks [rows].
        share: what a task of each job takes of each resource [N, m].
        served: written: tasks of each job [N].
        load: written: of each resource, summed over the slots [m].
    """
    resources = share.shape[1]
    now = np.zeros(resources)
    served[:] = 0.0
    load[:] = 0.0
    full = 0
    for r in range(len(job)):
        j = job[r]
        served[j] += amount[r]
        for i in range(resources):
            now[i] += share[j, i] * amount[r]
        if r + 1 == len(job) or slot[r + 1] != slot[r]:
            filled = False
            for i in range(resources):
                filled = filled or now[i] >= FULL
                load[i] += now[i]
                now[i] = 0.0
            if filled:
                full += 1
    return full


def last_slot(workload: Workload) -> int:
    """T, the last slot that is in time for a job."""
    return int(np.floor(workload.jobs["deadline"]).max())


def _shares(workload: Workload) -> F8:
    """What a task of each job takes of each resource [N, m]."""
    return np.array(workload.jobs["demand"] / workload.cluster["capacity"], dtype=np.float64, order="C")


def _exponents(workload: Workload) -> F8:
    """Alpha of each job, 0.5 where none is given [N]."""
    exponent = workload.jobs.get("exponent")
    return np.full(len(workload.jobs["tasks"]), 0.5) if exponent is None else np.array(exponent, dtype=float)


def _tallied(record: ScheduleRecord) -> tuple[F8, F8, int]:
    """Tasks served of each job [N], summed load of each resource [m], slots with a full one."""
    share = _shares(record.workload)
    order = np.argsort(record.end, kind="stable")
    served, load = np.empty(len(share)), np.empty(share.shape[1])
    # copies, since kernels are compiled anew for read-only arrays
    full = tally(
        record.job[order].astype(np.int64),
        record.end[order].astype(np.int64),
        np.ascontiguousarray(record.amount[order, 0]),
        share,
        served,
        load,
    )
    return served, load, full


def metrics(record: ScheduleRecord) -> dict[str, float]:
    """All metrics of a schedule by name, but for those that only the environment knows."""
    workload = record.workload
    jobs = workload.jobs
    served, load, full = _tallied(record)
    out = np.zeros((1, len(NAMES)))
    measure(
        np.ones(1, dtype=bool),
        np.array([len(served)]),
        served[None],
        np.array(jobs["tasks"], dtype=float)[None],
        np.array(jobs["utility"], dtype=np.int64)[None],
        np.array(jobs["value"], dtype=float)[None],
        _exponents(workload)[None],
        load[None],
        np.array([full]),
        np.array([int(record.final_time)]),
        np.array([last_slot(workload)]),
        out,
    )
    return dict(zip(NAMES, out[0].tolist(), strict=True))


def values(utility: I8, value: F8, exponent: F8, served: F8) -> F8:
    """f(y) of each job [N]; the arguments are as in :func:`measure`, of one environment."""
    found: F8 = value * np.choose(utility, (served, served**exponent, np.log1p(served)))
    return found


def fates(record: ScheduleRecord) -> dict[str, list[Any]]:
    """What became of each job, in the order of the input: tasks served, and their value."""
    jobs = record.workload.jobs
    served = np.zeros(len(jobs["tasks"]))
    np.add.at(served, record.job, record.amount[:, 0])
    value = values(jobs["utility"], jobs["value"], _exponents(record.workload), served)
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
    rows, number = len(record.job), len(jobs["arrival"])
    for name in ("job", "server", "start", "end"):
        if getattr(record, name).shape != (rows,):
            raise InvalidSchedule(f"{name}: must have one value per row")
    if record.amount.shape != (rows, 1):
        raise InvalidSchedule(f"amount: must have the shape [{rows}, 1], got {list(record.amount.shape)}")
    job, amount = record.job, record.amount[:, 0]
    for bad, what in (
        ((job < 0) | (job >= number), "names a job that does not exist"),
        (record.server != 0, "names a server that does not exist"),
        (~(np.isfinite(record.start) & np.isfinite(record.end)), "has no start or end"),
        (np.floor(record.start) != record.start, "does not start with a slot"),
        (record.end != record.start + 1.0, "is not one slot"),
        (record.start < 0.0, "is before the first slot"),
        (~(record.end <= record.final_time), "is after the end of the episode"),
    ):
        if bad.any():
            raise InvalidSchedule(f"row [{int(np.argmax(bad))}] {what}")
    slot = record.end.astype(np.int64)

    def refuse(bad: B1, what: str) -> None:
        if bad.any():
            r = int(np.argmax(bad))
            raise InvalidSchedule(f"job [{job[r]}] in slot {slot[r]}: {what}")

    a, b = slice(None, -1), slice(1, None)
    later = np.ones(rows, dtype=bool)
    later[b] = (slot[a] < slot[b]) | ((slot[a] == slot[b]) & (job[a] < job[b]))
    refuse(~later, "rows must be sorted by slot and job, one for each")
    refuse(~(np.isfinite(amount) & (amount > 0.0)), "its tasks must be a number > 0")
    if whole:
        refuse(amount != np.floor(amount), "its tasks must be a whole number")
    refuse(slot < jobs["arrival"][job], "is served before it arrives")
    refuse(slot > jobs["deadline"][job], "is served after its deadline")
    most, parallel = jobs["tasks"], jobs["parallelism"]
    refuse(amount > parallel[job] * (1.0 + TOLERANCE), "gets more tasks than it can run in a slot")
    served = np.zeros(number)
    before = np.empty(rows)
    by_job = np.argsort(job, kind="stable")
    first = np.searchsorted(job[by_job], np.arange(number + 1))
    for j in range(number):
        own = by_job[first[j] : first[j + 1]]
        sums = np.concatenate([[0.0], np.cumsum(amount[own])])
        before[own] = sums[:-1]
        served[j] = sums[-1]
    refuse(before >= most[job] - TOLERANCE, "is served although it is complete")
    refuse(before + amount > most[job] * (1.0 + TOLERANCE), "gets more tasks than it has")
    _check_loads(record, slot)
    _check_end(record, served)


def _check_loads(record: ScheduleRecord, slot: I8) -> None:
    """No resource is overloaded in a slot."""
    share = _shares(record.workload)
    slots, place = np.unique(slot, return_inverse=True)
    for i in range(share.shape[1]):
        load = np.bincount(place, weights=share[record.job, i] * record.amount[:, 0], minlength=len(slots))
        over = ~(load <= 1.0 + TOLERANCE + ROUNDING)
        if over.any():
            t = int(np.argmax(over))
            raise InvalidSchedule(f"resource [{i}] in slot {slots[t]}: its load is {load[t]:.12g}")


def _check_end(record: ScheduleRecord, served: F8) -> None:
    """The episode ends when it must."""
    jobs, final = record.workload.jobs, record.final_time
    if not (np.isfinite(final) and final == np.floor(final) and final >= 0.0):
        raise InvalidSchedule(f"final_time: must be a slot, got {final}")
    end = last_slot(record.workload)
    done = served >= jobs["tasks"] - TOLERANCE
    # the last slot of service is the first after which a complete job is no longer active
    gone = np.floor(jobs["deadline"])
    np.minimum(gone, _completion(record, done), out=gone)
    # slot t is run unless all have arrived, arrival <= t, and are gone, gone < t
    end = min(end, max(int(np.ceil(jobs["arrival"]).max()) - 1, int(gone.max())))
    if final > end or (final < end and not record.truncated):
        raise InvalidSchedule(f"final_time: must be {end}, got {final:g}")


def _completion(record: ScheduleRecord, done: B1) -> F8:
    """The last slot in which each job is served, infinite if it is not done [N]."""
    last = np.full(len(done), np.inf)
    last[record.job] = record.end  # in order of time: the last one stays
    last[~done] = np.inf
    return last
