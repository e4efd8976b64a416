"""Pictures of reproduced figures: the paper's axes, with intervals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.canvas import (
    BOUND,
    DASHES,
    MARKERS,
    PALETTE,
    STYLE,
    add_head,
    add_legend,
    as_label,
    bare,
    new_figure,
    save_figure,
    series_colour,
    typeset,
)
from schedgym.extras import require

__all__ = ["Panel", "Series", "coinciding", "draw"]

WIDTH, ONE, ROW = 11.5, 8.0, 3.9  # inches: of two columns, of one panel, of a row
COLUMNS = 2
SAME = 0.01  # of the y axis: curves that are nowhere further apart cannot be told apart
WIDER = 1.8  # points by which a curve is wider than the one that it coincides with, and that lies on it
DPI = 110


@dataclasses.dataclass(frozen=True)
class Series:
    """A line, a curve or a row of bars.

    Attributes:
        label: name in the legend; equal labels have the same colour in all panels.
        x: positions on the x axis, or the names of categories.
        y: values, as many as x.
        low, high: ends of the intervals, as many as x; None: there are no intervals.
        bound: True if the series is a bound on the optimum, not a policy.
    """

    label: str
    x: Sequence[Any]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    bound: bool = False

    def __post_init__(self) -> None:
        for name in ("y", "low", "high"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.x):
                raise InvalidParameter(f"{self.label}: {name} has {len(values)} values, x {len(self.x)}")


@dataclasses.dataclass(frozen=True)
class Panel:
    """One pair of axes and the series drawn on it.

    Attributes:
        x_label, y_label: labels of the axes with units, as in the paper.
        series: in the order of the legend.
        title: e.g. "(a) jobs"; empty if there is only one panel.
        kind: "lines" (joined markers), "curves" (many points, no markers) or "bars" (categories).
        x_scale, y_scale: "linear" or "log".
        y_from_zero: True if the y axis starts at 0; used only if it is linear.
    """

    x_label: str
    y_label: str
    series: Sequence[Series]
    title: str = ""
    kind: str = "lines"
    x_scale: str = "linear"
    y_scale: str = "linear"
    y_from_zero: bool = True

    def __post_init__(self) -> None:
        if self.kind not in ("lines", "curves", "bars"):
            raise UnknownName("kind of panel", self.kind, ("lines", "curves", "bars"))


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


def draw(panels: Sequence[Panel], path: str | Path, title: str, subtitle: str) -> None:
    """Draw panels into one picture with one legend.

    Args:
        panels: at least one.
        path: ``.png``, ``.svg`` or ``.pdf`` file; an existing one is replaced atomically.
        title: first line of the heading.
        subtitle: second line of the heading.
    """
    matplotlib = require("matplotlib")
    labels = list(dict.fromkeys(s.label for panel in panels for s in panel.series))
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(WIDTH if columns > 1 else ONE, 1.1 + ROW * rows, DPI)
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            _panel(axes, panel, labels)
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        if len(labels) > 1:
            add_legend(figure, _handles(panels, labels))
        else:
            height = figure.get_figheight()
            figure.get_layout_engine().set(rect=(0.008, 0.02, 0.984, 1 - 0.64 / height - 0.02))
        add_head(figure, title, subtitle)
        save_figure(figure, path, small=True)


def _style(series: Series, labels: Sequence[str], kind: str) -> dict[str, Any]:
    if series.bound:
        return {"color": BOUND, "linestyle": (0, (4, 3)), "linewidth": 1.5, "zorder": 2}
    index = labels.index(series.label)
    dash = DASHES[(index // len(PALETTE)) % len(DASHES)]
    style = {"color": series_colour(index), "linestyle": dash, "linewidth": 1.7, "zorder": 3}
    if kind == "lines":
        mark = MARKERS[index % len(MARKERS)]
        style |= {"marker": mark, "markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.7}
    return style


def _panel(axes: Any, panel: Panel, labels: Sequence[str]) -> None:
    if panel.kind == "bars":
        _bars(axes, panel, labels)
    else:
        beneath = {
            own: len(group) - i - 1 for group in coinciding(panel).values() for i, own in enumerate(group)
        }
        for series in panel.series:
            style = _style(series, labels, panel.kind)
            style["linewidth"] += WIDER * beneath.get(series.label, 0)
            y = np.asarray(series.y, dtype=float)
            axes.plot(series.x, np.where(y > 0, y, np.nan) if panel.y_scale == "log" else y, **style)
            if series.low is not None and series.high is not None:
                colour = style["color"]
                axes.fill_between(series.x, series.low, series.high, color=colour, alpha=0.15, linewidth=0)
        if panel.x_scale == "log":
            axes.set_xscale("log")
        places = sorted({x for series in panel.series for x in series.x})
        if panel.kind == "lines" and len(places) <= 12 and not isinstance(places[0], str):
            ticker = require("matplotlib.ticker")
            axes.xaxis.set_major_locator(ticker.FixedLocator(places))
            axes.xaxis.set_minor_locator(ticker.NullLocator())
            axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    if panel.y_scale == "log":
        axes.set_yscale("log")
    elif panel.y_from_zero:
        least = min((min(s.y, default=0.0) for s in panel.series), default=0.0)
        axes.set_ylim(bottom=min(0.0, float(least)))
    axes.set_xlabel(typeset(panel.x_label))
    axes.set_ylabel(typeset(panel.y_label))
    if panel.title:
        axes.set_title(as_label(panel.title), loc="left", fontsize=10.5)
    bare(axes, "y" if panel.kind == "bars" else "both")


def _bars(axes: Any, panel: Panel, labels: Sequence[str]) -> None:
    categories = list(dict.fromkeys(x for series in panel.series for x in series.x))
    width = 0.8 / len(panel.series)
    for i, series in enumerate(panel.series):
        places = np.array([categories.index(x) for x in series.x]) + (i + 0.5) * width - 0.4
        colour = BOUND if series.bound else series_colour(labels.index(series.label))
        axes.bar(places, series.y, width * 0.92, color=colour, zorder=2)
        if series.low is not None and series.high is not None:
            y = np.asarray(series.y, dtype=float)
            below = np.clip(y - np.asarray(series.low, dtype=float), 0, None)
            above = np.clip(np.asarray(series.high, dtype=float) - y, 0, None)
            axes.errorbar(places, y, [below, above], fmt="none", ecolor="#222222", elinewidth=1, zorder=3)
    axes.set_xticks(range(len(categories)), [as_label(str(category)) for category in categories])
    axes.tick_params(axis="x", length=0)


def _handles(panels: Sequence[Panel], labels: Sequence[str]) -> list[Any]:
    lines, patches = require("matplotlib.lines"), require("matplotlib.patches")
    made: dict[str, Any] = {}
    for panel in panels:
        for series in panel.series:
            if series.label in made:
                continue
            style = _style(series, labels, panel.kind)
            if panel.kind == "bars":
                made[series.label] = patches.Patch(color=style["color"], label=as_label(series.label))
            else:
                made[series.label] = lines.Line2D([], [], label=as_label(series.label), **style)
    return [made[label] for label in labels]
