"""Manifests: they record how a result was made, so that it can be made again."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgym._version import __version__

PACKAGES = ("numpy", "scipy", "numba", "gymnasium", "pandas")


def make_manifest(
    *,
    command: Sequence[str] | None = None,
    seeds: Sequence[int] = (),
    parameters: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Describe the code, the machine and the arguments of this process in a JSON-serialisable dict.

    Args:
        command: the command line; None takes ``sys.argv``, of the program only its name.
        seeds: the seeds that were used.
        parameters: parameters of the environment.
        more: further entries, e.g. ``id``.

    Returns:
        ``command``, ``date`` (UTC, ISO 8601), ``versions`` (schedgym, python and libraries; None where one is
        not installed), ``git`` ({"commit", "modified"} of the source tree, None if there is none), ``seeds``,
        ``parameters``, ``machine`` (platform, cpu, cores), and the entries of ``more``.
    """
    return {
        "command": shlex.join([*_program(), *sys.argv[1:]] if command is None else command),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": {
            "schedgym": __version__,
            "python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
        },
        "git": _git(),
        "seeds": list(seeds),
        "parameters": dict(parameters or {}),
        "machine": {
            "platform": platform.platform(),
            "cpu": _cpu(),
            "cores": os.cpu_count(),
        },
        **more,
    }


def _program() -> list[str]:
    """How this program was started, without the folders of the machine."""
    path = Path(sys.argv[0])
    return ["python", "-m", path.parent.name] if path.name == "__main__.py" else [path.name]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git() -> dict[str, Any] | None:
    """Commit of the tree that this very file belongs to, and whether tracked files were changed since."""
    root = Path(__file__).resolve().parents[2]

    def git(*arguments: str) -> str:
        # no optional locks: asking must not disturb another git command
        command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        # a copy installed below some other project's tree is not that project's commit
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root:
            return None
        modified = git("status", "--porcelain", "--untracked-files=no") != ""
        return {"commit": git("rev-parse", "HEAD"), "modified": modified}
    except (OSError, subprocess.SubprocessError):
        return None


def _cpu() -> str:
    """The processor's name, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
