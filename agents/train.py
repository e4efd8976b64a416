"""PPO and MaskablePPO of stable-baselines3, from a configuration to the weights of an agent.

A checkpoint holds everything that the training goes on from: weights, the optimizer's moments, the scale of
the returns, the random generators, and for every environment its episode and the actions since that began,
which are played again. So a training that was killed and goes on from its last checkpoint ends, on one
machine, with the same weights as one that was not. It holds arrays and a JSON text, and no code.

Normalisation. Rewards are divided by the standard deviation of the returns so far, whose moments stand in the
checkpoint and in the agent file. Observations are scaled by constants of the environments and of the network:
there are no statistics of them to save.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt

import schedgym  # noqa: F401  (registers the ids)
from schedgym.agents.config import Config
from schedgym.agents.files import Agent, strip
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
from schedgym.agents.networks import MaskableTokenPolicy, TokenPolicy
from schedgym.agents.record import TrainingRecord
from schedgym.agents.vecenv import make_vec_env
from schedgym.core.problem import get_problem
from schedgym.errors import InvalidParameter
from schedgym.extras import require

__all__ = ["learn", "load_torch_policy"]

torch: Any = require("torch", "agents")
_sb3: Any = require("stable_baselines3", "agents")
_vec: Any = require("stable_baselines3.common.vec_env", "agents")
_Callback: Any = require("stable_baselines3.common.callbacks", "agents").BaseCallback

Arrays = dict[str, npt.NDArray[Any]]

WARM_UP = 4  # episodes per environment that set the scale of the returns, at most ...
WARM_UP_STEPS = 20_000  # ... or environment steps


# What a training goes on from ------------------------------------------------------------------------------


def _save(record: TrainingRecord[Point], model: Any, normalizer: Any, cloning: Cloning | None) -> None:
    """Write the checkpoint, from which the training continues with the same result."""
    arrays = {f"weights/{name}": array for name, array in model.policy.get_weights().items()}
    arrays |= optimizer_arrays(model.policy.optimizer, model.policy.named_weights()) | _rollout_arrays(
        model, normalizer
    )
    told = None if cloning is None else dataclasses.asdict(cloning)
    record.save(arrays, steps=model.num_timesteps, updates=model._n_updates, cloning=told)


def _load(record: TrainingRecord[Point], model: Any, normalizer: Any) -> tuple[Arrays, Cloning | None] | None:
    """Load a checkpoint but for :func:`_restore_rollouts`; return its arrays and the imitation's result."""
    loaded = record.load(("steps", "updates", "cloning"))
    if loaded is None:
        return None
    arrays, text = loaded
    model.num_timesteps, model._n_updates = int(text["steps"]), text["updates"]
    model.policy.set_weights(strip(arrays, "weights/"))
    restore_optimizer(model.policy.optimizer, model.policy.named_weights(), arrays)
    if normalizer is not None:
        _set_moments(normalizer, arrays["moments"].tolist())
    return arrays, None if text["cloning"] is None else Cloning(**text["cloning"])


def _rollout_arrays(model: Any, normalizer: Any) -> Arrays:
    """The state of the environments and of the random generators, as arrays."""
    found = {f"environments/{n}": array for n, array in model.get_env().unwrapped.get_state().items()}
    found["starts"] = np.array(model._last_episode_starts)
    found["random/torch"] = torch.get_rng_state().numpy().copy()
    _, keys, *rest = np.random.get_state()  # noqa: NPY002  (stable-baselines3 draws from it)
    found["random/keys"], found["random/rest"] = np.array(keys), np.array(rest, dtype=np.float64)
    if normalizer is not None:
        found["moments"], found["returns"] = np.array(_moments(normalizer)), normalizer.returns.copy()
    return found


def _restore_rollouts(model: Any, normalizer: Any, arrays: Arrays) -> None:
    model._last_obs = model.get_env().unwrapped.set_state(strip(arrays, "environments/"))
    model._last_episode_starts = arrays["starts"]
    torch.set_rng_state(torch.as_tensor(arrays["random/torch"]))
    position, has_gauss, cached = arrays["random/rest"].tolist()
    state = ("MT19937", arrays["random/keys"], int(position), int(has_gauss), cached)
    np.random.set_state(state)  # noqa: NPY002
    if normalizer is not None:
        normalizer.returns[:] = arrays["returns"]


def _moments(normalizer: Any) -> tuple[float, ...]:
    statistics = normalizer.ret_rms
    return float(statistics.mean), float(statistics.var), float(statistics.count)


def _set_moments(normalizer: Any, moments: list[float]) -> None:
    statistics = normalizer.ret_rms
    statistics.mean, statistics.var, statistics.count = (np.float64(value) for value in moments)


