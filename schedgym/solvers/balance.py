"""Balanced placement of a job's tasks on the sites that hold their data.

``balance_into`` is exact (max-flows under a limit per slot, found by bisection), ``greedy_into`` the cheap
heuristic of ATA-Greedy. Both are integral, compare in integers only, are deterministic, ties included, and
work on preallocated arrays.

Source: guan2022, sections 3.2.1 and 3.2.2 (Algorithms 1 and 2) and 3.2.4 (ATA-Greedy).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Integers, allocate
from schedgym.core.jit import helper, pure_kernel

UNSEEN, SOURCE = -2, -1  # how a search came to a node, where no entry of the lists led to it


class SiteLists(NamedTuple):
    """The sites available to each task group, by group and by site. K groups, at most A sites each.

    An entry (group k, its a-th site) has the number k * A + a.
    """

    sites: Annotated[Integers, "group", "choice"]  # in the order of the list; -1 pads at the end
    #: the positions in ``sites`` by ascending site; -1 pads at the end
    ascending: Annotated[Integers, "group", "choice"]
    site_start: Annotated[Integers, "site+1"]  # where the entries of a site begin
    entries: Annotated[Integers, "entry"]  # entries by site, groups ascending


class PlacementScratch(NamedTuple):
    """Work space of the kernels. K groups, M sites."""

    left: Annotated[Integers, "group"]  # tasks not yet placed
    capacity_left: Annotated[Integers, "site"]  # tasks that a site still takes
    group_from: Annotated[Integers, "group"]  # entry by which the search came to a group
    site_from: Annotated[Integers, "site"]  # entry by which the search came to a site
    queue: Annotated[Integers, "node"]


def make_site_lists(sites: npt.ArrayLike, count: int) -> SiteLists:
    """Index the available sites of the groups.

    Args:
        sites: [K, A] available sites of each group, in order, none twice; -1 pads at the end.
        count: number of sites M.
    """
    array = np.ascontiguousarray(sites, dtype=np.int64)
    keys = np.where(array >= 0, array, count)
    ascending = np.argsort(keys, axis=1, kind="stable")
    ordered = np.take_along_axis(keys, ascending, axis=1)
    flat = keys.ravel()
    entries = np.argsort(flat, kind="stable")
    start = np.searchsorted(flat[entries], np.arange(count + 1))
    return SiteLists(
        sites=array,
        ascending=np.ascontiguousarray(np.where(ordered < count, ascending, -1), dtype=np.int64),
        site_start=start.astype(np.int64),
        entries=entries.astype(np.int64),
    )


def make_placement_scratch(groups: int, sites: int) -> PlacementScratch:
    """Work space for ``groups`` task groups and ``sites`` sites."""
    return allocate(PlacementScratch, {"group": groups, "site": sites, "node": groups + sites})


@helper
def _fill_in_order(demand: Integers, lists: SiteLists, placement: Integers, scratch: PlacementScratch) -> int:
    """Let each group in turn take min(left, free capacity) of each of its sites; return the tasks left."""
    sites = lists.sites
    width = sites.shape[1]
    total = 0
    for k in range(sites.shape[0]):
        tasks = demand[k]
        for a in range(width):
            placement[k, a] = 0
        if tasks > 0:
            for b in range(width):
                a = lists.ascending[k, b]
                if a < 0 or tasks == 0:
                    break
                j = sites[k, a]
                taken = min(tasks, scratch.capacity_left[j])
                placement[k, a] = taken
                scratch.capacity_left[j] -= taken
                tasks -= taken
        scratch.left[k] = tasks
        total += tasks
    return total


@helper
def _find_free_site(lists: SiteLists, placement: Integers, scratch: PlacementScratch) -> int:
    """The nearest site with free capacity that a path reaches from a group with tasks left; -1 if none.

    Breadth-first: from a group to its sites, from a site to the groups with tasks there, which may move on.
    ``site_from`` and ``group_from`` get the entries by which sites and groups were reached.
    """
    sites = lists.sites
    groups, width = sites.shape
    group_from = scratch.group_from
    site_from = scratch.site_from
    queue = scratch.queue
    tail = 0
    for k in range(groups):
        group_from[k] = UNSEEN
        if scratch.left[k] > 0:
            group_from[k] = SOURCE
            queue[tail] = k
            tail += 1
    for j in range(scratch.capacity_left.shape[0]):
        site_from[j] = UNSEEN
    head = 0
    while head < tail:
        node = queue[head]
        head += 1
        if node < groups:
            for b in range(width):
                a = lists.ascending[node, b]
                if a < 0:
                    break
                j = sites[node, a]
                if site_from[j] == UNSEEN:
                    site_from[j] = node * width + a
                    if scratch.capacity_left[j] > 0:
                        return j
                    queue[tail] = groups + j
                    tail += 1
        else:
            j = node - groups
            for position in range(lists.site_start[j], lists.site_start[j + 1]):
                entry = lists.entries[position]
                k = entry // width
                if group_from[k] == UNSEEN and placement[k, entry - k * width] > 0:
                    group_from[k] = entry
                    queue[tail] = k
                    tail += 1
    return -1


@helper
def _augment(found: int, lists: SiteLists, placement: Integers, scratch: PlacementScratch) -> int:
    """Move as many tasks as possible along the path to the free site ``found``; return their number."""
    sites = lists.sites
    width = sites.shape[1]
    group_from = scratch.group_from
    site_from = scratch.site_from
    amount = scratch.capacity_left[found]
    j = found
    k = site_from[j] // width
    while group_from[k] != SOURCE:
        a = group_from[k] - k * width
        amount = min(amount, placement[k, a])
        j = sites[k, a]
        k = site_from[j] // width
    amount = min(amount, scratch.left[k])
    scratch.capacity_left[found] -= amount
    scratch.left[k] -= amount
    j = found
    k = site_from[j] // width
    while group_from[k] != SOURCE:
        a = group_from[k] - k * width
        placement[k, site_from[j] - k * width] += amount
        placement[k, a] -= amount
        j = sites[k, a]
        k = site_from[j] // width
    placement[k, site_from[j] - k * width] += amount
    return amount


@pure_kernel
def place(demand: Integers, lists: SiteLists, placement: Integers, scratch: PlacementScratch) -> int:
    """Place as many tasks as fit ``scratch.capacity_left``: the maximum flow of Edmonds and Karp.

    Shortest augmenting paths, with groups and sites always taken in ascending order; the paths of one
    step amount to a pass over groups, then sites, each pair taking min(left, free capacity).

    Args:
        demand: [K] tasks.
        lists: available sites.
        placement: [K, A] written: tasks at each available site.
        scratch: ``capacity_left`` [M] is read and reduced. If tasks are left, ``group_from`` other than
            UNSEEN and ``site_from`` other than UNSEEN mark a minimum cut.

    Returns:
        The number of tasks left.
    """
    total = _fill_in_order(demand, lists, placement, scratch)
    while total > 0:
        found = _find_free_site(lists, placement, scratch)
        if found < 0:
            break
        total -= _augment(found, lists, placement, scratch)
    return total


@pure_kernel
def balance_into(
    demand: Integers,
    lists: SiteLists,
    slots: Integers,
    load: Integers,
    placement: Integers,
    scratch: PlacementScratch,
) -> int:
    """The placement with the least whole C: no site exceeds C tasks per slot, unless it did before.

    It is the least C for which a maximum flow (of :func:`place`) with the site capacities max(u_j C - r_j, 0)
    places all tasks, found by bisection.

    Args:
        demand: [K] tasks; a group with tasks has a site.
        lists: available sites.
        slots: [M] at least 1.
        load: [M] tasks already there.
        placement: [K, A] written.
        scratch: work space.

    Returns:
        C, in tasks per slot; 0 without tasks.

    Source: guan2022, Algorithm 1 (BTAwJ: ``load`` zero) and Algorithm 2 (BTAaJ).
    """
    sites = slots.shape[0]
    tasks = 0
    for k in range(demand.shape[0]):
        tasks += demand[k]
    # at least what all slots together must do; at most that by which any site could take all tasks
    whole = 0
    high = 0
    for j in range(sites):
        whole += slots[j]
        high = max(high, (tasks + load[j] + slots[j] - 1) // slots[j])
    low = (tasks + whole - 1) // whole
    level = low
    while True:
        for j in range(sites):
            scratch.capacity_left[j] = max(slots[j] * level - load[j], 0)
        left = place(demand, lists, placement, scratch)
        if low >= high:
            return level
        if left == 0:
            high = level
        else:
            low = level + 1
        level = (low + high) // 2


@helper
def _fill_group(
    tasks: int,
    group: int,
    lists: SiteLists,
    slots: Integers,
    load: Integers,
    placement: Integers,
    active: Integers,
) -> None:
    """Place a group: each task to the least (load + 1) / slots, lowest site first; ``load`` grows."""
    width = lists.sites.shape[1]
    most = 0
    weight = 0
    for a in range(width):
        j = lists.sites[group, a]
        if j < 0:
            break
        active[j] = 1
        most += load[j]
        weight += slots[j]
    most += tasks
    # the water level most / weight over the sites below it
    dropped = True
    while dropped:
        dropped = False
        for a in range(width):
            j = lists.sites[group, a]
            if j < 0:
                break
            if active[j] == 1 and load[j] * weight > most * slots[j]:
                active[j] = 0
                most -= load[j]
                weight -= slots[j]
                dropped = True
    # the tasks with (load + 1) / slots up to the level come first in any order of ties
    left = tasks
    for a in range(width):
        j = lists.sites[group, a]
        if j < 0:
            break
        if active[j] == 1:
            count = slots[j] * most // weight - load[j]
            placement[group, a] = count
            load[j] += count
            left -= count
    # fewer tasks than sites are left
    while left > 0:
        chosen = -1
        site = -1
        for b in range(width):
            a = lists.ascending[group, b]
            if a < 0:
                break
            j = lists.sites[group, a]
            if chosen < 0 or (load[j] + 1) * slots[site] < (load[site] + 1) * slots[j]:
                chosen = a
                site = j
        placement[group, chosen] += 1
        load[site] += 1
        left -= 1


@helper
def _fill_group_literally(
    tasks: int, group: int, lists: SiteLists, load: Integers, placement: Integers, order: Integers
) -> None:
    """Place a group by the thesis's formula: loads count, slots do not; the remainder to the most loaded."""
    width = lists.sites.shape[1]
    count = 0
    for b in range(width):
        a = lists.ascending[group, b]
        if a < 0:
            break
        position = count
        while position > 0 and load[lists.sites[group, order[position - 1]]] > load[lists.sites[group, a]]:
            order[position] = order[position - 1]
            position -= 1
        order[position] = a
        count += 1
    used = 0
    below = 0  # sum of the loads of the ``used`` least loaded sites
    while used < count:
        if used > 0 and tasks <= used * load[lists.sites[group, order[used]]] - below:
            break
        below += load[lists.sites[group, order[used]]]
        used += 1
    level = (tasks + below + used - 1) // used
    short = level * used - below - tasks
    for x in range(used):
        a = order[x]
        j = lists.sites[group, a]
        number = level - load[j] - (1 if x < short else 0)
        placement[group, a] = number
        load[j] += number


