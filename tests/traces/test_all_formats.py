"""What is asked of every format: true rows, packed files, bad fields, limits, errors that name the place."""

from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import schedgym  # noqa: F401  (registers the ids)
from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.traces import JobTrace, Trace, formats, inspect_trace, read_trace
from tests import playing
from tests.traces.logs import LOGS, MACHINES, text, write

HEADLESS = [name for name in LOGS if not LOGS[name].head or name == "swf"]
FOUND = [name for name in LOGS if not LOGS[name].assumes]  # by their first line
BAD = ("x", "-2", "-0.5", "nan", "inf", "1e30", "")


def write_log(folder: Path, name: str, lines: list[str] | None = None, end: str = "") -> Path:
    log = LOGS[name]
    return write(folder / f"log.{log.suffix}{end}", log.lines if lines is None else lines)


def formats_of(name: str) -> tuple[str | None, ...]:
    """The format as it may be given: by its name, or not at all."""
    return (LOGS[name].name, None) if name in FOUND else (LOGS[name].name,)


def same(one: Trace | JobTrace, other: Trace | JobTrace) -> bool:
    """Return True if two traces differ in nothing but their files, and the lines of these."""
    for name, value in vars(one).items():
        equal_nan = isinstance(value, np.ndarray)
        if name not in ("files", "left_out", "line"):
            found = getattr(other, name)
            if not (np.array_equal(value, found, equal_nan=True) if equal_nan else value == found):
                return False
    return True


@pytest.mark.parametrize("name", LOGS)
def test_what_is_read(tmp_path: Path, name: str) -> None:
    log = LOGS[name]
    path = write_log(tmp_path, name)
    nodes = write(tmp_path / "nodes.csv", log.machines) if log.machines else None
    for format in formats_of(name):
        trace = read_trace(path, nodes=nodes, format=format)
        assert trace.name == log.name and trace.files == ((path, nodes) if nodes else (path,))
        for key, value in log.truth.items():
            if key == "left_out":
                assert [str(one) for one in trace.left_out] == value
            elif isinstance(value, list):
                np.testing.assert_allclose(getattr(trace, key), value, rtol=1e-15, err_msg=key)
            else:
                assert getattr(trace, key) == value, key


@pytest.mark.parametrize("name", [name for name in HEADLESS if LOGS[name].delimiter])
def test_names_in_the_first_line_are_no_row_though_none_are_needed(tmp_path: Path, name: str) -> None:
    plain = read_trace(write_log(tmp_path, name), format=name)
    header = (LOGS[name].delimiter or "").join(LOGS[name].columns)
    assert same(plain, read_trace(write_log(tmp_path, name, [header, *LOGS[name].lines]), format=name))


@pytest.mark.parametrize("name", LOGS)
def test_packed_files_marks_and_line_ends_change_nothing(tmp_path: Path, name: str) -> None:
    plain = read_trace(write_log(tmp_path, name), format=LOGS[name].name)
    content = text(LOGS[name].lines)
    variants = [
        content,
        codecs.BOM_UTF8 + content,
        content.replace(b"\n", b"\r\n"),
        content.replace(b"\n", b"\n\n"),
        content[:-1],
    ]
    for variant in variants:
        for path in (tmp_path / f"v.{LOGS[name].suffix}", tmp_path / "v.gz"):
            for format in formats_of(name):
                assert same(plain, read_trace(write(path, variant), format=format))


def fields() -> Any:
    for name, log in LOGS.items():
        for column in log.read:
            for value in BAD + (("1.5",) if column in log.whole else ()):
                if column in log.signed and value.startswith("-"):
                    continue
                if (value or column not in log.gaps) and (value or log.delimiter):
                    yield name, column, value


@pytest.mark.parametrize(("name", "column", "value"), list(fields()))
def test_bad_fields_are_named_or_skipped(tmp_path: Path, name: str, column: str, value: str) -> None:
    log = LOGS[name]
    rows = [*log.rows[: log.changed], log.with_field(column, value), *log.rows[log.changed + 1 :]]
    path = write_log(tmp_path, name, [*log.head, *rows])
    for format in formats_of(name):
        with pytest.raises(TraceFormatError) as caught:
            read_trace(path, format=format)
        error = caught.value
        assert (error.path, error.line, error.column) == (str(path), len(log.head) + log.changed + 1, column)
    if value == "1.5":
        assert error.reason == "must be a whole number, got '1.5'"
    found = read_trace(path, format=log.name, on_error="skip")
    assert found.dropped["malformed"] == 1
    assert len(found.arrival) == len(log.truth["arrival"]) - 1


