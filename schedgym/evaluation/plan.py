"""What is run: policies in settings, refused before anything runs, and what their results depend on.

A *setting* is an environment id with parameters. Its *entrants* are the policies, each under the parameters
in which it acts, and nobody: the bounds on the optimum. A *line* is an entrant with all that its results
depend on: a policy, one training of an agent, or the bounds. A *unit* is a line's episodes ``first`` to
``first + episodes - 1`` of a seed.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import inspect
import itertools
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from schedgym._version import __version__
from schedgym.core.policy import get_policy_spec, make_policy, resolve_policy_name
from schedgym.core.problem import Metric, Problem, get_problem, list_problems
from schedgym.core.random import EVALUATION_SEEDS
from schedgym.core.tokens import tokens_of
from schedgym.documents import canonical, check_whole, mapping
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.tuned import find_tuned
from schedgym.traces.declaration import named_files
from schedgym.traces.fetch import sha256

#: what results depend on, beside baselines and agents
SHARED = (
    *("core", "solvers", "traces", "problems", "documents.py", "envs.py", "playing.py", "spaces.py"),
    *("evaluation/episodes.py", "evaluation/plan.py"),
)
#: parameters that are how a policy acts, with those of :attr:`~schedgym.core.tokens.Tokens.acting`
ACTING = ("view", "observation", "action_mask")
DRAWING = ("render.py",)  # of a problem
KINDS = (".py", ".yaml", ".json")


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
    return {**problem.ids[id].baseline_parameters, **mapping(parameters or {}, "parameters")}


def check_effects(parameters: Mapping[str, Any], acting: Collection[Mapping[str, Any]]) -> None:
    """Raise InvalidParameter for a parameter that none of the policies' parameters ``acting`` has kept."""
    for name in parameters:
        if acting and not any(name in own for own in acting):
            raise InvalidParameter(
                f"{name}: has no effect in the view of any of these policies: leave it out"
            )


def acting_parameters(
    problem: Problem, id: str, parameters: Mapping[str, Any] | None, policy: Any = None
) -> dict[str, Any]:
    """The parameters under which a policy is evaluated; ``policy`` None: those that all baselines share.

    These are ``parameters``; where they choose no view, and ``policy`` is None, or a name or an object of a
    registered one, without those that have no effect in its view: that of the id's ``baseline_parameters``,
    or if it cannot act there, the first in which it can. Where they choose the view, its environment refuses
    what has no effect there. A policy with a method ``acting_parameters`` (a trained agent) returns its own
    parameters from it; InvalidParameter if it would meet other episodes than its rivals with them.
    """
    values = mapping(parameters or {}, "parameters")
    own = getattr(policy, "acting_parameters", None)
    if own is not None:
        return check_acting(problem, values, dict(own(id, values)))
    view = preferred = problem.ids[id].baseline_parameters.get("view")
    if "view" in values or preferred is None:
        return values
    if policy is not None:
        name = policy if isinstance(policy, str) else getattr(policy, "name", None)
        if not isinstance(name, str):
            return values
        try:
            spec = get_policy_spec(name, problem.name)
        except UnknownName:  # an object of the user's own
            return values
        view = spec.acting_view(preferred, [view.name for view in problem.views])
    kept = {name: value for name, value in values.items() if problem.parameters.acts_in(name, view)}
    return kept if view == preferred else {**kept, "view": view}


def check_acting(problem: Problem, given: Mapping[str, Any], acting: dict[str, Any]) -> dict[str, Any]:
    """``acting``; InvalidParameter if it changes more of ``given`` than what is visible and how to act."""
    free = {*ACTING, *tokens_of(problem.name).acting}
    fixed = [{name: own[name] for name in own if name not in free} for own in (given, acting)]
    if len({json.dumps(own, sort_keys=True, default=repr) for own in fixed}) > 1:
        raise InvalidParameter(f"a policy may set {', '.join(sorted(free))}, and must keep all else")
    return acting


def expand_grid(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the swept parameters' values."""
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Collection) or not len(values):
            raise InvalidParameter(f"{name}: a sweep needs a list of values")
        if any(value in list(values)[:i] for i, value in enumerate(values)):
            raise InvalidParameter(f"{name}: a value is there twice")
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def default_policies(
    problem: Problem, id: str, settings: Iterable[Mapping[str, Any]], options: Iterable[str] = ()
) -> list[str]:
    """The id's default policies, without those that refuse one of the settings (and have no ``options``)."""
    shared = [acting_parameters(problem, id, setting) for setting in settings]
    complete = [vars(problem.build(id, baseline(problem, id, own))) for own in shared]
    named = [name.removeprefix(f"{problem.name}/") for name in options]
    kept = []
    for name in problem.ids[id].policies:
        spec = get_policy_spec(name, problem.name)
        if name in named or not any(spec.unmet(parameters) for parameters in complete):
            kept.append(name)
    return kept


