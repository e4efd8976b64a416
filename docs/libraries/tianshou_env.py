"""Tianshou: its vector environments take single ones of every id."""

import sys

import gymnasium as gym
import numpy as np
from tianshou.env import DummyVectorEnv

import schedgym  # noqa: F401  (registers the ids)

envs = DummyVectorEnv([lambda: gym.make(sys.argv[1])] * 3)
observations, _ = envs.reset(seed=0)
total, episodes = 0.0, 0
for _ in range(100):
    actions = np.array([space.sample() for space in envs.action_space])
    observations, rewards, terminated, truncated, infos = envs.step(actions)
    total += float(np.sum(rewards))
    ended = np.flatnonzero(terminated | truncated)
    episodes += len(ended)
    if len(ended):
        envs.reset(ended)
print("300 steps,", episodes, "episodes, sum of rewards", total)
