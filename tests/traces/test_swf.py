from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schedgym  # noqa: F401  (registers the ids)
from schedgym.errors import InvalidParameter, InvalidWorkload, TraceFormatError
from schedgym.traces import Trace, formats, inspect_trace, read_trace
from schedgym.traces.swf import NAMES, read_swf

HEADER = [
    "; Version: 2.2",
    "; Computer: test",
    ";",
    "; MaxNodes: 4 (3, 1)",
    "; MaxProcs: 32",
    "; Note: MaxNodes and MaxProcs count everything",
]
# job, submit, wait, run, allocated, cpu, used KiB, requested, time, requested KiB, status, user ... think
ROWS = [
    "    1   100    5    60    4   55 1048576    8  3600 2097152  1 1 1 1 1 1 -1 -1",
    "    2   100   -1    30   -1   -1      -1    2    -1  524288  0 2 1 1 1 1 -1 -1",
    "    3    50    0  10.5    1   -1      -1   -1    -1      -1 -1 2 1 1 1 1 -1 -1",
    "    4   120    0     0    8   -1      -1    8    60      -1  5 2 1 1 1 1 -1 -1",  # cancelled
    "    5   130   -1    -1    8   -1      -1    8    60      -1  5 2 1 1 1 1 -1 -1",  # cancelled
    "    6   140    0    10   -1   -1      -1   -1    60      -1  1 2 1 1 1 1 -1 -1",  # on how many?
    "    7   140    0    10    0   -1      -1    4    60      -1  1 2 1 1 1 1 -1 -1",  # on none
    "    8    -1    0    10    2   -1      -1    4    60      -1  1 2 1 1 1 1  7  5",  # after 7
    "    9   150    0     5    2   -1      -1    4    60      -1  2 2 1 1 1 1 -1 -1",  # a first period
    "    9    -1    0     5    2   -1      -1    4    60      -1  3 2 1 1 1 1 -1 -1",  # its last
    "   10   160    0     5    2   -1      -1    4    60      -1  4 2 1 1 1 1 -1 -1",  # a last one, killed
]
DROPPED = {
    "execution <= 0": 2,
    "processors <= 0 or unknown": 2,
    "submit time unknown": 1,
    "partial execution": 3,
}
NODES = "cores,memory\n16,64\n8,32\n"


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def write(path: Path, content: bytes | str) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "log.swf", text(HEADER + ROWS))


def test_units_and_rules(log: Path) -> None:
    trace = read_swf(log)
    assert trace.name == "swf" and trace.unit == "cores, GiB"
    assert trace.arrival.tolist() == [50, 100, 100]
    assert trace.duration.tolist() == [10.5, 60, 30]
    assert trace.cores.tolist() == [1, 4, 2]  # allocated, else requested
    assert trace.memory.tolist() == [0, 4, 1]  # used, else requested, per processor
    assert trace.filled == {"memory unknown": 1}
    assert trace.dropped == DROPPED and trace.rows == len(ROWS)
    lines = log.read_text().splitlines()
    assert {one.reason: one.count for one in trace.left_out} == DROPPED
    assert {one.reason: ROWS.index(lines[one.line - 1]) for one in trace.left_out} == {
        "execution <= 0": 3,
        "processors <= 0 or unknown": 5,
        "submit time unknown": 7,
        "partial execution": 8,
    }
    assert trace.machine_cores.tolist() == [8, 8, 8, 8] and trace.machine_memory.tolist() == [0] * 4
    assert trace.files == (log,)


def test_gzip_and_read_trace_give_the_same(log: Path, tmp_path: Path) -> None:
    plain = read_swf(log)
    content = log.read_bytes()
    variants = [content, b"\xef\xbb\xbf" + content, content.replace(b"\n", b"\r\n"), b"\n" + content[:-1]]
    for number, variant in enumerate(variants):
        packed = read_trace(write(tmp_path / f"{number}.swf.gz", variant), format="swf")
        assert isinstance(packed, Trace) and packed.dropped == plain.dropped
        for field in ("arrival", "duration", "cores", "memory", "machine_cores", "machine_memory"):
            assert np.array_equal(getattr(plain, field), getattr(packed, field))


