"""Behaviour cloning: what is shown, what is learned from it, and how well."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from schedgym.agents.network import initial
from schedgym.agents.options import ImitationOptions
from schedgym.agents.simulation import held_out
from schedgym.agents.views import make_layout
from schedgym.core.policy import make_policy
from schedgym.core.problem import get_problem
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.playing import steps
from tests.lazy import Lazy
from tests.long import all_but, long, thinned
from tests.playing import Acting
from tests.test_all_problems import small

torch = Lazy("torch")
imitate = Lazy("schedgym.agents.imitate", "torch")
torch_network = Lazy("schedgym.agents.torch_network", "torch")

QUEUE = {"tasks": 40, "servers": 3, "window": 12}
FLOWTIME = {"jobs": 16, "servers": "8+4+4+2", "window": 12}
GEO = {"jobs": 14, "sites": 4, "choices": 2, "window": 12}
#: one problem at least per kind of action: id, parameters, policy, episodes, epochs
CLONES = {
    "choice": ("schedgym/QueueDelay-v0", {"view": "pick", **QUEUE}, "bf-exec", 80, 15),
    "choice of servers": ("schedgym/QueueDelay-v0", {"view": "route", **QUEUE}, "bf-exec", 40, 15),
    "pairs": ("schedgym/QueueDelay-v0", {"view": "placement", **QUEUE}, "bf-exec", 80, 15),
    "order": ("schedgym/FlowtimePacking-v0", {"view": "priority", **FLOWTIME}, "srvf", 40, 20),
    "weights": ("schedgym/GeoFair-v0", {"view": "weights", **GEO}, "gamf", 10, 10),
    "rule": ("schedgym/GeoAssign-v0", {"view": "rule", **GEO}, "ata-greedy", 10, 10),
}
HELD_OUT = 2**40


def network(id: str, parameters: dict[str, Any], seed: int = 0) -> Any:
    env: Any = gym.make(id, disable_env_checker=True, **parameters, observation="features").unwrapped
    problem, spaces = get_problem(id).name, (env.observation_space, env.action_space)
    layout = make_layout(problem, parameters["view"], *spaces)
    torch.manual_seed(seed)
    rng = np.random.default_rng(int(torch.randint(2**62, ())))  # as a training of stable-baselines3 begins
    return torch_network.Network(layout, initial(layout, rng))


def mean(id: str, parameters: dict[str, object], rows: list[dict[str, float]]) -> float:
    problem = get_problem(id)
    name = problem.objective_of(problem.build(id, parameters))
    return float(np.mean([row[name] for row in rows]))


@long
@pytest.mark.parametrize("name", thinned(CLONES, of=3))
def test_the_clone_reaches_the_score_of_its_policy(name: str) -> None:
    id, parameters, policy, episodes, epochs = CLONES[name]
    shown = imitate.demonstrate(id, policy, episodes, 5, parameters=parameters)
    student = network(id, parameters)
    options = ImitationOptions(policy=policy, epochs=epochs, batch_size=128, learning_rate=3e-3)
    result = imitate.clone(student, shown, options, 0, scale=float(shown.sums().std()) or 1.0)
    assert result.losses[-1] <= result.losses[0]
    count = 100
    mine = held_out(id, student.decide, count, HELD_OUT, parameters=parameters)
    theirs = imitate.demonstrate(id, policy, count, HELD_OUT, parameters=parameters).metrics
    assert mean(id, parameters, mine) == pytest.approx(mean(id, parameters, theirs), rel=0.02)


@long
def test_a_network_that_learned_nothing_does_not() -> None:
    id, parameters, policy, *_ = CLONES["choice"]
    student = network(id, parameters)
    rows = held_out(id, student.decide, 60, HELD_OUT, parameters=parameters)
    theirs = imitate.demonstrate(id, policy, 60, HELD_OUT, parameters=parameters).metrics
    assert mean(id, parameters, rows) > 1.1 * mean(id, parameters, theirs)


@pytest.mark.parametrize("name", all_but(CLONES, ["weights", "rule"]))
def test_what_is_shown_is_what_the_policy_did(name: str) -> None:
    """Features, decisions and rewards are those of the same episode, played again."""
    id, parameters, policy, *_ = CLONES[name]
    shown = imitate.demonstrate(id, policy, 3, 7, parameters=parameters)
    layout = shown.layout
    env = gym.make(id, **parameters, observation="features").unwrapped
    step = 0
    for episode, start in enumerate(shown.starts.tolist()):
        assert step == start
        observation, _ = env.reset(seed=7, options={"episode": episode})
        done = False
        while not done:
            for field, array in observation.items():
                assert np.array_equal(shown.observations[field][step], array)
            target = shown.targets[step]
            action = layout.split(target) if layout.kind == "pairs" else target
            observation, reward, terminated, truncated, info = env.step(action)
            assert reward == shown.rewards[step]
            done = terminated or truncated
            step += 1
        for metric, value in info["metrics"].items():
            assert shown.metrics[episode][metric] == pytest.approx(value, rel=1e-6), metric
    assert step == len(shown.targets) == len(shown.rewards)
    returns, sums = shown.returns(), shown.sums()
    ends = np.append(shown.starts[1:], step) - 1
    totals = np.add.reduceat(shown.rewards, shown.starts)
    np.testing.assert_allclose(returns[shown.starts], totals, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sums[ends], totals, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(returns[ends], shown.rewards[ends])
    discounted = shown.returns(0.5)
    inner = np.setdiff1d(np.arange(step), ends)
    np.testing.assert_allclose(discounted[inner], shown.rewards[inner] + 0.5 * discounted[inner + 1])
    np.testing.assert_allclose(
        shown.sums(0.5)[inner + 1], shown.rewards[inner + 1] + 0.5 * shown.sums(0.5)[inner]
    )


def test_only_decisions_between_several_choices_are_learned() -> None:
    id, parameters, policy, *_ = CLONES["choice"]
    shown = imitate.demonstrate(id, policy, 4, 7, parameters=parameters)
    mask = shown.observations["action_mask"].astype(bool)
    decisive = shown.decisive()
    assert 0 < len(decisive) < len(mask)
    assert (mask[decisive].sum(axis=1) > 1).all()
    assert (mask[np.setdiff1d(np.arange(len(mask)), decisive)].sum(axis=1) == 1).all()
    options = ImitationOptions(policy=policy, epochs=1)
    result = imitate.clone(network(id, parameters), shown, options)
    assert result.decisions == len(decisive) - int(0.1 * len(decisive))


@long
def test_the_critic_learns_the_returns() -> None:
    id, parameters, policy, *_ = CLONES["choice"]
    shown = imitate.demonstrate(id, policy, 30, 7, parameters=parameters)
    scale = float(shown.sums().std())
    wanted = shown.returns() / scale
    errors = []
    for critic in (False, True):
        student = network(id, parameters)
        epochs = 40 if critic else 1
        options = ImitationOptions(policy=policy, epochs=epochs, learning_rate=5e-3, critic=critic)
        imitate.clone(student, shown, options, scale=scale)
        with torch.no_grad():
            values = student.values(student.see(shown.observations)).numpy()
        errors.append(float(((values - wanted) ** 2).mean()))
    assert errors[1] < 0.6 * wanted.var() and errors[1] < 0.6 * errors[0]


def test_one_seed_twice_gives_equal_clones() -> None:
    id, parameters, policy, *_ = CLONES["choice"]
    found = []
    for seed in (1, 1, 2):
        student = network(id, parameters, 3)
        shown = imitate.demonstrate(id, policy, 4, 7, parameters=parameters)
        imitate.clone(student, shown, ImitationOptions(policy=policy, epochs=2), seed)
        found.append(student.get_weights())
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])
    assert any(not np.array_equal(found[0][name], found[2][name]) for name in found[0])


def test_prices_are_learned() -> None:
    """No policy of the package need act in this view: an object of one's own can be cloned."""

    class Prices:
        def reset(self, interface, rng):
            pass

        def __call__(self, observation):
            load = (observation["demand"] * observation["cap"][:, None]).sum(axis=0) / observation["capacity"]
            return np.log1p(load) - 3.0

    id = "schedgym/PartialValue-v0"
    parameters = small(id, view="prices", jobs=20, window=12)
    shown = imitate.demonstrate(id, Prices(), 40, 1, parameters=parameters)
    student = network(id, parameters)
    options = ImitationOptions(policy="own", epochs=30, batch_size=64, learning_rate=3e-3)
    result = imitate.clone(student, shown, options)
    assert result.losses[-1] < 0.05 * result.losses[0]


