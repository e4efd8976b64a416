"""Jobs that run together never share a colour, colours can be told apart, and pictures of a moment agree."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedgym.drawing.colours import (
    FIRST,
    MOST_COLOURS,
    OTHER,
    USUAL,
    _seen,
    colour_jobs,
    hexadecimal,
    ink_on,
    palette,
)

TIMES = st.integers(0, 30)
JOBS = st.lists(st.tuples(TIMES, st.integers(0, 12), st.booleans()), max_size=60)


@given(JOBS)
def test_jobs_that_run_together_never_share_a_colour(jobs):
    begin = np.array([float(a) if ran else np.nan for a, _, ran in jobs])
    end = np.array([float(a + length) for a, length, _ in jobs])
    colours = colour_jobs(begin, end)
    ran = np.flatnonzero(~np.isnan(begin))
    assert (colours[ran] >= 0).all() and (np.delete(colours, ran) == -1).all()
    for i in ran:
        for j in ran[ran > i]:
            if begin[i] <= end[j] and begin[j] <= end[i]:
                assert colours[i] != colours[j]
    at_once = max((int(((begin[ran] <= t) & (end[ran] >= t)).sum()) for t in begin[ran]), default=0)
    assert colours.max(initial=-1) < max(at_once, USUAL)


@given(JOBS, TIMES)
def test_a_colour_depends_only_on_what_happened_until_then(jobs, now):
    """So the frames of a film, and the chart of the whole schedule, have the same colours."""
    begin = np.array([float(a) for a, _, _ in jobs])
    end = begin + [length for _, length, _ in jobs]
    later = begin > now
    seen = colour_jobs(np.where(later, np.nan, begin), np.where(end > now, np.inf, end))
    assert (seen[~later] == colour_jobs(begin, end)[~later]).all()


def test_the_palette_can_be_told_apart():
    colours = palette(32)
    assert tuple(colours[:USUAL]) == FIRST
    usual, other = _seen(colours)
    for seen, least in ((usual, 0.09), (other, 0.04)):
        distance = np.linalg.norm(seen[:, None] - seen[None], axis=2)[np.triu_indices(32, 1)]
        assert distance.min() > least
    # neither a grey, nor the colour of marks
    assert min(np.linalg.norm(usual - _seen([mark])[0], axis=1).min() for mark in OTHER) > 0.06
    assert all(colorsys.rgb_to_hsv(*(c / 255 for c in colour))[1] > 0.1 for colour in colours)


def test_a_thousand_jobs_at_once_have_a_thousand_colours():
    found = palette(1000)
    assert len(set(found)) == 1000 and found[:40] == palette(40)
    assert palette(MOST_COLOURS + 2)[-2:] == found[:2]


def test_text_on_a_colour_is_read():
    assert hexadecimal((0, 114, 178)) == "#0072b2"
    for colour in palette(40):
        light = [float(_seen([c])[0][0, 0]) for c in (colour, ink_on(colour))]
        assert abs(light[0] - light[1]) > 0.3


@pytest.mark.parametrize("count", [0, 1, 8, 9])
def test_palettes_of_any_size(count):
    assert len(palette(count)) == count
