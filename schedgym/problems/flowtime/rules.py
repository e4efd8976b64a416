"""Named rules, compiled for one environment and one slot: they turn an order of jobs into cores on servers.

The baseline policies call them on an observation, the environment in its views ``priority`` and ``rule``.
They allocate no memory.

One environment has n visible jobs (rows, in order of arrival; ties go to the earlier row) and M servers. The
arrays hold n rows or more, of which the first n are read and written.

Source: xu2021 (filling: Eq. 22; locality: Eq. 45). The paper's own algorithms, ocorp and its kin, are in
``schedgym.baselines.flowtime``, the solvers in ``schedgym.solvers``.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from schedgym.core import arrays
from schedgym.core.arrays import Bytes, Floats, Integers, Shown
from schedgym.core.jit import helper, pure_kernel
from schedgym.core.order import sort_rows
from schedgym.problems.flowtime.workload import LAST_CLOCK, LAST_SLOT, MOST_DECLARED_WORK, MOST_VISIBLE
from schedgym.solvers.arithmetic import common_divisor, common_multiple, fixed, scale_for, variable
from schedgym.solvers.transport import TransportScratch, break_ties, transport_into

RULES: tuple[str, ...] = ("fifo", "srpt", "srvf", "svf", "srf", "tetris", "drf")
FIFO, SRPT, SRVF, SVF, SRF, TETRIS, DRF = range(len(RULES))
#: codes of the rules of policies, of which the last is not one of the view ``rule``
CODES = {name: code for code, name in enumerate((*RULES, "fair"))}
FAIR = CODES["fair"]

#: ways to put cores on servers: pack anew, pack around the old places, by free cores and memory, by latency
FRESH, STICKY, PLACE, LOCALITY = range(4)

HOLD = -1.0  # a job with this score, or a lower one, gets nothing
MOST_MULTIPLE = 1 << 24  # common denominators of costs up to here are exact


class Rows(NamedTuple):
    """The visible unfinished jobs, in the arrays of the observation and by their names.

    A policy passes empty arrays for those that it does not read. Plain jobs have no phases: the dimension
    ``phase`` is 0, not 2. The tasks of phase z begin at z * (``phase_task`` / 2).
    """

    job: Annotated[Integers, "row", Shown("its number in the workload", MOST_VISIBLE)]
    arrival: Annotated[Integers, "row", Shown("of the job [slots]", LAST_CLOCK)]
    age: Annotated[Integers, "row", Shown("time since its arrival [slots]", LAST_CLOCK)]
    processing: Annotated[Integers, "row", Shown("p [slots]; mapreduce: (window, 2), of a task", LAST_SLOT)]
    demand: Annotated[Integers, "row", Shown("d, as declared [cores]; the same", LAST_SLOT)]
    memory: Annotated[Integers, "row", Shown("as declared [GB]", LAST_SLOT, when="kind=2d")]
    slots_left: Annotated[
        Floats, "row", Shown("remaining work over d; mapreduce: sum of each phase's longest task", LAST_SLOT)
    ]
    remaining: Annotated[Floats, "row", Shown("work left, by the declared demand [core-slots]", LAST_SLOT)]
    volume: Annotated[Integers, "row", Shown("total work, the same", MOST_DECLARED_WORK)]
    cap: Annotated[Integers, "row", Shown("the most that the job may get now [cores]", LAST_SLOT)]
    held: Annotated[Integers, "row", "server", Shown("what it got in the slot before [cores]", LAST_SLOT)]
    last: Annotated[Bytes, "row", "server", Shown("1 for servers used when the job last ran")]
    granted: Annotated[
        Integers, "row", "server", Shown("got so far in this slot [cores]", LAST_SLOT, when="view=pick")
    ]
    tasks: Annotated[Integers, "row", "phase", Shown("mapreduce: of each phase", LAST_SLOT)]
    phase_processing: Annotated[Integers, "row", "phase", Shown(most=LAST_SLOT, name="processing")]
    phase_demand: Annotated[Integers, "row", "phase", Shown(most=LAST_SLOT, name="demand")]
    phase: Annotated[Integers, "row", Shown("0 map, 1 reduce", when="kind=mapreduce")]
    task_remaining: Annotated[
        Integers,
        "row",
        "phase_task",
        Shown("mapreduce: work left of each task [core-slots]", LAST_SLOT, shape=("window", 2, "most_tasks")),
    ]
    latency: Annotated[
        Floats,
        "row",
        "phase_task_server",
        Shown(
            "mapreduce: of a task on a server, Eq. 45", LAST_SLOT, shape=("window", 2, "most_tasks", "server")
        ),
    ]


class Servers(NamedTuple):
    """The servers, as the workload in ``Jobs`` names them."""

    server_cpu: Annotated[Integers, "server"]  # cores
    server_memory: Annotated[Integers, "server"]  # GB


class Scratch(NamedTuple):
    """Scratch space of this module."""

    order: Annotated[Integers, "row"]
    key: Annotated[Floats, "row"]
    cores: Annotated[Integers, "row"]
    left: Annotated[Integers, "row"]
    waiting: Annotated[Integers, "row"]
    free: Annotated[Integers, "server"]
    free_memory: Annotated[Integers, "server"]  # GB
    mark: Annotated[Integers, "server"]
    x: Annotated[Integers, "memory_row", "server"]  # only memory_allocation needs it


def make_scratch(rows: int, servers: int, *, memory: bool = False) -> Scratch:
    """Scratch space for up to ``rows`` jobs, ``servers`` servers; ``memory``: also for memory_allocation."""
    sizes = {"row": rows, "server": servers, "memory_row": rows if memory else 0}
    return arrays.allocate(Scratch, sizes)


def locality_rows(rows: int, half: int, cores: int) -> int:
    """Return how many rows LOCALITY needs in a TransportScratch; only tasks with cores count."""
    return min(2 * half * rows, cores)


@helper
def has_phases(rows: Rows) -> Any:
    """Return True if the jobs are MapReduce jobs."""
    return rows.phase_demand.size > 0


@helper
def demand_of(rows: Rows, r: int) -> int:
    """Return the declared cores of a plain job, or the cores of a task in the job's current phase."""
    return rows.phase_demand[r, rows.phase[r]] if has_phases(rows) else rows.demand[r]


