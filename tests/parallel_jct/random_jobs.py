"""Random jobs and workloads for the exact model, and what the tests turn into them."""

from __future__ import annotations

import dataclasses
import functools
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from schedgym.core.workload import Workload as SavedWorkload
from schedgym.papers.shi2017.model.one_job import Group, Limit, Number, SingleJob, job_on
from schedgym.papers.shi2017.model.online import Job, Workload
from schedgym.problems.single_job.workload import make_workload


def groups_from_matrix(matrix: Sequence[Sequence[Number]]) -> tuple[Group, ...]:
    """Groups from a matrix with one row per group and one column per server: where it is not 0."""
    return tuple(tuple(j for j, member in enumerate(row) if member) for row in matrix)


def weights_from_matrix(matrix: Sequence[Sequence[Number]]) -> tuple[tuple[Number, ...], ...]:
    """The weights of the same groups."""
    return tuple(tuple(member for member in row if member) for row in matrix)


def _positive(rng: random.Random, high: int, dyadic: bool) -> float:
    """A number in (0, high]; if dyadic a whole one, so that sums are exact and ties happen."""
    return float(rng.randint(1, high)) if dyadic else high * (1 - rng.random())


def _efficiency(rng: random.Random, dyadic: bool) -> float:
    return rng.choice((0.125, 0.25, 0.5, 0.5, 1.0)) if dyadic else rng.uniform(0.1, 1.0)


def random_groups(rng: random.Random, servers: int) -> tuple[Group, ...]:
    """Random, overlapping groups that hold every server."""
    groups = [
        tuple(j for j in range(servers) if rng.random() < 0.4) or (rng.randrange(servers),)
        for _ in range(rng.randint(1, 5))
    ]
    missing = [j for j in range(servers) if all(j not in group for group in groups)]
    return (*groups, *((j,) for j in missing))


def random_instance(
    rng: random.Random,
    tasks: int = 5,
    servers: int = 5,
    *,
    dyadic: bool = False,
    tree: bool | None = None,
    exhausted: float = 0.1,
    feasible: bool = False,
    power: bool = False,
    weighted: bool = False,
) -> SingleJob:
    """A small random job.

    Args:
        rng: Source of random numbers.
        tasks: Largest number of tasks.
        servers: Largest number of servers (the fat tree of arity 2 has 2 of them).
        dyadic: Numbers with exact sums in floats, and many ties; else continuous ones.
        tree: Two levels of racks with server capacities and shares; else random groups. Default:
            either.
        exhausted: Probability that a server (or group) has nothing available.
        feasible: Whether E_MAX is at least E_min; else it is in three cases out of four.
        power: Whether the tasks differ in their power per vCPU.
        weighted: Whether vCPU count differently in groups (but for the servers' own capacities).
    """
    n, m = rng.randint(1, tasks), rng.randint(1, servers)
    load = tuple(_positive(rng, 16, dyadic) for _ in range(n))
    efficiency = tuple(tuple(_efficiency(rng, dyadic) for _ in range(m)) for _ in range(n))
    if rng.random() < 0.5 if tree is None else tree:
        available = [0.0 if rng.random() < exhausted else _positive(rng, 8, dyadic) for _ in range(m)]
        tree_limits = random_tree(rng, m)
        if weighted:
            tree_limits = random_weights(rng, tree_limits, dyadic)
        job = job_on(tree_limits, available, load, efficiency)
    else:
        groups = random_groups(rng, m)
        limits = tuple(0.0 if rng.random() < exhausted else _positive(rng, 8, dyadic) for _ in groups)
        weights = tuple(tuple(_weight(rng, dyadic) for _ in group) for group in groups) if weighted else ()
        job = SingleJob(load, efficiency, groups, limits, weights=weights)
    if power:
        alpha = (rng.choice((0.25, 0.5, 1.0, 2.0)) if dyadic else rng.uniform(0.2, 3.0) for _ in load)
        job = dataclasses.replace(job, power=tuple(alpha))
    if not feasible and rng.random() < 0.25:
        ratio = 0.75 if dyadic else rng.uniform(0.5, 1.0)
    else:
        ratio = rng.choice((1.0, 1.25, 1.5, 2.0, math.inf))
    return dataclasses.replace(job, energy_cap=job.least_energy() * ratio)


