"""The thesis's algorithms as compiled functions of one environment: orders with placements, and shares.

The baseline policies call them on an observation, the environment in its views ``priority``, ``rule``,
``weights`` and ``fair-rule``. They allocate no memory.

One environment has n active jobs (rows, in order of arrival; ties go to the earlier row), K groups with at
most A available sites each, M sites, and E = K * A entries: entry k * A + a is the a-th site of group k. The
arrays hold n rows or more, of which the first n are read and written. Jobs without tasks are allowed.

Source: guan2022, chapters 3 (``assign``), 4 and 5 (``fair``). The solvers are in
``schedgym.solvers``.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import SCRATCH, Bytes, Floats, Integers, Integers32, Renamed
from schedgym.core.jit import helper, pure_kernel
from schedgym.core.order import sort_rows
from schedgym.solvers.arithmetic import common_divisor
from schedgym.solvers.balance import PlacementScratch, SiteLists, balance_into, greedy_into, place
from schedgym.solvers.max_min import (
    LEAST_WEIGHT,
    Network,
    complete_into,
    hold_in_network,
    load_network,
    network_sizes,
    share_into,
    time_in_network,
    unit_scale,
    water_into,
)

__all__ = [
    "ASSIGN_RULES",
    "CLOSED",
    "FAIR_RULES",
    "SHARING_TOLERANCE",
    "Assigning",
    "Cluster",
    "FairNetwork",
    "Options",
    "Placing",
    "Rows",
    "Sharing",
    "assign",
    "begin_order",
    "fair",
    "next_in_order",
    "place_in_order",
    "sharing_violations",
    "weighted_fair",
    "work_sizes",
]

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
SHARING_TOLERANCE = 1e-6  # slots; with fewer than 1000 jobs, different aggregates differ by more

FIXED, BALANCED, GREEDY, LITERAL = range(4)  # how the tasks of an appended job are placed


class Cluster(NamedTuple):
    """The sites, and where the tasks of each group may run; a workload's ``Jobs`` have the same fields."""

    slots: Annotated[Integers, "site"]  # at least 1
    sites: Annotated[Integers, "group", "choice"]  # as in SiteLists, with what follows
    ascending: Annotated[Integers, "group", "choice"]
    site_start: Annotated[Integers, "site+1"]
    entries: Annotated[Integers, "entry"]


class Rows(NamedTuple):
    """The jobs as :func:`assign` reads them; an environment's ``State`` has the same fields."""

    waiting: Annotated[Integers32, "job", "group"]  # waiting tasks
    remaining: Annotated[Integers32, "job"]  # unfinished tasks; only srpt reads them
    #: entries of the waiting tasks of jobs that are not new; may be the array that ``assign`` writes
    assigned: Annotated[Integers32, "job", "entry"]
    new: Annotated[Bytes, "job"]  # 1 if there was no decision on the job yet


class Options(NamedTuple):
    """The options of :func:`assign`."""

    rule: int  # index into ASSIGN_RULES
    fine: bool  # btawj, btaaj, scta, ata: levels of balance in multiples of 1 / gcd(slots)
    literal: bool  # ata-greedy, and fcfs and srpt with ``greedy``: the thesis's formula
    greedy: bool  # fcfs, srpt: place all waiting tasks greedily in that order, else at associated sites
    together: bool  # scta: jobs that are new together are placed in one pass, not one after another


class AssignScratch(NamedTuple):
    """Scratch space of :func:`assign` and :func:`place_in_order`."""

    load: Annotated[Integers, "site"]  # tasks of the jobs in the order so far
    trial: Annotated[Integers, "site"]
    units: Annotated[Integers, "site"]  # slots in the unit of balance
    changed: Annotated[Integers, "site"]  # jobs in the order after the last one that changed the load
    tasks: Annotated[Integers, "group"]
    placement: Annotated[Integers, "group", "choice"]
    #: tasks of a job at a site; for a job still to be placed, 1 if it can run there
    at: Annotated[Integers, "job", "site"]
    how: Annotated[Integers, "job"]  # FIXED, BALANCED, GREEDY or LITERAL
    made: Annotated[Integers, "job"]  # jobs in the order when the estimate was made; -1: there is none
    top: Annotated[Integers, "job"]  # the estimate is top / bottom
    bottom: Annotated[Integers, "job"]
    low: Annotated[Integers, "job"]  # no estimate at higher loads is below low / low_bottom
    low_bottom: Annotated[Integers, "job"]
    left: Annotated[Integers, "job"]  # jobs not in the order yet and still to be placed; a heap by their bounds
    kept: Annotated[Integers, 1]  # how many the heap holds
    #: jobs not in the order yet whose tasks are placed, each with a site that the estimate was that of; by
    #: site a heap by their tasks there
    attached: Annotated[Integers, "site", "job"]
    attaching: Annotated[Integers, "site"]  # how many each of these heaps holds
    able: Annotated[Integers, "site"]  # jobs not in the order yet that have, or may have, tasks there
    held: Annotated[Integers, "job"]  # jobs taken from the heap for the present choice
    behind: Annotated[Integers, "job"]  # the next job that waits for the same single task; -1: none does
    last: Annotated[Integers, "group"]  # of the jobs that wait for one task of it, the last so far
    key: Annotated[Integers, "job"]


