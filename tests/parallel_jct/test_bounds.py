"""The bounds: against slow definitions, linear programs, integration, and schedules of every kind."""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from schedgym.core.workload import Workload
from schedgym.papers.shi2017.model import one_job, online
from schedgym.problems.parallel_jct import bounds
from schedgym.problems.parallel_jct.problem import ParallelJCTParameters
from schedgym.problems.parallel_jct.workload import generate, make_source
from tests.long import long, weekly
from tests.parallel_jct import linear_programs, random_jobs
from tests.parallel_jct.schedules import draw, simulations, workload_of

BOUNDS = (bounds.pooled_bound, bounds.mixed_bound, bounds.lower_bound)


def given(drc: bool = True, max_time: float = 1e5) -> ParallelJCTParameters:
    return ParallelJCTParameters(drc=drc, max_time=max_time)


def random_planner(rng: random.Random) -> one_job.Planner:
    """Any placement within the cap, by Eq. 16 or with less vCPU for some tasks."""

    def planner(instance: one_job.SingleJob) -> one_job.Plan | None:
        start = rng.choice((one_job.most_efficient(instance), one_job.random_placement(instance, rng)))
        placement = one_job.rec(instance, start)
        if placement is None:
            return None
        if rng.random() < 0.5:
            placement = one_job.local_search(instance, placement)[-1]
        best = one_job.optra(instance, placement)
        if best.jct == math.inf or rng.random() < 0.1:
            return None
        share = [rng.choice((1.0, 1.0, 0.3, 0.01)) for _ in placement]
        vcpus = tuple(c * x for c, x in zip(best.vcpus, share, strict=True))
        times = tuple(t / x for t, x in zip(best.times, share, strict=True))
        return one_job.Plan(placement, one_job.Evaluation(times, vcpus, max(times), best.energy))

    return planner


# Jobs alone -----------------------------------------------------------------------------------


@pytest.mark.parametrize("drc", [True, False])
def test_job_bounds_equal_slow_ones(drc: bool) -> None:
    rng = random.Random(1)
    longer = 0
    for x in range(60):
        own = {"weighted": x % 5 < 2, "power": x % 7 < 3}
        instance = random_jobs.random_workload(rng, dyadic=x % 2 == 0, fixed_ratio=x % 3 == 0, **own)
        computed = bounds.job_bounds(workload_of(instance), given(drc))
        for i, job in enumerate(instance.jobs):
            relaxed = linear_programs.job_bound(instance, i, drc)
            ratio = 1.1 if instance.energy_cap_ratio is None else instance.energy_cap_ratio
            cap = max(ratio * job.ideal_energy, job.least_energy)
            room = list(instance.capacity)
            if not drc:
                now = one_job.limits_now(instance.limits, instance.capacity)
                room = [
                    min(
                        b / limit.weight(j)
                        for limit, b in zip(instance.limits, now, strict=True)
                        if j in limit.servers
                    )
                    for j in range(len(room))
                ]
            longest = 0.0
            for load, row, alpha in zip(job.load, job.efficiency, job.alphas, strict=True):
                rest = job.least_energy - alpha * load / max(row)
                times = [
                    load / e / c
                    for e, c in zip(row, room, strict=True)
                    if alpha * load / e + rest <= cap * (1 + 1e-9)
                ]
                longest = max(longest, min(times))
            assert computed[i] == pytest.approx(max(relaxed, longest), rel=1e-6)
            longer += longest > relaxed * 1.001
    assert longer > 30


