"""Exact numbers: as texts in findings, and a linear programme in fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

__all__ = ["Number", "Optimum", "as_text", "as_texts", "simplex"]

Number = int | Fraction


def as_text(number: Number | float) -> int | str:
    """A whole number, or a fraction or infinity as a text."""
    if number == math.inf:
        return "inf"
    return int(number) if number == math.floor(number) else str(Fraction(number))


def as_texts(numbers: Iterable[Number | float]) -> list[int | str]:
    """Numbers as :func:`as_text` writes them."""
    return [as_text(number) for number in numbers]


class Optimum(NamedTuple):
    """Of a linear programme: value, solution, prices of the rows, and whether there is no other solution."""

    value: Fraction
    x: list[Fraction]
    prices: list[Fraction]
    unique: bool


def simplex(gain: Sequence[Number], rows: Sequence[Sequence[Number]], limits: Sequence[Number]) -> Optimum:
    """Maximise gain x with rows x <= limits, x >= 0, limits >= 0; Bland's rule, so that it ends.

    ``unique`` may be False for a unique solution, never True for another.
    """
    n, m = len(gain), len(rows)
    table = [
        [Fraction(a) for a in row] + [Fraction(i == k) for k in range(m)] + [Fraction(b)]
        for i, (row, b) in enumerate(zip(rows, limits, strict=True))
    ]
    cost = [Fraction(-g) for g in gain] + [Fraction(0)] * (m + 1)
    basis = list(range(n, n + m))
    while True:
        enter = next((k for k in range(n + m) if cost[k] < 0), None)
        if enter is None:
            break
        ratios = [(table[i][-1] / table[i][enter], basis[i], i) for i in range(m) if table[i][enter] > 0]
        leave = min(ratios)[2]  # the programmes here are bounded
        pivot = table[leave][enter]
        table[leave] = [a / pivot for a in table[leave]]
        for row in [*table[:leave], *table[leave + 1 :], cost]:
            factor = row[enter]
            if factor:
                row[:] = [a - factor * b for a, b in zip(row, table[leave], strict=True)]
        basis[leave] = enter
    x = [Fraction(0)] * (n + m)
    for i, k in enumerate(basis):
        x[k] = table[i][-1]
    others = set(range(n + m)) - set(basis)
    return Optimum(cost[-1], x[:n], cost[n : n + m], all(cost[k] > 0 for k in others))
