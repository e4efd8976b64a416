"""Extensions of griffe, which reads the sources for the pages of the API; generate.py shares ``link_roles``.

The docstrings name things as ``:func:`~schedgym.core.policy.make_policy```, but Markdown knows no roles. And
two top-level folders are installed below the package, which griffe cannot see: it imports nothing.
"""

from __future__ import annotations

import html
import re
from typing import Any

import griffe

MAPPED = {"schedgym": ("agents", "baselines")}  # as pyproject.toml has them

ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc|obj):`(~?)([\w.]+)`")


def link_roles(text: str, scope: str = "") -> str:
    """``text`` with every role as a link to where the API documents it, or as code where it does not.

    Args:
        text: Markdown with roles.
        scope: dotted name of the module whose names need no prefix.
    """

    def link(match: re.Match[str]) -> str:
        short, target = match.groups()
        shown = target.rpartition(".")[2] if short else target
        full = target if "." in target or not scope else f"{scope}.{target}"
        return f'<autoref optional identifier="{html.escape(full)}"><code>{shown}</code></autoref>'

    return ROLE.sub(link, text)


class Roles(griffe.Extension):
    """Links the roles of every docstring that griffe reads."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = link_roles(obj.docstring.value, obj.module.path)


class Folders(griffe.Extension):
    """Puts the folders that are installed below a package where they are installed."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Called for each top-level package, when all of it has been read."""
        for name in MAPPED.get(pkg.path, ()):
            folder = loader.load(name, try_relative_path=False)
            pkg.set_member(name, folder)
