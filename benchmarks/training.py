"""Speed of trainings: the measurements and the output of ``python -m benchmarks training``.

Every algorithm with a shipped configuration for an environment id trains for the same CPU time: PPO of
stable-baselines3, the PPO of this package, and the compiled search, in turn, so that they meet the same
machine. Each starts as its configuration says, but without imitation, and uses one thread. A trained step is
a decision that was played and learned from; the search plays decisions to compare candidates and to validate
them, all of which count, and has no gradient to compute. The objective is that of the agent at the end, on
episodes that no training plays.

The share of the machine's floating-point limit is the arithmetic of the matrix products that a training
carried out, over what a product of two large matrices reaches in the same time.
"""

from __future__ import annotations

import dataclasses
import statistics
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

from schedgym.agents.agent_policy import AgentPolicy
from schedgym.agents.config import ALGORITHMS, Config, list_configs, load_config
from schedgym.agents.files import Agent
from schedgym.agents.options import EvaluationOptions
from schedgym.agents.training import learn, metadata_of
from schedgym.core.tokens import tokens_of
from schedgym.errors import InvalidParameter
from schedgym.evaluation.bench import Report, chosen, finish
from schedgym.evaluation.runner import evaluate
from schedgym.extras import require

SECONDS, QUICK_SECONDS = 60.0, 4.0  # of CPU for each training
FIRST = 0.1  # share of them for the run that measures how much a training does in the rest
REPETITIONS = 3
EPISODES, QUICK_EPISODES = 128, 16
SIDE = 1024  # of the matrices whose product tells the limit


class Run(NamedTuple):
    """One training: its environment steps, its seconds of CPU, and its agent."""

    steps: int
    seconds: float
    agent: Agent


def configurations(id: str) -> dict[str, Config]:
    """Algorithm -> the shipped configuration of it for an environment id, without imitation."""
    found: dict[str, Config] = {}
    for name in list_configs():
        config = load_config(name)
        if config.id == id and config.algorithm not in found:
            found[config.algorithm] = dataclasses.replace(
                config,
                imitation=None,
                evaluation=EvaluationOptions.build(every=10**12, episodes=1, keep="last"),
            )
    return {algorithm: found[algorithm] for algorithm in ALGORITHMS if algorithm in found}


def _learn(config: Config, amount: int) -> Run:
    """Train for a number of steps, or of generations of a search."""
    begin = process_time()
    if config.algorithm == "cma":
        limits: dict[str, Any] = {
            "generations": amount,
            "validate_every": 10**6,
            "patience": 10**6,
            "validation_episodes": 2,
        }
        searched = learn(dataclasses.replace(config, search=dataclasses.replace(config.search, **limits)))
        agent = Agent(searched.weights, metadata_of(config, searched, ""), "")
        return Run(searched.decisions, process_time() - begin, agent)
    config = dataclasses.replace(config, steps=amount)
    result = learn(config)
    return Run(
        result.steps, process_time() - begin, Agent(result.weights, metadata_of(config, result, ""), "")
    )


def train_for(config: Config, seconds: float) -> Run:
    """Train for about so many seconds of CPU, after a shorter run that tells how much can be done in them."""
    amount = 1 if config.algorithm == "cma" else config.ppo.n_steps * config.num_envs
    _learn(config, amount)  # imports, and compiles
    while True:
        begin = process_time()
        _learn(config, amount)
        spent = process_time() - begin
        if spent >= FIRST * seconds:
            return _learn(config, max(round(amount * seconds / spent), 1))
        amount = max(2 * amount, round(1.2 * amount * FIRST * seconds / spent))


def product_rate() -> float:
    """Floating-point operations per second of a product of two matrices in float32 on one thread."""
    torch: Any = require("torch", "agents")
    one_thread = require("schedgym.agents.gradient", "agents").one_thread
    with one_thread():
        first = torch.ones((SIDE, SIDE))
        first @ first
        begin, count = perf_counter(), 0
        while perf_counter() - begin < 1.0:
            first @ first
            count += 1
        return 2.0 * SIDE**3 * count / (perf_counter() - begin)


