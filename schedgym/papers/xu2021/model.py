"""The model of xu2021: jobs on servers with and without memory, the OCORP family, other policies, optima.

Whole numbers and fractions give exact results, which the claims examine; with float prices the schedules are
those of the environment's kernels, bit for bit. Where the paper leaves something open, the choice is said.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

# Jobs and servers of xu2021, with what jobs declare, and Gamma of Eq. 27 -----------------------------


class Job(NamedTuple):
    """A plain job: arrival and processing [slots], cpu [cores], memory [GB], and what it declares."""

    arrival: int
    processing: int
    cpu: int
    memory: int = 0
    declared_cpu: int | None = None
    declared_memory: int | None = None


class MapReduceJob(NamedTuple):
    """A job of two phases, each a pair (map, reduce): tasks, slots of a task, cores of a task.

    latency: xi[phase][task][server], or None.
    """

    arrival: int
    tasks: tuple[int, int]
    processing: tuple[int, int]
    cpu: tuple[int, int]
    latency: tuple[list[list[int]], list[list[int]]] | None = None

    @property
    def length(self) -> int:
        """p^m + p^r, with p^r = 0 if there is no reduce task [slots]."""
        return self.processing[0] + (self.processing[1] if self.tasks[1] else 0)

    @property
    def work(self) -> int:
        """n^m p^m + n^r p^r: slots of all tasks."""
        return sum(n * p for n, p in zip(self.tasks, self.processing, strict=True))


class Instance(NamedTuple):
    """Jobs and servers. Memory is None in 1D; in 2D it is a list [GB]. All jobs are of one kind."""

    jobs: Sequence[Job | MapReduceJob]
    cpu: list[int]
    memory: list[int] | None = None


def is_mapreduce(instance: Instance) -> bool:
    """Return whether the jobs have two phases."""
    return bool(instance.jobs) and isinstance(instance.jobs[0], MapReduceJob)


def length(job: Job | MapReduceJob) -> int:
    """Least flowtime of the job on an empty cluster with enough cores [slots]: p, or p^m + p^r."""
    return job.length if isinstance(job, MapReduceJob) else job.processing


def volume(job: Job | MapReduceJob) -> int:
    """All the work of a job [core-slots]."""
    if isinstance(job, MapReduceJob):
        return sum(n * p * d for n, p, d in zip(job.tasks, job.processing, job.cpu, strict=True))
    return job.processing * job.cpu


def declared_cpu(job: Job) -> int:
    """Return the cores that a job says it needs."""
    return job.cpu if job.declared_cpu is None else job.declared_cpu


def declared_memory(job: Job) -> int:
    """Return the memory that a job says it needs [GB]."""
    return job.memory if job.declared_memory is None else job.declared_memory


def check(instance: Instance) -> None:
    """Raise ValueError where an instance makes no sense or can never finish."""
    if not instance.jobs or not instance.cpu or min(instance.cpu) < 1:
        raise ValueError("need jobs and servers with cores")
    if len({type(job) for job in instance.jobs}) != 1:
        raise ValueError("jobs of two kinds")
    for j, job in enumerate(instance.jobs):
        if job.arrival < 0:
            raise ValueError(f"job {j} arrives before time 0")
        if isinstance(job, MapReduceJob):
            if instance.memory is not None:
                raise ValueError("MapReduce jobs have no memory demand")
            if job.tasks[0] < 1 or job.tasks[1] < 0:
                raise ValueError(f"job {j} has no map task")
            if min(job.processing[0], job.cpu[0]) < 1 or (
                job.tasks[1] and min(job.processing[1], job.cpu[1]) < 1
            ):
                raise ValueError(f"job {j} has an empty phase")
            continue
        if min(job.processing, job.cpu, declared_cpu(job)) < 1:
            raise ValueError(f"job {j} is empty")
        if instance.memory is not None and declared_memory(job) > max(instance.memory):
            raise ValueError(f"job {j} declares more memory than any server has")


def declare(instance: Instance, rng: random.Random, variance: float) -> Instance:
    """The instance with noisy declarations: d^ = max(1, ceil(d (1 + X))), X ~ N(0, variance); m^ likewise.

    Choice: m^ is cut to the largest server memory, for the job could never be placed otherwise.
    """
    sigma = math.sqrt(variance)

    def noisy(amount: int) -> int:
        return max(1, math.ceil(amount * (1.0 + rng.gauss(0.0, sigma))))

    jobs: list[Job] = []
    for job in instance.jobs:
        if isinstance(job, MapReduceJob):
            raise ValueError("mis-estimation is defined for plain jobs only")
        memory = None if instance.memory is None else min(noisy(job.memory), max(instance.memory))
        jobs.append(job._replace(declared_cpu=noisy(job.cpu), declared_memory=memory))
    return Instance(jobs, instance.cpu, instance.memory)


def eq27(instance: Instance, jobs: Iterable[int] | None = None, *, declared: bool = False) -> Fraction:
    """Return Gamma of Eq. 27 over the given jobs (all by default): max(a + 2p, 2a, 4 sum(p d) / sum C).

    MapReduce: p is p^m + p^r (the paper's formula has an undefined p_j), p d the whole volume.

    Args:
        instance: jobs and servers.
        jobs: their indices.
        declared: whether with the declared demands, which are all that a policy sees.
    """
    chosen = [instance.jobs[j] for j in (range(len(instance.jobs)) if jobs is None else jobs)]
    work = 0
    for job in chosen:
        if declared and isinstance(job, Job):
            work += job.processing * declared_cpu(job)
        else:
            work += volume(job)
    ends = [max(job.arrival + 2 * length(job), 2 * job.arrival) for job in chosen]
    return max([Fraction(0), *map(Fraction, ends), Fraction(4 * work, sum(instance.cpu))])


def max_slots(instance: Instance, gamma: float | Fraction = 4000.0) -> int:
    """Length at which an episode is truncated. Choice: rounded up."""
    longest: float | Fraction = max(eq27(instance), gamma)
    if instance.memory is not None:
        work = sum(job.processing * job.memory for job in instance.jobs if isinstance(job, Job))
        longest = max(longest, Fraction(4 * work, sum(instance.memory)))
    return math.ceil(3 * longest)


# One slot: packing, placement with memory, and the programmes of OCORP+ and OCORP+M ------------------


Number = Any  # whole, a fraction or a float
Matrix = list[list[int]]  # cores, [job][server]


class Slot(NamedTuple):
    """A slot of problem P3 with memory.

    Attributes:
        worth: worth of a core, pi / d, by job.
        caps: largest number of cores, by job.
        reserve: memory that the job reserves, by job.
        cpu: cores, by server.
        memory: memory, by server.
    """

    worth: tuple[Number, ...]
    caps: tuple[int, ...]
    reserve: tuple[int, ...]
    cpu: tuple[int, ...]
    memory: tuple[int, ...]


def pack(cores: Sequence[int], capacity: Sequence[int], previous: Matrix | None = None) -> Matrix:
    """Put the cores of each job on servers (1D). The cores must not exceed the capacity in all.

    previous: with it the packing is sticky: each job first keeps its old places, on old servers by
    decreasing old cores (ties: lower server). Then servers by capacity, largest first (ties: lower server):
    on each, the jobs by decreasing cores left (ties: lower job) that fit whole. What is left, by decreasing
    cores (ties: lower job), is split over the servers with the most free cores (ties: lower server).

    Choice: after keeping old places the servers still go by capacity, not by what is free.
    """
    if sum(cores) > sum(capacity):
        raise ValueError("more cores than the servers have")
    servers = range(len(capacity))
    free = list(capacity)
    left = list(cores)
    placed = [[0] * len(capacity) for _ in cores]

    def put(j: int, i: int, amount: int) -> None:
        placed[j][i] += amount
        left[j] -= amount
        free[i] -= amount

    def waiting() -> list[int]:
        return sorted((j for j in range(len(cores)) if left[j] > 0), key=lambda j: (-left[j], j))

    if previous is not None:
        for j, old in enumerate(previous):
            for i in sorted(servers, key=lambda i: (-old[i], i)):
                put(j, i, min(old[i], left[j]))
    for i in sorted(servers, key=lambda i: (-capacity[i], i)):
        for j in waiting():
            if left[j] <= free[i]:
                put(j, i, left[j])
    for j in waiting():
        while left[j] > 0:
            i = min(servers, key=lambda i: (-free[i], i))
            put(j, i, min(left[j], free[i]))
    return placed


def fill(order: Sequence[int], caps: Sequence[int], capacity: int) -> list[int]:
    """Cores of each job: in this order, each gets its cap or what is left (Eq. 22 with caps)."""
    cores = [0] * len(caps)
    left = capacity
    for j in order:
        cores[j] = min(caps[j], left)
        left -= cores[j]
    return cores


def place(
    order: Sequence[int],
    caps: Sequence[int],
    reserve: Sequence[int],
    cpu: Sequence[int],
    memory: Sequence[int],
    start: Matrix | None = None,
) -> Matrix:
    """Greedy placement in 2D, on top of `start`: the jobs in order, each on the servers with most free cores.

    A server is open to a job if it hosts a share already or has the job's whole memory free.
    """
    servers = range(len(cpu))
    placed = [[0] * len(cpu) for _ in caps] if start is None else [list(row) for row in start]
    for j in order:
        free = [cpu[i] - sum(row[i] for row in placed) for i in servers]
        for i in sorted(servers, key=lambda i: (-free[i], i)):
            held = sum(reserve[other] for other, row in enumerate(placed) if row[i] > 0)
            if placed[j][i] > 0 or reserve[j] <= memory[i] - held:
                placed[j][i] += min(free[i], caps[j] - sum(placed[j]))
    return placed


def transport(
    marginal: Callable[[int, int, int], Fraction],
    supply: Sequence[int],
    capacity: Sequence[int],
    *,
    arcs: Iterable[tuple[int, int]] | None = None,
    total: int | None = None,
) -> Matrix:
    """Transportation problem with convex unit costs, by successive shortest paths in whole numbers.

    marginal: (job, server, q) -> exact cost of the unit after the first q; must not decrease with q.
    supply: the most units of each job; capacity: the most units on each server.
    arcs: where units may go, everywhere by default.
    total: the number of units; None takes units only as long as they lower the cost.

    Optimal, and lexicographically greatest in u[job][server] among the optima (with total=None: among those
    with the fewest units): the costs are made whole numbers, and a tiny bonus on each arc breaks the ties.
    """
    jobs, servers = range(len(supply)), range(len(capacity))
    allowed = sorted({(j, i) for j in jobs for i in servers} if arcs is None else set(arcs))
    exact = {
        (j, i, q): Fraction(marginal(j, i, q)) for j, i in allowed for q in range(min(supply[j], capacity[i]))
    }
    scale = math.lcm(*(cost.denominator for cost in exact.values())) if exact else 1
    base = max([1, *supply, *capacity]) + 1
    bonus = {arc: base ** (len(allowed) - 1 - n) for n, arc in enumerate(allowed)}
    ties = base ** len(allowed)  # more than all bonuses together
    unit = ties if total is None else 0  # a unit of cost zero is not worth taking
    big = ties * (1 + sum(supply)) * 2
    cost = {(j, i, q): int(value * scale) * big + unit - bonus[j, i] for (j, i, q), value in exact.items()}

    u = [[0] * len(capacity) for _ in supply]
    while total is None or sum(map(sum, u)) < total:
        # Bellman-Ford over the residual graph; nodes ("job", j) and ("server", i)
        distance: dict[tuple[str, int], int] = {("job", j): 0 for j in jobs if sum(u[j]) < supply[j]}
        parent: dict[tuple[str, int], tuple[str, int]] = {}
        changed = True
        while changed:
            changed = False
            for j, i in allowed:
                job, server = ("job", j), ("server", i)
                steps = []
                if (j, i, u[j][i]) in cost:
                    steps.append((job, server, cost[j, i, u[j][i]]))
                if u[j][i] > 0:
                    steps.append((server, job, -cost[j, i, u[j][i] - 1]))
                for tail, head, step in steps:
                    if tail in distance and distance[tail] + step < distance.get(head, math.inf):
                        distance[head] = distance[tail] + step
                        parent[head] = tail
                        changed = True
        ends = [
            ("server", i)
            for i in servers
            if ("server", i) in distance and sum(row[i] for row in u) < capacity[i]
        ]
        if not ends:
            if total is not None:
                raise ValueError(f"cannot place {total} units")
            break
        node = min(ends, key=lambda end: distance[end])
        if total is None and distance[node] >= 0:
            break
        while node in parent:
            before = parent[node]
            if node[0] == "server":
                u[before[1]][node[1]] += 1
            else:
                u[node[1]][before[1]] -= 1
            node = before
    return u


class PlusSlot(NamedTuple):
    """A slot of ocorp+: coef y + alpha sum over servers ((u - u_prev) / d)^2 over the jobs is the least.

    Attributes:
        coefficient: weight - lambda, by job.
        demand: cores, by job.
        caps: largest number of cores, by job.
        previous: cores in the slot before, [job][server].
        first: True in the first slot of a job, in which it has no switching cost.
        cpu: cores, by server.
        alpha: weight of the switching cost.
    """

    coefficient: Sequence[float]
    demand: Sequence[int]
    caps: Sequence[int]
    previous: Matrix
    first: Sequence[bool]
    cpu: Sequence[int]
    alpha: float

    def marginal(self, j: int, i: int, q: int) -> Fraction:
        """Return the cost of the core after the first q: coef / d + alpha (2 q + 1 - 2 u_prev) / d^2."""
        cost = Fraction(self.coefficient[j]) / self.demand[j]
        if not self.first[j]:
            change = 2 * q + 1 - 2 * self.previous[j][i]
            cost += Fraction(self.alpha) * change / self.demand[j] ** 2
        return cost


def plus_allocation(slot: PlusSlot, *, literal: bool = False) -> Matrix:
    """Return the cores of ocorp+."""
    total = None if literal else min(sum(slot.cpu), sum(slot.caps))
    return transport(slot.marginal, slot.caps, slot.cpu, total=total)


def plus_cost(u: Matrix, slot: PlusSlot) -> Fraction:
    """Return what plus_allocation minimises, exactly."""
    cost = Fraction(0)
    for j, row in enumerate(u):
        cost += Fraction(slot.coefficient[j]) * sum(row) / slot.demand[j]
        if not slot.first[j]:
            squares = sum((new - old) ** 2 for new, old in zip(row, slot.previous[j], strict=True))
            cost += Fraction(slot.alpha) * squares / slot.demand[j] ** 2
    return cost


def plus_job_level(slot: PlusSlot, *, literal: bool = False) -> list[int]:
    """The variant of ocorp+ that charges the change of a job's cores in all: take the cheapest units."""
    marginal = slot._replace(previous=[[sum(row)] for row in slot.previous]).marginal
    units = sorted((marginal(j, 0, q), j, q) for j, cap in enumerate(slot.caps) for q in range(cap))
    cores = [0] * len(slot.caps)
    for cost, j, _ in units[: sum(slot.cpu)]:
        if not literal or cost < 0:
            cores[j] += 1
    return cores


def knapsack(values: Sequence[Number], weights: Sequence[int], capacity: int) -> tuple[bool, ...]:
    """Return which items to take, by trying every subset; of equal ones, that with the lowest items."""
    fitting = (
        chosen
        for chosen in itertools.product((False, True), repeat=len(values))
        if sum(itertools.compress(weights, chosen)) <= capacity
    )
    return max(fitting, key=lambda chosen: (sum(itertools.compress(values, chosen)), chosen))


def core_values(omega: Sequence[float], *, literal: bool = False) -> list[Fraction]:
    """What a core is worth to each job in ocorp+m: -omega, plus a bonus that lifts all to 1 at least.

    Choice: the bonus is the smallest one, max(0, 1 + max omega) over the visible jobs.
    """
    bonus = Fraction(0)
    if not literal and omega:
        bonus = max(bonus, 1 + Fraction(max(omega)))
    return [bonus - Fraction(w) for w in omega]


def placement_value(u: Matrix, worth: Sequence[Number]) -> Number:
    """Return the total worth of the cores of a placement."""
    return sum(w * sum(row) for w, row in zip(worth, u, strict=True))


def alternate(
    slot: Slot, x: Matrix, worth: Callable[[int, int, int], Number] | None = None
) -> tuple[list[Matrix], list[Matrix]]:
    """Run Algorithm 1 in one slot from a first x; return all x, and what z leaves of each.

    The last pair changes nothing, so there are two at least.

    Args:
        slot: the slot.
        x: cores without regard to memory.
        worth: (job, server, q) -> value of the core after the first q; by default that of the slot.
    """
    each = worth or (lambda j, i, q: slot.worth[j])
    jobs, servers = range(len(slot.caps)), range(len(slot.cpu))

    def total(j: int, i: int, cores: int) -> Number:
        return sum(each(j, i, q) for q in range(cores))

    def reached(u: Matrix) -> Number:
        return sum(total(j, i, u[j][i]) for j in jobs for i in servers)

    cores, kept = [x], list[Matrix]()
    while True:
        rest = [[0] * len(slot.cpu) for _ in jobs]
        for i in servers:
            there = [j for j in jobs if x[j][i] > 0]
            taken = knapsack(
                [total(j, i, x[j][i]) for j in there], [slot.reserve[j] for j in there], slot.memory[i]
            )
            for j in itertools.compress(there, taken):
                rest[j][i] = x[j][i]
        kept.append(rest)
        if len(kept) > 1 and kept[-1] == kept[-2]:
            return cores, kept
        arcs = [(j, i) for j in jobs for i in servers if rest[j][i] > 0]
        x = transport(lambda j, i, q: -each(j, i, q), slot.caps, slot.cpu, arcs=arcs)
        if reached(x) <= reached(rest):
            x = rest
        cores.append(x)


def memory_allocation(
    slot: Slot,
    order: Sequence[int],
    *,
    previous: Matrix | None = None,
    backfill: bool = True,
    first: Matrix | None = None,
    worth: Callable[[int, int, int], Number] | None = None,
) -> tuple[Matrix, int]:
    """Return the slot of ocorp+m, and the number of rounds of its alternation.

    Args:
        slot: the slot.
        order: the jobs that may run, by falling value of a core.
        previous: of a sticky packing.
        backfill: whether what is left is filled in order.
        first: the first x; by default jobs are filled in order and packed.
        worth: see :func:`alternate`.
    """
    if first is None:
        first = pack(fill(order, slot.caps, sum(slot.cpu)), slot.cpu, previous)
    _, kept = alternate(slot, first, worth)
    placement = kept[-1]
    if backfill:
        placement = place(order, slot.caps, slot.reserve, slot.cpu, slot.memory, placement)
    return placement, len(kept)


def switching_values(slot: PlusSlot, *, literal: bool = False) -> Callable[[int, int, int], Fraction]:
    """What the core after the first q is worth to a job on a server in ocorp+m with a switching cost.

    Choice: less than a marginal cost of ocorp+ by the smallest bonus that lifts to 1 the last core of each
    job on a server where it had none.
    """
    nowhere = slot._replace(previous=[[0]] * len(slot.caps))
    bonus = Fraction(0)
    if not literal:
        bonus = max([bonus, *(1 + nowhere.marginal(j, 0, cap - 1) for j, cap in enumerate(slot.caps))])
    return lambda j, i, q: bonus - slot.marginal(j, i, q)


def best_value(slot: Slot) -> Number:
    """Return the optimum of P3 over all choices of hosts, by the ranks of a polymatroid (without flows)."""
    jobs, servers = range(len(slot.caps)), range(len(slot.cpu))
    sets = []
    for memory in slot.memory:
        fitting = [
            frozenset(chosen)
            for size in range(len(slot.caps) + 1)
            for chosen in itertools.combinations(jobs, size)
            if sum(slot.reserve[j] for j in chosen) <= memory
        ]
        sets.append([one for one in fitting if not any(one < other for other in fitting)])
    order = sorted(jobs, key=lambda j: -slot.worth[j])
    cuts = [cut for size in range(len(slot.cpu) + 1) for cut in itertools.combinations(servers, size)]
    best: Number = 0
    for choice in itertools.product(*sets):
        total: Number = 0
        before = 0
        for count in range(1, len(order) + 1):
            rank = min(
                sum(slot.cpu[i] for i in cut)
                + sum(
                    slot.caps[j]
                    for j in order[:count]
                    if any(j in choice[i] for i in servers if i not in cut)
                )
                for cut in cuts
            )
            total += slot.worth[order[count - 1]] * (rank - before)
            before = rank
        best = max(best, total)
    return best


def plain_best(slot: Slot) -> Number:
    """Return the optimum of P3 by trying all cores of all jobs on all servers; for a handful of cores."""

    def tries(i: int) -> Iterator[tuple[int, ...]]:
        for cores in itertools.product(*(range(min(cap, slot.cpu[i]) + 1) for cap in slot.caps)):
            held = sum(m for m, u in zip(slot.reserve, cores, strict=True) if u)
            if sum(cores) <= slot.cpu[i] and held <= slot.memory[i]:
                yield cores

    best: Number = 0
    for rows in itertools.product(*(list(tries(i)) for i in range(len(slot.cpu)))):
        sums = [sum(row[j] for row in rows) for j in range(len(slot.caps))]
        if all(u <= cap for u, cap in zip(sums, slot.caps, strict=True)):
            best = max(best, sum(w * u for w, u in zip(slot.worth, sums, strict=True)))
    return best


# Policies of one slot: priority rules, Tetris, dominant resource fairness, the transient algorithm ---


PRIORITY_RULES = ("srpt", "srvf", "svf", "srf", "fifo")


class Entry(NamedTuple):
    """A visible job as a policy sees it in one slot.

    demand: declared cores (MapReduce: of a task of the phase). cap: the most cores it may get.
    weight: of Eq. 5 (MapReduce: of problem P5). target, unit: lambda grows by
    mu (target / max(gamma - a, 1) - used / unit). slots, left, whole: remaining slots, remaining and
    original volume by the declared demand.
    """

    job: int
    phase: int
    arrival: int
    age: int
    demand: int
    cap: int
    reserve: int
    weight: Number
    target: float
    tasks: int
    unit: int
    slots: Fraction
    left: Fraction
    whole: int


def rule_order(entries: Sequence[Entry], rule: str) -> list[int]:
    """Positions of the entries by a priority rule; ties: earlier arrival, then lower id."""
    key: dict[str, Callable[[Entry], Fraction | int]] = {
        "srpt": lambda e: e.slots,
        "srvf": lambda e: e.left,
        "svf": lambda e: e.whole,
        "srf": lambda e: e.demand,
        "fifo": lambda e: e.arrival,
    }
    return sorted(
        range(len(entries)), key=lambda n: (key[rule](entries[n]), entries[n].arrival, entries[n].job)
    )


def tetris(entries: Sequence[Entry], cpu: Sequence[int], memory: Sequence[int] | None) -> Matrix:
    """Tetris (Grandl et al. 2014), for this model.

    Choice: again and again the pair of job and server with the greatest score gets min(cap, free cores).
    The alignment of a pair is d/C free/C (+ m/M freememory/M), where C and M are those of all servers. Its
    score is alignment / mean alignment - remaining volume / mean remaining volume; the means are over the
    pairs that are still open. Ties: earlier arrival, lower id, lower server.
    """
    total = sum(cpu)
    free = list(cpu)
    room = [0] * len(cpu) if memory is None else list(memory)
    u = [[0] * len(cpu) for _ in entries]
    while True:
        pairs: list[tuple[int, int, Fraction]] = []
        for n, e in enumerate(entries):
            for i in range(len(cpu)):
                if free[i] == 0 or sum(u[n]) == e.cap or e.reserve > room[i]:
                    continue
                alignment = Fraction(e.demand * free[i], total**2)
                if memory is not None:
                    alignment += Fraction(e.reserve * room[i], sum(memory) ** 2)
                pairs.append((n, i, alignment))
        if not pairs:
            return u
        mean_alignment = sum((a for _, _, a in pairs), Fraction(0)) / len(pairs)
        mean_left = sum((entries[n].left for n, _, _ in pairs), Fraction(0)) / len(pairs)

        def badness(
            pair: tuple[int, int, Fraction], a: Fraction = mean_alignment, v: Fraction = mean_left
        ) -> tuple[Fraction, int, int, int]:
            e = entries[pair[0]]
            return e.left / v - pair[2] / a, e.arrival, e.job, pair[1]

        n, i, _ = min(pairs, key=badness)
        amount = min(entries[n].cap - sum(u[n]), free[i])
        u[n][i] += amount
        free[i] -= amount
        if memory is not None:
            room[i] -= entries[n].reserve


def drf(
    entries: Sequence[Entry], cpu: Sequence[int], memory: Sequence[int] | None, *, dominant: bool = True
) -> Matrix:
    """Dominant resource fairness (Ghodsi et al. 2011) by progressive filling, core by core.

    Choice: the next core goes to the job with the least dominant share, max(cores/C, memory reserved/M),
    that can take one (ties: earlier arrival, lower id); of the servers it is on already that have a core
    free, else of those with a core and its memory free, it takes the one with most free cores (ties: lower
    server).
    """
    servers = range(len(cpu))
    free = list(cpu)
    room = [0] * len(cpu) if memory is None else list(memory)
    u = [[0] * len(cpu) for _ in entries]

    def share(n: int) -> tuple[Fraction, int, int]:
        e = entries[n]
        cores = Fraction(sum(u[n]), sum(cpu))
        held = Fraction(0)
        if memory is not None and dominant:
            held = Fraction(e.reserve * sum(amount > 0 for amount in u[n]), sum(memory))
        return max(cores, held), e.arrival, e.job

    def hosts(n: int) -> list[int]:
        if sum(u[n]) == entries[n].cap:
            return []
        on = [i for i in servers if u[n][i] > 0 and free[i] > 0]
        return on or [i for i in servers if free[i] > 0 and entries[n].reserve <= room[i]]

    while True:
        able = [n for n in range(len(entries)) if hosts(n)]
        if not able:
            return u
        n = min(able, key=share)
        i = min(hosts(n), key=lambda i: (-free[i], i))
        if u[n][i] == 0 and memory is not None:
            room[i] -= entries[n].reserve
        u[n][i] += 1
        free[i] -= 1


def fair(entries: Sequence[Entry], cpu: Sequence[int], memory: Sequence[int] | None) -> Matrix:
    """The Fair Scheduler (Table I) in whole cores: as drf, but only the cores of a job count."""
    return drf(entries, cpu, memory, dominant=False)


#: rules that choose servers, too; in 1D only the cores per job count
FILLING_RULES = {"tetris": tetris, "drf": drf, "fair": fair}


def transient(entries: Sequence[Entry], capacity: int) -> list[int]:
    """Eq. 38, solved core by core: max sum y/p, where a core of a job is worth 1 / (p d)."""
    units = sorted((e.whole, e.arrival, e.job, n) for n, e in enumerate(entries) for _ in range(e.cap))
    cores = [0] * len(entries)
    for *_, n in units[:capacity]:
        cores[n] += 1
    return cores


# Schedules slot by slot: the policies, given allocations, and what is measured of them ---------------
#
# Slot t = 1, 2, ...; a job that arrives at a is visible (and servable) in the slots t > a. Whatever is a
# list over slots has slot 1 at index 0. Work is counted in whole core-slots.
#
# The prices of the OCORP family are floats, in these expressions and this order, which are those of the
# kernels, or fractions (``Options.number``): weight = age**k / p + p**(k - 1), omega = (weight - lambda) /
# d, mu = t**(k + 0.5), lambda = max(0, lambda + mu (p / max(gamma - a, 1) - used / d)). Rules,
# transportation problems and knapsacks compare exact fractions, also of floats, so that "optimal" has no
# tolerance.


POLICIES = ("ocorp", "ocorp+", "ocorp+m", *PRIORITY_RULES, *FILLING_RULES, "svf-transient")
MODES = ("waste", "under", "order")


class Cluster:
    """Remaining work, per job, phase and task [core-slots], and the rules of service."""

    def __init__(
        self,
        instance: Instance,
        mode: str | None = None,
        k: Number = 2,
        number: Callable[..., Number] = float,
    ) -> None:
        self.instance = instance
        self.mode = mode
        self.k = k
        self.number = number
        self.left: list[list[list[int]]] = []
        for job in instance.jobs:
            if isinstance(job, MapReduceJob):
                self.left.append(
                    [[p * d] * n for n, p, d in zip(job.tasks, job.processing, job.cpu, strict=True)]
                )
            else:
                self.left.append([[volume(job)]])

    def remaining(self, j: int) -> int:
        """Return the work left of a job."""
        return sum(map(sum, self.left[j]))

    def phase(self, j: int) -> int:
        """0, or 1 as soon as the map phase is done."""
        return 1 if len(self.left[j]) == 2 and sum(self.left[j][0]) == 0 else 0

    def task_caps(self, j: int) -> list[int]:
        """The most cores for each task of the current phase of a MapReduce job."""
        z = self.phase(j)
        job = self.instance.jobs[j]
        assert isinstance(job, MapReduceJob)
        return [min(job.cpu[z], left) for left in self.left[j][z]]

    def cap(self, j: int) -> int:
        """The most cores that the job may be given in the coming slot."""
        job = self.instance.jobs[j]
        if isinstance(job, MapReduceJob):
            return sum(self.task_caps(j))
        left = self.remaining(j)
        if self.mode == "waste":
            said = declared_cpu(job)
            return min(said, math.ceil(Fraction(left * said, job.cpu)))
        if self.mode == "under":
            return min(declared_cpu(job), job.cpu, left)
        return min(job.cpu, left)

    def entry(self, j: int, t: int) -> Entry:
        """Return what a policy sees of a job."""
        job = self.instance.jobs[j]
        k, age, z, cap, left = self.k, t - job.arrival, self.phase(j), self.cap(j), self.remaining(j)
        if isinstance(job, MapReduceJob):
            n, p, d = job.tasks[z], job.processing[z], job.cpu[z]
            longest = [
                max((Fraction(work, cores) for work in works), default=Fraction(0))
                for works, cores in zip(self.left[j], job.cpu, strict=True)
            ]
            return Entry(
                j, z, job.arrival, age, demand=d, cap=cap, reserve=0,
                weight=self.number(2 * age**k + job.length**k) / (2 * n * p),
                target=job.work, tasks=n, unit=d * n,
                slots=sum(longest, Fraction(0)), left=Fraction(left), whole=volume(job),
            )  # fmt: skip
        said = job.cpu if self.mode is None else declared_cpu(job)
        p = job.processing
        return Entry(
            j, z, job.arrival, age, demand=said, cap=cap,
            reserve=job.memory if self.mode is None else declared_memory(job),
            weight=self.number(age**k) / p + self.number(p) ** (k - 1),
            target=p, tasks=1, unit=job.cpu,
            slots=Fraction(left, job.cpu), left=Fraction(left * said, job.cpu), whole=p * said,
        )  # fmt: skip

    def serve(self, j: int, cores: int) -> int:
        """Work off a slot with these cores, MapReduce tasks in index order; the core-slots really used."""
        assert 0 <= cores <= self.cap(j)
        job = self.instance.jobs[j]
        if isinstance(job, MapReduceJob):
            z = self.phase(j)
            for task, grant in enumerate(self.split_over_tasks(j, cores)):
                self.left[j][z][task] -= grant
            return cores
        used = min(cores, job.cpu, self.remaining(j))
        self.left[j][0][0] -= used
        return used

    def split_over_tasks(self, j: int, cores: int) -> list[int]:
        """Return the cores of each task of the current phase."""
        grants = []
        for most in self.task_caps(j):
            grants.append(min(most, cores))
            cores -= grants[-1]
        return grants


@dataclass
class Outcome:
    """What happened. Lists over slots start with slot 1.

    completion: slot in which each job ended, None if the simulation was cut off before.
    allocations: cores granted, [slot][job][server]; used: core-slots worked off, [slot][job].
    lambdas: {(job, phase): lambda after the slot}, of the jobs visible in the slot (ocorp family).
    gammas: Gamma of the slot. rounds: of the alternation of ocorp+m. latency: Eq. 45 per slot.
    fractional: fractional flowtime of each job.
    """

    completion: list[int | None]
    allocations: list[Matrix]
    used: list[list[int]]
    fractional: list[Number]
    lambdas: list[dict[tuple[int, int], Number]] = field(default_factory=list)
    gammas: list[Number] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    latency: list[Fraction] = field(default_factory=list)

    @property
    def slots(self) -> int:
        """The number of slots."""
        return len(self.allocations)


def _check_slot(cluster: Cluster, u: Matrix, visible: Sequence[int]) -> None:
    """Raise ValueError if an allocation breaks a constraint of the model."""
    instance = cluster.instance
    for j, row in enumerate(u):
        if min(row) < 0 or (sum(row) > 0 and j not in visible) or sum(row) > cluster.cap(j):
            raise ValueError(f"job {j} cannot have {row}")
    for i, capacity in enumerate(instance.cpu):
        if sum(row[i] for row in u) > capacity:
            raise ValueError(f"server {i} has too few cores")
        if instance.memory is not None:
            held = sum(
                job.memory if cluster.mode is None else declared_memory(job)
                for job, row in zip(instance.jobs, u, strict=True)
                if row[i] > 0 and isinstance(job, Job)
            )
            if held > instance.memory[i]:
                raise ValueError(f"server {i} has too little memory")


def run(
    cluster: Cluster,
    decide: Callable[[int, list[Entry]], Matrix],
    limit: int,
    after: Callable[[int, list[Entry], list[int]], None] | None = None,
) -> Outcome:
    """Run slot by slot until all is done or the limit. decide gives [job][server] of all jobs."""
    instance = cluster.instance
    n_jobs = len(instance.jobs)
    outcome = Outcome([None] * n_jobs, [], [], [cluster.number(0)] * n_jobs)
    t = 0
    while t < limit and None in outcome.completion:
        t += 1
        visible = [
            j for j, job in enumerate(instance.jobs) if job.arrival < t and outcome.completion[j] is None
        ]
        entries = [cluster.entry(j, t) for j in visible]
        u = decide(t, entries)
        _check_slot(cluster, u, visible)
        used = [0] * n_jobs
        for e in entries:
            used[e.job] = cluster.serve(e.job, sum(u[e.job]))
            outcome.fractional[e.job] += e.weight * used[e.job] * e.tasks / e.unit
            if cluster.remaining(e.job) == 0:
                outcome.completion[e.job] = t
        outcome.allocations.append(u)
        outcome.used.append(used)
        if after is not None:
            after(t, entries, used)
    return outcome


def replay(
    instance: Instance, allocations: Sequence[Matrix], *, k: float = 2, mode: str | None = None
) -> Outcome:
    """What comes of given allocations [slot][job][server]; ValueError if one is infeasible."""
    cluster = Cluster(instance, mode, k)
    return run(cluster, lambda t, entries: [list(row) for row in allocations[t - 1]], len(allocations))


@dataclass(frozen=True)
class Options:
    """How a policy plays, and by which numbers.

    Attributes:
        k: exponent of the norm.
        packing: "fresh" or "sticky". It has no meaning for ocorp+ with alpha > 0 at server level, and none in
            2D but for the first x of ocorp+m: the greedy placement of the others looks at the slot alone.
        gamma: a number, "seen" or "eq27" (of declared demands, in a mode of mis-estimation).
        lambda0: a number, "p" (mu p; MapReduce: mu (p^m + p^r)) or "w" (the weight at its first slot). The
            paper only says that lambda is initialised; 1e11 is above all weights. That of a reduce phase
            starts in its first slot, by the same rule.
        literal: ocorp, ocorp+ and ocorp+m serve only what lowers their objective.
        alpha: weight of the switching cost in ocorp+ and ocorp+m. With 0 (no unique optimum) fill and pack.
        level: "server" or "job", for ocorp+.
        backfill: whether ocorp+m fills what its alternation leaves.
        mode: of mis-estimation, None if the declared demands are to be ignored. The declared memory is
            reserved in every mode.
        step: mu by slot; None: t^(k + 0.5).
        number: of prices: float as the kernels, or Fraction.
    """

    k: Number = 2
    packing: str = "fresh"
    gamma: Number = 4000.0
    lambda0: Number = 1e11
    literal: bool = False
    alpha: Number = 0
    level: str = "server"
    backfill: bool = True
    mode: str | None = None
    step: Callable[[int], Number] | None = None
    number: Callable[..., Number] = float


class _Policy:
    """A policy in one run: its prices, and what it did so far."""

    def __init__(self, cluster: Cluster, name: str, options: Options) -> None:
        self.cluster, self.name, self.options = cluster, name, options
        self.instance = cluster.instance
        self.nowhere = [0] * len(self.instance.cpu)
        self.last: Matrix | None = None
        self.lambdas: dict[tuple[int, int], Number] = {}
        self.trajectory: list[dict[tuple[int, int], Number]] = []
        self.gammas: list[Number] = []
        self.rounds: list[int] = []
        self.latency: list[Fraction] = []

    def mu(self, t: int) -> Number:
        return t ** (self.options.k + 0.5) if self.options.step is None else self.options.step(t)

    def gamma(self, t: int) -> Number:
        known, declared = self.options.gamma, self.options.mode is not None
        if known == "eq27":
            return self.options.number(eq27(self.instance, declared=declared))
        if known == "seen":
            seen = [j for j, job in enumerate(self.instance.jobs) if job.arrival < t]
            return self.options.number(eq27(self.instance, seen, declared=declared))
        return known

    def decide(self, t: int, entries: list[Entry]) -> Matrix:
        """Choose the cores of all jobs, [job][server]."""
        rows = self.choose(t, entries)
        self.last = [self.nowhere] * len(self.instance.jobs)
        for e, row in zip(entries, rows, strict=True):
            self.last[e.job] = row
        return self.last

    def previous(self, entries: list[Entry]) -> Matrix:
        return [self.nowhere if self.last is None else self.last[e.job] for e in entries]

    def choose(self, t: int, entries: list[Entry]) -> Matrix:
        cpu, memory = self.instance.cpu, self.instance.memory
        caps = [e.cap for e in entries]
        if self.name in FILLING_RULES:
            rows = FILLING_RULES[self.name](entries, cpu, memory)
            return self.spread(entries, [sum(row) for row in rows]) if memory is None else rows
        if self.name == "svf-transient":
            return self.spread(entries, transient(entries, sum(cpu)))
        if self.name in PRIORITY_RULES:
            order = rule_order(entries, self.name)
        else:
            omega = self.omega(t, entries)
            order = sorted(range(len(entries)), key=lambda n: (omega[n], entries[n].arrival, entries[n].job))
            if self.options.literal:
                order = [n for n in order if omega[n] < 0]
            if self.name == "ocorp+m":
                return self.with_memory(entries, order, omega)
            if self.name == "ocorp+" and self.options.alpha > 0:
                return self.with_switching(entries)
        if memory is not None:
            return place(order, caps, [e.reserve for e in entries], cpu, memory)
        return self.spread(entries, fill(order, caps, sum(cpu)))

    def spread(self, entries: list[Entry], cores: Sequence[int]) -> Matrix:
        """Divide the cores of the visible jobs among servers (1D)."""
        if any(isinstance(job, MapReduceJob) and job.latency is not None for job in self.instance.jobs):
            of_all = [0] * len(self.instance.jobs)
            for e, amount in zip(entries, cores, strict=True):
                of_all[e.job] = amount
            u, cost = locality(self.cluster, of_all)
            self.latency.append(cost)
            return [u[e.job] for e in entries]
        sticky = self.options.packing == "sticky"
        return pack(cores, self.instance.cpu, self.previous(entries) if sticky else None)

    def coefficients(self, entries: list[Entry]) -> list[Number]:
        """Return weight - lambda of each job."""
        return [e.weight - self.lambdas[e.job, e.phase] for e in entries]

    def omega(self, t: int, entries: list[Entry]) -> list[Number]:
        for e in entries:
            if (e.job, e.phase) not in self.lambdas:
                known = self.options.lambda0
                if known == "p":
                    known = self.mu(t) * length(self.instance.jobs[e.job])
                self.lambdas[e.job, e.phase] = e.weight if known == "w" else known
        return [c / e.demand for c, e in zip(self.coefficients(entries), entries, strict=True)]

    def changes(self, entries: list[Entry]) -> PlusSlot:
        """Return what the programmes with a switching cost are given."""
        demand, caps = [e.demand for e in entries], [e.cap for e in entries]
        first, cpu = [e.age == 1 for e in entries], self.instance.cpu
        previous = self.previous(entries)
        return PlusSlot(self.coefficients(entries), demand, caps, previous, first, cpu, self.options.alpha)

    def with_switching(self, entries: list[Entry]) -> Matrix:
        """Return the slot of ocorp+."""
        slot, literal = self.changes(entries), self.options.literal
        if self.options.level == "server":
            return plus_allocation(slot, literal=literal)
        return self.spread(entries, plus_job_level(slot, literal=literal))

    def with_memory(self, entries: list[Entry], order: list[int], omega: list[Number]) -> Matrix:
        """Return the slot of ocorp+m."""
        options = self.options
        assert self.instance.memory is not None
        slot = Slot(
            tuple(core_values(omega, literal=options.literal)),
            tuple(e.cap for e in entries),
            tuple(e.reserve for e in entries),
            tuple(self.instance.cpu),
            tuple(self.instance.memory),
        )
        first = worth = None
        if options.alpha > 0:
            first = plus_allocation(self.changes(entries), literal=options.literal)
            worth = switching_values(self.changes(entries), literal=options.literal)
        old = self.previous(entries) if options.packing == "sticky" else None
        rows, number = memory_allocation(
            slot, order, previous=old, backfill=options.backfill, first=first, worth=worth
        )
        self.rounds.append(number)
        return rows

    def after(self, t: int, entries: list[Entry], used: list[int]) -> None:
        """Update the prices."""
        number = self.options.number
        self.gammas.append(self.gamma(t))
        if self.name.startswith("ocorp"):
            for e in entries:
                wanted = number(e.target) / (e.tasks * max(self.gammas[-1] - e.arrival, 1))
                change = self.mu(t) * (wanted - number(used[e.job]) / e.unit)
                key = (e.job, e.phase)
                self.lambdas[key] = max(number(0), self.lambdas[key] + change)
            self.trajectory.append({(e.job, e.phase): self.lambdas[e.job, e.phase] for e in entries})


def simulate(instance: Instance, policy: str, *, limit: int | None = None, **options: Any) -> Outcome:
    """Run a policy of POLICIES on an instance.

    Args:
        instance: jobs and servers.
        policy: ocorp+ is for plain jobs in 1D; ocorp+m needs memory; svf-transient is for plain jobs in 1D
            that all arrive at 0.
        limit: number of slots, max_slots by default.
        options: fields of :class:`Options`.
    """
    settings = Options(**options)
    cluster = Cluster(instance, settings.mode, settings.k, settings.number)
    own = _Policy(cluster, policy, settings)
    if limit is None:
        limit = max_slots(instance, 4000.0 if isinstance(settings.gamma, str) else settings.gamma)
    outcome = run(cluster, own.decide, limit, own.after)
    outcome.lambdas, outcome.gammas = own.trajectory, own.gammas
    outcome.rounds, outcome.latency = own.rounds, own.latency
    return outcome


def locality(cluster: Cluster, cores: Sequence[int]) -> tuple[Matrix, Fraction]:
    """Servers for chosen cores of MapReduce jobs that minimise Eq. 45, with its minimum.

    Eq. 45 (with the index i that it lacks): sum of xi[server, task] x, where x = u / d. Jobs without
    latencies count 0. Tasks are ordered by job, then index.
    """
    instance = cluster.instance
    tasks: list[tuple[int, int]] = []
    supply: list[int] = []
    for j, amount in enumerate(cores):
        if amount > 0:
            grants = cluster.split_over_tasks(j, amount)
            tasks += [(j, task) for task, grant in enumerate(grants) if grant > 0]
            supply += [grant for grant in grants if grant > 0]

    def marginal(n: int, i: int, q: int) -> Fraction:
        j, task = tasks[n]
        job = instance.jobs[j]
        assert isinstance(job, MapReduceJob)
        if job.latency is None:
            return Fraction(0)
        z = cluster.phase(j)
        return Fraction(job.latency[z][task][i]) / job.cpu[z]

    rows = transport(marginal, supply, instance.cpu, total=sum(supply))
    u = [[0] * len(instance.cpu) for _ in cores]
    cost = Fraction(0)
    for n, row in enumerate(rows):
        for i, amount in enumerate(row):
            u[tasks[n][0]][i] += amount
            cost += marginal(n, i, 0) * amount
    return u, cost


class Counts(NamedTuple):
    """Per job: slots with a preemption, a migration, a change of cores, a split over servers."""

    preemptions: list[int]
    migrations: list[int]
    resizes: list[int]
    splits: list[int]


def counts(instance: Instance, outcome: Outcome) -> Counts:
    """Count what happened to each job.

    Preemption: ran in t - 1, unfinished, no cores in t. Migration: in t it uses a server that it did not use
    in the last slot in which it ran. Choice for resizes: ran in t - 1 and in t, with another number of cores.
    """
    n_jobs = len(instance.jobs)
    result = Counts([0] * n_jobs, [0] * n_jobs, [0] * n_jobs, [0] * n_jobs)
    for j in range(n_jobs):
        last: set[int] | None = None
        before = 0
        end = outcome.completion[j] or outcome.slots
        for t in range(instance.jobs[j].arrival + 1, end + 1):
            row = outcome.allocations[t - 1][j]
            on = {i for i, amount in enumerate(row) if amount > 0}
            if before > 0 and not on:
                result.preemptions[j] += 1
            if last is not None and on - last:
                result.migrations[j] += 1
            if before > 0 and on and sum(row) != before:
                result.resizes[j] += 1
            if len(on) > 1:
                result.splits[j] += 1
            if on:
                last = on
            before = sum(row)
    return result


def switching_cost(instance: Instance, outcome: Outcome) -> list[float]:
    """S(t) of Eq. 31 per slot, over jobs active in t (unfinished when t starts) with t >= a + 2.

    x = u / d with the true demand; MapReduce: with that of the phase that the job was in.
    """
    costs: list[float] = []
    cluster = Cluster(instance)
    before: list[list[Fraction]] = []
    for t, (u, used) in enumerate(zip(outcome.allocations, outcome.used, strict=True), start=1):
        cost = Fraction(0)
        rates: list[list[Fraction]] = []
        for j, job in enumerate(instance.jobs):
            demand = job.cpu[cluster.phase(j)] if isinstance(job, MapReduceJob) else job.cpu
            rates.append([Fraction(amount, demand) for amount in u[j]])
            end = outcome.completion[j]
            if t >= job.arrival + 2 and (end is None or t <= end):
                cost += sum((new - old) ** 2 for new, old in zip(rates[j], before[j], strict=True))
        costs.append(float(cost))
        before = rates
        for j, amount in enumerate(used):
            if is_mapreduce(instance):
                cluster.serve(j, amount)
    return costs


def flowtimes(instance: Instance, outcome: Outcome) -> list[int]:
    """min(completion, end) - arrival of the jobs that have arrived before the end."""
    return [
        (outcome.slots if end is None else end) - job.arrival
        for job, end in zip(instance.jobs, outcome.completion, strict=True)
        if job.arrival < outcome.slots
    ]


def fractional_flowtime(
    arrival: int, processing: float, rates: Sequence[float | Fraction], k: int = 1
) -> Fraction:
    """Eq. 5 for one job, of its rates y in the slots arrival + 1, arrival + 2, ..."""
    return sum(
        (
            (Fraction(age**k) / Fraction(processing) + Fraction(processing) ** (k - 1)) * Fraction(y)
            for age, y in enumerate(rates, start=1)
        ),
        Fraction(0),
    )


def regret_curve(instance: Instance, outcome: Outcome, k: float = 2) -> list[float]:
    """Eq. 23 for T = 1, 2, ...: as the benchmark of Eq. 25 is y* = 0, the cost of the algorithm itself."""
    cluster = Cluster(instance, None, k)
    total, curve = 0.0, []
    for t, used in enumerate(outcome.used, start=1):
        for j, amount in enumerate(used):
            if amount > 0:
                e = cluster.entry(j, t)
                total += e.weight * amount * e.tasks / e.unit
                if is_mapreduce(instance):
                    cluster.serve(j, amount)
        curve.append(total)
    return curve


def unfinished_curve(instance: Instance, outcome: Outcome) -> list[int]:
    """Work of the jobs with a < t that is left at the end of slot t [core-slots]."""
    done, curve = 0, []
    for t, used in enumerate(outcome.used, start=1):
        done += sum(used)
        curve.append(sum(volume(job) for job in instance.jobs if job.arrival < t) - done)
    return curve


def service_gaps(instance: Instance, outcome: Outcome) -> list[int]:
    """Longest run of slots without a core, of each job between arrival and completion (Corollary 1)."""
    gaps = []
    for j, job in enumerate(instance.jobs):
        end = outcome.completion[j] or outcome.slots
        longest = gap = 0
        for t in range(job.arrival + 1, end + 1):
            gap = 0 if sum(outcome.allocations[t - 1][j]) > 0 else gap + 1
            longest = max(longest, gap)
        gaps.append(longest)
    return gaps


def metrics(instance: Instance, outcome: Outcome, k: float = 2) -> dict[str, float]:
    """Return the numbers of the specification for one run.

    Norms are (sum f^k)^(1/k) over the jobs that arrived before the end. "idle" is granted to nobody, over all
    slots [core-slots]; "wasted" is granted and not used [core-slots]; "mean_waiting" is of f - p, if all jobs
    have arrived.
    """
    f = flowtimes(instance, outcome)
    counted = counts(instance, outcome)
    granted = sum(sum(map(sum, u)) for u in outcome.allocations)
    result = {
        "l1": float(sum(f)),
        "l2": math.sqrt(sum(x * x for x in f)),
        "lk": sum(x**k for x in f) ** (1.0 / k),
        "fractional": sum(outcome.fractional),
        "fractional_norm": sum(outcome.fractional) ** (1.0 / k),
        "makespan": float(outcome.slots),
        "finished": float(sum(end is not None for end in outcome.completion)),
        "preemptions": float(sum(counted.preemptions)),
        "migrations": float(sum(counted.migrations)),
        "resizes": float(sum(counted.resizes)),
        "splits": float(sum(counted.splits)),
        "switching_cost": sum(switching_cost(instance, outcome)),
        "idle": float(sum(instance.cpu) * outcome.slots - granted),
        "wasted": float(granted - sum(map(sum, outcome.used))),
        "longest_gap": float(max(service_gaps(instance, outcome))),
        "mean_waiting": sum(x - length(job) for x, job in zip(f, instance.jobs, strict=False)) / len(f)
        if len(f) == len(instance.jobs)
        else math.nan,
    }
    return result


# Exact optima of tiny instances on pooled cores, by search -------------------------------------------
#
# A schedule is a list over slots 1, 2, ... of the cores of each job. In no slot does a job get more cores
# than its demand or its remaining core-slots. More cores never hurt, so no search here leaves usable cores
# free.


PooledJob = tuple[int, int, int]  # arrival, processing, cpu
Schedule = list[tuple[int, ...]]


@functools.lru_cache(maxsize=200_000)
def _allocations(caps: tuple[int, ...], cores: int) -> tuple[tuple[int, ...], ...]:
    """Return all ways to use as many cores as possible."""
    total = min(cores, sum(caps))
    if len(caps) == 1:
        return ((total,),)
    rest = sum(caps[1:])
    found = []
    for first in range(max(0, total - rest), min(caps[0], total) + 1):
        found += [(first, *others) for others in _allocations(caps[1:], total - first)]
    return tuple(found)


def completions(jobs: Sequence[PooledJob], schedule: Schedule) -> list[int]:
    """Return the slot in which each job ends; raise ValueError if one does not end."""
    ends = []
    for j, (_, p, d) in enumerate(jobs):
        done = list(itertools.accumulate(u[j] for u in schedule))
        if not done or done[-1] != p * d:
            raise ValueError(f"job {j} does not end, or has too many cores")
        ends.append(done.index(p * d) + 1)
    return ends


def flowtime(jobs: Sequence[PooledJob], schedule: Schedule, k: int = 1) -> int:
    """Return the sum of flowtime^k."""
    ends = completions(jobs, schedule)
    return sum((end - job[0]) ** k for job, end in zip(jobs, ends, strict=True))


def feasible(jobs: Sequence[PooledJob], cores: int, schedule: Schedule) -> bool:
    """Return True if all jobs end and no slot violates a constraint."""
    try:
        completions(jobs, schedule)
    except ValueError:
        return False
    for t, given in enumerate(schedule):
        if sum(given) > cores:
            return False
        for (arrival, _, d), u in zip(jobs, given, strict=True):
            if not 0 <= u <= d or (u and arrival > t):
                return False
    return True


def fractional(jobs: Sequence[PooledJob], schedule: Schedule, k: int = 1) -> Fraction:
    """Return the sum of the fractional flowtimes (Eq. 5) of the work served."""
    total = Fraction(0)
    for t, cores in enumerate(schedule, start=1):
        for (arrival, p, d), u in zip(jobs, cores, strict=True):
            total += (Fraction((t - arrival) ** k, p) + p ** (k - 1)) * Fraction(u, d)
    return total


def _cheapest(
    jobs: Sequence[PooledJob],
    cores: int,
    charge: Callable[[int, tuple[int, ...]], int],
    prices: Callable[[int], Sequence[int]],
) -> tuple[int, Schedule]:
    """Find the schedule with the least sum over slots of charge(t, work left) and prices(t) of used cores."""
    known: dict[tuple[int, tuple[int, ...]], tuple[int, tuple[int, ...]]] = {}

    def search(t: int, left: tuple[int, ...]) -> int:
        if not any(left):
            return 0
        if (t, left) not in known:
            caps = tuple(min(d, work) if a < t else 0 for (a, _, d), work in zip(jobs, left, strict=True))
            price = prices(t)
            best: tuple[int, tuple[int, ...]] | None = None
            for given in _allocations(caps, cores):
                cost = sum(each * u for each, u in zip(price, given, strict=True))
                cost += search(t + 1, tuple(work - u for work, u in zip(left, given, strict=True)))
                if best is None or cost < best[0]:
                    best = cost, given
            assert best is not None
            known[t, left] = charge(t, left) + best[0], best[1]
        return known[t, left][0]

    left = tuple(p * d for _, p, d in jobs)
    least = search(1, left)
    schedule: Schedule = []
    while any(left):
        given = known[len(schedule) + 1, left][1]
        schedule.append(given)
        left = tuple(work - u for work, u in zip(left, given, strict=True))
    return least, schedule


def flowtime_best(jobs: Sequence[PooledJob], cores: int, k: int = 1) -> tuple[int, Schedule]:
    """Return OPT_P1, the least sum of flowtime^k, and a schedule that reaches it."""

    def charge(t: int, left: tuple[int, ...]) -> int:
        ages = [t - job[0] for job, work in zip(jobs, left, strict=True) if work and job[0] < t]
        return sum(age**k - (age - 1) ** k for age in ages)

    return _cheapest(jobs, cores, charge, lambda t: [0] * len(jobs))


def fractional_best(jobs: Sequence[PooledJob], cores: int, k: int = 1) -> tuple[Fraction, Schedule]:
    """Return OPT_P2, the least sum of fractional flowtimes, and a schedule that reaches it."""
    scale = math.lcm(*(p * d for _, p, d in jobs))
    # the part p^(k-1) of the weights sums to p^k in all schedules
    units = [scale // (p * d) for _, p, d in jobs]
    least, schedule = _cheapest(
        jobs,
        cores,
        lambda t, left: 0,
        lambda t: [max(0, t - job[0]) ** k * unit for job, unit in zip(jobs, units, strict=True)],
    )
    return Fraction(least, scale) + sum(p**k for _, p, _ in jobs), schedule


def transient_least(demands: Sequence[int], cores: int) -> Callable[[tuple[int, ...]], int]:
    """Return the least sum of completions of jobs that arrive at once, as a function of their core-slots."""

    @functools.cache
    def search(left: tuple[int, ...]) -> int:
        waiting = sum(work > 0 for work in left)
        if not waiting:
            return 0
        caps = tuple(min(d, work) for d, work in zip(demands, left, strict=True))
        return waiting + min(
            search(tuple(work - u for work, u in zip(left, given, strict=True)))
            for given in _allocations(caps, cores)
        )

    return search


def multisets(count: int, longest: int, widest: int, latest: int = 0) -> Iterator[tuple[PooledJob, ...]]:
    """Yield all sets of ``count`` jobs in order of arrival; the first one arrives at 0."""
    kinds = itertools.product(range(latest + 1), range(1, longest + 1), range(1, widest + 1))
    for jobs in itertools.combinations_with_replacement(list(kinds), count):
        if jobs[0][0] == 0:
            yield jobs
