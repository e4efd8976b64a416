"""Sections 4.2 and 4.3: the relaxation, and TaPRA."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from schedgym.papers import CORRECTED, NOT_REPRODUCED, Finding, Run, Shown, judge
from schedgym.papers.exact import as_text, as_texts
from schedgym.papers.judging import excess, level
from schedgym.papers.searches import Details, Sentences, count
from schedgym.papers.shi2017.instances import (
    FACTORS,
    HALF,
    OPEN,
    claim,
    enumerate_jobs,
    find_flaw,
    found_correction,
    jobs_to_place,
    read_job,
    show_job,
)
from schedgym.papers.shi2017.model import one_job as model
from schedgym.papers.shi2017.runs import SINGLE, TAPRA, found_by

CLOSE = 1e-7  # relative, of floating-point optima


# section 4.2: the relaxation -------------------------------------------------------------------------


@claim("relaxation")
def _check_relaxation(run: Run, say: Sentences) -> Finding:
    ratios = [Fraction(model.best(job)[0]) / model.relaxation(job).bound for job in jobs_to_place(run)]
    above, worst = sum(ratio < 1 for ratio in ratios), max(ratios)
    family = {}
    for m in (2, 4, 8):
        alone = model.SingleJob((1,), ((1,) * m,), tuple((j,) for j in range(m)), (1,) * m)
        family[m] = Fraction(model.best(alone)[0]) / model.relaxation(alone).bound
    figures = {"checked": len(ratios), "above": above, "worst": str(worst)}
    figures |= {f"one_task_{m}_servers": str(ratio) for m, ratio in family.items()}
    return say(judge(not above), figures, largest=float(worst))


def _literal(job: model.SingleJob, horizon: float | None = None) -> Any:
    """Solve (49) to (54) as printed by HiGHS, p of any sign; or only the constraints with T = ``horizon``."""
    from scipy.optimize import linprog

    n, m = job.tasks, job.servers
    pairs, groups = n * m, len(job.groups)
    leq = np.array([[1 / float(x) for x in row] for row in job.efficiency]).ravel()
    limits = np.array([[float(limit)] for limit in job.limits])
    upper = [np.hstack([np.diag(leq), -np.eye(pairs), np.zeros((pairs, 1))])]  # l / lambda - p <= 0
    right = [0.0] * pairs
    if job.energy_cap < math.inf:
        upper.append(np.concatenate([leq, np.zeros(pairs + 1)])[np.newaxis])
        right.append(float(job.energy_cap))
    inside = np.tile(np.array(job.matrix(), dtype=float), n)
    upper.append(np.hstack([np.zeros((groups, pairs)), inside, -limits]))
    right += [0.0] * groups
    horizons = (0, None) if horizon is None else (horizon, horizon)
    return linprog(
        [0.0] * 2 * pairs + [1.0],
        A_ub=np.vstack(upper),
        b_ub=right,
        A_eq=np.hstack([np.kron(np.eye(n), np.ones(m)), np.zeros((n, pairs + 1))]),
        b_eq=[float(x) for x in job.load],
        bounds=[*[(0, None)] * pairs, *[(None, None)] * pairs, horizons],
        method="highs",
    )


@claim("equivalent-lp")
def _check_equivalent(run: Run, say: Sentences) -> Finding:
    checked = broken = searched = apart = solved = 0
    for job in jobs_to_place(run):
        bound, parts = model.relaxation(job)
        pairs = list(itertools.product(range(len(job.load)), range(job.servers)))
        load = {(i, j): parts[i][j] * job.load[i] for i, j in pairs}
        vcpu = {(i, j): load[i, j] / job.efficiency[i][j] / bound for i, j in pairs}  # p / T
        times = [load[e] / (job.efficiency[e[0]][e[1]] * vcpu[e]) for e in pairs if vcpu[e]]
        broken += (
            min(load.values()) < 0
            or sum(load[i, j] / job.efficiency[i][j] for i, j in pairs) > job.energy_cap
            or any(sum(load[i, j] for j in range(job.servers)) != x for i, x in enumerate(job.load))
            or any(
                sum(vcpu[i, j] for i, j in pairs if j in group) > limit
                for group, limit in zip(job.groups, job.limits, strict=True)
            )
            or max(times) != bound
        )
        checked += 1
        if checked % (8 if run.small else 40):
            continue
        # bisection over feasibility programmes, and the programme as printed
        low, high = 0.0, 4 * float(bound)
        while high - low > CLOSE * high:
            middle = (low + high) / 2
            solved += 1
            low, high = (low, middle) if _literal(job, middle).status == 0 else (middle, high)
        searched += 1
        printed = float(_literal(job).fun)
        apart += abs(high - bound) > 10 * CLOSE * bound or abs(printed - bound) > CLOSE * bound
    figures = {"checked": checked, "broken": broken, "bisections": searched, "apart": apart}
    figures["programmes"] = solved
    return say(judge(not broken and not apart), figures, each=solved / searched)


def _confirm_quotients(shown: Shown) -> bool:
    """Confirm that a task bound to the first of two pooled servers only loses time by vCPU on the second."""
    job = read_job(shown)
    (load,), ((first, other),), (limit,) = job.load, job.efficiency, job.limits
    spent = [(load - part) / first + part / other for part in (Fraction(0), Fraction(1, 1000))]
    spares = (HALF, Fraction(1, 4), Fraction(1, 100), Fraction(0))
    times = [load / (first * (limit - spare)) for spare in spares]
    return (
        job.groups == ((0, 1),)
        and spent[0] <= job.energy_cap < spent[1]
        and all(later < sooner for sooner, later in itertools.pairwise(times))
        and as_text(times[-1]) == shown["infimum"]
    )


@claim("quotients", confirm=_confirm_quotients)
def _check_quotients(run: Run, say: Sentences) -> Finding:
    def flaw(job: model.SingleJob) -> Details:
        bound, parts = model.relaxation(job)
        # what the idle part gets, the other one lacks
        return {"infimum": as_text(bound)} if parts[0][1] == 0 else None

    pooled = (
        model.SingleJob((load,), ((1, HALF),), ((0, 1),), (limit,), load)
        for load, limit in itertools.product((1, 2, 3), repeat=2)
    )
    searched = find_flaw(pooled, flaw)
    jobs, _, idle = count(jobs_to_place(run), lambda job: all(map(all, model.relaxation(job).parts)))
    return found_correction(say, searched, {"optima_with_idle_parts": idle}, jobs=jobs)


def _confirm_equation_54(shown: Shown) -> bool:
    load, efficiency, limit, part, p, horizon, vcpu = (
        Fraction(shown[name]) for name in ("load", "efficiency", "limit", "l", "p", "T", "c")
    )
    printed = efficiency * p >= part == load and p <= limit * horizon and vcpu >= 0 and part >= 0
    return printed and p != vcpu * horizon


@claim("equation-54", confirm=_confirm_equation_54)
def _check_equation_54(run: Run, say: Sentences) -> Finding:
    checked = differ = negative = 0
    for job in itertools.islice(jobs_to_place(run), 0, None, 8 if run.small else 40):
        found = _literal(job)  # without p >= 0
        pairs = len(job.load) * job.servers
        optimum = float(found.fun)
        checked += 1
        differ += abs(optimum - model.relaxation(job).bound) > CLOSE * optimum
        negative += min(found.x[pairs : 2 * pairs].tolist()) < -CLOSE
    figures = {"checked": checked, "differ": differ, "negative_p": negative}
    shown = {"load": 1, "efficiency": 1, "limit": 1, "l": 1, "p": 1, "T": 1, "c": 0}
    verdict = CORRECTED if not differ and not negative else NOT_REPRODUCED
    return say(verdict, figures, counterexample=shown)


# section 4.3: TaPRA ----------------------------------------------------------------------------------


def _confirm_rounding(shown: Shown) -> bool:
    """Confirm for a task on two servers: T is convex in the part f on the first, and larger on both sides."""
    job = read_job(shown)
    ((first, other),), (a, b), load = job.efficiency, job.limits, Fraction(job.load[0])

    def horizon(f: Fraction) -> model.Number:
        if not 0 <= f <= 1 or load * (f / first + (1 - f) / other) > job.energy_cap:
            return math.inf
        return max(load * f / first / a, load * (1 - f) / other / b)

    part = Fraction(shown["parts"][0][0])
    step = Fraction(1, 1000)
    return (
        job.groups == ((0,), (1,))
        and horizon(part) < min(horizon(part - step), horizon(part + step))
        and part < HALF
        and load / other > job.energy_cap >= load / first
    )


@claim("rounding", confirm=_confirm_rounding)
def _check_rounding(run: Run, say: Sentences) -> Finding:
    def flaw(job: model.SingleJob) -> Details:
        parts = model.relaxation(job).parts
        shown = {"parts": [as_texts(row) for row in parts]}
        placed = model.largest_parts(parts)
        return shown if not job.keeps_cap(placed) and _confirm_rounding(show_job(job) | shown) else None

    grid = itertools.product((Fraction(x, 10) for x in range(10, 20)), range(1, 11))
    cases = (model.SingleJob((1,), ((1, HALF),), ((0,), (1,)), (1, limit), cap) for cap, limit in grid)
    searched = find_flaw(cases, flaw)
    checked, _, beyond = count(
        jobs_to_place(run), lambda job: job.keeps_cap(model.largest_parts(model.relaxation(job).parts))
    )
    figures = {"checked": checked, "beyond_the_cap": beyond}
    return say(judge(searched.found), figures, witness=searched.found)


def _confirm_rec(shown: Shown) -> bool:
    """Confirm that no server is more efficient than those of the tasks, and still the cap is exceeded."""
    job, placement = read_job(shown), tuple(shown["placement"])
    none = all(max(row) == row[j] for row, j in zip(job.efficiency, placement, strict=True))
    return none and job.energy(placement) > job.energy_cap


@claim("rec", confirm=_confirm_rec)
def _check_rec(run: Run, say: Sentences) -> Finding:
    starts = wrong = 0

    def flaw(job: model.SingleJob) -> Details:
        nonlocal starts, wrong
        feasible = job.least_energy() <= job.energy_cap
        for placement in itertools.product(range(job.servers), repeat=len(job.load)):
            found = model.rec(job, placement)
            starts += 1
            wrong += (found is not None) != feasible or (found is not None and not job.keeps_cap(found))
        return None if feasible else {"placement": list(model.most_efficient(job))}

    below = [
        model.SingleJob((load,) * n, ((slow,) * m,) * n, tuple((j,) for j in range(m)), (1,) * m, n * load)
        for n, m, load, slow in itertools.product((1, 2), (1, 2), (1, 2), (HALF, Fraction(9, 10)))
    ]
    searched = find_flaw(itertools.chain(below, jobs_to_place(run)), flaw)
    if wrong:
        return say(NOT_REPRODUCED, {"wrong": wrong}, starts=starts)
    return found_correction(say, searched, {"starts": starts}, wrong=wrong)


def _confirm_rec_delta(shown: Shown) -> bool:
    job, placement = read_job(shown), tuple(shown["placement"])
    before = model.optra(job, placement).jct
    times = [model.optra(job, model.moved(placement, shown["task"], j)).jct for j in shown["servers"]]
    return (
        before == math.inf
        and as_texts(times) == shown["jct"]
        and len(set(times)) == len(times) == 2
        and all(float(time) - before == -math.inf for time in times)
        and all(job.efficiency[shown["task"]][j] > job.efficiency[0][placement[0]] for j in shown["servers"])
    )


@claim("rec-change", confirm=_confirm_rec_delta)
def _check_rec_delta(run: Run, say: Sentences) -> Finding:
    undefined = same = 0

    def flaw(job: model.SingleJob) -> Details:
        nonlocal undefined, same
        for start in range(job.servers):
            before = model.optra(job, (start,)).jct
            better = [j for j in range(job.servers) if job.efficiency[0][j] > job.efficiency[0][start]]
            times = {j: model.optra(job, (j,)).jct for j in better}
            if before < math.inf:
                # the change orders the moves as the new time does
                same += all(
                    (a - before < b - before) == (a < b) for a in times.values() for b in times.values()
                )
                continue
            undefined += math.inf in times.values()
            finite = [j for j, t in times.items() if t < math.inf]
            if len({times[j] for j in finite}) == 2:
                shown = {"placement": [start], "task": 0, "servers": finite[:2]}
                return shown | {"jct": as_texts(times[j] for j in finite[:2])}
        return None

    cases = (
        model.SingleJob((1,), (row,), tuple((j,) for j in range(m)), limits, 1)
        for m in (2, 3)
        for row in itertools.product(FACTORS, repeat=m)
        for limits in itertools.product((0, 1, 2), repeat=m)
    )
    searched = find_flaw(cases, flaw)
    return found_correction(say, searched, {"undefined": undefined, "same_order": same})


@claim("local-search-ends")
def _check_ends(run: Run, say: Sentences) -> Finding:
    paths = steps = most = rising = longer = 0
    for job in jobs_to_place(run):
        for start in model.placements(job):
            path = model.local_search(job, start)
            levels = [sorted(model.group_times(job, placement), reverse=True) for placement in path]
            paths += 1
            steps += len(path) - 1
            most = max(most, len(path) - 1)
            rising += any(after >= before for before, after in itertools.pairwise(levels))
            longer += any(after[0] > before[0] for before, after in itertools.pairwise(levels))
    figures = {"paths": paths, "moves": steps, "most_moves": most, "not_falling": rising, "longer": longer}
    return say(judge(not rising and not longer), figures)


def _confirm_local_optimum(shown: Shown) -> bool:
    """Confirm by linear programmes that no single move helps, and that the better placement keeps the cap."""
    job, ended, better = read_job(shown), tuple(shown["ended"]), tuple(shown["better"])
    least, best = (model.least_time(job, placement) for placement in (ended, better))
    return (
        job.keeps_cap(ended)
        and job.keeps_cap(better)
        and all(model.least_time(job, after) >= least for after in model.moves(job, ended))
        and as_texts([least, best]) == shown["jct"]
        and best < least
    )


@claim("local-search-optimal", confirm=_confirm_local_optimum)
def _check_local_optimum(run: Run, say: Sentences) -> Finding:
    ends = improvable = 0
    worst: dict[str, model.Number] = {"tapra": 1, "tapra-fast": 1}

    def flaw(job: model.SingleJob) -> Details:
        nonlocal ends, improvable
        for start in model.placements(job):
            ended = model.local_search(job, start)[-1]
            ends += 1
            improvable += any(
                model.optra(job, after).jct < model.optra(job, ended).jct for after in model.moves(job, ended)
            )
        least, placement = model.best(job)
        for name, plan in (("tapra", model.tapra(job)), ("tapra-fast", found := model.tapra_fast(job))):
            if plan is not None:
                worst[name] = max(worst[name], Fraction(plan.evaluation.jct) / least)
        if found is None or found.evaluation.jct == least:
            return None
        if any(len(group) > 1 for group in job.groups):
            return None
        return {
            "ended": list(found.placement),
            "better": list(placement),
            "jct": as_texts([found.evaluation.jct, least]),
        }

    searched = find_flaw(itertools.chain(jobs_to_place(run), enumerate_jobs(2, 2, (1, 2, 3))), flaw)
    figures = {
        "ends": ends,
        "improvable_by_one_move": improvable,
        "worst": {n: str(w) for n, w in worst.items()},
    }
    takes = ", ".join(f"{n} takes {float(w):.2f}" for n, w in worst.items())
    if improvable:
        return say(NOT_REPRODUCED, figures, takes=takes)
    return found_correction(say, searched, figures, takes=takes)


@claim("fast-start")
def _check_fast_start(run: Run, say: Sentences) -> Finding:
    def starts_cheapest(job: model.SingleJob) -> Iterator[bool]:
        least = min(map(job.energy, model.placements(job)))
        yield least == job.least_energy() and model.tapra_fast(job) is not None
        tight = dataclasses.replace(job, energy_cap=least - Fraction(1, 100))
        yield model.tapra_fast(tight) is None and not any(True for _ in model.placements(tight))

    return say.counted(count(jobs_to_place(run), starts_cheapest), "wrong")


def _two_tasks(n: int) -> model.SingleJob:
    """Return a small and a large task that share the first server; the cap lets only one of them move.

    The search moves the small one, which comes first; the relaxation moves the large one.
    """
    return model.SingleJob((1, n), ((1, HALF),) * 2, ((0,), (1,)), (1, n), 1 + 2 * n)


def _confirm_fast(shown: Shown) -> bool:
    job = read_job(shown)
    if show_job(job) != show_job(_two_tasks(int(job.load[1]))):
        return False
    n = Fraction(job.load[1])
    moved_part = n * (n + 1) / (n + 2)  # of the relaxation; both extreme splits of it give the same plan
    plans = []
    for small in (Fraction(0), Fraction(1)):
        large = (moved_part - small) / n
        plan = model.tapra_from(job, [[1 - small, small], [1 - large, large]])
        plans.append(None if plan is None else plan.evaluation.jct)
    own = model.tapra_fast(job)
    return (
        own is not None
        and plans == [2, 2]
        and as_texts([own.evaluation.jct, 2]) == [shown["fast"], shown["tapra"]]
    )


@claim("fast-within-5-percent", confirm=_confirm_fast)
def _check_fast(run: Run) -> Finding:
    episodes = 60 if run.small else 200
    # the paper's points are means of 50 jobs
    size = {"tasks": 100, "arity": 8, "server_caps": run.choice(OPEN["LIMITS"])}
    found = run.play(SINGLE, TAPRA, episodes, parameters=size)
    own, other = (found.metric(label, "jct") for label in TAPRA)
    median, worse = float(np.median(other / own)), float(np.mean(other > 1.05 * own))
    n = 40
    job = _two_tasks(n)
    plan = model.tapra_fast(job)
    text = (
        f"the median is {median:.3f} times TaPRA's: {worse:.0%} are more than 5% longer, where the energy cap"
    )
    text += " is tight"
    shown = None
    if plan is not None:
        ratio = Fraction(plan.evaluation.jct) / model.best(job)[0]
        shown = show_job(job) | {"fast": as_text(plan.evaluation.jct), "tapra": 2}
        text += (
            f". In a family of jobs with n tasks it is n / 2 times as long (n = {n}: {ratio}), so no "
            "factor bounds it"
        )
    mean = excess("TaPRA-fast against TaPRA", other, own)
    what = f"mean of {episodes} jobs with 100 tasks"
    figures: dict[str, Any] = {"episodes": episodes, "median": median, "more_than_5": worse}
    finding = found_by([mean], level(0.05), what=what, more=text, **figures)
    return dataclasses.replace(finding, witness=shown)
