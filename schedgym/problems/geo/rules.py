"""The thesis's algorithms as compiled functions of one environment: orders with placements, and shares.

The baseline policies call them on an observation, the environment in its views ``priority``, ``rule``,
``weights`` and ``fair-rule``. They allocate nothing.

One environment has n active jobs (rows, in order of arrival, which decides ties), K groups with at most A
available sites each, M sites, and E = K * A entries: entry k * A + a is the a-th site of group k. The
arrays hold n rows or more, of which the first n are read and written. Jobs without tasks do no harm.

Source: thesis 004, chapters 3 (``assign``), 4 and 5 (``fair``). The solvers are in
``schedgym.solvers``.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Floats, Integers, Integers32, allocate
from schedgym.core.jit import helper, pure_kernel
from schedgym.core.order import sort_rows
from schedgym.solvers.balance import (
    PlacementScratch,
    SiteLists,
    balance_into,
    greedy_into,
    place,
)
from schedgym.solvers.max_min import (
    LEAST_WEIGHT,
    Network,
    complete_into,
    hold_in_network,
    load_network,
    make_network,
    share_into,
    unit_scale,
    water_into,
)

__all__ = [
    "ASSIGN_RULES",
    "CLOSED",
    "FAIR_RULES",
    "SHARING_TOLERANCE",
    "AssignScratch",
    "FairScratch",
    "assign",
    "fair",
    "make_assign_scratch",
    "make_fair_network",
    "make_fair_scratch",
    "place_in_order",
    "sharing_violations",
    "weighted_fair",
]

Counts = npt.NDArray[np.int32]

ASSIGN_RULES: tuple[str, ...] = (
    "fcfs",
    "srpt",
    "swag",
    "btawj-fcfs",
    "btawj-swag",
    "btaaj-fcfs",
    "btaaj-swag",
    "scta",
    "ata",
    "ata-greedy",
)
FCFS, SRPT, SWAG, BTAWJ_FCFS, BTAWJ_SWAG, BTAAJ_FCFS, BTAAJ_SWAG, SCTA, ATA, ATA_GREEDY = range(
    len(ASSIGN_RULES)
)

FAIR_RULES: tuple[str, ...] = (
    "imf",
    "amf",
    "sig-amf",
    "opt-amf",
    "opt-sig-amf",
    "gamf",
    "sig-gamf",
    "opt-gamf",
    "opt-sig-gamf",
)
IMF, AMF, SIG_AMF, OPT_AMF, OPT_SIG_AMF, GAMF, SIG_GAMF, OPT_GAMF, OPT_SIG_GAMF = range(len(FAIR_RULES))

CLOSED = -1.0  # the share of an entry at which no task may start
SHARING_TOLERANCE = 1e-6  # slots; of fewer than 1000 jobs two different aggregates differ by more

FIXED, BALANCED, GREEDY = 0, 1, 2  # how a job that is appended gets its tasks placed


class AssignScratch(NamedTuple):
    """Work space of :func:`assign` and :func:`place_in_order`. J jobs, K groups, A sites each, M sites."""

    load: Annotated[Integers, "site"]  # tasks of the jobs in the order so far
    trial: Annotated[Integers, "site"]
    units: Annotated[Integers, "site"]  # slots in the unit of balance
    changed: Annotated[Integers, "site"]  # sites whose load the last job changed
    tasks: Annotated[Integers, "group"]
    placement: Annotated[Integers, "group", "choice"]
    #: tasks of a job at a site; of one still to be placed, whether it can run there
    at: Annotated[Integers, "job", "site"]
    how: Annotated[Integers, "job"]  # FIXED, BALANCED or GREEDY
    fresh: Annotated[Integers, "job"]  # whether an estimate holds at the present loads
    top: Annotated[Integers, "job"]  # the estimate is top / bottom
    bottom: Annotated[Integers, "job"]
    low: Annotated[Integers, "job"]  # no estimate at higher loads is below low / low_bottom
    low_bottom: Annotated[Integers, "job"]
    left: Annotated[Integers, "job"]  # jobs not in the order yet
    key: Annotated[Integers, "job"]


class FairScratch(NamedTuple):
    """Work space of :func:`fair`, :func:`weighted_fair`, :func:`sharing_violations`, beside a Network."""

    demand: Annotated[Integers32, "job", "site"]  # tasks by associated site
    held: Annotated[Integers, "job", "site"]  # units that are a job's in any case
    singles: Annotated[Integers, "site", 1]  # every site alone
    order: Annotated[Integers, "job"]
    key: Annotated[Integers, "job"]
    rate: Annotated[Floats, "job"]
    wanted: Annotated[Floats, "job"]
    given: Annotated[Floats, "job"]
    tasks: Annotated[Integers, "group"]
    placement: Annotated[Integers, "group", "choice"]
    ascending: Annotated[Integers, "group", "choice"]  # as in SiteLists, without closed entries


def make_assign_scratch(jobs: int, groups: int, width: int, sites: int) -> AssignScratch:
    """Work space for up to ``jobs`` jobs, ``groups`` groups of up to ``width`` sites, ``sites`` sites."""
    return allocate(AssignScratch, {"job": jobs, "group": groups, "choice": width, "site": sites})


def make_fair_scratch(jobs: int, groups: int, width: int, sites: int) -> FairScratch:
    """Work space for up to ``jobs`` jobs, ``groups`` groups of up to ``width`` sites, ``sites`` sites."""
    scratch = allocate(FairScratch, {"job": jobs, "group": groups, "choice": width, "site": sites})
    scratch.singles[:, 0] = np.arange(sites)
    return scratch


def make_fair_network(jobs: int, groups: int, width: int, sites: int) -> Network:
    """A network for :func:`fair` and :func:`weighted_fair`: either groups, or single sites."""
    return make_network(jobs, max(groups, sites), width, sites, jobs * max(groups, sites))


# Orders and placements ------------------------------------------------------------------------


@helper
def _sort(order: Integers, key: Integers, n: int) -> None:
    """Sort rows 0 .. n - 1 by key, ties by row, into ``order``."""
    for i in range(n):
        order[i] = i
    sort_rows(order, key, n)


@helper
def _take(i: int, waiting: Counts, tasks: Integers) -> int:
    """Copy a job's waiting tasks; their number."""
    total = 0
    for k in range(tasks.shape[0]):
        tasks[k] = waiting[i, k]
        total += tasks[k]
    return total


