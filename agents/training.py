"""Training by any algorithm: from a configuration to an agent file."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from schedgym.agents.config import Config
from schedgym.agents.files import checkpoint_path, save_agent
from schedgym.errors import InvalidParameter

__all__ = ["check_device", "train"]


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


def train(
    config: Config,
    path: str | Path,
    command: str = "",
    resume: bool = False,
    report: Callable[[Any], None] | None = None,
    log_dir: str | Path | None = None,
    device: str | None = None,
) -> Any:
    """Train an agent and write its file.

    Args:
        config: configuration of the training.
        path: path of the agent file; the checkpoint stands beside it with the suffix ".checkpoint", and is
            removed when the file is written.
        command: command that repeats the training, for the file.
        resume: go on from the checkpoint if there is one.
        report: called with each validation.
        log_dir: folder for TensorBoard; None: no logs.
        device: torch's name of the device on which algorithm "ppo" computes; "cuda": its environments run
            there, too; None: the CPU.

    Returns:
        a :class:`~schedgym.agents.search.SearchResult` of algorithm "cma", else a
        :class:`~schedgym.agents.gradient.TrainingResult`.

    Raises:
        InvalidParameter: if there can be no such file, for a checkpoint of another configuration, or for a
            device that is not there or that the algorithm does not use.
        gymnasium.error.DependencyNotInstalled: without the extra ``agents``.
    """
    learn: Callable[..., Any]
    check_device(config, device)
    if config.algorithm == "cma":
        from schedgym.agents.search import metadata_of
        from schedgym.agents.search import search as learn
    else:
        from schedgym.agents.gradient import metadata_of  # type: ignore[assignment]

        if config.algorithm == "ppo":
            from schedgym.agents import ppo

            learn = functools.partial(ppo.learn, device=device or "cpu")
        else:
            from schedgym.agents.train import learn
    checkpoint = checkpoint_path(path)
    result = learn(config, checkpoint, resume, report, log_dir)
    save_agent(path, result.weights, metadata_of(config, result, command))
    checkpoint.unlink(missing_ok=True)
    return result
