"""Batches of instances against the model, and both against linear programs."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction as F

import numpy as np
import pytest

from schedgym.papers.guan2022 import batches, model
from schedgym.papers.guan2022.site_groups import merged_sites
from tests.long import long
from tests.papers.guan2022.test_model import lp_useful

pytestmark = long

POLICIES = ("amf", "sig-amf", "gamf", "sig-gamf")


def draw(rng: random.Random, policy: str, jobs: int = 4, sites: int = 3):
    n, m = rng.randint(1, jobs), rng.randint(1, sites)
    lists = [tuple(j for j in range(m) if s >> j & 1) for s in range(1, 1 << m)]
    groups = batches.single_sites(m)
    if policy.endswith("gamf"):
        groups = tuple(rng.sample(lists, rng.randint(1, min(len(lists), 4))))
    demand = [[rng.randint(0, 6) * (rng.random() < 0.8) for _ in groups] for _ in range(n)]
    return [[int(d) for d in row] for row in demand], [rng.randint(1, 5) for _ in range(m)], groups


@pytest.mark.parametrize("policy", POLICIES)
def test_aggregates_are_the_models(policy) -> None:
    rng = random.Random(policy)
    for _ in range(150):
        demand, slots, groups = draw(rng, policy)
        shares = batches.fair_shares(np.array([demand]), np.array([slots]), groups, policy)
        exact = model.aggregates_of(demand, slots, groups, policy)
        assert [F(int(x), batches.unit(len(demand))) for x in shares.aggregate[0]] == exact
        assert batches.satisfies_definition(shares)[0]


def test_a_batch_is_its_instances() -> None:
    rng = np.random.default_rng(1)
    demand, slots = rng.integers(0, 5, (50, 3, 3)), rng.integers(1, 6, (50, 2))
    groups = ((0,), (0, 1), (1,))
    for policy in ("gamf", "sig-gamf"):
        together = batches.fair_shares(demand, slots, groups, policy).aggregate
        alone = [batches.fair_shares(demand[[b]], slots[[b]], groups, policy).aggregate[0] for b in range(50)]
        assert np.array_equal(together, alone)


def test_sharing_floors_and_water() -> None:
    rng = random.Random(3)
    for _ in range(100):
        demand, slots, groups = draw(rng, "gamf")
        one = batches.unit(len(demand))
        found = batches.isolated(np.array([demand]), np.array([slots]), groups)[0]
        assert [F(int(x), one) for x in found] == model.isolated_shares(model.Problem(demand, slots, groups))
        demand, slots, groups = draw(rng, "amf")
        share = batches.water_shares(np.array([demand]), np.array([slots]))[0]
        for j, u in enumerate(slots):
            column = [row[j] for row in demand]
            assert [F(int(x), batches.unit(len(demand))) for x in share[:, j]] == model.water_fill(column, u)


def test_the_definition_refuses_every_other_vector() -> None:
    rng = random.Random(4)
    refused = 0
    for _ in range(200):
        policy = rng.choice(POLICIES)
        demand, slots, groups = draw(rng, policy)
        shares = batches.fair_shares(np.array([demand]), np.array([slots]), groups, policy)
        one = batches.unit(len(demand))
        other = shares.aggregate.copy()
        i, k = rng.randrange(len(demand)), rng.randrange(len(demand))
        other[0, i] += rng.choice((-1, 1)) * one // 2
        if rng.random() < 0.5:
            other[0, k] -= one // 3
        changed = not np.array_equal(other, shares.aggregate)
        assert batches.satisfies_definition(shares._replace(aggregate=other))[0] != changed
        refused += changed
    assert refused > 150


@pytest.mark.parametrize("policy", POLICIES)
def test_useful_slots_over_all_matrices(policy) -> None:
    rng = random.Random(f"useful {policy}")
    spread = 0
    for _ in range(60):
        demand, slots, groups = draw(rng, policy, jobs=3)
        job = rng.randrange(len(demand))
        tasks = [rng.randint(0, 5) for _ in groups]
        shares = batches.fair_shares(np.array([demand]), np.array([slots]), groups, policy)
        one = batches.unit(len(demand))
        most = F(int(batches.most_useful(shares, job, np.array([tasks]))[0]), one)
        assert float(most) == pytest.approx(
            lp_useful(demand, slots, groups, policy, job, tasks, -1), abs=1e-7
        )
        if policy == "sig-amf" or not any(map(any, demand)):
            continue
        least = F(int(batches.least_useful(shares, job, np.array([tasks]))[0]), one)
        assert float(least) == pytest.approx(
            lp_useful(demand, slots, groups, policy, job, tasks, 1), abs=1e-7
        )
        assert model.useful_range(demand, slots, groups, policy, job, tasks) == (least, most)
        spread += least < most
    assert policy == "sig-amf" or spread > 3


def test_settings_up_to_names() -> None:
    assert [slots for _, slots in batches.settings(1, 1, 3)] == [[3]]
    assert sorted(batches.settings(2, 1, 4)) == [(((0, 1),), [1, 3]), (((0, 1),), [2, 2])]
    # one group on one of two sites, the other on both: which site has more slots makes two
    assert len(list(batches.settings(2, 2, 3))) == 3
    assert [groups for groups, _ in batches.settings(2, 2, 3, single=True)] == [((0,), (1,))]
    for groups, slots in batches.settings(3, 3, 5):
        assert len(set(groups)) == 3 and set().union(*groups) == {0, 1, 2} and sum(slots) == 5
    names = {
        frozenset(frozenset(order[j] for j in g) for g in groups)
        for groups, _ in batches.settings(3, 2, 3)
        for order in itertools.permutations(range(3))
    }
    lists = [g for size in (1, 2, 3) for g in itertools.combinations(range(3), size)]
    every = [c for c in itertools.combinations(lists, 2) if set().union(*c) == {0, 1, 2}]
    assert names == {frozenset(map(frozenset, c)) for c in every}


def test_rows_multisets_and_chains() -> None:
    assert batches.demand_rows(((0,), (0, 1)), [1, 1]).tolist() == [[0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert len(batches.demand_rows(((0,),), [2], beyond=3)) == 5
    assert batches.job_multisets(3, 2).tolist() == [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]
    assert merged_sites(((0, 2), (1,), (2, 3)), 4) == [0, 1, 0, 0]
    assert batches.pad(((0,), (0, 1))) == [[0, -1], [0, 1]]
