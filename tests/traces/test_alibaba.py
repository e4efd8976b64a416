from __future__ import annotations

import csv
import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.traces import inspect_trace, read_trace
from schedgym.traces.base import Trace
from schedgym.traces.fetch import KNOWN

PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)
REQUIRED = ["cpu_milli", "memory_mib", "creation_time", "deletion_time", "scheduled_time"]
ROWS = [
    "openb-pod-0000,12000,16384,1,1000,,LS,Running,100,600,200",
    "openb-pod-0001,6500,12288,1,460,V100M16|V100M32,BE,Failed,50,950,50",
    "openb-pod-0002,8000,30517,1,230,,BE,Pending,300,300,",  # deleted as it was created
    "openb-pod-0003,1000,0,0,0,,Burstable,Pending,300,420,",
    "openb-pod-0004,2000,1536,0,0,,LS,Succeeded,400,390,395",  # ends before it starts
]
NODES = "sn,cpu_milli,memory_mib,gpu,model"
NODE_ROWS = ["openb-node-0000,32000,262144,0,", "openb-node-0001,96000,393216,8,G2"]


def read_alibaba(path: Path, nodes: Path | None = None, **options: Any) -> Trace:
    trace = read_trace(path, nodes=nodes, format="alibaba", **options)
    assert isinstance(trace, Trace)
    return trace


def text(header: str, rows: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in [header, *rows]).encode()


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    return write(tmp_path / "pods.csv", text(PODS, ROWS))


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    return write(tmp_path / "nodes.csv", text(NODES, NODE_ROWS))


def test_units_and_rules(pods: Path, nodes: Path) -> None:
    trace = read_alibaba(pods, nodes)
    assert trace.name == "alibaba"
    assert trace.arrival.tolist() == [50, 100, 300]
    assert trace.duration.tolist() == [900, 400, 120]  # from scheduling; never scheduled: from creation
    assert trace.cores.tolist() == [6.5, 12, 1]
    assert trace.memory.tolist() == [12, 16, 0]
    assert trace.machine_cores.tolist() == [32, 96]
    assert trace.machine_memory.tolist() == [256, 384]
    assert trace.dropped == {"execution <= 0": 2}
    assert trace.rows == 5
    assert trace.files == (pods, nodes)


def test_gzip_and_read_trace_give_the_same(pods: Path, nodes: Path, tmp_path: Path) -> None:
    plain = read_alibaba(pods, nodes)
    packed = read_trace(
        str(write(tmp_path / "pods.csv.gz", pods.read_bytes())),
        nodes=str(write(tmp_path / "nodes.csv.gz", nodes.read_bytes())),
    )
    for field in ("arrival", "duration", "cores", "memory", "machine_cores", "machine_memory"):
        assert np.array_equal(getattr(plain, field), getattr(packed, field))
    assert read_trace(pods, format="alibaba").machine_cores.size == 0


def test_limit_stops_reading_at_the_last_selected_task(tmp_path: Path) -> None:
    path = write(tmp_path / "pods.csv", text(PODS, [*ROWS[:4], "broken"]))
    assert read_alibaba(path, limit=2).arrival.tolist() == [50, 100]
    assert read_alibaba(path, limit=2).dropped == {}
    trace = read_alibaba(path, limit=3)
    assert trace.arrival.tolist() == [50, 100, 300] and trace.dropped == {"execution <= 0": 1}
    with pytest.raises(TraceFormatError, match=r":6: expected 11 columns, got 1"):
        read_alibaba(path, limit=4)
    with pytest.raises(InvalidParameter, match="limit"):
        read_alibaba(path, limit=0)


@pytest.mark.parametrize("column", REQUIRED)
@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf", ""])
def test_bad_fields_of_a_pod(tmp_path: Path, column: str, value: str) -> None:
    place = PODS.split(",").index(column)
    fields = ROWS[1].split(",")
    fields[place] = value
    path = write(tmp_path / "pods.csv", text(PODS, [ROWS[0], ",".join(fields), ROWS[3]]))
    if (column, value) == ("scheduled_time", ""):
        assert read_alibaba(path).duration.tolist() == [900, 400, 120]
        return
    for read in (read_alibaba, read_trace):
        with pytest.raises(TraceFormatError) as caught:
            read(path)
        assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 3, column)
    trace = read_alibaba(path, on_error="skip")
    assert trace.arrival.tolist() == [100, 300]
    assert trace.dropped == {"malformed": 1}


