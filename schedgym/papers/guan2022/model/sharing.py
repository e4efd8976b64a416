"""Chapters 4 and 5: max-min fair shares of the sites' slots.

Maximum flow and minimum cut: jobs can have the aggregates A together if and only if
sum_i max(A_i - D_i(T), 0) <= u(T) for every set T of sites, where D_i(T) is what job i can run outside T and
u(T) are the slots in T. Only the aggregates are unique, not the matrix of shares.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

from schedgym.papers.guan2022.model.instances import Instance, Number, Shares, Sites, View

__all__ = [
    "FAIR_POLICIES",
    "Problem",
    "aggregates_of",
    "allocation",
    "decision_problem",
    "fair_policy",
    "is_feasible",
    "isolated_shares",
    "least_aggregates",
    "max_min",
    "most_beside",
    "optimise",
    "rank_function",
    "sharing_problem",
    "site_demand",
    "subsets",
    "useful_range",
    "water_fill",
]

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


def most_beside(problem: Problem, aggregates: Sequence[Fraction], job: int) -> Fraction:
    """Return the most that a job can have beside given feasible aggregates of the others."""
    base, rest, room = _beyond_site_floors(problem)
    more = []
    for inside in subsets(len(room)):
        left = _room(room, inside) + _outside(rest[job], problem.groups, inside)
        for i, own in enumerate(aggregates):
            if i != job:
                left -= max(own - base[i] - _outside(rest[i], problem.groups, inside), Fraction(0))
        more.append(left)
    return base[job] + min(more)


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


Node = tuple[Any, ...]
Network = dict[Node, dict[Node, Fraction]]


def _max_flow(network: Network, source: Node, sink: Node) -> tuple[Network, set[Node]]:
    """Return a maximum flow, along shortest augmenting paths, and the source side of a minimum cut."""
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
    problem: Problem,
    aggregates: Sequence[Fraction],
    frozen: Shares,
    target: int | None = None,
    least: Mapping[int, Fraction] = MappingProxyType({}),
) -> tuple[Shares | None, set[Node], Fraction]:
    """Find shares with the given aggregates, floors, frozen jobs, and a_lk >= least[k] for the target job l.

    With a target, floors at sites need groups of one site.

    Returns:
        the shares or None, the source side of a minimum cut, and the amount that does not fit.
    """
    room = [Fraction(u) for u in problem.slots]
    done = {i for i, _, _ in frozen}
    shares: Shares = dict(frozen)
    for (_, _, j), amount in frozen.items():
        room[j] -= amount
    network: Network = {("source",): {}}
    need = Fraction(0)
    for i, demand in enumerate(problem.demand):
        if i in done:
            continue
        network["job", i] = {}
        own = aggregates[i]
        for k, group in enumerate(problem.groups):
            if demand[k] == 0:
                continue
            capacity = Fraction(demand[k])
            floors = {j: problem.site_floors.get((i, k, j), Fraction(0)) for j in group}
            low = sum(floors.values(), Fraction(0))
            if i == target:  # a mandatory part straight from the source
                low = max(low, least[k])
                network["source",]["group", i, k] = low
                need += low
            else:
                for j, floor in floors.items():
                    if floor:
                        shares[i, k, j] = floor
                        room[j] -= floor
            own -= low
            network["job", i]["group", i, k] = capacity - low
            network["group", i, k] = {("site", j): capacity for j in sorted(group)}
        network["source",]["job", i] = own
        need += own
        if own < 0:
            raise ValueError("the aggregate is below the floors")
    for j, free in enumerate(room):
        network["site", j] = {("sink",): free}
    flow, side = _max_flow(network, ("source",), ("sink",))
    if (deficit := need - sum(flow["source",].values(), Fraction(0))) > 0:
        return None, side, deficit
    through = [
        (a[1:], b[1], x) for a, out in flow.items() if a[0] == "group" for b, x in out.items() if x > 0
    ]
    for (i, k), j, amount in through:
        shares[i, k, j] = shares.get((i, k, j), Fraction(0)) + amount
    return shares, side, Fraction(0)


def is_feasible(problem: Problem, aggregates: Sequence[Fraction]) -> bool:
    """Return whether the jobs can have these aggregates, which must be no less than the floors."""
    return _fill(problem, aggregates, {})[0] is not None


def allocation(problem: Problem, aggregates: Sequence[Fraction]) -> Shares:
    """Return one of the matrices with these aggregates.

    Raises:
        ValueError: there is none.
    """
    shares = _fill(problem, aggregates, {})[0]
    if shares is None:
        raise ValueError("infeasible aggregates")
    return shares


def optimise(
    problem: Problem,
    aggregates: Sequence[Fraction],
    sequence: Sequence[int],
    seconds: Sequence[Sequence[Number]] | None = None,
) -> tuple[list[Fraction], Shares]:
    """Give one job after the other the largest y_l = min_k (sum_j a_ljk) / d_lk, by Algorithms 6 and 8.

    Newton steps: let a cut be short by some deficit. On its source side are groups K of job l (and not the
    job's own node), and its capacity falls by what max(floor_lk, y d_lk), summed over K, rises; so that sum
    must shrink by the deficit, which gives the next y. No group has more than its tasks.

    Args:
        problem: the problem.
        aggregates: of all jobs; they stay.
        sequence: the jobs in order.
        seconds: known durations w_lk of the tasks [J][K]: y_l = min_k (sum_j a_ljk) / w_lk (footnote in
            section 4.5.2).

    Returns:
        The y in the order of ``sequence``, of which only the first is unique, and the shares.
    """
    frozen: Shares = {}
    reached = []
    for target in sequence:
        demand = problem.demand[target]
        row = [Fraction(d) for d in (problem.demand if seconds is None else seconds)[target]]
        held = [
            [problem.site_floors.get((target, k, j), Fraction(0)) for j in group]
            for k, group in enumerate(problem.groups)
        ]
        floor = [sum(own, Fraction(0)) for own in held]
        used = [k for k, d in enumerate(demand) if d > 0]
        y = _least_ratio([row[k] for k in used], [floor[k] for k in used], aggregates[target])
        y = min([y, *(demand[k] / row[k] for k in used)])
        while True:
            least = {k: y * row[k] for k in used}
            shares, side, deficit = _fill(problem, aggregates, frozen, target, least)
            if shares is not None:
                break
            cut = [k for k in used if ("group", target, k) in side]
            taken = sum((max(floor[k], y * row[k]) for k in cut), Fraction(0))
            y = _least_ratio([row[k] for k in cut], [floor[k] for k in cut], taken - deficit)
        reached.append(y)
        frozen.update({key: amount for key, amount in shares.items() if key[0] == target})
    return reached, frozen


def _least_ratio(demand: Sequence[Fraction], floors: Sequence[Fraction], room: Fraction) -> Fraction:
    """Return the largest y with sum of max(floor_k, y d_k) <= room."""
    steps = [(floor / d, d) for floor, d in zip(floors, demand, strict=True)]
    level = _level(steps, room - sum(floors, Fraction(0)))
    if level is None:
        raise ValueError("a job without tasks has no ratio")
    return level


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
