"""The frame of all figures: what one is, how figures are found, run, drawn and written.

A module per paper registers its figures with :func:`figure`; every module of this package is found and
imported, so that a new paper is a new file. A figure's function runs the policies through
:meth:`Run.play` and returns what is drawn and what it says about the paper's claims. What it draws is also
its data: there is one source of both.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import io
import json as json_module
import pkgutil
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from gymnasium.error import Error as GymnasiumError

from schedgym.core.files import atomic_write
from schedgym.core.random import EVALUATION_SEEDS
from schedgym.errors import InvalidParameter, SchedgymError, UnknownName
from schedgym.evaluation.manifest import make_manifest
from schedgym.evaluation.papers import PAPERS, Paper, get_paper
from schedgym.evaluation.runner import observed_sweep
from schedgym.evaluation.statistics import bootstrap_interval, plain, summarize
from schedgym.evaluation.sweeps import code_version
from schedgym.evaluation.wording import make_console
from schedgym.extras import require
from schedgym.reproduce.drawing import Panel, Series, draw
from schedgym.reproduce.judging import HOLDS, IN_PART, NOT_REPRODUCED, Reading, verdict_of
from schedgym.reproduce.played import Played

if TYPE_CHECKING:
    pass

__all__ = [
    "SCALES",
    "Figure",
    "Outcome",
    "Panel",
    "Played",
    "Run",
    "Series",
    "band",
    "bound",
    "distribution",
    "figure",
    "lines",
    "list_figures",
    "main",
    "make_figure",
    "reproduce",
]

F8 = npt.NDArray[np.float64]
T = TypeVar("T")
Observer = Callable[[Any], Any]

#: minutes of two cores for all figures; the paper's sizes; as small as it gets, to test the code
SCALES = ("small", "paper", "tiny")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a figure's function returns.

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


@dataclasses.dataclass
class Run:
    """How figures are made; what several figures share is run once.

    Attributes:
        scale: one of ``SCALES``.
        seed: of the workloads.
        n_jobs: processes; -1: one per core.
        progress: whether a bar may show; None: if stderr is a terminal.
    """

    scale: str = "small"
    seed: int = 0
    n_jobs: int = 1
    progress: bool | None = None
    _done: dict[str, tuple[Any, float]] = dataclasses.field(default_factory=dict, repr=False)
    _shared: float = dataclasses.field(default=0.0, repr=False)

    def size(self, small: T, paper: T, tiny: T) -> T:
        """The value for this run's scale."""
        return {"small": small, "paper": paper, "tiny": tiny}[self.scale]

    def once(self, key: str, make: Callable[[], T]) -> T:
        """What ``make`` returns; a second figure that asks for the same ``key`` is handed the same."""
        if key not in self._done:
            began = time.perf_counter()
            made = make()
            self._done[key] = made, time.perf_counter() - began
        else:
            self._shared += self._done[key][1]
        value: T = self._done[key][0]
        return value

    def play(
        self,
        id: str,
        policies: Sequence[str] | Mapping[str, str],
        episodes: int | None,
        grid: Mapping[str, Sequence[Any]] | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        observe: Observer | None = None,
    ) -> Played:
        """Run policies on the same workloads: :func:`~schedgym.evaluation.runner.observed_sweep`.

        Figures that ask for the same runs share them.

        Args:
            id: environment id.
            policies: names, or label -> name.
            episodes: of each setting; None: all windows of a trace.
            grid: parameter -> values, all combinations of which are run.
            parameters: of all settings.
            options: label -> options of the policy.
            observe: called with the environment at the end of an episode; a function of a module.
        """
        seen = None if observe is None else f"{observe.__module__}.{observe.__qualname__}"
        key = repr((id, policies, episodes, grid, parameters, options, seen, self.seed))

        def make() -> Played:
            return Played(
                *observed_sweep(
                    id,
                    policies,
                    grid or {},
                    episodes,
                    self.seed,
                    observe=observe,
                    parameters=parameters,
                    options=options,
                    n_jobs=self.n_jobs,
                    progress=self.progress,
                )
            )

        return self.once(key, make)