class Policies(NamedTuple):
    """Policies that are compared, each by its label.

    Attributes:
        acting: the policy objects.
        options: the options of those that were named: the given ones over the tuned ones.
        tuned: the entries of the file of tuned options.
    """

    acting: dict[str, Any]
    options: dict[str, dict[str, Any]]
    tuned: dict[str, dict[str, Any]]


def resolve_policies(
    problem: Problem,
    id: str,
    policies: Any,
    options: Mapping[str, Mapping[str, Any]],
    parameters: Mapping[str, Any],
    settings: Iterable[Mapping[str, Any]],
    tuned: str | Path | None = None,
) -> Policies:
    """The policies of a comparison, checked before anything runs; ``tuned`` is the file of tuned options."""
    if policies is None:
        policies = default_policies(problem, id, [{**parameters, **own} for own in settings], options)
    if isinstance(policies, str) or callable(policies) or not isinstance(policies, Iterable):
        policies = [policies]
    pairs: list[tuple[str | None, Any]] = (
        [(check_label(str(label)), policy) for label, policy in policies.items()]
        if isinstance(policies, Mapping)
        else [(None, policy) for policy in policies]
    )
    prefix = f"{problem.name}/"
    unused: dict[str, dict[str, Any]] = {}
    for name, values in mapping(options, "options").items():  # by the short name, the full one, or both
        unused.setdefault(name.removeprefix(prefix), {}).update(mapping(values, f"options of {name!r}"))
    names = [policy for _, policy in pairs if isinstance(policy, str)]
    found = {} if tuned is None else find_tuned(id, names, tuned, parameters)
    built = Policies({}, {}, {})
    for label, policy in pairs:
        if isinstance(policy, str):
            full = resolve_policy_name(policy, problem.name)
            short = full.removeprefix(prefix)
            label = short if label is None else label
            own = unused.pop(label, {})
            if short in found:
                built.tuned[label] = found[short]
                own = found[short]["options"] | own
            if own:
                built.options[label] = own
            policy = make_policy(full, **own)
        elif isinstance(policy, type) or not (callable(policy) and callable(getattr(policy, "reset", None))):
            raise InvalidParameter(
                "policies: a policy is a name, or an object with the methods reset(interface, rng) and "
                f"__call__(observation); got {_kind_of(policy)}{'' if label is None else f' for {label!r}'}"
            )
        if label is None:
            label = str(getattr(policy, "name", type(policy).__name__)).removeprefix(prefix)
        if label in built.acting:
            raise InvalidParameter(f"policies: {label!r} is named twice; give labels in a dict")
        built.acting[label] = policy
    if not built.acting:
        raise InvalidParameter("policies: name at least one")
    for name in unused:
        if name in built.acting:
            raise InvalidParameter(f"options: {name!r} is an object already, build it with its options")
        raise UnknownName("policy in options", name, built.acting)
    return built


