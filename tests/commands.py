"""Commands that are refused, as all are: one line says why, and nothing in the current folder changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedgym import cli


def contents() -> dict[str, bytes | None]:
    """What the current folder holds: the contents of its files, None of all else."""
    return {path.name: path.read_bytes() if path.is_file() else None for path in Path().iterdir()}


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Run a command that must be refused; return its line."""
    before = contents()
    capsys.readouterr()  # what other commands have said
    assert cli.main([*map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and contents() == before
    assert err.startswith("error: ") and err.endswith("\n") and err.count("\n") == 1, err
    return err
