"""Bounds of PartialValue, against the model, enumeration, other solvers, and the specification."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgym.core.workload import Workload
from schedgym.errors import InvalidWorkload
from schedgym.papers.zheng2016 import model as zheng2016
from schedgym.problems.partial_value import bounds
from schedgym.problems.partial_value.bounds import upper_bound
from schedgym.problems.partial_value.problem import PartialValueParameters
from schedgym.problems.partial_value.workload import (
    Source,
    generate,
    make_workload,
    rebuild,
    tables,
)
from schedgym.problems.toys import load_toys
from tests.long import trials
from tests.partial_value import optima
from tests.partial_value.instances import make_job, random_instance, workload_of

CLOSE = 1e-7


def parameters(model: str) -> PartialValueParameters:
    return PartialValueParameters(model=model, view="allocation")


def bound(workload: Workload, model: str) -> float:
    return upper_bound(workload, parameters(model))


def convert(instance: zheng2016.Instance) -> tuple[Workload, zheng2016.Instance]:
    """An instance of the model as a workload, and with its jobs in that order."""
    jobs = sorted(instance.jobs, key=lambda job: job.arrival)
    instance = instance._replace(jobs=tuple(jobs))
    return workload_of(instance), instance


def source_of(jobs: int, **parameters: Any) -> Source:
    """The paper's generator."""
    return Source(PartialValueParameters(jobs=jobs, **parameters))


def continuous(count: int, seed: int, **options: Any) -> Iterator[tuple[Workload, zheng2016.Instance]]:
    """One in two adversarial, 1 to 4 resources."""
    rng = random.Random(seed)
    for n in trials(count):
        made = random_instance(rng, resources=1 + n % 4, adversarial=n % 2 == 0, **options)
        yield convert(made)


def discrete(count: int, seed: int, **options: Any) -> Iterator[tuple[Workload, zheng2016.Instance]]:
    """One in two adversarial, 1 to 3 resources."""
    rng = random.Random(seed)
    for n in trials(count):
        share = rng.choice([0.3, 0.6, 1.0])
        chosen = {"resources": 1 + n % 3, "max_jobs": 4, "max_slots": 3, "max_share": share} | options
        yield convert(random_instance(rng, discrete=True, adversarial=n % 2 == 0, **chosen))


def units(count: int, seed: int) -> Iterator[tuple[Workload, zheng2016.Instance]]:
    rng = random.Random(seed)
    for n in trials(count):
        yield convert(random_instance(rng, discrete=True, adversarial=n % 2 == 0, unit=rng.choice([1, 2, 3])))


# The continuous model -------------------------------------------------------------------------


def test_the_continuous_bound_against_cutting_planes() -> None:
    for workload, instance in continuous(40, 1):
        exact = zheng2016.offline_continuous(instance)
        scale = max(exact.value, 1e-3)
        assert exact.value <= upper_bound(workload) <= exact.upper + 3 * CLOSE * scale


@pytest.mark.parametrize("windows", [1.0, 6.0, 15.0])
def test_the_papers_scenario(windows: float) -> None:
    workload = generate(0, 0, source_of(100, windows=windows))
    assert upper_bound(workload) == pytest.approx(optima.conic_optimum(workload), rel=5e-7)


@pytest.mark.parametrize("exponent", [0.05, 1 / 3, 0.61803, 0.95, None])
def test_other_utilities(exponent: float | None) -> None:
    """Other exponents, and logarithms (None), of jobs that want more than there is."""
    utility = "log" if exponent is None else "power"
    source = source_of(40, utility=utility, exponent=exponent or 0.5, tasks=100_000, parallelism=3000)
    for episode in range(3):
        workload = generate(1, episode, source)
        assert upper_bound(workload) == pytest.approx(optima.conic_optimum(workload), rel=2e-6)


def test_scales_do_not_matter() -> None:
    """Huge parallelism, sizes from 1e-3 to 1e9."""
    rng = np.random.default_rng(4)
    for n in range(8):
        count = 12
        arrival = np.sort(rng.integers(0, 40, count))
        workload = make_workload(
            arrival=arrival,
            deadline=arrival + rng.integers(0, 10 ** (1 + n % 4), count),
            parallelism=10.0 ** rng.uniform(0, 12, count),
            tasks=10.0 ** rng.uniform(-1, 9, count),
            demand=10.0 ** rng.uniform(-3, 3, (count, 2)),
            utility=[str(kind) for kind in rng.choice(zheng2016.KINDS, count)],
            value=10.0 ** rng.uniform(-3, 2, count),
            capacity=10.0 ** rng.uniform(1, 4, 2),
            exponent=rng.uniform(0.1, 0.9, count),
        )
        assert upper_bound(workload) == pytest.approx(optima.conic_optimum(workload), rel=1e-5)


