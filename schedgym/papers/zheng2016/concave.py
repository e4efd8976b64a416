"""Strictly concave utilities, in floating point: bounds from the prices of Algorithm 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from schedgym.core.arrays import Flags, Floats, Integers
from schedgym.papers import Run
from schedgym.solvers.dual_prices import SlotJobs, make_dual_scratch, solve_slot

LINEAR, POWER, LOG = range(3)


class Concave(NamedTuple):
    """Jobs of any utility; the shares r are [jobs, resources]."""

    arrival: Integers
    deadline: Integers
    parallelism: Floats
    tasks: Floats
    share: Floats
    utility: Integers
    value: Floats
    exponent: Floats


class _Run(NamedTuple):
    """Result of Algorithm 1: the active jobs, the tasks of each job and the prices, by slot."""

    active: list[Flags]
    tasks: list[Floats]
    prices: list[Floats]


def _draw_concave(
    rng: np.random.Generator,
    kinds: Sequence[int],
    resources: int,
    *,
    common: bool = False,
    bounded: bool = True,
) -> Concave:
    n, last = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    arrival = rng.integers(1, last + 1, n)
    deadline = np.full(n, last) if common else rng.integers(arrival, last + 1)
    tasks = rng.uniform(0.2, 4.0, n)
    return Concave(
        arrival,
        deadline,
        rng.uniform(0.1, 2.0, n) if bounded else tasks,
        tasks,
        rng.uniform(0.05, 1.0, (n, resources)),
        rng.choice(np.array(kinds, dtype=np.int64), n),
        rng.uniform(1.0, 5.0, n),
        rng.choice(np.array([0.25, 0.5, 0.75]), n),
    )


def utility_of(jobs: Concave, y: Floats) -> Floats:
    """Return the value of ``y`` tasks of each job."""
    found = np.where(jobs.utility == POWER, y**jobs.exponent, np.log1p(y))
    return jobs.value * np.where(jobs.utility == LINEAR, y, found)


def _slope(jobs: Concave, y: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        found = np.where(jobs.utility == POWER, jobs.exponent * y ** (jobs.exponent - 1), 1 / (1 + y))
    return jobs.value * np.where(jobs.utility == LINEAR, 1.0, found)


def divide_slot(jobs: SlotJobs) -> tuple[Floats, Floats]:
    """Return the tasks of each job [n] in a slot and the resources' prices [m], by the shipped solver."""
    count, resources = jobs.share.shape
    tasks, prices = np.zeros(count), np.zeros(resources)
    solve_slot(count, jobs, make_dual_scratch(count, resources), prices, tasks)
    return tasks, prices


def run_concave(jobs: Concave) -> _Run:
    """Run Algorithm 1 with the solver of this package."""
    served = np.zeros(len(jobs.tasks))
    run = _Run([], [], [])
    for slot in range(1, int(jobs.deadline.max()) + 1):
        active = (jobs.arrival <= slot) & (slot <= jobs.deadline) & (served < jobs.tasks - 1e-9)
        x, prices = np.zeros(len(served)), np.zeros(jobs.share.shape[1])
        if active.any():
            cap = np.minimum(jobs.parallelism, jobs.tasks - served)
            own = SlotJobs(served, cap, jobs.share, jobs.utility, jobs.value, jobs.exponent)
            x[active], prices = divide_slot(SlotJobs._make(array[active] for array in own))
        served += x
        run.active.append(active)
        run.tasks.append(x)
        run.prices.append(prices)
    return run


class _Fit(NamedTuple):
    """A dual solution of problem (1): the value of a schedule and the bound that it gives.

    ``short`` is the largest amount, as a share of f'(y_j), by which a job's dual cost is below f'(y_j) (Lemma
    III.1) or its alpha is negative (Lemma III.5). It must not be positive.
    """

    value: float
    bound: float
    short: float


