"""A slow, plain second implementation of the PartialValue scheduling problem (test oracle).

Written from the specification alone, with tuples, lists and loops, for instances of about ten jobs,
three resources and ten slots. It favours being easy to check over being fast: shares are divided
anew whenever they are needed, loads are summed anew from a whole allocation, exact discrete answers
come from enumeration, and every concave problem is certified by its own duality gap.

Choices that the specification leaves open, spelled out:

* The value of task k is f(k) - f(k-1), and exactly v when f is linear (no rounding of v k - v (k-1)).
* Jobs with any share above 1 + 1e-9 are no candidates of any discrete policy.
* Ties that no rule mentions go to the lower id, then to the lower task index.
* A load fits if it is <= 1 + 1e-9, for whole tasks; continuous policies aim at a load of exactly 1.
* m-greedy with ``skip`` still compares the first task that did not fit with all it took.
* ``hidden`` deadlines: a policy that asks for a deadline gets ``HiddenDeadline`` raised.
* Utilisation is the mean load over all slots 1..T; a job is never served if y <= 1e-9 and expired
  if it ends with y < Y - 1e-9.

Where an optimum is not unique (linear utilities, ``local-optimal``), only values can be compared:
``slot_gaps`` measures a foreign allocation slot by slot along its own trajectory.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, brentq, linprog, milp

TOLERANCE = 1e-9
"""A load of at most 1 + TOLERANCE fits; a job with y >= Y - TOLERANCE is complete."""
GAP = 1e-9
"""Relative duality gap that every solution of a concave problem here must reach."""
PRICE_TOLERANCE = 1e-12
"""Slack of the stopping rule of primal-dual, in logarithms."""

LINEAR, POWER, LOG = "linear", "power", "log"
KINDS = (LINEAR, POWER, LOG)

Allocation = list[float]
"""Tasks of each job in one slot (whole numbers in the discrete model)."""


class HiddenDeadline(Exception):
    """A policy asked for a deadline that the instance hides."""


class Uncertified(Exception):
    """A solver ended without a proof that its answer is optimal."""


class Job(NamedTuple):
    """One job: slots arrival..deadline, at most X tasks per slot, Y in all, demand R per task."""

    arrival: float
    deadline: float
    X: float
    Y: float
    demand: tuple[float, ...]
    v: float = 1.0
    kind: str = LINEAR
    alpha: float = 0.5


class Instance(NamedTuple):
    """Jobs on pooled resources. Whole tasks only if ``discrete``."""

    jobs: tuple[Job, ...]
    capacity: tuple[float, ...]
    discrete: bool = False
    hidden: bool = False


class State(NamedTuple):
    """What a policy sees at the start of a slot: y is the service before the slot."""

    instance: Instance
    slot: int
    y: tuple[float, ...]


class Outcome(NamedTuple):
    """A whole run. The lists have one entry per slot played; y and value are at the end."""

    allocation: list[Allocation]
    reward: list[float]
    y: tuple[float, ...]
    value: float


class Metrics(NamedTuple):
    value: float
    utilisation: tuple[float, ...]
    never_served: int
    expired: int


Policy = Callable[[State], Allocation]


# --------------------------------------------------------------------------------------------
# Utilities
# --------------------------------------------------------------------------------------------


def utility(job: Job, y: float) -> float:
    """f(y)."""
    if job.kind == LINEAR:
        return job.v * y
    if job.kind == POWER:
        return job.v * y**job.alpha
    if job.kind == LOG:
        return job.v * math.log1p(y)
    raise ValueError(f"unknown utility {job.kind!r}")


def slope(job: Job, y: float) -> float:
    """f'(y); infinite for a power at 0."""
    if job.kind == LINEAR:
        return job.v
    if job.kind == POWER:
        return math.inf if y <= 0 else job.v * job.alpha * y ** (job.alpha - 1)
    return job.v / (1 + y)


