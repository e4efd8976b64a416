"""The Standard Workload Format, version 2.2, of the Parallel Workloads Archive.

cs.huji.ac.il/labs/parallel/workload; Chapin et al.: Benchmarks and Standards for the Evaluation of Parallel
Job Schedulers, JSSPP 1999; Feitelson, Tsafrir, Krakov: Experience with using the Parallel Workloads Archive,
JPDC 74 (10), 2014. One line a job, 18 fields between blanks, -1 for what is not known; lines that start with
";" are comments, and those at the top tell of the computer.

A job of this format runs on several processors at once. Here it is one task that takes them all together, so
that only a machine with as many processors can hold it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from schedgym.errors import TraceFormatError
from schedgym.traces.base import (
    MACHINE,
    MALFORMED,
    NO_EXECUTION,
    Column,
    Format,
    Layout,
    Rows,
    Table,
    Trace,
    check_limit,
    is_number,
    read_machines,
    refuse_empty,
)

__all__ = ["FORMAT", "read_swf"]

KIB_PER_GIB = 2.0**20
LARGEST_CLUSTER = 10**7  # nodes: a longer list comes from a damaged header

NO_PROCESSORS = "processors <= 0 or unknown"
NO_SUBMIT_TIME = "submit time unknown"
PARTIAL = "partial execution"
NO_MEMORY = "memory unknown"

NAMES = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average cpu time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
COLUMNS = (
    Column("submit time", "s", unknown=-1),
    Column("run time", "s", unknown=-1),
    Column("allocated processors", "processors", whole=True, unknown=-1),
    Column("used memory", "KiB per processor", unknown=-1),
    Column("requested processors", "processors", whole=True, unknown=-1),
    Column("requested memory", "KiB per processor", unknown=-1),
    Column("status", "", whole=True, unknown=-1),
)
PARTS = (2, 3, 4)  # status of one of the periods in which a job ran that was suspended in between

NODES = (
    Column("cores", "cores", exclusive=True),
    Column("memory", "GiB", exclusive=True),
)

_SIZE = re.compile(r";\s*(MaxNodes|MaxProcs)\s*:\s*(.*)")
_COUNT = re.compile(r"([0-9]{1,15})(?:[\s(].*)?")  # partitions may follow in brackets


def read_swf(
    path: str | Path,
    nodes: str | Path | None = None,
    *,
    on_error: str = "raise",
    limit: int | None = None,
) -> Trace:
    """Read a log or a model in the Standard Workload Format.

    Arrival is the submit time and duration the run time; cores are the allocated processors, or the requested
    ones where these are unknown; memory is that used, or requested where this is unknown, per processor
    times cores (a kilobyte is 1024 bytes), and 0 where neither is known, which ``filled`` counts under
    "memory unknown". Lines with status 2, 3 and 4 are not read, as they describe parts of a job that another
    line describes as a whole.

    Left out and counted are "partial execution" (status 2, 3, 4), "submit time unknown", "execution <= 0"
    (also unknown run times, e.g. of cancelled jobs) and "processors <= 0 or unknown", in this order.

    Machines come from ``nodes``, else from the comments before the first job: MaxProcs processors are divided
    evenly among MaxNodes nodes (the first nodes get one more if there is a remainder). If only one of the two
    is given, nodes have one processor each, as the format defines. The format does not contain the memory of
    machines, which is 0.

    Arguments and errors are those of :func:`~schedgym.traces.read_trace`. ``nodes``, a CSV file of machines
    with the header ``cores,memory`` (memory in GiB), takes the place of the comments: e.g. one machine as
    large as the whole computer. Comments without a valid size count as malformed machines.
    """
    check_limit(limit)
    header: dict[str, int] = {}

    def on_comment(text: str) -> None:
        found = _SIZE.fullmatch(text)
        if found is None or len(kept) or nodes is not None:
            return
        name, value = found[1], found[2].strip()
        count = _COUNT.fullmatch(value)
        if value in ("", "-1") or name in header:
            return
        if count is None or not 1 <= int(count[1]) <= LARGEST_CLUSTER:
            reason = f"must be a whole number from 1 to {LARGEST_CLUSTER}, got {value[:40]!r}"
            jobs.refuse(name, reason, MACHINE + MALFORMED)
        else:
            header[name] = int(count[1])

    jobs = Table(path, Layout(COLUMNS, NAMES, None, ";"), on_comment=on_comment, on_error=on_error)
    kept = Rows("arrival", "duration", "cores", "memory")
    filled: Counter[str] = Counter()
    for submitted, ran, allocated, used, requested, asked, status in jobs:
        processors = requested if math.isnan(allocated) else allocated
        if status in PARTS:
            jobs.leave_out(PARTIAL)
        elif math.isnan(submitted):
            jobs.leave_out(NO_SUBMIT_TIME)
        elif not ran > 0:
            jobs.leave_out(NO_EXECUTION)
        elif not processors > 0:
            jobs.leave_out(NO_PROCESSORS)
        else:
            share = asked if math.isnan(used) else used
            if math.isnan(share):
                filled[NO_MEMORY] += 1
                share = 0.0
            kept.add(submitted, ran, processors, share * processors / KIB_PER_GIB)
            if len(kept) == limit:
                break
    refuse_empty(jobs.path, "task", kept, jobs.dropped)
    machines, dropped = read_machines(nodes, NODES, on_error)
    if nodes is None:
        cores = _machines(jobs, header)
        machines = {"machine_cores": cores, "machine_memory": np.zeros_like(cores)}
    left_out = jobs.left_out()
    jobs.dropped.update(dropped)
    return Trace(
        "swf",
        **kept.arrays(),
        **machines,
        dropped=jobs.dropped,
        files=(jobs.path,) if nodes is None else (jobs.path, Path(nodes)),
        filled=filled,
        left_out=left_out,
    )


def _machines(jobs: Table, header: dict[str, int]) -> npt.NDArray[np.float64]:
    """Processors of each node, by the comments of the file."""
    if not header:
        return np.zeros(0)
    nodes = header.get("MaxNodes", header.get("MaxProcs", 0))
    processors = header.get("MaxProcs", nodes)
    if processors < nodes:
        if jobs.on_error == "raise":
            reason = f"must be at least MaxNodes, {nodes}, got {processors}"
            raise TraceFormatError(jobs.path, 0, "MaxProcs", reason)
        jobs.dropped[MACHINE + MALFORMED] += 1
        return np.zeros(0)
    each, rest = divmod(processors, nodes)
    return np.where(np.arange(nodes) < rest, each + 1.0, float(each))


def _recognises(line: str) -> bool:
    fields = line.split()
    # one bad number is better refused by its column's name than as an unknown format
    return line.startswith(";") or (
        len(fields) == len(NAMES) and sum(map(is_number, fields)) >= len(NAMES) - 1
    )


FORMAT = Format(
    name="swf",
    help="Standard Workload Format of the Parallel Workloads Archive",
    address="https://www.cs.huji.ac.il/labs/parallel/workload/",
    recognises=_recognises,
    read=read_swf,
)
