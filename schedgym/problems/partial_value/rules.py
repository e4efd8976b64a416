"""The paper's allocations and their rivals, compiled for one environment and one slot.

The baseline policies call them on an observation, the environment in its views. They allocate no memory.

One environment has n active jobs (rows, in order of arrival; ties go to the earlier row) and m resources. A
task of a row takes ``share`` of each resource; loads up to 1 + TOLERANCE fit. In the discrete model numbers
of tasks are whole, jobs of which a single task does not fit get nothing, and the tasks of a job are served in
order, so that their values fall.

Arguments that have the same meaning everywhere:

- ``discrete``: True if tasks are whole;
- ``n``: how many rows there are; arrays hold as many or more, and only the first n are read and written;
- ``rows``: the active jobs; ``scratch``: scratch space;
- ``x``: [>= n] tasks of each row, written.

Source: zheng2016, Algorithms 1 to 3 and section V. The solver of Algorithm 1 is in
``schedgym.solvers.dual_prices``.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import Floats, Integers, Shown, allocate
from schedgym.core.jit import helper, pure_kernel, subroutine
from schedgym.core.order import sort_rows
from schedgym.solvers.arithmetic import floor
from schedgym.solvers.dual_prices import (
    LINEAR,
    LOG,
    POWER,
    DualScratch,
    gain,
    slope,
    solve_slot,
    task_value,
    wanted,
)

RULES: tuple[str, ...] = (
    "concave",
    "m-greedy",
    "primal-dual",
    "deadline-aware",
    "s-greedy",
    "equal-opp",
    "edf",
    "fifo",
)
CONCAVE, M_GREEDY, PRIMAL_DUAL, DEADLINE_AWARE, S_GREEDY, EQUAL_OPP, EDF, FIFO = range(len(RULES))

#: latest arrival and deadline [slots], so that clocks are exact in float64
LAST_SLOT = 10**9
#: largest number of tasks, value, demand and capacity, so that their products are finite
LARGEST = 1e12
#: most jobs, as far as observations go
MOST_JOBS = 10**7
TOLERANCE = 1e-9  # of loads: 1 + this fits, and a resource with as little left is full
PRICE_TOLERANCE = 1e-12  # of the stopping rule of primal-dual, in logarithms
LEAST_LOG_PRICE = -50.0  # the logarithm of a price that is not above it means price 0
MOST_SCORE = 10.0
SAME_SCORE = 1e-12  # a factor exp(score) this near to the dominant share counts as equal to it
ALMOST = 1.0 - 1e-12  # share of its cap above which a job's amount is constant
EXACT = 1e-13  # tolerance of a full resource, in the continuous model
MOST_FACTOR = 1e200
MOST_STEPS = 200  # of a search for a level
SPREAD = 600.0  # range of the logarithms of prices below which exponentials do not vanish


class Rows(NamedTuple):
    """The active jobs of one environment, as rules take them."""

    job: Annotated[Integers, "row", Shown("its number in the workload", MOST_JOBS)]  # no rule reads it
    arrival: Annotated[Floats, "row", Shown("of the job [slot]", LAST_SLOT)]
    # only deadline_aware and EDF read it
    deadline: Annotated[Floats, "row", Shown("of the job [slot]", LAST_SLOT, when="deadlines=shown")]
    served: Annotated[Floats, "row", Shown("y, what it has got so far [tasks]", LARGEST)]
    cap: Annotated[Floats, "row", Shown("u, the most in this slot: min(X, Y - y) [tasks]", LARGEST)]
    share: Annotated[Floats, "row", "resource"]  # r, of a task
    utility: Annotated[Integers, "row", Shown("kind of f: 0 linear, 1 power, 2 log", LOG)]
    value: Annotated[Floats, "row", Shown("v", LARGEST)]
    exponent: Annotated[Floats, "row", Shown("of f, if it is a power")]


class Scratch(NamedTuple):
    """Scratch space of this module."""

    weight: Annotated[Floats, "row"]  # value v for the order of tasks; below 0: the job is no candidate
    key: Annotated[Floats, "row"]  # of heaps and orders
    heap: Annotated[Integers, "row"]
    order: Annotated[Integers, "row"]
    certain: Annotated[Floats, "row"]  # tasks
    load: Annotated[Floats, "resource"]
    price: Annotated[Floats, "resource"]
    largest: Annotated[Floats, "resource"]


def make_scratch(rows: int, resources: int) -> Scratch:
    """Make scratch space for up to ``rows`` jobs on ``resources`` resources."""
    return allocate(Scratch, {"row": rows, "resource": resources})


# Rows -----------------------------------------------------------------------------------------


@helper
def _largest(values: Floats) -> float:
    """Return the largest of some numbers that are not negative."""
    largest = 0.0
    for i in range(values.shape[0]):
        largest = max(largest, values[i])
    return largest


@helper
def _dominant(r: int, rows: Rows) -> float:
    """Return the dominant (largest) share that a task of a row takes."""
    return _largest(rows.share[r])


@helper
def _sum_loads(n: int, rows: Rows, x: Floats, load: Floats) -> float:
    """Write the loads of an allocation to ``load``; return the largest."""
    largest = 0.0
    for i in range(load.shape[0]):
        total = 0.0
        for r in range(n):
            total += rows.share[r, i] * x[r]
        load[i] = total
        largest = max(largest, total)
    return largest


@helper
def _fitting(r: int, amount: float, rows: Rows, load: Floats) -> float:
    """Return how many of ``amount`` (a whole number) tasks of a row still fit."""
    for i in range(load.shape[0]):
        need = rows.share[r, i]
        if load[i] + amount * need > 1.0 + TOLERANCE:
            amount = max(floor((1.0 + TOLERANCE - load[i]) / need), 0.0)
            # the quotient may be rounded up
            if amount > 0.0 and load[i] + amount * need > 1.0 + TOLERANCE:
                amount -= 1.0
    return amount


@helper
def _give(r: int, amount: float, rows: Rows, scratch: Scratch, x: Floats) -> None:
    x[r] += amount
    for i in range(scratch.load.shape[0]):
        scratch.load[i] += amount * rows.share[r, i]


@helper
def _part_fitting(r: int, amount: float, rows: Rows, load: Floats) -> float:
    """Return how many of ``amount`` (a real number) tasks of a row still fit."""
    for i in range(load.shape[0]):
        if rows.share[r, i] > 0.0:
            left = 1.0 - load[i]
            # what rounding has left of a full resource serves nobody
            amount = min(amount, left / rows.share[r, i] if left > TOLERANCE else 0.0)
    return amount


@helper
def _serve_in_order(
    discrete: bool, until_full: bool, n: int, order: Integers, rows: Rows, scratch: Scratch, x: Floats
) -> None:
    """Give each job in order the most that fits; ``until_full``: stop after the first that gets less."""
    scratch.load[:] = 0.0
    x[:n] = 0.0
    for a in range(n):
        r = order[a]
        amount = rows.cap[r]
        if discrete:
            amount = _fitting(r, amount, rows, scratch.load)
        else:
            amount = _part_fitting(r, amount, rows, scratch.load)
        _give(r, amount, rows, scratch, x)
        if until_full and amount < rows.cap[r]:
            return


# Real amounts by marginal value ---------------------------------------------------------------


@subroutine
def _fill_at(level: float, n: int, rows: Rows, scratch: Scratch, x: Floats) -> tuple[float, float]:
    """Serve strictly concave jobs until weight / value * f' falls to level^(-1/2).

    With this measure of the level the amount of a square-root utility (as the paper's jobs have) is linear
    in it. ``scratch.key`` holds the factors of the level. Linear jobs keep their x. Sets x and the loads.
    Returns the largest load, and the level at which a resource will be full by the right-hand derivatives
    (jobs at their caps may fill one resource, while others still grow).
    """
    m = scratch.load.shape[0]
    load = scratch.load
    change = scratch.price
    load[:] = 0.0
    change[:] = 0.0
    root = math.sqrt(level)
    for r in range(n):
        bend = 0.0
        if rows.utility[r] != LINEAR:
            amount = scratch.key[r]
            if rows.utility[r] == LOG:
                amount *= root
                bend = 0.5 * amount / level
                amount -= 1.0
            elif rows.exponent[r] == 0.5:
                bend = amount
                amount *= level
            else:
                power = 1.0 / (1.0 - rows.exponent[r])
                amount = (amount * root) ** power
                bend = 0.5 * power * amount / level
            amount -= rows.served[r]
            # at nothing or at the cap the amount stays where it is when the level moves
            if not (amount >= 0.0 and amount < ALMOST * rows.cap[r]):
                bend = 0.0
            x[r] = min(max(amount, 0.0), rows.cap[r])
        for i in range(m):
            load[i] += rows.share[r, i] * x[r]
            change[i] += rows.share[r, i] * bend
    largest = 0.0
    following = np.inf
    for i in range(m):
        largest = max(largest, load[i])
        if change[i] > 0.0:
            following = min(following, level + (1.0 - load[i]) / change[i])
    return largest, following


@helper
def _fill(bracket: Any, level: float, n: int, rows: Rows, scratch: Scratch, x: Floats) -> None:
    """Find the level at which a resource is full.

    Uses Newton's method in the bracket, whose low end fits and whose high end does not.
    """
    low, high = bracket
    if not (level > low and level < high):
        level = 2.0 * low if high == np.inf else 0.5 * (low + high)
    for _ in range(MOST_STEPS):
        largest, following = _fill_at(level, n, rows, scratch, x)
        # a resource is full, and the derivative says so, too: no more jobs can grow
        if 1.0 - EXACT < largest <= 1.0 + EXACT and abs(following - level) <= EXACT * level:
            return
        if largest > 1.0 + EXACT:
            high = level
        else:
            low = level
        # Newton left the bracket: halve it
        if not (following > low and following < high):
            following = 16.0 * level if high == np.inf else 0.5 * (low + high)
            if following <= low or following >= high:
                break
        level = following
    # the highest level that fits: just above it the load jumps
    _fill_at(low, n, rows, scratch, x)


@helper
def _level_of(r: int, scratch: Scratch) -> float:
    """Return the level, as in :func:`_fill_at`, at which a linear job is served."""
    return 1.0 / (scratch.weight[r] * scratch.weight[r])


@helper
def _serve_first(full: int, count: int, rows: Rows, scratch: Scratch, x: Floats) -> None:
    """Set the first ``full`` of the ``count`` linear jobs to their caps, the others to 0."""
    for a in range(count):
        r = scratch.order[a]
        x[r] = rows.cap[r] if a < full else 0.0


@helper
def _fill_state(state: int, count: int, n: int, rows: Rows, scratch: Scratch, x: Floats) -> float:
    """Allocate at the level of linear job state // 2 (by order), and return the largest load.

    The linear jobs before it are served, and the job itself if the state is odd.
    """
    _serve_first((state + 1) // 2, count, rows, scratch, x)
    largest, _ = _fill_at(_level_of(scratch.order[state // 2], scratch), n, rows, scratch, x)
    return largest


@helper
def _guess_level(part: float, n: int, rows: Rows, scratch: Scratch) -> float:
    """Return the level of the mean slope if every strictly concave job has this part of its cap."""
    total = 0.0
    weight = 0.0
    for r in range(n):
        if rows.utility[r] != LINEAR and rows.cap[r] > 0.0:
            amount = part * rows.cap[r]
            need = amount * _dominant(r, rows)
            total += need * slope(
                rows.utility[r], scratch.weight[r], rows.exponent[r], rows.served[r] + amount
            )
            weight += need
    return (weight / total) ** 2 if total > 0.0 else 1.0


@helper
def _measure(n: int, rows: Rows, scratch: Scratch, x: Floats) -> tuple[int, bool, float, float]:
    """Set ``scratch.key`` for :func:`_fill_at`, and x to the caps (0 for jobs with a weight below 0).

    Linear jobs are listed in ``scratch.order``. Returns their number, True if all utilities are square roots,
    the largest load, and a first guess of the level (good if all are square roots).
    """
    m = scratch.load.shape[0]
    count = 0
    plain = True
    for r in range(n):
        weight = scratch.weight[r]
        factor = 0.25 * weight * weight
        if not (rows.utility[r] == POWER and rows.exponent[r] == 0.5):
            plain = False
            factor = weight
            if rows.utility[r] == LINEAR:
                scratch.order[count] = r
                count += 1
                factor = -weight
            elif rows.utility[r] == POWER:
                factor = weight * rows.exponent[r]
        amount = rows.cap[r] if weight >= 0.0 else 0.0
        factor = factor if weight >= 0.0 else 0.0
        scratch.key[r] = min(factor, MOST_FACTOR)  # for jobs without demand it is infinite
        x[r] = amount
    fullest = _sum_loads(n, rows, x, scratch.load)
    guess = 1.0
    # then loads are linear in the level but for caps: where they would reach 1
    if plain:  # as if all jobs were served
        _sum_loads(n, rows, rows.served, scratch.largest)
        _sum_loads(n, rows, scratch.key, scratch.price)
        guess = np.inf
        for i in range(m):
            guess = min(guess, (1.0 + scratch.largest[i]) / scratch.price[i])
    return count, plain, fullest, guess


@pure_kernel
def _serve_by_slope(n: int, rows: Rows, scratch: Scratch, x: Floats) -> None:
    """Serve by decreasing weight / value * f', all jobs to a common level, until a resource is full.

    Linear jobs are served when the level reaches their slope, one after another by row.
    """
    count, plain, fullest, guess = _measure(n, rows, scratch, x)
    # everybody fits
    if fullest <= 1.0 + EXACT:
        return
    if not plain:
        guess = _guess_level(1.0 / fullest, n, rows, scratch)
    low = 0.0
    high = np.inf
    if count > 0:
        sort_rows(scratch.order, scratch.key, count)
        if count == n:
            _serve_in_order(False, True, n, scratch.order, rows, scratch, x)
            return
        # each linear job makes the load jump: bisect over the states before and behind these jumps
        first = 0  # the first state that does not fit
        last = 2 * count
        while first < last:
            middle = (first + last) // 2
            if _fill_state(middle, count, n, rows, scratch, x) <= 1.0 + EXACT:
                first = middle + 1
            else:
                last = middle
        # the resource becomes full within this job, which gets a part
        if first % 2 == 1:
            _fill_state(first - 1, count, n, rows, scratch, x)
            r = scratch.order[first // 2]
            x[r] = _part_fitting(r, rows.cap[r], rows, scratch.load)
            return
        # or between two of them: a level between theirs
        _serve_first(first // 2, count, rows, scratch, x)
        if first > 0:
            low = _level_of(scratch.order[first // 2 - 1], scratch)
        if first < 2 * count:
            high = _level_of(scratch.order[first // 2], scratch)
    _fill((low, high), guess, n, rows, scratch, x)


# Whole tasks by value -------------------------------------------------------------------------


@helper
def _worth(r: int, value: Floats, rows: Rows, x: Floats) -> float:
    """Return the value of the next task of a row, by ``value`` [n] of the jobs."""
    return task_value(rows.utility[r], value[r], rows.exponent[r], rows.served[r] + x[r] + 1.0)


@helper
def _set_key(r: int, rows: Rows, scratch: Scratch, x: Floats) -> None:
    """Set the key of a row to the value of its next task by the row's weight."""
    scratch.key[r] = _worth(r, scratch.weight, rows, x)


@pure_kernel
def _worth_more(a: int, b: int, rows: Rows, x: Floats) -> bool:
    """Return True if, with equal keys, row a comes before b: larger value, then lower row.

    A function of its own, because it is rarely needed and would be half of the code of every heap.
    """
    first = _worth(a, rows.value, rows, x)
    second = _worth(b, rows.value, rows, x)
    return first > second or (first == second and a < b)


@helper
def _before(a: int, b: int, rows: Rows, scratch: Scratch, x: Floats) -> bool:
    """Return True if row a precedes b: larger key, then larger value, then lower row."""
    first = scratch.key[a]
    second = scratch.key[b]
    if first == second:
        return _worth_more(a, b, rows, x)
    return first > second


@helper
def _sift(root: int, size: int, rows: Rows, scratch: Scratch, x: Floats) -> None:
    """Sift the row at ``root`` of the heap down to its place."""
    heap = scratch.heap
    r = heap[root]
    while True:
        child = 2 * root + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap[child + 1], heap[child], rows, scratch, x):
            child += 1
        if not _before(heap[child], r, rows, scratch, x):
            break
        heap[root] = heap[child]
        root = child
    heap[root] = r


