"""Minari: DataCollector records every id, with infos; the data set recovers the environment."""

import os
import sys
import tempfile

import gymnasium as gym
import minari

import schedgym  # noqa: F401  (registers the ids)

os.environ["MINARI_DATASETS_PATH"] = tempfile.mkdtemp()
env = minari.DataCollector(gym.make(sys.argv[1], max_episode_steps=50), record_infos=True)
for seed in range(2):
    env.reset(seed=seed)
    ended = False
    while not ended:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        ended = terminated or truncated
told = {"algorithm_name": "random", "author": "you", "author_email": "you@example.org", "code_permalink": "-"}
data = env.create_dataset("schedgym/random-v0", **told)
first, again = data[0].observations, data.recover_environment().reset(seed=0)[0]
assert all((first[name][0] == again[name]).all() for name in first)
print(data.total_episodes, "episodes,", data.total_steps, "steps; the environment is recovered")
