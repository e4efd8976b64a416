"""Lower bounds on what any schedule of a Geo workload can reach.

Three bounds on the mean response: each job alone on empty sites, all jobs on one machine as fast as all
slots together (shortest remaining work first), and a mixture of both for several sets of sites.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import helper, kernel
from schedgym.core.workload import Workload
from schedgym.problems.geo.problem import GeoParameters
from schedgym.solvers.balance import UNSEEN, PlacementScratch, SiteLists, place
from schedgym.solvers.one_machine import serve_by_key, tail_times

__all__ = ["job_bounds", "lower_bound", "mixed_bound", "pooled_bound", "response_bound"]

F8 = npt.NDArray[np.float64]
I8 = npt.NDArray[np.int64]

UNITS = 2.0**60  # a job's work in the whole units of the flows
MARGIN = 1.0 + 2.0**-50  # on rooms: more than their rounding
STEP = 4.0  # of the first change of the weights, in nats for a difference as large as the best term
MOST_STEPS, LEAST_STEPS = 100, 20
MOST_VISITS = 10**7  # steps times terms, beyond the least number of steps


def lower_bound(workload: Workload, parameters: GeoParameters | None = None) -> float | None:
    """A lower bound on the objective of ``parameters`` (default: "response") under any policy.

    "response": :func:`response_bound` [s]. "fairness": None, nothing better than 0 is known. "weighted": that
    of the response by its weight.
    """
    if parameters is None or parameters.objective == "response":
        return response_bound(workload)
    if parameters.objective == "fairness":
        return None
    return (1.0 - parameters.fairness_weight) * response_bound(workload)


def response_bound(workload: Workload) -> float:
    """A lower bound [s] on the mean response of any schedule, up to rounding: the largest of the three."""
    parts = _split(workload)
    least, rate = _alone(parts)
    return max(float(least.mean()), _pooled(parts), _mixed(parts, least, rate))


def job_bounds(workload: Workload) -> F8:
    """The least response of each job [s], even if it were alone; [N].

    A job takes as long as its longest task, and as the least C in which a fractional flow brings its work
    to the sites of its tasks, each of which does slots * C. By max-flow and min-cut C is the largest ratio
    of work that can run at a set of sites only to the slots of that set. (Source: thesis 004, section
    3.2.1, there in whole tasks per slot.)
    """
    return _alone(_split(workload))[0]


def pooled_bound(workload: Workload) -> float:
    """Mean response [s] of preemptive shortest remaining work first on one machine, as fast as all slots.

    What all slots do in a schedule that machine can do too, at the same times, and on one machine this
    order minimises the mean response (Schrage 1968).
    """
    return _pooled(_split(workload))


def mixed_bound(workload: Workload) -> float:
    """A lower bound on the mean response [s] that mixes the least responses with machines of pooled slots.

    Let T be a set of sites with u slots, and V_i > 0 the work of job i in some of its tasks that can run at
    T only; let M_i be the mean time at which that work is done: the work until t, as a share of V_i,
    integrated against t. For every schedule, with release r_i and completion C_i:

    1. C_i >= r_i + L_i, L_i of :func:`job_bounds`.
    2. C_i >= M_i + h_i. Within the last s seconds before C_i a task is served for at most s seconds, and no
       longer than its duration, and all tasks for at most u s. So at C_i - s at least
       V_i - min(sum over tasks min(duration, s), u s) of the work is left, and C_i - M_i is the integral of
       what is left over s, divided by V_i. h_i is that integral of the lower limit. (u may be the slots of
       only those sites that the job's tasks can use.)
    3. For weights w_i >= 0, the sum of w_i M_i is at least its minimum over preemptive schedules of one
       machine of rate u with releases r_i: those of T are among them, at the same times. A time slice
       given to job i counts w_i / V_i times its date, so that serving the largest w_i / V_i first is
       optimal (by exchange of two slices; Goemans 1996).

    Hence, for several T and weights w_iT >= 0 that sum to at most 1 for each job, the sum of the C_i is at
    least the sum over i of (1 - sum over T of w_iT) (r_i + L_i) + sum over T of w_iT h_iT, plus the sum
    over T of the minimum of 3. Here T is the set of all sites, and the site set of each group with the
    tasks of that group. The right side is concave in the weights; multiplicative steps along its
    supergradient improve them, and the best value counts. Any weights give a bound.
    """
    parts = _split(workload)
    return _mixed(parts, *_alone(parts))


class _Parts(NamedTuple):
    """A workload by (job, set of sites). N jobs, P parts, K sets of at most A sites, M sites."""

    arrival: F8  # [N] from the first
    longest: F8  # [N] longest task of each job
    work: F8  # [N]
    first: I8  # [N + 1] first part of each job
    part_set: I8  # [P]
    part_work: F8  # [P]
    sites: I8  # [K, A] ascending, -1 pads at the end
    slots: I8  # [M]
    tasks: F8  # [T] durations by part
    task_first: I8  # [N + 1] first task of each job
    part_first: I8  # [P + 1] first task of each part


def _split(workload: Workload) -> _Parts:
    arrival, slots = workload.jobs["arrival"], workload.cluster["slots"]
    job, duration = workload.tasks["job"], workload.tasks["duration"]
    sites, group = _site_sets(workload.tasks["sites"], len(slots))
    count = len(arrival)
    pair = job * len(sites) + group
    order = np.argsort(pair, kind="stable")
    tasks = duration[order]
    pairs, part_first = np.unique(pair[order], return_index=True)
    part_first = np.append(part_first, len(tasks))
    first = np.searchsorted(pairs // len(sites), np.arange(count + 1))
    task_first = part_first[first]
    return _Parts(
        arrival=arrival - arrival[0],  # a late origin would cost digits
        longest=np.maximum.reduceat(tasks, task_first[:-1]),
        work=np.add.reduceat(tasks, task_first[:-1]),
        first=first,
        part_set=pairs % len(sites),
        part_work=np.add.reduceat(tasks, part_first[:-1]),
        sites=sites,
        slots=np.array(slots, dtype=np.int64),
        tasks=tasks,
        task_first=task_first,
        part_first=part_first,
    )


def _site_sets(sites: I8, count: int) -> tuple[I8, I8]:
    """The distinct sets of sites [K, A], each ascending and padded with -1; and the set of each task [T]."""
    ordered = np.sort(np.where(sites < 0, count, sites), axis=1)
    code = np.zeros(len(ordered), dtype=np.int64)
    size = 1
    for column in ordered.T:
        if size > 2**62 // (count + 1):
            values, code = np.unique(code, return_inverse=True)
            size = len(values)
        code = code * (count + 1) + column
        size *= count + 1
    _, example, code = np.unique(code, return_index=True, return_inverse=True)
    sets = ordered[example]
    return np.where(sets == count, -1, sets), code.astype(np.int64)


def _alone(parts: _Parts) -> tuple[F8, F8]:
    """The least response of each job [s] and the slots that it can use, both [N]."""
    least = parts.longest.copy()
    rate = np.zeros(len(least))
    _fluid(parts.first, parts.part_set, parts.part_work, parts.sites, parts.slots, least, rate)
    return least, rate


def _pooled(parts: _Parts) -> float:
    count = len(parts.arrival)
    completion, busy, left = np.empty(count), np.empty(count), np.empty(count)
    rate = float(parts.slots.sum())
    serve_by_key(parts.arrival, parts.work, np.empty(0), rate, math.inf, completion, busy, left)
    return float((completion - parts.arrival).mean())


def _mixed(parts: _Parts, least: F8, rate: F8) -> float:
    count, sets = len(parts.arrival), len(parts.sites)
    usable = np.unique(parts.sites)
    job = np.repeat(np.arange(count), np.diff(parts.first))
    by_set = np.argsort(parts.part_set, kind="stable")
    set_slots = np.where(parts.sites >= 0, parts.slots[parts.sites], 0).sum(axis=1).astype(np.float64)
    tail = np.empty(count)
    part_tail = np.empty(len(job))
    # a task is served for no longer than its duration: it is its own least time
    tail_times(parts.tasks, parts.tasks, parts.task_first, parts.work, rate, tail)
    reach = set_slots[parts.part_set]
    tail_times(parts.tasks, parts.tasks, parts.part_first, parts.part_work, reach, part_tail)
    terms = count + len(job)
    steps = min(max(MOST_VISITS // terms, LEAST_STEPS), MOST_STEPS)
    total = _ascend(
        parts.arrival,
        least,
        np.concatenate([[0], count + np.searchsorted(parts.part_set[by_set], np.arange(sets + 1))]),
        np.concatenate([[float(parts.slots[usable[usable >= 0]].sum())], set_slots]),
        np.concatenate([np.arange(count), job[by_set]]),
        np.concatenate([parts.work, parts.part_work[by_set]]),
        np.concatenate([tail, part_tail[by_set]]),
        steps,
    )
    return float(total / count)


class _Local(NamedTuple):
    """One job's parts ("groups") with its sites numbered anew. G groups of up to A sites, M sites."""

    number: I8  # [M] of a site, among those of the job; -1: it is none
    own: I8  # [M] the sites by these numbers
    sites: I8  # [G, A] numbers of each group's sites
    position: I8  # [G, A] as ``SiteLists.ascending``
    start: I8  # [M + 1] as in SiteLists
    entries: I8  # [G * A] as in SiteLists
    demand: I8  # [G] in whole units
    placement: I8  # [G, A]
    left: I8  # [G] as in PlacementScratch, like what follows
    room: I8  # [M]
    group_from: I8  # [G]
    site_from: I8  # [M]
    queue: I8  # [G + M]


@helper
def _number_sites(base: int, groups: int, part_set: I8, sites: I8, local: _Local) -> int:
    """Number the sites of the groups from part ``base`` on; how many there are."""
    count = 0
    for k in range(groups):
        for a in range(sites.shape[1]):
            j = sites[part_set[base + k], a]
            local.sites[k, a] = -1
            local.position[k, a] = -1
            if j >= 0:
                if local.number[j] < 0:
                    local.number[j] = count
                    local.own[count] = j
                    count += 1
                local.sites[k, a] = local.number[j]
                local.position[k, a] = a
    return count


@helper
def _index_entries(groups: int, count: int, local: _Local) -> None:
    """Set ``start`` and ``entries``: a counting sort of the groups' sites."""
    width = local.sites.shape[1]
    start = local.start
    for j in range(count + 1):
        start[j] = 0
    for k in range(groups):
        for a in range(width):
            if local.sites[k, a] >= 0:
                start[local.sites[k, a] + 1] += 1
    for j in range(count):
        start[j + 1] += start[j]
    for k in range(groups):
        for a in range(width):
            if local.sites[k, a] >= 0:
                local.entries[start[local.sites[k, a]]] = k * width + a
                start[local.sites[k, a]] += 1
    for j in range(count, 0, -1):
        start[j] = start[j - 1]
    start[0] = 0


@helper
def _raise_to_cuts(
    base: int,
    level: float,
    work: float,
    part_work: F8,
    slots: I8,
    lists: SiteLists,
    scratch: PlacementScratch,
    local: _Local,
) -> float:
    """The least time >= ``level`` in which a flow brings the job's work to its sites."""
    groups = lists.sites.shape[0]
    m = scratch.room.shape[0]
    scale = UNITS / work
    units = 0
    for k in range(groups):
        local.demand[k] = int(part_work[base + k] * scale)
        units += local.demand[k]
    while True:
        for j in range(m):
            wanted = slots[local.own[j]] * level * scale * MARGIN + 1.0
            scratch.room[j] = units if wanted >= units else int(wanted)
        if place(local.demand[:groups], lists, local.placement[:groups], scratch) == 0:
            return level
        inside = 0.0
        for k in range(groups):
            if scratch.group_from[k] != UNSEEN:
                inside += part_work[base + k]
        reached = 0
        for j in range(m):
            if scratch.site_from[j] != UNSEEN:
                reached += slots[local.own[j]]
        if not inside / reached > level:
            return level
        level = inside / reached


@kernel
def _fluid(first: I8, part_set: I8, part_work: F8, sites: I8, slots: I8, least: F8, rate: F8) -> None:
    """Raise ``least`` [N] to the fluid time of each job; ``rate`` [N] becomes the slots that it can use.

    The time grows from one violated cut to the ratio of that cut (Dinkelbach 1967), at first the ratios of
    single groups and of all. Flows are in whole units, demands rounded down and rooms up, so that a violated
    cut is one; its ratio is that of the real works.
    """
    width = sites.shape[1]
    most = 1
    for i in range(first.shape[0] - 1):
        most = max(most, first[i + 1] - first[i])
    local = _Local(
        np.full(slots.shape[0], -1, dtype=np.int64),
        np.empty(slots.shape[0], dtype=np.int64),
        np.empty((most, width), dtype=np.int64),
        np.empty((most, width), dtype=np.int64),
        np.empty(slots.shape[0] + 1, dtype=np.int64),
        np.empty(most * width, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty((most, width), dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(slots.shape[0], dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(slots.shape[0], dtype=np.int64),
        np.empty(most + slots.shape[0], dtype=np.int64),
    )
    for i in range(first.shape[0] - 1):
        base = first[i]
        groups = first[i + 1] - base
        m = _number_sites(base, groups, part_set, sites, local)
        work = 0.0
        level = 0.0
        for k in range(groups):
            here = 0
            for a in range(width):
                if local.sites[k, a] >= 0:
                    here += slots[local.own[local.sites[k, a]]]
            work += part_work[base + k]
            level = max(level, part_work[base + k] / here)
        total = 0
        for j in range(m):
            total += slots[local.own[j]]
        rate[i] = total
        level = max(level, work / total)
        if groups > 1:
            _index_entries(groups, m, local)
            lists = SiteLists(
                local.sites[:groups],
                local.position[:groups],
                local.start[: m + 1],
                local.entries[: groups * width],
            )
            scratch = PlacementScratch(
                local.left[:groups],
                local.room[:m],
                local.group_from[:groups],
                local.site_from[:m],
                local.queue[: groups + m],
            )
            level = _raise_to_cuts(base, level, work, part_work, slots, lists, scratch, local)
        for j in range(m):
            local.number[local.own[j]] = -1
        least[i] = max(least[i], level)


@kernel
def _ascend(arrival: F8, least: F8, first: I8, rate: F8, job: I8, work: F8, tail: F8, steps: int) -> float:
    """The sum of :func:`mixed_bound`, less the arrivals.

    Args:
        arrival: [N].
        least: L [N].
        first: first term of each set of sites T [F + 1].
        rate: slots of each T [F].
        job: of each term, ascending within a T [E].
        work: V [E].
        tail: h [E].
        steps: evaluations.
    """
    jobs = least.shape[0]
    terms = job.shape[0]
    release = np.empty(terms)
    weight = np.empty(terms)
    key = np.empty(terms)
    gain = np.empty(terms)
    completion = np.empty(terms)
    busy = np.empty(terms)
    left = np.empty(terms)
    rest = np.empty(jobs)  # the weight of L
    top = np.empty(jobs)
    total = np.ones(jobs)
    for x in range(terms):
        release[x] = arrival[job[x]]
        total[job[x]] += 1.0
    for i in range(jobs):
        rest[i] = 1.0 / total[i]
    for x in range(terms):
        weight[x] = 1.0 / total[job[x]]
    best = 0.0
    for i in range(jobs):
        best += least[i]
    for step in range(steps):
        value = 0.0
        for i in range(jobs):
            value += rest[i] * least[i]
            top[i] = least[i]
        for x in range(terms):
            key[x] = -weight[x] / work[x]
        for f in range(rate.shape[0]):
            a = first[f]
            b = first[f + 1]
            out = (completion[a:b], busy[a:b], left[a:b])
            serve_by_key(release[a:b], work[a:b], key[a:b], rate[f], math.inf, *out)
        for x in range(terms):
            gain[x] = busy[x] + tail[x] - release[x]
            value += weight[x] * gain[x]
            top[job[x]] = max(top[job[x]], gain[x])
        best = max(best, value)
        length = STEP / math.sqrt(step + 1.0)
        for i in range(jobs):
            rest[i] *= math.exp(length * (least[i] / top[i] - 1.0))
            total[i] = rest[i]
        for x in range(terms):
            weight[x] *= math.exp(length * (gain[x] / top[job[x]] - 1.0))
            total[job[x]] += weight[x]
        for i in range(jobs):
            rest[i] /= total[i]
        for x in range(terms):
            weight[x] /= total[job[x]]
    return best
