"""Every reader of files: pipes and devices are refused at once, and what a file takes has limits."""

import contextlib
import functools
import gzip
import json
import os
import signal
import zipfile

import numpy as np
import pytest

from schedgym.agents.files import load_agent
from schedgym.cli import main
from schedgym.core import workload_files
from schedgym.core.files import open_regular, read_text
from schedgym.core.workload_files import load_workload
from schedgym.documents import LARGEST, read_yaml
from schedgym.errors import InvalidFile, InvalidWorkload, SchedgymError, TraceFormatError
from schedgym.evaluation.tuned import read_tuned
from schedgym.traces import TableLayout, read_trace, texts
from schedgym.traces.base import Column
from schedgym.traces.table import TableReader
from tests.interpreted import python
from tests.long import long
from tests.tables import entry, table

READERS = {
    "w.json": load_workload,
    "w.npz": load_workload,
    "a.npz": load_agent,
    "s.yaml": read_yaml,
    "t.json": read_tuned,
    "t.csv": read_trace,
    "t.csv.gz": read_trace,
    "t.parquet": read_trace,
    "cluster_job_log.json": functools.partial(read_trace, format="philly"),
}


@contextlib.contextmanager
def soon(seconds=20):
    """Let what waits for ever fail."""

    def late(*_):
        raise AssertionError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["pipe", "/dev/zero"])
def test_special_files_are_refused_at_once(tmp_path, name, kind):
    path = tmp_path / name
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(kind)
    with soon(), pytest.raises(SchedgymError, match=f"{name}.*: is not a regular file") as caught:
        READERS[name](path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("command", table(__file__, "test_commands_end_in_one_line"))
def test_commands_end_in_one_line(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    for suffix in ("json", "yaml", "csv"):
        (tmp_path / f"zero.{suffix}").symlink_to("/dev/zero")
    with soon(60):
        assert main(command) == 2
    error = capsys.readouterr().err
    assert "is not a regular file" in error and error.count("\n") == 1


def sites(lists):
    """A workload of GeoAssign with a job per list of sites."""
    count = len(lists)
    tasks = {"job": [*range(count)], "duration": [1] * count, "sites": lists}
    cluster = {"slots": [1] * (1 + max(map(max, lists)))}
    return {"problem": "geo", "jobs": {"arrival": [0] * count}, "tasks": tasks, "cluster": cluster}


def tree(servers, **cluster):
    """A workload of SingleJob with one task."""
    jobs = {"load": [1], "efficiency": [[1] * servers], "energy_cap": 2}
    return {"problem": "single-job", "jobs": jobs, "cluster": {"cpu": [1] * servers, **cluster}}


MANY = {name: [1] * 20_000 for name in ("arrival", "processing", "cpu")}
LARGE = {
    **entry(__file__, "LARGE"),
    "jobs by servers": (
        *("FlowtimePacking", "srpt"),
        {"problem": "flowtime", "jobs": MANY, "cluster": {"cpu": [1] * 20_000}},
        "GiB, more than 4 (most of it for rows.held)",
    ),
    "one long list": (
        *("GeoAssign", "fcfs"),
        sites([[0]] * 2999 + [[*range(3000)]]),
        "tasks.sites[2999]: 3000 elements are too many for 3000 lists",
    ),
    "jobs by groups": (
        *("GeoAssign", "fcfs"),
        sites([[site] for site in range(10_000)]),
        "GiB, more than 4 (most of it for state.share)",
    ),
    "a large tree": (
        *("SingleJob", "most-efficient"),
        tree(8192, arity=32),
        "cluster.cpu: 8192 servers in 8737 groups are 71573504 pairs, more than 16777216",
    ),
    "many servers": (
        *("SingleJob", "most-efficient"),
        tree(5000, groups=[[1] * 5000], beta=[1]),
        "cluster.cpu: 5000 servers in 5000 groups are 25000000 pairs, more than 16777216",
    ),
}


@pytest.mark.parametrize(("name", "policy", "content", "message"), LARGE.values(), ids=LARGE)
def test_numbers_that_stand_for_much_are_refused(
    tmp_path, monkeypatch, capsys, name, policy, content, message
):
    """A small file does not take minutes, or all memory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.json").write_text(json.dumps(content))
    with soon(60):
        assert main(f"run schedgym/{name}-v0 --workload w.json --policy {policy}".split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: w.json: ") and message in error and error.count("\n") == 1


def test_folders_and_missing_files_stay_what_they_are(tmp_path):
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_text(tmp_path / "none", 10)
    (tmp_path / "text").write_text("0123456789")
    assert read_text(tmp_path / "text", 10) == "0123456789"
    with pytest.raises(InvalidFile, match="text: longer than 9 bytes"):
        read_text(tmp_path / "text", 9)


def test_texts_have_a_largest_size(tmp_path, monkeypatch):
    monkeypatch.setattr(workload_files, "LARGEST_TEXT", 1000)
    path = tmp_path / "w.json"
    path.write_text(" " * 1001)
    with pytest.raises(InvalidWorkload, match="w.json: longer than 1000 bytes"):
        load_workload(path)
    with open(tmp_path / "s.yaml", "wb") as stream:
        stream.truncate(2**40)  # with holes: it takes no room on the disk
    with soon(), pytest.raises(SchedgymError, match=f"longer than {LARGEST} bytes"):
        read_yaml(tmp_path / "s.yaml")


@long
def test_an_archive_that_would_fill_the_memory_is_not_unpacked(tmp_path):
    """Some ten megabytes that become more than two gigabytes."""
    path = tmp_path / "w.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("jobs/cpu.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(
                member, {"descr": "<f8", "fortran_order": False, "shape": (3 * 2**27,)}
            )
            for _ in range(24):
                member.write(bytes(2**27))
    assert path.stat().st_size < 20 * 2**20
    program = (
        "import resource, sys; from schedgym.core.workload_files import load_workload\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: load_workload(sys.argv[1])\n"
        "except ValueError as error: print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    lines = python("-c", program, str(path)).stdout.splitlines()
    assert f"w.npz: holds {24 * 2**27 + 128} bytes, more than {workload_files.LARGEST}" in lines[0]
    assert int(lines[1]) < 200_000  # KiB


def table(path):
    return TableReader(path, TableLayout(columns={}), "skip", numbers=[Column("a", "")])


def test_gzip_bombs_are_refused_soon(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(b"a,b\n")
        for _ in range(16):
            stream.write((b"," * 4095 + b"\n") * 2**10)
    with soon(), pytest.raises(TraceFormatError, match="expands to more than 200 times its size"):
        list(table(path).rows())
    with gzip.open(path, "wb", compresslevel=1) as stream:  # one endless line
        for _ in range(16):
            stream.write(bytes(2**22))
    with soon(), pytest.raises(TraceFormatError, match="expands to more than 200 times its size"):
        read_trace(path)


def test_tables_have_a_largest_size(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "1\n" * 20)
    assert len(list(table(path).rows())) == 20
    monkeypatch.setattr(texts, "MOST_LINES", 20)
    with pytest.raises(TraceFormatError, match="t.csv:21: the file has more than 20 lines"):
        list(table(path).rows())
    monkeypatch.undo()
    monkeypatch.setattr(texts, "MOST_BYTES", 30)
    with pytest.raises(TraceFormatError, match="t.csv:16: the file has more than 30 bytes"):
        list(table(path).rows())
