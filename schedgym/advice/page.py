"""The result of :func:`schedgym.advise` as tables of texts, as plain text, and as a page with a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from schedgym.core.files import atomic_write
from schedgym.errors import printable
from schedgym.evaluation.canvas import BOUND, PALETTE, STYLE, as_label, bare, new_figure, svg_text
from schedgym.evaluation.gantt import plot_schedule
from schedgym.evaluation.wording import (
    TIME_UNITS,
    interval_text,
    make_templates,
    outcome_text,
    percent_text,
    time_text,
)
from schedgym.extras import require

__all__ = ["Sheet", "conclusions", "draw", "draw_schedule", "sheets", "text_of", "write_page"]

ROWS = 12  # machines of a schedule


class Sheet(NamedTuple):
    """A table of texts; a row that is None is a line between rows."""

    title: str
    headings: list[str]
    rows: list[list[str] | None]


def sheets(advice: Any) -> list[Sheet]:
    """All tables of an :class:`~schedgym.advice.verdict.Advice`."""
    found = [_comparison(advice.comparison, "The log at its own load")]
    if advice.ramp:
        last = advice.ramp[-1]
        found.append(_ramp((advice.comparison, *advice.ramp)))
        if last.differ:
            found.append(_comparison(last, f"The log at {last.factor:g} times its load"))
    if advice.replay is not None:
        found += [_record(advice.replay), _hours(advice.replay)]
    return found


def conclusions(advice: Any) -> list[str]:
    """The verdicts, and what to bear in mind."""
    lines = [] if advice.replay is None else [advice.replay.verdict]
    what = "Times" if advice.comparison.outcome.timed else "Values"
    lines += [
        advice.verdict,
        f"{what} are means over the windows; *: the interval excludes 0.",
        *advice.notes,
    ]
    needs = "; ".join(f"{name} {why}" for name, why in advice.others.items())
    return [*lines, f"The log feeds {advice.problem}; of the other problems, {needs}."]


def text_of(advice: Any) -> str:
    """All of it as plain text."""
    lines = list(advice.read)
    for sheet in sheets(advice):
        rows = [sheet.headings, *(row for row in sheet.rows if row is not None)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines += ["", sheet.title]
        lines += [
            "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
    return printable("\n".join([*lines, "", *conclusions(advice)]))


def _comparison(comparison: Any, title: str) -> Sheet:
    reference, outcome = comparison.reference, comparison.outcome
    less = outcome.better == "min"
    tail = ["p95", "longest"] if less else ["p5", "least"]

    def show(value: float) -> str:
        return outcome_text(outcome, value)

    def signed(value: float) -> str:
        return ("+" if value > 0 else "") + show(value)

    headings = ["policy", f"mean {outcome.name}", "95% interval", f"vs {reference}", "interval of it", "[%]"]
    headings += [*tail, "must know", "policy time [s]"]
    rows: list[list[str] | None] = []
    for row in comparison.table().to_dict("records"):
        low, high = row["difference_low"], row["difference_high"]
        same = row["policy"] == reference
        mark = " *" if low > 0 or high < 0 else ""
        rows.append(
            [
                row["policy"],
                show(row["mean"]),
                interval_text(row["low"], row["high"], show),
                "reference" if same else signed(row["difference"]) + mark,
                "" if same else interval_text(low, high, signed),
                "" if same else percent_text(100 * row["relative"]),
                *(show(row[name]) for name in tail),
                row["knows"] or "-",
                f"{row['seconds']:.2g}",
            ]
        )
    if comparison.run.bound is not None:
        label = f"bound: no policy has {'less' if less else 'more'}"
        rows += [None, [label, show(comparison.run.bound), *[""] * 8]]
    return Sheet(title, headings, rows)


def _ramp(comparisons: Sequence[Any]) -> Sheet:
    policies, outcome = list(comparisons[-1].run.outcomes), comparisons[-1].outcome
    rows: list[list[str] | None] = []
    for one in comparisons:
        means = (float(one.run.means(policy).mean()) for policy in policies)
        rows.append([f"{one.factor:g}x", *(outcome_text(outcome, mean) for mean in means)])
    title = f"Mean {outcome.name} at multiples of the log's load"
    return Sheet(title, ["load", *policies], rows)


def _record(replay: Any) -> Sheet:
    headings = ["replay under", "jobs", "recorded median", "p90", "replayed median", "p90 of it"]
    headings += ["median error", "p90 error", "mean error"]
    names = ["recorded median", "recorded p90", "predicted median", "predicted p90"]
    names += ["median |error|", "p90 |error|", "mean error"]
    rows: list[list[str] | None] = [
        [row["policy"], str(row["jobs"]), *(time_text(row[name]) for name in names)]
        for row in replay.table().to_dict("records")
    ]
    return Sheet("Waits in the replay, and as the log has recorded them", headings, rows)


def _hours(replay: Any) -> Sheet:
    frame = replay.by_hour()
    times = [name for name in frame.columns if name not in ("hour", "jobs")]
    rows: list[list[str] | None] = [
        [f"{row['hour']:02d}", str(row["jobs"]), *(time_text(row[name]) for name in times)]
        for row in frame.to_dict("records")
    ]
    clock = "hour of the day (UTC)" if replay.dated else "hour of the day, by the log's clock"
    return Sheet(f"The same by {clock}", ["hour", "jobs", *times], rows)


# the page ------------------------------------------------------------------------------------------


def write_page(advice: Any, path: str | Path, title: str) -> None:
    """Write one HTML file with all of it; it needs no other file and no network.

    Args:
        advice: an :class:`~schedgym.advice.verdict.Advice`.
        path: of the file, which is replaced in one step.
        title: name of the log.

    Raises:
        gymnasium.error.DependencyNotInstalled: without the extras ``eval`` and ``report``.
    """
    source = (Path(__file__).parent / "advice.html").read_text(encoding="utf-8")
    text = (
        make_templates()
        .from_string(source)
        .render(
            title=title,
            advice=advice,
            sheets=sheets(advice),
            lines=conclusions(advice),
            picture=_svg(draw, advice),
            schedules=[(policy, _svg(draw_schedule, advice, policy)) for policy in advice.stretch.records],
        )
    )
    with atomic_write(path) as stream:
        stream.write(text)


def _svg(make: Callable[..., Any], *arguments: Any) -> str:
    """A picture as an element of the page."""
    with require("matplotlib").rc_context(STYLE):
        text = svg_text(make(*arguments), svg_fonttype="none")
    return text[text.index("<svg") :]


def draw_schedule(advice: Any, policy: str) -> Any:
    """A figure: the schedule of the advice's stretch of the log under one of its policies."""
    stretch = advice.stretch
    return plot_schedule(stretch.records[policy], policy=policy, span=stretch.span, most_rows=ROWS)


