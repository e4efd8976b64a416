"""State and compiled dynamics of QueueDelay, for one environment.

Time moves from epoch to epoch. At one instant all completions are released first; then each server that
released something has a completion epoch, by ascending index; then each arriving task has an arrival
epoch, in submission order. A step places one task or closes the epoch (noroozoliaee2014, section IV).

The free capacity of a server is its capacity minus the demands of its running tasks, summed in order of
start, so that no rounding drift accumulates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core import heap
from schedgym.core.arrays import (
    SHARED,
    Bytes,
    Fill,
    Flags,
    Floats,
    Floats32,
    Integers,
    Integers32,
    Renamed,
    Shown,
    length,
)
from schedgym.core.columns import put
from schedgym.core.jit import helper, record_dtype, subroutine
from schedgym.core.kernels import Dynamics, Scoring, ViewDynamics
from schedgym.core.order import last_of
from schedgym.core.rows import clear_entries, clearer, copier, copy_entries, mark, resetter
from schedgym.core.stepping import ActionSpace, Exchange, always_feasible
from schedgym.problems.queue_delay import columns
from schedgym.problems.queue_delay.columns import (
    COUNT_SCALE,
    DAY,
    GLOBAL,
    LOG_DAY,
    SERVER,
    SUBMITTED,
    TASK,
    WAITING_SCALE,
    TaskToken,
)
from schedgym.problems.queue_delay.metrics import Schedule
from schedgym.problems.queue_delay.rules import (
    ARRIVAL,
    COMPLETION,
    FINISHED,
    RULE_TABLE,
    TOLERANCE,
    Situation,
    choose,
    fits,
    mark_fitting,
    select_server,
)
from schedgym.problems.queue_delay.workload import LAST_TIME, MOST_TASKS, Jobs

PLACEMENT, PICK, ROUTE, RULE = 0, 1, 2, 3  # views, in the order of the descriptor


SCALARS = record_dtype(
    ("clock", np.float64),
    ("log_execution", np.float64),  # sums of the token's values over the tasks submitted so far
    ("log_squared", np.float64),
    ("reward_scale", np.float64),
    ("submitted", np.int64),  # tasks that have arrived; also the index of the next to arrive
    ("queued", np.int64),
    ("running", np.int64),  # also the size of the heap of completions
    ("completed", np.int64),
    ("epoch", np.int64),
    ("arriving", np.int64),  # the arriving task while it waits, else -1; it is always last in the queue
    ("released", np.int64),  # the server of a completion epoch, else the number of servers
    ("cursor", np.int64),  # servers below it have had their completion epoch at this instant
    ("position", np.int64),  # of the task in the queue that the decision places, -1: none
    ("server", np.int64),  # where it goes
    ("shown", np.int64),  # window slots that the last observation filled
    ("fresh", np.int64),  # leading slots of which only the waiting time can have changed since
    ("marked", np.int64),  # the server token that carries the mark of the released server, or -1
    ("opened", np.int64),  # leading positions of the queue whose ``queue_open`` is kept up to date
    ("observed", np.float64),  # the clock of the last observation
    ("repaired", np.int64),
)

CONFIG = record_dtype(
    ("action_view", np.int64),
    ("window", np.int64),
    ("rule", np.int64),
    ("all_servers", np.int64),  # scope="all"
    ("features", np.int64),
    ("mask", np.int64),
    ("zero_copy", np.int64),  # the observation's task arrays are the queue itself
    ("normalize", np.int64),
)


def token_limits(size: str, last: Any, *executions: int) -> Callable[[Any], list[float]]:
    """The largest values of a token: 1, but for logarithms of executions, which may be above a day's.

    Args:
        size: name of the token's number of columns.
        last: the columns at its end.
        executions: the places among these of such logarithms.
    """
    longest = math.log1p(LAST_TIME) / LOG_DAY
    places = [place - len(last) for place in executions]
    return lambda simulator: [longest if i in places else 1.0 for i in range(-simulator.sizes[size], 0)]


TASK_LIMITS = token_limits("task_column", TASK, TASK.log_execution)
GLOBAL_LIMITS = token_limits(
    "global_column", SUBMITTED, SUBMITTED.mean_log_execution, SUBMITTED.deviation_of_log_execution
)


class Constants(NamedTuple):
    """Constants of a simulator: its configuration, resource weights, and the scheme of view route."""

    config: Annotated[Any, CONFIG]
    weights: Annotated[Floats, "static_resource", Fill(1.0)]  # of the resources in the size "sum"
    route: Annotated[Integers, 4]  # the scheme that serves completions in view route


class Queue(NamedTuple):
    """Arrival, execution time and demand of the waiting tasks, in order of submission; the rest is zero."""

    arrival: Annotated[Floats, "place", Shown("of each visible waiting task [s]", LAST_TIME)]
    execution: Annotated[Floats, "place", Shown("its execution time [s]", LAST_TIME)]
    demand: Annotated[Floats, "place", "static_resource", Shown("its demand of each resource")]


class State(NamedTuple):
    """The variables of an episode, except for :class:`Queue` and the schedule.

    The queue is the list ``queue_task`` in order of submission. :class:`Queue` holds the quantities of its
    leading tasks side by side (of all, where a view or an observation needs the whole queue): moving up a
    hundred tasks at each start would take longer than the rest of a step. Running tasks form a doubly linked
    list per server, in order of start, and a heap by completion.
    """

    scalars: Annotated[Any, SCALARS]
    demand: Annotated[Floats, "static_resource"]  # sum over the tasks submitted so far
    work: Annotated[Floats, "static_resource"]  # of these, execution times demand [s]
    whole: Annotated[Floats, "static_resource"]  # capacity of all servers
    # the tolerance of the test whether a task fits can leave it slightly below zero
    remaining: Annotated[
        Floats, "server", "static_resource", Shown("what is free of it", least=-2 * TOLERANCE)
    ]
    used: Annotated[Floats, "server", "static_resource"]
    released: Annotated[Flags, "server"]  # servers that released something at this instant
    queue_task: Annotated[Integers, "task"]
    queue_open: Annotated[Bytes, "leading"]  # whether the task fits some server now, for ``opened`` positions
    log_execution: Annotated[Floats32, "task"]  # the execution feature of the tasks submitted so far
    heap_time: Annotated[Floats, "task"]
    heap_task: Annotated[Integers32, "task"]
    next_running: Annotated[Integers32, "task"]
    previous_running: Annotated[Integers32, "task"]
    first_running: Annotated[Integers32, "server", Fill(-1)]
    last_running: Annotated[Integers32, "server", Fill(-1)]


class Observation(NamedTuple):
    """Observation buffers that the kernel writes; those of the other kind of observation have length 0."""

    waiting: Annotated[Floats, "unit_window", Shown("time since its arrival [s]", LAST_TIME)]
    task_mask: Annotated[Bytes, "window", Shown("slots with a task, which stand first")]
    action_mask: Annotated[Bytes, "mask", Shown("feasible actions; in view placement of (window, server)")]
    clock: Annotated[Floats, 1, Shown("time [s]", LAST_TIME)]
    mean_demand: Annotated[
        Floats, "static_resource", Shown("mean demand of each resource of the tasks submitted so far")
    ]
    backlog: Annotated[Integers, 1, Shown("tasks that wait beyond the window", MOST_TASKS)]
    epoch: Annotated[
        Integers, 1, Fill(FINISHED), Shown("0 arrival, 1 completion, 2 the episode has ended", 2, single=True)
    ]
    arriving: Annotated[
        Integers, 1, Shown("slot of the arriving task while it waits, else W", length("window"), single=True)
    ]
    released: Annotated[
        Integers, 1, Shown("server of a completion epoch, else M", length("server"), single=True)
    ]
    task_tokens: Annotated[Floats32, "token_window", "task_column", columns.TASK_ROW, Shown(most=TASK_LIMITS)]
    server_tokens: Annotated[Floats32, "token_server", "server_column", columns.SERVER_ROW]
    global_tokens: Annotated[Floats32, "global_column", columns.GLOBAL_ROW, Shown(most=GLOBAL_LIMITS)]


class Environment(NamedTuple):
    """All arrays of one environment: constants, workload, state and observation buffers."""

    constants: Annotated[Constants, SHARED]
    action_space: Annotated[ActionSpace, SHARED]
    jobs: Jobs
    state: State
    queue: Annotated[Queue, Renamed(place="leading")]
    shown: Annotated[Queue, Renamed(place="own_window")]  # as the observation shows it
    schedule: Schedule
    observation: Observation
    exchange: Exchange


reset = resetter(SCALARS, without=("shown", "marked", "observed"))
enter, show, blank = copier(Jobs, Queue), copier(Queue), clearer(Queue)


@helper
def set_used(env: Environment, j: int, r: int, used: float) -> None:
    """Set the used and the free capacity of server j in resource r, also in its token."""
    env.state.used[j, r] = used
    free = env.jobs.capacity[j, r] - used
    env.state.remaining[j, r] = free
    if env.observation.server_tokens.shape[0] > 0:
        env.observation.server_tokens[j, env.state.used.shape[1] + r] = max(free, 0.0)


@helper
def fits_somewhere(env: Environment, demand: Any, i: int) -> Any:
    """Return True if demand i fits some server now."""
    for j in range(env.state.remaining.shape[0]):
        if fits(demand, i, env.state.remaining, j):
            return True
    return False


@helper
def place(env: Environment, position: int, j: int) -> None:
    """Start the waiting task at ``position`` of the queue on server j, now."""
    s = env.state.scalars
    task = env.state.queue_task[position]
    env.schedule.start[task] = s.clock
    env.schedule.server[task] = j
    for r in range(env.state.used.shape[1]):
        set_used(env, j, r, env.state.used[j, r] + env.jobs.demand[task, r])
    tail = env.state.last_running[j]
    env.state.previous_running[task] = tail
    env.state.next_running[task] = -1
    if tail >= 0:
        env.state.next_running[tail] = task
    else:
        env.state.first_running[j] = task
    env.state.last_running[j] = task
    heap.push(env.state.heap_time, env.state.heap_task, s.running, s.clock + env.jobs.execution[task], task)
    s.running += 1
    if task == s.arriving:
        s.arriving = -1
    remove(env, position)
    if position < s.opened:
        s.opened -= 1
        for i in range(position, s.opened):
            env.state.queue_open[i] = env.state.queue_open[i + 1]
    for i in range(s.opened):
        if env.state.queue_open[i]:
            env.state.queue_open[i] = fits_somewhere(env, env.queue.demand, i)


@helper
def remove(env: Environment, position: int) -> None:
    """Remove the task at ``position`` from the queue; those behind it move up."""
    s = env.state.scalars
    left = s.queued - 1
    for i in range(position, left):
        env.state.queue_task[i] = env.state.queue_task[i + 1]
    depth = env.queue.arrival.shape[0]
    last = min(left, depth - 1)
    for i in range(position, last):
        env.queue.arrival[i] = env.queue.arrival[i + 1]
    for i in range(position, last):
        env.queue.execution[i] = env.queue.execution[i + 1]
    for i in range(position, last):
        copy_entries(env.queue.demand, i + 1, env.queue.demand, i)
    if left < depth:
        blank(env.queue, left)
    elif position < depth:
        enter(env.jobs, env.state.queue_task[last], env.queue, last)
    s.queued = left
    s.fresh = min(s.fresh, position)


@helper
def release(env: Environment, task: int) -> None:
    """Remove a completed task from its server's list and mark the server as released."""
    j = env.schedule.server[task]
    before = env.state.previous_running[task]
    after = env.state.next_running[task]
    if before >= 0:
        env.state.next_running[before] = after
    else:
        env.state.first_running[j] = after
    if after >= 0:
        env.state.previous_running[after] = before
    else:
        env.state.last_running[j] = before
    env.state.released[j] = True


