"""Stores of strangers: no file that they name is opened, nothing they define runs, all has its limits."""

import os
import shutil
import sqlite3

import numpy as np
import pytest

from schedgym.cli import main
from schedgym.errors import InvalidStore
from schedgym.evaluation import report, store
from schedgym.evaluation.episodes import BOUNDS
from schedgym.evaluation.export import export
from schedgym.evaluation.report import write_report
from schedgym.evaluation.store import Line, ResultsStore, Setting, Unit
from tests.long import long
from tests.tables import table

ID = "schedgym/QueueDelay-v0"


def made(path, parameters, options=None, label="fcfs"):
    """A store of one unit in a setting with these parameters."""
    where = Setting("queue-delay", ID, parameters, "mean_delay", "min", "1")
    with ResultsStore(path, "w") as results:
        unit = Unit(Line(where, label, options or {"policy": "fcfs"}, None, "digest"), 0, 0, 2)
        results.add(unit, ["mean_delay"], np.array([[1.0], [2.0]]), policy_seconds=0.1)
    return path


@pytest.fixture
def path(tmp_path):
    return made(tmp_path / "r.db", {"tasks": 20, "servers": 2})


def changed(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        (["DROP VIEW units", f"CREATE VIEW units(key) AS {ENDLESS}"], "view 'units'"),
        *table(__file__, "test_a_store_with_a_schema_of_its_own_is_refused"),
    ],
)
def test_a_store_with_a_schema_of_its_own_is_refused(path, statements, named):
    changed(path, *statements)
    before = path.read_bytes()
    for mode in "rw":
        with pytest.raises(InvalidStore, match=f"r.db: not the schema of a results store: {named}"):
            ResultsStore(path, mode)
    assert path.read_bytes() == before and os.listdir(path.parent) == ["r.db"]


def test_a_store_is_opened_for_reading_only_and_trusts_no_schema(path, tmp_path):
    """Even what the comparison of schemas would not see could write nothing, and open no other file."""
    with ResultsStore(path) as results:
        run = results._connection.execute
        with pytest.raises(sqlite3.OperationalError, match="readonly database"):
            run("DELETE FROM outcomes")
        with pytest.raises(sqlite3.OperationalError, match="too many attached"):
            run(f"ATTACH '{tmp_path / 'other.db'}' AS other")
        for name, value in (("trusted_schema", 0), ("cell_size_check", 1)):
            assert run(f"PRAGMA {name}").fetchone()[0] == value


def test_special_files_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.db")
    (tmp_path / "zero.db").symlink_to("/dev/zero")
    for name in ("pipe.db", "zero.db"):
        for mode in "rw":
            with pytest.raises(InvalidStore, match=f"{name}: is a special file"):
                ResultsStore(tmp_path / name, mode)


def test_a_statement_that_runs_for_too_long_is_ended(path, monkeypatch):
    with ResultsStore(path) as results:
        monkeypatch.setattr(store, "MOST_STEPS", 3)
        with pytest.raises(InvalidStore, match="cannot be read: interrupted"), results._errors():
            results._connection.execute(f"SELECT max(i) FROM ({ENDLESS})").fetchone()
        monkeypatch.undo()
        assert results.codes() == ["1"]


def test_a_text_that_is_too_long_is_refused(path, monkeypatch):
    monkeypatch.setattr(store, "LARGEST", 2**16)
    changed(path, f"UPDATE settings SET objective = '{'x' * 2**17}'")
    with ResultsStore(path) as results, pytest.raises(InvalidStore, match="too big"):
        results.settings()


@pytest.mark.parametrize("name", ["trace", "workload"])
def test_the_report_opens_no_file_that_the_store_names(tmp_path, name):
    pytest.importorskip("plotly")
    secret = tmp_path / "secret.json"
    secret.write_text("the secret line\n")
    path = made(tmp_path / "r.db", {name: str(secret)})
    (remark,) = write_report(path, tmp_path / "r.html")
    assert f"{name}: names the file {str(secret)!r}: --trust" in remark and "\n" not in remark
    assert "the secret line" not in (tmp_path / "r.html").read_text(encoding="utf-8")
    (remark,) = write_report(path, tmp_path / "r.html", trust=True)
    assert "--trust" not in remark and "secret.json" in remark  # it was opened, and is none


