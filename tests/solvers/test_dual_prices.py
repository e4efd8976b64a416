"""The best division of a slot: certificates in exact formulas, the model, cases with a known answer."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgym.papers.zheng2016 import model
from schedgym.solvers.dual_prices import (
    LINEAR,
    LOG,
    POWER,
    SlotJobs,
    make_dual_scratch,
    solve_slot,
)
from tests.partial_value.instances import make_job

CLOSE = 1e-8
CERTIFIED = 1e-9
NAMES = {LINEAR: model.LINEAR, POWER: model.POWER, LOG: model.LOG}


class Optimum(NamedTuple):
    """The tasks of each job [n], the prices [m], and the relative duality gap."""

    x: Any
    prices: Any
    gap: float


def solve(slot: SlotJobs) -> Optimum:
    n, m = slot.share.shape
    x, prices = np.zeros(n), np.zeros(m)
    gap = solve_slot(n, slot, make_dual_scratch(n, m), prices, x)
    return Optimum(x, prices, gap)


def gained(kind: int, v: float, alpha: float, y: float, x: float) -> float:
    """f(y + x) - f(y)."""
    if x <= 0.0:
        return 0.0
    if kind == LINEAR:
        return v * x
    if kind == LOG:
        return v * math.log1p(x / (1.0 + y))
    if y == 0.0 or x > y:
        return v * ((y + x) ** alpha - y**alpha)
    return v * y**alpha * math.expm1(alpha * math.log1p(x / y))


def wanted(kind: int, v: float, alpha: float, y: float, u: float, price: float) -> float:
    """What a job buys at a price; of a linear job at its own price nothing."""
    if price <= 0.0:
        return u
    if kind == LINEAR:
        return u if price < v else 0.0
    power = math.log(v * alpha / price) / (1.0 - alpha)
    stop = v / price - 1.0 if kind == LOG else math.exp(min(power, 700.0))  # beyond every cap
    return min(max(stop - y, 0.0), u)


def worth(slot: SlotJobs, x: Any) -> float:
    return sum(
        gained(int(k), v, a, y, amount)
        for k, v, a, y, amount in zip(slot.utility, slot.value, slot.exponent, slot.served, x, strict=True)
    )


def bound(slot: SlotJobs, prices: Any) -> float:
    """No allocation of the slot is worth more, whatever the prices."""
    total = float(prices.sum())
    for j in range(len(slot.cap)):
        price = float(slot.share[j] @ prices)
        args = (int(slot.utility[j]), slot.value[j], slot.exponent[j], slot.served[j])
        amount = wanted(*args, slot.cap[j], price)
        total += gained(*args, amount) - price * amount
    return total


def certify(slot: SlotJobs) -> Optimum:
    """Solve; the result must be feasible, and near its bound by these formulas and by its own account."""
    found = solve(slot)
    assert (found.x >= 0.0).all() and (found.x <= slot.cap).all()
    assert (found.x @ slot.share <= 1.0 + 1e-12).all()
    assert (found.prices >= 0.0).all() and np.isfinite(found.prices).all()
    value = worth(slot, found.x)
    assert 0.0 <= found.gap <= CERTIFIED
    assert bound(slot, found.prices) - value <= CERTIFIED * max(value, float(found.prices.sum()))
    return found


@st.composite
def slots(draw: Any, kinds: tuple[int, ...] = (LINEAR, POWER, LOG)) -> SlotJobs:
    """Slots of sane sizes, with ties, zeros and caps that bind or do not."""
    n = draw(st.integers(1, 8))
    m = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tied = draw(st.booleans())
    size = draw(st.sampled_from([0.1, 0.5, 1.0]))
    share = rng.choice([0.0, 0.1, 0.25, 0.5, 1.0], (n, m)) if tied else rng.uniform(0.02, 1.0, (n, m))
    return SlotJobs(
        served=rng.choice([0.0, 0.0, 1.0, 4.0], n)
        if tied
        else rng.uniform(0.0, 5.0, n) * rng.integers(0, 2, n),
        cap=rng.choice([0.5, 1.0, 2.0], n) if tied else rng.uniform(0.1, 5.0, n),
        share=share * size,
        utility=rng.choice(draw(st.sampled_from([kinds[:1], kinds[1:2], kinds[-1:], kinds])), n),
        value=rng.choice([1.0, 2.0, 3.0], n) if tied else rng.uniform(1.0, 5.0, n),
        exponent=rng.choice([0.25, 0.5, 0.75], n),
    )


@settings(max_examples=300)
@given(slots())
def test_every_slot_is_certified(slot: SlotJobs) -> None:
    certify(slot)


@st.composite
def extreme_slots(draw: Any) -> SlotJobs:
    """Numbers of any magnitude."""
    n = draw(st.integers(1, 30))
    m = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    reach = draw(st.sampled_from([1.0, 3.0, 6.0]))

    def magnitudes(*shape: int) -> Any:
        return 10.0 ** rng.uniform(-reach, reach, shape)

    return SlotJobs(
        served=magnitudes(n) * (rng.random(n) < 0.7),
        cap=magnitudes(n),
        share=np.minimum(magnitudes(n, m), 1.0) * (rng.random((n, m)) < 0.8),
        utility=rng.integers(0, 3, n),
        value=magnitudes(n),
        exponent=rng.uniform(0.02, 0.98, n),
    )


@settings(max_examples=300)
@given(extreme_slots())
def test_slots_of_any_magnitude_are_certified(slot: SlotJobs) -> None:
    certify(slot)


@pytest.mark.parametrize("kind", [LINEAR, POWER, LOG, -1])
@pytest.mark.parametrize("m", [1, 2, 4])
def test_many_jobs_are_certified(kind: int, m: int) -> None:
    rng = np.random.default_rng(m)
    n = 5000
    kinds = rng.integers(0, 3, n) if kind < 0 else np.full(n, kind)
    slot = SlotJobs(
        served=rng.uniform(0.0, 80.0, n) * (rng.random(n) < 0.6),
        cap=rng.uniform(0.0, 20.0, n),
        share=rng.uniform(1.0, 8.0, (n, m)) / 1e4,
        utility=kinds,
        value=rng.uniform(1.0, 5.0, n),
        exponent=np.full(n, 0.5),
    )
    found = certify(slot)
    assert found.x @ slot.share @ np.ones(m) > 0.9


@settings(max_examples=100)
@given(slots(kinds=(POWER, POWER, LOG)))
def test_strictly_concave_jobs_get_what_the_model_gives(slot: SlotJobs) -> None:
    """The unique optimum, by nested root finding."""
    jobs = tuple(
        make_job(0, 1, u, math.inf, tuple(r), v, NAMES[int(k)], a)
        for u, r, v, k, a in zip(slot.cap, slot.share, slot.value, slot.utility, slot.exponent, strict=True)
    )
    ones = (1.0,) * slot.share.shape[1]
    state = model.State(model.Instance(jobs, ones), 1, tuple(slot.served))
    found = certify(slot)
    assert np.allclose(found.x, model.concave(state), rtol=1e-6, atol=1e-6)
    value = worth(slot, found.x)
    assert abs(model.slot_bound(state, list(found.prices)) - value) <= CLOSE * max(1.0, value)


def make(served: Any, cap: Any, share: Any, utility: Any, value: Any, exponent: Any = 0.5) -> SlotJobs:
    n = len(cap)
    kinds, values, powers = (np.broadcast_to(a, n).copy() for a in (utility, value, exponent))
    return SlotJobs(
        np.array(served, float), np.array(cap, float), np.array(share, float), kinds, values, powers
    )


def test_example_1() -> None:
    """The first two slots of the paper's example."""
    found = certify(make([0, 0], [1, 2], [[0.2, 0.8], [0.5, 0.5]], LINEAR, [2.0, 1.0]))
    assert np.allclose(found.x, [1.0, 0.4], atol=1e-12)
    found = certify(make([0.4, 0], [1.6, 2], [[0.5, 0.5], [0.8, 0.2]], LINEAR, [1.0, 2.0]))
    assert np.allclose(found.x, [0.0, 1.25], atol=1e-12)