@helper
def _give(i: int, placement: Integers, counts: Counts) -> None:
    """Copy a placement into a job's counts."""
    width = placement.shape[1]
    for k in range(placement.shape[0]):
        for a in range(width):
            counts[i, k * width + a] = placement[k, a]


@helper
def _add(i: int, lists: SiteLists, counts: Counts, load: Integers) -> None:
    """Add a job's counts to the loads of their sites."""
    width = lists.sites.shape[1]
    for k in range(lists.sites.shape[0]):
        for a in range(width):
            count = counts[i, k * width + a]
            if count > 0:
                load[lists.sites[k, a]] += count


@helper
def _associate(i: int, waiting: Counts, width: int, counts: Counts) -> None:
    """Place a job's waiting tasks at their associated sites."""
    for k in range(waiting.shape[1]):
        counts[i, k * width] = waiting[i, k]
        for a in range(1, width):
            counts[i, k * width + a] = 0


@pure_kernel
def place_in_order(
    greedy: bool,
    literal: bool,
    n: int,
    order: Integers,
    waiting: Counts,
    slots: Integers,
    lists: SiteLists,
    room: PlacementScratch,
    scratch: AssignScratch,
    counts: Counts,
) -> None:
    """Place all waiting tasks, job by job in the given order.

    Args:
        greedy: as ATA-Greedy does, else at the associated sites.
        literal: of :func:`~schedgym.solvers.balance.greedy_balance`.
        n: jobs.
        order: [>= n] the rows 0 .. n - 1, the first first.
        waiting: [>= n, K] waiting tasks.
        slots: [M].
        lists: available sites.
        room: work space.
        scratch: work space.
        counts: [>= n, E] written, n rows: tasks at each entry.
    """
    width = lists.sites.shape[1]
    for j in range(slots.shape[0]):
        scratch.load[j] = 0
    for x in range(n):
        i = order[x]
        if greedy and _take(i, waiting, scratch.tasks) > 0:
            greedy_into(scratch.tasks, lists, slots, scratch.load, scratch.placement, room, literal)
            _give(i, scratch.placement, counts)
        else:
            _associate(i, waiting, width, counts)