@helper
def clear(n: int, granted: Integers) -> None:
    """Set the first n rows to zero."""
    for r in range(n):
        for i in range(granted.shape[1]):
            granted[r, i] = 0


@helper
def free_servers(servers: Servers, scratch: Scratch) -> int:
    """Set all cores and memory free; return the number of cores."""
    total = variable(0)
    for i in range(servers.server_cpu.shape[0]):
        scratch.free[i] = servers.server_cpu[i]
        scratch.free_memory[i] = servers.server_memory[i]
        total += servers.server_cpu[i]
    return total


# From an order to cores, from cores to servers ------------------------------------------------


@helper
def fill(n: int, size: int, rows: Rows, cpu: Integers, scratch: Scratch) -> None:
    """Give the jobs of ``scratch.order[:size]`` their caps while cores are left (Eq. 22).

    The last of them gets the cores that are left. The result is written to ``scratch.cores``.
    """
    left = 0
    for i in range(cpu.shape[0]):
        left += cpu[i]
    for r in range(n):
        scratch.cores[r] = 0
    # Eq. 22: in this order each job gets its cap, until the cores are used up
    for x in range(size):
        if left == 0:
            break
        r = scratch.order[x]
        scratch.cores[r] = min(rows.cap[r], left)
        left -= scratch.cores[r]


@helper
def _most(values: Integers) -> int:
    """Return the server with the greatest value (ties: the lower one)."""
    best = 0
    for i in range(1, values.shape[0]):
        if values[i] > values[best]:
            best = i
    return best


