"""One picture of a cluster's state for all problems, as text and as an image.

Left: the servers (sites, racks, resources) with what jobs hold, and below it the load until now. Right: the
active jobs.
"""

from __future__ import annotations

import dataclasses
import math
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled

from schedgym.drawing.colours import Colour, colour_jobs, palette
from schedgym.drawing.loads import Past
from schedgym.errors import one_line

MOST_BARS = 16  # drawn one by one; further ones are summed up in a line
MOST_LINES = 18
MOST_LAYERS = 600  # jobs of the load until now; more are drawn in one colour
CELLS = 24  # characters of a bar
LETTERS = string.ascii_letters

INK, FAINT, GRID, MARK = (40, 40, 40), (110, 110, 110), (228, 228, 228), (213, 94, 0)
BACKGROUND = (255, 255, 255)

WIDTH, MARGIN, ROW = 960, 20, 24
TOP = 100  # of the rows
MIDDLE = 500  # x of the right column
NOTE = 105  # width of a note
STRIP = 110  # least height of the load until now


@dataclasses.dataclass(frozen=True)
class Bar:
    """A server or site: its capacity, and how much of it each job holds, as (job, amount).

    ``label`` stands in the place of its number; ``others`` are the same of the server's further resources.
    """

    capacity: float
    held: Sequence[tuple[int, float]]
    note: str = ""
    marked: bool = False
    label: str = ""
    others: Sequence[Bar] = ()


@dataclasses.dataclass(frozen=True)
class Line:
    """A job: its running and its waiting part (drawn on the scene's scale), and the text beside it."""

    job: int
    running: float
    waiting: float
    text: str
    marked: bool = False


@dataclasses.dataclass(frozen=True)
class Scene:
    """The content of a picture.

    Attributes:
        clock, event, counts: the headline.
        done: share of the jobs that have completed.
        bar: the word for a bar: "site", "server" or "rack".
        bars: all of them.
        lines: the active jobs.
        rows: number of lines that the picture has space for, so that all frames have one size.
        line: the word for a line.
        legend: the meaning of the lines.
        whole: full length of a line on a linear scale; 0: the scale is logarithmic.
        past: the work until now; None: no load is drawn, and each job has a colour of its own.
        holds: the resource that the bars show, with the unit, e.g. "cores".
        noted: True if bars may have notes: the image leaves space for them.
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
    past: Past | None = None
    holds: str = ""
    noted: bool = False

    def colours(self) -> dict[int, int]:
        """The number of each job's colour; -1 for those that have not run."""
        holders = {job for bar in self.bars for part in (bar, *bar.others) for job, _ in part.held}
        shown = holders | {line.job for line in self.lines}
        if self.past is None:
            return {job: job for job in shown}
        begin, finish = self.past.begin.copy(), self.past.finish.copy()
        new = [job for job in holders if np.isnan(begin[job])]  # launched at this instant
        begin[new], finish[new] = self.past.now, np.inf
        numbers = colour_jobs(begin, finish).tolist()
        return {job: numbers[job] for job in shown}


