"""Benchmark and Growth: what ``schedgym bench`` measures, as a problem's module ``bench`` lists it.

The module has ``CASES``, and in ``GROWTH`` what can grow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Benchmark", "Growth", "first_feasible"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Benchmark:
    """The steps per second of an environment, or with ``policy`` the seconds of a whole episode.

    Attributes:
        name: what is printed.
        id: environment id.
        parameters: of the environment (and ``copy``); with ``policy`` over the id's baseline parameters.
        act: the action for an observation, or with ``num_envs`` the batch for a batch; its time is left out.
        num_envs: size of the vector environment; 0: one environment, of ``gym.make``.
        autoreset: mode of the vector environment.
        steps: of a full run (of all environments at once); None: as many as of all problems' environments.
        policy: short name of a policy.
        target: what is aimed at, as text; that of one environment in multiples of CartPole's rate ("x").
        slow: whether a quick run leaves it out.
    """

    name: str
    id: str
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    act: Callable[[Any], Any] | None = None
    num_envs: int = 0
    autoreset: str = "NextStep"
    steps: int | None = None
    policy: str = ""
    target: str = "-"
    slow: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Growth:
    """One way in which an environment's episodes can grow: a table of ``schedgym bench --growth``.

    Attributes:
        id: environment id.
        name: what grows.
        sizes: from small to large.
        parameters: of the environment, for a size; over the id's baseline parameters.
        expected: policy -> the exponents that the seconds of its decisions, and of everything else, should
            have at most; "" stands for all others.
        why: what stays the same, and where the exponents come from.
    """

    id: str
    name: str
    sizes: tuple[int, ...]
    parameters: Callable[[int], Mapping[str, Any]]
    expected: Mapping[str, tuple[float, float]]
    why: str


def first_feasible(observation: Any) -> Any:
    """Return the first feasible action; of a batch of observations, that of each environment."""
    return observation["action_mask"].argmax(axis=-1)
