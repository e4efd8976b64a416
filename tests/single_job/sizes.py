"""The sizes of single-job at which the common tests run it; see :mod:`tests.test_all_problems`."""

from typing import Any

SMALL: dict[str, Any] = {"tasks": 7, "arity": 4}
SHORT: dict[str, Any] = {"tasks": 5}
BUSY: dict[str, Any] = {"tasks": 25}
OTHER: list[dict[str, Any]] = [
    {"normalize": True},
    {"reward": "terminal"},
    {"max_moves": 3},
    {"fallback": "gsa"},
    {"server_caps": False, "energy_ratio": 1.5},
    {"tasks": 1, "arity": 2},
]
