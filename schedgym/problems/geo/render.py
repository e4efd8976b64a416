"""Pictures of GeoAssign and GeoFair, as text and image: each site's slots by job, and the active jobs."""

from __future__ import annotations

import numpy as np

from schedgym.drawing import Bar, Line, Scene, past, renderers, short_time
from schedgym.problems.geo import dynamics
from schedgym.problems.geo.simulator import GeoSimulator


def _scene(simulator: GeoSimulator, index: int) -> Scene:
    """Draw the sites' slots by job (left) and the active jobs by arrival (right); mark the open site."""
    state, jobs = simulator.state, simulator.jobs
    s, count = state.scalars[index], int(jobs.size["jobs"][index])
    n, sites = int(s["active"]), jobs.sites[index]
    at_site = np.zeros((n, simulator.sites), dtype=np.int64)
    running = state.running[index, :n].reshape(n, *sites.shape)
    for k, a in zip(*np.nonzero(sites >= 0), strict=True):
        at_site[:, sites[k, a]] += running[:, k, a]
    happened = [name for name in ("arrival", "completion") if s[name]]
    event = " and ".join(happened) or "no event"
    if s["finished"]:
        event = "the episode has ended"
    elif simulator.mode == dynamics.SLOT:
        event = f"a slot of site {s['open_site']} is free"
    job = state.job[index, :n].tolist()
    lines = []
    for r in range(n):
        waiting, busy = int(state.waits[index, r]), int(state.occupied[index, r])
        age = short_time(float(s["clock"] - state.arrival[index, r]))
        text = f"{busy:4d} tasks running  {waiting:4d} waiting  {age:>9} old"
        lines.append(Line(job[r], busy, waiting, text))
    return Scene(
        clock=f"{s['clock']:,.2f} s",
        event=event,
        counts=f"{n} jobs active, {s['running']} tasks running, {s['waiting']} waiting, "
        f"{s['completed']} of {count} jobs done",
        done=float(s["completed"] / count),
        bar="site",
        bars=[
            Bar(
                int(jobs.slots[index, j]),
                [(job[r], int(at_site[r, j])) for r in np.flatnonzero(at_site[:, j]).tolist()],
                f"{state.runnable[index, j]} could run here",
                j == s["open_site"],
            )
            for j in range(simulator.sites)
        ],
        lines=lines,
        rows=simulator.window,
        past=past(simulator.record(index), job),
        legend="tasks that run (full), wait (light)",
        holds="slots",
        noted=True,
    )


render_ansi, render_rgb_array = renderers(_scene)
