"""Section III: the lemmas in the proofs of Theorems III.1 and III.2.

They are checked in exact numbers with linear utilities, and on one resource also with the strictly concave
f(y) = v y - y^2 / 2, of which both f and f' are exact; and in floating point with powers and logarithms. The
multipliers of a slot need not be unique: the lemmas are checked with the least and with the greatest prices.

Section III-C is about jobs with a common deadline on one resource and without bounds on their parallelism;
its lemmas are checked under these conditions, and the evidence says how often they fail without them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from schedgym.papers import CORRECTED, NOT_REPRODUCED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.exact import Number, as_text, as_texts
from schedgym.papers.searches import Counted, Details, Sentences, count
from schedgym.papers.zheng2016 import model
from schedgym.papers.zheng2016.concave import fit_many, fit_theorem_1, price_excess
from schedgym.papers.zheng2016.instances import (
    ROUGH,
    claim,
    draw_instance,
    enumerate_instances,
    find_flaw,
    is_only,
    read_instance,
)
from schedgym.papers.zheng2016.model import Amounts, Instance, State


class Case(NamedTuple):
    """An instance; ``curved`` if f(y) = v y - y^2 / 2 up to y = v, where v >= Y, and not v y."""

    instance: Instance
    curved: bool


class Slot(NamedTuple):
    """A slot of Algorithm 1: active jobs, tasks in it and up to its end, and prices of whole resources."""

    active: list[int]
    x: Amounts
    served: Amounts
    least: tuple[Fraction, ...]
    greatest: tuple[Fraction, ...]


def _slots(case: Case) -> list[Slot]:
    """Run Algorithm 1."""
    instance = case.instance
    served: Amounts = (0,) * len(instance.jobs)
    slots = []
    for t in range(1, model.horizon(instance) + 1):
        state = State(instance, t, served)
        active = [j for j, u in enumerate(model.slot_caps(state)) if u > 0]
        if case.curved:
            x, low, high = model.curved_slot(state)
            ends: list[tuple[Fraction, ...]] = [(low,), (high,)]
        else:
            found = model.algorithm_1(state)
            x = tuple(found.x)
            ends = [tuple(b * c for b, c in zip(found.prices, instance.capacity, strict=False))] * 2
        served = tuple(y + a for y, a in zip(served, x, strict=True))
        slots.append(Slot(active, x, served, *ends))
    return slots


def _slope(case: Case, j: int, y: Number) -> Number:
    """Return f'(y) of job j."""
    v = case.instance.jobs[j].values[0]
    return v - y if case.curved else v


def _most_gain(case: Case, j: int, cost: Number) -> Number | None:
    """Return the most that f(y) - cost y of job j can be; None if it has no bound."""
    more = case.instance.jobs[j].values[0] - cost
    if more <= 0:
        return 0
    return Fraction(more * more, 2) if case.curved else None


def _cost(instance: Instance, j: int, prices: tuple[Fraction, ...]) -> Fraction:
    """Return sum_i b_i r_ij."""
    return sum((b * r for b, r in zip(prices, model.shares(instance, j), strict=True)), Fraction(0))


def _cases(run: Run, *, alike: bool) -> Iterator[Case]:
    """Yield the instances on which a lemma is checked: all small ones, and random ones.

    Args:
        run: scale and random numbers.
        alike: True for section III-C: one resource, a common deadline, no bounds on parallelism.
    """
    sizes = [(2, 2, (1, 2), 2, 2)] if run.small else [(2, 3, (1, 2), 2, 3), (2, 2, (1, 2, 3), 3, 4)]
    bound = None if alike else 2
    for size in sizes:
        for instance in enumerate_instances(*size, parallelism=bound, common=alike):
            yield Case(instance, False)
            if all(job.values[0] >= job.tasks for job in instance.jobs):
                yield Case(instance, True)
    for n in range(200 if run.small else 10_000):
        curved = n % 2 == 0
        resources = 1 if curved or alike else 2 + n % 4 // 3
        instance = draw_instance(run.rng, resources, jobs=4, slots=4, tasks=4, linear=True)
        last = model.horizon(instance)
        jobs = [
            job._replace(
                deadline=last if alike else job.deadline,
                parallelism=job.tasks if alike else Fraction(job.parallelism, 2),
                values=(max(job.values[0], job.tasks),),
            )
            for job in instance.jobs
        ]
        yield Case(instance._replace(jobs=tuple(jobs)), curved)


