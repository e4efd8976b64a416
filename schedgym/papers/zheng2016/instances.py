"""Small instances, how findings show them, and what both kinds of tasks have in common."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from schedgym.papers import Shown
from schedgym.papers.exact import Number, as_text
from schedgym.papers.judging import Confirm
from schedgym.papers.registry import Claims
from schedgym.papers.searches import Details, Searched, confirm_by, smallest_flaw
from schedgym.papers.zheng2016 import model
from schedgym.papers.zheng2016.model import Amounts, Instance, Job, Rule, Schedule, State

claim = Claims.of("zheng2016")
OPEN = claim.points  # that the paper leaves open
CLOSE = 1e-5  # relative, of floating-point optima
ROUGH = 1e-3  # relative, of their prices


def show_instance(instance: Instance) -> dict[str, Any]:
    """Return an instance as a finding shows it."""
    jobs = instance.jobs
    return {
        "arrival": [job.arrival for job in jobs],
        "deadline": [job.deadline for job in jobs],
        "parallelism": [as_text(job.parallelism) for job in jobs],
        "tasks": [as_text(job.tasks) for job in jobs],
        "demand": [list(job.demand) for job in jobs],
        "value": [[as_text(v) for v in job.values] for job in jobs],
        "capacity": list(instance.capacity),
    }


def read_instance(shown: Shown) -> Instance:
    """Return the instance that a finding shows."""
    names = ("arrival", "deadline", "parallelism", "tasks", "demand", "value")
    jobs = [
        Job(a, d, Fraction(x), Fraction(y), tuple(r), tuple(Fraction(v) for v in values))
        for a, d, x, y, r, values in zip(*(shown[name] for name in names), strict=True)
    ]
    return Instance(tuple(jobs), tuple(shown["capacity"]))


def as_rows(schedule: Schedule) -> list[list[int | str]]:
    """Return a schedule as a finding shows it: the tasks of each job, by slot."""
    return [[as_text(a) for a in x] for x in schedule]


def as_schedule(rows: Sequence[Sequence[int | str]]) -> Schedule:
    """Return the schedule that :func:`as_rows` shows."""
    return [tuple(Fraction(a) for a in x) for x in rows]


def _size(instance: Instance) -> tuple[Number, ...]:
    """Return the size of an instance: jobs, slots, capacity, tasks, parallelism, demands, values."""
    jobs = instance.jobs
    return (
        len(jobs),
        model.horizon(instance),
        sum(instance.capacity),
        sum(job.tasks for job in jobs),
        sum(job.parallelism for job in jobs),
        sum(sum(job.demand) for job in jobs),
        sum(sum(job.values) for job in jobs),
        *(t for job in jobs for t in (job.arrival, -job.deadline)),
    )


def find_flaw(cases: Iterable[Instance], flaw: Callable[[Instance], Details]) -> Searched:
    """Find the smallest instance with a flaw, and its details."""
    return smallest_flaw(cases, flaw, size=_size, show=show_instance)


def enumerate_instances(
    count: int,
    slots: int,
    capacities: Iterable[int],
    tasks: int,
    values: int,
    *,
    parallelism: int | None = None,
    common: bool = False,
    unit: bool = False,
) -> Iterator[Instance]:
    """Yield all instances with ``count`` linear jobs on one resource, up to the order of the jobs.

    Args:
        count: number of jobs.
        slots: latest deadline.
        capacities: capacities to be tried.
        tasks: largest number of tasks of a job.
        values: largest value; the least is 1.
        parallelism: largest parallelism of a job; None: no bound.
        common: True if all jobs have one deadline.
        unit: True if every task needs one unit; else tasks need up to the capacity.
    """
    for capacity in capacities:
        kinds = [
            Job(a, d, y if parallelism is None else x, y, (r,), (v,))
            for a in range(1, slots + 1)
            for d in ([slots] if common else range(a, slots + 1))
            for y in range(1, tasks + 1)
            for x in range(1, 2 if parallelism is None else min(parallelism, y) + 1)
            for r in range(1, 2 if unit else capacity + 1)
            for v in range(1, values + 1)
        ]
        for jobs in itertools.combinations_with_replacement(kinds, count):
            if any(job.deadline == slots for job in jobs):
                yield Instance(jobs, (capacity,))


def draw_instance(
    rng: np.random.Generator,
    resources: int,
    *,
    jobs: int = 3,
    slots: int = 3,
    tasks: int = 3,
    capacity: int = 4,
    values: int = 6,
    linear: bool = False,
) -> Instance:
    """Draw a random instance with whole numbers, up to the sizes given."""

    def whole(most: int, least: int = 1) -> int:
        return int(rng.integers(least, most + 1))

    capacities = tuple(whole(capacity) for _ in range(resources))
    last = whole(slots)
    found = []
    for _ in range(whole(jobs)):
        arrival = whole(last)
        demand = [whole(c, 0) for c in capacities]
        if not any(demand):
            demand[whole(resources) - 1] = 1
        y = whole(tasks)
        worth = sorted((whole(values) for _ in range(1 if linear else y)), reverse=True)
        found.append(Job(arrival, whole(last, arrival), whole(tasks), y, tuple(demand), tuple(worth)))
    return Instance(tuple(found), capacities)


def algorithm_1_rule(state: State) -> Amounts:
    """Return the tasks of each job in a slot by Algorithm 1."""
    return model.algorithm_1(state).x


def is_only(instance: Instance) -> bool:
    """Return True if the solution of Algorithm 1 is unique in every slot."""
    sole = True

    def choose(state: State) -> Amounts:
        nonlocal sole
        found = model.algorithm_1(state)
        sole = sole and found.unique
        return found.x

    model.play(instance, choose)
    return sole


def is_algorithm_1(instance: Instance, schedule: Schedule) -> bool:
    """Return True if a schedule gains in each slot as much as Algorithm 1, by weak duality."""
    if not model.feasible(instance, schedule, False):
        return False
    served: Amounts = (0,) * len(instance.jobs)
    for slot, x in enumerate(schedule, start=1):
        state = State(instance, slot, served)
        prices = model.algorithm_1(state).prices[: len(instance.capacity)]
        bound: Number = sum(b * c for b, c in zip(prices, instance.capacity, strict=True))
        for job, cap in zip(instance.jobs, model.slot_caps(state), strict=True):
            cost = sum(b * r for b, r in zip(prices, job.demand, strict=True))
            bound += max(job.values[0] - cost, Fraction(0)) * cap
        if min(prices) < 0 or model.gain(state, x) != bound:
            return False
        served = tuple(y + a for y, a in zip(served, x, strict=True))
    return True


def first_fit_instance(capacity: int, n: int) -> Instance:
    """Return an instance in which a job that could wait is worth (n + 1) / n of one that cannot."""
    late = Job(1, 2, capacity, capacity, (1,), (n + 1,))
    return Instance((late, late._replace(deadline=1, values=(n,))), (capacity,))


def value_by(rule: Rule, instance: Instance) -> Number:
    """Return the value of the schedule of a rule."""
    return model.value(instance, model.play(instance, rule))


def show_ratio(instance: Instance, rule: Rule, better: Schedule) -> dict[str, Any]:
    """Return values and ratio of a rule and a better schedule, as a finding shows them."""
    own, best = value_by(rule, instance), model.value(instance, better)
    return {
        "got": as_text(own),
        "better": as_text(best),
        "ratio": str(Fraction(best) / own),
        "schedule": as_rows(better),
    }


def _is_valid(rule: Rule, instance: Instance) -> bool:
    """Return True if the schedule of a rule is feasible; Algorithm 1 must have no choice, and be the best."""
    own = model.play(instance, rule)
    if rule is algorithm_1_rule:
        return is_only(instance) and is_algorithm_1(instance, own)
    return model.feasible(instance, own, True)


def confirm_rules(flaw: Callable[[Instance], Details], *rules: Rule) -> Confirm:
    """Return a confirmation: the schedules of some rules are valid, and the flaw is the one that is shown."""

    def confirm(shown: Shown) -> bool:
        instance = read_instance(shown)
        return all(_is_valid(rule, instance) for rule in rules) and confirm_by(read_instance, flaw)(shown)

    return confirm


def confirm_ratio(
    rule: Rule,
    factor: Callable[[Instance], float | Fraction],
    kind: Callable[[Instance], bool] = lambda instance: True,
) -> Confirm:
    """Return a confirmation: the schedule that is shown is worth more than that of a rule.

    Args:
        rule: the rule.
        factor: returns of an instance by more than which factor the schedule is better.
        kind: returns whether the statement is about an instance.
    """

    def confirm(shown: Shown) -> bool:
        better = as_schedule(shown["schedule"])

        def flaw(instance: Instance) -> Details:
            feasible = model.feasible(instance, better, rule is not algorithm_1_rule)
            found = show_ratio(instance, rule, better)
            large = Fraction(found["ratio"]) > factor(instance)
            return found if kind(instance) and feasible and large else None

        return confirm_rules(flaw, rule)(shown)

    return confirm


def almost_two(instance: Instance) -> Fraction:
    """Return a factor just below 2, for :func:`confirm_ratio`."""
    return 2 - Fraction(1, 100)
