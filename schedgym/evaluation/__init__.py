"""Comparison of policies on equal workloads: runs, statistics, pictures, and manifests of all of them.

Everything here needs the extra ``eval`` (pandas, joblib, matplotlib) and is imported when it
is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schedgym.evaluation.comparison import Comparison, Evaluation
    from schedgym.evaluation.datasets import create_dataset
    from schedgym.evaluation.episodes import play
    from schedgym.evaluation.gantt import plot_schedule
    from schedgym.evaluation.manifest import make_manifest
    from schedgym.evaluation.plot import plot_comparison
    from schedgym.evaluation.recording import record_episode
    from schedgym.evaluation.report import write_report
    from schedgym.evaluation.runner import How, compare, evaluate, score
    from schedgym.evaluation.statistics import bootstrap_interval
    from schedgym.evaluation.store import ResultsStore
    from schedgym.evaluation.sweeps import SweepSpec, load_spec, make_spec, run_sweep
    from schedgym.evaluation.tuned import tuned_options
    from schedgym.evaluation.tuning import Tuning, tune

__all__ = [
    "Comparison",
    "Evaluation",
    "How",
    "ResultsStore",
    "SweepSpec",
    "Tuning",
    "bootstrap_interval",
    "compare",
    "create_dataset",
    "evaluate",
    "load_spec",
    "make_manifest",
    "make_spec",
    "play",
    "plot_comparison",
    "plot_schedule",
    "record_episode",
    "run_sweep",
    "score",
    "tune",
    "tuned_options",
    "write_report",
]

_MODULES = {
    "comparison": ("Comparison", "Evaluation"),
    "datasets": ("create_dataset",),
    "gantt": ("plot_schedule",),
    "manifest": ("make_manifest",),
    "plot": ("plot_comparison",),
    "recording": ("record_episode",),
    "report": ("write_report",),
    "episodes": ("play",),
    "runner": ("How", "compare", "evaluate", "score"),
    "statistics": ("bootstrap_interval",),
    "store": ("ResultsStore",),
    "sweeps": ("SweepSpec", "load_spec", "make_spec", "run_sweep"),
    "tuned": ("tuned_options",),
    "tuning": ("Tuning", "tune"),
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
