"""Texts for values, spaces and ranges, the same in tables and on pages; the console and the pages."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgym.core.problem import Metric
from schedgym.drawing import short_time
from schedgym.errors import one_line, printable
from schedgym.evaluation.statistics import Estimate
from schedgym.extras import require
from schedgym.traces.feed import Outcome

TIME_UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0))  # and their lengths [s]
WIDE = 240  # columns where the output is no terminal and COLUMNS says nothing


def json_data(value: Any, digits: int = 17, text: Callable[[str], str] = str) -> Any:
    """JSON data: NaN and infinity are null, arrays are lists, paths are texts.

    Floating-point numbers are rounded to ``digits`` significant digits (17: not at all), and ``text`` is
    called with each text.
    """
    if hasattr(value, "tolist"):  # numpy's
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): json_data(item, digits, text) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_data(item, digits, text) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return text(str(value)) if isinstance(value, (str, Path)) else value


@functools.cache
def _console() -> Any:
    base: Any = require("rich.console").Console

    class Console(base):  # type: ignore[misc]
        """Prints what is printable of every text."""

        def render_str(self, text: str, **how: Any) -> Any:
            return super().render_str(printable(text), **how)

    return Console


def make_console(**how: Any) -> Any:
    """A console of the terminal's width, or COLUMNS; where neither says one, it never cuts a line.

    Texts of files and labels cannot command the terminal: it prints what is
    :func:`~schedgym.errors.printable` of them, and takes nothing in them for rich's markup or emoji.

    Args:
        how: further arguments of rich's console.
    """
    how = {"highlight": False, "markup": False, "emoji": False, **how}
    console = _console()(**how)
    return console if "width" in how or has_width(console) else _console()(width=WIDE, **how)


def make_table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[Any] | None], **columns: Mapping[str, Any]
) -> Any:
    """A table of rich.

    Args:
        title: "" for none.
        headings: headings of the columns; they may have several lines.
        rows: rows of as many cells, which are plain texts, or coloured ones of rich; None is a line.
        columns: heading -> rich's options of the column.
    """
    table = require("rich.table").Table(
        title=one_line(title) or None,
        title_justify="left",
        title_style="bold",
        box=require("rich.box").SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for heading in headings:
        table.add_column(heading, **columns.get(heading, {}))
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(*(one_line(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def make_templates() -> Any:
    """Jinja2's environment for the templates of pages: they escape every text, and show what is printable."""
    return require("jinja2", "report").Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,  # Markup is ours
    )


def has_width(console: Any) -> bool:
    """Return True if the terminal or COLUMNS says how wide the output may be."""
    columns = os.environ.get("COLUMNS", "")
    return bool(console.is_terminal or (columns.isdecimal() and int(columns) > 0))


def value_text(value: Any) -> str:
    """A parameter's value as the command line takes it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple) and all(isinstance(name, str) for name in value):
        return "+".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def short_value(value: Any) -> str:
    """A parameter's value; of a path, its last part."""
    return Path(value).name if isinstance(value, str) and "/" in value else value_text(value)


def metric_text(metric: Metric, mean: bool = False) -> str:
    """The name of a metric with its unit, for a heading or an axis; of a ``mean``, as such."""
    name, unit = metric.name.replace("_", " "), f" [{metric.unit}]" if metric.unit else ""
    return ("mean " if mean and "mean" not in name else "") + name + unit


def setting_text(parameters: Mapping[str, Any], show: Callable[[Any], str] = short_value) -> str:
    """Parameters in one line."""
    return ", ".join(f"{name} = {show(value)}" for name, value in parameters.items())


