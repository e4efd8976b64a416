"""PPO of RLlib (new API stack) in any environment with discrete actions: registration, and masked actions.

``python -m schedgym.agents.examples.rllib_ppo --id schedgym/QueueDelay-v0 --view pick``
"""

from __future__ import annotations

import argparse
import functools
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import DependencyNotInstalled

import schedgym  # noqa: F401  (registers the ids)
from schedgym.agents.network import initial
from schedgym.agents.torch_network import Network
from schedgym.agents.views import make_layout
from schedgym.core.problem import get_problem
from schedgym.core.tokens import tokens_of
from schedgym.errors import InvalidParameter, SchedgymError
from schedgym.extras import require

NAME = "schedgym"  # under which the environments are registered


def make_env(context: Mapping[str, Any]) -> Any:
    """Make the environment that RLlib's ``env_config`` describes, for ``ray.tune.register_env``.

    Args:
        context: ``id`` and parameters; with ``num_envs`` it is a native vector environment.
    """
    parameters = dict(context)
    id, num_envs = parameters.pop("id"), parameters.pop("num_envs", None)
    if num_envs is None:
        return gym.make(id, **parameters)
    return gym.make_vec(id, num_envs=num_envs, vectorization_mode="vector_entry_point", **parameters)


def _require(module: str) -> Any:
    """Import a module of Ray; RLlib needs packages that Ray alone does not bring.

    Raises:
        gymnasium.error.DependencyNotInstalled: if it, or what it needs, is not installed.
    """
    try:
        return require(module, "rllib")
    except ModuleNotFoundError as error:
        raise DependencyNotInstalled(
            f'{error.name}, which RLlib needs, is not installed; run: pip install "schedgym[rllib]"'
        ) from None


@functools.cache
def token_module() -> Any:
    """The class of RLModules that score tokens by the network of :mod:`~schedgym.agents.network`.

    Closed actions have probability 0. Its ``model_config`` has ``problem``, ``view``, ``width`` and ``seed``.

    Raises:
        gymnasium.error.DependencyNotInstalled: without the extra ``rllib``.
    """
    torch_module: Any = _require("ray.rllib.core.rl_module.torch").TorchRLModule
    value_function: Any = _require("ray.rllib.core.rl_module.apis").ValueFunctionAPI
    columns: Any = _require("ray.rllib.core.columns").Columns

    class TokenModule(torch_module, value_function):  # type: ignore[misc]
        def setup(self) -> None:
            given, space = self.model_config, self.observation_space
            layout = make_layout(given["problem"], given["view"], space, self.action_space)
            rng = np.random.default_rng(given["seed"])
            self.network = Network(layout, initial(layout, rng, given["width"]))

        def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
            return {columns.ACTION_DIST_INPUTS: self.network.scores(batch[columns.OBS])}

        def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
            return self.network.values(batch[columns.OBS])

    return TokenModule


def configuration(
    id: str, parameters: Mapping[str, Any], *, num_envs: int = 16, workers: int = 0, seed: int = 0
) -> Any:
    """A ``PPOConfig`` for an environment; change it as you like, then ``build_algo()``.

    Args:
        id: environment id.
        parameters: parameters of the environment, ``view`` among them; observations are features.
        num_envs: environments of a worker, in one native vector environment.
        workers: processes that play; 0: the one that learns plays, too.
        seed: seed of the training.

    Raises:
        UnknownName, InvalidParameter: for an id or parameters that do not exist, or a view that has no
            Discrete actions.
        gymnasium.error.DependencyNotInstalled: without the extra ``rllib``.
    """
    given = {**parameters, "observation": "features"}
    problem = get_problem(id)
    built: Any = problem.build(id, given)
    view = built.view
    known = [name for name, scored in tokens_of(id).views.items() if scored.kind == "choice"]
    if view not in known:
        raise InvalidParameter(f"view: {view!r} has no Discrete actions; those that have: {', '.join(known)}")
    _require("ray.tune").register_env(NAME, make_env)
    config = _require("ray.rllib.algorithms.ppo").PPOConfig()
    spec = _require("ray.rllib.core.rl_module.rl_module").RLModuleSpec(
        module_class=token_module(),
        model_config={"problem": problem.name, "view": view, "width": 32, "seed": seed},
    )
    return (
        config.environment(NAME, env_config={"id": id, **given})
        .env_runners(
            num_env_runners=workers,
            num_envs_per_env_runner=num_envs,
            gym_env_vectorize_mode=gym.VectorizeMode.VECTOR_ENTRY_POINT,
        )
        .learners(num_learners=0)
        .rl_module(rl_module_spec=spec)
        .training(
            lr=1e-3,
            gamma=1.0,
            lambda_=0.95,
            train_batch_size_per_learner=num_envs * 128,
            minibatch_size=256,
            num_epochs=4,
            vf_clip_param=float("inf"),
            entropy_coeff=0.0,
        )
        .debugging(seed=seed)
    )


def main(
    id: str = "schedgym/QueueDelay-v0",
    view: str = "pick",
    iterations: int = 20,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    report: Callable[[str], Any] | None = print,
) -> list[float]:
    """Train an agent.

    Args:
        id: environment id.
        view: an action view with Discrete actions.
        iterations: number of rounds of sampling and learning.
        seed: seed of the training.
        parameters: parameters of the environment, but for the view.
        report: called with a line on the result of each iteration.

    Returns:
        the mean return of the episodes that ended in each iteration; NaN where none did.
    """
    config = configuration(id, {**(parameters or {}), "view": view}, seed=seed)
    found = []
    with _require("ray").init(include_dashboard=False, logging_level="warning"):
        algorithm = config.build_algo()
        for i in range(iterations):
            runners = algorithm.train()["env_runners"]
            found.append(float(runners.get("episode_return_mean", math.nan)))
            if report is not None:
                report(f"iteration {i + 1}: mean return {found[-1]:.3f}")
        algorithm.stop()
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="PPO of RLlib.")
    parser.add_argument("--id", default="schedgym/QueueDelay-v0", help="environment id")
    parser.add_argument("--view", default="pick", help="a view with discrete actions")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    try:
        main(**vars(parser.parse_args()))
    except (DependencyNotInstalled, SchedgymError) as error:
        sys.exit(f"error: {error}")
