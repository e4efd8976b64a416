"""One machine for all: tails against numerical integration, orders against all others."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from schedgym.solvers.one_machine import serve_by_key, tail_times
from tests.long import trials


@pytest.mark.parametrize(("alike", "close"), [(False, 1e-5), (True, 1e-6)])
def test_tails_are_the_integral_of_what_is_left(alike: bool, close: float) -> None:
    """Also of tasks that take as long as they are, on a whole number of machines."""
    rng = np.random.default_rng(8)
    limited = 0
    for _ in trials(100):
        count = int(rng.integers(1, 12))
        price = rng.exponential(1.0, count) + (rng.integers(0, 2) if alike else 0.01)
        longest = price / rng.uniform(0.1, 1.0, count) * rng.choice((1.0, 0.3))
        rate = float(rng.uniform(0.05, 2.0) * (price / longest).sum())
        if alike:
            longest, rate = price, float(rng.integers(1, 8))
        tail, length = np.empty(1), np.array([price.sum()])
        tail_times(price, longest, np.array([0, count]), length, np.array([rate]), tail)

        def left(s: float, p: Any = price, d: Any = longest, rate: float = rate) -> float:
            return max(p.sum() - min((p * np.minimum(1.0, s / d)).sum(), rate * s), 0.0)

        until = max(longest.max(), length[0] / rate)
        points = sorted(longest)
        expected = quad(left, 0.0, until, points=points, limit=500)[0] / length[0]
        assert tail[0] == pytest.approx(expected, rel=close)
        limited += rate < (price / longest).sum()
    assert 0.2 < limited / len(trials(100)) < 0.8


@pytest.mark.parametrize("rate", [1.0, 2.0])
@pytest.mark.parametrize("until", [math.inf, 3.0, 6.0])
def test_serving_by_density_is_optimal(until: float, rate: float) -> None:
    """Of all static orders, largest weight per work gives the least weighted mean time of service."""
    rng = np.random.default_rng(9)
    for _ in range(30):
        count = int(rng.integers(2, 6))
        release = np.sort(rng.integers(0, 3, count)).astype(float)
        work, weight = rng.uniform(0.5, 3.0, count), rng.random(count)
        end, mean, left = np.empty((3, count))

        def cost(
            key: np.ndarray, fixed: Any = (release, work), w: Any = weight, out: Any = (end, mean, left)
        ) -> float:
            serve_by_key(*fixed, key, rate, until, *out)
            return float(w @ out[1])

        least = cost(-weight / work)
        orders = [np.array(order, dtype=float) for order in itertools.permutations(range(count))]
        assert least == pytest.approx(min(map(cost, orders)), rel=1e-12)
