"""The order of the tests where several processes share them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

#: the problems of either half, of about the same time
PROBLEMS = (("flowtime", "geo", "queue-delay"), ("parallel-jct", "partial-value", "single-job"))
NAMED = [
    re.compile(rf"(?<![a-z])({'|'.join(names).replace('-', '[-_]?')})", re.IGNORECASE) for names in PROBLEMS
]

Test = TypeVar("Test")


def in_halves(tests: Sequence[Test], names: Sequence[str]) -> list[Test]:
    """Order the tests so that of two processes each compiles what the kernels of three problems share.

    With ``--dist worksteal`` a process runs a half of the tests, and then takes from the end of the other's
    half. So each half begins with the tests that name a problem, and ends with those that name none.

    Args:
        tests: the tests, as pytest has collected them.
        names: their names, with the path.
    """
    named: dict[int | None, list[Test]] = {None: [], 0: [], 1: []}
    for test, name in zip(tests, names, strict=True):
        named[next((half for half in (0, 1) if NAMED[half].search(name)), None)].append(test)
    rest = max(len(tests) // 2 - len(named[0]), 0)
    return [*named[0], *named[None][:rest], *named[1], *named[None][rest:]]
