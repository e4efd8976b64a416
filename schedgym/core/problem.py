"""Problem: the description of a problem for the rest of the package, and the search for all problems.

A problem is one folder under ``schedgym/problems`` with the same modules in each (problem, workload,
dynamics, views, metrics, bounds, render, env). Its ``problem`` module exports ``PROBLEM`` and imports
nothing heavy; everything else is loaded when it is asked for. A problem in another package has the same
modules; an entry point in the group ``schedgym.problems`` names its ``PROBLEM``.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import math
import pkgutil
import types
import typing
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from schedgym.errors import InvalidParameter, UnknownName
from schedgym.extras import entry_points

if TYPE_CHECKING:
    from schedgym.core.workload import Schema

ENTRY_POINTS = "schedgym.problems"


def sign_of(better: str) -> float:
    """-1 where more is better ("max"), else 1: of a value times it, less is better."""
    return -1.0 if better == "max" else 1.0


@dataclasses.dataclass(frozen=True)
class Metric:
    """One number about a finished episode.

    Attributes:
        name: its key.
        unit: unit of the number.
        help: its meaning, in one line.
        better: the better direction: "min", "max" or "" for none.
        recorded: True if it follows from the schedule's record; False if only the environment knows it.
    """

    name: str
    unit: str
    help: str
    better: str = ""
    recorded: bool = True

    @property
    def sign(self) -> float:
        """:func:`sign_of` its better direction."""
        return sign_of(self.better)


@dataclasses.dataclass(frozen=True)
class View:
    """An action view: the form in which an agent states its decision.

    Attributes:
        name: its value of the parameter ``view``.
        space: the space of its actions, with the sizes that the environment's docstring names.
        help: its actions, in one line.
    """

    name: str
    space: str
    help: str

    @property
    def masked(self) -> bool:
        """True if observations can carry a mask of feasible actions: no Box has one."""
        return not self.space.startswith("Box")


def parameter(
    default: Any,
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    exclusive: bool = False,
    choices: tuple[str, ...] | None = None,
    views: tuple[str, ...] = (),
    needs: tuple[str, Callable[[Any], bool]] | None = None,
) -> Any:
    """A field of a :class:`Parameters` class.

    Args:
        default: its value where none is given.
        help: its meaning, in one line.
        minimum: the least value.
        maximum: the largest value.
        exclusive: True to leave the minimum out.
        choices: the texts that it may be.
        views: the views in which it has an effect, which its help then names; in others it must not be given.
            Empty: it has one in all views.
        needs: condition without which it has no effect: in words, and as a function of the parameters; where
            it does not hold, it must not be given. Its help ends with the words.
    """
    if views:
        several = f"s {', '.join(views[:-1])} and" if len(views) > 1 else ""
        help = f"view{several} {views[-1]}: {help}"
    if needs:
        help = f"{help} (only with {needs[0]})"
    metadata = {
        "help": help,
        "minimum": minimum,
        "maximum": maximum,
        "exclusive": exclusive,
        "choices": choices,
        "views": views,
        "needs": needs,
    }
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Base of each problem's parameters: the keyword arguments of its environments, checked.

    Values are JSON-serialisable, so that an environment can be rebuilt from its Gymnasium spec.

    Attributes:
        idle: parameter that says where workloads come from (``workload``, ``trace``) -> the names of the
            parameters that have no effect beside it, and must not be given.
    """

    idle = cast("Mapping[str, tuple[str, ...]]", {})  # without an annotation, so that it is no field

    @staticmethod
    def observation_field() -> Any:
        """The field ``observation`` of problems whose observations can be tokens."""
        return parameter("dict", "exact units, or float32 tokens for networks", choices=("dict", "features"))

    @staticmethod
    def mask_field() -> Any:
        """The field ``action_mask`` of problems with views that have no mask."""
        return parameter(True, "true: observations have the mask of feasible actions, if there is one")

    @staticmethod
    def window_field(default: int, what: str, most: int = 10**6) -> Any:
        """The field ``window``: the number of ``what`` that observations show, or "all"."""
        help = f"number of visible {what}; 'all': as many as a workload can have"
        return parameter(default, help, minimum=1, maximum=most, choices=("all",))

    @staticmethod
    def trace_format_field() -> Any:
        """The field ``trace_format`` of problems that take a trace."""
        return parameter(None, "the trace's format: a name or a YAML file (none: by the first line)")

    @classmethod
    @functools.cache
    def kinds(cls) -> dict[str, Any]:
        """Name -> annotated type of each parameter."""
        hints = typing.get_type_hints(cls)
        return {field.name: hints[field.name] for field in dataclasses.fields(cls)}

    @classmethod
    def build(cls, **values: Any) -> typing.Self:
        """Construct, with an unknown name reported as InvalidParameter's kin :class:`UnknownName`."""
        kinds = cls.kinds()
        plain = {}
        for name, value in values.items():
            if name not in kinds:
                raise UnknownName("parameter", name, kinds)
            plain[name] = value.item() if isinstance(value, np.generic) else value
            if isinstance(value, list) and tuple in _alternatives(kinds[name]):  # of names, from YAML or JSON
                plain[name] = tuple(value)
        return cls(**plain)

    @classmethod
    def parse(cls, name: str, text: str) -> Any:
        """The value of parameter ``name`` written as text (a command line); names are joined by "+"."""
        kinds = cls.kinds()
        if name not in kinds:
            raise UnknownName("parameter", name, kinds)
        options = _alternatives(kinds[name])
        if type(None) in options and text.lower() in ("none", "null"):
            return None
        if bool in options and text.lower() in ("true", "false"):
            return text.lower() == "true"
        for kind in (int, float):
            if kind in options:
                try:
                    return kind(text)
                except ValueError:
                    continue
        if str in options:
            return text
        if tuple in options:
            return tuple(text.split("+"))
        wanted = " or ".join(k.__name__ for k in options if k is not type(None))
        raise InvalidParameter(f"{name}: must be {wanted}, got {text!r}")

    def __post_init__(self) -> None:
        kinds = self.kinds()
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            options = _alternatives(kinds[field.name])
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            fits = any(
                isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
                for kind in options
            ) or (float in options and number)
            rules = field.metadata
            choices: tuple[str, ...] = rules.get("choices") or ()
            strange = bool(choices) and isinstance(value, str) and value not in choices
            if choices and int in options and (strange or not fits):
                words = " or ".join(map(repr, choices))
                raise InvalidParameter(f"{field.name}: must be a whole number or {words}, got {value!r}")
            if not fits:
                wanted = " or ".join("none" if k is type(None) else k.__name__ for k in options)
                raise InvalidParameter(f"{field.name}: must be {wanted}, got {value!r}")
            if strange:
                raise UnknownName(field.name, value, choices)
            if isinstance(value, float) and not math.isfinite(value):
                raise InvalidParameter(f"{field.name}: must be finite, got {value!r}")
            low, high = rules.get("minimum"), rules.get("maximum")
            if number and low is not None and (value < low or (rules["exclusive"] and value == low)):
                sign = ">" if rules["exclusive"] else ">="
                raise InvalidParameter(f"{field.name}: must be {sign} {low:g}, got {value!r}")
            if number and high is not None and value > high:
                raise InvalidParameter(f"{field.name}: must be <= {high:g}, got {value!r}")
        self._check_source()
        for field in dataclasses.fields(self):
            if getattr(self, field.name) != field.default and (why := self.without_effect(field.name)):
                raise InvalidParameter(f"{field.name}: has no effect {why}: leave it out")

    @classmethod
    def acts_in(cls, name: str, view: Any) -> bool:
        """Return False for a parameter that has an effect in other views only."""
        field = cls.__dataclass_fields__.get(name)
        return field is None or not field.metadata.get("views") or view in field.metadata["views"]

    def without_effect(self, name: str) -> str:
        """Return why parameter ``name`` has no effect beside the others, or "" if it has one."""
        view, needs = getattr(self, "view", None), self.__dataclass_fields__[name].metadata.get("needs")
        if not self.acts_in(name, view):
            return f"in view {view!r}"
        return "" if needs is None or needs[1](self) else f"without {needs[0]}"

    def _check_source(self) -> None:
        """Raise InvalidParameter for parameters that do not go with where workloads come from."""
        source = {name for name in ("workload", "trace") if getattr(self, name, None) is not None}
        if len(source) > 1:
            raise InvalidParameter("workload and trace: give one of them, not both")
        for name in ("nodes", "trace_format"):
            if "trace" not in source and getattr(self, name, None) is not None:
                raise InvalidParameter(f"{name}: needs a trace")
        for name in ("jobs", "servers"):
            if "trace" not in source and getattr(self, name, None) == "all":
                raise InvalidParameter(f"{name}: 'all' needs a trace")
        for name in source:
            for field in dataclasses.fields(self):
                if field.name in self.idle.get(name, ()) and getattr(self, field.name) != field.default:
                    raise InvalidParameter(f"{field.name}: has no effect on a {name}: leave it out")


