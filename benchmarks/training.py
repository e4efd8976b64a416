"""What each algorithm makes of CPU time: ``python -m benchmarks training ID --json docs/training/ID.json``.

The compiled search, the PPO of this package and that of stable-baselines3 train in turn, so that they meet
the same machine, on one thread and from nothing: with neither imitation nor a rule to begin with, all in the
first domain of the search. The learning rate of PPO falls over the whole time. The objective is that of the
weights at each mark, whether or not earlier ones were better, on episodes that no training plays; beside it
stands the best of the id's policies, with tuned options, on the same episodes. A trained step is a decision
that was played and learned from; the search plays decisions to compare candidates, all of which count, and
has no gradient to compute.

The share of the machine's floating-point limit is the arithmetic of the matrix products that a training
carried out, over what a product of two large matrices reaches in the same time.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from schedgym.agents.agent_policy import AgentPolicy
from schedgym.agents.config import ALGORITHMS, Config, config_for, load_config
from schedgym.agents.files import Agent, describe
from schedgym.agents.search import Search
from schedgym.agents.training import make_training
from schedgym.core.policy import list_policies, make_policy
from schedgym.core.problem import get_problem
from schedgym.core.tokens import tokens_of
from schedgym.evaluation.bench import Report, chosen, finish
from schedgym.evaluation.plan import resolve_policies
from schedgym.evaluation.runner import evaluate
from schedgym.evaluation.tuned import SHIPPED
from schedgym.extras import require

MARKS = (0.0, 10.0, 60.0)  # seconds of CPU at which the objective is measured, besides at the end
SECONDS, QUICK_SECONDS = 300.0, 4.0  # of CPU for each training
REPETITIONS = 3
EPISODES, QUICK_EPISODES = 48, 4
SEED = 424242  # of the episodes
SIDE = 1024  # of the matrices whose product tells the limit


class State(NamedTuple):
    """A training so far: its environment steps, its seconds of CPU, and its weights."""

    steps: int
    seconds: float
    weights: dict[str, Any]


def configurations(id: str) -> dict[str, Config]:
    """Algorithm -> its shipped configuration for an environment id, but from nothing."""
    found = {algorithm: load_config(config_for(id, algorithm)) for algorithm in ALGORITHMS}
    search = found["cma"]
    own = next(iter(search.domains.values())).parameters if search.domains else {}
    found["cma"] = dataclasses.replace(
        search,
        parameters={**search.parameters, **own},
        domains={},
        scorer=dataclasses.replace(search.scorer, skip={}),
        search=dataclasses.replace(
            search.search, generations=10**6, validate_every=10**6, validation_episodes=2
        ),
    )
    return {algorithm: dataclasses.replace(config, imitation=None) for algorithm, config in found.items()}


def train(config: Config, seconds: float) -> Iterator[State]:
    """The states of a training before and after each update or generation, without an end.

    Args:
        config: configuration of the training.
        seconds: of CPU over which the learning rate falls.
    """
    began, spent = process_time(), 0.0
    training: Any
    if config.algorithm == "cma":
        training = Search(config, None, lambda point: None)
        training.begin(resume=False)
    else:
        training = make_training(config)
        training.start()
    while True:
        spent += process_time() - began
        if config.algorithm == "cma":
            mean = training.strategy.mean.astype("float32")
            yield State(training.decisions, spent, {"theta": mean, **training.statistics})
            began = process_time()
            training.generation()
        else:
            yield State(training.steps, spent, training.network.get_weights())
            began = process_time()
            if training.steps:
                training.config = dataclasses.replace(config, steps=round(training.steps * seconds / spent))
            training.update()


def until(config: Config, marks: list[float]) -> Iterator[State]:
    """The first state of a training after each of these seconds of CPU, without imports and compilation."""
    warm_up = train(config, marks[-1])
    next(warm_up), next(warm_up)
    states = train(config, marks[-1])
    for mark in marks:
        yield next(state for state in states if state.seconds >= mark)


def product_rate() -> float:
    """Floating-point operations per CPU second of a product of two matrices in float32 on one thread."""
    torch: Any = require("torch", "agents")
    one_thread = require("schedgym.agents.gradient", "agents").one_thread
    with one_thread():
        first = torch.ones((SIDE, SIDE))
        first @ first
        begin, count = process_time(), 0
        while process_time() - begin < 1.0:
            first @ first
            count += 1
        return 2.0 * SIDE**3 * count / (process_time() - begin)


def arithmetic(config: Config) -> float:
    """Floating-point operations in matrix products for each trained step of a training with gradients."""
    counter = require("torch.utils.flop_counter", "agents").FlopCounterMode(display=False)
    states = train(config, 1.0)
    next(states)
    with counter:
        state = next(states)
    return float(counter.get_total_flops()) / state.steps


def objective(config: Config, state: State, episodes: int) -> float:
    """The mean objective of a training's weights."""
    network: dict[str, Any] = {
        "form": "tokens",
        "width": config.network.width,
        "rounds": config.network.rounds,
    }
    if config.algorithm == "cma":
        network = {"form": "scorer", **config.to_dict()["scorer"]}
    policy = AgentPolicy(Agent(state.weights, describe(config, network, None, ""), ""), config.algorithm)
    return means(config, {config.algorithm: policy}, episodes)[config.algorithm]


