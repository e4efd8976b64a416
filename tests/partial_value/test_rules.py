"""The slot rules: for whole tasks, in cases made for one, and where no policy plays them.

Whole schedules under them are compared in test_policies.py.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from schedgym.papers.zheng2016 import model
from schedgym.papers.zheng2016.model import KINDS, LINEAR, LOG, POWER, Instance, Job, State
from schedgym.problems.partial_value import rules
from schedgym.problems.partial_value.rules import RULES, Rows, Scratch, make_scratch
from schedgym.solvers.dual_prices import make_dual_scratch
from tests.long import of_trials, trials
from tests.partial_value.instances import make_job, random_instance
from tests.tables import table

CODES = {LINEAR: rules.LINEAR, POWER: rules.POWER, LOG: rules.LOG}
CLOSE = 1e-9


class Case(NamedTuple):
    """A state as the model and as the kernels see it."""

    state: State
    ids: list[int]  # of the rows
    rows: Rows
    capacity: Any
    scratch: Scratch

    def full(self, x: Any) -> list[float]:
        """An allocation of the rows as one of all jobs."""
        every = [0.0] * len(self.state.served)
        for r, j in enumerate(self.ids):
            every[j] = float(x[r])
        return every


def case_of(state: State, spare: int = 0) -> Case:
    """The active jobs as rows, and ``spare`` rows of nonsense behind."""
    instance = state.instance
    ids = model.active(instance, state.slot, state.served)
    n, m = len(ids), len(instance.capacity)

    def column(values: list[float]) -> Any:
        return np.array(values + [math.nan] * spare, dtype=np.float64)

    jobs = [instance.jobs[j] for j in ids]
    share = np.full((n + spare, m), math.nan)
    for r, j in enumerate(ids):
        share[r] = model.shares(instance, j)
    rows = Rows(
        job=np.array(ids + [-1] * spare, dtype=np.int64),
        arrival=column([job.arrival for job in jobs]),
        deadline=column([job.deadline for job in jobs]),
        served=column([state.served[j] for j in ids]),
        cap=column([model.slot_cap(state, j) for j in ids]),
        share=share,
        utility=np.array([CODES[job.kind] for job in jobs] + [-1] * spare, dtype=np.int64),
        value=column([job.values[0] for job in jobs]),
        exponent=column([job.alpha for job in jobs]),
    )
    return Case(state, ids, rows, np.array(instance.capacity), make_scratch(n + spare, m))


def by_rule(rule: str, case: Case) -> list[float]:
    """What a rule serves, as an allocation of all jobs."""
    n, m = len(case.ids), len(case.capacity)
    x = np.full(len(case.rows.cap), math.nan)
    dual = make_dual_scratch(len(x), m)
    discrete = case.state.instance.discrete
    rules.allocate_by_rule(RULES.index(rule), discrete, n, case.rows, case.capacity, case.scratch, dual, x)
    assert np.isnan(x[n:]).all()
    return case.full(x)


def by_priority(case: Case, scores: Any, single_task: bool = True) -> list[float]:
    n = len(case.ids)
    x = np.full(len(case.rows.cap), math.nan)
    every = np.zeros(len(x))
    every[:n] = scores
    rules.allocate_by_priority(
        case.state.instance.discrete, single_task, n, every, case.rows, case.scratch, x
    )
    return case.full(x)


def states(instance: Instance, seed: int) -> Iterator[State]:
    """The states of an episode in which every slot is served by another rule."""
    choices = random.Random(seed)
    known = model.policies(instance)
    names = [n for n in known if n not in ("concave", "local-optimal", "deadline-aware")]
    seen: list[State] = []

    def follow(state: State) -> list[float]:
        seen.append(state)
        return known[choices.choice(names)](state)

    model.simulate(instance, follow)
    for state in seen:
        if model.active(instance, state.slot, state.served):
            yield state


def instances(count: int, seed: int, **options: Any) -> Iterator[State]:
    """The states of random instances, half of them adversarial."""
    rng = random.Random(seed)
    for number in trials(count):
        instance = random_instance(
            rng,
            adversarial=number % 2 == 0,
            **{"max_jobs": rng.choice((2, 6, 10)), "resources": rng.choice((1, 2, 3)), **options},
        )
        # as in a workload, the order of ids is that of arrivals
        jobs = tuple(sorted(instance.jobs, key=lambda job: job.arrival))
        yield from states(instance._replace(jobs=jobs), number)


def same(found: list[float], expected: list[float], exactly: bool) -> None:
    assert np.allclose(found, expected, rtol=0.0, atol=0.0 if exactly else CLOSE), (found, expected)


SKIPPING = {
    "m-greedy-skip": lambda *slot: rules.m_greedy(True, True, *slot),
    "s-greedy-skip": lambda *slot: rules.s_greedy(True, *slot),
    "equal-opp-skip": lambda *slot: rules.equal_counts(True, *slot),
}


@pytest.mark.parametrize("kinds", [KINDS, (LINEAR,), (POWER,), (LOG,)], ids="+".join)
@pytest.mark.parametrize(
    "rule", ["m-greedy", "primal-dual", "s-greedy", "equal-opp", "edf", "fifo", *SKIPPING]
)
def test_discrete_rules_are_the_models(rule: str, kinds: tuple[str, ...]) -> None:
    # among more of them, primal-dual meets equal ratios of unequal tasks, which rounding decides
    count = 80 if rule == "primal-dual" else 200
    for number, state in enumerate(instances(count, 1, discrete=True, kinds=kinds)):
        case = case_of(state, spare=number % 3)
        expected = model.DISCRETE[rule](state)
        if rule in SKIPPING:
            x = np.zeros(len(case.rows.cap))
            SKIPPING[rule](len(case.ids), case.rows, case.scratch, x)
            same(case.full(x), expected, True)
        else:
            same(by_rule(rule, case), expected, True)


# Whole tasks ----------------------------------------------------------------------------------


def one_slot(jobs: list[Job], capacity: tuple[float, ...] = (1.0,), discrete: bool = True) -> Case:
    """The first slot of jobs that arrive at once."""
    return case_of(State(Instance(tuple(jobs), capacity, discrete), 1, (0.0,) * len(jobs)))


@pytest.mark.parametrize("resources", [1, 2])
def test_primal_dual_with_tiny_tasks(resources: int) -> None:
    """e^(B - 1) overflows, and the prices of two resources lie too far apart for numbers."""
    jobs = [
        make_job(1, 1, 60, 60, (0.001, 0.0)[:resources], 1.0, POWER),
        make_job(1, 1, 60, 60, (0.0009, 0.00001)[:resources], 1.1, LOG),
        make_job(1, 1, 60, 60, (0.0002, 0.0005)[:resources], 0.001, LINEAR),
    ]
    case = one_slot(jobs, (1.0,) * resources)
    found = by_rule("primal-dual", case)
    assert found == model.primal_dual(case.state)
    assert sum(found) == 180


@pytest.mark.parametrize("certain", [1, 2, 3])
def test_deadline_aware_with_other_numbers(certain: int) -> None:
    """p of the most valuable tasks, then the most urgent of those worth rho of their mean."""
    deadlines, values = [9, 2, 5, 1, 7], [5.0, 4.0, 3.0, 2.0, 2.9]
    case = one_slot([make_job(1, d, 1, 1, (1.0,), v) for d, v in zip(deadlines, values, strict=True)], (3.0,))
    x = np.zeros(5)
    rules.deadline_aware(certain, 0.6, 5, case.rows, 3, case.scratch, x)
    order = sorted(range(5), key=lambda j: -values[j])
    mean = sum(values[j] for j in order[:certain]) / certain
    near = sorted((j for j in order[certain:] if values[j] >= 0.6 * mean), key=lambda j: deadlines[j])
    assert sorted(np.flatnonzero(x)) == sorted(order[:certain] + near[: 3 - certain])


def test_unit_demand() -> None:
    for capacity, share, expected in table(__file__, "test_unit_demand"):
        assert rules.unit_demand(len(share), np.array(share), np.array(capacity)) == expected


# Priorities -----------------------------------------------------------------------------------


def by_weight(case: Case, scores: Any) -> list[float]:
    n = len(case.ids)
    x = np.full(len(case.rows.cap), math.nan)
    every = np.zeros(len(x))
    every[:n] = scores
    before = case.rows.value.copy()
    dual = make_dual_scratch(len(x), len(case.capacity))
    rules.allocate_by_weight(n, every, case.rows, case.scratch, dual, x)
    np.testing.assert_array_equal(case.rows.value, before)
    return case.full(x)


@pytest.mark.parametrize("kinds", [KINDS, (LINEAR,), (POWER,), (LOG,)], ids="+".join)
def test_weights_are_values_of_the_program(kinds: tuple[str, ...]) -> None:
    """Scores of 0 are Algorithm 1; others are Algorithm 1 for jobs that are worth so much more."""
    rng, changed = np.random.default_rng(17), 0
    for number, state in enumerate(instances(150, 18, kinds=kinds)):
        case = case_of(state, spare=number % 2)
        assert by_weight(case, np.zeros(len(case.ids))) == by_rule("concave", case)
        scores = rng.normal(0.0, 1.0, len(case.ids))
        other = scaled(state, dict(zip(case.ids, np.exp(scores), strict=True)))
        found = by_weight(case, scores)
        assert found == pytest.approx(by_rule("concave", case_of(other)), rel=1e-6, abs=1e-6)
        assert max(model.load(state.instance, found)) <= 1.0 + CLOSE
        changed += found != by_rule("concave", case)
    assert changed > of_trials(30)


def scaled(state: State, factors: dict[int, float]) -> State:
    """The state with the values of jobs multiplied."""
    jobs = tuple(
        job._replace(values=(job.values[0] * factors.get(j, 1.0),))
        for j, job in enumerate(state.instance.jobs)
    )
    return state._replace(instance=state.instance._replace(jobs=jobs))


@pytest.mark.parametrize("discrete", [False, True])
def test_a_score_multiplies_the_value(discrete: bool) -> None:
    rng = np.random.default_rng(7)
    for state in instances(400, 8, discrete=discrete):
        case = case_of(state)
        scores = rng.normal(0.0, 2.0, len(case.ids))
        other = scaled(state, dict(zip(case.ids, np.exp(scores), strict=True)))
        if discrete:
            order = by_priority(case, scores, single_task=False)
            assert order == by_priority(case_of(other), np.zeros(len(scores)), single_task=False)
        else:
            found, expected = by_priority(case, scores), model.s_greedy_continuous(other)
            if not np.allclose(found, expected, rtol=0.0, atol=CLOSE):
                # jobs at their caps have filled a resource: how far the level falls then is left open
                assert max(model.load(other.instance, found)) >= 1.0 - CLOSE
                gains = [model.gain(other, x) for x in (found, expected)]
                assert gains[0] == pytest.approx(gains[1], rel=1e-3)


def large_case(seed: int, kind: str, discrete: bool, alpha: float = 0.5, n: int = 16) -> Case:
    """A slot with hundreds of tasks, in which whole levels of tasks are served at a time."""
    rng = np.random.default_rng(seed)
    jobs, y = [], []
    for _ in range(n):
        y.append(float(rng.integers(0, 40)) if rng.random() < 0.6 else 0.0)
        need = (rng.uniform(1, 8), 1.0) if rng.random() < 0.5 else (1.0, rng.uniform(1, 8))
        if rng.random() < 0.05:
            need = (0.0, 0.0)
        v = float(rng.choice([1.0, 2.0, rng.uniform(1, 5)]))
        jobs.append(make_job(0, 9, 12, 100, need, v, kind, alpha))
    if seed % 3 == 0:  # equal jobs
        jobs[n // 2 :] = jobs[: n - n // 2]
    scale = float(rng.choice([50.0, 100.0, 200.0]))
    return case_of(State(Instance(tuple(jobs), (scale, scale), discrete), 1, tuple(y)))


@pytest.mark.parametrize(("kind", "alpha"), [(POWER, 0.5), (POWER, 0.3), (LOG, 0.5), (LINEAR, 0.5)])
def test_many_tasks_are_served_in_order(kind: str, alpha: float) -> None:
    for seed in range(6):
        case = large_case(seed, kind, True, alpha)
        for rule in ("m-greedy", "s-greedy", "equal-opp"):
            assert by_rule(rule, case) == model.DISCRETE[rule](case.state), (seed, rule)


# Prices ---------------------------------------------------------------------------------------


def bought(case: Case, prices: Any) -> list[float]:
    x = np.full(len(case.rows.cap), math.nan)
    rules.buy(len(case.ids), np.array(prices), case.rows, x)
    return case.full(x)


def test_jobs_buy_what_pays() -> None:
    rng = np.random.default_rng(9)
    for state in instances(80, 10):
        case = case_of(state, spare=1)
        for _ in range(4):
            prices = rng.exponential(3.0, len(case.capacity)) * (rng.random(len(case.capacity)) < 0.8)
            expected = model.buy_all(state, list(prices))
            assert np.allclose(bought(case, prices), expected, rtol=0.0, atol=CLOSE)


def test_a_linear_job_buys_nothing_at_its_own_price() -> None:
    case = one_slot([make_job(1, 1, 2, 3, (0.5,), 1.0)], discrete=False)
    assert [bought(case, [price])[0] for price in (1.9, 2.0, 2.1, 0.0)] == [2.0, 0.0, 0.0, 2.0]


def test_prices_come_as_logarithms() -> None:
    prices = np.zeros(4)
    rules.decode_prices(np.array([0.0, -50.0, -49.9, 50.0]), prices)
    assert prices[0] == 1.0 and prices[1] == 0.0 and prices[2] > 0.0 and math.isfinite(prices[3])


# Repair ---------------------------------------------------------------------------------------


def repaired(case: Case, wanted: Any) -> tuple[list[float], bool]:
    x = np.full(len(case.rows.cap), math.nan)
    x[: len(case.ids)] = wanted
    changed = rules.repair(case.state.instance.discrete, len(case.ids), case.rows, case.scratch, x)
    return case.full(x), changed


def test_repair_clips() -> None:
    case = one_slot([make_job(1, 1, 2, 3, (0.1,)), make_job(1, 1, 2, 1, (0.1,))], discrete=False)
    assert repaired(case, [-1.0, 9.0]) == ([0.0, 1.0], True)
    assert repaired(case, [-1e-12, 1.0 + 1e-12]) == ([0.0, 1.0], False)
    assert repaired(case, [2.0, 1.0]) == ([2.0, 1.0], False)


@pytest.mark.parametrize(("kind", "alpha"), [(POWER, 0.5), (POWER, 0.3), (LOG, 0.5), (LINEAR, 0.5)])
def test_repair_of_many_tasks(kind: str, alpha: float) -> None:
    rng = np.random.default_rng(13)
    for seed in range(4):
        case = large_case(seed, kind, True, alpha)
        wanted = rng.integers(0, case.rows.cap.astype(int) + 1)
        assert repaired(case, wanted)[0] == model.repair(case.state, case.full(wanted))


def test_huge_counts_are_served_and_repaired() -> None:
    """A million tasks in a slot: what is added up task by task still fills the resource to the last one."""
    n = 1000
    jobs = [make_job(1, 1, 10**6, 10**6, (1.0,), 1.0 + 0.001 * j, POWER) for j in range(n)]
    case = one_slot(jobs, (1e6,))
    found = by_rule("m-greedy", case)
    assert sum(found) == 1e6
    assert repaired(case, case.rows.cap)[0] == found


# Orders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("discrete", [False, True])
def test_any_order_can_be_served(discrete: bool) -> None:
    rng = np.random.default_rng(14)
    for state in instances(150, 15, discrete=discrete):
        case = case_of(state, spare=2)
        order = rng.permutation(len(case.ids))
        x = np.full(len(case.rows.cap), math.nan)
        rules.allocate_in_order(discrete, len(order), order, case.rows, case.scratch, x)
        same(case.full(x), model.in_order(state, [case.ids[r] for r in order]), discrete)


def test_no_jobs_get_nothing() -> None:
    case = case_of(State(Instance((make_job(5, 6, 1, 1, (1.0,)),), (1.0,), True), 1, (0.0,)), spare=2)
    for rule in RULES:
        assert by_rule(rule, case) == [0.0]
    assert by_priority(case, []) == [0.0]
    assert repaired(case, []) == ([0.0], False)


def test_a_resource_is_full_but_never_over_however_steep_the_responses() -> None:
    """Magnitudes and scores that make loads jump between neighbouring levels."""
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(2, 12)), int(rng.integers(1, 4))
        reach = float(rng.choice([1.0, 3.0, 5.0]))

        def sizes(*shape: int, rng: Any = rng, reach: float = reach) -> Any:
            return 10.0 ** rng.uniform(-reach, reach, shape)

        rows = rules.Rows(
            job=np.arange(n),
            arrival=np.zeros(n),
            deadline=np.full(n, 9.0),
            served=sizes(n) * (rng.random(n) < 0.7),
            cap=sizes(n),
            share=np.minimum(sizes(n, m) * 1e-2, 1.0),
            utility=np.ones(n, dtype=np.int64),
            value=sizes(n),
            exponent=np.full(n, 0.5),
        )
        x = np.zeros(n)
        scores = rng.uniform(-10.0, 10.0, n)
        rules.allocate_by_priority(False, True, n, scores, rows, rules.make_scratch(n, m), x)
        assert (x >= 0.0).all() and (x <= rows.cap).all()
        load = float((x @ rows.share).max())
        assert load <= 1.0 + 1e-12, seed
        assert load >= 1.0 - 1e-9 or np.allclose(x, rows.cap), seed
