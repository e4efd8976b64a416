from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schedgym  # noqa: F401  (registers the ids)
from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.traces import Trace, formats, inspect_trace, read_trace
from schedgym.traces.base import parts
from schedgym.traces.google2011 import MACHINE_EVENTS, TASK_EVENTS, read_google2011

SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, UPDATE_PENDING, UPDATE_RUNNING = range(9)
AFTER = 2**63 - 1
S = 1_000_000  # us


def event(time: int, task: int, kind: int, cpu: float | str = 0.25, memory: float | str = 0.125) -> str:
    machine = "" if kind == SUBMIT else "4155527081"
    return (
        f"{time},,{6251639646 + task // 10},{task % 10},{machine},{kind},aB+/c=,2,9,{cpu},{memory},0.00019,0"
    )


def machine(time: int, number: int, kind: int, cpu: float | str = 0.5, memory: float | str = 0.25) -> str:
    return f"{time},{4155527081 + number},{kind},HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,{cpu},{memory}"


EVENTS = [
    event(0, 0, SUBMIT),  # 0 was submitted before the trace
    event(0, 0, SCHEDULE),
    event(600 * S, 1, SUBMIT, 0.0625, 0.03125),  # 1 runs from 602.5 to 610
    event(600 * S, 2, SUBMIT, 0.5, 0.5),  # 2 runs twice, from 605 and from 630 to 640
    event(601 * S, 3, SCHEDULE),  # 3 has lost its first row
    event(602_500_000, 1, SCHEDULE, 0.0625, 0.03125),
    event(603 * S, 1, UPDATE_RUNNING, 0.75, 0.75),
    event(605 * S, 2, SCHEDULE, 0.5, 0.5),
    event(606 * S, 4, SUBMIT, "", 0.1),  # 4 and 5 have no request
    event(606 * S, 5, SUBMIT, 0.1, ""),
    event(607 * S, 4, SCHEDULE, 0.1, 0.1),
    event(608 * S, 6, SUBMIT),  # 6 is never scheduled
    event(609 * S, 7, SUBMIT),  # 7 finishes in no time
    event(610 * S, 1, FINISH, 0.0625, 0.03125),
    event(611 * S, 0, FINISH),
    event(612 * S, 4, FINISH, 0.1, 0.1),
    event(613 * S, 3, FINISH),
]
MORE = [
    event(614 * S, 7, SCHEDULE),
    event(614 * S, 7, FINISH),
    event(615 * S, 2, EVICT, 0.5, 0.5),
    event(615 * S, 2, SUBMIT, 0.75, 0.75),
    event(616 * S, 8, SUBMIT),  # 8 is still running at the end
    event(617 * S, 8, SCHEDULE),
    *(event(618 * S, task, SUBMIT) for task in (11, 12, 13, 14)),
    *(event(619 * S, task, SCHEDULE) for task in (11, 12, 13, 14)),
    event(620 * S, 11, EVICT),
    event(620 * S, 12, FAIL),
    event(620 * S, 13, KILL),
    event(620 * S, 14, LOST),
    event(621 * S, 15, SUBMIT),  # 15 ends without having started
    event(622 * S, 15, UPDATE_PENDING),
    event(623 * S, 15, FINISH),
    event(625 * S, 1, SUBMIT, 0.25, 0.25),  # the name of 1 again: another task
    event(626 * S, 1, SCHEDULE),
    event(630 * S, 2, SCHEDULE, 0.75, 0.75),
    event(635 * S, 1, FINISH),
    event(640 * S, 2, FINISH),
    event(AFTER, 8, FINISH),
]
DROPPED = {
    "submitted before the trace": 1,
    "no SUBMIT": 1,
    "request missing": 2,
    "no SCHEDULE": 1,
    "execution <= 0": 1,
    **{f"unfinished: {state}": 1 for state in ("pending", "running", "evicted", "failed", "killed", "lost")},
}
MACHINES = [
    machine(0, 0, 0),
    machine(0, 1, 0, 1, 1),
    machine(0, 2, 0, "", 0.5),
    machine(0, 3, 0, 0.25, 0.5),
    machine(700 * S, 0, 1),
    machine(701 * S, 4, 0),
    machine(702 * S, 3, 2, 0.5, 0.5),
    machine(703 * S, 0, 2, 0.75, 0.75),  # an update of a machine that is gone
    machine(AFTER, 1, 1),
]


def text(rows: list[str]) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def write(path: Path, rows: list[str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text(rows)) if path.suffix == ".gz" else text(rows))
    return path


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


