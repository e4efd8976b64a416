"""What ``make test`` leaves to ``make test-all``, and that to ``.ci/checks``: tests, and random cases."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

import pytest

long = pytest.mark.long

#: in the names of tests: views that name a rule, and so compile the rules of the policies once more; those
#: with the orders of geo, which take minutes, are left to .ci/checks
SLOW_VIEWS = re.compile(r"(FlowtimePacking-v0-rule|(GeoAssign|GeoFair)-v0-fair-rule)[-\]]")
SLOWEST_VIEWS = re.compile(r"(GeoAssign|GeoFair)-v0-rule[-\]]")

#: in the names of tests: notebooks and pages of which shorter ones do the same, left to .ci/checks
SLOW_PAGES = re.compile(
    r"(guan2022|noroozoliaee2014|xu2021)\.ipynb"
    r"|test_the_blocks_run\[(docs/agents\.md|docs/how-to/(advise|agent|board|see|tune)\.md|.*, traces)\]"
)

FUZZ = int(os.environ.get("SCHEDGYM_FUZZ", "0"))
EVERY = FUZZ >= 2000  # make test-all draws every random case
#: .ci/checks has the whole product of what a test is parametrised by
WEEKLY = FUZZ >= 20_000

#: beside ``long``: similar tests, of which .ci/run has another one, or that take minutes
weekly = pytest.mark.skipif(not WEEKLY, reason="for .ci/checks")


def trials(count: int) -> range:
    """Return the numbers of ``count`` random cases, in ``make test`` of a fifth of them and at least 20."""
    return range(count if EVERY else min(count, max(count // 5, 20)))


def of_trials(count: int) -> int:
    """Return how many of all random cases are to show something; in ``make test`` a twentieth will do."""
    return count if EVERY else count // 20


def all_but(names: Iterable[str], slow: Iterable[str]) -> list[Any]:
    """Mark the names in ``slow`` as long."""
    late = frozenset(slow)
    return [pytest.param(name, marks=long) if name in late else name for name in names]


def some(cases: Iterable[Any], keep: int = 1, of: int | None = None, late: int = 1) -> list[Any]:
    """Mark all cases as long but the first ``keep`` of every ``of`` (None: of all).

    Of those that are long, only the first of every ``late`` is not left to ``.ci/checks``.
    """
    chosen, passed = [], 0
    for number, case in enumerate(cases):
        if (number if of is None else number % of) < keep:
            chosen.append(case)
            continue
        passed += 1
        if not WEEKLY and (passed - 1) % late:
            continue
        if isinstance(case, type(pytest.param())):
            chosen.append(pytest.param(*case.values, id=case.id, marks=(*case.marks, long)))
        else:
            values = case if isinstance(case, tuple) else (case,)
            chosen.append(pytest.param(*values, marks=long))
    return chosen


def thinned(cases: Iterable[Any], of: int) -> list[Any]:
    """Leave all cases to ``.ci/checks`` but the first of every ``of``."""
    return list(cases)[:: 1 if WEEKLY else of]
