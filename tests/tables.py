"""Long tables of cases: in YAML beside the tests, a case a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

__all__ = ["table"]


def table(file: str, test: str) -> list[Any]:
    """The cases of a test, from the YAML file with the name of the test's own file."""
    cases = yaml.safe_load(Path(file).with_suffix(".yaml").read_text(encoding="utf-8"))[test]
    return [tuple(case) if isinstance(case, list) else case for case in cases]