# Prices ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.0, 0.1, 1.0, 10.0]))
def test_any_prices_give_a_bound(seed: int, scale: float) -> None:
    rng = random.Random(seed)
    adversarial = rng.random() < 0.5
    workload, instance = convert(random_instance(rng, resources=2, adversarial=adversarial))
    needs = bounds._needs(tables(workload), False)
    if len(needs.job) == 0:
        return
    edge = np.arange(1, zheng2016.horizon(instance) + 2)
    price = {t: [scale * rng.choice([0.0, rng.random()]) for _ in range(2)] for t in edge[:-1].tolist()}
    windows = [zheng2016.window(instance, j) for j in range(len(instance.jobs))]
    theirs, _ = zheng2016.lagrangian_bound(instance, [0.0] * len(windows), windows, price)
    ours = bounds._certified(needs, bounds._grid(needs, edge), np.array(list(price.values())))
    served = sum(
        zheng2016.utility(job, min(job.tasks, job.parallelism * len(own)))
        for job, own in zip(instance.jobs, windows, strict=True)
    )
    # a cap that only a resource sets is known to ours
    assert ours <= min(theirs, served) * (1 + 1e-8) + 1e-12
    if all(max(zheng2016.shares(instance, j)) * job.parallelism <= 1 for j, job in enumerate(instance.jobs)):
        assert ours == pytest.approx(min(theirs, served), rel=1e-8)
    assert ours >= zheng2016.offline_continuous(instance).value * (1 - 1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.0, 0.1, 1.0, 10.0]))
def test_whole_tasks_at_any_prices(seed: int, scale: float) -> None:
    """Each job's best answer, by trying every number of tasks."""
    rng = random.Random(seed)
    made = random_instance(rng, discrete=True, resources=2, adversarial=rng.random() < 0.5)
    workload, instance = convert(made)
    needs = bounds._needs(tables(workload), True)
    if len(needs.job) == 0:
        return
    edge = np.arange(1, zheng2016.horizon(instance) + 2)
    price = scale * np.array([[rng.choice([0.0, rng.random()]) for _ in range(2)] for _ in edge[:-1]])
    total = price.sum()
    served = 0.0
    for j, job in enumerate(instance.jobs):
        share = np.array(zheng2016.shares(instance, j))
        most = min([job.parallelism, job.tasks, *(math.floor((1 + 1e-9) / r) for r in share if r > 0)])
        costs = sorted(
            float(price[t - 1] @ share) for t in zheng2016.window(instance, j) for _ in range(int(most))
        )
        tasks = range(int(min(job.tasks, len(costs))) + 1)
        total += max(zheng2016.utility(job, k) - sum(costs[:k]) for k in tasks)
        served += zheng2016.utility(job, tasks[-1])
    ours = bounds._certified(needs, bounds._grid(needs, edge), price)
    assert ours == pytest.approx(min(total, served), rel=1e-8)


def test_bad_prices_are_none() -> None:
    workload = load_toys("partial-value")["example-1"].workload
    needs = bounds._needs(tables(workload), False)
    grid = bounds._grid(needs, bounds._events(needs))
    none = bounds._certified(needs, grid, np.zeros((2, 2)))
    assert none == pytest.approx(2 + 2 + 2.5)  # the last job alone fits 1.25 tasks
    assert bounds._certified(needs, grid, np.array([[-1.0, np.nan], [np.inf, -np.inf]])) == none


def test_the_bound_allows_for_the_tolerance_of_loads() -> None:
    """Loads of 1 + 1e-9 fit, and are worth more than the optimum of loads of 1."""
    over = 1 + 1e-9
    for utility, value in (("linear", 3 * over), ("log", math.log1p(3 * over)), ("power", (3 * over) ** 0.5)):
        instance = zheng2016.Instance((make_job(1, 3, 10, 10, (1.0,), 1.0, utility),), (1.0,))
        workload = workload_of(instance)
        assert zheng2016.replay(instance, [[over]] * 3).value == pytest.approx(value, rel=1e-15)
        assert value <= upper_bound(workload) <= value * (1 + 1e-6)
    # ten tasks of 0.1 and a hair
    task = make_job(1, 1, 99, 99, (0.1 + 5e-11,))
    hair = workload_of(zheng2016.Instance((task,), (1.0,)))
    assert 10 <= bound(hair, "discrete")
    two = workload_of(zheng2016.Instance((task, make_job(1, 1, 99, 99, (0.2,), 0.1)), (1.0,)))
    assert 10 <= bound(two, "discrete")


