"""A slow, plain second implementation of FlowtimePacking, the OCORP family (test oracle).

Written from the specification alone, with lists, integers and loops, to be compared with the compiled
simulator on small instances. It favours being easy to check over being fast.

Conventions:

* Slot t = 1, 2, ...; a job that arrives at a is visible (and servable) in the slots t > a. Whatever is a
  list over slots has slot 1 at index 0. Work is counted in whole core-slots.
* Rules compare exact fractions; ocorp compares floats, with these expressions in this order:
  weight = age**k / p + p**(k - 1), omega = (weight - lambda) / d, mu = t**(k + 0.5),
  lambda = max(0, lambda + mu * (p / max(gamma - a, 1) - used / d)).
* The transportation problems and knapsacks take the floats as exact fractions, so that "optimal" has no
  tolerance. Among the optima they return the one that is lexicographically greatest in u[job][server],
  read in order of job id, then server (literal ones: first the one with the fewest cores).

Where the specification leaves something open, the choice is marked "Choice:".
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

Matrix = list[list[int]]
"""Cores, [job][server]."""

PRIORITY_RULES = ("srpt", "srvf", "svf", "srf", "fifo")
RULES = (*PRIORITY_RULES, "tetris", "drf", "svf-transient")
POLICIES = ("ocorp", "ocorp+", "ocorp+m", *RULES)
MODES = ("waste", "under", "order")


# --------------------------------------------------------------------------------------------
# Instances
# --------------------------------------------------------------------------------------------


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

    jobs: list[Job] | list[MapReduceJob]
    cpu: list[int]
    memory: list[int] | None = None


def is_mapreduce(instance: Instance) -> bool:
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
    return job.cpu if job.declared_cpu is None else job.declared_cpu


def declared_memory(job: Job) -> int:
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


def eq27(instance: Instance, jobs: Iterable[int] | None = None, *, declared: bool = False) -> float:
    """Gamma of Eq. 27 over the given jobs (all by default): max(a + 2p, 2a, 4 sum(p d) / sum C).

    MapReduce: p is p^m + p^r (Choice: the paper's formula has an undefined p_j), p d the whole volume.
    declared: with the declared demands, which are all that a policy sees.
    """
    chosen = [instance.jobs[j] for j in (range(len(instance.jobs)) if jobs is None else jobs)]
    work = 0
    for job in chosen:
        if declared and isinstance(job, Job):
            work += job.processing * declared_cpu(job)
        else:
            work += volume(job)
    ends = [max(job.arrival + 2 * length(job), 2 * job.arrival) for job in chosen]
    return max([0, *ends, 4 * work / sum(instance.cpu)])


def max_slots(instance: Instance, gamma: float = 4000.0) -> int:
    """Length at which an episode is truncated. Choice: rounded up."""
    longest = max(eq27(instance), gamma)
    if instance.memory is not None:
        work = sum(job.processing * job.memory for job in instance.jobs if isinstance(job, Job))
        longest = max(longest, 4 * work / sum(instance.memory))
    return math.ceil(3 * longest)


# --------------------------------------------------------------------------------------------
# Packing
# --------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------
# Exact solvers of one slot
# --------------------------------------------------------------------------------------------


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


def plus_marginal(
    coefficient: Sequence[float],
    demand: Sequence[int],
    previous: Matrix,
    first: Sequence[bool],
    alpha: float,
) -> Callable[[int, int, int], Fraction]:
    """Marginal cost of a core in ocorp+: coef/d + alpha (2q + 1 - 2 u_prev) / d^2."""

    def marginal(j: int, i: int, q: int) -> Fraction:
        cost = Fraction(coefficient[j]) / demand[j]
        if not first[j]:
            cost += Fraction(alpha) * (2 * q + 1 - 2 * previous[j][i]) / demand[j] ** 2
        return cost

    return marginal


def plus_allocation(
    coefficient: Sequence[float],
    demand: Sequence[int],
    caps: Sequence[int],
    previous: Matrix,
    first: Sequence[bool],
    cpu: Sequence[int],
    alpha: float,
    *,
    literal: bool = False,
) -> Matrix:
    """The slot of ocorp+: min sum coef y + alpha sum over servers ((u - u_prev) / d)^2.

    coefficient: weight - lambda of each job; first: is this the first slot of the job (no switching cost)?
    """
    total = None if literal else min(sum(cpu), sum(caps))
    marginal = plus_marginal(coefficient, demand, previous, first, alpha)
    return transport(marginal, caps, cpu, total=total)


def plus_cost(
    u: Matrix,
    coefficient: Sequence[float],
    demand: Sequence[int],
    previous: Matrix,
    first: Sequence[bool],
    alpha: float,
) -> Fraction:
    """What plus_allocation minimises, exactly."""
    cost = Fraction(0)
    for j, row in enumerate(u):
        cost += Fraction(coefficient[j]) * sum(row) / demand[j]
        if not first[j]:
            squares = sum((new - old) ** 2 for new, old in zip(row, previous[j], strict=True))
            cost += Fraction(alpha) * squares / demand[j] ** 2
    return cost


def plus_job_level(
    coefficient: Sequence[float],
    demand: Sequence[int],
    caps: Sequence[int],
    previous: Matrix,
    first: Sequence[bool],
    cpu: Sequence[int],
    alpha: float,
    *,
    literal: bool = False,
) -> list[int]:
    """The variant of ocorp+ that charges the change of a job's cores in all: take the cheapest units."""
    marginal = plus_marginal(coefficient, demand, [[sum(row)] for row in previous], first, alpha)
    units = sorted((marginal(j, 0, q), j, q) for j, cap in enumerate(caps) for q in range(cap))
    cores = [0] * len(caps)
    for cost, j, _ in units[: sum(cpu)]:
        if not literal or cost < 0:
            cores[j] += 1
    return cores


def knapsack(values: Sequence[Fraction], weights: Sequence[int], capacity: int) -> list[bool]:
    """0/1 knapsack by trying every subset. Choice: of equal ones, that with the lowest items."""
    best = (Fraction(-1), ())
    for chosen in itertools.product((False, True), repeat=len(values)):
        if sum(w for w, taken in zip(weights, chosen, strict=True) if taken) <= capacity:
            best = max(
                best,
                (sum((v for v, taken in zip(values, chosen, strict=True) if taken), Fraction(0)), chosen),
            )
    return list(best[1])


def core_values(omega: Sequence[float], *, literal: bool = False) -> list[Fraction]:
    """What a core is worth to each job in ocorp+m: -omega, plus a bonus that lifts all to 1 at least.

    Choice: the bonus is the smallest one, max(0, 1 + max omega) over the visible jobs.
    """
    bonus = Fraction(0)
    if not literal and omega:
        bonus = max(bonus, 1 + Fraction(max(omega)))
    return [bonus - Fraction(w) for w in omega]


def placement_value(u: Matrix, values: Sequence[Fraction]) -> Fraction:
    return sum((values[j] * sum(row) for j, row in enumerate(u)), Fraction(0))


def memory_allocation(
    order: Sequence[int],
    values: Sequence[Fraction],
    caps: Sequence[int],
    reserve: Sequence[int],
    cpu: Sequence[int],
    memory: Sequence[int],
    *,
    previous: Matrix | None = None,
    backfill: bool = True,
    first: Matrix | None = None,
    worth: Callable[[int, int, int], Fraction] | None = None,
) -> tuple[Matrix, int]:
    """The slot of ocorp+m, and the number of rounds of its alternation.

    order: the jobs that may run, by falling value of a core. A round is an x and the z after it; the last
    one changes nothing, so there are two at least.
    first: the first x; by default jobs are filled in order and packed.
    worth: (job, server, q) -> value of the core after the first q; by default that of ``values``.
    """
    servers = range(len(cpu))
    each = worth or (lambda j, i, q: values[j])

    def total(j: int, i: int, cores: int) -> Fraction:
        return sum((each(j, i, q) for q in range(cores)), Fraction(0))

    def reached(u: Matrix) -> Fraction:
        return sum((total(j, i, u[j][i]) for j in range(len(caps)) for i in servers), Fraction(0))

    x = pack(fill(order, caps, sum(cpu)), cpu, previous) if first is None else first
    placement: Matrix | None = None
    rounds = 0
    while True:
        rounds += 1
        kept = [[0] * len(cpu) for _ in caps]
        for i in servers:
            there = [j for j in range(len(caps)) if x[j][i] > 0]
            taken = knapsack([total(j, i, x[j][i]) for j in there], [reserve[j] for j in there], memory[i])
            for j, stays in zip(there, taken, strict=True):
                kept[j][i] = x[j][i] if stays else 0
        if kept == placement:
            break
        placement = kept
        arcs = [(j, i) for j in range(len(caps)) for i in servers if kept[j][i] > 0]
        x = transport(lambda j, i, q: -each(j, i, q), caps, cpu, arcs=arcs)
        if reached(x) <= reached(placement):
            x = placement
    assert placement is not None
    if backfill:
        placement = place(order, caps, reserve, cpu, memory, placement)
    return placement, rounds


def switching_values(
    coefficient: Sequence[float],
    demand: Sequence[int],
    caps: Sequence[int],
    previous: Matrix,
    first: Sequence[bool],
    alpha: float,
    *,
    literal: bool = False,
) -> Callable[[int, int, int], Fraction]:
    """What the core after the first q is worth to a job on a server in ocorp+m with a switching cost.

    Choice: less than a marginal cost of ocorp+ by the smallest bonus that lifts to 1 the last core of each
    job on a server where it had none.
    """
    marginal = plus_marginal(coefficient, demand, previous, first, alpha)
    nowhere = plus_marginal(coefficient, demand, [[0]] * len(caps), first, alpha)
    bonus = Fraction(0)
    if not literal:
        bonus = max([bonus, *(1 + nowhere(j, 0, cap - 1) for j, cap in enumerate(caps))])
    return lambda j, i, q: bonus - marginal(j, i, q)


def optimal_placement_value(
    values: Sequence[Fraction],
    caps: Sequence[int],
    reserve: Sequence[int],
    cpu: Sequence[int],
    memory: Sequence[int],
) -> Fraction:
    """The greatest value of any placement of one slot in 2D, over every choice of hosts (tiny slots only)."""
    hosts = []
    for room in memory:
        subsets = itertools.product((False, True), repeat=len(caps))
        hosts.append([s for s in subsets if sum(m for m, on in zip(reserve, s, strict=True) if on) <= room])
    best = Fraction(0)
    for choice in itertools.product(*hosts):
        arcs = [(j, i) for i, chosen in enumerate(choice) for j, on in enumerate(chosen) if on]
        u = transport(lambda j, i, q: -values[j], caps, cpu, arcs=arcs)
        best = max(best, placement_value(u, values))
    return best


# --------------------------------------------------------------------------------------------
# The state of a cluster
# --------------------------------------------------------------------------------------------


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
    weight: float
    target: float
    tasks: int
    unit: int
    slots: Fraction
    left: Fraction
    whole: int


class _Cluster:
    """Remaining work, per job, phase and task [core-slots], and the rules of service."""

    def __init__(self, instance: Instance, mode: str | None, k: float) -> None:
        check(instance)
        if mode is not None and (mode not in MODES or is_mapreduce(instance)):
            raise ValueError(f"no mode {mode!r} for such jobs")
        self.instance = instance
        self.mode = mode
        self.k = k
        self.left: list[list[list[int]]] = []
        for job in instance.jobs:
            if isinstance(job, MapReduceJob):
                self.left.append(
                    [[p * d] * n for n, p, d in zip(job.tasks, job.processing, job.cpu, strict=True)]
                )
            else:
                self.left.append([[volume(job)]])

    def remaining(self, j: int) -> int:
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
                weight=(2 * age**k + job.length**k) / (2 * n * p),
                target=job.work, tasks=n, unit=d * n,
                slots=sum(longest, Fraction(0)), left=Fraction(left), whole=volume(job),
            )  # fmt: skip
        said = job.cpu if self.mode is None else declared_cpu(job)
        p = job.processing
        return Entry(
            j, z, job.arrival, age, demand=said, cap=cap,
            reserve=job.memory if self.mode is None else declared_memory(job),
            weight=age**k / p + p ** (k - 1),
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
        grants = []
        for most in self.task_caps(j):
            grants.append(min(most, cores))
            cores -= grants[-1]
        return grants


# --------------------------------------------------------------------------------------------
# Policies
# --------------------------------------------------------------------------------------------


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

        def badness(pair: tuple[int, int, Fraction], a: Fraction = mean_alignment, v: Fraction = mean_left):
            e = entries[pair[0]]
            return e.left / v - pair[2] / a, e.arrival, e.job, pair[1]

        n, i, _ = min(pairs, key=badness)
        amount = min(entries[n].cap - sum(u[n]), free[i])
        u[n][i] += amount
        free[i] -= amount
        if memory is not None:
            room[i] -= entries[n].reserve


def drf(entries: Sequence[Entry], cpu: Sequence[int], memory: Sequence[int] | None) -> Matrix:
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
        if memory is not None:
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


def transient(entries: Sequence[Entry], capacity: int) -> list[int]:
    """Eq. 38, solved core by core: max sum y/p, where a core of a job is worth 1 / (p d)."""
    units = sorted((e.whole, e.arrival, e.job, n) for n, e in enumerate(entries) for _ in range(e.cap))
    cores = [0] * len(entries)
    for *_, n in units[:capacity]:
        cores[n] += 1
    return cores


# --------------------------------------------------------------------------------------------
# Simulation
# --------------------------------------------------------------------------------------------


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
    fractional: list[float]
    lambdas: list[dict[tuple[int, int], float]] = field(default_factory=list)
    gammas: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    latency: list[Fraction] = field(default_factory=list)

    @property
    def slots(self) -> int:
        return len(self.allocations)


def _check_slot(cluster: _Cluster, u: Matrix, visible: Sequence[int]) -> None:
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


def _run(
    cluster: _Cluster, decide: Callable[[int, list[Entry]], Matrix], limit: int, after: Callable | None = None
) -> Outcome:
    """Run slot by slot until all is done or the limit. decide gives [job][server] of all jobs."""
    instance = cluster.instance
    n_jobs = len(instance.jobs)
    outcome = Outcome([None] * n_jobs, [], [], [0.0] * n_jobs)
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
    cluster = _Cluster(instance, mode, k)
    return _run(cluster, lambda t, entries: [list(row) for row in allocations[t - 1]], len(allocations))


def simulate(
    instance: Instance,
    policy: str,
    *,
    k: float = 2,
    packing: str = "fresh",
    gamma: float | str = 4000.0,
    lambda0: float | str = 1e11,
    literal: bool = False,
    alpha: float = 0.0,
    level: str = "server",
    backfill: bool = True,
    mode: str | None = None,
    limit: int | None = None,
) -> Outcome:
    """Run a policy of POLICIES on an instance.

    packing: "fresh" or "sticky". Choice: it has no meaning for ocorp+ with alpha > 0 at server level, and
        none in 2D but for the first x of ocorp+m: the greedy placement of the others looks at the slot alone.
    gamma: a number, "seen" or "eq27". Choice: of declared demands, in a mode of mis-estimation.
    lambda0: a number, "p" (mu p; MapReduce: mu (p^m + p^r), a Choice) or "w" (the weight at its first slot).
        Choice: 1e11, a number above all weights; the paper only says that lambda is initialised.
        The lambda of a reduce phase starts in its first slot, by the same rule.
    literal: ocorp, ocorp+ and ocorp+m serve only what lowers their objective.
    alpha: weight of the switching cost in ocorp+ and ocorp+m. With 0 (no unique optimum) fill and pack.
    level: "server" or "job", for ocorp+.
    mode: of mis-estimation, None if the declared demands are to be ignored. Choice: the declared memory is
        reserved in every mode.
    limit: number of slots, max_slots by default.

    Tetris and drf choose servers, too; in 1D only the cores per job count, which are then packed.
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}")
    if packing not in ("fresh", "sticky") or level not in ("server", "job"):
        raise ValueError(f"no packing {packing!r} or no level {level!r}")
    if (
        (isinstance(gamma, str) and gamma not in ("seen", "eq27"))
        or lambda0 not in ("p", "w")
        and isinstance(lambda0, str)
    ):
        raise ValueError(f"no gamma {gamma!r} or no lambda0 {lambda0!r}")
    two_d = instance.memory is not None
    if policy == "ocorp+" and (two_d or is_mapreduce(instance)):
        raise ValueError("ocorp+ is defined for plain jobs in 1D")
    if policy == "ocorp+m" and not two_d:
        raise ValueError("ocorp+m needs memory")
    if policy == "svf-transient" and (
        two_d or is_mapreduce(instance) or any(job.arrival > 0 for job in instance.jobs)
    ):
        raise ValueError("svf-transient needs plain jobs in 1D that all arrive at 0")

    cluster = _Cluster(instance, mode, k)
    cpu, memory = instance.cpu, instance.memory
    nobody = [[0] * len(cpu) for _ in instance.jobs]
    lambdas: dict[tuple[int, int], float] = {}
    trajectory: list[dict[tuple[int, int], float]] = []
    gammas: list[float] = []
    rounds: list[int] = []
    latency: list[Fraction] = []
    history: list[Matrix] = []

    def gamma_at(t: int) -> float:
        if gamma == "eq27":
            return eq27(instance, declared=mode is not None)
        if gamma == "seen":
            seen = [j for j, job in enumerate(instance.jobs) if job.arrival < t]
            return eq27(instance, seen, declared=mode is not None)
        assert not isinstance(gamma, str)
        return gamma

    def spread(entries: list[Entry], cores: Sequence[int]) -> Matrix:
        """From cores of the visible jobs to servers (1D)."""
        of_all = [0] * len(instance.jobs)
        for e, amount in zip(entries, cores, strict=True):
            of_all[e.job] = amount
        if any(isinstance(job, MapReduceJob) and job.latency is not None for job in instance.jobs):
            u, cost = locality(cluster, of_all)
            latency.append(cost)
            return u
        return pack(of_all, cpu, history[-1] if packing == "sticky" and history else None)

    def of_all(entries: list[Entry], rows: Matrix) -> Matrix:
        u = [list(row) for row in nobody]
        for e, row in zip(entries, rows, strict=True):
            u[e.job] = row
        return u

    def decide(t: int, entries: list[Entry]) -> Matrix:
        u = choose(t, entries)
        history.append(u)
        return u

    def choose(t: int, entries: list[Entry]) -> Matrix:
        caps = [e.cap for e in entries]
        reserve = [e.reserve for e in entries]
        if policy in ("tetris", "drf"):
            rows = (tetris if policy == "tetris" else drf)(entries, cpu, memory)
            return of_all(entries, rows) if two_d else spread(entries, [sum(row) for row in rows])
        if policy == "svf-transient":
            return spread(entries, transient(entries, sum(cpu)))
        if policy in PRIORITY_RULES:
            order = rule_order(entries, policy)
            if memory is not None:
                return of_all(entries, place(order, caps, reserve, cpu, memory))
            return spread(entries, fill(order, caps, sum(cpu)))

        mu = t ** (k + 0.5)
        for e in entries:
            if (e.job, e.phase) not in lambdas:
                start = {"p": mu * length(instance.jobs[e.job]), "w": e.weight}
                lambdas[e.job, e.phase] = start[lambda0] if isinstance(lambda0, str) else lambda0
        coefficient = [e.weight - lambdas[e.job, e.phase] for e in entries]
        omega = [c / e.demand for c, e in zip(coefficient, entries, strict=True)]
        order = sorted(range(len(entries)), key=lambda n: (omega[n], entries[n].arrival, entries[n].job))
        if literal:
            order = [n for n in order if omega[n] < 0]
        previous = [history[-1][e.job] if history else nobody[0] for e in entries]

        if policy == "ocorp+m":
            assert memory is not None
            values = core_values(omega, literal=literal)
            old = previous if packing == "sticky" else None
            changes: dict[str, Any] = {}
            if alpha > 0:
                slot = coefficient, [e.demand for e in entries], caps, previous, [e.age == 1 for e in entries]
                changes["first"] = plus_allocation(*slot, cpu, alpha, literal=literal)
                changes["worth"] = switching_values(*slot, alpha, literal=literal)
            rows, number = memory_allocation(
                order, values, caps, reserve, cpu, memory, previous=old, backfill=backfill, **changes
            )
            rounds.append(number)
            return of_all(entries, rows)
        if memory is not None:
            return of_all(entries, place(order, caps, reserve, cpu, memory))
        if policy == "ocorp" or alpha == 0:
            return spread(entries, fill(order, caps, sum(cpu)))
        demand = [e.demand for e in entries]
        first = [e.age == 1 for e in entries]
        if level == "job":
            return spread(
                entries,
                plus_job_level(coefficient, demand, caps, previous, first, cpu, alpha, literal=literal),
            )
        rows = plus_allocation(coefficient, demand, caps, previous, first, cpu, alpha, literal=literal)
        return of_all(entries, rows)

    def after(t: int, entries: list[Entry], used: list[int]) -> None:
        gammas.append(gamma_at(t))
        if policy.startswith("ocorp"):
            mu = t ** (k + 0.5)
            for e in entries:
                wanted = e.target / (e.tasks * max(gammas[-1] - e.arrival, 1))
                key = (e.job, e.phase)
                lambdas[key] = max(0.0, lambdas[key] + mu * (wanted - used[e.job] / e.unit))
            trajectory.append({(e.job, e.phase): lambdas[e.job, e.phase] for e in entries})

    if limit is None:
        limit = max_slots(instance, 4000.0 if isinstance(gamma, str) else gamma)
    outcome = _run(cluster, decide, limit, after)
    outcome.lambdas, outcome.gammas, outcome.rounds, outcome.latency = trajectory, gammas, rounds, latency
    return outcome


def locality(cluster: _Cluster, cores: Sequence[int]) -> tuple[Matrix, Fraction]:
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


# --------------------------------------------------------------------------------------------
# Accounting
# --------------------------------------------------------------------------------------------


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
    cluster = _Cluster(instance, None, 1)
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


def rewards(
    instance: Instance, outcome: Outcome, k: float = 2, *, alpha: float = 0.0, normalize: bool = False
) -> list[float]:
    """Reward per slot: -(sum of age^k - (age - 1)^k over arrived unfinished jobs) - alpha S(t)."""
    scale = sum(length(job) ** k for job in instance.jobs) if normalize else 1.0
    result = []
    for t, cost in enumerate(switching_cost(instance, outcome), start=1):
        charge = 0.0
        for job, end in zip(instance.jobs, outcome.completion, strict=True):
            if job.arrival < t and (end is None or t <= end):
                age = t - job.arrival
                charge += age**k - (age - 1) ** k
        result.append(-(charge + alpha * cost) / scale)
    return result


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
    cluster = _Cluster(instance, None, k)
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


def fit_curve(instance: Instance, outcome: Outcome, gamma: float | None = None) -> list[float]:
    """Eq. 26 for T = 1, 2, ...: sum over slots and arrived jobs (finished ones, too) of p / (gamma - a) - y.

    gamma: the gammas of the outcome by default. gamma - a is at least 1, as in the policy. Plain jobs only.
    """
    total, curve = 0.0, []
    for t, used in enumerate(outcome.used, start=1):
        g = outcome.gammas[t - 1] if gamma is None else gamma
        for job, amount in zip(instance.jobs, used, strict=True):
            assert isinstance(job, Job)
            if job.arrival < t:
                total += job.processing / max(g - job.arrival, 1) - amount / job.cpu
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


def metrics(instance: Instance, outcome: Outcome, k: float = 2, *, bounds: bool = False) -> dict[str, float]:
    """The numbers of the specification for one run.

    Norms are (sum f^k)^(1/k) over the jobs that arrived before the end. ratio (with bounds=True): lk over
    the norm of the best lower bound. idle: granted to nobody, over all slots [core-slots]. wasted: granted
    and not used [core-slots]. mean_waiting: of f - p, if all jobs have arrived.
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
    if bounds:
        best = max(lower_bounds(instance, k).values())
        result["ratio"] = result["lk"] / best ** (1.0 / k)
    return result


# --------------------------------------------------------------------------------------------
# Bounds and optima
# --------------------------------------------------------------------------------------------


def optimal_fractional(instance: Instance, k: float) -> float:
    """OPT_P2: least sum of fractional flowtimes (Eq. 5) of plain jobs, without memory, as an LP."""
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix

    total = sum(instance.cpu)
    jobs = [job for job in instance.jobs if isinstance(job, Job)]
    assert len(jobs) == len(instance.jobs)
    horizon = max(job.arrival for job in jobs) + sum(-(-volume(job) // min(job.cpu, total)) for job in jobs)
    pairs = [(j, t) for j, job in enumerate(jobs) for t in range(job.arrival + 1, horizon + 1)]
    costs = [
        ((t - jobs[j].arrival) ** k / jobs[j].processing + jobs[j].processing ** (k - 1)) / jobs[j].cpu
        for j, t in pairs
    ]
    columns = np.arange(len(pairs))
    ones = np.ones(len(pairs))
    done = coo_matrix((ones, ([j for j, _ in pairs], columns)), shape=(len(jobs), len(pairs)))
    load = coo_matrix((ones, ([t - 1 for _, t in pairs], columns)), shape=(horizon, len(pairs)))
    solved = linprog(
        costs,
        A_ub=load.tocsr(),
        b_ub=[total] * horizon,
        A_eq=done.tocsr(),
        b_eq=[volume(job) for job in jobs],
        bounds=[(0, jobs[j].cpu) for j, _ in pairs],
        method="highs",
    )
    assert solved.status == 0, solved.message
    return float(solved.fun)


def one_machine_srpt(instance: Instance) -> int:
    """Sum of flowtimes of SRPT by volume on one machine of speed sum C, where a job has no cap of cores."""
    left = [volume(job) for job in instance.jobs]
    total, t = 0, 0
    while any(left):
        t += 1
        speed = sum(instance.cpu)
        visible = [j for j, job in enumerate(instance.jobs) if job.arrival < t and left[j] > 0]
        total += len(visible)
        for j in sorted(visible, key=lambda j: (left[j], j)):
            amount = min(left[j], speed)
            left[j] -= amount
            speed -= amount
    return total


def lower_bounds(instance: Instance, k: float) -> dict[str, float]:
    """Lower bounds on the least sum of f^k, by name. They ignore memory; MapReduce has fewer of them."""
    longest = sum(length(job) ** k for job in instance.jobs)
    bounds = {"processing": float(longest)}
    if not is_mapreduce(instance):
        fractional = optimal_fractional(instance, k)
        bounds["half_fractional"] = fractional / 2
        bounds["fractional"] = fractional - longest
        if k == 1:
            bounds["fractional_k1"] = (
                fractional - longest + sum((length(job) - 1) / 2 for job in instance.jobs)
            )
    if k == 1:
        bounds["one_machine"] = float(one_machine_srpt(instance))
    return bounds


def optimum(instance: Instance, k: float) -> float:
    """Least sum of f^k, over all allocations of whole cores (tiny instances only).

    A search over (slot, remaining work of every task). More cores never hurt, so that only allocations to
    which nothing can be added are tried.
    """
    cluster = _Cluster(instance, None, k)
    owner: list[tuple[int, int, int]] = []  # (job, phase, cores) of each task
    work: list[int] = []
    for j, job in enumerate(instance.jobs):
        for z, tasks in enumerate(cluster.left[j]):
            for amount in tasks:
                owner.append((j, z, job.cpu[z] if isinstance(job, MapReduceJob) else job.cpu))
                work.append(amount)
    tasks = range(len(owner))
    arrivals = [job.arrival for job in instance.jobs]
    reserve = [job.memory if isinstance(job, Job) else 0 for job in instance.jobs]
    choices: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    known: dict[tuple[int, tuple[int, ...]], float] = {}

    def one_server(caps: tuple[int, ...], i: int) -> set[tuple[int, ...]]:
        """Every allocation on server i."""
        vectors: set[tuple[int, ...]] = set()
        for u in itertools.product(*(range(min(cap, instance.cpu[i]) + 1) for cap in caps)):
            held = sum(reserve[owner[n][0]] for n in tasks if u[n] > 0)
            if sum(u) <= instance.cpu[i] and (instance.memory is None or held <= instance.memory[i]):
                vectors.add(u)
        return vectors

    def allocations(caps: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Cores of the tasks, all vectors that no other one dominates."""
        if caps not in choices:
            if instance.memory is None:
                total = min(sum(instance.cpu), sum(caps))
                grid = itertools.product(*(range(cap + 1) for cap in caps))
                choices[caps] = [u for u in grid if sum(u) == total]
            else:
                found = {tuple([0] * len(caps))}
                for i in range(len(instance.cpu)):
                    found = {
                        tuple(min(a + b, cap) for a, b, cap in zip(u, v, caps, strict=True))
                        for u in found
                        for v in one_server(caps, i)
                    }
                choices[caps] = [
                    u
                    for u in found
                    if not any(v != u and all(a <= b for a, b in zip(u, v, strict=True)) for v in found)
                ]
        return choices[caps]

    def search(t: int, left: tuple[int, ...]) -> float:
        if not any(left):
            return 0.0
        if (t, left) not in known:
            unfinished = {owner[n][0] for n in tasks if left[n] > 0}
            mapping = {owner[n][0] for n in tasks if left[n] > 0 and owner[n][1] == 0}
            charge = 0.0
            for j in unfinished:
                if arrivals[j] < t:
                    charge += (t - arrivals[j]) ** k - (t - arrivals[j] - 1) ** k
            caps = tuple(
                0
                if arrivals[owner[n][0]] >= t or (owner[n][1] == 1 and owner[n][0] in mapping)
                else min(owner[n][2], left[n])
                for n in tasks
            )
            best = math.inf
            for u in allocations(caps):
                after = tuple(amount - cores for amount, cores in zip(left, u, strict=True))
                best = min(best, search(t + 1, after))
            known[t, left] = charge + best
        return known[t, left]

    return search(1, tuple(work))


# --------------------------------------------------------------------------------------------
# Random instances
# --------------------------------------------------------------------------------------------


def random_instance(
    rng: random.Random, kind: str = "1d", *, tiny: bool = False, at_once: bool = False
) -> Instance:
    """A small random instance with many ties: up to 12 jobs on 4 servers, or up to 4 jobs on 2 (tiny).

    kind: "1d", "2d" or "mapreduce" (one in three with latencies). at_once: every job arrives at 0. Now and
    then a job asks for more cores than a server, or than all servers, have.
    """
    servers = rng.randint(1, 2 if tiny else 4)
    cpu = [rng.randint(1, 3 if tiny else 8) for _ in range(servers)]
    n_jobs = rng.randint(2, 3) if tiny else rng.randint(3, 12)
    last = 0 if at_once else rng.choice([0, 2, 3] if tiny else [0, 3, 8, 20])
    arrivals = sorted(rng.randint(0, last) for _ in range(n_jobs))
    most = min(sum(cpu), 3) if tiny else rng.choice([max(cpu), max(cpu), sum(cpu) + 1])
    longest = rng.choice([2, 3] if tiny else [3, 6, 12])
    if kind == "mapreduce":
        with_latency = not tiny and rng.random() < 1 / 3
        mapreduce: list[MapReduceJob] = []
        for a in arrivals:
            n = (rng.randint(1, 2 if tiny else 3), rng.randint(0, 1 if tiny else 2))
            p = (rng.randint(1, longest), rng.randint(1, longest))
            d = (rng.randint(1, most), rng.randint(1, most))
            latency = None
            if with_latency:
                maps, reduces = ([[rng.randint(0, 5) for _ in cpu] for _ in range(tasks)] for tasks in n)
                latency = (maps, reduces)
            mapreduce.append(MapReduceJob(a, n, p, d, latency))
        return Instance(mapreduce, cpu)
    memory = [rng.randint(2, 4 if tiny else 16) for _ in cpu] if kind == "2d" else None
    jobs: list[Job] = []
    for a in arrivals:
        held = 0 if memory is None else rng.randint(1, max(memory))
        jobs.append(Job(a, rng.randint(1, longest), rng.randint(1, most), held))
    return Instance(jobs, cpu, memory)