@helper
def _keep_places(r: int, held: Integers, scratch: Scratch, granted: Integers) -> None:
    """Grant a job min(old, new) cores where it was, on old servers by decreasing cores."""
    while scratch.left[r] > 0:
        best = -1
        for i in range(granted.shape[1]):
            if held[r, i] > granted[r, i] and (best < 0 or held[r, i] > held[r, best]):
                best = i
        if best < 0:
            break
        amount = min(held[r, best], scratch.left[r])
        granted[r, best] = amount
        scratch.left[r] -= amount
        scratch.free[best] -= amount


@pure_kernel
def pack_cores(
    sticky: bool, n: int, cores: Integers, cpu: Integers, held: Integers, scratch: Scratch, granted: Integers
) -> None:
    """Put the cores of each job on servers.

    Servers are filled by capacity, largest first: each takes the jobs that fit whole, by decreasing cores.
    The other jobs, by decreasing cores, are split over the servers with the most free cores. Ties: lower
    server, lower row.

    Args:
        sticky: first each job keeps min(old, new) cores in place, on old servers by decreasing cores.
        n: jobs.
        cores: [>= n] in all at most those of the servers.
        cpu: [M].
        held: [>= n, M] old places, in all at most ``cpu``.
        scratch: scratch space; ``cores`` may be its own.
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
    # 1. sticky: what stays in place
    for r in range(n):
        left[r] = cores[r]
        if sticky:
            _keep_places(r, held, scratch, granted)
    # 2. what is left to place, most cores first
    count = variable(0)
    for r in range(n):
        if left[r] > 0:
            waiting[count] = r
            scratch.key[r] = -left[r]
            count += 1
    sort_rows(waiting, scratch.key, count)
    # 3. jobs that fit as a whole, on the largest servers first
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
    # 4. the others are split over the servers with the most free cores
    for x in range(count):
        r = waiting[x]
        while left[r] > 0:
            i = _most(free)
            amount = min(left[r], free[i])
            granted[r, i] += amount
            left[r] -= amount
            free[i] -= amount


@helper
def is_open(memory_counts: bool, i: int, r: int, rows: Rows, servers: Any, granted: Integers) -> Any:
    """Return True if a server has a free core for a job (with memory: and its memory free, or reserved)."""
    return servers.free[i] > 0 and (
        not memory_counts or granted[r, i] > 0 or rows.memory[r] <= servers.free_memory[i]
    )


@helper
def freest(memory_counts: bool, r: int, rows: Rows, servers: Any, granted: Integers) -> int:
    """Return the server open to a job that has the most free cores (ties: the lower one), or -1.

    ``servers`` has what is free: their ``free`` cores and ``free_memory``.
    """
    free = servers.free
    best = -1
    for i in range(free.shape[0]):
        if is_open(memory_counts, i, r, rows, servers, granted) and (best < 0 or free[i] > free[best]):
            best = i
    return best


@pure_kernel
def place(n: int, size: int, rows: Rows, servers: Servers, scratch: Scratch, granted: Integers) -> None:
    """Add cores greedily in 2D: job by job in order, each on the servers with the most free cores.

    A server is open to a job if it hosts a share of it already, or has the job's whole memory free. Ties:
    lower server.

    Args:
        n: jobs.
        size: jobs that may get cores, in ``scratch.order``.
        rows: the visible jobs; each reserves its memory on every server with a share of it.
        servers: their cores and memory.
        scratch: scratch space.
        granted: [>= n, M] what is placed already; added to.
    """
    total = free_servers(servers, scratch)
    # what is placed already holds its cores and memory
    for r in range(n):
        for i in range(granted.shape[1]):
            if granted[r, i] > 0:
                scratch.free[i] -= granted[r, i]
                scratch.free_memory[i] -= rows.memory[r]
                total -= granted[r, i]
    for x in range(size):
        if total == 0:
            break
        r = scratch.order[x]
        wanted = rows.cap[r]
        for i in range(granted.shape[1]):
            wanted -= granted[r, i]
        while wanted > 0:
            best = freest(True, r, rows, scratch, granted)
            if best < 0:
                break
            amount = min(scratch.free[best], wanted)
            # a job reserves its whole memory on each server that hosts a part of it
            if granted[r, best] == 0:
                scratch.free_memory[best] -= rows.memory[r]
            granted[r, best] += amount
            scratch.free[best] -= amount
            wanted -= amount
            total -= amount


@pure_kernel
def _place_by_latency(
    n: int, rows: Rows, cpu: Integers, scratch: Scratch, net: TransportScratch, granted: Integers
) -> None:
    """Put the cores of MapReduce jobs where the sum of latency * cores / demand is least (Eq. 45).

    Tasks get a job's cores in index order. Of several optima the lexicographically greatest is taken, by
    task, then server.
    """
    servers = cpu.shape[0]
    half = rows.task_remaining.shape[1] // 2
    count = variable(0)
    total = variable(0)
    multiple = 1
    largest = 0.0
    clear(n, granted)
    # the tasks that get cores, and a common denominator of their costs
    for r in range(n):
        left = scratch.cores[r]
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
    # costs are whole numbers: sums are exact, and ties are ties
    scale = scale_for(largest * max(multiple, 1), 2 * servers + 4)
    for x in range(count):
        r = net.owner[x]
        demand = rows.phase_demand[r, rows.phase[r]]
        net.base[x] = 0
        net.slope[x] = 0
        for i in range(servers):
            latency = rows.latency[r, net.price[x] * servers + i]
            # the demands may have no common denominator that is small enough
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
    rows: Rows,
    cpu: Integers,
    scratch: Scratch,
    net: TransportScratch | None,
    granted: Integers,
) -> None:
    """Put the cores of the jobs, ``scratch.cores``, on servers (every ``how`` except PLACE)."""
    if net is not None:  # else LOCALITY is not compiled
        if how == LOCALITY:
            _place_by_latency(n, rows, cpu, scratch, net, granted)
            return
    pack_cores(how == STICKY, n, scratch.cores, cpu, rows.held, scratch, granted)


@helper
def allocate(
    how: int,
    n: int,
    size: int,
    rows: Rows,
    servers: Servers,
    scratch: Scratch,
    net: TransportScratch | None,
    granted: Integers,
) -> None:
    """Grant cores on servers to the first ``size`` rows of ``scratch.order``; the other rows get none.

    Arguments as in :func:`allocate_by_priority`.
    """
    if how == PLACE:
        clear(n, granted)
        place(n, size, rows, servers, scratch, granted)
    else:
        fill(n, size, rows, servers.server_cpu, scratch)
        spread(how, n, rows, servers.server_cpu, scratch, net, granted)


@pure_kernel
def allocate_by_priority(
    how: int,
    n: int,
    scores: Any,
    rows: Rows,
    servers: Servers,
    scratch: Scratch,
    net: TransportScratch | None,
    granted: Integers,
) -> None:
    """Allocate by score: higher ones first, ties by row; jobs with a score of HOLD or less get nothing.

    Args:
        how: FRESH or STICKY: cores are shared out by caps, then packed; PLACE: by free cores and memory;
            LOCALITY: cores are shared out by caps, then placed by latency.
        n: jobs, 0 or more.
        scores: [>= n].
        rows: the visible jobs.
        servers: their cores and memory, which only PLACE, tetris, drf and fair read.
        scratch: of :func:`make_scratch`.
        net: of :func:`~schedgym.solvers.transport.make_transport_scratch`, with :func:`locality_rows` rows;
            only LOCALITY uses it. None (of the compiled type none): ``how`` is never LOCALITY.
        granted: [>= n, M] written, n rows: cores.
    """
    size = variable(0)
    for r in range(n):
        if scores[r] > HOLD:
            scratch.order[size] = r
            scratch.key[r] = -scores[r]
            size += 1
    sort_rows(scratch.order, scratch.key, size)
    allocate(how, n, size, rows, servers, scratch, net, granted)


# Rules ----------------------------------------------------------------------------------------


@pure_kernel
def order_by_rule(rule: int, n: int, rows: Rows, scratch: Scratch) -> None:
    """Sort all n rows into ``scratch.order`` by a rule of :data:`CODES` other than tetris, drf and fair."""
    for r in range(n):
        scratch.order[r] = r
        if rule == SRPT:
            scratch.key[r] = rows.slots_left[r]
        elif rule == SRVF:
            scratch.key[r] = rows.remaining[r]
        elif rule == SVF:
            scratch.key[r] = rows.volume[r]
        elif rule == SRF:
            scratch.key[r] = demand_of(rows, r)
        else:
            scratch.key[r] = 0.0
    sort_rows(scratch.order, scratch.key, n)


@helper
def _over_divisor(a: int, b: int) -> float:
    """Return (a / gcd(a, b))^2; both numbers are at least 1."""
    part = float(a // common_divisor(a, b))
    return part * part


@helper
def _start_filling(n: int, rows: Rows, servers: Servers, scratch: Scratch, granted: Integers) -> None:
    """Reset the scratch space: nothing is granted, all servers are free, all jobs wait for their caps."""
    clear(n, granted)
    free_servers(servers, scratch)
    for r in range(n):
        scratch.left[r] = rows.cap[r]
        scratch.waiting[r] = r


@helper
def _leave(x: int, count: int, waiting: Integers) -> int:
    """Remove entry x from the list of ``count`` waiting jobs; return how many are left."""
    for y in range(x, count - 1):
        waiting[y] = waiting[y + 1]
    return count - 1


@helper
def _alignment(weights: Any, i: int, r: int, rows: Rows, scratch: Scratch) -> float:
    """Return the alignment of a job's demand with a server's free cores and memory, by their weights."""
    aligned = demand_of(rows, r) * weights[0] * scratch.free[i]
    if weights[1] > 0.0:
        aligned += rows.memory[r] * weights[1] * scratch.free_memory[i]
    return aligned


@pure_kernel
def _tetris(
    memory_counts: bool, n: int, rows: Rows, servers: Servers, scratch: Scratch, granted: Integers
) -> None:
    """The allocation of Tetris (Grandl et al. 2014).

    Repeatedly the pair of job and server with the greatest score gets min(cap, free cores). The alignment
    of a pair is d/C free/C (+ m/M free memory/M), where C and M are those of all servers. Its
    score is alignment / mean alignment - remaining volume / mean remaining volume; the means are over the
    pairs that are still open. Ties: earlier row, lower server.
    """
    free = scratch.free
    waiting = scratch.waiting
    _start_filling(n, rows, servers, scratch, granted)
    # both terms of the alignment over a common denominator: whole numbers
    weights = (1.0, 0.0)
    if memory_counts:
        all_cores = 0
        all_memory = 0
        for i in range(free.shape[0]):
            all_cores += free[i]
            all_memory += scratch.free_memory[i]
        weights = (_over_divisor(all_memory, all_cores), _over_divisor(all_cores, all_memory))
    count = n
    while True:
        # least left * (sum of alignments) - alignment * (sum of lefts) wins; it is whole where volumes are
        alignments = 0.0
        volumes = 0.0
        kept = 0
        # 1. sums over the open pairs, of which the means are taken; jobs without one leave
        for x in range(count):
            r = waiting[x]
            open_servers = 0
            for i in range(free.shape[0]):
                if is_open(memory_counts, i, r, rows, scratch, granted):
                    alignments += _alignment(weights, i, r, rows, scratch)
                    open_servers += 1
            volumes += rows.remaining[r] * open_servers
            if open_servers > 0:
                waiting[kept] = r
                kept += 1
        count = kept
        # 2. the best pair
        best = -1
        where = -1
        least = 0.0
        for x in range(count):
            r = waiting[x]
            for i in range(free.shape[0]):
                if is_open(memory_counts, i, r, rows, scratch, granted):
                    alignment = _alignment(weights, i, r, rows, scratch)
                    badness = rows.remaining[r] * alignments - alignment * volumes
                    if best < 0 or badness < least:
                        best = x
                        where = i
                        least = badness
        if best < 0:
            break
        # 3. it gets all it can
        r = waiting[best]
        amount = min(scratch.left[r], free[where])
        granted[r, where] += amount
        free[where] -= amount
        scratch.left[r] -= amount
        if memory_counts:
            scratch.free_memory[where] -= rows.memory[r]
        if scratch.left[r] == 0:
            count = _leave(best, count, waiting)


@helper
def _host(memory_counts: bool, r: int, rows: Rows, scratch: Scratch, granted: Integers) -> int:
    """Return the server with the most free cores among a job's own, else among the open ones; -1 if none."""
    free = scratch.free
    best = -1
    for i in range(free.shape[0]):
        if granted[r, i] > 0 and free[i] > 0 and (best < 0 or free[i] > free[best]):
            best = i
    return best if best >= 0 else freest(memory_counts, r, rows, scratch, granted)


