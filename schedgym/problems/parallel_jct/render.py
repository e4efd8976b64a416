"""Pictures of ParallelJCT: who has each server's vCPU, and which jobs wait; as text and image."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from schedgym.drawing import Bar, Line, Scene, draw_image, draw_text
from schedgym.problems.parallel_jct.simulator import ParallelJCTSimulator

__all__ = ["render_ansi", "render_rgb_array"]

PARTS = 100  # of a server that a bar tells apart


def _scene(simulator: ParallelJCTSimulator, index: int) -> Scene:
    state, jobs = simulator.state, simulator.jobs
    s = state.scalars[index]
    running, waiting = int(s["running"]), int(s["waiting"])
    server, job = state.server[index, :running], state.job[index, :running]
    speed = state.base[index, :running] + state.extra[index, :running]
    bars = []
    for j in range(simulator.servers):
        here = np.flatnonzero(server == j)
        parts: dict[int, float] = {}
        for q in here.tolist():
            parts[int(job[q])] = parts.get(int(job[q]), 0.0) + float(speed[q])
        scale = PARTS / float(jobs.cpu[index, j])
        bars.append(Bar(PARTS, [(name, int(scale * vcpu)) for name, vcpu in parts.items()]))
    lines = []
    clock = float(s["clock"])
    for r in range(waiting):
        name = int(state.queue[index, r])
        tasks = int(np.diff(jobs.first_task[index, name : name + 2])[0])
        load = float(jobs.total_load[index, name])
        age = clock - float(jobs.arrival[index, name])
        note = "  failed in this round" if state.failed[index, name] else ""
        lines.append(
            Line(name, tasks, load, f"tasks {tasks:4d}  load {load:9.0f} vCPU s  age {age:7.0f} s{note}")
        )
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
        f"{len(np.unique(server))} of {simulator.servers} servers, {s['completed']} of {s['jobs']} done",
        done=float(s["completed"] / s["jobs"]),
        bar="server",
        bars=bars,
        lines=lines,
        rows=simulator.window,
    )


def render_ansi(simulator: ParallelJCTSimulator, index: int) -> str:
    """The state of environment ``index`` as plain text, one line per server and per waiting job."""
    return draw_text(_scene(simulator, index))


def render_rgb_array(simulator: ParallelJCTSimulator, index: int) -> npt.NDArray[np.uint8]:
    """The state of environment ``index`` as an image, uint8 [height, width, 3].

    Left the servers' vCPU by job (reserved and lent), right the waiting jobs in order of arrival.

    Raises:
        DependencyNotInstalled: without Pillow (extra ``render``).
    """
    return draw_image(_scene(simulator, index))
