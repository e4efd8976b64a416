"""``schedgym dataset``: what a stranger gets from Minari is what was played, and nothing is written half."""

from __future__ import annotations

import numpy as np
import pytest

from schedgym import cli
from schedgym.core.random import EVALUATION_SEEDS
from schedgym.evaluation import create_dataset, datasets, evaluate
from tests.interpreted import python
from tests.tables import entry

minari = pytest.importorskip("minari", reason="needs the extra minari")

ID = "schedgym/FlowtimePacking-v0"
SMALL = {"jobs": 12, "servers": "3"}
#: recovers the environment in a process that does not import schedgym, and plays each episode again
REPLAY = """
import sys
import minari
import numpy as np

def same(kept, at, shown):
    if isinstance(shown, dict):
        return kept.keys() == shown.keys() and all(same(kept[name], at, shown[name]) for name in shown)
    return kept[at].tobytes() == np.asarray(shown).tobytes() and kept[at].dtype == np.asarray(shown).dtype

data = minari.load_dataset(sys.argv[1])
env = data.recover_environment()
for told, episode in zip(data.storage.get_episode_metadata(data.episode_indices), data, strict=True):
    observation, info = env.reset(seed=told["seed"], options=told["options"])
    for number, action in enumerate(episode.actions):
        assert same(episode.observations, number, observation) and same(episode.infos, number, info)
        assert env.action_space.contains(action)
        observation, reward, terminated, truncated, info = env.step(action)
        kept = episode.rewards[number], episode.terminations[number], episode.truncations[number]
        assert kept == (reward, terminated, truncated)
    assert terminated or truncated
    assert same(episode.observations, -1, observation) and same(episode.infos, -1, info)
    print(told["policy"], told["options"]["episode"], told["cost"] == info["metrics"]["cost"], len(episode))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def write(*arguments: str) -> int:
    return cli.main(["dataset", "FlowtimePacking-v0", "--jobs", "12", "--servers", "3", *arguments])


def test_a_fresh_process_plays_each_episode_again(capsys, folder) -> None:
    asked = ["--policies", "ocorp,pretrained,random", "--episodes", "2", "-o", "schedgym/flow-v0"]
    assert write(*asked) == 0
    told = capsys.readouterr().out
    assert f"wrote {folder / 'schedgym' / 'flow-v0' / 'data'} (" in told
    done = python("-c", REPLAY, "schedgym/flow-v0")
    lines = [line.split() for line in done.stdout.splitlines()]
    wanted = [[policy, str(e), "True"] for policy in ("ocorp", "pretrained", "random") for e in range(2)]
    assert [line[:3] for line in lines] == wanted
    data = minari.load_dataset("schedgym/flow-v0")
    assert sum(int(line[3]) for line in lines) == data.total_steps
    assert data.env_spec.kwargs["view"] == "priority" and data.env_spec.kwargs["observation"] == "features"
    assert set(data.observation_space) == {"jobs", "servers", "globals", "job_mask"}
    # others than those of evaluations
    seeds = {told["seed"] for told in data.storage.get_episode_metadata(range(6))}
    assert seeds == {EVALUATION_SEEDS}

    assert write(*asked) == 2
    assert "there is a data set 'schedgym/flow-v0' already" in capsys.readouterr().err


def test_its_episodes_are_those_of_evaluate(monkeypatch) -> None:
    """Played on the same seed, each policy has the objective that an evaluation in that view finds."""
    monkeypatch.setattr(datasets, "EVALUATION_SEEDS", 0)
    data = create_dataset(
        ID, ["srpt", "random"], "exact-v0", 2, 5, parameters={"observation": "dict", **SMALL}
    )
    seen = {"view": "priority", "window": 32}
    frame = evaluate(ID, ["srpt", "random"], 2, 5, parameters={**SMALL, **seen})
    values = frame[frame.metric == "cost"]["value"]
    told = list(data.storage.get_episode_metadata(range(4)))
    assert [episode["cost"] for episode in told] == values.tolist()
    assert [-episode.rewards.sum() for episode in data] == pytest.approx(values.tolist())
    # without an agent it has the spaces of gym.make; exact units were asked for
    assert data.action_space.shape == (32,) and "remaining" in data[0].observations
    assert np.isinf(data[0].infos["metrics"]["cost"][:-1]).all()


REFUSED = entry(__file__, "test_refusals_write_nothing")


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_write_nothing(capsys, folder, arguments: list[str], message: str) -> None:
    assert write(*arguments) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not list(folder.rglob("*"))


def test_what_is_cut_off_leaves_nothing(folder, monkeypatch) -> None:
    played = []

    def fails(*arguments):
        if played:
            raise KeyboardInterrupt
        played.append(arguments)
        return real(*arguments)

    real = datasets._play
    monkeypatch.setattr(datasets, "_play", fails)
    with pytest.raises(KeyboardInterrupt):
        create_dataset(ID, "fifo", "cut-v0", 2, parameters=SMALL)
    assert played and not list(folder.rglob("*"))


def test_environments_that_differ_are_told(folder, monkeypatch) -> None:
    """Both play other episodes here: a data set of them would be wrong."""
    real = datasets.steps
    monkeypatch.setattr(datasets, "steps", lambda *a, seed, **more: real(*a, seed=seed + 1, **more))
    with pytest.raises(RuntimeError, match="fifo, seed .*, episode 0: the environments differ"):
        create_dataset(ID, "fifo", "other-v0", 1, parameters=SMALL)
    assert not list(folder.rglob("*"))
