"""The best division of one slot among jobs with concave utilities, by the prices of the resources.

    maximise   sum_j f_j(y_j + x_j) - f_j(y_j)
    subject to sum_j r_ij x_j <= 1  for every resource i,   0 <= x_j <= u_j

f is linear (v x), a power (v x^alpha) or logarithmic (v log(1 + x)). At prices b >= 0 of the resources a task
of job j costs pi_j = sum_i b_i r_ij, and the job buys x_j = clip(f_j'^-1(pi_j) - y_j, 0, u_j). The dual
function, sum_i b_i plus what the jobs gain, is convex in b, and its gradient is one minus the loads: Newton's
method, safeguarded by the slope of the dual along a step, finds prices at which resources are full or free.

A linear job buys all or nothing, so that the dual has kinks, and its minimum mostly lies on some. Such jobs
get a little curvature around the amounts of the round before, which had more of it (the proximal point
method): a few rounds reach the optimum up to rounding. The result carries its own proof: the duality gap
without curvature.

Source: zheng2016, Algorithm 1 and section III. The kernel (``solve_slot``) allocates nothing.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import Floats, Integers, allocate
from schedgym.core.jit import helper, pure_kernel

LINEAR, POWER, LOG = range(3)  # kinds of utility

EXACT = 1e-13  # error of a load that counts as none
NEARLY = 1e-6  # an error that the last, linear step mends
FLAT = 1e-10  # a utility whose slope changes by no more than this part in a slot is linear
FIRST_CURVATURE = 0.1  # of linear jobs: the part by which the slope changes from none to all
CURVATURE_STEP = 1 / 6
LEAST_CURVATURE = 1e-7
MOST_ROUNDS = 16
CERTIFIED = 1e-12  # a relative gap that ends the rounds
RIDGE = 1e-10  # added to the curvature of a price: this part of it,
FLOOR = 1e-14  # and this part of what a price has whose load is inversely proportional to it
MOST_GROWTH = 30.0  # of prices in a step, relative to the highest
MOST_STEPS = 60  # of Newton's method; then it goes price by price
MOST_SWEEPS = 8
MOST_TRIES = 60  # of a length of a step
MOST_SEARCH = 100  # responses in the search for a single price
LEAST_PRICE, MOST_PRICE = 1e-250, 1e250


class DualScratch(NamedTuple):
    """Work space of :func:`solve_slot`: [rows] per job, [m] per resource."""

    low: Annotated[Floats, "row"]  # slope of the utility at y + u: at this price a job takes all
    high: Annotated[Floats, "row"]  # slope at y: at this price it takes nothing
    flat: Annotated[Floats, "row"]  # slope of a (nearly) linear utility, 0 for others
    reach: Annotated[Floats, "row"]  # of linear jobs: the most that could be of use
    centre: Annotated[Floats, "row"]  # of linear jobs: the amount at which their curvature does not count
    bend: Annotated[Floats, "row"]  # -dx/dprice at present prices
    best: Annotated[Floats, "row"]  # the best amounts so far
    tight: Annotated[Integers, "resource"]  # whether the resource can be full
    free: Annotated[Integers, "resource"]  # whether Newton's step may choose the price
    best_price: Annotated[Floats, "resource"]
    load: Annotated[Floats, "resource"]
    before: Annotated[Floats, "resource"]  # prices at the start of a step
    step: Annotated[Floats, "resource"]
    unit: Annotated[Floats, "resource"]
    curvature: Annotated[Floats, "resource", "resource"]  # Hessian of the dual
    matrix: Annotated[Floats, "resource", "resource"]


class SlotJobs(NamedTuple):
    """The jobs of a slot."""

    served: Annotated[Floats, "row"]  # y, tasks served before
    cap: Annotated[Floats, "row"]  # u, most tasks in this slot, at least 0
    share: Annotated[Floats, "row", "resource"]  # r of a task
    utility: Annotated[Integers, "row"]  # LINEAR, POWER or LOG
    value: Annotated[Floats, "row"]  # v > 0
    exponent: Annotated[Floats, "row"]  # alpha of powers, in (0, 1)


def make_dual_scratch(rows: int, resources: int) -> DualScratch:
    """Work space for up to ``rows`` jobs on ``resources`` resources."""
    return allocate(DualScratch, {"row": rows, "resource": resources})


# Utilities ------------------------------------------------------------------------------------


@helper
def gain(utility: int, value: float, exponent: float, y: float, x: float) -> float:
    """The value of x more tasks after y: f(y + x) - f(y), without cancellation."""
    if x <= 0.0:
        return 0.0
    if utility == LINEAR:
        return value * x
    if utility == LOG:
        return value * math.log1p(x / (1.0 + y))
    if exponent == 0.5:
        return value * x / (math.sqrt(y + x) + math.sqrt(y))
    if x > y:
        return value * ((y + x) ** exponent - y**exponent)
    return value * y**exponent * math.expm1(exponent * math.log1p(x / y))


@helper
def slope(utility: int, value: float, exponent: float, y: float) -> float:
    """f'(y); infinite for a power at 0."""
    if utility == LINEAR:
        return value
    if utility == LOG:
        return value / (1.0 + y)
    if y <= 0.0:
        return np.inf
    if exponent == 0.5:
        return 0.5 * value / math.sqrt(y)
    return value * exponent * y ** (exponent - 1.0)