class FairScratch(NamedTuple):
    """Scratch space of :func:`fair`, :func:`weighted_fair`, :func:`sharing_violations`, besides a Network."""

    demand: Annotated[Integers32, "job", "site"]  # tasks by associated site
    seconds: Annotated[Floats, "job", "site"]  # their durations
    held: Annotated[Integers, "job", "site"]  # units that a job gets in any case
    singles: Annotated[Integers, "site", 1]  # every site alone
    order: Annotated[Integers, "job"]
    key: Annotated[Integers, "job"]
    rate: Annotated[Floats, "job"]
    wanted: Annotated[Floats, "job"]
    given: Annotated[Floats, "job"]
    tasks: Annotated[Integers, "group"]
    placement: Annotated[Integers, "group", "choice"]
    ascending: Annotated[Integers, "group", "choice"]  # as in SiteLists, without closed entries


# The scratch members of an environment; rules take it, or another tuple with these members, as ``work``.
Placing = Annotated[PlacementScratch, SCRATCH, Renamed(node="placing_node")]
Assigning = Annotated[AssignScratch, SCRATCH]
Sharing = Annotated[FairScratch, SCRATCH]
FairNetwork = Annotated[
    Network, SCRATCH, Renamed(**{name: f"network_{name}" for name in network_sizes(1, 1, 1, 1)})
]


def work_sizes(jobs: int, groups: int, choices: int, sites: int) -> dict[str, int]:
    """Return the dimensions of all scratch space: ``choices`` is the most sites of a group."""
    network = network_sizes(jobs, max(groups, sites), choices, sites)  # of groups, or of single sites
    lengths = {"job": jobs, "group": groups, "choice": choices, "site": sites}
    return lengths | {"placing_node": groups + sites} | {f"network_{k}": n for k, n in network.items()}


# Orders and placements ------------------------------------------------------------------------


@helper
def _sort(order: Integers, key: Integers, n: int) -> None:
    """Sort rows 0 .. n - 1 by key, ties by row, into ``order``."""
    for i in range(n):
        order[i] = i
    sort_rows(order, key, n)


@helper
def _take(i: int, rows: Any, scratch: AssignScratch) -> int:
    """Copy a job's waiting tasks to ``scratch.tasks``; return their number."""
    total = 0
    for k in range(scratch.tasks.shape[0]):
        scratch.tasks[k] = rows.waiting[i, k]
        total += scratch.tasks[k]
    return total


@helper
def _give(i: int, placement: Integers, counts: Integers32) -> None:
    """Copy a placement into a job's counts."""
    width = placement.shape[1]
    for k in range(placement.shape[0]):
        for a in range(width):
            counts[i, k * width + a] = placement[k, a]


@helper
def _add(i: int, cluster: Any, counts: Integers32, load: Integers) -> None:
    """Add a job's counts to the loads of their sites."""
    groups, width = cluster.sites.shape
    for k in range(groups):
        for a in range(width):
            count = counts[i, k * width + a]
            if count > 0:
                load[cluster.sites[k, a]] += count


@helper
def _associate(i: int, rows: Any, cluster: Any, counts: Integers32) -> None:
    """Place a job's waiting tasks at their associated sites."""
    groups, width = cluster.sites.shape
    for k in range(groups):
        counts[i, k * width] = rows.waiting[i, k]
        for a in range(1, width):
            counts[i, k * width + a] = 0


@pure_kernel
def place_in_order(
    options: Options, n: int, order: Integers, rows: Any, cluster: Any, work: Any, counts: Integers32
) -> None:
    """Place all waiting tasks, job by job in the given order.

    Args:
        options: ``greedy``: as ATA-Greedy does, else at the associated sites; ``literal``.
        n: jobs.
        order: [>= n] the rows 0 .. n - 1, in the order in which they are placed.
        rows: :class:`Rows`, of which ``waiting`` is read.
        cluster: :class:`Cluster`.
        work: ``placing`` and ``assigning``.
        counts: [>= n, E] written, n rows: tasks at each entry.
    """
    scratch = work.assigning
    for j in range(cluster.slots.shape[0]):
        scratch.load[j] = 0
    for x in range(n):
        i = order[x]
        if options.greedy and _take(i, rows, scratch) > 0:
            _place_greedily(options.literal, cluster, work, scratch.load)
            _give(i, scratch.placement, counts)
        else:
            _associate(i, rows, cluster, counts)


