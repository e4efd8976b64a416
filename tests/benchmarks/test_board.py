"""The cost of a process for a candidate is measured of two plays that decide the same."""

from __future__ import annotations

from benchmarks import board
from schedgym.board.suites import load_suite
from tests.long import long


@long
def test_a_batch_is_played_apart_as_here() -> None:
    batch = load_suite("QueueDelay-1").instances("test")[:2]
    here, apart = (play("bf-exec", batch) for play in (board.play_here, board.play_apart))
    assert here["decisions"] == apart["decisions"] > 400
    assert 0 < here["deciding"] < here["seconds"] and 0 < apart["deciding"] < apart["seconds"]
