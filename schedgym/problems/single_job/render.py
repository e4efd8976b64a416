"""Pictures of SingleJob, as text and image: the tasks' vCPU on each server, and their times."""

from __future__ import annotations

import numpy as np

from schedgym.drawing import Bar, Line, Scene, renderers, short_time
from schedgym.problems.single_job.simulator import SingleJobSimulator

__all__ = ["render_ansi", "render_rgb_array"]


def _scene(simulator: SingleJobSimulator, index: int) -> Scene:
    """Draw the plan so far: servers with their vCPU by task on the left, tasks with their times on the right.

    Servers in use come first. The clock is the completion time. In text a server's bar has one letter per
    vCPU, that of the task that holds it.
    """
    state, jobs = simulator.state, simulator.jobs
    record = simulator.record(index)
    s = state.scalars[index]
    n, following = int(jobs.size["tasks"][index]), int(state.next_task[index, 0])
    vcpu = dict(zip(record.job.tolist(), record.amount[:, 0].tolist(), strict=True))
    time = dict(zip(record.job.tolist(), record.end.tolist(), strict=True))
    jct = record.final_time
    bars = []
    for j in range(simulator.servers):
        held = [(i, vcpu[i]) for i in record.job[record.server == j].tolist()]
        slowest = max((time[i] for i, _ in held), default=0.0)
        note = f"until {short_time(slowest)}" if held else ""
        bars.append((not held, Bar(round(float(jobs.capacity[index, j]), 6), held, note, label=str(j))))
    placement = simulator.arrays.schedule.placement[index]
    lines = []
    for i in range(n):
        text = f"load {jobs.load[index, i]:8.0f} vCPU s  not placed"
        if i in time:
            text = f"server {placement[i]:3d}  {vcpu[i]:8.3g} vCPU  {short_time(time[i]):>10}"
        lines.append(Line(i, time.get(i, 0.0), jct - time[i] if i in time else 0.0, text))
    event = f"{int(s['decisions'])} moves" if simulator.parameters.view == "search" else "nothing is placed"
    if s["finished"]:
        event = "the episode has ended"
    elif following < simulator.tasks:
        event = f"task {following} is to be placed"
    energy, cap = float(state.energy[index, 0]), float(jobs.energy_cap[index, 0])
    return Scene(
        clock=f"{jct:,.1f} s",
        event=event,
        counts=f"{len(time)} of {n} tasks on {len(np.unique(record.server))} of {simulator.servers} servers, "
        f"{sum(vcpu.values()):.3g} vCPU, {energy / cap:.1%} of the energy cap",
        done=len(time) / n,
        bar="server",
        bars=[bar for _, bar in sorted(bars, key=lambda pair: pair[0])],
        lines=lines,
        rows=simulator.tasks,
        line="task",
        legend="time (full), the job's (light)",
        whole=jct,
    )


render_ansi, render_rgb_array = renderers(_scene)
