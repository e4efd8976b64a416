"""Tables in pieces of texts: text, JSON and Parquet files and data frames, the same to their reader."""

from __future__ import annotations

import functools
import io
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.extras import require
from schedgym.traces.base import MALFORMED, Fault, find_delimiter, split_fields
from schedgym.traces.declaration import DATE, TableLayout, find_reader
from schedgym.traces.nested import JOB, json_items, json_rows
from schedgym.traces.texts import (
    LONGEST_LINE,
    MOST_BYTES,
    MOST_LINES,
    check_size,
    is_json,
    open_trace,
    text_lines,
)

CHUNK = 2000  # rows
MOST_CELLS = 2_000_000  # of a piece of a Parquet file: one of many columns has fewer rows
BUFFER = 2**20  # bytes of a Parquet file that are read at once
SAMPLE = 200  # rows by which columns of fixed width are found

_RULE = re.compile(r"[-+|:= ]*---[-+|:= ]*")  # a line that parts the header from the rows
_NAME = re.compile(r"\S+(?: \S+)*")  # of a column, two blanks before the next one
#: several values in one field: cpu=4,gres/gpu=2 or {'cpus': 0.5}, and one in the latter
_PACKED = re.compile(r"\{.*:.*\}|[\w/:.-]+=[^,=]*(,[\w/:.-]+=[^,=]*)*")
#: GPUs of Slurm's GRES, with their type and number: gpu, gpu:2, gpu:a100:2(S:0,1)
_GRES = re.compile(r"(?:^|,)(gpu(?::[\w.-]*[A-Za-z][\w.-]*)?)(?::([0-9]+))?(?:\([^()]*\))?(?=,|$)")
_ITEM = re.compile(r"""['"]([^'"]+)['"]\s*:\s*['"]?([^,'"{}\[\]]*)""")
#: types of texts in a Parquet file
TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
#: whole numbers of a Parquet file stay such beside missing ones, and what was an index is a column
PLAIN = {"ignore_metadata": True, "integer_object_nulls": True}


#: the texts of a row, or why it is left out
Row: TypeAlias = Sequence[str] | Fault


class Chunk(NamedTuple):
    """Some rows of a table, as texts.

    Attributes:
        names: of all columns.
        lines: line (or row) number of each row.
        column: name -> the texts of a column; "" for what is missing.
        faults: place of a row that is none of the table -> why.
        kinds: name -> "date" or "s" of columns whose type says it, whatever the declaration says.
        header: number of the line that has the names, 0 if none has.
        unit: what ``lines`` counts: "line", or "job" of a JSON file.
        widths: name -> width of a column that cuts longer texts off and ends them in "+", as Slurm's do.
        note: a sentence on how the fields were told apart, where no sign does.
    """

    names: Sequence[str]
    lines: Sequence[int]
    column: Callable[[str], list[str]]
    faults: Mapping[int, Fault]
    kinds: Mapping[str, str]
    header: int = 0
    unit: str = "line"
    widths: Mapping[str, int] = {}
    note: str = ""


def chunks(source: Any, layout: TableLayout, rows: int = CHUNK) -> Iterator[Chunk]:
    """The pieces of a table, one at least.

    Args:
        source: a text or JSON file (which may be packed by gzip, bzip2, xz or zip), a Parquet file
            (``.parquet``), or a pandas data frame.
        layout: the layout of text files.
        rows: in a piece.

    Raises:
        FileNotFoundError: when there is no such file.
        TraceFormatError: when the rest cannot be read; the pieces before it have been returned.
    """
    for piece in _chunks(source, layout, rows):
        yield piece._replace(column=functools.partial(_texts, piece, frozenset(layout.empty)))


def _texts(piece: Chunk, empty: Collection[str], name: str) -> list[str]:
    """The texts of a column, or of one of the values that its fields hold: "AllocTRES.cpu"."""
    if name in piece.names:
        texts = piece.column(name)
    else:
        column, _, key = name.partition(".")
        packed = piece.column(column)
        known = {text: _value(text, key) for text in set(packed)}
        texts = [known[text] for text in packed]
    return ["" if text in empty else text for text in texts] if empty else texts


