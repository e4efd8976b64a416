"""Pictures of ParallelJCT, as text and image: each server's or rack's vCPU by job, and the waiting jobs."""

from __future__ import annotations

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.drawing import Bar, Line, Load, Scene, past, renderers
from schedgym.problems.parallel_jct.simulator import ParallelJCTSimulator
from schedgym.problems.single_job.render import places


def loads(record: ScheduleRecord) -> list[Load]:
    """The vCPU that pieces of work hold: the reserved and the extra ones."""
    capacity = float(np.sum(record.workload.cluster["cpu"]))
    return [Load("vCPU", "vCPU", capacity, record.amount.sum(axis=1))]


def _bars(simulator: ParallelJCTSimulator, index: int, record: ScheduleRecord) -> tuple[str, list[Bar]]:
    """The vCPU that jobs hold, reserved and extra ones (in a round only reserved ones), by server or rack."""
    s = simulator.state.scalars[index]
    rows = simulator.state.running[index, : int(s["running"])]
    speed = rows["vcpu"] if s["deciding"] else rows["vcpu"] + rows["extra"]
    word, names, place = places(record)
    capacity = np.bincount(place, weights=simulator.jobs.cpu[index], minlength=len(names)).tolist()
    held: list[dict[int, float]] = [{} for _ in names]
    for server, job, vcpu in zip(rows["server"].tolist(), rows["job"].tolist(), speed.tolist(), strict=True):
        own = held[place[server]]
        own[job] = own.get(job, 0.0) + vcpu
    bars = [
        Bar(most, list(own.items()), label=name)
        for name, most, own in zip(names, capacity, held, strict=True)
    ]
    return word, bars


def _scene(simulator: ParallelJCTSimulator, index: int) -> Scene:
    """Draw the vCPU of the servers (racks, named pod.rack) by job on the left, the waiting jobs on the right.

    The waiting jobs are in order of arrival, with their loads.
    """
    state, jobs, record = simulator.state, simulator.jobs, simulator.record(index)
    s, window = state.scalars[index], simulator.interface.sizes["window"]
    running, waiting, count = int(s["running"]), int(s["waiting"]), int(jobs.size["jobs"][index])
    tasks = state.running[index, :running]
    active = np.unique(tasks["job"]).tolist()
    word, bars = _bars(simulator, index, record)
    lines = []
    clock = float(s["clock"])
    for r in range(waiting):
        name = int(state.queue[index, r])
        size = int(np.diff(jobs.first_task[index, name : name + 2])[0])
        load = float(jobs.total_load[index, name])
        age = clock - float(jobs.arrival[index, name])
        note = "  failed" if state.failed[index, name] else ""
        text = f"{size:3d} tasks  {load:6.0f} vCPU s  waits {age:.0f} s{note}"
        lines.append(Line(name, 0.0, load, text))
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
        clock=f"{clock:,.1f} s",
        event=event,
        counts=f"{waiting} jobs wait, {len(active)} run in {running} tasks on "
        f"{len(np.unique(tasks['server']))} of {simulator.jobs.cpu.shape[1]} servers, "
        f"{s['completed']} of {count} done",
        done=float(s["completed"] / count),
        bar=word,
        bars=bars,
        lines=lines,
        rows=window,
        legend="load of the waiting ones",
        whole=1.5 * max((line.waiting for line in lines), default=1.0),
        past=past(record, active, clock),
        holds="vCPU",
    )


render_ansi, render_rgb_array = renderers(_scene)