def _kind_of(value: Any) -> str:
    """Describe a value, without the address that Python would print."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = getattr(value, "__name__", None)
    return f"the {type(value).__name__} {name}" if name else f"an object of class {type(value).__name__}"


def check_label(label: str) -> str:
    """The label; InvalidParameter if it is none, or not one line."""
    if not label or label != label.strip() or "\n" in label:
        raise InvalidParameter(f"policies: a label is a line without blanks at its ends, got {label!r}")
    return label


def find_objective(problem: Problem, id: str, settings: Iterable[Mapping[str, Any]]) -> Metric:
    """The one objective of all settings."""
    shared = [acting_parameters(problem, id, setting) for setting in settings]
    checked = [problem.build(id, baseline(problem, id, own)) for own in shared]
    names = {problem.objective_of(parameters) for parameters in checked}
    if len(names) > 1:
        raise InvalidParameter(f"objective: a sweep has one, got {', '.join(sorted(names))}")
    return problem.metric(names.pop())


def check_counts(episodes: int | None, seed: int) -> None:
    """Raise InvalidParameter for a number of episodes or a seed that no evaluation has."""
    for name, value, least in (("episodes", 1 if episodes is None else episodes, 1), ("seed", seed, 0)):
        check_whole(value.item() if isinstance(value, np.integer) else value, name, least)
    if seed >= EVALUATION_SEEDS:
        raise InvalidParameter(f"seed: must be below {EVALUATION_SEEDS}: from there on agents are trained")


@dataclasses.dataclass(frozen=True)
class Entrant:
    """One of those that act in a setting.

    Sent to another process, which may stand in another folder, it names files by their whole paths.

    Attributes:
        setting: number of the setting.
        label: of the policy; None: nobody acts, the results are bounds.
        policy: the policy object.
        parameters: in which it acts.
    """

    setting: int
    label: str | None
    policy: Any
    parameters: dict[str, Any]

    def __getstate__(self) -> dict[str, Any]:
        files = {name: os.path.abspath(self.parameters[name]) for name in named_files(self.parameters)}
        return {**vars(self), "parameters": self.parameters | files}


def entrants(
    problem: Problem,
    id: str,
    settings: Iterable[Mapping[str, Any]],
    policies: Iterable[tuple[str, Any]],
    first: int = 0,
) -> Iterator[list[Entrant]]:
    """The entrants of each setting, the bounds first; settings are numbered from ``first`` on.

    Raises:
        InvalidParameter: for a parameter that has an effect in the view of none of the policies, or a
            clairvoyant search, which is no policy.
    """
    policies = list(policies)
    for label, policy in policies:
        if getattr(policy, "plans", "") == "clairvoyant":
            raise InvalidParameter(f"policies: {label!r} is clairvoyant, it knows the future: no policy")
    for number, own in enumerate(settings, first):
        used = [acting_parameters(problem, id, own, policy) for _, policy in policies]
        check_effects(own, used)
        bounds = Entrant(number, None, None, acting_parameters(problem, id, own))
        yield [
            bounds,
            *(Entrant(number, *named, acting) for named, acting in zip(policies, used, strict=True)),
        ]


# what a result depends on --------------------------------------------------------------------------


def _digest(files: Iterable[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in sorted(files):
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def _files_in(package: str, part: str = "") -> Iterator[tuple[str, Path]]:
    """Name and path of each file of source or data in a package, or in a part of it."""
    folder = Path(importlib.import_module(package).__path__[0])
    whole = folder / part
    for path in [whole] if whole.is_file() else whole.rglob("*"):
        if path.suffix in KINDS and path.is_file():
            yield f"{package}/{path.relative_to(folder).as_posix()}", path


@functools.cache
def code_version() -> str:
    """Version, and digest of the source and the data of the package that can change a result."""
    files = [own for part in SHARED for own in _files_in("schedgym", part)]
    files += _files_in("schedgym.baselines")
    files += [own for own in _files_in("schedgym.agents") if own[1].suffix == ".py"]
    return _digest(own for own in files if own[1].name not in DRAWING)


@functools.cache
def package_version() -> str:
    """Version and digest of all source and data of the package."""
    packages = ("schedgym", "schedgym.baselines", "schedgym.agents")
    return _digest(own for package in packages for own in _files_in(package))


@functools.cache
def _file_digest(path: Path, size: int, changed: int) -> str:
    return sha256(path)


def content_of(path: str | Path) -> Any:
    """Digest of a file, or of all files in a folder.

    Raises:
        InvalidParameter: if it cannot be read.
    """
    path = Path(path)
    if path.is_dir():
        return {str(p.relative_to(path)): content_of(p) for p in sorted(path.rglob("*")) if p.is_file()}
    try:
        status = path.stat()
        return _file_digest(path.resolve(), status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise InvalidParameter(f"{path}: cannot be read: {error.strerror}") from None


def foreign_code(function: Any) -> Any:
    """Digest of the file of a function or class of another package; None for those of this one."""
    function = inspect.unwrap(function)
    if function.__module__.startswith("schedgym."):
        return None
    source = inspect.getsourcefile(function)
    return None if source is None else content_of(source)


def depends_on(id: str, acting: Mapping[str, Any], **more: Any) -> str:
    """SHA-256 of all that results depend on, except seed and episodes: the one definition of it.

    These are the code, all parameters, the contents of the files that they name, and what is given.

    Args:
        id: environment id.
        acting: parameters of the environment under which an entrant acts.
        more: JSON data that says which entrant it is: its label, its options, ...

    Raises:
        InvalidParameter: for a parameter or an option that is no JSON data, or a file that cannot be read.
    """
    problem, id = resolve_id(id)
    complete = vars(problem.build(id, baseline(problem, id, acting)))
    files = {name: content_of(complete[name]) for name in named_files(complete)}
    depends = {"id": id, "code": code_version(), "parameters": complete, "files": files, **more}
    if not problem.package.startswith("schedgym."):
        depends["package"] = _digest(_files_in(problem.package))
    try:
        return hashlib.sha256(canonical(depends).encode()).hexdigest()
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"{more.get('label') or id}: not JSON data: {error}") from None


# units, and what knows them ------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Setting:
    """An environment id with parameters, under one version of the code, in which policies are compared.

    Attributes:
        problem: its name.
        id: environment id.
        parameters: the parameters that were given, JSON data.
        objective: name of the metric.
        better: "min" or "max".
        code: version of the code.
    """

    problem: str
    id: str
    parameters: Mapping[str, Any]
    objective: str
    better: str
    code: str


@dataclasses.dataclass(frozen=True)
class Line:
    """A policy, one training of an agent, or the bounds, in a setting.

    Attributes:
        setting: the setting.
        policy: the label; None: the bounds.
        options: options of the policy; of an agent, its checksum.
        training_seed: training seed, for an agent.
        digest: digest of everything that the line's results depend on, except seed and episodes; "" if they
            are not stored.
        entrant: who acts; nobody's, if it is not to be run.
    """

    setting: Setting
    policy: str | None
    options: Mapping[str, Any]
    training_seed: int | None
    digest: str
    entrant: Entrant = dataclasses.field(default=Entrant(0, None, None, {}), compare=False)

    def clashes(self, training_seed: int | None) -> bool:
        """Return True if a line of this setting, label and training seed cannot stand beside it."""
        return training_seed == self.training_seed or None in (training_seed, self.training_seed)


def setting_of(problem: Problem, id: str, parameters: Mapping[str, Any], stored: bool = True) -> Setting:
    """The setting of these parameters under the code of this version; with ``stored`` False under ""."""
    metric = find_objective(problem, id, [parameters])
    code = code_version() if stored else ""
    return Setting(problem.name, id, parameters, metric.name, metric.better, code)


def line_of(
    setting: Setting, entrant: Entrant, options: Mapping[str, Mapping[str, Any]], **more: Any
) -> Line:
    """The line of the bounds, of a registered policy (``options`` are those of all labels) or of an agent.

    ``more`` is what its results depend on, too.
    """
    own: dict[str, Any] = {}
    agent = getattr(entrant.policy, "agent", None)
    if agent is not None:
        own, more = {"agent": agent.sha256}, {"training_seed": agent.training_seed, **more}
    elif entrant.label is not None:
        own = {"policy": entrant.policy.name, **options.get(entrant.label, {})}
        factory = get_policy_spec(entrant.policy.name, setting.problem).factory
        more = {"source": foreign_code(factory), **more}
    digest = depends_on(
        setting.id, entrant.parameters, given=setting.parameters, label=entrant.label, options=own, **more
    )
    return Line(setting, entrant.label, own, more.get("training_seed"), digest, entrant)


@dataclasses.dataclass(frozen=True, slots=True)
class Unit:
    """Episodes ``first`` to ``first + episodes - 1`` of a seed, of one line."""

    line: Line
    seed: int
    first: int
    episodes: int

    @property
    def key(self) -> str:
        """SHA-256 of everything that the unit's results depend on."""
        return hashlib.sha256(
            canonical([self.line.digest, self.seed, self.first, self.episodes]).encode()
        ).hexdigest()

    def __str__(self) -> str:
        setting = ", ".join(f"{name}={value}" for name, value in self.line.setting.parameters.items())
        who = self.line.policy or "the bounds"
        last = self.first + self.episodes - 1
        which = f"episode {last}" if last == self.first else f"episodes {self.first}-{last}"
        return f"{self.line.setting.id}{f' ({setting})' if setting else ''}, {who}, seed {self.seed}, {which}"


def missing(
    line: Line, seed: int, episodes: range, there: Iterable[tuple[int, int]], chunk: int | None
) -> Iterator[Unit]:
    """The units of a line's episodes that are in no span (first, episodes) of ``there``.

    None crosses a multiple of ``chunk``, if that is no None.
    """
    wanted = np.ones(len(episodes), dtype=bool)
    for first, count in there:
        begin = first - episodes.start
        wanted[max(begin, 0) : max(begin + count, 0)] = False
    left = np.flatnonzero(wanted) + episodes.start
    ends = np.diff(left) > 1
    if chunk is not None:
        ends |= left[1:] % chunk == 0
    for run in np.split(left, np.flatnonzero(ends) + 1) if len(left) else ():
        yield Unit(line, seed, int(run[0]), len(run))
