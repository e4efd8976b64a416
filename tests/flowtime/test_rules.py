"""Allocations of a slot in which demands have no common denominator; whole schedules: test_policies.py."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from schedgym.baselines.flowtime.ocorp_plus import plus_allocation
from schedgym.papers.xu2021 import model
from schedgym.problems.flowtime.rules import (
    CODES,
    LOCALITY,
    Rows,
    Servers,
    allocate_by_rule,
    locality_rows,
    make_scratch,
)
from schedgym.solvers.transport import make_transport_scratch

SPARE = 2  # rows behind those that count


def whole(*shape: int, value: int = 99) -> Any:
    """Filled with what must not be read."""
    return np.full(shape, value, dtype=np.int64)


class Slot(NamedTuple):
    """Rows jobs as the model sees them and as the kernels do."""

    entries: list[model.Entry]
    previous: model.Matrix
    cpu: list[int]
    rows: Rows

    @property
    def n(self) -> int:
        return len(self.entries)

    @property
    def servers(self) -> Servers:
        return Servers(np.array(self.cpu), np.zeros(len(self.cpu), dtype=np.int64))

    @property
    def caps(self) -> list[int]:
        return [e.cap for e in self.entries]


def rows_of(entries: list[model.Entry], previous: model.Matrix, servers: int) -> Rows:
    """The arrays of plain jobs."""
    n = len(entries)
    rows = Rows(
        job=whole(0),
        arrival=whole(0),
        age=whole(n + SPARE),
        processing=whole(0),
        demand=whole(n + SPARE),
        memory=whole(n + SPARE),
        slots_left=np.full(n + SPARE, np.nan),
        remaining=np.full(n + SPARE, np.nan),
        volume=whole(n + SPARE),
        cap=whole(n + SPARE),
        held=whole(n + SPARE, servers),
        last=np.zeros((0, servers), dtype=np.int8),
        granted=whole(0, servers),
        phase=whole(0),
        tasks=whole(0, 2),
        phase_processing=whole(0, 2),
        phase_demand=whole(0, 2),
        task_remaining=whole(0, 2),
        latency=np.zeros((0, 0)),
    )
    for r, e in enumerate(entries):
        rows.demand[r], rows.memory[r], rows.cap[r], rows.volume[r] = e.demand, e.reserve, e.cap, e.whole
        rows.slots_left[r], rows.remaining[r], rows.age[r] = float(e.slots), float(e.left), e.age
        rows.held[r] = previous[r]
    return rows


def taken(n: int, granted: Any) -> model.Matrix:
    """The rows that count; the others must be as they were."""
    assert (granted[n:] == 99).all()
    rows: model.Matrix = granted[:n].tolist()
    return rows


def by_locality(slot: Slot) -> model.Matrix:
    """What the jobs get in order of arrival, where their tasks have least latency."""
    granted = whole(slot.n + SPARE, len(slot.cpu))
    net, scratch = network(slot), make_scratch(slot.n + SPARE, len(slot.cpu))
    allocate_by_rule(CODES["fifo"], LOCALITY, slot.n, slot.rows, slot.servers, scratch, net, granted)
    return taken(slot.n, granted)


# MapReduce ------------------------------------------------------------------------------------


def network(slot: Slot) -> Any:
    half = slot.rows.task_remaining.shape[1] // 2
    rows = int(locality_rows(slot.n, half, sum(slot.cpu)))
    return make_transport_scratch(rows, len(slot.cpu))


def test_locality_with_many_demands() -> None:
    """No small common denominator of the demands: the optimum is the model's all the same."""
    primes = (101, 103, 107, 109)
    rng = random.Random(6)
    for _ in range(40):
        cpu = [rng.randint(5, 40) for _ in range(3)]
        jobs = [
            model.MapReduceJob(
                0, (2, 0), (9, 0), (d, 0), ([[rng.randint(0, 9) for _ in cpu] for _ in range(2)], [])
            )
            for d in primes
        ]
        cluster = model.Cluster(model.Instance(jobs, cpu), None, 2)
        entries = [cluster.entry(j, 1) for j in range(len(jobs))]
        rows = rows_of(entries, [[0] * 3 for _ in jobs], 3)._replace(
            phase=np.zeros(len(jobs) + SPARE, dtype=np.int64),
            tasks=np.full((len(jobs) + SPARE, 2), 2),
            phase_demand=np.array([[d, d] for d in (*primes, 1, 1)]),
            task_remaining=np.full((len(jobs) + SPARE, 4), 10**6),
            latency=np.zeros((len(jobs) + SPARE, 12)),
        )
        for r, job in enumerate(jobs):
            assert job.latency is not None
            rows.latency[r, :6] = np.ravel(job.latency[0])
        slot = Slot(entries, [[0] * 3 for _ in jobs], cpu, rows)
        cores = model.fill(range(len(jobs)), slot.caps, sum(cpu))
        _, best = model.locality(cluster, cores)
        u = by_locality(slot)
        assert [sum(row) for row in u] == cores
        # the least latency of a job's cores, by task, is what the model's optimum pays in all
        paid = Fraction(0)
        for r, row in enumerate(u):
            grants = [g for g in cluster.split_over_tasks(r, cores[r]) if g]
            latency = jobs[r].latency
            assert latency is not None
            split = model.transport(
                lambda q, i, _, latency=latency: Fraction(latency[0][q][i]), grants, row, total=sum(grants)
            )
            paid += sum(
                Fraction(latency[0][q][i] * c, primes[r])
                for q, s in enumerate(split)
                for i, c in enumerate(s)
            )
        assert float(paid) == pytest.approx(float(best), rel=1e-12)


