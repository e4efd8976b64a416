"""The cases that developers measure for PartialValue."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.cases import Growth
from schedgym.evaluation.bench import Benchmark

ID = "schedgym/PartialValue-v0"
ENVS = 256
WINDOW = 32
PRIORITY = {"view": "priority", "window": WINDOW}

_SCORES = np.random.default_rng(0).uniform(-1.0, 1.0, (2 * ENVS, WINDOW))


def _fixed_scores(observation: Any) -> Any:
    return _SCORES[0]


def _fixed_scores_each(observation: Any) -> Any:
    return _SCORES[: len(observation["job_mask"])]


CASES = (
    Benchmark(
        name="PartialValue priority, features, gym.make (100 jobs, 2 resources, fixed scores, copies)",
        id=ID,
        parameters={**PRIORITY, "observation": "features"},
        act=_fixed_scores,
    ),
    *(
        Benchmark(
            name=f"vector environment, {ENVS} envs, {model}, {observation}, "
            + ("copies" if copy else "zero-copy"),
            id=ID,
            parameters={**PRIORITY, "model": model, "observation": observation, "copy": copy},
            act=_fixed_scores_each,
            num_envs=ENVS,
            steps=3000,
            target=">= 1e6" if copy and observation == "features" else "-",
        )
        for model in ("continuous", "discrete")
        for observation, copy in (("features", True), ("features", False), ("dict", True))
    ),
    *(
        Benchmark(
            name=f"vector environment, {2 * ENVS} envs, {model}, features, copies, 2 threads",
            id=ID,
            parameters={**PRIORITY, "model": model, "observation": "features", "threads": 2},
            act=_fixed_scores_each,
            num_envs=2 * ENVS,
            steps=3000,
            target=">= 1e6",
        )
        for model in ("continuous", "discrete")
    ),
    *(
        Benchmark(
            name=f"{policy}, {jobs} jobs, zero-copy",
            id=ID,
            parameters={"model": model, "jobs": jobs, "rate": rate},
            policy=policy,
            target=target,
            slow=jobs > 1000,
        )
        for policy, model, jobs, rate, target in (
            ("concave", "continuous", 100, 10.0, "<= 0.05"),
            ("m-greedy", "discrete", 100, 10.0, "-"),
            ("primal-dual", "discrete", 100, 10.0, "-"),
            ("concave", "continuous", 10000, 10000.0, "-"),
        )
    ),
)

GROWTH = (
    Growth(
        id=ID,
        name="jobs",
        sizes=(100, 1000, 10_000, 100_000),
        parameters=lambda size: {"jobs": size},
        expected={"": (1, 1)},
        why="the same rate: as many slots more",
    ),
    Growth(
        id=ID,
        name="jobs a slot",
        sizes=(10, 100, 1000, 10_000),
        parameters=lambda size: {"jobs": 10 * size, "rate": float(size), "capacity": 10.0 * size},
        expected={"": (1, 1)},
        why="ten slots of arrivals, capacity in proportion: a slot is divided in linear time",
    ),
)