@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf", "", "0"])
@pytest.mark.parametrize("column", ["cpu_milli", "memory_mib"])
def test_bad_fields_of_a_node(pods: Path, tmp_path: Path, column: str, value: str) -> None:
    fields = NODE_ROWS[0].split(",")
    fields[NODES.split(",").index(column)] = value
    path = write(tmp_path / "bad.csv", text(NODES, [NODE_ROWS[1], ",".join(fields)]))
    with pytest.raises(TraceFormatError) as caught:
        read_alibaba(pods, path)
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 3, column)
    trace = read_alibaba(pods, path, on_error="skip")
    assert trace.machine_cores.tolist() == [96]
    assert trace.dropped == {"execution <= 0": 2, "machine: malformed": 1}
    assert trace.rows == 5


@pytest.mark.parametrize("column", REQUIRED)
def test_a_missing_column_is_named_on_line_1(tmp_path: Path, column: str) -> None:
    path = write(tmp_path / "pods.csv", text(PODS.replace(column, "spare"), ROWS))
    for read in (read_alibaba, read_trace):
        with pytest.raises(TraceFormatError, match=f":1: {column}: missing column"):
            read(path, on_error="skip")


def test_swapped_files_are_told_apart(pods: Path, nodes: Path) -> None:
    with pytest.raises(TraceFormatError, match=r"nodes\.csv:1: creation_time: missing column"):
        read_trace(nodes, nodes=pods)


def test_files_without_a_task_or_a_machine_are_refused(pods: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "none.csv", text(PODS, []))
    with pytest.raises(TraceFormatError, match=r"none\.csv: has no task$"):
        read_alibaba(path)
    path = write(tmp_path / "none.csv", text(PODS, [ROWS[2], "broken"]))
    with pytest.raises(TraceFormatError, match=r"has no task \(left out: execution <= 0: 1; malformed: 1\)"):
        read_alibaba(path, on_error="skip")
    path = write(tmp_path / "none.csv", text(NODES, ["broken"]))
    with pytest.raises(TraceFormatError, match=r"none\.csv: has no machine \(left out: malformed: 1\)"):
        read_alibaba(pods, path, on_error="skip")


