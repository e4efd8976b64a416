"""The bounds: against the model, linear programs, integration, optimal schedules, and every policy."""

from __future__ import annotations

import heapq
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from schedgym.core.workload import Workload
from schedgym.papers.guan2022 import model
from schedgym.papers.guan2022.model import Instance, Job
from schedgym.problems.geo import bounds
from schedgym.problems.geo.metrics import metrics, validate
from schedgym.problems.geo.problem import GeoParameters
from schedgym.problems.geo.workload import generate, make_source, make_workload
from tests.geo.instances import random_instance, workload_of
from tests.geo.optima import optimum
from tests.geo.schedules import make_record
from tests.long import of_trials, trials


def random_workload(
    rng: np.random.Generator, jobs: int, tasks: int, sites: int, choices: int, groups: int
) -> Workload:
    """Ragged lists of up to ``choices`` sites, slots of very different numbers."""
    lists = np.full((groups, choices), -1)
    for row in lists:
        count = rng.integers(1, choices + 1)
        row[:count] = rng.permutation(sites)[:count]
    return Workload(
        "geo",
        {"arrival": np.sort(rng.uniform(0, jobs, jobs))},
        {"slots": rng.integers(1, 10 ** rng.integers(1, 4), sites)},
        {},
        tasks={
            "job": np.concatenate([np.arange(jobs), rng.integers(0, jobs, tasks - jobs)]),
            "duration": 0.4 * (1.0 + rng.pareto(1.3, tasks)),
            "sites": lists[rng.integers(0, groups, tasks)],
        },
    )


def test_bounds_equal_the_model() -> None:
    rng = random.Random(1)
    fluid = 0
    for x in trials(300):
        instance = random_instance(
            rng, adversarial=x % 2 == 0, window=x % 3 == 0, max_slots=rng.choice((1, 3)), max_tasks=9
        )
        order = list(range(sum(len(job.tasks) for job in instance.jobs)))
        rng.shuffle(order)
        workload = workload_of(instance, order)
        each = [float(model.job_bound(instance, i)) for i in range(len(instance.jobs))]
        np.testing.assert_allclose(bounds.job_bounds(workload), each, rtol=1e-12)
        known = {name: float(value) for name, value in model.lower_bounds(instance).items()}
        assert bounds.pooled_bound(workload) == pytest.approx(known["pooled_srpt"], rel=1e-12)
        mixed = bounds.mixed_bound(workload)
        assert mixed >= known["per_job"] * (1 - 1e-12)
        best = bounds.response_bound(workload)
        assert best == pytest.approx(max(known["pooled_srpt"], mixed), rel=1e-12)
        longest = [max(float(d) for d, _ in job.tasks) for job in instance.jobs]
        fluid += any(a > b * (1 + 1e-9) for a, b in zip(each, longest, strict=True))
    assert fluid > of_trials(50)


def test_mixed_by_hand() -> None:
    # n jobs of one task of 1 on one slot, all at 0: the mean completion is (n + 1) / 2, of one job alone 1
    for n in (1, 2, 5, 20):
        workload = workload_of(Instance((1,), [Job(3, ((1, (0,)),))] * n))
        assert bounds.mixed_bound(workload) == pytest.approx((n + 1) / 2, rel=1e-6)
    # two slots: mean busy time n / 4, and half a second after it; pooled alone says (n + 1) / 4
    workload = workload_of(Instance((2,), [Job(3, ((1, (0,)),))] * 20))
    assert bounds.pooled_bound(workload) == pytest.approx(21 / 4)
    assert 5.5 <= bounds.mixed_bound(workload) <= 5.5 + 1e-9
    # each site has its own jobs: one machine for both would be idle half of the time
    jobs = [Job(0, ((1, (0,)),))] * 20 + [Job(100, ((1, (1,)),))] * 20
    assert bounds.mixed_bound(workload_of(Instance((1, 1), jobs))) == pytest.approx(10.5, rel=1e-3)


def run_one_task_of_each_job(workload: Workload) -> tuple[list[float], list[int]]:
    """Return start and site of each task: each job runs one at a time, where the most slots are free."""
    arrival, tasks = workload.jobs["arrival"], workload.tasks
    free = [int(u) for u in workload.cluster["slots"]]
    left = [np.flatnonzero(tasks["job"] == i).tolist() for i in range(len(arrival))]
    start, site = [math.nan] * len(tasks["job"]), [-1] * len(tasks["job"])
    events = [(float(at), i, -1) for i, at in enumerate(arrival)]
    heapq.heapify(events)
    while events:
        now, due = events[0][0], []
        while events and events[0][0] == now:
            _, i, j = heapq.heappop(events)
            due.append(i)
            if j >= 0:
                free[j] += 1
        for i in due:
            if not left[i]:
                continue
            most, x, j = max((free[j], x, int(j)) for x in left[i] for j in tasks["sites"][x] if j >= 0)
            assert most > 0, "the schedule does not exist: a job would have to wait"
            left[i].remove(x)
            free[j] -= 1
            start[x], site[x] = now, j
            heapq.heappush(events, (now + float(tasks["duration"][x]), i, j))
    return start, site