def level_at(job: Job, price: float) -> float:
    """Where f' falls to the price: the y that a buyer at this price stops at.

    A linear job stops at 0 or never; at price = v it does not care, and 0 is answered.
    """
    if price <= 0:
        return math.inf
    if job.kind == LINEAR:
        return math.inf if price < job.v else 0.0
    if job.kind == POWER:
        return (job.v * job.alpha / price) ** (1 / (1 - job.alpha))
    return job.v / price - 1


def task_value(job: Job, k: int) -> float:
    """Value of task k = 1, 2, ..."""
    if job.kind == LINEAR:
        return job.v
    return utility(job, k) - utility(job, k - 1)


def objective(instance: Instance, y: Sequence[float]) -> float:
    """Total value when job j ends with y[j] tasks."""
    return sum(utility(job, served) for job, served in zip(instance.jobs, y, strict=True))


# --------------------------------------------------------------------------------------------
# Slot rules
# --------------------------------------------------------------------------------------------


def horizon(instance: Instance) -> int:
    """T, the last slot."""
    return max(math.floor(job.deadline) for job in instance.jobs)


def share(instance: Instance, j: int, i: int) -> float:
    """r_ij, the share of resource i that a task of job j takes."""
    return instance.jobs[j].demand[i] / instance.capacity[i]


def shares(instance: Instance, j: int) -> list[float]:
    return [share(instance, j, i) for i in range(len(instance.capacity))]


def load(instance: Instance, x: Sequence[float]) -> list[float]:
    """Load of each resource under an allocation."""
    totals = []
    for i in range(len(instance.capacity)):
        total = 0.0
        for j, amount in enumerate(x):
            total += share(instance, j, i) * amount
        totals.append(total)
    return totals


def fits(instance: Instance, x: Sequence[float]) -> bool:
    return all(total <= 1 + TOLERANCE for total in load(instance, x))


def active(instance: Instance, slot: int, y: Sequence[float]) -> list[int]:
    """Ids of the jobs that can be served in a slot."""
    return [
        j
        for j, job in enumerate(instance.jobs)
        if job.arrival <= slot <= job.deadline and y[j] < job.Y - TOLERANCE
    ]


def slot_cap(state: State, j: int) -> float:
    """u, the most tasks that job j may get in this slot (0 when it is not active)."""
    job = state.instance.jobs[j]
    if j not in active(state.instance, state.slot, state.y):
        return 0.0
    return min(job.X, job.Y - state.y[j])


def window(instance: Instance, j: int) -> list[int]:
    """The slots in which job j may be served."""
    job = instance.jobs[j]
    return [t for t in range(1, horizon(instance) + 1) if job.arrival <= t <= job.deadline]


def deadline(state: State, j: int) -> float:
    if state.instance.hidden:
        raise HiddenDeadline(f"deadline of job {j}")
    return state.instance.jobs[j].deadline


def gain(state: State, x: Sequence[float]) -> float:
    """Reward of a slot."""
    return sum(
        utility(job, state.y[j] + x[j]) - utility(job, state.y[j])
        for j, job in enumerate(state.instance.jobs)
    )


def check(state: State, x: Sequence[float]) -> None:
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


def simulate(instance: Instance, policy: str | Policy) -> Outcome:
    """Play slots 1..T; stop early when every job has arrived and none is active."""
    choose = policy if callable(policy) else policies(instance)[policy]
    y = tuple(0.0 for _ in instance.jobs)
    allocations: list[Allocation] = []
    rewards: list[float] = []
    for slot in range(1, horizon(instance) + 1):
        arrived = all(job.arrival <= slot for job in instance.jobs)
        if arrived and not active(instance, slot, y):
            break
        state = State(instance, slot, y)
        x = choose(state)
        check(state, x)
        allocations.append(x)
        rewards.append(gain(state, x))
        y = tuple(before + amount for before, amount in zip(y, x, strict=True))
    return Outcome(allocations, rewards, y, objective(instance, y))


