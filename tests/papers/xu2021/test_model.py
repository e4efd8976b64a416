"""The model of xu2021: vectors of the specification, hand examples, identities, optima, libraries.

That runs are feasible is shown by tests/test_all_records.py, and what each slot does by the comparisons with
kernels in tests/flowtime.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedgym.documents import read_yaml
from schedgym.papers.xu2021 import model
from schedgym.papers.xu2021.instances import literal_run, pooled
from schedgym.papers.xu2021.model import Instance, Job, MapReduceJob, Slot
from tests.flowtime import optima
from tests.flowtime.instances import random_instance
from tests.tables import table

VECTOR_1 = Instance([Job(0, 4, 1), Job(0, 2, 3), Job(1, 3, 2)], [3])
VECTOR_8 = Instance(
    [MapReduceJob(0, (3, 1), (2, 3), (1, 2)), MapReduceJob(1, (1, 0), (4, 1), (2, 1))],
    [4],
)


PARTS = ("completion", "granted", "used", "first", "flowtimes", "slots", "cores")  # of what comes of a run


def run(instance: Instance, policy: str, **options: object) -> model.Outcome:
    return model.simulate(instance, policy, **options)


def instances(count: int, seed: int, kind: str = "1d", **options: bool) -> Iterator[Instance]:
    rng = random.Random(seed)
    for _ in range(count):
        yield random_instance(rng, kind, **options)


def cost(instance: Instance, outcome: model.Outcome, k: float) -> float:
    return sum(f**k for f in model.flowtimes(instance, outcome))


# Test vectors of the specification, and runs by hand -----------------------------------------


BY_HAND = read_yaml(Path(__file__).with_name("runs.yaml"))


@pytest.mark.parametrize("name", BY_HAND)
def test_runs_by_hand(name: str) -> None:
    case = BY_HAND[name]
    instance = Instance([Job(*job) for job in case["jobs"]], case["cpu"], case.get("memory"))
    for given in case["runs"]:
        options = dict(given)
        expected = {part: options.pop(part) for part in PARTS if part in options}
        outcome = run(instance, **options)
        cores, used = outcome.allocations, outcome.used
        granted = [sum(u[0]) for u in cores]
        parts = (outcome.completion, granted, [row[0] for row in used], cores[0])
        more = (model.flowtimes(instance, outcome), outcome.slots, [[row[0] for row in u] for u in cores])
        found = dict(zip(PARTS, parts + more, strict=True))
        assert {part: found[part] for part in expected} == expected
        wasted = sum(sum(map(sum, u)) for u in cores) - sum(map(sum, used))
        assert model.metrics(instance, outcome)["wasted"] == wasted


def test_v2_waiting_job() -> None:
    outcome = run(Instance([Job(0, 50, 1)], [1]), "ocorp", literal=True, lambda0=0.0)
    first = [values[0, 0] for values in outcome.lambdas[:5]]
    assert first == pytest.approx([0.0125, 0.083211, 0.278066, 0.678066, 1.376838], abs=1e-6)
    assert outcome.completion == [121]


def test_v4_switching_cost_rewards_splitting() -> None:
    nothing = [[0, 0, 0, 0]]
    slot = model.PlusSlot([-50], [4], [4], nothing, [False], [8] * 4, 1.0)
    split, whole = model.plus_allocation(slot), model.pack([4], [8] * 4)
    assert split == [[1, 1, 1, 1]]
    assert model.plus_allocation(slot._replace(alpha=0.0)) == whole
    free = slot._replace(coefficient=[0])
    assert (model.plus_cost(split, free), model.plus_cost(whole, free)) == (Fraction(1, 4), 1)


def test_v4_in_a_run() -> None:
    """The job comes to run in its second slot, when job 0 has left the servers."""
    instance = Instance([Job(0, 1, 32), Job(0, 50, 4)], [8] * 4)
    for alpha, row, change in [(1.0, [1, 1, 1, 1], 0.25), (0.0, [4, 0, 0, 0], 1.0)]:
        outcome = run(instance, "ocorp+", alpha=alpha, gamma=1000, lambda0=0.0)
        assert outcome.allocations[0][1] == [0, 0, 0, 0]
        assert outcome.allocations[1][1] == row
        assert model.switching_cost(instance, outcome)[:3] == [0.0, change, 0.0]


@pytest.mark.parametrize(("backfill", "value"), [(False, 20), (True, 24)])
def test_v5_backfill(backfill: bool, value: int) -> None:
    slot = Slot((5, 4, 1), (4, 4, 4), (6, 6, 2), (8,), (8,))
    placement, rounds = model.memory_allocation(slot, [0, 1, 2], backfill=backfill)
    assert model.placement_value(placement, slot.worth) == value
    assert rounds == 2
    assert model.best_value(slot) == model.plain_best(slot) == 24


@pytest.mark.parametrize(("policy", "completion"), [("ocorp", [6, 5]), ("srpt", [5, 6])])
def test_v8_mapreduce(policy: str, completion: list[int]) -> None:
    assert run(VECTOR_8, policy, gamma=50, lambda0=0.0).completion == completion


def test_v9_eq27() -> None:
    instance = Instance([Job(0, 4, 2), Job(10, 30, 1)], [2])
    assert model.eq27(instance) == 76
    assert model.eq27(instance, [0]) == 16
    assert model.eq27(Instance([Job(10, 30, 1)], [8])) == 70
    assert model.eq27(Instance([Job(10, 3, 1)], [8])) == 20
    assert model.eq27(VECTOR_8) == max(0 + 2 * 5, 1 + 2 * 4, 4 * (6 + 6 + 8) / 4)
    assert model.max_slots(instance, 50) == 228
    assert model.max_slots(instance, 4000) == 12000


# Optima, bounds, Corollary 2 ----------------------------------------------------------------


def test_optimum_by_hand() -> None:
    two = Instance([Job(0, 2, 1), Job(0, 1, 1)], [1])
    assert optima.optimum(two, 1) == 1 + 3
    assert optima.optimum(two, 2) == 1 + 9
    assert optima.optimum(Instance([Job(0, 1, 4)], [1, 1]), 1) == 2  # split, two cores in all
    heavy = [Job(0, 1, 1, 3), Job(0, 1, 1, 3)]
    assert optima.optimum(Instance(heavy, [2], [6]), 1) == 2
    assert optima.optimum(Instance(heavy, [2], [5]), 1) == 3
    assert optima.optimum(Instance([Job(0, 1, 2, 3), Job(0, 1, 1, 3)], [1, 1], [3, 3]), 1) == 3
    assert optima.optimum(Instance([MapReduceJob(3, (2, 1), (1, 2), (1, 1))], [2]), 1) == 3
    assert optima.optimum(VECTOR_8, 1) == 6 + 4 == cost(VECTOR_8, run(VECTOR_8, "svf"), 1)


def test_one_machine_bound_by_hand() -> None:
    """Two jobs can end in one slot; a job that arrives later is preferred if less of it is left."""
    assert optima.one_machine_srpt(Instance([Job(0, 1, 1), Job(0, 1, 1)], [2])) == 2
    assert optima.one_machine_srpt(Instance([Job(0, 10, 1), Job(1, 1, 1)], [1])) == 11 + 1


# What every run must keep ----------------------------------------------------------------------


def test_replay_refuses() -> None:
    instance = Instance([Job(0, 2, 2, 3), Job(1, 2, 2, 3)], [2, 2], [3, 4])
    for slot, reason in table(__file__, "test_replay_refuses"):
        with pytest.raises(ValueError, match=reason):
            model.replay(instance, [slot])
    with pytest.raises(ValueError, match="too little memory"):
        model.replay(instance, [[[1, 0], [0, 0]], [[1, 0], [1, 0]]])
    with pytest.raises(ValueError, match="too few cores"):
        model.replay(Instance([Job(0, 1, 3)], [2, 2]), [[[3, 0]]])


def test_metrics_by_hand() -> None:
    outcome = run(VECTOR_1, "ocorp", gamma=100, lambda0=0.0)
    assert outcome.fractional == pytest.approx([37.5, 6.5, 56 / 3])
    # srpt: job 1 has all cores in 1, 2, then job 2 has 2 cores and job 0 one, in the slots 3-5
    assert outcome.allocations == [[[0], [3], [0]]] * 2 + [[[1], [0], [2]]] * 3 + [[[1], [0], [0]]]
    assert model.switching_cost(VECTOR_1, outcome) == [0, 0, 2, 0, 0, 0]
    assert model.counts(VECTOR_1, outcome) == ([0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0])
    measured = model.metrics(VECTOR_1, outcome, 2)
    assert measured["l1"] == 12
    assert measured["l2"] == measured["lk"] == math.sqrt(56)
    assert measured["makespan"] == 6
    assert measured["idle"] == 2
    assert measured["wasted"] == 0
    assert measured["mean_waiting"] == pytest.approx((2 + 0 + 1) / 3)
    assert model.service_gaps(VECTOR_1, outcome) == [2, 0, 1]
    assert model.unfinished_curve(VECTOR_1, outcome) == [7, 10, 7, 4, 1, 0]


def test_fractional_flowtime_against_eq5() -> None:
    for instance in instances(10, 8):
        outcome = run(instance, "srvf", k=3)
        for j, job in enumerate(instance.jobs):
            rates = [Fraction(used[j], job.cpu) for used in outcome.used[job.arrival :]]
            exact = model.fractional_flowtime(job.arrival, job.processing, rates, 3)
            assert outcome.fractional[j] == pytest.approx(float(exact))


def test_fractional_flowtime_of_mapreduce() -> None:
    """One map task after the other, then the reduce task: each phase counts half of the constant."""
    instance = Instance([MapReduceJob(0, (2, 1), (1, 2), (1, 1))], [1])
    outcome = run(instance, "fifo", k=1)
    assert outcome.completion == [4]
    assert outcome.fractional == pytest.approx([(1 + 2) / 2 + 1.5 + (3 + 4) / 2 + 1.5])


# Packing and counts -------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "arguments", "expected", "options"), table(__file__, "test_by_hand"))
def test_by_hand(function: str, arguments: list[Any], expected: list[Any], options: dict[str, bool]) -> None:
    assert list(getattr(model, function)(*arguments, **options)) == expected


def test_pack_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="more cores"):
        model.pack([3], [2])


def test_counts_by_hand() -> None:
    """Job 0: preempted once, comes back on its server and a new one, shrinks, moves."""
    rows = [[2, 0], [0, 0], [1, 1], [1, 0], [0, 1], [1, 1]]
    instance = Instance([Job(0, 4, 2), Job(0, 1, 1)], [2, 2])
    outcome = model.replay(instance, [[row, [int(t == 5), 0]] for t, row in enumerate(rows)])
    assert outcome.completion == [6, 6]
    assert model.counts(instance, outcome) == ([1, 0], [3, 0], [2, 0], [2, 0])
    squares = [0, 4, 2, 1, 2, 1]
    assert model.switching_cost(instance, outcome) == [s / 4 + (t == 5) for t, s in enumerate(squares)]


def test_migration_is_seen_across_a_pause() -> None:
    instance = Instance([Job(0, 3, 1)], [1, 1])
    outcome = model.replay(instance, [[[1, 0]], [[0, 0]], [[0, 1]], [[0, 1]]])
    assert model.counts(instance, outcome) == ([1], [1], [0], [0])


# ocorp, ocorp+, ocorp+m slot by slot -----------------------------------------------------------


@pytest.mark.parametrize(
    ("lambda0", "expected"),
    [(0.5, 0.5 + 4**2.5 * 5 / 97), ("w", 1 / 5 + 5 + 4**2.5 * 5 / 97), ("p", 4**2.5 * (5 + 5 / 97))],
)
def test_lambda_starts_at_first_slot(lambda0: float | str, expected: float) -> None:
    """Job 1 arrives at 3 and is not served in slot 4; its lambda starts there."""
    instance = Instance([Job(0, 9, 1), Job(3, 5, 1)], [1])
    outcome = run(instance, "ocorp", gamma=100, lambda0=lambda0, literal=lambda0 == 0.5)
    assert (1, 0) not in outcome.lambdas[2]
    if outcome.used[3][1] == 0:
        assert outcome.lambdas[3][1, 0] == pytest.approx(expected)
    else:
        assert outcome.lambdas[3][1, 0] == pytest.approx(max(0, expected - 4**2.5))


def test_gamma_seen_grows_with_the_jobs() -> None:
    instance = Instance([Job(0, 4, 2), Job(2, 30, 1)], [2])
    assert run(instance, "ocorp", gamma="seen").gammas[:3] == [16, 16, 76]
    assert set(run(instance, "ocorp", gamma="eq27").gammas) == {76}


def _random_plus_slot(rng: random.Random, n_jobs: int, most: int) -> model.PlusSlot:
    demand = [rng.randint(1, most) for _ in range(n_jobs)]
    caps = [rng.randint(1, d) for d in demand]
    cpu = [rng.randint(1, most + 1) for _ in range(2)]
    cores, left = [], sum(cpu)
    for d in demand:
        cores.append(rng.randint(0, min(d, left)))
        left -= cores[-1]
    previous = model.pack(cores, cpu)
    coefficient = [rng.choice([rng.randint(-6, 3), rng.uniform(-6.0, 3.0)]) for _ in demand]
    first = [not any(row) and rng.random() < 0.4 for row in previous]
    return model.PlusSlot(coefficient, demand, caps, previous, first, cpu, rng.choice([0, 0.5, 1, 4]))


@pytest.mark.parametrize("literal", [False, True])
def test_plus_against_enumeration(literal: bool) -> None:
    """The optimum and its tie-break, among all allocations."""
    rng = random.Random(14)
    for _ in range(40):
        slot = _random_plus_slot(rng, rng.randint(1, 3), 2)
        slot = slot._replace(coefficient=[round(c) for c in slot.coefficient])
        total = min(sum(slot.cpu), sum(slot.caps))
        feasible = []
        for cells in itertools.product(range(3), repeat=2 * len(slot.caps)):
            u = [list(cells[2 * j : 2 * j + 2]) for j in range(len(slot.caps))]
            if any(sum(row) > cap for row, cap in zip(u, slot.caps, strict=True)):
                continue
            if any(sum(row[i] for row in u) > slot.cpu[i] for i in (0, 1)):
                continue
            if literal or sum(cells) == total:
                feasible.append((model.plus_cost(u, slot), sum(cells), [-c for c in cells], u))
        assert model.plus_allocation(slot, literal=literal) == min(feasible)[3]


def test_plus_job_level_against_enumeration() -> None:
    rng = random.Random(15)
    for _ in range(60):
        slot = _random_plus_slot(rng, rng.randint(1, 4), 3)
        whole = slot._replace(previous=[[sum(row)] for row in slot.previous])
        for literal in (False, True):
            cores = model.plus_job_level(slot, literal=literal)
            options = [
                model.plus_cost([[c] for c in u], whole)
                for u in itertools.product(*(range(cap + 1) for cap in slot.caps))
                if (sum(u) <= sum(slot.cpu) if literal else sum(u) == min(sum(slot.caps), sum(slot.cpu)))
            ]
            assert model.plus_cost([[c] for c in cores], whole) == min(options)


def test_plus_without_switching_cost_is_ocorp() -> None:
    for instance in instances(6, 16):
        for options in ({}, {"literal": True, "gamma": 30}, {"packing": "sticky", "level": "job"}):
            plain = run(instance, "ocorp", **options)
            assert run(instance, "ocorp+", **options).allocations == plain.allocations


def test_old_placement_stays_unless_worse() -> None:
    """Another division of the cores would be worth the same; the one of the greedy fill stays."""
    slot = Slot((5, 5), (2, 2), (1, 1), (3,), (2,))
    assert model.memory_allocation(slot, [1, 0]) == ([[1], [2]], 2)


def test_transport_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="cannot place"):
        model.transport(lambda j, i, q: Fraction(0), [3], [2], total=3)
    assert model.transport(lambda j, i, q: Fraction(-1), [3], [2, 2], arcs=[(0, 1)]) == [[0, 2]]


# Tetris, drf, MapReduce ---------------------------------------------------------------------


def test_mapreduce_timing() -> None:
    """The reduce phase opens in the slot after the last map task; a job without one ends there."""
    instance = Instance(
        [MapReduceJob(0, (3, 2), (1, 1), (1, 2)), MapReduceJob(0, (1, 0), (5, 9), (1, 9))], [4]
    )
    outcome = run(instance, "fifo")
    assert [sum(u[0]) for u in outcome.allocations] == [3, 4, 0, 0, 0, 0]
    assert outcome.completion == [2, 6]
    assert model.length(instance.jobs[1]) == 5
    assert outcome.lambdas == []
    lambdas = run(instance, "ocorp", gamma=50).lambdas
    assert (0, 1) not in lambdas[0]
    assert (0, 1) in lambdas[1]
    assert (0, 0) not in lambdas[1]


def test_mapreduce_lambda_by_hand() -> None:
    """Gamma 50, no core in slot 1 for job 1 of vector 8's kind: + mu (work / (n (gamma - a)) - 0)."""
    instance = Instance(
        [MapReduceJob(0, (1, 0), (1, 1), (1, 1)), MapReduceJob(0, (2, 1), (4, 3), (1, 2))], [1]
    )
    outcome = run(instance, "ocorp", gamma=50, lambda0=0.0)
    assert outcome.used[0] == [1, 0]
    assert outcome.lambdas[0][1, 0] == pytest.approx((2 * 4 + 3) / (2 * 50))
    one = run(Instance(instance.jobs[1:], [1]), "ocorp", gamma=50, lambda0=0.0)
    assert one.lambdas[0][0, 0] == 0.0  # max(0, .11 - 1/2)


