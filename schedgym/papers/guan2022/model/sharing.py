"""Chapters 4 and 5: max-min fair shares of the sites' slots.

Maximum flow and minimum cut: jobs can have the aggregates A together if and only if
sum_i max(A_i - D_i(T), 0) <= u(T) for every set T of sites, where D_i(T) is what job i can run outside T and
u(T) are the slots in T. Only the aggregates are unique, not the matrix of shares.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

import networkx as nx
from networkx.algorithms.flow import edmonds_karp

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