@helper
def task_value(utility: int, value: float, exponent: float, k: float) -> float:
    """The value of task k = 1, 2, ...: f(k) - f(k - 1), without cancellation."""
    if utility == LINEAR:
        return value
    if utility == LOG:
        return value * math.log1p(1.0 / k)
    if exponent == 0.5:
        return value / (math.sqrt(k) + math.sqrt(k - 1.0))
    if k <= 1.0:
        return value
    return -value * k**exponent * math.expm1(exponent * math.log1p(-1.0 / k))


@helper
def wanted(utility: int, value: float, exponent: float, y: float, price: float) -> tuple[float, float]:
    """Return the unlimited demand x of a job with strictly concave utility at a price > 0, and -dx/dprice."""
    if utility == LOG:
        amount = value / price
        return amount - 1.0 - y, amount / price
    if exponent == 0.5:
        root = 0.5 * value / price
        return root * root - y, 2.0 * root * root / price
    amount = (value * exponent / price) ** (1.0 / (1.0 - exponent))
    return amount - y, amount / ((1.0 - exponent) * price)


# Loads at given prices ------------------------------------------------------------------------


@helper
def _clear(load: Floats, curvature: Floats) -> None:
    for i in range(load.shape[0]):
        load[i] = 0.0
        for k in range(load.shape[0]):
            curvature[i, k] = 0.0


@pure_kernel
def _respond(n: int, bent: float, rows: SlotJobs, work: DualScratch, prices: Floats, x: Floats) -> None:
    """Set the jobs' response x [n] to the prices, ``work.bend`` [n], the loads and the Hessian of the dual.

    ``bent`` is the curvature of linear jobs.
    """
    m = prices.shape[0]
    load = work.load
    curvature = work.curvature
    _clear(load, curvature)
    for j in range(n):
        price = 0.0
        for i in range(m):
            price += prices[i] * rows.share[j, i]
        amount = 0.0
        bend = 0.0
        most = rows.cap[j]
        if work.flat[j] > 0.0:
            bend = work.reach[j] / (bent * work.flat[j])
            amount = work.centre[j] + (work.flat[j] - price) * bend
            if not amount > 0.0:
                amount = 0.0
                bend = 0.0
            elif amount >= most:
                amount = most
                bend = 0.0
        elif price <= work.low[j]:
            amount = most
        elif price < work.high[j]:
            amount, bend = wanted(rows.utility[j], rows.value[j], rows.exponent[j], rows.served[j], price)
            amount = min(max(amount, 0.0), most)
        x[j] = amount
        work.bend[j] = bend
        if amount > 0.0 or bend > 0.0:
            for i in range(m):
                r = rows.share[j, i]
                load[i] += r * amount
                for k in range(i + 1):
                    curvature[i, k] += r * rows.share[j, k] * bend
    for i in range(m):
        for k in range(i):
            curvature[k, i] = curvature[i, k]


