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

import schedgym  # noqa: F401  (registers the ids)
from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.problems.queue_delay.workload import from_trace
from schedgym.traces import JobTrace, Trace, formats, inspect_trace, philly, read_trace
from schedgym.traces.fetch import known_sets
from schedgym.traces.table import parse_clock
from tests.traces.logs import LOGS, NODES, SLURM, SLURM_JOBS, SWIM_ROWS, write

JOBS = SLURM_JOBS
real = pytest.mark.skipif(
    not os.environ.get("SCHEDGYM_DATA"), reason="SCHEDGYM_DATA names no folder with the public traces"
)


def published(name: str) -> Path:
    return Path(os.environ["SCHEDGYM_DATA"]) / known_sets()[name].file


def lines(path: Path, *rows: str) -> Path:
    return write(path, rows)


def read(path: Path, **options: Any) -> Trace:
    trace = read_trace(path, **options)
    assert isinstance(trace, Trace)
    return trace


def test_slurm(tmp_path: Path) -> None:
    trace = read(lines(tmp_path / "sacct.txt", SLURM, *JOBS))
    assert trace.name == "slurm" and trace.origin == "2024-03-01T00:00:00+00:00"
    assert trace.arrival.tolist() == [28800, 28860, 28860, 29100, 29160]
    assert trace.duration.tolist() == [90000, 600, 600, 5, 30]
    assert (trace.start - trace.arrival).tolist() == [10, 30, 31, 60, 60]
    assert trace.cores.tolist() == [8, 4, 4, 1, 2]
    assert trace.memory.tolist() == [32, 16, 16, 0.5, 1536]  # 16 GiB a node, 4 GiB a core, 512 MiB, 1.5 TiB
    assert trace.job.tolist()[1] == trace.job.tolist()[2] and len(set(trace.job.tolist())) == 4
    assert trace.dropped == {"job step": 2, "unfinished": 2, "execution <= 0": 1}
    assert [one.line for one in trace.left_out] == [3, 7, 8]


def test_slurm_with_other_columns(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "sacct.txt",
        "JobID|Submit|Elapsed|State|NCPUS",
        "1|2024-03-01T08:00:00|00:00:09|COMPLETED|3",
    )
    trace = read(path)
    assert trace.cores.tolist() == [3] and trace.memory.tolist() == [0] and trace.start.size == 0
    path = lines(path, "JobID|Submit|Elapsed|State", "1|2024-03-01T08:00:00|00:00:09|COMPLETED")
    with pytest.raises(TraceFormatError, match=":1: AllocCPUS or NCPUS or ReqCPUS: missing column"):
        read(path)
    path = lines(path, "JobID|Submit|Elapsed|State|NCPUS|ReqMem", "1|2024-03-01|00:00:09|COMPLETED|3|4Gn")
    with pytest.raises(
        TraceFormatError, match=":2: ReqMem: '4Gn' needs the column AllocNodes or NNodes or Req"
    ):
        read(path)


@pytest.mark.parametrize(
    ("column", "text", "reason"),
    [
        ("Elapsed", "1 day", "must be \\[days-\\]\\[hours:\\]minutes:seconds, got '1 day'"),
        ("Elapsed", "-00:01:00", "must be \\[days-\\]"),
        ("Elapsed", "90", "must be \\[days-\\]"),
        ("Submit", "yesterday", "must be a date \\(ISO 8601\\), got 'yesterday'"),
        ("Start", "08:00", "must be a date"),
        ("AllocCPUS", "1K", "must be a number, got '1K'"),
        ("ReqMem", "16X", "must be a number and a letter of its unit, got '16X'"),
        ("ReqMem", "16GB/node", "must be a number and a letter"),
        ("JobID", "", "is empty"),
    ],
)
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


ALIBABA_2025 = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,"
    "memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,"
    "scheduled_time,deletion_time"
)


def test_alibaba_2025(tmp_path: Path) -> None:
    rows = [
        "i0,HN,app_0,12,12,1,1,25,25,120.0,120.0,640.0,800.0,8,,,",
        "i1,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,1435629.0,1435630.0,1435760.0",
        "i2,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,1435629.0,1435630.0,",
        "i3,CN,app_1,16,16,0,0,1,1,64.0,64.0,255.0,300.0,-1,1435700.0,,1435760.0",
        "i4,CN,app_1,16,16,0,0,1,1,64.0,64.0,255.0,300.0,-1,NaN,NaN,1435760.0",
    ]
    trace = read(lines(tmp_path / "t.csv", ALIBABA_2025, *rows))
    assert trace.name == "alibaba2025"
    assert trace.arrival.tolist() == [1435629, 1435700] and trace.duration.tolist() == [130, 60]
    assert trace.cores.tolist() == [64, 16] and trace.memory.tolist() == [320, 64]
    assert trace.dropped == {"creation_time empty": 2, "deletion_time empty": 1}


