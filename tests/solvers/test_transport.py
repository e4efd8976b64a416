"""Transportation: against the model's rule for ties, and linear programs."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from schedgym.core.jit import pure_kernel
from schedgym.papers.xu2021 import model
from schedgym.solvers.arithmetic import common_multiple, scale_of
from schedgym.solvers.transport import FORBIDDEN, break_ties, make_transport_scratch, transport_into
from tests.long import trials
from tests.tables import table


def transport(
    costs: Any,
    supply: Any,
    capacity: Any,
    *,
    slopes: Any = 0,
    allowed: Any = True,
    total: int | None = None,
    ties: bool = True,
) -> Any:
    """Units of each row on each server, None if ``total`` do not fit; costs are rounded to whole numbers."""
    cost = np.asarray(costs, dtype=np.float64)
    arcs = np.broadcast_to(np.asarray(allowed, dtype=bool), cost.shape)
    rows, servers = cost.shape
    slope = np.broadcast_to(np.asarray(slopes, dtype=np.float64), rows)
    largest = np.abs(cost[arcs]).max(initial=0.0) + slope.max(initial=0.0) * max(np.max(supply, initial=0), 1)
    scale = scale_of(float(largest), 2 * servers + 4)
    net = make_transport_scratch(rows, servers)
    net.supply[:], net.slope[:] = supply, slope * scale
    net.linear[arcs], net.linear[~arcs] = cost[arcs] * scale, FORBIDDEN
    limits = np.array(capacity, dtype=np.int64)
    placed = transport_into(rows, -1 if total is None else total, limits, net)
    if ties:
        break_ties(rows, limits, net)
    return None if total is not None and placed < total else net.units


def draw(rng: random.Random, rows: int, servers: int, units: int, whole: bool) -> tuple[Any, dict[str, Any]]:
    """A random problem: few different costs if whole, so that there are many ties."""
    n, m = rng.randint(1, rows), rng.randint(1, servers)
    supply = [rng.randint(0, units) for _ in range(n)]
    capacity = [rng.randint(0, units + 2) for _ in range(m)]
    few = rng.randint(0, 3)

    def cost() -> float:
        return float(rng.randint(-few, few)) if whole else rng.uniform(-9.0, 5.0)

    costs = [[cost() for _ in range(m)] for _ in range(n)]
    options: dict[str, Any] = {}
    if rng.random() < 0.6:
        options["slopes"] = [rng.choice([0, 0, 1, 2]) * (1 if whole else rng.random()) for _ in range(n)]
    if rng.random() < 0.4:
        options["allowed"] = [[rng.random() < 0.6 for _ in range(m)] for _ in range(n)]
    if rng.random() < 0.6:
        options["total"] = rng.randint(0, min(sum(supply), sum(capacity)))
    return (costs, supply, capacity), options


def price(costs: Any, units: Any, slopes: Any = None) -> float:
    """What a solution costs."""
    units, costs = np.asarray(units), np.asarray(costs)
    slope = np.zeros(len(units)) if slopes is None else np.asarray(slopes)
    return float((units * costs + slope[:, None] * units * (units - 1) / 2).sum())


def feasible(problem: Any, options: dict[str, Any], units: Any) -> bool:
    _, supply, capacity = problem
    allowed = options.get("allowed", True)
    total = options.get("total")
    return bool(
        (units >= 0).all()
        and (units.sum(axis=1) <= supply).all()
        and (units.sum(axis=0) <= capacity).all()
        and (units[~np.broadcast_to(np.asarray(allowed), units.shape)] == 0).all()
        and (total is None or units.sum() == total)
    )


def test_the_optimum_and_its_ties_are_the_models() -> None:
    rng = random.Random(1)
    infeasible = 0
    for _ in trials(2000):
        problem, options = draw(rng, 6, 4, 4, True)
        costs, supply, capacity = problem
        arcs = None
        if "allowed" in options:
            arcs = [(j, i) for j, row in enumerate(options["allowed"]) for i, on in enumerate(row) if on]
        slopes = options.get("slopes", [0] * len(supply))

        def marginal(j: int, i: int, q: int, costs: Any = costs, slopes: Any = slopes) -> Fraction:
            return Fraction(costs[j][i]) + Fraction(slopes[j]) * q

        try:
            best = model.transport(marginal, supply, capacity, arcs=arcs, total=options.get("total"))
        except ValueError:
            infeasible += 1
            assert transport(*problem, **options) is None
            continue
        assert transport(*problem, **options).tolist() == best
        other = transport(*problem, **options, ties=False)
        assert feasible(problem, options, other)
        assert other.sum() == np.sum(best)
        assert price(costs, other, slopes) == price(costs, best, slopes)
    assert 0 < infeasible < 1000


def solve_lp(problem: Any, options: dict[str, Any]) -> float | None:
    """The optimum of the linear program with one variable per unit; None if there is none."""
    costs, supply, capacity = problem
    slopes = options.get("slopes", [0] * len(supply))
    allowed = options.get("allowed")
    cells = [
        (j, i, q)
        for j, most in enumerate(supply)
        for i, room in enumerate(capacity)
        if allowed is None or allowed[j][i]
        for q in range(min(most, room))
    ]
    total = options.get("total")
    if not cells:
        return 0.0 if not total else None
    ones = np.ones(len(cells))
    columns = range(len(cells))
    rows = coo_matrix((ones, ([j for j, _, _ in cells], columns)), shape=(len(supply), len(cells)))
    servers = coo_matrix((ones, ([i for _, i, _ in cells], columns)), shape=(len(capacity), len(cells)))
    from scipy.sparse import vstack

    result = linprog(
        [costs[j][i] + slopes[j] * q for j, i, q in cells],
        A_ub=vstack([rows, servers]).tocsr(),
        b_ub=[*supply, *capacity],
        A_eq=None if total is None else ones[None],
        b_eq=None if total is None else [total],
        bounds=(0, 1),
        method="highs",
    )
    return float(result.fun) if result.status == 0 else None


@pytest.mark.parametrize(
    ("count", "rows", "servers", "units", "seed"), [(1000, 8, 5, 5, 2), (60, 40, 8, 6, 3), (6, 30, 60, 9, 4)]
)
def test_linear_programs_agree(count: int, rows: int, servers: int, units: int, seed: int) -> None:
    rng = random.Random(seed)
    solved = 0
    for _ in trials(count):
        problem, options = draw(rng, rows, servers, units, False)
        best = solve_lp(problem, options)
        if best is None:
            assert transport(*problem, **options) is None
            continue
        found = transport(*problem, **options)
        assert feasible(problem, options, found)
        assert price(problem[0], found, options.get("slopes")) == pytest.approx(best, rel=1e-9, abs=1e-9)
        solved += 1
    assert solved > len(trials(count)) // 2


@pytest.mark.parametrize(("costs", "supply", "capacity", "options", "units"), table(__file__, "test_by_hand"))
def test_by_hand(costs: Any, supply: Any, capacity: Any, options: Any, units: Any) -> None:
    assert transport(costs, supply, capacity, **options).tolist() == units


def test_nothing_to_do() -> None:
    assert transport(np.zeros((0, 3)), [], [1, 1, 1]).shape == (0, 3)
    assert transport(np.zeros((2, 0)), [1, 1], []).shape == (2, 0)
    assert transport(np.zeros((2, 0)), [1, 1], [], total=1) is None


@pure_kernel
def multiple(a: int, b: int, most: int) -> int:
    return common_multiple(a, b, most)


def test_common_multiples_and_scales() -> None:
    assert [multiple(4, 6, 100), multiple(1, 7, 7), multiple(4, 6, 11), multiple(0, 6, 100)] == [12, 7, 0, 0]
    assert scale_of(0.0, 4) == 1.0
    for largest in (1e-300, 3.0, 4.0, 1e15):
        scale = scale_of(largest, 4)
        assert 2.0**58 <= 4 * largest * scale <= 2.0**60 or largest == 1e-300