class _Work(NamedTuple):
    """What the steps of :func:`assign` work on and in; as there."""

    literal: bool
    unit: int  # of balance; ``scratch.units`` are the slots over it
    waiting: Counts
    slots: Integers
    lists: SiteLists
    room: PlacementScratch
    scratch: AssignScratch
    counts: Counts


@pure_kernel
def _estimate(i: int, work: _Work) -> None:
    """The estimate of a job at the present loads, and a bound on it at higher ones.

    The estimate is max (r_j + q_ij) / u_j over the sites with tasks of the job. With fixed tasks it grows
    with the loads, with greedily placed ones too (every group gets the least of the numbers
    (load + 1) / u_j, which a higher load only raises), literal ones excepted. The level C of ``balance``
    grows, and the estimate is above the next lower level, but does not grow itself.
    """
    scratch = work.scratch
    slots = work.slots
    load = scratch.load
    sites = slots.shape[0]
    top = 0
    bottom = 1
    if scratch.how[i] == FIXED:
        for j in range(sites):
            tasks = scratch.at[i, j]
            if tasks > 0 and (load[j] + tasks) * bottom > top * slots[j]:
                top = load[j] + tasks
                bottom = slots[j]
        scratch.low[i] = top
        scratch.low_bottom[i] = bottom
    else:
        trial = scratch.trial
        placement = scratch.placement
        for j in range(sites):
            trial[j] = load[j]
        _take(i, work.waiting, scratch.tasks)
        level = 0
        if scratch.how[i] == GREEDY:
            greedy_into(scratch.tasks, work.lists, slots, trial, placement, work.room, work.literal)
            _give(i, placement, work.counts)
        else:
            level = balance_into(scratch.tasks, work.lists, scratch.units, load, placement, work.room)
            _give(i, placement, work.counts)
            _add(i, work.lists, work.counts, trial)
        for j in range(sites):
            if trial[j] > load[j] and trial[j] * bottom > top * slots[j]:
                top = trial[j]
                bottom = slots[j]
        if scratch.how[i] == BALANCED:
            scratch.low[i] = level - 1
            scratch.low_bottom[i] = work.unit
        elif work.literal:
            scratch.low[i] = 0
            scratch.low_bottom[i] = 1
        else:
            scratch.low[i] = top
            scratch.low_bottom[i] = bottom
    scratch.top[i] = top
    scratch.bottom[i] = bottom
    scratch.fresh[i] = 1


@helper
def _begin_order(size: int, work: _Work) -> None:
    """Before the first job is appended: no loads, no estimates, and at which sites each job matters."""
    scratch = work.scratch
    waiting = work.waiting
    width = work.lists.sites.shape[1]
    sites = scratch.load.shape[0]
    for j in range(sites):
        scratch.load[j] = 0
    for x in range(size):
        i = scratch.left[x]
        scratch.fresh[i] = 0
        scratch.low[i] = 0
        scratch.low_bottom[i] = 1
        for j in range(sites):
            scratch.at[i, j] = 0
        if scratch.how[i] == FIXED:
            _add(i, work.lists, work.counts, scratch.at[i])
            continue
        for k in range(waiting.shape[1]):
            if waiting[i, k] > 0:
                for a in range(width):
                    j = work.lists.sites[k, a]
                    if j >= 0:
                        scratch.at[i, j] = 1


@helper
def _is_behind(top: int, bottom: int, i: int, best: int, scratch: AssignScratch) -> bool:
    """Whether job i, whose estimate is top / bottom or more, comes after job ``best`` (-1: none yet)."""
    if best < 0:
        return False
    estimate = top * scratch.bottom[best]
    least = scratch.top[best] * bottom
    return estimate > least or (estimate == least and i > best)


