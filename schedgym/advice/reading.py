"""A log as :func:`schedgym.advise` takes it: which table it is, which columns it has, on which machines."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from schedgym.documents import check_whole
from schedgym.errors import InvalidParameter
from schedgym.traces import (
    Format,
    TableFormat,
    beginning,
    candidates,
    find_format,
    read_table,
    read_trace,
    refuse_assuming,
)
from schedgym.traces.base import RESOURCES, Trace, tasks_of
from schedgym.traces.declaration import COMMON_MACHINES, Field, TableLayout
from schedgym.traces.guess import (
    amend_format,
    describe_columns,
    guess_format,
    guess_machines,
    parse_columns,
)
from schedgym.traces.machines import Placed, size_text
from schedgym.traces.pieces import column_names
from schedgym.traces.table import MOST_MEMORY
from schedgym.traces.units import Guess, refuse_times, settle_units, used_at_once


class How(TypedDict, total=False):
    """Keyword arguments for reading a log.

    Attributes:
        machines: file or data frame of the machines, a row each, with columns of cpus, memory and, if they
            have any, gpus.
        servers: number of equal machines, in place of ``machines``.
        cpus: cores of each of these; needed if the log's jobs have cpus.
        memory: GiB of each of these; left out: memory limits nothing.
        gpus: GPUs of each of these; left out: GPUs limit nothing.
        columns: quantity -> column or arithmetic expression, as
            :func:`~schedgym.traces.guess.guess_format` takes them; those of a known format that are not
            given stay as they are.
        where: column -> the texts that rows must have in it; others are left out, beside those that a known
            format leaves out.
        empty: texts that stand for an empty field, beside the usual ones.
        format: name of a trace format, or the path of a YAML file that declares one; None: by the columns.
        on_error: "raise" (the default) stops at the first malformed row, "skip" leaves such rows out.
    """

    machines: Any
    servers: int
    cpus: float
    memory: float
    gpus: float
    columns: Mapping[str, str] | str | None
    where: Mapping[str, Sequence[str]] | None
    empty: Sequence[str]
    format: str | Path | None
    on_error: str


@dataclasses.dataclass(frozen=True)
class Log:
    """A log that was read.

    Attributes:
        trace: tasks and machines.
        lines: sentences on the format, and on the columns of the quantities.
    """

    trace: Trace
    lines: tuple[str, ...]


def read_log(log: Any, how: How) -> Log:
    """Read a log, and find its machines.

    Args:
        log: a file, a pandas data frame, or a :class:`~schedgym.traces.Trace`.
        how: see :class:`How`.

    Raises:
        TraceFormatError: when a file breaks its format, naming file, line, column and reason.
        InvalidParameter: for arguments that contradict each other, and when the machines are not known.
        FileNotFoundError: when there is no such file.
    """
    servers, machines = how.get("servers"), how.get("machines")
    if servers is not None and machines is not None:
        raise InvalidParameter("machines and servers: give one of them, not both")
    if servers is None and any(how.get(name) is not None for name in RESOURCES.values()):
        raise InvalidParameter("cpus, memory and gpus: are of each of the servers: give their number, too")
    lines: tuple[str, ...]
    if isinstance(log, Trace):
        for name in ("machines", "columns", "where", "empty", "format"):
            if how.get(name) is not None:
                raise InvalidParameter(
                    f"{name}: is for logs that are read; a trace has been, with its machines"
                )
        trace, lines = log, (f"{log.name}: a trace that was read before",)
    else:
        trace, lines = _read(log, how)
        refuse_times(trace, log, lines[:2][-1:])
    if servers is not None:
        trace = _with_servers(trace, servers, how)
    if not len(trace.machine_cores):
        raise InvalidParameter(f"machines: the log does not tell them: {_proposal(trace)}")
    return Log(trace, (*lines, *Placed(trace, "", ()).lines))


def _read(log: Any, how: How) -> tuple[Trace, tuple[str, ...]]:
    """Read the table or trace, with the file of machines, if there is one."""
    columns, where, machines = how.get("columns"), how.get("where"), how.get("machines")
    on_error, name, empty = how.get("on_error", "raise"), how.get("format"), how.get("empty", ())
    asked = bool(columns or where)
    known = find_format(name) if name is not None else _known(log, parse_columns(columns))
    title = Path(log).name if isinstance(log, str | Path) else "data frame"
    if isinstance(known, Format):
        if asked or empty:
            raise InvalidParameter(
                f"columns, where and empty: are for tables, and the {known.name} format is none"
            )
        found = read_trace(log, nodes=machines, format=known, on_error=on_error)
        return tasks_of(found, "submission, duration and cpus"), (f"{title}: {known.help}",)
    if known is None:
        declared: TableFormat = guess_format(log, columns, where, empty)
    else:
        declared = amend_format(known, log, columns, where, empty)
    if machines is not None:
        declared = dataclasses.replace(declared, machines=_machines(declared, machines))
    names = column_names(log, declared)
    lines: list[str] = []
    while True:
        trace = tasks_of(
            read_table(log, declared, machines, on_error=on_error), "submission, duration and cpus"
        )
        if not isinstance(declared, Guess):
            break
        largest = how.get("cpus") or float(trace.machine_cores.max(initial=0.0))
        units = settle_units(trace, declared, log, names, largest)
        if not units:
            lines += declared.lines
            break
        own = {name: dataclasses.replace(declared.columns[name], unit=unit) for name, unit in units.items()}
        declared = dataclasses.replace(declared, columns={**declared.columns, **own})
        said = (f"{field.sources[0]} [{field.unit}]" for field in own.values())
        lines.append(f"units: {', '.join(said)}, by their values")
    if known is not None:
        what = declared.help + (", with what is given besides" if asked else "")
    else:
        what = "columns as given, the others by their names" if asked else "columns by their names"
    resolved = _resolved(declared, names)
    if not trace.gpu.any():
        resolved.pop("gpus", None)
    lines = [
        f"{title}: {what}",
        f"columns: {describe_columns(TableLayout(columns=resolved))}",
        *trace.notes,
        *lines,
    ]
    if declared.decimal == ",":
        lines.append("numbers: with a decimal comma")
    if declared.assumes:
        unless = "where no column is given" if columns else "as the log does not tell"
        lines.append(f"assumed, {unless}: {declared.assumes}")
    return trace, (*lines, *_lacking(trace, resolved, how))


def _lacking(trace: Trace, resolved: Collection[str], how: How) -> list[str]:
    """Sentences on what a log does not tell, and what is taken in place of it."""
    found = []
    if not len(trace.start):
        if "duration" not in resolved:
            found.append("duration: from submission to end, the wait included, as the log has no start")
    elif (early := trace.start < trace.arrival).any():
        found.append(f"start: before the submission in {early.sum()} of {len(early)} jobs, not compared")
    if "cpus" not in resolved:
        taken = "jobs take none" if trace.gpu.any() else "every job takes 1 core"
        found.append(f"cpus: the log has none; {taken}")
    if "gpus" not in resolved and how.get("gpus") is not None:
        found.append("gpus: the log has none; jobs take none")
    if "memory" not in resolved:
        found.append("memory: the log has none; jobs take none")
    return found


def _known(log: Any, given: Mapping[str, str]) -> Format | TableFormat | None:
    """The trace format that a log is of, by its columns or first line; None if it is of none.

    A format that assumes something is not taken where columns are given, which may contradict it, nor one of
    files without a header for one that has it; nor, if it has no filters, where a column is missing: by their
    names, the columns of such a table say as much.
    """
    if isinstance(log, str | Path) and Path(log).is_dir():
        raise InvalidParameter(f"{log}: is a folder: name its format")
    begin = beginning(log)
    for format in candidates(begin):
        if isinstance(format, TableFormat):
            if given and (format.assumes or (isinstance(begin, str) and format.has_header(begin))):
                continue
            if not format.filters and not _complete(format, column_names(log, format), given):
                continue
            instead = "give the format if that may stand, or columns, such as duration=EXPRESSION"
            refuse_assuming(format, log, instead)
        return format
    return None


def _complete(format: TableFormat, names: Sequence[str], given: Mapping[str, str]) -> bool:
    """Return True if a table has all columns that a format needs and that are not given."""
    replaced = {*given, "duration", "end"} if given.keys() & {"duration", "end"} else set(given)
    needed = {name for name, field in format.columns.items() if not field.optional} - replaced
    return needed <= set(_resolved(format, names))


def _resolved(format: TableFormat, names: Sequence[str]) -> dict[str, Field]:
    """The quantities of a format that a table has, and of several columns the one that counts."""
    found = {}
    for name, field in format.columns.items():
        read = field.reads(names)
        if read is not None:
            several = isinstance(field.source, tuple)
            found[name] = dataclasses.replace(field, source=read[0]) if several else field
    return found


def _machines(declared: TableFormat, machines: Any) -> TableLayout:
    """The layout of a table of machines: the format's own if it fits, else by the names of its columns."""
    own = declared.machines if declared.machines is not COMMON_MACHINES else None
    names = column_names(machines, own if own is not None else TableLayout(columns={}))
    if own is not None and all(field.reads(names) for field in own.columns.values()):
        return own
    return guess_machines(machines)


