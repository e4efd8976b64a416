"""Evaluations: every policy on the same workloads, in this process or in several, with the same result.

:func:`score` is for programs that search expressions: the objective of one, and nothing else.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from schedgym.core.expression import SCORE
from schedgym.core.problem import Metric, Problem
from schedgym.core.random import EVALUATION_SEEDS
from schedgym.core.score_policy import ScorePolicy
from schedgym.core.workload import Workload
from schedgym.core.workload_files import save_workload
from schedgym.documents import check_whole, mapping
from schedgym.envs import SchedulingEnv
from schedgym.errors import InvalidParameter
from schedgym.evaluation.comparison import Evaluation, Observed
from schedgym.evaluation.engines import Engine, Failure, make_engine, progress_bar
from schedgym.evaluation.episodes import (
    Environments,
    Observer,
    Result,
    check_entrant,
    checked_gap,
    play,
    run_unit,
    values_of,
)
from schedgym.evaluation.plan import (
    Entrant,
    Line,
    Policies,
    Setting,
    Unit,
    acting_parameters,
    check_counts,
    content_of,
    entrants,
    expand_grid,
    find_objective,
    line_of,
    missing,
    resolve_id,
    resolve_policies,
    setting_of,
)
from schedgym.evaluation.store import ResultsStore
from schedgym.extras import require

if TYPE_CHECKING:
    import pandas as pd

EPISODES = 20  # with the generator


class How(TypedDict, total=False):
    """The conditions of an evaluation: keyword arguments of :func:`evaluate` and :func:`compare`.

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
        the objective is maximised bound minus objective). :func:`compare` gives its statistics, too.

    Raises:
        UnknownName, InvalidParameter: for a bad id, policy, option or parameter.
        InvalidWorkload: for workloads that are not of this problem.
        RuntimeError: when rewards do not sum to the objective, or an objective beats its bound: a bug.
        gymnasium.error.DependencyNotInstalled: without the extra ``eval``.
    """
    check_keywords("evaluate", how, How)  # and not the further ones of compare
    return compare(env_id, policies, {}, episodes, seed, **how).frame


def compare(
    env_id: str,
    policies: Any = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    episodes: int | None = None,
    seed: int = 0,
    *,
    observe: Observer | None = None,
    store: ResultsStore | None = None,
    engine: Engine | None = None,
    **how: Unpack[How],
) -> Evaluation:
    """Run policies on the same workloads in every combination of parameter values.

    Args:
        env_id: as for :func:`evaluate`.
        policies: as for :func:`evaluate`.
        grid: parameter -> values, all of whose combinations are run; None: one setting.
        episodes: as for :func:`evaluate`; None may mean another number in each setting.
        seed: as for :func:`evaluate`, the same in every setting.
        observe: called with the environment when an episode has ended (its ``record()``, its simulator); a
            function of a module, as other processes call it, too. None: nothing is observed.
        store: open for writing; episodes that it holds are not run again, the others are added to it, also
            the error of one that fails, until it is run again and succeeds. Policies are then named, and not
            objects.
        engine: takes the place of ``n_jobs``: who compares again and again keeps its workers.
        **how: as for :func:`evaluate`; ``parameters`` are those of all settings.

    Returns:
        the frame of :func:`evaluate` with one column more per parameter of ``grid``, in front, and its
        statistics.

    Raises:
        InvalidParameter: as :func:`evaluate`, and for an empty list of values, a value that is there twice,
            values with different objectives, or a policy object where there is a store.
        InvalidStore: if the store cannot be written, or if a file that parameters name had other contents
            when its results were stored.
    """
    check_keywords("compare", how, How)
    grid = mapping(grid or {}, "grid")
    problem, id = resolve_id(env_id)
    settings = expand_grid(grid)
    base = mapping(how.get("parameters") or {}, "parameters")
    resolved = resolve_policies(problem, id, policies, how.get("options") or {}, base, settings)
    named = policies.values() if isinstance(policies, Mapping) else policies
    if store is not None and not all(isinstance(policy, str) for policy in named or ()):
        raise InvalidParameter("policies: a store knows them by their names: one is an object")
    given = resolved.acting
    engine = engine or make_engine("local", how.get("n_jobs", 1))
    check_counts(episodes, seed)
    own = [{**base, **setting} for setting in settings]
    objective = find_objective(problem, id, own)
    with tempfile.TemporaryDirectory(prefix="schedgym-") as folder:
        workloads = how.get("workloads")
        files = () if workloads is None else _store(problem, workloads, Path(folder))
        plan = _Plan(problem, id, resolved, files, episodes, seed, observe, store)
        left, context = plan.units(own, engine.processes), (plan.environments, observe, files)
        with contextlib.closing(run(left, engine, store, how.get("progress"), context, each=True)) as ended:
            new: list[tuple[Line, Result]] = []
            for unit, played, _ in ended:
                if isinstance(played, Failure):
                    played.reraise()
                new += [(unit.line, result) for result in played]
    results = [*plan.known, *new]
    order = list(given)
    ran = [(line.entrant, result) for line, result in results if line.entrant.label is not None]
    ran.sort(key=lambda one: (one[0].setting, order.index(str(one[0].label)), one[1].episode))
    bounds = {(line.entrant.setting, r.episode): r.values for line, r in results if line.policy is None}
    columns = [*grid, "policy", "episode", "seed", "metric", "value"]
    rows = _rows(objective, settings, seed, ran, bounds)
    views = {label: acting_parameters(problem, id, base, given[label]).get("view") for label in given}
    usual = (base["view"],) if "view" in base else (None, *grid.get("view", ()))
    return Evaluation(
        problem,
        id,
        objective,
        require("pandas").DataFrame(rows, columns=columns),
        swept=tuple(grid),
        parameters=base,
        seed=seed,
        episodes=max(plan.counts),
        distinct=min(plan.distinct),
        views={label: str(view) for label, view in views.items() if view not in usual},
        observed=[
            Observed(settings[who.setting], str(who.label), result.episode, result.seconds, result.observed)
            for who, result in ran
        ],
        spent={} if store is None else {Unit(line, seed, r.episode, 1).key: r.cpu for line, r in results},
        ran=sum(result.cpu for _, result in new),
    )


# one expression ------------------------------------------------------------------------------------


_KEPT = Environments()  # those of earlier calls


def score(
    id: str,
    expression: str,
    *,
    episodes: int = 5,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
) -> float:
    """The mean objective of the policy that serves the jobs by an expression, the highest value first.

    It plays the episodes that :func:`schedgym.evaluate` plays with ``score: EXPRESSION``, to the same
    objective, but computes no bounds and checks no schedules, and keeps the environment for the next call.

    Args:
        id: environment id, or the problem's name.
        expression: arithmetic over the columns of jobs, see :class:`schedgym.core.score_policy.ScorePolicy`.
        episodes: number of episodes.
        seed: seed of the episodes.
        parameters: parameters of the environment.

    Returns:
        the mean of the metric that the rewards sum to, in its unit; the metric says whether less is better.

    Raises:
        UnknownName: for a name that is no column, or an unknown id.
        InvalidParameter: for what is no expression, or another argument that is wrong.
    """
    problem, id = resolve_id(id)
    check_whole(episodes, "episodes", 1, EVALUATION_SEEDS - 1)
    check_whole(seed, "seed", 0, EVALUATION_SEEDS - 1)
    policy = ScorePolicy(expression if expression.startswith(SCORE) else f"{SCORE} {expression}")
    used = policy.acting_parameters(id, mapping(parameters or {}, "parameters"))
    env = _KEPT.get(0, id, used)
    name, total = problem.objective_of(env.simulator.parameters), 0.0
    for episode in range(episodes):
        outcome = play(env, policy, seed=seed, episode=episode, label=expression, check=False)
        total += outcome.metrics[name]
    return total / episodes


# how it is run -------------------------------------------------------------------------------------


def run(
    units: Sequence[Unit],
    engine: Engine,
    store: ResultsStore | None,
    progress: bool | None,
    context: tuple[Environments, Observer | None, Sequence[str]],
    *,
    each: bool = False,
) -> Generator[tuple[Unit, list[Result] | Failure, list[str]], None, None]:
    """Run units and store what comes of them: nothing else plays episodes by an engine, or stores results.

    Args:
        units: what is left to run.
        engine: runs them.
        store: open for writing; None: nothing is stored.
        progress: as of :class:`How`.
        context: what :func:`~schedgym.evaluation.episodes.run_unit` gets beside the unit.
        each: True to store each episode as a unit of its own.

    Yields:
        units as they end, each with its results, or why there are none, and with what failed: the unit, or
        those in the store that beat its bounds.

    Raises:
        InvalidStore: if the store cannot be written.
        RunAborted: if it is removed or replaced meanwhile, or the Ray cluster dies.
    """
    with (
        progress_bar(sum(unit.episodes for unit in units), progress) as advance,
        contextlib.closing(engine.run(functools.partial(run_unit, context), units)) as ended,
    ):
        for unit, results in ended:
            failed: list[str] = []
            if isinstance(results, Failure):
                failed = [results.error]
                if store is not None:
                    store.fail(unit, results.error)
            elif store is not None:
                for piece in [[result] for result in results] if each else [results]:
                    part = dataclasses.replace(unit, first=piece[0].episode, episodes=len(piece))
                    failed += store.add(
                        part,
                        *values_of(unit.line.policy, piece),
                        seconds=sum(result.cpu for result in piece),
                        policy_seconds=sum(result.seconds for result in piece),
                        observed=piece[-1].observed,
                    )
            yield unit, results, failed
            advance(unit.episodes)


@dataclasses.dataclass
class _Plan:
    """The units of an evaluation, and in ``counts`` and ``distinct`` the episodes of each setting.

    With a store, ``known`` are the results that it holds.
    """

    problem: Problem
    id: str
    policies: Policies
    files: tuple[str, ...]
    episodes: int | None
    seed: int
    observe: Observer | None
    store: ResultsStore | None
    known: list[tuple[Line, Result]] = dataclasses.field(default_factory=list)
    counts: list[int] = dataclasses.field(default_factory=list)
    distinct: list[int] = dataclasses.field(default_factory=list)
    environments: Environments = dataclasses.field(default_factory=Environments)

    def units(self, settings: Sequence[Mapping[str, Any]], processes: int) -> list[Unit]:
        """What is left to run: units of about equal size for so many processes, of an episode for this one.

        Raises an error if something cannot run.
        """
        left: list[Unit] = []
        everyone = self.policies.acting.items()
        for own, acting in zip(settings, entrants(self.problem, self.id, settings, everyone), strict=True):
            if self.files and own.get("workload") is not None:
                raise InvalidParameter("workloads: the parameters name a workload file already")
            count, different = self._count(acting)
            self.counts.append(count)
            self.distinct.append(different)
            size = max(1, min(count, count * len(acting) * len(settings) // (4 * processes)))
            if processes == 1:
                size = 1  # nothing is sent, and what is not stored yet is lost by the episode
            setting = setting_of(self.problem, self.id, own, self.store is not None)
            for entrant in acting:
                line, there = self._line(setting, entrant), []
                if self.store is not None:
                    found = [one for one in self.store.results(line, self.seed) if one.episode < count]
                    self.known += [(line, result) for result in found]
                    there = [(result.episode, 1) for result in found]
                left += missing(line, self.seed, range(count), there, size)
        return left

    def _line(self, setting: Setting, entrant: Entrant) -> Line:
        """The line of an entrant: in a store several may have its label, with other options or observers."""
        if self.store is None:
            return Line(setting, entrant.label, {}, None, "", entrant)
        more: dict[str, Any] = {"workloads": list(map(content_of, self.files))} if self.files else {}
        if self.observe is not None and entrant.label is not None:
            source = content_of(str(inspect.getsourcefile(self.observe)))
            more["observe"] = [self.observe.__module__, self.observe.__qualname__, source]
        line = line_of(setting, entrant, self.policies.options, **more)
        label = None if line.policy is None else f"{line.policy} {line.digest}"
        return dataclasses.replace(line, policy=label)

    def _count(self, acting: Sequence[Entrant]) -> tuple[int, int]:
        """:func:`count_episodes` of a setting.

        Raises an error for parameters, or for policies in their view, that cannot run.
        """
        first: dict[str, Any] = {}
        if self.files:
            if self.episodes is not None and self.episodes > len(self.files):
                text = f"{self.episodes} are more than the {len(self.files)} workloads"
                raise InvalidParameter(f"episodes: {text}")
            first = {"workload": self.files[0]}
        env, *_ = [check_entrant(self.environments, self.id, entrant, first) for entrant in acting]
        if self.files:
            count = len(self.files) if self.episodes is None else self.episodes
            return count, count
        return count_episodes(env, self.episodes)


def count_episodes(env: SchedulingEnv, episodes: int | None) -> tuple[int, int]:
    """The episodes that are played, and how many of them have jobs of their own.

    A trace has only its windows, a workload file only its jobs.
    """
    if getattr(env.simulator.parameters, "workload", None) is not None:
        return episodes or 1, 1
    windows = int(getattr(getattr(env.simulator, "source", None), "windows", 0))
    count = episodes or windows or EPISODES
    return count, min(count, windows or count)


def _store(problem: Problem, workloads: Sequence[Workload], folder: Path) -> tuple[str, ...]:
    """Write workloads where every process can read them; numpy archives keep each bit."""
    if not isinstance(workloads, Sequence) or not workloads:
        raise InvalidParameter("workloads: must be a list of workloads, and not empty")
    files = []
    for i, workload in enumerate(workloads):
        if not isinstance(workload, Workload) or workload.problem != problem.name:
            raise InvalidParameter(f"workloads[{i}]: must be a workload of {problem.name}, got {workload!r}")
        path = folder / f"{i}.npz"
        save_workload(workload, path)
        files.append(str(path))
    return tuple(files)


def _rows(
    objective: Metric,
    settings: list[dict[str, Any]],
    seed: int,
    ran: Iterable[tuple[Entrant, Result]],
    bounds: Mapping[tuple[int, int], Mapping[str, float]],
) -> Iterator[tuple[Any, ...]]:
    """Setting's values, policy, episode, seed, metric, value; each objective is checked against its bound."""
    for entrant, result in ran:
        setting = settings[entrant.setting]
        values = dict(result.values)
        if certificate := bounds[entrant.setting, result.episode]:
            bound, value = certificate["bound"], values[objective.name]
            where = f"{entrant.label}, {setting}, seed {seed}, episode {result.episode}"
            gap = checked_gap(objective, bound, value, certificate["slack"], where)
            values |= {"bound": bound, "gap": gap}
        for name, value in values.items():
            yield (*setting.values(), entrant.label, result.episode, seed, name, value)
