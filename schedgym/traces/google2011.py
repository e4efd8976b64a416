"""Google's cluster trace of 2011 (github.com/google/cluster-data, clusterdata-2011-2).

Reiss, Wilkes, Hellerstein: Google cluster-usage traces: format + schema, 2011 (version 2.1). Tables of
events, each cut into gzip-compressed CSV files ``part-?????-of-?????.csv.gz`` without a header, rows in order
of time. Two of them are read, task_events and machine_events, whose columns are named below.

Timestamps are microseconds, 600 s at the start of the trace; 0 means before it, 2**63 - 1 after its end.
Requests and capacities are published as shares of the largest capacity of any machine, per resource.
"""

from __future__ import annotations

import math
from array import array
from bisect import insort
from collections import Counter, deque
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.traces.base import (
    LARGEST,
    MACHINE,
    NO_EXECUTION,
    Column,
    Format,
    LeftOut,
    Trace,
    check_reading,
    parts,
    refuse_empty,
)
from schedgym.traces.declaration import TableLayout
from schedgym.traces.table import TableReader

MICROSECONDS = 1e6  # per second
BEFORE, AFTER = 0.0, float(2**63)  # timestamps of what happened outside the trace (2**63 - 1, as a float)
UNIT = "share of the largest machine"

SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, UPDATE_PENDING, UPDATE_RUNNING = map(float, range(9))
ADD, REMOVE, UPDATE = map(float, range(3))

#: why tasks are left out, as keys of ``Trace.dropped``
NO_SUBMIT = "no SUBMIT"
BEFORE_TRACE = "submitted before the trace"
NO_REQUEST = "request missing"
NO_SCHEDULE = "no SCHEDULE"
UNFINISHED = "unfinished: "  # followed by the state in which the task is left
ENDS = {EVICT: "evicted", FAIL: "failed", KILL: "killed", LOST: "lost"}
NO_CAPACITY = MACHINE + "capacity missing"

TASK_EVENTS = (
    "timestamp",
    "missing info",
    "job id",
    "task index",
    "machine id",
    "event type",
    "user",
    "scheduling class",
    "priority",
    "cpu request",
    "memory request",
    "disk request",
    "different machine constraint",
)
TIMESTAMP = Column("timestamp", "us", maximum=LARGEST - 1, whole=True, unknown=AFTER)
TASK_COLUMNS = (
    TIMESTAMP,
    Column("job id", "", whole=True),
    Column("task index", "", maximum=2**32 - 1, whole=True),
    Column("event type", "", maximum=UPDATE_RUNNING, whole=True),
    Column("cpu request", "share", maximum=1.0, optional=True),
    Column("memory request", "share", maximum=1.0, optional=True),
)
MACHINE_EVENTS = ("timestamp", "machine id", "event type", "platform id", "cpu capacity", "memory capacity")
MACHINE_COLUMNS = (
    TIMESTAMP,
    Column("machine id", "", whole=True),
    Column("event type", "", maximum=UPDATE, whole=True),
    Column("cpu capacity", "share", maximum=1.0, exclusive=True, optional=True),
    Column("memory capacity", "share", maximum=1.0, exclusive=True, optional=True),
)
TASKS, MACHINES = (TableLayout(columns={}, names=names) for names in (TASK_EVENTS, MACHINE_EVENTS))


