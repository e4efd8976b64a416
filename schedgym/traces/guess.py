"""A declaration for a table of no known format: columns by their common names, units by names and values."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgym.documents import read_yaml
from schedgym.errors import InvalidParameter, TraceFormatError, UnknownName
from schedgym.traces.base import UNFINISHED, find_delimiter, is_number, name_of
from schedgym.traces.declaration import (
    CLOCK,
    CORES,
    DATE,
    GPUS,
    MACHINES,
    MEMORY,
    POINTS,
    TASKS,
    TIMES,
    UNKNOWN,
    Field,
    Filter,
    TableFormat,
    TableLayout,
    Units,
)
from schedgym.traces.pieces import Chunk, chunks, is_text, packed_columns
from schedgym.traces.table import FLAGS
from schedgym.traces.texts import first_line
from schedgym.traces.units import Guess, epoch_unit, hold_units

WORDS = Path(__file__).with_name("guess.yaml")
SAMPLE = 200  # rows that are looked at
MOST_LISTED = 50  # columns in a message

_GIVEN = re.compile(r",(?=\s*[A-Za-z_]+\s*=)")
_UNIT = re.compile(r"(.*?)\s*\[([^\[\]]+)\]")
#: a number, size or duration, whole or with a decimal comma, and one with a decimal point
_COMMA = re.compile(r"[-0-9:]*(?:[0-9]|,([0-9]+)) ?[A-Za-z]*")
_POINT = re.compile(r"[-0-9:]*\.[0-9]+ ?[A-Za-z]*")
_THOUSANDS = re.compile(r"0|[1-9][0-9]{0,2}(\.[0-9]{3})*")
_MILLI = re.compile(r"[0-9.]+m")
_BINARY = re.compile(r"[0-9.]+[KMGTPE]i")
_LETTERED = re.compile(r"[0-9.]+ ?[KMGTPkmgtp](i?B?)")
_DATED = re.compile(r"[0-9]{1,4}[-/.T][0-9].*")
_COMPACT = re.compile(r"(19|20)[0-9]{2}(0[1-9]|1[0-2])([0-2][0-9]|3[01])([01][0-9]|2[0-3])([0-5][0-9]){2}")
_CLOCKED = re.compile(r"([0-9]+-)?([0-9]+:)?[0-9]+:[0-9]{1,2}(\.[0-9]+)?")


@functools.cache
def _words() -> dict[str, Any]:
    """The names, texts and forms of guess.yaml, which says what they are."""
    return dict(read_yaml(WORDS))


@functools.cache
def _suffixes() -> dict[str, dict[str, str]]:
    """Quantity ("time" of several) -> last part of a name -> the unit that it says."""
    found = _words()["suffixes"]
    return {name: {text: unit for unit in units for text in units[unit]} for name, units in found.items()}


def guess_format(
    source: Any,
    given: Mapping[str, str] | str | None = None,
    where: Mapping[str, Sequence[str]] | None = None,
    empty: Sequence[str] = (),
) -> Guess:
    """Declare a table of tasks: the columns that are given, and for the rest those with common names.

    Rows whose state, status or phase says that they have not finished are left out and counted, unless
    ``where`` names that column; so are rows without a submission, duration, end, cpus or memory, and where
    durations follow from ends, also rows without a start, if there is such a column: a job that was cancelled
    in the queue has an end, but did not run. A row without gpus asks for none. A duration takes the place of
    an end. NaN, None, NULL, N/A, Unknown, <none>, - and the like stand for an empty field. Guesses from names
    and values can be wrong: check them with :func:`describe_columns`.

    Args:
        source: a text file, a Parquet file, or a pandas data frame.
        given: quantity -> column, or arithmetic expression over columns, with its unit behind it in brackets
            where it is not the usual one, e.g. {"submit": "ts [ms]", "duration": "0.02 * tokens"}; or the
            same as one text, "submit=ts [ms],duration=0.02*tokens".
        where: column -> the texts that rows must have in it; others are left out.
        empty: further texts that stand for an empty field.

    Raises:
        UnknownName: for an unknown quantity.
        InvalidParameter: for a unit that a quantity does not have.
        TraceFormatError: when no column is one of submissions or durations: names the columns that there are.
        FileNotFoundError: when there is no such file.
    """
    asked = parse_columns(given)
    layout, piece, columns = _sampled(source, _words()["names"], asked, TASKS, empty)
    _check_header(piece, name_of(source), asked)
    for name, what in (("submit", "submit"), ("duration", "duration (or end)")):
        if name not in columns and not (name == "duration" and "end" in columns):
            listed = ", ".join((*piece.names[:MOST_LISTED], *("..." for _ in piece.names[MOST_LISTED:][:1])))
            reason = f"no column is known for {what}: name one of {listed}"
            raise TraceFormatError(name_of(source), piece.header, "", reason)
    if "end" in asked and "duration" not in asked:
        columns.pop("duration", None)
    insisted = _UNIT.fullmatch(asked.get("duration", "")) is not None
    columns, more = hold_units(columns, piece, layout, source, insisted)
    if "duration" in columns:
        columns.pop("end", None)
    return Guess(
        name=Path(source).stem if isinstance(source, str | Path) else "data frame",
        columns=_with_gaps(columns, columns),
        delimiter=layout.delimiter,
        filters=(*_filters(where), *_implied(piece, where or ())),
        decimal=layout.decimal,
        empty=layout.empty,
        one_zone=True,
        **more,
    )


def _check_header(piece: Chunk, path: str | Path, asked: Collection[str]) -> None:
    """Raise TraceFormatError for what programs print that is no table, and for a first line without names."""
    for begin, what, instead in _words()["refused"]:
        if piece.header and " ".join(piece.names).startswith(begin):
            raise TraceFormatError(path, piece.header, "", f"is {what}: give {instead}")
    values = [name for name in piece.names if is_number(name) or _DATED.fullmatch(name)]
    if piece.header and len(values) > 1 and not asked:
        reason = f"must be a line of names, got {', '.join(values)[:80]!r}"
        raise TraceFormatError(path, piece.header, "", reason)


def amend_format(
    format: TableFormat,
    source: Any,
    given: Mapping[str, str] | str | None = None,
    where: Mapping[str, Sequence[str]] | None = None,
    empty: Sequence[str] = (),
) -> TableFormat:
    """A declared format with some columns replaced, and further filters behind its own.

    Arguments and errors are those of :func:`guess_format`; a duration that is given takes the place of an
    end, and an end that of a duration.
    """
    asked = parse_columns(given)
    columns = dict(format.columns)
    format = dataclasses.replace(format, empty=(*format.empty, *empty))
    if asked:
        piece = next(chunks(source, format, SAMPLE))
        own = _columns(_with_points(piece) if format.decimal == "," else piece, {}, asked, TASKS)
        for name, other in (("duration", "end"), ("end", "duration")):
            if name in own and other not in own:
                columns.pop(other, None)
        columns |= own
        columns = _with_gaps(columns, own)
    return dataclasses.replace(format, columns=columns, filters=(*format.filters, *_filters(where)))


def _with_gaps(columns: Mapping[str, Field], guessed: Collection[str]) -> dict[str, Field]:
    """The fields of a table's quantities, those that are guessed with what it means that they are empty."""
    found = dict(columns)
    missing = tuple(_words()["missing"])
    for name in guessed:
        unknown = name in UNKNOWN and (name != "start" or "end" not in columns)
        empty = "unknown" if unknown else "zero" if name == "gpus" else "leave out"
        texts = tuple(text for text in missing if (name, text) != ("site", "NA"))  # North America
        found[name] = dataclasses.replace(columns[name], empty=empty, unknown=texts)
    if "end" in guessed and "start" in columns:
        found["start"] = dataclasses.replace(found["start"], empty="leave out")
    return found


