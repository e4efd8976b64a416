"""The policy protocol and the one registry of policies.

A policy acts from the observation alone: ``reset(interface, rng)`` at the start of an episode, then
``policy(observation)`` for each action. It is registered by decorating its class:

    @register_policy("queue-delay/bf-exec", source="...", knows=("execution",))
    class BFExec: ...

Policies of this package are found in ``schedgym.baselines``; other packages add theirs by an entry point
in the group ``schedgym.policies`` whose value is a module that registers them when imported.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from schedgym.core.expression import SCORE, SCORED_VIEWS
from schedgym.core.problem import get_problem
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.extras import entry_points

ENTRY_POINTS = "schedgym.policies"
#: entries of observations that tell how long jobs run, or how much work they are
DURATIONS = ("execution", "processing", "remaining", "slots_left", "volume")


@dataclasses.dataclass(frozen=True)
class Interface:
    """The facts about the environment that a policy may know before it acts, all constant in an episode.

    Attributes:
        id: environment id.
        problem: name of the problem.
        view: name of the action view.
        observation: kind of observation, "dict" or "features".
        parameters: the environment's parameters.
        sizes: named sizes of the spaces, e.g. {"window": 32, "servers": 8}.
        entries: name of each entry of the observation -> its shape.
    """

    id: str
    problem: str
    view: str
    observation: str
    parameters: Mapping[str, Any]
    sizes: Mapping[str, int]
    entries: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)

    def check(self, label: str, views: Iterable[str]) -> None:
        """Raise InvalidParameter unless a policy that reads exact units and acts in these views can act.

        Args:
            label: name of the policy in the message.
            views: the action views that can express it.
        """
        if self.observation != "dict":
            raise InvalidParameter(f"{label} reads exact units: needs observation='dict'")
        if self.view not in views:
            raise InvalidParameter(f"{label} cannot be expressed in view {self.view!r}")

    def check_needs(self, label: str, needs: Mapping[str, Any]) -> None:
        """Raise InvalidParameter unless the environment's parameters have the values that a policy needs."""
        for name, value in needs.items():
            if self.parameters[name] != value:
                raise InvalidParameter(
                    f"{label} needs {name}={value!r}, the environment has {self.parameters[name]!r}"
                )


@runtime_checkable
class Policy(Protocol):
    """Anything with these two methods is a policy.

    A policy may also have an attribute ``compiled_rollout``, which ``reset`` sets to None or to a function
    that plays the episode that has begun in a simulator of one environment to its end, in compiled code, and
    returns the sum of the rewards. Evaluations then call it instead of the policy, and it decides the same.

    A policy whose attribute ``plans`` is "known" may try what follows from its decisions: after each
    ``reset``, evaluations call its method ``bind`` with a :class:`~schedgym.core.snapshots.Model` of the
    environment, which knows what has arrived and nothing of the future.
    """

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """Forget the last episode; raise InvalidParameter if the interface cannot carry this policy."""

    def __call__(self, observation: Any) -> Any:
        """The action for one observation (of one environment, not a batch)."""


P = TypeVar("P", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class PolicySpec:
    """A registered policy.

    Attributes:
        name: "problem/policy".
        factory: builds the policy from its options.
        source: paper, algorithm, equation.
        deviations: differences from the source, "" if there are none.
        knows: information that it needs beyond sizes and clock, e.g. ("execution",) for known durations.
        views: the action views that it can act in.
        fixed: options that this name fixes.
        summary: one line on this name, where the class is registered under several names.
        needs: parameter of the environment -> the value, or values, without which it refuses to act.
        candidates: option -> the values that a tuning tries; see :meth:`open_options`.
    """

    name: str
    factory: Callable[..., Any]
    source: str
    deviations: str = ""
    knows: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    summary: str = ""
    needs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    candidates: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)

    @property
    def problem(self) -> str:
        """Name of the problem."""
        return self.name.partition("/")[0]

    @property
    def help(self) -> str:
        """The policy in one line: the summary, or the first line of the class's docstring."""
        return self.summary or (inspect.getdoc(self.factory) or "").partition("\n")[0]

    def acting_view(self, preferred: str, known: Iterable[str]) -> str:
        """Return ``preferred`` if the policy can act in it, else the first of its views that is ``known``."""
        if preferred in self.views:
            return preferred
        return next((view for view in self.views if view in known), preferred)

    def unmet(self, parameters: Mapping[str, Any]) -> list[str]:
        """The needs that (complete) parameters of an environment do not meet, as "name=value" texts."""
        missing = []
        for name, wanted in self.needs.items():
            values = wanted if isinstance(wanted, tuple) else (wanted,)
            if parameters[name] not in values:
                missing.append(f"{name}={' or '.join(map(repr, values))}")
        return missing

    def options(self) -> dict[str, Any]:
        """Option -> default, without those that the name fixes."""
        signature = inspect.signature(self.factory)
        return {
            p.name: p.default
            for p in signature.parameters.values()
            if p.name not in self.fixed and p.kind is not p.VAR_KEYWORD
        }

    def open_options(self) -> dict[str, tuple[Any, ...]]:
        """Option -> the values that a tuning tries, the default among them or not.

        Open are the options with declared candidates, and those that are true or false, unless an empty tuple
        is declared for them.
        """
        found = {
            name: self.candidates.get(name, (False, True) if isinstance(default, bool) else ())
            for name, default in self.options().items()
        }
        return {name: values for name, values in found.items() if values}