# The discrete model ---------------------------------------------------------------------------


def test_the_discrete_bound_is_that_of_the_linear_program() -> None:
    """One piece per task there, few pieces here."""
    for workload, instance in discrete(40, 7):
        needs = bounds._needs(tables(workload), True)
        if len(needs.job) == 0:
            assert bound(workload, "discrete") == 0.0
            continue
        exact, certified = optima.discrete_bound(instance), bounds._priced(needs)
        assert optima.offline_milp(instance) * (1 - 1e-9) <= certified <= exact * (1 + 2e-7)


def test_the_discrete_bound_with_more_tasks_than_pieces() -> None:
    rng = random.Random(12)
    for _ in range(30):
        jobs = []
        for _ in range(rng.randint(1, 5)):
            arrival, tasks, v = rng.randint(1, 3), rng.randint(9, 60), rng.uniform(1, 5)
            demand = (rng.uniform(1, 4), rng.uniform(1, 4))
            width = min(rng.randint(1, 30), math.floor(min(10 / demand[0], 12 / demand[1])))
            kind, alpha = rng.choice(zheng2016.KINDS[1:]), rng.uniform(0.1, 0.9)
            until = arrival + rng.randint(0, 2)
            jobs.append(make_job(arrival, until, width, tasks, demand, v, kind, alpha))
        workload, instance = convert(zheng2016.Instance(tuple(jobs), (10.0, 12.0), True))
        exact = optima.discrete_bound(instance)
        assert exact * (1 - 1e-9) <= bound(workload, "discrete") <= exact * (1 + 1e-7)


def test_many_tasks_per_job() -> None:
    """The paper's jobs, with ten times as many tasks: their pieces would be 4,000."""
    workload = generate(2, 0, source_of(40, tasks=1000, parallelism=200, capacity=1000.0))
    whole, cut = bound(workload, "discrete"), upper_bound(workload)
    assert whole <= cut * (1 + 1e-7)
    assert whole >= cut * 0.99
    needs = bounds._needs(tables(workload), True)
    grid = bounds._grid(needs, bounds._events(needs))
    every = bounds._points(needs, needs.most[:, np.newaxis] * np.arange(1001) / 1000)
    _, price, _ = bounds._program(needs, grid, every)
    assert whole == pytest.approx(bounds._certified(needs, grid, price), rel=2e-7)


def test_alike_tasks_by_another_way() -> None:
    for workload, instance in units(60, 8):
        exact = optima.offline_unit(instance)
        assert exact <= bound(workload, "discrete") <= exact * (1 + 1e-11)


def test_alike_tasks_in_long_intervals() -> None:
    """Slots between events are one: what they get must still fit each of them."""
    rng = random.Random(9)
    for _ in range(15):
        jobs = []
        for _ in range(rng.randint(1, 5)):
            arrival = rng.choice([1, 1, 4, 9])
            until = arrival + rng.choice([2, 5, 7])
            kind = rng.choice(zheng2016.KINDS)
            v = rng.uniform(1, 2)
            tasks, width = rng.randint(1, 20), rng.randint(1, 4)
            jobs.append(make_job(arrival, until, width, tasks, (2.0, 1.0), v, kind))
        workload, instance = convert(zheng2016.Instance(tuple(jobs), (7.0, 4.5), True))  # room for 3 tasks
        unit = tuple(job._replace(demand=(1.0,)) for job in instance.jobs)
        exact = optima.offline_unit(zheng2016.Instance(unit, (3.0,), True))
        assert bound(workload, "discrete") == pytest.approx(exact, rel=1e-11)


