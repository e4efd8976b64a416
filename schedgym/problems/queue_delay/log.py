"""Logs of clusters as workloads of this problem: what :func:`schedgym.advise` needs to know of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.problems.queue_delay.metrics import fates
from schedgym.problems.queue_delay.workload import make_workload, shares_of
from schedgym.traces.base import Trace
from schedgym.traces.feed import WAIT, Feed
from schedgym.traces.machines import ON_SEVERAL

ID = "schedgym/QueueDelay-v0"
OUTCOME = WAIT
#: the policies that are compared; the reference is what a cluster does that has no scheduler to speak of
POLICIES = ("bf-exec", "dot-exec", "ffd-dp", "ffd-nb", "bf-all", "easy-backfill", "fcfs")
REFERENCE = "fcfs"
#: the policies under which the recorded starts are replayed: what schedulers in use do
REPLAYED = ("fcfs", "easy-backfill")
KNOWS = "execution"
POOLED = False
LEFT_OUT = (
    ON_SEVERAL,
    "users' estimates of durations (the replay knows the durations)",
)


def lacks(trace: Trace) -> str:
    """Say what the log lacks for the problem: nothing."""
    return ""


def feed(trace: Trace) -> Feed:
    """All tasks, each for itself; GPUs of machines are left out if no task asks for any."""
    gpus = trace.machine_gpu if trace.gpu.any() else np.zeros(0)
    return Feed(dataclasses.replace(trace, job=np.zeros(0), machine_site=np.zeros(0), machine_gpu=gpus))


def parameters(trace: Trace) -> dict[str, Any]:
    """Parameters of the environment: none."""
    return {}


def workload_of(trace: Trace, slot: float = 1.0) -> Workload:
    """A trace's tasks on all of its machines, with the clock from 0 at the first arrival.

    Sizes are those of :func:`~schedgym.problems.queue_delay.workload.shares_of`, with GPUs if machines have
    any.

    Raises:
        InvalidWorkload: when a task fits no machine.
    """
    demands, sizes = shares_of(trace)
    most = np.minimum(np.column_stack(list(demands.values())), 1.0)  # of what fits, so far
    tasks = np.column_stack([trace.arrival - trace.arrival[0], trace.duration, most])
    return make_workload(tasks, sizes, tuple(demands))


def outcomes(record: ScheduleRecord) -> Floats:
    """Return how long each task waits [s]; infinite for one that never starts."""
    start = np.array([np.inf if begin is None else begin for begin in fates(record)["start"]])
    return start - record.workload.jobs["arrival"]


def alone(workload: Workload) -> Floats:
    """Return the wait of each task if it had the cluster to itself: none."""
    return np.zeros(len(workload.jobs["arrival"]))
