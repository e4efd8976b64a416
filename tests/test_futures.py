"""Another future for the workloads of every problem: what has arrived stays, all that comes differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from schedgym.core.problem import list_problems
from schedgym.core.workload import Workload
from tests.tables import declared

CASES = {name: given["futures"] for name in list_problems() if "futures" in (given := declared(name))}
#: fields that no future changes: all jobs have the same
SAME = {
    "partial-value": {"parallelism", "tasks", "utility", "exponent"},
}
both = pytest.mark.parametrize(
    ("name", "values"), [(name, values) for name, cases in CASES.items() for values in cases]
)


def made(name: str, values: dict[str, Any], seed: int) -> tuple[Workload, Callable[..., Workload]]:
    """A workload, and what gives it another future."""
    problem = list_problems()[name]
    room = problem.module("workload")
    source = room.make_source(problem.build(next(iter(problem.ids)), values))
    return room.generate(seed, 0, source), room.shuffle_future


def arrived(name: str, workload: Workload, time: float) -> np.ndarray:
    """Which jobs an environment knows of at ``time``; flowtime shows in a slot those that came before it."""
    arrival = workload.jobs["arrival"]
    return arrival < time if name == "flowtime" else arrival <= time


def sizes(workload: Workload) -> np.ndarray:
    """Tasks of each job."""
    return np.bincount(workload.tasks["job"]) if workload.tasks else np.ones(1)


def test_every_problem_with_a_future_is_here() -> None:
    futures = {name for name, p in list_problems().items() if hasattr(p.module("workload"), "shuffle_future")}
    assert futures == CASES.keys()


@both
@pytest.mark.parametrize("seed", range(12))
def test_the_past_stays(name: str, values: dict[str, Any], seed: int) -> None:
    workload, shuffle = made(name, values, seed)
    rng = np.random.default_rng(seed)
    time = float(rng.choice(workload.jobs["arrival"]))
    other = shuffle(workload, time, rng)
    past = arrived(name, workload, time)
    assert_array_equal(arrived(name, other, time), past)
    assert (other.jobs["arrival"] <= workload.jobs["arrival"]).all()
    for field in workload.jobs:
        assert_array_equal(other.jobs[field][past], workload.jobs[field][past])
    if workload.tasks:
        old = past[workload.tasks["job"]]
        for field in workload.tasks:
            assert_array_equal(other.tasks[field][old], workload.tasks[field][old])
        assert not past[other.tasks["job"][~old]].any()
    assert Counter(sizes(other).tolist()) == Counter(sizes(workload).tolist())
    for section in ("cluster", "parameters"):
        mine, theirs = getattr(other, section), getattr(workload, section)
        assert mine.keys() == theirs.keys()
        assert all(np.array_equal(mine[field], theirs[field]) for field in mine)
    assert (other != workload) == (not past.all())


@both
def test_all_that_comes_differs(name: str, values: dict[str, Any]) -> None:
    workload, shuffle = made(name, values, 0)
    time = float(workload.jobs["arrival"][20])
    other = shuffle(workload, time, np.random.default_rng(0))
    later = ~arrived(name, workload, time)
    for field, array in workload.jobs.items():
        changed = not np.array_equal(other.jobs[field][later], array[later])
        assert changed == (field not in SAME.get(name, ())), field
    for field, array in workload.tasks.items():
        assert not np.array_equal(other.tasks[field], array), field
    assert shuffle(workload, 1e15, np.random.default_rng(0)) is workload
    if name == "partial-value":
        assert other.jobs["deadline"].max() <= workload.jobs["deadline"].max()
