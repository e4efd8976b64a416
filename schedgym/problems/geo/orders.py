"""The thesis's orders of jobs with placements of their tasks, as compiled functions of one environment.

The baseline policies call them on an observation, the environment in its views ``priority`` and ``rule``.
They allocate no memory.

One environment has n active jobs (rows, in order of arrival; ties go to the earlier row), K groups with at
most A available sites each, M sites, and E = K * A entries: entry k * A + a is the a-th site of group k. The
arrays hold n rows or more, of which the first n are read and written. Jobs without tasks are allowed.

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
    tasks: Annotated[Integers, "group"]
    placement: Annotated[Integers, "group", "choice"]
    how: Annotated[Integers, "job"]  # FIXED, BALANCED, GREEDY or LITERAL
    #: no estimate of a job is below low / low_bottom from now on, as the loads only grow
    low: Annotated[Integers, "job"]
    low_bottom: Annotated[Integers, "job"]
    left: Annotated[Integers, "job"]  # the jobs that are not in the order yet, by row
    kept: Annotated[Integers, 1]  # how many they are
    able: Annotated[Integers, "site"]  # groups of these jobs with tasks that may run there
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
    """Place ``scratch.tasks`` so that the most tasks per unit at any site are fewest; return how many."""
    scratch = work.assigning
    return balance_into(scratch.tasks, cluster, scratch.units, scratch.load, scratch.placement, work.placing)


@pure_kernel
def _estimate(i: int, rows: Any, cluster: Any, work: Any, counts: Integers32) -> tuple[int, int]:
    """Return a job's estimate as a fraction: max (r_j + q_ij) / u_j over the sites with tasks of the job.

    A job still to be placed is placed at the present loads first, which writes its counts.

    Loads only grow, and so does the estimate of a job whose tasks have their sites, or are placed greedily:
    every group gets the least of the numbers (load + 1) / u_j. Of balanced tasks the level grows; their
    estimate, which need not, is above the next lower level. The literal formula has no such bound.
    """
    scratch, slots = work.assigning, cluster.slots
    load, trial = scratch.load, scratch.trial
    sites = slots.shape[0]
    how = scratch.how[i]
    level = 0
    # otherwise its tasks have their sites, and ``counts`` are valid
    if how != FIXED:
        _take(i, rows, scratch)
        if how == BALANCED:
            level = _balance(cluster, work)
        else:
            for j in range(sites):
                trial[j] = load[j]
            _place_greedily(how == LITERAL, cluster, work, trial)
        _give(i, scratch.placement, counts)
    # the load with the job's own tasks on top, of which only the sites that it uses count
    for j in range(sites):
        trial[j] = load[j]
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
        scratch.low[i] = level - 1
        scratch.low_bottom[i] = slots[0] // scratch.units[0]
    elif how == LITERAL:
        scratch.low[i] = 0
    return top, bottom


@pure_kernel
def next_in_order(rows: Any, cluster: Any, work: Any, counts: Integers32) -> int:
    """Return the job with the least estimate (ties: by row) of those that are not in the order yet.

    Args:
        rows: :class:`Rows`, of which ``waiting`` is read: that of the jobs not in the order is as it was.
        cluster: :class:`Cluster`.
        work: ``placing`` and ``assigning``, as :func:`_set_out` and the last call left them.
        counts: [>= n, E] those of a job still to be placed are written.
    """
    scratch = work.assigning
    left, low, low_bottom = scratch.left, scratch.low, scratch.low_bottom
    # the job with the least bound is probably the next; others whose bound is not below its estimate are not
    place = 0
    for x in range(1, scratch.kept[0]):
        if low[left[x]] * low_bottom[left[place]] < low[left[place]] * low_bottom[left[x]]:
            place = x
    least, least_bottom = _estimate(left[place], rows, cluster, work, counts)
    likely = place
    for x in range(scratch.kept[0]):
        # fractions are compared exactly; of equal ones the first, whose row is the least, comes next
        excess = low[left[x]] * least_bottom - least * low_bottom[left[x]]
        if x == likely or excess > 0 or (excess == 0 and x > place):
            continue
        top, bottom = _estimate(left[x], rows, cluster, work, counts)
        excess = top * least_bottom - least * bottom
        if excess < 0 or (excess == 0 and x < place):
            place, least, least_bottom = x, top, bottom
    best = int(left[place])
    scratch.kept[0] -= 1
    _count_able(best, -1, rows, cluster, scratch)
    # keep the rest sorted by row: then the first of equal estimates is the earliest arrival
    for x in range(place, scratch.kept[0]):
        left[x] = left[x + 1]
    _add(best, cluster, counts, scratch.load)
    return best


@helper
def _count_able(i: int, change: int, rows: Any, cluster: Any, scratch: AssignScratch) -> None:
    """Add ``change`` at every site where a group of the job has a task to run."""
    groups, width = cluster.sites.shape
    for k in range(groups):
        for a in range(width):
            if rows.waiting[i, k] > 0 and cluster.sites[k, a] >= 0:
                scratch.able[cluster.sites[k, a]] += change


@helper
def _set_out(size: int, rows: Any, cluster: Any, scratch: AssignScratch) -> None:
    """Begin an order of the rows in ``left``, which all have waiting tasks."""
    for j in range(cluster.slots.shape[0]):
        scratch.load[j] = 0
        scratch.able[j] = 0
    for x in range(size):
        scratch.low[scratch.left[x]] = 0
        scratch.low_bottom[scratch.left[x]] = 1
        _count_able(scratch.left[x], 1, rows, cluster, scratch)
    scratch.kept[0] = size


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
        _set_out(size, rows, cluster, scratch)
        # a job keeps the placement of the moment in which it enters the order
        for _ in range(size):
            next_in_order(rows, cluster, work, counts)
        for i in range(n):
            scratch.how[i] = FIXED
        return
    for i in range(n):
        if rows.new[i] != 0 and _take(i, rows, scratch) > 0:
            size = _collect(n, i, rows, order, scratch)
            scratch.how[i] = BALANCED
            _set_out(size, rows, cluster, scratch)
            # the order behind the new job does not matter yet
            while next_in_order(rows, cluster, work, counts) != i:
                pass
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
        how many positions of the order are decided; the others are the results of :func:`next_in_order`.
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
    _set_out(size, rows, cluster, scratch)
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
        order[position] = next_in_order(rows, cluster, work, counts)
