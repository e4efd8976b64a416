"""Sections IV-C and V: all jobs at once, and the latency between machines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.searches import Searched, Smallest, found_against
from schedgym.papers.xu2021.instances import (
    as_rows,
    as_schedule,
    claim,
    find_flaw,
    read_instance,
    rule,
    show_instance,
    size_of,
    tiny_instances,
)
from schedgym.papers.xu2021.model.optima import (
    PooledJob,
    Schedule,
    feasible,
    flowtime,
    flowtime_best,
    fractional,
    fractional_best,
    multisets,
    transient_least,
)

# section IV-C: all jobs at once ----------------------------------------------------------------------


def _confirm_z(instance: Shown) -> bool:
    rate, z = instance["rate"], instance["z"]
    return sum([rate * z] * instance["slots"]) < instance["processing"] <= sum([rate] * instance["slots"])


@claim("transient-z", confirm=_confirm_z)
def _check_z(run: Run) -> Finding:
    text = "with z = 0 no job is served (Eq. 3) and P3 is 0; z = 1 is meant, as in the rest of section IV"
    return Finding(CORRECTED, text, counterexample={"processing": 1, "rate": 1, "z": 0, "slots": 1})


def _confirm_horizon(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    work = sum(p * d for _, p, d in jobs)
    return instance["slots"] * cores >= work > sum(p for _, p, _ in jobs) * cores


@claim("transient-horizon", confirm=_confirm_horizon)
def _check_horizon(run: Run) -> Finding:
    narrow = 0

    def flaw(jobs: Sequence[PooledJob], cores: int) -> dict[str, Any] | None:
        nonlocal narrow
        slots = max(len(rule(name, jobs, cores)) for name in ("svf", "srf", "srpt", "fifo"))
        if slots <= sum(p for _, p, _ in jobs):
            return None
        narrow += max(d for _, _, d in jobs) <= cores
        return {"slots": slots}

    searched = find_flaw(tiny_instances(run), flaw)
    text = (
        f"in all of these a job demands more cores than there are; without such jobs it is false in {narrow}"
    )
    figures = {"where_demands_fit": narrow}
    return found_against(CORRECTED if not narrow else REFUTED, searched, text, figures=figures)


@claim("equation-37")
def _check_equation_37(run: Run) -> Finding:
    checked = rising = 0
    for k in (1, 2):
        for jobs, cores in tiny_instances(run):
            schedule = fractional_best(jobs, cores, k)[1]
            sums = [
                sum((Fraction(u, p * d) for (_, p, d), u in zip(jobs, given, strict=True)), Fraction(0))
                for given in schedule
            ]
            checked += 1
            rising += any(later > sooner for sooner, later in itertools.pairwise(sums))
    figures = {"checked": checked, "rising": rising}
    text = f"in all {checked:,} optima: whole slots can be exchanged, as the constraints are the same in each"
    return Finding(judge(not rising), text, figures=figures)


def _equation_39(jobs: Sequence[PooledJob], left: Sequence[int], cores: int, literal: bool) -> list[Fraction]:
    """Return rates by Eq. 39 in order of volume, as printed (max) or with min; ``left`` is in core-slots."""
    pick = max if literal else min
    rates = [Fraction(0)] * len(jobs)
    free = Fraction(cores)
    for j in sorted(range(len(jobs)), key=lambda j: (jobs[j][1] * jobs[j][2], j)):
        d, slots = jobs[j][2], Fraction(left[j], jobs[j][2])
        if free >= d:
            rates[j] = pick(Fraction(1), slots)
        elif free > 0:
            rates[j] = pick(free / d, slots)
        free -= d * rates[j]
    return rates


def _local_best(jobs: Sequence[PooledJob], left: Sequence[int], cores: int) -> Fraction:
    """Return the optimum of problem (38) over all whole numbers of cores."""
    caps = [min(job[2], work) for job, work in zip(jobs, left, strict=True)]
    best = Fraction(0)
    for given in itertools.product(*(range(cap + 1) for cap in caps)):
        if sum(given) <= cores:
            own = sum((Fraction(u, p * d) for (_, p, d), u in zip(jobs, given, strict=True)), Fraction(0))
            best = max(best, own)
    return best


def _confirm_equation_39(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    rates = [Fraction(rate) for rate in instance["printed"]]
    limits = [
        min(Fraction(1), Fraction(work, job[2])) for job, work in zip(jobs, instance["left"], strict=True)
    ]
    broken = any(y > limit for y, limit in zip(rates, limits, strict=True))
    used = sum((job[2] * y for job, y in zip(jobs, rates, strict=True)), Fraction(0))
    own = _equation_39(jobs, instance["left"], cores, True)
    return rates == own and (broken or used > cores)


@claim("lemma-2", confirm=_confirm_equation_39)
def _check_lemma_2(run: Run) -> Finding:
    meant = 0

    def states() -> Iterator[tuple[Sequence[PooledJob], int, tuple[int, ...]]]:
        for count in (1, 2) if run.small else (1, 2, 3):
            for jobs in multisets(count, 3 if count < 3 else 2, 3):
                for left in itertools.product(*(range(1, p * d + 1) for _, p, d in jobs)):
                    for cores in range(1, 5):
                        yield jobs, cores, left

    checked = printed = 0
    best = Smallest()
    for jobs, cores, left in states():
        optimum = _local_best(jobs, left, cores)
        own = _equation_39(jobs, left, cores, False)
        reached = sum((y / job[1] for y, job in zip(own, jobs, strict=True)), Fraction(0))
        whole = all((y * job[2]).denominator == 1 for y, job in zip(own, jobs, strict=True))
        meant += reached != optimum or not whole
        checked += 1
        rates = _equation_39(jobs, left, cores, True)
        limits = [min(Fraction(1), Fraction(work, job[2])) for job, work in zip(jobs, left, strict=True)]
        if any(y > limit for y, limit in zip(rates, limits, strict=True)):
            printed += 1
            details = {"left": list(left), "printed": [str(y) for y in rates]}
            best.see((*size_of(jobs, cores), *left), show_instance(jobs, cores) | details)
    figures = {"checked": checked, "printed_infeasible": printed, "corrected_not_optimal": meant}
    if best.found is None:
        return Finding(HOLDS, f"in all {checked:,} states", figures=figures)
    text = (
        f"the printed solution is infeasible in {printed:,} of {checked:,} states (y > 1, or more than is "
        f"left); with min in place of max it is optimal and in whole numbers in all but {meant}"
    )
    return Finding(CORRECTED if not meant else REFUTED, text, counterexample=best.found, figures=figures)


@claim("transient-is-svf")
def _check_transient(run: Run) -> Finding:
    checked = differ = 0
    for jobs, cores in tiny_instances(run):
        left = [p * d for _, p, d in jobs]
        schedule: Schedule = []
        while any(left):
            alive = [j for j, work in enumerate(left) if work]
            rates = _equation_39([jobs[j] for j in alive], [left[j] for j in alive], cores, False)
            given = [0] * len(jobs)
            for j, y in zip(alive, rates, strict=True):
                given[j] = int(y * jobs[j][2])
            left = [work - u for work, u in zip(left, given, strict=True)]
            schedule.append(tuple(given))
        checked += 1
        differ += schedule != rule("svf", jobs, cores)
    text = f"both give the same cores in every slot of {checked:,} instances (with min in place of max)"
    return Finding(judge(not differ), text, figures={"checked": checked, "differ": differ})


def _orders(jobs: Sequence[PooledJob]) -> Iterator[tuple[PooledJob, ...]]:
    """Yield the jobs in all orders that smallest volume first allows."""
    for order in itertools.permutations(jobs):
        volumes = [p * d for _, p, d in order]
        if volumes == sorted(volumes):
            yield order


def _least_svf(jobs: Sequence[PooledJob], cores: int, k: int) -> Fraction:
    """Return the least sum of fractional flowtimes of smallest volume first, over orders of equal volumes."""
    return min(fractional(order, rule("svf", order, cores), k) for order in _orders(jobs))


def _confirm_theorem_6(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    better, k = as_schedule(instance["schedule"]), instance["k"]
    return (
        feasible(jobs, cores, better)
        and str(fractional(jobs, better, k)) == instance["better"]
        and str(_least_svf(jobs, cores, k)) == instance["svf"]
        and Fraction(instance["better"]) < Fraction(instance["svf"])
    )


@claim("theorem-6", confirm=_confirm_theorem_6)
def _check_theorem_6(run: Run) -> Finding:
    searched: dict[int, Searched] = {}
    worst = {1: Fraction(1), 2: Fraction(1)}
    for k in (1, 2):

        def flaw(jobs: Sequence[PooledJob], cores: int, k: int = k) -> dict[str, Any] | None:
            own = _least_svf(jobs, cores, k)
            best, schedule = fractional_best(jobs, cores, k)
            worst[k] = max(worst[k], own / best)
            if own <= best:
                return None
            return {"k": k, "svf": str(own), "better": str(best), "schedule": as_rows(schedule)}

        searched[k] = find_flaw(tiny_instances(run), flaw)
    figures = {"k2_flawed": searched[2].flawed} | {f"k{k}_worst_ratio": str(x) for k, x in worst.items()}
    text = f"for k = 1 and any order of equal volumes, at worst {worst[1]} times the optimum; for k = 2 in"
    text += (
        f" {searched[2].flawed:,} instances, at worst {float(worst[2]):.2f} times. The best decision of "
        "each slot is not the best for all slots"
    )
    return found_against(REFUTED, searched[1], text, figures=figures)


# Corollary 2: wide short jobs before narrow long ones of no less volume: (1 + sqrt 2) / 2 in the limit
FAMILY = [(10, 3, 4, 7), (20, 6, 8, 7), (40, 12, 16, 7)]
LARGE_FAMILY = [*FAMILY, (80, 23, 33, 7), (160, 47, 66, 3)]
# the worst of a hill climb; with volumes 2, 10 and 12, which cannot tie (processing 1, 2, 6), it is 6/5
HARD: tuple[tuple[PooledJob, ...], int] = (((0, 2, 5), (0, 1, 2), (0, 5, 2)), 6)


def _family(cores: int, narrow: int, wide: int, slots: int) -> list[PooledJob]:
    return [(0, slots, cores)] * wide + [(0, slots * cores, 1)] * narrow


def _confirm_ratio_of_svf(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    better = as_schedule(instance["schedule"])
    own, best = flowtime(jobs, rule("svf", jobs, cores)), flowtime(jobs, better)
    return (
        all(job[0] == 0 for job in jobs)
        and feasible(jobs, cores, better)
        and (own, best) == (instance["svf"], instance["optimum"])
        and str(Fraction(own, best)) == instance["ratio"]
        and best >= sum(p for _, p, _ in jobs)
    )


class _Ratios(NamedTuple):
    """Ratios of smallest volume first to the optimum when all jobs arrive at once."""

    checked: int
    worst: Fraction
    instance: dict[str, Any]
    excess: Fraction  # the largest of svf - optimum - sum p / 2


def _ratios(run: Run) -> _Ratios:
    checked, worst, excess = 0, Fraction(0), Fraction(-(10**9))
    best: dict[str, Any] = {}
    sizes = (
        [(2, 4, 3, 4), (3, 4, 3, 4), (4, 3, 2, 3)]
        if run.small
        else [(3, 5, 5, 6), (4, 3, 3, 4), (5, 3, 2, 4)]
    )
    for count, longest, widest, most in sizes:
        for cores in range(1, most + 1):
            for demands in itertools.combinations_with_replacement(range(1, widest + 1), count):
                least = transient_least(demands, cores)
                for lengths in itertools.product(range(1, longest + 1), repeat=count):
                    jobs = [(0, p, d) for p, d in zip(lengths, demands, strict=True)]
                    own = flowtime(jobs, rule("svf", jobs, cores))
                    optimum = least(tuple(p * d for _, p, d in jobs))
                    checked += 1
                    excess = max(excess, own - optimum - Fraction(sum(lengths), 2))
                    if Fraction(own, optimum) > worst:
                        worst = Fraction(own, optimum)
                        best = show_instance(jobs, cores) | {"svf": own, "optimum": optimum}
    return _Ratios(checked, worst, best, excess)


@claim("corollary-2", confirm=_confirm_ratio_of_svf)
def _check_corollary_2(run: Run) -> Finding:
    found = _ratios(run)
    family = {}
    for parts in FAMILY if run.small else LARGE_FAMILY:
        jobs, cores = _family(*parts), parts[0]
        own, other = (flowtime(jobs, rule(name, jobs, cores)) for name in ("svf", "srf"))
        family[parts] = Fraction(own, other)
    jobs, cores = list(HARD[0]), HARD[1]
    own = flowtime(jobs, rule("svf", jobs, cores))
    best, schedule = flowtime_best(jobs, cores)
    ratio = Fraction(own, best)
    witness = show_instance(jobs, cores) | {"svf": own, "optimum": best, "ratio": str(ratio)}
    worst = max(found.worst, ratio, *family.values())
    figures = {
        "checked": found.checked,
        "worst_tiny_ratio": str(found.worst),
        "worst_tiny": found.instance,
        "largest_excess": str(found.excess),
        "family": {str(parts): float(each) for parts, each in family.items()},
        "worst_ratio": str(worst),
    }
    if worst > Fraction(3, 2) or found.excess > 0:
        return Finding(NOT_REPRODUCED, f"a ratio of {worst}", figures=figures)
    text = (
        f"no counterexample was found: the worst ratio is {found.worst} in {found.checked:,} tiny instances, "
        f"{ratio} in a hill climb, and {float(max(family.values())):.3f} for wide short jobs before narrow "
        "long ones (in the limit (1 + sqrt 2) / 2); the statement is not proven, as Theorem 6 is false"
    )
    return Finding(HOLDS, text, witness=witness | {"schedule": as_rows(schedule)}, figures=figures)


@claim("introduction-2-competitive")
def _check_introduction(run: Run) -> Finding:
    found = _ratios(run)
    figures = {"checked": found.checked, "worst_ratio": str(found.worst)}
    text = f"the worst ratio in {found.checked:,} instances is {found.worst}; Corollary 2 states 3/2"
    return Finding(judge(found.worst <= 2), text, figures=figures)


# section V -------------------------------------------------------------------------------------------


def _confirm_latency(instance: Shown) -> bool:
    (one, other), latency = instance["placements"], instance["latency"]
    printed = [sum(latency) * sum(placed) for placed in (one, other)]
    meant = [sum(x * y for x, y in zip(latency, placed, strict=True)) for placed in (one, other)]
    return (
        printed == instance["printed"] and meant == instance["meant"] and len(set(printed)) < len(set(meant))
    )


@claim("equation-45", confirm=_confirm_latency)
def _check_equation_45(run: Run) -> Finding:
    checked = same = 0
    for latency in itertools.product(range(4), repeat=2):
        costs = {sum(latency) * sum(placed) for placed in ((1, 0), (0, 1))}
        checked += 1
        same += len(costs) == 1
    example = {"latency": [0, 1], "placements": [[1, 0], [0, 1]], "printed": [1, 1], "meant": [0, 1]}
    figures = {"checked": checked, "indifferent": same}
    if same < checked:
        return Finding(NOT_REPRODUCED, f"indifferent in {same} of {checked}", figures=figures)
    text = (
        f"the index i of x is missing, so that Psi is the same for all placements ({same} of {checked} "
        "pairs of latencies)"
    )
    return Finding(CORRECTED, text, counterexample=example, figures=figures)