def _filters(where: Mapping[str, Sequence[str]] | None) -> tuple[Filter, ...]:
    found = []
    for column, texts in (where or {}).items():
        several = isinstance(texts, Sequence) and not isinstance(texts, str)
        if not several or not texts or not all(isinstance(text, str) for text in texts):
            raise InvalidParameter(f"where: {column}: must be a list of texts, got {texts!r}")
        found.append(Filter(column, f"{column} is another", other_than=tuple(texts)))
    return tuple(found)


def _implied(piece: Chunk, given: Collection[str]) -> tuple[Filter, ...]:
    """The filters of Slurm's job steps, and of jobs that have not finished, by columns that are not given."""
    words = _words()["states"]
    forms = (str, str.upper, str.capitalize, str.title)
    begins = tuple(dict.fromkeys(form(text) for text in words["unfinished"] for form in forms))
    found = []
    for column in dict.fromkeys(piece.names):
        texts = set(_known_texts(piece, column))
        if any(text.endswith(tuple(words["steps"])) for text in texts):
            found.append(Filter(column, "job step", contains=(".",)))
        if column in given or not texts or _plain(column).split("_")[-1] not in words["names"]:
            continue
        if texts <= {*words["letters"], *words["unfinished letters"]}:
            found.append(Filter(column, UNFINISHED, equals=tuple(words["unfinished letters"])))
        else:
            found.append(Filter(column, UNFINISHED, begins=begins))
    return tuple(found)