def _rows(instance: Instance, allocations: Sequence[Sequence[float]]) -> list[Allocation]:
    """The allocation padded with empty slots up to T."""
    rows = [list(row) for row in allocations]
    return rows + [[0.0] * len(instance.jobs) for _ in range(horizon(instance) - len(rows))]


def replay(instance: Instance, allocations: Sequence[Sequence[float]]) -> Outcome:
    """Check and score a given allocation, one row per slot from slot 1."""
    rows = _rows(instance, allocations)
    outcome = simulate(instance, lambda state: rows[state.slot - 1])
    if any(amount != 0 for row in rows[len(outcome.allocation) :] for amount in row):
        raise ValueError(f"service after the last of {len(outcome.allocation)} slots")
    return outcome


def slot_gaps(instance: Instance, allocations: Sequence[Sequence[float]]) -> list[float]:
    """How much each slot's value lacks to the best of that slot, along the given trajectory."""
    best: Policy = local_optimal if instance.discrete else concave
    rows = _rows(instance, allocations)
    gaps: list[float] = []

    def follow(state: State) -> Allocation:
        x = rows[state.slot - 1]
        gaps.append(gain(state, best(state)) - gain(state, x))
        return x

    simulate(instance, follow)
    return gaps


def metrics(instance: Instance, outcome: Outcome) -> Metrics:
    last = horizon(instance)
    used = [0.0] * len(instance.capacity)
    for x in outcome.allocation:
        for i, total in enumerate(load(instance, x)):
            used[i] += total / last
    return Metrics(
        value=objective(instance, outcome.y),
        utilisation=tuple(used),
        never_served=sum(y <= TOLERANCE for y in outcome.y),
        expired=sum(y < job.Y - TOLERANCE for job, y in zip(instance.jobs, outcome.y, strict=True)),
    )


# --------------------------------------------------------------------------------------------
# Concave programmes: cutting planes, with a Lagrangian certificate
# --------------------------------------------------------------------------------------------


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
            most = min(job.X, job.Y - y[j] - amount)
            more = min(max(level_at(job, cost) - y[j] - amount, 0.0), most)
            amount += more
            paid += cost * more
        total += utility(job, y[j] + amount) - utility(job, y[j]) - paid
        bought.append(amount)
    return total, bought


def maximise(
    instance: Instance, y: Sequence[float], windows: Sequence[Sequence[int]], gap: float = GAP
) -> Solution:
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
    rest = [max(job.Y - y[j], 0.0) for j, job in enumerate(jobs)]

    rows, limits = [], []
    for t in slots:  # first the capacities, whose multipliers are the prices
        for i in range(m):
            row = np.zeros(width)
            for column, (j, s) in enumerate(columns):
                if s == t:
                    row[column] = share(instance, j, i)
            rows.append(row)
            limits.append(1.0)
    for j in range(len(jobs)):
        row = np.zeros(width)
        row[[c for c, (k, _) in enumerate(columns) if k == j]] = 1.0
        rows.append(row)
        limits.append(rest[j])
    bounds = [(0.0, min(jobs[j].X, rest[j])) for j, _ in columns]
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
        if upper - best <= gap * max(1.0, upper):
            return Solution(best_x, best, upper)
        for j in range(len(jobs)):
            cut(j, amounts[j])
            cut(j, bought[j])
    raise Uncertified(f"value {best}, bound {upper}")


# --------------------------------------------------------------------------------------------
# Continuous policies
# --------------------------------------------------------------------------------------------


def buy(state: State, j: int, price: float) -> float:
    """What job j takes in this slot at a price per task."""
    return min(max(level_at(state.instance.jobs[j], price) - state.y[j], 0.0), slot_cap(state, j))


def buy_all(state: State, prices: Sequence[float]) -> Allocation:
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


def concave(state: State) -> Allocation:
    """Algorithm 1: the allocation of the largest gain in this slot, certified by its duality gap.

    Strictly concave utilities: the unique optimum, from the prices. With linear jobs among the active
    ones the optimum need not be unique, and cutting planes give one of the best.
    """
    ids = active(state.instance, state.slot, state.y)
    x = [slot_cap(state, j) for j in range(len(state.y))]
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