# Searching ------------------------------------------------------------------------------------


@helper
def _on_ray(work: DualScratch, single: int, i: int) -> bool:
    return work.tight[i] != 0 and (single < 0 or single == i)


@pure_kernel
def _search_ray(
    single: int,
    guess: float,
    exact: float,
    n: int,
    bent: float,
    rows: SlotJobs,
    work: DualScratch,
    prices: Floats,
    x: Floats,
) -> None:
    """Set one price, or with single < 0 all to the same, so that the (mean) load on its resources is 1.

    Newton's method on the logarithms of price and load, in which the response of a power is a line, within a
    bracket. The resulting price is positive: the function must not be called where price 0 is optimal.
    """
    m = prices.shape[0]
    low = 0.0
    high = np.inf
    stride = 2.0
    level = min(max(guess, LEAST_PRICE), MOST_PRICE)
    for tries in range(MOST_SEARCH):
        for i in range(m):
            if _on_ray(work, single, i):
                prices[i] = level
        _respond(n, bent, rows, work, prices, x)
        load = 0.0
        change = 0.0
        count = 0
        for i in range(m):
            if _on_ray(work, single, i):
                count += 1
                load += work.load[i]
                for k in range(m):
                    if _on_ray(work, single, k):
                        change += work.curvature[i, k]
        load /= count
        change *= level / count
        if abs(load - 1.0) <= exact:
            return
        if load > 1.0:
            low = level
        else:
            high = level
        following = np.inf
        if load > 0.0 and change > 0.0:
            move = math.log(load) * load / change
            if abs(move) <= stride:
                following = level * math.exp(move)
        bracketed = low > 0.0 and high < np.inf
        if not (low < following and following < high) or (bracketed and tries % 12 == 11):
            if not bracketed:
                following = level * math.exp(stride if load > 1.0 else -stride)
                stride = min(2.0 * stride, 200.0)
            elif high <= 1.01 * low:
                following = 0.5 * (low + high)
            else:
                following = math.sqrt(low) * math.sqrt(high)
        following = min(max(following, LEAST_PRICE), MOST_PRICE)
        if following <= low or following >= high:
            return
        level = following


@helper
def _solve(work: DualScratch, m: int, scale: float, prices: Floats) -> None:
    """Newton's step ``work.step`` for the loads of the resources with ``work.free``; others stay.

    Each price is scaled by itself (0 by ``scale``). The Cholesky factorisation has a tiny number added to the
    diagonal, so that resources whose loads depend on each other do not make it fail; their step is then long.
    """
    a = work.matrix
    for i in range(m):
        work.step[i] = 0.0
        work.unit[i] = prices[i] if prices[i] > 0.0 else scale
        if work.free[i] == 0:
            continue
        work.step[i] = (work.load[i] - 1.0) * work.unit[i]
        for k in range(i + 1):
            a[i, k] = work.unit[i] * work.curvature[i, k] * work.unit[k]
        least = RIDGE * a[i, i] + FLOOR * work.unit[i] * max(work.load[i], 1.0)
        a[i, i] += least
        for k in range(i):
            if work.free[k] != 0:
                for q in range(k):
                    if work.free[q] != 0:
                        a[i, k] -= a[i, q] * a[k, q]
                a[i, k] /= a[k, k]
                a[i, i] -= a[i, k] * a[i, k]
                work.step[i] -= a[i, k] * work.step[k]
        a[i, i] = math.sqrt(max(a[i, i], 0.1 * least))
        work.step[i] /= a[i, i]
    for i in range(m - 1, -1, -1):
        if work.free[i] != 0:
            for k in range(i + 1, m):
                if work.free[k] != 0:
                    work.step[i] -= a[k, i] * work.step[k]
            work.step[i] /= a[i, i]
    for i in range(m):
        work.step[i] *= work.unit[i]