def read_google2011(
    path: str | Path,
    nodes: str | Path | None = None,
    *,
    on_error: str = "raise",
    limit: int | None = None,
    machines_at: float = 0.0,
) -> Trace:
    """Read tasks from task_events, and machines from machine_events, of the Google trace of 2011.

    A task is a pair (job id, task index). It arrives with its first SUBMIT, whose requests are its demands,
    and its duration is that of the run that succeeds: from the last SCHEDULE before FINISH to FINISH. EVICT,
    FAIL, KILL and LOST end a run, not the task: it may be submitted and scheduled again. A pair that is
    submitted after its FINISH is another task. Events after the end of the trace and updates change nothing;
    events that the publisher filled in (missing info) count like all others.

    Tasks are left out for the first that holds of: "no SUBMIT" (the first event is another, as in files
    from the midst of the trace); "submitted before the trace"; "request missing" (processors or memory);
    "unfinished: pending" (or running, evicted, failed, killed, lost): no FINISH within the files; "no
    SCHEDULE" before FINISH; "execution <= 0".

    Memory grows with the tasks that have not finished and with those that are returned, not with the files.

    Other arguments and errors are those of :func:`~schedgym.traces.read_trace`.

    Args:
        path: a part of task_events (``.csv.gz``, or ``.csv``), or a folder of consecutive parts.
        nodes: the part of machine_events, or its folder; None leaves the trace without machines.
        on_error: "raise" or "skip".
        limit: only the first so many of the tasks that would be returned without it, in the order of
            their SUBMIT rows; ``dropped`` then counts tasks that come before the last of them. Reading
            stops when no open task can come before.
        machines_at: the machines are those present at this time of the trace's clock [s], with the
            capacities they have then; 0 takes those there when the trace begins. Machines with a
            capacity missing are left out and counted under "machine: capacity missing".

    Returns:
        a trace in seconds; all sizes are shares of the largest machine (``unit``). ``rows`` counts tasks,
        and malformed rows.
    """
    check_reading(on_error, limit)
    if not (isinstance(machines_at, int | float) and math.isfinite(machines_at) and machines_at >= 0):
        raise InvalidParameter(f"machines_at: must be a finite time >= 0 s, got {machines_at!r}")
    tasks = _Tasks(limit)
    malformed: Counter[str] = Counter()
    files = []
    for file in _files(path):
        table = TableReader(file, TASKS, on_error, numbers=TASK_COLUMNS)
        files.append(file)
        for time, job, index, event, cpu, memory in table.rows():
            if event < UPDATE_PENDING and not math.isnan(time):
                tasks.add((int(job) << 32) | int(index), time, event, cpu, memory)
                if tasks.complete:
                    break
        malformed.update(table.dropped)
        if tasks.complete:
            break
    kept, dropped = tasks.result()
    dropped.update(malformed)
    refuse_empty(path, "task", kept["arrival"], dropped)
    machines: dict[str, Any] = {}
    if nodes is not None:
        machines, machine_dropped = _machines(nodes, on_error, machines_at)
        dropped.update(machine_dropped)
        files.extend(_files(nodes))
    left_out = tuple(LeftOut(reason, count, 0, jobs=count) for reason, count in dropped.items())
    return Trace("google2011", **kept, **machines, files=tuple(files), unit=UNIT, left_out=left_out)


class _Task:
    """A task not finished: ``number`` in the order of first rows, ``start`` [us] (NaN between runs)."""

    __slots__ = ("arrival", "closed", "cpu", "memory", "number", "start", "state")

    def __init__(self, number: int, arrival: float, cpu: float, memory: float) -> None:
        self.number, self.arrival, self.cpu, self.memory = number, arrival, cpu, memory
        self.start, self.state, self.closed = math.nan, "pending", False

    @property
    def fault(self) -> str | None:
        """The reason for which the task is left out, whatever its further events; None if there is none."""
        if math.isnan(self.arrival):
            return NO_SUBMIT
        if self.arrival == BEFORE:
            return BEFORE_TRACE
        if math.isnan(self.cpu) or math.isnan(self.memory):
            return NO_REQUEST
        return None


