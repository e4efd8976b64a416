"""Sections 3 and 4.1: the model, and the allocation of resources by OptRA."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, Finding, Run, Shown, judge
from schedgym.papers.exact import as_text, as_texts
from schedgym.papers.searches import Details, Sentences, confirm_by, count, smallest_flaw
from schedgym.papers.shi2017.instances import HALF, claim, draw_job
from schedgym.papers.shi2017.model.one_job import SingleJob, group_times, least_time, optra

# instances -------------------------------------------------------------------------------------------


def _allocation(weights: Sequence[Sequence[int]], load: Sequence[int], limit: Sequence[int]) -> SingleJob:
    """Return an instance of OptRA, P [constraint][task], L and B, as a job with a server for each task."""
    n = len(load)
    groups = tuple(tuple(i for i in range(n) if row[i]) for row in weights)
    kept = tuple(tuple(weight for weight in row if weight) for row in weights)
    return SingleJob(tuple(load), ((1,) * n,) * n, groups, tuple(limit), weights=kept)


def _draw_allocation(rng: np.random.Generator, tasks: int = 4, constraints: int = 4) -> SingleJob:
    """Draw an instance with coefficients 0 to 2, every task in a constraint and no constraint empty."""
    n, r = int(rng.integers(1, tasks + 1)), int(rng.integers(1, constraints + 1))
    weights = rng.integers(0, 3, (r, n))
    weights[int(rng.integers(r)), weights.sum(axis=0) == 0] = 1
    weights = weights[weights.sum(axis=1) > 0]
    loads, limits = rng.integers(1, 7, n), rng.integers(1, 7, len(weights))
    return _allocation(weights.tolist(), loads.tolist(), limits.tolist())


def _own_servers(job: SingleJob) -> tuple[int, ...]:
    """Return the placement of each task on its own server."""
    return tuple(range(job.tasks))


# section 3: the model --------------------------------------------------------------------------------


@claim("energy")
def _check_energy(run: Run, say: Sentences) -> Finding:
    def exact(_: int) -> bool:
        alpha, load, parts = (int(x) for x in run.rng.integers(1, 9, 3))
        left = own = Fraction(load) / Fraction(int(run.rng.integers(1, 5)), 4)
        spent = Fraction(0)
        for k in range(parts):  # also if its vCPU change on the way, as by DRC
            vcpu = Fraction(int(run.rng.integers(1, 9)), 4)
            lasts = left / vcpu if k == parts - 1 else left / vcpu / int(run.rng.integers(2, 5))
            spent += alpha * vcpu * lasts
            left -= vcpu * lasts
        return spent == alpha * own and left == 0

    return say.counted(count(range(500 if run.small else 20_000), exact), "differ")


def _summed(energies: Sequence[int]) -> Details:
    """Return the sum for each task t as printed, and the sum that is meant, if they differ."""
    printed = [len(energies) * x for x in energies]
    return None if sum(energies) in printed else {"printed": printed, "meant": sum(energies)}


@claim("equation-9", confirm=confirm_by(lambda shown: shown["energy"], _summed))
def _check_equation_9(run: Run, say: Sentences) -> Finding:
    cases = (own for n in (1, 2) for own in itertools.combinations_with_replacement((1, 2, 3), n))
    searched = smallest_flaw(cases, _summed, size=sum, show=lambda energies: {"energy": list(energies)})
    figures = {"checked": searched.checked, "different": searched.flawed}
    return say(CORRECTED if searched.found else HOLDS, figures, counterexample=searched.found)


# section 4.1: OptRA ----------------------------------------------------------------------------------


def _confirm_convexity(shown: Shown) -> bool:
    """Confirm by second differences, for which no derivative is needed."""
    load, step = Fraction(shown["load"]), HALF

    def second(c: int) -> Fraction:
        return load / (c + step) - 2 * load / c + load / (c - step)

    first, later = (second(c) for c in shown["vcpu"])
    exact = [2 * load / Fraction(c) ** 3 for c in shown["vcpu"]]
    return first > later > 0 and as_texts(exact) == shown["second_derivative"] and exact[0] > exact[1]


@claim("convexity", confirm=_confirm_convexity)
def _check_convexity(run: Run, say: Sentences) -> Finding:
    def convex(_: int) -> bool:
        n = int(run.rng.integers(1, 5))
        loads = [Fraction(int(x)) for x in run.rng.integers(1, 9, n)]
        one, other = ([Fraction(int(x), 4) for x in run.rng.integers(1, 33, n)] for _ in range(2))
        part = Fraction(int(run.rng.integers(0, 9)), 8)
        between = [part * a + (1 - part) * b for a, b in zip(one, other, strict=True)]
        times = [max(x / c for x, c in zip(loads, vcpu, strict=True)) for vcpu in (one, other, between)]
        return times[2] <= part * times[0] + (1 - part) * times[1]

    checked, _, bent = count(range(300 if run.small else 20_000), convex)
    figures = {"checked": checked, "not_convex": bent}
    shown = {"load": 1, "vcpu": [1, 2], "second_derivative": [2, "1/4"]}
    return say(CORRECTED if not bent else NOT_REPRODUCED, figures, counterexample=shown)


@claim("lemma-1")
def _check_lemma_1(run: Run, say: Sentences) -> Finding:
    def proportional(job: SingleJob) -> Iterator[bool]:
        alone = group_times(job, _own_servers(job))  # the times if there were no other constraint
        times, vcpu, longest, _ = optra(job, _own_servers(job))
        for p, u in itertools.product(range(job.tasks), range(len(alone))):
            if p in job.groups[u] and times[p] == longest == alone[u]:
                yield all(vcpu[i] == job.load[i] / alone[u] for i in job.groups[u])

    jobs = (_draw_allocation(run.rng) for _ in range(1_000 if run.small else 50_000))
    _, checked, broken = count(jobs, proportional)
    return say(judge(not broken), {"checked": checked, "broken": broken})


@claim("theorem-1")
def _check_theorem_1(run: Run, say: Sentences) -> Finding:
    from schedgym.solvers.planning import plan

    infeasible = worse = 0
    checked = 250 if run.small else 10_000
    for _ in range(checked):
        job = _draw_allocation(run.rng)
        vcpu = optra(job, _own_servers(job)).vcpus
        used = [sum(p * c for p, c in zip(row, vcpu, strict=True)) for row in job.matrix()]
        infeasible += min(vcpu) < 0 or any(x > b for x, b in zip(used, job.limits, strict=True))
        longest = max(x / c for x, c in zip(job.load, vcpu, strict=True))
        worse += longest != least_time(job, _own_servers(job))
    differ, planned = 0, 50 if run.small else 1_000
    for _ in range(planned):  # the same of the policies' kernel
        job = draw_job(run.rng)
        efficiency = [[float(x) for x in row] for row in job.efficiency]
        load, limits = [float(x) for x in job.load], [float(b) for b in job.limits]
        own = plan(
            load, efficiency, np.array(job.matrix(), dtype=float), limits, float(job.energy_cap), "tapra-fast"
        )
        if own is None:
            raise AssertionError("the cap can be kept, and all limits are positive")
        placement = tuple(own.placement.tolist())
        exact = [float(c) for c in optra(job, placement).vcpus]
        differ += not np.allclose(own.vcpu, exact, rtol=1e-12)
    figures = {"checked": checked, "infeasible": infeasible, "worse": worse}
    figures |= {"planned": planned, "kernel_differs": differ}
    return say(judge(not infeasible and not worse and not differ), figures)


def _confirm_coefficients(shown: Shown) -> bool:
    """Confirm for one task and a constraint A c <= B: Eq. 16 gives B / A; if A <= 0 <= B any c >= 0 fits."""
    (a,), (load,), (b,) = shown["coefficient"], shown["load"], shown["limit"]
    return (
        Fraction(load) / (a * load) * b == Fraction(shown["vcpu"]) < 0
        and all(a * c <= b for c in (1, 10, 100))
        and load / 100 < load / 10
    )


@claim("coefficients", confirm=_confirm_coefficients)
def _check_coefficients(run: Run, say: Sentences) -> Finding:
    checked = 0
    bad: dict[int, bool] = {}
    for a, load, b in itertools.product((-2, -1, 1, 2), (1, 2, 3), (1, 2, 3)):
        vcpu = Fraction(load, a * load) * b  # Eq. 16 for one task
        checked += 1
        bad[a] = bad.get(a, False) or vcpu < 0 or a * vcpu > b
    figures = {"checked": checked, "not_solved": [a for a in bad if bad[a]]}
    shown = {"coefficient": [-1], "load": [1], "limit": [1], "vcpu": -1}
    right = figures["not_solved"] == [-2, -1]
    return say(CORRECTED if right else NOT_REPRODUCED, figures, counterexample=shown)


def _confirm_equation_24(shown: Shown) -> bool:
    job, u, i = _allocation(shown["weights"], shown["load"], shown["limit"]), shown["u"], shown["i"]
    alone = group_times(job, _own_servers(job))
    times, vcpu, longest, _ = optra(job, _own_servers(job))
    return (
        alone[u] == longest
        and any(times[p] == longest for p in job.groups[u])
        and i not in job.groups[u]
        and as_texts([vcpu[i], job.load[i] / alone[u]]) == [shown["vcpu"], shown["printed"]]
        and shown["vcpu"] != shown["printed"]
    )


@claim("equation-24", confirm=_confirm_equation_24)
def _check_equation_24(run: Run, say: Sentences) -> Finding:
    def flaw(case: Shown) -> Details:
        job = _allocation(**case)
        vcpu, alone = optra(job, _own_servers(job)).vcpus, group_times(job, _own_servers(job))
        u = alone.index(max(alone))
        for i in range(2):
            printed = job.load[i] / alone[u]
            if i not in job.groups[u] and printed != vcpu[i]:
                return {"u": u, "i": i, "vcpu": as_text(vcpu[i]), "printed": as_text(printed)}
        return None

    tables = ([[a, b], [c, d]] for a, b, c, d in itertools.product((0, 1), repeat=4))
    used = [table for table in tables if all(map(any, [*table, *zip(*table, strict=True)]))]
    cases = (
        {"weights": table, "load": [*numbers[:2]], "limit": [*numbers[2:]]}
        for table, numbers in itertools.product(used, itertools.product((1, 2), repeat=4))
    )

    def size(case: Shown) -> tuple[int, ...]:
        numbers = [*case["load"], *case["limit"]]
        return (sum(map(sum, case["weights"])), sum(numbers), *numbers)

    checked, different, found = smallest_flaw(cases, flaw, size=size, show=dict)
    figures = {"checked": checked, "different": different}
    return say(HOLDS if found is None else CORRECTED, figures, counterexample=found)


@claim("closed-form-is-faster")
def _check_faster(run: Run, say: Sentences) -> Finding:
    seconds = {"closed form": 0.0, "simplex method": 0.0}
    for _ in range(20 if run.small else 200):
        job = _draw_allocation(run.rng, 8, 8)
        for name, solve in (("closed form", optra), ("simplex method", least_time)):
            began = time.process_time()
            solve(job, _own_servers(job))
            seconds[name] += time.process_time() - began
    ratio = seconds["simplex method"] / seconds["closed form"]
    return say(judge(ratio > 2), {"ratio": round(ratio, 1)}, times=ratio)
