"""The units of a guessed table's times and cpus: held against each other, and against what logs can be.

A table that does not say its units is read in seconds and cores. :func:`hold_units` corrects that by a sample
of its rows, in which a duration must be the end minus the start; :func:`settle_units` by all of them. What
they cannot decide is refused, with what to type.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.errors import TraceFormatError
from schedgym.traces.base import RESOURCES, Trace, name_of
from schedgym.traces.declaration import CLOCK, POINTS, TIMES, Field, TableFormat, TableLayout
from schedgym.traces.pieces import Chunk
from schedgym.traces.table import TableReader

FINER = ("s", "ms", "us", "ns")
AGREE = 0.5  # of the rows: a duration that is end - start in fewer is something else
NEARLY_ALL = 0.98  # of the rows
FEWEST = 5  # jobs of which the times say something of their units
MANY = 20  # jobs that all come at a multiple of a thousand units: these are finer than seconds
HOUR, DAY, YEAR = 3600.0, 86400.0, 365.25 * 86400.0
SPARSE = 0.05  # jobs that run at once on average: fewer make no log of a cluster
LONGEST_SPAN = 20 * YEAR
MOST_LOAD = 20.0  # times what was used at once
PERCENT = 50.0  # cpus in per cent are multiples of it


@dataclasses.dataclass(frozen=True, kw_only=True)
class Guess(TableFormat):
    """The declaration of a table that was guessed.

    Attributes:
        linked: True if durations are a column that is end minus start, in the unit of these.
        coarsest: the coarsest unit of points in time under which their differences are durations.
        lines: sentences on what was found of its times.
    """

    linked: bool = False
    coarsest: str = "s"
    lines: tuple[str, ...] = ()


def epoch_unit(numbers: Sequence[float] | Floats) -> str:
    """The unit of points in time that are dates from 1990 to 2100, counted from 1970; "" if they are none.

    The numbers of a log that counts from its own begin pass through this range, too, but do not stay there.
    """
    if not len(numbers):
        return ""
    low, high = np.quantile(numbers, [0.25, 0.75])
    for unit in FINER:
        size = _seconds(unit)
        if 20 * YEAR <= low * size and high * size <= 130 * YEAR and high <= 1.25 * low:
            return unit
    return ""


def _seconds(unit: str) -> float:
    """The length of a unit of time [s]; of dates and of durations with colons: what they resolve."""
    times, parts = TIMES.get(unit or "s", (1.0, 1.0))
    return times / parts


# by a sample -------------------------------------------------------------------------------------


def hold_units(
    columns: Mapping[str, Field], piece: Chunk, layout: TableLayout, source: Any, insisted: bool
) -> tuple[dict[str, Field], dict[str, Any]]:
    """Columns with units under which durations are ends minus starts, and what a :class:`Guess` tells.

    A duration goes that includes the wait, or whose unit follows from that of start and end.

    Args:
        columns: quantity -> field, of durations and ends where the table has both.
        piece: sample of the rows.
        layout: of the table.
        source: file or data frame.
        insisted: True if who asks gave the column of durations with its unit.

    Raises:
        TraceFormatError: if the duration is neither in any unit, or in another than is given.
    """
    found = dict(columns)
    if not {"submit", "end", "duration"} <= set(found) or found["duration"].source not in piece.names:
        return found, {}
    values = _sample(found, piece, layout, source)
    if not len(values["duration"]):
        return found, {}
    stayed, *units = _best(values["duration"], values["end"] - values["submit"], columns)
    ran = stayed
    if "start" in values:
        ran, *units = _best(values["duration"], values["end"] - values["start"], columns)
    unit, point = units
    name, end, own = columns["duration"].sources[0], columns["end"].sources[0], columns["duration"].unit
    if stayed > max(ran + 0.02, AGREE):
        del found["duration"]
        line = f"{name}: includes the wait, so that durations are {end} - {columns['start'].sources[0]}"
        return found, {"lines": (line,)}
    if ran < AGREE and "start" not in values and not own:  # it may be shorter, by the wait
        longest = 1.02 * (values["end"] - values["submit"]) + 1.0
        units = [u for u in FINER if np.mean(values["duration"] * _seconds(u) <= longest) > 0.9]
        unit = "" if not units or units[0] == "s" else units[0]
        found["duration"] = dataclasses.replace(columns["duration"], unit=unit)
        return found, {}
    if ran < AGREE:
        if insisted or "start" not in values or len(values["duration"]) < FEWEST:
            return found, {}
        reason = (
            f"is not {end} - {columns['start'].sources[0]} in any unit: give --columns "
            f"'duration={name} [UNIT]' if it counts, or --columns 'end={end}' if that does"
        )
        raise TraceFormatError(name_of(source), piece.header, name, reason)
    if own and _seconds(own) != _seconds(unit):
        reason = f"is no duration in {own} beside {end}: give --columns 'duration={name} [{unit}]'"
        raise TraceFormatError(name_of(source), piece.header, name, reason)
    more: dict[str, Any] = {}
    if ran < NEARLY_ALL:
        since = columns["start" if "start" in values else "submit"].sources[0]
        more["lines"] = (f"{name}: is not {end} - {since} in {1 - ran:.0%} of the first rows",)
    if columns["submit"].unit:
        found["duration"] = dataclasses.replace(columns["duration"], unit=own or unit)
    elif own:
        found |= {p: dataclasses.replace(found[p], unit=point) for p in POINTS if p in found}
    elif unit == point:
        more["linked"] = True
    else:
        del found["duration"]
        more["coarsest"] = point
    return found, more


def _sample(
    columns: Mapping[str, Field], piece: Chunk, layout: TableLayout, source: Any
) -> dict[str, Floats]:
    """Quantity -> values [s], of the rows of a sample that have all times, and run for some of it."""
    times = ("submit", "start", "end", "duration")
    own = {name: columns[name] for name in times if name in columns}
    layout = dataclasses.replace(layout, columns=own)
    reader = TableReader(source, layout, "skip", pieces=[piece], derive=lambda values, _: values)
    try:
        values = reader.read("row")
    except TraceFormatError:  # whoever reads all of the table says why
        return {"duration": np.zeros(0)}
    ran = (values["duration"] > 0) & (values["end"] > values.get("start", values["submit"]))
    return {name: numbers[ran] for name, numbers in values.items()}


def _best(duration: Floats, span: Floats, columns: Mapping[str, Field]) -> tuple[float, str, str]:
    """The share of rows in which durations are spans of time [s], and the units of both in which most are."""
    raw = duration / _seconds(columns["duration"].unit)
    point = columns["submit"].unit
    units = [CLOCK] if columns["duration"].unit == CLOCK else list(TIMES)
    best = (0.0, "", "")
    for own in FINER if not point else (point,):
        scale = _seconds(own) if not point else 1.0
        for unit in units:
            gap = np.abs(raw * _seconds(unit) - span * scale)
            slack = 0.02 * span * scale + _seconds(unit) + _seconds(own)
            share = float(np.mean(gap <= slack))
            if share > best[0] + 1e-9:
                best = (share, unit, own)
    return best


# by all rows -------------------------------------------------------------------------------------


def settle_units(
    trace: Trace, declared: Guess, source: Any, names: Collection[str], largest: float
) -> dict[str, str]:
    """Quantity -> unit, of those that are in another unit than they were read in.

    Args:
        trace: as it was read.
        declared: how it was read.
        source: file or data frame.
        names: of the columns of the table.
        largest: cores of the largest machine, 0 if they are not known.

    Raises:
        TraceFormatError: if the times cannot be what they were read as, or may be in several units.
    """
    columns = declared.columns
    free = {name for name, field in columns.items() if not field.unit and field.sources[0] in names}
    found = {}
    if "cpus" in free and _is_percent(trace.cores, columns["cpus"].sources[0], largest, source):
        found["cpus"] = "percent"
    if "gpus" in free and columns["gpus"].sources[0].lower().startswith("plan_gpu"):  # as PAI counts them
        found["gpus"] = "percent"
    few = len(trace.arrival) < FEWEST or trace.arrival[0] == trace.arrival[-1]
    if "submit" in free:
        tied = "duration" not in columns or declared.linked
        least = FINER.index(declared.coarsest)
        units = [declared.coarsest] if few else _clock_units(trace, tied, least)
        if not units and "duration" in free:  # in no unit beside durations in seconds
            tied, units = True, _clock_units(trace, True, least)
        if len(units) != 1:
            why = f"may count in {' or in '.join(units)}" if units else "counts in no usual unit"
            _refuse(trace, declared, source, "submit", why)
        if units[0] != "s":
            points = [name for name in (*POINTS, *["duration"] * tied) if name in free]
            return found | dict.fromkeys(points, units[0])
    elif "duration" in free and not few and (unit := columns["submit"].unit) in FINER[1:]:
        units = _duration_units(trace, unit)
        if len(units) != 1:
            _refuse(trace, declared, source, "duration", f"may be in {' or in '.join(units)}")
        if units[0] != "s":
            return found | {"duration": unit}
    if not few and free & {"submit", "duration"}:
        quantity = "duration" if "duration" in free else "submit"
        if np.median(trace.duration) > trace.arrival[-1] - trace.arrival[0]:
            _refuse(trace, declared, source, quantity, "makes the median job longer than the log")
        needed = float(trace.work.sum()) / float(trace.arrival[-1] - trace.arrival[0])
        if len(trace.start) and needed > MOST_LOAD * used_at_once(trace)[0]:
            _refuse(trace, declared, source, quantity, "makes jobs use far more cores than ran at once")
    return found


def _refuse(trace: Trace, declared: Guess, source: Any, quantity: str, why: str) -> None:
    """Raise TraceFormatError for a quantity whose unit is in doubt."""
    field = declared.columns[quantity]
    span, length = float(trace.arrival[-1] - trace.arrival[0]), float(np.median(trace.duration))
    reason = (
        f"{why}: as read in {field.unit or 's'}, {len(trace.arrival)} jobs come within {span / DAY:.4g} d, "
        f"and the median one lasts {length:.4g} s; give the unit, as in --columns "
        f"'{quantity}={field.sources[0]} [ms]' (or s, us, ns)"
    )
    raise TraceFormatError(name_of(source), 0, field.sources[0], reason)


def refuse_times(trace: Trace, source: Any, lines: Sequence[str]) -> None:
    """Raise TraceFormatError if a log cannot be what it was read as; the lines say how that was.

    If it or a job is longer than LONGEST_SPAN, or a job started at 0 before it was submitted, or its times
    are dates in another unit.
    """
    span, longest = float(trace.arrival[-1] - trace.arrival[0]), int(trace.duration.argmax())
    early = np.flatnonzero((trace.begun == 0.0) & (trace.arrival > 0.0))
    job, column = -1, ""
    if len(early):
        job, column = int(early[0]), "start"
        reason = "is 0, before the submission: give --empty 0 if that stands for an unknown time"
    elif (years := trace.duration[longest] / YEAR) > LONGEST_SPAN / YEAR:
        job = longest
        reason = f"lasts {years:.3g} years: give what stands for an unknown time, by --empty 0, or the unit"
    elif (unit := epoch_unit(trace.arrival)) in FINER[1:]:
        reason = f"its times are dates in {unit} since 1970: give the unit, as in 'submit=COLUMN [{unit}]'"
    elif span > LONGEST_SPAN:
        reason = (
            f"the log spans {span / YEAR:.3g} years ({'; '.join(lines)}): give the unit, as in --columns "
            "'submit=COLUMN [ms]', or leave out rows that have no time by --where"
        )
    else:
        return
    line = int(trace.line[job]) if job >= 0 and len(trace.line) else 0
    raise TraceFormatError(name_of(source), line, column, reason, trace.row)


def used_at_once(trace: Trace) -> tuple[float, ...]:
    """The most of each of RESOURCES that jobs used at once, from their recorded starts where known."""
    times = np.concatenate([trace.begun + trace.duration, trace.begun])
    order = np.argsort(times, kind="stable")  # ends first
    sizes = (getattr(trace, name) for name in RESOURCES)
    return tuple(float(np.cumsum(np.concatenate([-size, size])[order]).max()) for size in sizes)


def _clock_units(trace: Trace, tied: bool, coarsest: int) -> list[str]:
    """The units in which a clock may count that begins with the log; it was read in seconds.

    Seconds, unless they make no log: more than 20 years, less than four jobs a day that last for days, or
    times that are all multiples of a thousand. Finer units, where they make a log of an hour to a year.

    Args:
        trace: as it was read.
        tied: True if durations are in the same unit, False if they are in seconds.
        coarsest: place in FINER of the coarsest unit that it can be.
    """
    arrival, count = trace.arrival, len(trace.arrival)
    span, length = float(arrival[-1] - arrival[0]), float(np.median(trace.duration))
    gap, running = span / (count - 1), float(trace.duration.sum()) / span
    if (arrival % 1.0).any():  # nobody counts fractions of milliseconds; within a second, they may be of days
        return [FINER[coarsest]] if span >= 1.0 or count < MANY else []
    if (
        count >= MANY
        and 10_000 <= arrival[-1] < 240_000
        and (arrival[:, np.newaxis] // (1, 100) % 100 < 60).all()
    ):
        return []  # 132459 is a time of day
    times = np.concatenate([arrival - arrival[0], trace.duration * tied])
    least, step = coarsest, int(np.gcd.reduce(times.astype(np.int64)))
    step //= 1000**coarsest
    while count >= MANY and step and step % 1000 == 0 and coarsest < len(FINER) - 1:
        coarsest, step = coarsest + 1, step // 1000
    rare = gap > DAY / 4 and (length > DAY or (span > YEAR and running < SPARSE))
    no_seconds = bool(coarsest) or span > LONGEST_SPAN or rare
    doubtful = span > YEAR and (gap > HOUR or length > 6 * HOUR)
    found = [] if no_seconds else ["s"]
    for unit in FINER[max(coarsest, 1) :] if no_seconds or doubtful else ():
        size = _seconds(unit)
        own = length * size if tied else length
        usual = HOUR / 2 <= span * size <= YEAR and gap * size <= DAY / 4 and 1.0 <= own <= 2 * DAY
        if usual and (tied or running / size >= SPARSE):
            found.append(unit)
    if coarsest and not tied and not least and not rare and span <= YEAR and running >= SPARSE:
        return ["s", *found[:1]]  # jobs that come every 1000 s, or times in whole seconds that count finer
    return found[:1] or [FINER[coarsest]] * (least > 0) if coarsest else found


def _duration_units(trace: Trace, unit: str) -> list[str]:
    """The units in which durations may be beside points in time in a finer unit than seconds."""
    size, length = _seconds(unit), float(np.median(trace.duration))
    span = float(trace.arrival[-1] - trace.arrival[0])
    short = float(np.quantile(trace.duration, 0.05)) * size < 0.5
    if short or float(trace.duration.sum()) * size < SPARSE * span:
        return ["s"]
    return [unit] if length > 3 * DAY or length > max(span, DAY) else ["s", unit]


def _is_percent(cores: Floats, column: str, largest: float, source: Any) -> bool:
    """Return True if cpus are in per cent: multiples of 50, of which a machine has 100 for each core.

    Raises:
        TraceFormatError: if they may be, as no machine has so many cores, and the column does not say it.
    """
    used = cores[cores > 0]
    whole = bool(len(used)) and bool((used % PERCENT == 0).all())
    said = column.lower().startswith("plan_cpu")
    if whole and not said and largest < float(used.max()) <= 100.0 * largest:
        reason = f"may be cores or per cent: give --columns 'cpus={column} [cores]' or '... [percent]'"
        raise TraceFormatError(name_of(source), 0, column, reason)
    return whole and said
