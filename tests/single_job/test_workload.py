"""Workloads of SingleJob: topology and groups, the schema, files, the generator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import stats

from schedgym.core.arrays import allocate
from schedgym.core.random import root_seeds
from schedgym.core.tables import tabled
from schedgym.errors import InfeasibleInstance, InvalidParameter
from schedgym.papers.shi2017.model import one_job
from schedgym.problems.single_job import topology
from schedgym.problems.single_job.problem import SingleJobParameters
from schedgym.problems.single_job.topology import (
    DATA_CENTRE,
    OTHER,
    POD,
    RACK,
    SERVER,
    cluster_groups,
    fat_tree_groups,
    group_limits,
)
from schedgym.problems.single_job.workload import (
    MOST_DRAWS,
    Drawing,
    Jobs,
    Source,
    draw,
    generate,
    make_workload,
    tables,
)

seeds = st.integers(0, 2**32)
KINDS = {"server": SERVER, "rack": RACK, "pod": POD, "dc": DATA_CENTRE}


# Topology ---------------------------------------------------------------------------------------


def lists(groups: topology.Groups) -> list[tuple[int, ...]]:
    """The servers of each group."""
    return [tuple(np.flatnonzero(row).tolist()) for row in groups.matrix]


def same_as_model(groups: topology.Groups, limits: tuple[one_job.Limit, ...]) -> None:
    assert lists(groups) == [limit.servers for limit in limits]
    assert groups.share.tolist() == [float(limit.share) for limit in limits]
    assert groups.kind.tolist() == [KINDS[limit.kind] for limit in limits]
    assert groups.matrix.dtype == np.int8 and groups.matrix.shape[0] == len(limits)


@pytest.mark.parametrize("arity", [2, 4, 6, 8])
@pytest.mark.parametrize("server_caps", [True, False])
def test_the_groups_of_a_fat_tree(arity: int, server_caps: bool) -> None:
    same_as_model(
        fat_tree_groups(arity, 0.3, 0.25, 0.125, server_caps),
        one_job.fat_tree(arity, 0.3, 0.25, 0.125, server_caps),
    )
    same_as_model(fat_tree_groups(arity), one_job.fat_tree(arity))


@pytest.mark.parametrize("arity", [-2, 0, 1, 3, 7])
def test_odd_trees_do_not_exist(arity: int) -> None:
    with pytest.raises(InvalidParameter, match=f"^arity: must be even and positive, got {arity}$"):
        fat_tree_groups(arity)


@given(seed=seeds)
def test_limits_are_the_models_to_the_last_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arity = int(rng.choice([2, 4, 6]))
    capacity = rng.uniform(0, 10, arity**3 // 4)
    groups = fat_tree_groups(arity)
    expected = one_job.limits_now(one_job.fat_tree(arity), capacity.tolist())
    assert group_limits(groups.matrix, groups.share, capacity).tolist() == [float(x) for x in expected]


# Schema -----------------------------------------------------------------------------------------

SOUND: dict[str, Any] = {
    "load": [4.0, 2.0],
    "efficiency": [[1.0, 0.5], [0.25, 0.5]],
    "energy_cap": 8.0,
    "cpu": [2.0, 3.0],
    "arity": 2,
}
MATRIX = {"arity": None, "groups": [[1, 1], [1, 0]], "beta": [0.5, 0.25]}
LIMIT = {"arity": None, "groups": [[1, 1], [1, 0]], "limit": [4.0, 2.0]}


def test_a_cap_that_cannot_be_met() -> None:
    make_workload(**(SOUND | {"energy_cap": 8.0 * (1 - 1e-13)}))  # up to rounding
    with pytest.raises(InfeasibleInstance, match=r"7\.99999999 vCPU s is below .*, 8\.0 vCPU s$"):
        make_workload(**(SOUND | {"energy_cap": 7.99999999}))
    # 4 on server 0 and 4 on server 1, with the powers of their tasks
    assert tables(make_workload(**(SOUND | {"power": [1.5, 0.25], "energy_cap": 7.0}))).least_energy == 7.0
    with pytest.raises(InfeasibleInstance, match=r"6\.9 vCPU s is below .*, 7\.0 vCPU s$"):
        make_workload(**(SOUND | {"power": [1.5, 0.25], "energy_cap": 6.9}))


def test_a_fat_tree_by_its_arity() -> None:
    workload = make_workload(**SOUND)
    assert repr(workload) == (
        "Workload('single-job', jobs[2]: load, efficiency, energy_cap; cluster[2]: cpu, arity)"
    )
    table = tables(workload)
    assert table.limits.tolist() == [2.0, 3.0, 0.3 * 2, 0.3 * 3, 0.2 * 2, 0.2 * 3, 0.2 * 5]
    assert cluster_groups(workload.cluster).kind.tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert table.groups.tolist() == [[1, 0], [0, 1]] * 3 + [[1, 1]]
    assert (table.energy_cap, table.least_energy) == (8.0, 8.0)
    named = make_workload(**SOUND, beta={"pod": 0.2, "data_centre": 0.2, "rack": 0.3}, server_caps=False)
    assert_array_equal(tables(named).limits, table.limits[2:])
    assert tables(make_workload(**SOUND, beta=[1, 1, 0.5])).limits.tolist() == [2, 3, 2, 3, 2, 3, 2.5]


def test_groups_with_shares_or_limits() -> None:
    given = make_workload(**(SOUND | MATRIX))
    shares = tables(given)
    assert shares.limits.tolist() == [2.0, 3.0, 2.5, 0.5]
    assert cluster_groups(given.cluster).kind.tolist() == [0, 0, OTHER, OTHER]
    limits = tables(make_workload(**(SOUND | LIMIT)))
    assert limits.limits.tolist() == [2.0, 3.0, 4.0, 2.0]
    assert_array_equal(limits.groups, shares.groups)
    without = tables(make_workload(**(SOUND | LIMIT), server_caps=False))
    assert without.limits.tolist() == [4.0, 2.0] and without.groups.tolist() == [[1, 1], [1, 0]]
    # 0.5 of 0.25 * 2 + 4 * 3, 0.25 of 8 * 2
    weights = {**MATRIX, "groups": [[0.25, 4], [8, 0]]}
    heavy = tables(make_workload(**(SOUND | weights)))
    assert heavy.limits.tolist() == [2.0, 3.0, 6.25, 4.0]
    assert heavy.weights.tolist() == [[1, 0], [0, 1], [0.25, 4], [8, 0]] and not len(heavy.groups)
    same = tables(make_workload(**(SOUND | LIMIT | {"groups": [[1.0, 1.0], [1.0, 0.0]]})))
    for mine, theirs in zip(same, limits, strict=True):
        assert mine.dtype == theirs.dtype
        assert_array_equal(mine, theirs)
    share = cluster_groups(make_workload(**(SOUND | LIMIT)).cluster).share
    assert_array_equal(share, [1.0, 1.0, np.nan, np.nan])


# Generator --------------------------------------------------------------------------------------


def source_of(tasks: int, arity: int, **options: Any) -> Source:
    return Source(SingleJobParameters(tasks=tasks, arity=arity, **options))


def drawn(source: Source, environments: int) -> Jobs:
    """Drawn workloads; their energies [B]."""
    made = allocate(Jobs, source.sizes, environments)
    roots = root_seeds(list(range(environments)))
    mask, episodes = np.ones(environments, dtype=bool), np.zeros(environments, np.int64)
    draw(*tabled(Drawing(source.arrays, made), {}), mask, roots, episodes)
    return made._replace(energy_cap=made.energy_cap[:, 0], least_energy=made.least_energy[:, 0])


def uniform_on(values: np.ndarray, low: float, high: float) -> None:
    """Values look uniform: none outside, and their distribution function is nowhere far from a line."""
    assert values.min() >= low and values.max() <= high
    assert stats.kstest(values.ravel(), "uniform", (low, high - low)).pvalue > 1e-4
    for p in (0.01, 0.25, 0.5, 0.9):
        share = (values <= low + p * (high - low)).mean()
        assert share == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / values.size))


def test_the_paper_s_distributions() -> None:
    got = drawn(source_of(40, 6), 300)
    uniform_on(got.capacity, 0.0, 10.0)
    uniform_on(got.load, 0.0, 3600.0)
    uniform_on(got.efficiency, 0.1, 1.0)
    assert got.capacity.min() > 0 and got.load.min() > 0
    assert (got.size["tasks"] == 40).all()
    total = got.load.sum(axis=1)
    assert (got.energy_cap >= got.least_energy).all() and (got.energy_cap <= 1.1 * total).all()
    uniform_on((got.energy_cap - got.least_energy) / (1.1 * total - got.least_energy), 0.0, 1.0)
    # a first draw of E_MAX would fail in about a sixth of the instances
    first = np.random.default_rng(0).uniform(1.0, 1.1, 300) * total
    assert (first < got.least_energy).mean() == pytest.approx(0.17, abs=0.08)


def test_caps_are_as_if_drawn_until_they_can_be_met() -> None:
    got = drawn(source_of(5, 4), 3000)
    total = got.load.sum(axis=1)
    rng = np.random.default_rng(0)
    expected = []
    for least, load in zip(got.least_energy, total, strict=True):
        cap = 0.0
        while cap < least:
            cap = rng.uniform(1.0, 1.1) * load
        expected.append(cap / load)
    assert stats.ks_2samp(expected, got.energy_cap / total).pvalue > 1e-3


def test_another_range_of_caps() -> None:
    got = drawn(source_of(30, 4, server_caps=False, energy_ratio=1.5), 200)
    total = got.load.sum(axis=1)
    uniform_on((got.energy_cap - got.least_energy) / (1.5 * total - got.least_energy), 0.0, 1.0)


def test_all_is_drawn_again_when_no_cap_would_do() -> None:
    """One task on two servers: it needs an efficiency of 1/1.1, which one draw in five has."""
    got = drawn(source_of(1, 2), 2000)
    best = got.efficiency.max(axis=(1, 2))
    assert best.min() >= 1 / 1.1 - 1e-12
    # as plain rejection would have it
    rng = np.random.default_rng(1)
    tries = rng.uniform(0.1, 1.0, (20_000, 2))
    kept = tries[tries.max(axis=1) >= 1 / 1.1]
    assert len(kept) / len(tries) == pytest.approx(1 - ((1 / 1.1 - 0.1) / 0.9) ** 2, abs=0.02)
    assert stats.ks_2samp(kept.max(axis=1), best).pvalue > 1e-3
    assert stats.ks_2samp(kept.min(axis=1), got.efficiency.min(axis=(1, 2))).pvalue > 1e-3
    uniform_on(got.load, 0.0, 3600.0)
    uniform_on(got.capacity, 0.0, 10.0)
    assert (got.energy_cap >= got.least_energy).all()
    assert (got.energy_cap <= 1.1 * got.load[:, 0] * (1 + 1e-15)).all()


@pytest.mark.parametrize("source", [source_of(60, 2), source_of(20, 4, energy_ratio=1.0)])
def test_the_least_energy_is_granted_when_nothing_helps(source: Source) -> None:
    got = drawn(source, 20)
    assert_array_equal(got.energy_cap, got.least_energy)
    assert (got.least_energy > source.parameters.energy_ratio * got.load.sum(axis=1)).all()
    for seed in range(3):
        table = tables(generate(seed, 0, source))  # and passes the checks
        assert table.energy_cap == table.least_energy
    assert MOST_DRAWS == 100


def test_the_cap_has_a_number_of_its_own_in_each_episode() -> None:
    several = [tables(generate(3, episode, source_of(40, 6))) for episode in range(4)]
    spare = [(one.energy_cap - one.least_energy).item() for one in several]
    most = [1.1 * one.load.sum() - one.least_energy.item() for one in several]
    assert len({round(x / y, 9) for x, y in zip(spare, most, strict=True)}) == 4
