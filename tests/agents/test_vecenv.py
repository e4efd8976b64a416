"""SB3VecEnv against DummyVecEnv of scalar environments, and what is its own."""

from __future__ import annotations

import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from schedgym.core.problem import get_problem
from schedgym.errors import InvalidAction, InvalidParameter, UnknownName
from schedgym.problems.queue_delay.workload import make_workload
from schedgym.testing import difference, infeasible_action, sample_action
from tests.test_all_problems import CASES, short, small

pytest.importorskip("stable_baselines3", reason="needs the extra agents")
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize
from stable_baselines3.common.vec_env.base_vec_env import tile_images

from schedgym.agents.vecenv import ModelPolicy, SB3VecEnv, action_masks, make_vec_env
from tests.long import some

ID = "schedgym/QueueDelay-v0"
SMALL = {"tasks": 8, "servers": 3, "window": 4}
#: enough for several episodes; a random pick closes many slots early
STEPS = {"flowtime": 300, "parallel-jct": 150}


def dummy(id: str, num_envs: int, seed: int | None, **parameters: object) -> DummyVecEnv:
    def make() -> gym.Env:
        return Monitor(gym.make(id, disable_env_checker=True, **parameters))

    env = DummyVecEnv([make] * num_envs)
    if seed is not None:
        env.seed(seed)
    return env


def settle(infos: list[dict]) -> list[dict]:
    """Infos without the time that passed, and with the returns rounded as coarsely as both sum them."""
    infos = copy.deepcopy(infos)
    for info in infos:
        if "episode" in info:
            assert 0.0 <= info["episode"].pop("t") < 1e5
            info["episode"]["r"] = float(f"{info['episode']['r']:.9g}")
    return infos


def compare(mine: tuple, theirs: tuple, where: str) -> None:
    for name, a, b in zip(("observation", "rewards", "dones"), mine, theirs, strict=False):
        assert not (found := difference(dict(a) if name == "observation" else a, b)), (
            f"{where}, {name}{found}"
        )
    assert not (found := difference(settle(mine[3]), settle(theirs[3]))), f"{where}, infos{found}"
    for a, b in zip(mine[3], theirs[3], strict=True):
        assert {k: type(v) for k, v in a.items()} == {k: type(v) for k, v in b.items()}, where
        assert {k: type(v) for k, v in a.get("metrics", {}).items()} == {
            k: type(v) for k, v in b.get("metrics", {}).items()
        }


@pytest.mark.parametrize(("id", "view"), some(CASES, of=3))
def test_steps_equal_those_of_dummy_vec_env(id: str, view: dict[str, object]) -> None:
    num_envs = 3
    parameters = short(id, **view)
    mine, theirs = make_vec_env(id, num_envs, 5, **parameters), dummy(id, num_envs, 5, **parameters)
    assert mine.observation_space == theirs.observation_space
    assert mine.action_space == theirs.action_space
    rng = np.random.default_rng(0)
    first, second = mine.reset(), theirs.reset()
    assert not difference(dict(first), dict(second))
    assert mine.reset_infos == theirs.reset_infos
    ended, repaired = 0, 0
    for step in range(STEPS.get(get_problem(id).name, 90)):
        rows = [{name: array[i] for name, array in first.items()} for i in range(num_envs)]
        actions = np.array([sample_action(mine.action_space, row, rng) for row in rows])
        if step % 7 == 3:
            bad = infeasible_action(mine.action_space, rows[1], rng)
            if bad is not None:
                actions[1] = bad
        kept = copy.deepcopy(first)
        result = mine.step(actions)
        assert not difference(first, kept), "an observation handed out has changed"
        compare(result, theirs.step(actions), f"step {step}")
        first = result[0]
        ended += int(result[2].sum())
        repaired += sum(info["repaired"] for info in result[3])
        if step == 60:  # goes on to the next episodes
            first = mine.reset()
            assert not difference(dict(first), dict(theirs.reset()))
    assert ended >= num_envs


