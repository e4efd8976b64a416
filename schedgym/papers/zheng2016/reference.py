"""Tiny instances of jobs with partial values, in exact numbers.

Plain lists and loops suffice, as instances have a handful of jobs. Demands and capacities are whole numbers,
values whole numbers or fractions; a schedule is a list over slots 1, 2, ... of the tasks of each job.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from schedgym.papers.exact import Number, Optimum, simplex

__all__ = [
    "Amounts",
    "Instance",
    "Job",
    "Schedule",
    "algorithm_1",
    "SlotPrices",
    "allocations",
    "best_slot",
    "curved_slot",
    "deadline_aware",
    "feasible",
    "horizon",
    "linear_best",
    "m_greedy",
    "play",
    "primal_dual",
    "most_tasks",
    "s_greedy",
    "shares",
    "slot_gain",
    "totals",
    "value",
    "whole_best",
    "worth",
]

Amounts = tuple[Number, ...]
Schedule = list[Amounts]


class Job(NamedTuple):
    """Job served in slots arrival..deadline, at most ``parallelism`` tasks per slot and ``tasks`` in total.

    ``values`` are the values of tasks 1, 2, ... and never rise. The last one is also the value of all further
    tasks, so a single value makes f linear. ``demand`` is the amount of each resource that a task needs.
    """

    arrival: int
    deadline: int
    parallelism: Number
    tasks: Number
    demand: tuple[int, ...]
    values: tuple[Number, ...]


class Instance(NamedTuple):
    """Jobs and the capacity of each resource."""

    jobs: tuple[Job, ...]
    capacity: tuple[int, ...]


def shares(instance: Instance, j: int) -> list[Fraction]:
    """Return r, the share of each resource that a task of job j takes."""
    return [Fraction(d, c) for d, c in zip(instance.jobs[j].demand, instance.capacity, strict=True)]


def horizon(instance: Instance) -> int:
    """Return the last deadline."""
    return max(job.deadline for job in instance.jobs)


def worth(job: Job, k: int) -> Number:
    """Return the value of task k = 1, 2, ..."""
    return job.values[min(k, len(job.values)) - 1]


def _gain(job: Job, before: Number, after: Number) -> Number:
    """Return f(after) - f(before); a part of task k has that part of its value."""
    if len(job.values) == 1:
        return job.values[0] * (after - before)
    total: Number = 0
    for k in range(math.floor(before) + 1, math.ceil(after) + 1):
        total += worth(job, k) * (min(after, k) - max(before, k - 1))
    return total


def slot_gain(instance: Instance, served: Amounts, x: Amounts) -> Number:
    """Return the value of x tasks in addition to those served before."""
    return sum(_gain(job, y, y + a) for job, y, a in zip(instance.jobs, served, x, strict=True))


def totals(instance: Instance, schedule: Schedule) -> Amounts:
    """Return the total tasks of each job."""
    return tuple(sum(x[j] for x in schedule) for j in range(len(instance.jobs)))


def value(instance: Instance, schedule: Schedule) -> Number:
    """Return the value of a whole schedule."""
    return slot_gain(instance, (0,) * len(instance.jobs), totals(instance, schedule))


def most_tasks(instance: Instance, slot: int, served: Amounts) -> Amounts:
    """Return how many tasks each job may get in a slot: 0 if it is not active."""
    return tuple(
        min(job.parallelism, job.tasks - y) if job.arrival <= slot <= job.deadline else 0
        for job, y in zip(instance.jobs, served, strict=True)
    )


def _fits(instance: Instance, x: Amounts) -> bool:
    return all(
        sum(job.demand[i] * a for job, a in zip(instance.jobs, x, strict=True)) <= c
        for i, c in enumerate(instance.capacity)
    )


def feasible(instance: Instance, schedule: Schedule, whole: bool) -> bool:
    """Return True if a schedule keeps all constraints."""
    served: Amounts = (0,) * len(instance.jobs)
    for slot, x in enumerate(schedule, start=1):
        if len(x) != len(served) or not _fits(instance, x):
            return False
        if not all(0 <= a <= u for a, u in zip(x, most_tasks(instance, slot, served), strict=True)):
            return False
        if whole and any(a != math.floor(a) for a in x):
            return False
        served = tuple(y + a for y, a in zip(served, x, strict=True))
    return True


def play(instance: Instance, choose: Callable[[Instance, int, Amounts], Amounts]) -> Schedule:
    """Return the schedule of a rule, which is given the slot and the tasks served before."""
    served: Amounts = (0,) * len(instance.jobs)
    schedule = []
    for slot in range(1, horizon(instance) + 1):
        x = choose(instance, slot, served)
        schedule.append(x)
        served = tuple(y + a for y, a in zip(served, x, strict=True))
    return schedule


# tasks that can be cut, linear utilities -----------------------------------------------------------------


def algorithm_1(instance: Instance, slot: int, served: Amounts) -> Optimum:
    """Solve problem (2) of one slot for linear utilities; the first rows are the resources."""
    caps = most_tasks(instance, slot, served)
    rows: list[list[Number]] = [
        [job.demand[i] for job in instance.jobs] for i in range(len(instance.capacity))
    ]
    rows += [[int(j == k) for k in range(len(caps))] for j in range(len(caps))]
    return simplex([job.values[0] for job in instance.jobs], rows, [*instance.capacity, *caps])


def linear_best(instance: Instance) -> tuple[Fraction, Schedule]:
    """Return the offline optimum of problem (1) for linear utilities."""
    jobs, last = instance.jobs, horizon(instance)
    columns = [(j, t) for j, job in enumerate(jobs) for t in range(job.arrival, job.deadline + 1)]
    rows: list[list[Number]] = []
    limits: list[Number] = []
    for t in range(1, last + 1):
        for i, c in enumerate(instance.capacity):
            rows.append([jobs[j].demand[i] if s == t else 0 for j, s in columns])
            limits.append(c)
    for k, job in enumerate(jobs):
        rows.append([int(j == k) for j, _ in columns])
        limits.append(job.tasks)
        if job.parallelism < job.tasks:
            for t in range(job.arrival, job.deadline + 1):
                rows.append([int((j, s) == (k, t)) for j, s in columns])
                limits.append(job.parallelism)
    found = simplex([jobs[j].values[0] for j, _ in columns], rows, limits)
    at = dict(zip(columns, found.x, strict=True))
    return found.value, [
        tuple(at.get((j, t), Fraction(0)) for j in range(len(jobs))) for t in range(1, last + 1)
    ]


# tasks that can be cut, utilities v y - y^2 / 2, one resource --------------------------------------------


class SlotPrices(NamedTuple):
    """Tasks of each job by Algorithm 1, and the least and the greatest price of the whole resource."""

    x: Amounts
    least: Fraction
    greatest: Fraction


def curved_slot(instance: Instance, slot: int, served: Amounts) -> SlotPrices:
    """Solve problem (2) of one slot for f(y) = v y - y^2 / 2, which is constant from y = v on; v >= Y.

    A job that pays the price b r for a task of share r takes v - b r - y, cut off at 0 and its most tasks.
    The load falls with b, and is linear between the prices at which a job starts or stops to take more. All
    prices from the least to the greatest are multipliers of the resource.
    """
    caps = most_tasks(instance, slot, served)
    r = [shares(instance, j)[0] for j in range(len(caps))]
    left = [job.values[0] - y for job, y in zip(instance.jobs, served, strict=True)]

    def taken(price: Fraction) -> Amounts:
        return tuple(
            min(max(rest - price * share, Fraction(0)), cap)
            for rest, share, cap in zip(left, r, caps, strict=True)
        )

    def load(price: Fraction) -> Fraction:
        return sum((share * a for share, a in zip(r, taken(price), strict=True)), Fraction(0))

    if load(Fraction(0)) < 1:
        return SlotPrices(taken(Fraction(0)), Fraction(0), Fraction(0))
    turns = {(rest - a) / share for rest, share, cap in zip(left, r, caps, strict=True) for a in (0, cap)}
    places = sorted({Fraction(0), *(turn for turn in turns if turn > 0)})
    after = next((k for k, place in enumerate(places) if load(place) <= 1))
    least = places[after]
    if load(least) < 1:
        before = places[after - 1]
        least = before + (load(before) - 1) / (load(before) - load(least)) * (least - before)
    greatest = max([least, *(place for place in places if load(place) == 1)])
    return SlotPrices(taken(least), least, greatest)


# whole tasks ---------------------------------------------------------------------------------------------


def _usable(instance: Instance, slot: int, served: Amounts) -> list[int]:
    """Return :func:`most_tasks`, but 0 for jobs of which no task fits."""
    return [
        int(u) if all(d <= c for d, c in zip(job.demand, instance.capacity, strict=True)) else 0
        for job, u in zip(instance.jobs, most_tasks(instance, slot, served), strict=True)
    ]


def allocations(instance: Instance, slot: int, served: Amounts) -> Iterator[Amounts]:
    """Yield every allocation of whole tasks in a slot to which no further task can be added."""
    caps = _usable(instance, slot, served)
    demands = [job.demand for job in instance.jobs]

    def extend(j: int, x: tuple[int, ...], left: tuple[int, ...]) -> Iterator[Amounts]:
        if j == len(caps):
            for k, cap in enumerate(caps):
                if x[k] < cap and all(d <= c for d, c in zip(demands[k], left, strict=True)):
                    return
            yield x
            return
        for count in range(caps[j] + 1):
            if count:
                left = tuple(c - d for c, d in zip(left, demands[j], strict=True))
                if min(left) < 0:
                    return
            yield from extend(j + 1, (*x, count), left)

    return extend(0, (), instance.capacity)


def best_slot(instance: Instance, slot: int, served: Amounts) -> Amounts:
    """Return the allocation of whole tasks with the largest gain: problem (5)."""
    return max(allocations(instance, slot, served), key=lambda x: slot_gain(instance, served, x))


def whole_best(instance: Instance) -> tuple[Number, Schedule]:
    """Return the offline optimum of problem (4) over all schedules (a task is never worth less early)."""
    last = horizon(instance)

    @functools.cache
    def best(slot: int, served: Amounts) -> tuple[Number, tuple[Amounts, ...]]:
        if slot > last:
            return 0, ()
        options = []
        for x in allocations(instance, slot, served):
            after = tuple(y + a for y, a in zip(served, x, strict=True))
            later, rest = best(slot + 1, after)
            options.append((slot_gain(instance, served, x) + later, (x, *rest)))
        return max(options)

    found, schedule = best(1, (0,) * len(instance.jobs))
    return found, list(schedule)


class Task(NamedTuple):
    """Task k of job j."""

    worth: Number
    j: int
    k: int


def _candidates(instance: Instance, slot: int, served: Amounts) -> list[Task]:
    caps = _usable(instance, slot, served)
    return [
        Task(worth(job, k), j, k)
        for j, job in enumerate(instance.jobs)
        for k in range(int(served[j]) + 1, int(served[j]) + caps[j] + 1)
    ]


def _counts(instance: Instance, tasks: Sequence[Task]) -> Amounts:
    counts = [0] * len(instance.jobs)
    for task in tasks:
        counts[task.j] += 1
    return tuple(counts)


def _prefix(instance: Instance, order: Sequence[Task]) -> tuple[list[Task], Task | None]:
    """Return the tasks up to the first that does not fit, and that task."""
    left = list(instance.capacity)
    for count, task in enumerate(order):
        for i, d in enumerate(instance.jobs[task.j].demand):
            left[i] -= d
        if min(left) < 0:
            return list(order[:count]), task
    return list(order), None


def m_greedy(instance: Instance, slot: int, served: Amounts) -> Amounts:
    """Run local greedy: tasks by v / max r up to the first misfit, or that task if it is worth more."""
    dominant = [max(shares(instance, j)) for j in range(len(instance.jobs))]

    def key(task: Task) -> tuple[int, Number, Number, int, int]:
        r = dominant[task.j]
        return (int(r > 0), -task.worth / r if r else 0, -task.worth, task.j, task.k)

    taken, misfit = _prefix(instance, sorted(_candidates(instance, slot, served), key=key))
    if misfit is not None and misfit.worth > sum(task.worth for task in taken):
        taken = [misfit]
    return _counts(instance, taken)


def s_greedy(instance: Instance, slot: int, served: Amounts) -> Amounts:
    """Return the most valuable tasks up to the first that does not fit."""
    order = sorted(_candidates(instance, slot, served), key=lambda s: (-s.worth, s.j, s.k))
    return _counts(instance, _prefix(instance, order)[0])


def primal_dual(instance: Instance, slot: int, served: Amounts, power: int = 1) -> Amounts:
    """Run local primal-dual; a task raises log b_i by limit r_is^power / (1 - max_s' r_is').

    ``power`` 1 gives the rule of Briest, Krysta and Voecking, 0 the formula that the paper prints.
    """
    m = len(instance.capacity)
    left = _candidates(instance, slot, served)
    needs = {task.j: shares(instance, task.j) for task in left}
    largest = [max((r[i] for r in needs.values()), default=Fraction(0)) for i in range(m)]
    top = max(largest)
    limit = (1 / float(top) if top else math.inf) - 1 + math.log(m)  # log(e^(B-1) m)
    price = [0.0] * m  # logarithms
    taken: list[Task] = []

    def cost(r: Sequence[Fraction]) -> float:
        return _log_sum([math.log(a) + b for a, b in zip(r, price, strict=True) if a])

    while left and _log_sum(price) <= limit + 1e-12:
        costs = {j: cost(r) for j, r in needs.items()}
        task = min(left, key=lambda s: (costs[s.j] - math.log(s.worth), -s.worth, s.j, s.k))
        left.remove(task)
        taken.append(task)
        for i, r in enumerate(needs[task.j]):
            if r or not power:
                price[i] += limit * float(r**power / (1 - largest[i])) if largest[i] < 1 else math.inf
    return _counts(instance, taken)


def _log_sum(logs: Sequence[float]) -> float:
    """Return the logarithm of the sum of the numbers with these logarithms."""
    top = max(logs, default=-math.inf)
    if math.isinf(top):
        return top
    return top + math.log(sum(math.exp(a - top) for a in logs))


def deadline_aware(
    instance: Instance, slot: int, served: Amounts, p: int | None = None, rho: Fraction | None = None
) -> Amounts:
    """Run Algorithm 3; by default p = ceil(C / 2), rho = C / (2 C - p), as in the paper for even C."""
    (c,) = instance.capacity
    p = -(-c // 2) if p is None else p
    rho = Fraction(c, 2 * c - p) if rho is None else rho
    order = sorted(_candidates(instance, slot, served), key=lambda s: (-s.worth, s.j, s.k))
    # v <= rho mean, without a division
    if len(order) <= c or order[c].worth * p <= rho * sum(s.worth for s in order[:p]):
        return _counts(instance, order[:c])
    near = [s for s in order[p:] if s.worth * p >= rho * sum(t.worth for t in order[:p])]
    near.sort(key=lambda s: (instance.jobs[s.j].deadline, -s.worth, s.j, s.k))
    return _counts(instance, order[:p] + near[: c - p])