@helper
def recompute_used(env: Environment, j: int) -> None:
    """Sum the demands of server j's running tasks in order of start."""
    for r in range(env.state.used.shape[1]):
        used = 0.0
        task = env.state.first_running[j]
        while task >= 0:
            used += env.jobs.demand[task, r]
            task = env.state.next_running[task]
        set_used(env, j, r, used)
    for i in range(env.state.scalars.opened):
        env.state.queue_open[i] |= fits(env.queue.demand, i, env.state.remaining, j)


@helper
def submit(env: Environment) -> None:
    """Open the arrival epoch of the next task: append it to the queue."""
    s = env.state.scalars
    task = s.submitted
    end = s.queued
    env.state.queue_task[end] = task
    if end < env.queue.arrival.shape[0]:
        enter(env.jobs, task, env.queue, end)
    execution = env.jobs.execution[task]
    logarithm = math.log1p(execution) / LOG_DAY
    env.state.log_execution[task] = logarithm
    s.queued = end + 1
    s.submitted = task + 1
    s.log_execution += logarithm
    s.log_squared += logarithm * logarithm
    for r in range(env.state.demand.shape[0]):
        demand = env.jobs.demand[task, r]
        env.state.demand[r] += demand
        env.state.work[r] += execution * demand
        env.observation.mean_demand[r] = env.state.demand[r] / s.submitted
    s.epoch = ARRIVAL
    s.arriving = task
    s.released = env.state.remaining.shape[0]


