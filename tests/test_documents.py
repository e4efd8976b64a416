"""Dataclasses that are built from data, or checked: the kinds of their fields, and what is said of others."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from schedgym.documents import build, check, entry
from schedgym.errors import InvalidParameter, UnknownName
from tests.tables import table


@dataclasses.dataclass(frozen=True)
class Part:
    size: float = entry(key="from", alone=True)
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.size < 0:
            raise InvalidParameter(f"size: must be >= 0, got {self.size}")


@dataclasses.dataclass(frozen=True)
class Own:
    """A class that makes itself."""

    text: str = "none"

    @classmethod
    def build(cls, text: str) -> Own:
        return cls(text)


@dataclasses.dataclass(frozen=True)
class Whole:
    parts: Mapping[str, Part]
    rows: Sequence[Part] = entry((), empty=True)
    count: int = entry(1, least=1, most=9)
    flag: bool = False
    source: str | tuple[str, ...] = ""
    more: Mapping[str, str | Sequence[str]] = entry(
        factory=dict, must=["", "must be a path or some", "is none"]
    )
    own: Own = dataclasses.field(default_factory=Own)
    free: Any = None
    last: str | None = "end"

    def __post_init__(self) -> None:
        check(self)


def test_data_become_what_the_annotations_say() -> None:
    data = {
        "parts": {"a": 2, "b": {"from": 0.5, "names": ["x"]}},
        "rows": [3],
        "source": ["c"],
        "more": {"p": "q", "r": ["s"]},
        "own": {"text": "full"},
        "free": {1: 2},
        "last": None,
    }
    made = build(Whole, data, "the whole")
    assert made == Whole(
        {"a": Part(2), "b": Part(0.5, ("x",))},
        [Part(3)],
        source=("c",),
        more={"p": "q", "r": ["s"]},
        own=Own("full"),
        free={1: 2},
        last=None,
    )
    assert build(Whole, {"parts": {}, "more": None, "own": None}, "the whole") == Whole({})
    assert build(Whole, dataclasses.asdict(Whole({})), "the whole").rows == ()


@pytest.mark.parametrize(("changes", "message"), table(__file__, "test_what_is_wrong_is_said_with_its_place"))
def test_what_is_wrong_is_said_with_its_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidParameter, UnknownName), match=message):
        build(Whole, {"parts": {}, **changes}, "the whole")


def test_what_must_be_given_and_how_places_are_joined() -> None:
    with pytest.raises(InvalidParameter, match="^parts: must be given$"):
        build(Whole, {}, "the whole")
    with pytest.raises(InvalidParameter, match="^parts: a: from is missing$"):
        build(Whole, {"parts": {"a": {}}}, "the whole", ": ", " is missing")


def test_a_dataclass_that_is_made_in_python_is_checked() -> None:
    with pytest.raises(InvalidParameter, match="^parts.a: must be of class Part, got 1$"):
        Whole({"a": 1})  # type: ignore[dict-item]
    with pytest.raises(InvalidParameter, match="^count: must be a whole number from 1 to 9, got 10$"):
        Whole({}, count=10)
