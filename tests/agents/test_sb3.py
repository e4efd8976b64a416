"""What stable-baselines3 uses: SB3VecEnv against DummyVecEnv of scalar environments, and the policies."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from schedgym.agents.network import NEVER
from schedgym.agents.views import make_layout
from schedgym.core.problem import get_problem
from schedgym.errors import InvalidAction, InvalidParameter, UnknownName
from schedgym.problems.queue_delay.workload import make_workload
from schedgym.testing import difference, infeasible_action, sample_action
from tests.agents import cases
from tests.agents.cases import observations
from tests.lazy import Lazy
from tests.long import some
from tests.test_all_problems import CASES, short, small

torch = Lazy("torch")
sb3 = Lazy("schedgym.agents.sb3", "stable_baselines3")
stable_baselines3 = Lazy("stable_baselines3")
vec_env = Lazy("stable_baselines3.common.vec_env")

ID = "schedgym/QueueDelay-v0"
SMALL = {"tasks": 8, "servers": 3, "window": 4}
#: enough for several episodes; a random pick closes many slots early
STEPS = {"flowtime": 300, "parallel-jct": 150}


def dummy(id: str, num_envs: int, seed: int | None, **parameters: object) -> Any:
    def make() -> gym.Env:
        return stable_baselines3.common.monitor.Monitor(gym.make(id, disable_env_checker=True, **parameters))

    env = vec_env.DummyVecEnv([make] * num_envs)
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


@pytest.mark.parametrize(("id", "view"), some(CASES, of=6, late=4))
def test_steps_equal_those_of_dummy_vec_env(id: str, view: dict[str, object]) -> None:
    num_envs = 3
    parameters = short(id, **view)
    mine, theirs = sb3.make_vec_env(id, num_envs, 5, **parameters), dummy(id, num_envs, 5, **parameters)
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


@pytest.mark.parametrize(("id", "view"), some(CASES, of=3, late=4))
def test_masks(id: str, view: dict[str, object]) -> None:
    parameters = small(id, **view)
    env = sb3.make_vec_env(id, 3, 1, **parameters)
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
        env = sb3.make_vec_env(ID, 2, 0, **SMALL, view=view, action_mask=False)
        env.reset()
        assert env.action_masks().tolist() == [[True] * choices] * 2


def test_masks_of_a_batch_of_one_observation() -> None:
    env = sb3.make_vec_env(ID, 2, 0, **SMALL)
    observation = env.reset()
    assert not difference(sb3.action_masks(env.action_space, observation, 2), env.action_masks())
    masks = env.action_masks()
    masks[:] = False
    assert env.action_masks().any(), "a mask handed out is the buffer itself"


def test_truncations_are_marked() -> None:
    """A task that only a server can hold which is never released is stranded: the episode truncates."""
    parameters = {"servers": 2, "tasks": 3, "window": 4, "scope": "released"}
    workload = make_workload([(0, 1, 0.5, 0.5), (0, 1, 0.2, 0.2), (0, 1, 0.9, 0.9)], [(0.6, 0.6), (1, 1)])
    mine, theirs = sb3.make_vec_env(ID, 2, 0, **parameters), dummy(ID, 2, 0, **parameters)
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
    mine, theirs = sb3.make_vec_env(ID, 3, 7, **SMALL), dummy(ID, 3, 7, **SMALL)
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
    one, other = sb3.make_vec_env(ID, 2, 3, **SMALL), sb3.make_vec_env(ID, 3, **SMALL)
    assert other.seed(2) == [2, 3, 4]
    first, second = one.reset(), other.reset()
    for name in first:
        assert not difference(first[name], second[name][1:])
    assert difference(dict(one.reset()), dict(first)), "a seed serves one reset only"
    for _ in range(2):
        other.seed(None)  # SB3: a random one
    assert difference(
        dict(sb3.make_vec_env(ID, 2, **SMALL).reset()), dict(sb3.make_vec_env(ID, 2, **SMALL).reset())
    )


def test_arguments_are_checked() -> None:
    with pytest.raises(InvalidParameter, match="SameStep"):
        sb3.SB3VecEnv(gym.make_vec(ID, 2))
    with pytest.raises(InvalidParameter, match="copies"):
        sb3.SB3VecEnv(gym.make_vec(ID, 2, autoreset_mode="SameStep", copy=False))
    env = sb3.make_vec_env(ID, 2, 0, **SMALL, strict=True)
    env.reset()
    with pytest.raises(InvalidAction, match=r"actions\[1\]"):
        env.step(np.array([0, 9]))
    with pytest.raises(InvalidAction, match="shape"):
        env.step(np.array([0]))


def test_attributes_and_methods() -> None:
    env = sb3.make_vec_env(ID, 3, 0, **SMALL, render_mode="rgb_array")
    assert isinstance(env, vec_env.VecEnv) and env.unwrapped is env
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
    assert env.env_is_wrapped(stable_baselines3.common.monitor.Monitor) == [True] * 3
    assert env.env_is_wrapped(gym.wrappers.TimeLimit, [0]) == [False]
    env.reset()
    records = env.env_method("record", indices=[1])
    assert records[0].workload == env.env.simulator.workload(1)
    images = env.get_images()
    assert len(images) == 3 and images[0].dtype == np.uint8
    assert not difference(env.render(), vec_env.base_vec_env.tile_images(images))
    assert sb3.make_vec_env(ID, 2, 0, **SMALL).get_images() == [None, None]
    text = sb3.make_vec_env(ID, 2, 0, **SMALL, render_mode="ansi")
    text.reset()
    assert [type(picture) for picture in text.env_method("render")] == [str, str]
    env.close()


def test_pickled_and_copied_in_the_middle() -> None:
    env = sb3.make_vec_env(ID, 3, 0, **SMALL)
    env.reset()
    for step in range(60):
        actions = env.action_masks().argmax(axis=1)
        if step % 20 == 5:
            others = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
            for other in others:
                compare(copy.deepcopy(other).step(actions), copy.deepcopy(env).step(actions), "a copy")
        env.step(actions)


@pytest.mark.parametrize(("id", "view"), some(CASES, of=6, late=4))
def test_a_state_is_arrays_from_which_all_goes_on(id: str, view: dict[str, object]) -> None:
    parameters = short(id, **view)
    env, other = sb3.make_vec_env(id, 3, 5, **parameters), sb3.make_vec_env(id, 3, 8, **parameters)
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


def test_an_unmasked_policy_in_a_masked_view_is_warned_of_once() -> None:
    """Infeasible actions are repaired: nothing else would tell that a policy does not see the mask."""
    env = sb3.make_vec_env(ID, 3, 5, **SMALL)
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
    asked = sb3.make_vec_env(ID, 3, 5, **SMALL)
    asked.reset()
    asked.action_masks()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(50):
            asked.step(np.zeros(3, dtype=np.int64))


def test_wrapped_in_vec_normalize() -> None:
    env = vec_env.VecNormalize(sb3.make_vec_env(ID, 3, 0, **SMALL), norm_obs=False)
    env.reset()
    for _ in range(40):
        _, rewards, dones, _ = env.step(env.env_method("action_masks")[0].argmax() * np.ones(3, dtype=int))
        assert rewards.dtype == np.float32
    assert env.has_attr("action_masks")


def test_evaluate_policy_takes_its_episodes() -> None:
    class First:
        def predict(self, observation, state=None, episode_start=None, deterministic=True):
            return observation["action_mask"].argmax(axis=1), state

    env = sb3.make_vec_env(ID, 3, 0, **SMALL)
    returns, lengths = stable_baselines3.common.evaluation.evaluate_policy(
        First(), env, n_eval_episodes=6, return_episode_rewards=True
    )
    assert len(returns) == 6 and min(lengths) >= 8 and max(returns) <= 0.0


def test_ppo_of_stable_baselines3_runs_and_logs_episodes() -> None:
    class Count(stable_baselines3.common.callbacks.BaseCallback):  # type: ignore[misc]
        def _on_step(self) -> bool:
            self.locals["rewards"]  # noqa: B018
            return True

    env = sb3.make_vec_env(ID, 4, 0, **SMALL, observation="features")
    model = stable_baselines3.PPO(
        "MultiInputPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu"
    )
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
    env = sb3.make_vec_env(ID, 1, **size, **view)
    policy = sb3.ModelPolicy(Model(env.action_space, env.observation_space), ID, **view)
    frame = evaluate(ID, {"model": policy, "fcfs": "fcfs"}, 2, parameters=size)
    other = evaluate(ID, {"fcfs": "fcfs"}, 2, parameters=size)
    assert set(frame.policy) == {"model", "fcfs"}
    own = frame[frame.policy == "fcfs"].reset_index(drop=True)
    assert own.equals(other)
    with pytest.raises(InvalidParameter, match="trained in schedgym/QueueDelay-v0, not in"):
        policy.acting_parameters("schedgym/PartialValue-v0", {})
    with pytest.raises(UnknownName, match="view"):
        sb3.ModelPolicy(policy.model, ID, view="none")


def test_a_model_with_scores() -> None:
    from schedgym.evaluation import evaluate

    id, view = "schedgym/PartialValue-v0", {"view": "priority", "observation": "features", "window": 8}
    env = sb3.make_vec_env(id, 1, **view)
    policy = sb3.ModelPolicy(Unmasked(env.action_space, env.observation_space), id, **view)
    frame = evaluate(id, {"model": policy, "s-greedy": "s-greedy"}, 1, parameters={"jobs": 10})
    assert (frame[frame.metric == "value"].value > 0).all()
    program = sb3.ModelPolicy(policy.model, id, **view, serving="program")
    assert program.acting_parameters(id, {"jobs": 10})["serving"] == "program"
    for given in ({}, {"serving": "order"}):
        assert "serving" not in program.acting_parameters(id, {"model": "discrete", **given})


# The network as a policy -----------------------------------------------------------------------


def make_policy(id: str, view: str, num_envs: int = 6, **extra: Any) -> tuple[Any, Any, Any]:
    """An environment, its layout, and a policy whose scores matter: they are near zero at first."""
    env = sb3.make_vec_env(id, num_envs, 3, **small(id, view=view, observation="features", **extra))
    layout = make_layout(env.env.interface.problem, view, env.observation_space, env.action_space)
    torch.manual_seed(4)
    spaces = env.observation_space, env.action_space
    policy = sb3.TokenPolicy(*spaces, lambda _: 1e-3, problem=layout.problem, view=view, log_std=-0.5)
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            if "/out/" in name or "/value/1/" in name:
                parameter.copy_(torch.randn_like(parameter))
    return env, layout, policy


def flat(layout: Any, actions: Any) -> Any:
    """The index of the score that an action is."""
    if layout.kind == "choice":
        return actions
    return np.minimum(actions[:, 0] * layout.shape[1] + actions[:, 1], layout.size - 1)


@pytest.mark.parametrize(("id", "view"), cases.DISCRETE)
def test_masks_are_never_violated(id: str, view: str) -> None:
    env, _, policy = make_policy(id, view, strict=True)  # an infeasible action raises
    for deterministic in (True, False):
        observation = env.reset()
        for _ in range(40):
            actions, _ = policy.predict(observation, deterministic=deterministic)
            observation, _, _, infos = env.step(actions)
            assert not any(info["repaired"] for info in infos)


@pytest.mark.parametrize("view", ["pick", "placement", "route", "rule"])
def test_sampled_actions_are_open_and_follow_their_probabilities(view: str) -> None:
    env, layout, policy = make_policy(ID, view, num_envs=1)
    observation = next(iter(observations(env.env, layout, 1)))
    many = policy.obs_to_tensor(
        {name: np.repeat(array, 5000, axis=0) for name, array in observation.items()}
    )[0]
    with torch.no_grad():
        actions, values, log_prob = policy.forward(many)
        again, log_prob_again, entropy = policy.evaluate_actions(many, actions)
        scores = policy.network.scores(policy.obs_to_tensor(observation)[0])
    assert torch.equal(values, again) and torch.equal(log_prob, log_prob_again)
    index = flat(layout, actions.numpy())
    open_ = layout.mask(observation)[0]
    assert open_[index].all()
    probabilities = torch.softmax(scores, dim=-1).numpy()[0]
    assert probabilities[~open_].sum() == 0.0
    np.testing.assert_allclose(np.bincount(index, minlength=layout.size) / 5000, probabilities, atol=0.03)
    np.testing.assert_allclose(log_prob.numpy(), np.log(probabilities[index]), rtol=1e-4, atol=1e-5)
    kept = probabilities[probabilities > 0]
    assert entropy[0].item() == pytest.approx(-(kept * np.log(kept)).sum(), rel=1e-4)


@pytest.mark.parametrize(("id", "view"), [case for case in cases.VIEWS if case not in cases.DISCRETE])
def test_boxes(id: str, view: str) -> None:
    """Only tokens that are there have a probability; actions are in the Box; scores survive it."""
    env, layout, policy = make_policy(id, view)
    assert policy.log_std.shape == (1,)
    for observation in observations(env.env, layout, 6):
        tensors = policy.obs_to_tensor(observation)[0]
        with torch.no_grad():
            sampled, values, log_prob = policy.forward(tensors)
            again, log_prob_again, entropy = policy.evaluate_actions(tensors, sampled)
        assert torch.equal(values, again) and torch.allclose(log_prob, log_prob_again)
        mask = layout.segments[0].tokens[0].mask
        there = np.ones((env.num_envs, layout.size)) if mask is None else observation[mask] != 0
        count = there.sum(axis=1)
        each = 0.5 + 0.5 * np.log(2 * np.pi) - 0.5
        np.testing.assert_allclose(entropy.numpy(), count * each, rtol=1e-5)
        mean = policy.network.scores(tensors).detach().numpy()
        wanted = -0.5 * ((sampled.numpy() - mean) / np.exp(-0.5)) ** 2 + 0.5 - 0.5 * np.log(2 * np.pi)
        np.testing.assert_allclose(
            log_prob.numpy(), np.where(there, wanted, 0.0).sum(axis=1), rtol=1e-4, atol=1e-4
        )
        action = policy.unscale_action(sampled.numpy())
        assert action.shape == (env.num_envs, layout.size)
        for i, row in enumerate(action):
            assert (env.action_space.low <= row).all() and (row <= env.action_space.high).all()
            kept = np.flatnonzero(there[i])
            if layout.transform != "clip":
                order = np.argsort(sampled.numpy()[i, kept])
                assert (np.diff(row[kept][order]) >= 0).all()
            if layout.transform == "weight" and len(kept):
                assert row[kept].max() == 1.0
        predicted, _ = policy.predict(observation, deterministic=True)
        expected = layout.decode(mean, observation)
        assert np.array_equal(predicted[there != 0], expected[there != 0])


def test_arguments_of_the_policy_are_checked() -> None:
    for arguments in ({"width": 0}, {"rounds": 3}, {"use_sde": True}, {"view": "picks"}):
        env = sb3.make_vec_env(ID, 1, 0, **SMALL, observation="features")
        given = {"problem": "queue-delay", "view": "pick", **arguments}
        (name,) = arguments
        with pytest.raises((InvalidParameter, UnknownName), match=name):
            sb3.TokenPolicy(env.observation_space, env.action_space, lambda _: 1e-3, **given)
    plain = sb3.make_vec_env(ID, 1, 0)
    with pytest.raises(InvalidParameter, match="features"):
        sb3.TokenPolicy(
            plain.observation_space, plain.action_space, lambda _: 1e-3, problem="queue-delay", view="pick"
        )


def test_the_first_weights_follow_the_seed_and_scores_begin_near_zero() -> None:
    env = sb3.make_vec_env(ID, 6, 3, **SMALL, observation="features")
    given: Any = {"n_steps": 16, "batch_size": 16, "device": "cpu"}
    given["policy_kwargs"] = {"problem": "queue-delay", "view": "pick"}

    def first(seed: int) -> dict[str, np.ndarray]:
        policy = stable_baselines3.PPO(sb3.TokenPolicy, env, seed=seed, **given).policy
        scores = policy.network.scores(policy.obs_to_tensor(env.reset())[0]).detach().numpy()
        assert np.abs(scores[scores > NEVER]).max() < 0.2
        return policy.network.get_weights()

    one, same, other = first(1), first(1), first(2)
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert any(not np.array_equal(one[name], other[name]) for name in one)


def test_a_model_is_saved_and_loaded_by_stable_baselines3(tmp_path) -> None:
    env = sb3.make_vec_env(ID, 6, 3, **SMALL, observation="features")
    network = {"problem": "queue-delay", "view": "pick", "width": 8}
    model = stable_baselines3.PPO(
        sb3.TokenPolicy, env, n_steps=16, batch_size=16, device="cpu", policy_kwargs=network
    ).learn(96)
    model.save(tmp_path / "model")
    loaded = stable_baselines3.PPO.load(tmp_path / "model", device="cpu")
    observation = env.reset()
    mine, theirs = (own.predict(observation, deterministic=True)[0] for own in (model, loaded))
    assert np.array_equal(mine, theirs)
    expected = model.policy.network.get_weights()
    for name, array in loaded.policy.network.get_weights().items():
        assert np.array_equal(array, expected[name])


@pytest.mark.parametrize("view", ["placement", "pick"])
def test_observations_are_stacked(view: str) -> None:
    """VecFrameStack takes tokens and masks, as all are boxes."""
    parameters = {**SMALL, "view": view, "observation": "features"}
    one = gym.make(ID, **parameters).observation_space
    env = vec_env.VecFrameStack(vec_env.DummyVecEnv([lambda: gym.make(ID, **parameters)]), 4)
    for name, array in env.reset().items():
        assert array.shape == (1, *one[name].shape[:-1], 4 * one[name].shape[-1])
