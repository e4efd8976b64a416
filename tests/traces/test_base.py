from __future__ import annotations

import bz2
import gzip
import io
import lzma
import math
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedgym.errors import InvalidParameter, InvalidWorkload, TraceFormatError, UnknownName
from schedgym.problems.queue_delay.log import workload_of
from schedgym.traces import inspect_trace, read_trace
from schedgym.traces.base import LARGEST, Column, JobTrace, LeftOut, Trace, fitting, offered_load
from schedgym.traces.declaration import TableLayout
from schedgym.traces.table import TableReader
from schedgym.traces.texts import LONGEST_LINE, first_line
from tests.long import long
from tests.tables import table as cases
from tests.traces.logs import write

A, B = Column("a", "s"), Column("b", "cores", exclusive=True)
GAP = Column("gap", "s", optional=True)


def table(path: Path, *numbers: Column, on_error: str = "raise", **layout: Any) -> TableReader:
    return TableReader(path, TableLayout(columns={}, **layout), on_error, numbers=numbers or (A, B))


def refused(table: TableReader) -> tuple[int, str, str]:
    with pytest.raises(TraceFormatError) as caught:
        list(table.rows())
    error = caught.value
    assert error.path == str(table.path)
    assert str(error).startswith(f"{table.path}:{error.line}: " if error.line else f"{table.path}: ")
    assert "\n" not in str(error)
    return error.line, error.column, error.reason


# --- Table: what is read


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_columns_are_found_by_name_in_any_order(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, "b,other,a\n2,x,1\n4.5,,3e2\n")
    assert list(table(path).rows()) == [(1.0, 2.0), (300.0, 4.5)]


def test_blanks_and_quotes_change_nothing(tmp_path: Path) -> None:
    for content in (b"a,b\n\n1,2\n  \n\n", b" a , b \n 1 , 2 \n", b'"a",b\n"1",2\n'):
        assert list(table(write(tmp_path / "t.csv", content)).rows()) == [(1.0, 2.0)]


def test_a_quoted_delimiter_does_not_split(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", 'name,a\n"x,""y",7\n')
    assert list(table(path, A).rows()) == [(7.0,)]


def test_an_optional_empty_field_is_nan_and_a_required_one_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,gap\n1,\n2,3\n,4\n")
    rows = table(path, A, GAP).rows()
    first = next(rows)
    assert first[0] == 1.0 and math.isnan(first[1])
    assert next(rows) == (2.0, 3.0)
    with pytest.raises(TraceFormatError, match=r"t\.csv:4: a: is empty, must be a number"):
        next(rows)


# --- Table: what is refused


@pytest.mark.parametrize(
    ("field", "reason"),
    cases(__file__, "test_bad_numbers_are_refused_with_line_and_column"),
)
def test_bad_numbers_are_refused_with_line_and_column(tmp_path: Path, field: str, reason: str) -> None:
    path = write(tmp_path / "t.csv", f"b,a\n1,1\n1,{field}\n")
    assert refused(table(path)) == (3, "a", reason)
    skipping = table(path, on_error="skip")
    assert list(skipping.rows()) == [(1.0, 1.0)]
    assert skipping.dropped == {"malformed": 1}


def test_range_limits_themselves(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f"a,b\n0,1\n{LARGEST:.0f},1\n0,0\n")
    rows = table(path).rows()
    assert [next(rows), next(rows)] == [(0.0, 1.0), (LARGEST, 1.0)]
    with pytest.raises(TraceFormatError, match=r":4: b: must be > 0 \(cores\), got '0'"):
        next(rows)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1,2,3", "expected 2 columns, got 3"),
        (b"1", "expected 2 columns, got 1"),
        (b"1,\xff", "not UTF-8 text (byte 3 of the line)"),
        (b'1,"2', "bad quoting: unexpected end of data"),
        (b"1," + b"2" * LONGEST_LINE, f"line is longer than {LONGEST_LINE} bytes"),
    ],
    ids=["too many", "too few", "encoding", "quote", "length"],
)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_bad_lines_are_refused_or_skipped_and_counted(
    tmp_path: Path, line: bytes, reason: str, name: str
) -> None:
    path = write(tmp_path / name, b"a,b\n\n1,2\n" + line + b"\n3,4\n" + line + b"\n")
    assert refused(table(path)) == (4, "", reason)
    skipping = table(path, on_error="skip")
    assert list(skipping.rows()) == [(1.0, 2.0), (3.0, 4.0)]
    assert skipping.dropped == {"malformed": 2}
    assert skipping.line == 6