def concave_by_cuts(state: State) -> Allocation:
    """The same by cutting planes: slower to converge in x, but for any mix of utilities."""
    ids = active(state.instance, state.slot, state.y)
    windows = [[state.slot] if j in ids else [] for j in range(len(state.y))]
    solution = maximise(state.instance, state.y, windows)
    return [sum(parts.values()) for parts in solution.x]


def _fill(
    state: State, amounts: Callable[[float], Allocation], generous: float, frugal: float
) -> tuple[Allocation, bool]:
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


def s_greedy_continuous(state: State) -> Allocation:
    """Highest marginal value first: lower a common level of f' until a resource is full.

    Linear jobs come at the level of their v, one after another by id.
    """
    jobs = state.instance.jobs
    ids = active(state.instance, state.slot, state.y)
    linear = sorted((j for j in ids if jobs[j].kind == LINEAR), key=lambda j: (-jobs[j].v, j))
    given: dict[int, float] = {}  # what the linear jobs have got

    def amounts(level: float) -> Allocation:
        return [
            given.get(j, 0.0) if j not in ids or jobs[j].kind == LINEAR else buy(state, j, level)
            for j in range(len(jobs))
        ]

    high = 1.0 + max((jobs[j].v for j in linear), default=0.0)
    while any(total > 1.0 for total in load(state.instance, amounts(high))):
        high *= 2
    for j in linear:
        x, full = _fill(state, amounts, jobs[j].v, high)
        if full:
            return x
        high = jobs[j].v
        given[j] = min(slot_cap(state, j), _room(state, x, j))
        if given[j] < slot_cap(state, j):
            return amounts(high)
    return _fill(state, amounts, 0.0, high)[0]


def equal_opp_continuous(state: State) -> Allocation:
    """The same amount for everyone, capped by u, raised until a resource is full."""
    caps = [slot_cap(state, j) for j in range(len(state.y))]
    x, _ = _fill(state, lambda level: [min(cap, level) for cap in caps], max(caps), 0.0)
    return x


def _room(state: State, x: Sequence[float], j: int) -> float:
    """How many tasks of job j the slot still has room for (a real number)."""
    used = load(state.instance, x)
    needs = shares(state.instance, j)
    return min([max(1.0 - u, 0.0) / r for u, r in zip(used, needs, strict=True) if r > 0] + [math.inf])


def in_order(state: State, order: Sequence[int]) -> Allocation:
    """Each job in order takes the most that fits."""
    x = [0.0] * len(state.y)
    for j in order:
        if not state.instance.discrete:
            x[j] = min(slot_cap(state, j), _room(state, x, j))
            continue
        while x[j] < slot_cap(state, j):
            x[j] += 1.0
            if not fits(state.instance, x):
                x[j] -= 1.0
                break
    return x


def edf(state: State) -> Allocation:
    ids = active(state.instance, state.slot, state.y)
    return in_order(state, sorted(ids, key=lambda j: (deadline(state, j), j)))


def fifo(state: State) -> Allocation:
    ids = active(state.instance, state.slot, state.y)
    return in_order(state, sorted(ids, key=lambda j: (state.instance.jobs[j].arrival, j)))


# --------------------------------------------------------------------------------------------
# Discrete policies
# --------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """Task k of job j."""

    value: float
    j: int
    k: int


def candidates(state: State) -> list[Task]:
    """The first min(X, Y - y) unserved tasks of each active job, by job and index."""
    tasks = []
    for j in active(state.instance, state.slot, state.y):
        if max(shares(state.instance, j)) > 1 + TOLERANCE:
            continue
        served = round(state.y[j])
        for k in range(served + 1, served + 1 + round(slot_cap(state, j))):
            tasks.append(Task(task_value(state.instance.jobs[j], k), j, k))
    return tasks


