"""Speed of environments and policies: what ``schedgym bench`` measures and prints.

One process, one core, whole episodes, several of them: environments started together end together, and
what an episode's turnover costs hides in short windows. Rates count the time inside ``reset`` and ``step``
(the loop's own policy is timed apart). Machines are noisy: the ratio to Gymnasium's CartPole, measured in
the same run, says more than a rate.
"""

from __future__ import annotations

import json as json_module
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np

from schedgym.core.files import atomic_write
from schedgym.core.policy import make_policy

__all__ = ["cartpole", "cold_start", "episode", "main", "scalar_face", "vector_face"]

ID = "schedgym/QueueDelay-v0"
QUEUE: dict[str, Any] = {"tasks": 200, "servers": 8, "window": 32, "view": "pick"}


def cartpole(steps: int) -> float:
    """Steps per second of ``gym.make("CartPole-v1")``, resets included."""
    env = gym.make("CartPole-v1")
    env.reset(seed=0)
    begin = perf_counter()
    for i in range(steps):
        _, _, terminated, truncated, _ = env.step(i & 1)
        if terminated or truncated:
            env.reset()
    return steps / (perf_counter() - begin)


def scalar_face(steps: int, **parameters: Any) -> float:
    """Steps per second of ``gym.make`` on view pick, resets included; policy: first feasible task."""
    env = gym.make(ID, **QUEUE, **parameters)
    observation, _ = env.reset(seed=0)
    spent = 0.0
    for _ in range(steps):
        action = int(observation["action_mask"].argmax())
        begin = perf_counter()
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            observation, _ = env.reset()
        spent += perf_counter() - begin
    return steps / spent


def vector_face(steps: int, num_envs: int = 256, **parameters: Any) -> tuple[float, float, int]:
    """Environment steps per second of ``gym.make_vec`` on view pick; policy: first feasible task each.

    Returns:
        the rate within ``step``, the rate of the whole loop with its policy, and the episodes that ended.
    """
    env = gym.make_vec(ID, num_envs=num_envs, **QUEUE, **parameters)
    observation, _ = env.reset(seed=0)
    for _ in range(20):
        observation, *_ = env.step(observation["action_mask"].argmax(axis=1))
    spent, episodes = 0.0, 0
    start = perf_counter()
    for _ in range(steps):
        actions = observation["action_mask"].argmax(axis=1)
        begin = perf_counter()
        observation, _, terminated, truncated, _ = env.step(actions)
        spent += perf_counter() - begin
        episodes += int(np.count_nonzero(terminated | truncated))
    return steps * num_envs / spent, steps * num_envs / (perf_counter() - start), episodes


def episode(policy_name: str, **parameters: Any) -> tuple[float, int]:
    """Seconds and steps of a baseline's episode, whole queue visible, buffers lent; second of two runs."""
    env = gym.make(
        ID,
        disable_env_checker=True,
        view="placement",
        window="all",
        action_mask=False,
        copy=False,
        **parameters,
    )
    policy = make_policy(policy_name, "queue-delay")
    seconds, steps = 0.0, 0
    for _ in range(2):
        begin = perf_counter()
        observation, _ = env.reset(seed=0)
        policy.reset(env.unwrapped.interface, np.random.default_rng(0))  # type: ignore[attr-defined]
        steps, done = 0, False
        while not done:
            observation, _, terminated, truncated, _ = env.step(policy(observation))
            done = terminated or truncated
            steps += 1
        seconds = perf_counter() - begin
    return seconds, steps


