"""Panels drawn by matplotlib, and the common look of all pictures: colours, heads, legends, files.

Drawn through matplotlib's object interface on its own Agg canvas: no global state, no display. An SVG is
light or dark as its reader's screen is (:func:`svg_text`); PNG and PDF are light.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.core.files import atomic_write, check_output
from schedgym.drawing import hexadecimal, palette
from schedgym.errors import one_line
from schedgym.evaluation.pictures import (
    MARKS,
    MOST_TICKS,
    Axis,
    Panel,
    Series,
    appearance,
    axis_of,
    numbers_of,
    places,
    spread,
)
from schedgym.extras import require

FORMATS = (".png", ".svg", ".pdf")
#: Okabe and Ito's palette, told apart by colour-blind readers; yellow, too light for lines, is left out. The
#: first colours of series: see :func:`series_colour`
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#010101")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
BOUND, INK, FAINT = "#6e6e6e", "#222222", "#d9d9d9"
SUBTITLE = "#555555"
SHADE, PERIOD = "#f3f3f3", "#e2e2e2"  # every second row, and the time in which a job may run
PAPER = "#ffffff"
#: colour -> the one that takes its place on a dark screen; those of jobs and policies are seen on both
DARK = {
    PAPER: "#1e2129",
    INK: "#e3e6ea",
    BOUND: "#a3a9b1",
    FAINT: "#3d434c",
    SUBTITLE: "#aeb4bc",
    SHADE: "#262b33",
    PERIOD: "#3a414a",
    "#010101": "#f4f4f4",  # the last of PALETTE: black itself is left out of an SVG, as the default
}
DPI = 160
NARROW = 7.0  # inches; a narrower picture has its panels below one another, and smaller letters
HEAD = 0.62  # inches of the title and the second line
ANY = "#999999"  # of a mark in the legend that may have any colour
WIDER = 1.8  # points by which a curve is wider than one that lies on it and hides it
BOUND_LINE: dict[str, Any] = {"color": BOUND, "linestyle": (0, (4, 3)), "linewidth": 1.5, "zorder": 2}

STYLE: dict[str, Any] = {
    "font.size": 10.0,
    "axes.labelsize": 10.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#888888",
    "axes.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.fontsize": 9.5,
    "svg.hashsalt": "schedgym",
}


def series_colour(index: int) -> str:
    """The colour of a policy or line by its number; those after the palette's seven are those of jobs."""
    if index < len(PALETTE):
        return PALETTE[index]
    # the first five colours of jobs are in the palette, too
    return hexadecimal(palette(index - len(PALETTE) + 6)[-1])


def as_label(name: str) -> str:
    """A name, of a policy or a file, so that matplotlib shows it letter by letter: "$" begins no formula."""
    return one_line(name).replace("$", r"\$")


def typeset(text: str) -> str:
    """A text with its formulas as matplotlib writes them: slots^k, l_k norm."""
    text = re.sub(r"(?<=\w)\^([A-Za-z0-9]+)", r"$^{\1}$", as_label(text))
    return re.sub(r"(?<![\\\w])l_([A-Za-z0-9])\b", r"$\\ell_{\1}$", text)


def save_figure(figure: Any, path: str | Path, small: bool = False) -> None:
    """Write a figure; the file is replaced in one step.

    Args:
        figure: a figure of :func:`new_figure`.
        path: ``.png``, ``.svg`` or ``.pdf``.
        small: a PNG gets a palette of 255 colours, and a third of its size.
    """
    check_output(path, FORMATS)
    picture = io.BytesIO()
    kind = Path(path).suffix[1:].lower()
    if kind == "svg":
        picture.write(svg_text(figure).encode())
    else:
        figure.savefig(picture, format=kind)
    if kind == "png" and small:
        module = require("PIL.Image")
        image = module.open(picture).convert("RGB")
        # thin lines and legends keep their colours: the default takes those of large areas
        image = image.quantize(255, module.Quantize.MAXCOVERAGE, kmeans=1, dither=module.Dither.NONE)
        picture = io.BytesIO()
        image.save(picture, "png", optimize=True)
    with atomic_write(path, "wb") as stream:
        stream.write(picture.getvalue())


