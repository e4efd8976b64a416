"""Training with gradients: what PPO of this package and that of stable-baselines3 have in common.

A training repeats updates, of which each plays with the network and then improves it. Between two of them it
validates, and writes its checkpoint, which holds everything that it goes on from: weights, the optimizer's
moments, the scale of the returns, the random generators, and the arrays of the environments. So a training
that was killed and goes on from its last checkpoint ends, on one machine, with the same weights as one that
was not.

Seeds. Environment i of a training with seed s plays the episodes 0, 1, ... of the environment's seed
TRAINING_SEEDS + s SPACING + i (i // n where n of them play the same workload); demonstrations are episodes of
DEMONSTRATION_SEEDS + s; validations are those of the gradient-free search. Evaluations take seeds below 2^32,
so no episode is met twice (where episodes are drawn: those of a trace or a workload file are the same for
every seed).
"""

from __future__ import annotations

import contextlib
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.agents.checkpoint import Arrays, TrainingRecord
from schedgym.agents.config import Config
from schedgym.agents.files import describe, strip
from schedgym.agents.imitate import Cloning, clone, demonstrate
from schedgym.agents.simulation import held_out
from schedgym.agents.torch_network import Network
from schedgym.core.arrays import Floats, Floats32
from schedgym.core.random import VALIDATION_SEED
from schedgym.errors import InvalidParameter
from schedgym.extras import require

torch: Any = require("torch", "agents")

SPACING = 2**20  # more than the environments of a training
TRAINING_SEEDS = 2**53
DEMONSTRATION_SEEDS = 2**54
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of Adam


@dataclasses.dataclass(frozen=True)
class Point:
    """One validation.

    Attributes:
        steps: environment steps of the training before it.
        seconds: since the start of the training.
        objective: mean over the validation episodes, in the objective's unit.
    """

    steps: int
    seconds: float
    objective: float


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """The result of a training.

    Attributes:
        weights: weights of the agent file, the critic's too.
        curve: the validations; the first is of the network that the training starts with.
        best: the validation whose weights are kept (with ``keep: last`` the last).
        returns: mean, variance and count of the sums of rewards that scale the critic's values; empty with
            ``normalize_returns: false``.
        cloning: the result of the imitation; None: there was none.
        steps: number of environment steps.
        seconds: time that it took [s], all parts of a resumed training together.
        begun: as of :class:`~schedgym.agents.checkpoint.TrainingRecord`.
    """

    weights: dict[str, Floats32]
    curve: tuple[Point, ...]
    best: Point
    returns: tuple[float, ...]
    cloning: Cloning | None
    steps: int
    seconds: float
    begun: dict[str, Any]


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: for small networks that is fastest, and sums keep their order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class GradientTraining(ABC):
    """A training that goes on update by update.

    Attributes:
        config: its configuration.
        network: what is trained; its layout is that of the environments' view.
        optimizer: Adam, over the weights of the network.
        steps: environment steps so far.
        told: name -> number, what the last update tells TensorBoard.
    """

    config: Config
    network: Network
    optimizer: Any
    steps: int
    told: dict[str, float]

    @property
    def critic(self) -> bool:
        """True if the training has a critic."""
        return self.config.ppo.copies == 1

    @property
    @abstractmethod
    def returns(self) -> tuple[float, ...]:
        """Mean, variance and count of the sums of rewards that scale the critic's values; () without."""

    @abstractmethod
    def scale_returns(self, sums: Floats) -> float:
        """Begin with the moments of these sums of rewards; return by what returns are divided."""

    @abstractmethod
    def begin(self) -> None:
        """Bring the environments to where a training begins, after any imitation."""

    @abstractmethod
    def update(self) -> None:
        """Play, and improve the network."""

    @abstractmethod
    def environment_state(self) -> tuple[Arrays, dict[str, Any]]:
        """The state of environments, random generators and the scale of returns, as arrays and JSON data."""

    @abstractmethod
    def restore_environments(self, arrays: Arrays, text: Mapping[str, Any]) -> None:
        """Bring these to their :meth:`environment_state`."""

    def start(self) -> Cloning | None:
        """Begin, with the imitation that the configuration names."""
        cloning = None if self.config.imitation is None else self._imitate()
        self.begin()
        return cloning

    def _imitate(self) -> Cloning:
        config, settings, options = self.config, self.config.ppo, self.config.imitation
        assert options is not None
        seed = DEMONSTRATION_SEEDS + config.seed
        shown = demonstrate(config.id, options.policy, options.episodes, seed, parameters=config.environment)
        normalizes = self.critic and settings.normalize_returns
        scale = self.scale_returns(shown.sums(settings.gamma)) if normalizes else 1.0
        options = dataclasses.replace(options, critic=options.critic and self.critic)
        device = next(iter(self.network.parameters())).device
        cloning = clone(self.network.cpu(), shown, options, config.seed, gamma=settings.gamma, scale=scale)
        self.network.to(device)
        return cloning

    def learning_rate(self, steps: int) -> float:
        """The rate after so many steps: it falls linearly to the end, beyond which the last update may go."""
        options, left = self.config.ppo, max(1.0 - steps / self.config.steps, 0.0)
        return options.final_learning_rate + (options.learning_rate - options.final_learning_rate) * left

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """The state from which the training continues, as arrays and JSON data."""
        arrays, text = self.environment_state()
        arrays |= {f"weights/{name}": array for name, array in self.network.get_weights().items()}
        moved = [
            name for name, weight in self.network._parameters.items() if self.optimizer.state.get(weight)
        ]
        for name in moved:
            for moment, values in self.optimizer.state[self.network._parameters[name]].items():
                arrays[f"optimizer/{moment}/{name}"] = values.cpu().numpy().copy()
        return arrays, {"steps": self.steps, "moved": moved, **text}

    def restore(self, arrays: Arrays, text: Mapping[str, Any]) -> None:
        """Bring it to its :meth:`state`; InvalidParameter if that does not fit."""
        self.network.set_weights(strip(arrays, "weights/"))
        for name in text["moved"]:
            weight = self.network._parameters[name]
            moments = {m: torch.as_tensor(arrays[f"optimizer/{m}/{name}"]).clone() for m in MOMENTS}
            self.optimizer.state[weight] = {
                m: values if m == "step" else values.to(weight.device) for m, values in moments.items()
            }
        self.restore_environments(arrays, text)
        self.steps = int(text["steps"])