def test_a_model_without_comments_and_with_tabs(tmp_path: Path) -> None:
    path = write(tmp_path / "model.swf", text(["\t".join(ROWS[0].split())]))
    for content in (path.read_bytes(), b"\xef\xbb\xbf" + path.read_bytes()):
        trace = read_trace(write(path, content))
        assert isinstance(trace, Trace)
        assert trace.cores.tolist() == [4] and trace.machine_cores.size == 0 and trace.filled == {}


# --- machines


@pytest.mark.parametrize(
    ("header", "machines"),
    [
        ([], []),
        (["; MaxNodes: 3"], [1, 1, 1]),
        (["; MaxProcs: 3"], [1, 1, 1]),
        (["; MaxProcs: 8", ";MaxNodes:3"], [3, 3, 2]),
        (["; MaxNodes: 2", "; MaxProcs: -1"], [1, 1]),
        (["; MaxNodes: 2", "; MaxProcs:"], [1, 1]),
        (["; MaxNodes: 2 (one at night)", "; MaxProcs: 6(4,2)"], [3, 3]),
        (["; MaxNodes: 2", "; MaxNodes: 7"], [1, 1]),  # the first counts
        (["; Note: MaxNodes: 9"], []),
    ],
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


@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf", "", "0"])
@pytest.mark.parametrize("column", ["cores", "memory"])
def test_bad_fields_of_a_machine(log: Path, tmp_path: Path, column: str, value: str) -> None:
    row = f"{value},4" if column == "cores" else f"4,{value}"
    nodes = write(tmp_path / "nodes.csv", f"{NODES}{row}\n")
    with pytest.raises(TraceFormatError) as caught:
        read_swf(log, nodes)
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(nodes), 4, column)
    trace = read_swf(log, nodes, on_error="skip")
    assert trace.machine_cores.tolist() == [16, 8]
    assert trace.dropped == {**DROPPED, "machine: malformed": 1} and trace.rows == len(ROWS)


def test_a_file_of_machines_without_a_machine(log: Path, tmp_path: Path) -> None:
    nodes = write(tmp_path / "nodes.csv", "cores,memory\n")
    with pytest.raises(TraceFormatError, match=r"nodes\.csv: has no machine$"):
        read_swf(log, nodes)
    with pytest.raises(TraceFormatError, match=r"nodes\.csv:1: memory: missing column"):
        read_swf(log, write(nodes, "cores\n1\n"))
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        read_swf(log, tmp_path / "absent.csv")


# --- errors


READ = [
    "submit time",
    "run time",
    "allocated processors",
    "used memory",
    "requested processors",
    "requested memory",
    "status",
]


@pytest.mark.parametrize("column", READ)
@pytest.mark.parametrize("value", ["x", "-2", "-0.5", "nan", "inf", "1e20"])
def test_bad_fields(tmp_path: Path, column: str, value: str) -> None:
    fields = ROWS[1].split()
    fields[NAMES.index(column)] = value
    path = write(tmp_path / "log.swf", text([*HEADER, ROWS[0], " ".join(fields), ROWS[2]]))
    for read in (read_swf, read_trace):
        with pytest.raises(TraceFormatError) as caught:
            read(path)
        error = caught.value
        assert (error.path, error.line, error.column) == (str(path), len(HEADER) + 2, column)
    trace = read_trace(path, on_error="skip")
    assert trace.arrival.tolist() == [50, 100] and trace.dropped == {"malformed": 1} and trace.rows == 3
    path = write(path, text([" ".join(fields)]))  # the line by which the format is recognised
    with pytest.raises(TraceFormatError, match=f":1: {column}: must be"):
        read_trace(path)


@pytest.mark.parametrize("column", [name for name in READ if "processors" in name or name == "status"])
def test_counts_are_whole(tmp_path: Path, column: str) -> None:
    fields = ROWS[1].split()
    fields[NAMES.index(column)] = "1.5"
    with pytest.raises(TraceFormatError, match=f":1: {column}: must be a whole number, got '1.5'"):
        read_trace(write(tmp_path / "log.swf", text([" ".join(fields)])))


