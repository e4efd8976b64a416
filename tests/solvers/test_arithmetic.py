"""Functions that numba has for CPUs only, written for all devices, against those of numpy and Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from schedgym.core.jit import pure_kernel
from schedgym.solvers.arithmetic import common_divisor, floor


@pure_kernel
def round_all(x: Any, down: Any) -> None:
    for i in range(x.shape[0]):
        down[i] = floor(x[i])


@pure_kernel
def divide_all(a: Any, b: Any, found: Any) -> None:
    for i in range(a.shape[0]):
        found[i] = common_divisor(a[i], b[i])


def test_floor_is_numpys() -> None:
    rng = np.random.default_rng(0)
    edges = [np.inf, -np.inf, np.nan, 0.0, -0.0, 2.0**52 - 0.5, 0.5 - 2.0**52, 2.0**53, 1e300, 5e-324]
    x = np.concatenate(
        [rng.normal(size=2000) * 10 ** rng.uniform(-3, 18, 2000), np.arange(-50, 50) / 2, edges]
    )
    down = np.zeros_like(x)
    round_all(x, down)
    np.testing.assert_array_equal(down, np.floor(x))


def test_common_divisors() -> None:
    a, b = (array.ravel().copy() for array in np.meshgrid(np.arange(40), np.arange(40)))
    found = np.zeros_like(a)
    divide_all(a, b, found)
    assert found.tolist() == [math.gcd(*pair) for pair in zip(a.tolist(), b.tolist(), strict=True)]
