"""One picture for clusters whose servers (or sites) run parts of many jobs at once; text and image."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled

__all__ = [
    *("FAINT", "GRID", "INK", "JOB_COLOURS", "MARK", "Bar", "Line", "Scene"),
    *("draw_image", "draw_text", "renderers", "short_time", "start_image"),
]

MOST_BARS = 20  # drawn one by one; further ones are summed up in a line
MOST_LINES = 24
CELLS = 24  # characters of a bar

INK, FAINT, GRID, MARK = (40, 40, 40), (120, 120, 120), (225, 225, 225), (213, 94, 0)
BACKGROUND = (255, 255, 255)
#: job i has colour i modulo their number; colour-blind safe (Okabe and Ito, and three more)
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


@dataclasses.dataclass(frozen=True)
class Bar:
    """A server or site: its capacity, and how much of it each job holds, as (job, amount).

    ``label`` stands in the place of its number.
    """

    capacity: float
    held: Sequence[tuple[int, float]]
    note: str = ""
    marked: bool = False
    label: str = ""


@dataclasses.dataclass(frozen=True)
class Line:
    """A job: its running and its waiting part (drawn on the scene's scale), and the text beside it."""

    job: int
    running: float
    waiting: float
    text: str


@dataclasses.dataclass(frozen=True)
class Scene:
    """The content of a picture.

    Attributes:
        clock, event, counts: the headline.
        done: share of the jobs that have completed.
        bar: the word for a bar: "site" or "server".
        bars: all of them.
        lines: the active jobs.
        rows: number of lines that the picture has space for, so that all frames have one size.
        line: the word for a line.
        legend: the meaning of the lines.
        whole: full length of a line on a linear scale; 0: the scale is logarithmic.
    """

    clock: str
    event: str
    counts: str
    done: float
    bar: str
    bars: Sequence[Bar]
    lines: Sequence[Line]
    rows: int
    line: str = "job"
    legend: str = "running (full), waiting (light)"
    whole: float = 0.0


def short_time(seconds: float) -> str:
    """Write a time in seconds, or from 600 s on in minutes."""
    return f"{seconds / 60:.1f} min" if seconds >= 600 else f"{seconds:.1f} s"


def renderers(
    scene: Callable[[Any, int], Scene],
) -> tuple[Callable[[Any, int], str], Callable[[Any, int], npt.NDArray[np.uint8]]]:
    """Return the functions ``render_ansi`` and ``render_rgb_array`` of a problem.

    Both take a simulator and the index of an environment; see :func:`draw_text` and :func:`draw_image`.

    Args:
        scene: (simulator, index) -> the content of the picture of that environment's state.
    """

    def render_ansi(simulator: Any, index: int) -> str:
        return draw_text(scene(simulator, index))

    def render_rgb_array(simulator: Any, index: int) -> npt.NDArray[np.uint8]:
        return draw_image(scene(simulator, index))

    return render_ansi, render_rgb_array


def draw_text(scene: Scene) -> str:
    """Plain text, one line per bar and per job; a bar has a letter for each busy unit, which names its job.

    Long bars have a letter per equal part.
    """
    lines = [f"clock {scene.clock}  {scene.event}", scene.counts]
    for number, bar in enumerate(scene.bars[:MOST_BARS]):
        ends = np.cumsum([amount for _, amount in bar.held])
        busy = float(ends[-1]) if len(ends) else 0.0
        cells = min(math.ceil(bar.capacity), CELLS)
        row = ""
        for cell in range(cells):
            holder = int(np.searchsorted(ends, cell * bar.capacity / cells, side="right"))
            row += LETTERS[bar.held[holder][0] % len(LETTERS)] if holder < len(ends) else "."
        mark, note = "*" if bar.marked else " ", f"  {bar.note}" if bar.note else ""
        name = bar.label or str(number)
        lines.append(f"{mark}{scene.bar} {name:>3}  [{row}] {busy:g}/{bar.capacity:g} busy{note}")
    if len(scene.bars) > MOST_BARS:
        lines.append(f" ... and {len(scene.bars) - MOST_BARS} more {scene.bar}s")
    for line in scene.lines[:MOST_LINES]:
        lines.append(f" {LETTERS[line.job % len(LETTERS)]} {scene.line} {line.job:5d}  {line.text}")
    if len(scene.lines) > MOST_LINES:
        lines.append(f" ... and {len(scene.lines) - MOST_LINES} more {scene.line}s")
    return "\n".join(lines) + "\n"


def start_image(height: int, headline: Mapping[int, str], done: float) -> tuple[Any, Any, Any, Any]:
    """Return an empty picture with its headline, the object that draws on it, and a normal and a small font.

    Args:
        height: height of the picture.
        headline: x of clock, event and counts -> the text.
        done: share of the episode that is over.

    Raises:
        DependencyNotInstalled: without Pillow (extra ``render``).
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise DependencyNotInstalled(
            'render_mode="rgb_array" needs Pillow: pip install "schedgym[render]"'
        ) from error

    image = Image.new("RGB", (960, height), BACKGROUND)
    draw = ImageDraw.Draw(image)
    large, font, small = (ImageFont.load_default(size) for size in (18, 13, 11))
    (clock, event, counts), (at_clock, at_event, at_counts) = headline.values(), headline
    draw.text((at_clock, 12), f"t = {clock}", INK, large)
    draw.text((at_event, 16), event, MARK, font)
    draw.text((at_counts, 16), counts, INK, font)
    draw.rectangle((20, 42, 940, 48), fill=GRID)
    draw.rectangle((20, 42, 20 + 920 * done, 48), fill=FAINT)
    return image, draw, font, small


def draw_image(scene: Scene) -> npt.NDArray[np.uint8]:
    """An image, uint8 [height, width, 3].

    Left: a bar per server, as long as its capacity, its busy part in the colours of the jobs that hold it.
    Right: the active jobs; full what runs, light what waits. An orange dot marks the marked bar.

    Raises:
        DependencyNotInstalled: without Pillow (extra ``render``).
    """
    bars, shown = min(len(scene.bars), MOST_BARS), min(len(scene.lines), MOST_LINES)
    row, top, left, right, length = 24, 84, 64, 500, 360
    rows = max(bars, min(MOST_LINES, scene.rows))
    headline = {20: scene.clock, 160: scene.event, 390: scene.counts}
    image, draw, font, small = start_image(top + rows * row + 34, headline, scene.done)
    draw.text((left, 58), f"{scene.bar}s: what is busy, by {scene.line}", FAINT, font)
    draw.text((right + 60, 58), f"{scene.line}s: {scene.legend}", FAINT, font)
    scale = length / max(bar.capacity for bar in scene.bars)
    for number, bar in enumerate(scene.bars[:bars]):
        y = top + number * row
        draw.text((30, y + 3), bar.label or f"{number}", INK, font)
        if bar.marked:
            draw.ellipse((12, y + 5, 22, y + 15), fill=MARK)
        draw.rectangle((left, y + 2, left + scale * bar.capacity, y + 17), fill=GRID)
        x = float(left)
        for job, amount in bar.held:
            width = scale * amount
            colour = JOB_COLOURS[job % len(JOB_COLOURS)]
            draw.rectangle((x, y + 2, x + max(width - 1, 1), y + 17), fill=colour)
            x += width
    if len(scene.bars) > bars:
        text = f"and {len(scene.bars) - bars} more {scene.bar}s"
        draw.text((left, top + bars * row + 4), text, FAINT, small)
    for number, line in enumerate(scene.lines[:shown]):
        y = top + number * row
        colour = JOB_COLOURS[line.job % len(JOB_COLOURS)]
        light = tuple(255 - (255 - c) * 2 // 5 for c in colour)
        draw.text((right, y + 3), f"{line.job:5d}", INK, small)
        full, whole = line.running, line.running + line.waiting
        if scene.whole:
            full, whole = 120 * full / scene.whole, 120 * whole / scene.whole
        else:
            full, whole = 60 * float(np.log10(1.0 + full)), 60 * float(np.log10(1.0 + whole))
        draw.rectangle((right + 60, y + 2, right + 60 + max(whole, 1), y + 17), fill=light)
        if line.running:
            draw.rectangle((right + 60, y + 2, right + 60 + max(full, 1), y + 17), fill=colour)
        draw.text((right + 66 + max(whole, 1), y + 3), line.text, INK, small)
    if len(scene.lines) > shown:
        text = f"and {len(scene.lines) - shown} more {scene.line}s"
        draw.text((right + 60, top + shown * row + 4), text, FAINT, small)
    return np.asarray(image).copy()