@helper
def _along(work: DualScratch, m: int) -> float:
    """Slope of the dual along the step."""
    total = 0.0
    for i in range(m):
        total += (1.0 - work.load[i]) * work.step[i]
    return total


@helper
def _walk(work: DualScratch, m: int, part: float, prices: Floats) -> None:
    """Prices after a part of the step."""
    for i in range(m):
        prices[i] = max(work.before[i] + part * work.step[i], 0.0)


@helper
def _error(work: DualScratch, i: int, prices: Floats) -> float:
    """The error of a load: its distance from 1 where the price is positive, else its excess over 1."""
    error = work.load[i] - 1.0
    if work.tight[i] == 0:
        error = 0.0
    elif prices[i] > 0.0:
        error = abs(error)
    return error


@helper
def _newton(work: DualScratch, m: int, prices: Floats) -> bool:
    """Set ``work.step`` to Newton's step, cut where a price reaches 0; True if the dual falls along it."""
    scale = 0.0
    for i in range(m):
        scale = max(scale, prices[i])
        work.free[i] = 1 if prices[i] > 0.0 or (work.tight[i] != 0 and work.load[i] > 1.0) else 0
    again = True
    while again:
        again = False
        _solve(work, m, scale, prices)
        for i in range(m):
            if prices[i] == 0.0 and work.step[i] < 0.0:
                work.free[i] = 0
                again = True
    part = 1.0
    last = -1
    for i in range(m):
        if prices[i] + part * work.step[i] < 0.0:
            part = -prices[i] / work.step[i]
            last = i
    for i in range(m):
        work.step[i] *= part
    if last >= 0:
        work.step[last] = -prices[last]
    return _along(work, m) < 0.0


@pure_kernel
def _descend(n: int, bent: float, rows: SlotJobs, work: DualScratch, prices: Floats, x: Floats) -> None:
    """Go along ``work.step`` to prices with a smaller dual.

    Its slope along the step only rises: where it is not positive yet, the dual is smaller than at the start.
    """
    m = prices.shape[0]
    start = _along(work, m)
    scale = 0.0
    for i in range(m):
        scale = max(scale, prices[i])
    low = 0.0
    high = np.inf
    low_rate = start
    high_rate = np.inf
    part = 1.0
    longest = np.inf
    near = True
    for i in range(m):
        work.before[i] = prices[i]
        if work.step[i] < 0.0:
            longest = min(longest, -prices[i] / work.step[i])
        if abs(work.step[i]) > 0.5 * prices[i]:
            near = False
        if part * work.step[i] > MOST_GROWTH * scale:
            part = MOST_GROWTH * scale / work.step[i]
    for tries in range(MOST_TRIES):
        _walk(work, m, part, prices)
        _respond(n, bent, rows, work, prices, x)
        rate = _along(work, m)
        if rate > 0.0:
            if near and rate <= -0.4 * start:
                return
            high = part
            high_rate = rate
        else:
            if rate >= 0.7 * start or part >= longest:
                return
            low = part
            low_rate = rate
        if low > 0.0 and high < np.inf and high - low <= 1e-3 * min(high, longest - low):
            break
        if high == np.inf:
            part = min(4.0 * part, longest)
        elif high == longest:  # a price that falls to 0 is too low: it may be of any magnitude
            part = high - 0.02 * (high - low)
        elif tries % 3 == 2:
            part = math.sqrt(low * high) if low > 0.0 else 0.01 * high
        else:
            part = low + (high - low) * low_rate / (low_rate - high_rate)
            part = min(max(part, low + 0.05 * (high - low)), high - 0.05 * (high - low))
    _walk(work, m, low, prices)
    _respond(n, bent, rows, work, prices, x)