def guess_machines(source: Any) -> TableLayout:
    """Declare a table of machines, as :func:`guess_format` does; it needs columns of cpus and memory."""
    names = {name: _words()["names"][name] for name in MACHINES}
    layout, piece, columns = _sampled(source, names, {}, MACHINES)
    for name in ("cpus", "memory"):
        if name not in columns:
            reason = f"no column is known for {name}: there are {', '.join(piece.names)}"
            raise TraceFormatError(name_of(source), 1, "", reason)
    for name in piece.names:
        if _plain(name) in _words()["counts"] and set(filter(is_number, _known_texts(piece, name))) - {"1"}:
            reason = "a row is one machine: write as many rows as there are"
            raise TraceFormatError(name_of(source), piece.header, name, reason)
    return dataclasses.replace(layout, columns=_with_gaps(columns, {"gpus"} & columns.keys()))


def describe_columns(format: TableLayout) -> str:
    """Return one line on the columns and units of the quantities."""
    parts = []
    for name, field in format.columns.items():
        unit = field.unit or next(iter(TASKS.get(name, ())), "")
        unit += f" as {field.format}" if unit == DATE and field.format != "ISO8601" else ""
        parts.append(f"{name} = {' or '.join(field.sources)}" + (f" [{unit}]" if unit else ""))
    return ", ".join(parts)


def _sampled(
    source: Any,
    names: Mapping[str, Sequence[str]],
    asked: Mapping[str, str],
    units: Mapping[str, Units],
    empty: Sequence[str] = (),
) -> tuple[TableLayout, Chunk, dict[str, Field]]:
    """The layout of a table, without columns, its first rows, and what :func:`_columns` finds in them."""
    delimiter = find_delimiter(first_line(source)) if is_text(source) else ","
    layout = TableLayout(columns={}, delimiter=delimiter, empty=tuple(empty))
    piece = next(chunks(source, layout, SAMPLE))
    piece = piece._replace(names=(*piece.names, *packed_columns(piece)))
    if layout.delimiter != ",":
        found = _columns(_with_points(piece), names, asked, units)
        numbers = [own for quantity, own in found.items() if TASKS[quantity] and own.unit != DATE]
        columns = {name for own in numbers for name in own.reads(piece.names) or ()}
        for name in columns:
            texts = _known_texts(piece, name)
            points = [text for text in texts if "." in text]
            if 2 < len(points) < len(texts) and all(map(_THOUSANDS.fullmatch, texts)):
                reason = f"{points[0]} may be {points[0].replace('.', '')}: write thousands without points"
                raise TraceFormatError(name_of(source), piece.header, name, reason)
        if _has_commas(piece, columns):
            return dataclasses.replace(layout, decimal=","), piece, found
    return layout, piece, _columns(piece, names, asked, units)