def test_mapreduce_tasks_in_index_order() -> None:
    cluster = model.Cluster(Instance([MapReduceJob(0, (3, 0), (2, 1), (2, 1))], [9]), None, 2)
    assert cluster.serve(0, 3) == 3
    assert cluster.left[0][0] == [2, 3, 4]
    assert cluster.cap(0) == 6
    cluster.serve(0, 5)
    assert cluster.left[0][0] == [0, 1, 3]
    entry = cluster.entry(0, 3)
    assert (entry.cap, entry.slots, entry.left, entry.whole) == (3, Fraction(3, 2), 4, 12)


# Mis-estimation -------------------------------------------------------------------------------


def test_declare() -> None:
    rng = random.Random(23)
    instance = Instance([Job(0, 1, 10, 10)] * 2000, [64], [12])
    noisy = model.declare(instance, rng, 0.2)
    cores = [job.declared_cpu for job in noisy.jobs]
    assert min(cores) == 1
    assert np.mean(cores) == pytest.approx(10.5, abs=0.4)
    assert np.std(cores) == pytest.approx(10 * math.sqrt(0.2), abs=0.4)
    assert max(job.declared_memory for job in noisy.jobs) == 12
    assert [(job.cpu, job.memory) for job in noisy.jobs] == [(10, 10)] * 2000


