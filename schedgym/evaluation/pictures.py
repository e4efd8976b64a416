"""What a picture shows, as data: panels of series, and the axes, marks and dashes that follow from these.

:mod:`~schedgym.evaluation.canvas` draws panels by matplotlib, :mod:`~schedgym.evaluation.figures` by plotly.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.wording import axis_text, effort_text

KINDS = ("lines", "curves", "steps", "bars", "dots", "halves", "means", "points")
SCALES = ("linear", "log", "value", "ratio", "difference", "share", "time")
#: marks of series: matplotlib's name, plotly's, and the same as a letter
MARKS = (
    *(("o", "circle", "●"), ("s", "square", "■"), ("D", "diamond", "◆"), ("^", "triangle-up", "▲")),
    *(("v", "triangle-down", "▼"), ("P", "cross", "✚"), ("X", "x", "✖")),
)
COLOURS = 14  # of the page; with further series they repeat, with another mark
PALE = 7  # colours that a colour-blind reader tells apart; further lines are dashed
DASHES = 4
DECADE = 10.0
MOST_TICKS = 7  # of a logarithmic axis
MOST_PLACES = 12  # values on the x axis that each have a tick
#: where ticks of a logarithmic axis may stand between powers of ten, the densest first
STEPS = ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))


@dataclasses.dataclass(frozen=True)
class Series:
    """A line, a curve, a row of bars or of marks.

    Attributes:
        label: name in the legend; equal labels have the same colour in all panels.
        x: positions on the x axis, or the names of categories.
        y: values, as many as x.
        low, high: ends of the intervals, of y, or in a panel with rows of x; None: there are no intervals.
        bound: True if the series is a bound on the optimum, not a policy.
        kind: None: that of the panel; else "lines" (joined marks), "curves" (many points, no marks), "steps"
            (curves that are constant between points), "bars" (of categories), "dots" (single episodes),
            "halves" (bars between the ends of the intervals), "means" or "points" (in the series' own mark).
        number: of its colour and mark; None: its label's place among the labels of the picture.
        under: number of curves that lie on it and hide it, for which it is wider.
        texts: what a page says of each point when it is touched, in lines; empty: nothing.
    """

    label: str
    x: Sequence[Any]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    bound: bool = False
    kind: str | None = None
    number: int | None = None
    under: int = 0
    texts: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("y", "low", "high"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.x):
                raise InvalidParameter(f"{self.label}: {name} has {len(values)} values, x {len(self.x)}")


@dataclasses.dataclass(frozen=True)
class Line:
    """A line through a whole panel.

    Attributes:
        axis: the axis on which its value stands, "x" or "y".
        value: the value.
        bound: text of a bound, which is dashed and in the legend; "": it is none.
        number: of the series whose colour it has; None: it is black.
    """

    axis: str
    value: float
    bound: str = ""
    number: int | None = None


@dataclasses.dataclass(frozen=True)
class Panel:
    """One pair of axes and what is drawn on it.

    Attributes:
        x_label, y_label: labels of the axes with units, as in the paper.
        series: in the order of the legend.
        title: e.g. "(a) jobs"; empty if there is only one panel.
        kind: of the series that have none of their own.
        x_scale, y_scale: "linear", "log", "value" (logarithmic where the values need it), "ratio"
            (logarithmic), "difference" (logarithmic on both sides of 0 where the values need it), "share"
            (from 0 to 1, in percent) or "time" (in seconds, logarithmic).
        y_from_zero: True if the axis of values starts at 0; used only if it is linear.
        rows: names of rows, the first on top: y is the number of a row, and values stand on the x axis.
        remarks: texts at the right end of the rows, which a page leaves out.
        lines: lines through the panel.
        apart: True if series stand a little beside each other, so that equal values do too; not on a page.
    """

    x_label: str
    y_label: str
    series: Sequence[Series]
    title: str = ""
    kind: str = "lines"
    x_scale: str = "linear"
    y_scale: str = "linear"
    y_from_zero: bool = True
    rows: Sequence[str] = ()
    remarks: Sequence[str] = ()
    lines: Sequence[Line] = ()
    apart: bool = False

    def __post_init__(self) -> None:
        for what, name, names in (
            *(("kind of panel", kind, KINDS) for kind in {self.kind, *map(self.kind_of, self.series)}),
            *(("scale", scale, SCALES) for scale in (self.x_scale, self.y_scale)),
        ):
            if name not in names:
                raise UnknownName(what, name, names)

    def kind_of(self, series: Series) -> str:
        """The kind of one of the panel's series."""
        return series.kind or self.kind

    @property
    def categories(self) -> list[str]:
        """The names on the x axis, as the series with the most has them; empty if it has numbers."""
        known = sorted(self.series, key=lambda own: len(set(own.x)), reverse=True)
        names = list(dict.fromkeys(x for series in known for x in series.x))
        return names if names and isinstance(names[0], str) else []

    def values_of(self, series: Series) -> Floats:
        """The values of a series, to which its intervals belong."""
        return np.asarray(series.x if self.rows else series.y, dtype=float)


def numbers_of(panels: Sequence[Panel]) -> dict[str, int]:
    """The number of each label, of which its colour and mark follow, in this order."""
    series = [own for panel in panels for own in panel.series]
    labels = list(dict.fromkeys(own.label for own in series))
    found = {own.label: labels.index(own.label) if own.number is None else own.number for own in series}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def appearance(number: int) -> tuple[int, int]:
    """The numbers of the mark and the dash of a series by its own number."""
    return (number // COLOURS + number) % len(MARKS), (number // PALE) % DASHES


def spread(values: Floats) -> Floats:
    """Vertical places of dots: dense values lie apart, in a fixed order and within +-0.5."""
    count = len(values)
    found = np.zeros(count)
    golden = (np.arange(count) * 0.6180339887) % 1.0 - 0.5
    found[np.argsort(values, kind="stable")] = golden
    return found * min(1.0, count / 6)


def swept_axis(values: Sequence[Any]) -> str:
    """The axis on which the values of a swept parameter stand: "category", "linear" or "log"."""
    numbers = [v for v in values if isinstance(v, (int, float, np.number)) and not isinstance(v, bool)]
    if len(numbers) < len(values) or not all(map(math.isfinite, numbers)):
        return "category"
    least, most = min(values), max(values)
    return "log" if len(set(values)) > 2 and least > 0 and most >= 4 * least else "linear"


def places(panel: Panel, place: int) -> Floats:
    """The positions of the panel's series at this place on the x axis; categories are numbered."""
    names = panel.categories
    stands = [
        np.array([names.index(x) for x in own.x] if names else own.x, dtype=float) for own in panel.series
    ]
    series, at = panel.series[place], stands[place]
    labels = list(dict.fromkeys(own.label for own in panel.series if not own.bound))
    if panel.kind == "bars":
        width, share = 0.8, (place + 0.5) / len(panel.series) - 0.5
    elif panel.apart and len(labels) > 1 and not series.bound:
        width = min(0.16, 0.035 * (len(labels) - 1))
        share = labels.index(series.label) / (len(labels) - 1) - 0.5
    else:
        return at
    warp, back = (np.log, np.exp) if panel.x_scale == "log" else (np.asarray, np.asarray)
    known = np.unique(warp(np.concatenate(stands)))
    gap = float(np.diff(known).min()) if len(known) > 1 else 1.0
    return np.asarray(back(warp(at) + width * gap * share), dtype=float)


# axes ----------------------------------------------------------------------------------------------


class Axis(NamedTuple):
    """How an axis is drawn.

    Attributes:
        scale: "linear", "log" or "symlog": logarithmic on both sides of 0, and linear around it.
        limits: its ends, the left or lower one first; None: as its values need it.
        ticks, texts: where ticks stand, and what is written there; no ticks: as the library does it.
        threshold: value up to which a "symlog" axis is linear.
    """

    scale: str = "linear"
    limits: tuple[float | None, float | None] = (None, None)
    ticks: Sequence[float] = ()
    texts: Sequence[str] = ()
    threshold: float = 0.0


def axis_of(panel: Panel, name: str, most: int = MOST_TICKS) -> Axis:
    """The axis "x" or "y" of a panel, with ``most`` ticks if it is logarithmic."""
    names = panel.categories if name == "x" else panel.rows
    if names:
        ends = (-0.5, len(names) - 0.5)
        return Axis("linear", ends if name == "x" else ends[::-1], range(len(names)), names)
    scale, carries = (panel.x_scale if name == "x" else panel.y_scale), (name == "x") == bool(panel.rows)
    points, values = (
        _shown(panel, name) if carries else (np.concatenate([own.x for own in panel.series]),) * 2
    )
    stands = np.unique(points)
    if not carries and panel.kind == "lines" and len(stands) <= MOST_PLACES:
        return Axis(scale, (None, None), stands.tolist(), [f"{value:g}" for value in stands])
    if scale == "share":
        ticks = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        return Axis("linear", (0.0, 1.04), ticks, [f"{tick:.0%}" for tick in ticks])
    sizes = np.abs(values if scale == "difference" else points)
    sizes, sign = sizes[sizes > 0], "+" if scale == "difference" else ""
    apart = sizes.max() / sizes.min() if sizes.size else 1.0
    if scale == "value" and apart > DECADE and (points >= 0).all():
        scale = "log" if (points > 0).all() else "symlog"
    if scale == "symlog" or (scale == "difference" and apart > DECADE**2):
        return _symlog(sizes, values, sign)
    values = values[values > 0] if scale in ("log", "ratio", "time") else values
    if scale in ("log", "ratio", "time") and values.size:
        margin = max((values.max() / values.min()) ** 0.05, 1.005)
        low, high = float(values.min() / margin), float(values.max() * margin)
        text = effort_text if scale == "time" else axis_text
        ticks = _log_ticks(low, high, most)
        return Axis("log", (low, high), ticks, list(map(text, ticks)))
    if not carries or scale == "difference" or not panel.y_from_zero or not values.size:
        return Axis()
    return Axis("linear", (min(0.0, float(values.min())), None))


def _shown(panel: Panel, name: str) -> tuple[Floats, Floats]:
    """The values by which the scale of an axis is chosen, and those for which it needs space."""
    points = [np.array([line.value for line in panel.lines if line.axis == name and not line.bound])]
    ends, dots = [], []
    for series in panel.series:
        values = panel.values_of(series)
        if series.bound and not (values > 0).all():
            continue  # a bound of 0 would stretch a logarithmic axis to the least number
        if panel.kind_of(series) == "dots" and not panel.rows:
            dots.append(values)
            continue
        points.append(values)
        if series.low is not None and series.high is not None:
            low = np.asarray(series.low, dtype=float)
            # not to an end far below its mean
            ends += [np.where(values > 0, np.maximum(low, values / DECADE), low), np.asarray(series.high)]
    chosen, space = (np.concatenate(parts) for parts in (points, [*points, *ends]))
    chosen, space = chosen[np.isfinite(chosen)], space[np.isfinite(space)]
    # single episodes may be far off: of those that are, there is no space for the low ones
    far = np.concatenate([*dots, np.empty(0)])
    return chosen, np.concatenate([space, far[far > space.min(initial=math.inf) / 2]])


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between the ends of a logarithmic axis, as many as there are, but at most ``most``."""
    if high < 4 * low:  # too short for parts of powers of ten
        size = 10.0 ** math.floor(math.log10((high - low) / most))
        for step in (size, 2 * size, 5 * size, 10 * size):
            first, last = math.ceil(low / step), math.floor(high / step)
            if last - first < most:
                break
        return [k * step for k in range(first, last + 1)]
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    for steps in STEPS:
        ticks = [step * 10.0**power for power in powers for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= most:
            break
    return ticks[:: -(-len(ticks) // most) or 1]


def _symlog(sizes: Floats, values: Floats, sign: str) -> Axis:
    """A logarithmic axis, linear below the least size (at most six decades under the largest)."""
    threshold = 10.0 ** math.floor(math.log10(max(sizes.min(), sizes.max() / 1e6)))
    powers = range(round(math.log10(threshold)), math.ceil(math.log10(sizes.max())) + 1)
    powers = powers[:: -(-len(powers) // MOST_TICKS)]
    ticks = [0.0, *(10.0**k for k in powers)]
    if (values < 0).any():
        ticks = [*(-(10.0**k) for k in reversed(powers)), *ticks]
    ends = (1.5 * min(float(values.min()), -threshold / 5), 1.5 * max(float(values.max()), threshold / 5))
    return Axis("symlog", ends, ticks, [axis_text(tick, sign) for tick in ticks], threshold)
