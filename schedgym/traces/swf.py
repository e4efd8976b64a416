"""The Standard Workload Format, version 2.2, of the Parallel Workloads Archive.

cs.huji.ac.il/labs/parallel/workload; Chapin et al.: Benchmarks and Standards for the Evaluation of Parallel
Job Schedulers, JSSPP 1999; Feitelson, Tsafrir, Krakov: Experience with using the Parallel Workloads Archive,
JPDC 74 (10), 2014. One line a job, 18 fields between blanks, -1 for what is not known; lines that start with
";" are comments, and those at the top tell of the computer.

A job of this format runs on several processors at once. Here it is one task that takes them all together, of
one machine or of the pool of all (:mod:`schedgym.traces.machines`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.traces.base import LARGEST, MALFORMED, NO_EXECUTION, Column, Format, Trace
from schedgym.traces.declaration import TableLayout
from schedgym.traces.table import TableReader, Verdict, read_tasks
from schedgym.traces.texts import raw_lines

KIB_PER_GIB = 2.0**20
LARGEST_CLUSTER = 10**7  # nodes: a longer list comes from a damaged header

NO_PROCESSORS = "processors <= 0 or unknown"
NO_SUBMIT_TIME = "submit time unknown"
PARTIAL = "partial execution"

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
    Column("submit time", "s", minimum=-LARGEST, unknown=-1),
    Column("wait time", "s", unknown=-1),
    Column("run time", "s", unknown=-1),
    Column("allocated processors", "processors", whole=True, unknown=-1),
    Column("used memory", "KiB per processor", unknown=-1),
    Column("requested processors", "processors", whole=True, unknown=-1),
    Column("requested memory", "KiB per processor", unknown=-1),
    Column("status", "", whole=True, unknown=-1),
)
LAYOUT = TableLayout(columns={}, names=NAMES, delimiter="", comment=";")
PARTS = (2, 3, 4)  # status of one of the periods in which a job ran that was suspended in between

_SIZE = re.compile(r";\s*(MaxNodes|MaxProcs)\s*:\s*(.*)")
_START = re.compile(r";\s*UnixStartTime\s*:\s*([1-9][0-9]{0,9})\b.*")
#: ";submit;duration" is a table whose first column has no name
_COMMENT = re.compile(r";(?![^\s;:][^;:]*(;[^;:]+)+$).*")
_COUNT = re.compile(r"([0-9]{1,15})(?:[\s(].*)?")  # partitions may follow in brackets


def read_swf(
    path: str | Path,
    nodes: str | Path | None = None,
    *,
    on_error: str = "raise",
    limit: int | None = None,
) -> Trace:
    """Read a log or a model in the Standard Workload Format.

    Arrival is the submit time, which may lie before the log began (at UnixStartTime, if a comment tells it),
    and duration the run time; the recorded start is the submit time plus the wait time, where both are known;
    cores are the allocated processors, or the requested ones where these are unknown; memory is that used, or
    requested where this is unknown, per processor times cores (a kilobyte is 1024 bytes), and 0 where neither
    is known, which ``filled`` counts under "memory unknown". Lines with status 2, 3 and 4 are not read, as
    they describe parts of a job that another line describes as a whole.

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
    comments = TableReader(path, LAYOUT, on_error, machines=True)
    cores = _machines(comments) if nodes is None else None
    reader = TableReader(path, LAYOUT, on_error, numbers=COLUMNS, derive=_tasks)
    trace = read_tasks(reader, "swf", nodes=nodes, limit=limit)
    more: dict[str, Any] = {"origin": trace.origin or _origin(comments)}
    if cores is not None:
        more |= {"machine_cores": cores, "machine_memory": np.zeros_like(cores)}
        more["left_out"] = (*comments.left_out, *trace.left_out)
    return dataclasses.replace(trace, **more)


def _tasks(values: dict[str, Any], rows: Verdict) -> dict[str, Any]:
    """The quantities of a task for each job, from the columns of the file."""
    allocated, used = values["allocated processors"], values["used memory"]
    processors = np.where(np.isnan(allocated), values["requested processors"], allocated)
    memory = np.where(np.isnan(used), values["requested memory"], used)
    rows.leave_out(np.isin(values["status"], PARTS), PARTIAL)
    rows.leave_out(np.isnan(values["submit time"]), NO_SUBMIT_TIME)
    rows.leave_out(~(values["run time"] > 0), NO_EXECUTION)
    rows.leave_out(~(processors > 0), NO_PROCESSORS)
    return {
        "submit": values["submit time"],
        "start": values["submit time"] + values["wait time"],
        "duration": values["run time"],
        "cpus": processors,
        "memory": memory * processors / KIB_PER_GIB,
    }


def _before_jobs(comments: TableReader) -> Iterator[str]:
    """The comments before the first job; the line of their reader is that of each."""
    for line, raw in enumerate(raw_lines(Path(comments.path)), 1):
        comments.line = line
        # comments are in whatever encoding their author used
        text = raw.decode("utf-8-sig", "replace").strip()
        if text and not text.startswith(";"):
            return
        yield text


def _origin(comments: TableReader) -> str:
    """The date at which submit times are 0, "" where no comment tells it."""
    starts = (int(found[1]) for text in _before_jobs(comments) if (found := _START.fullmatch(text)))
    return next((datetime.fromtimestamp(start, UTC).isoformat() for start in starts), "")


def _machines(comments: TableReader) -> Floats:
    """Processors of each node by the comments before the first job; their reader counts those left out."""
    sizes: dict[str, int] = {}
    for text in _before_jobs(comments):
        found = _SIZE.fullmatch(text)
        if found is None or found[1] in sizes or found[2] in ("", "-1"):
            continue
        count = _COUNT.fullmatch(found[2])
        if count is None or not 1 <= int(count[1]) <= LARGEST_CLUSTER:
            reason = f"must be a whole number from 1 to {LARGEST_CLUSTER}, got {found[2][:40]!r}"
            comments.leave_out(MALFORMED, found[1], reason)
        else:
            sizes[found[1]] = int(count[1])
    nodes = sizes.get("MaxNodes", sizes.get("MaxProcs", 0))
    processors = sizes.get("MaxProcs", nodes)
    if processors < nodes:
        comments.line = 0
        comments.leave_out(MALFORMED, "MaxProcs", f"must be at least MaxNodes, {nodes}, got {processors}")
        nodes = 0
    each, rest = divmod(processors, max(nodes, 1))
    return np.where(np.arange(nodes) < rest, each + 1.0, float(each))


def _recognises(line: str) -> bool:
    return _COMMENT.fullmatch(line) is not None or LAYOUT.fits(line, dict.fromkeys(NAMES, True))


FORMAT = Format(
    name="swf",
    help="Standard Workload Format of the Parallel Workloads Archive",
    address="https://www.cs.huji.ac.il/labs/parallel/workload/",
    recognises=_recognises,
    read=read_swf,
)
