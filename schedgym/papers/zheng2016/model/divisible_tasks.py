"""Tasks that can be cut: Algorithm 1 in exact numbers and in floats, heuristics, and offline optima."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, linprog

from schedgym.papers.exact import Optimum, simplex
from schedgym.papers.zheng2016.model.jobs import (
    LINEAR,
    POWER,
    Amounts,
    Instance,
    Job,
    Number,
    Schedule,
    State,
    active,
    fits,
    gain,
    horizon,
    load,
    room,
    share,
    shares,
    slope,
    slot_cap,
    slot_caps,
    utility,
    window,
)

__all__ = [
    "GAP",
    "algorithm_1",
    "buy_all",
    "clearing_prices",
    "concave",
    "concave_by_cuts",
    "curved_slot",
    "lagrangian_bound",
    "linear_best",
    "offline_continuous",
    "s_greedy_continuous",
    "slot_bound",
]


GAP = 1e-9  # relative duality gap that every solution in floats must reach


class Uncertified(Exception):
    """A solver ended without a proof that its answer is optimal."""


# linear utilities, in exact numbers --------------------------------------------------------------------


def algorithm_1(state: State) -> Optimum:
    """Solve problem (2) of one slot for linear utilities; the first rows are the resources."""
    instance, caps = state.instance, slot_caps(state)
    rows: list[list[Number]] = [
        [job.demand[i] for job in instance.jobs] for i in range(len(instance.capacity))
    ]
    rows += [[int(j == k) for k in range(len(caps))] for j in range(len(caps))]
    return simplex([job.values[0] for job in instance.jobs], rows, [*instance.capacity, *caps])


def linear_best(instance: Instance) -> tuple[Fraction, Schedule]:
    """Return the offline optimum of problem (1) for linear utilities."""
    jobs, last = instance.jobs, horizon(instance)
    columns = [(j, t) for j, job in enumerate(jobs) for t in range(job.arrival, job.deadline + 1)]
    rows: list[list[Number]] = []
    limits: list[Number] = []
    for t in range(1, last + 1):
        for i, c in enumerate(instance.capacity):
            rows.append([jobs[j].demand[i] if s == t else 0 for j, s in columns])
            limits.append(c)
    for k, job in enumerate(jobs):
        rows.append([int(j == k) for j, _ in columns])
        limits.append(job.tasks)
        if job.parallelism < job.tasks:
            for t in range(job.arrival, job.deadline + 1):
                rows.append([int((j, s) == (k, t)) for j, s in columns])
                limits.append(job.parallelism)
    found = simplex([jobs[j].values[0] for j, _ in columns], rows, limits)
    at = dict(zip(columns, found.x, strict=True))
    return found.value, [
        tuple(at.get((j, t), Fraction(0)) for j in range(len(jobs))) for t in range(1, last + 1)
    ]


# utilities v y - y^2 / 2, one resource, in exact numbers -------------------------------------------------


class SlotPrices(NamedTuple):
    """Tasks of each job by Algorithm 1, and the least and the greatest price of the whole resource."""

    x: Amounts
    least: Fraction
    greatest: Fraction


def curved_slot(state: State) -> SlotPrices:
    """Solve problem (2) of one slot for f(y) = v y - y^2 / 2, which is constant from y = v on; v >= Y.

    A job that pays the price b r for a task of share r takes v - b r - y, cut off at 0 and its most tasks.
    The load falls with b, and is linear between the prices at which a job starts or stops to take more. All
    prices from the least to the greatest are multipliers of the resource.
    """
    caps = slot_caps(state)
    r = [share(state.instance, j, 0) for j in range(len(caps))]
    left = [job.values[0] - y for job, y in zip(state.instance.jobs, state.served, strict=True)]

    def taken(price: Fraction) -> Amounts:
        return tuple(
            min(max(rest - price * share, Fraction(0)), cap)
            for rest, share, cap in zip(left, r, caps, strict=True)
        )

    def load(price: Fraction) -> Fraction:
        return sum((share * a for share, a in zip(r, taken(price), strict=True)), Fraction(0))

    if load(Fraction(0)) < 1:
        return SlotPrices(taken(Fraction(0)), Fraction(0), Fraction(0))
    turns = {(rest - a) / share for rest, share, cap in zip(left, r, caps, strict=True) for a in (0, cap)}
    places = sorted({Fraction(0), *(turn for turn in turns if turn > 0)})
    after = next((k for k, place in enumerate(places) if load(place) <= 1))
    least = places[after]
    if load(least) < 1:
        before = places[after - 1]
        least = before + (load(before) - 1) / (load(before) - load(least)) * (least - before)
    greatest = max([least, *(place for place in places if load(place) == 1)])
    return SlotPrices(taken(least), least, greatest)


# concave programmes in floats: cutting planes, with a Lagrangian certificate ----------------------------


def level_at(job: Job, price: float) -> float:
    """Where f' falls to the price: the y that a buyer at this price stops at.

    A linear job stops at 0 or never; at price = v it does not care, and 0 is answered.
    """
    if price <= 0:
        return math.inf
    if job.kind == LINEAR:
        return math.inf if price < job.values[0] else 0.0
    if job.kind == POWER:
        return (job.values[0] * job.alpha / price) ** (1 / (1 - job.alpha))
    return job.values[0] / price - 1


class Solution(NamedTuple):
    """x[j][t] over the slots asked for, the value of x, and an upper bound on the optimum."""

    x: list[dict[int, float]]
    value: float
    upper: float


def lagrangian_bound(
    instance: Instance,
    y: Sequence[float],
    windows: Sequence[Sequence[int]],
    price: dict[int, list[float]],
) -> tuple[float, list[float]]:
    """Upper bound on the gain from y on, for prices b[t][i] >= 0, and what each job would buy.

    Each job buys on its own: cheapest slots first, until f' is below the price of the next one.
    """
    total = sum(sum(prices) for prices in price.values())
    bought = []
    for j, job in enumerate(instance.jobs):
        r = shares(instance, j)
        costs = sorted(sum(b * s for b, s in zip(price[t], r, strict=True)) for t in windows[j])
        amount = paid = 0.0
        for cost in costs:
            most = min(job.parallelism, job.tasks - y[j] - amount)
            more = min(max(level_at(job, cost) - y[j] - amount, 0.0), most)
            amount += more
            paid += cost * more
        total += utility(job, y[j] + amount) - utility(job, y[j]) - paid
        bought.append(amount)
    return total, bought


def _capacities(
    instance: Instance, slots: Sequence[int], columns: Sequence[tuple[int, int]], width: int
) -> tuple[list[npt.NDArray[np.float64]], list[float]]:
    """Return the constraints of the capacities over (job, slot) columns, whose multipliers are the prices."""
    rows = []
    for t in slots:
        for i in range(len(instance.capacity)):
            row = np.zeros(width)
            for column, (j, s) in enumerate(columns):
                if s == t:
                    row[column] = share(instance, j, i)
            rows.append(row)
    return rows, [1.0] * len(rows)


def maximise(instance: Instance, y: Sequence[float], windows: Sequence[Sequence[int]]) -> Solution:
    """Best continuous service from y on, each job in its given slots only.

    Kelley's cutting planes: every f_j is replaced by the least of its tangents at the points seen so
    far, which makes an LP; new tangents are drawn at the LP's point and at what the jobs would buy at
    the LP's prices. The answer is the best feasible point, and the bound comes from the prices
    (``lagrangian_bound``), so that it holds however the LP was solved.
    """
    jobs, m = instance.jobs, len(instance.capacity)
    slots = sorted({t for slots in windows for t in slots})
    columns = [(j, t) for j in range(len(jobs)) for t in windows[j]]
    z = {j: len(columns) + j for j in range(len(jobs))}  # column of the value of job j
    width = len(columns) + len(jobs)
    rest = [max(job.tasks - y[j], 0.0) for j, job in enumerate(jobs)]

    rows, limits = _capacities(instance, slots, columns, width)
    for j in range(len(jobs)):
        row = np.zeros(width)
        row[[c for c, (k, _) in enumerate(columns) if k == j]] = 1.0
        rows.append(row)
        limits.append(rest[j])
    bounds = [(0.0, min(jobs[j].parallelism, rest[j])) for j, _ in columns]
    bounds += [(0.0, utility(job, y[j] + rest[j]) - utility(job, y[j])) for j, job in enumerate(jobs)]
    cost = np.zeros(width)
    cost[len(columns) :] = -1.0

    def cut(j: int, point: float) -> None:
        """z_j <= f(y + p) - f(y) + f'(y + p) (x - p), at a p where f' is finite."""
        job = jobs[j]
        point = min(max(point, 1e-12 * rest[j]), rest[j])
        steep = slope(job, y[j] + point)
        if math.isfinite(steep):
            row = -steep * rows[len(slots) * m + j]
            row[z[j]] = 1.0
            rows.append(row)
            limits.append(utility(job, y[j] + point) - utility(job, y[j]) - steep * point)

    for j in range(len(jobs)):
        for halvings in range(8):
            cut(j, rest[j] / 2**halvings)
    best_x: list[dict[int, float]] = [{t: 0.0 for t in windows[j]} for j in range(len(jobs))]
    best, upper = 0.0, math.inf
    for _ in range(100):
        result = linprog(
            cost,
            A_ub=np.array(rows),
            b_ub=limits,
            bounds=bounds,
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.status != 0:
            raise Uncertified(result.message)
        x: list[dict[int, float]] = [{} for _ in jobs]
        for column, (j, t) in enumerate(columns):
            x[j][t] = min(max(float(result.x[column]), 0.0), bounds[column][1])
        amounts = [min(sum(x[j].values()), rest[j]) for j in range(len(jobs))]
        value = sum(utility(job, y[j] + amounts[j]) - utility(job, y[j]) for j, job in enumerate(jobs))
        if value > best:
            best, best_x = value, x
        dual = [max(-float(b), 0.0) for b in result.ineqlin.marginals[: len(slots) * m]]
        price = {t: dual[n * m : (n + 1) * m] for n, t in enumerate(slots)}
        bound, bought = lagrangian_bound(instance, y, windows, price)
        upper = min(upper, bound)
        if upper - best <= GAP * max(1.0, upper):
            return Solution(best_x, best, upper)
        for j in range(len(jobs)):
            cut(j, amounts[j])
            cut(j, bought[j])
    raise Uncertified(f"value {best}, bound {upper}")


def offline_continuous(instance: Instance) -> Solution:
    """The offline optimum of the continuous model; an upper bound in the discrete one."""
    zero = [0.0] * len(instance.jobs)
    return maximise(instance, zero, [window(instance, j) for j in range(len(zero))])


# Algorithm 1 in floats -----------------------------------------------------------------------------------


def buy(state: State, j: int, price: float) -> float:
    """What job j takes in this slot at a price per task."""
    return min(max(level_at(state.instance.jobs[j], price) - state.served[j], 0.0), slot_cap(state, j))


def buy_all(state: State, prices: Sequence[float]) -> Amounts:
    """What the jobs take at a price b_i per whole resource i."""
    n = len(state.instance.jobs)
    return [
        buy(state, j, sum(b * r for b, r in zip(prices, shares(state.instance, j), strict=True)))
        for j in range(n)
    ]


def clearing_prices(state: State) -> list[float]:
    """Dual prices of a slot whose active jobs are all strictly concave, by nested root finding.

    With the prices of the later resources fixed, the load of a resource falls continuously as its own
    price rises while the earlier ones settle, because that load is 1 minus the derivative of a convex
    function (the dual, minimised over the earlier prices). So each price is 0 if the resource is then
    slack, else the root of load = 1.
    """
    prices = [0.0] * len(state.instance.capacity)

    def excess(i: int, price: float) -> float:
        prices[i] = price
        settle(i - 1)
        return load(state.instance, buy_all(state, prices))[i] - 1.0

    def settle(i: int) -> None:
        if i < 0 or excess(i, 0.0) <= 0.0:
            return
        high = 1.0
        while excess(i, high) > 0.0:
            high *= 2
        low = high / 2
        while excess(i, low) <= 0.0:
            low, high = low / 2, low
        excess(i, brentq(lambda price: excess(i, price), low, high, xtol=1e-300, rtol=1e-15, maxiter=500))

    settle(len(prices) - 1)
    return prices


def slot_bound(state: State, prices: Sequence[float]) -> float:
    """Upper bound on the gain of any allocation of this slot, from prices >= 0."""
    x = buy_all(state, prices)
    used = load(state.instance, x)
    return gain(state, x) + sum(b * (1.0 - u) for b, u in zip(prices, used, strict=True))


def concave(state: State) -> Amounts:
    """Algorithm 1: the allocation of the largest gain in this slot, certified by its duality gap.

    Strictly concave utilities: the unique optimum, from the prices. With linear jobs among the active
    ones the optimum need not be unique, and cutting planes give one of the best.
    """
    ids = active(state.instance, state.slot, state.served)
    x: Amounts = slot_caps(state)
    if all(total <= 1.0 for total in load(state.instance, x)):
        return x
    if any(state.instance.jobs[j].kind == LINEAR for j in ids):
        return concave_by_cuts(state)
    prices = clearing_prices(state)
    x = buy_all(state, prices)
    missing = slot_bound(state, prices) - gain(state, x)
    if not fits(state.instance, x) or abs(missing) > GAP * max(1.0, gain(state, x)):
        raise Uncertified(f"slot {state.slot}: gap {missing}, load {load(state.instance, x)}")
    return x


def concave_by_cuts(state: State) -> Amounts:
    """The same by cutting planes: slower to converge in x, but for any mix of utilities."""
    ids = active(state.instance, state.slot, state.served)
    windows = [[state.slot] if j in ids else [] for j in range(len(state.served))]
    solution = maximise(state.instance, state.served, windows)
    return [sum(parts.values()) for parts in solution.x]


# heuristics ----------------------------------------------------------------------------------------------


def _fill(
    state: State, amounts: Callable[[float], Amounts], generous: float, frugal: float
) -> tuple[Amounts, bool]:
    """Move a level from frugal (fits) to generous until a resource is full.

    Returns the allocation and whether a resource is full: if even the generous one fits, it is not.
    """
    if all(total <= 1.0 for total in load(state.instance, amounts(generous))):
        return amounts(generous), False
    for _ in range(2000):
        middle = (generous + frugal) / 2
        if middle in (generous, frugal):
            break
        if all(total <= 1.0 for total in load(state.instance, amounts(middle))):
            frugal = middle
        else:
            generous = middle
    return amounts(frugal), True


def s_greedy_continuous(state: State) -> Amounts:
    """Highest marginal value first: lower a common level of f' until a resource is full.

    Linear jobs come at the level of their v, one after another by id.
    """
    jobs = state.instance.jobs
    ids = active(state.instance, state.slot, state.served)
    linear = sorted((j for j in ids if jobs[j].kind == LINEAR), key=lambda j: (-jobs[j].values[0], j))
    given: dict[int, float] = {}  # what the linear jobs have got

    def amounts(level: float) -> Amounts:
        return [
            given.get(j, 0.0) if j not in ids or jobs[j].kind == LINEAR else buy(state, j, level)
            for j in range(len(jobs))
        ]

    high = 1.0 + max((jobs[j].values[0] for j in linear), default=0.0)
    while any(total > 1.0 for total in load(state.instance, amounts(high))):
        high *= 2
    for j in linear:
        x, full = _fill(state, amounts, jobs[j].values[0], high)
        if full:
            return x
        high = jobs[j].values[0]
        given[j] = min(slot_cap(state, j), room(state, x, j))
        if given[j] < slot_cap(state, j):
            return amounts(high)
    return _fill(state, amounts, 0.0, high)[0]


def equal_opp_continuous(state: State) -> Amounts:
    """The same amount for everyone, capped by u, raised until a resource is full."""
    caps = [slot_cap(state, j) for j in range(len(state.served))]
    x, _ = _fill(state, lambda level: [min(cap, level) for cap in caps], max(caps), 0.0)
    return x
