"""TorchRL: GymEnv takes every id. ActionMask closes actions, where the mask has an entry for each."""

import sys

from torchrl.envs import ActionMask, GymEnv, TransformedEnv, check_env_specs

import schedgym  # noqa: F401  (registers the ids)

env = GymEnv(sys.argv[1], categorical_action_encoding=True)
check_env_specs(env)
masks = {name: spec.shape for name, spec in env.observation_spec.items() if name == "action_mask"}
if masks and masks["action_mask"] == (getattr(env.action_spec, "n", -1),):
    env = TransformedEnv(env, ActionMask(mask_key="action_mask"))
played = env.rollout(200, break_when_any_done=False)
print(len(played), "steps, sum of rewards", float(played["next", "reward"].sum()))
