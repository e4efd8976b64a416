"""PPO in one file: token networks on the native simulator.

The file follows the order of a training: a network scores tokens; actions are sampled from the scores and
played; advantages are computed; the clipped objective of Schulman et al. (2017, Equations 7 and 9) is
improved on shuffled batches. Advantages are computed in one of two ways:

* ``copies: 1``: a critic, and generalised advantage estimation (Schulman et al. 2016, Equation 16) over
  ``n_steps`` steps of each environment.
* ``copies: n``: no critic. Each n environments play the same workload, whole episodes of it, and an advantage
  is the sum of the rewards to the episode's end minus the mean of the copies at the same decision: inputs
  that all copies share, such as the arrivals, then do not add to the variance. ``n_steps``, ``gae_lambda``,
  ``vf_coef`` and ``normalize_returns`` have no effect then.

Running time: the environments' arrays are read without copies, and are converted once to inputs of the
network, without the empty places of the window; a batch is divided into rows with similar numbers of jobs, so
that there is little padding. Actions that the observation masks have probability 0. On a GPU, environments,
sampling, advantages and updates run there (see :mod:`schedgym.agents.environments`), imitation and
validations do not.

The loop around the updates, with validations and checkpoints, is that of :mod:`schedgym.agents.gradient`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from schedgym.agents.checkpoint import Arrays
from schedgym.agents.config import Config
from schedgym.agents.environments import make_environments
from schedgym.agents.files import strip
from schedgym.agents.gradient import SPACING, TRAINING_SEEDS, GradientTraining
from schedgym.agents.network import initial
from schedgym.agents.options import PPOOptions
from schedgym.agents.torch_network import Network, Observation, Random
from schedgym.agents.views import layout_of
from schedgym.core.arrays import Floats
from schedgym.core.problem import get_problem
from schedgym.errors import InvalidParameter
from schedgym.extras import require

torch: Any = require("torch", "agents")

Tensor = Any

PIECES = 4  # of a batch, by the number of tokens

# Advantages ------------------------------------------------------------------------------------------------


def temporal_advantages(
    rewards: Tensor, values: Tensor, ends: Tensor, gamma: float, gae_lambda: float
) -> Tensor:
    """Generalised advantage estimates of rewards and ends [T, B] and values [T + 1, B]; [T, B].

    Every end of an episode is final: the last reward of a truncated episode charges all that was left.
    """
    going = gamma * (1.0 - ends)
    found = rewards + going * values[1:] - values[:-1]
    rows, weights = found.unbind(), (going * gae_lambda).unbind()
    for t in range(len(rows) - 2, -1, -1):
        rows[t].add_(weights[t] * rows[t + 1])
    return found


def shared_advantages(rewards: Tensor, copies: int, gamma: float) -> Tensor:
    """The sum of the rewards from each decision on, minus the mean of the copies; [T, B].

    Args:
        rewards: of whole episodes, zero after their end, [T, B].
        copies: each so many environments next to each other play the same workload.
        gamma: discount.
    """
    sums = rewards.clone()
    for t in range(len(rewards) - 2, -1, -1):
        sums[t] += gamma * sums[t + 1]
    groups = sums.reshape(len(sums), -1, copies)
    return (groups - groups.mean(dim=2, keepdim=True)).reshape(sums.shape)


# The objective ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Batch:
    """Decisions.

    Attributes:
        observation: as :meth:`Network.see` gives it, [n, ...].
        actions: int64 [n], or float [n, size] for a Box.
        log_probs: logarithms of their probabilities when they were played, [n].
        advantages: divided by their standard deviation, [n].
        targets: values that the critic is to learn, [n]; None: there is no critic.
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
    scores = network.scores(batch.observation)
    log_probs, entropy = network.judge(batch.observation, scores, batch.actions)
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

    def add(self, numbers: Tensor) -> None:
        (mean, variance, count), more = self.values, numbers.numel()
        total, difference = count + more, float(numbers.mean()) - mean
        spread = float(numbers.var(correction=0))
        squares = variance * count + spread * more + difference**2 * count * more / total
        self.values = (mean + difference * more / total, squares / total, total)

    @property
    def scale(self) -> float:
        return float(np.sqrt(self.values[1] + 1e-8))


