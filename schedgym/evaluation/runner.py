"""Evaluations: every policy on the same workloads, in this process or in several, with the same result."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from schedgym.core.problem import Metric, Problem
from schedgym.core.workload import Workload
from schedgym.core.workload_files import save_workload
from schedgym.envs import SchedulingEnv
from schedgym.errors import InvalidParameter
from schedgym.evaluation.comparison import Evaluation, Observed
from schedgym.evaluation.engines import Engine, Failure, make_engine, progress_bar
from schedgym.evaluation.episodes import (
    Environments,
    Job,
    Observer,
    Result,
    check_entrant,
    checked_gap,
    run_job,
)
from schedgym.evaluation.memory import Memory
from schedgym.evaluation.plan import (
    Entrant,
    acting_parameters,
    check_counts,
    entrants,
    expand_grid,
    find_objective,
    resolve_id,
    resolve_policies,
)
from schedgym.extras import require

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["How", "check_keywords", "compare", "count_episodes", "evaluate"]

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
    memory: Memory | None = None,
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
        memory: episodes that it knows are not run again; the others are added to it.
        engine: takes the place of ``n_jobs``: who compares again and again keeps its workers.
        **how: as for :func:`evaluate`; ``parameters`` are those of all settings.

    Returns:
        the frame of :func:`evaluate` with one column more per parameter of ``grid``, in front, and its
        statistics.

    Raises:
        InvalidParameter: as :func:`evaluate`, and for an empty list of values, or values with different
            objectives.
    """
    check_keywords("compare", how, How)
    grid = grid or {}
    problem, id = resolve_id(env_id)
    settings = expand_grid(grid)
    base = dict(how.get("parameters") or {})
    given = resolve_policies(problem, id, policies, how.get("options") or {}, base, settings).acting
    engine = engine or make_engine("local", how.get("n_jobs", 1))
    check_counts(episodes, seed)
    objective = find_objective(problem, id, [{**base, **setting} for setting in settings])
    with tempfile.TemporaryDirectory(prefix="schedgym-") as folder:
        workloads = how.get("workloads")
        files = () if workloads is None else _store(problem, workloads, Path(folder))
        runs = _Runs(problem, id, given, files, episodes, seed, observe)
        jobs = runs.plan([{**base, **setting} for setting in settings], engine.processes)
        known, jobs = ([], jobs) if memory is None else memory.recall(jobs)
        new = _run(jobs, engine, how.get("progress"))
        results = [*known, *(new if memory is None else memory.keep(new))]
    order = list(given)
    ran = [result for result in results if result.label is not None]
    ran.sort(key=lambda result: (result.setting, order.index(str(result.label)), result.episode))
    bounds = {(r.setting, r.episode): r.values for r in results if r.label is None}
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
        episodes=max(runs.counts),
        distinct=min(runs.distinct),
        views={label: str(view) for label, view in views.items() if view not in usual},
        policy_seconds=_policy_seconds(settings, ran),
        observed=[Observed(settings[r.setting], str(r.label), r.episode, r.seconds, r.observed) for r in ran],
    )


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
    environments: Environments = dataclasses.field(default_factory=Environments)

    def plan(self, settings: Sequence[Mapping[str, Any]], processes: int) -> list[Job]:
        """Make jobs of about equal size for so many processes, or for this one jobs of an episode.

        Raises an error if something cannot run.
        """
        jobs: list[Job] = []
        for own, acting in zip(
            settings, entrants(self.problem, self.id, settings, self.policies.items()), strict=True
        ):
            if self.files and own.get("workload") is not None:
                raise InvalidParameter("workloads: the parameters name a workload file already")
            count, different = self._count(acting)
            self.counts.append(count)
            self.distinct.append(different)
            size = max(1, min(count, count * len(acting) * len(settings) // (4 * processes)))
            if processes == 1:
                size = 1  # nothing is sent, and what is remembered is lost by the episode
            for entrant in acting:
                for first in range(0, count, size):
                    chunk = tuple(range(first, min(first + size, count)))
                    where = (self.environments, entrant.setting, self.id, entrant.parameters, self.files)
                    who = (self.seed, entrant.label, entrant.policy)
                    jobs.append(Job(*where, *who, chunk, self.observe))
        return jobs

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


def _run(jobs: list[Job], engine: Engine, progress: bool | None) -> Iterator[Result]:
    """Run jobs; raises the exception of one that fails."""
    with (
        progress_bar(sum(len(job.episodes) for job in jobs), progress) as advance,
        contextlib.closing(engine.run(run_job, jobs)) as ended,
    ):
        for job, results in ended:
            if isinstance(results, Failure):
                results.reraise()
            yield from results
            advance(len(job.episodes))


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
