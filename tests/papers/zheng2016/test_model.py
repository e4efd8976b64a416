"""Checks of the PartialValue model itself: test vectors, hand examples, theorems, bounds."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from scipy.optimize import minimize_scalar

from schedgym.documents import read_yaml
from schedgym.papers.zheng2016 import model
from schedgym.papers.zheng2016.model import LINEAR, LOG, POWER, Instance, Job, State
from schedgym.papers.zheng2016.whole_tasks import _task_view_best
from tests.partial_value import optima
from tests.partial_value.instances import make_job, random_instance
from tests.tables import table

GENERAL = [name for name in model.DISCRETE if name != "deadline-aware"]


def single(
    *jobs: tuple[float, float, float, float, float], discrete: bool = False, c: float = 1.0
) -> Instance:
    """Linear jobs (a, d, X, Y, v) of unit demand on one resource."""
    return Instance(tuple(make_job(a, d, x, y, (1.0,), v) for a, d, x, y, v in jobs), (c,), discrete)


def slot(*jobs: tuple[tuple[float, ...], float], discrete: bool = True) -> Instance:
    """Linear jobs (r, v) of one task in slot 1."""
    return Instance(tuple(make_job(1, 1, 1, 1, r, v) for r, v in jobs), (1.0,) * len(jobs[0][0]), discrete)


def first(instance: Instance, policy: str) -> list[float]:
    """What a policy does in slot 1."""
    return model.simulate(instance, policy).allocation[0]


def discrete(count: int, seed: int, max_jobs: int = 4) -> Iterator[Instance]:
    """One in two adversarial, 1 to 3 resources, few and many tasks per slot."""
    rng = random.Random(seed)
    for n in range(count):
        yield random_instance(
            rng,
            discrete=True,
            max_jobs=max_jobs,
            max_slots=3,
            resources=1 + n % 3,
            adversarial=n % 2 == 0,
            max_share=rng.choice([0.2, 0.4, 0.8, 1.0]),
        )


def states(instances: Iterator[Instance], policy: str) -> Iterator[tuple[State, list[float]]]:
    """Every slot of every run, with what the policy does there."""
    for instance in instances:
        seen: list[tuple[State, list[float]]] = []

        def follow(state: State, seen: list[tuple[State, list[float]]] = seen) -> list[float]:
            x = model.policies(state.instance)[policy](state)
            seen.append((state, x))
            return x

        model.simulate(instance, follow)
        yield from seen


EXAMPLE_1 = Instance(
    (
        make_job(1, 2, 1, 1, (0.2, 0.8), 2.0),
        make_job(1, 2, 2, 2, (0.5, 0.5), 1.0),
        make_job(2, 2, 2, 2, (0.8, 0.2), 2.0),
    ),
    (1.0, 1.0),
)
AWARE_2 = single((1, 1, 2, 5, 1), (1, 2, 1, 1, 1.001), (1, 2, 1, 1, 1.51), discrete=True, c=2)
AWARE_3 = single((1, 1, 3, 4, 1.499), (1, 3, 1, 1, 1.5001), (1, 3, 2, 2, 2), discrete=True, c=3)


def example_2(kind: str) -> Instance:
    return Instance(tuple(make_job(1, 2, 0.75, y, (1.0,), 1.0, kind) for y in (0.5, 2.0)), (1.0,))


# Test vectors of the specification -----------------------------------------------------------


def test_v1_example_1() -> None:
    outcome = model.simulate(EXAMPLE_1, "concave")
    assert outcome.allocation[0] == pytest.approx([1, 0.4, 0])
    assert outcome.allocation[1] == pytest.approx([0, 0, 1.25])
    assert outcome.value == pytest.approx(4.9)
    assert model.offline_continuous(EXAMPLE_1).value == pytest.approx(6)


def test_v1_better_schedule_as_corrected() -> None:
    assert model.replay(EXAMPLE_1, [[0, 2, 0], [1, 0, 1]]).value == pytest.approx(6)
    with pytest.raises(ValueError, match="job 2"):  # job 3 has not arrived in slot 1
        model.replay(EXAMPLE_1, [[0, 0, 2], [1, 0, 1]])


@pytest.mark.parametrize(
    ("kind", "value", "offline", "ratio"),
    [(POWER, 1.825141, 1.931852, 1.0585), (LOG, math.log(1.5 * 2.25), math.log(1.5 * 2.5), 1.0866)],
)
def test_v2_example_2(kind: str, value: float, offline: float, ratio: float) -> None:
    instance = example_2(kind)
    outcome = model.simulate(instance, "concave")
    assert outcome.allocation[0] == pytest.approx([0.5, 0.5])
    assert outcome.allocation[1] == pytest.approx([0, 0.75])
    assert outcome.value == pytest.approx(value, abs=1e-6)
    optimum = model.offline_continuous(instance).value
    assert optimum == pytest.approx(offline, abs=1e-6)
    assert optimum == pytest.approx(model.replay(instance, [[0.25, 0.75], [0.25, 0.75]]).value)
    assert optimum / outcome.value == pytest.approx(ratio, abs=1e-4)


@pytest.mark.parametrize(
    ("instance", "value", "optimum"), [(AWARE_2, 2.511, 4.511), (AWARE_3, 5.5001, 9.9971)], ids=["v4a", "v4b"]
)
def test_v4_deadline_aware(instance: Instance, value: float, optimum: float) -> None:
    assert model.simulate(instance, "deadline-aware").value == pytest.approx(value, abs=1e-12)
    assert optima.offline_unit(instance) == pytest.approx(optimum, abs=1e-12)
    assert optima.offline_milp(instance) == pytest.approx(optimum, abs=1e-6)


# Slot rules ----------------------------------------------------------------------------------


SLOTS = read_yaml(Path(__file__).with_name("slots.yaml"))


@pytest.mark.parametrize("name", SLOTS)
def test_slots_by_hand(name: str) -> None:
    case = SLOTS[name]
    needs = [row[4] if isinstance(row[4], list) else [row[4]] for row in case["jobs"]]
    jobs = tuple(make_job(*row[:4], tuple(r), *row[5:]) for row, r in zip(case["jobs"], needs, strict=True))
    instance = Instance(jobs, tuple(case.get("capacity", [1])), case.get("discrete", False))
    state = State(instance, 1, tuple(case.get("served", [0] * len(jobs))))
    for policy, expected in case["does"].items():
        assert list(model.policies(instance)[policy](state)) == pytest.approx(expected), policy


@pytest.mark.parametrize("d", [True, False])
def test_windows_are_inclusive(d: bool) -> None:
    """Served in the arrival slot and in the deadline slot, not before or after."""
    instance = single((2, 4, 1, 9, 1), (2.5, 3.5, 1, 9, 1), (6, 6, 1, 9, 1), discrete=d, c=2)
    outcome = model.simulate(instance, "edf")
    assert outcome.allocation == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert outcome.reward == [0, 1, 2, 1, 0, 1]


def test_ends_early_when_nothing_is_left() -> None:
    instance = single((1, 9, 1, 1, 1), (3, 9, 1, 2, 1))
    assert len(model.simulate(instance, "fifo").allocation) == 4
    assert model.horizon(single((1, 2.9, 1, 1, 1))) == 2


def test_metrics() -> None:
    instance = single((1, 1, 1, 2, 3), (1, 1, 1, 1, 1), (2, 4, 1, 1, 2), c=2.0)
    outcome = model.replay(instance, [[1, 0, 0], [0, 0, 1]])
    assert model.metrics(instance, outcome) == model.Metrics(5, (0.25,), never_served=1, expired=2)


@pytest.mark.parametrize(("rows", "message"), table(__file__, "test_replay_rejects"))
def test_replay_rejects(rows: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.replay(single((1, 2, 1, 1, 1), (1, 1, 1, 2, 1)), rows)


def test_discrete_replay_rejects_parts_of_tasks() -> None:
    with pytest.raises(ValueError, match="0.5 tasks"):
        model.replay(single((1, 2, 1, 1, 1), discrete=True), [[0.5]])


# Algorithm 1 ---------------------------------------------------------------------------------


def test_tie_of_linear_and_strictly_concave() -> None:
    """At the price v of the linear job the other one stops where f' = v."""
    jobs = (make_job(1, 1, 5, 5, (1.0,), 1.0, LINEAR), make_job(1, 1, 5, 5, (1.0,), 2.0, LOG))
    x = first(Instance(jobs, (2.0,)), "concave")
    assert x == pytest.approx([1, 1], abs=1e-3)
    assert model.simulate(Instance(jobs, (2.0,)), "concave").value == pytest.approx(
        1 + 2 * math.log(2), rel=1e-8
    )


