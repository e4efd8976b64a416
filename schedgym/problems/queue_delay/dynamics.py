"""State and compiled dynamics of QueueDelay, batch-first: axis 0 of every array is the environment.

Time moves from epoch to epoch. At one instant all completions are released first; then each server that
released something has a completion epoch, by ascending index; then each arriving task has an arrival
epoch, in submission order. A step places one task or closes the epoch (NoroozOliaee et al., section IV).

What is free on a server is its capacity minus the demands of its running tasks summed in order of start,
so that no rounding drift accumulates.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core import heap
from schedgym.core.jit import (
    B1_1,
    B1_2,
    F4_2,
    F4_3,
    F8_1,
    F8_2,
    F8_3,
    I1_2,
    I4_2,
    I8_1,
    I8_2,
    helper,
    pure_kernel,
    record_dtype,
    unpacker,
)
from schedgym.core.simulator import BEGIN, CHECK, SKIP, names_action
from schedgym.problems.queue_delay.rules import (
    ARRIVAL,
    COMPLETION,
    FINISHED,
    RULE_TABLE,
    choose,
    fits,
    select_server,
)

__all__ = [
    "CONFIG",
    "GLOBAL_FEATURES",
    "SCALARS",
    "SERVER_FEATURES",
    "TASK_FEATURES",
    "Constants",
    "Exchange",
    "Jobs",
    "Observation",
    "State",
    "step",
]

F8 = npt.NDArray[np.float64]
F4 = npt.NDArray[np.float32]
I8 = npt.NDArray[np.int64]
I1 = npt.NDArray[np.int8]

PLACEMENT, PICK, ROUTE, RULE = 0, 1, 2, 3  # views, in the order of the descriptor
TASK_ARRIVAL, TASK_EXECUTION, TASK_CPU, TASK_MEMORY = 0, 1, 2, 3  # columns of Jobs.tasks

#: features of a task token: cpu, memory, log execution, waiting, whether it is arriving
TASK_FEATURES = 5
#: features of a server token: capacity cpu, memory; free cpu, memory; whether it was released
SERVER_FEATURES = 5
#: global features: arrival epoch, completion epoch, waiting, beyond the window, mean cpu, mean memory, clock
GLOBAL_FEATURES = 7
DAY = 86400.0  # [s] log1p(execution) / log1p(DAY) scales execution times, t / (t + DAY) the clock
LOG_DAY = math.log1p(DAY)
WAITING_SCALE = 3600.0  # w / (w + 1 h) scales waiting times
COUNT_SCALE = 32.0  # n / (n + 32) scales counts

#: per-environment scalars
SCALARS = record_dtype(
    ("clock", np.float64),
    ("demand_cpu", np.float64),  # sums over the tasks submitted so far
    ("demand_memory", np.float64),
    ("reward_scale", np.float64),
    ("tasks", np.int64),
    ("submitted", np.int64),  # tasks that have arrived; also the index of the next to arrive
    ("queued", np.int64),
    ("running", np.int64),  # also the size of the heap of completions
    ("completed", np.int64),
    ("epoch", np.int64),
    ("arriving", np.int64),  # the arriving task while it waits, else -1; always last in the queue
    ("released", np.int64),  # the server of a completion epoch, else the number of servers
    ("cursor", np.int64),  # servers below it have had their completion epoch at this instant
    ("shown", np.int64),  # window slots that the last observation filled
    ("fresh", np.int64),  # leading slots of which only the waiting time can have changed since
    ("marked", np.int64),  # the server token that carries the mark of the released server, or -1
    ("opened", np.int64),  # leading positions of the queue whose ``queue_open`` is kept up to date
    ("observed", np.float64),  # the clock of the last observation
    ("repaired", np.int64),
    ("truncated", np.int64),
)

#: constants of a simulator
CONFIG = record_dtype(
    ("action_view", np.int64),
    ("window", np.int64),
    ("rule", np.int64),
    ("order", np.int64),
    ("all_servers", np.int64),  # scope="all"
    ("features", np.int64),
    ("mask", np.int64),
    ("lent", np.int64),  # the observation's task arrays are the queue itself
    ("strict", np.int64),
)


class Constants(NamedTuple):
    """What stays the same for the life of a simulator."""

    config: Annotated[npt.NDArray[Any], CONFIG, 1]  # [1]
    weights: F8_1  # [2] of cpu and memory in the size "sum"
    route: I8_1  # [4] the scheme that serves completions in view route
    choices: I8_1  # [components of an action] how many choices each has


class Jobs(NamedTuple):
    """The workload."""

    tasks: F8_3  # [B, K, 4] arrival, execution [s], cpu, memory
    capacity: F8_3  # [B, M, 2] cpu, memory


class State(NamedTuple):
    """Everything that changes in an episode (K tasks, M servers, D leading positions of the queue).

    The queue is the list ``queue_task`` in order of submission. Of its first D tasks (all, where a view or
    an observation needs the whole queue) the quantities stand side by side, zeros behind them: moving up a
    hundred tasks at each start would cost more than the rest of a step. Running tasks form a doubly linked
    list per server, in order of start, and a heap by completion.
    """

    scalars: Annotated[npt.NDArray[Any], SCALARS, 1]  # [B]
    remaining: F8_3  # [B, M, 2]
    used: F8_3  # [B, M, 2]
    released: B1_2  # [B, M] servers that released something at this instant
    queue_task: I4_2  # [B, K]
    queue_arrival: F8_2  # [B, D]
    queue_execution: F8_2  # [B, D]
    queue_demand: F8_3  # [B, D, 2]
    queue_open: I1_2  # [B, D] whether the task fits some server now, for the first ``opened`` positions
    log_execution: F4_2  # [B, K] the execution feature of the tasks submitted so far
    start: F8_2  # [B, K] NaN before the start
    server: I8_2  # [B, K] -1 before the start
    heap_time: F8_2  # [B, K]
    heap_task: I4_2  # [B, K]
    next_running: I4_2  # [B, K]
    previous_running: I4_2  # [B, K]
    first_running: I4_2  # [B, M]
    last_running: I4_2  # [B, M]


class Observation(NamedTuple):
    """Buffers that the kernel writes (W window slots); those of the other kind have length 0."""

    arrival: F8_2  # [B, W]
    execution: F8_2  # [B, W]
    demand: F8_3  # [B, W, 2]
    waiting: F8_2  # [B, W]
    task_mask: I1_2  # [B, W]
    action_mask: I1_2  # [B, actions] (placement: [B, W * M])
    clock: F8_2  # [B, 1]
    mean_demand: F8_2  # [B, 2]
    backlog: I8_2  # [B, 1]
    epoch: I8_1  # [B]
    arriving: I8_1  # [B]
    released: I8_1  # [B]
    task_tokens: F4_3  # [B, W, TASK_FEATURES]
    server_tokens: F4_3  # [B, M, SERVER_FEATURES]
    global_tokens: F4_2  # [B, GLOBAL_FEATURES]


class Exchange(NamedTuple):
    """What goes into a step and what it did."""

    actions: I8_2  # [B, 2]
    decisions: I8_2  # [B, 2] scratch: position in the queue and server, -1 when nothing is placed
    reward: F8_1  # [B]
    terminated: B1_1  # [B]
    truncated: B1_1  # [B]
    repaired: B1_1  # [B] whether this step's action was infeasible


unpack = unpacker(Constants, Jobs, State, Observation, Exchange)


@helper
def set_used(
    jobs: Jobs, state: State, observation: Observation, b: int, j: int, cpu: float, memory: float
) -> None:
    """Record what server j uses, and with it what is free, also in its token."""
    state.used[b, j, 0] = cpu
    state.used[b, j, 1] = memory
    free_cpu = jobs.capacity[b, j, 0] - cpu
    free_memory = jobs.capacity[b, j, 1] - memory
    state.remaining[b, j, 0] = free_cpu
    state.remaining[b, j, 1] = free_memory
    if observation.server_tokens.shape[1] > 0:
        observation.server_tokens[b, j, 2] = max(free_cpu, 0.0)
        observation.server_tokens[b, j, 3] = max(free_memory, 0.0)


@helper
def fits_somewhere(state: State, b: int, cpu: float, memory: float) -> Any:
    """Whether a demand fits any server now."""
    for j in range(state.remaining.shape[1]):
        if fits(cpu, memory, state.remaining[b, j, 0], state.remaining[b, j, 1]):
            return True
    return False


@helper
def place(jobs: Jobs, state: State, observation: Observation, b: int, position: int, j: int) -> None:
    """Start the waiting task at ``position`` of the queue on server j, now."""
    s = state.scalars[b]
    task = state.queue_task[b, position]
    state.start[b, task] = s.clock
    state.server[b, task] = j
    cpu = state.used[b, j, 0] + jobs.tasks[b, task, TASK_CPU]
    memory = state.used[b, j, 1] + jobs.tasks[b, task, TASK_MEMORY]
    set_used(jobs, state, observation, b, j, cpu, memory)
    tail = state.last_running[b, j]
    state.previous_running[b, task] = tail
    state.next_running[b, task] = -1
    if tail >= 0:
        state.next_running[b, tail] = task
    else:
        state.first_running[b, j] = task
    state.last_running[b, j] = task
    heap.push(
        state.heap_time, state.heap_task, b, s.running, s.clock + jobs.tasks[b, task, TASK_EXECUTION], task
    )
    s.running += 1
    if task == s.arriving:
        s.arriving = -1
    remove(jobs, state, b, position)
    if position < s.opened:
        s.opened -= 1
        for i in range(position, s.opened):
            state.queue_open[b, i] = state.queue_open[b, i + 1]
    for i in range(s.opened):
        if state.queue_open[b, i]:
            state.queue_open[b, i] = fits_somewhere(
                state, b, state.queue_demand[b, i, 0], state.queue_demand[b, i, 1]
            )


@helper
def show(jobs: Jobs, state: State, b: int, position: int, task: int) -> None:
    """Set a task's quantities at one of the first D positions."""
    state.queue_arrival[b, position] = jobs.tasks[b, task, TASK_ARRIVAL]
    state.queue_execution[b, position] = jobs.tasks[b, task, TASK_EXECUTION]
    state.queue_demand[b, position, 0] = jobs.tasks[b, task, TASK_CPU]
    state.queue_demand[b, position, 1] = jobs.tasks[b, task, TASK_MEMORY]


