"""Jobs with partial values on pooled resources: utilities, slots, schedules, and what is measured of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from schedgym.papers.exact import quotient

__all__ = [
    "Amounts",
    "HiddenDeadline",
    "Instance",
    "Job",
    "KINDS",
    "LINEAR",
    "LOG",
    "Metrics",
    "Number",
    "Outcome",
    "POWER",
    "Rule",
    "Schedule",
    "State",
    "TOLERANCE",
    "active",
    "check",
    "feasible",
    "fits",
    "gain",
    "horizon",
    "in_order",
    "load",
    "metrics",
    "play",
    "replay",
    "room",
    "run",
    "share",
    "shares",
    "slope",
    "slot_cap",
    "slot_caps",
    "utility",
    "value",
    "value_of",
    "window",
    "worth",
]


Number = Any  # whole and fractions: exact; float
Amounts = Sequence[Number]  # tasks of each job
Schedule = list[Amounts]  # by slot 1, 2, ...

TOLERANCE = 1e-9  # a load of at most 1 + TOLERANCE fits; a job with y >= Y - TOLERANCE is complete

LINEAR, POWER, LOG = "linear", "power", "log"
KINDS = (LINEAR, POWER, LOG)


class HiddenDeadline(Exception):
    """A policy asked for a deadline that the instance hides."""


class Job(NamedTuple):
    """A job that is served in slots arrival..deadline.

    Attributes:
        arrival: first slot.
        deadline: last slot.
        parallelism: X, most tasks per slot.
        tasks: Y, tasks in all.
        demand: R, amount of each resource that a task needs.
        values: v; if f is linear, also several: the values of tasks 1, 2, ..., which never rise, and of which
            the last one is also the value of all further tasks.
        kind: of the utility: LINEAR v y, POWER v y^alpha, LOG v log(1 + y).
        alpha: exponent of a power.
    """

    arrival: Number
    deadline: Number
    parallelism: Number
    tasks: Number
    demand: tuple[Number, ...]
    values: tuple[Number, ...] = (1,)
    kind: str = LINEAR
    alpha: float = 0.5


class Instance(NamedTuple):
    """Jobs and the capacity of each resource; whole tasks only if ``discrete``."""

    jobs: tuple[Job, ...]
    capacity: tuple[Number, ...]
    discrete: bool = False
    hidden: bool = False


class State(NamedTuple):
    """What a policy sees at the start of a slot; ``served`` are the tasks of each job before it."""

    instance: Instance
    slot: int
    served: Amounts


Rule = Callable[[State], Amounts]


# utilities -------------------------------------------------------------------------------------------


def utility(job: Job, y: Number) -> Number:
    """Return f(y); a part of task k has that part of its value."""
    v = job.values[0]
    if job.kind == POWER:
        return v * y**job.alpha
    if job.kind == LOG:
        return v * math.log1p(y)
    if len(job.values) == 1:
        return v * y
    return sum(worth(job, k) * min(1, y - k + 1) for k in range(1, math.ceil(y) + 1))


def slope(job: Job, y: float) -> float:
    """Return f'(y) of a job with one value; infinite for a power at 0."""
    (v,) = job.values
    if job.kind == LINEAR:
        return v
    if job.kind == POWER:
        return math.inf if y <= 0 else v * job.alpha * y ** (job.alpha - 1)
    return v / (1 + y)


def worth(job: Job, k: int) -> Number:
    """Return the value of task k = 1, 2, ...: f(k) - f(k - 1), and exactly v where f is linear."""
    if job.kind == LINEAR:
        return job.values[min(k, len(job.values)) - 1]
    return utility(job, k) - utility(job, k - 1)


def value_of(instance: Instance, served: Amounts) -> Number:
    """Return the total value when jobs end with these tasks."""
    return sum(utility(job, y) for job, y in zip(instance.jobs, served, strict=True))


# slots -----------------------------------------------------------------------------------------------