def _value(text: str, key: str) -> str:
    """One of the values of a field, "" for none; of GPUs that are counted by type only, their sum."""
    values = _unpack(text)
    types = [value for name, value in values.items() if name.startswith(f"{key}:")]
    if key in values or not all(value.isdecimal() for value in types):
        return values.get(key, "")
    return str(sum(map(int, types))) if types else ""


def _unpack(text: str) -> dict[str, str]:
    """Name -> value, of a field that holds several."""
    if text.startswith("{"):
        return {name: value.strip() for name, value in _ITEM.findall(text)}
    found: Counter[str] = Counter()
    for name, count in _GRES.findall(text):
        found[name] += int(count or 1)
    parts = (part.partition("=") for part in text.split(","))
    return {name: str(n) for name, n in found.items()} or {name: value for name, _, value in parts}


def packed_columns(piece: Chunk) -> list[str]:
    """The names of the values in columns whose fields hold several each, such as "AllocTRES.cpu"."""
    found: dict[str, None] = {}
    for column in dict.fromkeys(piece.names):
        texts = [text for text in piece.column(column) if text]
        name, gpus = column.lower(), list(map(_GRES.search, texts))  # a queue may be named gpu, too
        gres = any(gpus) if name.endswith("gres") else all(gpus) and name.endswith(("gpu", "gpus"))
        if texts and (gres or all(map(_PACKED.fullmatch, texts))):
            names = {name: None for text in texts for name in _unpack(text)}
            found |= dict.fromkeys(f"{column}.{own}" for name in names for own in (name.split(":")[0], name))
    return list(found)


def _chunks(source: Any, layout: TableLayout, rows: int) -> Iterator[Chunk]:
    if not isinstance(source, str | Path):
        yield from _frame_chunks(source, rows)
    elif is_parquet(source):
        yield from _parquet_chunks(Path(source), rows)
    elif layout.rows:
        reader, names = find_reader(layout.rows), layout.names or ()
        if hasattr(reader, "BEGINS"):  # a record a line
            lines = text_lines(Path(source), layout.comment.encode())
            yield from row_chunks(names, _rows(lines, reader.facts), rows)
        else:
            yield from row_chunks(names, _rows(json_items(Path(source)), reader.facts), rows, unit=JOB)
    elif layout.names is None and is_json(source):
        yield from row_chunks(*json_rows(Path(source)), rows, unit=JOB)
    else:
        yield from _text_chunks(Path(source), layout, rows)


def _rows(records: Iterator[tuple[int, Any]], row: Callable[[Any], Row]) -> Iterator[tuple[int, Row]]:
    """The number and row of each record, a line or an object in JSON, or why it is none."""
    for number, record in records:
        try:
            yield number, record if isinstance(record, Fault) else row(record)
        except ValueError as error:
            column, reason = ("", *error.args)[-2:]
            yield number, Fault(MALFORMED, column, reason)


def is_text(source: Any) -> bool:
    """Return True for a text table: a file that is neither Parquet nor JSON."""
    return isinstance(source, str | Path) and not is_parquet(source) and not is_json(source)


def is_parquet(source: str | Path) -> bool:
    """Return True for a Parquet file, by its name."""
    return Path(source).suffix.lower() in (".parquet", ".parq")


def column_names(source: Any, layout: TableLayout) -> tuple[str, ...]:
    """The names of a table's columns; arguments and errors are those of :func:`chunks`."""
    return tuple(next(chunks(source, layout, 1)).names)


def row_chunks(
    names: Sequence[str],
    rows: Iterator[tuple[int, Row]],
    size: int = CHUNK,
    **further: Any,
) -> Iterator[Chunk]:
    """The pieces of a table that comes row by row, one at least; where it breaks off, the rows before count.

    Args:
        names: of all columns.
        rows: line number, and the texts of a row or why it is left out.
        size: rows in a piece.
        **further: fields of the pieces.
    """
    more, first = True, True
    while more:
        lines: list[int] = []
        texts: list[Sequence[str]] = []
        faults: dict[int, Fault] = {}
        failure = None
        try:
            for line, row in itertools.islice(rows, size):
                if isinstance(row, Fault):
                    faults[len(lines)] = row
                    row = [""] * len(names)
                lines.append(line)
                texts.append(row)
        except TraceFormatError as error:
            failure = error
        if lines or first:
            yield Chunk(names, lines, _text_column(names, texts), faults, {}, **further)
        if failure is not None:
            raise failure
        more, first = len(lines) == size, False


