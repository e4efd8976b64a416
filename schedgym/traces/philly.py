"""The trace of Microsoft's Philly clusters (github.com/msr-fiddle/philly-traces), which is no table.

Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads, USENIX ATC 2019.
The file ``cluster_job_log`` is a JSON list of jobs, each with the list of its attempts to run:

    {"status": "Pass", "vc": ..., "jobid": ..., "submitted_time": "2017-10-07 01:11:39", "user": ...,
     "attempts": [{"start_time": ..., "end_time": ..., "detail": [{"ip": ..., "gpus": ["gpu0", ...]}]}]}

Times are dates, empty or "None" where they are not known. The trace tells of GPUs only, so they stand in the
place of processors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schedgym.errors import TraceFormatError
from schedgym.traces.base import MALFORMED, DataSet, Format, Trace
from schedgym.traces.declaration import DATE, Field, TableLayout
from schedgym.traces.pieces import Fault, row_chunks
from schedgym.traces.table import TableReader, read_tasks
from schedgym.traces.texts import text_blocks

__all__ = ["FORMAT", "read_philly"]

BLOCK = 1 << 20  # bytes that are read at once
LONGEST_JOB = 1 << 24  # characters
FORM = "%Y-%m-%d %H:%M:%S"
UNKNOWN = (None, "", "None")

_BETWEEN = re.compile(r"[\s,]+")
_DATE = re.compile(r"[0-9]{4}(-[0-9]{2}){2} [0-9]{2}(:[0-9]{2}){2}")

#: why jobs are left out, as keys of ``Trace.dropped``
NO_ATTEMPT = "no attempt"
NO_TIMES = "start or end unknown"

NAMES = ("submitted_time", "start_time", "end_time", "gpus")
LAYOUT = TableLayout(
    names=NAMES,
    columns={
        "submit": Field("submitted_time", unit=DATE),
        "start": Field("start_time", unit=DATE),
        "end": Field("end_time", unit=DATE),
        "cpus": Field("gpus", unit="GPUs"),
    },
)
MACHINES = TableLayout(columns={"cpus": Field("number of GPUs", unit="GPUs")})


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
    reader = TableReader(path, LAYOUT, on_error, pieces=row_chunks(NAMES, _rows(Path(path))))
    return read_tasks(reader, "philly", "GPUs", nodes, MACHINES, limit)


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


def _rows(path: Path) -> Iterator[tuple[int, tuple[str, ...] | Fault]]:
    """The number of each job, and its row or why it is left out."""
    for number, job in enumerate(_jobs(path), 1):
        try:
            yield number, _facts(job)
        except _Fault as error:
            yield number, Fault(*error.args)


class _Fault(Exception):
    """A job that is left out: reason, field, what is wrong."""


def _facts(job: Any) -> tuple[str, ...]:
    """Submission, first start, last end and number of GPUs of a job."""
    if not isinstance(job, Mapping):
        raise _Fault(MALFORMED, "", "must be a mapping of names to values")
    attempts = job.get("attempts")
    if not isinstance(attempts, list) or not all(isinstance(one, Mapping) for one in attempts):
        raise _Fault(MALFORMED, "attempts", "must be a list of attempts")
    submitted = _time(job, "submitted_time")
    if not submitted:
        raise _Fault(MALFORMED, "submitted_time", "is empty, must be a date")
    if not attempts:
        raise _Fault(NO_ATTEMPT)
    start, end = _time(attempts[0], "start_time"), _time(attempts[-1], "end_time")
    if not start or not end:
        raise _Fault(NO_TIMES)
    detail = attempts[0].get("detail")
    if not isinstance(detail, list) or not all(
        isinstance(one, Mapping) and isinstance(one.get("gpus"), list) for one in detail
    ):
        raise _Fault(MALFORMED, "detail", "must be a list of servers with their gpus")
    return submitted, start, end, str(sum(len(one["gpus"]) for one in detail))


def _time(values: Mapping[str, Any], name: str) -> str:
    """A date as a text, "" where it is not known."""
    if name not in values:
        raise _Fault(MALFORMED, name, "is missing")
    text = values[name]
    if text in UNKNOWN:
        return ""
    if not isinstance(text, str) or not _DATE.fullmatch(text):
        raise _Fault(MALFORMED, name, f"must be a date as {FORM}, got {str(text)[:40]!r}")
    return text


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