class PPOTraining(GradientTraining):
    """A training by the PPO of this package.

    Args:
        config: configuration of the training.
        device: where everything is: see :func:`~schedgym.agents.environments.make_environments`.
    """

    def __init__(self, config: Config, device: str = "cpu") -> None:
        options, n = config.ppo, config.num_envs
        if options.copies == 1 and options.n_steps * n < options.batch_size:
            raise InvalidParameter(
                f"ppo.batch_size: {options.batch_size} is more than n_steps times num_envs, "
                f"{options.n_steps * n}"
            )
        self.config, self.options = config, options
        self.environments = make_environments(config.id, config.environment, n, device, not self.critic)
        seeds = (i // options.copies for i in range(n))
        self.environments.seed(TRAINING_SEEDS + config.seed * SPACING + i for i in seeds)
        self.device = self.environments.device
        self.random = Random([config.seed, 1], self.device)
        form = config.network
        first = {name: array[0] for name, array in self.environments.observation.items()}
        layout = layout_of(get_problem(config.id).name, config.view, first)
        rng = np.random.default_rng(config.seed)
        weights = initial(layout, rng, form.width, form.rounds, form.log_std)
        if not self.critic:
            weights = {name: array for name, array in weights.items() if not name.startswith("critic/")}
        self.network = Network(layout, weights).to(self.device)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=options.learning_rate, eps=1e-5)
        self.moments = _Moments()
        # of the rewards of running episodes, discounted
        self.sums = torch.zeros(n, dtype=torch.float64, device=self.device)
        self.steps = 0
        self.told = {}

    def act(self, seen: Observation) -> tuple[Tensor, Tensor]:
        """Sample: actions, as :meth:`Network.sample` gives them, and their log probabilities."""
        network, layout = self.network, self.network.layout
        draw = self.random.normal if layout.kind == "scores" else self.random.gumbel
        scores = network.scores(seen)
        actions = network.sample(scores, draw(self.config.num_envs, layout.size))
        return actions, network.judge(seen, scores, actions)[0]

    def update(self) -> None:
        """See :meth:`GradientTraining.update`."""
        self.improve(self.play())

    def play(self) -> Batch:
        """The decisions of ``n_steps`` steps, or of an episode, in every environment."""
        environments, network = self.environments, self.network
        seen: list[Observation] = []
        rows: dict[str, list[Tensor]] = {
            name: [] for name in ("action", "log_prob", "value", "reward", "end", "live")
        }
        with torch.no_grad():
            while len(seen) < self.options.n_steps if self.critic else environments.running:
                seen.append(network.see(environments.observation))
                actions, log_probs = self.act(seen[-1])
                if self.critic:
                    rows["value"].append(network.values(seen[-1]))
                told = (actions, log_probs, *environments.step(network.layout, actions))
                for name, value in zip(("action", "log_prob", "reward", "end", "live"), told, strict=True):
                    rows[name].append(value)
            if self.critic:
                rows["value"].append(network.values(network.see(environments.observation)))
            else:
                environments.begin()
        return self.judge(seen, {name: torch.stack(values) for name, values in rows.items() if values})

    def judge(self, seen: list[Observation], rows: dict[str, Tensor]) -> Batch:
        """The decisions that were played, with advantages, and targets of the critic."""
        options, live, rewards, ends = self.options, rows["live"], rows["reward"], rows["end"].double()
        targets = None
        if self.critic:
            scale = self.measure(rewards, ends) if options.normalize_returns else 1.0
            values = rows["value"].double()
            found = temporal_advantages(rewards / scale, values, ends, options.gamma, options.gae_lambda)
            targets = (found + values[:-1])[live].float()
        else:
            found = shared_advantages(rewards, options.copies, options.gamma)
        found = found[live]
        self.steps += len(found)
        self.told = {
            "rollout/reward": float(rewards.sum() / ends.sum().clamp(min=1.0)),
            "rollout/decisions": len(found),
        }
        found = (found - found.mean()) / (found.std(correction=0) + 1e-8)
        observation = self.network.join(seen)
        if len(found) < live.numel():
            observation = {name: array[live.flatten()] for name, array in observation.items()}
        return Batch(
            observation,
            rows["action"][live],
            rows["log_prob"][live],
            found.float(),
            targets,
            self.network.lengths(observation),
        )

    def measure(self, rewards: Tensor, ends: Tensor) -> float:
        """Return the spread of the discounted sums of rewards so far, by which rewards are divided."""
        sums = []
        for reward, going in zip(rewards.unbind(), (1.0 - ends).unbind(), strict=True):
            sums.append(self.options.gamma * self.sums + reward)
            self.sums = sums[-1] * going
        self.moments.add(torch.stack(sums))
        return self.moments.scale

    def improve(self, batch: Batch) -> None:
        """Improve the network on the decisions: ``n_epochs`` passes over them in shuffled batches."""
        options = self.options
        self.optimizer.param_groups[0]["lr"] = self.learning_rate(self.steps)
        count = len(batch.log_probs)
        size = -(-count // max(round(count / options.batch_size), 1))
        told: list[Tensor] = []
        learned = 0
        for _ in range(options.n_epochs):
            for rows in self.random.permutation(count).split(size):
                self.optimizer.zero_grad()
                divergence = 0.0
                for piece in batch.pieces(self.network, rows):
                    total, more = loss(self.network, piece, options)
                    (total / len(rows)).backward()
                    told.append(torch.stack((total.detach(), more)))
                    learned += len(piece.lengths)
                    if options.target_kl is not None:  # to look at it, a GPU has to be waited for
                        divergence += more.item() / len(rows)
                if options.target_kl is not None and divergence > 1.5 * options.target_kl:
                    break
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), options.max_grad_norm)
                self.optimizer.step()
            else:
                continue
            break
        means = torch.stack(told).double().sum(0) / learned
        self.told |= dict(zip(("train/loss", "train/divergence"), means.tolist(), strict=True))

    # What a training goes on from

    @property
    def returns(self) -> tuple[float, ...]:
        """See :attr:`GradientTraining.returns`."""
        return self.moments.values if self.moments.values[2] else ()

    def scale_returns(self, sums: Floats) -> float:
        """See :meth:`GradientTraining.scale_returns`."""
        self.moments.add(torch.from_numpy(sums))
        return self.moments.scale

    def begin(self) -> None:
        """See :meth:`GradientTraining.begin`."""
        self.environments.begin()

    def environment_state(self) -> tuple[Arrays, dict[str, Any]]:
        """See :meth:`GradientTraining.environment_state`."""
        arrays = {f"environments/{name}": array for name, array in self.environments.state().items()}
        arrays |= {"sums": self.sums.cpu().numpy().copy(), "moments": np.array(self.moments.values)}
        return arrays, {"random": self.random.state()}

    def restore_environments(self, arrays: Arrays, text: Mapping[str, Any]) -> None:
        """See :meth:`GradientTraining.restore_environments`."""
        self.random.restore(text["random"])
        self.environments.restore(strip(arrays, "environments/"))
        self.sums = torch.from_numpy(arrays["sums"]).to(self.device)
        self.moments = _Moments(*arrays["moments"].tolist())
