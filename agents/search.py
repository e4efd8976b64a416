"""Gradient-free training: CMA-ES over the parameters of a scorer.

Every generation all candidates play the same new episodes, side by side in one native vector environment, and
so does the start (the heuristic of the skip connection), which their results are compared with. Now and then
the mean of the search distribution plays the validation episodes; the best of these becomes the agent, and
the start itself if none is better.

With several domains (:mod:`schedgym.agents.domains`) this happens in each of them, and the fitness is the
weighted mean; the columns are measured over all domains of the training together.

Seeds. Generation g = 1, 2, ... of a training with seed s plays episodes g E, g E + 1, ... of the seed
TRAINING_SEEDS + s of the environment, of which the first ones also measure the columns. Validations play
episodes of VALIDATION_SEED. Evaluations take seeds below, and training with gradients takes seeds above, so
no episode is met twice (where episodes are drawn: those of a trace or a workload file are the same for every
seed).

A checkpoint holds what the candidates scored. From it the search is repeated up to where it was, without
playing: so it holds no code, and a training that was killed goes on as if it had not been. It loses at most
the generations since the last checkpoint.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.agents.checkpoint import Arrays, TrainingRecord
from schedgym.agents.config import Config
from schedgym.agents.domains import Domain, best_baseline, episodes_of_part
from schedgym.agents.files import describe, strip
from schedgym.agents.scorer import Scorer, statistics_of
from schedgym.agents.simulation import make_simulator, play_episodes, play_scored
from schedgym.agents.views import layout_of
from schedgym.core.arrays import Flags, Floats, Floats32, Integers
from schedgym.core.random import EVALUATION_SEEDS, VALIDATION_SEED
from schedgym.errors import InvalidParameter
from schedgym.extras import require

#: the environment's seed in training is this plus the training's seed, which is below 2^32
TRAINING_SEEDS = EVALUATION_SEEDS

SAMPLES = 8  # every so many decisions the columns are measured
STATISTICS = "statistics/"
FLOOR = 0.01  # added to objectives before their logarithm, as a share of the reference's mean
NEEDED = ("fitness", "mean", "best/theta", "decisions")  # in a checkpoint


@dataclasses.dataclass(frozen=True)
class Point:
    """One validation.

    Attributes:
        generation: number of generations before it.
        seconds: since the start of the training.
        objective: mean over the validation episodes, in the objective's unit.
        change: of the objective from the start's, or from that of the best baseline where the configuration
            names any, as its ``fitness`` measures it; below 0 is better.
        sigma: spread of the search.
        domains: the same change in each domain, in the order of the configuration; empty for only one.
    """

    generation: int
    seconds: float
    objective: float
    change: float
    sigma: float
    domains: list[float] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class SearchResult:
    """The result of a training.

    Attributes:
        weights: weights of the agent file: the parameters, and the statistics of the columns.
        curve: the validations; the first is the start.
        best: the validation whose parameters are kept.
        inputs: names of the columns that the scorer sees; see :attr:`Scorer.inputs`.
        stopped: the reason for its end.
        seconds: time that it took [s].
        decisions: environment steps that were played.
        begun: as of :class:`~schedgym.agents.checkpoint.TrainingRecord`.
    """

    weights: Arrays
    curve: tuple[Point, ...]
    best: Point
    inputs: dict[str, list[str]]
    stopped: str
    seconds: float
    decisions: int
    begun: dict[str, Any]


class Rollouts:
    """Rollouts in which scorers with different parameters play the same episodes side by side.

    Args:
        id: environment id.
        parameters: parameters of the environment.
        num_envs: episodes played at a time.
        part: part of a trace whose windows are played, see :data:`~schedgym.agents.domains.PARTS`; "": all.

    Attributes:
        layout: layout of the scores.
        objective: name of the objective.
        sign: 1 where less of it is better, else -1.
        decisions: environment steps that were played.
    """

    def __init__(self, id: str, parameters: Mapping[str, Any], num_envs: int, part: str = "") -> None:
        self.simulator = simulator = make_simulator(id, parameters, num_envs)
        problem = simulator.problem
        one = {name: array[0] for name, array in simulator.observation.items()}
        self.layout = layout_of(problem.name, simulator.interface.view, one)
        metric = problem.metric(problem.objective_of(simulator.parameters))
        self.objective, self.sign = metric.name, metric.sign
        self.num_envs, self.part, self.decisions = num_envs, part, 0

    def episodes(self, seed: int, numbers: Integers) -> Integers:
        """The episodes of a seed that are played as the first, second, ... of ``numbers``."""
        return episodes_of_part(self.simulator, self.part, seed, numbers)

    def play(
        self,
        scorer: Scorer,
        thetas: Floats32,
        seed: int,
        first: int,
        watch: Callable[[Arrays, Flags], None] | None = None,
    ) -> Floats:
        """The objective of every candidate in every episode.

        Args:
            scorer: decides.
            thetas: parameters of the candidates [P, size]; P divides the number of environments.
            seed: seed of the environments.
            first: each candidate plays the episodes first, first + 1, ... of that seed (of a part of a trace:
                of that part).
            watch: called with the observations of each step, and the scores that are wanted.

        Returns:
            [P, episodes], in the objective's unit.
        """
        share, rest = divmod(self.num_envs, len(thetas))
        if rest:
            raise InvalidParameter(f"thetas: {len(thetas)} do not divide {self.num_envs} environments")

        def act(observation: Arrays, live: Flags) -> Any:
            wanted = scorer.wanted(observation, live)
            if watch is not None:
                watch(observation, wanted)
            return self.layout.decode(scorer.scores(thetas, observation, wanted), observation)

        episodes = self.episodes(seed, first + np.arange(self.num_envs) % share)
        if scorer.plays and watch is None:
            found, decisions = play_scored(self.simulator, scorer, thetas, seed, episodes)
        else:
            found, decisions = play_episodes(self.simulator, act, seed, episodes)
        self.decisions += decisions
        return found[:, self.simulator.metric_names.index(self.objective)].reshape(len(thetas), share)


def _fitness(kind: str, sign: float, values: Floats, start: Floats) -> Floats:
    """Change from the start's objective, less is better; values [..., episodes], start [episodes]."""
    if kind == "log":
        floor = FLOOR * start.mean() if start.mean() > 0 else 1.0
        ratios = (np.maximum(values, 0.0) + floor) / (np.maximum(start, 0.0) + floor)
        return np.asarray(sign * np.log(ratios).mean(axis=-1))
    scale = np.abs(start) if kind == "ratio" else np.full(len(start), np.abs(start).mean())
    change = sign * (values - start) / np.where(scale > 0, scale, 1.0)
    return np.asarray(change.mean(axis=-1))


