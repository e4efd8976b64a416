"""The knapsack: against every subset, integer programs and a plain dynamic program."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp

from schedgym.papers.xu2021 import model
from schedgym.solvers.arithmetic import scale_of
from schedgym.solvers.knapsack import knapsack_into, make_knapsack_scratch
from tests.long import of_trials, trials
from tests.tables import table


def knapsack(values: list[float], weights: list[int], capacity: int) -> np.ndarray:
    """Which items are taken; values count as multiples of a power of two, about 2^-50 of their sum."""
    bag = make_knapsack_scratch(len(values), int(min(capacity, sum(weights))))
    bag.value[:] = np.array(values) * scale_of(float(np.abs(values).sum()), 1)
    bag.weight[:] = weights
    knapsack_into(len(values), len(bag.best) - 1, bag)
    return bag.taken == 1


def draw(rng: random.Random, items: int, whole: bool) -> tuple[list[float], list[int], int]:
    n = rng.randint(0, items)
    few = rng.randint(1, 9)
    values = [float(rng.randint(0, few)) if whole else rng.uniform(-1.0, 9.0) for _ in range(n)]
    weights = [rng.randint(0, 6) for _ in range(n)]
    return values, weights, rng.randint(0, max(1, 2 * n))


def test_the_choice_and_its_ties_are_the_models() -> None:
    rng = random.Random(1)
    tight = 0
    for x in trials(2000):
        values, weights, capacity = draw(rng, 8, x % 2 == 0)
        best = model.knapsack([Fraction(v) for v in values], weights, capacity)
        assert tuple(knapsack(values, weights, capacity).tolist()) == best
        tight += sum(weights) > capacity
    assert tight > of_trials(800)


def test_integer_programs_agree() -> None:
    rng = np.random.default_rng(2)
    for _ in trials(100):
        n = int(rng.integers(20, 150))
        values, weights = rng.uniform(0.1, 9.0, n), rng.integers(1, 40, n)
        capacity = int(rng.integers(10, weights.sum()))
        taken = knapsack(values, weights, capacity)
        assert weights[taken].sum() <= capacity
        best = milp(
            -values,
            integrality=np.ones(n),
            bounds=(0, 1),
            constraints=LinearConstraint(weights[None], -np.inf, capacity),
            options={"mip_rel_gap": 0.0},
        )
        assert values[taken].sum() == pytest.approx(-best.fun, rel=1e-6)


def test_more_items_than_a_word_has_bits() -> None:
    rng = random.Random(3)
    for n in (61, 62, 63, 124, 125, 200):
        for _ in range(10):
            values = [rng.randint(0, 9) for _ in range(n)]
            weights = [rng.randint(0, 9) for _ in range(n)]
            capacity = rng.randint(0, sum(weights))
            rows = [[0] * (capacity + 1)]  # value of the last items within each capacity
            for value, weight in zip(values[::-1], weights[::-1], strict=True):
                last = rows[-1]
                rows.append(
                    [
                        max(last[c], value + last[c - weight] if c >= weight else 0)
                        for c in range(capacity + 1)
                    ]
                )
            left, expected = capacity, []
            for x, (value, weight) in enumerate(zip(values, weights, strict=True)):
                after = rows[n - x - 1]
                take = weight <= left and value + after[left - weight] >= after[left]
                expected.append(take)
                left -= weight if take else 0
            assert knapsack(values, weights, capacity).tolist() == expected


@pytest.mark.parametrize(("values", "weights", "capacity", "taken"), table(__file__, "test_by_hand"))
def test_by_hand(values: list[float], weights: list[int], capacity: int, taken: list[bool]) -> None:
    assert knapsack(values, weights, capacity).tolist() == taken
