"""Data sets for offline learning: episodes of policies, in the form of Minari.

A data set has one environment, so that all of its policies act in one view. A learner sees tokens where a
baseline reads exact units: each episode is played in two environments that show one and the other.
"""

from __future__ import annotations

import itertools
import shutil
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from schedgym._version import __version__
from schedgym.core.problem import Problem
from schedgym.core.random import EVALUATION_SEEDS
from schedgym.envs import SchedulingEnv
from schedgym.errors import InvalidParameter
from schedgym.evaluation.engines import progress_bar
from schedgym.evaluation.episodes import Environments, check_entrant
from schedgym.evaluation.manifest import make_manifest
from schedgym.evaluation.plan import (
    Entrant,
    baseline,
    check_counts,
    entrants,
    find_objective,
    resolve_id,
    resolve_policies,
)
from schedgym.evaluation.runner import count_episodes
from schedgym.extras import require
from schedgym.playing import steps


def create_dataset(
    env_id: str,
    policies: Any,
    name: str,
    episodes: int | None = None,
    seed: int = 0,
    *,
    parameters: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> Any:
    """Let policies play the same episodes and write them as a Minari data set (extra ``minari``).

    All act in the view and the window that ``parameters`` choose, else in those of the agent among them, else
    in those that ``gym.make`` gives. Observations are tokens unless ``parameters`` say otherwise. Episode e
    of every policy is episode e of the seed EVALUATION_SEEDS + ``seed``: no evaluation draws it.

    Args:
        env_id: environment id, which may leave out its namespace, or the name of a problem that has one.
        policies: as those of :func:`~schedgym.evaluation.runner.evaluate`.
        name: name of the data set, "NAME-v0" or "NAMESPACE/NAME-v0".
        episodes: number of episodes of each policy; None: 20, or all windows of a trace.
        seed: number from 0, below EVALUATION_SEEDS.
        parameters: parameters of the environment.
        progress: True if a bar may show on stderr after two seconds; None: if stderr is a terminal.

    Returns:
        the ``minari.MinariDataset``. ``recover_environment()`` makes the environment; the metadata of an
        episode are its policy, its objective, and "seed" and "options", with which ``reset`` begins it again.

    Raises:
        UnknownName, InvalidParameter: for a bad id, policy or parameter, a policy that cannot act in the
            view, a name that is taken or is none; before anything is played.
        RuntimeError: if the two environments differ: a bug.
        gymnasium.error.DependencyNotInstalled: without the extra.
    """
    minari = require("minari", "minari")
    require("h5py", "minari")
    path = _free_path(name)
    problem, id = resolve_id(env_id)
    given = dict(parameters or {})
    check_counts(episodes, seed)
    acting = resolve_policies(problem, id, policies, {}, given, [given]).acting
    recorded_parameters = _recorded_parameters(problem, id, given, acting)
    objective = find_objective(problem, id, [recorded_parameters])
    environments, players = Environments(), _entrants(problem, id, recorded_parameters, acting)
    for entrant in players:
        check_entrant(environments, id, entrant)
    recorded: Any = gym.make(id, **recorded_parameters).unwrapped
    count, _ = count_episodes(recorded, episodes)
    manifest = make_manifest(seeds=[seed], parameters=recorded_parameters)
    with warnings.catch_warnings():
        # of an author and an address, which only the user can add
        warnings.filterwarnings("ignore", category=UserWarning, module="minari")
        dataset = minari.create_dataset_from_buffers(
            name,
            [],
            env=recorded,
            algorithm_name=", ".join(acting),
            description=manifest["command"],
            requirements=[f"schedgym=={__version__}"],
        )
    try:
        dataset.storage.update_metadata({"manifest": manifest})
        with progress_bar(count * len(players), progress) as advance:
            for number, (entrant, episode) in enumerate(itertools.product(players, range(count))):
                env = environments.get(0, id, entrant.parameters)
                columns = _play(recorded, env, entrant, EVALUATION_SEEDS + seed, episode)
                dataset.update_dataset_from_buffer([minari.data_collector.EpisodeBuffer(**columns)])
                told = {"policy": entrant.label, objective.name: env.metrics()[objective.name]}
                dataset.storage.update_episode_metadata([told], [number])
                advance(1)
    except BaseException:  # a part of a data set would be taken for the whole
        shutil.rmtree(path, ignore_errors=True)
        raise
    return dataset


def _recorded_parameters(
    problem: Problem, id: str, given: Mapping[str, Any], acting: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters of the environment that is recorded: ``given`` ones first."""
    agents = [policy for policy in acting.values() if hasattr(policy, "acting_parameters")]
    if agents:
        own = agents[0].acting_parameters(id, given)
    else:  # what learners have, not what baselines have
        usual = vars(problem.build(id, {name: given[name] for name in given if name == "view"}))
        own = {name: usual[name] for name in problem.ids[id].baseline_parameters}
    return {**own, "observation": "features", **given}


def _entrants(
    problem: Problem, id: str, recorded: Mapping[str, Any], acting: Mapping[str, Any]
) -> list[Entrant]:
    """Who acts: baselines on exact units, agents on what they were trained with.

    Raises:
        InvalidParameter: for an agent that acts in another view, or with another window.
    """
    exact = {**recorded, "observation": "dict"}
    ((_, *players),) = entrants(problem, id, [exact], acting.items())
    wanted = vars(problem.build(id, exact))
    for player in players:
        own = vars(problem.build(id, baseline(problem, id, player.parameters)))
        for name, value in wanted.items():
            if name != "observation" and own[name] != value:
                raise InvalidParameter(
                    f"{player.label}: acts with {name}={own[name]}, the data set has {name}={value}"
                )
    return players


def _free_path(name: str) -> Any:
    """The folder of a data set that is not there yet."""
    from minari.dataset.minari_dataset import parse_dataset_id
    from minari.storage.datasets_root_dir import get_dataset_path

    try:
        parse_dataset_id(name)
    except (TypeError, ValueError):  # TypeError: of a name without a version
        wanted = "NAME-v0 or NAMESPACE/NAME-v0 of letters, digits, - and _, a namespace of two or more"
        raise InvalidParameter(f"name of the data set: must be {wanted}, got {name!r}") from None
    path = get_dataset_path(name)
    if path.exists():
        raise InvalidParameter(f"{path}: there is a data set {name!r} already: choose another name")
    return path


def _play(
    recorded: SchedulingEnv, env: SchedulingEnv, entrant: Entrant, seed: int, episode: int
) -> dict[str, Any]:
    """Play an episode in both environments; the fields of Minari's buffer, of the one that is recorded."""
    options = {"episode": episode}
    observation, info = recorded.reset(seed=seed, options=options)
    observations, infos, actions, outcomes = [observation], [info], [], []
    played = steps(env, entrant.policy, seed=seed, episode=episode, label=str(entrant.label))
    for step in itertools.islice(played, 1, None):  # the first is the begin
        actions.append(np.array(step.action, dtype=recorded.action_space.dtype))
        observation, *outcome, info = recorded.step(actions[-1])
        if outcome != [step.reward, step.ended and not step.truncated, step.truncated]:
            raise RuntimeError(f"{entrant.label}, seed {seed}, episode {episode}: the environments differ")
        observations.append(observation)
        infos.append(info)
        outcomes.append(outcome)
    names = ("rewards", "terminations", "truncations")
    columns = {
        name: np.array(values) for name, values in zip(names, zip(*outcomes, strict=True), strict=True)
    }
    return {
        "seed": seed,
        "options": options,
        "observations": _columns(observations),
        "actions": np.array(actions),
        "infos": _columns(infos),
        **columns,
    }


def _columns(rows: Sequence[Any]) -> Any:
    """An array of numbers, or where the rows are dictionaries, a dictionary of such arrays."""
    if isinstance(rows[0], Mapping):
        return {name: _columns([row[name] for row in rows]) for name in rows[0]}
    return np.array(rows)
