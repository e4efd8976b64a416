"""The bounds: against brute force, linear programs, slow definitions, the model, and every policy."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from schedgym.core.workload import Workload
from schedgym.papers.xu2021 import model
from schedgym.papers.xu2021.model import Instance
from schedgym.problems.flowtime import bounds
from schedgym.problems.flowtime.bounds import lower_bound, priced_bound, processing_bound, queue_bound
from schedgym.problems.flowtime.problem import FlowtimeParameters
from schedgym.problems.flowtime.workload import (
    KINDS,
    make_workload,
    tables,
)
from tests.flowtime import optima
from tests.flowtime.instances import random_instance, workload_of
from tests.flowtime.schedules import POLICIES
from tests.long import some, trials

ALL = (processing_bound, queue_bound, priced_bound)


def cost(instance: Instance, outcome: model.Outcome, k: float) -> float:
    return sum(f**k for f in model.flowtimes(instance, outcome))


# No schedule is better ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", some([2, 1, 3, 1.5], late=3))
def test_no_schedule_is_better(kind: str, k: float) -> None:
    """Brute force over all schedules of tiny instances."""
    rng = random.Random(int(10 * k))
    tight = stronger = 0
    for x in range(75):
        instance = random_instance(rng, kind, tiny=True, at_once=x % 3 == 0)
        workload = workload_of(instance)
        best = optima.optimum(instance, k)
        values = [bound(workload, k) for bound in ALL]
        bound = lower_bound(workload, FlowtimeParameters(kind=kind, norm=k))
        assert max(values) <= bound <= best * (1 + 1e-12)
        known = max(optima.lower_bounds(instance, k).values())
        assert bound >= known * (1 - 1e-3), "weaker than the paper's"
        tight += bound >= best * (1 - 1e-9)
        stronger += bound > known * 1.01
    assert tight > 35 and stronger > 5


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_schedules_are_not_better_either(kind: str) -> None:
    """Nobody is charged for the time after the end, whatever is left undone."""
    rng = random.Random(22)
    binding = 0
    for x in trials(120):
        instance = random_instance(rng, kind)
        k = (1.0, 2.0, 3.0)[x % 3]
        last = max(job.arrival for job in instance.jobs)
        limit = last + rng.randint(1, 6)
        needs = bounds._needs(tables(workload_of(instance)))
        whole = bounds._queue(needs, k), bounds._priced(needs, k), bounds._processing(needs, k)
        needs = needs._replace(limit=limit - instance.jobs[0].arrival)
        cut = bounds._queue(needs, k), bounds._priced(needs, k), bounds._processing(needs, k)
        nothing = sum((limit - job.arrival) ** k for job in instance.jobs)
        reached = [nothing]
        for policy in rng.sample(POLICIES[kind], 3):
            reached.append(cost(instance, model.simulate(instance, policy, k=k, limit=limit), k))
        assert max(cut) <= min(reached) * (1 + 1e-12)
        binding += max(whole) > min(reached)
    assert binding > 10  # the limit matters


# Each bound by itself -------------------------------------------------------------------------


@pytest.mark.parametrize(("cores", "servers", "far"), [(999_983, 1, 10**10), (10**6, 200, 9 * 10**11)])
def test_late_jobs_end_at_once(cores: int, servers: int, far: int) -> None:
    """Arrivals in units of work, of which neither floats nor whole numbers have enough."""
    arrival = [0, *(far + 1000 * i for i in range(20))]
    assert lower_bound(make_workload(arrival, [1] * 21, [cores] * 21, [cores] * servers)) == 21


def slow_queue(instance: Instance, k: float) -> float:
    """The queue bound slot by slot, in 1D."""
    left = [model.volume(job) for job in instance.jobs]
    total, t = 0.0, 0
    lengths = [-(-model.volume(job) // min(job.cpu, sum(instance.cpu))) for job in instance.jobs]
    while any(left) or any(t < job.arrival + n for job, n in zip(instance.jobs, lengths, strict=True)):
        t += 1
        visible = [j for j, job in enumerate(instance.jobs) if job.arrival < t]
        many = sum(left[j] > 0 for j in visible)
        ages = sorted(t - instance.jobs[j].arrival for j in visible)
        sure = [t - instance.jobs[j].arrival for j in visible if t - instance.jobs[j].arrival <= lengths[j]]
        others = [t - instance.jobs[j].arrival for j in visible if t - instance.jobs[j].arrival > lengths[j]]
        charged = sure + sorted(others)[: max(many - len(sure), 0)]
        assert len(charged) <= len(ages)
        total += sum(age**k - (age - 1) ** k for age in charged)
        speed = sum(instance.cpu)
        for j in sorted(visible, key=lambda j: left[j]):
            amount = min(left[j], speed)
            left[j] -= amount
            speed -= amount
    return total


@pytest.mark.parametrize("k", [1.0, 2.0, 2.5])
def test_queue_equals_its_definition(k: float) -> None:
    rng = random.Random(24)
    for x in trials(100):
        instance = random_instance(rng, "1d", at_once=x % 3 == 0)
        assert queue_bound(workload_of(instance), k) == pytest.approx(slow_queue(instance, k), rel=1e-9)


def slow_dual(
    needs: Any, edges: list[int], price: np.ndarray, k: float, end: int
) -> tuple[float, list[list[float]]]:
    """The dual function job by job, completion by completion, in slots 1..end; and its constant terms."""
    prices = np.zeros((len(price), end + 1))
    for x in range(len(edges) - 1):
        prices[:, edges[x] + 1 : edges[x + 1] + 1] = price[:, x : x + 1]
    room = (needs.cores, needs.total_memory)[: len(price)]
    total = -sum(float(capacity * row.sum()) for capacity, row in zip(room, prices, strict=True))
    values = []
    for j in range(len(needs.arrival)):
        a, (first, second) = int(needs.arrival[j]), needs.slots[j].tolist()
        own = []
        each = prices[0].copy()
        if len(price) == 2:
            each += needs.memory[j] / needs.rate[j, 0] * prices[1]

        def fill(z: int, begin: int, stop: int, j: int = j, each: np.ndarray = each) -> float:
            left, paid = float(needs.volume[j, z]), 0.0
            for v in sorted(each[begin + 1 : stop + 1]):
                amount = min(left, needs.rate[j, z])
                left -= amount
                paid += amount * v
            assert left < 1e-9
            return paid

        for c in range(a + first + second, end + 1):
            later = fill(1, a + first, c) if second else 0.0
            own.append((c - a) ** k + fill(0, a, c - second) + later)
        values.append(own)
        total += min(own)
    return total, values


def evaluate(needs: Any, edges: list[int], price: np.ndarray, k: float) -> tuple[float, np.ndarray]:
    """The compiled dual function and the use that it finds."""
    grid = np.array(edges)
    first = np.stack([needs.arrival, needs.arrival + needs.slots[:, 0]], axis=1)
    begin = np.searchsorted(grid, first, side="right") - 1
    size = (2, len(edges) + 1)
    heaps = np.empty(size), np.empty(size, dtype=np.int64), np.empty((2, 2 * len(edges)))
    taken = bounds._Taken(*heaps, *np.zeros((2, 2), dtype=np.int64), *np.zeros((4, 2)))
    use = np.empty_like(price)
    value, scale = bounds._dual(needs, begin, grid, price, k, taken, use, np.array([10**9]))
    assert scale >= abs(value) * (1 - 1e-12)
    return value, use


@pytest.mark.parametrize("kind", KINDS)
def test_dual_function_equals_its_definition(kind: str) -> None:
    """Random prices on random grids; what jobs use is a supergradient."""
    rng = random.Random(25)
    for x in range(60):
        instance = random_instance(rng, kind)
        needs = bounds._needs(tables(workload_of(instance)))
        last = int((needs.arrival + needs.slots.sum(axis=1)).max()) + rng.randint(0, 5)
        inner = rng.sample(range(1, last), rng.randint(0, last - 1)) if last > 1 else []
        edges = [0, *sorted(inner), last]
        resources = 2 if kind == "2d" else 1
        scale = rng.choice([0.3, 3.0, 30.0])
        # whole prices have ties
        draw = [[rng.choice([0, 1, 2, 5, rng.random()]) for _ in edges[1:]] for _ in range(resources)]
        price = np.array(draw, dtype=float) * scale
        k = (1.0, 2.0, 3.0, 1.5)[x % 4]
        end = last + int(needs.slots.sum(axis=1).max()) + 3
        expected, values = slow_dual(needs, edges, price, k, end)
        value, use = evaluate(needs, edges, price, k)
        fractional = bool((needs.volume % np.maximum(needs.rate, 1) > 0).any())
        if fractional:  # completions may then be relaxed to parts of slots
            assert value <= expected + 1e-9 * max(1, abs(expected))
            assert value >= expected - 0.2 * max(sum(map(min, values)), 1)
        else:
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
        room = np.array([needs.cores, needs.total_memory])[:resources, None]
        gradient = use - room * np.diff(edges)
        for _ in range(3):
            other = price + scale * np.array([[rng.gauss(0, 1) for _ in row] for row in price])
            other = np.maximum(other, 0.0)
            reached, _ = evaluate(needs, edges, other, k)
            assert reached <= value + float((gradient * (other - price)).sum()) + 1e-7 * max(1, abs(reached))


def best_dual(workload: Workload, k: float) -> float:
    """The best prices, as a linear program over all choices of slots of each job (1D, tiny instances)."""
    needs = bounds._needs(tables(workload))
    last = int((needs.arrival + needs.slots[:, 0]).max() + needs.volume.sum() // needs.cores + 2)
    jobs = len(needs.arrival)
    left, right = [], []
    for j in range(jobs):
        a, slots = int(needs.arrival[j]), int(needs.slots[j, 0])
        for chosen in itertools.combinations(range(a, last), slots):
            row = np.zeros(jobs + last)
            row[j] = 1.0
            row[[jobs + t for t in chosen]] = -needs.rate[j, 0]
            left.append(row)
            right.append(float(chosen[-1] + 1 - a) ** k)
    objective = np.concatenate([-np.ones(jobs), np.full(last, float(needs.cores))])
    solved = linprog(objective, A_ub=np.array(left), b_ub=right, bounds=[(0, None)] * (jobs + last))
    assert solved.status == 0
    return -float(solved.fun)


@pytest.mark.parametrize("k", [1.0, 2.0, 3.0])
def test_prices_are_nearly_the_best(k: float) -> None:
    rng = random.Random(26)
    count = 0
    while count < 60:
        instance = random_instance(rng, "1d", tiny=True, at_once=count % 3 == 0)
        if any(job.cpu > sum(instance.cpu) for job in instance.jobs):
            continue
        count += 1
        workload = workload_of(instance)
        best, found = best_dual(workload, k), priced_bound(workload, k)
        assert best * (1 - 1e-3) <= found <= best * (1 + 1e-9)
        fractional = optima.optimal_fractional(instance, k)
        lengths = sum(job.processing**k for job in instance.jobs)
        assert best >= max(fractional - lengths, fractional / 2, lengths) * (1 - 1e-9)


# What does not matter -------------------------------------------------------------------------


def test_rounding_up_to_whole_numbers() -> None:
    workload = make_workload([0, 0, 0], [2, 1, 1], [3, 2, 2], [3])
    for k, whole in ((2.0, True), (1.0, True), (1.5, False)):
        bound = lower_bound(workload, FlowtimeParameters(norm=k))
        raw = max(b(workload, k) for b in ALL)
        assert bound == (math.ceil(raw) if whole else raw)
        assert isinstance(bound, float)


def test_long_and_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots in which nothing happens cost nothing; and a bound comes out whatever the effort."""
    p = 10**8
    workload = make_workload([0, 0, 10**11, 10**11], [p, p, 3, 3], [2, 2, 1, 1], [2])
    least = p**2 + (2 * p) ** 2 + 9 + 9
    bound = lower_bound(workload)
    assert 0.6 * least <= bound <= least
    assert queue_bound(workload, 1.0) == pytest.approx(3 * p + 6)
    monkeypatch.setattr(bounds, "MOST_VISITS", 0)
    assert priced_bound(workload) == pytest.approx(processing_bound(workload), rel=1e-9)
