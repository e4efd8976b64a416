"""The order of the tests."""

from __future__ import annotations

import pytest

from schedgym.core.problem import list_problems
from tests.order import PROBLEMS, in_halves


def test_each_problem_is_in_one_half() -> None:
    assert sorted(sum(PROBLEMS, ())) == sorted(list_problems())


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], []),
        (["a", "tests/geo/x", "b", "t[schedgym/SingleJob-v0]", "c"], [1, 0, 3, 2, 4]),
        (["tests/single_job/x", "damage_of", "change_of"], [1, 0, 2]),
        (["queue_delay", "Flowtime", "geo/ata", "a"], [0, 1, 2, 3]),
    ],
)
def test_no_test_is_lost(names: list[str], expected: list[int]) -> None:
    assert in_halves(range(len(names)), names) == expected
