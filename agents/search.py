"""Gradient-free training: CMA-ES over the parameters of a scorer.

Every generation all candidates play the same new episodes, side by side in one native vector environment, and
so does the start (the heuristic of the skip connection), which their results are compared with. Now and then
the mean of the search distribution plays the validation episodes; the best of these becomes the agent, and
the start itself if none is better.

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
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

import schedgym  # noqa: F401  (registers the ids)
from schedgym.agents.config import Config
from schedgym.agents.files import checkpoint_path, describe, save_agent, write_atomically
from schedgym.agents.linear import Scorer, statistics_of
from schedgym.agents.views import make_layout
from schedgym.core.simulator import ACT, SKIP
from schedgym.errors import InvalidParameter
from schedgym.evaluation import require
from schedgym.evaluation.runner import EVALUATION_SEEDS

__all__ = [
    "TRAINING_SEEDS",
    "VALIDATION_SEED",
    "Arena",
    "Point",
    "SearchResult",
    "metadata_of",
    "search",
    "train_search",
]

F4 = npt.NDArray[np.float32]
F8 = npt.NDArray[np.float64]

#: the environment's seed in training is this plus the training's seed, which is below 2^32
TRAINING_SEEDS = EVALUATION_SEEDS
VALIDATION_SEED = 2**41

SAMPLES = 8  # every so many decisions the columns are measured
FORMAT = 1
#: settings in which a training may differ from its checkpoint: they only say when to stop, and to save
LIMITS = {"checkpoint", "search.generations", "search.patience"}


@dataclasses.dataclass(frozen=True)
class Point:
    """One validation.

    Attributes:
        generation: how many there have been.
        seconds: since the start of the training.
        objective: mean over the validation episodes, in the objective's unit.
        change: of the fitness from the start's: less than 0 is better.
        sigma: spread of the search.
    """

    generation: int
    seconds: float
    objective: float
    change: float
    sigma: float


@dataclasses.dataclass(frozen=True)
class SearchResult:
    """What a training came to.

    Attributes:
        weights: of the agent file: the parameters, and the statistics of the columns.
        curve: the validations; the first is the start.
        best: the one whose parameters these are.
        inputs: names of the columns that the scorer sees; see :attr:`Scorer.inputs`.
        stopped: why it ended.
        seconds: that it took.
        decisions: environment steps that were played.
    """

    weights: dict[str, npt.NDArray[Any]]
    curve: tuple[Point, ...]
    best: Point
    inputs: dict[str, list[str]]
    stopped: str
    seconds: float
    decisions: int


class Arena:
    """Plays whole episodes in a native vector environment, each environment exactly one.

    Args:
        id: environment id.
        parameters: of the environment.
        num_envs: episodes played at a time.
    """

    def __init__(self, id: str, parameters: dict[str, Any], num_envs: int) -> None:
        env: Any = gym.make_vec(id, num_envs=num_envs, copy=False, **parameters).unwrapped
        self.simulator = simulator = env.simulator
        problem = simulator.problem
        self.num_envs = num_envs
        self.layout = make_layout(
            problem.name, simulator.parameters.view, env.single_observation_space, env.single_action_space
        )
        metric = problem.metric(problem.objective_of(simulator.parameters))
        self.objective, self.sign = metric.name, -1.0 if metric.better == "max" else 1.0
        self._metric = simulator.metric_names.index(metric.name)
        self.decisions = 0

    def play(
        self,
        scorer: Scorer,
        thetas: F4,
        seed: int,
        first: int,
        watch: Callable[[dict[str, Any], npt.NDArray[np.bool_]], None] | None = None,
    ) -> F8:
        """The objective of every candidate in every episode.

        Args:
            scorer: decides.
            thetas: parameters of the candidates [P, size]; P divides the number of environments.
            seed: of the environments.
            first: each candidate plays the episodes first, first + 1, ... of that seed.
            watch: is shown the observations of each step, and which scores are wanted.

        Returns:
            [P, episodes], in the objective's unit.
        """
        simulator = self.simulator
        share, rest = divmod(self.num_envs, len(thetas))
        if rest:
            raise InvalidParameter(f"thetas: {len(thetas)} do not divide {self.num_envs} environments")
        for i in range(self.num_envs):
            simulator.seed(i, seed)
            simulator.episodes[i] = first + i % share
        live = np.ones(self.num_envs, dtype=bool)
        simulator.begin(live)
        found = np.full(self.num_envs, np.nan)
        while live.any():
            observation = simulator.observation
            wanted = scorer.wanted(observation, live)
            if watch is not None:
                watch(observation, wanted)
            scores = scorer.scores(thetas, observation, wanted)
            actions = np.asarray(self.layout.decode(scores, observation))
            if simulator.continuous:
                simulator.actions[...] = actions.reshape(simulator.actions.shape)
            else:
                simulator.actions[:, : len(simulator.action_sizes)] = actions.reshape(self.num_envs, -1)
            ended = simulator.step(np.where(live, np.int8(ACT), np.int8(SKIP)))
            if ended < 0:
                raise RuntimeError(f"environment {-ended - 1} refused the scorer's action")
            self.decisions += int(np.count_nonzero(live))
            if ended:
                done = live & (simulator.terminated | simulator.truncated)
                found[done] = simulator.measure(done)[done, self._metric]
                live &= ~done
        return found.reshape(len(thetas), share)


def _fitness(kind: str, sign: float, values: F8, start: F8) -> F8:
    """Change from the start's objective, less is better; values [..., episodes], start [episodes]."""
    scale = np.abs(start) if kind == "ratio" else np.full(len(start), np.abs(start).mean())
    change = sign * (values - start) / np.where(scale > 0, scale, 1.0)
    return np.asarray(change.mean(axis=-1))


