"""YAML as data, of a safe subset: nothing is executed, no key occurs twice; and dataclasses from such data.

The annotation of a dataclass's field says what its value may be: a text, true or false, a number, a list, a
mapping of names, a dataclass, or one of several; :func:`entry` says more. :func:`build` makes a dataclass of
what YAML, JSON or a command line hold, :func:`check` checks one that was made in Python. What is wrong is
said in one line that names its place.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import re
import types
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from schedgym.core.files import read_text
from schedgym.errors import InvalidFile, InvalidParameter, UnknownName
from schedgym.extras import require

T = TypeVar("T")

LARGEST = 2**18  # bytes: the parser reads some 100 kB in a second
LISTS = (tuple, Sequence)


@functools.cache
def _loader() -> Any:
    """YAML's safe loader: 1e-4 is a number, 010 and 1:30 are texts; it refuses doubled keys and aliases."""
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
    exact = r"(?i)[-+]?((?=.*[.e])([0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)(e[-+]?[0-9]+)?|\.inf|\.nan)$"
    Loader.add_implicit_resolver(f"{number}float", re.compile(exact), list("-+0123456789"))
    whole = r"[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F]+)$"
    ours = {f"{number}int": re.compile(whole), f"{number}float": re.compile(exact)}
    for known in Loader.yaml_implicit_resolvers.values():
        known[:] = [(tag, ours.get(tag, pattern)) for tag, pattern in known]
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


def entry(
    default: Any = dataclasses.MISSING,
    *,
    factory: Any = dataclasses.MISSING,
    must: Sequence[str] = (),
    least: int = 0,
    most: int | None = None,
    empty: bool = False,
    key: str = "",
    alone: bool = False,
) -> Any:
    """A field of a dataclass for :func:`build` and :func:`check`.

    Args:
        default: its value where none is given.
        factory: makes that value.
        must: what is said of a value of another kind, e.g. "must be a name"; then of the items in it, and
            of the items in these. "": the usual words.
        least: the least whole number.
        most: the largest whole number.
        empty: True if a list may be empty.
        key: its name in data, where that is another one.
        alone: True if data that are no mapping are the value of this field.
    """
    rules = {"must": must, "least": least, "most": most, "empty": empty, "key": key, "alone": alone}
    return dataclasses.field(default=default, default_factory=factory, metadata=rules)


def build(kind: type[T], data: Any, title: str, joint: str = ".", missing: str = ": must be given") -> T:
    """A dataclass from data, every value checked.

    Null stands for a mapping or section that is left out.

    Args:
        kind: the dataclass; a class with a method ``build`` makes itself.
        data: a mapping of the names of its fields to values.
        title: what it is, in messages on the whole of it.
        joint: between the parts of a place in messages.
        missing: what is said behind the place of a field that must be given.

    Raises:
        InvalidParameter, UnknownName: naming the place.
    """
    made: T = _Builder(joint, missing).build(kind, data, title, "")
    return made


def check(made: Any) -> None:
    """Raise InvalidParameter, naming the field, unless the values of a dataclass are what its fields say."""
    kind: Any = type(made)
    for field, annotation in _fields(kind):
        _Builder(".", None).read(getattr(made, field.name), annotation, field.name, field.metadata)


@functools.cache
def _fields(kind: Any) -> list[tuple[dataclasses.Field[Any], Any]]:
    """The fields of a dataclass with their annotations."""
    hints = typing.get_type_hints(kind)
    return [(field, hints[field.name]) for field in dataclasses.fields(kind)]


def _choices(annotation: Any) -> tuple[Any, ...]:
    several = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return typing.get_args(annotation) if several else (annotation,)


def _is_section(annotation: Any) -> bool:
    """Return True if a value is a mapping, or makes itself of one, and may not be None."""
    return typing.get_origin(annotation) is Mapping or hasattr(annotation, "build")


class _Builder(typing.NamedTuple):
    """The way messages are written; ``missing`` is None where dataclasses are checked and not built."""

    joint: str
    missing: str | None

    def build(self, kind: Any, data: Any, title: str, place: str) -> Any:
        there = placed(place, self.joint) if place else contextlib.nullcontext()
        if hasattr(kind, "build"):
            given = {} if data is None else mapping(data, title)
            with there:
                return kind.build(**given)
        fields = {field.metadata.get("key") or field.name: (field, own) for field, own in _fields(kind)}
        made = {}
        if not isinstance(data, Mapping):
            for field, annotation in fields.values():
                if field.metadata.get("alone"):
                    made[field.name] = self.read(data, annotation, place, field.metadata)
        given = {} if made else mapping(data, title, fields)
        for name, (field, annotation) in fields.items():
            own = f"{place}{self.joint}{name}" if place else name
            needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if name in given and (given[name] is not None or not _is_section(annotation)):
                made[field.name] = self.read(given[name], annotation, own, field.metadata)
            elif needed and field.name not in made:
                raise InvalidParameter(f"{own}{self.missing}")
        with there:
            return kind(**made)

    def read(self, value: Any, annotation: Any, place: str, rules: Mapping[str, Any]) -> Any:
        """A value as its annotation has it."""
        words, *more = tuple(rules.get("must", ())) or ("",)
        below = {**rules, "must": more}
        kinds = [kind for kind in _choices(annotation) if kind is not types.NoneType]
        if Any in kinds or (value is None and kinds != list(_choices(annotation))):
            return value
        for kind in kinds:
            origin: Any = typing.get_origin(kind) or kind
            arguments = typing.get_args(kind)
            if hasattr(origin, "__dataclass_fields__"):
                if isinstance(value, origin):
                    return value
                if self.missing is not None:
                    return self.build(origin, value, place, place)
            elif origin in LISTS:
                if isinstance(value, (list, tuple, range)) and (value or rules.get("empty")):
                    found = [
                        self.read(item, arguments[0], f"{place}[{i}]", below) for i, item in enumerate(value)
                    ]
                    return tuple(found) if tuple in (origin, type(value)) else found
            elif origin is Mapping:
                if isinstance(value, Mapping) or not words:
                    given = mapping(value, place).items()
                    return {
                        name: self.read(item, arguments[1], f"{place}{self.joint}{name}", below)
                        for name, item in given
                    }
            elif origin is int and not words:
                check_whole(value, place, rules.get("least", 0), rules.get("most"))
                return value
            elif isinstance(value, (int, float) if origin is float else origin):
                if origin is bool or not isinstance(value, bool):
                    return value
        raise InvalidParameter(f"{place}: {words or _usual(kinds[-1])}, got {value!r}")


def _usual(kind: Any) -> str:
    """What is said of a value that is not of a kind."""
    if hasattr(kind, "__dataclass_fields__"):
        return f"must be of class {kind.__name__}"
    if typing.get_origin(kind) in LISTS:
        return "must be a list of texts" if str in typing.get_args(kind) else "must be a list"
    return {str: "must be a text", bool: "must be true or false"}.get(kind, "must be a number")


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
