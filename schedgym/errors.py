"""The exceptions of schedgym: each message is one line that says what is wrong, and where.

Also the functions that make a text or a name of a stranger safe to show, in messages and everywhere else.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

LONGEST = 1000  # characters of a message
MOST = 12  # names that a message lists where a command lists them, too
#: kind of name -> the command that lists all of its names
_LISTED = dict.fromkeys(("policy", "environment id, problem or policy"), "schedgym list")
#: what a terminal may obey, or what makes a text look like another: control characters but for the ends of
#: lines, and those that change the direction of writing; and what no file of XML may contain
CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def printable(text: str) -> str:
    r"""A text with an escape, such as \x1b, for every character that a terminal may obey."""
    return CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def one_line(name: str) -> str:
    """A name as it is shown: :func:`printable`, and in one line."""
    return printable(name).replace("\n", "\\n")


def shorten(text: str) -> str:
    """A message of at most LONGEST characters: the beginning and the end of a longer one."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 4 :]}"


class SchedgymError(Exception):
    """Base of every error that schedgym raises on purpose; a message that quotes a long text is cut."""

    def __str__(self) -> str:
        return shorten(super().__str__())


class ConcurrentUse(SchedgymError, RuntimeError):
    """A second thread calls an environment while it is in ``step`` or ``reset``."""


class InvalidWorkload(SchedgymError, ValueError):
    """A workload (in memory or in a file) breaks its schema; names the field and the first bad index."""


class InvalidParameter(SchedgymError, ValueError):
    """A parameter of an environment, a policy or an evaluation is unknown or out of range."""


class InvalidAction(SchedgymError, ValueError):
    """An action is malformed (shape, type, range, NaN), or infeasible while ``strict=True``."""


class InfeasibleInstance(SchedgymError, ValueError):
    """An instance is well formed but admits no schedule."""


class InvalidSchedule(SchedgymError, ValueError):
    """A schedule breaks a constraint of its problem (capacity, release dates, completeness)."""


class InvalidFile(SchedgymError, ValueError):
    """A file is none that is read: a pipe or a device, larger than its reader takes, or a damaged archive."""


class InvalidStore(SchedgymError, ValueError):
    """A results store cannot be read or written: no store, damaged, of a newer version, disk full, ..."""


class RunAborted(SchedgymError, RuntimeError):
    """Work ended before it was done, through no fault of its own: its store or its cluster is gone."""


class TraceFormatError(SchedgymError, ValueError):
    """A line of a trace file cannot be read.

    Attributes:
        path: the file.
        line: line number, counted from 1 (0 for the file as a whole).
        column: name of the column (empty when the whole line is meant).
        reason: what is wrong.
        unit: what ``line`` counts: "line", or "job" of a JSON file.
    """

    def __init__(self, path: str | Path, line: int, column: str, reason: str, unit: str = "line") -> None:
        self.path, self.line, self.column, self.reason, self.unit = str(path), line, column, reason, unit
        place = f"{path}:{line}" if unit == "line" else f"{path}: {unit} {line}"
        parts = (place if line else str(path), column, reason)
        super().__init__(": ".join(part for part in parts if part))

    def __reduce__(self) -> tuple[type[TraceFormatError], tuple[str, int, str, str, str]]:
        return type(self), (self.path, self.line, self.column, self.reason, self.unit)


class UnknownName(SchedgymError, LookupError):
    """A name (policy, view, id, option) is not registered; proposes the nearest one."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        # short names of policies belong to several problems
        self.kind, self.name, self.known = kind, name, tuple(dict.fromkeys(known))
        super().__init__(f"unknown {kind} {name!r}{suggest(str(name), self.known, _LISTED.get(kind))}")

    def __reduce__(self) -> tuple[type[UnknownName], tuple[str, str, tuple[str, ...]]]:
        return type(self), (self.kind, self.name, self.known)


class UnexpectedKeyword(UnknownName, TypeError):
    """A keyword that an environment does not take; proposes the nearest one.

    A TypeError with Python's own words, too: libraries try keywords on environments and wait for it.
    """

    def __init__(self, message: str, name: str = "", known: Iterable[str] = ()) -> None:
        # Gymnasium makes a second error of this class, of a longer message alone
        self.kind, self.name, self.known = "parameter", name, tuple(known)
        Exception.__init__(self, message)

    def __reduce__(self) -> tuple[type[UnexpectedKeyword], tuple[str, str, tuple[str, ...]]]:
        return type(self), (self.args[0], self.name, self.known)


def suggest(name: str, known: Iterable[str], command: str | None = None) -> str:
    """The end of an error message: the nearest known name, else the list of all, or the command for it.

    Args:
        name: the unknown name.
        known: the known names.
        command: a command that lists them all; more than MOST are then not written out.
    """
    known = sorted(set(known))
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    if command is not None and len(known) > MOST:
        nearest = difflib.get_close_matches(name, known, n=3, cutoff=0.3)
        return (f"; nearest: {', '.join(nearest)}" if nearest else "") + f"; all {len(known)}: {command}"
    return f"; known: {', '.join(known)}" if known else "; none is known"