@helper
def finish(env: Environment, truncated: bool) -> None:
    """End the episode."""
    s = env.state.scalars
    s.epoch = FINISHED
    s.arriving = -1
    s.released = env.state.remaining.shape[0]
    env.schedule.end.clock = s.clock
    env.exchange.result.terminated = not truncated
    env.exchange.result.truncated = truncated


@helper
def strand(env: Environment) -> float:
    """Return the delay that the waiting tasks are still charged: as if run one after another, from now."""
    begin = 0.0
    total = 0.0
    for i in range(env.state.scalars.queued):
        total += begin
        begin += env.jobs.execution[env.state.queue_task[i]]
    return total


@helper
def advance_clock(env: Environment, instant: float) -> float:
    """Advance the clock to an instant, unless that is over; return the delay that passed."""
    s = env.state.scalars
    elapsed = instant - s.clock
    if elapsed <= 0.0:
        return 0.0
    s.clock = instant
    return s.queued * elapsed


@subroutine
def close_epoch(env: Environment) -> float:
    """Move to the next epoch of this instant, else to the next event; return the delay that passed."""
    s = env.state.scalars
    servers = env.state.remaining.shape[0]
    delay = 0.0
    while True:
        # first the completion epochs of this instant, by server
        for j in range(s.cursor, servers):
            if env.state.released[j]:
                env.state.released[j] = False
                s.cursor = j + 1
                s.epoch = COMPLETION
                s.arriving = -1
                s.released = j
                return delay
        s.cursor = servers
        # then its arrivals, one epoch each
        more = s.submitted < env.jobs.size.tasks
        if more and env.jobs.arrival[s.submitted] <= last_of(s.clock):
            delay += advance_clock(env, env.jobs.arrival[s.submitted])
            submit(env)
            return delay
        instant = math.inf
        if s.running > 0:
            instant = env.state.heap_time[0]
        if more:
            instant = min(instant, env.jobs.arrival[s.submitted])
        if not instant < math.inf:  # nothing can happen any more, and tasks wait
            delay += strand(env)
            finish(env, True)
            return delay
        delay += advance_clock(env, instant)
        last = last_of(instant)
        if not (s.running > 0 and env.state.heap_time[0] <= last):
            continue  # only an arrival
        # all completions of the next instant come before its first epoch
        while s.running > 0 and env.state.heap_time[0] <= last:
            delay += advance_clock(env, env.state.heap_time[0])
            task = heap.pop(env.state.heap_time, env.state.heap_task, s.running)
            s.running -= 1
            s.completed += 1
            release(env, task)
        for j in range(servers):
            if env.state.released[j]:
                recompute_used(env, j)
        s.cursor = 0
        if s.completed == env.jobs.size.tasks:
            finish(env, False)
            return delay


