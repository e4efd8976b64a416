"""The exact model by itself: test vectors, hand examples, identities, linear programs, all placements."""

from __future__ import annotations

import dataclasses
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from schedgym.documents import read_yaml
from schedgym.papers.shi2017.model import one_job, online
from schedgym.papers.shi2017.model.one_job import SingleJob
from schedgym.papers.shi2017.model.online import Job, Workload
from tests.parallel_jct import linear_programs, random_jobs

INF = math.inf
UNIT = pytest.approx
#: what is compared of a run by hand
PARTS = ("launch", "finish", "charged", "consumed", "failures", "energy", "average_jct", "granted", "drawn")
PARTS += ("order", "vcpus", "placement", "caps")
#: the planners that use no random numbers
PLAIN = {"tapra": linear_programs.tapra, **one_job.PLANNERS}


def ones(tasks: int, servers: int) -> tuple[tuple[float, ...], ...]:
    return ((1.0,) * servers,) * tasks


# Test vectors of the specification -----------------------------------------------------------


def test_v1() -> None:
    groups = random_jobs.groups_from_matrix([[1, 1], [1, 0]])
    instance = SingleJob((6.0, 3.0), ones(2, 2), groups, (3.0, 1.0))
    got = one_job.optra(instance, (0, 1))
    assert (got.times, got.vcpus, got.jct) == ((6.0, 3.0), (1.0, 1.0), 6.0)
    assert linear_programs.least_time(instance, (0, 1)) == UNIT(6.0)


def fig2() -> SingleJob:
    return SingleJob(
        (100.0, 200.0, 400.0, 500.0),
        ones(4, 3),
        ((0,), (1,), (2,), (0, 1), (2,)),
        (35.0, 10.0, 30.0, 30.0, 30.0),
    )


def test_v2() -> None:
    path = one_job.local_search(fig2(), (0, 0, 0, 0))
    times = [one_job.optra(fig2(), placement).jct for placement in path]
    assert times == UNIT([40, 36.667, 30, 23.333, 20], abs=1e-3)
    assert path[-1] == (0, 2, 2, 0)
    assert one_job.best(fig2())[0] == 20  # schedule B of the figure


def test_v3() -> None:
    efficiency = ((0.5, 1.0, 0.8), (0.9, 0.5, 0.5))
    groups = ((0,), (1,), (2,))
    instance = SingleJob((8.0, 9.0), efficiency, groups, (1.0, 1.0, 1.0), 20.0)
    assert one_job.rec(instance, (0, 0)) == (1, 0)
    assert instance.energy((1, 0)) == 18
    tight = SingleJob((8.0, 9.0), efficiency, groups, (1.0, 1.0, 1.0), 17.9)
    assert one_job.rec(tight, (0, 0)) is None


def test_v4() -> None:
    assert online.residual_shares(10.0, (2.0, 3.0), (100.0, 300.0)) == [1.25, 3.75]


def vector_5() -> Workload:
    efficiency = ((1.0, 0.5),)
    jobs = (Job(0.0, (100.0,), efficiency), Job(2.0, (50.0,), efficiency))
    return Workload(jobs, (10.0, 10.0), one_job.fat_tree(2, 0.5, 0.5, 0.5))


@pytest.mark.parametrize("planner", PLAIN)
@pytest.mark.parametrize(("drc", "finish"), [(True, [12.5, 15.0]), (False, [20.0, 25.0])])
def test_v5(planner: str, drc: bool, finish: list[float]) -> None:
    for workload in (vector_5(), random_jobs.exact(vector_5())):
        got = online.Simulation(workload, "ontapra", PLAIN[planner], drc, delta_t=5, max_percent=0.1).run()
        assert got.finish == UNIT(finish)
        assert got.energy == 150
        assert got.launch == [0, 5]


