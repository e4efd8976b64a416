"""Behaviour cloning: a network learns to decide as a named policy decides, from that policy's trajectories.

The policy reads exact units, the network tokens: both play the same episode in the same view, each in an
environment of its own that shows it what it reads.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

import schedgym  # noqa: F401  (registers the ids)
from schedgym.agents.network import NEVER
from schedgym.agents.options import ImitationOptions
from schedgym.agents.torch_network import Network
from schedgym.agents.views import Layout, make_layout
from schedgym.core.arrays import Flags, Floats, Floats32, Integers
from schedgym.core.policy import make_policy
from schedgym.envs import SchedulingEnv
from schedgym.extras import require
from schedgym.playing import steps

torch: Any = require("torch", "agents")

Arrays = dict[str, npt.NDArray[Any]]

LEAST_WEIGHT = 1e-9  # below this share of the largest, weights are all the same to the environment
HELD_BACK = 0.1  # share of the decisions that tell how well the others were learned


@dataclasses.dataclass(frozen=True)
class Demonstration:
    """The decisions of a policy, one after the other, and the observations of a network at each of them.

    Attributes:
        layout: layout of the view.
        observations: name -> array [T, ...] ("features").
        targets: for kinds choice and pairs, the index of the score that makes the decision, int64 [T]; for
            kind scores the action, float32 [T, size].
        rewards: float32 [T].
        starts: the first decision of each episode, int64 [episodes].
        metrics: metrics of each episode.
    """

    layout: Layout
    observations: Arrays
    targets: npt.NDArray[Any]
    rewards: Floats
    starts: Integers
    metrics: list[dict[str, float]]

    def returns(self, gamma: float = 1.0) -> Floats:
        """The discounted sum of the rewards from each decision to the end of its episode, [T]."""
        episodes = np.split(self.rewards, self.starts[1:])
        return np.concatenate([_sums(rewards[::-1], gamma)[::-1] for rewards in episodes])

    def sums(self, gamma: float = 1.0) -> Floats:
        """The sums of the rewards so far, of which earlier ones count gamma less each time, [T]."""
        return np.concatenate([_sums(rewards, gamma) for rewards in np.split(self.rewards, self.starts[1:])])

    def decisive(self) -> Integers:
        """The decisions between several open choices."""
        layout = self.layout
        if layout.kind == "scores":
            key = layout.segments[0].tokens[0].mask
            mask = None if key is None else self.observations[key]
        else:
            mask = layout.mask(self.observations)
        return np.arange(len(self.targets)) if mask is None else np.flatnonzero(mask.sum(axis=1) > 1)


def _sums(rewards: Floats, gamma: float) -> Floats:
    """The sums s_i = r_i + gamma s_(i - 1) of one episode."""
    return np.asarray(lfilter([1.0], [1.0, -gamma], rewards))


def _make(id: str, parameters: Mapping[str, Any], observation: str) -> SchedulingEnv:
    values = {**parameters, "observation": observation, "strict": True}
    return cast(SchedulingEnv, gym.make(id, disable_env_checker=True, copy=False, **values).unwrapped)


def demonstrate(
    id: str,
    policy: Any,
    episodes: int,
    seed: int = 0,
    *,
    parameters: Mapping[str, Any] | None = None,
) -> Demonstration:
    """Let a policy play episodes 0, 1, ... of a seed.

    Args:
        id: environment id.
        policy: name (full or short), or an object.
        episodes: number of episodes.
        seed: seed of the environment, and of the policy's random numbers.
        parameters: parameters of the environment, ``view`` among them; what ``observation`` says is ignored.

    Raises:
        InvalidParameter: if the policy cannot act in the view.
        UnknownName: for an unknown policy, or a view that scores cannot decide.
    """
    given = dict(parameters or {})
    shown, seen = _make(id, given, "dict"), _make(id, given, "features")
    interface = seen.interface
    layout = make_layout(interface.problem, interface.view, seen.observation_space, seen.action_space)
    if isinstance(policy, str):
        policy = make_policy(policy, interface.problem)
    rows: dict[str, list[Any]] = {name: [] for name in cast(Any, seen.observation_space).spaces}
    targets: list[Any] = []
    rewards: list[float] = []
    starts: list[int] = []
    metrics: list[dict[str, float]] = []
    for episode in range(episodes):
        features, _ = seen.reset(seed=seed, options={"episode": episode})
        starts.append(len(rewards))
        played = steps(shown, policy, seed=seed, episode=episode, rng=np.random.default_rng([seed, episode]))
        for step in itertools.islice(played, 1, None):  # after the begin
            for name, array in features.items():
                rows[name].append(array.copy())
            targets.append(_target(layout, step.action))
            features = seen.step(step.action)[0]
            rewards.append(step.reward)
        metrics.append(step.info["metrics"])
    return Demonstration(
        layout,
        {name: np.array(arrays) for name, arrays in rows.items()},
        np.array(targets),
        np.array(rewards),
        np.array(starts),
        metrics,
    )


def _target(layout: Layout, action: Any) -> Any:
    if layout.kind == "choice":
        return int(action)
    if layout.kind == "pairs":
        assert layout.shape is not None
        return min(int(action[0]) * layout.shape[1] + int(action[1]), layout.size - 1)
    return np.array(action, dtype=np.float32).reshape(-1)


@dataclasses.dataclass(frozen=True)
class Cloning:
    """The result of a cloning.

    Attributes:
        losses: mean loss of the actor in each epoch.
        agreement: share of the decisions held back that equal the policy's (for scores: in the largest).
        decisions: number of decisions that were learned from.
    """

    losses: list[float]
    agreement: float
    decisions: int


def clone(
    network: Network,
    demonstration: Demonstration,
    options: ImitationOptions,
    seed: int = 0,
    *,
    gamma: float = 1.0,
    scale: float = 1.0,
) -> Cloning:
    """Train a network to decide as the demonstration does.

    Choices are learned by cross-entropy; scores of which a view uses only the order by the likelihood of that
    order (Plackett and Luce); prices, and scores that multiply a value, by the squared error; weights by that
    of their logarithms about their mean.

    Args:
        network: its weights are changed.
        demonstration: a demonstration in its view.
        options: number of passes, learning rate; whether the critic learns the returns.
        seed: seed of the order of the samples.
        gamma: discount of the returns.
        scale: the critic's returns are divided by it.
    """
    layout, rng = demonstration.layout, np.random.default_rng(seed)
    order = rng.permutation(demonstration.decisive())
    back = order[: int(HELD_BACK * len(order))]
    learned = order[len(back) :]
    loss = _losses(layout, demonstration)
    returns = torch.as_tensor(demonstration.returns(gamma) / scale, dtype=torch.float32)
    observations = {name: torch.as_tensor(array) for name, array in demonstration.observations.items()}
    optimizer = torch.optim.Adam(network.parameters(), lr=options.learning_rate, eps=1e-5)
    batches = -(-len(learned) // options.batch_size)
    steps = max(options.epochs * batches, 1)
    losses = []
    step = 0
    for _ in range(options.epochs):
        total = 0.0
        for batch in np.array_split(rng.permutation(learned), batches) if batches else ():
            optimizer.param_groups[0]["lr"] = options.learning_rate * (1.0 - step / steps)
            scores = network.scores(_floats({name: array[batch] for name, array in observations.items()}))
            error = loss(scores, batch)
            total += error.item() * len(batch)
            if options.critic:
                some = rng.integers(len(returns), size=len(batch))  # also where there was but one choice
                given = {name: array[some] for name, array in observations.items()}
                values = network.values(_floats(given))
                error = error + torch.nn.functional.mse_loss(values, returns[some])
            optimizer.zero_grad()
            error.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            step += 1
        losses.append(total / max(len(learned), 1))
    return Cloning(losses, _agreement(network, demonstration, observations, back), len(learned))


def _floats(observation: Mapping[str, Any]) -> dict[str, Any]:
    return {name: array.float() for name, array in observation.items()}


def _losses(layout: Layout, demonstration: Demonstration) -> Callable[[Any, Integers], Any]:
    """The function (scores [B, size], numbers of the decisions [B]) -> loss."""
    if layout.kind != "scores":
        targets = torch.as_tensor(demonstration.targets)
        return lambda scores, batch: torch.nn.functional.cross_entropy(scores, targets[batch])
    wanted, there = _wanted(demonstration)
    there_ = torch.as_tensor(there)
    count = there_.sum(dim=1).clamp(min=1)
    if layout.transform != "squash":
        aims = torch.as_tensor(wanted)

        def squared(scores: Any, batch: Integers) -> Any:
            kept, number = there_[batch], count[batch]
            error = torch.where(kept, scores - aims[batch], 0.0)
            if layout.transform == "weight":
                error = error - (error.sum(dim=1) / number)[:, None]
            return (torch.where(kept, error, 0.0) ** 2).sum(dim=1).div(number).mean()

        return squared
    order = torch.as_tensor(np.argsort(np.where(there, -wanted, np.inf), axis=1, kind="stable"))

    def ranking(scores: Any, batch: Integers) -> Any:
        kept = there_[batch].gather(1, order[batch])
        ranked = torch.where(kept, scores.gather(1, order[batch]), NEVER)
        rest = ranked.flip(1).logcumsumexp(dim=1).flip(1)
        return torch.where(kept, rest - ranked, 0.0).sum(dim=1).div(count[batch]).mean()

    return ranking


def _wanted(demonstration: Demonstration) -> tuple[Floats32, Flags]:
    """The scores that make the actions, and which tokens are there, [T, size]."""
    layout, wanted = demonstration.layout, demonstration.targets
    mask = layout.segments[0].tokens[0].mask
    there = np.ones(wanted.shape, dtype=bool)
    if mask is not None:
        there = demonstration.observations[mask].astype(bool)
    if layout.transform == "weight":
        top = np.where(there, wanted, 0.0).max(axis=1, keepdims=True)
        top = np.where(top > 0.0, top, 1.0)
        wanted = np.log(np.maximum(wanted / top, LEAST_WEIGHT)).astype(np.float32)
    return wanted * np.float32(layout.scale), there


def _agreement(
    network: Network,
    demonstration: Demonstration,
    observations: Mapping[str, Any],
    back: Integers,
) -> float:
    if not len(back):
        return float("nan")
    with torch.no_grad():
        scores = network.scores(_floats({name: array[back] for name, array in observations.items()})).numpy()
    targets = demonstration.targets[back]
    if demonstration.layout.kind == "scores":
        wanted, there = _wanted(demonstration)
        targets = np.where(there, wanted, -np.inf)[back].argmax(axis=1)
        scores = np.where(there[back], scores, -np.inf)
    return float((scores.argmax(axis=1) == targets).mean())
