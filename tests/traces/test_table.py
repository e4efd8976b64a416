"""Formats that are declared as tables: their declaration, and the one reader of them."""

from __future__ import annotations

import importlib
import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest

from schedgym.cli import main
from schedgym.core.problem import list_problems
from schedgym.documents import _loader, read_yaml
from schedgym.errors import InvalidParameter, TraceFormatError, UnknownName
from schedgym.traces import (
    Field,
    Filter,
    JobTrace,
    TableFormat,
    TableLayout,
    Trace,
    formats,
    inspect_trace,
    load_format,
    pieces,
    read_trace,
    texts,
)
from tests.long import long
from tests.tables import entry, table
from tests.traces.logs import lines as write

MINE, ROWS = entry(__file__, "MINE"), entry(__file__, "ROWS")
HEADER = "id,submitted,began,minutes,cores,mib,region,state,due"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "log.csv", HEADER, *ROWS)


def read(path: Any, **columns: Any) -> Trace:
    options = {name: columns.pop(name) for name in ("on_error", "limit", "nodes") if name in columns}
    more = {
        name: columns.pop(name) for name in ("delimiter", "names", "comment", "filters") if name in columns
    }
    declared = {name: Field(one) if isinstance(one, str) else one for name, one in columns.items()}
    trace = read_trace(path, format=TableFormat(name="t", columns=declared, **more), **options)
    assert isinstance(trace, Trace)
    return trace


# what is read -----------------------------------------------------------------------------------------------


def test_a_file_of_ones_own(mine: Path, log: Path) -> None:
    trace = read_trace(log, format=mine)
    assert isinstance(trace, Trace)
    assert trace.name == "mine" and trace.origin == "2024-03-01T00:00:00+00:00"
    assert trace.arrival.tolist() == [9 * 3600, 9 * 3600 + 0.25]  # a date without a zone is UTC
    assert trace.duration.tolist() == [120, 30]
    assert trace.cores.tolist() == [4, 1] and trace.memory.tolist() == [2, 0]
    assert trace.filled == {"memory unknown": 1}
    assert trace.start[0] == 9 * 3600 + 30 and np.isnan(trace.start[1])
    assert np.isnan(trace.deadline[0]) and trace.deadline[1] == 9 * 3600 + 60
    assert [trace.sites[int(site)] for site in trace.site] == ["west", "east"]
    assert trace.dropped == {"unfinished": 1, "execution <= 0": 1}
    assert [(one.reason, one.count, one.line) for one in trace.left_out] == [
        ("unfinished", 1, 4),
        ("execution <= 0", 1, 5),
    ]
    assert str(trace.left_out[0]) == "1 row: unfinished (first in line 4)"
    assert trace.rows == 4