# section III-B: for the proof of Theorem III.1 -------------------------------------------------------


def _lemma_1(case: Case) -> Iterator[bool]:
    """Compare H_j with f(y_j) - f'(y_j) y_j; the least prices give the largest H_j."""
    instance, slots = case.instance, _slots(case)
    for j, job in enumerate(instance.jobs):
        y = slots[-1].served[j]
        slope, done = _slope(case, j, y), y == job.tasks
        cost = min(
            (slope if done else 0)
            + _cost(instance, j, slot.least)
            + (slope if not done and slot.x[j] == job.parallelism else 0)
            for slot in slots[job.arrival - 1 : job.deadline]
        )
        most = _most_gain(case, j, cost)
        yield most is not None and most <= (Fraction(y * y, 2) if case.curved else 0)


def _find(
    say: Sentences, counted: Counted, figures: Mapping[str, Any] | None = None, short: float = 0.0
) -> Finding:
    """Return the finding of a lemma: all that is said is true, and floats are ``short`` by rounding only."""
    verdict = judge(counted.said and not counted.false and short <= ROUGH)
    return say(verdict, {**counted._asdict(), **(figures or {})}, true=counted.true, short=max(short, 0.0))


@claim("lemma-3.1")
def _check_lemma_3_1(run: Run, say: Sentences) -> Finding:
    counted = count(_cases(run, alike=False), _lemma_1)
    fitted, _, short = fit_many(run, fit_theorem_1, 100 if run.small else 20_000, resources=(1, 2, 3))
    return _find(say, counted, {"fitted": fitted, "largest_shortfall": short}, short)


def _lemma_2(case: Case) -> Iterator[bool]:
    """Compare the prices of each slot with sum_j f'(y_jt) x_jt; the greatest prices have the largest sum."""
    for slot in _slots(case):
        paid = sum(_slope(case, j, slot.served[j]) * a for j, a in enumerate(slot.x))
        yield sum(slot.greatest) <= paid


@claim("lemma-3.2")
def _check_lemma_3_2(run: Run, say: Sentences) -> Finding:
    counted = count(_cases(run, alike=False), _lemma_2)
    fitted = 100 if run.small else 20_000
    excess = price_excess(run, fitted, resources=(1, 2, 3))
    return _find(say, counted, {"fitted": fitted, "largest_excess": excess}, excess)


# section III-C: for the proof of Theorem III.2 -------------------------------------------------------


def _lemma_3(case: Case) -> Iterator[bool]:
    """Compare f' / r of the jobs that a slot serves and leaves unfinished."""
    for slot in _slots(case):
        ratios = [_ratio(case, j, slot.served[j]) for j in _unfinished(case, slot)]
        yield from (ratio == ratios[0] for ratio in ratios[1:])


def _unfinished(case: Case, slot: Slot) -> list[int]:
    """Return the jobs that a slot serves, and that have tasks left at its end."""
    jobs = enumerate(case.instance.jobs)
    return [j for j, job in jobs if slot.x[j] > 0 and slot.served[j] < job.tasks]


def _ratio(case: Case, j: int, y: Number) -> Fraction:
    """Return f'(y) / r of job j on the only resource."""
    return Fraction(_slope(case, j, y)) / model.shares(case.instance, j)[0]


def _unlike(instance: Instance) -> Details:
    """Return the ratios f' / r of the jobs that a slot serves and leaves unfinished, if they differ."""
    case = Case(instance, False)
    if not is_only(instance):
        return None
    for t, slot in enumerate(_slots(case), start=1):
        ratios = {j: _ratio(case, j, slot.served[j]) for j in _unfinished(case, slot)}
        if len(set(ratios.values())) > 1:
            return {"slot": t, "ratios": {str(j): as_text(ratio) for j, ratio in ratios.items()}}
    return None


