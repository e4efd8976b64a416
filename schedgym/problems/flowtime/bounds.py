"""Lower bounds on the sum of flowtime^k.

All of them pool the servers, and ignore that cores are whole numbers. In 2D they use memory in two ways: as a
second pooled resource, and because a job can only run on servers with enough memory.

The paper's bounds come from the fractional relaxation P2: sum p^k, OPT_P2 - sum
p^k, and the mean of these two, OPT_P2 / 2. The best :func:`priced_bound` is at least as large as all three:
there each job has one schedule and costs flowtime^k, while in P2 it can mix schedules and costs a mean over
its slots.
"""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np

from schedgym.core.arrays import Floats, Integers
from schedgym.core.heap import pop, push
from schedgym.core.jit import helper, kernel
from schedgym.core.workload import Workload
from schedgym.problems.flowtime.problem import FlowtimeParameters
from schedgym.problems.flowtime.workload import Jobs, max_slots, tables
from schedgym.solvers.arithmetic import power
from schedgym.solvers.ascent import Ascent, move_prices, start_ascent

ROUNDING = 1e-10  # share of all sums by which rounding may have raised a bound
COARSEST = 16  # intervals of the first grid of prices
FINER = 4  # intervals into which each interval is cut for the next grid
FINEST = 2**14  # most intervals
STEPS = 1000  # of the ascent on a grid, at most
NEVER = 2**62  # a slot
MOST_VISITS = 10**8  # runs that all steps may look at (a second or two)


def lower_bound(workload: Workload, parameters: FlowtimeParameters | None = None) -> float:
    """Return a lower bound on the objective of ``parameters`` (default: k = 2) over all schedules.

    It is the largest of :func:`processing_bound`, :func:`queue_bound` and :func:`priced_bound`. A job is
    charged until the episode is truncated at the latest (by ``parameters``, default: never). The switching
    cost, which a schedule may avoid, adds nothing. For whole k the sum of flowtime^k is a whole number, to
    which the bound is rounded up.
    """
    own = tables(workload)
    needs = _needs(own)
    norm = 2.0
    if parameters is not None:
        norm = parameters.norm
        needs = needs._replace(limit=max_slots(own, parameters.gamma) - int(own.arrival[0]))
    best = max(_queue(needs, norm), _priced(needs, norm))
    if norm == int(norm) and best < 2.0**52:
        best = float(math.ceil(best))
    return max(best, _processing(needs, norm))


def processing_bound(workload: Workload, norm: float = 2.0) -> float:
    """Return the bound if every job had all servers for itself: the sum of (least number of slots)^k.

    The least number is p (MapReduce: p^m + p^r), or more if the servers open to the job have too few cores.
    """
    return _processing(_needs(tables(workload)), norm)


def queue_bound(workload: Workload, norm: float = 2.0) -> float:
    """Return the bound from the least number of unfinished jobs in each slot; for k = 1 SRPT on one machine.

    1. A schedule is charged age^k - (age - 1)^k for each unfinished job in each slot.
    2. On one machine with the speed of all cores, where demands do not matter, shortest remaining work first
       has finished the most jobs at any time (Schrage 1968). So n(t), the number of jobs that it leaves
       unfinished, is a lower bound for all schedules. In 2D the same holds for memory: a job holds its memory
       for at least its least number of slots. The larger n(t) counts.
    3. A job is unfinished for at least as many slots as it needs when it runs alone. If fewer than n(t) jobs
       are unfinished for this reason, others are unfinished, too; they cost at least as much as the latest
       arrivals.
    """
    return _queue(_needs(tables(workload)), norm)


def priced_bound(workload: Workload, norm: float = 2.0) -> float:
    """Return the bound from prices of cores: the Lagrangian dual of the capacity, by a subgradient method.

    For any prices pi(t) >= 0 of a core in slot t a schedule costs sum f^k >= sum over jobs of (f^k + price of
    the cores that it has) - C sum over t of pi(t), as it never has more than C cores in a slot. On the right
    side every job can be minimised on its own: for each completion slot it takes its cheapest slots up to
    then. Thus any prices pi >= 0 give a bound. In 2D memory has a price, too: with at most r cores
    at a time, a job holds at least m / r GB for every core. A job of two phases is relaxed: the first may
    end as late as if the second needed no more than its least number of slots, and the second begin as early
    as if the first had not waited.

    The prices are constant on intervals. The first grid has few, long intervals; the last one has single
    slots, or as many intervals as ``FINEST`` and ``MOST_VISITS`` allow. So the bound of a large workload is
    not the best that prices can give.
    """
    return _priced(_needs(tables(workload)), norm)


