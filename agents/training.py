"""Training by any algorithm: from a configuration to an agent file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgym.agents.config import Config
from schedgym.agents.files import checkpoint_path, save_agent
from schedgym.errors import InvalidParameter

if TYPE_CHECKING:  # they import torch
    from schedgym.agents.gradient import GradientTraining


def check_device(config: Config, device: str | None, here: bool = True) -> None:
    """Check a device before a training begins.

    Args:
        config: configuration of the training.
        device: as for :func:`train`.
        here: False: the training runs on another machine; whether the device is there is not checked.

    Raises:
        InvalidParameter: for a device that is not there or that the algorithm does not use.
    """
    if device is None:
        return
    if config.algorithm != "ppo":
        raise InvalidParameter(f"device: has no effect on algorithm {config.algorithm!r}: leave it out")
    if here:
        from schedgym.agents.environments import find_devices

        find_devices(device)


def learn(
    config: Config,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    report: Callable[[Any], None] | None = None,
    log_dir: str | Path | None = None,
    device: str | None = None,
) -> Any:
    """Train by the algorithm of a configuration.

    Args:
        config: configuration of the training.
        checkpoint: file of its state, rewritten as it goes on; None: there is none.
        resume: go on from that file if it is there.
        report: called with each validation.
        log_dir: folder for TensorBoard; None: no logs.
        device: torch's name of the device on which algorithm "ppo" computes; "cuda": its environments run
            there, too; "auto": a GPU where there is one; None: the CPU.

    Returns:
        a :class:`~schedgym.agents.search.SearchResult` of algorithm "cma", else a
        :class:`~schedgym.agents.gradient.TrainingResult`.

    Raises:
        InvalidParameter: for a checkpoint of another configuration, or for a device that is not there or that
            the algorithm does not use.
        gymnasium.error.DependencyNotInstalled: without the extra ``agents``, or on a GPU without ``cuda``.
    """
    check_device(config, device)
    if config.algorithm == "cma":
        from schedgym.agents.search import search

        return search(config, checkpoint, resume, report, log_dir)
    from schedgym.agents.gradient import run

    return run(make_training(config, device), checkpoint, resume, report, log_dir)


def make_training(config: Config, device: str | None = None) -> GradientTraining:
    """The training of a configuration with gradients, before its start; arguments as for :func:`learn`."""
    if config.algorithm == "ppo":
        from schedgym.agents.ppo import PPOTraining

        return PPOTraining(config, device or "cpu")
    from schedgym.agents.sb3_training import SB3Training

    return SB3Training(config)


def metadata_of(config: Config, result: Any, command: str) -> dict[str, Any]:
    """The metadata of the agent file of a training that :func:`learn` has carried out by a command."""
    if config.algorithm == "cma":
        from schedgym.agents import search as module
    else:
        from schedgym.agents import gradient as module  # type: ignore[no-redef]
    return module.metadata_of(config, result, command)


def train(
    config: Config,
    path: str | Path,
    command: str = "",
    resume: bool = False,
    report: Callable[[Any], None] | None = None,
    log_dir: str | Path | None = None,
    device: str | None = None,
) -> Any:
    """Train an agent and write its file; result and errors are those of :func:`learn`.

    Args:
        config: configuration of the training.
        path: path of the agent file; the checkpoint stands beside it with the suffix ".checkpoint", and is
            removed when the file is written. InvalidParameter if there can be no such file.
        command: command that repeats the training, for the file.
        resume: go on from the checkpoint if there is one.
        report: called with each validation.
        log_dir: folder for TensorBoard; None: no logs.
        device: as for :func:`learn`.
    """
    checkpoint, files = checkpoint_path(path), config.contents()
    result = learn(config, checkpoint, resume, report, log_dir, device)
    save_agent(path, result.weights, {**metadata_of(config, result, command), "files": files})
    checkpoint.unlink(missing_ok=True)
    return result