def test_not_all_jobs_need_a_linear_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left out where a solution shows that it says no more, and beyond a number of jobs."""
    workload, parameters = drawn(jobs=40), given(False)
    times = bounds.job_bounds(workload, parameters)
    calls = []
    program = bounds.relax_bound
    monkeypatch.setattr(bounds, "relax_bound", lambda *args: calls.append(args) or program(*args))
    assert bounds.job_bounds(workload, parameters).tolist() == times.tolist()
    assert 0 < len(calls) < 40
    monkeypatch.setattr(bounds, "_spread", lambda *args: math.inf)
    assert bounds.job_bounds(workload, parameters) == pytest.approx(times, rel=1e-9)
    monkeypatch.setattr(bounds, "MOST_PROGRAMS", 3)
    fewer = bounds.job_bounds(workload, parameters)
    assert (fewer <= times).all() and (fewer < times).any()


@long
def test_capacities_that_are_no_limits() -> None:
    rng = random.Random(3)
    for x in range(60):
        instance = random_jobs.random_workload(rng, dyadic=x % 2 == 0, weighted=x % 3 == 0, power=x % 5 == 0)
        limits = instance.limits[len(instance.capacity) :]
        instance = dataclasses.replace(instance, limits=limits)
        outcome = online.Simulation(
            instance, planner=random_planner(rng), drc=x % 4 < 2, mar=False, draw=draw, delta_t=1.0
        ).run()
        bound = bounds.lower_bound(workload_of(instance), given(x % 4 < 2))
        assert bound <= outcome.average_jct * (1 + 1e-9)


# All jobs together ----------------------------------------------------------------------------


def test_mixed_by_hand() -> None:
    """n jobs of one task of 10 s on a server of 10: the mean completion is (n + 1) / 2."""
    for n in (1, 2, 5, 20):
        jobs = tuple(online.Job(3.0, (10.0,), ((1.0,),)) for _ in range(n))
        workload = workload_of(online.Workload(jobs, (10.0,), (one_job.Limit("server", (0,), 1),) * 2))
        for bound in BOUNDS:
            assert bound(workload) == pytest.approx((n + 1) / 2, rel=1e-4)
        # cut off in the middle: all n jobs wait until they are served, or for the end
        cut = n / 2
        expected = sum(min(i + 1, cut) for i in range(n)) / n
        assert bounds.pooled_bound(workload, given(max_time=3.0 + cut)) == pytest.approx(expected)
        assert bounds.mixed_bound(workload, given(max_time=3.0 + cut)) <= expected * (1 + 1e-9)
    # two servers: half a second is the mean time at which a job of one task is served, before its end
    jobs = tuple(online.Job(3.0, (10.0,), ((1.0, 1.0),)) for _ in range(20))
    workload = workload_of(online.Workload(jobs, (10.0, 10.0), one_job.fat_tree(2, 1, 1, 1)))
    assert bounds.pooled_bound(workload) == pytest.approx(21 / 4)
    assert 5.5 * (1 - 1e-5) <= bounds.mixed_bound(workload) <= 5.5 * (1 + 1e-9)  # the end is far off
    # without DRC a job has at most half of them
    workload = workload_of(online.Workload(jobs, (10.0, 10.0), one_job.fat_tree(2, 1, 1, 0.25)))
    assert 6.0 * (1 - 1e-5) <= bounds.mixed_bound(workload, given(False)) <= 6.0 * (1 + 1e-9)


@long
@weekly
def test_no_run_is_better() -> None:
    tight = 0
    rng = random.Random(4)
    for max_time in (1e5, 1e5, 4.0, 12.0, 40.0):
        for x, (instance, outcome) in enumerate(simulations(40, 4, max_time), 4):
            workload, parameters = workload_of(instance), given(x % 4 < 2, max_time)
            results = [bound(workload, parameters) for bound in BOUNDS]
            alone = bounds.job_bounds(workload, parameters).mean()
            cost = float(outcome.average_jct)
            assert max(alone, *results) <= cost * (1 + 1e-9) + 1e-9
            assert results[-1] == pytest.approx(max(alone, *results), rel=1e-7, abs=1e-7)
            again = online.Simulation(
                instance,
                rng.choice(online.SCHEDULERS),
                random_planner(rng),
                drc=x % 4 < 2,
                delta_t=rng.choice((0.5, 2.0)),
                max_percent=rng.choice((0.1, 0.5, 0.9)),
                draw=draw,
                max_time=max_time,
            ).run()
            assert results[-1] <= float(again.average_jct) * (1 + 1e-9) + 1e-9
            tight += results[-1] > 0.999 * min(cost, float(again.average_jct)) > 0
    assert tight > 15


def test_no_schedule_of_equal_jobs_is_better() -> None:
    """The best of many random runs of a small loaded data centre comes close to the bound."""
    rng = random.Random(6)
    closest = []
    for _ in range(8):
        jobs = tuple(
            online.Job(0.0, (float(rng.randint(20, 60)),), ((1.0, rng.choice((0.5, 1.0))),)) for _ in range(4)
        )
        instance = online.Workload(jobs, (10.0, 10.0), one_job.fat_tree(2, 1, 1, 1), 1.0)
        bound = bounds.lower_bound(workload_of(instance))
        costs = [
            float(
                online.Simulation(
                    instance, planner=random_planner(rng), mar=True, max_percent=p, delta_t=0.25
                )
                .run()
                .average_jct
            )
            for p in (0.1, 0.4, 0.6, 0.9)
            for _ in range(3)
        ]
        assert bound <= min(costs) * (1 + 1e-9)
        closest.append(min(costs) / bound)
    assert min(closest) < 1.1


# Parts ----------------------------------------------------------------------------------------


def test_prices_rise_to_those_of_the_linear_program() -> None:
    """The sum of least prices is the dual of the least time in which pieces of all tasks fit."""
    rng = np.random.default_rng(7)
    gained = 0
    for _ in range(20):
        tasks, servers = int(rng.integers(5, 60)), int(rng.integers(2, 8))
        load, cpu = rng.uniform(1, 10, tasks), rng.uniform(0.5, 10, servers)
        efficiency = rng.uniform(0.1, 1, (tasks, servers))
        efficiency[:, 0] = 1.0
        ceiling = load / efficiency.max(axis=1) * rng.uniform(1, 4, tasks)
        budget, least = cpu / cpu.sum(), np.empty(tasks)
        uniform = float((load / efficiency.max(axis=1)).sum() / cpu.sum())
        trial, used = np.empty((2, servers))
        bounds._raise_prices(load, efficiency, ceiling, cpu, 300, budget, trial, used, least)
        leq = np.where(load[:, None] / efficiency <= ceiling[:, None], load[:, None] / efficiency, np.nan)
        assert budget.sum() == pytest.approx(1.0)
        assert least == pytest.approx(np.nanmin(leq * (budget / cpu), axis=1), rel=1e-12)
        pairs = np.argwhere(~np.isnan(leq))
        inside, room = np.zeros((tasks, len(pairs) + 1)), np.zeros((servers, len(pairs) + 1))
        for y, (x, j) in enumerate(pairs):
            inside[x, y], room[j, y] = 1.0, leq[x, j]
        room[:, -1] = -cpu
        cost = np.append(np.zeros(len(pairs)), 1.0)
        solved = linprog(cost, A_ub=room, b_ub=np.zeros(servers), A_eq=inside, b_eq=np.ones(tasks))
        assert uniform * (1 - 1e-12) <= least.sum() <= solved.fun * (1 + 1e-9)
        assert least.sum() > 0.97 * solved.fun
        gained += solved.fun > 1.05 * uniform
    assert gained > 10


# Drawn workloads ------------------------------------------------------------------------------


def drawn(**values: Any) -> Workload:
    return generate(np.uint64(5), 0, make_source(ParallelJCTParameters(**values)))


@pytest.mark.parametrize("reading", ["x70", "scale-half", "shape-half"])
def test_drawn_workloads(reading: str) -> None:
    """The mixture is the strongest where both of its parts count; a loaded data centre is far from empty."""
    workload = drawn(jobs=60, reading=reading)
    alone, pooled = bounds.job_bounds(workload).mean(), bounds.pooled_bound(workload)
    mixed, best = bounds.mixed_bound(workload), bounds.lower_bound(workload)
    assert best == pytest.approx(max(alone, pooled, mixed), rel=1e-6)
    assert mixed >= max(alone, 0.95 * pooled)
    if reading == "x70":
        assert mixed > 1.05 * pooled > 2.0 * alone
    assert bounds.lower_bound(workload, given(False)) > best
    cut = [bounds.lower_bound(workload, given(max_time=t)) for t in (50.0, 200.0, 1000.0, 1e5)]
    assert cut == sorted(cut) and cut[0] < cut[-1] == best
