"""Lower bounds on the objective of any schedule of a Geo workload.

There are three bounds on the mean response. The first gives each job all sites for itself. The second runs
all jobs on one machine that is as fast as all slots together, shortest remaining work first. The third mixes
both for several sets of sites.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from schedgym.core.arrays import Floats, Integers
from schedgym.core.jit import kernel
from schedgym.core.workload import Workload
from schedgym.problems.geo.problem import GeoParameters
from schedgym.problems.geo.workload import row_keys
from schedgym.solvers.balance import (
    UNSEEN,
    PlacementScratch,
    SiteLists,
    make_placement_scratch,
    make_site_lists,
    place,
)
from schedgym.solvers.one_machine import serve_by_key, tail_times

UNITS = 2.0**60  # a job's work in the whole units of the flows
MARGIN = 1.0 + 2.0**-50  # factor of capacities that exceeds their rounding
STEP = 4.0  # of the first change of the weights, in nats for a difference as large as the best term
MOST_STEPS, LEAST_STEPS = 100, 20
MOST_VISITS = 10**7  # steps times terms, beyond the least number of steps


def lower_bound(workload: Workload, parameters: GeoParameters | None = None) -> float | None:
    """Return a lower bound on the objective of ``parameters`` (default: "response") under any policy.

    "response": :func:`response_bound` [s]. "weighted": the bound of the response times its weight.

    "fairness": None. A bound here depends on the workload alone, and holds for schedules that leave slots
    free, too (as with ``work_conserving=False``, or where tasks wait at the site they are assigned to). Of
    these one is perfectly even: each job runs one task at a time, and the next one from the instant at which
    that ends. Each active job then occupies one slot, so that the standard deviation is always 0. It is a
    schedule of the workload if each next task finds a free slot at one of its sites: always if no site has
    fewer slots than there are jobs, and in generated episodes of the default size and of 200 jobs at sites
    of 20 slots, as tests show. There the optimum is 0, and no better bound exists.
    """
    if parameters is None or parameters.objective == "response":
        return response_bound(workload)
    if parameters.objective == "fairness":
        return None
    return (1.0 - parameters.fairness_weight) * response_bound(workload)


def response_bound(workload: Workload) -> float:
    """Return a lower bound [s] on the mean response, up to rounding: the largest of the three bounds."""
    parts = _split(workload)
    least, rate = _alone(parts)
    return max(float(least.mean()), _pooled(parts), _mixed(parts, least, rate))


def job_bounds(workload: Workload) -> Floats:
    """Return the least response of each job [s] if it is alone; [N].

    A job takes at least as long as its longest task, and at least the least time C in which a fractional flow
    can bring its work to the sites of its tasks, where each site does slots * C. By max-flow and min-cut, C
    is the largest ratio of the work that can run only at a set of sites to the slots of that set. (Source:
    guan2022, section 3.2.1, there in whole tasks per slot.)
    """
    return _alone(_split(workload))[0]


def pooled_bound(workload: Workload) -> float:
    """Return the mean response [s] of preemptive shortest remaining work first on one pooled machine.

    The machine is as fast as all slots together, so it can do the work of any schedule at the same times; and
    on one machine this order minimises the mean response (Schrage 1968).
    """
    return _pooled(_split(workload))


def mixed_bound(workload: Workload) -> float:
    """Return a lower bound on the mean response [s] that mixes least responses with pooled machines.

    Let T be a set of sites with u slots, and V_i > 0 the work of job i in some of its tasks that can run
    only at T; let M_i be the mean time at which that work is done: the integral of t dF(t), where F(t) is
    the share of V_i done until t. For every schedule, with release r_i and completion C_i:

    1. C_i >= r_i + L_i, L_i of :func:`job_bounds`.
    2. C_i >= M_i + h_i. Within the last s seconds before C_i a task is served for at most s seconds, and no
       longer than its duration, and all tasks for at most u s. So at C_i - s at least
       V_i - min(sum over tasks min(duration, s), u s) of the work is left, and C_i - M_i is the integral
       over s of the rest, divided by V_i. h_i is that integral for this least rest. (u may be the slots of
       only those sites that the job's tasks can use.)
    3. For weights w_i >= 0, the sum of w_i M_i is at least its minimum over preemptive schedules of one
       machine of rate u with releases r_i, which can do the work of T at the same times. A time slice
       given to job i costs w_i / V_i times its date, so that serving the largest w_i / V_i first is
       optimal (by exchange of two slices; Goemans 1996).

    Hence, for several T and weights w_iT >= 0 that sum to at most 1 for each job, the sum of the C_i is at
    least the sum over i of (1 - sum over T of w_iT) (r_i + L_i) + sum over T of w_iT h_iT, plus the sum
    over T of the minimum of 3. Here T is the set of all sites, and the site set of each group with the
    tasks of that group. The right side is concave in the weights; multiplicative steps along its
    supergradient improve them, and the best value is returned. Any weights give a bound.
    """
    parts = _split(workload)
    return _mixed(parts, *_alone(parts))


class _Parts(NamedTuple):
    """A workload in parts (job, set of sites). N jobs, P parts, K sets of at most A sites, M sites."""

    arrival: Floats  # [N] from the first
    longest: Floats  # [N] longest task of each job
    work: Floats  # [N]
    first: Integers  # [N + 1] first part of each job
    part_set: Integers  # [P]
    part_work: Floats  # [P]
    sites: Integers  # [K, A] ascending, -1 pads at the end
    slots: Integers  # [M]
    tasks: Floats  # [T] durations by part
    task_first: Integers  # [N + 1] first task of each job
    part_first: Integers  # [P + 1] first task of each part


def _split(workload: Workload) -> _Parts:
    arrival, slots = workload.jobs["arrival"], workload.cluster["slots"]
    job, duration = workload.tasks["job"], workload.tasks["duration"]
    lists = workload.tasks["sites"]
    ordered = np.sort(np.where(lists < 0, len(slots), lists), axis=1)  # sets of sites, pads at the end
    keys = row_keys(ordered, len(slots) + 1)
    _, example, group = np.unique(keys, return_index=True, return_inverse=True)
    sites = np.where(ordered[example] < len(slots), ordered[example], -1)
    count = len(arrival)
    pair = job * len(sites) + group
    order = np.argsort(pair, kind="stable")
    tasks = duration[order]
    pairs, part_first = np.unique(pair[order], return_index=True)
    part_first = np.append(part_first, len(tasks))
    first = np.searchsorted(pairs // len(sites), np.arange(count + 1))
    task_first = part_first[first]
    return _Parts(
        arrival=arrival - arrival[0],  # a large origin would lose digits
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


def _set_slots(parts: _Parts) -> Floats:
    """Return the slots of each set of sites [K]."""
    return np.where(parts.sites >= 0, parts.slots[parts.sites], 0).sum(axis=1).astype(np.float64)


def _alone(parts: _Parts) -> tuple[Floats, Floats]:
    """Return the least response of each job [s] and the slots that it can use, both [N]."""
    count, sites = len(parts.arrival), len(parts.slots)
    job, own = np.repeat(np.arange(count), np.diff(parts.first)), parts.sites[parts.part_set]
    pair = np.unique((job[:, np.newaxis] * sites + own)[own >= 0])
    rate = np.asarray(np.bincount(pair // sites, parts.slots[pair % sites], count), dtype=np.float64)
    # start with the ratios of single groups and of all together
    single = np.maximum.reduceat(parts.part_work / _set_slots(parts)[parts.part_set], parts.first[:-1])
    least = np.maximum(np.maximum(parts.longest, single), np.bincount(job, parts.part_work, count) / rate)
    lists, scratch = make_site_lists(parts.sites, sites), make_placement_scratch(len(parts.sites), sites)
    demand, placement = np.zeros(len(parts.sites), dtype=np.int64), np.zeros_like(parts.sites)
    _raise_to_cuts(parts, lists, demand, placement, scratch, least)
    return least, rate


def _pooled(parts: _Parts) -> float:
    count = len(parts.arrival)
    completion, busy, left = np.empty(count), np.empty(count), np.empty(count)
    rate = float(parts.slots.sum())
    serve_by_key(parts.arrival, parts.work, np.empty(0), rate, math.inf, completion, busy, left)
    return float((completion - parts.arrival).mean())


def _mixed(parts: _Parts, least: Floats, rate: Floats) -> float:
    count, sets = len(parts.arrival), len(parts.sites)
    usable = np.unique(parts.sites)
    job = np.repeat(np.arange(count), np.diff(parts.first))
    by_set = np.argsort(parts.part_set, kind="stable")
    set_slots = _set_slots(parts)
    tail = np.empty(count)
    part_tail = np.empty(len(job))
    # a task is served for no longer than its duration, so that is its least time
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


@kernel
def _raise_to_cuts(
    parts: _Parts,
    lists: SiteLists,
    demand: Integers,
    placement: Integers,
    scratch: PlacementScratch,
    least: Floats,
) -> None:
    """Raise ``least`` [N] to the least time in which a flow brings the work of each job to its sites.

    The time is raised to the ratio of a violated cut until no cut is violated (Dinkelbach 1967). Flows are in
    whole units, with demands rounded down and capacities up, so that a cut that seems violated is violated;
    its ratio is that of the real works.
    """
    for i in range(least.shape[0]):
        own = range(parts.first[i], parts.first[i + 1])
        if len(own) == 1:
            continue
        work = 0.0
        for p in own:
            work += parts.part_work[p]
        scale = UNITS / work
        units = 0
        demand[:] = 0
        for p in own:
            demand[parts.part_set[p]] = int(parts.part_work[p] * scale)
            units += demand[parts.part_set[p]]
        while True:
            for j in range(parts.slots.shape[0]):
                wanted = parts.slots[j] * least[i] * scale * MARGIN + 1.0
                scratch.capacity_left[j] = units if wanted >= units else int(wanted)
            if place(demand, lists, placement, scratch) == 0:
                break
            inside = 0.0
            for p in own:
                if scratch.group_from[parts.part_set[p]] != UNSEEN:
                    inside += parts.part_work[p]
            reached = 0
            for j in range(parts.slots.shape[0]):
                if scratch.site_from[j] != UNSEEN:
                    reached += parts.slots[j]
            if not inside / reached > least[i]:
                break
            least[i] = inside / reached


@kernel
def _ascend(
    arrival: Floats,
    least: Floats,
    first: Integers,
    rate: Floats,
    job: Integers,
    work: Floats,
    tail: Floats,
    steps: int,
) -> float:
    """Return the sum of :func:`mixed_bound`, minus the arrivals.

    Args:
        arrival: [N].
        least: L [N].
        first: first term of each set of sites T [F + 1].
        rate: slots of each T [F].
        job: job of each term, ascending within a T [E].
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
