"""Placements: against slow transcriptions of their rules, and against networkx."""

from __future__ import annotations

import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedgym.solvers.balance import balance_into, greedy_into, make_placement_scratch, make_site_lists
from tests.interpreted import check_interpreted
from tests.long import long, of_trials, trials


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


def edmonds_karp(demand, lists, room):
    """Shortest augmenting paths from the source, neighbours ascending, one unit of code per arc."""
    groups, sites = range(len(demand)), range(len(room))
    placed = {(k, j): 0 for k in groups for j in lists[k] if j >= 0}
    left, room = list(map(int, demand)), list(map(int, room))
    while True:
        came = {("g", k): None for k in groups if left[k] > 0}
        queue = list(came)
        end = None
        while queue and end is None:
            kind, x = queue.pop(0)
            if kind == "g":
                following = [("s", j) for j in sites if (x, j) in placed]
            elif room[x] > 0:
                end = (kind, x)
                break
            else:
                following = [("g", k) for k in groups if placed.get((k, x), 0) > 0]
            for node in following:
                if node not in came:
                    came[node] = (kind, x)
                    queue.append(node)
        if end is None:
            return placed, sum(left)
        path = [end]
        while came[path[0]] is not None:
            path.insert(0, came[path[0]])
        amounts = [left[path[0][1]], room[end[1]]]
        amounts += [placed[b[1], a[1]] for a, b in zip(path, path[1:], strict=False) if a[0] == "s"]
        amount = min(amounts)
        for a, b in zip(path, path[1:], strict=False):
            if a[0] == "g":
                placed[a[1], b[1]] += amount
            else:
                placed[b[1], a[1]] -= amount
        left[path[0][1]] -= amount
        room[end[1]] -= amount


def greedy_by_task(demand, lists, slots, load):
    """The rule of ATA-Greedy, one task at a time."""
    load = [int(x) for x in load]
    placement = np.zeros(lists.shape, dtype=np.int64)
    for k in sorted(range(len(demand)), key=lambda k: (-demand[k], k)):
        for _ in range(demand[k]):
            options = [(Fraction(load[j] + 1, int(slots[j])), j, a) for a, j in enumerate(lists[k]) if j >= 0]
            _, j, a = min(options)
            placement[k, a] += 1
            load[j] += 1
    return placement


def greedy_by_formula(demand, lists, load):
    """The thesis's formula (section 3.2.4), by trying h and p."""
    load = [int(x) for x in load]
    placement = np.zeros(lists.shape, dtype=np.int64)
    for k in sorted(range(len(demand)), key=lambda k: (-demand[k], k)):
        if demand[k] == 0:
            continue
        order = sorted((load[j], j, a) for a, j in enumerate(lists[k]) if j >= 0)
        for h in range(1, len(order) + 1):
            following = order[h][0] if h < len(order) else math.inf
            if demand[k] <= sum(following - r for r, _, _ in order[:h]):
                break
        p = order[h - 1][0] + 1
        while sum(p - r for r, _, _ in order[:h]) < demand[k]:
            p += 1
        y = sum(p - r for r, _, _ in order[:h]) - demand[k]
        for x, (r, j, a) in enumerate(order[:h], start=1):
            placement[k, a] = p - 1 - r if x <= y else p - r
            load[j] += placement[k, a]
    return placement


def check_placement(demand, lists, placement) -> None:
    assert (placement >= 0).all()
    assert (placement[lists < 0] == 0).all()
    assert (placement.sum(axis=1) == demand).all()


def test_ties_of_the_flow() -> None:
    """The pass fills site 0 first; the second group then pushes the first one on."""
    level, placement = balance([2, 2], [[1, 0], [0, -1]], [2, 2], [0, 0])
    assert level == 1
    assert placement.tolist() == [[2, 0], [2, 0]]


def test_no_tasks() -> None:
    level, placement = balance([0], [[0]], [2], [9])
    assert (level, placement.tolist()) == (0, [[0]])
    assert greedy_balance([0], [[0]], [2], [9]).tolist() == [[0]]


def test_balance_is_the_least_level_with_edmonds_and_karps_flow() -> None:
    rng = np.random.default_rng(1)
    for _ in trials(1500):
        demand, lists, slots, load = draw_instance(rng)
        level, placement = balance(demand, lists, slots, load)
        check_placement(demand, lists, placement)
        if level > 0:  # one less, and a task is left over
            assert edmonds_karp(demand, lists, np.maximum(slots * (level - 1) - load, 0))[1] > 0
        placed, left = edmonds_karp(demand, lists, np.maximum(slots * level - load, 0))
        assert left == 0
        expected = [[placed[k, j] if j >= 0 else 0 for j in row] for k, row in enumerate(lists)]
        assert placement.tolist() == expected