@pure_kernel
def _drf(
    fair: bool,
    memory_counts: bool,
    n: int,
    rows: Rows,
    servers: Servers,
    scratch: Scratch,
    granted: Integers,
) -> None:
    """The allocation of dominant resource fairness (Ghodsi et al. 2011), by progressive filling.

    The next core goes to the job with the least dominant share, max(cores/C, memory reserved/M), or with the
    fewest cores if it is to be ``fair``, among those that can take one (ties: earlier row). The core is on
    the server with the most free cores (ties: lower server) of those that host the job already and have a
    free core, else of those with a free core and the job's memory free.
    """
    left = scratch.left
    waiting = scratch.waiting
    share = scratch.cores
    _start_filling(n, rows, servers, scratch, granted)
    all_cores = 0
    all_memory = 0
    for i in range(granted.shape[1]):
        all_cores += servers.server_cpu[i]
        all_memory += servers.server_memory[i]
    for r in range(n):
        share[r] = 0
    count = n
    while count > 0:
        least = 0
        for x in range(1, count):
            if share[waiting[x]] < share[waiting[least]]:
                least = x
        r = waiting[least]
        i = _host(memory_counts, r, rows, scratch, granted) if left[r] > 0 else -1
        if i < 0:  # for good: free cores and memory only shrink
            count = _leave(least, count, waiting)
            continue
        if granted[r, i] == 0 and memory_counts:
            scratch.free_memory[i] -= rows.memory[r]
        granted[r, i] += 1
        scratch.free[i] -= 1
        left[r] -= 1
        # the number of cores; with memory both resources over a common denominator: no rounding
        share[r] = rows.cap[r] - left[r]
        if memory_counts and not fair:
            hosts = 0
            for k in range(granted.shape[1]):
                hosts += granted[r, k] > 0
            share[r] = max(share[r] * all_memory, rows.memory[r] * hosts * all_cores)


