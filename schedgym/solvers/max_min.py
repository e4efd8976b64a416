"""Max-min fair shares of several sites among jobs, exactly, by flows.

The aggregates that jobs can have together form a polymatroid (they are flows from jobs through task
groups to sites), so the lexicographic max-min vector is found by halving: raise all jobs of a part to the
part's mean level; a maximum flow either reaches it, and the part is done, or its minimum cut separates the
jobs and sites below the level from those above it, which never meet again. A flow only moves what the
levels of a part demand, from jobs above to jobs below, starting from a site-by-site water-filling that is
close already.

Numbers. Flows are integers in units of 1 / scale slots; the scale is a power of two of up to 2^40, times J
(the number of jobs) where there are floors, so that the shares u_j / J of sharing incentives are whole. All
slots together are less than 2^52 units. For whole slots and demands, two cuts that differ do so by scale / J
units or more (scale / J^2 with such floors), and rounding makes up 2 J units at most: every comparison of
cuts is exact for up to 6,500 jobs at 2^40, and a level is a quotient of integers, rounded once (twice with
floors). With weights or other floors, cuts within 2 J units count as equal. An allocation has its
aggregates up to 2 J units, for 1000 jobs and 2000 slots 2e-9.

The kernels (``load_network``, ``hold_in_network``, ``time_in_network``, ``share_into``, ``complete_into``)
work on a preallocated :class:`Network` and allocate nothing; so do ``water_into`` and ``unit_scale``.

Searches skip jobs that pass nothing on, and look first at the few that may be in need: with hundreds of
active jobs, as the Facebook trace has, episodes of opt-amf and opt-gamf take a quarter to two thirds of the
time.

Source: guan2022, chapters 4 and 5: AMF, GAMF, SIG-AMF, SIG-GAMF; Algorithms 6 and 8. The method is
Fujishige's decomposition of a polymatroid, not the thesis's linear programs.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Floats, Integers, allocate
from schedgym.core.jit import helper, pure_kernel, subroutine

MOST_BITS = 52  # of all slots together: a float64 holds their number of units
FINEST = 40  # power of two in the scale
FROZEN = -1  # owner of a group that nothing may change
FAR = 1 << 60
LEAST_WEIGHT = 1e-9  # of the largest
MOST_STEPS = 20  # of Newton's method for the level of a site, which need not be exact


class Network(NamedTuple):
    """Jobs, their task groups with tasks, the available sites, a flow, and work space.

    J jobs, G groups (job by job), A sites at most per group, M sites, K kinds of groups. Nodes of a search
    are owners 0 to J + K - 1 (a job, or J + k: one group of the job whose groups are being balanced), then
    sites. Amounts are in units of 1 / scale slots.
    """

    weight: Annotated[Floats, "job"]  # level 1 is worth this aggregate
    base: Annotated[Integers, "job"]  # what a job holds outside the network, part of its aggregate
    floor: Annotated[Integers, "job"]  # least flow of a job
    share: Annotated[Floats, "job"]  # result: aggregate, base included
    start: Annotated[Integers, "job+1"]  # where the groups of a job begin
    kind: Annotated[Integers, "group"]  # column of the demand matrix
    owner: Annotated[Integers, "group"]  # job, J + k, or FROZEN
    #: demand in units, never cut; where durations are known their sum [s] times the units in a slot
    tasks: Annotated[Floats, "group"]
    held: Annotated[Integers, "group"]  # what the job holds outside the network
    limit: Annotated[Integers, "group"]  # demand that the network may serve
    used: Annotated[Integers, "group"]  # flow
    site: Annotated[Integers, "entry"]  # -1 pads
    flow: Annotated[Integers, "entry"]
    slots: Annotated[Integers, "site"]
    free: Annotated[Integers, "site"]  # slots without flow
    entry_start: Annotated[Integers, "site+1"]  # where the entries of a site begin
    entry_end: Annotated[Integers, "site"]  # one past those that may pass flow on
    entry: Annotated[Integers, "entry"]  # indices into ``flow``, by site
    entry_group: Annotated[Integers, "entry"]  # their groups
    low: Annotated[Integers, "owner"]  # first group of an owner
    high: Annotated[Integers, "owner"]  # one past its last group
    need: Annotated[Integers, "owner"]  # flow wanted (> 0) or to give away (< 0)
    part: Annotated[Integers, "owner"]  # part of an owner
    depth: Annotated[Integers, "owner"]  # distance from an owner in need; -1 not reached
    arc: Annotated[Integers, "owner"]  # where the search of an owner stands
    site_part: Annotated[Integers, "site"]
    site_depth: Annotated[Integers, "site"]
    site_arc: Annotated[Integers, "site"]
    site_turn: Annotated[Integers, "site"]  # which end of that arc: 0 the owner, else a sibling
    owners: Annotated[Integers, "owner"]  # owners, part by part
    sites: Annotated[Integers, "site"]  # sites, part by part
    queue: Annotated[Integers, "node"]
    queued: Annotated[Integers, 1]  # how many nodes the last search has reached, the first of the queue
    path: Annotated[Integers, "node+1"]  # nodes of an augmenting path
    gave: Annotated[Integers, "node+1"]  # entry that the step into a node takes flow from, or -1
    took: Annotated[Integers, "node+1"]  # entry that it adds flow to, or -1
    stack: Annotated[Integers, "part"]  # parts to do


def network_sizes(jobs: int, kinds: int, width: int, sites: int, groups: int | None = None) -> dict[str, int]:
    """Lengths of a network's dimensions; see :func:`make_network`."""
    groups = jobs * kinds if groups is None else groups
    owners = jobs + kinds
    return {
        "job": jobs,
        "group": groups,
        "entry": groups * width,
        "site": sites,
        "owner": owners,
        "node": owners + sites,
        "part": 5 * (jobs + sites + 1),
    }


