"""The stretch of a log whose schedules are shown: that in which jobs do worst."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from schedgym.advice.logs import Part, Run
from schedgym.core.arrays import Flags
from schedgym.core.record import ScheduleRecord
from schedgym.traces.feed import WAIT, Outcome

MOST = 1_500  # pieces of work that begin in a stretch: a picture of some 500 kB
SHOWN = 0.75  # of a window's jobs that have ended when the stretch ends


@dataclasses.dataclass(frozen=True, eq=False)
class Stretch:
    """A stretch of a log under some policies.

    Attributes:
        span: first and last instant, on the clock of the records, in the unit of time of the problem.
        records: policy -> schedule of the part of the log that the stretch is in.
        text: one sentence that says which stretch it is.
    """

    span: tuple[float, float]
    records: Mapping[str, ScheduleRecord]
    text: str


def find_stretch(
    run: Run, parts: Sequence[Part], policies: Sequence[str], reference: str, outcome: Outcome = WAIT
) -> Stretch:
    """The stretch from the window with the worst mean under the reference, or the first such window.

    It ends when three quarters of the window's jobs have ended under all policies, or earlier, when MOST
    pieces of work have begun in it under one of them.

    Args:
        run: outcomes and records of a log's parts.
        parts: of the log.
        policies: those of which schedules are shown, in this order.
        reference: the policy that differences refer to.
        outcome: the outcome of which ``run`` has means.
    """
    window = run.windows[int(np.argmax(outcome.sign * run.means(reference)))]
    firsts = np.cumsum([0, *(part.jobs for part in parts)])
    number = int(np.searchsorted(firsts, window.start, side="right")) - 1
    part = parts[number]
    shift = part.others - int(firsts[number])
    jobs = slice(window.start + shift, window.stop + shift)
    records = {policy: run.records[policy][number] for policy in policies}
    arrival = next(iter(records.values())).workload.jobs["arrival"]
    begin, last = float(arrival[jobs.start]), float(arrival[jobs.stop - 1])
    begin = min(begin, *(own.start[_of(own, jobs)].min(initial=begin) for own in records.values()))
    until = max(last, begin + 1.0, *(_ended(record, jobs) for record in records.values()))
    until = min(until, *(_begun(record, begin) for record in records.values()))
    text = f"jobs {jobs.start:,} to {jobs.stop - 1:,}, counted from 0"
    if len(run.windows) > 1:
        worst = "longest" if outcome.timed else "least"
        text += f", the window with the {worst} mean {outcome.name} under {reference}"
    if len(parts) > 1 or part.carried:
        text += "; numbers and clock are those of a part of the log that was sampled"
    return Stretch((begin, until), records, text)


def _ended(record: ScheduleRecord, jobs: slice) -> float:
    """The time at which three quarters of some jobs have ended."""
    ends = np.full(jobs.stop - jobs.start, -np.inf)
    own = _of(record, jobs)
    np.maximum.at(ends, record.job[own] - jobs.start, record.end[own])
    ends = ends[np.isfinite(ends)]
    return float(np.quantile(ends, SHOWN)) if len(ends) else 0.0


def _of(record: ScheduleRecord, jobs: slice) -> Flags:
    """True for the pieces of work of some jobs, [rows]."""
    return (record.job >= jobs.start) & (record.job < jobs.stop)


def _begun(record: ScheduleRecord, begin: float) -> float:
    """The time at which MOST pieces of work have begun after an instant; infinite if there are fewer."""
    later = np.sort(record.start[record.start > begin])
    return float(later[MOST - 1]) if len(later) >= MOST else np.inf
