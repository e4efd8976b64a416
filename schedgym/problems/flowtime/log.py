"""Logs of clusters as workloads of this problem: what :func:`schedgym.advise` needs to know of it.

The log, or who asks, says that its jobs may be interrupted. The problem counts in slots, whole cores and GB
(xu2021, section II): durations, demands and machines are rounded, and how much work that adds is said. The
norm is k = 1, the sum of the flowtimes, so that the mean of the jobs' flowtimes is what is judged.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.errors import InvalidParameter
from schedgym.problems.flowtime.metrics import fates
from schedgym.problems.flowtime.workload import make_workload
from schedgym.traces.base import Trace, round_up
from schedgym.traces.feed import Feed, Outcome, round_slot, slots_of

ID = "schedgym/FlowtimePacking-v0"
OUTCOME = Outcome("flowtime", "a job is done {} after its submission on average", total=True)
POLICIES = ("ocorp", "srpt", "srvf", "svf", "srf", "fifo", "tetris", "drf")
REFERENCE = "fifo"
REPLAYED = ()
KNOWS = ""
POOLED = False
LEFT_OUT = ("what interrupting, moving and resizing a job costs", "a least number of cores that a job needs")

MOST, PART = 8_000, 2_000  # jobs that are run, and of a part
MOST_SLOTS = 3e4  # between the first and the last arrival of what is run
SHARE = 0.2  # slots in the median duration


def lacks(trace: Trace) -> str:
    """Say what the log lacks for the problem: that its work may be interrupted, and sizes in cores."""
    if not len(trace.preemptible):
        return "needs work that may be interrupted: say so by --preemptible, or a column"
    fixed = int((trace.preemptible == 0).sum())
    if fixed:
        return f"needs work that may be interrupted, and {fixed} of {len(trace.preemptible)} jobs may not be"
    if not trace.unit.endswith(", GiB"):  # GPUs may stand in the place of cores
        return f"needs cores and GiB, and the log has {trace.unit}"
    if trace.gpu.any() and not trace.cores.any():
        return "needs cpus, and the log has GPUs only"
    return ""


def feed(trace: Trace) -> Feed:
    """The jobs and machines in whole cores and GiB, and the length of a slot."""
    slot = round_slot(trace, SHARE, MOST_SLOTS * max(1.0, len(trace.arrival) / MOST))
    cores, memory = np.floor(trace.machine_cores), np.floor(trace.machine_memory)
    kept = (cores > 0) & (memory > 0 if trace.machine_memory.any() else True)
    if not kept.any():
        raise InvalidParameter("machines: flowtime counts whole cores and GiB, and none has one of each")
    two = bool(trace.memory.any() and trace.machine_memory.any())
    whole = dataclasses.replace(
        trace,
        job=np.zeros(0),
        machine_site=np.zeros(0),
        cores=np.maximum(round_up(trace.cores), 1.0),
        memory=round_up(trace.memory) if two else np.zeros(len(trace.arrival)),
        machine_cores=cores[kept],
        machine_memory=memory[kept] if two else np.zeros(int(kept.sum())),
        gpu=np.zeros(0),
        machine_gpu=np.zeros(0),
    )
    work = trace.duration @ np.maximum(trace.cores, 1e-9)
    more = float(slots_of(trace, slot) @ whole.cores * slot / work) - 1.0
    extra = ""
    if two:
        share = float(whole.memory.sum() / trace.memory.sum()) - 1.0
        extra = f" and {100 * share:.3g}% more memory"
    lines = [
        f"slots: {slot:g} s; durations, cpus and memory are rounded up to whole slots, cores and GiB, which "
        f"makes {100 * more:.3g}% more work{extra}; machines are rounded down; a job can run from the slot "
        "in which it is submitted",
        "a job may be interrupted, moved, spread over machines and given fewer cores than it asks for in "
        "every slot; it then takes longer in proportion; policies know how much work each job is",
    ]
    if small := int((~kept).sum()):
        lines.append(f"left out: {small} machines below one core or GiB")
    return Feed(whole, slot, (), tuple(lines), MOST, PART)


def _two(trace: Trace) -> bool:
    """Return True if memory is a resource of the problem."""
    return bool(trace.machine_memory.any())


def parameters(trace: Trace) -> dict[str, Any]:
    """Parameters of the environment: k = 1, whether memory counts, and no end before all jobs are done."""
    return {"norm": 1.0, "kind": "2d" if _two(trace) else "1d", "gamma": 1e12}


def workload_of(trace: Trace, slot: float = 1.0) -> Workload:
    """A trace's tasks as jobs, from slot 0 on; a job can run from the slot in which it is submitted."""
    memory, server_memory = (trace.memory, trace.machine_memory) if _two(trace) else (None, None)
    return make_workload(
        np.floor((trace.arrival - trace.arrival[0]) / slot).astype(np.int64),
        slots_of(trace, slot).astype(np.int64),
        trace.cores.astype(np.int64),
        trace.machine_cores.astype(np.int64),
        memory=None if memory is None else memory.astype(np.int64),
        server_memory=None if server_memory is None else server_memory.astype(np.int64),
    )


def outcomes(record: ScheduleRecord) -> Floats:
    """Return the flowtime of each job [slots]; infinite for one that does not end."""
    return np.array([np.inf if found is None else float(found) for found in fates(record)["flowtime"]])


def alone(workload: Workload) -> Floats:
    """Return the flowtime of each job [slots] if it had the cluster to itself."""
    jobs, cores = workload.jobs, workload.cluster["cpu"]
    work = jobs["processing"] * jobs["cpu"]
    found: Floats = np.maximum(jobs["processing"], np.ceil(work / cores.sum())).astype(np.float64)
    return found
