"""The model of zheng2016: jobs with partial values, slot rules for divisible and for whole tasks, optima.

Whole numbers and fractions give exact results, which the claims examine; with floats the environment's
kernels are held to it. Ties that no rule of the paper mentions go to the lower id, then to the lower task.
Whole tasks may overfill a resource by 1e-9; tasks that can be cut aim at a load of exactly 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, linprog

from schedgym.papers.exact import Optimum, quotient, simplex

# Jobs with partial values on pooled resources --------------------------------------------------------


Number = Any  # whole and fractions: exact; float
Amounts = Sequence[Number]  # tasks of each job
Schedule = list[Amounts]  # by slot 1, 2, ...

TOLERANCE = 1e-9  # a load of at most 1 + TOLERANCE fits; a job with y >= Y - TOLERANCE is complete

LINEAR, POWER, LOG = "linear", "power", "log"
KINDS = (LINEAR, POWER, LOG)


class Job(NamedTuple):
    """A job that is served in slots arrival..deadline.

    Attributes:
        arrival: first slot.
        deadline: last slot.
        parallelism: X, most tasks per slot.
        tasks: Y, tasks in all.
        demand: R, amount of each resource that a task needs.
        values: v; if f is linear, also several: the values of tasks 1, 2, ..., which never rise, and of which
            the last one is also the value of all further tasks.
        kind: of the utility: LINEAR v y, POWER v y^alpha, LOG v log(1 + y).
        alpha: exponent of a power.
    """

    arrival: Number
    deadline: Number
    parallelism: Number
    tasks: Number
    demand: tuple[Number, ...]
    values: tuple[Number, ...] = (1,)
    kind: str = LINEAR
    alpha: float = 0.5


class Instance(NamedTuple):
    """Jobs and the capacity of each resource; whole tasks only if ``discrete``."""

    jobs: tuple[Job, ...]
    capacity: tuple[Number, ...]
    discrete: bool = False


class State(NamedTuple):
    """What a policy sees at the start of a slot; ``served`` are the tasks of each job before it."""

    instance: Instance
    slot: int
    served: Amounts


Rule = Callable[[State], Amounts]


# utilities -------------------------------------------------------------------------------------------


def utility(job: Job, y: Number) -> Number:
    """Return f(y); a part of task k has that part of its value."""
    v = job.values[0]
    if job.kind == POWER:
        return v * y**job.alpha
    if job.kind == LOG:
        return v * math.log1p(y)
    if len(job.values) == 1:
        return v * y
    return sum(worth(job, k) * min(1, y - k + 1) for k in range(1, math.ceil(y) + 1))


def slope(job: Job, y: float) -> float:
    """Return f'(y) of a job with one value; infinite for a power at 0."""
    (v,) = job.values
    if job.kind == LINEAR:
        return v
    if job.kind == POWER:
        return math.inf if y <= 0 else v * job.alpha * y ** (job.alpha - 1)
    return v / (1 + y)


def worth(job: Job, k: int) -> Number:
    """Return the value of task k = 1, 2, ...: f(k) - f(k - 1), and exactly v where f is linear."""
    if job.kind == LINEAR:
        return job.values[min(k, len(job.values)) - 1]
    return utility(job, k) - utility(job, k - 1)


def value_of(instance: Instance, served: Amounts) -> Number:
    """Return the total value when jobs end with these tasks."""
    return sum(utility(job, y) for job, y in zip(instance.jobs, served, strict=True))


# slots -----------------------------------------------------------------------------------------------


def horizon(instance: Instance) -> int:
    """Return T, the last slot."""
    return max(math.floor(job.deadline) for job in instance.jobs)


def window(instance: Instance, j: int) -> list[int]:
    """Return the slots in which job j may be served."""
    job = instance.jobs[j]
    return [t for t in range(1, horizon(instance) + 1) if job.arrival <= t <= job.deadline]


def share(instance: Instance, j: int, i: int) -> Number:
    """Return r_ij, the share of resource i that a task of job j takes."""
    return quotient(instance.jobs[j].demand[i], instance.capacity[i])


def shares(instance: Instance, j: int) -> list[Number]:
    """Return the share of each resource that a task of job j takes."""
    return [share(instance, j, i) for i in range(len(instance.capacity))]


def load(instance: Instance, x: Amounts) -> list[Number]:
    """Return the load of each resource under an allocation."""
    totals = []
    for i in range(len(instance.capacity)):
        total: Number = 0
        for j, amount in enumerate(x):
            total += share(instance, j, i) * amount
        totals.append(total)
    return totals


