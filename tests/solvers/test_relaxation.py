"""SJS-Relax-LP: against the full program, and never above a plan."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from schedgym.errors import InvalidParameter
from schedgym.papers.shi2017.model import one_job
from schedgym.papers.shi2017.model.one_job import SingleJob
from schedgym.solvers import relaxation as solver
from schedgym.solvers.planning import PLANNERS, largest_parts, plan
from schedgym.solvers.relaxation import relax, relax_bound
from tests.long import of_trials, trials
from tests.parallel_jct import linear_programs, random_jobs
from tests.solvers.test_placement import Case, fat_tree_instance


def arguments(instance: SingleJob) -> tuple[Any, ...]:
    case = Case(instance)
    power = instance.power or None
    return instance.load, instance.efficiency, case.matrix, instance.limits, case.cap, power


def plan_of(instance: SingleJob, planner: str) -> Any:
    *own, power = arguments(instance)
    return plan(*own, planner, power=power)


def check_solution(instance: SingleJob, relaxed: solver.Relaxation) -> None:
    """The fractions are a solution of the program with this value."""
    fractions = relaxed.fractions
    assert (fractions >= 0).all()
    assert fractions.sum(axis=1) == pytest.approx(np.ones(instance.tasks), rel=1e-8)
    leq = np.array([[instance.leq(i, j) for j in range(instance.servers)] for i in range(instance.tasks)])
    work = (leq * fractions).sum(axis=0)
    alpha = np.array([float(instance.alpha(i)) for i in range(instance.tasks)])
    assert (alpha @ (leq * fractions)).sum() <= instance.energy_cap * (1 + 1e-8)
    for row, bound in zip(instance.matrix(), instance.limits, strict=True):
        assert np.array(row, dtype=float) @ work <= bound * relaxed.bound * (1 + 1e-8)


def test_the_optimum_is_that_of_the_full_program() -> None:
    infeasible = 0
    for instance in random_jobs.random_instances(len(trials(300)), 1, 7, 7, exhausted=0.2):
        relaxed = relax(*arguments(instance))
        expected = linear_programs.lower_bound(instance)
        if expected == math.inf:
            assert relaxed.bound == relaxed.certified == math.inf
            assert not relaxed.fractions.any()
            infeasible += 1
            continue
        assert relaxed.bound == pytest.approx(expected, rel=1e-7)
        assert relaxed.bound * (1 - 1e-8) <= relaxed.certified <= relaxed.bound
        check_solution(instance, relaxed)
    assert of_trials(50) < infeasible < 2 * len(trials(300)) // 3


def test_columns_are_added_until_none_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "FIRST_COLUMNS", 1)
    for instance in random_jobs.random_instances(len(trials(60)), 2, 7, 7, feasible=True, exhausted=0.0):
        assert relax(*arguments(instance)).bound == pytest.approx(
            linear_programs.lower_bound(instance), rel=1e-7
        )
    rng = random.Random(3)
    for cap in (1.0, 3.0, math.inf):  # of the least energy, and so on: the looser, the more columns matter
        instance = fat_tree_instance(rng, 12, 4)
        instance = SingleJob(
            instance.load,
            instance.efficiency,
            instance.groups,
            instance.limits,
            instance.least_energy() * cap,
        )
        relaxed = relax(*arguments(instance))
        assert relaxed.bound == pytest.approx(linear_programs.lower_bound(instance), rel=1e-7)
        assert relaxed.bound * (1 - 1e-8) <= relaxed.certified <= relaxed.bound


def test_bounds_are_never_above_plans() -> None:
    tight = 0
    for instance in random_jobs.random_instances(len(trials(120)), 4, 7, 7, exhausted=0.1):
        bound = relax_bound(*arguments(instance))
        for planner in PLANNERS:
            got = plan_of(instance, planner)
            if bound == math.inf:
                assert got is None
            elif got is not None:
                assert bound <= got.jct
                tight += got.jct <= bound * (1 + 1e-9)
        if instance.servers**instance.tasks < 500:
            assert bound <= one_job.best(instance)[0]
    assert tight > of_trials(20)


def test_tapra_goes_on_from_the_largest_parts() -> None:
    planned = 0
    for instance in random_jobs.random_instances(len(trials(120)), 5, 7, 7, exhausted=0.1):
        relaxed = relax(*arguments(instance))
        got = plan_of(instance, "tapra")
        if relaxed.bound == math.inf:
            assert got is None
            continue
        start = largest_parts(relaxed.fractions)
        expected = one_job.tapra_from(
            instance, [[float(j == s) for j in range(instance.servers)] for s in start]
        )
        assert (got is None) == (expected is None)
        if got is not None and expected is not None:
            assert tuple(got.placement) == expected.placement
            planned += 1
    assert planned > of_trials(60)
    assert largest_parts(np.array([[0.2, 0.4, 0.4], [0.5 - 1e-12, 0.5, 0.0]])).tolist() == [1, 0]


def test_paper_size_is_certified_and_tapra_is_within_the_claimed_distance() -> None:
    rng = random.Random(6)
    ratios = []
    for tasks, arity in ((40, 8), (100, 6), (40, 6), (30, 6), (60, 6)):
        instance = fat_tree_instance(rng, tasks, arity)
        relaxed = relax(*arguments(instance))
        check_solution(instance, relaxed)
        assert relaxed.bound * (1 - 1e-9) <= relaxed.certified <= relaxed.bound
        got = plan_of(instance, "tapra")
        assert got is not None
        assert got.energy <= instance.energy_cap * (1 + 2e-12)
        ratios.append(got.jct / relaxed.certified)
    assert min(ratios) >= 1
    assert float(np.median(ratios)) <= 1.6


def test_a_cap_at_the_least_energy_and_servers_without_resources() -> None:
    groups = ((0,), (1,), (2,), (0, 1, 2))
    instance = SingleJob((8.0, 9.0), ((0.5, 1.0, 0.8), (0.9, 0.5, 0.5)), groups, (1, 1, 1, 3), 18.0)
    relaxed = relax(*arguments(instance))
    assert relaxed.bound == pytest.approx(10.0)
    assert largest_parts(relaxed.fractions).tolist() == [1, 0]
    without = SingleJob(instance.load, instance.efficiency, groups, (1, 0, 1, 2), 20.0)
    assert relax(*arguments(without)).bound == pytest.approx(10.0)
    nothing = SingleJob(instance.load, instance.efficiency, groups, (1, 1, 1, 0))
    assert relax_bound(*arguments(nothing)) == math.inf


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="do not fit"):
        relax([1.0], [[1.0, 1.0]], [[1, 1]], [1.0, 1.0], 5.0)
