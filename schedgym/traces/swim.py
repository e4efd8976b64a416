"""The workloads of SWIM, the Statistical Workload Injector for MapReduce (github.com/SWIMProjectUCB/SWIM).

Chen, Ganapathi, Griffith, Katz: The Case for Evaluating MapReduce Performance Using Workload Suites,
MASCOTS 2011. One file of jobs, as published for Facebook's clusters (folder workloadSuite, FB-2009 and
FB-2010): six fields between tabs, no header,

    job id, submit time [s], time since the job before [s], map input, shuffle, reduce output [bytes]

The third field repeats the second: in FB-2010 it is everywhere the difference from the line before (of
the first line: from 0). It is read as it stands and not compared, so that a part of a file is a file.
"""

from __future__ import annotations

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
    is_number,
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


def read_swim(
    path: str | Path,
    nodes: None = None,
    *,
    on_error: str = "raise",
    limit: int | None = None,
) -> JobTrace:
    """Read a file of MapReduce jobs in SWIM's format.

    All jobs count, also those that read nothing (418 of the 24,442 in FB-2010).

    Args:
        path: the file, plain or ``.gz``.
        nodes: must be None: the format has no machines.
        on_error: "raise" stops at the first malformed row; "skip" leaves such rows out and counts them
            under "malformed".
        limit: read only the first so many valid jobs of the file (what follows is not even checked);
            None reads all.

    Returns:
        the jobs, in seconds and bytes.

    Raises:
        TraceFormatError: naming file, line, column and reason; also when no job is left.
        InvalidParameter: when ``nodes`` is given, or ``on_error`` or ``limit`` is invalid.
        FileNotFoundError: when there is no such file.
    """
    check_limit(limit)
    if nodes is not None:
        raise InvalidParameter(f"nodes: the swim format has no machines, got {str(nodes)!r}")
    table = Table(path, Layout(COLUMNS, NAMES, "\t"), on_error=on_error)
    kept = Rows("arrival", "gap", "input_bytes", "shuffle_bytes", "output_bytes")
    for row in table:
        kept.add(*row)
        if len(kept) == limit:
            break
    refuse_empty(table.path, "job", kept, table.dropped)
    return JobTrace("swim", **kept.arrays(), dropped=table.dropped, files=(table.path,))


def _recognises(line: str) -> bool:
    fields = line.split("\t")
    if len(fields) != len(NAMES):
        return False
    # one bad number is better refused by its column's name than as an unknown format
    return sum(map(is_number, fields[1:])) >= len(COLUMNS) - 1


FORMAT = Format(
    "swim",
    "MapReduce workloads of SWIM, e.g. Facebook 2010: jobs by bytes (github.com/SWIMProjectUCB/SWIM)",
    _recognises,
    read_swim,
)
