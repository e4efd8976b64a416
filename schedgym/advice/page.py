"""The result of :func:`schedgym.advise` as tables of texts, as plain text, and as a page with a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from schedgym.core.files import atomic_write
from schedgym.errors import printable
from schedgym.evaluation.canvas import draw_panels, svg_text
from schedgym.evaluation.gantt import plot_schedule
from schedgym.evaluation.pictures import Line, Panel, Series
from schedgym.evaluation.statistics import Estimate
from schedgym.evaluation.wording import (
    interval_text,
    make_templates,
    outcome_text,
    percent_text,
    time_text,
    time_unit,
)

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
        mark = " *" if Estimate(row["difference"], low, high).differs else ""
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
        label = f"bound in this replay: no policy has {'less' if less else 'more'}"
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
            picture=_svg(draw(advice)),
            schedules=[(policy, _svg(draw_schedule(advice, policy))) for policy in advice.stretch.records],
        )
    )
    with atomic_write(path) as stream:
        stream.write(text)


def _svg(figure: Any) -> str:
    """A picture as an element of the page."""
    text = svg_text(figure, svg_fonttype="none")
    return text[text.index("<svg") :]


def draw_schedule(advice: Any, policy: str) -> Any:
    """A figure: the schedule of the advice's stretch of the log under one of its policies."""
    stretch = advice.stretch
    return plot_schedule(stretch.records[policy], policy=policy, span=stretch.span, most_rows=ROWS)


def draw(advice: Any) -> Any:
    """A figure: mean waits with their intervals, and beside them the replay by hour, or the loads tried."""
    panels = [_means_panel(advice.ramp[-1] if advice.ramp else advice.comparison)]
    if advice.ramp:
        panels.append(_ramp_panel((advice.comparison, *advice.ramp)))
    elif advice.replay is not None:
        panels.append(_hours_panel(advice.replay, panels[0].rows))
    return draw_panels(panels, 9.0 if len(panels) > 1 else 7.0, 3.0, interval="95% interval")


def _unit(values: Any, outcome: Any) -> tuple[str, float]:
    """The unit in which values of an outcome read best, in brackets, and its length; a number has none."""
    unit, size = time_unit(float(np.nanmax(values))) if outcome.timed else ("", 1.0)
    return (f" [{unit}]" if unit else ""), size


def _means_panel(comparison: Any) -> Panel:
    table, outcome, bound = comparison.table(), comparison.outcome, comparison.run.bound
    unit, size = _unit(table[["mean", "high"]].to_numpy(), outcome)
    series = [
        Series(row["policy"], [row["mean"] / size], [place], [row["low"] / size], [row["high"] / size])
        for place, row in enumerate(table.to_dict("records"))
    ]
    lines = [] if bound is None else [Line("x", bound / size, bound="the bound")]
    load = "at its own load" if comparison.factor == 1 else f"at {comparison.factor:g} times its load"
    label, rows = f"mean {outcome.name}{unit}, {load}", table["policy"].tolist()
    return Panel(label, "", series, kind="means", rows=rows, lines=lines)


def _ramp_panel(comparisons: Sequence[Any]) -> Panel:
    last, factors = comparisons[-1], [one.factor for one in comparisons]
    means = {name: [float(one.run.means(name).mean()) for one in comparisons] for name in last.run.outcomes}
    unit, size = _unit(list(means.values()), last.outcome)
    series = [Series(name, factors, [mean / size for mean in own]) for name, own in means.items()]
    return Panel("multiple of the log's load", f"mean {last.outcome.name}{unit}", series, x_scale="log")


def _hours_panel(replay: Any, policies: Sequence[str]) -> Panel:
    """The mean waits by hour; replays have the colours of their policies in the panel of these."""
    frame = replay.by_hour()
    names = ["recorded", *replay.predicted]
    order = list(dict.fromkeys([*policies, *names]))
    unit, size = time_unit(float(np.nanmax(frame[[f"{name} mean" for name in names]].to_numpy())))
    series = [
        Series(
            name if name == "recorded" else f"replay, {name}",
            frame["hour"].tolist(),
            (frame[f"{name} mean"] / size).tolist(),
            number=order.index(name),
        )
        for name in names
    ]
    label = "hour of the day" + (" (UTC)" if replay.dated else ", by the log's clock")
    return Panel(label, f"mean wait [{unit}]", series)
