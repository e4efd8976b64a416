"""The reader of trace formats that are declared as tables (:mod:`schedgym.traces.declaration`).

Text tables, Parquet files and pandas data frames are read in pieces, so that memory grows with the tasks
that are kept and not with the file. Every distinct text of a column is converted once a piece.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from schedgym.core.expression import Expression
from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.extras import require
from schedgym.traces.base import (
    LARGEST,
    MACHINE,
    MALFORMED,
    NO_EXECUTION,
    Column,
    JobTrace,
    LeftOut,
    Trace,
    check_limit,
    check_on_error,
    refuse_empty,
)
from schedgym.traces.declaration import (
    BYTES,
    CLOCK,
    CORES,
    DATE,
    JOBS,
    MEMORY,
    TASKS,
    TIMES,
    Field,
    TableFormat,
    TableLayout,
)
from schedgym.traces.pieces import Chunk, chunks

__all__ = ["parse_clock", "read_table"]

Floats = npt.NDArray[np.float64]
_T = TypeVar("_T")

MOST_TASKS = 10**6  # tasks that one row may stand for
MOST_EXPANDED = 10**7  # and that all rows may
DAY = 86400.0
#: texts that say whether a task may be interrupted
FLAGS = {
    **dict.fromkeys(("yes", "true", "1", "y", "t"), 1.0),
    **dict.fromkeys(("no", "false", "0", "n", "f"), 0.0),
}

WHOLE = ("tasks", "input", "shuffle", "output")
ABOVE = ("tasks", "value")  # 0
TEXTS = ("job", "site", "preemptible")
TIME_POINTS = ("submit", "start", "end", "deadline")

_CLOCK = re.compile(r"(?:(?:([0-9]{1,6})-)?([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,2}(?:\.[0-9]{1,9})?)")
_LETTERS = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) ?([KMGTPkmgtp]?)(?:i?B?)([A-Za-z]?)")
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*|[0-9]{8}(?:T.*)?")  # not the seconds of an epoch
_SIGNS = set("()*/+`")  # what tells an expression with a mistake from the name of a column
_POWERS = {letter: 1024.0**power for power, letter in enumerate("KMGTP", 1)}


# the columns of a declaration -----------------------------------------------------------------------------


class _Plan(NamedTuple):
    """The source of a quantity in one table: a column, or an expression."""

    quantity: str
    field: Field
    column: str
    expression: Expression | None


def _find(sources: Sequence[str], names: Sequence[str], path: Any, line: int, optional: bool) -> str | None:
    """The first of some columns that a table has; None if it has none and need not."""
    for source in sources:
        if names.count(source) > 1:
            times = names.count(source)
            raise TraceFormatError(path, line, source, f"column appears {times} times in the header")
        if source in names:
            return source
    if optional:
        return None
    raise TraceFormatError(path, line, " or ".join(sources), "missing column")


def _plan(quantity: str, field: Field, names: Sequence[str], path: Any, line: int) -> _Plan | None:
    sources = field.sources
    plain = field.unit in (DATE, CLOCK) or field.letters or quantity in TEXTS
    if len(sources) == 1 and sources[0] not in names and not plain:
        try:
            expression = Expression(sources[0])
        except InvalidParameter as error:
            if _SIGNS & set(sources[0]):
                reason = f"missing column, and {error}"
                raise TraceFormatError(path, line, sources[0], reason) from None
        else:
            for name in expression.names:
                if _find((name,), names, path, line, field.optional) is None:
                    return None
            return _Plan(quantity, field, sources[0], expression)
    column = _find(sources, names, path, line, field.optional)
    return None if column is None else _Plan(quantity, field, column, None)


@dataclasses.dataclass
class _Values:
    """The values of one quantity in a piece: numbers, empty fields, and what is wrong with others."""

    numbers: Floats
    empty: npt.NDArray[np.bool_]
    bad: dict[int, tuple[str, str]]  # place -> column, what is wrong


@dataclasses.dataclass
class _Verdict:
    """The reasons why rows are left out, "" for none, and for malformed rows the column and the error."""

    reason: npt.NDArray[np.object_]
    notes: dict[int, tuple[str, str]]

    def leave_out(self, where: npt.NDArray[np.bool_], why: str) -> None:
        """Leave rows out for a reason, unless they have one already."""
        self.reason[where & (self.reason == "")] = why

    def refuse(self, bad: Mapping[int, tuple[str, str]]) -> None:
        """Mark rows as malformed, unless they have a reason already."""
        for i, note in bad.items():
            if self.reason[i] == "":
                self.reason[i], self.notes[i] = MALFORMED, note


def _convert(texts: list[str], parse: Callable[[str], float], column: str) -> _Values:
    """The number of each text; every distinct text is parsed once."""
    known: dict[str, float] = {}
    wrong: dict[str, str] = {}
    for text in dict.fromkeys(texts):  # in their order, by which names are numbered
        try:
            known[text] = parse(text) if text else math.nan
        except ValueError as error:
            known[text], wrong[text] = math.nan, str(error)
    numbers = np.fromiter(map(known.__getitem__, texts), dtype=np.float64, count=len(texts))
    empty = np.fromiter((not text for text in texts), dtype=np.bool_, count=len(texts))
    bad = {i: (column, wrong[text]) for i, text in enumerate(texts) if text in wrong} if wrong else {}
    return _Values(numbers, empty, bad)


def parse_clock(text: str) -> float:
    """The seconds of a duration ``[days-][hours:]minutes:seconds``; ValueError says what is wrong."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise ValueError(f"must be [days-][hours:]minutes:seconds, got {text[:40]!r}")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _flag(text: str) -> float:
    """1 for yes, 0 for no; ValueError says what is wrong."""
    if text.lower() not in FLAGS:
        raise ValueError(f"must be yes or no, got {text[:40]!r}")
    return FLAGS[text.lower()]


