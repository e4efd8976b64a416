"""Pictures of ParallelJCT, as text and image: each server's vCPU by job, and the waiting jobs."""

from __future__ import annotations

import numpy as np

from schedgym.drawing import Bar, Line, Scene, renderers
from schedgym.problems.parallel_jct.simulator import ParallelJCTSimulator

__all__ = ["render_ansi", "render_rgb_array"]


def _scene(simulator: ParallelJCTSimulator, index: int) -> Scene:
    """Draw the servers' vCPU by job on the left, and the waiting jobs on the right.

    The vCPU are reserved and extra ones (in a round only reserved ones). The waiting jobs are in order of
    arrival, with their loads.
    """
    state, jobs = simulator.state, simulator.jobs
    s, window = state.scalars[index], simulator.interface.sizes["window"]
    running, waiting, count = int(s["running"]), int(s["waiting"]), int(jobs.size["jobs"][index])
    rows = state.running[index, :running]
    server, job, speed = rows["server"], rows["job"], rows["vcpu"].copy()
    if not s["deciding"]:  # in a round the tasks have no extra vCPU
        speed += rows["extra"]
    bars = []
    for j in range(len(jobs.cpu[index])):
        here = np.flatnonzero(server == j)
        parts: dict[int, float] = {}
        for q in here.tolist():
            parts[int(job[q])] = parts.get(int(job[q]), 0.0) + float(speed[q])
        bars.append(Bar(float(jobs.cpu[index, j]), list(parts.items())))
    lines = []
    clock = float(s["clock"])
    for r in range(waiting):
        name = int(state.queue[index, r])
        tasks = int(np.diff(jobs.first_task[index, name : name + 2])[0])
        load = float(jobs.total_load[index, name])
        age = clock - float(jobs.arrival[index, name])
        note = "  failed" if state.failed[index, name] else ""
        lines.append(Line(name, 0.0, load, f"{tasks:3d} tasks {load:6.0f} vCPU s {age:5.0f} s{note}"))
    event = ", ".join(
        text
        for name, text in (("was_arrival", "arrival"), ("was_completion", "completion"), ("was_tick", "tick"))
        if s[name]
    )
    if s["open_row"] >= 0:
        event += f"; job {state.queue[index, s['open_row']]} is being planned"
    if s["finished"]:
        event = "the episode has ended"
    return Scene(
        clock=f"{clock:.1f} s",
        event=event,
        counts=f"{waiting} jobs wait, {len(np.unique(job))} run in {running} tasks on "
        f"{len(np.unique(server))} of {len(bars)} servers, {s['completed']} of {count} done",
        done=float(s["completed"] / count),
        bar="server",
        bars=bars,
        lines=lines,
        rows=window,
        legend="load of the waiting ones",
        whole=1.5 * max((line.waiting for line in lines), default=1.0),
    )


render_ansi, render_rgb_array = renderers(_scene)
