"""What names the version by itself says the same as the package."""

from __future__ import annotations

import re
from pathlib import Path

import schedgym
from schedgym.documents import read_yaml

ROOT = Path(__file__).resolve().parents[2]


def test_changelog_and_citation_are_of_this_version() -> None:
    """The topmost heading of the changelog, from which ``make release`` takes the notes, and the citation."""
    headings = re.findall(r"(?m)^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    citation = read_yaml(ROOT / "CITATION.cff")
    assert headings[0] == f"[{schedgym.__version__}] - {citation['date-released']}"
    assert citation["version"] == schedgym.__version__
