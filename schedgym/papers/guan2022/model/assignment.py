"""Chapter 3: where the waiting tasks of the jobs go, and in which order the jobs are served."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from schedgym.papers.guan2022.model.instances import Counts, Instance, Number, Sites, View

__all__ = [
    "ASSIGN_POLICIES",
    "Plan",
    "assign_policy",
    "associated",
    "balance",
    "greedy",
    "per_site",
    "swag_plan",
    "total_load",
]

ASSIGN_POLICIES = (
    "btawj-fcfs",
    "btawj-swag",
    "btaaj-fcfs",
    "btaaj-swag",
    "swag",
    "scta",
    "ata",
    "ata-greedy",
    "fcfs",
    "srpt",
)


def _largest_flow(tasks: Sequence[int], sites: Sequence[Sites], room: list[int]) -> tuple[int, Counts]:
    """Return a maximum flow from groups to sites; the thesis allows any. ``room`` is used up.

    Choice: first a pass over groups, then sites, ascending, each taking min(left, room); then augmenting
    paths.
    """
    left = list(tasks)
    flow: Counts = {}
    for k in range(len(tasks)):
        for j in sorted(sites[k]):
            taken = min(left[k], room[j])
            if taken > 0:
                flow[k, j] = taken
                left[k] -= taken
                room[j] -= taken
    while path := _augmenting_path(flow, left, room, sites):
        (_, first), (_, last) = path[0], path[-1]
        steps = list(itertools.pairwise(path))
        amount = min(left[first], room[last], *(flow[y, x] for (kind, x), (_, y) in steps if kind == "s"))
        left[first] -= amount
        room[last] -= amount
        for (kind, x), (_, y) in steps:
            if kind == "g":
                flow[x, y] = flow.get((x, y), 0) + amount
            else:
                flow[y, x] -= amount
    return sum(flow.values()), flow


def _augmenting_path(
    flow: Counts, left: Sequence[int], room: Sequence[int], sites: Sequence[Sites]
) -> list[tuple[str, int]]:
    """Return the path ("g", group), ("s", site), ..., ("s", site) that breadth-first search finds.

    Groups with tasks left start, ascending; then sites ascending, and back to groups ascending. Empty: none.
    """
    parent: dict[tuple[str, int], tuple[str, int] | None]
    parent = {("g", k): None for k, count in enumerate(left) if count > 0}
    queue = deque(parent)
    while queue:
        node = kind, x = queue.popleft()
        if kind == "s" and room[x] > 0:
            path = [node]
            while (before := parent[path[-1]]) is not None:
                path.append(before)
            return path[::-1]
        if kind == "s":
            following = [("g", k) for k in range(len(left)) if flow.get((k, x), 0) > 0]
        else:
            following = [("s", j) for j in sorted(sites[x])]
        for other in following:
            if other not in parent:
                parent[other] = node
                queue.append(other)
    return []


def balance(
    tasks: Sequence[int],
    sites: Sequence[Sites],
    slots: Sequence[int],
    load: Sequence[int],
    fine: bool = False,
) -> tuple[Fraction, Counts]:
    """Return the least C at which capacities max(u_j C - r_j, 0) hold all tasks of a job, and the flow there.

    Args:
        tasks: of the job in each group.
        sites: available sites of each group.
        slots: u_j.
        load: r_j, the tasks that are at each site already.
        fine: True: C is a multiple of 1 / gcd(u); False: a whole number, as in Algorithms 1 and 2.
    """
    n = sum(tasks)
    unit = math.gcd(*slots) if fine else 1

    def flow_at(c: int) -> tuple[int, Counts]:
        return _largest_flow(
            tasks, sites, [max(u * c // unit - r, 0) for u, r in zip(slots, load, strict=True)]
        )

    low = -(-n * unit // sum(slots))
    high = max(-(-(n + r) * unit // u) for u, r in zip(slots, load, strict=True))
    while low < high:
        middle = (low + high) // 2
        if flow_at(middle)[0] == n:
            high = middle
        else:
            low = middle + 1
    flow = flow_at(low)[1]
    return Fraction(low, unit), {key: x for key, x in flow.items() if x > 0}


def greedy(
    tasks: Sequence[int],
    sites: Sequence[Sites],
    slots: Sequence[int],
    load: Sequence[int],
    literal: bool = False,
) -> Counts:
    """Place a job by ATA-Greedy: groups by decreasing size, ties by index.

    Each task goes to the available site with the least (load + 1) / u_j, tie to the lowest site.

    Args:
        tasks: of the job in each group.
        sites: available sites of each group.
        slots: u_j.
        load: tasks that are at each site already.
        literal: True: the rule of section 3.2.4. The sites are sorted by load (ties by index); all loads are
            raised towards a common integer p, and the first y of the sites, the less loaded, only to p - 1.
            Choice: the rule compares plain task counts, as printed, whatever the slots.
    """
    now = list(load)
    counts: Counts = {}
    for k in sorted(range(len(tasks)), key=lambda k: (-tasks[k], k)):
        if tasks[k] == 0:
            continue
        if not literal:
            for _ in range(tasks[k]):
                j = min(sites[k], key=lambda j: (Fraction(now[j] + 1, slots[j]), j))
                counts[k, j] = counts.get((k, j), 0) + 1
                now[j] += 1
            continue
        ranked = sorted(sites[k], key=lambda j: (now[j], j))
        p = now[ranked[0]] + 1
        while sum(max(p - now[j], 0) for j in ranked) < tasks[k]:
            p += 1
        used = [j for j in ranked if now[j] < p]
        y = sum(p - now[j] for j in used) - tasks[k]
        for x, j in enumerate(used):
            given = p - now[j] - (1 if x < y else 0)
            if given > 0:
                counts[k, j] = given
            now[j] += given
    return counts


def associated(tasks: Sequence[int], sites: Sequence[Sites]) -> Counts:
    """Place all tasks of a job at the associated sites of their groups."""
    return {(k, sites[k][0]): count for k, count in enumerate(tasks) if count > 0}


def per_site(counts: Counts, m: int) -> list[int]:
    """Return the tasks at each of m sites."""
    q = [0] * m
    for (_, j), count in counts.items():
        q[j] += count
    return q


def total_load(counts: Mapping[int, Counts], m: int) -> list[int]:
    """Return the tasks of all jobs at each of m sites."""
    return [sum(at) for at in zip([0] * m, *(per_site(own, m) for own in counts.values()), strict=True)]


class Plan(NamedTuple):
    """Order of the jobs, their tasks per (group, site), and the estimate e_i each was appended with."""

    order: list[int]
    counts: dict[int, Counts]
    estimate: dict[int, Fraction]


def swag_plan(
    jobs: Sequence[int],
    rank: Callable[[int], Any],
    slots: Sequence[int],
    counts: Mapping[int, Counts],
    place: Callable[[int, list[int]], Counts] | None = None,
) -> Plan:
    """Append again and again the job with the least e_i = max over sites with q_ij > 0 of (r_j + q_ij) / u_j.

    A job without waiting tasks has e_i = 0.

    Args:
        jobs: the jobs.
        rank: decides ties of e_i.
        slots: u_j.
        counts: job -> where its tasks are. The other jobs are placed anew for every position, until appended.
        place: returns where a job goes beside the load r.
    """
    load = [0] * len(slots)
    plan = Plan([], {}, {})
    while len(plan.order) < len(jobs):
        trial: dict[int, tuple[Fraction, Counts]] = {}
        for i in jobs:
            if i in plan.estimate:
                continue
            own = dict(counts[i]) if i in counts or place is None else place(i, list(load))
            q = per_site(own, len(slots))
            ends = [Fraction(load[j] + q[j], slots[j]) for j in range(len(slots)) if q[j] > 0]
            trial[i] = max(ends, default=Fraction(0)), own
        best = min(trial, key=lambda i: (trial[i][0], rank(i)))
        plan.estimate[best], plan.counts[best] = trial[best]
        plan.order.append(best)
        for j, count in enumerate(per_site(plan.counts[best], len(slots))):
            load[j] += count
    return plan


def assign_policy(
    instance: Instance,
    view: View,
    policy: str,
    *,
    fine: bool = True,
    literal: bool = False,
    placement: str = "greedy",
    together: bool = False,
) -> tuple[list[int], dict[int, Counts]]:
    """Return the order and the assignment that a named policy decides on.

    Args:
        instance: the instance.
        view: the state.
        policy: one of ``ASSIGN_POLICIES``.
        fine: of :func:`balance`.
        literal: of :func:`greedy`.
        placement: "greedy" or "associated", of fcfs and srpt; greedy is repeated for all waiting tasks at
            every decision, in the order of the jobs.
        together: SCTA with several jobs that arrive at one instant. Choice: False runs Algorithm 3 for one
            after the other, in job order; True runs it once with all of them unplaced.
    """
    if policy not in ASSIGN_POLICIES:
        raise ValueError(f"unknown policy {policy}")
    slots, groups, m = instance.slots, instance.groups, len(instance.slots)
    counts = {i: dict(own) for i, own in view.counts.items()}

    def rank(i: int) -> tuple[Number, int]:
        return instance.jobs[i].arrival, i

    def balanced(i: int, load: list[int]) -> Counts:
        return balance(view.waiting[i], groups, slots, load, fine)[1]

    def greedily(i: int, load: list[int]) -> Counts:
        return greedy(view.waiting[i], groups, slots, load, literal)

    def at_associated(i: int, load: list[int]) -> Counts:
        return associated(view.waiting[i], groups)

    family, _, ordering = policy.partition("-")
    order = sorted(view.active, key=rank)
    if family == "srpt":
        order.sort(key=lambda i: sum(view.unfinished[i]))  # stable
    if family == "ata":
        return swag_plan(order, rank, slots, {}, greedily if ordering == "greedy" else balanced)[:2]
    if family in ("fcfs", "srpt"):
        place = greedily if placement == "greedy" else at_associated
        counts.clear()
        for i in order:
            counts[i] = place(i, total_load(counts, m))
        return order, counts
    for i in view.new:
        if family == "scta":
            jobs = order if together else [*counts, i]
            counts = swag_plan(jobs, rank, slots, counts, balanced).counts
        elif family == "swag":
            counts[i] = at_associated(i, [])
        else:
            counts[i] = balanced(i, total_load(counts if family == "btaaj" else {}, m))
    if ordering != "fcfs":
        order = swag_plan(order, rank, slots, counts).order
    return order, counts
