"""JSON files: their jobs one at a time, and as a table whose columns are named by the way to each value.

A file is a list of jobs, an object with such a list under one of a few names, "jobs" in Slurm's
``sacct --json`` and "items" in Kubernetes' ``kubectl get pods -o json``, or an object a line.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgym.errors import TraceFormatError
from schedgym.traces.texts import text_blocks

BLOCK = 1 << 20  # bytes that are read at once
LONGEST = 1 << 24  # characters of a job
LISTS = ("jobs", "items", "records", "RECORDS", "data", "rows")  # names under which an object has its list
SAMPLE = 200  # jobs whose values name the columns
JOB = "job"  # what is counted in place of lines

_BETWEEN = re.compile(r"[\s,]*")


class _Text:
    """A JSON text that is read in blocks; ``number`` counts the jobs that were taken from it."""

    def __init__(self, path: Path) -> None:
        self.path, self.blocks, self.decoder = path, text_blocks(path, BLOCK), json.JSONDecoder()
        self.text, self.place, self.number = "", 0, 0

    def refuse(self, reason: str) -> TraceFormatError:
        """The error at the job that is being read."""
        return TraceFormatError(self.path, self.number + 1, "", reason, JOB)

    def more(self) -> bool:
        """Read another block; False at the end."""
        block = next(self.blocks, None)
        self.text, self.place = self.text[self.place :] + (block or ""), 0
        return block is not None

    def peek(self) -> str:
        """The next character that is neither blank nor a comma; "" at the end."""
        while True:
            between = _BETWEEN.match(self.text, self.place)
            self.place = between.end() if between else self.place
            if self.place < len(self.text):
                return self.text[self.place]
            if not self.more():
                return ""

    def value(self) -> Any:
        """The value that begins here."""
        while True:
            try:
                value, end = self.decoder.raw_decode(self.text, self.place)
                ends = isinstance(value, dict | list | str) or end < len(self.text)
                reason = "" if ends else "not JSON: the file ends in a number"
            except RecursionError:
                raise self.refuse("is nested too deeply") from None
            except ValueError as error:
                reason = f"not JSON: {' '.join(str(error).split())[:200]}"
            if not reason:
                self.place = end
                return value
            if len(self.text) - self.place > LONGEST:
                raise self.refuse(f"is no job, or longer than {LONGEST} characters")
            if not self.more():  # else the value may go on in the next block
                raise self.refuse(reason if self.text.strip() else "the list is cut off")

    def item(self) -> tuple[int, Mapping[str, Any]]:
        """The number and the object of the job that begins here."""
        found = self.value()
        if not isinstance(found, Mapping):
            raise self.refuse("must be a mapping of names to values")
        self.number += 1
        return self.number, found


def json_items(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The number and the object of each job of a JSON file, in memory for one of them.

    Raises:
        FileNotFoundError: when there is no such file.
        TraceFormatError: naming the number of the job at which the file is no JSON, or cut off.
    """
    text = _Text(path)
    if text.peek() == "{":
        members = _members(text)
        if members is not None:  # an object a line
            text.number = 1
            yield 1, members
            while text.peek():
                yield text.item()
            return
    elif text.peek() != "[":
        raise TraceFormatError(path, 0, "", "must be JSON: a list of jobs, or an object with one")
    text.place += 1
    while text.peek() != "]":
        yield text.item()


def _members(text: _Text) -> dict[str, Any] | None:
    """The members of the object that begins here; None before the first that is a list of jobs."""
    text.place += 1
    found: dict[str, Any] = {}
    while text.peek() != "}":
        name = text.value()
        if not isinstance(name, str) or text.peek() != ":":
            raise text.refuse("not JSON: a name and a colon must stand before each value of an object")
        text.place += 1
        if text.peek() == "[" and name in LISTS:
            return None
        found[name] = text.value()
    text.place += 1
    return found


def json_rows(
    path: Path, later: Sequence[str] = ()
) -> tuple[Sequence[str], Iterator[tuple[int, Sequence[str]]]]:
    """The names of the columns of a JSON file, by its first jobs, and its rows.

    The first of the names ``later`` is that of a column, too, if the first jobs have none of them.
    """
    items = json_items(path)
    first = list(itertools.islice(items, SAMPLE))
    names = tuple(dict.fromkeys(name for _, item in first for name in flatten(item)))
    names += tuple(later[:1]) if set(later).isdisjoint(names) else ()
    flat = ((number, flatten(item)) for number, item in itertools.chain(first, items))
    return names, ((number, [own.get(name, "") for name in names]) for number, own in flat)


def flatten(item: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Name -> text of the values of an object, those of objects in it as "outer.inner"; "" for null.

    Names and numbers in a list become one text, and of a list of resources as Slurm has it ("type" and
    "count") each is a value of its own; other lists are left out.
    """
    found: dict[str, str] = {}
    for name, value in item.items():
        if isinstance(value, Mapping) and {"set", "number"} <= value.keys():  # of Slurm
            value = value["number"] if value["set"] else None
        if isinstance(value, list) and all(isinstance(one, Mapping) and "type" in one for one in value):
            value = {f"{one['type']}/{one.get('name') or ''}".rstrip("/"): one.get("count") for one in value}
        if isinstance(value, Mapping):
            found |= flatten(value, f"{before}{name}.")
        elif not isinstance(value, list):
            found[before + name] = "" if value is None else str(value)
        elif all(isinstance(one, str | int | float) for one in value):
            found[before + name] = ",".join(map(str, value))
    return found
