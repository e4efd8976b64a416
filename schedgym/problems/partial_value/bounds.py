"""Upper bounds on the total value.

The offline programme (zheng2016, programme 1) maximises $sum_j f_j(sum_t x_jt)$, where x_jt tasks of job j
are served in slot t, with $x_jt <= X_j$, $sum_t x_jt <= Y_j$ and no resource overloaded. The set of active
jobs only changes at an arrival or after a deadline. In the slots between, service can be spread evenly, as f
is concave and the constraints are convex, so that the programme has one variable for each job and interval.
Its upper limit is the least of X, Y and the number of tasks that fit on empty resources.

Every bound here is a Lagrangian bound. For any prices b_it >= 0 of resource i in interval t, which has n_t
slots, the value of a schedule is at most $sum_it b_it n_t (1 + 10^(-9)) + sum_j max_y (f_j(y) - K_j(y))$, as
no schedule uses more of a resource than its slots have. $K_j(y)$ is the least cost of y tasks of job j. Each
maximum is known in closed form: a job takes its cheapest slots first, until f' falls to the price. As the
bound holds for all prices, it is valid even if a solver did not converge. 1e-9 is the tolerance of loads; an
allowance for rounding is added.
"""

from __future__ import annotations

import heapq
import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, vstack

from schedgym.core.arrays import Flags, Floats, Integers
from schedgym.core.jit import helper, kernel
from schedgym.core.workload import Workload
from schedgym.problems.partial_value.metrics import values, worth
from schedgym.problems.partial_value.problem import PartialValueParameters
from schedgym.problems.partial_value.rules import TOLERANCE
from schedgym.problems.partial_value.workload import Jobs, check_model, tables
from schedgym.solvers.dual_prices import LINEAR, LOG

MOST_LOAD = 1.0 + TOLERANCE + 1e-12  # of a slot, with an allowance for rounding
ROUNDING = 1e-12  # share of all sums by which rounding may have lowered a bound
GAP = 1e-7  # relative gap at which prices are good enough
COARSE = 8  # pieces of a utility in the first linear program
FINE = 8  # pieces into which those around its solution are cut for the next program
OUTSIDE = 7  # points on either side of these pieces
LONGER = 4.0  # ratio of the distances of successive points outside
MOST_VARIABLES = 2 * 10**5  # of all linear programs for a bound (five seconds or so)
TOLERANCES = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


def upper_bound(workload: Workload, parameters: PartialValueParameters | None = None) -> float:
    """Return a certified upper bound on the total value of any schedule, in the model of ``parameters``.

    In the discrete model, if all tasks have the same demand, the bound is the optimum itself: the sets of
    tasks that can be served together are the independent sets of a matroid (those that a flow from jobs to
    slots can cover), so the greedy algorithm that takes tasks by value, each if there is an augmenting path,
    is optimal; the tasks of a job come in order, as their values do not increase.

    Else it is Lagrangian, with the prices of a linear program by HiGHS: utilities are replaced by chords
    between a few points (in the discrete model whole numbers, where the chords are exact); the points are
    moved around the solution until the gap is below ``GAP``. The limit is the optimum of the continuous
    model, or of the discrete one without the condition that x is whole. For large workloads the prices come
    from a sample of the jobs or from longer intervals, and the gap is wider.

    Args:
        workload: the instance.
        parameters: of the environment; None: the continuous model.

    Raises:
        InvalidWorkload: in the discrete model, when tasks or parallelism are not whole.
        RuntimeError: when HiGHS fails.
    """
    model = "continuous" if parameters is None else parameters.model
    check_model(workload, model)
    needs = _needs(tables(workload), model == "discrete")
    if len(needs.job) == 0:
        return 0.0
    if needs.whole and _alike(needs):
        return _matroid(needs, _grid(needs, _events(needs)))
    return _priced(needs)


# The programme --------------------------------------------------------------------------------


class _Needs(NamedTuple):
    """The N jobs that can be served at all, with m resources."""

    job: Integers  # [N] number in the workload
    first: Integers  # [N] first slot
    last: Integers  # [N] last slot
    cap: Floats  # [N] most tasks per slot
    most: Floats  # [N] most tasks in all
    share: Floats  # [N, m]
    utility: Integers  # [N]
    value: Floats  # [N]
    exponent: Floats  # [N]
    whole: bool  # True in the discrete model
    load_limit: float  # most load of a slot: 1, or less for a sample of the jobs


