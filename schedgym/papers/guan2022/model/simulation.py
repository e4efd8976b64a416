"""GeoAssign and GeoFair, instant by instant: ends of tasks, then arrivals, a decision, and starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from schedgym.papers.exact import quotient
from schedgym.papers.guan2022.model.assignment import assign_policy
from schedgym.papers.guan2022.model.instances import (
    Counts,
    Decision,
    Instance,
    Interval,
    Number,
    Outcome,
    View,
)
from schedgym.papers.guan2022.model.sharing import fair_policy

__all__ = ["AssignRule", "FairRule", "simulate_assign", "simulate_fair"]

AssignRule = Callable[[View], tuple[Sequence[int], Mapping[int, Counts]]]
"""returns the order of the active jobs, and where their waiting tasks are assigned"""
FairRule = Callable[[View], Mapping[tuple[int, int, int], Number]]
"""returns (job, group, site) -> share"""


class _World:
    """Everything that both simulators share: clock, waiting and running tasks, results."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        shape = [len(job.tasks) for job in instance.jobs]
        self.clock: Number = None
        self.active: list[int] = []
        self.waiting = [[list(tasks) for tasks in row] for row in instance.members]
        self.unfinished = [[len(tasks) for tasks in row] for row in instance.members]
        self.running: Counter[tuple[int, int, int]] = Counter()  # (job, group, site)
        self.free = list(instance.slots)
        self.ends: list[tuple[Number, int, int, int]] = []  # (end, job, group, task)
        self.start: list[list[Number]] = [[None] * x for x in shape]
        self.site = [[-1] * x for x in shape]
        self.end: list[list[Number]] = [[None] * x for x in shape]
        self.completion: list[Number] = [None] * len(shape)
        self.decisions: list[Decision] = []
        self.series: list[Interval] = []

    def running_at(self, i: int, j: int | None = None) -> int:
        return sum(x for (a, _, b), x in self.running.items() if a == i and (j is None or b == j))

    def launch(self, i: int, k: int, j: int) -> None:
        """Start the lowest waiting task of (job, group) at a site."""
        task = self.waiting[i][k].pop(0)
        self.start[i][task], self.site[i][task] = self.clock, j
        self.end[i][task] = self.clock + self.instance.jobs[i].tasks[task][0]
        self.ends.append((self.end[i][task], i, k, task))
        self.running[i, k, j] += 1
        self.free[j] -= 1

    def advance(self) -> tuple[list[int], bool, bool, bool] | None:
        """Go to the next instant: all task ends, then arrivals in job order.

        Returns:
            the new jobs and whether a job, a (job, group), any task finished; None at the end.
        """
        later = [job.arrival for job in self.instance.jobs if self.clock is None or job.arrival > self.clock]
        instants = later + [end for end, *_ in self.ends]
        if not instants:
            return None
        before, self.clock = self.clock, min(instants)
        if self.active and before < self.clock:
            self.series.append(Interval(before, self.clock, {i: self.running_at(i) for i in self.active}))
        job_done = group_done = False
        ended = [entry for entry in self.ends if entry[0] == self.clock]
        self.ends = [entry for entry in self.ends if entry[0] != self.clock]
        for _, i, k, task in ended:
            j = self.site[i][task]
            self.running[i, k, j] -= 1
            self.free[j] += 1
            self.unfinished[i][k] -= 1
            group_done = group_done or self.unfinished[i][k] == 0
            if sum(self.unfinished[i]) == 0:
                self.completion[i] = self.clock
                self.active.remove(i)
                job_done = True
        new = [i for i, job in enumerate(self.instance.jobs) if job.arrival == self.clock]
        self.active = sorted(self.active + new)
        return new, job_done, group_done, bool(ended)

    def view(self, new: list[int], counts: Mapping[int, Counts]) -> View:
        return View(
            self.clock,
            list(self.active),
            [i for i in new if i in self.active],
            {i: [len(tasks) for tasks in self.waiting[i]] for i in self.active},
            {i: list(self.unfinished[i]) for i in self.active},
            {i: dict(own) for i, own in counts.items() if i in self.active},
        )

    def outcome(self) -> Outcome:
        if None in self.completion:
            raise ValueError("a task never starts")
        return Outcome(self.start, self.site, self.end, self.completion, self.decisions, self.series)