@helper
def _place_greedily(literal: bool, cluster: Any, work: Any, load: Integers) -> None:
    """Place ``scratch.tasks`` as ATA-Greedy does; add them to ``load``."""
    scratch = work.assigning
    greedy_into(scratch.tasks, cluster, cluster.slots, load, scratch.placement, work.placing, literal)


@helper
def _balance(cluster: Any, work: Any) -> int:
    """Place ``scratch.tasks`` so that the most tasks per unit at any site are fewest; return that level."""
    scratch = work.assigning
    return balance_into(scratch.tasks, cluster, scratch.units, scratch.load, scratch.placement, work.placing)


@pure_kernel
def _estimate(i: int, rows: Any, cluster: Any, work: Any, counts: Integers32) -> None:
    """Compute the estimate of a job to be placed at the present loads, and a bound on it at higher loads.

    The estimate is max (r_j + q_ij) / u_j over the sites with tasks of the job. For greedily placed tasks it
    increases with the loads (every group gets the least of the numbers
    (load + 1) / u_j, which a higher load only raises), except for LITERAL ones. For balanced tasks the level
    C increases; the estimate, which need not, is above the next lower level, and with sites of one unit each
    no less than C.
    """
    scratch, slots = work.assigning, cluster.slots
    load, trial = scratch.load, scratch.trial
    sites = slots.shape[0]
    how = scratch.how[i]
    level = 0
    for j in range(sites):
        trial[j] = load[j]
    _take(i, rows, scratch)
    if how == BALANCED:
        level = _balance(cluster, work)
    else:
        _place_greedily(how == LITERAL, cluster, work, trial)
    _give(i, scratch.placement, counts)
    if how == BALANCED:
        _add(i, cluster, counts, trial)
    top = 0
    bottom = 1
    for j in range(sites):
        if trial[j] > load[j] and trial[j] * bottom > top * slots[j]:
            top = trial[j]
            bottom = slots[j]
    scratch.low[i] = top
    scratch.low_bottom[i] = bottom
    if how == BALANCED:
        for j in range(sites):
            if scratch.at[i, j] > 0 and scratch.units[j] > 1:
                level -= 1
                break
        scratch.low[i] = level
        scratch.low_bottom[i] = slots[0] // scratch.units[0]
    elif how == LITERAL:
        scratch.low[i] = 0
        scratch.low_bottom[i] = 1
    scratch.top[i] = top
    scratch.bottom[i] = bottom


@helper
def _note_sites(i: int, rows: Any, cluster: Any, scratch: AssignScratch, counts: Integers32) -> int:
    """Set ``at`` of a job: from its counts if they are fixed, else from the sites where it can run.

    Returns:
        the group of its task, if it waits for one only; else -1.
    """
    groups, width = cluster.sites.shape
    at = scratch.at
    for j in range(cluster.slots.shape[0]):
        at[i, j] = 0
    tasks = 0
    only = -1
    for k in range(groups):
        if rows.waiting[i, k] == 0:
            continue
        tasks += rows.waiting[i, k]
        only = k
        for a in range(width):
            j = cluster.sites[k, a]
            if j >= 0:
                at[i, j] = at[i, j] + counts[i, k * width + a] if scratch.how[i] == FIXED else 1
    return only if tasks == 1 else -1


@helper
def _is_before(top: int, bottom: int, i: int, scratch: AssignScratch, best: int) -> Any:
    """Return True if job i with estimate top / bottom precedes the best so far (-1: none); ties by row."""
    if best < 0:
        return True
    mine = top * scratch.bottom[best]
    other = scratch.top[best] * bottom
    return mine < other or (mine == other and i < best)


@helper
def _is_bound_before(i: int, other: int, scratch: AssignScratch) -> Any:
    """Return True if the bound on job i's estimate is below another job's; ties by row."""
    mine = scratch.low[i] * scratch.low_bottom[other]
    theirs = scratch.low[other] * scratch.low_bottom[i]
    return mine < theirs or (mine == theirs and i < other)


@helper
def _sink(i: int, size: int, scratch: AssignScratch) -> None:
    """Put job i in the place of the first of the heap ``left``, which holds ``size``.

    The heap of :mod:`schedgym.core.heap` has floats as keys, and leaves ties open. Bounds are fractions and
    must be compared exactly: a job with a lower bound behind the first one would be missed.
    """
    left = scratch.left
    x = 0
    while 2 * x + 1 < size:
        child = 2 * x + 1
        if child + 1 < size and _is_bound_before(left[child + 1], left[child], scratch):
            child += 1
        if _is_bound_before(i, left[child], scratch):
            break
        left[x] = left[child]
        x = child
    left[x] = i


@helper
def _rise(i: int, size: int, scratch: AssignScratch) -> None:
    """Add job i to the heap ``left``, which holds ``size``."""
    left = scratch.left
    x = size
    while x > 0 and _is_bound_before(i, left[(x - 1) >> 1], scratch):
        left[x] = left[(x - 1) >> 1]
        x = (x - 1) >> 1
    left[x] = i