def cold_start() -> dict[str, float]:
    """Seconds of ``import schedgym`` and of make, reset and first step, without and with numba's cache."""
    program = (
        "import time; a = time.perf_counter(); import schedgym; b = time.perf_counter()\n"
        "import gymnasium as gym; env = gym.make('schedgym/QueueDelay-v0'); env.reset(seed=0)\n"
        "env.step(0); c = time.perf_counter(); print(b - a, c - b)"
    )
    times: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in ("cold", "cached"):
            done = subprocess.run(
                [sys.executable, "-c", program],
                env=os.environ | {"NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
            )
            times["import"], times[f"first step, {name}"] = map(float, done.stdout.split())
    return times


def main(quick: bool = False, json: str | Path | None = None) -> dict[str, Any]:
    """Measure, print a table, and write JSON if a file is named.

    Args:
        quick: a tenth of the steps, one repetition.
        json: file for the results.
    """
    repetitions, scale = (1, 1) if quick else (3, 10)
    print("one process, one core; medians of", repetitions, "runs; autoreset NextStep")
    rows: list[dict[str, Any]] = []

    def report(what: str, values: list[float], unit: str, target: str, **more: Any) -> float:
        value = statistics.median(values)
        rows.append({"what": what, "value": value, "unit": unit, "target": target, "runs": values} | more)
        shown = f"{value:,.0f}" if value >= 1000 else f"{value:.3f}"
        extra = "".join(f"  {k} {v}" for k, v in more.items())
        print(f"{what:<92} {shown:>11} {unit:<8} target {target:<9}{extra}", flush=True)
        return value

    for name, seconds in cold_start().items():
        target = {"import": "<= 0.5", "first step, cold": "<= 10", "first step, cached": "<= 1"}[name]
        report(f"{name} [subprocess]", [seconds], "s", target)

    faces: dict[str, Callable[[], float]] = {
        "CartPole-v1, gym.make": lambda: cartpole(6000 * scale),
        "QueueDelay pick, features, gym.make": lambda: scalar_face(6000 * scale, observation="features"),
        "QueueDelay pick, dict, gym.make": lambda: scalar_face(6000 * scale, observation="dict"),
    }
    samples: dict[str, list[float]] = {name: [] for name in faces}
    for _ in range(repetitions):
        for name, measure in faces.items():
            samples[name].append(measure())
    base = report("CartPole-v1, gym.make", samples["CartPole-v1, gym.make"], "steps/s", "-")
    for name, ratio in (("features", ">= 0.6"), ("dict", ">= 0.5")):
        what = f"QueueDelay pick, {name}, gym.make"
        value = statistics.median(samples[what])
        report(
            f"{what} (200 tasks, 8 servers, window 32, first feasible, copies)",
            samples[what],
            "steps/s",
            f"{ratio} x",
            ratio=round(value / base, 2),
        )
    for rate, target in ((10.0, ">= 3e6"), (0.1, ">= 4e6")):
        for observation in ("features", "dict"):
            for copy in (True, False):
                runs = [
                    vector_face(400 * max(scale, 5), observation=observation, arrival_rate=rate, copy=copy)
                    for _ in range(repetitions)
                ]
                named = copy and observation == "features"
                loop = statistics.median(r[1] for r in runs)
                report(
                    f"vector face, 256 envs, pick, {observation}, {rate:g}/s, {'copies' if copy else 'lent'}",
                    [r[0] for r in runs],
                    "steps/s",
                    target if named else "-",
                    episodes=runs[0][2],
                    loop=f"{loop:,.0f}",
                )
    for tasks, servers, load, limit in (
        (2000, 10, None, "<= 0.4"),
        (24024, 40, 1.0, "<= 2"),
        (24024, 40, None, "<= 2"),
    ):
        if quick and tasks > 2000:
            continue
        episodes = [episode("bf-exec", tasks=tasks, servers=servers, load=load) for _ in range(repetitions)]
        which = "10/s" if load is None else f"load {load:g}"
        report(
            f"bf-exec, {tasks} tasks, {servers} servers, {which}, window all, lent",
            [seconds for seconds, _ in episodes],
            "s",
            limit,
            steps=episodes[0][1],
        )
    result = {"benchmark": rows}
    if json is not None:
        with atomic_write(json) as stream:
            json_module.dump(result, stream, indent=1)
    return result
