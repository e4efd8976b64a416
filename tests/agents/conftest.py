"""Settings of the tests of agents."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """The processes of the tests share the cores; and sums in another order give other weights."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