def fits(instance: Instance, x: Amounts) -> bool:
    """Return whether no resource is overloaded."""
    return all(total <= 1 + TOLERANCE for total in load(instance, x))


def slot_cap(state: State, j: int) -> Number:
    """Return u, the most tasks that job j may get in this slot (0 when it is not active)."""
    job = state.instance.jobs[j]
    left = job.tasks - state.served[j]
    active = job.arrival <= state.slot <= job.deadline and left > TOLERANCE
    return min(job.parallelism, left) if active else 0


def slot_caps(state: State) -> list[Number]:
    """Return the most tasks that each job may get in this slot."""
    return [slot_cap(state, j) for j in range(len(state.served))]


def active(instance: Instance, slot: int, served: Amounts) -> list[int]:
    """Return the ids of the jobs that can be served in a slot."""
    return [j for j, cap in enumerate(slot_caps(State(instance, slot, served))) if cap > 0]


def gain(state: State, x: Amounts) -> Number:
    """Return the value of x tasks in addition to those served before: the reward of a slot."""
    return sum(
        utility(job, y + a) - utility(job, y)
        for job, y, a in zip(state.instance.jobs, state.served, x, strict=True)
        if a
    )


def check(state: State, x: Amounts) -> None:
    """Raise ValueError unless x may be served in this slot."""
    where = f"slot {state.slot}"
    if len(x) != len(state.instance.jobs):
        raise ValueError(f"{where}: {len(x)} amounts")
    for j, amount in enumerate(x):
        if not -TOLERANCE <= amount <= slot_cap(state, j) + TOLERANCE:
            raise ValueError(f"{where}: job {j} gets {amount}, may get {slot_cap(state, j)}")
        if state.instance.discrete and amount != round(amount):
            raise ValueError(f"{where}: job {j} gets {amount} tasks")
    if not fits(state.instance, x):
        raise ValueError(f"{where}: load {load(state.instance, x)}")


# schedules -------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """A whole run. The lists have one entry per slot played; served and value are at the end."""

    allocation: Schedule
    reward: list[Number]
    served: Amounts
    value: Number


def run(instance: Instance, rule: Rule, *, checked: bool = True) -> Outcome:
    """Play slots 1..T; stop early when every job has arrived and none is active.

    Raises:
        ValueError: the rule breaks a constraint, which is found out if ``checked``.
    """
    served: Amounts = (0,) * len(instance.jobs)
    allocation: Schedule = []
    rewards: list[Number] = []
    for slot in range(1, horizon(instance) + 1):
        arrived = all(job.arrival <= slot for job in instance.jobs)
        if arrived and not active(instance, slot, served):
            break
        state = State(instance, slot, served)
        x = rule(state)
        if checked:
            check(state, x)
        allocation.append(x)
        rewards.append(gain(state, x))
        served = tuple(y + a for y, a in zip(served, x, strict=True))
    return Outcome(allocation, rewards, served, value_of(instance, served))


def padded(instance: Instance, schedule: Sequence[Amounts]) -> Schedule:
    """Return a schedule with empty slots up to T."""
    empty = [0] * len(instance.jobs)
    return [*schedule, *(empty for _ in range(horizon(instance) - len(schedule)))]


def play(instance: Instance, rule: Rule) -> Schedule:
    """Return the schedule of a rule over all slots, feasible or not."""
    return padded(instance, run(instance, rule, checked=False).allocation)


def replay(instance: Instance, schedule: Sequence[Amounts]) -> Outcome:
    """Check and score a given schedule, one row per slot from slot 1."""
    rows = padded(instance, schedule)
    outcome = run(instance, lambda state: rows[state.slot - 1])
    if any(amount != 0 for row in rows[len(outcome.allocation) :] for amount in row):
        raise ValueError(f"service after the last of {len(outcome.allocation)} slots")
    return outcome


def feasible(instance: Instance, schedule: Schedule, whole: bool) -> bool:
    """Return True if a schedule keeps all constraints."""
    try:
        replay(instance._replace(discrete=whole), schedule)
    except ValueError:
        return False
    return True


def value(instance: Instance, schedule: Schedule) -> Number:
    """Return the value of a whole schedule."""
    return value_of(instance, [sum(x[j] for x in schedule) for j in range(len(instance.jobs))])


class Metrics(NamedTuple):
    """Value, mean load of each resource over all slots 1..T, jobs never served, and jobs that expired."""

    value: Number
    utilisation: tuple[Number, ...]
    never_served: int
    expired: int