ACME = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time"
)
KALOS = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,"
    "end_time,fail_time,stop_time,duration,queue,gpu_time"
)


def test_acme(tmp_path: Path) -> None:
    """The rows are the README's, and one without a start."""
    rows = [
        "5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
        "2023-03-01 00:20:51+08:00,117,32,936.0",
        "5778469,u5907,1,8,128,Other,COMPLETED,2023-03-01 00:23:58+08:00,2023-03-01 00:24:11+08:00,"
        "2023-03-01 01:09:04+08:00,2693,13,21544.0",
        "5778470,u5907,1,0,8,Other,CANCELLED,2023-03-01 00:24:58+08:00,,2023-03-01 01:09:04+08:00,,,",
    ]
    trace = read(lines(tmp_path / "trace_seren.csv", ACME, *rows))
    assert trace.name == "acme" and trace.origin == "2023-02-28T00:00:00+00:00"
    assert trace.duration.tolist() == [117, 2693] and (trace.start - trace.arrival).tolist() == [32, 13]
    assert trace.cores.tolist() == [128, 128] and trace.memory.tolist() == [0, 0]
    assert trace.dropped == {"start_time empty": 1}
    row = (
        "dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,"
        "2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0"
    )
    trace = read(lines(tmp_path / "trace_kalos.csv", KALOS, row))
    assert trace.duration.tolist() == [8] and trace.cores.tolist() == [960]
    assert trace.memory.tolist() == [8000e9 / 2**30]


def test_helios(tmp_path: Path) -> None:
    header = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
    rows = [
        "1425511,uXBbc,vcJkd,1,1,1,COMPLETED,"
        "2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0",
        "1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0",
        "1425513,uzqls,vcpDC,1,1,1,CANCELLED,"
        "2020-06-09 18:41:28,2020-06-09 18:41:30,2020-06-17 14:15:21,675233,0",
    ]
    trace = read(lines(tmp_path / "cluster_log.csv", header, *rows))
    assert trace.name == "helios" and trace.duration.tolist() == [36848, 249, 675231]
    assert trace.cores.tolist() == [1, 16, 1] and trace.arrival[0] == 18 * 3600 + 41 * 60 + 1


def test_alibaba_2020(tmp_path: Path) -> None:
    names = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type"
    rows = [
        "j1,ps,1.0,Terminated,100.0,160.0,600.0,29.296875,,",
        "j1,worker,2.0,Terminated,101.0,161.0,400.0,10,50.0,MISC",
        "j2,worker,1.0,Running,102.0,,400.0,10,50.0,T4",
        "j3,worker,1.0,Waiting,,,400.0,10,50.0,T4",
        "j4,worker,1.0,Failed,103.0,104.0,,,50.0,T4",
    ]
    machines = lines(tmp_path / "pai_machine_spec.csv", "82e5,T4,96,512,2", "82e6,CPU,64,256,0")
    for first in ((), (names,)):
        trace = read(lines(tmp_path / "pai_task_table.csv", *first, *rows), nodes=machines)
        assert trace.name == "alibaba2020"
        assert trace.arrival.tolist() == [100, 101, 101, 103] and trace.duration.tolist() == [60, 60, 60, 1]
        assert trace.cores.tolist() == [6, 4, 4, 0] and trace.memory.tolist() == [29.296875, 10, 10, 0]
        assert len(set(trace.job[:3].tolist())) == 1 and trace.job[3] != trace.job[0]
        assert trace.machine_cores.tolist() == [96, 64] and trace.machine_memory.tolist() == [512, 256]
        assert trace.dropped == {"end_time empty": 1, "start_time empty": 1}
        assert trace.filled == {"cpus unknown": 1, "memory unknown": 1}