def make_network(jobs: int, kinds: int, width: int, sites: int, groups: int | None = None) -> Network:
    """A network for up to ``jobs`` jobs, and ``groups`` (jobs * kinds) groups of up to ``width`` sites."""
    return allocate(Network, network_sizes(jobs, kinds, width, sites, groups))


@pure_kernel
def unit_scale(slots: Integers, jobs: int = 1) -> int:
    """The units in a slot: ``jobs`` times the largest power of two with which all slots can be counted."""
    total = 0
    for j in range(slots.shape[0]):
        total += slots[j]
    total *= jobs
    bits = MOST_BITS
    while total > 0:
        total >>= 1
        bits -= 1
    return jobs << max(0, min(FINEST, bits))


@pure_kernel
def load_network(
    demand: npt.NDArray[np.integer[Any]],
    sites: Integers,
    slots: Integers,
    scale: int,
    jobs: int,
    net: Network,
) -> None:
    """Fill in jobs, groups and sites, with no flow, equal weights, nothing held and no floors.

    Args:
        demand: [>= jobs, K] tasks; the kinds with tasks have a site.
        sites: [K, A] available sites; -1 pads.
        slots: [M].
        scale: units in a slot, from :func:`unit_scale`.
        jobs: number of rows of ``demand`` that count.
        net: made for as many jobs, kinds, sites, and groups with tasks, or more.
    """
    width = sites.shape[1]
    count = slots.shape[0]
    for j in range(count):
        net.slots[j] = slots[j] * scale
        net.free[j] = net.slots[j]
        net.entry_start[j + 1] = 0
    net.entry_start[0] = 0
    g = 0
    for i in range(jobs):
        net.start[i] = g
        net.low[i] = g
        net.weight[i] = 1.0
        net.base[i] = 0
        net.floor[i] = 0
        for k in range(demand.shape[1]):
            tasks = int(demand[i, k])
            if tasks > 0:
                reach = 0
                for a in range(width):
                    j = sites[k, a]
                    net.site[g * width + a] = j
                    net.flow[g * width + a] = 0
                    if j >= 0:
                        reach += slots[j]
                        net.entry_start[j + 1] += 1
                net.kind[g] = k
                net.owner[g] = i
                net.tasks[g] = float(tasks) * scale
                net.held[g] = 0
                net.limit[g] = min(tasks, reach) * scale
                net.used[g] = 0
                g += 1
        net.high[i] = g
    net.start[jobs] = g
    net.queued[0] = 0
    for j in range(count):
        net.entry_start[j + 1] += net.entry_start[j]
        net.site_arc[j] = net.entry_start[j]
    for e in range(g * width):
        j = net.site[e]
        if j >= 0:
            position = net.site_arc[j]
            net.entry[position] = e
            net.entry_group[position] = e // width
            net.site_arc[j] = position + 1
    for j in range(count):
        net.entry_end[j] = net.entry_start[j + 1]