def simulate_assign(instance: Instance, policy: str | AssignRule, **options: Any) -> Outcome:
    """Simulate GeoAssign under a named policy, with options of :func:`assign_policy`, or a function.

    A decision is made at instants with an arrival or a job completion, while jobs are active. Then a free
    slot takes the first job of the order with a waiting task assigned there: its lowest group, of that the
    lowest task.
    """
    world = _World(instance)
    order: list[int] = []
    counts: dict[int, Counts] = {}
    while (happened := world.advance()) is not None:
        new, job_done, _, _ = happened
        if (new or job_done) and world.active:
            view = world.view(new, counts)
            if callable(policy):
                chosen, assigned = policy(view)
                order, counts = list(chosen), {i: dict(own) for i, own in assigned.items()}
            else:
                order, counts = assign_policy(instance, view, policy, **options)
            _check_assignment(instance, view, order, counts)
            kept = {i: dict(own) for i, own in counts.items()}
            world.decisions.append(Decision(view, order, kept, {}))
        for j in range(len(instance.slots)):
            for i in order:
                for k in range(len(instance.groups)):
                    while world.free[j] > 0 and counts.get(i, {}).get((k, j), 0) > 0:
                        world.launch(i, k, j)
                        counts[i][k, j] -= 1
    return world.outcome()


def _check_assignment(
    instance: Instance, view: View, order: Sequence[int], counts: Mapping[int, Counts]
) -> None:
    if sorted(order) != view.active:
        raise ValueError("the order is not one of the active jobs")
    for i in view.active:
        given = [0] * len(instance.groups)
        for (k, j), count in counts[i].items():
            if count < 0 or (count and j not in instance.groups[k]):
                raise ValueError(f"job {i}: {count} tasks of group {k} at site {j}")
            given[k] += count
        if given != view.waiting[i]:
            raise ValueError(f"job {i}: assigned {given}, waiting {view.waiting[i]}")


def simulate_fair(
    instance: Instance,
    policy: str | FairRule,
    aggressive: bool = False,
    work_conserving: bool = True,
    sites: str | None = None,
) -> Outcome:
    """Simulate GeoFair under a named policy or a function.

    A decision is made at instants with an arrival or the end of a (job, group), while jobs are active.

    Args:
        instance: the instance.
        policy: one of ``FAIR_POLICIES``, or a function that returns shares.
        aggressive: True to decide at every task end, too.
        work_conserving: False to leave slots to jobs with a share only.
        sites: where tasks may start, "associated" (the default of imf and the amf policies) or "all".
    """
    if sites is None:
        sites = "associated" if isinstance(policy, str) and not policy.endswith("gamf") else "all"
    world = _World(instance)
    shares: Mapping[tuple[int, int, int], Number] = {}
    while (happened := world.advance()) is not None:
        new, _, group_done, task_done = happened
        if (new or group_done or (aggressive and task_done)) and world.active:
            view = world.view(new, {})
            shares = policy(view) if callable(policy) else fair_policy(instance, view, policy)
            world.decisions.append(Decision(view, [], {}, dict(shares)))
        for j in range(len(instance.slots)):
            while (
                world.free[j] > 0
                and (chosen := _next_fair(world, shares, j, sites, work_conserving)) is not None
            ):
                world.launch(*chosen, j)
    return world.outcome()


def _next_fair(
    world: _World, shares: Mapping[tuple[int, int, int], Number], j: int, sites: str, work_conserving: bool
) -> tuple[int, int] | None:
    """Return the (job, group) that takes a free slot at a site, or None.

    Jobs: least running/share at the site, then larger share, earlier arrival, lower index. With share 0 last:
    fewest running at the site, then overall, then earlier arrival, lower index. Choice: the groups of a job
    likewise: least running/share, larger share, lower index; with share 0 last: fewest running at the site,
    lower index. A job with a share may use it for any of its groups.
    """
    groups = world.instance.groups

    def can_run(i: int, k: int) -> bool:
        return bool(world.waiting[i][k]) and (groups[k][0] == j if sites == "associated" else j in groups[k])

    def share_of(i: int) -> Number:
        return sum(shares.get((i, k, j), 0) for k in range(len(groups)))

    def job_key(i: int) -> tuple[Any, ...]:
        running, arrival = world.running_at(i, j), world.instance.jobs[i].arrival
        if (share := share_of(i)) > 0:
            return 0, quotient(running, share), -share, arrival, i
        return 1, running, world.running_at(i), arrival, i

    def group_key(i: int, k: int) -> tuple[Any, ...]:
        running, share = world.running[i, k, j], shares.get((i, k, j), 0)
        return (0, quotient(running, share), -share, k) if share > 0 else (1, running, k)

    jobs = [i for i in world.active if any(can_run(i, k) for k in range(len(groups)))]
    if not work_conserving:
        jobs = [i for i in jobs if share_of(i) > 0]
    if not jobs:
        return None
    best = min(jobs, key=job_key)
    return best, min((k for k in range(len(groups)) if can_run(best, k)), key=lambda k: group_key(best, k))