def largest_flow(demand, lists, room) -> float:
    graph = nx.DiGraph()
    graph.add_nodes_from(["source", "sink"])
    for k, row in enumerate(lists):
        graph.add_edge("source", ("group", k), capacity=int(demand[k]))
        for j in row[row >= 0]:
            graph.add_edge(("group", k), ("site", j))
    for j, tasks in enumerate(room):
        graph.add_edge(("site", j), "sink", capacity=int(tasks))
    return nx.maximum_flow_value(graph, "source", "sink")


@pytest.mark.parametrize("fine", [False, True])
def test_networkx_agrees_on_the_least_level(fine: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in trials(300):
        demand, lists, slots, load = draw_instance(rng)
        slots *= int(rng.integers(1, 5))
        unit = math.gcd(*slots.tolist()) if fine else 1
        level, placement = balance(demand, lists, slots, load, fine=fine)
        check_placement(demand, lists, placement)
        steps = level * unit
        assert steps.denominator == 1
        assert largest_flow(demand, lists, np.maximum(slots // unit * int(steps) - load, 0)) == demand.sum()
        if demand.sum():
            below = np.maximum(slots // unit * (int(steps) - 1) - load, 0)
            assert largest_flow(demand, lists, below) < demand.sum()


def test_fine_levels_are_never_above_whole_ones() -> None:
    assert balance([3], [[0, 1]], [2, 2], [0, 0])[0] == 1
    assert balance([3], [[0, 1]], [4, 4], [0, 0], fine=True)[0] == Fraction(1, 2)
    rng = np.random.default_rng(3)
    finer = 0
    for _ in trials(300):
        demand, lists, slots, load = draw_instance(rng)
        whole = balance(demand, lists, 4 * slots, load)[0]
        fine = balance(demand, lists, 4 * slots, load, fine=True)[0]
        assert whole - 1 < fine <= whole or (whole == fine == 0)
        finer += fine < whole
    assert finer > of_trials(100)


def test_greedy_equals_the_rule_task_by_task() -> None:
    rng = np.random.default_rng(4)
    for _ in trials(2000):
        demand, lists, slots, load = draw_instance(rng)
        placement = greedy_balance(demand, lists, slots, load)
        assert np.array_equal(placement, greedy_by_task(demand, lists, slots, load))


def test_literal_greedy_equals_the_printed_formula() -> None:
    rng = np.random.default_rng(5)
    different = 0
    for _ in trials(2000):
        demand, lists, slots, load = draw_instance(rng)
        placement = greedy_balance(demand, lists, slots, load, literal=True)
        check_placement(demand, lists, placement)
        assert np.array_equal(placement, greedy_by_formula(demand, lists, load))
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


@given(
    demand=st.lists(st.integers(0, 50), min_size=1, max_size=4),
    slots=st.lists(st.integers(1, 30), min_size=3, max_size=3),
    load=st.lists(st.integers(0, 100), min_size=3, max_size=3),
    lists=st.lists(st.permutations([0, 1, 2]), min_size=4, max_size=4),
)
def test_no_site_exceeds_the_level(demand, slots, load, lists) -> None:
    sites = np.array(lists)[: len(demand)]
    level, placement = balance(demand, sites, slots, load)
    total = np.array(load)
    np.add.at(total, sites, placement)
    for j in range(3):
        assert total[j] <= max(level * slots[j], load[j])
    greedy = greedy_balance(demand, sites, slots, load)
    assert greedy.sum() == placement.sum() == sum(demand)


def test_site_lists_are_indexed_both_ways() -> None:
    lists = make_site_lists([[2, 0], [1, -1], [0, 2]], 3)
    assert lists.ascending.tolist() == [[1, 0], [0, -1], [0, 1]]
    entries = [lists.entries[lists.site_start[j] : lists.site_start[j + 1]].tolist() for j in range(3)]
    assert entries == [[1, 4], [2], [0, 5]]


#: both files' kernels, on instances with several parts, floors and siblings
PLAY = """
import json
import numpy as np
from schedgym.papers.guan2022.shares import completion_shares, isolated_share, max_min, water_filling
from tests.solvers.test_balance import balance, greedy_balance

rng = np.random.default_rng(6)
results = []
for _ in range(30):
    sites = np.array([rng.permutation(4)[:2] for _ in range(3)])
    demand, slots, load = rng.integers(0, 9, (5, 3)), rng.integers(1, 9, 4), rng.integers(0, 9, 4)
    level, placement = balance(demand[0], sites, slots, load)
    results.append([float(level), placement.tolist()])
    for literal in (False, True):
        results.append(greedy_balance(demand[0], sites, slots, load, literal=literal).tolist())
    floors = isolated_share(demand, sites, slots)
    results += [x.tolist() for x in max_min(demand, sites, slots, floors=floors)]
    results += [x.tolist() for x in completion_shares(demand, sites, slots)]
    results.append(water_filling(demand, slots[:3]).tolist())
print(json.dumps(results))
"""


@long
def test_compiled_and_interpreted_agree() -> None:
    check_interpreted(PLAY)