def metrics(instance: Instance, outcome: Outcome) -> Metrics:
    """Measure a run: a job is never served if y <= 1e-9, and expired if it ends with y < Y - 1e-9."""
    last = horizon(instance)
    used: list[Number] = [0] * len(instance.capacity)
    for x in outcome.allocation:
        for i, total in enumerate(load(instance, x)):
            used[i] += quotient(total, last)
    return Metrics(
        value_of(instance, outcome.served),
        tuple(used),
        sum(y <= TOLERANCE for y in outcome.served),
        sum(y < job.tasks - TOLERANCE for job, y in zip(instance.jobs, outcome.served, strict=True)),
    )


# rules for both kinds of tasks -----------------------------------------------------------------------


def room(state: State, x: Amounts, j: int) -> Number:
    """Return how many tasks of job j the slot still has room for (a real number)."""
    used = load(state.instance, x)
    needs = shares(state.instance, j)
    return min([max(1 - u, 0) / r for u, r in zip(used, needs, strict=True) if r > 0] + [math.inf])


def in_order(state: State, order: Sequence[int]) -> Amounts:
    """Serve jobs in order, each with the most that fits."""
    x: list[Number] = [0] * len(state.served)
    for j in order:
        if not state.instance.discrete:
            x[j] = min(slot_cap(state, j), room(state, x, j))
            continue
        while x[j] < slot_cap(state, j):
            x[j] += 1
            if not fits(state.instance, x):
                x[j] -= 1
                break
    return x


def edf(state: State) -> Amounts:
    """Serve by deadline."""
    ids = active(state.instance, state.slot, state.served)
    return in_order(state, sorted(ids, key=lambda j: (state.instance.jobs[j].deadline, j)))


def fifo(state: State) -> Amounts:
    """Serve by arrival."""
    ids = active(state.instance, state.slot, state.served)
    return in_order(state, sorted(ids, key=lambda j: (state.instance.jobs[j].arrival, j)))


# Tasks that can be cut: Algorithm 1 in exact numbers and in floats, heuristics, and offline optima ---


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


# Whole tasks: the slot rules, their factors, the repair of actions, and exact optima -----------------


PRICE_TOLERANCE = 1e-12  # slack of the stopping rule of primal-dual, in logarithms


class Task(NamedTuple):
    """Task k of job j."""

    value: Number
    j: int
    k: int


def candidates(state: State) -> list[Task]:
    """Return the first min(X, Y - y) unserved tasks of each active job whose tasks fit, by job and index."""
    tasks = []
    for j, job in enumerate(state.instance.jobs):
        cap = round(slot_cap(state, j))
        if not cap or max(shares(state.instance, j)) > 1 + TOLERANCE:
            continue
        first = round(state.served[j]) + 1
        tasks += [Task(worth(job, k), j, k) for k in range(first, first + cap)]
    return tasks


def _counts(state: State, tasks: Sequence[Task]) -> Amounts:
    """Return tasks as amounts per job: the tasks of a job are served in index order."""
    x = [0] * len(state.served)
    for task in tasks:
        x[task.j] += 1
    return x


def _prefix(state: State, order: Sequence[Task], skip: bool = False) -> tuple[list[Task], Task | None]:
    """Return the tasks up to the first misfit (with skip: all but the misfits), and the first misfit."""
    taken: list[Task] = []
    misfit = None
    for task in order:
        if fits(state.instance, _counts(state, [*taken, task])):
            taken.append(task)
            continue
        misfit = misfit or task
        if not skip:
            break
    return taken, misfit


def _by_value(state: State) -> list[Task]:
    """Return the candidates, most valuable first; ties go to the lower id, then to the lower task index."""
    return sorted(candidates(state), key=lambda s: (-s.value, s.j, s.k))


def s_greedy(state: State, skip: bool = False) -> Amounts:
    """Return the most valuable tasks up to the first misfit (with skip: all but the misfits)."""
    return _counts(state, _prefix(state, _by_value(state), skip)[0])


def m_greedy(state: State, skip: bool = False) -> Amounts:
    """Run local greedy: tasks by value per dominant share up to the first misfit, or it if it is worth more.

    With ``skip`` only misfits are left out; the first one is compared with all that is taken.
    """
    dominant = [max(shares(state.instance, j)) for j in range(len(state.served))]

    def key(task: Task) -> tuple[Number, ...]:
        largest = dominant[task.j]
        density = quotient(task.value, largest) if largest else math.inf
        return (-density, -task.value, task.j, task.k)

    taken, misfit = _prefix(state, sorted(candidates(state), key=key), skip)
    if misfit is not None and misfit.value > sum(task.value for task in taken):
        taken = [misfit]
    return _counts(state, taken)