def test_random_instances_cover_the_odd_cases() -> None:
    split = latency = ties = 0
    for kind in ("1d", "2d", "mapreduce"):
        for instance in instances(100, 24, kind):
            model.check(instance)
            if kind == "1d":
                split += any(job.cpu > sum(instance.cpu) for job in instance.jobs)
            if kind == "mapreduce":
                latency += any(job.latency is not None for job in instance.jobs)
            ties += len({job.arrival for job in instance.jobs}) < len(instance.jobs)
    assert min(split, latency, ties) > 10


# Searches on pooled cores, against brute force, a linear program, and the simulation ---------


def pooled_instances(count: int, *, at_once: bool = False) -> Iterator[tuple[Instance, list, int]]:
    for instance in instances(count, 5, tiny=True, at_once=at_once):
        yield instance, [job[:3] for job in instance.jobs], sum(instance.cpu)


@pytest.mark.parametrize("k", [1, 2])
def test_searches_on_pooled_cores(k: int) -> None:
    for instance, jobs, cores in pooled_instances(25):
        least, schedule = model.flowtime_best(jobs, cores, k)
        assert least == optima.optimum(instance, k) == model.flowtime(jobs, schedule, k)
        assert model.feasible(jobs, cores, schedule)
        least, schedule = model.fractional_best(jobs, cores, k)
        assert float(least) == pytest.approx(optima.optimal_fractional(instance, k), rel=1e-8)
        outcome = model.replay(pooled(jobs, cores), [[[u] for u in row] for row in schedule], k=k)
        assert outcome.completion == model.completions(jobs, schedule)
        assert least == model.fractional(jobs, schedule, k)
        assert float(least) == pytest.approx(sum(outcome.fractional))
        if not any(job[0] for job in jobs) and k == 1:
            search = model.transient_least([d for _, _, d in jobs], cores)
            assert search(tuple(p * d for _, p, d in jobs)) == optima.optimum(instance, 1)


