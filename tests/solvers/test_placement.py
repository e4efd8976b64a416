"""Planning one job: against the exact model, which evaluates every candidate from scratch."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from schedgym.core.jit import pure_kernel
from schedgym.core.random import uniform
from schedgym.errors import InvalidParameter
from schedgym.papers.shi2017.model import one_job
from schedgym.papers.shi2017.model.one_job import SingleJob, random_placement
from schedgym.solvers import placement as solver
from schedgym.solvers.placement import Job, Membership, PlanScratch
from schedgym.solvers.planning import PLANNERS, Plan, Planner, plan
from tests.parallel_jct import linear_programs, random_jobs
from tests.tables import table

Floats = np.ndarray[Any, np.dtype[np.float64]]


@pure_kernel
def uniform_kernel(state):
    return uniform(state)


@pure_kernel
def search_kernel(job, placement, scratch):
    return solver.local_search(job, placement, scratch)


@pure_kernel
def reduce_kernel(job, equal, placement, scratch):
    return solver.reduce_energy(job, equal, placement, scratch)


@pure_kernel
def least_kernel(first, tasks, load, efficiency, power, placement):
    solver.most_efficient(first, tasks, efficiency, placement)
    return solver.least_energy(first, tasks, load, efficiency, power)


@pure_kernel
def step_kernel(job, placement, scratch):
    _, energy = solver.evaluate(job, placement, scratch)
    return solver.local_search_step(job, energy, placement, scratch)


@pure_kernel
def groups_kernel(members, limits, scratch, alive):
    for j in range(alive.shape[0]):
        alive[j] = solver.is_alive(j, members, limits)
    return solver.largest_capacity(members, limits, scratch)


class Case:
    """The arrays of a model's instance; the job's rows stand behind three rows of another one."""

    def __init__(self, instance: SingleJob) -> None:
        self.instance = instance
        self.n, self.m = instance.tasks, instance.servers
        self.first = 3
        self.load = np.array([7.0, 7.0, 7.0, *map(float, instance.load)])
        self.efficiency = np.ones((3 + self.n, self.m))
        self.efficiency[3:] = [[float(value) for value in row] for row in instance.efficiency]
        self.matrix = np.array(instance.matrix(), dtype=np.float64)
        self.members: Membership = solver.make_membership(self.matrix)
        self.limits = np.array([float(bound) for bound in instance.limits])
        self.cap = float(instance.energy_cap)
        self.power = np.array([5.0, 5.0, 5.0, *(float(instance.alpha(i)) for i in range(self.n))])
        self.scratch: PlanScratch = solver.make_scratch(self.n, self.m, len(self.limits))
        self.placement = np.zeros(self.n, dtype=np.int32)
        self.vcpu = np.zeros(self.n)

    @property
    def job(self) -> Job:
        own = (self.first, self.n, self.load, self.efficiency, self.members, self.limits)
        return Job(*own, self.cap, self.power)

    def put(self, placement: one_job.Placement) -> None:
        self.placement[:] = placement

    def got(self) -> one_job.Placement:
        return tuple(self.placement.tolist())

    def plan(self, planner: str, allocation: str = "optra", **options: Any) -> Plan | None:
        i = self.instance
        own = {"power": i.power} if i.power else {}
        made = Planner(planner, allocation)
        return plan(i.load, i.efficiency, self.matrix, i.limits, self.cap, made, **own, **options)


def cases(count: int, seed: int, tasks: int = 6, servers: int = 6, **options: Any) -> Iterator[Case]:
    return map(Case, random_jobs.random_instances(count, seed, tasks, servers, **options))


# Against the model ---------------------------------------------------------------------------


def test_evaluations_are_the_models() -> None:
    rng = random.Random(1)
    infinite = 0
    for case in cases(300, 11):
        placement = tuple(rng.choice((-1, *range(case.m))) for _ in range(case.n))
        if max(placement) < 0:
            continue
        case.put(placement)
        for equal, evaluate in ((False, one_job.optra), (True, one_job.equal_share)):
            expected = evaluate(case.instance, placement)
            jct, energy = solver.evaluate_plan(case.job, equal, case.placement, case.vcpu, case.scratch)
            assert energy == pytest.approx(expected.energy, rel=1e-14)
            assert jct == pytest.approx(expected.jct, rel=1e-14)
            assert case.vcpu == pytest.approx(expected.vcpus, rel=1e-14)
            if case.load[3] == int(case.load[3]):  # exact sums
                assert (jct, energy) == (expected.jct, expected.energy)
        infinite += expected.jct == math.inf
        least = least_kernel(*case.job[:4], case.power, case.placement)
        assert least == pytest.approx(case.instance.least_energy(), rel=1e-14)
        assert case.got() == one_job.most_efficient(case.instance)
        _, energy = solver.evaluate_plan(case.job, False, case.placement, case.vcpu, case.scratch)
        assert energy == least
    assert infinite > 20


def test_eq_16_is_the_optimum_of_a_linear_program() -> None:
    rng = random.Random(2)
    compared = 0
    for case in cases(300, 12, 8, 8, tree=False):
        placement = random_placement(case.instance, rng)
        case.put(placement)
        jct, _ = solver.evaluate_plan(case.job, False, case.placement, case.vcpu, case.scratch)
        best = linear_programs.least_time(case.instance, placement)
        if jct == math.inf:
            assert best > 1e12
            continue
        assert jct == pytest.approx(best, rel=1e-8)
        for group, bound in zip(case.matrix, case.limits, strict=True):
            assert group[case.placement] @ case.vcpu <= bound * (1 + 1e-12)
        compared += 1
    assert compared > 150


def test_incremental_search_is_the_plain_one() -> None:
    rng = random.Random(3)
    longest = 0
    for case in cases(400, 13, 8, 8):
        start = random_placement(case.instance, rng)
        path = one_job.local_search(case.instance, start)
        case.put(start)
        for after in path[1:]:
            move = step_kernel(case.job, case.placement, case.scratch)
            assert one_job.moved(case.got(), move // case.m, move % case.m) == after
            case.put(after)
        assert step_kernel(case.job, case.placement, case.scratch) == -1
        case.put(start)
        jct, energy = search_kernel(case.job, case.placement, case.scratch)
        assert case.got() == path[-1]
        expected = one_job.optra(case.instance, path[-1])
        assert (jct, energy) == pytest.approx((expected.jct, expected.energy), rel=1e-14)
        longest = max(longest, len(path))
    assert longest > 8


@pytest.mark.parametrize("equal", [False, True])
def test_reductions_are_the_models(equal: bool) -> None:
    rng = random.Random(4)
    evaluate = one_job.equal_share if equal else one_job.optra
    moved = failed = 0
    for case in cases(400, 14, 6, 7):
        start = random_placement(case.instance, rng)
        expected = one_job.rec(case.instance, start, evaluate)
        case.put(start)
        done = reduce_kernel(case.job, equal, case.placement, case.scratch)
        assert done == (expected is not None)
        if expected is not None:
            assert case.got() == expected
            moved += expected != start
        failed += not done
    assert moved > 60
    assert failed > 20


#: large instances with exact sums
TIES = {"count": 80, "seed": 5, "tasks": 16, "dyadic": True, "feasible": True}
EXHAUSTED = {"count": 500, "seed": 16, "tasks": 8, "servers": 7, "exhausted": 0.3}


@pytest.mark.parametrize(
    ("planner", "allocation", "given", "failures"),
    [
        ("min-min", "optra", {"count": 300, "seed": 15, "servers": 7}, (20, 200)),
        ("min-min", "equal-share", {"count": 300, "seed": 15, "servers": 7}, (20, 200)),
        ("min-min", "optra", TIES, (-1, 40)),
        ("tapra-fast", "optra", EXHAUSTED, (100, 400)),
    ],
)
def test_plans_are_the_models(
    planner: str, allocation: str, given: dict[str, Any], failures: tuple[int, int]
) -> None:
    evaluate = one_job.optra if allocation == "optra" else one_job.equal_share
    failed = 0
    for case in cases(**given):
        own = one_job.tapra_fast if planner == "tapra-fast" else partial(one_job.min_min, evaluate=evaluate)
        expected, got = own(case.instance), case.plan(planner, allocation=allocation)
        assert (got is None) == (expected is None)
        failed += expected is None
        if got is not None and expected is not None:
            assert tuple(got.placement) == expected.placement
            evaluation = evaluate(case.instance, expected.placement)
            assert (got.jct, got.energy) == pytest.approx((evaluation.jct, evaluation.energy), rel=1e-14)
            assert got.vcpu == pytest.approx(evaluation.vcpus, rel=1e-14)
    assert failures[0] < failed < failures[1]


def test_list_scheduling_is_the_models() -> None:
    kinds = {"planned": 0, "by tapra-fast": 0, "failed": 0}
    rng = np.random.default_rng(21)
    for case in cases(300, 21, 6, 7, exhausted=0.2):
        cpu = rng.choice([8.0, 16.0], case.m)
        work = rng.choice([0.0, 64.0, 500.0], case.m)
        expected = one_job.list_scheduling(case.instance, cpu.tolist(), work.tolist(), solver.WORK_SHARE)
        case.scratch.work[:] = work
        jct = solver.list_scheduling(case.job, cpu, case.placement, case.scratch)
        assert (jct == math.inf) == (expected is None)
        kind = "failed"
        if expected is not None:
            assert case.got() == expected.placement
            assert jct == pytest.approx(expected.evaluation.jct, rel=1e-14)
            kind = "by tapra-fast" if expected == one_job.tapra_fast(case.instance) else "planned"
        kinds[kind] += 1
    assert min(kinds.values()) > 20, kinds


# Properties -----------------------------------------------------------------------------------


def test_largest_capacity_bounds_what_a_job_can_have() -> None:
    from scipy.optimize import linprog

    exact = 0
    for case in cases(200, 20):
        got = groups_kernel(case.members, case.limits, case.scratch, np.zeros(case.m, dtype=np.bool_))
        result = linprog(-np.ones(case.m), A_ub=case.matrix, b_ub=case.limits, method="highs")
        assert -result.fun <= got * (1 + 1e-9) + 1e-12
        exact += abs(got + result.fun) <= 1e-9 * got
    assert exact > 100


def fat_tree_instance(rng: random.Random, tasks: int, arity: int) -> SingleJob:
    """The paper's offline draw."""
    limits = one_job.fat_tree(arity)
    servers = arity**3 // 4
    while True:
        load = tuple(3600 * (1 - rng.random()) for _ in range(tasks))
        efficiency = tuple(tuple(rng.uniform(0.1, 1) for _ in range(servers)) for _ in range(tasks))
        cap = rng.uniform(1, 1.1) * sum(load)
        if sum(x / max(row) for x, row in zip(load, efficiency, strict=True)) <= cap:
            break
    available = [10 * (1 - rng.random()) for _ in range(servers)]
    return one_job.job_on(limits, available, load, efficiency, cap)