@helper
def _is_stale(i: int, scratch: AssignScratch) -> Any:
    """Return True if a job has no estimate, or one from before the last change of a site that it counts."""
    if scratch.made[i] < 0:
        return True
    for j in range(scratch.changed.shape[0]):
        if scratch.at[i, j] > 0 and scratch.changed[j] > scratch.made[i]:
            return True
    return False


@helper
def _raise_bound(i: int, rows: Any, cluster: Any, scratch: AssignScratch) -> Any:
    """Raise the bound on the estimate of a job to be placed to what its sites, filled as water, would reach.

    Sites above the level take nothing, and so do not count. Whole tasks reach the next multiple of a slot's
    part where all sites have as many slots. Returns False if the bound stays.
    """
    slots, load, at = cluster.slots, scratch.load, scratch.at
    sites = slots.shape[0]
    most = 0
    for k in range(rows.waiting.shape[1]):
        most += rows.waiting[i, k]
    weight = 0
    largest = 0
    alike = True
    for j in range(sites):
        if at[i, j] > 0:
            most += load[j]
            weight += slots[j]
            alike = alike and (largest == 0 or slots[j] == largest)
            largest = slots[j]
    dropped = True
    for j in range(sites):
        scratch.trial[j] = at[i, j]
    while dropped:
        dropped = False
        for j in range(sites):
            if scratch.trial[j] > 0 and load[j] * weight > most * slots[j]:
                scratch.trial[j] = 0
                most -= load[j]
                weight -= slots[j]
                dropped = True
    if alike:
        most = (most * largest + weight - 1) // weight
        weight = largest
    if most * scratch.low_bottom[i] <= scratch.low[i] * weight:
        return False
    scratch.low[i] = most
    scratch.low_bottom[i] = weight
    return True


@helper
def _is_fewer(i: int, other: int, j: int, scratch: AssignScratch) -> Any:
    """Return True if job i has fewer tasks at site j than another; ties by row."""
    mine = scratch.at[i, j]
    theirs = scratch.at[other, j]
    return mine < theirs or (mine == theirs and i < other)


@helper
def _attach(i: int, cluster: Any, scratch: AssignScratch) -> None:
    """Set the estimate of a job whose tasks are placed, and add it to the heap of the site that sets it."""
    slots, load = cluster.slots, scratch.load
    top = 0
    bottom = 1
    site = 0
    for j in range(slots.shape[0]):
        if scratch.at[i, j] > 0 and (load[j] + scratch.at[i, j]) * bottom > top * slots[j]:
            top = load[j] + scratch.at[i, j]
            bottom = slots[j]
            site = j
    heap = scratch.attached[site]
    x = scratch.attaching[site]
    scratch.attaching[site] = x + 1
    while x > 0 and _is_fewer(i, heap[(x - 1) >> 1], site, scratch):
        heap[x] = heap[(x - 1) >> 1]
        x = (x - 1) >> 1
    heap[x] = i


@helper
def _detach(j: int, scratch: AssignScratch) -> None:
    """Take the first job from the heap of site j."""
    heap = scratch.attached[j]
    size = scratch.attaching[j] - 1
    scratch.attaching[j] = size
    i = heap[size]
    x = 0
    while 2 * x + 1 < size:
        child = 2 * x + 1
        if child + 1 < size and _is_fewer(heap[child + 1], heap[child], j, scratch):
            child += 1
        if _is_fewer(i, heap[child], j, scratch):
            break
        heap[x] = heap[child]
        x = child
    heap[x] = i


@helper
def _first_attached(cluster: Any, scratch: AssignScratch) -> tuple[int, int]:
    """Return the job with the least estimate of those whose tasks are placed, and its site; -1: there is none.

    What a job reaches at its site is a bound on its estimate that rises with the load; if another site sets
    the estimate by now, the job is attached to that.
    """
    slots, load, at = cluster.slots, scratch.load, scratch.at
    sites = slots.shape[0]
    while True:
        best = -1
        site = -1
        for j in range(sites):
            if scratch.attaching[j] > 0:
                i = scratch.attached[j, 0]
                if _is_before(load[j] + at[i, j], slots[j], i, scratch, best):
                    best = i
                    site = j
                    scratch.top[i] = load[j] + at[i, j]
                    scratch.bottom[i] = slots[j]
        if best < 0:
            return best, site
        reached = True
        for j in range(sites):
            here = at[best, j] > 0 and (load[j] + at[best, j]) * slots[site] > scratch.top[best] * slots[j]
            reached = reached and not here
        if reached:
            return best, site
        _detach(site, scratch)
        _attach(best, cluster, scratch)


