"""A slow, plain second implementation of GeoAssign and GeoFair (test oracle).

Written from the specification alone, with lists, dicts and loops, to be compared with the compiled
simulator and the fast solvers. Nothing is cached between events; sets of sites are enumerated, so
it is meant for up to about a dozen jobs and five sites.

Exactness:

* counts are ints; shares, levels and aggregates are ``Fraction``; nothing is rounded.
* times keep the type they are given in: end = start + duration; two instants are one only if they
  compare equal. Integer or ``Fraction`` times make a whole simulation exact.

Where the specification leaves room, the choice made here is marked "Choice:".
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

Number = Any
"""int, float or Fraction"""
Sites = tuple[int, ...]
"""The ordered available sites of a group; the first is the associated one."""
Counts = dict[tuple[int, int], int]
"""(group, site) -> waiting tasks of one job assigned there"""
Shares = dict[tuple[int, int, int], Fraction]
"""(job, group, site) -> share"""

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
FAIR_POLICIES = (
    "imf",
    "amf",
    "sig-amf",
    "gamf",
    "sig-gamf",
    "opt-amf",
    "opt-sig-amf",
    "opt-gamf",
    "opt-sig-gamf",
)


# --------------------------------------------------------------------------------------------
# Instances and outcomes
# --------------------------------------------------------------------------------------------


class Job(NamedTuple):
    """arrival, and per task (duration, ordered available sites)."""

    arrival: Number
    tasks: tuple[tuple[Number, Sites], ...]


class Instance:
    """Slots per site and jobs.

    groups: the distinct ordered site lists. Choice: numbered by first appearance, going over the
    jobs and their tasks in order, unless a numbering is given.
    members[i][k]: indices of the tasks of job i in group k, ascending.
    """

    def __init__(self, slots: Sequence[int], jobs: Sequence[Job], groups: Sequence[Sites] | None = None):
        self.slots: tuple[int, ...] = tuple(slots)
        self.jobs: tuple[Job, ...] = tuple(jobs)
        if groups is None:
            groups = list(dict.fromkeys(sites for job in self.jobs for _, sites in job.tasks))
        self.groups: tuple[Sites, ...] = tuple(tuple(sites) for sites in groups)
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
        self.members: list[list[list[int]]] = [
            [[x for x, (_, sites) in enumerate(job.tasks) if sites == group] for group in self.groups]
            for job in self.jobs
        ]

    @property
    def span(self) -> Number:
        arrivals = [job.arrival for job in self.jobs]
        return max(arrivals) - min(arrivals)


def make_instance(
    slots: Sequence[int],
    jobs: Sequence[tuple[Number, Sequence[tuple[int, Sites]]]],
    duration: Number = 1,
    groups: Sequence[Sites] | None = None,
) -> Instance:
    """Jobs as (arrival, [(number of tasks, sites), ...]), all tasks of one duration."""
    made = [
        Job(arrival, tuple((duration, tuple(sites)) for count, sites in parts for _ in range(count)))
        for arrival, parts in jobs
    ]
    return Instance(slots, made, groups)


class Decision(NamedTuple):
    """One recomputation and what came out of it.

    new: jobs that arrived at this instant. unfinished, waiting: (job, group) -> tasks.
    order, counts: GeoAssign (counts per job). shares: GeoFair.
    """

    time: Number
    active: list[int]
    new: list[int]
    unfinished: dict[tuple[int, int], int]
    waiting: dict[tuple[int, int], int]
    order: list[int]
    counts: dict[int, Counts]
    shares: Shares


class Interval(NamedTuple):
    """Between two events: running tasks of each active job."""

    begin: Number
    end: Number
    occupied: dict[int, int]


class Outcome(NamedTuple):
    """Per job and task: start, site, end. Per job: completion. Then what happened on the way."""

    start: list[list[Number]]
    site: list[list[int]]
    end: list[list[Number]]
    completion: list[Number]
    decisions: list[Decision]
    series: list[Interval]


# --------------------------------------------------------------------------------------------
# Task assignment (chapter 3)
# --------------------------------------------------------------------------------------------


def _largest_flow(tasks: Sequence[int], sites: Sequence[Sites], room: list[int]) -> tuple[int, Counts]:
    """Max-flow groups -> sites with the tie-breaking of the specification.

    First a pass over groups, then sites, ascending, each taking min(left, room). Then augmenting
    paths by breadth-first search of the whole network (source, groups with tasks left ascending,
    sites ascending, back to groups ascending). ``room`` is used up.
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
    while True:
        # nodes: ("g", k) and ("s", j); parent None marks a start
        parent: dict[tuple[str, int], tuple[str, int] | None] = {
            ("g", k): None for k in range(len(tasks)) if left[k] > 0
        }
        queue = deque(parent)
        last = -1
        while queue and last < 0:
            kind, x = queue.popleft()
            if kind == "s" and room[x] > 0:
                last = x
            elif kind == "s":
                for k in range(len(tasks)):
                    if flow.get((k, x), 0) > 0 and ("g", k) not in parent:
                        parent["g", k] = ("s", x)
                        queue.append(("g", k))
            else:
                for j in sorted(sites[x]):
                    if ("s", j) not in parent:
                        parent["s", j] = ("g", x)
                        queue.append(("s", j))
        if last < 0:
            return sum(flow.values()), flow
        path: list[tuple[str, int]] = [("s", last)]
        while (before := parent[path[-1]]) is not None:
            path.append(before)
        path.reverse()  # group, site, group, site, ..., site
        amount = min(left[path[0][1]], room[last])
        for (kind, x), (_, y) in itertools.pairwise(path):
            if kind == "s":
                amount = min(amount, flow[y, x])
        left[path[0][1]] -= amount
        room[last] -= amount
        for (kind, x), (_, y) in itertools.pairwise(path):
            if kind == "g":
                flow[x, y] = flow.get((x, y), 0) + amount
            else:
                flow[y, x] -= amount


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def balance(
    tasks: Sequence[int],
    sites: Sequence[Sites],
    slots: Sequence[int],
    load: Sequence[int],
    fine: bool = False,
) -> tuple[Fraction, Counts]:
    """Least C such that capacities max(u_j C - r_j, 0) hold all tasks, and the flow at that C.

    C is an integer, or with ``fine`` a multiple of 1 / gcd(u).
    """
    n = sum(tasks)
    unit = math.gcd(*slots) if fine else 1

    def flow_at(c: int) -> tuple[int, Counts]:
        return _largest_flow(
            tasks, sites, [max(u * c // unit - r, 0) for u, r in zip(slots, load, strict=True)]
        )

    low = _ceil_div(n * unit, sum(slots))
    high = max(_ceil_div((n + r) * unit, u) for u, r in zip(slots, load, strict=True))
    while low < high:
        middle = (low + high) // 2
        if flow_at(middle)[0] == n:
            high = middle
        else:
            low = middle + 1
    total, flow = flow_at(low)
    assert total == n
    return Fraction(low, unit), {key: x for key, x in flow.items() if x > 0}


def greedy(
    tasks: Sequence[int],
    sites: Sequence[Sites],
    slots: Sequence[int],
    load: Sequence[int],
    literal: bool = False,
) -> Counts:
    """ATA-Greedy: groups by decreasing size, ties by index.

    Each task goes to the available site with the least (load + 1) / u_j, tie to the lowest site.
    literal: the thesis's rule. The sites are sorted by load (ties by index); all loads are raised
    towards a common integer p, and the first y of the sites, the less loaded, only to p - 1.
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
    return {(k, sites[k][0]): count for k, count in enumerate(tasks) if count > 0}


def per_site(counts: Counts, m: int) -> list[int]:
    q = [0] * m
    for (_, j), count in counts.items():
        q[j] += count
    return q


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
    movable: Callable[[int, list[int]], Counts] | None = None,
    moving: Sequence[int] = (),
) -> Plan:
    """Append the job with the least e_i = max over sites with q_ij > 0 of (r_j + q_ij) / u_j.

    The jobs in ``moving`` are allocated anew at every position, by ``movable(job, r)``, until they
    are appended. Ties by ``rank``. A job without waiting tasks has e_i = 0.
    """
    load = [0] * len(slots)
    final = {i: dict(counts[i]) for i in jobs if i not in moving}
    order: list[int] = []
    estimate: dict[int, Fraction] = {}
    while len(order) < len(jobs):
        trial: dict[int, tuple[Fraction, Counts]] = {}
        for i in jobs:
            if i in order:
                continue
            if i in moving:
                assert movable is not None
                own = movable(i, list(load))
            else:
                own = final[i]
            q = per_site(own, len(slots))
            e = max(
                (Fraction(load[j] + q[j], slots[j]) for j in range(len(slots)) if q[j] > 0),
                default=Fraction(0),
            )
            trial[i] = (e, own)
        best = min(trial, key=lambda i: (trial[i][0], rank(i)))
        estimate[best], final[best] = trial[best]
        order.append(best)
        for j, count in enumerate(per_site(final[best], len(slots))):
            load[j] += count
    return Plan(order, final, estimate)


class View(NamedTuple):
    """What a policy given as a function sees; dicts have an entry for every active job.

    waiting, unfinished: job -> tasks per group. counts: job -> assigned, waiting (GeoAssign; new
    jobs have none yet).
    """

    clock: Number
    active: list[int]
    new: list[int]
    waiting: dict[int, list[int]]
    unfinished: dict[int, list[int]]
    counts: dict[int, Counts]


AssignRule = Callable[[View], tuple[Sequence[int], Mapping[int, Counts]]]
FairRule = Callable[[View], Mapping[tuple[int, int, int], Number]]


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
    """Order and assignment that a named policy decides on.

    fine: of ``balance``; True is the default of the policies. literal: of ``greedy``. placement ("greedy"
    or "associated"): of fcfs and srpt; greedy is repeated for all waiting tasks at every recomputation, in
    the order of the jobs.
    together: SCTA with several jobs arriving at one instant. Choice: False runs Algorithm 3 for one
    after the other, in job order; True runs it once with all of them unplaced.
    """
    slots, groups, m = instance.slots, instance.groups, len(instance.slots)
    counts = {i: dict(own) for i, own in view.counts.items()}

    def rank(i: int) -> tuple[Number, int]:
        return instance.jobs[i].arrival, i

    def balanced(i: int, load: list[int]) -> Counts:
        return balance(view.waiting[i], groups, slots, load, fine)[1]

    def greedily(i: int, load: list[int]) -> Counts:
        return greedy(view.waiting[i], groups, slots, load, literal)

    def total_load() -> list[int]:
        return [sum(x) for x in zip(*(per_site(own, m) for own in counts.values()), strict=True)] or [0] * m

    def swag(jobs: Sequence[int]) -> Plan:
        return swag_plan(jobs, rank, slots, counts)

    if policy in ("ata", "ata-greedy"):
        move = balanced if policy == "ata" else greedily
        plan = swag_plan(view.active, rank, slots, {}, move, view.active)
        return plan.order, plan.counts
    if policy in ("fcfs", "srpt"):
        order = sorted(view.active, key=rank)
        if policy == "srpt":
            order.sort(key=lambda i: sum(view.unfinished[i]))  # stable
        load = [0] * m
        for i in order:
            counts[i] = greedily(i, load) if placement == "greedy" else associated(view.waiting[i], groups)
            for j, count in enumerate(per_site(counts[i], m)):
                load[j] += count
        return order, counts
    if policy == "scta":
        if together:
            counts = swag_plan(view.active, rank, slots, counts, balanced, view.new).counts
        else:
            for i in view.new:
                counts = swag_plan([*counts, i], rank, slots, counts, balanced, [i]).counts
        return swag(view.active).order, counts
    family, _, ordering = policy.partition("-")
    for i in view.new:
        if family == "btawj":
            counts[i] = balanced(i, [0] * m)
        elif family == "btaaj":
            counts[i] = balanced(i, total_load())
        elif policy == "swag":
            counts[i] = associated(view.waiting[i], groups)
        else:
            raise ValueError(f"unknown policy {policy}")
    if policy == "swag" or ordering == "swag":
        return swag(view.active).order, counts
    if ordering == "fcfs":
        return sorted(view.active, key=rank), counts
    raise ValueError(f"unknown policy {policy}")


def repair_counts(counts: Sequence[int], waiting: int) -> list[int]:
    """Counts at the sites of one group, in its order: surplus cut from the last, missing to the first."""
    fixed = [max(count, 0) for count in counts]
    for x in reversed(range(len(fixed))):
        fixed[x] -= min(fixed[x], max(sum(fixed) - waiting, 0))
    fixed[0] += max(waiting - sum(fixed), 0)
    return fixed


# --------------------------------------------------------------------------------------------
# Fair shares (chapters 4 and 5)
# --------------------------------------------------------------------------------------------


def water_fill(demands: Sequence[Number], capacity: Number) -> list[Fraction]:
    """Max-min fair shares of one resource."""
    shares = [Fraction(0)] * len(demands)
    left = Fraction(capacity)
    order = sorted(range(len(demands)), key=lambda i: demands[i])
    for done, i in enumerate(order):
        shares[i] = min(Fraction(demands[i]), left / (len(order) - done))
        left -= shares[i]
    return shares


def _subsets(m: int) -> Iterator[frozenset[int]]:
    for size in range(m + 1):
        for chosen in itertools.combinations(range(m), size):
            yield frozenset(chosen)


def _outside(demand: Sequence[Number], sites: Sequence[Sites], inside: frozenset[int]) -> Fraction:
    """Demand of one job in groups that can run somewhere outside a set of sites."""
    return sum(
        (Fraction(d) for d, s in zip(demand, sites, strict=True) if not inside.issuperset(s)), Fraction(0)
    )


def rank_function(
    demand: Sequence[Sequence[Number]], sites: Sequence[Sites], slots: Sequence[Number], jobs: Sequence[int]
) -> Fraction:
    """f(S): the most that the jobs S can get together (min-cut over the sets of sites)."""
    return min(
        sum((Fraction(slots[j]) for j in inside), Fraction(0))
        + sum((_outside(demand[i], sites, inside) for i in jobs), Fraction(0))
        for inside in _subsets(len(slots))
    )


def _level(steps: Sequence[tuple[Fraction, Fraction]], slack: Fraction) -> Fraction | None:
    """Largest t with sum over (b, w) of w max(t - b, 0) <= slack; None if any t will do."""
    ordered = sorted(steps)
    weight = moment = Fraction(0)
    t: Fraction | None = None
    for x, (b, w) in enumerate(ordered):
        weight, moment = weight + w, moment + w * b
        t = (slack + moment) / weight
        if x + 1 == len(ordered) or t <= ordered[x + 1][0]:
            break
    return t


def max_min(
    demand: Sequence[Sequence[Number]],
    sites: Sequence[Sites],
    slots: Sequence[Number],
    floors: Sequence[Number] | None = None,
    site_floors: Mapping[tuple[int, int, int], Number] | None = None,
    weights: Sequence[Number] | None = None,
) -> list[Fraction]:
    """The lexicographic max-min vector of the jobs' aggregates A_i (of A_i / weight_i).

    demand[i][k]: of job i in group k, which can run at sites[k].
    floors: A_i >= floors[i]. site_floors: a_ijk >= site_floors[i, k, j], keyed (job, group, site).
    An aggregate vector A is feasible iff for every set T of sites
    sum_i max(0, A_i - D_i(T)) <= u(T), D_i(T) being job i's demand that can run outside T. All
    jobs rise together; a job stops when a set T is full in which it has no way out.
    """
    n = len(demand)
    weight = [Fraction(1 if weights is None else weights[i]) for i in range(n)]
    base = [Fraction(0)] * n
    rest = [[Fraction(d) for d in row] for row in demand]
    room = [Fraction(u) for u in slots]
    for (i, k, j), amount in (site_floors or {}).items():
        assert j in sites[k]
        base[i] += Fraction(amount)
        rest[i][k] -= Fraction(amount)
        room[j] -= Fraction(amount)
    if min(room) < 0 or min(min(row) for row in rest) < 0:
        raise ValueError("the floors at the sites are infeasible")
    # from here on: what a job gets beyond its floors at sites, and aggregates A_i = base_i + that
    least = [max(base[i], Fraction(0 if floors is None else floors[i])) for i in range(n)]
    sets = [
        (
            sum((room[j] for j in inside), Fraction(0)),
            [base[i] + _outside(rest[i], sites, inside) for i in range(n)],
        )
        for inside in _subsets(len(slots))
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


def sharing_floors(
    demand: Sequence[Sequence[Number]], sites: Sequence[Sites], slots: Sequence[Number]
) -> list[Fraction]:
    """X_i: the most job i can use alone with u_j / n slots at each site."""
    part = [Fraction(u, len(demand)) for u in slots]
    return [rank_function(demand, sites, part, [i]) for i in range(len(demand))]


Node = tuple[Any, ...]
Network = dict[Node, dict[Node, Fraction]]


def _max_flow(network: Network, source: Node, sink: Node) -> tuple[Network, set[Node]]:
    """Exact max-flow along shortest augmenting paths; returns flows and the source side of a min cut."""
    residual: Network = {a: dict(out) for a, out in network.items()}
    for a, out in network.items():
        for b in out:
            residual.setdefault(b, {}).setdefault(a, Fraction(0))
    while True:
        parent: dict[Node, Node] = {source: source}
        queue = deque([source])
        while queue and sink not in parent:
            a = queue.popleft()
            for b, c in residual[a].items():
                if c > 0 and b not in parent:
                    parent[b] = a
                    queue.append(b)
        if sink not in parent:
            flow = {
                a: {b: max(c - residual[a][b], Fraction(0)) for b, c in out.items()}
                for a, out in network.items()
            }
            return flow, set(parent)
        path = [sink]
        while path[-1] != source:
            path.append(parent[path[-1]])
        path.reverse()
        amount = min(residual[a][b] for a, b in itertools.pairwise(path))
        for a, b in itertools.pairwise(path):
            residual[a][b] -= amount
            residual[b][a] += amount


def _fill(
    demand: Sequence[Sequence[Number]],
    sites: Sequence[Sites],
    slots: Sequence[Number],
    aggregates: Sequence[Fraction],
    lower: Mapping[tuple[int, int, int], Fraction],
    frozen: Shares,
    target: int | None = None,
    least: Mapping[int, Fraction] | None = None,
) -> tuple[Shares | None, set[Node], Fraction]:
    """Shares with the given aggregates, floors, frozen jobs, and a_lk >= least[k] for the target job l.

    Returns (shares or None, source side of a min cut, amount that does not fit). With a target,
    floors need singleton groups.
    """
    n = len(demand)
    room = [Fraction(u) for u in slots]
    done = {i for i, _, _ in frozen}
    shares: Shares = dict(frozen)
    for (_, _, j), amount in frozen.items():
        room[j] -= amount
    network: Network = {("source",): {}}
    need = Fraction(0)
    for i in range(n):
        if i in done:
            continue
        network["job", i] = {}
        own = aggregates[i]
        for k, group in enumerate(sites):
            if demand[i][k] == 0:
                continue
            capacity = Fraction(demand[i][k])
            low = sum((lower.get((i, k, j), Fraction(0)) for j in group), Fraction(0))
            if i == target:  # a mandatory part straight from the source
                assert low == 0 or len(group) == 1
                low = max(low, (least or {})[k])
                network["source",]["group", i, k] = low
                need += low
            else:
                for j in group:
                    if floor := lower.get((i, k, j), Fraction(0)):
                        shares[i, k, j] = floor
                        room[j] -= floor
            own -= low
            network["job", i]["group", i, k] = capacity - low
            network["group", i, k] = {("site", j): capacity for j in sorted(group)}
        network["source",]["job", i] = own
        need += own
        if own < 0:
            raise ValueError("the aggregate is below the floors")
    for j in range(len(slots)):
        network["site", j] = {("sink",): room[j]}
    flow, side = _max_flow(network, ("source",), ("sink",))
    if (deficit := need - sum(flow["source",].values(), Fraction(0))) > 0:
        return None, side, deficit
    for node, out in flow.items():
        if node[0] == "group":
            _, i, k = node
            for (_, j), amount in out.items():
                if amount > 0:
                    shares[i, k, j] = shares.get((i, k, j), Fraction(0)) + amount
    return shares, side, Fraction(0)


def allocation(
    demand: Sequence[Sequence[Number]],
    sites: Sequence[Sites],
    slots: Sequence[Number],
    aggregates: Sequence[Fraction],
    site_floors: Mapping[tuple[int, int, int], Fraction] | None = None,
) -> Shares:
    """One of the matrices with these aggregates (only the aggregates are unique)."""
    shares, _, _ = _fill(demand, sites, slots, aggregates, site_floors or {}, {})
    if shares is None:
        raise ValueError("infeasible aggregates")
    return shares


def optimise(
    demand: Sequence[Sequence[Number]],
    sites: Sequence[Sites],
    slots: Sequence[Number],
    aggregates: Sequence[Fraction],
    sequence: Sequence[int],
    site_floors: Mapping[tuple[int, int, int], Fraction] | None = None,
    seconds: Sequence[Sequence[Number]] | None = None,
) -> tuple[list[Fraction], Shares]:
    """Algorithms 6 and 8: for one job after the other, the largest y_l = min_k (sum_j a_ljk) / d_lk.

    With the durations w_lk of the tasks, ``seconds``, y_l = min_k (sum_j a_ljk) / w_lk (footnote of 4.5.2).

    Returns the y in the order of ``sequence``, and the shares. Only the first y is unique.
    Newton steps: let a cut be short by some deficit. On its source side are groups K of job l (and
    not the job's own node), and its capacity falls by what max(floor_lk, y d_lk), summed over K,
    rises; so that sum must shrink by the deficit, which gives the next y. No group has more than its tasks.
    """
    lower = site_floors or {}
    frozen: Shares = {}
    reached = []
    for target in sequence:
        row = [Fraction(d) for d in (demand if seconds is None else seconds)[target]]
        floor = [
            sum((lower.get((target, k, j), Fraction(0)) for j in s), Fraction(0)) for k, s in enumerate(sites)
        ]
        used = [k for k, d in enumerate(demand[target]) if d > 0]
        y = _least_ratio([row[k] for k in used], [floor[k] for k in used], aggregates[target])
        y = min([y, *(demand[target][k] / row[k] for k in used)])
        while True:
            least = {k: y * row[k] for k in used}
            shares, side, deficit = _fill(demand, sites, slots, aggregates, lower, frozen, target, least)
            if shares is not None:
                break
            cut = [k for k in used if ("group", target, k) in side]
            assert cut and ("job", target) not in side
            taken = sum((max(floor[k], y * row[k]) for k in cut), Fraction(0))
            new = _least_ratio([row[k] for k in cut], [floor[k] for k in cut], taken - deficit)
            assert new < y
            y = new
        reached.append(y)
        frozen.update({key: amount for key, amount in shares.items() if key[0] == target})
    return reached, frozen


def _least_ratio(demand: Sequence[Fraction], floors: Sequence[Fraction], room: Fraction) -> Fraction:
    """Largest y with sum of max(floor_k, y d_k) <= room."""
    steps = [(f / d, d) for f, d in zip(floors, demand, strict=True)]
    level = _level(steps, room - sum(floors, Fraction(0)))
    assert level is not None
    return level


def site_demand(instance: Instance, unfinished: Mapping[int, Sequence[int]], i: int) -> list[int]:
    """Demand of a job per site when every task stays at its associated site."""
    demand = [0] * len(instance.slots)
    for k, count in enumerate(unfinished[i]):
        demand[instance.groups[k][0]] += count
    return demand


class Problem(NamedTuple):
    """One sharing problem: the active jobs, demand per group, groups and floors; rows as in ``jobs``."""

    jobs: list[int]
    demand: list[list[int]]
    sites: list[Sites]
    floors: list[Fraction] | None
    site_floors: dict[tuple[int, int, int], Fraction] | None


def sharing_problem(
    instance: Instance, active: Sequence[int], unfinished: Mapping[int, Sequence[int]], base: str
) -> Problem:
    """base: amf, sig-amf (one singleton group per site), gamf or sig-gamf (the groups)."""
    slots, m = instance.slots, len(instance.slots)
    jobs = list(active)
    if base.endswith("gamf"):
        demand, sites = [list(unfinished[i]) for i in jobs], list(instance.groups)
    else:
        demand, sites = [site_demand(instance, unfinished, i) for i in jobs], [(j,) for j in range(m)]
    floors = sharing_floors(demand, sites, slots) if base == "sig-gamf" else None
    site_floors = None
    if base == "sig-amf":
        site_floors = {
            (x, j, j): min(Fraction(demand[x][j]), Fraction(slots[j], len(jobs)))
            for x in range(len(jobs))
            for j in range(m)
        }
    return Problem(jobs, demand, sites, floors, site_floors)


def fair_policy(instance: Instance, view: View, policy: str) -> Shares:
    """Shares of a named policy, keyed (job, group, site).

    Choice: where a job has several groups with one associated site, imf and the amf policies split
    the site's share over them in proportion to the demands.
    """
    base = policy.removeprefix("opt-")
    if policy not in FAIR_POLICIES:
        raise ValueError(f"unknown policy {policy}")
    if base == "imf":
        jobs = list(view.active)
        demand = [site_demand(instance, view.unfinished, i) for i in jobs]
        rows: Shares = {}
        for j, u in enumerate(instance.slots):
            for x, share in enumerate(water_fill([row[j] for row in demand], u)):
                rows[x, j, j] = share
    else:
        jobs, demand, sites, floors, site_floors = sharing_problem(
            instance, view.active, view.unfinished, base
        )
        aggregates = max_min(demand, sites, instance.slots, floors, site_floors)
        if policy == base:
            rows = allocation(demand, sites, instance.slots, aggregates, site_floors)
        else:

            def key(x: int) -> tuple[int, Number, int]:
                return sum(view.unfinished[jobs[x]]), instance.jobs[jobs[x]].arrival, jobs[x]

            sequence = sorted(range(len(jobs)), key=key)
            rows = optimise(demand, sites, instance.slots, aggregates, sequence, site_floors)[1]
    if base.endswith("gamf"):
        return {(jobs[x], k, j): share for (x, k, j), share in rows.items() if share > 0}
    shares: Shares = {}
    for (x, _, j), share in rows.items():
        for k, group in enumerate(instance.groups):
            if share > 0 and group[0] == j and view.unfinished[jobs[x]][k] > 0:
                shares[jobs[x], k, j] = share * view.unfinished[jobs[x]][k] / demand[x][j]
    return shares


def repair_shares(
    shares: Mapping[tuple[int, int, int], Number],
    unfinished: Mapping[tuple[int, int], int],
    slots: Sequence[int],
) -> dict[tuple[int, int, int], Number]:
    """Scaled down to d_ik per (job, group), then to u_j per site."""
    group_sum: Counter[tuple[int, int]] = Counter()
    for (i, k, _), share in shares.items():
        group_sum[i, k] += share
    fixed = {}
    for (i, k, j), share in shares.items():
        limit = unfinished.get((i, k), 0)
        fixed[i, k, j] = share * limit / group_sum[i, k] if group_sum[i, k] > limit else share
    site_sum: Counter[int] = Counter()
    for (_, _, j), share in fixed.items():
        site_sum[j] += share
    return {
        key: share * slots[key[2]] / site_sum[key[2]] if site_sum[key[2]] > slots[key[2]] else share
        for key, share in fixed.items()
    }


# --------------------------------------------------------------------------------------------
# Simulation
# --------------------------------------------------------------------------------------------


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
        assert self.free[j] > 0 and j in self.instance.groups[k]
        task = self.waiting[i][k].pop(0)
        self.start[i][task], self.site[i][task] = self.clock, j
        self.end[i][task] = self.clock + self.instance.jobs[i].tasks[task][0]
        self.ends.append((self.end[i][task], i, k, task))
        self.running[i, k, j] += 1
        self.free[j] -= 1

    def advance(self) -> tuple[list[int], bool, bool, bool] | None:
        """Go to the next instant: all task ends, then arrivals in job order.

        Returns the new jobs and whether a job, a (job, group), any task finished; None at the end.
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

    def record(self, view: View, order: Sequence[int], counts: Mapping[int, Counts], shares: Any) -> None:
        unfinished = {(i, k): x for i in view.active for k, x in enumerate(view.unfinished[i]) if x}
        waiting = {(i, k): x for i in view.active for k, x in enumerate(view.waiting[i]) if x}
        kept = {i: dict(own) for i, own in counts.items()}
        self.decisions.append(
            Decision(self.clock, view.active, view.new, unfinished, waiting, list(order), kept, dict(shares))
        )

    def outcome(self) -> Outcome:
        assert all(completion is not None for completion in self.completion), "the simulation got stuck"
        return Outcome(self.start, self.site, self.end, self.completion, self.decisions, self.series)


def simulate_assign(instance: Instance, policy: str | AssignRule, **options: Any) -> Outcome:
    """GeoAssign under a named policy (``ASSIGN_POLICIES``; options as in ``assign_policy``) or a function.

    Recomputed at instants with an arrival or a job completion, while jobs are active. Then a free
    slot takes the first job of the order with a waiting task assigned there: its lowest group, of
    that the lowest task.
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
            world.record(view, order, counts, {})
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
    """GeoFair under a named policy (``FAIR_POLICIES``) or a function that returns shares.

    Recomputed at instants with an arrival or the end of a (job, group), with ``aggressive`` at
    every task end, while jobs are active.
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
            world.record(view, [], {}, shares)
        for j in range(len(instance.slots)):
            while (
                world.free[j] > 0
                and (chosen := _next_fair(world, shares, j, sites, work_conserving)) is not None
            ):
                world.launch(*chosen, j)
    return world.outcome()


def _ratio(running: int, share: Number) -> Number:
    return Fraction(running) / share if isinstance(share, int | Fraction) else running / share


def _next_fair(
    world: _World, shares: Mapping[tuple[int, int, int], Number], j: int, sites: str, work_conserving: bool
) -> tuple[int, int] | None:
    """The (job, group) that takes a free slot at a site, or None.

    Jobs: least running/share at the site, then larger share, earlier arrival, lower index. With
    share 0 last: fewest running at the site, then overall, then earlier arrival, lower index.
    Choice: the groups of a job likewise: least running/share, larger share, lower index; with
    share 0 last: fewest running at the site, lower index. ``work_conserving=False`` leaves slots
    to jobs with share 0 only; a job with a share may use it for any of its groups.
    """
    groups = world.instance.groups

    def can_run(i: int, k: int) -> bool:
        return bool(world.waiting[i][k]) and (groups[k][0] == j if sites == "associated" else j in groups[k])

    def share_of(i: int) -> Number:
        return sum(shares.get((i, k, j), 0) for k in range(len(groups)))

    def job_key(i: int) -> tuple[Any, ...]:
        running, arrival = world.running_at(i, j), world.instance.jobs[i].arrival
        if (share := share_of(i)) > 0:
            return 0, _ratio(running, share), -share, arrival, i
        return 1, running, world.running_at(i), arrival, i

    def group_key(i: int, k: int) -> tuple[Any, ...]:
        running, share = world.running[i, k, j], shares.get((i, k, j), 0)
        return (0, _ratio(running, share), -share, k) if share > 0 else (1, running, k)

    jobs = [i for i in world.active if any(can_run(i, k) for k in range(len(groups)))]
    if not work_conserving:
        jobs = [i for i in jobs if share_of(i) > 0]
    if not jobs:
        return None
    best = min(jobs, key=job_key)
    return best, min((k for k in range(len(groups)) if can_run(best, k)), key=lambda k: group_key(best, k))


def validate(instance: Instance, outcome: Outcome) -> None:
    """Every task once, at an available site, after its arrival, unpreempted; never more than u_j."""
    for i, job in enumerate(instance.jobs):
        for x, (duration, sites) in enumerate(job.tasks):
            assert outcome.site[i][x] in sites
            assert outcome.start[i][x] >= job.arrival
            assert outcome.end[i][x] == outcome.start[i][x] + duration
        assert outcome.completion[i] == max(outcome.end[i])
    tasks = [(i, x) for i, job in enumerate(instance.jobs) for x in range(len(job.tasks))]
    for i, x in tasks:
        now, j = outcome.start[i][x], outcome.site[i][x]
        there = [(a, b) for a, b in tasks if outcome.site[a][b] == j]
        assert sum(outcome.start[a][b] <= now < outcome.end[a][b] for a, b in there) <= instance.slots[j]


# --------------------------------------------------------------------------------------------
# Metrics and bounds
# --------------------------------------------------------------------------------------------

PERCENTILES = (50, 90, 95, 99)


def percentile(values: Sequence[Number], q: Number) -> Number:
    """With linear interpolation between order statistics."""
    ordered = sorted(values)
    position = Fraction(q) * (len(ordered) - 1) / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    step = position - below
    if step == 0 or ordered[above] == ordered[below]:
        return ordered[below]
    gap = ordered[above] - ordered[below]
    return ordered[below] + (float(step) if isinstance(gap, float) else step) * gap


def _divide(a: Number, b: Number) -> Number:
    return a / b if isinstance(a, float) or isinstance(b, float) else Fraction(a) / Fraction(b)


def metrics_assign(instance: Instance, outcome: Outcome) -> dict[str, Any]:
    """Response times, use of the slots, recomputations.

    utilisation: busy slot time / (slots * time from first arrival to the last end). load: sum of
    durations / (slots * span), None without a span. recomputations: instants at which some job was
    active; recomputations_waiting: of these, with a waiting task.
    """
    arrivals = [job.arrival for job in instance.jobs]
    durations = [duration for job in instance.jobs for duration, _ in job.tasks]
    response = [c - a for c, a in zip(outcome.completion, arrivals, strict=True)]
    span, slots = instance.span, sum(instance.slots)
    result: dict[str, Any] = {
        "mean_response": _divide(sum(response), len(response)),
        "max_response": max(response),
        "makespan": max(outcome.completion) - min(arrivals),
        "utilisation": _divide(sum(durations), slots * (max(outcome.completion) - min(arrivals))),
        "load": _divide(sum(durations), slots * span) if span else None,
        "recomputations": len(outcome.decisions),
        "recomputations_waiting": sum(bool(decision.waiting) for decision in outcome.decisions),
        "longest_over_span": _divide(max(durations), span) if span else None,
    }
    for q in PERCENTILES:
        result[f"p{q}_response"] = percentile(response, q)
    return result


def clip(series: Sequence[Interval], until: Number) -> list[Interval]:
    """The part of a series up to an instant."""
    return [part._replace(end=min(part.end, until)) for part in series if part.begin < until]


def deviation(occupied: Sequence[int]) -> float:
    """Population standard deviation of the occupied slots over the active jobs."""
    mean = Fraction(sum(occupied), len(occupied))
    return math.sqrt(sum((x - mean) ** 2 for x in occupied) / len(occupied))


def jain(occupied: Sequence[int]) -> Fraction:
    """(sum x)^2 / (n sum x^2). Choice: 1 when nothing runs."""
    squares = sum(x * x for x in occupied)
    return Fraction(sum(occupied) ** 2, len(occupied) * squares) if squares else Fraction(1)


def weighted_percentile(pairs: Sequence[tuple[float, Number]], q: Number) -> float:
    """Least value with at least q percent of the weight at or below it."""
    total = sum(weight for _, weight in pairs)
    reached: Number = 0
    for value, weight in sorted(pairs):
        reached += weight
        if reached * 100 >= q * total:
            return value
    return max(value for value, _ in pairs)


def metrics_fair(instance: Instance, outcome: Outcome) -> dict[str, Any]:
    """The metrics of ``metrics_assign``, and of the aggregate allocations (occupied slots).

    Time with active jobs counts, up to the end ("") or to the last arrival ("_no_drain"; left out
    if no job is active before it): fairness_integral (of the standard deviation), mean_std (the
    integral over that time), p*_std, mean_jain. sharing_violations_site: triples (recomputation,
    job, site) with a_ij < min(d_ij, u_j / n), tasks at their associated sites.
    sharing_violations: pairs (recomputation, job) with A_i < X_i, over the groups;
    sharing_violations_associated: the same with singleton groups.
    """
    result = metrics_assign(instance, outcome)
    last = max(job.arrival for job in instance.jobs)
    for name, series in (("", outcome.series), ("_no_drain", clip(outcome.series, last))):
        if not series:
            continue
        spread = [(deviation(list(part.occupied.values())), part.end - part.begin) for part in series]
        even = [(jain(list(part.occupied.values())), part.end - part.begin) for part in series]
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
    """(job, site) pairs below min(d_ij, u_j / n), jobs below X_i by groups, and by singleton groups."""
    n, m = len(decision.active), len(instance.slots)
    unfinished = {
        i: [decision.unfinished.get((i, k), 0) for k in range(len(instance.groups))] for i in decision.active
    }
    total: dict[int, Number] = Counter()
    at: dict[tuple[int, int], Number] = Counter()
    for (i, _, j), share in decision.shares.items():
        total[i] += share
        at[i, j] += share
    demand = [site_demand(instance, unfinished, i) for i in decision.active]
    at_site = sum(
        at[i, j] < min(Fraction(row[j]), Fraction(instance.slots[j], n)) - tolerance
        for i, row in zip(decision.active, demand, strict=True)
        for j in range(m)
    )
    groups = sharing_floors([unfinished[i] for i in decision.active], instance.groups, instance.slots)
    single = sharing_floors(demand, [(j,) for j in range(m)], instance.slots)
    below = [
        sum(total[i] < x - tolerance for i, x in zip(decision.active, floors, strict=True))
        for floors in (groups, single)
    ]
    return at_site, below[0], below[1]


def job_bound(instance: Instance, i: int) -> Number:
    """Response of job i at least: its longest task, and its balanced fluid time on empty sites."""
    tasks = instance.jobs[i].tasks
    bound = max(duration for duration, _ in tasks)
    for inside in _subsets(len(instance.slots)):
        work = sum(duration for duration, sites in tasks if inside.issuperset(sites))
        if work:
            bound = max(bound, _divide(work, sum(instance.slots[j] for j in inside)))
    return bound


def pooled_srpt(instance: Instance) -> Number:
    """Mean response of preemptive SRPT on one machine as fast as all slots together."""
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
        done_at = clock + _divide(left[i], speed)
        if future and min(future) < done_at:
            left[i] -= (min(future) - clock) * speed
            clock = min(future)
        else:
            clock = done_at
            total += clock - instance.jobs[i].arrival
            open_jobs.remove(i)
    return _divide(total, len(left))


def lower_bounds(instance: Instance) -> dict[str, Number]:
    """Bounds on the mean response under any policy."""
    per_job = [job_bound(instance, i) for i in range(len(instance.jobs))]
    return {"per_job": _divide(sum(per_job), len(per_job)), "pooled_srpt": pooled_srpt(instance)}


# --------------------------------------------------------------------------------------------
# Random instances
# --------------------------------------------------------------------------------------------


def random_instance(
    rng: random.Random,
    max_sites: int = 4,
    max_jobs: int = 7,
    max_tasks: int = 6,
    max_slots: int = 3,
    adversarial: bool = True,
    singletons: bool = False,
    window: bool = False,
) -> Instance:
    """A small instance; adversarial: few distinct integer times, many ties, else float times.

    singletons: every task has one site. window: the sites of a task are s, s+1, ... (mod m) with one
    length for all, as in the workload (so associated sites and groups correspond).
    """
    m = rng.randint(1, max_sites)
    slots = [rng.randint(1, max_slots) for _ in range(m)]
    if rng.random() < 0.4:
        slots = [slots[0]] * m
    length = rng.randint(1, m)

    def draw_sites() -> Sites:
        if singletons:
            return (rng.randrange(m),)
        if window:
            first = rng.randrange(m)
            return tuple((first + x) % m for x in range(length))
        return tuple(rng.sample(range(m), rng.randint(1, m)))

    pool = [draw_sites() for _ in range(rng.randint(1, 4))]
    jobs = []
    clock: Number = 0
    for _ in range(rng.randint(1, max_jobs)):
        clock += rng.choice((0, 0, 1, 1, 2, 4)) if adversarial else rng.expovariate(1.0)
        count = rng.choice((1, max_tasks, rng.randint(1, max_tasks), rng.randint(1, max_tasks)))
        tasks = tuple(
            (rng.choice((1, 1, 2, 3)) if adversarial else rng.uniform(0.2, 4.0), rng.choice(pool))
            for _ in range(count)
        )
        jobs.append(Job(clock, tasks))
    return Instance(slots, jobs)
