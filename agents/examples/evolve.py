"""Genetic programming over expressions on a suite's set ``train``: a search of programs without a model.

``python -m schedgym.agents.examples.evolve --suite QueueDelay-1 --seconds 600``

An individual is a score of jobs (:class:`schedgym.core.score_policy.ScorePolicy`), a tree of at most 40 nodes
over the columns of the observation. Its fitness is the mean score on instances of the set ``train``. Of the
best in training the best on ``validation`` is printed. It needs DEAP, of the extra ``dev``.
"""

from __future__ import annotations

import argparse
import functools
import random
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.error import Error as GymnasiumError

from schedgym.board.scores import FAILED, facts_of, score_of
from schedgym.board.suites import load_suite
from schedgym.core.score_policy import ScorePolicy
from schedgym.errors import InvalidParameter, SchedgymError, UnknownName
from schedgym.evaluation.episodes import make_env, play
from schedgym.evaluation.plan import acting_parameters
from schedgym.extras import require

MOST_NODES, POPULATION = 40, 60
FINALISTS = 10  # individuals that are compared on the set validation
#: how operators and functions of one and of two arguments are written
UNARY = ("(-{})", "sqrt(abs({}))", "log(1 + abs({}))")
BINARY = ("({} + {})", "({} - {})", "({} * {})", "({} / {})", "max({}, {})", "min({}, {})")


class Trials:
    """Plays expressions in this process, on about ``count`` instances of these sizes of a suite's set."""

    def __init__(self, suite: str, set: str, sizes: Sequence[str], count: int) -> None:
        if unknown := [size for size in sizes if size not in load_suite(suite).sizes]:
            raise UnknownName("size", unknown[0], load_suite(suite).sizes)
        found = [instance for instance in load_suite(suite).instances(set) if instance.size in sizes]
        self._instances = found[:: max(1, len(found) // count)]
        self._workloads, self._facts = [own.workload() for own in self._instances], facts_of(self._instances)
        self._environments: dict[str, Any] = {}  # size -> its environment

    def score(self, text: str) -> float:
        """The mean score of an expression on all instances; one in which it leaves work undone costs."""
        policy, scores = ScorePolicy(f"score: {text}"), []
        for instance, workload, facts in zip(self._instances, self._workloads, self._facts, strict=True):
            if instance.size not in self._environments:
                used = acting_parameters(instance.problem, instance.id, instance.parameters, policy)
                self._environments[instance.size] = make_env(instance.id, used)
            played = play(self._environments[instance.size], policy, workload=workload, check=False)
            value, sign = played.metrics[instance.objective.name], instance.objective.sign
            scores.append(FAILED if played.truncated else score_of(value, *facts, sign))
        return float(np.mean(scores))


def columns_of(suite: str) -> list[str]:
    """The names that expressions may have: those of what is seen in every size of a suite."""
    found: list[list[str]] = []
    for size in load_suite(suite).sizes:
        try:
            Trials(suite, "train", [size], 1).score("any_expression")
        except UnknownName as error:
            found.append(list(error.known))
    return [name for name in found[0] if all(name in names for names in found)]


def text_of(tree: Sequence[Any]) -> str:
    """The expression of an individual, whose nodes stand in prefix order."""
    texts: list[str] = []
    for node in reversed(tree):
        if node.arity:
            texts.append(node.name.format(*(texts.pop() for _ in range(node.arity))))
        else:
            texts.append(f"{node.value:.3g}" if isinstance(node.value, float) else node.value)
    return texts[0]


def make_toolbox(trials: Trials, columns: Sequence[str], seed: int) -> Any:
    """DEAP's toolbox: how individuals are made, varied, chosen and evaluated."""
    base, creator, gp, tools = (require(f"deap.{name}", "dev") for name in ("base", "creator", "gp", "tools"))
    random.seed(seed)  # DEAP draws from Python's own generator
    nodes = gp.PrimitiveSet("score", 0)
    for form in (*UNARY, *BINARY):
        nodes.addPrimitive(form.format, 1 + (form in BINARY), form)  # only written, never called
    for name in columns:
        nodes.addTerminal(name, name)
    nodes.addEphemeralConstant("number", functools.partial(random.uniform, 0.0, 4.0))
    creator.create("Fitness", base.Fitness, weights=(1.0,))
    creator.create("Individual", gp.PrimitiveTree, fitness=creator.Fitness)
    toolbox = base.Toolbox()

    @functools.cache
    def fitness(text: str) -> tuple[float]:
        try:
            return (trials.score(text),)
        except InvalidParameter:  # longer than an expression may be
            return (-np.inf,)

    toolbox.register("expression", gp.genHalfAndHalf, pset=nodes, min_=0, max_=3)
    toolbox.register("individual", tools.initIterate, creator.Individual, toolbox.expression)
    toolbox.register("population", tools.initRepeat, list, toolbox.individual)
    toolbox.register("mate", gp.cxOnePoint)
    toolbox.register("mutate", gp.mutUniform, expr=toolbox.expression, pset=nodes)
    toolbox.register("select", tools.selTournament, tournsize=4)
    toolbox.register("evaluate", lambda individual: fitness(text_of(individual)))
    for name in ("mate", "mutate"):
        toolbox.decorate(name, gp.staticLimit(key=len, max_value=MOST_NODES))
    return toolbox


def search(given: argparse.Namespace) -> str:
    """Print and return the best expression."""
    algorithms, tools = require("deap.algorithms", "dev"), require("deap.tools", "dev")
    if not (0 < given.seconds < np.inf and given.instances > 0):
        raise InvalidParameter("seconds and instances: must be above 0")
    trials = Trials(given.suite, "train", given.sizes, given.instances)
    finals = Trials(given.suite, "validation", given.sizes, given.instances)
    toolbox = make_toolbox(trials, columns_of(given.suite), given.seed)
    population, best = toolbox.population(POPULATION), tools.HallOfFame(FINALISTS)
    began = time.process_time()
    while time.process_time() - began < given.seconds:
        population, _ = algorithms.eaMuPlusLambda(
            population, toolbox, POPULATION, POPULATION, 0.6, 0.35, 1, halloffame=best, verbose=False
        )
        print(f"{time.process_time() - began:6.0f} s: {best[0].fitness.values[0]:.4f}  {text_of(best[0])}")
    text = max(map(text_of, best), key=finals.score)
    test = f'schedgym board run "score: {text}" --suite {given.suite}'
    print(f"score on validation {finals.score(text):.4f}; on test:\n{test}")
    return text


def main(arguments: Sequence[str] | None = None) -> str:
    """Search as the arguments say; a mistake in them is one line, and the exit status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="QueueDelay-1")
    parser.add_argument("--seconds", type=float, default=600.0, help="CPU time")
    parser.add_argument("--instances", type=int, default=10, help="of train, and of validation")
    parser.add_argument("--sizes", nargs="+", default=["small", "loaded"])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    try:
        return search(given)
    except (SchedgymError, GymnasiumError) as error:
        parser.exit(2, f"error: {given.suite}: {error}\n")


if __name__ == "__main__":
    main()
