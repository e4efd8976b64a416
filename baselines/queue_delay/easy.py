"""EASY backfilling: the head of the queue has a reservation, and later tasks may pass it but not delay it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Bytes, Floats, Integers
from schedgym.core.jit import helper, kernel, record_dtype
from schedgym.core.order import last_of
from schedgym.core.policy import Interface, register_policy
from schedgym.core.rows import copy_entries, with_columns
from schedgym.problems.queue_delay.rules import ARRIVAL, count_visible, fits

PLAN = record_dtype(
    ("clock", np.float64),  # of the last decision [s]
    ("time", np.float64),  # the head's reservation [s]
    ("server", np.int64),
    ("running", np.int64),  # tasks in Memory
    ("scan", np.int64),  # the slot to go on with in this epoch; 0: at the head
)


class Memory(NamedTuple):
    """Memory of the policy: its plan, and the running tasks in order of their ends."""

    plan: npt.NDArray[Any]  # [1] PLAN
    columns: tuple[int, ...]  # [resources]
    free: Floats  # [servers + 1, resources] scratch space; its last row: see reserve
    end: Floats  # [places] seconds
    server: Integers  # [places]
    demand: Floats  # [places, resources]


@helper
def forget_ended(memory: Memory, clock: float) -> None:
    """Remove the tasks that have ended when the clock has moved on."""
    plan = memory.plan[0]
    if clock <= plan.clock:
        return
    plan.clock = clock
    ended = 0
    while ended < plan.running and memory.end[ended] <= last_of(clock):
        ended += 1
    plan.running -= ended
    if ended > 0:
        for i in range(plan.running):
            memory.end[i] = memory.end[i + ended]
            memory.server[i] = memory.server[i + ended]
            copy_entries(memory.demand, i + ended, memory.demand, i)


@helper
def remember(memory: Memory, end: float, server: int, demand: Floats, slot: int) -> None:
    """Enter the task of a slot, which starts now, behind those that end no later."""
    plan = memory.plan[0]
    i = plan.running
    while i > 0 and memory.end[i - 1] > end:
        memory.end[i] = memory.end[i - 1]
        memory.server[i] = memory.server[i - 1]
        copy_entries(memory.demand, i - 1, memory.demand, i)
        i -= 1
    memory.end[i] = end
    memory.server[i] = server
    copy_entries(demand, slot, memory.demand, i)
    plan.running += 1


@helper
def reserve(memory: Memory, demand: Floats, remaining: Floats) -> None:
    """Plan the head: the first instant, and then the lowest server, at which it fits if nothing else starts.

    Capacity grows only where a task ends, so only the servers of the tasks that end are looked at. The last
    row of ``free`` is then what the head leaves free on its server at that instant.
    """
    plan, free = memory.plan[0], memory.free
    spare = remaining.shape[0]
    for j in range(spare):
        copy_entries(remaining, j, free, j)
    plan.time, plan.server = math.inf, -1
    last = 0
    while last < plan.running and plan.server < 0:
        first, instant = last, last_of(memory.end[last])
        while last < plan.running and memory.end[last] <= instant:
            for r in range(free.shape[1]):
                free[memory.server[last], r] += memory.demand[last, r]
            last += 1
        for i in range(first, last):
            j = memory.server[i]
            if fits(demand, 0, free, j) and (plan.server < 0 or j < plan.server):
                plan.time, plan.server = instant, j
    if plan.server >= 0:
        for r in range(free.shape[1]):
            free[spare, r] = free[plan.server, r] - demand[0, r]


@helper
def harmless_server(
    memory: Memory,
    demand: Floats,
    i: int,
    end: float,
    remaining: Floats,
) -> int:
    """Return the lowest server on which task i fits now without delaying the head, -1 if there is none."""
    plan, free, spare = memory.plan[0], memory.free, remaining.shape[0]
    for j in range(spare):
        if not fits(demand, i, remaining, j):
            continue
        if j != plan.server or end <= plan.time:
            return j
        if fits(demand, i, free, spare):
            for r in range(free.shape[1]):
                free[spare, r] -= demand[i, r]
            return j
    return -1


@helper
def next_start(
    memory: Memory,
    first: int,
    queued: int,
    execution: Floats,
    demand: Floats,
    remaining: Floats,
) -> tuple[int, int]:
    """Return the next (slot, server) of the epoch, (-1, -1) if there is none.

    Within an epoch capacity only shrinks and the reservation stays, so no task is looked at twice.

    Args:
        memory: of the policy.
        first: the slot at which the search for a task behind the head begins.
        queued: number of visible waiting tasks.
        execution: of the visible tasks [s].
        demand: of the visible tasks, [slots, resources].
        remaining: free capacity, [servers, resources].
    """
    plan = memory.plan[0]
    if plan.scan == 0:
        if queued == 0:
            return -1, -1
        for j in range(remaining.shape[0]):
            if fits(demand, 0, remaining, j):
                return 0, j
        reserve(memory, demand, remaining)
        plan.scan = first
    for i in range(plan.scan, queued):
        end = plan.clock + execution[i]
        j = harmless_server(memory, demand, i, end, remaining)
        if j >= 0:
            plan.scan = i
            return i, j
    return -1, -1


@kernel
def decide(
    memory: Memory,
    clock: float,
    epoch: int,
    arriving: int,
    task_mask: Bytes,
    execution: Floats,
    demand: Floats,
    remaining: Floats,
) -> tuple[int, int]:
    """Return the next placement (slot, server), or (-1, -1), which closes the epoch; update the memory."""
    columns = memory.columns
    demand, remaining = with_columns(demand, columns), with_columns(remaining, columns)
    memory = Memory(
        memory.plan,
        columns,
        with_columns(memory.free, columns),
        memory.end,
        memory.server,
        with_columns(memory.demand, columns),
    )
    forget_ended(memory, clock)
    queued = count_visible(task_mask)
    # at an arrival nothing has been released: the tasks that waited before still may not start
    first = max(arriving, 1) if epoch == ARRIVAL else 1
    slot, server = next_start(memory, first, queued, execution, demand, remaining)
    if slot >= 0:
        remember(memory, clock + execution[slot], server, demand, slot)
    else:
        memory.plan[0].scan = 0
    return slot, server


@register_policy(
    "queue-delay/easy-backfill",
    source="EASY backfilling: Lifka, The ANL/IBM SP scheduling system, JSSPP 1995; Mu'alem and Feitelson, "
    "IEEE TPDS 12 (6), 2001, section 2 (not in noroozoliaee2014)",
    deviations="Execution times take the place of the users' estimates. There are several servers and "
    "resources; the reservation is for the first instant at which the head fits on one of them, and for "
    "the lowest such server.",
    knows=("execution",),
    views=("placement",),
)
class EasyBackfill:
    """Serves tasks in order of submission; later tasks may start earlier if they do not delay the first one.

    EASY backfilling is what most batch schedulers of computing centres do. Use it beside fcfs, to see how
    much backfilling gains while no task waits for ever, as one may under bf-exec. It needs execution times;
    real systems use the estimates that users give with their jobs.

    At arrivals and completions alike:

    1. The task that has waited longest, the head, starts on the lowest server on which it fits; then the next
       one is tried.
    2. A head that fits nowhere gets a reservation: the first instant at which it will fit on a server if no
       other task starts, and the lowest such server.
    3. Each later task, in order of submission, starts on the lowest server on which it fits now and does not
       delay the head. On the reserved server this is so if it ends by the reserved instant, or if it fits
       beside the head after that; on all others it is always so.

    As execution times are known, a head starts exactly at the instant that was first reserved for it. The
    policy remembers when the tasks that it has started will end. Evaluations should show it the whole queue
    (``window="all"``).

    Complexity: O(R + M) for a reservation and O(Q M) for the scan at a completion, O(M) for the scan at an
    arrival; R running tasks, M servers, Q visible waiting tasks.
    """

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter in another view than placement."""
        interface.check("easy-backfill", ("placement",))
        self.window = interface.sizes["window"]
        plan = np.zeros(1, dtype=PLAN)
        plan["clock"] = -math.inf
        servers, resources = interface.sizes["servers"], len(interface.parameters["resources"])
        places = 64  # as many running tasks, to begin with
        self.memory = Memory(
            plan,
            tuple(range(resources)),
            np.zeros((servers + 1, resources)),
            np.zeros(places),
            np.zeros(places, dtype=np.int64),
            np.zeros((places, resources)),
        )

    def __call__(self, observation: dict[str, Any]) -> tuple[int, int]:
        """Return the next placement: (slot, server), or (window, 0), which closes the epoch."""
        memory = self.memory
        if memory.plan["running"][0] == len(memory.end):
            longer = (np.concatenate([array, np.zeros_like(array)]) for array in memory[3:])
            memory = self.memory = Memory(memory.plan, memory.columns, memory.free, *longer)
        slot, server = decide(
            memory,
            observation["clock"][0],
            observation["epoch"],
            observation["arriving"],
            observation["task_mask"],
            observation["execution"],
            observation["demand"],
            observation["remaining"],
        )
        return (slot, server) if slot >= 0 else (self.window, 0)