def search(
    config: Config,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    report: Callable[[Point], None] | None = None,
    log_dir: str | Path | None = None,
) -> SearchResult:
    """Train a scorer.

    Args:
        config: a configuration with algorithm "cma".
        checkpoint: file that is rewritten every ``config.checkpoint`` generations (None: every one).
        resume: go on from that file if it is there.
        report: called with each validation.
        log_dir: folder for TensorBoard; None: no logs.

    Raises:
        InvalidParameter: for a configuration of another algorithm, or a checkpoint of another configuration.
        gymnasium.error.DependencyNotInstalled: without the extra ``agents``.
    """
    if config.algorithm != "cma":
        raise InvalidParameter(f"algorithm: a search is 'cma', got {config.algorithm!r}")
    require("cma", "agents")
    with contextlib.ExitStack() as stack:
        writer: Any = None
        if log_dir is not None:
            require("tensorboard", "agents")
            writer = require("torch.utils.tensorboard", "agents").SummaryWriter(str(log_dir))
            stack.callback(writer.close)

        def show(point: Point) -> None:
            if report is not None:
                report(point)
            if writer is not None:
                writer.add_scalar(
                    f"validation/{run.validation[0].rollouts.objective}", point.objective, point.generation
                )
                writer.add_scalar("validation/change", point.change, point.generation)
                writer.add_scalar("search/sigma", point.sigma, point.generation)

        run = Search(config, checkpoint, show)
        run.begin(resume)
        while run.stopped() is None:
            run.generation()
        return run.result()