def test_units_and_rules(tasks: Path, machines: Path) -> None:
    trace = read_google2011(tasks, machines)
    assert trace.name == "google2011" and trace.unit == "share of the largest machine"
    assert trace.arrival.tolist() == [600, 600, 625]  # of the first SUBMIT
    assert trace.duration.tolist() == [7.5, 10, 9]  # of the run that finishes
    assert trace.cores.tolist() == [0.0625, 0.5, 0.25] and trace.memory.tolist() == [0.03125, 0.5, 0.25]
    assert trace.job.tolist() == [6251639646] * 3
    assert trace.machine_cores.tolist() == [0.5, 1, 0.25] and trace.machine_memory.tolist() == [0.25, 1, 0.5]
    assert trace.dropped == {**DROPPED, "machine: capacity missing": 1}
    assert trace.rows == 3 + sum(DROPPED.values()) and trace.filled == {}
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


@pytest.mark.parametrize(
    ("at", "cores", "missing"),
    [
        (0, [0.5, 1, 0.25], 1),
        (699.9, [0.5, 1, 0.25], 1),
        (700, [1, 0.25], 1),
        (702, [1, 0.5, 0.5], 1),
        (1e9, [1, 0.5, 0.5], 1),
        (1e300, [1, 0.5, 0.5], 1),
    ],
)
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


def test_limit_stops_reading_when_the_window_is_certain(tmp_path: Path) -> None:
    rows = [event(600 * S, 1, SUBMIT), event(601 * S, 1, SCHEDULE), event(602 * S, 1, FINISH), "broken"]
    path = write(tmp_path / "part.csv", rows)
    assert read_google2011(path, limit=1).arrival.tolist() == [600]
    with pytest.raises(TraceFormatError, match=r"part\.csv:4: expected 13 columns, got 1"):
        read_google2011(path, limit=2)


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


READ = ["timestamp", "job id", "task index", "event type", "cpu request", "memory request"]


@pytest.mark.parametrize("column", READ)
@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf", "", "1.5", "1e30"])
def test_bad_fields_of_a_task(tmp_path: Path, column: str, value: str) -> None:
    fields = EVENTS[2].split(",")
    fields[TASK_EVENTS.index(column)] = value
    path = write(tmp_path / "part.csv", [*EVENTS[:2], ",".join(fields), *EVENTS[3:], *MORE])
    if value == "" and "request" in column:
        assert read_google2011(path).dropped["request missing"] == 3
        return
    for read in (read_google2011, read_trace):
        with pytest.raises(TraceFormatError) as caught:
            read(path)
        assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 3, column)
    trace = read_trace(path, on_error="skip")
    assert trace.dropped["malformed"] == 1 and trace.arrival.tolist() == [600, 625]
    if (column, value) == ("event type", "1e30"):
        assert caught.value.reason == "must be <= 8, got '1e30'"
    path = write(path, [",".join(fields), *EVENTS])  # the line by which the format is recognised
    with pytest.raises(TraceFormatError, match=f":1: {column}: (must be|is empty)"):
        read_trace(path)


@pytest.mark.parametrize("value", [2**53, 2**62, AFTER - 10_000])
def test_timestamps_that_are_neither_in_nor_after_the_trace(
    tasks: Path, machines: Path, tmp_path: Path, value: int
) -> None:
    path = write(tmp_path / "part.csv", [*EVENTS, event(value, 9, SUBMIT)])
    with pytest.raises(TraceFormatError, match=r":18: timestamp: must be below 9\.0072e\+15 us, or 2\^63-1"):
        read_google2011(path)
    assert read_google2011(path, on_error="skip").dropped["malformed"] == 1
    path = write(tmp_path / "machines.csv", [*MACHINES, machine(value, 0, 0)])
    with pytest.raises(TraceFormatError, match=r"machines\.csv:10: timestamp: must be below"):
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
    with pytest.raises(TraceFormatError, match=r"part\.csv:2: expected 13 columns, got 14"):
        read_trace(path)
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
    for on_error in ("raise", "skip"):
        with pytest.raises(FileNotFoundError, match=r"absent\.csv\.gz"):
            read_google2011(tmp_path / "absent.csv.gz", on_error=on_error)
        with pytest.raises(FileNotFoundError, match=r"absent\.csv\.gz"):
            read_google2011(tasks, tmp_path / "absent.csv.gz", on_error=on_error)
    cut = tasks / "part-00001-of-00500.csv.gz"
    cut.write_bytes(cut.read_bytes()[:-9])
    for on_error in ("raise", "skip"):
        with pytest.raises(
            TraceFormatError, match=r"part-00001-of-00500\.csv\.gz:\d+: the gzip file is cut off"
        ):
            read_trace(tasks, on_error=on_error)


def test_arguments(tasks: Path) -> None:
    for at in (-1, float("nan"), float("inf"), "0"):
        with pytest.raises(InvalidParameter, match="machines_at: must be a finite time >= 0 s"):
            read_google2011(tasks, machines_at=at)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="limit"):
        read_google2011(tasks, limit=0)
    with pytest.raises(InvalidParameter, match="on_error"):
        read_google2011(tasks, on_error="ignore")


# --- the rest of the house


