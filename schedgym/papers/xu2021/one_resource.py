"""Sections IV-A and IV-B: one resource, what follows from Gamma and mu, and switching."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.searches import Searched, Smallest, found_against
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
    Schedule,
    completions,
    feasible,
    flowtime_best,
    fractional,
    fractional_best,
)
from schedgym.papers.xu2021.readings import START

# section IV-A: one resource --------------------------------------------------------------------------


def _equation_22(demands: Sequence[int], cores: int, literal: bool) -> list[Fraction]:
    """Return Eq. 22 as printed, or with case 2 summing to j - 1."""
    rates = []
    before = 0
    for d in demands:
        zero = before + d if literal else before
        if before + d <= cores:
            rates.append(Fraction(1))
        elif zero >= cores:
            rates.append(Fraction(0))
        else:
            rates.append(Fraction(cores - before, d))
        before += d
    return rates


def _worth_of(rates: Sequence[Fraction], gains: Sequence[int]) -> Fraction:
    return sum((gain * y for gain, y in zip(gains, rates, strict=True)), Fraction(0))


def _slot_optimum(demands: Sequence[int], gains: Sequence[int], cores: int) -> Fraction:
    """Return the maximum of sum gain y over all whole numbers of cores."""
    tries = itertools.product(*(range(d + 1) for d in demands))
    return max(
        _worth_of([Fraction(u, d) for u, d in zip(given, demands, strict=True)], gains)
        for given in tries
        if sum(given) <= cores
    )


def _confirm_lemma_1(instance: Shown) -> bool:
    demands, gains, cores = instance["demands"], instance["gains"], instance["cores"]
    own = _worth_of(_equation_22(demands, cores, True), gains)
    return (
        str(own) == instance["printed"]
        and str(_slot_optimum(demands, gains, cores)) == instance["optimum"]
        and own < Fraction(instance["optimum"])
    )


@claim("lemma-1", confirm=_confirm_lemma_1)
def _check_lemma_1(run: Run) -> Finding:
    checked = printed = meant = 0
    best = Smallest()
    most = 3 if run.small else 4
    for count in (1, 2, 3):
        kinds = list(itertools.product(range(1, most + 1), range(1, 5)))
        for items in itertools.combinations_with_replacement(kinds, count):
            # omega = -gain / d, ascending
            ordered = sorted(items, key=lambda item: Fraction(-item[1], item[0]))
            demands, gains = zip(*ordered, strict=True)
            for cores in range(1, 2 * most):
                optimum = _slot_optimum(demands, gains, cores)
                own = _worth_of(_equation_22(demands, cores, True), gains)
                checked += 1
                meant += _worth_of(_equation_22(demands, cores, False), gains) != optimum
                if own < optimum:
                    printed += 1
                    details = {"demands": list(demands), "gains": list(gains), "cores": cores}
                    size = (count, cores, sum(demands), sum(gains), *demands, *gains)
                    best.see(size, details | {"printed": str(own), "optimum": str(optimum)})
    figures = {"checked": checked, "printed_below": printed, "corrected_below": meant}
    if best.found is None:
        return Finding(HOLDS, f"in all {checked:,} slots", figures=figures)
    text = (
        f"as printed it is below the optimum in {printed:,} of {checked:,} slots, as case 3 never occurs; if "
        f"case 2 sums to j - 1, it is in {meant}"
    )
    return Finding(CORRECTED if not meant else REFUTED, text, counterexample=best.found, figures=figures)


def _line_7(job: PooledJob, slots: int) -> Schedule:
    """Schedule a lone job by literal OCORP from lambda = 0, with Gamma - a in line 7."""
    gamma = equation_27([job], 1)
    return literal_run([job], 1, gamma, slots, k=1, step=lambda t: t, number=Fraction)


def _served_as_printed(a: int, p: int, slots: int) -> bool:
    """Return whether a lone job of one core ever gets it, with line 7 as printed (k = 1, lambda from 0)."""
    price = Fraction(0)
    for t in range(a + 1, slots + 1):
        if Fraction(t - a, p) + 1 < price:
            return True
        price = max(Fraction(0), price + t * Fraction(p, 1 - a))
    return False


def _confirm_line_7(instance: Shown) -> bool:
    job = (instance["arrival"], instance["processing"], 1)
    # the printed target is negative, or infinite: a price of 0 never grows, and no weight is below 0
    printed = instance["arrival"] == 1 or Fraction(job[1], 1 - job[0]) < 0
    schedule = _line_7(job, 10**4)
    return printed and job[0] >= 1 and completions([job], schedule) == [instance["completion"]]


@claim("algorithm-1-line-7", confirm=_confirm_line_7)
def _check_line_7(run: Run) -> Finding:
    slots = 200 if run.small else 5_000
    served = served_right = checked = 0
    example: dict[str, Any] | None = None
    for a, p in itertools.product(range(2, 5), range(1, 5)):
        checked += 1
        served += _served_as_printed(a, p, slots)
        schedule = _line_7((a, p, 1), slots)
        right = sum(u[0] for u in schedule) == p
        served_right += right
        if example is None and right:
            example = {"arrival": a, "processing": p, "completion": completions([(a, p, 1)], schedule)[0]}
    figures = {"checked": checked, "served_as_printed": served, "finished_with_gamma_minus_a": served_right}
    if served or example is None:
        return Finding(NOT_REPRODUCED, f"{served} of {checked} lone jobs are served", figures=figures)
    text = (
        f"none of {checked} single jobs that arrive in slots 2 to 4 is served in {slots:,} slots (k = 1, mu "
        f"= t, lambda from 0), and a = 1 divides by 0; with Gamma - a, and Gamma of Eq. 27, {served_right} "
        "of them finish"
    )
    return Finding(CORRECTED, text, counterexample=example, figures=figures)


def _confirm_benchmark(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    schedule = as_schedule(instance["schedule"])
    # weights are positive, so that every core costs; with no cores at all f_t is 0
    return (
        feasible(jobs, cores, schedule)
        and str(fractional(jobs, schedule)) == instance["regret"] == instance["own_cost"]
        and fractional(jobs, [(0,) * len(jobs)] * len(schedule)) == 0 == instance["regret_of_idling"]
    )


@claim("dynamic-regret", confirm=_confirm_benchmark)
def _check_benchmark(run: Run) -> Finding:
    checked = 0
    example: dict[str, Any] | None = None
    for jobs, cores in tiny_instances(run):
        own, schedule = fractional_best(jobs, cores)
        benchmark = Fraction(0)
        for t in range(1, len(schedule) + 1):
            # f_t is linear with these coefficients, X(t) contains 0
            coefficients = [Fraction(t - a, p) + 1 for a, p, _ in jobs]
            benchmark += sum((min(Fraction(0), c) for c in coefficients), Fraction(0))
        checked += benchmark == 0
        if example is None:
            details = {"schedule": as_rows(schedule), "own_cost": str(own), "regret": str(own - benchmark)}
            example = show_instance(jobs, cores) | details | {"regret_of_idling": 0}
    text = (
        f"y* = 0 in all {checked:,} instances, as all weights are positive: the regret is the algorithm's own"
    )
    text += " cost, and an algorithm that serves no job has a regret of 0"
    return Finding(REFUTED, text, counterexample=example, figures={"checked": checked})


def _confirm_fit(instance: Shown) -> bool:
    a, p, gamma, end = (instance[name] for name in ("arrival", "processing", "gamma", "T"))
    # idle: no slot t <= T has t >= a + 1, so the double sum is empty
    return (
        not any(t >= a + 1 for t in range(1, end + 1))
        and instance["double_sum"] == "0"
        and Fraction((end - a) * p, gamma - a) == Fraction(instance["single_sum"]) != 0
    )


@claim("equation-26", confirm=_confirm_fit)
def _check_equation_26(run: Run) -> Finding:
    checked = differ = wrong = 0
    example: dict[str, Any] | None = None
    for (a, p), end in itertools.product(itertools.product(range(4), range(1, 4)), range(1, 6)):
        gamma = equation_27([(a, p, 1)], 1)
        goal = Fraction(p) / (gamma - a)
        double = sum((goal for t in range(1, end + 1) if t >= a + 1), Fraction(0))
        checked += 1
        differ += double != goal * (end - a)
        wrong += double != goal * max(end - a, 0)
        if example is None and double != goal * (end - a):
            example = {"arrival": a, "processing": p, "gamma": int(gamma), "T": end}
            example |= {"double_sum": str(double), "single_sum": str(goal * (end - a))}
    figures = {"checked": checked, "differ": differ, "differ_over_arrived_jobs": wrong}
    text = (
        f"the sums differ for {differ} of {checked} single jobs without service; with the sum over the "
        f"jobs with a < T only, for {wrong}"
    )
    return Finding(CORRECTED if not wrong else REFUTED, text, counterexample=example, figures=figures)


def _fit(jobs: Sequence[PooledJob], served: Sequence[Fraction], gamma: Fraction, end: int) -> Fraction:
    """Return the fit of Eq. 26 at T = ``end``, given the slots in which each job was served until then."""
    parts = (Fraction((end - a) * p) / (gamma - a) for a, p, _ in jobs)
    return sum(parts, Fraction(0)) - sum(served, Fraction(0))


def _confirm_unfinished(instance: Shown) -> bool:
    """Confirm that no job's part of the fit is less than what is left of it."""
    jobs, _ = read_instance(instance)
    gamma, served = Fraction(instance["gamma"]), [Fraction(own) for own in instance["served"]]
    over = [(instance["T"] - a) / (gamma - a) * p for a, p, _ in jobs]
    return (
        all(own >= p for own, (_, p, _) in zip(over, jobs, strict=True))
        and str(sum(over) - sum(served)) == instance["fit"]
        and str(sum(p for _, p, _ in jobs) - sum(served)) == instance["unfinished"] != "0"
    )


