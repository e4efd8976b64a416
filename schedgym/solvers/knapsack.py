"""The 0/1 knapsack problem, exactly, by dynamic programming over whole weights.

Values are whole numbers (:mod:`schedgym.solvers.arithmetic`), so that ties are exact: of equal
choices the one with the items of the lowest index is taken.

The kernel (``knapsack_into``) works on preallocated arrays and allocates nothing.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from schedgym.core.arrays import Integers, allocate
from schedgym.core.jit import pure_kernel

BITS = 62  # items per word of the table of decisions


class KnapsackScratch(NamedTuple):
    """The problem and the work space of :func:`knapsack_into`. N items, capacity W."""

    value: Annotated[Integers, "item"]
    weight: Annotated[Integers, "item"]
    taken: Annotated[Integers, "item"]  # the solution: 1 or 0
    item: Annotated[Integers, "item"]  # for the caller
    best: Annotated[Integers, "capacity+1"]  # value of the items decided on within a capacity
    words: Annotated[Integers, "word", "capacity+1"]  # one bit per item and capacity: whether it is taken


def make_knapsack_scratch(items: int, capacity: int) -> KnapsackScratch:
    """Work space for up to ``items`` items and capacities up to ``capacity``."""
    sizes = {"item": items, "capacity": capacity, "word": -(-items // BITS)}
    return allocate(KnapsackScratch, sizes)


@pure_kernel
def knapsack_into(n: int, capacity: int, bag: KnapsackScratch) -> None:
    """Choose among the first n items of ``bag`` those with the greatest value within the capacity.

    Of equal choices it takes the one that has the first item in which they differ. The time is O(n W).

    Args:
        n: items.
        capacity: at least 0, at most that of the scratch.
        bag: ``value`` [N] (in all below 2^62) and ``weight`` [N], at least 0, are read, ``taken`` [N] is
            written.
    """
    value = bag.value
    weight = bag.weight
    best = bag.best
    total = 0
    for x in range(n):
        bag.taken[x] = 0
        if value[x] >= 0 and weight[x] <= capacity:
            total += weight[x]
    if total <= capacity:
        for x in range(n):
            if value[x] >= 0 and weight[x] <= capacity:
                bag.taken[x] = 1
        return
    for c in range(capacity + 1):
        best[c] = 0
    for word in range((n + BITS - 1) // BITS):
        for c in range(capacity + 1):
            bag.words[word, c] = 0
    for x in range(n - 1, -1, -1):
        gain = value[x]
        size = weight[x]
        if gain < 0:
            continue
        bits = bag.words[x // BITS]
        bit = 1 << (x % BITS)
        for c in range(capacity, size - 1, -1):
            if gain + best[c - size] >= best[c]:
                best[c] = gain + best[c - size]
                bits[c] |= bit
    c = capacity
    for x in range(n):
        if (bag.words[x // BITS, c] >> (x % BITS)) & 1:
            bag.taken[x] = 1
            c -= weight[x]
