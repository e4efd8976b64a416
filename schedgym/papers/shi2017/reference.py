"""Tiny jobs of independent tasks, placed and sized in exact numbers.

Plain lists and loops suffice, as instances have a handful of tasks and servers. A placement is the server of
each task. Times are fractions, or infinite if a task uses a group without resources.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from schedgym.papers.exact import simplex

__all__ = [
    "Job",
    "Number",
    "Placement",
    "Relaxed",
    "affords",
    "allocation_best",
    "alpha",
    "best",
    "closed_form",
    "coefficient",
    "completion",
    "energy",
    "equal_shares",
    "fast",
    "fat_tree",
    "finish",
    "fits",
    "group_times",
    "least_energy",
    "lesser_energy",
    "local_search",
    "longest",
    "most_efficient",
    "moved",
    "moves",
    "placements",
    "proportional",
    "relaxation",
    "task_times",
    "vcpu_times",
    "work",
]

Number = int | float | Fraction  # exact, or infinite
Placement = tuple[int, ...]
Vcpu = Sequence[Number]


class Job(NamedTuple):
    """A job and the resources that it may use.

    ``efficiency`` has a row per task with a value per server; a group is a tuple of servers, of whose vCPU
    the job may use ``limits``; ``energy_cap`` is E_MAX. ``weights`` are A_jk of the servers of each group,
    and ``power`` is alpha of each task; without them all are 1, as in the paper's experiments.
    """

    load: tuple[Number, ...]
    efficiency: tuple[tuple[Number, ...], ...]
    groups: tuple[tuple[int, ...], ...]
    limits: tuple[Number, ...]
    energy_cap: Number = math.inf
    weights: tuple[tuple[Number, ...], ...] = ()
    power: tuple[Number, ...] = ()

    @property
    def servers(self) -> int:
        """Number of servers."""
        return len(self.efficiency[0])


def fat_tree(
    capacity: Sequence[Number], arity: int, shares: Sequence[Number], server_caps: bool = True
) -> tuple[tuple[tuple[int, ...], ...], tuple[Number, ...]]:
    """Return groups and limits of a fat tree: the servers themselves, then racks, pods and the data centre.

    Args:
        capacity: capacity of each of the arity^3 / 4 servers.
        arity: arity of the tree; even.
        shares: shares of racks, pods and the data centre.
        server_caps: True if servers are groups, too.
    """
    sizes = (arity // 2, arity * arity // 4, len(capacity))
    levels = [(1, 1), *zip(sizes, shares, strict=True)] if server_caps else zip(sizes, shares, strict=True)
    groups: list[tuple[int, ...]] = []
    limits: list[Number] = []
    for size, share in levels:
        for first in range(0, len(capacity), size):
            groups.append(tuple(range(first, first + size)))
            limits.append(share * sum(capacity[first : first + size]))
    return tuple(groups), tuple(limits)


# allocation ------------------------------------------------------------------------------------------


def coefficient(job: Job, k: int, j: int) -> Number:
    """Return A_jk, what a vCPU on server j counts in group k: 0 if the server is not in it."""
    if j not in job.groups[k]:
        return 0
    return job.weights[k][job.groups[k].index(j)] if job.weights else 1


def alpha(job: Job, i: int) -> Number:
    """Return the power of a task per vCPU."""
    return job.power[i] if job.power else 1


def work(job: Job, i: int, j: int) -> Number:
    """Return L, the equivalent load of a task on a server, which with power 1 is also its energy."""
    return Fraction(job.load[i]) / Fraction(job.efficiency[i][j])


def energy(job: Job, placement: Placement) -> Number:
    """Return the energy of all tasks."""
    return sum(alpha(job, i) * work(job, i, j) for i, j in enumerate(placement))


def affords(job: Job, placement: Placement) -> bool:
    """Return True if the placement keeps the energy cap."""
    return energy(job, placement) <= job.energy_cap


def group_times(job: Job, placement: Placement) -> list[Number]:
    """Return the sum of A L in each group over its limit: 0 without tasks, infinite without resources."""
    found: list[Number] = []
    for k, limit in enumerate(job.limits):
        held = sum(coefficient(job, k, j) * work(job, i, j) for i, j in enumerate(placement))
        found.append(0 if held == 0 else held / Fraction(limit) if limit > 0 else math.inf)
    return found


def task_times(job: Job, placement: Placement) -> list[Number]:
    """Return execution times by Eq. 16: the longest time of the groups of each task's server."""
    own = group_times(job, placement)
    return [max(time for group, time in zip(job.groups, own, strict=True) if j in group) for j in placement]


