"""Readings: the points that a paper leaves open, the choices, and the verdicts under each of them.

A paper lists its open points in ``readings.yaml`` of its folder. A claim or figure that depends on some of
them runs under all combinations of their choices; its verdict is that under the default one, under which the
paper's own statements hold best; if another choice changes the verdict, the result says so.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgym.documents import read_yaml
from schedgym.errors import UnknownName
from schedgym.evaluation.statements import CORRECTED, HOLDS, IN_PART, NOT_REPRODUCED, REFUTED, Verdict

NO_CLAIM = "no claim"
OTHERWISE = "holds under another reading"
#: kinds of verdicts in the order in which they are counted
KINDS = (
    *(HOLDS, OTHERWISE, CORRECTED, IN_PART, REFUTED, NOT_REPRODUCED),
    *(Verdict.NOT_TOLD, Verdict.NOT_JUDGED),
)


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

    @property
    def value(self) -> Any:
        """The value of the default."""
        return self.choices[self.default]


@functools.cache
def points_of(key: str) -> dict[str, OpenPoint]:
    """Return the open points of a paper by the names that ``readings.yaml`` of its folder gives them."""
    rows = read_yaml(Path(__file__).with_name(key) / "readings.yaml")
    return {name: OpenPoint(**row) for name, row in rows.items()}


def readings_of(points: Sequence[OpenPoint]) -> list[dict[str, str]]:
    """Return all combinations of choices, as open point -> choice; that of the defaults is the first."""
    columns = [dict.fromkeys((point.default, *point.choices)) for point in points]
    names = [point.name for point in points]
    return [dict(zip(names, row, strict=True)) for row in itertools.product(*columns)]


def name_reading(reading: Mapping[str, str]) -> str:
    """Return the words of a reading's choices, in the order of its points; "" without a point."""
    return ", ".join(reading.values())


def sum_up(verdicts: Mapping[str, str]) -> str:
    """Tell the verdicts under all readings in one: the first one is the default.

    Returns:
        The verdict under the default, if it is "holds", or if it is not "not reproduced" and the statement
        holds under none; else "holds under READING", or "in part under READING", if there is such a reading;
        "not reproduced under any reading" if that is so under all of several.
    """
    default, *others = verdicts.values()
    for verdict, enough in ((HOLDS, {HOLDS}), (IN_PART, set(verdicts.values()) - {NOT_REPRODUCED})):
        if default in enough:
            return str(default)
        for reading, own in verdicts.items():
            if own == verdict:
                return f"{verdict} under {reading}"
    never = others and set(verdicts.values()) == {NOT_REPRODUCED}
    return f"{NOT_REPRODUCED} under any reading" if never else str(default)


def kind_of(verdict: str) -> str:
    """Return the kind, one of ``KINDS``, of a verdict of :func:`sum_up`, whatever reading it names."""
    kind = verdict.partition(" under ")[0]
    return OTHERWISE if kind == HOLDS != verdict else kind


def count_verdicts(verdicts: Iterable[str]) -> str:
    """Count verdicts of :func:`sum_up` by kind: "3 statements: 2 holds, 1 refuted"; "no claim" for none."""
    counted = Counter(map(kind_of, verdicts))
    if not counted:
        return NO_CLAIM
    kinds = ", ".join(f"{counted[kind]} {kind}" for kind in KINDS if counted[kind])
    return f"{counted.total()} statement{'s' * (counted.total() != 1)}: {kinds}"
