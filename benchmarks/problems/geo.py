"""The cases that developers measure for GeoAssign and GeoFair."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Growth
from schedgym.evaluation.bench import Benchmark, first_feasible

ASSIGN, FAIR = "schedgym/GeoAssign-v0", "schedgym/GeoFair-v0"
ENVS = 256
SIZE: dict[str, Any] = {"jobs": 50, "sites": 10, "window": 32}
#: the whole Facebook trace, where its folder is known
FACEBOOK = Path(os.environ.get("SCHEDGYM_DATA", ""), "FB-2010_samples_24_times_1hr_0.tsv")
TRACE: dict[str, Any] = {"trace": str(FACEBOOK), "jobs": "all", "slots": 20}

_SCORES = np.random.default_rng(0).uniform(0.1, 1.0, (ENVS, 32)).astype(np.float32)


def _fixed_scores(observation: Any) -> Any:
    return _SCORES


CASES = (
    Benchmark(
        name="GeoAssign pick, features, gym.make (50 jobs, 10 sites, window 32, first feasible, copies)",
        id=ASSIGN,
        parameters={**SIZE, "view": "pick", "observation": "features"},
        act=first_feasible,
    ),
    *(
        Benchmark(
            name=f"vector environment, {ENVS} envs, {view}, {observation}, "
            + ("copies" if copy else "zero-copy"),
            id=id,
            parameters={**SIZE, "view": view, "observation": observation, "copy": copy},
            act=first_feasible if view == "pick" else _fixed_scores,
            num_envs=ENVS,
            steps=steps,
            target=target if copy and observation == "features" else "-",
        )
        for id, view, steps, target in (
            (ASSIGN, "pick", 4000, ">= 1e6"),
            (ASSIGN, "priority", 1500, ">= 1e5"),
            (FAIR, "weights", 600, ">= 5e3"),
        )
        for observation, copy in (("features", True), ("features", False), ("dict", True))
    ),
    *(
        Benchmark(
            name=f"{policy}, the whole Facebook trace (24,024 jobs, 1,102,281 tasks), zero-copy",
            id=id,
            parameters=TRACE,
            policy=policy,
            target=target,
            slow=True,
        )
        for id, policies, target in (
            (ASSIGN, ("ata", "ata-greedy", "scta", "swag", "btaaj-swag", "fcfs"), "<= 30"),
            (
                FAIR,
                ("imf", "amf", "sig-amf", "opt-amf", "gamf", "sig-gamf", "opt-gamf", "opt-sig-gamf"),
                "<= 60",
            ),
        )
        for policy in policies
        if FACEBOOK.is_file()
    ),
)

GROWTH = tuple(
    growth
    for id, jobs, sites in (
        (ASSIGN, {"swag": (1.5, 1), "btawj-swag": (2, 1)}, (1.25, 1.5)),
        (FAIR, dict.fromkeys(("amf", "sig-amf", "opt-amf", "imf"), (1.5, 1.5)), (1.5, 1.5)),
    )
    for growth in (
        Growth(
            id=id,
            name="jobs",
            sizes=(100, 1000, 10_000, 100_000),
            parameters=lambda size: {"jobs": size},
            expected={"": (1, 1), **jobs},
            why="the same utilisation; heavy tails leave ever more jobs, which swag orders and amf serves",
        ),
        Growth(
            id=id,
            name="sites",
            sizes=(10, 100, 1000),
            parameters=lambda size: {"jobs": 200, "sites": size},
            expected={"": sites},
            why="200 jobs, ever more of them at a time: as many rows, with a number per site",
        ),
    )
)
