"""Section III: divisible tasks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.exact import Number, as_text
from schedgym.papers.searches import Details, Sentences, count, found_against
from schedgym.papers.zheng2016 import model
from schedgym.papers.zheng2016.concave import (
    LOG,
    POWER,
    Concave,
    fit_many,
    fit_theorem_1,
    fit_theorem_2,
    run_concave,
    utility_of,
)
from schedgym.papers.zheng2016.instances import (
    CLOSE,
    OPEN,
    ROUGH,
    algorithm_1_rule,
    almost_two,
    as_rows,
    as_schedule,
    claim,
    confirm_ratio,
    confirm_rules,
    draw_instance,
    enumerate_instances,
    find_flaw,
    first_fit_instance,
    is_only,
    read_instance,
    show_instance,
    show_ratio,
    value_by,
)
from schedgym.papers.zheng2016.model import Amounts, Instance, Job, Schedule, State


@claim("theorem-3.1")
def _check_theorem_3_1(run: Run, say: Sentences) -> Finding:
    worst, checked = Fraction(1), 600 if run.small else 20_000
    for n in range(checked):
        instance = draw_instance(run.rng, 1 + n % 2, linear=True)
        halves = tuple(
            job._replace(parallelism=Fraction(job.parallelism, 2), tasks=Fraction(job.tasks, 2))
            for job in instance.jobs
        )
        instance = Instance(halves, instance.capacity)
        own = value_by(algorithm_1_rule, instance)
        worst = max(worst, model.linear_best(instance)[0] / own)
    fitted, bound, short = fit_many(run, fit_theorem_1, 300 if run.small else 20_000, resources=(1, 2, 3))
    figures = {
        "checked": checked,
        "worst_linear": str(worst),
        "fitted": fitted,
        "largest_bound": bound,
        "largest_shortfall": short,
    }
    good = worst <= 2 and bound <= 2 + CLOSE and short <= ROUGH
    return say(HOLDS if good else NOT_REPRODUCED, figures)


@claim("first-fit-is-tight", confirm=confirm_ratio(algorithm_1_rule, almost_two))
def _check_first_fit(run: Run, say: Sentences) -> Finding:
    ratios = {}
    for n in (1, 10, 100, 1000):
        instance = first_fit_instance(1, n)
        best, schedule = model.linear_best(instance)
        ratios[n] = best / value_by(algorithm_1_rule, instance)
    good = all(ratio == Fraction(2 * n + 1, n + 1) for n, ratio in ratios.items())
    return say(
        HOLDS if good else NOT_REPRODUCED,
        {f"n_{n}": str(ratio) for n, ratio in ratios.items()},
        witness=show_instance(instance) | show_ratio(instance, algorithm_1_rule, schedule),
        ratios=", ".join(f"{float(ratio):.4f}" for ratio in ratios.values()),
    )


def _first_fit(state: State) -> Amounts:
    """Serve one slot by FirstFit, for one resource and unit demands: the jobs of the highest values first."""
    instance, caps = state.instance, model.slot_caps(state)
    left: Number = instance.capacity[0]
    x: list[Number] = [0] * len(instance.jobs)
    for j in sorted(range(len(x)), key=lambda j: -instance.jobs[j].values[0]):
        x[j] = min(caps[j], left)
        left -= x[j]
    return x


@claim("reduces-to-first-fit")
def _check_reduces(run: Run, say: Sentences) -> Finding:
    cases = enumerate_instances(2, 2, (1, 2, 3), 2 if run.small else 3, 3, parallelism=2, unit=True)
    counted = count(
        # with equal values Algorithm 1 may serve either
        (case for case in cases if case.jobs[0].values != case.jobs[1].values),
        lambda case: model.play(case, algorithm_1_rule) == model.play(case, _first_fit),
    )
    return say.counted(counted, "differ")


def _below_m_greedy(instance: Instance) -> Details:
    """Return the values of Algorithm 1, if it has no choice, and of m-greedy with whole tasks, if larger."""
    own, other = (value_by(rule, instance) for rule in (algorithm_1_rule, model.m_greedy))
    if own >= other or not is_only(instance):
        return None
    return {"algorithm_1": as_text(own), "m_greedy": as_text(other)}


@claim("fractional-bound", confirm=confirm_rules(_below_m_greedy, algorithm_1_rule, model.m_greedy))
def _check_fractional(run: Run, say: Sentences) -> Finding:
    cases = enumerate_instances(
        2, 2, (1, 2) if run.small else (1, 2, 3, 4), 1 if run.small else 2, 3, parallelism=2
    )
    if run.choice(OPEN["FRACTIONAL"]) != "optimum":
        searched = find_flaw(cases, _below_m_greedy)
        return found_against(REFUTED, searched, "Algorithm 1 reaches less than m-greedy with whole tasks")
    ratios = [model.whole_best(instance)[0] / model.linear_best(instance)[0] for instance in cases]
    figures = {"checked": len(ratios), "largest": str(max(ratios)), "smallest": str(min(ratios))}
    no_less, larger = sum(r <= 1 for r in ratios), sum(r < 1 for r in ratios)
    return say(judge(max(ratios) <= 1), figures, no_less=no_less, larger=larger)


EXAMPLE_1 = Instance(
    (
        Job(1, 2, 1, 1, (2, 8), (2,)),
        Job(1, 2, 2, 2, (5, 5), (1,)),
        Job(2, 2, 2, 2, (8, 2), (2,)),
    ),
    (10, 10),
)
AS_PRINTED: Schedule = [(0, 0, 0), (1, 0, 3)]  # 2 units of job 3, and 1 of jobs 1 and 3, in slot 2
MEANT: Schedule = [(0, 2, 0), (1, 0, 1)]


def _example_1(instance: Instance, printed: Schedule, meant: Schedule) -> Details:
    """Return what is shown of the example, if what is printed is infeasible, and what is meant better."""
    own = model.play(instance, algorithm_1_rule)
    got, better = model.value(instance, own), model.value(instance, meant)
    feasible = [model.feasible(instance, schedule, False) for schedule in (printed, meant)]
    if feasible != [False, True] or better <= got:
        return None
    schedules = {"printed": printed, "schedule": meant, "algorithm_1": own}
    shown = {name: as_rows(one) for name, one in schedules.items()}
    return shown | {"got": as_text(got), "better": as_text(better)}


def _confirm_example_1(shown: Shown) -> bool:
    printed, meant = as_schedule(shown["printed"]), as_schedule(shown["schedule"])
    return confirm_rules(lambda instance: _example_1(instance, printed, meant), algorithm_1_rule)(shown)


@claim("example-1", confirm=_confirm_example_1)
def _check_example_1(run: Run, say: Sentences) -> Finding:
    own = model.play(EXAMPLE_1, algorithm_1_rule)
    got, (best, _) = model.value(EXAMPLE_1, own), model.linear_best(EXAMPLE_1)
    figures = {"got": str(got), "optimum": str(best), "slots": as_rows(own)}
    slots = own == [[1, Fraction(2, 5), 0], [0, 0, Fraction(5, 4)]]
    good = got == Fraction(49, 10) and best == model.value(EXAMPLE_1, MEANT) == 6 and slots
    details = _example_1(EXAMPLE_1, AS_PRINTED, MEANT)
    example = None if details is None else {**show_instance(EXAMPLE_1), **details}
    return say(CORRECTED if good else NOT_REPRODUCED, figures, counterexample=example)


@claim("example-2")
def _check_example_2(run: Run, say: Sentences) -> Finding:
    ratios = {}
    same = True
    for name, kind in (("sqrt", POWER), ("log", LOG)):
        one, two = np.ones(2), np.full(2, 2)
        cap, tasks = np.full(2, 0.75), np.array([0.5, 2.0])
        jobs = Concave(one.astype(int), two, cap, tasks, one[:, None], np.full(2, kind), one, one / 2)
        own = run_concave(jobs).tasks
        same = same and np.allclose(own, [[0.5, 0.5], [0, 0.75]], atol=1e-7)
        # job 1 can have no more than Y = .5, job 2 no more than X in each of its two slots
        most = utility_of(jobs, np.array([0.5, 1.5])).sum()
        ratios[name] = float(most / utility_of(jobs, np.sum(own, axis=0)).sum())
    return say(judge(same and min(ratios.values()) > 1), ratios)


def _four_thirds(n: int) -> Instance:
    """Return two jobs with two tasks each; the tasks of the second cannot run at the same time."""
    return Instance((Job(1, 2, 2, 2, (1,), (n + 1,)), Job(1, 2, 1, 2, (1,), (n,))), (2,))


@claim("theorem-3.2")
def _check_theorem_3_2(run: Run, say: Sentences) -> Finding:
    slots, values = (2, 2) if run.small else (3, 3)
    sizes = [(2, slots, (1, 2, 3), 2, values), *([] if run.small else [(3, 2, (1, 2), 2, 2)])]
    cases = (instance for size in sizes for instance in enumerate_instances(*size, common=True))
    counted = count(
        cases,
        lambda case: bool(value_by(algorithm_1_rule, case) == model.linear_best(case)[0]),
    )
    fitted, bound, short = fit_many(
        run, fit_theorem_2, 200 if run.small else 10_000, resources=(1,), common=True, bounded=False
    )
    figures = {
        "unbounded_checked": counted.checked,
        "unbounded_flawed": counted.false,
        "fitted": fitted,
        "largest_bound": bound,
        "largest_shortfall": short,
    }
    good = not counted.false and bound <= 1 + CLOSE and short <= ROUGH
    return say(HOLDS if good else NOT_REPRODUCED, figures, above=bound - 1)


def _on_one_resource(instance: Instance) -> bool:
    """Return whether all jobs have one deadline and share a single type of resource."""
    return len({job.deadline for job in instance.jobs}) == len(instance.capacity) == 1


@claim(
    "theorem-3.2-bounded",
    confirm=confirm_ratio(algorithm_1_rule, lambda instance: Fraction(1), _on_one_resource),
)
def _check_bounded(run: Run, say: Sentences) -> Finding:
    slots, values = (2, 2) if run.small else (3, 3)

    def flaw(instance: Instance) -> Details:
        best, schedule = model.linear_best(instance)
        if value_by(algorithm_1_rule, instance) == best or not is_only(instance):
            return None
        return show_ratio(instance, algorithm_1_rule, schedule)

    cases = itertools.chain(
        *(
            enumerate_instances(2, last, (1, 2), 2, values, parallelism=2, common=True)
            for last in range(2, slots + 1)
        ),
        enumerate_instances(3, 2, (2,), 2, 2, parallelism=2, common=True) if not run.small else (),
    )
    ratios = {}
    for n in (1, 10, 1000):
        family = _four_thirds(n)
        ratios[n] = model.linear_best(family)[0] / value_by(algorithm_1_rule, family)
    figures = {"family": {n: str(ratio) for n, ratio in ratios.items()}}
    return say.against(REFUTED, find_flaw(cases, flaw), figures, largest=float(ratios[1000]))


def _confirm_multipliers(shown: Shown) -> bool:
    """Confirm two sets of KKT multipliers of problem (2) for a job that gets all it can."""
    (job,) = read_instance(shown).jobs
    (c,) = read_instance(shown).capacity
    x = min(job.parallelism, job.tasks, Fraction(c, job.demand[0]))
    sets = [[Fraction(b) for b in multipliers] for multipliers in shown["multipliers"]]
    slack = (job.tasks - x, 1 - x * Fraction(job.demand[0], c), job.parallelism - x)
    return (
        x > 0  # mu = 0
        and len({tuple(found) for found in sets}) == len(sets) == 2
        and all(
            min(found) >= 0
            and job.values[0] == found[0] + found[1] * Fraction(job.demand[0], c) + found[2]
            and all(a == 0 or rest == 0 for a, rest in zip(found, slack, strict=True))
            for found in sets
        )
    )


@claim("unique-multipliers", confirm=_confirm_multipliers)
def _check_multipliers(run: Run, say: Sentences) -> Finding:
    def flaw(instance: Instance) -> Details:
        (job,), (c,) = instance.jobs, instance.capacity
        r = Fraction(job.demand[0], c)
        x = min(Fraction(job.parallelism), job.tasks, 1 / r)
        tight = [x == job.tasks, x * r == 1, x == job.parallelism]
        if sum(tight) < 2:
            return None
        prices = (job.values[0], Fraction(job.values[0]) / r, job.values[0])
        found = [[as_text(prices[k]) if k == i else 0 for k in range(3)] for i in range(3) if tight[i]]
        return {"multipliers": found[:2]}

    cases = enumerate_instances(1, 1, (1, 2, 3), 3, 2, parallelism=3)
    return say.against(CORRECTED, find_flaw(cases, flaw))


def _confirm_lagrangian(shown: Shown) -> bool:
    """Confirm by the derivative with respect to x_1, for b = 1 and other multipliers 0; L is linear."""
    instance = read_instance(shown)
    r = [model.shares(instance, j)[0] for j in range(len(instance.jobs))]

    def lagrangian(x: Sequence[int], times: int) -> Fraction:
        gained = sum((job.values[0] * a for job, a in zip(instance.jobs, x, strict=True)), Fraction(0))
        return gained + times * (1 - sum((s * a for s, a in zip(r, x, strict=True)), Fraction(0)))

    zero = [0] * len(r)
    one = [1, *zero[1:]]
    slopes = [lagrangian(one, times) - lagrangian(zero, times) for times in (len(r), 1)]
    return [as_text(slope) for slope in slopes] == [shown["printed"], shown["equation_3"]] and slopes[
        0
    ] != slopes[1]


@claim("lagrangian", confirm=_confirm_lagrangian)
def _check_lagrangian(run: Run, say: Sentences) -> Finding:
    def flaw(instance: Instance) -> Details:
        r, v = model.shares(instance, 0)[0], instance.jobs[0].values[0]
        if len(instance.jobs) == 1:
            return None
        return {"printed": as_text(v - len(instance.jobs) * r), "equation_3": as_text(v - r)}

    cases = [*enumerate_instances(1, 1, (1, 2), 1, 2), *enumerate_instances(2, 1, (1, 2), 1, 2)]
    return say.against(CORRECTED, find_flaw(cases, flaw))
