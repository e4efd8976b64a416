"""Figures as experiments: turn runs into series, and write the files of a figure.

The data that are written are the series that are drawn, so data and picture always agree.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import Error as GymnasiumError

from schedgym.core.arrays import Floats
from schedgym.core.files import atomic_write
from schedgym.errors import SchedgymError
from schedgym.evaluation.canvas import draw_panels, save_figure
from schedgym.evaluation.comparison import Evaluation, plain
from schedgym.evaluation.engines import count_processes
from schedgym.evaluation.manifest import make_manifest
from schedgym.evaluation.pictures import Panel, Series
from schedgym.evaluation.plan import package_version
from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.evaluation.store import ResultsStore
from schedgym.extras import require
from schedgym.papers.judging import Judged
from schedgym.papers.readings import count_verdicts, sum_up
from schedgym.papers.registry import Figure, list_figures
from schedgym.papers.run import SCALES, Run

WIDTH, ALONE, HEIGHT = 11.5, 8.0, 3.9  # inches: of two panels, of a single one, of a row of panels
DPI = 110
SAME = 0.01  # of the y axis: curves that are nowhere further apart cannot be told apart
EPISODES = ".episodes.db"  # store of the episodes that were run for figures that are not made yet

# from runs to what is drawn --------------------------------------------------------------------------


def lines(
    played: Evaluation,
    x: str,
    metric: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    factor: float = 1.0,
) -> list[Series]:
    """Return means of a metric with 95% intervals over a swept parameter, one series per policy.

    Args:
        played: runs in which one parameter is swept.
        x: name of the swept parameter.
        metric: name of the metric; None: the objective.
        labels: policy -> label; policies without a label are left out. None: all policies, by their names.
        factor: factor by which values are multiplied, e.g. to change units.
    """
    table = played.summary(metric)
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


def bound(played: Evaluation, x: str, label: str = "lower bound") -> Series:
    """Return the mean bound on the objective over a swept parameter."""
    table = played.summary()
    rows = table[table["policy"] == played.policies[0]]
    return Series(
        label, [plain(value) for value in rows[x]], rows["bound"].astype(float).tolist(), bound=True
    )


def band(label: str, x: Sequence[Any] | Floats, episodes: Sequence[Floats]) -> Series:
    """Return the mean curve of several episodes with 95% intervals, point by point.

    Args:
        label: label of the series.
        x: positions on the x axis.
        episodes: values [len(x)] of each episode.
    """
    table = np.asarray(episodes, dtype=float)
    ends = [bootstrap_interval(column, resamples=2000) for column in table.T]
    low, high = ([end[i] for end in ends] for i in (0, 1))
    places = [plain(value) for value in np.asarray(x)]
    return Series(label, places, table.mean(axis=0).tolist(), low, high)


def shares_up_to(values: Floats, weights: Floats, places: Floats) -> Floats:
    """Return the share of the weight that belongs to values up to each place."""
    order = np.argsort(values, kind="stable")
    summed = np.concatenate([[0.0], np.cumsum(weights[order])])
    at = np.searchsorted(values[order], places, side="right")
    shares: Floats = summed[at] / summed[-1]
    return shares


def distribution(label: str, x: Floats, episodes: Sequence[Floats]) -> Series:
    """Return the share of values up to each x, as the mean over episodes with 95% intervals.

    Args:
        label: label of the series.
        x: positions on the x axis.
        episodes: values of each episode, in any order.
    """
    return band(label, x, [shares_up_to(values, np.ones(len(values)), x) for values in episodes])


def coinciding(panel: Panel) -> dict[str, list[str]]:
    """Return the lines of a panel that cannot be told apart: the label of the first -> those of all of them.

    Lines are compared where both have a value that the y axis can show. Bars never coincide.
    """
    if panel.kind == "bars":
        return {}
    logarithmic = panel.y_scale == "log"
    known = {
        own.label: {
            x: math.log10(y) if logarithmic else y
            for x, y in zip(own.x, own.y, strict=True)
            if y > 0 or not logarithmic
        }
        for own in panel.series
    }
    heights = [y for row in known.values() for y in row.values()]
    span = max(heights, default=0.0) - min([*heights] if logarithmic else [0.0, *heights], default=0.0)
    groups: dict[str, list[str]] = {}
    for label, own in known.items():
        for first, group in groups.items():
            both = own.keys() & known[first].keys()
            if both and all(abs(own[x] - known[first][x]) <= SAME * span for x in both):
                group.append(label)
                break
        else:
            groups[label] = [label]
    return {first: group for first, group in groups.items() if len(group) > 1}


def _told_apart(panel: Panel) -> Panel:
    """A panel of which curves are the wider, the more of those that coincide with them lie on them."""
    under = {own: len(group) - i - 1 for group in coinciding(panel).values() for i, own in enumerate(group)}
    series = [dataclasses.replace(own, under=under.get(own.label, 0)) for own in panel.series]
    return dataclasses.replace(panel, series=series)


# what is written -------------------------------------------------------------------------------------


def draw(panels: Sequence[Panel], path: str | Path, title: str, subtitle: str) -> None:
    """Draw panels into one picture with one legend; curves that coincide show beneath each other.

    Args:
        panels: at least one.
        path: ``.png``, ``.svg`` or ``.pdf`` file; an existing one is replaced atomically.
        title: first line of the heading.
        subtitle: second line of the heading.
    """
    width, told = WIDTH if len(panels) > 1 else ALONE, list(map(_told_apart, panels))
    save_figure(draw_panels(told, width, HEIGHT, title=title, subtitle=subtitle, dpi=DPI), path, small=True)


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


def _told(panels: Sequence[Panel]) -> Iterator[str]:
    """Say which curves of each panel coincide."""
    for panel in panels:
        for group in coinciding(panel).values():
            place = f"in {panel.title!r} " if panel.title else ""
            yield f"{place}the curves of {', '.join(group[:-1])} and {group[-1]} coincide"


def make_figure(entry: Figure, run: Run, folder: str | Path) -> dict[str, Any]:
    """Run the experiment of a figure, and write NAME.csv, NAME.png and then NAME.json.

    At the scale "paper" it is run under the default reading, which is drawn, and with ``run.all_readings``
    under the others, too, but for those of ``entry.only_small``: each takes as long again.

    Args:
        entry: the figure.
        run: scale and seed, and the runs that figures share.
        folder: folder of the files; created if it does not exist.

    Returns:
        the content of NAME.json: figure, title, source, scale, seed, seconds (of a core; runs that it shares
        with other figures are counted in full), sizes, remarks, reading (of what is drawn), claims (see
        :func:`judged_under`), verdict, command, files, code, manifest.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    run.spent.clear()
    fixed = () if run.small else entry.only_small if run.all_readings else entry.under
    defaults = {point.name: point.default for point in fixed}  # their reading is the first
    readings = {words: own for words, own in entry.readings.items() if defaults.items() <= own.items()}
    began, runs = time.process_time(), [run.alone(entry.name, own) for own in readings.values()]
    outcomes = dict(zip(readings, map(entry.make, runs), strict=True))
    outcome = next(iter(outcomes.values()))
    seconds = time.process_time() - began + sum(run.spent.values())
    if run.store is not None and count_processes(run.n_jobs) == 1:  # this process has run them
        seconds -= sum(own.ran for own in runs)
    claims = judged_under({reading: own.judged for reading, own in outcomes.items()})
    files = {kind: f"{entry.stem}.{kind}" for kind in ("csv", "png")}
    (folder / f"{entry.stem}.json").unlink(missing_ok=True)  # it speaks of other files than these
    data = io.StringIO()
    require("pandas").DataFrame(list(_table(outcome.panels))).to_csv(data, index=False, float_format="%.6g")
    words = (outcome.sizes, next(iter(outcomes)), f"seed {run.seed}", "shaded or whiskers: 95% intervals")
    subtitle = "; ".join(filter(None, words))  # sizes name what stands in for a trace
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
        "remarks": [*outcome.remarks, *_told(outcome.panels)],
        "reading": next(iter(outcomes)),
        "claims": claims,
        "verdict": count_verdicts(claim["verdict"] for claim in claims),
        "command": _command(entry, run),
        "files": files,
        "code": package_version(),
        "manifest": make_manifest(command=["schedgym", "reproduce", entry.name], seeds=[run.seed]),
    }
    with atomic_write(folder / f"{entry.stem}.json") as stream:
        stream.write(json.dumps(content, indent=1, allow_nan=False) + "\n")
    return content


