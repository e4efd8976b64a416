"""YAML as data: a safe subset, in which nothing is executed and no key occurs twice; and checks of data."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from schedgym.core.files import read_text
from schedgym.errors import InvalidFile, InvalidParameter, UnknownName
from schedgym.extras import require

__all__ = ["canonical", "check_whole", "mapping", "parse_yaml", "placed", "read_yaml"]

LARGEST = 2**18  # bytes: the parser reads some 100 kB in a second


@functools.cache
def _loader() -> Any:
    """YAML's safe loader: it reads 1e-4 as a number, and refuses doubled keys and aliases."""
    yaml = require("yaml")

    base: Any = yaml.SafeLoader

    class Loader(base):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.composer.ComposerError(
                    None, None, "aliases are not read", self.peek_event().start_mark
                )
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = set()
            for key, _ in node.value:
                name = (key.tag, repr(key.value))
                if name in names:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value!r} is there twice", key.start_mark
                    )
                names.add(name)
            return super().construct_mapping(node, deep)

        def construct_yaml_int(self, node: Any) -> int:
            value = int(super().construct_yaml_int(node))
            if abs(value) >= 2**63:
                raise yaml.constructor.ConstructorError(None, None, "number out of range", node.start_mark)
            return value

    number = "tag:yaml.org,2002:"
    Loader.add_constructor(f"{number}int", Loader.construct_yaml_int)
    exponent = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")
    Loader.add_implicit_resolver(f"{number}float", exponent, list("-+0123456789"))
    return Loader


def parse_yaml(text: str, where: str) -> Any:
    """Data of a YAML text; nothing is executed.

    Args:
        text: the text, of at most 256 KiB.
        where: its name in messages.

    Raises:
        InvalidParameter: if it is not YAML, or has tags, aliases or doubled names.
        gymnasium.error.DependencyNotInstalled: without the extra ``eval``.
    """
    yaml, loader = require("yaml"), _loader()
    if len(text) > LARGEST:
        raise InvalidParameter(f"{where}: longer than {LARGEST} characters")
    try:
        return yaml.load(text, loader)  # noqa: S506  (a safe one)
    except Exception as error:  # besides YAMLError, what constructors of dates, numbers, ... let pass
        raise InvalidParameter(
            f"{where}: not YAML that is read here: {' '.join(str(error).split())}"
        ) from None


def read_yaml(path: str | Path) -> Any:
    """Data of a YAML file.

    Raises:
        OSError: if it cannot be read.
        InvalidParameter: as :func:`parse_yaml`, and if it is not UTF-8, or no regular file.
    """
    path = Path(path)
    try:
        text = read_text(path, LARGEST)
    except InvalidFile as error:
        raise InvalidParameter(str(error)) from None
    except UnicodeDecodeError as error:
        raise InvalidParameter(f"{path.name}: not UTF-8: byte {error.start}") from None
    return parse_yaml(text, path.name)


@contextlib.contextmanager
def placed(place: str, joint: str = ": ") -> Iterator[None]:
    """Let errors about a value name its place: the file, or the part of it ("section.field": joint ".")."""
    try:
        yield
    except UnknownName as error:
        raise UnknownName(f"{error.kind} in {place}", error.name, error.known) from None
    except InvalidParameter as error:
        raise InvalidParameter(f"{place}{joint}{error}") from None


def mapping(value: Any, where: str, kind: type[Any] | Collection[str] | None = None) -> dict[str, Any]:
    """The mapping of names to values at a place; its names are fields of the dataclass ``kind`` (None: any).

    In place of a dataclass, ``kind`` may hold the names themselves.

    Raises:
        InvalidParameter, UnknownName: naming the place.
    """
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InvalidParameter(f"{where}: must be a mapping of names to values, got {value!r}")
    known = value if kind is None else kind
    if isinstance(known, type):
        known = [field.name for field in dataclasses.fields(known)]
    for name in value:
        if name not in known:
            raise UnknownName(f"field of {where}", name, known)
    return dict(value)


def check_whole(value: Any, where: str, least: int, most: int | None = None) -> None:
    """Raise InvalidParameter unless a value is a whole number from ``least`` to ``most``."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        to = "" if most is None else f" to {most}"
        raise InvalidParameter(f"{where}: must be a whole number from {least}{to}, got {value!r}")


def canonical(data: Any) -> str:
    """JSON text that is the same for equal data.

    Raises:
        TypeError, ValueError: for data that JSON cannot represent.
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
