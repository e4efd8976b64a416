"""Episodes of evaluations: played by :mod:`schedgym.playing`, and checked here.

An episode's workload depends on (seed, episode) only, and a policy's random numbers on (seed, episode,
label) only, so neither the other policies nor the number of processes changes a value. Each episode is
checked before it is reported: its rewards must sum to the objective, and the objective must not beat the
bound.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import math
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import gymnasium as gym
import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.compilation import COMPILATION
from schedgym.core.policy import Policy
from schedgym.core.problem import Metric, Parameters, Problem
from schedgym.core.workload import Workload
from schedgym.envs import SchedulingEnv
from schedgym.errors import InvalidAction
from schedgym.evaluation.engines import Failure
from schedgym.evaluation.plan import Entrant, Unit, baseline, code_version, resolve_id
from schedgym.playing import policy_rng, steps
from schedgym.traces.declaration import named_files

BOUNDS = ("bound", "slack")  # the values of an entrant that is nobody; nan: no bound is known
RELATIVE_TOLERANCE = 1e-9
CLOCK_TOLERANCE = 1e-12  # rounding of sums of times, as a share of the workload's largest number

#: looks at an environment whose episode has ended; what it returns is handed over between processes
Observer = Callable[[SchedulingEnv], Any]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of one episode.

    Attributes:
        metrics: the environment's metrics by name.
        total: undiscounted sum of the rewards.
        truncated: True if the episode ended with work left.
        seconds: CPU time that the policy took for all its decisions [s], without that of compiling. Where
            compiled code plays the whole episode, the environment's steps are part of it.
    """

    metrics: dict[str, float]
    total: float
    truncated: bool
    seconds: float = 0.0


def make_env(id: str, parameters: Mapping[str, Any] | None = None) -> SchedulingEnv:
    """The environment that evaluations use: bare, its observations zero-copy, baselines' view and window.

    Args:
        id: environment id.
        parameters: override the id's values and its ``baseline_parameters``.

    Raises:
        UnknownName, InvalidParameter: for a parameter that does not exist or is out of range.
    """
    problem, id = resolve_id(id)
    values = baseline(problem, id, parameters)
    problem.build(id, values)  # refuses before Gymnasium wraps anything
    return cast(SchedulingEnv, gym.make(id, disable_env_checker=True, copy=False, **values).unwrapped)


def play(
    env: SchedulingEnv,
    policy: Policy,
    *,
    seed: int = 0,
    episode: int = 0,
    label: str = "",
    workload: Workload | None = None,
    check: bool = True,
) -> Outcome:
    """Run one episode to its end and check it.

    Args:
        env: an environment of :func:`make_env`.
        policy: acts in it.
        seed: seed of the environment and, with ``episode`` and ``label``, of the policy.
        episode: number of the episode of that seed.
        label: the policy's name in messages.
        workload: of the episode; None: that of seed and episode.
        check: False leaves out the checks of rewards and schedule.

    Raises:
        InvalidAction: when the environment refuses an action: names the view in use.
        RuntimeError: when the rewards do not sum to the objective: a fault of the environment.
        InvalidSchedule: when the schedule breaks a constraint: a fault of the environment, too.
    """
    began, ran = time.perf_counter(), time.process_time()
    total = seconds = 0.0
    try:
        for step in steps(env, policy, seed=seed, episode=episode, label=label, workload=workload):
            if getattr(policy, "compiled_rollout", None) is not None:
                outcome = _roll_out(env, policy)
                break
            total, seconds = total + step.reward, seconds + step.seconds
            if step.ended:
                outcome = Outcome(step.info["metrics"], total, step.truncated, seconds)
    except InvalidAction as error:
        raise InvalidAction(
            f"{label or 'the policy'}, view {env.interface.view!r}: {error}; another view is chosen by "
            f'parameters={{"view": ...}}, or by the policy\'s acting_parameters'
        ) from error
    # decisions are timed by the clock on the wall, as a CPU's takes longer to read than many a decision
    busy = (time.process_time() - ran) / (time.perf_counter() - began)
    outcome = dataclasses.replace(outcome, seconds=outcome.seconds * min(busy, 1.0))
    if check:
        env.problem.module("metrics").validate(env.record())
        if not getattr(env.simulator.parameters, "normalize", False):
            _check_rewards(env, outcome, f"{label or 'the policy'}, seed {seed}, episode {episode}")
    return outcome


def _roll_out(env: SchedulingEnv, policy: Any) -> Outcome:
    """Let the policy's compiled code play the episode that has begun."""
    began = time.perf_counter() - COMPILATION.seconds
    total, truncated, metrics = env.finish(policy.compiled_rollout)
    return Outcome(metrics, total, truncated, time.perf_counter() - COMPILATION.seconds - began)


def _check_rewards(env: SchedulingEnv, outcome: Outcome, where: str) -> None:
    metric = env.problem.metric(env.problem.objective_of(env.simulator.parameters))
    objective = outcome.metrics[metric.name]
    total = -metric.sign * outcome.total
    error, allowed = abs(total - objective), RELATIVE_TOLERANCE * max(abs(total), abs(objective))
    # a delay much smaller than the clock is known to its rounding only; asked last, as it copies the workload
    if not (error <= allowed or error <= allowed + slack_of(env.simulator.workload(0))):
        raise RuntimeError(
            f"{where}: the rewards sum to {outcome.total!r}, but {metric.name} is {objective!r}"
        )


def slack_of(workload: Workload) -> float:
    """The rounding error that sums of a workload's times may have, in their unit."""
    sections = (workload.jobs, workload.tasks)
    arrays = (array for fields in sections for array in fields.values() if array.dtype.kind == "f")
    return CLOCK_TOLERANCE * max((float(np.abs(array).sum()) for array in arrays), default=0.0)