@pytest.mark.parametrize("name", [name for name in FOUND if name not in (*HEADLESS, "slurm")])
def test_a_missing_column_is_named_on_line_1(tmp_path: Path, name: str) -> None:
    """In Slurm's another one takes the place of the processors."""
    log = LOGS[name]
    for column in set(log.read) - set(log.spare):
        header = log.lines[0].replace(column, "spare")
        path = write_log(tmp_path, name, [header, *log.rows])
        for format in formats_of(name):
            with pytest.raises(TraceFormatError, match=f":1: {column}: missing column"):
                read_trace(path, format=format, on_error="skip")


@pytest.mark.parametrize("name", HEADLESS)
@pytest.mark.parametrize("value", ["x", "-2", "nan", "1e30"])
def test_a_bad_field_in_the_line_by_which_a_format_is_recognised(
    tmp_path: Path, name: str, value: str
) -> None:
    log = LOGS[name]
    for column in log.read:
        if column in log.signed and value.startswith("-"):
            continue
        path = write_log(tmp_path, name, [log.with_field(column, value), *log.rows])
        with pytest.raises(TraceFormatError, match=f":1: {column}: must be"):
            read_trace(path)


@pytest.mark.parametrize("name", LOGS)
def test_rows_of_another_width(tmp_path: Path, name: str) -> None:
    log = LOGS[name]
    delimiter = log.delimiter or " "
    for row in (log.rows[0] + delimiter + "1", log.rows[0].rpartition(delimiter)[0], "broken"):
        path = write_log(tmp_path, name, [*log.lines, row])
        match = rf":{len(log.lines) + 1}: expected {len(log.columns)} col"
        for format in formats_of(name):
            with pytest.raises(TraceFormatError, match=match):
                read_trace(path, format=format)
            assert read_trace(path, format=format, on_error="skip").dropped["malformed"] == 1


@pytest.mark.parametrize("name", [name for name in LOGS if LOGS[name].sizes])
@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf", "", "0"])
def test_bad_fields_of_a_machine(tmp_path: Path, name: str, value: str) -> None:
    header, *rows = LOGS[name].machines
    tasks = write_log(tmp_path, name)
    whole = read_trace(tasks, nodes=write(tmp_path / "good.csv", [header, *rows]), format=name)
    assert isinstance(whole, Trace)
    for column in LOGS[name].sizes:
        cells = rows[0].split(",")
        cells[header.split(",").index(column)] = value
        nodes = write(tmp_path / "nodes.csv.gz", [header, *rows, ",".join(cells)])
        with pytest.raises(TraceFormatError) as caught:
            read_trace(tasks, nodes=nodes)
        assert (caught.value.path, caught.value.line, caught.value.column) == (str(nodes), 4, column)
        found = read_trace(tasks, nodes=nodes, on_error="skip")
        assert isinstance(found, Trace) and found.rows == whole.rows
        assert found.machine_cores.tolist() == whole.machine_cores.tolist()
        assert found.dropped == {**whole.dropped, "machine: malformed": 1}
    with pytest.raises(TraceFormatError, match=r"none\.csv: has no machine \(left out: malformed: 1\)"):
        read_trace(tasks, nodes=write(tmp_path / "none.csv", [header, "broken"]), on_error="skip")
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        read_trace(tasks, nodes=tmp_path / "absent.csv")


