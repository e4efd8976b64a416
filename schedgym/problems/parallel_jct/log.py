"""Logs of clusters as workloads of this problem: none feeds it."""

from __future__ import annotations

from schedgym.traces.base import Trace


def lacks(trace: Trace) -> str:
    """Say what every log lacks: energy by server, caps on it, and shares of racks (shi2017, section 3)."""
    return (
        "needs, beside the tasks of jobs, the energy that each takes on each server, a cap on every job's, "
        "and the share of each rack that a job may use, which no log of jobs tells"
    )