def _alternatives(kind: Any) -> tuple[type, ...]:
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return tuple(kind for kind in typing.get_args(kind))
    return (typing.get_origin(kind) or kind,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variant:
    """One environment id of a problem: its title, parameters and policies.

    Attributes:
        title: one line.
        parameters: values that override the defaults of the problem's parameters.
        table: names of the metrics that a comparison prints beside the objective.
        policies: names of the policies that a comparison runs by default.
        reference: the policy that paired differences refer to.
        baseline_parameters: parameter values under which baselines act with full fidelity.
    """

    title: str
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    table: tuple[str, ...]
    policies: tuple[str, ...]
    reference: str
    baseline_parameters: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Statement:
    """A statement of a paper that a comparison can examine: one policy is better than others.

    Attributes:
        source: its place in the paper.
        policy: short name of the policy that is said to be better.
        rivals: short names of those that it is said to be better than.
        metric: name of the metric in which it is better.
        by: the least improvement, as a part of the rival's mean; 0: the paper names none.
    """

    source: str
    policy: str
    rivals: tuple[str, ...]
    metric: str
    by: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    """A problem of the suite.

    Attributes:
        name: short name, also the prefix of its policies, e.g. "queue-delay".
        title: one line.
        source: the paper.
        ids: environment id -> its own title, parameters and policies; the first stands for the problem.
        parameters: the class of its environments' keyword arguments.
        views: the action views; the first is the full-fidelity one.
        objective: name of the metric that the rewards sum to (up to the sign).
        objectives: value of the parameter ``objective`` -> name of the metric, where there is such a choice.
        metrics: all metrics of an episode, in the order of the tables.
        presets: name -> parameter values.
        statements: statements of the paper; a comparison of the policies that they name examines them.
        traces: what its environments take from a trace: "tasks", "jobs" (tasks and which of them form a job),
            "bytes" (jobs by the data that they move).
        package: dotted name of the problem's folder.
        varying: where the metrics depend on the parameters: complete parameters -> the metrics. ``metrics``
            are then those of the default values.
        further: name -> a metric under other parameters, None if there is none.
        hidden: complete parameters -> what no observation shows of jobs that have arrived, in words; "" for
            nothing. None: nothing is ever hidden.
    """

    name: str
    title: str
    source: str
    ids: Mapping[str, Variant]
    parameters: type[Parameters]
    views: tuple[View, ...]
    objective: str
    objectives: Mapping[str, str] = dataclasses.field(default_factory=dict)
    metrics: tuple[Metric, ...]
    presets: Mapping[str, Mapping[str, Any]]
    statements: tuple[Statement, ...] = ()
    traces: tuple[str, ...] = ()
    package: str
    varying: Callable[[Mapping[str, Any]], tuple[Metric, ...]] | None = None
    further: Callable[[str], Metric | None] | None = None
    hidden: Callable[[Mapping[str, Any]], str] | None = None

    def module(self, name: str) -> ModuleType:
        """One of the problem's modules, imported now: workload, dynamics, views, metrics, bounds, ..."""
        return importlib.import_module(f"{self.package}.{name}")

    @property
    def schema(self) -> Schema:
        """The schema of the problem's workload files."""
        return self.module("workload").SCHEMA

    def build(self, id: str, values: Mapping[str, Any] | None = None) -> Parameters:
        """The checked parameters of environment ``id``: ``values`` over the id's own."""
        return self.parameters.build(**{**self.ids[id].parameters, **(values or {})})

    def objective_of(self, parameters: Mapping[str, Any] | Parameters) -> str:
        """Name of the metric that the rewards sum to (up to the sign) under these, complete, parameters."""
        given = parameters if isinstance(parameters, Mapping) else vars(parameters)
        return self.objectives.get(given.get("objective", ""), self.objective)

    def metrics_of(self, parameters: Mapping[str, Any]) -> tuple[Metric, ...]:
        """All metrics of an episode under these, complete, parameters, in the order of the tables."""
        return self.metrics if self.varying is None else self.varying(parameters)

    def metric(self, name: str) -> Metric:
        """The metric called ``name``."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        if self.further is not None and (further := self.further(name)) is not None:
            return further
        raise UnknownName("metric", name, [metric.name for metric in self.metrics])


@functools.cache
def list_problems() -> dict[str, Problem]:
    """Name -> problem, for every folder of ``schedgym.problems`` and every entry point.

    Raises:
        InvalidParameter: when an entry point cannot be loaded, is no problem, or has a name or an id that is
            taken.
    """
    package = importlib.import_module("schedgym.problems")
    found: dict[str, Problem] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__) if m.ispkg):
        problem = importlib.import_module(f"{package.__name__}.{module}.problem").PROBLEM
        found[problem.name] = problem
    for entry, problem in entry_points(ENTRY_POINTS):
        if not isinstance(problem, Problem):
            raise InvalidParameter(f"{entry}: must be a Problem, got {problem!r}")
        taken = [problem.name, *problem.ids]
        taken = [name for name in taken if any(name in (p.name, *p.ids) for p in found.values())]
        if taken:
            raise InvalidParameter(f"{entry}: there is another problem {taken[0]!r}")
        found[problem.name] = problem
    return found


def get_problem(name: str) -> Problem:
    """The problem with this name or environment id."""
    known = list_problems()
    known = known | {id: problem for problem in known.values() for id in problem.ids}
    if name not in known:
        raise UnknownName("problem", name, known)
    return known[name]
