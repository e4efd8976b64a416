"""Sweeps: ids x parameters x policies x seeds, run to the end however often they are cut off.

A specification lists the runs in YAML, or in Python:

```yaml
name: load
seeds: [0, 1, 2]
episodes: 20
experiments:
  - id: schedgym/QueueDelay-v0
    preset: small
    parameters: {servers: [4, 8], load: 0.9}
    policies: [bf-exec, fcfs]
    agents: {ppo: [ppo-0.npz, ppo-1.npz], shipped: pretrained}
```

Every unit (a policy's episodes of one seed in one setting, or their bounds) is run by the code that
:func:`~schedgym.evaluation.runner.evaluate` runs, and stored as soon as it ends. What a store holds is not
run again, unless the code, the options, or a file that is named has changed.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.core.policy_files import typed_policy
from schedgym.core.problem import Problem, get_problem
from schedgym.core.random import EVALUATION_SEEDS, VALIDATION_SEED
from schedgym.documents import build, canonical, check, check_whole, entry, placed, read_yaml
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.engines import make_engine
from schedgym.evaluation.episodes import Environments, check_entrant
from schedgym.evaluation.manifest import make_manifest
from schedgym.evaluation.plan import (
    Line,
    Policies,
    Unit,
    check_label,
    code_version,
    entrants,
    expand_grid,
    line_of,
    missing,
    package_version,
    resolve_id,
    resolve_policies,
    setting_of,
)
from schedgym.evaluation.runner import EPISODES, run
from schedgym.evaluation.store import ResultsStore


@dataclasses.dataclass(frozen=True)
class Experiment:
    """The part of a sweep that runs in one environment id.

    Attributes:
        id: environment id, or the problem's name.
        parameters: name -> value, or a list of values: the product of all lists is run.
        preset: named parameters, over which ``parameters`` are laid.
        policies: names, or label -> name; None: the id's own. FILE.py:NAME names a policy of a file, which is
            run when the sweep is.
        options: label of a policy -> its options.
        agents: label -> "pretrained", an agent file, or a list or a folder of those that one method trained
            with different seeds.
        tuned: "shipped", or a file of ``schedgym tune --json``: policies get the options found there, under
            those of ``options``; None: they have their defaults.
    """

    id: str = entry(must=["an experiment must name it"])
    parameters: Mapping[str, Any] = entry(factory=dict)
    preset: str | None = entry(None, must=["must be a name"])
    policies: Sequence[str] | Mapping[str, str] | None = entry(
        None, must=["must be a list of names", "must be a name"], empty=True
    )
    options: Mapping[str, Mapping[str, Any]] = entry(factory=dict)
    agents: Mapping[str, str | Sequence[str]] = entry(
        factory=dict, must=["", "must be a path or a list of paths", "must be a path"]
    )
    tuned: str | None = entry(None, must=["must be 'shipped' or a path"])

    def __post_init__(self) -> None:
        check(self)
        get_problem(self.id)


@dataclasses.dataclass(frozen=True)
class SweepSpec:
    """The specification of a sweep.

    Attributes:
        name: name of the sweep.
        experiments: one at least.
        seeds: seeds of the workloads, below EVALUATION_SEEDS, or VALIDATION_SEED alone; the same in every
            setting.
        episodes: number of episodes of each seed.
        chunk: episodes that are run and stored at once; None: all of a seed.
        first: number of the first episode.
    """

    name: str = entry(must=["a sweep must have one"])
    experiments: Sequence[Experiment] = entry(must=["must be a list of one at least"])
    seeds: Sequence[int] = entry((0,), must=["must be a list of one at least", ""])
    episodes: int = entry(EPISODES, least=1, most=EVALUATION_SEEDS - 1)
    chunk: int | None = entry(None, least=1, most=EVALUATION_SEEDS - 1)
    first: int = entry(0, most=EVALUATION_SEEDS - 1)

    def __post_init__(self) -> None:
        check(self)
        if not self.name:
            raise InvalidParameter(f"name: a sweep must have one, got {self.name!r}")
        if len(set(self.seeds)) < len(self.seeds):
            raise InvalidParameter("seeds: one is there twice")
        for i, seed in enumerate(self.seeds if list(self.seeds) != [VALIDATION_SEED] else ()):
            check_whole(seed, f"seeds[{i}]", 0, EVALUATION_SEEDS - 1)

    @property
    def numbers(self) -> range:
        """The numbers of the episodes."""
        return range(self.first, self.first + self.episodes)

    def covers(self, first: int, episodes: int) -> bool:
        """Return True if a unit of these episodes has some of the sweep's."""
        return first < self.numbers.stop and first + episodes > self.first