@helper
def blank(state: State, b: int, position: int) -> None:
    """Clear one of the first D positions."""
    state.queue_arrival[b, position] = 0.0
    state.queue_execution[b, position] = 0.0
    state.queue_demand[b, position, 0] = 0.0
    state.queue_demand[b, position, 1] = 0.0


@helper
def remove(jobs: Jobs, state: State, b: int, position: int) -> None:
    """Take the task at ``position`` out of the queue; those behind it move up."""
    s = state.scalars[b]
    left = s.queued - 1
    for i in range(position, left):
        state.queue_task[b, i] = state.queue_task[b, i + 1]
    depth = state.queue_arrival.shape[1]
    last = min(left, depth - 1)
    for i in range(position, last):
        state.queue_arrival[b, i] = state.queue_arrival[b, i + 1]
    for i in range(position, last):
        state.queue_execution[b, i] = state.queue_execution[b, i + 1]
    for i in range(position, last):
        state.queue_demand[b, i, 0] = state.queue_demand[b, i + 1, 0]
        state.queue_demand[b, i, 1] = state.queue_demand[b, i + 1, 1]
    if left < depth:
        blank(state, b, left)
    elif position < depth:
        show(jobs, state, b, last, state.queue_task[b, last])
    s.queued = left
    s.fresh = min(s.fresh, position)