@helper
def _take_its_tasks(best: int, left: int, work: _Work) -> None:
    """Add the tasks of a job that has been appended to the loads; estimates that this may raise are stale.

    ``left`` jobs are not in the order yet.
    """
    scratch = work.scratch
    at = scratch.at
    sites = at.shape[1]
    if scratch.how[best] != FIXED:
        for j in range(sites):
            at[best, j] = 0
        _add(best, work.lists, work.counts, at[best])
    changed = 0
    for j in range(sites):
        if at[best, j] > 0:
            scratch.load[j] += at[best, j]
            scratch.changed[changed] = j
            changed += 1
    for x in range(left):
        i = scratch.left[x]
        if scratch.fresh[i] == 1:
            for y in range(changed):
                if at[i, scratch.changed[y]] > 0:
                    scratch.fresh[i] = 0
                    break


@pure_kernel
def _append(size: int, order: Integers, work: _Work) -> None:
    """Append the job with the least estimate, ties by row, until all are in the order.

    Args:
        size: how many rows stand in ``scratch.left``, ascending; all have waiting tasks.
        order: [>= size] written.
        work: ``how`` [n] is set, and the counts of jobs with FIXED tasks; jobs still to be placed get theirs.
    """
    scratch = work.scratch
    left = scratch.left
    _begin_order(size, work)
    for position in range(size):
        # the best of the estimates that hold, then those of the others that could be better
        best = -1
        where = -1
        for x in range(size - position):
            i = left[x]
            if scratch.fresh[i] == 1:
                if best < 0 or scratch.top[i] * scratch.bottom[best] < scratch.top[best] * scratch.bottom[i]:
                    best = i
                    where = x
        for x in range(size - position):
            i = left[x]
            if scratch.fresh[i] == 1 or _is_behind(scratch.low[i], scratch.low_bottom[i], i, best, scratch):
                continue
            _estimate(i, work)
            if not _is_behind(scratch.top[i], scratch.bottom[i], i, best, scratch):
                best = i
                where = x
        order[position] = best
        for x in range(where, size - position - 1):
            left[x] = left[x + 1]
        _take_its_tasks(best, size - position - 1, work)


@helper
def _collect(
    n: int, last: int, new: npt.NDArray[np.int8], waiting: Counts, order: Integers, scratch: AssignScratch
) -> int:
    """Put the jobs with waiting tasks into ``scratch.left``, and the others first in the order.

    New jobs behind row ``last`` are left out: they have no counts yet.
    """
    size = 0
    idle = 0
    for i in range(n):
        if new[i] != 0 and i > last:
            continue
        tasks = 0
        for k in range(waiting.shape[1]):
            tasks += waiting[i, k]
        if tasks > 0:
            scratch.left[size] = i
            size += 1
        else:
            order[idle] = i
            idle += 1
    return size


@helper
def _place_new(n: int, new: npt.NDArray[np.int8], onto: bool, work: _Work) -> None:
    """Balance each new job alone, or ``onto`` the tasks of the jobs before it and of all that are placed."""
    load = work.scratch.load
    for j in range(load.shape[0]):
        load[j] = 0
    if onto:
        for i in range(n):
            _add(i, work.lists, work.counts, load)
    for i in range(n):
        if new[i] != 0 and _take(i, work.waiting, work.scratch.tasks) > 0:
            balance_into(
                work.scratch.tasks, work.lists, work.scratch.units, load, work.scratch.placement, work.room
            )
            _give(i, work.scratch.placement, work.counts)
            if onto:
                _add(i, work.lists, work.counts, load)


@helper
def _place_new_in_order(
    n: int, new: npt.NDArray[np.int8], together: bool, order: Integers, work: _Work
) -> None:
    """Balance new jobs where they are appended, one by one or ``together``; ``order`` is overwritten."""
    how = work.scratch.how
    if together:
        for i in range(n):
            how[i] = BALANCED if new[i] != 0 else FIXED
        _append(_collect(n, n, new, work.waiting, order, work.scratch), order, work)
    for i in range(n):
        if new[i] != 0 and not together:
            how[i] = BALANCED
            _append(_collect(n, i, new, work.waiting, order, work.scratch), order, work)
        how[i] = FIXED