@dataclasses.dataclass(frozen=True)
class SweepResult:
    """The result of a sweep.

    Attributes:
        done: units that were run and stored.
        skipped: units that the store held before.
        failed: the sweep's units that have failed, now or before: dicts with id, setting, policy,
            training_seed, seed, first, episodes, error.
        seconds: time that the sweep took [s].
    """

    done: int
    skipped: int
    failed: list[dict[str, Any]]
    seconds: float


def make_spec(data: Any) -> SweepSpec:
    """A specification from plain data, e.g. of a YAML text.

    Raises:
        UnknownName, InvalidParameter: naming the field.
    """
    return build(SweepSpec, data, "the sweep", ": ", " is missing")


def load_spec(path: str | Path) -> SweepSpec:
    """The specification in a YAML file; nothing that it names is executed before the sweep is run.

    Raises:
        OSError: if it cannot be read.
        InvalidParameter, UnknownName: in one line, with the file's name.
    """
    data = read_yaml(path)
    with placed(Path(path).name):
        return make_spec(data)


def _loaded(named: Any, problem: Problem) -> Any:
    """The policies of an experiment by their names; those of files, FILE.py:NAME, are loaded."""
    if isinstance(named, Mapping):
        return {label: typed_policy(policy, problem.name) for label, policy in named.items()}
    return None if named is None else [typed_policy(policy, problem.name) for policy in named]


