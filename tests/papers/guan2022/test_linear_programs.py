"""The thesis's linear programs beyond what claims on Algorithms 5 to 8 draw: vectors, durations, errors."""

from __future__ import annotations

import numpy as np
import pytest

from schedgym.errors import InfeasibleInstance
from schedgym.papers.guan2022.linear_programs import TOLERANCE, linear_completion_shares, linear_max_min
from schedgym.papers.guan2022.shares import completion_shares, isolated_share, max_min
from tests.long import long
from tests.solvers.test_max_min import draw_instance, singletons


def test_known_durations_give_the_same_first_completion() -> None:
    rng = np.random.default_rng(4)
    compared = 0
    for _ in range(60):
        demand, sites, slots = draw_instance(rng, jobs=5)
        seconds = demand * rng.integers(1, 20, demand.shape)
        busy = [i for i in np.argsort(demand.sum(axis=1), kind="stable") if demand[i].any()]
        aggregates, allocation, rate = completion_shares(demand, sites, slots, seconds=seconds)
        assert np.abs(allocation.sum(axis=(1, 2)) - aggregates).max() < TOLERANCE
        by_program = linear_completion_shares(demand, sites, slots, aggregates, seconds=seconds)[1]
        if busy:
            assert rate[busy[0]] == pytest.approx(by_program[busy[0]], abs=TOLERANCE)
            shares = allocation[busy[0]].sum(axis=1)[demand[busy[0]] > 0]
            least = (shares / seconds[busy[0]][demand[busy[0]] > 0]).min()
            assert rate[busy[0]] == pytest.approx(least, abs=TOLERANCE)
            compared += 1
    assert compared > 40


def test_longer_tasks_get_more_slots() -> None:
    """Two sites of 4 slots, job 1 with 4 tasks at each, three times as long at the first; job 2 as many."""
    demand, sites, slots = [[4, 4], [4, 4]], singletons(2), [4, 4]
    seconds = [[12.0, 4.0], [5.0, 5.0]]
    for rate, shares in (
        completion_shares(demand, sites, slots, seconds=seconds)[:0:-1],
        linear_completion_shares(demand, sites, slots, [4, 4], seconds=seconds)[::-1],
    ):
        assert np.abs(shares[:, :, 0] - [[3, 1], [1, 3]]).max() < TOLERANCE
        assert np.abs(rate - [0.25, 0.2]).max() < TOLERANCE


def test_vectors() -> None:
    demand, sites = np.array([[2, 2], [0, 3]]), singletons(2)
    assert np.allclose(linear_max_min(demand, sites, [4, 4])[1][:, :, 0], [[2, 1], [0, 3]])
    floors = np.minimum(demand, 2)
    assert np.allclose(linear_max_min(demand, sites, [4, 4], floors=floors)[1][:, :, 0], [[2, 2], [0, 2]])
    groups = [[0, -1], [0, 1], [1, -1]]
    assert np.allclose(linear_max_min(np.diag([4, 4, 1]), groups, [3, 2])[0], [2, 2, 1])
    allocation, rate = linear_completion_shares([[6, 3], [3, 6]], sites, [6, 6], [6, 6])
    assert np.abs(allocation[:, :, 0] - [[4, 2], [2, 4]]).max() < TOLERANCE
    assert np.abs(rate - 2 / 3).max() < TOLERANCE


def test_vector_4_as_meant_and_as_printed() -> None:
    demand, sites, slots = [[6, 7], [0, 5], [0, 3]], singletons(2), [2, 8]
    floors = isolated_share(demand, sites, slots)
    meant = linear_max_min(demand, sites, slots, floors=floors)[0]
    printed = linear_max_min(demand, sites, slots, floors=floors, literal=True)[0]
    assert np.abs(meant - [3.5, 3.5, 3.0]).max() < TOLERANCE
    assert np.abs(printed - [4.0, 3.0, 3.0]).max() < TOLERANCE


def test_printed_group_demands_allow_negative_shares() -> None:
    """(5.2) bounds only a group's sum: the free site 1 pays for slots of site 0 that do not exist."""
    demand, sites, slots = [[2, 0], [0, 2]], [[0, 1], [0, -1]], [1, 3]
    assert np.abs(linear_max_min(demand, sites, slots)[0] - [2.0, 1.0]).max() < TOLERANCE
    printed = linear_max_min(demand, sites, slots, literal=True)
    assert np.abs(printed[0] - [2.0, 2.0]).max() < TOLERANCE
    assert printed[1].min() == pytest.approx(-1.0)
    rate = linear_completion_shares(demand, sites, slots, [2.0, 2.0], literal=True)[1]
    assert np.abs(rate - 1.0).max() < TOLERANCE
    with pytest.raises(InfeasibleInstance, match="no allocation has them"):
        linear_completion_shares(demand, sites, slots, [2.0, 2.0])


def test_floors_that_nobody_can_have() -> None:
    with pytest.raises(InfeasibleInstance, match="no allocation reaches them all"):
        linear_max_min([[4], [4]], [[0]], [4], floors=[3.0, 2.0])


@long
@pytest.mark.parametrize("width", [1, 2])
def test_flows_equal_the_program_of_many_jobs(width) -> None:
    """200 jobs on 10 sites."""
    rng = np.random.default_rng(5)
    jobs, count = 200, 10
    tasks = np.minimum(1 + rng.pareto(0.6, jobs), 1e5).astype(int)
    demand = np.array([rng.multinomial(n, np.full(count, 1 / count)) for n in tasks])
    sites = (np.arange(count)[:, None] + np.arange(width)) % count
    slots = np.full(count, 20)
    by_flow = max_min(demand, sites, slots)[0]
    by_program = linear_max_min(demand, sites, slots)[0]
    assert np.abs(by_flow - by_program).max() < TOLERANCE
