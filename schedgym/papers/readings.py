"""Readings: what a paper leaves open, the choices that there are, and the verdicts under each of them.

A paper names its open points in ``readings.py`` of its folder. A claim or figure that depends on some of them
runs under all combinations of their choices; its verdict is that under the default one, under which the
paper's own statements hold best, and it is told where another one would turn it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from schedgym.errors import UnknownName
from schedgym.evaluation.statements import CORRECTED, HOLDS, IN_PART, NOT_REPRODUCED, REFUTED

__all__ = [
    "KINDS",
    "OTHERWISE",
    "OpenPoint",
    "count_verdicts",
    "kind_of",
    "name_reading",
    "readings_of",
    "sum_up",
]

OTHERWISE = "holds under another reading"
#: kinds of verdicts in the order in which they are counted
KINDS = (HOLDS, OTHERWISE, CORRECTED, IN_PART, REFUTED, NOT_REPRODUCED)


@dataclasses.dataclass(frozen=True)
class OpenPoint:
    """A point that a paper leaves open.

    Attributes:
        name: short name, e.g. "start of lambda".
        says: what the paper says, and where.
        leaves_open: what it does not say.
        choices: what can be chosen, in words -> the value that code uses.
        default: the choice under which the paper's own statements hold best; one of ``choices``.

    Raises:
        UnknownName: the default is not one of the choices.
    """

    name: str
    says: str
    leaves_open: str
    choices: Mapping[str, Any] = dataclasses.field(hash=False)
    default: str

    def __post_init__(self) -> None:
        if self.default not in self.choices:
            raise UnknownName("choice", self.default, self.choices)


def readings_of(points: Sequence[OpenPoint]) -> list[dict[str, str]]:
    """Return all combinations of choices, as open point -> choice; that of the defaults is the first."""
    columns = [sorted(point.choices, key=lambda words, own=point.default: words != own) for point in points]
    names = [point.name for point in points]
    return [dict(zip(names, row, strict=True)) for row in itertools.product(*columns)]


def name_reading(reading: Mapping[str, str]) -> str:
    """Return the words of a reading's choices, in the order of its points; "" without a point."""
    return ", ".join(reading.values())


def sum_up(verdicts: Mapping[str, str]) -> str:
    """Tell the verdicts under all readings in one: the first one is the default.

    Returns:
        The verdict under the default, if it is "holds", or if the statement holds under none; "holds under
        READING" if it holds under another one; "not reproduced under any reading" if that is so under all of
        several.
    """
    default, *_ = verdicts.values()
    holding = [reading for reading, verdict in verdicts.items() if verdict == HOLDS]
    if default == HOLDS or not holding:
        everywhere = len(verdicts) > 1 and set(verdicts.values()) == {NOT_REPRODUCED}
        return f"{NOT_REPRODUCED} under any reading" if everywhere else str(default)
    return f"{HOLDS} under {holding[0]}"


def kind_of(verdict: str) -> str:
    """Return the kind, one of ``KINDS``, of a verdict of :func:`sum_up`, whatever reading it names."""
    if verdict.startswith(f"{HOLDS} under "):
        return OTHERWISE
    return NOT_REPRODUCED if verdict.startswith(NOT_REPRODUCED) else verdict


def count_verdicts(verdicts: Iterable[str]) -> str:
    """Count verdicts of :func:`sum_up` by kind, as in "3 statements: 2 holds, 1 refuted"."""
    counted = Counter(map(kind_of, verdicts))
    kinds = ", ".join(f"{counted[kind]} {kind}" for kind in KINDS if counted[kind])
    return f"{counted.total()} statement{'s' * (counted.total() != 1)}: {kinds}"