def checked_gap(metric: Metric, bound: float, objective: float, slack: float, where: str) -> float:
    """The gap between an objective's value and a bound on its optimum, in the objective's unit.

    Raises:
        RuntimeError: when the objective beats the bound by more than ``slack``: one of them is wrong.
    """
    gap = metric.sign * (objective - bound)
    if not gap >= -RELATIVE_TOLERANCE * max(abs(bound), abs(objective)) - slack:
        raise RuntimeError(f"{where}: {metric.name} {objective!r} beats the bound {bound!r}")
    return gap


def lower_bound(problem: Problem, workload: Workload, parameters: Parameters) -> float | None:
    """The bound on the optimum of a workload: an upper one where the objective is maximised.

    The objective is that of ``parameters``. None if the problem has no bound on it.
    """
    maximized = problem.metric(problem.objective_of(parameters)).better == "max"
    name = "upper_bound" if maximized else "lower_bound"
    try:
        function = getattr(problem.module("bounds"), name, None)
    except ModuleNotFoundError as error:
        if error.name != f"{problem.package}.bounds":
            raise
        return None
    value = None if function is None else function(workload, parameters)
    if value is None:
        return None
    if not math.isfinite(value):
        raise RuntimeError(f"{problem.name}: {name} gave {value!r}")
    return float(value)


class Environments:
    """The environments of a run's last setting: a process reads a trace once per view, not per job.

    Sent to another process, it is the one that this process has for the run.
    """

    most = 8  # with workloads every episode has one of its own

    def __init__(self, run: str | None = None) -> None:
        self._run = run or uuid.uuid4().hex
        self._setting = -1
        self._made: dict[str, SchedulingEnv] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _environments_of, (self._run,)

    def get(self, setting: int, id: str, parameters: Mapping[str, Any]) -> SchedulingEnv:
        """The environment of a setting with these parameters."""
        if setting != self._setting:
            self._made.clear()
            self._setting = setting
        named = [parameters[name] for name in named_files(parameters)]
        written = [os.stat(path).st_mtime_ns for path in named if os.path.exists(path)]
        key = json.dumps([id, parameters, written], sort_keys=True, default=repr)
        env = self._made.pop(key, None) or make_env(id, parameters)
        self._made[key] = env  # the one used last is the last
        if len(self._made) > self.most:
            del self._made[next(iter(self._made))]
        return env


@functools.lru_cache(maxsize=1)
def _environments_of(run: str) -> Environments:
    """Those of this process for the last run that has sent it something."""
    return Environments(run)


@dataclasses.dataclass(frozen=True)
class Result:
    """The values of one episode of a unit; for the bounds, "bound" and "slack", or nothing.

    ``seconds`` is what the policy took for its decisions, ``cpu`` what the episode took of a core in all [s].
    """

    episode: int
    values: dict[str, float]
    seconds: float = 0.0
    observed: Any = None
    cpu: float = 0.0


def check_entrant(
    environments: Environments, id: str, entrant: Entrant, more: Mapping[str, Any] | None = None
) -> SchedulingEnv:
    """The environment of an entrant, with ``more`` parameters; refuses what cannot run in it.

    Raises:
        UnknownName, InvalidParameter: for parameters with which no environment can be made, or a policy that
            cannot act in it.
    """
    env = environments.get(entrant.setting, id, {**entrant.parameters, **(more or {})})
    if entrant.label is not None:
        copy.copy(entrant.policy).reset(env.interface, policy_rng(0, 0, entrant.label))
    return env


def run_episodes(
    unit: Unit, environments: Environments, observe: Observer | None, files: Sequence[str]
) -> Iterator[Result]:
    """Play the episodes of a unit, or compute their bounds; see :func:`run_unit`."""
    id, entrant = unit.line.setting.id, unit.line.entrant
    for episode in range(unit.first, unit.first + unit.episodes):
        parameters = entrant.parameters
        if files:
            parameters = {**parameters, "workload": files[episode]}
        began, observed = time.process_time(), None
        env = environments.get(entrant.setting, id, parameters)
        if entrant.label is None:
            env.reset(seed=unit.seed, options={"episode": episode})
            workload = env.simulator.workload(0)
            bound = lower_bound(env.problem, workload, env.simulator.parameters)
            values = {} if bound is None else {"bound": bound, "slack": slack_of(workload)}
            seconds = 0.0
        else:
            outcome = play(env, entrant.policy, seed=unit.seed, episode=episode, label=entrant.label)
            values = {**outcome.metrics, "truncated": float(outcome.truncated)}
            seconds = outcome.seconds
            if observe is not None:
                observed = observe(env)
        yield Result(episode, values, seconds, observed, time.process_time() - began)


def run_unit(
    context: tuple[Environments, Observer | None, Sequence[str]], unit: Unit
) -> list[Result] | Failure:
    """Run a unit; an engine's worker calls this.

    Args:
        context: the environments of the run; what is called with the environment at the end of each episode
            that a policy has played; workload files, one for each episode, in the place of the generator.
        unit: its line has an entrant.
    """
    if unit.line.setting.code not in ("", code_version()):
        return Failure(f"the worker has version {code_version()}, not {unit.line.setting.code}")
    return list(run_episodes(unit, *context))


def values_of(label: str | None, results: Sequence[Result]) -> tuple[tuple[str, ...], Floats]:
    """Names and values [episodes, metrics] of an entrant's results; nan: an episode has no such value."""
    names = BOUNDS if label is None else tuple(dict.fromkeys(name for own in results for name in own.values))
    return names, np.array([[own.values.get(name, math.nan) for name in names] for own in results])
