"""One episode from its begin to its end: the schedule is valid, and metrics and rewards are those of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.evaluation.episodes import Outcome, _check_rewards


class Played(NamedTuple):
    """What has come of it."""

    metrics: dict[str, Any]
    rewards: list[float]
    record: ScheduleRecord


def play(
    env: Any,
    act: Callable[[Any], Any],
    seed: int = 0,
    note: Callable[[Any, Any], None] | None = None,
    workload: Workload | None = None,
) -> Played:
    """Play an episode of a seed, or of a workload, by a policy or by a function of observations.

    A policy draws by the same seed. ``note`` is called with each observation and action.
    """
    observation, _ = env.reset(seed=seed, options={} if workload is None else {"workload": workload})
    if hasattr(act, "reset"):
        act.reset(env.interface, np.random.default_rng(seed))
    rewards: list[float] = []
    ended = False
    while not ended:
        action = act(observation)
        if note is not None:
            note(observation, action)
        observation, reward, terminated, truncated, info = env.step(action)
        rewards.append(reward)
        ended = terminated or truncated
    record, module = env.record(), env.problem.module("metrics")
    module.validate(record)
    found = module.metrics(record)
    np.testing.assert_equal({name: info["metrics"][name] for name in found}, found)
    if not getattr(env.simulator.parameters, "normalize", False):
        _check_rewards(env, Outcome(info["metrics"], sum(rewards), truncated), "the episode")
    return Played(dict(info["metrics"]), rewards, record)
