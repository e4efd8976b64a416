"""Trainings as units: the weights of a training alone, whatever else runs, goes wrong, or ran before."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedgym import problems
from schedgym.agents import search
from schedgym.agents.config import make_config
from schedgym.agents.files import load_agent
from schedgym.agents.training import learn, train
from schedgym.errors import InvalidParameter
from schedgym.evaluation import trainings
from schedgym.evaluation.standings import read_boards
from schedgym.evaluation.statistics import Estimate
from schedgym.evaluation.store import ResultsStore
from schedgym.evaluation.trainings import Trained, TrainingSpec, run_trainings
from tests.agents.trainings import KINDS
from tests.lazy import needs
from tests.long import long, some, weekly
from tests.tables import entry

pytestmark = needs("cma", "torch")

SEARCH = entry(__file__, "SEARCH")


def spec(folder: Path, data: dict[str, Any] = SEARCH, seeds: Any = (0, 1, 2)) -> TrainingSpec:
    return TrainingSpec("mine", make_config(data), seeds, folder, "schedgym train ...")


def weights(path: Path) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in load_agent(path).weights.items()}


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> list[dict[str, bytes]]:
    """The weights of each seed of the search, trained alone."""
    folder = tmp_path_factory.mktemp("alone")
    one = spec(folder)
    for seed in one.seeds:
        train(one.config_of(seed), one.path(seed))
    found = [weights(one.path(seed)) for seed in one.seeds]
    assert len({repr(own) for own in found}) == 3
    return found


@pytest.mark.parametrize("n_jobs", some([1, 2]))
def test_each_seed_gives_the_weights_that_it_gives_alone(alone, n_jobs, tmp_path) -> None:
    mine = spec(tmp_path / "runs")
    result = run_trainings(mine, n_jobs=n_jobs)
    assert [weights(mine.path(seed)) for seed in mine.seeds] == alone
    assert (result.done, result.failed) == (3, {}) and result.median in result.agents
    assert load_agent(mine.path(2)).metadata["command"] == "schedgym train ... --seed 2 -o mine-2.npz"
    for agent in result.agents:
        told = load_agent(agent.path).metadata["training"]
        assert agent.validation.value == pytest.approx(told["best"]["objective"], rel=1e-12)
        assert agent.validation.low < agent.validation.value < agent.validation.high
        assert agent.change == told["best"]["change"] and agent.steps == told["decisions"]

    with ResultsStore(mine.store) as store:
        (board,) = read_boards(store)
    assert set(board.policies) == {"mine", "bf-exec", "fcfs"}
    for setting in board.settings:
        entry = setting.entry("mine")
        assert entry.trainings == (0, 1, 2) and entry.improvement.rival in ("bf-exec", "fcfs")
        assert entry.episodes == (4 if setting.parameters["tasks"] == 12 else 3)


@long
@weekly
def test_gradients_give_the_same_in_other_processes(tmp_path) -> None:
    mine = spec(tmp_path / "runs", {**KINDS["ppo"], "steps": 512}, (3, 4))
    result = run_trainings(mine, n_jobs=2)
    assert not result.failed
    for agent in result.agents:
        train(mine.config_of(agent.seed), tmp_path / "alone.npz")
        assert weights(agent.path) == weights(tmp_path / "alone.npz")
        best = load_agent(agent.path).metadata["training"]["best"]
        assert agent.validation.value == pytest.approx(best["objective"], rel=1e-3) and agent.change is None
        assert agent.steps == 512


def test_what_was_cut_off_goes_on(alone, interruptible, monkeypatch, tmp_path) -> None:
    """Interrupted by the user in the third generation of the second seed."""
    mine = spec(tmp_path / "runs")
    played: list[int] = []
    original = search.Search.generation

    def generation(self) -> None:
        played.append(self.config.seed)
        if played == [0, 0, 0, 0, 1, 1, 1]:
            os.kill(os.getpid(), signal.SIGINT)
        original(self)

    monkeypatch.setattr(search.Search, "generation", generation)
    with pytest.raises(KeyboardInterrupt):
        run_trainings(mine, n_jobs=1)
    assert mine.path(0).exists() and not mine.path(1).exists()
    played.clear()
    result = run_trainings(mine, n_jobs=1)
    assert played == [1, 1, 2, 2, 2, 2], "finished seeds and generations are not trained again"
    assert result.done == 2 and [weights(mine.path(seed)) for seed in mine.seeds] == alone
    played.clear()
    again = run_trainings(mine, n_jobs=1)
    assert played == [] and again.done == 0
    assert again.agents == result.agents and again.median == result.median
    mine.path(1).unlink()
    anew = run_trainings(mine, n_jobs=1)
    assert played == [1] * 4 and (anew.done, anew.failed) == (1, {})
    assert [own.validation for own in anew.agents] == [own.validation for own in result.agents]
    played.clear()
    assert run_trainings(spec(tmp_path / "runs", seeds=(2, 3)), n_jobs=1).done == 1
    assert played == [3] * 4


def test_a_training_that_fails_costs_no_other(monkeypatch, tmp_path) -> None:
    mine = spec(tmp_path / "runs")
    original = search.Search.generation

    def generation(self) -> None:
        if self.config.seed == 1:
            raise ArithmeticError("not today")
        original(self)

    monkeypatch.setattr(search.Search, "generation", generation)
    result = run_trainings(mine, n_jobs=1)
    assert list(result.failed) == ["seed 1"] and "ArithmeticError: not today" in result.failed["seed 1"]
    assert [agent.seed for agent in result.agents] == [0, 2] and result.done == 2
    monkeypatch.undo()
    again = run_trainings(mine, n_jobs=1)
    assert (again.done, again.failed) == (1, {}) and [agent.seed for agent in again.agents] == [0, 1, 2]

    mine.path(1).write_bytes(mine.path(2).read_bytes())
    with pytest.raises(InvalidParameter, match="mine-1.npz: is of another configuration"):
        run_trainings(mine, n_jobs=1)


def test_another_content_of_a_file_is_another_training(tmp_path) -> None:
    """What was trained on an earlier one is not gone on with, nor taken for an agent of this one."""
    example = Path(problems.__file__).with_name("queue_delay") / "example.json"
    file = Path(shutil.copy(example, tmp_path / "w.json"))
    one = spec(tmp_path, {**SEARCH, "parameters": {"workload": str(file)}, "domains": {}}, [0])
    train(one.config, one.path(0))
    learn(one.config, one.path(0).with_suffix(".checkpoint"))
    file.write_text(f"{file.read_text()}\n")
    with pytest.raises(InvalidParameter, match="mine-0.npz: was trained on other contents of files"):
        run_trainings(one, n_jobs=1)
    with pytest.raises(InvalidParameter, match="mine-0.checkpoint: .* configuration: files.*w.json is"):
        train(one.config, one.path(0), resume=True)


def test_the_recorded_command_can_be_given_to_a_shell(monkeypatch, tmp_path) -> None:
    given: list[str] = []
    monkeypatch.setattr(trainings, "train", lambda config, path, command, **how: given.append(command))
    trainings._train((TrainingSpec("my agent", make_config(SEARCH), (4,), tmp_path, "schedgym train"), 4))
    assert given == ["schedgym train --seed 4 -o 'my agent-4.npz'"]


@long
@weekly
def test_a_training_that_takes_too_long_goes_on_next_time(tmp_path) -> None:
    forever = {**SEARCH, "search": {**SEARCH["search"], "generations": 10**6, "patience": 10**6}}
    mine = spec(tmp_path / "runs", forever, (0,))
    result = run_trainings(mine, n_jobs=1, unit_timeout=40.0)
    assert result.failed == {"seed 0": "TimeoutError: took longer than 40 s"}
    assert result.median is None and result.agents == []
    with np.load(mine.path(0).with_suffix(".checkpoint")) as archive:
        reached = len(archive["fitness"])
    run_trainings(mine, n_jobs=1, unit_timeout=40.0)
    with np.load(mine.path(0).with_suffix(".checkpoint")) as archive:
        assert len(archive["fitness"]) > reached > 0


@pytest.mark.parametrize(
    ("changes", "values", "seed"),
    [
        ([-0.3, 0.1, -0.2], [9.0, 1.0, 2.0], 2),  # by what the training validates
        ([-0.3, 0.1, -0.2, -0.1], [0.0] * 4, 3),  # of two the worse
        ([None] * 3, [9.0, 1.0, 2.0], 2),
    ],
)
def test_the_median(changes, values, seed, monkeypatch, tmp_path) -> None:
    agents = [
        Trained(number, tmp_path / "a.npz", Estimate(value), change, 0.0, 0)
        for number, (change, value) in enumerate(zip(changes, values, strict=True))
    ]
    monkeypatch.setattr(trainings, "_is_trained", lambda *_: True)
    monkeypatch.setattr(trainings, "_validate", lambda *_: {})
    monkeypatch.setattr(trainings, "_trained", lambda *_: agents)
    result = run_trainings(spec(tmp_path, seeds=range(len(agents))), n_jobs=1)
    assert result.median.seed == seed


def test_windows_of_a_trace_are_validated_in_runs(monkeypatch, tmp_path) -> None:
    """Episodes of a trace's validation part need not follow one another."""
    runs: list[tuple[int, int]] = []
    monkeypatch.setattr(trainings, "_episodes", lambda *_: np.array([0, 1, 7, 8, 9]))
    original = trainings.run_sweep

    def run_sweep(sweep, *given, **how):
        runs.append((sweep.first, sweep.episodes))
        return original(sweep, *given, **how)

    monkeypatch.setattr(trainings, "run_sweep", run_sweep)
    result = run_trainings(spec(tmp_path / "runs", seeds=(0,)), n_jobs=1)
    assert runs == [(0, 2), (7, 3)] and not result.failed
    with ResultsStore(tmp_path / "runs" / "validation.db") as store:
        (board,) = read_boards(store)
    assert all([episode for _, episode in own.episodes] == [0, 1, 7, 8, 9] for own in board.settings)