def draw(advice: Any) -> Any:
    """A figure: mean waits with their intervals, and beside them the replay by hour, or the loads tried."""
    wide = advice.replay is not None or bool(advice.ramp)
    figure = new_figure(9.0 if wide else 5.5, 3.4)
    panels = figure.subplots(1, 2 if wide else 1, squeeze=False)[0]
    shown = advice.ramp[-1] if advice.ramp else advice.comparison
    _draw_means(panels[0], shown)
    if advice.ramp:
        _draw_ramp(panels[1], (advice.comparison, *advice.ramp))
    elif advice.replay is not None:
        _draw_hours(panels[1], advice.replay)
    return figure


def _unit(largest: float, timed: bool = True) -> tuple[str, float]:
    """The unit in which a largest time reads best in brackets, and its length [s]; a value has none."""
    if not timed:
        return "", 1.0
    for unit, size in TIME_UNITS:
        if largest >= 2 * size:
            return f" [{unit}]", size
    return " [s]", 1.0


def _draw_means(axes: Any, comparison: Any) -> None:
    table = comparison.table().iloc[::-1]
    outcome = comparison.outcome
    unit, size = _unit(float(np.nanmax(table[["mean", "high"]].to_numpy())), outcome.timed)
    places = np.arange(len(table))
    means = table["mean"].to_numpy() / size
    ends = [np.nan_to_num(np.abs(table[name].to_numpy() / size - means)) for name in ("low", "high")]
    axes.errorbar(means, places, xerr=ends, fmt="o", color=PALETTE[0], capsize=2.5, markersize=5)
    if comparison.run.bound is not None:
        axes.axvline(comparison.run.bound / size, color=BOUND, linestyle="--", linewidth=1)
    axes.set_yticks(places, table["policy"].map(as_label))
    load = "at its own load" if comparison.factor == 1 else f"at {comparison.factor:g} times its load"
    axes.set_xlabel(f"mean {outcome.name}{unit}, {load}; dashed: the bound")
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    bare(axes, "x")


def _draw_ramp(axes: Any, comparisons: Sequence[Any]) -> None:
    factors = [one.factor for one in comparisons]
    last = comparisons[-1]
    means = {name: [float(one.run.means(name).mean()) for one in comparisons] for name in last.run.outcomes}
    _draw_lines(axes, factors, means, PALETTE, last.outcome.name, last.outcome.timed)
    axes.set_xscale("log", base=2)
    axes.set_xticks(factors, [f"{factor:g}" for factor in factors])
    axes.set_xlabel("multiple of the log's load")


def _draw_hours(axes: Any, replay: Any) -> None:
    frame = replay.by_hour()
    waits = {"recorded": frame["recorded mean"].to_numpy()}
    waits |= {f"replay, {policy}": frame[f"{policy} mean"].to_numpy() for policy in replay.predicted}
    _draw_lines(axes, frame["hour"], waits, (PALETTE[-1], *PALETTE[:-1]), "wait")
    if any(np.nanmax(values) > 0 for values in waits.values()):
        axes.set_ylim(bottom=0)
    axes.set_xlabel("hour of the day" + (" (UTC)" if replay.dated else ", by the log's clock"))


def _draw_lines(
    axes: Any, x: Any, lines: Mapping[str, Any], colours: Sequence[str], what: str, timed: bool = True
) -> None:
    """Draw the means of some outcome, a line each; more lines than colours are dashed."""
    unit, size = _unit(max(float(np.nanmax(values)) for values in lines.values()), timed)
    for i, (name, values) in enumerate(lines.items()):
        style = {"color": colours[i % len(colours)], "linestyle": "-" if i < len(colours) else "--"}
        axes.plot(x, np.asarray(values) / size, marker=".", label=as_label(name), **style)
    axes.set_ylabel(f"mean {what}{unit}")
    axes.legend(frameon=False, fontsize=8)
    bare(axes, "y")