def _needs(own: Jobs, whole: bool) -> _Needs:
    first = np.maximum(np.ceil(own.arrival), 1.0).astype(np.int64)
    last = np.floor(own.deadline).astype(np.int64)
    with np.errstate(divide="ignore"):
        fits = MOST_LOAD / own.share.max(axis=1)
    cap = np.minimum(np.minimum(own.parallelism, own.tasks), np.floor(fits) if whole else fits)
    most = np.minimum(own.tasks, cap * np.maximum(last - first + 1, 0))
    kept = np.flatnonzero(most > 0.0)
    return _Needs(
        job=kept,
        first=first[kept],
        last=last[kept],
        cap=cap[kept],
        most=most[kept],
        share=own.share[kept],
        utility=own.utility[kept],
        value=own.value[kept],
        exponent=own.exponent[kept],
        whole=whole,
        load_limit=1.0,
    )


def _alike(needs: _Needs) -> bool:
    """Return True if all tasks have the same demand."""
    return bool((needs.share == needs.share[0]).all())


def _worth(needs: _Needs, served: Floats, job: Integers | None = None) -> Floats:
    """Return the value of each job (or of the jobs with these numbers) with ``served`` tasks."""
    chosen = slice(None) if job is None else job
    return values(needs.utility[chosen], needs.value[chosen], needs.exponent[chosen], served)


class _Grid(NamedTuple):
    """Intervals of slots, and the pairs of a job and an interval ("columns"); K intervals, c columns."""

    slots: Floats  # [K]
    start: Integers  # [N + 1] first column of a job
    job: Integers  # [c]
    interval: Integers  # [c]
    cap: Floats  # [c] most tasks of the job in the interval


def _events(needs: _Needs) -> Integers:
    """Return the edges of the intervals in which the set of jobs that can be served is constant."""
    return np.unique(np.concatenate([needs.first, needs.last + 1]))


def _grid(needs: _Needs, edge: Integers) -> _Grid:
    """Return the grid of the intervals edge[k] .. edge[k + 1] - 1; [K + 1]."""
    begin = np.searchsorted(edge, needs.first, side="right") - 1
    count = np.searchsorted(edge, needs.last, side="right") - begin
    start = np.concatenate([[0], np.cumsum(count)])
    job = np.repeat(np.arange(len(count)), count)
    interval = np.arange(start[-1]) - start[job] + begin[job]
    until = np.minimum(edge[interval + 1], needs.last[job] + 1)
    length = until - np.maximum(edge[interval], needs.first[job])
    return _Grid(
        slots=np.diff(edge).astype(np.float64),
        start=start,
        job=job,
        interval=interval,
        cap=np.minimum(needs.cap[job] * length, needs.most[job]),
    )


def _certified(needs: _Needs, grid: _Grid, price: Floats) -> float:
    """Return the Lagrangian bound of prices [K, m] of the resources in a slot of each interval."""
    price = np.where(np.isfinite(price), np.maximum(price, 0.0), 0.0)
    total, scale = _dual(needs, grid, price, grid.slots * (needs.load_limit * MOST_LOAD))
    return min(float(total + ROUNDING * scale), math.fsum(_worth(needs, needs.most)) * (1.0 + ROUNDING))


# Linear programs ------------------------------------------------------------------------------


