"""Curves of a FlowtimePacking schedule over time, and values by size of jobs, as in the paper's figures.

A curve has one value per slot 1, 2, ..., final; slot t is at index t - 1. Jobs have arrived in slot t if
a < t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Floats, Integers
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.problems.flowtime.metrics import pieces
from schedgym.problems.flowtime.workload import tables


class Sizes(NamedTuple):
    """A value over jobs of the same size (processing time; MapReduce: p^m + p^r), by increasing size."""

    size: Integers  # [slots]
    jobs: Integers
    least: Floats
    mean: Floats
    greatest: Floats


def regret_curve(record: ScheduleRecord, norm: float = 2.0) -> Floats:
    """Return Eq. 23 up to each slot: the fractional flowtime (Eq. 5) so far, as y* = 0 in Eq. 25.

    Its last value is the sum of fractional flowtimes of a schedule that finishes all jobs [slots^k].
    """
    own = tables(record.workload)
    found, _ = pieces(record)
    found = found[found["used"] > 0]
    curve = np.zeros(int(record.final_time))
    powers = np.arange(len(curve) + 1.0) ** norm  # of the ages
    job, phase = found["job"], found["phase"]
    p = own.processing[job, phase].astype(np.float64)
    rate = found["used"] / own.cpu[job, phase]
    whole = own.processing.sum(axis=1)[job].astype(np.float64) ** norm
    tasks = own.tasks[job, phase]
    for x, (a, start, end) in enumerate(zip(own.arrival[job], found["start"], found["end"], strict=True)):
        ages = powers[start + 1 - a : end + 1 - a]
        if own.kind == "mapreduce":  # the weight of problem P5
            weight = (2.0 * ages + whole[x]) / (2.0 * tasks[x] * p[x])
        else:
            weight = ages / p[x] + p[x] ** (norm - 1.0)
        curve[start:end] += weight * rate[x]
    return np.cumsum(curve)


def used_curve(record: ScheduleRecord) -> Integers:
    """Return the work done in each slot [core-slots]."""
    found, _ = pieces(record)
    change = np.zeros(int(record.final_time) + 1, dtype=np.int64)
    np.add.at(change, found["start"], found["used"])
    np.subtract.at(change, found["end"], found["used"])
    return np.cumsum(change[:-1])


def offered_curve(record: ScheduleRecord) -> Integers:
    """Return the work [core-slots] of all jobs that have arrived in slot t (Fig. 3)."""
    own = tables(record.workload)
    offered = np.zeros(int(record.final_time), dtype=np.int64)
    seen = own.arrival < len(offered)
    volume = (own.tasks * own.processing * own.cpu).sum(axis=1)
    np.add.at(offered, own.arrival[seen], volume[seen])
    return np.cumsum(offered)


def unfinished_curve(record: ScheduleRecord) -> Integers:
    """Return the work [core-slots] left of arrived jobs at the end of each slot (Figs. 3, 9)."""
    return offered_curve(record) - np.cumsum(used_curve(record))


def flowtime_curve(record: ScheduleRecord, norm: float = 2.0) -> Floats:
    """Return the l_k norm of flowtimes so far [slots], unfinished jobs with their ages (Figs. 2, 5, 8)."""
    own = tables(record.workload)
    _, completion = pieces(record)
    curve = np.zeros(int(record.final_time))
    gained = np.diff(np.arange(len(curve) + 1.0) ** norm)
    ends = np.where(completion < 0, len(curve), completion)
    for a, end in zip(own.arrival.tolist(), ends.tolist(), strict=True):
        curve[a:end] += gained[: max(end - a, 0)]
    return np.cumsum(curve) ** (1.0 / norm)


def service_gaps(record: ScheduleRecord) -> Integers:
    """Return each job's longest time without a core until completion or end [slots] (Corollary 1)."""
    found, _ = pieces(record)
    job, idle = found["job"], found["granted"] == 0
    # pieces of one gap: each a slot without cores after another one of the same job
    begin = idle.copy()
    begin[1:] &= ~(idle[:-1] & (job[1:] == job[:-1]))
    gaps = np.bincount(np.cumsum(begin)[idle], (found["end"] - found["start"])[idle]).astype(np.int64)[1:]
    longest = np.zeros(len(record.workload.jobs["arrival"]), dtype=np.int64)
    np.maximum.at(longest, job[begin], gaps)
    return longest


def waiting(record: ScheduleRecord) -> Floats:
    """Return flowtime minus processing time of each job [slots]; NaN for one that arrives after the end.

    Unfinished jobs count until the end, so their values may be negative.
    """
    own = tables(record.workload)
    _, completion = pieces(record)
    done = np.where(completion < 0, int(record.final_time), completion)
    result = (done - own.arrival - own.processing.sum(axis=1)).astype(np.float64)
    result[own.arrival >= record.final_time] = np.nan
    return result


def by_size(workload: Workload, values: npt.ArrayLike) -> Sizes:
    """Group a value of each job [N], e.g. its flowtime, by size; NaN is left out (Figs. 6, 7)."""
    array = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(array)
    array = array[known]
    sizes, index = np.unique(tables(workload).processing.sum(axis=1)[known], return_inverse=True)
    jobs = np.bincount(index, minlength=len(sizes))
    least, greatest = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
    np.minimum.at(least, index, array)
    np.maximum.at(greatest, index, array)
    mean = np.bincount(index, array, minlength=len(sizes)) / jobs
    return Sizes(sizes, jobs, least, mean, greatest)