@helper
def _pop(size: int, rows: Rows, scratch: Scratch, x: Floats) -> int:
    """Remove the first row from the heap; return the new size."""
    size -= 1
    scratch.heap[0] = scratch.heap[size]
    if size > 0:
        _sift(0, size, rows, scratch, x)
    return size


@helper
def _order_heap(size: int, rows: Rows, scratch: Scratch, x: Floats) -> None:
    for root in range(size // 2 - 1, -1, -1):
        _sift(root, size, rows, scratch, x)


@helper
def _list_next(n: int, rows: Rows, scratch: Scratch, x: Floats) -> int:
    """List the candidates (weight >= 0) with a task left in ``scratch.heap``, unsorted; return the number."""
    size = 0
    for r in range(n):
        if scratch.weight[r] >= 0.0 and x[r] + 1.0 <= rows.cap[r]:
            _set_key(r, rows, scratch, x)
            scratch.heap[size] = r
            size += 1
    return size


@helper
def _serve_best(skip: bool, n: int, rows: Rows, scratch: Scratch, x: Floats) -> int:
    """Serve tasks by key until one does not fit; with ``skip`` go on with the next ones.

    Returns the row of the first misfit, or -1. Loads are added up task by task: beyond some 10 million tasks
    of a slot, rounding may leave room for one unused.
    """
    x[:n] = 0.0
    scratch.load[:] = 0.0
    size = _list_next(n, rows, scratch, x)
    _order_heap(size, rows, scratch, x)
    misfit = -1
    while size > 0:
        r = scratch.heap[0]
        amount = 1.0
        if rows.utility[r] == LINEAR:  # its tasks have equal keys
            amount = rows.cap[r] - x[r]
        served = _fitting(r, amount, rows, scratch.load)
        _give(r, served, rows, scratch, x)
        if served < amount:
            if misfit < 0:
                misfit = r
            if not skip:
                break
        # its next task is worth less, and sinks to its place
        if served == amount and x[r] + 1.0 <= rows.cap[r]:
            _set_key(r, rows, scratch, x)
            _sift(0, size, rows, scratch, x)
        else:
            size = _pop(size, rows, scratch, x)
    return misfit


@pure_kernel
def _greedy(skip: bool, single: bool, n: int, rows: Rows, scratch: Scratch, x: Floats) -> None:
    """Serve tasks by weight * value; ``single``: only the first misfit if it is worth more than the rest."""
    misfit = _serve_best(skip, n, rows, scratch, x)
    if single and misfit >= 0:
        worth = _worth(misfit, rows.value, rows, x)
        total = 0.0
        for r in range(n):
            total += gain(rows.utility[r], rows.value[r], rows.exponent[r], rows.served[r], x[r])
            if total >= worth:
                return
        x[:n] = 0.0
        x[misfit] = 1.0


@helper
def _weigh_values(n: int, rows: Rows, scratch: Scratch) -> None:
    """Set weights for the order by value alone."""
    for r in range(n):
        scratch.weight[r] = rows.value[r] if _dominant(r, rows) <= 1.0 + TOLERANCE else -1.0


@helper
def _weigh_by_share(every: bool, n: int, rows: Rows, scratch: Scratch) -> None:
    """Set weights for the order by value per dominant share; ``every``: also for jobs that never fit."""
    for r in range(n):
        largest = _dominant(r, rows)
        scratch.weight[r] = -1.0
        if every or largest <= 1.0 + TOLERANCE:
            scratch.weight[r] = rows.value[r] / largest if largest > 0.0 else np.inf


@pure_kernel
def m_greedy(skip: bool, single: bool, n: int, rows: Rows, scratch: Scratch, x: Floats) -> None:
    """Run Algorithm 2: serve tasks by value per dominant share, up to the first misfit, or that one alone.

    ``skip``: pass over misfits; ``single``: the first misfit replaces all others if it is worth more.
    """
    _weigh_by_share(False, n, rows, scratch)
    _greedy(skip, single, n, rows, scratch, x)


@pure_kernel
def _primal_dual(n: int, rows: Rows, scratch: Scratch, x: Floats) -> None:
    """Run Algorithm 2 with prices that grow by factors; the prices are kept as logarithms."""
    m = scratch.load.shape[0]
    logs = scratch.load  # of prices
    worth = scratch.key
    largest = 0.0
    logs[:] = 0.0
    scratch.largest[:] = 0.0
    x[:n] = 0.0
    # 1. candidates, and the exponents of the prices' growth
    for r in range(n):
        worth[r] = -1.0
        if _dominant(r, rows) <= 1.0 + TOLERANCE and rows.cap[r] >= 1.0:
            worth[r] = _worth(r, rows.value, rows, x)
            for i in range(m):
                scratch.largest[i] = max(scratch.largest[i], rows.share[r, i])
                largest = max(largest, rows.share[r, i])
    limit = np.inf  # largest logarithm of the sum of prices
    if largest > 0.0:
        limit = 1.0 / largest - 1.0 + math.log(m)
    while True:
        # 2. stop when the prices sum to more than the limit
        top = -np.inf
        low = np.inf
        for i in range(m):
            top = max(top, logs[i])
            low = min(low, logs[i])
        if top == np.inf:
            break
        total = 0.0
        for i in range(m):
            scratch.price[i] = math.exp(logs[i] - top)
            total += scratch.price[i]
        if top + math.log(total) > limit + PRICE_TOLERANCE:
            break
        plain = top - low < SPREAD  # otherwise exponentials vanish
        # 3. the task with the most value for its cost
        best = -1
        highest = 0.0
        for r in range(n):
            if worth[r] < 0.0:
                continue
            ratio = np.inf
            cost = 0.0
            if plain:
                for i in range(m):
                    cost += rows.share[r, i] * scratch.price[i]
                if cost > 0.0:
                    ratio = worth[r] / cost
            else:
                most = -np.inf
                for i in range(m):
                    if rows.share[r, i] > 0.0:
                        most = max(most, math.log(rows.share[r, i]) + logs[i])
                if most > -np.inf:
                    for i in range(m):
                        if rows.share[r, i] > 0.0:
                            cost += math.exp(math.log(rows.share[r, i]) + logs[i] - most)
                    ratio = math.log(worth[r]) - most - math.log(cost)
            if best < 0 or ratio > highest or (ratio == highest and worth[r] > worth[best]):
                best = r
                highest = ratio
        if best < 0:
            break
        # 4. it is served, and what it uses becomes dearer
        x[best] += 1.0
        worth[best] = -1.0
        if x[best] + 1.0 <= rows.cap[best]:
            worth[best] = _worth(best, rows.value, rows, x)
        for i in range(m):
            if rows.share[best, i] > 0.0:
                if scratch.largest[i] < 1.0:
                    logs[i] += limit * rows.share[best, i] / (1.0 - scratch.largest[i])
                else:
                    logs[i] = np.inf


@helper
def _serve_top(r: int, least: float, size: int, rows: Rows, scratch: Scratch, x: Floats) -> int:
    """Serve a task of the top row r; it stays in the heap while its key is >= ``least``; return the size."""
    x[r] += 1.0
    if x[r] + 1.0 <= rows.cap[r]:
        _set_key(r, rows, scratch, x)
        if scratch.key[r] >= least:
            _sift(0, size, rows, scratch, x)
            return size
    return _pop(size, rows, scratch, x)


@pure_kernel
def deadline_aware(
    certain: int, part: float, n: int, rows: Rows, capacity: int, scratch: Scratch, x: Floats
) -> None:
    """Run Algorithm 3: serve the most valuable tasks, and of those nearly as valuable the most urgent.

    Every task needs one unit of the only resource, which has ``capacity`` C units. ``certain``: p, the number
    of tasks chosen by value alone, 1 to C. ``part``: rho; a task is nearly as valuable if its value is at
    least this part of the mean of the first p.
    """
    _weigh_values(n, rows, scratch)
    x[:n] = 0.0
    size = _list_next(n, rows, scratch, x)
    _order_heap(size, rows, scratch, x)
    taken = 0
    total = 0.0
    # 1. the C most valuable tasks, and the value of the first p
    while size > 0 and taken < capacity:
        r = scratch.heap[0]
        if taken == certain:
            for q in range(n):
                scratch.certain[q] = x[q]
        if taken < certain:
            total += scratch.key[r]
        taken += 1
        size = _serve_top(r, 0.0, size, rows, scratch, x)
    # 2. is the next task nearly as valuable?
    least = part * (total / certain)
    if size == 0 or scratch.key[scratch.heap[0]] <= least:  # the task after the first C
        return
    # 3. the first p for sure, then by deadline
    if certain < capacity:
        for r in range(n):
            x[r] = scratch.certain[r]
    for r in range(n):
        scratch.order[r] = r
    sort_rows(scratch.order, rows.deadline, n)
    left = capacity - certain
    first = 0
    while first < n and left > 0:
        last = first
        until = rows.deadline[scratch.order[first]]
        size = 0
        while last < n and rows.deadline[scratch.order[last]] == until:
            r = scratch.order[last]
            if scratch.weight[r] >= 0.0 and x[r] + 1.0 <= rows.cap[r]:
                _set_key(r, rows, scratch, x)
                if scratch.key[r] >= least:
                    scratch.heap[size] = r
                    size += 1
            last += 1
        _order_heap(size, rows, scratch, x)
        while size > 0 and left > 0:
            left -= 1
            size = _serve_top(scratch.heap[0], least, size, rows, scratch, x)
        first = last


# Equal amounts, and orders --------------------------------------------------------------------


@pure_kernel
def s_greedy(skip: bool, n: int, rows: Rows, scratch: Scratch, x: Floats) -> None:
    """Serve whole tasks by value up to the first misfit; with ``skip`` pass over misfits."""
    _weigh_values(n, rows, scratch)
    _greedy(skip, False, n, rows, scratch, x)


@pure_kernel
def equal_counts(skip: bool, n: int, rows: Rows, scratch: Scratch, x: Floats) -> None:
    """Give one task per job and round, within a round by (y, row), up to the first misfit.

    With ``skip`` the other jobs go on.
    """
    count = 0
    high = 0.0
    for r in range(n):
        x[r] = 0.0
        if rows.cap[r] >= 1.0 and _dominant(r, rows) <= 1.0 + TOLERANCE:
            scratch.order[count] = r
            high = max(high, rows.cap[r])
            count += 1
    low = 0.0
    high += 1.0  # a number of rounds that does not fit, or is one too many
    # whole rounds by bisection, then one by one
    while high - low > 1.0:
        middle = floor(0.5 * (low + high))
        for a in range(count):
            r = scratch.order[a]
            x[r] = min(rows.cap[r], middle)
        if _sum_loads(n, rows, x, scratch.load) <= 1.0 + TOLERANCE:
            low = middle
        else:
            high = middle
    for a in range(count):
        r = scratch.order[a]
        x[r] = min(rows.cap[r], low)
    _sum_loads(n, rows, x, scratch.load)
    # the round that does not fit as a whole
    sort_rows(scratch.order, rows.served, count)
    while count > 0:
        kept = 0  # jobs that had a task in this round
        for a in range(count):
            r = scratch.order[a]
            if x[r] + 1.0 <= rows.cap[r]:
                if _fitting(r, 1.0, rows, scratch.load) == 1.0:
                    _give(r, 1.0, rows, scratch, x)
                    scratch.order[kept] = r
                    kept += 1
                elif not skip:
                    return
        count = kept


@helper
def _equal_amounts(n: int, rows: Rows, scratch: Scratch, x: Floats) -> None:
    """Give every job the same amount, at most its cap, until a resource is full.

    The loads are concave in the amount, so Newton's method converges from below, in at most a step per cap.
    """
    level = 0.0
    while True:
        least = np.inf
        scratch.load[:] = 0.0
        scratch.price[:] = 0.0
        for r in range(n):
            x[r] = min(rows.cap[r], level)
            for i in range(scratch.load.shape[0]):
                scratch.load[i] += rows.share[r, i] * x[r]
                # only jobs below their caps still grow
                if rows.cap[r] > level:
                    scratch.price[i] += rows.share[r, i]
        for i in range(scratch.load.shape[0]):
            if scratch.price[i] > 0.0:
                least = min(least, (1.0 - scratch.load[i]) / scratch.price[i])
        if least == np.inf:
            for r in range(n):
                x[r] = rows.cap[r]
            break
        if not level + least > level * (1.0 + EXACT):
            break
        level += least


@pure_kernel
def allocate_in_order(
    discrete: bool, n: int, order: Integers, rows: Rows, scratch: Scratch, x: Floats
) -> None:
    """Give each job the most that fits, by ``order`` [>= n] of the rows, which may be ``scratch.order``."""
    _serve_in_order(discrete, False, n, order, rows, scratch, x)


# The environment's decisions ------------------------------------------------------------------


@pure_kernel
def allocate_by_rule(
    rule: int,
    discrete: bool,
    n: int,
    rows: Rows,
    capacity: Floats,
    scratch: Scratch,
    dual: DualScratch,
    x: Floats,
) -> None:
    """Serve by a rule, an index in :data:`RULES`, in this slot.

    CONCAVE is for the continuous model, needs ``dual``, and leaves the prices in ``scratch.price`` [m].
    M_GREEDY, PRIMAL_DUAL and DEADLINE_AWARE are for the discrete one, the last for :func:`unit_demand`, with
    the ``capacity`` C [m] of the one resource.

    Source: zheng2016, Algorithms 1 to 3 and section V. Deviations: deadline_aware with odd C takes
    p = ceil(C / 2) and rho = C / (2 C - p); jobs of which a single task does not fit are ignored.
    """
    if rule == CONCAVE:
        solve_slot(n, rows, dual, scratch.price, x)
    elif rule == M_GREEDY:
        m_greedy(False, True, n, rows, scratch, x)
    elif rule == S_GREEDY and discrete:
        s_greedy(False, n, rows, scratch, x)
    elif rule == PRIMAL_DUAL:
        _primal_dual(n, rows, scratch, x)
    elif rule == DEADLINE_AWARE:
        tasks = int(round(capacity[0]))
        certain = (tasks + 1) // 2
        deadline_aware(certain, tasks / (2 * tasks - certain), n, rows, tasks, scratch, x)
    elif rule == S_GREEDY:
        for r in range(n):
            scratch.weight[r] = rows.value[r]
        _serve_by_slope(n, rows, scratch, x)
    elif rule == EQUAL_OPP:
        if discrete:
            equal_counts(False, n, rows, scratch, x)
        else:
            _equal_amounts(n, rows, scratch, x)
    else:
        for r in range(n):
            scratch.order[r] = r
        if rule == EDF:
            sort_rows(scratch.order, rows.deadline, n)
        allocate_in_order(discrete, n, scratch.order, rows, scratch, x)


@pure_kernel
def allocate_by_priority(
    discrete: bool, single_task: bool, n: int, scores: Any, rows: Rows, scratch: Scratch, x: Floats
) -> None:
    """Serve by value multiplied by exp(score).

    Scores [>= n] are in [-MOST_SCORE, MOST_SCORE]. Discrete: tasks by exp(score) * value / dominant share, up
    to the first misfit, which with ``single_task`` replaces all others if it is worth more. Score 0 is
    M_GREEDY, the logarithm of the dominant share without ``single_task`` is S_GREEDY (a factor within
    SAME_SCORE of the share is taken for it, so that ties stay ties). Continuous: exp(score) * f' falls to a
    common level, until a resource is full; score 0 is S_GREEDY. Jobs without demand come first.
    """
    if not discrete:
        for r in range(n):
            scratch.weight[r] = rows.value[r] * (1.0 if scores[r] == 0.0 else math.exp(scores[r]))
        _serve_by_slope(n, rows, scratch, x)
        return
    for r in range(n):
        largest = _dominant(r, rows)
        scratch.weight[r] = -1.0
        if largest <= 1.0 + TOLERANCE:
            factor = 1.0 if scores[r] == 0.0 else math.exp(scores[r])
            # the score that stands for the dominant share cancels it, whatever exp and log have rounded
            if abs(factor - largest) <= SAME_SCORE * largest:
                factor = 1.0
                largest = 1.0
            scratch.weight[r] = rows.value[r] * factor / largest if largest > 0.0 else np.inf
    _greedy(False, single_task, n, rows, scratch, x)


@pure_kernel
def allocate_by_weight(
    n: int, scores: Any, rows: Rows, scratch: Scratch, dual: DualScratch, x: Floats
) -> None:
    """Serve by Algorithm 1 as if each job were worth exp(score) times as much (continuous model).

    Scores [>= n] are in [-MOST_SCORE, MOST_SCORE]; those that are all 0 are CONCAVE.
    """
    for r in range(n):
        scratch.weight[r] = rows.value[r]
        rows.value[r] *= math.exp(scores[r])
    solve_slot(n, rows, dual, scratch.price, x)
    for r in range(n):
        rows.value[r] = scratch.weight[r]


@pure_kernel
def decode_prices(logs: Any, prices: Floats) -> None:
    """Compute prices [m] from their logarithms [m]; LEAST_LOG_PRICE and below means 0."""
    for i in range(prices.shape[0]):
        prices[i] = math.exp(logs[i]) if logs[i] > LEAST_LOG_PRICE else 0.0


@pure_kernel
def buy(n: int, prices: Floats, rows: Rows, x: Floats) -> None:
    """Let jobs buy in the continuous model at prices [m] of whole resources: until f' is below the cost.

    Linear jobs buy up to their caps if their slope is above the cost, else nothing. The result may not fit.
    """
    for r in range(n):
        cost = 0.0
        for i in range(prices.shape[0]):
            cost += prices[i] * rows.share[r, i]
        kind = rows.utility[r]
        cap = rows.cap[r]
        amount = 0.0
        if not cost > 0.0 or slope(kind, rows.value[r], rows.exponent[r], rows.served[r] + cap) >= cost:
            amount = cap
        elif kind != LINEAR and slope(kind, rows.value[r], rows.exponent[r], rows.served[r]) > cost:
            amount, _ = wanted(kind, rows.value[r], rows.exponent[r], rows.served[r], cost)
            amount = min(max(amount, 0.0), cap)
        if kind == LINEAR and not rows.value[r] > cost:
            amount = 0.0
        x[r] = amount


@pure_kernel
def repair(discrete: bool, n: int, rows: Rows, scratch: Scratch, x: Floats) -> bool:
    """Make an allocation fit: clip each amount to [0, cap], then lower loads above 1.

    Continuous: x_j times the least of min(1, 1 / load_i) over the resources that job j uses. Discrete: tasks
    are dropped, the lowest value per dominant share first, until all fit. x holds whole numbers if discrete;
    it is not an array of ``scratch``. Returns True if x did not fit.
    """
    m = scratch.load.shape[0]
    changed = False
    for r in range(n):
        if x[r] < -TOLERANCE or x[r] > rows.cap[r] + TOLERANCE:
            changed = True
        x[r] = min(max(x[r], 0.0), rows.cap[r])
    if _sum_loads(n, rows, x, scratch.load) <= 1.0 + TOLERANCE:
        return changed
    if discrete:
        _weigh_by_share(True, n, rows, scratch)
        for r in range(n):
            scratch.certain[r] = x[r]
        wanted_rows = Rows(
            *(rows.job, rows.arrival, rows.deadline, rows.served, scratch.certain),
            *(rows.share, rows.utility, rows.value, rows.exponent),
        )
        _greedy(False, False, n, wanted_rows, scratch, x)  # the tasks before the first that does not fit
        return True
    for r in range(n):
        part = 1.0
        for i in range(m):
            if rows.share[r, i] > 0.0 and scratch.load[i] > 1.0:
                part = min(part, 1.0 / scratch.load[i])
        x[r] *= part
    return True


@pure_kernel
def unit_demand(n: int, share: Any, capacity: Any) -> bool:
    """Return True if there is one resource, of whole capacity, and every task takes one unit of it.

    Args:
        n: jobs.
        share: [>= n, m] of a task.
        capacity: [m].
    """
    if capacity.shape[0] != 1 or capacity[0] < 1.0 or capacity[0] != floor(capacity[0]):
        return False
    unit = 1.0 / capacity[0]
    for j in range(n):
        if abs(share[j, 0] - unit) > TOLERANCE * unit:
            return False
    return True
