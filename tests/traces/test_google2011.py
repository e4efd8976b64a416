from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schedgym  # noqa: F401  (registers the ids)
from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.traces import Trace, read_trace
from schedgym.traces.base import parts
from schedgym.traces.google2011 import MACHINE_EVENTS, read_google2011
from tests.tables import table
from tests.traces.logs import (
    AFTER,
    EVENTS,
    FINISH,
    LOGS,
    MACHINES,
    MORE,
    SCHEDULE,
    SUBMIT,
    UPDATE_RUNNING,
    S,
    event,
    machine,
    write,
)

DROPPED = LOGS["google2011"].truth["dropped"]


def folder(path: Path, *contents: list[str], total: int = 500) -> Path:
    for number, rows in enumerate(contents):
        write(path / f"part-{number:05}-of-{total:05}.csv.gz", rows)
    return path


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return folder(tmp_path / "task_events", EVENTS, MORE)


@pytest.fixture
def machines(tmp_path: Path) -> Path:
    return folder(tmp_path / "machine_events", MACHINES, total=1) / "part-00000-of-00001.csv.gz"


def test_machines_and_what_is_counted(tasks: Path, machines: Path) -> None:
    trace = read_google2011(tasks, machines)
    assert trace.machine_cores.tolist() == [0.5, 1, 0.25] and trace.machine_memory.tolist() == [0.25, 1, 0.5]
    assert trace.dropped == {**DROPPED, "machine: capacity missing": 1}
    assert trace.rows == 3 + sum(DROPPED.values())
    assert trace.files == (*sorted(tasks.iterdir()), machines)


def test_parts_one_file_and_read_trace_give_the_same(tasks: Path, machines: Path, tmp_path: Path) -> None:
    expected = read_google2011(tasks, machines)
    one = write(tmp_path / "all.csv", EVENTS + MORE)
    packed = write(tmp_path / "all.csv.gz", EVENTS + MORE)
    for path in (tasks, str(tasks), one, packed):
        for nodes in (machines, str(machines.parent)):
            trace = read_trace(path, nodes=nodes)
            assert isinstance(trace, Trace) and trace.dropped == expected.dropped
            for field in ("arrival", "duration", "cores", "memory", "machine_cores", "machine_memory"):
                assert np.array_equal(getattr(expected, field), getattr(trace, field))
    assert read_google2011(tasks).machine_cores.size == 0


def test_a_part_from_the_midst(tasks: Path) -> None:
    trace = read_google2011(tasks / "part-00001-of-00500.csv.gz")
    assert trace.arrival.tolist() == [625]
    assert trace.dropped == {
        "no SUBMIT": 2,  # 2 and 7: what SUBMIT follows is not their first
        "no SCHEDULE": 1,
        **{f"unfinished: {s}": 1 for s in ("running", "evicted", "failed", "killed", "lost")},
    }


@pytest.mark.parametrize(("at", "cores", "missing"), table(__file__, "test_machines_at_a_time"))
def test_machines_at_a_time(tasks: Path, machines: Path, at: float, cores: list[float], missing: int) -> None:
    trace = read_google2011(tasks, machines, machines_at=at)
    assert trace.machine_cores.tolist() == cores
    assert trace.dropped["machine: capacity missing"] == missing


# --- limit


def test_limit_gives_the_first_of_all_tasks(tasks: Path) -> None:
    every = read_google2011(tasks)
    for limit in (1, 2, 3, 4):
        trace = read_google2011(tasks, limit=limit)
        for field in ("arrival", "duration", "cores", "memory"):
            assert getattr(trace, field).tolist() == getattr(every, field).tolist()[:limit]
    assert read_google2011(tasks, limit=4).dropped == every.dropped
    # 1 is certain as soon as it has finished, so that the second part is not even opened
    first = read_google2011(tasks, limit=1)
    assert [file.name for file in first.files] == ["part-00000-of-00500.csv.gz"]
    assert first.dropped == {"submitted before the trace": 1}
    # 2 was submitted before the other tasks that finish: it is waited for
    assert read_google2011(tasks, limit=2).arrival.tolist() == [600, 600]


def test_limit_waits_for_no_more_than_it_must(tmp_path: Path) -> None:
    rows = [
        *(event(600 * S + task, task, SUBMIT) for task in (1, 2, 3, 4)),
        event(601 * S, 5, SUBMIT, ""),
        *(event(602 * S, task, SCHEDULE) for task in (1, 2, 3, 4)),
        event(603 * S, 4, FINISH),
        event(604 * S, 1, FINISH),  # from here on only 2 and 3 matter
        event(604 * S, 6, SUBMIT),
        event(605 * S, 2, FINISH),  # 1 and 2 are certain: 3 may run on
        "broken",
    ]
    path = write(tmp_path / "part.csv", rows)
    trace = read_google2011(path, limit=2)
    assert trace.arrival.tolist() == [600.000001, 600.000002] and trace.duration[1] == 3
    assert trace.dropped == {}  # 5 comes after 2
    with pytest.raises(TraceFormatError, match=r"part\.csv:14: expected 13"):
        read_google2011(path, limit=3)


STEP = st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(0, 12), st.booleans())


@settings(max_examples=300)
@given(steps=st.lists(STEP, min_size=1, max_size=60), limit=st.integers(1, 8))
def test_any_limit_gives_a_prefix(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, int, bool]], limit: int
) -> None:
    rows, clock = [], 0
    for gap, kind, task, known in steps:
        clock += gap * S
        rows.append(
            event(clock, task, kind if kind < 5 else (SUBMIT, SCHEDULE)[kind - 5], 0.5 if known else "")
        )
    path = write(tmp_path_factory.getbasetemp() / "limit.csv", rows)
    try:
        every = read_google2011(path)
    except TraceFormatError as error:
        with pytest.raises(TraceFormatError) as caught:
            read_google2011(path, limit=limit)
        assert str(caught.value) == str(error)
        return
    trace = read_google2011(path, limit=limit)
    for field in ("arrival", "duration", "cores", "memory"):
        assert getattr(trace, field).tolist() == getattr(every, field).tolist()[:limit]
    assert all(trace.dropped[reason] <= every.dropped[reason] for reason in trace.dropped)
    if len(every.arrival) < limit:
        assert trace.dropped == every.dropped