def _fit(jobs: Concave, served: Floats, alpha: Floats, cost: Floats, rest: float) -> _Fit:
    """Evaluate the dual of problem (1): each job buys at its least cost, and its gain is f(y) - f'(y) y.

    Where rounding leaves the cost below f'(y), alpha is raised, so that the bound is valid in any case.
    """
    total = float(utility_of(jobs, served).sum())
    slope = _slope(jobs, served)
    short = float(np.max(np.maximum(1 - cost / slope, -alpha / slope)))
    alpha = np.maximum(alpha + np.maximum(slope - cost, 0.0), 0.0)
    kept = np.where(served > 0, slope * served, 0.0)
    bound = total - float(kept.sum()) + float((alpha * jobs.tasks).sum()) + rest
    return _Fit(total, bound, short)


def fit_theorem_1(jobs: Concave, run: _Run) -> _Fit:
    """Return the dual solution in the proof of Theorem III.1."""
    served = np.sum(run.tasks, axis=0)
    slope = _slope(jobs, served)
    done = served >= jobs.tasks - 1e-9
    alpha = np.where(done, slope, 0.0)
    cost, rest = np.full(len(served), np.inf), float(np.sum(run.prices))
    for slot, (x, prices) in enumerate(zip(run.tasks, run.prices, strict=True), start=1):
        gamma = np.where(~done & (x >= jobs.parallelism - 1e-9), slope, 0.0)
        rest += float((gamma * jobs.parallelism).sum())
        inside = (jobs.arrival <= slot) & (slot <= jobs.deadline)
        cost = np.where(inside, np.minimum(cost, alpha + jobs.share @ prices + gamma), cost)
    return _fit(jobs, served, alpha, cost, rest)


def fit_theorem_2(jobs: Concave, run: _Run) -> _Fit:
    """Return the corrected dual solution of Lemma III.6 (one resource and deadline, unbounded parallelism).

    beta_t is the least price of slot t and all later ones, not the definition printed before Lemma III.5.
    """
    served = np.sum(run.tasks, axis=0)
    slope, r = _slope(jobs, served), jobs.share[:, 0]
    beta = np.minimum.accumulate(np.array(run.prices)[::-1, 0])[::-1]
    least = np.array([beta[a - 1 :].min() for a in jobs.arrival]) * r
    alpha = np.where(served >= jobs.tasks - 1e-9, slope - least, 0.0)
    return _fit(jobs, served, alpha, alpha + least, float(beta.sum()))


def _drawn(run: Run, count: int, **options: Any) -> Iterator[tuple[Concave, _Run]]:
    """Yield instances of all kinds of utilities, and Algorithm 1 on them."""
    mixtures = [(POWER,), (LOG,), (POWER, LOG), (LINEAR, POWER, LOG)]
    resources = options.pop("resources")
    for n in range(count):
        jobs = _draw_concave(run.rng, mixtures[n % len(mixtures)], resources[n % len(resources)], **options)
        yield jobs, run_concave(jobs)


def fit_many(
    run: Run, fit: Callable[[Concave, _Run], _Fit], count: int, **options: Any
) -> tuple[int, float, float]:
    """Check instances of all kinds of utilities; return their number, largest bound / value and ``short``."""
    worst, short = 0.0, -math.inf
    for jobs, found in _drawn(run, count, **options):
        fitted = fit(jobs, found)
        worst = max(worst, fitted.bound / fitted.value)
        short = max(short, fitted.short)
    return count, worst, short


def price_excess(run: Run, count: int, **options: Any) -> float:
    """Check Lemma III.2 on instances of all kinds of utilities.

    Returns:
        the largest share by which the prices of a slot sum to more than sum_j f'(y_jt) x_jt.
    """
    most = -math.inf
    for jobs, found in _drawn(run, count, **options):
        served = np.zeros(len(jobs.tasks))
        for x, prices in zip(found.tasks, found.prices, strict=True):
            served += x
            if prices.sum() > 0.0:
                slope = np.where(x > 0.0, _slope(jobs, np.where(x > 0.0, served, 1.0)), 0.0)
                most = max(most, 1.0 - float((slope * x).sum() / prices.sum()))
    return most
