"""Logs of clusters as workloads of this problem: what :func:`schedgym.advise` needs to know of it.

A log has deadlines, and may have a column of values. All else is assumed, and said: what is done of a job by
its deadline is worth its share of the value (utility "linear"), a job without a value is worth 1, a job runs
with all that it asks for or not at all (the discrete model), and the machines are one pool (zheng2016,
section II).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.problems.partial_value.metrics import fates
from schedgym.problems.partial_value.rules import LAST_SLOT
from schedgym.problems.partial_value.workload import make_workload
from schedgym.traces.base import RESOURCES, LeftOut, Trace
from schedgym.traces.feed import Feed, Outcome, round_slot, slots_of, without

ID = "schedgym/PartialValue-v0"
OUTCOME = Outcome(
    *("value gained", "a job gains {} on average", "max"),
    timed=False,
    total=True,
    idle="Next to nothing is lost",
)
POLICIES = ("m-greedy", "primal-dual", "s-greedy", "equal-opp", "edf")
REFERENCE = "edf"
REPLAYED = ()
KNOWS = "value"
LEFT_OUT = ("the limits of single machines: they are one pool", "what interrupting a job costs")
POOLED = True
MOST, PART = 4_000, 1_000  # jobs that are run, and of a part

MOST_SLOTS = 2e4  # between the first and the last arrival of what is run
MOST_AHEAD = 4e4  # slots from a job's submission to its deadline
SHARE = 0.1  # slots in the median duration


def lacks(trace: Trace) -> str:
    """Say what the log lacks for the problem: deadlines after the submission, and values, of most jobs."""
    if not len(trace.deadline):
        return "needs deadlines"
    count = len(trace.deadline)
    known = int((trace.deadline > trace.arrival).sum())
    if 2 * known < count:
        return (
            f"needs deadlines of most jobs, and {known} of {count} have one after the submission (if they "
            "count from there: --columns 'deadline=SUBMIT+DEADLINE', with your columns)"
        )
    worth = int(np.isfinite(trace.value).sum())
    if len(trace.value) and 2 * worth < count:
        return f"needs values of most jobs where it has any, and {worth} of {count} have one"
    return ""


def feed(trace: Trace) -> Feed:
    """The jobs that have a value, and a deadline after their submission."""
    out: list[LeftOut] = []
    if len(trace.value):
        trace, out = without(trace, np.isnan(trace.value), "no value", "other jobs have one")
    trace, more = without(trace, np.isnan(trace.deadline), "no deadline", "other jobs have one")
    early = trace.deadline <= trace.arrival
    detail = "if deadlines count from there, give --columns 'deadline=SUBMIT+DEADLINE' with your columns"
    trace, late = without(trace, early, "deadline not after the submission", detail)
    out += [*more, *late]
    if not len(trace.arrival):
        return Feed(trace, left_out=tuple(out))
    slot = round_slot(trace, SHARE, MOST_SLOTS * max(1.0, len(trace.arrival) / MOST))
    latest = trace.arrival + MOST_AHEAD * slot
    pool = dataclasses.replace(
        trace,
        deadline=np.minimum(trace.deadline, latest),
        machine_cores=trace.machine_cores.sum(keepdims=True),
        machine_memory=trace.machine_memory.sum(keepdims=True),
        machine_gpu=trace.machine_gpu.sum(keepdims=True),
        job=np.zeros(0),
        machine_site=np.zeros(0),
        value=trace.value if len(trace.value) else np.ones(len(trace.arrival)),
    )
    size = trace.cores if trace.cores.any() else trace.memory
    work = float(trace.duration @ size)
    more_work = float(slots_of(trace, slot) @ size) * slot / work - 1.0 if work > 0 else 0.0
    worth = "by its column" if len(trace.value) else "1 for every job, as the log tells none"
    lines = [
        f"value: {worth}; what is done of a job by its deadline is worth its share of that",
        f"slots: {slot:g} s; durations are rounded up to slots, which makes {100 * more_work:.3g}% more "
        "work; a job can run from the slot in which it is submitted to the last that ends by its deadline, "
        "but in one at least",
        "in each slot a job has all that it asks for, of any machines, or is interrupted; policies know how "
        "much work each job is",
    ]
    if ahead := int((trace.deadline > latest).sum()):
        lines.append(
            f"deadlines: {ahead} are {MOST_AHEAD:g} slots or more after the submission, and count as that"
        )
    return Feed(pool, slot, tuple(out), tuple(lines), MOST, PART)


def parameters(trace: Trace) -> dict[str, Any]:
    """Parameters of the environment: a job runs in a slot, or it does not."""
    return {"model": "discrete"}


def workload_of(trace: Trace, slot: float = 1.0) -> Workload:
    """Jobs of a task a slot, which takes the job's cpus, memory and GPUs; the machines are one pool.

    A resource that no machine tells, or that no job takes, is left out (cpus stay if all are).
    """
    begin = trace.arrival[0]
    first = np.floor((trace.arrival - begin) / slot) + 1.0
    last = np.clip(np.floor((trace.deadline - begin) / slot * (1 + 1e-12)), first, LAST_SLOT)
    sizes = [(getattr(trace, name), getattr(trace, f"machine_{name}").sum()) for name in RESOURCES]
    used = [(size, capacity) for size, capacity in sizes if capacity > 0 and size.any()] or sizes[:1]
    tasks = slots_of(trace, slot)
    return make_workload(
        [capacity for _, capacity in used],
        arrival=first,
        deadline=last,
        parallelism=1.0,
        tasks=tasks,
        demand=np.column_stack([size for size, _ in used]),
        utility="linear",
        value=trace.value / tasks,
    )


def outcomes(record: ScheduleRecord) -> Floats:
    """Return the value that each job gains."""
    return np.array(fates(record)["value"])


def alone(workload: Workload) -> Floats:
    """Return the value that each job would gain if it had the cluster to itself."""
    jobs = workload.jobs
    slots = jobs["deadline"] - jobs["arrival"] + 1.0
    found: Floats = jobs["value"] * np.minimum(jobs["tasks"], slots)
    return found