def test_gaps_to_the_slot_optimum_by_hand() -> None:
    assert model.slot_gaps(EXAMPLE_1, [[0, 2, 0], [1, 0, 1]]) == pytest.approx([0.4, -0.0], abs=1e-9)


# Discrete policies ---------------------------------------------------------------------------


def test_candidates_are_the_next_tasks() -> None:
    jobs = (
        make_job(1, 3, 2, 4, (0.1,), 1.0, POWER),
        make_job(1, 3, 2, 4, (1.1,), 1.0),
        make_job(2, 3, 2, 4, (0.1,), 1.0),
    )
    state = State(Instance(jobs, (1.0,), discrete=True), 1, (1.0, 0.0, 0.0))
    assert [(s.j, s.k) for s in model.candidates(state)] == [(0, 2), (0, 3)]
    assert model.candidates(state)[0].value == pytest.approx(math.sqrt(2) - 1)
    assert [(s.j, s.k) for s in model.candidates(state._replace(served=(3.0, 0.0, 0.0)))] == [(0, 4)]


def test_jobs_larger_than_a_resource_block_nobody() -> None:
    for name in GENERAL:
        assert first(slot(((1.5,), 9), ((0.5,), 1)), name) == [0, 1]


def test_deadline_aware_needs_its_setting() -> None:
    for wrong in (slot(((0.5,), 1)), slot(((1.0, 1.0), 1)), single((1, 1, 1, 1, 1), discrete=True, c=1.5)):
        with pytest.raises(ValueError, match="deadline-aware needs"):
            model.simulate(wrong, "deadline-aware")