@pytest.mark.parametrize("row", ["1 2 3", ROWS[0] + " 1", ROWS[0].replace(" ", ",")])
def test_a_row_of_another_width(tmp_path: Path, row: str) -> None:
    path = write(tmp_path / "log.swf", text([*HEADER, ROWS[0], row]))
    with pytest.raises(TraceFormatError, match=r"log\.swf:8: expected 18 columns, got"):
        read_trace(path)
    assert read_trace(path, on_error="skip").dropped == {"malformed": 1}


def test_empty_damaged_and_missing_files(tmp_path: Path) -> None:
    path = write(tmp_path / "log.swf", text([*HEADER, *ROWS[3:6], "broken"]))
    reasons = "execution <= 0: 2; processors <= 0 or unknown: 1; malformed: 1"
    with pytest.raises(TraceFormatError, match=rf"log\.swf: has no task \(left out: {reasons}\)"):
        read_swf(path, on_error="skip")
    with pytest.raises(TraceFormatError, match=r"log\.swf: has no task$"):
        read_trace(write(path, text(HEADER)))
    with pytest.raises(FileNotFoundError, match=r"absent\.swf"):
        read_swf(tmp_path / "absent.swf")
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(text(HEADER + ROWS))[:-9])
    for on_error in ("raise", "skip"):
        with pytest.raises(TraceFormatError, match=r"log\.swf\.gz:\d+: the gzip file is cut off"):
            read_trace(path, on_error=on_error)


def test_arguments_and_limit(tmp_path: Path) -> None:
    path = write(tmp_path / "log.swf", text([*HEADER, *ROWS[:2], ROWS[3], ROWS[2], "broken"]))
    assert read_swf(path, limit=2).arrival.tolist() == [100, 100] and read_swf(path, limit=2).dropped == {}
    assert read_swf(path, limit=2).machine_cores.size == 4
    trace = read_swf(path, limit=3)
    assert trace.arrival.tolist() == [50, 100, 100] and trace.dropped == {"execution <= 0": 1}
    with pytest.raises(TraceFormatError, match=":11: expected 18 columns, got 1"):
        read_swf(path, limit=4)
    with pytest.raises(InvalidParameter, match="limit"):
        read_swf(path, limit=0)
    with pytest.raises(InvalidParameter, match="on_error"):
        read_swf(path, on_error="ignore")


# --- the rest of the house


def test_detection() -> None:
    recognises = formats()["swf"].recognises
    assert recognises(HEADER[0]) and recognises(";") and recognises(ROWS[0])
    assert not recognises("1 2 3") and not recognises(" ".join(NAMES))
    for line in (HEADER[0], ROWS[0]):
        assert not any(f.recognises(line) for name, f in formats().items() if name != "swf")


def test_inspect(log: Path, tmp_path: Path) -> None:
    facts = inspect_trace(log)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert (facts["format"], facts["rows"], facts["tasks"]) == ("swf", len(ROWS), 3)
    assert facts["dropped"] == DROPPED and facts["filled"] == {"memory unknown": 1}
    assert facts["unit"] == "cores, GiB" and facts["machines"] == 4
    assert facts["largest_machine"] == {"cores": 8, "memory": None}
    assert facts["tasks_without_machine"] == 0
    volume = 60 * 4 + 30 * 2 + 10.5
    assert facts["offered_load"] == {"cores": pytest.approx(volume / (50 * 32)), "memory": None}
    facts = inspect_trace(log, write(tmp_path / "nodes.csv", "cores,memory\n3,64\n"))
    assert facts["tasks_without_machine"] == 1 and facts["largest_machine"] == {"cores": 3, "memory": 64}


def play(**arguments: object) -> tuple[dict[str, float], gym.Env]:
    """One episode of the rule's first feasible choices; its metrics."""
    env = gym.make("schedgym/QueueDelay-v0", window=8, **arguments)
    observation, _ = env.reset(seed=3)
    while True:
        action = int(np.flatnonzero(observation["action_mask"])[0])
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            return info["metrics"], env


def jobs(count: int, memory: int) -> list[str]:
    return [
        f"{i + 1} {2 * i} -1 {5 + i % 7} {1 + i % 8} -1 {memory} -1 -1 -1 1 1 1 1 1 1 -1 -1"
        for i in range(count)
    ]


