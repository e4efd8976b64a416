"""Jobs and servers of xu2021, with what jobs declare, and Gamma of Eq. 27."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

__all__ = [
    "Instance",
    "Job",
    "MapReduceJob",
    "check",
    "declare",
    "declared_cpu",
    "declared_memory",
    "eq27",
    "is_mapreduce",
    "length",
    "max_slots",
    "volume",
]


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
