"""Jobs for the searches, and how findings show them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from schedgym.papers import CORRECTED, Finding, Run, Shown
from schedgym.papers.exact import as_text, as_texts
from schedgym.papers.registry import Claims
from schedgym.papers.searches import Details, Searched, Sentences, smallest_flaw
from schedgym.papers.shi2017.model.one_job import Number, SingleJob, placements, tapra_fast

claim = Claims.of("shi2017")
OPEN = claim.points  # that the paper leaves open
HALF = Fraction(1, 2)
FACTORS: tuple[Number, ...] = (1, HALF)
SHARES = (Fraction(3, 10), Fraction(2, 10), Fraction(2, 10))  # beta of racks, pods, the data centre


def _number(text: int | str) -> Number:
    return math.inf if text == "inf" else Fraction(text)


def show_job(job: SingleJob) -> dict[str, Any]:
    """Return a job as a finding shows it."""
    return {
        "load": as_texts(job.load),
        "efficiency": [as_texts(row) for row in job.efficiency],
        "groups": [list(group) for group in job.groups],
        "limits": as_texts(job.limits),
        "energy_cap": as_text(job.energy_cap),
    }


def read_job(shown: Shown) -> SingleJob:
    """Return the job that a finding shows."""
    return SingleJob(
        tuple(_number(x) for x in shown["load"]),
        tuple(tuple(_number(x) for x in row) for row in shown["efficiency"]),
        tuple(tuple(group) for group in shown["groups"]),
        tuple(_number(x) for x in shown["limits"]),
        _number(shown["energy_cap"]),
    )


def _size(job: SingleJob) -> tuple[Number, ...]:
    """Return the size of a job: tasks, servers, groups, loads, limits, inefficiency, looseness of the cap."""
    slow = sum(1 / Fraction(x) for row in job.efficiency for x in row)
    sums = (sum(job.load), sum(job.limits), slow, job.energy_cap)
    return (job.tasks, job.servers, len(job.groups), *sums, *job.load, *job.limits)


def find_flaw(cases: Iterable[SingleJob], flaw: Callable[[SingleJob], Details]) -> Searched:
    """Find the smallest job with a flaw, and its details."""
    return smallest_flaw(cases, flaw, size=_size, show=show_job)


def never_planned(job: SingleJob) -> Details:
    """Return nothing to be added to a job that TaPRA-fast cannot plan; None for others."""
    return {} if tapra_fast(job) is None else None


def found_correction(
    say: Sentences, searched: Searched, figures: Mapping[str, Any] | None = None, **numbers: Any
) -> Finding:
    """Return the finding of a search against the printed form of a claim whose correction holds."""
    return say.against(CORRECTED, searched, figures, "jobs", **numbers)


def enumerate_jobs(tasks: int, servers: int, loads: Sequence[int] = (1, 2)) -> Iterator[SingleJob]:
    """Yield jobs on servers with 1 or 2 vCPU and no other limits, up to the order of tasks and equal servers.

    Every task has efficiency 1 on at least one server, and 1 or 1/2 on the others; the energy caps are all
    those that make a difference.
    """
    groups = tuple((j,) for j in range(servers))
    rows = [row for row in itertools.product(FACTORS, repeat=servers) if 1 in row]
    for chosen in itertools.combinations_with_replacement(itertools.product(loads, rows), tasks):
        load, efficiency = tuple(x for x, _ in chosen), tuple(row for _, row in chosen)
        for limits in itertools.combinations_with_replacement((1, 2), servers):
            job = SingleJob(load, efficiency, groups, limits)
            for cap in sorted({job.energy(placement) for placement in placements(job)}):
                yield dataclasses.replace(job, energy_cap=cap)


def draw_job(rng: np.random.Generator) -> SingleJob:
    """Draw up to 3 tasks and servers in whole numbers, with limits of servers, racks and the whole.

    The energy cap can be kept.
    """

    def whole(most: int) -> int:
        return int(rng.integers(1, most + 1))

    n, m = whole(3), whole(3)
    groups: list[tuple[int, ...]] = [(j,) for j in range(m)]
    limits: list[Number] = [whole(6) for _ in range(m)]
    cut = whole(m)
    for group in (tuple(range(cut)), tuple(range(cut, m)), tuple(range(m))):
        if len(group) > 1:
            groups.append(group)
            limits.append(whole(8))
    efficiency = tuple(tuple(Fraction(whole(4), 4) for _ in range(m)) for _ in range(n))
    job = SingleJob(tuple(whole(6) for _ in range(n)), efficiency, tuple(groups), tuple(limits))
    return dataclasses.replace(job, energy_cap=job.least_energy() * Fraction(int(rng.integers(4, 9)), 4))


def jobs_to_place(run: Run) -> Iterator[SingleJob]:
    """Yield jobs for searches of placements; all their caps can be kept."""
    yield from enumerate_jobs(1, 2)
    yield from enumerate_jobs(2, 2)
    yield from (draw_job(run.rng) for _ in range(60 if run.small else 1_000))
    if not run.small:
        yield from enumerate_jobs(2, 3)
        yield from enumerate_jobs(3, 2)