@pure_kernel
def assign(
    rule: int,
    fine: bool,
    literal: bool,
    greedy: bool,
    together: bool,
    n: int,
    waiting: Counts,
    remaining: Counts,
    assigned: Counts,
    new: npt.NDArray[np.int8],
    slots: Integers,
    lists: SiteLists,
    room: PlacementScratch,
    scratch: AssignScratch,
    order: Integers,
    counts: Counts,
) -> None:
    """The order and the placement that a rule of chapter 3 decides on.

    Args:
        rule: index into :data:`ASSIGN_RULES`.
        fine: btawj, btaaj, scta, ata: levels of balance in multiples of 1 / gcd(slots).
        literal: ata-greedy, and fcfs and srpt with ``greedy``: the thesis's formula.
        greedy: fcfs, srpt: place all waiting tasks greedily in that order, else at their associated sites.
        together: scta: jobs that are new together are placed in one pass, not one after another.
        n: jobs.
        waiting: [>= n, K] waiting tasks.
        remaining: [>= n] unfinished tasks; only srpt reads them.
        assigned: [>= n, E] where the waiting tasks of jobs that are not new are to run. May be ``counts``.
        new: [>= n] 1 where nothing has been decided on the job yet.
        slots: [M] at least 1.
        lists: available sites.
        room: of :func:`~schedgym.solvers.balance.make_placement_scratch` (K, M).
        scratch: of :func:`make_assign_scratch`.
        order: [>= n] written: the rows 0 .. n - 1, the first served first.
        counts: [>= n, E] written, n rows: waiting tasks of each job at each entry.

    Source: thesis 004, sections 3.2.1 to 3.2.4. Deviations: estimates are divided by the slots (Algorithm 3,
    line 23, Algorithm 4, line 22).
    """
    width = lists.sites.shape[1]
    sites = slots.shape[0]
    if rule == FCFS or rule == SRPT:
        for i in range(n):
            scratch.key[i] = remaining[i] if rule == SRPT else 0
        _sort(order, scratch.key, n)
        place_in_order(greedy, literal, n, order, waiting, slots, lists, room, scratch, counts)
        return
    unit = 1
    if fine:
        unit = 0
        for j in range(sites):
            unit = math.gcd(unit, slots[j])
    for j in range(sites):
        scratch.units[j] = slots[j] // unit
    work = _Work(literal, unit, waiting, slots, lists, room, scratch, counts)
    if rule == ATA or rule == ATA_GREEDY:
        how = BALANCED if rule == ATA else GREEDY
        for i in range(n):
            scratch.how[i] = how
            for e in range(counts.shape[1]):
                counts[i, e] = 0
    else:
        for i in range(n):
            scratch.how[i] = FIXED
            for e in range(counts.shape[1]):
                counts[i, e] = 0 if new[i] != 0 else assigned[i, e]
        if rule == SWAG:
            for i in range(n):
                if new[i] != 0:
                    _associate(i, waiting, width, counts)
        elif rule == SCTA:
            _place_new_in_order(n, new, together, order, work)
        else:
            _place_new(n, new, rule == BTAAJ_FCFS or rule == BTAAJ_SWAG, work)
        if rule == BTAWJ_FCFS or rule == BTAAJ_FCFS:
            for i in range(n):
                order[i] = i
            return
    size = _collect(n, n, new, waiting, order, scratch)
    _append(size, order[n - size :], work)


# Shares ---------------------------------------------------------------------------------------


@helper
def _associated_demand(n: int, unfinished: Counts, lists: SiteLists, demand: Counts) -> None:
    """Sum each job's tasks by associated site."""
    for i in range(n):
        for j in range(demand.shape[1]):
            demand[i, j] = 0
        for k in range(unfinished.shape[1]):
            if unfinished[i, k] > 0:
                demand[i, lists.sites[k, 0]] += unfinished[i, k]


@helper
def _split(
    i: int, j: int, amount: float, unfinished: Counts, lists: SiteLists, demand: Counts, share: Floats
) -> None:
    """Split a job's share of a site over the groups associated with it, in proportion to their tasks."""
    width = lists.sites.shape[1]
    for position in range(lists.start[j], lists.start[j + 1]):
        entry = lists.entries[position]
        k = entry // width
        if entry == k * width and unfinished[i, k] > 0:
            share[i, entry] = amount
            if unfinished[i, k] < demand[i, j]:
                share[i, entry] = amount * unfinished[i, k] / demand[i, j]


@helper
def _clear(associated: bool, n: int, width: int, share: Floats) -> None:
    """Shares of zero; with ``associated`` all but the first entry of a group closed."""
    for i in range(n):
        for e in range(share.shape[1]):
            share[i, e] = CLOSED if associated and e % width != 0 else 0.0


