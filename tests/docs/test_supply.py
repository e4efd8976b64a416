"""What is installed by hash is what the package needs, and its licences are named."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCKED = (ROOT / "requirements-eval.txt").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "supply.md").read_text(encoding="utf-8")
#: extras name the package itself, for its other extras
OURS = "schedgym"


def plain(name: str) -> str:
    """The name of a package, as indexes compare it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=;~! ]", name)[0]).lower()


def pinned(text: str) -> dict[str, set[str]]:
    """Name -> versions, of a file of requirements."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"(?m)^([\w.-]+)==([\w.]+)", text):
        found.setdefault(plain(name), set()).add(version)
    return found


def test_every_requirement_has_a_version_and_hashes() -> None:
    entries = re.split(r"(?m)^(?=[\w])", LOCKED)[1:]
    assert len(entries) > 30
    for entry in entries:
        assert re.fullmatch(
            r"[\w.-]+==[\w.]+( ; [^\\]+)? \\\n(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+", entry
        )


def test_what_is_needed_is_installed_by_hash_in_the_tested_versions() -> None:
    locked = pinned(LOCKED)
    needed = {plain(name) for name in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["eval"])}
    assert needed | {"setuptools"} <= set(locked), "run make lock"
    tested = pinned((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    for name in set(locked) & set(tested):
        assert locked[name] == tested[name], f"{name}: run make lock"
    assert needed <= set(tested)


def test_the_bill_of_materials_is_of_what_is_installed() -> None:
    locked = pinned(LOCKED)
    parts = json.loads((ROOT / "docs" / "sbom.json").read_text(encoding="utf-8"))["components"]
    for part in parts:
        assert part["version"] in locked[plain(part["name"])], f"{part['name']}: run make sbom"
        assert part["licenses"], part["name"]
    assert set(locked) - {plain(part["name"]) for part in parts} <= {"colorama"}  # of Windows only


def test_every_dependency_is_named_with_a_licence() -> None:
    # in the table, or "name (licence)" in a line on an extra, where a licence may stand for several names
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") or re.match(r"- `.*\(.*\)$", line)]
    named = {plain(word) for word in re.findall(r"[\w-]+", "\n".join(lines))}
    for extra, names in PROJECT["optional-dependencies"].items():
        if extra != "dev":
            assert {plain(name) for name in names} - {OURS} <= named, extra
