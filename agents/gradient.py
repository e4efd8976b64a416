"""Common parts of the trainings with gradients: seeds, results and the metadata of agent files.

Seeds. Environment i of a training with seed s plays the episodes 0, 1, ... of the environment's seed
TRAINING_SEEDS + s SPACING + i (i // n where n of them play the same workload); demonstrations are episodes of
DEMONSTRATION_SEEDS + s; validations are those of the gradient-free search. Evaluations take seeds below 2^32,
so no episode is met twice (where episodes are drawn: those of a trace or a workload file are the same for
every seed).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.agents.config import Config
from schedgym.agents.files import describe
from schedgym.agents.imitate import Cloning
from schedgym.agents.record import TrainingRecord
from schedgym.agents.rollout import held_out
from schedgym.core.random import VALIDATION_SEED
from schedgym.extras import require

__all__ = [
    "DEMONSTRATION_SEEDS",
    "SPACING",
    "TRAINING_SEEDS",
    "Point",
    "TrainingResult",
    "metadata_of",
    "one_thread",
    "optimizer_arrays",
    "restore_optimizer",
    "validate",
]

torch: Any = require("torch", "agents")

Arrays = dict[str, npt.NDArray[Any]]

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
    """

    weights: dict[str, npt.NDArray[np.float32]]
    curve: tuple[Point, ...]
    best: Point
    returns: tuple[float, ...]
    cloning: Cloning | None
    steps: int
    seconds: float


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: for small networks that is fastest, and sums keep their order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def validate(
    record: TrainingRecord[Point],
    steps: int,
    decide: Callable[[Arrays], Any],
    weights: Callable[[], Arrays],
) -> Point:
    """Play the validation episodes, and keep the weights if they are the best so far.

    Args:
        record: record of the training.
        steps: environment steps so far.
        decide: batch of observations [n, ...] -> actions [n, ...]; see
            :func:`~schedgym.agents.rollout.held_out`.
        weights: gives the weights by which it decides.
    """
    config, metric = record.config, record.config.metric
    rows = held_out(
        config.id, decide, config.evaluation.episodes, VALIDATION_SEED, parameters=config.environment
    )
    objective = float(np.mean([row[metric.name] for row in rows]))
    point = Point(steps, record.seconds, objective)
    best = record.curve[record.best_index].objective if record.curve else objective
    better = metric.sign * (objective - best) < 0
    record.add(point, better or config.evaluation.keep == "last", weights)
    return point


def optimizer_arrays(optimizer: Any, named: Iterable[tuple[str, Any]]) -> Arrays:
    """The state of Adam as arrays, of weights that have names."""
    return {
        f"optimizer/{moment}/{name}": optimizer.state[weight][moment].cpu().numpy().copy()
        for name, weight in named
        if optimizer.state.get(weight)
        for moment in MOMENTS
    }


def restore_optimizer(optimizer: Any, named: Iterable[tuple[str, Any]], arrays: Arrays) -> None:
    """Bring Adam to its state in :func:`optimizer_arrays`."""
    for name, weight in named:
        if f"optimizer/step/{name}" in arrays:
            state = {m: torch.as_tensor(arrays[f"optimizer/{m}/{name}"]).clone() for m in MOMENTS}
            optimizer.state[weight] = {m: a if m == "step" else a.to(weight.device) for m, a in state.items()}


def metadata_of(config: Config, result: TrainingResult, command: str) -> dict[str, Any]:
    """The metadata of the agent file of a training."""
    training = {
        "environment_seed": TRAINING_SEEDS + config.seed * SPACING,
        "demonstration_seed": DEMONSTRATION_SEEDS + config.seed,
        "validation_seed": VALIDATION_SEED,
        "steps": result.steps,
        "seconds": result.seconds,
        "returns": dict(zip(("mean", "variance", "count"), result.returns, strict=False)),
        "imitation": _finite(result.cloning),
        "best": dataclasses.asdict(result.best),
        "curve": [dataclasses.asdict(point) for point in result.curve],
    }
    network = {"form": "tokens", "width": config.network.width, "rounds": config.network.rounds}
    return describe(config, network, training, command)


def _finite(cloning: Cloning | None) -> dict[str, Any] | None:
    """The result of the imitation as JSON data, in which NaN becomes null."""
    if cloning is None:
        return None
    return {n: None if v != v else v for n, v in dataclasses.asdict(cloning).items()}
