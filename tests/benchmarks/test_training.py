"""The benchmark of trainings: what it compares, what it counts, and what the command prints and writes."""

import dataclasses
import itertools
import json

import pytest

from benchmarks import training
from benchmarks.__main__ import main
from schedgym.agents.config import ALGORITHMS, make_config
from tests.lazy import needs
from tests.long import long
from tests.test_all_problems import IDS

pytestmark = needs("stable_baselines3")

ID = "schedgym/PartialValue-v0"
PLAYED = "schedgym/FlowtimePacking-v0"  # whose episodes other tests compile, too


def tiny(algorithm: str, id: str = ID):
    data = {"id": id, "algorithm": algorithm, "view": "priority", "parameters": {"jobs": 8, "window": 8}}
    if algorithm == "cma":
        return make_config({**data, "search": {"population": 4, "episodes": 2, "generations": 2}})
    sections = {"network": {"width": 8}, "ppo": {"n_steps": 16, "batch_size": 32, "n_epochs": 1}}
    return make_config({**data, "num_envs": 4, **sections, "evaluation": {"every": 10**9, "episodes": 1}})


def test_the_networks_of_the_shipped_configurations_are_equal() -> None:
    found = training.configurations(ID)
    ours, theirs = found["ppo"], found["sb3-ppo"]
    assert (
        ours.network == theirs.network and ours.parameters == theirs.parameters and ours.view == theirs.view
    )


@pytest.mark.parametrize("id", IDS)
def test_every_id_is_trained_by_every_algorithm_from_nothing(id: str) -> None:
    found = training.configurations(id)
    assert list(found) == list(ALGORITHMS)
    assert all(config.imitation is None and not config.domains for config in found.values())
    assert found["cma"].scorer.skip == {}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_states_of_a_training(monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    """Each update takes 0.1 s by this clock; those after 0.6 s have a learning rate of 0."""
    clock = itertools.count()
    monkeypatch.setattr(training, "process_time", lambda: next(clock) / 10)
    config = tiny(algorithm, PLAYED)
    states = list(itertools.islice(training.train(config, 0.65), 8))
    assert [state.seconds for state in states] == pytest.approx([0.1 * i for i in range(1, 9)])
    assert all(before.steps < after.steps for before, after in itertools.pairwise(states))
    moved = [
        any((before.weights[name] != after.weights[name]).any() for name in after.weights)
        for before, after in itertools.pairwise(states)
    ]
    assert moved == ([True] * 7 if algorithm == "cma" else [True] * 5 + [False] * 2)
    marked = list(training.until(config, [0.0, 0.25, 0.35]))
    assert [state.steps for state in marked] == [states[i].steps for i in (0, 2, 3)]


@long
def test_arithmetic_is_counted() -> None:
    """One pass more over the same decisions costs what a pass costs."""
    once = tiny("ppo")
    options = [dataclasses.replace(once.ppo, n_steps=64, n_epochs=n) for n in (1, 2, 3)]
    costs = [training.arithmetic(dataclasses.replace(once, ppo=one)) for one in options]
    assert 0 < costs[0] < costs[1] < costs[2]
    assert costs[2] - costs[1] == pytest.approx(costs[1] - costs[0], rel=0.05)


@long
def test_the_command_prints_and_writes(monkeypatch, tmp_path, capsys) -> None:
    found = {name: tiny(name) for name in ALGORITHMS}
    monkeypatch.setattr(training, "configurations", lambda id: found)
    path = tmp_path / "o.json"
    assert main(["training", ID, "--quick", "--seconds", "0.6", "--json", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == ID
    assert [line.split("  ")[0] for line in lines[2:]] == [
        "product of two matrices, float32",
        *(f"{name}, trained steps per CPU second" for name in found),
        *(f"{name}, value after {mark} s" for name in found for mark in (0, 1)),
        "concave, value",
        "random, value",
    ]
    rows = {row["what"]: row for row in json.loads(path.read_text())["training"]}
    ours = rows["ppo, trained steps per CPU second"]
    assert ours["value"] > 0 and ours["kFLOP"] > 0 and 0 < float(ours["limit"].rstrip("%")) <= 100
    assert rows["sb3-ppo, trained steps per CPU second"]["ratio"] == 1.0
    assert rows["concave, value"]["value"] > rows["random, value"]["value"] > 0


def test_refusals(capsys) -> None:
    assert main(["training", "schedgym/Nothing-v0"]) == 2
    assert "unknown" in capsys.readouterr().err
