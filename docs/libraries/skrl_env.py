"""skrl: wrap_env takes a single environment of every id, and flattens its observations."""

import sys

import gymnasium as gym
import torch
from skrl.envs.wrappers.torch import wrap_env

import schedgym  # noqa: F401  (registers the ids)

env = wrap_env(gym.make(sys.argv[1]))
observation, _ = env.reset()
total = 0.0
for _ in range(200):
    action = torch.as_tensor(env.action_space.sample()).reshape(1, -1)
    observation, reward, terminated, truncated, _ = env.step(action)
    total += float(reward)
    if terminated or truncated:
        observation, _ = env.reset()
print("200 steps of", observation.shape[-1], "numbers, sum of rewards", total)
