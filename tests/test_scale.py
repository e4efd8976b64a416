"""A million jobs in one episode (in .ci/checks), and times near 10^9: rewards sum to the objective."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import gymnasium as gym
import pytest

from schedgym.core.problem import get_problem
from schedgym.core.record import ScheduleRecord
from tests.long import WEEKLY, long, weekly
from tests.playing import play

VIEW = {"view": "rule", "window": 4, "observation": "features", "action_mask": False, "copy": False}
CASES = {
    "schedgym/QueueDelay-v0": ("tasks", {"servers": 8, "load": 0.9}),
    "schedgym/FlowtimePacking-v0": ("jobs", {"load": 0.5, "alpha": 2.0}),
}
LATE = 10**9


def objective(id: str, record: ScheduleRecord) -> float:
    """The mean delay, or the sum of squared flowtimes: of the fates of the jobs, by exact sums."""
    fates, arrival = get_problem(id).module("metrics").fates(record), record.workload.jobs["arrival"].tolist()
    if id == "schedgym/QueueDelay-v0":
        return math.fsum(start - came for start, came in zip(fates["start"], arrival, strict=True)) / len(
            arrival
        )
    return float(sum(int(end - came) ** 2 for end, came in zip(fates["completion"], arrival, strict=True)))


@pytest.mark.parametrize("id", CASES)
@pytest.mark.parametrize(
    ("count", "later"),
    [
        (500, LATE),
        pytest.param(10**6 if WEEKLY else 10**5, 0, marks=long),
        pytest.param(10**5, LATE, marks=(long, weekly)),
    ],
)
def test_rewards_sum_to_the_objective_of_the_validated_schedule(id: str, count: int, later: int) -> None:
    name, parameters = CASES[id]
    env: Any = gym.make(id, disable_env_checker=True, **VIEW, **parameters, **{name: count}).unwrapped
    workload = None
    if later:
        env.reset(seed=0)
        drawn = env.simulator.workload(0)
        jobs = {**drawn.jobs, "arrival": drawn.jobs["arrival"] + later}
        workload = dataclasses.replace(drawn, jobs=jobs)
    metrics, rewards, record = play(env, lambda observation: 0, workload=workload)
    assert not record.truncated
    assert record.end.min() >= later
    expected = objective(id, record)
    assert expected > 0.0
    if id == "schedgym/FlowtimePacking-v0":
        expected += parameters["alpha"] * metrics["switching_cost"]
    assert math.isclose(metrics[get_problem(id).objective], expected, rel_tol=1e-9)
    assert math.isclose(-sum(rewards), expected, rel_tol=1e-9)