@claim("figure-1")
def _check_figure_1(run: Run, say: Sentences) -> Finding:
    def drawn() -> Iterator[list[Fraction]]:
        for _ in range(1_000 if run.small else 50_000):
            yield [Fraction(int(x), 4) for x in run.rng.integers(1, 9, size=run.rng.integers(1, 7))]

    def below(x: list[Fraction]) -> Iterator[bool]:
        served = list(itertools.accumulate(x))
        total = served[-1]
        yield sum((total - y) * own for y, own in zip(served, x, strict=True)) <= total**2 / 2  # v is total
        for kind in (model.POWER, model.LOG):
            job = model.Job(1, 1, total, total, (1,), (1,), kind)
            steps = sum(model.slope(job, float(y)) * float(own) for y, own in zip(served, x, strict=True))
            yield steps <= model.utility(job, float(total)) * (1 + 1e-12)

    return say.counted(count(drawn(), below), "above")


@claim("lemma-3.3")
def _check_lemma_3_3(run: Run, say: Sentences) -> Finding:
    counted = count(_cases(run, alike=True), _lemma_3)
    searched = find_flaw(enumerate_instances(2, 2, (1, 2), 2, 2, parallelism=2, common=True), _unlike)
    return _find(say, counted, {"with_bounds": searched._asdict()})


def _lemma_4(case: Case) -> Iterator[bool]:
    """Check (1) later slots and (2) the final ratios of every pair of jobs that a slot serves."""
    jobs, slots = case.instance.jobs, _slots(case)
    if not case.curved and not is_only(case.instance):
        return  # the lemma assumes that jobs of one ratio are served together, where there is a choice
    final = slots[-1].served
    for t, slot in enumerate(slots):
        both = [j for j, a in enumerate(slot.x) if a > 0]
        for one, other in itertools.permutations(both, 2):
            for before, later in itertools.pairwise(slots[t:]):
                if later.x[one] > 0:
                    yield later.x[other] > 0 or before.served[other] == jobs[other].tasks
            if all(final[j] < jobs[j].tasks for j in (one, other)):
                yield _ratio(case, one, final[one]) == _ratio(case, other, final[other])


@claim("lemma-3.4")
def _check_lemma_3_4(run: Run, say: Sentences) -> Finding:
    counted = count(_cases(run, alike=True), _lemma_4)
    other = count((c for c in _cases(run, alike=False) if len(c.instance.capacity) == 1), _lemma_4)
    return _find(say, counted, {"without_conditions": other._asdict()})


class _Dual(NamedTuple):
    """Dual solution beta_t, alpha_j of problem (1) without its third constraint, and the bound it gives.

    The bound is None if the solution is infeasible.
    """

    beta: list[Fraction]
    alpha: list[Fraction]
    bound: Fraction | None


def _dual(case: Case, slots: list[Slot], *, repaired: bool = False) -> _Dual:
    """Compute it as before Lemma III.5, or with the least price of slot t and all later ones as beta_t."""
    jobs, final = case.instance.jobs, slots[-1].served
    r = [model.shares(case.instance, j)[0] for j in range(len(jobs))]
    slope = [Fraction(_slope(case, j, y)) for j, y in enumerate(final)]
    beta: list[Fraction] = []
    for t, slot in enumerate(slots):
        if repaired:
            beta.append(min(later.least[0] for later in slots[t:]))
        elif sum((s * a for s, a in zip(r, slot.x, strict=True)), Fraction(0)) == 1:
            last = next(later for later in reversed(slots[t:]) if any(later.x[j] for j in slot.active))
            beta.append(min(slope[j] / r[j] for j in slot.active if last.x[j]))
        else:
            beta.append(Fraction(0))
    price = [min(beta[job.arrival - 1 :]) * r[j] for j, job in enumerate(jobs)]
    done = [y == job.tasks for y, job in zip(final, jobs, strict=True)]
    alpha = [slope[j] - price[j] if done[j] else Fraction(0) for j in range(len(jobs))]
    gains = [_most_gain(case, j, alpha[j] + price[j]) for j in range(len(jobs))]
    if min(alpha) < 0 or any(gain is None for gain in gains):
        return _Dual(beta, alpha, None)
    paid = sum((a * job.tasks for a, job in zip(alpha, jobs, strict=True)), Fraction(0))
    return _Dual(beta, alpha, sum(beta, paid) + sum(gain for gain in gains if gain))


