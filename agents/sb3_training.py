"""``schedgym train --algo sb3-ppo``: PPO of stable-baselines3 as one of the trainings with gradients.

Rewards are divided by the standard deviation of the returns so far. Observations are scaled by constants of
the environments and of the network: there are no statistics of them to save.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from schedgym.agents.checkpoint import Arrays
from schedgym.agents.config import Config
from schedgym.agents.files import strip
from schedgym.agents.gradient import DEMONSTRATION_SEEDS, SPACING, TRAINING_SEEDS, GradientTraining
from schedgym.agents.sb3 import TokenPolicy, make_vec_env
from schedgym.core.arrays import Floats
from schedgym.core.problem import get_problem
from schedgym.errors import InvalidParameter
from schedgym.extras import require

torch: Any = require("torch", "agents")
_sb3: Any = require("stable_baselines3", "agents")
_vec_env: Any = require("stable_baselines3.common.vec_env", "agents")
_set_random_seed: Any = require("stable_baselines3.common.utils", "agents").set_random_seed

WARM_UP = 4  # episodes per environment that set the scale of the returns, at most ...
WARM_UP_STEPS = 20_000  # ... or environment steps

#: options that stable-baselines3 takes under the same name
SAME = (
    *("n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "clip_range"),
    *("ent_coef", "vf_coef", "max_grad_norm", "target_kl"),
)


class SB3Training(GradientTraining):
    """A training by PPO of stable-baselines3, on the CPU.

    Args:
        config: configuration of the training.
    """

    def __init__(self, config: Config) -> None:
        options, network = config.ppo, config.network
        rollout = options.n_steps * config.num_envs
        if rollout < options.batch_size:
            raise InvalidParameter(
                f"ppo.batch_size: {options.batch_size} is more than n_steps times num_envs, {rollout}"
            )
        self.config, self.steps, self.told, self.rollout = config, 0, {}, rollout
        self.environments = make_vec_env(config.id, config.num_envs, **config.environment)
        # the last reward of a truncated episode charges all that was left
        self.environments.truncations = False
        env: Any = self.environments
        self.normalizer: Any = None
        if options.normalize_returns:
            env = self.normalizer = _vec_env.VecNormalize(
                env, norm_obs=False, norm_reward=True, clip_reward=np.inf, gamma=options.gamma
            )
        form = {"width": network.width, "rounds": network.rounds, "log_std": network.log_std}
        self.model = _sb3.PPO(
            TokenPolicy,
            env,
            **{name: getattr(options, name) for name in SAME},
            policy_kwargs={"problem": get_problem(config.id).name, "view": config.view, **form},
            seed=config.seed,
            device="cpu",
        )
        self.network, self.optimizer = self.model.policy.network, self.model.policy.optimizer
        self.model.lr_schedule = lambda _: self.learning_rate(self.model.num_timesteps)

    @property
    def returns(self) -> tuple[float, ...]:
        """See :attr:`GradientTraining.returns`."""
        if self.normalizer is None:
            return ()
        moments = self.normalizer.ret_rms
        return float(moments.mean), float(moments.var), float(moments.count)

    def _set_returns(self, *moments: float) -> None:
        statistics = self.normalizer.ret_rms
        statistics.mean, statistics.var, statistics.count = map(np.float64, moments)

    def scale_returns(self, sums: Floats) -> float:
        """See :meth:`GradientTraining.scale_returns`."""
        self._set_returns(float(sums.mean()), float(sums.var()), float(len(sums)))
        return float(np.sqrt(self.normalizer.ret_rms.var + self.normalizer.epsilon))

    def begin(self) -> None:
        """See :meth:`GradientTraining.begin`."""
        if self.normalizer is not None and self.config.imitation is None:
            self._warm_up()
        _set_random_seed(self.config.seed)
        self.model.env.seed(TRAINING_SEEDS + self.config.seed * SPACING)
        self.model._last_obs = self.model.env.reset()
        self.model._last_episode_starts = np.ones(self.config.num_envs, dtype=bool)

    def _warm_up(self) -> None:
        """Let the first policy play a little, to measure the scale of the returns before it learns."""
        config, normalizer, ended = self.config, self.normalizer, 0
        normalizer.seed(DEMONSTRATION_SEEDS + config.seed * SPACING)
        observation = normalizer.reset()
        for _ in range(max(WARM_UP_STEPS // config.num_envs, 1)):
            actions, _ = self.model.policy.predict(observation)
            observation, _, done, _ = normalizer.step(actions)
            ended += int(done.sum())
            if ended >= WARM_UP * config.num_envs:
                break

    def update(self) -> None:
        """See :meth:`GradientTraining.update`."""
        model = self.model.learn(self.rollout, log_interval=None, reset_num_timesteps=False)
        self.steps = int(model.num_timesteps)
        self.told = {name: float(value) for name, value in model.logger.name_to_value.items()}
        if model.ep_info_buffer:
            self.told["rollout/reward"] = float(np.mean([episode["r"] for episode in model.ep_info_buffer]))

    def environment_state(self) -> tuple[Arrays, dict[str, Any]]:
        """See :meth:`GradientTraining.environment_state`."""
        found = {f"environments/{name}": array for name, array in self.environments.get_state().items()}
        found["starts"] = np.array(self.model._last_episode_starts)
        found["random/torch"] = torch.get_rng_state().numpy().copy()
        _, keys, *rest = np.random.get_state()  # noqa: NPY002  (stable-baselines3 draws from it)
        found["random/keys"], found["random/rest"] = np.array(keys), np.array(rest, dtype=np.float64)
        if self.normalizer is not None:
            found["moments"], found["sums"] = np.array(self.returns), self.normalizer.returns.copy()
        return found, {}

    def restore_environments(self, arrays: Arrays, text: Mapping[str, Any]) -> None:
        """See :meth:`GradientTraining.restore_environments`."""
        model = self.model
        model.num_timesteps = int(text["steps"])
        model._last_obs = self.environments.set_state(strip(arrays, "environments/"))
        model._last_episode_starts = arrays["starts"]
        torch.set_rng_state(torch.as_tensor(arrays["random/torch"]))
        position, has_gauss, cached = arrays["random/rest"].tolist()
        state = ("MT19937", arrays["random/keys"], int(position), int(has_gauss), cached)
        np.random.set_state(state)  # noqa: NPY002
        if self.normalizer is not None:
            self._set_returns(*arrays["moments"].tolist())
            self.normalizer.returns[:] = arrays["sums"]
