"""Pictures of FlowtimePacking, as text and image: the jobs on each server's cores, and the remaining work."""

from __future__ import annotations

import numpy as np

from schedgym.drawing import Bar, Line, Scene, past, renderers
from schedgym.problems.flowtime.simulator import FlowtimeSimulator


def _scene(simulator: FlowtimeSimulator, index: int) -> Scene:
    """Draw the servers' cores by job on the left and the jobs on the right.

    The cores are those of the slot before, in view pick those of this slot. The jobs are in order of
    arrival, with their cores and the remaining work.
    """
    state, rows, jobs = simulator.state, simulator.arrays.rows, simulator.jobs
    s = state.scalars[index]
    n, count = int(s["active"]), int(jobs.size["jobs"][index])
    pick = simulator.parameters.view == "pick"
    cores = (rows.granted if pick else rows.held)[index, :n]
    job = rows.job[index, :n].tolist()
    lines = []
    for r in range(n):
        held, left = int(cores[r].sum()), float(rows.remaining[index, r])
        text = f"{held:3d} cores  {left:6.0f} core-slots left  {int(rows.age[index, r]):4d} slots old"
        lines.append(Line(job[r], held, left, text))
    event = f"{'granted so far' if pick else 'cores of the slot before'}"
    if simulator.terminated[index] or simulator.truncated[index]:
        event = "the episode has ended"
    return Scene(
        clock=f"slot {s['slot']}",
        event=event,
        counts=f"{n} jobs visible, {cores.sum()} of {s['cores']} cores busy, "
        f"{s['completed']} of {count} jobs done",
        done=float(s["completed"] / count),
        bar="server",
        bars=[
            Bar(
                int(jobs.server_cpu[index, i]),
                [(job[r], int(cores[r, i])) for r in np.flatnonzero(cores[:, i]).tolist()],
            )
            for i in range(simulator.servers)
        ],
        lines=lines,
        rows=simulator.window,
        past=past(simulator.record(index), job),
        legend="cores (full), core-slots left (light)",
        holds="cores",
    )


render_ansi, render_rgb_array = renderers(_scene)
