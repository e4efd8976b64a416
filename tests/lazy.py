"""Modules that are imported when a test first uses them: collecting the tests imports no torch."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest


def needs(*names: str) -> pytest.MarkDecorator:
    """The mark of tests that are skipped where one of these modules of extras is not installed."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason="needs the extra agents")


class Lazy:
    """A module; a test that uses it is skipped where what the module needs is not installed.

    Args:
        name: name of the module.
        needs: modules of extras that it imports.
    """

    __slots__ = ("names",)

    def __init__(self, name: str, *needs: str) -> None:
        object.__setattr__(self, "names", (*needs, name))

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return vars(self._module())  # where monkeypatch looks up what it is to restore

    def _module(self) -> Any:
        return [pytest.importorskip(name, reason="needs the extra agents") for name in self.names][-1]

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_mock")):  # what pytest asks of everything while it collects
            raise AttributeError(name)
        return getattr(self._module(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module(), name, value)  # as monkeypatch does

    def __delattr__(self, name: str) -> None:
        delattr(self._module(), name)