def _plain(value: Any) -> Any:
    """A parameter's value, or list of values, with Python's own types in the place of numpy's.

    A list within a list is a value that has several parts, as is a tuple.
    """
    if isinstance(value, list):
        return [_plain(tuple(item) if isinstance(item, list) else item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _lines(experiment: Experiment, index: int) -> Iterator[list[Line]]:
    """All that an experiment compares in each setting, the bounds first; everything is checked."""
    problem, id = resolve_id(experiment.id)
    fixed: dict[str, Any] = {}
    if experiment.preset is not None:
        if experiment.preset not in problem.presets:
            raise UnknownName("preset", experiment.preset, problem.presets)
        fixed |= problem.presets[experiment.preset]
    given = {name: _plain(value) for name, value in {**fixed, **experiment.parameters}.items()}
    grid = {name: value for name, value in given.items() if isinstance(value, list)}
    base = {name: value for name, value in given.items() if name not in grid}
    combinations = expand_grid(grid)
    policies = Policies({}, {}, {})
    if experiment.policies is None or experiment.policies or not experiment.agents:
        named = _loaded(experiment.policies, problem)
        options, tuned = experiment.options, experiment.tuned
        policies = resolve_policies(problem, id, named, options, base, combinations, tuned)
    elif experiment.options:
        raise UnknownName("policy in options", next(iter(experiment.options)), ())
    agents = _agents(experiment, id)
    for label, _ in agents:
        if label in policies.acting:
            raise InvalidParameter(f"agents: {label!r} is a policy, too: give another label")
    settings = [{**base, **combination} for combination in combinations]
    everyone = [*policies.acting.items(), *agents]
    for own, acting in zip(settings, entrants(problem, id, settings, everyone, index), strict=True):
        setting = setting_of(problem, id, own)
        yield [line_of(setting, entrant, policies.options) for entrant in acting]


def _agents(experiment: Experiment, id: str) -> list[tuple[str, Any]]:
    """(label, policy) of each agent file."""
    found: list[tuple[str, Any]] = []
    for label, sources in experiment.agents.items():
        check_label(label)
        seeds = set()
        for policy in importlib.import_module("schedgym.agents.agent_policy").agents_of(sources, id):
            seed = policy.agent.training_seed
            if seed in seeds:
                raise InvalidParameter(
                    f"agents: {label}: two are of training seed {seed}: give another label"
                )
            seeds.add(seed)
            policy.name = label
            found.append((label, policy))
    return found


def _plan(spec: SweepSpec) -> list[list[Line]]:
    """The lines of each setting."""
    settings: list[list[Line]] = []
    known: set[str] = set()
    labels: dict[tuple[str, str, str | None], list[Line]] = {}
    for number, experiment in enumerate(spec.experiments):
        with placed(f"experiments[{number}]"):
            for lines in _lines(experiment, len(settings)):
                settings.append([line for line in lines if line.digest not in known])
                for line in settings[-1]:
                    place = line.setting.id, canonical(dict(line.setting.parameters)), line.policy
                    others = labels.setdefault(place, [])
                    if any(line.clashes(other.training_seed) for other in others):
                        raise InvalidParameter(
                            f"{line.policy}: has other options in another experiment: give another label"
                        )
                    others.append(line)
                    known.add(line.digest)
    return settings


# running -------------------------------------------------------------------------------------------


def _units(
    settings: list[list[Line]], spec: SweepSpec, store: ResultsStore, retry_failed: bool
) -> tuple[list[Unit], int]:
    """The units that are left to run, and the number of units that the store has done."""
    left: list[Unit] = []
    skipped = 0
    for lines in settings:
        done = [store.spans(line) for line in lines]
        failed = [{} if retry_failed else store.spans(line, "failed") for line in lines]
        for seed in spec.seeds:
            for line, ours, theirs in zip(lines, done, failed, strict=True):
                mine = [span for span in ours.get(seed, []) if spec.covers(*span)]
                skipped += len(mine)
                left += missing(line, seed, spec.numbers, [*mine, *theirs.get(seed, [])], spec.chunk)
    return left, skipped


def run_sweep(
    spec: SweepSpec,
    store_path: str | Path,
    *,
    engine: str = "local",
    n_jobs: int = -1,
    unit_timeout: float | None = None,
    retry_failed: bool = False,
    progress: bool | None = None,
) -> SweepResult:
    """Run the units that a store does not hold yet, and store each one when it is finished.

    Args:
        spec: the specification.
        store_path: the results store; made if there is none.
        engine: "local" or "ray"; see :func:`~schedgym.evaluation.engines.make_engine`.
        n_jobs: units at once; -1: one per core. Results do not depend on it.
        unit_timeout: the longest that a unit may take [s], compilation included: it has then failed, and its
            worker is replaced; None: as long as it takes.
        retry_failed: True to run units that failed before again.
        progress: True to show a bar with the time left on stderr; None: if it is a terminal.

    Returns:
        the numbers of units run and skipped, and the units that failed; the others run all the same.

    Raises:
        UnknownName, InvalidParameter: for a specification that cannot run; raised before anything runs.
        InvalidStore: if the store cannot be written, or holds other results under the same labels.
        RunAborted: if the store is removed or replaced meanwhile, or the Ray cluster dies; a next run
            continues.
    """
    began = time.monotonic()
    workers, environments = make_engine(engine, n_jobs, unit_timeout), Environments()
    settings = _plan(spec)
    done, is_new = 0, not os.path.exists(store_path)
    if is_new:  # else only what is left to run is checked: an environment may read a long trace
        _check(environments, itertools.chain(*settings))
    with ResultsStore(store_path, "w") as store:
        left, skipped = _units(settings, spec, store, retry_failed)
        if not is_new:
            _check(environments, {unit.line.digest: unit.line for unit in left}.values())
        if left:
            store.add_manifest(
                make_manifest(
                    seeds=spec.seeds, sweep=dataclasses.asdict(spec), code=package_version(), engine=engine
                )
            )
            for _, _, messages in run(left, workers, store, progress, (environments, None, ())):
                done += 1 - len(messages)
        # the store may hold other sweeps' failures
        failed = [
            unit
            for unit in store.failed(code_version(), itertools.chain(*settings))
            if unit["seed"] in spec.seeds and spec.covers(unit["first"], unit["episodes"])
        ]
        store.check_files()
    return SweepResult(done, skipped, failed, time.monotonic() - began)


def _check(environments: Environments, lines: Iterable[Line]) -> None:
    """Refuse what cannot run: an environment, or a policy in it."""
    for line in lines:
        check_entrant(environments, line.setting.id, line.entrant)
