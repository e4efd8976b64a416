"""Small logs in exactly the schemas of published traces: what all formats are tested on, from logs.yaml."""

from __future__ import annotations

import dataclasses
import gzip
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgym.documents import read_yaml
from schedgym.traces.google2011 import TASK_EVENTS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Log:
    """The log of a format.

    Attributes:
        name: of the format.
        suffix: of its file.
        head: lines before the rows.
        rows: one a row.
        delimiter: between fields; None: any run of blanks.
        names: of the columns; by default those in the last line of the head.
        read: those that are read as plain numbers.
        gaps: those of them that may be empty.
        spare: those of them that a table may lack.
        whole: those that must be whole numbers.
        signed: those that may be below 0.
        changed: number of a row that becomes a task on its own, and can be done without.
        machines: lines of the file of machines; none: the format has no such file, or one of another kind.
        sizes: the columns of it that are read, if its first line has its columns.
        assumes: True if the format must be named.
        truth: attribute of the trace -> its value; ``left_out`` as texts.
    """

    name: str
    suffix: str
    head: Sequence[str] = ()
    rows: Sequence[str]
    delimiter: str | None = None
    names: Sequence[str] = ()
    read: Sequence[str] = ()
    gaps: Sequence[str] = ()
    spare: Sequence[str] = ()
    whole: Sequence[str] = ()
    signed: Sequence[str] = ()
    changed: int = 1
    machines: Sequence[str] = ()
    sizes: Sequence[str] = ()
    assumes: bool = False
    truth: Mapping[str, Any]

    @property
    def lines(self) -> list[str]:
        """All lines of the file."""
        return [*self.head, *self.rows]

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.names) or self.head[-1].split(self.delimiter)

    def with_field(self, column: str, value: str) -> str:
        """The row that is changed, with another value in a column."""
        fields = self.rows[self.changed].split(self.delimiter)
        fields[self.columns.index(column)] = value
        return (self.delimiter or " ").join(fields)


# Google 2011: rows from their times, tasks and events
KINDS = ("SUBMIT", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_PENDING", "UPDATE_RUNNING")
SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, UPDATE_PENDING, UPDATE_RUNNING = range(9)
AFTER = 2**63 - 1
S = 1_000_000  # us


def event(time: int, task: int, kind: int, cpu: float | str = 0.25, memory: float | str = 0.125) -> str:
    machine = "" if kind == SUBMIT else "4155527081"
    return (
        f"{time},,{6251639646 + task // 10},{task % 10},{machine},{kind},aB+/c=,2,9,{cpu},{memory},0.00019,0"
    )


def events(rows: Sequence[Any]) -> list[str]:
    """The rows of events in seconds, .inf after the end of the trace."""
    return [
        event(AFTER if math.isinf(second) else int(second * S), task, KINDS.index(kind), *requests)
        for second, task, kind, *requests in rows
    ]


def machine(time: int, number: int, kind: int, cpu: float | str = 0.5, memory: float | str = 0.25) -> str:
    return f"{time},{4155527081 + number},{kind},HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,{cpu},{memory}"


MACHINES = [
    machine(0, 0, 0),
    machine(0, 1, 0, 1, 1),
    machine(0, 2, 0, "", 0.5),
    machine(0, 3, 0, 0.25, 0.5),
    machine(700 * S, 0, 1),
    machine(701 * S, 4, 0),
    machine(702 * S, 3, 2, 0.5, 0.5),
    machine(703 * S, 0, 2, 0.75, 0.75),  # an update of a machine that is gone
    machine(AFTER, 1, 1),
]
MACHINES_CSV = "cores,memory\n16,64\n8,32\n"

_LOGS = read_yaml(Path(__file__).with_name("logs.yaml"))
EVENTS, MORE = (events(_LOGS["google2011"].pop(name)) for name in ("events", "more"))
_LOGS["google2011"] |= {"rows": [*EVENTS, *MORE], "names": TASK_EVENTS}
LOGS = {name: Log(**{"name": own.pop("format", name), **own}) for name, own in _LOGS.items()}
SWIM_ROWS = LOGS["swim"].rows


def text(lines: Sequence[str]) -> bytes:
    """The lines as a file has them."""
    return "".join(f"{line}\n" for line in lines).encode()


def write(path: Path, content: bytes | str | Sequence[str]) -> Path:
    """A file with a content, or lines; packed if its name ends in .gz."""
    path.parent.mkdir(exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    data = data if isinstance(data, bytes) else text(data)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def lines(path: Path, *rows: str) -> Path:
    """A file of these lines."""
    return write(path, rows)


def swf_log(folder: Path) -> Path:
    """Thirty jobs on 32 processors: number i comes at 7 i, for 5 + i s, on 1 + i mod 8 with 1 GiB each."""
    jobs = (
        f"{i + 1} {7 * i} -1 {5 + i} {1 + i % 8} -1 1048576 -1 -1 -1 1 1 1 1 1 1 -1 -1" for i in range(30)
    )
    lines = ["; Version: 2.2", "; MaxNodes: 4", "; MaxProcs: 32", *jobs]
    return write(folder / "log.swf.gz", lines)