def equal_opp(state: State, skip: bool = False) -> Amounts:
    """Return one task per job and round, within a round by (y, id), up to the first misfit."""
    served = state.served
    order = sorted(candidates(state), key=lambda s: (s.k - served[s.j], served[s.j], s.j))
    return _counts(state, _prefix(state, order, skip)[0])


def _log_sum(logs: Sequence[float]) -> float:
    """Return the logarithm of the sum of the numbers with these logarithms."""
    top = max(logs, default=-math.inf)
    if math.isinf(top):
        return top
    return top + math.log(sum(math.exp(a - top) for a in logs))


def bound_b(state: State) -> float:
    """Return B = 1 / the largest share among the candidates (infinite when they need nothing)."""
    largest = max([max(shares(state.instance, s.j)) for s in candidates(state)], default=0)
    return float(1 / largest) if largest else math.inf


def primal_dual(state: State, power: int = 1) -> Amounts:
    """Run local primal-dual (Algorithm 2), with logarithms of multiplicative prices.

    A task raises log b_i by limit r_is^power / (1 - max_s' r_is'). ``power`` 1 gives the rule of Briest,
    Krysta and Voecking, which keeps the slot within its capacity, 0 the formula that the paper prints.
    """
    m = len(state.instance.capacity)
    left = candidates(state)
    needs = {task.j: shares(state.instance, task.j) for task in left}
    largest = [max([r[i] for r in needs.values()], default=0) for i in range(m)]
    limit = bound_b(state) - 1 + math.log(m)  # log(e^(B-1) m)
    price = [0.0] * m  # logarithms
    taken: list[Task] = []

    def cost(r: Sequence[Number]) -> float:
        return _log_sum([math.log(a) + b for a, b in zip(r, price, strict=True) if a])

    while left and _log_sum(price) <= limit + PRICE_TOLERANCE:
        costs = {j: cost(r) for j, r in needs.items()}
        task = min(left, key=lambda s: (costs[s.j] - math.log(s.value), -s.value, s.j, s.k))
        left.remove(task)
        taken.append(task)
        for i, r in enumerate(needs[task.j]):
            if r or not power:
                price[i] += float(limit * r**power / (1 - largest[i])) if largest[i] < 1 else math.inf
    return _counts(state, taken)