def counts(state: State, tasks: Sequence[Task]) -> Allocation:
    """Tasks as amounts per job. The tasks of a job are served in index order, so only counts matter."""
    x = [0.0] * len(state.y)
    for task in tasks:
        x[task.j] += 1.0
    return x


def _prefix(state: State, order: Sequence[Task], skip: bool = False) -> tuple[list[Task], Task | None]:
    """The tasks up to the first misfit (with skip: all but the misfits), and the first misfit."""
    taken: list[Task] = []
    misfit = None
    for task in order:
        if fits(state.instance, counts(state, [*taken, task])):
            taken.append(task)
            continue
        misfit = misfit or task
        if not skip:
            break
    return taken, misfit


def m_greedy(state: State, skip: bool = False) -> Allocation:
    """Highest value per dominant share first; the first misfit alone if it is worth more."""

    def density(task: Task) -> float:
        dominant = max(shares(state.instance, task.j))
        return math.inf if dominant == 0 else task.value / dominant

    order = sorted(candidates(state), key=lambda s: (-density(s), -s.value, s.j, s.k))
    taken, misfit = _prefix(state, order, skip)
    if misfit is not None and misfit.value > sum(task.value for task in taken):
        taken = [misfit]
    return counts(state, taken)


def m_greedy_skip(state: State) -> Allocation:
    return m_greedy(state, skip=True)


def _log_sum(logs: Sequence[float]) -> float:
    """log(sum(exp(logs)))."""
    top = max(logs)
    if not math.isfinite(top):
        return top
    return top + math.log(sum(math.exp(a - top) for a in logs))


def bound_b(state: State) -> float:
    """B = 1 / the largest share among the candidates (infinite when they need nothing)."""
    largest = max([max(shares(state.instance, s.j)) for s in candidates(state)], default=0.0)
    return 1 / largest if largest > 0 else math.inf


def primal_dual(state: State) -> Allocation:
    """Algorithm 2 with multiplicative prices, kept as logarithms.

    The stopping rule keeps the slot within its capacity; ``simulate`` checks that it does.
    """
    m = len(state.instance.capacity)
    left = candidates(state)
    needs = {s.j: shares(state.instance, s.j) for s in left}
    largest = [max([r[i] for r in needs.values()], default=0.0) for i in range(m)]
    limit = bound_b(state) - 1 + math.log(m)  # log(e^(B-1) m)
    log_price = [0.0] * m
    taken: list[Task] = []

    def log_ratio(task: Task) -> float:
        pairs = zip(needs[task.j], log_price, strict=True)
        costs = [math.log(r) + b for r, b in pairs if r > 0]
        return math.log(task.value) - _log_sum(costs) if costs else math.inf

    while left and _log_sum(log_price) <= limit + PRICE_TOLERANCE:
        task = min(left, key=lambda s: (-log_ratio(s), -s.value, s.j, s.k))
        left.remove(task)
        taken.append(task)
        for i, r in enumerate(needs[task.j]):
            if r > 0:
                log_price[i] += limit * r / (1 - largest[i]) if largest[i] < 1 else math.inf
    return counts(state, taken)


def feasible_counts(state: State) -> list[Allocation]:
    """Every whole allocation of this slot that fits and to which no further task can be added."""
    n = len(state.y)
    caps = [0] * n
    for task in candidates(state):
        caps[task.j] += 1
    found: list[Allocation] = []

    def can_grow(x: Allocation) -> bool:
        for j in range(n):
            if x[j] < caps[j]:
                more = list(x)
                more[j] += 1.0
                if fits(state.instance, more):
                    return True
        return False

    def extend(j: int, x: Allocation) -> None:
        if j == n:
            if not can_grow(x):
                found.append(list(x))
            return
        for amount in range(caps[j] + 1):
            more = list(x)
            more[j] = float(amount)
            if not fits(state.instance, more):
                break
            extend(j + 1, more)

    extend(0, [0.0] * n)
    return found


def local_optimal(state: State) -> Allocation:
    """The best whole allocation of this slot, by enumeration (one of them if there are several)."""
    return max(feasible_counts(state), key=lambda x: gain(state, x))