class _Trace:
    """What a training has come to so far, in memory and in its checkpoint."""

    def __init__(self, config: Config, path: Path | None) -> None:
        self.path = path
        self.settings: dict[str, Any] = {"format": FORMAT, **config.to_dict()}
        self.statistics: dict[str, npt.NDArray[Any]] = {}
        self.fitness: list[F8] = []
        self.curve: list[Point] = []
        self.best_index = 0
        self.best_theta: F4 | None = None
        self.mean: F8 | None = None  # of the search distribution, to see that it was repeated
        self.seconds = 0.0  # of the runs before this one
        self.decisions = 0  # the same

    def save(self, seconds: float, decisions: int) -> None:
        """Write the checkpoint: ``seconds`` of all runs, ``decisions`` of this one."""
        if self.path is None or self.best_theta is None or self.mean is None:
            return
        arrays: dict[str, npt.NDArray[Any]] = {
            "settings": np.frombuffer(json.dumps(self.settings).encode(), dtype=np.uint8),
            "fitness": np.array(self.fitness, dtype=np.float64),
            "curve": np.array([dataclasses.astuple(point) for point in self.curve]),
            "best_theta": self.best_theta,
            "mean": self.mean,
            "counts": np.array([self.best_index, self.decisions + decisions]),
            "seconds": np.array(seconds),
        }
        arrays |= {f"statistics/{name}": array for name, array in self.statistics.items()}
        write_atomically(self.path, arrays)

    def load(self) -> bool:
        """Whether there was a checkpoint.

        Raises:
            InvalidParameter: if it is of another configuration, or none.
        """
        if self.path is None or not self.path.exists():
            return False
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            settings = _flat(json.loads(arrays["settings"].tobytes()))
            self.fitness = list(arrays["fitness"])
            self.curve = [Point(int(row[0]), *row[1:].tolist()) for row in arrays["curve"]]
            self.best_theta, self.mean = arrays["best_theta"], arrays["mean"]
            self.best_index, self.decisions = (int(value) for value in arrays["counts"])
            self.seconds = float(arrays["seconds"])
        except Exception as error:  # of zipfile, numpy, json: all say that it is damaged
            raise InvalidParameter(f"{self.path.name}: not a checkpoint of a search: {error!r}") from None
        mine = _flat(self.settings)
        for name in sorted({*settings, *mine} - LIMITS):
            if settings.get(name) != mine.get(name):
                raise InvalidParameter(
                    f"{self.path.name}: the checkpoint of another configuration: {name} is "
                    f"{settings.get(name)!r} there, and {mine.get(name)!r} here"
                )
        prefix = "statistics/"
        self.statistics = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        return True


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Those of sections named as "section.field"."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            found |= {f"{name}.{field}": own for field, own in value.items()}
        else:
            found[name] = value
    return found


