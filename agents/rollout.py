"""Rollouts: whole episodes side by side in a native simulator, one in each of its environments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.agents.scorer import Scorer
from schedgym.core.problem import get_problem
from schedgym.core.rollouts import play_out
from schedgym.core.simulator import Simulator
from schedgym.core.stepping import ACT, SKIP
from schedgym.errors import InvalidParameter

__all__ = [
    "History",
    "advance",
    "held_out",
    "make_simulator",
    "play_episodes",
    "play_scored",
    "set_actions",
]

Arrays = dict[str, npt.NDArray[Any]]

FORGET = 256  # every so many steps, recorded actions of finished episodes are dropped


def make_simulator(id: str, parameters: Mapping[str, Any], num_envs: int) -> Simulator:
    """The native simulator of ``num_envs`` environments with ``observation="features"``."""
    problem = get_problem(id)
    built = problem.build(id, {**parameters, "observation": "features"})
    made: Simulator = problem.module("simulator").make_simulator(built, num_envs, id)
    return made


def set_actions(simulator: Simulator, actions: Any) -> None:
    """Write a batch of actions [B, ...], as the environments take them, into the simulator."""
    array = np.asarray(actions)
    if simulator.continuous:
        simulator.actions[...] = array.reshape(simulator.actions.shape)
    else:
        simulator.actions[:, : len(simulator.action_sizes)] = array.reshape(simulator.num_envs, -1)


def advance(simulator: Simulator, actions: Any, live: npt.NDArray[np.bool_]) -> int:
    """Let the environments that ``live`` [B] names take their actions [B, ...]; the others do nothing.

    Returns the number of episodes that ended.

    Raises:
        InvalidAction: if an environment refuses its action; then nothing has changed.
    """
    set_actions(simulator, actions)
    ended = simulator.step(np.where(live, np.int8(ACT), np.int8(SKIP)))
    if ended < 0:
        raise simulator.refusal(-ended - 1, f"actions[{-ended - 1}]")
    return ended


class History:
    """The actions of the episodes that still run, from which a simulator's state is restored.

    Workloads given as options are not part of it.

    Args:
        simulator: simulator of B environments.
    """

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        self.clear()

    def clear(self) -> None:
        """Forget everything: every environment begins an episode."""
        self._played: list[Any] = []
        self._since = np.zeros(self.simulator.num_envs, dtype=np.int64)

    def add(self, actions: Any) -> None:
        """Add the actions of one step of all environments, [B, ...], as numpy or torch has them.

        They are kept: not to be changed.
        """
        self._played.append(actions)
        if len(self._played) % FORGET == 0:
            first = int(self._since.min())
            del self._played[:first]
            self._since -= first

    def end(self, done: npt.NDArray[np.bool_]) -> None:
        """Forget the episodes of some environments, [B]: they begin anew."""
        self._since[done] = len(self._played)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of steps since the episode of each environment began, [B]."""
        return len(self._played) - self._since

    def state(self) -> Arrays:
        """The state of every environment as arrays: its seed, episode, and the actions since that began."""
        simulator, first = self.simulator, int(self._since.min())
        played = [one.cpu().numpy() if hasattr(one, "cpu") else one for one in self._played[first:]]
        kind = np.float64 if simulator.continuous else np.int64
        shape = (0, simulator.num_envs, *simulator.action_shape)
        return {
            "seeds": simulator.seeds.copy(),
            "episodes": simulator.episodes.copy(),
            "since": self._since - first,
            "actions": np.array(played) if played else np.zeros(shape, dtype=kind),
        }

    def restore(
        self,
        state: Mapping[str, npt.NDArray[Any]],
        play: Callable[[Any, npt.NDArray[np.bool_]], int] | None = None,
    ) -> None:
        """Bring every environment to its state in :meth:`state`, by playing those actions again.

        Args:
            state: the state.
            play: (actions, which environments take them [B]) -> how many episodes ended; None:
                :func:`advance` of a simulator on the CPU.
        """
        simulator = self.simulator
        play = play or functools.partial(advance, simulator)
        simulator.seeds[:] = state["seeds"]
        simulator.seeded[:] = True
        simulator.episodes[:] = state["episodes"] - 1  # which counts up when an episode begins
        simulator.begin(np.ones(simulator.num_envs, dtype=bool))
        for i, actions in enumerate(state["actions"]):
            if play(actions, state["since"] <= i):
                raise InvalidParameter("checkpoint: its episodes go otherwise here: of another version")
        self._played = list(state["actions"])
        self._since = state["since"].copy()


def _begin(simulator: Simulator, seed: int, episodes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
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
    thetas: npt.NDArray[np.float32],
    seed: int,
    episodes: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.float64], int]:
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
    act: Callable[[Arrays, npt.NDArray[np.bool_]], Any],
    seed: int,
    episodes: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.float64], int]:
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