def setting_texts(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """:func:`setting_text` of each, with whole values where short ones do not tell the settings apart."""
    short, whole = ([setting_text(own, show) for own in settings] for show in (short_value, _exact_text))
    return short if len(set(short)) == len(set(whole)) else whole


def options_text(options: Mapping[str, Any]) -> str:
    """Options, or parameters, in one line, each value as the command line takes it."""
    texts = []
    for name, value in options.items():
        parts = value if isinstance(value, (list, tuple)) else (value,)
        texts.append(f"{name}={','.join(map(_exact_text, parts))}")
    return " ".join(texts)


def _exact_text(value: Any) -> str:
    """The text of a value, with all digits of a number."""
    text = value_text(value)
    return repr(value) if isinstance(value, float) and text != "none" and float(text) != value else text


def four_digits(value: float) -> str:
    """Four significant digits, without an exponent where it would only obscure; "-" for none."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value + 0.0:.4g}"  # no -0.0


def number(value: float, like: float | None = None, digits: int = 4) -> str:
    """Write a number with some digits; given ``like``, with the decimals of the larger one of the two."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = max(abs(value), abs(like or 0.0))
    if size == 0:
        return "0"
    if size >= 1e7 or size < 1e-4:
        return f"{value:.3e}".replace("-", "−")
    decimals = max(0, min(6, digits - 1 - math.floor(math.log10(size))))
    return f"{value:,.{decimals}f}".replace("-", "−")


def estimate_text(estimate: Estimate, factor: float = 1.0, unit: str = "") -> str:
    """An estimate times a factor, with its interval if it has one."""
    value, low, high = (factor * part for part in estimate)
    ends = f" [{number(low, value)}, {number(high, value)}]{unit}" if math.isfinite(low) else ""
    return number(value) + unit + ends


def change_text(estimate: Estimate, ratio: bool) -> str:
    """A difference with its interval, or a ratio: one near 1 in percent."""
    value, low, high = estimate
    show, unit = "{:+.3g}".format, ""
    if ratio and 0.5 <= value <= 2:
        value, low, high, unit = 100 * (value - 1), 100 * (low - 1), 100 * (high - 1), "%"
    elif ratio:
        show = "{:.3g}".format
    ends = f"  [{show(low)}, {show(high)}]" if math.isfinite(low) else ""
    return ("× " if ratio and not unit else "") + show(value) + unit + ends


def axis_text(value: float, sign: str = "") -> str:
    """A number on an axis: 20k, 3M."""
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(factor, 1e4):
            return f"{value / factor:{sign},.10g}{unit}"
    return f"{value:{sign},.10g}" if value else "0"


def effort_text(value: float) -> str:
    """The time [s] that decisions took."""
    if value >= 100:
        return short_time(value)
    if value >= 0.1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-4 else f"{value * 1e6:.3g} µs"


def time_text(seconds: float) -> str:
    """A time in the unit in which it reads best; "-" for none."""
    if not math.isfinite(seconds):
        return "-"
    if 0 < abs(seconds) < 1:
        return f"{1000 * seconds:.3g} ms"
    unit, size = time_unit(seconds)
    return f"{seconds / size:.3g} {unit}"


def time_unit(largest: float) -> tuple[str, float]:
    """The unit in which times up to this one [s] read best, and its length [s]."""
    return next((own for own in TIME_UNITS if abs(largest) >= 2 * own[1]), ("s", 1.0))


def outcome_text(outcome: Outcome, value: float) -> str:
    """A value of an outcome: a time, or a number."""
    return time_text(value) if outcome.timed else four_digits(value)


def interval_text(low: float, high: float, show: Callable[[float], str] = four_digits) -> str:
    """An interval; "-" where there is none."""
    return f"{show(low)} .. {show(high)}" if math.isfinite(low) and math.isfinite(high) else "-"


def percent_text(value: float) -> str:
    """A percentage with its sign and one digit; "-" for none."""
    if not math.isfinite(value):
        return "-"
    if abs(value) >= 1e6:
        return f"{value:+.1e}"
    return f"{round(value, 1) + 0.0:+,.1f}" if abs(value) < 1000 else f"{value:+,.0f}"  # no -0.0


def describe_space(space: Any) -> str:
    """A space in one line; bounds of boxes only where they are the same for all elements."""
    if type(space).__name__ == "Box":
        low, high = (f"{limit.min():g}..{limit.max():g}" for limit in (space.low, space.high))
        low = f"{space.low.min():g}" if (space.low == space.low.min()).all() else low
        high = f"{space.high.max():g}" if (space.high == space.high.max()).all() else high
        return f"Box({low}, {high}, {space.shape}, {space.dtype})"
    return str(space)


def describe_range(kind: Any, rules: Mapping[str, Any]) -> str:
    """The values that a parameter takes, from its type and the metadata of its field."""
    parts = []
    if rules.get("minimum") is not None:
        sign = ">" if rules.get("exclusive") else ">="
        parts.append(f"{sign} {rules['minimum']:g}")
    if rules.get("maximum") is not None:
        parts.append(f"<= {rules['maximum']:g}")
    text = ", ".join(parts)
    if rules.get("choices"):
        choices = ", ".join(rules["choices"])
        text = f"{text}; or {choices}" if text else choices
    names = {"str": "text", "None": "none", "bool": "true or false"}
    kinds = str(kind).split(" | ") if "|" in str(kind) else [kind.__name__]
    return text or " or ".join(names.get(name, name) for name in kinds)