def short_time(seconds: float) -> str:
    """Write a time in the largest of s, min, h and d of which it has two or more."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def short_number(value: float, whole: float = 0.0) -> str:
    """Write a number: a whole one below a million in full, others with four digits.

    Beside ``whole`` it is rounded to a thousandth of that, or to a whole number.
    """
    if whole:
        value = round(value, max(3 - math.floor(math.log10(abs(whole))), 0)) + 0.0
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e6 else f"{value:.4g}"


def renderers(scene: Callable[[Any, int], Scene]) -> tuple[Callable[..., str], Callable[..., Any]]:
    """Return the functions ``render_ansi`` and ``render_rgb_array`` of a problem.

    Both take a simulator and the index of an environment, and a caption, e.g. the policy's name; the image
    also the instant at which its axis of time ends. See :func:`draw_text` and :func:`draw_image`.

    Args:
        scene: (simulator, index) -> the content of the picture of that environment's state.
    """

    def render_ansi(simulator: Any, index: int, caption: str = "") -> str:
        return draw_text(scene(simulator, index), caption)

    def render_rgb_array(
        simulator: Any, index: int, caption: str = "", until: float | None = None
    ) -> npt.NDArray[np.uint8]:
        return draw_image(scene(simulator, index), caption, until)

    return render_ansi, render_rgb_array


# text ----------------------------------------------------------------------------------------------


def draw_text(scene: Scene, caption: str = "") -> str:
    """Plain text, one line per bar and per job; a bar has a letter for each busy unit, which names its job.

    Long bars have a letter per equal part. Jobs that run at the same time have different letters, as long as
    there are no more than letters; "-" is a job that has not run.
    """
    letters = {job: LETTERS[i % len(LETTERS)] if i >= 0 else "-" for job, i in scene.colours().items()}
    lines = [*([one_line(caption)] if caption else []), f"clock {scene.clock}  {scene.event}", scene.counts]
    for number, bar in enumerate(scene.bars[:MOST_BARS]):
        parts = "  ".join(_cells(part, letters) for part in (bar, *bar.others))
        mark, note = "*" if bar.marked else " ", f"  {bar.note}" if bar.note else ""
        lines.append(f"{mark}{scene.bar} {bar.label or str(number):>3}  {parts}{note}")
    if len(scene.bars) > MOST_BARS:
        lines.append(f" ... and {len(scene.bars) - MOST_BARS} more {scene.bar}s")
    for line in scene.lines[:MOST_LINES]:
        mark = "*" if line.marked else " "
        lines.append(f"{mark}{letters[line.job]} {scene.line} {line.job:5d}  {line.text}")
    if len(scene.lines) > MOST_LINES:
        lines.append(f" ... and {len(scene.lines) - MOST_LINES} more {scene.line}s")
    return "\n".join(lines) + "\n"


def _cells(bar: Bar, letters: dict[int, str]) -> str:
    ends = np.cumsum([amount for _, amount in bar.held])
    busy = float(ends[-1]) if len(ends) else 0.0
    whole = 0.0 < bar.capacity <= CELLS and bar.capacity > 1.0
    cells, row = math.ceil(bar.capacity) if whole else CELLS, ""
    for cell in range(cells):
        holder = int(np.searchsorted(ends, cell * bar.capacity / cells + 1e-9 * bar.capacity, side="right"))
        row += letters[bar.held[holder][0]] if holder < len(ends) else "."
    return f"[{row}] {short_number(busy, bar.capacity)}/{short_number(bar.capacity)} busy"


# image ---------------------------------------------------------------------------------------------


def draw_image(scene: Scene, caption: str = "", until: float | None = None) -> npt.NDArray[np.uint8]:
    """An image, uint8 [height, width, 3].

    Left: a bar per server, as long as its capacity, its busy part in the colours of the jobs that hold it;
    below them the load until now by job. Right: the active jobs; full what runs, light what waits, grey
    those that have not run. An orange dot marks the bar or job that the decision is about.

    Args:
        scene: what is drawn.
        caption: a text at the upper right.
        until: where the axis of time of the load ends, as the end of an episode that is known; None: at a
            round number after the clock.

    Raises:
        DependencyNotInstalled: without Pillow (extra ``render``).
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise DependencyNotInstalled(
            'render_mode="rgb_array" needs Pillow: pip install "schedgym[render]"'
        ) from error

    bars = min(len(scene.bars), MOST_BARS) + (len(scene.bars) > MOST_BARS)
    rows = min(MOST_LINES, scene.rows) + (scene.rows > MOST_LINES)
    below = TOP + bars * ROW
    bottom = max(TOP + rows * ROW, below + (44 + STRIP) * (scene.past is not None))
    image = Image.new("RGB", (WIDTH, bottom + 14), BACKGROUND)
    fonts = [ImageFont.load_default(size) for size in (19, 13, 12)]
    canvas = _Canvas(ImageDraw.Draw(image), *fonts)
    numbers = scene.colours()
    found = palette(max(numbers.values(), default=-1) + 1)
    colours = {job: found[i] if i >= 0 else FAINT for job, i in numbers.items()}
    canvas.head(scene, one_line(caption))
    canvas.bars(scene, colours)
    canvas.lines(scene, colours)
    if scene.past is not None:
        frame = (MARGIN + 44, below + 22, MIDDLE - 24, bottom - 22)
        last = _last(scene.past) if until is None else max(until, scene.past.now)
        size = frame[2] - frame[0], frame[3] - frame[1]
        image.paste(Image.fromarray(_layers(scene.past, last, *size)), frame[:2])
        canvas.axes(scene.past, last, frame)
    return np.asarray(image).copy()


