"""The common look of all pictures: colours, figures, heads, legends, files.

Drawn through matplotlib's object interface on its own Agg canvas: no global state, no display. An SVG is
light or dark as its reader's screen is (:func:`svg_text`); PNG and PDF are light.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.files import atomic_write, check_output
from schedgym.drawing import hexadecimal, palette
from schedgym.errors import one_line
from schedgym.extras import require

__all__ = [
    "ASIDE",
    "BOUND",
    "DARK",
    "DASHES",
    "FAINT",
    "FORMATS",
    "INK",
    "MARKERS",
    "PALETTE",
    "PAPER",
    "PERIOD",
    "SHADE",
    "STYLE",
    "add_head",
    "add_legend",
    "as_label",
    "bare",
    "new_figure",
    "save_figure",
    "series_colour",
    "spread",
    "svg_text",
    "swept_axis",
    "typeset",
]

FORMATS = (".png", ".svg", ".pdf")
#: Okabe and Ito's palette, told apart by colour-blind readers; yellow, too light for lines, is left out. The
#: first colours of series: see :func:`series_colour`
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#010101")
MARKERS = "osD^vPXph*<>8d"
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
BOUND, INK, FAINT = "#6e6e6e", "#222222", "#d9d9d9"
SUBTITLE, ASIDE = "#555555", "#777777"  # texts of less weight
SHADE, PERIOD = "#f3f3f3", "#e2e2e2"  # every second row, and the time in which a job may run
PAPER = "#ffffff"
#: colour -> the one that takes its place on a dark screen; those of jobs and policies are seen on both
DARK = {
    PAPER: "#1e2129",
    INK: "#e3e6ea",
    BOUND: "#a3a9b1",
    FAINT: "#3d434c",
    SUBTITLE: "#aeb4bc",
    ASIDE: "#9ba2ab",
    SHADE: "#262b33",
    PERIOD: "#3a414a",
    "#010101": "#f4f4f4",  # the last of PALETTE: black itself is left out of an SVG, as the default
}
DPI = 160

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


def spread(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Vertical places of dots: dense values lie apart, in a fixed order and within +-0.5."""
    count = len(values)
    places = np.zeros(count)
    golden = (np.arange(count) * 0.6180339887) % 1.0 - 0.5
    places[np.argsort(values, kind="stable")] = golden
    return places * min(1.0, count / 6)


def swept_axis(values: Sequence[Any]) -> str:
    """The axis on which the values of a swept parameter stand: "category", "linear" or "log"."""
    numbers = [v for v in values if isinstance(v, (int, float, np.number)) and not isinstance(v, bool)]
    if len(numbers) < len(values) or not all(map(math.isfinite, numbers)):
        return "category"
    least, most = min(values), max(values)
    return "log" if len(set(values)) > 2 and least > 0 and most >= 4 * least else "linear"


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


def add_legend(figure: Any, handles: list[Any], head: float = 0.62) -> None:
    """A legend below the panels, in as many columns as fit; the figure grows by its further rows.

    Args:
        figure: a figure of :func:`new_figure` with its panels.
        handles: entries of the legend.
        head: inches above the panels that are left free.
    """
    renderer = figure.canvas.get_renderer()
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(
            handles=handles,
            loc="lower left",
            ncols=columns,
            frameon=False,
            handlelength=2.2,
            columnspacing=1.6,
        )
        if columns == 1 or legend.get_window_extent(renderer).width <= 0.99 * figure.bbox.width:
            break
        legend.remove()
    tall = legend.get_window_extent(renderer).height / figure.dpi
    height = figure.get_figheight() + max(0.0, tall - 0.3)  # more space below the panels, as high as before
    figure.set_figheight(height)
    bottom = (0.22 + tall) / height
    figure.get_layout_engine().set(rect=(0.008, bottom, 0.984, 1 - head / height - bottom))
    legend.set_bbox_to_anchor((0.006, 0.04 / height))
