"""Metrics of a schedule, and lower bounds on the mean response of all policies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from schedgym.papers.exact import quotient
from schedgym.papers.guan2022.model.instances import Decision, Instance, Interval, Number, Outcome
from schedgym.papers.guan2022.model.sharing import Problem, isolated_shares, site_demand, subsets

__all__ = [
    "PERCENTILES",
    "deviation",
    "job_bound",
    "lower_bounds",
    "metrics_assign",
    "metrics_fair",
    "pooled_srpt",
    "sharing_violations",
    "weighted_percentile",
]

PERCENTILES = (50, 90, 95, 99)


def metrics_assign(instance: Instance, outcome: Outcome) -> dict[str, Any]:
    """Return response times, use of the slots, and recomputations.

    utilisation: busy slot time / (slots * time from first arrival to the last end). load: sum of durations /
    (slots * span), None without a span. recomputations: instants at which some job was active;
    recomputations_waiting: of these, with a waiting task.
    """
    arrivals = [job.arrival for job in instance.jobs]
    durations = [duration for job in instance.jobs for duration, _ in job.tasks]
    response = [c - a for c, a in zip(outcome.completion, arrivals, strict=True)]
    span, slots = instance.span, sum(instance.slots)
    result: dict[str, Any] = {
        "mean_response": quotient(sum(response), len(response)),
        "max_response": max(response),
        "makespan": max(outcome.completion) - min(arrivals),
        "utilisation": quotient(sum(durations), slots * (max(outcome.completion) - min(arrivals))),
        "load": quotient(sum(durations), slots * span) if span else None,
        "recomputations": len(outcome.decisions),
        "recomputations_waiting": sum(
            any(map(any, decision.view.waiting.values())) for decision in outcome.decisions
        ),
        "longest_over_span": quotient(max(durations), span) if span else None,
    }
    for q in PERCENTILES:
        result[f"p{q}_response"] = float(np.percentile([float(x) for x in response], q))
    return result


def _clip(series: Sequence[Interval], until: Number) -> list[Interval]:
    """Return the part of a series up to an instant."""
    return [part._replace(end=min(part.end, until)) for part in series if part.begin < until]


def deviation(occupied: Sequence[int]) -> float:
    """Return the population standard deviation of the occupied slots over the active jobs."""
    mean = Fraction(sum(occupied), len(occupied))
    return math.sqrt(sum((x - mean) ** 2 for x in occupied) / len(occupied))


def _jain(occupied: Sequence[int]) -> Fraction:
    """Return (sum x)^2 / (n sum x^2). Choice: 1 when nothing runs."""
    squares = sum(x * x for x in occupied)
    return Fraction(sum(occupied) ** 2, len(occupied) * squares) if squares else Fraction(1)


def weighted_percentile(pairs: Sequence[tuple[float, Number]], q: Number) -> float:
    """Return the least value with at least q percent of the weight at or below it."""
    total = sum(weight for _, weight in pairs)
    reached: Number = 0
    for value, weight in sorted(pairs):
        reached += weight
        if reached * 100 >= q * total:
            return value
    return max(value for value, _ in pairs)


def metrics_fair(instance: Instance, outcome: Outcome) -> dict[str, Any]:
    """Return the metrics of :func:`metrics_assign`, and those of the aggregate allocations (occupied slots).

    Time with active jobs counts, up to the end ("") or to the last arrival ("_no_drain"; left out if no job
    is active before it): fairness_integral (of the standard deviation), mean_std (the integral over that
    time), p*_std, mean_jain. Sums over the decisions of :func:`sharing_violations`: sharing_violations_site,
    sharing_violations (over the groups), sharing_violations_associated (over groups of one site).
    """
    result = metrics_assign(instance, outcome)
    last = max(job.arrival for job in instance.jobs)
    for name, series in (("", outcome.series), ("_no_drain", _clip(outcome.series, last))):
        if not series:
            continue
        spread = [(deviation(list(part.occupied.values())), part.end - part.begin) for part in series]
        even = [(_jain(list(part.occupied.values())), part.end - part.begin) for part in series]
        time = sum(length for _, length in spread)
        result[f"fairness_integral{name}"] = math.fsum(value * length for value, length in spread)
        result[f"mean_std{name}"] = result[f"fairness_integral{name}"] / time
        result[f"mean_jain{name}"] = sum(float(value) * length for value, length in even) / time
        for q in PERCENTILES:
            result[f"p{q}_std{name}"] = weighted_percentile(spread, q)
    result["sharing_violations_site"] = result["sharing_violations"] = 0
    result["sharing_violations_associated"] = 0
    for decision in outcome.decisions:
        at_site, groups, single = sharing_violations(instance, decision)
        result["sharing_violations_site"] += at_site
        result["sharing_violations"] += groups
        result["sharing_violations_associated"] += single
    return result


def sharing_violations(instance: Instance, decision: Decision, tolerance: float = 0) -> tuple[int, int, int]:
    """Count (job, site) below min(d_ij, u_j / n), jobs below X_i by groups, and by groups of one site."""
    active, unfinished, slots = decision.view.active, decision.view.unfinished, instance.slots
    total: dict[int, Number] = Counter()
    at: dict[tuple[int, int], Number] = Counter()
    for (i, _, j), share in decision.shares.items():
        total[i] += share
        at[i, j] += share
    demand = [site_demand(instance, unfinished, i) for i in active]
    at_site = sum(
        at[i, j] < min(Fraction(row[j]), Fraction(u, len(active))) - tolerance
        for i, row in zip(active, demand, strict=True)
        for j, u in enumerate(slots)
    )
    problems = (
        Problem([unfinished[i] for i in active], slots, instance.groups),
        Problem(demand, slots, [(j,) for j in range(len(slots))]),
    )
    below = [
        sum(total[i] < x - tolerance for i, x in zip(active, isolated_shares(own), strict=True))
        for own in problems
    ]
    return at_site, below[0], below[1]


def job_bound(instance: Instance, i: int) -> Number:
    """Bound the response of job i by its longest task, and by its balanced fluid time on empty sites."""
    tasks = instance.jobs[i].tasks
    bound = max(duration for duration, _ in tasks)
    for inside in subsets(len(instance.slots)):
        work = sum(duration for duration, sites in tasks if inside.issuperset(sites))
        if work:
            bound = max(bound, quotient(work, sum(instance.slots[j] for j in inside)))
    return bound


def pooled_srpt(instance: Instance) -> Number:
    """Return the mean response of preemptive SRPT on one machine as fast as all slots together."""
    speed = sum(instance.slots)
    left = [sum(duration for duration, _ in job.tasks) for job in instance.jobs]
    clock = min(job.arrival for job in instance.jobs)
    total: Number = 0
    open_jobs = set(range(len(left)))
    while open_jobs:
        ready = [i for i in open_jobs if instance.jobs[i].arrival <= clock]
        future = [instance.jobs[i].arrival for i in open_jobs if instance.jobs[i].arrival > clock]
        if not ready:
            clock = min(future)
            continue
        i = min(ready, key=lambda i: (left[i], i))
        done_at = clock + quotient(left[i], speed)
        if future and min(future) < done_at:
            left[i] -= (min(future) - clock) * speed
            clock = min(future)
        else:
            clock = done_at
            total += clock - instance.jobs[i].arrival
            open_jobs.remove(i)
    return quotient(total, len(left))


def lower_bounds(instance: Instance) -> dict[str, Number]:
    """Return bounds on the mean response under any policy."""
    per_job = [job_bound(instance, i) for i in range(len(instance.jobs))]
    return {"per_job": quotient(sum(per_job), len(per_job)), "pooled_srpt": pooled_srpt(instance)}
