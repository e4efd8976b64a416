"""Placements: against the model."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from schedgym.papers.guan2022 import model
from schedgym.solvers.balance import balance_into, greedy_into, make_placement_scratch, make_site_lists
from tests.long import of_trials, trials


def solve(kernel, demand, sites, slots, load, *further):
    """The result of a kernel, and the placement that it has written."""
    lists = make_site_lists(sites, len(slots))
    scratch, placement = make_placement_scratch(len(demand), len(slots)), np.zeros_like(lists.sites)
    given = (np.array(array, dtype=np.int64) for array in (demand, slots, load))
    tasks, site_slots, taken = given
    return kernel(tasks, lists, site_slots, taken, placement, scratch, *further), placement


def balance(demand, sites, slots, load, *, fine=False):
    """The least level in tasks per slot, whole or with ``fine`` in multiples of 1 / gcd(slots); placement."""
    unit = math.gcd(*np.asarray(slots).tolist()) if fine else 1
    level, placement = solve(balance_into, demand, sites, np.asarray(slots) // unit, load)
    return Fraction(int(level), unit), placement


def greedy_balance(demand, sites, slots, load, *, literal=False):
    return solve(greedy_into, demand, sites, slots, load, literal)[1]


def draw_instance(rng, groups=5, sites=5, tasks=20, slots=4, load=15):
    """A random job on random sites: demand, sites, slots, load."""
    m = int(rng.integers(1, sites + 1))
    k = int(rng.integers(1, groups + 1))
    width = int(rng.integers(1, m + 1))
    lists = np.full((k, width), -1)
    for row in lists:
        count = rng.integers(1, width + 1)
        row[:count] = rng.permutation(m)[:count]
    return (
        rng.integers(0, tasks, k),
        lists,
        rng.integers(1, slots + 1, m),
        rng.integers(0, load + 1, m) * (rng.random(m) < 0.7),
    )


def sites_of(lists):
    """The sites of each group, as the model has them."""
    return [tuple(j for j in row if j >= 0) for row in lists.tolist()]


def placed(lists, counts):
    """The model's tasks by group and site, by their places in the lists."""
    return [[counts.get((k, j), 0) for j in row] for k, row in enumerate(lists.tolist())]


def check_placement(demand, lists, placement) -> None:
    assert (placement >= 0).all()
    assert (placement[lists < 0] == 0).all()
    assert (placement.sum(axis=1) == demand).all()


def test_no_tasks() -> None:
    level, placement = balance([0], [[0]], [2], [9])
    assert (level, placement.tolist()) == (0, [[0]])
    assert greedy_balance([0], [[0]], [2], [9]).tolist() == [[0]]


@pytest.mark.parametrize("fine", [False, True])
def test_balance_has_the_models_level_and_flow(fine: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in trials(1500):
        demand, lists, slots, load = draw_instance(rng)
        slots *= int(rng.integers(1, 5))
        level, placement = balance(demand, lists, slots, load, fine=fine)
        check_placement(demand, lists, placement)
        given = (demand.tolist(), sites_of(lists), slots.tolist(), load.tolist())
        least, counts = model.balance(*given, fine)
        assert level == least and placement.tolist() == placed(lists, counts)


def test_greedy_is_the_models_and_the_printed_formula_another() -> None:
    rng = np.random.default_rng(4)
    different = 0
    for _ in trials(2000):
        demand, lists, slots, load = draw_instance(rng)
        given = (demand.tolist(), sites_of(lists), slots.tolist(), load.tolist())
        for literal in (False, True):
            placement = greedy_balance(demand, lists, slots, load, literal=literal)
            check_placement(demand, lists, placement)
            assert placement.tolist() == placed(lists, model.greedy(*given, literal))
        same = np.full_like(slots, 3)
        ours = greedy_balance(demand, lists, same, load)
        literal = greedy_balance(demand, lists, same, load, literal=True)
        different += not np.array_equal(ours, literal)
        if len(demand) == 1:  # a single group: the same loads, in another order
            row = lists[0][lists[0] >= 0]
            loads = [sorted(load[row] + p[0][: row.size]) for p in (ours, literal)]
            assert loads[0] == loads[1]
    assert different > of_trials(200)


def test_greedy_takes_any_number_of_tasks() -> None:
    placement = greedy_balance([10**12, 7], [[0, 1, 2], [2, 0, -1]], [3, 5, 2], [10, 0, 4])
    check_placement(np.array([10**12, 7]), np.array([[0, 1, 2], [2, 0, -1]]), placement)
    loads = np.array([10, 0, 4]) + placement[0]
    keys = [Fraction(int(x), u) for x, u in zip(loads, (3, 5, 2), strict=True)]
    following = [Fraction(int(x) + 1, u) for x, u in zip(loads, (3, 5, 2), strict=True)]
    assert max(keys) <= min(following)


def test_site_lists_are_indexed_both_ways() -> None:
    lists = make_site_lists([[2, 0], [1, -1], [0, 2]], 3)
    assert lists.ascending.tolist() == [[1, 0], [0, -1], [0, 1]]
    entries = [lists.entries[lists.site_start[j] : lists.site_start[j + 1]].tolist() for j in range(3)]
    assert entries == [[1, 4], [2], [0, 5]]
