"""Every reader of files: pipes and devices are refused at once, and what a file takes has limits."""

import contextlib
import gzip
import os
import signal
import subprocess
import sys
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
from schedgym.traces.philly import read_philly
from schedgym.traces.table import TableReader
from tests.long import long

READERS = {
    "w.json": load_workload,
    "w.npz": load_workload,
    "a.npz": load_agent,
    "s.yaml": read_yaml,
    "t.json": read_tuned,
    "t.csv": read_trace,
    "t.csv.gz": read_trace,
    "t.parquet": read_trace,
    "cluster_job_log.json": read_philly,
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


@pytest.mark.parametrize(
    "command",
    [
        ["run", "schedgym/QueueDelay-v0", "--policy", "fcfs", "--workload", "zero.json"],
        ["sweep", "zero.yaml"],
        ["train", "schedgym/QueueDelay-v0", "--config", "zero.yaml"],
        ["compare", "schedgym/QueueDelay-v0", "--episodes", "1", "--trace", "zero.csv"],
    ],
)
def test_commands_end_in_one_line(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    for suffix in ("json", "yaml", "csv"):
        (tmp_path / f"zero.{suffix}").symlink_to("/dev/zero")
    with soon(60):
        assert main(command) == 2
    error = capsys.readouterr().err
    assert "is not a regular file" in error and error.count("\n") == 1


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
    command = [sys.executable, "-c", program, str(path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
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
