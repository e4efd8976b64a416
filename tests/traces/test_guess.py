"""Columns and units that are guessed by names and values, and how they are corrected."""

from __future__ import annotations

import pandas
import pytest

from schedgym import errors
from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.traces import read_table
from schedgym.traces.guess import amend_format, describe_columns, guess_format, guess_machines
from schedgym.traces.table import read_machines
from tests.tables import table


def read(tmp_path, text, given=None, name="log.csv", **how):
    path = tmp_path / name
    path.write_text(text)
    return read_table(path, guess_format(path, given, **how))


@pytest.mark.parametrize(
    ("header", "row", "arrival", "duration", "cores", "memory"),
    table(__file__, "test_columns_by_common_names"),
)
def test_columns_by_common_names(tmp_path, header, row, arrival, duration, cores, memory):
    trace = read(tmp_path, f"{header}\n{row}\n")
    found = (trace.arrival[0], trace.duration[0], trace.cores[0], trace.memory[0])
    assert found == pytest.approx((arrival, duration, cores, memory))


@pytest.mark.parametrize(
    ("first", "second"), table(__file__, "test_dates_and_epochs_are_told_by_their_values")
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


def test_cpus_in_thousandths_stand_beside_others(tmp_path):
    text = "submit,duration,cpus\n0,5,500m\n1,5,2\n2,5,1.5\n"
    assert read(tmp_path, text).cores.tolist() == [0.5, 2, 1.5]
    for wrong in ("x", "m", "-1m", "1mm", "1M"):
        with pytest.raises(TraceFormatError, match=r"log.csv:5: cpus: must be "):
            read(tmp_path, f"{text}3,5,{wrong}\n")


def test_columns_that_nobody_reads_do_not_decide_the_decimal_sign(tmp_path):
    text = "submit\tduration\tcpus\tgpu_ids\n" + "0\t5\t2\t0,1\n" * 200 + "0\t5.5\t2\t0,1\n"
    assert read(tmp_path, text).duration[-1] == 5.5


def test_corrections_of_a_format_with_a_decimal_comma(tmp_path):
    path = _write(tmp_path, "submit;duration;cpus;wall;ram\n0;5,5;1;1:02,5;1,5G\n")
    format = amend_format(guess_format(path), path, "duration=wall,memory=ram")
    trace = read_table(path, format)
    assert (trace.duration[0], trace.memory[0]) == (62.5, 1.5)
    path.write_text(path.read_text().replace("1,5G", "1.5G"))
    with pytest.raises(
        TraceFormatError, match="t.csv:2: ram: must be a number with a decimal comma, got '1.5G'"
    ):
        read_table(path, format)


def test_a_comma_that_may_part_thousands_is_no_decimal_comma(tmp_path):
    header = "submit;duration;cpus\n"
    for row, wrong in (("0;1,234;2", "1,234"), ("0.5;1,25;2", "1,25")):
        with pytest.raises(TraceFormatError, match=f"log.csv:2: duration: must be a number, got '{wrong}'"):
            read(tmp_path, f"{header}{row}\n")
    for where in ("1.500", "1.500,5"):
        with pytest.raises(TraceFormatError, match="log.csv:202: duration: must be a number with a decimal"):
            read(tmp_path, header + "0;1,25;2\n" * 200 + f"0;{where};2\n")
    assert read(tmp_path, header + "0;1,25;2\n", "duration=2*duration,cpus=cpus").duration.tolist() == [2.5]


@pytest.mark.parametrize(
    ("first", "second", "form"), table(__file__, "test_dates_that_can_be_read_in_one_way_only")
)
def test_dates_that_can_be_read_in_one_way_only(tmp_path, first, second, form):
    text = f"submit,end\n{first},{second}\n{second},{second}\n"
    assert f"submit = submit [date as {form}]" in describe_columns(guess_format(_write(tmp_path, text)))
    assert read(tmp_path, f"submit,end\n{first},{second}\n").duration.tolist() == [60]


def test_dates_that_can_be_read_in_two_ways_are_refused(tmp_path):
    with pytest.raises(TraceFormatError, match=r"submit: must be a date \(ISO 8601\), got '5/4/2024 10:00'"):
        read(tmp_path, "submit,duration\n5/4/2024 10:00,5\n")


def test_rows_with_another_text_are_left_out(tmp_path):
    text = "submit,duration,state\n0,5,DONE\n1,5,FAILED\n2,5,KILLED\n3,5,DONE\n"
    trace = read(tmp_path, text, where={"state": ["DONE", "KILLED"]})
    assert trace.arrival.tolist() == [0, 2, 3]
    assert str(trace.left_out[0]) == "1 row: state is another (first in line 3)"


@pytest.mark.parametrize("texts", ["DONE", [], [1], 1])
def test_the_texts_of_rows_are_a_list(tmp_path, texts):
    with pytest.raises(InvalidParameter, match="where: state: must be a list of texts, got"):
        read(tmp_path, "submit,duration,state\n0,5,DONE\n", where={"state": texts})


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


@pytest.mark.parametrize("gap", ["", "NaN", "None", "NULL", "N/A", "NaT", "Unknown"])
@pytest.mark.parametrize("times", ["0 50 90", "00:00 00:50 01:30"], ids=["numbers", "dates"])
def test_a_job_that_never_started_has_no_duration(tmp_path, gap, times):
    points = times.split()
    if ":" in times:
        points = [f"2024-05-01T10:{point}" for point in points]
    submit, start, end = points
    rows = [(submit, start, end), (submit, gap, end), (submit, start, gap), (gap, start, end)]
    text = "submit,start,end\n" + "".join(",".join(row) + "\n" for row in rows)
    trace = read(tmp_path, text)
    assert trace.duration.tolist() == [40]
    left = [
        f"1 row: {name} empty (first in line {i})" for name, i in (("start", 3), ("end", 4), ("submit", 5))
    ]
    assert [str(one) for one in trace.left_out] == left


def test_texts_that_stand_for_an_empty_field(tmp_path):
    text = "submit,start,elapsed,cpus,reqmem\n0,NaN,NULL,1,1G\n1,NaN,00:01:00,N/A,1G\n2,NaN,00:01:00,2,4G\n"
    trace = read(tmp_path, text)
    assert (trace.arrival.tolist(), trace.memory.tolist()) == ([2], [4])
    assert [one.reason for one in trace.left_out] == ["elapsed empty", "cpus empty"]
    assert read(tmp_path, "submit,w\n0,NULL\n1,5\n", "duration=w*2").duration.tolist() == [10]
    assert read(tmp_path, "submit,duration,region\n0,1,NA\n1,1,None\n").sites == ("NA",)  # North America


@pytest.mark.parametrize("first", [1_700_000_000_000, 1_700_000_000, "2023-11-14T22:13:20Z"])
def test_a_column_without_a_value_in_the_sample_has_the_unit_of_submissions(tmp_path, first):
    date = isinstance(first, str)
    second = "2023-11-14T22:14:20Z" if date else first + 60 * (1000 if first > 1e12 else 1)
    rows = [f"{first},,60\n"] * 250 + [f"{first},{second},60\n"]
    trace = read(tmp_path, "submit,start,duration\n" + "".join(rows))
    assert trace.start[-1] - trace.arrival[-1] == pytest.approx(60)
    frame = pandas.DataFrame({"submit": pandas.to_datetime(["2024-01-01"] * 250), "duration": 5.0})
    frame["start"] = pandas.Series([None] * 249 + [pandas.Timestamp("2024-01-01 00:01")], dtype=object)
    assert read_table(frame, guess_format(frame)).start[-1] == 60


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


@pytest.mark.parametrize(("text", "message"), table(__file__, "test_machines_that_are_refused"))
def test_machines_that_are_refused(tmp_path, text, message):
    path = _write(tmp_path, text)
    with pytest.raises(TraceFormatError, match=message):
        read_machines(path, guess_machines(path))


@pytest.mark.parametrize(
    ("text", "given", "error", "match"),
    table(__file__, "test_what_is_wrong_is_said"),
)
def test_what_is_wrong_is_said(tmp_path, text, given, error, match):
    path = _write(tmp_path, text)
    with pytest.raises(getattr(errors, error), match=match):
        read_table(path, guess_format(path, given))
