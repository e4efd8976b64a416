"""A binary heap in two arrays, for kernels: what ends next. Axis 0 is the environment."""

from __future__ import annotations

from typing import Any

from schedgym.core.jit import helper

__all__ = ["pop", "push"]


@helper
def push(times: Any, items: Any, b: int, size: int, time: float, item: int) -> None:
    """Add an item to environment b's heap, which holds ``size``; ``times``, ``items`` [B, >= size + 1]."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if times[b, parent] <= time:
            break
        times[b, i] = times[b, parent]
        items[b, i] = items[b, parent]
        i = parent
    times[b, i] = time
    items[b, i] = item


@helper
def pop(times: Any, items: Any, b: int, size: int) -> int:
    """Remove and return the item with the least time from environment b's heap, which holds ``size``."""
    top = items[b, 0]
    last = size - 1
    time = times[b, last]
    item = items[b, last]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        if child + 1 < last and times[b, child + 1] < times[b, child]:
            child += 1
        if times[b, child] >= time:
            break
        times[b, i] = times[b, child]
        items[b, i] = items[b, child]
        i = child
    times[b, i] = time
    items[b, i] = item
    return top
