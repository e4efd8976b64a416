"""Runs: every policy on the same workloads, in this process or in several, with the same result.

An episode's workload depends on (seed, episode) only, and a policy's random numbers on (seed, episode,
label) only, so neither the other policies nor the number of processes changes a value. Each episode is
checked before it is reported: its rewards must sum to the objective, and the objective must not beat the
bound.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import json
import math
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, Unpack, cast

import gymnasium as gym
import numpy as np

from schedgym.core.compilation import COMPILATION
from schedgym.core.policy import Policy, get_policy_spec, make_policy, resolve_policy_name
from schedgym.core.problem import Metric, Parameters, Problem, get_problem, list_problems
from schedgym.core.random import EVALUATION_SEEDS
from schedgym.core.workload import Workload
from schedgym.core.workload_files import save_workload
from schedgym.envs import SchedulingEnv
from schedgym.errors import InvalidAction, InvalidParameter, UnknownName
from schedgym.evaluation.episodes import Job, Memory, Observer, Result
from schedgym.extras import require

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "How",
    "Observed",
    "Outcome",
    "acting_parameters",
    "check_bound",
    "check_keywords",
    "evaluate",
    "find_id",
    "lower_bound",
    "make_env",
    "observed_sweep",
    "play",
    "resolve_id",
    "sweep",
]

EPISODES = 20  # with the generator
RELATIVE_TOLERANCE = 1e-9
CLOCK_TOLERANCE = 1e-12  # rounding of sums of times, as a share of the workload's largest number
SLOW = 2.0  # s before a progress bar shows
HOUR = 3600.0  # s over which it takes the speed: units may last minutes


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


def find_id(name: str) -> str:
    """Return the full environment id if ``name`` is one without its namespace, any other name as it is.

    Raises:
        InvalidParameter: for an environment of Gymnasium that is not of this suite.
    """
    ids = [id for problem in list_problems().values() for id in problem.ids]
    for id in ids:
        if name == id.partition("/")[2]:
            return id
    if name in gym.registry and name not in ids:
        raise InvalidParameter(
            f"{name!r} is an environment of Gymnasium, but not one of schedgym, "
            "whose ids `schedgym list` shows"
        )
    return name


def resolve_id(name: str) -> tuple[Problem, str]:
    """The problem and the environment id that ``name`` means.

    Args:
        name: an id, which may leave out its namespace, or the name of a problem that has only one.

    Raises:
        UnknownName: proposing the nearest id.
        InvalidParameter: for a problem with several ids, or an environment of others.
    """
    name = find_id(name)
    problem = get_problem(name)
    if name not in problem.ids and len(problem.ids) > 1:
        raise InvalidParameter(f"{name!r} is ambiguous: name one of its ids, {', '.join(problem.ids)}")
    return problem, name if name in problem.ids else next(iter(problem.ids))


def baseline(problem: Problem, id: str, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """``parameters`` over the id's ``baseline_parameters``."""
    return {**problem.ids[id].baseline_parameters, **(parameters or {})}