class _Tasks:
    """Puts tasks together from their events.

    With a limit, once so many tasks are finished, the last of the selected ones only moves forward: new tasks
    are of no interest, and all is known when no open task comes before it.

    Attributes:
        complete: True if further events change nothing.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit, self.complete = limit, False
        self.open: dict[int, _Task] = {}
        self.count = 0
        self.kept = array("d")  # of each task its number, arrival, duration, cores, memory and job
        self.dropped: Counter[str] = Counter()
        self.left_out: list[tuple[int, str]] = []  # with a limit: decided at the end which of them count
        self.selected: list[int] = []  # sorted numbers of the first tasks that finished
        self.waiting: deque[_Task] | None = None  # once enough have finished: those that may come before

    def add(self, key: int, time: float, event: float, cpu: float, memory: float) -> None:
        """Take in an event [us] other than an update."""
        task = self.open.get(key)
        if task is None:
            if self.waiting is not None:
                return
            if event == SUBMIT:
                task = _Task(self.count, time, cpu, memory)
            else:
                task = _Task(self.count, math.nan, math.nan, math.nan)
            self.open[key] = task
            self.count += 1
        if event == SCHEDULE:
            task.start, task.state = time, "running"
        elif event == FINISH:
            del self.open[key]
            self._close(task, time, key >> 32)
        else:
            task.start, task.state = math.nan, ENDS.get(event, "pending")

    def _close(self, task: _Task, end: float, job: int) -> None:
        task.closed = True
        fault = task.fault
        if fault is None and math.isnan(task.start):
            fault = NO_SCHEDULE
        elif fault is None and end <= task.start:
            fault = NO_EXECUTION
        if fault is not None:
            self._leave_out(task, fault)
        elif self.limit is None or len(self.selected) < self.limit or task.number < self.selected[-1]:
            duration = (end - task.start) / MICROSECONDS
            arrival = task.arrival / MICROSECONDS
            self.kept.extend((task.number, arrival, duration, task.cpu, task.memory, job))
            if self.limit is not None:
                self._select(task.number, self.limit)
        if self.waiting is not None:
            while self.waiting and self.waiting[0].closed:
                self.waiting.popleft()
            self.complete = not self.waiting or self.waiting[0].number > self.selected[-1]

    def _select(self, number: int, limit: int) -> None:
        insort(self.selected, number)
        del self.selected[limit:]
        if len(self.selected) == limit and self.waiting is None:
            # in the order of their numbers, since entries of a dict stand in the order they were made
            self.waiting = deque(task for task in self.open.values() if task.fault is None)

    def _leave_out(self, task: _Task, reason: str) -> None:
        if self.limit is None:
            self.dropped[reason] += 1
        else:
            self.left_out.append((task.number, reason))

    def result(self) -> tuple[dict[str, Any], Counter[str]]:
        """The columns of the tasks in their order, and what was left out."""
        for task in self.open.values():
            self._leave_out(task, task.fault or UNFINISHED + task.state)
        enough = self.waiting is not None
        last = self.selected[-1] if enough else self.count
        self.dropped.update(reason for number, reason in self.left_out if number < last)
        numbers, *columns = np.asarray(self.kept).reshape(-1, 6).T
        order = np.argsort(numbers)[: self.limit]
        names = ("arrival", "duration", "cores", "memory", "job")
        kept = {name: column[order] for name, column in zip(names, columns, strict=True)}
        return kept, self.dropped


def _machines(path: str | Path, on_error: str, at: float) -> tuple[dict[str, Any], Counter[str]]:
    """Capacities of the machines present at a time [s], and why others were left out."""
    present: dict[float, tuple[float, float]] = {}
    dropped: Counter[str] = Counter()
    for file in _files(path):
        table = TableReader(file, MACHINES, on_error, numbers=MACHINE_COLUMNS, machines=True)
        for time, machine, event, cpu, memory in table.rows():
            if not time <= at * MICROSECONDS:  # NaN: after the end of the trace
                continue
            if event == REMOVE:
                present.pop(machine, None)
            elif event == ADD or machine in present:
                present[machine] = (cpu, memory)
        dropped.update(table.dropped)
    sizes = [size for size in present.values() if not any(map(math.isnan, size))]
    if missing := len(present) - len(sizes):
        dropped[NO_CAPACITY] += missing
    refuse_empty(path, "machine", sizes, dropped)
    cores, memory = np.array(sizes).T
    return {"machine_cores": cores, "machine_memory": memory}, dropped


def _files(path: str | Path) -> tuple[Path, ...]:
    files = parts(path)
    if not files:
        raise TraceFormatError(path, 0, "", "has no part, a file part-?????-of-?????.csv.gz")
    return files


def _recognises(line: str) -> bool:
    return TASKS.fits(line, {column.name: True for column in TASK_COLUMNS if not column.optional})


FORMAT = Format(
    name="google2011",
    help="Google cluster trace 2011, task_events and machine_events",
    licence="CC BY 4.0",
    address="https://github.com/google/cluster-data",
    span="29 days",
    recognises=_recognises,
    read=read_google2011,
    gives=("tasks", "jobs"),
)
