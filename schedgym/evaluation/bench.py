"""Speed of environments and policies: the measurements and the output of ``schedgym bench``.

They run in one process on one core (but for the vector environments that are said to have threads), over
several whole episodes: environments that start together end together, so that a short window can miss the
cost of the resets. Rates count the time inside ``reset`` and ``step`` (the loop's own policy is timed apart).
Machines are noisy: the ratio to Gymnasium's CartPole, measured in the same run, says more than a rate.
"""

from __future__ import annotations

import dataclasses
import json as json_module
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np

from schedgym.core.files import atomic_write
from schedgym.core.policy import make_policy
from schedgym.core.problem import Problem, get_problem, list_problems
from schedgym.evaluation.episodes import make_env
from schedgym.evaluation.manifest import make_manifest
from schedgym.evaluation.plan import acting_parameters, find_id
from schedgym.playing import steps

SCALAR_STEPS, VECTOR_STEPS = 60_000, 4_000
WARM_UP = 20_000
QUICK_SCALAR, QUICK_VECTOR = 10, 2  # a quick run takes one step in so many
REPETITIONS = 3
CARTPOLE = "CartPole-v1, gym.make"


def chosen(name: str | None) -> Iterator[tuple[Problem, str]]:
    """The problem and the id of each environment that a name means; None: all of them."""
    if name is not None:
        name = find_id(name)
    for problem in list_problems().values() if name is None else [get_problem(name)]:
        for id in [name] if name is not None and name in problem.ids else problem.ids:
            yield problem, id


def finish(what: str, rows: list[dict[str, Any]], path: str | Path | None) -> dict[str, Any]:
    """The result of a measurement with its manifest, written if a file is named."""
    result = {what: rows, "manifest": make_manifest()}
    if path is not None:
        with atomic_write(path) as stream:
            stream.write(json_module.dumps(result, indent=1) + "\n")
    return result


@dataclasses.dataclass(frozen=True, kw_only=True)
class Benchmark:
    """The steps per second of an environment, or with ``policy`` the seconds of a whole episode.

    Attributes:
        name: name of the benchmark in the printed table.
        id: environment id.
        parameters: parameters of the environment (and ``copy``); with ``policy``, on top of the baseline's.
        act: function observation -> action, or with ``num_envs`` batch -> batch; its time is not counted.
        num_envs: size of the vector environment; 0: one environment, of ``gym.make``.
        autoreset: mode of the vector environment.
        steps: steps of a full run (of all environments at once); None: the number that all problems share.
        policy: short name of a policy.
        target: the target value, as text; for a single environment in multiples of CartPole's rate ("x").
        slow: True if a quick run leaves the benchmark out.
    """

    name: str
    id: str
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    act: Callable[[Any], Any] | None = None
    num_envs: int = 0
    autoreset: str = "NextStep"
    steps: int | None = None
    policy: str = ""
    target: str = "-"
    slow: bool = False


def first_feasible(observation: Any) -> Any:
    """The first feasible action; of a batch of observations, that of each environment."""
    return observation["action_mask"].argmax(axis=-1)


def _actor(id: str, num_envs: int, parameters: Mapping[str, Any]) -> Callable[[Any], Any]:
    """The first feasible action where a mask says which are, else always the same random one."""
    env: Any = gym.make_vec(id, num_envs=num_envs, **parameters) if num_envs else gym.make(id, **parameters)
    space = env.unwrapped.single_action_space if num_envs else env.action_space
    if isinstance(space, gym.spaces.Discrete) and "action_mask" in env.observation_space.spaces:
        return first_feasible
    env.action_space.seed(0)
    action = env.action_space.sample()
    return lambda observation: action


def cases(problem: Problem, id: str) -> list[Benchmark]:
    """What a user meets: one environment with either kind of observation, 256 of them, and a baseline."""
    found = []
    for observation in ("dict", "features"):
        for num_envs in (0, 256):
            given = {"observation": observation}
            kind = f"gym.make_vec, {num_envs} environments" if num_envs else "gym.make"
            act = _actor(id, num_envs, given)
            name = f"{kind}, observation {observation}"
            found.append(Benchmark(name=name, id=id, parameters=given, act=act, num_envs=num_envs))
    reference = problem.ids[id].reference
    return [*found, Benchmark(name=f"{reference}, an episode, zero-copy", id=id, policy=reference)]


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


def scalar_rate(case: Benchmark, steps: int) -> float:
    """Steps per second of ``gym.make``, resets included."""
    assert case.act is not None, f"{case.name}: says not how to act"
    env = gym.make(case.id, **case.parameters)
    observation, _ = env.reset(seed=0)
    for _ in range(WARM_UP):  # the first steps, and the first end, compile what is not cached
        observation, _, terminated, truncated, _ = env.step(case.act(observation))
        if terminated or truncated:
            break
    observation, _ = env.reset(seed=0)
    spent = 0.0
    for _ in range(steps):
        action = case.act(observation)
        begin = perf_counter()
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            observation, _ = env.reset()
        spent += perf_counter() - begin
    return steps / spent


def vector_rate(case: Benchmark, steps: int) -> tuple[float, float, int]:
    """Environment steps per second of ``gym.make_vec``.

    Returns:
        the rate within ``step``, the rate of the whole loop with its policy, and the episodes that ended.
    """
    assert case.act is not None, f"{case.name}: says not how to act"
    env = gym.make_vec(case.id, num_envs=case.num_envs, autoreset_mode=case.autoreset, **case.parameters)
    observation, _ = env.reset(seed=0)
    for _ in range(20):
        observation, *_ = env.step(case.act(observation))
    spent, episodes = 0.0, 0
    start = perf_counter()
    for _ in range(steps):
        actions = case.act(observation)
        begin = perf_counter()
        observation, _, terminated, truncated, _ = env.step(actions)
        spent += perf_counter() - begin
        episodes += int(np.count_nonzero(terminated | truncated))
    count = steps * case.num_envs
    return count / spent, count / (perf_counter() - start), episodes


