"""Pictures of SingleJob, as text and image: the tasks' vCPU on each server, and their times."""

from __future__ import annotations

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.drawing import Bar, Line, Scene, renderers, short_time
from schedgym.problems.single_job.simulator import SingleJobSimulator

MOST_SERVERS = 16  # of a fat tree that are drawn one by one; a larger one is drawn by racks


def places(record: ScheduleRecord, most: int = MOST_SERVERS) -> tuple[str, list[str], list[int]]:
    """The rows of a picture of the cluster: servers, or of a fat tree with more than ``most`` its racks.

    Returns:
        the word for a row, the names of the rows, and the row of each server.
    """
    servers = len(record.workload.cluster["cpu"])
    arity = record.workload.cluster.get("arity")
    if arity is None or servers <= most:
        return "server", [str(j) for j in range(servers)], list(range(servers))
    half = int(arity) // 2  # servers of a rack, and racks of a pod, one after the other
    names = [f"{rack // half}.{rack % half}" for rack in range(servers // half)]
    return "rack", names, [j // half for j in range(servers)]


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
        text = f"load {jobs.load[index, i]:.0f} vCPU s  not placed"
        if i in time:
            text = f"server {placement[i]}  {vcpu[i]:8.3g} vCPU  {short_time(time[i]):>10}"
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
        holds="vCPU",
        noted=True,
    )


render_ansi, render_rgb_array = renderers(_scene)
