"""The one reader of tables: of formats that are declared (:mod:`schedgym.traces.declaration`), and of others.

Text tables, Parquet files, pandas data frames and what a module makes a table of are read in pieces, so that
memory grows with the tasks that are kept and not with the file. Every distinct text of a column is converted
once a piece.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from schedgym.core.arrays import Flags, Floats
from schedgym.core.expression import Expression
from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.extras import require
from schedgym.traces.base import (
    LARGEST,
    MACHINE,
    MALFORMED,
    NO_EXECUTION,
    OPTIONAL,
    RESOURCES,
    UNFINISHED,
    Column,
    Fault,
    JobTrace,
    LeftOut,
    Trace,
    check_reading,
    count_dropped,
    is_number,
    name_of,
    refuse_empty,
)
from schedgym.traces.declaration import (
    CLOCK,
    COMMON_MACHINES,
    DATE,
    JOBS,
    ONE,
    POINTS,
    TASKS,
    Field,
    Filter,
    TableFormat,
    TableLayout,
)
from schedgym.traces.pieces import Chunk, chunks

_T = TypeVar("_T")

MOST_TASKS = 10**6  # tasks that one row may stand for
MOST_EXPANDED = 10**7  # and that all rows may
MOST_MEMORY = 512.0  # of a machine [GiB per core]: more is in another unit
DAY = 86400.0
EPOCH, SINCE_EPOCH = "1970-01-01T00:00:00+00:00", 20 * 365 * DAY  # no log counts so long from its own begin
#: texts that say whether a task may be interrupted
FLAGS = {
    **dict.fromkeys(("yes", "true", "1", "y", "t"), 1.0),
    **dict.fromkeys(("no", "false", "0", "n", "f"), 0.0),
}

UNKNOWN_TIME = "-1"  # in logs of which others have times before the log
REPEATED = "repeated"  # as exports of periods that overlap repeat a job
NO_NUMBER = "is empty, must be a number"
FILLED = ("cpus", "memory")  # by 0, where they are not known
WHOLE = ("tasks", "nodes", "input", "shuffle", "output")
ABOVE = ("tasks", "value")  # 0
TEXTS = tuple(name for name, units in TASKS.items() if not units)

_CLOCK = re.compile(r"(?:(?:([0-9]{1,6})-)?([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,2}(?:\.[0-9]{1,9})?)")
_LETTERS = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) ?([KMGTPkmgtp]?)(i?)(B?)([A-Za-z]?)")
_EPOCH = re.compile(r"(1[0-9]{9}(?:[0-9]{3}){0,3})(?:\.[0-9]*)?")  # up to 2033: 2012121500 may be a date
_EPOCH_UNITS = {10: "s", 13: "ms", 16: "us", 19: "ns"}  # by the number of digits
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*|[0-9]{8}(?:T.*)?")  # not the seconds of an epoch
_ZONE = re.compile(r"[T :][0-9:.,]* ?(?:Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)$")  # of a date and time
_SIGNS = set("()*/+`")  # what tells an expression with a mistake from the name of a column
_POWERS = {letter: power for power, letter in enumerate("KMGTP", 1)}
MOST_STATES = 8  # that a note lists


# the columns of a declaration -----------------------------------------------------------------------------


class _Plan(NamedTuple):
    """The source of a quantity in one table: a column, or an expression; and the unit of its numbers."""

    quantity: str
    field: Field
    column: str
    unit: str
    expression: Expression | None = None


@dataclasses.dataclass
class _Values:
    """The values of one quantity in a piece: numbers, empty fields, and why other rows are malformed."""

    numbers: Floats
    empty: Flags
    bad: dict[int, Fault]  # at the place of the row


class Verdict:
    """The rows of a piece that are left out, each for the first reason that was found.

    Attributes:
        faults: place of a row -> the reason.
        good: False for these rows; [rows].
    """

    def __init__(self, faults: Mapping[int, Fault], rows: int) -> None:
        self.faults: dict[int, Fault] = {}
        self.good = np.ones(rows, dtype=np.bool_)
        self.refuse(faults)

    def leave_out(self, where: Flags, reason: str, column: str = "", detail: str = "") -> None:
        """Leave rows out for a reason."""
        self.refuse(dict.fromkeys(np.flatnonzero(where).tolist(), Fault(reason, column, detail)))

    def refuse(self, faults: Mapping[int, Fault]) -> None:
        """Leave out the rows at some places."""
        for i, fault in faults.items():
            self.faults.setdefault(i, fault)
            self.good[i] = False


def _convert(texts: list[str], parse: Callable[[str], float], column: str) -> _Values:
    """The number of each text; every distinct text is parsed once."""
    known: dict[str, float] = {}
    wrong: dict[str, Fault] = {}
    for text in dict.fromkeys(texts):  # in their order, by which names are numbered
        try:
            known[text] = parse(text) if text else math.nan
        except ValueError as error:
            known[text], wrong[text] = math.nan, Fault(MALFORMED, column, str(error))
    numbers = np.fromiter(map(known.__getitem__, texts), dtype=np.float64, count=len(texts))
    empty = np.fromiter((not text for text in texts), dtype=np.bool_, count=len(texts))
    bad = {i: wrong[text] for i, text in enumerate(texts) if text in wrong} if wrong else {}
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


# the reader -----------------------------------------------------------------------------------------------


class TableReader:
    """The columns of one table, read piece by piece.

    Args:
        source: of the table, as :func:`~schedgym.traces.pieces.chunks` takes it.
        layout: its declaration.
        on_error: "raise" stops at the first malformed row, "skip" leaves such rows out and counts them.
        pieces: of the table, where a module makes it; None: those of the source.
        numbers: further columns, each as it stands under its own name, NaN where it is unknown.
        derive: makes quantities from those of a piece, and leaves rows out; None: durations from ends.
        machines: True for a table of machines: quantities must be above 0, reasons begin with MACHINE.

    Attributes:
        path: of the source, or "data frame".
        line: number of the row that :meth:`rows` has returned last.
        unit: what it counts: "line", or "job" of a JSON file.
        filled: missing quantity, taken as 0 -> number of rows.

    Raises:
        InvalidParameter: when ``on_error`` is unknown.
        FileNotFoundError: (when rows are read) when there is no such file.
        TraceFormatError: (when rows are read) naming file, line, column and reason.
    """

    def __init__(
        self,
        source: Any,
        layout: TableLayout,
        on_error: str = "raise",
        *,
        pieces: Iterable[Chunk] | None = None,
        numbers: Sequence[Column] = (),
        derive: Callable[[dict[str, Floats], Verdict], dict[str, Floats]] | None = None,
        machines: bool = False,
    ) -> None:
        check_reading(on_error)
        self.source, self.layout, self.on_error = source, layout, on_error
        self.pieces = chunks(source, layout) if pieces is None else pieces
        self.numbers, self.derive = numbers, derive or _with_durations
        self.exclusive, self._prefix = machines, MACHINE if machines else ""
        self.path = name_of(source)
        self.line, self.unit = 0, "line"
        self.filled: Counter[str] = Counter()
        self.codes: dict[str, dict[str, int]] = {"job": {}, "site": {}}
        self.midnight: Any = None  # of the day of the first date
        self._zoned: bool | None = None  # whether dates have a time zone, as the first has it
        self._plans: list[_Plan] | None = None
        # reason, column -> count, line, detail, jobs, work, GPU work
        self._left: dict[tuple[str, str], list[Any]] = {}
        self._how: list[str] = []  # fields were told apart, and dates read
        self._seen: set[int] = set()  # hashes of what tells rows apart
        self._states: dict[str, tuple[Counter[str], Counter[str]]] = {}  # column -> those kept, and left out

    def read(self, what: str, limit: int | None = None) -> dict[str, Floats]:
        """Quantity -> numbers, NaN where unknown; of the first ``limit`` tasks. No ``what`` is an error."""
        check_reading(self.on_error, limit)
        kept: dict[str, list[Floats]] = {}
        left = math.inf if limit is None else limit
        for piece in self.pieces:
            values, rows = self._take(piece)
            values = self.derive(values, rows)
            left -= self._keep(kept, piece, values, rows, left)
            if left <= 0:
                break
        found = {name: np.concatenate(parts) for name, parts in kept.items()}
        refuse_empty(self.path, what, next(iter(found.values()), ()), self.dropped)
        self._check_lowest(found)
        return found

    def rows(self) -> Iterator[tuple[float, ...]]:
        """The rows that are not left out, one at a time: the numbers of ``numbers``."""
        for piece in self.pieces:
            values, rows = self._take(piece)
            table = zip(*(values[column.name].tolist() for column in self.numbers), strict=True)
            for i, (line, row) in enumerate(zip(piece.lines, table, strict=True)):
                self.line = line
                if i in rows.faults:
                    self.leave_out(*rows.faults[i])
                else:
                    yield row

    def leave_out(
        self,
        reason: str,
        column: str = "",
        detail: str = "",
        jobs: int = 1,
        work: float = math.nan,
        gpu_work: float = math.nan,
    ) -> None:
        """Count the row in ``line`` as left out, or raise TraceFormatError if it is malformed.

        The arguments are those of :class:`~schedgym.traces.base.LeftOut`, of one row.
        """
        if reason == MALFORMED and self.on_error == "raise":
            raise TraceFormatError(self.path, self.line, column, detail, self.unit)
        new = [0, self.line, detail, 0, math.nan, math.nan]
        entry = self._left.setdefault((self._prefix + reason, column), new)
        entry[0] += 1
        entry[3] += jobs
        for place, amount in ((4, work), (5, gpu_work)):
            if not math.isnan(amount):
                entry[place] = amount if math.isnan(entry[place]) else entry[place] + amount

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The rows that were left out."""
        return tuple(
            LeftOut(reason, count, line, column, detail, self.unit, *amounts)
            for (reason, column), (count, line, detail, *amounts) in self._left.items()
        )

    @property
    def dropped(self) -> Counter[str]:
        """Why rows were left out -> how many."""
        return count_dropped(self.left_out)

    @property
    def notes(self) -> tuple[str, ...]:
        """How the table was read, where that does not go without saying, a sentence each."""
        found = list(self._how)
        for column, counts in self._states.items():
            kept, out = (
                ", ".join(f"{text} {n}" for text, n in own.most_common(MOST_STATES)) for own in counts
            )
            found.append(f"{column}: kept {kept or 'none'}; left out as {UNFINISHED} {out or 'none'}")
        return tuple(found)

    def _check_lowest(self, found: Mapping[str, Floats]) -> None:
        """Raise TraceFormatError for a time that lies further below 0 than the log is long."""
        for name in (name for name in POINTS if name in found and self.midnight is None):
            times = found[name]
            lowest, late = int(np.argmin(np.nan_to_num(times))), times[times >= 0.0]
            value, first = float(times[lowest]), float(late.min()) if late.size else 0.0
            span = float(np.nanmax(found["submit"] + found.get("duration", 0.0))) - first
            if not (value < 0.0 and max(-value, first) > span):  # NaN where none is known
                continue
            own = (plan.column for plan in self._plans or () if plan.quantity == name)
            reason = f"must be >= 0, or from shortly before the log, which spans {span:g} s, got {value:g}"
            raise TraceFormatError(self.path, int(found["line"][lowest]), next(own, name), reason, self.unit)

    def _prepare(self, piece: Chunk) -> list[_Plan]:
        """The sources of the quantities in the table; raise TraceFormatError if it lacks a column."""
        self.unit, self._how = piece.unit, [piece.note] if piece.note else []
        found = (self._plan(name, own, piece) for name, own in self.layout.columns.items())
        plans = self._with_epochs([plan for plan in found if plan is not None], piece)
        for own in self.layout.filters:
            self._find(piece, own.columns, own.optional)
        for column in self.numbers:
            self._find(piece, (column.name,))
        times = [plan for plan in plans if plan.quantity in POINTS]
        for plan in times:
            if (plan.unit == DATE) != (times[0].unit == DATE):
                reason = "either all of submit, start, end and deadline are dates, or none"
                raise TraceFormatError(self.path, piece.header, plan.column, reason)
        return plans

    def _plan(self, quantity: str, field: Field, piece: Chunk) -> _Plan | None:
        sources = field.sources
        plain = field.unit in (DATE, CLOCK) or field.letters or quantity in TEXTS
        if len(sources) == 1 and not plain and self._find(piece, sources, True) is None:
            try:
                expression = Expression(sources[0])
            except InvalidParameter as error:
                if _SIGNS & set(sources[0]):
                    reason = f"missing column, and {error}"
                    raise TraceFormatError(self.path, piece.header, sources[0], reason) from None
            else:
                found = [self._find(piece, (name,), field.optional) for name in expression.names]
                return None if None in found else _Plan(quantity, field, sources[0], field.unit, expression)
        column = self._find(piece, sources, field.optional)
        if column is None:
            return None
        return _Plan(quantity, field, column, piece.kinds.get(column, field.unit))

    def _with_epochs(self, plans: list[_Plan], piece: Chunk) -> list[_Plan]:
        """The plans, those of dates and clock times as numbers where there are only numbers."""
        found = list(plans)
        points = [plan for plan in plans if plan.quantity in POINTS and plan.unit == DATE]
        texts = {text for plan in points for text in self._texts(plan, piece, plan.column) if text}
        digits = {len(epoch[1]) if (epoch := _EPOCH.fullmatch(text)) else 0 for text in texts}
        if len(digits) == 1 and (unit := _EPOCH_UNITS.get(digits.pop())):
            found = [plan._replace(unit=unit) if plan in points else plan for plan in found]
            names = ", ".join(plan.column for plan in points)
            self._how.append(f"{names}: numbers, read as {unit} since 1970")
        for i, plan in enumerate(found):
            if plan.unit == CLOCK:
                texts = {text for text in self._texts(plan, piece, plan.column) if text}
                if texts and all(is_number(text) for text in texts):
                    found[i] = plan._replace(unit="s")
        return found

    def _find(self, piece: Chunk, sources: Sequence[str], optional: bool = False) -> str | None:
        """The first of some columns that a table has; None if it has none and need not."""
        for source in sources:
            if (times := piece.names.count(source)) > 1:
                reason = f"column appears {times} times in the header"
                raise TraceFormatError(self.path, piece.header, source, reason)
            if times or source.partition(".")[0] in piece.names:
                return source
        if optional:
            return None
        raise TraceFormatError(self.path, piece.header, " or ".join(sources), "missing column")

    def _take(self, piece: Chunk) -> tuple[dict[str, Floats], Verdict]:
        """The quantities of a piece, and which of its rows are left out."""
        if self._plans is None:
            self._plans = self._prepare(piece)
        rows = Verdict(piece.faults, len(piece.lines))
        for own in self.layout.filters:
            if (name := self._find(piece, own.columns, True)) is not None:
                self._filter(own, name, piece, rows)
        values = {plan.quantity: self._quantity(plan, piece, rows) for plan in self._plans}
        for column in self.numbers:
            found = _convert(piece.column(column.name), column.parse, column.name)
            rows.refuse(found.bad)
            if not column.optional:
                rows.leave_out(found.empty, MALFORMED, column.name, NO_NUMBER)
            values[column.name] = found.numbers
        if names := [name for name in self.layout.once if self._find(piece, (name,), True) is not None]:
            keys = [hash(key) for key in zip(*map(piece.column, names), strict=True)]
            for i in np.flatnonzero(rows.good).tolist():
                if keys[i] in self._seen:
                    rows.refuse({i: Fault(REPEATED)})
                self._seen.add(keys[i])
        return values, rows

    def _filter(self, own: Filter, name: str, piece: Chunk, rows: Verdict) -> None:
        """Leave out the rows for which a condition holds; of states, count those of all rows."""
        texts = piece.column(name)
        out = {text for text in set(texts) if own.holds(text)}
        if own.contains and name in piece.widths:  # the part that is cut off may be the one that is asked for
            width = piece.widths[name]
            cut = {text for text in set(texts) - out if text.endswith("+") and len(text) == width}
            reason = f"is cut off at {width} characters: print the column wider, or with --parsable2"
            fault = Fault(MALFORMED, name, reason)
            rows.refuse({i: fault for i, text in enumerate(texts) if text in cut and rows.good[i]})
        if own.reason == UNFINISHED:
            kept, left = self._states.setdefault(name, (Counter(), Counter()))
            for text, good in zip(texts, rows.good.tolist(), strict=True):
                if good and text:  # "CANCELLED by 1000" is CANCELLED
                    (left if text in out else kept)[text.partition(" by ")[0]] += 1
        rows.leave_out(np.array([text in out for text in texts], dtype=np.bool_), own.reason)

    def _keep(
        self,
        kept: dict[str, list[Floats]],
        piece: Chunk,
        values: dict[str, Floats],
        rows: Verdict,
        most: float,
    ) -> int:
        """Keep the good rows, at most so many tasks of them; returns how many tasks."""
        good = rows.good
        each = values.get("tasks", np.ones(len(good)))
        # of rows that are left out, too
        lasted = each * np.maximum(values.get("duration", np.nan), 0.0)
        work = lasted * values.get("cpus", 1.0)
        gpu_work = lasted * np.nan_to_num(values["gpus"]) if "gpus" in values else np.full(len(good), np.nan)
        total = np.cumsum(np.where(good, each, 0.0))
        end = len(good) if not len(total) or total[-1] < most else int(np.argmax(total >= most)) + 1
        jobs = np.nan_to_num(each, nan=1.0).astype(np.int64).tolist()
        lost, gpus = work.tolist(), gpu_work.tolist()
        for i in np.flatnonzero(~good[:end]).tolist():
            self.line = piece.lines[i]
            self.leave_out(*rows.faults[i], jobs[i], lost[i], gpus[i])
        chosen = np.flatnonzero(good[:end])
        kept.setdefault("line", []).append(np.asarray(piece.lines, dtype=np.float64)[chosen])
        for name, numbers in values.items():
            taken = numbers[chosen]
            if name in FILLED and (unknown := int(np.isnan(taken).sum())):
                self.filled[f"{name} unknown"] += unknown
            if name in (*FILLED, "gpus"):
                taken = np.nan_to_num(taken)
            kept.setdefault(name, []).append(taken)
        return int(total[end - 1]) if end else 0

    def _quantity(self, plan: _Plan, piece: Chunk, rows: Verdict) -> Floats:
        """The numbers of a quantity; rows without a good one are left out."""
        outer = plan.column.partition(".")[0]
        packed = plan.expression is None and plan.column not in piece.names
        if packed and plan.quantity != "gpus":  # what never ran got no resources, and need not ask for GPUs
            none = np.array([not text for text in piece.column(outer)], dtype=np.bool_)
            rows.leave_out(none, f"{outer} empty")
        found = self._values(plan, piece)
        rows.refuse(found.bad)
        if plan.field.empty == "refuse":
            text = plan.unit in (DATE, CLOCK) or plan.quantity in TEXTS
            rows.leave_out(found.empty, MALFORMED, plan.column, "is empty" if text else NO_NUMBER)
        elif plan.field.empty == "leave out":
            rows.leave_out(found.empty, f"{plan.column} empty")
        return found.numbers

    def _texts(self, plan: _Plan, piece: Chunk, name: str) -> list[str]:
        texts = piece.column(name)
        if plan.field.unknown:
            stand = set(plan.field.unknown)
            texts = ["" if text in stand else text for text in texts]
        if plan.field.before:
            texts = [text.partition(plan.field.before)[0] for text in texts]
        return texts

    def _values(self, plan: _Plan, piece: Chunk) -> _Values:
        if plan.expression is not None:
            return self._computed(plan, plan.expression, piece)
        texts = self._texts(plan, piece, plan.column)
        if plan.field.letters and plan.quantity == "memory":
            return self._sizes(texts, plan, piece)
        return _convert(texts, self._parser(plan, texts), plan.column)

    def _parser(self, plan: _Plan, texts: Iterable[str]) -> Callable[[str], float]:
        """The function that makes a number of a text of some, and raises ValueError if that is wrong."""
        if plan.quantity in self.codes:
            codes = self.codes[plan.quantity]
            return lambda text: float(codes.setdefault(text, len(codes)))
        if plan.quantity == "preemptible":
            return _flag
        if plan.unit == DATE:
            return self._dates(texts, plan)
        if plan.unit == CLOCK:
            return self._with_point(parse_clock)
        own, times, parts = self._numbers(plan)
        number = self._with_point(own.parse)

        def parse(text: str) -> float:
            if plan.field.negative and text == UNKNOWN_TIME:
                raise ValueError(f"must be a time: if {text} stands for an unknown one, give --empty {text}")
            if plan.field.letters and text.endswith("m") and text != "m":
                return number(text.removesuffix("m")) / 1e3
            return number(text) * times / parts

        return parse

    def _numbers(self, plan: _Plan) -> tuple[Column, float, float]:
        """The numbers of a quantity as a column, and what multiplies and what divides them."""
        quantity = plan.quantity
        units = TASKS.get(quantity) or JOBS.get(quantity, {})
        unit = plan.unit or next(iter(units), "")
        own = Column(
            plan.column,
            unit,
            minimum=-LARGEST if plan.field.negative and quantity in POINTS else 0.0,
            maximum=float(MOST_TASKS if quantity == "tasks" else 2**63 if unit == "ns" else LARGEST),
            exclusive=(self.exclusive and quantity != "gpus") or quantity in ABOVE,
            whole=quantity in WHOLE,
        )
        return own, *units.get(unit, ONE)

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
        bad: dict[int, Fault] = {}
        for name in expression.names:
            if piece.kinds.get(name) == DATE:
                raise TraceFormatError(self.path, 0, name, "is a date, which no expression takes")
            own = Column(name, "", minimum=-LARGEST)
            found = _convert(self._texts(plan, piece, name), self._with_point(own.parse), name)
            operands[name] = found.numbers
            empty |= found.empty
            bad = found.bad | bad
        numbers = np.broadcast_to(expression(operands), count).copy()
        own, times, parts = self._numbers(plan)
        with np.errstate(all="ignore"):
            low = numbers <= own.minimum if own.exclusive else numbers < own.minimum
            beyond = numbers > own.maximum
            wrong = ~np.isfinite(numbers) | low | beyond | (own.whole & (numbers != np.floor(numbers)))
            numbers = numbers * times / parts
        for i in np.flatnonzero(wrong & ~empty).tolist():
            what = ("whole number" if own.whole else "number") + (" > 0" if own.exclusive else " >= 0")
            reason = f"must be a {what}, computed {numbers[i]:g}"
            bad.setdefault(i, Fault(MALFORMED, plan.column, reason))
        return _Values(numbers, empty, bad)

    def _dates(self, texts: Iterable[str], plan: _Plan) -> Callable[[str], float]:
        """The function that gives the seconds of a date since midnight (UTC) of the first date's day."""
        pandas, form = require("pandas"), plan.field.format
        distinct = [text for text in dict.fromkeys(texts) if text]
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
            self.midnight = stamps.dropna().iloc[0].normalize()
        seconds = (stamps - self.midnight).dt.total_seconds() if self.midnight is not None else stamps
        known = dict(zip(distinct, seconds.tolist(), strict=True))

        def parse(text: str) -> float:
            value = known[text]
            if not isinstance(value, float) or math.isnan(value):
                what = "a date (ISO 8601)" if form == "ISO8601" else f"a date as {form}"
                raise ValueError(f"must be {what}, got {text[:40]!r}")
            if self.layout.one_zone:
                zoned = _ZONE.search(text) is not None
                if self._zoned not in (None, zoned):
                    what = "a" if self._zoned else "no"
                    raise ValueError(f"must have {what} time zone, as dates before it, got {text[:40]!r}")
                self._zoned = zoned
            return value

        return parse

    def _sizes(self, texts: list[str], plan: _Plan, piece: Chunk) -> _Values:
        """Memory with letters: 16G, 4000Mn, 4Gc."""
        field = plan.field
        _, times, parts = self._numbers(plan)
        further: dict[str, str] = {}
        match = self._with_point(_LETTERS.fullmatch)

        def parse(text: str) -> float:
            found = match(text)
            if found is None or (found[5] and found[5] not in field.times):
                raise ValueError(f"must be a number and a letter of its unit, got {text[:40]!r}")
            further[text] = found[5]
            if not found[2]:
                return float(found[1]) / 2.0**30 if found[4] else float(found[1]) * times / parts
            thousand = 1000.0 if field.decimal and not found[3] else 1024.0
            return float(found[1]) * thousand ** _POWERS[found[2].upper()] / 2.0**30

        values = _convert(texts, parse, plan.column)
        for letter in set(further.values()) - {""}:
            names = Field(field.times[letter]).sources
            name = self._find(piece, names, True)
            where = [i for i, text in enumerate(texts) if further.get(text) == letter]
            if name is None:
                what = f"{texts[where[0]]!r} needs the column {' or '.join(names)}"
                values.bad.update(dict.fromkeys(where, Fault(MALFORMED, plan.column, what)))
                continue
            factor = _convert(piece.column(name), self._with_point(Column(name, "").parse), name)
            values.numbers[where] *= factor.numbers[where]
            empty = Fault(MALFORMED, name, NO_NUMBER)
            values.bad |= {i: factor.bad.get(i, empty) for i in where if i in factor.bad or factor.empty[i]}
        return values