@pure_kernel
def _pour(net: Network, jobs: int) -> None:
    """Site by site, fill the site so as to level the aggregates that its jobs have so far.

    A start close to the max-min flow (a second round costs more than it saves). ``net.need`` gets the
    jobs' flows.
    """
    need = net.need
    for i in range(jobs):
        need[i] = 0
    for j in range(net.slots.shape[0]):
        first = net.entry_start[j]
        last = net.entry_start[j + 1]
        capacity = net.slots[j]
        total = 0
        weights = 0.0
        bases = 0.0
        for position in range(first, last):
            g = net.entry_group[position]
            i = net.owner[g]
            total += net.limit[g] - net.used[g]
            weights += net.weight[i]
            bases += net.base[i] + need[i]
        if total == 0:
            continue
        height = (capacity + bases) / weights
        lowest = 0.0
        highest = math.inf
        for _ in range(MOST_STEPS):
            if total <= capacity:
                break
            poured = 0.0
            slope = 0.0
            for position in range(first, last):
                g = net.entry_group[position]
                i = net.owner[g]
                free = net.limit[g] - net.used[g]
                wanted = net.weight[i] * height - net.base[i]
                gain = net.weight[i]
                if wanted <= net.floor[i]:
                    wanted = float(net.floor[i])
                    gain = 0.0
                wanted -= need[i]
                if wanted >= free:
                    poured += free
                elif wanted > 0.0:
                    poured += wanted
                    slope += gain
            gap = capacity - poured
            if abs(gap) <= 1e-12 * capacity:
                break
            if gap > 0.0:
                lowest = height
            else:
                highest = height
            following = height + gap / slope if slope > 0.0 else math.inf
            if following <= lowest or following >= highest:
                following = 2.0 * height + 1.0 if highest == math.inf else 0.5 * (lowest + highest)
            height = following
        left = capacity
        for again in range(2):  # rounding leaves a little, which goes to the groups below their limits
            if left == 0:
                break
            for position in range(first, last):
                g = net.entry_group[position]
                i = net.owner[g]
                amount = min(net.limit[g] - net.used[g], left)
                if again == 0 and total > capacity:
                    wanted = max(net.weight[i] * height - net.base[i], float(net.floor[i])) - need[i]
                    if wanted < amount:
                        amount = max(int(wanted), 0)
                net.flow[net.entry[position]] += amount
                net.used[g] += amount
                need[i] += amount
                left -= amount
        net.free[j] = left


class Part(NamedTuple):
    """Owners and sites that no flow crosses: ``owners[first:last]`` and ``sites[first_site:last_site]``."""

    first: int
    needy: int  # only ``owners[first:needy]`` may be in need or have too much; the others only pass flow on
    last: int
    first_site: int
    last_site: int
    number: int  # as in ``part`` and ``site_part``


@helper
def _visit_sites(
    net: Network, width: int, g: int, part: Part, further: int, tail: int, goal: int
) -> tuple[int, int]:
    """Give the sites of group g that have no depth yet the depth ``further``, and queue them.

    Returns:
        The new end of the queue, and the new goal: ``further`` if one of them has free slots.
    """
    for e in range(g * width, g * width + width):
        j = net.site[e]
        if j < 0:
            break
        if net.site_depth[j] < 0 and net.site_part[j] == part.number:
            net.site_depth[j] = further
            net.queue[tail] = net.need.shape[0] + j
            tail += 1
            if net.free[j] > 0:
                goal = further
    return tail, goal


@helper
def _visit_owner(net: Network, width: int, o: int, further: int, tail: int, goal: int) -> tuple[int, int]:
    """Give an owner the depth ``further``, and queue it; see :func:`_visit_sites`."""
    net.depth[o] = further
    net.arc[o] = net.low[o] * width
    net.queue[tail] = o
    return tail + 1, further if net.need[o] < 0 else goal


@helper
def _visit_needy(net: Network, width: int, part: Part, further: int, tail: int, goal: int) -> tuple[int, int]:
    """Visit, from all sites one less deep, the owners there that may be in need or have too much."""
    for index in range(part.first, part.needy):
        o = net.owners[index]
        for e in range(net.low[o] * width, net.high[o] * width):
            j = net.site[e]
            if net.depth[o] < 0 and j >= 0 and net.flow[e] > 0 and net.site_depth[j] == further - 1:
                tail, goal = _visit_owner(net, width, o, further, tail, goal)
    return tail, goal


@helper
def _visit_owners(
    net: Network, width: int, j: int, part: Part, further: int, tail: int, goal: int, unreached: int
) -> tuple[int, int, int]:
    """Visit the owners with a flow at site j, and the other sites of its group; count the unreached sites."""
    for position in range(net.entry_start[j], net.entry_end[j]):
        g = net.entry_group[position]
        o = net.owner[g]
        if net.flow[net.entry[position]] == 0 or o == FROZEN:
            continue
        leads = part.needy == part.last or net.high[o] - net.low[o] > 1  # to more sites than this group does
        if leads and net.depth[o] < 0 and net.part[o] == part.number:
            tail, goal = _visit_owner(net, width, o, further, tail, goal)
        if width > 1 and unreached > 0:
            before = tail
            tail, goal = _visit_sites(net, width, g, part, further, tail, goal)
            unreached -= tail - before
    return tail, goal, unreached


