"""The exact model: vectors of the thesis, hand examples, linear programs, brute force, bounds."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from schedgym.documents import read_yaml
from schedgym.papers.guan2022 import model
from schedgym.papers.guan2022.batches import pad
from schedgym.papers.guan2022.linear_programs import linear_completion_shares, linear_max_min
from schedgym.papers.guan2022.model import Instance, Job, Problem, View, make_instance, sharing_problem
from tests.geo.instances import random_instance
from tests.long import trials
from tests.tables import table

SINGLE_2 = [(0,), (1,)]


TABLE_3_1 = make_instance((1, 1, 1), [(0, [(8, (0, 1))]), (1, [(15, (0, 1, 2))]), (2, [(6, (1, 2))])])


def instances(count: int, seed: int, **options: object) -> Iterator[Instance]:
    """Two in three adversarial, half of the others with windows of sites."""
    rng = random.Random(seed)
    for x in range(count):
        yield random_instance(rng, adversarial=x % 3 != 2, window=x % 2 == 0, **options)  # type: ignore[arg-type]


def matrix(shares: model.Shares, n: int, m: int) -> list[list[F]]:
    rows = [[F(0)] * m for _ in range(n)]
    for (i, _, j), share in shares.items():
        rows[i][j] += share
    return rows


# Test vectors of the specification -----------------------------------------------------------


@pytest.mark.parametrize(("policy", "expected"), table(__file__, "test_v1_table_3_1"))
def test_v1_table_3_1(policy: str, expected: list[int]) -> None:
    for options in ({}, {"literal": True, "together": True}):
        outcome = model.simulate_assign(TABLE_3_1, policy, **options)
        assert [outcome.completion[i] - i for i in range(3)] == expected
        assert model.metrics_assign(TABLE_3_1, outcome)["mean_response"] == F(sum(expected), 3)


def test_v2_amf_and_sig_amf() -> None:
    amf = sharing_problem([[2, 2], [0, 3]], (4, 4), SINGLE_2, "amf")
    assert matrix(model.allocation(amf, model.max_min(amf)), 2, 2) == [[2, 1], [0, 3]]
    sig = sharing_problem([[2, 2], [0, 3]], (4, 4), SINGLE_2, "sig-amf")
    assert matrix(model.allocation(sig, model.max_min(sig)), 2, 2) == [[2, 2], [0, 2]]


def test_v3_gamf() -> None:
    demand = [[4, 0, 0], [0, 4, 0], [0, 0, 1]]
    assert model.aggregates_of(demand, (3, 2), [(0,), (0, 1), (1,)], "gamf") == [2, 2, 1]


def test_v4_sig_gamf() -> None:
    problem = sharing_problem([[6, 7], [0, 5], [0, 3]], (2, 8), SINGLE_2, "sig-gamf")
    assert problem.floors == [F(10, 3), F(8, 3), F(8, 3)]
    assert model.max_min(problem) == [F(7, 2), F(7, 2), 3]
    assert np.allclose(lp_max_min(problem), [3.5, 3.5, 3])


def test_v5_algorithm_6() -> None:
    problem = Problem([[6, 3], [3, 6]], (6, 6), SINGLE_2)
    reached, shares = model.optimise(problem, model.max_min(problem), [0, 1])
    assert reached == [F(2, 3), F(2, 3)]
    assert matrix(shares, 2, 2) == [[4, 2], [2, 4]]


@pytest.mark.parametrize("fine", [False, True])
def test_v5_balance(fine: bool) -> None:
    assert model.balance([1], [(0, 1)], (1, 1), (100, 0), fine) == (1, {(0, 1): 1})


def test_v5_water_filling() -> None:
    assert model.water_fill([2, 4, 10, 40], 20) == [2, 4, 7, 7]
    assert model.max_min(Problem([[2], [4], [10], [40]], (20,), [(0,)])) == [2, 4, 7, 7]


# Runs ----------------------------------------------------------------------------------------


RUNS = read_yaml(Path(__file__).with_name("runs.yaml"))
PARTS = ("completion", "start", "clocks", "started", "order", "counts", "waiting", "unfinished", "decided")


def run_of(instance: Instance, options: dict[str, Any]) -> model.Outcome:
    if "assign" in options:
        return model.simulate_assign(instance, options.pop("assign"), **options)
    shares = {tuple(place): F(share) for *place, share in options.pop("shares", ())}
    rule = options.pop("fair", lambda view: shares if view.clock == 0 else {})
    return model.simulate_fair(instance, rule, **options)


@pytest.mark.parametrize("name", RUNS)
def test_runs_by_hand(name: str) -> None:
    case = RUNS[name]
    groups = [tuple(group) for group in case["groups"]] if "groups" in case else None
    rows = [
        (at, tuple((x, tuple(sites)) for x, sites in own)) for at, own in case.get("tasks", case.get("jobs"))
    ]
    if "tasks" in case:
        instance = Instance(case["slots"], [Job(*row) for row in rows], groups)
    else:
        instance = make_instance(case["slots"], rows, case.get("duration", 1), groups)
    for given in case["runs"]:
        options = dict(given)
        expected = {part: options.pop(part) for part in PARTS if part in options}
        number = options.pop("decision", 0)
        outcome = run_of(instance, options)
        view, order, counts, shares = outcome.decisions[number]
        found = {"completion": outcome.completion, "start": outcome.start, "order": order}
        found["clocks"] = [decision.view.clock for decision in outcome.decisions]
        found["started"] = [
            [i, instance.groups.index(job.tasks[x][1])]
            for i, (job, row) in enumerate(zip(instance.jobs, outcome.start, strict=True))
            for x, start in enumerate(row)
            if start == 0
        ]
        found |= {"waiting": list(view.waiting.values()), "unfinished": list(view.unfinished.values())}
        found["counts"] = [
            sorted([*place, x] for place, x in own.items()) for _, own in sorted(counts.items())
        ]
        found["decided"] = sorted([*place, x] for place, x in shares.items())
        assert {part: found[part] for part in expected} == expected


# Assignment ----------------------------------------------------------------------------------


def test_flow_ties() -> None:
    # the pass fills site 0 with group 0; an augmenting path moves it to make room for group 1
    assert model.balance([2, 2], [(1, 0), (0,)], (1, 1), (0, 0)) == (2, {(0, 1): 2, (1, 0): 2})
    # by site index, not by the order of the list
    assert model.balance([1], [(1, 0)], (1, 1), (0, 0)) == (1, {(0, 0): 1})
    # first sites first, not evenly
    assert model.balance([10], [(0, 1, 2)], (3, 3, 3), (0, 0, 0)) == (2, {(0, 0): 6, (0, 1): 4})
    even = F(4, 3), {(0, 0): 4, (0, 1): 4, (0, 2): 2}
    assert model.balance([10], [(0, 1, 2)], (3, 3, 3), (0, 0, 0), fine=True) == even


def test_balance_is_least() -> None:
    """C works iff for every set of sites the tasks confined to it fit into it."""
    rng = random.Random(5)
    for _ in trials(300):
        m = rng.randint(1, 4)
        slots = [rng.choice((1, 2, 2, 4)) for _ in range(m)]
        load = [rng.randint(0, 9) for _ in range(m)]
        sites = [tuple(rng.sample(range(m), rng.randint(1, m))) for _ in range(rng.randint(1, 4))]
        tasks = [rng.randint(0, 6) for _ in sites]
        tasks[0] += 1
        for fine in (False, True):
            level, counts = model.balance(tasks, sites, slots, load, fine)
            step = F(1, math.gcd(*slots)) if fine else F(1)
            assert (level / step).denominator == 1
            assert all(sum(x for (a, _), x in counts.items() if a == k) == c for k, c in enumerate(tasks))
            assert all(j in sites[k] for k, j in counts)
            q = model.per_site(counts, m)
            assert all(x <= max(u * level - r, 0) for x, u, r in zip(q, slots, load, strict=True))

            def fits(c: F, slots=slots, load=load, tasks=tasks, sites=sites, m=m) -> bool:
                for chosen in itertools.product((False, True), repeat=m):
                    inside = {j for j in range(m) if chosen[j]}
                    confined = sum(x for x, s in zip(tasks, sites, strict=True) if inside.issuperset(s))
                    if confined > sum(max(slots[j] * c - load[j], 0) for j in inside):
                        return False
                return True

            assert fits(level)
            assert not fits(level - step)


def test_greedy_by_hand() -> None:
    # group 1 is larger and goes first; (load + 1) / u: 1/1, 1/2 -> site 1; then 1, 1 -> site 0; then site 1
    assert model.greedy([1, 3], [(0,), (0, 1)], (1, 2), (0, 0)) == {(1, 1): 2, (1, 0): 1, (0, 0): 1}
    # one task on empty sites: 1/1 against 1/2
    assert model.greedy([1], [(0, 1)], (1, 2), (0, 0)) == {(0, 1): 1}
    assert model.greedy([1], [(1, 0)], (1, 1), (0, 0)) == {(0, 0): 1}
    # an erratum: the printed formula fills as high, but elsewhere
    assert model.greedy([2], [(0, 1)], (1, 1), (0, 1)) == {(0, 0): 2}
    assert model.greedy([2], [(0, 1)], (1, 1), (0, 1), literal=True) == {(0, 0): 1, (0, 1): 1}


def test_swag_ignores_sites_without_own_tasks() -> None:
    loads = {0: {(1, 1): 1}, 1: {(0, 0): 3}, 2: {(1, 1): 3}, 3: {(0, 0): 2}}
    plan = model.swag_plan(range(4), lambda i: -i, (1, 1), loads)
    assert (plan.order, plan.estimate) == ([0, 3, 2, 1], {0: 1, 3: 2, 2: 4, 1: 5})
    plan = model.swag_plan([0, 1, 2], lambda i: i, (1, 1), {0: {(1, 1): 2}, 1: {(0, 0): 1}, 2: {(1, 1): 1}})
    assert (plan.order, plan.estimate) == ([1, 2, 0], {1: 1, 2: 1, 0: 3})


def test_a_completion_recomputes() -> None:
    for instance in instances(20, seed=13):
        outcome = model.simulate_assign(instance, "ata")
        arrivals = [job.arrival for job in instance.jobs]
        busy = list(zip(arrivals, outcome.completion, strict=True))
        expected = {*arrivals, *(c for c in outcome.completion if any(a <= c < b for a, b in busy))}
        assert {decision.view.clock for decision in outcome.decisions} == expected


def test_an_invalid_assignment_is_refused() -> None:
    def lost(view: View) -> tuple[list[int], dict[int, model.Counts]]:
        return view.active, {i: {} for i in view.active}

    with pytest.raises(ValueError, match="assigned"):
        model.simulate_assign(TABLE_3_1, lost)


# Sharing -------------------------------------------------------------------------------------


def lp_parts(problem: Problem) -> tuple[list[tuple[int, int, int]], np.ndarray, np.ndarray, np.ndarray]:
    """Variables (i, k, j); matrix and bounds of demand and capacity; matrix of aggregates."""
    n = len(problem.demand)
    names = [(i, k, j) for i in range(n) for k, s in enumerate(problem.groups) for j in s]
    rows, limits = [], []
    for i, k in itertools.product(range(n), range(len(problem.groups))):
        rows.append([float(name[:2] == (i, k)) for name in names])
        limits.append(problem.demand[i][k])
    for j, u in enumerate(problem.slots):
        rows.append([float(name[2] == j) for name in names])
        limits.append(u)
    total = np.array([[float(name[0] == i) for name in names] for i in range(n)])
    return names, np.array(rows), np.array(limits, float), total


def floors_of(problem: Problem) -> list[list[float]] | list[float] | None:
    """The floors as the solvers take them."""
    if problem.site_floors:
        floor = problem.site_floors
        return [
            [float(floor[i, k, group[0]]) for k, group in enumerate(problem.groups)]
            for i in range(len(problem.demand))
        ]
    return [float(x) for x in problem.floors] or None


def lp_max_min(problem: Problem) -> np.ndarray:
    """Algorithms 5 and 7 as they are meant, by HiGHS."""
    given = (problem.demand, pad(problem.groups), problem.slots)
    return linear_max_min(*given, floors=floors_of(problem))[0]


def lp_useful(demand, slots, groups, policy: str, job: int, tasks: Sequence[int], sign: int) -> float:
    """The least (sign 1) or most (-1) of a job's slots that tasks could use, over all matrices.

    They use sum_k min(a_k, tasks_k): the most is one program, the least one for each choice of groups that
    count with their shares, while the others count with the tasks.
    """
    problem = sharing_problem(demand, slots, groups, policy)
    aggregates = [float(a) for a in model.max_min(problem)]
    names, rows, limits, total = lp_parts(problem)
    useful = np.minimum(demand[job], tasks)
    floors = [(float(problem.site_floors.get(name, 0)), None) for name in names]
    own = np.array([[float(name[:2] == (job, k)) for name in names] for k in range(len(groups))])
    wide = np.block([[rows, np.zeros((len(rows), len(groups)))], [-own, np.eye(len(groups))]])
    values = []
    for counted in itertools.product((0, 1), repeat=len(groups)) if sign > 0 else [np.zeros(len(groups))]:
        result = linprog(
            [*(counted @ own), *([min(sign, 0)] * len(groups))],
            A_ub=wide,
            b_ub=[*limits, *([0.0] * len(groups))],
            A_eq=np.hstack([total, np.zeros((len(total), len(groups)))]),
            b_eq=aggregates,
            bounds=[*floors, *((0.0, float(x)) for x in useful)],
        )
        assert result.status == 0
        values.append(result.fun + useful @ (1 - np.array(counted)) if sign > 0 else -result.fun)
    return min(values)


def random_sharing(rng: random.Random) -> Problem:
    m, n = rng.randint(1, 4), rng.randint(1, 5)
    sites = list(
        dict.fromkeys(tuple(rng.sample(range(m), rng.randint(1, m))) for _ in range(rng.randint(1, 4)))
    )
    demand = [[rng.choice((0, 0, 1, 2, 5)) for _ in sites] for _ in range(n)]
    for row in demand:
        row[rng.randrange(len(sites))] += 1
    return Problem(demand, [rng.randint(1, 6) for _ in range(m)], sites)


def check_shares(shares: model.Shares, problem: Problem) -> list[F]:
    """Feasible and rational; returns the aggregates."""
    jobs, groups = range(len(problem.demand)), problem.groups
    assert all(share >= 0 and j in groups[k] for (_, k, j), share in shares.items())
    for i, k in itertools.product(jobs, range(len(groups))):
        assert sum(share for (a, b, _), share in shares.items() if (a, b) == (i, k)) <= problem.demand[i][k]
    for j, u in enumerate(problem.slots):
        assert sum(share for (_, _, b), share in shares.items() if b == j) <= u
    return [sum((s for (a, _, _), s in shares.items() if a == i), F(0)) for i in jobs]


@pytest.mark.parametrize("kind", ["amf", "gamf", "sig-amf", "sig-gamf"])
def test_max_min_and_the_matrix_against_linear_programs(kind: str) -> None:
    rng = random.Random(21)
    for _ in range(25):
        demand, slots, groups, *_ = random_sharing(rng)
        if kind.endswith("-amf") or kind == "amf":
            groups = [(j,) for j in range(len(slots))]
            demand = [[rng.choice((0, 1, 3, 6)) for _ in groups] for _ in demand]
            for row in demand:
                row[0] += 1
        problem = sharing_problem(demand, slots, groups, kind)
        aggregates = model.max_min(problem)
        assert np.allclose(lp_max_min(problem), [float(a) for a in aggregates])
        basic = model.allocation(problem, aggregates)
        sequence = sorted(range(len(demand)), key=lambda i: sum(demand[i]))  # noqa: B023
        reached, better = model.optimise(problem, aggregates, sequence)
        for shares in (basic, better):
            assert check_shares(shares, problem) == aggregates
            assert all(shares.get(key, 0) >= floor for key, floor in problem.site_floors.items())
        for i, y in zip(sequence, reached, strict=True):
            got = [sum(better.get((i, k, j), F(0)) for j in s) for k, s in enumerate(groups)]
            assert min(a / d for a, d in zip(got, demand[i], strict=True) if d) >= y
        floors = floors_of(problem) if problem.site_floors else None
        goals = [float(a) for a in aggregates]
        _, rates = linear_completion_shares(demand, pad(groups), slots, goals, floors=floors, order=sequence)
        assert float(reached[0]) == pytest.approx(rates[sequence[0]])


def test_what_is_feasible_stays_below_the_rank_function() -> None:
    rng = random.Random(24)
    found = [0, 0]
    for _ in range(60):
        problem = random_sharing(rng)
        everyone = range(len(problem.demand))
        wanted = [F(rng.randint(0, sum(row))) for row in problem.demand]
        feasible = all(
            sum(wanted[i] for i in jobs) <= model.rank_function(problem, jobs)
            for size in everyone
            for jobs in itertools.combinations(everyone, size + 1)
        )
        assert model.is_feasible(problem, wanted) == feasible
        found[feasible] += 1
    assert min(found) > 10


def test_most_beside_is_the_rank_left_over() -> None:
    problem = model.Problem([[2, 1], [2, 0]], [2, 1], [(0,), (0, 1)])
    assert model.max_min(problem) == [F(3, 2), F(3, 2)]
    assert model.most_beside(problem, [F(0), F(1)], 0) == 2
    assert model.most_beside(problem, [F(1), F(0)], 1) == 2


def test_max_min_weights() -> None:
    assert model.max_min(Problem([[9], [9]], (6,), [(0,)]), [1, 2]) == [2, 4]
    assert model.max_min(Problem([[9], [3]], (6,), [(0,)]), [1, 2]) == [3, 3]
    assert model.max_min(Problem([[9], [9]], (6,), [(0,)], floors=[5, 0]), [1, 2]) == [5, 1]


def test_infeasible_floors_are_refused() -> None:
    with pytest.raises(ValueError, match="infeasible"):
        model.max_min(Problem([[3], [3]], (4,), [(0,)], floors=[3, 2]))


# Fair simulation -----------------------------------------------------------------------------


def starts_at_zero(outcome: model.Outcome) -> list[list[int]]:
    """Per job, the sites of its tasks started at 0."""
    return [
        [site for site, start in zip(sites, starts, strict=True) if start == 0]
        for sites, starts in zip(outcome.site, outcome.start, strict=True)
    ]


def test_dispatch_by_running_over_share() -> None:
    instance = make_instance((4, 4), [(0, [(2, (0,)), (2, (1,))]), (0, [(3, (1,))])], groups=SINGLE_2)
    outcome = model.simulate_fair(instance, "amf")
    assert starts_at_zero(outcome) == [[0, 0, 1], [1, 1, 1]]
    assert model.sharing_violations(instance, outcome.decisions[0]) == (1, 1, 1)
    sig = model.simulate_fair(instance, "sig-amf")
    assert starts_at_zero(sig) == [[0, 0, 1, 1], [1, 1]]
    assert model.sharing_violations(instance, sig.decisions[0]) == (0, 0, 0)


def test_work_conserving() -> None:
    instance = make_instance((2,), [(0, [(1, (0,))]), (0, [(1, (0,))])])

    def starve(view: View) -> model.Shares:
        return {(view.active[0], 0, 0): F(1)}

    assert model.simulate_fair(instance, starve).completion == [1, 1]
    assert model.simulate_fair(instance, starve, work_conserving=False).completion == [1, 2]


# Metrics and bounds --------------------------------------------------------------------------


def test_metrics_by_hand() -> None:
    # one slot, two jobs at 0 and 2 with tasks of 3 and 1: 0-3 job 0 runs, 3-4 job 1
    instance = Instance((1,), [Job(0, ((3, (0,)),)), Job(2, ((1, (0,)),))])
    outcome = model.simulate_fair(instance, "imf")
    assert outcome.completion == [3, 4]
    metrics = model.metrics_fair(instance, outcome)
    assert metrics["mean_response"] == F(5, 2)
    assert metrics["p50_response"] == F(5, 2)
    assert metrics["utilisation"] == 1
    assert metrics["load"] == 2
    assert metrics["longest_over_span"] == F(3, 2)
    assert metrics["recomputations"] == 3
    assert metrics["fairness_integral"] == 0.5  # (1, 0) from 2 to 3
    assert metrics["mean_std"] == 0.125
    assert metrics["fairness_integral_no_drain"] == 0
    assert metrics["mean_jain"] == pytest.approx(0.875)
    assert model.lower_bounds(instance) == {"per_job": 2, "pooled_srpt": F(5, 2)}


def test_percentiles() -> None:
    assert model.deviation([1, 2, 6]) == pytest.approx(np.std([1, 2, 6]))
    assert model.weighted_percentile([(1.0, 3), (5.0, 1)], 75) == 1.0
    assert model.weighted_percentile([(1.0, 3), (5.0, 1)], 76) == 5.0


def test_bounds_by_hand() -> None:
    instance = Instance(
        (1, 2),
        [Job(0, ((4, (0,)), (2, (0, 1)), (3, (1,)))), Job(1, ((F(1, 2), (1,)),)), Job(50, ((1, (0,)),))],
    )
    assert model.job_bound(instance, 0) == 4
    crowded = Instance((1, 1), [Job(0, ((2, (0,)), (2, (0,)), (1, (0, 1))))])
    assert model.job_bound(crowded, 0) == 4
    # pooled speed 3: job 1 preempts at 1 (6 > 1/2), done at 7/6; job 0 at 19/6; job 2 after 1/3
    assert model.pooled_srpt(instance) == (F(19, 6) + F(1, 6) + F(1, 3)) / 3
