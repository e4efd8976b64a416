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

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import inspect
import itertools
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym._version import __version__
from schedgym.core.files import open_regular
from schedgym.core.policy import get_policy_spec
from schedgym.core.policy_files import load_policy, names_policy_file
from schedgym.core.problem import Problem, get_problem
from schedgym.core.random import EVALUATION_SEEDS, VALIDATION_SEED
from schedgym.documents import check_whole, mapping, placed, read_yaml
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation import runner
from schedgym.evaluation.engines import Failure, make_engine
from schedgym.evaluation.episodes import Job
from schedgym.evaluation.manifest import make_manifest
from schedgym.evaluation.runner import EPISODES
from schedgym.evaluation.store import BOUNDS, Line, ResultsStore, Setting, Unit, canonical
from schedgym.evaluation.tuned import tuned_options
from schedgym.traces import names_file

__all__ = ["Experiment", "SweepResult", "SweepSpec", "code_version", "load_spec", "make_spec", "run_sweep"]

#: parameters that name files: a result depends on what is in them
FILES = ("workload", "trace", "nodes")
PACKAGES = ("schedgym", "schedgym.baselines", "schedgym.agents")


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

    id: str
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    preset: str | None = None
    policies: Sequence[str] | Mapping[str, str] | None = None
    options: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    agents: Mapping[str, str | Sequence[str]] = dataclasses.field(default_factory=dict)
    tuned: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id, str):
            raise InvalidParameter(f"id: an experiment must name it, got {self.id!r}")
        get_problem(self.id)
        mapping(self.parameters, "parameters")
        for label, values in mapping(self.options, "options").items():
            mapping(values, f"options of {label}")
        if self.preset is not None and not isinstance(self.preset, str):
            raise InvalidParameter(f"preset: must be a name, got {self.preset!r}")
        if self.tuned is not None and not isinstance(self.tuned, str):
            raise InvalidParameter(f"tuned: must be 'shipped' or a path, got {self.tuned!r}")
        given: Any = () if self.policies is None else self.policies
        if not isinstance(given, (list, tuple, Mapping)):
            raise InvalidParameter(f"policies: must be a list of names, got {given!r}")
        named = mapping(given, "policies").items() if isinstance(given, Mapping) else enumerate(given)
        for place, name in named:
            if not isinstance(name, str):
                raise InvalidParameter(f"policies[{place!r}]: must be a name, got {name!r}")
        for label, source in mapping(self.agents, "agents").items():
            sources = [source] if isinstance(source, str) else source
            if not isinstance(sources, (list, tuple)) or not sources:
                raise InvalidParameter(f"agents: {label}: must be a path or a list of paths, got {source!r}")
            for i, path in enumerate(sources):
                if not isinstance(path, str):
                    raise InvalidParameter(f"agents: {label}[{i}]: must be a path, got {path!r}")


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

    name: str
    experiments: Sequence[Experiment]
    seeds: Sequence[int] = (0,)
    episodes: int = EPISODES
    chunk: int | None = None
    first: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidParameter(f"name: a sweep must have one, got {self.name!r}")
        if not isinstance(self.experiments, (list, tuple)) or not self.experiments:
            raise InvalidParameter("experiments: must be a list of one at least")
        for experiment in self.experiments:
            if not isinstance(experiment, Experiment):
                raise InvalidParameter(f"experiments: must be of class Experiment, got {experiment!r}")
        if not isinstance(self.seeds, (list, tuple, range)) or not self.seeds:
            raise InvalidParameter(f"seeds: must be a list of one at least, got {self.seeds!r}")
        if len(set(map(repr, self.seeds))) < len(self.seeds):
            raise InvalidParameter("seeds: one is there twice")
        for i, seed in enumerate(self.seeds if list(self.seeds) != [VALIDATION_SEED] else ()):
            check_whole(seed, f"seeds[{i}]", 0, EVALUATION_SEEDS - 1)
        check_whole(self.episodes, "episodes", 1, EVALUATION_SEEDS - 1)
        check_whole(self.first, "first", 0, EVALUATION_SEEDS - 1)
        if self.chunk is not None:
            check_whole(self.chunk, "chunk", 1, EVALUATION_SEEDS - 1)

    def covers(self, first: int, episodes: int) -> bool:
        """Return True if a unit of these episodes has some of the sweep's."""
        return first < self.first + self.episodes and first + episodes > self.first


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


@dataclasses.dataclass(frozen=True)
class _Contender:
    """A line, and how it is run."""

    line: Line
    index: int  # of the setting
    parameters: dict[str, Any]
    policy: Any


def _fields(kind: type[Any], data: Any, where: str) -> dict[str, Any]:
    given = mapping(data, where, kind)
    for field in dataclasses.fields(kind):
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and given.get(field.name) is None:
            raise InvalidParameter(f"{where}: {field.name} is missing")
    return {name: value for name, value in given.items() if value is not None}