@pure_kernel
def greedy_into(
    demand: Integers,
    lists: SiteLists,
    slots: Integers,
    load: Integers,
    placement: Integers,
    scratch: PlacementScratch,
    literal: bool,
) -> None:
    """ATA-Greedy's placement: group by group, each task where it leaves the least load per slot.

    Groups by decreasing size, ties by index; each task goes to the available site with the least
    (load + 1) / u_j, ties to the lowest index. A group costs the square of its number of sites, whatever
    its number of tasks.

    Args:
        demand: [K] tasks; a group with tasks has a site.
        lists: available sites.
        slots: [M] at least 1.
        load: [M] tasks already there; those placed are added.
        placement: [K, A] written.
        scratch: work space.
        literal: the thesis's formula. It fills to a level in tasks, not in tasks per slot, and gives the
            remainder to the more loaded of the sites that it fills (equal loads in order of index).

    Source: guan2022, section 3.2.4. Deviations: loads are taken per slot, and the remainder goes to the
    lowest index, unless ``literal``.
    """
    groups, width = lists.sites.shape
    order = scratch.queue
    count = 0
    for k in range(groups):
        for a in range(width):
            placement[k, a] = 0
        if demand[k] > 0:
            position = count
            while position > 0 and demand[order[position - 1]] < demand[k]:
                order[position] = order[position - 1]
                position -= 1
            order[position] = k
            count += 1
    for index in range(count):
        k = order[index]
        if literal:
            _fill_group_literally(demand[k], k, lists, load, placement, scratch.capacity_left)
        else:
            _fill_group(demand[k], k, lists, slots, load, placement, scratch.site_from)