def _light(colour: Colour) -> Colour:
    red, green, blue = (255 - (255 - c) * 2 // 5 for c in colour)
    return red, green, blue


class _Canvas:
    """Draws the parts of a scene; ``large``, ``font`` and ``small`` are Pillow's fonts."""

    def __init__(self, draw: Any, large: Any, font: Any, small: Any) -> None:
        self.draw, self.large, self.font, self.small = draw, large, font, small

    def text(self, x: float, y: float, text: str, colour: Colour, font: Any, width: float = WIDTH) -> float:
        """Write at (x, y), cut to ``width``, and return where the text ends."""
        if self.draw.textlength(text, font) > width:
            while text and self.draw.textlength(text + "…", font) > width:
                text = text[:-1]
            text = text.rstrip() + "…"
        self.draw.text((x, y), text, colour, font)
        return x + float(self.draw.textlength(text, font))

    def head(self, scene: Scene, caption: str) -> None:
        end = self.text(MARGIN, 9, f"t = {scene.clock}", INK, self.large, 300)
        right = WIDTH - MARGIN
        if caption:
            width = min(float(self.draw.textlength(caption, self.large)), 420.0)
            right -= int(width)
            self.text(right, 9, caption, INK, self.large, 420)
        self.text(end + 18, 14, scene.event, MARK, self.font, right - end - 36)
        self.text(MARGIN, 38, scene.counts, INK, self.font, WIDTH - 2 * MARGIN)
        self.draw.rectangle((MARGIN, 62, WIDTH - MARGIN, 67), fill=GRID)
        self.draw.rectangle((MARGIN, 62, MARGIN + (WIDTH - 2 * MARGIN) * scene.done, 67), fill=FAINT)

    def bars(self, scene: Scene, colours: dict[int, Colour]) -> None:
        shown = scene.bars[:MOST_BARS]
        names = [bar.label or str(number) for number, bar in enumerate(shown)]
        left = MARGIN + 22 + max(self.draw.textlength(name, self.font) for name in names)
        left = max(left, MARGIN + 44)
        length = MIDDLE - 24 - left - (NOTE + 8) * scene.noted
        holds = f" ({scene.holds})" if scene.holds else ""
        self.text(left, 76, f"{scene.bar}s: what is busy{holds}, by {scene.line}", FAINT, self.font, 430)
        for number, bar in enumerate(shown):
            y = TOP + number * ROW
            if bar.marked:
                self.draw.ellipse((MARGIN - 8, y + 5, MARGIN + 2, y + 15), fill=MARK)
            self.text(MARGIN + 8, y + 2, names[number], INK, self.font)
            height = 19 // (1 + len(bar.others))
            for k, part in enumerate((bar, *bar.others)):
                most = max((one, *one.others)[k].capacity for one in scene.bars)
                self._bar(left, y + 1 + k * height, length / (most or 1.0), height - 2, part, colours)
            self.text(left + length + 8, y + 4, bar.note, FAINT, self.small, NOTE)
        if len(scene.bars) > MOST_BARS:
            text = f"and {len(scene.bars) - MOST_BARS} more {scene.bar}s"
            self.text(left, TOP + MOST_BARS * ROW + 3, text, FAINT, self.small)

    def _bar(
        self, left: float, y: float, scale: float, height: float, bar: Bar, colours: dict[int, Colour]
    ) -> None:
        self.draw.rectangle((left, y, left + scale * bar.capacity, y + height), fill=GRID)
        x = left
        for job, amount in bar.held:
            width = scale * amount
            self.draw.rectangle((x, y, x + max(width - 1, 1), y + height), fill=colours[job])
            x += width

    def lines(self, scene: Scene, colours: dict[int, Colour]) -> None:
        left, length, text = MIDDLE + 52, 100, MIDDLE + 160
        self.text(MIDDLE + 8, 76, f"{scene.line}s: {scene.legend}", FAINT, self.font, 430)
        for number, line in enumerate(scene.lines[:MOST_LINES]):
            y = TOP + number * ROW
            if line.marked:
                self.draw.ellipse((MIDDLE - 6, y + 5, MIDDLE + 4, y + 15), fill=MARK)
            name = str(line.job)
            self.text(left - 8 - self.draw.textlength(name, self.small), y + 4, name, INK, self.small)
            full, whole = line.running, line.running + line.waiting
            if scene.whole:
                full, whole = length * full / scene.whole, length * whole / scene.whole
            else:
                full, whole = (length / 4 * math.log10(1.0 + size) for size in (full, whole))
            full, whole = min(full, length), min(whole, length)
            colour = colours[line.job]
            self.draw.rectangle((left, y + 1, left + max(whole, 1), y + 18), fill=_light(colour))
            if line.running:
                self.draw.rectangle((left, y + 1, left + max(full, 1), y + 18), fill=colour)
            cells = " · ".join(cell.strip() for cell in line.text.split("  ") if cell.strip())
            self.text(text, y + 3, cells, INK, self.small, WIDTH - MARGIN - text)
        if len(scene.lines) > MOST_LINES:
            more = f"and {len(scene.lines) - MOST_LINES} more {scene.line}s"
            self.text(left, TOP + MOST_LINES * ROW + 3, more, FAINT, self.small)

    def axes(self, past: Past, end: float, frame: tuple[int, int, int, int]) -> None:
        """The axes of the load until now: 100 % is the cluster's capacity."""
        left, top, right, bottom = frame
        self.text(left, top - 20, f"{past.resource} of the cluster in use until now", FAINT, self.font, 420)
        self.draw.line((left, top, left, bottom), fill=FAINT)
        self.draw.line((left, bottom, right, bottom), fill=FAINT)
        highest = _highest(past)
        for share in (0.0, highest / 2, highest):
            text = f"{100 * share:.3g}%"
            y = bottom - (bottom - top) * share / highest
            width = self.draw.textlength(text, self.small)
            self.text(left - 6 - width, y - (12 if share == 0 else 6), text, FAINT, self.small)
            if share:
                self.draw.line((left, y, right, y), fill=(190, 190, 190))
        step = _round_up(end / 6)
        written = right - self.draw.textlength(past.unit, self.small)
        self.text(written, bottom + 4, past.unit, FAINT, self.small)
        for k in range(int(end / step) + 1):
            text = f"{step * k:,.10g}"
            x = left + (right - left) * step * k / end
            width = self.draw.textlength(text, self.small)
            if x + width / 2 < written - 8:
                self.text(x - width / 2 * (k > 0), bottom + 4, text, FAINT, self.small)


def _last(past: Past) -> float:
    """The end of the axis of time: a round number, so that it stays for many frames."""
    return _round_up(past.now or 1.0)


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= value * (1 - 1e-9))


