"""Panels and schedules as interactive figures: plotly's plain dicts.

Colours are names ("@0": the first policy's, "@bound/0.4": the bound's, 40 % opaque) that the page replaces by
those of its light or dark theme. Every text that comes from a store passes through :func:`plain_text`.
"""

from __future__ import annotations

import dataclasses
import html
import math
from typing import Any

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.drawing import hexadecimal, loads_of, short_time
from schedgym.evaluation.gantt import LONGEST_UNIT, MOST_ROWS, Chart, make_chart
from schedgym.evaluation.pictures import (
    COLOURS,
    MARKS,
    Axis,
    Line,
    Panel,
    Series,
    appearance,
    axis_of,
    numbers_of,
    spread,
)
from schedgym.evaluation.wording import number

Figure = dict[str, Any]

DASHES = ("solid", "dash", "dot", "dashdot")
MOST_POINTS = 200  # dots that are drawn of a series
MOST_TICKS = 5  # of a logarithmic axis: pages may be narrow


def plain_text(text: object) -> str:
    """Escape ``text`` so that plotly shows it letter by letter: its labels understand some HTML."""
    return html.escape(str(text), quote=False)


def formulas(text: str) -> str:
    """A text with its formulas in Unicode: slots^k, slots^2, l_k norm."""
    for plain, written in (("^k", "ᵏ"), ("^2", "²"), ("l_k", "ℓₖ")):
        text = text.replace(plain, written)
    return text


def figure_of(panel: Panel) -> Figure:
    """A panel without bars as a figure, of which points tell their ``texts`` when they are touched.

    Dots are thinned out, and left out beside lines, which have one tooltip for all; an axis that is
    logarithmic on both sides of 0 is linear, as plotly has no other.
    """
    numbers, lines = numbers_of([panel]), panel.kind in ("lines", "curves", "steps")
    if lines:
        shown = [own for own in panel.series if panel.kind_of(own) != "dots"]
        panel = dataclasses.replace(panel, series=shown)
    axes = {name: axis_of(panel, name, MOST_TICKS) for name in ("x", "y")}
    data = [
        trace
        for series in panel.series
        for trace in _traces(panel, series, numbers[series.label], axes["x" if panel.rows else "y"])
    ]
    height = 96.0 + 34.0 * len(panel.rows) if panel.rows else 400.0
    if panel.rows and panel.kind == "points":  # three lie one below the other in the height of a row
        height *= max(1.0, np.bincount([round(own.y[0]) for own in panel.series]).max() / 3)
    layout = _layout(
        height,
        xaxis=_axis(axes["x"], panel.x_label),
        yaxis=_axis(axes["y"], panel.y_label),
        shapes=[_line(line) for line in panel.lines],
    )
    if panel.rows:
        layout["yaxis"] |= {"showgrid": False, "fixedrange": True}
    if lines:  # one tooltip for all, and their legend below
        layout |= {"showlegend": True, "hovermode": "x unified"}
        layout["legend"] = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0}
    elif not panel.rows:
        layout["margin"]["r"] = 90  # names stand beside their points
    return {"data": data, "layout": layout}


def _layout(height: float, **more: Any) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 8, "r": 16, "t": 28, "b": 8},
        "showlegend": False,
        "hovermode": "closest",
        **more,
    }


def _axis(axis: Axis, title: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "title": {"text": plain_text(formulas(title))},
        "automargin": True,
        "exponentformat": "none",
        "separatethousands": True,
        "zeroline": False,
    }
    low, high = axis.limits
    if axis.scale == "log":
        found |= {"type": "log", "hoverformat": ".4g"}
    if low is not None and high is not None:
        found["range"] = [math.log10(low), math.log10(high)] if axis.scale == "log" else [low, high]
    elif low == 0:
        found["rangemode"] = "tozero"
    if len(axis.ticks) and axis.scale != "symlog":
        found |= {"tickvals": list(axis.ticks), "ticktext": [f"{plain_text(text)} " for text in axis.texts]}
    return found


