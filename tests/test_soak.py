"""The soak finds memory that is lost, also where a process has much that it has freed."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from tests import soak


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("pieces, status", [(0, 0), (5_000, 1)])
def test_lost_memory_is_found(pieces: int, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[Any] = []

    def play(number: int, living: dict[int, Any]) -> None:
        if number == 0:  # 50 MB that are freed, and stay with the process because of the last piece
            freed = [bytes(1000) for _ in range(50_000)]
            lost.append(freed[-1])
        lost.extend(bytes(1000) for _ in range(pieces))
        time.sleep(0.05)

    monkeypatch.setattr(soak, "play_round", play)
    monkeypatch.setattr(soak, "LIMIT", 60.0)  # MiB a minute; 5 are lost in each round
    assert soak.soak(0.0, None) == status