@helper
def note(env: Environment, position: int, server: int) -> Any:
    """Note the server (-1: none) for the task at ``position`` of the queue; return True if there is one."""
    s = env.state.scalars
    s.position = position
    s.server = server
    return server >= 0


@helper
def queue_position(env: Environment, slot: int) -> int:
    """Return the position in the queue of a window slot, -1 if the slot is empty."""
    s = env.state.scalars
    window = env.constants.config.window
    if slot >= min(s.queued, window):
        return -1
    if slot == window - 1 and s.arriving >= 0:
        return s.queued - 1  # the arriving task is always visible
    return slot


@helper
def fits_on(env: Environment, position: int, j: int) -> Any:
    """Return True if the waiting task at a position fits the free capacity of server j."""
    return fits(env.jobs.demand, env.state.queue_task[position], env.state.remaining, j)


@helper
def situation(env: Environment, demand: Any) -> Situation:
    """Return the input of schemes and rules, with the demands of the whole queue, or those of all tasks."""
    s = env.state.scalars
    return Situation(
        epoch=s.epoch,
        arriving=s.queued - 1 if s.arriving >= 0 else -1,
        released=s.released,
        queued=s.queued,
        execution=env.queue.execution,
        demand=demand,
        capacity=env.jobs.capacity,
        remaining=env.state.remaining,
        weights=env.constants.weights,
        p=2.0,
        mean_demand=env.observation.mean_demand,
        draw=0.0,
    )


