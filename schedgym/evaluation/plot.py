"""Pictures of comparisons: distributions with intervals, and paired differences beside them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from schedgym.core.files import check_output
from schedgym.errors import InvalidParameter
from schedgym.evaluation.canvas import (
    ASIDE,
    BOUND,
    DASHES,
    FORMATS,
    INK,
    MARKERS,
    STYLE,
    add_head,
    add_legend,
    as_label,
    bare,
    new_figure,
    save_figure,
    series_colour,
    spread,
    swept_axis,
    typeset,
)
from schedgym.evaluation.comparison import Evaluation, plain
from schedgym.evaluation.standings import setting_text, short_value
from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.evaluation.wording import axis_text
from schedgym.extras import require

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMATS", "plot_comparison"]

F8 = npt.NDArray[np.float64]

BOUND_LINE: dict[str, Any] = {"color": BOUND, "linestyle": (0, (4, 3))}
DECADE = 10.0
WIDTH = 11.5  # inches
NARROW = 7.0  # a narrower picture has its panels below one another, and smaller letters


def plot_comparison(
    evaluation: Evaluation,
    path: str | Path,
    *,
    reference: str | None = None,
    metric: str | None = None,
    title: str | None = None,
    subtitle: str = "",
    confidence: float = 0.95,
    width: float = WIDTH,
) -> None:
    """Draw a comparison into one picture.

    One setting: each policy's episodes with their quartiles, mean and interval, the bound, and each
    episode's ratio to the reference. A sweep: means with bands over the first swept parameter, the bound,
    and the ratios; a row of panels per combination of the other swept parameters. Ratios stand on a
    logarithmic axis; where a value is not positive, differences are drawn.

    Args:
        evaluation: result of :func:`~schedgym.evaluation.runner.compare`.
        path: ``.png``, ``.svg`` or ``.pdf``; replaced in one step.
        reference: policy that differences refer to; None: the id's, or the first one.
        metric: None: the objective.
        title: None: the id's title; "": neither title nor subtitle.
        subtitle: a second line.
        confidence: confidence level of the intervals.
        width: in inches; below 7, as in the column of a paper, panels stand below one another.

    Raises:
        InvalidParameter: for another kind of file, an empty result, or a width below 2.5.
        UnknownName: for a reference or a metric that it does not have.
        gymnasium.error.DependencyNotInstalled: without matplotlib.
    """
    check_output(path, FORMATS)
    if evaluation.frame.empty:
        raise InvalidParameter("nothing to draw: the result is empty")
    if not 2.5 <= width <= 40:
        raise InvalidParameter(f"width: must be from 2.5 to 40 inches, got {width}")
    matplotlib = require("matplotlib")
    shown = evaluation.metric_of(metric)
    variant = evaluation.problem.ids[evaluation.id]
    if reference is None:
        policies = evaluation.policies
        reference = variant.reference if variant.reference in policies else policies[0]
    label = shown.name.replace("_", " ") + (f" [{shown.unit}]" if shown.unit else "")
    if title is None:
        title = variant.title
    scale = 1.0 if width >= NARROW else 0.75
    style = {key: value * scale if key.endswith("size") else value for key, value in STYLE.items()}
    with matplotlib.rc_context(style):
        drawing = _Drawing(evaluation, shown.name, typeset(label), reference, confidence)
        drawing.width, drawing.letters, drawing.head = width, scale, 0.62 if title else 0.1
        figure = drawing.sweep() if evaluation.swept else drawing.single()
        if title:
            add_head(figure, title, subtitle)
        save_figure(figure, path)


def _dots(axes: Any, x: F8, y: F8, colour: str, size: float = 13, alpha: float = 0.4) -> None:
    axes.scatter(x, y, s=size, color=colour, alpha=alpha, linewidths=0, zorder=2)


def _handle(label: str, **style: Any) -> Any:
    """An entry of a legend."""
    return require("matplotlib.lines").Line2D([], [], label=label, **style)


def _scale(axis: Any, values: F8, narrow: bool = False) -> str:
    """Logarithmic where the range exceeds a decade, with a linear part around 0 where 0 occurs."""
    positive = values[np.isfinite(values) & (values > 0)]
    decades = math.log10(positive.max() / positive.min()) if positive.size else 0.0
    if decades <= 1 or (values < 0).any():
        return "linear"
    ticker = require("matplotlib.ticker")
    if (values == 0).any():
        _around_zero(axis, values)
        return "symlog"
    axis._set_axes_scale("log")
    subs: tuple[float, ...] = (1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)
    if narrow and decades > 1:
        subs = (1.0, 3.0) if decades < 1.7 else (1.0,)
    axis.set_major_locator(ticker.LogLocator(subs=subs, numticks=12))
    axis.set_minor_formatter(ticker.NullFormatter())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: axis_text(value)))
    return "log"


def _around_zero(axis: Any, values: F8, sign: str = "") -> None:
    """A symmetric logarithmic scale, linear below the least size (at most six decades under the largest)."""
    ticker = require("matplotlib.ticker")
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    threshold = 10.0 ** math.floor(math.log10(max(sizes.min(), sizes.max() / 1e6)))
    last = math.ceil(math.log10(sizes.max()))
    powers = range(round(math.log10(threshold)), last + 1)
    powers = powers[:: -(-len(powers) // 7)]
    ticks = [0.0, *(10.0**k for k in powers)]
    if (values < 0).any():
        ticks = [*(-(10.0**k) for k in reversed(powers)), *ticks]
    axis._set_axes_scale("symlog", linthresh=threshold)
    axis.set_major_locator(ticker.FixedLocator(ticks))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: axis_text(value, sign)))


def _ratio_axis(axis: Any, values: F8) -> None:
    """A logarithmic axis of ratios, with ticks at round ones."""
    ticker = require("matplotlib.ticker")
    known = values[np.isfinite(values) & (values > 0)]
    low, high = float(known.min()), float(known.max())
    margin = max((high / low) ** 0.04, 1.005)
    low, high = low / margin, high * margin
    axis._set_axes_scale("log")
    (axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim)(low, high)
    if high / low < 4:
        ticks = ticker.MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low, high)
        axis.set_major_locator(ticker.FixedLocator([tick for tick in ticks if low <= tick <= high]))
    else:
        subs = (
            (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high / low < 20 else (1.0, 3.0) if high / low < 300 else (1.0,)
        )
        axis.set_major_locator(ticker.LogLocator(subs=subs, numticks=12))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: axis_text(value)))


class _Drawing:
    """One comparison: the data and the settings that all its panels share."""

    def __init__(
        self, evaluation: Evaluation, metric: str, label: str, reference: str, confidence: float
    ) -> None:
        self.evaluation, self.metric, self.label = evaluation, metric, label
        self.reference, self.confidence = reference, confidence
        self.summary = evaluation.summary(metric, confidence)
        self.differences = evaluation.differences(reference, metric, confidence)
        self.policies, frame = evaluation.policies, evaluation.frame
        self.bounded = bool(self.summary["bound"].notna().any())
        self.width, self.letters, self.head = WIDTH, 1.0, 0.62  # inches, a factor, inches
        values = frame.loc[frame["metric"] == metric, "value"].to_numpy(dtype=float)
        shares = self.differences["relative"].to_numpy(dtype=float)
        self.ratios = bool((values > 0).all() and np.isfinite(shares).all())
        self.bound_hidden = False
        self.bound_label = "lower bound" if evaluation.objective.sign > 0 else "upper bound"
        self.interval = f"{confidence * 100:g}% interval"

    def colour(self, policy: str) -> str:
        return series_colour(self.policies.index(policy))

    def difference_label(self) -> str:
        if self.ratios:
            return f"{typeset(self.metric.replace('_', ' '))} / that of {as_label(self.reference)}"
        return f"difference to {as_label(self.reference)}: {self.label}"

    def compared(self, rows: pd.DataFrame) -> tuple[F8, F8, F8]:
        """Means of differences to the reference and the ends of their intervals, or of ratios."""
        names = (
            ("relative", "relative_low", "relative_high") if self.ratios else ("difference", "low", "high")
        )
        mean, low, high = (rows[name].to_numpy(dtype=float) + self.ratios for name in names)
        return mean, low, high

    def panels(self, rows: int, height: float, **more: Any) -> tuple[Any, Any]:
        """A figure with ``rows`` pairs of panels, side by side, or where it is narrow below one another.

        Returns:
            the figure, and its panels as an array [rows, 2].
        """
        if self.width >= NARROW:
            figure = new_figure(self.width, self.head + 0.75 + height * rows)
            return figure, figure.subplots(rows, 2, squeeze=False, **more)
        figure = new_figure(self.width, self.head + 0.6 + 2 * height * rows)
        return figure, figure.subplots(2 * rows, 1, squeeze=False).reshape(rows, 2)

    # one setting -----------------------------------------------------------------------------------

    def single(self) -> Any:
        ranked = self.summary.sort_values("mean", kind="stable")
        rows = list(ranked["policy"])
        ((_, comparison),) = self.evaluation.comparisons(self.metric)
        tables = {policy: table[0] for policy, table in comparison.tables.items()}
        lines = len(rows) + self.bounded
        wide = self.width >= NARROW
        figure, grid = self.panels(1, 0.58 + (0.52 if wide else 0.27) * lines, width_ratios=(1.15, 1))
        left, right = grid[0]
        for y, policy in enumerate(rows):
            self._strip(left, y, tables[policy], self.colour(policy))
        ticks, labels = list(range(len(rows))), [as_label(policy) for policy in rows]
        if self.bounded:
            bound = np.asarray(comparison.bounds)
            self._strip(left, len(rows), bound, BOUND)
            left.axvline(bound.mean(), **BOUND_LINE, linewidth=1.1, zorder=1)
            ticks.append(len(rows))
            labels.append(self.bound_label)
        values = np.concatenate(list(tables.values()))
        if self.bounded and (bound > 0).all():
            values = np.concatenate([values, bound])
        scale = _scale(left.xaxis, values, not wide)
        if scale == "linear":
            left.set_xlim(left=min(0.0, float(values.min())))
        if scale == "log":  # by what it can show: a bound of 0 would stretch the axis to the least float
            shown = np.concatenate([values, bound[bound > 0]]) if self.bounded else values
            margin = (shown.max() / shown.min()) ** 0.03
            left.set_xlim(shown.min() / margin, shown.max() * margin)
        if scale != "linear" and self.bounded and (bound <= 0).all() and (values > 0).all():
            self.bound_hidden = True
            left.annotate(
                "0 in every episode, off this axis",
                (0.02, len(rows)),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize=9.5 * self.letters,
                color=BOUND,
            )
        for axes in (left, right):
            axes.set_yticks(ticks, labels)
            axes.set_ylim(lines - 0.45, -0.55)
        left.set_xlabel(f"{self.label} of each episode")
        bare(left, "x")
        left.tick_params(axis="y", length=0)
        self._single_differences(right, rows, tables)
        bare(right, "x")
        right.tick_params(axis="y", length=0, labelleft=not wide)
        right.set_ylim((len(rows) if not wide else lines) - 0.45, -0.55)
        self._single_legend(figure)
        return figure

    def _strip(self, axes: Any, y: int, values: F8, colour: str) -> None:
        if len(values) > 1:
            _dots(axes, values, y + 0.44 * spread(values), colour, 13 * self.letters**2)
            low, high = np.quantile(values, [0.25, 0.75])
            bar = {"linewidth": 8 * self.letters, "solid_capstyle": "butt"}
            axes.plot([low, high], [y, y], color=colour, alpha=0.3, **bar)
        self._mean(axes, y, float(values.mean()), *bootstrap_interval(values, self.confidence), colour)

    def _mean(self, axes: Any, y: int, mean: float, low: float, high: float, colour: str) -> None:
        size = self.letters
        if math.isfinite(low):
            ends = {"color": INK, "markersize": 8 * size, "markeredgewidth": 1.8 * size, "zorder": 4}
            axes.plot([low, high], [y, y], color=INK, linewidth=1.8 * size, solid_capstyle="butt", zorder=4)
            axes.plot([low, high], [y, y], "|", **ends)
        mark = {"markersize": 7 * size, "markerfacecolor": colour, "markeredgecolor": "white", "zorder": 5}
        axes.plot([mean], [y], "D", **mark)

    def _single_differences(self, axes: Any, rows: list[str], tables: dict[str, F8]) -> None:
        base = tables[self.reference]
        by_policy = self.differences.set_index("policy")
        axes.axvline(float(self.ratios), color=INK, linewidth=1.0, zorder=1)
        shown = [np.array([float(self.ratios)])]
        for y, policy in enumerate(rows):
            text = "reference"
            if policy != self.reference:
                values = tables[policy]
                values = values / base if self.ratios else values - base
                mean, low, high = (float(part[0]) for part in self.compared(by_policy.loc[[policy]]))
                colour = self.colour(policy)
                if len(values) > 1:
                    _dots(axes, values, y + 0.44 * spread(values), colour, 13 * self.letters**2)
                    shown.append(values)
                shown.append(np.array([mean]))
                self._mean(axes, y, mean, low, high, colour)
                text = self._difference_text(mean, low, high)
            axes.annotate(
                text,
                (1.02, y),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize=9.5 * self.letters,
                color=ASIDE if policy == self.reference else INK,
                annotation_clip=False,
            )
        if self.ratios:
            _ratio_axis(axes.xaxis, np.concatenate(shown))
        elif len(rows) == 1:
            axes.set_xlim(-1, 1)
        axes.set_xlabel(self.difference_label())

    def _difference_text(self, mean: float, low: float, high: float) -> str:
        """A difference with its interval; ratios near 1 in percent."""
        known = math.isfinite(low)
        if not self.ratios:
            return f"{mean:+.3g}" + (f"  [{low:+.3g}, {high:+.3g}]" if known else "")
        if 0.5 <= mean <= 2:
            mean, low, high = (100 * (value - 1) for value in (mean, low, high))
            return f"{mean:+.3g}%" + (f"  [{low:+.3g}, {high:+.3g}]" if known else "")
        return f"× {mean:.3g}" + (f"  [{low:.3g}, {high:.3g}]" if known else "")

    def _single_legend(self, figure: Any) -> None:
        diamond = {
            "marker": "D",
            "markersize": 7 * self.letters,
            "markerfacecolor": "#999999",
            "markeredgecolor": "white",
        }
        handles = [
            _handle("one episode", marker="o", color="#999999", linestyle="", markersize=4),
            _handle("middle half", color="#999999", alpha=0.5, linewidth=8),
            _handle(f"mean and its {self.interval}", color=INK, linewidth=1.8, **diamond),
        ]
        if self.bounded and not self.bound_hidden:
            handles.append(_handle(f"mean {self.bound_label}", **BOUND_LINE, linewidth=1.1))
        add_legend(figure, handles, self.head)

    # a sweep ---------------------------------------------------------------------------------------

    def sweep(self) -> Any:
        first, *others = self.evaluation.swept
        episodes = self.evaluation.frame[self.evaluation.frame["metric"] == self.metric]
        tables = (episodes, self.summary, self.differences)
        panels: list[tuple[dict[str, Any], Any, Any, Any]] = [({}, *tables)]
        if others:
            rest = self.summary[others].drop_duplicates().to_dict("records")
            keys = [{str(name): plain(value) for name, value in key.items()} for key in rest]
            a, b, c = tables
            panels = [(key, _where(a, key), _where(b, key), _where(c, key)) for key in keys]
        figure, grid = self.panels(len(panels), 3.7 if self.width >= NARROW else 0.7 * self.width)
        values = list(dict.fromkeys(plain(value) for value in episodes[first]))
        for (left, right), (key, runs, summary, differences) in zip(grid, panels, strict=True):
            self._means(left, first, values, summary, runs)
            self._sweep_differences(right, first, values, differences)
            if key:
                left.set_title(as_label(setting_text(key)), loc="left", fontsize=10.5 * self.letters)
        self._sweep_legend(figure)
        return figure

    def _style(self, policy: str) -> dict[str, Any]:
        index = self.policies.index(policy)
        return {
            "color": self.colour(policy),
            "marker": MARKERS[index % len(MARKERS)],
            "linestyle": DASHES[(index // len(MARKERS)) % len(DASHES)],
            "linewidth": (2.4 if policy == self.reference else 1.6) * self.letters,
            "markersize": 6 * self.letters,
            "markeredgecolor": "white",
            "markeredgewidth": 0.7,
            "zorder": 4 if policy == self.reference else 3,
        }

    def _places(self, axes: Any, name: str, values: list[Any]) -> dict[Any, float]:
        """Positions of the settings on the x axis: by value if they are numbers, else side by side."""
        ticker = require("matplotlib.ticker")
        kind = swept_axis(values)
        numbers, self.logarithmic = kind != "category", kind == "log"
        if numbers and len(values) > 1:
            places = {v: float(v) for v in values}
            axes.set_xscale(kind)
        else:
            places = {v: float(i) for i, v in enumerate(values)}
            axes.set_xlim(-0.5, len(values) - 0.5)
        labels = [f"{v:g}" if numbers else as_label(short_value(v)) for v in values]
        axes.xaxis.set_major_locator(ticker.FixedLocator(list(places.values())))
        axes.xaxis.set_major_formatter(ticker.FixedFormatter(labels))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.set_xlabel(as_label(name.replace("_", " ")))
        return places

    def _beside(self, places: dict[Any, float], column: Any, policy: str) -> F8:
        """Positions of a policy's points: a little beside the setting's, so that equal means stay apart."""
        warp, back = (np.log, np.exp) if self.logarithmic else (np.asarray, np.asarray)
        at = warp(np.array([places[plain(value)] for value in column], dtype=float))
        stands = np.sort(warp(np.array(list(places.values()), dtype=float)))
        gap = float(np.diff(stands).min()) if len(stands) > 1 else 1.0
        share = self.policies.index(policy) / max(len(self.policies) - 1, 1) - 0.5
        width = min(0.16, 0.035 * (len(self.policies) - 1))
        return np.asarray(back(at + width * gap * share), dtype=float)

    def _means(
        self, axes: Any, name: str, values: list[Any], summary: pd.DataFrame, runs: pd.DataFrame
    ) -> None:
        places = self._places(axes, name, values)
        shown = summary["mean"].to_numpy()
        bounds = summary["bound"].to_numpy()
        if self.bounded and (bounds > 0).all():
            shown = np.concatenate([shown, bounds])
        scale = _scale(axes.yaxis, shown)
        floor = -math.inf
        if scale == "log":
            floor = float(shown.min()) / 2
            self.bound_hidden |= self.bounded and bool((bounds <= 0).any())
        for policy in self.policies:
            part = summary[summary["policy"] == policy]
            x = self._beside(places, part[name], policy)
            axes.plot(x, part["mean"], **self._style(policy))
            own = runs[runs["policy"] == policy]
            dots = own["value"].to_numpy()
            beside = self._beside(places, own[name], policy)
            _dots(axes, beside[dots > floor], dots[dots > floor], self.colour(policy), size=9, alpha=0.35)
            low = np.maximum(part["low"].to_numpy(), floor)
            axes.fill_between(
                x, low, part["high"], color=self.colour(policy), alpha=0.12, linewidth=0, zorder=2
            )
        if self.bounded:
            part = summary[summary["policy"] == self.policies[0]]
            x = np.array([places[plain(v)] for v in part[name]])
            axes.plot(x, part["bound"], **BOUND_LINE, linewidth=1.5, zorder=2)
        if scale == "linear":
            axes.set_ylim(bottom=min(0.0, float(np.nanmin(shown))))
        axes.set_ylabel(self.label)
        bare(axes, "y")

    def _sweep_differences(self, axes: Any, name: str, values: list[Any], differences: pd.DataFrame) -> None:
        places = self._places(axes, name, values)
        base = float(self.ratios)
        axes.axhline(base, color=self.colour(self.reference), linewidth=2.0 * self.letters, zorder=2)
        shown = [np.array([base])]
        for policy in self.policies:
            part = differences[differences["policy"] == policy]
            if part.empty:
                continue
            x = self._beside(places, part[name], policy)
            mean, low, high = self.compared(part)
            shown += [mean, low, high]
            axes.plot(x, mean, **self._style(policy))
            axes.fill_between(x, low, high, color=self.colour(policy), alpha=0.12, linewidth=0, zorder=1)
        ends = np.concatenate(shown)
        sizes = np.abs(ends[np.isfinite(ends) & (ends != 0)])
        if self.ratios:
            _ratio_axis(axes.yaxis, ends)
        elif sizes.size and sizes.max() > DECADE**2 * sizes.min():
            _around_zero(axes.yaxis, ends, "+")
        axes.set_ylabel(self.difference_label())
        bare(axes, "y")

    def _sweep_legend(self, figure: Any) -> None:
        handles = []
        for policy in self.policies:
            label = f"{policy} (reference)" if policy == self.reference else policy
            handles.append(_handle(as_label(label), **self._style(policy)))
        handles.append(_handle("one episode", marker="o", color="#999999", linestyle="", markersize=3.5))
        patch = require("matplotlib.patches").Patch
        handles.append(patch(color="#999999", alpha=0.35, linewidth=0, label=self.interval))
        if self.bounded:
            label = self.bound_label + (" (0: off the axis)" if self.bound_hidden else "")
            handles.append(_handle(label, **BOUND_LINE, linewidth=1.5))
        add_legend(figure, handles, self.head)


def _where(frame: pd.DataFrame, key: dict[Any, Any]) -> pd.DataFrame:
    keep = np.ones(len(frame), dtype=bool)
    for name, value in key.items():
        column = frame[name]
        keep &= (column.isna() if value is None else column == value).to_numpy()
    return frame[keep]