def test_deadline_aware_factors() -> None:
    assert model.deadline_aware_factor(1) == 2
    for c in range(3, 50, 2):
        for p in ((c + 1) / 2, (c - 1) / 2):
            rho = c / (2 * c - p)
            assert model.deadline_aware_factor(c) == pytest.approx(1 + rho * c / (p + (c - p) * rho))


# Repair --------------------------------------------------------------------------------------


def test_repair_scales_by_the_fullest_resource_in_use() -> None:
    jobs = tuple(make_job(1, 1, 9, 9, r) for r in [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0)])
    state = State(Instance(jobs, (1.0, 1.0)), 1, (0.0,) * 4)
    assert model.repair(state, [1, 3, 1, 2]) == pytest.approx([0.5, 0.75, 0.25, 2])
    assert model.repair(state, [0.5, 0, 0.5, 9]) == [0.5, 0, 0.5, 9]


def test_repair_drops_the_cheapest_tasks() -> None:
    jobs = (make_job(1, 1, 3, 3, (0.4,), 1.0, POWER), make_job(1, 1, 3, 3, (0.2,), 0.3))
    state = State(Instance(jobs, (1.0,), discrete=True), 1, (0.0, 0.0))
    assert model.repair(state, [3, 1]) == [2, 1]
    assert model.repair(state, [2, 3]) == [1, 3]


# Bounds --------------------------------------------------------------------------------------


def test_exact_discrete_optima_agree_and_bounds_hold() -> None:
    for instance in discrete(75, 12, max_jobs=5):
        optimum = model.whole_best(instance)[0]
        assert optima.offline_milp(instance) == pytest.approx(optimum, abs=1e-6)
        pieces = optima.discrete_bound(instance)
        assert optimum <= pieces + 1e-6
        assert pieces <= model.offline_continuous(instance).upper * (1 + 1e-7) + 1e-7


def test_local_optimum_agrees_with_integer_programming() -> None:
    for state, x in states(discrete(40, 14, max_jobs=5), "local-optimal"):
        assert model.gain(state, x) == pytest.approx(optima.local_optimum_milp(state), abs=1e-6)


