"""Named rules as compiled functions of one environment and one slot: from orders to cores on servers.

The baseline policies call them on an observation, the environment in its views ``priority`` and ``rule``.
They allocate nothing.

One environment has n visible jobs (rows, in order of arrival, which decides ties) and M servers. The
arrays hold n rows or more, of which the first n are read and written.

Source: paper 000 (filling: Eq. 22; locality: Eq. 45). The paper's own algorithms, ocorp and its kin, are in
``schedgym.baselines.flowtime``, the solvers in ``schedgym.solvers``.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core import arrays
from schedgym.core.arrays import Floats, Integers
from schedgym.core.jit import helper, pure_kernel
from schedgym.core.order import sort_rows
from schedgym.solvers.arithmetic import common_multiple, fixed, scale_for, variable
from schedgym.solvers.transport import (
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
    "clear",
    "demand_of",
    "fill",
    "locality_rows",
    "make_scratch",
    "order_by_rule",
    "pack_cores",
    "place",
    "spread",
]


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

    demand: Annotated[Integers, "row"]  # plain: declared cores
    memory: Annotated[Integers, "row"]  # 2D: declared GB
    slots_left: Annotated[Floats, "row"]
    remaining: Annotated[Floats, "row"]  # core-slots
    volume: Annotated[Integers, "row"]  # core-slots
    cap: Annotated[Integers, "row"]  # most cores now
    held: Annotated[Integers, "row", "server"]  # cores in the slot before
    phase: Annotated[Integers, "row"]  # mapreduce: 0 or 1
    tasks: Annotated[Integers, "row", 2]
    phase_demand: Annotated[Integers, "row", 2]  # cores of a task
    task_remaining: Annotated[Integers, "row", "phase_task"]  # core-slots
    latency: Annotated[Floats, "row", "phase_task_server"]


class Scratch(NamedTuple):
    """Work space of this module."""

    order: Annotated[Integers, "row"]
    key: Annotated[Floats, "row"]
    cores: Annotated[Integers, "row"]
    left: Annotated[Integers, "row"]
    waiting: Annotated[Integers, "row"]
    free: Annotated[Integers, "server"]
    room: Annotated[Integers, "server"]  # GB
    mark: Annotated[Integers, "server"]
    x: Annotated[Integers, "memory_row", "server"]  # only memory_allocation needs it


def make_scratch(rows: int, servers: int, *, memory: bool = False) -> Scratch:
    """Work space for up to ``rows`` jobs on ``servers`` servers; ``memory``: for memory_allocation, too."""
    sizes = {"row": rows, "server": servers, "memory_row": rows if memory else 0}
    return arrays.allocate(Scratch, sizes)


def locality_rows(rows: int, half: int, cores: int) -> int:
    """How many rows LOCALITY needs in a TransportScratch: of the tasks only those with cores count."""
    return min(2 * half * rows, cores)


@helper
def demand_of(phases: Any, r: int, rows: Visible) -> int:
    """Declared cores of a job, or those of a task of its phase."""
    return rows.phase_demand[r, rows.phase[r]] if phases else rows.demand[r]


@helper
def clear(n: int, granted: Integers) -> None:
    """Set the first n rows to zero."""
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
    clear(n, granted)
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
    sort_rows(waiting, scratch.key, count)
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
    clear(n, granted)
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
        clear(n, granted)
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
    sort_rows(scratch.order, scratch.key, size)
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
            scratch.key[r] = demand_of(phases, r, rows)
        else:
            scratch.key[r] = 0.0
    sort_rows(scratch.order, scratch.key, n)


@helper
def _over_divisor(a: int, b: int) -> float:
    """The square of a over the greatest common divisor of a and b, at least 1 both."""
    part = float(a // math.gcd(a, b))
    return part * part


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
    clear(n, granted)
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
            demand = float(demand_of(phases, r, rows)) * cores_weight
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
            demand = float(demand_of(phases, r, rows)) * cores_weight
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
    clear(n, granted)
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