# Fat trees -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("arity", "servers"), [(2, 2), (6, 54), (8, 128), (12, 432)])
def test_fat_tree(arity: int, servers: int) -> None:
    limits = one_job.fat_tree(arity)
    plain = one_job.fat_tree(arity, server_caps=False)
    assert len(plain) == 1 + arity + arity**2 // 2
    assert len(limits) == len(plain) + servers
    for kind in ("server", "rack", "pod", "dc"):  # each level is a partition of the servers
        members = [j for limit in limits if limit.kind == kind for j in limit.servers]
        assert members == list(range(servers))
    assert {limit.kind: limit.share for limit in limits} == {"server": 1, "rack": 0.3, "pod": 0.2, "dc": 0.2}


def test_groups_must_cover_the_servers() -> None:
    with pytest.raises(ValueError, match="every server"):
        SingleJob((1.0,), ones(1, 2), ((0,),), (1.0,))
    with pytest.raises(ValueError, match="arity"):
        one_job.fat_tree(3)


# Allocation for a placement ------------------------------------------------------------------


def test_allocations_keep_the_limits_and_equal_shares_are_not_better() -> None:
    rng = random.Random(3)
    for job in map(random_jobs.exact, random_jobs.random_instances(200, 4)):
        placement = one_job.random_placement(job, rng)
        best = one_job.optra(job, placement)
        for got in (best, one_job.equal_share(job, placement)):
            for k, limit in enumerate(job.limits):
                assert sum(job.weight(j, k) * c for j, c in zip(placement, got.vcpus, strict=True)) <= limit
            for i, j in enumerate(placement):
                assert got.times[i] == INF or got.vcpus[i] * got.times[i] == job.leq(i, j)
            assert got.jct == max(got.times) >= best.jct
            assert got.energy == job.energy(placement)
        assert best.jct == max(one_job.group_times(job, placement))


def test_exact_and_float_arithmetic_agree() -> None:
    for instance in random_jobs.random_instances(60, 5, feasible=True):
        # if the cap is the least energy, rounding decides what is within it
        instance = dataclasses.replace(instance, energy_cap=1.01 * instance.energy_cap)
        exact = random_jobs.exact(instance)
        for planner in (one_job.tapra_fast, one_job.min_min):
            a, b = planner(instance), planner(exact)
            assert (a is None) == (b is None)
            if a is not None and b is not None:
                assert isinstance(b.evaluation.jct, Fraction)
                assert a.evaluation.jct == UNIT(float(b.evaluation.jct))


def test_a_bound_of_zero_is_infinite() -> None:
    instance = SingleJob((2.0, 1.0), ones(2, 2), ((0,), (1,)), (0.0, 2.0))
    got = one_job.optra(instance, (0, 1))
    assert (got.times, got.vcpus) == ((INF, 0.5), (0, 2.0))
    assert linear_programs.least_time(instance, (0, 1)) == INF
    fast = one_job.tapra_fast(instance)
    assert fast is not None and fast.placement == (1, 1)
    assert fast.evaluation.jct == 1.5


# Bounds, planners and optima -----------------------------------------------------------------


def check_plan(instance: SingleJob, plan: one_job.Plan) -> None:
    assert plan.evaluation == one_job.optra(instance, plan.placement)
    assert plan.evaluation.jct < INF
    assert plan.evaluation.energy <= instance.energy_cap * (1 + 1e-12)


def test_bound_optimum_planners() -> None:
    solved = 0
    for n, instance in enumerate(random_jobs.random_instances(120, 6, tasks=4, servers=4)):
        optimum, _ = one_job.best(instance)
        bound = linear_programs.lower_bound(instance)
        assert bound <= optimum * (1 + 1e-6)
        plans = [planner(instance) for planner in PLAIN.values()]
        plans.append(one_job.mm_ga(instance, random.Random(n), size=6, generations=4))
        plans.append(one_job.gsa(instance, random.Random(n), size=6, generations=4))
        for made in plans:
            if made is not None:
                check_plan(instance, made)
                assert made.evaluation.jct >= optimum * (1 - 1e-9)
        if not instance.affords(instance.least_energy()):
            assert optimum == INF and plans == [None] * len(plans)
        elif 0 not in instance.limits:
            assert None not in plans
            min_min, genetic = plans[2], plans[3]
            assert min_min is not None and genetic is not None
            assert genetic.evaluation.jct <= min_min.evaluation.jct
            solved += 1
    assert solved > 20