def _with_points(piece: Chunk) -> Chunk:
    """The rows, decimal commas replaced by points."""

    def column(name: str) -> list[str]:
        texts = piece.column(name)
        return [text.replace(",", ".") if _COMMA.fullmatch(text) else text for text in texts]

    return piece._replace(column=column)


def _has_commas(piece: Chunk, names: Collection[str]) -> bool:
    """Return True if numbers of some columns have a decimal comma; 1,234 may also mean 1234."""
    columns = [_known_texts(piece, name) for name in names]
    if any(_POINT.fullmatch(text) for texts in columns for text in texts):
        return False
    for texts in columns:
        found = [_COMMA.fullmatch(text) for text in texts]
        if all(found) and any(one and one[1] and len(one[1]) != 3 for one in found):
            return True
    return False


def parse_columns(given: Mapping[str, str] | str | None) -> dict[str, str]:
    """Quantity -> source, of a text "submit=a,duration=b" too."""
    if not given:
        return {}
    if not isinstance(given, str):
        return {str(name): str(source) for name, source in given.items()}
    found: dict[str, str] = {}
    for part in _GIVEN.split(given):
        name, equals, source = (text.strip() for text in part.partition("="))
        if not equals or not name or not source:
            raise InvalidParameter(f"columns: must be QUANTITY=COLUMN,..., got {part!r}")
        if name in found:
            raise InvalidParameter(f"columns: {name} is given twice")
        found[name] = source
    return found


def _columns(
    piece: Chunk,
    names: Mapping[str, Sequence[str]],
    asked: Mapping[str, str],
    units: Mapping[str, Units],
) -> dict[str, Field]:
    """Quantity -> field, of those that are asked for or found."""
    found: dict[str, Field] = {}
    for quantity, source in asked.items():
        if quantity not in units:
            raise UnknownName("quantity", quantity, units)
        unit = ""
        if source not in piece.names and (split := _UNIT.fullmatch(source)):
            source, unit = split[1], split[2]
            if unit not in units[quantity]:
                allowed = ", ".join(units[quantity])
                raise InvalidParameter(f"columns: {quantity}: its unit is one of {allowed}, got {unit!r}")
        found[quantity] = _field(quantity, source, piece, unit)
    taken = {name for field in found.values() for name in field.sources}
    # of a value in a field of several, "AllocTRES.cpu", its own name counts; "nvidia.com/gpu" is a whole one
    free = [name for name in piece.names if name not in taken]
    plain = [(_plain(part), name) for name in free for part in (name, name.rpartition(".")[2])]
    for quantity, known in names.items():
        if quantity in found:
            continue
        texts = {text.replace("_", ""): name for text, name in reversed(plain)}
        stems = {_stem(quantity, text)[0].replace("_", ""): name for text, name in reversed(plain)}
        matches = [texts.get(common) or stems.get(common) for common in (t.replace("_", "") for t in known)]
        there = [match for match in matches if match is not None]
        good = [match for match in there if _plausible(quantity, match, piece, found)]
        # jobs whose GPUs are told in words must not run without: who reads these refuses them
        if good or (there and quantity == "gpus" and units is TASKS):
            found[quantity] = _field(quantity, (good or there)[0], piece)
    return _with_forms(_with_submit_s_unit(found, piece), piece)


def _plausible(quantity: str, column: str, piece: Chunk, found: Collection[str]) -> bool:
    """Return True if most values of a column of a common name are plausible: "value" may mean something else.

    The others are refused when they are read.
    """
    known = _known_texts(piece, column)
    if quantity == "preemptible":
        good = [text.lower() in FLAGS for text in known]
    elif quantity in ("nodes", "gpus"):
        good = [is_number(text) for text in known]  # not their names
    elif quantity in ("value", "tasks"):
        good = [is_number(text) and float(text) > 0 for text in known]
    else:
        return True
    if not known or (quantity == "value" and "deadline" not in found):
        return not known and quantity in ("preemptible", "gpus")
    return sum(good) > len(good) / 2


