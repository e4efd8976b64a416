"""Optional dependencies: code that needs an extra imports it here, and the error says how to install it."""

from __future__ import annotations

import importlib
from typing import Any


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