@pure_kernel
def _settle(
    exact: float, n: int, bent: float, rows: SlotJobs, work: DualScratch, prices: Floats, x: Floats
) -> None:
    """Lower the dual from the given prices until the loads are right up to ``exact``."""
    m = prices.shape[0]
    steps = 0
    sweeps = 0
    stalled = 0
    least = np.inf
    _respond(n, bent, rows, work, prices, x)
    while sweeps <= MOST_SWEEPS:
        worst = 0.0
        chosen = -1
        for i in range(m):
            error = _error(work, i, prices)
            worst = max(worst, error)
            if work.load[i] > 1.0 and error > exact and not work.curvature[i, i] > 0.0:
                chosen = i  # no small change of its price would help
        stalled = 0 if worst < 0.9 * least else stalled + 1
        least = min(least, worst)
        if worst <= exact or (stalled > 6 and least < NEARLY):
            return
        if chosen < 0:
            if steps < MOST_STEPS and _newton(work, m, prices):
                steps += 1
                _descend(n, bent, rows, work, prices, x)
                continue
            for i in range(m):
                if _error(work, i, prices) == worst:
                    chosen = i
        # one price alone
        guess = prices[chosen]
        if guess > 0.0:
            sweeps += 1
            steps = max(steps - 4, 0)
            if work.load[chosen] < 1.0:
                prices[chosen] = 0.0
                _respond(n, bent, rows, work, prices, x)
        else:
            for i in range(m):
                guess = max(guess, 0.1 * prices[i])
            if not guess > 0.0:
                guess = 1.0
            if steps >= MOST_STEPS:
                sweeps += 1
        if prices[chosen] > 0.0 or work.load[chosen] > 1.0:
            _search_ray(chosen, guess, exact, n, bent, rows, work, prices, x)


# A slot ---------------------------------------------------------------------------------------


@helper
def _prepare(n: int, rows: SlotJobs, work: DualScratch) -> bool:
    """Set the slopes at both ends and mark linear utilities; return True if a job with a cap has one."""
    m = rows.share.shape[1]
    found = False
    for j in range(n):
        y = rows.served[j]
        kind = rows.utility[j]
        work.low[j] = slope(kind, rows.value[j], rows.exponent[j], y + rows.cap[j])
        work.high[j] = slope(kind, rows.value[j], rows.exponent[j], y)
        work.flat[j] = 0.0
        if work.low[j] >= (1.0 - FLAT) * work.high[j] and rows.cap[j] > 0.0:
            found = True
            largest = 0.0
            for i in range(m):
                largest = max(largest, rows.share[j, i])
            work.flat[j] = 0.5 * (work.low[j] + work.high[j])
            work.reach[j] = rows.cap[j] if rows.cap[j] * largest <= 1.0 else 1.0 / largest
            work.centre[j] = 0.5 * work.reach[j]
    return found


@helper
def _gain(rows: SlotJobs, j: int, y: float, x: float) -> float:
    """:func:`gain` of job j."""
    return gain(rows.utility[j], rows.value[j], rows.exponent[j], y, x)