def shared_parameters(problem: Problem, id: str, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """``parameters`` as baselines have them: without those that have an effect in other views only.

    Where they choose the view, they are as given: its environment refuses what has no effect there.
    """
    values = dict(parameters or {})
    view = problem.ids[id].baseline_parameters.get("view")
    if "view" in values or view is None:
        return values
    return {name: value for name, value in values.items() if problem.parameters.acts_in(name, view)}


def check_effects(parameters: Mapping[str, Any], acting: Collection[Mapping[str, Any]]) -> None:
    """Raise InvalidParameter for a parameter that none of the policies' parameters ``acting`` has kept."""
    for name in parameters:
        if acting and not any(name in own for own in acting):
            raise InvalidParameter(
                f"{name}: has no effect in the view of any of these policies: leave it out"
            )


def acting_parameters(
    problem: Problem, id: str, parameters: Mapping[str, Any] | None, policy: Any
) -> dict[str, Any]:
    """The parameters under which a policy is evaluated.

    These are ``parameters``; where they choose no view, and ``policy`` is a name or an object of a registered
    one, without those that have no effect in its view: that of the id's ``baseline_parameters``, or if it
    cannot act there, the first in which it can. A policy with a method ``acting_parameters`` (a trained
    agent) returns its own parameters from it.
    """
    values = dict(parameters or {})
    own = getattr(policy, "acting_parameters", None)
    if own is not None:
        return dict(own(id, values))
    name = policy if isinstance(policy, str) else getattr(policy, "name", None)
    preferred = problem.ids[id].baseline_parameters.get("view")
    if "view" in values or preferred is None or not isinstance(name, str):
        return values
    try:
        spec = get_policy_spec(name, problem.name)
    except UnknownName:  # an object of the user's own
        return values
    view = spec.acting_view(preferred, [view.name for view in problem.views])
    kept = {name: value for name, value in values.items() if problem.parameters.acts_in(name, view)}
    return kept if view == preferred else {**kept, "view": view}


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
    env = cast(SchedulingEnv, gym.make(id, disable_env_checker=True, copy=False, **values).unwrapped)
    env.simulator.compiles_ahead = False  # a policy's own kernel may play the episodes
    return env


def policy_rng(seed: int, episode: int, label: str) -> np.random.Generator:
    """A policy's random numbers in an episode: a function of these three and nothing else."""
    return np.random.default_rng(np.random.SeedSequence([seed, episode], spawn_key=tuple(label.encode())))


def play(env: SchedulingEnv, policy: Policy, *, seed: int = 0, episode: int = 0, label: str = "") -> Outcome:
    """Run one episode to its end and check it.

    Args:
        env: an environment of :func:`make_env`.
        policy: acts in it.
        seed: seed of the environment and, with ``episode`` and ``label``, of the policy.
        episode: number of the episode of that seed.
        label: the policy's name in messages.

    Raises:
        InvalidAction: when the environment refuses an action: names the view in use.
        RuntimeError: when the rewards do not sum to the objective: a fault of the environment.
        InvalidSchedule: when the schedule breaks a constraint: a fault of the environment, too.
    """
    observation, _ = env.reset(seed=seed, options={"episode": episode})
    policy.reset(env.interface, policy_rng(seed, episode, label))
    began, ran = time.perf_counter(), time.process_time()
    try:
        if getattr(policy, "compiled_rollout", None) is not None:
            outcome = _roll_out(env, policy)
        else:
            outcome = _step_by_step(env, policy, observation)
    except InvalidAction as error:
        raise InvalidAction(
            f"{label or 'the policy'}, view {env.interface.view!r}: {error}; another view is chosen by "
            f'parameters={{"view": ...}}, or by the policy\'s acting_parameters'
        ) from error
    # decisions are timed by the clock on the wall, as a CPU's takes longer to read than many a decision
    busy = (time.process_time() - ran) / (time.perf_counter() - began)
    outcome = dataclasses.replace(outcome, seconds=outcome.seconds * min(busy, 1.0))
    env.problem.module("metrics").validate(env.record())
    if not getattr(env.simulator.parameters, "normalize", False):
        _check_rewards(env, outcome, f"{label or 'the policy'}, seed {seed}, episode {episode}")
    return outcome


def _step_by_step(env: SchedulingEnv, policy: Policy, observation: Any) -> Outcome:
    """Ask the policy for each action of the episode that has begun."""
    step, clock = env.step, time.perf_counter
    total = seconds = 0.0
    while True:
        began = clock() - COMPILATION.seconds
        action = policy(observation)
        seconds += clock() - COMPILATION.seconds - began
        observation, reward, terminated, truncated, info = step(action)
        total += reward
        if terminated or truncated:
            return Outcome(info["metrics"], total, bool(truncated), seconds)


def _roll_out(env: SchedulingEnv, policy: Any) -> Outcome:
    """Let the policy's compiled code play the episode that has begun."""
    began = time.perf_counter() - COMPILATION.seconds
    total, truncated, metrics = env.finish(policy.compiled_rollout)
    return Outcome(metrics, total, truncated, time.perf_counter() - COMPILATION.seconds - began)


def _check_rewards(env: SchedulingEnv, outcome: Outcome, where: str) -> None:
    metric = env.problem.metric(env.problem.objective_of(env.simulator.parameters))
    objective = outcome.metrics[metric.name]
    total = outcome.total if metric.better == "max" else -outcome.total
    error, scale = abs(total - objective), max(abs(total), abs(objective))
    if error <= RELATIVE_TOLERANCE * scale:
        return
    # a delay much smaller than the clock is known to the clock's rounding only
    if not error <= RELATIVE_TOLERANCE * scale + _slack(env.simulator.workload(0)):
        raise RuntimeError(
            f"{where}: the rewards sum to {outcome.total!r}, but {metric.name} is {objective!r}"
        )


def _slack(workload: Workload) -> float:
    """The rounding error that sums of a workload's times may have, in their unit."""
    sections = (workload.jobs, workload.tasks)
    arrays = (array for fields in sections for array in fields.values() if array.dtype.kind == "f")
    return CLOCK_TOLERANCE * max((float(np.abs(array).sum()) for array in arrays), default=0.0)


def checked_gap(metric: Metric, bound: float, objective: float, slack: float, where: str) -> float:
    """:func:`check_bound` where the workload's rounding ``slack`` is known."""
    gap = bound - objective if metric.better == "max" else objective - bound
    if not gap >= -RELATIVE_TOLERANCE * max(abs(bound), abs(objective)) - slack:
        raise RuntimeError(f"{where}: {metric.name} {objective!r} beats the bound {bound!r}")
    return gap


def check_bound(metric: Metric, workload: Workload, bound: float, objective: float, where: str) -> float:
    """The gap between an objective's value and a bound on its optimum, in the objective's unit.

    Raises:
        RuntimeError: when the objective beats the bound: one of them is wrong.
    """
    return checked_gap(metric, bound, objective, _slack(workload), where)


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
    if function is None:
        return None
    value = function(workload, parameters)
    if value is None:
        return None
    if not math.isfinite(value):
        raise RuntimeError(f"{problem.name}: {name} gave {value!r}")
    return float(value)


@dataclasses.dataclass(frozen=True)
class Observed:
    """The return value of an observer at the end of an episode.

    Attributes:
        setting: swept parameter -> value.
        policy: label.
        episode: its number.
        seconds: time that the policy took [s]; see :class:`Outcome`.
        values: the return value of the observer.
    """

    setting: dict[str, Any]
    policy: str
    episode: int
    seconds: float
    values: Any


class Environments:
    """A cache of the environments of the last setting: a process reads a trace once per view, not per job."""

    most = 8  # with workloads every episode has one of its own
    setting: tuple[str, int] = ("", 0)
    envs: ClassVar[dict[str, SchedulingEnv]] = {}

    @classmethod
    def get(cls, run: str, setting: int, id: str, parameters: Mapping[str, Any]) -> SchedulingEnv:
        """The environment of a run's setting with these parameters."""
        if cls.setting != (run, setting):
            cls.clear()
            cls.setting = run, setting
        key = json.dumps(parameters, sort_keys=True, default=repr)
        env = cls.envs.pop(key, None) or make_env(id, parameters)
        cls.envs[key] = env  # the one used last is the last
        if len(cls.envs) > cls.most:
            del cls.envs[next(iter(cls.envs))]
        return env

    @classmethod
    def clear(cls) -> None:
        """Forget all environments."""
        cls.setting = "", 0
        cls.envs.clear()


def _episodes(job: Job) -> Iterator[Result]:
    for episode in job.episodes:
        parameters = job.parameters
        if job.files:
            parameters = {**parameters, "workload": job.files[episode]}
        began, observed = time.process_time(), None
        env = Environments.get(job.run, job.setting, job.id, parameters)
        if job.label is None:
            env.reset(seed=job.seed, options={"episode": episode})
            workload = env.simulator.workload(0)
            bound = lower_bound(env.problem, workload, env.simulator.parameters)
            values = {} if bound is None else {"bound": bound, "slack": _slack(workload)}
            seconds = 0.0
        else:
            outcome = play(env, job.policy, seed=job.seed, episode=episode, label=job.label)
            values = {**outcome.metrics, "truncated": float(outcome.truncated)}
            seconds = outcome.seconds
            if job.observe is not None:
                observed = job.observe(env)
        cpu = time.process_time() - began
        yield Result(job.setting, job.label, episode, values, seconds, observed, cpu)


def run_job(job: Job) -> list[Result]:
    """All episodes of a job."""
    return list(_episodes(job))


@contextlib.contextmanager
def progress_bar(total: int, show: bool | None, what: str = "episodes") -> Iterator[Callable[[int], None]]:
    """Yield a function that counts episodes that have ended; a bar on stderr shows them after two seconds.

    Args:
        total: episodes to run.
        show: None: only where stderr is a terminal.
        what: the word for them.
    """
    rich, began = require("rich.progress"), time.monotonic()
    bar = rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeRemainingColumn(),
        console=require("rich.console").Console(stderr=True),
        transient=True,
        speed_estimate_period=HOUR,
    )
    task = bar.add_task(what, total=total)
    wanted = bar.console.is_terminal if show is None else show

    def advance(episodes: int) -> None:
        if wanted and time.monotonic() - began > SLOW:
            bar.start()
        bar.update(task, advance=episodes)

    try:
        yield advance
    finally:
        if bar.live.is_started:  # else it would print an empty line
            bar.stop()