def episode(case: Benchmark) -> tuple[float, int]:
    """Seconds and steps of a baseline's episode, zero-copy; the second of two runs."""
    problem = get_problem(case.id)
    policy = make_policy(case.policy, problem.name)
    env = make_env(case.id, acting_parameters(problem, case.id, case.parameters, policy))
    timed_episode(env, policy)
    count, deciding, rest = timed_episode(env, policy)
    return deciding + rest, count


def timed_episode(env: Any, policy: Any) -> tuple[int, float, float]:
    """The first episode of seed 0: decisions, seconds of the policy for them, and seconds of all else."""
    begin = perf_counter()
    played = list(steps(env, policy))
    deciding = sum(step.seconds for step in played)
    return len(played) - 1, deciding, perf_counter() - begin - deciding


def cold_start(id: str) -> dict[str, float]:
    """Seconds of ``import schedgym`` and of make, reset and first step, without and with numba's cache."""
    program = (
        "import sys, time; a = time.perf_counter(); import schedgym; b = time.perf_counter()\n"
        "import gymnasium as gym; env = gym.make(sys.argv[1]); env.reset(seed=0)\n"
        "env.step(env.action_space.sample()); c = time.perf_counter(); print(b - a, c - b)"
    )
    times: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in ("cold", "cached"):
            done = subprocess.run(
                [sys.executable, "-c", program, id],
                env=os.environ | {"NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
            )
            times["import"], times[f"first step, {name}"] = map(float, done.stdout.split())
    return times


class Report:
    """Prints lines and keeps them: ``rows`` are those that were added, ``id`` the environment of the next."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.id = ""

    def begin(self, id: str) -> None:
        """Print the environment id of the rows that follow."""
        self.id = id
        print(id)

    def add(self, what: str, values: list[float], unit: str, target: str, **more: Any) -> float:
        """Report the median of ``values``, and return it."""
        value = statistics.median(values)
        row = {"id": self.id, "what": what, "value": value, "unit": unit, "target": target, "runs": values}
        self.rows.append(row | more)
        shown = f"{value:,.0f}" if value >= 1000 else f"{value:.3f}"
        extra = "".join(f"  {k} {v if isinstance(v, str) else f'{v:,}'}" for k, v in more.items())
        print(f"{what:<92} {shown:>11} {unit:<8} target {target:<9}{extra}", flush=True)
        return value


def main(
    name: str | None = None,
    quick: bool = False,
    json: str | Path | None = None,
    listed: Callable[[Problem, str], list[Benchmark]] = cases,
) -> dict[str, Any]:
    """Measure, print a table, and write JSON if a file is named.

    Args:
        name: an environment id or a problem; None: all of them.
        quick: a tenth of the steps, one repetition.
        json: file for the results.
        listed: the benchmarks of an environment id.

    Raises:
        UnknownName: for a name that is neither.
    """
    repetitions = 1 if quick else REPETITIONS
    print("one process, one core but for threads; medians of", repetitions, "runs; autoreset NextStep")
    report = Report()
    for problem, id in chosen(name):
        report.begin(id)
        _measure(id, listed(problem, id), report, repetitions, quick)
    return finish("benchmark", report.rows, json)


def _measure(id: str, chosen: list[Benchmark], report: Report, repetitions: int, quick: bool) -> None:
    for what, seconds in cold_start(id).items():
        target = {"import": "<= 0.5", "first step, cold": "<= 10", "first step, cached": "<= 1"}[what]
        report.add(f"{what} [subprocess]", [seconds], "s", target)
    chosen = [case for case in chosen if not (quick and case.slow)]
    scalar = [case for case in chosen if not case.policy and not case.num_envs]
    if scalar:
        base: list[float] = []
        rates: list[list[float]] = [[] for _ in scalar]
        for _ in range(repetitions):  # in turn: they meet the same machine
            base.append(cartpole(_steps(SCALAR_STEPS, quick, QUICK_SCALAR)))
            for case, measured in zip(scalar, rates, strict=True):
                measured.append(scalar_rate(case, _steps(case.steps or SCALAR_STEPS, quick, QUICK_SCALAR)))
        unit = report.add(CARTPOLE, base, "steps/s", "-")
        for case, measured in zip(scalar, rates, strict=True):
            ratio = round(statistics.median(measured) / unit, 2)
            report.add(case.name, measured, "steps/s", case.target, ratio=ratio)
    for case in chosen:
        if case.num_envs:
            steps = _steps(case.steps or VECTOR_STEPS, quick, QUICK_VECTOR)
            runs = [vector_rate(case, steps) for _ in range(repetitions)]
            report.add(
                case.name,
                [run[0] for run in runs],
                "steps/s",
                case.target,
                episodes=runs[0][2],
                loop=round(statistics.median(run[1] for run in runs)),
            )
    for case in chosen:
        if case.policy:
            episodes = [episode(case) for _ in range(repetitions)]
            times = [seconds for seconds, _ in episodes]
            report.add(case.name, times, "s", case.target, steps=episodes[0][1])


def _steps(full: int, quick: bool, share: int) -> int:
    return max(1, full // share) if quick else full