def _line(line: Line) -> dict[str, Any]:
    """A line through the plot at a value of its axis."""
    across, along = line.axis, "y" if line.axis == "x" else "x"
    look = {"color": "@bound" if line.bound else "@ink", "dash": "dash" if line.bound else "solid"}
    ends = {f"{across}0": line.value, f"{across}1": line.value, f"{along}0": 0, f"{along}1": 1}
    more = {f"{across}ref": across, f"{along}ref": "paper", "layer": "below"}
    return {"type": "line", **ends, **more, "line": look | {"width": 1.5 if line.bound else 1}}


def _traces(panel: Panel, series: Series, place: int, axis: Axis) -> list[dict[str, Any]]:
    """The traces of a series by its number; ``axis`` is that of its values."""
    kind, name, values = panel.kind_of(series), plain_text(series.label), panel.values_of(series)
    (mark, dash), colour = appearance(place), "@bound" if series.bound else f"@{place % COLOURS}"
    shown = np.flatnonzero(np.isfinite(values) & ((values > 0) if axis.scale == "log" else True)).tolist()
    if not shown:
        return []
    if kind == "dots" and len(shown) > MOST_POINTS:
        shown = [shown[i] for i in np.linspace(0, len(shown) - 1, MOST_POINTS).astype(int)]
    x, y = ([part[i] for i in shown] for part in (list(series.x), np.asarray(series.y, dtype=float).tolist()))
    trace: dict[str, Any] = {"type": "scatter", "name": name, "x": x, "y": y}
    if series.texts:
        trace["hovertext"] = [_told(series.texts[i]) for i in shown]
        trace["hovertemplate"] = "%{hovertext}<extra></extra>"
    else:
        trace["hoverinfo"] = "skip"
    low, high = (
        np.asarray(values if e is None else e, dtype=float)[shown] for e in (series.low, series.high)
    )
    edge = {"color": "@paper", "width": 1.5}
    if kind == "dots":
        look = {"mode": "markers", "marker": {"size": 5, "color": f"{colour}/0.5"}}
        return [trace | look | {"y": (np.asarray(y) + 0.52 * spread(values[shown])).tolist()}]
    if kind == "halves":
        ends = {"x": [low[0], high[0]], "y": [y[0], y[0]]}
        return [trace | ends | {"mode": "lines", "line": {"color": f"{colour}/0.3", "width": 10}}]
    if kind in ("means", "points"):
        symbol = "diamond" if kind == "means" else MARKS[mark][1]
        trace |= {"mode": "markers", "marker": {"size": 11, "symbol": symbol, "color": colour, "line": edge}}
        if series.low is not None:
            ends = {"array": (high - values[shown]).tolist(), "arrayminus": (values[shown] - low).tolist()}
            bars = {"type": "data", "symmetric": False, "thickness": 2, "width": 5 if kind == "means" else 0}
            trace["error_x" if panel.rows else "error_y"] = ends | bars | {"color": "@ink"}
        if not panel.rows:
            text = {"mode": "markers+text", "text": [f" {name}"] * len(x), "textposition": "middle right"}
            trace |= text | {"textfont": {"size": 11, "color": "@muted"}, "cliponaxis": False}
        return [trace]
    line = {"color": colour, "width": 2, "dash": "dash" if series.bound else DASHES[dash]}
    line |= {"shape": "hv"} if kind == "steps" else {}
    trace |= {"mode": "lines", "legendgroup": name, "line": line}
    if kind == "lines" and not series.bound:
        marker = {"size": 9, "symbol": MARKS[mark][1], "line": edge | {"width": 1}}
        trace |= {"mode": "lines+markers", "marker": marker}
    known = np.isfinite(low) & np.isfinite(high)
    if series.low is None or known.sum() < 2:
        return [trace]
    within = [own for own, ok in zip(x, known, strict=True) if ok]
    band: dict[str, Any] = {
        "x": [*within, *reversed(within)],
        "y": [*high[known].tolist(), *low[known][::-1].tolist()],
    }
    band |= {"type": "scatter", "mode": "lines", "fill": "toself", "fillcolor": f"{colour}/0.13"}
    band |= {"line": {"width": 0, "color": colour}, "hoverinfo": "skip"}
    return [band | {"legendgroup": name, "showlegend": False}, trace]