@pytest.mark.parametrize("name", LOGS)
def test_nothing_left_damaged_and_missing_files(tmp_path: Path, name: str) -> None:
    log = LOGS[name]
    what = "job" if formats()[log.name].gives == ("bytes",) else "task"
    path = write_log(tmp_path, name, [*log.head, "broken"])
    with pytest.raises(TraceFormatError, match=rf"log.*: has no {what} \(left out: malformed: 1\)$"):
        read_trace(path, format=log.name, on_error="skip")
    with pytest.raises(TraceFormatError, match=rf"log.*: has no {what}$"):
        read_trace(write(path, log.head), format=log.name)
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(text([*log.head, *log.rows * 50]))[:-9])
    for on_error in ("raise", "skip"):
        with pytest.raises(TraceFormatError, match=r"log\.gz:\d+: the gzip file is cut off"):
            read_trace(packed, format=log.name, on_error=on_error)
        with pytest.raises(FileNotFoundError, match="no such trace file: .*absent"):
            read_trace(tmp_path / "absent", format=log.name, on_error=on_error)
    with pytest.raises(FileNotFoundError, match=r"no such trace file: .*absent\.csv\.gz"):
        read_trace(tmp_path / "absent.csv.gz")


@pytest.mark.parametrize("name", [name for name in LOGS if name != "google2011"])  # it reads further
def test_arguments_and_limits(tmp_path: Path, name: str) -> None:
    path, format = write_log(tmp_path, name), LOGS[name].name
    for wrong, reason in (
        ({"limit": 0}, "limit: must be None or a whole number of tasks >= 1, got 0"),
        ({"on_error": "ignore"}, "on_error: must be 'raise' or 'skip', got 'ignore'"),
    ):
        with pytest.raises(InvalidParameter, match=reason):
            read_trace(path, format=format, **wrong)  # type: ignore[arg-type]
    count = len(LOGS[name].truth["arrival"])
    write_log(tmp_path, name, [*LOGS[name].lines, "broken"])
    assert len(read_trace(path, format=format, limit=1).arrival) == 1
    assert len(read_trace(path, format=format, limit=count).arrival) == count  # the rest is not read
    with pytest.raises(TraceFormatError, match=f":{len(LOGS[name].lines) + 1}: expected "):
        read_trace(path, format=format, limit=count + 1)


@pytest.mark.parametrize("name", LOGS)
def test_the_first_line_tells_the_format(name: str) -> None:
    line = LOGS[name].lines[0]
    assert [other for other, format in formats().items() if format.recognises(line)] == [LOGS[name].name]
    if name in HEADLESS:
        assert formats()[name].recognises(LOGS[name].rows[0])
        assert not formats()[name].recognises((LOGS[name].delimiter or " ").join(LOGS[name].columns) + "x")


@pytest.mark.parametrize("name", LOGS)
def test_facts(tmp_path: Path, name: str) -> None:
    path = write_log(tmp_path, name)
    nodes = write(tmp_path / "nodes.csv", LOGS[name].machines) if LOGS[name].machines else None
    format = formats_of(name)[-1]
    facts, found = inspect_trace(path, nodes, format=format), read_trace(path, nodes=nodes, format=format)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["format"] == found.name == LOGS[name].name and facts["files"] == [
        str(file) for file in found.files
    ]
    assert facts["rows"] == found.rows and facts["dropped"] == found.dropped
    assert facts.get("tasks", facts.get("jobs")) == len(found.arrival)
    assert (facts["first_arrival"], facts["last_arrival"]) == (found.arrival[0], found.arrival[-1])


def play(**arguments: Any) -> dict[str, float]:
    """The metrics of an episode of QueueDelay under its first feasible choices."""
    env: Any = gym.make("schedgym/QueueDelay-v0", window=8, **arguments).unwrapped
    return playing.play(env, lambda seen: int(np.flatnonzero(seen["action_mask"])[0]), 3).metrics


@pytest.mark.parametrize("name", ["alibaba", "alibaba2020", "google2011", "swf"])
def test_queue_delay_runs_on_tasks_and_machines(tmp_path: Path, name: str) -> None:
    nodes = write(tmp_path / "nodes.csv", MACHINES if name == "google2011" else LOGS[name].machines)
    own: dict[str, Any] = {"trace": str(write_log(tmp_path, name)), "tasks": 3, "servers": 2}
    metrics = play(nodes=str(nodes), **own | ({"servers": 3} if name == "google2011" else {}))
    assert metrics["stranded"] == 0 and 0 < metrics["utilization_cpu"] <= 1
    assert 0 < metrics["utilization_memory"] <= 1
    if name == "swf":  # has machines without memory, which then limits nothing
        assert play(**own)["utilization_memory"] == 0
        return
    with pytest.raises(InvalidParameter, match=f"nodes: the {name} trace needs its file of machines"):
        play(**own)
