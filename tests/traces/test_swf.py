from __future__ import annotations

import codecs
from pathlib import Path

import pytest

import schedgym  # noqa: F401  (registers the ids)
from schedgym.errors import InvalidParameter, InvalidWorkload, TraceFormatError
from schedgym.traces import Trace, inspect_trace, read_trace
from schedgym.traces.swf import read_swf
from tests.tables import table
from tests.traces.logs import LOGS, text, write
from tests.traces.logs import MACHINES_CSV as NODES
from tests.traces.test_all_formats import play

HEADER, ROWS, DROPPED = list(LOGS["swf"].head), list(LOGS["swf"].rows), LOGS["swf"].truth["dropped"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "log.swf", text(HEADER + ROWS))


def test_a_model_without_comments_and_with_tabs(tmp_path: Path) -> None:
    path = write(tmp_path / "model.swf", text(["\t".join(ROWS[0].split())]))
    for content in (path.read_bytes(), b"\xef\xbb\xbf" + path.read_bytes()):
        trace = read_trace(write(path, content))
        assert isinstance(trace, Trace)
        assert trace.cores.tolist() == [4] and trace.machine_cores.size == 0 and trace.filled == {}


def test_each_size_is_the_known_one_of_two(tmp_path: Path) -> None:
    rows = [
        "1 0 0 9 -1 -1 1048576 2 9 524288 1 1 1 1 1 1 -1 -1",  # requested processors, used memory
        "2 1 0 9 4 -1 -1 2 9 524288 1 1 1 1 1 1 -1 -1",  # allocated processors, requested memory
    ]
    trace = read_swf(write(tmp_path / "log.swf", rows))
    assert trace.cores.tolist() == [2, 4] and trace.memory.tolist() == [2, 2]


# --- machines


@pytest.mark.parametrize(
    ("header", "machines"),
    [(HEADER, [8, 8, 8, 8]), *table(__file__, "test_machines_of_the_header")],
)
def test_machines_of_the_header(tmp_path: Path, header: list[str], machines: list[float]) -> None:
    trace = read_swf(write(tmp_path / "log.swf", text([*header, ROWS[0], "; MaxNodes: 100", ROWS[1]])))
    assert trace.machine_cores.tolist() == machines
    assert trace.machine_memory.tolist() == [0] * len(machines)
    assert trace.rows == 2


@pytest.mark.parametrize("value", ["many", "0", "-2", "1,024", "3.5", "10000001", "1" * 16])
@pytest.mark.parametrize("name", ["MaxNodes", "MaxProcs"])
def test_a_size_that_is_no_number(tmp_path: Path, name: str, value: str) -> None:
    path = write(tmp_path / "log.swf", text(["; Version: 2", f"; {name}: {value}", ROWS[0]]))
    reason = f"must be a whole number from 1 to 10000000, got '{value}'"
    for read in (read_swf, read_trace):
        with pytest.raises(TraceFormatError) as caught:
            read(path)
        error = caught.value
        assert (error.path, error.line, error.column, error.reason) == (str(path), 2, name, reason)
    trace = read_swf(path, on_error="skip")
    assert trace.machine_cores.size == 0 and trace.dropped == {"machine: malformed": 1} and trace.rows == 1


def test_fewer_processors_than_nodes(tmp_path: Path) -> None:
    path = write(tmp_path / "log.swf", text(["; MaxProcs: 3", "; MaxNodes: 4", ROWS[0]]))
    with pytest.raises(TraceFormatError, match=r"log\.swf: MaxProcs: must be at least MaxNodes, 4, got 3"):
        read_swf(path)
    trace = read_swf(path, on_error="skip")
    assert trace.machine_cores.size == 0 and trace.dropped == {"machine: malformed": 1}


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_comments_in_another_encoding_are_comments(tmp_path: Path, mark: bytes) -> None:
    path, strange = tmp_path / "log.swf", b"; Site: Universit\xe9\n"
    for content, read in (
        (mark + strange + text(["; MaxNodes: 2", *ROWS]), read_swf),  # only the first line must be readable
        (mark + text(["; MaxNodes: 2"]) + strange + text(ROWS), read_trace),  # for the format to be known
    ):
        path.write_bytes(content)
        trace = read(path)
        assert trace.rows == len(ROWS) and trace.dropped == DROPPED
        assert trace.machine_cores.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["nodes.csv", "nodes.csv.gz"])
def test_a_file_of_machines_replaces_the_header(tmp_path: Path, name: str) -> None:
    nodes = write(tmp_path / name, NODES)
    log = write(tmp_path / "log.swf", text(["; MaxNodes: lots", *ROWS]))
    trace = read_swf(log, nodes)
    assert trace.machine_cores.tolist() == [16, 8] and trace.machine_memory.tolist() == [64, 32]
    assert trace.files == (log, nodes) and trace.dropped == DROPPED


# --- the rest of the house


def test_inspect(log: Path, tmp_path: Path) -> None:
    facts = inspect_trace(log)
    assert facts["filled"] == {"memory unknown": 1}
    assert facts["unit"] == "cores, GiB" and facts["machines"] == 4
    assert facts["largest_machine"] == {"cores": 8, "memory": None}
    assert facts["tasks_without_machine"] == 0
    volume = 60 * 4 + 30 * 2 + 10.5
    assert facts["offered_load"] == {"cores": pytest.approx(volume / (50 * 32)), "memory": None}
    with pytest.raises(InvalidParameter, match="1 of 3 jobs fit none of them, .* the largest needs 4 cores"):
        inspect_trace(log, write(tmp_path / "nodes.csv", "cores,memory\n3,64\n"))


def jobs(count: int) -> list[str]:
    return [
        f"{i + 1} {2 * i} -1 {5 + i % 7} {1 + i % 8} -1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1" for i in range(count)
    ]


def test_queue_delay_runs_on_the_machines_of_the_header_if_its_jobs_fit_them(tmp_path: Path) -> None:
    log = write(tmp_path / "log.swf.gz", text(HEADER + jobs(30)))
    metrics = play(trace=str(log), tasks=10, servers=3)
    assert metrics["stranded"] == 0 and metrics["makespan"] >= 18
    assert metrics["utilization_memory"] == 0 and 0 < metrics["utilization_cpu"] <= 1
    log = write(tmp_path / "log.swf", text(jobs(30)))
    with pytest.raises(InvalidParameter, match="nodes: the swf trace needs its file of machines"):
        play(trace=str(log), tasks=10, servers=2)
    write(log, text(["; MaxNodes: 4", *jobs(30)]))
    with pytest.raises(
        InvalidParameter, match=r"14 of 30 jobs fit none of them, .* the largest needs 8 cores"
    ):
        play(trace=str(log), tasks=10, servers=1)
    nodes = write(tmp_path / "nodes.csv", "cores,memory\n8,4\n6,64\n")
    write(log, text(jobs(30)))
    with pytest.raises(InvalidWorkload, match=r"trace: task \[6\] .* does not fit the largest machine"):
        play(trace=str(log), nodes=str(nodes), tasks=10, servers=1)
