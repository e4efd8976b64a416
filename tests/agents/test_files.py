"""Agent files: what is written is read back, and nothing else is taken for an agent."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedgym.agents import files
from schedgym.agents.files import (
    InvalidAgentFile,
    agent_paths,
    checkpoint_path,
    list_pretrained,
    load_agent,
    load_pretrained,
    save_agent,
    write_atomically,
)
from schedgym.errors import InvalidParameter, UnknownName
from tests.tables import entry

METADATA: dict[str, Any] = entry(__file__, "METADATA")
WEIGHTS = {"theta": np.linspace(-1, 1, 7, dtype=np.float32), "statistics/context mean": np.zeros((2, 3))}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_agent(tmp_path / "agent.npz", WEIGHTS, METADATA)
    return tmp_path / "agent.npz"


def entries(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def text_of(value: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def signed(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """With the checksum that belongs to them: a file that somebody made on purpose."""
    weights = {n.removeprefix("weights/"): a for n, a in arrays.items() if n.startswith("weights/")}
    checksum = files._digest(weights, arrays["metadata"].tobytes())
    return {**arrays, "sha256": np.frombuffer(checksum, dtype=np.uint8)}


def test_what_is_written_is_read_back(path: Path) -> None:
    agent = load_agent(path)
    assert agent.metadata == METADATA
    assert agent.name == "agent"
    assert (agent.id, agent.view) == (METADATA["id"], "pick")
    assert agent.environment == {"window": "all", "view": "pick", "observation": "features"}
    assert set(agent.weights) == set(WEIGHTS)
    for name, array in WEIGHTS.items():
        assert agent.weights[name].dtype == array.dtype
        np.testing.assert_array_equal(agent.weights[name], array)
    again = path.with_name("again.npz")
    assert save_agent(again, WEIGHTS, METADATA) == agent.sha256
    assert again.read_bytes() == path.read_bytes()
    assert save_agent(again, {**WEIGHTS, "theta": WEIGHTS["theta"] + 1}, METADATA) != agent.sha256
    assert save_agent(again, WEIGHTS, {**METADATA, "command": ""}) != agent.sha256


def test_another_environment_or_view_is_refused(path: Path) -> None:
    assert load_agent(path, "schedgym/QueueDelay-v0", "pick").name == "agent"
    with pytest.raises(InvalidParameter, match="agent: this agent is for environment 'schedgym/Queue.*Geo"):
        load_agent(path, "schedgym/GeoFair-v0")
    with pytest.raises(InvalidParameter, match="this agent is for view 'pick', not for 'route'"):
        load_agent(path, "schedgym/QueueDelay-v0", "route")
    with pytest.raises(InvalidParameter, match="this agent is for observation 'features', not for 'dict'"):
        load_agent(path).check(observation="dict")


@pytest.mark.parametrize("name", sorted(METADATA))
def test_metadata_is_checked_on_both_sides(name: str, path: Path) -> None:
    missing = {key: value for key, value in METADATA.items() if key != name}
    for metadata, what in ((missing, "is missing"), ({**METADATA, name: 3}, "must be a")):
        before = path.read_bytes()
        with pytest.raises(InvalidAgentFile, match=f"agent: metadata: {name} {what}"):
            save_agent(path, WEIGHTS, metadata)
        assert path.read_bytes() == before
        arrays = entries(path) | {"metadata": text_of({"format": 1, **metadata})}
        write_atomically(path, signed(arrays))
        with pytest.raises(InvalidAgentFile, match=f"agent: metadata: {name} {what}"):
            load_agent(path)
        path.write_bytes(before)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([1.0, np.nan]), r"weights: theta\[1\] is not finite"),
        (np.array([[0.0, 1.0], [np.inf, 1.0]]), r"weights: theta\[1, 0\] is not finite"),
        (np.array(["a"]), "weights: theta must be numbers"),
        (np.array([1j]), "weights: theta must be numbers"),
    ],
)
def test_weights_are_checked_on_both_sides(array: np.ndarray, message: str, path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(InvalidAgentFile, match=message):
        save_agent(path, {"theta": array}, METADATA)
    assert path.read_bytes() == before
    write_atomically(path, signed(entries(path) | {"weights/theta": array}))
    with pytest.raises(InvalidAgentFile, match=message):
        load_agent(path)


def test_metadata_that_is_no_json_data(path: Path) -> None:
    for value in (object(), float("nan"), {1, 2}):
        with pytest.raises(InvalidParameter, match="metadata: not JSON data"):
            save_agent(path, WEIGHTS, {**METADATA, "training": {"a": value}})


@pytest.mark.parametrize("entry", ["weights/theta", "metadata", "sha256"])
def test_a_change_of_any_entry_is_found(entry: str, path: Path) -> None:
    arrays = entries(path)
    changed = arrays[entry].copy()
    changed[0] = changed[0] + 1
    write_atomically(path, {**arrays, entry: changed})
    with pytest.raises(InvalidAgentFile, match="agent.npz: was changed since it was written"):
        load_agent(path)
    write_atomically(path, {name: array for name, array in arrays.items() if name != entry})
    with pytest.raises(InvalidAgentFile, match="was changed|has no entry"):
        load_agent(path)
    # even the type of the numbers, their shape, or another name
    reshaped = arrays["weights/statistics/context mean"].reshape(3, 2)
    write_atomically(path, {**arrays, "weights/statistics/context mean": reshaped})
    with pytest.raises(InvalidAgentFile, match="was changed"):
        load_agent(path)
    write_atomically(path, {**arrays, "weights/theta": arrays["weights/theta"].view(np.int32)})
    with pytest.raises(InvalidAgentFile, match="was changed"):
        load_agent(path)
    write_atomically(path, {**arrays, "weights/more": np.zeros(1)})
    with pytest.raises(InvalidAgentFile, match="was changed"):
        load_agent(path)
    write_atomically(path, {**arrays, "more": np.zeros(1)})
    with pytest.raises(InvalidAgentFile, match="an unknown entry 'more'"):
        load_agent(path)


def test_other_texts_with_their_checksum(path: Path) -> None:
    arrays = entries(path)
    texts = {
        "its metadata is not JSON": b"{",
        "its metadata is not JSON ": b"\xff",
        "its metadata is not JSON  ": b"[" * 100_000,
        "another format": b"[]",
        "another format ": json.dumps({**METADATA, "format": 2}).encode(),
        "another format  ": json.dumps(METADATA).encode(),
    }
    for message, text in texts.items():
        write_atomically(path, signed({**arrays, "metadata": np.frombuffer(text, dtype=np.uint8)}))
        with pytest.raises(InvalidAgentFile, match=message.strip()):
            load_agent(path)


class Bomb:
    """Unpickled, it would leave a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_nothing_is_unpickled(path: Path) -> None:
    mark = path.with_name("mark")
    arrays: dict[str, Any] = dict(entries(path))
    bomb = np.empty(1, dtype=object)
    bomb[0] = Bomb(mark)
    for name in ("weights/theta", "metadata", "weights/more"):
        with path.open("wb") as stream:
            np.savez(stream, **{**arrays, name: bomb})
        with pytest.raises(InvalidAgentFile, match="not an agent file"):
            load_agent(path)
    path.write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(InvalidAgentFile, match="not an agent file"):
        load_agent(path)
    assert not mark.exists()
    np.load(path, allow_pickle=True)  # it is a bomb
    assert mark.exists()


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_agent(tmp_path / "nothing.npz")
    with pytest.raises(IsADirectoryError):
        load_agent(tmp_path)


