"""The thesis's orders of jobs with placements of their tasks, as compiled functions of one environment.

The baseline policies call them on an observation, the environment in its views ``priority`` and ``rule``.
They allocate no memory.

One environment has n active jobs (rows, in order of arrival; ties go to the earlier row), K groups with at
most A available sites each, M sites, and E = K * A entries: entry k * A + a is the a-th site of group k. The
arrays hold n rows or more, of which the first n are read and written. Jobs without tasks are allowed.

The next job of an order is found by heaps of bounds; the thesis estimates every job. The Facebook trace,
with one duration a job, has hundreds of active jobs: an episode of ATA took 87 s without heaps, in whole
orders, and 1.4 s with them, in orders as far as free slots ask (``rollouts``).

Source: guan2022, chapter 3. The solvers are in ``schedgym.solvers``.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import SCRATCH, Bytes, Floats, Integers, Integers32, Renamed
from schedgym.core.jit import helper, pure_kernel
from schedgym.core.order import sort_rows
from schedgym.solvers.arithmetic import common_divisor
from schedgym.solvers.balance import PlacementScratch, balance_into, greedy_into

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
    left: Annotated[Integers, "job"]  # jobs still to be placed and not in the order yet; a heap by bounds
    kept: Annotated[Integers, 1]  # how many the heap holds
    #: jobs not in the order yet whose tasks are placed, each at a site that set its estimate; by site a heap
    #: by their tasks there
    attached: Annotated[Integers, "site", "job"]
    attaching: Annotated[Integers, "site"]  # how many each of these heaps holds
    able: Annotated[Integers, "site"]  # jobs not in the order yet that have, or may have, tasks there
    held: Annotated[Integers, "job"]  # jobs taken from the heap for the present choice
    behind: Annotated[Integers, "job"]  # the next job that waits for the same single task; -1: none does
    last: Annotated[Integers, "group"]  # of the jobs that wait for one task of it, the last so far
    key: Annotated[Integers, "job"]


# The scratch members of an environment; rules take it, or another tuple with these members, as ``work``.
Placing = Annotated[PlacementScratch, SCRATCH, Renamed(node="placing_node")]
Assigning = Annotated[AssignScratch, SCRATCH]


@helper
def sort_by_key(order: Integers, key: Integers | Floats, n: int) -> None:
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
    increases with the loads (every group gets the least of the numbers (load + 1) / u_j, which a higher load
    only raises), except for LITERAL ones. For balanced tasks the level C increases; the estimate, which need
    not, is above the next lower level, and with sites of one unit each no less than C.
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
    """Return the job with the least estimate of those whose tasks are placed, and its site; -1: none.

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
        # a job keeps the placement of the moment in which it enters the order
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
            # the order behind the new job does not matter yet
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
    # BTAaJ sees what the sites have to do already
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
        sort_by_key(order, scratch.key, n)
        place_in_order(options, n, order, rows, cluster, work, counts)
        return n
    # levels of balance are whole numbers of tasks per unit
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
    # what a rule places anew begins at zero; the rest keeps its sites
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
