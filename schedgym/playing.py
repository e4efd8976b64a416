"""Episodes, step by step: the one loop in Python that plays them, for evaluations, agents and tests."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from schedgym.core.compilation import COMPILATION
from schedgym.core.policy import Policy
from schedgym.core.snapshots import Model
from schedgym.core.workload import Workload
from schedgym.envs import SchedulingEnv
from schedgym.errors import InvalidParameter


def policy_rng(seed: int, episode: int, label: str) -> np.random.Generator:
    """A policy's random numbers in an episode: a function of these three and nothing else."""
    return np.random.default_rng(np.random.SeedSequence([seed, episode], spawn_key=tuple(label.encode())))


class Step(NamedTuple):
    """An episode after its begin, or after a step.

    Attributes:
        observation: of which the next decision is made.
        reward: of the step; 0 at the begin.
        seconds: time on the wall that the policy took for its decision, without that of compiling [s].
        ended: True after the last step.
        truncated: True if the episode ended with work left.
        info: of the step.
        action: the policy's decision, which the step has carried out; None at the begin.
    """

    observation: Any
    reward: float = 0.0
    seconds: float = 0.0
    ended: bool = False
    truncated: bool = False
    info: Mapping[str, Any] = {}
    action: Any = None


def steps(
    env: SchedulingEnv,
    policy: Policy,
    *,
    seed: int = 0,
    episode: int = 0,
    label: str = "",
    workload: Workload | None = None,
    rng: np.random.Generator | None = None,
) -> Iterator[Step]:
    """Play an episode step by step; yields its begin, and each step.

    Arguments are those of :func:`schedgym.evaluation.episodes.play`; ``rng`` are the policy's random numbers,
    None: those of :func:`policy_rng`. The state of the environment is that after the step until the next one
    is asked for.

    Raises:
        InvalidParameter: for what is no bare environment of this package, or no policy.
    """
    if not isinstance(env, SchedulingEnv):
        raise InvalidParameter(f"env: must be one of make_env, or unwrapped, got {type(env).__name__}")
    if not isinstance(policy, Policy) or isinstance(policy, type):
        raise InvalidParameter(f"policy: must have reset and __call__, got {type(policy).__name__}")
    options: dict[str, Any] = {"episode": episode} if workload is None else {"workload": workload}
    observation, _ = env.reset(seed=seed, options=options)
    policy.reset(env.interface, rng or policy_rng(seed, episode, label))
    if plans := getattr(policy, "plans", ""):
        cast(Any, policy).bind(Model(env.simulator, clairvoyant=plans == "clairvoyant"))
    yield Step(observation)
    step, clock, ended = env.step, time.perf_counter, False
    while not ended:
        began = clock() - COMPILATION.seconds
        action = policy(observation)
        seconds = clock() - COMPILATION.seconds - began
        observation, reward, terminated, truncated, info = step(action)
        ended = terminated or truncated
        yield Step(observation, reward, seconds, ended, bool(truncated), info, action)
