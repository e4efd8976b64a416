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

from schedgym.board.entries import known
from schedgym.board.scores import score_of, usual_references
from schedgym.board.suites import Instance, load_suite
from schedgym.core.score_policy import ScorePolicy
from schedgym.envs import SchedulingEnv
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.episodes import make_env, play
from schedgym.evaluation.plan import acting_parameters
from schedgym.extras import require

MOST_NODES = 40
POPULATION = 60
FINALISTS = 10  # individuals that are compared on the set validation
#: how operators and functions of one and of two arguments are written
UNARY = ("(-{})", "sqrt(abs({}))", "log(1 + abs({}))")
BINARY = ("({} + {})", "({} - {})", "({} * {})", "({} / {})", "max({}, {})", "min({}, {})")


class Trials:
    """Plays expressions on instances of a suite, in this process."""

    def __init__(self, instances: Sequence[Instance]) -> None:
        self.instances = instances
        self._environments: dict[str, SchedulingEnv] = {}
        self._workloads = [instance.workload() for instance in instances]
        facts = [known(instance) for instance in instances]
        self._facts = list(zip(facts, usual_references(instances, facts), strict=True))

    def play(self, number: int, policy: ScorePolicy) -> float:
        """The objective that an expression reaches in an instance."""
        instance = self.instances[number]
        if instance.size not in self._environments:
            used = acting_parameters(instance.problem, instance.id, instance.parameters, policy)
            self._environments[instance.size] = make_env(instance.id, used)
        env, own = self._environments[instance.size], self._workloads[number]
        return play(env, policy, workload=own, check=False).metrics[instance.objective.name]

    def score(self, text: str) -> float:
        """The mean score of an expression on all instances."""
        policy = ScorePolicy(f"score: {text}")
        scores = [
            score_of(self.play(number, policy), *self._facts[number], instance.objective.sign)
            for number, instance in enumerate(self.instances)
        ]
        return float(np.mean(scores))

    def columns(self) -> list[str]:
        """The names that expressions may have."""
        try:
            self.play(0, ScorePolicy("score: no_column"))
        except UnknownName as error:
            return list(error.known)
        raise AssertionError("no_column is a column")


def text_of(tree: Sequence[Any]) -> str:
    """The expression of an individual, whose nodes stand in prefix order."""
    texts: list[str] = []
    for node in reversed(tree):
        if node.arity:
            texts.append(node.name.format(*(texts.pop() for _ in range(node.arity))))
        else:
            texts.append(f"{node.value:.3g}" if isinstance(node.value, float) else node.value)
    return texts[0]


def make_toolbox(trials: Trials, seed: int) -> Any:
    """DEAP's toolbox: how individuals are made, varied, chosen and evaluated."""
    base, creator, gp, tools = (require(f"deap.{name}", "dev") for name in ("base", "creator", "gp", "tools"))
    random.seed(seed)  # DEAP draws from Python's own generator
    nodes = gp.PrimitiveSet("score", 0)
    for form in (*UNARY, *BINARY):
        nodes.addPrimitive(form.format, 1 + (form in BINARY), form)  # only written, never called
    for name in trials.columns():
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


def main(arguments: Sequence[str] | None = None) -> str:
    """Print and return the best expression."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="QueueDelay-1")
    parser.add_argument("--seconds", type=float, default=600.0, help="CPU time")
    parser.add_argument("--instances", type=int, default=10, help="of train, and of validation")
    parser.add_argument("--sizes", nargs="+", default=["small", "loaded"])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    algorithms, tools = require("deap.algorithms", "dev"), require("deap.tools", "dev")
    sets = []
    for name in ("train", "validation"):
        own = [i for i in load_suite(given.suite).instances(name) if i.size in given.sizes]
        sets.append(Trials(own[:: max(1, len(own) // given.instances)]))
    trials, finals = sets
    toolbox = make_toolbox(trials, given.seed)
    population, best = toolbox.population(POPULATION), tools.HallOfFame(FINALISTS)
    began = time.process_time()
    while time.process_time() - began < given.seconds:
        population, _ = algorithms.eaMuPlusLambda(
            population, toolbox, POPULATION, POPULATION, 0.6, 0.35, 1, halloffame=best, verbose=False
        )
        print(f"{time.process_time() - began:6.0f} s: {best[0].fitness.values[0]:.4f}  {text_of(best[0])}")
    text = max(map(text_of, best), key=finals.score)
    print(f"score on validation {finals.score(text):.4f}; on test:")
    print(f'schedgym board run "score: {text}" --suite {given.suite}')
    return text


if __name__ == "__main__":
    main()