@subroutine
def _layer(net: Network, width: int, part: Part) -> tuple[int, bool]:
    """Breadth-first search from the owners in need: the depths of owners and sites.

    An arc leads from an owner to a site of a group below its limit, and from a site to the owner of a flow
    there, who would give it up, or to another site of that flow's group. Only the goals matter of the nodes
    as deep as they are, and of the owners when all sites are reached. So the owners that may be goals are
    looked at first, unless all may be.

    Returns:
        The depth of the nearest goals, owners with too much and sites with free slots; FAR if there are none.
        And whether all goals are among the few owners that may be in need or have too much.
    """
    count = net.need.shape[0]
    depth = net.depth
    site_depth = net.site_depth
    for index in range(net.queued[0]):
        if net.queue[index] < count:
            depth[net.queue[index]] = -1
    tail = 0
    for index in range(part.first, part.needy):
        o = net.owners[index]
        depth[o] = -1
        if net.need[o] > 0:
            depth[o] = 0
            net.arc[o] = net.low[o] * width
            net.queue[tail] = o
            tail += 1
    spare = False
    for index in range(part.first_site, part.last_site):
        j = net.sites[index]
        site_depth[j] = -1
        net.site_arc[j] = net.entry_start[j]
        net.site_turn[j] = 0
        spare = spare or net.free[j] > 0
    unreached = part.last_site - part.first_site
    few = part.needy < part.last
    goal = FAR
    level = 0
    head = 0
    while head < tail:
        node = net.queue[head]
        head += 1
        further = (depth[node] if node < count else site_depth[node - count]) + 1
        if further > goal:
            break
        if few and further > level:
            level = further
            tail, goal = _visit_needy(net, width, part, further, tail, goal)
            if goal == further and not spare:
                break
        before = tail
        if node < count:
            for g in range(net.low[node], net.high[node]):
                if unreached > 0 and net.used[g] < net.limit[g]:
                    tail, goal = _visit_sites(net, width, g, part, further, tail, goal)
            unreached -= tail - before
        elif unreached > 0 or not few:
            tail, goal, unreached = _visit_owners(
                net, width, node - count, part, further, tail, goal, unreached
            )
    net.queued[0] = tail
    return goal, few and not spare


@helper
def _leads_on(net: Network, j: int, part: Part, further: int, goal: int) -> Any:
    """Return True if site j may be the next node of a path: one deeper, and if it is the last, a goal."""
    return (
        net.site_depth[j] == further
        and net.site_part[j] == part.number
        and (further < goal or net.free[j] > 0)
    )


@helper
def _step(net: Network, size: int, node: int, gave: int, took: int) -> None:
    """Add a node to a path of ``size`` nodes, with the entries that lose and get flow on the way there."""
    net.path[size] = node
    net.gave[size] = gave
    net.took[size] = took


@helper
def _leave_owner(net: Network, width: int, o: int, part: Part, goal: int, size: int) -> bool:
    """Extend a path from owner o by the first arc, from where its search stands, that leads on.

    Returns:
        Whether there is one.
    """
    count = net.need.shape[0]
    further = net.depth[o] + 1
    e = net.arc[o]
    end = net.high[o] * width
    found = False
    while e < end and not found:
        g = e // width
        j = net.site[e]
        if net.used[g] >= net.limit[g] or j < 0:
            e = (g + 1) * width
        elif _leads_on(net, j, part, further, goal):
            _step(net, size, count + j, -1, e)
            found = True
        else:
            e += 1
    net.arc[o] = e
    return found


@helper
def _leave_site(net: Network, width: int, here: int, part: Part, goal: int, last: int, size: int) -> bool:
    """Extend a path from a site by the first arc, from where its search stands, that leads on.

    Every entry with flow has ``1 + width`` turns: its owner, who gives the flow up, then the sites of its
    group, to which the flow moves. Owners at depth ``last`` or deeper lead to no site that is a goal.

    Returns:
        Whether there is one.
    """
    count = net.need.shape[0]
    further = net.site_depth[here] + 1
    position = net.site_arc[here]
    turn = net.site_turn[here]
    end = net.entry_end[here]
    found = False
    while position < end:
        e = net.entry[position]
        g = net.entry_group[position]
        o = net.owner[g]
        if net.flow[e] > 0 and o != FROZEN:
            if turn == 0:
                if (
                    net.depth[o] == further
                    and net.part[o] == part.number
                    and (further < last or (further == goal and net.need[o] < 0))
                ):
                    _step(net, size, o, e, -1)
                    found = True
                    break
                turn = 1
            while width > 1 and turn <= width:
                other = g * width + turn - 1
                j = net.site[other]
                if j < 0:
                    break
                if _leads_on(net, j, part, further, goal):
                    _step(net, size, count + j, e, other)
                    found = True
                    break
                turn += 1
            if found:
                break
        position += 1
        turn = 0
    net.site_arc[here] = position
    net.site_turn[here] = turn
    return found


