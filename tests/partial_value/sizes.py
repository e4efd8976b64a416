"""The sizes of partial-value at which the common tests run it; see :mod:`tests.test_all_problems`."""

from typing import Any

SMALL: dict[str, Any] = {"jobs": 8, "rate": 3.0, "windows": 2.0, "heterogeneity": 30.0, "window": 4}
SHORT: dict[str, Any] = {"jobs": 4}
BUSY: dict[str, Any] = {"jobs": 40, "rate": 20.0}
OTHER: list[dict[str, Any]] = [
    {"normalize": True, "utility": "log"},
    {"window": 1, "deadlines": "hidden"},
    {"utility": "linear", "windows": 0.5},
    {
        **{"single": True, "heterogeneity": 8.0, "model": "continuous"},
        **{"capacity": 7.0, "tasks": 9, "parallelism": 3},
    },
    {"exponent": 0.25, "capacity": 20.0},
    {"model": "discrete", "heterogeneity": 60.0, "heavy": "resource"},
    {"model": "discrete", "utility": "log"},
    {"model": "discrete", "single_task": False},
    {"serving": "program"},
]