def test_azure_llm(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "t.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        "2023-11-16 18:17:03.9799600,4808,10",
        "2023-11-16 18:17:04.0319600,3180,0",
    )
    trace = read(path, format="azure-llm")
    assert trace.duration.tolist() == [0.2] and trace.cores.tolist() == [1]
    assert trace.arrival.tolist() == pytest.approx([65823.97996], abs=1e-7)
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
    monkeypatch.setattr(philly, "BLOCK", block)
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps(PHILLY, indent=indent))
    machines = lines(
        tmp_path / "cluster_machine_list", "machineId,number of GPUs,single GPU mem", "m31,8, 24GB"
    )
    trace = read(path, nodes=machines)
    assert trace.name == "philly" and trace.unit == "GPUs" and trace.origin == "2017-10-06T00:00:00+00:00"
    assert trace.arrival.tolist() == [3600, 86400 + 4299] and trace.cores.tolist() == [1, 16]
    assert trace.duration.tolist() == [9, 2 * 86400 + 5 * 3600 + 41 * 60 + 3]
    assert (trace.start - trace.arrival).tolist() == [3600, 30]
    assert trace.dropped == {"no attempt": 1, "start or end unknown": 2, "execution <= 0": 1}
    assert [one.line for one in trace.left_out] == [2, 3, 5]
    assert trace.machine_cores.tolist() == [8] and trace.machine_memory.tolist() == [0]
    assert read(path, limit=1).cores.tolist() == [16]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "must be a JSON list of jobs"),
        ("", "must be a JSON list of jobs"),
        ("[", ":1: the list is cut off"),
        ("[]", "has no task"),
        ("[1]", ":1: must be a mapping of names to values"),
        ("[{]", ":1: not JSON: "),
        ("[[]]", ":1: must be a mapping"),
        ("[{}]", ":1: attempts: must be a list of attempts"),
        ('[{"attempts": [1]}]', ":1: attempts: must be a list"),
        ('[{"attempts": []}]', ":1: submitted_time: is missing"),
        ('[{"attempts": [], "submitted_time": "x"}]', ":1: submitted_time: must be a date as .*, got 'x'"),
        ('[{"attempts": [], "submitted_time": 7}]', ":1: submitted_time: must be a date"),
        ('[{"attempts": [], "submitted_time": [7]}]', ":1: submitted_time: must be a date"),
        ('[{"attempts": [], "submitted_time": ""}]', ":1: submitted_time: is empty"),
        ("[" * 100_000, ":1: is nested too deeply"),
        (json.dumps(PHILLY)[:-30], ":6: not JSON"),
        (json.dumps(PHILLY)[:-1], ":7: the list is cut off"),
        (
            json.dumps(PHILLY[:1]).replace('"gpus": [', '"gpus": 1, "g": ['),
            ":1: detail: must be a list of servers",
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
    path.write_text(json.dumps([{}, *PHILLY[:1], {"attempts": [], "submitted_time": "x"}]))
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


def test_alibaba_2023(pods: Path, nodes: Path) -> None:
    trace = read(pods, nodes=nodes)
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


@pytest.mark.parametrize("column", LOGS["alibaba"].read)
def test_a_missing_column_is_named_on_line_1(tmp_path: Path, column: str) -> None:
    header, *rows = LOGS["alibaba"].lines
    path = lines(tmp_path / "pods.csv", header.replace(column, "spare"), *rows)
    for format in ("alibaba", None):
        with pytest.raises(TraceFormatError, match=f":1: {column}: missing column"):
            read(path, format=format, on_error="skip")


def test_swapped_files_are_told_apart(pods: Path, nodes: Path) -> None:
    with pytest.raises(TraceFormatError, match=r"nodes\.csv:1: creation_time: missing column"):
        read_trace(nodes, nodes=pods)


def test_inspect(pods: Path, nodes: Path) -> None:
    facts = inspect_trace(pods, nodes)
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
    small = lines(tmp_path / "small.csv", NODES, "a,6500,12288,0,", "b,20000,12287,0,")
    assert inspect_trace(pods, small)["tasks_without_machine"] == 1  # 12 cores with 16 GiB


def test_swim(tmp_path: Path) -> None:
    jobs = write(tmp_path / "jobs.tsv", SWIM_ROWS)
    trace = read_trace(jobs)
    assert isinstance(trace, JobTrace)
    assert trace.name == "swim"
    assert trace.arrival.tolist() == [9, 18, 18, 22, 25.5]
    assert trace.gap.tolist() == [9, 9, 0, 4, 3.5]
    assert trace.input_bytes.tolist() == [1762, 3000000000, 3000000001, 0, 404]
    assert trace.shuffle_bytes.tolist() == [0, 609, 1510005522, 49, 22]
    assert trace.output_bytes.tolist() == [14347, 697, 5759777, 0, 191]
    assert trace.dropped == {} and trace.rows == 5 and trace.files == (jobs,)
    assert repr(trace) == "JobTrace('swim', jobs: 5, dropped: {})"


def test_jobs_are_sorted_stably_by_arrival(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path / "jobs.tsv", [SWIM_ROWS[i] for i in (4, 2, 1, 0)]))
    assert isinstance(trace, JobTrace)
    assert trace.arrival.tolist() == [9, 18, 18, 25.5]
    assert trace.input_bytes.tolist() == [1762, 3000000001, 3000000000, 404]
    assert trace.gap.tolist() == [9, 0, 9, 3.5]
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
            assert one.help and one.url.startswith("https://") and (one.licence or format.licence)
            assert one.url.endswith(f"/{one.file}")


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
    pods, nodes = (published(f"alibaba-2023-{name}") for name in ("pods", "nodes"))
    facts = inspect_trace(pods, nodes)
    assert facts["largest_machine"] == {"cores": 128, "memory": 1024}
    assert facts["tasks_without_machine"] == 0
    assert (facts["first_arrival"], facts["last_arrival"]) == (0, 12901761)
    assert facts["duration"]["median"] == 485
    assert facts["cores"]["max"] == 120.2 and facts["memory"]["max"] == 720
    assert facts["offered_load"]["cores"] == pytest.approx(0.00155, rel=0.01)


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
