"""The cases that developers measure: the modules of ``benchmarks/problems`` list them by environment id.

A module has the benchmarks in ``CASES``, and the quantities that can grow in ``GROWTH``.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from schedgym.core.problem import Problem
from schedgym.evaluation.bench import Benchmark


@dataclasses.dataclass(frozen=True, kw_only=True)
class Growth:
    """One way in which an environment's episodes can grow: a table of ``python -m benchmarks growth``.

    Attributes:
        id: environment id.
        name: name of the quantity that grows.
        sizes: its values, from small to large.
        parameters: size -> parameters of the environment, which override the id's baseline parameters.
        expected: policy -> the largest expected exponents of the seconds of its decisions, and of everything
            else; "" stands for all other policies.
        why: the quantities that stay the same, and the source of the exponents.
    """

    id: str
    name: str
    sizes: tuple[int, ...]
    parameters: Callable[[int], Mapping[str, Any]]
    expected: Mapping[str, tuple[float, float]]
    why: str


def listed(problem: Problem) -> ModuleType:
    """The module of a problem of this package."""
    return importlib.import_module(f"benchmarks.problems.{problem.package.rpartition('.')[2]}")


def cases(problem: Problem, id: str) -> list[Benchmark]:
    """The benchmarks of an environment id."""
    return [case for case in listed(problem).CASES if case.id == id]


def axes(problem: Problem, id: str) -> list[Growth]:
    """The quantities that grow in an environment id."""
    return [growth for growth in listed(problem).GROWTH if growth.id == id]