@helper
def server_by_rule(env: Environment, position: int) -> int:
    """View pick: return the server in scope that the rule gives to a waiting task, -1 if none."""
    s = env.state.scalars
    config = env.constants.config
    if s.epoch == COMPLETION and not config.all_servers:
        return s.released if fits_on(env, position, s.released) else -1
    return select_server(config.rule, situation(env, env.jobs.demand), env.state.queue_task[position])


# The test of an action, view by view: is it feasible? The test finds the placement that the action names and
# notes it; it is carried out unless it is infeasible. The last choice closes the epoch (or queues the task).


@helper
def decode_placement(env: Environment) -> Any:
    """View placement: return True if the slot's task fits on the server, or the last slot is chosen."""
    slot = env.exchange.choices[0]
    if slot == env.constants.config.window:
        note(env, -1, -1)
        return True
    position = queue_position(env, slot)
    j = env.exchange.choices[1]
    return note(env, position, j if position >= 0 and fits_on(env, position, j) else -1)


@helper
def decode_pick(env: Environment) -> Any:
    """View pick: return True if the rule finds a server for the slot's task, or the last slot is chosen."""
    slot = env.exchange.choices[0]
    if slot == env.constants.config.window:
        note(env, -1, -1)
        return True
    position = queue_position(env, slot)
    return note(env, position, server_by_rule(env, position) if position >= 0 else -1)


@helper
def decode_route(env: Environment) -> Any:
    """View route: return True if the arriving task fits on the server, or queueing it is chosen."""
    j = env.exchange.choices[0]
    if j == env.state.remaining.shape[0]:
        note(env, -1, -1)
        return True
    position = env.state.scalars.queued - 1
    return note(env, position, j if position >= 0 and fits_on(env, position, j) else -1)


@helper
def decide_noted(env: Environment, feasible: bool) -> None:
    """Place the task that was noted; an infeasible action closes the epoch (view route: queues the task)."""
    if not feasible:
        env.state.scalars.position = -1


@helper
def decide_rule(env: Environment, feasible: bool) -> None:
    """View rule: note no placement, as the scheme decides the whole epoch."""
    env.state.scalars.position = -1


@subroutine
def run_scheme(env: Environment, scheme: Any) -> None:
    """Carry out a whole epoch by a scheme that sees the whole queue."""
    while True:
        position, j = choose(scheme, situation(env, env.queue.demand))
        if position < 0:
            return
        place(env, position, j)


@helper
def pass_time(env: Environment) -> float:
    """Carry out the decision; close the epoch unless it goes on; return the delay that passed."""
    s = env.state.scalars
    view = env.constants.config.action_view
    if s.position >= 0:
        place(env, s.position, s.server)
        if view != ROUTE:
            return 0.0
    scheme = RULE_TABLE[env.exchange.choices[0]] if view == RULE else env.constants.route
    by_scheme = view == RULE
    delay = 0.0
    while True:
        if by_scheme:
            run_scheme(env, scheme)
        delay += close_epoch(env)
        if view != ROUTE or s.epoch != COMPLETION:
            return delay
        by_scheme = True  # view route: the agent does not decide completions