def test_huge_parallelism_is_harmless() -> None:
    jobs = tuple(make_job(1, 2, 1e12, 2, (0.5,), v, LOG) for v in (1.0, 2.0))
    small = tuple(job._replace(parallelism=2.0) for job in jobs)
    assert model.offline_continuous(Instance(jobs, (1.0,))).value == pytest.approx(
        model.offline_continuous(Instance(small, (1.0,))).value
    )


# Exact numbers -------------------------------------------------------------------------------


def tiny_instances(count, *, resources=(1, 2), unit=False, linear=True):
    rng = random.Random(5)
    for n in range(count):
        m = resources[n % len(resources)]
        capacity = tuple(rng.randint(1, 4) for _ in range(m))
        last = rng.randint(1, 3)
        jobs = []
        for _ in range(rng.randint(1, 3)):
            arrival = rng.randint(1, last)
            demand = (1,) if unit else tuple(rng.randint(0, c + 1) for c in capacity)
            tasks = rng.randint(1, 3)
            values = sorted((rng.randint(1, 6) for _ in range(1 if linear else tasks)), reverse=True)
            jobs.append(
                Job(
                    arrival,
                    rng.randint(arrival, last),
                    rng.randint(1, 3),
                    tasks,
                    demand if any(demand) else (1,) * m,
                    tuple(values),
                )
            )
        yield Instance(tuple(jobs), capacity)


def in_floats(instance: Instance) -> Instance:
    jobs = tuple(
        job._replace(
            parallelism=float(job.parallelism),
            tasks=float(job.tasks),
            demand=tuple(map(float, job.demand)),
            values=tuple(map(float, job.values)),
        )
        for job in instance.jobs
    )
    return instance._replace(jobs=jobs, capacity=tuple(map(float, instance.capacity)))


@pytest.mark.parametrize("name", GENERAL)
def test_exact_numbers_and_floats_give_one_schedule(name: str) -> None:
    for instance in tiny_instances(80):
        whole = instance._replace(discrete=True)
        assert model.simulate(whole, name).allocation == model.simulate(in_floats(whole), name).allocation


def test_linear_optima() -> None:
    """By the simplex method in fractions, and by cutting planes."""
    for instance in tiny_instances(60):
        best, schedule = model.linear_best(instance)
        wanted = model.offline_continuous(in_floats(instance))
        assert wanted.value * (1 - 1e-8) <= float(best) <= wanted.upper * (1 + 1e-8)
        assert model.value(instance, schedule) == best and model.feasible(instance, schedule, False)
        best, schedule = model.whole_best(instance)
        assert model.value(instance, schedule) == best and model.feasible(instance, schedule, True)


def test_algorithm_1_in_fractions() -> None:
    """Every slot is worth what it is in floats, and its prices prove it."""
    only = 0
    for instance in tiny_instances(40):
        here = in_floats(instance)

        def choose(state: State, here: Instance = here) -> list:
            nonlocal only
            found = model.algorithm_1(state)
            own = State(here, state.slot, tuple(map(float, state.served)))
            assert float(found.value) == pytest.approx(model.gain(own, model.concave(own)), abs=1e-8)
            limits = [*state.instance.capacity, *model.slot_caps(state)]
            bound = sum(b * c for b, c in zip(found.prices, limits, strict=True))
            assert bound == found.value == model.gain(state, found.x)
            only += found.unique
            return found.x

        schedule = model.play(instance, choose)
        assert model.feasible(instance, schedule, False)
    assert only > 20


def test_curved_slots() -> None:
    """The conditions of Karush, Kuhn and Tucker hold at the least and the greatest price, and not beyond."""
    several = 0
    for instance in tiny_instances(150, resources=(1,)):
        jobs = tuple(job._replace(values=(max(job.values[0], job.tasks),)) for job in instance.jobs)
        here = instance._replace(jobs=jobs)
        served = (0,) * len(jobs)
        for slot in range(1, model.horizon(here) + 1):
            caps = model.slot_caps(State(here, slot, served))
            x, least, greatest = model.curved_slot(State(here, slot, served))
            load = sum(model.shares(here, j)[0] * a for j, a in enumerate(x))

            def optimal(price, here=here, served=served, caps=caps, x=x, load=load):
                gains = [
                    job.values[0] - served[j] - x[j] - price * model.shares(here, j)[0]
                    for j, job in enumerate(here.jobs)
                ]
                free = all(
                    (gain <= 0 or a == cap) and (gain >= 0 or a == 0)
                    for gain, a, cap in zip(gains, x, caps, strict=True)
                )
                return free and price >= 0 and (price == 0 or load == 1)

            assert load <= 1 and all(0 <= a <= cap for a, cap in zip(x, caps, strict=True))
            assert optimal(least) and optimal(greatest) and optimal((least + greatest) / 2)
            assert not optimal(least - Fraction(1, 1000)) and not optimal(greatest + Fraction(1, 1000))
            several += least < greatest
            served = tuple(y + a for y, a in zip(served, x, strict=True))
    assert several > 5


