"""Pictures of GeoAssign and GeoFair: who holds each site's slots, and what waits; as text and image."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled

from schedgym.problems.geo import dynamics
from schedgym.problems.geo.simulator import GeoSimulator

__all__ = ["JOB_COLOURS", "render_ansi", "render_rgb_array"]

MOST_SITES = 20  # drawn one by one; further ones are summed up in a line
MOST_JOBS = 24
BAR = 24  # characters

INK, FAINT, GRID, MARK = (40, 40, 40), (120, 120, 120), (225, 225, 225), (213, 94, 0)
BACKGROUND = (255, 255, 255)
#: job i has colour i modulo their number; colour-blind safe (Okabe and Ito, and three of Tol's)
JOB_COLOURS = (
    (0, 114, 178),
    (230, 159, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (148, 103, 52),
    (170, 170, 0),
    (102, 51, 153),
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _facts(simulator: GeoSimulator, index: int) -> dict[str, Any]:
    """What both pictures show, read from the state."""
    state, jobs = simulator.state, simulator.jobs
    s = state.scalars[index]
    n, sites = int(s["active"]), jobs.sites[index]
    at_site = np.zeros((n, simulator.sites), dtype=np.int64)
    running = state.running[index, :n].reshape(n, *sites.shape)
    for k, a in zip(*np.nonzero(sites >= 0), strict=True):
        at_site[:, sites[k, a]] += running[:, k, a]
    happened = [
        name for name, flag in (("arrival", s["arrival"]), ("completion", s["completion"])) if flag
    ]
    event = " and ".join(happened) or "no event"
    if s["finished"]:
        event = "the episode has ended"
    elif simulator.mode == dynamics.SLOT:
        event = f"a slot of site {s['open_site']} is free"
    return {
        "clock": float(s["clock"]),
        "event": event,
        "open": int(s["open_site"]),
        "slots": jobs.slots[index],
        "at_site": at_site,
        "job": state.job[index, :n],
        "age": float(s["clock"]) - state.arrival[index, :n],
        "waiting": state.waits[index, :n],
        "running": state.occupied[index, :n],
        "completed": int(s["completed"]),
        "total": int(s["jobs"]),
        "runnable": state.runnable[index],
    }


def _headline(facts: dict[str, Any]) -> str:
    running, waiting = int(facts["running"].sum()), int(facts["waiting"].sum())
    done = f"{facts['completed']} of {facts['total']} jobs done"
    return f"{len(facts['job'])} jobs active, {running} tasks running, {waiting} waiting, {done}"


def _age(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 600 else f"{seconds:.1f} s"


def render_ansi(simulator: GeoSimulator, index: int) -> str:
    """The state of environment ``index`` as plain text, one line per site and per active job.

    A site's bar has a letter per busy slot, the job's, or where it has many slots per equal part of them.
    """
    facts = _facts(simulator, index)
    lines = [f"clock {facts['clock']:.2f} s  {facts['event']}", _headline(facts)]
    for j in range(min(simulator.sites, MOST_SITES)):
        slots, here = int(facts["slots"][j]), facts["at_site"][:, j]
        holders = np.repeat(np.arange(len(here)), here)
        cells = min(slots, BAR)
        bar = ""
        for cell in range(cells):
            slot = cell * slots // cells
            job = int(facts["job"][holders[slot]]) if slot < len(holders) else -1
            bar += LETTERS[job % len(LETTERS)] if job >= 0 else "."
        mark = "*" if j == facts["open"] else " "
        waiting = f"{int(facts['runnable'][j])} may run here"
        lines.append(f"{mark}site {j:3d}  [{bar}] {len(holders)}/{slots} busy  {waiting}")
    if simulator.sites > MOST_SITES:
        lines.append(f" ... and {simulator.sites - MOST_SITES} more sites")
    for r, job in enumerate(facts["job"][:MOST_JOBS].tolist()):
        lines.append(
            f" {LETTERS[job % len(LETTERS)]} job {job:5d}  waiting {int(facts['waiting'][r]):5d}"
            f"  running {int(facts['running'][r]):5d}  age {_age(float(facts['age'][r])):>9}"
        )
    if len(facts["job"]) > MOST_JOBS:
        lines.append(f" ... and {len(facts['job']) - MOST_JOBS} more jobs")
    return "\n".join(lines) + "\n"


def render_rgb_array(simulator: GeoSimulator, index: int) -> npt.NDArray[np.uint8]:
    """The state of environment ``index`` as an image, uint8 [height, width, 3].

    Left: a bar per site, as long as its slots, its busy part in the colours of the jobs that hold it. Right:
    the active jobs in order of arrival; dark their running, light their waiting tasks, on a logarithmic
    scale. An orange dot marks the site whose slot is offered.

    Raises:
        DependencyNotInstalled: without Pillow (extra ``render``).
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise DependencyNotInstalled(
            'render_mode="rgb_array" needs Pillow: pip install "schedgym[render]"'
        ) from error

    facts = _facts(simulator, index)
    sites, shown = min(simulator.sites, MOST_SITES), min(len(facts["job"]), MOST_JOBS)
    row, top, left, right, length = 24, 84, 64, 500, 360
    # the height does not depend on the jobs, so that frames make a film
    rows = max(sites, min(MOST_JOBS, simulator.window))
    image = Image.new("RGB", (960, top + rows * row + 34), BACKGROUND)
    draw = ImageDraw.Draw(image)
    large, font, small = (ImageFont.load_default(size) for size in (18, 13, 11))
    draw.text((20, 12), f"t = {facts['clock']:,.1f} s", INK, large)
    draw.text((160, 16), facts["event"], MARK, font)
    draw.text((390, 16), _headline(facts), INK, font)
    draw.rectangle((20, 42, 940, 48), fill=GRID)
    draw.rectangle((20, 42, 20 + 920 * facts["completed"] / facts["total"], 48), fill=FAINT)
    draw.text((left, 58), "sites: busy slots, by job", FAINT, font)
    draw.text((right + 60, 58), "jobs: running (full), waiting (light) tasks", FAINT, font)

    def light(colour: tuple[int, int, int]) -> tuple[int, int, int]:
        return tuple(255 - (255 - c) * 2 // 5 for c in colour)  # type: ignore[return-value]

    scale = length / int(facts["slots"].max())
    for j in range(sites):
        y = top + j * row
        draw.text((30, y + 3), f"{j}", INK, font)
        if j == facts["open"]:
            draw.ellipse((12, y + 5, 22, y + 15), fill=MARK)
        draw.rectangle((left, y + 2, left + scale * int(facts["slots"][j]), y + 17), fill=GRID)
        x = float(left)
        for r in np.flatnonzero(facts["at_site"][:, j]).tolist():
            width = scale * int(facts["at_site"][r, j])
            colour = JOB_COLOURS[int(facts["job"][r]) % len(JOB_COLOURS)]
            draw.rectangle((x, y + 2, x + max(width - 1, 1), y + 17), fill=colour)
            x += width
    if simulator.sites > sites:
        text = f"and {simulator.sites - sites} more sites"
        draw.text((left, top + sites * row + 4), text, FAINT, small)
    for r in range(shown):
        y = top + r * row
        job, running, waiting = (int(facts[name][r]) for name in ("job", "running", "waiting"))
        colour = JOB_COLOURS[job % len(JOB_COLOURS)]
        draw.text((right, y + 3), f"{job:5d}", INK, small)
        full, whole = (60 * np.log10(1.0 + count) for count in (running, running + waiting))
        draw.rectangle((right + 60, y + 2, right + 60 + max(whole, 1), y + 17), fill=light(colour))
        if running:
            draw.rectangle((right + 60, y + 2, right + 60 + max(full, 1), y + 17), fill=colour)
        text = f"{running} + {waiting}   age {_age(float(facts['age'][r]))}"
        draw.text((right + 66 + max(whole, 1), y + 3), text, INK, small)
    if len(facts["job"]) > shown:
        text = f"and {len(facts['job']) - shown} more jobs"
        draw.text((right + 60, top + shown * row + 4), text, FAINT, small)
    return np.asarray(image).copy()
