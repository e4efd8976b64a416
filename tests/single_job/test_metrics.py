"""The limits that the validator reads from a workload; metrics: tests/test_all_records.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from schedgym.core.workload import Workload
from schedgym.papers.shi2017.model import one_job
from schedgym.problems.single_job.metrics import read_limits


def tree_workload(arity: int, cpu: np.ndarray, **cluster: Any) -> Workload:
    efficiency = np.ones((1, len(cpu)))
    return Workload(
        "single-job",
        {"load": np.array([6.0]), "efficiency": efficiency, "energy_cap": np.array(9.0)},
        {"cpu": cpu, "arity": np.array(arity), **cluster},
    )


@pytest.mark.parametrize("arity", [2, 4, 6])
@pytest.mark.parametrize("caps", [True, False])
def test_limits_of_a_fat_tree(arity: int, caps: bool) -> None:
    cpu = np.random.default_rng(arity).uniform(1, 10, arity**3 // 4)
    own = read_limits(tree_workload(arity, cpu, beta=np.array([0.5, 0.4, 0.3]), server_caps=np.array(caps)))
    known = one_job.fat_tree(arity, 0.5, 0.4, 0.3, caps)
    assert [tuple(np.flatnonzero(row)) for row in own.weight] == [limit.servers for limit in known]
    assert own.share.tolist() == [limit.share for limit in known]
    assert own.absolute.tolist() == list(one_job.limits_now(known, cpu.tolist()))
    assert own.name[-1] == "data centre [0]" and (own.name[0] == "server [0]") == caps
    assert len(own.name) == len(known)
    default = read_limits(tree_workload(arity, cpu))
    assert default.share[-1] == 0.2 and default.share[len(cpu)] == 0.3


def test_limits_of_groups() -> None:
    cpu = np.array([4.0, 6.0])
    groups = {"groups": np.array([[1, 1], [0, 1]])}
    shares = read_limits(tree_workload(2, cpu, **groups, beta=np.array([0.5, 0.25])))
    assert shares.absolute.tolist() == [4.0, 6.0, 5.0, 1.5] and shares.share.tolist() == [1, 1, 0.5, 0.25]
    heavy = {"groups": np.array([[1.0, 0.5], [0.0, 4.0]])}
    shares = read_limits(tree_workload(2, cpu, **heavy, beta=np.array([0.5, 0.25])))
    assert shares.absolute.tolist() == [4.0, 6.0, 3.5, 6.0]
    assert shares.weight.tolist() == [[1, 0], [0, 1], [1, 0.5], [0, 4]]
    given = read_limits(tree_workload(2, cpu, **groups, limit=np.array([7.0, 8.0]), server_caps=False))
    assert given.absolute.tolist() == [7.0, 8.0] and np.isnan(given.share).all()
    assert given.name == ("group [0]", "group [1]")
