"""A binary heap in two arrays, for kernels: it gives the item with the least time."""

from __future__ import annotations

from typing import Any

from schedgym.core.jit import helper


@helper
def push(times: Any, items: Any, size: int, time: float, item: int) -> None:
    """Add an item to a heap, which holds ``size``; ``times``, ``items`` [>= size + 1]."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if times[parent] <= time:
            break
        times[i] = times[parent]
        items[i] = items[parent]
        i = parent
    times[i] = time
    items[i] = item


@helper
def pop(times: Any, items: Any, size: int) -> int:
    """Remove and return the item with the least time from a heap, which holds ``size``."""
    top = items[0]
    last = size - 1
    time = times[last]
    item = items[last]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        if child + 1 < last and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        times[i] = times[child]
        items[i] = items[child]
        i = child
    times[i] = time
    items[i] = item
    return top
