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

A search may mix several domains, sets of parameters over those of the configuration
(:mod:`schedgym.agents.domains`), and compare itself with the best baseline of each:

```yaml
search: {fitness: log, baselines: [NAME, OTHER]}
domains:
  small: {parameters: {jobs: 20}}
  large: {parameters: {jobs: 500}, weight: 2.0}
  unseen: {parameters: {jobs: 100}, use: validation}
```
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib.resources
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedgym.agents.domains import Domain, DomainOptions
from schedgym.agents.options import EvaluationOptions, ImitationOptions, NetworkOptions, PPOOptions
from schedgym.agents.scorer import ScorerOptions
from schedgym.core.policy import get_policy_spec
from schedgym.core.problem import Metric, Parameters, get_problem, parameter
from schedgym.core.tokens import effective_parameters, tokens_of
from schedgym.documents import build, check, entry, mapping, parse_yaml, placed, read_yaml
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.extras import require
from schedgym.traces.declaration import SUFFIXES, named_files
from schedgym.traces.fetch import sha256

ALGORITHMS = ("cma", "ppo", "sb3-ppo")
FITNESS = ("ratio", "difference", "log")
NAMED = "a configuration must name it"


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
        "all over their mean; or the logarithm of their ratio, both raised by 1% of the mean of the start's, "
        "so that objectives near zero do not decide alone",
        choices=FITNESS,
    )
    #: policies; validations compare the agent with the best of them in each domain, not with the start
    baselines: list = dataclasses.field(default_factory=list)  # type: ignore[type-arg]
    validate_every: int = parameter(5, "generations from one validation to the next", minimum=1)
    validation_episodes: int = parameter(64, "held-out episodes of a validation", minimum=2, maximum=10**5)
    patience: int = parameter(20, "validations without improvement after which it stops", minimum=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(isinstance(name, str) for name in self.baselines):
            raise InvalidParameter(f"baselines: must be a list of names of policies, got {self.baselines!r}")
        if self.baselines and self.fitness != "log":
            # of logarithms the reference is a constant: against the start the search ranks in the same way
            raise InvalidParameter(f"baselines: need fitness 'log', got {self.fitness!r}")


_GRADIENT = ("ppo", "sb3-ppo")
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
        domains: name -> a domain of a search; empty: the parameters are the only one.
        network, ppo, evaluation: options of the algorithms with gradients.
        imitation: options of cloning, for the algorithms with gradients; None: no cloning.

    Raises:
        UnknownName, InvalidParameter: naming the field.
    """

    id: str = entry(must=[NAMED])
    algorithm: str = entry(must=[NAMED])
    view: str = entry(must=[NAMED])
    parameters: Mapping[str, Any] = entry(factory=dict)
    seed: int = entry(0, most=2**32 - 1)
    steps: int = entry(1_000_000, least=1, most=10**12)
    num_envs: int = entry(16, least=1, most=10**6)
    checkpoint: int | None = entry(None, least=1)
    scorer: ScorerOptions = dataclasses.field(default_factory=ScorerOptions)
    search: SearchOptions = dataclasses.field(default_factory=SearchOptions)
    domains: Mapping[str, DomainOptions] = dataclasses.field(default_factory=dict)
    network: NetworkOptions = dataclasses.field(default_factory=NetworkOptions)
    ppo: PPOOptions = dataclasses.field(default_factory=PPOOptions)
    imitation: ImitationOptions | None = None
    evaluation: EvaluationOptions = dataclasses.field(default_factory=EvaluationOptions)

    def __post_init__(self) -> None:
        check(self)
        problem = get_problem(self.id)
        if self.id not in problem.ids:
            raise UnknownName("environment id", self.id, problem.ids)
        if self.algorithm not in ALGORITHMS:
            raise UnknownName("algorithm", self.algorithm, ALGORITHMS)
        known = tokens_of(self.id).views
        if self.view not in known:
            raise UnknownName(f"view of {problem.name} for agents", self.view, known)
        self._check_parameters("parameters", self.parameters)
        self._check_domains()
        for name in self.search.baselines:
            with placed("search.baselines"):
                get_policy_spec(name, problem.name)
        if self.ppo.copies > 1 and self.algorithm != "ppo":
            raise InvalidParameter(f"ppo.copies: has no effect on algorithm {self.algorithm!r}: leave it out")
        for name in ("n_steps", "gae_lambda", "vf_coef", "normalize_returns") if self.ppo.copies > 1 else ():
            if getattr(self.ppo, name) != getattr(PPOOptions(), name):
                raise InvalidParameter(f"ppo.{name}: has no effect with ppo.copies: leave it out")
        if self.num_envs % self.ppo.copies:
            raise InvalidParameter(
                f"ppo.copies: must divide num_envs, {self.num_envs}, got {self.ppo.copies}"
            )

    def _check_parameters(self, where: str, parameters: Mapping[str, Any]) -> str:
        """The objective of the environment; raise InvalidParameter or UnknownName if it cannot be made."""
        problem = get_problem(self.id)
        for name in ("view", "observation", "action_mask"):
            if name in parameters:
                raise InvalidParameter(f"{where}: {name} is not one of a configuration's")
        with placed(where, "."):
            return problem.objective_of(problem.build(self.id, self._environment_of(parameters)))

    def _check_domains(self) -> None:
        objectives = {
            self._check_parameters(f"domains.{name}.parameters", domain.parameters)
            for name, domain in self.domains.items()
        }
        if len(objectives) > 1:
            raise InvalidParameter(f"domains: have one objective, got {', '.join(sorted(objectives))}")
        if self.domains and not any(domain.use == "training" for domain in self.domains.values()):
            raise InvalidParameter("domains: one or more must have use: training")

    def domains_of(self, use: str) -> list[Domain]:
        """The domains in which candidates are trained, or validated ("training", "validation").

        Without domains both are the environment of the parameters, in which a trace is not split.
        """
        if not self.domains:
            return [Domain("", 1.0, self.environment, split=False)]
        own = {name: domain for name, domain in self.domains.items() if domain.use == use} or self.domains
        return [
            Domain(name, domain.weight, self._environment_of(domain.parameters), domain.episodes)
            for name, domain in own.items()
        ]

    def _environment_of(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments of an environment with ``parameters`` over those of the configuration."""
        return effective_parameters(self.id, {**self.environment, **parameters}, parameters)

    @property
    def environment(self) -> dict[str, Any]:
        """The keyword arguments of the environment that the agent acts in."""
        return {**self.parameters, "view": self.view, "observation": "features"}

    def contents(self) -> dict[str, str]:
        """SHA-256 of each file that the parameters name, and of those in a folder; another may come there."""
        used = [own.environment for use in ("training", "validation") for own in self.domains_of(use)]
        named = {Path(own[name]) for own in used for name in named_files(own)}
        files = [path for own in named for path in (own.rglob("*") if own.is_dir() else [own])]
        return {str(path): sha256(path) for path in sorted(files) if path.is_file()}

    @property
    def metric(self) -> Metric:
        """The objective of the environment."""
        return get_problem(self.id).metric(self._check_parameters("parameters", self.parameters))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which :func:`make_config` makes an equal configuration."""
        data: dict[str, Any] = {"id": self.id, "algorithm": self.algorithm, "view": self.view}
        data |= {"parameters": _plain(self.parameters), "seed": self.seed}
        if self.algorithm in _GRADIENT:
            data |= {name: getattr(self, name) for name in _STEPS}
        if self.checkpoint is not None:
            data["checkpoint"] = self.checkpoint
        if self.domains:
            data["domains"] = {name: _plain(dataclasses.asdict(own)) for name, own in self.domains.items()}
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
    algorithm = given.get("algorithm")
    if isinstance(algorithm, str):
        if algorithm not in ALGORITHMS:
            raise UnknownName("algorithm", algorithm, ALGORITHMS)
        used = {name: algorithms for name, (_, algorithms) in _SECTIONS.items()}
        used |= {"domains": ("cma",), **dict.fromkeys(_STEPS, _GRADIENT)}
        for name in given:
            if algorithm not in used.get(name, ALGORITHMS):
                raise InvalidParameter(f"{name}: has no effect on algorithm {algorithm!r}: leave it out")
    return build(Config, given, "a configuration", missing=f": {NAMED}, got None")


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
    read = source.is_file() or source.suffix in SUFFIXES
    given = _mapping(read_yaml(source), source.name) if read else shipped_config(str(path))
    with placed(source.name):
        # the id first: it says what the parameters are
        for name in sorted(changes or {}, key=lambda name: "." in name):
            _change(given, name, (changes or {})[name])
        return make_config(given)


@functools.cache
def _shipped() -> dict[str, dict[str, Any]]:
    """Name -> content of the shipped configurations: of files, and with the settings of rl-zoo3 for an id."""
    folder = Path(str(importlib.resources.files("schedgym.agents")))
    found = {path.stem: read_yaml(path) for path in sorted((folder / "configs").glob("*.yaml"))}
    # the package's own file, which may have aliases
    zoo = require("yaml").safe_load((folder / "zoo" / "ppo.yml").read_text(encoding="utf-8"))
    for algorithm in _GRADIENT:
        own = {id: _from_zoo(id, algorithm, zoo[id]) for id in zoo if id != "common"}
        found |= {f"{id.rpartition('/')[2]}-{algorithm}": given for id, given in own.items()}
    return found


def _from_zoo(id: str, algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a configuration with settings of rl-zoo3, and a learning rate that falls to 0."""
    network = {**settings["policy_kwargs"]}
    parameters = {name: value for name, value in settings["env_kwargs"].items() if name != "observation"}
    return {
        **{"id": id, "algorithm": algorithm, "view": network.pop("view"), "parameters": parameters},
        **{"steps": int(settings["n_timesteps"]), "num_envs": settings["n_envs"]},
        "network": {name: value for name, value in network.items() if name != "problem"},
        "ppo": {f.name: settings[f.name] for f in dataclasses.fields(PPOOptions) if f.name in settings},
    }


def list_configs() -> list[str]:
    """Names of the configurations that are shipped."""
    return list(_shipped())


def shipped_config(name: str) -> dict[str, Any]:
    """The content of a shipped configuration.

    Raises:
        UnknownName: proposing the nearest one.
    """
    if name not in _shipped():
        raise UnknownName("configuration", name, list_configs())
    return copy.deepcopy(_shipped()[name])


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