@helper
def release(state: State, b: int, task: int) -> None:
    """Take a completed task off its server's list and mark the server."""
    j = state.server[b, task]
    before = state.previous_running[b, task]
    after = state.next_running[b, task]
    if before >= 0:
        state.next_running[b, before] = after
    else:
        state.first_running[b, j] = after
    if after >= 0:
        state.previous_running[b, after] = before
    else:
        state.last_running[b, j] = before
    state.released[b, j] = True


@helper
def recompute_used(jobs: Jobs, state: State, observation: Observation, b: int, j: int) -> None:
    """Sum the demands of server j's running tasks in order of start."""
    cpu = 0.0
    memory = 0.0
    task = state.first_running[b, j]
    while task >= 0:
        cpu += jobs.tasks[b, task, TASK_CPU]
        memory += jobs.tasks[b, task, TASK_MEMORY]
        task = state.next_running[b, task]
    set_used(jobs, state, observation, b, j, cpu, memory)
    free_cpu = state.remaining[b, j, 0]
    free_memory = state.remaining[b, j, 1]
    for i in range(state.scalars[b].opened):
        state.queue_open[b, i] |= fits(
            state.queue_demand[b, i, 0], state.queue_demand[b, i, 1], free_cpu, free_memory
        )


@helper
def submit(jobs: Jobs, state: State, b: int) -> None:
    """Open the arrival epoch of the next task, which joins the end of the queue."""
    s = state.scalars[b]
    task = s.submitted
    cpu = jobs.tasks[b, task, TASK_CPU]
    memory = jobs.tasks[b, task, TASK_MEMORY]
    end = s.queued
    state.queue_task[b, end] = task
    if end < state.queue_arrival.shape[1]:
        show(jobs, state, b, end, task)
    state.log_execution[b, task] = math.log1p(jobs.tasks[b, task, TASK_EXECUTION]) / LOG_DAY
    s.queued = end + 1
    s.submitted = task + 1
    s.demand_cpu += cpu
    s.demand_memory += memory
    s.epoch = ARRIVAL
    s.arriving = task
    s.released = state.remaining.shape[1]