def _highest(past: Past) -> float:
    """The end of the axis of the load: the capacity, or of a cluster that is nearly empty a part of it."""
    changes = np.concatenate([past.start, past.end])
    begins = np.arange(len(changes)) < len(past.start)
    order = np.lexsort((begins, changes))  # at the same time ends come first
    most = float(np.cumsum(np.concatenate([past.share, -past.share])[order]).max(initial=0.0))
    return next((part for part in (0.01, 0.02, 0.05, 0.1, 0.2, 0.4) if most <= part), 1.0)


def _layers(past: Past, last: float, width: int, height: int) -> npt.NDArray[np.uint8]:
    """The load until now: jobs on top of one another in the order of their first start."""
    picture = np.full((height, width, 3), 245, dtype=np.uint8)
    columns = width / last
    now = max(1, min(width, math.ceil(past.now * columns)))
    picture[:, now:] = BACKGROUND
    if not len(past.job):
        return picture
    jobs, index = np.unique(past.job, return_inverse=True)
    every = colour_jobs(past.begin, past.finish)[jobs]
    order = np.lexsort((jobs, past.begin[jobs]))
    whole = len(jobs) > MOST_LAYERS
    if whole:
        index, every, order = np.zeros_like(index), np.zeros(1, dtype=int), np.zeros(1, dtype=int)
    held = np.zeros((len(every), width + 1))
    # a column counts what runs in its middle
    times = (np.arange(width + 1) + 0.5) / columns
    first = np.minimum(np.searchsorted(times, past.start), width)
    after = np.minimum(np.searchsorted(times, np.minimum(past.end, past.now)), width)
    np.add.at(held, (index, first), past.share)
    np.add.at(held, (index, np.maximum(first, after)), -past.share)
    held = np.cumsum(held, axis=1)[order, :width]
    ends = np.rint(np.cumsum(held, axis=0) * height / _highest(past)).astype(int)
    found = palette(int(every.max()) + 1)
    y = np.arange(height)[::-1, np.newaxis]
    below = np.zeros(width, dtype=int)
    for layer, job in zip(ends, order.tolist(), strict=True):
        changed = np.flatnonzero(layer > below)
        if len(changed):
            part = slice(int(changed[0]), int(changed[-1]) + 1)
            inside = (y >= below[part]) & (y < layer[part])
            picture[:, part][inside] = FAINT if whole else found[int(every[job])]
        below = np.maximum(below, layer)
    return picture