Make = Callable[[Run], Outcome]


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure or table of a paper as an experiment.

    Attributes:
        name: "004/fig4.6".
        paper: where it is from.
        title: what it shows, in our words.
        source: figure and section.
        make: runs it.
    """

    name: str
    paper: Paper
    title: str
    source: str
    make: Make

    @property
    def stem(self) -> str:
        """Name of its files, without the suffix."""
        return self.name.replace("/", "-")

    @property
    def command(self) -> str:
        """What makes it."""
        return f"schedgym reproduce {self.name}"


_FIGURES: dict[str, Figure] = {}


def figure(paper: Paper, name: str, *, title: str, source: str) -> Callable[[Make], Make]:
    """Decorator of a function: registers the figure ``paper.number/name``.

    Raises:
        ValueError: if the name is taken by another figure.
    """

    def enter(make: Make) -> Make:
        full = f"{paper.number}/{name}"
        known = _FIGURES.get(full)
        if known is not None and known.title != title:
            raise ValueError(f"figure {full!r} is registered already")
        _FIGURES[full] = Figure(full, paper, title, source, make)
        return make

    return enter


@functools.cache
def _discover() -> None:
    package = importlib.import_module("schedgym.reproduce")
    for module in sorted(found.name for found in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"{package.__name__}.{module}")


def _order(name: str) -> list[Any]:
    """Sorts "fig2a" before "fig10"."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def list_figures(names: Iterable[str] = ()) -> list[Figure]:
    """Figures by name, or all of a paper, in the papers' order.

    Args:
        names: of figures ("004/fig4.6", "distributed-jobs/fig4.6") or papers ("004"); none: all.

    Raises:
        UnknownName: there is no such figure or paper.
    """
    _discover()
    ordered = [_FIGURES[name] for name in sorted(_FIGURES, key=_order)]
    numbers = {paper.name: paper.number for paper in PAPERS}
    chosen: set[str] = set()
    for name in names:
        head, slash, tail = name.partition("/")
        full = f"{numbers.get(head, head)}{slash}{tail}"
        if slash and full not in _FIGURES:
            raise UnknownName("figure", name, _FIGURES)
        paper = None if slash else get_paper(name)
        chosen |= {entry.name for entry in ordered if entry.name == full or entry.paper == paper}
    return [entry for entry in ordered if not chosen or entry.name in chosen]


# from runs to what is drawn --------------------------------------------------------------------------


def lines(
    played: Played,
    x: str,
    metric: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    factor: float = 1.0,
) -> list[Series]:
    """Means of a metric with 95% intervals over a swept parameter, a series per policy.

    Args:
        played: one parameter of which is swept.
        x: its name.
        metric: None: the objective.
        labels: policy -> label; policies that are not in it are left out. None: all.
        factor: of the values, e.g. to other units.
    """
    table = summarize(played.frame, metric)
    made = []
    for policy in played.policies:
        if labels is not None and policy not in labels:
            continue
        rows = table[table["policy"] == policy]
        places = [plain(value) for value in rows[x]]
        columns = (rows[name].to_numpy(dtype=float) * factor for name in ("mean", "low", "high"))
        mean, low, high = (column.tolist() for column in columns)
        made.append(Series(policy if labels is None else labels[policy], places, mean, low, high))
    return made


def bound(played: Played, x: str, label: str = "lower bound", factor: float = 1.0) -> Series:
    """Mean of the bound on the objective over a swept parameter."""
    table = summarize(played.frame)
    rows = table[table["policy"] == played.policies[0]]
    values = rows["bound"].to_numpy(dtype=float) * factor
    return Series(label, [plain(value) for value in rows[x]], values.tolist(), bound=True)


def band(label: str, x: Sequence[Any] | F8, episodes: Sequence[F8]) -> Series:
    """Mean curve of several episodes with 95% intervals, point by point.

    Args:
        label: of the series.
        x: places.
        episodes: values [len(x)] of each episode.
    """
    table = np.asarray(episodes, dtype=float)
    ends = [bootstrap_interval(column, resamples=2000) for column in table.T]
    low, high = ([end[i] for end in ends] for i in (0, 1))
    places = [plain(value) for value in np.asarray(x)]
    return Series(label, places, table.mean(axis=0).tolist(), low, high)


