"""The trace of Microsoft's Philly clusters (github.com/msr-fiddle/philly-traces), which is no table.

Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads, USENIX ATC 2019.
The file ``cluster_job_log`` is a JSON list of jobs, each with the list of its attempts to run:

    {"status": "Pass", "vc": ..., "jobid": ..., "submitted_time": "2017-10-07 01:11:39", "user": ...,
     "attempts": [{"start_time": ..., "end_time": ..., "detail": [{"ip": ..., "gpus": ["gpu0", ...]}]}]}

Times are dates, empty or "None" where they are not known. A job is one task that takes all its GPUs, as many
as its first attempt had. Its recorded start is that of the first attempt, its duration the time from there to
the end of the last one, as in the publishers' notebook. Cores and memory are 0, as the trace does not contain
what jobs request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedgym.traces.base import Fault

UNKNOWN = (None, "None")

#: why jobs are left out, as keys of ``Trace.dropped``
NO_ATTEMPT = "no attempt"
NO_TIMES = "start or end unknown"  # also jobs that were still running


def facts(job: Mapping[str, Any]) -> tuple[str, ...] | Fault:
    """Submission, first start, last end and number of GPUs of a job; or ValueError: field, what is wrong."""
    attempts = job.get("attempts")
    if not isinstance(attempts, list) or not all(isinstance(one, Mapping) for one in attempts):
        raise ValueError("attempts", "must be a list of attempts")
    if not attempts:
        return Fault(NO_ATTEMPT)
    times = (job.get("submitted_time"), attempts[0].get("start_time"), attempts[-1].get("end_time"))
    submitted, start, end = ("" if time in UNKNOWN else str(time) for time in times)
    if not start or not end:
        return Fault(NO_TIMES)
    detail = attempts[0].get("detail")
    if not isinstance(detail, list) or not all(
        isinstance(one, Mapping) and isinstance(one.get("gpus"), list) for one in detail
    ):
        raise ValueError("detail", "must be a list of servers with their gpus")
    return submitted, start, end, str(sum(len(one["gpus"]) for one in detail))