@helper
def finish(s: Any, truncated: int, servers: int) -> None:
    """End the episode."""
    s.epoch = FINISHED
    s.arriving = -1
    s.released = servers
    s.truncated = truncated


@helper
def strand(jobs: Jobs, state: State, b: int) -> float:
    """The delay that the waiting tasks still have to pay: run one after another, from now."""
    begin = 0.0
    total = 0.0
    for i in range(state.scalars[b].queued):
        total += begin
        begin += jobs.tasks[b, state.queue_task[b, i], TASK_EXECUTION]
    return total


@helper
def close_epoch(jobs: Jobs, state: State, observation: Observation, b: int) -> float:
    """Move to the next epoch of this instant, else to the next event; return the delay that passed."""
    s = state.scalars[b]
    servers = state.remaining.shape[1]
    delay = 0.0
    while True:
        for j in range(s.cursor, servers):
            if state.released[b, j]:
                state.released[b, j] = False
                s.cursor = j + 1
                s.epoch = COMPLETION
                s.arriving = -1
                s.released = j
                return delay
        s.cursor = servers
        more = s.submitted < s.tasks
        if more and jobs.tasks[b, s.submitted, TASK_ARRIVAL] == s.clock:
            submit(jobs, state, b)
            return delay
        instant = math.inf
        if s.running > 0:
            instant = state.heap_time[b, 0]
        if more:
            instant = min(instant, jobs.tasks[b, s.submitted, TASK_ARRIVAL])
        if not instant < math.inf:  # nothing can happen any more, and tasks wait
            delay += strand(jobs, state, b)
            finish(s, 1, servers)
            return delay
        delay += s.queued * (instant - s.clock)
        s.clock = instant
        if not (s.running > 0 and state.heap_time[b, 0] == instant):
            continue  # an arrival alone
        while s.running > 0 and state.heap_time[b, 0] == instant:
            task = heap.pop(state.heap_time, state.heap_task, b, s.running)
            s.running -= 1
            s.completed += 1
            release(state, b, task)
        for j in range(servers):
            if state.released[b, j]:
                recompute_used(jobs, state, observation, b, j)
        s.cursor = 0
        if s.completed == s.tasks:
            finish(s, 0, servers)
            return delay


@helper
def queue_position(s: Any, window: int, slot: int) -> int:
    """Position in the queue of a window slot, -1 if the slot is empty."""
    shown = min(s.queued, window)
    if slot < 0 or slot >= shown:
        return -1
    if slot == window - 1 and s.arriving >= 0:
        return s.queued - 1  # the arriving task is always visible
    return slot


@helper
def server_for(config: Any, weights: F8, state: State, b: int, cpu: float, memory: float) -> int:
    """View pick: the server that the rule gives to a demand among those in scope, -1 if none."""
    s = state.scalars[b]
    if s.epoch == COMPLETION and not config.all_servers:
        j = s.released
        if fits(cpu, memory, state.remaining[b, j, 0], state.remaining[b, j, 1]):
            return j
        return -1
    mean = (s.demand_cpu / s.submitted, s.demand_memory / s.submitted)
    return select_server(config.rule, weights, cpu, memory, state.remaining[b], mean, 0.0)