@helper
def _set_out(size: int, rows: Any, cluster: Any, scratch: AssignScratch, counts: Integers32) -> None:
    """Begin an order of the rows in ``left``, ascending, which all have waiting tasks: make the heaps.

    Jobs still to be placed that wait for one task each of the same group have equal estimates, and only the
    first of them is in the heap: ``behind`` leads to the next.
    """
    for j in range(cluster.slots.shape[0]):
        scratch.load[j] = 0
        scratch.changed[j] = 0
        scratch.able[j] = 0
        scratch.attaching[j] = 0
    for k in range(scratch.last.shape[0]):
        scratch.last[k] = -1
    kept = 0
    for x in range(size):
        i = scratch.left[x]
        k = _note_sites(i, rows, cluster, scratch, counts)
        for j in range(cluster.slots.shape[0]):
            scratch.able[j] += scratch.at[i, j] > 0
        if scratch.how[i] == FIXED:
            _attach(i, cluster, scratch)
            continue
        scratch.made[i] = -1
        scratch.low[i] = 0
        scratch.low_bottom[i] = 1
        scratch.behind[i] = -1
        if k >= 0 and scratch.last[k] >= 0:
            scratch.behind[scratch.last[k]] = i
        else:
            scratch.left[kept] = i
            kept += 1
        if k >= 0:
            scratch.last[k] = i
    scratch.kept[0] = kept


@helper
def _settle(i: int, position: int, cluster: Any, scratch: AssignScratch, counts: Integers32) -> None:
    """Add the appended job to the loads, and note the sites that change."""
    at = scratch.at
    sites = cluster.slots.shape[0]
    for j in range(sites):
        scratch.able[j] -= at[i, j] > 0
    if scratch.how[i] != FIXED:
        for j in range(sites):
            at[i, j] = 0
        _add(i, cluster, counts, at[i])
    for j in range(sites):
        if at[i, j] > 0:
            scratch.load[j] += at[i, j]
            scratch.changed[j] = position + 1


@pure_kernel
def next_in_order(position: int, rows: Any, cluster: Any, work: Any, counts: Integers32) -> int:
    """Return the job with the least estimate (ties: by row) of those that are not in the order yet.

    The heap has the least bound first: behind a bound that is not below the best estimate so far there is
    nothing better.

    Args:
        position: of the job in the order.
        rows: :class:`Rows`, of which ``waiting`` is read: that of the jobs not in the order is as it was.
        cluster: :class:`Cluster`.
        work: ``placing`` and ``assigning``, as :func:`begin_order` and the last call left them.
        counts: [>= n, E] those of a job still to be placed are written.
    """
    scratch = work.assigning
    left, held = scratch.left, scratch.held
    kept = int(scratch.kept[0])
    placed, site = _first_attached(cluster, scratch)
    best = placed
    passed = 0
    while kept > 0:
        i = left[0]
        if not _is_before(scratch.low[i], scratch.low_bottom[i], i, scratch, best):
            break
        if _is_stale(i, scratch):
            if _raise_bound(i, rows, cluster, scratch):
                _sink(i, kept, scratch)
                continue
            _estimate(i, rows, cluster, work, counts)
            scratch.made[i] = position
            _sink(i, kept, scratch)
            continue
        kept -= 1
        _sink(left[kept], kept, scratch)
        held[passed] = i
        passed += 1
        if _is_before(scratch.top[i], scratch.bottom[i], i, scratch, best):
            best = i
    for x in range(passed):
        i = held[x]
        if i == best:
            i = scratch.behind[best]
            if i < 0:
                continue
            scratch.low[i] = scratch.low[best]
            scratch.low_bottom[i] = scratch.low_bottom[best]
        _rise(i, kept, scratch)
        kept += 1
    scratch.kept[0] = kept
    if best == placed:
        _detach(site, scratch)
    _settle(best, position, cluster, scratch, counts)
    return best


@helper
def _collect(n: int, last: int, rows: Any, order: Integers, scratch: AssignScratch) -> int:
    """List the jobs with waiting tasks in ``left``, the others first in the order; return how many wait.

    New jobs behind row ``last`` are ignored, as they have no counts yet.
    """
    size = 0
    idle = 0
    for i in range(n):
        if rows.new[i] != 0 and i > last:
            continue
        if _take(i, rows, scratch) > 0:
            scratch.left[size] = i
            size += 1
        else:
            order[idle] = i
            idle += 1
    return size


@helper
def _place_new(
    together: bool, n: int, rows: Any, cluster: Any, work: Any, order: Integers, counts: Integers32
) -> None:
    """SCTA: place each new job within the order of the jobs so far; ``together``: all in one order."""
    scratch = work.assigning
    if together:
        for i in range(n):
            scratch.how[i] = BALANCED if rows.new[i] != 0 else FIXED
        size = _collect(n, n, rows, order, scratch)
        _set_out(size, rows, cluster, scratch, counts)
        for position in range(size):
            next_in_order(position, rows, cluster, work, counts)
        for i in range(n):
            scratch.how[i] = FIXED
        return
    for i in range(n):
        if rows.new[i] != 0 and _take(i, rows, scratch) > 0:
            size = _collect(n, i, rows, order, scratch)
            scratch.how[i] = BALANCED
            _set_out(size, rows, cluster, scratch, counts)
            position = 0
            while next_in_order(position, rows, cluster, work, counts) != i:
                position += 1
            scratch.how[i] = FIXED