def test_held_out_episodes_are_those_of_single_environments() -> None:
    id, parameters, *_ = CLONES["choice"]

    def first(observation):
        return observation["action_mask"].argmax(axis=-1)

    env: Any = gym.make(id, **parameters, observation="features").unwrapped
    expected = []
    for episode in range(5):
        *_, last = steps(env, Acting(first, None), seed=11, episode=episode)
        expected.append(last.info["metrics"])
    for num_envs in (1, 2, 5, 64):
        assert held_out(id, first, 5, 11, parameters=parameters, num_envs=num_envs) == expected
    boxes = {"view": "priority", **FLOWTIME}
    rows = [
        held_out(
            "schedgym/FlowtimePacking-v0",
            lambda seen: -seen["jobs"][:, :, 4],
            5,
            11,
            parameters=boxes,
            num_envs=num_envs,
        )
        for num_envs in (2, 5)
    ]
    assert rows[0] == rows[1]


def test_what_cannot_be_cloned_is_refused() -> None:
    id = "schedgym/QueueDelay-v0"
    with pytest.raises(InvalidParameter, match="rule"):
        imitate.demonstrate(id, "bf-exec", 1, parameters={"view": "pick", "rule": "first", **QUEUE})
    with pytest.raises(UnknownName, match="did you mean"):
        imitate.demonstrate(id, "bf-exe", 1, parameters={"view": "pick", **QUEUE})
    with pytest.raises(UnknownName, match="plan"):
        imitate.demonstrate("schedgym/SingleJob-v0", "tapra", 1, parameters={"view": "plan"})
    own = make_policy("queue-delay/bf-exec")
    shown = imitate.demonstrate(id, own, 1, parameters={"view": "pick", **QUEUE})
    assert len(shown.metrics) == 1
