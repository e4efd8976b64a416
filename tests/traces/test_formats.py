"""The formats of published traces, on small files in exactly their schemas, and on the published files."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

import schedgym  # noqa: F401  (registers the ids)
from schedgym.errors import InvalidParameter, InvalidWorkload, TraceFormatError
from schedgym.problems.queue_delay.workload import from_trace
from schedgym.traces import JobTrace, Trace, formats, inspect_trace, nested, read_trace
from schedgym.traces.fetch import known_sets
from schedgym.traces.table import parse_clock
from tests.tables import table
from tests.traces.logs import LOGS, SWIM_ROWS, lines, write

(SLURM,), JOBS = LOGS["slurm"].head, LOGS["slurm"].rows
real = pytest.mark.skipif(
    not os.environ.get("SCHEDGYM_DATA"), reason="SCHEDGYM_DATA names no folder with the public traces"
)


def published(name: str) -> Path:
    return Path(os.environ["SCHEDGYM_DATA"]) / known_sets()[name].file


def read(path: Path, **options: Any) -> Trace:
    trace = read_trace(path, **options)
    assert isinstance(trace, Trace)
    return trace


def test_slurm_with_other_columns(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "sacct.txt",
        "JobID|Submit|Elapsed|State|NCPUS",
        "1|2024-03-01T08:00:00|00:00:09|COMPLETED|3",
    )
    trace = read(path)
    assert trace.cores.tolist() == [3] and trace.memory.tolist() == [0] and trace.start.size == 0
    path = lines(path, "JobID|Submit|Elapsed|State", "1|2024-03-01T08:00:00|00:00:09|COMPLETED")
    with pytest.raises(
        TraceFormatError, match=":1: AllocCPUS or NCPUS or AllocTRES.cpu or ReqCPUS or .*: missing"
    ):
        read(path)
    path = lines(path, "JobID|Submit|Elapsed|State|NCPUS|ReqMem", "1|2024-03-01|00:00:09|COMPLETED|3|4Gn")
    with pytest.raises(
        TraceFormatError, match=":2: ReqMem: '4Gn' needs the column AllocNodes or NNodes or All"
    ):
        read(path)


@pytest.mark.parametrize(("column", "text", "reason"), table(__file__, "test_slurm_errors_name_the_column"))
def test_slurm_errors_name_the_column(tmp_path: Path, column: str, text: str, reason: str) -> None:
    fields = JOBS[3].split("|")
    fields[SLURM.split("|").index(column)] = text
    path = lines(tmp_path / "sacct.txt", SLURM, JOBS[0], "|".join(fields))
    with pytest.raises(TraceFormatError, match=rf"sacct\.txt:3: {column}: {reason}"):
        read(path)
    trace = read(path, on_error="skip")
    assert len(trace.arrival) == 1 and trace.dropped == {"malformed": 1}
    assert (trace.left_out[0].column, trace.left_out[0].line) == (column, 3)


@given(st.integers(0, 10**6 - 1), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_elapsed_times(days: int, hours: int, minutes: int, seconds: int) -> None:
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    assert parse_clock(f"{days}-{hours:02}:{minutes:02}:{seconds:02}") == total
    assert parse_clock(f"{hours:02}:{minutes:02}:{seconds:02}") == total - days * 86400
    assert parse_clock(f"{minutes:02}:{seconds:02}") == minutes * 60 + seconds


def test_a_format_that_assumes_something_must_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", LOGS["azure-llm"].lines)
    message = "looks like the format azure-llm, which assumes one core a request, for 0.02 s .*: name it"
    with pytest.raises(TraceFormatError, match=message):
        read(path)


# Philly -----------------------------------------------------------------------------------------------------


def job(
    number: int, *attempts: tuple[Any, Any, list[int]], submitted: Any = "2017-10-07 01:11:39"
) -> dict[str, Any]:
    return {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": f"application_{number}",
        "attempts": [
            {
                "start_time": start,
                "end_time": end,
                "detail": [
                    {"ip": f"m{i}", "gpus": [f"gpu{k}" for k in range(n)]} for i, n in enumerate(gpus)
                ],
            }
            for start, end, gpus in attempts
        ],
        "submitted_time": submitted,
        "user": "ce2f4c",
    }


def text_of(**given: Any) -> str:
    """A file of one job."""
    return json.dumps([job(1, ("2017-10-07 01:12:09", "2017-10-07 01:13:23", [8]), **given)])


PHILLY = [
    job(
        1,
        ("2017-10-07 01:12:09", "2017-10-07 01:13:23", [8, 8]),
        ("2017-10-07 01:13:30", "2017-10-09 06:53:12", [8]),
    ),
    job(2),
    job(3, ("2017-10-07 02:00:00", None, [1])),
    job(4, ("None", "2017-10-07 03:00:00", [1])),
    job(5, ("2017-10-07 02:00:00", "2017-10-07 02:00:00", [1])),
    job(6, ("2017-10-06 02:00:00", "2017-10-06 02:00:09", [1]), submitted="2017-10-06 01:00:00"),
]


@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_philly(tmp_path: Path, indent: int | None, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nested, "BLOCK", block)
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps(PHILLY, indent=indent))
    machines = lines(
        tmp_path / "cluster_machine_list", "machineId,number of GPUs,single GPU mem", *("m,8, 24GB",) * 2
    )
    trace = read(path, nodes=machines)
    assert (
        trace.name == "philly" and trace.unit == "cores, GiB" and trace.origin == "2017-10-06T00:00:00+00:00"
    )
    assert trace.arrival.tolist() == [3600, 86400 + 4299] and trace.gpu.tolist() == [1, 16]
    assert trace.duration.tolist() == [9, 2 * 86400 + 5 * 3600 + 41 * 60 + 3]
    assert (trace.start - trace.arrival).tolist() == [3600, 30]
    assert trace.dropped == {"no attempt": 1, "start or end unknown": 2, "execution <= 0": 1}
    assert [one.line for one in trace.left_out] == [2, 3, 5]
    assert trace.machine_gpu.tolist() == [8, 8] and not trace.cores.any() and not trace.machine_cores.any()
    assert read(path, limit=1).gpu.tolist() == [16]
    with pytest.raises(InvalidParameter, match="resources: .* ask for gpu only, not for cpu or memory"):
        from_trace(trace, True)
    assert from_trace(trace, True, ("gpu",))[0][:, 2].tolist() == [1 / 16, 1]
    for name in ("FlowtimePacking", "PartialValue"):
        with pytest.raises((InvalidParameter, InvalidWorkload), match="has GPUs only; this problem needs p"):
            gym.make(f"schedgym/{name}-v0", trace=str(path), trace_format="philly")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *table(__file__, "test_philly_errors"),
        (text_of(submitted=None), "job 1: submitted_time: is empty"),
        (text_of(submitted="x"), "job 1: submitted_time: must be a date as .*, got 'x'"),
        (text_of(submitted=7), "job 1: submitted_time: must be a date"),
        (text_of(submitted=[7]), "job 1: submitted_time: must be a date"),
        (text_of(submitted=""), "job 1: submitted_time: is empty"),
        ("[" * 100_000, "job 1: is nested too deeply"),
        (json.dumps(PHILLY)[:-30], "job 6: not JSON"),
        (json.dumps(PHILLY)[:-1], "job 7: the list is cut off"),
        (
            json.dumps(PHILLY[:1]).replace('"gpus": [', '"gpus": 1, "g": ['),
            "job 1: detail: must be a list of servers",
        ),
    ],
)
def test_philly_errors(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "cluster_job_log"
    path.write_text(text)
    with pytest.raises(TraceFormatError, match=message) as caught:
        read(path, format="philly")
    assert "\n" not in str(caught.value)


def test_philly_skips_and_counts(tmp_path: Path) -> None:
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps([{}, *PHILLY[:1], PHILLY[0] | {"submitted_time": "x"}]))
    trace = read(path, on_error="skip", format="philly")
    assert trace.dropped == {"malformed": 2}
    assert [(one.line, one.column) for one in trace.left_out] == [(1, "attempts"), (3, "submitted_time")]


# Alibaba 2023, SWIM -----------------------------------------------------------------------------------------


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    return write(tmp_path / "pods.csv", LOGS["alibaba"].lines)


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    return write(tmp_path / "nodes.csv", LOGS["alibaba"].machines)


def test_swapped_files_are_told_apart(pods: Path, nodes: Path) -> None:
    with pytest.raises(TraceFormatError, match=r"nodes\.csv:1: creation_time: missing column"):
        read_trace(nodes, nodes=pods)


def test_inspect(pods: Path, nodes: Path) -> None:
    facts = inspect_trace(pods, nodes)
    assert facts["duration"]["median"] == 400 and facts["duration"]["max"] == 900
    assert facts["cores"]["mean"] == 6.5 and facts["memory"]["min"] == 0
    assert facts["machines"] == 2 and facts["tasks_without_machine"] == 0
    assert facts["largest_machine"] == {"cores": 96, "memory": 384, "gpu": 8}
    assert facts["gpu"]["max"] == 1 and facts["offered_load"]["gpu"] == pytest.approx(814 / (250 * 8))
    volume = 900 * 6.5 + 400 * 12 + 120 * 1
    assert facts["offered_load"]["cores"] == pytest.approx(volume / (250 * 128))
    assert facts["offered_load"]["memory"] == pytest.approx((900 * 12 + 400 * 16) / (250 * 640))


def test_inspect_without_machines_or_span(pods: Path, nodes: Path, tmp_path: Path) -> None:
    facts = inspect_trace(pods)
    assert facts["machines"] == 0
    assert facts["largest_machine"] is facts["offered_load"] is facts["tasks_without_machine"] is None
    facts = inspect_trace(pods, nodes, limit=1)
    assert facts["offered_load"] == {"cores": None, "memory": None, "gpu": None}
    small = lines(tmp_path / "small.csv", LOGS["alibaba"].machines[0], "a,6500,12288,0,", "b,20000,12287,0,")
    with pytest.raises(InvalidParameter, match="1 of 3 jobs fit none of them, 49.1% of the GPU-hours"):
        inspect_trace(pods, small)  # 12 cores with 16 GiB and 1 GPU: 44.6% of the core-seconds
    assert inspect_trace(pods, small, pool=True)["tasks_without_machine"] == 0


def test_jobs_are_sorted_stably_by_arrival(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path / "jobs.tsv", [SWIM_ROWS[i] for i in (4, 2, 1, 0)]))
    assert isinstance(trace, JobTrace)
    assert trace.arrival.tolist() == [9, 18, 18, 25.5]
    assert trace.input_bytes.tolist() == [1762, 3000000001, 3000000000, 404]
    assert trace.gap.tolist() == [9, 0, 9, 3.5]
    assert repr(trace) == "JobTrace('swim', jobs: 4, dropped: {})"
    with pytest.raises(ValueError, match="read-only"):
        trace.gap[0] = 0.0


def test_jobs_by_bytes_have_no_machines_and_are_no_tasks(tmp_path: Path) -> None:
    jobs = write(tmp_path / "jobs.tsv", SWIM_ROWS)
    with pytest.raises(InvalidParameter, match="nodes: the swim format has no machines, got 'machines.csv'"):
        read_trace(jobs, nodes="machines.csv")
    message = "trace: the swim trace has jobs by their bytes; this problem needs tasks"
    with pytest.raises(InvalidParameter, match=message) as caught:
        from_trace(read_trace(jobs))
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidParameter, match=message):
        gym.make("schedgym/QueueDelay-v0", trace=str(jobs), tasks=2, servers=1, window=8)


# all of them ------------------------------------------------------------------------------------------------


def test_every_format_says_where_it_comes_from() -> None:
    for format in formats().values():
        assert format.help and format.address.startswith("https://")
        for one in format.files.values():
            assert one.url.startswith("https://") and one.url.endswith(f"/{one.file}")
            assert one.help and one.licence and 10_000 < one.size < 2 * 10**9
            assert not one.sha256 or (len(one.sha256) == 64 and int(one.sha256, 16))


@real
@pytest.mark.parametrize(
    ("name", "format", "rows", "tasks"),
    [("alibaba-2025", None, 23871, 12374), ("azure-llm-code", "azure-llm", 8819, 8819)],
)
def test_published_files(name: str, format: str | None, rows: int, tasks: int) -> None:
    trace = read(published(name), format=format)
    assert (trace.rows, len(trace.arrival)) == (rows, tasks)
    assert (trace.duration > 0).all() and (np.diff(trace.arrival) >= 0).all()


@real
def test_the_published_pods_and_nodes() -> None:
    pods, nodes = (published(f"alibaba-2023-{name}") for name in ("pods", "nodes"))
    with pods.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 8152
    phases = Counter(row["pod_phase"] for row in rows)
    assert phases == {"Running": 5193, "Failed": 1870, "Pending": 897, "Succeeded": 192}
    assert all((row["scheduled_time"] == "") == (row["pod_phase"] == "Pending") for row in rows)

    trace = read(pods, nodes=nodes)
    assert trace.rows == 8152 and len(trace.arrival) == 8151
    assert trace.dropped == {"execution <= 0": 1}
    assert len(trace.machine_cores) == 1523
    with nodes.open(newline="") as stream:
        assert sum(int(row["gpu"]) for row in csv.DictReader(stream)) == trace.machine_gpu.sum() == 6212
    asked = np.array([int(row["num_gpu"]) * int(row["gpu_milli"]) for row in rows])
    assert (int((asked > 0).sum()), int(((asked > 0) & (asked < 1000)).sum())) == (7064, 3078)
    # the same facts, by another way
    expected = [
        (
            int(r["creation_time"]),
            duration,
            int(r["cpu_milli"]) / 1000,
            int(r["memory_mib"]) / 1024,
            int(r["num_gpu"]) * int(r["gpu_milli"]) / 1000,
        )
        for r in rows
        if (duration := int(r["deletion_time"]) - int(r["scheduled_time"] or r["creation_time"])) > 0
    ]
    expected.sort(key=lambda task: task[0])
    got = np.column_stack([trace.arrival, trace.duration, trace.cores, trace.memory, trace.gpu])
    assert np.array_equal(got, np.array(expected))
    # and as an environment takes them
    table, machines = from_trace(trace, resources=("cpu", "memory", "gpu"))
    assert np.array_equal(8 * table[:, 4], np.array(expected)[:, 4]) and 8 * machines[:, 2].sum() == 6212
    own = {"trace": str(pods), "nodes": str(nodes), "load": 0.9, "tasks": 300, "servers": 16, "window": 8}
    env = gym.make("schedgym/QueueDelay-v0", **own, resources=("cpu", "memory", "gpu"))
    observation, _ = env.reset(seed=0)
    assert observation["capacity"].shape == (16, 3) and (observation["capacity"][0] > 0).all()


@real
def test_the_waits_of_the_published_pods_hardly_follow_the_load() -> None:
    """So docs/how-to/advise.md claims nothing about them."""
    trace = read(published("alibaba-2023-pods"))
    known = np.isfinite(trace.start)
    arrival, begin, wait = trace.arrival[known], trace.start[known], (trace.start - trace.arrival)[known]
    end = begin + trace.duration[known]
    assert np.median(wait) == 2
    for demand in (trace.cores[known], trace.memory[known], trace.gpu[known]):
        load = np.array([demand[(begin < at) & (end > at)].sum() for at in arrival.tolist()])
        assert 0.05 < spearmanr(wait, load).statistic < 0.15


@real
def test_the_published_trace_inspected() -> None:
    pods, nodes = (published(f"alibaba-2023-{name}") for name in ("pods", "nodes"))
    facts = inspect_trace(pods, nodes)
    assert facts["largest_machine"] == {"cores": 128, "memory": 768, "gpu": 8}
    assert facts["tasks_without_machine"] == 0
    assert (facts["first_arrival"], facts["last_arrival"]) == (0, 12901761)
    assert facts["duration"]["median"] == 485
    assert facts["cores"]["max"] == 120.2 and facts["memory"]["max"] == 720
    assert facts["offered_load"]["cores"] == pytest.approx(0.00155, rel=0.01)
    assert facts["offered_load"]["gpu"] == pytest.approx(0.00231, rel=0.01)


@real
def test_the_published_facebook_workload() -> None:
    path = published("facebook-2010")
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