def _with_durations(values: dict[str, Floats], rows: Verdict) -> dict[str, Floats]:
    """The quantities of tasks, durations from ends; rows whose duration is not positive are left out."""
    if "end" in values:
        start = values.get("start", values["submit"])
        begun = np.where(np.isnan(start), values["submit"], start)
        values["duration"] = values.pop("end") - begun
    if "duration" in values:
        with np.errstate(invalid="ignore"):
            rows.leave_out(~(values["duration"] > 0), NO_EXECUTION)
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

    The table is what :func:`~schedgym.traces.pieces.chunks` takes, and so may be that of machines, ``nodes``.
    Other arguments, the result and errors are those of :func:`~schedgym.traces.read_trace`.
    """
    reader = TableReader(source, declaration, on_error)
    if declaration.machines is None and nodes is not None:
        raise InvalidParameter(f"nodes: the {declaration.name} format has no machines, got {str(nodes)!r}")
    if not declaration.by_bytes:
        machines = declaration.machines or COMMON_MACHINES
        return read_tasks(reader, declaration.name, declaration.unit, nodes, machines, limit)
    columns = reader.read("job", limit)
    return JobTrace(
        declaration.name,
        arrival=columns["submit"],
        gap=columns["gap"],
        input_bytes=columns["input"],
        shuffle_bytes=columns["shuffle"],
        output_bytes=columns["output"],
        files=_files(source),
        left_out=reader.left_out,
        notes=reader.notes,
    )


def read_tasks(
    reader: TableReader,
    name: str,
    unit: str = "cores, GiB",
    nodes: Any = None,
    layout: TableLayout = COMMON_MACHINES,
    limit: int | None = None,
) -> Trace:
    """The tasks of a table, and the machines of another.

    Args:
        reader: of the table of tasks.
        name: of the format.
        unit: of the sizes of tasks and machines.
        nodes: the file or data frame of machines; None leaves the trace without machines.
        layout: of the table of machines.
        limit: read only the first so many valid tasks; None reads all.

    Raises:
        TraceFormatError: when a table breaks its format, or has no task or no machine.
    """
    columns = reader.read("task", limit)
    left_out = reader.left_out
    machines, other = read_machines(nodes, layout, reader.on_error)
    if other is not None:
        left_out += other.left_out
    origin = _shift(columns, reader.midnight)
    sites: tuple[str, ...] = ()
    if "site" in columns:
        known = np.isfinite(columns["site"])
        used, places = np.unique(columns["site"][known], return_inverse=True)
        columns["site"][known] = places.astype(np.float64)
        sites = tuple(np.array(list(reader.codes["site"]), dtype=object)[used.astype(np.int64)].tolist())
    if other is not None and "site" in columns and "machine_site" in machines:
        sites = _join_sites(sites, machines, list(other.codes["site"]))
    if "tasks" in columns:
        columns = _expand(columns, limit, reader.path)
    if "preemptible" in columns:
        columns["preemptible"] = np.nan_to_num(columns["preemptible"])
    none = np.zeros_like(columns["submit"])
    gpu = columns.get("gpus", none)
    return Trace(
        name,
        arrival=columns["submit"],
        duration=columns["duration"],
        cores=columns.get("cpus", none if gpu.any() else none + 1.0),
        memory=columns.get("memory", none),
        gpu=gpu,
        **machines,
        files=_files(reader.source) + _files(nodes),
        unit=unit,
        filled=reader.filled,
        **{name: columns[name] for name in OPTIONAL if name in columns},
        row=reader.unit,
        sites=sites,
        origin=origin,
        left_out=left_out,
        notes=reader.notes,
    )


def read_machines(
    nodes: Any, layout: TableLayout = COMMON_MACHINES, on_error: str = "raise"
) -> tuple[dict[str, Any], TableReader | None]:
    """The machines of a table, as arguments of a :class:`Trace`, and the reader of it; nothing of None."""
    if nodes is None:
        return {}, None
    reader = TableReader(nodes, layout, on_error, machines=True)
    sizes = reader.read("machine")
    none = np.zeros_like(sizes["line"])
    for i in np.flatnonzero(sizes.get("memory", none) > MOST_MEMORY * sizes.get("cpus", none + np.inf)):
        size = f"{sizes['memory'][i]:g} GiB beside {sizes['cpus'][i]:g} cores"
        reason = f"must be in GiB, or in a unit that its name says, as memory_mib: got {size}"
        raise TraceFormatError(reader.path, int(sizes["line"][i]), "memory", reason)
    machines = {f"machine_{name}": sizes.get(quantity, none) for name, quantity in RESOURCES.items()}
    if "site" in sizes:
        machines["machine_site"] = sizes["site"]
    return machines, reader


def _files(source: Any) -> tuple[Path, ...]:
    return (Path(source),) if isinstance(source, str | Path) else ()


def _join_sites(sites: tuple[str, ...], machines: dict[str, Any], names: list[str]) -> tuple[str, ...]:
    """The sites of tasks and, behind them, those that only machines have; machines' numbers become theirs."""
    joined = (*sites, *(name for name in names if name not in sites))
    places = np.array([joined.index(name) for name in names], dtype=np.float64)
    machines["machine_site"] = places[machines["machine_site"].astype(np.int64)]
    return joined


def _shift(columns: dict[str, Floats], midnight: Any) -> str:
    """Let the clock of dates begin on the day of the first submission; returns when a clock is 0."""
    if midnight is None:  # a number so large counts from 1970
        return EPOCH if float(columns["submit"].min()) > SINCE_EPOCH else ""
    days = math.floor(float(columns["submit"].min()) / DAY)
    for name in POINTS:
        if name in columns:
            columns[name] = columns[name] - days * DAY
    origin = midnight + require("pandas").Timedelta(days=days)
    return str(origin.isoformat())


def _expand(columns: dict[str, Floats], limit: int | None, path: Any) -> dict[str, Floats]:
    """The tasks of rows that stand for several, each with the number of its job."""
    counts = columns.pop("tasks").astype(np.int64)
    if int(counts.sum()) > MOST_EXPANDED:
        reason = f"its rows stand for more than {MOST_EXPANDED} tasks: take a limit"
        raise TraceFormatError(path, 0, "", reason)
    columns.setdefault("job", np.arange(len(counts), dtype=np.float64))
    return {name: np.repeat(values, counts)[:limit] for name, values in columns.items()}
