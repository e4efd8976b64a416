"""The bounds: against the model's linear program, all placements, and plans of drawn jobs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from schedgym.core.workload import Workload
from schedgym.papers.shi2017.model import one_job
from schedgym.problems.single_job import bounds
from schedgym.problems.single_job.problem import SingleJobParameters
from schedgym.problems.single_job.workload import generate, make_source, tables
from schedgym.solvers.planning import plan
from schedgym.solvers.relaxation import relax_bound
from tests.parallel_jct import random_jobs


def weaker_bounds(workload: Workload) -> tuple[float, float]:
    """The optimum of the relaxation (which has tests of its own), and the longest task alone."""
    own = tables(workload)
    job = own.load, own.efficiency, own.matrix, own.limits, float(own.energy_cap[0]), own.power
    return relax_bound(*job), float(bounds.alone_times(*job).min(axis=1).max())


def test_no_plan_is_better() -> None:
    stronger = exact = 0
    for instance in random_jobs.random_instances(150, 2, 4, 4, exhausted=0.0, feasible=True):
        optimum = float(one_job.best(instance)[0])
        workload = random_jobs.job_workload(instance)
        weaker, whole = max(weaker_bounds(workload)), bounds.whole_task_bound(workload)
        assert weaker * (1 - 1e-9) <= whole == bounds.lower_bound(workload) <= optimum * (1 + 1e-9)
        stronger += whole > weaker * 1.001
        exact += whole > optimum * (1 - 1e-9)
    assert stronger > 10 and exact > 50


def single(
    load: tuple[float, ...],
    limits: tuple[float, ...],
    efficiency: tuple[tuple[float, ...], ...] | None = None,
    cap: float = math.inf,
) -> one_job.SingleJob:
    """A job on servers that are limits of their own."""
    ones = ((1.0,) * len(limits),) * len(load)
    groups = tuple((j,) for j in range(len(limits)))
    return one_job.SingleJob(load, efficiency or ones, groups, limits, cap)


def test_by_hand() -> None:
    # in pieces 20 / 10; but a whole task takes 10 on the small server, so both are on the large one
    workload = random_jobs.job_workload(single((10.0, 10.0), (1.0, 9.0)))
    found = (*weaker_bounds(workload), bounds.whole_task_bound(workload))
    assert found == pytest.approx((2.0, 10 / 9, 20 / 9), rel=1e-7)
    # a task alone; without the cap its fastest server, with it the other one
    efficiency = ((0.5, 1.0),)
    for cap, task in ((20.0, 2.0), (19.0, 10.0)):
        workload = random_jobs.job_workload(single((10.0,), (10.0, 1.0), efficiency, cap))
        assert weaker_bounds(workload)[1] == pytest.approx(task, rel=1e-9)
    # what the cap leaves for one task is what the others do not need at least
    efficiency = ((0.5, 1.0), (0.5, 1.0))
    for cap, task in ((30.0, 2.0), (29.0, 10.0)):
        workload = random_jobs.job_workload(single((10.0, 10.0), (10.0, 1.0), efficiency, cap))
        assert weaker_bounds(workload)[1] == pytest.approx(task, rel=1e-9)


@pytest.mark.parametrize(("tasks", "arity"), [(8, 4), (30, 4), (40, 6)])
def test_plans_of_drawn_jobs(tasks: int, arity: int) -> None:
    source = make_source(SingleJobParameters(tasks=tasks, arity=arity))
    ratios = []
    for seed in range(8):
        workload = generate(np.uint64(seed), 0, source)
        own = tables(workload)
        bound = bounds.lower_bound(workload)
        for planner in ("tapra", "tapra-fast"):
            found = plan(own.load, own.efficiency, own.matrix, own.limits, float(own.energy_cap[0]), planner)
            if found is not None:
                assert found.jct >= bound * (1 - 1e-9)
                ratios.append(found.jct / bound)
    assert np.median(ratios) < 1.3