def test_the_same_from_every_kind_of_table(mine: Path, log: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(log)
    typed = frame.assign(
        submitted=pd.to_datetime(frame["submitted"], utc=True, format="ISO8601"),
        began=pd.to_datetime(frame["began"], utc=True, format="ISO8601"),
        minutes=pd.to_timedelta(frame["minutes"], unit="min"),
    )
    frame.to_parquet(tmp_path / "log.parquet")
    typed.to_parquet(tmp_path / "typed.parquet")
    other = write(tmp_path / "log.csv.gz", HEADER, *ROWS)
    expected = read_trace(log, format=str(mine))
    sources = [frame, typed, tmp_path / "log.parquet", tmp_path / "typed.parquet", other]
    for source in sources:
        trace = read_trace(source, format=load_format(mine))
        for name in ("arrival", "duration", "cores", "memory", "start", "deadline", "site"):
            assert np.array_equal(getattr(expected, name), getattr(trace, name), equal_nan=True), name
        assert (trace.dropped, trace.sites, trace.origin) == (
            expected.dropped,
            expected.sites,
            expected.origin,
        )


def test_pieces_change_nothing(mine: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_trace(log, format=mine)
    for rows in (1, 2, 3, 4):
        monkeypatch.setattr(pieces.chunks, "__defaults__", (rows,))
        trace = read_trace(log, format=mine)
        assert np.array_equal(whole.arrival, trace.arrival) and whole.left_out == trace.left_out
        assert np.array_equal(whole.site, trace.site) and whole.origin == trace.origin


@pytest.mark.parametrize(("unit", "text", "seconds"), table(__file__, "test_units_of_time"))
def test_units_of_time(tmp_path: Path, unit: str, text: str, seconds: float) -> None:
    path = write(tmp_path / "t.csv", "a,b", f"{text},{text}")
    trace = read(path, submit=Field("a", unit=unit), duration=Field("b", unit=unit))
    assert trace.arrival.tolist() == trace.duration.tolist() == [seconds]


@pytest.mark.parametrize(
    ("unit", "gib"),
    [("GiB", 3), ("B", 3 / 2**30), ("KiB", 3 / 2**20), ("MiB", 3 / 1024), ("TiB", 3072), ("GB", 3e9 / 2**30)],
)
def test_units_of_memory_and_cores(tmp_path: Path, unit: str, gib: float) -> None:
    path = write(tmp_path / "t.csv", "a,b,m", "0,1,3")
    trace = read(
        path, submit="a", duration="b", memory=Field("m", unit=unit), cpus=Field("m", unit="percent")
    )
    assert trace.memory.tolist() == [gib] and trace.cores.tolist() == [0.03]


def test_epochs_and_formats_of_dates(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "at,b", "31.12.2023 23:00,1", "01.01.2024 01:00,1")
    trace = read(path, submit=Field("at", unit="date", format="%d.%m.%Y %H:%M"), duration="b")
    assert trace.arrival.tolist() == [23 * 3600, 25 * 3600] and trace.origin.startswith("2023-12-31")
    path = write(tmp_path / "t.csv", "at,b", "1700000000123.5,1")
    assert read(path, submit=Field("at", unit="ms"), duration="b").arrival.tolist() == [1700000000.1235]
    for power, unit in enumerate(("s", "ms", "us", "ns")):  # in place of dates, where all are numbers
        write(path, "at,b", *(f"{second * 1000**power},1" for second in (1700000000, 1700000060)))
        trace = read(path, submit=Field("at", unit="date"), duration="b")
        assert (trace.arrival - 1700000000).tolist() == pytest.approx([0, 60], abs=1e-6)
        assert trace.notes == (f"at: numbers, read as {unit} since 1970",)
    for epoch in ("2012121500", "1700000000,1\n2024-03-01"):  # which could be a date, or is beside one
        with pytest.raises(TraceFormatError, match=r"t\.csv:2: at: must be a date \(ISO 8601\), got"):
            read(write(path, "at,b", f"{epoch},1"), submit=Field("at", unit="date"), duration="b")


def test_the_clock_starts_on_the_day_of_the_first_submission(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "at,b", "2024-05-05T01:00:00,1", "2024-05-03T02:00:00,1")
    trace = read(path, submit=Field("at", unit="date"), duration="b")
    assert trace.arrival.tolist() == [7200, 2 * 86400 + 3600] and trace.origin == "2024-05-03T00:00:00+00:00"


def test_expressions(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "at,run time,gpus", "1,10,2", "2,20,0", "3,x,1", "4,,1")
    columns = {"submit": "at + 100", "duration": "0.5 * `run time`", "cpus": "8 * gpus", "memory": "2.5"}
    trace = read(path, **columns, limit=2)
    assert trace.arrival.tolist() == [101, 102] and trace.duration.tolist() == [5, 10]
    assert trace.cores.tolist() == [16, 0] and trace.memory.tolist() == [2.5, 2.5]
    with pytest.raises(TraceFormatError, match=r"t\.csv:4: run time: must be a number, got 'x'"):
        read(path, **columns)
    trace = read(path, **columns, on_error="skip")
    assert trace.dropped == {"malformed": 2}
    assert [(one.column, one.line, one.detail) for one in trace.left_out] == [
        ("run time", 4, "must be a number, got 'x'"),
        ("0.5 * `run time`", 5, "is empty, must be a number"),
    ]
    with pytest.raises(
        TraceFormatError, match=r":1: 2 \* \(gpus: missing column, and expression '2 \* \(gpus'"
    ):
        read(path, submit="at", duration="2 * (gpus")
    for expression, found in (("at - 2", "-1"), ("1 / (at - 1)", "inf"), ("0 / (at - 1)", "nan")):
        with pytest.raises(TraceFormatError, match=rf":2: .*: must be a number >= 0, computed {found}"):
            read(path, submit="at", duration=expression)


@pytest.mark.parametrize(
    ("source", "names", "columns"), table(__file__, "test_the_columns_that_a_field_reads")
)
def test_the_columns_that_a_field_reads(source: Any, names: str, columns: Any) -> None:
    source = tuple(source) if isinstance(source, list) else source
    assert Field(source).reads(names.split()) == (None if columns is None else tuple(columns))


def test_tasks_of_a_row(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "at,b,n,j", "5,1,2,x", "1,2,3,y", "7,1,1,x")
    trace = read(path, submit="at", duration="b", tasks="n")
    assert trace.arrival.tolist() == [1, 1, 1, 5, 5, 7] and trace.job.tolist() == [1, 1, 1, 0, 0, 2]
    trace = read(path, submit="at", duration="b", tasks="n", job="j")
    assert trace.job.tolist() == [1, 1, 1, 0, 0, 0]
    assert len(read(path, submit="at", duration="b", tasks="n", limit=3).arrival) == 3
    path = write(tmp_path / "t.csv", "at,b,n", *["5,1,1e6"] * 11)
    with pytest.raises(TraceFormatError, match=r"t\.csv: its rows stand for more than 10000000 tasks"):
        read(path, submit="at", duration="b", tasks="n")
    assert len(read(path, submit="at", duration="b", tasks="n", limit=3).arrival) == 3
    for bad in ("0", "1.5", "1e7", "-1"):
        path = write(tmp_path / "t.csv", "at,b,n", f"5,1,{bad}")
        with pytest.raises(TraceFormatError, match=":2: n: must be"):
            read(path, submit="at", duration="b", tasks="n")


def test_layouts(tmp_path: Path) -> None:
    lines = ["# a comment", "at;b c", "1;2", '"2";3', "", "3;4;5"]
    path = write(tmp_path / "t.csv", *lines)
    own: dict[str, Any] = {"submit": "at", "duration": "b c", "delimiter": ";", "comment": "#"}
    assert read(path, **own, limit=2).arrival.tolist() == [1, 2]
    with pytest.raises(TraceFormatError, match=r"t\.csv:6: expected 2 columns, got 3"):
        read(path, **own)
    path = write(tmp_path / "t.csv", "1\t2", "3\t4")
    own = {"submit": "x", "duration": "y", "delimiter": "\t", "names": ("x", "y")}
    assert read(path, **own).arrival.tolist() == [1, 3]
    assert read(write(path, "x\ty", "1\t2"), **own).arrival.tolist() == [1]  # a header, though none is needed


def test_filters(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,at,b", "1,1,1", "1.x,bad,1", "z2,1,1", "3,2,1")
    filters = (
        Filter("id", "part", contains=(".",)),
        Filter("id", "named", starts=("z",)),
        Filter("id", "third", equals=("3",)),
        Filter("none", "never", equals=("3",), optional=True),
    )
    trace = read(path, submit="at", duration="b", filters=filters)
    assert trace.dropped == {"part": 1, "named": 1, "third": 1} and len(trace.arrival) == 1
    with pytest.raises(TraceFormatError, match=r"t\.csv:1: none: missing column"):
        read(path, submit="at", duration="b", filters=(Filter("none", "never", equals=("3",)),))


def test_machines(tmp_path: Path, log: Path, mine: Path) -> None:
    nodes = write(tmp_path / "nodes.csv", "cores,memory", "8,16", "4,32", "0,1")
    with pytest.raises(TraceFormatError, match=r"nodes\.csv:4: cores: must be > 0 \(cores\), got '0'"):
        read_trace(log, format=mine, nodes=nodes)
    trace = read_trace(log, format=mine, nodes=nodes, on_error="skip")
    assert trace.machine_cores.tolist() == [8, 4] and trace.machine_memory.tolist() == [16, 32]
    assert trace.dropped["machine: malformed"] == 1 and trace.rows == 4
    assert trace.left_out[-1].reason == "machine: malformed" and trace.left_out[-1].line == 4


def test_machines_may_lack_an_optional_memory(tmp_path: Path) -> None:
    nodes = write(tmp_path / "nodes.csv", "c", "8")
    layout = TableLayout(columns={"cpus": Field("c"), "memory": Field("m", optional=True)})
    columns = {"submit": Field("at"), "duration": Field("b")}
    trace = read_trace(
        write(tmp_path / "t.csv", "at,b", "1,1"),
        nodes=nodes,
        format=TableFormat(name="t", columns=columns, machines=layout),
    )
    assert isinstance(trace, Trace)
    assert trace.machine_cores.tolist() == [8] and trace.machine_memory.tolist() == [0]


@long
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"

    def peak(rows: int) -> int:
        with path.open("w") as stream:
            stream.write("at,b,state,more\n")
            stream.writelines(
                f"{i},1,{'DONE' if i % 1000 == 0 else 'OPEN'},{'y' * 40}\n" for i in range(rows)
            )
        filters = (Filter("state", "open", equals=("OPEN",)),)
        tracemalloc.start()
        read(path, submit="at", duration="b", filters=filters)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(6 * pieces.CHUNK) < 1.1 * peak(3 * pieces.CHUNK)


# errors -----------------------------------------------------------------------------------------------------


def test_errors_of_files_name_the_place(tmp_path: Path) -> None:
    own: dict[str, Any] = {"submit": Field("at", unit="date"), "duration": "b"}
    path = tmp_path / "t.csv"
    for lines, message in table(__file__, "test_errors_of_files_name_the_place"):
        with pytest.raises(TraceFormatError, match=message):
            read(write(path, *lines), **own)
    with pytest.raises(TraceFormatError, match=r"t\.csv: has no task \(left out: malformed: 1\)"):
        read(write(path, "at,b", "x,1"), **own, on_error="skip")
    with pytest.raises(FileNotFoundError, match="absent"):
        read(tmp_path / "absent.csv", **own)
    with pytest.raises(TraceFormatError, match="x or y: missing column"):
        read(write(path, "at,b", "2024-01-01,1"), submit=own["submit"], duration=Field(("x", "y")))


def test_whole_numbers_beside_missing_ones_keep_their_text(tmp_path: Path) -> None:
    numbers = pd.array([0, 0, 0, None, 1, 0], dtype="Int64")
    frame = pd.DataFrame({"at": np.arange(6.0), "b": 1.5, "code": numbers})
    frame.set_index("code").to_parquet(tmp_path / "index.parquet")
    frame.to_parquet(tmp_path / "t.parquet")
    layout = TableLayout(columns={})
    floats = frame.assign(code=frame["code"].astype("float64"))
    for source in (tmp_path / "t.parquet", tmp_path / "index.parquet", frame, floats):
        for rows in (2, 100):
            texts = [text for piece in pieces.chunks(source, layout, rows) for text in piece.column("code")]
            assert texts == ["0", "0", "0", "", "1", "0"]
        found = read(source, filters=[Filter("code", "other", other_than=("0",))], submit="at", duration="b")
        assert found.arrival.tolist() == [0, 1, 2, 5]
        assert found.duration.tolist() == [1.5] * 4


def test_a_quoted_header_is_recognised(mine: Path, log: Path) -> None:
    header = ",".join(f'"{name}"' for name in HEADER.split(","))
    assert load_format(mine).recognises(header)
    assert not load_format(mine).recognises(header + ',"')


def test_errors_of_frames_and_parquet_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({"at": [1.0, 2.0], "b": [1, -1]})
    with pytest.raises(TraceFormatError, match="^data frame:2: b: must be >= 0"):
        read(frame, submit="at", duration="b")
    with pytest.raises(TraceFormatError, match="^data frame: c: missing column"):
        read(frame, submit="at", duration="c")
    with pytest.raises(InvalidParameter, match="must be a file or a pandas data frame, got list"):
        read([1], submit="at", duration="b")
    with pytest.raises(TraceFormatError, match="data frame: not a known trace .* the columns are 'at, b'"):
        read_trace(frame)
    with pytest.raises(InvalidParameter, match="the swf format is read from files, not DataFrame"):
        read_trace(frame, format="swf")
    dated = frame.assign(at=pd.to_datetime(["2024-01-01", "2024-01-02"]))
    with pytest.raises(
        TraceFormatError, match="either all of submit, start, end and deadline are dates, or none"
    ):
        read(dated, submit="at", end="b")
    with pytest.raises(TraceFormatError, match="data frame: at: is a date, which no expression takes"):
        read(dated, submit="at + 1", duration="b")
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    with pytest.raises(TraceFormatError, match=r"t\.parquet:2: b: must be >= 0"):
        read(path, submit="at", duration="b")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(TraceFormatError, match=r"t\.parquet: not a readable Parquet file: ") as caught:
        read(path, submit="at", duration="b")
    assert "\n" not in str(caught.value)


@long
def test_limits_of_parquet_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short file may hold a text a million times: it is read within the memory of a piece, or refused."""
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame(
        {"at": np.arange(60_000.0), "b": 1, "name": "x" * 60_000, "many": [[1] * 9] * 60_000}
    )
    frame.to_parquet(path)
    assert path.stat().st_size < 10**6
    names = pieces.column_names(path, TableLayout(columns={}))
    assert names == ("at", "b", "name")  # no lists
    tracemalloc.start()
    found = read(path, submit="at", duration="b", job="name")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.arrival) == 60_000 and most < 2**26
    monkeypatch.setattr(pieces, "MOST_CELLS", 300)
    sizes = [len(piece.lines) for piece in pieces.chunks(path, TableLayout(columns={}))]
    assert max(sizes) == 100 and sum(sizes) == 60_000
    frame.iloc[:3].assign(name="x" * 70_000).to_parquet(path)
    with pytest.raises(TraceFormatError, match=r"t\.parquet:1: name: a text .* longer than 65536 bytes"):
        read(path, submit="at", duration="b")
    for module, name, value, what in (
        (pieces, "MOST_LINES", 2, "2 rows"),
        (pieces, "MOST_BYTES", 15, "7 numbers"),
        (texts, "MOST_BYTES", 99, "99 bytes"),
        (texts, "START", 99, None),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            patch.setattr(texts, "MOST_RATIO", 0.01)
            match = f"more than {what}" if what else "expands to more than 0.01 times its size"
            with pytest.raises(TraceFormatError, match=match):
                read(path, submit="at", duration="b")


BAD = read_yaml(Path(__file__).with_name("declarations.yaml"))


@pytest.mark.parametrize("text", BAD)
def test_bad_declarations_are_one_line(mine: Path, text: str) -> None:
    rest = {"name": "name: x", "columns": "columns: {submit: a, duration: b}"}
    rest.pop(text.partition(":")[0], None)
    mine.write_text("\n".join([text, *rest.values()]) + "\n")
    with pytest.raises((InvalidParameter, UnknownName), match=BAD[text]) as caught:
        load_format(mine)
    assert "\n" not in str(caught.value) and "mine.yaml" in str(caught.value)


def test_declarations_that_are_none(tmp_path: Path, mine: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_format(tmp_path / "none.yaml")
    for text in ("", "a: &x 1\nb: *x\n", "- 1\n", "name: [\n", "columns: {submit: a, duration: b}\n"):
        mine.write_text(text)
        with pytest.raises(InvalidParameter, match=r"^mine\.yaml: ") as caught:
            load_format(mine)
        assert "\n" not in str(caught.value)
    with pytest.raises(
        InvalidParameter, match="machines: must be none, as jobs by their bytes use no machines"
    ):
        TableFormat(name="x", columns={n: Field(n) for n in ("submit", "gap", "input", "shuffle", "output")})
    with pytest.raises(InvalidParameter, match="^columns.submit: must be a Field, got 'at'"):
        TableFormat(name="x", columns={"submit": "at", "duration": Field("b")})  # type: ignore[dict-item]
    with pytest.raises(InvalidParameter, match="name: must be a text"):
        TableFormat(name="", columns={"submit": Field("a"), "duration": Field("b")})


def test_missing_extras_name_the_command(log: Path, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = load_format(mine)
    for module, source in (("pandas", log), ("pyarrow.parquet", Path("x.parquet"))):
        with monkeypatch.context() as context:
            context.setitem(sys.modules, module, None)
            context.chdir(log.parent)
            Path("x.parquet").write_bytes(b"PAR1")
            with pytest.raises(gym.error.DependencyNotInstalled, match=r'pip install "schedgym\['):
                read_trace(source, format=own)


def test_readers_that_are_no_tables_need_no_extra(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    formats.cache_clear()
    _loader.cache_clear()
    monkeypatch.setitem(sys.modules, "yaml", None)
    swf = write(tmp_path / "t.swf", "1 0 0 60 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1")
    assert read_trace(swf).name == read_trace(swf, format="swf").name == "swf"
    for options in ({}, {"format": "slurm"}):
        with pytest.raises(gym.error.DependencyNotInstalled, match=r'pip install "schedgym\[eval\]"'):
            read_trace(log, **options)


# the rest of the house --------------------------------------------------------------------------------------


def test_entry_points_add_formats(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mine: Path, log: Path
) -> None:
    folder = tmp_path / "third_party_formats-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: third-party-formats\nVersion: 1.0\n")
    points = "one = third_party_formats:ONE\ntwo = third_party_formats:TWO\n"
    (folder / "entry_points.txt").write_text(f"[schedgym.traces]\n{points}")
    (tmp_path / "third_party_formats.py").write_text(
        "from schedgym.traces import Field, TableFormat\n"
        f"ONE = {str(mine)!r}\n"
        "TWO = TableFormat(name='two', columns={'submit': Field('when'), 'duration': Field('long')})\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    formats.cache_clear()
    try:
        assert {"mine", "two"} <= set(formats())
        assert read_trace(log).name == "mine"
        assert read_trace(write(tmp_path / "t.csv", "when,long", "1,2")).name == "two"
    finally:
        formats.cache_clear()
        importlib.invalidate_caches()


def test_an_environment_takes_a_format_of_ones_own(tmp_path: Path, log: Path, mine: Path) -> None:
    nodes = str(write(tmp_path / "nodes.csv", "cores,memory", "8,16", "4,32"))
    own: dict[str, Any] = {"trace": str(log), "nodes": nodes, "tasks": 2, "servers": 1}
    env = gym.make("schedgym/QueueDelay-v0", trace_format=str(mine), **own)
    env.reset(seed=0)
    with pytest.raises(TraceFormatError, match="not a known trace format"):
        gym.make("schedgym/QueueDelay-v0", **own)
    with pytest.raises(UnknownName, match="unknown trace format 'slrm'; did you mean 'slurm'"):
        gym.make("schedgym/QueueDelay-v0", trace_format="slrm", **own)
    with pytest.raises(InvalidParameter, match="trace_format: needs a trace"):
        gym.make("schedgym/QueueDelay-v0", trace_format="slurm")


def test_problems_take_what_they_say() -> None:
    """What a descriptor names is what its ``from_trace`` takes."""
    ones = np.ones(2)
    tasks = Trace("t", ones, ones, ones, ones, ones, ones)
    jobs = Trace("t", ones, ones, ones, ones, ones, ones, job=np.array([0.0, 1.0]))
    sizes = JobTrace("t", ones, ones, 1e9 * ones, ones, ones)
    for problem in list_problems().values():
        if not problem.traces:
            assert "trace" not in problem.parameters.kinds()
            continue
        from_trace = problem.module("workload").from_trace
        parameters = problem.build(next(iter(problem.ids)))
        for kind, trace in (("tasks", tasks), ("jobs", jobs), ("bytes", sizes)):
            taken = kind in problem.traces or (kind == "jobs" and "tasks" in problem.traces)
            more = (parameters,) if problem.name in ("flowtime", "partial-value") else ()
            try:
                from_trace(trace, *more)
            except InvalidParameter:
                assert not taken, f"{problem.name} does not take {kind}"
            else:
                assert taken, f"{problem.name} takes {kind}"


def test_commands(log: Path, mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    assert main(["trace", "inspect", str(log), "--format", str(mine), "--json", str(out)]) == 0
    facts = json.loads(out.read_text())
    assert (
        facts["format"] == "mine"
        and facts["licence"] == "ours"
        and facts["notes"]
        == [
            "as of June",
            "state: kept DONE 2, FAILED 1; left out as unfinished RUNNING 1",
        ]
    )
    assert facts["left_out"] == [
        "1 row: unfinished (first in line 4)",
        "1 row: execution <= 0 (first in line 5)",
    ]
    assert inspect_trace(log, format=mine) == facts
    out.unlink()
    capsys.readouterr()
    for arguments, message in table(__file__, "test_commands"):
        assert main(["trace", "inspect", str(log), *arguments, "--json", str(out)]) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1 and not out.exists()
    assert main(["trace", "list", "--json", str(out)]) == 0
    listed = {one["name"]: one for one in json.loads(out.read_text())["formats"]}
    assert set(listed) == set(formats())
    assert listed["swim"]["feeds"] == [
        "schedgym/GeoAssign-v0",
        "schedgym/GeoFair-v0",
        "schedgym/ParallelJCT-v0",
        "schedgym/PartialValue-v0",
    ]
    text = capsys.readouterr().out
    for format in formats().values():
        assert format.name in text
        for name, one in format.files.items():
            assert (f"{name} (unverified)" in text) == (not one.sha256) and name in text


def test_layouts_of_machines_can_be_declared() -> None:
    layout = TableLayout(columns={"cpus": Field("c"), "memory": Field("m")})
    own = TableFormat(name="x", columns={"submit": Field("a"), "duration": Field("b")}, machines=layout)
    assert (
        own.matches(["c", "m"])
        and own.matches(["a", "b"])
        and not own.matches(["a"])
        and not own.matches(["c"])
    )


def test_a_parquet_file_of_equal_numbers_is_as_large_as_its_text(tmp_path: Path, monkeypatch: Any) -> None:
    """Columns of one value are packed to nothing, whatever their length."""
    path = tmp_path / "t.parquet"
    pd.DataFrame(dict.fromkeys("abcd", np.zeros(500_000))).to_parquet(path)
    assert 200 * path.stat().st_size < 4 * 10**6
    pieces.column_names(path, TableLayout(columns={}))
    monkeypatch.setattr(texts, "START", 10**6)
    with pytest.raises(TraceFormatError, match="expands to more than 200 times its size"):
        pieces.column_names(path, TableLayout(columns={}))
