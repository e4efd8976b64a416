"""Trainings as units: one configuration with several seeds, run by the engines of sweeps.

A unit is the training of one seed. It is done when its agent file is there; until then it goes on from its
checkpoint, so that a command that was cut off is continued by the same command. A training that fails, or
takes too long, costs no other, and the next run goes on with it. Each gives the weights that it gives alone,
whatever else runs. A seed whose agent file was removed is trained again; its stored results are dropped.

The agents then play the validation episodes in a sweep (:mod:`~schedgym.evaluation.sweeps`), beside the
baselines that the configuration names, into a results store in the same folder. The agent to ship is the
median by validation: the best of several owes part of its validation to chance.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.agents.config import Config
from schedgym.agents.domains import Domain, episodes_of_part, shared_with_baselines
from schedgym.agents.files import load_agent
from schedgym.agents.simulation import make_simulator
from schedgym.agents.training import check_device, train
from schedgym.core.arrays import Floats, Integers
from schedgym.core.problem import get_problem
from schedgym.core.random import VALIDATION_SEED
from schedgym.errors import InvalidParameter
from schedgym.evaluation.engines import Failure, make_engine, progress_bar
from schedgym.evaluation.plan import setting_of
from schedgym.evaluation.statistics import Estimate, stratified_interval
from schedgym.evaluation.store import ResultsStore
from schedgym.evaluation.sweeps import Experiment, SweepSpec, run_sweep

STORE = "validation.db"


@dataclasses.dataclass(frozen=True)
class TrainingSpec:
    """One configuration, to be trained with several seeds.

    Attributes:
        name: of the agent files, and the label of the agents in the store.
        config: configuration of the trainings, apart from its seed.
        seeds: seeds of the trainings.
        folder: folder of the agent files, checkpoints and the store; on a cluster one that all machines
            share.
        command: command that repeats a training, up to its seed and its file.
        log_dir: folder for TensorBoard, with a folder for each seed; None: no logs.
        device: device on which algorithm "ppo" computes; None: the CPU.
    """

    name: str
    config: Config
    seeds: Sequence[int]
    folder: Path
    command: str = ""
    log_dir: Path | None = None
    device: str | None = None

    @property
    def store(self) -> Path:
        """The results store of the validations."""
        return self.folder / STORE

    def path(self, seed: int) -> Path:
        """The agent file of a seed."""
        return self.folder / f"{self.name}-{seed}.npz"

    def config_of(self, seed: int) -> Config:
        """The configuration of a seed."""
        return dataclasses.replace(self.config, seed=seed)


@dataclasses.dataclass(frozen=True)
class Trained:
    """A finished training.

    Attributes:
        seed: its seed.
        path: agent file.
        validation: mean objective of the validation episodes, weighted by domain, with its interval over the
            episodes.
        change: of algorithm "cma": of the objective from the start's, or from that of the best of the
            configuration's baselines, as its ``fitness`` measures it; below 0 is better; None for others.
        seconds: time that the training took [s].
        steps: environment steps that it played.
    """

    seed: int
    path: Path
    validation: Estimate
    change: float | None
    seconds: float
    steps: int


@dataclasses.dataclass(frozen=True)
class TrainingsResult:
    """The result of several trainings.

    Attributes:
        agents: finished trainings, in the order of their seeds.
        median: the median of them by validation, by what the training itself validates (``change`` where
            there is one); of two in the middle the worse; None without agents.
        failed: "seed S", or what else failed in the validation -> traceback, or a message.
        done: trainings that ran to their end now.
        seconds: time that everything took [s].
    """

    agents: list[Trained]
    median: Trained | None
    failed: dict[str, str]
    done: int
    seconds: float


def run_trainings(
    spec: TrainingSpec,
    *,
    engine: str = "local",
    n_jobs: int = -1,
    unit_timeout: float | None = None,
) -> TrainingsResult:
    """Run the trainings that have not been finished, and validate all agents.

    Args:
        spec: the trainings; its folder is made if there is none.
        engine: "local" or "ray"; see :func:`~schedgym.evaluation.engines.make_engine`.
        n_jobs: trainings at once; -1: one per core. No agent depends on it.
        unit_timeout: the longest time that a training may take in this run [s]; one that takes longer fails,
            and the next run continues from its checkpoint. It limits each unit of the validation, too. None:
            no limit.

    Raises:
        UnknownName, InvalidParameter: for an unknown engine, a device that is missing or that the algorithm
            does not use, or agent files of other configurations, or of other contents of the files that
            these name, in the folder; raised before anything runs. Workers of a Ray cluster check their own
            devices.
        InvalidStore: if the folder's store cannot be written, or another process uses it.
        RunAborted: if the store is removed or replaced meanwhile, or the Ray cluster dies.
    """
    began = time.monotonic()
    workers = make_engine(engine, n_jobs, unit_timeout)
    check_device(spec.config, spec.device, here=engine == "local")
    spec.folder.mkdir(exist_ok=True)
    contents = spec.config.contents()
    left = [seed for seed in spec.seeds if not _is_trained(spec, seed, contents)]
    failed: dict[str, str] = {}
    with (
        ResultsStore(spec.store, "w") as store,  # nobody else trains in this folder
        progress_bar(len(left), None, "trainings") as advance,
        contextlib.closing(workers.run(_train, [(spec, seed) for seed in left])) as results,
    ):
        for seed in left:
            store.drop(spec.name, seed)
        for (_, seed), outcome in results:
            if isinstance(outcome, Failure):
                failed[f"seed {seed}"] = outcome.error
            advance(1)
    done = len(left) - len(failed)
    seeds = [seed for seed in spec.seeds if f"seed {seed}" not in failed]
    agents: list[Trained] = []
    if seeds:
        how = {"engine": engine, "n_jobs": n_jobs, "unit_timeout": unit_timeout}
        failed |= _validate(spec, seeds, how)
        agents = list(_trained(spec, [seed for seed in seeds if f"seed {seed}" not in failed]))
    sign = spec.config.metric.sign
    ranked = sorted(agents, key=lambda a: sign * a.validation.value if a.change is None else a.change)
    median = ranked[len(ranked) // 2] if ranked else None
    return TrainingsResult(agents, median, failed, done, time.monotonic() - began)


def _is_trained(spec: TrainingSpec, seed: int, contents: Mapping[str, str]) -> bool:
    path = spec.path(seed)
    if not path.exists():
        return False
    trained = load_agent(path).metadata
    if trained["config"] != spec.config_of(seed).to_dict():
        raise InvalidParameter(f"{path}: is of another configuration: take another folder")
    if trained.get("files", contents) != contents:
        raise InvalidParameter(f"{path}: was trained on other contents of files: take another folder")
    return True


def _train(task: tuple[TrainingSpec, int]) -> None:
    """Run a unit; an engine's worker calls this."""
    spec, seed = task
    path = spec.path(seed)
    command = f"{spec.command} --seed {seed} -o {shlex.quote(path.name)}"
    logs = None if spec.log_dir is None else spec.log_dir / str(seed)
    train(spec.config_of(seed), path, command, resume=True, log_dir=logs, device=spec.device)


