"""Programs of the tests in processes of their own, whose kernels are compiled, or run as plain Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def python(*arguments: str, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with variables of the environment added, to an end without an error."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def results_of(program: str, *arguments: str, folder: Path = ROOT, **variables: str) -> Any:
    """What a program prints, as JSON."""
    return json.loads(python("-c", program, *arguments, folder=folder, **variables).stdout)


def check_interpreted(program: str) -> None:
    """The results are the same without compiling."""
    assert results_of(program) == results_of(program, NUMBA_DISABLE_JIT="1")
