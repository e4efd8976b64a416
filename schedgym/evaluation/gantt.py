"""The Gantt chart of a schedule: where each piece of work is drawn, and the picture by matplotlib."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats, Integers
from schedgym.core.problem import Problem, get_problem
from schedgym.core.record import ScheduleRecord
from schedgym.drawing import Load, colour_jobs, hexadecimal, ink_on, loads_of, owners, palette, spans
from schedgym.drawing.colours import Colour
from schedgym.errors import InvalidParameter
from schedgym.evaluation.canvas import INK, PERIOD, SHADE, STYLE, add_head, as_label, bare, new_figure
from schedgym.evaluation.pictures import Axis
from schedgym.evaluation.wording import time_unit
from schedgym.extras import require

MOST_PIECES = 4000  # bars of a schedule
MOST_LANES = 240
MOST_ROWS = 40  # servers, or jobs
MOST_LOADS = 4  # resources below the bars
MOST_POINTS = 150_000  # of the jobs' shares of a load; a load of more is drawn as a whole
PLACES = ("server", "site", "machine")  # what rows are, where a workload has them
LONGEST_UNIT = 8  # letters, of an axis
GAP = 0.2  # between rows, in lanes


@dataclasses.dataclass(frozen=True)
class Chart:
    """The positions at which the pieces of work of a schedule are drawn.

    Rows are servers (sites; of a large fat tree its racks), or jobs where a problem has no servers. Pieces
    that share a row at the same time lie in lanes of it. Rows count from the top, in lanes.

    Attributes:
        problem: the problem of the schedule.
        unit: of the times.
        job_word: the word for a job.
        by_job: True if rows are jobs.
        owner: the job of each row of the record.
        order: the rows of the record that are drawn, by start.
        y: the middle of the lane of each of these.
        colours: the colour of each of these.
        names: of the rows.
        begin, depth: of the rows: position of the first lane, and number of lanes.
        bottom: position at which the last row ends.
        windows: (arrival, deadline, middle of the lane) of each row that is a job with a deadline.
        text: a sentence on what is drawn, and what is left out.
    """

    problem: Problem
    unit: str
    job_word: str
    by_job: bool
    owner: Integers
    order: Integers
    y: Floats
    colours: list[Colour]
    names: list[str]
    begin: list[float]
    depth: list[int]
    bottom: float
    windows: list[tuple[float, float, float]]
    text: str

    def axis(self, most: float) -> Axis:
        """The axis of the rows, of which about ``most`` at most have a label."""
        every = max(1, math.ceil(len(self.names) / max(most, 1)))
        middles = [begin + depth / 2 for begin, depth in zip(self.begin, self.depth, strict=True)]
        return Axis("linear", (self.bottom, -GAP), middles[::every], self.names[::every])


def make_chart(
    record: ScheduleRecord, most_rows: int = MOST_ROWS, span: tuple[float, float] = (-math.inf, math.inf)
) -> Chart:
    """Lay out a schedule: of a long one the first pieces in the span, of a large cluster the busiest rows."""
    problem = get_problem(record.workload.problem)
    schema = problem.schema
    owner = owners(record, schema)
    job_word = "task" if schema.jobs[0].dimensions == ("task",) else "job"
    what = next((f.dimensions[0] for f in schema.cluster if len(f.dimensions) == 1), "")
    by_job = what not in PLACES
    if by_job:
        what, place = job_word, owner
        names = [f"{what} {i}" for i in range(int(owner.max(initial=-1)) + 1)]
    else:
        what, names, of = _places(record, problem, what, most_rows)
        place = np.asarray(of, dtype=np.int64)[record.server]
    order, notes = _pieces(record, place, by_job, what, most_rows, span)
    lanes = _lanes(place, record.start, record.end, order)
    rows = sorted({int(place[i]) for i in order})
    depth = dict.fromkeys(rows, 1)
    for i, lane in zip(order, lanes, strict=True):
        depth[int(place[i])] = max(depth[int(place[i])], lane + 1)
    ends = np.cumsum([depth[row] + GAP for row in rows])
    begin = {row: float(end) - depth[row] - GAP for row, end in zip(rows, ends, strict=True)}
    numbers = _colours(record, owner)[owner[order]]
    found = palette(int(numbers.max(initial=-1)) + 1)
    windows = _windows(record, [(row, begin[row] + 0.5) for row in rows]) if by_job else []
    text = _count(len(order), "piece") + " of work of " + _count(len(np.unique(owner[order])), job_word)
    if not by_job:
        whole = f" of {len(names):,}" if len(rows) < len(names) and not notes else ""
        text += f" on {len(rows):,}{whole} {what}{'' if len(names) == 1 else 's'}"
    elif windows:
        text += "; shaded: from arrival to deadline"
    return Chart(
        problem=problem,
        unit=next((field.unit for field in schema.jobs if field.name == "arrival"), "s"),
        job_word=job_word,
        by_job=by_job,
        owner=owner,
        order=order,
        y=np.array(
            [begin[int(place[i])] + lane + 0.5 for i, lane in zip(order, lanes, strict=True)], dtype=float
        ),
        colours=[found[i] for i in numbers.tolist()],
        names=[names[row] for row in rows],
        begin=[begin[row] for row in rows],
        depth=[depth[row] for row in rows],
        bottom=float(ends[-1]) if len(ends) else 1.0,
        windows=windows,
        text=text + (": " + ", ".join(notes) if notes else ""),
    )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _places(
    record: ScheduleRecord, problem: Problem, what: str, most: int
) -> tuple[str, list[str], list[int]]:
    """The word for a row, the rows' names, and the row of each server: ``places`` of a problem's render."""
    own = getattr(problem.module("render"), "places", None)
    if own is not None:
        word, names, of = own(record, most)
        return word, [f"{word} {name}" for name in names], of
    fields = problem.schema.fields("cluster", vars(record.workload))
    cluster = record.workload.cluster
    count = next(len(cluster[f.name]) for f in fields if f.dimensions == (what,) and f.name in cluster)
    return what, [f"{what} {i}" for i in range(count)], list(range(count))


def _colours(record: ScheduleRecord, owner: Integers) -> Integers:
    deadline = record.workload.jobs.get("deadline")
    count = int(owner.max(initial=-1)) + 1 if deadline is None else len(deadline)
    return colour_jobs(*spans(owner, record.start, record.end, count, deadline=deadline))


def _windows(record: ScheduleRecord, rows: list[tuple[int, float]]) -> list[tuple[float, float, float]]:
    arrival, deadline = (record.workload.jobs.get(name) for name in ("arrival", "deadline"))
    if arrival is None or deadline is None:
        return []
    return [(float(arrival[job]), float(deadline[job]), y) for job, y in rows]


def _pieces(
    record: ScheduleRecord, row: Integers, by_job: bool, what: str, most_rows: int, span: tuple[float, float]
) -> tuple[Integers, list[str]]:
    """The pieces of work that are drawn, by start, and notes on the selection where some are left out."""
    order = np.lexsort((record.job, record.start))
    order = order[(record.end[order] > span[0]) & (record.start[order] < span[1])]
    notes = []
    total = len(np.unique(row[order]))
    if total > most_rows:
        if by_job:
            kept = np.unique(row[order])[:most_rows]
            notes.append(f"the first {most_rows} of {total}")
        else:
            inside = np.minimum(record.end, span[1]) - np.maximum(record.start, span[0])
            used = np.bincount(row[order], weights=inside[order])
            kept = np.argsort(-used, kind="stable")[:most_rows]
            notes.append(f"the busiest of {total}")
        order = order[np.isin(row[order], kept)]
    if len(order) > MOST_PIECES:
        notes.append(f"the first of {len(order):,} pieces")
        order = order[:MOST_PIECES]
    return order, notes


def _lanes(row: Integers, start: Floats, end: Floats, order: Integers) -> list[int]:
    """The first free lane of its row for each piece, taken in ``order`` (by start)."""
    free: dict[int, list[float]] = {}
    lanes = []
    for i in order:
        ends = free.setdefault(int(row[i]), [])
        slack = 1e-9 * max(abs(float(start[i])), 1.0)
        lane = next((k for k, until in enumerate(ends) if until <= start[i] + slack), len(ends))
        if lane == len(ends):
            if lane < MOST_LANES:
                ends.append(0.0)
            else:
                lane = int(np.argmin(ends))
        ends[lane] = float(end[i])
        lanes.append(lane)
    return lanes


# the picture ---------------------------------------------------------------------------------------


def plot_schedule(
    schedule: Any,
    *,
    policy: str = "",
    title: str | None = None,
    width: float = 9.0,
    span: tuple[float, float] | None = None,
    most_rows: int = MOST_ROWS,
) -> Any:
    """Draw a schedule: the times and servers of the work of each job, and below it the load of each resource.

    Rows are servers (sites; of a fat tree with more than ``most_rows`` servers its racks), or jobs from
    arrival to deadline where a problem has no servers. Jobs that run at the same time have different
    colours, those of the environments' own pictures; numbers in the bars are those of jobs.

    Args:
        schedule: a :class:`~schedgym.core.record.ScheduleRecord`, or an environment, whose episode so far is
            drawn.
        policy: the name of the policy that made it; "": the environment's ``caption``.
        title: None: the policy and the problem; "" for none.
        width: of the figure, in inches.
        span: first and last instant that are drawn, in the problem's unit of time; None: all, but if the last
            twentieth of the work takes longer than all before, only the beginning of it (the picture says
            so).
        most_rows: largest number of rows that are drawn; further ones are left out (the picture says so).

    Returns:
        a matplotlib figure: ``figure.savefig("schedule.svg")`` writes it.

    Raises:
        InvalidParameter: for anything else than a record or an environment, a record without work, or an
            empty span.
        gymnasium.error.DependencyNotInstalled: without matplotlib (extra ``eval``).
    """
    matplotlib = require("matplotlib")
    record, policy = _record(schedule, policy)
    if not len(record.job):
        raise InvalidParameter("nothing to draw: no work has begun")
    first, last = _span(record) if span is None else span
    if not first < last:
        raise InvalidParameter(f"span: must begin before it ends, got {span}")
    chart = make_chart(record, most_rows, (first, last))
    loads = loads_of(record)[:MOST_LOADS]
    if title is None:
        title = " · ".join(part for part in (policy, chart.problem.name) if part)
    bars = float(np.clip(0.16 * chart.bottom, 1.2, 7.0))
    with matplotlib.rc_context(STYLE):
        head = 0.62 if title else 0.1
        figure = new_figure(width, head + bars + 0.5 + 0.95 * len(loads))
        panels = figure.subplots(
            1 + len(loads), 1, sharex=True, squeeze=False, height_ratios=[bars, *[0.95] * len(loads)]
        )[:, 0]
        unit, scale = time_unit(last - first) if chart.unit == "s" else (chart.unit, 1.0)
        panels[0].set_xlim(first / scale, last / scale)
        _draw_pieces(panels[0], record, chart, scale, (bars * 72, 0.84 * width * 72))
        for axes, load in zip(panels[1:], loads, strict=True):
            _draw_load(axes, record, chart, load, scale, (first, last))
        panels[-1].set_xlabel(f"time [{unit}]")
        figure.align_ylabels(panels[1:])
        share = head / figure.get_figheight()
        figure.get_layout_engine().set(rect=(0.008, 0.01, 0.984, 0.985 - share))
        if title:
            later = float(record.end.max()) / scale
            rest = f"; the last ends at {later:.4g} {unit}" if span is None and later * scale > last else ""
            add_head(figure, title, chart.text + rest + _units(loads), as_label)
    return figure


def _span(record: ScheduleRecord) -> tuple[float, float]:
    """From the begin to the end, or, where a few pieces of work last for long, until most have ended."""
    first, last = min(0.0, float(record.start.min())), float(record.end.max())
    most = first + 1.1 * (float(np.quantile(record.end, 0.95)) - first)
    return first, most if last - first > 2 * (most - first) > 0 else last


def _record(schedule: Any, policy: str) -> tuple[ScheduleRecord, str]:
    if isinstance(schedule, ScheduleRecord):
        return schedule, policy
    env = getattr(schedule, "unwrapped", schedule)
    if not hasattr(env, "caption"):
        raise InvalidParameter(
            "plot_schedule: needs a schedule record, or an environment of schedgym (of a vector "
            f"environment env.record(i)), got {type(schedule).__name__}"
        )
    record = env.record()
    if record.final_time < record.end.max(initial=0.0):  # what has begun ends at a time that nobody knows yet
        ended = np.minimum(record.end, record.final_time)
        record = dataclasses.replace(record, end=ended)
    return record, policy or env.caption


def _draw_pieces(
    axes: Any, record: ScheduleRecord, chart: Chart, scale: float, points: tuple[float, float]
) -> None:
    """Draw the rows with their bars; ``points`` is the size of the panel."""
    for k, (begin, depth) in enumerate(zip(chart.begin, chart.depth, strict=True)):
        if k % 2:
            axes.axhspan(begin - GAP / 2, begin + depth + GAP / 2, color=SHADE, linewidth=0, zorder=0)
    if chart.windows:
        arrival, deadline, middle = np.array(chart.windows).T
        length = (deadline - arrival) / scale
        axes.barh(middle, length, 0.84, left=arrival / scale, color=PERIOD, linewidth=0)
    start, end = record.start[chart.order] / scale, record.end[chart.order] / scale
    boxes = [
        [(a, y - 0.46), (b, y - 0.46), (b, y + 0.46), (a, y + 0.46)]
        for a, b, y in zip(start.tolist(), end.tolist(), chart.y.tolist(), strict=True)
    ]
    lane = points[0] / chart.bottom
    edge = 0.3 if lane > 5 else 0.0
    colours = [hexadecimal(colour) for colour in chart.colours]
    look = {"edgecolors": "white" if edge else colours, "linewidths": edge, "zorder": 2}
    pieces = require("matplotlib.collections").PolyCollection(boxes, facecolors=colours, **look)
    axes.add_collection(pieces)
    low, high = axes.get_xlim()
    size = 0.0 if chart.by_job else min(8.0, 0.72 * lane)  # a row that is a job has its name already
    for i, a, b, y, colour in zip(chart.order, start, end, chart.y, chart.colours, strict=True):
        text = str(chart.owner[i])
        a, b = max(a, low), min(b, high)
        if size >= 4.5 and (b - a) / (high - low) * points[1] > size * (0.7 * len(text) + 0.4):
            ink = hexadecimal(ink_on(colour))
            axes.text((a + b) / 2, y, text, fontsize=size, color=ink, ha="center", va="center_baseline")
    rows = chart.axis(points[0] / 10)  # a label is 10 points high
    axes.set_yticks(rows.ticks, rows.texts, fontsize=8)
    axes.set_ylim(rows.limits)
    bare(axes, "x")
    axes.tick_params(axis="y", length=0)


def _units(loads: list[Load]) -> str:
    """Return the units of the loads that are too long for an axis."""
    names: dict[str, list[str]] = {}
    for load in loads:
        if len(load.unit) > LONGEST_UNIT:
            names.setdefault(load.unit, []).append(load.name)
    return "".join(f"; {' and '.join(own)}: {unit}" for unit, own in names.items())


def _draw_load(
    axes: Any, record: ScheduleRecord, chart: Chart, load: Load, scale: float, span: tuple[float, float]
) -> None:
    """Draw a load over time, job upon job, against the cluster's capacity."""
    inside = (record.end > span[0]) & (record.start < span[1])
    amount = load.amount[inside]
    starts, ends = (np.clip(times[inside], *span) for times in (record.start, record.end))
    times = np.unique(np.concatenate([starts, ends]))
    first, last = np.searchsorted(times, starts), np.searchsorted(times, ends)
    steps: Floats = np.zeros(len(times))
    np.add.at(steps, first, amount)
    np.add.at(steps, last, -amount)
    total = np.cumsum(steps)
    jobs, index = np.unique(chart.owner[inside], return_inverse=True)
    begin, end = np.full(len(jobs), len(times)), np.zeros(len(jobs), dtype=int)
    np.minimum.at(begin, index, first)
    np.maximum.at(end, index, last)
    if (end - begin).sum() <= MOST_POINTS:
        numbers = _colours(record, chart.owner)
        found = palette(int(numbers.max()) + 1)
        below = np.zeros(len(times))
        rows = np.argsort(index, kind="stable")
        cuts = np.searchsorted(index[rows], np.arange(len(jobs) + 1))
        for k in np.lexsort((jobs, begin)).tolist():
            part, own = slice(int(begin[k]), int(end[k]) + 1), rows[cuts[k] : cuts[k + 1]]
            held = np.zeros(int(end[k]) + 1 - int(begin[k]))
            np.add.at(held, first[own] - begin[k], amount[own])
            np.add.at(held, last[own] - begin[k], -amount[own])
            above = below[part] + np.maximum(np.cumsum(held), 0)
            look = {"step": "post", "color": hexadecimal(found[int(numbers[jobs[k]])]), "linewidth": 0}
            axes.fill_between(times[part] / scale, below[part], above, **look)
            below[part] = above
    else:
        axes.fill_between(times / scale, 0, total, step="post", color="#9a9a9a", linewidth=0)
    axes.step(times / scale, total, where="post", color=INK, linewidth=0.7)
    most, capacity = float(total.max(initial=0.0)), load.capacity
    unit = (
        f" [{load.unit}]" if load.unit and load.unit != load.name and len(load.unit) <= LONGEST_UNIT else ""
    )
    axes.set_ylabel(f"{load.name}{unit}", fontsize=8)
    if most >= 0.25 * capacity:
        axes.axhline(capacity, color=INK, linestyle=(0, (4, 3)), linewidth=0.9)
        axes.set_ylim(0, 1.12 * max(capacity, most))
    else:
        axes.set_ylim(0, 1.35 * most or capacity)
        text = f"capacity: {capacity:,.4g}"
        axes.annotate(text, (0.995, 0.97), xycoords="axes fraction", ha="right", va="top", fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    bare(axes, "x")