class How(TypedDict, total=False):
    """The conditions of an evaluation: keyword arguments of :func:`evaluate` and :func:`sweep`.

    Attributes:
        parameters: parameters of the environment.
        workloads: instances that take the generator's place.
        n_jobs: processes; -1 means one per core; left out: 1. The result does not depend on it.
        progress: True if a bar may show on stderr after two seconds; None: if stderr is a terminal.
        options: policy (as named in ``policies``) -> its options.
    """

    parameters: Mapping[str, Any] | None
    workloads: Sequence[Workload] | None
    n_jobs: int
    progress: bool | None
    options: Mapping[str, Mapping[str, Any]] | None


def check_keywords(function: str, given: Mapping[str, Any], known: type[Any]) -> None:
    """Refuse a keyword argument that a typed dictionary of keyword arguments does not have."""
    for name in given:
        if name not in known.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def evaluate(
    env_id: str, policies: Any = None, episodes: int | None = None, seed: int = 0, **how: Unpack[How]
) -> pd.DataFrame:
    """Run policies on the same workloads.

    Episode e of every policy is episode e of ``seed``, or ``workloads[e]``. The environment is built with
    the id's ``baseline_parameters`` (full fidelity, all waiting jobs visible) under ``parameters``. Where
    these choose no view, a policy that cannot act in the baselines' view acts in the first of its own.

    Args:
        env_id: environment id, which may leave out its namespace, or the name of a problem that has one.
        policies: names (full or short) or policy objects, in a list or as a dict from label to either;
            None runs the id's default policies. Objects must forget the last episode in ``reset``.
        episodes: number of episodes per policy; None means 20 of the generator, all windows of a trace,
            all ``workloads``, or 1 where ``parameters`` names a workload file.
        seed: number from 0, below EVALUATION_SEEDS.
        **how: ``parameters``, ``workloads``, ``n_jobs``, ``progress`` and ``options`` of :class:`How`.

    Returns:
        a tidy frame with one row per policy x episode x metric and the columns policy, episode, seed,
        metric, value. Metrics are the problem's, in its units, and "truncated" (0 or 1), "bound" (on the
        optimum of the episode's workload, the same for every policy) and "gap" (objective minus bound; where
        the objective is maximised bound minus objective). ``attrs`` holds problem, id, objective, seed,
        episodes, parameters, views (policy -> view, of those not in the baselines' view), and distinct: how
        many episodes have jobs of their own.

    Raises:
        UnknownName, InvalidParameter: for a bad id, policy, option or parameter.
        InvalidWorkload: for workloads that are not of this problem.
        RuntimeError: when rewards do not sum to the objective, or an objective beats its bound: a bug.
        gymnasium.error.DependencyNotInstalled: without the extra ``eval``.
    """
    return sweep(env_id, policies, {}, episodes, seed, **how)


