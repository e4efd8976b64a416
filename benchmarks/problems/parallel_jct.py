"""The cases that developers measure for ParallelJCT."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import Growth
from benchmarks.problems.single_job import ARITIES
from schedgym.evaluation.bench import Benchmark, first_feasible

ID = "schedgym/ParallelJCT-v0"
ENVS = 256
SIZE: dict[str, Any] = {"jobs": 10, "window": 16, "load_max": 300.0}  # 54 servers, 30 tasks a job


CASES = (
    Benchmark(
        name="ParallelJCT pick, features, gym.make (10 jobs, 54 servers, first feasible, copies)",
        id=ID,
        parameters={**SIZE, "view": "pick", "observation": "features"},
        act=first_feasible,
    ),
    *(
        Benchmark(
            name=f"vector environment, {ENVS} envs, {view}, features, {'copies' if copy else 'zero-copy'}",
            id=ID,
            parameters={**SIZE, "view": view, "observation": "features", "copy": copy},
            act=first_feasible,
            num_envs=ENVS,
            steps=steps,
            target=target if copy else "-",
        )
        for view, steps, target in (("pick", 100, ">= 5e3"), ("place", 1500, "-"))
        for copy in (True, False)
    ),
    *(
        Benchmark(
            name=f"{policy}, x70, 540 jobs, 54 servers, zero-copy",
            id=ID,
            parameters={"jobs": 540},
            policy=policy,
            target=target,
            slow=True,
        )
        for policy, target in (("ontapra", "<= 15"), ("slf", "-"), ("fcfs", "-"))
    ),
)

GROWTH = (
    Growth(
        id=ID,
        name="jobs",
        sizes=(100, 1000, 10_000),
        parameters=lambda size: {"jobs": size, "rate": 0.03},
        expected={"": (1.25, 1.5)},
        why="3 jobs in 100 s, which 54 servers can take: above that rate the queue, and the work, grow, too",
    ),
    Growth(
        id=ID,
        name="servers",
        sizes=tuple(ARITIES),
        parameters=lambda size: {"jobs": 50, "arity": ARITIES[size]},
        expected={"": (1, 1), "ontapra-tapra": (2, 1)},
        why="50 jobs on fat trees: every plan looks at all servers; tapra solves a linear program each time",
    ),
)
