"""Workloads of SingleJob: topology and groups, the generator."""

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
from schedgym.errors import InvalidParameter
from schedgym.papers.shi2017.model import one_job
from schedgym.problems.single_job import topology
from schedgym.problems.single_job.problem import SingleJobParameters
from schedgym.problems.single_job.topology import (
    DATA_CENTRE,
    POD,
    RACK,
    SERVER,
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
