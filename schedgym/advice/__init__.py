"""Advice from a log: what it says of its cluster, and which policy would serve it best."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schedgym.advice.replays import Replay, replay
    from schedgym.advice.verdict import Advice, advise

__all__ = ["Advice", "Replay", "advise", "replay"]

_MODULES = {"Advice": "verdict", "advise": "verdict", "Replay": "replays", "replay": "replays"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
