"""Interactive figures of a board and of a schedule, as plotly's plain dicts.

Colours are names ("@0": the first policy's, "@bound/0.4": the bound's, 40 % opaque) that the page replaces by
those of its light or dark theme. Every text that comes from a store passes through :func:`plain_text`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.record import ScheduleRecord
from schedgym.drawing import hexadecimal, short_time
from schedgym.evaluation.canvas import spread, swept_axis
from schedgym.evaluation.gantt import Chart, make_chart
from schedgym.evaluation.standings import Board, Entry, Setting, setting_text, short_value
from schedgym.evaluation.statistics import Estimate
from schedgym.evaluation.wording import duration_text, number

__all__ = [
    "COLOURS",
    "Figure",
    "difference_figure",
    "effort_figure",
    "formulas",
    "gantt_figure",
    "gap_figure",
    "mean_figure",
    "plain_text",
    "profile_figure",
    "sweep_figures",
    "symbol_letter",
]

Figure = dict[str, Any]
F8 = npt.NDArray[np.float64]

COLOURS = 14  # of policies; further ones have another mark
#: marks of policies -> the same as a letter
SYMBOLS = {
    **{"circle": "●", "square": "■", "diamond": "◆", "triangle-up": "▲", "triangle-down": "▼"},
    **{"cross": "✚", "x": "✖"},
}
DASHES = ("solid", "dash", "dot", "dashdot")
MOST_POINTS = 200  # episodes drawn of a policy
MOST_GAPS = 12  # settings of an id in the figure of gaps
APART = 0.45  # of a row's height, in which the gaps of its policies lie one below the other
DECADE = 10.0
FAR = 3.0  # times the reference, from where on ratios are drawn


def plain_text(text: object) -> str:
    """Escape ``text`` so that plotly shows it letter by letter: its labels understand some HTML."""
    return html.escape(str(text), quote=False)


def formulas(text: str) -> str:
    """A text with its formulas in Unicode: slots^k, slots^2, l_k norm."""
    for plain, written in (("^k", "ᵏ"), ("^2", "²"), ("l_k", "ℓₖ")):
        text = text.replace(plain, written)
    return text


def _interval(estimate: Estimate, factor: float = 1.0, unit: str = "") -> str:
    text = number(estimate.value * factor) + unit
    if math.isfinite(estimate.low):
        low, high = (number(end * factor, estimate.value * factor) for end in (estimate.low, estimate.high))
        text += f" [{low}, {high}]{unit}"
    return text


def _colour(board: Board, policy: str, opacity: float | None = None) -> str:
    token = f"@{board.policies.index(policy) % COLOURS}"
    return token if opacity is None else f"{token}/{opacity:g}"


def _symbol(board: Board, policy: str) -> str:
    place = board.policies.index(policy)
    return list(SYMBOLS)[(place // COLOURS + place) % len(SYMBOLS)]


def symbol_letter(board: Board, policy: str) -> str:
    """The mark of a policy, as a letter."""
    return SYMBOLS[_symbol(board, policy)]


def _dash(board: Board, policy: str) -> str:
    return DASHES[(board.policies.index(policy) // COLOURS) % len(DASHES)]


def _axis(title: str, **more: Any) -> dict[str, Any]:
    return {
        "title": {"text": plain_text(formulas(title))},
        "automargin": True,
        "exponentformat": "none",
        "separatethousands": True,
        **more,
    }


def _logarithmic(values: Iterable[float]) -> bool:
    known = [value for value in values if math.isfinite(value)]
    return bool(known) and min(known) > 0 and max(known) > 4 * DECADE * min(known)


def _log_axis(
    title: str, values: Iterable[float], texts: Callable[[float], str] | None = None
) -> dict[str, Any]:
    """A logarithmic axis with ticks at powers of ten, and at 2 and 5 times these where few are in sight."""
    known = [value for value in values if math.isfinite(value) and value > 0]
    low, high = math.log10(min(known)), math.log10(max(known))
    margin = max(0.06 * (high - low), 0.05)
    low, high = low - margin, high + margin
    steps: tuple[float, ...] = (1, 2, 5) if high - low < 2.5 else (1,)
    if high - low < 0.5:
        steps = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
    every = 1 + int((high - low) // 9)
    powers = range(math.floor(low), math.ceil(high) + 1, every)
    ticks = [step * 10.0**power for power in powers for step in steps]
    text = texts or (lambda value: f"{value:,.12g}" if 1e-4 <= value < 1e7 else f"{value:.0e}")
    return _axis(
        title,
        type="log",
        range=[low, high],
        tickvals=ticks,
        ticktext=[text(t) for t in ticks],
        zeroline=False,
    )


def _value_axis(title: str, values: Iterable[float]) -> dict[str, Any]:
    """An axis of values: logarithmic where they differ by much, else from 0."""
    values = list(values)
    if _logarithmic(values):
        return _log_axis(title, values)
    return _axis(title, rangemode="tozero", zeroline=False)


def _label(board: Board, mean: bool = False) -> str:
    unit = f" [{board.metric.unit}]" if board.metric.unit else ""
    name = board.metric.name.replace("_", " ")
    return ("mean " if mean and "mean" not in name else "") + name + unit


def _layout(height: float, **more: Any) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 8, "r": 16, "t": 28, "b": 8},
        "showlegend": False,
        "hovermode": "closest",
        **more,
    }


def _row_axis(rows: Sequence[str], **more: Any) -> dict[str, Any]:
    """An axis of named rows, the first on top."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(rows))),
        "ticktext": [f"{row} " for row in rows],
        "range": [len(rows) - 0.4, -0.6],
        "zeroline": False,
        "automargin": True,
        "fixedrange": True,
        **more,
    }