@helper
def _reach_owner(net: Network, width: int, here: int, part: Part, goal: int, size: int) -> bool:
    """Extend a path from a site to an owner with too much, as :func:`_leave_site` does in the same order.

    The search stands at an entry here, and not at a position among those of the site.
    """
    for index in range(part.first, part.needy):
        o = net.owners[index]
        if net.need[o] >= 0 or net.depth[o] != goal:
            continue
        for e in range(net.low[o] * width, net.high[o] * width):
            behind = net.site_turn[here] == 1 and e < net.site_arc[here]
            if net.site[e] == here and net.flow[e] > 0 and not behind:
                net.site_turn[here] = 1
                net.site_arc[here] = e
                _step(net, size, o, e, -1)
                return True
    return False


@helper
def _augment(net: Network, width: int, size: int) -> tuple[int, int]:
    """Send as much flow as possible along the path of ``size`` nodes.

    Returns:
        How many of its nodes remain, up to the first step that is now closed; and the amount.
    """
    need = net.need
    flow = net.flow
    used = net.used
    limit = net.limit
    gave = net.gave
    took = net.took
    count = need.shape[0]
    source = net.path[0]
    node = net.path[size - 1]
    amount = -need[node] if node < count else net.free[node - count]
    amount = min(amount, need[source])
    for t in range(1, size):
        if gave[t] >= 0:
            amount = min(amount, flow[gave[t]])
        else:
            g = took[t] // width
            amount = min(amount, limit[g] - used[g])
    if node < count:
        need[node] += amount
    else:
        net.free[node - count] -= amount
    need[source] -= amount
    kept = size - 1
    for t in range(size - 1, 0, -1):
        if gave[t] >= 0:
            flow[gave[t]] -= amount
            if flow[gave[t]] == 0:
                kept = t
            if took[t] >= 0:
                flow[took[t]] += amount
            else:
                used[gave[t] // width] -= amount
        else:
            g = took[t] // width
            flow[took[t]] += amount
            used[g] += amount
            if used[g] == limit[g]:
                kept = t
    return kept, amount


@subroutine
def _exchange(net: Network, width: int, part: Part, slack: int) -> int:
    """Move flow within a part to owners in need, from owners with too much and from free slots.

    Dinic's maximum flow (1970): again and again layers by breadth-first search, then augmenting paths through
    them by depth-first search, until the layers reach no goal. Needs, flows and free slots always balance, so
    it may stop at any time. Afterwards ``depth`` and ``site_depth`` are at least 0 on the side of a minimum
    cut with the owners still in need, unless their needs sum to at most ``slack``.

    Returns:
        The sum of the needs left.
    """
    need = net.need
    count = need.shape[0]
    left = 0
    for index in range(part.first, part.needy):
        left += max(need[net.owners[index]], 0)
    while left > slack:
        goal, owners_only = _layer(net, width, part)
        if goal == FAR:
            break
        last = goal - 1 if owners_only else goal
        for index in range(part.first, part.needy):
            source = net.owners[index]
            if need[source] <= 0 or net.depth[source] != 0:
                continue
            net.path[0] = source
            size = 1
            while size > 0:
                node = net.path[size - 1]
                depth = net.depth[node] if node < count else net.site_depth[node - count]
                if depth == goal:
                    size, amount = _augment(net, width, size)
                    left -= amount
                    if need[source] == 0:
                        break
                    continue
                if node < count:
                    found = _leave_owner(net, width, node, part, goal, size)
                elif owners_only and depth + 1 == goal:
                    found = _reach_owner(net, width, node - count, part, goal, size)
                else:
                    found = _leave_site(net, width, node - count, part, goal, last, size)
                if found:
                    size += 1
                    continue
                # a dead end, which no other path of these layers tries again
                if node < count:
                    net.depth[node] = -1
                else:
                    net.site_depth[node - count] = -1
                size -= 1
    return left


@helper
def _level_above_floors(net: Network, part: Part, flow: int, level: float) -> float:
    """The common level of a part in which some jobs are at their floors, and leave less to the others."""
    floored = True
    while floored:
        floored = False
        above = 0.0
        rest = flow
        for index in range(part.first, part.last):
            i = net.owners[index]
            if net.weight[i] * level - net.base[i] > net.floor[i]:
                above += net.weight[i]
                rest += net.base[i]
            else:
                rest -= net.floor[i]
        if above > 0.0:
            lower = rest / above
            floored = lower < level * (1.0 - 1e-15)
            level = min(level, lower)
    return level


@helper
def _push_part(stack: Integers, size: int, part: Part) -> int:
    """Put a part on the stack of unfinished parts; return the new size of the stack."""
    stack[size] = part.first
    stack[size + 1] = part.last
    stack[size + 2] = part.first_site
    stack[size + 3] = part.last_site
    stack[size + 4] = part.number
    return size + 5


@helper
def _gather(nodes: Integers, first: int, last: int, depth: Integers) -> int:
    """Move the nodes on the needy side of the cut to the front of their part; return where they end."""
    middle = first
    for index in range(first, last):
        node = nodes[index]
        if depth[node] >= 0:
            nodes[index] = nodes[middle]
            nodes[middle] = node
            middle += 1
    return middle


@helper
def _want_all(net: Network, jobs: int) -> bool:
    """Make one part of all jobs, which need their unmet demand; return True if sites have free slots."""
    free = False
    for i in range(jobs):
        total = 0
        for g in range(net.start[i], net.start[i + 1]):
            total += net.limit[g]
        net.need[i] = total - net.need[i]
        net.owners[i] = i
        net.part[i] = 0
    for j in range(net.slots.shape[0]):
        net.sites[j] = j
        net.site_part[j] = 0
        free = free or net.free[j] > 0
    return free


@pure_kernel
def share_into(net: Network, jobs: int, width: int, scale: int) -> int:
    """Lexicographic max-min aggregates of a loaded network.

    Fujishige's decomposition: a part whose jobs can all have its mean level is done, else the minimum cut
    divides it. The total flow of a part does not change any more, only its division among the jobs.

    Args:
        net: loaded; ``weight``, ``base`` and ``floor`` may have been set since. ``share`` [jobs] gets the
            aggregates in slots, ``flow`` an allocation that has them.
        jobs: number of jobs.
        width: A, sites at most per group.
        scale: units in a slot, from :func:`unit_scale`.

    Returns:
        0, or 1 if the floors admit no allocation.
    """
    need = net.need
    count = net.slots.shape[0]
    slack = 2 * jobs
    origin = net.start[0]  # 0, which as a literal would have ``_exchange`` compiled once more
    _pour(net, jobs)
    # first a flow that no exchange can enlarge
    everything = Part(origin, jobs, jobs, origin, count, origin)
    if _want_all(net, jobs):
        _exchange(net, width, everything, origin)
    parts = 1
    size = _push_part(net.stack, origin, everything)
    while size > 0:
        size -= 5
        part = Part(
            net.stack[size],
            net.stack[size + 1],
            net.stack[size + 1],
            net.stack[size + 2],
            net.stack[size + 3],
            net.stack[size + 4],
        )
        flow = 0
        weights = 0.0
        bases = 0
        floors = 0
        satisfied = True
        for index in range(part.first, part.last):
            i = net.owners[index]
            total = 0
            demand = 0
            for g in range(net.start[i], net.start[i + 1]):
                total += net.used[g]
                demand += net.limit[g]
            satisfied = satisfied and total == demand
            need[i] = -total
            flow += total
            weights += net.weight[i]
            bases += net.base[i]
            floors += net.floor[i]
        if satisfied:
            for index in range(part.first, part.last):
                i = net.owners[index]
                net.share[i] = (net.base[i] - need[i]) / scale
                if -need[i] < net.floor[i] - slack:
                    return 1
            continue
        if floors > flow + slack:
            return 1
        # raise all to the level of the part, as far as a flow can
        level = (flow + bases) / weights
        if floors > 0 or bases > 0:
            level = _level_above_floors(net, part, flow, level)
        for index in range(part.first, part.last):
            i = net.owners[index]
            need[i] += max(int(net.weight[i] * level - net.base[i]), net.floor[i])
        left = _exchange(net, width, part, slack)
        middle = part.first
        if left > slack:
            middle = _gather(net.owners, part.first, part.last, net.depth)
        if middle == part.first or middle == part.last:
            for index in range(part.first, part.last):
                i = net.owners[index]
                reached = max(net.weight[i] * level - net.base[i], float(net.floor[i]))
                net.share[i] = (reached + net.base[i]) / scale
            continue
        # else the jobs below the level with the sites on their side of the cut, and the others
        for index in range(part.first, middle):
            net.part[net.owners[index]] = parts
        middle_site = _gather(net.sites, part.first_site, part.last_site, net.site_depth)
        for index in range(part.first_site, middle_site):
            net.site_part[net.sites[index]] = parts
        above = Part(middle, part.last, part.last, middle_site, part.last_site, part.number)
        below = Part(part.first, middle, middle, part.first_site, middle_site, parts)
        size = _push_part(net.stack, size, above)
        size = _push_part(net.stack, size, below)
        parts += 1
    return 0


@pure_kernel
def hold_in_network(held: Integers, jobs: int, width: int, net: Network) -> int:
    """Give jobs what they hold at single sites, and leave the rest to the network.

    Args:
        held: [>= jobs, K] units, at most the demand; only where the group has a single site.
        jobs: number of jobs.
        width: A, sites at most per group.
        net: loaded, without flow.

    Returns:
        0, or 1 if a site has too few slots.
    """
    for i in range(jobs):
        for g in range(net.start[i], net.start[i + 1]):
            amount = held[i, net.kind[g]]
            if amount > 0:
                j = net.site[g * width]
                if amount > min(net.limit[g], net.slots[j]) + jobs:
                    return 1
                amount = min(min(amount, net.limit[g]), net.slots[j])  # floors are rounded
                net.held[g] = amount
                net.base[i] += amount
                net.limit[g] -= amount
                net.slots[j] -= amount
                net.free[j] = net.slots[j]
    return 0


@pure_kernel
def time_in_network(
    seconds: npt.NDArray[np.integer[Any]] | Floats, scale: int, jobs: int, net: Network
) -> None:
    """Let :func:`complete_into` estimate completion times by the tasks' durations, not by their number.

    Args:
        seconds: [>= jobs, K] sum of the durations of each group's tasks, above 0 where the group has tasks.
        scale: units in a slot, as in :func:`load_network`.
        jobs: number of jobs.
        net: loaded.
    """
    for i in range(jobs):
        for g in range(net.start[i], net.start[i + 1]):
            net.tasks[g] = float(seconds[i, net.kind[g]]) * scale


@helper
def _freeze(net: Network, first: int, last: int) -> float:
    """Freeze the allocation of a job's groups; return their least share of a demand, inf without tasks."""
    least = math.inf
    for g in range(first, last):
        least = min(least, (net.used[g] + net.held[g]) / net.tasks[g])
        net.owner[g] = FROZEN
    return least


@helper
def _level_of_cut(net: Network, first: int, last: int) -> float:
    """The highest common share of their demands that groups on the near side of the cut can have.

    Together they have no more than now; a group that holds more outside the network keeps that.
    """
    flow = 0.0
    tasks = 0.0
    for g in range(first, last):
        if net.depth[net.owner[g]] >= 0:
            flow += net.used[g] + net.held[g]
            tasks += net.tasks[g]
    level = flow / tasks
    again = True
    while again:
        again = False
        tasks = 0.0
        rest = flow
        for g in range(first, last):
            if net.depth[net.owner[g]] >= 0:
                if net.tasks[g] * level > net.held[g]:
                    tasks += net.tasks[g]
                else:
                    rest -= net.held[g]
        if tasks > 0.0 and rest / tasks < level * (1.0 - 1e-15):
            level = max(rest / tasks, 0.0)
            again = True
    return level


@helper
def _give_back(net: Network, width: int, first: int, last: int, surplus: int) -> None:
    """Take slots from groups with more than they need, until the job has no surplus."""
    for g in range(first, last):
        o = net.owner[g]
        for e in range(g * width, g * width + width):
            amount = min(min(surplus, -net.need[o]), net.flow[e])
            if amount > 0 and net.site[e] >= 0:
                net.flow[e] -= amount
                net.used[g] -= amount
                net.free[net.site[e]] += amount
                net.need[o] += amount
                surplus -= amount


@helper
def _list_live(net: Network, width: int) -> int:
    """Take entries that pass no flow on out of the sites' lists, and list the sites that flow can enter.

    These are the sites of groups below their limits, and those to which a group with a flow at one of them
    can move it. No flow leaves them until the end of :func:`complete_into`.

    Returns:
        how many sites flow can enter.
    """
    entered = net.site_turn  # 1 if flow can enter a site
    for j in range(net.slots.shape[0]):
        net.site_depth[j] = -1
        entered[j] = 0
        end = int(net.entry_start[j])
        for position in range(net.entry_start[j], net.entry_end[j]):
            g = net.entry_group[position]
            o = net.owner[g]
            if o != FROZEN:
                entered[j] |= net.used[g] < net.limit[g]
                if width > 1 or net.high[o] - net.low[o] > 1:  # else it passes nothing on
                    net.entry[end] = net.entry[position]
                    net.entry_group[end] = g
                    end += 1
        net.entry_end[j] = end
    listed = 0
    again = True
    while again:
        again = False
        for j in range(net.slots.shape[0]):
            if entered[j] != 1:
                continue
            entered[j] = 2  # and its groups have been looked at
            again = True
            net.sites[listed] = j
            listed += 1
            for position in range(net.entry_start[j], net.entry_end[j]):
                first = net.entry_group[position] * width
                if net.flow[net.entry[position]] > 0:
                    for e in range(first, first + width):
                        if net.site[e] >= 0:
                            entered[net.site[e]] = max(entered[net.site[e]], 1)
    return listed


@pure_kernel
def complete_into(net: Network, order: Integers, jobs: int, width: int, rate: Floats) -> None:
    """Rearrange a max-min allocation so that jobs finish early, one job after another.

    Newton's method finds each job's level, the common share of its groups' demands: from above, each
    violated cut lowers it to the level that the cut admits. Then the job is frozen.

    Args:
        net: after :func:`share_into`. ``flow`` changes, the jobs' aggregates do not.
        order: [jobs] the jobs, the most urgent first.
        jobs: number of jobs.
        width: A, sites at most per group.
        rate: [jobs] written: y, the least share of a demand among the job's groups, or of their seconds
            after :func:`time_in_network`; inf without tasks.
    """
    need = net.need
    count = net.slots.shape[0]
    origin = net.start[0]  # 0, see share_into
    most = net.need.shape[0] - net.share.shape[0]
    for i in range(jobs):
        need[i] = 0
        net.part[i] = 0
        net.depth[i] = -1
        net.owners[most + i] = order[i]
    for j in range(count):
        net.site_part[j] = 0
    listed = 2 * jobs + 1  # jobs when the sites' lists were made, each time half as many
    open_sites = origin
    for turn in range(jobs):
        job = order[turn]
        if 2 * (jobs - turn) < listed:
            listed = jobs - turn
            open_sites = _list_live(net, width)
        first = net.start[job]
        last = net.start[job + 1]
        groups = last - first
        # with its groups all served, or with one of them, a job has nothing to rearrange
        unmet = False
        for g in range(first, last):
            unmet = unmet or net.used[g] < net.limit[g]
        if groups <= 1 or not unmet:
            rate[job] = _freeze(net, first, last)
            continue
        # the job's groups take part one by one, the other jobs only pass on what they have
        after = most + turn + 1  # where the owners begin who are not frozen
        before = 0
        for g in range(first, last):
            o = jobs + g - first
            net.owner[g] = o
            net.low[o] = g
            net.high[o] = g + 1
            net.part[o] = 0
            net.depth[o] = 0
            net.owners[after - groups + g - first] = o
            before += net.used[g]
        part = Part(after - groups, after, most + jobs, origin, open_sites, origin)
        slack = 2 * (jobs + groups)
        level = math.inf
        while True:
            lower = _level_of_cut(net, first, last)
            if lower >= level:
                break
            level = lower
            for g in range(first, last):
                target = max(min(int(net.tasks[g] * level) - net.held[g], net.limit[g]), 0)
                need[net.owner[g]] = target - net.used[g]
            if _exchange(net, width, part, slack) <= slack:
                break
        # slots that nobody used went to a group in need: the others of the job give as much back
        surplus = -before
        for g in range(first, last):
            surplus += net.used[g]
        _give_back(net, width, first, last, surplus)
        rate[job] = _freeze(net, first, last)


@pure_kernel
def water_into(capacity: float, demand: Floats, share: Floats) -> None:
    """Write the max-min fair ``share`` [n] of one resource (IMF): whole numbers give quotients, rounded once.

    Args:
        capacity: of the resource.
        demand: [n] at least 0.
        share: [n] written.

    Source: guan2022, section 4.1. Deviations: a demand equal to the level is met ("<" is "<=").
    """
    undecided = demand.shape[0]
    rest = capacity
    for i in range(undecided):
        share[i] = -1.0
    again = undecided > 0
    while again:
        again = False
        level = rest / undecided
        for i in range(demand.shape[0]):
            if share[i] < 0.0 and demand[i] <= level:
                share[i] = demand[i]
                rest -= demand[i]
                undecided -= 1
                again = undecided > 0
    for i in range(demand.shape[0]):
        if share[i] < 0.0:
            share[i] = rest / undecided