@pytest.mark.parametrize(("id", "view"), some(CASES, of=3))
def test_masks(id: str, view: dict[str, object]) -> None:
    parameters = small(id, **view)
    env = make_vec_env(id, 3, 1, **parameters)
    reference = dummy(id, 3, 1, **parameters)
    observation = env.reset()
    reference.reset()
    if isinstance(env.action_space, spaces.Box):
        assert not env.has_attr("action_masks")
        with pytest.raises(InvalidParameter, match="action_masks"):
            env.action_masks()
        with pytest.raises(AttributeError):
            env.env_method("action_masks")
        return
    assert env.has_attr("action_masks")
    rng = np.random.default_rng(0)
    narrow = 0
    for _ in range(25):
        masks = env.action_masks()
        assert masks.dtype == np.bool_ and masks.any(axis=1).all()
        rows = env.env_method("action_masks")
        assert not difference(np.stack(rows), masks)
        assert not difference(env.env_method("action_masks", indices=[2, 0]), [masks[2], masks[0]])
        assert not difference(env.get_attr("action_masks", 1)[0](), masks[1])
        if isinstance(env.action_space, spaces.Discrete):
            if "action_mask" in observation:
                assert not difference(np.stack(reference.env_method("action_masks")), masks)
            actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        else:
            tasks, servers = env.action_space.nvec.tolist()
            assert masks.shape == (3, tasks + servers)
            given = observation.get("action_mask", np.ones((3, tasks - 1, servers)))
            for pairs, mask in zip(given.astype(bool), masks, strict=True):
                assert mask[:tasks].tolist() == [*pairs.any(axis=1).tolist(), True]
                assert mask[tasks:].tolist() == (pairs.any(axis=0) | ~pairs.any()).tolist()
            actions = np.array(
                [
                    [rng.choice(np.flatnonzero(m[:tasks])), rng.choice(np.flatnonzero(m[tasks:]))]
                    for m in masks
                ]
            )
        narrow += int((~masks).sum())
        observation, _, _, infos = env.step(actions)
        reference.step(actions)
        if isinstance(env.action_space, spaces.Discrete) and "action_mask" in observation:
            assert not any(info["repaired"] for info in infos)
    if "action_mask" in observation and parameters["view"] not in ("rule", "fair-rule"):
        assert narrow > 0


def test_masks_are_all_true_where_there_is_none() -> None:
    for view, choices in (("pick", 5), ("placement", 8)):
        env = make_vec_env(ID, 2, 0, **SMALL, view=view, action_mask=False)
        env.reset()
        assert env.action_masks().tolist() == [[True] * choices] * 2


def test_masks_of_a_batch_of_one_observation() -> None:
    env = make_vec_env(ID, 2, 0, **SMALL)
    observation = env.reset()
    assert not difference(action_masks(env.action_space, observation, 2), env.action_masks())
    masks = env.action_masks()
    masks[:] = False
    assert env.action_masks().any(), "a mask handed out is the buffer itself"


def test_truncations_are_marked() -> None:
    """A task that only a server can hold which is never released is stranded: the episode truncates."""
    parameters = {"servers": 2, "tasks": 3, "window": 4, "scope": "released"}
    workload = make_workload([(0, 1, 0.5, 0.5), (0, 1, 0.2, 0.2), (0, 1, 0.9, 0.9)], [(0.6, 0.6), (1, 1)])
    mine, theirs = make_vec_env(ID, 2, 0, **parameters), dummy(ID, 2, 0, **parameters)
    marks = []
    for env in (mine, theirs):
        env.set_options({"workload": workload, "repeat": True})
        env.reset()
    for _ in range(30):
        close = np.array([4, int(mine.action_masks()[1].argmax())])
        result = mine.step(close)
        compare(result, theirs.step(close), "truncating")
        marks += [info["TimeLimit.truncated"] for info in result[3] if "terminal_observation" in info]
    assert True in marks and False in marks
    mine.truncations = False  # every end is one
    marks = [info["TimeLimit.truncated"] for _ in range(30) for info in mine.step(np.array([4, 4]))[3]]
    assert not any(marks)


def test_options_of_single_environments() -> None:
    mine, theirs = make_vec_env(ID, 3, 7, **SMALL), dummy(ID, 3, 7, **SMALL)
    workload = make_workload([(0, 2.0, 0.5, 0.5)] * 5, [(1, 1), (0.5, 0.5), (1, 0.5)])
    for options in (
        [{}, {"workload": workload}, {"episode": 4}],
        [{"episode": 1}, {}, {"workload": workload, "repeat": True}],
        {"episode": 2},
        None,
        [{}, {}, {}],
        [{}, {"workload": workload}, {}],
    ):
        for env in (mine, theirs):
            env.set_options(options)
        assert not difference(dict(mine.reset()), dict(theirs.reset())), options
        for step in range(20):
            actions = mine.action_masks().argmax(axis=1)
            compare(mine.step(actions), theirs.step(actions), f"{options}, step {step}")
    with pytest.raises(UnknownName, match="did you mean 'episode'"):
        mine.set_options({"episodes": 2})
        mine.reset()


def test_seeds() -> None:
    one, other = make_vec_env(ID, 2, 3, **SMALL), make_vec_env(ID, 3, **SMALL)
    assert other.seed(2) == [2, 3, 4]
    first, second = one.reset(), other.reset()
    for name in first:
        assert not difference(first[name], second[name][1:])
    assert difference(dict(one.reset()), dict(first)), "a seed serves one reset only"
    for _ in range(2):
        other.seed(None)  # SB3: a random one
    assert difference(dict(make_vec_env(ID, 2, **SMALL).reset()), dict(make_vec_env(ID, 2, **SMALL).reset()))


