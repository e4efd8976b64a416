"""Max-min shares of many small instances at once: the shares of ``model`` in whole numbers, for searches.

All amounts are multiples of 1 / :func:`unit` slots, as every level of up to six jobs is, so nothing is
rounded. All sets T of sites are enumerated, with D_i(T) and u(T) as in the model.

Batches consist of B instances with the same J jobs, K groups and M sites; axis S is the 2^M sets of sites.
Policies are "amf", "sig-amf" (groups of one site each), "gamf" and "sig-gamf".

Only aggregates are unique, not the matrix of allocations. A property of "the" allocation is therefore
checked for all matrices with these aggregates; :func:`most_useful` and :func:`least_useful` give extremes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from schedgym.core.arrays import Flags, Integers
from schedgym.errors import SchedgymError

Groups = tuple[tuple[int, ...], ...]

FAR = 1 << 60


def unit(jobs: int) -> int:
    """Return the units in a slot, J lcm(1..J): with J jobs all levels, also with floors, are whole units."""
    return jobs * math.lcm(*range(1, jobs + 1)) ** 2


def single_sites(sites: int) -> Groups:
    """Return one group for each site."""
    return tuple((j,) for j in range(sites))


def at_associated(demand: Integers, groups: Groups, sites: int) -> Integers:
    """Return the demand [..., M] if every task must run at the first site of its group."""
    result = np.zeros((*demand.shape[:-1], sites), dtype=np.int64)
    for k, group in enumerate(groups):
        result[..., group[0]] += demand[..., k]
    return result


def pad(groups: Groups) -> list[list[int]]:
    """Return groups in the form that the solvers expect: lists of equal length, padded with -1."""
    width = max(map(len, groups))
    return [list(group) + [-1] * (width - len(group)) for group in groups]


def outside_sets(groups: Groups, sites: int) -> Integers:
    """Return an array [K, S] that is 1 where a group can run outside a set of sites, else 0."""
    sets = range(1 << sites)
    rows = [[int(any(not inside >> j & 1 for j in group)) for inside in sets] for group in groups]
    return np.array(rows, dtype=np.int64).reshape(len(groups), 1 << sites)


def capacities(slots: Integers) -> Integers:
    """Return the slots in every set of sites [B, S], given the slots of each site [B, M]."""
    sites = slots.shape[1]
    inside = np.array([[s >> j & 1 for s in range(1 << sites)] for j in range(sites)], dtype=np.int64)
    return np.asarray(slots @ inside)


class FairShares(NamedTuple):
    """A batch of instances and their fair aggregates, in units.

    With SIG-AMF every (job, site) holds its floor, min(d_ij, u_j / n), beforehand; demand, need and capacity
    are what is left, and aggregates include the floors.
    """

    groups: Groups
    demand: Integers  # [B, J, K] as reported
    held: Integers  # [B, J, K] floors per group
    outside: Integers  # [K, S]
    capacity: Integers  # [B, S]
    need: Integers  # [B, J, S] D_i(T)
    least: Integers  # [B, J] floor of the aggregate
    aggregate: Integers  # [B, J]

    def take(self, instances: Integers) -> FairShares:
        """Return a batch of some of the instances."""
        kept = (self.demand, self.held, self.capacity, self.need, self.least, self.aggregate)
        demand, held, *others = (array[instances] for array in kept)
        return FairShares(self.groups, demand, held, self.outside, *others)


def isolated(demand: Integers, slots: Integers, groups: Groups) -> Integers:
    """Return X_i [B, J] in units, the most that job i can use alone of u_j / n slots at each site."""
    jobs = demand.shape[1]
    one = unit(jobs)
    need = demand @ outside_sets(groups, slots.shape[1]) * one
    least: Integers = (need + capacities(slots)[:, None] * (one // jobs)).min(axis=2)
    return least


def fair_shares(demand: Integers, slots: Integers, groups: Groups, policy: str) -> FairShares:
    """Compute the lexicographic max-min aggregates of a batch.

    Args:
        demand: [B, J, K] tasks, J <= 6.
        slots: [B, M].
        groups: available sites of each group; of one site each for "amf" and "sig-amf".
        policy: "amf", "sig-amf", "gamf" or "sig-gamf".
    """
    batch, jobs, _ = demand.shape
    one = unit(jobs)
    outside = outside_sets(groups, slots.shape[1])
    held = np.zeros_like(demand)
    free = slots * one
    if policy == "sig-amf":
        home = [group[0] for group in groups]
        held = np.minimum(demand * one, slots[:, None, home] * (one // jobs))
        free = free.copy()
        for k, j in enumerate(home):
            free[:, j] -= held[:, :, k].sum(axis=1)
    need = (demand * one - held) @ outside
    capacity = capacities(free)
    base = held.sum(axis=2)
    least = isolated(demand, slots, groups) if policy == "sig-gamf" else base
    aggregate = _raise(need, capacity, base, least)
    return FairShares(groups, demand, held, outside, capacity, need, least, aggregate)


def _raise(need: Integers, capacity: Integers, base: Integers, least: Integers) -> Integers:
    """Raise all jobs together from their floors; the jobs of a set stop when the set can get no more."""
    batch, jobs, _ = need.shape
    common = math.lcm(*range(1, jobs + 1))
    sets = [s for size in range(1, jobs + 1) for s in itertools.combinations(range(jobs), size)]
    member = np.array([[i in s for i in range(jobs)] for s in sets])
    # the most that a set of jobs can have
    rank = np.stack([(capacity + need[:, s].sum(1)).min(1) + base[:, s].sum(1) for s in sets], axis=1)
    floors = bool(least.any())
    result = np.zeros((batch, jobs), dtype=np.int64)
    rising = np.ones((batch, jobs), dtype=np.bool_)
    while rising.any():
        rest = rank - (result[:, None] * (member & ~rising[:, None])).sum(axis=2)
        level = np.full(batch, FAR)
        if floors:
            # sum over the set of max(least, t) = rest: least t over the subsets at t, the others at floors
            for x, whole in enumerate(sets):
                for part in sets[: x + 1]:
                    if set(part) <= set(whole):
                        others = [i for i in whole if i not in part]
                        floor = (least[:, others] * rising[:, others]).sum(axis=1)
                        found = (rest[:, x] - floor) * (common // len(part))
                        level = np.where(rising[:, part].all(axis=1), np.minimum(level, found), level)
        else:
            count = (member & rising[:, None]).sum(axis=2)
            level = np.where(count > 0, rest * (common // np.maximum(count, 1)), FAR).min(axis=1)
        active = rising.any(axis=1)
        if (level[active] % common).any():
            raise SchedgymError("a level is no multiple of the unit")
        level //= common
        height = np.maximum(least, level[:, None])
        full = (height[:, None] * (member & rising[:, None])).sum(axis=2) == rest
        stops = (full[:, :, None] & member).any(axis=1) & rising & (least <= level[:, None])
        if not stops[active].any(axis=1).all():
            raise SchedgymError("the floors are infeasible")
        result = np.where(stops, height, result)
        rising &= ~stops
    return result


def capacity_left(shares: FairShares, without: Sequence[int]) -> Integers:
    """Return the capacity [B, S] that all jobs but ``without`` leave in every set of sites."""
    others = [i for i in range(shares.demand.shape[1]) if i not in without]
    own = shares.aggregate[:, others] - shares.held[:, others].sum(axis=2)
    return np.asarray(
        shares.capacity - np.maximum(own[:, :, None] - shares.need[:, others], 0).sum(axis=1), dtype=np.int64
    )


def satisfies_definition(shares: FairShares) -> Flags:
    """Return by instance [B] whether the aggregates are max-min fair among allocations with the floors.

    By Definition 4.1 they must be feasible, and no job may be able to have more while all jobs that have no
    more than it keep their aggregates.
    """
    jobs = shares.demand.shape[1]
    own = shares.aggregate - shares.held.sum(axis=2)
    over = np.maximum(own[:, :, None] - shares.need, 0).sum(axis=1)
    fair: Flags = (over <= shares.capacity).all(axis=1) & (shares.aggregate >= shares.least).all(axis=1)
    for i in range(jobs):
        keeps = shares.aggregate <= shares.aggregate[:, [i]]
        lower = np.where(keeps, shares.aggregate, shares.least)
        lower[:, i] = 0
        beside = shares._replace(aggregate=lower)
        best = (capacity_left(beside, (i,)) + shares.need[:, i]).min(axis=1) + shares.held[:, i].sum(axis=1)
        fair &= best == shares.aggregate[:, i]
    return fair


def most_useful(shares: FairShares, job: int, tasks: Integers) -> Integers:
    """Return the most [B] that ``tasks`` [B, K] could use of a job's allocation by group, over all matrices.

    The tasks use sum_k min(a_k, tasks_k). The job is split into the part of its tasks that would be useful
    and the rest; as the aggregates are Pareto efficient, a flow with the most of the useful part can be
    completed without reducing that part.
    """
    one = unit(shares.demand.shape[1])
    held = shares.held[:, job]
    fixed = np.minimum(held, tasks * one)
    rest = np.minimum(shares.demand[:, job], tasks) * one - fixed
    return np.asarray(
        (rest @ shares.outside + capacity_left(shares, (job,))).min(axis=1) + fixed.sum(axis=1),
        dtype=np.int64,
    )


def least_useful(shares: FairShares, job: int, tasks: Integers) -> Integers:
    """Return the least [B] that ``tasks`` [B, K] could use of a job's allocation by group, over all matrices.

    This is the minimum over the matrices and over the sets of groups that count with their allocation, while
    the other groups count with the tasks. There must be no floors per group (so not for "sig-amf").
    """
    jobs, kinds = shares.demand.shape[1:]
    one = unit(jobs)
    useful = np.minimum(shares.demand[:, job], tasks) * one
    left = capacity_left(shares, (job,))
    least = useful.sum(axis=1)
    for chosen in itertools.product((0, 1), repeat=kinds):
        counted = np.array(chosen, dtype=np.int64)
        rest = 1 - counted
        # the allocation of the groups counted is what the others leave of the aggregate
        others = (shares.demand[:, job] * rest * one @ shares.outside + left).min(axis=1)
        least = np.minimum(least, useful @ rest + shares.aggregate[:, job] - others)
    return least


def water_shares(demand: Integers, slots: Integers) -> Integers:
    """Return IMF shares [B, J, M] in units: max-min fair at each site alone, for demand [B, J, M]."""
    jobs = demand.shape[1]
    one = unit(jobs)
    result = np.zeros_like(demand)
    empty = np.zeros(demand.shape[:2], dtype=np.int64)
    for j in range(slots.shape[1]):
        need = np.stack([demand[:, :, j] * one, empty], axis=2)
        capacity = np.stack([np.zeros(len(slots), dtype=np.int64), slots[:, j] * one], axis=1)
        result[:, :, j] = _raise(need, capacity, empty, empty)
    return result


class Batch(NamedTuple):
    """Instances of one policy, which have the same numbers of jobs, groups and sites.

    Attributes:
        policy: "imf", or one of :func:`fair_shares`.
        demand: tasks [B, J, K].
        slots: slots of the sites [B, M].
        groups: available sites of each group.
    """

    policy: str
    demand: Integers
    slots: Integers
    groups: Groups

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return self.demand.shape[1]

    def shares(self, policy: str = "") -> FairShares:
        """Return the fair shares under a policy, or under that of the batch; not under "imf"."""
        return fair_shares(*self[1:], policy or self.policy)

    def aggregates(self, policy: str = "") -> Integers:
        """Return the aggregates A [B, J] under a policy, or under that of the batch, in units."""
        if (policy or self.policy) == "imf":
            return np.asarray(water_shares(self.demand, self.slots).sum(axis=2))
        return self.shares(policy).aggregate


# enumeration ---------------------------------------------------------------------------------------


def settings(sites: int, kinds: int, slots: int, single: bool = False) -> Iterator[tuple[Groups, list[int]]]:
    """Yield all settings with given numbers of groups, sites and total slots, up to renaming sites.

    Args:
        sites: number M of sites; every site is in a group.
        kinds: number K of distinct groups.
        slots: total number of slots; every site has at least 1.
        single: True for groups of one site only (then M = K).

    Yields:
        groups, and slots [M].
    """
    lists = [g for size in range(1, sites + 1) for g in itertools.combinations(range(sites), size)]
    if single:
        lists = lists[:sites]
    seen = set()
    for chosen in itertools.combinations(lists, kinds):
        if len(set().union(*chosen)) < sites:
            continue
        for cuts in itertools.combinations(range(1, slots), sites - 1):
            amounts = [b - a for a, b in itertools.pairwise((0, *cuts, slots))]
            names = min(
                (
                    [amounts[j] for j in order],
                    sorted((len(g), sorted(order.index(j) for j in g)) for g in chosen),
                )
                for order in itertools.permutations(range(sites))
            )
            key = str(names)
            if key not in seen:
                seen.add(key)
                yield tuple(tuple(group) for _, group in names[1]), names[0]


def demand_rows(groups: Groups, slots: Sequence[int], beyond: int = 0) -> Integers:
    """Return all demands [N, K] of a job, not all 0, up to the slots of each group; more change nothing."""
    ranges = [range(sum(slots[j] for j in group) + beyond + 1) for group in groups]
    return np.array(list(itertools.product(*ranges))[1:], dtype=np.int64)


def job_multisets(rows: int, jobs: int) -> Integers:
    """Return indices of rows [P, jobs]: all choices with repetition, regardless of order."""
    return np.array(list(itertools.combinations_with_replacement(range(rows), jobs)), dtype=np.int64)
