"""stable-baselines3: PPO learns in every id, here on the native vector environment."""

import sys

from stable_baselines3 import PPO

from schedgym.agents.sb3 import make_vec_env

model = PPO("MultiInputPolicy", make_vec_env(sys.argv[1], 4, 0), n_steps=64, batch_size=64, device="cpu")
model.learn(512)
print(model.num_timesteps, "steps")
