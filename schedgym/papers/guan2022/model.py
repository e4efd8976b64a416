"""The exact model of the thesis, in plain Python: what its claims examine and the kernels are held to.

Lists, dicts and loops, nothing cached from one instant to the next, and all sets of sites enumerated: for up
to about a dozen jobs and five sites.

* Tasks are ints; shares, levels and aggregates are ``Fraction``; nothing is rounded.
* Times keep the type they are given in: end = start + duration, and two instants are one only if they compare
  equal. With integers or fractions a whole simulation is exact.

Where the thesis leaves room, what is chosen is marked "Choice:".
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import networkx as nx
import numpy as np
from networkx.algorithms.flow import edmonds_karp

from schedgym.papers.exact import quotient

# Instances, what a policy sees of them, and what comes out of a simulation ---------------------------


T = TypeVar("T")
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


# Chapter 3: where the waiting tasks of the jobs go, and in which order the jobs are served -----------


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


# Chapters 4 and 5: max-min fair shares of the sites' slots -------------------------------------------
#
# Maximum flow and minimum cut: jobs can have the aggregates A together if and only if sum_i max(A_i -
# D_i(T), 0) <= u(T) for every set T of sites, where D_i(T) is what job i can run outside T and u(T) are the
# slots in T. Only the aggregates are unique, not the matrix of shares.


_SHARED = ("amf", "sig-amf", "gamf", "sig-gamf")
FAIR_POLICIES = ("imf", *_SHARED, *(f"opt-{name}" for name in _SHARED))


class Problem(NamedTuple):
    """What is to be shared at one decision, and what each job must get.

    Attributes:
        demand: tasks of job i in group k [i][k].
        slots: slots of each site.
        groups: available sites of each group.
        floors: of the aggregates; empty: none.
        site_floors: (job, group, site) -> floor of a share.
    """

    demand: Sequence[Sequence[Number]]
    slots: Sequence[Number]
    groups: Sequence[Sites]
    floors: Sequence[Number] = ()
    site_floors: Mapping[tuple[int, int, int], Fraction] = MappingProxyType({})


def sharing_problem(
    demand: Sequence[Sequence[Number]], slots: Sequence[Number], groups: Sequence[Sites], policy: str
) -> Problem:
    """Return the problem with the floors of a policy: "amf", "sig-amf", "gamf" or "sig-gamf".

    With "amf" and "sig-amf" a group has one site. SIG-AMF: a_ij >= min(d_ij, u_j / n), (4.3) and (4.4);
    SIG-GAMF: A_i >= X_i, (5.24).
    """
    problem = Problem(demand, slots, groups)
    if policy == "sig-gamf":
        return problem._replace(floors=isolated_shares(problem))
    if policy == "sig-amf":
        held = {
            (i, k, group[0]): min(Fraction(row[k]), Fraction(slots[group[0]], len(demand)))
            for i, row in enumerate(demand)
            for k, group in enumerate(groups)
        }
        return problem._replace(site_floors=held)
    return problem


def water_fill(demands: Sequence[Number], capacity: Number) -> list[Fraction]:
    """Return the max-min fair shares of one resource."""
    shares = [Fraction(0)] * len(demands)
    left = Fraction(capacity)
    order = sorted(range(len(demands)), key=lambda i: demands[i])
    for done, i in enumerate(order):
        shares[i] = min(Fraction(demands[i]), left / (len(order) - done))
        left -= shares[i]
    return shares


def subsets(m: int) -> Iterator[frozenset[int]]:
    """Yield all sets of m sites."""
    for size in range(m + 1):
        for chosen in itertools.combinations(range(m), size):
            yield frozenset(chosen)


def _outside(demand: Sequence[Number], groups: Sequence[Sites], inside: frozenset[int]) -> Fraction:
    """Return D(T): the demand of one job in groups that can run somewhere outside a set of sites."""
    amounts = (Fraction(d) for d, sites in zip(demand, groups, strict=True) if not inside.issuperset(sites))
    return sum(amounts, Fraction(0))


def _room(slots: Sequence[Number], inside: frozenset[int]) -> Fraction:
    return sum((Fraction(slots[j]) for j in inside), Fraction(0))


def rank_function(problem: Problem, jobs: Sequence[int]) -> Fraction:
    """Return f(S), the most that the jobs S can get together."""
    return min(
        _room(problem.slots, inside)
        + sum((_outside(problem.demand[i], problem.groups, inside) for i in jobs), Fraction(0))
        for inside in subsets(len(problem.slots))
    )


def isolated_shares(problem: Problem) -> list[Fraction]:
    """Return X_i, the most that job i can get alone with u_j / n slots at each site."""
    n = len(problem.demand)
    part = problem._replace(slots=[Fraction(u, n) for u in problem.slots])
    return [rank_function(part, [i]) for i in range(n)]


def _beyond_site_floors(problem: Problem) -> tuple[list[Fraction], list[list[Fraction]], list[Fraction]]:
    """Return what the jobs hold by their floors at sites, and the demand and the slots beyond these."""
    base = [Fraction(0)] * len(problem.demand)
    rest = [[Fraction(d) for d in row] for row in problem.demand]
    room = [Fraction(u) for u in problem.slots]
    for (i, k, j), amount in problem.site_floors.items():
        base[i] += amount
        rest[i][k] -= amount
        room[j] -= amount
    if min(room) < 0 or min(map(min, rest)) < 0:
        raise ValueError("the floors at the sites are infeasible")
    return base, rest, room


def _level(steps: Sequence[tuple[Fraction, Fraction]], slack: Fraction) -> Fraction | None:
    """Return the largest t with sum over (b, w) of w max(t - b, 0) <= slack; None if any t will do."""
    ordered = sorted(steps)
    weight = moment = Fraction(0)
    t: Fraction | None = None
    for x, (b, w) in enumerate(ordered):
        weight, moment = weight + w, moment + w * b
        t = (slack + moment) / weight
        if x + 1 == len(ordered) or t <= ordered[x + 1][0]:
            break
    return t


def least_aggregates(problem: Problem) -> list[Fraction]:
    """Return what the floors alone give to each job."""
    base = _beyond_site_floors(problem)[0]
    floors = problem.floors or [0] * len(base)
    return [max(own, Fraction(floor)) for own, floor in zip(base, floors, strict=True)]


def max_min(problem: Problem, weights: Sequence[Number] = ()) -> list[Fraction]:
    """Return the lexicographic max-min vector of the aggregates A_i, or of A_i / weight_i.

    All jobs rise together; a job stops when a set T is full in which it has no way out (Definition 4.1).

    Raises:
        ValueError: the floors are infeasible.
    """
    n = len(problem.demand)
    weight = [Fraction(w) for w in weights or [1] * n]
    base, rest, room = _beyond_site_floors(problem)
    least = least_aggregates(problem)
    sets = [
        (_room(room, inside), [base[i] + _outside(rest[i], problem.groups, inside) for i in range(n)])
        for inside in subsets(len(room))
    ]
    fixed: dict[int, Fraction] = {}
    while len(fixed) < n:
        rising = [i for i in range(n) if i not in fixed]
        levels = []
        for capacity, outside in sets:
            used = sum((max(fixed.get(i, least[i]) - outside[i], Fraction(0)) for i in range(n)), Fraction(0))
            if used > capacity:
                raise ValueError("the floors are infeasible")
            steps = [(max(least[i], outside[i]) / weight[i], weight[i]) for i in rising]
            levels.append(_level(steps, capacity - used))
        t = min(level for level in levels if level is not None)
        for (_, outside), level in zip(sets, levels, strict=True):
            if level == t:
                for i in rising:
                    if t * weight[i] >= max(least[i], outside[i]):
                        fixed[i] = t * weight[i]
    return [fixed[i] for i in range(n)]


def aggregates_of(
    demand: Sequence[Sequence[Number]], slots: Sequence[Number], groups: Sequence[Sites], policy: str
) -> list[Fraction]:
    """Return the aggregates of the jobs under a policy: "imf", or one of :func:`sharing_problem`."""
    if policy == "imf":
        shares = [water_fill([row[j] for row in demand], u) for j, u in enumerate(slots)]
        return [sum(own, Fraction(0)) for own in zip(*shares, strict=True)]
    return max_min(sharing_problem(demand, slots, groups, policy))


def _left_by_others(
    problem: Problem, aggregates: Sequence[Fraction], job: int | None
) -> dict[frozenset[int], Fraction]:
    """Return, by set T of sites, the slots that all other jobs leave in it at most."""
    base, rest, room = _beyond_site_floors(problem)
    others = [i for i in range(len(rest)) if i != job]
    return {
        inside: _room(room, inside)
        - sum(
            max(aggregates[i] - base[i] - _outside(rest[i], problem.groups, inside), Fraction(0))
            for i in others
        )
        for inside in subsets(len(room))
    }


def is_feasible(problem: Problem, aggregates: Sequence[Fraction]) -> bool:
    """Return whether the jobs can have these aggregates, which must be no less than the floors."""
    return min(_left_by_others(problem, aggregates, None).values()) >= 0


def most_beside(problem: Problem, aggregates: Sequence[Fraction], job: int) -> Fraction:
    """Return the most that a job can have beside given feasible aggregates of the others."""
    base, rest, _ = _beyond_site_floors(problem)
    left = _left_by_others(problem, aggregates, job)
    return base[job] + min(
        slots + _outside(rest[job], problem.groups, inside) for inside, slots in left.items()
    )


def useful_range(
    demand: Sequence[Sequence[int]],
    slots: Sequence[int],
    groups: Sequence[Sites],
    policy: str,
    job: int,
    tasks: Sequence[int],
) -> tuple[Fraction, Fraction]:
    """Return the least and the most of a job's fair allocation that ``tasks`` [K] could use, of all matrices.

    Of a_k slots of group k they can use min(a_k, tasks_k). They are those of another job (envy) or the job's
    true ones, ``demand`` being reported (strategy).

    Args:
        demand: tasks of job i in group k [i][k].
        slots: slots of each site.
        groups: available sites of each group.
        policy: "imf", "amf", "gamf" or "sig-gamf".
        job: the job.
        tasks: in each group.
    """
    if policy == "imf":
        shares = [water_fill([row[j] for row in demand], u)[job] for j, u in enumerate(slots)]
        used = sum((min(own, Fraction(t)) for own, t in zip(shares, tasks, strict=True)), Fraction(0))
        return used, used
    problem = sharing_problem(demand, slots, groups, policy)
    own = max_min(problem)

    def most(row: Sequence[int]) -> Fraction:
        rows = [row if i == job else other for i, other in enumerate(demand)]
        return most_beside(problem._replace(demand=rows), own, job)

    useful = [min(d, t) for d, t in zip(demand[job], tasks, strict=True)]
    # over the groups that count with their shares: at least what the others leave of the aggregate
    least = [
        own[job]
        - most([0 if counted[k] else d for k, d in enumerate(demand[job])])
        + sum(0 if counted[k] else x for k, x in enumerate(useful))
        for counted in itertools.product((False, True), repeat=len(groups))
    ]
    return min(least), most(useful)


def allocation(problem: Problem, aggregates: Sequence[Fraction]) -> Shares:
    """Return one of the matrices with these aggregates: a maximum flow from jobs over their groups to sites.

    Raises:
        ValueError: there is none.
    """
    base, rest, room = _beyond_site_floors(problem)
    network = nx.DiGraph()
    for j, free in enumerate(room):
        network.add_edge(("site", j), "sink", capacity=free)
    for i, row in enumerate(rest):
        network.add_edge("source", ("job", i), capacity=aggregates[i] - base[i])
        for k, demand in enumerate(row):
            network.add_edge(("job", i), ("group", i, k), capacity=demand)
            network.add_edges_from(
                (("group", i, k), ("site", j), {"capacity": demand}) for j in sorted(problem.groups[k])
            )
    amount, flow = nx.maximum_flow(network, "source", "sink", flow_func=edmonds_karp)
    if amount != sum(aggregates) - sum(base):
        raise ValueError("infeasible aggregates")
    shares = dict(problem.site_floors)
    for i, row in enumerate(rest):
        for k in range(len(row)):
            for (_, j), share in flow["group", i, k].items():
                shares[i, k, j] = shares.get((i, k, j), Fraction(0)) + share
    return {key: share for key, share in shares.items() if share > 0}


def optimise(
    problem: Problem,
    aggregates: Sequence[Fraction],
    sequence: Sequence[int],
    seconds: Sequence[Sequence[Number]] | None = None,
) -> tuple[list[Fraction], Shares]:
    """Give one job after the other the largest y_l = min_k (sum_j a_ljk) / d_lk, by Algorithms 6 and 8.

    Job l must have max(floor_lk, y d_lk) of group k. For every set T of sites, what it must have of groups
    that can run nowhere else fits into what the other jobs leave there. No group has more than its tasks.

    Args:
        problem: the problem; with floors at sites, a group has one site.
        aggregates: of all jobs; they stay.
        sequence: the jobs in order.
        seconds: known durations w_lk of the tasks [J][K]: y_l = min_k (sum_j a_ljk) / w_lk (footnote in
            section 4.5.2).

    Returns:
        The y in the order of ``sequence``, of which only the first is unique, and the shares.
    """
    nothing = [Fraction(0)] * len(problem.groups)
    rows, own = list(problem.demand), list(aggregates)
    left = problem  # without the jobs that have their shares, and without the slots of these
    reached: list[Fraction] = []
    shares: Shares = {}
    for job in sequence:
        weights = (problem.demand if seconds is None else seconds)[job]
        floors = [
            sum((left.site_floors.get((job, k, j), Fraction(0)) for j in group), Fraction(0))
            for k, group in enumerate(problem.groups)
        ]
        left = left._replace(site_floors={key: x for key, x in left.site_floors.items() if key[0] != job})
        reached.append(_largest_ratio(left, own, job, weights, floors))
        # in two rows: what the job must have, and the rest
        must = [
            max(floor, reached[-1] * weight) if tasks else Fraction(0)
            for tasks, floor, weight in zip(rows[job], floors, weights, strict=True)
        ]
        rows[job] = [tasks - least for tasks, least in zip(rows[job], must, strict=True)]
        own[job] -= sum(must)
        given = allocation(left._replace(demand=[*rows, must]), [*own, sum(must, Fraction(0))])
        slots = list(left.slots)
        for (i, k, j), share in given.items():
            if i in (job, len(rows)):
                shares[job, k, j] = shares.get((job, k, j), Fraction(0)) + share
                slots[j] -= share
        rows[job], own[job] = nothing, Fraction(0)
        left = left._replace(demand=rows, slots=slots)
    return reached, shares


def _largest_ratio(
    problem: Problem,
    aggregates: Sequence[Fraction],
    job: int,
    weights: Sequence[Number],
    floors: Sequence[Fraction],
) -> Fraction:
    """Return the largest y such that a job can have max(floor_k, y weight_k) of every group with tasks."""
    tasks = {k: Fraction(d) for k, d in enumerate(problem.demand[job]) if d}
    rooms = list(_left_by_others(problem, aggregates, job).items())
    rooms.append((frozenset(range(len(problem.slots))), aggregates[job]))
    limits: list[Fraction | None] = [d / weights[k] for k, d in tasks.items()]
    for inside, room in rooms:
        confined = [k for k in tasks if inside.issuperset(problem.groups[k])]
        steps = [(floors[k] / weights[k], Fraction(weights[k])) for k in confined]
        limits.append(_level(steps, room - sum(floors[k] for k in confined)))
    return min(limit for limit in limits if limit is not None)


def site_demand(instance: Instance, unfinished: Mapping[int, Sequence[int]], i: int) -> list[int]:
    """Return the demand of a job at each site when every task stays at its associated site."""
    demand = [0] * len(instance.slots)
    for k, count in enumerate(unfinished[i]):
        demand[instance.groups[k][0]] += count
    return demand


def decision_problem(
    instance: Instance, active: Sequence[int], unfinished: Mapping[int, Sequence[int]], base: str
) -> Problem:
    """Return the problem of a decision, in the order of ``active``.

    Args:
        instance: the instance.
        active: the active jobs.
        unfinished: job -> tasks per group.
        base: "amf" or "sig-amf" (a group for each site), "gamf" or "sig-gamf" (the groups).
    """
    if base.endswith("gamf"):
        return sharing_problem([unfinished[i] for i in active], instance.slots, instance.groups, base)
    demand = [site_demand(instance, unfinished, i) for i in active]
    return sharing_problem(demand, instance.slots, [(j,) for j in range(len(instance.slots))], base)


def fair_policy(instance: Instance, view: View, policy: str) -> Shares:
    """Return the shares of a named policy, one of ``FAIR_POLICIES``.

    Choice: where a job has several groups with one associated site, imf and the amf policies split the site's
    share over them in proportion to the demands.
    """
    if policy not in FAIR_POLICIES:
        raise ValueError(f"unknown policy {policy}")
    base, jobs = policy.removeprefix("opt-"), view.active
    problem = decision_problem(instance, jobs, view.unfinished, base)
    if base == "imf":
        rows = {
            (x, j, j): share
            for j, u in enumerate(instance.slots)
            for x, share in enumerate(water_fill([row[j] for row in problem.demand], u))
        }
    elif policy == base:
        rows = allocation(problem, max_min(problem))
    else:

        def key(x: int) -> tuple[int, Number, int]:
            return sum(view.unfinished[jobs[x]]), instance.jobs[jobs[x]].arrival, jobs[x]

        sequence = sorted(range(len(jobs)), key=key)
        rows = optimise(problem, max_min(problem), sequence)[1]
    if base.endswith("gamf"):
        return {(jobs[x], k, j): share for (x, k, j), share in rows.items() if share > 0}
    shares: Shares = {}
    for (x, _, j), share in rows.items():
        for k, group in enumerate(instance.groups):
            if share > 0 and group[0] == j and view.unfinished[jobs[x]][k] > 0:
                shares[jobs[x], k, j] = share * view.unfinished[jobs[x]][k] / problem.demand[x][j]
    return shares


# GeoAssign and GeoFair, instant by instant: ends of tasks, then arrivals, a decision, and starts -----


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


def _least(candidates: Iterable[T], key: Callable[[T], tuple[Any, ...]]) -> T:
    """Return the first candidate of least key; numbers within a relative 1e-9 are equal."""
    first, *rest = ((key(candidate), candidate) for candidate in candidates)
    for found in rest:
        differing = (
            a < b for a, b in zip(found[0], first[0], strict=True) if abs(a - b) > 1e-9 * max(abs(a), abs(b))
        )
        if next(differing, False):
            first = found
    return first[1]


def _next_fair(
    world: _World, shares: Mapping[tuple[int, int, int], Number], j: int, sites: str, work_conserving: bool
) -> tuple[int, int] | None:
    """Return the (job, group) that takes a free slot at a site, or None.

    Jobs: least running/share at the site, then larger share, earlier arrival, lower index. With share 0 last:
    fewest running at the site, then overall, then earlier arrival, lower index. Choice: the groups of a job
    likewise: least running/share, larger share, lower index; with share 0 last: fewest running at the site,
    lower index. Ratios and shares within a relative 1e-9 are equal. A job with a share may use it for any
    of its groups.
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
        return (0, quotient(running, share), -share, k) if share > 0 else (1, running, 0, k)

    jobs = [i for i in world.active if any(can_run(i, k) for k in range(len(groups)))]
    if not work_conserving:
        jobs = [i for i in jobs if share_of(i) > 0]
    if not jobs:
        return None
    best = _least(jobs, job_key)
    return best, _least((k for k in range(len(groups)) if can_run(best, k)), lambda k: group_key(best, k))


# Metrics of a schedule, and lower bounds on the mean response of all policies ------------------------


PERCENTILES = (50, 90, 95, 99)


def metrics_assign(instance: Instance, outcome: Outcome) -> dict[str, Any]:
    """Return response times, use of the slots, and recomputations.

    utilisation: busy slot time / (slots * time from first arrival to the last end). load: sum of durations /
    (slots * span), None without a span. recomputations: instants at which some job was active.
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
