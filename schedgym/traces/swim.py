"""The workloads of SWIM, the Statistical Workload Injector for MapReduce (github.com/SWIMProjectUCB/SWIM).

Chen, Ganapathi, Griffith, Katz: The Case for Evaluating MapReduce Performance Using Workload Suites,
MASCOTS 2011. One file of jobs, as published for Facebook's clusters (folder workloadSuite, FB-2009 and
FB-2010): six fields between tabs, no header,

    job id, submit time [s], time since the job before [s], map input, shuffle, reduce output [bytes]

The third field repeats the second: in FB-2010 it is everywhere the difference from the line before (of
the first line: from 0). It is read as it stands and not compared, so that a part of a file is a file.
"""

from __future__ import annotations

import functools
from pathlib import Path

from schedgym.errors import InvalidParameter
from schedgym.traces.base import (
    Column,
    Format,
    JobTrace,
    Layout,
    Rows,
    Table,
    check_limit,
    looks_like,
    refuse_empty,
)

__all__ = ["FORMAT", "read_swim"]

NAMES = ("job id", "submit time", "gap", "map input bytes", "shuffle bytes", "reduce output bytes")
COLUMNS = (
    Column("submit time", "s"),
    Column("gap", "s"),
    Column("map input bytes", "bytes", whole=True),
    Column("shuffle bytes", "bytes", whole=True),
    Column("reduce output bytes", "bytes", whole=True),
)
LAYOUT = Layout(COLUMNS, NAMES, "\t")


def read_swim(
    path: str | Path,
    nodes: None = None,
    *,
    on_error: str = "raise",
    limit: int | None = None,
) -> JobTrace:
    """Read a file of MapReduce jobs in SWIM's format.

    All jobs count, also those that read nothing (418 of the 24,442 in FB-2010).

    Arguments and errors are those of :func:`~schedgym.traces.read_trace`; the format has no machines.
    """
    check_limit(limit)
    if nodes is not None:
        raise InvalidParameter(f"nodes: the swim format has no machines, got {str(nodes)!r}")
    table = Table(path, LAYOUT, on_error=on_error)
    kept = Rows("arrival", "gap", "input_bytes", "shuffle_bytes", "output_bytes")
    for row in table:
        kept.add(*row)
        if len(kept) == limit:
            break
    refuse_empty(table.path, "job", kept, table.dropped)
    return JobTrace("swim", **kept.arrays(), dropped=table.dropped, files=(table.path,))


FORMAT = Format(
    "swim",
    "MapReduce workloads of SWIM, e.g. Facebook 2010: jobs by bytes (github.com/SWIMProjectUCB/SWIM)",
    functools.partial(looks_like, LAYOUT),
    read_swim,
)
