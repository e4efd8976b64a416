"""The statements of a paper with one verdict each, from its claims and from the figures that show them.

A statement may be checked by ``schedgym claims`` on a small workload, and shown by one figure or by several,
as of two traces. The figures then decide, each at the paper's size if it was made at it; a statement holds in
part if it does so in half of them. The verdicts of the figures stand in ``verdicts.json``, which
``python docs/tables.py`` writes from the results that are committed.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from schedgym.papers.judging import verdict_of
from schedgym.papers.paper import Paper
from schedgym.papers.readings import KINDS, kind_of, sum_up
from schedgym.papers.registry import list_claims, list_figures

COMMITTED = Path(__file__).with_name("verdicts.json")
#: headings of the table of :func:`count_row`
HEADS = ("paper", "its statements", "hold", *KINDS[1:], "further statements of ours")


class Shown(NamedTuple):
    """A statement as a figure shows it.

    Attributes:
        figure: name of the figure.
        scale: at which it was made under the default reading.
        text: the statement in our words.
        name: of the claim that the statement is registered as; "" if it is registered with the figure alone.
        readings: verdict by the words of the reading, the default first; "" if there is only one.
    """

    figure: str
    scale: str
    text: str
    name: str
    readings: Mapping[str, str]

    @property
    def verdict(self) -> str:
        """The verdict under the default reading."""
        return next(iter(self.readings.values()))


class Stated(NamedTuple):
    """A statement of a paper.

    Attributes:
        text: the statement in our words.
        name: of its claim; "" if only figures show it.
        shown: by the figures, each once.
        readings: verdict by the words of the reading, the default first; "" if there is only one.
    """

    text: str
    name: str
    shown: Sequence[Shown]
    readings: Mapping[str, str]

    @property
    def verdict(self) -> str:
        """The verdicts under all readings in one: :func:`~schedgym.papers.readings.sum_up`."""
        return sum_up(self.readings)


@functools.cache
def shown_by_figures() -> tuple[Shown, ...]:
    """Return what the committed figures show, in the order of the figures."""
    rows = json.loads(COMMITTED.read_text(encoding="utf-8"))
    return tuple(
        Shown(row["figure"], row["scale"], said["text"], said["name"], said["readings"])
        for row in rows
        for said in row["statements"]
    )


def statements(paper: Paper, found: Mapping[str, Mapping[str, str]] | None = None) -> list[Stated]:
    """Return the statements of a paper: its claims, then those that only figures show.

    Args:
        paper: the paper.
        found: name of a claim -> verdict by the words of the reading, as a run found them; a claim that is
            not in it has its recorded verdicts.
    """
    groups = _by_statement(paper)
    made = []
    for claim in list_claims(paper.key):
        shown = groups.pop(claim.name, [])
        if claim.ours:
            continue
        readings: dict[str, str] = {words: claim.recorded[words] for words in claim.readings}
        readings |= (found or {}).get(claim.name, {})
        if shown:
            readings[next(iter(readings))] = _together([own.verdict for own in shown])
        made.append(Stated(claim.text, claim.name, shown, readings))
    for shown in groups.values():
        readings = {
            words: _together([own.readings[words] for own in shown if words in own.readings])
            for words in shown[0].readings
        }
        made.append(Stated(shown[0].text, "", shown, readings))
    return made


def _by_statement(paper: Paper) -> dict[str, list[Shown]]:
    """Return what figures show by statement: by the claim's name, or else by the figure and the text.

    Two figures that stand beside one another share their text in the paper.
    """
    beside = {own.name: own.beside or own.name for own in list_figures() if own.paper == paper}
    own = [shown for shown in shown_by_figures() if shown.figure in beside]
    names = {shown.text: shown.name for shown in own if shown.name}
    groups: dict[str, list[Shown]] = {}
    for shown in own:
        name = names.get(shown.text, f"{beside[shown.figure]}: {shown.text}")
        groups.setdefault(name, []).append(shown)
    return groups


def _together(verdicts: Sequence[str]) -> str:
    """Return the verdict on a statement that several figures show."""
    return verdicts[0] if len(set(verdicts)) == 1 else verdict_of(verdicts)


def count_row(paper: Paper, found: Mapping[str, Mapping[str, str]] | None = None) -> list[str]:
    """Return a row of the table of all papers: its statements, by kind, and the further statements of ours.

    Arguments are those of :func:`statements`.
    """
    counted = Counter(kind_of(said.verdict) for said in statements(paper, found))
    ours = sum(claim.ours for claim in list_claims(paper.key))
    counts = [counted.total(), *(counted[kind] for kind in KINDS), ours]
    return [f"{paper.key} ({paper.topic})", *map(str, counts)]