class _DomainEvaluation:
    """One domain in a search: its environments, its scorer, and what is played there.

    Args:
        config: configuration of the training.
        domain: one of its domains.
        use: "training" or "validation".
        players: candidates that play side by side.
        episodes: that each of them plays, unless the domain says how many.

    Attributes:
        episodes: that each plays.
    """

    def __init__(self, config: Config, domain: Domain, use: str, players: int, episodes: int) -> None:
        self.config, self.domain = config, domain
        self.episodes = domain.episodes or episodes
        num_envs = players * self.episodes
        self.rollouts = Rollouts(config.id, domain.environment, num_envs, use if domain.split else "")
        self.scorer: Scorer
        self.reference: Floats  # objectives in the validation episodes that others are compared with

    def prepare(self, statistics: Arrays) -> Scorer:
        """Make the scorer of this domain's sizes."""
        own = strip(statistics, STATISTICS)
        self.scorer = Scorer(self.rollouts.layout, self.config.scorer, own)
        return self.scorer

    def fitness(self, values: Floats, reference: Floats) -> Floats:
        """The change of objectives [..., episodes] from those of the reference [episodes]."""
        return _fitness(self.config.search.fitness, self.rollouts.sign, values, reference)

    def validate(self, theta: Floats32) -> Floats:
        """The objective in each validation episode."""
        return self.rollouts.play(self.scorer, theta[np.newaxis], VALIDATION_SEED, 0)[0]

    def refer_to(self, start: Floats) -> None:
        """Compare with the best of the configuration's baselines, or without any with the start."""
        self.reference = start
        if names := self.config.search.baselines:
            episodes = self.rollouts.episodes(VALIDATION_SEED, np.arange(self.rollouts.num_envs))
            given = self.domain.environment
            _, self.reference = best_baseline(self.config.id, names, given, VALIDATION_SEED, episodes)

    def columns(self, seed: int) -> list[dict[str, Floats32]]:
        """The columns along the start's trajectories, every SAMPLES decisions."""
        scorer = Scorer(self.rollouts.layout, dataclasses.replace(self.config.scorer, hidden=0))
        seen: list[dict[str, Floats32]] = []
        turn = itertools.count()

        def watch(observation: Arrays, wanted: Flags) -> None:
            if next(turn) % SAMPLES == 0:
                seen.append(scorer.inspect(observation, wanted))

        theta = np.zeros((1, scorer.size), dtype=np.float32)
        self.rollouts.play(scorer, theta, seed, 0, watch)
        return seen


def _mean(evaluations: Sequence[_DomainEvaluation], values: Sequence[Any]) -> Any:
    """The weighted mean of the values of all domains."""
    weights = np.array([evaluation.domain.weight for evaluation in evaluations])
    return np.tensordot(weights / weights.sum(), np.array(values), axes=1)


