"""PPO in one file: token networks on the native simulator, from a configuration to the weights of an agent.

It reads from top to bottom as a training goes: a network scores tokens; actions are sampled from the scores
and played; advantages are computed; the clipped objective of Schulman et al. (2017, Equations 7 and 9) is
improved on shuffled batches. There are two ways to the advantages:

* ``copies: 1``: a critic, and generalised advantage estimation (Schulman et al. 2016, Equation 16) over
  ``n_steps`` steps of each environment.
* ``copies: n``: no critic. Each n environments play the same workload, whole episodes of it, and an advantage
  is the sum of the rewards to the episode's end minus the mean of the copies at the same decision: an input
  that all copies share, as the arrivals are, no longer adds to the variance. ``n_steps``, ``gae_lambda``,
  ``vf_coef`` and ``normalize_returns`` have no effect then.

Why it is fast. The environments' arrays are read where the kernels write them, and are brought once into the
form in which the network reads them, without the places in the window where there is no job; a batch is
learned in pieces of rows with similar numbers of jobs, so that few numbers are computed for nobody. Actions
that the observation closes have probability 0.

A checkpoint holds everything that the training goes on from, as that of :mod:`schedgym.agents.train`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.agents import tokens
from schedgym.agents.config import Config
from schedgym.agents.files import strip
from schedgym.agents.gradient import (
    DEMONSTRATION_SEEDS,
    SPACING,
    TRAINING_SEEDS,
    Point,
    TrainingResult,
    one_thread,
)
from schedgym.agents.imitate import Cloning, clone, demonstrate
from schedgym.agents.options import PPOOptions
from schedgym.agents.record import TrainingRecord
from schedgym.agents.rollout import History, held_out, make_simulator, set_actions
from schedgym.agents.views import Layout, layout_of
from schedgym.core.problem import get_problem
from schedgym.core.random import VALIDATION_SEED
from schedgym.core.stepping import ACT, SKIP
from schedgym.errors import InvalidParameter
from schedgym.extras import require

__all__ = ["Batch", "Network", "learn", "loss", "shared_advantages", "temporal_advantages"]

torch: Any = require("torch", "agents")
_Module: Any = torch.nn.Module

Tensor = Any
Observation = dict[str, Tensor]
Arrays = dict[str, npt.NDArray[Any]]
F8 = npt.NDArray[np.float64]

PIECES = 4  # of a batch, by the number of tokens
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of Adam


# The network and its distribution of actions ---------------------------------------------------------------


class Network(_Module):  # type: ignore[misc]
    """The network of :mod:`schedgym.agents.tokens`, the critic too.

    Args:
        layout: layout of the environment's view.
        weights: name -> array, as :func:`schedgym.agents.tokens.initial` gives them.
    """

    def __init__(self, layout: Layout, weights: Mapping[str, npt.NDArray[Any]]) -> None:
        super().__init__()
        self.layout, self.cut = layout, tokens.cut_set(layout)
        for name, array in weights.items():
            self.register_parameter(name, torch.nn.Parameter(torch.tensor(array)))

    def scores(self, observation: Observation) -> Tensor:
        """Scores of a batch, [B, size]."""
        return tokens.forward(self.layout, self._parameters, observation, torch)

    def values(self, observation: Observation) -> Tensor:
        """Values of a batch, [B]."""
        return tokens.estimate(self.layout, self._parameters, observation, torch)

    def see(self, observation: Mapping[str, npt.NDArray[Any]]) -> Observation:
        """A batch of live buffers as the network reads it: a copy, without tokens at the end that nobody has."""
        like = next(iter(self._parameters.values()))
        count = None
        if self.cut is not None:
            there = observation[self.cut.mask].any(axis=0)  # type: ignore[index]
            count = max(int(there.nonzero()[0][-1]) + 1, 1) if there.any() else 1
        seen = {name: torch.from_numpy(array) for name, array in observation.items()}
        return tokens.prepare(
            self.layout, {n: a.to(like.device) for n, a in self.first(seen, count).items()}, like, torch
        )

    def first(self, observation: Observation, count: int | None) -> Observation:
        """The observation with the first ``count`` tokens of the set that may be cut; None: all."""
        if self.cut is None or count is None:
            return observation
        keys = (self.cut.key, self.cut.mask)
        return {name: array[:, :count] if name in keys else array for name, array in observation.items()}

    def distribution(
        self, observation: Observation, actions: Tensor | None, noise: Tensor | None = None
    ) -> Any:
        """The probabilities of actions: softmax over the scores, or for a Box, scores with normal noise.

        Args:
            observation: a batch.
            actions: int64 [B], or float [B, size] for a Box; None: they are sampled.
            noise: from which they are sampled, [B, size]: of Gumbel's distribution, or of the normal one.

        Returns:
            actions, logarithms of their probabilities [B], and entropies [B].
        """
        scores = self.scores(observation)
        if self.layout.kind != "scores":
            logs = torch.log_softmax(scores, dim=-1)
            if actions is None:
                actions = (scores + noise).argmax(dim=-1)
            return actions, logs.gather(-1, actions[:, None])[:, 0], -(logs.exp() * logs).sum(-1)
        log_std = self._parameters["log_std"]
        if actions is None:
            actions = scores + noise * log_std.exp()
        mask = self.layout.segments[0].tokens[0].mask
        there = torch.ones_like(scores, dtype=bool) if mask is None else observation[mask]
        count = there.shape[-1]
        away = (actions[:, :count] - scores[:, :count]) / log_std.exp()
        each = -0.5 * away.square() - log_std - 0.5 * np.log(2.0 * np.pi)
        entropy = there.sum(-1) * (0.5 + 0.5 * np.log(2.0 * np.pi) + log_std)
        return actions, torch.where(there, each, 0.0).sum(-1), entropy

    def decide(self, observation: Mapping[str, npt.NDArray[Any]]) -> Any:
        """The most probable actions for a batch of live buffers, as the environments take them."""
        with torch.no_grad():
            scores = self.scores(self.see(observation)).cpu().numpy()
        return self.layout.decode(scores, observation)


# Advantages ------------------------------------------------------------------------------------------------


def temporal_advantages(rewards: F8, values: F8, ends: F8, gamma: float, gae_lambda: float) -> F8:
    """Generalised advantage estimates of rewards and ends [T, B] and values [T + 1, B]; [T, B].

    Every end of an episode is final: the last reward of a truncated episode charges all that was left.
    """
    found = np.zeros_like(rewards)
    following = np.zeros(rewards.shape[1])
    for t in range(len(rewards) - 1, -1, -1):
        going = gamma * (1.0 - ends[t])
        following = rewards[t] + going * values[t + 1] - values[t] + going * gae_lambda * following
        found[t] = following
    return found


def shared_advantages(rewards: F8, copies: int, gamma: float) -> F8:
    """The sum of the rewards from each decision on, minus the mean of the copies; [T, B].

    Args:
        rewards: of whole episodes, zero after their end, [T, B].
        copies: each so many environments next to each other play the same workload.
        gamma: discount.
    """
    sums = np.zeros_like(rewards)
    following = np.zeros(rewards.shape[1])
    for t in range(len(rewards) - 1, -1, -1):
        following = sums[t] = rewards[t] + gamma * following
    groups = sums.reshape(len(sums), -1, copies)
    return (groups - groups.mean(axis=2, keepdims=True)).reshape(sums.shape)


# The objective ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Batch:
    """Decisions.

    Attributes:
        observation: as :meth:`Network.see` gives it, [n, ...].
        actions: int64 [n], or float [n, size] for a Box.
        log_probs: logarithms of their probabilities when they were played, [n].
        advantages: divided by their standard deviation, [n].
        targets: what the critic is to learn, [n]; None: there is no critic.
        lengths: number of tokens of each that are not cut off, int64 [n].
    """

    observation: Observation
    actions: Tensor
    log_probs: Tensor
    advantages: Tensor
    targets: Tensor | None
    lengths: Tensor

    def pieces(self, network: Network, rows: Tensor, count: int = PIECES) -> Iterator[Batch]:
        """The decisions numbered ``rows``, by their number of tokens, in at most ``count`` batches."""
        if network.cut is None:
            count = 1
        for some in rows[self.lengths[rows].argsort(stable=True)].chunk(count):
            longest = int(self.lengths[some[-1]])
            seen = network.first(self.observation, longest)
            yield Batch(
                {name: array[some] for name, array in seen.items()},
                *(array[some] for array in (self.actions, self.log_probs, self.advantages)),
                None if self.targets is None else self.targets[some],
                self.lengths[some],
            )


def loss(network: Network, batch: Batch, options: PPOOptions) -> tuple[Tensor, Tensor]:
    """The sums of the losses over a batch, and of the estimates (r - 1) - log r of the divergence (no gradient)."""
    _, log_probs, entropy = network.distribution(batch.observation, batch.actions)
    difference = log_probs - batch.log_probs
    ratio, clip = difference.exp(), options.clip_range
    gain = torch.min(ratio * batch.advantages, ratio.clamp(1.0 - clip, 1.0 + clip) * batch.advantages)
    total = -gain.sum()
    if options.ent_coef:
        total = total - options.ent_coef * entropy.sum()
    if batch.targets is not None:
        error = network.values(batch.observation) - batch.targets
        total = total + options.vf_coef * error.square().sum()
    with torch.no_grad():
        divergence = (ratio - 1.0 - difference).sum()
    return total, divergence


def _stack(parts: list[Tensor]) -> Tensor:
    """Arrays [B, ...] one below the other, those with a shorter second axis filled up with zeros."""
    if parts[0].dim() < 2:
        return torch.cat(parts)
    longest = max(part.shape[1] for part in parts)
    found = parts[0].new_zeros((sum(len(part) for part in parts), longest, *parts[0].shape[2:]))
    row = 0
    for part in parts:
        found[row : row + len(part), : part.shape[1]] = part
        row += len(part)
    return found


# The training ----------------------------------------------------------------------------------------------


class _Moments:
    """Mean and variance of all numbers so far (Chan, Golub and LeVeque 1983)."""

    def __init__(self, mean: float = 0.0, variance: float = 1.0, count: float = 0.0) -> None:
        self.values = (mean, variance, count)

    def add(self, numbers: F8) -> None:
        (mean, variance, count), more = self.values, numbers.size
        total, difference = count + more, float(numbers.mean()) - mean
        squares = variance * count + float(numbers.var()) * more + difference**2 * count * more / total
        self.values = (mean + difference * more / total, squares / total, total)

    @property
    def scale(self) -> float:
        return float(np.sqrt(self.values[1] + 1e-8))


class Training:
    """A training that goes on update by update.

    Args:
        config: configuration of the training.
        device: name of torch's device.
    """

    def __init__(self, config: Config, device: str = "cpu") -> None:
        options, n = config.ppo, config.num_envs
        if options.copies == 1 and options.n_steps * n < options.batch_size:
            raise InvalidParameter(
                f"ppo.batch_size: {options.batch_size} is more than n_steps times num_envs, {options.n_steps * n}"
            )
        self.config, self.options, self.device = config, options, torch.device(device)
        self.simulator = make_simulator(config.id, config.environment, n)
        for i in range(n):
            self.simulator.seed(i, TRAINING_SEEDS + config.seed * SPACING + i // options.copies)
        self.history = History(self.simulator)
        self.rng = np.random.default_rng([config.seed, 1])
        form = config.network
        first = {name: array[0] for name, array in self.simulator.observation.items()}
        layout = layout_of(get_problem(config.id).name, config.view, first)
        weights = tokens.initial(
            layout, np.random.default_rng(config.seed), form.width, form.rounds, form.log_std
        )
        self.network = Network(layout, weights).to(self.device)
        self.trained = [
            (name, weight)
            for name, weight in self.network._parameters.items()
            if options.copies == 1 or not name.startswith("critic/")
        ]
        self.adam = torch.optim.Adam([weight for _, weight in self.trained], lr=1.0, eps=1e-5)
        self.moments = _Moments()
        self.sums = np.zeros(n)  # of the rewards of running episodes, discounted
        self.steps = 0
        self.told: dict[str, float] = {}

    @property
    def critic(self) -> bool:
        """Whether there is one."""
        return bool(self.options.copies == 1)

    def begin(self) -> None:
        """Start an episode in every environment."""
        self.simulator.begin(np.ones(self.config.num_envs, dtype=bool))
        self.history.clear()

    def act(self, seen: Observation) -> tuple[Tensor, Tensor, Any]:
        """Sample: actions and their log probabilities, and the actions as the environments take them."""
        layout, n = self.network.layout, self.config.num_envs
        if layout.kind == "scores":
            noise = self.rng.standard_normal((n, layout.size), dtype=np.float32)
        else:
            noise = -np.log(self.rng.standard_exponential((n, layout.size), dtype=np.float32) + 1e-30)
        actions, log_probs, _ = self.network.distribution(seen, None, torch.from_numpy(noise).to(self.device))
        given = actions.cpu().numpy()
        if layout.kind == "choice":
            return actions, log_probs, given
        if layout.kind == "pairs":
            return actions, log_probs, layout.split(given)
        return actions, log_probs, layout.decode(given, self.simulator.observation)

    def play(self) -> Batch:
        """Play ``n_steps`` steps, or an episode, in every environment; the decisions with their advantages."""
        simulator, network, n = self.simulator, self.network, self.config.num_envs
        seen: list[Observation] = []
        rows: dict[str, list[Any]] = {
            name: [] for name in ("action", "log_prob", "value", "reward", "end", "live")
        }
        live = np.ones(n, dtype=bool)
        if not self.critic:
            self.begin()
        with torch.no_grad():
            while len(seen) < self.options.n_steps if self.critic else live.any():
                seen.append(network.see(simulator.observation))
                actions, log_probs, given = self.act(seen[-1])
                if self.critic:
                    rows["value"].append(network.values(seen[-1]).cpu().numpy())
                    self.history.add(given)
                set_actions(simulator, given)
                ended = simulator.step(np.where(live, np.int8(ACT), np.int8(SKIP)))
                if ended < 0:
                    raise simulator.refusal(-ended - 1, f"actions[{-ended - 1}]")
                end = live & (simulator.terminated | simulator.truncated)
                told = (actions, log_probs, np.where(live, simulator.reward, 0.0), end, live.copy())
                for name, value in zip(("action", "log_prob", "reward", "end", "live"), told, strict=True):
                    rows[name].append(value)
                if ended and self.critic:
                    simulator.begin(end)
                    self.history.end(end)
                elif ended:
                    live &= ~end
            if self.critic:
                rows["value"].append(network.values(network.see(simulator.observation)).cpu().numpy())
        return self.judge(seen, rows)

    def judge(self, seen: list[Observation], rows: dict[str, list[Any]]) -> Batch:
        """The decisions that were played, with advantages, and targets of the critic."""
        options, live = self.options, np.array(rows["live"])
        rewards, ends = np.array(rows["reward"]), np.array(rows["end"], dtype=np.float64)
        targets = None
        if self.critic:
            scale = self.measure(rewards, ends) if options.normalize_returns else 1.0
            values = np.array(rows["value"], dtype=np.float64)
            found = temporal_advantages(rewards / scale, values, ends, options.gamma, options.gae_lambda)
            targets = self.tensor((found + values[:-1])[live])
        else:
            found = shared_advantages(rewards, options.copies, options.gamma)
        found = found[live]
        self.steps += len(found)
        self.told = {
            "rollout/reward": float(rewards.sum() / max(ends.sum(), 1.0)),
            "rollout/decisions": len(found),
        }
        found = (found - found.mean()) / (found.std() + 1e-8)
        lengths = np.concatenate([self.lengths(one) for one in seen])
        kept = torch.from_numpy(np.flatnonzero(live)).to(self.device)
        return Batch(
            {name: _stack([one[name] for one in seen])[kept] for name in seen[0]},
            torch.cat(rows["action"])[kept],
            torch.cat(rows["log_prob"])[kept],
            self.tensor(found),
            targets,
            torch.from_numpy(lengths).to(self.device)[kept],
        )

    def tensor(self, array: F8) -> Tensor:
        """The numbers as float32 on the device."""
        return torch.from_numpy(array.astype(np.float32)).to(self.device)

    def lengths(self, seen: Observation) -> npt.NDArray[np.int64]:
        """The number of tokens of each row up to the last that is there, at least 1; all 1 where none is cut."""
        cut = self.network.cut
        if cut is None:
            return np.ones(self.config.num_envs, dtype=np.int64)
        mask = seen[cut.mask].cpu().numpy()
        return np.maximum((mask * np.arange(1, mask.shape[1] + 1)).max(axis=1), 1)

    def measure(self, rewards: F8, ends: F8) -> float:
        """What rewards are divided by: the spread of the discounted sums of rewards so far."""
        sums = np.zeros_like(rewards)
        for t, reward in enumerate(rewards):
            self.sums = sums[t] = self.options.gamma * self.sums + reward
            self.sums = self.sums * (1.0 - ends[t])
        self.moments.add(sums)
        return self.moments.scale

    def improve(self, batch: Batch) -> None:
        """Improve the network on the decisions: ``n_epochs`` passes over them in shuffled batches."""
        options = self.options
        left = max(1.0 - self.steps / self.config.steps, 0.0)
        last = options.final_learning_rate
        self.adam.param_groups[0]["lr"] = last + (options.learning_rate - last) * left
        weights = [weight for _, weight in self.trained]
        count = len(batch.log_probs)
        size = -(-count // max(round(count / options.batch_size), 1))
        told = np.zeros(3)
        for _ in range(options.n_epochs):
            for rows in torch.from_numpy(self.rng.permutation(count)).to(self.device).split(size):
                self.adam.zero_grad()
                divergence = 0.0
                for piece in batch.pieces(self.network, rows):
                    total, more = loss(self.network, piece, options)
                    (total / len(rows)).backward()
                    told += (float(total), float(more), len(piece.lengths))
                    divergence += float(more) / len(rows)
                if options.target_kl is not None and divergence > 1.5 * options.target_kl:
                    break
                torch.nn.utils.clip_grad_norm_(weights, options.max_grad_norm)
                self.adam.step()
            else:
                continue
            break
        self.told |= {"train/loss": told[0] / told[2], "train/divergence": told[1] / told[2]}
