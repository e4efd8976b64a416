"""The order of the tests."""

from __future__ import annotations

import pytest

from schedgym.core.problem import list_problems
from tests.order import PROBLEMS, in_halves
from tests.tables import table


def test_each_problem_is_in_one_half() -> None:
    assert sorted(sum(PROBLEMS, ())) == sorted(list_problems())


@pytest.mark.parametrize(
    ("names", "expected"),
    table(__file__, "test_no_test_is_lost"),
)
def test_no_test_is_lost(names: list[str], expected: list[int]) -> None:
    assert in_halves(range(len(names)), names) == expected
