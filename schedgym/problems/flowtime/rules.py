"""The paper's allocations and their peers as compiled functions of one environment and one slot.

The baseline policies call them on an observation, the environment in its views ``priority`` and ``rule``.
They allocate nothing.

One environment has n visible jobs (rows, in order of arrival, which decides ties) and M servers. The
arrays hold n rows or more, of which the first n are read and written.

Source: paper 000 (``ocorp``: Lemma 1 and Eq. 22; ``ocorp+``: section IV-B; ``ocorp+m``: Algorithm 1;
locality: Eq. 45). The solvers are in ``schedgym.solvers``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import F8_1, F8_2, I8_1, I8_2, helper, pure_kernel
from schedgym.solvers.fixed_point import common_multiple, fixed, scale_for, variable
from schedgym.solvers.knapsack import KnapsackScratch, knapsack_into
from schedgym.solvers.transport import (
    FORBIDDEN,
    TransportScratch,
    break_ties,
    transport_into,
)

__all__ = [
    "FRESH",
    "HOLD",
    "LOCALITY",
    "PLACE",
    "RULES",
    "STICKY",
    "Scratch",
    "Visible",
    "allocate",
    "allocate_by_priority",
    "allocate_by_rule",
    "cheapest_cores",
    "fill",
    "locality_rows",
    "make_scratch",
    "memory_allocation",
    "order_by",
    "order_by_rule",
    "pack_cores",
    "place",
    "plus_allocation",
    "set_coefficients",
    "spread",
]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

RULES: tuple[str, ...] = ("fifo", "srpt", "srvf", "svf", "srf", "tetris", "drf")
FIFO, SRPT, SRVF, SVF, SRF, TETRIS, DRF = range(len(RULES))

#: how cores come to servers: packed anew, packed around the old places, by free cores and memory, by latency
FRESH, STICKY, PLACE, LOCALITY = range(4)

HOLD = -1.0  # a job with this score, or a lower one, gets nothing
MOST_MULTIPLE = 1 << 24  # common denominators of costs up to here are exact


class Visible(NamedTuple):
    """The visible jobs of one environment; arrays that the kind of job has no use for may have length 0.

    ``half`` is the room for the tasks of a phase: the tasks of phase z begin at z * half.
    """

    demand: I8_1  # [rows] plain: declared cores
    memory: I8_1  # [rows] 2D: declared GB
    slots_left: F8_1  # [rows]
    remaining: F8_1  # [rows] core-slots
    volume: I8_1  # [rows] core-slots
    cap: I8_1  # [rows] most cores now
    held: I8_2  # [rows, M] cores in the slot before
    phase: I8_1  # [rows] mapreduce: 0 or 1
    tasks: I8_2  # [rows, 2]
    phase_demand: I8_2  # [rows, 2] cores of a task
    task_remaining: I8_2  # [rows, 2 * half] core-slots
    latency: F8_2  # [rows, 2 * half * M]


class Scratch(NamedTuple):
    """Work space of this module."""

    order: I8_1  # [rows]
    key: F8_1  # [rows]
    cores: I8_1  # [rows]
    left: I8_1  # [rows]
    waiting: I8_1  # [rows]
    free: I8_1  # [M]
    room: I8_1  # [M] GB
    mark: I8_1  # [M]
    x: I8_2  # [rows, M], or empty: only memory_allocation needs it


def make_scratch(rows: int, servers: int, *, memory: bool = False) -> Scratch:
    """Work space for up to ``rows`` jobs on ``servers`` servers; ``memory``: for memory_allocation, too."""
    return Scratch(
        order=np.zeros(rows, dtype=np.int64),
        key=np.zeros(rows),
        cores=np.zeros(rows, dtype=np.int64),
        left=np.zeros(rows, dtype=np.int64),
        waiting=np.zeros(rows, dtype=np.int64),
        free=np.zeros(servers, dtype=np.int64),
        room=np.zeros(servers, dtype=np.int64),
        mark=np.zeros(servers, dtype=np.int64),
        x=np.zeros((rows if memory else 0, servers), dtype=np.int64),
    )


def locality_rows(rows: int, half: int, cores: int) -> int:
    """How many rows LOCALITY needs in a TransportScratch: of the tasks only those with cores count."""
    return min(2 * half * rows, cores)


@helper
def order_by(order: Integers, key: Floats, n: int) -> None:
    """Sort the rows in order[:n] by key, ties by row (Shell's method)."""
    gap = 1
    while 9 * gap < 4 * n:  # Tokuda's gaps, about
        gap = (9 * gap + 3) // 4
    while True:
        for x in range(gap, n):
            i = order[x]
            y = x
            while y >= gap and (
                key[order[y - gap]] > key[i] or (key[order[y - gap]] == key[i] and order[y - gap] > i)
            ):
                order[y] = order[y - gap]
                y -= gap
            order[y] = i
        if gap == 1:
            break
        gap = max(4 * gap // 9, 1)


@helper
def _demand(phases: Any, r: int, rows: Visible) -> int:
    """Declared cores of a job, or those of a task of its phase."""
    return rows.phase_demand[r, rows.phase[r]] if phases else rows.demand[r]


@helper
def _clear(n: int, granted: Integers) -> None:
    for r in range(n):
        for i in range(granted.shape[1]):
            granted[r, i] = 0


# From an order to cores, from cores to servers ------------------------------------------------


@helper
def fill(n: int, size: int, order: Integers, cap: Integers, cpu: Integers, cores: Integers) -> None:
    """Give the jobs of order[:size] their caps while there are cores, the last one what is left (Eq. 22)."""
    left = 0
    for i in range(cpu.shape[0]):
        left += cpu[i]
    for r in range(n):
        cores[r] = 0
    for x in range(size):
        if left == 0:
            break
        r = order[x]
        cores[r] = min(cap[r], left)
        left -= cores[r]


@helper
def _freest(free: Integers) -> int:
    """The server with the most free cores, ties: the lower one."""
    best = 0
    for i in range(1, free.shape[0]):
        if free[i] > free[best]:
            best = i
    return best


@pure_kernel
def pack_cores(
    sticky: bool, n: int, cores: Integers, cpu: Integers, held: Integers, scratch: Scratch, granted: Integers
) -> None:
    """Put the cores of each job on servers.

    Servers by capacity, largest first: on each the jobs that fit whole, by decreasing cores. What is left,
    by decreasing cores, is split over the servers with the most free cores. Ties: lower server, lower row.

    Args:
        sticky: before that each job keeps min(old, new) cores in place, on old servers by decreasing cores.
        n: jobs.
        cores: [>= n] in all at most those of the servers.
        cpu: [M].
        held: [>= n, M] old places, in all at most ``cpu``.
        scratch: work space; ``cores`` may be its own.
        granted: [>= n, M] written, n rows.
    """
    servers = cpu.shape[0]
    left = scratch.left
    free = scratch.free
    waiting = scratch.waiting
    mark = scratch.mark
    _clear(n, granted)
    for i in range(servers):
        free[i] = cpu[i]
        mark[i] = 0
    for r in range(n):
        left[r] = cores[r]
        if sticky and left[r] > 0:
            while left[r] > 0:
                best = -1
                for i in range(servers):
                    if held[r, i] > granted[r, i] and (best < 0 or held[r, i] > held[r, best]):
                        best = i
                if best < 0:
                    break
                amount = min(held[r, best], left[r])
                granted[r, best] = amount
                left[r] -= amount
                free[best] -= amount
    count = variable(0)
    for r in range(n):
        if left[r] > 0:
            waiting[count] = r
            scratch.key[r] = -left[r]
            count += 1
    order_by(waiting, scratch.key, count)
    for _ in range(servers):
        if count == 0:
            break
        largest = -1
        for i in range(servers):
            if mark[i] == 0 and (largest < 0 or cpu[i] > cpu[largest]):
                largest = i
        mark[largest] = 1
        kept = 0
        for x in range(count):
            r = waiting[x]
            if left[r] <= free[largest]:
                granted[r, largest] += left[r]
                free[largest] -= left[r]
                left[r] = 0
            else:
                waiting[kept] = r
                kept += 1
        count = kept
    for x in range(count):
        r = waiting[x]
        while left[r] > 0:
            i = _freest(free)
            amount = min(left[r], free[i])
            granted[r, i] += amount
            left[r] -= amount
            free[i] -= amount


@pure_kernel
def place(
    n: int,
    size: int,
    order: Integers,
    cap: Integers,
    reserve: Integers,
    cpu: Integers,
    memory: Integers,
    scratch: Scratch,
    granted: Integers,
) -> None:
    """Add cores greedily in 2D: the jobs in order, each on the servers with most free cores.

    A server is open to a job if it hosts a share of it already, or has the job's whole memory free. Ties:
    lower server.

    Args:
        n: jobs.
        size: jobs that may get cores.
        order: [>= size] their rows.
        cap: [>= n] most cores in all.
        reserve: [>= n] GB on every server with a share of the job.
        cpu: [M].
        memory: [M] GB.
        scratch: work space.
        granted: [>= n, M] what is placed already; added to.
    """
    servers = cpu.shape[0]
    free = scratch.free
    room = scratch.room
    mark = scratch.mark
    total = variable(0)
    for i in range(servers):
        free[i] = cpu[i]
        room[i] = memory[i]
    for r in range(n):
        for i in range(servers):
            if granted[r, i] > 0:
                free[i] -= granted[r, i]
                room[i] -= reserve[r]
    for i in range(servers):
        total += free[i]
    for x in range(size):
        if total == 0:
            break
        r = order[x]
        wanted = cap[r]
        for i in range(servers):
            wanted -= granted[r, i]
            mark[i] = 0
        while wanted > 0:
            best = -1
            for i in range(servers):
                if (
                    mark[i] == 0
                    and free[i] > 0
                    and (granted[r, i] > 0 or reserve[r] <= room[i])
                    and (best < 0 or free[i] > free[best])
                ):
                    best = i
            if best < 0:
                break
            mark[best] = 1
            amount = min(free[best], wanted)
            if granted[r, best] == 0:
                room[best] -= reserve[r]
            granted[r, best] += amount
            free[best] -= amount
            wanted -= amount
            total -= amount


@pure_kernel
def _place_by_latency(
    n: int, cores: Integers, rows: Visible, cpu: Integers, net: TransportScratch, granted: Integers
) -> None:
    """Put the cores of MapReduce jobs where the sum of latency * cores / demand is least (Eq. 45).

    Tasks get a job's cores in index order. Ties: the lexicographically greatest, by task, then server.
    """
    servers = cpu.shape[0]
    half = rows.task_remaining.shape[1] // 2
    count = variable(0)
    total = variable(0)
    multiple = 1
    largest = 0.0
    _clear(n, granted)
    for r in range(n):
        left = cores[r]
        z = rows.phase[r]
        demand = rows.phase_demand[r, z]
        if left > 0:
            multiple = common_multiple(multiple, demand, MOST_MULTIPLE)
        for q in range(rows.tasks[r, z]):
            if left == 0:
                break
            grant = min(min(demand, rows.task_remaining[r, z * half + q]), left)
            if grant > 0:
                net.supply[count] = grant
                net.owner[count] = r
                net.price[count] = z * half + q
                count += 1
                total += grant
                left -= grant
                for i in range(servers):
                    largest = max(largest, rows.latency[r, (z * half + q) * servers + i])
    scale = scale_for(largest * max(multiple, 1), 2 * servers + 4)
    for x in range(count):
        r = net.owner[x]
        demand = rows.phase_demand[r, rows.phase[r]]
        net.base[x] = 0
        net.slope[x] = 0
        for i in range(servers):
            latency = rows.latency[r, net.price[x] * servers + i]
            if multiple > 0:
                net.linear[x, i] = fixed(latency, scale) * (multiple // demand)
            else:
                net.linear[x, i] = fixed(latency / demand, scale)
    transport_into(count, total, cpu, net)
    break_ties(count, cpu, net)
    for x in range(count):
        for i in range(servers):
            granted[net.owner[x], i] += net.units[x, i]


@helper
def spread(
    how: int,
    n: int,
    cores: Integers,
    rows: Visible,
    cpu: Integers,
    scratch: Scratch,
    net: TransportScratch,
    granted: Integers,
) -> None:
    """From cores of the jobs to servers, but for PLACE."""
    if how == LOCALITY:
        _place_by_latency(n, cores, rows, cpu, net, granted)
    else:
        pack_cores(how == STICKY, n, cores, cpu, rows.held, scratch, granted)


@helper
def allocate(
    how: int,
    n: int,
    size: int,
    rows: Visible,
    cpu: Integers,
    memory: Integers,
    scratch: Scratch,
    net: TransportScratch,
    granted: Integers,
) -> None:
    """The cores of each job on each server, for the first ``size`` rows of ``scratch.order``; others hold.

    Arguments as in :func:`allocate_by_priority`.
    """
    if how == PLACE:
        _clear(n, granted)
        place(n, size, scratch.order, rows.cap, rows.memory, cpu, memory, scratch, granted)
    else:
        fill(n, size, scratch.order, rows.cap, cpu, scratch.cores)
        spread(how, n, scratch.cores, rows, cpu, scratch, net, granted)


@pure_kernel
def allocate_by_priority(
    how: int,
    phases: bool,
    n: int,
    scores: Any,
    rows: Visible,
    cpu: Integers,
    memory: Integers,
    scratch: Scratch,
    net: TransportScratch,
    granted: Integers,
) -> None:
    """Allocate in the order of scores: the higher first, ties by row; those at HOLD or below get nothing.

    Args:
        how: FRESH or STICKY: cores are filled, then packed; PLACE: by free cores and memory; LOCALITY: they
            are filled, then placed by latency.
        phases: whether the jobs are MapReduce jobs.
        n: jobs, 0 or more.
        scores: [>= n].
        rows: the visible jobs.
        cpu: [M] cores of the servers.
        memory: [M] GB; only PLACE reads it.
        scratch: of :func:`make_scratch`.
        net: of :func:`~schedgym.solvers.transport.make_transport_scratch`; only LOCALITY uses it,
            with :func:`locality_rows` rows.
        granted: [>= n, M] written, n rows: cores.
    """
    size = variable(0)
    for r in range(n):
        if scores[r] > HOLD:
            scratch.order[size] = r
            scratch.key[r] = -scores[r]
            size += 1
    order_by(scratch.order, scratch.key, size)
    allocate(how, n, size, rows, cpu, memory, scratch, net, granted)


# Rules ----------------------------------------------------------------------------------------


@pure_kernel
def order_by_rule(rule: int, phases: bool, n: int, rows: Visible, scratch: Scratch) -> None:
    """Put all n rows into ``scratch.order`` by a rule of :data:`RULES` other than tetris and drf."""
    for r in range(n):
        scratch.order[r] = r
        if rule == SRPT:
            scratch.key[r] = rows.slots_left[r]
        elif rule == SRVF:
            scratch.key[r] = rows.remaining[r]
        elif rule == SVF:
            scratch.key[r] = rows.volume[r]
        elif rule == SRF:
            scratch.key[r] = _demand(phases, r, rows)
        else:
            scratch.key[r] = 0.0
    order_by(scratch.order, scratch.key, n)


@helper
def _over_divisor(a: int, b: int) -> float:
    """The square of a over the greatest common divisor of a and b, at least 1 both."""
    x = a
    y = b
    while y > 0:
        x, y = y, x % y
    return float(a // x) * float(a // x)


@pure_kernel
def _tetris(
    memory_counts: bool,
    phases: bool,
    n: int,
    rows: Visible,
    cpu: Integers,
    memory: Integers,
    scratch: Scratch,
    granted: Integers,
) -> None:
    """The allocation of Tetris (Grandl et al. 2014).

    Again and again the pair of job and server with the greatest score gets min(cap, free cores). The
    alignment of a pair is d/C free/C (+ m/M free memory/M), where C and M are those of all servers. Its
    score is alignment / mean alignment - remaining volume / mean remaining volume; the means are over the
    pairs that are still open. Ties: earlier row, lower server.
    """
    servers = cpu.shape[0]
    free = scratch.free
    room = scratch.room
    left = scratch.left
    waiting = scratch.waiting
    all_cores = 0
    all_memory = 1
    for i in range(servers):
        free[i] = cpu[i]
        all_cores += cpu[i]
        room[i] = 0
        if memory_counts:
            room[i] = memory[i]
            all_memory += memory[i]
    cores_weight = 1.0
    memory_weight = 0.0
    if memory_counts:
        all_memory -= 1
        cores_weight = _over_divisor(all_memory, all_cores)
        memory_weight = _over_divisor(all_cores, all_memory)
    _clear(n, granted)
    count = n
    for r in range(n):
        left[r] = rows.cap[r]
        waiting[r] = r
    while True:
        # compared are left * (sum of alignments) - alignment * (sum of lefts), whole where volumes are
        alignments = 0.0
        volumes = 0.0
        kept = 0
        for x in range(count):
            r = waiting[x]
            demand = float(_demand(phases, r, rows)) * cores_weight
            reserve = 0.0
            open_servers = 0
            if memory_counts:
                reserve = float(rows.memory[r]) * memory_weight
            for i in range(servers):
                if free[i] > 0 and (not memory_counts or rows.memory[r] <= room[i]):
                    alignments += demand * free[i] + reserve * room[i]
                    open_servers += 1
            volumes += rows.remaining[r] * open_servers
            if open_servers > 0:
                waiting[kept] = r
                kept += 1
        count = kept
        best = -1
        where = -1
        least = 0.0
        for x in range(count):
            r = waiting[x]
            demand = float(_demand(phases, r, rows)) * cores_weight
            reserve = 0.0
            if memory_counts:
                reserve = float(rows.memory[r]) * memory_weight
            for i in range(servers):
                if free[i] > 0 and (not memory_counts or rows.memory[r] <= room[i]):
                    alignment = demand * free[i] + reserve * room[i]
                    badness = rows.remaining[r] * alignments - alignment * volumes
                    if best < 0 or badness < least:
                        best = r
                        where = i
                        least = badness
        if best < 0:
            break
        amount = min(left[best], free[where])
        granted[best, where] += amount
        free[where] -= amount
        left[best] -= amount
        if memory_counts:
            room[where] -= rows.memory[best]
        if left[best] == 0:
            kept = 0
            for x in range(count):
                if waiting[x] != best:
                    waiting[kept] = waiting[x]
                    kept += 1
            count = kept


@helper
def _host(memory_counts: Any, r: int, rows: Visible, scratch: Scratch, granted: Integers) -> int:
    """Of the servers that a job is on, else of those open to it, that with most free cores; -1 if none."""
    best = -1
    for i in range(scratch.free.shape[0]):
        if granted[r, i] > 0 and scratch.free[i] > 0:
            if best < 0 or scratch.free[i] > scratch.free[best]:
                best = i
    if best < 0:
        for i in range(scratch.free.shape[0]):
            if scratch.free[i] > 0 and (not memory_counts or rows.memory[r] <= scratch.room[i]):
                if best < 0 or scratch.free[i] > scratch.free[best]:
                    best = i
    return best


@pure_kernel
def _drf(
    memory_counts: bool,
    n: int,
    rows: Visible,
    cpu: Integers,
    memory: Integers,
    scratch: Scratch,
    granted: Integers,
) -> None:
    """The allocation of dominant resource fairness (Ghodsi et al. 2011), by progressive filling.

    The next core goes to the job with the least dominant share, max(cores/C, memory reserved/M), that can
    take one (ties: earlier row); of the servers it is on already that have a core free, else of those with
    a core and its memory free, it takes the one with most free cores (ties: lower server).
    """
    servers = cpu.shape[0]
    free = scratch.free
    room = scratch.room
    left = scratch.left
    waiting = scratch.waiting
    share = scratch.cores
    all_cores = 0
    all_memory = 0
    for i in range(servers):
        free[i] = cpu[i]
        all_cores += cpu[i]
        room[i] = 0
        if memory_counts:
            room[i] = memory[i]
            all_memory += memory[i]
    _clear(n, granted)
    count = n
    for r in range(n):
        left[r] = rows.cap[r]
        waiting[r] = r
        share[r] = 0
    while count > 0:
        place_in_list = 0
        for x in range(1, count):
            if share[waiting[x]] < share[waiting[place_in_list]]:
                place_in_list = x
        r = waiting[place_in_list]
        i = -1
        if left[r] > 0:
            i = _host(memory_counts, r, rows, scratch, granted)
        if i < 0:  # for good: free cores and memory only shrink
            count -= 1
            for x in range(place_in_list, count):
                waiting[x] = waiting[x + 1]
            continue
        if granted[r, i] == 0 and memory_counts:
            room[i] -= rows.memory[r]
        granted[r, i] += 1
        free[i] -= 1
        left[r] -= 1
        if memory_counts:
            hosts = 0
            for k in range(servers):
                if granted[r, k] > 0:
                    hosts += 1
            share[r] = max((rows.cap[r] - left[r]) * all_memory, rows.memory[r] * hosts * all_cores)
        else:
            share[r] = rows.cap[r] - left[r]


@pure_kernel
def allocate_by_rule(
    rule: int,
    how: int,
    phases: bool,
    n: int,
    rows: Visible,
    cpu: Integers,
    memory: Integers,
    scratch: Scratch,
    net: TransportScratch,
    granted: Integers,
) -> None:
    """Allocate as a rule of :data:`RULES` does.

    fifo: by arrival; srpt: by remaining slots; srvf: by remaining core-slots; svf: by all core-slots; srf: by
    demand (of the phase). tetris and drf choose servers, too; without memory only their cores per job
    count, which are then packed. Other arguments as in :func:`allocate_by_priority`.

    Args:
        rule: index into :data:`RULES`.
        how: as there.
        phases: as there.
        n: as there.
        rows: as there.
        cpu: as there.
        memory: as there.
        scratch: as there.
        net: as there.
        granted: as there.
    """
    if rule == TETRIS or rule == DRF:
        if rule == TETRIS:
            _tetris(how == PLACE, phases, n, rows, cpu, memory, scratch, granted)
        else:
            _drf(how == PLACE, n, rows, cpu, memory, scratch, granted)
        if how != PLACE:
            for r in range(n):
                scratch.cores[r] = 0
                for i in range(cpu.shape[0]):
                    scratch.cores[r] += granted[r, i]
            spread(how, n, scratch.cores, rows, cpu, scratch, net, granted)
        return
    order_by_rule(rule, phases, n, rows, scratch)
    allocate(how, n, n, rows, cpu, memory, scratch, net, granted)


# The OCORP family -----------------------------------------------------------------------------


@helper
def power(x: float, exponent: float) -> float:
    """x^exponent, for x >= 0."""
    if exponent == 2.0:
        return x * x
    if exponent == 1.0:
        return x
    return x**exponent


@pure_kernel
def set_coefficients(
    phases: bool,
    n: int,
    norm: float,
    age: Integers,
    processing: Integers,
    phase_processing: Integers,
    rows: Visible,
    prices: Floats,
    coefficient: Floats,
    omega: Floats,
) -> None:
    """What a slot of service costs each job: the weight of Eq. 5 (MapReduce: of problem P5) minus its price.

    weight = age^k / p + p^(k-1), MapReduce: (2 age^k + (p^m + p^r)^k) / (2 n p) with the tasks of the phase.

    Args:
        phases: whether the jobs are MapReduce jobs.
        n: jobs.
        norm: k, at least 1.
        age: [>= n] slots since the arrival.
        processing: [>= n] slots; plain.
        phase_processing: [>= n, 2] slots of a task; mapreduce.
        rows: the visible jobs.
        prices: [>= n] lambda; a job without one, NaN, gets its weight, "the weight at its first slot".
        coefficient: [>= n] written: weight - lambda.
        omega: [>= n] written: the same per core.
    """
    for r in range(n):
        if phases:
            z = rows.phase[r]
            length = phase_processing[r, 0]
            if rows.tasks[r, 1] > 0:
                length += phase_processing[r, 1]
            weight = (2.0 * power(float(age[r]), norm) + power(float(length), norm)) / float(
                2 * rows.tasks[r, z] * phase_processing[r, z]
            )
        else:
            p = float(processing[r])
            weight = power(float(age[r]), norm) / p + power(p, norm - 1.0)
        if prices[r] != prices[r]:
            prices[r] = weight
        coefficient[r] = weight - prices[r]
        omega[r] = coefficient[r] / _demand(phases, r, rows)


@helper
def _plus_scale(
    n: int,
    terms: int,
    alpha: float,
    coefficient: Floats,
    rows: Visible,
    age: Integers,
    multiple: int,
) -> float:
    """The scale of the costs of ocorp+, which are multiplied by ``multiple``."""
    largest = 0.0
    for r in range(n):
        d = float(rows.demand[r])
        cost = abs(coefficient[r]) / d
        if age[r] > 1:
            old = 0
            for i in range(rows.held.shape[1]):
                old += rows.held[r, i]
            cost += alpha * (2 * rows.cap[r] + 1 + 2 * old) / (d * d)
        largest = max(largest, cost)
    return scale_for(largest * multiple, terms)


@helper
def _plus_multiple(n: int, rows: Visible, age: Integers) -> int:
    """A common denominator of the costs of ocorp+, or 0 if there is none that is small."""
    multiple = 1
    for r in range(n):
        d = rows.demand[r]
        multiple = common_multiple(multiple, d * d if age[r] > 1 else d, MOST_MULTIPLE)
    return multiple


@helper
def _plus_base(r: int, scale: float, multiple: int, coefficient: Floats, rows: Visible) -> int:
    """The cost coef / d as a whole number."""
    d = rows.demand[r]
    return fixed(coefficient[r] * (multiple // d) if multiple > 0 else coefficient[r] / d, scale)


@helper
def _plus_weight(r: int, scale: float, multiple: int, alpha: float, rows: Visible, age: Integers) -> int:
    """The cost alpha / d^2 as a whole number; 0 in a job's first slot."""
    if age[r] <= 1:
        return 0
    d = rows.demand[r]
    return fixed(alpha, scale) * (multiple // (d * d)) if multiple > 0 else fixed(alpha / (d * d), scale)


@pure_kernel
def plus_allocation(
    literal: bool,
    n: int,
    alpha: float,
    coefficient: Floats,
    age: Integers,
    rows: Visible,
    cpu: Integers,
    net: TransportScratch,
    granted: Integers,
) -> None:
    """The slot of ocorp+: min sum coef y + alpha sum over servers ((u - u_prev) / d)^2, exactly.

    The cost of a core is coef/d + alpha (2q + 1 - 2 u_prev) / d^2, which grows with q: a transportation
    problem with convex unit costs. Of the optima it is the lexicographically greatest, by row, then server.

    Args:
        literal: serve only what lowers the objective, else as much as fits.
        n: jobs.
        alpha: weight of the switching cost, above 0.
        coefficient: [>= n] weight - lambda.
        age: [>= n] jobs of age 1 have no switching cost.
        rows: plain jobs.
        cpu: [M].
        net: of make_transport_scratch (rows, M).
        granted: [>= n, M] written, n rows.

    Source: paper 000, section IV-B (Eq. 31 and 32).
    """
    servers = cpu.shape[0]
    multiple = _plus_multiple(n, rows, age)
    scale = _plus_scale(n, 2 * servers + 4, alpha, coefficient, rows, age, max(multiple, 1))
    wanted = 0
    for r in range(n):
        net.supply[r] = rows.cap[r]
        wanted += rows.cap[r]
        net.base[r] = _plus_base(r, scale, multiple, coefficient, rows)
        weight = _plus_weight(r, scale, multiple, alpha, rows, age)
        net.slope[r] = 2 * weight
        for i in range(servers):
            net.linear[r, i] = weight * (1 - 2 * rows.held[r, i])
    total = variable(0)
    for i in range(servers):
        total += cpu[i]
    if literal:
        total = variable(-1)
    elif wanted < total:
        total = wanted
    transport_into(n, total, cpu, net)
    break_ties(n, cpu, net)
    for r in range(n):
        for i in range(servers):
            granted[r, i] = net.units[r, i]


@helper
def _sift(root: int, count: int, heap: Integers, cost: Integers) -> None:
    """Let a row sink in the heap of the least cost, ties: the lower row first."""
    row = heap[root]
    while True:
        child = 2 * root + 1
        if child >= count:
            break
        a = heap[child]
        if child + 1 < count:
            b = heap[child + 1]
            if cost[b] < cost[a] or (cost[b] == cost[a] and b < a):
                child += 1
                a = b
        if cost[row] < cost[a] or (cost[row] == cost[a] and row < a):
            break
        heap[root] = a
        root = child
    heap[root] = row


@pure_kernel
def cheapest_cores(
    literal: bool,
    n: int,
    alpha: float,
    coefficient: Floats,
    age: Integers,
    rows: Visible,
    cpu: Integers,
    scratch: Scratch,
    cores: Integers,
) -> None:
    """The variant of ocorp+ that charges the change of a job's cores in all: take the cheapest cores.

    Arguments as in :func:`plus_allocation`. Ties: lower row.

    Args:
        literal: as there.
        n: as there.
        alpha: as there.
        coefficient: as there.
        age: as there.
        rows: as there.
        cpu: as there.
        scratch: work space; ``cores`` may be its own.
        cores: [>= n] written.
    """
    multiple = _plus_multiple(n, rows, age)
    scale = _plus_scale(n, 4, alpha, coefficient, rows, age, max(multiple, 1))
    heap = scratch.waiting
    cost = scratch.left
    count = variable(0)
    for r in range(n):
        cores[r] = 0
        old = 0
        for i in range(cpu.shape[0]):
            old += rows.held[r, i]
        weight = _plus_weight(r, scale, multiple, alpha, rows, age)
        cost[r] = _plus_base(r, scale, multiple, coefficient, rows) + weight * (1 - 2 * old)
        if rows.cap[r] > 0:
            heap[count] = r
            count += 1
    for root in range(count // 2 - 1, -1, -1):
        _sift(root, count, heap, cost)
    total = variable(0)
    for i in range(cpu.shape[0]):
        total += cpu[i]
    while count > 0 and total > 0:
        r = heap[0]
        if literal and cost[r] >= 0:
            break
        cores[r] += 1
        total -= 1
        if cores[r] == rows.cap[r]:
            count -= 1
            heap[0] = heap[count]
        else:
            cost[r] += 2 * _plus_weight(r, scale, multiple, alpha, rows, age)
        if count > 0:
            _sift(0, count, heap, cost)


@helper
def _keep_by_value(
    n: int, i: int, x: Integers, value: Integers, reserve: Integers, memory: Integers, bag: KnapsackScratch
) -> None:
    """Choose which jobs with cores on server i in ``x`` get its memory."""
    count = variable(0)
    for r in range(n):
        if x[r, i] > 0:
            bag.item[count] = r
            bag.value[count] = value[r] * x[r, i]
            bag.weight[count] = reserve[r]
            count += 1
    knapsack_into(count, memory[i], bag)
    for y in range(count):
        if bag.taken[y] == 0:
            x[bag.item[y], i] = 0


@pure_kernel
def memory_allocation(
    literal: bool,
    backfill: bool,
    sticky: bool,
    n: int,
    omega: Floats,
    rows: Visible,
    cpu: Integers,
    memory: Integers,
    scratch: Scratch,
    net: TransportScratch,
    bag: KnapsackScratch,
    granted: Integers,
) -> int:
    """The slot of ocorp+m: cores x and servers z in turn, until nothing changes.

    The first x is fill and pack in order of omega; z is per server a knapsack on memory with the value of
    the cores there; later x are the exact optimum on the servers that z left a job (cores of value v: a
    transportation problem), unless that is no better. A core is worth -omega, plus what lifts all visible
    jobs to 1 at least. Then the jobs get what is free, as in :func:`place`.

    Args:
        literal: only jobs with omega < 0, and without the bonus.
        backfill: whether they get what is free.
        sticky: of the first packing.
        n: jobs.
        omega: [>= n] of :func:`set_coefficients`.
        rows: plain jobs with memory.
        cpu: [M].
        memory: [M] GB.
        scratch: of :func:`make_scratch` with ``memory``.
        net: of make_transport_scratch (rows, M).
        bag: of make_knapsack_scratch, for the jobs with cores on one server and its GB.
        granted: [>= n, M] written, n rows.

    Returns:
        The number of rounds, each an x and the z after it; the last one changes nothing.

    Source: paper 000, Algorithm 1. Deviations: the bonus, without which it idles; the old x is kept unless
    the new one is better; backfill.
    """
    servers = cpu.shape[0]
    order = scratch.order
    value = scratch.waiting
    x = scratch.x
    size = variable(0)
    total = variable(0)
    for i in range(servers):
        total += cpu[i]
    largest = 0.0
    highest = -1.0
    for r in range(n):
        if not literal or omega[r] < 0.0:
            largest = max(largest, abs(omega[r]))
            highest = max(highest, omega[r])
            order[size] = r
            size += 1
    order_by(order, omega, size)
    fill(n, size, order, rows.cap, cpu, scratch.cores)
    pack_cores(sticky, n, scratch.cores, cpu, rows.held, scratch, x)
    scale = scale_for(largest if literal else 2.0 * largest + 1.0, max(total, 2 * servers + 4))
    bonus = 0
    if not literal:
        bonus = max(0, fixed(1.0, scale) + fixed(highest, scale))
    for y in range(size):
        value[order[y]] = max(0, bonus - fixed(omega[order[y]], scale))
    rounds = 1
    for i in range(servers):
        _keep_by_value(n, i, x, value, rows.memory, memory, bag)
    while True:
        # the best x on the servers that z leaves, or x as it is
        rounds += 1
        count = variable(0)
        worth = 0
        for r in range(n):
            hosts = 0
            for i in range(servers):
                net.linear[count, i] = FORBIDDEN
                if x[r, i] > 0:
                    worth += value[r] * x[r, i]
                    net.linear[count, i] = 0
                    hosts += 1
            if hosts > 0:
                net.owner[count] = r
                net.supply[count] = rows.cap[r]
                net.base[count] = -value[r]
                net.slope[count] = 0
                count += 1
        transport_into(count, variable(-1), cpu, net)
        for y in range(count):
            for i in range(servers):
                worth -= value[net.owner[y]] * net.units[y, i]
        if worth >= 0:  # the next z leaves all of x, which fits
            break
        break_ties(count, cpu, net)
        changed = False
        for r in range(n):
            for i in range(servers):
                granted[r, i] = x[r, i]
                x[r, i] = 0
        for y in range(count):
            for i in range(servers):
                x[net.owner[y], i] = net.units[y, i]
        for i in range(servers):
            _keep_by_value(n, i, x, value, rows.memory, memory, bag)
        for r in range(n):
            for i in range(servers):
                if granted[r, i] != x[r, i]:
                    changed = True
        if not changed:
            break
    for r in range(n):
        for i in range(servers):
            granted[r, i] = x[r, i]
    if backfill:
        place(n, size, order, rows.cap, rows.memory, cpu, memory, scratch, granted)
    return rounds