def test_ties_are_not_unique() -> None:
    job = Job(1, 1, 1, 1, (1,), (1,))
    assert not model.algorithm_1(State(Instance((job, job), (1,)), 1, (0, 0))).unique
    assert model.algorithm_1(State(Instance((job, job), (3,)), 1, (0, 0))).unique
    assert model.algorithm_1(State(Instance((job, job._replace(values=(2,))), (1,)), 1, (0, 0))).unique


def test_values_of_tasks() -> None:
    job = Job(1, 2, 5, 5, (1,), (5, 3, 2))
    instance = Instance((job,), (3,))
    assert [model.worth(job, k) for k in range(1, 6)] == [5, 3, 2, 2, 2]
    assert model.value(instance, [(3,), (2,)]) == 14
    assert model.value(instance, [(Fraction(1, 2),), (Fraction(3, 4),)]) == 5 + Fraction(3, 4)
    for found in tiny_instances(30, linear=False):
        state = State(found, 1, (0,) * len(found.jobs))
        best = model.gain(state, model.local_optimal(state))
        assert best == max(model.gain(state, x) for x in model.allocations(state))
        for rule in (model.m_greedy, model.s_greedy, model.primal_dual):
            x = rule(state)
            assert model.feasible(found, [x], True) and model.gain(state, x) <= best


def test_infeasible_schedules() -> None:
    jobs = (Job(1, 2, 2, 3, (1,), (1,)), Job(2, 2, 1, 1, (2,), (1,)))
    instance = Instance(jobs, (3,))
    assert model.feasible(instance, [(2, 0), (1, 1)], True)
    half = Fraction(1, 2)
    assert model.feasible(instance, [(half, 0), (half, half)], False)
    assert not model.feasible(instance, [(half, 0)], True)  # not whole
    for rows in table(__file__, "test_infeasible_schedules"):
        assert not model.feasible(instance, rows, True)


def test_values_that_rise_need_the_order_of_tasks() -> None:
    """With a second task that is worth more, Eq. 4 takes it alone: the claim that both are equal can fail."""
    job = Job(1, 1, 1, 2, (1,), (1, 5))
    assert _task_view_best(Instance((job,), (1,))) == 5 > model.whole_best(Instance((job,), (1,)))[0]


def worst_case(capacity, p, rho):
    """The larger of the two bounds on g_t / V_t, from the values of the tasks that are served."""
    values = [1.0] * p + [rho] * (capacity - p)
    better = sum([1.0] * capacity) - sum([rho] * (capacity - p))
    return max(sum([rho] * capacity), better) / sum(values)


@pytest.mark.parametrize("capacity", [2, 3, 4, 7, 10])
def test_the_deltas_of_theorem_4_2_by_search(capacity) -> None:
    """The best rho of each p is C / (2 C - p). It gives 0.8 at p = C / 2, and more where C is odd."""
    found = {}
    for p in range(1, capacity):
        best = minimize_scalar(lambda rho, p=p: worst_case(capacity, p, rho), bounds=(0, 1), method="bounded")
        assert best.x == pytest.approx(capacity / (2 * capacity - p), abs=1e-4)
        found[p] = best.fun
    least = (
        4 * capacity**2 / (5 * capacity**2 - capacity % 2)
    )  # of p = (C - 1) / 2 and (C + 1) / 2, if C is odd
    assert min(found.values()) == pytest.approx(least, abs=1e-4)
    assert min(found, key=found.get) in (capacity // 2, (capacity + 1) // 2)