@helper
def advance(env: Environment) -> None:
    """Carry out the decision; the reward is minus the delay that passes until the next decision."""
    s = env.state.scalars
    s.repaired += env.exchange.result.repaired
    delay = pass_time(env)
    if delay != 0.0:
        env.exchange.result.reward = -delay * s.reward_scale


@helper
def observe_mask(env: Environment) -> None:
    """Write the mask of feasible actions."""
    s = env.state.scalars
    servers = env.state.remaining.shape[0]
    window = env.constants.config.window
    mask = env.observation.action_mask
    view = env.constants.config.action_view
    if view == RULE:
        return  # every scheme is always feasible
    if view == ROUTE:
        # the arriving task is the last of the queue; queueing it is always feasible
        i = s.queued - 1
        for j in range(servers):
            mask[j] = s.arriving >= 0 and fits(env.queue.demand, i, env.state.remaining, j)
        return
    shown = min(s.queued, window)
    if s.epoch == FINISHED:
        shown = 0
    # an arriving task is in the last slot shown, wherever it is in the queue
    same = shown - 1 if s.arriving >= 0 else shown
    if view == PICK:
        if s.epoch == COMPLETION and not env.constants.config.all_servers:
            mark_fitting(env.queue.demand, same, env.state.remaining, s.released, mask, 0, 1)
        else:
            for i in range(s.opened, same):
                env.state.queue_open[i] = fits_somewhere(env, env.queue.demand, i)
            s.opened = max(s.opened, same)
            for i in range(same):
                mask[i] = env.state.queue_open[i]
            if same < shown:
                mask[same] = fits_somewhere(env, env.jobs.demand, s.arriving)
        for i in range(shown, s.shown):
            mask[i] = 0
        return
    for j in range(servers):
        mark_fitting(env.queue.demand, same, env.state.remaining, j, mask, j, servers)
        if same < shown:
            mask[same * servers + j] = fits(env.jobs.demand, s.arriving, env.state.remaining, j)
    for i in range(shown * servers, s.shown * servers):
        mask[i] = 0


@helper
def observe_units(env: Environment) -> None:
    """Write the observation in exact units."""
    s = env.state.scalars
    window = env.constants.config.window
    shown = min(s.queued, window)
    clock = s.clock
    if not env.constants.config.zero_copy:
        for i in range(s.fresh, shown):
            show(env.queue, i, env.shown, i)
        if s.arriving >= 0:
            enter(env.jobs, s.arriving, env.shown, shown - 1)
        for i in range(shown, s.shown):
            blank(env.shown, i)
    for i in range(shown):
        env.observation.waiting[i] = clock - env.shown.arrival[i]
    for i in range(shown, s.shown):
        env.observation.waiting[i] = 0.0
    env.observation.clock[0] = clock
    env.observation.backlog[0] = s.queued - shown
    env.observation.epoch[0] = s.epoch
    env.observation.arriving[0] = shown - 1 if s.arriving >= 0 else window
    env.observation.released[0] = s.released


@helper
def write_task_token(env: Environment, i: int, task: int, arriving: float) -> None:
    """Write the token of a task that is new in the window, as if it had not waited; ``arriving``: 1 or 0."""
    tokens = env.observation.task_tokens
    resources = env.jobs.demand.shape[1]
    for r in range(resources):
        tokens[i, r] = env.jobs.demand[task, r]
    token = TaskToken(log_execution=env.state.log_execution[task], waiting=0.0, arriving=arriving)
    put(tokens[i], resources, token)


@helper
def offered_load(env: Environment, elapsed: float) -> float:
    """Return l / (l + 1) of the load l that the tasks submitted so far have offered."""
    work = 0.0
    for r in range(env.state.work.shape[0]):
        if env.state.whole[r] > 0.0:
            work = max(work, env.state.work[r] / env.state.whole[r])
    return work / (work + elapsed) if work > 0.0 else 0.0