def distribution(label: str, x: F8, episodes: Sequence[F8], weights: Sequence[F8] | None = None) -> Series:
    """Cumulative distribution: the share of the values up to each place, mean over episodes, 95% intervals.

    Args:
        label: of the series.
        x: places.
        episodes: values of each episode, in any order.
        weights: of the values of each episode, e.g. durations; None: all count the same.
    """
    shares = []
    for i, values in enumerate(episodes):
        order = np.argsort(values, kind="stable")
        own = np.ones(len(values)) if weights is None else np.asarray(weights[i], dtype=float)[order]
        summed = np.concatenate([[0.0], np.cumsum(own)])
        shares.append(summed[np.searchsorted(np.asarray(values)[order], x, side="right")] / summed[-1])
    return band(label, x, shares)


# what is written -------------------------------------------------------------------------------------


def _table(panels: Sequence[Panel]) -> Iterator[dict[str, Any]]:
    for number, panel in enumerate(panels):
        for series in panel.series:
            for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
                yield {
                    "panel": panel.title or str(number + 1),
                    "series": series.label,
                    "x": plain(x),
                    "y": float(y),
                    "low": None if series.low is None else float(series.low[i]),
                    "high": None if series.high is None else float(series.high[i]),
                }


def make_figure(entry: Figure, run: Run, folder: str | Path) -> dict[str, Any]:
    """Run a figure, and write NAME.csv, NAME.png and, as the last, NAME.json.

    Args:
        entry: the figure.
        run: how.
        folder: for the files; made if it is not there.

    Returns:
        the content of NAME.json: figure, title, source, scale, seed, seconds (runs that it shares with other
        figures are counted in full), sizes, remarks, claims (dicts with claim, measured, verdict), verdict,
        command, files, code, manifest.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    began, run._shared = time.perf_counter(), 0.0
    outcome = entry.make(run)
    seconds = time.perf_counter() - began + run._shared
    files = {kind: f"{entry.stem}.{kind}" for kind in ("csv", "png")}
    data = io.StringIO()
    require("pandas").DataFrame(list(_table(outcome.panels))).to_csv(data, index=False, float_format="%.6g")
    subtitle = f"{outcome.sizes}; seed {run.seed}; shaded or whiskers: 95% intervals"
    draw(outcome.panels, folder / files["png"], f"{entry.source}: {entry.title}", subtitle)
    with atomic_write(folder / files["csv"]) as stream:
        stream.write(data.getvalue())
    content = {
        "figure": entry.name,
        "title": entry.title,
        "source": entry.source,
        "scale": run.scale,
        "seed": run.seed,
        "seconds": round(seconds, 1),
        "sizes": outcome.sizes,
        "remarks": list(outcome.remarks),
        "claims": [dataclasses.asdict(reading) for reading in outcome.readings],
        "verdict": verdict_of(reading.verdict for reading in outcome.readings),
        "command": entry.command + (f" --scale {run.scale}" if run.scale != SCALES[0] else ""),
        "files": files,
        "code": code_version(),
        "manifest": make_manifest(command=["schedgym", "reproduce", entry.name], seeds=[run.seed]),
    }
    with atomic_write(folder / f"{entry.stem}.json") as stream:
        stream.write(json_module.dumps(content, indent=1, allow_nan=False) + "\n")
    return content


def _kept(entry: Figure, run: Run, folder: Path) -> dict[str, Any] | None:
    """What an earlier run of the same code wrote, if it did."""
    try:
        content = json_module.loads((folder / f"{entry.stem}.json").read_text(encoding="utf-8"))
        own = (content["figure"], content["scale"], content["seed"], content["code"])
        there = all((folder / name).is_file() for name in content["files"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return content if there and own == (entry.name, run.scale, run.seed, code_version()) else None


def reproduce(
    names: Iterable[str] = (),
    scale: str = "small",
    folder: str | Path = "reproduced",
    seed: int = 0,
    n_jobs: int = -1,
    *,
    again: bool = False,
    progress: bool | None = None,
    tell: Callable[[dict[str, Any], bool], None] | None = None,
) -> list[dict[str, Any]]:
    """Make figures, and write their files.

    What an earlier run of the same code, scale and seed has written is kept, so a run that was cut off goes
    on with the figure that it was at. A figure that cannot be made (its trace is not there) does not keep the
    others from being made.

    Args:
        names: of figures or papers; none: all.
        scale: "small" (all within minutes), "paper" (the paper's sizes) or "tiny" (to test the code).
        folder: for the files.
        seed: of the workloads.
        n_jobs: processes; -1: one per core. Values do not depend on it.
        again: whether figures are made again that are there.
        progress: whether a bar may show; None: if stderr is a terminal.
        tell: called with each figure's content, and whether it was kept.

    Returns:
        the content of each figure's JSON file: see :func:`make_figure`; of one that could not be made
        {"figure": its name, "error": one line}.

    Raises:
        UnknownName: there is no such figure, paper or scale.
        InvalidParameter: a seed out of range.
    """
    if scale not in SCALES:
        raise UnknownName("scale", scale, SCALES)
    if not 0 <= seed < EVALUATION_SEEDS:
        raise InvalidParameter(f"seed: must be from 0 to {EVALUATION_SEEDS - 1}, got {seed}")
    run = Run(scale, seed, n_jobs, progress)
    contents = []
    for entry in list_figures(names):
        kept = None if again else _kept(entry, run, Path(folder))
        try:
            content = kept or make_figure(entry, run, folder)
        except (SchedgymError, GymnasiumError) as error:
            content = {"figure": entry.name, "error": " ".join(str(error).split())}
        if tell is not None:
            tell(content, kept is not None)
        contents.append(content)
    return contents


def main(
    names: Sequence[str] = (),
    scale: str = "small",
    folder: str | Path = "reproduced",
    seed: int = 0,
    n_jobs: int = -1,
    again: bool = False,
    show: bool = False,
) -> int:
    """Make figures, and print each claim beside what was measured.

    Args:
        names: as for :func:`reproduce`, as are the others.
        scale: small, paper or tiny.
        folder: for the files.
        seed: of the workloads.
        n_jobs: processes.
        again: whether figures are made again that are there.
        show: only list the figures.

    Returns:
        0, or 1 if a figure could not be made.
    """
    console = make_console()
    escape = require("rich.markup").escape
    if show:
        table = require("rich.table").Table(box=require("rich.box").SIMPLE_HEAD, pad_edge=False)
        for heading in ("figure", "source", "shows"):
            table.add_column(heading)
        for entry in list_figures(names):
            table.add_row(escape(entry.name), escape(entry.source), escape(entry.title))
        console.print(table)
        return 0
    colours = {HOLDS: "green", IN_PART: "yellow", NOT_REPRODUCED: "magenta"}

    def tell(content: dict[str, Any], kept: bool) -> None:
        if "error" in content:
            text = f"{content['figure']} cannot be made: {content['error']}"
            console.print(escape(text), style="bold red", soft_wrap=True)
            return
        note = "kept from an earlier run" if kept else f"{content['seconds']:.1f} s"
        console.print(f"[bold]{escape(content['figure'])}[/bold] {escape(content['title'])} ({note})")
        console.print(f"  {escape(content['sizes'])}", soft_wrap=True)
        for reading in content["claims"]:
            verdict = reading["verdict"]
            console.print(f"  [{colours[verdict]}]{verdict}[/]: {escape(reading['claim'])}", soft_wrap=True)
            console.print(f"    {escape(reading['measured'])}", soft_wrap=True)
        for remark in content["remarks"]:
            console.print(f"  {escape(remark)}", soft_wrap=True, style="dim")

    contents = reproduce(names, scale, folder, seed, n_jobs, again=again, tell=tell)
    verdicts = [content.get("verdict", "not made") for content in contents]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    console.print(f"{len(contents)} figures, scale {scale}, seed {seed}: {counts}; in {escape(str(folder))}/")
    return int("not made" in verdicts)