@claim("fit-bounds-unfinished-work", confirm=_confirm_unfinished)
def _check_unfinished(run: Run) -> Finding:
    checked = below = 0
    example: dict[str, Any] | None = None
    for jobs, cores in tiny_instances(run, 1):
        gamma = equation_27(jobs, cores)
        for end in (math.ceil(gamma), math.ceil(gamma) + 2):
            schedule = literal_run(jobs, cores, gamma, end, k=1, step=lambda t: 1, number=Fraction)
            served = [Fraction(sum(given[j] for given in schedule), job[2]) for j, job in enumerate(jobs)]
            fit, left = _fit(jobs, served, gamma, end), sum(p for _, p, _ in jobs) - sum(served)
            checked += 1
            below += fit < left
            if left and example is None:
                example = show_instance(jobs, cores) | {"gamma": str(gamma), "T": end}
                example |= {"served": list(map(str, served)), "fit": str(fit), "unfinished": str(left)}
    figures = {"checked": checked, "below": below}
    if below:
        return Finding(NOT_REPRODUCED, f"below it in {below:,} of {checked:,} runs", figures=figures)
    text = (
        f"in all {checked:,} runs of OCORP (k = 1, mu = 1) that end at Gamma of Eq. 27 or 2 slots later: "
        "after Gamma a job's part of the sum is p or more, which is all of its work"
    )
    return Finding(HOLDS, text, witness=example, figures=figures)