def test_the_report_opens_no_agent_that_the_store_names(tmp_path):
    pytest.importorskip("plotly")
    path = made(tmp_path / "r.db", {}, {"agent": "0" * 64}, "agent")
    os.mkfifo(tmp_path / "pipe.npz")
    with ResultsStore(path, "w") as results:
        agents = {"agent": [str(tmp_path / "pipe.npz")]}
        results.add_manifest({"sweep": {"experiments": [{"agents": agents}]}})
    (remark,) = write_report(path, tmp_path / "r.html")
    assert "agent agent: is in a file: --trust" in remark


@long
def test_an_episode_that_takes_too_long_is_not_played_to_its_end(tmp_path, monkeypatch):
    """Whatever the store says of its time."""
    pytest.importorskip("plotly")
    monkeypatch.setattr(report, "SOON", 15.0)
    path = made(tmp_path / "r.db", {"tasks": 10**6, "servers": 2})
    (remark,) = write_report(path, tmp_path / "r.html")
    assert "cannot be played again: TimeoutError: took longer than 15 s" in remark


def test_what_a_store_says_of_itself_may_be_anything(path, tmp_path):
    """Content of the wrong form ends in one line, whatever it is, also where its checksum was made anew."""
    statements = table(__file__, "test_what_a_store_says_of_itself_may_be_anything")
    statements += [f"UPDATE outcomes SET metrics = '{'[' * 10**5}'"]
    for number, statement in enumerate(statements):
        copy = tmp_path / f"{number}.db"
        shutil.copy(path, copy)
        changed(copy, statement)
        with ResultsStore(copy, "w") as results:
            results._seal(1)
        with pytest.raises(InvalidStore, match=f"{number}.db: damaged: (?!unit)") as caught:
            export(copy, tmp_path / "r.csv")
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000
    assert not (tmp_path / "r.csv").exists()


@pytest.mark.parametrize("statement", table(__file__, "CHANGES"))
def test_a_unit_that_was_changed_is_refused_by_name(path, tmp_path, statement, capsys):
    with ResultsStore(path, "w") as results:
        (where,) = results.settings()
        other = Line(where, "other", {"policy": "fcfs"}, None, "other")
        results.add(Unit(other, 0, 0, 2), ["mean_delay"], np.array([[3.0], [4.0]]))
        results.fail(Unit(other, 1, 0, 2), "ValueError: no")
    assert main(["store", "verify", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: 3 units, 0 faults\n"
    changed(path, statement)
    unit = 3 if "unit = 3" in statement else 1
    with pytest.raises(InvalidStore, match=rf"damaged: unit {unit} \({ID}, .*: its checksum does not fit"):
        write_report(path, tmp_path / "r.html", schedules=False)
    if unit == 1:
        for table in ("episodes", "leaderboard"):
            with pytest.raises(InvalidStore, match=r"unit 1 .*: its checksum does not fit"):
                export(path, tmp_path / "r.csv", table=table)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["r.db"]
    assert main(["store", "verify", str(path)]) == 1
    assert f"{path}: unit {unit} (" in capsys.readouterr().out


def test_checksums_follow_what_the_bounds_change(path):
    """Units whose bound comes later, and those that turn out to beat it."""
    with ResultsStore(path, "w") as results:
        (where,) = results.settings()
        other = Line(where, "other", {"policy": "fcfs"}, None, "other")
        results.add(Unit(other, 0, 0, 2), ["mean_delay"], np.array([[0.1], [4.0]]))
        bounds = Line(where, None, {}, None, "bounds")
        assert len(results.add(Unit(bounds, 0, 0, 2), BOUNDS, np.array([[0.5, 0.0], [1.0, 0.0]]))) == 1
        assert results.verify() == (3, [])


def test_damage_of_a_table_and_of_its_index_is_found(path, capsys):
    """One byte of a unit's key, which stands in the table and in an index."""
    with ResultsStore(path) as results:
        key = results._connection.execute("SELECT key FROM results").fetchone()[0].encode()
    data = path.read_bytes()
    assert data.count(key) == 2
    for place in (data.index(key), data.rindex(key)):
        path.write_bytes(data[:place] + b"x" + data[place + 1 :])
        assert main(["store", "verify", str(path)]) == 1
        assert str(path) in capsys.readouterr().out
