"""Max-min shares: the model's exact fractions, networkx, and certificates of optimality."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedgym.errors import InfeasibleInstance
from schedgym.papers.guan2022 import model
from schedgym.papers.guan2022.shares import (
    allocation,
    completion_shares,
    isolated_share,
    load,
    max_min,
    solve,
    water_filling,
)
from schedgym.solvers.max_min import make_network, unit_scale
from tests.long import of_trials, trials

CLOSE = 1e-8


def singletons(sites: int) -> np.ndarray:
    return np.arange(sites)[:, None]


def draw_instance(rng, jobs=6, sites=4, tasks=9, slots=9, single=False):
    """A random demand [J, K], sites [K, A] and slots [M]."""
    j, m = int(rng.integers(1, jobs + 1)), int(rng.integers(1, sites + 1))
    if single or rng.random() < 0.3:
        lists = singletons(m)
    else:
        width = int(rng.integers(1, min(m, 3) + 1))
        lists = np.full((int(rng.integers(1, 6)), width), -1)
        for row in lists:
            count = rng.integers(1, width + 1)
            row[:count] = rng.permutation(m)[:count]
    k = lists.shape[0]
    demand = rng.integers(0, tasks, (j, k)) * (rng.random((j, k)) < 0.7)
    return demand, lists, rng.integers(0 if rng.random() < 0.2 else 1, slots, m)


def weighted(demand, sites, slots, weights, floors=None):
    """As max_min, of the aggregates divided by the weights, of which only ratios count."""
    loaded, width = load(demand, sites, slots, floors), np.shape(sites)[1]
    loaded.network.weight[:] = np.asarray(weights) / np.max(weights)
    return solve(loaded, width), allocation(loaded, demand, width)


def check_feasible(demand, sites, slots, aggregates, allocation) -> None:
    """Within capacities and demands, nothing negative, and with the aggregates."""
    demand, sites, slots = map(np.asarray, (demand, sites, slots))
    assert (allocation >= 0.0).all()
    assert (allocation[:, sites < 0] == 0.0).all()
    assert (allocation.sum(axis=2) <= demand + CLOSE).all()
    used = np.zeros(len(slots))
    for k, a in zip(*np.nonzero(sites >= 0), strict=True):
        used[sites[k, a]] += allocation[:, k, a].sum()
    assert (used <= slots + CLOSE).all()
    assert np.abs(allocation.sum(axis=(1, 2)) - aggregates).max(initial=0.0) < CLOSE


def check_fair(demand, sites, slots, allocation, weights=None, floors=None, group_floors=None) -> None:
    """Nobody can get more except from somebody with no more per weight, or at a floor.

    The jobs that a job can take flow from are those it reaches over groups that are not full, sites, and
    flows that can be moved away: it must be satisfied, or all of them, and all sites reached, be tight.
    """
    demand, sites, slots = map(np.asarray, (demand, sites, slots))
    jobs, kinds = demand.shape
    weights = np.ones(jobs) if weights is None else np.asarray(weights)
    floors = np.zeros(jobs) if floors is None else np.asarray(floors)
    held = np.zeros((jobs, kinds)) if group_floors is None else np.asarray(group_floors)
    sums = allocation.sum(axis=(1, 2))
    used = np.zeros(len(slots))
    for k, a in zip(*np.nonzero(sites >= 0), strict=True):
        used[sites[k, a]] += allocation[:, k, a].sum()
    full = allocation.sum(axis=2) >= demand - CLOSE
    movable = allocation - held[:, :, None] > CLOSE
    reach = np.zeros((jobs, len(slots)), dtype=bool)  # of a job: the sites of its groups that are not full
    spill = np.zeros((len(slots), len(slots)), dtype=bool)  # of a site: where its tasks can go
    lose = np.zeros((len(slots), jobs), dtype=bool)  # of a site: who has something there
    for k in range(kinds):
        options = sites[k][sites[k] >= 0]
        for i in range(jobs):
            if not full[i, k]:
                reach[i, options] = True
            for a, j in enumerate(options):
                if movable[i, k, a]:
                    lose[j, i] = True
                    spill[j, options] = True
    for i in range(jobs):
        seen_jobs, seen_sites = {i}, set()
        queue = [i]
        while queue:
            found = np.flatnonzero(reach[queue.pop()]).tolist()
            while found:
                j = found.pop()
                if j not in seen_sites:
                    seen_sites.add(j)
                    found += np.flatnonzero(spill[j]).tolist()
                    fresh = set(np.flatnonzero(lose[j]).tolist()) - seen_jobs
                    seen_jobs |= fresh
                    queue += fresh
        for j in seen_sites:
            assert used[j] >= slots[j] - CLOSE, f"job {i} could use free slots of site {j}"
        for other in seen_jobs:
            no_richer = sums[other] / weights[other] <= sums[i] / weights[i] + 10 * CLOSE / weights.min()
            assert no_richer or sums[other] <= floors[other] + CLOSE, f"job {i} could take from job {other}"


def test_aggregates_are_the_exact_quotients_rounded_once() -> None:
    rng = np.random.default_rng(1)
    for _ in trials(400):
        demand, sites, slots = draw_instance(rng, jobs=5, sites=3)
        aggregates, allocation = max_min(demand, sites, slots)
        groups = [tuple(j for j in row if j >= 0) for row in sites.tolist()]
        exact = model.max_min(model.Problem(demand.tolist(), slots.tolist(), groups))
        assert aggregates.tolist() == [float(x) for x in exact]
        check_feasible(demand, sites, slots, aggregates, allocation)


@pytest.mark.parametrize("kind", ["plain", "weights", "floors", "group floors", "all"])
def test_every_job_is_satisfied_or_bottlenecked(kind) -> None:
    rng = np.random.default_rng(3)
    raised = 0
    for _ in trials(600):
        demand, sites, slots = draw_instance(rng, jobs=9, sites=6, tasks=14, single=kind == "group floors")
        weights, floors, group_floors = np.ones(len(demand)), None, None
        if kind in ("weights", "all"):
            weights = rng.random(len(demand)) + 0.05
        if kind in ("floors", "all"):
            floors = isolated_share(demand, sites, slots)
        if kind == "group floors":
            group_floors = np.minimum(demand, slots / len(demand))
        given_floors = floors if group_floors is None else group_floors
        aggregates, allocation = weighted(demand, sites, slots, weights, given_floors)
        check_feasible(demand, sites, slots, aggregates, allocation)
        check_fair(demand, sites, slots, allocation, weights, floors, group_floors)
        if floors is not None:
            assert (aggregates >= floors - CLOSE).all()
        if group_floors is not None:
            assert (allocation[:, :, 0] >= group_floors - CLOSE).all()
        raised += not np.allclose(aggregates, max_min(demand, sites, slots)[0])
    assert kind == "plain" or raised > of_trials(20), "floors and weights that change nothing test nothing"


@pytest.mark.parametrize("width", [1, 2, 5])
def test_large_instances_are_fair(width) -> None:
    rng = np.random.default_rng(4)
    for jobs, count in ((200, 30), (60, 10)):
        slots = rng.integers(1, 60, count)
        sites = (np.arange(count)[:, None] + np.arange(width)) % count
        demand = rng.integers(1, 30, (jobs, count)) * (rng.random((jobs, count)) < 3 / count)
        aggregates, allocation = max_min(demand, sites, slots)
        check_feasible(demand, sites, slots, aggregates, allocation)
        check_fair(demand, sites, slots, allocation)
        floors = isolated_share(demand, sites, slots)
        aggregates, allocation = max_min(demand, sites, slots, floors=floors)
        check_feasible(demand, sites, slots, aggregates, allocation)
        check_fair(demand, sites, slots, allocation, floors=floors)


@given(
    demand=st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=1, max_size=6),
    slots=st.lists(st.integers(0, 60), min_size=4, max_size=4),
    lists=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True), min_size=3, max_size=3),
    factor=st.integers(1, 50),
)
def test_properties(demand, slots, lists, factor) -> None:
    sites = np.array([row + [-1] * (3 - len(row)) for row in lists])
    aggregates, allocation = max_min(demand, sites, slots)
    check_feasible(demand, sites, slots, aggregates, allocation)
    check_fair(demand, sites, slots, allocation)
    # names of jobs and sizes of slots do not matter
    assert max_min(demand[::-1], sites, slots)[0].tolist() == aggregates[::-1].tolist()
    scaled = max_min(np.array(demand) * factor, sites, np.array(slots) * factor)[0]
    assert np.allclose(scaled, aggregates * factor, rtol=1e-14, atol=0.0)
    # equal weights, and floors that hold anyway, do not either
    weights = [float(factor)] * len(demand)
    assert np.abs(weighted(demand, sites, slots, weights)[0] - aggregates).max() < CLOSE
    assert np.abs(max_min(demand, sites, slots, floors=aggregates)[0] - aggregates).max() < CLOSE


def test_a_weight_is_a_number_of_equal_jobs() -> None:
    """A job of weight 3 gets what three jobs with a third of its tasks each get together."""
    demand = np.array([[30, 6], [40, 0], [5, 70]])
    aggregates = weighted(demand, singletons(2), [20, 10], [3, 1, 2])[0]
    split = np.vstack([demand[:1] // 3] * 3 + [demand[1:2]] + [demand[2:] / 2] * 2)
    parts = max_min(2 * split, singletons(2), [40, 20])[0] / 2
    assert np.allclose(aggregates, [parts[:3].sum(), parts[3], parts[4:].sum()])


def test_water_filling_per_site_is_max_min_of_each_site() -> None:
    rng = np.random.default_rng(5)
    for _ in trials(200):
        demand = rng.integers(0, 20, (int(rng.integers(1, 9)), 3))
        slots = rng.integers(0, 40, 3)
        shares = water_filling(demand, slots)
        for j in range(3):
            alone = max_min(demand[:, j : j + 1], [[0]], slots[j : j + 1])[0]
            assert shares[:, j].tolist() == alone.tolist()


def test_isolated_shares_are_those_of_equal_jobs() -> None:
    rng = np.random.default_rng(6)
    for _ in trials(200):
        demand, sites, slots = draw_instance(rng)
        n, groups = len(demand), [tuple(row[row >= 0].tolist()) for row in sites]
        for i, share in enumerate(isolated_share(demand, sites, slots)):
            equal = model.Problem([demand[i].tolist()] * n, slots.tolist(), groups)
            assert share == float(sum(model.max_min(equal)) / n)


@pytest.mark.parametrize("single", [False, True])
def test_completion_keeps_aggregates_and_floors(single) -> None:
    rng = np.random.default_rng(7)
    better = 0
    for _ in trials(500):
        demand, sites, slots = draw_instance(rng, jobs=8, sites=5, tasks=14, single=single)
        for floors in (
            None,
            isolated_share(demand, sites, slots),
            *([np.minimum(demand, slots / len(demand))] if single else []),
        ):
            before, plain = max_min(demand, sites, slots, floors=floors)
            aggregates, allocation, rate = completion_shares(demand, sites, slots, floors=floors)
            assert aggregates.tolist() == before.tolist()
            check_feasible(demand, sites, slots, aggregates, allocation)
            if floors is not None and floors.ndim == 2:
                assert (allocation[:, :, 0] >= floors - CLOSE).all()
            ratio = np.where(demand > 0, allocation.sum(axis=2) / np.maximum(demand, 1), np.inf)
            assert np.allclose(ratio.min(axis=1), rate, rtol=0.0, atol=CLOSE)
            assert ((rate == np.inf) == (demand.sum(axis=1) == 0)).all()
            busy = [i for i in np.argsort(demand.sum(axis=1), kind="stable") if demand[i].any()]
            if busy:
                plain_ratio = np.where(demand > 0, plain.sum(axis=2) / np.maximum(demand, 1), np.inf)
                assert rate[busy[0]] >= plain_ratio[busy[0]].min() - CLOSE
                better += rate[busy[0]] > plain_ratio[busy[0]].min() + 1e-3
    assert better > of_trials(50)


def test_the_order_of_completion_decides_who_is_served() -> None:
    demand, sites, slots = [[4, 8], [8, 8]], singletons(2), [6, 6]
    first = completion_shares(demand, sites, slots, order=[0, 1])[2]
    second = completion_shares(demand, sites, slots, order=[1, 0])[2]
    assert first[0] == pytest.approx(0.5)
    assert second[1] == pytest.approx(3 / 8)
    assert first[0] > second[0]


def test_floors_that_nobody_can_have() -> None:
    sites = singletons(2)
    with pytest.raises(InfeasibleInstance, match="no allocation reaches them all"):
        max_min([[4, 0], [4, 0]], sites, [4, 4], floors=[3.0, 2.0])
    with pytest.raises(InfeasibleInstance, match="no allocation reaches them all"):
        max_min([[4, 0], [1, 0]], sites, [4, 4], floors=[1.0, 2.0])
    with pytest.raises(InfeasibleInstance, match="more than a site's slots"):
        max_min([[4, 0], [4, 0]], sites, [4, 4], floors=[[3.0, 0.0], [2.0, 0.0]])
    with pytest.raises(InfeasibleInstance, match="no allocation reaches them all"):
        max_min([[4, 4], [1, 0]], sites, [4, 2], floors=[6.5, 0.0])
    assert max_min([[4, 0], [4, 0]], sites, [4, 4], floors=[3.0, 1.0])[0].tolist() == [3.0, 1.0]


def test_no_jobs_no_tasks_no_slots() -> None:
    assert max_min(np.zeros((0, 2), dtype=int), singletons(2), [1, 1])[0].shape == (0,)
    assert max_min([[0, 0]], singletons(2), [1, 1])[0].tolist() == [0.0]
    assert max_min([[3, 1]], singletons(2), [0, 0])[0].tolist() == [0.0]
    assert completion_shares([[3, 1], [0, 0]], singletons(2), [0, 0])[2].tolist() == [0.0, np.inf]


def test_huge_numbers_keep_their_sense() -> None:
    """Demands are cut to what the sites can serve; the unit of flow grows with the slots."""
    aggregates, allocation = max_min([[10**15], [10**15], [1]], [[0, 1]], [10**9, 10**9])
    assert aggregates.tolist() == [(2 * 10**9 - 1) / 2, (2 * 10**9 - 1) / 2, 1.0]
    assert allocation.sum() == 2e9
    assert unit_scale(np.array([10**9, 10**9])) == 2**21
    assert unit_scale(np.array([200])) == 2**40
    assert unit_scale(np.array([200]), 3) == 3 * 2**40
    assert unit_scale(np.array([2000]), 1000) == 1000 * 2**31
    assert make_network(2, 1, 2, 2).flow.shape == (4,)
