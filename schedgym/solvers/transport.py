"""Transportation with convex unit costs: many rows with supplies, few servers with capacities.

The cost of the unit after the first q of row j on server i is

    base[j] + linear[j, i] + slope[j] * q,    slope[j] >= 0.

Successive shortest paths, on the graph of the servers alone: an arc from server to server is the cheapest
change of one unit of a row between them. Costs are whole numbers (:mod:`schedgym.solvers.arithmetic`), so
that the optimum is exact in them. Of the optima the lexicographically greatest is found, by row, then server.

The kernel (``transport_into``) works on preallocated arrays and allocates nothing.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from schedgym.core.arrays import Integers, allocate
from schedgym.core.jit import helper, pure_kernel

FORBIDDEN = 1 << 62  # linear cost of an arc that no unit may take
NONE, UNSEEN = -1, -2  # no row, no node before; a node that a search has not reached


class TransportScratch(NamedTuple):
    """The problem and the work space of :func:`transport_into`. R rows, M servers, two more nodes."""

    supply: Annotated[Integers, "row"]
    base: Annotated[Integers, "row"]
    linear: Annotated[Integers, "row", "server"]  # FORBIDDEN where no unit may go
    slope: Annotated[Integers, "row"]
    units: Annotated[Integers, "row", "server"]  # the solution
    owner: Annotated[Integers, "row"]  # for the caller
    left: Annotated[Integers, "row"]  # supply without a server
    price: Annotated[Integers, "row"]  # potential of a row
    free: Annotated[Integers, "server"]
    holders: Annotated[Integers, "server", "row"]  # rows with units on a server
    hosted: Annotated[Integers, "server"]  # how many
    place: Annotated[Integers, "row", "server"]  # position among the holders
    enter: Annotated[Integers, "server"]  # cheapest cost of a further unit
    enter_row: Annotated[Integers, "server"]  # its row
    move: Annotated[Integers, "server", "server"]  # cheapest change of a unit from server to server
    move_row: Annotated[Integers, "server", "server"]  # its row
    distance: Annotated[Integers, "server+2"]
    parent: Annotated[Integers, "server+2"]
    via: Annotated[Integers, "server+2"]  # row by which a node was reached
    queue: Annotated[Integers, "server+2"]


def make_transport_scratch(rows: int, servers: int) -> TransportScratch:
    """Work space for up to ``rows`` rows and ``servers`` servers."""
    return allocate(TransportScratch, {"row": rows, "server": servers})


@helper
def _next(j: int, i: int, net: TransportScratch) -> int:
    """Cost of one more unit of row j on server i, without its base."""
    return net.linear[j, i] + net.slope[j] * net.units[j, i]


@helper
def _latest(j: int, i: int, net: TransportScratch) -> int:
    """Cost of the dearest unit of row j on server i, without its base."""
    return net.linear[j, i] + net.slope[j] * (net.units[j, i] - 1)


@pure_kernel
def _find_entry(i: int, n: int, net: TransportScratch) -> None:
    """The row that puts a further unit on server i most cheaply."""
    best = FORBIDDEN
    row = NONE
    for j in range(n):
        if net.left[j] > 0 and net.linear[j, i] != FORBIDDEN:
            cost = net.base[j] + net.linear[j, i] + net.slope[j] * net.units[j, i]
            if cost < best:
                best = cost
                row = j
    net.enter[i] = best
    net.enter_row[i] = row


@pure_kernel
def _find_move(i: int, k: int, net: TransportScratch) -> None:
    """The row that changes a unit from server i to server k most cheaply."""
    best = FORBIDDEN
    row = NONE
    for x in range(net.hosted[i]):
        j = net.holders[i, x]
        if net.linear[j, k] != FORBIDDEN:
            cost = (
                net.linear[j, k] - net.linear[j, i] + net.slope[j] * (net.units[j, k] - net.units[j, i] + 1)
            )
            if cost < best:
                best = cost
                row = j
    net.move[i, k] = best
    net.move_row[i, k] = row


@helper
def _find_moves(net: TransportScratch) -> None:
    """The cheapest changes between all servers."""
    for i in range(net.free.shape[0]):
        for k in range(net.free.shape[0]):
            if k != i:
                _find_move(i, k, net)


@pure_kernel
def _add(j: int, i: int, amount: int, net: TransportScratch) -> None:
    """Change the units of row j on server i."""
    before = net.units[j, i]
    net.units[j, i] = before + amount
    if before == 0:
        net.place[j, i] = net.hosted[i]
        net.holders[i, net.hosted[i]] = j
        net.hosted[i] += 1
    elif before + amount == 0:
        net.hosted[i] -= 1
        last = net.holders[i, net.hosted[i]]
        net.holders[i, net.place[j, i]] = last
        net.place[last, i] = net.place[j, i]


@pure_kernel
def _cheapest_end(n: int, net: TransportScratch) -> int:
    """The server with free capacity at which a shortest path from the rows ends; -1 if none can be reached.

    A change away from a server with free capacity never has a negative cost, as the units so far are optimal:
    paths go through full servers only.
    """
    servers = net.free.shape[0]
    distance = net.distance
    best = -1
    for i in range(servers):
        _find_entry(i, n, net)
        distance[i] = net.enter[i]
        net.parent[i] = -1
        if net.enter_row[i] >= 0 and (best < 0 or distance[i] < distance[best]):
            best = i
    if best < 0 or net.free[best] > 0:
        return best
    _find_moves(net)
    changed = True
    while changed:
        changed = False
        for i in range(servers):
            if net.free[i] > 0 or distance[i] == FORBIDDEN:
                continue
            for k in range(servers):
                if k == i:
                    continue
                if net.move_row[i, k] >= 0 and distance[i] + net.move[i, k] < distance[k]:
                    distance[k] = distance[i] + net.move[i, k]
                    net.parent[k] = i
                    changed = True
    best = -1
    for i in range(servers):
        if net.free[i] > 0 and distance[i] != FORBIDDEN and (best < 0 or distance[i] < distance[best]):
            best = i
    return best


@helper
def _augment(end: int, most: int, net: TransportScratch) -> int:
    """Send units along the path to server ``end``, as many as cost the same; return their number."""
    amount = min(most, net.free[end])
    k = end
    while net.parent[k] >= 0:
        i = net.parent[k]
        j = net.move_row[i, k]
        amount = min(amount, net.units[j, i])
        if net.slope[j] > 0:
            amount = 1
        net.via[k] = j
        k = i
    first = net.enter_row[k]
    amount = min(amount, net.left[first])
    if net.slope[first] > 0:
        amount = 1
    net.left[first] -= amount
    _add(first, k, amount, net)
    net.free[end] -= amount
    k = end
    while net.parent[k] >= 0:
        i = net.parent[k]
        _add(net.via[k], i, -amount, net)
        _add(net.via[k], k, amount, net)
        k = i
    return amount


# Of the optima, the lexicographically greatest -------------------------------------------------


@helper
def _relax(tail: int, head: int, cost: int, distance: Integers) -> bool:
    if distance[tail] + cost < distance[head]:
        distance[head] = distance[tail] + cost
        return True
    return False


@pure_kernel
def _set_prices(n: int, capacity: Integers, net: TransportScratch) -> None:
    """Set the potentials of an optimum: of servers, the source (node M), the sink (M + 1), and the rows."""
    servers = net.free.shape[0]
    source = servers
    sink = servers + 1
    distance = net.distance
    leave = net.queue
    _find_moves(net)
    for i in range(servers):
        _find_entry(i, n, net)
        cheapest = FORBIDDEN
        for x in range(net.hosted[i]):
            j = net.holders[i, x]
            cheapest = min(cheapest, -net.base[j] - _latest(j, i, net))
        leave[i] = cheapest
    for node in range(servers + 2):
        distance[node] = 0
    changed = True
    while changed:
        changed = False
        for i in range(servers):
            if net.enter_row[i] >= 0:
                changed |= _relax(source, i, net.enter[i], distance)
            if net.hosted[i] > 0:
                changed |= _relax(i, source, leave[i], distance)
            if net.free[i] > 0:
                changed |= _relax(i, sink, 0, distance)
            if net.free[i] < capacity[i]:
                changed |= _relax(sink, i, 0, distance)
            for k in range(servers):
                if k != i and net.move_row[i, k] >= 0:
                    changed |= _relax(i, k, net.move[i, k], distance)
    for j in range(n):
        price = FORBIDDEN
        if net.left[j] > 0:
            price = distance[source] + net.base[j]
        for i in range(servers):
            if net.units[j, i] > 0:
                price = min(price, distance[i] - _latest(j, i, net))
        net.price[j] = price


@helper
def _may_take(j: int, i: int, net: TransportScratch) -> bool:
    """Return True if one more unit of row j on server i is on a path that costs nothing."""
    return (
        net.linear[j, i] != FORBIDDEN
        and net.price[j] != FORBIDDEN
        and net.price[j] + _next(j, i, net) == net.distance[i]
    )


@helper
def _may_give(j: int, i: int, net: TransportScratch) -> bool:
    """Return True if one unit less of row j on server i is on a path that costs nothing."""
    return net.units[j, i] > 0 and net.distance[i] - _latest(j, i, net) == net.price[j]


@helper
def _may_swap(j: int, net: TransportScratch) -> bool:
    """Return True if a change of the total units of row j is on a path that costs nothing."""
    return net.distance[net.free.shape[0]] + net.base[j] == net.price[j]


@pure_kernel
def _free_path(j: int, i: int, n: int, capacity: Integers, net: TransportScratch) -> int:
    """Find a path from server i to a giver of row j that costs nothing and leaves earlier units alone.

    Returns:
        The last node (a later server that has a unit of row j, or the source); -1 if there is no path.
    """
    servers = net.free.shape[0]
    source = servers
    sink = servers + 1
    parent = net.parent
    queue = net.queue
    for node in range(servers + 2):
        parent[node] = UNSEEN
    parent[i] = NONE
    queue[0] = i
    head = 0
    tail = 1
    while head < tail:
        a = queue[head]
        head += 1
        if a < servers:
            if a > i and _may_give(j, a, net):
                return a
            if net.free[a] > 0 and parent[sink] == UNSEEN and net.distance[a] == net.distance[sink]:
                parent[sink] = a
                queue[tail] = sink
                tail += 1
            for x in range(net.hosted[a]):
                k = net.holders[a, x]
                if k > j and _may_give(k, a, net):
                    if parent[source] == UNSEEN and _may_swap(k, net):
                        parent[source] = a
                        net.via[source] = k
                        queue[tail] = source
                        tail += 1
                    for b in range(servers):
                        if parent[b] == UNSEEN and _may_take(k, b, net):
                            parent[b] = a
                            net.via[b] = k
                            queue[tail] = b
                            tail += 1
        elif a == source:
            if net.left[j] > 0 and _may_swap(j, net):
                return source
            for k in range(j + 1, n):
                if net.left[k] > 0 and _may_swap(k, net):
                    for b in range(servers):
                        if parent[b] == UNSEEN and _may_take(k, b, net):
                            parent[b] = a
                            net.via[b] = k
                            queue[tail] = b
                            tail += 1
        else:
            for b in range(servers):
                if (
                    parent[b] == UNSEEN
                    and net.free[b] < capacity[b]
                    and net.distance[b] == net.distance[sink]
                ):
                    parent[b] = a
                    queue[tail] = b
                    tail += 1
    return -1


@pure_kernel
def _push(j: int, i: int, end: int, capacity: Integers, net: TransportScratch) -> None:
    """Send units of row j to server i and along the path found, back from the giver ``end``."""
    servers = net.free.shape[0]
    source = servers
    sink = servers + 1
    parent = net.parent
    amount = net.left[j] if end == source else net.units[j, end]
    if net.slope[j] > 0:
        amount = 1
    node = end
    while node != i:
        a = parent[node]
        if a == sink:
            amount = min(amount, capacity[node] - net.free[node])
        elif node == sink:
            amount = min(amount, net.free[a])
        else:
            k = net.via[node]
            amount = min(amount, net.left[k] if a == source else net.units[k, a])
            if net.slope[k] > 0:
                amount = 1
        node = a
    if end == source:
        net.left[j] -= amount
    else:
        _add(j, end, -amount, net)
    _add(j, i, amount, net)
    node = end
    while node != i:
        a = parent[node]
        if a == sink:
            net.free[node] += amount
        elif node == sink:
            net.free[a] -= amount
        else:
            k = net.via[node]
            if a == source:
                net.left[k] -= amount
            else:
                _add(k, a, -amount, net)
            if node == source:
                net.left[k] += amount
            else:
                _add(k, node, amount, net)
        node = a


@pure_kernel
def break_ties(n: int, capacity: Integers, net: TransportScratch) -> None:
    """Change the optimum found by :func:`transport_into` into the lexicographically greatest one."""
    servers = net.free.shape[0]
    _set_prices(n, capacity, net)
    for j in range(n):
        if net.price[j] == FORBIDDEN:
            continue
        for i in range(servers):
            while _may_take(j, i, net):
                giver = net.left[j] > 0 and _may_swap(j, net)
                for a in range(i + 1, servers):
                    if giver:
                        break
                    giver = _may_give(j, a, net)
                if not giver:
                    break
                end = _free_path(j, i, n, capacity, net)
                if end < 0:
                    break
                _push(j, i, end, capacity, net)


@pure_kernel
def transport_into(n: int, total: int, capacity: Integers, net: TransportScratch) -> int:
    """Solve the transportation problem of the first n rows of ``net``, with no rule for ties.

    Args:
        n: rows.
        total: units in all; -1 takes units as long as they lower the cost (of equal optima the fewest).
        capacity: [M] units at most on each server, at least 0.
        net: ``supply`` [R] units at most of each row, ``base`` [R], ``linear`` [R, M] and ``slope`` [R] are
            read; no path of M + 1 arcs may cost 2^60 or more. ``units`` [R, M] is written, n rows.

    Returns:
        The number of units: less than ``total`` if no more fit.
    """
    servers = capacity.shape[0]
    for i in range(servers):
        net.free[i] = capacity[i]
        net.hosted[i] = 0
    for j in range(n):
        net.left[j] = net.supply[j]
        for i in range(servers):
            net.units[j, i] = 0
    placed = 0
    while total < 0 or placed < total:
        end = _cheapest_end(n, net)
        if end < 0 or (total < 0 and net.distance[end] >= 0):
            break
        most = total - placed if total >= 0 else FORBIDDEN
        placed += _augment(end, most, net)
    return placed