def _policy_axis(entries: Sequence[Entry]) -> dict[str, Any]:
    return _row_axis([plain_text(entry.policy) for entry in entries], showgrid=False)


def _error(estimates: Sequence[Estimate], factor: float = 1.0) -> dict[str, Any]:
    def length(value: float) -> float | None:
        return value * factor if math.isfinite(value) else None

    return {
        "type": "data",
        "symmetric": False,
        "array": [length(e.high - e.value) for e in estimates],
        "arrayminus": [length(e.value - e.low) for e in estimates],
        "thickness": 2,
        "width": 5,
        "color": "@ink",
    }


def _marks(
    x: Sequence[float], y: Sequence[float], texts: Sequence[str], marker: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """Marks, each with a text that shows when it is touched."""
    trace = {"type": "scatter", "mode": "markers", "x": list(x), "y": list(y), "text": list(texts)}
    return trace | {"hovertemplate": "%{text}<extra></extra>", "marker": dict(marker), **more}


def _edged(size: float, colour: Any, symbol: Any, width: float = 1.5) -> dict[str, Any]:
    """A marker with a light edge; colour and symbol may be lists."""
    return {"size": size, "symbol": symbol, "color": colour, "line": {"color": "@paper", "width": width}}


def _band(
    board: Board, policy: str, x: Sequence[Any], low: Sequence[float], high: Sequence[float], opacity: float
) -> dict[str, Any]:
    """The area between two curves, in a policy's colour."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [*x, *reversed(x)],
        "y": [*high, *reversed(low)],
        "fill": "toself",
        "fillcolor": _colour(board, policy, opacity),
        "line": {"width": 0, "color": _colour(board, policy)},
        "hoverinfo": "skip",
        "legendgroup": plain_text(policy),
        "showlegend": False,
    }


def _curve(board: Board, policy: str, x: Sequence[Any], y: Sequence[float], **more: Any) -> dict[str, Any]:
    """A policy's line; its band hides with it."""
    name = plain_text(policy)
    line = {"color": _colour(board, policy), "width": 2, "dash": _dash(board, policy)}
    trace = {"type": "scatter", "mode": "lines", "name": name, "legendgroup": name}
    return trace | {"x": list(x), "y": list(y), "line": line | more.pop("line", {}), **more}


def _curves_layout(height: float, below: float, **axes: Any) -> dict[str, Any]:
    """The layout of curves with one tooltip for all, and their legend below."""
    legend = {"orientation": "h", "y": -below, "yanchor": "top", "x": 0}
    return _layout(height, showlegend=True, hovermode="x unified", legend=legend, **axes)


def _side(board: Board) -> str:
    return "upper" if board.metric.better == "max" else "lower"


def _bound_line(across: str, bound: float) -> dict[str, Any]:
    """A dashed line through the plot at a value of the axis ``across``: "x" or "y"."""
    along = "y" if across == "x" else "x"
    line = {"color": "@bound", "dash": "dash", "width": 1.5}
    ends = {f"{across}0": bound, f"{across}1": bound, f"{along}0": 0, f"{along}1": 1}
    return {"type": "line", f"{along}ref": "paper", **ends, "line": line, "layer": "below"}


def _height(rows: int) -> float:
    return 96.0 + 34.0 * rows


def mean_figure(board: Board, setting: Setting) -> Figure:
    """Each policy's episodes, its mean and interval, and the mean bound."""
    entries = setting.entries
    data: list[dict[str, Any]] = []
    everything: list[float] = []
    for y, entry in enumerate(entries):
        values = entry.table.ravel()
        named = [
            f"seed {seed}, episode {episode}"
            + (f", training seed {training}" if training is not None else "")
            for training in (entry.trainings or (None,))
            for seed, episode in setting.episodes
        ]
        kept = np.flatnonzero(~np.isnan(values))
        if len(kept) > MOST_POINTS:
            kept = kept[np.linspace(0, len(kept) - 1, MOST_POINTS).astype(int)]
        values = values[kept]
        everything += values.tolist()
        texts = [f"{plain_text(entry.policy)}, {named[i]}" for i in kept]
        marker = {"size": 5, "color": _colour(board, entry.policy, 0.5)}
        dots = _marks(values.tolist(), (y + 0.52 * spread(values)).tolist(), texts, marker)
        data.append(dots | {"hovertemplate": "%{text}<br>%{x:.5g}<extra></extra>"})
    texts = [
        f"<b>{plain_text(e.policy)}</b><br>mean {_interval(e.mean)}"
        f"<br>interquartile mean {_interval(e.middle)}"
        for e in entries
    ]
    means = [entry.mean for entry in entries]
    marker = _edged(11, [_colour(board, entry.policy) for entry in entries], "diamond")
    x = [mean.value for mean in means]
    data.append(_marks(x, range(len(entries)), texts, marker, error_x=_error(means)))
    shapes, notes = [], []
    if math.isfinite(setting.bound):
        everything.append(setting.bound)
        shapes = [_bound_line("x", setting.bound) | {"xref": "x"}]
        note = {
            "x": math.log10(setting.bound) if _logarithmic(everything) else setting.bound,
            "y": 1,
            "yref": "paper",
            "yanchor": "bottom",
            "xanchor": "right" if _side(board) == "upper" else "left",
            "showarrow": False,
            "text": f"mean {_side(board)} bound {number(setting.bound)}",
            "font": {"size": 11, "color": "@bound"},
        }
        notes = [note]
    layout = _layout(
        _height(len(entries)),
        xaxis=_value_axis(_label(board), everything),
        yaxis=_policy_axis(entries),
        shapes=shapes,
        annotations=notes,
    )
    return {"data": data, "layout": layout}


def difference_figure(board: Board, setting: Setting) -> Figure | None:
    """Each policy's mean paired difference to the reference; None without one."""
    base = setting.entry(board.reference)
    entries = [e for e in setting.entries if math.isfinite(e.difference.value) or e is base]
    if base is None or len(entries) < 2:
        return None
    relative = all(math.isfinite(e.relative.value) for e in entries if e is not base)
    shown = [Estimate(0.0) if e is base else (e.relative if relative else e.difference) for e in entries]
    # percentages of a policy that is several times worse flatten all others: ratios on a logarithmic axis
    least, most = (1 + pick(e.value for e in shown) for pick in (min, max))
    ratios = relative and least > 0 and (most > FAR or least < 1 / FAR)
    if ratios:
        shown = [Estimate(1 + e.value, 1 + e.low, 1 + e.high) for e in shown]
    factor = 100.0 if relative and not ratios else 1.0
    unit = "%" if relative else (f" {board.metric.unit}" if board.metric.unit else "")
    unit = " times the reference" if ratios else unit
    texts = []
    for entry, estimate in zip(entries, shown, strict=True):
        name = plain_text(entry.policy)
        if entry is base:
            texts.append(f"<b>{name}</b><br>the reference")
            continue
        texts.append(
            f"<b>{name}</b><br>{_interval(estimate, factor, unit)}"
            f"<br>better in {entry.won:.0%} of the episodes, equal in {entry.tied:.0%}"
        )
    better = "more" if board.metric.better == "max" else "less"
    title = f"difference to {board.reference} [{'%' if relative else board.metric.unit or '1'}]"
    symbols = ["diamond-open" if e is base else "diamond" for e in entries]
    marker = _edged(11, [_colour(board, e.policy) for e in entries], symbols)
    x = [estimate.value * factor for estimate in shown]
    axis = _axis(f"{title} ({better} is better)", zeroline=True, zerolinecolor="@ink", zerolinewidth=1)
    if ratios:
        axis = _log_axis(f"{_label(board)} / that of {board.reference} ({better} is better)", x)
    return {
        "data": [_marks(x, range(len(entries)), texts, marker, error_x=_error(shown, factor))],
        "layout": _layout(_height(len(entries)), xaxis=axis, yaxis=_policy_axis(entries)),
    }


def profile_figure(board: Board, settings: Sequence[Setting], confidence: float) -> Figure | None:
    """Performance profiles: the share of episodes within a factor of the episode's best policy."""
    ratios = [
        entry.ratios[np.isfinite(entry.ratios)]
        for setting in settings
        for entry in setting.entries
        if entry.ratios is not None
    ]
    everything = np.concatenate(ratios) if ratios else np.empty(0)
    if not everything.size:
        return None
    largest = float(np.quantile(everything, 0.99)) * 1.02
    largest = max(largest, 1.02)
    log = largest > 5.0
    thresholds = np.geomspace(1.0, largest, 120) if log else np.linspace(1.0, largest, 120)
    places = thresholds.tolist()
    data: list[dict[str, Any]] = []
    for policy in board.policies:
        profile = board.profile(policy, thresholds, confidence, settings)
        if profile is None:
            continue
        share, low, high = (values.tolist() for values in profile)
        if np.isfinite(low).all():
            data.append(_band(board, policy, places, low, high, 0.12))
        template = "%{text}: %{y:.0%} of the episodes<extra></extra>"
        texts = [plain_text(policy)] * len(places)
        step = {"shape": "hv"}
        data.append(_curve(board, policy, places, share, line=step, text=texts, hovertemplate=template))
    if not data:
        return None
    title = "factor to the best policy of the episode"
    axis = _log_axis(title, places) if log else _axis(title, zeroline=False)
    layout = _curves_layout(
        400,
        0.22,
        xaxis=axis | {"hoverformat": ".4g"},
        yaxis=_axis("share of episodes within it", range=[0, 1.04], tickformat=".0%", zeroline=False),
    )
    return {"data": data, "layout": layout}


def effort_figure(board: Board, setting: Setting) -> Figure | None:
    """The objective over the time that a policy takes in an episode; None without times."""
    entries = [e for e in setting.entries if e.seconds > 0 and math.isfinite(e.mean.value)]
    if len(entries) < 2:
        return None
    data = []
    for entry in entries:
        marker = _edged(11, _colour(board, entry.policy), _symbol(board, entry.policy))
        mark = _marks([entry.seconds], [entry.mean.value], [f" {plain_text(entry.policy)}"], marker)
        template = f"<b>%{{text}}</b><br>{_interval(entry.mean)}<br>%{{x:.3g}} s per episode<extra></extra>"
        mark |= {"mode": "markers+text", "hovertemplate": template, "cliponaxis": False}
        mark |= {"textposition": "middle right", "textfont": {"size": 11, "color": "@muted"}}
        data.append(mark)
    means = [e.mean.value for e in entries]
    shapes = []
    if math.isfinite(setting.bound) and 0.5 * min(means) <= setting.bound <= 2 * max(means):
        means.append(setting.bound)
        shapes = [_bound_line("y", setting.bound)]
    title = _label(board, mean=True)
    layout = _layout(
        400,
        xaxis=_log_axis("policy time per episode", [e.seconds for e in entries], duration_text),
        yaxis=_log_axis(title, means) if _logarithmic(means) else _axis(title, zeroline=False),
        shapes=shapes,
    )
    layout["margin"]["r"] = 90
    return {"data": data, "layout": layout}


def sweep_figures(board: Board) -> dict[str, Figure]:
    """Means with bands over a swept parameter: the first with several numbers, else the first.

    Returns:
        text of the other parameters ("" if there are none) -> figure; empty for a single setting.
    """
    if len(board.settings) < 2 or not board.swept:
        return {}

    def values(name: str) -> list[Any]:
        return list(dict.fromkeys(_hashable(s.parameters.get(name)) for s in board.settings))

    numeric = [name for name in board.swept if swept_axis(values(name)) != "category"]
    name = numeric[0] if numeric else board.swept[0]
    slices: dict[str, list[Setting]] = {}
    for setting in board.settings:
        others = [n for n in board.swept if n != name and n in setting.parameters]
        text = setting_text({n: setting.parameters[n] for n in others})
        slices.setdefault(text, []).append(setting)
    found = {}
    for text, settings in slices.items():
        if len(settings) > 1 or len(slices) == 1:
            if name in numeric:
                settings = sorted(settings, key=lambda s: float(s.parameters[name]))
            found[text] = _sweep_figure(board, name, name in numeric, settings)
    return found


def _hashable(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def _sweep_figure(board: Board, name: str, numeric: bool, settings: list[Setting]) -> Figure:
    data: list[dict[str, Any]] = []
    means: list[float] = []

    def place(setting: Setting) -> Any:
        value = setting.parameters.get(name)
        return value if numeric else plain_text(short_value(value))

    for policy in board.policies:
        found = [(place(s), e.mean) for s in settings if (e := s.entry(policy)) is not None]
        values = [mean.value for _, mean in found]
        means += values
        banded = [(x, mean) for x, mean in found if math.isfinite(mean.low)]
        if len(banded) > 1:
            x, within = zip(*banded, strict=True)
            ends = [mean.low for mean in within], [mean.high for mean in within]
            data.append(_band(board, policy, x, *ends, 0.13))
        curve = _curve(board, policy, [x for x, _ in found], values, mode="lines+markers")
        curve["text"] = [f"{plain_text(policy)}: {_interval(mean)}" for _, mean in found]
        curve["hovertemplate"] = "%{text}<extra></extra>"
        edge = {"color": "@paper", "width": 1}
        data.append(curve | {"marker": {"size": 9, "symbol": _symbol(board, policy), "line": edge}})
    bounds = [setting.bound for setting in settings]
    if any(math.isfinite(bound) for bound in bounds):
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"{_side(board)} bound",
                "x": [place(setting) for setting in settings],
                "y": [bound if math.isfinite(bound) else None for bound in bounds],
                "line": {"color": "@bound", "dash": "dash", "width": 1.5},
                "hovertemplate": f"{_side(board)} bound: %{{y:.5g}}<extra></extra>",
            }
        )
    axis = _axis(name.replace("_", " "), zeroline=False)
    if numeric:
        ticks = sorted({float(place(setting)) for setting in settings})
        axis |= {"tickvals": ticks, "ticktext": [f"{value:g}" for value in ticks], "type": swept_axis(ticks)}
    else:
        axis["type"] = "category"
    layout = _curves_layout(430, 0.2, xaxis=axis, yaxis=_value_axis(_label(board, mean=True), means))
    return {"data": data, "layout": layout}