class _Needs(NamedTuple):
    """The needs of N jobs in phases 0 and 1 (a phase with 0 slots does not exist)."""

    arrival: Integers  # [N] ascending, from 0
    volume: Integers  # [N, 2] core-slots
    rate: Floats  # [N, 2] most cores at a time
    slots: Integers  # [N, 2] least number
    memory: Integers  # [N] GB
    cores: int
    total_memory: int  # GB of all servers, 0: memory does not count
    limit: int  # slot after which nothing is charged


def _needs(own: Jobs) -> _Needs:
    memory = np.minimum(own.memory, own.declared_memory)
    cores = np.full(len(own.arrival), own.server_cpu.sum())
    if own.kind == "2d":  # those of the servers that have the memory
        order = np.argsort(own.server_memory)
        below = np.concatenate([[0], np.cumsum(own.server_cpu[order])])
        cores = cores - below[np.searchsorted(own.server_memory[order], memory)]
    volume = own.tasks * own.processing * own.cpu
    rate = np.minimum(own.tasks * own.cpu, cores[:, None])
    return _Needs(
        arrival=own.arrival - own.arrival[0],
        volume=volume,
        rate=rate.astype(np.float64),
        slots=-(-volume // np.maximum(rate, 1)),
        memory=memory,
        cores=int(own.server_cpu.sum()),
        total_memory=int(own.server_memory.sum()),
        limit=NEVER,
    )


def _processing(needs: _Needs, norm: float) -> float:
    length = np.minimum(needs.slots.sum(axis=1), needs.limit - needs.arrival)
    total = float((length.astype(np.float64) ** norm).sum())
    exact = norm == int(norm) and total < 2.0**52
    return total if exact else total * (1.0 - ROUNDING)


def _served(needs: _Needs) -> tuple[Integers, list[int]]:
    """Serve shortest remaining work first on one machine for each pooled resource.

    Returns:
        The slots in which jobs end [resources, N], and the work that each resource does in a slot.
    """
    machines = [(needs.volume.sum(axis=1), needs.cores)]
    if needs.total_memory:
        machines.append((needs.memory * needs.slots[:, 0], needs.total_memory))
    done = np.empty((len(machines), len(needs.arrival)), dtype=np.int64)
    for own, (work, speed) in zip(done, machines, strict=True):
        _shortest_first(needs.arrival, work, speed, own)
    return done, [speed for _, speed in machines]


def _queue(needs: _Needs, norm: float) -> float:
    done = np.sort(_served(needs)[0], axis=1)
    order = np.empty(len(needs.arrival), dtype=np.int64)
    total = _charge(needs.arrival, needs.slots.sum(axis=1), done, needs.limit, norm, order)
    return total * (1.0 - ROUNDING)


def _priced(needs: _Needs, norm: float) -> float:
    first = np.stack([needs.arrival, needs.arrival + needs.slots[:, 0]], axis=1)
    done, speeds = _served(needs)
    horizon = int(max((needs.arrival + needs.slots.sum(axis=1)).max(), done.max()))
    capacity = np.array(speeds, dtype=np.float64)
    width = max(-(-horizon // COARSEST), 1)
    narrowest = -(-horizon // FINEST)
    edges = np.append(np.arange(0, horizon, width), horizon)
    price = np.zeros((len(capacity), len(edges) - 1))
    visits = np.array([MOST_VISITS])
    best = 0.0
    while True:
        begin = np.searchsorted(edges, first, side="right") - 1
        ascent = start_ascent(price)
        best = max(best, _ascend(needs, begin, edges, ascent, capacity, norm, visits))
        price = ascent.best
        if width <= narrowest or visits[0] <= 0:
            return best
        width = max(-(-width // FINER), narrowest)
        finer = np.append(np.arange(0, horizon, width), horizon)
        price = np.ascontiguousarray(price[:, np.searchsorted(edges, finer[:-1], side="right") - 1])
        edges = finer


@kernel
def _shortest_first(arrival: Integers, work: Integers, speed: int, done: Integers) -> None:
    """Serve shortest remaining work first on one machine; write to ``done`` the slot in which each job ends.

    The clock counts slots and what is used up of the next one: arrivals in units of work could be too large
    for whole numbers. A job without work ends in the first slot after its arrival.
    """
    count = arrival.shape[0]
    waiting = [(0, 0)]  # numba reads the types off it
    waiting.pop()
    upcoming = t = used = 0
    while upcoming < count or len(waiting) > 0:
        if len(waiting) == 0 and arrival[upcoming] > t:
            t, used = arrival[upcoming], 0
        while upcoming < count and arrival[upcoming] <= t:
            heapq.heappush(waiting, (work[upcoming], upcoming))
            upcoming += 1
        left, j = heapq.heappop(waiting)
        slots = left // speed + 1
        if upcoming < count:
            slots = min(slots, arrival[upcoming] - t)
        served = min(left, slots * speed - used)
        t += (used + served) // speed
        used = (used + served) % speed
        if served < left:
            heapq.heappush(waiting, (left - served, j))
        else:
            done[j] = max(t + (used > 0), arrival[j] + 1)


@kernel
def _charge(
    arrival: Integers, length: Integers, done: Integers, limit: int, norm: float, order: Integers
) -> float:
    """Return the sum of :func:`queue_bound`.

    Args:
        arrival: ascending [N].
        length: slots that each job needs at least [N].
        done: per machine, ascending: slots in which the machine ends jobs [machines, N].
        limit: slot after which nothing is charged.
        norm: k.
        order: scratch space [N].
    """
    count = arrival.shape[0]
    machines = done.shape[0]
    order[:] = np.argsort(arrival + length)
    ended = np.zeros(machines, dtype=np.int64)
    arrived = 0
    freed = 0  # jobs, in the order of ``order``, that could have finished
    sure = 0  # arrived, not freed
    total = 0.0
    t = 0
    visits = 0
    for j in range(count):
        total += power(float(min(length[j], limit - arrival[j])), norm)
    # between two events nothing changes but ages: what is charged is a difference of powers
    while True:
        while arrived < count and arrival[arrived] <= t:
            arrived += 1
            sure += 1
        while freed < count and arrival[order[freed]] + length[order[freed]] <= t:
            freed += 1
            sure -= 1
        least = 0
        until = limit
        for m in range(machines):
            while ended[m] < count and done[m, ended[m]] <= t:
                ended[m] += 1
            least = max(least, arrived - ended[m])
            if ended[m] < count:
                until = min(until, done[m, ended[m]])
        if arrived < count:
            until = min(until, arrival[arrived])
        if freed < count:
            until = min(until, arrival[order[freed]] + length[order[freed]])
        if t >= limit or arrived == freed == count and least == 0:
            return total
        more = least - sure
        if more > 0 and norm == 1.0:
            total += float(more) * (until - t)
        elif more > 0:
            i = arrived - 1
            while more > 0 and visits < MOST_VISITS:
                visits += 1
                if arrival[i] + length[i] <= t:
                    age = float(t - arrival[i])
                    total += power(age + float(until - t), norm) - power(age, norm)
                    more -= 1
                i -= 1
        t = until


class _Taken(NamedTuple):
    """The slots that a job takes while its completion moves: for each phase a heap, the dearest on top.

    A phase is past its first possible completion: it may end in a slot of interval ``at``, of which
    ``slots_left`` slots are left and ``fresh`` are taken, each at the price ``now``.
    """

    key: Floats  # [2, K + 2] of the heap: minus the price of slots,
    item: Integers  # [2, K + 2] and where in ``amount`` they are
    # slots in the heap: at x of those taken first in interval x, at K + 1 + x later
    amount: Floats  # [2, 2 K + 2]
    size: Integers  # [2] of the heap
    at: Integers  # [2]
    slots_left: Floats  # [2]
    fresh: Floats  # [2]
    now: Floats  # [2]
    gain: Floats  # [2] saving per slot by which the phase ends later


@helper
def _put(taken: _Taken, z: int, item: int, price: float, amount: float) -> None:
    """Add ``amount`` slots to the heap of phase z."""
    push(taken.key[z], taken.item[z], taken.size[z], -price, item)
    taken.size[z] += 1
    taken.amount[z, item] = amount


@helper
def _core_price(price: Floats, weight: float, x: int) -> float:
    """Return the price of a core with ``weight`` GB in a slot of interval x; 0 after the last interval."""
    if x >= price.shape[1]:
        return 0.0
    return price[0, x] + (weight * price[1, x] if price.shape[0] == 2 else 0.0)


@helper
def _come_to(taken: _Taken, z: int, x: int, slots_left: float, price: Floats, weight: float) -> None:
    """Let phase z continue in interval x, of which ``slots_left`` slots are left."""
    taken.at[z] = x
    taken.slots_left[z] = slots_left if x < price.shape[1] else np.inf
    taken.now[z] = _core_price(price, weight, x)


@helper
def _take_first(
    needs: _Needs, j: int, begin: Integers, edges: Integers, price: Floats, weight: float, taken: _Taken
) -> tuple[float, float, int]:
    """Let job j take its earliest slots, in each phase as many as it needs at least.

    Returns:
        The number of slots, their price, and the number of runs looked at.
    """
    intervals = price.shape[1]
    slots = 0.0
    cost = 0.0
    steps = 0
    for z in range(2):
        taken.size[z] = 0
        taken.fresh[z] = 0.0
        left = needs.slots[j, z]
        if left == 0:
            continue
        x = begin[j, z]
        t = needs.arrival[j] + (needs.slots[j, 0] if z == 1 else 0)
        rate = needs.rate[j, z]
        slots += left
        spare = left - needs.volume[j, z] / rate  # of the last slot
        while left > 0:
            steps += 1
            n = left
            if x < intervals:
                n = min(left, edges[x + 1] - t)
            v = _core_price(price, weight, x)
            _put(taken, z, x, v, float(n))
            cost += rate * v * n
            left -= n
            t += n
            if x < intervals and t == edges[x + 1]:
                x += 1
        taken.amount[z, taken.item[z, 0]] -= spare
        cost += rate * taken.key[z, 0] * spare
        slots_left = float(edges[x + 1] - t) if x < intervals else np.inf
        _come_to(taken, z, x, slots_left, price, weight)
    return slots, cost, steps


@helper
def _next_run(needs: _Needs, j: int, taken: _Taken) -> float:
    """Set what each phase saves per slot of delay; return for how many slots this holds (inf: for ever)."""
    run = np.inf
    for z in range(2):
        taken.gain[z] = 0.0
        if needs.slots[j, z] > 0:
            run = min(run, taken.slots_left[z])
            if taken.size[z] > 0 and -taken.key[z, 0] > taken.now[z]:
                taken.gain[z] = needs.rate[j, z] * (-taken.key[z, 0] - taken.now[z])
                run = min(run, taken.amount[z, taken.item[z, 0]])
    return run


@helper
def _move_on(
    needs: _Needs, j: int, run: float, edges: Integers, price: Floats, weight: float, taken: _Taken
) -> None:
    """Let job j end ``run`` slots later: it gives up dear slots for the new ones before its end."""
    for z in range(2):
        if needs.slots[j, z] == 0:
            continue
        if taken.gain[z] > 0.0:
            taken.fresh[z] += run
            taken.amount[z, taken.item[z, 0]] -= run
            if taken.amount[z, taken.item[z, 0]] <= 0.0:
                pop(taken.key[z], taken.item[z], taken.size[z])
                taken.size[z] -= 1
        taken.slots_left[z] -= run
        if taken.slots_left[z] <= 0.0:
            x = taken.at[z]
            if taken.fresh[z] > 0.0:
                _put(taken, z, price.shape[1] + 1 + x, taken.now[z], taken.fresh[z])
                taken.fresh[z] = 0.0
            slots_left = float(edges[x + 2] - edges[x + 1]) if x + 1 < price.shape[1] else np.inf
            _come_to(taken, z, x + 1, slots_left, price, weight)


@helper
def _count_use(needs: _Needs, j: int, taken: _Taken, use: Floats) -> None:
    """Add to ``use`` the core-slots and GB-slots of job j in each interval."""
    intervals = use.shape[1]
    for z in range(2):
        for i in range(taken.size[z] + 1):
            x = taken.item[z, i] % (intervals + 1) if i < taken.size[z] else taken.at[z]
            amount = taken.amount[z, taken.item[z, i]] if i < taken.size[z] else taken.fresh[z]
            if x < intervals and amount > 0.0:
                use[0, x] += needs.rate[j, z] * amount
                if use.shape[0] == 2:
                    use[1, x] += needs.memory[j] * amount


@kernel
def _dual(
    needs: _Needs,
    begin: Integers,
    edges: Integers,
    price: Floats,
    norm: float,
    taken: _Taken,
    use: Floats,
    visits: Integers,
) -> tuple[float, float]:
    """Return the bound that prices give, and the sum of the absolute values of its terms.

    Each job is passed through twice. The first pass moves its completion from the earliest one on, in runs
    of slots in which every further slot saves the same, and finds the best one; the second pass repeats this
    up to the best completion and counts what the job takes.

    Args:
        needs: of the jobs.
        begin: interval of the first slot in which a phase may run [N, 2].
        edges: interval x is the slots after edges[x] up to edges[x + 1]; slots after the last interval have
            price 0 [K + 1].
        price: of a core, and of a GB in a slot [1 or 2, K].
        norm: k.
        taken: scratch space.
        use: written: cores and GB times slots that the jobs take in each interval [1 or 2, K].
        visits: reduced by the work done [1].
    """
    two = price.shape[0] == 2
    total = 0.0
    steps = 0
    for x in range(price.shape[1]):
        use[0, x] = 0.0
        cost = price[0, x] * needs.cores
        if two:
            use[1, x] = 0.0
            cost += price[1, x] * needs.total_memory
        total -= cost * (edges[x + 1] - edges[x])
    scale = -total
    for j in range(needs.arrival.shape[0]):
        weight = needs.memory[j] / needs.rate[j, 0] if two else 0.0
        # a job that never ends, or ends after the limit, takes no cores
        best = power(float(needs.limit - needs.arrival[j]), norm)
        end = 0.0
        f, cost, looked = _take_first(needs, j, begin, edges, price, weight, taken)
        steps += looked
        scale += power(f, norm) + cost
        if power(f, norm) + cost < best:
            best = power(f, norm) + cost
            end = f
        while power(f, norm) < best:
            steps += 1
            run = _next_run(needs, j, taken)
            if run == np.inf:
                break
            saved = taken.gain[0] + taken.gain[1]
            if saved > 0.0:
                # f^k less what is saved is convex
                low = f + run
                high = low
                if run > 1.0 and norm > 1.0:
                    turning = saved / norm if norm == 2.0 else (saved / norm) ** (1.0 / (norm - 1.0))
                    low = min(max(math.floor(turning), f), f + run)
                    high = min(max(math.ceil(turning), f), f + run)
                for c in (low, high):
                    reached = power(c, norm) + cost - saved * (c - f)
                    if reached < best:
                        best = reached
                        end = c
            cost -= saved * run
            f += run
            _move_on(needs, j, run, edges, price, weight, taken)
        total += best
        if end == 0.0:
            continue
        f, _, looked = _take_first(needs, j, begin, edges, price, weight, taken)
        steps += looked
        while f < end:
            steps += 1
            run = min(_next_run(needs, j, taken), end - f)
            f += run
            _move_on(needs, j, run, edges, price, weight, taken)
        _count_use(needs, j, taken, use)
    visits[0] -= steps
    return total, scale


@kernel
def _ascend(
    needs: _Needs,
    begin: Integers,
    edges: Integers,
    ascent: Ascent,
    capacity: Floats,
    norm: float,
    visits: Integers,
) -> float:
    """Return the best bound found by an ascent (:mod:`schedgym.solvers.ascent`).

    Args:
        needs: of the jobs.
        begin: as :func:`_dual` takes it.
        edges: as :func:`_dual` takes it.
        ascent: changed.
        capacity: cores, and GB [1 or 2].
        norm: k.
        visits: reduced by the work done; the ascent stops when none is left [1].
    """
    intervals = ascent.trial.shape[1]
    taken = _Taken(
        np.empty((2, intervals + 2)),
        np.empty((2, intervals + 2), dtype=np.int64),
        np.empty((2, 2 * intervals + 2)),
        np.zeros(2, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
        np.zeros(2),
        np.zeros(2),
        np.zeros(2),
        np.zeros(2),
    )
    slots = np.empty(intervals)
    for x in range(intervals):
        slots[x] = edges[x + 1] - edges[x]
    for _ in range(STEPS):
        reached, scale = _dual(needs, begin, edges, ascent.trial, norm, taken, ascent.use, visits)
        reached -= ROUNDING * scale
        if not move_prices(ascent, reached, 0.0, capacity, slots) or visits[0] <= 0:
            break
    return ascent.numbers[0]