def horizon(instance: Instance) -> int:
    """Return T, the last slot."""
    return max(math.floor(job.deadline) for job in instance.jobs)


def window(instance: Instance, j: int) -> list[int]:
    """Return the slots in which job j may be served."""
    job = instance.jobs[j]
    return [t for t in range(1, horizon(instance) + 1) if job.arrival <= t <= job.deadline]


def share(instance: Instance, j: int, i: int) -> Number:
    """Return r_ij, the share of resource i that a task of job j takes."""
    return quotient(instance.jobs[j].demand[i], instance.capacity[i])


def shares(instance: Instance, j: int) -> list[Number]:
    """Return the share of each resource that a task of job j takes."""
    return [share(instance, j, i) for i in range(len(instance.capacity))]


def load(instance: Instance, x: Amounts) -> list[Number]:
    """Return the load of each resource under an allocation."""
    totals = []
    for i in range(len(instance.capacity)):
        total: Number = 0
        for j, amount in enumerate(x):
            total += share(instance, j, i) * amount
        totals.append(total)
    return totals


def fits(instance: Instance, x: Amounts) -> bool:
    """Return whether no resource is overloaded."""
    return all(total <= 1 + TOLERANCE for total in load(instance, x))


def slot_cap(state: State, j: int) -> Number:
    """Return u, the most tasks that job j may get in this slot (0 when it is not active)."""
    job = state.instance.jobs[j]
    left = job.tasks - state.served[j]
    active = job.arrival <= state.slot <= job.deadline and left > TOLERANCE
    return min(job.parallelism, left) if active else 0


def slot_caps(state: State) -> list[Number]:
    """Return the most tasks that each job may get in this slot."""
    return [slot_cap(state, j) for j in range(len(state.served))]


def active(instance: Instance, slot: int, served: Amounts) -> list[int]:
    """Return the ids of the jobs that can be served in a slot."""
    return [j for j, cap in enumerate(slot_caps(State(instance, slot, served))) if cap > 0]


def deadline(state: State, j: int) -> Number:
    """Return the deadline of a job; raise HiddenDeadline if it is hidden."""
    if state.instance.hidden:
        raise HiddenDeadline(f"deadline of job {j}")
    return state.instance.jobs[j].deadline


def gain(state: State, x: Amounts) -> Number:
    """Return the value of x tasks in addition to those served before: the reward of a slot."""
    return sum(
        utility(job, y + a) - utility(job, y)
        for job, y, a in zip(state.instance.jobs, state.served, x, strict=True)
        if a
    )


def check(state: State, x: Amounts) -> None:
    """Raise ValueError unless x may be served in this slot."""
    where = f"slot {state.slot}"
    if len(x) != len(state.instance.jobs):
        raise ValueError(f"{where}: {len(x)} amounts")
    for j, amount in enumerate(x):
        if not -TOLERANCE <= amount <= slot_cap(state, j) + TOLERANCE:
            raise ValueError(f"{where}: job {j} gets {amount}, may get {slot_cap(state, j)}")
        if state.instance.discrete and amount != round(amount):
            raise ValueError(f"{where}: job {j} gets {amount} tasks")
    if not fits(state.instance, x):
        raise ValueError(f"{where}: load {load(state.instance, x)}")


# schedules -------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """A whole run. The lists have one entry per slot played; served and value are at the end."""

    allocation: Schedule
    reward: list[Number]
    served: Amounts
    value: Number


def run(instance: Instance, rule: Rule, *, checked: bool = True) -> Outcome:
    """Play slots 1..T; stop early when every job has arrived and none is active.

    Raises:
        ValueError: the rule breaks a constraint, which is found out if ``checked``.
    """
    served: Amounts = (0,) * len(instance.jobs)
    allocation: Schedule = []
    rewards: list[Number] = []
    for slot in range(1, horizon(instance) + 1):
        arrived = all(job.arrival <= slot for job in instance.jobs)
        if arrived and not active(instance, slot, served):
            break
        state = State(instance, slot, served)
        x = rule(state)
        if checked:
            check(state, x)
        allocation.append(x)
        rewards.append(gain(state, x))
        served = tuple(y + a for y, a in zip(served, x, strict=True))
    return Outcome(allocation, rewards, served, value_of(instance, served))


