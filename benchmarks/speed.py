"""Speed as ``schedgym bench`` measures it, in the cases of ``benchmarks/problems``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.cases import cases
from schedgym.evaluation import bench


def main(name: str | None = None, quick: bool = False, json: str | Path | None = None) -> dict[str, Any]:
    """See :func:`schedgym.evaluation.bench.main`."""
    return bench.main(name, quick, json, cases)