def _with_servers(trace: Trace, servers: int, how: How) -> Trace:
    """The trace on so many equal machines."""
    cpus, memory, gpus = how.get("cpus"), how.get("memory"), how.get("gpus")
    check_whole(servers, "servers", 1, 10**5)
    for name, value in (("cpus", cpus), ("memory", memory), ("gpus", gpus)):
        if value is not None and not (isinstance(value, int | float) and 0 < value < float("inf")):
            raise InvalidParameter(f"{name}: must be a number above 0, got {value!r}")
    if memory is not None and cpus is not None and memory > MOST_MEMORY * cpus:
        raise InvalidParameter(f"memory: must be in GiB, got {memory:g} beside {cpus:g} cpus")
    if trace.gpu.any() and not trace.cores.any() and gpus is None:
        raise InvalidParameter("gpus: must be given with servers, as the log's jobs have GPUs only")
    if cpus is None:
        if trace.cores.any() and (trace.cores != 1.0).any():
            raise InvalidParameter("cpus: must be given with servers, as the log's jobs have cpus")
        cpus = float(trace.cores.any())
    return dataclasses.replace(
        trace,
        machine_cores=np.full(servers, float(cpus)),
        machine_memory=np.full(servers, float(memory or 0.0)),
        machine_gpu=np.full(servers, float(gpus or 0.0)),
    )


def _proposal(trace: Trace) -> str:
    """Return the arguments to give, with the largest use that the log shows."""
    used = size_text(trace, *(f"{most:.6g}" if most > 0 else "" for most in used_at_once(trace)))
    most = (float(size.max()) for size in (trace.cores, trace.gpu))
    cores, gpu = (f"{size:g}" if size else "" for size in most)
    one = size_text(trace, cores, gpu=gpu)
    options = "--servers N" + " --cpus C --memory M" * bool(cores or not gpu) + " --gpus G" * bool(gpu)
    return f"give --machines FILE, or {options} (its jobs used up to {used} at once, one job up to {one})"