def _text_column(names: Sequence[str], texts: list[Sequence[str]]) -> Callable[[str], list[str]]:
    def column(name: str) -> list[str]:
        place = names.index(name)
        return [row[place].strip(" ") for row in texts]

    return column


def _text_chunks(path: Path, layout: TableLayout, rows: int) -> Iterator[Chunk]:
    """The pieces of a text table.

    Files are UTF-8 text, lines end in LF or CR LF. Comments and blank lines are no rows. A quoted field ends
    on the line it starts on.
    """
    lines = text_lines(path, layout.comment.encode())
    if layout.names is not None:
        split = functools.partial(split_fields, delimiter=layout.delimiter)
        found = _rows(lines, functools.partial(_fields, split, layout.names))
        named = [*layout.names]  # a first line of names, though none are needed, is no row
        yield from row_chunks(layout.names, (own for own in found if own != (1, named)), rows)
        return
    number, header = next(lines, (0, Fault(MALFORMED, "", "is empty, must start with a header")))
    if isinstance(header, Fault):
        raise TraceFormatError(path, number, "", header.detail)
    sample = list(itertools.islice(lines, SAMPLE))
    texts = [text for _, text in sample if isinstance(text, str)]
    rule = texts[0] if texts and _RULE.fullmatch(texts[0]) else ""
    lines = itertools.chain(sample[bool(rule) :], lines)
    more: dict[str, Any] = {"header": number}
    delimiter = find_delimiter(header, layout.delimiter)
    spans, how = ([], "") if delimiter else _spans(header, rule, texts[bool(rule) :])
    if spans:
        split = functools.partial(_cut, spans)
        more["note"] = f"fields of fixed width, told apart by {how}"
    else:
        split = functools.partial(split_fields, delimiter=delimiter)
        more["note"] = "" if delimiter else "fields told apart by blanks"
    try:
        names = tuple(name.strip() for name in split(header))
    except ValueError as error:
        raise TraceFormatError(path, number, "", str(error)) from None
    if rule and spans:
        more["widths"] = {name: end - first for name, (first, end) in zip(names, spans, strict=True)}
    yield from row_chunks(names, _rows(lines, functools.partial(_fields, split, names)), rows, **more)


def _spans(header: str, rule: str, texts: Sequence[str]) -> tuple[list[tuple[int, int]], str]:
    """First place and end of each column of fixed width, and how they are known; none if there are none."""
    if rule:
        return [found.span() for found in re.finditer("-+", rule)], "the line of dashes"
    starts = [found.start() for found in _NAME.finditer(header)]
    if len(starts) > 1 and not any(text[first - 1 : first].strip() for text in texts for first in starts[1:]):
        return list(itertools.pairwise((*starts, LONGEST_LINE))), "the header"
    return [], ""


def _cut(spans: Sequence[tuple[int, int]], text: str) -> list[str]:
    """The fields of a line of fixed width; ValueError if one reaches into the next."""
    if any(text[first - 1 : first].strip() for first, _ in spans[1:]):
        raise ValueError("has a field that is wider than its column")
    return [text[first:end] for first, end in spans]


def _fields(split: Callable[[str], list[str]], names: Sequence[str], text: str) -> list[str]:
    """The fields of a line, as many as there are names; ValueError says what is wrong."""
    fields = split(text)
    if len(fields) != len(names):
        raise ValueError(f"expected {len(names)} columns, got {len(fields)}")
    return fields


def _frame_chunks(frame: Any, rows: int, before: int = 0) -> Iterator[Chunk]:
    pandas = require("pandas")
    if not isinstance(frame, pandas.DataFrame):
        raise InvalidParameter(f"trace: must be a file or a pandas data frame, got {type(frame).__name__}")
    names = [str(name) for name in frame.columns]
    types = pandas.api.types
    kinds: dict[str, str] = {}
    for name, kind in zip(names, frame.dtypes, strict=True):
        if types.is_datetime64_any_dtype(kind):
            kinds[name] = DATE
        elif types.is_timedelta64_dtype(kind):
            kinds[name] = "s"
    for first in range(0, max(len(frame), 1), rows):
        piece = frame.iloc[first : first + rows]
        lines = range(before + first + 1, before + first + 1 + len(piece))
        yield Chunk(names, lines, _frame_column(piece, names, kinds), {}, kinds)