def test_queue_delay_runs_on_the_machines_of_the_header(tmp_path: Path) -> None:
    log = write(tmp_path / "log.swf.gz", text(HEADER + jobs(30, -1)))
    metrics, env = play(trace=str(log), tasks=10, servers=3)
    assert metrics["stranded"] == 0 and metrics["makespan"] >= 18
    assert metrics["utilization_memory"] == 0 and 0 < metrics["utilization_cpu"] <= 1
    env.close()


def test_queue_delay_runs_on_a_file_of_machines(tmp_path: Path) -> None:
    log = write(tmp_path / "log.swf", text(HEADER + jobs(30, 1048576)))
    nodes = write(tmp_path / "nodes.csv", NODES)
    metrics, env = play(trace=str(log), nodes=str(nodes), tasks=10, servers=2)
    assert metrics["stranded"] == 0 and metrics["utilization_memory"] > 0
    env.close()
    with pytest.raises(
        InvalidParameter, match="nodes: the swf trace tells its tasks' memory but not its mach"
    ):
        gym.make("schedgym/QueueDelay-v0", trace=str(log), tasks=10, servers=2)


def test_queue_delay_refuses_what_it_cannot_run(tmp_path: Path) -> None:
    log = write(tmp_path / "log.swf", text(jobs(30, -1)))
    with pytest.raises(InvalidParameter, match="nodes: the swf trace needs its file of machines"):
        gym.make("schedgym/QueueDelay-v0", trace=str(log), tasks=10, servers=2)
    write(log, text(["; MaxNodes: 4", *jobs(30, -1)]))
    with pytest.raises(InvalidWorkload, match=r"swf: task \[1\] .* does not fit the largest machine"):
        gym.make("schedgym/QueueDelay-v0", trace=str(log), tasks=10, servers=2)


TRICKY = st.sampled_from([b" ", b";", b"\n", b"\r", b"-1", b"e9", b"\x00", b'"', b".", b"9999999"])
EDIT = st.tuples(
    st.integers(0, 2000), st.integers(0, 3), st.one_of(st.binary(max_size=4), TRICKY)
)  # place, bytes taken out, bytes put in


@settings(max_examples=300)
@given(
    edits=st.lists(EDIT, min_size=1, max_size=4),
    target=st.sampled_from(["log", "packed", "nodes"]),
    on_error=st.sampled_from(["raise", "skip"]),
)
def test_any_damage_gives_a_valid_trace_or_a_format_error(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, int, bytes]], target: str, on_error: str
) -> None:
    good = {"log": text(HEADER + ROWS), "nodes": NODES.encode()}
    good["packed"] = gzip.compress(good["log"], mtime=0)
    data = good[target]
    for place, out, new in edits:
        place %= len(data) + 1
        data = data[:place] + new + data[place + out :]
    folder = tmp_path_factory.getbasetemp()
    path = folder / ("fuzzed.swf.gz" if target == "packed" else "fuzzed.swf")
    path.write_bytes(data if target != "nodes" else good["log"])
    nodes = folder / "fuzzed_nodes.csv"
    nodes.write_bytes(data)
    try:
        trace = read_trace(path, format="swf", nodes=nodes if target == "nodes" else None, on_error=on_error)
    except TraceFormatError as error:
        assert "\n" not in str(error)
        return
    assert isinstance(trace, Trace) and len(trace.arrival) > 0 and (np.diff(trace.arrival) >= 0).all()
    for values in (trace.arrival, trace.duration, trace.cores, trace.memory):
        assert values.shape == trace.arrival.shape and np.isfinite(values).all() and (values >= 0).all()
    assert (trace.duration > 0).all() and (trace.cores > 0).all() and (trace.machine_cores > 0).all()
    assert np.isfinite(trace.machine_cores).all() and (trace.machine_memory >= 0).all()
    if on_error == "raise":
        assert not any("malformed" in reason for reason in trace.dropped)
    if target == "log":  # every line is a job, dropped and counted, a comment, or blank
        lines = [line.removesuffix(b"\r") for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
        assert trace.rows == sum(
            bool(line.decode(errors="replace").strip()) and not line.startswith(b";") for line in lines
        )
