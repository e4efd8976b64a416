"""schedgym: Gymnasium environments for cluster job scheduling, with the papers' algorithms as policies.

Importing this package registers the environment ids with Gymnasium (``gym.make("schedgym/QueueDelay-v0")``)
and imports nothing heavy: numba, pandas and torch wait until they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as _gymnasium

from schedgym._version import __version__
from schedgym.core.problem import get_problem, list_problems
from schedgym.errors import (
    InfeasibleInstance,
    InvalidAction,
    InvalidParameter,
    InvalidSchedule,
    InvalidStore,
    InvalidWorkload,
    RunAborted,
    SchedgymError,
    TraceFormatError,
    UnknownName,
)

if TYPE_CHECKING:
    from schedgym.advice import advise
    from schedgym.core.policy import Policy, list_policies, make_policy, register_policy
    from schedgym.core.record import ScheduleRecord
    from schedgym.core.workload import Workload
    from schedgym.core.workload_files import load_workload, save_workload
    from schedgym.evaluation import evaluate, plot_schedule, record_episode, score

__all__ = [
    "InfeasibleInstance",
    "InvalidAction",
    "InvalidParameter",
    "InvalidSchedule",
    "InvalidStore",
    "InvalidWorkload",
    "Policy",
    "RunAborted",
    "SchedgymError",
    "ScheduleRecord",
    "TraceFormatError",
    "UnknownName",
    "Workload",
    "__version__",
    "advise",
    "evaluate",
    "get_problem",
    "list_policies",
    "list_problems",
    "load_workload",
    "make_policy",
    "plot_schedule",
    "record_episode",
    "register_policy",
    "save_workload",
    "score",
]

_MODULES = {
    "advice": ("advise",),
    "core.policy": ("Policy", "list_policies", "make_policy", "register_policy"),
    "core.record": ("ScheduleRecord",),
    "core.workload": ("Workload",),
    "core.workload_files": ("load_workload", "save_workload"),
    "evaluation": ("evaluate", "plot_schedule", "record_episode", "score"),
}
_LAZY = {name: f"schedgym.{module}" for module, names in _MODULES.items() for name in names}
_PARTS = ("advice", "agents", "baselines", "evaluation", "papers", "testing", "traces")


def __getattr__(name: str) -> Any:
    import importlib

    if name in _PARTS:
        return importlib.import_module(f"schedgym.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def _register() -> None:
    """Enter every problem's ids in Gymnasium's registry; a second import changes nothing."""
    for problem in list_problems().values():
        for id in problem.ids:
            if id not in _gymnasium.registry:
                classes = id.partition("/")[2].rpartition("-v")[0]
                _gymnasium.register(
                    id=id,
                    entry_point=f"{problem.package}.env:{classes}Env",
                    vector_entry_point=f"{problem.package}.env:{classes}VectorEnv",
                )


_register()