class _BetweenUpdates(_Callback):  # type: ignore[misc]
    """Validations and checkpoints.

    Args:
        record: record of the training.
        normalizer: scales the rewards; None: nothing does.
        report: called with each validation.
        cloning: the result of the imitation.
        loaded: arrays of the checkpoint that the training goes on from.
    """

    def __init__(
        self,
        record: TrainingRecord[Point],
        normalizer: Any,
        report: Callable[[Point], None] | None,
        cloning: Cloning | None,
        loaded: Arrays | None,
    ) -> None:
        super().__init__()
        config = record.config
        self.record, self.normalizer, self.report, self.cloning = record, normalizer, report, cloning
        self.loaded = loaded
        self.saved = 0  # steps at the last checkpoint
        self.every, self.interval = config.evaluation.every, config.checkpoint or config.evaluation.every

    def _on_step(self) -> bool:
        return True

    def _on_training_start(self) -> None:
        self.begun = False

    def _on_rollout_start(self) -> None:
        curve, steps = self.record.curve, self.model.num_timesteps
        if not self.begun:
            self.begin()
        if not curve or steps - curve[-1].steps >= self.every:
            self.validate()
        rollout = self.model.n_steps * self.model.n_envs
        if not steps or (steps > self.saved and steps + rollout > self.saved + self.interval):
            self.save()

    def _on_training_end(self) -> None:
        if self.record.curve[-1].steps < self.model.num_timesteps:
            self.validate()
        if self.saved < self.model.num_timesteps:
            self.save()

    def begin(self) -> None:
        """Bring environments and random generators to where the training starts, or goes on."""
        model, config = self.model, self.record.config
        self.begun = True
        model.get_env().unwrapped.recording = self.record.path is not None
        if self.loaded is not None:
            self.saved = model.num_timesteps
            _restore_rollouts(model, self.normalizer, self.loaded)
            self.loaded = None
            return
        require("stable_baselines3.common.utils", "agents").set_random_seed(config.seed)
        model.get_env().seed(TRAINING_SEEDS + config.seed * SPACING)
        model._last_obs = model.get_env().reset()
        model._last_episode_starts = np.ones(model.n_envs, dtype=bool)

    def save(self) -> None:
        """Write the checkpoint."""
        self.saved = self.model.num_timesteps
        if self.record.path is not None:
            _save(self.record, self.model, self.normalizer, self.cloning)

    def validate(self) -> None:
        """Play the validation episodes, and keep the weights if they are the best so far."""
        policy = self.model.policy
        point = validate(
            self.record,
            int(self.model.num_timesteps),
            lambda observation: policy.predict(observation, deterministic=True)[0],
            policy.get_weights,
        )
        self.logger.record(f"validation/{self.record.config.metric.name}", point.objective)
        self.logger.dump(self.model.num_timesteps)
        if self.report is not None:
            self.report(point)


