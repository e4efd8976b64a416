"""Columns and units that are guessed by names and values, and how they are corrected."""

from __future__ import annotations

import pandas
import pytest

from schedgym.errors import InvalidParameter, TraceFormatError, UnknownName
from schedgym.traces import read_table
from schedgym.traces.guess import describe_columns, guess_format, guess_machines


def read(tmp_path, text, given=None, name="log.csv", **how):
    path = tmp_path / name
    path.write_text(text)
    return read_table(path, guess_format(path, given, **how))


@pytest.mark.parametrize(
    ("header", "row", "arrival", "duration", "cores", "memory"),
    [
        ("submit,duration,cpus,memory", "5,60,2,4", 5, 60, 2, 4),
        ("Submit Time;Run Time;Cores;Memory GB", "5;60;2;1.073741824", 5, 60, 2, 1),
        ("creation_time\tdeletion_time\tcpu_milli\tmemory_mib", "5\t65\t2000\t4096", 5, 60, 2, 4),
        ("createdAt,finishedAt,vCPUs,memBytes", "5,65,2,1073741824", 5, 60, 2, 1),
        ("arrival_ms,runtime_min,num_cores,mem_gb", "5000,1,2,0", 5, 60, 2, 0),
        ("submitted,elapsed,ncpus,reqmem", "5,00:01:00,2,4G", 5, 60, 2, 4),
        ("submitted,elapsed,ncpus,reqmem", "5,1-00:00:00,2,512M", 5, 86400, 2, 0.5),
    ],
)
def test_columns_by_common_names(tmp_path, header, row, arrival, duration, cores, memory):
    trace = read(tmp_path, f"{header}\n{row}\n")
    found = (trace.arrival[0], trace.duration[0], trace.cores[0], trace.memory[0])
    assert found == pytest.approx((arrival, duration, cores, memory))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2024-03-01T00:00:00+01:00", "2024-03-01T00:01:00+01:00"),
        ("2024-03-01 10:00:00.5", "2024-03-01 10:01:00.5"),
        ("1700000000", "1700000060"),
        ("1700000000000", "1700000060000"),
        ("1700000000000000", "1700000060000000"),
        ("1700000000000000000", "1700000060000000000"),
    ],
)
def test_dates_and_epochs_are_told_by_their_values(tmp_path, first, second):
    trace = read(tmp_path, f"submit_time,end_time\n{first},{second}\n{second},\n")
    assert trace.duration.tolist() == [pytest.approx(60.0, abs=1e-3)]
    assert [str(one) for one in trace.left_out] == ["1 row: end_time empty (first in line 3)"]


def test_given_columns_expressions_and_units_come_first(tmp_path):
    text = "ts,tokens,cpus,time,wall\n2000,100,4,7,9\n"
    trace = read(tmp_path, text, "submit=ts [ms],duration=max(0.02*tokens, 1),cpus=cpus/2")
    assert (trace.arrival[0], trace.duration[0], trace.cores[0]) == (2, 2, 2)
    trace = read(tmp_path, text, {"duration": "wall"})
    assert (trace.arrival[0], trace.duration[0]) == (7, 9), "time is a more common name than ts"
    assert read(tmp_path, text, "submit=ts,end=time*1000").duration[0] == 5000


def test_rows_with_another_text_are_left_out(tmp_path):
    text = "submit,duration,state\n0,5,DONE\n1,5,FAILED\n2,5,KILLED\n3,5,DONE\n"
    trace = read(tmp_path, text, where={"state": ["DONE", "KILLED"]})
    assert trace.arrival.tolist() == [0, 2, 3]
    assert str(trace.left_out[0]) == "1 row: state is another (first in line 3)"


def test_data_frames_with_their_own_types():
    frame = pandas.DataFrame(
        {
            "submitted": pandas.to_datetime(["2024-01-01 12:00", "2024-01-01 12:05", None]),
            "run_time": pandas.to_timedelta([60, 90, 5], unit="s"),
            "cores": [1, 2, 3],
        }
    )
    trace = read_table(frame, guess_format(frame))
    assert trace.arrival.tolist() == [43200, 43500] and trace.duration.tolist() == [60, 90]
    assert trace.origin.startswith("2024-01-01")


def test_a_duration_takes_the_place_of_an_end(tmp_path):
    text = "submit,start,end,duration\n0,10,30,20\n"
    assert "end" not in describe_columns(guess_format(_write(tmp_path, text)))
    assert read(tmp_path, text).start[0] == 10
    assert describe_columns(guess_format(_write(tmp_path, text), "end=end")).startswith("end = end [s]")


def _write(tmp_path, text, name="t.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_machines(tmp_path):
    assert "cpus = cpu_milli [millicores]" in describe_columns(
        guess_machines(_write(tmp_path, "sn,cpu_milli,memory_mib\na,32000,262144\n"))
    )
    with pytest.raises(
        TraceFormatError, match=r"t.csv:1: no column is known for memory: there are sn, cores"
    ):
        guess_machines(_write(tmp_path, "sn,cores\na,3\n"))


@pytest.mark.parametrize(
    ("text", "given", "error", "match"),
    [
        ("a,b\n1,2\n", None, TraceFormatError, r"t.csv:1: no column is known for submit: name one of a, b"),
        (
            "submit,b\n1,2\n",
            None,
            TraceFormatError,
            r"no column is known for duration \(or end\): name one of",
        ),
        ("submit,b\n1,2\n", "duration=c", TraceFormatError, r"t.csv:1: c: missing column"),
        ("submit,b\n1,x\n", "duration=b", TraceFormatError, r"t.csv:2: b: must be a number, got 'x'"),
        ("submit,b\nx,2\n", "duration=b", TraceFormatError, r"t.csv:2: submit: must be a number, got 'x'"),
        ("submit,b\n1,2\n", "duration", InvalidParameter, "columns: must be QUANTITY=COLUMN"),
        ("submit,b\n1,2\n", "duration=b,duration=b", InvalidParameter, "duration is given twice"),
        ("submit,b\n1,2\n", "length=b", UnknownName, "unknown quantity 'length'"),
        ("submit,b\n1,2\n", "duration=b [GiB]", InvalidParameter, "duration: its unit is one of s, ms"),
        ("", None, TraceFormatError, "is empty, must start with a header"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, given, error, match):
    path = _write(tmp_path, text)
    with pytest.raises(error, match=match):
        read_table(path, guess_format(path, given))