@helper
def _write(
    associated: bool,
    n: int,
    scale: int,
    unfinished: Counts,
    lists: SiteLists,
    net: Network,
    demand: Counts,
    share: Floats,
) -> None:
    """Write the allocation of a solved network in slots; the other entries are set."""
    width = lists.sites.shape[1]
    for i in range(n):
        for g in range(net.start[i], net.start[i + 1]):
            k = net.kind[g]
            if associated:
                amount = (net.flow[g] + net.held[g]) / scale
                _split(i, k, amount, unfinished, lists, demand, share)
            else:
                for a in range(width):
                    share[i, k * width + a] = net.flow[g * width + a] / scale


@pure_kernel
def weighted_fair(
    associated: bool,
    n: int,
    weights: Any,
    unfinished: Counts,
    slots: Integers,
    lists: SiteLists,
    net: Network,
    scratch: FairScratch,
    share: Floats,
) -> None:
    """Shares whose aggregates, over the jobs' weights, are max-min fair.

    Args:
        associated: tasks stay at their associated sites (ones: AMF), else run at any available one (GAMF).
        n: jobs.
        weights: [>= n] at least 0; those below 1e-9 of the largest are raised to it, and if all are 0,
            they are all 1.
        unfinished: [>= n, K] unfinished tasks.
        slots: [M] at least 1.
        lists: available sites.
        net: of :func:`make_fair_network`.
        scratch: of :func:`make_fair_scratch`.
        share: [>= n, E] written, n rows: slots at each entry, :data:`CLOSED` where no task may start.
    """
    width = lists.sites.shape[1]
    _clear(associated, n, width, share)
    scale = unit_scale(slots, 1)
    if associated:
        _associated_demand(n, unfinished, lists, scratch.demand)
        load_network(scratch.demand, scratch.singles, slots, scale, n, net)
    else:
        load_network(unfinished, lists.sites, slots, scale, n, net)
    largest = 0.0
    for i in range(n):
        largest = max(largest, float(weights[i]))
    if largest > 0.0:
        for i in range(n):
            net.weight[i] = max(weights[i] / largest, LEAST_WEIGHT)
    share_into(net, n, 1 if associated else width, scale)
    _write(associated, n, scale, unfinished, lists, net, scratch.demand, share)


