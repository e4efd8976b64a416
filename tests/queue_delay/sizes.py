"""The sizes of queue-delay at which the common tests run it; see :mod:`tests.test_all_problems`."""

from typing import Any

SMALL: dict[str, Any] = {"tasks": 14, "servers": 3, "window": 4}
SHORT: dict[str, Any] = {"tasks": 6}
BUSY: dict[str, Any] = {"tasks": 90}
OTHER: list[dict[str, Any]] = [{"normalize": True}, {"load": 0.9}, {"window": 1}]