def _scale(quantity: str, unit: str) -> tuple[float, float]:
    """Return the numbers by which a value in some unit is multiplied and divided."""
    units = {"cpus": CORES, "memory": MEMORY, "input": BYTES, "shuffle": BYTES, "output": BYTES}
    return units.get(quantity, TIMES).get(unit or _default(quantity), (1.0, 1.0))


def _default(quantity: str) -> str:
    return next(iter((*JOBS.get(quantity, ()), *TASKS.get(quantity, ()))), "")


# the reader -----------------------------------------------------------------------------------------------


class _Reader:
    """The columns of one table, read piece by piece.

    Args:
        source: file or data frame.
        layout: its declaration.
        on_error: "raise" or "skip".
        prefix: before the reasons for which rows are left out.
        exclusive: True if numbers must be above 0.
    """

    def __init__(
        self, source: Any, layout: TableLayout, on_error: str, prefix: str = "", exclusive: bool = False
    ) -> None:
        self.source, self.layout, self.on_error = source, layout, on_error
        self.prefix, self.exclusive = prefix, exclusive
        self.path = source if isinstance(source, str | Path) else "data frame"
        self.kept: dict[str, list[Floats]] = {}
        self.left: dict[tuple[str, str], list[Any]] = {}  # reason, column -> count, line, detail
        self.filled: Counter[str] = Counter()
        self.codes: dict[str, dict[str, int]] = {"job": {}, "site": {}}
        self.midnight: Any = None  # of the day of the first date
        self.plans: list[_Plan] | None = None

    def read(self, limit: int | None = None) -> dict[str, Floats]:
        """Quantity -> numbers, NaN where unknown; of the first ``limit`` tasks."""
        left = math.inf if limit is None else limit
        for piece in chunks(self.source, self.layout):
            if self.plans is None:
                self._prepare(piece)
            left -= self._take(piece, left)
            if left <= 0:
                break
        return {name: np.concatenate(parts) for name, parts in self.kept.items()}

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Why rows were left out."""
        return tuple(
            LeftOut(reason, count, line, column, detail)
            for (reason, column), (count, line, detail) in self.left.items()
        )

    @property
    def dropped(self) -> Counter[str]:
        """Why rows were left out -> how many."""
        found: Counter[str] = Counter()
        for one in self.left_out:
            found[one.reason] += one.count
        return found

    def _prepare(self, piece: Chunk) -> None:
        names = piece.names
        line = 1 if self.layout.names is None and isinstance(self.source, str | Path) else 0
        plans = (_plan(name, own, names, self.path, line) for name, own in self.layout.columns.items())
        self.plans = [plan for plan in plans if plan is not None]
        for own in self.layout.filters:
            _find((own.column,), names, self.path, line, own.optional)
        times = [
            (plan, self._unit(plan, piece) == DATE) for plan in self.plans if plan.quantity in TIME_POINTS
        ]
        for plan, date in times:
            if date != times[0][1]:
                raise TraceFormatError(
                    self.path,
                    line,
                    plan.column,
                    "either all of submit, start, end and deadline are dates, or none",
                )

    def _take(self, piece: Chunk, most: float) -> int:
        """Take in a piece, at most so many tasks of it; returns how many."""
        rows = _Verdict(np.full(len(piece.lines), "", dtype=object), {})
        rows.refuse({i: ("", what) for i, what in piece.faults.items()})
        for own in self.layout.filters:
            if own.column in piece.names:
                texts = piece.column(own.column)
                out = {text for text in set(texts) if own.holds(text)}
                rows.leave_out(np.array([text in out for text in texts], dtype=np.bool_), own.reason)
        values: dict[str, Floats] = {}
        for plan in self.plans or ():
            values[plan.quantity] = self._quantity(plan, piece, rows)
        if "submit" in values and self.layout.columns.keys() & {"duration", "end"}:
            if "duration" not in values:
                start = values.get("start", values["submit"])
                begun = np.where(np.isnan(start), values["submit"], start)
                values["duration"] = values.pop("end") - begun
            with np.errstate(invalid="ignore"):
                rows.leave_out(~(values["duration"] > 0), NO_EXECUTION)
        return self._keep(piece, values, rows, most)

    def _keep(self, piece: Chunk, values: dict[str, Floats], rows: _Verdict, most: float) -> int:
        """Keep the good rows, at most so many tasks of them; returns how many tasks."""
        reason = rows.reason
        good = reason == ""
        sizes = np.where(good, values["tasks"] if "tasks" in values else 1.0, 0.0)
        total = np.cumsum(sizes)
        end = len(reason) if not len(total) or total[-1] < most else int(np.argmax(total >= most)) + 1
        for i in np.flatnonzero(~good[:end]).tolist():
            column, detail = rows.notes.get(i, ("", ""))
            if reason[i] == MALFORMED and self.on_error == "raise":
                raise TraceFormatError(self.path, piece.lines[i], column, detail)
            entry = self.left.setdefault((self.prefix + reason[i], column), [0, piece.lines[i], detail])
            entry[0] += 1
        chosen = np.flatnonzero(good[:end])
        for name, numbers in values.items():
            field = self.layout.columns.get(name)
            taken = numbers[chosen]
            if field is not None and field.empty == "zero":
                if unknown := int(np.isnan(taken).sum()):
                    self.filled[f"{name} unknown"] += unknown
                    taken = np.nan_to_num(taken)
            self.kept.setdefault(name, []).append(taken)
        return int(total[end - 1]) if end else 0

    def _quantity(self, plan: _Plan, piece: Chunk, rows: _Verdict) -> Floats:
        """The numbers of a quantity; rows without a good one are marked."""
        field = plan.field
        found = self._values(plan, piece)
        rows.refuse(found.bad)
        if field.empty == "refuse" and found.empty.any():
            what = (plan.column, "is empty" if self._is_text(plan, piece) else "is empty, must be a number")
            rows.refuse({int(i): what for i in np.flatnonzero(found.empty)})
        elif field.empty == "leave out":
            rows.leave_out(found.empty, f"{plan.column} empty")
        return found.numbers

    def _is_text(self, plan: _Plan, piece: Chunk) -> bool:
        return self._unit(plan, piece) in (DATE, CLOCK) or plan.quantity in TEXTS

    @staticmethod
    def _unit(plan: _Plan, piece: Chunk) -> str:
        return piece.kinds.get(plan.column, plan.field.unit)

    def _texts(self, plan: _Plan, piece: Chunk, name: str) -> list[str]:
        texts = piece.column(name)
        if plan.field.unknown:
            stand = set(plan.field.unknown)
            texts = ["" if text in stand else text for text in texts]
        return texts

    def _values(self, plan: _Plan, piece: Chunk) -> _Values:
        quantity, field, column = plan.quantity, plan.field, plan.column
        if plan.expression is not None:
            return self._computed(plan, plan.expression, piece)
        texts, unit = self._texts(plan, piece, column), self._unit(plan, piece)
        if quantity in self.codes:
            codes = self.codes[quantity]
            if field.before:
                texts = [text.partition(field.before)[0] for text in texts]
            return _convert(texts, lambda text: float(codes.setdefault(text, len(codes))), column)
        if unit == DATE:
            return self._dates(texts, plan)
        if unit == CLOCK:
            return _convert(texts, self._with_point(parse_clock), column)
        if field.letters and quantity == "memory":
            return self._sizes(texts, plan, piece)
        if quantity == "preemptible":
            return _convert(texts, _flag, column)
        own = Column(
            column,
            unit or _default(quantity),
            exclusive=self.exclusive or quantity in ABOVE,
            whole=quantity in WHOLE,
            maximum=float(MOST_TASKS) if quantity == "tasks" else LARGEST,
        )
        if unit == "ns":
            own = dataclasses.replace(own, maximum=float(2**63))
        times, parts = _scale(quantity, unit)
        number = self._number(own)

        def parse(text: str) -> float:
            if field.letters and text.endswith("m") and text != "m":
                return number(text.removesuffix("m")) / 1e3
            return number(text) * times / parts

        return _convert(texts, parse, column)

    def _number(self, column: Column) -> Callable[[str], float]:
        """Return the function that reads a number of a column, with the decimal sign of the table."""
        return self._with_point(column.parse)

    def _with_point(self, parse: Callable[[str], _T]) -> Callable[[str], _T]:
        """The same function of a text, which it gets with a decimal point if the table has commas."""
        if self.layout.decimal == ".":
            return parse

        def parse_comma(text: str) -> _T:
            if "." in text:  # 1.234 is a thousand or a bit more than one
                raise ValueError(f"must be a number with a decimal comma, got {text[:40]!r}")
            return parse(text.replace(",", "."))

        return parse_comma

    def _computed(self, plan: _Plan, expression: Expression, piece: Chunk) -> _Values:
        count = len(piece.lines)
        operands: dict[str, Floats] = {}
        empty = np.zeros(count, dtype=np.bool_)
        bad: dict[int, tuple[str, str]] = {}
        for name in expression.names:
            if piece.kinds.get(name) == DATE:
                raise TraceFormatError(self.path, 0, name, "is a date, which no expression takes")
            own = Column(name, "", minimum=-LARGEST)
            found = _convert(self._texts(plan, piece, name), self._number(own), name)
            operands[name] = found.numbers
            empty |= found.empty
            bad = found.bad | bad
        numbers = np.broadcast_to(expression(operands), count).copy()
        times, parts = _scale(plan.quantity, plan.field.unit)
        whole, above = plan.quantity in WHOLE, self.exclusive or plan.quantity in ABOVE
        with np.errstate(all="ignore"):
            low = numbers <= 0 if above else numbers < 0
            beyond = numbers > (MOST_TASKS if plan.quantity == "tasks" else LARGEST)
            wrong = ~np.isfinite(numbers) | low | beyond | (whole & (numbers != np.floor(numbers)))
            numbers = numbers * times / parts
        for i in np.flatnonzero(wrong & ~empty).tolist():
            what = ("whole number" if whole else "number") + (" > 0" if above else " >= 0")
            bad.setdefault(i, (plan.column, f"must be a {what}, computed {numbers[i]:g}"))
        return _Values(numbers, empty, bad)

    def _dates(self, texts: list[str], plan: _Plan) -> _Values:
        """Seconds since midnight (UTC) of the first date's day."""
        pandas, form = require("pandas"), plan.field.format
        distinct = sorted(set(texts) - {""})
        asked = [text if form != "ISO8601" or _ISO.fullmatch(text) else None for text in distinct]
        try:
            stamps = pandas.to_datetime(
                pandas.Series(asked, dtype=object), utc=True, errors="coerce", format=form
            )
        except ValueError as error:  # a format that is none
            raise InvalidParameter(
                f"columns.{plan.quantity}: format: {' '.join(str(error).split())}"
            ) from None
        if self.midnight is None and stamps.notna().any():
            first = next(text for text in texts if text and not pandas.isna(stamps[distinct.index(text)]))
            self.midnight = stamps[distinct.index(first)].normalize()
        seconds = (stamps - self.midnight).dt.total_seconds() if self.midnight is not None else stamps
        known = dict(zip(distinct, seconds.tolist(), strict=True))

        def parse(text: str) -> float:
            value = known[text]
            if not isinstance(value, float) or math.isnan(value):
                what = "a date (ISO 8601)" if form == "ISO8601" else f"a date as {form}"
                raise ValueError(f"must be {what}, got {text[:40]!r}")
            return value

        return _convert(texts, parse, plan.column)

    def _sizes(self, texts: list[str], plan: _Plan, piece: Chunk) -> _Values:
        """Memory with letters: 16G, 4000Mn, 4Gc."""
        field = plan.field
        times, parts = _scale(plan.quantity, field.unit)
        further: dict[str, str] = {}
        match = self._with_point(_LETTERS.fullmatch)

        def parse(text: str) -> float:
            found = match(text)
            if found is None or (found[3] and found[3] not in field.times):
                raise ValueError(f"must be a number and a letter of its unit, got {text[:40]!r}")
            further[text] = found[3]
            size = _POWERS.get(found[2].upper())
            return float(found[1]) * times / parts if size is None else float(found[1]) * size / 2.0**30

        values = _convert(texts, parse, plan.column)
        for letter in set(further.values()) - {""}:
            source = field.times[letter]
            names = (source,) if isinstance(source, str) else source
            name = _find(names, piece.names, self.path, 0, True)
            where = [i for i, text in enumerate(texts) if further.get(text) == letter]
            if name is None:
                what = f"{texts[where[0]]!r} needs the column {' or '.join(names)}"
                values.bad.update({i: (plan.column, what) for i in where})
                continue
            factor = _convert(piece.column(name), self._number(Column(name, "")), name)
            values.numbers[where] *= factor.numbers[where]
            for i in where:
                if i in factor.bad or factor.empty[i]:
                    values.bad[i] = factor.bad.get(i, (name, "is empty, must be a number"))
        return values