@helper
def _balance_new(onto: bool, n: int, rows: Any, cluster: Any, work: Any, counts: Integers32) -> None:
    """BTAwJ, BTAaJ: balance the new jobs by row, on empty sites or ``onto`` the tasks assigned already."""
    scratch = work.assigning
    for j in range(cluster.slots.shape[0]):
        scratch.load[j] = 0
    if onto:
        for i in range(n):
            _add(i, cluster, counts, scratch.load)
    for i in range(n):
        if rows.new[i] != 0 and _take(i, rows, scratch) > 0:
            _balance(cluster, work)
            _give(i, scratch.placement, counts)
            if onto:
                _add(i, cluster, counts, scratch.load)


@pure_kernel
def begin_order(
    options: Options, n: int, rows: Any, cluster: Any, work: Any, order: Integers, counts: Integers32
) -> int:
    """Begin the order and the placement of a rule of chapter 3, of which :func:`assign` makes the whole.

    Returns:
        how many positions of the order are decided. The others are the results of :func:`next_in_order`.
    """
    scratch, rule = work.assigning, options.rule
    if rule == FCFS or rule == SRPT:
        for i in range(n):
            scratch.key[i] = rows.remaining[i] if rule == SRPT else 0
        _sort(order, scratch.key, n)
        place_in_order(options, n, order, rows, cluster, work, counts)
        return n
    unit = 1
    if options.fine:
        unit = 0
        for j in range(cluster.slots.shape[0]):
            unit = common_divisor(unit, cluster.slots[j])
    for j in range(cluster.slots.shape[0]):
        scratch.units[j] = cluster.slots[j] // unit
    how = BALANCED if rule == ATA else FIXED
    if rule == ATA_GREEDY:
        how = LITERAL if options.literal else GREEDY
    for i in range(n):
        scratch.how[i] = how
        for e in range(counts.shape[1]):
            counts[i, e] = 0 if how != FIXED or rows.new[i] != 0 else rows.assigned[i, e]
        if rule == SWAG and rows.new[i] != 0:
            _associate(i, rows, cluster, counts)
    if rule == SCTA:
        _place_new(options.together, n, rows, cluster, work, order, counts)
    elif how == FIXED and rule != SWAG:
        _balance_new(rule == BTAAJ_FCFS or rule == BTAAJ_SWAG, n, rows, cluster, work, counts)
    if rule == BTAWJ_FCFS or rule == BTAAJ_FCFS:
        for i in range(n):
            order[i] = i
        return n
    size = _collect(n, n, rows, order, scratch)
    _set_out(size, rows, cluster, scratch, counts)
    return n - size


@pure_kernel
def assign(
    options: Options, n: int, rows: Any, cluster: Any, work: Any, order: Integers, counts: Integers32
) -> None:
    """Compute the order and the placement of a rule of chapter 3.

    Args:
        options: the rule and its variants.
        n: jobs.
        rows: :class:`Rows`, n or more.
        cluster: :class:`Cluster`.
        work: ``placing`` and ``assigning``.
        order: [>= n] written: the rows 0 .. n - 1, in the order in which they are served.
        counts: [>= n, E] written, n rows: waiting tasks of each job at each entry.

    Source: guan2022, sections 3.2.1 to 3.2.4. Deviations: estimates are divided by the slots (Algorithm 3,
    line 23, Algorithm 4, line 22).
    """
    for position in range(begin_order(options, n, rows, cluster, work, order, counts), n):
        order[position] = next_in_order(position, rows, cluster, work, counts)


# Shares ---------------------------------------------------------------------------------------


@helper
def _load(associated: bool, n: int, scale: int, unfinished: Integers32, cluster: Any, work: Any) -> None:
    """Load the network with the groups, or with single sites and the tasks associated with them."""
    net, scratch, slots = work.network, work.sharing, cluster.slots
    if associated:
        for j in range(slots.shape[0]):
            scratch.singles[j, 0] = j
        load_network(scratch.demand, scratch.singles, slots, scale, n, net)
    else:
        load_network(unfinished, cluster.sites, slots, scale, n, net)


@helper
def _prepare(associated: bool, n: int, unfinished: Any, cluster: Any, work: Any, share: Floats) -> None:
    """Set shares to zero; with ``associated`` close all but a group's first entry, and sum up demands."""
    width, demand = cluster.sites.shape[1], work.sharing.demand
    for i in range(n):
        for e in range(share.shape[1]):
            share[i, e] = CLOSED if associated and e % width != 0 else 0.0
        if associated:
            for j in range(demand.shape[1]):
                demand[i, j] = 0
            for k in range(unfinished.shape[1]):
                if unfinished[i, k] > 0:
                    demand[i, cluster.sites[k, 0]] += unfinished[i, k]