#: options that stable-baselines3 takes under the same name
_SAME = (
    *("n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "clip_range"),
    *("ent_coef", "vf_coef", "max_grad_norm", "target_kl"),
)


def _model(config: Config, log_dir: str | Path | None) -> tuple[Any, Any]:
    """The algorithm, and the wrapper of its environments that scales rewards (or None)."""
    options, network = config.ppo, config.network
    rollout = options.n_steps * config.num_envs
    if rollout < options.batch_size:
        raise InvalidParameter(
            f"ppo.batch_size: {options.batch_size} is more than n_steps times num_envs, {rollout}"
        )
    if log_dir is not None:
        require("tensorboard", "agents")
    env: Any = make_vec_env(config.id, config.num_envs, **config.environment)
    env.truncations = False  # the last reward of a truncated episode charges all that was left
    if config.algorithm == "sb3-maskable-ppo" and not env.has_attr("action_masks"):
        raise InvalidParameter(
            f"algorithm: sb3-maskable-ppo needs discrete actions, view {config.view} has none"
        )
    normalizer = None
    if options.normalize_returns:
        env = normalizer = _vec.VecNormalize(
            env, norm_obs=False, norm_reward=True, clip_reward=np.inf, gamma=options.gamma
        )
    masked = config.algorithm == "sb3-maskable-ppo"
    kind = require("sb3_contrib", "agents").MaskablePPO if masked else _sb3.PPO

    def learning_rate(remaining: float) -> float:
        last = options.final_learning_rate
        return last + (options.learning_rate - last) * max(remaining, 0.0)  # the last update may go beyond

    model = kind(
        MaskableTokenPolicy if masked else TokenPolicy,
        env,
        learning_rate=learning_rate,
        **{name: getattr(options, name) for name in _SAME},
        tensorboard_log=None if log_dir is None else str(log_dir),
        policy_kwargs={
            "problem": get_problem(config.id).name,
            "view": config.view,
            "width": network.width,
            "rounds": network.rounds,
            "log_std": network.log_std,
        },
        seed=config.seed,
        device="cpu",
    )
    return model, normalizer


def _start(config: Config, model: Any, normalizer: Any) -> Cloning | None:
    """Set the scale of the returns, and clone the policy that the configuration names."""
    seed = DEMONSTRATION_SEEDS + config.seed
    parameters = {n: v for n, v in config.environment.items() if n != "observation"}
    if config.imitation is None:
        if normalizer is not None:
            _warm_up(config, model, normalizer)
        return None
    options = config.imitation
    shown = demonstrate(config.id, options.policy, options.episodes, seed, parameters=parameters)
    scale = 1.0
    if normalizer is not None:
        sums = shown.sums(config.ppo.gamma)
        _set_moments(normalizer, [float(sums.mean()), float(sums.var()), float(len(sums))])
        scale = _scale(normalizer)
    return clone(model.policy, shown, options, config.seed, gamma=config.ppo.gamma, scale=scale)


def _scale(normalizer: Any) -> float:
    return float(np.sqrt(normalizer.ret_rms.var + normalizer.epsilon))


def _warm_up(config: Config, model: Any, normalizer: Any) -> None:
    """Let the first policy play a little, to measure the scale of the returns before anything is learned."""
    normalizer.seed(DEMONSTRATION_SEEDS + config.seed * SPACING)
    observation = normalizer.reset()
    ended = 0
    for _ in range(max(WARM_UP_STEPS // config.num_envs, 1)):
        actions, _ = model.policy.predict(observation)
        observation, _, done, _ = normalizer.step(actions)
        ended += int(done.sum())
        if ended >= WARM_UP * config.num_envs:
            break


def learn(
    config: Config,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    report: Callable[[Point], None] | None = None,
    log_dir: str | Path | None = None,
) -> TrainingResult:
    """Train a network.

    Args:
        config: a configuration with algorithm "sb3-ppo" or "sb3-maskable-ppo".
        checkpoint: file that is rewritten at least every ``config.checkpoint`` steps (None: as often as it
            validates), but only between updates.
        resume: go on from that file if it is there.
        report: called with each validation.
        log_dir: folder for TensorBoard; None: no logs.

    Raises:
        InvalidParameter: for a configuration of another algorithm, or a checkpoint of another configuration.
        gymnasium.error.DependencyNotInstalled: without the extra ``agents``.
    """
    if config.algorithm not in ("sb3-ppo", "sb3-maskable-ppo"):
        raise InvalidParameter(
            f"algorithm: must be 'sb3-ppo' or 'sb3-maskable-ppo', got {config.algorithm!r}"
        )
    with one_thread():
        record = TrainingRecord(config, checkpoint, Point)
        model, normalizer = _model(config, log_dir)
        loaded = _load(record, model, normalizer) if resume else None
        arrays, cloning = loaded or (None, _start(config, model, normalizer))
        if model.num_timesteps < config.steps:
            model.learn(
                config.steps - model.num_timesteps,
                callback=_BetweenUpdates(record, normalizer, report, cloning, arrays),
                tb_log_name=config.algorithm,
                reset_num_timesteps=loaded is None,
            )
        model.get_env().close()
    return TrainingResult(
        weights=dict(record.best),
        curve=tuple(record.curve),
        best=record.curve[record.best_index],
        returns=() if normalizer is None else _moments(normalizer),
        cloning=cloning,
        steps=int(model.num_timesteps),
        seconds=record.seconds,
    )


def load_torch_policy(agent: Agent) -> TokenPolicy:
    """The torch policy of an agent file, built from what the file says and its arrays: nothing is unpickled.

    Args:
        agent: as :func:`~schedgym.agents.files.load_agent` gives it, with a network of form "tokens".

    Raises:
        InvalidParameter: for an agent of another form, or weights that do not fit.
    """
    network = agent.metadata["network"]
    if network.get("form") != "tokens":
        raise InvalidParameter(f"{agent.name}: a network of form {network.get('form')!r} is not for torch")
    env = gym.make(agent.id, disable_env_checker=True, **agent.environment)
    policy = TokenPolicy(
        cast(gym.spaces.Dict, env.observation_space),
        env.action_space,
        lambda _: 0.0,
        problem=agent.metadata["problem"],
        view=agent.view,
        width=network["width"],
        rounds=network["rounds"],
    )
    policy.set_weights(agent.weights)
    policy.set_training_mode(False)
    return policy