def make_spec(data: Any) -> SweepSpec:
    """A specification from plain data, e.g. of a YAML text.

    Raises:
        UnknownName, InvalidParameter: naming the field.
    """
    given = _fields(SweepSpec, data, "the sweep")
    experiments = given["experiments"]
    if not isinstance(experiments, (list, tuple)):
        raise InvalidParameter("experiments: must be a list of one at least")
    made = []
    for i, experiment in enumerate(experiments):
        own = _fields(Experiment, experiment, f"experiments[{i}]")
        with placed(f"experiments[{i}]"):
            made.append(Experiment(**own))
    return SweepSpec(**{**given, "experiments": made})


def load_spec(path: str | Path) -> SweepSpec:
    """The specification in a YAML file; nothing that it names is executed before the sweep is run.

    Raises:
        OSError: if it cannot be read.
        InvalidParameter, UnknownName: in one line, with the file's name.
    """
    data = read_yaml(path)
    with placed(Path(path).name):
        return make_spec(data)


# what a result depends on --------------------------------------------------------------------------


@functools.cache
def code_version() -> str:
    """Version and digest of the package's code, under which results are stored."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        folder = Path(importlib.import_module(package).__path__[0])
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{package}/{path.relative_to(folder).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{__version__}+{digest.hexdigest()[:12]}"


@functools.cache
def _file_digest(path: Path, size: int, changed: int) -> str:
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _content(path: str | Path) -> Any:
    """Digest of a file, or of all files in a folder."""
    path = Path(path)
    if path.is_dir():
        return {str(p.relative_to(path)): _content(p) for p in sorted(path.rglob("*")) if p.is_file()}
    try:
        status = path.stat()
        return _file_digest(path.resolve(), status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise InvalidParameter(f"{path}: cannot be read: {error.strerror}") from None


def _loaded(named: Any, problem: Problem) -> Any:
    """The policies of an experiment by their names; those of files, FILE.py:NAME, are loaded."""

    def name_of(policy: str) -> str:
        return load_policy(policy, problem.name) if names_policy_file(policy) else policy

    if isinstance(named, Mapping):
        return {label: name_of(policy) for label, policy in named.items()}
    return None if named is None else [name_of(policy) for policy in named]


def _foreign_code(name: str, problem: str) -> str | None:
    """Digest of the file of a policy of another package."""
    factory = inspect.unwrap(get_policy_spec(name, problem).factory)
    if factory.__module__.startswith("schedgym."):
        return None
    source = inspect.getsourcefile(factory)
    return None if source is None else str(_content(source))


def _files(parameters: Mapping[str, Any]) -> list[str]:
    """The parameters that name files."""
    found = [name for name in FILES if parameters.get(name) is not None]
    own = parameters.get("trace_format")
    return [*found, "trace_format"] if own is not None and names_file(own) else found


def _line(
    setting: Setting,
    problem: Problem,
    acting: Mapping[str, Any],
    label: str | None,
    options: Mapping[str, Any],
    training_seed: int | None,
    code: str | None,
) -> Line:
    complete = vars(problem.build(setting.id, runner.baseline(problem, setting.id, acting)))
    depends = {
        "id": setting.id,
        "code": setting.code,
        "given": setting.parameters,
        "parameters": complete,
        "files": {name: _content(complete[name]) for name in _files(complete)},
        "policy": label,
        "options": options,
        "source": code,
    }
    if not problem.package.startswith("schedgym."):
        folder = Path(str(problem.module("problem").__file__)).parent
        depends["package"] = {str(path.relative_to(folder)): _content(path) for path in folder.rglob("*.py")}
    try:
        digest = hashlib.sha256(canonical(depends).encode()).hexdigest()
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"{label or setting.id}: not JSON data: {error}") from None
    return Line(setting, label, options, training_seed, digest)


def _plain(value: Any) -> Any:
    """A parameter's value, or list of values, with Python's own types in the place of numpy's."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _contenders(experiment: Experiment, index: int) -> Iterator[_Contender]:
    """All that an experiment compares, the bounds of each setting first; everything is checked."""
    problem, id = runner.resolve_id(experiment.id)
    fixed: dict[str, Any] = {}
    if experiment.preset is not None:
        if experiment.preset not in problem.presets:
            raise UnknownName("preset", experiment.preset, problem.presets)
        fixed |= problem.presets[experiment.preset]
    given = {name: _plain(value) for name, value in {**fixed, **experiment.parameters}.items()}
    grid = {name: value for name, value in given.items() if isinstance(value, list)}
    base = {name: value for name, value in given.items() if name not in grid}
    for name, values in grid.items():
        if len(set(map(repr, values))) < len(values):
            raise InvalidParameter(f"{name}: a value is there twice")
    combinations = runner.expand_grid(grid)
    policies: dict[str, Any] = {}
    options = {name.removeprefix(f"{problem.name}/"): dict(own) for name, own in experiment.options.items()}
    if experiment.policies is None or experiment.policies or not experiment.agents:
        named = _loaded(experiment.policies, problem)
        if experiment.tuned is not None:
            if named is None:
                settings = [base | own for own in combinations]
                named = runner.default_policies(problem, id, settings, options)
            options = _tuned(experiment.tuned, id, named, base, options)
        policies = runner.resolve_policies(problem, id, named, options, base, combinations)
    elif experiment.options:
        raise UnknownName("policy in options", next(iter(experiment.options)), ())
    agents = _agents(experiment, id)
    for label, _ in agents:
        if label in policies:
            raise InvalidParameter(f"agents: {label!r} is a policy, too: give another label")
    for number, combination in enumerate(combinations, index):
        own = {**base, **combination}
        shared = runner.shared_parameters(problem, id, own)
        complete = problem.build(id, runner.baseline(problem, id, shared))
        metric = problem.metric(problem.objective_of(complete))
        setting = Setting(problem.name, id, own, metric.name, metric.better, code_version())
        everyone = [*policies.items(), *agents]
        used = [runner.acting_parameters(problem, id, own, policy) for _, policy in everyone]
        runner.check_effects(own, used)
        yield _Contender(_line(setting, problem, shared, None, {}, None, None), number, shared, None)
        for (label, policy), acting in zip(policies.items(), used, strict=False):
            chosen = {"policy": policy.name, **options.get(label, {})}
            code = _foreign_code(policy.name, problem.name)
            line = _line(setting, problem, acting, label, chosen, None, code)
            yield _Contender(line, number, acting, policy)
        for (label, policy), acting in zip(agents, used[len(policies) :], strict=True):
            training = policy.agent.metadata["training"].get("seed")
            chosen = {"agent": policy.agent.sha256}
            line = _line(setting, problem, acting, label, chosen, training, None)
            yield _Contender(line, number, acting, policy)


