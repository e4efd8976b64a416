"""Writes the templates of ``schedgym new`` from the code blocks of the pages on adding things.

    python docs/templates.py

The pages are what is edited; a test compares the templates with them.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "schedgym/cli/templates"
#: page, and how the titles of its blocks begin -> how the names of the templates do
BLOCKS = {
    ("problem.md", "schedgym/problems/one_machine/"): "problem/",
    ("problem.md", "baselines/one_machine/"): "problem/baselines/",
    ("policy.md", "my-policies/my_policies.py"): "policy/policy.py",
    ("trace-reader.md", "mine.yaml"): "trace/format.yaml",
}
BLOCK = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def templates() -> dict[Path, str]:
    """Path -> content of every template that comes from a page."""
    found = {}
    for (page, begin), place in BLOCKS.items():
        text = (ROOT / "docs/how-to" / page).read_text(encoding="utf-8")
        for title, content in BLOCK.findall(text):
            if title.startswith(begin):
                found[FOLDER / f"{place}{title.removeprefix(begin)}.txt"] = content
    return found


if __name__ == "__main__":
    for path, content in templates().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
