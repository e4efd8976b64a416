"""Toys: small instances of the problems whose optima are known, in the file ``toys.json`` of each folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from schedgym.core.problem import get_problem
from schedgym.core.workload import Workload


class Toy(NamedTuple):
    """A small instance of a problem whose optimum is known.

    Attributes:
        workload: the instance.
        optimum: the best value of the objective over all schedules.
        says: what an optimal schedule must do, or where the instance is from.
        environment: parameters that the optimum is for; of all others the default values.
    """

    workload: Workload
    optimum: float
    says: str
    environment: Mapping[str, Any]


def load_toys(problem: str) -> dict[str, Toy]:
    """The toys of a problem by name.

    Args:
        problem: its name, or an environment id.
    """
    found = get_problem(problem)
    path = Path(str(found.module("problem").__file__)).with_name("toys.json")
    toys = {}
    for name, own in json.loads(path.read_text(encoding="utf-8")).items():
        workload = found.schema.parse(own, prefix=f"{path}: {name}: ")
        toys[name] = Toy(workload, own["optimum"], own["says"], own.get("environment", {}))
    return toys