def _priced(needs: _Needs) -> float:
    """Return the best bound of a sequence of linear programs.

    If there are too many jobs, the programs have a sample of them and the same part of the capacity; their
    prices are valid for all jobs.
    """
    edge, sample = _events(needs), needs
    every = -(-2 * COARSE * len(needs.job) // MOST_VARIABLES)
    if every > 1:
        single = ("whole", "load_limit")
        own = {name: getattr(needs, name)[::every] for name in _Needs._fields if name not in single}
        sample = needs._replace(**own, load_limit=needs.load_limit / every)
    grid = _grid(sample, edge)
    while len(grid.job) > MOST_VARIABLES // 2 and len(edge) > 2:
        edge = np.append(edge[:-1][::2], edge[-1])
        grid = _grid(sample, edge)
    steps = (np.arange(COARSE + 1) / COARSE) ** 2
    points = _points(sample, sample.most[:, np.newaxis] * steps)
    best, prices = math.inf, np.zeros((len(grid.slots), needs.share.shape[1]))
    gap, stalled, spent = math.inf, 0, 0
    most = len(grid.job) + 2 * (FINE + OUTSIDE) * len(sample.most)
    while True:
        served, price, variables = _program(sample, grid, points)
        bound = _certified(sample, grid, price)
        if bound < best:
            best, prices = bound, price
        total = np.minimum(np.bincount(grid.job, served, len(sample.most)), sample.most)
        value = _worth(sample, total)
        if needs.whole:  # a chord between whole numbers
            low = np.floor(total)
            value = _worth(sample, low)
            value += (total - low) * (_worth(sample, low + 1.0) - value)
        gap, before = best - math.fsum(value), gap
        stalled = stalled + 1 if gap > 0.5 * before else 0
        spent += variables
        if gap <= GAP * best or stalled > 1 or spent + most > MOST_VARIABLES:
            break
        points = _refined(sample, points, total)
    if sample is not needs:
        best = _certified(needs, _grid(needs, edge), prices)
    return best


def _points(needs: _Needs, points: Floats) -> Floats:
    """Return the points between which chords replace utilities, moved to where chords are exact."""
    points = np.clip(points, 0.0, needs.most[:, np.newaxis])
    if needs.whole:
        points = np.rint(points)
    points[:, 0] = 0.0
    points[:, -1] = needs.most
    linear = needs.utility == LINEAR
    points[linear, 1:] = needs.most[linear, np.newaxis]
    return points


def _refined(needs: _Needs, points: Floats, total: Floats) -> Floats:
    """Return new points around a solution: pieces that it touches are cut, those far away become longer."""
    at, most = total[:, np.newaxis], needs.most
    near = 1e-9 * most[:, np.newaxis]
    below = np.where(points < at - near, points, 0.0).max(axis=1)
    above = np.where(points > at + near, points, most[:, np.newaxis]).min(axis=1)
    width = np.maximum(total - below, above - total)
    outside = LONGER ** np.arange(OUTSIDE)
    steps = np.concatenate([[-1.0], -outside[:0:-1], np.arange(-FINE, FINE + 1) / FINE, outside[1:], [1.0]])
    return _points(needs, at + width[:, np.newaxis] * steps)


def _program(needs: _Needs, grid: _Grid, points: Floats) -> tuple[Floats, Floats, int]:
    """Solve the programme with utilities replaced by chords between ``points`` [N, > 1], ascending.

    Returns:
        service of each column [c], prices of the resources in a slot of each interval [K, m], and the number
        of variables.
    """
    count, columns = len(needs.most), len(grid.job)
    low, high = points[:, :-1].ravel(), points[:, 1:].ravel()
    owner = np.repeat(np.arange(count), points.shape[1] - 1)
    kept = high > low
    low, high, owner = low[kept], high[kept], owner[kept]
    slope = (_worth(needs, high, owner) - _worth(needs, low, owner)) / (high - low)
    # units: service in shares of a column's cap, pieces in shares of ``most``, values in shares of the mean
    scale = math.fsum(_worth(needs, needs.most)) / count
    loads = _loads(needs, grid)
    supply = _in_rows(grid.job, grid.cap / needs.most[grid.job], count)
    demand = _in_rows(owner, np.ones(len(owner)), count)
    solved = linprog(
        np.concatenate([np.zeros(columns), -slope * needs.most[owner] / scale]),
        A_ub=hstack([loads, csr_array((loads.shape[0], len(owner)))], format="csc"),
        b_ub=np.full(loads.shape[0], needs.load_limit),
        A_eq=hstack([-supply, demand], format="csc"),
        b_eq=np.zeros(count),
        bounds=np.column_stack(
            [np.zeros(columns + len(owner)), np.append(np.ones(columns), (high - low) / needs.most[owner])]
        ),
        method="highs-ds",
        options=TOLERANCES,
    )
    if solved.status != 0:
        raise RuntimeError(f"HiGHS: {solved.message}")
    price = -solved.ineqlin.marginals.reshape(-1, len(grid.slots)).T * scale / grid.slots[:, np.newaxis]
    return solved.x[:columns] * grid.cap, price, columns + len(owner)


def _loads(needs: _Needs, grid: _Grid) -> Any:
    """Return the mean load of a slot by a column at its cap: sparse, row = resource * K + interval."""
    loads = (share * grid.cap / grid.slots[grid.interval] for share in needs.share[grid.job].T)
    return vstack([_in_rows(grid.interval, load, len(grid.slots)) for load in loads], format="csr")


def _in_rows(row: Integers, amount: Floats, rows: int) -> Any:
    """Return the sparse matrix [rows, columns] with one entry per column; ``row``, ``amount``: [columns]."""
    return csr_array((amount, (row, np.arange(len(row)))), shape=(rows, len(row)))


# The discrete model ---------------------------------------------------------------------------


def _matroid(needs: _Needs, grid: _Grid) -> float:
    """Return the optimum if all demands are equal, with an allowance for rounding."""
    largest = needs.share[0].max()
    fitting = math.floor(MOST_LOAD / largest) if largest > 0.0 else needs.most.sum()
    flow, served = np.zeros(len(grid.job)), np.zeros(len(needs.most))
    order = np.argsort(grid.interval, kind="stable")
    begin = np.searchsorted(grid.interval[order], np.arange(len(grid.slots) + 1))
    _greedy(needs, grid, order, begin, grid.slots * fitting, flow, served)
    return math.fsum(_worth(needs, served)) * (1.0 + ROUNDING)


# Kernels --------------------------------------------------------------------------------------


@helper
def _worth_of(needs: _Needs, j: int, served: float) -> float:
    """Return the value of job j with ``served`` tasks."""
    return worth(needs.utility[j], needs.value[j], needs.exponent[j], served)


@helper
def _bought(needs: _Needs, j: int, served: float, step: float, cost: float) -> float:
    """Return how many of ``step`` further tasks after ``served`` job j buys at a cost > 0 per task."""
    value = needs.value[j]
    exponent = needs.exponent[j]
    if needs.utility[j] == LINEAR:
        return step if cost < value else 0.0
    if needs.whole:
        # bisection for the last task that is worth its price
        low = 0.0
        high = step
        while low < high:
            middle = math.ceil(0.5 * (low + high))
            gain = _worth_of(needs, j, served + middle) - _worth_of(needs, j, served + middle - 1.0)
            if gain > cost:
                low = middle
            else:
                high = middle - 1.0
        return low
    if needs.utility[j] == LOG:
        if value < cost * (1.0 + served + step):
            return min(max(value / cost - 1.0 - served, 0.0), step)
    elif value * exponent * (served + step) ** (exponent - 1.0) < cost:
        level = (value * exponent / cost) ** (1.0 / (1.0 - exponent))
        return min(max(level - served, 0.0), step)
    return step


@kernel
def _dual(needs: _Needs, grid: _Grid, price: Floats, load_limit: Floats) -> tuple[float, float]:
    """Return the Lagrangian bound, and the sum of the absolute values of its terms.

    Args:
        needs: of the jobs.
        grid: intervals and columns.
        price: >= 0 [K, m].
        load_limit: most load of an interval, summed over its slots [K].
    """
    total = 0.0
    scale = 0.0
    for k in range(price.shape[0]):
        for r in range(price.shape[1]):
            total += price[k, r] * load_limit[k]
    scale += total
    for j in range(grid.start.shape[0] - 1):
        first = grid.start[j]
        cost = np.zeros(grid.start[j + 1] - first)
        for c in range(cost.shape[0]):
            for r in range(price.shape[1]):
                cost[c] += price[grid.interval[first + c], r] * needs.share[j, r]
        served = 0.0
        paid = 0.0
        for c in np.argsort(cost):  # the cheapest slots first
            step = min(grid.cap[first + c], needs.most[j] - served)
            if step <= 0.0:
                break
            more = step
            if cost[c] > 0.0:
                more = _bought(needs, j, served, step, cost[c])
            served += more
            paid += cost[c] * more
            if more < step:
                break
        gain = _worth_of(needs, j, served)
        total += gain - paid
        scale += gain + paid
    return total, scale


class _Search(NamedTuple):
    """Scratch space of numbered searches for augmenting paths; N jobs, K intervals."""

    closed_job: Flags  # [N] no path from here ends in free capacity any more
    closed: Flags  # [K]
    seen_job: Integers  # [N] number of the last search that has seen the job
    seen: Integers  # [K]
    into: Integers  # [K] column by which a search came to an interval,
    out: Integers  # [N] and by which it left one for a job
    queue: Integers  # [N] jobs
    reached: Integers  # [K] intervals


@helper
def _find_capacity(
    grid: _Grid,
    order: Integers,
    begin: Integers,
    capacity_left: Floats,
    flow: Floats,
    search: _Search,
    number: int,
    j: int,
) -> int:
    """Find by breadth-first search the nearest interval with free capacity on a path from job j, else -1.

    If there is none, all jobs and intervals that the search has reached are closed.
    """
    search.seen_job[j] = number
    search.queue[0] = j
    head = 0
    tail = 1
    intervals = 0
    while head < tail:
        a = search.queue[head]
        head += 1
        for c in range(grid.start[a], grid.start[a + 1]):
            k = grid.interval[c]
            if search.closed[k] or search.seen[k] == number or flow[c] >= grid.cap[c]:
                continue
            search.seen[k] = number
            search.into[k] = c
            search.reached[intervals] = k
            intervals += 1
            if capacity_left[k] >= 1.0:
                return k
            for position in range(begin[k], begin[k + 1]):
                d = order[position]
                other = grid.job[d]
                if flow[d] > 0.0 and search.seen_job[other] != number:
                    search.seen_job[other] = number
                    search.out[other] = d
                    search.queue[tail] = other
                    tail += 1
    for i in range(tail):
        search.closed_job[search.queue[i]] = True
    for i in range(intervals):
        search.closed[search.reached[i]] = True
    return -1


@helper
def _carried(grid: _Grid, flow: Floats, search: _Search, j: int, goal: int) -> float:
    """Return how many tasks the path from job j to an interval can carry, regardless of its ends."""
    amount = math.inf
    k = goal
    while True:
        c = search.into[k]
        amount = min(amount, grid.cap[c] - flow[c])
        if grid.job[c] == j:
            return amount
        d = search.out[grid.job[c]]
        amount = min(amount, flow[d])
        k = grid.interval[d]


@helper
def _send(grid: _Grid, flow: Floats, search: _Search, j: int, goal: int, amount: float) -> None:
    """Send tasks along the path from job j to an interval."""
    k = goal
    while True:
        c = search.into[k]
        flow[c] += amount
        if grid.job[c] == j:
            return
        d = search.out[grid.job[c]]
        flow[d] -= amount
        k = grid.interval[d]


@kernel
def _greedy(
    needs: _Needs,
    grid: _Grid,
    order: Integers,
    begin: Integers,
    capacity_left: Floats,
    flow: Floats,
    served: Floats,
) -> None:
    """Serve tasks by value, each if there is an augmenting path (the greedy algorithm of a matroid).

    A path leads from a job to an interval where the job may get more, from an interval to the jobs served
    there, which may move elsewhere, and ends at an interval with free capacity. Jobs and intervals that an
    unsuccessful search has reached never have free capacity again: later paths cannot leave them.

    Args:
        needs: of the jobs.
        grid: intervals and columns.
        order: columns by interval [c].
        begin: first of them for each interval [K + 1].
        capacity_left: tasks that an interval can still take [K]; reduced.
        flow: written: tasks of each column [c].
        served: written: tasks of each job [N].
    """
    count = grid.start.shape[0] - 1
    intervals = capacity_left.shape[0]
    search = _Search(
        np.zeros(count, dtype=np.bool_),
        np.zeros(intervals, dtype=np.bool_),
        np.full(count, -1, dtype=np.int64),
        np.full(intervals, -1, dtype=np.int64),
        np.empty(intervals, dtype=np.int64),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
        np.empty(intervals, dtype=np.int64),
    )
    waiting = [(0.0, 0)]
    waiting.pop()
    for j in range(count):
        heapq.heappush(waiting, (-_worth_of(needs, j, 1.0), j))
    number = 0
    while len(waiting) > 0:
        j = waiting[0][1]
        if search.closed_job[j]:
            heapq.heappop(waiting)
            continue
        number += 1
        goal = _find_capacity(grid, order, begin, capacity_left, flow, search, number, j)
        if goal < 0:
            continue
        # tasks of a linear job are worth the same: take as many as the path carries
        amount = 1.0
        if needs.utility[j] == LINEAR:
            amount = min(needs.most[j] - served[j], capacity_left[goal])
            amount = min(amount, _carried(grid, flow, search, j, goal))
        capacity_left[goal] -= amount
        _send(grid, flow, search, j, goal, amount)
        served[j] += amount
        if served[j] >= needs.most[j]:
            heapq.heappop(waiting)
        elif needs.utility[j] != LINEAR:
            gain = _worth_of(needs, j, served[j] + 1.0) - _worth_of(needs, j, served[j])
            heapq.heapreplace(waiting, (-gain, j))