def test_missing_files(pods: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        read_alibaba(tmp_path / "absent.csv")
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        read_alibaba(pods, tmp_path / "absent.csv")


def test_inspect(pods: Path, nodes: Path) -> None:
    facts = inspect_trace(pods, nodes)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["format"] == "alibaba" and facts["files"] == [str(pods), str(nodes)]
    assert (facts["rows"], facts["tasks"], facts["dropped"]) == (5, 3, {"execution <= 0": 2})
    assert (facts["first_arrival"], facts["last_arrival"]) == (50, 300)
    assert facts["duration"]["median"] == 400 and facts["duration"]["max"] == 900
    assert facts["cores"]["mean"] == 6.5 and facts["memory"]["min"] == 0
    assert facts["machines"] == 2 and facts["tasks_without_machine"] == 0
    assert facts["largest_machine"] == {"cores": 96, "memory": 384}
    volume = 900 * 6.5 + 400 * 12 + 120 * 1
    assert facts["offered_load"]["cores"] == pytest.approx(volume / (250 * 128))
    assert facts["offered_load"]["memory"] == pytest.approx((900 * 12 + 400 * 16) / (250 * 640))


def test_inspect_without_machines_or_span(pods: Path, nodes: Path, tmp_path: Path) -> None:
    facts = inspect_trace(pods)
    assert facts["machines"] == 0
    assert facts["largest_machine"] is facts["offered_load"] is facts["tasks_without_machine"] is None
    facts = inspect_trace(pods, nodes, limit=1)
    assert facts["offered_load"] == {"cores": None, "memory": None}
    small = write(tmp_path / "small.csv", text(NODES, ["a,6500,12288,0,", "b,20000,12287,0,"]))
    assert inspect_trace(pods, small)["tasks_without_machine"] == 1  # 12 cores with 16 GiB


TRICKY = st.sampled_from([b'"', b",", b"\n", b"\r", b"-", b"e9", b"\x00"])
EDIT = st.tuples(
    st.sampled_from(["replace", "insert", "delete", "cut", "repeat"]),
    st.integers(0, 10_000),
    st.one_of(st.binary(min_size=1, max_size=4), TRICKY),
)


def mutate(data: bytes, edits: list[tuple[str, int, bytes]]) -> bytes:
    for kind, at, new in edits:
        at %= len(data) + 1
        if kind == "replace":
            data = data[:at] + new + data[at + len(new) :]
        elif kind == "insert":
            data = data[:at] + new + data[at:]
        elif kind == "delete":
            data = data[:at] + data[at + len(new) :]
        elif kind == "cut":
            data = data[:at]
        else:
            data = data[:at] + data[at // 2 :]
    return data


def check_valid(trace: Trace) -> None:
    assert len(trace.arrival) > 0
    for values in (trace.arrival, trace.duration, trace.cores, trace.memory):
        assert values.shape == trace.arrival.shape and np.isfinite(values).all() and (values >= 0).all()
    assert (trace.duration > 0).all() and (np.diff(trace.arrival) >= 0).all()
    for values in (trace.machine_cores, trace.machine_memory):
        assert values.shape == trace.machine_cores.shape and np.isfinite(values).all() and (values > 0).all()


@settings(max_examples=300, deadline=None)
@given(
    edits=st.lists(EDIT, min_size=1, max_size=4),
    target=st.sampled_from(["pods", "nodes", "packed"]),
    on_error=st.sampled_from(["raise", "skip"]),
)
def test_any_damage_gives_a_valid_trace_or_a_format_error(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, int, bytes]], target: str, on_error: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    good = {"pods": text(PODS, ROWS), "nodes": text(NODES, NODE_ROWS)}
    good["packed"] = gzip.compress(good["pods"], mtime=0)
    damaged = {name: mutate(data, edits) if name == target else data for name, data in good.items()}
    pods = folder / ("fuzzed.csv.gz" if target == "packed" else "fuzzed.csv")
    pods.write_bytes(damaged["packed" if target == "packed" else "pods"])
    nodes = folder / "fuzzed_nodes.csv"
    nodes.write_bytes(damaged["nodes"])
    try:
        trace = read_trace(pods, nodes=nodes, on_error=on_error)
    except TraceFormatError as error:
        assert "\n" not in str(error)
        return
    check_valid(trace)
    if on_error == "raise":
        assert set(trace.dropped) <= {"execution <= 0"}
    if target == "pods":  # every line is a task, dropped and counted, or blank
        lines = damaged["pods"].split(b"\n")[1:]
        blank = sum(not line.decode(errors="replace").strip() for line in lines)
        assert trace.rows == len(lines) - blank
    assert json.dumps(inspect_trace(pods, nodes, on_error), allow_nan=False)


# --- the published files

DATA = os.environ.get("SCHEDGYM_DATA")
real = pytest.mark.skipif(not DATA, reason="SCHEDGYM_DATA names no folder with the public traces")


@real
def test_the_published_pods_and_nodes() -> None:
    pods, nodes = (Path(DATA or "") / KNOWN[f"alibaba-2023-{name}"].file for name in ("pods", "nodes"))
    with pods.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 8152
    phases = Counter(row["pod_phase"] for row in rows)
    assert phases == {"Running": 5193, "Failed": 1870, "Pending": 897, "Succeeded": 192}
    assert all((row["scheduled_time"] == "") == (row["pod_phase"] == "Pending") for row in rows)

    trace = read_trace(pods, nodes=nodes)
    assert trace.rows == 8152 and len(trace.arrival) == 8151
    assert trace.dropped == {"execution <= 0": 1}
    assert len(trace.machine_cores) == 1523
    check_valid(trace)
    # the same facts, by another way
    expected = [
        (int(r["creation_time"]), duration, int(r["cpu_milli"]) / 1000, int(r["memory_mib"]) / 1024)
        for r in rows
        if (duration := int(r["deletion_time"]) - int(r["scheduled_time"] or r["creation_time"])) > 0
    ]
    expected.sort(key=lambda task: task[0])
    got = np.column_stack([trace.arrival, trace.duration, trace.cores, trace.memory])
    assert np.array_equal(got, np.array(expected))


@real
def test_the_published_trace_inspected() -> None:
    pods, nodes = (Path(DATA or "") / KNOWN[f"alibaba-2023-{name}"].file for name in ("pods", "nodes"))
    facts = inspect_trace(pods, nodes)
    assert facts["largest_machine"] == {"cores": 128, "memory": 1024}
    assert facts["tasks_without_machine"] == 0
    assert (facts["first_arrival"], facts["last_arrival"]) == (0, 12901761)
    assert facts["duration"]["median"] == 485
    assert facts["cores"]["max"] == 120.2 and facts["memory"]["max"] == 720
    assert facts["offered_load"]["cores"] == pytest.approx(0.00155, rel=0.01)
