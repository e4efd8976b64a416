"""The cases that developers measure for SingleJob."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.cases import Growth
from schedgym.evaluation.bench import Benchmark, first_feasible

ID = "schedgym/SingleJob-v0"
ENVS = 256
SIZE: dict[str, Any] = {"tasks": 40, "arity": 6}  # 54 servers

_SERVERS = np.random.default_rng(0).integers(54, size=(64, 40)).astype(np.float64)
_PLANS = np.stack([_SERVERS, np.zeros_like(_SERVERS)], axis=2)


def _fixed_plans(observation: Any) -> Any:
    return _PLANS


CASES = (
    Benchmark(
        name="SingleJob place, features, gym.make (40 tasks, 54 servers, first feasible, copies)",
        id=ID,
        parameters={**SIZE, "view": "place", "observation": "features"},
        act=first_feasible,
    ),
    *(
        Benchmark(
            name=f"vector, {ENVS} envs, place, {observation}, {'copies' if copy else 'zero-copy'}",
            id=ID,
            parameters={**SIZE, "view": "place", "observation": observation, "copy": copy},
            act=first_feasible,
            num_envs=ENVS,
            target=">= 5e5" if copy and observation == "features" else "-",
        )
        for observation, copy in (("features", True), ("features", False), ("dict", True), ("dict", False))
    ),
    *(
        Benchmark(
            name=f"vector, 64 envs, {view}, {observation}, zero-copy",
            id=ID,
            parameters={**SIZE, "view": view, "observation": observation, "copy": False},
            act=first_feasible if view == "search" else _fixed_plans,
            num_envs=64,
            steps=steps,
        )
        for view, steps in (("search", 500), ("plan", 100))
        for observation in ("features", "dict")
    ),
    *(
        Benchmark(
            name=f"{policy}, 100 tasks, 128 servers, zero-copy",
            id=ID,
            parameters={"tasks": 100, "arity": 8},
            policy=policy,
            target=target,
        )
        for policy, target in (("tapra-fast", "<= 0.001"), ("tapra", "<= 0.15"), ("min-min", "<= 0.2"))
    ),
)

#: servers of a fat tree -> its arity
ARITIES = {arity**3 // 4: arity for arity in (4, 8, 12, 16, 24)}

GROWTH = (
    Growth(
        id=ID,
        name="tasks",
        sizes=(100, 1000, 10_000, 100_000),
        parameters=lambda size: {"tasks": size},
        expected={"": (2, 1), "tapra": (1.5, 1)},
        why="54 servers: searches move each task, and look at all others for it; tapra has a linear program",
    ),
    Growth(
        id=ID,
        name="servers",
        sizes=tuple(ARITIES),
        parameters=lambda size: {"tasks": 100, "arity": ARITIES[size]},
        expected={"": (1.25, 1), "tapra": (2, 1)},
        why="100 tasks on fat trees: every move looks at all servers; the linear program has a row for each",
    ),
)
