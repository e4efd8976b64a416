"""Arithmetic of kernels: powers, common multiples, and real costs as whole numbers.

Sums of whole numbers are exact, so that ties are ties whatever the order of adding. A cost x becomes the
integer part of x * scale, where the scale is a power of two: exact for every cost that has no digits beyond
it, else off by less than 1 / scale.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from schedgym.core.jit import helper

MOST_BITS = 60  # a sum of whole costs stays below 2^60
BEYOND = 2.0**52  # all real numbers from here are whole


def scale_of(largest: float, terms: int) -> float:
    """The largest power of two by which ``terms`` costs of at most ``largest`` may be scaled and added."""
    if not largest > 0.0:
        return 1.0
    _, exponent = math.frexp(largest * terms)
    return math.ldexp(1.0, min(MOST_BITS - exponent, 1000))


@helper
def variable(number: int) -> int:
    """A literal number as a variable: for a literal argument numba compiles a function once more."""
    result: Any = np.int64(number)
    return result


scale_for = helper(scale_of)  # for kernels


@helper
def fixed(cost: float, scale: float) -> int:
    """Return a cost as a whole number of units of 1 / scale."""
    return int(cost * scale)


@helper
def floor(x: float) -> float:
    """The largest whole number that is at most x, as a real number; numba knows np.floor on CPUs only."""
    if not abs(x) < BEYOND:
        return x
    whole = float(int(x))
    return whole - 1.0 if whole > x else whole


@helper
def common_divisor(a: int, b: int) -> int:
    """The greatest common divisor of two numbers from 0 (Euclid); numba knows math.gcd on CPUs only."""
    while b != 0:
        a, b = b, a % b
    return a


@helper
def common_multiple(a: int, b: int, most: int) -> int:
    """The least common multiple of two numbers from 1; 0 if it is above ``most``, or ``a`` is 0."""
    if a == 0:
        return 0
    factor = b // common_divisor(a, b)
    return a * factor if factor <= most // a else 0


@helper
def power(x: float, exponent: float) -> float:
    """x^exponent for x >= 0, in the common cases by multiplication."""
    if exponent == 2.0:
        return x * x
    if exponent == 1.0:
        return x
    return x**exponent
