"""Shares by weights, and violations of sharing incentives, against the model on random states.

They are long: test_policies.py compares whole schedules, and needs no kernel of an algorithm by itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction as F
from typing import Any, NamedTuple

import numpy as np
import pytest

from schedgym.core.tables import make_tools
from schedgym.papers.guan2022 import model
from schedgym.papers.guan2022.model import Instance, Job, View
from schedgym.problems.geo.orders import Assigning, Cluster, Placing
from schedgym.problems.geo.rules import (
    CLOSED,
    FAIR_RULES,
    SHARING_TOLERANCE,
    FairNetwork,
    Sharing,
    fair,
    sharing_violations,
    weighted_fair,
    work_sizes,
)
from schedgym.solvers.balance import SiteLists, make_site_lists
from tests.long import long, of_trials, trials

CLOSE = 1e-9


class Work(NamedTuple):
    """What the kernels work in."""

    placing: Placing
    assigning: Assigning
    sharing: Sharing
    network: FairNetwork


class Case(NamedTuple):
    """A state as the model sees it and as the kernels do."""

    instance: Instance
    view: View
    lists: SiteLists
    slots: np.ndarray
    unfinished: np.ndarray

    @property
    def n(self) -> int:
        return len(self.view.active)

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.slots, *self.lists)

    def work(self) -> Work:
        groups, choices = self.lists.sites.shape
        return make_tools(Work, work_sizes(len(self.unfinished), groups, choices, self.slots.size))


def padded(groups: list[tuple[int, ...]]) -> np.ndarray:
    width = max(map(len, groups))
    return np.array([[*group, *[-1] * (width - len(group))] for group in groups])


def case_of(
    groups: list[tuple[int, ...]], slots: tuple[int, ...], unfinished: list[list[int]], spare: int = 0
) -> Case:
    """``spare`` rows behind the active ones are filled with what must not be read."""
    n, rows = len(unfinished), dict(enumerate(unfinished))
    instance = Instance(slots, [Job(i, ((1, groups[0]),)) for i in range(n)], groups)
    table = np.array([*unfinished, *[[99] * len(groups)] * spare], dtype=np.int32)
    lists = make_site_lists(padded(groups), len(slots))
    view = View(n, list(range(n)), [], rows, rows, {})
    return Case(instance, view, lists, np.array(slots, dtype=np.int64), table)


def draw_state(rng: random.Random, jobs: int = 7, sites: int = 4, tasks: int = 8, slots: int = 3) -> Case:
    """Any number of tasks that have not ended."""
    m = rng.randint(1, sites)
    u = tuple(rng.randint(1, slots) for _ in range(m))
    if rng.random() < 0.4:
        u = (u[0] * rng.randint(1, 3),) * m
    pool = {tuple(rng.sample(range(m), rng.randint(1, m))) for _ in range(rng.randint(1, 5))}
    if rng.random() < 0.3:
        length = rng.randint(1, m)
        pool = {tuple((s + x) % m for x in range(length)) for s in range(m)}
    groups, busy = sorted(pool), rng.choice((0.3, 0.6, 1.0))
    unfinished = [
        [rng.choice((1, tasks, rng.randint(1, tasks))) * (rng.random() < busy) for _ in groups]
        for _ in range(rng.randint(1, jobs))
    ]
    return case_of(groups, u, unfinished, spare=2)


def states(count: int, seed: int, **sizes: int) -> Iterator[Case]:
    rng = random.Random(seed)
    for _ in trials(count):
        yield draw_state(rng, **sizes)


# Shares ---------------------------------------------------------------------------------------


def run_fair(case: Case, rule: str, seconds: Any = None) -> np.ndarray:
    share = np.full((len(case.unfinished), case.lists.sites.size), 77.0)
    known = np.zeros((0, case.lists.sites.shape[0])) if seconds is None else seconds
    fair(FAIR_RULES.index(rule), case.n, case.unfinished, known, case.cluster, case.work(), share)
    assert (share[case.n :] == 77.0).all()
    return share[: case.n]


def run_weighted(case: Case, associated: bool, weights: Any) -> np.ndarray:
    share = np.full((len(case.unfinished), case.lists.sites.size), 77.0)
    numbers = np.asarray(weights)
    weighted_fair(associated, case.n, numbers, case.unfinished, case.cluster, case.work(), share)
    assert (share[case.n :] == 77.0).all()
    return share[: case.n]


def run_violations(case: Case, share: np.ndarray) -> int:
    return sharing_violations(case.n, case.unfinished, share, case.cluster, case.work())


def check_shares(case: Case, associated: bool, share: np.ndarray) -> np.ndarray:
    """Feasible, closed where they must be; the open shares [n, K, A]."""
    k, a = case.lists.sites.shape
    cube = share.reshape(case.n, k, a)
    if associated:
        assert (cube[:, :, 1:] == CLOSED).all()
        cube = np.maximum(cube, 0.0)
        assert (share.reshape(cube.shape)[:, :, 0] >= 0.0).all()
    else:
        assert (cube >= 0.0).all()
        assert (cube[:, case.lists.sites < 0] == 0.0).all()
    assert (cube.sum(axis=2) <= case.unfinished[: case.n] + CLOSE).all()
    used = np.zeros(case.slots.size)
    given = case.lists.sites >= 0
    np.add.at(used, case.lists.sites[given], cube[:, given].sum(axis=0))
    assert (used <= case.slots + CLOSE).all()
    return cube


def expected_aggregates(case: Case, base: str) -> tuple[model.Problem, list[F]]:
    problem = model.decision_problem(case.instance, case.view.active, case.view.unfinished, base)
    return problem, model.max_min(problem)


@long
@pytest.mark.parametrize("associated", [False, True])
def test_weighted_shares(associated: bool) -> None:
    rng = random.Random(5)
    differ = 0
    for case in states(300, 5):
        plain = run_fair(case, "amf" if associated else "gamf")
        for even in (np.ones(case.n), np.full(case.n, 0.25, dtype=np.float32), np.zeros(case.n)):
            assert run_weighted(case, associated, even).tolist() == plain.tolist()
        weights = [rng.randint(1, 8) for _ in range(case.n)]
        cube = check_shares(
            case, associated, run_weighted(case, associated, np.array(weights, dtype=np.float32) / 8)
        )
        problem, _ = expected_aggregates(case, "amf" if associated else "gamf")
        exact = model.max_min(problem, weights)
        assert np.abs(cube.sum(axis=(1, 2)) - [float(x) for x in exact]).max() < CLOSE
        differ += np.abs(cube - np.maximum(plain, 0.0).reshape(cube.shape)).max() > 1e-3
    assert differ > of_trials(50)


@long
def test_a_weight_of_zero_counts_as_the_least() -> None:
    """Jobs of no weight get what the others leave, in even parts."""
    case = case_of([(0, 1)], (4, 6), [[5], [9], [30]])
    share = run_weighted(case, False, np.array([1.0, 0.0, 0.0]))
    assert np.allclose(share.sum(axis=1), [5.0, 2.5, 2.5], rtol=0.0, atol=1e-7)
    share = run_weighted(case, False, np.array([0.5, 1e-30, 5e-10]))
    assert np.allclose(share.sum(axis=1), [5.0, 2.5, 2.5], rtol=0.0, atol=1e-7)


@long
def test_a_single_slot_and_no_tasks() -> None:
    case = case_of([(0,)], (1,), [[0], [0]])
    for rule in FAIR_RULES:
        assert run_fair(case, rule).tolist() == [[0.0], [0.0]]
    assert run_violations(case, np.zeros((2, 1))) == 0


# Sharing incentives ---------------------------------------------------------------------------


def model_violations(case: Case, share: np.ndarray) -> int:
    """By the rank function, over the entries that are open to each job."""
    k, a = case.lists.sites.shape
    part = [F(u, case.n) for u in case.instance.slots]
    count = 0
    for i in range(case.n):
        own = share[i].reshape(k, a)
        groups = [
            tuple(int(j) for j, x in zip(case.lists.sites[g], own[g], strict=True) if j >= 0 and x >= 0.0)
            for g in range(k)
        ]
        demand = [d if g else 0 for d, g in zip(case.view.unfinished[i], groups, strict=True)]
        most = model.rank_function(model.Problem([demand], part, groups), [0])
        count += F(float(np.maximum(own, 0.0).sum())) < most - F(SHARING_TOLERANCE)
    return count


@long
def test_sharing_violations_are_the_models() -> None:
    rng = np.random.default_rng(6)
    found = 0
    for x, case in enumerate(states(400, 6)):
        for rule in FAIR_RULES:
            share = run_fair(case, rule)
            count = run_violations(case, share)
            assert count == model_violations(case, share)
            if "sig" in rule:
                assert count == 0
            found += count
            share = share * rng.choice([0.5, 1.0, 1.0], size=share.shape)
            share[rng.random(share.shape) < 0.2] = CLOSED
            count = run_violations(case, share)
            assert count == model_violations(case, share), x
            found += count
    assert found > 900
