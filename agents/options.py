"""The options of training with gradients, as checked data: no torch here."""

from __future__ import annotations

import dataclasses

from schedgym.core.problem import Parameters, parameter

KEEP = ("best", "last")


@dataclasses.dataclass(frozen=True)
class NetworkOptions(Parameters):
    """The form of the network; see :mod:`schedgym.agents.network`."""

    width: int = parameter(32, "units of every hidden layer", minimum=1, maximum=1024)
    rounds: int = parameter(1, "1, or 2 to encode the tokens again in their context", minimum=1, maximum=2)
    log_std: float = parameter(
        -1.0, "logarithm of the spread of exploration at first (Box views)", minimum=-10, maximum=3
    )


@dataclasses.dataclass(frozen=True)
class PPOOptions(Parameters):
    """The options of PPO, named as stable-baselines3 names them."""

    learning_rate: float = parameter(3e-4, "of Adam, at first", minimum=0, exclusive=True)
    final_learning_rate: float = parameter(0.0, "of Adam, at the end: it falls linearly", minimum=0)
    n_steps: int = parameter(128, "steps of each environment between updates", minimum=2)
    batch_size: int = parameter(256, "samples of a gradient step", minimum=2)
    n_epochs: int = parameter(4, "passes over the samples of an update", minimum=1)
    gamma: float = parameter(
        1.0, "discount (1: the sum of the rewards is the objective)", minimum=0, maximum=1
    )
    gae_lambda: float = parameter(0.95, "lambda of the advantages", minimum=0, maximum=1)
    clip_range: float = parameter(0.2, "most change of a probability ratio", minimum=0, exclusive=True)
    ent_coef: float = parameter(0.0, "weight of the entropy", minimum=0)
    vf_coef: float = parameter(0.5, "weight of the error of the values", minimum=0)
    max_grad_norm: float = parameter(0.5, "longest gradient", minimum=0, exclusive=True)
    target_kl: float | None = parameter(None, "ends an update early", minimum=0, exclusive=True)
    copies: int = parameter(
        1,
        "environments that play the same workload, whole episodes of it, with their mean in the place of a "
        "critic; 1: a critic (algorithm ppo only)",
        minimum=1,
    )
    normalize_returns: bool = parameter(True, "divide rewards by the standard deviation of the returns")


@dataclasses.dataclass(frozen=True)
class ImitationOptions(Parameters):
    """Behaviour cloning of a named policy, before anything else; see :mod:`schedgym.agents.imitate`."""

    policy: str = parameter("", "name of the policy to clone")
    episodes: int = parameter(64, "episodes of its trajectories", minimum=1)
    epochs: int = parameter(20, "passes over them", minimum=0)
    batch_size: int = parameter(256, "decisions of a gradient step", minimum=1)
    learning_rate: float = parameter(1e-3, "of Adam, at first; it falls to 0", minimum=0, exclusive=True)
    critic: bool = parameter(True, "whether the critic learns its returns, too")


@dataclasses.dataclass(frozen=True)
class EvaluationOptions(Parameters):
    """Validation on held-out episodes while a training goes on."""

    every: int = parameter(50_000, "steps from one to the next", minimum=1)
    episodes: int = parameter(64, "how many", minimum=1)
    keep: str = parameter("best", "which weights become the agent: best of these, or last", choices=KEEP)
