"""Section 5: OnTaPRA, DRC and MAR."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.papers import CORRECTED, NOT_REPRODUCED, Finding, Run, Shown, judge
from schedgym.papers.exact import as_text
from schedgym.papers.judging import excess, larger
from schedgym.papers.searches import Sentences
from schedgym.papers.shi2017.instances import (
    FACTORS,
    SHARES,
    claim,
    find_flaw,
    found_correction,
    never_planned,
    read_job,
)
from schedgym.papers.shi2017.model import one_job, online
from schedgym.papers.shi2017.runs import ONLINE, found_by, play_jobs, run_alone

OWN = {"OnTaPRA": "ontapra"}


def _confirm_none_planned(shown: Shown) -> bool:
    """Confirm that every placement of the waiting job exceeds the cap or uses a server without resources."""
    job = read_job(shown)
    return all(one_job.optra(job, p).jct == math.inf for p in one_job.placements(job))


@claim("algorithm-4", confirm=_confirm_none_planned)
def _check_algorithm_4(run: Run, say: Sentences) -> Finding:
    cases = (
        one_job.SingleJob((1,), (row,), tuple((j,) for j in range(len(row))), (1,) * len(row), cap)
        for m in (1, 2)
        for row in itertools.product(FACTORS, repeat=m)
        for cap in (Fraction(1), Fraction(11, 10))
    )
    searched = find_flaw(cases, never_planned)
    played = play_jobs(run, OWN, 40, 3 if run.small else 10, mar=True)
    failures, left = played.metric("OnTaPRA", "failures"), 40 - played.metric("OnTaPRA", "finished")
    figures = {"failures": failures.tolist(), "unfinished": left.tolist()}
    if left.any() or not failures.all():
        return say(NOT_REPRODUCED, figures, mean=failures.mean())
    return found_correction(say, searched, figures, mean=failures.mean())


def _alone(load: int, capacity: int, arity: int) -> online.Outcome:
    """Run one task alone in a data centre of equal servers, with DRC."""
    servers = arity**3 // 4
    job = online.Job(0, (load,), ((1,) * servers,))
    limits = one_job.fat_tree(arity, *SHARES)
    return online.Simulation(online.Workload((job,), (capacity,) * servers, limits, 1)).run()


def _confirm_equation_59(shown: Shown) -> bool:
    """Confirm by the environment: base vCPU and completion, with and without DRC."""
    task = shown["arity"], float(shown["capacity"]), float(shown["load"])
    with_drc, without = (run_alone(*task, energy_cap_ratio=[1.0], drc=drc) for drc in (True, False))
    planned, online = task[2] / with_drc.amount[0, 0], with_drc.end[-1]
    stated = [float(Fraction(shown[name])) for name in ("jct_off", "jct_on")]
    return (
        with_drc.start[0] == 0.0
        and np.allclose([planned, online], stated, rtol=1e-12)
        and bool(online < planned)
        and bool(np.isclose(without.end[-1], planned, rtol=1e-12))
    )


def _beyond_equation_59(env: Any) -> Floats:
    """Return by which share each job's online JCT exceeds waiting time plus offline JCT."""
    from schedgym.problems.parallel_jct.metrics import fates

    record = env.record()
    fate, jobs = fates(record), np.asarray(record.workload.tasks["job"])
    arrival, start = np.asarray(record.workload.jobs["arrival"]), np.array(fate["start"])
    planned = np.zeros(len(start))
    leq = (
        np.asarray(record.workload.tasks["load"])[record.job]
        / np.asarray(record.workload.tasks["efficiency"])[record.job, record.server]
    )
    np.maximum.at(planned, jobs[record.job], leq / record.amount[:, 0])
    beyond: Floats = (np.array(fate["completion"]) - arrival) / (start - arrival + planned) - 1
    return beyond


@claim("equation-59", confirm=_confirm_equation_59)
def _check_equation_59(run: Run, say: Sentences) -> Finding:
    played = play_jobs(run, OWN, 30, 2, {"drc": [True, False]}, mar=True, observe=_beyond_equation_59)
    beyond = {drc: np.concatenate(played.values("OnTaPRA", drc=drc)) for drc in (True, False)}
    with_drc, without = beyond[True], beyond[False]
    figures = {
        "jobs": len(with_drc),
        "largest_with_drc": float(with_drc.max()),
        "mean_with_drc": float(with_drc.mean()),
        "largest_without": float(np.abs(without).max()),
    }
    found = _alone(1, 1, 2)
    shown: dict[str, Any] = {"load": 1, "capacity": 1, "arity": 2, "waiting": 0}
    planned = found.launches[0].plan.evaluation.jct
    shown |= {"jct_off": as_text(planned), "jct_on": as_text(found.charged[0])}
    right = with_drc.max() <= 1e-9 and np.abs(without).max() <= 1e-9
    told = {"less": -100 * with_drc.mean(), "others": len(without)}
    return say(CORRECTED if right else NOT_REPRODUCED, figures, counterexample=shown, **told)