@pytest.mark.parametrize("length", [LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1, 2 * LONGEST_LINE + 2])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_the_longest_line(tmp_path: Path, length: int, end: bytes) -> None:
    long = b"7," + b"x" * (length - 2)
    path = write(tmp_path / "t.csv", b"a,note\n" + long + end)
    skipping = table(path, A, on_error="skip")
    assert list(skipping.rows()) == ([(7.0,)] if length <= LONGEST_LINE else [])
    assert skipping.line == 2


def test_memory_does_not_grow_with_a_file_of_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv.gz", b"a\n" + b"1" * (64 * LONGEST_LINE))
    tracemalloc.start()
    try:
        assert list(table(path, A, on_error="skip").rows()) == []
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * LONGEST_LINE


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(
    ("header", "line", "column", "reason"), cases(__file__, "test_a_bad_header_is_refused_in_any_case")
)
def test_a_bad_header_is_refused_in_any_case(
    tmp_path: Path, header: str, line: int, column: str, reason: str, on_error: str
) -> None:
    path = write(tmp_path / "t.csv", header.encode("latin-1") + (b"1,2\n" if header else b""))
    assert refused(table(path, on_error=on_error)) == (line, column, reason)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_damaged_gzip_is_refused_in_any_case(tmp_path: Path, on_error: str) -> None:
    whole = gzip.compress(("a\n" + "".join(f"{i}\n" for i in range(20_000))).encode())
    path = tmp_path / "t.csv.gz"

    path.write_bytes(whole[: len(whole) // 2])
    line, column, reason = refused(table(path, A, on_error=on_error))
    assert 1 < line < 20_001 and (column, reason) == ("", "the gzip file is cut off")

    path.write_bytes(b"a\n1\n")
    line, _, reason = refused(table(path, A, on_error=on_error))
    assert line == 1 and reason.startswith("the gzip file is corrupt: Not a gzipped file")

    path.write_bytes(whole[:-8] + bytes(4) + whole[-4:])  # every row is well formed, the checksum is not
    line, column, reason = refused(table(path, A, on_error=on_error))
    assert line == 20_002 and column == "" and reason.startswith("the gzip file is corrupt: CRC check failed")


def test_damage_within_gzip_is_never_passed_off_as_malformed_rows(tmp_path: Path) -> None:
    whole = gzip.compress(("a\n" + "".join(f"{i}\n" for i in range(20_000))).encode())
    half = len(whole) // 2
    path = tmp_path / "t.csv.gz"
    path.write_bytes(whole[:half] + bytes(64) + whole[half + 64 :])
    assert refused(table(path, A, on_error="skip"))[2].startswith("the gzip file is corrupt: ")


def test_first_line(tmp_path: Path) -> None:
    assert first_line(write(tmp_path / "t", b"\xef\xbb\xbfa,b\r\n1\n")) == "a,b"
    assert first_line(write(tmp_path / "t.gz", b"\n# \xff\na b")) == "a b"
    assert first_line(write(tmp_path / "t", b"")) == ""


# --- Trace


def test_a_trace_sorts_its_tasks_stably_and_is_read_only() -> None:
    given = np.array([3.0, 1.0, 3.0, 1.0])
    trace = Trace("test", given, np.arange(4.0), np.arange(4.0) + 10, np.arange(4.0) + 20)
    assert trace.arrival.tolist() == [1, 1, 3, 3]
    assert trace.duration.tolist() == [1, 3, 0, 2]
    assert trace.cores.tolist() == [11, 13, 10, 12]
    assert trace.memory.tolist() == [21, 23, 20, 22]
    assert trace.machine_cores.shape == trace.machine_memory.shape == (0,)
    assert trace.dropped == {} and trace.files == ()
    assert given.tolist() == [3, 1, 3, 1] and given.flags.writeable
    assert trace.job.shape == (0,)
    told = Trace("test", given, given, given, given, job=np.array([7, 8, 9, 2**53]))
    assert told.job.tolist() == [8, 2**53, 7, 9] and not told.job.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        trace.arrival[0] = 0.0


def test_a_trace_counts_the_rows_of_its_file_of_tasks() -> None:
    one = np.ones(1)
    left_out = (LeftOut("malformed", 2, 3), LeftOut("x", 3, 0), LeftOut("machine: malformed", 50, 1))
    trace = Trace("test", one, one, one, one, left_out=left_out)
    assert trace.rows == 6 and trace.dropped == {"malformed": 2, "x": 3, "machine: malformed": 50}
    four = np.ones(4)
    assert Trace("test", four, four, four, four, line=[2, 2, 2, 5], left_out=left_out).rows == 7
    assert [str(one) for one in left_out[:2]] == ["2 rows: malformed (first in line 3)", "3 rows: x"]


def test_a_trace_refuses_arrays_that_do_not_belong_together() -> None:
    two, three = np.ones(2), np.ones(3)
    with pytest.raises(InvalidWorkload, match=r"cores: must have shape \(2,\) like arrival, got \(3,\)"):
        Trace("test", two, two, three, two)
    with pytest.raises(InvalidWorkload, match=r"job: must have shape \(2,\) like arrival, got \(3,\)"):
        Trace("test", two, two, two, two, job=three)
    with pytest.raises(InvalidWorkload, match=r"machine_memory: must have shape \(2,\)"):
        Trace("test", two, two, two, two, two, three)
    with pytest.raises(InvalidWorkload, match=r"arrival: must have shape"):
        Trace("test", np.ones((1, 2)), two, two, two)


@given(size=st.integers(0, 2**53))
def test_tasks_are_counted_exactly(size: int) -> None:
    zero = np.zeros(1)
    trace = JobTrace("test", zero, zero, np.array([size]), zero, zero)
    assert trace.map_tasks().tolist() == [-(-size // 10**9)]


def test_a_job_trace_refuses_arrays_that_do_not_belong_together() -> None:
    two, three = np.ones(2), np.ones(3)
    with pytest.raises(InvalidWorkload, match=r"test trace: shuffle_bytes: must have shape \(2,\)"):
        JobTrace("test", two, two, two, three, two)


def test_whole_and_unknown_numbers() -> None:
    column = Column("n", "", minimum=2, whole=True, unknown=-1)
    assert column.parse("3.0") == 3 and np.isnan(column.parse("-1.0"))
    for bad in ("2.5", "-2", "1"):
        with pytest.raises(ValueError, match="must be"):
            column.parse(bad)


# --- read_trace


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.txt", "colour,shape\nred,round\n")
    with pytest.raises(UnknownName, match="unknown trace format 'alibabba'; did you mean 'alibaba'"):
        read_trace(path, format="alibabba")
    with pytest.raises(TraceFormatError, match=r"t\.txt:1: not a known trace format .*'colour,shape'"):
        read_trace(path)
    with pytest.raises(TraceFormatError, match="not a known trace format"):
        read_trace(write(path, ""))
    with pytest.raises(TraceFormatError, match=r"not a known trace format .*: not UTF-8 text"):
        read_trace(write(path, b"\xff\xfe"))
    with pytest.raises(TraceFormatError, match="is a folder: name its format"):
        read_trace(tmp_path)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "2"])
def test_arguments_are_checked_before_the_file_is_opened(limit: object) -> None:
    with pytest.raises(InvalidParameter, match="limit: must be None or a whole number of tasks >= 1"):
        read_trace("nowhere", limit=limit)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="on_error"):
        inspect_trace("nowhere", on_error="warn")


# --- packed files


def zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


TEXT = ("a,b\n" + "".join(f"{i},{i + 1}\n" for i in range(20_000))).encode()
PACKED = {
    "t.csv.bz2": bz2.compress(TEXT),
    "t.csv.xz": lzma.compress(TEXT),
    "t.zip": zipped({"folder/": b"", "folder/t.csv": TEXT, "__MACOSX/._t.csv": b"x"}),
    "t.csv": gzip.compress(TEXT),  # by its first bytes
}


@pytest.mark.parametrize("name", PACKED)
def test_packed_files_are_read_as_they_are(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(PACKED[name])
    rows = list(table(path).rows())
    assert len(rows) == 20_000 and rows[-1] == (19_999.0, 20_000.0)
    for cut in (len(PACKED[name]) // 2, len(PACKED[name]) - 1):
        path.write_bytes(PACKED[name][:cut])
        assert " file is " in refused(table(path, on_error="skip"))[2]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "t.zip",
            zipped({"a.csv": b"a,b\n", "b.csv": b"a,b\n"}),
            "the zip archive has 2 files: unpack it, and",
        ),
        ("t.zip", zipped({}), "the zip file is corrupt: |the zip archive has 0 files"),
        ("t.zip", b"a,b\n1,2\n", "the zip file is corrupt: File is not a zip file"),
        ("t.xlsx", zipped({"a.xml": b"", "b.xml": b""}), "the zip archive has 2 files"),
        ("t.csv.bz2", b"a,b\n1,2\n", "the bzip2 file is corrupt: Invalid data stream"),
        ("t.tar.gz", gzip.compress(TEXT), "is a tar archive: unpack it, and give one of its files"),
        ("t.7z", b"7z\xbc\xaf\x27\x1c....", "is a 7z archive, which is not read: unpack it"),
        pytest.param(
            "t.csv.xz",
            lzma.compress(b"a,b\n" + b"1,2\n" * 2**22),
            "expands to more than 200 times its size",
            marks=long,
        ),
    ],
)
def test_what_is_not_one_packed_text_file_is_refused(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TraceFormatError, match=reason) as caught:
        list(table(path, on_error="skip").rows())
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python reads Zstandard")
def test_zstandard_is_refused_where_python_has_none(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd....")
    assert refused(table(path))[2] == "is packed by Zstandard, which needs Python 3.14: unpack it"


# --- tasks and machines


def test_tasks_fit_as_in_the_problems() -> None:
    """A demand of all of a machine fits it, whatever the rounding of the sums that it comes from."""
    trace = Trace(
        "made",
        arrival=np.arange(4.0),
        duration=np.ones(4),
        cores=np.array([0.1 + 0.2, 0.3 * (1 + 1e-8), 0.3, 0.15]),
        memory=np.array([8.0, 8.0, 8.0 * (1 + 1e-10), 4.5]),
        machine_cores=np.array([0.3, 0.15]),
        machine_memory=np.array([8.0, 4.0]),
    )
    assert fitting(trace).tolist() == [True, False, True, True]
    kept = Trace(
        "made",
        *(getattr(trace, name)[fitting(trace)] for name in ("arrival", "duration", "cores", "memory")),
        machine_cores=trace.machine_cores,
        machine_memory=trace.machine_memory,
    )
    assert workload_of(kept).jobs["cpu"].tolist() == [1.0, 1.0, 0.5]  # which checks the same


def test_the_offered_load_is_the_volume_over_the_capacity() -> None:
    sizes = {"machine_cores": np.array([4.0, 4.0]), "machine_memory": np.zeros(2)}
    trace = Trace(
        "made", np.array([0.0, 10.0]), np.array([20.0, 5.0]), np.array([2.0, 4.0]), np.ones(2), **sizes
    )
    assert offered_load(trace) == {"cores": pytest.approx(60 / 80), "memory": None}
    alone = Trace("made", np.zeros(1), np.ones(1), np.ones(1), np.ones(1), **sizes)
    assert offered_load(alone) == {"cores": None, "memory": None}


def test_a_zip_whose_name_is_no_text_is_refused_by_its_own(tmp_path: Path) -> None:
    path = tmp_path / "log.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("jöb.csv", "a\n1\n")
    path.write_bytes(path.read_bytes().replace("ö".encode(), b"\xff\xfe"))
    with pytest.raises(TraceFormatError, match=r"log\.zip:1: the zip file is corrupt: "):
        first_line(path)
