"""The files of docs/examples, which the page "What it reads" shows: what is read of each, in any packing."""

from __future__ import annotations

import codecs
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from schedgym.advice.reading import read_log
from schedgym.documents import read_yaml
from schedgym.errors import TraceFormatError
from schedgym.traces import JobTrace, formats, inspect_trace, read_trace
from tests.tables import table
from tests.traces.logs import write

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLES = read_yaml(DOCS / "examples.yaml")
STRANGERS = Path(os.environ.get("SCHEDGYM_DATA", "")).parent / "strangers"


def advised(path, columns=None, **how):
    """The trace and the lines of a log as advise reads it, on machines that are large enough."""
    found = read_log(path, {"servers": 1, "cpus": 1e9, "gpus": 1e9, "columns": columns, **how})
    return found.trace, found.lines


def taken(trace):
    """The number of tasks, their core-seconds, and their GPU-seconds."""
    work = (float(trace.duration @ size) for size in (trace.cores, trace.gpu))
    return len(trace.arrival), *(pytest.approx(amount, rel=1e-12) for amount in work)


def test_every_format_has_a_short_example():
    assert {path.name for path in (DOCS / "examples").iterdir()} == set(EXAMPLES)
    assert {one.get("of", "") for one in EXAMPLES.values()} == {"", *formats()}
    for name in EXAMPLES:
        assert len((DOCS / "examples" / name).read_text().splitlines()) < 10, name


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(tmp_path, name):
    one, content = EXAMPLES[name], (DOCS / "examples" / name).read_bytes()
    true = one["tasks"], one.get("core_seconds"), one.get("gpu_seconds", 0)
    lines = content.replace(b"\n", b"\r\n")
    for file, text in (("a", content), ("b.gz", content), ("c", codecs.BOM_UTF8 + content), ("d", lines)):
        path = write(tmp_path / file, text)
        if one.get("of"):
            assumes = formats()[one["of"]].assumes
            found = read_trace(path, format=one["of"] if assumes else None)
            assert found.name == one["of"] and found.notes == tuple(one.get("notes", ()))
            if isinstance(found, JobTrace):
                assert len(found.arrival) == one["tasks"]
                continue
            assert true == taken(found)
        trace, said = advised(path, format=one["of"] if one.get("of") and assumes else None)
        assert true == taken(trace)
        assert set(one.get("notes", ())) <= set(said)


@pytest.mark.parametrize(("name", "old", "new", "message"), table(__file__, "test_damaged_examples"))
def test_damaged_examples(tmp_path, name, old, new, message):
    text = (DOCS / "examples" / name).read_text()
    assert old in text
    path = write(tmp_path / name, text.replace(old, new))
    for read in (read_trace, advised):
        if EXAMPLES[name].get("of") or read is advised:
            with pytest.raises(TraceFormatError) as caught:
                read(path)
            assert str(caught.value).startswith(f"{path}{message}") and "\n" not in str(caught.value)


@pytest.mark.parametrize(("lines", "message"), table(__file__, "test_what_is_no_table"))
def test_what_is_no_table(tmp_path, lines, message):
    path = write(tmp_path / "log", lines)
    with pytest.raises(TraceFormatError) as caught:
        advised(path)
    assert str(caught.value).startswith(f"{path}{message}") and "\n" not in str(caught.value)


@pytest.mark.parametrize(("lines", "columns", "empty", "expected"), table(__file__, "test_other_kinds"))
def test_other_kinds(tmp_path, lines, columns, empty, expected):
    trace, said = advised(write(tmp_path / "log", lines), columns, empty=empty)
    found = {"cores": trace.cores.tolist(), "memory": trace.memory.tolist(), "start": trace.start.tolist()}
    found |= {
        "arrival": trace.arrival.tolist(),
        "duration": trace.duration.tolist(),
        "said": expected.get("said") if expected.get("said") in said else said,
    }
    found |= {"gpu": trace.gpu.tolist()}
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(("lines", "message"), table(__file__, "test_what_cannot_be_meant_is_refused"))
def test_what_cannot_be_meant_is_refused(tmp_path, lines, message):
    if isinstance(lines[-1], int):  # so many rows more, counted up
        *lines, form, count = lines
        lines += [form.format(i=i) for i in range(count)]
    with pytest.raises(TraceFormatError, match=re.escape(message)):
        advised(write(tmp_path / "log.csv", lines))


@pytest.mark.skipif(not STRANGERS.is_dir(), reason="beside SCHEDGYM_DATA lies no folder of strangers' logs")
@pytest.mark.parametrize(("name", "columns", "tasks", "load", "cores"), table(__file__, "test_strangers"))
def test_strangers(name, columns, tasks, load, cores):
    if isinstance(tasks, str):
        for read in (lambda path: advised(path, columns), inspect_trace):
            with pytest.raises(TraceFormatError, match=tasks):
                read(STRANGERS / name)
        return
    trace, _ = advised(STRANGERS / name, columns)
    span = float(np.ptp(trace.arrival))
    assert len(trace.arrival) == tasks
    assert float(trace.duration @ trace.cores) == pytest.approx(load * cores * span, rel=2e-3)


@pytest.mark.skipif(not STRANGERS.is_dir(), reason="beside SCHEDGYM_DATA lies no folder of strangers' logs")
@pytest.mark.parametrize("name", ["sacct_D.txt", "c_alloctres_only.txt"])
def test_the_jobs_of_a_stranger(name):
    trace, _ = advised(STRANGERS / "slurm" / name)
    begin = 8 * 3600.0  # of the clock of the truth
    found = np.column_stack([trace.arrival - begin, trace.duration, trace.cores, trace.memory])
    truth = [job[1:] for job in json.loads((STRANGERS / "slurm/truth.json").read_text())]
    assert sorted(found.tolist()) == sorted(truth)
