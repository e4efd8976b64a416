"""The settings of rl-zoo3 are for every id, and a policy can be made of each; .ci/checks trains with them."""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

import gymnasium as gym
import pytest
import yaml

from schedgym.agents.config import load_config
from schedgym.agents.examples import zoo
from schedgym.agents.options import NetworkOptions
from tests.lazy import Lazy, needs
from tests.test_all_problems import IDS

pytestmark = needs("sb3_contrib")

sb3_contrib = Lazy("sb3_contrib")
ZOO = Path(__file__).resolve().parents[2] / "agents" / "zoo"
ALGORITHMS = ("ppo", "ppo_mask")
#: they have aliases, which the package's own reader refuses
SETTINGS = {name: yaml.safe_load((ZOO / f"{name}.yml").read_text(encoding="utf-8")) for name in ALGORITHMS}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_id_has_settings(algorithm: str) -> None:
    assert set(SETTINGS[algorithm]) == {"common", *IDS}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("id", IDS)
def test_settings_fit_the_environment(id: str, algorithm: str) -> None:
    settings = SETTINGS[algorithm][id]
    assert settings["n_envs"] * settings["n_steps"] % settings["batch_size"] == 0
    env = gym.make(id, **settings["env_kwargs"]).unwrapped
    options = settings.get("policy_kwargs", {})
    if algorithm == "ppo_mask":
        assert "action_mask" in env.observation_space.spaces
        policy = sb3_contrib.MaskablePPO.policy_aliases[settings["policy"]]
    else:
        assert options["view"] == env.interface.view
        module, _, name = settings["policy"].rpartition(".")
        policy = getattr(importlib.import_module(module), name)
    policy(env.observation_space, env.action_space, lambda _: 1e-3, **options)


@pytest.mark.parametrize("algorithm", ["ppo", "sb3-ppo"])
@pytest.mark.parametrize("id", IDS)
def test_trainings_take_the_same_settings(id: str, algorithm: str) -> None:
    settings = SETTINGS["ppo"][id]
    config = load_config(f"{id.rpartition('/')[2]}-{algorithm}")
    options = settings["policy_kwargs"]
    assert (config.id, config.algorithm, config.view) == (id, algorithm, options["view"])
    assert (config.steps, config.num_envs) == (settings["n_timesteps"], settings["n_envs"])
    assert {**config.parameters, "observation": "features"} == settings["env_kwargs"]
    assert config.network.log_std == options.get("log_std", NetworkOptions().log_std)
    for name in ("n_steps", "batch_size", "n_epochs", "learning_rate", "gamma", "gae_lambda"):
        assert getattr(config.ppo, name) == settings[name]


def test_rl_zoo3_is_given_the_masked_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    algorithms: dict[str, type] = {}
    trained: list[list[str]] = []
    monkeypatch.setitem(sys.modules, "rl_zoo3", types.SimpleNamespace(ALGOS=algorithms))
    training = types.SimpleNamespace(train=lambda: trained.append(sorted(algorithms)))
    monkeypatch.setitem(sys.modules, "rl_zoo3.train", training)
    zoo.main()
    assert trained == [["ppo_mask"]] and algorithms["ppo_mask"] is sb3_contrib.MaskablePPO
