"""The commands train, agents and compare --agents."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from schedgym import cli
from schedgym.agents.agent_policy import make_agent
from schedgym.agents.files import list_pretrained, load_agent
from schedgym.cli.agents import Training
from schedgym.evaluation import evaluate
from tests.commands import refused
from tests.tables import entry, table

ID = "schedgym/QueueDelay-v0"
SMALL = entry(__file__, "SMALL")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL, encoding="utf-8")
    return tmp_path


def test_train_show_and_compare(capsys, folder) -> None:
    train = ["train", ID, "--config", "small.yaml", "--set", "search.sigma=0.2", "--seed", "3"]
    assert cli.main([*train, "-o", "mine.npz"]) == 0
    told = capsys.readouterr().out
    assert "generation     4" in told and "  change +0.0%\n" in told and "wrote mine.npz" in told
    assert sorted(path.name for path in folder.iterdir()) == ["mine.npz", "small.yaml"]
    agent = load_agent(folder / "mine.npz")
    command = f"schedgym train {ID} --config small.yaml --set search.sigma=0.2 --seed 3 -o mine.npz"
    assert agent.metadata["command"] == command
    assert agent.metadata["config"]["seed"] == 3 and agent.metadata["config"]["search"]["sigma"] == 0.2

    assert cli.main(["agents", "show", "mine.npz"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["sha256"] == agent.sha256 and shown["command"] == command

    # the recorded command, run again, gives the same agent
    assert cli.main([*command.split()[1:-1], "again.npz"]) == 0
    assert (load_agent(folder / "again.npz").weights["theta"] == agent.weights["theta"]).all()

    compare = ["compare", ID, "--policies", "bf-exec", "--agents", "mine.npz, again.npz", "--episodes", "2"]
    compare += ["--tasks", "8,12", "--servers", "2", "--plot", "none", "--json", "r.json"]
    assert cli.main(compare) == 0
    report = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert report["views"] == {"mine": "placement", "again": "placement"}
    rows = {(row["tasks"], row["policy"]): row for row in report["summary"]}
    for tasks in (8, 12):
        mine = rows[tasks, "mine"]
        assert (
            mine["mean"] == rows[tasks, "again"]["mean"] >= mine["bound"] == rows[tasks, "bf-exec"]["bound"]
        )


def test_the_shipped_agent_is_named_among_the_policies(folder) -> None:
    rest = ["--episodes", "2", "--tasks", "8", "--servers", "2", "--plot", "none", "--json", "r.json"]
    found = []
    for named in (["bf-exec", "--agents", "pretrained"], ["bf-exec,pretrained"]):
        assert cli.main(["compare", ID, "--policies", *named, *rest]) == 0
        found.append(json.loads((folder / "r.json").read_text(encoding="utf-8"))["values"])
    assert found[0] == found[1] and set(found[0]["policy"]) == {"bf-exec", "pretrained"}


def test_run_plays_an_agent_as_any_policy(capsys, folder) -> None:
    small, shipped = ["--set", "tasks=8", "--set", "servers=2"], str(list_pretrained()[ID])
    delays = set()
    for named in ("pretrained", shipped):
        assert cli.main(["run", ID, "--policy", named, *small, "--json", "r.json"]) == 0
        delays.add(json.loads((folder / "r.json").read_text(encoding="utf-8"))["metrics"]["mean_delay"])
    direct = evaluate(ID, {"agent": make_agent("pretrained", ID)}, 1, parameters={"tasks": 8, "servers": 2})
    assert delays == set(direct[direct["metric"] == "mean_delay"]["value"])
    error = refused(capsys, "run", ID, "--policy", "pretrained", "--option", "norm=1")
    assert error == "error: --option: pretrained is an agent, which has no options\n"
    assert "is for environment" in refused(capsys, "run", "schedgym/GeoFair-v0", "--policy", shipped)


def test_the_recorded_command_names_the_device() -> None:
    asked = Training(ID, set=["search.sigma=0.2"], device="cuda")
    command = f"schedgym train {ID} --config small.yaml --set search.sigma=0.2 --device cuda"
    assert asked.command(ID, "small.yaml") == command
    assert "--device" not in Training(ID).command(ID, "small.yaml")


def test_train_with_several_seeds_and_compare_them(capsys, folder) -> None:
    train = f"train {ID} --config small.yaml --set search.sigma=0.2 --seed 3 --seeds 3".split()
    assert cli.main([*train, "-o", "my runs", "--n-jobs", "1"]) == 0
    told = capsys.readouterr().out
    written = json.loads((folder / "my runs" / "trainings.json").read_text(encoding="utf-8"))
    assert [agent["seed"] for agent in written["agents"]] == [3, 4, 5] and written["failed"] == {}
    median = written["median"]["path"]
    assert f"ship the median: {median}; schedgym compare {ID} --agents 'my runs'" in told
    (marked,) = [line for line in told.splitlines() if "<- median" in line]
    assert median.removeprefix("my runs/") in marked

    # the recorded command, run alone, gives the same weights
    command = load_agent("my runs/small-4.npz").metadata["command"]
    assert (
        command == f"schedgym train {ID} --config small.yaml --set search.sigma=0.2 --seed 4 -o small-4.npz"
    )
    assert cli.main(command.split()[1:]) == 0
    alone, among = (load_agent(path).weights for path in ("small-4.npz", "my runs/small-4.npz"))
    assert all((alone[name] == among[name]).all() for name in (*alone, *among))

    (folder / "my runs" / "small-4.npz").unlink()
    (folder / "my runs" / "small-4.checkpoint").write_bytes(b"nothing of the kind")
    capsys.readouterr()
    assert cli.main([*train, "-o", "my runs", "--n-jobs", "1"]) == 1
    told = capsys.readouterr().out
    assert "failed: seed 4: " in told and "not a checkpoint" in told and "small-5.npz" in told

    compare = ["compare", ID, "--policies", "bf-exec,fcfs", "--agents", "my runs,small-4.npz"]
    compare += ["--episodes", "3", "--tasks", "8,12", "--servers", "2", "--plot", "none", "--json", "r.json"]
    assert cli.main(compare) == 0
    told = capsys.readouterr().out
    report = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert [own["setting"] for own in report["trainings"]] == [{"tasks": 8}, {"tasks": 12}]
    for own in report["trainings"]:
        assert own["agents"] == ["small-3", "small-5", "small-4"] and own["rival"] in ("bf-exec", "fcfs")
        assert (
            0 <= own["probability"]["low"] <= own["probability"]["value"] <= own["probability"]["high"] <= 1
        )
        line = f"tasks {own['setting']['tasks']}: 3 trainings, from small-3 to small-4: mean delay [s] "
        assert line in told
        assert f"baseline, {own['rival']} (interquartile means of the trainings); better in" in told

    # agents named among the policies are no baselines
    paths = ["my runs/small-3.npz", "my runs/small-5.npz", "small-4.npz"]
    named = [compare[0], ID, "--policies", ",".join(["bf-exec,fcfs", *paths]), *compare[6:]]
    assert cli.main(named) == 0
    assert json.loads((folder / "r.json").read_text(encoding="utf-8"))["trainings"] == report["trainings"]
    capsys.readouterr()
    assert cli.main([compare[0], ID, "--policies", ",".join(paths), *compare[6:]]) == 0
    assert "trainings, from" not in capsys.readouterr().out

    (folder / "small-4.npz").rename("small-5.npz")
    shutil.copy("small-5.npz", "again.npz")
    compare[compare.index("my runs,small-4.npz")] = "my runs/small-3.npz,small-5.npz,again.npz"
    assert "small-5 and again are of training seed 4 of one configuration: leave one out" in refused(
        capsys, *compare
    )


def test_a_training_that_was_cut_off(capsys, folder) -> None:
    train = ["train", ID, "--config", "small.yaml", "-o", "mine.npz"]
    assert cli.main(train) == 0
    whole = load_agent(folder / "mine.npz")
    (folder / "mine.npz").unlink()
    from schedgym.agents.config import load_config
    from schedgym.agents.files import checkpoint_path
    from schedgym.agents.search import search

    checkpoint = checkpoint_path(folder / "mine.npz")
    search(load_config("small.yaml", {"search.generations": "2"}), checkpoint)
    assert "--resume goes on, --restart begins again" in refused(capsys, *train)
    assert "exclude each other" in refused(capsys, *train, "--resume", "--restart")
    assert checkpoint.exists()
    assert cli.main([*train, "--resume"]) == 0
    assert "generation     2" not in capsys.readouterr().out, "it began again"
    assert (load_agent(folder / "mine.npz").weights["theta"] == whole.weights["theta"]).all()
    assert not checkpoint.exists()


@pytest.mark.parametrize(("arguments", "message"), table(__file__, "test_refusals"))
def test_refusals(arguments, message, capsys) -> None:
    assert re.search(message, refused(capsys, *arguments))


def test_agents_and_policies_of_one_name(capsys, folder) -> None:
    assert cli.main(["train", ID, "--config", "small.yaml", "-o", "bf-exec.npz"]) == 0
    refusal = refused(capsys, "compare", ID, "--agents", "bf-exec.npz", "--policies", "bf-exec")
    assert "'bf-exec' is the name of a policy, too" in refusal
    assert "two are called" in refused(
        capsys, "compare", ID, "--agents", "bf-exec.npz,bf-exec.npz", "--policies", "fcfs"
    )


def test_a_shipped_agent_is_shown_by_its_id(capsys) -> None:
    for name in (ID, ID.partition("/")[2]):
        assert cli.main(["agents", "show", name]) == 0
        assert json.loads(capsys.readouterr().out)["id"] == ID


def test_agents_list(capsys) -> None:
    assert cli.main(["agents", "list"]) == 0
    told = capsys.readouterr().out
    assert "flowtime-priority" in told and "sb3-ppo" in told