def test_alike_tasks_of_linear_jobs() -> None:
    """They are taken many at a time, as far as a path carries them."""
    # the last job wants three, but the first has only one task yet that can make room
    jobs = [
        make_job(1, 2, 5, 5, (1.0,), 2.0, "log"),
        make_job(1, 1, 5, 2, (1.0,), 4.0),
        make_job(1, 1, 3, 3, (1.0,), 1.0),
    ]
    workload = workload_of(zheng2016.Instance(tuple(jobs), (3.0,)))
    assert bound(workload, "discrete") == pytest.approx(2 * math.log(4) + 8 + 1, rel=1e-11)
    rng = random.Random(11)
    for _ in range(60):
        jobs = []
        for _ in range(rng.randint(2, 6)):
            arrival = rng.randint(1, 5)
            v = float(rng.randint(1, 4))
            tasks, width = rng.randint(1, 12), rng.randint(1, 6)
            jobs.append(make_job(arrival, rng.randint(arrival, 6), width, tasks, (1.0,), v))
        workload, instance = convert(zheng2016.Instance(tuple(jobs), (float(rng.randint(2, 6)),), True))
        assert bound(workload, "discrete") == pytest.approx(optima.offline_unit(instance), rel=1e-11)


def test_alike_tasks_of_the_papers_size() -> None:
    """A linear program, whose optimum is whole here, agrees."""
    for windows in (1.0, 10.0):
        workload = generate(3, 0, source_of(100, single=True, windows=windows))
        needs = bounds._needs(tables(workload), True)
        assert bound(workload, "discrete") == pytest.approx(bounds._priced(needs), rel=3e-7)


# Any workload ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["continuous", "discrete"])
def test_what_leaves_the_bound_as_it_is(model: str) -> None:
    """Later clocks, other units of values and resources, the resources in another order."""
    own = tables(generate(4, 0, source_of(30)))
    before = bound(rebuild(own), model)
    assert bound(rebuild(own._replace(value=7.0 * own.value)), model) == pytest.approx(7 * before, rel=CLOSE)
    later = own._replace(arrival=own.arrival + 1e6, deadline=own.deadline + 1e6)
    assert bound(rebuild(later), model) == pytest.approx(before, rel=CLOSE)
    units = np.array([3.0, 0.25])
    rescaled = own._replace(demand=own.demand * units, capacity=own.capacity * units)
    assert bound(rebuild(rescaled), model) == pytest.approx(before, rel=CLOSE)
    turned = own._replace(demand=own.demand[:, ::-1], capacity=own.capacity[::-1])
    assert bound(rebuild(turned), model) == pytest.approx(before, rel=CLOSE)
    more = own._replace(capacity=2 * own.capacity)
    assert bound(rebuild(more), model) > before


def test_a_million_slots_cost_what_the_jobs_cost() -> None:
    jobs = (
        make_job(1, 10**8, 2, 1e12, (3,), kind="power"),
        make_job(5, 10**6, 2, 5, (2,), kind="power"),
        make_job(10**6, 10**9, 2, 7, (1,), kind="power"),
    )
    workload = workload_of(zheng2016.Instance(jobs, (3,)))
    certified = upper_bound(workload)
    # the first job alone would get a task per slot; the others take a dozen task-slots at most
    assert 1e4 < certified <= (1e4 + math.sqrt(5) + math.sqrt(7)) * (1 + 1e-6)


@pytest.mark.parametrize("model", ["continuous", "discrete"])
@pytest.mark.parametrize("variables", [60, 400, 2000])
def test_large_workloads_have_wider_bounds(
    model: str, variables: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few programs, longer intervals, a sample of the jobs."""
    workload = generate(5, 0, source_of(80, windows=12.0))
    fine = bound(workload, model)
    monkeypatch.setattr(bounds, "MOST_VARIABLES", variables)
    coarse = bound(workload, model)
    own = tables(workload)
    served = own.value * np.sqrt(np.minimum(100, 20 * (own.deadline - own.arrival + 1)))
    assert fine * (1 - CLOSE) <= coarse < 0.97 * served.sum()
    assert coarse <= fine * {60: 1.5, 400: 1.2, 2000: 1.1}[variables]


# Failures -------------------------------------------------------------------------------------


def test_solvers_that_fail_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    concave = generate(6, 0, source_of(20))

    class Failed:
        status, message = 4, "numerical trouble"

    monkeypatch.setattr(bounds, "linprog", lambda *args, **kwargs: Failed)
    for model in ("continuous", "discrete"):
        with pytest.raises(RuntimeError, match=r"^HiGHS: numerical trouble$"):
            bound(concave, model)


def test_what_is_refused() -> None:
    with pytest.raises(InvalidWorkload, match=r"^jobs.parallelism\[0\]: must be a whole number in the"):
        bound(load_toys("partial-value")["example-2"].workload, "discrete")