def gap_figure(boards: Sequence[Board], names: Sequence[str]) -> tuple[Figure | None, str]:
    """Every policy's mean gap to the bound with its interval, a row per board (of these names) and setting.

    Returns:
        the figure, None if nothing is bounded; and a sentence on the settings and policies that it leaves
        out.
    """
    rows: list[str] = []
    data: list[dict[str, Any]] = []
    shown: list[float] = []
    missing: list[str] = []
    for board, name in zip(boards, names, strict=True):
        more = len(board.settings) - MOST_GAPS
        if more > 0:
            missing.append(f"{name}, all but the first {MOST_GAPS} settings ({more} more)")
        for setting in board.settings[:MOST_GAPS]:
            label = name + (f", {setting.label}" if setting.label else "")
            row = plain_text(label)
            entries = [e for e in setting.entries if math.isfinite(e.relative_gap.value)]
            lost = [e for e in setting.entries if not math.isfinite(e.relative_gap.value)]
            if lost:
                zero = any(math.isfinite(e.gap.value) for e in lost)
                whom = f": {', '.join(e.policy for e in lost)}" if entries else ""
                missing.append(f"{label}{whom} ({'the bound is 0' if zero else 'no bound is known'})")
            if not entries:
                continue
            texts = [
                f"<b>{plain_text(e.policy)}</b><br>{row}<br>gap {_interval(e.relative_gap, 100, '%')}"
                for e in entries
            ]
            colours = [_colour(board, e.policy) for e in entries]
            symbols = [_symbol(board, e.policy) for e in entries]
            marker = _edged(12, colours, symbols, 1)
            gaps = [e.relative_gap for e in entries]
            x = [100 * gap.value for gap in gaps]
            # an axis to the ends of the intervals, but not to a low end far below its mean
            for gap in gaps:
                shown += [100 * end for end in (max(gap.low, gap.value / DECADE), gap.value, gap.high)]
            y = (len(rows) + APART * np.linspace(-1, 1, len(gaps) + 2)[1:-1]).tolist()
            data.append(_marks(x, y, texts, marker, error_x=_error(gaps, 100) | {"width": 0}))
            rows.append(row)
    remark = f"Left out: {'; '.join(missing)}." if missing else ""
    if not rows:
        return None, remark
    axis = _value_axis("mean gap [% of the bound]", shown)
    most = max(len(trace["x"]) for trace in data)
    layout = _layout(_height(len(rows)) * max(1.0, most / 3), xaxis=axis, yaxis=_row_axis(rows))
    return {"data": data, "layout": layout}, remark