@pytest.mark.parametrize("changes", [{}, {"jobs": 200, "slots": 20}, {"zipf": 0.0}, {"choices": 3}])
def test_fairness_has_no_bound_above_zero(changes: dict[str, float]) -> None:
    parameters = GeoParameters(objective="fairness", view="weights", **changes)  # type: ignore[arg-type]
    source = make_source(parameters)
    for episode in range(3):
        workload = generate(0, episode, source)
        record = make_record(workload, *run_one_task_of_each_job(workload))
        validate(record)
        assert metrics(record)["fairness"] == 0.0
        assert bounds.lower_bound(workload, parameters) is None


def test_no_schedule_is_better() -> None:
    rng = random.Random(3)
    stronger = exact = count = 0
    while count < len(trials(150)):
        instance = random_instance(
            rng, adversarial=count % 2 == 0, max_sites=2, max_jobs=4, max_tasks=3, max_slots=2
        )
        if sum(len(job.tasks) for job in instance.jobs) > 6:
            continue
        count += 1
        workload = workload_of(instance)
        best = optimum(instance)
        alone, pooled = bounds.job_bounds(workload).mean(), bounds.pooled_bound(workload)
        mixed, all = bounds.mixed_bound(workload), bounds.response_bound(workload)
        assert max(alone, pooled, mixed) == all <= best * (1 + 1e-9)
        stronger += mixed > max(alone, pooled) * 1.001
        exact += all > best * (1 - 1e-9)
    assert stronger > count // 15 and exact > count // 5


def fluid_time(work: np.ndarray, sites: np.ndarray, slots: np.ndarray) -> float:
    """The least C as a linear program: flows of every row to its sites, and C."""
    arcs = [(k, j) for k, row in enumerate(sites) for j in row if j >= 0]
    cost = np.zeros(len(arcs) + 1)
    cost[-1] = 1.0
    equal, most = np.zeros((len(work), len(arcs) + 1)), np.zeros((len(slots), len(arcs) + 1))
    for x, (k, j) in enumerate(arcs):
        equal[k, x] = most[j, x] = 1.0
    most[:, -1] = -slots
    result = linprog(cost, A_ub=most, b_ub=np.zeros(len(slots)), A_eq=equal, b_eq=work)
    assert result.status == 0
    return result.fun


@pytest.mark.parametrize("seed", range(12))
def test_fluid_time_of_many_groups(seed: int) -> None:
    rng = np.random.default_rng(seed)
    workload = random_workload(rng, jobs=2, tasks=150, sites=25, choices=4, groups=120)
    tasks = workload.tasks
    tasks["duration"][:] = rng.uniform(1.0, 2.0, 150)  # else the longest task decides
    workload.cluster["slots"][:] = rng.integers(1, 4, 25)
    fluid = 0
    for i, bound in enumerate(bounds.job_bounds(workload)):
        own = tasks["job"] == i
        least = fluid_time(tasks["duration"][own], tasks["sites"][own], workload.cluster["slots"])
        assert bound == pytest.approx(max(least, tasks["duration"][own].max()), rel=1e-7)
        fluid += least > tasks["duration"][own].max()
    assert fluid


def test_fluid_time_is_not_above_the_exact_one() -> None:
    """Slots and durations over many orders of magnitude, against exact fractions."""
    rng = random.Random(4)
    for _ in trials(200):
        slots = [10 ** rng.randint(0, 6) for _ in range(4)]
        pool = [tuple(rng.sample(range(4), rng.randint(1, 4))) for _ in range(5)]
        tasks = [(10.0 ** rng.uniform(-3, 3), rng.choice(pool)) for _ in range(8)]
        tasks += [(rng.uniform(1, 2) * 1e-3, rng.choice(pool)) for _ in range(300)]
        exact = model.job_bound(Instance(slots, [Job(0, tuple((Fraction(d), s) for d, s in tasks))]), 0)
        (bound,) = bounds.job_bounds(workload_of(Instance(slots, [Job(0, tuple(tasks))])))
        assert float(exact) * (1 - 1e-9) <= bound <= float(exact) * (1 + 1e-13)


def test_sets_of_sites_of_long_lists() -> None:
    """More sites in a list than fit into one key, in any order: a part for each set, with its tasks' work."""
    rng = np.random.default_rng(7)
    base = [np.sort(rng.permutation(50)[: 20 if k > 2 else 30]) for k in range(5)]
    picks = rng.integers(0, 5, 200)
    lists = [rng.permutation(base[k]).tolist() for k in picks]
    parts = bounds._split(make_workload([0], np.zeros(200), np.ones(200), lists, np.ones(50)))
    found = [tuple(row[row >= 0].tolist()) for row in parts.sites]
    assert sorted(found) == sorted(tuple(base[k].tolist()) for k in set(picks.tolist()))
    assert (np.diff((parts.sites >= 0).astype(int)) <= 0).all()
    work = dict(zip([found[k] for k in parts.part_set], parts.part_work.tolist(), strict=True))
    assert work == {tuple(base[k].tolist()): (picks == k).sum() for k in set(picks.tolist())}
