"""What ``schedgym bench`` measures of ParallelJCT."""

from __future__ import annotations

from typing import Any

from schedgym.core.benchmark import Benchmark

__all__ = ["CASES"]

ID = "schedgym/ParallelJCT-v0"
ENVS = 256
SIZE: dict[str, Any] = {"jobs": 10, "window": 16, "load_max": 300.0}  # 54 servers, 30 tasks a job


def _first_feasible(observation: Any) -> int:
    return int(observation["action_mask"].argmax())


def _first_feasible_each(observation: Any) -> Any:
    return observation["action_mask"].argmax(axis=1)


CASES = (
    Benchmark(
        name="ParallelJCT pick, features, gym.make (10 jobs, 54 servers, first feasible, copies)",
        id=ID,
        parameters={**SIZE, "view": "pick", "observation": "features"},
        act=_first_feasible,
    ),
    *(
        Benchmark(
            name=f"vector face, {ENVS} envs, {view}, features, {'copies' if copy else 'lent'}",
            id=ID,
            parameters={**SIZE, "view": view, "observation": "features", "copy": copy},
            act=_first_feasible_each,
            num_envs=ENVS,
            steps=steps,
            target=target if copy else "-",
        )
        for view, steps, target in (("pick", 100, ">= 5e3"), ("place", 1500, "-"))
        for copy in (True, False)
    ),
    *(
        Benchmark(
            name=f"{policy}, x70, 540 jobs, 54 servers, lent",
            id=ID,
            parameters={"jobs": 540},
            policy=policy,
            target=target,
            slow=True,
        )
        for policy, target in (("ontapra", "<= 15"), ("slf", "-"), ("fcfs", "-"))
    ),
)
