"""The costs of cores with a switching cost (Eq. 31 and 32) in whole numbers, which ocorp+ and ocorp+m share.

The (q + 1)-th core of a job with d cores on a server where it had u_prev costs
$(w - lambda) / d + alpha (2 q + 1 - 2 u_prev) / d^2$. Costs are whole numbers of units, 1 / (scale multiple),
where the multiple is a common denominator of the costs of all jobs: sums are then exact, and ties are ties.
"""

from __future__ import annotations

from schedgym.core.arrays import Floats
from schedgym.core.jit import helper
from schedgym.problems.flowtime.rules import MOST_MULTIPLE, Rows
from schedgym.solvers.arithmetic import common_multiple, fixed, scale_for

LEAST_UNITS = 1024.0  # of alpha: with fewer the whole number of units is too far from it


@helper
def largest_cost(n: int, alpha: float, coefficient: Floats, rows: Rows) -> float:
    """Return a number that no core's cost exceeds in absolute value, among the first n jobs."""
    largest = 0.0
    for r in range(n):
        d = float(rows.demand[r])
        cost = abs(coefficient[r]) / d
        if rows.age[r] > 1:
            old = 0
            for i in range(rows.held.shape[1]):
                old += rows.held[r, i]
            cost += alpha * (2 * rows.cap[r] + 1 + 2 * old) / (d * d)
        largest = max(largest, cost)
    return largest


@helper
def cost_multiple(n: int, alpha: float, largest: float, terms: int, rows: Rows) -> int:
    """Return a common denominator of the costs of the first n jobs, or 0 if none is small enough.

    Args:
        n: jobs.
        alpha: weight of the switching cost.
        largest: of :func:`largest_cost`; ``terms`` such costs are added.
        terms: see ``largest``.
        rows: the jobs.
    """
    multiple = 1
    for r in range(n):
        d = rows.demand[r]
        multiple = common_multiple(multiple, d * d if rows.age[r] > 1 else d, MOST_MULTIPLE)
    if alpha * scale_for(largest * multiple, terms) < LEAST_UNITS:
        return 0
    return multiple


@helper
def core_cost(r: int, scale: float, multiple: int, coefficient: Floats, rows: Rows) -> int:
    """Return the cost (w - lambda) / d as a whole number."""
    d = rows.demand[r]
    return fixed(coefficient[r] * (multiple // d) if multiple > 0 else coefficient[r] / d, scale)


@helper
def square_cost(r: int, scale: float, multiple: int, alpha: float, rows: Rows) -> int:
    """Return the cost alpha / d^2 as a whole number; 0 in a job's first slot."""
    if rows.age[r] <= 1:
        return 0
    d = rows.demand[r]
    return fixed(alpha, scale) * (multiple // (d * d)) if multiple > 0 else fixed(alpha / (d * d), scale)
