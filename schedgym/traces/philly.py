"""The trace of Microsoft's Philly clusters (github.com/msr-fiddle/philly-traces), which is no table.

Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads, USENIX ATC 2019.
The file ``cluster_job_log`` is a JSON list of jobs, each with the list of its attempts to run:

    {"status": "Pass", "vc": ..., "jobid": ..., "submitted_time": "2017-10-07 01:11:39", "user": ...,
     "attempts": [{"start_time": ..., "end_time": ..., "detail": [{"ip": ..., "gpus": ["gpu0", ...]}]}]}

Times are dates, empty or "None" where they are not known. The trace tells of GPUs only, so they stand in the
place of processors, and no machine has memory that is known.

A job is one task that takes all its GPUs, as many as its first attempt had. Its recorded start is that of the
first attempt, its duration the time from there to the end of the last one, as in the publishers' notebook.
Left out and counted are "no attempt", "start or end unknown" (also jobs that were still running) and
"execution <= 0". Memory is 0, as the trace does not contain what jobs request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedgym.traces.base import MALFORMED, Fault
from schedgym.traces.nested import NO_OBJECT, json_items
from schedgym.traces.texts import Rows

__all__ = ["rows"]

FORM = "%Y-%m-%d %H:%M:%S"
UNKNOWN = (None, "", "None")

_DATE = re.compile(r"[0-9]{4}(-[0-9]{2}){2} [0-9]{2}(:[0-9]{2}){2}")

#: why jobs are left out, as keys of ``Trace.dropped``
NO_ATTEMPT = "no attempt"
NO_TIMES = "start or end unknown"


def rows(path: Path) -> Rows:
    """The number of each job, and submission, start, end (dates) and GPUs, or why it is left out."""
    for number, job in json_items(path):
        try:
            yield number, _facts(job)
        except _Fault as error:
            yield number, Fault(*error.args)


class _Fault(Exception):
    """A job that is left out: reason, field, what is wrong."""


def _facts(job: Any) -> tuple[str, ...]:
    """Submission, first start, last end and number of GPUs of a job."""
    if not isinstance(job, Mapping):
        raise _Fault(MALFORMED, "", NO_OBJECT)
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
