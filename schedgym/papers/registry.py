"""The registry: the claims and figures of all papers, how they are registered and found by their names.

A package per paper registers its claims with :func:`claim` and its figures with :func:`figure`, in the order
of the paper. A verdict comes from a run, never from a table: the one that is stored beside a claim is only
what an earlier run found, kept so that a change is noticed. What a figure draws is also its data: there is
one source of both.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from schedgym.errors import UnknownName
from schedgym.papers.drawing import Panel
from schedgym.papers.judging import Confirm, Finding, Reading, Verdict
from schedgym.papers.paper import PAPERS, Paper
from schedgym.papers.run import Run

__all__ = ["Claim", "Entry", "Figure", "Outcome", "claim", "figure", "list_claims", "list_figures"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of a figure's experiment: series to draw, judged claims, sizes and remarks.

    Attributes:
        panels: what is drawn, and the data.
        readings: the paper's claims; none where it makes no claim about the figure.
        sizes: one line: episodes, jobs, servers, workload or trace.
        remarks: what deviates from the paper, and why.
    """

    panels: Sequence[Panel]
    readings: Sequence[Reading]
    sizes: str
    remarks: Sequence[str] = ()


Check = Callable[[Run], Finding]
Make = Callable[[Run], Outcome]


@dataclasses.dataclass(frozen=True)
class Entry:
    """A claim or a figure of a paper.

    Attributes:
        name: "guan2022/amf-envy", "guan2022/fig4.6".
        paper: where it is from.
        source: theorem, section, figure or page.
    """

    name: str
    paper: Paper
    source: str

    @property
    def short(self) -> str:
        """The name without the paper's."""
        return self.name.partition("/")[2]


@dataclasses.dataclass(frozen=True)
class Claim(Entry):
    """A theorem or claim of a paper as an executable check.

    Attributes:
        text: what is claimed, in one line.
        recorded: the verdict that a run is expected to find.
        check: does the work.
        confirm: recomputes an instance (counterexample or witness) exactly, by other means than the search,
            and says whether it shows what it is meant to show.
    """

    text: str
    recorded: Verdict
    check: Check = dataclasses.field(compare=False)
    confirm: Confirm | None = dataclasses.field(default=None, compare=False)

    @property
    def stream(self) -> str:
        """Names its random numbers, whatever else is checked."""
        return f"{self.paper.topic.replace(' ', '-')}/{self.short}"


@dataclasses.dataclass(frozen=True)
class Figure(Entry):
    """A figure or table of a paper as an experiment.

    Attributes:
        title: what it shows, in our words.
        make: runs it.
    """

    title: str
    make: Make = dataclasses.field(compare=False)

    @property
    def stem(self) -> str:
        """Name of its files, without the suffix."""
        return self.name.replace("/", "-")

    @property
    def command(self) -> str:
        """Command that makes the figure."""
        return f"schedgym reproduce {self.name}"


_ENTRIES: dict[str, Entry] = {}


def _register(entry: Entry) -> None:
    if _ENTRIES.get(entry.name, entry) != entry:
        raise ValueError(f"{entry.name!r} is registered already")
    _ENTRIES[entry.name] = entry


def claim(
    paper: Paper, name: str, *, text: str, source: str, recorded: Verdict, confirm: Confirm | None = None
) -> Callable[[Check], Check]:
    """Decorator of a check: registers the claim ``paper.key/name``.

    Raises:
        ValueError: if the name is taken by another claim or figure.
    """

    def enter(check: Check) -> Check:
        _register(Claim(f"{paper.key}/{name}", paper, source, text, recorded, check, confirm))
        return check

    return enter


def figure(paper: Paper, name: str, *, title: str, source: str) -> Callable[[Make], Make]:
    """Decorator of a function that runs policies through :meth:`Run.play`: registers ``paper.key/name``.

    Raises:
        ValueError: if the name is taken by another claim or figure.
    """

    def enter(make: Make) -> Make:
        _register(Figure(f"{paper.key}/{name}", paper, source, title, make))
        return make

    return enter


@functools.cache
def _discover() -> None:
    for paper in PAPERS:
        importlib.import_module(f"schedgym.papers.{paper.key}")


def list_claims(*names: str) -> list[Claim]:
    """Claims by name, or all of a paper, in the order of the papers.

    Args:
        names: of claims ("guan2022/amf-envy") or papers ("guan2022"); none: all.

    Raises:
        UnknownName: there is no such claim or paper.
    """
    return _chosen(Claim, names)


def list_figures(*names: str) -> list[Figure]:
    """Figures by name, or all of a paper, in the order of the papers.

    Args:
        names: of figures ("guan2022/fig4.6") or papers ("guan2022"); none: all.

    Raises:
        UnknownName: there is no such figure or paper.
    """
    return sorted(_chosen(Figure, names), key=_place)


E = TypeVar("E", bound=Entry)


def _chosen(kind: type[E], names: Sequence[str]) -> list[E]:
    """The entries of a kind, or those of them that are named, paper by paper as they were registered."""
    _discover()
    entries = {name: entry for name, entry in _ENTRIES.items() if isinstance(entry, kind)}
    papers = {entry.paper.key: entry.paper for entry in entries.values()}
    for name in names:
        if "/" in name and name not in entries:
            raise UnknownName(kind.__name__.lower(), name, entries)
        if "/" not in name and name not in papers:
            raise UnknownName("paper", name, papers)
    chosen = (e for e in entries.values() if not names or e.name in names or e.paper.key in names)
    return sorted(chosen, key=lambda entry: _rank(entry.paper))


def _rank(paper: Paper) -> int:
    return PAPERS.index(paper) if paper in PAPERS else len(PAPERS)


def _place(entry: Figure) -> tuple[int, list[Any]]:
    """Sorts "fig2a" before "fig10"."""
    parts = re.split(r"(\d+)", entry.short)
    return _rank(entry.paper), [int(part) if part.isdigit() else part for part in parts]
