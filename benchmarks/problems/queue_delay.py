"""The cases that developers measure for QueueDelay."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import Growth
from schedgym.evaluation.bench import Benchmark, first_feasible

ID = "schedgym/QueueDelay-v0"
QUEUE: dict[str, Any] = {"tasks": 200, "servers": 8, "window": 32, "view": "pick"}


CASES = (
    *(
        Benchmark(
            name=f"QueueDelay pick, {observation}, gym.make "
            "(200 tasks, 8 servers, window 32, first feasible, copies)",
            id=ID,
            parameters={**QUEUE, "observation": observation},
            act=first_feasible,
            target=target,
        )
        for observation, target in (("features", ">= 0.6 x"), ("dict", ">= 0.5 x"))
    ),
    *(
        Benchmark(
            name=f"vector environment, 256 envs, pick, {observation}, {rate:g}/s, "
            + ("copies" if copy else "zero-copy"),
            id=ID,
            parameters={**QUEUE, "observation": observation, "arrival_rate": rate, "copy": copy},
            act=first_feasible,
            num_envs=256,
            target=target if copy and observation == "features" else "-",
        )
        for rate, target in ((10.0, ">= 3e6"), (0.1, ">= 4e6"))
        for observation in ("features", "dict")
        for copy in (True, False)
    ),
    *(
        Benchmark(
            name=f"bf-exec, {tasks} tasks, {servers} servers, {arrivals}, window all, zero-copy",
            id=ID,
            parameters={"tasks": tasks, "servers": servers, "load": load},
            policy="bf-exec",
            target=target,
            slow=tasks > 2000,
        )
        for tasks, servers, load, arrivals, target in (
            (2000, 10, None, "10/s", "<= 0.4"),
            (24024, 40, 1.0, "load 1", "<= 2"),
            (24024, 40, None, "10/s", "<= 2"),
        )
    ),
)

GROWTH = (
    Growth(
        id=ID,
        name="tasks",
        sizes=(100, 1000, 10_000, 100_000),
        parameters=lambda size: {"tasks": size, "load": 0.9},
        expected={"": (1, 1), "fcfs": (1, 2)},
        why="8 servers at load 0.9: queues keep their length, except for fcfs, whose head blocks all others",
    ),
    Growth(
        id=ID,
        name="servers",
        sizes=(10, 100, 1000, 10_000),
        parameters=lambda size: {"tasks": 5000, "servers": size, "load": 0.9},
        expected={"": (1, 1)},
        why="5000 tasks: each looks at all servers once",
    ),
)
