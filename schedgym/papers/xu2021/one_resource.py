"""Sections IV-A and IV-B: one resource, what follows from Gamma and mu, and switching."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.searches import Details, Searched, Sentences, confirm_by, smallest_flaw
from schedgym.papers.xu2021 import model
from schedgym.papers.xu2021.instances import (
    GAMMA,
    OPEN,
    STARTS,
    K,
    as_rows,
    as_schedule,
    claim,
    confirm_flaw,
    equation_27,
    find_flaw,
    literal_run,
    pooled,
    read_instance,
    rule,
    show_instance,
    tiny_instances,
)
from schedgym.papers.xu2021.model import PooledJob, Schedule

# section IV-A: one resource --------------------------------------------------------------------------


class _Slot(NamedTuple):
    """Demands of jobs, in ascending order of omega = -gain / demand, their gains, and cores."""

    demands: Sequence[int]
    gains: Sequence[int]
    cores: int


def _equation_22(slot: _Slot, literal: bool) -> Fraction:
    """Return the gain of Eq. 22 as printed, or with case 2 summing to j - 1."""
    total = Fraction(0)
    before = 0
    for d, gain in zip(slot.demands, slot.gains, strict=True):
        zero = before + d if literal else before
        if before + d <= slot.cores:
            total += gain
        elif zero < slot.cores:
            total += gain * Fraction(slot.cores - before, d)
        before += d
    return total


def _slot_optimum(slot: _Slot) -> Fraction:
    """Return the maximum of sum gain y over all whole numbers of cores."""
    worth = tuple(Fraction(gain, d) for gain, d in zip(slot.gains, slot.demands, strict=True))
    return model.plain_best(model.Slot(worth, tuple(slot.demands), (0,) * len(worth), (slot.cores,), (0,)))


def _below_optimum(slot: _Slot) -> Details:
    own, optimum = _equation_22(slot, True), _slot_optimum(slot)
    return {"printed": str(own), "optimum": str(optimum)} if own < optimum else None


def _read_slot(shown: Shown) -> _Slot:
    return _Slot(shown["demands"], shown["gains"], shown["cores"])


@claim("lemma-1", confirm=confirm_by(_read_slot, _below_optimum))
def _check_lemma_1(run: Run, say: Sentences) -> Finding:
    most = 3 if run.small else 4
    kinds = itertools.product(range(1, most + 1), range(1, 5))
    ordered = sorted(kinds, key=lambda kind: Fraction(-kind[1], kind[0]))
    slots = [
        _Slot([d for d, _ in items], [gain for _, gain in items], cores)
        for count in (1, 2, 3)
        for items in itertools.combinations_with_replacement(ordered, count)
        for cores in range(1, 2 * most)
    ]
    searched = smallest_flaw(
        slots,
        _below_optimum,
        size=lambda slot: (len(slot.gains), slot.cores, sum(slot.demands), sum(slot.gains), slot),
        show=_Slot._asdict,
    )
    meant = sum(_equation_22(slot, False) != _slot_optimum(slot) for slot in slots)
    figures = {"checked": len(slots), "printed_below": searched.flawed, "corrected_below": meant}
    verdict = HOLDS if searched.found is None else CORRECTED if not meant else REFUTED
    return say(verdict, figures, counterexample=searched.found)


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
    return printed and job[0] >= 1 and model.completions([job], schedule) == [instance["completion"]]


@claim("algorithm-1-line-7", confirm=_confirm_line_7)
def _check_line_7(run: Run, say: Sentences) -> Finding:
    slots = 200 if run.small else 5_000
    jobs = [(a, p, 1) for a, p in itertools.product(range(2, 5), range(1, 5))]
    served = sum(_served_as_printed(a, p, slots) for a, p, _ in jobs)
    schedules = {job: _line_7(job, slots) for job in jobs}
    right = [job for job, schedule in schedules.items() if sum(map(sum, schedule)) == job[1]]
    figures = {
        "checked": len(jobs),
        "served_as_printed": served,
        "finished_with_gamma_minus_a": len(right),
    }
    if served or not right:
        return say(NOT_REPRODUCED, figures, slots=slots)
    job = right[0]
    (end,) = model.completions([job], schedules[job])
    example = {"arrival": job[0], "processing": job[1], "completion": end}
    return say(CORRECTED, figures, counterexample=example, slots=slots)


def _confirm_benchmark(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    schedule = as_schedule(instance["schedule"])
    # weights are positive, so that every core costs; with no cores at all f_t is 0
    return (
        model.feasible(jobs, cores, schedule)
        and str(model.fractional(jobs, schedule)) == instance["regret"] == instance["own_cost"]
        and model.fractional(jobs, [(0,) * len(jobs)] * len(schedule)) == 0 == instance["regret_of_idling"]
    )


@claim("dynamic-regret", confirm=_confirm_benchmark)
def _check_benchmark(run: Run, say: Sentences) -> Finding:
    checked = 0
    example: dict[str, Any] | None = None
    for jobs, cores in tiny_instances(run):
        own, schedule = model.fractional_best(jobs, cores)
        # f_t is linear with these coefficients, X(t) contains 0
        weights = (Fraction(t - a, p) + 1 for t in range(1, len(schedule) + 1) for a, p, _ in jobs)
        benchmark = sum((min(Fraction(0), weight) for weight in weights), Fraction(0))
        checked += benchmark == 0
        if example is None:
            details = {"schedule": as_rows(schedule), "own_cost": str(own), "regret": str(own - benchmark)}
            example = show_instance(jobs, cores) | details | {"regret_of_idling": 0}
    return say(REFUTED, {"checked": checked}, counterexample=example)


def _fit_of_idling(a: int, p: int, end: int) -> dict[str, Any]:
    """Return both sides of Eq. 26 for a job of one core that is not served, as a finding shows them."""
    gamma = equation_27([(a, p, 1)], 1)
    goal = Fraction(p) / (gamma - a)
    double = sum((goal for t in range(1, end + 1) if t >= a + 1), Fraction(0))
    shown = {"arrival": a, "processing": p, "gamma": int(gamma), "T": end}
    return shown | {"double_sum": str(double), "single_sum": str(goal * (end - a))}


def _confirm_fit(instance: Shown) -> bool:
    a, p, gamma, end = (instance[name] for name in ("arrival", "processing", "gamma", "T"))
    # idle: no slot t <= T has t >= a + 1, so the double sum is empty
    return (
        not any(t >= a + 1 for t in range(1, end + 1))
        and instance["double_sum"] == "0"
        and Fraction((end - a) * p, gamma - a) == Fraction(instance["single_sum"]) != 0
    )


@claim("equation-26", confirm=_confirm_fit)
def _check_equation_26(run: Run, say: Sentences) -> Finding:
    found = [_fit_of_idling(*case) for case in itertools.product(range(4), range(1, 4), range(1, 6))]
    differ = [one for one in found if one["double_sum"] != one["single_sum"]]
    wrong = sum(one["T"] > one["arrival"] or one["double_sum"] != "0" for one in differ)
    figures = {"checked": len(found), "differ": len(differ), "differ_over_arrived_jobs": wrong}
    return say(CORRECTED if not wrong else REFUTED, figures, counterexample=differ[0])


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
def _check_unfinished(run: Run, say: Sentences) -> Finding:
    checked = below = 0
    example: dict[str, Any] | None = None
    for jobs, cores in tiny_instances(run, 1):
        gamma = equation_27(jobs, cores)
        for end in (math.ceil(gamma), math.ceil(gamma) + 2):
            schedule = literal_run(jobs, cores, gamma, end, k=1, step=lambda t: 1, number=Fraction)
            served = [Fraction(sum(given[j] for given in schedule), job[2]) for j, job in enumerate(jobs)]
            left = sum(p for _, p, _ in jobs) - sum(served)
            fit = sum(Fraction((end - a) * p) / (gamma - a) for a, p, _ in jobs) - sum(served)  # Eq. 26
            checked += 1
            below += fit < left
            if left and example is None:
                example = show_instance(jobs, cores) | {"gamma": str(gamma), "T": end}
                example |= {"served": list(map(str, served)), "fit": str(fit), "unfinished": str(left)}
    verdict = NOT_REPRODUCED if below else HOLDS
    return say(verdict, {"checked": checked, "below": below}, witness=example)


def _regret_of(
    jobs: Sequence[PooledJob], cores: int, k: int, start: int, number: Callable[..., Any] = Fraction
) -> tuple[Fraction, dict[str, Any] | None]:
    """Return literal OCORP's regret over its bound at T = Gamma (Eq. 27) with mu = T^k (beta = 0).

    Prices are of the kind ``number``, from ``start``. With the ratio there are details if it is above 1.
    """
    gamma = equation_27(jobs, cores)
    horizon = int(gamma)
    step = number(horizon) ** k
    schedule = literal_run(
        jobs, cores, number(gamma), horizon, start=start, k=k, step=lambda t: step, number=number
    )
    regret = model.fractional(jobs, schedule, k)
    optimum = max(model.fractional_best(jobs, cores, k)[0], Fraction(model.flowtime_best(jobs, cores, k)[0]))
    bound = cores * optimum / 2 * max(Fraction(p, d) for _, p, d in jobs)
    if regret <= bound:
        return regret / bound, None
    details = {"k": k, "lambda_from": start, "T": horizon, "schedule": as_rows(schedule)}
    return regret / bound, details | {"regret": str(regret), "bound": str(bound)}


def _in_floats(jobs: Sequence[PooledJob], cores: int, k: int, start: int) -> Details:
    return _regret_of(jobs, cores, k, start, float)[1]


@claim("theorem-4", confirm=confirm_flaw(_in_floats, k="k", start="lambda_from"))
def _check_theorem_4(run: Run, say: Sentences) -> Finding:
    searched: dict[tuple[int, int], Searched] = {}
    worst = Fraction(0)
    for k, start in itertools.product((1, 2), STARTS):

        def flaw(jobs: Sequence[PooledJob], cores: int, k: int = k, start: int = start) -> Any:
            nonlocal worst
            ratio, details = _regret_of(jobs, cores, k, start)
            worst = max(worst, ratio)
            return details

        cases = (case for case in tiny_instances(run) if equation_27(*case).denominator == 1)
        searched[k, start] = find_flaw(cases, flaw)
    figures: dict[str, Any] = {f"k{k}_from_{start}_above": one.flawed for (k, start), one in searched.items()}
    first, high = STARTS
    # with one core the ratio is to the bound without C: neither job has to wait, but OCORP lets both
    late = (16, 64, 256)
    regrets = [float(_regret_of([(4, 1, 1), (arrival, 1, 1)], 1, 1, first)[0]) for arrival in late]
    figures |= {"largest_ratio": str(worst), "regrets": regrets}
    return say.against(
        REFUTED,
        searched[1, first],
        figures,
        late=", ".join(map(str, late)),
        second=searched[2, first].flawed,
        high=[searched[k, high].flawed for k in (1, 2)],
        worst=float(worst),
    )


# Gamma, mu, and what follows from them ---------------------------------------------------------------


def _decided_early(case: tuple[int, int]) -> Details:
    """Return the first slot in which a job that arrives later, in slot ``later``, changes the decision."""
    p, later = case
    workloads: list[list[PooledJob]] = [[(0, p, 1)], [(0, p, 1), (later, 1, 1)]]
    gammas = [equation_27(jobs, 1) for jobs in workloads]
    runs = [literal_run(jobs, 1, float(gamma), later) for jobs, gamma in zip(workloads, gammas, strict=True)]
    both = [[u[0] for u in schedule] + [0] * (later - len(schedule)) for schedule in runs]
    slots = [t for t, (one, other) in enumerate(zip(*both, strict=True), start=1) if one != other]
    if not slots:
        return None
    shown = {"jobs": [list(job) for job in workloads[0]], "cores": 1, "later_job": [later, 1, 1]}
    cores = [row[slots[0] - 1] for row in both]
    return shown | {"gamma": list(map(str, gammas)), "slot": slots[0], "cores_in_slot": cores}


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
def _check_online(run: Run, say: Sentences) -> Finding:
    cases = list(itertools.product(range(1, 4), range(2, 13 if run.small else 40)))
    differ = [found for found in map(_decided_early, cases) if found]
    figures = {"checked": len(cases), "differ": len(differ)}
    example = min(differ, key=lambda found: found["slot"], default=None)
    return say(HOLDS if example is None else REFUTED, figures, counterexample=example)


def _stand_in(seed: int) -> dict[str, Any]:
    """Return the latest arrival, and the parts of Eq. 27, of the stand-in for the trace."""
    from schedgym.problems.flowtime.problem import PROBLEM, FlowtimeParameters
    from schedgym.problems.flowtime.workload import generate, make_source, tables

    own = tables(generate(seed, 0, make_source(FlowtimeParameters(**PROBLEM.presets["kw"]))))
    columns = own.arrival, own.processing[:, 0], own.cpu[:, 0]
    jobs = list(zip(*(map(int, column) for column in columns), strict=True))
    return {
        "latest_arrival": max(a for a, _, _ in jobs),
        "by_arrivals": max(max(a + 2 * p, 2 * a) for a, p, _ in jobs),
        "four_times_the_work": 4 * sum(p * d for _, p, d in jobs) / int(own.server_cpu.sum()),
    }


def _confirm_gamma(instance: Shown) -> bool:
    again = _stand_in(instance["seed"])
    parts = "latest_arrival", "four_times_the_work"
    return (
        all(instance[name] == again[name] for name in parts)
        and max(2 * again["latest_arrival"], again["four_times_the_work"]) > instance["gamma"]
    )


@claim("gamma-4000", confirm=_confirm_gamma)
def _check_gamma(run: Run, say: Sentences) -> Finding:
    found = [_stand_in(seed) for seed in range(1 if run.small else 5)]
    gammas = [float(max(one["by_arrivals"], one["four_times_the_work"])) for one in found]
    first = found[0]
    example = {"seed": 0, "latest_arrival": first["latest_arrival"]}
    example |= {"four_times_the_work": first["four_times_the_work"], "gamma": GAMMA}
    verdict = HOLDS if min(gammas) <= GAMMA else REFUTED
    return say(verdict, {"eq27": gammas}, counterexample=example, first=gammas[0])


def _confirm_least_slots(instance: Shown) -> bool:
    jobs, cores = read_instance(instance)
    work = Fraction(sum(p * d for _, p, d in jobs), cores)
    # a job needs p slots at least, however many cores there are
    return str(work) == instance["work_over_cores"] and instance["least"] == max(p for _, p, _ in jobs) > work


@claim("least-makespan", confirm=_confirm_least_slots)
def _check_least_slots(run: Run, say: Sentences) -> Finding:
    below = 0

    def flaw(jobs: Sequence[PooledJob], cores: int) -> Details:
        nonlocal below
        least = min(len(rule(name, jobs, cores)) for name in ("srf", "svf", "srvf", "srpt"))
        work = Fraction(sum(p * d for _, p, d in jobs), cores)
        below += least < work
        longest = max(p for _, p, _ in jobs)
        return {"work_over_cores": str(work), "least": longest} if work < longest else None

    searched = find_flaw(tiny_instances(run), flaw)
    return say(NOT_REPRODUCED, {"below": below}) if below else say.against(CORRECTED, searched, below=below)


def _confirm_step(instance: Shown) -> bool:
    k, exponent = instance["k"], Fraction(instance["exponent"])
    return k - exponent == Fraction(instance["beta"]) and not 0 <= k - exponent < 1


@claim("step-size", confirm=_confirm_step)
def _check_step(run: Run, say: Sentences) -> Finding:
    betas = {k: k - (k + Fraction(1, 2)) for k in range(1, 11)}
    allowed = sum(0 <= beta < 1 for beta in betas.values())
    figures = {"allowed": allowed, "checked": len(betas)}
    example = {"k": K, "exponent": str(K + Fraction(1, 2)), "beta": str(betas[K])}
    return say(HOLDS if allowed else REFUTED, figures, counterexample=example)


def _confirm_gap(instance: Shown) -> bool:
    sizes, horizons, gaps = instance["unit_jobs"], instance["T"], instance["longest_gap"]
    rows = list(zip(sizes, horizons, gaps, strict=True))
    # one core serves one job a slot: whatever the policy, one of n jobs is not served in n - 1 slots
    least = all(gap >= n - 1 and horizon == 4 * n for n, horizon, gap in rows)
    return least and instance["cores"] == 1 and len(rows) > 2 and sizes == sorted(sizes)


@claim("corollary-1", confirm=_confirm_gap)
def _check_corollary_1(run: Run, say: Sentences) -> Finding:
    sizes = [4, 16, 64] if run.small else [4, 16, 64, 256, 1024]
    horizons, gaps = [], []
    for count in sizes:
        jobs: list[PooledJob] = [(0, 1, 1)] * count
        gamma = int(equation_27(jobs, 1))
        schedule = literal_run(jobs, 1, gamma, gamma, step=lambda t, mu=gamma**K: mu)  # lambda from 0
        horizons.append(gamma)
        outcome = model.replay(pooled(jobs, 1), [[[u] for u in given] for given in schedule])
        gaps.append(max(model.service_gaps(pooled(jobs, 1), outcome)))
    shares = [gap / horizon for gap, horizon in zip(gaps, horizons, strict=True)]
    example = {"unit_jobs": sizes, "cores": 1, "T": horizons, "longest_gap": gaps}
    verdict = REFUTED if min(shares) >= Fraction(1, 8) else NOT_REPRODUCED  # linear in T
    return say(verdict, {"gap_over_T": shares}, counterexample=example, gaps=gaps, horizons=horizons)


@claim("theorem-3")
def _check_theorem_3(run: Run, say: Sentences) -> Finding:
    return _fits(run, say, (0.0,))


def _fits(run: Run, say: Sentences, alphas: Sequence[float]) -> Finding:
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
    values = list(largest.values())
    return say(
        judge(max(values) <= 4 and values[-1] <= 2 * max(values[0], 1.0)),
        {f"N_{count}": most for count, most in largest.items()},
        told=", ".join(f"{most:.2f} (N = {count})" for count, most in largest.items()),
    )


# section IV-B: switching -----------------------------------------------------------------------------


def _switching(row: Sequence[int]) -> Fraction:
    """Return the part in S(t) of a job that starts again with these cores on the servers."""
    return sum((Fraction(cores, sum(row)) ** 2 for cores in row), Fraction(0))


def _cheaper_split(split: Sequence[int]) -> Details:
    """Return the costs of cores on several servers, if they are less than those of one server."""
    d, before = sum(split), [0] * len(split)
    whole = [d, *before[1:]]
    costs = [_switching(row) for row in (whole, split)]
    if costs[1] >= costs[0]:
        return None
    shown = {"cpu": d, "before": before, "whole": whole, "split": list(split)}
    return shown | {"cost_whole": str(costs[0]), "cost_split": str(costs[1])}


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
def _check_switching(run: Run, say: Sentences) -> Finding:
    splits = [
        split
        for servers, d in itertools.product(range(2, 5), range(1, 5))
        for split in itertools.product(range(d + 1), repeat=servers)
        if sum(split) == d and sum(map(bool, split)) > 1
    ]
    less = [found for found in map(_cheaper_split, splits) if found]
    figures = {
        "checked": len(splits),
        "split_is_cheaper": len(less),
        "four_cores_on_four_servers": str(_switching([1] * 4)),
    }
    return say(REFUTED if less else HOLDS, figures, counterexample=less[0] if less else None)


@claim("theorem-5-fit")
def _check_theorem_5_fit(run: Run, say: Sentences) -> Finding:
    return _fits(run, say, (1.0, 30.0))


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
            ratio = float(model.fractional(jobs, schedule, K)) / optimum ** (1.0 - beta / (K + 1))
            largest = max(largest, ratio)
            share = sum(map(sum, schedule)) / (p * count)
        ratios.append(largest)
    return ratios, share


def _equal_jobs(run: Run) -> tuple[int, ...]:
    return (4, 16, 48) if run.small else (4, 16, 64, 256)


@claim("theorem-5-regret")
def _check_theorem_5_regret(run: Run, say: Sentences) -> Finding:
    found = {beta: _regrets(run, beta, int(run.choice(OPEN["START"]))) for beta in (0.0, 0.5)}
    figures = {f"beta_{beta}": {"ratios": ratios, "done": share} for beta, (ratios, share) in found.items()}
    zero, half = (", ".join(f"{ratio:.2f}" for ratio in ratios) for ratios, _ in found.values())
    # a constant may be large, but must not grow with n
    bounded = (max(own) <= 8 and own[-1] <= 2 * max(own[0], 1.0) for own, _ in found.values())
    counts = ", ".join(map(str, _equal_jobs(run)))
    return say(judge(all(bounded)), figures, counts=counts, zero=zero, half=half, done=found[0.5][1])
