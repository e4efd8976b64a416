"""The registry: the claims and figures of all papers, how they are registered and found by their names.

The modules of a paper's package register its claims, which a file lists (:class:`Claims`), and its figures
(:func:`figures_of`). Verdicts come from runs: the verdict that the file records with a claim is the one that
an earlier run found, and serves only to notice changes. Nothing else states it: ``docs/claims.json`` is what
a run writes. The data that are written for a figure are those that are drawn.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from schedgym.documents import read_yaml
from schedgym.errors import UnknownName
from schedgym.evaluation.pictures import Panel
from schedgym.evaluation.statements import Verdict
from schedgym.papers.judging import Confirm, Finding, Judged
from schedgym.papers.paper import PAPERS, Paper, get_paper
from schedgym.papers.readings import OpenPoint, name_reading, points_of, readings_of, sum_up
from schedgym.papers.run import Run
from schedgym.papers.searches import Sentences


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of a figure's experiment: series to draw, judged claims, sizes and remarks.

    Attributes:
        panels: the series that are drawn, which are also the data.
        judged: the paper's claims about the figure, judged; empty if it makes none.
        sizes: one line that gives episodes, jobs, servers, workload or trace.
        remarks: deviations from the paper, and their reasons.
    """

    panels: Sequence[Panel]
    judged: Sequence[Judged]
    sizes: str
    remarks: Sequence[str] = ()


Check = Callable[[Run], Finding]
Make = Callable[[Run], Outcome]


@dataclasses.dataclass(frozen=True)
class Entry:
    """A claim or a figure of a paper.

    Attributes:
        name: key of the paper and name, as in "guan2022/amf-envy" or "guan2022/fig4.6".
        paper: the paper that it is from.
        source: theorem, section, figure or page.
        under: the open points of the paper that it depends on.
    """

    name: str
    paper: Paper
    source: str
    under: tuple[OpenPoint, ...]

    @property
    def short(self) -> str:
        """The name without the key of the paper."""
        return self.name.partition("/")[2]

    @property
    def readings(self) -> dict[str, dict[str, str]]:
        """The readings under which it runs, by their words; that of the defaults is the first."""
        return {name_reading(reading): reading for reading in readings_of(self.under)}


@dataclasses.dataclass(frozen=True)
class Claim(Entry):
    """A theorem or claim of a paper as an executable check.

    Attributes:
        text: what is claimed, in one line.
        recorded: the verdict that a run is expected to find, by the words of the reading ("" without one).
        check: function that checks the claim.
        confirm: recomputes an instance (counterexample or witness) exactly, by another method than the
            search, and returns True if the instance shows what it is meant to show.
        ours: True for a statement that the paper does not make. It shows how far a statement of the paper
            holds, but is listed separately and does not count for or against the paper.
        place: its place among the claims of the paper.
    """

    text: str
    recorded: Mapping[str, Verdict]
    check: Check = dataclasses.field(compare=False)
    confirm: Confirm | None = dataclasses.field(default=None, compare=False)
    ours: bool = False
    place: int = 0

    @property
    def verdict(self) -> str:
        """The recorded verdicts under all readings in one: :func:`~schedgym.papers.readings.sum_up`."""
        return sum_up({name: self.recorded[name] for name in self.readings})

    @property
    def stream(self) -> str:
        """Name of the claim's stream of random numbers, which no other claim uses."""
        return f"{self.paper.topic.replace(' ', '-')}/{self.short}"


@dataclasses.dataclass(frozen=True)
class Figure(Entry):
    """A figure or table of a paper as an experiment.

    Attributes:
        title: what the figure shows, in our words.
        make: function that runs the experiment.
        beside: name of the figure whose sentences in the paper are about this one, too, as of another trace.
        only_small: those of ``under`` whose other choices only the small scale runs: they would take hours.
    """

    title: str
    make: Make = dataclasses.field(compare=False)
    beside: str = ""
    only_small: tuple[OpenPoint, ...] = ()

    @property
    def stem(self) -> str:
        """Name of the figure's files without the suffix."""
        return self.name.replace("/", "-")

    @property
    def command(self) -> str:
        """Command that makes the figure."""
        return f"schedgym reproduce {self.name}"


