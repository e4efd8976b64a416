"""The accounting log of PBS and Torque: server_priv/accounting/YYYYMMDD, which is no table.

A line a record, "date;type;job;name=value name=value ...": of type E where a job has ended, of others where
it was queued, started, deleted and so on, which say nothing more. A job is one task that takes all its
processors; an array, which has an E of its own beside those of its tasks, is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from schedgym.traces.base import Fault

ENDED = "E"
OTHER = "record of another kind"  # than the end of a job
POWERS = {unit: 1024**power for power, unit in enumerate(("", "k", "m", "g", "t", "p"))}

BEGINS = re.compile(r"[0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2};[A-Za-z]+;[^;]*;.*")
_SIZE = re.compile(r"([0-9]{1,15})([kmgtp]?)([bw]?)", re.IGNORECASE)
_PROCESSORS = re.compile(r"(?:^|:)ppn=([0-9]{1,7})")


def facts(text: str) -> tuple[str, ...] | Fault:
    """Job, submission, start, end [s since 1970], cores, bytes, queue and user of a line; or ValueError."""
    if not BEGINS.fullmatch(text):
        raise ValueError(f"must be date;type;job;values, got {text[:40]!r}")
    _, kind, job, values = text.split(";", 3)
    if kind != ENDED or "[]" in job:  # 7[].srv is an array, of which 7[3].srv is a task
        return Fault(OTHER)
    found = {name: value for name, _, value in (part.partition("=") for part in values.split())}
    cores = _cores(found)
    memory = found.get("Resource_List.mem", "")
    total = _bytes(memory) if memory else cores * _bytes(found.get("Resource_List.pmem", "0"))  # of a process
    ctime, start, end, queue, user = (
        found.get(name, "") for name in ("ctime", "start", "end", "queue", "user")
    )
    return job, ctime, start, end, str(cores or ""), str(total or ""), queue, user


def _bytes(text: str) -> int:
    """The bytes of a size; ValueError says what is wrong."""
    size = _SIZE.fullmatch(text)
    if size is None:
        raise ValueError("Resource_List.mem", f"must be a size such as 4gb, got {text[:40]!r}")
    return int(size[1]) * POWERS[size[2].lower()] * (8 if size[3].lower() == "w" else 1)


def _cores(found: Mapping[str, str]) -> int:
    """The processors of a job: each of the three places may tell of fewer than it had, and none of more."""
    places = nodes = 0
    for host in filter(None, found.get("exec_host", "").split("+")):  # n1/0+n1/1, n1/0-3,7 or n1/0*4
        slots, _, times = host.partition("/")[2].partition("*")
        for part in slots.split(","):
            first, _, last = part.partition("-")
            places += max(_whole(last) - _whole(first) + 1, 1) * max(_whole(times), 1)
    for chunk in filter(None, found.get("Resource_List.nodes", "").split("+")):  # 2:ppn=4+n7:ppn=8
        each = _PROCESSORS.search(chunk)
        nodes += max(_whole(chunk.partition(":")[0]), 1) * (int(each[1]) if each else 1)
    return max(_whole(found.get("Resource_List.ncpus", "")), places, nodes)


def _whole(text: str) -> int:
    """A whole number, 0 for another text."""
    return int(text) if re.fullmatch("[0-9]{1,7}", text) else 0
