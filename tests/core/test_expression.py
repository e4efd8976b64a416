"""Arithmetic expressions: computed as Python would, and nothing else is taken."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedgym.core.expression import Expression
from schedgym.errors import InvalidParameter
from tests.tables import table

NUMBERS = {"a": np.array([1.0, 2.0, 3.0]), "b": np.array([4.0, 0.5, -1.0])}


@pytest.mark.parametrize(("text", "expected"), table(__file__, "test_values"))
def test_values(text: str, expected: list[float]) -> None:
    assert Expression(text)(NUMBERS).tolist() == expected


def test_names_and_backquotes() -> None:
    values = {"run time": np.array([2.0]), "cpu-time": np.array([3.0]), "a": np.array([5.0])}
    expression = Expression("`run time` * `cpu-time` + a")
    assert expression.names == ("run time", "cpu-time", "a")
    assert expression(values).tolist() == [11.0]
    assert Expression("`a#b` + 1").names == ("a#b",)
    assert Expression("7").names == () and float(Expression("7")({})) == 7.0


def test_what_is_read_or_refused_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(InvalidParameter, match="'1if 1else 2': a letter follows the number 1$"):
        Expression("1if 1else 2")
    assert Expression("1e3 + 0x1f + 1_0 + .5e-1 + x1or2").names == ("x1or2",)
    rng = np.random.default_rng(0)
    parts = (
        "1 2. .5 1.5 1e5 1e-5 0x1f 0b1 0o7 1_0 x x1 é and or if else for in is not + - ( ) , . e j \\ ' \" #"
    )
    read = 0
    for _ in range(20_000):
        with contextlib.suppress(InvalidParameter):
            Expression("".join(rng.choice(parts.split() + [" "] * 5, rng.integers(1, 8))))
            read += 1
    assert read > 1000 and not recwarn.list


def test_what_is_undefined_is_no_number() -> None:
    zero = {"a": np.array([0.0])}
    assert np.isinf(Expression("1 / a")(zero)).all() and np.isnan(Expression("a / a")(zero)).all()
    assert np.isinf(Expression("9 ** 9 ** 9 ** 9")({}))  # soon, where whole numbers would take for ever


@pytest.mark.parametrize(
    "text",
    [*table(__file__, "test_nothing_else_is_taken"), "(" * 300 + "1" + ")" * 300, "1" + "+1" * 300],
)
def test_nothing_else_is_taken(text: str) -> None:
    with pytest.raises(InvalidParameter, match="^expression") as caught:
        Expression(text)
    assert "\n" not in str(caught.value)


TERMS = st.recursive(
    st.one_of(
        st.sampled_from(["a", "b"]), st.integers(0, 9).map(str), st.floats(0, 9).map(lambda x: f"{x:.3f}")
    ),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner) | inner.map(lambda x: f"-{x}")
    ),
    max_leaves=8,
)


@given(text=TERMS, a=st.floats(-5, 5), b=st.floats(-5, 5))
def test_it_agrees_with_python(text: str, a: float, b: float) -> None:
    try:
        expected = float(eval(text, {"a": a, "b": b}))  # noqa: S307  (the oracle: of terms made here)
    except (ZeroDivisionError, OverflowError):
        return
    got = float(Expression(text)({"a": np.array([a]), "b": np.array([b])}).reshape(-1)[0])
    assert got == expected or (math.isnan(got) and math.isnan(expected))
