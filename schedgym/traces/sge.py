"""The file ``accounting`` of Grid Engine, which qacct reads: accounting(5).

A line a job, its fields between colons, without a header. How many numbers of getrusage(2) stand in the
middle depends on the version; they end before the project, the first text behind them. A job is one task that
takes all its slots.
"""

from __future__ import annotations

import re
from itertools import takewhile

from schedgym.traces.base import DECIMAL, Fault, is_number

#: places of fields
QUEUE, OWNER, JOB, SUBMIT, START, END, USAGE = 0, 3, 5, 8, 9, 10, 13
#: the same, from the project on
ENVIRONMENT, SLOTS, TASK_OF_JOB, MEMORY = 2, 3, 10, 11
PART = "task of a parallel job"

#: eight fields, the numbers from the submission to the first of getrusage(2), and eleven fields or more
BEGINS = re.compile(rf"([^:]*:){{8}}( *{DECIMAL.pattern} *:){{6}}[^:]*(:[^:]*){{10,}}")


def facts(text: str) -> tuple[str, ...] | Fault:
    """Job, submission, start, end [since 1970], slots, bytes, queue and owner of a line; or ValueError."""
    fields = text.split(":")
    first = USAGE + len(list(takewhile(is_number, fields[USAGE:])))
    while first > USAGE and any(map(is_number, fields[first + ENVIRONMENT : first + SLOTS])):
        first -= 1  # the project has a number for a name, or the department, too
    rest = fields[first:]
    if len(rest) <= MEMORY or is_number(rest[ENVIRONMENT]):
        raise ValueError(f"is no record of Grid Engine, or is cut off: {text[:40]!r}")
    if rest[TASK_OF_JOB] not in ("NONE", ""):
        return Fault(PART)
    times = ("" if fields[place] == "0" else fields[place] for place in (SUBMIT, START, END))  # never
    return fields[JOB], *times, rest[SLOTS], rest[MEMORY], fields[QUEUE], fields[OWNER]
