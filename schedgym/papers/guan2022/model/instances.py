"""Instances, what a policy sees of them, and what comes out of a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

__all__ = [
    "Counts",
    "Decision",
    "Instance",
    "Interval",
    "Job",
    "Number",
    "Outcome",
    "Shares",
    "Sites",
    "View",
    "make_instance",
]

Number = Any
"""int, float or Fraction"""
Sites = Sequence[int]
"""The ordered available sites of a group; the first is the associated one."""
Counts = dict[tuple[int, int], int]
"""(group, site) -> waiting tasks of one job assigned there"""
Shares = dict[tuple[int, int, int], Fraction]
"""(job, group, site) -> share in slots"""


class Job(NamedTuple):
    """The arrival of a job, and per task its duration and its available sites."""

    arrival: Number
    tasks: tuple[tuple[Number, tuple[int, ...]], ...]


class Instance:
    """Slots of each site, and jobs.

    Attributes:
        slots: number of slots of each site.
        jobs: the jobs.
        groups: the distinct ordered lists of sites. Choice: numbered by first appearance, going over the jobs
            and their tasks in order, unless a numbering is given.
        members: indices of the tasks of job i in group k, ascending [i][k].
    """

    def __init__(
        self, slots: Sequence[int], jobs: Sequence[Job], groups: Sequence[Sites] | None = None
    ) -> None:
        self.slots = tuple(slots)
        self.jobs = tuple(jobs)
        if groups is None:
            groups = list(dict.fromkeys(sites for job in self.jobs for _, sites in job.tasks))
        self.groups = tuple(tuple(sites) for sites in groups)
        if not self.jobs or min(self.slots) < 1:
            raise ValueError("an instance needs jobs, and a slot at every site")
        if len(set(self.groups)) != len(self.groups):
            raise ValueError("groups must be distinct")
        for job in self.jobs:
            if not job.tasks:
                raise ValueError("a job needs a task")
            for duration, sites in job.tasks:
                if not duration > 0 or not sites or len(set(sites)) != len(sites):
                    raise ValueError(f"bad task: {duration}, {sites}")
                if not all(0 <= j < len(self.slots) for j in sites) or sites not in self.groups:
                    raise ValueError(f"bad sites: {sites}")
        self.members = [
            [[x for x, (_, sites) in enumerate(job.tasks) if sites == group] for group in self.groups]
            for job in self.jobs
        ]

    @property
    def span(self) -> Number:
        """The time from the first arrival to the last."""
        arrivals = [job.arrival for job in self.jobs]
        return max(arrivals) - min(arrivals)


def make_instance(
    slots: Sequence[int],
    jobs: Sequence[tuple[Number, Sequence[tuple[int, Sites]]]],
    duration: Number = 1,
    groups: Sequence[Sites] | None = None,
) -> Instance:
    """Make an instance of jobs (arrival, [(number of tasks, sites), ...]), all tasks of one duration."""
    made = [
        Job(arrival, tuple((duration, tuple(sites)) for count, sites in parts for _ in range(count)))
        for arrival, parts in jobs
    ]
    return Instance(slots, made, groups)


class View(NamedTuple):
    """What a policy sees at a decision; dicts have an entry for every active job.

    Attributes:
        clock: the instant.
        active: the active jobs, ascending.
        new: those that arrive at this instant.
        waiting: job -> waiting tasks per group.
        unfinished: job -> waiting and running tasks per group.
        counts: GeoAssign: job -> where its waiting tasks are assigned; new jobs have none yet.
    """

    clock: Number
    active: list[int]
    new: list[int]
    waiting: dict[int, list[int]]
    unfinished: dict[int, list[int]]
    counts: dict[int, Counts]


class Decision(NamedTuple):
    """What was seen, and what was decided: order and counts of the jobs (GeoAssign), or shares (GeoFair)."""

    view: View
    order: list[int]
    counts: dict[int, Counts]
    shares: Shares


class Interval(NamedTuple):
    """Between two events: running tasks of each active job."""

    begin: Number
    end: Number
    occupied: dict[int, int]


class Outcome(NamedTuple):
    """Start, site and end by job and task, completions by job, then what happened on the way."""

    start: list[list[Number]]
    site: list[list[int]]
    end: list[list[Number]]
    completion: list[Number]
    decisions: list[Decision]
    series: list[Interval]
