"""One episode from its begin to its end: the schedule is valid, and metrics and rewards are those of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from schedgym.core.policy import Interface
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.core.workload_files import save_workload
from schedgym.evaluation.episodes import Outcome, _check_rewards
from schedgym.playing import steps
from schedgym.testing import sample_action


class Played(NamedTuple):
    """What has come of it."""

    metrics: dict[str, Any]
    rewards: list[float]
    record: ScheduleRecord


class Acting(NamedTuple):
    """A policy made of one, or of a function of observations; it tells ``note`` of its decisions."""

    act: Callable[[Any], Any]
    note: Callable[[Any, Any], None] | None

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        if hasattr(self.act, "reset"):
            self.act.reset(interface, rng)

    def __call__(self, observation: Any) -> Any:
        action = self.act(observation)
        if self.note is not None:
            self.note(observation, action)
        return action


def environment_of(id: str, workload: Workload, folder: Path, **parameters: Any) -> Any:
    """An environment whose every episode is the workload, from a file in the folder."""
    path = folder / "workload.npz"
    save_workload(workload, path)
    return gym.make(id, workload=str(path), disable_env_checker=True, **parameters).unwrapped


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
    rng = np.random.default_rng(seed)
    _, *played = steps(env, Acting(act, note), seed=seed, workload=workload, rng=rng)
    rewards, info, truncated = [step.reward for step in played], played[-1].info, played[-1].truncated
    record, module = env.record(), env.problem.module("metrics")
    module.validate(record)
    found = module.metrics(record)
    np.testing.assert_equal({name: info["metrics"][name] for name in found}, found)
    if not getattr(env.simulator.parameters, "normalize", False):
        _check_rewards(env, Outcome(info["metrics"], sum(rewards), truncated), "the episode")
    return Played(dict(info["metrics"]), rewards, record)


def play_both(
    exact: Any, tokens: Any, check: Callable[[Any, Any, int], None], workload: Workload | None = None
) -> None:
    """The same actions in exact units and in features have the same rewards, ends and schedules.

    ``check`` is called with both observations and the number of steps before. The second of three episodes
    is left in its midst, and the third one plays the workload, if there is one.
    """
    rng = np.random.default_rng(0)
    for episode in range(3):
        options = {"workload": workload if episode == 2 else None}
        one, two = (env.reset(seed=episode, options=dict(options))[0] for env in (exact, tokens))
        check(one, two, 0)
        step, ended = 0, False
        while not ended and (episode != 1 or step < 20):
            action = sample_action(exact.action_space, one, rng)
            one, *result, _ = exact.step(action)
            two, *same, _ = tokens.step(action)
            assert result == same
            step, ended = step + 1, result[1] or result[2]
            check(one, two, step)
        assert exact.record().digest() == tokens.record().digest()
        if ended:
            exact.problem.module("metrics").validate(exact.record())