def _told(text: str) -> str:
    """Lines of a tooltip, of which several have the first for a heading."""
    first, *rest = plain_text(text).split("\n")
    return "<br>".join([f"<b>{first}</b>", *rest]) if rest else first


# schedules -----------------------------------------------------------------------------------------


def gantt_figure(record: ScheduleRecord) -> tuple[Figure, str]:
    """The Gantt chart of a schedule: see :class:`~schedgym.evaluation.gantt.Chart`.

    Returns:
        the figure, and a sentence on what it shows, and what it leaves out.
    """
    chart = make_chart(record)
    height = float(np.clip(90 + 15 * chart.bottom, 220, 900))
    edge = 0.4 if height > 90 + 8 * chart.bottom else 0.0
    base, ends = record.start[chart.order], record.end[chart.order]
    marker = {"color": list(map(hexadecimal, chart.colours)), "line": {"color": "@paper", "width": edge}}
    told = {"text": _details(record, chart), "textposition": "none"}
    told["hovertemplate"] = "%{text}<extra></extra>"
    bars = _bars(base.tolist(), (ends - base).tolist(), chart.y.tolist(), marker) | told
    rows = list(zip(chart.begin, chart.depth, strict=True))
    layout = _layout(
        height,
        barmode="overlay",
        bargap=0,
        xaxis=_axis(Axis(limits=(0.0, None)), f"time [{chart.unit}]"),
        yaxis=_axis(chart.axis(MOST_ROWS), "") | {"showgrid": False},
        shapes=[_shade(*row) for row in rows[1::2]],
    )
    data = [bars]
    if chart.windows:
        arrival, deadline, y = (list(part) for part in zip(*chart.windows, strict=True))
        length = [b - a for a, b in zip(arrival, deadline, strict=True)]
        window = _bars(arrival, length, y, {"color": "@ink/0.10", "line": {"width": 0}})
        data.insert(0, window | {"hoverinfo": "skip"})
    return {"data": data, "layout": layout}, f"Drawn: {chart.text}."


def _shade(begin: float, depth: int) -> dict[str, Any]:
    """The background of a row, to tell it from its neighbours."""
    ends = {"x0": 0, "x1": 1, "y0": begin - 0.1, "y1": begin + depth + 0.1}
    look = {"fillcolor": "@ink/0.05", "line": {"width": 0}, "layer": "below"}
    return {"type": "rect", "xref": "paper", **ends, **look}


def _bars(base: list[float], length: list[float], y: list[float], marker: dict[str, Any]) -> dict[str, Any]:
    bars = {"type": "bar", "orientation": "h", "base": base, "x": length, "y": y}
    return bars | {"width": [0.92] * len(y), "marker": marker}


def _details(record: ScheduleRecord, chart: Chart) -> list[str]:
    """What is said of each piece of work that is drawn, in lines."""
    schema, unit = chart.problem.schema, chart.unit
    places = (f.dimensions[0] for f in schema.cluster if len(f.dimensions) == 1)
    server_word = "" if chart.by_job else next(places)
    arrival, loads = record.workload.jobs.get("arrival"), loads_of(record)
    units = [f" {own.unit}" if 0 < len(own.unit) <= LONGEST_UNIT else "" for own in loads]
    found = []
    for i in chart.order.tolist():
        job, begin, end = int(chart.owner[i]), float(record.start[i]), float(record.end[i])
        lines = [f"{chart.job_word} {job}"]
        if chart.owner is not record.job:
            lines[0] += f", task {int(record.job[i])}"
        if server_word:
            lines.append(f"{server_word} {int(record.server[i])}")
        length = short_time(end - begin) if unit == "s" else f"{number(end - begin)} {unit}"
        lines.append(f"{number(begin)} – {number(end)} {unit}, {length}")
        if arrival is not None:
            lines.append(f"arrived {number(float(arrival[job]))}")
        held = zip(loads, units, strict=True)
        lines.append(", ".join(f"{own.name} {number(float(own.amount[i]))}{text}" for own, text in held))
        found.append(_told("\n".join(lines)))
    return found