def test_infeasible_schedules() -> None:
    jobs = [(0, 2, 1), (1, 1, 2)]
    assert model.feasible(jobs, 2, [(1, 0), (0, 2), (1, 0)])
    for rows in ([(1, 0), (1, 2)], [(2, 0), (0, 2)], [(0, 1), (1, 1), (1, 0)], [(1, 0), (0, 2)]):
        assert not model.feasible(jobs, 2, rows)


@pytest.mark.parametrize("start", [0, 20, 10**11])
@pytest.mark.parametrize("alpha", [0, 1, 30])
def test_literal_runs_on_one_server(start: int, alpha: int) -> None:
    """In fractions, where mu is whole, as in floats; the cheapest cores are those of the transportation."""
    for instance, jobs, cores in pooled_instances(40):
        gamma = model.eq27(instance)
        options = {"start": start, "alpha": alpha, "step": lambda t: t**2}
        exact = literal_run(jobs, cores, gamma, 60, number=Fraction, **options)
        assert literal_run(jobs, cores, float(gamma), 60, **options) == exact
        outcome = model.simulate(
            pooled(jobs, cores),
            "ocorp+",
            gamma=gamma,
            literal=True,
            lambda0=start,
            alpha=alpha,
            step=options["step"],
            number=Fraction,
            limit=60,
        )
        assert [tuple(used) for used in outcome.used] == exact


def test_the_best_slot_with_memory() -> None:
    """By the ranks of a polymatroid, and by trying all cores of all jobs on all servers."""
    rng = random.Random(7)
    for _ in range(150):
        servers, count = rng.randint(1, 2), rng.randint(1, 3)
        cpu = [rng.randint(1, 3) for _ in range(servers)]
        memory = [rng.randint(1, 4) for _ in range(servers)]
        worth, caps, reserve = (
            tuple(rng.randint(1, most) for _ in range(count)) for most in (5, 4, max(memory))
        )
        slot = Slot(worth, caps, reserve, tuple(cpu), tuple(memory))
        assert model.best_value(slot) == model.plain_best(slot)