def search(
    config: Config,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    report: Callable[[Point], None] | None = None,
    log_dir: str | Path | None = None,
) -> SearchResult:
    """Train a scorer.

    Args:
        config: of algorithm "cma".
        checkpoint: file that is rewritten every ``config.checkpoint`` generations (None: every one).
        resume: go on from that file if it is there.
        report: is shown each validation.
        log_dir: folder for TensorBoard; None: no logs.

    Raises:
        InvalidParameter: for a configuration of another algorithm, or a checkpoint of another configuration.
        gymnasium.error.DependencyNotInstalled: without the extra ``agents``.
    """
    if config.algorithm != "cma":
        raise InvalidParameter(f"algorithm: a search is 'cma', got {config.algorithm!r}")
    cma = require("cma", "agents")
    with contextlib.ExitStack() as stack:
        writer: Any = None
        if log_dir is not None:
            require("tensorboard", "agents")
            writer = require("torch.utils.tensorboard", "agents").SummaryWriter(str(log_dir))
            stack.callback(writer.close)
        return _search(cma, config, checkpoint, resume, report, writer)


def _search(
    cma: Any,
    config: Config,
    checkpoint: str | Path | None,
    resume: bool,
    report: Callable[[Point], None] | None,
    writer: Any,
) -> SearchResult:
    options = config.search
    trace = _Trace(config, None if checkpoint is None else Path(checkpoint))
    resumed = resume and trace.load()
    began = time.perf_counter() - trace.seconds
    seed = TRAINING_SEEDS + config.seed
    arena = Arena(config.id, config.environment, (options.population + 1) * options.episodes)
    court = Arena(config.id, config.environment, options.validation_episodes)
    if not resumed:
        trace.statistics = _statistics(config, court, seed)
    scorer = Scorer(arena.layout, config.scorer, trace.statistics)
    if scorer.size < 2:
        raise InvalidParameter(f"scorer: a search needs 2 parameters or more, this one has {scorer.size}")
    start = scorer.start(config.seed)
    reference = court.play(scorer, start[np.newaxis], VALIDATION_SEED, 0)[0]

    def show(point: Point) -> None:
        if report is not None:
            report(point)
        if writer is not None:
            writer.add_scalar(f"validation/{court.objective}", point.objective, point.generation)
            writer.add_scalar("validation/change", point.change, point.generation)
            writer.add_scalar("search/sigma", point.sigma, point.generation)

    if not resumed:
        trace.curve = [Point(0, time.perf_counter() - began, float(reference.mean()), 0.0, options.sigma)]
        trace.best_theta = start
        show(trace.curve[0])
    strategy = _strategy(cma, config, scorer, start)
    for fitness in trace.fitness:  # repeat what was played
        strategy.tell(strategy.ask(), fitness)
    if trace.path is not None and trace.mean is not None and not np.array_equal(strategy.mean, trace.mean):
        why = "damaged, or of another version of pycma or numpy"
        raise InvalidParameter(f"{trace.path.name}: the search is not repeated as it was: {why}")
    stopped = "generations"
    for generation in range(len(trace.fitness) + 1, options.generations + 1):
        if len(trace.curve) - 1 - trace.best_index >= options.patience:
            stopped = "patience"
            break
        candidates = strategy.ask()
        thetas = np.array([start, *candidates], dtype=np.float32)
        values = arena.play(scorer, thetas, seed, generation * options.episodes)
        fitness = _fitness(options.fitness, arena.sign, values[1:], values[0])
        strategy.tell(candidates, fitness)
        trace.fitness.append(fitness)
        if generation % options.validate_every == 0 or generation == options.generations:
            theta = np.asarray(strategy.mean, dtype=np.float32)
            values = court.play(scorer, theta[np.newaxis], VALIDATION_SEED, 0)[0]
            change = float(_fitness(options.fitness, court.sign, values, reference))
            spent = time.perf_counter() - began
            point = Point(generation, spent, float(values.mean()), change, float(strategy.sigma))
            trace.curve.append(point)
            if point.change < trace.curve[trace.best_index].change:
                trace.best_index, trace.best_theta = len(trace.curve) - 1, theta
            show(point)
        if generation % (config.checkpoint or 1) == 0 or generation == options.generations:
            trace.mean = np.array(strategy.mean)
            trace.save(time.perf_counter() - began, arena.decisions + court.decisions)
    assert trace.best_theta is not None
    return SearchResult(
        weights={"theta": trace.best_theta} | {f"statistics/{n}": a for n, a in trace.statistics.items()},
        curve=tuple(trace.curve),
        best=trace.curve[trace.best_index],
        inputs=scorer.inputs,
        stopped=stopped,
        seconds=time.perf_counter() - began,
        decisions=trace.decisions + arena.decisions + court.decisions,
    )


