"""Tiny instances of flowtime scheduling on pooled cores, and single slots with memory, in exact numbers.

Plain lists and loops suffice, as instances have a handful of jobs. A job is (arrival, processing, cpu). A
schedule is a list over slots 1, 2, ... of the cores of each job. In no slot does a job get more cores than
its demand or its remaining core-slots. More cores never hurt, so no search here leaves usable cores free.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

__all__ = [
    "RULES",
    "Job",
    "Placement",
    "Schedule",
    "Slot",
    "alternate",
    "best_value",
    "completions",
    "eq27",
    "fill",
    "feasible",
    "flowtime",
    "flowtime_best",
    "fractional",
    "fractional_best",
    "keep",
    "literal_ocorp",
    "multisets",
    "pack",
    "plain_best",
    "rule",
    "transient_least",
    "value",
]

Job = tuple[int, int, int]
Schedule = list[tuple[int, ...]]
Placement = list[list[int]]


# one slot after another --------------------------------------------------------------------------------


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


def fill(order: Sequence[int], caps: Sequence[int], cores: int) -> list[int]:
    """Return the cores of each job: in this order, each gets its cap or the cores left."""
    given = [0] * len(caps)
    for j in order:
        given[j] = min(caps[j], cores)
        cores -= given[j]
    return given


RULES: dict[str, Callable[[Job, int], Fraction | int]] = {
    "svf": lambda job, left: job[1] * job[2],
    "srvf": lambda job, left: left,
    "srpt": lambda job, left: Fraction(left, job[2]),
    "srf": lambda job, left: job[2],
    "fifo": lambda job, left: job[0],
}


def rule(name: str, jobs: Sequence[Job], cores: int) -> Schedule:
    """Return the schedule of a priority rule; ties go to earlier arrival, then to the lower number."""
    key = RULES[name]
    left = [p * d for _, p, d in jobs]
    schedule: Schedule = []
    while any(left):
        t = len(schedule)
        caps = [min(d, work) if arrival <= t else 0 for (arrival, _, d), work in zip(jobs, left, strict=True)]
        order = sorted(range(len(jobs)), key=lambda j: (key(jobs[j], left[j]), jobs[j][0], j))
        given = fill(order, caps, cores)
        left = [work - u for work, u in zip(left, given, strict=True)]
        schedule.append(tuple(given))
    return schedule


def completions(jobs: Sequence[Job], schedule: Schedule) -> list[int]:
    """Return the slot in which each job ends; raise ValueError if one does not end."""
    ends = []
    for j, (_, p, d) in enumerate(jobs):
        done = list(itertools.accumulate(u[j] for u in schedule))
        if not done or done[-1] != p * d:
            raise ValueError(f"job {j} does not end, or has too many cores")
        ends.append(done.index(p * d) + 1)
    return ends


def flowtime(jobs: Sequence[Job], schedule: Schedule, k: int = 1) -> int:
    """Return the sum of flowtime^k."""
    ends = completions(jobs, schedule)
    return sum((end - job[0]) ** k for job, end in zip(jobs, ends, strict=True))


def feasible(jobs: Sequence[Job], cores: int, schedule: Schedule) -> bool:
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


def fractional(jobs: Sequence[Job], schedule: Schedule, k: int = 1) -> Fraction:
    """Return the sum of the fractional flowtimes (Eq. 5) of the work served."""
    total = Fraction(0)
    for t, cores in enumerate(schedule, start=1):
        for (arrival, p, d), u in zip(jobs, cores, strict=True):
            total += (Fraction((t - arrival) ** k, p) + p ** (k - 1)) * Fraction(u, d)
    return total


def _cheapest(
    jobs: Sequence[Job],
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


def flowtime_best(jobs: Sequence[Job], cores: int, k: int = 1) -> tuple[int, Schedule]:
    """Return OPT_P1, the least sum of flowtime^k, and a schedule that reaches it."""

    def charge(t: int, left: tuple[int, ...]) -> int:
        ages = [t - job[0] for job, work in zip(jobs, left, strict=True) if work and job[0] < t]
        return sum(age**k - (age - 1) ** k for age in ages)

    return _cheapest(jobs, cores, charge, lambda t: [0] * len(jobs))


def fractional_best(jobs: Sequence[Job], cores: int, k: int = 1) -> tuple[Fraction, Schedule]:
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


def multisets(count: int, longest: int, widest: int, latest: int = 0) -> Iterator[tuple[Job, ...]]:
    """Yield all sets of ``count`` jobs in order of arrival; the first one arrives at 0."""
    kinds = itertools.product(range(latest + 1), range(1, longest + 1), range(1, widest + 1))
    for jobs in itertools.combinations_with_replacement(list(kinds), count):
        if jobs[0][0] == 0:
            yield jobs


def eq27(jobs: Sequence[Job], cores: int) -> Fraction:
    """Gamma of Eq. 27."""
    ends = max(max(a + 2 * p, 2 * a) for a, p, _ in jobs)
    return max(Fraction(ends), Fraction(4 * sum(p * d for _, p, d in jobs), cores))


def literal_ocorp(
    jobs: Sequence[Job],
    cores: int,
    k: int,
    target: Callable[[Job], Any],
    step: Callable[[int], Any],
    slots: int,
    start: Any = 0,
    alpha: Any = 0,
) -> Schedule:
    """Run OCORP, or OCORP+, as printed: a job waits unless its omega is negative.

    Numbers are fractions or floats, like target and step. There are two corrections: a job gets no more cores
    than it has work left, and case 2 of Eq. 22 sums to j - 1. The cores are those of one server: with a
    switching cost, too, taking the cheapest core after the other minimises Eq. 32, as each further core of a
    job costs more.

    Args:
        jobs: in order of arrival.
        cores: total number of cores.
        k: exponent of the norm.
        target: gives the target of lambda per slot for a job: p / (Gamma - a).
        step: mu, by slot.
        slots: number of slots after which to stop at the latest.
        start: lambda of a job in its first slot, which the paper does not give.
        alpha: weight of the switching cost (Eq. 31), of which a job in its first slot has none.
    """
    left = [p * d for _, p, d in jobs]
    price: list[Any] = [start] * len(jobs)
    before = [0] * len(jobs)
    targets = [target(job) for job in jobs]
    schedule: Schedule = []
    while any(left) and len(schedule) < slots:
        t = len(schedule) + 1
        omega: dict[int, Any] = {}
        for j, (a, p, d) in enumerate(jobs):
            if a < t and left[j]:
                omega[j] = (Fraction((t - a) ** k, p) + p ** (k - 1) - price[j]) / d
        units = []
        for j in omega:
            a, _, d = jobs[j]
            change = (alpha if isinstance(alpha, float) else Fraction(alpha)) / d**2 if t >= a + 2 else 0
            for q in range(min(d, left[j])):
                units.append((omega[j] + change * (2 * (q - before[j]) + 1), j, q))
        given = [0] * len(jobs)
        for _, j, _ in sorted(unit for unit in units if unit[0] < 0)[:cores]:
            given[j] += 1
        for j in omega:
            price[j] = max(0, price[j] + step(t) * (targets[j] - Fraction(given[j], jobs[j][2])))
        left = [work - u for work, u in zip(left, given, strict=True)]
        before = given
        schedule.append(tuple(given))
    return schedule


# one slot with memory ----------------------------------------------------------------------------------


class Slot(NamedTuple):
    """A slot of problem P3 with memory.

    Attributes:
        worth: worth of a core, pi / d, by job.
        caps: largest number of cores, by job.
        reserve: memory that the job reserves, by job.
        cpu: cores, by server.
        memory: memory, by server.
    """

    worth: tuple[int, ...]
    caps: tuple[int, ...]
    reserve: tuple[int, ...]
    cpu: tuple[int, ...]
    memory: tuple[int, ...]


def pack(cores: Sequence[int], cpu: Sequence[int]) -> Placement:
    """Fill servers by capacity with the jobs that fit whole, by decreasing cores; split the other jobs."""
    left, free = list(cores), list(cpu)
    placed = [[0] * len(cpu) for _ in cores]

    def put(j: int, i: int) -> None:
        amount = min(left[j], free[i])
        placed[j][i] += amount
        left[j] -= amount
        free[i] -= amount

    for i in sorted(range(len(cpu)), key=lambda i: (-cpu[i], i)):
        for j in sorted(range(len(cores)), key=lambda j: (-left[j], j)):
            if left[j] <= free[i]:
                put(j, i)
    for j in sorted(range(len(cores)), key=lambda j: (-left[j], j)):
        while left[j]:
            put(j, min(range(len(cpu)), key=lambda i: (-free[i], i)))
    return placed


def value(placement: Placement, worth: Sequence[int]) -> int:
    """Return the total worth of the cores of a placement."""
    return sum(w * sum(row) for w, row in zip(worth, placement, strict=True))


def keep(values: Sequence[int], weights: Sequence[int], capacity: int) -> tuple[int, ...]:
    """Return the most valuable items that fit, by trying all sets; of equal sets that of lowest items."""
    best = -1
    chosen: tuple[int, ...] = ()
    for taken in itertools.product((0, 1), repeat=len(values)):
        if sum(itertools.compress(weights, taken)) <= capacity:
            total = sum(itertools.compress(values, taken))
            if total > best or (total == best and taken > chosen):
                best, chosen = total, taken
    return chosen


def _most_on(hosts: Sequence[Sequence[bool]], slot: Slot) -> Placement:
    """Return the best cores if jobs may use certain servers only: by falling worth, by augmenting paths."""
    u = [[0] * len(slot.cpu) for _ in slot.caps]
    free = list(slot.cpu)

    def augment(j: int, seen: set[int]) -> bool:
        """Find one more core for job j, moving cores of other jobs if necessary."""
        for i, allowed in enumerate(hosts[j]):
            if not allowed or i in seen:
                continue
            seen.add(i)
            if free[i]:
                free[i] -= 1
                u[j][i] += 1
                return True
            for other, row in enumerate(u):
                if other != j and row[i] and augment(other, seen):
                    row[i] -= 1
                    u[j][i] += 1
                    return True
        return False

    for j in sorted(range(len(slot.caps)), key=lambda j: (-slot.worth[j], j)):
        while sum(u[j]) < slot.caps[j] and augment(j, set()):
            pass
    return u


def alternate(slot: Slot) -> tuple[list[Placement], list[Placement]]:
    """Run Algorithm 1 in one slot; return all x, and what z leaves of each. The last pair changes nothing."""
    order = sorted(range(len(slot.caps)), key=lambda j: (-slot.worth[j], j))
    x = pack(fill(order, slot.caps, sum(slot.cpu)), slot.cpu)
    cores, kept = [x], list[Placement]()
    while True:
        rest = [[0] * len(slot.cpu) for _ in slot.caps]
        for i, memory in enumerate(slot.memory):
            there = [j for j, row in enumerate(x) if row[i]]
            taken = keep([slot.worth[j] * x[j][i] for j in there], [slot.reserve[j] for j in there], memory)
            for j in itertools.compress(there, taken):
                rest[j][i] = x[j][i]
        kept.append(rest)
        if len(kept) > 1 and kept[-1] == kept[-2]:
            return cores, kept
        x = _most_on([[amount > 0 for amount in row] for row in rest], slot)
        if value(x, slot.worth) <= value(rest, slot.worth):
            x = rest
        cores.append(x)


def best_value(slot: Slot) -> int:
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
    best = 0
    for choice in itertools.product(*sets):
        total = before = 0
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


def plain_best(slot: Slot) -> int:
    """Return the optimum of P3 by trying all cores of all jobs on all servers; for a handful of cores."""

    def tries(i: int) -> Iterator[tuple[int, ...]]:
        for cores in itertools.product(*(range(min(cap, slot.cpu[i]) + 1) for cap in slot.caps)):
            held = sum(m for m, u in zip(slot.reserve, cores, strict=True) if u)
            if sum(cores) <= slot.cpu[i] and held <= slot.memory[i]:
                yield cores

    best = 0
    for rows in itertools.product(*(list(tries(i)) for i in range(len(slot.cpu)))):
        sums = [sum(row[j] for row in rows) for j in range(len(slot.caps))]
        if all(u <= cap for u, cap in zip(sums, slot.caps, strict=True)):
            best = max(best, sum(w * u for w, u in zip(slot.worth, sums, strict=True)))
    return best