_REGISTRY: dict[str, PolicySpec] = {}


def register_policy(
    name: str,
    *,
    source: str,
    deviations: str = "",
    knows: tuple[str, ...] = (),
    views: tuple[str, ...] = (),
    summary: str = "",
    needs: Mapping[str, Any] | None = None,
    candidates: Mapping[str, tuple[Any, ...]] | None = None,
    **fixed: Any,
) -> Callable[[P], P]:
    """Class decorator that enters a policy under ``name`` ("problem/policy").

    One class may carry several names, each fixing other options by the keyword arguments left over. The
    ``candidates`` of an option are the values that a tuning tries, beside the default; those of options that
    a name fixes are not used.

    Raises:
        ValueError: if the name is taken by another class, is not of the form "problem/policy", or if there
            are candidates of an option that the class does not have.
    """

    def enter(factory: P) -> P:
        if name.count("/") != 1:
            raise ValueError(f"a policy's name is 'problem/policy', got {name!r}")
        given = dict(needs or {}), dict(candidates or {})
        spec = PolicySpec(name, factory, source, deviations, knows, views, dict(fixed), summary, *given)
        for option in spec.candidates:
            if option not in inspect.signature(factory).parameters:
                raise ValueError(f"{name}: candidates of an option that it does not have: {option!r}")
        known = _REGISTRY.get(name)
        if known is not None and _origin(known.factory) != _origin(factory):
            raise ValueError(f"policy {name!r} is registered already by {_origin(known.factory)}")
        _REGISTRY[name] = spec
        return factory

    return enter


def enter_policy(spec: PolicySpec) -> None:
    """Register a policy, in the place of one of the same name."""
    _REGISTRY[spec.name] = spec


def registered_policies() -> Mapping[str, PolicySpec]:
    """Name -> registration, of all policies so far."""
    return MappingProxyType(_REGISTRY)


def _origin(factory: Callable[..., Any]) -> str:
    return f"{factory.__module__}.{getattr(factory, '__qualname__', factory)}"


@functools.cache
def _discover() -> None:
    """Import every module below ``schedgym.baselines`` and every entry point, once."""
    package = importlib.import_module("schedgym.baselines")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    list(entry_points(ENTRY_POINTS))  # loading one registers its policies


def list_policies(problem: str | None = None) -> list[PolicySpec]:
    """All registered policies, or those of a problem or an environment id, by name."""
    _discover()
    own = None if problem is None else get_problem(problem).name
    return [spec for name, spec in sorted(_REGISTRY.items()) if own in (None, spec.problem)]


def resolve_policy_name(name: str, problem: str | None = None) -> str:
    """The full name of ``name``, which may leave out the problem's prefix when the problem is given.

    With the problem, ``score: EXPRESSION`` names a policy of :class:`schedgym.core.score_policy.ScorePolicy`,
    and a policy of another one is refused.
    """
    _discover()
    short = problem is not None and (is_expression(name) or "/" not in name)
    full = f"{problem}/{name}" if short else name
    if full not in _REGISTRY and not is_expression(full.partition("/")[2]):
        known = [n for n in _REGISTRY if problem is None or n.startswith(f"{problem}/")]
        raise UnknownName("policy", name, [n.partition("/")[2] for n in known] if short else known)
    if problem not in (None, full.partition("/")[0]):
        raise InvalidParameter(f"policy {full!r} is not one of {problem}")
    return full


def get_policy_spec(name: str, problem: str | None = None) -> PolicySpec:
    """The registration of a policy; UnknownName proposes the nearest name."""
    full = resolve_policy_name(name, problem)
    own = full.partition("/")[2]
    if full in _REGISTRY or not is_expression(own):
        return _REGISTRY[full]
    make: Callable[[str], Any] = importlib.import_module("schedgym.core.score_policy").ScorePolicy
    names = make(own).expression.names  # refuses what is no expression
    knows = tuple(name for name in names if name in DURATIONS)
    help = "the highest score first"
    return PolicySpec(
        full, lambda: make(own), source="an expression", knows=knows, views=SCORED_VIEWS, summary=help
    )


def is_expression(name: str) -> bool:
    """Return True if a policy is named by the expression of its score, ``score: EXPRESSION``."""
    return name.startswith(SCORE)


def make_policy(name: str, problem: str | None = None, **options: Any) -> Any:
    """Build a registered policy.

    Args:
        name: "problem/policy", or "policy" with ``problem`` given.
        problem: name of the problem, for short names.
        options: the policy's options.

    Raises:
        UnknownName: for an unknown policy or option.
        InvalidParameter: for an option that the name fixes or that is missing, or a value that is refused.
    """
    spec = get_policy_spec(name, problem)
    known = spec.options()
    for option in options:
        if option in spec.fixed:
            raise InvalidParameter(f"{spec.name}: option {option} is fixed to {spec.fixed[option]!r}")
        if option not in known:
            raise UnknownName(f"option of {spec.name}", option, known)
    try:
        inspect.signature(spec.factory).bind(**spec.fixed, **options)
    except TypeError as error:
        raise InvalidParameter(f"{spec.name}: {error}") from None
    policy = spec.factory(**spec.fixed, **options)
    policy.name = spec.name
    return policy
