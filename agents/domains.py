"""Domains: the sets of parameters that a training mixes, and the baselines that it measures itself against.

An agent that is trained on one size and load of a cluster may fail on others. A configuration can therefore
name several sets of parameters, each with a weight; the fitness is the weighted mean over them. Some may be
kept for validation: no candidate is trained there. What an agent is worth elsewhere is measured on settings
that its configuration does not name.

Traces. Episodes of a trace are its windows, which are the same for every seed. With domains the first
windows, in order of time, serve training, those after them validation, and the last ones, one in five, no
part of a training: see :data:`PARTS`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium as gym
import numpy as np

from schedgym.core.arrays import Floats, Integers
from schedgym.core.policy import get_policy_spec, make_policy
from schedgym.core.problem import Parameters, get_problem, parameter
from schedgym.core.simulator import Simulator
from schedgym.core.source import first_window
from schedgym.core.tokens import tokens_of
from schedgym.errors import InvalidParameter
from schedgym.playing import steps

#: part of a trace -> its first and last window, as shares of the number of windows
PARTS = {"training": (0.0, 0.6), "validation": (0.6, 0.8), "test": (0.8, 1.0)}
LEAST_WINDOWS = 5  # of a trace that has a window in each part


@dataclasses.dataclass(frozen=True)
class DomainOptions(Parameters):
    """One domain of a configuration."""

    #: parameters of the environment, over those of the configuration
    parameters: dict = dataclasses.field(default_factory=dict)  # type: ignore[type-arg]
    weight: float = parameter(1.0, "in the mean over the domains", minimum=0, exclusive=True)
    episodes: int | None = parameter(
        None,
        "that each candidate plays there in a generation, or that a validation has (none: the search's)",
        minimum=1,
        maximum=10**5,
    )
    use: str = parameter(
        "training",
        "validation: no candidate is trained there; with no such domain those of the training validate, too",
        choices=("training", "validation"),
    )


@dataclasses.dataclass(frozen=True)
class Domain:
    """One domain with everything that its environments need.

    Attributes:
        name: name in the configuration; "" for the only domain of one that names none.
        weight: weight in the mean over the domains.
        environment: keyword arguments of the environment that the agent acts in.
        episodes: that a candidate plays in a generation, or a validation has; None: those of the search.
        split: True if only a part of a trace's windows is played; see :data:`PARTS`.
    """

    name: str
    weight: float
    environment: Mapping[str, Any]
    episodes: int | None = None
    split: bool = True


def windows_of_part(windows: int, part: str) -> range:
    """The windows of a trace, numbered in order of time, that belong to a part.

    Raises:
        InvalidParameter: for a trace of fewer windows than can be split.
    """
    if windows < LEAST_WINDOWS:
        raise InvalidParameter(
            f"domains: a trace is split into {', '.join(PARTS)} by windows: it needs {LEAST_WINDOWS} or "
            f"more, this one has {windows}"
        )
    first, last = (math.floor(share * windows + 1e-9) for share in PARTS[part])
    return range(first, last)


def episodes_of_part(simulator: Simulator, part: str, seed: int, numbers: Integers) -> Integers:
    """The episodes of ``seed`` that play windows of one part of a trace.

    Args:
        simulator: simulator of the environments.
        part: name in :data:`PARTS`; "": episodes are not split.
        seed: seed of the environments.
        numbers: number of each episode within that part; if there are more than it has windows, they repeat.

    Returns:
        numbers of episodes; ``numbers`` where episodes are drawn.

    Raises:
        InvalidParameter: for a trace of fewer windows than can be split.
    """
    windows = int(getattr(simulator.source, "windows", 0))
    if not part or not windows:
        return numbers
    own = windows_of_part(windows, part)
    stream = simulator.problem.module("workload").WINDOWS
    return (own.start + numbers % len(own) - first_window(seed, stream, windows)) % windows


def shared_with_baselines(id: str, environment: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an agent's environment that are the problem's, and not the agents' own."""
    own = {"view", "observation", "action_mask", *tokens_of(id).acting}
    return {name: value for name, value in environment.items() if name not in own}


def best_baseline(
    id: str, names: Sequence[str], environment: Mapping[str, Any], seed: int, episodes: Integers
) -> tuple[str, Floats]:
    """The baseline with the best mean objective in a domain, and its objective in each episode.

    Args:
        id: environment id.
        names: names of policies.
        environment: the agent's environment; baselines act in their own view, and see what they need.
        seed: seed of the environment, and of the policies' random numbers.
        episodes: numbers of the episodes.

    Raises:
        UnknownName, InvalidParameter: for a policy that does not exist or cannot act there.
    """
    problem = get_problem(id)
    values = {**problem.ids[id].baseline_parameters, **shared_with_baselines(id, environment)}
    metric = problem.metric(problem.objective_of(problem.build(id, values)))
    found: list[tuple[str, Floats]] = []
    for name in names:
        spec = get_policy_spec(name, problem.name)
        view = spec.acting_view(
            str(values.get("view", problem.views[0].name)), [v.name for v in problem.views]
        )
        env = cast(
            Any, gym.make(id, disable_env_checker=True, copy=False, **{**values, "view": view}).unwrapped
        )
        policy = make_policy(name, problem.name)
        objectives = []
        for episode in episodes.tolist():
            rng = np.random.default_rng([seed, episode])
            *_, last = steps(env, policy, seed=seed, episode=episode, rng=rng)
            objectives.append(last.info["metrics"][metric.name])
        found.append((name, np.array(objectives)))
    return min(found, key=lambda pair: metric.sign * float(pair[1].mean()))
