"""Sections I, II and VI-A: the fractional flowtime, and the bounds that follow from it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.searches import Details, Searched, Sentences, count
from schedgym.papers.xu2021 import model
from schedgym.papers.xu2021.instances import (
    GAMMA,
    STARTS,
    K,
    as_rows,
    claim,
    confirm_flaw,
    equation_27,
    find_flaw,
    literal_run,
    read_instance,
    rule,
    show_instance,
    tiny_instances,
)
from schedgym.papers.xu2021.model import PooledJob, Schedule

Best = Callable[..., tuple[int, Schedule]]  # of jobs and cores
RATES = {1: ["1/3"] * 3, 2: ["1/3"] * 3 + ["1/2"] * 2, 3: ["1/3"] * 3 + ["1/2"] * 2 + ["1"]}


def _example(p: int, added: int) -> Fraction:
    """Return the fractional flowtime of job p of Table I, with ``added`` as second part of the weight."""
    rates = [Fraction(rate) for rate in RATES[p]]
    return sum((Fraction(t, p) * y for t, y in enumerate(rates, start=1)), Fraction(0)) + added


def _confirm_example(instance: Shown) -> bool:
    p, rates = instance["processing"], [Fraction(rate) for rate in instance["rates"]]
    meant = model.fractional_flowtime(0, p, rates)
    return (
        sum(rates, Fraction(0)) == p
        and str(meant) == instance["fractional"]
        and meant - p + instance["printed_addend"] == Fraction(instance["printed_sum"]) != meant
    )


@claim("example-1", confirm=_confirm_example)
def _check_example(run: Run, say: Sentences) -> Finding:
    found = [_example(p, p) for p in RATES]
    actual = [len(rates) for rates in RATES.values()]
    ratio = sum(found, Fraction(0)) / sum(actual)
    figures = {"fractional": [str(x) for x in found], "actual": actual, "ratio": str(ratio)}
    right = found == [3, Fraction(21, 4), Fraction(43, 6)] and actual == [3, 5, 6]
    verdict = CORRECTED if right and round(float(ratio), 1) == 1.1 else NOT_REPRODUCED
    example = {
        "processing": 3,
        "rates": RATES[3],
        "fractional": str(found[2]),
        "printed_addend": 2,
        "printed_sum": str(_example(3, 2)),
    }
    return say(verdict, figures, counterexample=example, share=float(ratio))


def _confirm_surrogate(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    return model.fractional_best(jobs, cores)[0] == 2 * model.flowtime_best(jobs, cores)[0]


@claim("equation-6", confirm=_confirm_surrogate)
def _check_equation_6(run: Run, say: Sentences) -> Finding:
    worst, checked = Fraction(0), 0
    example: dict[str, Any] = {}
    for k in (1, 2, 3):
        for jobs, cores in tiny_instances(run, 1):
            ratio = model.fractional_best(jobs, cores, k)[0] / model.flowtime_best(jobs, cores, k)[0]
            checked += 1
            if ratio > worst:
                worst, example = ratio, show_instance(jobs, cores)
    verdict = HOLDS if worst <= 2 else NOT_REPRODUCED
    return say(verdict, {"checked": checked, "largest_ratio": str(worst)}, witness=example)


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
    for jobs, surrogate, optimum in zip(
        instance["nested_jobs"], instance["flowtime"], instance["optimum"], strict=True
    ):
        sizes = range(2 * jobs, jobs, -1)
        arrivals = [sum(size - 1 for size in sizes[:i]) for i in range(jobs + 1)]
        stream, begin = 4 * jobs**2, arrivals.pop()
        ends = [begin + jobs - i for i in range(jobs)]  # if the smallest of them goes first at once
        waits = sum(end - arrival for end, arrival in zip(ends, arrivals, strict=True))
        better = waits + stream * 2 * jobs
        if surrogate != waits + (jobs + 1) * stream * jobs or optimum > better:
            return False
        ratios.append(surrogate / better)
    return len(ratios) > 2 and all(2 * later > 3 * sooner for sooner, later in itertools.pairwise(ratios))


@claim("constant-factor", confirm=_confirm_factor)
def _check_factor(run: Run, say: Sentences) -> Finding:
    counts = [2, 4, 8] if run.small else [2, 4, 8, 16]
    first = _nested(2)[:5]
    exact = model.fractional(first, rule("svf", first, 1)) == model.fractional_best(first, 1)[0]
    # on one core the least flowtime is that of SRPT, and smallest volume first is smallest size first
    found = {
        name: [model.flowtime(jobs, rule(name, jobs, 1)) for jobs in map(_nested, counts)]
        for name in ("svf", "srpt")
    }
    ratios = [surrogate / optimum for surrogate, optimum in zip(*found.values(), strict=True)]
    figures = {"ratios": ratios, "smallest_first_is_optimal": exact}
    shown, told = ", ".join(f"{ratio:.2f}" for ratio in ratios), ", ".join(map(str, counts))
    verdict = REFUTED if exact and ratios[-1] >= 2 * ratios[0] else NOT_REPRODUCED
    example = {"nested_jobs": counts, "flowtime": found["svf"], "optimum": found["srpt"]}
    return say(verdict, figures, counterexample=example, shown=shown, counts=told)


def _surrogate_above(jobs: Sequence[PooledJob], cores: int, best: Best = model.flowtime_best) -> Details:
    """Return OPT_P2, if it is above the flowtime of a schedule."""
    flowtime, schedule = best(jobs, cores)
    own = model.fractional_best(jobs, cores)[0]
    if own <= flowtime:
        return None
    return {"OPT_P2": str(own), "flowtime": flowtime, "schedule": as_rows(schedule)}


@claim("surrogate-is-no-bound", confirm=confirm_flaw(_surrogate_above, model.flowtime))
def _check_surrogate(run: Run, say: Sentences) -> Finding:
    return say.against(REFUTED, find_flaw(tiny_instances(run, 1), _surrogate_above))


def _bounds(jobs: Sequence[PooledJob], cores: int, k: int) -> dict[str, Fraction]:
    """Return lower bounds on the sum of flowtime^k."""
    own, alone = model.fractional_best(jobs, cores, k)[0], sum(p**k for _, p, _ in jobs)
    bounds = {"sum p^k": Fraction(alone), "OPT_P2 / 2": own / 2, "OPT_P2 - sum p^k": own - alone}
    if k == 1:
        bounds["OPT_P2 - sum p + sum (p - 1) / 2"] = own - alone + Fraction(sum(p - 1 for _, p, _ in jobs), 2)
    return bounds


@claim("lower-bounds")
def _check_lower_bounds(run: Run, say: Sentences) -> Finding:
    checked = 0
    largest: dict[str, Fraction] = {}
    for k in (1, 2):
        for jobs, cores in tiny_instances(run, 1):
            best = model.flowtime_best(jobs, cores, k)[0]
            checked += 1
            for name, bound in _bounds(jobs, cores, k).items():
                largest[name] = max(largest.get(name, Fraction(0)), bound / best)
    figures = {name: str(ratio) for name, ratio in largest.items()} | {"checked": checked}
    shares = ", ".join(f"{name} {ratio}" for name, ratio in largest.items())
    return say(judge(max(largest.values()) <= 1), figures, shares=shares)


def _pooled_above(
    jobs: Sequence[PooledJob], cores: int, name: str, best: Best = model.flowtime_best
) -> Details:
    """Return the flowtime of a rule on pooled cores, if it is above that of a schedule."""
    own = model.flowtime(jobs, rule(name, jobs, cores))
    least, schedule = best(jobs, cores)
    if own <= least:
        return None
    return {"rule": name, "pooled": own, "flowtime": least, "schedule": as_rows(schedule)}


@claim("pooled-srpt-is-no-bound", confirm=confirm_flaw(_pooled_above, model.flowtime, name="rule"))
def _check_pooled(run: Run, say: Sentences) -> Finding:
    found = {
        name: find_flaw(tiny_instances(run, 1), functools.partial(_pooled_above, name=name))
        for name in ("srpt", "srvf")
    }
    figures = {f"{name}_above": searched.flawed for name, searched in found.items()}
    return say.against(REFUTED, found["srpt"], figures)


@claim("srpt-single-server")
def _check_single(run: Run, say: Sentences) -> Finding:
    sizes = ((2, 5), (3, 4)) if run.small else ((2, 7), (3, 5), (4, 4))
    cases = (jobs for count, longest in sizes for jobs in model.multisets(count, longest, 1, 3))
    counted = count(
        cases, lambda jobs: model.flowtime(jobs, rule("srpt", jobs, 1)) <= model.flowtime_best(jobs, 1)[0]
    )
    return say.counted(counted, "worse")


def _by_job(jobs: Sequence[PooledJob], schedule: Schedule, k: int) -> Fraction:
    """Return the sum of the fractional flowtimes, from the rates of each job."""
    rates = ([Fraction(given[j], job[2]) for given in schedule[job[0] :]] for j, job in enumerate(jobs))
    return sum(
        (model.fractional_flowtime(a, p, y, k) for (a, p, _), y in zip(jobs, rates, strict=True)), Fraction(0)
    )


def _below(
    jobs: Sequence[PooledJob],
    cores: int,
    gamma: float | None,
    start: int,
    measure: Callable[[Sequence[PooledJob], Schedule, int], Fraction] = model.fractional,
) -> Details:
    """Return the fractional flowtime of OCORP, if it is below the actual one; without gamma by Eq. 27."""
    if gamma is None:
        gamma = float(equation_27(jobs, cores))
    schedule = literal_run(jobs, cores, gamma, 10**5, start=start)
    own, actual = measure(jobs, schedule, K), model.flowtime(jobs, schedule, K)
    if own >= actual:
        return None
    ends = {"gamma": gamma, "lambda_from": start, "completions": model.completions(jobs, schedule)}
    return ends | {"fractional": str(own), "actual": actual}


@claim(
    "fractional-above-actual",
    confirm=confirm_flaw(functools.partial(_below, measure=_by_job), gamma="gamma", start="lambda_from"),
)
def _check_fractional_above(run: Run, say: Sentences) -> Finding:
    found: dict[tuple[str, int], Searched] = {}
    for gamma, start in itertools.product((None, float(GAMMA)), STARTS):
        sizes = [(1, 4, 2), (2, 2, 2)] if gamma is None else [(1, 4, 2)]
        cases = ((jobs, c) for size in sizes for c in (1, 2) for jobs in model.multisets(*size))
        name = "Eq. 27" if gamma is None else str(GAMMA)
        found[name, start] = find_flaw(cases, functools.partial(_below, gamma=gamma, start=start))
    figures = {f"below_at_gamma_{name}_from_{start}": one.flawed for (name, start), one in found.items()}
    below, more = found[str(GAMMA), 0].found, ""
    if below is not None:
        ratio = float(Fraction(below["fractional"]) / below["actual"])
        more = f" (fractional / actual {ratio:.2f} with Gamma 4000)"
    high = found["Eq. 27", STARTS[1]].flawed
    return say.against(REFUTED, found["Eq. 27", 0], figures, more=more, high=high)
