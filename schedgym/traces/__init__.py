"""Cluster traces: readers, a summary, and (in :mod:`schedgym.traces.fetch`) their download.

A format is a table, one YAML file in the folder ``formats`` (:mod:`schedgym.traces.declaration`), or, where a
table cannot say it, one module of this folder that exports ``FORMAT``; there is no list of them to edit.
Packages add formats by the entry-point group ``schedgym.traces``, users by a YAML file whose path they give
in place of a name.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.problem import list_problems
from schedgym.errors import InvalidParameter, TraceFormatError, UnknownName
from schedgym.extras import entry_points
from schedgym.traces.base import (
    RESOURCES,
    Format,
    JobTrace,
    LeftOut,
    Trace,
    check_reading,
    name_of,
    offered_load,
    parts,
)
from schedgym.traces.declaration import SUFFIXES, Field, Filter, TableFormat, TableLayout, load_format
from schedgym.traces.machines import place
from schedgym.traces.nested import JOB
from schedgym.traces.pieces import column_names, is_text
from schedgym.traces.table import read_table
from schedgym.traces.texts import first_line

__all__ = [
    "Field",
    "Filter",
    "Format",
    "JobTrace",
    "LeftOut",
    "TableFormat",
    "TableLayout",
    "Trace",
    "beginning",
    "candidates",
    "feeds",
    "find_format",
    "formats",
    "inspect_trace",
    "load_format",
    "read_table",
    "read_trace",
    "refuse_assuming",
]

ENTRY_POINTS = "schedgym.traces"
FOLDER = Path(__file__).parent / "formats"


@functools.cache
def _readers() -> Mapping[str, Format]:
    """Name -> format, of every module of this folder."""
    modules = (importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__))
    found = [module.FORMAT for module in modules if hasattr(module, "FORMAT")]
    return MappingProxyType({format.name: format for format in sorted(found, key=lambda f: f.name)})


@functools.cache
def formats() -> Mapping[str, Format | TableFormat]:
    """Name -> format: the readers and tables of this folder, and those of entry points.

    An entry point holds a :class:`Format`, a :class:`TableFormat`, or the path of a YAML file.

    Raises:
        InvalidParameter: when an entry point holds something else, or a name is taken.
        gymnasium.error.DependencyNotInstalled: without the extra ``eval``.
    """
    found: dict[str, Format | TableFormat] = dict(_readers())
    own: list[tuple[str, Any]] = [(path.name, load_format(path)) for path in sorted(FOLDER.glob("*.yaml"))]
    for entry, format in entry_points(ENTRY_POINTS):
        if isinstance(format, str | Path):
            format = load_format(format)
        if not isinstance(format, Format | TableFormat):
            raise InvalidParameter(f"{entry}: must be a trace format, or the path of a YAML file")
        own.append((entry, format))
    for where, format in own:
        if format.name in found:
            raise InvalidParameter(f"{where}: there is another trace format {format.name!r}")
        found[format.name] = format
    return MappingProxyType(dict(sorted(found.items())))


def find_format(name: str | Path) -> Format | TableFormat:
    """A format by its name, or by the path of its YAML file (``.yaml`` or ``.yml``).

    Raises:
        UnknownName: when there is no such format.
        OSError, InvalidParameter: when the file cannot be read, or declares none.
    """
    if Path(name).suffix in SUFFIXES:
        return load_format(name)
    found = _readers().get(str(name)) or formats().get(str(name))
    if found is None:
        raise UnknownName("trace format", str(name), formats())
    return found


def feeds(format: Format | TableFormat) -> list[str]:
    """The ids of the environments that take what a format gives; some ask for a file of machines, too."""
    problems = list_problems().values()
    return [id for one in problems if set(one.traces) & set(format.gives) for id in one.ids]


def read_trace(
    path: Any,
    *,
    nodes: str | Path | None = None,
    format: str | Path | Format | TableFormat | None = None,
    on_error: str = "raise",
    limit: int | None = None,
) -> Trace | JobTrace:
    """Read a trace of any known format.

    Args:
        path: the file of tasks, or of jobs; for formats published in parts, also their folder; for formats
            that are tables, also a Parquet file or a pandas data frame.
        nodes: the file of machines, for formats that have one.
        format: a name of :func:`formats`, the path of a YAML file that declares one, or a format; None:
            recognised by the first line of the (first) file, or the names of the columns.
        on_error: "raise" stops at the first malformed row, "skip" leaves such rows out and counts them under
            "malformed" (of machines: "machine: malformed").
        limit: largest number of valid tasks (jobs) that are read; the rest of the file is not checked. None
            reads all.

    Returns:
        a trace of tasks in seconds, cores and GiB (or shares, see :attr:`Trace.unit`); of a format that
        knows jobs by their data only, a :class:`JobTrace` in seconds and bytes.

    Raises:
        TraceFormatError: when the file is of no known format, or breaks its format (naming file, line,
            column and reason), or when no task, job or machine is left.
        UnknownName: when there is no such format.
        InvalidParameter: when ``on_error`` or ``limit`` is invalid, or ``nodes`` is given for a format
            without machines.
        FileNotFoundError: when there is no such file.
        gymnasium.error.DependencyNotInstalled: for formats that are tables, without the extra ``eval``.
    """
    check_reading(on_error, limit)
    format = _choose(path, format)
    if isinstance(format, TableFormat):
        return read_table(path, format, nodes, on_error=on_error, limit=limit)
    if not isinstance(path, str | Path):
        kind = type(path).__name__
        raise InvalidParameter(f"trace: the {format.name} format is read from files, not {kind}")
    return format.read(path, nodes, on_error=on_error, limit=limit)


def _choose(path: Any, format: str | Path | Format | TableFormat | None) -> Format | TableFormat:
    if format is None:
        return _sniff(Path(path) if isinstance(path, str | Path) else path)
    return find_format(format) if isinstance(format, str | Path) else format


def beginning(source: Any) -> str | tuple[str, ...]:
    """Return the part by which a format is recognised: a text file's first line, or a table's columns."""
    return first_line(source) if is_text(source) else column_names(source, TableLayout(columns={}))


def candidates(begin: str | tuple[str, ...]) -> Iterator[Format | TableFormat]:
    """The formats that a trace with such a :func:`beginning` may be of: readers first, which need no YAML."""
    if isinstance(begin, str):
        yield from (format for format in _readers().values() if format.recognises(begin))
    for name, format in formats().items():
        if isinstance(begin, tuple):
            fits = isinstance(format, TableFormat) and format.matches(begin)
        else:
            fits = name not in _readers() and format.recognises(begin)
        if fits:
            yield format


def refuse_assuming(format: Format | TableFormat, source: Any, instead: str) -> None:
    """Raise TraceFormatError if a format that was recognised makes assumptions beyond the file.

    Args:
        format: the format.
        source: file or data frame.
        instead: what is to be given in place of the assumption.
    """
    if format.assumes:
        reason = f"looks like the format {format.name}, which assumes {format.assumes}: {instead}"
        raise TraceFormatError(name_of(source), 0, "", reason)


def _sniff(path: Any) -> Format | TableFormat:
    if isinstance(path, Path) and path.is_dir():
        if not (files := parts(path)):
            reason = f"is a folder: name its format (known: {', '.join(formats())})"
            raise TraceFormatError(path, 0, "", reason)
        path = files[0]
    try:
        begin = beginning(path)
    except TraceFormatError as error:
        if error.unit == JOB:
            raise
        reason = f"not a known trace format (known: {', '.join(formats())}): {error.reason}"
        raise TraceFormatError(path, error.line, "", reason) from None
    for format in candidates(begin):
        refuse_assuming(format, path, "name it if that may stand")
        return format
    line, what = (1, "the first line is") if isinstance(begin, str) else (0, "the columns are")
    start = begin if isinstance(begin, str) else ", ".join(begin)
    start = repr(start if len(start) <= 80 else start[:77] + "...")
    reason = f"not a known trace format (known: {', '.join(formats())}): {what} {start}"
    raise TraceFormatError(name_of(path), line, "", reason)


def inspect_trace(
    path: Any,
    nodes: str | Path | None = None,
    on_error: str = "raise",
    *,
    format: str | Path | Format | TableFormat | None = None,
    limit: int | None = None,
    pool: bool | None = None,
) -> dict[str, Any]:
    """Summary facts of a trace, as JSON-serialisable values.

    Arguments and errors are those of :func:`read_trace`, and ``pool`` with the error of too much work that
    fits no machine that of :func:`~schedgym.traces.machines.place`.

    Returns:
        a dictionary with

        - ``format``, ``licence``, ``notes``, ``files``: what was read, and what there is to know of it;
        - ``rows``, ``tasks`` (``jobs``), ``dropped``: rows of the file, how many of them became tasks
          (jobs), and why rows were left out; ``left_out`` has their columns and first lines, if known;
        - ``first_arrival``, ``last_arrival`` [s];

        and of a :class:`JobTrace`

        - ``input_bytes``, ``shuffle_bytes``, ``output_bytes``: each with mean, min, p25, median, p75,
          p99, max;
        - ``jobs_with_input``, ``map_tasks``: jobs that read any data, and their tasks of 1e9 bytes;

        of a :class:`Trace`

        - ``origin``, the date at which the clock is 0, "" where it is not known;
        - ``unit`` of sizes, and ``filled``: what was missing and stands as 0, in how many tasks;
        - ``duration`` [s], ``cores``, ``memory`` [``unit``], and where a task asks for any ``gpu`` [GPUs]:
          each with mean, ..., max as above;
        - ``machines``: their number, and for a trace with machines (else None) ``largest_machine``
          (cores, memory, gpu; largest by the smallest of its shares of the trace's maxima), ``pool`` (why
          they are one pool, "" if they are not), ``tasks_without_machine`` (tasks larger than every machine,
          or than the pool) and ``offered_load`` per resource of the others: the tasks' volume (demand times
          duration) over the capacity of all machines between the first and the last arrival, None when these
          coincide. If the memory or GPUs of machines are not known, they are no limit, and their facts are
          None.
    """
    check_reading(on_error, limit)
    format = _choose(path, format)
    trace = read_trace(path, nodes=nodes, format=format, on_error=on_error, limit=limit)
    facts: dict[str, Any] = {
        "format": trace.name,
        "licence": format.licence,
        "notes": [*format.notes, *([f"assumes {format.assumes}"] if format.assumes else []), *trace.notes],
        "files": [str(file) for file in trace.files],
        "rows": trace.rows,
        "jobs" if isinstance(trace, JobTrace) else "tasks": len(trace.arrival),
        "dropped": dict(trace.dropped),
        "left_out": [str(one) for one in trace.left_out],
        "first_arrival": float(trace.arrival[0]),
        "last_arrival": float(trace.arrival[-1]),
    }
    return facts | (_job_facts(trace) if isinstance(trace, JobTrace) else _task_facts(trace, pool))


def _job_facts(trace: JobTrace) -> dict[str, Any]:
    return {
        "input_bytes": _quantiles(trace.input_bytes),
        "shuffle_bytes": _quantiles(trace.shuffle_bytes),
        "output_bytes": _quantiles(trace.output_bytes),
        "jobs_with_input": int((trace.input_bytes > 0).sum()),
        "map_tasks": sum(trace.map_tasks().tolist()),  # Python's integers: the sum may pass an int64
    }


def _task_facts(trace: Trace, pool: bool | None) -> dict[str, Any]:
    asked = [name for name in RESOURCES if name != "gpu" or trace.gpu.any()]
    facts: dict[str, Any] = {
        "origin": trace.origin,
        "unit": trace.unit,
        "filled": dict(trace.filled),
        "duration": _quantiles(trace.duration),
        **{name: _quantiles(getattr(trace, name)) for name in asked},
        "machines": len(trace.machine_cores),
    }
    if not len(trace.machine_cores):
        return facts | dict.fromkeys(("largest_machine", "pool", "tasks_without_machine", "offered_load"))
    sizes = {name: getattr(trace, f"machine_{name}") for name in asked}
    known = [name for name in sizes if sizes[name].any()]
    table = np.column_stack([sizes[name] for name in known])
    largest = int(np.argmax((table / table.max(axis=0)).min(axis=1)))
    placed = place(trace, pool)
    return facts | {
        "largest_machine": {name: float(sizes[name][largest]) if name in known else None for name in sizes},
        "pool": placed.pool,
        "tasks_without_machine": sum(one.jobs for one in placed.left_out),
        "offered_load": offered_load(placed.trace),
    }


def _quantiles(values: Floats) -> dict[str, float]:
    names = {"min": 0.0, "p25": 0.25, "median": 0.5, "p75": 0.75, "p99": 0.99, "max": 1.0}
    found = np.quantile(values, list(names.values()))
    return {"mean": float(values.mean()), **{name: float(q) for name, q in zip(names, found, strict=True)}}