def svg_text(figure: Any, **style: Any) -> str:
    """A figure as SVG, whose colours change with the reader's screen: :data:`DARK`.

    Args:
        figure: a figure of :func:`new_figure`.
        **style: further settings of matplotlib, with "_" in place of ".".
    """
    stream = io.StringIO()
    settings = {name.replace("_", "."): value for name, value in style.items()}
    with require("matplotlib").rc_context({"svg.hashsalt": STYLE["svg.hashsalt"], **settings}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    rules = []
    for light, dark in DARK.items():
        # white letters stand on the colour of a job, which stays
        filled = "path" if light == PAPER else ""
        rules.append(f'{filled}[style*="fill: {light}"] {{ fill: {dark} !important }}')
        rules.append(f'[style*="stroke: {light}"] {{ stroke: {dark} !important }}')
    sheet = "\n".join(["<style>@media (prefers-color-scheme: dark) {", *rules, "}</style>"])
    before, defs, after = stream.getvalue().partition("<defs>")
    return f"{before}{sheet}\n{defs}{after}"


def new_figure(width: float, height: float, dpi: float = DPI) -> Any:
    """An empty figure of this size [inches] on its own canvas; ``dpi`` counts where it becomes a PNG."""
    figure = require("matplotlib.figure").Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    require("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
    return figure


def add_head(figure: Any, title: str, subtitle: str, show: Callable[[str], str] = typeset) -> None:
    """Title and second line, at the upper left; ``show`` is :func:`as_label` for a title made of names."""
    height = figure.get_figheight()
    head = figure.text(0.012, 1 - 0.1 / height, "", va="top", fontsize=12.5, weight="bold")
    _fit(figure, head, title, show, 9.0)
    line = figure.text(0.012, 1 - 0.36 / height, "", va="top", fontsize=9.5, color=SUBTITLE)
    _fit(figure, line, subtitle, as_label, 7.0, lines=2)


def _fit(
    figure: Any, text: Any, content: str, show: Callable[[str], str], least: float, lines: int = 1
) -> None:
    """Write a text of the head, smaller, broken and shortened until it is no wider than the figure."""
    renderer = figure.canvas.get_renderer()
    text.set_text(show(content))

    def width() -> float:
        return float(text.get_window_extent(renderer).width) / (0.976 * figure.bbox.width)

    if width() > 1:
        text.set_fontsize(max(least, text.get_fontsize() / width()))
    columns = len(content)
    while width() > 1 and columns > 2:
        columns -= 1
        broken = textwrap.wrap(content, columns, max_lines=lines, placeholder="…")
        text.set_text("\n".join(map(show, broken)))


def bare(axes: Any, grid: str) -> None:
    """Axes without a box, with grid lines across "x", "y" or "both"."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(length=3)


def add_legend(figure: Any, handles: list[Any], head: float = HEAD) -> None:
    """A legend below the panels, in as many columns as fit; the figure grows by its further rows.

    Args:
        figure: a figure of :func:`new_figure` with its panels.
        handles: entries of the legend.
        head: inches above the panels that are left free.
    """
    renderer = figure.canvas.get_renderer()
    for columns in range(len(handles), 0, -1):
        look = {"frameon": False, "handlelength": 2.2, "columnspacing": 1.6}
        legend = figure.legend(handles=handles, loc="lower left", ncols=columns, **look)
        if columns == 1 or legend.get_window_extent(renderer).width <= 0.99 * figure.bbox.width:
            break
        legend.remove()
    tall = legend.get_window_extent(renderer).height / figure.dpi
    height = figure.get_figheight() + max(0.0, tall - 0.3)  # more space below the panels, as high as before
    figure.set_figheight(height)
    bottom = (0.22 + tall) / height
    figure.get_layout_engine().set(rect=(0.008, bottom, 0.984, 1 - head / height - bottom))
    legend.set_bbox_to_anchor((0.006, 0.04 / height))


# panels --------------------------------------------------------------------------------------------


def draw_panels(
    panels: Sequence[Panel],
    width: float,
    height: float,
    *,
    title: str = "",
    subtitle: str = "",
    interval: str = "",
    dpi: float = DPI,
) -> Any:
    """Draw panels into one figure with one legend: two beside each other, or one if it is narrow.

    Args:
        panels: at least one.
        width: of the figure, in inches.
        height: of a row of panels, in inches.
        title: first line of the heading; "": there is no heading.
        subtitle: second line of the heading.
        interval: what the legend says of intervals; "": nothing.
        dpi: pixels an inch where it becomes a PNG.
    """
    numbers = numbers_of(panels)
    columns = 2 if width >= NARROW and len(panels) > 1 else 1
    rows = -(-len(panels) // columns)
    letters, head = (1.0 if width >= NARROW else 0.75), (HEAD if title else 0.1)
    style = {key: value * letters if key.endswith("size") else value for key, value in STYLE.items()}
    with require("matplotlib").rc_context(style):
        figure = new_figure(width, head + 0.5 + height * rows, dpi)
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for number, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
            _draw_panel(axes, panel, numbers, letters)
            if columns > 1 and number % 2 and panel.rows and panels[number - 1].rows:
                axes.set_ylim(grid[number - 1].get_ylim())  # rows that have their names at the left
                axes.tick_params(labelleft=False)
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        handles = _handles(panels, numbers, interval, letters)
        if len(handles) > 1:
            add_legend(figure, handles, head)
        else:
            share = (head + 0.02) / figure.get_figheight()
            figure.get_layout_engine().set(rect=(0.008, 0.02, 0.984, 0.98 - share))
        if title:
            add_head(figure, title, subtitle)
    return figure


def _style(series: Series, number: int, kind: str, letters: float) -> dict[str, Any]:
    if series.bound:
        return dict(BOUND_LINE)
    mark, dash = appearance(number)
    style: dict[str, Any] = {"color": series_colour(number), "zorder": 3}
    style |= {"linestyle": DASHES[dash], "linewidth": 1.7 * letters}
    if kind in ("lines", "points"):
        style |= {"marker": MARKS[mark][0], "markersize": 6 * letters}
        style |= {"markeredgecolor": "white", "markeredgewidth": 0.7}
    return style


def _draw_panel(axes: Any, panel: Panel, numbers: Mapping[str, int], letters: float) -> None:
    found = {"x": axis_of(panel, "x", MOST_TICKS if letters == 1.0 else 4), "y": axis_of(panel, "y")}
    for line in panel.lines:
        style: dict[str, Any] = {"color": INK, "linewidth": 1.0, "zorder": 1}
        if line.bound:
            style = BOUND_LINE | {"linewidth": 1.1}
        elif line.number is not None:
            style = {"color": series_colour(line.number), "linewidth": 2.0 * letters}
        (axes.axvline if line.axis == "x" else axes.axhline)(line.value, **style)
    for place, series in enumerate(panel.series):
        style = _style(series, numbers[series.label], panel.kind_of(series), letters)
        style["linewidth"] += WIDER * series.under
        _draw_series(axes, panel, place, style, found["x" if panel.rows else "y"], letters)
    for row, text in enumerate(panel.remarks):
        beside = {"transform": axes.get_yaxis_transform(), "va": "center"}
        axes.text(1.02, row, as_label(text), fontsize=9.5 * letters, **beside)
    for name, axis in found.items():
        _set_axis(axes, name, axis)
    axes.set_xlabel(typeset(panel.x_label))
    axes.set_ylabel(typeset(panel.y_label))
    if panel.title:
        axes.set_title(as_label(panel.title), loc="left", fontsize=10.5 * letters)
    bare(axes, "x" if panel.rows else "y" if panel.categories or panel.apart else "both")
    if panel.rows or panel.categories:
        axes.tick_params(axis="y" if panel.rows else "x", length=0)


def _set_axis(axes: Any, name: str, axis: Axis) -> None:
    ticker = require("matplotlib.ticker")
    if axis.scale != "linear":
        more = {"linthresh": axis.threshold} if axis.scale == "symlog" else {}
        getattr(axes, f"set_{name}scale")(axis.scale, **more)
    getattr(axes, f"set_{name}lim")(*axis.limits)
    if axis.ticks:
        own = getattr(axes, f"{name}axis")
        own.set_major_locator(ticker.FixedLocator(axis.ticks))
        own.set_major_formatter(
            ticker.FixedFormatter(["\n".join(map(as_label, text.split("\n"))) for text in axis.texts])
        )
        own.set_minor_locator(ticker.NullLocator())


def _draw_series(
    axes: Any, panel: Panel, place: int, style: dict[str, Any], values: Axis, letters: float
) -> None:
    """Draw the series at this place of a panel; ``values`` is the axis of its values."""
    series = panel.series[place]
    kind, colour, at = panel.kind_of(series), style["color"], places(panel, place)
    shown, y = panel.values_of(series), np.asarray(series.y, dtype=float)
    if values.scale == "log":
        shown = np.where(shown > 0, shown, np.nan)
    x, y = (shown, y) if panel.rows else (at, shown)
    low, high = (np.asarray(shown if end is None else end, dtype=float) for end in (series.low, series.high))
    if kind == "dots":
        lift = 0.44 * spread(shown) if panel.rows else np.zeros(len(y))
        size = (13 if panel.rows else 9) * letters**2
        axes.scatter(x, y + lift, s=size, color=colour, alpha=0.4, linewidths=0, zorder=2)
    elif kind == "halves":
        axes.hlines(y, low, high, color=colour, alpha=0.3, linewidth=8 * letters)
    elif kind in ("means", "points", "bars"):
        ends = {"xerr" if panel.rows else "yerr": np.clip([shown - low, high - shown], 0, None)}
        width, cap = (1.0 if kind == "bars" else 1.8) * letters, 4 * letters if kind == "means" else 0
        look = {"fmt": "none", "ecolor": INK, "elinewidth": width, "capsize": cap, "capthick": width}
        axes.errorbar(x, y, **ends, **look, zorder=4)
        if kind == "bars":
            axes.bar(x, y, 0.92 * 0.8 / len(panel.series), color=colour, zorder=2)
        else:
            mark = "D" if kind == "means" else style["marker"]
            look = {"markersize": 7 * letters, "markerfacecolor": colour, "markeredgecolor": "white"}
            axes.plot(x, y, mark, **look, zorder=5)
    else:
        steps = {"drawstyle": "steps-post"} if kind == "steps" else {}
        axes.plot(x, y, **style, **steps)
        if series.low is not None:
            floor = values.limits[0] if values.scale == "log" else None
            low = low if floor is None else np.maximum(low, floor)
            step = "post" if kind == "steps" else None
            axes.fill_between(x, low, high, step=step, color=colour, alpha=0.13, linewidth=0, zorder=1)


def _handles(panels: Sequence[Panel], numbers: Mapping[str, int], interval: str, letters: float) -> list[Any]:
    """The entries of the legend: each line by its name, and what a mark of any colour means."""
    lines, patches = require("matplotlib.lines"), require("matplotlib.patches")
    found: dict[str, Any] = {}

    def add(label: str, **style: Any) -> None:
        found.setdefault(label, lines.Line2D([], [], label=as_label(label), **style))

    kinds, drawn = set(), [(panel, series) for panel in panels for series in panel.series]
    for panel, series in sorted(drawn, key=lambda own: numbers[own[1].label]):
        kind = panel.kind_of(series)
        kinds.add(kind if panel.rows or kind == "dots" or series.low is None else "bands")
        if panel.rows or kind == "dots":
            continue  # rows have their names
        style = _style(series, numbers[series.label], kind, letters)
        if kind == "bars":
            label = as_label(series.label)
            found.setdefault(series.label, patches.Patch(color=style["color"], label=label))
        else:
            add(series.label, **style)
    if "dots" in kinds:
        add("one episode", marker="o", color=ANY, linestyle="", markersize=4)
    if "halves" in kinds:
        add("middle half", color=ANY, alpha=0.5, linewidth=8)
    if "means" in kinds and interval:
        mark = {"marker": "D", "markersize": 7 * letters, "markerfacecolor": ANY, "markeredgecolor": "white"}
        add(f"mean and its {interval}", color=INK, linewidth=1.8, **mark)
    if "bands" in kinds and interval:
        found[interval] = patches.Patch(color=ANY, alpha=0.35, linewidth=0, label=interval)
    for line in (line for panel in panels for line in panel.lines if line.bound):
        add(line.bound, **BOUND_LINE)
    return list(found.values())