@pure_kernel
def fair(
    rule: int,
    n: int,
    unfinished: Counts,
    slots: Integers,
    lists: SiteLists,
    net: Network,
    room: PlacementScratch,
    scratch: FairScratch,
    share: Floats,
) -> None:
    """The shares that a rule of chapters 4 and 5 decides on.

    Where several groups of a job have one associated site, imf and the amf rules split the job's share of
    the site in proportion to the demands.

    Args:
        rule: index into :data:`FAIR_RULES`.
        n: jobs; a floor is what a job can use of 1 / n of every site.
        unfinished: [>= n, K] unfinished tasks, the demand.
        slots: [M] at least 1.
        lists: available sites.
        net: of :func:`make_fair_network`.
        room: of :func:`~schedgym.solvers.balance.make_placement_scratch` (K, M).
        scratch: of :func:`make_fair_scratch`.
        share: [>= n, E] written, n rows: slots at each entry, :data:`CLOSED` where no task may start.

    Source: thesis 004, sections 4.1 to 4.5 and 5.2 to 5.4. Deviations: a_ijk >= 0, which (5.2) omits.
    """
    width = lists.sites.shape[1]
    associated = rule < GAMF
    _clear(associated, n, width, share)
    if n == 0:
        return
    if associated:
        _associated_demand(n, unfinished, lists, scratch.demand)
    if rule == IMF:
        wanted = scratch.wanted[:n]
        given = scratch.given[:n]
        for j in range(slots.shape[0]):
            for i in range(n):
                wanted[i] = scratch.demand[i, j]
            water_into(float(slots[j]), wanted, given)
            for i in range(n):
                if given[i] > 0.0:
                    _split(i, j, given[i], unfinished, lists, scratch.demand, share)
        return
    floors = rule == SIG_AMF or rule == OPT_SIG_AMF or rule == SIG_GAMF or rule == OPT_SIG_GAMF
    scale = unit_scale(slots, n if floors else 1)
    if associated:
        load_network(scratch.demand, scratch.singles, slots, scale, n, net)
        if floors:
            for i in range(n):
                for j in range(slots.shape[0]):
                    scratch.held[i, j] = min(int(scratch.demand[i, j]) * n, int(slots[j])) * (scale // n)
            hold_in_network(scratch.held, n, 1, net)
    else:
        load_network(unfinished, lists.sites, slots, scale, n, net)
        if floors:
            for i in range(n):
                total = _shared_among(i, n, unfinished, slots, room, scratch)
                left = place(scratch.tasks, lists, scratch.placement, room)
                net.floor[i] = (total - left) * (scale // n)
    used = 1 if associated else width
    share_into(net, n, used, scale)
    if rule == OPT_AMF or rule == OPT_SIG_AMF or rule == OPT_GAMF or rule == OPT_SIG_GAMF:
        for i in range(n):
            tasks = 0
            for k in range(unfinished.shape[1]):
                tasks += unfinished[i, k]
            scratch.key[i] = tasks
        _sort(scratch.order, scratch.key, n)
        complete_into(net, scratch.order, n, used, scratch.rate)
    _write(associated, n, scale, unfinished, lists, net, scratch.demand, share)


@helper
def _shared_among(
    i: int, n: int, unfinished: Counts, slots: Integers, room: PlacementScratch, scratch: FairScratch
) -> int:
    """Set up a job alone with 1 / n of every site, in units of 1 / n; the sum of its demand."""
    total = 0
    for k in range(unfinished.shape[1]):
        scratch.tasks[k] = int(unfinished[i, k]) * n
        total += scratch.tasks[k]
    for j in range(slots.shape[0]):
        room.room[j] = slots[j]
    return total


@pure_kernel
def sharing_violations(
    n: int,
    unfinished: Counts,
    share: Floats,
    slots: Integers,
    lists: SiteLists,
    room: PlacementScratch,
    scratch: FairScratch,
) -> int:
    """How many jobs have less than they could use of an equal part of every site, alone.

    Job i violates if A_i < X_i - :data:`SHARING_TOLERANCE`: A_i sums its shares, and X_i is its maximum
    flow with capacities u_j / n, over the entries that are not closed to it.

    Args:
        n: jobs.
        unfinished: [>= n, K] unfinished tasks.
        share: [>= n, E] slots at each entry; negative where no task may start.
        slots: [M].
        lists: available sites.
        room: of :func:`~schedgym.solvers.balance.make_placement_scratch` (K, M).
        scratch: of :func:`make_fair_scratch`.

    Source: thesis 004, (4.3), (4.4) and (5.21) to (5.24).
    """
    groups, width = lists.sites.shape
    sites = slots.shape[0]
    whole = 0
    for j in range(sites):
        whole += slots[j]
    count = 0
    for i in range(n):
        total = 0
        aggregate = SHARING_TOLERANCE
        for k in range(groups):
            tasks = int(unfinished[i, k])
            if tasks > 0:
                total += tasks
                for a in range(width):
                    aggregate += max(share[i, k * width + a], 0.0)
        if aggregate * n >= min(total * n, whole):
            continue
        # all that the flow could be at its sites, each by itself
        reach = 0
        for j in range(sites):
            wanted = 0
            for position in range(lists.start[j], lists.start[j + 1]):
                entry = lists.entries[position]
                if share[i, entry] >= 0.0:
                    wanted += int(unfinished[i, entry // width])
            reach += min(wanted * n, slots[j])
        if aggregate * n >= reach:
            continue
        for k in range(groups):
            kept = 0
            for b in range(width):
                a = lists.ascending[k, b]
                if a >= 0 and share[i, k * width + a] >= 0.0:
                    scratch.ascending[k, kept] = a
                    kept += 1
            for b in range(kept, width):
                scratch.ascending[k, b] = -1
        total = _shared_among(i, n, unfinished, slots, room, scratch)
        opened = SiteLists(lists.sites, scratch.ascending, lists.start, lists.entries)
        left = place(scratch.tasks, opened, scratch.placement, room)
        if aggregate * n < total - left:
            count += 1
    return count