Row = Mapping[str, Any]  # of a claim, in a YAML file
OF_THE_RUN = "of the run"  # in place of a remark's name
_ENTRIES: dict[str, Entry] = {}


def _register(entry: Entry) -> None:
    if _ENTRIES.get(entry.name, entry) != entry:
        raise ValueError(f"{entry.name!r} is registered already")
    _ENTRIES[entry.name] = entry


def _file(key: str, name: str) -> dict[str, Any]:
    """Return the content of a YAML file of a paper."""
    rows: dict[str, Any] = read_yaml(Path(__file__).with_name(key) / f"{name}.yaml")
    return rows


class Claims:
    """The claims of a paper, as its ``claims.yaml`` lists them: called with a name, it decorates the check.

    The file has sections, one for each module with checks, and their rows are in the order of the paper. A
    row has ``name``, ``text``, ``source``, ``ours`` and ``recorded`` of :class:`Claim`: one verdict, or a
    list by reading in the order of :func:`~schedgym.papers.readings.readings_of`. It may name open points
    under ``under``, and say under ``compare`` what its check is made of, or under ``found`` what the evidence
    is: :class:`~schedgym.papers.searches.Sentences`, which the check then gets as ``say``.

    Args:
        paper: the paper.
        sections: what the file has; kept as an attribute.
        points: the paper's open points, by the names that rows give them; kept as an attribute.
    """

    def __init__(
        self, paper: Paper, sections: Mapping[str, Sequence[Row]], points: Mapping[str, OpenPoint]
    ) -> None:
        self._paper, self.sections, self.points = paper, sections, points
        self._rows = {row["name"]: row for row in itertools.chain.from_iterable(sections.values())}

    @classmethod
    def of(cls, key: str) -> Claims:
        """Return the claims of the paper of a key, read from its folder."""
        return cls(get_paper(key), _file(key, "claims"), points_of(key))

    def __call__(
        self, name: str, confirm: Confirm | None = None
    ) -> Callable[[Callable[..., Finding]], Callable[..., Finding]]:
        """Decorate a check to register the claim of this name.

        Raises:
            UnknownName: the file has no such claim.
            ValueError: if the name is taken by another claim or figure, or if verdicts are recorded for other
                readings than those of ``under``.
        """
        if name not in self._rows:
            raise UnknownName("claim", name, self._rows)
        row = self._rows[name]
        under = tuple(self.points[point] for point in row.get("under", ()))
        words = [name_reading(reading) for reading in readings_of(under)]
        verdicts = row["recorded"] if isinstance(row["recorded"], list) else [row["recorded"]] * len(words)
        recorded = dict(zip(words, map(Verdict, verdicts), strict=True))

        def enter(check: Callable[..., Finding]) -> Callable[..., Finding]:
            own = check
            if "found" in row:
                own = functools.update_wrapper(functools.partial(check, say=Sentences(row["found"])), check)
            known = (f"{self._paper.key}/{name}", self._paper, row["source"], under, row["text"], recorded)
            place = [*self._rows].index(name)
            _register(Claim(*known, own, confirm, row.get("ours", False), place))
            return check

        return enter

    def compare(self, section: str, make: Callable[..., Check]) -> None:
        """Register the claims of a section that say what is compared; ``make`` makes their checks of it."""
        for row in self.sections[section]:
            if "compare" in row:
                self(row["name"])(make(**row["compare"]))


def figure(
    paper: Paper, name: str, *, under: Sequence[OpenPoint] = (), beside: str = "", **fields: Any
) -> Callable[[Make], Make]:
    """Decorate a function that runs policies by :meth:`Run.play` to register the figure ``paper.key/name``.

    ``beside`` is the name, without that of the paper, of a figure that shares its sentences; ``under`` and
    ``fields`` are fields of :class:`Figure`.

    Raises:
        ValueError: if the name is taken by another claim or figure.
    """

    def enter(make: Make) -> Make:
        other = f"{paper.key}/{beside}" if beside else ""
        named = {"name": f"{paper.key}/{name}", "beside": other, "under": tuple(under), **fields}
        _register(Figure(paper=paper, make=make, **named))
        return make

    return enter


