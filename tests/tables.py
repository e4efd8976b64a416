"""Long tables of cases: in YAML beside the tests, a case a line; and what the tests of a problem declare."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml


def table(file: str, test: str) -> list[Any]:
    """The cases of a test, from the YAML file with the name of the test's own file."""
    return [tuple(case) if isinstance(case, list) else case for case in entry(file, test)]


def entry(file: str, name: str) -> Any:
    """What the same file says of a name, as it stands."""
    return _read(Path(file).with_suffix(".yaml"))[name]


def declared(name: str, file: str = "workloads") -> Any:
    """What a YAML file of a problem's tests says."""
    return _read(Path(__file__).parent / name.replace("-", "_") / f"{file}.yaml")


@functools.cache
def _read(path: Path) -> Any:
    """What a YAML file says, read once: hundreds of tests ask for the same few files."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))
