"""What is decided in one slot: packing, placement with memory, and the programmes of OCORP+ and OCORP+M."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

__all__ = [
    "Matrix",
    "Number",
    "PlusSlot",
    "Slot",
    "alternate",
    "best_value",
    "core_values",
    "fill",
    "knapsack",
    "memory_allocation",
    "pack",
    "place",
    "placement_value",
    "plus_allocation",
    "plus_cost",
    "plus_job_level",
    "switching_values",
    "transport",
]

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
