from __future__ import annotations

import csv
import gzip
import json
import os
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schedgym  # noqa: F401  (registers the ids)
from schedgym.errors import InvalidParameter, InvalidWorkload, TraceFormatError
from schedgym.problems.queue_delay.workload import from_trace
from schedgym.traces import JobTrace, formats, inspect_trace, read_trace
from schedgym.traces.base import Column
from schedgym.traces.fetch import KNOWN

ROWS = [
    "job0\t9\t9\t1762\t0\t14347",
    "job1\t18\t9\t3000000000\t609\t697",
    "job2\t18\t0\t3000000001\t1510005522\t5759777",
    "job3\t22\t4\t0\t49\t0",
    "job4\t25.5\t3.5\t404\t22\t191",
]
NAMES = tuple(formats()["swim"].names)


def read_swim(path: Path, **options: Any) -> JobTrace:
    trace = read_trace(path, format="swim", **options)
    assert isinstance(trace, JobTrace)
    return trace


def text(rows: list[str]) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return write(tmp_path / "jobs.tsv", text(ROWS))


def test_fields_and_units(jobs: Path) -> None:
    trace = read_swim(jobs)
    assert trace.name == "swim"
    assert trace.arrival.tolist() == [9, 18, 18, 22, 25.5]
    assert trace.gap.tolist() == [9, 9, 0, 4, 3.5]
    assert trace.input_bytes.tolist() == [1762, 3000000000, 3000000001, 0, 404]
    assert trace.shuffle_bytes.tolist() == [0, 609, 1510005522, 49, 22]
    assert trace.output_bytes.tolist() == [14347, 697, 5759777, 0, 191]
    assert trace.dropped == {} and trace.rows == 5 and trace.files == (jobs,)
    assert repr(trace) == "JobTrace('swim', jobs: 5, dropped: {})"


def test_gzip_and_read_trace_give_the_same(jobs: Path, tmp_path: Path) -> None:
    plain = read_swim(jobs)
    for path in (jobs, write(tmp_path / "jobs.tsv.gz", jobs.read_bytes())):
        for format in (None, "swim"):
            trace = read_trace(str(path), format=format)
            assert isinstance(trace, JobTrace)
            for field in ("arrival", "gap", "input_bytes", "shuffle_bytes", "output_bytes"):
                assert np.array_equal(getattr(plain, field), getattr(trace, field))


def test_harmless_variants_read_the_same(jobs: Path, tmp_path: Path) -> None:
    content = jobs.read_bytes()
    for variant in (
        b"\xef\xbb\xbf" + content,
        content.replace(b"\n", b"\r\n"),
        content.replace(b"\n", b"\n\n"),
    ):
        trace = read_trace(write(tmp_path / "variant.tsv", variant))
        assert trace.arrival.tolist() == [9, 18, 18, 22, 25.5] and trace.dropped == {}


def test_jobs_are_sorted_stably_by_arrival(tmp_path: Path) -> None:
    trace = read_swim(write(tmp_path / "jobs.tsv", text([ROWS[4], ROWS[2], ROWS[1], ROWS[0]])))
    assert trace.arrival.tolist() == [9, 18, 18, 25.5]
    assert trace.input_bytes.tolist() == [1762, 3000000001, 3000000000, 404]
    assert trace.gap.tolist() == [9, 0, 9, 3.5]
    with pytest.raises(ValueError, match="read-only"):
        trace.gap[0] = 0.0


def test_tasks_by_input() -> None:
    zero = np.zeros(5)
    sizes = np.array([0, 1, 10**9, 10**9 + 1, 2**53])
    trace = JobTrace("test", np.arange(5.0), zero, sizes, zero, zero)
    assert trace.map_tasks().tolist() == [0, 1, 1, 2, 9007200]


