"""The paper's schemes as data, and the two choices that each consists of: a task and a server.

A scheme is a row of four codes: which tasks an arrival may start, the rule that gives a task its server,
which tasks a completion may start, and the order of the queue. The baseline policies (on an observation) and
the ``rule`` view (on the whole queue) use the same compiled ``choose``.

Source: noroozoliaee2014, sections III-A and IV. Fitting is up to ``TOLERANCE``. L2 norms are compared
without square roots (the order is the same). A product leaves out the resources that a server has none of:
it would be 0 for all tasks on that server. Ties go to the lowest server index and the earliest submission;
sizes whose difference may be rounding are tied (:func:`~schedgym.core.order.differ`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from schedgym.core.arrays import Bytes, Floats, Integers
from schedgym.core.jit import helper
from schedgym.core.order import differ
from schedgym.core.workload import CAPACITY_TOLERANCE
from schedgym.errors import InvalidParameter
from schedgym.problems.queue_delay.problem import ORDERS, SERVER_RULES

TOLERANCE = CAPACITY_TOLERANCE  # of the capacity test

ARRIVAL, COMPLETION, FINISHED = 0, 1, 2  # epochs

FIRST, BEST, WORST, DOT, BEST_PRODUCT, BEST_SUM, BEST_AVGSUM = range(len(SERVER_RULES))
RANDOM = len(SERVER_RULES)  # only for policies: it needs a random number per choice

BY_SUBMISSION, BY_EXECUTION, BY_NORM, BY_PRODUCT, BY_SUM, BY_AVGSUM, BY_DOT = range(len(ORDERS))
BY_LARGEST_DOT = len(
    ORDERS
)  # only for policies: a head has no server yet, and its size is the largest of all

ARRIVING_ONLY, HEADS = 0, 1  # at an arrival: the arriving task bypasses the queue, or heads go first
SCAN_RELEASED, HEADS_RELEASED, HEADS_ALL = 0, 1, 2  # at a completion

#: name -> (arrival mode, server rule, completion mode, order of the queue)
SCHEMES: dict[str, tuple[int, int, int, int]] = {
    "bf-exec": (ARRIVING_ONLY, BEST, SCAN_RELEASED, BY_EXECUTION),
    "dot-exec": (ARRIVING_ONLY, DOT, SCAN_RELEASED, BY_EXECUTION),
    "ffd-nb": (ARRIVING_ONLY, FIRST, SCAN_RELEASED, BY_NORM),
    "ffd-dp": (ARRIVING_ONLY, DOT, SCAN_RELEASED, BY_DOT),
    "ffd-product": (ARRIVING_ONLY, FIRST, SCAN_RELEASED, BY_PRODUCT),
    "ffd-sum": (ARRIVING_ONLY, FIRST, SCAN_RELEASED, BY_SUM),
    "ffd-avgsum": (ARRIVING_ONLY, FIRST, SCAN_RELEASED, BY_AVGSUM),
    "bfd-nb": (ARRIVING_ONLY, BEST, SCAN_RELEASED, BY_NORM),
    "bfd-dp": (ARRIVING_ONLY, BEST, SCAN_RELEASED, BY_DOT),
    "bfd-product": (ARRIVING_ONLY, BEST_PRODUCT, SCAN_RELEASED, BY_PRODUCT),
    "bfd-sum": (ARRIVING_ONLY, BEST_SUM, SCAN_RELEASED, BY_SUM),
    "bfd-avgsum": (ARRIVING_ONLY, BEST_AVGSUM, SCAN_RELEASED, BY_AVGSUM),
    "fcfs": (HEADS, FIRST, HEADS_ALL, BY_SUBMISSION),
    "ff": (ARRIVING_ONLY, FIRST, HEADS_RELEASED, BY_SUBMISSION),
    "bf": (ARRIVING_ONLY, BEST, HEADS_RELEASED, BY_SUBMISSION),
    "wf": (ARRIVING_ONLY, WORST, HEADS_RELEASED, BY_SUBMISSION),
    "rf": (ARRIVING_ONLY, RANDOM, HEADS_RELEASED, BY_SUBMISSION),
    "ff-all": (ARRIVING_ONLY, FIRST, HEADS_ALL, BY_SUBMISSION),
    "bf-all": (ARRIVING_ONLY, BEST, HEADS_ALL, BY_SUBMISSION),
    "wf-all": (ARRIVING_ONLY, WORST, HEADS_ALL, BY_SUBMISSION),
    "rf-all": (ARRIVING_ONLY, RANDOM, HEADS_ALL, BY_SUBMISSION),
}
#: the schemes that an action of the ``rule`` view names, in the order of its codes
RULE_SCHEMES: tuple[str, ...] = tuple(n for n, row in SCHEMES.items() if row[1] != RANDOM)
RULE_TABLE = np.array([SCHEMES[name] for name in RULE_SCHEMES], dtype=np.int64)


def scheme_row(name: str, blocking: bool = False, bypass: bool = False) -> Integers:
    """Return the codes of a scheme; int64 [4].

    Args:
        name: a key of ``SCHEMES``.
        blocking: an arrival joins the queue, and heads in the scheme's order go to any server until one
            fits nowhere, also at completions (the ffd schemes only). By dot products, the head is the task of
            the largest dot product with what is free on any server, whether it fits there or not.
        bypass: with ``blocking``: an arriving task starts where it fits, past the queue; only completions
            try heads.

    Raises:
        InvalidParameter: a scheme without a blocking variant, or a bypass of a queue that does not block.
    """
    row = np.array(SCHEMES[name], dtype=np.int64)
    if bypass and not blocking:
        raise InvalidParameter(f"bypass: arriving tasks pass the queue of {name} anyway unless it blocks")
    if blocking:
        if not name.startswith("ffd-"):
            raise InvalidParameter(f"blocking: {name} has no blocking variant")
        row[0], row[2] = ARRIVING_ONLY if bypass else HEADS, HEADS_ALL
        if row[3] == BY_DOT:
            row[3] = BY_LARGEST_DOT
    return row


@helper
def count_visible(task_mask: Bytes) -> int:
    """Return the number of visible waiting tasks, which stand first in the window."""
    low, high = 0, task_mask.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if task_mask[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def fits(demand: Any, i: int, free: Any, j: int) -> Any:
    """Return True if demand i fits the free capacity j in all resources, which are the columns of both."""
    fitting = True
    for r in range(free.shape[1]):  # all of them: without branches a test is faster
        fitting &= demand[i, r] <= free[j, r] + TOLERANCE
    return fitting


@helper
def mark_fitting(demand: Any, count: int, free: Any, j: int, mask: Any, first: int, step: int) -> None:
    """Write for each of the first ``count`` demands if it fits free capacity j, ``step`` elements apart."""
    for r in range(free.shape[1]):  # resource by resource: what is free stays in a register
        most = free[j, r] + TOLERANCE
        for i in range(count):
            fitting = demand[i, r] <= most
            mask[first + i * step] = fitting if r == 0 else mask[first + i * step] & fitting


class Situation(NamedTuple):
    """The input of a scheme: an epoch, the waiting tasks, and the free capacity."""

    epoch: int  # ARRIVAL or COMPLETION
    arriving: int  # index of the arriving task among the waiting ones; out of range once it runs
    released: int  # the server that a completion released
    queued: int  # number of waiting tasks; they are first in the next two arrays
    execution: Floats  # [>= queued] seconds
    demand: Floats  # [>= queued, resources]
    capacity: Floats  # [servers, resources]
    remaining: Floats  # [servers, resources] free capacity
    weights: Any  # [resources] in the size "sum"; of a policy a tuple
    p: float  # of the norm of best and worst fit, and of the order by norm
    mean_demand: Floats  # [resources] of the tasks submitted so far
    draw: float  # in [0, 1), for the random rule


# Sizes: of the demand of task i, or with ``left`` of what server j has left once the task is placed there


@helper
def amount(at: Situation, i: int, j: int, r: int, left: bool) -> float:
    """Return the amount of resource r."""
    return at.remaining[j, r] - at.demand[i, r] if left else at.demand[i, r]


@helper
def norm_key(at: Situation, i: int, j: int, left: bool) -> float:
    """Return a number that grows with the L_p norm of the amounts, p > 1 or infinite; for p = 2 its square.

    The largest number is factored out, so that powers neither overflow nor vanish.
    """
    total = 0.0
    if at.p == 2.0:
        for r in range(at.remaining.shape[1]):
            x = amount(at, i, j, r, left)
            total += x * x
        return total
    large = 0.0
    for r in range(at.remaining.shape[1]):
        large = max(large, abs(amount(at, i, j, r, left)))
    if large == 0.0:
        return 0.0
    for r in range(at.remaining.shape[1]):
        total += (abs(amount(at, i, j, r, left)) / large) ** at.p
    return large * total ** (1.0 / at.p)


@helper
def product(at: Situation, i: int, j: int, left: bool) -> float:
    """Return the product of the amounts, but of the resources that server j, unless it is -1, has none of."""
    value = 1.0
    for r in range(at.remaining.shape[1]):
        if j < 0 or at.capacity[j, r] > 0.0:
            value *= amount(at, i, j, r, left)
    return value


@helper
def weighted(weights: Any, at: Situation, i: int, j: int, left: bool) -> float:
    """Return the weighted sum of the amounts."""
    value = 0.0
    for r in range(at.remaining.shape[1]):
        value += weights[r] * amount(at, i, j, r, left)
    return value


@helper
def size_of(order: int, at: Situation, i: int, j: int, left: bool) -> float:
    """Return the size by which an order compares tasks; by dot product it is that with what is free on j."""
    if order == BY_NORM:
        return norm_key(at, i, j, left)
    if order == BY_PRODUCT:
        return product(at, i, j, left)
    if order == BY_DOT:
        return weighted(at.remaining[j], at, i, j, left)
    if order == BY_SUM:
        return weighted(at.weights, at, i, j, left)
    return weighted(at.mean_demand, at, i, j, left)


@helper
def server_key(rule: int, at: Situation, i: int, j: int) -> float:
    """Return the number by which a rule compares servers for task i; the least is the best."""
    if rule == DOT:
        return -size_of(BY_DOT, at, i, j, False)
    if rule == BEST or rule == WORST:
        norm = norm_key(at, i, j, True)
        return norm if rule == BEST else -norm
    return size_of(BY_PRODUCT + rule - BEST_PRODUCT, at, i, j, True)  # the sizes follow in the same order


@helper
def select_server(rule: int, at: Situation, i: int) -> int:
    """Return the server that ``rule`` gives to task i, -1 if it fits nowhere.

    Best and worst refer to the L_p norm of the capacity left after the placement (noroozoliaee2014, section
    III-A1); dot is the largest inner product of the demand with the capacity free before it.
    """
    servers = at.remaining.shape[0]
    chosen = -1
    least = math.inf
    if rule == RANDOM:
        fitting = 0
        for j in range(servers):
            fitting += fits(at.demand, i, at.remaining, j)
        skip = int(at.draw * fitting)
        for j in range(servers):
            if fits(at.demand, i, at.remaining, j):
                if skip == 0:
                    return j
                skip -= 1
        return -1
    for j in range(servers):
        if not fits(at.demand, i, at.remaining, j):
            continue
        if rule == FIRST:
            return j
        value = server_key(rule, at, i, j)
        if chosen < 0 or (value < least and differ(value, least)):
            least = value
            chosen = j
    return chosen


@helper
def queue_key(order: int, at: Situation, i: int, j: int) -> float:
    """Return the sorting key of waiting task i for server j, -1: for none; a queue goes by ascending keys."""
    if order == BY_EXECUTION:
        return at.execution[i]
    if order == BY_LARGEST_DOT:
        largest = -math.inf
        for k in range(at.remaining.shape[0]):
            largest = max(largest, size_of(BY_DOT, at, i, k, False))
        return -largest
    return -size_of(order, at, i, j, False)


@helper
def select_task(order: int, at: Situation, j: int) -> int:
    """Return the first waiting task in ``order`` that fits server j (-1: the first of all), -1 if none."""
    chosen = -1
    least = math.inf
    for i in range(at.queued):
        if j >= 0 and not fits(at.demand, i, at.remaining, j):
            continue
        if order == BY_SUBMISSION:
            return i
        key = queue_key(order, at, i, j)
        if chosen < 0 or (key < least and differ(key, least)):
            least = key
            chosen = i
    return chosen


@helper
def choose(scheme: Integers, at: Situation) -> tuple[int, int]:
    """Return the next placement of a scheme (codes [4] as in :data:`SCHEMES`); (-1, -1) closes the epoch.

    Scanning the queue and starting each task that fits is the same as placing, one by one, the task of least
    key that fits: free capacity only decreases within an epoch, so a task once passed over never fits later.
    """
    if at.queued == 0 or at.epoch == FINISHED:
        return -1, -1
    if at.epoch == ARRIVAL and scheme[0] == ARRIVING_ONLY:
        if at.arriving < 0 or at.arriving >= at.queued:
            return -1, -1
        task = at.arriving
    elif at.epoch == COMPLETION and scheme[2] == SCAN_RELEASED:
        task = select_task(scheme[3], at, at.released)
        if task < 0:
            return -1, -1
        return task, at.released
    else:
        task = select_task(scheme[3], at, -1)
        if at.epoch == COMPLETION and scheme[2] == HEADS_RELEASED:
            if fits(at.demand, task, at.remaining, at.released):
                return task, at.released
            return -1, -1
    server = select_server(scheme[1], at, task)
    if server < 0:
        return -1, -1
    return task, server
