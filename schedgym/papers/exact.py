"""Exact numbers: how findings write them, and a solver of linear programmes in fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

Number = int | Fraction


def quotient(a: Number | float, b: Number | float) -> Number | float:
    """Return a / b, exactly where both are exact."""
    return a / b if isinstance(a, float) or isinstance(b, float) else Fraction(a, b)


def as_text(number: Number | float) -> int | str:
    """Return a whole number as an int, and a fraction or infinity as a text."""
    if number == math.inf:
        return "inf"
    return int(number) if number == math.floor(number) else str(Fraction(number))


def as_texts(numbers: Iterable[Number | float]) -> list[int | str]:
    """Apply :func:`as_text` to each number."""
    return [as_text(number) for number in numbers]


class Optimum(NamedTuple):
    """Optimum of a linear programme: value, solution, dual prices of the rows, uniqueness of the solution."""

    value: Fraction
    x: list[Fraction]
    prices: list[Fraction]
    unique: bool


def simplex(gain: Sequence[Number], rows: Sequence[Sequence[Number]], limits: Sequence[Number]) -> Optimum:
    """Maximise gain x subject to rows x <= limits and x >= 0, for limits >= 0, by the simplex method.

    Bland's rule makes it terminate. If ``unique`` is True there is no other solution; False leaves this open.
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
