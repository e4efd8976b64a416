"""The interface by which a problem's module ``log`` turns a log into a workload for :func:`schedgym.advise`.

Such a module has

- ``lacks(trace)``: what the log lacks to feed the problem, "" if nothing; a problem that no log feeds has
  this function only;
- ``feed(trace)``: the log's tasks in the units of the problem, a :class:`Feed`;
- ``workload_of(trace, slot)``: tasks of it (a part of the log) as a workload, from time 0 on;
- ``parameters(trace)``: of the environment, beside those of the id;
- ``outcomes(record)`` and ``alone(workload)``: the outcome of each job of an episode, and what it would be if
  the job had the cluster to itself; [jobs], in slots where the problem has slots;
- ``ID``, ``POLICIES`` and the ``REFERENCE`` among them, ``OUTCOME``; ``REPLAYED``, policies to compare with
  recorded starts; ``KNOWS``, what the pretrained agent must know; ``LEFT_OUT``, what the model leaves out;
  ``POOLED``, whether a job may take more than any one machine has.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from schedgym.core.arrays import Flags, Floats
from schedgym.core.problem import sign_of
from schedgym.traces.base import OPTIONAL, RESOURCES, LeftOut, Trace, round_up

#: the arrays of a trace that have an element per task
ARRAYS = ("arrival", "duration", *RESOURCES, *OPTIONAL)
MOST = 16_000  # tasks that are run
PART = 4_000  # tasks of a part
SLOTS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400)  # [s]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The number that a policy is judged by, of each job.

    Attributes:
        name: e.g. "wait".
        says: a sentence with a place for the mean, e.g. "a job waits {} on average".
        better: "min" or "max".
        timed: True if it is a time [s].
        total: True if the objective of the environment is the sum over the jobs, not their mean.
        idle: sentence for a log in which sharing the cluster costs no job anything.
    """

    name: str
    says: str
    better: str = "min"
    timed: bool = True
    total: bool = False
    idle: str = "Next to nothing waits"

    @property
    def sign(self) -> float:
        """Of an outcome times it, less is better."""
        return sign_of(self.better)


WAIT = Outcome("wait", "a job waits {} on average")


@dataclasses.dataclass(frozen=True, eq=False)
class Feed:
    """A log's tasks and machines in the form that a problem takes.

    Attributes:
        trace: its tasks and machines; sizes may be in the problem's units.
        slot: length of a slot [s]; 1 where the problem has none.
        left_out: tasks that the problem cannot take.
        lines: assumptions, and changes by rounding.
        most: tasks that are run.
        part: tasks of a part, where not all are run.
    """

    trace: Trace
    slot: float = 1.0
    left_out: tuple[LeftOut, ...] = ()
    lines: tuple[str, ...] = ()
    most: int = MOST
    part: int = PART


def select(trace: Trace, chosen: Any, **changes: Any) -> Trace:
    """A trace of some tasks of another; ``chosen`` is an index of its arrays."""
    own = {name: getattr(trace, name)[chosen] for name in ARRAYS if np.size(getattr(trace, name))}
    return dataclasses.replace(trace, **{**own, **changes})


def without(trace: Trace, out: Flags, reason: str, detail: str) -> tuple[Trace, list[LeftOut]]:
    """The trace without some tasks, and the note on them, none without any; ``detail`` is of the first."""
    if not out.any():
        return trace, []
    gone = select(trace, out)
    first = int(gone.line.min(initial=0 if not len(gone.line) else np.inf))
    work, gpu_work = float(gone.work.sum()), float(gone.gpu_work.sum())
    one = LeftOut(reason, gone.kept_rows, first, "", detail, trace.row, len(gone.arrival), work, gpu_work)
    return select(trace, ~out), [one]


def round_slot(trace: Trace, share: float, most: float) -> float:
    """A length of slots [s] for a log: a part of the median duration, but not too many slots in all.

    Args:
        trace: in seconds.
        share: of the median duration.
        most: slots between the first and the last arrival, and of a task.

    Returns:
        the largest length of a usual clock (1 s, 2 s, 5 s, ..., 1 d; below 1 s a tenth of these, and so on)
        that is no longer than the share, or the least one that keeps the number of slots.
    """
    wanted = share * float(np.median(trace.duration))
    least = float(max(trace.arrival[-1] - trace.arrival[0], trace.duration.max())) / most
    scale = 10.0 ** min(0, math.floor(math.log10(max(wanted, least))))
    lengths = [scale * length for length in SLOTS]
    fine = [length for length in lengths if length <= wanted * (1 + 1e-9)]
    slot = fine[-1] if fine else lengths[0]
    if slot < least:
        slot = next(
            (length for length in lengths if length >= least), math.ceil(least / SLOTS[-1]) * SLOTS[-1]
        )
    return float(slot)


def slots_of(trace: Trace, slot: float) -> Floats:
    """Return the number of slots of each task: its duration, rounded up, and at least one."""
    found: Floats = np.maximum(round_up(trace.duration / slot), 1.0)
    return found