def _confirm_drc_limits(shown: Shown) -> bool:
    """Confirm by the environment: the vCPU of the task, against its rack, its pod and the data centre."""
    arity, capacity = shown["arity"], float(shown["capacity"])
    record = run_alone(arity, capacity, float(shown["load"]), energy_cap_ratio=[1.0])
    base, extra = record.amount[0].tolist()
    sizes = (arity // 2, arity**2 // 4, arity**3 // 4)
    limits = [float(share) * size * capacity for share, size in zip(SHARES, sizes, strict=True)]
    stated = [float(Fraction(shown[name])) for name in ("base", "extra")]
    return (
        bool(np.allclose([base, extra], stated, rtol=1e-12))
        and base <= min(limits) * (1 + 1e-12)
        and base + extra > max(limits)
    )


def _beyond_the_rack(env: Any) -> list[int]:
    """Return how many pieces of tasks there are, and how many of them have more than their job's share."""
    record = env.record()
    # the run has validated the launches: base vCPU within all limits on what was available then
    cpu = float(record.workload.cluster["cpu"][0])
    size = int(record.workload.cluster["arity"]) // 2
    beyond = record.amount.sum(axis=1) > float(SHARES[0]) * size * cpu * (1 + 1e-9)
    return [len(beyond), int(beyond.sum())]


@claim("drc-limits", confirm=_confirm_drc_limits)
def _check_drc_limits(run: Run, say: Sentences) -> Finding:
    played = play_jobs(run, OWN, 30, 2, {"drc": [True, False]}, mar=True, observe=_beyond_the_rack)
    counts = {drc: np.sum(played.values("OnTaPRA", drc=drc), axis=0).tolist() for drc in (True, False)}
    figures = {"rows": counts[True][0], "beyond": counts[True][1], "beyond_without_drc": counts[False][1]}
    (task,) = _alone(1, 1, 2).intervals[0].running
    shown = {"load": 1, "capacity": 1, "arity": 2, "base": as_text(task.base), "extra": as_text(task.extra)}
    right = counts[True][1] and not counts[False][1]
    return say(CORRECTED if right else NOT_REPRODUCED, figures, counterexample=shown)


@claim("work-conserving")
def _check_conserving(run: Run, say: Sentences) -> Finding:
    calls = idle = drift = 0
    for _ in range(300 if run.small else 20_000):
        n = int(run.rng.integers(1, 6))
        loads = [Fraction(int(x)) for x in run.rng.integers(1, 9, n)]
        base = [Fraction(int(x), 8) for x in run.rng.integers(1, 9, n)]
        capacity = sum(base, Fraction(int(run.rng.integers(0, 9)), 4))
        held: list[one_job.Number] = list(base)
        here = list(range(n))
        while here:  # Algorithm 5 after every completion, in addition to what it gave before
            left = [loads[i] for i in here]
            more = online.residual_shares(capacity, [held[i] for i in here], left)
            once = online.residual_shares(capacity, [base[i] for i in here], left)
            for i, extra in zip(here, more, strict=True):
                held[i] += extra
            calls += 1
            idle += one_job.total(held[i] for i in here) != capacity
            drift += any(held[i] != base[i] + extra for i, extra in zip(here, once, strict=True))
            here.pop(int(run.rng.integers(len(here))))
    figures = {"calls": calls, "idle": idle, "differ_from_one_call": drift}
    return say(judge(not idle and not drift), figures)


@claim("mar")
def _check_mar(run: Run) -> Finding:
    episodes, jobs = (4, 80) if run.small else (10, 540)
    policies, options = {"with": "ontapra", "without": "ontapra"}, {"without": {"mar": False}}
    played = run.play(ONLINE, policies, episodes, parameters={"jobs": jobs}, options=options)
    with_test, without = (played.metric(label, "average_jct") for label in ("with", "without"))
    found = excess("OnTaPRA's average JCT without it", without, with_test)
    return found_by([found], larger(), what=f"{jobs} jobs, with DRC")
