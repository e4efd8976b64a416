"""Programs of the tests in processes of their own, whose kernels are compiled, or run as plain Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["check_interpreted", "results_of"]

ROOT = Path(__file__).resolve().parents[1]


def results_of(program: str, **environment: str) -> Any:
    """What a program prints, as JSON."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, env=variables
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_interpreted(program: str) -> None:
    """The results are the same without compiling."""
    assert results_of(program) == results_of(program, NUMBA_DISABLE_JIT="1")