def run(
    training: GradientTraining,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    report: Callable[[Point], None] | None = None,
    log_dir: str | Path | None = None,
) -> TrainingResult:
    """Run a training to its end.

    Args:
        training: a training that has not started.
        checkpoint: file that is rewritten at least every ``config.checkpoint`` steps (None: as often as it
            validates), but only between updates.
        resume: go on from that file if it is there.
        report: called with each validation.
        log_dir: folder for TensorBoard; None: no logs.

    Raises:
        InvalidParameter: for a checkpoint of another configuration.
        gymnasium.error.DependencyNotInstalled: without TensorBoard, where there are to be logs.
    """
    config = training.config
    interval, rollout = config.checkpoint or config.evaluation.every, 0
    with one_thread(), contextlib.ExitStack() as stack:
        record = TrainingRecord(config, checkpoint, Point)
        loaded = record.load(("steps", "cloning", "environments/seeds")) if resume else None
        if loaded is None:
            cloning, saved = training.start(), -1
        else:
            _go_on(training, record, *loaded)
            told, saved = loaded[1]["cloning"], training.steps
            cloning = None if told is None else Cloning(**told)
        writer: Any = None
        if log_dir is not None:
            make = require("torch.utils.tensorboard", "agents").SummaryWriter
            writer = stack.enter_context(make(str(Path(log_dir) / config.algorithm)))
        while True:
            steps, over = training.steps, training.steps >= config.steps
            curve = record.curve
            if not curve or steps - curve[-1].steps >= (1 if over else config.evaluation.every):
                point = _validate(record, training)
                training.told[f"validation/{config.metric.name}"] = point.objective
                if report is not None:
                    report(point)
            for name, value in training.told.items() if writer is not None else ():
                writer.add_scalar(name, value, steps)
            late = not steps or over or steps + rollout > saved + interval
            if late and steps > saved and record.path is not None:
                arrays, text = training.state()
                record.save(arrays, cloning=None if cloning is None else dataclasses.asdict(cloning), **text)
                saved = steps
            if over:
                break
            training.told.clear()
            training.update()
            rollout = training.steps - steps
    return TrainingResult(
        weights=dict(record.best),
        curve=tuple(record.curve),
        best=record.curve[record.best_index],
        returns=training.returns,
        cloning=cloning,
        steps=training.steps,
        seconds=record.seconds,
        begun=record.begun,
    )


def _go_on(
    training: GradientTraining, record: TrainingRecord[Point], arrays: Arrays, text: dict[str, Any]
) -> None:
    """Bring a training to the state of its checkpoint; InvalidParameter if something in it does not fit."""
    assert record.path is not None
    try:
        training.network.set_weights(record.best)  # of which an agent is to be made
        training.restore(arrays, text)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:  # of dicts, numpy and torch
        raise InvalidParameter(f"{record.path.name}: not a checkpoint of a training: {error!r}") from None


def _validate(record: TrainingRecord[Point], training: GradientTraining) -> Point:
    """Play the validation episodes, and keep the weights if they are the best so far."""
    config, metric, network = training.config, training.config.metric, training.network
    count, environment = config.evaluation.episodes, config.environment
    rows = held_out(config.id, network.decide, count, VALIDATION_SEED, parameters=environment)
    objective = float(np.mean([row[metric.name] for row in rows]))
    point = Point(training.steps, record.seconds, objective)
    best = record.curve[record.best_index].objective if record.curve else objective
    better = metric.sign * (objective - best) < 0
    record.add(point, better or config.evaluation.keep == "last", network.get_weights)
    return point


def metadata_of(config: Config, result: TrainingResult, command: str) -> dict[str, Any]:
    """The metadata of the agent file of a training."""
    cloned = {} if result.cloning is None else dataclasses.asdict(result.cloning)
    training = {
        "environment_seed": TRAINING_SEEDS + config.seed * SPACING,
        "demonstration_seed": DEMONSTRATION_SEEDS + config.seed,
        "steps": result.steps,
        "returns": dict(zip(("mean", "variance", "count"), result.returns, strict=False)),
        "imitation": {name: None if v != v else v for name, v in cloned.items()} or None,  # NaN is no JSON
    }
    network = {"form": "tokens", "width": config.network.width, "rounds": config.network.rounds}
    return describe(config, network, result, command, **training)