def test_detection() -> None:
    recognises = formats()["google2011"].recognises
    assert recognises(EVENTS[0]) and recognises(event(0, 1, SUBMIT, "", ""))
    assert not recognises(MACHINES[0]) and not recognises(",".join(TASK_EVENTS))
    assert not any(f.recognises(EVENTS[0]) for name, f in formats().items() if name != "google2011")


def test_inspect(tasks: Path, machines: Path) -> None:
    facts = inspect_trace(tasks, machines)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert (facts["format"], facts["tasks"], facts["machines"]) == ("google2011", 3, 3)
    assert facts["unit"] == "share of the largest machine"
    assert facts["rows"] == 3 + sum(DROPPED.values())
    assert facts["largest_machine"] == {"cores": 1, "memory": 1} and facts["tasks_without_machine"] == 0
    volume = 7.5 * 0.0625 + 10 * 0.5 + 9 * 0.25
    assert facts["offered_load"]["cores"] == pytest.approx(volume / (25 * 1.75))


def many(count: int) -> list[str]:
    """Events of tasks that arrive every second, two after they are scheduled, in order of time."""
    found = []
    for i in range(count):
        size = (0.05 + 0.01 * (i % 20), 0.02 + 0.02 * (i % 10))
        start = 600 + i + i % 3
        end = start + 5 + i % 7
        for time, kind in ((600 + i, SUBMIT), (start, SCHEDULE), (end, FINISH)):
            found.append((time * S, kind != SUBMIT, i, event(time * S, i, kind, *size)))
    return [row for *_, row in sorted(found)]


def test_queue_delay_runs_on_a_folder_of_parts(machines: Path, tmp_path: Path) -> None:
    rows = many(40)
    tasks = folder(tmp_path / "many", rows[:50], rows[50:])
    env = gym.make(
        "schedgym/QueueDelay-v0", trace=str(tasks), nodes=str(machines), tasks=20, servers=2, window=8
    )
    observation, _ = env.reset(seed=3)
    done = False
    while not done:
        action = int(np.flatnonzero(observation["action_mask"])[0])
        observation, _, terminated, truncated, info = env.step(action)
        done = terminated or truncated
    assert info["metrics"]["stranded"] == 0 and info["metrics"]["makespan"] >= 19
    assert 0 < info["metrics"]["utilization_cpu"] <= 1
    env.close()
    with pytest.raises(InvalidParameter, match="nodes: the google2011 trace needs its file of machines"):
        gym.make("schedgym/QueueDelay-v0", trace=str(tasks), tasks=20, servers=2, window=8)


TRICKY = st.sampled_from([b",", b"\n", b"\r", b"-", b"e9", b"\x00", b'"', b".", b"0", b"9223372036854775807"])
EDIT = st.tuples(
    st.integers(0, 5000), st.integers(0, 3), st.one_of(st.binary(max_size=4), TRICKY)
)  # place, bytes taken out, bytes put in


@settings(max_examples=300)
@given(
    edits=st.lists(EDIT, min_size=1, max_size=4),
    target=st.sampled_from(["tasks", "packed", "machines"]),
    on_error=st.sampled_from(["raise", "skip"]),
    limit=st.sampled_from([None, 1, 2]),
)
def test_any_damage_gives_a_valid_trace_or_a_format_error(
    tmp_path_factory: pytest.TempPathFactory,
    edits: list[tuple[int, int, bytes]],
    target: str,
    on_error: str,
    limit: int | None,
) -> None:
    good = {"tasks": text(EVENTS + MORE), "machines": text(MACHINES)}
    good["packed"] = gzip.compress(good["tasks"], mtime=0)
    data = good[target]
    for place, out, new in edits:
        place %= len(data) + 1
        data = data[:place] + new + data[place + out :]
    base = tmp_path_factory.getbasetemp()
    path = base / ("fuzzed_tasks.csv.gz" if target == "packed" else "fuzzed_tasks.csv")
    path.write_bytes(good["tasks"] if target == "machines" else data)
    nodes = base / "fuzzed_machines.csv"
    nodes.write_bytes(data if target == "machines" else good["machines"])
    try:
        trace = read_trace(path, format="google2011", nodes=nodes, on_error=on_error, limit=limit)
    except TraceFormatError as error:
        assert "\n" not in str(error)
        return
    assert isinstance(trace, Trace) and len(trace.arrival) > 0 and (np.diff(trace.arrival) >= 0).all()
    assert limit is None or len(trace.arrival) <= limit
    for values in (trace.arrival, trace.duration, trace.cores, trace.memory):
        assert values.shape == trace.arrival.shape and np.isfinite(values).all() and (values >= 0).all()
    assert (trace.duration > 0).all() and (trace.cores <= 1).all() and (trace.memory <= 1).all()
    for values in (trace.machine_cores, trace.machine_memory):
        assert len(values) > 0 and (values > 0).all() and (values <= 1).all()
    if on_error == "raise":
        assert not any("malformed" in reason for reason in trace.dropped)