def read_table(
    source: Any,
    declaration: TableFormat,
    nodes: Any = None,
    *,
    on_error: str = "raise",
    limit: int | None = None,
) -> Trace | JobTrace:
    """Read a table as its declaration says.

    A task's duration is given, or it is its end minus its recorded start, or minus its submission where no
    start is recorded; rows whose duration is not positive are left out and counted under "execution <= 0".
    Dates become seconds since midnight (UTC) of the first day. A row that stands for several tasks becomes so
    many, which form a job.

    Args:
        source: a text file (which may be packed by gzip, bzip2, xz or zip), a Parquet file (``.parquet``),
            or a pandas data frame.
        declaration: of its format.
        nodes: the file or data frame of machines; None leaves the trace without machines.
        on_error: "raise" stops at the first malformed row, "skip" leaves such rows out and counts them.
        limit: read only the first so many valid tasks (jobs); None reads all.

    Returns:
        a trace; its ``left_out`` says which rows were left out: reason, number, first line, column.

    Raises:
        TraceFormatError: when the file breaks its format (naming file, line, column and reason), or when no
            task, job or machine is left.
        InvalidParameter: when an argument is invalid, or ``nodes`` is given for a format without machines.
        FileNotFoundError: when there is no such file.
        gymnasium.error.DependencyNotInstalled: for dates, frames and Parquet files without their extra.
    """
    check_on_error(on_error)
    check_limit(limit)
    if nodes is not None and declaration.machines is None:
        raise InvalidParameter(f"nodes: the {declaration.name} format has no machines, got {str(nodes)!r}")
    reader = _Reader(source, declaration, on_error)
    columns = reader.read(limit)
    what = "job" if declaration.by_bytes else "task"
    refuse_empty(reader.path, what, columns.get("submit", ()), reader.dropped)
    files: tuple[Path, ...] = (Path(reader.path),) if isinstance(source, str | Path) else ()
    if declaration.by_bytes:
        return JobTrace(
            declaration.name,
            arrival=columns["submit"],
            gap=columns["gap"],
            input_bytes=columns["input"],
            shuffle_bytes=columns["shuffle"],
            output_bytes=columns["output"],
            dropped=reader.dropped,
            files=files,
            left_out=reader.left_out,
        )
    machines: dict[str, Any] = {}
    dropped, left_out = reader.dropped, reader.left_out
    if nodes is not None and declaration.machines is not None:
        other = _Reader(nodes, declaration.machines, on_error, MACHINE, exclusive=True)
        sizes = other.read()
        refuse_empty(other.path, "machine", sizes.get("cpus", ()), other.dropped)
        machines = {"machine_cores": sizes["cpus"], "machine_memory": sizes["memory"]}
        if "site" in sizes:
            machines["machine_site"] = sizes["site"]
        dropped, left_out = dropped + other.dropped, left_out + other.left_out
        files += (Path(nodes),) if isinstance(nodes, str | Path) else ()
    origin = _shift(columns, reader.midnight)
    sites: tuple[str, ...] = ()
    if "site" in columns:
        known = np.isfinite(columns["site"])
        used, places = np.unique(columns["site"][known], return_inverse=True)
        columns["site"][known] = places.astype(np.float64)
        sites = tuple(np.array(list(reader.codes["site"]), dtype=object)[used.astype(np.int64)].tolist())
        if "machine_site" in machines:
            sites = _join_sites(sites, machines, list(other.codes["site"]))
    if "tasks" in columns:
        columns = _expand(columns, limit, reader.path)
    empty = np.zeros(0)
    return Trace(
        declaration.name,
        arrival=columns["submit"],
        duration=columns["duration"],
        cores=columns.get("cpus", np.ones_like(columns["submit"])),
        memory=columns.get("memory", np.zeros_like(columns["submit"])),
        **machines,
        dropped=dropped,
        files=files,
        unit=declaration.unit,
        filled=reader.filled,
        job=columns.get("job", empty),
        start=columns.get("start", empty),
        deadline=columns.get("deadline", empty),
        site=columns.get("site", empty),
        sites=sites,
        value=columns.get("value", empty),
        preemptible=np.nan_to_num(columns.get("preemptible", empty)),
        origin=origin,
        left_out=left_out,
    )