def test_where_checkpoints_stand(tmp_path: Path) -> None:
    assert checkpoint_path(tmp_path / "agent.npz") == tmp_path / "agent.checkpoint"
    with pytest.raises(InvalidParameter, match="there is no folder"):
        checkpoint_path(tmp_path / "no" / "agent.npz")
    with pytest.raises(InvalidParameter, match="is a folder"):
        checkpoint_path(tmp_path)
    with pytest.raises(InvalidParameter, match="suffix of checkpoints"):
        checkpoint_path(tmp_path / "agent.checkpoint")


def test_pretrained_agents() -> None:
    with pytest.raises(UnknownName, match="pretrained agent"):
        load_pretrained("schedgym/Nothing-v0")
    for id, path in list_pretrained().items():
        assert path.stat().st_size < 2**20
        agent = load_pretrained(id)
        assert agent.id == id
        assert agent.metadata["command"]


def test_a_folder_does_not_hide_the_shipped_agents(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pretrained").mkdir()
    (tmp_path / "pretrained" / "mine.npz").touch()
    assert agent_paths("pretrained") == ["pretrained"]
    assert agent_paths("./pretrained") == ["pretrained/mine.npz"]
    (tmp_path / "mine.npz").touch()
    with pytest.raises(InvalidParameter, match="is empty"):
        agent_paths("")