def judged_under(judged: Mapping[str, Sequence[Judged]]) -> list[dict[str, Any]]:
    """Put the statements of a figure, judged under each reading, side by side.

    Args:
        judged: by the words of the reading, of which the first is the default: the same statements.

    Returns:
        For each statement claim (its text), name (if it is registered as a claim), measured (under the
        default), verdict (:func:`~schedgym.papers.readings.sum_up`), and readings: by their words, if there
        are several, measured and verdict under each.
    """
    texts = [[said.claim for said in own] for own in judged.values()]
    if any(own != texts[0] for own in texts):
        raise ValueError(f"a figure makes other statements under another reading: {texts}")
    rows = []
    for statements in zip(*judged.values(), strict=True):
        under = dict(zip(judged, statements, strict=True))
        default = statements[0]
        rows.append(
            {
                "claim": default.claim,
                "name": default.name,
                "measured": default.measured,
                "verdict": sum_up({reading: said.verdict for reading, said in under.items()}),
                "readings": {
                    reading: {"measured": said.measured, "verdict": str(said.verdict)}
                    for reading, said in under.items()
                    if reading
                },
            }
        )
    return rows


def _command(entry: Figure, run: Run) -> str:
    """Return the command that makes a figure as a run does, but for its seed."""
    scale = f" --scale {run.scale}" if run.scale != SCALES[0] else ""
    return entry.command + scale + (" --all-readings" if run.all_readings and not run.small else "")