def means(config: Config, policies: dict[str, Any], episodes: int) -> dict[str, float]:
    """Policy -> its mean objective in what a configuration trains for."""
    given = given_of(config)
    frame = evaluate(config.id, policies, episodes, SEED, parameters=given)
    values = frame[frame.metric == config.metric.name].groupby("policy").value.mean()
    return {str(name): float(value) for name, value in values.items()}


def given_of(config: Config) -> dict[str, Any]:
    """The parameters of a configuration that are part of the problem, and not the agent's own."""
    own = (*tokens_of(config.id).acting, "normalize")
    return {name: value for name, value in config.parameters.items() if name not in own}


def main(
    name: str | None = None,
    quick: bool = False,
    json: str | Path | None = None,
    seconds: float | None = None,
    repetitions: int = REPETITIONS,
) -> dict[str, Any]:
    """Measure, print a table, and write JSON if a file is named.

    Args:
        name: an environment id or a problem; None: all.
        quick: a few seconds for each training, one repetition.
        json: file for the results.
        seconds: of CPU for each training; None: 300, or 4 in a quick run.
        repetitions: trainings of each algorithm, with consecutive seeds.

    Raises:
        UnknownName: for a name that is neither.
        gymnasium.error.DependencyNotInstalled: without the extra ``agents``.
    """
    seconds = seconds or (QUICK_SECONDS if quick else SECONDS)
    repetitions, episodes = (1, QUICK_EPISODES) if quick else (repetitions, EPISODES)
    marks = [*(mark for mark in MARKS if mark < seconds), seconds]
    print(f"one process, one thread; {seconds:.0f} s of CPU for each training; medians of {repetitions} runs")
    report = Report()
    for _, id in chosen(name):
        report.begin(id)
        _measure(configurations(id), report, marks, repetitions, episodes)
        finish("training", report.rows, json)  # what is measured stays if the rest is cut off
    return finish("training", report.rows, json)


def _measure(
    configs: dict[str, Config], report: Report, marks: list[float], repetitions: int, episodes: int
) -> None:
    rates: dict[str, list[float]] = {algorithm: [] for algorithm in configs}
    reached: dict[tuple[str, float], list[float]] = {(own, mark): [] for own in configs for mark in marks}
    limits = []
    for repetition in range(repetitions):  # in turn: they meet the same machine
        limits.append(product_rate())
        for algorithm, config in configs.items():
            seeded = dataclasses.replace(config, seed=config.seed + repetition)
            for mark, state in zip(marks, until(seeded, marks), strict=True):
                reached[algorithm, mark].append(objective(config, state, episodes))
            rates[algorithm].append(state.steps / state.seconds)
    limit = report.add("product of two matrices, float32", [value / 1e9 for value in limits], "GFLOP/s", "-")
    base = statistics.median(rates["sb3-ppo"])
    for algorithm, config in configs.items():
        rate = statistics.median(rates[algorithm])
        more: dict[str, Any] = {"ratio": round(rate / base, 2)}
        if algorithm != "cma":
            done = arithmetic(config)
            more |= {"kFLOP": round(done / 1e3), "limit": f"{100.0 * done * rate / (limit * 1e9):.2g}%"}
        target = ">= 5 x" if algorithm == "ppo" else "-"
        report.add(f"{algorithm}, trained steps per CPU second", rates[algorithm], "steps/s", target, **more)
    metric, problem = config.metric, get_problem(config.id)
    for (algorithm, mark), values in reached.items():
        what = f"{algorithm}, {metric.name} after {mark:.0f} s"
        report.add(what, values, metric.unit, "-", trainer=algorithm, seconds=mark)
    rivals = resolve_policies(problem, config.id, None, {}, given_of(config), [{}], SHIPPED).acting
    drawn = ["random"] * any(spec.name == f"{problem.name}/random" for spec in list_policies())
    found = means(config, rivals | {name: make_policy(name, problem.name) for name in drawn}, episodes)
    best = min(found, key=lambda name: metric.sign * found[name])
    for name in dict.fromkeys((best, *drawn)):
        report.add(f"{name}, {metric.name}", [found[name]], metric.unit, "-", policy=name)