@helper
def decode(config: Any, weights: F8, jobs: Jobs, state: State, b: int, actions: I8, decisions: I8) -> Any:
    """Turn an action into (position in the queue, server) in ``decisions`` [B, 2]; (-1, -1) places nothing.

    Returns whether the action is feasible; an infeasible placement becomes (-1, -1): it closes the epoch
    (view route: it queues the task).
    """
    s = state.scalars[b]
    view = config.action_view
    position = -1
    j = -1
    wanted = False
    if view == ROUTE:
        wanted = actions[b, 0] < state.remaining.shape[1]
        position = s.queued - 1
        j = actions[b, 0]
    elif view != RULE and actions[b, 0] < config.window:
        wanted = True
        position = queue_position(s, config.window, actions[b, 0])
        j = actions[b, 1]
    possible = wanted and position >= 0
    if possible:
        task = state.queue_task[b, position]
        cpu = jobs.tasks[b, task, TASK_CPU]
        memory = jobs.tasks[b, task, TASK_MEMORY]
        if view == PICK:
            j = server_for(config, weights, state, b, cpu, memory)
            possible = j >= 0
        else:
            possible = fits(cpu, memory, state.remaining[b, j, 0], state.remaining[b, j, 1])
    decisions[b, 0] = position if possible else -1
    decisions[b, 1] = j if possible else -1
    return possible or not wanted


@helper
def run_scheme(
    weights: F8,
    jobs: Jobs,
    state: State,
    observation: Observation,
    b: int,
    scheme: I8,
) -> None:
    """Carry out a whole epoch by a scheme, on the whole queue."""
    s = state.scalars[b]
    mean = (s.demand_cpu / s.submitted, s.demand_memory / s.submitted)
    while True:
        arriving = s.queued - 1 if s.arriving >= 0 else -1
        position, j = choose(
            scheme,
            weights,
            s.epoch,
            arriving,
            s.released,
            s.queued,
            state.queue_execution[b],
            state.queue_demand[b],
            state.remaining[b],
            mean,
            0.0,
        )
        if position < 0:
            return
        place(jobs, state, observation, b, position, j)


@helper
def act(
    config: Any,
    weights: F8,
    route: I8,
    jobs: Jobs,
    state: State,
    observation: Observation,
    b: int,
    actions: I8,
    decisions: I8,
) -> float:
    """Carry out a decoded action; return the delay that passed."""
    s = state.scalars[b]
    view = config.action_view
    position = decisions[b, 0]
    if position >= 0:
        place(jobs, state, observation, b, position, decisions[b, 1])
        if view != ROUTE:
            return 0.0
    scheme = RULE_TABLE[actions[b, 0]] if view == RULE else route
    by_scheme = view == RULE
    delay = 0.0
    while True:
        if by_scheme:
            run_scheme(weights, jobs, state, observation, b, scheme)
        delay += close_epoch(jobs, state, observation, b)
        if view != ROUTE or s.epoch != COMPLETION:
            return delay
        by_scheme = True


