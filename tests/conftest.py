"""Settings that all tests share."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.long import EVERY, SLOW_PAGES, SLOW_VIEWS, SLOWEST_VIEWS, long, weekly
from tests.order import in_halves

# compiling a kernel takes seconds, so no example has a deadline; on a build server a failure must repeat
# make test has fewer examples of a property than hypothesis would try
MOST = 100 if EVERY else 40
settings.register_profile("dev", deadline=None, print_blob=True, max_examples=MOST)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
# collecting the tests makes a million objects that stay: see pytest_collection_finish
gc.disable()
# what tests write need not outlive a power failure: thousands of small files, each sent to the disk at once
os.fsync = lambda _: None
# tests read what commands print where nobody says how wide
os.environ.pop("COLUMNS", None)


@pytest.fixture
def interruptible():
    """Let SIGINT raise KeyboardInterrupt; a shell that runs the tests in the background may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_collection_finish() -> None:
    """Let the garbage collector look at what tests make, not again and again at modules and tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Leave notebooks and some views to ``make test-all``; order the tests for several processes."""
    for item in items:
        slowest = SLOWEST_VIEWS.search(item.nodeid)
        if Path(item.path).suffix == ".ipynb" or SLOW_VIEWS.search(item.nodeid) or slowest:
            item.add_marker(long)
        if SLOW_PAGES.search(item.nodeid) or slowest:
            item.add_marker(weekly)
    yield  # other hooks deselect tests
    if hasattr(config, "workerinput"):
        items[:] = in_halves(items, [item.nodeid for item in items])