def arithmetic(config: Config, steps: int) -> float:
    """Floating-point operations in matrix products for each trained step of a training with gradients."""
    counter = require("torch.utils.flop_counter", "agents").FlopCounterMode(display=False)
    with counter:
        run = _learn(config, steps)
    return float(counter.get_total_flops()) / run.steps


def _objective(config: Config, run: Run, episodes: int) -> float:
    policy = AgentPolicy(run.agent, config.algorithm)
    acting = tokens_of(config.id).acting
    own = {name: value for name, value in config.parameters.items() if name not in acting}
    frame = evaluate(config.id, {config.algorithm: policy}, episodes=episodes, seed=0, parameters=own)
    return float(frame[frame.metric == config.metric.name].value.mean())


def main(
    name: str | None = None,
    quick: bool = False,
    json: str | Path | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Measure, print a table, and write JSON if a file is named.

    Args:
        name: an environment id or a problem; None: all that have configurations of two algorithms or more.
        quick: a few seconds for each training, one repetition.
        json: file for the results.
        seconds: of CPU for each training; None: 60, or 4 in a quick run.

    Raises:
        UnknownName: for a name that is neither.
        InvalidParameter: for an id without such configurations.
        gymnasium.error.DependencyNotInstalled: without the extra ``agents``.
    """
    found = {id: configurations(id) for _, id in chosen(name)}
    found = {id: configs for id, configs in found.items() if len(configs) > 1}
    if not found:
        raise InvalidParameter(
            f"{name}: has shipped configurations of one algorithm only: nothing to compare"
        )
    seconds = seconds or (QUICK_SECONDS if quick else SECONDS)
    repetitions = 1 if quick else REPETITIONS
    print(f"one process, one thread; {seconds:.0f} s of CPU for each training; medians of {repetitions} runs")
    report = Report()
    for id, configs in found.items():
        report.begin(id)
        _measure(configs, report, seconds, repetitions, QUICK_EPISODES if quick else EPISODES)
    return finish("training", report.rows, json)


def _measure(
    configs: dict[str, Config], report: Report, seconds: float, repetitions: int, episodes: int
) -> None:
    rates: dict[str, list[float]] = {algorithm: [] for algorithm in configs}
    objectives: dict[str, list[float]] = {algorithm: [] for algorithm in configs}
    limits = []
    for repetition in range(repetitions):  # in turn: they meet the same machine
        limits.append(product_rate())
        for algorithm, config in configs.items():
            run = train_for(dataclasses.replace(config, seed=config.seed + repetition), seconds)
            rates[algorithm].append(run.steps / run.seconds)
            objectives[algorithm].append(_objective(config, run, episodes))
    limit = report.add("product of two matrices, float32", [value / 1e9 for value in limits], "GFLOP/s", "-")
    base = next((a for a in configs if a.startswith("sb3-")), None)
    metric = next(iter(configs.values())).metric.name
    for algorithm, config in configs.items():
        rate = statistics.median(rates[algorithm])
        more: dict[str, Any] = (
            {} if base is None else {"ratio": round(rate / statistics.median(rates[base]), 2)}
        )
        if algorithm != "cma":
            done = arithmetic(config, 2 * config.ppo.n_steps * config.num_envs)
            more |= {"kFLOP": round(done / 1e3), "limit": f"{100.0 * done * rate / (limit * 1e9):.2g}%"}
        target = ">= 5 x" if algorithm == "ppo" and base is not None else "-"
        report.add(f"{algorithm}, trained steps per CPU second", rates[algorithm], "steps/s", target, **more)
    for algorithm in configs:
        report.add(f"{algorithm}, {metric} after {seconds:.0f} s", objectives[algorithm], "", "-")