@helper
def observe_mask(config: Any, jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """Write the mask of feasible actions."""
    s = state.scalars[b]
    servers = state.remaining.shape[1]
    window = config.window
    mask = observation.action_mask
    view = config.action_view
    if view == RULE:
        return  # every scheme may always be named
    if view == ROUTE:
        i = s.queued - 1
        for j in range(servers):
            mask[b, j] = s.arriving >= 0 and fits(
                state.queue_demand[b, i, 0],
                state.queue_demand[b, i, 1],
                state.remaining[b, j, 0],
                state.remaining[b, j, 1],
            )
        return
    shown = min(s.queued, window)
    if s.epoch == FINISHED:
        shown = 0
    same = shown
    arriving_cpu = 0.0
    arriving_memory = 0.0
    if s.arriving >= 0:  # it is in the last slot shown, wherever it stands in the queue
        same = shown - 1
        arriving_cpu = jobs.tasks[b, s.arriving, TASK_CPU]
        arriving_memory = jobs.tasks[b, s.arriving, TASK_MEMORY]
    if view == PICK:
        if s.epoch == COMPLETION and not config.all_servers:
            free_cpu = state.remaining[b, s.released, 0]
            free_memory = state.remaining[b, s.released, 1]
            for i in range(same):
                mask[b, i] = fits(
                    state.queue_demand[b, i, 0], state.queue_demand[b, i, 1], free_cpu, free_memory
                )
        else:
            for i in range(s.opened, same):
                state.queue_open[b, i] = fits_somewhere(
                    state, b, state.queue_demand[b, i, 0], state.queue_demand[b, i, 1]
                )
            s.opened = max(s.opened, same)
            for i in range(same):
                mask[b, i] = state.queue_open[b, i]
            if same < shown:
                mask[b, same] = fits_somewhere(state, b, arriving_cpu, arriving_memory)
        for i in range(shown, s.shown):
            mask[b, i] = 0
        return
    for i in range(shown):
        cpu = state.queue_demand[b, i, 0] if i < same else arriving_cpu
        memory = state.queue_demand[b, i, 1] if i < same else arriving_memory
        for j in range(servers):
            mask[b, i * servers + j] = fits(cpu, memory, state.remaining[b, j, 0], state.remaining[b, j, 1])
    for i in range(shown * servers, s.shown * servers):
        mask[b, i] = 0


@helper
def observe_units(config: Any, jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """Write the observation in exact units."""
    s = state.scalars[b]
    window = config.window
    shown = min(s.queued, window)
    clock = s.clock
    if not config.lent:
        for i in range(s.fresh, shown):
            observation.arrival[b, i] = state.queue_arrival[b, i]
            observation.execution[b, i] = state.queue_execution[b, i]
            observation.demand[b, i, 0] = state.queue_demand[b, i, 0]
            observation.demand[b, i, 1] = state.queue_demand[b, i, 1]
        if s.arriving >= 0:
            observation.arrival[b, shown - 1] = clock
            observation.execution[b, shown - 1] = jobs.tasks[b, s.arriving, TASK_EXECUTION]
            observation.demand[b, shown - 1, 0] = jobs.tasks[b, s.arriving, TASK_CPU]
            observation.demand[b, shown - 1, 1] = jobs.tasks[b, s.arriving, TASK_MEMORY]
        for i in range(shown, s.shown):
            observation.arrival[b, i] = 0.0
            observation.execution[b, i] = 0.0
            observation.demand[b, i, 0] = 0.0
            observation.demand[b, i, 1] = 0.0
    for i in range(shown):
        observation.waiting[b, i] = clock - observation.arrival[b, i]
    for i in range(shown, s.shown):
        observation.waiting[b, i] = 0.0
    observation.clock[b, 0] = clock
    observation.mean_demand[b, 0] = s.demand_cpu / s.submitted
    observation.mean_demand[b, 1] = s.demand_memory / s.submitted
    observation.backlog[b, 0] = s.queued - shown
    observation.epoch[b] = s.epoch
    observation.arriving[b] = shown - 1 if s.arriving >= 0 else window
    observation.released[b] = s.released


@helper
def write_task_token(jobs: Jobs, state: State, tokens: F4, b: int, i: int, task: int) -> None:
    """Write the token of one waiting task, but for its waiting time."""
    tokens[b, i, 0] = jobs.tasks[b, task, TASK_CPU]
    tokens[b, i, 1] = jobs.tasks[b, task, TASK_MEMORY]
    tokens[b, i, 2] = state.log_execution[b, task]
    tokens[b, i, 4] = 0.0


@helper
def observe_features(config: Any, jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """Write the observation as float32 tokens, as far as it has changed."""
    s = state.scalars[b]
    window = config.window
    shown = min(s.queued, window)
    clock = s.clock
    tokens = observation.task_tokens
    for i in range(s.fresh, shown):
        write_task_token(jobs, state, tokens, b, i, state.queue_task[b, i])
    for i in range(0 if clock != s.observed else s.fresh, shown):
        waiting = clock - state.queue_arrival[b, i]
        tokens[b, i, 3] = waiting / (waiting + WAITING_SCALE)
    if s.arriving >= 0:
        write_task_token(jobs, state, tokens, b, shown - 1, s.arriving)
        tokens[b, shown - 1, 3] = 0.0
        tokens[b, shown - 1, 4] = 1.0
    for i in range(shown, s.shown):
        for k in range(TASK_FEATURES):
            tokens[b, i, k] = 0.0
    servers = observation.server_tokens
    if s.marked >= 0:
        servers[b, s.marked, 4] = 0.0
    s.marked = s.released if s.epoch == COMPLETION else -1
    if s.marked >= 0:
        servers[b, s.marked, 4] = 1.0
    beyond = s.queued - shown
    whole = observation.global_tokens
    whole[b, 0] = s.epoch == ARRIVAL
    whole[b, 1] = s.epoch == COMPLETION
    whole[b, 2] = s.queued / (s.queued + COUNT_SCALE)
    whole[b, 3] = beyond / (beyond + COUNT_SCALE)
    whole[b, 4] = s.demand_cpu / s.submitted
    whole[b, 5] = s.demand_memory / s.submitted
    whole[b, 6] = clock / (clock + DAY)


@helper
def observe(config: Any, jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """Write the whole observation of environment b."""
    s = state.scalars[b]
    if config.mask:
        observe_mask(config, jobs, state, observation, b)
    if config.features:
        observe_features(config, jobs, state, observation, b)
    else:
        observe_units(config, jobs, state, observation, b)
    shown = min(s.queued, config.window)
    for i in range(s.shown, shown):
        observation.task_mask[b, i] = 1
    for i in range(shown, s.shown):
        observation.task_mask[b, i] = 0
    s.shown = shown
    # the slot of the arriving task may show another one next, and its token no longer the mark
    s.fresh = shown - 1 if s.arriving >= 0 else shown
    s.observed = s.clock


@helper
def begin(jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """Start an episode on the loaded workload."""
    s = state.scalars[b]
    servers = state.remaining.shape[1]
    # left over when the last episode was cut off
    for i in range(min(s.queued, state.queue_arrival.shape[1])):
        blank(state, b, i)
    for i in range(s.tasks):
        state.start[b, i] = math.nan
        state.server[b, i] = -1
    for j in range(servers):
        state.first_running[b, j] = -1
        state.last_running[b, j] = -1
        state.released[b, j] = False
        set_used(jobs, state, observation, b, j, 0.0, 0.0)
        if observation.server_tokens.shape[1] > 0:
            observation.server_tokens[b, j, 0] = jobs.capacity[b, j, 0]
            observation.server_tokens[b, j, 1] = jobs.capacity[b, j, 1]
    s.fresh = 0
    s.opened = 0
    s.demand_cpu = 0.0
    s.demand_memory = 0.0
    s.submitted = 0
    s.queued = 0
    s.running = 0
    s.completed = 0
    s.cursor = servers
    s.repaired = 0
    s.truncated = 0
    s.clock = jobs.tasks[b, 0, TASK_ARRIVAL]
    submit(jobs, state, b)


@pure_kernel
def step(table: Any, tools: Any, command: I1) -> int:
    """Advance the environments, each by its ``command`` [B]: ACT carries out a decision, BEGIN an episode.

    ``table`` packs Constants, Jobs, State, Observation and Exchange. Acting and beginning share one kernel
    because compiling the observation twice would cost seconds at the first call.

    Returns the number of environments whose episode ended. Or -(b + 1) for the first environment whose
    action is out of range, or with strict actions infeasible; then nothing has changed.
    """
    constants, jobs, state, observation, exchange = unpack(table)
    config = constants.config[0]
    weights = constants.weights
    decisions = exchange.decisions
    for b in range(command.shape[0]):
        for k in range(constants.choices.shape[0]):
            action = exchange.actions[b, k]
            if names_action(command[b]) and (action < 0 or action >= constants.choices[k]):
                return -(b + 1)
    ended = 0
    # strict actions are all decoded, in round 0, before the first one is carried out
    for round in range(0 if config.strict else 1, 2):
        for b in range(command.shape[0]):
            infeasible = False
            if names_action(command[b]):
                infeasible = not decode(config, weights, jobs, state, b, exchange.actions, decisions)
                if infeasible and config.strict:
                    return -(b + 1)
            if round == 0 or command[b] == SKIP or command[b] == CHECK:
                continue
            s = state.scalars[b]
            exchange.reward[b] = 0.0
            exchange.terminated[b] = False
            exchange.truncated[b] = False
            exchange.repaired[b] = infeasible
            if command[b] == BEGIN:
                begin(jobs, state, observation, b)
            else:
                s.repaired += infeasible
                delay = act(
                    config,
                    weights,
                    constants.route,
                    jobs,
                    state,
                    observation,
                    b,
                    exchange.actions,
                    decisions,
                )
                if delay != 0.0:
                    exchange.reward[b] = -delay * s.reward_scale
                if s.epoch == FINISHED:
                    exchange.terminated[b] = s.truncated == 0
                    exchange.truncated[b] = s.truncated == 1
                    ended += 1
            observe(config, jobs, state, observation, b)
    return ended