def completion(job: Job, placement: Placement) -> Number:
    """Return the completion time by Eq. 16."""
    return max(group_times(job, placement))


def closed_form(
    weights: Sequence[Sequence[Number]], loads: Sequence[Number], limits: Sequence[Number]
) -> list[Fraction]:
    """Return the vCPU of each task by Eq. 16 as printed; ``weights`` are P, [constraint][task]."""
    sums = [
        sum((Fraction(p) * Fraction(x) for p, x in zip(row, loads, strict=True)), Fraction(0))
        for row in weights
    ]
    return [
        min(
            Fraction(x) / total * Fraction(b)
            for row, total, b in zip(weights, sums, limits, strict=True)
            if row[i] != 0
        )
        for i, x in enumerate(loads)
    ]


def _weights(job: Job, placement: Placement) -> list[list[Number]]:
    return [[coefficient(job, k, j) for j in placement] for k in range(len(job.groups))]


def proportional(job: Job, placement: Placement) -> list[Fraction]:
    """Return the vCPU of each task by Eq. 16."""
    loads = [work(job, i, j) for i, j in enumerate(placement)]
    return closed_form(_weights(job, placement), loads, job.limits)


def equal_shares(job: Job, placement: Placement) -> list[Fraction]:
    """Return the vCPU of each task if every limit is split equally among the tasks in its group."""
    return [
        min(
            Fraction(limit) / sum(other in group for other in placement) / Fraction(coefficient(job, k, j))
            for k, (group, limit) in enumerate(zip(job.groups, job.limits, strict=True))
            if j in group
        )
        for j in placement
    ]


def vcpu_times(job: Job, placement: Placement, vcpu: Vcpu) -> list[Number]:
    """Return execution times by Eq. 1."""
    return [work(job, i, j) / Fraction(c) for i, (j, c) in enumerate(zip(placement, vcpu, strict=True))]


def fits(job: Job, placement: Placement, vcpu: Vcpu) -> bool:
    """Return True if an allocation keeps all limits."""
    return all(c >= 0 for c in vcpu) and all(
        sum(coefficient(job, k, j) * c for j, c in zip(placement, vcpu, strict=True)) <= limit
        for k, limit in enumerate(job.limits)
    )


def allocation_best(
    weights: Sequence[Sequence[Number]], loads: Sequence[Number], limits: Sequence[Number]
) -> Fraction:
    """Return the optimum of OptRA, the largest 1 / JCT, by the simplex method; weights >= 0, limits > 0."""
    n = len(loads)
    rows: list[list[Fraction]] = [[Fraction(p) for p in row] + [Fraction(0)] for row in weights]
    rows += [[Fraction(-int(i == k)) for k in range(n)] + [Fraction(loads[i])] for i in range(n)]
    right = [*(Fraction(b) for b in limits), *[Fraction(0)] * n]
    return 1 / simplex([0] * n + [1], rows, right).value


# placement -------------------------------------------------------------------------------------------


def placements(job: Job) -> Iterator[Placement]:
    """Yield all placements that keep the energy cap."""
    for placement in itertools.product(range(job.servers), repeat=len(job.load)):
        if affords(job, placement):
            yield placement


def best(job: Job) -> tuple[Number, Placement]:
    """Return the least completion time, and the first placement that reaches it."""
    return min((completion(job, placement), placement) for placement in placements(job))


def most_efficient(job: Job) -> Placement:
    """Place every task on its most efficient server, the first one if several are."""
    return tuple(max(range(job.servers), key=lambda j: (row[j], -j)) for row in job.efficiency)


