"""Random instances for the tests, as workloads and back."""

from __future__ import annotations

import random
from typing import Any

from schedgym.core.workload import Workload
from schedgym.papers.xu2021 import model
from schedgym.papers.xu2021.model import Instance, Job, MapReduceJob
from schedgym.problems.flowtime.workload import make_mapreduce, make_workload, tables


def random_instance(
    rng: random.Random, kind: str = "1d", *, tiny: bool = False, large: bool = False, at_once: bool = False
) -> Instance:
    """A random instance with many ties: up to 12 jobs on 4 servers, or 3 on 2 (tiny), or 40 on 9 (large).

    kind: "1d", "2d" or "mapreduce" (one in three with latencies). at_once: every job arrives at 0. Now and
    then a job asks for more cores than a server, or than all servers, have.
    """
    servers = 9 if large else rng.randint(1, 2 if tiny else 4)
    cpu = [rng.randint(1, 3 if tiny else 8) for _ in range(servers)]
    n_jobs = 40 if large else rng.randint(2, 3) if tiny else rng.randint(3, 12)
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


def workload_of(instance: Instance) -> Workload:
    """An instance of the model as a workload."""
    jobs = sorted(instance.jobs, key=lambda job: job.arrival)
    arrival = [job.arrival for job in jobs]
    if model.is_mapreduce(instance):
        latency = None
        if jobs[0].latency is not None:
            latency = [row for job in jobs for phase in job.latency for row in phase]
        columns = ([getattr(job, name) for job in jobs] for name in ("tasks", "processing", "cpu"))
        return make_mapreduce(arrival, *columns, instance.cpu, latency=latency)
    said, held = [job.declared_cpu for job in jobs], [job.declared_memory for job in jobs]
    two = instance.memory is not None
    return make_workload(
        arrival,
        [job.processing for job in jobs],
        [job.cpu for job in jobs],
        instance.cpu,
        memory=[job.memory for job in jobs] if two else None,
        server_memory=instance.memory,
        declared_cpu=None if None in said else said,
        declared_memory=held if two and None not in held else None,
    )


def instance_of(workload: Workload) -> Instance:
    """A workload as an instance of the model."""
    jobs = {name: array.tolist() for name, array in workload.jobs.items()}
    cluster = {name: array.tolist() for name, array in workload.cluster.items()}
    rows: list[Any] = []
    first = tables(workload).first_task.tolist()
    for j, arrival in enumerate(jobs["arrival"]):
        if "map_tasks" not in jobs:
            names = ("processing", "cpu", "memory", "declared_cpu", "declared_memory")
            rows.append(Job(arrival, **{name: jobs[name][j] for name in names if name in jobs}))
            continue
        pairs = [
            tuple(jobs[f"{z}_{name}"][j] for z in ("map", "reduce"))
            for name in ("tasks", "processing", "cpu")
        ]
        latency = None
        if workload.tasks:
            own = workload.tasks["latency"].tolist()[first[j] : first[j + 1]]
            latency = (own[: pairs[0][0]], own[pairs[0][0] :])
        rows.append(MapReduceJob(arrival, *pairs, latency))
    return Instance(rows, cluster["cpu"], cluster.get("memory"))
