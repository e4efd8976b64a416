"""One machine that serves terms preemptively: the relaxation behind several lower bounds.

All servers (or a set of sites) are pooled into one machine. Served by shortest remaining work it has
completed the most jobs at any time (Schrage 1968); served by largest weight per work it has the least
weighted sum of the mean times at which the terms are served (Goemans 1996). A job completes later than its
mean time of service, by at least the time that :func:`tail_times` computes.
"""

from __future__ import annotations

import heapq

import numpy as np

from schedgym.core.arrays import Floats, Integers
from schedgym.core.jit import kernel


@kernel
def serve_by_key(
    release: Floats,
    work: Floats,
    key: Floats,
    rate: float,
    until: float,
    completion: Floats,
    busy: Floats,
    left: Floats,
) -> None:
    """Serve the terms on one machine preemptively, the least key first, ties in the order of the terms.

    Args:
        release: ascending [X].
        work: > 0 [X]; with given keys a term may have none, and has then no mean time.
        key: [X]; an array without elements: the work left is the key.
        rate: work done per second.
        until: time at which all work left is done at once [s]; inf: never.
        completion: written: time at which a term is completed [s]; [X].
        busy: written: mean time at which a term is served [s]; [X].
        left: work space [X].
    """
    count = release.shape[0]
    shortest = key.shape[0] == 0
    waiting = [(0.0, 0)]  # numba reads the types off it
    waiting.pop()
    clock = 0.0
    upcoming = 0
    while upcoming < count or len(waiting) > 0:
        if len(waiting) == 0:
            clock = max(clock, release[upcoming])
        while upcoming < count and release[upcoming] <= clock:
            left[upcoming] = work[upcoming]
            busy[upcoming] = 0.0
            heapq.heappush(waiting, (work[upcoming] if shortest else key[upcoming], upcoming))
            upcoming += 1
        if clock >= until:
            break
        x = waiting[0][1]
        horizon = min(release[upcoming], until) if upcoming < count else until
        end = clock + left[x] / rate
        done = left[x]
        if end <= horizon:
            heapq.heappop(waiting)
            completion[x] = end
        else:
            end = horizon
            done = min((end - clock) * rate, done)
            left[x] -= done
            if shortest:
                heapq.heapreplace(waiting, (left[x], x))
        busy[x] += done * (clock + end) / 2.0
        clock = end
    while len(waiting) > 0:
        _, x = heapq.heappop(waiting)
        completion[x] = until
        busy[x] += left[x] * until
    for x in range(count):
        busy[x] /= work[x]


@kernel
def tail_times(
    work: Floats, longest: Floats, first: Integers, total: Floats, rate: Floats, tail: Floats
) -> None:
    """Compute how much later than its mean time of service each job completes at least, in any schedule [s].

    Within the last s seconds before it completes, a task of work e and least time d is served for at most
    e min(1, s / d), and all tasks of the job for at most R s. So the work already done s seconds before is at
    least V - min(sum of e min(1, s / d), R s); this, integrated over s >= 0 and divided by V, is the tail.

    Args:
        work: e of each task, job by job [Q].
        longest: d of each task [Q].
        first: first task of each job [J + 1].
        total: V of each job [J].
        rate: R of each job [J].
        tail: written [J].
    """
    for i in range(total.shape[0]):
        order = np.argsort(longest[first[i] : first[i + 1]])[::-1] + first[i]
        # until s = turn the job is limited as a whole, then each of its longer tasks by itself
        rest = total[i]
        free = rate[i]
        turn = max(rest / free, 0.0)
        count = 0
        while count < order.shape[0] and longest[order[count]] > turn:
            x = order[count]
            rest -= work[x]
            free -= work[x] / longest[x]
            count += 1
            turn = max(rest, 0.0) / free if free > 0.0 and count < order.shape[0] else 0.0
        whole = total[i] * turn - rate[i] * turn * turn / 2.0
        for y in range(count):
            x = order[y]
            whole += work[x] * (longest[x] - turn) ** 2 / (2.0 * longest[x])
        tail[i] = whole / total[i]
