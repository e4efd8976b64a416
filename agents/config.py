"""The configuration of a training as data: YAML read without executing anything, every value checked.

A file names the environment and the algorithm, and in sections the options of what the algorithm uses:

```yaml
id: schedgym/NAME-v0
algorithm: cma
view: priority
parameters: {window: all}
scorer: {hidden: 0, skip: {job: {age: -1.0}}}
search: {population: 16, episodes: 16}
```
"""

from __future__ import annotations

import dataclasses
import importlib.resources
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedgym.agents.options import EvaluationOptions, ImitationOptions, NetworkOptions, PPOOptions
from schedgym.agents.scorer import ScorerOptions
from schedgym.core.problem import Parameters, get_problem, parameter
from schedgym.core.tokens import tokens_of
from schedgym.documents import check_whole, mapping, parse_yaml, placed, read_yaml
from schedgym.errors import InvalidParameter, UnknownName

__all__ = [
    "ALGORITHMS",
    "Config",
    "SearchOptions",
    "config_for",
    "list_configs",
    "load_config",
    "make_config",
    "shipped_config",
]

ALGORITHMS = ("cma", "ppo", "maskable-ppo")
FITNESS = ("ratio", "difference")
SUFFIXES = (".yaml", ".yml")


@dataclasses.dataclass(frozen=True)
class SearchOptions(Parameters):
    """The options of the gradient-free training; see :mod:`schedgym.agents.search`."""

    population: int = parameter(16, "candidates of a generation", minimum=4, maximum=1024)
    episodes: int = parameter(16, "that each candidate plays in a generation", minimum=1, maximum=4096)
    generations: int = parameter(100, "at most", minimum=0, maximum=10**6)
    sigma: float = parameter(
        0.3,
        "spread of the first candidates, in standard deviations of the columns",
        minimum=0,
        exclusive=True,
    )
    bias_scale: float = parameter(
        1.0,
        "spread of constants and of what the whole observation weighs, over sigma",
        minimum=0,
        exclusive=True,
    )
    diagonal: bool = parameter(False, "adapt variances only, no covariances (for many parameters)")
    fitness: str = parameter(
        "ratio",
        "mean over episodes of the change of the objective from the start's: each over the start's own, or "
        "all over their mean",
        choices=FITNESS,
    )
    validate_every: int = parameter(5, "generations from one validation to the next", minimum=1)
    validation_episodes: int = parameter(64, "held-out episodes of a validation", minimum=2, maximum=10**5)
    patience: int = parameter(20, "validations without improvement after which it stops", minimum=1)


_GRADIENT = ("ppo", "maskable-ppo")
#: fields that have no effect on a search
_STEPS = ("steps", "num_envs")
#: section -> (its options, the algorithms that use it)
_SECTIONS: dict[str, tuple[type[Parameters], tuple[str, ...]]] = {
    "scorer": (ScorerOptions, ("cma",)),
    "search": (SearchOptions, ("cma",)),
    "network": (NetworkOptions, _GRADIENT),
    "ppo": (PPOOptions, _GRADIENT),
    "imitation": (ImitationOptions, _GRADIENT),
    "evaluation": (EvaluationOptions, _GRADIENT),
}


