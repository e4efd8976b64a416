"""Scripts for other libraries: the measurement runs them, and says which fail."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import __main__, libraries
from schedgym.core.problem import list_problems

ROOT = Path(__file__).resolve().parents[2]
ID = "schedgym/QueueDelay-v0"


def test_every_script_has_its_library_and_was_run_on_every_id() -> None:
    assert {path.stem for path in libraries.FOLDER.glob("*.py")} == set(libraries.SCRIPTS)
    tried = json.loads((ROOT / "docs" / "libraries.json").read_text(encoding="utf-8"))["libraries"]
    assert {row["library"] for row in tried} == set(libraries.SCRIPTS.values())
    ids = {id for problem in list_problems().values() for id in problem.ids}
    for row in tried:
        assert row["ids"].keys() == ids and not row["failed"], row["library"]


def test_failures_are_told_and_the_others_written(tmp_path, monkeypatch, capsys) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("import sys\nprint('played', sys.argv[1])\n", encoding="utf-8")
    bad.write_text("raise ValueError('no such space')\n", encoding="utf-8")
    monkeypatch.setattr(libraries, "FOLDER", tmp_path)
    scripts = {"good": "numpy", "bad": "pytest", "other": "no-such-library", "else": "no Python"}
    monkeypatch.setattr(libraries, "SCRIPTS", scripts)
    monkeypatch.setattr(libraries, "PYTHONS", {"no Python": str(tmp_path / "python")})
    target = tmp_path / "found.json"
    assert __main__.main(["libraries", ID, "--json", str(target)]) == 2
    error = capsys.readouterr().err
    assert "bad schedgym/QueueDelay-v0: ValueError: no such space" in error
    assert "No package metadata was found for no-such-library" in error and "no Python: [Errno 2]" in error
    first, second = json.loads(target.read_text(encoding="utf-8"))["libraries"]
    assert first["ids"] == {ID: f"played {ID}"} and not second["ids"]