def test_what_fits_is_served_at_price_0() -> None:
    found = certify(make([0, 3], [1, 2], [[0.5, 0.1], [0.25, 0.0]], [LINEAR, LOG], [2.0, 1.0]))
    assert list(found.x) == [1.0, 2.0]
    assert list(found.prices) == [0.0, 0.0]
    assert found.gap == 0.0


def test_a_free_resource_has_price_0() -> None:
    found = certify(make([0, 0], [5, 5], [[0.5, 0.1], [0.25, 0.1]], POWER, [2.0, 1.0]))
    assert found.prices[1] == 0.0 < found.prices[0]
    assert abs(found.x @ [0.5, 0.25] - 1.0) <= 1e-12


def test_rows_behind_do_not_count() -> None:
    slot = make([0, 1], [9, 9], [[0.3], [0.2]], POWER, [3.0, 2.0])
    expected = solve(slot)
    longer = [np.concatenate([array, np.full((3, *array.shape[1:]), -1, array.dtype)]) for array in slot]
    x, prices = np.full(5, math.nan), np.zeros(1)
    assert solve_slot(2, SlotJobs(*longer), make_dual_scratch(5, 1), prices, x) == expected.gap
    assert list(x[:2]) == list(expected.x) and np.isnan(x[2:]).all()
    assert list(prices) == list(expected.prices)


def test_nothing_to_divide() -> None:
    found = solve(make([], [], np.zeros((0, 2)), LINEAR, 1.0))
    assert found.gap == 0.0 and list(found.prices) == [0.0, 0.0]
    found = solve(make([1.0], [0.0], [[2.0]], POWER, 1.0))
    assert found.x[0] == found.gap == 0.0