@dataclasses.dataclass(frozen=True)
class Config:
    """The configuration of a training.

    Attributes:
        id: environment id.
        algorithm: one of ALGORITHMS.
        view: action view.
        parameters: those of the environment that differ from the id's; observation="features" is added.
        seed: seed of the training.
        steps: environment steps of a training with gradients.
        num_envs: environments of a training with gradients.
        checkpoint: steps (cma: generations) from one checkpoint to the next.
        scorer, search: options of algorithm cma.
        network, ppo, evaluation: options of the algorithms with gradients.
        imitation: options of cloning, for the algorithms with gradients; None: no cloning.

    Raises:
        UnknownName, InvalidParameter: naming the field.
    """

    id: str
    algorithm: str
    view: str
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seed: int = 0
    steps: int = 1_000_000
    num_envs: int = 16
    checkpoint: int | None = None
    scorer: ScorerOptions = dataclasses.field(default_factory=ScorerOptions)
    search: SearchOptions = dataclasses.field(default_factory=SearchOptions)
    network: NetworkOptions = dataclasses.field(default_factory=NetworkOptions)
    ppo: PPOOptions = dataclasses.field(default_factory=PPOOptions)
    imitation: ImitationOptions | None = None
    evaluation: EvaluationOptions = dataclasses.field(default_factory=EvaluationOptions)

    def __post_init__(self) -> None:
        problem = get_problem(self.id)
        if self.id not in problem.ids:
            raise UnknownName("environment id", self.id, problem.ids)
        if self.algorithm not in ALGORITHMS:
            raise UnknownName("algorithm", self.algorithm, ALGORITHMS)
        known = tokens_of(self.id).views
        if self.view not in known:
            raise UnknownName(f"view of {problem.name} for agents", self.view, known)
        for name in ("view", "observation", "action_mask"):
            if name in self.parameters:
                raise InvalidParameter(f"parameters: {name} is not one of a configuration's")
        with placed("parameters", "."):
            problem.build(self.id, self.environment)
        for name, least, most in (("seed", 0, 2**32 - 1), ("steps", 1, 10**12), ("num_envs", 1, 10**6)):
            check_whole(getattr(self, name), name, least, most)
        if self.checkpoint is not None:
            check_whole(self.checkpoint, "checkpoint", 1)

    @property
    def environment(self) -> dict[str, Any]:
        """The keyword arguments of the environment that the agent acts in."""
        return {**self.parameters, "view": self.view, "observation": "features"}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which :func:`make_config` makes an equal configuration."""
        data: dict[str, Any] = {"id": self.id, "algorithm": self.algorithm, "view": self.view}
        data |= {"parameters": _plain(self.parameters), "seed": self.seed}
        if self.algorithm in _GRADIENT:
            data |= {name: getattr(self, name) for name in _STEPS}
        if self.checkpoint is not None:
            data["checkpoint"] = self.checkpoint
        for name, (_, algorithms) in _SECTIONS.items():
            section = getattr(self, name)
            if self.algorithm in algorithms and section is not None:
                data[name] = _plain({f.name: getattr(section, f.name) for f in dataclasses.fields(section)})
        return data


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _mapping(value: Any, where: str) -> dict[str, Any]:
    return {} if value is None else mapping(value, where)


def make_config(data: Mapping[str, Any]) -> Config:
    """A configuration from plain data.

    Raises:
        UnknownName, InvalidParameter: naming the field, as "section.field" in a section.
    """
    given = mapping(data, "a configuration", Config)
    for name in ("id", "algorithm", "view"):
        if not isinstance(given.get(name), str):
            raise InvalidParameter(f"{name}: a configuration must name it, got {given.get(name)!r}")
    if given["algorithm"] not in ALGORITHMS:
        raise UnknownName("algorithm", given["algorithm"], ALGORITHMS)
    given["parameters"] = _mapping(given.get("parameters"), "parameters")
    for name in _STEPS:
        if name in given and given["algorithm"] not in _GRADIENT:
            raise InvalidParameter(f"{name}: has no effect on algorithm {given['algorithm']!r}: leave it out")
    for name, (kind, algorithms) in _SECTIONS.items():
        if name not in given:
            continue
        if given["algorithm"] not in algorithms:
            raise InvalidParameter(f"{name}: has no effect on algorithm {given['algorithm']!r}: leave it out")
        if given[name] is None and name == "imitation":
            continue
        section = _mapping(given[name], name)
        with placed(name, "."):
            given[name] = kind.build(**section)
    return Config(**given)


def _change(given: dict[str, Any], name: str, text: str) -> None:
    """Set "field" or "section.field" to the value of the text."""
    section, _, field = name.rpartition(".")
    if not section:
        given[field] = parse_yaml(text, name)
        return
    target = given[section] = _mapping(given.get(section), section)
    if section == "parameters" and isinstance(given.get("id"), str):
        with placed(section, "."):
            target[field] = get_problem(given["id"]).parameters.parse(field, text)
    else:
        target[field] = parse_yaml(text, name)


def load_config(path: str | Path, changes: Mapping[str, str] | None = None) -> Config:
    """The configuration in a YAML file.

    Args:
        path: path of the file, or name of a shipped configuration.
        changes: "field", "section.field" or "parameters.name" -> value as text (of a command line).

    Raises:
        FileNotFoundError: if there is no such file.
        InvalidParameter, UnknownName: in one line, with the file's name.
    """
    source = Path(path)
    if not source.is_file() and source.suffix not in SUFFIXES:
        source = shipped_config(str(path))
    given = _mapping(read_yaml(source), source.name)
    with placed(source.name):
        # the id first: it says what the parameters are
        for name in sorted(changes or {}, key=lambda name: "." in name):
            _change(given, name, (changes or {})[name])
        return make_config(given)


def _folder() -> Path:
    return Path(str(importlib.resources.files("schedgym.agents"))) / "configs"


def list_configs() -> list[str]:
    """Names of the configurations that are shipped."""
    return sorted(path.stem for path in _folder().glob("*.yaml"))


def shipped_config(name: str) -> Path:
    """The file of a shipped configuration.

    Raises:
        UnknownName: proposing the nearest one.
    """
    if name not in list_configs():
        raise UnknownName("configuration", name, list_configs())
    return _folder() / f"{name}.yaml"


def config_for(id: str, algorithm: str | None = None) -> str:
    """The name of the shipped configuration for an environment id, of an algorithm (None: the first).

    Raises:
        InvalidParameter: if there is none.
    """
    for wanted in ALGORITHMS if algorithm is None else (algorithm,):
        for name in list_configs():
            config = load_config(name)
            if config.id == id and config.algorithm == wanted:
                return name
    raise InvalidParameter(
        f"{id}: no configuration{f' of {algorithm}' if algorithm else ''} is shipped for it: give one by "
        "--config; `schedgym agents list` names those of other ids and algorithms, as examples"
    )
