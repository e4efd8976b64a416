"""Tuning: the option values with which a baseline does best, found on validation workloads.

A baseline is compared fairly only at its best options. :func:`tune` runs candidates (the values that the
policy declares, or those given) on episodes that no evaluation plays, by the engine of the sweeps, and judges
the best of them on further such episodes: the best of many has a mean that flatters it on the episodes by
which it was chosen.

Drawn workloads are episodes of VALIDATION_SEED. Of a trace, whose windows are the same for all seeds, the
last windows of the turn of seed 0 are taken: a comparison with seed 0 begins with the others.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.core.policy import PolicySpec, get_policy_spec, make_policy
from schedgym.core.problem import Metric, Problem
from schedgym.core.random import VALIDATION_SEED
from schedgym.documents import check_whole, mapping
from schedgym.envs import SchedulingEnv
from schedgym.errors import InvalidParameter, SchedgymError
from schedgym.evaluation.comparison import Comparison, Difference
from schedgym.evaluation.episodes import Environments, check_entrant
from schedgym.evaluation.plan import entrants, find_objective, resolve_id, setting_of
from schedgym.evaluation.runner import EPISODES
from schedgym.evaluation.statistics import judge_interval
from schedgym.evaluation.store import ResultsStore
from schedgym.evaluation.sweeps import Experiment, SweepSpec, run_sweep
from schedgym.evaluation.wording import options_text
from schedgym.extras import require

#: combinations of candidates that are all tried; of more, one option after another is changed
MOST = 64
SHARE = 4  # of a trace's windows, a part of so many chooses, and another one judges

Options = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Tuning:
    """The result of a tuning.

    Attributes:
        id: environment id.
        policy: name of the policy, with its problem.
        parameters: parameters of the environment that were given.
        objective: the metric that was tuned.
        tried: option -> its values.
        refused: candidate -> why the policy cannot act with it here.
        candidates: one for each candidate, the best first: "options" that differ from the defaults, "mean" of
            the objective, and the keys of ``Evaluation.differences`` for its
            difference to the defaults (nan for the defaults themselves), on the validation episodes.
        judged: the same for the best candidate on the test episodes, and "default_mean", the mean of the
            defaults there; None if the defaults have the best mean.
        seed: of all episodes.
        choosing: number of the first validation episode, and number of these episodes.
        judging: the same for the test episodes.
    """

    id: str
    policy: str
    parameters: dict[str, Any]
    objective: Metric
    tried: dict[str, tuple[Any, ...]]
    refused: dict[str, str]
    candidates: list[dict[str, Any]]
    judged: dict[str, Any] | None
    seed: int
    choosing: tuple[int, int]
    judging: tuple[int, int]

    @property
    def best(self) -> Options:
        """The options of the best candidate, as far as they differ from the defaults."""
        return dict(self.candidates[0]["options"])

    @property
    def improves(self) -> bool:
        """Return True if the best candidate is better on the test episodes.

        The interval of the difference excludes 0, and so does that of the relative one, where there is one.
        """
        if self.judged is None:
            return False
        judged = [
            judge_interval(self.judged[f"{part}low"], self.judged[f"{part}high"], self.objective.better)
            for part in ("", "relative_")
        ]
        return judged in (["better", "better"], ["better", "no interval"])

    @property
    def options(self) -> Options:
        """The options to run the policy with: the best ones if they improve on the defaults, else none."""
        return self.best if self.improves else {}

    def entry(self) -> dict[str, Any]:
        """The entry for a file of tuned options."""
        judged = self.judged or {}
        numbers = "default_mean mean difference low high relative relative_low relative_high".split()
        return {
            "id": self.id,
            "policy": self.policy,
            "parameters": self.parameters,
            "objective": self.objective.name,
            "unit": self.objective.unit,
            "better": self.objective.better,
            "options": self.options,
            "best": self.best,
            **{name: judged[name] for name in numbers if name in judged},
            "tried": self.tried,
            "count": len(self.candidates),
            "seed": self.seed,
            "choosing": self.choosing,
            "judging": self.judging,
        }


def tune(
    env_id: str,
    policy: str,
    episodes: int | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    candidates: Mapping[str, Sequence[Any]] | None = None,
    store: str | Path | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> Tuning:
    """Find the best option values of a registered policy on validation workloads.

    If there are at most 64 combinations of values, all are tried. Otherwise, options are changed one after
    another, each to its best value given those of the others, until the result does not improve. The defaults
    are always tried.

    Args:
        env_id: environment id, as for :func:`~schedgym.evaluation.runner.evaluate`.
        policy: name of the policy.
        episodes: number of validation episodes, on which the best candidate is chosen, and of test episodes;
            None: 20, or fewer so that half of a trace's windows are left for comparisons.
        parameters: parameters of the environment.
        candidates: option -> values, instead of those that the policy declares for this option.
        store: the results store, from which an interrupted tuning continues; None: results are not kept.
        n_jobs: processes; -1: one per core. The result does not depend on it.
        progress: as for :func:`~schedgym.evaluation.runner.evaluate`.

    Raises:
        UnknownName, InvalidParameter: for a bad id, policy, option or parameter, a policy without an open
            option, a workload file (which has no further episodes to compare on), or too short a trace.
        InvalidStore: if the store cannot be written.
        gymnasium.error.DependencyNotInstalled: without the extra ``eval``.
    """
    require("pandas")
    problem, id = resolve_id(env_id)
    spec = get_policy_spec(policy, problem.name)
    values = _values(spec, candidates or {})
    given = mapping(parameters or {}, "parameters")
    if given.get("workload") is not None:
        raise InvalidParameter("workload: is one instance; a tuning needs others than those of comparisons")
    with tempfile.TemporaryDirectory(prefix="schedgym-") as folder:
        path = Path(store) if store is not None else Path(folder) / "tune.db"
        trial = _Trial(problem, id, spec, given, path, n_jobs, progress)
        trial.prepare(episodes)
        return _search(trial, values)


def _values(spec: PolicySpec, given: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    """Option -> its values, the default first."""
    defaults = spec.options()
    for name, chosen in given.items():
        make_policy(spec.name, **{name: defaults.get(name)})  # refuses unknown and fixed ones
        if isinstance(chosen, str) or not isinstance(chosen, Sequence) or not chosen:
            raise InvalidParameter(f"{spec.name}: {name}: a tuning needs a list of values, got {chosen!r}")
    lists = {name: [tuple(v) if isinstance(v, list) else v for v in own] for name, own in given.items()}
    values: dict[str, Sequence[Any]] = {**spec.open_options(), **lists}
    if not values:
        closed = ", ".join(defaults)
        why = f"no candidates are declared for {closed}: name some" if closed else "it has none"
        raise InvalidParameter(f"{spec.name}: no options to tune: {why}")
    # a list keeps the order, and 4000.0 is 4000
    return {
        name: tuple(dict.fromkeys((defaults[name], *values[name]))) for name in defaults if name in values
    }


@dataclasses.dataclass
class _Trial:
    """Runs candidates of one policy in one setting, and keeps the objective of each."""

    problem: Problem
    id: str
    spec: PolicySpec
    parameters: dict[str, Any]
    store: Path
    n_jobs: int
    progress: bool | None
    seed: int = VALIDATION_SEED
    first: int = 0
    episodes: int = EPISODES
    refused: dict[str, str] = dataclasses.field(default_factory=dict)
    environments: Environments = dataclasses.field(default_factory=Environments)

    @property
    def policy(self) -> str:
        """The policy's short name."""
        return self.spec.name.partition("/")[2]

    @property
    def metric(self) -> Metric:
        """The objective."""
        return find_objective(self.problem, self.id, [self.parameters])

    def label(self, options: Options) -> str:
        """The name of a candidate; that of the defaults is the policy's."""
        return f"{self.policy} {options_text(options)}".rstrip()

    def prepare(self, episodes: int | None) -> None:
        """Choose the episodes; raise an error if the policy cannot act with its defaults."""
        source = getattr(self._environment({}).simulator, "source", None)
        windows = int(getattr(source, "windows", 0))
        if episodes is not None:
            check_whole(episodes, "episodes", 1)
        if not windows:
            self.episodes = episodes or EPISODES
            return
        self.episodes = episodes or max(1, min(EPISODES, windows // SHARE))
        self.seed, self.first = 0, windows - 2 * self.episodes
        if self.first < 1:
            raise InvalidParameter(
                f"episodes: the trace has {windows} windows: {self.episodes} to choose and as many to judge "
                "leave none for comparisons"
            )

    def _environment(self, options: Options) -> SchedulingEnv:
        """The environment in which the policy acts with these options; InvalidParameter if it refuses."""
        policy = make_policy(self.spec.name, **options)
        (_, entrant), *_ = entrants(self.problem, self.id, [self.parameters], [(self.policy, policy)])
        return check_entrant(self.environments, self.id, entrant)

    def admits(self, options: Options) -> bool:
        """Return True if the policy can act with these options; else note why not."""
        try:
            self._environment(options)
        except InvalidParameter as error:
            self.refused[self.label(options)] = str(error)
            return False
        return True

    def run(self, candidates: Sequence[Options], first: int) -> Comparison:
        """Run candidates from an episode on, and compare their objectives."""
        labels = {self.label(options): options for options in candidates}
        experiment = Experiment(
            self.id,
            self.parameters,
            policies=dict.fromkeys(labels, self.policy),
            options={label: options for label, options in labels.items() if options},
        )
        spec = SweepSpec("tune", [experiment], (self.seed,), self.episodes, first=first)
        result = run_sweep(spec, self.store, n_jobs=self.n_jobs, retry_failed=True, progress=self.progress)
        for unit in result.failed:
            last = unit["error"].strip().splitlines()[-1]
            raise SchedgymError(f"{unit['policy'] or 'bounds'}, seed {unit['seed']}: {last}")
        episodes = range(first, first + self.episodes)
        with ResultsStore(self.store) as store:
            found = {
                line.policy: line.values[self.metric.name].loc[self.seed].reindex(episodes).to_numpy()
                for line in store.contenders(setting_of(self.problem, self.id, self.parameters))
                if line.policy in labels
            }
        return Comparison(self.metric, {label: found[label][np.newaxis] for label in labels})

    def measure(self, candidates: Sequence[Options], first: int) -> list[dict[str, Any]]:
        """Candidates with their means and paired differences to the defaults, in the order given."""
        comparison = self.run(candidates, first)
        rows = []
        for options in candidates:
            label = self.label(options)
            own = comparison.against(label, self.policy) if options else Difference()
            rows.append({"options": options, "mean": comparison.mean(label).value, **own.row()})
        return rows


def _search(trial: _Trial, values: dict[str, tuple[Any, ...]]) -> Tuning:
    """Try candidates, and judge the best."""
    tried = _tried(trial, values)
    sign = trial.metric.sign
    measured = sorted(trial.measure(tried, trial.first), key=lambda row: sign * row["mean"])  # ties: as tried
    best = measured[0]["options"]
    second = trial.first + trial.episodes
    judged = None
    if best:
        default, found = trial.measure([{}, best], second)
        judged = {**found, "default_mean": default["mean"]}
    return Tuning(
        trial.id,
        trial.spec.name,
        trial.parameters,
        trial.metric,
        values,
        trial.refused,
        measured,
        judged,
        trial.seed,
        (trial.first, trial.episodes),
        (second, trial.episodes),
    )


def _tried(trial: _Trial, values: dict[str, tuple[Any, ...]]) -> list[Options]:
    """All combinations that the policy admits, the defaults first, or those of a search by coordinates."""
    defaults = {name: own[0] for name, own in values.items()}

    def changes(options: Options) -> Options:
        return {name: value for name, value in options.items() if value != defaults[name]}

    def admitted(combinations: list[Options]) -> list[Options]:
        found = {trial.label(own): own for own in map(changes, combinations)}
        return [own for label, own in found.items() if label not in trial.refused and trial.admits(own)]

    if math.prod(map(len, values.values())) <= MOST:
        every = itertools.product(*values.values())
        return admitted([dict(zip(values, own, strict=True)) for own in every])
    best: Options = {}
    tried: dict[str, Options] = {trial.label(best): best}
    before: Options | None = None
    while best != before:
        before = best
        for name, own in values.items():
            row = admitted([{**defaults, **best, name: value} for value in own])
            tried |= {trial.label(options): options for options in row}
            measured = trial.measure([{}, *filter(None, row)], trial.first)
            best = min(
                (found for found in measured if found["options"] in row),
                key=lambda found: trial.metric.sign * found["mean"],
            )["options"]
    return list(tried.values())
