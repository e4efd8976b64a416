"""The table of mutants fits the code: each of them changes one place."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_each_mutant_changes_one_place() -> None:
    table = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))
    for problem, mutants in table.items():
        for number, mutant in enumerate(mutants, start=1):
            text = (ROOT / mutant["file"]).read_text(encoding="utf-8")
            assert text.count(mutant["find"]) == 1 and mutant["find"] != mutant["put"], f"{problem} {number}"
