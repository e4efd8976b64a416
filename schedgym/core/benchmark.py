"""Benchmark and Growth: the measurements of ``schedgym bench``, which a problem's module ``bench`` lists.

The module has the benchmarks in ``CASES``, and the quantities that can grow in ``GROWTH``.
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
        name: name of the benchmark in the printed table.
        id: environment id.
        parameters: parameters of the environment (and ``copy``); with ``policy``, on top of the baseline's.
        act: function observation -> action, or with ``num_envs`` batch -> batch; its time is not counted.
        num_envs: size of the vector environment; 0: one environment, of ``gym.make``.
        autoreset: mode of the vector environment.
        steps: steps of a full run (of all environments at once); None: the number that all problems share.
        policy: short name of a policy.
        target: the target value, as text; for a single environment in multiples of CartPole's rate ("x").
        slow: True if a quick run leaves the benchmark out.
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
        name: name of the quantity that grows.
        sizes: its values, from small to large.
        parameters: size -> parameters of the environment, which override the id's baseline parameters.
        expected: policy -> the largest expected exponents of the seconds of its decisions, and of everything
            else; "" stands for all other policies.
        why: the quantities that stay the same, and the source of the exponents.
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
