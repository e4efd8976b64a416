"""The sizes of parallel-jct at which the common tests run it; see :mod:`tests.test_all_problems`."""

from typing import Any

SMALL: dict[str, Any] = {
    "jobs": 5,
    "arity": 4,
    "reading": "shape-half",
    "most_tasks": 5,
    "load_max": 300.0,
    "max_time": 300.0,  # a random plan launches nothing, and every round is a step
    "window": 4,
    "running_window": 6,
}
SHORT: dict[str, Any] = {"jobs": 3}
BUSY: dict[str, Any] = {"jobs": 12, "load_max": 2000.0, "rate": 1.0}
OTHER: list[dict[str, Any]] = [
    {"normalize": True, "drc": False, "rounds": "all"},
    {"window": 1, "running_window": 1},
    {"rounds": "events", "server_caps": False},
    {"max_moves": 2},
    {"reading": "x70", "most_tasks": None, "running_window": "all", "jobs": 3},
    {"max_time": 60.0, "tick": 4.0},
    {"planner": "list-scheduling"},
]
