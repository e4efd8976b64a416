"""Configurations are data: what is wrong is named, nothing is executed, and what is written is read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schedgym.errors import InvalidParameter, UnknownName

pytest.importorskip("yaml", reason="needs the extra agents")
import yaml

from schedgym.agents.config import config_for, list_configs, load_config, make_config, shipped_config
from tests.tables import entry, table

CMA, PPO = (entry(__file__, name) for name in ("CMA", "PPO"))


def write(folder: Path, data: Any) -> Path:
    path = folder / "config.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data))
    return path


@pytest.mark.parametrize("data", [CMA, PPO])
def test_what_is_written_is_read_back(data: dict[str, Any], tmp_path: Path) -> None:
    config = make_config(data)
    assert make_config(config.to_dict()) == config
    assert load_config(write(tmp_path, config.to_dict())) == config == load_config(write(tmp_path, data))
    assert config.environment == {
        **data.get("parameters", {}), "view": data["view"], "observation": "features"
    }  # fmt: skip


@pytest.mark.parametrize("name", list_configs())
def test_shipped_configurations(name: str) -> None:
    config = load_config(name)
    assert make_config(config.to_dict()) == config
    assert make_config(shipped_config(name)) == config


@pytest.mark.parametrize(("changes", "message"), table(__file__, "test_what_is_wrong_is_named"))
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    data = {**CMA, **changes}
    with pytest.raises((InvalidParameter, UnknownName), match=message) as caught:
        make_config(data)
    assert "\n" not in str(caught.value)
    with pytest.raises(type(caught.value), match="config.yaml"):
        load_config(write(tmp_path, data))


def test_what_gradients_need() -> None:
    with pytest.raises(InvalidParameter, match="search: has no effect on algorithm 'sb3-ppo'"):
        make_config({**PPO, "search": {}})
    with pytest.raises(InvalidParameter, match="steps: must be a whole number from 1"):
        make_config({**PPO, "steps": 0})
    assert make_config({**PPO, "imitation": None}).imitation is None


def test_changes_of_a_command_line(tmp_path: Path) -> None:
    path = write(tmp_path, CMA)
    config = load_config(path, entry(__file__, "changes"))
    assert (config.search.sigma, config.seed) == (1e-3, 7)
    assert config.parameters == {"window": 16, "jobs": 20}
    assert config.scorer.skip == {"job": {"served": 2}}
    # a text of the environment's stays one, though it looks like a number
    other = load_config(
        path, {"id": "schedgym/FlowtimePacking-v0", "parameters.servers": "16", "scorer": "{}"}
    )
    assert other.parameters["servers"] == "16"
    for changes, message in table(__file__, "test_changes_of_a_command_line"):
        with pytest.raises((InvalidParameter, UnknownName), match=message):
            load_config(path, changes)


def test_numbers_as_people_write_them(tmp_path: Path) -> None:
    for text, value in (("1e-4", 1e-4), ("3E-2", 0.03), ("+2.5e1", 25.0), ("0.5", 0.5), ("2", 2)):
        path = write(tmp_path, f"{yaml.safe_dump(CMA)}\nseed: 0\n".replace("16", f"16\n  sigma: {text}"))
        assert load_config(path).search.sigma == value


@pytest.mark.parametrize(
    "text",
    [*table(__file__, "test_what_is_not_read"), "[" * 5000],
)
def test_what_is_not_read(text: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(InvalidParameter, match="config.yaml: not YAML that is read here") as caught:
        load_config(write(tmp_path, text.replace("MARK", str(mark))))
    assert "\n" not in str(caught.value)
    assert not mark.exists()


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_config(tmp_path / "nothing.yaml")
    with pytest.raises(UnknownName, match="unknown configuration 'flowtime-prority'; did you mean"):
        load_config("flowtime-prority")
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"id: \xff")
    with pytest.raises(InvalidParameter, match="latin.yaml: not UTF-8: byte 4"):
        load_config(path)
    for text in ("", "3", "[1, 2]", "a"):
        with pytest.raises(InvalidParameter, match="config.yaml: "):
            load_config(write(tmp_path, text))


def test_the_configuration_for_an_id() -> None:
    for name in list_configs():
        own = load_config(name)
        found = load_config(config_for(own.id, own.algorithm))
        assert (found.id, found.algorithm) == (own.id, own.algorithm)
    message = "Nothing-v0: no configuration of cma is shipped for it: give one by --config; `schedgym agents"
    with pytest.raises(InvalidParameter, match=message):
        config_for("schedgym/Nothing-v0", "cma")


@pytest.mark.parametrize("option", [{"n_steps": 64}, {"gae_lambda": 0.9}, {"vf_coef": 1.0}])
def test_options_of_a_critic_are_refused_where_copies_take_its_place(option: dict[str, Any]) -> None:
    data = {**PPO, "algorithm": "ppo", "ppo": {"copies": 2, **option}}
    with pytest.raises(InvalidParameter, match=f"ppo.{next(iter(option))}: has no effect with ppo.copies"):
        make_config(data)
    make_config({**data, "ppo": option})
