"""The cases that developers measure for FlowtimePacking."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.cases import Growth
from schedgym.evaluation.bench import Benchmark, first_feasible

ID = "schedgym/FlowtimePacking-v0"
ENVS = 256
SIZE: dict[str, Any] = {"jobs": 60, "window": 32}  # on the default eight servers
KW: dict[str, Any] = {"jobs": 6487, "horizon": 3600, "servers": "64+32+16+16+16"}

_SCORES = np.random.default_rng(0).uniform(-0.9, 1.0, (ENVS, 32)).astype(np.float32)


def _fixed_scores(observation: Any) -> Any:
    return _SCORES


CASES = (
    Benchmark(
        name="FlowtimePacking pick, features, gym.make (60 jobs, 8 servers, first feasible, copies)",
        id=ID,
        parameters={**SIZE, "view": "pick", "observation": "features"},
        act=first_feasible,
    ),
    *(
        Benchmark(
            name=f"vector environment, {ENVS} envs, {view}, {observation}, "
            + ("copies" if copy else "zero-copy"),
            id=ID,
            parameters={**SIZE, "view": view, "observation": observation, "copy": copy},
            act=first_feasible if view == "pick" else _fixed_scores,
            num_envs=ENVS,
            steps=steps,
            target=target if copy and observation == "features" else "-",
        )
        for view, steps, target in (("pick", 4000, ">= 1e6"), ("priority", 1500, ">= 2e5"))
        for observation, copy in (("features", True), ("features", False), ("dict", True))
    ),
    *(
        Benchmark(
            name=f"{policy}, the 6487-job run, zero-copy",
            id=ID,
            parameters={**KW, "kind": kind},
            policy=policy,
            target=target,
            slow=True,
        )
        for policy, kind, target in (
            ("srpt", "1d", "<= 3"),
            ("svf", "1d", "<= 3"),
            ("ocorp", "1d", "<= 3"),
            ("ocorp+", "1d", "<= 6"),
            ("ocorp+m", "2d", "<= 10"),
        )
    ),
)

GROWTH = (
    Growth(
        id=ID,
        name="jobs",
        sizes=(100, 1000, 10_000, 100_000),
        parameters=lambda size: {"jobs": size, "load": 0.7},
        expected={"": (1, 1)},
        why="load 0.7: as many jobs are in the system at any time (at 0.95 their number grows, too)",
    ),
    Growth(
        id=ID,
        name="servers",
        sizes=(10, 100, 1000, 10_000),
        parameters=lambda size: {"jobs": 1000, "servers": "+".join(["8"] * size)},
        expected={"": (2, 1)},
        why="1000 jobs, the same load: more of them at a time; for each the next largest server is sought",
    ),
)
