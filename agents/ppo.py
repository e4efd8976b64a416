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

import contextlib
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
    optimizer_arrays,
    restore_optimizer,
    validate,
)
from schedgym.agents.imitate import Cloning, clone, demonstrate
from schedgym.agents.modules import Network, Observation, find_device
from schedgym.agents.options import PPOOptions
from schedgym.agents.record import TrainingRecord
from schedgym.agents.rollout import History, make_simulator, set_actions
from schedgym.agents.views import layout_of
from schedgym.core.problem import get_problem
from schedgym.core.stepping import ACT, SKIP
from schedgym.errors import InvalidParameter
from schedgym.extras import require

__all__ = ["Batch", "Training", "learn", "loss", "shared_advantages", "temporal_advantages"]

torch: Any = require("torch", "agents")

Tensor = Any
Arrays = dict[str, npt.NDArray[Any]]
F8 = npt.NDArray[np.float64]

PIECES = 4  # of a batch, by the number of tokens

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
                self.actions[some],
                self.log_probs[some],
                self.advantages[some],
                None if self.targets is None else self.targets[some],
                self.lengths[some],
            )


def loss(network: Network, batch: Batch, options: PPOOptions) -> tuple[Tensor, Tensor]:
    """The sums over a batch of the losses, and of the estimates (r - 1) - log r of the divergence."""
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
                f"ppo.batch_size: {options.batch_size} is more than n_steps times num_envs, "
                f"{options.n_steps * n}"
            )
        self.config, self.options, self.device = config, options, find_device(device)
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
        if not self.critic:
            weights = {name: array for name, array in weights.items() if not name.startswith("critic/")}
        self.network = Network(layout, weights).to(self.device)
        self.named = list(self.network._parameters.items())
        self.adam = torch.optim.Adam(self.network.parameters(), lr=options.learning_rate, eps=1e-5)
        self.moments = _Moments()
        self.sums = np.zeros(n)  # of the rewards of running episodes, discounted
        self.steps = 0
        self.told: dict[str, float] = {}

    @property
    def critic(self) -> bool:
        """Whether there is one."""
        return bool(self.options.copies == 1)

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
        """The decisions of ``n_steps`` steps, or of an episode, in every environment."""
        simulator, network, n = self.simulator, self.network, self.config.num_envs
        seen: list[Observation] = []
        rows: dict[str, list[Any]] = {
            name: [] for name in ("action", "log_prob", "value", "reward", "end", "live")
        }
        live = np.ones(n, dtype=bool)
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
            else:
                simulator.begin(np.ones(n, dtype=bool))
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
        kept = torch.from_numpy(live.ravel()).to(self.device)
        observation = self.network.join(seen)
        if not live.all():
            observation = {name: array[kept] for name, array in observation.items()}
        return Batch(
            observation,
            torch.cat(rows["action"])[kept],
            torch.cat(rows["log_prob"])[kept],
            self.tensor(found),
            targets,
            self.network.lengths(observation),
        )

    def tensor(self, array: F8) -> Tensor:
        """The numbers as float32 on the device."""
        return torch.from_numpy(array.astype(np.float32)).to(self.device)

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
                    told += (total.item(), more.item(), len(piece.lengths))
                    divergence += more.item() / len(rows)
                if options.target_kl is not None and divergence > 1.5 * options.target_kl:
                    break
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), options.max_grad_norm)
                self.adam.step()
            else:
                continue
            break
        self.told |= {"train/loss": told[0] / told[2], "train/divergence": told[1] / told[2]}

    # What a training goes on from

    def start(self) -> Cloning | None:
        """Begin, with the imitation that the configuration names."""
        config, options = self.config, self.config.imitation
        self.simulator.begin(np.ones(config.num_envs, dtype=bool))
        if options is None:
            return None
        seed = DEMONSTRATION_SEEDS + config.seed
        shown = demonstrate(config.id, options.policy, options.episodes, seed, parameters=config.environment)
        if self.critic and self.options.normalize_returns:
            self.moments.add(shown.sums(self.options.gamma))
        options = dataclasses.replace(options, critic=options.critic and self.critic)
        network = self.network.cpu()
        told = clone(network, shown, options, config.seed, gamma=self.options.gamma, scale=self.moments.scale)
        network.to(self.device)
        return told

    def get_weights(self) -> Arrays:
        """Name -> array of all weights: copies."""
        return {name: weight.detach().cpu().numpy().copy() for name, weight in self.named}

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Everything that the training goes on from, as arrays and JSON data."""
        arrays = {f"weights/{name}": array for name, array in self.get_weights().items()}
        arrays |= optimizer_arrays(self.adam, self.named)
        arrays |= {f"environments/{name}": array for name, array in self.history.state().items()}
        arrays |= {"sums": self.sums, "moments": np.array(self.moments.values)}
        return arrays, {"steps": self.steps, "random": self.rng.bit_generator.state}

    def restore(self, arrays: Arrays, text: Mapping[str, Any]) -> None:
        """Bring it to its :meth:`state`."""
        with torch.no_grad():
            for name, weight in self.named:
                weight.copy_(torch.as_tensor(arrays[f"weights/{name}"]))
        restore_optimizer(self.adam, self.named, arrays)
        self.history.restore(strip(arrays, "environments/"))
        self.sums, self.moments = arrays["sums"], _Moments(*arrays["moments"].tolist())
        self.steps, self.rng.bit_generator.state = text["steps"], text["random"]


def learn(
    config: Config,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    report: Callable[[Point], None] | None = None,
    log_dir: str | Path | None = None,
    device: str = "cpu",
) -> TrainingResult:
    """Train a network.

    Args:
        config: a configuration with algorithm "ppo".
        checkpoint: file that is rewritten at least every ``config.checkpoint`` steps (None: as often as it
            validates), but only between updates.
        resume: go on from that file if it is there.
        report: called with each validation.
        log_dir: folder for TensorBoard; None: no logs.
        device: name of torch's device; "auto": a GPU where there is one.

    Raises:
        InvalidParameter: for a configuration of another algorithm, a device that there is not, or a
            checkpoint of another configuration.
        gymnasium.error.DependencyNotInstalled: without the extra ``agents``.
    """
    if config.algorithm != "ppo":
        raise InvalidParameter(f"algorithm: must be 'ppo', got {config.algorithm!r}")
    interval, saved, rollout = config.checkpoint or config.evaluation.every, 0, 0
    with one_thread(), contextlib.ExitStack() as stack:
        record = TrainingRecord(config, checkpoint, Point)
        training = Training(config, device)
        loaded = record.load(("steps", "random", "cloning", "sums")) if resume else None
        if loaded is None:
            cloning = training.start()
        else:
            training.restore(*loaded)
            saved, told = training.steps, loaded[1]["cloning"]
            cloning = None if told is None else Cloning(**told)
        writer: Any = None
        if log_dir is not None:
            make = require("torch.utils.tensorboard", "agents").SummaryWriter
            writer = stack.enter_context(make(str(Path(log_dir) / "ppo")))
        while True:
            steps, over = training.steps, training.steps >= config.steps
            curve = record.curve
            if not curve or steps - curve[-1].steps >= (1 if over else config.evaluation.every):
                point = validate(record, steps, training.network.decide, training.get_weights)
                training.told[f"validation/{config.metric.name}"] = point.objective
                if report is not None:
                    report(point)
            for name, value in training.told.items() if writer is not None else ():
                writer.add_scalar(name, value, steps)
            if not steps or (steps > saved and (over or steps + rollout > saved + interval)):
                arrays, text = training.state()
                record.save(arrays, cloning=None if cloning is None else dataclasses.asdict(cloning), **text)
                saved = steps
            if over:
                break
            training.told.clear()
            training.improve(training.play())
            rollout = training.steps - steps
    return TrainingResult(
        weights=dict(record.best),
        curve=tuple(record.curve),
        best=record.curve[record.best_index],
        returns=training.moments.values if training.moments.values[2] else (),
        cloning=cloning,
        steps=training.steps,
        seconds=record.seconds,
    )