def _statistics(config: Config, arena: Arena, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Those of the columns along the start's trajectories."""
    plain = dataclasses.replace(config.scorer, hidden=0)
    scorer = Scorer(arena.layout, plain)
    seen: list[dict[str, F4]] = []
    turn = itertools.count()

    def watch(observation: dict[str, Any], wanted: npt.NDArray[np.bool_]) -> None:
        if next(turn) % SAMPLES == 0:
            seen.append(scorer.columns(observation, wanted))

    arena.play(scorer, np.zeros((1, scorer.size), dtype=np.float32), seed, 0, watch)
    return statistics_of(seen)


def _strategy(cma: Any, config: Config, scorer: Scorer, start: F4) -> Any:
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
    return cma.CMAEvolutionStrategy(start.astype(np.float64), options.sigma, given)


def train_search(
    config: Config,
    path: str | Path,
    command: str = "",
    resume: bool = False,
    report: Callable[[Point], None] | None = None,
    log_dir: str | Path | None = None,
) -> SearchResult:
    """Train a scorer and write its agent file.

    Args:
        config: of algorithm "cma".
        path: of the agent file; the checkpoint stands beside it with the suffix ".checkpoint", and goes when
            the file is written.
        command: that repeats the training, for the file.
        resume: go on from the checkpoint if there is one.
        report: is shown each validation.
        log_dir: folder for TensorBoard; None: no logs.

    Raises:
        InvalidParameter: if there can be no such file, and what :func:`search` raises.
    """
    checkpoint = checkpoint_path(path)
    result = search(config, checkpoint, resume, report, log_dir)
    save_agent(path, result.weights, metadata_of(config, result, command))
    checkpoint.unlink(missing_ok=True)
    return result


def metadata_of(config: Config, result: SearchResult, command: str) -> dict[str, Any]:
    """What the agent file tells of a training."""
    training = {
        "environment_seed": TRAINING_SEEDS + config.seed,
        "validation_seed": VALIDATION_SEED,
        "seconds": result.seconds,
        "decisions": result.decisions,
        "stopped": result.stopped,
        "best": dataclasses.asdict(result.best),
        "curve": [dataclasses.asdict(point) for point in result.curve],
    }
    network = {"form": "scorer", **config.to_dict()["scorer"], "inputs": result.inputs}
    return describe(config, network, training, command)