@given(size=st.integers(0, 2**53))
def test_tasks_are_counted_exactly(size: int) -> None:
    zero = np.zeros(1)
    trace = JobTrace("test", zero, zero, np.array([size]), zero, zero)
    assert trace.map_tasks().tolist() == [-(-size // 10**9)]


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    two, three = np.ones(2), np.ones(3)
    with pytest.raises(InvalidWorkload, match=r"test trace: shuffle_bytes: must have shape \(2,\)"):
        JobTrace("test", two, two, two, three, two)


# --- errors


@pytest.mark.parametrize("column", NAMES[1:])
@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf", "", "1e20"])
def test_bad_fields(tmp_path: Path, column: str, value: str) -> None:
    fields = ROWS[1].split("\t")
    fields[NAMES.index(column)] = value
    path = write(tmp_path / "jobs.tsv", text([ROWS[0], "\t".join(fields), ROWS[2]]))
    for read in (read_swim, read_trace):
        with pytest.raises(TraceFormatError) as caught:
            read(path)
        assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 2, column)
    trace = read_trace(path, on_error="skip")
    assert trace.arrival.tolist() == [9, 18] and trace.dropped == {"malformed": 1} and trace.rows == 3
    # also as the first line, by which the format is recognised
    path = write(path, text(["\t".join(fields), ROWS[0]]))
    with pytest.raises(TraceFormatError, match=f":1: {column}: must be|:1: {column}: is empty"):
        read_trace(path)


@pytest.mark.parametrize("column", NAMES[3:])
def test_bytes_are_whole(tmp_path: Path, column: str) -> None:
    fields = ROWS[1].split("\t")
    fields[NAMES.index(column)] = "0.5"
    path = write(tmp_path / "jobs.tsv", text(["\t".join(fields)]))
    with pytest.raises(TraceFormatError, match=f":1: {column}: must be a whole number, got '0.5'"):
        read_trace(path)


def test_whole_and_unknown_numbers() -> None:
    column = Column("n", "", minimum=2, whole=True, unknown=-1)
    assert column.parse("3.0") == 3 and np.isnan(column.parse("-1.0"))
    for bad in ("2.5", "-2", "1"):
        with pytest.raises(ValueError, match="must be"):
            column.parse(bad)


@pytest.mark.parametrize("row", ["job9 30 5 1 2 3", ROWS[0] + "\t1", ROWS[0][:-8], "job9"])
def test_a_row_of_another_width(tmp_path: Path, row: str) -> None:
    path = write(tmp_path / "jobs.tsv", text([ROWS[0], row]))
    with pytest.raises(TraceFormatError, match=r"jobs\.tsv:2: expected 6 columns, got"):
        read_trace(path)
    assert read_trace(path, on_error="skip").dropped == {"malformed": 1}


def test_damaged_missing_and_empty_files(tmp_path: Path) -> None:
    path = tmp_path / "jobs.tsv.gz"
    path.write_bytes(gzip.compress(text(ROWS * 2000))[:-9])
    for on_error in ("raise", "skip"):
        with pytest.raises(TraceFormatError, match=r"jobs\.tsv\.gz:\d+: the gzip file is cut off"):
            read_trace(path, on_error=on_error)
    with pytest.raises(FileNotFoundError, match=r"absent\.tsv"):
        read_swim(tmp_path / "absent.tsv")
    path = write(tmp_path / "none.tsv", b"job0\tx\n")
    with pytest.raises(TraceFormatError, match=r"none\.tsv: has no job \(left out: malformed: 1\)"):
        read_swim(path, on_error="skip")
    with pytest.raises(TraceFormatError, match=r"none\.tsv: has no job$"):
        read_swim(write(path, b""))


def test_arguments(jobs: Path) -> None:
    with pytest.raises(InvalidParameter, match="nodes: the swim format has no machines, got 'machines.csv'"):
        read_trace(jobs, nodes="machines.csv")
    with pytest.raises(InvalidParameter, match="limit"):
        read_swim(jobs, limit=0)
    with pytest.raises(InvalidParameter, match="on_error"):
        read_swim(jobs, on_error="ignore")


def test_limit_stops_reading_at_the_last_selected_job(tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.tsv", text([*ROWS[:3], "broken"]))
    assert read_swim(path, limit=3).arrival.tolist() == [9, 18, 18]
    with pytest.raises(TraceFormatError, match=":4: expected 6 columns, got 1"):
        read_swim(path, limit=4)
    assert read_trace(path, limit=2).rows == 2


# --- the rest of the house


def test_detection() -> None:
    recognises = formats()["swim"].recognises
    assert recognises(ROWS[0]) and recognises(ROWS[4])
    assert not recognises(ROWS[0].replace("\t", ","))
    assert not recognises("job\tsubmit\tgap\tinput\tshuffle\toutput")
    assert not any(f.recognises(ROWS[0]) for name, f in formats().items() if name != "swim")


def test_inspect(jobs: Path) -> None:
    facts = inspect_trace(jobs)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["format"] == "swim" and facts["files"] == [str(jobs)]
    assert (facts["rows"], facts["jobs"], facts["dropped"]) == (5, 5, {})
    assert (facts["first_arrival"], facts["last_arrival"]) == (9, 25.5)
    assert facts["jobs_with_input"] == 4 and facts["map_tasks"] == 1 + 3 + 4 + 1
    assert facts["input_bytes"]["median"] == 1762 and facts["output_bytes"]["max"] == 5759777
    assert "tasks" not in facts and "duration" not in facts


def test_queue_delay_refuses_jobs_by_bytes(jobs: Path) -> None:
    message = "trace: the swim trace has jobs by their bytes; this problem needs tasks"
    with pytest.raises(InvalidParameter, match=message) as caught:
        from_trace(read_swim(jobs))
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidParameter, match=message):
        gym.make("schedgym/QueueDelay-v0", trace=str(jobs), tasks=2, servers=1, window=8)


TRICKY = st.sampled_from([b"\t", b"\n", b"\r", b"-", b"e9", b"\x00", b'"', b"."])
EDIT = st.tuples(
    st.integers(0, 1000), st.integers(0, 3), st.one_of(st.binary(max_size=4), TRICKY)
)  # place, bytes taken out, bytes put in


@settings(max_examples=300)
@given(
    edits=st.lists(EDIT, min_size=1, max_size=4),
    packed=st.booleans(),
    on_error=st.sampled_from(["raise", "skip"]),
)
def test_any_damage_gives_valid_jobs_or_a_format_error(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, int, bytes]], packed: bool, on_error: str
) -> None:
    data = gzip.compress(text(ROWS), mtime=0) if packed else text(ROWS)
    for place, out, new in edits:
        place %= len(data) + 1
        data = data[:place] + new + data[place + out :]
    path = tmp_path_factory.getbasetemp() / ("swim.tsv.gz" if packed else "swim.tsv")
    path.write_bytes(data)
    try:
        trace = read_trace(path, format="swim", on_error=on_error)
    except TraceFormatError as error:
        assert "\n" not in str(error)
        return
    assert isinstance(trace, JobTrace) and len(trace.arrival) > 0
    assert (np.diff(trace.arrival) >= 0).all() and (trace.map_tasks() >= 0).all()
    for values in (trace.arrival, trace.gap, trace.input_bytes, trace.shuffle_bytes, trace.output_bytes):
        assert values.shape == trace.arrival.shape and np.isfinite(values).all() and (values >= 0).all()
    assert set(trace.dropped) <= ({"malformed"} if on_error == "skip" else set())
    if not packed:  # every line is a job, dropped and counted, or blank
        assert trace.rows == sum(bool(line.decode(errors="replace").strip()) for line in data.split(b"\n"))
    try:
        assert json.dumps(inspect_trace(path, on_error=on_error), allow_nan=False)
    except TraceFormatError as error:  # the first line no longer tells the format, or it tells another
        assert "\n" not in str(error)


