"""Settings of the tests of agents."""

from __future__ import annotations

import os
import sys

import pytest

# the processes of the tests share the cores; and sums in another order give other weights
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Torch that other tests have imported uses one thread, too."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
