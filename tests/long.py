"""Which tests ``make test`` leaves to ``make test-all``: those that are marked ``long``, whole or in part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["long", "some"]

long = pytest.mark.long


def some(cases: Iterable[Any], keep: int = 1, of: int | None = None) -> list[Any]:
    """Mark all cases as long but the first ``keep`` of every ``of`` (None: of all)."""
    chosen = []
    for number, case in enumerate(cases):
        if (number if of is None else number % of) < keep:
            chosen.append(case)
        elif isinstance(case, type(pytest.param())):
            chosen.append(pytest.param(*case.values, id=case.id, marks=(*case.marks, long)))
        else:
            values = case if isinstance(case, tuple) else (case,)
            chosen.append(pytest.param(*values, marks=long))
    return chosen
