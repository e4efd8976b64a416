"""The accounting file of LSF, lsb.acct, which is no table: its records are of several kinds and lengths.

A line a record, its fields between blanks, texts in quotes; of the kind JOB_FINISH a job that has ended. A
job is one task that takes all its slots.
"""

from __future__ import annotations

import csv
import re

from schedgym.traces.base import Fault

FINISH = "JOB_FINISH"
OTHER = "record of another kind"  # than the end of a job
#: places of fields
END, JOB, SLOTS, SUBMIT, START, USER, QUEUE, ASKED = 2, 3, 6, 7, 10, 11, 12, 22
#: the same, from the hosts on on which the job ran
MEMORY = 30

BEGINS = re.compile(r'"[A-Z_]+" "[0-9.]+" [0-9]+ .*')
_SEVERAL = re.compile(r"([0-9]{1,7})\*.*")


def facts(text: str) -> tuple[str, ...] | Fault:
    """Job, submission, start, end [s since 1970], slots, KiB, queue and user of a line; or ValueError."""
    try:
        fields = next(csv.reader([text], delimiter=" ", strict=True))
        if fields[0] != FINISH:
            return Fault(OTHER)
        ran = ASKED + 1 + int(fields[ASKED])  # behind the hosts that were asked for
        hosts = fields[ran + 1 : ran + 1 + int(fields[ran])]
        rest = fields[ran + 1 + len(hosts) :]
        several = [_SEVERAL.fullmatch(host) for host in hosts]  # 8*node01, or node01 eight times
        slots = max(int(fields[SLOTS]), sum(int(one[1]) if one else 1 for one in several))
        memory = rest[MEMORY] if len(rest) > MEMORY and not rest[MEMORY].startswith("-") else ""
        start = "" if fields[START] == "0" else fields[START]  # it never ran
        times = fields[SUBMIT], start, fields[END]
        return fields[JOB], *times, str(slots), memory, fields[QUEUE], fields[USER]
    except (ValueError, IndexError, csv.Error):
        raise ValueError(f"is no record of lsb.acct, or is cut off: {text[:40]!r}") from None