def _theorem_4(
    jobs: Sequence[PooledJob], cores: int, k: int, start: int
) -> tuple[Fraction, Fraction, Schedule]:
    """Return literal OCORP's regret at T = Gamma (Eq. 27), mu = T^k (beta = 0), the bound, the schedule."""
    gamma = equation_27(jobs, cores)
    horizon = int(gamma)
    schedule = literal_run(
        jobs, cores, gamma, horizon, start=start, k=k, step=lambda t: horizon**k, number=Fraction
    )
    own = fractional_best(jobs, cores, k)[0]
    optimum = max(own, Fraction(flowtime_best(jobs, cores, k)[0]))
    return (
        fractional(jobs, schedule, k),
        cores * optimum / 2 * max(Fraction(p, d) for _, p, d in jobs),
        schedule,
    )


def _confirm_theorem_4(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    schedule = as_schedule(instance["schedule"])
    gamma = equation_27(jobs, cores)
    # replayed in floats; the bound, by the larger of the optima of P1 and P2
    again = literal_run(
        jobs,
        cores,
        float(gamma),
        instance["T"],
        start=instance["lambda_from"],
        k=instance["k"],
        step=lambda t: float(instance["T"]) ** instance["k"],
    )
    optimum = max(
        fractional_best(jobs, cores, instance["k"])[0], Fraction(flowtime_best(jobs, cores, instance["k"])[0])
    )
    bound = Fraction(cores, 2) * optimum * max(Fraction(p, d) for _, p, d in jobs)
    return (
        instance["T"] == gamma
        and again == schedule
        and str(fractional(jobs, schedule, instance["k"])) == instance["regret"]
        and str(bound) == instance["bound"]
        and Fraction(instance["regret"]) > bound
    )


@claim("theorem-4", confirm=_confirm_theorem_4)
def _check_theorem_4(run: Run) -> Finding:
    searched: dict[tuple[int, int], Searched] = {}
    worst = Fraction(0)
    for k, start in itertools.product((1, 2), STARTS):

        def flaw(
            jobs: Sequence[PooledJob], cores: int, k: int = k, start: int = start
        ) -> dict[str, Any] | None:
            nonlocal worst
            regret, bound, schedule = _theorem_4(jobs, cores, k, start)
            worst = max(worst, regret / bound)
            if regret <= bound:
                return None
            details = {"k": k, "lambda_from": start, "T": int(equation_27(jobs, cores))}
            return details | {"schedule": as_rows(schedule), "regret": str(regret), "bound": str(bound)}

        cases = (
            (jobs, cores) for jobs, cores in tiny_instances(run) if equation_27(jobs, cores).denominator == 1
        )
        searched[k, start] = find_flaw(cases, flaw)
    above = {setting: one.flawed for setting, one in searched.items()}
    figures: dict[str, Any] = {f"k{k}_from_{start}_above": count for (k, start), count in above.items()}
    figures["largest_ratio"] = str(worst)
    first, high = STARTS
    text = (
        f"for k = 1, beta = 0, mu = T^k, T = Gamma and lambda from 0; for k = 2 in {above[2, first]:,}; "
        "with lambda from 1e11 in"
    )
    text += f" {above[1, high]:,} and {above[2, high]:,}; the regret is up to {float(worst):.1f} times"
    text += " the bound. As y* = 0, every algorithm that completes all jobs has a regret of at least OPT_P2"
    return found_against(REFUTED, searched[1, first], text, figures=figures)


# Gamma, mu, and what follows from them ---------------------------------------------------------------


def _confirm_online(instance: Shown) -> bool:
    gammas = [float(Fraction(text)) for text in instance["gamma"]]
    first = [tuple(job) for job in instance["jobs"]]
    both = [first, [*first, tuple(instance["later_job"])]]
    slot, cores = instance["slot"], instance["cores"]
    if [equation_27(jobs, cores) for jobs in both] != [Fraction(text) for text in instance["gamma"]]:
        return False
    # the prices by hand from 0, up to the slot, in which only the first jobs are visible
    decided = []
    for gamma in gammas:
        price, chosen = 0.0, False
        (a, p, _) = first[0]
        for t in range(a + 1, slot + 1):
            chosen = (t - a) ** K / p + p - price < 0
            price = max(0.0, price + t ** (K + 0.5) * (p / (gamma - a) - (1.0 if chosen else 0.0)))
        decided.append(int(chosen))
    return (
        instance["later_job"][0] >= slot and decided == instance["cores_in_slot"] and decided[0] != decided[1]
    )


@claim("equation-27-online", confirm=_confirm_online)
def _check_online(run: Run) -> Finding:
    checked = differ = 0
    best = Smallest()
    for p, later in itertools.product(range(1, 4), range(2, 13 if run.small else 40)):
        jobs: list[PooledJob] = [(0, p, 1)]
        longer = [*jobs, (later, 1, 1)]
        gammas = [equation_27(jobs, 1), equation_27(longer, 1)]
        checked += 1
        runs = [
            literal_run(own, 1, float(gamma), later)
            for own, gamma in zip((jobs, longer), gammas, strict=True)
        ]
        both = [[u[0] for u in schedule] + [0] * (later - len(schedule)) for schedule in runs]
        slots = [t for t, (one, other) in enumerate(zip(*both, strict=True), start=1) if one != other]
        if slots:
            differ += 1
            example = {
                "jobs": [list(job) for job in jobs],
                "cores": 1,
                "later_job": [later, 1, 1],
                "gamma": [str(gamma) for gamma in gammas],
                "slot": slots[0],
                "cores_in_slot": [row[slots[0] - 1] for row in both],
            }
            best.see(slots[0], example)
    figures = {"checked": checked, "differ": differ}
    if best.found is None:
        return Finding(HOLDS, f"in all {checked} pairs", figures=figures)
    text = (
        f"a job that arrives later changes decisions before its arrival in {differ} of {checked} pairs of "
        "workloads (lambda from 0)"
    )
    return Finding(REFUTED, text, counterexample=best.found, figures=figures)


def _confirm_gamma(instance: Shown) -> bool:
    columns = _stand_in(instance["seed"])
    last = max(columns[0])
    work = Fraction(4 * sum(p * d for p, d in zip(columns[1], columns[2], strict=True)), columns[3])
    return (
        instance["latest_arrival"] == last
        and instance["four_times_the_work"] == float(work)
        and max(2 * last, work) > instance["gamma"]
    )


def _gamma_of(columns: tuple[list[int], list[int], list[int], int]) -> tuple[int, Fraction]:
    """Return the two parts of Eq. 27: by arrivals, and by work."""
    arrival, processing, cpu, cores = columns
    ends = [max(a + 2 * p, 2 * a) for a, p in zip(arrival, processing, strict=True)]
    return max(ends), Fraction(4 * sum(p * d for p, d in zip(processing, cpu, strict=True)), cores)


def _stand_in(seed: int) -> tuple[list[int], list[int], list[int], int]:
    """Return arrivals, processing times and demands of the stand-in for the trace, and its cores."""
    from schedgym.problems.flowtime.problem import PROBLEM, FlowtimeParameters
    from schedgym.problems.flowtime.workload import generate, make_source, tables

    own = tables(generate(seed, 0, make_source(FlowtimeParameters(**PROBLEM.presets["kw"]))))
    columns = own.arrival, own.processing[:, 0], own.cpu[:, 0]
    arrival, processing, cpu = (list(map(int, column)) for column in columns)
    return arrival, processing, cpu, int(own.server_cpu.sum())


@claim("gamma-4000", confirm=_confirm_gamma)
def _check_gamma(run: Run) -> Finding:
    gammas = []
    for seed in range(1 if run.small else 5):
        by_arrivals, by_work = _gamma_of(_stand_in(seed))
        gammas.append(max(float(by_arrivals), float(by_work)))
    figures = {"eq27": gammas}
    if min(gammas) <= GAMMA:
        return Finding(HOLDS, f"Eq. 27 gives {gammas}", figures=figures)
    text = f"Eq. 27 gives {gammas[0]:.0f} on the stand-in for the trace; any arrival after slot 2000"
    text += " makes 2 a, and so Gamma of Eq. 27, larger than 4000"
    own = _stand_in(0)
    example = {"seed": 0, "latest_arrival": max(own[0]), "four_times_the_work": float(_gamma_of(own)[1])}
    return Finding(REFUTED, text, counterexample=example | {"gamma": GAMMA}, figures=figures)


def _confirm_least_slots(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    work = Fraction(sum(p * d for _, p, d in jobs), cores)
    # a job needs p slots at least, however many cores there are
    return str(work) == instance["work_over_cores"] and instance["least"] == max(p for _, p, _ in jobs) > work


@claim("least-makespan", confirm=_confirm_least_slots)
def _check_least_slots(run: Run) -> Finding:
    below = 0

    def flaw(jobs: Sequence[PooledJob], cores: int) -> dict[str, Any] | None:
        nonlocal below
        least = min(len(rule(name, jobs, cores)) for name in ("srf", "svf", "srvf", "srpt"))
        work = Fraction(sum(p * d for _, p, d in jobs), cores)
        below += least < work
        longest = max(p for _, p, _ in jobs)
        if work >= longest:
            return None
        return {"work_over_cores": str(work), "least": longest}

    searched = find_flaw(tiny_instances(run), flaw)
    if below:
        return Finding(NOT_REPRODUCED, f"{below} schedules are shorter", figures={"below": below})
    return found_against(CORRECTED, searched, "it is only a lower bound, as a job needs at least p slots")


def _confirm_step(instance: Shown) -> bool:
    k, exponent = instance["k"], Fraction(instance["exponent"])
    return k - exponent == Fraction(instance["beta"]) and not 0 <= k - exponent < 1


@claim("step-size", confirm=_confirm_step)
def _check_step(run: Run) -> Finding:
    betas = {k: k - (k + Fraction(1, 2)) for k in range(1, 11)}
    allowed = sum(0 <= beta < 1 for beta in betas.values())
    example = {"k": K, "exponent": str(K + Fraction(1, 2)), "beta": str(betas[K])}
    text = (
        "it would be -1/2 for every k; in addition mu changes from slot to slot, in the theorems it does not"
    )
    if allowed:
        return Finding(HOLDS, f"for {allowed} of {len(betas)} k", figures={"allowed": allowed})
    return Finding(REFUTED, text, counterexample=example, figures={"allowed": 0, "checked": len(betas)})


def _longest_gap(jobs: Sequence[PooledJob], schedule: Schedule) -> int:
    """Return the longest run of slots without a core between arrival and completion (or the end)."""
    longest = 0
    for j, (a, p, d) in enumerate(jobs):
        gap, left = 0, p * d
        for given in schedule[a:]:
            if not left:
                break
            gap = 0 if given[j] else gap + 1
            left -= given[j]
            longest = max(longest, gap)
    return longest


def _confirm_gap(instance: Shown) -> bool:
    sizes, horizons, gaps = instance["unit_jobs"], instance["T"], instance["longest_gap"]
    rows = list(zip(sizes, horizons, gaps, strict=True))
    # one core serves one job a slot: whatever the policy, one of n jobs is not served in n - 1 slots
    least = all(gap >= n - 1 and horizon == 4 * n for n, horizon, gap in rows)
    return least and instance["cores"] == 1 and len(rows) > 2 and sizes == sorted(sizes)


@claim("corollary-1", confirm=_confirm_gap)
def _check_corollary_1(run: Run) -> Finding:
    sizes = [4, 16, 64] if run.small else [4, 16, 64, 256, 1024]
    horizons, gaps = [], []
    for count in sizes:
        jobs: list[PooledJob] = [(0, 1, 1)] * count
        gamma = int(equation_27(jobs, 1))
        schedule = literal_run(jobs, 1, gamma, gamma, step=lambda t, mu=gamma**K: mu)  # lambda from 0
        horizons.append(gamma)
        gaps.append(_longest_gap(jobs, schedule))
    figures = {"gap_over_T": [gap / horizon for gap, horizon in zip(gaps, horizons, strict=True)]}
    example = {"unit_jobs": sizes, "cores": 1, "T": horizons, "longest_gap": gaps}
    if min(figures["gap_over_T"]) < Fraction(1, 8):
        return Finding(NOT_REPRODUCED, f"gaps {gaps} for T = {horizons}", figures=figures)
    text = (
        f"n equal unit jobs on one core with T = Gamma = 4 n have gaps of {gaps} slots for T = {horizons}, "
        "which is linear in T; under any policy the last of n waits n - 1 = T / 4 - 1 slots"
    )
    return Finding(REFUTED, text, counterexample=example, figures=figures)


@claim("theorem-3")
def _check_theorem_3(run: Run) -> Finding:
    return _fits(run, (0.0,))


def _fits(run: Run, alphas: Sequence[float]) -> Finding:
    """Compare the dynamic fit of literal OCORP on random workloads with T^beta sqrt(N) (Eq. 28, 33)."""
    largest: dict[int, float] = {}
    for count in (4, 16, 48) if run.small else (4, 16, 64, 256):
        for trial in range(4):
            draw = run.rng.integers
            last = 0 if trial < 2 else count
            arrivals = sorted(int(x) for x in draw(0, last + 1, size=count))
            jobs = [(a, int(draw(1, 9)), int(draw(1, 5))) for a in arrivals]
            gamma = float(equation_27(jobs, 4))
            ends = (int(gamma) // 2, int(gamma))
            for beta, end, start, alpha in itertools.product((0.0, 0.5), ends, STARTS, alphas):
                mu = end ** (K - beta)
                schedule = literal_run(
                    jobs, 4, gamma, end, start=start, alpha=alpha, step=lambda t, mu=mu: mu
                )
                fit = sum(max(end - a, 0) * p / (gamma - a) for a, p, _ in jobs)
                fit -= sum(u / job[2] for given in schedule for u, job in zip(given, jobs, strict=True))
                arrived = sum(a < end for a in arrivals)
                largest[count] = max(largest.get(count, 0.0), fit / (end**beta * math.sqrt(arrived)))
    figures = {f"N_{count}": most for count, most in largest.items()}
    values = list(largest.values())
    text = "largest fit / (T^beta sqrt(N)) of random workloads, at T = Gamma / 2 and Gamma, lambda from 0 and"
    text += " 1e11: " + ", ".join(f"{most:.2f} (N = {count})" for count, most in largest.items())
    verdict = judge(max(values) <= 4 and values[-1] <= 2 * max(values[0], 1.0))
    return Finding(verdict, text, figures=figures)


# section IV-B: switching -----------------------------------------------------------------------------


def _switching(before: Sequence[int], after: Sequence[int], d: int) -> Fraction:
    """Return the part of a job in S(t)."""
    return sum((Fraction(new - old, d) ** 2 for old, new in zip(before, after, strict=True)), Fraction(0))


def _confirm_switching(instance: Shown) -> bool:
    d, before = instance["cpu"], instance["before"]
    whole, split = instance["whole"], instance["split"]
    costs = [sum((x - y) ** 2 for x, y in zip(row, before, strict=True)) for row in (whole, split)]
    return (
        sum(whole) == sum(split) == d
        and sum(map(bool, whole)) < sum(map(bool, split))
        and [str(Fraction(cost, d * d)) for cost in costs] == [instance["cost_whole"], instance["cost_split"]]
        and costs[0] > costs[1]
    )


@claim("switching-cost", confirm=_confirm_switching)
def _check_switching(run: Run) -> Finding:
    checked = less = 0
    example: dict[str, Any] | None = None
    for servers, d in itertools.product(range(2, 5), range(1, 5)):
        before = [0] * servers
        whole = [d] + [0] * (servers - 1)
        for split in itertools.product(range(d + 1), repeat=servers):
            if sum(split) == d and sum(map(bool, split)) > 1:
                checked += 1
                own = _switching(before, whole, d), _switching(before, split, d)
                less += own[1] < own[0]
                if example is None and own[1] < own[0]:
                    example = {"cpu": d, "before": before, "whole": whole, "split": list(split)}
                    example |= {"cost_whole": str(own[0]), "cost_split": str(own[1])}
    four = str(_switching([0] * 4, [1] * 4, 4))
    figures = {"checked": checked, "split_is_cheaper": less, "four_cores_on_four_servers": four}
    if example is None:
        return Finding(HOLDS, f"in all {checked} splits", figures=figures)
    text = f"for a job that starts again, {less} of {checked} splits cost less than one server: 4 cores as"
    text += f" 1+1+1+1 cost {four} alpha, on one server 1 alpha"
    return Finding(REFUTED, text, counterexample=example, figures=figures)


@claim("theorem-5-fit")
def _check_theorem_5_fit(run: Run) -> Finding:
    return _fits(run, (1.0, 30.0))


def _regrets(run: Run, beta: float, start: int) -> tuple[list[float], float]:
    """Return regret over OPT^(1 - beta / (k + 1)) for n equal jobs at once on one core, at T = Gamma, by n.

    The largest of jobs of one and of three slots, and of alpha 1 and 30. Of equal jobs one after the other is
    best, so that OPT is known; as y* = 0 the regret is the fractional flowtime.

    Returns:
        the ratios, and the share of the work that is done by T for the largest n.
    """
    ratios, share = [], 0.0
    for count in _equal_jobs(run):
        largest = 0.0
        for p, alpha in itertools.product((1, 3), (1, 30)):
            jobs: list[PooledJob] = [(0, p, 1)] * count
            gamma = int(equation_27(jobs, 1))
            mu = gamma ** (K - beta)
            schedule = literal_run(jobs, 1, gamma, gamma, start=start, alpha=alpha, step=lambda t, mu=mu: mu)
            optimum = sum((p * place) ** K for place in range(1, count + 1))
            ratio = float(fractional(jobs, schedule, K)) / optimum ** (1.0 - beta / (K + 1))
            largest = max(largest, ratio)
            share = sum(map(sum, schedule)) / (p * count)
        ratios.append(largest)
    return ratios, share


def _equal_jobs(run: Run) -> tuple[int, ...]:
    return (4, 16, 48) if run.small else (4, 16, 64, 256)


@claim("theorem-5-regret")
def _check_theorem_5_regret(run: Run) -> Finding:
    found = {beta: _regrets(run, beta, int(run.choice(START))) for beta in (0.0, 0.5)}
    figures = {f"beta_{beta}": {"ratios": ratios, "done": share} for beta, (ratios, share) in found.items()}
    told = {beta: ", ".join(f"{ratio:.2f}" for ratio in ratios) for beta, (ratios, _) in found.items()}
    # a constant may be large, but must not grow with n
    bounded = (max(own) <= 8 and own[-1] <= 2 * max(own[0], 1.0) for own, _ in found.values())
    text = (
        f"n = {', '.join(map(str, _equal_jobs(run)))} equal jobs on one core, k = 2: regret / bound is "
        f"{told[0.0]} for beta = 0 and {told[0.5]} for beta = 1/2, where {100 * found[0.5][1]:.0f}% of "
        "the work is done by T (as y* = 0, work that is not served has no regret)"
    )
    return Finding(judge(all(bounded)), text, figures=figures)