def test_one_server_is_solved_exactly() -> None:
    for instance in random_jobs.random_instances(40, 7, servers=1, exhausted=0.0, feasible=True):
        fast = one_job.tapra_fast(instance)
        assert fast is not None
        assert fast.evaluation.jct == UNIT(linear_programs.lower_bound(instance), rel=1e-6)


def test_the_relaxation_is_solved_exactly() -> None:
    for job in map(
        random_jobs.exact,
        random_jobs.random_instances(60, 7, 3, 3, dyadic=True, exhausted=0.0, feasible=True),
    ):
        bound, parts = one_job.relaxation(job)
        assert float(bound) == UNIT(linear_programs.lower_bound(job), rel=1e-8)
        assert all(sum(row) == 1 and min(row) >= 0 for row in parts)
        work = [[job.leq(i, j) * x for j, x in enumerate(row)] for i, row in enumerate(parts)]
        assert sum(job.alpha(i) * sum(row) for i, row in enumerate(work)) <= job.energy_cap
        for row, limit in zip(job.matrix(), job.limits, strict=True):
            assert sum(a * x for own in work for a, x in zip(row, own, strict=True)) <= limit * bound


def test_min_min_by_hand() -> None:
    """Smallest completion time first; at equal ones the shorter own time, then the lower index."""
    instance = SingleJob((4.0, 2.0, 2.0), ones(3, 2), ((0,), (1,)), (1.0, 1.0))
    # task 1 on server 0 (2); task 2 on server 1 (2); task 0 on server 0 (6, tied with server 1)
    assert one_job.min_min_placement(instance) == (0, 0, 1)
    faster = SingleJob((8.0, 3.0, 2.0), ones(3, 3), ((0,), (1,), (2,)), (1.0, 1.0, 4.0))
    assert one_job.min_min_placement(faster) == (2, 2, 2)  # times .5, 1.25 and 3.25
    shares = SingleJob((4.0, 4.0), ((0.5, 1.0), (0.25, 1.0)), ((0,), (1,)), (2.0, 1.0))
    assert one_job.min_min_placement(shares) == (0, 1)  # 4 thrice: the lower task, then server


def test_tapra_starts_at_the_largest_part_of_the_lowest_server() -> None:
    instance = SingleJob((4.0, 4.0), ones(2, 2), ((0,), (1,)), (1.0, 1.0))
    plan = one_job.tapra_from(instance, ((0.5, 0.5), (0.5, 0.5)))
    assert plan is not None and plan.placement == (1, 0)  # both on server 0, then task 0 moves away
    assert linear_programs.lower_bound(instance) == UNIT(4.0)


def test_masks_of_placing_lead_to_placements_within_the_cap() -> None:
    rng = random.Random(13)
    for instance in random_jobs.random_instances(150, 14, feasible=True):
        placement: one_job.Placement = (-1,) * instance.tasks
        usable = all(bound > 0 for bound in instance.limits)
        for i in rng.sample(range(instance.tasks), instance.tasks):
            mask = one_job.place_mask(instance, placement, i)
            if usable:
                assert any(mask)
            if not any(mask):
                break
            placement = one_job.moved(placement, i, rng.choice([j for j, legal in enumerate(mask) if legal]))
        else:
            assert one_job.optra(instance, placement).jct < INF
            assert instance.affords(instance.energy(placement))


def test_equal_share_by_hand() -> None:
    got = one_job.equal_share(fig2(), (0, 0, 2, 2))
    assert got.vcpus == (15, 15, 15, 15)
    assert got.jct == UNIT(500 / 15)  # schedule A of the figure: 33.33


# Online: whole runs --------------------------------------------------------------------------


