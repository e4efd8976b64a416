"""The random streams: independent, well distributed, and the same everywhere."""

from __future__ import annotations

import itertools
import math

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose

from schedgym.core import random
from schedgym.core.jit import kernel
from schedgym.core.random import root_seed, root_seeds

COUNT = 200_000


@numba.njit
def words(seeds, episodes, names):
    """First state of each stream."""
    out = np.empty(len(seeds), dtype=np.uint64)
    for i in range(len(seeds)):
        out[i] = random.stream(seeds[i], episodes[i], names[i])
    return out


@kernel
def uniforms(seed, episode, name, count):
    out = np.empty(count)
    state = random.stream(seed, episode, name)
    for i in range(count):
        state, out[i] = random.uniform(state)
    return out


@kernel
def exponentials(seed, count):
    out = np.empty(count)
    state = random.stream(seed, 0, 0)
    for i in range(count):
        state, out[i] = random.exponential(state)
    return out


@kernel
def normals(seed, count):
    out = np.empty((count, 2))
    state = random.stream(seed, 0, 0)
    for i in range(count):
        state, out[i, 0], out[i, 1] = random.normal_pair(state)
    return out


def test_streams_differ_in_seed_episode_and_name() -> None:
    rows = list(itertools.product(range(20), range(40), range(8)))
    seeds = root_seeds([seed for seed, _, _ in rows])
    states = words(seeds, np.array([e for _, e, _ in rows]), np.array([name for _, _, name in rows]))
    assert len(set(states.tolist())) == len(rows)
    # neighbouring streams share no number: their states would follow each other by the constant step
    firsts = {
        float(x)
        for seed, episode, name in itertools.product(range(5), range(5), range(5))
        for x in uniforms(root_seed(seed), episode, name, 50)
    }
    assert len(firsts) == 5 * 5 * 5 * 50


def test_uniform() -> None:
    values = uniforms(root_seed(0), 0, 0, COUNT)
    assert values.min() >= 0.0 and values.max() < 1.0
    assert abs(values.mean() - 0.5) < 5.0 / math.sqrt(12.0 * COUNT)
    assert abs(values.var() - 1.0 / 12.0) < 5.0 * math.sqrt(1.0 / 180.0 / COUNT)
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 5.0 / math.sqrt(COUNT)
    counts = np.histogram(values, bins=100, range=(0.0, 1.0))[0]
    expected = COUNT / 100
    assert ((counts - expected) ** 2 / expected).sum() < 160.0  # chi-square, 99 degrees: p = 1e-4
    assert ((values * 2**53) == np.floor(values * 2**53)).all(), "multiples of 2**-53"


def test_exponential() -> None:
    values = exponentials(root_seed(1), COUNT)
    assert values.min() >= 0.0 and np.isfinite(values).all()
    for power, moment, spread in ((1, 1.0, 1.0), (2, 2.0, math.sqrt(20.0))):
        assert abs((values**power).mean() - moment) < 5.0 * spread / math.sqrt(COUNT)
    assert abs((values > 3.0).mean() - math.exp(-3.0)) < 5.0 * math.sqrt(0.05 / COUNT)


def test_normal() -> None:
    pairs = normals(root_seed(2), COUNT)
    for values in pairs.T:
        for power, moment, spread in ((1, 0.0, 1.0), (2, 1.0, math.sqrt(2.0)), (4, 3.0, math.sqrt(96.0))):
            assert abs((values**power).mean() - moment) < 5.0 * spread / math.sqrt(COUNT)
        assert abs((values > 1.96).mean() - 0.025) < 5.0 * math.sqrt(0.025 / COUNT)
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 5.0 / math.sqrt(COUNT)
    assert abs(np.corrcoef(pairs.T**2)[0, 1]) < 5.0 / math.sqrt(COUNT)


def test_root_seeds() -> None:
    assert root_seeds([0, 1, 5]).tolist() == [int(root_seed(s)) for s in (0, 1, 5)]
    assert root_seeds([0]).dtype == np.uint64
    assert len({int(root_seed(s)) for s in [*range(2000), 2**63, 2**200]}) == 2002
    with pytest.raises(ValueError):
        root_seed(-1)


def test_the_numbers_stay_the_same() -> None:
    """Golden: a change here changes every drawn workload, and so the version of every id."""
    assert int(root_seed(0)) == GOLDEN_ROOT
    assert [int(w) for w in words(root_seeds([0, 1]), np.array([0, 3]), np.array([0, 2]))] == GOLDEN_STATES
    assert uniforms(root_seed(7), 2, 1, 3).tolist() == GOLDEN_UNIFORMS
    # through the C library's logarithm and cosine, hence to rounding
    assert_allclose(exponentials(root_seed(7), 2), GOLDEN_EXPONENTIALS, rtol=1e-14)
    assert_allclose(normals(root_seed(7), 1)[0], GOLDEN_NORMALS, rtol=1e-13)


def test_splitmix64_is_the_published_one() -> None:
    """Steele, Lea, Flood 2014; the first outputs for state 1234567 as published by Vigna's reference code."""
    state, mask = 1234567, 2**64 - 1
    outputs = []
    for _ in range(5):
        state = (state + 0x9E3779B97F4A7C15) & mask
        word = state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
        outputs.append(word ^ (word >> 31))
    assert outputs[:3] == [6457827717110365317, 3203168211198807973, 9817491932198370423]

    @numba.njit
    def draw(state, count):
        out = np.empty(count)
        for i in range(count):
            state, out[i] = random.uniform(state)
        return out

    assert draw(np.uint64(1234567), 5).tolist() == [(o >> 11) * 2.0**-53 for o in outputs]


GOLDEN_ROOT = 15793235383387715774
GOLDEN_STATES = [6423738571419876617, 8426463488007412564]
GOLDEN_UNIFORMS = [0.3716137015153409, 0.20546038404236422, 0.5618772102777789]
GOLDEN_EXPONENTIALS = [1.6528508153557007, 0.6839222789834871]
GOLDEN_NORMALS = [-1.8173883021428474, 0.052928158344489856]
