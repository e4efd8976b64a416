"""The ascent on prices, on functions whose maximum is known."""

import numpy as np
import pytest

from schedgym.core.jit import kernel
from schedgym.solvers import ascent as solver
from schedgym.solvers.ascent import start_ascent


@kernel
def move_prices(ascent, reached, least, capacity, duration):
    """Call the helper, which only compiled code can."""
    return solver.move_prices(ascent, reached, least, capacity, duration)


def climb(worth, size, capacity, duration, steps, least=0.0):
    """Sell ``size`` of a good at each of several worths; return the best value, the best prices, the steps.

    The dual of: maximise the worth of what is sold, at most ``capacity`` per second of each interval. (Its
    minimum is wanted; the ascent maximises minus the value.)
    """
    ascent = start_ascent(np.zeros((1, len(duration))))
    taken = 0
    while taken < steps:
        taken += 1
        sold = worth[:, None] > ascent.trial
        ascent.use[:] = (sold * size[:, None]).sum(axis=0) * duration
        gain = np.maximum(worth[:, None] - ascent.trial, 0.0) * size[:, None]
        value = ((gain.sum(axis=0) + capacity * ascent.trial[0]) * duration).sum()
        if not move_prices(ascent, -value, least, np.array([capacity]), duration):
            break
    return -ascent.numbers[0], ascent.best, taken


def test_it_finds_the_price_that_clears_each_interval():
    worth, size = np.array([5.0, 3.0, 2.0, 1.0]), np.ones(4)
    value, best, steps = climb(worth, size, 2.5, np.array([1.0, 4.0]), 500)
    # 5 + 3 + half of 2 a second, over 5 seconds, at a price of 2
    assert value == pytest.approx(5 * 9.0, rel=1e-3)
    assert best == pytest.approx(np.full((1, 2), 2.0), rel=0.02)


def test_it_ends_at_prices_of_zero_where_capacity_is_plenty():
    value, best, steps = climb(np.array([5.0, 3.0]), np.ones(2), 3.0, np.ones(3), 500)
    assert steps == 1
    assert value == 3 * 8.0
    assert not best.any()


def test_it_leaves_a_value_of_zero_only_with_an_aim():
    """A step is in proportion to the aim, which a value of 0 does not give."""
    reached = {}
    for least in (0.0, 1.0):
        ascent = start_ascent(np.zeros((1, 1)))
        for _ in range(200):
            price = ascent.trial[0, 0]
            # twice the capacity of 1 is used below the price of 1, none above: at most 1
            ascent.use[0, 0] = 2.0 if price < 1.0 else 0.0
            if not move_prices(ascent, min(price, 2.0 - price), least, np.ones(1), np.ones(1)):
                break
        reached[least] = ascent.numbers[0]
    assert reached[0.0] == 0.0
    assert reached[1.0] == pytest.approx(1.0, rel=1e-3)
