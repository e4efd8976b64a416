"""One palette for jobs, in which two jobs that run at the same time never share a colour.

A job has its colour from its first piece of work to its completion. Colours are given in order of the first
start, from what is known at that instant, so the pictures of an episode and its whole schedule agree.
"""

from __future__ import annotations

import functools
import heapq

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Floats, Integers

Colour = tuple[int, int, int]

#: colour-blind safe: Okabe and Ito, and three more
FIRST: tuple[Colour, ...] = (
    (0, 114, 178),
    (230, 159, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (148, 103, 52),
    (170, 170, 0),
    (102, 51, 153),
)
USUAL = len(FIRST)  # colours that are used in turn, even where fewer would do
#: not to be taken for a job: marks, and greys
OTHER = ((213, 94, 0), (225, 225, 225), (120, 120, 120), (40, 40, 40))
MOST_COLOURS = 4096
LEVELS = 22  # of red, green and blue, among whose combinations further colours are sought

# Björn Ottosson's OKLab, in which distances are those that the eye sees
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
#: how deuteranopes see linear RGB (Machado, Oliveira, Fernandes 2009)
_DEUTERANOPE = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)


def _seen(colours: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Coordinates of colours [n, 3] for the usual eye and for that of a deuteranope."""
    share = np.asarray(colours, dtype=float) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    usual, other = (
        np.cbrt(light @ _CONES.T) @ _LAB.T for light in (linear, np.clip(linear @ _DEUTERANOPE.T, 0, 1))
    )
    return usual, other


def _distance(seen: tuple[Floats, Floats], one: tuple[Floats, Floats]) -> Floats:
    usual, other = (np.linalg.norm(all_ - own, axis=1) for all_, own in zip(seen, one, strict=True))
    return np.minimum(usual, 2 * other)


class _Search:
    """Colours one after the other, each as far from all before as can be."""

    def __init__(self) -> None:
        steps = np.linspace(0, 255, LEVELS).round()
        grid = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
        light, green, blue = _seen(grid)[0].T
        chroma = np.hypot(green, blue)
        # seen on white and on black, no greys, and none that shines
        grid = grid[(light > 0.4) & (light < 0.83) & (chroma > 0.06) & (chroma < 0.22)]
        self.grid = grid
        self.seen = _seen(grid)
        self.distance = np.full(len(grid), np.inf)
        self.found: list[Colour] = []
        for colour in OTHER:
            self._leave(colour)
        for colour in FIRST:
            self._add(colour)

    def _leave(self, colour: Colour) -> None:
        self.distance = np.minimum(self.distance, _distance(self.seen, _seen([colour])))

    def _add(self, colour: Colour) -> None:
        self.found.append(colour)
        self._leave(colour)

    def extend(self, count: int) -> None:
        while len(self.found) < min(count, MOST_COLOURS):
            red, green, blue = self.grid[int(np.argmax(self.distance))].astype(int).tolist()
            self._add((red, green, blue))


_search = functools.cache(_Search)


def palette(count: int) -> list[Colour]:
    """The first ``count`` colours, (red, green, blue) from 0 to 255 each.

    The first eight are colour-blind safe. Each further one is as different from those before as can be, for
    the usual eye and for one that does not tell red from green. From 4,096 on they repeat.
    """
    search = _search()
    search.extend(count)
    return [search.found[i % MOST_COLOURS] for i in range(count)]


def hexadecimal(colour: Colour) -> str:
    """A colour as "#rrggbb"."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def ink_on(colour: Colour) -> Colour:
    """The colour of text on this one: white or nearly black."""
    return (255, 255, 255) if float(_seen([colour])[0][0, 0]) < 0.68 else (20, 20, 20)


def colour_jobs(begin: npt.ArrayLike, end: npt.ArrayLike) -> Integers:
    """The number of each job's colour: jobs whose intervals meet have different ones.

    Jobs take colours in order of their begin (ties: by index), each that which has been free for longest,
    and a new one if none is free or fewer than eight are in use. So there are at most as many colours as
    jobs run at once, or eight; and a job's colour depends only on what happened until it began.

    Args:
        begin: when each job first ran [jobs]; NaN: it has not.
        end: when it was complete [jobs]; infinite: it is not. Intervals that touch count as meeting.

    Returns:
        int64 [jobs]; -1 for a job that has not run.
    """
    start, until = np.asarray(begin, dtype=float), np.asarray(end, dtype=float)
    colours = np.full(len(start), -1, dtype=np.int64)
    free: list[tuple[float, int]] = []
    busy: list[tuple[float, int]] = []
    used = 0
    for job in np.argsort(start, kind="stable").tolist():
        if np.isnan(start[job]):
            break  # they stand last
        while busy and busy[0][0] < start[job]:
            heapq.heappush(free, heapq.heappop(busy))
        if free and used >= USUAL:
            colour = heapq.heappop(free)[1]
        else:
            colour, used = used, used + 1
        colours[job] = colour
        heapq.heappush(busy, (max(until[job], start[job]), colour))
    return colours