def local_optimum_milp(state: State) -> float:
    """The value of ``local_optimal`` by integer programming, for slots too large to enumerate."""
    tasks = candidates(state)
    if not tasks:
        return 0.0
    matrix = np.array([shares(state.instance, s.j) for s in tasks]).T
    result = milp(
        [-s.value for s in tasks],
        constraints=LinearConstraint(matrix, ub=np.ones(len(matrix))),
        integrality=np.ones(len(tasks)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    if result.status != 0:
        raise Uncertified(result.message)
    return -float(result.fun)


def deadline_aware(state: State) -> Allocation:
    """Algorithm 3: some of the most valuable tasks, then nearly as valuable ones that are urgent.

    One resource, unit demand, whole capacity C; p = ceil(C / 2) and rho = C / (2 C - p), which is
    C / 2 and 2 / 3 for even C.
    """
    capacity = state.instance.capacity
    if len(capacity) != 1 or capacity[0] != round(capacity[0]):
        raise ValueError("deadline-aware needs one resource of whole capacity")
    if any(job.demand != (1.0,) for job in state.instance.jobs):
        raise ValueError("deadline-aware needs unit demand")
    c = round(capacity[0])
    p = math.ceil(c / 2)
    rho = c / (2 * c - p)
    order = sorted(candidates(state), key=lambda s: (-s.value, s.j, s.k))
    if len(order) <= c:
        return counts(state, order)
    least = rho * (sum(s.value for s in order[:p]) / p)
    if order[c].value <= least:
        return counts(state, order[:c])
    near = [s for s in order[p:] if s.value >= least]
    near.sort(key=lambda s: (deadline(state, s.j), -s.value, s.j, s.k))
    return counts(state, order[:p] + near[: c - p])


def s_greedy_discrete(state: State, skip: bool = False) -> Allocation:
    """Most valuable tasks first, up to the first misfit."""
    order = sorted(candidates(state), key=lambda s: (-s.value, s.j, s.k))
    return counts(state, _prefix(state, order, skip)[0])


def s_greedy_skip(state: State) -> Allocation:
    return s_greedy_discrete(state, skip=True)


def equal_opp_discrete(state: State, skip: bool = False) -> Allocation:
    """One task per job and round, within a round by (y, id), up to the first misfit."""
    order = sorted(candidates(state), key=lambda s: (s.k - state.y[s.j], state.y[s.j], s.j))
    return counts(state, _prefix(state, order, skip)[0])


def equal_opp_skip(state: State) -> Allocation:
    return equal_opp_discrete(state, skip=True)


CONTINUOUS: dict[str, Policy] = {
    "concave": concave,
    "s-greedy": s_greedy_continuous,
    "equal-opp": equal_opp_continuous,
    "edf": edf,
    "fifo": fifo,
}
DISCRETE: dict[str, Policy] = {
    "m-greedy": m_greedy,
    "m-greedy-skip": m_greedy_skip,
    "primal-dual": primal_dual,
    "local-optimal": local_optimal,
    "deadline-aware": deadline_aware,
    "s-greedy": s_greedy_discrete,
    "s-greedy-skip": s_greedy_skip,
    "equal-opp": equal_opp_discrete,
    "equal-opp-skip": equal_opp_skip,
    "edf": edf,
    "fifo": fifo,
}
DEADLINE_POLICIES = ("deadline-aware", "edf")


def policies(instance: Instance) -> dict[str, Policy]:
    return DISCRETE if instance.discrete else CONTINUOUS


# --------------------------------------------------------------------------------------------
# Repair of an action that does not fit
# --------------------------------------------------------------------------------------------


def repair(state: State, x: Sequence[float]) -> Allocation:
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
        lasts = [
            Task(task_value(state.instance.jobs[j], round(state.y[j] + x[j])), j, round(state.y[j] + x[j]))
            for j in range(len(x))
            if x[j] > 0 and max(shares(state.instance, j)) > 0
        ]
        x[min(lasts, key=lambda s: (s.value / max(shares(state.instance, s.j)), s.value, -s.j)).j] -= 1.0
    return x


# --------------------------------------------------------------------------------------------
# Offline optimum and bounds
# --------------------------------------------------------------------------------------------


def offline_continuous(instance: Instance, gap: float = GAP) -> Solution:
    """The offline optimum of the continuous model; an upper bound in the discrete one."""
    zero = [0.0] * len(instance.jobs)
    return maximise(instance, zero, [window(instance, j) for j in range(len(zero))], gap)


def _piecewise(instance: Instance, whole: bool) -> float:
    """The programme over x_jt and one 0..1 variable per task, relaxed or with whole x."""
    jobs, m = instance.jobs, len(instance.capacity)
    columns = [(j, t) for j in range(len(jobs)) for t in window(instance, j)]
    tasks = [(j, k) for j, job in enumerate(jobs) for k in range(1, round(job.Y) + 1)]
    width = len(columns) + len(tasks)
    rows, lows, highs = [], [], []
    for t in range(1, horizon(instance) + 1):
        for i in range(m):
            row = np.zeros(width)
            for column, (j, s) in enumerate(columns):
                row[column] = share(instance, j, i) * (s == t)
            rows.append(row)
            lows.append(-np.inf)
            highs.append(1.0)
    for j in range(len(jobs)):  # the pieces of a job are paid for by its service
        row = np.zeros(width)
        row[[c for c, (k, _) in enumerate(columns) if k == j]] = -1.0
        row[[len(columns) + c for c, (k, _) in enumerate(tasks) if k == j]] = 1.0
        rows.append(row)
        lows.append(-np.inf)
        highs.append(0.0)
    caps = [min(jobs[j].X, jobs[j].Y) for j, _ in columns] + [1.0] * len(tasks)
    result = milp(
        [0.0] * len(columns) + [-task_value(jobs[j], k) for j, k in tasks],
        constraints=LinearConstraint(np.array(rows), lows, highs),
        integrality=[int(whole)] * len(columns) + [0] * len(tasks),
        bounds=Bounds(np.zeros(width), np.array(caps)),
        options={"mip_rel_gap": 0.0},
    )
    if result.status != 0:
        raise Uncertified(result.message)
    return -float(result.fun)


def discrete_bound(instance: Instance) -> float:
    """Upper bound of the discrete model: LP with one piece per task."""
    return _piecewise(instance, whole=False)


def offline_milp(instance: Instance) -> float:
    """Offline optimum of the discrete model by integer programming."""
    return _piecewise(instance, whole=True)


def offline_discrete(instance: Instance) -> float:
    """Offline optimum of the discrete model by recursion over the slots (tiny instances only).

    Only allocations that leave no room are tried: a task served early is never worth less.
    """
    known: dict[tuple[int, tuple[float, ...]], float] = {}

    def best(slot: int, y: tuple[float, ...]) -> float:
        if slot > horizon(instance):
            return 0.0
        if (slot, y) not in known:
            state = State(instance, slot, y)
            known[slot, y] = max(
                gain(state, x) + best(slot + 1, tuple(a + b for a, b in zip(y, x, strict=True)))
                for x in feasible_counts(state)
            )
        return known[slot, y]

    return best(1, tuple(0.0 for _ in instance.jobs))


def offline_unit(instance: Instance) -> float:
    """Offline optimum for one resource and unit demand: greedy over a matroid.

    The sets of tasks that can be served together are those that a flow job -> slot (at most X) ->
    sink (at most C) can route, so taking tasks by value whenever an augmenting path exists is optimal.
    """
    assert len(instance.capacity) == 1 and all(job.demand == (1.0,) for job in instance.jobs)
    jobs = instance.jobs
    c = round(instance.capacity[0])
    served = {(j, t): 0 for j in range(len(jobs)) for t in window(instance, j)}

    def augment(j: int, seen: set[int]) -> bool:
        """Route one more task of job j, moving other tasks to other slots if needed."""
        for t in window(instance, j):
            if t in seen or served[j, t] >= round(jobs[j].X):
                continue
            seen.add(t)
            if sum(n for (_, s), n in served.items() if s == t) < c:
                served[j, t] += 1
                return True
            for other in range(len(jobs)):
                if served.get((other, t), 0) > 0 and augment(other, seen):
                    served[other, t] -= 1
                    served[j, t] += 1
                    return True
        return False

    total = 0.0
    tasks = [Task(task_value(job, k), j, k) for j, job in enumerate(jobs) for k in range(1, round(job.Y) + 1)]
    for task in sorted(tasks, key=lambda s: (-s.value, s.j, s.k)):
        if augment(task.j, set()):
            total += task.value
    return total


def m_greedy_factor(b: float, m: int) -> float:
    """A slot's optimum is at most this many times what m-greedy gets; b is B."""
    return m * (2.0 if b <= 1 else min(2.0, 1 / (1 - 1 / b)))


def primal_dual_factor(b: float, m: int) -> float:
    """The same for primal-dual."""
    return math.inf if b <= 1 else math.e / (1 - 1 / b) * m ** (1 / (b - 1))


def deadline_aware_factor(c: int) -> float:
    """The offline optimum is at most this many times what deadline-aware gets."""
    return 1.8 if c % 2 == 0 else 1 + 4 * c * c / (5 * c * c - 1)


# --------------------------------------------------------------------------------------------
# Random instances
# --------------------------------------------------------------------------------------------


def random_instance(
    rng: random.Random,
    *,
    discrete: bool = False,
    max_jobs: int = 6,
    resources: int = 2,
    max_slots: int = 5,
    kinds: Sequence[str] = KINDS,
    adversarial: bool = False,
    common_deadline: bool = False,
    parallelism: bool = True,
    unit: int | None = None,
    max_share: float = 1.0,
) -> Instance:
    """A small instance.

    adversarial: ties, zero demands, demands above a capacity, fractional arrivals and deadlines.
    parallelism=False: X >= Y. unit: one resource of that capacity and unit demand.
    """
    capacity = (
        tuple(rng.choice([1.0, 2.0, 10.0]) for _ in range(resources)) if unit is None else (float(unit),)
    )
    last = rng.randint(1, max_slots)
    jobs = []
    for _ in range(rng.randint(1, max_jobs)):
        arrival = float(rng.randint(1, last))
        until = float(last if common_deadline else rng.randint(int(arrival), last))
        if adversarial and not common_deadline:
            arrival -= rng.choice([0.0, 0.0, 0.5])
            until += rng.choice([0.0, 0.0, 0.5])
        if discrete:
            tasks = float(rng.randint(1, 4 if unit is None else 2 * unit + 2))
            parallel = float(rng.randint(1, 3 if unit is None else unit + 1))
        else:
            tasks = rng.choice([0.5, 1.0, 2.0]) if adversarial else rng.uniform(0.2, 4.0)
            parallel = rng.choice([0.5, 1.0]) if adversarial else rng.uniform(0.1, 2.0)
        if not parallelism:
            parallel = tasks + rng.choice([0.0, 1.0])
        if unit is not None:
            demand: tuple[float, ...] = (1.0,)
        elif adversarial:
            part = [rng.choice([0.0, 0.1, 0.25, 0.5, 1.0, 1.5]) for _ in capacity]
            demand = tuple(c * s * min(1.0, max_share) for c, s in zip(capacity, part, strict=True))
        else:
            demand = tuple(c * max_share * rng.uniform(0.05, 1.0) for c in capacity)
        v = rng.choice([1.0, 2.0, 3.0]) if adversarial else rng.uniform(1.0, 5.0)
        alpha = rng.choice([0.25, 0.5, 0.75])
        jobs.append(Job(arrival, until, parallel, tasks, demand, v, rng.choice(kinds), alpha))
    return Instance(tuple(jobs), capacity, discrete)
