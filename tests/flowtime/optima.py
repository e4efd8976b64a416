"""Optima and bounds of small instances of any kind, by brute force and by a linear program."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from schedgym.papers.xu2021.model import (
    Cluster,
    Instance,
    Job,
    MapReduceJob,
    is_mapreduce,
    length,
    volume,
)


def optimal_fractional(instance: Instance, k: float) -> float:
    """OPT_P2: least sum of fractional flowtimes (Eq. 5) of plain jobs, without memory, as an LP."""
    total = sum(instance.cpu)
    jobs = [job for job in instance.jobs if isinstance(job, Job)]
    assert len(jobs) == len(instance.jobs)
    horizon = max(job.arrival for job in jobs) + sum(-(-volume(job) // min(job.cpu, total)) for job in jobs)
    pairs = [(j, t) for j, job in enumerate(jobs) for t in range(job.arrival + 1, horizon + 1)]
    costs = [
        ((t - jobs[j].arrival) ** k / jobs[j].processing + jobs[j].processing ** (k - 1)) / jobs[j].cpu
        for j, t in pairs
    ]
    columns = np.arange(len(pairs))
    ones = np.ones(len(pairs))
    done = coo_matrix((ones, ([j for j, _ in pairs], columns)), shape=(len(jobs), len(pairs)))
    load = coo_matrix((ones, ([t - 1 for _, t in pairs], columns)), shape=(horizon, len(pairs)))
    solved = linprog(
        costs,
        A_ub=load.tocsr(),
        b_ub=[total] * horizon,
        A_eq=done.tocsr(),
        b_eq=[volume(job) for job in jobs],
        bounds=[(0, jobs[j].cpu) for j, _ in pairs],
        method="highs",
    )
    assert solved.status == 0, solved.message
    return float(solved.fun)


def one_machine_srpt(instance: Instance) -> int:
    """Sum of flowtimes of SRPT by volume on one machine of speed sum C, where a job has no cap of cores."""
    left = [volume(job) for job in instance.jobs]
    total, t = 0, 0
    while any(left):
        t += 1
        speed = sum(instance.cpu)
        visible = [j for j, job in enumerate(instance.jobs) if job.arrival < t and left[j] > 0]
        total += len(visible)
        for j in sorted(visible, key=lambda j: (left[j], j)):
            amount = min(left[j], speed)
            left[j] -= amount
            speed -= amount
    return total


def lower_bounds(instance: Instance, k: float) -> dict[str, float]:
    """Lower bounds on the least sum of f^k, by name. They ignore memory; MapReduce has fewer of them."""
    longest = sum(length(job) ** k for job in instance.jobs)
    bounds = {"processing": float(longest)}
    if not is_mapreduce(instance):
        fractional = optimal_fractional(instance, k)
        bounds["half_fractional"] = fractional / 2
        bounds["fractional"] = fractional - longest
        if k == 1:
            bounds["fractional_k1"] = (
                fractional - longest + sum((length(job) - 1) / 2 for job in instance.jobs)
            )
    if k == 1:
        bounds["one_machine"] = float(one_machine_srpt(instance))
    return bounds


def optimum(instance: Instance, k: float) -> float:
    """Least sum of f^k, over all allocations of whole cores (tiny instances only).

    A search over (slot, remaining work of every task). More cores never hurt, so that only allocations to
    which nothing can be added are tried.
    """
    cluster = Cluster(instance)
    owner: list[tuple[int, int, int]] = []  # (job, phase, cores) of each task
    work: list[int] = []
    for j, job in enumerate(instance.jobs):
        for z, tasks in enumerate(cluster.left[j]):
            for amount in tasks:
                owner.append((j, z, job.cpu[z] if isinstance(job, MapReduceJob) else job.cpu))
                work.append(amount)
    tasks = range(len(owner))
    arrivals = [job.arrival for job in instance.jobs]
    reserve = [job.memory if isinstance(job, Job) else 0 for job in instance.jobs]
    choices: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    known: dict[tuple[int, tuple[int, ...]], float] = {}

    def one_server(caps: tuple[int, ...], i: int) -> set[tuple[int, ...]]:
        """Every allocation on server i."""
        vectors: set[tuple[int, ...]] = set()
        for u in itertools.product(*(range(min(cap, instance.cpu[i]) + 1) for cap in caps)):
            held = sum(reserve[owner[n][0]] for n in tasks if u[n] > 0)
            if sum(u) <= instance.cpu[i] and (instance.memory is None or held <= instance.memory[i]):
                vectors.add(u)
        return vectors

    def allocations(caps: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Cores of the tasks, all vectors that no other one dominates."""
        if caps not in choices:
            if instance.memory is None:
                total = min(sum(instance.cpu), sum(caps))
                grid = itertools.product(*(range(cap + 1) for cap in caps))
                choices[caps] = [u for u in grid if sum(u) == total]
            else:
                found = {tuple([0] * len(caps))}
                for i in range(len(instance.cpu)):
                    found = {
                        tuple(min(a + b, cap) for a, b, cap in zip(u, v, caps, strict=True))
                        for u in found
                        for v in one_server(caps, i)
                    }
                choices[caps] = [
                    u
                    for u in found
                    if not any(v != u and all(a <= b for a, b in zip(u, v, strict=True)) for v in found)
                ]
        return choices[caps]

    def search(t: int, left: tuple[int, ...]) -> float:
        if not any(left):
            return 0.0
        if (t, left) not in known:
            unfinished = {owner[n][0] for n in tasks if left[n] > 0}
            mapping = {owner[n][0] for n in tasks if left[n] > 0 and owner[n][1] == 0}
            charge = 0.0
            for j in unfinished:
                if arrivals[j] < t:
                    charge += (t - arrivals[j]) ** k - (t - arrivals[j] - 1) ** k
            caps = tuple(
                0
                if arrivals[owner[n][0]] >= t or (owner[n][1] == 1 and owner[n][0] in mapping)
                else min(owner[n][2], left[n])
                for n in tasks
            )
            best = math.inf
            for u in allocations(caps):
                after = tuple(amount - cores for amount, cores in zip(left, u, strict=True))
                best = min(best, search(t + 1, after))
            known[t, left] = charge + best
        return known[t, left]

    return search(1, tuple(work))
