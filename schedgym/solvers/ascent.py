"""Ascent of a concave function of prices >= 0 along its subgradients: the Lagrangian dual of capacities.

The function is evaluated by the caller, who also counts what would be used at these prices: use minus
capacity is a subgradient. Prices change in the direction of the excess of use over capacity, plus part of the
last direction (Camerini, Fratta, Maffioli 1975), by Polyak's step to a level above the best value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.jit import helper

MEMORY = 0.9  # share of the last direction that goes into the next one
LEVELS = (1.0, 1e-4)  # first and last relative excess over the best value so far that the ascent aims at
PATIENCE = 20  # steps without a better value after which the ascent aims lower


class Ascent(NamedTuple):
    """The variables of an ascent over R resources and K intervals.

    Attributes:
        trial: prices to be evaluated next [R, K].
        best: prices of the best value so far [R, K].
        use: written by the caller: amount times duration used in each interval at ``trial`` [R, K].
        kept: use at the prices ``best`` [R, K].
        direction: of the last change [R, K].
        numbers: the best value so far, the level, the steps without a better value [3].
    """

    trial: Floats
    best: Floats
    use: Floats
    kept: Floats
    direction: Floats
    numbers: Floats


def start_ascent(price: Floats) -> Ascent:
    """Return the variables of an ascent from ``price`` [R, K]."""
    use, kept, direction = (np.zeros_like(price) for _ in range(3))
    return Ascent(price.copy(), price.copy(), use, kept, direction, np.array([-math.inf, LEVELS[0], 0.0]))


@helper
def _copy(source: Floats, target: Floats) -> None:
    """Copy an array [R, K]; in helpers numba cannot do it by slices."""
    for r in range(source.shape[0]):
        for x in range(source.shape[1]):
            target[r, x] = source[r, x]


@helper
def move_prices(ascent: Ascent, reached: float, least: float, capacity: Floats, duration: Floats) -> bool:
    """Note the value of the trial prices and change them; return False if the ascent has come to its end.

    Args:
        ascent: changed.
        reached: value of the function at ``ascent.trial``.
        least: the ascent aims at no less than this times the level above the best value.
        capacity: of each resource [R].
        duration: of each interval [K].
    """
    trial, use, direction, numbers = ascent.trial, ascent.use, ascent.direction, ascent.numbers
    resources, intervals = trial.shape
    best = numbers[0]
    if reached > best:
        if reached > best + 0.1 * numbers[1] * max(abs(best), least):
            numbers[2] = 0.0
        best = reached
        numbers[0] = best
        _copy(trial, ascent.best)
        _copy(use, ascent.kept)
    else:
        numbers[2] += 1.0
        if numbers[2] >= PATIENCE:
            numbers[2] = 0.0
            numbers[1] *= 0.5
            reached = best
            _copy(ascent.best, trial)
            _copy(ascent.kept, use)
            direction[:] = 0.0
    if numbers[1] < LEVELS[1]:
        return False
    square = 0.0
    for memory in (MEMORY, 0.0):  # old directions may hide that prices should rise
        for r in range(resources):
            for x in range(intervals):
                d = use[r, x] / (capacity[r] * duration[x]) - 1.0 + memory * direction[r, x]
                if d < 0.0 and trial[r, x] <= 0.0:
                    d = 0.0
                direction[r, x] = d
                square += d * d * duration[x]
        if square > 0.0:
            break
    if square == 0.0:
        return False  # the best prices
    step = (best + numbers[1] * max(abs(best), least) - reached) / square
    for r in range(resources):
        for x in range(intervals):
            trial[r, x] = max(trial[r, x] + step * direction[r, x] / capacity[r], 0.0)
    return True