def sweep(
    env_id: str,
    policies: Any,
    grid: Mapping[str, Sequence[Any]],
    episodes: int | None = None,
    seed: int = 0,
    **how: Unpack[How],
) -> pd.DataFrame:
    """:func:`evaluate` in every combination of parameter values.

    Args:
        env_id: as for :func:`evaluate`.
        policies: as for :func:`evaluate`.
        grid: parameter -> values; the product of all is run.
        episodes: as for :func:`evaluate`; None may mean another number in each setting.
        seed: the same in every setting.
        **how: as for :func:`evaluate`; ``parameters`` are those of all settings.

    Returns:
        the frame of :func:`evaluate` with one column more per swept parameter, in front;
        ``attrs["swept"]`` names them.

    Raises:
        InvalidParameter: as :func:`evaluate`, and for an empty list of values, or values with different
            objectives.
    """
    return observed_sweep(env_id, policies, grid, episodes, seed, **how)[0]


def observed_sweep(
    env_id: str,
    policies: Any,
    grid: Mapping[str, Sequence[Any]],
    episodes: int | None = None,
    seed: int = 0,
    *,
    observe: Observer | None = None,
    memory: Memory | None = None,
    **how: Unpack[How],
) -> tuple[pd.DataFrame, list[Observed]]:
    """Run :func:`sweep`, and call ``observe`` on the environment after each episode.

    ``observe`` is called with the environment when an episode has ended (its ``record()``, its simulator); it
    is a function of a module, as other processes call it, too. None: ``values`` are None. Episodes that
    ``memory`` knows are not run again; the others are added to it. All other arguments are those of
    :func:`sweep`.

    Returns:
        the frame, and an entry for each setting, policy and episode, in this order.
    """
    check_keywords("evaluate", how, How)
    pandas = require("pandas")
    problem, id = resolve_id(env_id)
    settings = expand_grid(grid)
    base = dict(how.get("parameters") or {})
    given = resolve_policies(problem, id, policies, how.get("options") or {}, base, settings)
    processes = count_processes(how.get("n_jobs", 1))
    _check_counts(episodes, seed)
    objective = _objective(problem, id, [{**base, **setting} for setting in settings])
    with tempfile.TemporaryDirectory(prefix="schedgym-") as folder:
        try:
            workloads = how.get("workloads")
            files = () if workloads is None else _store(problem, workloads, Path(folder))
            runs = _Runs(problem, id, given, files, episodes, seed, observe)
            jobs = runs.plan([{**base, **setting} for setting in settings], processes)
            known, jobs = ([], jobs) if memory is None else memory.recall(jobs)
            new = _run(jobs, processes, how.get("progress"))
            results = [*known, *(new if memory is None else memory.keep(new))]
        finally:
            Environments.clear()
    order = list(given)
    ran = [result for result in results if result.label is not None]
    ran.sort(key=lambda result: (result.setting, order.index(str(result.label)), result.episode))
    bounds = {(r.setting, r.episode): r.values for r in results if r.label is None}
    frame = pandas.DataFrame(
        _rows(objective, settings, seed, ran, bounds),
        columns=[*settings[0], "policy", "episode", "seed", "metric", "value"],
    )
    views = {label: acting_parameters(problem, id, base, given[label]).get("view") for label in given}
    usual = (None,) if "view" not in grid else (None, *grid["view"])
    if "view" in base:
        usual = (base["view"],)
    frame.attrs = {
        "problem": problem.name,
        "id": id,
        "objective": objective.name,
        "seed": seed,
        "episodes": max(runs.counts),
        "distinct": min(runs.distinct),
        "swept": list(grid),
        "parameters": base,
        "views": {label: view for label, view in views.items() if view not in usual},
        "policy_seconds": _policy_seconds(settings, ran),
    }
    observed = [Observed(settings[r.setting], str(r.label), r.episode, r.seconds, r.observed) for r in ran]
    return cast("pd.DataFrame", frame), observed


