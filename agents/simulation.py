"""Whole episodes side by side in a native simulator, one in each of its environments; its state as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.agents.scorer import Scorer
from schedgym.core.arrays import Flags, Floats, Floats32, Integers, members
from schedgym.core.problem import get_problem
from schedgym.core.rollouts import play_out
from schedgym.core.simulator import Simulator
from schedgym.core.stepping import ACT, SKIP
from schedgym.errors import InvalidParameter

Arrays = dict[str, npt.NDArray[Any]]


def make_simulator(id: str, parameters: Mapping[str, Any], num_envs: int) -> Simulator:
    """The native simulator of ``num_envs`` environments with ``observation="features"``."""
    problem = get_problem(id)
    built = problem.build(id, {**parameters, "observation": "features"})
    made: Simulator = problem.module("simulator").make_simulator(built, num_envs, id)
    return made


def advance(simulator: Simulator, actions: Any, live: Flags) -> int:
    """Let the environments that ``live`` [B] names take their actions [B, ...]; the others do nothing.

    Returns the number of episodes that ended.

    Raises:
        InvalidAction: if an environment refuses its action; then nothing has changed.
    """
    simulator.write(actions)
    ended = simulator.step(np.where(live, np.int8(ACT), np.int8(SKIP)))
    if ended < 0:
        raise simulator.refusal(-ended - 1, f"actions[{-ended - 1}]")
    return ended


def arrays_of(simulator: Simulator) -> Arrays:
    """The arrays that each environment has of its own, by "bundle/array": [B, ...], not copied."""
    return {
        f"{member.name}/{name}": array
        for member in members(simulator.environment)
        if not member.kind
        for name, array in getattr(simulator.arrays, member.name)._asdict().items()
    }


def state_of(simulator: Simulator) -> Arrays:
    """The state of all environments, for :func:`restore_state`: copies.

    Its arrays are those of :func:`arrays_of`, and ``seeds`` [B], ``episodes`` [B] and ``sizes``, the lengths
    of all dimensions. Workloads given as options are not part of it.
    """
    places = {"seeds": simulator.seeds.copy(), "episodes": simulator.episodes.copy()}
    sizes = np.array(list(simulator.sizes.values()))
    return places | {"sizes": sizes} | {name: array.copy() for name, array in arrays_of(simulator).items()}


def restore_state(simulator: Simulator, state: Mapping[str, npt.NDArray[Any]]) -> None:
    """Bring the environments of a simulator that is made alike to a state of :func:`state_of`.

    Raises:
        InvalidParameter: if the state does not fit.
    """
    simulator.seeds[:] = state["seeds"]
    simulator.seeded[:] = True
    simulator.episodes[:] = state["episodes"] - 1  # which counts up when an episode begins
    simulator.begin(np.ones(simulator.num_envs, dtype=bool))
    # the logs may have grown since; what is longer here than there keeps its initial values
    simulator.reserve(**dict(zip(simulator.sizes, state["sizes"].tolist(), strict=True)))
    for name, array in arrays_of(simulator).items():
        overwrite(array, state, name)


def overwrite(array: npt.NDArray[Any], state: Mapping[str, npt.NDArray[Any]], name: str) -> None:
    """Write an array of a state to the first places of one that may be longer.

    Raises:
        InvalidParameter: if it does not fit.
    """
    values = state.get(name)
    if values is None or values.dtype != array.dtype or values.ndim != array.ndim or values.size > array.size:
        raise InvalidParameter(f"checkpoint: {name} is not as the environments have it: of another version")
    array[tuple(slice(length) for length in values.shape)] = values


def _begin(simulator: Simulator, seed: int, episodes: Integers) -> Flags:
    """Begin these episodes; return which environments play one."""
    live = episodes >= 0
    for i in np.flatnonzero(live).tolist():
        simulator.seed(i, seed)
        simulator.episodes[i] = episodes[i]
    simulator.begin(live)
    return live


def play_scored(
    simulator: Simulator,
    scorer: Scorer,
    thetas: Floats32,
    seed: int,
    episodes: Integers,
) -> tuple[Floats, int]:
    """Play one episode in each environment by scorers, in compiled code.

    Args:
        simulator: simulator of B environments.
        scorer: a scorer that :attr:`~schedgym.agents.scorer.Scorer.plays` in its view.
        thetas: its parameters, [P, size]: the first B / P environments play by the first row, and so on.
        seed: seed of all environments.
        episodes: number of the episode that each plays, [B]; less than 0: it plays none.

    Returns:
        as :func:`play_episodes`.

    Raises:
        InvalidAction: if an environment refuses an action.
        InvalidParameter: if a score is not a number, or the rows do not divide the environments.
    """
    weights = scorer.weights(thetas, simulator.num_envs)
    live = _begin(simulator, seed, episodes)
    _, decisions = play_out(simulator, scorer.form, scorer.masks, weights, live)
    found = np.where(live[:, np.newaxis], simulator.measure(live), np.nan)
    return found, int(decisions.sum())


def play_episodes(
    simulator: Simulator,
    act: Callable[[Arrays, Flags], Any],
    seed: int,
    episodes: Integers,
) -> tuple[Floats, int]:
    """Play one episode in each environment.

    Args:
        simulator: simulator of B environments.
        act: (batch of observations [B, ...], which environments still play [B]) -> actions [B, ...]. The
            observations are the live buffers: not to be kept.
        seed: seed of all environments.
        episodes: number of the episode that each plays, [B]; less than 0: it plays none.

    Returns:
        the metrics [B, metrics], NaN where none was played, and the number of decisions.

    Raises:
        InvalidAction: if an environment refuses an action.
    """
    live = _begin(simulator, seed, episodes)
    found = np.full((simulator.num_envs, len(simulator.metric_names)), np.nan)
    decisions = 0
    while live.any():
        ended = advance(simulator, act(simulator.observation, live), live)
        decisions += int(np.count_nonzero(live))
        if ended:
            done = live & (simulator.terminated | simulator.truncated)
            found[done] = simulator.measure(done)[done]
            live = live & ~done
    return found, decisions


def held_out(
    id: str,
    act: Callable[[Arrays], Any],
    episodes: int,
    seed: int,
    *,
    parameters: Mapping[str, Any] | None = None,
    num_envs: int = 64,
) -> list[dict[str, float]]:
    """The metrics of episodes 0, 1, ... of a seed, played side by side.

    Args:
        id: environment id.
        act: batch of observations [n, ...] ("features"; live buffers, not to be kept) -> actions [n, ...].
        episodes: number of episodes.
        seed: seed of the environment.
        parameters: parameters of the environment.
        num_envs: most episodes at a time.

    Raises:
        InvalidAction: if an environment refuses an action.
    """
    simulator = make_simulator(id, parameters or {}, min(num_envs, episodes))
    found: list[dict[str, float]] = []
    for first in range(0, episodes, simulator.num_envs):
        numbers = first + np.arange(simulator.num_envs)
        numbers[numbers >= episodes] = -1
        measured, _ = play_episodes(simulator, lambda seen, _: act(seen), seed, numbers)
        rows = measured[numbers >= 0].tolist()
        found += [dict(zip(simulator.metric_names, row, strict=True)) for row in rows]
    return found