def _tuned(
    source: str, id: str, named: Any, parameters: Mapping[str, Any], options: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Options by label: those that were found for the policies, under ``options``."""
    prefix = f"{get_problem(id).name}/"
    names = {
        label.removeprefix(prefix): name.removeprefix(prefix)
        for label, name in (named.items() if isinstance(named, Mapping) else zip(named, named, strict=True))
    }
    found = tuned_options(id, names.values(), source=source, parameters=parameters)
    own = {label: found[name] for label, name in names.items() if name in found}
    return {label: own.get(label, {}) | options.get(label, {}) for label in (*own, *options)}


def _agents(experiment: Experiment, id: str) -> list[tuple[str, Any]]:
    """(label, policy) of each agent file."""
    found: list[tuple[str, Any]] = []
    if not experiment.agents:
        return found
    make_agent = importlib.import_module("schedgym.agents.policy").make_agent
    agent_paths = importlib.import_module("schedgym.agents.files").agent_paths
    for label, source in experiment.agents.items():
        seeds = set()
        sources = [source] if isinstance(source, str) else source
        for path in (path for given in sources for path in agent_paths(given)):
            policy = make_agent(path, id)
            policy.name = label
            seed = policy.agent.metadata["training"].get("seed")
            if seed in seeds:
                raise InvalidParameter(
                    f"agents: {label}: two are of training seed {seed}: give another label"
                )
            seeds.add(seed)
            found.append((label, policy))
    return found


def _plan(spec: SweepSpec) -> list[list[_Contender]]:
    """The contenders of each setting."""
    settings: dict[int, list[_Contender]] = {}
    known: set[str] = set()
    labels: dict[tuple[str, str, str | None], list[Line]] = {}
    for number, experiment in enumerate(spec.experiments):
        with placed(f"experiments[{number}]"):
            for contender in _contenders(experiment, max(settings, default=-1) + 1):
                line = contender.line
                if line.digest in known:
                    continue  # of an earlier experiment, too
                known.add(line.digest)
                place = line.setting.id, canonical(dict(line.setting.parameters)), line.policy
                for other in labels.setdefault(place, []):
                    if line.clashes(other.training_seed):
                        raise InvalidParameter(
                            f"{line.policy}: has other options in another experiment: give another label"
                        )
                labels[place].append(line)
                settings.setdefault(contender.index, []).append(contender)
    return list(settings.values())


# running -------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Ran:
    """The result of a unit: values [episodes, metrics], and the version of the code that ran it."""

    names: tuple[str, ...]
    values: npt.NDArray[np.float64]
    seconds: float
    policy_seconds: float
    code: str


def _execute(task: tuple[Unit, Job]) -> _Ran:
    """Run a unit; an engine's worker calls this."""
    began = time.perf_counter()
    results = runner.run_job(task[1])
    named = dict.fromkeys(name for result in results for name in result.values)
    names = BOUNDS if task[1].label is None else tuple(named)
    values = np.array([[result.values.get(name, np.nan) for name in names] for result in results])
    spent = sum(result.seconds for result in results)
    return _Ran(names, values, time.perf_counter() - began, spent, code_version())


def _missing(spec: SweepSpec, spans: Iterable[tuple[int, int]]) -> Iterator[range]:
    """The sweep's episodes in no span (first, count), as ranges that cross no chunk's end."""
    chunk = spec.chunk
    missing = np.arange(spec.first + spec.episodes) >= spec.first
    for first, count in spans:
        missing[first : first + count] = False
    left = np.flatnonzero(missing)
    ends = np.diff(left) > 1
    if chunk is not None:
        ends |= left[1:] % chunk == 0
    for run in np.split(left, np.flatnonzero(ends) + 1) if len(left) else ():
        yield range(int(run[0]), int(run[-1]) + 1)


def _units(
    settings: list[list[_Contender]], spec: SweepSpec, store: ResultsStore, retry_failed: bool
) -> tuple[list[tuple[Unit, _Contender]], int]:
    """The units that are left to run, and the number of units that the store has done."""
    left: list[tuple[Unit, _Contender]] = []
    skipped = 0
    for contenders in settings:
        done = [store.spans(contender.line) for contender in contenders]
        failed = [{} if retry_failed else store.spans(contender.line, "failed") for contender in contenders]
        for seed in spec.seeds:
            for contender, ours, theirs in zip(contenders, done, failed, strict=True):
                mine = [span for span in ours.get(seed, []) if spec.covers(*span)]
                skipped += len(mine)
                for run in _missing(spec, itertools.chain(mine, theirs.get(seed, []))):
                    left.append((Unit(contender.line, seed, run.start, len(run)), contender))
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
    workers = make_engine(engine, n_jobs, unit_timeout)
    settings = _plan(spec)
    done = 0
    with ResultsStore(store_path, "w") as store:
        left, skipped = _units(settings, spec, store, retry_failed)
        if left:
            store.add_manifest(
                make_manifest(
                    seeds=spec.seeds, sweep=dataclasses.asdict(spec), code=code_version(), engine=engine
                )
            )
            run = uuid.uuid4().hex
            tasks = ((unit, _job(run, unit, contender)) for unit, contender in left)
            with (
                runner.progress_bar(sum(unit.episodes for unit, _ in left), progress) as advance,
                contextlib.closing(workers.run(_execute, tasks)) as results,
            ):
                try:
                    for (unit, _), outcome in results:
                        done += _keep(store, unit, outcome)
                        advance(unit.episodes)
                finally:
                    runner.Environments.clear()
        failed = _failed(store, settings, spec)
        store.check_files()
    return SweepResult(done, skipped, failed, time.monotonic() - began)


def _job(run: str, unit: Unit, contender: _Contender) -> Job:
    episodes = tuple(range(unit.first, unit.first + unit.episodes))
    parameters = dict(contender.parameters)
    for name in _files(parameters):  # a worker may stand in another folder
        parameters[name] = os.path.abspath(parameters[name])
    line = unit.line
    return Job(
        *(run, contender.index, line.setting.id, parameters, ()),
        *(unit.seed, line.policy, contender.policy, episodes),
    )


def _keep(store: ResultsStore, unit: Unit, outcome: _Ran | Failure) -> int:
    """Store the outcome of a unit; return by how much the number of finished units grows."""
    if isinstance(outcome, _Ran) and outcome.code != unit.line.setting.code:
        outcome = Failure(f"the worker has version {outcome.code}, not {unit.line.setting.code}")
    if isinstance(outcome, Failure):
        store.fail(unit, outcome.error)
        return 0
    failed = store.add(
        unit, outcome.names, outcome.values, seconds=outcome.seconds, policy_seconds=outcome.policy_seconds
    )
    return 1 - len(failed)


def _failed(store: ResultsStore, settings: list[list[_Contender]], spec: SweepSpec) -> list[dict[str, Any]]:
    """The sweep's own failures in a store that may hold other sweeps'."""
    own = {
        (c.line.setting.id, canonical(dict(c.line.setting.parameters)), c.line.policy, c.line.training_seed)
        for contenders in settings
        for c in contenders
    }
    return [
        row
        for row in store.failed(code_version())
        if (row["id"], canonical(row["setting"]), row["policy"], row["training_seed"]) in own
        and row["seed"] in spec.seeds
        and spec.covers(row["first"], row["episodes"])
    ]
