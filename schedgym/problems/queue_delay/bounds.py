"""Lower bounds on the mean queuing delay of any scheduler.

``lower_bound`` depends on the workload alone; no schedule has a lower mean delay. It is the largest of
several bounds, nearly always ``priced_bound``. All of them pool the servers, as if a task could run on
several.

The paper's theorems 5.1 and 5.2 bound the delay of a schedule by its own response time; they are claims in
:mod:`schedgym.papers.noroozoliaee2014.bounds`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from schedgym.core.arrays import Floats, Integers
from schedgym.core.jit import helper, kernel
from schedgym.core.problem import Parameters
from schedgym.core.workload import Workload
from schedgym.problems.queue_delay.rules import TOLERANCE
from schedgym.solvers.ascent import Ascent, move_prices, start_ascent
from schedgym.solvers.one_machine import serve_by_key

ROUNDING = 1e-12  # share of the sum of all terms by which rounding may have raised the priced bound
COARSEST = 32  # intervals of the first grid of prices
FINER = 4  # intervals into which an interval is cut for the next grid
FINEST = 512  # most intervals
STEPS = 300  # of the ascent on a grid, at most
MOST_VISITS = 3 * 10**7  # starts that all steps may look at (half a second)
LEAST_AIM = 1e-3  # share of all execution times: what the ascent from prices of 0 aims at


def lower_bound(workload: Workload, parameters: Parameters | None = None) -> float:
    """Return a lower bound on the mean queuing delay [s] of any schedule of ``workload``, for all parameters.

    It is the largest of 0, the pooled bound of each resource, the priced bound, and, if all tasks arrive at
    one instant, the batch bound. Up to rounding no schedule is better, even with the tolerance of the
    fitting test.
    """
    arrival = workload.jobs["arrival"]
    bounds = [0.0, *(pooled_bound(workload, name) for name in workload.cluster), priced_bound(workload)]
    if arrival[0] == arrival[-1]:
        bounds.append(batch_bound(workload))
    return max(bounds)


def batch_bound(workload: Workload) -> float:
    """Return the least mean start [s] if all tasks arrive together: shortest processing time on k machines.

    k is the number of tasks that could run at once if all had the least demand of each resource; on
    identical machines shortest processing time minimises the sum of starts.
    """
    k = _tasks_at_once(workload)
    execution = np.sort(workload.jobs["execution"])
    machines = len(execution) if math.isinf(k) else min(int(k), len(execution))
    rows = np.zeros(math.ceil(len(execution) / machines) * machines)
    rows[: len(execution)] = execution
    before = np.cumsum(rows.reshape(-1, machines), axis=0)[:-1].ravel()
    return float(before[: len(execution) - machines].sum() / len(execution))


def pooled_bound(workload: Workload, resource: str) -> float:
    """Return a lower bound [s] from one resource, by its name, all servers pooled into one machine.

    A task that holds demand d over [s, s + e] has mean busy time s + e/2 on a machine that processes
    volumes e * d. Preemptive service of the smallest original volume first minimises the sum of mean busy
    times (Goemans 1996), hence mean delay >= mean busy time - mean e / 2 - mean arrival.
    """
    busy = _pool(workload, resource)[1]
    jobs = workload.jobs
    arrival = jobs["arrival"] - jobs["arrival"][0]
    return math.fsum(busy.tolist()) / len(busy) - float(jobs["execution"].mean()) / 2 - float(arrival.mean())


def priced_bound(workload: Workload) -> float:
    """Return a lower bound [s] from prices of capacity over time: the Lagrangian dual of the pooled capacity.

    Let p_r(t) >= 0 be the price of resource r, C_r the capacity of all servers, and d_ir the demand of task
    i, which starts at s_i >= a_i and holds its demand over [s_i, s_i + e_i]. As no schedule ever holds more
    than C_r, the cost of what all tasks hold is at most C_r times the integral of p_r. Hence, for every
    schedule and all prices,

        sum of (s_i - a_i) >= sum over i of min over s >= a_i of [s - a_i + sum over r of
                              d_ir (integral of p_r from s to s + e_i)] - sum over r of C_r (integral of p_r).

    With prices that are constant on intervals, the term of a task is linear in s between the times at which s
    or s + e_i is an end of an interval, so that its minimum is at such a time or at a_i. The prices come from
    an ascent (:mod:`schedgym.solvers.ascent`). A grid of few intervals comes first; then those where a price
    is above 0, and their neighbours, are cut. For the best prices of all the bound is the optimum of the
    linear program over start times (Dyer, Wolsey 1990). In it a task runs without a break and at its own
    rate, so the optimum is at least the pooled bound.

    The number of tasks is one more resource: servers run no more at once than if all had the least demand.
    """
    needs = _needs(workload)
    count = len(needs.arrival)
    times = [needs.arrival, *(_pool(workload, r)[0] for r in workload.cluster)]
    events = np.unique(np.concatenate([t[np.isfinite(t)] for t in times]))
    edges = np.unique(np.concatenate([[0.0], np.quantile(events, np.linspace(0.0, 1.0, COARSEST + 1))]))
    price = np.zeros((len(needs.capacity), len(edges) - 1))
    visits = np.array([MOST_VISITS])
    least = LEAST_AIM * float(needs.execution.sum())
    best = 0.0
    while price.shape[1] > 0:
        ascent = start_ascent(price)
        best = max(best, _ascend(needs, edges, ascent, least, visits))
        price = ascent.best
        finer = _cut(edges, price)
        if len(finer) == len(edges) or len(finer) > FINEST or visits[0] <= 0:
            break
        price = np.ascontiguousarray(price[:, np.searchsorted(edges, finer[:-1], side="right") - 1])
        edges = finer
    return best / count


class _Needs(NamedTuple):
    """The needs of N tasks for R pooled resources."""

    arrival: Floats  # [N] from the first
    execution: Floats  # [N]
    demand: Floats  # [N, R]
    capacity: Floats  # [R]


def _needs(workload: Workload) -> _Needs:
    jobs, cluster = workload.jobs, workload.cluster
    demand = [jobs[name] for name in cluster]
    capacity = [float(own.sum()) + TOLERANCE * len(own) for own in cluster.values()]
    most = _tasks_at_once(workload)
    if most < len(jobs["arrival"]):
        demand.append(np.ones(len(jobs["arrival"])))
        capacity.append(most)
    used = [r for r in range(len(capacity)) if demand[r].any()]
    return _Needs(
        arrival=jobs["arrival"] - jobs["arrival"][0],  # a large origin would lose digits
        execution=np.array(jobs["execution"]),
        demand=np.column_stack([demand[r] for r in used]) if used else np.zeros((len(jobs["arrival"]), 0)),
        capacity=np.array([capacity[r] for r in used]),
    )


def _cut(edges: Floats, price: Floats) -> Floats:
    """Return the edges of a finer grid: intervals next to or with a price are cut; all if there is none."""
    priced = np.pad((price > 0.0).any(axis=0), 1)
    chosen = priced[:-2] | priced[1:-1] | priced[2:]
    if not chosen.any():
        chosen[:] = True
    part = np.arange(1, FINER) / FINER
    inner = edges[:-1][chosen, None] + np.diff(edges)[chosen, None] * part
    return np.unique(np.concatenate([edges, inner.ravel()]))


def _pool(workload: Workload, resource: str) -> tuple[Floats, Floats]:
    """Serve the volumes of one resource, smallest first, on one machine of the rate of all servers.

    Returns:
        Completion and mean busy time of each task from the first arrival [s]; [N], [N].
    """
    jobs = workload.jobs
    capacity = workload.cluster[resource]
    rate = float(capacity.sum() + TOLERANCE * len(capacity))
    arrival = jobs["arrival"] - jobs["arrival"][0]  # a large origin would lose digits
    volume = jobs["execution"] * jobs[resource]
    completion, busy, left = np.empty((3, len(arrival)))
    serve_by_key(arrival, volume, volume, rate, math.inf, completion, busy, left)
    return completion, np.where(volume > 0.0, busy, arrival)


@helper
def _start_task(
    needs: _Needs, i: int, edges: Floats, price: Floats, paid: Floats
) -> tuple[float, float, int]:
    """Return the least cost of task i, its start, and the number of starts looked at.

    Args:
        needs: of the tasks.
        i: the task.
        edges: of the intervals, from 0; later prices are 0 [K + 1].
        price: [R, K].
        paid: integral of each price up to each edge [R, K + 1].
    """
    resources, intervals = price.shape
    a = needs.arrival[i]
    e = needs.execution[i]
    x = np.searchsorted(edges, a, side="right") - 1  # the interval of the start, and of the end
    y = np.searchsorted(edges, a + e, side="right") - 1
    s = a
    least = math.inf
    start = a
    looked = 0
    while s - a < least:
        looked += 1
        cost = s - a
        for r in range(resources):
            before = paid[r, min(x, intervals)]
            if x < intervals:
                before += price[r, x] * (s - edges[x])
            after = paid[r, min(y, intervals)]
            if y < intervals:
                after += price[r, y] * max(s + e - edges[y], 0.0)
            cost += needs.demand[i, r] * (after - before)
        if cost < least:
            least = cost
            start = s
        if x >= intervals:
            break
        end = edges[y + 1] - e if y < intervals else math.inf
        s = edges[x + 1]
        if end <= s:
            y += 1
        if end < s:
            s = end
        else:
            x += 1
    return least, start, looked


@kernel
def _ascend(needs: _Needs, edges: Floats, ascent: Ascent, least: float, visits: Integers) -> float:
    """Return the best sum of delays [s] that an ascent finds.

    Args:
        needs: of the tasks.
        edges: of the intervals, from 0; later prices are 0 [K + 1].
        ascent: changed.
        least: as :func:`move_prices` takes it.
        visits: reduced by the starts looked at; the ascent stops when none is left [1].
    """
    resources, intervals = ascent.trial.shape
    duration = edges[1:] - edges[:-1]
    paid = np.zeros((resources, intervals + 1))
    for _ in range(STEPS):
        total = 0.0
        for r in range(resources):
            for x in range(intervals):
                paid[r, x + 1] = paid[r, x] + ascent.trial[r, x] * duration[x]
            total -= needs.capacity[r] * paid[r, intervals]
        scale = -total
        ascent.use[:] = 0.0
        for i in range(needs.arrival.shape[0]):
            cost, start, looked = _start_task(needs, i, edges, ascent.trial, paid)
            visits[0] -= looked
            total += cost
            scale += cost
            end = start + needs.execution[i]
            x = int(np.searchsorted(edges, start, side="right")) - 1
            while x < intervals and edges[x] < end:
                held = min(end, edges[x + 1]) - max(start, edges[x])
                for r in range(resources):
                    ascent.use[r, x] += needs.demand[i, r] * held
                x += 1
        total -= ROUNDING * scale
        if not move_prices(ascent, total, least, needs.capacity, duration) or visits[0] <= 0:
            break
    return ascent.numbers[0]


def _tasks_at_once(workload: Workload) -> float:
    """Return how many tasks fit at once if each had the least demand of each resource."""
    total = np.zeros(len(next(iter(workload.cluster.values()))))
    per_server = np.full_like(total, np.inf)
    for resource in workload.cluster:
        demand = float(workload.jobs[resource].min())
        if demand > 0.0:  # x / 0 = infinity
            # the tolerance is needed here: 0.3 / 0.1 < 3 in floats, yet three such tasks run together
            capacity: Floats = workload.cluster[resource] + TOLERANCE
            per_server = np.minimum(per_server, np.floor(capacity / demand))
    return float((total + per_server).sum())