# The OCORP family -----------------------------------------------------------------------------


def run_plus(
    slot: Slot, coefficient: list[float], alpha: float, literal: bool
) -> tuple[model.Matrix, model.PlusSlot]:
    """The kernel's allocation and the model's argument."""
    n, m = slot.n, len(slot.cpu)
    first = [e.age == 1 for e in slot.entries]
    values = np.array([*coefficient, np.nan, np.nan])
    granted = whole(n + SPARE, m)
    net = make_transport_scratch(n, m)
    plus_allocation(literal, n, alpha, values, slot.rows, slot.servers.server_cpu, net, granted)
    found = taken(n, granted)
    demand = [e.demand for e in slot.entries]
    return found, model.PlusSlot(coefficient, demand, slot.caps, slot.previous, first, slot.cpu, alpha)


def entry(demand: int, cap: int, age: int) -> model.Entry:
    """A job of which only these numbers matter."""
    return model.Entry(0, 0, 0, age, demand, cap, 0, 0.0, 0.0, 1, demand, Fraction(1), Fraction(1), 1)


def test_plus_with_demands_without_a_common_denominator() -> None:
    """Then alpha / d^2 is rounded: the optimum is one up to rounding."""
    rng = random.Random(11)
    for _ in range(60):
        demand = [rng.choice([101, 103, 107, 109, 113, 127]) for _ in range(4)]
        cpu = [rng.randint(2, 6) for _ in range(3)]
        entries = [entry(d, rng.randint(1, 5), rng.choice([1, 5])) for d in demand]
        previous = [[rng.randint(0, 1) for _ in cpu] for _ in demand]
        slot = Slot(entries, previous, cpu, rows_of(entries, previous, 3))
        coefficient = [rng.uniform(-2.0, 1.0) / 50 for _ in demand]
        for literal in (False, True):
            found, problem = run_plus(slot, coefficient, 3.0, literal)
            best = model.plus_allocation(problem, literal=literal)
            costs = [float(model.plus_cost(u, problem)) for u in (found, best)]
            assert costs[0] == pytest.approx(costs[1], rel=1e-12)
