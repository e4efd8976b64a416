"""Whole tasks: the slot rules, their factors, the repair of actions, and exact optima."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from schedgym.papers.exact import quotient
from schedgym.papers.zheng2016.model.jobs import (
    TOLERANCE,
    Amounts,
    Instance,
    Number,
    Schedule,
    State,
    deadline,
    fits,
    gain,
    horizon,
    load,
    shares,
    slot_cap,
    worth,
)

__all__ = [
    "Task",
    "allocations",
    "candidates",
    "deadline_aware",
    "deadline_aware_factor",
    "equal_opp",
    "local_optimal",
    "m_greedy",
    "m_greedy_factor",
    "primal_dual",
    "primal_dual_factor",
    "repair",
    "s_greedy",
    "whole_best",
]


PRICE_TOLERANCE = 1e-12  # slack of the stopping rule of primal-dual, in logarithms


class Task(NamedTuple):
    """Task k of job j."""

    value: Number
    j: int
    k: int


def candidates(state: State) -> list[Task]:
    """Return the first min(X, Y - y) unserved tasks of each active job whose tasks fit, by job and index."""
    tasks = []
    for j, job in enumerate(state.instance.jobs):
        cap = round(slot_cap(state, j))
        if not cap or max(shares(state.instance, j)) > 1 + TOLERANCE:
            continue
        first = round(state.served[j]) + 1
        tasks += [Task(worth(job, k), j, k) for k in range(first, first + cap)]
    return tasks


def _counts(state: State, tasks: Sequence[Task]) -> Amounts:
    """Return tasks as amounts per job: the tasks of a job are served in index order."""
    x = [0] * len(state.served)
    for task in tasks:
        x[task.j] += 1
    return x


def _prefix(state: State, order: Sequence[Task], skip: bool = False) -> tuple[list[Task], Task | None]:
    """Return the tasks up to the first misfit (with skip: all but the misfits), and the first misfit."""
    taken: list[Task] = []
    misfit = None
    for task in order:
        if fits(state.instance, _counts(state, [*taken, task])):
            taken.append(task)
            continue
        misfit = misfit or task
        if not skip:
            break
    return taken, misfit


def _by_value(state: State) -> list[Task]:
    """Return the candidates, most valuable first; ties go to the lower id, then to the lower task index."""
    return sorted(candidates(state), key=lambda s: (-s.value, s.j, s.k))


def s_greedy(state: State, skip: bool = False) -> Amounts:
    """Return the most valuable tasks up to the first misfit (with skip: all but the misfits)."""
    return _counts(state, _prefix(state, _by_value(state), skip)[0])


def m_greedy(state: State, skip: bool = False) -> Amounts:
    """Run local greedy: tasks by value per dominant share up to the first misfit, or it if it is worth more.

    With ``skip`` only misfits are left out; the first one is compared with all that is taken.
    """
    dominant = [max(shares(state.instance, j)) for j in range(len(state.served))]

    def key(task: Task) -> tuple[Number, ...]:
        largest = dominant[task.j]
        density = quotient(task.value, largest) if largest else math.inf
        return (-density, -task.value, task.j, task.k)

    taken, misfit = _prefix(state, sorted(candidates(state), key=key), skip)
    if misfit is not None and misfit.value > sum(task.value for task in taken):
        taken = [misfit]
    return _counts(state, taken)


def equal_opp(state: State, skip: bool = False) -> Amounts:
    """Return one task per job and round, within a round by (y, id), up to the first misfit."""
    served = state.served
    order = sorted(candidates(state), key=lambda s: (s.k - served[s.j], served[s.j], s.j))
    return _counts(state, _prefix(state, order, skip)[0])


def _log_sum(logs: Sequence[float]) -> float:
    """Return the logarithm of the sum of the numbers with these logarithms."""
    top = max(logs, default=-math.inf)
    if math.isinf(top):
        return top
    return top + math.log(sum(math.exp(a - top) for a in logs))


def bound_b(state: State) -> float:
    """Return B = 1 / the largest share among the candidates (infinite when they need nothing)."""
    largest = max([max(shares(state.instance, s.j)) for s in candidates(state)], default=0)
    return float(1 / largest) if largest else math.inf


def primal_dual(state: State, power: int = 1) -> Amounts:
    """Run local primal-dual (Algorithm 2), with logarithms of multiplicative prices.

    A task raises log b_i by limit r_is^power / (1 - max_s' r_is'). ``power`` 1 gives the rule of Briest,
    Krysta and Voecking, which keeps the slot within its capacity, 0 the formula that the paper prints.
    """
    m = len(state.instance.capacity)
    left = candidates(state)
    needs = {task.j: shares(state.instance, task.j) for task in left}
    largest = [max([r[i] for r in needs.values()], default=0) for i in range(m)]
    limit = bound_b(state) - 1 + math.log(m)  # log(e^(B-1) m)
    price = [0.0] * m  # logarithms
    taken: list[Task] = []

    def cost(r: Sequence[Number]) -> float:
        return _log_sum([math.log(a) + b for a, b in zip(r, price, strict=True) if a])

    while left and _log_sum(price) <= limit + PRICE_TOLERANCE:
        costs = {j: cost(r) for j, r in needs.items()}
        task = min(left, key=lambda s: (costs[s.j] - math.log(s.value), -s.value, s.j, s.k))
        left.remove(task)
        taken.append(task)
        for i, r in enumerate(needs[task.j]):
            if r or not power:
                price[i] += float(limit * r**power / (1 - largest[i])) if largest[i] < 1 else math.inf
    return _counts(state, taken)


def deadline_aware(state: State, p: int | None = None, rho: Number = None) -> Amounts:
    """Run Algorithm 3: some of the most valuable tasks, then nearly as valuable ones that are urgent.

    One resource, unit demand, whole capacity C; by default p = ceil(C / 2) and rho = C / (2 C - p), which is
    C / 2 and 2 / 3 for even C.
    """
    capacity = state.instance.capacity
    if len(capacity) != 1 or capacity[0] != round(capacity[0]):
        raise ValueError("deadline-aware needs one resource of whole capacity")
    if any(job.demand != (1,) for job in state.instance.jobs):
        raise ValueError("deadline-aware needs unit demand")
    c = round(capacity[0])
    p = -(-c // 2) if p is None else p
    rho = Fraction(c, 2 * c - p) if rho is None else rho
    order = _by_value(state)
    if len(order) <= c:
        return _counts(state, order)
    least = rho * quotient(sum(s.value for s in order[:p]), p)
    if order[c].value <= least:
        return _counts(state, order[:c])
    near = [s for s in order[p:] if s.value >= least]
    near.sort(key=lambda s: (deadline(state, s.j), -s.value, s.j, s.k))
    return _counts(state, order[:p] + near[: c - p])


def allocations(state: State) -> Iterator[tuple[int, ...]]:
    """Yield every whole allocation of a slot that fits and to which no further task can be added."""
    demands = [job.demand for job in state.instance.jobs]
    caps = [0] * len(demands)
    for task in candidates(state):
        caps[task.j] += 1
    slack = [TOLERANCE * c for c in state.instance.capacity]

    def fit(demand: Sequence[Number], left: Sequence[Number]) -> bool:
        return all(d <= c + more for d, c, more in zip(demand, left, slack, strict=True))

    def extend(j: int, x: tuple[int, ...], left: tuple[Number, ...]) -> Iterator[tuple[int, ...]]:
        if j == len(caps):
            if not any(x[k] < cap and fit(demands[k], left) for k, cap in enumerate(caps)):
                yield x
            return
        for count in range(caps[j] + 1):
            if count:
                if not fit(demands[j], left):
                    return
                left = tuple(c - d for c, d in zip(left, demands[j], strict=True))
            yield from extend(j + 1, (*x, count), left)

    return extend(0, (), state.instance.capacity)


def local_optimal(state: State) -> Amounts:
    """Return the whole allocation with the largest gain: problem (5); one of them if there are several."""
    return list(max(allocations(state), key=functools.partial(gain, state)))


def whole_best(instance: Instance) -> tuple[Number, Schedule]:
    """Return the offline optimum of problem (4) over all schedules (a task is never worth less early)."""
    last = horizon(instance)

    @functools.cache
    def best(slot: int, served: tuple[int, ...]) -> tuple[Number, tuple[tuple[int, ...], ...]]:
        if slot > last:
            return 0, ()
        state = State(instance, slot, served)
        options = []
        for x in allocations(state):
            later, rest = best(slot + 1, tuple(y + a for y, a in zip(served, x, strict=True)))
            options.append((gain(state, x) + later, (x, *rest)))
        return max(options)

    found, schedule = best(1, (0,) * len(instance.jobs))
    return found, list(schedule)


# factors that the paper proves, as corrected -------------------------------------------------------------


def _excess(b: float) -> float:
    """Return B / (B - 1); B is infinite where tasks need nothing."""
    return 1.0 if math.isinf(b) else b / (b - 1)


def m_greedy_factor(b: float, m: int) -> float:
    """Return the number of times that a slot's optimum is at most what m-greedy gets; b is B."""
    return m * (2.0 if b <= 1 else min(2.0, _excess(b)))