def least_energy(job: Job) -> Number:
    """Return the energy of :func:`most_efficient`."""
    return energy(job, most_efficient(job))


def moved(placement: Placement, i: int, j: int) -> Placement:
    """Return the placement with task i moved to server j."""
    return (*placement[:i], j, *placement[i + 1 :])


def moves(job: Job, placement: Placement) -> Iterator[Placement]:
    """Yield all placements that keep the energy cap and differ in the server of one task."""
    for i, j in itertools.product(range(len(job.load)), range(job.servers)):
        after = moved(placement, i, j)
        if j != placement[i] and affords(job, after):
            yield after


def longest(job: Job, placement: Placement) -> list[int]:
    """Return T_max, the tasks that take as long as the job."""
    times = task_times(job, placement)
    return [i for i, time in enumerate(times) if time == max(times)]


def local_search(job: Job, placement: Placement) -> list[Placement]:
    """Run phase III of Algorithm 1; return all placements from this one on."""
    path = [placement]
    while True:
        here = path[-1]
        times = task_times(job, here)
        for i in longest(job, here):
            options = []
            for j in range(job.servers):
                after = moved(here, i, j)
                time = task_times(job, after)[i]
                if affords(job, after) and time < times[i]:
                    options.append((time, j, after))
            if options:
                path.append(min(options)[2])
                break
        else:
            return path


def lesser_energy(job: Job, placement: Placement) -> Placement | None:
    """Return the move of REC (Algorithm 2) by the new completion time; None if its argmin is empty."""
    while not affords(job, placement):
        options = [
            (completion(job, after), i, j, after)
            for i, j in itertools.product(range(len(job.load)), range(job.servers))
            for after in [moved(placement, i, j)]
            if job.efficiency[i][j] > job.efficiency[i][placement[i]]
        ]
        if not options:
            return None
        placement = min(options)[3]
    return placement


def finish(job: Job, parts: Sequence[Sequence[Number]]) -> Placement | None:
    """Run phases II and III of TaPRA from the parts of tasks on servers; ties go to the first server."""
    start = tuple(max(range(job.servers), key=lambda j: (row[j], -j)) for row in parts)
    kept = lesser_energy(job, start)
    return None if kept is None else local_search(job, kept)[-1]


def fast(job: Job) -> Placement | None:
    """Run TaPRA-fast; None if the least energy is above the cap."""
    start = most_efficient(job)
    return local_search(job, start)[-1] if affords(job, start) else None


# the relaxation --------------------------------------------------------------------------------------


class Relaxed(NamedTuple):
    """Optimum of SJS-Relax-LP: the completion time, and the parts [task][server] of the tasks on servers."""

    bound: Fraction
    parts: list[list[Fraction]]


def relaxation(job: Job) -> Relaxed:
    """Solve SJS-Relax-LP for limits > 0 and a cap that can be kept, by the simplex method on its dual.

    The dual has prices u of tasks, y of limits and w of energy: maximise sum u - w E_MAX subject to
    u_i <= L_ij (alpha_i w + sum of A_jk y_k) and sum B y <= 1. The parts are the prices of its rows.
    """
    n, m, capped = len(job.load), job.servers, job.energy_cap < math.inf
    gain: list[Fraction] = [Fraction(1)] * n + [Fraction(0)] * len(job.groups)
    rows: list[list[Fraction]] = []
    for i, j in itertools.product(range(n), range(m)):
        own = Fraction(work(job, i, j))
        rows.append([Fraction(int(k == i)) for k in range(n)])
        rows[-1] += [-own * Fraction(coefficient(job, k, j)) for k in range(len(job.groups))]
        rows[-1] += [-own * Fraction(alpha(job, i))] if capped else []
    rows.append([Fraction(0)] * n + [Fraction(b) for b in job.limits] + [Fraction(0)] * capped)
    if capped:
        gain.append(-Fraction(job.energy_cap))
    found = simplex(gain, rows, [0] * (n * m) + [1])
    return Relaxed(found.value, [found.prices[i * m : (i + 1) * m] for i in range(n)])
