"""RLlib: PPO learns in every id, on flat observations; agents/examples/rllib_ppo.py uses tokens and masks."""

import sys

import gymnasium as gym
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune import register_env

import schedgym  # noqa: F401  (registers the ids)

register_env("scheduling", lambda _: gym.wrappers.FlattenObservation(gym.make(sys.argv[1])))
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
config = PPOConfig().environment("scheduling").env_runners(num_env_runners=0)
algorithm = config.training(train_batch_size=512, minibatch_size=64, num_epochs=1).build_algo()
result = algorithm.train()
print(int(result["num_env_steps_sampled_lifetime"]), "steps")
algorithm.stop()