def primal_dual_factor(b: float, m: int) -> float:
    """Return the same for primal-dual."""
    return math.inf if b <= 1 else math.e * _excess(b) * m ** (1 / (b - 1))


def deadline_aware_factor(c: int) -> Fraction:
    """Return the number of times that the offline optimum is at most what deadline-aware gets.

    9/5 for even C, 1 + 4 C^2 / (5 C^2 - 1) for odd C with p = (C +- 1) / 2.
    """
    return Fraction(9, 5) if c % 2 == 0 else 1 + Fraction(4 * c * c, 5 * c * c - 1)


# actions that do not fit -----------------------------------------------------------------------------------


def repair(state: State, x: Sequence[float]) -> Amounts:
    """Make an allocation with 0 <= x <= u fit.

    Continuous: x_j times the least of min(1, 1 / load_i) over the resources that job j uses.
    Discrete: drop the last task of the job whose last task has the lowest value per dominant share
    (ties: lower value, higher id), until it fits.
    """
    x = list(x)
    if not state.instance.discrete:
        used = load(state.instance, x)
        for j in range(len(x)):
            factors = [1 / max(1.0, u) for u, r in zip(used, shares(state.instance, j), strict=True) if r > 0]
            x[j] *= min(factors, default=1.0)
        return x
    while not fits(state.instance, x):
        lasts = []
        for j, job in enumerate(state.instance.jobs):
            k = round(state.served[j] + x[j])
            if x[j] > 0 and max(shares(state.instance, j)) > 0:
                lasts.append(Task(worth(job, k), j, k))
        x[min(lasts, key=lambda s: (s.value / max(shares(state.instance, s.j)), s.value, -s.j)).j] -= 1.0
    return x
