"""Which agent has seen a domain in its training, and which episodes both play then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import transfer
from schedgym.agents.config import Config, config_for, load_config
from schedgym.agents.files import load_pretrained
from schedgym.core.source import first_window
from schedgym.problems.queue_delay.workload import WINDOWS
from tests.evaluation.test_cli import NODES, pods

ID = "schedgym/QueueDelay-v0"
TASKS = 200  # of a window
Played = list[tuple[str, Any, list[int]]]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The configurations of the trainings, all of which give back the shipped agent."""
    found: list[Config] = []
    shipped = load_pretrained(ID)

    def learn(config: Config) -> Any:
        found.append(config)
        return shipped

    monkeypatch.setattr(transfer, "learn", learn)
    monkeypatch.setattr(transfer, "metadata_of", lambda *_: shipped.metadata)
    return found


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    """Label, policy and episodes of all that plays."""
    found: Played = []

    def play(id: str, given: Any, label: str, policy: Any, episodes: list[int]) -> dict[str, Any]:
        found.append((label, policy, episodes))
        return {"objectives": [1.0]}

    monkeypatch.setattr(transfer, "play", play)
    return found


def test_a_generator_is_left_out(trained: list[Config], played: Played) -> None:
    first, *others = load_config(config_for(ID)).domains
    transfer._measure(ID, first, quick=True)
    assert list(trained[0].domains) == [name for name in others if name != f"{first} validation"]
    assert [label for label, _, _ in played[:3]] == ["with", "without", "bf-exec"]
    assert [policy.agent.sha256 for _, policy, _ in played[:2]] == [load_pretrained(ID).sha256, ""]
    assert all(episodes == [0, 1] for _, _, episodes in played)


def test_a_trace_is_added_and_its_last_windows_are_played(
    trained: list[Config], played: Played, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = [(4000 * (i * i % 7 + 1), 4096, 10 * i, 10 * i + 50) for i in range(10 * TASKS)]
    (tmp_path / "pods").write_text(pods(rows))
    head, first, *_ = NODES.splitlines()
    machines = [first.replace("n0", f"n{i}") for i in range(8)]
    (tmp_path / "nodes").write_text("\n".join([head, *machines]) + "\n")
    monkeypatch.setattr(transfer, "fetch", lambda name: tmp_path / name)
    transfer._measure(ID, {"trace": "pods", "nodes": "nodes"}, quick=False)
    assert trained[0].domains["trace"].parameters["trace"] == str(tmp_path / "pods")
    assert [policy.agent.sha256 for _, policy, _ in played[:2]] == ["", load_pretrained(ID).sha256]
    first = first_window(transfer.SEED, WINDOWS, 10)
    for _, _, episodes in played:
        assert sorted((first + episode) % 10 for episode in episodes) == [8, 9]