def test_arguments_are_checked() -> None:
    with pytest.raises(UnknownName, match="did you mean 'view'"):
        make_vec_env(ID, views="pick")
    with pytest.raises(InvalidParameter, match="num_envs"):
        make_vec_env(ID, 0)
    with pytest.raises(InvalidParameter, match="SameStep"):
        SB3VecEnv(gym.make_vec(ID, 2))
    with pytest.raises(InvalidParameter, match="copies"):
        SB3VecEnv(gym.make_vec(ID, 2, autoreset_mode="SameStep", copy=False))
    env = make_vec_env(ID, 2, 0, **SMALL, strict=True)
    env.reset()
    with pytest.raises(InvalidAction, match=r"actions\[1\]"):
        env.step(np.array([0, 9]))
    with pytest.raises(InvalidAction, match="shape"):
        env.step(np.array([0]))


def test_attributes_and_methods() -> None:
    env = make_vec_env(ID, 3, 0, **SMALL, render_mode="rgb_array")
    assert isinstance(env, VecEnv) and env.unwrapped is env
    assert env.get_attr("interface")[2].sizes["window"] == 4
    assert env.get_attr("action_space", 1) == [spaces.Discrete(5)]
    assert env.get_attr("observation_space", [0, 2])[1] == env.observation_space
    assert env.render_mode == "rgb_array"
    assert not env.has_attr("no_such_thing") and env.has_attr("simulator")
    with pytest.raises(AttributeError, match="no_such_thing"):
        env.get_attr("no_such_thing")
    with pytest.raises(AttributeError, match="step"):
        env.env_method("step", 0)
    with pytest.raises(IndexError):
        env.get_attr("interface", 3)
    env.set_attr("label", "a")
    assert env.get_attr("label", -1) == ["a"]
    with pytest.raises(InvalidParameter, match="shared"):
        env.set_attr("label", "b", indices=[0, 1])
    assert env.env_is_wrapped(Monitor) == [True] * 3
    assert env.env_is_wrapped(gym.wrappers.TimeLimit, [0]) == [False]
    env.reset()
    records = env.env_method("record", indices=[1])
    assert records[0].workload == env.env.simulator.workload(1)
    images = env.get_images()
    assert len(images) == 3 and images[0].dtype == np.uint8
    assert not difference(env.render(), tile_images(images))
    assert make_vec_env(ID, 2, 0, **SMALL).get_images() == [None, None]
    text = make_vec_env(ID, 2, 0, **SMALL, render_mode="ansi")
    text.reset()
    assert [type(picture) for picture in text.env_method("render")] == [str, str]
    env.close()


def test_pickled_and_copied_in_the_middle() -> None:
    env = make_vec_env(ID, 3, 0, **SMALL)
    env.reset()
    for step in range(60):
        actions = env.action_masks().argmax(axis=1)
        if step % 20 == 5:
            others = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
            for other in others:
                compare(copy.deepcopy(other).step(actions), copy.deepcopy(env).step(actions), "a copy")
        env.step(actions)


@pytest.mark.parametrize(("id", "view"), some(CASES, of=3))
def test_a_state_is_arrays_from_which_all_goes_on(id: str, view: dict[str, object]) -> None:
    parameters = short(id, **view)
    env, other = make_vec_env(id, 3, 5, **parameters), make_vec_env(id, 3, 8, **parameters)
    env.recording = other.recording = True
    rng = np.random.default_rng(0)
    observation = env.reset()
    state: dict[str, np.ndarray] = {}
    for step in range(90):
        if step in (0, 1, 40, 41):
            state = env.get_state()
            assert all(isinstance(array, np.ndarray) and array.dtype != object for array in state.values())
            assert not difference(dict(other.set_state(state)), dict(observation))
            assert not difference(other.get_state(), state)
        rows = [{name: array[i] for name, array in observation.items()} for i in range(3)]
        actions = np.array([sample_action(env.action_space, row, rng) for row in rows])
        result = env.step(actions)
        compare(other.step(actions), result, f"step {step}")
        observation = result[0]


def test_actions_of_finished_episodes_are_forgotten() -> None:
    env = make_vec_env(ID, 3, 5, **SMALL)
    env.recording = True
    env.reset()
    for _ in range(700):
        env.step(env.action_masks().argmax(axis=1))
    assert len(env._history._played) < 300
    assert len(env.get_state()["actions"]) < 60