# validation ----------------------------------------------------------------------------------------


def _episodes(config: Config, domain: Domain) -> Integers:
    """The episodes of VALIDATION_SEED that a training validates with in a domain."""
    cma = config.algorithm == "cma"
    usual = config.search.validation_episodes if cma else config.evaluation.episodes
    numbers = np.arange(domain.episodes or usual)
    if not domain.split:
        return numbers
    simulator = make_simulator(config.id, domain.environment, 1)
    return np.unique(episodes_of_part(simulator, "validation", VALIDATION_SEED, numbers))


def _validate(spec: TrainingSpec, seeds: Sequence[int], how: Mapping[str, Any]) -> dict[str, str]:
    """Store what the agents of some seeds reach in the validation episodes; return what failed."""
    config = spec.config
    runs: dict[range, list[Experiment]] = {}
    for domain in config.domains_of("validation"):
        experiment = Experiment(
            config.id,
            shared_with_baselines(config.id, domain.environment),
            policies=list(config.search.baselines),
            agents={spec.name: [str(spec.path(seed)) for seed in seeds]},
        )
        episodes = _episodes(config, domain)
        for piece in np.split(episodes, np.flatnonzero(np.diff(episodes) > 1) + 1):
            runs.setdefault(range(int(piece[0]), int(piece[-1]) + 1), []).append(experiment)
    failed: dict[str, str] = {}
    for run, experiments in runs.items():
        sweep = SweepSpec(spec.name, experiments, [VALIDATION_SEED], len(run), first=run.start)
        for unit in run_sweep(sweep, spec.store, retry_failed=True, **how).failed:
            agent = unit["training_seed"] is not None
            failed[f"seed {unit['training_seed']}" if agent else unit["policy"] or "bounds"] = unit["error"]
    return failed


def _trained(spec: TrainingSpec, seeds: Sequence[int]) -> Iterator[Trained]:
    """The finished trainings of some seeds, with their validations from the store."""
    config = spec.config
    domains = config.domains_of("validation")
    found: dict[int, list[Floats]] = {seed: [] for seed in seeds}
    with ResultsStore(spec.store) as store:
        for domain in domains:
            setting = setting_of(
                get_problem(config.id), config.id, shared_with_baselines(config.id, domain.environment)
            )
            for own in store.contenders(setting):
                if own.policy == spec.name and own.training_seed in found:
                    values = own.values.loc[VALIDATION_SEED][setting.objective]
                    found[own.training_seed].append(values.reindex(_episodes(config, domain)).to_numpy())
    shares = np.array([domain.weight for domain in domains])
    shares /= shares.sum()
    for seed, values in found.items():
        # each domain's mean with its weight, of all values in a row
        weights = np.concatenate([np.full(len(v), w / len(v)) for v, w in zip(values, shares, strict=True)])
        interval = stratified_interval(values, lambda sample, axis, weights=weights: sample @ weights)
        validation = Estimate(float(np.concatenate(values) @ weights), *interval)
        training = load_agent(spec.path(seed)).metadata["training"]
        steps = training["steps"] if "steps" in training else training["decisions"]
        change = training["best"].get("change")
        yield Trained(seed, spec.path(seed), validation, change, training["seconds"], steps)
