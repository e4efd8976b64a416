"""Instances for the tests: random ones, and jobs of one value; as workloads and back."""

from __future__ import annotations

import random
from collections.abc import Sequence

from schedgym.core.workload import Workload
from schedgym.papers.zheng2016.model import KINDS, LINEAR, Instance, Job
from schedgym.problems.partial_value.workload import make_workload, tables


def make_job(
    arrival: float,
    deadline: float,
    parallelism: float,
    tasks: float,
    demand: tuple[float, ...],
    v: float = 1.0,
    kind: str = LINEAR,
    alpha: float = 0.5,
) -> Job:
    """A job of one value."""
    return Job(arrival, deadline, parallelism, tasks, demand, (v,), kind, alpha)


def random_instance(
    rng: random.Random,
    *,
    discrete: bool = False,
    max_jobs: int = 6,
    resources: int = 2,
    max_slots: int = 5,
    kinds: Sequence[str] = KINDS,
    adversarial: bool = False,
    common_deadline: bool = False,
    parallelism: bool = True,
    unit: int | None = None,
    max_share: float = 1.0,
) -> Instance:
    """A small instance.

    adversarial: ties, zero demands, demands above a capacity, fractional arrivals and deadlines.
    parallelism=False: X >= Y. unit: one resource of that capacity and unit demand.
    """
    capacity = (
        tuple(rng.choice([1.0, 2.0, 10.0]) for _ in range(resources)) if unit is None else (float(unit),)
    )
    last = rng.randint(1, max_slots)
    jobs = []
    for _ in range(rng.randint(1, max_jobs)):
        arrival = float(rng.randint(1, last))
        until = float(last if common_deadline else rng.randint(int(arrival), last))
        if adversarial and not common_deadline:
            arrival -= rng.choice([0.0, 0.0, 0.5])
            until += rng.choice([0.0, 0.0, 0.5])
        if discrete:
            tasks = float(rng.randint(1, 4 if unit is None else 2 * unit + 2))
            parallel = float(rng.randint(1, 3 if unit is None else unit + 1))
        else:
            tasks = rng.choice([0.5, 1.0, 2.0]) if adversarial else rng.uniform(0.2, 4.0)
            parallel = rng.choice([0.5, 1.0]) if adversarial else rng.uniform(0.1, 2.0)
        if not parallelism:
            parallel = tasks + rng.choice([0.0, 1.0])
        if unit is not None:
            demand: tuple[float, ...] = (1.0,)
        elif adversarial:
            part = [rng.choice([0.0, 0.1, 0.25, 0.5, 1.0, 1.5]) for _ in capacity]
            demand = tuple(c * s * min(1.0, max_share) for c, s in zip(capacity, part, strict=True))
        else:
            demand = tuple(c * max_share * rng.uniform(0.05, 1.0) for c in capacity)
        v = rng.choice([1.0, 2.0, 3.0]) if adversarial else rng.uniform(1.0, 5.0)
        alpha = rng.choice([0.25, 0.5, 0.75])
        jobs.append(Job(arrival, until, parallel, tasks, demand, (v,), rng.choice(kinds), alpha))
    return Instance(tuple(jobs), capacity, discrete)


def workload_of(instance: Instance) -> Workload:
    """An instance as a workload; its jobs must be in order of arrival."""
    jobs = instance.jobs
    return make_workload(
        arrival=[job.arrival for job in jobs],
        deadline=[job.deadline for job in jobs],
        parallelism=[job.parallelism for job in jobs],
        tasks=[job.tasks for job in jobs],
        demand=[list(job.demand) for job in jobs],
        utility=[job.kind for job in jobs],
        value=[job.values[0] for job in jobs],
        capacity=list(instance.capacity),
        exponent=[job.alpha for job in jobs],
    )


def instance_of(workload: Workload, discrete: bool = False) -> Instance:
    """A workload as an instance of the model."""
    own = tables(workload)
    jobs = (
        make_job(a, d, x, y, tuple(r), v, KINDS[k], alpha)
        for a, d, x, y, r, v, k, alpha in zip(
            own.arrival.tolist(),
            own.deadline.tolist(),
            own.parallelism.tolist(),
            own.tasks.tolist(),
            own.demand.tolist(),
            own.value.tolist(),
            own.utility.tolist(),
            own.exponent.tolist(),
            strict=True,
        )
    )
    return Instance(tuple(jobs), tuple(own.capacity.tolist()), discrete)
