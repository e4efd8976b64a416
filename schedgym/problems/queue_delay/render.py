"""Pictures of QueueDelay, as text and image: each server's resources by task, and the queue."""

from __future__ import annotations

import dataclasses

import numpy as np

from schedgym.drawing import Bar, Line, Scene, past, renderers, short_time
from schedgym.problems.queue_delay.rules import ARRIVAL, COMPLETION
from schedgym.problems.queue_delay.simulator import QueueDelaySimulator


def _scene(simulator: QueueDelaySimulator, index: int) -> Scene:
    """Draw the servers' resources, one above the other, on the left, and the waiting tasks on the right.

    The server that was released, or the task that arrives, is marked.
    """
    state, jobs = simulator.state, simulator.jobs
    s, count = state.scalars[index], int(jobs.size["tasks"][index])
    clock, record = float(s["clock"]), simulator.record(index)
    runs = (record.start <= clock) & (record.end > clock)
    names, servers = simulator.resources, jobs.capacity[index].tolist()
    held: list[list[list[tuple[int, float]]]] = [[[] for _ in names] for _ in servers]
    for row in np.flatnonzero(runs).tolist():
        for parts, amount in zip(held[record.server[row]], record.amount[row].tolist(), strict=True):
            parts.append((int(record.job[row]), amount))
    epoch, released = int(s["epoch"]), int(s["released"])
    bars = []
    for j, (capacity, parts) in enumerate(zip(servers, held, strict=True)):
        first, *others = map(Bar, capacity, parts)
        marked = epoch == COMPLETION and j == released
        bars.append(dataclasses.replace(first, marked=marked, others=others))
    lines = []
    for task in state.queue_task[index, : s["queued"]].tolist():
        needs = zip(names, jobs.demand[index, task].tolist(), strict=True)
        execution = float(jobs.execution[index, task])
        waits = clock - float(jobs.arrival[index, task])
        text = " ".join(f"{name} {amount:.3f}" for name, amount in needs)
        text += f"  runs {short_time(execution)}  {short_time(waits)} old"
        lines.append(Line(task, 0.0, execution, text, marked=task == s["arriving"]))
    events = {ARRIVAL: "arrival", COMPLETION: f"completion at server {released}"}
    return Scene(
        clock=f"{clock:,.1f} s",
        event=events.get(epoch, "the episode has ended"),
        counts=f"{s['running']} tasks running, {s['queued']} waiting, {s['completed']} of {count} done",
        done=float(s["completed"] / count),
        bar="server",
        bars=bars,
        lines=lines,
        rows=simulator.window,
        line="task",
        legend="execution time of the waiting ones",
        past=past(record),
        holds=f"{names[0]} above, {names[1]} below" if len(names) == 2 else ", ".join(names),
    )


render_ansi, render_rgb_array = renderers(_scene)