def deadline_aware(state: State, p: int | None = None, rho: Number = None) -> Amounts:
    """Run Algorithm 3: some of the most valuable tasks, then nearly as valuable ones that are urgent.

    One resource, unit demand, whole capacity C; by default p = ceil(C / 2) and rho = C / (2 C - p), which is
    C / 2 and 2 / 3 for even C.
    """
    capacity = state.instance.capacity
    if len(capacity) != 1 or capacity[0] != round(capacity[0]):
        raise ValueError("deadline-aware needs one resource of whole capacity")
    if any(job.demand != (1,) for job in state.instance.jobs):
        raise ValueError("deadline-aware needs unit demand")
    c = round(capacity[0])
    p = -(-c // 2) if p is None else p
    rho = Fraction(c, 2 * c - p) if rho is None else rho
    order = _by_value(state)
    if len(order) <= c:
        return _counts(state, order)
    least = rho * quotient(sum(s.value for s in order[:p]), p)
    if order[c].value <= least:
        return _counts(state, order[:c])
    near = [s for s in order[p:] if s.value >= least]
    near.sort(key=lambda s: (state.instance.jobs[s.j].deadline, -s.value, s.j, s.k))
    return _counts(state, order[:p] + near[: c - p])


def allocations(state: State) -> Iterator[tuple[int, ...]]:
    """Yield every whole allocation of a slot that fits and to which no further task can be added."""
    demands = [job.demand for job in state.instance.jobs]
    caps = [0] * len(demands)
    for task in candidates(state):
        caps[task.j] += 1
    slack = [TOLERANCE * c for c in state.instance.capacity]

    def fit(demand: Sequence[Number], left: Sequence[Number]) -> bool:
        return all(d <= c + more for d, c, more in zip(demand, left, slack, strict=True))

    def extend(j: int, x: tuple[int, ...], left: tuple[Number, ...]) -> Iterator[tuple[int, ...]]:
        if j == len(caps):
            if not any(x[k] < cap and fit(demands[k], left) for k, cap in enumerate(caps)):
                yield x
            return
        for count in range(caps[j] + 1):
            if count:
                if not fit(demands[j], left):
                    return
                left = tuple(c - d for c, d in zip(left, demands[j], strict=True))
            yield from extend(j + 1, (*x, count), left)

    return extend(0, (), state.instance.capacity)


def local_optimal(state: State) -> Amounts:
    """Return the whole allocation with the largest gain: problem (5); one of them if there are several."""
    return list(max(allocations(state), key=functools.partial(gain, state)))


def whole_best(instance: Instance) -> tuple[Number, Schedule]:
    """Return the offline optimum of problem (4) over all schedules (a task is never worth less early)."""
    last = horizon(instance)

    @functools.cache
    def best(slot: int, served: tuple[int, ...]) -> tuple[Number, tuple[tuple[int, ...], ...]]:
        if slot > last:
            return 0, ()
        state = State(instance, slot, served)
        options = []
        for x in allocations(state):
            later, rest = best(slot + 1, tuple(y + a for y, a in zip(served, x, strict=True)))
            options.append((gain(state, x) + later, (x, *rest)))
        return max(options)

    found, schedule = best(1, (0,) * len(instance.jobs))
    return found, list(schedule)


# factors that the paper proves, as corrected -------------------------------------------------------------


def _excess(b: float) -> float:
    """Return B / (B - 1); B is infinite where tasks need nothing."""
    return 1.0 if math.isinf(b) else b / (b - 1)


def m_greedy_factor(b: float, m: int) -> float:
    """Return the number of times that a slot's optimum is at most what m-greedy gets; b is B."""
    return m * (2.0 if b <= 1 else min(2.0, _excess(b)))


def primal_dual_factor(b: float, m: int) -> float:
    """Return the same for primal-dual."""
    return math.inf if b <= 1 else math.e * _excess(b) * m ** (1 / (b - 1))


def deadline_aware_factor(c: int) -> Fraction:
    """Return the number of times that the offline optimum is at most what deadline-aware gets.

    9/5 for even C, 1 + 4 C^2 / (5 C^2 - 1) for odd C with p = (C +- 1) / 2.
    """
    return Fraction(9, 5) if c % 2 == 0 else 1 + Fraction(4 * c * c, 5 * c * c - 1)


# actions that do not fit -----------------------------------------------------------------------------------


def repair(state: State, x: Sequence[float]) -> Amounts:
    """Make an allocation with 0 <= x <= u fit.

    Continuous: x_j times the least of min(1, 1 / load_i) over the resources that job j uses.
    Discrete: drop the last task of the job whose last task has the lowest value per dominant share
    (ties: lower value, higher id), until it fits.
    """
    x = list(x)
    if not state.instance.discrete:
        used = load(state.instance, x)
        for j in range(len(x)):
            factors = [1 / max(1.0, u) for u, r in zip(used, shares(state.instance, j), strict=True) if r > 0]
            x[j] *= min(factors, default=1.0)
        return x
    while not fits(state.instance, x):
        lasts = []
        for j, job in enumerate(state.instance.jobs):
            k = round(state.served[j] + x[j])
            if x[j] > 0 and max(shares(state.instance, j)) > 0:
                lasts.append(Task(worth(job, k), j, k))
        x[min(lasts, key=lambda s: (s.value / max(shares(state.instance, s.j)), s.value, -s.j)).j] -= 1.0
    return x


# The policies by name --------------------------------------------------------------------------------


CONTINUOUS: dict[str, Rule] = {
    "concave": concave,
    "s-greedy": s_greedy_continuous,
    "equal-opp": equal_opp_continuous,
    "edf": edf,
    "fifo": fifo,
}
DISCRETE: dict[str, Rule] = {
    "m-greedy": m_greedy,
    "m-greedy-skip": functools.partial(m_greedy, skip=True),
    "primal-dual": primal_dual,
    "local-optimal": local_optimal,
    "deadline-aware": deadline_aware,
    "s-greedy": s_greedy,
    "s-greedy-skip": functools.partial(s_greedy, skip=True),
    "equal-opp": equal_opp,
    "equal-opp-skip": functools.partial(equal_opp, skip=True),
    "edf": edf,
    "fifo": fifo,
}


def policies(instance: Instance) -> dict[str, Rule]:
    """Return the policies for the tasks of an instance."""
    return DISCRETE if instance.discrete else CONTINUOUS


def simulate(instance: Instance, policy: str | Rule) -> Outcome:
    """Run a policy."""
    return run(instance, policy if callable(policy) else policies(instance)[policy])


def slot_gaps(instance: Instance, schedule: Sequence[Amounts]) -> list[Number]:
    """Return how much each slot's value lacks to the best of that slot, along the given trajectory.

    Where an optimum is not unique (linear utilities, local-optimal), only values can be compared.
    """
    best = local_optimal if instance.discrete else concave
    rows = padded(instance, schedule)
    gaps: list[Number] = []

    def follow(state: State) -> Amounts:
        x = rows[state.slot - 1]
        gaps.append(gain(state, best(state)) - gain(state, x))
        return x

    run(instance, follow)
    return gaps
