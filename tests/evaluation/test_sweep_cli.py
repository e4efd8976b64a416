"""The commands sweep, report and export."""

from __future__ import annotations

import csv

import pytest

from schedgym import cli
from schedgym.evaluation.store import ResultsStore
from tests.commands import refused
from tests.tables import entry, table

SPEC = entry(__file__, "SPEC")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SPEC, encoding="utf-8")
    return tmp_path


def test_from_a_specification_to_a_report(capsys, folder) -> None:
    pytest.importorskip("plotly")
    sweep = ["sweep", "small.yaml", "--n-jobs", "1"]
    assert cli.main(sweep) == 0
    assert "6 units in" in capsys.readouterr().out
    assert cli.main(sweep) == 0
    assert "0 units in" in (told := capsys.readouterr().out) and "6 were there" in told
    assert cli.main(["report", "small.db", "--title", "A report"]) == 0
    assert "wrote small.html" in capsys.readouterr().out
    assert "A report" in (folder / "small.html").read_text(encoding="utf-8")
    assert cli.main(["export", "small.db", "-o", "small.csv"]) == 0
    with (folder / "small.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["policy"] for row in rows} == {"bf-exec", "fcfs"}
    assert {row["servers"] for row in rows} == {"2", "3"}
    assert cli.main(["export", "small.db", "-o", "best.csv", "--table", "leaderboard"]) == 0
    with (folder / "best.csv").open(newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 4


def test_failures_are_told_and_retried(capsys, folder, monkeypatch) -> None:
    from schedgym.evaluation import episodes

    play = episodes.play

    def fails(env, policy, *, seed=0, episode=0, label=""):
        if label == "fcfs":
            raise RuntimeError("out of luck")
        return play(env, policy, seed=seed, episode=episode, label=label)

    monkeypatch.setattr(episodes, "play", fails)
    sweep = ["sweep", "small.yaml", "--n-jobs", "1", "-o", "s.db"]
    assert cli.main(sweep) == 1
    told = capsys.readouterr().out
    assert told.count("out of luck") == 2 and "2 units failed; --retry-failed" in told
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert cli.main(sweep) == 1, "what failed is not run again unasked"
    assert cli.main([*sweep, "--retry-failed"]) == 0


@pytest.mark.parametrize("units", [2, 6], ids=["at the next write", "before the last line"])
def test_a_store_that_is_deleted_while_its_sweep_runs(units, capsys, folder, monkeypatch) -> None:
    add, added = ResultsStore.add, []

    def deletes(self, *given, **more):
        failed = add(self, *given, **more)
        added.append(given)
        if len(added) == units:
            (folder / "small.db").unlink()
        return failed

    monkeypatch.setattr(ResultsStore, "add", deletes)
    assert cli.main(["sweep", "small.yaml", "--n-jobs", "1"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and len(added) == units
    assert captured.err.startswith("error: small.db: was removed, replaced or changed")
    assert [path.name for path in folder.iterdir()] == ["small.yaml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    table(__file__, "test_refusals"),
    ids=" ".join,
)
def test_refusals(arguments, message, capsys) -> None:
    assert message in refused(capsys, *arguments)
