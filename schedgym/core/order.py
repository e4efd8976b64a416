"""Orders and order statistics, for kernels."""

from __future__ import annotations

import math
from typing import Any

from schedgym.core.jit import helper

#: computed numbers that differ relatively by less count as equal: the difference may be rounding
TIE = 1e-9
#: share of its time by which an event may be later than another one and be simultaneous with it
SIMULTANEOUS = 1e-12


@helper
def differ(a: float, b: float) -> Any:
    """Return True if two computed numbers differ by more than rounding can make of equal ones."""
    return abs(a - b) > TIE * max(abs(a), abs(b))


@helper
def last_of(instant: float) -> float:
    """Return the last time that rounding can make of an instant: all up to it is simultaneous."""
    return instant + SIMULTANEOUS * abs(instant)


@helper
def sort_rows(order: Any, key: Any, n: int) -> None:
    """Sort the rows in order[:n] by key, ties by row (Shell 1959, with gaps about Tokuda's)."""
    gap = 1
    while 9 * gap < 4 * n:
        gap = (9 * gap + 3) // 4
    while True:
        for x in range(gap, n):
            i = order[x]
            y = x
            while y >= gap and (
                key[order[y - gap]] > key[i] or (key[order[y - gap]] == key[i] and order[y - gap] > i)
            ):
                order[y] = order[y - gap]
                y -= gap
            order[y] = i
        if gap == 1:
            break
        gap = max(4 * gap // 9, 1)


@helper
def sort(values: Any, count: int) -> None:
    """Sort values[:count], ascending (Shell 1959, with gaps about Tokuda's)."""
    gap = 1
    while 9 * gap < 4 * count:
        gap = (9 * gap + 3) // 4
    while True:
        for x in range(gap, count):
            value = values[x]
            y = x
            while y >= gap and values[y - gap] > value:
                values[y] = values[y - gap]
                y -= gap
            values[y] = value
        if gap == 1:
            break
        gap = max(4 * gap // 9, 1)


@helper
def share(part: float, whole: float, otherwise: float = 0.0) -> float:
    """Return ``part`` / ``whole``, or ``otherwise`` if the whole is 0."""
    return part / whole if whole > 0.0 else otherwise


@helper
def percentile(ordered: Any, count: int, share: float) -> float:
    """Linear interpolation between order statistics (numpy's default definition).

    Args:
        ordered: [>= count] ascending.
        count: at least 1.
        share: 0 to 1.
    """
    at = share * (count - 1)
    low = int(math.floor(at))
    high = min(low + 1, count - 1)
    t = at - low
    difference = ordered[high] - ordered[low]
    if t >= 0.5:  # as numpy does, so that both ends are exact
        return ordered[high] - difference * (1.0 - t)
    return ordered[low] + difference * t
