"""ScheduleRecord: which job ran on which server, from when to when, with how much of each resource."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Floats, Integers
from schedgym.core.problem import get_problem
from schedgym.core.workload import SECTIONS, Workload
from schedgym.errors import InvalidSchedule

#: numpy's kinds of numbers that columns may have
KINDS = {"job": "i", "server": "i", "start": "if", "end": "if", "amount": "if"}


@dataclasses.dataclass(frozen=True, eq=False)
class ScheduleRecord:
    """The schedule of one episode: the only input of metrics, validators, golden tests and pictures.

    A row is a piece of work: one job on one server over an interval with constant amounts.

    Attributes:
        workload: the instance that was scheduled.
        job: index of the job (task) in the workload; int64 [rows].
        server: index of the server (site); int64 [rows].
        start: begin of the interval, in the problem's unit of time; float64 [rows].
        end: end of the interval; float64 [rows].
        amount: amount of each resource that the piece holds meanwhile; float64 [rows, resources].
        final_time: the instant at which the episode ended, in the problem's unit of time.
        truncated: True if the episode ended with work left.
    """

    workload: Workload
    job: Integers
    server: Integers
    start: Floats
    end: Floats
    amount: Floats
    final_time: float
    truncated: bool

    def digest(self) -> str:
        """SHA-256 over the rows and the end: equal digests are equal schedules, bit for bit."""
        sha = hashlib.sha256()
        for name in KINDS:
            array: npt.NDArray[Any] = np.ascontiguousarray(getattr(self, name))
            sha.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            sha.update(array.tobytes())
        sha.update(repr((float(self.final_time), bool(self.truncated))).encode())
        return sha.hexdigest()


def refuse_first(where: str, checks: Iterable[tuple[Any, str]], *numbers: Any) -> None:
    """Raise InvalidSchedule, "where what", for the first check that an entry fails.

    Args:
        where: names the entry, with a place for each of ``numbers``, or without these for its index:
            "row [{}]", "job [{}] in slot {}:".
        checks: booleans [entries], True for a bad entry, each with the message for the first bad one.
        numbers: arrays [entries] whose values name the entry.
    """
    for bad, what in checks:
        if bad.any():
            at = int(np.argmax(bad))
            raise InvalidSchedule(f"{where.format(*([int(n[at]) for n in numbers] or [at]))} {what}")


def check_rows(record: ScheduleRecord, resources: int, outlasting: bool = False) -> None:
    """Check types and shapes of a record's columns, that its tasks and servers exist, its times and amounts.

    Args:
        record: of a problem whose schema counts tasks, or else jobs, and servers or sites, or else has one.
        resources: columns of ``amount``.
        outlasting: True if rows may end after the episode.

    Raises:
        InvalidSchedule: naming the column, or the first row at fault.
    """
    counts, sections = {"server": 1}, vars(record.workload)
    schema = get_problem(record.workload.problem).schema
    for section in SECTIONS:
        for field in schema.fields(section, sections):
            shape = np.shape(sections[section].get(field.name, 0))
            counts.update(zip(field.dimensions, shape, strict=False))
    task = "task" if "task" in counts else "job"
    rows, servers = np.size(record.job), counts.get("site", counts["server"])
    for name, kinds in KINDS.items():
        column, wanted = getattr(record, name), [rows, resources] if name == "amount" else [rows]
        if not isinstance(column, np.ndarray) or column.dtype.kind not in kinds or column.itemsize > 8:
            raise InvalidSchedule(f"{name}: must be an array of {'whole ' * (kinds == 'i')}numbers")
        if list(column.shape) != wanted:
            raise InvalidSchedule(f"{name}: must have the shape {wanted}, got {list(column.shape)}")
    final = record.final_time
    if not (isinstance(final, (int, float, np.integer, np.floating)) and math.isfinite(final)):
        raise InvalidSchedule(f"final_time: must be a finite number, got {final!r}")
    refuse_first(
        "row [{}]",
        (
            ((record.job < 0) | (record.job >= counts[task]), f"names a {task} that does not exist"),
            ((record.server < 0) | (record.server >= servers), "names a server that does not exist"),
            (~(np.isfinite(record.start) & np.isfinite(record.end)), "has no start or end"),
            (record.start > record.end, "ends before it starts"),
            (~np.isfinite(record.amount).all(axis=1), "has no amount"),
            (~(outlasting | (record.end <= final)), "ends after the episode"),
        ),
    )


def check_end(record: ScheduleRecord, end: float, when: str = "the last task ends") -> None:
    """Raise InvalidSchedule unless the episode ends at ``end``, which is ``when`` something happens."""
    if record.final_time != end:
        raise InvalidSchedule(f"final_time: must be {end:.12g}, when {when}")


def first_overload(
    server: Any, start: Any, end: Any, amount: Any, capacity: Any
) -> tuple[int, float, Any] | None:
    """The first instant, by server and time, at which rows hold more than their server has, or None.

    A row that ends at an instant holds nothing any more at that instant.

    Args:
        server: [rows].
        start: [rows].
        end: [rows].
        amount: amount that each row holds [rows] or [rows, resources].
        capacity: capacity of the servers [servers] or [servers, resources].

    Returns:
        The server, the instant, and the amount held then: a number or [resources].
    """
    if len(server) == 0:
        return None
    place, time = np.concatenate([server, server]), np.concatenate([end, start])
    order = np.lexsort((time, place))
    place, time = place[order], time[order]
    used = np.cumsum(np.concatenate([-amount, amount])[order], axis=0)
    first = np.searchsorted(place, place)  # of the server's changes
    used = used - np.where(first > 0, used[first - 1].T, 0).T  # rounding of servers before
    last = np.append((np.diff(place) != 0) | (np.diff(time) != 0), True)  # change of an instant
    over = (used > capacity[place]).reshape(len(place), -1).any(axis=1) & last
    if not over.any():
        return None
    at = int(np.argmax(over))
    return int(place[at]), float(time[at]), used[at]
