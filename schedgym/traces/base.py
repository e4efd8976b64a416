"""The common part of all trace readers: the Trace or JobTrace that they return, and a column of numbers.

A reader is one module of this package that exports ``FORMAT``, a :class:`Format`; there is no list of them.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sized
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from schedgym.core.arrays import Flags, Floats, Integers
from schedgym.core.workload import CAPACITY_TOLERANCE
from schedgym.documents import check, entry
from schedgym.errors import InvalidParameter, InvalidWorkload, TraceFormatError

#: what tasks take: array of a trace (with "machine_" before it that of machines) -> quantity of a declaration
RESOURCES = {"cores": "cpus", "memory": "memory", "gpu": "gpus"}
#: arrays of a trace that may be empty
OPTIONAL = ("job", "start", "deadline", "site", "value", "preemptible", "nodes", "line")

#: default bound on numbers: beyond it, whole numbers are not exact in float64
LARGEST = float(2**53)

#: why rows are left out, as keys of ``Trace.dropped``
MALFORMED = "malformed"
NO_EXECUTION = "execution <= 0"
UNFINISHED = "unfinished"
MACHINE = "machine: "  # prefix of the reasons that concern rows of a file of machines

DELIMITERS = ",\t;|"

#: a number in decimal notation
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PART = re.compile(r"part-([0-9]{5})-of-([0-9]{5})\.csv(?:\.gz)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


def _empty() -> Floats:
    return np.zeros(0)


def _own(trace: Trace | JobTrace, names: tuple[str, ...], *, sort: bool = False) -> None:
    """Replace arrays of one length by read-only copies, with ``sort`` in the (stable) order of the first."""
    arrays = {name: np.array(getattr(trace, name), dtype=np.float64) for name in names}
    first = arrays[names[0]]
    shape = (first.size,)
    for name, values in arrays.items():
        if values.shape != shape:
            raise InvalidWorkload(
                f"{trace.name} trace: {name}: must have shape {shape} like {names[0]}, got {values.shape}"
            )
    if sort and (np.diff(first) < 0).any():
        order = np.argsort(first, kind="stable")
        arrays = {name: values[order] for name, values in arrays.items()}
    for name, values in arrays.items():
        values.flags.writeable = False
        object.__setattr__(trace, name, values)


class Fault(NamedTuple):
    """Why a row is left out: the reason, and of a malformed row the column and what is wrong with it."""

    reason: str
    column: str = ""
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """Rows that were left out for one reason.

    Attributes:
        reason: as in ``dropped`` of the trace.
        count: how many rows.
        line: number of the first of them, counted from 1 (of a data frame or a Parquet file: of its row); 0
            where it is not known.
        column: the column that is the reason, "" for the whole row.
        detail: what is wrong with the first of them, "" where the reason says it.
        unit: what ``line`` counts: "line", or "job" of a JSON file.
        jobs: how many jobs (tasks) the rows stand for.
        work: their durations times their cores [core-seconds], of those whose both are known; NaN: of none.
        gpu_work: the same of their GPUs [GPU-seconds].
    """

    reason: str
    count: int
    line: int
    column: str = ""
    detail: str = ""
    unit: str = "line"
    jobs: int = 0
    work: float = math.nan
    gpu_work: float = math.nan

    def __str__(self) -> str:
        what = ": ".join(part for part in (self.reason, self.column, self.detail) if part)
        first = f" (first in {self.unit} {self.line})" if self.line else ""
        return f"{self.count} row{'s' * (self.count > 1)}: {what}{first}"


def count_dropped(left_out: Iterable[LeftOut]) -> Counter[str]:
    """Why rows were left out -> how many."""
    found: Counter[str] = Counter()
    for one in left_out:
        found[one.reason] += one.count
    return found


class _Rows:
    """The numbers of rows of a trace."""

    arrival: Floats
    left_out: tuple[LeftOut, ...]

    @property
    def dropped(self) -> dict[str, int]:
        """Why rows were left out -> how many, e.g. {"execution <= 0": 1}."""
        return dict(count_dropped(self.left_out))

    @property
    def rows(self) -> int:
        """Number of rows read from the file of tasks or jobs, kept or left out."""
        left_out = (one.count for one in self.left_out if not one.reason.startswith(MACHINE))
        return self.kept_rows + sum(left_out)

    @property
    def kept_rows(self) -> int:
        """Number of rows of the file that are tasks or jobs; of a trace without their lines one for each."""
        line = getattr(self, "line", ())
        return len(np.unique(line)) if len(line) else len(self.arrival)


@dataclasses.dataclass(frozen=True, eq=False)
class Trace(_Rows):
    """Tasks and machines of a trace, in units that no longer depend on its format; arrays are read-only.

    Tasks are sorted by arrival, ties in the order of the file. Memory is in GiB (2**30 bytes), unless
    ``unit`` says that the trace has been published in shares only.

    Attributes:
        name: the format, e.g. "alibaba".
        arrival: when each task was submitted, on the trace's own clock [s]; [N], not decreasing.
        duration: how long each task runs [s]; [N].
        cores: processor demand of each task [cores]; [N], all 0 where the trace has GPUs only.
        memory: memory demand of each task [GiB]; [N].
        gpu: GPU demand of each task [GPUs], which may be a part of one; [N], all 0 where the trace has none.
        machine_cores: processor capacity of each machine [cores]; [P], empty without machines.
        machine_memory: memory capacity of each machine [GiB]; [P], all 0 where the trace does not say.
        machine_gpu: GPUs of each machine; [P], all 0 where the trace does not say.
        files: the files that were read.
        unit: unit of the sizes of tasks and machines, "cores, GiB" or "share of the largest machine" (then
            cores and memory of both are such shares, per resource).
        filled: missing quantity, taken as 0 -> number of the kept tasks without it.
        job: number of the job that each task belongs to; [N], empty where the format knows no jobs of tasks.
        start: when each task started by the record [s], NaN where it does not say; [N], or empty.
        deadline: when each task had to be done [s], NaN where it had no deadline; [N], or empty.
        site: index into ``sites`` of the site that each task belongs to, NaN where it is not known; [N], or
            empty.
        sites: names of the sites; of a task that may run at several, these in one text, e.g. "paris|rome".
        value: what each task is worth; [N], or empty.
        preemptible: 1 where a task may be interrupted, 0 where it may not be or that is not known; [N], or
            empty.
        nodes: number of machines that each task ran on, NaN where it is not known; [N], or empty.
        line: number of the row of each task in the file, as in :class:`LeftOut`; [N], or empty.
        row: what these count: "line", or "job" of a JSON file.
        machine_site: index into ``sites`` of each machine's site; [P], empty where that is not known.
        origin: date and time (UTC) at which the trace's clock is 0, "" where it is not known.
        left_out: the rows that were left out, for each reason and column; reasons that start with "machine: "
            count rows of the file of machines. Formats of events count tasks instead, and rows where they are
            malformed.
        notes: how the file was read, where that does not go without saying, a sentence each.

    Raises:
        InvalidWorkload: when arrays that belong together differ in length or are not 1-dimensional.
    """

    name: str
    arrival: Floats
    duration: Floats
    cores: Floats
    memory: Floats
    machine_cores: Floats = dataclasses.field(default_factory=_empty)
    machine_memory: Floats = dataclasses.field(default_factory=_empty)
    gpu: Floats = dataclasses.field(default_factory=_empty)
    machine_gpu: Floats = dataclasses.field(default_factory=_empty)
    files: tuple[Path, ...] = ()
    unit: str = "cores, GiB"
    filled: Mapping[str, int] = dataclasses.field(default_factory=dict)
    job: Floats = dataclasses.field(default_factory=_empty)
    start: Floats = dataclasses.field(default_factory=_empty)
    deadline: Floats = dataclasses.field(default_factory=_empty)
    site: Floats = dataclasses.field(default_factory=_empty)
    sites: tuple[str, ...] = ()
    value: Floats = dataclasses.field(default_factory=_empty)
    preemptible: Floats = dataclasses.field(default_factory=_empty)
    nodes: Floats = dataclasses.field(default_factory=_empty)
    line: Floats = dataclasses.field(default_factory=_empty)
    row: str = "line"
    machine_site: Floats = dataclasses.field(default_factory=_empty)
    origin: str = ""
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, like in (("gpu", self.arrival), ("machine_gpu", self.machine_cores)):
            if not np.any(getattr(self, name)):
                object.__setattr__(self, name, np.zeros(np.size(like)))
        optional = [name for name in OPTIONAL if np.size(getattr(self, name))]
        _own(self, ("arrival", "duration", *RESOURCES, *optional), sort=True)
        for name in set(OPTIONAL) - set(optional):
            _own(self, (name,))
        sited = ("machine_site",) if np.size(self.machine_site) else ()
        _own(self, (*(f"machine_{name}" for name in RESOURCES), *sited))
        object.__setattr__(self, "filled", dict(self.filled))

    def __repr__(self) -> str:
        return (
            f"Trace({self.name!r}, tasks: {len(self.arrival)}, machines: {len(self.machine_cores)}, "
            f"dropped: {self.dropped})"
        )

    @property
    def work(self) -> Floats:
        """Duration times cores of each task [core-seconds]; [N]."""
        return self.duration * self.cores

    @property
    def gpu_work(self) -> Floats:
        """Duration times GPUs of each task [GPU-seconds]; [N]."""
        return self.duration * self.gpu

    @property
    def begun(self) -> Floats:
        """When each task started by the record, or was submitted where that does not say [s]; [N]."""
        start = self.start if len(self.start) else self.arrival
        return np.where(np.isnan(start), self.arrival, start)


@dataclasses.dataclass(frozen=True, eq=False)
class JobTrace(_Rows):
    """Jobs of a trace that has the bytes that each job moves, but not its tasks; arrays are read-only.

    Jobs are sorted by arrival, ties in the order of the file. A byte count of 0 is a fact (no such phase).

    Attributes:
        name: the format, e.g. "swim".
        arrival: when each job was submitted, on the trace's own clock [s]; [J], not decreasing.
        gap: time since the job before, as the file has it [s]; [J].
        input_bytes: read by the map phase [bytes]; [J].
        shuffle_bytes: moved from the map to the reduce phase [bytes]; [J].
        output_bytes: written by the reduce phase [bytes]; [J].
        files: the files that were read.
        left_out: the rows that were left out, for each reason and column.
        notes: as of a :class:`Trace`.

    Raises:
        InvalidWorkload: when the arrays differ in length or are not 1-dimensional.
    """

    name: str
    arrival: Floats
    gap: Floats
    input_bytes: Floats
    shuffle_bytes: Floats
    output_bytes: Floats
    files: tuple[Path, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _own(self, ("arrival", "gap", "input_bytes", "shuffle_bytes", "output_bytes"), sort=True)

    def __repr__(self) -> str:
        return f"JobTrace({self.name!r}, jobs: {len(self.arrival)}, dropped: {self.dropped})"

    def map_tasks(self) -> Integers:
        """Return ceil(input / 10^9 bytes), each job's tasks when a task reads at most 10^9 bytes; [J]."""
        return -(-self.input_bytes.astype(np.int64) // 10**9)

    def with_input(self) -> tuple[Floats, Integers]:
        """Return arrivals [s] and numbers of map tasks of the jobs that have any.

        Raises:
            InvalidWorkload: when no job has.
        """
        tasks = self.map_tasks()
        if not tasks.any():
            raise InvalidWorkload(f"{self.name}: no job has a map task")
        return self.arrival[tasks > 0], tasks[tasks > 0]


def tasks_of(trace: Trace | JobTrace, needed: str) -> Trace:
    """Return a trace of tasks; for one of jobs raise InvalidParameter, which says what is ``needed``."""
    if isinstance(trace, Trace):
        return trace
    raise InvalidParameter(
        f"trace: the {trace.name} trace has jobs by their bytes; this problem needs tasks with {needed}"
    )


def fitting(trace: Trace) -> Flags:
    """True for tasks that fit an empty machine, [N]; a resource that no machine is given limits nothing.

    As in the problems, a demand may pass a capacity by CAPACITY_TOLERANCE of the largest machine.
    """
    limits = [name for name in RESOURCES if getattr(trace, f"machine_{name}").any()]
    demands = np.column_stack([getattr(trace, name) for name in limits])
    sizes = np.column_stack([getattr(trace, f"machine_{name}") for name in limits])
    slack = CAPACITY_TOLERANCE * sizes.max(axis=0)
    fits = np.zeros(len(trace.arrival), dtype=np.bool_)
    for size in np.unique(sizes, axis=0) + slack:
        fits |= (demands <= size).all(axis=1)
    return fits


def offered_load(trace: Trace) -> dict[str, float | None]:
    """Offered load of each resource: volume (demand times duration) over the machines' capacity.

    The capacity is that of all machines between the first and the last arrival. None when these coincide, or
    if the machines' capacity of the resource is not known; GPUs are left out where no task asks for any.
    """
    span = float(trace.arrival[-1] - trace.arrival[0])
    found: dict[str, float | None] = {}
    for name in RESOURCES:
        demand, size = getattr(trace, name), getattr(trace, f"machine_{name}")
        if name == "gpu" and not demand.any():
            continue
        known = span > 0 and size.any()
        found[name] = float(trace.duration @ demand) / (span * float(size.sum())) if known else None
    return found


def round_up(values: Floats) -> Floats:
    """Return whole numbers, to the accuracy of floats: 0.07 of 100 is 7."""
    return np.ceil(values * (1.0 - 1e-12))


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A published file.

    Attributes:
        file: its name.
        url: where it is published.
        size: in bytes; what is longer is not downloaded.
        sha256: of its content, in hexadecimal; "" if it is not known, so that nothing is verified.
        help: one line: what it is.
        licence: under which it is published, or what its publisher says of its use.

    Raises:
        InvalidParameter: naming what is wrong with it.
    """

    file: str
    url: str
    size: int = entry(least=1)
    sha256: str = ""
    help: str = ""
    licence: str = ""

    def __post_init__(self) -> None:
        check(self)
        if self.sha256 and (len(self.sha256) != 64 or set(self.sha256) - set("0123456789abcdef")):
            raise InvalidParameter(f"sha256: must be 64 hexadecimal digits, got {self.sha256!r}")
        if not self.url.startswith("https://"):
            raise InvalidParameter(f"url: must start with https://, got {self.url!r}")
        if Path(self.file).name != self.file or self.file in ("", ".."):
            raise InvalidParameter(f"file: must be the name of a file, got {self.file!r}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class About:
    """Facts on a trace format.

    Attributes:
        name: name for ``read_trace(format=...)``.
        help: one line on the format.
        licence: of the published trace, "" where there is none to name.
        address: address of the publication or definition.
        cite: the citation that its publisher asks for.
        jobs: number of rows of the published trace, None if there is not one or it is not known.
        span: the period that it covers.
        notes: notes for users.
        assumes: assumptions in place of facts that the trace does not contain, "" if none; such a format is
            never chosen by the first line of a file, only by its name.
        files: name for ``schedgym trace fetch`` -> published file.
    """

    name: str
    help: str = ""
    licence: str = ""
    address: str = ""
    cite: str = ""
    jobs: int | None = entry(None, least=1)
    span: str = ""
    notes: tuple[str, ...] = ()
    assumes: str = ""
    files: Mapping[str, DataSet] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Format(About):
    """A trace format with a reader: what a reader's module exports as ``FORMAT``.

    Attributes:
        recognises: returns True if the first line of a file (without its end) may be this format's.
        read: called as ``read(path, nodes, on_error=..., limit=...)``.
        gives: "tasks", and "jobs" if tasks belong to jobs; or "bytes" for jobs given by their bytes.
    """

    recognises: Callable[[str], bool]
    read: Callable[..., Trace | JobTrace]
    gives: tuple[str, ...] = ("tasks",)


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of numbers in a trace file.

    Attributes:
        name: name in the header, or in messages where the format has none.
        unit: unit of its numbers; "" for those that only name or count something.
        minimum, maximum: the range; ``exclusive`` leaves the minimum itself out.
        optional: True if a field may be empty, which is then NaN.
        whole: True if only whole numbers are valid.
        unknown: a number that stands for "not known", read as NaN (None: there is none).
    """

    name: str
    unit: str
    minimum: float = 0.0
    maximum: float = LARGEST
    exclusive: bool = False
    optional: bool = False
    whole: bool = False
    unknown: float | None = None

    def parse(self, text: str) -> float:
        """The number that a field holds; ValueError says what is wrong with it.

        Only decimal notation counts: Python would also take "1_000", "nan" and other scripts' digits.
        """
        text = text.strip(" ")
        if not text:
            raise ValueError("is empty, must be a number")
        if not DECIMAL.fullmatch(text):
            what = "finite" if _NOT_FINITE.fullmatch(text) else "a number"
            raise ValueError(f"must be {what}, got {_quote(text)}")
        value = float(text)
        if math.isinf(value):
            raise ValueError(f"must be finite, got {_quote(text)}")
        if value == self.unknown:
            return math.nan
        unit = f" ({self.unit})" if self.unit else ""
        if self.whole and not value.is_integer():
            raise ValueError(f"must be a whole number, got {_quote(text)}")
        if value < self.minimum or (self.exclusive and value == self.minimum):
            sign = ">" if self.exclusive else ">="
            raise ValueError(f"must be {sign} {self.minimum:g}{unit}, got {_quote(text)}")
        if value > self.maximum:
            raise ValueError(f"must be <= {self.maximum:g}{unit}, got {_quote(text)}")
        return value


def split_fields(text: str, delimiter: str) -> list[str]:
    """The fields of a line, which may be quoted; ValueError says what is wrong.

    Args:
        text: the line.
        delimiter: one character; "": any run of blanks, and nothing is quoted.
    """
    if not delimiter or '"' not in text:
        return text.split(delimiter or None)
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise ValueError(f"bad quoting: {error}") from None


def find_delimiter(header: str, usual: str = "") -> str:
    """The sign between the names of a header: the usual one if it is there, else the most frequent one.

    "" if there is none but blanks.
    """
    if usual and usual in header:
        return usual
    found = max(DELIMITERS, key=header.count)
    return found if found in header or len(header.split()) < 2 else ""


def is_number(text: str) -> bool:
    """Return True if a field is a number in decimal notation, of any size."""
    return DECIMAL.fullmatch(text.strip(" ")) is not None


def parts(path: str | Path) -> tuple[Path, ...]:
    """The files of a data set that is published in numbered parts, in their order.

    Args:
        path: a folder of files ``part-?????-of-?????.csv`` or ``.csv.gz`` (others are ignored), or one file.

    Returns:
        the files: the parts of a folder, none if it has none; a path that is no folder, itself.

    Raises:
        TraceFormatError: when the parts of a folder are not consecutive parts of one data set: what
            the missing ones hold would be lost in silence.
    """
    path = Path(path)
    if not path.is_dir():
        return (path,)
    found = [(name, file) for file in path.iterdir() if (name := _PART.fullmatch(file.name))]
    numbered = sorted((int(name[1]), int(name[2]), file) for name, file in found)
    for (number, total, before), (following, other, file) in itertools.pairwise(numbered):
        if (following, other) != (number + 1, total):
            reason = f"{file.name} does not follow {before.name}: parts must be consecutive"
            raise TraceFormatError(path, 0, "", reason)
    return tuple(file for *_, file in numbered)


def refuse_empty(path: str | Path, what: str, values: Sized, dropped: Mapping[str, int]) -> None:
    """Raise TraceFormatError when a file yielded no ``what`` ("task", "machine"), saying what was dropped."""
    if len(values) == 0:
        reasons = "; ".join(f"{reason.removeprefix(MACHINE)}: {n}" for reason, n in dropped.items() if n)
        raise TraceFormatError(path, 0, "", f"has no {what}" + (f" (left out: {reasons})" if reasons else ""))


def name_of(source: Any) -> str | Path:
    """The name of a table in messages: its path, or "data frame"."""
    return source if isinstance(source, str | Path) else "data frame"


def check_reading(on_error: str, limit: int | None = None) -> None:
    """Raise InvalidParameter unless ``on_error`` is "raise" or "skip", ``limit`` None or at least 1 task."""
    if on_error not in ("raise", "skip"):
        raise InvalidParameter(f"on_error: must be 'raise' or 'skip', got {on_error!r}")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise InvalidParameter(f"limit: must be None or a whole number of tasks >= 1, got {limit!r}")


def _quote(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