def _kept(entry: Figure, run: Run, folder: Path) -> dict[str, Any] | None:
    """Return the content of NAME.json if an earlier run of the same code wrote all files, else None."""
    runs = (run, dataclasses.replace(run, all_readings=True))  # which has the default reading, too
    try:
        content = json.loads((folder / f"{entry.stem}.json").read_text(encoding="utf-8"))
        same = content["command"] in [_command(entry, own) for own in runs]
        same = same and (content["seed"], content["code"]) == (run.seed, package_version())
        there = all((folder / name).is_file() for name in content["files"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return content if there and same else None


def reproduce(
    *names: str,
    scale: str = "small",
    folder: str | Path = "reproduced",
    seed: int = 0,
    n_jobs: int = -1,
    again: bool = False,
    all_readings: bool = False,
    progress: bool | None = None,
    tell: Callable[[dict[str, Any], bool], None] | None = None,
) -> list[dict[str, Any]]:
    """Make figures, and write their files.

    Files that an earlier run of the same code, scale and seed has written are kept. Episodes that were run
    are kept in a store in the folder until all figures are made, so an interrupted run resumes with the
    episode at which it stopped. If a figure cannot be made, for example because its trace is missing, the
    others are made all the same.

    Args:
        names: figures or papers; all figures if none is given.
        scale: "small" (all within minutes), "paper" (the paper's sizes) or "tiny" (to test the code).
        folder: folder of the files.
        seed: seed of the workloads.
        n_jobs: number of processes; -1: one per core. Results do not depend on it.
        again: True to make figures again whose files exist.
        all_readings: True to run all readings at the papers' sizes, too.
        progress: True to show a progress bar; None: only if stderr is a terminal.
        tell: called with each figure's content, and with True if it was kept from an earlier run.

    Returns:
        the content of each figure's JSON file: see :func:`make_figure`; of one that could not be made
        {"figure": its name, "error": one line}.

    Raises:
        UnknownName: there is no such figure, paper or scale.
        InvalidParameter: a seed out of range.
        InvalidStore: if the store of the episodes cannot be written, or another process uses it.
    """
    entries, folder = list_figures(*names), Path(folder)
    run = Run(scale, seed, n_jobs, progress, all_readings=all_readings)
    folder.mkdir(parents=True, exist_ok=True)
    episodes = folder / EPISODES
    contents = []
    with ResultsStore(episodes, "w") as run.store:
        for entry in entries:
            kept = None if again else _kept(entry, run, folder)
            try:
                content = kept or make_figure(entry, run, folder)
            except (SchedgymError, GymnasiumError) as error:
                content = {"figure": entry.name, "error": " ".join(str(error).split())}
            if tell is not None:
                tell(content, kept is not None)
            contents.append(content)
    if not any("error" in content for content in contents):
        episodes.unlink(missing_ok=True)
    return contents