def _join_sites(sites: tuple[str, ...], machines: dict[str, Any], names: list[str]) -> tuple[str, ...]:
    """The sites of tasks and, behind them, those that only machines have; machines' numbers become theirs."""
    joined = (*sites, *(name for name in names if name not in sites))
    places = np.array([joined.index(name) for name in names], dtype=np.float64)
    machines["machine_site"] = places[machines["machine_site"].astype(np.int64)]
    return joined


def _shift(columns: dict[str, Floats], midnight: Any) -> str:
    """Let the clock begin on the day of the first submission; returns when it is 0."""
    if midnight is None:
        return ""
    days = math.floor(float(columns["submit"].min()) / DAY)
    for name in TIME_POINTS:
        if name in columns:
            columns[name] = columns[name] - days * DAY
    origin = midnight + require("pandas").Timedelta(days=days)
    return str(origin.isoformat())


def _expand(columns: dict[str, Floats], limit: int | None, path: Any) -> dict[str, Floats]:
    """The tasks of rows that stand for several, each with the number of its job."""
    counts = columns.pop("tasks").astype(np.int64)
    if int(counts.sum()) > MOST_EXPANDED:
        raise TraceFormatError(
            path, 0, "", f"its rows stand for more than {MOST_EXPANDED} tasks: take a limit"
        )
    columns.setdefault("job", np.arange(len(counts), dtype=np.float64))
    return {name: np.repeat(values, counts)[:limit] for name, values in columns.items()}