class Search:
    """A search between its generations.

    Args:
        config: configuration of the training.
        checkpoint: as for :func:`search`.
        show: called with each validation.
    """

    def __init__(self, config: Config, checkpoint: str | Path | None, show: Callable[[Point], None]) -> None:
        self.config, self.show = config, show
        options = self.options = config.search
        self.record = TrainingRecord(config, checkpoint, Point)
        self.training = self._evaluations("training", options.population + 1, options.episodes)
        self.validation = self._evaluations("validation", 1, options.validation_episodes)
        self.seed = TRAINING_SEEDS + config.seed
        self.fitness: list[Floats] = []  # of the candidates of each generation
        self.decisions_before = 0  # of the runs before this one

    def _evaluations(self, use: str, players: int, episodes: int) -> list[_DomainEvaluation]:
        return [
            _DomainEvaluation(self.config, domain, use, players, episodes)
            for domain in self.config.domains_of(use)
        ]

    def begin(self, resume: bool) -> None:
        """Play the start's validation, or repeat from the checkpoint what was played."""
        record, options = self.record, self.options
        loaded = record.load(NEEDED) if resume else None
        if loaded is None:
            self.statistics = self._measure_columns()
        else:
            arrays, text = loaded
            self.statistics = {name: array for name, array in arrays.items() if name.startswith(STATISTICS)}
            self.fitness, self.decisions_before = list(arrays["fitness"]), int(text["decisions"])
        scorer = self.scorer = self._prepare()
        if scorer.size < 2:
            raise InvalidParameter(f"scorer: a search needs 2 parameters or more, this one has {scorer.size}")
        self.start = scorer.start(self.config.seed)
        values = [evaluation.validate(self.start) for evaluation in self.validation]
        for evaluation, own in zip(self.validation, values, strict=True):
            evaluation.refer_to(own)
        if loaded is None:
            self._add(0, options.sigma, values, self.start)
        self.strategy = _strategy(self.config, scorer, self.start)
        for fitness in self.fitness:
            self.strategy.tell(self.strategy.ask(), fitness)
        if loaded is not None and not np.array_equal(self.strategy.mean, arrays["mean"]):
            assert record.path is not None
            why = "damaged, or of another version of pycma or numpy"
            raise InvalidParameter(f"{record.path.name}: the search is not repeated as it was: {why}")

    def _prepare(self) -> Scorer:
        """Make the scorers of all domains, which take the same parameters; return the first."""
        first, *others = [
            evaluation.prepare(self.statistics) for evaluation in (*self.training, *self.validation)
        ]
        for other in others:
            if other.size != first.size or other.inputs != first.inputs:
                raise InvalidParameter("domains: a scorer sees other columns in one than in another")
        return first

    def stopped(self) -> str | None:
        """The reason for which the search ends here; None: it goes on."""
        if len(self.fitness) >= self.options.generations:
            return "generations"
        record = self.record
        return "patience" if len(record.curve) - 1 - record.best_index >= self.options.patience else None

    def generation(self) -> None:
        """Let the candidates of one generation play; validate and save when it is time."""
        options, strategy, number = self.options, self.strategy, len(self.fitness) + 1
        candidates = strategy.ask()
        thetas = np.array([self.start, *candidates], dtype=np.float32)
        changes = []
        for evaluation in self.training:
            first = number * evaluation.episodes
            values = evaluation.rollouts.play(evaluation.scorer, thetas, self.seed, first)
            changes.append(evaluation.fitness(values[1:], values[0]))
        fitness = _mean(self.training, changes)
        strategy.tell(candidates, fitness)
        self.fitness.append(fitness)
        last = number == options.generations
        if number % options.validate_every == 0 or last:
            theta = np.asarray(strategy.mean, dtype=np.float32)
            validated = [evaluation.validate(theta) for evaluation in self.validation]
            self._add(number, float(strategy.sigma), validated, theta)
        if number % (self.config.checkpoint or 1) == 0 or last:
            arrays = {"fitness": np.array(self.fitness, dtype=np.float64), "mean": np.array(strategy.mean)}
            self.record.save(arrays | self.statistics, decisions=self.decisions)

    @property
    def decisions(self) -> int:
        """Environment steps that were played, in the runs before this one, too."""
        played = sum(evaluation.rollouts.decisions for evaluation in (*self.training, *self.validation))
        return self.decisions_before + played

    def result(self) -> SearchResult:
        """The result of the search."""
        record, stopped = self.record, self.stopped()
        assert stopped is not None
        return SearchResult(
            weights=record.best | self.statistics,
            curve=tuple(record.curve),
            best=record.curve[record.best_index],
            inputs=self.scorer.inputs,
            stopped=stopped,
            seconds=record.seconds,
            decisions=self.decisions,
            begun=record.begun,
        )

    def _add(self, generation: int, sigma: float, values: Sequence[Floats], theta: Floats32) -> None:
        """Add a validation: the objectives in the episodes of each domain."""
        evaluations, curve, best = self.validation, self.record.curve, self.record.best_index
        pairs = zip(evaluations, values, strict=True)
        changes = [float(evaluation.fitness(own, evaluation.reference)) for evaluation, own in pairs]
        objective, change = _mean(evaluations, [own.mean() for own in values]), _mean(evaluations, changes)
        spent, domains = self.record.seconds, changes if self.config.domains else []
        point = Point(generation, spent, float(objective), float(change), sigma, domains)
        self.record.add(point, bool(curve) and point.change < curve[best].change, lambda: {"theta": theta})
        self.show(point)

    def _measure_columns(self) -> Arrays:
        """The statistics of the columns along the start's trajectories in all domains of the training."""
        evaluations = self._evaluations("training", 1, self.options.validation_episodes)
        seen = [columns for evaluation in evaluations for columns in evaluation.columns(self.seed)]
        self.decisions_before = sum(evaluation.rollouts.decisions for evaluation in evaluations)
        return {f"{STATISTICS}{name}": array for name, array in statistics_of(seen).items()}


def _strategy(config: Config, scorer: Scorer, start: Floats32) -> Any:
    options = config.search
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=tuple(b"search")))
    given = {
        "popsize": options.population,
        "seed": np.nan,  # the global generator is not touched
        "randn": lambda *shape: rng.standard_normal(shape),
        "CMA_diagonal": options.diagonal,
        "CMA_stds": scorer.spread(options.bias_scale),
        "verbose": -9,  # no output, and no files
    }
    cma = require("cma", "agents")
    return cma.CMAEvolutionStrategy(start.astype(np.float64), options.sigma, given)


def metadata_of(config: Config, result: SearchResult, command: str) -> dict[str, Any]:
    """The metadata of the agent file of a training."""
    network = {"form": "scorer", **config.to_dict()["scorer"], "inputs": result.inputs}
    told = {"decisions": result.decisions, "stopped": result.stopped}
    return describe(config, network, result, command, environment_seed=TRAINING_SEEDS + config.seed, **told)
