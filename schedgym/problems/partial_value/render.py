"""Pictures of PartialValue, as text and image: each resource's load by job, and the jobs' service."""

from __future__ import annotations

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.record import ScheduleRecord
from schedgym.drawing import Bar, Line, Load, Scene, past, renderers, short_number
from schedgym.problems.partial_value.metrics import values
from schedgym.problems.partial_value.rules import TOLERANCE
from schedgym.problems.partial_value.simulator import PartialValueSimulator

PERCENT = 100


def _parts(loads: Floats) -> list[int]:
    """Round loads to whole percent so that their sum is the rounded sum of the loads."""
    ends = np.floor(np.cumsum(loads) * PERCENT + 0.5).astype(np.int64)
    parts: list[int] = np.diff(ends, prepend=0).tolist()
    return parts


def loads(record: ScheduleRecord) -> list[Load]:
    """The load of each resource, the one that the jobs ask most of first."""
    capacity, jobs = record.workload.cluster["capacity"], record.workload.jobs
    asked = (jobs["tasks"] @ jobs["demand"]) / capacity
    found = []
    for i in np.argsort(-asked, kind="stable").tolist():
        amount = record.amount[:, 0] * jobs["demand"][record.job, i]
        found.append(Load(f"resource {i}", "units", float(capacity[i]), amount))
    return found


def _scene(simulator: PartialValueSimulator, index: int) -> Scene:
    """Draw each resource's load by job on the left, and the visible jobs in order of arrival on the right.

    The loads are those of the slot before. A job's line has the tasks that it got in that slot, its tasks
    left, the share served, deadline and value.
    """
    rows, jobs, log, schedule = (getattr(simulator.arrays, n) for n in ("rows", "jobs", "log", "schedule"))
    s, number = simulator.state.scalars[index], int(jobs.size["jobs"][index])
    n, last, logged = int(s["active"]), int(s["slot"]) - 1, int(s["logged"])
    shown = min(n, simulator.window)
    # the log is sorted by slot
    before = slice(int(np.searchsorted(log.slot[index, :logged], last)) if last else 0, logged)
    job, amount = log.job[index, before], log.amount[index, before]
    load = jobs.share[index, job] * amount[:, np.newaxis]
    bars = []
    for i in range(simulator.resources):
        held = [(int(j), part) for j, part in zip(job, _parts(load[:, i]), strict=True) if part]
        used, capacity = float(load[:, i].sum()), float(jobs.capacity[index, i])
        bars.append(
            Bar(PERCENT, held, f"{short_number(used * capacity, capacity)} of {short_number(capacity)}")
        )
    got = np.zeros(number)
    got[job] = amount
    lines = []
    for r in range(shown):
        j, y = int(rows.job[index, r]), float(rows.served[index, r])
        most = float(jobs.tasks[index, j])
        text = f"served {short_number(y, most)} of {short_number(most)} tasks ({y / most:.0%})"
        text += f"  until slot {rows.deadline[index, r]:.4g}  value {rows.value[index, r]:.3g}"
        lines.append(Line(j, float(got[j]), most - y, text))
    served, tasks = schedule.served[index, :number], jobs.tasks[index, :number]
    utility, exponent = jobs.utility[index, :number], jobs.exponent[index, :number]
    total = float(values(utility, jobs.value[index, :number], exponent, served).sum())
    done = int((served >= tasks - TOLERANCE).sum())
    return Scene(
        clock=f"slot {last if s['finished'] else last + 1}",
        event="the episode has ended" if s["finished"] else "loads of the slot before",
        counts=f"{n} jobs active, {shown} visible, {done} of {number} done, value {total:.5g}",
        done=(int(s["arrived"]) - n) / number,
        bar="resource",
        bars=bars,
        lines=lines,
        rows=simulator.window,
        legend="served in the slot before (full), left (light)",
        past=past(simulator.record(index)),
        holds="% of the capacity",
        noted=True,
    )


render_ansi, render_rgb_array = renderers(_scene)
