"""The slot rules against the oracle: every rule in every state of random instances, and cases made for one."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from schedgym.baselines.solvers.dual_prices import make_dual_scratch
from schedgym.problems.partial_value import schemes
from schedgym.problems.partial_value.schemes import RULES, Scratch, Visible, make_scratch
from tests.partial_value import oracle
from tests.partial_value.oracle import KINDS, LINEAR, LOG, POWER, Instance, Job, State

CODES = {LINEAR: schemes.LINEAR, POWER: schemes.POWER, LOG: schemes.LOG}
CLOSE = 1e-9


class Case(NamedTuple):
    """A state as the oracle and as the kernels see it."""

    state: State
    ids: list[int]  # of the rows
    rows: Visible
    capacity: Any
    scratch: Scratch

    def full(self, x: Any) -> list[float]:
        """An allocation of the rows as one of all jobs."""
        every = [0.0] * len(self.state.y)
        for r, j in enumerate(self.ids):
            every[j] = float(x[r])
        return every


def case_of(state: State, spare: int = 0) -> Case:
    """The active jobs as rows, and ``spare`` rows of nonsense behind."""
    instance = state.instance
    ids = oracle.active(instance, state.slot, state.y)
    n, m = len(ids), len(instance.capacity)

    def column(values: list[float]) -> Any:
        return np.array(values + [math.nan] * spare, dtype=np.float64)

    jobs = [instance.jobs[j] for j in ids]
    share = np.full((n + spare, m), math.nan)
    for r, j in enumerate(ids):
        share[r] = oracle.shares(instance, j)
    rows = Visible(
        arrival=column([job.arrival for job in jobs]),
        deadline=column([job.deadline for job in jobs]),
        served=column([state.y[j] for j in ids]),
        cap=column([oracle.slot_cap(state, j) for j in ids]),
        share=share,
        utility=np.array([CODES[job.kind] for job in jobs] + [-1] * spare, dtype=np.int64),
        value=column([job.v for job in jobs]),
        exponent=column([job.alpha for job in jobs]),
    )
    return Case(state, ids, rows, np.array(instance.capacity), make_scratch(n + spare, m))


def by_rule(rule: str, case: Case) -> list[float]:
    """What a rule serves, as an allocation of all jobs."""
    n, m = len(case.ids), len(case.capacity)
    x = np.full(len(case.rows.cap), math.nan)
    dual = make_dual_scratch(len(x), m)
    discrete = case.state.instance.discrete
    schemes.allocate_by_rule(
        RULES.index(rule), discrete, n, case.rows, case.capacity, case.scratch, dual, x
    )
    assert np.isnan(x[n:]).all()
    return case.full(x)


def by_priority(case: Case, scores: Any, single_task: bool = True) -> list[float]:
    n = len(case.ids)
    x = np.full(len(case.rows.cap), math.nan)
    every = np.zeros(len(x))
    every[:n] = scores
    schemes.allocate_by_priority(
        case.state.instance.discrete, single_task, n, every, case.rows, case.scratch, x
    )
    return case.full(x)


def states(instance: Instance, seed: int) -> Iterator[State]:
    """The states of an episode in which every slot is served by another rule."""
    choices = random.Random(seed)
    known = oracle.policies(instance)
    names = [n for n in known if n not in ("concave", "local-optimal", "deadline-aware")]
    seen: list[State] = []

    def follow(state: State) -> list[float]:
        seen.append(state)
        return known[choices.choice(names)](state)

    oracle.simulate(instance, follow)
    for state in seen:
        if oracle.active(instance, state.slot, state.y):
            yield state


def instances(count: int, seed: int, **options: Any) -> Iterator[State]:
    """The states of random instances, half of them adversarial."""
    rng = random.Random(seed)
    for number in range(count):
        instance = oracle.random_instance(
            rng,
            adversarial=number % 2 == 0,
            **{"max_jobs": rng.choice((2, 6, 10)), "resources": rng.choice((1, 2, 3)), **options},
        )
        # as in a workload, the order of ids is that of arrivals
        jobs = tuple(sorted(instance.jobs, key=lambda job: job.arrival))
        yield from states(instance._replace(jobs=jobs), number)


def same(found: list[float], expected: list[float], exactly: bool) -> None:
    assert np.allclose(found, expected, rtol=0.0, atol=0.0 if exactly else CLOSE), (found, expected)


@pytest.mark.parametrize("kinds", [KINDS, (LINEAR,), (POWER,), (LOG,)], ids="+".join)
@pytest.mark.parametrize(
    "rule", ["m-greedy", "primal-dual", "s-greedy", "equal-opp", "edf", "fifo", "m-greedy-skip"]
)
def test_discrete_rules_are_the_oracles(rule: str, kinds: tuple[str, ...]) -> None:
    for number, state in enumerate(instances(150, 1, discrete=True, kinds=kinds)):
        case = case_of(state, spare=number % 3)
        expected = oracle.DISCRETE[rule](state)
        if rule == "m-greedy-skip":
            x = np.zeros(len(case.rows.cap))
            schemes.m_greedy(True, True, len(case.ids), case.rows, case.scratch, x)
            same(case.full(x), expected, True)
        else:
            same(by_rule(rule, case), expected, True)


@pytest.mark.parametrize("kinds", [KINDS, (LINEAR,), (POWER,), (LOG,)], ids="+".join)
@pytest.mark.parametrize("rule", ["s-greedy", "equal-opp", "edf", "fifo"])
def test_continuous_rules_are_the_oracles(rule: str, kinds: tuple[str, ...]) -> None:
    for number, state in enumerate(instances(100, 2, kinds=kinds)):
        case = case_of(state, spare=number % 3)
        same(by_rule(rule, case), oracle.CONTINUOUS[rule](state), False)


@pytest.mark.parametrize("kinds", [KINDS, (LINEAR,), (POWER,), (LOG,)], ids="+".join)
def test_concave_is_the_best_of_a_slot(kinds: tuple[str, ...]) -> None:
    for number, state in enumerate(instances(40, 3, kinds=kinds)):
        case = case_of(state, spare=number % 3)
        found = by_rule("concave", case)
        oracle.check(state, found)
        expected = oracle.concave(state)
        best = oracle.gain(state, expected)
        assert abs(oracle.gain(state, found) - best) <= CLOSE * max(1.0, best)
        if LINEAR not in kinds:
            assert np.allclose(found, expected, rtol=0.0, atol=1e-5)
            if np.isfinite(oracle.slot_bound(state, list(case.scratch.price))):
                bound = oracle.slot_bound(state, list(case.scratch.price))
                assert bound - best <= CLOSE * max(1.0, best)
