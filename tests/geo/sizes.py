"""The sizes of geo at which the common tests run it; see :mod:`tests.test_all_problems`."""

from typing import Any

SMALL: dict[str, Any] = {"jobs": 6, "sites": 3, "slots": 2, "choices": 2, "max_tasks": 8, "window": 4}
SHORT: dict[str, Any] = {"jobs": 4}
BUSY: dict[str, Any] = {"jobs": 20, "utilization": 1.0}
OTHER: list[dict[str, Any]] = [
    {"normalize": True, "objective": "weighted", "fairness_weight": 0.3},
    {"window": 1},
    {"window": "all", "jobs": 4, "max_tasks": 80},  # more than there is room for at first
    {"aggressive": True, "work_conserving": False},
    {"clairvoyant": True},
    {"placement": "associated"},
    {"dispatch_sites": "associated"},
]