@helper
def _split(i: int, j: int, amount: float, unfinished: Any, cluster: Any, work: Any, share: Any) -> None:
    """Split a job's share of a site over the groups associated with it, in proportion to their tasks."""
    width, demand = cluster.sites.shape[1], work.sharing.demand
    for position in range(cluster.site_start[j], cluster.site_start[j + 1]):
        entry = cluster.entries[position]
        k = entry // width
        if entry == k * width and unfinished[i, k] > 0:
            share[i, entry] = amount
            if unfinished[i, k] < demand[i, j]:
                share[i, entry] = amount * unfinished[i, k] / demand[i, j]


@helper
def _write(
    associated: bool, n: int, scale: int, unfinished: Integers32, cluster: Any, work: Any, share: Floats
) -> None:
    """Write the allocation of the solved network in slots; the other entries are already set."""
    width, net = cluster.sites.shape[1], work.network
    for i in range(n):
        for g in range(net.start[i], net.start[i + 1]):
            k = net.kind[g]
            if associated:
                amount = (net.flow[g] + net.held[g]) / scale
                _split(i, k, amount, unfinished, cluster, work, share)
            else:
                for a in range(width):
                    share[i, k * width + a] = net.flow[g * width + a] / scale


@pure_kernel
def weighted_fair(
    associated: bool, n: int, weights: Any, unfinished: Integers32, cluster: Any, work: Any, share: Floats
) -> None:
    """Compute shares whose aggregates, divided by the jobs' weights, are max-min fair.

    Args:
        associated: tasks run at their associated sites (with equal weights: AMF), else at any (GAMF).
        n: jobs.
        weights: [>= n] at least 0; those below 1e-9 of the largest are raised to it, and if all are 0,
            they are all 1.
        unfinished: [>= n, K] unfinished tasks.
        cluster: :class:`Cluster`.
        work: ``sharing`` and ``network``.
        share: [>= n, E] written, n rows: slots at each entry, :data:`CLOSED` where no task may start.
    """
    net = work.network
    scale = unit_scale(cluster.slots, 1)
    _prepare(associated, n, unfinished, cluster, work, share)
    _load(associated, n, scale, unfinished, cluster, work)
    largest = 0.0
    for i in range(n):
        largest = max(largest, float(weights[i]))
    if largest > 0.0:
        for i in range(n):
            net.weight[i] = max(weights[i] / largest, LEAST_WEIGHT)
    share_into(net, n, 1 if associated else cluster.sites.shape[1], scale)
    _write(associated, n, scale, unfinished, cluster, work, share)


@helper
def _share_each_site(n: int, unfinished: Integers32, cluster: Any, work: Any, share: Floats) -> None:
    """IMF: share every site by itself."""
    wanted = work.sharing.wanted[:n]
    given = work.sharing.given[:n]
    for j in range(cluster.slots.shape[0]):
        for i in range(n):
            wanted[i] = work.sharing.demand[i, j]
        water_into(float(cluster.slots[j]), wanted, given)
        for i in range(n):
            if given[i] > 0.0:
                _split(i, j, given[i], unfinished, cluster, work, share)


@helper
def _set_floors(associated: bool, n: int, unit: int, unfinished: Integers32, cluster: Any, work: Any) -> None:
    """Guarantee each job what it can use of 1 / n of every site; 1 / n slot is ``unit`` units."""
    net, scratch, slots = work.network, work.sharing, cluster.slots
    if associated:
        for i in range(n):
            for j in range(slots.shape[0]):
                scratch.held[i, j] = min(int(scratch.demand[i, j]) * n, int(slots[j])) * unit
        hold_in_network(scratch.held, n, 1, net)
    else:
        for i in range(n):
            total = _set_up_alone(i, n, unfinished, cluster, work)
            left = place(scratch.tasks, cluster, scratch.placement, work.placing)
            net.floor[i] = (total - left) * unit


@helper
def _time(
    associated: bool, n: int, scale: int, unfinished: Integers32, seconds: Any, cluster: Any, work: Any
) -> None:
    """Let the network estimate completion times by known durations, with ``associated`` summed by site."""
    table = work.sharing.seconds
    if not associated:
        time_in_network(seconds, scale, n, work.network)
        return
    for i in range(n):
        for j in range(table.shape[1]):
            table[i, j] = 0.0
        for k in range(unfinished.shape[1]):
            if unfinished[i, k] > 0:
                table[i, cluster.sites[k, 0]] += seconds[i, k]
    time_in_network(table, scale, n, work.network)


