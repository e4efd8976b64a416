"""Small trainings of every kind, and the one way in which tests run them."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.agents.config import Config, make_config

QUEUE, VALUE, FLOWTIME = (f"schedgym/{name}-v0" for name in ("QueueDelay", "PartialValue", "FlowtimePacking"))
#: where fcfs lives
HOME = {"tasks": 30, "servers": 3, "window": 8, "scope": "all", "rule": "first"}

PPO: dict[str, Any] = {
    "id": QUEUE,
    "view": "pick",
    "parameters": HOME,
    "steps": 1024,
    "num_envs": 8,
    "checkpoint": 256,
    "network": {"width": 8},
    "ppo": {"n_steps": 32, "batch_size": 64, "learning_rate": 2e-3, "n_epochs": 2},
    "evaluation": {"every": 512, "episodes": 8},
    "imitation": {"policy": "fcfs", "episodes": 6, "epochs": 2, "batch_size": 64},
}
COPIES: dict[str, Any] = {
    **PPO,
    "id": VALUE,
    "view": "priority",
    "parameters": {"jobs": 8, "rate": 10.0, "window": 6},
    "ppo": {"copies": 4, "batch_size": 64, "n_epochs": 2, "learning_rate": 2e-3},
    "imitation": {"policy": "s-greedy", "episodes": 12, "epochs": 1, "batch_size": 32},
}
#: kind -> its configuration: every algorithm, PPO with and without a critic, and other kinds of views
KINDS: dict[str, dict[str, Any]] = {
    "cma": {
        "id": FLOWTIME,
        "algorithm": "cma",
        "view": "priority",
        "parameters": {"jobs": 12, "servers": "4+2+2", "window": "all"},
        "checkpoint": 2,
        "scorer": {"hidden": 2, "columns": {"job": ["log work left", "log processing", "age"]}},
        "search": {
            **{"population": 6, "episodes": 4, "generations": 6},
            **{"validate_every": 2, "validation_episodes": 12},
        },
    },
    "ppo": {**PPO, "algorithm": "ppo"},
    "sb3-ppo": {**PPO, "algorithm": "sb3-ppo"},
    "copies": {**COPIES, "algorithm": "ppo"},
    "scores": {
        **{**PPO, "algorithm": "ppo", "imitation": None},
        **{"id": FLOWTIME, "view": "priority", "parameters": {"jobs": 6, "servers": "4+2", "window": 5}},
    },
    "sb3-ppo pairs": {
        **{**PPO, "algorithm": "sb3-ppo", "imitation": None},
        **{"view": "placement", "parameters": {"tasks": 30, "servers": 3, "window": 8}},
    },
}


def configuration(kind: str, **changes: Any) -> Config:
    """The configuration of a kind with other entries; None leaves one out."""
    data = {**KINDS[kind], **changes}
    return make_config({name: value for name, value in data.items() if value is not None})


def unlike(first: Any, second: Any) -> list[str]:
    """Names of the weights in which two results differ."""
    assert first.weights.keys() == second.weights.keys()
    return [name for name, array in first.weights.items() if not np.array_equal(array, second.weights[name])]


def curve(result: Any) -> list[dict[str, Any]]:
    """The validations of a result, without the time that they took."""
    return [{n: v for n, v in vars(point).items() if n != "seconds"} for point in result.curve]
