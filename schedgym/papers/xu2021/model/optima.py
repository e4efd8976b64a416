"""Exact optima of tiny instances on pooled cores, by search.

A schedule is a list over slots 1, 2, ... of the cores of each job. In no slot does a job get more cores than
its demand or its remaining core-slots. More cores never hurt, so no search here leaves usable cores free.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

__all__ = [
    "PooledJob",
    "Schedule",
    "completions",
    "feasible",
    "flowtime",
    "flowtime_best",
    "fractional",
    "fractional_best",
    "multisets",
    "transient_least",
]

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