@pure_kernel
def fair(
    rule: int, n: int, unfinished: Integers32, seconds: Any, cluster: Any, work: Any, share: Floats
) -> None:
    """Compute the shares of a rule of chapters 4 and 5.

    If several groups of a job have the same associated site, imf and the amf rules split the job's share of
    the site in proportion to the demands.

    Args:
        rule: index into :data:`FAIR_RULES`.
        n: jobs; the floor of a job is the slots that it can use of 1 / n of every site.
        unfinished: [>= n, K] unfinished tasks, the demand.
        seconds: [>= n, K] the sum of their durations, by which the opt- rules then estimate completion times;
            without rows: durations are not known, and all count as equal.
        cluster: :class:`Cluster`.
        work: ``placing``, ``sharing`` and ``network``.
        share: [>= n, E] written, n rows: slots at each entry, :data:`CLOSED` where no task may start.

    Source: guan2022, sections 4.1 to 4.5 and 5.2 to 5.4; ``seconds``: the footnote of 4.5.2.
    Deviations: a_ijk >= 0, which (5.2) omits.
    """
    associated = rule < GAMF
    _prepare(associated, n, unfinished, cluster, work, share)
    if n == 0:
        return
    if rule == IMF:
        _share_each_site(n, unfinished, cluster, work, share)
        return
    net, scratch = work.network, work.sharing
    floors = rule == SIG_AMF or rule == OPT_SIG_AMF or rule == SIG_GAMF or rule == OPT_SIG_GAMF
    scale = unit_scale(cluster.slots, n if floors else 1)
    _load(associated, n, scale, unfinished, cluster, work)
    if floors:
        _set_floors(associated, n, scale // n, unfinished, cluster, work)
    used = 1 if associated else cluster.sites.shape[1]
    share_into(net, n, used, scale)
    if rule == OPT_AMF or rule == OPT_SIG_AMF or rule == OPT_GAMF or rule == OPT_SIG_GAMF:
        for i in range(n):
            scratch.key[i] = 0
            for k in range(unfinished.shape[1]):
                scratch.key[i] += unfinished[i, k]
        _sort(scratch.order, scratch.key, n)
        if seconds.shape[0] > 0:
            _time(associated, n, scale, unfinished, seconds, cluster, work)
        complete_into(net, scratch.order, n, used, scratch.rate)
    _write(associated, n, scale, unfinished, cluster, work, share)


@helper
def _set_up_alone(i: int, n: int, unfinished: Integers32, cluster: Any, work: Any) -> int:
    """Set up a job alone with 1 / n of every site, in units of 1 / n; return the sum of its demand."""
    total = 0
    for k in range(unfinished.shape[1]):
        work.sharing.tasks[k] = int(unfinished[i, k]) * n
        total += work.sharing.tasks[k]
    for j in range(cluster.slots.shape[0]):
        work.placing.capacity_left[j] = cluster.slots[j]
    return total


@helper
def _reach(i: int, n: int, unfinished: Integers32, share: Floats, cluster: Any) -> int:
    """Return what a job could use of 1 / n of each site alone, at open entries, in units of 1 / n slot."""
    width = cluster.sites.shape[1]
    reach = 0
    for j in range(cluster.slots.shape[0]):
        wanted = 0
        for position in range(cluster.site_start[j], cluster.site_start[j + 1]):
            entry = cluster.entries[position]
            if share[i, entry] >= 0.0:
                wanted += int(unfinished[i, entry // width])
        reach += min(wanted * n, cluster.slots[j])
    return reach


@pure_kernel
def sharing_violations(n: int, unfinished: Integers32, share: Floats, cluster: Any, work: Any) -> int:
    """Count the jobs that have less than they could use alone of an equal part of every site.

    The incentive of job i is violated if A_i < X_i - :data:`SHARING_TOLERANCE`. A_i is the sum of its shares,
    and X_i its maximum flow with capacities u_j / n, over the entries that are not closed to it.

    Args:
        n: jobs.
        unfinished: [>= n, K] unfinished tasks.
        share: [>= n, E] slots at each entry; negative where no task may start.
        cluster: :class:`Cluster`.
        work: ``placing`` and ``sharing``.

    Source: guan2022, (4.3), (4.4) and (5.21) to (5.24).
    """
    groups, width = cluster.sites.shape
    scratch = work.sharing
    whole = 0
    for j in range(cluster.slots.shape[0]):
        whole += cluster.slots[j]
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
        if aggregate * n >= _reach(i, n, unfinished, share, cluster):
            continue
        for k in range(groups):
            kept = 0
            for b in range(width):
                a = cluster.ascending[k, b]
                if a >= 0 and share[i, k * width + a] >= 0.0:
                    scratch.ascending[k, kept] = a
                    kept += 1
            for b in range(kept, width):
                scratch.ascending[k, b] = -1
        total = _set_up_alone(i, n, unfinished, cluster, work)
        opened = SiteLists(cluster.sites, scratch.ascending, cluster.site_start, cluster.entries)
        left = place(scratch.tasks, opened, scratch.placement, work.placing)
        if aggregate * n < total - left:
            count += 1
    return count
