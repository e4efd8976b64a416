"""Markdown from the templates of docs/pages: generate.py makes pages of them, tables.py parts of pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from schedgym.evaluation.wording import time_text, value_text

TEMPLATES = Path(__file__).with_name("pages")


def plain(text: object) -> str:
    """Return ``text`` escaped so that Markdown shows it letter by letter, also in the cell of a table."""
    safe = str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", safe).replace("\n", " ")


def code(text: object) -> str:
    """Return ``text`` as code, or nothing for nothing. A bar within code does not end the cell of a table."""
    return f"`{text}`" if str(text) else ""


def values(items: Mapping[str, Any]) -> str:
    """Return names and values as code."""
    return ", ".join(code(f"{name}={value_text(value)}") for name, value in items.items()) or "the defaults"


def slug(name: str) -> str:
    """Return a name as the name of a file."""
    return name.replace("+", "-plus").replace("/", "-").lower()


def short(name: str) -> str:
    """Return what stands behind the slash of an id, or of the name of a policy or figure."""
    return name.partition("/")[2]


def anchor(name: str) -> str:
    """Return the anchor of a figure on its paper's page."""
    return re.sub(r"[^a-z0-9-]+", "-", name.lower())


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(TEMPLATES),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,  # noqa: S701  (Markdown, in which ``plain`` escapes texts)
)
_ENVIRONMENT.filters |= {one.__name__: one for one in (plain, code, values, slug, short, anchor)}
_ENVIRONMENT.filters["value"] = value_text
_ENVIRONMENT.filters["time"] = time_text


def render(template: str, **context: Any) -> str:
    """Return a template of docs/pages (without ".jinja") with its names replaced; all must be given."""
    return _ENVIRONMENT.get_template(f"{template}.jinja").render(context)
