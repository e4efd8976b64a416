"""The benchmark of trainings: what it compares, what it counts, and what the command prints and writes."""

import dataclasses
import json

import pytest

from benchmarks import training
from benchmarks.__main__ import main
from schedgym.agents.config import make_config
from schedgym.errors import InvalidParameter
from tests.lazy import needs
from tests.long import long

pytestmark = needs("stable_baselines3")

ID = "schedgym/PartialValue-v0"


def tiny(algorithm: str):
    data = {"id": ID, "algorithm": algorithm, "view": "priority", "parameters": {"jobs": 8, "window": 8}}
    if algorithm == "cma":
        return make_config({**data, "search": {"population": 4, "episodes": 2, "generations": 2}})
    sections = {"network": {"width": 8}, "ppo": {"n_steps": 16, "batch_size": 32, "n_epochs": 1}}
    return make_config({**data, "num_envs": 4, **sections, "evaluation": {"every": 10**9, "episodes": 1}})


def test_the_networks_of_the_shipped_configurations_are_equal() -> None:
    found = training.configurations(ID)
    assert list(found) == ["cma", "ppo", "sb3-ppo"]
    ours, theirs = found["ppo"], found["sb3-ppo"]
    assert (
        ours.network == theirs.network and ours.parameters == theirs.parameters and ours.view == theirs.view
    )
    assert all(config.imitation is None for config in found.values())


@long
def test_arithmetic_is_counted() -> None:
    """One pass more over the same decisions costs what a pass costs."""
    once = tiny("ppo")
    costs = [
        training.arithmetic(dataclasses.replace(once, ppo=dataclasses.replace(once.ppo, n_epochs=n)), 256)
        for n in (1, 2, 3)
    ]
    assert 0 < costs[0] < costs[1] < costs[2]
    assert costs[2] - costs[1] == pytest.approx(costs[1] - costs[0], rel=0.05)


@long
def test_a_training_takes_about_its_time() -> None:
    run = training.train_for(tiny("ppo"), 2.0)
    assert 0.4 < run.seconds < 10.0 and run.steps > 64
    assert run.agent.metadata["network"]["form"] == "tokens"


@long
def test_the_command_prints_and_writes(monkeypatch, tmp_path, capsys) -> None:
    found = {name: tiny(name) for name in ("cma", "ppo", "sb3-ppo")}
    monkeypatch.setattr(training, "configurations", lambda id: found if id == ID else {})
    monkeypatch.setattr(training, "QUICK_SECONDS", 0.5)
    monkeypatch.setattr(training, "QUICK_EPISODES", 2)
    path = tmp_path / "o.json"
    assert main(["training", "--quick", "--json", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == ID and len(lines) == 9
    assert [line.split("  ")[0] for line in lines[2:]] == [
        "product of two matrices, float32",
        *(f"{name}, trained steps per CPU second" for name in found),
        *(f"{name}, value after 0 s" for name in found),
    ]
    rows = {row["what"]: row for row in json.loads(path.read_text())["training"]}
    ours = rows["ppo, trained steps per CPU second"]
    assert ours["value"] > 0 and ours["kFLOP"] > 0 and 0 < float(ours["limit"].rstrip("%")) <= 100
    assert rows["sb3-ppo, trained steps per CPU second"]["ratio"] == 1.0
    assert rows["cma, value after 0 s"]["value"] > 0


def test_refusals(capsys) -> None:
    with pytest.raises(InvalidParameter, match="one algorithm only"):
        training.main("schedgym/GeoFair-v0")
    assert main(["training", "schedgym/GeoFair-v0"]) == 2
    assert "one algorithm only" in capsys.readouterr().err