def test_runs_in_exact_numbers_agree() -> None:
    rng = random.Random(15)
    for n in range(24):
        workload = random_jobs.random_workload(rng, jobs=3, tasks=2, dyadic=True, fixed_ratio=True)
        scheduler = online.SCHEDULERS[n % 4]
        a = online.Simulation(workload, scheduler, delta_t=5, max_time=200).run()
        b = online.Simulation(random_jobs.exact(workload), scheduler, delta_t=5, max_time=200).run()
        assert [launch.job for launch in a.launches] == [launch.job for launch in b.launches]
        assert a.charged == UNIT([float(charged) for charged in b.charged])
        assert a.energy == b.energy


# Online: by hand -----------------------------------------------------------------------------


RUNS = read_yaml(Path(__file__).with_name("runs.yaml"))


@pytest.mark.parametrize("name", RUNS)
def test_runs_by_hand(name: str) -> None:
    case = RUNS[name]
    capacity = tuple(map(float, case.get("cpu", [8])))
    servers = tuple(range(len(capacity)))
    limits = [one_job.Limit("server", (j,), 1) for j in servers]
    limits += [one_job.Limit("rack", servers, case["share"])] if "share" in case else []
    jobs = tuple(
        Job(arrival, (float(load),), (tuple(*own) if own else (1.0,) * len(servers),))
        for arrival, load, *own in case["jobs"]
    )
    for given in case["runs"]:
        options, seen = dict(given), []
        usual, others = options.pop("draw", 0.5), options.pop("draws", {})

        def draw(job: int, number: int, seen: Any = seen, usual: Any = usual, others: Any = others) -> float:
            seen.append([job, number])
            return others.get(number, usual)

        workload = Workload(jobs, capacity, tuple(limits), options.pop("ratio", None))
        expected = {part: options.pop(part) for part in PARTS if part in options}
        got = online.Simulation(workload, draw=draw, **options).run()
        found = {part: getattr(got, part) for part in PARTS if hasattr(got, part)}
        found |= {"granted": sorted(got.granted), "drawn": seen}
        found["order"] = [launch.job for launch in got.launches]
        found["caps"] = [launch.instance.energy_cap for launch in got.launches]
        found["vcpus"] = [launch.plan.evaluation.vcpus[0] for launch in got.launches]
        found["placement"] = [launch.plan.placement[0] for launch in got.launches]
        assert {part: found[part] for part in expected} == expected


def test_extras_are_shared_by_work() -> None:
    limits = (one_job.Limit("server", (0,), 1), one_job.Limit("rack", (0,), 0.5))
    jobs = (Job(0, (16.0,), ((1.0,),)), Job(1, (8.0,), ((1.0,),)))
    got = online.Simulation(Workload(jobs, (8.0,), limits), "fcfs").run()
    # job 0: 8 vCPU until 1; then 4 and 2 base, 2 left over shared 16:8
    share = {share.job: share for share in got.intervals[1].running}
    assert share[0].base + share[0].extra == UNIT(4 + 4 / 3)


def test_online_bound() -> None:
    workload = vector_5()
    assert linear_programs.online_bound(workload, drc=True) <= (12.5 + 13) / 2
    # without DRC: 5 vCPU at most on either server, 10 vCPU-seconds more than the load may be used
    assert linear_programs.job_bound(workload, 0, drc=False) == UNIT(18.0)
    assert linear_programs.job_bound(workload, 0, drc=True) == UNIT(9.0)
    with pytest.raises(ValueError, match="no bound"):
        linear_programs.online_bound(
            Workload(workload.jobs, (10.0, 10.0), one_job.fat_tree(2, server_caps=False)), True
        )


def test_crumbs_of_capacity_are_none() -> None:
    """A job that takes a whole server leaves nothing, whatever its allocations add up to."""
    crumbs = 0
    for load in range(1, 40):
        row = ((1.0,),)
        jobs = (Job(0.0, (float(load), 7.0, 11.0), row * 3), Job(0.0, (1000.0,), row))
        got = online.Simulation(
            Workload(jobs, (9.7,), (one_job.Limit("server", (0,), 1.0),)), "slf", mar=False
        ).run()
        crumbs += sum(got.launches[0].plan.evaluation.vcpus) < 9.7
        assert got.launch == [0, 10]
    assert crumbs > 0  # without the rule the second job would have been launched on 1e-15 vCPU
