"""What the modules ``tests.<problem>.schedules`` are made of: random schedules, and rules to break.

Each of them has for :mod:`tests.test_all_records`

- ``runs(count, seed)``: :class:`Run` of ``count`` random instances;
- ``RARE``: names of metrics that are 0 in nearly all of them;
- ``example()``: a schedule written by hand; ``schedules.yaml`` has messages and metrics, and what to replace
  in it, as :func:`replaced` takes it;
- ``is_valid(record)``: whether a schedule of finite numbers keeps the rules, which it has once more, slowly;
- ``toy_optimum(workload, parameters)``: the best value of the objective, for tests/test_all_workloads.py;
- ``CHANGES``: damages that :func:`damage` does not know;
- ``numbers(record)``: what other kernels compute of a schedule, if any do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from schedgym.core.problem import get_problem
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload

COLUMNS = ("job", "server", "start", "end", "amount")

#: what to replace in a record, of which a row and a factor were drawn
Change = Callable[[ScheduleRecord, int, float], dict[str, Any]]

KINDS = (*COLUMNS, "move", "drop", "twice", "swap", "truncated", "final_time")


class Run(NamedTuple):
    """A schedule, and what the exact model says of it.

    Attributes:
        record: the schedule.
        metrics: every recorded metric by its name.
        fates: what :func:`fates` of the problem must return, up to rounding.
    """

    record: ScheduleRecord
    metrics: dict[str, float]
    fates: dict[str, list[Any]]


def put(array: np.ndarray, row: Any, value: Any) -> np.ndarray:
    """A copy with another value in a row."""
    copy = array.copy()
    copy[row] = value
    return copy


def rows_taken(record: ScheduleRecord, rows: Any) -> dict[str, Any]:
    """The columns with these rows alone, in this order."""
    return {name: getattr(record, name)[rows] for name in COLUMNS}


def section_changed(record: ScheduleRecord, section: str, **fields: Any) -> dict[str, Any]:
    """The workload with other fields in a section."""
    merged = {**getattr(record.workload, section), **fields}
    return {"workload": dataclasses.replace(record.workload, **{section: merged})}


def record_of_rows(workload: Workload, rows: Sequence[Sequence[float]]) -> ScheduleRecord:
    """Rows (job, server, start, end, amounts ...), of which the last one ends the episode."""
    array = np.array(rows, dtype=float)
    places, times = array[:, :2].astype(np.int64).T, array[:, 2:4].T
    return ScheduleRecord(workload, *places, *times, array[:, 4:], float(times[1].max()), truncated=False)


def replaced(record: ScheduleRecord, changes: Mapping[str, Any]) -> ScheduleRecord:
    """The record with what is named replaced, one after the other.

    Named are columns and other attributes, fields of the workload ("cluster.cpu"), rows or numbers of both
    ("amount[1][0]"), the rows to be left ("rows"), all rows ("schedule"), all of the workload ("workload").
    """
    for place, value in changes.items():
        name, *index = place.replace("]", "").split("[")
        section, _, field = name.partition(".")
        if name == "rows":
            fields = rows_taken(record, value)
        elif name == "schedule":
            fields = vars(record_of_rows(record.workload, value))
        elif name == "workload":
            fields = {name: get_problem(record.workload.problem).schema.parse(value)}
        elif field:
            own = getattr(record.workload, section).get(field, np.zeros(0))
            fields = section_changed(record, section, **{field: _renewed(own, index, value)})
        else:
            fields = {name: _renewed(getattr(record, name), index, value)}
        record = dataclasses.replace(record, **fields)
    return record


def _renewed(own: Any, index: list[str], value: Any) -> Any:
    """Another array of this type, or one with another value at a place; or just another value."""
    if index:
        return put(own, tuple(map(int, index)), value)
    return np.array(value, dtype=own.dtype) if isinstance(own, np.ndarray) else value


def damage(record: ScheduleRecord, changes: Mapping[str, Change], data: st.DataObject) -> ScheduleRecord:
    """The record with something changed, which may break a rule."""
    rows = np.arange(len(record.job))
    row, kind = data.draw(st.sampled_from(rows.tolist())), data.draw(st.sampled_from([*KINDS, *changes]))
    factor = data.draw(st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.1, 2.0, -1.0, np.nan]))
    # the row alone, all of its task, or all
    which = data.draw(st.sampled_from([rows == row, record.job == record.job[row], rows >= 0]))
    if kind in changes:
        return dataclasses.replace(record, **changes[kind](record, row, factor if factor > 0 else 0.75))
    if kind in ("job", "server"):
        column = getattr(record, kind)
        fields = {kind: put(column, which, data.draw(st.integers(-1, int(column.max()) + 1)))}
    elif kind in ("start", "end"):
        shift = data.draw(st.sampled_from([-2.0, -1.0, -0.5, 0.25, 1.0, 3.0, np.inf]))
        values = getattr(record, kind)[which]
        fields = {kind: put(getattr(record, kind), which, values * factor if factor > 0 else values + shift)}
    elif kind == "amount":
        fields = {kind: record.amount.astype(float)}
        fields[kind][which, data.draw(st.integers(0, record.amount.shape[1] - 1))] *= factor
        if data.draw(st.booleans()):
            fields[kind][which] = np.round(fields[kind][which]) + 1.0
    elif kind == "move":
        shift = data.draw(st.sampled_from([-3.0, -1.0, -0.25, 0.25, 1.0, 3.0]))
        fields = {
            name: put(getattr(record, name), row, getattr(record, name)[row] + shift) for name in COLUMNS[2:4]
        }
    elif kind == "drop":
        fields = rows_taken(record, ~which) | {"truncated": data.draw(st.booleans())}
    elif kind == "twice":
        fields = rows_taken(record, np.sort(np.append(rows, row)))
    elif kind == "swap":
        rows[[row, 0]] = rows[[0, row]]
        return dataclasses.replace(record, **rows_taken(record, rows))
    elif kind == "truncated":
        fields = {kind: not record.truncated}
    else:
        fields = {kind: record.final_time + data.draw(st.sampled_from([-1.0, 1.0, 3.0]))}
    changed = dataclasses.replace(record, **fields)
    if data.draw(st.booleans()):  # in order again
        changed = dataclasses.replace(
            changed, **rows_taken(changed, np.lexsort((changed.server, changed.job, changed.start)))
        )
    return changed