def _with_submit_s_unit(found: dict[str, Field], piece: Chunk) -> dict[str, Field]:
    """The fields, where those of points in time whose values do not say their unit have that of submit."""
    submit = found.get("submit")
    if submit is None or submit.sources[0] not in piece.names:
        return found
    for name in POINTS[1:]:
        field = found.get(name)
        if field is None or field.unit or field.sources[0] not in piece.names:
            continue
        if not (texts := _known_texts(piece, field.sources[0])) or (
            submit.unit in TIMES and all(map(is_number, texts))
        ):
            found[name] = dataclasses.replace(field, unit=submit.unit)
    return found


def _with_forms(found: dict[str, Field], piece: Chunk) -> dict[str, Field]:
    """The fields, dates that are not ISO 8601 in the one form that all of them have; none if several fit."""
    dates = [name for name in POINTS if name in found and found[name].unit == DATE]
    dates = [name for name in dates if found[name].sources[0] not in piece.kinds]
    texts = {text for name in dates for text in _known_texts(piece, found[name].sources[0])}
    forms = [form for form in _words()["dates"] if texts and all(_is_date(text, form) for text in texts)]
    if len(forms) == 1:
        found |= {name: dataclasses.replace(found[name], format=forms[0]) for name in dates}
    return found


def _known_texts(piece: Chunk, column: str) -> list[str]:
    """The texts of a column that are not empty and do not stand for an empty one."""
    return [text for text in piece.column(column) if text and text not in _words()["missing"]]


def _plain(name: str) -> str:
    """A name in small letters, its words joined by "_"."""
    words = re.sub(r"(?<=[a-z0-9])(?<![KMGTP]i)(?=[A-Z])", "_", name.strip())  # MiB is one word
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")


def _stem(quantity: str, name: str) -> tuple[str, str]:
    """A name without the unit at its end, and the unit."""
    units = _suffixes().get("time" if quantity in (*POINTS, "duration") else quantity, {})
    stem, _, last = name.rpartition("_")
    return (stem, units[last]) if stem and last in units else (name, "")


def _is_date(text: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(text, form)
    except ValueError:
        return False
    return True


def _field(quantity: str, source: str, piece: Chunk, unit: str = "") -> Field:
    """The field of a quantity: the unit that is given, that the values show, or that the name says."""
    if unit or source not in piece.names or quantity not in (*POINTS, "duration", *MACHINES):
        return Field(source, unit)
    if source in piece.kinds:
        return Field(source, piece.kinds[source])
    texts = _known_texts(piece, source)
    unit = _stem(quantity, _plain(source))[1]
    numbers = [float(text) for text in texts if is_number(text)]
    if quantity == "memory" and any(_LETTERED.fullmatch(text) for text in texts):
        decimal = _is_kubernetes(piece)
        return Field(source, unit or ("B" if decimal else ""), letters=True, decimal=decimal)
    if quantity == "cpus" and any(_MILLI.fullmatch(text) for text in texts):
        return Field(source, unit if unit in CORES else "", letters=True)
    if quantity == "duration" and any(_CLOCKED.fullmatch(text) for text in texts):
        return Field(source, CLOCK)
    if quantity in POINTS and texts and all(_COMPACT.fullmatch(text) for text in texts):
        return Field(source, DATE)
    dates = [text for text in texts if _DATED.fullmatch(text) and not is_number(text)]
    if quantity in POINTS and len(dates) > sum(number > 0 for number in numbers):  # 0 and -1 may be unknown
        return Field(source, DATE)
    if quantity in POINTS and not unit and numbers:
        unit = epoch_unit(numbers)
    unit = unit if unit in (*TIMES, *CORES, *MEMORY, *GPUS) else ""
    return Field(source, unit, negative=quantity in POINTS)


def _is_kubernetes(piece: Chunk) -> bool:
    """Return True if a table has a column of Kubernetes' name, or a quantity of its form: 64Mi or 500m."""
    if not set(_words()["kubernetes"]).isdisjoint(piece.names):
        return True
    columns = {name: _known_texts(piece, name) for name in piece.names}
    return any(
        _BINARY.fullmatch(text) or (_MILLI.fullmatch(text) and "cpu" in name.lower())
        for name, texts in columns.items()
        for text in texts
    )
