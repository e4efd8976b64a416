"""The sizes of flowtime at which the common tests run it; see :mod:`tests.test_all_problems`."""

from typing import Any

SMALL: dict[str, Any] = {"jobs": 8, "servers": "4+2+1", "window": 4}
SHORT: dict[str, Any] = {"jobs": 4}
BUSY: dict[str, Any] = {"jobs": 30, "load": 1.2}
OTHER: list[dict[str, Any]] = [
    {"normalize": True, "norm": 1.5, "alpha": 2.0},
    {"packing": "sticky", "alpha": 2.0},
    {"window": 1},
    {"kind": "2d", "estimation": "waste"},
    {"kind": "mapreduce"},
    {"kind": "mapreduce", "latency": True, "window": "all", "jobs": 5},
    {"estimation": "order"},
]