def _frame_column(piece: Any, names: list[str], kinds: Mapping[str, str]) -> Callable[[str], list[str]]:
    def column(name: str) -> list[str]:
        values = piece.iloc[:, names.index(name)]
        if hasattr(values, "cat"):  # each text once
            known = [_text(value) for value in values.cat.categories.tolist()]
            return ["" if code < 0 else known[code] for code in values.cat.codes.tolist()]
        if kinds.get(name) == "s":
            values = values.dt.total_seconds()
        missing = values.isna().to_numpy()
        texts = [_text(value) for value in values.tolist()]
        return ["" if gone else text for gone, text in zip(missing.tolist(), texts, strict=True)]

    return column


def _text(value: Any) -> str:
    """A value of a data frame as a text file would have it."""
    if isinstance(value, str):
        return value.strip(" ")
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))  # pandas makes floats of whole numbers beside missing ones
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _parquet_chunks(path: Path, rows: int) -> Iterator[Chunk]:
    """The pieces of a Parquet file, within the limits of text files; lists and structures are left out.

    Texts stay in the dictionaries of the file until a piece asks for them, so that a short file with a text
    that is there a million times takes no more memory than the text.
    """
    arrow, parquet = require("pyarrow", "report"), require("pyarrow.parquet", "report")
    with open_trace(path) as stream:
        try:
            schema = parquet.read_schema(stream)
            nested, raw = arrow.types.is_nested, arrow.types.is_fixed_size_binary
            fields = [field for field in schema if not (nested(field.type) or raw(field.type))]
            flat = [field.name for field in fields]
            texts = [field.name for field in fields if str(field.type) in TEXTS]
            file = parquet.ParquetFile(stream, read_dictionary=texts, buffer_size=BUFFER)
            _check_size(file.metadata, path, stream)
            size, before = max(1, min(rows, MOST_CELLS // max(len(flat), 1))), 0
            for batch in file.iter_batches(batch_size=size, columns=flat):
                _check_texts(batch, path, before)
                frame = batch.to_pandas(**PLAIN)
                yield from _frame_chunks(frame, rows, before)
                before += len(frame)
            if not before:
                empty = file.schema_arrow.empty_table().select(flat)
                yield from _frame_chunks(empty.to_pandas(**PLAIN), rows)
        except (OSError, arrow.ArrowException) as error:  # a damaged file
            reason = " ".join(str(error).split())[:200]
            raise TraceFormatError(path, 0, "", f"not a readable Parquet file: {reason}") from None


def _check_size(metadata: Any, path: Path, stream: IO[bytes]) -> None:
    """Raise TraceFormatError for a Parquet file that is larger than a text file may be."""
    if metadata.num_rows > MOST_LINES:
        raise TraceFormatError(path, 0, "", f"the file has more than {MOST_LINES} rows")
    if metadata.num_rows * metadata.num_columns > MOST_BYTES // 2:  # a number and a comma each
        raise TraceFormatError(path, 0, "", f"the file has more than {MOST_BYTES // 2} numbers")
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    taken = sum(group.total_byte_size for group in groups)
    # a column of one value takes next to nothing: as text, each is a digit and a comma
    taken = max(taken, 2 * metadata.num_rows * metadata.num_columns)
    stream.seek(0, io.SEEK_END)
    check_size(path, 0, taken, stream)


def _check_texts(batch: Any, path: Path, before: int) -> None:
    """Raise TraceFormatError for texts that are longer than a line of a text file may be."""
    compute = require("pyarrow.compute", "report")
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if hasattr(column, "dictionary"):
            longest = compute.max(compute.binary_length(column.dictionary)).as_py() or 0
            if longest > LONGEST_LINE:
                reason = f"a text from this row on is longer than {LONGEST_LINE} bytes"
                raise TraceFormatError(path, before + 1, name, reason)
