"""Optional dependencies, and packages that add to this one: what is imported from either is imported here."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterator
from typing import Any

from schedgym.errors import InvalidParameter


def require(module: str, extra: str = "eval") -> Any:
    """Import a module that belongs to an extra.

    Args:
        module: dotted name, e.g. "pandas".
        extra: the extra that installs it.

    Raises:
        gymnasium.error.DependencyNotInstalled: with the pip command, if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and module.partition(".")[0] != error.name.partition(".")[0]:
            raise  # installed, but broken: that is not ours to explain away
        from gymnasium.error import DependencyNotInstalled  # only to say this: nothing else here needs it

        raise DependencyNotInstalled(
            f'{module.partition(".")[0]} is not installed; run: pip install "schedgym[{extra}]"'
        ) from None


def entry_points(group: str) -> Iterator[tuple[str, Any]]:
    """What installed packages announce in a group of entry points: its name for messages, and what it holds.

    Raises:
        InvalidParameter: when one cannot be loaded, with its reason.
    """
    for entry in importlib.metadata.entry_points(group=group):
        try:
            loaded = entry.load()
        except Exception as error:  # of code that is not ours
            raise InvalidParameter(f"entry point {entry.value}: {type(error).__name__}: {error}") from error
        yield f"entry point {entry.value}", loaded