@pure_kernel
def allocate_by_rule(
    rule: int,
    how: int,
    n: int,
    rows: Rows,
    servers: Servers,
    scratch: Scratch,
    net: TransportScratch | None,
    granted: Integers,
) -> None:
    """Allocate as a rule of :data:`CODES` does, with arguments as in :func:`allocate_by_priority`.

    fifo: by arrival; srpt: by remaining slots; srvf: by remaining core-slots; svf: by all core-slots; srf: by
    demand (of the phase). tetris, drf and fair choose servers, too; without memory only their number of cores
    per job is used, and these cores are then packed.
    """
    if rule != TETRIS and rule != DRF and rule != FAIR:
        order_by_rule(rule, n, rows, scratch)
        allocate(how, n, n, rows, servers, scratch, net, granted)
        return
    if rule == TETRIS:
        _tetris(how == PLACE, n, rows, servers, scratch, granted)
    else:
        _drf(rule == FAIR, how == PLACE, n, rows, servers, scratch, granted)
    # in one dimension the rule decides numbers of cores only
    if how != PLACE:
        for r in range(n):
            scratch.cores[r] = 0
            for i in range(granted.shape[1]):
                scratch.cores[r] += granted[r, i]
        spread(how, n, rows, servers.server_cpu, scratch, net, granted)