def check_plan(case: Case, got: Plan) -> None:
    """Within the cap and every limit, and no task takes longer than the job."""
    leq = np.array([case.instance.leq(t, j) for t, j in enumerate(got.placement.tolist())], dtype=float)
    assert got.energy == pytest.approx(case.instance.energy(tuple(got.placement.tolist())), rel=1e-13)
    assert got.energy <= case.cap * (1 + 2e-12)
    assert (leq / got.vcpu).max() == pytest.approx(got.jct, rel=1e-12)
    for group, bound in zip(case.matrix, case.limits, strict=True):
        assert group[got.placement] @ got.vcpu <= bound * (1 + 1e-12)


class KernelNumbers(random.Random):
    """The random numbers of the kernels, by the methods of Python's generator."""

    def __init__(self, seed: int) -> None:
        self.state = np.uint64(seed)

    def random(self) -> float:
        state, u = uniform_kernel(self.state)
        self.state = np.uint64(state)
        return float(u)

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        low, high = (0, start) if stop is None else (start, stop)
        return low + int(self.random() * (high - low))

    def choice(self, seq: Any) -> Any:
        return seq[self.randrange(len(seq))]


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("name", ["mm-ga", "gsa"])
def test_genetic_planners_are_the_models(name: str, equal: bool) -> None:
    planners = {"mm-ga": one_job.mm_ga, "gsa": one_job.gsa}
    evaluate = one_job.equal_share if equal else one_job.optra
    planner = Planner(name, "equal-share" if equal else "optra", size=6, generations=12)
    planned = 0
    for seed, case in enumerate(cases(12, 23, 6, 5, exhausted=0.0)):
        expected = planners[name](case.instance, KernelNumbers(seed), 6, 12, evaluate)
        planner.prepare(case.matrix, case.n)
        planner.power = case.power
        jct = planner(*case.job[:4], case.limits, case.cap, seed)
        assert (jct < math.inf) == (expected is not None)
        if expected is not None:
            assert tuple(planner.placement.tolist()) == expected.placement
            planned += 1
    assert planned > 6