def _lemma_5(case: Case) -> Iterator[bool]:
    """Check the sign of alpha_j of every job that is done; it is 0 for others."""
    slots = _slots(case)
    found = _dual(case, slots)
    for j, job in enumerate(case.instance.jobs):
        if slots[-1].served[j] == job.tasks:
            yield found.alpha[j] >= 0


@claim("lemma-3.5")
def _check_lemma_3_5(run: Run, say: Sentences) -> Finding:
    return _find(say, count(_cases(run, alike=True), _lemma_5))


def _lemma_6_1(case: Case) -> Iterator[bool]:
    """Check (1) of every job and slot from its arrival on that does not serve it."""
    instance, slots = case.instance, _slots(case)
    found, final = _dual(case, slots), slots[-1].served
    for j, job in enumerate(instance.jobs):
        r, slope = model.shares(instance, j)[0], _slope(case, j, final[j])
        for t in range(job.arrival - 1, len(slots)):
            if slots[t].x[j] == 0:
                yield slope - found.alpha[j] - found.beta[t] * r <= 0


def _left_over(instance: Instance) -> Details:
    """Return f' - alpha_j - beta_t r_j of the first job and slot with x_jt > 0 for which it is not 0."""
    case = Case(instance, False)
    slots = _slots(case)
    found = _dual(case, slots)
    for t, slot in enumerate(slots):
        for j, job in enumerate(instance.jobs):
            left = job.values[0] - found.alpha[j] - found.beta[t] * model.shares(instance, j)[0]
            if slot.x[j] > 0 and left != 0 and is_only(instance):
                return {
                    "slot": t + 1,
                    "left": as_text(left),
                    "beta": as_texts(found.beta),
                    "alpha": as_texts(found.alpha),
                    "bound": None if found.bound is None else as_text(found.bound),
                }
    return None


def _is_tight(instance: Instance) -> bool:
    """Return whether the repaired dual solution gives the value of Algorithm 1 as a bound."""
    case = Case(instance, False)
    slots = _slots(case)
    return bool(_dual(case, slots, repaired=True).bound == model.value(instance, [slot.x for slot in slots]))


def _confirm_lemma_3_6(shown: Shown) -> bool:
    """Confirm by the wording of the lemma for one job: f' - alpha - beta_t r in a slot that serves it."""
    instance = read_instance(shown)
    (job,), (c,) = instance.jobs, instance.capacity
    r = Fraction(job.demand[0], c)
    slots = job.deadline - job.arrival + 1
    x, left = [], Fraction(job.tasks)
    for _ in range(slots):
        x.append(min(left, 1 / r))
        left -= x[-1]
    slope = Fraction(job.values[0])
    # full slots have the price f'(y) / r of the last slot with service, others 0
    beta = [slope / r if a * r == 1 else Fraction(0) for a in x]
    alpha = slope - min(beta) * r if left == 0 else Fraction(0)
    slot = shown["slot"] - job.arrival
    return (
        job.parallelism >= job.tasks
        and as_texts([Fraction(0)] * (job.arrival - 1) + beta) == shown["beta"]
        and [as_text(alpha)] == shown["alpha"]
        and x[slot] > 0
        and as_text(slope - alpha - beta[slot] * r) == shown["left"] != 0
    )


@claim("lemma-3.6", confirm=_confirm_lemma_3_6)
def _check_lemma_3_6(run: Run, say: Sentences) -> Finding:
    unserved = count(_cases(run, alike=True), _lemma_6_1)
    last, capacities = (2, (1, 2)) if run.small else (3, (1, 2, 3))
    cases = [
        *(one for n in (1, 2, 3) for one in enumerate_instances(1, n, (1, 2, 3), 4, 2, common=True)),
        *enumerate_instances(2, last, capacities, 3, 2, common=True),
    ]
    searched, repaired = find_flaw(cases, _left_over), count(cases, _is_tight).false
    figures = {"repaired_not_tight": repaired, "unserved": unserved._asdict()}
    if unserved.false:
        return say(NOT_REPRODUCED, figures)
    return say.against(REFUTED if repaired else CORRECTED, searched, figures)
