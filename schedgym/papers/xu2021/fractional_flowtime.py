"""Sections I, II and VI-A: the fractional flowtime, and the bounds that follow from it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.searches import Searched, found_against
from schedgym.papers.xu2021.instances import (
    GAMMA,
    STARTS,
    K,
    as_rows,
    as_schedule,
    claim,
    equation_27,
    find_flaw,
    literal_run,
    read_instance,
    rule,
    show_instance,
    tiny_instances,
)
from schedgym.papers.xu2021.model.optima import (
    PooledJob,
    completions,
    feasible,
    flowtime,
    flowtime_best,
    fractional,
    fractional_best,
    multisets,
)

RATES = {1: ["1/3"] * 3, 2: ["1/3"] * 3 + ["1/2"] * 2, 3: ["1/3"] * 3 + ["1/2"] * 2 + ["1"]}


def _example(p: int, added: int) -> Fraction:
    """Return the fractional flowtime of job p of Table I, with ``added`` as second part of the weight."""
    rates = [Fraction(rate) for rate in RATES[p]]
    return sum((Fraction(t, p) * y for t, y in enumerate(rates, start=1)), Fraction(0)) + added


def _confirm_example(instance: Shown) -> bool:
    p, rates = instance["processing"], [Fraction(rate) for rate in instance["rates"]]
    served = sum(rates, Fraction(0))
    meant = sum((Fraction(t + p, p) * y for t, y in enumerate(rates, start=1)), Fraction(0))
    added = meant - sum((Fraction(t, p) * y for t, y in enumerate(rates, start=1)), Fraction(0))
    return (
        served == p
        and str(meant) == instance["fractional"]
        and added == p != instance["printed_addend"]
        and meant - added + instance["printed_addend"] == Fraction(instance["printed_sum"]) != meant
    )


@claim("example-1", confirm=_confirm_example)
def _check_example(run: Run) -> Finding:
    found = [_example(p, p) for p in RATES]
    printed = [_example(p, added) for p, added in zip(RATES, (1, 2, 2), strict=True)]
    actual = [len(rates) for rates in RATES.values()]
    ratio = sum(found, Fraction(0)) / sum(actual)
    figures = {"fractional": [str(x) for x in found], "actual": actual, "ratio": str(ratio)}
    if found != [3, Fraction(21, 4), Fraction(43, 6)] or actual != [3, 5, 6] or round(float(ratio), 1) != 1.1:
        return Finding(NOT_REPRODUCED, f"fractional {figures['fractional']}", figures=figures)
    text = f"the values are right, the ratio is {float(ratio):.4f}; the last addend of job 3 is 3, not 2"
    example = {
        "processing": 3,
        "rates": RATES[3],
        "fractional": str(found[2]),
        "printed_addend": 2,
        "printed_sum": str(printed[2]),
    }
    return Finding(CORRECTED, text, counterexample=example, figures=figures)


def _confirm_surrogate(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    return fractional_best(jobs, cores)[0] == 2 * flowtime_best(jobs, cores)[0]


@claim("equation-6", confirm=_confirm_surrogate)
def _check_equation_6(run: Run) -> Finding:
    worst, checked = Fraction(0), 0
    example: dict[str, Any] = {}
    for k in (1, 2, 3):
        for jobs, cores in tiny_instances(run, 1):
            ratio = fractional_best(jobs, cores, k)[0] / flowtime_best(jobs, cores, k)[0]
            checked += 1
            if ratio > worst:
                worst, example = ratio, show_instance(jobs, cores)
    figures = {"checked": checked, "largest_ratio": str(worst)}
    if worst > 2:
        return Finding(NOT_REPRODUCED, f"a ratio of {worst}", figures=figures)
    text = f"the largest of {checked:,} ratios (k = 1, 2, 3) is {worst}: every job has p^k <= f^k, and its"
    return Finding(
        HOLDS, text + " other part is a mean of values age^k <= f^k", witness=example, figures=figures
    )


def _nested(count: int) -> list[PooledJob]:
    """Return jobs for one core: some that fall in size, then a stream of jobs that are smaller still.

    Sizes fall from 2 count to count + 1 slots, and each of these jobs arrives when its predecessor has one
    slot left. Then 4 count^2 jobs of count slots arrive one after another without a break. For k = 1 a slot
    of a job costs (t - a) / p + 1. Of two jobs the larger one therefore loses less by waiting, and the least
    fractional flowtime is that of the smallest size first.
    """
    jobs: list[PooledJob] = []
    time = 0
    for size in range(2 * count, count, -1):
        jobs.append((time, size, 1))
        time += size - 1
    return jobs + [(time + count * i, count, 1) for i in range(4 * count**2)]


def _confirm_factor(instance: Shown) -> bool:
    """Confirm by formulas for two schedules: what is left of the first jobs runs after the stream, or before.

    The least flowtime is at most that of the second schedule.
    """
    ratios = []
    for count, surrogate, optimum in zip(
        instance["nested_jobs"], instance["flowtime"], instance["optimum"], strict=True
    ):
        sizes = range(2 * count, count, -1)
        arrivals = [sum(size - 1 for size in sizes[:i]) for i in range(count + 1)]
        stream, begin = 4 * count**2, arrivals.pop()
        ends = [begin + count - i for i in range(count)]  # if the smallest of them goes first at once
        waits = sum(end - arrival for end, arrival in zip(ends, arrivals, strict=True))
        better = waits + stream * 2 * count
        if surrogate != waits + (count + 1) * stream * count or optimum > better:
            return False
        ratios.append(surrogate / better)
    return len(ratios) > 2 and all(2 * later > 3 * sooner for sooner, later in itertools.pairwise(ratios))


@claim("constant-factor", confirm=_confirm_factor)
def _check_factor(run: Run) -> Finding:
    counts = [2, 4, 8] if run.small else [2, 4, 8, 16]
    first = _nested(2)[:5]
    exact = fractional(first, rule("svf", first, 1)) == fractional_best(first, 1)[0]
    # on one core the least flowtime is that of SRPT, and smallest volume first is smallest size first
    rules = ("svf", "srpt")
    found = [[flowtime(jobs, rule(name, jobs, 1)) for name in rules] for jobs in map(_nested, counts)]
    ratios = [surrogate / optimum for surrogate, optimum in found]
    figures = {"ratios": ratios, "smallest_first_is_optimal": exact}
    shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    if not exact or ratios[-1] < 2 * ratios[0]:
        return Finding(NOT_REPRODUCED, f"ratios {shown}", figures=figures)
    text = (
        f"with k = 1, one core, and {', '.join(map(str, counts))} jobs that are nearly done when a stream of "
        f"smaller ones begins, the optimal schedule of P2 has {shown} times the least flowtime; within a "
        "factor of two is only its fractional flowtime (Eq. 6)"
    )
    surrogate, optimum = zip(*found, strict=True)
    example = {"nested_jobs": counts, "flowtime": list(surrogate), "optimum": list(optimum)}
    return Finding(REFUTED, text, counterexample=example, figures=figures)


def _confirm_surrogate_above(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    better = as_schedule(instance["schedule"])
    # P2 charges each core-slot more than sum p^k / work, so no schedule is below sum p^k + ...
    return (
        feasible(jobs, cores, better)
        and flowtime(jobs, better) == instance["flowtime"]
        and str(fractional_best(jobs, cores)[0]) == instance["OPT_P2"]
        and Fraction(instance["OPT_P2"]) > instance["flowtime"]
    )


@claim("surrogate-is-no-bound", confirm=_confirm_surrogate_above)
def _check_surrogate(run: Run) -> Finding:
    def flaw(jobs: Sequence[PooledJob], cores: int) -> dict[str, Any] | None:
        best, schedule = flowtime_best(jobs, cores)
        own = fractional_best(jobs, cores)[0]
        if own <= best:
            return None
        return {"OPT_P2": str(own), "flowtime": best, "schedule": as_rows(schedule)}

    searched = find_flaw(tiny_instances(run, 1), flaw)
    return found_against(REFUTED, searched, "OPT_P2 is above the optimum (k = 1)")


def _bounds(jobs: Sequence[PooledJob], cores: int, k: int) -> dict[str, Fraction]:
    """Return lower bounds on the sum of flowtime^k."""
    own, alone = fractional_best(jobs, cores, k)[0], sum(p**k for _, p, _ in jobs)
    bounds = {"sum p^k": Fraction(alone), "OPT_P2 / 2": own / 2, "OPT_P2 - sum p^k": own - alone}
    if k == 1:
        bounds["OPT_P2 - sum p + sum (p - 1) / 2"] = own - alone + Fraction(sum(p - 1 for _, p, _ in jobs), 2)
    return bounds


@claim("lower-bounds")
def _check_lower_bounds(run: Run) -> Finding:
    checked = 0
    largest: dict[str, Fraction] = {}
    for k in (1, 2):
        for jobs, cores in tiny_instances(run, 1):
            best = flowtime_best(jobs, cores, k)[0]
            checked += 1
            for name, bound in _bounds(jobs, cores, k).items():
                largest[name] = max(largest.get(name, Fraction(0)), bound / best)
    figures = {name: str(ratio) for name, ratio in largest.items()} | {"checked": checked}
    shares = ", ".join(f"{name} {ratio}" for name, ratio in largest.items())
    verdict = judge(max(largest.values()) <= 1)
    text = (
        f"largest ratio of bound and optimum in {checked:,} instances: {shares}; the last two bounds are "
        "not in the paper"
    )
    return Finding(verdict, text, figures=figures)


def _confirm_pooled(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    better = as_schedule(instance["schedule"])
    own = flowtime(jobs, rule(instance["rule"], jobs, cores))
    return (
        feasible(jobs, cores, better)
        and flowtime(jobs, better) == instance["flowtime"]
        and own == instance["pooled"] > instance["flowtime"]
    )


@claim("pooled-srpt-is-no-bound", confirm=_confirm_pooled)
def _check_pooled(run: Run) -> Finding:
    smallest: Searched | None = None
    figures: dict[str, Any] = {}
    for name in ("srpt", "srvf"):

        def flaw(jobs: Sequence[PooledJob], cores: int, name: str = name) -> dict[str, Any] | None:
            own = flowtime(jobs, rule(name, jobs, cores))
            best, schedule = flowtime_best(jobs, cores)
            if own <= best:
                return None
            return {"rule": name, "pooled": own, "flowtime": best, "schedule": as_rows(schedule)}

        searched = find_flaw(tiny_instances(run, 1), flaw)
        figures[f"{name}_above"] = searched.flawed
        smallest = smallest or searched
    assert smallest is not None
    text = f"with slots left as the key; with core-slots left in {figures['srvf_above']:,}"
    return found_against(REFUTED, smallest, text, figures=figures)


@claim("srpt-single-server")
def _check_single(run: Run) -> Finding:
    checked = worse = 0
    for count, longest in ((2, 5), (3, 4)) if run.small else ((2, 7), (3, 5), (4, 4)):
        for jobs in multisets(count, longest, 1, 3):
            checked += 1
            worse += flowtime(jobs, rule("srpt", jobs, 1)) > flowtime_best(jobs, 1)[0]
    figures = {"checked": checked, "worse": worse}
    return Finding(judge(not worse), f"true in all {checked:,} instances", figures=figures)


def _confirm_below(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    schedule = literal_run(jobs, cores, instance["gamma"], 10**5, start=instance["lambda_from"])
    ends = completions(jobs, schedule)
    if ends != instance["completions"]:
        return False
    own = Fraction(0)
    for j, (a, p, d) in enumerate(jobs):  # Eq. 5 written out, from the slots in which the job has cores
        for t in range(1, ends[j] + 1):
            own += (Fraction((t - a) ** K, p) + p) * schedule[t - 1][j] / d
    actual = sum((end - job[0]) ** K for end, job in zip(ends, jobs, strict=True))
    return str(own) == instance["fractional"] and own < actual == instance["actual"]


@claim("fractional-above-actual", confirm=_confirm_below)
def _check_fractional_above(run: Run) -> Finding:
    gammas: dict[str, Callable[[Sequence[PooledJob], int], float]] = {
        "Eq. 27": lambda jobs, cores: float(equation_27(jobs, cores)),
        str(GAMMA): lambda jobs, cores: float(GAMMA),
    }
    found: dict[tuple[str, int], Searched] = {}
    for name, start in itertools.product(gammas, STARTS):

        def flaw(
            jobs: Sequence[PooledJob],
            cores: int,
            gamma: Callable[[Sequence[PooledJob], int], float] = gammas[name],
            start: int = start,
        ) -> dict[str, Any] | None:
            schedule = literal_run(jobs, cores, gamma(jobs, cores), 10**5, start=start)
            own, actual = fractional(jobs, schedule, K), flowtime(jobs, schedule, K)
            if own >= actual:
                return None
            ends = completions(jobs, schedule)
            return {
                "gamma": gamma(jobs, cores),
                "lambda_from": start,
                "completions": ends,
                "fractional": str(own),
                "actual": actual,
            }

        counts = [(1, 4, 2)] if name == str(GAMMA) else [(1, 4, 2), (2, 2, 2)]
        cases = ((jobs, c) for count in counts for c in (1, 2) for jobs in multisets(*count))
        found[name, start] = find_flaw(cases, flaw)
    searched = found["Eq. 27", 0]
    figures = {f"below_at_gamma_{name}_from_{start}": one.flawed for (name, start), one in found.items()}
    below = found[str(GAMMA), 0].found
    more = (
        ""
        if below is None
        else (
            f" (fractional / actual {float(Fraction(below['fractional']) / below['actual']):.2f} with Gamma "
            "4000)"
        )
    )
    text = (
        "with Gamma of Eq. 27 and lambda from 0: a job that is served, waits and is served again has f above "
        f"p + mean age{more}; with lambda from 1e11 in {found['Eq. 27', STARTS[1]].flawed:,} instances"
    )
    return found_against(REFUTED, searched, text, figures=figures)