def test_memory_does_not_grow_with_the_files(tmp_path: Path) -> None:
    def rows(count: int) -> list[str]:
        found = [event(600 * S, 1, SUBMIT), event(601 * S, 1, SCHEDULE)]
        for i in range(count):
            kinds = (SUBMIT, SCHEDULE, FINISH) if i % 10 == 0 else (SCHEDULE, UPDATE_RUNNING, FINISH)
            found += [event((602 + i) * S + k, 10 + i, kind) for k, kind in enumerate(kinds)]
        return [*found, event(10**12, 1, FINISH)]

    peaks = []
    for count in (1000, 8000):
        path = write(tmp_path / f"{count}.csv.gz", rows(count))
        read_google2011(path, limit=5)
        tracemalloc.start()
        try:
            assert len(read_google2011(path, limit=5).arrival) == 5
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


# --- errors


@pytest.mark.parametrize("value", [2**53, 2**62, AFTER - 10_000])
def test_timestamps_that_are_neither_in_nor_after_the_trace(
    tasks: Path, machines: Path, tmp_path: Path, value: int
) -> None:
    path = write(tmp_path / "part.csv", [*EVENTS, event(value, 9, SUBMIT)])
    with pytest.raises(TraceFormatError, match=r":18: timestamp: must be <= 9\.0072e\+15 \(us\), got"):
        read_google2011(path)
    assert read_google2011(path, on_error="skip").dropped["malformed"] == 1
    path = write(tmp_path / "machines.csv", [*MACHINES, machine(value, 0, 0)])
    with pytest.raises(TraceFormatError, match=r"machines\.csv:10: timestamp: must be <="):
        read_google2011(tasks, path)
    assert read_google2011(tasks, path, on_error="skip").dropped["machine: malformed"] == 1


@pytest.mark.parametrize("column", [name for name in MACHINE_EVENTS if name != "platform id"])
@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf", "", "0", "1.5", "1e30"])
def test_bad_fields_of_a_machine(tasks: Path, tmp_path: Path, column: str, value: str) -> None:
    fields = machine(5 * S, 7, 0).split(",")
    fields[MACHINE_EVENTS.index(column)] = value
    path = write(tmp_path / "machines.csv", [*MACHINES, ",".join(fields)])
    if (value == "" and "capacity" in column) or (value == "0" and "capacity" not in column):
        assert "machine: malformed" not in read_google2011(tasks, path).dropped
        return
    with pytest.raises(TraceFormatError) as caught:
        read_google2011(tasks, path)
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 10, column)
    trace = read_google2011(tasks, path, on_error="skip")
    assert trace.dropped["machine: malformed"] == 1 and len(trace.machine_cores) == 3


def test_rows_of_another_width(tasks: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "part.csv", [EVENTS[0], EVENTS[1] + ",1"])
    with pytest.raises(TraceFormatError, match=r"part\.csv:1: expected 6 columns, got 13"):
        read_google2011(tasks, path)


def test_parts_must_be_consecutive(tasks: Path, machines: Path) -> None:
    def refused(reason: str) -> None:
        for read in (read_google2011, read_trace):
            with pytest.raises(TraceFormatError, match=f"task_events: {reason}: parts must be consecutive"):
                read(tasks, on_error="skip")

    assert parts(tasks) == tuple(sorted(tasks.iterdir())) and parts(machines) == (machines,)
    (tasks / "README").write_text("not a part")
    assert len(parts(tasks)) == 2
    far = write(tasks / "part-00003-of-00500.csv.gz", MORE)
    refused("part-00003-of-00500.csv.gz does not follow part-00001-of-00500.csv.gz")
    far.unlink()
    twice = write(tasks / "part-00001-of-00500.csv", MORE)
    refused("part-00001-of-00500.csv.gz does not follow part-00001-of-00500.csv")
    twice.unlink()
    write(tasks / "part-00002-of-00003.csv.gz", MORE)
    refused("part-00002-of-00003.csv.gz does not follow part-00001-of-00500.csv.gz")


def test_folders_without_parts(tasks: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(TraceFormatError, match="empty: has no part, a file part-"):
        read_google2011(empty)
    with pytest.raises(TraceFormatError, match="empty: has no part, a file part-"):
        read_google2011(tasks, empty)
    with pytest.raises(TraceFormatError, match="empty: is a folder: name its format"):
        read_trace(empty)


def test_nothing_left_damage_and_missing_files(tasks: Path, machines: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "part.csv", EVENTS[:6])
    reasons = "submitted before the trace: 1; unfinished: running: 1; unfinished: pending: 1; no SUBMIT: 1"
    with pytest.raises(TraceFormatError, match=rf"part\.csv: has no task \(left out: {reasons}\)"):
        read_google2011(path)
    with pytest.raises(
        TraceFormatError, match=r"machines\.csv: has no machine \(left out: capacity missing: 1"
    ):
        read_google2011(tasks, write(tmp_path / "machines.csv", MACHINES[2:3]))


def test_arguments(tasks: Path) -> None:
    for at in (-1, float("nan"), float("inf"), "0"):
        with pytest.raises(InvalidParameter, match="machines_at: must be a finite time >= 0 s"):
            read_google2011(tasks, machines_at=at)  # type: ignore[arg-type]
