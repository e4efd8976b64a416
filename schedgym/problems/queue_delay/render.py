"""Pictures of QueueDelay: the servers' load bars, the queue, the clock; as text and as an image."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.drawing import FAINT, GRID, INK, JOB_COLOURS, MARK, start_image
from schedgym.problems.queue_delay.rules import ARRIVAL, COMPLETION
from schedgym.problems.queue_delay.simulator import QueueDelaySimulator

__all__ = ["render_ansi", "render_rgb_array"]

MOST_SERVERS = 16  # drawn one by one; further ones are summed up in a line
MOST_TASKS = 24
BAR = 20  # characters

CPU, MEMORY = JOB_COLOURS[:2]


def _facts(simulator: QueueDelaySimulator, index: int) -> dict[str, Any]:
    """Read from the state what both pictures show."""
    state, jobs = simulator.state, simulator.jobs
    s = state.scalars[index]
    waiting = state.queue_task[index, : s["queued"]]
    epoch = {ARRIVAL: "arrival", COMPLETION: f"completion at server {s['released']}"}
    return {
        "clock": float(s["clock"]),
        "epoch": epoch.get(int(s["epoch"]), "the episode has ended"),
        "released": int(s["released"]) if s["epoch"] == COMPLETION else -1,
        "arriving": int(s["arriving"]),
        "capacity": jobs.capacity[index],
        "used": state.used[index],
        "waiting": waiting,
        "tasks": np.column_stack([jobs.arrival[index], jobs.execution[index], jobs.demand[index]])[waiting],
        "queued": int(s["queued"]),
        "running": int(s["running"]),
        "completed": int(s["completed"]),
        "total": int(jobs.size["tasks"][index]),
    }


def _duration(seconds: float) -> str:
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def render_ansi(simulator: QueueDelaySimulator, index: int) -> str:
    """Draw the state of environment ``index`` as plain text, one line per server and per waiting task."""
    facts = _facts(simulator, index)
    lines = [
        f"clock {facts['clock']:.1f} s  {facts['epoch']}",
        f"running {facts['running']}, waiting {facts['queued']}, "
        f"done {facts['completed']} of {facts['total']}",
    ]

    def bar(used: float, capacity: float) -> str:
        whole = round(BAR * capacity)
        full = min(round(BAR * used), whole)
        return ("#" * full + "." * (whole - full)).ljust(BAR)

    for j in range(min(len(facts["capacity"]), MOST_SERVERS)):
        capacity, used = facts["capacity"][j], facts["used"][j]
        mark = "*" if j == facts["released"] else " "
        lines.append(
            f"{mark}server {j:3d}  cpu [{bar(used[0], capacity[0])}] {used[0]:.3f}/{capacity[0]:.3f}"
            f"  memory [{bar(used[1], capacity[1])}] {used[1]:.3f}/{capacity[1]:.3f}"
        )
    hidden = len(facts["capacity"]) - MOST_SERVERS
    if hidden > 0:
        lines.append(f" ... and {hidden} more servers")
    for task, (arrival, execution, cpu, memory) in list(zip(facts["waiting"], facts["tasks"], strict=True))[
        :MOST_TASKS
    ]:
        mark = "*" if task == facts["arriving"] else " "
        lines.append(
            f"{mark}task {task:5d}  cpu {cpu:.3f}  memory {memory:.3f}  runs {_duration(execution):>9}"
            f"  waits {_duration(facts['clock'] - arrival):>9}"
        )
    if facts["queued"] > MOST_TASKS:
        lines.append(f" ... and {facts['queued'] - MOST_TASKS} more waiting")
    return "\n".join(lines) + "\n"


def render_rgb_array(simulator: QueueDelaySimulator, index: int) -> npt.NDArray[np.uint8]:
    """Draw the state of environment ``index`` as an image, uint8 [height, width, 3].

    On the left is a pair of bars per server (cpu above memory), as long as its capacity and filled by its
    running tasks. On the right are the first waiting tasks: a pair of bars for their demand (at four times
    the servers' scale) and their execution time on a logarithmic scale. An orange dot marks the server or
    task of the epoch.

    Raises:
        DependencyNotInstalled: without Pillow (extra ``render``).
    """
    facts = _facts(simulator, index)
    servers = min(len(facts["capacity"]), MOST_SERVERS)
    tasks = min(facts["queued"], MOST_TASKS)
    row, top, left, right, length = 26, 84, 64, 470, 320
    # the height does not depend on the queue, so that frames can form a video
    rows = max(servers, min(MOST_TASKS, simulator.window))
    done = f"{facts['completed']} of {facts['total']} done"
    counts = f"{facts['running']} running, {facts['queued']} waiting, {done}"
    headline = {20: f"{facts['clock']:,.1f} s", 220: facts["epoch"], right: counts}
    share = facts["completed"] / facts["total"]
    image, draw, font, small = start_image(top + rows * row + 34, headline, share)
    draw.text((left, 58), "servers: used of capacity", FAINT, font)
    for x, colour, name in ((left + 190, CPU, "cpu"), (left + 240, MEMORY, "memory")):
        draw.rectangle((x, 62, x + 9, 71), fill=colour)
        draw.text((x + 14, 58), name, INK, font)
    draw.text((right + 36, 58), "queue: demand (x4)", FAINT, font)
    draw.text((right + 300, 58), "execution time", FAINT, font)

    def bars(x: int, y: int, used: Any, capacity: Any, scale: float) -> None:
        for k, colour in enumerate((CPU, MEMORY)):
            y0 = y + 2 + 10 * k
            if capacity is not None:
                draw.rectangle((x, y0, x + scale * capacity[k], y0 + 8), fill=GRID)
            if used[k] > 0:
                draw.rectangle((x, y0, x + max(scale * min(used[k], 1.0), 1), y0 + 8), fill=colour)

    for j in range(servers):
        y = top + j * row
        draw.text((30, y + 5), f"{j}", INK, font)
        if j == facts["released"]:
            draw.ellipse((12, y + 7, 22, y + 17), fill=MARK)
        bars(left, y, facts["used"][j], facts["capacity"][j], length)
    hidden = len(facts["capacity"]) - servers
    if hidden:
        draw.text((left, top + servers * row + 4), f"and {hidden} more servers", FAINT, small)
    for i in range(tasks):
        y = top + i * row
        task, (_, execution, cpu, memory) = facts["waiting"][i], facts["tasks"][i]
        draw.text((right - 8, y + 5), f"{task:5d}", INK, small)
        if task == facts["arriving"]:
            draw.ellipse((right - 22, y + 7, right - 12, y + 17), fill=MARK)
        bars(right + 36, y, (cpu, memory), None, 4 * 62)
        width = 100 * min(np.log10(max(execution, 1.0)) / 5.0, 1.0)
        draw.rectangle((right + 300, y + 7, right + 300 + width, y + 15), fill=FAINT)
        draw.text((right + 410, y + 4), _duration(execution), INK, small)
    if facts["queued"] > tasks:
        text = f"and {facts['queued'] - tasks} more waiting"
        draw.text((right + 36, top + tasks * row + 4), text, FAINT, small)
    return np.asarray(image).copy()
