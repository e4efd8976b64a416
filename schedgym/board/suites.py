"""Suites: frozen instances, each made from its recipe and known by the SHA-256 of its arrays.

A suite has the sets ``train``, ``validation`` and ``test`` of one environment id, and any number of secret
sets, which an organiser makes from a phrase. A file ``suites/NAME.yaml`` holds the recipes: the parameters of
each size, how many instances of a set have it, and the digests of all instances. The seed of an instance
follows from its name and the phrase, so that whoever does not know the phrase of a secret set cannot make its
instances; those of the other sets are made without one. A suite never changes: others get a new number.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.core.problem import Metric, Problem, get_problem
from schedgym.core.workload import SECTIONS, Workload
from schedgym.documents import build, placed, read_yaml
from schedgym.errors import InvalidParameter, InvalidWorkload, UnknownName

FOLDER = Path(__file__).with_name("suites")
SECRET = "secret"  # the set that is made from a phrase
FIRST_SEED = 2**48  # evaluations and trainings take seeds below
SEED_BYTES = 6


@dataclass(frozen=True)
class Instance:
    """One instance of a suite.

    Attributes:
        suite: name of the suite.
        set: name of the set.
        size: name of the size.
        index: place in the set, from 0.
        id: environment id.
        parameters: those of the environment that are not the id's own.
        seed: of the environment, which meets the instance in its first episode.
        digest: SHA-256 of the workload's arrays; "" before the first use of a secret instance.
    """

    suite: str
    set: str
    size: str
    index: int
    id: str
    parameters: Mapping[str, Any]
    seed: int
    digest: str

    @property
    def name(self) -> str:
        """Suite, set and place: ``QueueDelay-1/test/7``."""
        return f"{self.suite}/{self.set}/{self.index}"

    @property
    def problem(self) -> Problem:
        """The problem of the id."""
        return get_problem(self.id)

    @property
    def objective(self) -> Metric:
        """The metric that the rewards sum to, up to the sign."""
        return self.problem.metric(self.problem.objective_of(self.problem.build(self.id, self.parameters)))

    def workload(self) -> Workload:
        """Make the workload from its recipe.

        Raises:
            InvalidWorkload: if it is not the one that the suite has.
        """
        module = self.problem.module("workload")
        source = module.make_source(self.problem.build(self.id, self.parameters))
        made: Workload = module.generate(self.seed, 0, source)
        if self.digest and (found := digest_of(made)) != self.digest:
            raise InvalidWorkload(
                f"{self.name}: this version of schedgym or numpy makes another instance of its recipe: "
                f"SHA-256 {found}, must be {self.digest}"
            )
        return made


@dataclass(frozen=True)
class Size:
    """Instances of one size.

    Attributes:
        instances: how many of each set.
        parameters: of the environment.
    """

    instances: int
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Suite:
    """The sets of one environment id.

    Attributes:
        name: the id's own name and the number of the suite: ``QueueDelay-1``.
        id: environment id.
        sizes: name -> :class:`Size`; a set has the instances of the first size first.
        digests: set -> digest of each instance.
    """

    name: str
    id: str
    sizes: Mapping[str, Size]
    digests: Mapping[str, tuple[str, ...]]

    @property
    def problem(self) -> Problem:
        """The problem of the id."""
        return get_problem(self.id)

    @property
    def reference(self) -> str:
        """Name of the paper's own algorithm, whose score is 0."""
        return self.problem.ids[self.id].reference

    def instances(self, set: str, phrase: str | None = None) -> tuple[Instance, ...]:
        """Return the instances of a set.

        Args:
            set: "train", "validation", "test" or "secret".
            phrase: of the secret set, which only its organiser knows.

        Raises:
            UnknownName: for another set.
            InvalidParameter: for a secret set without a phrase, or a phrase for another set.
        """
        if (set == SECRET) != bool(phrase):
            raise InvalidParameter(
                f"{self.name}/{set}: the set {SECRET!r} needs a phrase, no other takes one"
            )
        names = [name for name, size in self.sizes.items() for _ in range(size.instances)]
        if set != SECRET and set not in self.digests:
            raise UnknownName("set", set, [*self.digests, SECRET])
        digests = self.digests.get(set, ("",) * len(names))
        return tuple(
            Instance(
                *(self.name, set, name, index, self.id, self.sizes[name].parameters),
                seed=_seed(phrase or "", f"{self.name}/{set}/{index}"),
                digest=digest,
            )
            for index, (name, digest) in enumerate(zip(names, digests, strict=True))
        )


def _seed(phrase: str, name: str) -> int:
    """Return the seed of an instance: one that neither evaluations nor trainings use."""
    number = hmac.digest(phrase.encode(), name.encode(), "sha256")[:SEED_BYTES]
    return FIRST_SEED + int.from_bytes(number)


def digest_of(workload: Workload) -> str:
    """SHA-256 of a workload's arrays: their names, types, shapes and contents."""
    sha = hashlib.sha256(workload.problem.encode())
    for section in SECTIONS:
        for name, array in sorted(getattr(workload, section).items()):
            sha.update(f"\n{section}.{name} {array.dtype.str} {array.shape}\n".encode())
            sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def suites() -> tuple[str, ...]:
    """Return the names of all suites."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


@functools.cache
def load_suite(name: str) -> Suite:
    """Read a suite.

    Raises:
        UnknownName: for another name.
        InvalidParameter: for a file that is no suite.
        gymnasium.error.DependencyNotInstalled: without the extra ``eval``.
    """
    if name not in suites():
        raise UnknownName("suite", name, suites())
    path = FOLDER / f"{name}.yaml"
    with placed(path.name):
        return build(Suite, {"name": name, **read_yaml(path)}, "the suite")
