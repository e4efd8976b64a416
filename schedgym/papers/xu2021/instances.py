"""The paper's parameters, small instances, and how findings show them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from schedgym.papers import Run, Shown, get_paper
from schedgym.papers.searches import Searched, smallest_flaw
from schedgym.papers.xu2021.readings import HORIZON, START
from schedgym.papers.xu2021.reference import Job, Schedule, literal_ocorp, multisets

__all__ = [
    "GAMMA",
    "K",
    "PAPER",
    "STARTS",
    "as_rows",
    "as_schedule",
    "find_flaw",
    "printed_run",
    "read_instance",
    "show_instance",
    "size_of",
    "tiny_instances",
]

PAPER = get_paper("xu2021")
K = 2  # of the paper's experiments
GAMMA: int = HORIZON.choices[HORIZON.default]  # of the paper's experiments [slots]
#: where lambda can start: at 0, or above all weights; claims that hold for neither or both search both
STARTS = tuple(sorted(map(int, START.choices.values())))


def show_instance(jobs: Sequence[Job], cores: int) -> dict[str, Any]:
    """Return an instance as a finding shows it."""
    return {
        "arrival": [a for a, _, _ in jobs],
        "processing": [p for _, p, _ in jobs],
        "cpu": [d for _, _, d in jobs],
        "cores": cores,
    }


def read_instance(instance: Shown) -> tuple[tuple[Job, ...], int]:
    """Return the instance that :func:`show_instance` shows."""
    columns = (instance["arrival"], instance["processing"], instance["cpu"])
    return tuple(zip(*columns, strict=True)), instance["cores"]


def size_of(jobs: Sequence[Job], cores: int) -> tuple[int, ...]:
    """Return the size of an instance: jobs, cores, work, slots, arrivals."""
    work, length = sum(p * d for _, p, d in jobs), sum(p for _, p, _ in jobs)
    return (len(jobs), cores, work, length, sum(a for a, _, _ in jobs), *itertools.chain(*jobs))


def find_flaw(
    cases: Iterable[tuple[Sequence[Job], int]],
    flaw: Callable[[Sequence[Job], int], dict[str, Any] | None],
) -> Searched:
    """Find the smallest case with a flaw."""
    return smallest_flaw(
        cases,
        lambda case: flaw(*case),
        size=lambda case: size_of(*case),
        show=lambda case: show_instance(*case),
    )


def tiny_instances(run: Run, latest: int = 0) -> Iterator[tuple[tuple[Job, ...], int]]:
    """Yield instances with up to three jobs (paper scale: larger ones, and four jobs that arrive at once)."""
    counts = [(1, 4, 3), (2, 3, 3), (3, 2 if latest else 3, 2)]
    if not run.small:
        counts = [(1, 6, 4), (2, 5, 4), (3, 3 if latest else 4, 3)]
    if not run.small and not latest:
        counts.append((4, 3, 2))
    for count, longest, widest in counts:
        for cores in range(1, 4 if run.small else 5):
            for jobs in multisets(count, longest, widest, latest if count < 3 else min(latest, 1)):
                yield jobs, cores


def as_rows(schedule: Schedule) -> list[list[int]]:
    """Return a schedule as a finding shows it: the cores of each job, by slot."""
    return [list(given) for given in schedule]


def as_schedule(rows: Sequence[Sequence[int]]) -> Schedule:
    """Return the schedule that :func:`as_rows` shows."""
    return [tuple(row) for row in rows]


def _step(t: int) -> float:
    """The paper's mu for k = 2."""
    return float(t ** (K + 0.5))


def printed_run(jobs: Sequence[Job], cores: int, gamma: float, slots: int, start: int = 0) -> Schedule:
    """Run literal OCORP as in the experiments: mu = t^(k + 1/2), k = 2; lambda begins at ``start``."""
    return literal_ocorp(jobs, cores, K, lambda job: job[1] / max(gamma - job[0], 1), _step, slots, start)