# --- the published file

DATA = os.environ.get("SCHEDGYM_DATA")


@pytest.mark.skipif(not DATA, reason="SCHEDGYM_DATA names no folder with the public traces")
def test_the_published_facebook_workload() -> None:
    path = Path(DATA or "") / KNOWN["facebook-2010"].file
    trace = read_trace(path)
    assert isinstance(trace, JobTrace)
    assert trace.rows == len(trace.arrival) == 24442 and trace.dropped == {}
    assert (trace.input_bytes > 0).sum() == 24024
    assert trace.map_tasks().sum() == 1_102_281
    # in this file the gaps are the differences of the submit times, of the first line from 0
    assert np.array_equal(trace.gap, np.diff(trace.arrival, prepend=0.0))
    # the same facts, by another way
    with path.open(newline="") as stream:
        rows = [tuple(map(int, row[1:])) for row in csv.reader(stream, delimiter="\t")]
    got = np.column_stack(
        [trace.arrival, trace.gap, trace.input_bytes, trace.shuffle_bytes, trace.output_bytes]
    )
    assert np.array_equal(got, np.array(rows))
    facts = inspect_trace(path)
    assert (facts["jobs"], facts["jobs_with_input"], facts["map_tasks"]) == (24442, 24024, 1_102_281)
    assert (facts["first_arrival"], facts["last_arrival"]) == (9, 86408)