@dataclasses.dataclass
class _Runs:
    """The episodes of an evaluation, and in ``counts`` and ``distinct`` how many they are in each setting."""

    problem: Problem
    id: str
    policies: Mapping[str, Any]
    files: tuple[str, ...]
    episodes: int | None
    seed: int
    observe: Observer | None
    counts: list[int] = dataclasses.field(default_factory=list)
    distinct: list[int] = dataclasses.field(default_factory=list)

    def plan(self, settings: Sequence[Mapping[str, Any]], processes: int) -> list[Job]:
        """Make jobs of about equal size for so many processes; raises an error if something cannot run."""
        run = uuid.uuid4().hex
        jobs: list[Job] = []
        for index, own in enumerate(settings):
            if self.files and own.get("workload") is not None:
                raise InvalidParameter("workloads: the parameters name a workload file already")
            acting = {
                label: acting_parameters(self.problem, self.id, own, policy)
                for label, policy in self.policies.items()
            }
            check_effects(own, acting.values())
            shared = shared_parameters(self.problem, self.id, own)
            count, different = self._count(shared, acting, (run, index))
            self.counts.append(count)
            self.distinct.append(different)
            units = count * (len(acting) + 1)
            size = max(1, min(count, units * len(settings) // (4 * processes)))
            for label in (None, *acting):
                policy, used = (None, shared) if label is None else (self.policies[label], acting[label])
                for first in range(0, count, size):
                    chunk = tuple(range(first, min(first + size, count)))
                    where = (run, index, self.id, used, self.files, self.seed)
                    jobs.append(Job(*where, label, policy, chunk, self.observe))
        return jobs

    def _count(
        self, parameters: Mapping[str, Any], acting: Mapping[str, Mapping[str, Any]], setting: tuple[str, int]
    ) -> tuple[int, int]:
        """Episodes in a setting, and how many of them have jobs of their own (a trace has only its windows).

        Raises an error for parameters, or for policies in their view, that cannot run.
        """
        first: dict[str, Any] = {}
        if self.files:
            if self.episodes is not None and self.episodes > len(self.files):
                text = f"{self.episodes} are more than the {len(self.files)} workloads"
                raise InvalidParameter(f"episodes: {text}")
            first = {"workload": self.files[0]}
        env = Environments.get(*setting, self.id, {**parameters, **first})
        for label, policy in self.policies.items():
            own = Environments.get(*setting, self.id, {**acting[label], **first})
            copy.copy(policy).reset(own.interface, policy_rng(0, 0, label))
        if self.files:
            count = len(self.files) if self.episodes is None else self.episodes
            return count, count
        if parameters.get("workload") is not None:
            return self.episodes or 1, 1
        windows = int(getattr(getattr(env.simulator, "source", None), "windows", 0))
        count = self.episodes or windows or EPISODES
        return count, min(count, windows or count)


def count_processes(n_jobs: int) -> int:
    """The number of processes that ``n_jobs`` means; -1: one per core."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise InvalidParameter(f"n_jobs: must be a number of processes, or -1 for all cores, got {n_jobs!r}")
    return 1 if n_jobs == 1 else int(require("joblib").effective_n_jobs(n_jobs))


def _check_counts(episodes: int | None, seed: int) -> None:
    for name, value, least in (("episodes", episodes, 1), ("seed", seed, 0)):
        if name == "episodes" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InvalidParameter(f"{name}: must be a whole number from {least}, got {value!r}")
    if seed >= EVALUATION_SEEDS:
        raise InvalidParameter(f"seed: must be below {EVALUATION_SEEDS}: from there on agents are trained")


def _objective(problem: Problem, id: str, settings: Iterable[Mapping[str, Any]]) -> Metric:
    """The one objective of all settings."""
    shared = [shared_parameters(problem, id, setting) for setting in settings]
    checked = [problem.build(id, baseline(problem, id, own)) for own in shared]
    names = {problem.objective_of(parameters) for parameters in checked}
    if len(names) > 1:
        raise InvalidParameter(f"objective: a sweep has one, got {', '.join(sorted(names))}")
    return problem.metric(names.pop())


def expand_grid(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the swept parameters' values."""
    for name, values in grid.items():
        if isinstance(values, str) or not len(values):
            raise InvalidParameter(f"{name}: a sweep needs a list of values")
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def default_policies(
    problem: Problem, id: str, settings: Iterable[Mapping[str, Any]], options: Iterable[str] = ()
) -> list[str]:
    """The id's default policies, without those that refuse one of the settings (and have no ``options``)."""
    shared = [shared_parameters(problem, id, setting) for setting in settings]
    complete = [vars(problem.build(id, baseline(problem, id, own))) for own in shared]
    named = [name.removeprefix(f"{problem.name}/") for name in options]
    kept = []
    for name in problem.ids[id].policies:
        spec = get_policy_spec(name, problem.name)
        if name in named or not any(spec.unmet(parameters) for parameters in complete):
            kept.append(name)
    return kept


def resolve_policies(
    problem: Problem,
    id: str,
    policies: Any,
    options: Mapping[str, Mapping[str, Any]],
    parameters: Mapping[str, Any],
    settings: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    """Label -> policy object; every name and option is checked before anything runs."""
    if policies is None:
        policies = default_policies(problem, id, [{**parameters, **own} for own in settings], options)
    if isinstance(policies, str) or callable(policies) or not isinstance(policies, Iterable):
        policies = [policies]
    pairs: Iterable[tuple[str | None, Any]]
    if isinstance(policies, Mapping):
        pairs = [(str(label), policy) for label, policy in policies.items()]
    else:
        pairs = [(None, policy) for policy in policies]
    prefix = f"{problem.name}/"
    unused = {name.removeprefix(prefix): dict(values) for name, values in options.items()}
    built: dict[str, Any] = {}
    for label, policy in pairs:
        if isinstance(policy, str):
            full = resolve_policy_name(policy, problem.name)
            if not full.startswith(prefix):
                raise InvalidParameter(f"policy {full!r} is not one of {problem.name}")
            short = full.removeprefix(prefix)
            label = label or short
            policy = make_policy(full, **unused.pop(label, {}))
        elif isinstance(policy, type) or not (callable(policy) and callable(getattr(policy, "reset", None))):
            raise InvalidParameter(
                "policies: a policy is a name, or an object with the methods reset(interface, rng) and "
                f"__call__(observation); got {_kind_of(policy)}{'' if label is None else f' for {label!r}'}"
            )
        if label is None:
            label = str(getattr(policy, "name", type(policy).__name__)).removeprefix(prefix)
        if label in built:
            raise InvalidParameter(f"policies: {label!r} is named twice; give labels in a dict")
        built[label] = policy
    if not built:
        raise InvalidParameter("policies: name at least one")
    for name in unused:
        if name in built:
            raise InvalidParameter(f"options: {name!r} is an object already, build it with its options")
        raise UnknownName("policy in options", name, built)
    return built


def _kind_of(value: Any) -> str:
    """Describe a value, without the address that Python would print."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = getattr(value, "__name__", None)
    return f"the {type(value).__name__} {name}" if name else f"an object of class {type(value).__name__}"


def _store(problem: Problem, workloads: Sequence[Workload], folder: Path) -> tuple[str, ...]:
    """Write workloads where every process can read them; numpy archives keep each bit."""
    if not len(workloads):
        raise InvalidParameter("workloads: must not be empty")
    files = []
    for i, workload in enumerate(workloads):
        if not isinstance(workload, Workload) or workload.problem != problem.name:
            raise InvalidParameter(f"workloads[{i}]: must be a workload of {problem.name}, got {workload!r}")
        path = folder / f"{i}.npz"
        save_workload(workload, path)
        files.append(str(path))
    return tuple(files)


def _run(jobs: list[Job], processes: int, progress: bool | None) -> Iterator[Result]:
    with progress_bar(sum(len(job.episodes) for job in jobs), progress) as advance:
        if processes == 1:
            for job in jobs:
                for result in _episodes(job):
                    yield result
                    advance(1)
            return
        joblib = require("joblib")
        parallel = joblib.Parallel(
            n_jobs=processes, backend="loky", batch_size=1, return_as="generator_unordered"
        )
        for chunk in parallel(joblib.delayed(run_job)(job) for job in jobs):
            yield from chunk
            advance(len(chunk))


def _policy_seconds(settings: list[dict[str, Any]], ran: Iterable[Result]) -> list[dict[str, Any]]:
    """Time per episode that each policy took to decide [s], one entry per setting and policy.

    The median over the episodes, as the first one may compile.
    """
    found: dict[tuple[int, str | None], list[float]] = {}
    for result in ran:
        found.setdefault((result.setting, result.label), []).append(result.seconds)
    return [
        {**settings[index], "policy": label, "seconds": float(np.median(seconds))}
        for (index, label), seconds in found.items()
    ]


def _rows(
    objective: Metric,
    settings: list[dict[str, Any]],
    seed: int,
    ran: Iterable[Result],
    bounds: Mapping[tuple[int, int], Mapping[str, float]],
) -> Iterator[tuple[Any, ...]]:
    """Setting's values, policy, episode, seed, metric, value; each objective is checked against its bound."""
    for result in ran:
        setting = settings[result.setting]
        values = dict(result.values)
        if certificate := bounds[result.setting, result.episode]:
            bound, value = certificate["bound"], values[objective.name]
            where = f"{result.label}, {setting}, seed {seed}, episode {result.episode}"
            gap = checked_gap(objective, bound, value, certificate["slack"], where)
            values |= {"bound": bound, "gap": gap}
        for name, value in values.items():
            yield (*setting.values(), result.label, result.episode, seed, name, value)
