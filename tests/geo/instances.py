"""Random instances of the model, on which the kernels are held to it, as workloads and back."""

from __future__ import annotations

import random
from fractions import Fraction

from schedgym.core.workload import Workload
from schedgym.papers.guan2022.model import Instance, Job, Number
from schedgym.problems.geo.workload import make_workload


def random_instance(
    rng: random.Random,
    max_sites: int = 4,
    max_jobs: int = 7,
    max_tasks: int = 6,
    max_slots: int = 3,
    adversarial: bool = True,
    singletons: bool = False,
    window: bool = False,
) -> Instance:
    """A small instance; adversarial: few distinct integer times, many ties, else float times.

    singletons: every task has one site. window: the sites of a task are s, s+1, ... (mod m) with one
    length for all, as in the workload (so associated sites and groups correspond).
    """
    m = rng.randint(1, max_sites)
    slots = [rng.randint(1, max_slots) for _ in range(m)]
    if rng.random() < 0.4:
        slots = [slots[0]] * m
    length = rng.randint(1, m)

    def draw_sites() -> tuple[int, ...]:
        if singletons:
            return (rng.randrange(m),)
        if window:
            first = rng.randrange(m)
            return tuple((first + x) % m for x in range(length))
        return tuple(rng.sample(range(m), rng.randint(1, m)))

    pool = [draw_sites() for _ in range(rng.randint(1, 4))]
    jobs = []
    clock: Number = 0
    for _ in range(rng.randint(1, max_jobs)):
        clock += rng.choice((0, 0, 1, 1, 2, 4)) if adversarial else rng.expovariate(1.0)
        count = rng.choice((1, max_tasks, rng.randint(1, max_tasks), rng.randint(1, max_tasks)))
        tasks = tuple(
            (rng.choice((1, 1, 2, 3)) if adversarial else rng.uniform(0.2, 4.0), rng.choice(pool))
            for _ in range(count)
        )
        jobs.append(Job(clock, tasks))
    return Instance(slots, jobs)


def workload_of(instance: Instance, order: list[int] | None = None) -> Workload:
    """The instance; its tasks, listed job by job, stand in ``order``."""
    rows = [(i, d, sites) for i, job in enumerate(instance.jobs) for d, sites in job.tasks]
    job, duration, sites = zip(*(rows if order is None else [rows[x] for x in order]), strict=True)
    arrival = [float(job.arrival) for job in instance.jobs]
    return make_workload(arrival, job, [float(d) for d in duration], list(map(list, sites)), instance.slots)


def rows_of(workload: Workload) -> list[tuple[int, ...]]:
    """The sites of each task."""
    return [tuple(site for site in row if site >= 0) for row in workload.tasks["sites"].tolist()]


def instance_of(workload: Workload) -> Instance:
    """A workload as an instance of the model, with fractions."""
    rows = list(zip(workload.tasks["duration"].tolist(), rows_of(workload), strict=True))
    jobs = workload.tasks["job"].tolist()
    made = [
        Job(
            Fraction(arrival),
            tuple((Fraction(d), sites) for job, (d, sites) in zip(jobs, rows, strict=True) if job == i),
        )
        for i, arrival in enumerate(workload.jobs["arrival"].tolist())
    ]
    return Instance(workload.cluster["slots"].tolist(), made)
