"""The trace of Microsoft's Philly clusters (github.com/msr-fiddle/philly-traces), which is no table.

Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads, USENIX ATC 2019.
The file ``cluster_job_log`` is a JSON list of jobs, each with the list of its attempts to run:

    {"status": "Pass", "vc": ..., "jobid": ..., "submitted_time": "2017-10-07 01:11:39", "user": ...,
     "attempts": [{"start_time": ..., "end_time": ..., "detail": [{"ip": ..., "gpus": ["gpu0", ...]}]}]}

Times are dates, empty or "None" where they are not known. The trace tells of GPUs only, so they stand in the
place of processors.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schedgym.errors import TraceFormatError
from schedgym.traces.base import (
    MALFORMED,
    NO_EXECUTION,
    Column,
    DataSet,
    Format,
    LeftOut,
    Rows,
    Trace,
    check_limit,
    check_on_error,
    read_machines,
    refuse_empty,
)
from schedgym.traces.texts import text_blocks

__all__ = ["FORMAT", "read_philly"]

BLOCK = 1 << 20  # bytes that are read at once
LONGEST_JOB = 1 << 24  # characters
FORM = "%Y-%m-%d %H:%M:%S"
UNKNOWN = (None, "", "None")

_BETWEEN = re.compile(r"[\s,]+")

#: why jobs are left out, as keys of ``Trace.dropped``
NO_ATTEMPT = "no attempt"
NO_TIMES = "start or end unknown"

NODES = (Column("number of GPUs", "GPUs", exclusive=True),)


def read_philly(
    path: str | Path,
    nodes: str | Path | None = None,
    *,
    on_error: str = "raise",
    limit: int | None = None,
) -> Trace:
    """Read the jobs of ``cluster_job_log``, and the machines of ``cluster_machine_list``.

    A job is one task that takes all its GPUs, as many as its first attempt had. Its recorded start is that of
    the first attempt, its duration the time from there to the end of the last one, as in the publishers'
    notebook. Left out and counted are "no attempt", "start or end unknown" (also jobs that were still
    running) and "execution <= 0". Memory is 0, as the trace does not contain what jobs request.

    Arguments and errors are those of :func:`~schedgym.traces.read_trace`; in place of lines, errors give the
    number of the job in the file.
    """
    check_limit(limit)
    check_on_error(on_error)
    kept = Rows("arrival", "start", "duration", "cores")
    left: dict[tuple[str, str], list[Any]] = {}
    midnight: datetime.datetime | None = None
    for number, job in enumerate(_jobs(Path(path)), 1):
        fault, column, detail = "", "", ""
        try:
            submitted, start, end, gpus = _facts(job)
        except _Fault as error:
            fault, column, detail = error.args
            if fault == MALFORMED and on_error == "raise":
                raise TraceFormatError(path, number, column, detail) from None
        else:
            fault = "" if end > start else NO_EXECUTION
        if fault:
            left.setdefault((fault, column), [0, number, detail])[0] += 1
            continue
        if midnight is None:
            midnight = submitted.replace(hour=0, minute=0, second=0)
        seconds = [(time - midnight).total_seconds() for time in (submitted, start, end)]
        kept.add(seconds[0], seconds[1], seconds[2] - seconds[1], gpus)
        if len(kept) == limit:
            break
    left_out = tuple(LeftOut(why, n, at, column, what) for (why, column), (n, at, what) in left.items())
    dropped: Counter[str] = Counter()
    for one in left_out:
        dropped[one.reason] += one.count
    refuse_empty(path, "task", kept, dropped)
    columns = kept.arrays()
    assert midnight is not None
    days = math.floor(columns["arrival"].min() / 86400.0)
    for name in ("arrival", "start"):
        columns[name] = columns[name] - days * 86400.0
    machines, more = read_machines(nodes, (*NODES, *NODES), on_error)
    if machines:
        machines["machine_memory"] = machines["machine_memory"] * 0.0
    return Trace(
        "philly",
        **columns,
        memory=columns["cores"] * 0.0,
        **machines,
        dropped={**dropped, **more},
        files=(Path(path),) if nodes is None else (Path(path), Path(nodes)),
        unit="GPUs",
        origin=(midnight + datetime.timedelta(days=days)).isoformat() + "+00:00",
        left_out=left_out,
    )


class _Fault(Exception):
    """A job that is left out: reason, field, what is wrong."""


def _jobs(path: Path) -> Iterator[Any]:
    """The jobs of a JSON list, one at a time."""
    decoder, number, place = json.JSONDecoder(), 0, 1
    blocks = text_blocks(path, BLOCK)
    text = next(blocks, "").lstrip()
    if not text.startswith("["):
        raise TraceFormatError(path, 0, "", "must be a JSON list of jobs")
    while True:
        between = _BETWEEN.match(text, place)
        place = between.end() if between else place
        if text.startswith("]", place):
            return
        try:
            job, end = decoder.raw_decode(text, place)
            reason = "" if isinstance(job, dict | list) else "must be a mapping of names to values"
        except RecursionError:
            raise TraceFormatError(path, number + 1, "", "is nested too deeply") from None
        except ValueError as error:
            reason = f"not JSON: {' '.join(str(error).split())[:200]}"
        if not reason:
            number, place = number + 1, end
            yield job
            continue
        if len(text) - place > LONGEST_JOB:
            raise TraceFormatError(
                path, number + 1, "", f"is no job, or longer than {LONGEST_JOB} characters"
            )
        block = next(blocks, None)  # the job may go on there
        if block is None:
            left = text[place:].strip()
            raise TraceFormatError(path, number + 1, "", reason if left else "the list is cut off")
        text, place = text[place:] + block, 0


def _facts(job: Any) -> tuple[datetime.datetime, datetime.datetime, datetime.datetime, float]:
    """Submission, first start, last end and number of GPUs of a job."""
    if not isinstance(job, Mapping):
        raise _Fault(MALFORMED, "", "must be a mapping of names to values")
    attempts = job.get("attempts")
    if not isinstance(attempts, list) or not all(isinstance(one, Mapping) for one in attempts):
        raise _Fault(MALFORMED, "attempts", "must be a list of attempts")
    submitted = _time(job, "submitted_time")
    if submitted is None:
        raise _Fault(MALFORMED, "submitted_time", "is empty, must be a date")
    if not attempts:
        raise _Fault(NO_ATTEMPT, "", "")
    start, end = _time(attempts[0], "start_time"), _time(attempts[-1], "end_time")
    if start is None or end is None:
        raise _Fault(NO_TIMES, "", "")
    detail = attempts[0].get("detail")
    if not isinstance(detail, list) or not all(
        isinstance(one, Mapping) and isinstance(one.get("gpus"), list) for one in detail
    ):
        raise _Fault(MALFORMED, "detail", "must be a list of servers with their gpus")
    return submitted, start, end, float(sum(len(one["gpus"]) for one in detail))


def _time(values: Mapping[str, Any], name: str) -> datetime.datetime | None:
    if name not in values:
        raise _Fault(MALFORMED, name, "is missing")
    text = values[name]
    if text in UNKNOWN:
        return None
    try:
        return datetime.datetime.strptime(text, FORM)
    except (TypeError, ValueError):
        raise _Fault(MALFORMED, name, f"must be a date as {FORM}, got {str(text)[:40]!r}") from None


def _recognises(line: str) -> bool:
    start = line.strip()
    return start == "[" or (start.startswith(("[{", "[ {")) and '"jobid"' in start)


FORMAT = Format(
    name="philly",
    help="Philly, jobs of Microsoft's GPU clusters 2017 (cluster_job_log, JSON)",
    licence="CC BY 4.0",
    address="https://github.com/msr-fiddle/philly-traces",
    cite="Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training, ATC 2019",
    jobs=117325,
    span="137 days",
    notes=("GPUs stand in the place of processors, as the trace tells nothing else",),
    files={
        "philly": DataSet(
            "trace-data.tar.gz",
            "https://media.githubusercontent.com/media/msr-fiddle/philly-traces/master/trace-data.tar.gz",
            1_055_988_361,
            "2037ccf63a725a02be718b0e1aeee6142c90b7f62d0d849295120e9f6ba13d2c",
            "Philly, an archive: unpack it, and read cluster_job_log",
            "CC BY 4.0",
        )
    },
    recognises=_recognises,
    read=read_philly,
)
