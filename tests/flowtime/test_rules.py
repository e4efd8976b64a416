"""The compiled allocations of a slot against the model's, the test vectors, and what they must be.

Tests are long whose kernels nothing else compiles: test_policies.py compares whole schedules with the model.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from schedgym.baselines.flowtime.ocorp_plus import cheapest_cores, plus_allocation
from schedgym.papers.xu2021 import model
from schedgym.problems.flowtime.rules import (
    CODES,
    FRESH,
    LOCALITY,
    PLACE,
    STICKY,
    Rows,
    Servers,
    allocate_by_rule,
    locality_rows,
    make_scratch,
)
from schedgym.solvers.transport import make_transport_scratch
from tests.long import some, trials

SPARE = 2  # rows behind those that count


def whole(*shape: int, value: int = 99) -> Any:
    """Filled with what must not be read."""
    return np.full(shape, value, dtype=np.int64)


class Slot(NamedTuple):
    """Rows jobs as the model sees them and as the kernels do."""

    entries: list[model.Entry]
    previous: model.Matrix
    cpu: list[int]
    memory: list[int] | None
    rows: Rows

    @property
    def n(self) -> int:
        return len(self.entries)

    @property
    def servers(self) -> Servers:
        return Servers(np.array(self.cpu), np.array(self.memory or [0] * len(self.cpu)))

    @property
    def caps(self) -> list[int]:
        return [e.cap for e in self.entries]

    @property
    def reserve(self) -> list[int]:
        return [e.reserve for e in self.entries]


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


def draw(rng: random.Random, kind: str = "1d", jobs: int = 8, servers: int = 4, exact: bool = True) -> Slot:
    """A random slot with many ties. exact: volumes are whole, as they are without mis-estimation."""
    n, m = rng.randint(0, jobs), rng.randint(1, servers)
    cpu = [rng.randint(1, 8) for _ in range(m)]
    memory = [rng.randint(2, 16) for _ in cpu] if kind == "2d" else None
    most = rng.choice([2, max(cpu), sum(cpu) + 1])
    longest = rng.choice([2, 6, 12])
    entries = []
    for r in range(n):
        demand, p = rng.randint(1, most), rng.randint(1, longest)
        true = demand if exact else rng.randint(1, most)
        left = rng.randint(1, p * true)
        held = 0 if memory is None else rng.randint(1, max(memory))
        age = rng.randint(1, 9)
        entries.append(
            model.Entry(
                r, 0, r // 2, age, demand, cap=min(demand, true, left), reserve=held,
                weight=age**2 / p + p, target=p, tasks=1, unit=true, slots=Fraction(left, true),
                left=Fraction(left * demand, true), whole=p * demand,
            )
        )  # fmt: skip
    previous = [[0] * m for _ in range(n)]
    free = list(cpu)
    for r in rng.sample(range(n), n):
        for i in range(m):
            if rng.random() < 0.4:
                previous[r][i] = rng.randint(0, min(free[i], most))
                free[i] -= previous[r][i]
    return Slot(entries, previous, cpu, memory, rows_of(entries, previous, m))


def slots(count: int, seed: int, kind: str = "1d", **sizes: Any) -> Iterator[Slot]:
    rng = random.Random(seed)
    for _ in trials(count):
        yield draw(rng, kind, **sizes)


def taken(n: int, granted: Any) -> model.Matrix:
    """The rows that count; the others must be as they were."""
    assert (granted[n:] == 99).all()
    rows: model.Matrix = granted[:n].tolist()
    return rows


def by_rule(slot: Slot, how: int, rule: str) -> model.Matrix:
    granted = whole(slot.n + SPARE, len(slot.cpu))
    net = network(slot) if how == LOCALITY else make_transport_scratch(0, len(slot.cpu))
    scratch = make_scratch(slot.n + SPARE, len(slot.cpu))
    allocate_by_rule(CODES[rule], how, slot.n, slot.rows, slot.servers, scratch, net, granted)
    return taken(slot.n, granted)


def expected(slot: Slot, how: int, order: list[int]) -> model.Matrix:
    if how == PLACE:
        assert slot.memory is not None
        return model.place(order, slot.caps, slot.reserve, slot.cpu, slot.memory)
    cores = model.fill(order, slot.caps, sum(slot.cpu))
    return model.pack(cores, slot.cpu, slot.previous if how == STICKY else None)


def kind_of(how: int) -> str:
    return "2d" if how == PLACE else "1d"


# Orders, packing, rules -----------------------------------------------------------------------


@pytest.mark.parametrize("exact", some([True, False]))
@pytest.mark.parametrize("how", [FRESH, STICKY, PLACE])
@pytest.mark.parametrize("rule", CODES)
def test_rules_are_the_models(rule: str, how: int, exact: bool) -> None:
    larger = slots(15, 4, kind_of(how), exact=exact, jobs=60, servers=9)
    for x, slot in enumerate(itertools.chain(slots(500, 3, kind_of(how), exact=exact), larger)):
        if rule in model.FILLING_RULES:
            rows = model.FILLING_RULES[rule](slot.entries, slot.cpu, slot.memory)
            if how != PLACE:
                cores = [sum(row) for row in rows]
                rows = model.pack(cores, slot.cpu, slot.previous if how == STICKY else None)
        else:
            rows = expected(slot, how, model.rule_order(slot.entries, rule))
        assert by_rule(slot, how, rule) == rows, x


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
        slot = Slot(entries, [[0] * 3 for _ in jobs], cpu, None, rows)
        cores = model.fill(range(len(jobs)), slot.caps, sum(cpu))
        _, best = model.locality(cluster, cores)
        u = by_rule(slot, LOCALITY, "fifo")
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


def draw_plus(rng: random.Random, jobs: int, servers: int) -> tuple[Slot, list[float], float]:
    """A slot of ocorp+, coefficients with ties, alpha."""
    slot = draw(rng, "1d", jobs, servers)
    if rng.random() < 0.5:
        coefficient = [float(rng.randint(-4, 2)) for _ in slot.entries]
    else:
        scale = rng.choice([1.0, 50.0, 1e6])
        coefficient = [rng.uniform(-scale, scale / 2) for _ in slot.entries]
    return slot, coefficient, rng.choice([0.3, 1.0, 1.0, 4.0, 60.0])


def run_plus(
    slot: Slot, coefficient: list[float], alpha: float, literal: bool, by_job: bool = False
) -> tuple[model.Matrix, model.PlusSlot]:
    """The kernel's allocation and the model's argument; of the job-level variant cores in one column."""
    n, m = slot.n, len(slot.cpu)
    first = [e.age == 1 for e in slot.entries]
    values = np.array([*coefficient, np.nan, np.nan])
    if by_job:
        cores = whole(n + SPARE)
        scratch = make_scratch(n + SPARE, m)
        cheapest_cores(literal, n, alpha, values, slot.rows, slot.servers.server_cpu, scratch, cores)
        found = taken(n, cores[:, None])
    else:
        granted = whole(n + SPARE, m)
        net = make_transport_scratch(n, m)
        plus_allocation(literal, n, alpha, values, slot.rows, slot.servers.server_cpu, net, granted)
        found = taken(n, granted)
    demand = [e.demand for e in slot.entries]
    return found, model.PlusSlot(coefficient, demand, slot.caps, slot.previous, first, slot.cpu, alpha)


@pytest.mark.parametrize("literal", [False, True])
def test_plus_is_the_models(literal: bool) -> None:
    """The optimum and its tie-break."""
    rng = random.Random(8)
    for x, size in enumerate([*((5, 4) for _ in trials(1000)), *[(25, 6)] * 8]):
        slot, coefficient, alpha = draw_plus(rng, *size)
        found, problem = run_plus(slot, coefficient, alpha, literal)
        best = model.plus_allocation(problem, literal=literal)
        if found != best:  # two optima whose costs differ by rounding
            costs = [float(model.plus_cost(u, problem)) for u in (found, best)]
            assert costs[0] == pytest.approx(costs[1], rel=1e-13, abs=1e-13), x
            assert max(map(abs, coefficient)) > 4.0


@pytest.mark.parametrize("literal", [False, True])
def test_plus_by_job_is_the_models(literal: bool) -> None:
    rng = random.Random(9)
    for _ in trials(1500):
        slot, coefficient, alpha = draw_plus(rng, 8, 4)
        found, problem = run_plus(slot, coefficient, alpha, literal, by_job=True)
        best = model.plus_job_level(problem, literal=literal)
        assert [row[0] for row in found] == best


def entry(demand: int, cap: int, reserve: int = 0, age: int = 5) -> model.Entry:
    """A job of which only these numbers matter."""
    return model.Entry(0, 0, 0, age, demand, cap, reserve, 0.0, 0.0, 1, demand, Fraction(1), Fraction(1), 1)


def test_plus_with_demands_without_a_common_denominator() -> None:
    """Then alpha / d^2 is rounded: the optimum is one up to rounding."""
    rng = random.Random(11)
    for _ in range(60):
        demand = [rng.choice([101, 103, 107, 109, 113, 127]) for _ in range(4)]
        cpu = [rng.randint(2, 6) for _ in range(3)]
        entries = [entry(d, rng.randint(1, 5), age=rng.choice([1, 5])) for d in demand]
        previous = [[rng.randint(0, 1) for _ in cpu] for _ in demand]
        slot = Slot(entries, previous, cpu, None, rows_of(entries, previous, 3))
        coefficient = [rng.uniform(-2.0, 1.0) / 50 for _ in demand]
        for literal in (False, True):
            found, problem = run_plus(slot, coefficient, 3.0, literal)
            best = model.plus_allocation(problem, literal=literal)
            costs = [float(model.plus_cost(u, problem)) for u in (found, best)]
            assert costs[0] == pytest.approx(costs[1], rel=1e-12)


# The code -------------------------------------------------------------------------------------