def figures_of(key: str) -> Callable[[str], Callable[[Make], Make]]:
    """Return :func:`figure` for the paper of a key, whose ``figures.yaml`` has the rest by figures' names.

    There ``under`` and ``only_small`` name open points of the paper, ``claims`` the claims that a figure
    shows, which are judged after its own statements, and ``remarks`` texts of ``remarks.yaml``, which may
    name open points for their default choices. ``OF_THE_RUN`` stands among them for the remarks that the
    function returns; else these are the first.
    """
    paper, rows, points = get_paper(key), _file(key, "figures"), points_of(key)
    defaults = {name: point.default for name, point in points.items()}
    texts = {name: text.format_map(defaults) for name, text in _file(key, "remarks").items()}

    def enter(name: str) -> Callable[[Make], Make]:
        row = dict(rows[name])
        for part in ("under", "only_small"):
            row[part] = tuple(points[point] for point in row.get(part, ()))
        claims, named = row.pop("claims", ()), row.pop("remarks", [])
        remarks = [None if name == OF_THE_RUN else texts[name] for name in named]
        if None not in remarks:
            remarks = [None, *remarks]

        def add_claims(make: Make) -> Make:
            def made(run: Run) -> Outcome:
                outcome = make(run)
                judged = (judged_claim(run, f"{paper.key}/{claim}") for claim in claims)
                told = itertools.chain(*(outcome.remarks if one is None else [one] for one in remarks))
                return dataclasses.replace(outcome, judged=[*outcome.judged, *judged], remarks=[*told])

            return figure(paper, name, **row)(made)

        return add_claims

    return enter


@functools.cache
def _discover() -> None:
    """Import the modules of the papers, which register their claims and figures."""
    for paper in PAPERS:
        package = importlib.import_module(f"schedgym.papers.{paper.key}")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


def list_claims(*names: str) -> list[Claim]:
    """Return claims by name, or all claims of papers, in the order of the papers.

    Args:
        names: claims ("guan2022/amf-envy") or papers ("guan2022"); all claims if none is given.

    Raises:
        UnknownName: there is no such claim or paper.
    """
    return sorted(_chosen(Claim, names), key=lambda entry: (_rank(entry.paper), entry.place))


def list_figures(*names: str) -> list[Figure]:
    """Return figures by name, or all figures of papers, in the order of the papers.

    Args:
        names: figures ("guan2022/fig4.6") or papers ("guan2022"); all figures if none is given.

    Raises:
        UnknownName: there is no such figure or paper.
    """
    return sorted(_chosen(Figure, names), key=_place)


def judged_claim(run: Run, name: str) -> Judged:
    """Check a claim for a figure that shows what it says, at the scale and under the reading of the figure.

    Raises:
        UnknownName: there is no such claim.
    """
    (entry,) = list_claims(name)
    finding = entry.check(run.alone(entry.stream, run.reading))
    return Judged(entry.text, finding.evidence, finding.verdict, name)


E = TypeVar("E", bound=Entry)


def _chosen(kind: type[E], names: Sequence[str]) -> list[E]:
    """Return all entries of a kind, or only those named, as they were registered."""
    _discover()
    entries = {name: entry for name, entry in _ENTRIES.items() if isinstance(entry, kind)}
    papers = {entry.paper.key: entry.paper for entry in entries.values()}
    for name in names:
        if "/" in name and name not in entries:
            raise UnknownName(kind.__name__.lower(), name, entries)
        if "/" not in name and name not in papers:
            raise UnknownName("paper", name, papers)
    return [e for e in entries.values() if not names or e.name in names or e.paper.key in names]


def _rank(paper: Paper) -> int:
    return PAPERS.index(paper) if paper in PAPERS else len(PAPERS)


def _place(entry: Figure) -> tuple[int, list[Any]]:
    """Return a sort key that puts "fig2a" before "fig10"."""
    parts = re.split(r"(\d+)", entry.short)
    return _rank(entry.paper), [int(part) if part.isdigit() else part for part in parts]
