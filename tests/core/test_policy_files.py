"""Policies in files: classes and functions, their options, other processes, and files that are wrong."""

import json
import pickle

import numpy as np
import pytest

from schedgym import cli
from schedgym.core import policy as registry
from schedgym.core.policy import get_policy_spec, list_policies, make_policy
from schedgym.core.policy_files import load_policy, names_policy_file
from schedgym.errors import InvalidParameter, InvalidStore, UnknownName
from schedgym.evaluation.sweeps import load_spec, run_sweep
from tests.tables import table

MINE = """
from schedgym.core.policy import register_policy


class Close:
    def __init__(self, sign: float = 1.0) -> None:
        self.sign = sign

    def reset(self, interface, rng):
        self.close = interface.sizes["window"]

    def __call__(self, observation):
        best = observation["action_mask"][: self.close].nonzero()[0]
        return int(best[0]) if len(best) else self.close

    def acting_parameters(self, id, given):
        return {**given, "view": "pick", "action_mask": True}


def first(observation):
    best = observation["action_mask"].nonzero()[0]
    return int(best[0])


@register_policy("queue-delay/declared", source="here", views=("pick",), needs={"action_mask": True})
class Declared(Close):
    pass


class Nothing:
    pass


class Sized(Close):
    def __init__(self, size):
        self.size = size
"""
ID = "schedgym/QueueDelay-v0"


@pytest.fixture
def file(tmp_path, monkeypatch):
    list_policies()
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path / "mine.py"


def test_which_names_are_those_of_files():
    assert names_policy_file("./a/mine.py:MyPolicy") and names_policy_file("mine.py:first")
    for name in ("fcfs", "queue-delay/fcfs", "mine.py", "mine:First", "mine.py:", "mine.py:a.b", "score: a"):
        assert not names_policy_file(name)


def test_a_class_has_its_options_and_moves_to_other_processes(file):
    assert load_policy("./mine.py:Close", "queue-delay") == "mine:Close"
    assert load_policy(f"{file}:Close", "queue-delay") == "mine:Close"
    spec = get_policy_spec("mine:Close", "queue-delay")
    assert spec.options() == {"sign": 1.0} and spec.problem == "queue-delay"
    made = make_policy("mine:Close", "queue-delay", sign=-1.0)
    other = pickle.loads(pickle.dumps(made))
    assert (other.name, other.sign) == (made.name, -1.0) == ("queue-delay/mine:Close", -1.0)


def test_what_a_class_declares_is_kept(file):
    load_policy("mine.py:Declared", "queue-delay")
    spec = get_policy_spec("mine:Declared", "queue-delay")
    assert (spec.source, spec.views, spec.needs) == ("here", ("pick",), {"action_mask": True})


@pytest.mark.parametrize(("content", "name", "message"), table(__file__, "test_files_that_are_wrong"))
def test_files_that_are_wrong(file, content, name, message):
    file.write_text(content or MINE)
    with pytest.raises(InvalidParameter, match=message):
        load_policy(f"mine.py:{name}", "queue-delay")


@pytest.mark.parametrize(("name", "options", "message"), table(__file__, "test_options_that_are_wrong"))
def test_options_that_are_wrong(file, name, options, message):
    load_policy(f"mine.py:{name}", "queue-delay")
    with pytest.raises((InvalidParameter, UnknownName), match=message):
        make_policy(f"mine:{name}", "queue-delay", **options)


def test_two_files_of_one_name_are_told_apart(file, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.py").write_text("def first(observation):\n    return 0\n")
    load_policy("mine.py:first", "queue-delay")
    with pytest.raises(InvalidParameter, match="'mine:first': another file of this name has it, too"):
        load_policy("other/mine.py:first", "queue-delay")


def test_the_command_line_takes_them(file, capsys, tmp_path):
    size = ["--tasks", "20", "--servers", "2"]
    arguments = ["compare", ID, *size, "--plot", "none", "--episodes", "2", "--n-jobs", "2"]
    chosen = ["--policies", "./mine.py:Close,fcfs", "--option", "mine:Close.sign=2"]
    assert cli.main([*arguments, *chosen, "--json", "out.json"]) == 0
    out = json.loads((tmp_path / "out.json").read_text())
    assert {row["policy"] for row in out["summary"]} == {"mine:Close", "fcfs"}
    assert out["manifest"]["options"] == {"mine:Close": {"sign": 2.0}}
    assert cli.main(["run", ID, "--policy", "mine.py:Close", "--set", "tasks=20"]) == 0
    assert "mine:Close on seed 0" in capsys.readouterr().out
    assert cli.main(["run", ID, "--policy", "gone.py:Close"]) == 2
    assert capsys.readouterr().err.endswith("gone.py: No such file or directory\n")


def test_sweeps_run_them_and_know_a_changed_file(file, tmp_path):
    spec = tmp_path / "sweep.yaml"
    spec.write_text(
        f"name: own\nepisodes: 2\nexperiments:\n  - id: {ID}\n    parameters: {{tasks: 20, servers: 2}}\n"
        "    policies: [mine.py:Close, fcfs]\n"
    )
    run = {"n_jobs": 1, "progress": False}
    assert run_sweep(load_spec(spec), tmp_path / "a.db", **run).done == 3
    assert run_sweep(load_spec(spec), tmp_path / "a.db", **run).done == 0
    file.write_text(MINE + "\n# changed\n")
    with pytest.raises(InvalidStore, match="mine:Close that were run with other options or files"):
        run_sweep(load_spec(spec), tmp_path / "a.db", **run)


def test_reading_a_sweep_runs_no_file(file, tmp_path):
    file.write_text("open('ran', 'w').close()\n" + MINE)
    spec = tmp_path / "sweep.yaml"
    spec.write_text(f"name: own\nexperiments:\n  - id: {ID}\n    policies: [mine.py:first]\n")
    load_spec(spec)
    with pytest.raises(UnknownName, match="unknown policy 'mine.py:first'"):
        make_policy("mine.py:first", "queue-delay")
    assert not (tmp_path / "ran").exists()
    load_policy("mine.py:first", "queue-delay")
    assert (tmp_path / "ran").exists()


def test_a_function_acts(file):
    load_policy("mine.py:first", "queue-delay")
    act = make_policy("mine:first", "queue-delay")
    act.reset(None, np.random.default_rng(0))
    assert act({"action_mask": np.array([0, 0, 1])}) == 2