@helper
def observe_features(env: Environment) -> None:
    """Update the observation as float32 tokens; only what has changed is written."""
    s = env.state.scalars
    window = env.constants.config.window
    shown = min(s.queued, window)
    clock = s.clock
    resources = env.state.demand.shape[0]
    tokens = env.observation.task_tokens
    for i in range(s.fresh, shown):
        write_task_token(env, i, env.state.queue_task[i], 0.0)
    # waiting times are those of all tasks once the clock has moved
    for i in range(0 if clock != s.observed else s.fresh, shown):
        waiting = clock - env.queue.arrival[i]
        tokens[i, resources + TASK.waiting] = waiting / (waiting + WAITING_SCALE)
    if s.arriving >= 0:
        write_task_token(env, shown - 1, s.arriving, 1.0)
    clear_entries(tokens, shown, s.shown)
    servers = env.observation.server_tokens
    if s.marked >= 0:
        servers[s.marked, 2 * resources + SERVER.released] = 0.0
    s.marked = s.released if s.epoch == COMPLETION else -1
    if s.marked >= 0:
        servers[s.marked, 2 * resources + SERVER.released] = 1.0
    beyond = s.queued - shown
    mean = s.log_execution / s.submitted
    elapsed = clock - env.jobs.arrival[0]
    since = clock - env.jobs.arrival[s.submitted - 1]
    deviation = math.sqrt(max(s.log_squared / s.submitted - mean * mean, 0.0))
    whole = env.observation.global_tokens
    whole[GLOBAL.arrival] = s.epoch == ARRIVAL
    whole[GLOBAL.completion] = s.epoch == COMPLETION
    whole[GLOBAL.waiting] = s.queued / (s.queued + COUNT_SCALE)
    whole[GLOBAL.beyond] = beyond / (beyond + COUNT_SCALE)
    for r in range(resources):
        whole[len(GLOBAL) + r] = env.observation.mean_demand[r]
    behind = len(GLOBAL) + resources
    whole[behind + SUBMITTED.clock] = clock / (clock + DAY)
    whole[behind + SUBMITTED.mean_log_execution] = mean
    whole[behind + SUBMITTED.deviation_of_log_execution] = deviation
    whole[behind + SUBMITTED.load] = offered_load(env, elapsed)
    whole[behind + SUBMITTED.quiet] = since / (since + elapsed / s.submitted) if since > 0.0 else 0.0


@helper
def observe(env: Environment) -> None:
    """Write the whole observation."""
    s = env.state.scalars
    if env.constants.config.mask:
        observe_mask(env)
    if env.constants.config.features:
        observe_features(env)
    else:
        observe_units(env)
    shown = min(s.queued, env.constants.config.window)
    mark(env.observation.task_mask, s.shown, shown)
    s.shown = shown
    # the slot of the arriving task may show another one next, and its token no longer the mark
    s.fresh = shown - 1 if s.arriving >= 0 else shown
    s.observed = s.clock


@helper
def begin(env: Environment) -> None:
    """Start an episode on the loaded workload."""
    s = env.state.scalars
    servers = env.state.remaining.shape[0]
    # left over when the last episode was cut off
    for i in range(min(s.queued, env.queue.arrival.shape[0])):
        blank(env.queue, i)
    reset(s)
    work = 0.0
    for i in range(env.jobs.size.tasks):
        env.schedule.start[i] = math.nan
        env.schedule.server[i] = -1
        work += env.jobs.execution[i]
    for j in range(servers):
        env.state.first_running[j] = -1
        env.state.last_running[j] = -1
        env.state.released[j] = False
    for r in range(env.state.demand.shape[0]):
        env.state.demand[r] = env.state.work[r] = env.state.whole[r] = 0.0
        for j in range(servers):
            set_used(env, j, r, 0.0)
            env.state.whole[r] += env.jobs.capacity[j, r]
            if env.observation.server_tokens.shape[0] > 0:
                env.observation.server_tokens[j, r] = env.jobs.capacity[j, r]
    s.reward_scale = 1.0 / (work if env.constants.config.normalize else env.jobs.size.tasks)
    s.cursor = servers
    s.clock = env.jobs.arrival[0]
    submit(env)


VIEWS = (
    ViewDynamics("placement", decode_placement, decide_noted),
    ViewDynamics("pick", decode_pick, decide_noted),
    ViewDynamics("route", decode_route, decide_noted),
    ViewDynamics("rule", always_feasible, decide_rule),
)
DYNAMICS = Dynamics(__name__, Environment, begin, advance, observe, VIEWS)
SCORING = Scoring(DYNAMICS, columns, ("placement", "pick", "route"))