def test_an_unmasked_policy_in_a_masked_view_is_warned_of_once() -> None:
    """Infeasible actions are repaired: nothing else would tell that a policy does not see the mask."""
    env = make_vec_env(ID, 3, 5, **SMALL)
    env.reset()
    for _ in range(50):  # what is open is played: nothing to say
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            env.step(env.env.simulator.observation["action_mask"].argmax(axis=1))
    with pytest.warns(UserWarning, match="MaskablePPO"):
        while not (env.env.simulator.observation["action_mask"][:, 0] == 0).any():
            env.step(env.env.simulator.observation["action_mask"].argmax(axis=1))
        env.step(np.zeros(3, dtype=np.int64))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(50):
            env.step(np.zeros(3, dtype=np.int64))
    asked = make_vec_env(ID, 3, 5, **SMALL)
    asked.reset()
    asked.action_masks()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(50):
            asked.step(np.zeros(3, dtype=np.int64))


def test_wrapped_in_vec_normalize() -> None:
    env = VecNormalize(make_vec_env(ID, 3, 0, **SMALL), norm_obs=False)
    env.reset()
    for _ in range(40):
        _, rewards, dones, _ = env.step(env.env_method("action_masks")[0].argmax() * np.ones(3, dtype=int))
        assert rewards.dtype == np.float32
    assert env.has_attr("action_masks")


def test_evaluate_policy_takes_its_episodes() -> None:
    class First:
        def predict(self, observation, state=None, episode_start=None, deterministic=True):
            return observation["action_mask"].argmax(axis=1), state

    env = make_vec_env(ID, 3, 0, **SMALL)
    returns, lengths = evaluate_policy(First(), env, n_eval_episodes=6, return_episode_rewards=True)
    assert len(returns) == 6 and min(lengths) >= 8 and max(returns) <= 0.0


class Count(BaseCallback):
    def _on_step(self) -> bool:
        self.locals["rewards"]  # noqa: B018
        return True


def test_ppo_of_stable_baselines3_runs_and_logs_episodes() -> None:
    from stable_baselines3 import PPO

    env = make_vec_env(ID, 4, 0, **SMALL, observation="features")
    model = PPO("MultiInputPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")
    model.learn(256, callback=Count())
    assert len(model.ep_info_buffer) > 3
    assert {"r", "l", "t"} <= set(model.ep_info_buffer[0])


class Model:
    """Takes the last open choice, or the middle of a box, and keeps what it was asked."""

    def __init__(self, action_space, observation_space) -> None:
        self.action_space, self.observation_space = action_space, observation_space

    def predict(self, observation, deterministic, action_masks):
        assert deterministic and self.observation_space.contains(observation)
        assert action_masks.shape == (1, self.action_space.n) and action_masks.any()
        return np.array(np.flatnonzero(action_masks[0])[-1]), None


class Unmasked(Model):
    def predict(self, observation, deterministic):
        assert self.observation_space.contains(observation)
        return np.zeros(self.action_space.shape, dtype=np.float32), None


def test_a_model_is_evaluated_beside_baselines() -> None:
    from schedgym.evaluation import evaluate

    view = {"view": "pick", "observation": "features", "window": 4}
    size = {"tasks": 30, "servers": 3}
    env = make_vec_env(ID, 1, **size, **view)
    policy = ModelPolicy(Model(env.action_space, env.observation_space), ID, **view)
    frame = evaluate(ID, {"model": policy, "fcfs": "fcfs"}, 2, parameters=size)
    other = evaluate(ID, {"fcfs": "fcfs"}, 2, parameters=size)
    assert set(frame.policy) == {"model", "fcfs"}
    own = frame[frame.policy == "fcfs"].reset_index(drop=True)
    assert own.equals(other)
    with pytest.raises(InvalidParameter, match="trained in schedgym/QueueDelay-v0, not in"):
        policy.acting_parameters("schedgym/PartialValue-v0", {})
    with pytest.raises(UnknownName, match="view"):
        ModelPolicy(policy.model, ID, view="none")


def test_a_model_with_scores() -> None:
    from schedgym.evaluation import evaluate

    id, view = "schedgym/PartialValue-v0", {"view": "priority", "observation": "features", "window": 8}
    env = make_vec_env(id, 1, **view)
    policy = ModelPolicy(Unmasked(env.action_space, env.observation_space), id, **view)
    frame = evaluate(id, {"model": policy, "s-greedy": "s-greedy"}, 1, parameters={"jobs": 10})
    assert (frame[frame.metric == "value"].value > 0).all()
    program = ModelPolicy(policy.model, id, **view, serving="program")
    assert program.acting_parameters(id, {"jobs": 10})["serving"] == "program"
    for given in ({}, {"serving": "order"}):
        assert "serving" not in program.acting_parameters(id, {"model": "discrete", **given})
