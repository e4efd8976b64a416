"""JSON files: their jobs one at a time, and as a table whose columns are named by the way to each value.

A file is a list of jobs, an object with such a list under one of a few names, "jobs" in Slurm's
``sacct --json`` and "items" in Kubernetes' ``kubectl get pods -o json``, or an object a line.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgym.errors import TraceFormatError
from schedgym.traces.texts import text_blocks

BLOCK = 1 << 20  # bytes that are read at once
LONGEST = 1 << 24  # characters of a job
MOST_NAMES = 2000  # of the values of all jobs
LISTS = ("jobs", "items", "records", "RECORDS", "data", "rows")  # names under which an object has its list
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

    Lists, objects with a list and single objects may follow one another, as in files that were joined.

    Raises:
        FileNotFoundError: when there is no such file.
        TraceFormatError: naming the number of the job at which the file is no JSON, or cut off.
    """
    text, lines, more = _Text(path), False, True
    while more:
        begin = text.peek()
        if begin == "[":
            yield from _listed(text)
        elif lines:  # an object a line: faster than member by member
            yield text.item()
        elif begin != "{":
            what = "more follows that is none" if text.number else "a list of jobs, or an object with one"
            raise TraceFormatError(path, text.number, "", f"must be JSON: {what}", JOB)
        elif (members := _members(text, True)) is not None:
            text.number, lines = text.number + 1, True
            yield text.number, members
        else:
            yield from _listed(text)
            _members(text, False)
        more = text.peek() != ""


def _listed(text: _Text) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The jobs of the list that begins here."""
    text.place += 1
    while text.peek() != "]":
        yield text.item()
    text.place += 1


def _members(text: _Text, first: bool) -> dict[str, Any] | None:
    """The members of the object that begins here; None before one that is a list of jobs.

    Not ``first``: the rest of them, behind that list; another is refused.
    """
    text.place += first
    found: dict[str, Any] = {}
    while text.peek() != "}":
        name = text.value()
        if not isinstance(name, str) or text.peek() != ":":
            raise text.refuse("not JSON: a name and a colon must stand before each value of an object")
        text.place += 1
        if text.peek() == "[" and name in LISTS:
            if first:
                return None
            raise text.refuse(f"has a second list of jobs, {name!r}")
        found[name] = text.value()
    text.place += 1
    return found


def json_rows(path: Path) -> tuple[Sequence[str], Iterator[tuple[int, Sequence[str]]]]:
    """The names of the columns of a JSON file, of all its jobs, and its rows."""
    stamp = path.stat()
    names = _names(path, stamp.st_mtime_ns, stamp.st_size)
    flat = ((number, flatten(item)) for number, item in json_items(path))
    return names, ((number, [own.get(name, "") for name in names]) for number, own in flat)


@functools.lru_cache(maxsize=8)
def _names(path: Path, changed: int, size: int) -> tuple[str, ...]:
    """The names of a file's columns, in their order; a file is read for them once, until it changes."""
    names: dict[str, None] = {}
    for number, item in json_items(path):
        names |= dict.fromkeys(flatten(item))
        if len(names) > MOST_NAMES:  # each row has a text for each
            raise TraceFormatError(path, number, "", f"there are more than {MOST_NAMES} names of values", JOB)
    return tuple(names)


def flatten(item: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Name -> text of the values of an object, those of objects in it as "outer.inner"; "" for null.

    Names and numbers in a list become one text, and of a list of resources as Slurm has it ("type" and
    "count") each is a value of its own, and of those with types, gpu:a100, the sum; other lists are left out.
    """
    found: dict[str, str] = {}
    for name, value in item.items():
        if isinstance(value, Mapping) and {"set", "number"} <= value.keys():  # of Slurm
            value = value["number"] if value["set"] else None
        if isinstance(value, list) and all(isinstance(one, Mapping) and "type" in one for one in value):
            own = {f"{one['type']}/{one.get('name') or ''}".rstrip("/"): one.get("count") for one in value}
            sums: Counter[str] = Counter()
            for kind, count in own.items():
                sums[kind.partition(":")[0]] += count if isinstance(count, int) else 0
            value = {**sums, **own}  # where the sum is there, too, it is not taken twice
        if isinstance(value, Mapping):
            found |= flatten(value, f"{before}{name}.")
        elif not isinstance(value, list):
            found[before + name] = "" if value is None else str(value)
        elif all(isinstance(one, str | int | float) for one in value):
            found[before + name] = ",".join(map(str, value))
    return found