# schedules -----------------------------------------------------------------------------------------


def gantt_figure(record: ScheduleRecord) -> tuple[Figure, str]:
    """The Gantt chart of a schedule: see :class:`~schedgym.evaluation.gantt.Chart`.

    Returns:
        the figure, and a sentence on what it shows, and what it leaves out.
    """
    chart = make_chart(record)
    height = float(np.clip(90 + 15 * chart.bottom, 220, 900))
    edge = 0.4 if height > 90 + 8 * chart.bottom else 0.0
    details = _details(record, chart)
    base, ends = record.start[chart.order], record.end[chart.order]
    marker = {
        "color": [hexadecimal(colour) for colour in chart.colours],
        "line": {"color": "@paper", "width": edge},
    }
    told = {"text": [details(int(i)) for i in chart.order], "textposition": "none"}
    told["hovertemplate"] = "%{text}<extra></extra>"
    bars = _bars(base.tolist(), (ends - base).tolist(), chart.y.tolist(), marker) | told
    every = max(1, len(chart.names) // 40)
    rows = list(zip(chart.begin, chart.depth, strict=True))
    layout = _layout(
        height,
        barmode="overlay",
        bargap=0,
        xaxis=_axis(f"time [{chart.unit}]", zeroline=False, rangemode="tozero"),
        yaxis={
            "tickmode": "array",
            "tickvals": [begin + depth / 2 for begin, depth in rows[::every]],
            "ticktext": [f"{plain_text(name)} " for name in chart.names[::every]],
            "range": [chart.bottom, -0.2],
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
        },
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


def _details(record: ScheduleRecord, chart: Chart) -> Callable[[int], str]:
    """Return the function from a row of the record to the text of its bar's tooltip."""
    schema, unit = chart.problem.schema, chart.unit
    places = (f.dimensions[0] for f in schema.cluster if len(f.dimensions) == 1)
    server_word = "" if chart.by_job else next(places)
    arrival = record.workload.jobs.get("arrival")
    held = [
        field
        for field in schema.cluster
        if field.dimensions == (server_word,) and field.name in record.workload.cluster
    ]
    names = [f"{field.name} {{}}{_short_unit(field.unit)}" for field in held]
    if len(names) != record.amount.shape[1]:
        names = ["amount {}" if k == 0 else "and {}" for k in range(record.amount.shape[1])]

    def text(i: int) -> str:
        job = int(chart.owner[i])
        begin, end = float(record.start[i]), float(record.end[i])
        lines = [f"<b>{chart.job_word} {job}</b>"]
        if chart.owner is not record.job:
            lines[0] += f", task {int(record.job[i])}"
        if server_word:
            lines.append(f"{server_word} {int(record.server[i])}")
        length = short_time(end - begin) if unit == "s" else f"{number(end - begin)} {unit}"
        lines.append(f"{number(begin)} – {number(end)} {unit}, {length}")
        if arrival is not None:
            lines.append(f"arrived {number(float(arrival[job]))}")
        amounts = record.amount[i].tolist()
        lines.append(", ".join(name.format(number(a)) for name, a in zip(names, amounts, strict=True)))
        return "<br>".join(lines)

    return text


def _short_unit(unit: str) -> str:
    return f" {unit}" if unit and len(unit) <= 6 else ""