def test_genetic_planners_depend_on_the_seed_and_fail_with_the_cap() -> None:
    case = Case(fat_tree_instance(random.Random(10), 30, 4))
    case.cap *= 1.5
    planner = Planner("gsa", size=5, generations=2)
    planner.prepare(case.matrix, case.n)
    plans = set()
    for seed in (*range(4), 2**64 - 1, -1):
        jct = planner(*case.job[:4], case.limits, case.cap, seed)
        plans.add((jct, *planner.placement.tolist()))
    assert len(plans) == 5
    case.cap = case.instance.least_energy() * 0.999
    for name in PLANNERS:
        assert case.plan(name) is None
    none = 0
    for small in cases(60, 21, 4, 4, exhausted=0.5):
        for name in ("mm-ga", "gsa"):
            optimum, _ = one_job.best(small.instance)
            got = small.plan(name)
            if optimum == math.inf:
                assert got is None
                none += 1
            elif got is not None:
                check_plan(small, got)
                assert got.jct >= optimum * (1 - 1e-12)
    assert none > 10


def test_best_of_all_placements_is_found_by_a_long_enough_search() -> None:
    found = total = 0
    for case in cases(40, 22, 4, 4, exhausted=0.0):
        optimum, _ = one_job.best(case.instance)
        if optimum == math.inf:
            continue
        got = case.plan("gsa")
        total += 1
        found += got is not None and got.jct <= optimum * (1 + 1e-12)
    assert total > 20
    assert found >= 0.9 * total


