"""The declaration of a trace format that is a table: its columns, units, filters and source, also as YAML.

A format of this kind is one file in ``schedgym/traces/formats``, or a user's own::

    name: mine
    help: jobs of our cluster
    columns:
      submit: {from: submitted, unit: date}
      duration: {from: minutes, unit: min}
      cpus: cores
      memory: {from: mib, unit: MiB, empty: zero}
    filters:
      - {column: state, other_than: [DONE, FAILED], reason: unfinished}

:mod:`schedgym.traces.table` reads files by it.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import pkgutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from schedgym.core.expression import Expression
from schedgym.documents import build, entry, placed, read_yaml
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.traces.base import About, find_delimiter, is_number, split_fields

#: unit -> what multiplies and what divides a number of it, to get seconds, cores, bytes or GiB (2**30 bytes)
Units: TypeAlias = Mapping[str, tuple[float, float]]
ONE = (1.0, 1.0)
TIMES = {
    "s": ONE,
    "ms": (1.0, 1e3),
    "us": (1.0, 1e6),
    "ns": (1.0, 1e9),
    "min": (60.0, 1.0),
    "h": (3600.0, 1.0),
    "d": (86400.0, 1.0),
}
CORES = {"cores": ONE, "millicores": (1.0, 1e3), "percent": (1.0, 1e2)}
GPUS = {"GPUs": ONE, "milliGPUs": (1.0, 1e3), "percent": (1.0, 1e2)}
BYTES = {
    "B": ONE,
    "kB": (1e3, 1.0),
    "MB": (1e6, 1.0),
    "GB": (1e9, 1.0),
    "TB": (1e12, 1.0),
    "KiB": (2.0**10, 1.0),
    "MiB": (2.0**20, 1.0),
    "GiB": (2.0**30, 1.0),
    "TiB": (2.0**40, 1.0),
}
MEMORY = {"GiB": ONE} | {unit: (size, 2.0**30) for unit, (size, _) in BYTES.items()}
SUFFIXES = (".yaml", ".yml")  # of a declaration; other names of formats are no paths
FILES = ("workload", "trace", "nodes")  # parameters of environments that always name files
DATE = "date"  # a date and time, as pandas reads it
CLOCK = "D-HH:MM:SS"  # [days-][hours:]minutes:seconds

POINTS = ("submit", "start", "end", "deadline")  # in time
#: quantity of a task -> its units, the first of which is the default; none: it is a name
TASKS: dict[str, Units] = {
    **dict.fromkeys(POINTS, {**TIMES, DATE: ONE}),
    "duration": {**TIMES, CLOCK: ONE},
    "cpus": CORES,
    "memory": MEMORY,
    "gpus": GPUS,
    "tasks": {"tasks": ONE},
    "nodes": {"nodes": ONE},
    "value": {"per job": ONE},
    **dict.fromkeys(("preemptible", "job", "site"), {}),
}
#: the same, of a job that is known by its bytes
JOBS: dict[str, Units] = {
    **dict.fromkeys(("submit", "gap"), TIMES),
    **dict.fromkeys(("input", "shuffle", "output"), BYTES),
}
#: and of machines
MACHINES: dict[str, Units] = {name: TASKS[name] for name in ("cpus", "memory", "gpus", "site")}
#: quantities of a task that need not be known
UNKNOWN = ("start", "deadline", "value", "preemptible", "nodes", "job", "site")

EMPTY = ("refuse", "leave out", "unknown", "zero")
CONDITIONS = ("equals", "other_than", "starts", "begins", "contains")


@dataclasses.dataclass(frozen=True)
class Field:
    """The rule by which one quantity of a task follows from the columns of a table.

    Attributes:
        source: the name of a column (in YAML ``from``), or several of which the first that the table has
            counts; else a number, or an arithmetic expression over columns
            (:class:`~schedgym.core.expression.Expression`). Dates and names need a column.
        unit: of the numbers; "" means seconds, cores, GiB, GPUs, or bytes. "date" is a date and time, in UTC
            where it has no zone, "D-HH:MM:SS" a duration as Slurm writes it.
        empty: what an empty field means: "refuse" (the row is malformed), "leave out" (the row is left out
            and counted), "unknown" (no value: only for UNKNOWN), "zero" (0, counted; of GPUs, which most jobs
            do not ask for, not counted).
        unknown: texts that stand for an empty field.
        optional: True if the table may lack the column; the quantity is then unknown.
        letters: True if memory may end in K, M, G, T or P, powers of 1024 that take the place of the unit, or
            cpus in m, for millicores.
        decimal: with ``letters``: True if K, M, ... are powers of 1000 and only Ki, Mi, ... of 1024, as in
            quantities of Kubernetes.
        negative: of points in time that are numbers: True if they may be below 0, as for jobs from before
            the log began, though not by more than the log is long.
        times: with ``letters``: a further letter -> the column by which the number is multiplied, e.g.
            {"c": "AllocCPUS"} for memory per core.
        format: of dates: "ISO8601", or as for :meth:`datetime.datetime.strptime`.
        before: of names: only what stands before this text counts, e.g. "_" for the task 7_3 of job 7.
    """

    source: str | float | tuple[str, ...] = entry(key="from", alone=True)
    unit: str = ""
    empty: str = "refuse"
    unknown: tuple[str, ...] = ()
    optional: bool = False
    letters: bool = False
    decimal: bool = False
    negative: bool = False
    times: Mapping[str, str | tuple[str, ...]] = entry(factory=dict)
    format: str = "ISO8601"
    before: str = ""

    @property
    def sources(self) -> tuple[str, ...]:
        """The names, or the expression."""
        return self.source if isinstance(self.source, tuple) else (str(self.source),)

    def reads(self, names: Collection[str]) -> tuple[str, ...] | None:
        """The columns that are read of a table with such names (none for a number); None if it lacks one."""
        for source in self.sources:
            if source in names or source.partition(".")[0] in names:
                return (source,)
        try:
            needed = Expression(self.sources[0]).names if len(self.sources) == 1 else self.sources
        except InvalidParameter:  # the name of a column that is not there
            return None
        return needed if set(needed) <= set(names) else None


@dataclasses.dataclass(frozen=True)
class Filter:
    """A condition under which rows are left out; of the conditions one is given.

    Attributes:
        column: the column of the text, or several of which the first that the table has counts.
        reason: under which the rows are counted.
        equals, other_than: the text is (is not) one of these.
        starts, contains: the text begins with (has in it) one of these.
        begins: the same, with no letter behind it: "run" stands for run and run 2, not for runtime error.
        optional: True if the table may lack the column; then nothing is left out.
    """

    column: str | tuple[str, ...]
    reason: str
    equals: tuple[str, ...] = ()
    other_than: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    optional: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.column if isinstance(self.column, tuple) else (self.column,)

    def holds(self, text: str) -> bool:
        """Return True if a row with this text in the column is left out."""
        return bool(
            text in self.equals
            or (self.other_than and text not in self.other_than)
            or (self.starts and text.startswith(self.starts))
            or any(text.startswith(word) and not text[len(word) :][:1].isalpha() for word in self.begins)
            or any(part in text for part in self.contains)
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableLayout:
    """The columns of a table, and how its text is laid out.

    Attributes:
        columns: quantity -> where it comes from. Of a task: submit, duration or end, optionally start (the
            recorded one), cpus (default: one core, or none beside gpus), memory and gpus (default: none),
            deadline, tasks (how many equal ones the row stands for), nodes (how many machines it ran on), job
            (which job the task belongs to), site. Of a job by its bytes: submit, gap, input, shuffle, output.
            Of a machine: cpus, memory, gpus.
        delimiter: between fields, one character; "": any run of blanks. Of a table with a header, another one
            is taken where the header does not have it, or the columns of fixed width that it shows.
        names: of all columns, for a table without a header.
        comment: lines that start with it are no rows ("": none).
        filters: which rows are left out.
        decimal: the decimal sign of numbers, "." or ",".
        empty: texts that stand for an empty field in all columns.
        one_zone: True: dates without a time zone beside others with one are malformed; False: they are UTC.
        once: columns that tell rows apart: a row with the texts of an earlier one, in those of them that the
            table has, is left out and counted as "repeated".
        rows: the module of this folder that makes the table, with these names, of a file that is none: its
            function ``facts`` makes a row of a line, or of a job in JSON; ``BEGINS`` matches the first line.
    """

    columns: Mapping[str, Field]
    delimiter: str = ","
    names: tuple[str, ...] | None = None
    comment: str = ""
    filters: tuple[Filter, ...] = entry((), empty=True)
    decimal: str = "."
    empty: tuple[str, ...] = entry((), empty=True)
    one_zone: bool = False
    once: tuple[str, ...] = entry((), empty=True)
    rows: str = ""

    def fits(self, line: str, numbers: Mapping[str, bool]) -> bool:
        """Return True if a line may be a row of a table without a header, by the columns of its numbers.

        One of these may be bad: it is better to refuse it by its column's name than as an unknown format.

        Args:
            line: without its end.
            numbers: name of a column -> False if its field may be empty.
        """
        try:
            fields = dict(zip(self.names or (), split_fields(line, self.delimiter), strict=True))
        except ValueError:  # quoted badly, or of another width
            return False
        texts = [fields[name].strip() for name in numbers]
        needed = numbers.values()
        good = [is_number(text) or not (text or must) for text, must in zip(texts, needed, strict=True)]
        return sum(good) >= len(good) - 1 and any(map(is_number, texts))


#: a file of machines where a format does not publish one of its own
COMMON_MACHINES = TableLayout(
    columns={"cpus": Field("cores"), "memory": Field("memory"), "gpus": Field("gpus", optional=True)}
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableFormat(TableLayout, About):
    """A trace format that is a table.

    Attributes:
        machines: layout of the file of machines; None: the format has none.
        unit: of cpus and memory: "cores, GiB", or what the trace schedules in their place, e.g. "slots".
        marks: columns that tell this format from others; they need not be read.
        least: number of its columns by which it is recognised, with those that a table may lack; 0: all that
            it needs but one.

    Raises:
        InvalidParameter, UnknownName: naming what is wrong with it.
    """

    machines: TableLayout | None = COMMON_MACHINES
    unit: str = "cores, GiB"
    marks: tuple[str, ...] = ()
    least: int = entry(0)

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise InvalidParameter(f"name: must be a text, got {self.name!r}")
        known, needed = (JOBS, tuple(JOBS)) if self.by_bytes else (TASKS, ("submit",))
        _check_layout(self, known, needed)
        if not self.by_bytes and ("duration" in self.columns) == ("end" in self.columns):
            raise InvalidParameter("columns.duration: must be given, or end in its place, not both")
        if self.by_bytes and self.machines is not None:
            raise InvalidParameter("machines: must be none, as jobs by their bytes use no machines")
        if self.machines is not None:
            with placed("machines", "."):
                alone = "gpus" in self.columns and "cpus" not in self.columns
                _check_layout(self.machines, MACHINES, ("gpus",) if alone else ("cpus", "memory"))

    def has_header(self, line: str) -> bool:
        """Return True if a first line is the names of the columns, though files of the format have none."""
        return self.names is not None and line.strip() == self.delimiter.join(self.names)

    def recognises(self, line: str) -> bool:
        """Return True if this may be the first line of a text file of the format."""
        if self.rows:
            begins = getattr(find_reader(self.rows), "BEGINS", None)
            return begins is not None and begins.fullmatch(line) is not None
        if self.names is None:
            try:
                fields = split_fields(line, find_delimiter(line, self.delimiter))
            except ValueError:
                return False
            return self.matches([field.strip() for field in fields])
        if self.has_header(line):
            return True
        numbers = {
            name: own.empty == "refuse"
            for quantity, own in self.columns.items()
            for name in own.sources
            if name in self.names and own.unit not in (DATE, CLOCK) and not own.letters
            if TASKS.get(quantity, JOBS.get(quantity))
        }
        return self.fits(line, numbers)

    def matches(self, names: Sequence[str]) -> bool:
        """Return True if a table with these columns may be of this format.

        At most one of the columns that it needs is missing, or ``least`` are there (the error then names the
        missing column), or all columns of its own file of machines are there.
        """
        if not set(self.marks) <= set(names):
            return False
        if self.rows:
            return bool(self.marks)
        if self.least:
            found = {name for own in self.columns.values() for name in own.reads(names) or ()}
            found |= {name for own in self.filters for name in own.columns if name in names}
            return len(found) >= self.least
        have, need = _found(self, names)
        if have >= max(need - 1, 2):
            return True
        if self.machines is None or self.machines is COMMON_MACHINES:
            return False
        have, need = _found(self.machines, names)
        return have == need

    @property
    def gives(self) -> tuple[str, ...]:
        """As of :class:`~schedgym.traces.base.Format`."""
        if self.by_bytes:
            return ("bytes",)
        return ("tasks", "jobs") if {"job", "tasks"} & set(self.columns) else ("tasks",)

    @property
    def by_bytes(self) -> bool:
        """True if jobs are given by their bytes only."""
        return bool(set(self.columns) & (set(JOBS) - {"submit"}))


def _found(layout: TableLayout, names: Collection[str]) -> tuple[int, int]:
    """Return the numbers of the columns that are there of those that a layout needs, and of those."""
    read = [own.reads(names) for own in layout.columns.values() if not own.optional]
    found = [bool(columns) for columns in read if columns != ()]  # a number needs no column
    found += [bool(set(own.columns) & set(names)) for own in layout.filters if not own.optional]
    return sum(found), len(found)


def _check_columns(columns: Mapping[str, Field], known: Mapping[str, Units]) -> None:
    for name, field in columns.items():
        if name not in known:
            raise UnknownName("quantity", name, known)
        if not isinstance(field, Field):
            raise InvalidParameter(f"{name}: must be a Field, got {field!r}")
        units, sized = known[name], name in ("cpus", "memory")
        further = (len(one) == 1 and one.isalpha() and one not in "KMGTPkmgtpiB" for one in field.times)
        faults = {
            f"from: must name a column, got {field.source!r}": not all(field.sources),
            f"unit: must be one of {', '.join(units) or '(none)'}, got {field.unit!r}": (
                field.unit and field.unit not in units
            ),
            f"empty: must be one of {', '.join(EMPTY)}, got {field.empty!r}": field.empty not in EMPTY,
            f"empty: 'unknown' is only for {', '.join(UNKNOWN)}": (
                field.empty == "unknown" and name not in UNKNOWN
            ),
            "empty: 'zero' is only for cpus, memory and gpus": (
                field.empty == "zero" and not sized and name != "gpus"
            ),
            "optional: no trace can lack it": field.optional and name in ("submit", "duration", "end"),
            "letters: only for cpus and memory": field.letters and not sized,
            "before: only for names": field.before and units,
            "times: needs letters of memory": field.times and not (field.letters and name == "memory"),
            "times: must name letters other than those of units": not all(further),
        }
        with placed(name, ": "):
            for reason, holds in faults.items():
                if holds:
                    raise InvalidParameter(reason)
            if field.format != "ISO8601":
                _check_format(field.format)


def find_reader(name: str) -> ModuleType:
    """The module of this folder whose function ``facts`` makes rows of a file that is no table.

    Raises:
        UnknownName: when there is no such module.
    """
    known = [one.name for one in pkgutil.iter_modules([str(Path(__file__).parent)])]
    found = importlib.import_module(f"{__package__}.{name}") if name in known else None
    if found is None or not hasattr(found, "facts"):
        raise UnknownName("reader", name, known)
    return found


def _check_format(form: str) -> None:
    """Raise InvalidParameter unless dates can be written and read in a format."""
    try:
        datetime.datetime.strptime(datetime.datetime(2024, 5, 6, tzinfo=datetime.UTC).strftime(form), form)
    except ValueError as error:
        raise InvalidParameter(f"format: {' '.join(str(error).split())}") from None


def _check_layout(layout: TableLayout, known: Mapping[str, Units], needed: Sequence[str]) -> None:
    """Raise InvalidParameter or UnknownName unless a layout can be read, and has the quantities needed."""
    with placed("columns", "."):
        _check_columns(layout.columns, known)
        if missing := [name for name in needed if name not in layout.columns]:
            raise InvalidParameter(f"{missing[0]}: must be given")
    if not isinstance(layout.delimiter, str) or layout.delimiter[1:] or layout.delimiter in tuple('"\r\n'):
        raise InvalidParameter(f"delimiter: must be one character, got {layout.delimiter!r}")
    if layout.rows:
        find_reader(layout.rows)
        if layout.names is None:
            raise InvalidParameter("rows: needs names")
    if layout.decimal not in (".", ","):
        raise InvalidParameter(f"decimal: must be '.' or ',', got {layout.decimal!r}")
    for i, own in enumerate(layout.filters):
        given = [name for name in CONDITIONS if getattr(own, name)]
        if len(given) != 1:
            raise InvalidParameter(f"filters[{i}]: must have one of {', '.join(CONDITIONS)}")
        if layout.names is not None and not set(own.columns) & set(layout.names):
            raise UnknownName(f"column in filters[{i}]", own.columns[0], layout.names)
    if layout.names is not None and len(set(layout.names)) != len(layout.names):
        raise InvalidParameter("names: a name is there twice")


# YAML -----------------------------------------------------------------------------------------------------


def named_files(parameters: Mapping[str, Any]) -> list[str]:
    """The parameters of an environment that name files: what is played depends on what is in them."""
    found = [name for name in FILES if parameters.get(name) is not None]
    format = parameters.get("trace_format")
    return [*found, "trace_format"] if format is not None and Path(format).suffix in SUFFIXES else found


def load_format(path: str | Path) -> TableFormat:
    """Read a declaration from a YAML file.

    Raises:
        OSError: when it cannot be read.
        InvalidParameter, UnknownName: naming the file, the field and what is wrong.
        gymnasium.error.DependencyNotInstalled: without the extra ``eval``.
    """
    path = Path(path)
    data = read_yaml(path)
    with placed(path.name):
        format = build(TableFormat, data, "the format")
    files = {
        name: dataclasses.replace(one, licence=one.licence or format.licence)
        for name, one in format.files.items()
    }
    return dataclasses.replace(format, files=files)
