"""Actions of real numbers in scalar and vector environments: what is refused, and what checks find."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from schedgym.core.policy import make_policy
from schedgym.core.simulator import Simulator
from schedgym.core.stepping import ACT
from schedgym.errors import InvalidAction, InvalidParameter
from schedgym.evaluation.episodes import make_env, play
from schedgym.problems.single_job.workload import make_workload
from schedgym.testing import check_problem

ID = "schedgym/PartialValue-v0"
SMALL = {"jobs": 8, "rate": 3.0, "windows": 2.0, "heterogeneity": 30.0, "window": 4}


def hide_repairs(step):
    def wrong(self, command):
        ended = step(self, command)
        self.repaired[:] = False
        return ended

    return wrong


def take_anything(step):
    def wrong(self, command):
        self.actions[:] = np.nan_to_num(self.actions, posinf=1.0)
        return step(self, command)

    return wrong


def never_strict(step):
    def wrong(self, command):
        self.arrays.action_space.rules["strict"] = False
        return step(self, command)

    return wrong


def too_strict(step):
    def wrong(self, command):
        if self.parameters.strict and command[0] == ACT:
            return -1
        return step(self, command)

    return wrong


def refuse_late(step):
    def wrong(self, command):
        ended = step(self, command)
        if ended < 0 and self.parameters.strict:
            self.arrays.schedule.totals["slots"] += 1
        return ended

    return wrong


@pytest.mark.parametrize(
    ("fault", "view", "message"),
    [
        (hide_repairs, "allocation", "actions were repaired, the metric says"),
        (take_anything, "allocation", "must raise InvalidAction, is accepted"),
        (never_strict, "allocation", "(?s)strict=True accepts .*which was repaired"),
        (too_strict, "priority", "which needs no repair"),
        (refuse_late, "allocation", "a refused action changes the schedule"),
    ],
)
def test_the_checks_find_faults(fault, view: str, message: str, monkeypatch) -> None:
    monkeypatch.setattr(Simulator, "step", fault(Simulator.step))
    with pytest.raises(AssertionError, match=message):
        check_problem(ID, **SMALL, view=view)


@pytest.mark.parametrize("options", [3, [], "workload", np.zeros(2)])
def test_options_are_a_dict(options: Any) -> None:
    for env in (gym.make(ID), gym.make_vec(ID, num_envs=2)):
        with pytest.raises(InvalidParameter, match="^options: must be a dict, got "):
            env.reset(options=options)


def test_only_what_save_returns_is_restored() -> None:
    env: Any = gym.make(ID).unwrapped
    env.reset(seed=0)
    for state in (3, None, env.save().snapshot):
        with pytest.raises(InvalidParameter, match="^restore: must be what save has returned, got "):
            env.restore(state)


def test_an_environment_and_a_policy_are_played() -> None:
    env, policy = make_env(ID), make_policy("partial-value/edf")
    for other, acting, named in (
        (gym.make(ID), policy, "env: must be one of make_env, or unwrapped, got OrderEnforcing"),
        (env, lambda observation: 0, "policy: must have reset and __call__, got function"),
        (env, type(policy), "policy: must have reset and __call__, got "),
    ):
        with pytest.raises(InvalidParameter, match=f"^{named}"):
            play(other, acting)


# Plans of a job: rows of a server and its vCPU -------------------------------------------------

PLAN = {"view": "plan", "tasks": 3, "arity": 2}
TWO_TASKS = make_workload([1.0, 1.0], [[1.0, 1.0]] * 2, 9.0, [1.0, 1.0], arity=2)


def begun(**parameters: Any) -> Any:
    """An environment in which the last row of an action does not count."""
    env = gym.make("schedgym/SingleJob-v0", disable_env_checker=True, **PLAN, **parameters).unwrapped
    env.reset(seed=0, options={"workload": TWO_TASKS})
    return env


@pytest.mark.parametrize(("place", "value"), [((0, 1), math.nan), ((1, 0), math.inf), ((1, 1), -math.inf)])
def test_the_first_number_that_is_not_finite_is_named(place, value) -> None:
    action, message = np.zeros((3, 2)), f"action{list(place)}: must be finite, got {value}"
    action[place] = value
    action[2] = math.nan  # does not count
    with pytest.raises(InvalidAction) as caught:
        begun().step(action)
    assert str(caught.value) == message
    vector = gym.make_vec("schedgym/SingleJob-v0", num_envs=3, **PLAN)
    vector.reset(seed=0, options={"workload": TWO_TASKS})
    with pytest.raises(InvalidAction) as caught:
        vector.step(np.stack([np.zeros_like(action), action, action]))
    assert str(caught.value) == message.replace("action", "actions[1]")


@pytest.mark.parametrize("kind", ["i1", "u8", "f2", "f4", "f8", "g"])
def test_any_kind_of_real_numbers_will_do(kind: str) -> None:
    one, other = begun(), begun()
    action = np.zeros((3, 2), dtype=kind)
    action[1, 0] = 1
    first, second = one.step(action), other.step(action.tolist())
    assert first[1] == second[1] and one.record().digest() == other.record().digest()
    assert one.record().server.tolist() == [0, 1]


def test_only_rows_that_count_are_touched() -> None:
    env = begun()
    env.simulator.actions[:] = 7.0
    env.step(np.zeros((3, 2)))
    assert (env.simulator.actions[0, 2:] == 7.0).all() and not (env.simulator.actions[0, :2] == 7.0).any()
    vector: Any = gym.make_vec("schedgym/SingleJob-v0", num_envs=2, **PLAN).unwrapped
    vector.reset(seed=0, options={"workload": TWO_TASKS})
    vector.simulator.actions[:] = 7.0
    vector.step(np.zeros((2, 3, 2)))
    assert (vector.simulator.actions == 7.0).all(axis=2).tolist() == [[False, False, True]] * 2