def random_instances(
    count: int, seed: int, tasks: int = 5, servers: int = 5, **options: Any
) -> Iterator[SingleJob]:
    """Half of them with exact sums and ties, half continuous; some with weights, some with power."""
    rng = random.Random(seed)
    for x in range(count):
        own = {"dyadic": x % 2 == 0, "power": x % 3 == 0, "weighted": x % 4 >= 2, **options}
        yield random_instance(rng, tasks, servers, **own)


def _weight(rng: random.Random, dyadic: bool) -> float:
    return rng.choice((0.25, 0.5, 1.0, 2.0, 4.0)) if dyadic else rng.uniform(0.2, 3.0)


def random_weights(rng: random.Random, limits: Sequence[Limit], dyadic: bool) -> tuple[Limit, ...]:
    """The limits with weights, except for those of single servers, which are their capacities."""
    return tuple(
        limit
        if limit.kind == "server"
        else limit._replace(weights=tuple(_weight(rng, dyadic) for _ in limit.servers))
        for limit in limits
    )


def random_tree(rng: random.Random, servers: int) -> tuple[Limit, ...]:
    """Servers cut into racks, racks into pods; shares that are exact in binary."""
    limits = [Limit("server", (j,), 1.0) for j in range(servers)]
    level: list[Group] = [(j,) for j in range(servers)]
    for kind in ("rack", "pod", "dc"):
        share = rng.choice((0.25, 0.5, 0.75, 1.0))
        above: list[Group] = []
        while level:
            width = len(level) if kind == "dc" else rng.randint(1, 3)
            above.append(functools.reduce(lambda a, b: a + b, level[:width]))
            level = level[width:]
        limits += [Limit(kind, group, share) for group in above]
        level = above
    return tuple(limits)


def random_workload(
    rng: random.Random,
    jobs: int = 4,
    tasks: int = 3,
    *,
    dyadic: bool = False,
    fixed_ratio: bool = False,
    weighted: bool = False,
    power: bool = False,
) -> Workload:
    """A few jobs on a small tree; arrivals crowd, and often fall on ticks of 5 or 10 seconds.

    Options as for :func:`random_instance`.
    """
    m = rng.randint(2, 8)
    arrivals = []
    for _ in range(rng.randint(1, jobs)):
        arrivals.append(float(rng.choice((0, 0, 1, 5, 10, 12))) if dyadic else rng.uniform(0, 15))
    entries = []
    for arrival in sorted(arrivals):
        n = rng.randint(1, tasks)
        load = tuple(_positive(rng, 128, dyadic) for _ in range(n))
        efficiency = [[_efficiency(rng, dyadic) for _ in range(m)] for _ in range(n)]
        if rng.random() < 0.7:  # else E_min is mostly above 1.1 total load, and granted
            for row in efficiency:
                row[rng.randrange(m)] = 1.0 if dyadic else rng.uniform(0.93, 1.0)
        alpha: tuple[Number, ...] = ()
        if power:
            alpha = tuple(rng.choice((0.25, 1.0, 2.0)) if dyadic else rng.uniform(0.2, 3.0) for _ in load)
        entries.append(Job(arrival, load, tuple(tuple(row) for row in efficiency), alpha))
    capacity = tuple(_positive(rng, 16, dyadic) for _ in range(m))
    ratio = rng.choice((1.0, 1.25, 2.0)) if fixed_ratio else None
    limits = random_tree(rng, m)
    if weighted:
        limits = random_weights(rng, limits, dyadic)
    return Workload(tuple(entries), capacity, limits, ratio)


def job_workload(job: SingleJob, capacity: Sequence[float] | None = None) -> SavedWorkload:
    """The job as a workload of single-job; the servers' own limits are those among its groups."""
    return make_workload(
        job.load,
        job.efficiency,
        min(float(job.energy_cap), 1e9),
        capacity or [10.0] * job.servers,
        groups=job.matrix(),
        limit=job.limits,
        server_caps=False,
        power=job.power or None,
    )


def exact(given: Any) -> Any:
    """The same job or workload with fractions for all finite floats."""
    if isinstance(given, float):
        return Fraction(given) if math.isfinite(given) else given
    if dataclasses.is_dataclass(given):
        return type(given)(*(exact(getattr(given, field.name)) for field in dataclasses.fields(given)))
    if isinstance(given, tuple):
        return given._make(map(exact, given)) if hasattr(given, "_make") else tuple(map(exact, given))
    return given
