"""Longer workloads, given ones, zero-copy buffers, and what reset refuses."""

import gymnasium as gym
import numpy as np
import pytest

import schedgym
from schedgym.errors import InvalidParameter
from schedgym.problems.queue_delay.problem import QueueDelayParameters
from schedgym.problems.queue_delay.workload import generate, make_source, make_workload
from tests.tables import table

ID = "schedgym/QueueDelay-v0"
SERVERS = [(1, 1), (0.5, 0.5)]
SOURCE = make_source(QueueDelayParameters(tasks=12, servers=2))
MIDDLE = make_workload([(0.1 * i, 3 + i, 0.3, 0.2) for i in range(12)], SERVERS)


def test_many_running_tasks_after_growth():
    """More tasks run at once than the arrays first had room for."""
    crowd = make_workload([(0, 50 - i, 0.01, 0.01) for i in range(40)], SERVERS)
    env = gym.make(ID, disable_env_checker=True, tasks=3, servers=2, window=4, view="rule")
    env.reset(seed=0)
    env.reset(options={"workload": crowd})
    done = False
    while not done:
        _, _, terminated, truncated, info = env.step(0)
        done = terminated or truncated
    record = env.unwrapped.record()
    assert record.start.tolist() == [0.0] * 40
    assert info["metrics"]["makespan"] == 50 and info["metrics"]["mean_delay"] == 0


@pytest.mark.parametrize("kind", ["scalar", "vector"])
def test_zero_copy_observations_cannot_be_written_to(kind):
    if kind == "scalar":
        env = gym.make(ID, disable_env_checker=True, copy=False)
    else:
        env = gym.make_vec(ID, num_envs=2, copy=False)
    observation, _ = env.reset(seed=0)
    for name in ("remaining", "capacity", "execution"):
        with pytest.raises(ValueError, match="read-only"):
            observation[name][...] = 0


def test_given_workloads_are_taken_back():
    env = gym.make(ID, tasks=12, servers=2).unwrapped
    for back in ({"workload": None}, {"repeat": False}):
        env.reset(seed=0, options={"workload": MIDDLE, "repeat": True})
        env.reset()
        assert env.record().workload == MIDDLE
        env.reset(seed=3, options=back)
        assert env.record().workload == generate(3, 0, SOURCE)
        env.reset()
        assert env.record().workload == generate(3, 1, SOURCE)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        *table(__file__, "test_reset_refuses_bad_options_and_changes_nothing"),
        ({"repeat": "no", "workload": MIDDLE}, "repeat must be True or False"),
        ({"reset_mask": np.array([True])}, "unknown reset option 'reset_mask'"),
    ],
)
def test_reset_refuses_bad_options_and_changes_nothing(options, match):
    env = gym.make(ID, tasks=12, servers=2).unwrapped
    env.reset(seed=1)
    with pytest.raises((InvalidParameter, schedgym.UnknownName), match=match):
        env.reset(seed=9, options=options)
    env.reset()
    assert env.record().workload == generate(1, 1, SOURCE)


@pytest.mark.parametrize("seed", [[1, -1], 1.5, ["a", "b"], [1], True])
def test_a_vector_refuses_bad_seeds_and_changes_nothing(seed):
    envs = gym.make_vec(ID, num_envs=2, tasks=12, servers=2)
    envs.reset(seed=1)
    with pytest.raises(InvalidParameter, match="seed"):
        envs.reset(seed=seed)
    envs.reset()
    assert envs.record(0).workload == generate(1, 1, SOURCE)


def test_an_interface_is_a_copy_of_the_parameters(tmp_path):
    path = str(tmp_path / "w.json")
    schedgym.save_workload(MIDDLE, path)
    env = gym.make(ID, workload=path).unwrapped
    assert env.interface.parameters["tasks"] == 12 and env.interface.sizes["servers"] == 2
    assert gym.make(ID, tasks=np.int64(5)).unwrapped.interface.parameters["tasks"] == 5
    env.interface.parameters["view"] = "route"
    assert env.simulator.parameters.view == "pick"


def test_an_execution_that_vanishes_in_the_clock_gives_finite_metrics():
    workload = make_workload([(1e10, 1e-7, 1, 1)], [(1, 1)])
    env = gym.make(ID, tasks=1, servers=1)
    env.reset(options={"workload": workload})
    *_, info = env.step(0)
    while np.isinf(info["metrics"]["makespan"]):
        *_, info = env.step(32)
    assert all(np.isfinite(value) for value in info["metrics"].values())