def padded(instance: Instance, schedule: Sequence[Amounts]) -> Schedule:
    """Return a schedule with empty slots up to T."""
    empty = [0] * len(instance.jobs)
    return [*schedule, *(empty for _ in range(horizon(instance) - len(schedule)))]


def play(instance: Instance, rule: Rule) -> Schedule:
    """Return the schedule of a rule over all slots, feasible or not."""
    return padded(instance, run(instance, rule, checked=False).allocation)


def replay(instance: Instance, schedule: Sequence[Amounts]) -> Outcome:
    """Check and score a given schedule, one row per slot from slot 1."""
    rows = padded(instance, schedule)
    outcome = run(instance, lambda state: rows[state.slot - 1])
    if any(amount != 0 for row in rows[len(outcome.allocation) :] for amount in row):
        raise ValueError(f"service after the last of {len(outcome.allocation)} slots")
    return outcome


def feasible(instance: Instance, schedule: Schedule, whole: bool) -> bool:
    """Return True if a schedule keeps all constraints."""
    try:
        replay(instance._replace(discrete=whole), schedule)
    except ValueError:
        return False
    return True


def value(instance: Instance, schedule: Schedule) -> Number:
    """Return the value of a whole schedule."""
    return value_of(instance, [sum(x[j] for x in schedule) for j in range(len(instance.jobs))])


class Metrics(NamedTuple):
    """Value, mean load of each resource over all slots 1..T, jobs never served, and jobs that expired."""

    value: Number
    utilisation: tuple[Number, ...]
    never_served: int
    expired: int


def metrics(instance: Instance, outcome: Outcome) -> Metrics:
    """Measure a run: a job is never served if y <= 1e-9, and expired if it ends with y < Y - 1e-9."""
    last = horizon(instance)
    used: list[Number] = [0] * len(instance.capacity)
    for x in outcome.allocation:
        for i, total in enumerate(load(instance, x)):
            used[i] += quotient(total, last)
    return Metrics(
        value_of(instance, outcome.served),
        tuple(used),
        sum(y <= TOLERANCE for y in outcome.served),
        sum(y < job.tasks - TOLERANCE for job, y in zip(instance.jobs, outcome.served, strict=True)),
    )


# rules for both kinds of tasks -----------------------------------------------------------------------


def room(state: State, x: Amounts, j: int) -> Number:
    """Return how many tasks of job j the slot still has room for (a real number)."""
    used = load(state.instance, x)
    needs = shares(state.instance, j)
    return min([max(1 - u, 0) / r for u, r in zip(used, needs, strict=True) if r > 0] + [math.inf])


def in_order(state: State, order: Sequence[int]) -> Amounts:
    """Serve jobs in order, each with the most that fits."""
    x: list[Number] = [0] * len(state.served)
    for j in order:
        if not state.instance.discrete:
            x[j] = min(slot_cap(state, j), room(state, x, j))
            continue
        while x[j] < slot_cap(state, j):
            x[j] += 1
            if not fits(state.instance, x):
                x[j] -= 1
                break
    return x


def edf(state: State) -> Amounts:
    """Serve by deadline."""
    ids = active(state.instance, state.slot, state.served)
    return in_order(state, sorted(ids, key=lambda j: (deadline(state, j), j)))


def fifo(state: State) -> Amounts:
    """Serve by arrival."""
    ids = active(state.instance, state.slot, state.served)
    return in_order(state, sorted(ids, key=lambda j: (state.instance.jobs[j].arrival, j)))