def test_paper_size_plans_are_those_of_the_model() -> None:
    rng = random.Random(23)
    for tasks, arity in ((30, 6), (40, 4)):
        case = Case(fat_tree_instance(rng, tasks, arity))
        expected = one_job.tapra_fast(case.instance)
        got = case.plan("tapra-fast")
        assert got is not None and expected is not None
        assert tuple(got.placement) == expected.placement
        check_plan(case, got)


def test_a_search_ends_when_loads_are_far_apart() -> None:
    rng = random.Random(24)
    for _ in range(300):
        n, m = rng.randint(2, 8), rng.randint(2, 5)
        load = tuple(10.0 ** rng.uniform(-12, 12) for _ in range(n))
        efficiency = tuple(tuple(10.0 ** rng.uniform(-8, 0) for _ in range(m)) for _ in range(n))
        groups = random_jobs.random_groups(rng, m)
        bounds = tuple(10.0 ** rng.uniform(-6, 6) for _ in groups)
        got = Case(SingleJob(load, efficiency, groups, bounds)).plan("tapra-fast")
        assert got is not None and got.jct < math.inf


# Arguments ------------------------------------------------------------------------------------


def test_membership_lists_both_sides() -> None:
    members = solver.make_membership([[1, 0.5, 0], [0, 2, 3], [0, 0, 0]])
    assert members.server_weight.tolist() == [1, 0.5, 2, 3]
    assert members.group_weight.tolist() == [1, 0.5, 2, 3]
    assert members.server_start.tolist() == [0, 1, 3, 4]
    assert members.server_group.tolist() == [0, 0, 1, 1]
    assert members.group_start.tolist() == [0, 2, 4, 4]
    assert members.group_server.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(("matrix", "message"), table(__file__, "test_bad_groups_are_refused"))
def test_bad_groups_are_refused(matrix: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        solver.make_membership(matrix)


@pytest.mark.parametrize(("arguments", "options", "message"), table(__file__, "test_bad_options_are_refused"))
def test_bad_options_are_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Planner(*arguments, **options)
