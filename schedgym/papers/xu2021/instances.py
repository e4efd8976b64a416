"""The paper's parameters, small instances, and how findings show them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from schedgym.papers import Run, Shown
from schedgym.papers.exact import Number
from schedgym.papers.judging import Confirm
from schedgym.papers.registry import Claims
from schedgym.papers.searches import Details, Searched, confirm_by, smallest_flaw
from schedgym.papers.xu2021 import model
from schedgym.papers.xu2021.model import Instance, Job, PooledJob, Schedule

claim = Claims.of("xu2021")
OPEN = claim.points  # that the paper leaves open
K = 2  # of the paper's experiments
GAMMA: int = OPEN["HORIZON"].value  # of the paper's experiments [slots]
Case = tuple[tuple[PooledJob, ...], int]  # jobs, cores
#: where lambda can start: at 0, or above all weights; claims that hold for neither or both search both
STARTS = tuple(sorted(map(int, OPEN["START"].choices.values())))


def show_instance(jobs: Sequence[PooledJob], cores: int) -> dict[str, Any]:
    """Return an instance as a finding shows it."""
    return {
        "arrival": [a for a, _, _ in jobs],
        "processing": [p for _, p, _ in jobs],
        "cpu": [d for _, _, d in jobs],
        "cores": cores,
    }


def read_instance(instance: Shown) -> Case:
    """Return the instance that :func:`show_instance` shows."""
    columns = (instance["arrival"], instance["processing"], instance["cpu"])
    return tuple(zip(*columns, strict=True)), instance["cores"]


def size_of(jobs: Sequence[PooledJob], cores: int) -> tuple[int, ...]:
    """Return the size of an instance: jobs, cores, work, slots, arrivals."""
    work, length = sum(p * d for _, p, d in jobs), sum(p for _, p, _ in jobs)
    return (len(jobs), cores, work, length, sum(a for a, _, _ in jobs), *itertools.chain(*jobs))


def find_flaw(cases: Iterable[Case], flaw: Callable[..., Details]) -> Searched:
    """Find the smallest case (jobs, cores) with a flaw."""
    return smallest_flaw(
        cases,
        lambda case: flaw(*case),
        size=lambda case: size_of(*case),
        show=lambda case: show_instance(*case),
    )


def confirm_flaw(
    flaw: Callable[..., Details],
    objective: Callable[[Sequence[PooledJob], Schedule, int], Number] | None = None,
    **parameters: str,
) -> Confirm:
    """Return a confirmation: the instance that is shown has the flaw.

    Args:
        flaw: what the search asks of jobs and cores.
        objective: of schedules; with it, the one that is shown takes the place of the best one: ``flaw`` is
            also given ``best``, which returns the objective and the schedule.
        parameters: parameter of ``flaw`` -> name under which its value is shown.
    """

    def confirm(shown: Shown) -> bool:
        given: dict[str, Any] = {name: shown[key] for name, key in parameters.items()}
        if objective is not None:
            schedule = as_schedule(shown["schedule"])
            if not model.feasible(*read_instance(shown), schedule):
                return False
            given["best"] = lambda jobs, cores, k=1: (objective(jobs, schedule, k), schedule)
        return confirm_by(read_instance, lambda case: flaw(*case, **given))(shown)

    return confirm


def tiny_instances(run: Run, latest: int = 0) -> Iterator[Case]:
    """Yield instances with up to three jobs (paper scale: larger ones, and four jobs that arrive at once)."""
    counts = [(1, 4, 3), (2, 3, 3), (3, 2 if latest else 3, 2)]
    if not run.small:
        counts = [(1, 6, 4), (2, 5, 4), (3, 3 if latest else 4, 3)]
    if not run.small and not latest:
        counts.append((4, 3, 2))
    for count, longest, widest in counts:
        for cores in range(1, 4 if run.small else 5):
            for jobs in model.multisets(count, longest, widest, latest if count < 3 else min(latest, 1)):
                yield jobs, cores


def as_rows(schedule: Schedule) -> list[list[int]]:
    """Return a schedule as a finding shows it: the cores of each job, by slot."""
    return [list(given) for given in schedule]


def as_schedule(rows: Sequence[Sequence[int]]) -> Schedule:
    """Return the schedule that :func:`as_rows` shows."""
    return [tuple(row) for row in rows]


def pooled(jobs: Sequence[PooledJob], cores: int) -> Instance:
    """Return the instance with all cores on one server."""
    return Instance([Job(*job) for job in jobs], [cores])


def equation_27(jobs: Sequence[PooledJob], cores: int) -> Fraction:
    """Return Gamma of Eq. 27."""
    return model.eq27(pooled(jobs, cores))


def rule(name: str, jobs: Sequence[PooledJob], cores: int) -> Schedule:
    """Return the schedule of a priority rule; ties go to earlier arrival, then to the lower number."""
    limit = max(a for a, _, _ in jobs) + sum(p * d for _, p, d in jobs)
    return [tuple(used) for used in model.simulate(pooled(jobs, cores), name, limit=limit).used]


def literal_run(
    jobs: Sequence[PooledJob], cores: int, gamma: Any, slots: int, *, start: int = 0, **options: Any
) -> Schedule:
    """Run OCORP, or OCORP+ if ``alpha`` is given, as printed: a job waits unless its omega is negative.

    There are two corrections: a job gets no more cores than it has work left, and case 2 of Eq. 22 sums to
    j - 1.

    Args:
        jobs: in order of arrival.
        cores: total number of cores. They are those of one server: with a switching cost, too, taking the
            cheapest core after the other minimises Eq. 32, as each further core of a job costs more.
        gamma: Gamma; the target of lambda per slot is p / (Gamma - a).
        slots: number of slots after which to stop at the latest.
        start: lambda of a job in its first slot, which the paper does not give.
        options: others of :class:`~schedgym.papers.xu2021.model.Options`; by default those of the
            experiments: k = 2, mu = t^(k + 1/2).
    """
    name = "ocorp+" if options.get("alpha") else "ocorp"
    fixed = {"literal": True, "level": "job", "gamma": gamma, "lambda0": start}
    return [
        tuple(used)
        for used in model.simulate(pooled(jobs, cores), name, limit=slots, **fixed, **options).used
    ]