@helper
def _finish(n: int, rows: SlotJobs, work: DualScratch, prices: Floats, x: Floats) -> float:
    """Make x, the response to the prices, feasible; return its relative duality gap.

    A step along the curvature moves x alone, by amounts too small for the last digits of the prices.
    """
    m = prices.shape[0]
    for i in range(m):
        work.free[i] = 1 if prices[i] > 0.0 else 0
    _solve(work, m, 1.0, prices)
    for j in range(n):
        if work.bend[j] > 0.0:
            move = 0.0
            for i in range(m):
                move += rows.share[j, i] * work.step[i]
            x[j] = min(max(x[j] - work.bend[j] * move, 0.0), rows.cap[j])
    for i in range(m):
        work.load[i] = 0.0
    for j in range(n):
        for i in range(m):
            work.load[i] += rows.share[j, i] * x[j]
    part = 1.0
    for i in range(m):
        if work.load[i] > 1.0:
            part = min(part, 1.0 / work.load[i])
    total = 0.0
    missing = 0.0
    for i in range(m):
        missing += prices[i] * (1.0 - part * work.load[i])
    for j in range(n):
        x[j] *= part
        price = 0.0
        for i in range(m):
            price += prices[i] * rows.share[j, i]
        total += _gain(rows, j, rows.served[j], x[j])
        # what the job would rather have at these prices
        best = 0.0
        if price <= work.low[j]:
            best = rows.cap[j]
        elif price < work.high[j]:
            best, _ = wanted(rows.utility[j], rows.value[j], rows.exponent[j], rows.served[j], price)
            best = min(max(best, 0.0), rows.cap[j])
        if best > x[j]:
            more = best - x[j]
            missing += max(
                _gain(rows, j, rows.served[j] + x[j], more) - price * more,
                0.0,
            )
        elif best < x[j]:
            less = x[j] - best
            missing += max(
                price * less - _gain(rows, j, rows.served[j] + best, less),
                0.0,
            )
    return missing / total if total > 0.0 else np.inf


@pure_kernel
def solve_slot(n: int, rows: Any, work: DualScratch, prices: Floats, x: Floats) -> float:
    """Find the best allocation of one slot to jobs with concave utilities, and the prices that show it.

    x is unique for strictly concave utilities; the prices are if all loads depend on them.

    Args:
        n: jobs.
        rows: the jobs: any named tuple with the fields of :class:`SlotJobs`.
        work: work space of :func:`make_dual_scratch`.
        prices: [m] written.
        x: [>= n] written.

    Returns:
        The relative duality gap: x is feasible, and no allocation is worth more than (1 + gap) times as much.

    Source: zheng2016, Algorithm 1. Deviations: none; the paper leaves the solver open.
    """
    m = prices.shape[0]
    count = 0
    for i in range(m):
        prices[i] = 0.0
        work.load[i] = 0.0
    for j in range(n):
        x[j] = rows.cap[j]
        for i in range(m):
            work.load[i] += rows.share[j, i] * rows.cap[j]
    fullest = 1.0
    for i in range(m):
        work.tight[i] = 0
        if work.load[i] > 1.0 + EXACT:
            work.tight[i] = 1
            count += 1
            fullest = max(fullest, work.load[i])
    if count == 0:
        return 0.0
    bent = FIRST_CURVATURE
    linear = _prepare(n, rows, work)
    exact = 0.1 * bent if linear else EXACT
    guess = 0.0
    for j in range(n):
        if rows.cap[j] > 0.0:
            x[j] = rows.cap[j] / fullest
            guess += x[j] * slope(rows.utility[j], rows.value[j], rows.exponent[j], rows.served[j] + x[j])
    _search_ray(-1, guess / count, 0.3 if count > 1 else exact, n, bent, rows, work, prices, x)
    best = np.inf
    for _ in range(MOST_ROUNDS if linear else 1):
        _settle(exact, n, bent, rows, work, prices, x)
        gap = _finish(n, rows, work, prices, x)
        if not gap >= best:
            best = gap
            for j in range(n):
                work.best[j] = x[j]
            for i in range(m):
                work.best_price[i] = prices[i]
        if best <= CERTIFIED:
            break
        for j in range(n):
            if work.flat[j] > 0.0:
                work.centre[j] = min(x[j], work.reach[j])
        bent = max(bent * CURVATURE_STEP, LEAST_CURVATURE)
        exact = max(exact * CURVATURE_STEP, EXACT)
    for j in range(n):
        x[j] = work.best[j]
    for i in range(m):
        prices[i] = work.best_price[i]
    return best
