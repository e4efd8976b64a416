"""State and compiled dynamics of ParallelJCT, batch-first: axis 0 of every array is the environment.

Between events the running tasks work; an event is an arrival, the completion of a task, or a tick. A round
is a run of decisions at one instant: each launches a job or ends the round. Waiting jobs are rows in order
of arrival (equals by index). Running tasks are rows in order of launch, then task.

A ``decode`` kernel, one per view, turns actions into a decision (``scalars.decision``) about the job in row
``scalars.row``, with a server and vCPU for each of its tasks; :func:`step` carries it out, lets time pass
until the next decision, and writes the observation.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

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
from schedgym.core.simulator import ACT, BEGIN, SHORT, SKIP, names_action
from schedgym.problems.parallel_jct.workload import cap_of_round
from schedgym.solvers.placement import (
    STRICT,
    Membership,
    PlanScratch,
    add_load,
    affords,
    evaluate,
    is_alive,
    is_valid_move,
    largest_capacity,
    most_efficient,
    move_time,
    optra_vcpu,
    reduce_energy,
    search_mask,
    server_time,
    tapra_fast,
    time_on,
)

__all__ = [
    "CONFIG",
    "GLOBAL_FEATURES",
    "JOB_FEATURES",
    "MOVE_FEATURES",
    "RESUME",
    "SCALARS",
    "SERVER_FEATURES",
    "Constants",
    "Exchange",
    "Jobs",
    "Log",
    "Observation",
    "State",
    "decode_pick",
    "decode_place",
    "decode_plan",
    "decode_search",
    "step",
]

RESUME = 4  # the command that follows a step that ran short of log rows
PLAN, PICK, PLACE, SEARCH = range(4)  # views, in the order of the descriptor
ON_TICKS, ON_EVENTS, ON_ALL = range(3)  # rounds, in the order of the descriptor
#: what was decided: nothing yet (a job is being planned), end the round, launch the job, its planning failed
OPEN, END, LAUNCH, FAIL = range(4)

INSTANT = 1e-9  # events this close (relative from 1 s on) are one
CRUMB = 1e-9  # less of a server's capacity than this share is none
ROUNDING = 1e-9  # by which given vCPU may exceed a limit

#: features of a job token: age, tasks, load, least energy over the cap, failed, time that it needs at least
#: on what is available, being planned
JOB_FEATURES = 7
#: features of a server token: capacity, available share, running tasks, whether a task may get vCPU there;
#: of the task to be placed (view place): its efficiency there, time it would have, whether it may go there
SERVER_FEATURES = 7
#: global features: event, available share, waiting jobs, those beyond the window, running tasks, time to the
#: next tick, progress of the job being planned, its energy over the cap, its time so far
GLOBAL_FEATURES = 11
#: features of a move (view search): efficiency there, the task's time there over the job's, legal
MOVE_FEATURES = 3
TIME_SCALE = 100.0  # t / (t + 100 s)
COUNT_SCALE = 32.0
LOAD_SCALE = 100.0  # work / (work + 100 s of all servers)

#: per-environment scalars
SCALARS = record_dtype(
    ("reward_scale", np.float64),
    ("clock", np.float64),
    ("used", np.float64),  # vCPU s of all tasks so far
    ("capacity", np.float64),  # of all servers
    ("energy", np.float64),  # of the tasks placed of the job being planned
    ("jct", np.float64),  # of these tasks
    ("jobs", np.int64),
    ("arrived", np.int64),  # also the index of the next job to arrive
    ("completed", np.int64),
    ("waiting", np.int64),  # rows of waiting jobs
    ("running", np.int64),  # rows of running tasks
    ("ticks", np.int64),  # number of the next tick
    ("was_arrival", np.int64),
    ("was_completion", np.int64),
    ("was_tick", np.int64),
    ("deciding", np.int64),  # whether a round is open
    ("decision", np.int64),
    ("row", np.int64),  # of the job that the decision is about
    ("open_row", np.int64),  # of the job being planned task by task, or -1
    ("next_task", np.int64),
    ("moves", np.int64),
    ("held", np.int64),  # waiting rows whose tasks are in the observation
    ("task_end", np.int64),  # first free row of the observation's tasks
    ("logged", np.int64),  # rows of the log
    ("short", np.int64),  # whether the log has no room to go on
    ("acted", np.int64),  # whether anything was decided in this episode
    ("charged", np.float64),  # job-seconds in the system that no reward has charged yet
    ("finished", np.int64),
    ("truncated", np.int64),
    ("told", np.int64),  # open_row of the last observation
    ("shown", np.int64),  # waiting rows that the last observation filled
    ("shown_running", np.int64),
    ("failures", np.int64),
    ("rounds", np.int64),
    ("repaired", np.int64),
)

#: constants of a simulator
CONFIG = record_dtype(
    ("mode", np.int64),  # view
    ("rounds", np.int64),
    ("drc", np.int64),
    ("tick", np.float64),
    ("max_time", np.float64),
    ("max_moves", np.int64),
    ("window", np.int64),
    ("running_window", np.int64),
    ("most_tasks", np.int64),  # of a job
    ("features", np.int64),
    ("mask", np.int64),
    ("strict", np.int64),
    ("normalize", np.int64),
)


class Constants(NamedTuple):
    """What stays the same for the life of a simulator."""

    config: Annotated[npt.NDArray[Any], CONFIG, 1]  # [1]


class Jobs(NamedTuple):
    """The workload. J jobs, Q tasks, M servers, R groups."""

    arrival: F8_2  # [B, J]
    first_task: I8_2  # [B, J + 1]
    total_load: F8_2  # [B, J]
    least_energy: F8_2  # [B, J]
    energy_cap_ratio: F8_2  # [B, J] energy cap over load, nan: drawn
    energy_seed: I8_1  # [B]
    load: F8_2  # [B, Q]
    efficiency: F8_3  # [B, Q, M]
    cpu: F8_2  # [B, M]
    share: F8_2  # [B, R]


class State(NamedTuple):
    """Everything that changes in an episode."""

    scalars: Annotated[npt.NDArray[Any], SCALARS, 1]  # [B]
    queue: I4_2  # [B, J] waiting jobs
    first_row: I4_2  # [B, J] of each waiting row: where its tasks are in the observation
    failed: I1_2  # [B, J] by job: in this round
    round: I4_2  # [B, J] by job: rounds it has waited in
    cap: F8_2  # [B, J] by job: E_MAX in this round
    granted: B1_2  # [B, J] by job: whether that is its least energy
    unfinished: I4_2  # [B, J] by job: tasks
    launch: F8_2  # [B, J]
    completion: F8_2  # [B, J]
    energy: F8_2  # [B, J] of the placement
    task: I4_2  # [B, Q] of each running row
    job: I8_2  # [B, Q]
    server: I8_2  # [B, Q]
    leq: F8_2  # [B, Q]
    remaining: F8_2  # [B, Q]
    base: F8_2  # [B, Q]
    extra: F8_2  # [B, Q]
    end: F8_2  # [B, Q]
    run: I4_2  # [B, Q] row of the log that goes on, or -1
    reserved: F8_2  # [B, M] base of all tasks
    weight: F8_2  # [B, M] leq of all tasks
    available: F8_2  # [B, M]
    limits: F8_2  # [B, R]
    alive: I1_2  # [B, M] whether all groups of the server have something available
    placement: I4_2  # [B, most tasks] of the job that is decided on
    vcpu: F8_2  # [B, most tasks]
    least: F8_2  # [B, most tasks] view place: least energy of each task on servers with something available
    rest: F8_2  # [B, most tasks + 1] their sum from a task on
    placed: I8_2  # [B, R] tasks of the job being placed
    group_load: F8_2  # [B, R]


class Log(NamedTuple):
    """The schedule so far: pieces of tasks with constant vCPU."""

    task: I4_2  # [B, L]
    server: I4_2  # [B, L]
    start: F8_2  # [B, L]
    end: F8_2  # [B, L]
    base: F8_2  # [B, L]
    extra: F8_2  # [B, L]


class Observation(NamedTuple):
    """Buffers that the kernel writes (W window rows, T task rows, S running rows)."""

    clock: F8_2  # [B, 1]
    event: I1_2  # [B, 3]
    time_to_tick: F8_2  # [B, 1]
    job: I8_2  # [B, W]
    arrival: F8_2  # [B, W]
    age: F8_2  # [B, W]
    tasks: I8_2  # [B, W]
    first_task: I8_2  # [B, W]
    total_load: F8_2  # [B, W]
    least_energy: F8_2  # [B, W]
    energy_cap: F8_2  # [B, W]
    failed: I1_2  # [B, W]
    job_mask: I1_2  # [B, W]
    waiting: I8_2  # [B, 1]
    backlog: I8_2  # [B, 1]
    load: F8_2  # [B, T]
    efficiency: F8_3  # [B, T, M]
    running: I8_2  # [B, 1]
    run_job: I8_2  # [B, S]
    run_server: I8_2  # [B, S]
    run_leq: F8_2  # [B, S]
    run_remaining: F8_2  # [B, S]
    run_base: F8_2  # [B, S]
    run_extra: F8_2  # [B, S]
    open_job: I8_1  # [B]
    next_task: I8_1  # [B]
    placement: I4_2  # [B, most tasks]
    energy: F8_2  # [B, 1]
    action_mask: I1_2  # [B, actions]
    job_tokens: F4_3  # [B, W, JOB_FEATURES]
    server_tokens: F4_3  # [B, M, SERVER_FEATURES]
    global_tokens: F4_2  # [B, GLOBAL_FEATURES]
    move_tokens: F4_3  # [B, most tasks * M, MOVE_FEATURES]


class Exchange(NamedTuple):
    """What goes into a step and what it did. Of the two kinds of actions one has length 0."""

    choices: I8_2  # [B, 1] discrete actions
    actions: F8_3  # [B, 1 + most tasks, 2]
    rows: I8_1  # [B] rows of an action that count
    reward: F8_1  # [B]
    terminated: B1_1  # [B]
    truncated: B1_1  # [B]
    repaired: B1_1  # [B] whether this step's action was infeasible


unpack = unpacker(Constants, Jobs, State, Log, Observation, Exchange)
unpack_tools = unpacker(Membership, PlanScratch)


@helper
def same_instant(a: float, b: float) -> Any:
    """Whether an event at a happens at b."""
    return abs(a - b) <= INSTANT * max(1.0, abs(b))


@helper
def tasks_of(jobs: Jobs, b: int, job: int) -> int:
    """Number of tasks of a job."""
    return jobs.first_task[b, job + 1] - jobs.first_task[b, job]


@helper
def recount(jobs: Jobs, state: State, membership: Membership, b: int) -> None:
    """What is reserved on each server, and so available to a job, on it and in each group."""
    s = state.scalars[b]
    servers = jobs.cpu.shape[1]
    for j in range(servers):
        state.reserved[b, j] = 0.0
        state.weight[b, j] = 0.0
    for q in range(s.running):
        j = state.server[b, q]
        state.reserved[b, j] += state.base[b, q]
        state.weight[b, j] += state.leq[b, q]
    for j in range(servers):
        left = jobs.cpu[b, j] - state.reserved[b, j]
        state.available[b, j] = left if left > CRUMB * jobs.cpu[b, j] else 0.0
    for k in range(jobs.share.shape[1]):
        room = 0.0
        for e in range(membership.group_start[k], membership.group_start[k + 1]):
            room += state.available[b, membership.group_server[e]]
        state.limits[b, k] = jobs.share[b, k] * room
    for j in range(servers):
        state.alive[b, j] = is_alive(j, membership, state.limits[b])


@helper
def distribute(config: Any, jobs: Jobs, state: State, log: Log, b: int) -> None:
    """DRC: what nobody has reserved on a server goes to its tasks in proportion to their equivalent loads.

    A task whose vCPU change begins a new row of the log. Call :func:`recount` before.
    """
    s = state.scalars[b]
    for q in range(s.running):
        j = state.server[b, q]
        extra = 0.0
        if config.drc:
            left = jobs.cpu[b, j] - state.reserved[b, j]
            if left > 0.0:
                extra = left * state.leq[b, q] / state.weight[b, j]
        run = state.run[b, q]
        if run < 0 or extra != state.extra[b, q]:
            state.extra[b, q] = extra
            run = s.logged
            state.run[b, q] = run
            log.task[b, run] = state.task[b, q]
            log.server[b, run] = j
            log.start[b, run] = s.clock
            log.end[b, run] = s.clock
            log.base[b, run] = state.base[b, q]
            log.extra[b, run] = extra
            s.logged = run + 1
        state.end[b, q] = s.clock + state.remaining[b, q] / (state.base[b, q] + extra)


@helper
def work_until(state: State, log: Log, b: int, now: float) -> float:
    """Let the running tasks work until an instant; returns the job-seconds that passed in the system."""
    s = state.scalars[b]
    passed = now - s.clock
    if passed <= 0.0:
        return 0.0
    for q in range(s.running):
        work = (state.base[b, q] + state.extra[b, q]) * passed
        state.remaining[b, q] -= work
        s.used += work
        log.end[b, state.run[b, q]] = now
    s.clock = now
    return passed * (s.arrived - s.completed)


@helper
def complete_tasks(state: State, b: int) -> int:
    """Remove the running tasks whose end has come; returns how many."""
    s = state.scalars[b]
    kept = 0
    for q in range(s.running):
        if state.end[b, q] <= s.clock or same_instant(state.end[b, q], s.clock):
            job = state.job[b, q]
            state.unfinished[b, job] -= 1
            if state.unfinished[b, job] == 0:
                state.completion[b, job] = s.clock
                s.completed += 1
            continue
        if kept < q:
            state.task[b, kept] = state.task[b, q]
            state.job[b, kept] = state.job[b, q]
            state.server[b, kept] = state.server[b, q]
            state.leq[b, kept] = state.leq[b, q]
            state.remaining[b, kept] = state.remaining[b, q]
            state.base[b, kept] = state.base[b, q]
            state.extra[b, kept] = state.extra[b, q]
            state.end[b, kept] = state.end[b, q]
            state.run[b, kept] = state.run[b, q]
        kept += 1
    done = s.running - kept
    s.running = kept
    return done


@helper
def has_candidate(config: Any, state: State, b: int) -> Any:
    """Whether a visible waiting job may still be launched in this round."""
    for r in range(min(state.scalars[b].waiting, config.window)):
        if not state.failed[b, state.queue[b, r]]:
            return True
    return False


@helper
def open_round(config: Any, jobs: Jobs, state: State, b: int) -> Any:
    """Draw the energy caps of a round; whether there is anything to decide."""
    s = state.scalars[b]
    s.rounds += 1
    for r in range(s.waiting):
        job = state.queue[b, r]
        cap, granted = cap_of_round(
            jobs.total_load[b, job],
            jobs.least_energy[b, job],
            jobs.energy_cap_ratio[b, job],
            jobs.energy_seed[b],
            job,
            state.round[b, job],
        )
        state.cap[b, job] = cap
        state.granted[b, job] = granted
        state.round[b, job] += 1
        fails = not affords(jobs.least_energy[b, job], state.cap[b, job])
        state.failed[b, job] = fails
        s.failures += fails
    return has_candidate(config, state, b)


@helper
def skip_ticks(config: Any, state: State, b: int) -> None:
    """Pass over the ticks before the clock, which nobody waited for."""
    s = state.scalars[b]
    if s.ticks * config.tick < s.clock:
        s.ticks = int(math.floor(s.clock / config.tick)) - 1
        while s.ticks * config.tick < s.clock:
            s.ticks += 1


@helper
def run_on(
    config: Any, jobs: Jobs, state: State, log: Log, membership: Membership, b: int, changed: bool
) -> None:
    """Let time pass until a decision is due, the episode ends, or the log is short of rows.

    ``changed``: whether tasks were launched or completed since the shares of DRC were computed; what is
    reserved has been counted again.
    """
    s = state.scalars[b]
    s.deciding = 0
    s.short = 0
    while True:
        if changed:
            if s.logged + s.running > log.task.shape[1]:
                s.short = 1
                return
            distribute(config, jobs, state, log, b)
        if s.completed == s.jobs:
            s.finished = 1
            return
        exact = math.inf
        if s.arrived < s.jobs:
            exact = jobs.arrival[b, s.arrived]
        if config.rounds != ON_EVENTS and s.waiting > 0:  # a tick with nobody waiting changes nothing
            exact = min(exact, s.ticks * config.tick)
        now = exact
        for q in range(s.running):
            now = min(now, state.end[b, q])
        if exact < math.inf and same_instant(now, exact):
            now = exact
        if now > config.max_time:
            s.charged += work_until(state, log, b, config.max_time)
            skip_ticks(config, state, b)
            s.was_arrival = 0
            s.was_completion = 0
            s.was_tick = 0
            s.finished = 1
            s.truncated = 1
            return
        s.charged += work_until(state, log, b, now)
        s.clock = now
        s.was_arrival = 0
        while s.arrived < s.jobs and jobs.arrival[b, s.arrived] <= now:
            state.queue[b, s.waiting] = s.arrived
            state.round[b, s.arrived] = 0
            s.waiting += 1
            s.arrived += 1
            s.was_arrival = 1
        s.was_completion = complete_tasks(state, b) > 0
        skip_ticks(config, state, b)
        s.was_tick = config.rounds != ON_EVENTS and s.ticks * config.tick == now
        if s.was_tick:
            s.ticks += 1
        changed = s.was_completion != 0
        if changed:
            recount(jobs, state, membership, b)
        due = s.was_tick != 0 if config.rounds == ON_TICKS else s.was_arrival != 0 or changed
        if config.rounds == ON_ALL:
            due = due or s.was_tick != 0
        if due and s.waiting > 0 and now < config.max_time:
            if open_round(config, jobs, state, b):
                s.deciding = 1
                return


@helper
def launch(jobs: Jobs, state: State, b: int) -> None:
    """Put the job in row ``scalars.row`` to work as planned."""
    s = state.scalars[b]
    job = state.queue[b, s.row]
    first = jobs.first_task[b, job]
    count = tasks_of(jobs, b, job)
    energy = 0.0
    for i in range(count):
        q = s.running
        j = state.placement[b, i]
        leq = jobs.load[b, first + i] / jobs.efficiency[b, first + i, j]
        state.task[b, q] = first + i
        state.job[b, q] = job
        state.server[b, q] = j
        state.leq[b, q] = leq
        state.remaining[b, q] = leq
        state.base[b, q] = state.vcpu[b, i]
        state.extra[b, q] = 0.0
        state.run[b, q] = -1
        s.running = q + 1
        energy += leq
    state.unfinished[b, job] = count
    state.launch[b, job] = s.clock
    state.energy[b, job] = energy
    for r in range(s.row, s.waiting - 1):
        state.queue[b, r] = state.queue[b, r + 1]
        state.first_row[b, r] = state.first_row[b, r + 1]
    s.waiting -= 1
    if s.row < s.held:
        s.held -= 1


@helper
def hold_tasks(config: Any, jobs: Jobs, state: State, observation: Observation, b: int, count: int) -> None:
    """Bring the tasks of the first ``count`` waiting jobs into the observation; those there stay."""
    s = state.scalars[b]
    servers = jobs.cpu.shape[1]
    room = observation.load.shape[1]
    while s.held < count:
        job = state.queue[b, s.held]
        tasks = tasks_of(jobs, b, job)
        if s.task_end + tasks > room:  # those of launched jobs leave
            end = 0
            for r in range(s.held):
                old = state.first_row[b, r]
                for i in range(tasks_of(jobs, b, state.queue[b, r])):
                    observation.load[b, end] = observation.load[b, old + i]
                    for j in range(servers):
                        observation.efficiency[b, end, j] = observation.efficiency[b, old + i, j]
                    if i == 0:
                        state.first_row[b, r] = end
                    end += 1
            clear_tasks(observation, b, end, s.task_end)
            s.task_end = end
        first = jobs.first_task[b, job]
        state.first_row[b, s.held] = s.task_end
        for i in range(tasks):
            observation.load[b, s.task_end + i] = jobs.load[b, first + i]
            for j in range(servers):
                observation.efficiency[b, s.task_end + i, j] = jobs.efficiency[b, first + i, j]
        s.task_end += tasks
        s.held += 1


@helper
def clear_tasks(observation: Observation, b: int, first: int, last: int) -> None:
    """Set task rows of the observation to zero."""
    for row in range(first, last):
        observation.load[b, row] = 0.0
        for j in range(observation.efficiency.shape[2]):
            observation.efficiency[b, row, j] = 0.0


@helper
def usable_energy(jobs: Jobs, state: State, b: int, job: int, whole: bool) -> float:
    """The least energy of a job on servers whose groups all have something available (inf: none).

    ``whole``: all servers are such.
    """
    if whole:
        return jobs.least_energy[b, job]
    total = 0.0
    for q in range(jobs.first_task[b, job], jobs.first_task[b, job + 1]):
        best = 0.0
        for j in range(jobs.cpu.shape[1]):
            if jobs.efficiency[b, q, j] > best and state.alive[b, j]:
                best = jobs.efficiency[b, q, j]
        if best == 0.0:
            return math.inf
        total += jobs.load[b, q] / best
    return total


@helper
def all_alive(state: State, b: int) -> Any:
    """Whether every group has something available."""
    for k in range(state.limits.shape[1]):
        if state.limits[b, k] <= 0.0:
            return False
    return True


@helper
def can_place(jobs: Jobs, state: State, b: int, job: int, task: int, server: int) -> Any:
    """Whether the task may go to the server (view place).

    To where it needs least it always may: what has been placed left enough for it, whatever the rounding of
    another sum says.
    """
    q = jobs.first_task[b, job] + task
    leq = jobs.load[b, q] / jobs.efficiency[b, q, server]
    whole = state.scalars[b].energy + leq + state.rest[b, task + 1]
    fits = affords(whole, state.cap[b, job]) or leq <= state.least[b, task]
    return fits and state.alive[b, server] != 0


@helper
def start_planning(
    config: Any, jobs: Jobs, state: State, membership: Membership, scratch: PlanScratch, b: int, r: int
) -> None:
    """Begin to plan the job in row r task by task."""
    s = state.scalars[b]
    job = state.queue[b, r]
    count = tasks_of(jobs, b, job)
    s.open_row = r
    s.next_task = 0
    s.moves = 0
    if config.mode == SEARCH:
        first = jobs.first_task[b, job]
        most_efficient(first, count, jobs.load[b], jobs.efficiency[b], state.placement[b])
        s.jct, s.energy = evaluate(
            first,
            count,
            jobs.load[b],
            jobs.efficiency[b],
            membership,
            state.limits[b],
            state.placement[b],
            scratch,
        )
        return
    s.energy = 0.0
    s.jct = 0.0
    for k in range(state.placed.shape[1]):
        state.placed[b, k] = 0
        state.group_load[b, k] = 0.0
    for i in range(count):
        state.placement[b, i] = -1
    state.rest[b, count] = 0.0
    for i in range(count - 1, -1, -1):
        q = jobs.first_task[b, job] + i
        best = 0.0
        for j in range(jobs.cpu.shape[1]):
            if jobs.efficiency[b, q, j] > best and state.alive[b, j]:
                best = jobs.efficiency[b, q, j]
        state.least[b, i] = jobs.load[b, q] / best
        state.rest[b, i] = state.rest[b, i + 1] + state.least[b, i]


@helper
def conclude(jobs: Jobs, state: State, membership: Membership, scratch: PlanScratch, b: int, r: int) -> None:
    """Decide to launch the job in row r as placed, with vCPU by Eq. 16; it fails if that takes for ever."""
    s = state.scalars[b]
    job = state.queue[b, r]
    count = tasks_of(jobs, b, job)
    jct, _ = evaluate(
        jobs.first_task[b, job],
        count,
        jobs.load[b],
        jobs.efficiency[b],
        membership,
        state.limits[b],
        state.placement[b],
        scratch,
    )
    s.row = r
    s.open_row = -1
    if jct == math.inf:
        s.decision = FAIL
        return
    optra_vcpu(count, state.placement[b], membership, scratch, state.vcpu[b])
    s.decision = LAUNCH


@helper
def write_job_tokens(
    config: Any,
    jobs: Jobs,
    state: State,
    observation: Observation,
    membership: Membership,
    scratch: PlanScratch,
    b: int,
    count: int,
) -> None:
    """Write the tokens of the waiting jobs, and what servers' tokens say of all tasks."""
    s = state.scalars[b]
    servers = jobs.cpu.shape[1]
    pool = largest_capacity(membership, state.limits[b], scratch)
    tokens = observation.job_tokens
    for r in range(count):
        job = state.queue[b, r]
        tasks = tasks_of(jobs, b, job)
        age = s.clock - jobs.arrival[b, job]
        load = jobs.total_load[b, job]
        least = jobs.least_energy[b, job]
        tokens[b, r, 0] = age / (age + TIME_SCALE)
        tokens[b, r, 1] = tasks / (tasks + COUNT_SCALE)
        tokens[b, r, 2] = load / (load + LOAD_SCALE * s.capacity)
        tokens[b, r, 3] = min(least / state.cap[b, job], 1.0)
        tokens[b, r, 4] = state.failed[b, job]
        tokens[b, r, 5] = 1.0
        if pool > 0.0:
            needed = least / pool
            tokens[b, r, 5] = needed / (needed + TIME_SCALE)
        tokens[b, r, 6] = r == s.open_row
    for r in range(count, s.shown):
        for f in range(JOB_FEATURES):
            tokens[b, r, f] = 0.0
    top = 0.0
    for j in range(servers):
        top = max(top, jobs.cpu[b, j])
    tokens = observation.server_tokens
    free = 0.0
    for j in range(servers):
        free += state.available[b, j]
        tokens[b, j, 0] = jobs.cpu[b, j] / top
        tokens[b, j, 1] = state.available[b, j] / jobs.cpu[b, j]
        tokens[b, j, 2] = 0.0
        tokens[b, j, 3] = state.alive[b, j]
        for f in range(4, SERVER_FEATURES):
            tokens[b, j, f] = 0.0
    for q in range(s.running):
        tokens[b, state.server[b, q], 2] += 1.0
    for j in range(servers):
        tokens[b, j, 2] = tokens[b, j, 2] / (tokens[b, j, 2] + COUNT_SCALE)
    values = observation.global_tokens
    values[b, 0] = s.was_arrival
    values[b, 1] = s.was_completion
    values[b, 2] = s.was_tick
    values[b, 3] = min(free / s.capacity, 1.0)
    values[b, 4] = s.waiting / (s.waiting + COUNT_SCALE)
    values[b, 5] = (s.waiting - count) / (s.waiting - count + COUNT_SCALE)
    values[b, 6] = s.running / (s.running + 4.0 * COUNT_SCALE)
    values[b, 7] = min(max((s.ticks * config.tick - s.clock) / config.tick, 0.0), 1.0)


@helper
def show_servers(
    config: Any, jobs: Jobs, state: State, observation: Observation, membership: Membership, b: int
) -> None:
    """Write which servers can take the next task of the job being placed, and their tokens (view place)."""
    s = state.scalars[b]
    job = state.queue[b, s.open_row]
    q = jobs.first_task[b, job] + s.next_task
    tokens = observation.server_tokens
    for j in range(jobs.cpu.shape[1]):
        efficiency = jobs.efficiency[b, q, j]
        leq = jobs.load[b, q] / efficiency
        legal = can_place(jobs, state, b, job, s.next_task, j)
        if config.mask:
            observation.action_mask[b, config.window + 1 + j] = legal
        if config.features:
            time = time_on(j, leq, membership, state.limits[b], state.group_load[b])
            tokens[b, j, 4] = efficiency
            tokens[b, j, 5] = 1.0 if time == math.inf else time / (time + TIME_SCALE)
            tokens[b, j, 6] = legal


@helper
def write_plan_tokens(
    config: Any,
    jobs: Jobs,
    state: State,
    observation: Observation,
    membership: Membership,
    scratch: PlanScratch,
    b: int,
) -> None:
    """Write what tokens say of the job being planned."""
    s = state.scalars[b]
    progress = 0.0
    spent = 0.0
    length = 0.0
    if s.open_row >= 0:
        job = state.queue[b, s.open_row]
        spent = min(s.energy / state.cap[b, job], 1.0)
        length = 1.0 if s.jct == math.inf else s.jct / (s.jct + TIME_SCALE)
        progress = s.moves / (s.moves + COUNT_SCALE)
        if config.mode == PLACE:
            progress = s.next_task / tasks_of(jobs, b, job)
    if config.mode == SEARCH:
        write_moves(jobs, state, observation, membership, scratch, b)
    values = observation.global_tokens
    values[b, 8] = progress
    values[b, 9] = spent
    values[b, 10] = length


@helper
def write_moves(
    jobs: Jobs, state: State, observation: Observation, membership: Membership, scratch: PlanScratch, b: int
) -> None:
    """Write the tokens of the moves of the job being planned; zero where there are none (view search)."""
    s = state.scalars[b]
    tokens = observation.move_tokens
    servers = jobs.cpu.shape[1]
    written = 0
    if s.open_row >= 0:
        job = state.queue[b, s.open_row]
        first = jobs.first_task[b, job]
        written = tasks_of(jobs, b, job)
        evaluate(
            first,
            written,
            jobs.load[b],
            jobs.efficiency[b],
            membership,
            state.limits[b],
            state.placement[b],
            scratch,
        )
        for i in range(written):
            own = server_time(state.placement[b, i], membership, scratch)
            for j in range(servers):
                leq = jobs.load[b, first + i] / jobs.efficiency[b, first + i, j]
                time = own
                if j != state.placement[b, i]:
                    time = move_time(i, j, leq, state.placement[b], membership, state.limits[b], scratch)
                energy = s.energy - scratch.leq[i] + leq
                row = i * servers + j
                tokens[b, row, 0] = jobs.efficiency[b, first + i, j]
                tokens[b, row, 1] = 1.0 if time == math.inf else time / (time + TIME_SCALE)
                tokens[b, row, 2] = (
                    affords(energy, state.cap[b, job]) and time < math.inf and time < own * (1.0 - STRICT)
                )
    for row in range(written * servers, tokens.shape[1]):
        if tokens[b, row, 0] == 0.0:
            break
        for f in range(MOVE_FEATURES):
            tokens[b, row, f] = 0.0


@helper
def write_mask(
    config: Any,
    jobs: Jobs,
    state: State,
    observation: Observation,
    membership: Membership,
    scratch: PlanScratch,
    b: int,
    count: int,
) -> None:
    """Write the mask of feasible actions of environment b."""
    s = state.scalars[b]
    servers = jobs.cpu.shape[1]
    window = config.window
    mask = observation.action_mask
    for r in range(max(count, s.shown)):
        mask[b, r] = 0
    mask[b, window] = s.open_row < 0
    if s.open_row < 0:
        whole = all_alive(state, b)
        for r in range(count):
            job = state.queue[b, r]
            fits = state.failed[b, job] == 0
            if config.mode == PLACE and fits:
                fits = affords(usable_energy(jobs, state, b, job, whole), state.cap[b, job])
            mask[b, r] = fits
    if config.mode == PLACE:
        for j in range(servers):
            mask[b, window + 1 + j] = 0  # those of an open job: see show_servers
    elif config.mode == SEARCH:
        last = mask.shape[1] - 1
        for i in range(window + 1, mask.shape[1]):
            mask[b, i] = 0
        if s.open_row >= 0:
            mark_moves(jobs, state, membership, scratch, b, mask[b, window + 1 :])
            mask[b, last] = 1


@helper
def mark_moves(
    jobs: Jobs, state: State, membership: Membership, scratch: PlanScratch, b: int, mask: Any
) -> int:
    """Mark the legal moves of the job being planned; returns how many there are."""
    s = state.scalars[b]
    job = state.queue[b, s.open_row]
    first = jobs.first_task[b, job]
    count = tasks_of(jobs, b, job)
    evaluate(
        first,
        count,
        jobs.load[b],
        jobs.efficiency[b],
        membership,
        state.limits[b],
        state.placement[b],
        scratch,
    )
    return search_mask(
        first,
        count,
        jobs.load[b],
        jobs.efficiency[b],
        membership,
        state.limits[b],
        s.energy,
        state.cap[b, job],
        state.placement[b],
        scratch,
        mask,
    )


@helper
def observe(
    config: Any,
    jobs: Jobs,
    state: State,
    observation: Observation,
    exchange: Exchange,
    membership: Membership,
    scratch: PlanScratch,
    b: int,
) -> None:
    """Write the observation of environment b."""
    s = state.scalars[b]
    count = min(s.waiting, config.window)
    if s.deciding == 0:
        count = 0
    steady = s.open_row >= 0 and s.told == s.open_row  # only the plan of a job has changed
    s.told = s.open_row
    if config.mask and config.mode != PLAN and not (steady and config.mode == PLACE):
        write_mask(config, jobs, state, observation, membership, scratch, b, count)
    if config.features:
        if not steady:
            write_job_tokens(config, jobs, state, observation, membership, scratch, b, count)
        write_plan_tokens(config, jobs, state, observation, membership, scratch, b)
    else:
        if not steady:
            hold_tasks(config, jobs, state, observation, b, count)
            write_units(config, jobs, state, observation, b, count)
        if config.mode == PLACE or config.mode == SEARCH:
            write_plan(config, jobs, state, observation, b)
    if config.mode == PLACE and s.open_row >= 0:
        show_servers(config, jobs, state, observation, membership, b)
    if steady:
        return
    longest = 0
    for r in range(count):
        observation.job_mask[b, r] = 1
        longest = max(longest, tasks_of(jobs, b, state.queue[b, r]))
    for r in range(count, s.shown):
        observation.job_mask[b, r] = 0
    s.shown = count
    exchange.rows[b] = 1 + longest


@helper
def write_units(config: Any, jobs: Jobs, state: State, observation: Observation, b: int, count: int) -> None:
    """Write the observation of environment b in exact units, but for the tasks of waiting jobs."""
    s = state.scalars[b]
    observation.clock[b, 0] = s.clock
    observation.event[b, 0] = s.was_arrival
    observation.event[b, 1] = s.was_completion
    observation.event[b, 2] = s.was_tick
    observation.time_to_tick[b, 0] = max(s.ticks * config.tick - s.clock, 0.0)
    observation.waiting[b, 0] = s.waiting
    observation.backlog[b, 0] = s.waiting - count
    for r in range(count):
        job = state.queue[b, r]
        observation.job[b, r] = job
        observation.arrival[b, r] = jobs.arrival[b, job]
        observation.age[b, r] = s.clock - jobs.arrival[b, job]
        observation.tasks[b, r] = tasks_of(jobs, b, job)
        observation.first_task[b, r] = state.first_row[b, r]
        observation.total_load[b, r] = jobs.total_load[b, job]
        observation.least_energy[b, r] = jobs.least_energy[b, job]
        observation.energy_cap[b, r] = state.cap[b, job]
        observation.failed[b, r] = state.failed[b, job]
    for r in range(count, s.shown):
        observation.job[b, r] = 0
        observation.arrival[b, r] = 0.0
        observation.age[b, r] = 0.0
        observation.tasks[b, r] = 0
        observation.first_task[b, r] = 0
        observation.total_load[b, r] = 0.0
        observation.least_energy[b, r] = 0.0
        observation.energy_cap[b, r] = 0.0
        observation.failed[b, r] = 0
    rows = min(s.running, config.running_window)
    observation.running[b, 0] = s.running
    for q in range(rows):
        observation.run_job[b, q] = state.job[b, q]
        observation.run_server[b, q] = state.server[b, q]
        observation.run_leq[b, q] = state.leq[b, q]
        observation.run_remaining[b, q] = max(state.remaining[b, q], 0.0)
        observation.run_base[b, q] = state.base[b, q]
        observation.run_extra[b, q] = state.extra[b, q]
    for q in range(rows, s.shown_running):
        observation.run_job[b, q] = 0
        observation.run_server[b, q] = 0
        observation.run_leq[b, q] = 0.0
        observation.run_remaining[b, q] = 0.0
        observation.run_base[b, q] = 0.0
        observation.run_extra[b, q] = 0.0
    s.shown_running = rows


@helper
def write_plan(config: Any, jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """Write, in exact units, what is planned of the job being planned (views place and search)."""
    s = state.scalars[b]
    observation.open_job[b] = s.open_row if s.open_row >= 0 else config.window
    tasks = 0
    if s.open_row >= 0:
        tasks = tasks_of(jobs, b, state.queue[b, s.open_row])
    observation.next_task[b] = config.most_tasks
    if config.mode == PLACE and s.open_row >= 0:
        observation.next_task[b] = s.next_task
    for i in range(tasks):
        observation.placement[b, i] = state.placement[b, i]
    for i in range(tasks, config.most_tasks):
        observation.placement[b, i] = -1
    observation.energy[b, 0] = s.energy if s.open_row >= 0 else 0.0


@helper
def begin(config: Any, jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """Start an episode on the loaded workload, at time 0 before any event."""
    s = state.scalars[b]
    s.capacity = 0.0
    for j in range(jobs.cpu.shape[1]):
        s.capacity += jobs.cpu[b, j]
    alone = 0.0
    for job in range(s.jobs):
        state.launch[b, job] = math.nan
        state.completion[b, job] = math.nan
        state.energy[b, job] = 0.0
        state.failed[b, job] = 0
        state.granted[b, job] = False
        alone += jobs.least_energy[b, job]
    s.reward_scale = 1.0 / s.jobs
    if config.normalize:
        s.reward_scale = s.capacity / alone  # over the jobs' mean time with all servers to themselves
    s.clock = 0.0
    s.used = 0.0
    s.acted = 0
    s.charged = 0.0
    s.energy = 0.0
    s.jct = 0.0
    s.arrived = 0
    s.completed = 0
    s.waiting = 0
    s.running = 0
    s.ticks = 0
    s.was_arrival = 0
    s.was_completion = 0
    s.was_tick = 0
    s.open_row = -1
    s.told = -1
    s.next_task = 0
    s.moves = 0
    s.held = 0
    if not config.features:
        clear_tasks(observation, b, 0, s.task_end)
    s.task_end = 0
    s.logged = 0
    s.finished = 0
    s.truncated = 0
    s.failures = 0
    s.rounds = 0
    s.repaired = 0


@pure_kernel
def step(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """Advance the environments, each by its ``command`` [B]: ACT after a decoded decision, BEGIN an episode.

    ``table`` packs Constants, Jobs, State, Log, Observation, Exchange, ``tools`` Membership and PlanScratch.
    Returns how many episodes ended; or SHORT if the log is for environments whose ``scalars.short`` is set:
    give it more rows, and these the command RESUME.
    """
    constants, jobs, state, log, observation, exchange = unpack(table)
    membership, scratch = unpack_tools(tools)
    config = constants.config[0]
    ended = 0
    short = False
    for b in range(command.shape[0]):
        if command[b] == SKIP:
            continue
        s = state.scalars[b]
        launched = False
        runs = True  # until the next decision
        if command[b] != RESUME:
            exchange.terminated[b] = False
            exchange.truncated[b] = False
            if command[b] == BEGIN:
                exchange.repaired[b] = False
                begin(config, jobs, state, observation, b)
                launched = True
            else:
                s.acted = 1
                s.repaired += exchange.repaired[b]
                if s.decision == LAUNCH:
                    launch(jobs, state, b)
                    launched = True
                elif s.decision == FAIL:
                    state.failed[b, state.queue[b, s.row]] = 1
                    s.failures += 1
                runs = s.decision == END
                if s.decision == LAUNCH or s.decision == FAIL:
                    runs = not has_candidate(config, state, b)
            if launched:
                recount(jobs, state, membership, b)
        if runs:
            run_on(config, jobs, state, log, membership, b, command[b] != BEGIN)
        if s.short:
            short = True
            continue
        exchange.reward[b] = 0.0
        if s.acted:  # what passes before the first decision is charged with it
            exchange.reward[b] = -s.charged * s.reward_scale
            s.charged = 0.0
        if s.finished and s.acted:
            exchange.terminated[b] = s.truncated == 0
            exchange.truncated[b] = s.truncated == 1
        observe(config, jobs, state, observation, exchange, membership, scratch, b)
    for b in range(command.shape[0]):
        if command[b] != SKIP and state.scalars[b].acted:
            ended += state.scalars[b].finished
    return SHORT if short else ended


@helper
def may_launch(config: Any, state: State, b: int, r: int) -> Any:
    """Whether row r is a visible waiting job that has not failed in this round."""
    s = state.scalars[b]
    if s.deciding == 0 or r < 0 or r >= min(s.waiting, config.window):
        return False  # nothing is decided in an episode that was over before its first round
    return state.failed[b, state.queue[b, r]] == 0


@pure_kernel
def decode_pick(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View pick: plan the job in the chosen row by TaPRA-fast; the last choice ends the round.

    Every decode kernel takes what :func:`step` takes. It sets ``scalars.decision`` and ``exchange.repaired``
    and returns 0; or -(b + 1) for the first environment whose action is malformed, or with strict actions
    infeasible. Then nothing has changed.
    """
    constants, jobs, state, log, observation, exchange = unpack(table)
    membership, scratch = unpack_tools(tools)
    config = constants.config[0]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            r = exchange.choices[b, 0]
            if r < 0 or r > config.window:
                return -(b + 1)
            if config.strict and r < config.window and not may_launch(config, state, b, r):
                return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        s = state.scalars[b]
        r = exchange.choices[b, 0]
        s.decision = END
        exchange.repaired[b] = r < config.window and not may_launch(config, state, b, r)
        if r == config.window or exchange.repaired[b]:
            continue
        job = state.queue[b, r]
        count = tasks_of(jobs, b, job)
        jct = tapra_fast(
            jobs.first_task[b, job],
            count,
            jobs.load[b],
            jobs.efficiency[b],
            membership,
            state.limits[b],
            state.cap[b, job],
            state.placement[b],
            scratch,
        )
        s.row = r
        s.decision = FAIL
        if jct < math.inf:
            optra_vcpu(count, state.placement[b], membership, scratch, state.vcpu[b])
            s.decision = LAUNCH
    return 0


@helper
def place_fits(
    config: Any, jobs: Jobs, state: State, membership: Membership, exchange: Exchange, b: int, choice: int
) -> Any:
    """Whether a choice of view place is feasible."""
    s = state.scalars[b]
    window = config.window
    if s.open_row >= 0:
        if choice <= window:
            return False
        job = state.queue[b, s.open_row]
        return can_place(jobs, state, b, job, s.next_task, choice - window - 1)
    if choice >= window:
        return choice == window
    if not may_launch(config, state, b, choice):
        return False
    job = state.queue[b, choice]
    whole = all_alive(state, b)
    return affords(usable_energy(jobs, state, b, job, whole), state.cap[b, job])


@pure_kernel
def decode_place(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View place: a row, or the end of the round; then W + 1 + server for each task of the job, in order.

    Repair: a row that cannot be launched ends the round; a server that cannot take the task becomes the one
    that can with the least equivalent load (ties: the lowest).
    """
    constants, jobs, state, log, observation, exchange = unpack(table)
    membership, scratch = unpack_tools(tools)
    config = constants.config[0]
    window = config.window
    servers = jobs.cpu.shape[1]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            choice = exchange.choices[b, 0]
            if choice < 0 or choice > window + servers:
                return -(b + 1)
            if config.strict and not place_fits(config, jobs, state, membership, exchange, b, choice):
                return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        s = state.scalars[b]
        choice = exchange.choices[b, 0]
        fits = place_fits(config, jobs, state, membership, exchange, b, choice)
        exchange.repaired[b] = not fits
        if s.open_row < 0:
            if not fits or choice == window:
                s.decision = END
            else:
                start_planning(config, jobs, state, membership, scratch, b, choice)
                s.decision = OPEN
            continue
        job = state.queue[b, s.open_row]
        q = jobs.first_task[b, job] + s.next_task
        server = choice - window - 1
        if not fits:
            best = math.inf
            for j in range(servers):
                if can_place(jobs, state, b, job, s.next_task, j):
                    leq = jobs.load[b, q] / jobs.efficiency[b, q, j]
                    if leq < best:
                        best = leq
                        server = j
        leq = jobs.load[b, q] / jobs.efficiency[b, q, server]
        state.placement[b, s.next_task] = server
        s.energy += leq
        s.jct = max(s.jct, time_on(server, leq, membership, state.limits[b], state.group_load[b]))
        add_load(server, leq, membership, state.placed[b], state.group_load[b])
        s.next_task += 1
        s.decision = OPEN
        if s.next_task == tasks_of(jobs, b, job):
            conclude(jobs, state, membership, scratch, b, s.open_row)
    return 0


@helper
def has_move(jobs: Jobs, state: State, membership: Membership, scratch: PlanScratch, b: int) -> Any:
    """Whether the job being planned has a legal move; the scratch is that of its placement."""
    s = state.scalars[b]
    job = state.queue[b, s.open_row]
    for i in range(tasks_of(jobs, b, job)):
        for j in range(jobs.cpu.shape[1]):
            if move_fits(jobs, state, membership, scratch, b, i, j):
                return True
    return False


@helper
def move_fits(
    jobs: Jobs, state: State, membership: Membership, scratch: PlanScratch, b: int, task: int, server: int
) -> Any:
    """Whether a move of the job being planned is legal; the scratch is that of its placement."""
    s = state.scalars[b]
    job = state.queue[b, s.open_row]
    return is_valid_move(
        task,
        server,
        jobs.first_task[b, job],
        tasks_of(jobs, b, job),
        jobs.load[b],
        jobs.efficiency[b],
        membership,
        state.limits[b],
        s.energy,
        state.cap[b, job],
        state.placement[b],
        scratch,
    )


@helper
def weigh(jobs: Jobs, state: State, membership: Membership, scratch: PlanScratch, b: int) -> None:
    """Evaluate the placement of the job being planned."""
    s = state.scalars[b]
    job = state.queue[b, s.open_row]
    s.jct, s.energy = evaluate(
        jobs.first_task[b, job],
        tasks_of(jobs, b, job),
        jobs.load[b],
        jobs.efficiency[b],
        membership,
        state.limits[b],
        state.placement[b],
        scratch,
    )


@helper
def search_fits(
    config: Any,
    jobs: Jobs,
    state: State,
    membership: Membership,
    scratch: PlanScratch,
    exchange: Exchange,
    b: int,
    choice: int,
) -> Any:
    """Whether a choice of view search is feasible."""
    s = state.scalars[b]
    window = config.window
    servers = jobs.cpu.shape[1]
    if s.open_row < 0:
        return choice == window or may_launch(config, state, b, choice)
    if choice <= window:
        return False
    move = choice - window - 1
    if move == config.most_tasks * servers:
        return True
    task = move // servers
    if task >= tasks_of(jobs, b, state.queue[b, s.open_row]):
        return False
    weigh(jobs, state, membership, scratch, b)
    return move_fits(jobs, state, membership, scratch, b, task, move % servers)


@pure_kernel
def decode_search(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View search: a row, or the end of the round; then moves W + 1 + task * M + server, or the launch.

    Planning starts with every task on its most efficient server, and ends when no move is legal or there
    were ``max_moves``. Repair: a row that cannot be launched ends the round; an illegal move launches.
    """
    constants, jobs, state, log, observation, exchange = unpack(table)
    membership, scratch = unpack_tools(tools)
    config = constants.config[0]
    window = config.window
    servers = jobs.cpu.shape[1]
    last = window + 1 + config.most_tasks * servers
    for b in range(command.shape[0]):
        if names_action(command[b]):
            choice = exchange.choices[b, 0]
            if choice < 0 or choice > last:
                return -(b + 1)
            if config.strict:
                if not search_fits(config, jobs, state, membership, scratch, exchange, b, choice):
                    return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        s = state.scalars[b]
        choice = exchange.choices[b, 0]
        fits = search_fits(config, jobs, state, membership, scratch, exchange, b, choice)
        exchange.repaired[b] = not fits
        s.decision = OPEN
        if s.open_row < 0:
            if not fits or choice == window:
                s.decision = END
                continue
            start_planning(config, jobs, state, membership, scratch, b, choice)
        elif fits and choice < last:
            move = choice - window - 1
            state.placement[b, move // servers] = move % servers
            s.moves += 1
        else:
            conclude(jobs, state, membership, scratch, b, s.open_row)
            continue
        weigh(jobs, state, membership, scratch, b)
        if s.moves >= config.max_moves or not has_move(jobs, state, membership, scratch, b):
            conclude(jobs, state, membership, scratch, b, s.open_row)
    return 0


@helper
def finite_rows(exchange: Exchange, b: int) -> Any:
    """Whether all numbers of an action that count are finite."""
    for r in range(exchange.rows[b]):
        for c in range(exchange.actions.shape[2]):
            if not math.isfinite(exchange.actions[b, r, c]):
                return False
    return True


@helper
def chosen_row(exchange: Exchange, config: Any, b: int) -> int:
    """The row that an action of view plan names; -1 if it is none, the window for the end of the round."""
    row = exchange.actions[b, 0, 0]
    if row < 0.0 or row > config.window or row != math.floor(row):
        return -1
    return int(row)


@helper
def servers_fit(exchange: Exchange, b: int, count: int, servers: int) -> Any:
    """Whether an action of view plan names a server for each task."""
    for i in range(count):
        server = exchange.actions[b, 1 + i, 0]
        if server < 0.0 or server >= servers or server != math.floor(server):
            return False
    return True


@helper
def vcpu_given(exchange: Exchange, b: int, count: int) -> Any:
    """Whether an action of view plan says how many vCPU tasks get."""
    for i in range(count):
        if exchange.actions[b, 1 + i, 1] != 0.0:
            return True
    return False


@helper
def vcpu_fit(state: State, membership: Membership, exchange: Exchange, b: int, count: int) -> Any:
    """Whether the vCPU given for the tasks as placed are positive and within every group's limit."""
    total = state.group_load
    for k in range(total.shape[1]):
        total[b, k] = 0.0
    for i in range(count):
        vcpu = exchange.actions[b, 1 + i, 1]
        if vcpu <= 0.0:
            return False
        j = state.placement[b, i]
        for e in range(membership.server_start[j], membership.server_start[j + 1]):
            total[b, membership.server_group[e]] += vcpu
    for k in range(total.shape[1]):
        if total[b, k] > state.limits[b, k] * (1.0 + ROUNDING):
            return False
    return True


@helper
def take_servers(exchange: Exchange, state: State, b: int, count: int, servers: int) -> None:
    """The placement that an action of view plan names, rounded and clipped."""
    for i in range(count):
        server = exchange.actions[b, 1 + i, 0]
        state.placement[b, i] = int(math.floor(min(max(server, 0.0), servers - 1.0) + 0.5))


@helper
def plan_fits(
    config: Any,
    jobs: Jobs,
    state: State,
    membership: Membership,
    scratch: PlanScratch,
    exchange: Exchange,
    b: int,
) -> Any:
    """Whether an action of view plan is feasible; writes the placement."""
    servers = jobs.cpu.shape[1]
    r = chosen_row(exchange, config, b)
    if r == config.window:
        return True
    if not may_launch(config, state, b, r):
        return False
    job = state.queue[b, r]
    count = tasks_of(jobs, b, job)
    take_servers(exchange, state, b, count, servers)
    if not servers_fit(exchange, b, count, servers):
        return False
    _, energy = evaluate(
        jobs.first_task[b, job],
        count,
        jobs.load[b],
        jobs.efficiency[b],
        membership,
        state.limits[b],
        state.placement[b],
        scratch,
    )
    if not affords(energy, state.cap[b, job]):
        return False
    return not vcpu_given(exchange, b, count) or vcpu_fit(state, membership, exchange, b, count)


@pure_kernel
def decode_plan(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View plan: (row or W, 0), then (server, vCPU) of each task; all vCPU 0: those of Eq. 16.

    Repair: a row that cannot be launched ends the round; servers are rounded and clipped; energy above the
    cap is reduced by REC (if that fails the job has failed in this round); infeasible vCPU become those of
    Eq. 16.
    """
    constants, jobs, state, log, observation, exchange = unpack(table)
    membership, scratch = unpack_tools(tools)
    config = constants.config[0]
    servers = jobs.cpu.shape[1]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            if not finite_rows(exchange, b):
                return -(b + 1)
            if config.strict:
                if not plan_fits(config, jobs, state, membership, scratch, exchange, b):
                    return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        s = state.scalars[b]
        fits = plan_fits(config, jobs, state, membership, scratch, exchange, b)
        exchange.repaired[b] = not fits
        s.decision = END
        r = chosen_row(exchange, config, b)
        if r == config.window or not may_launch(config, state, b, r):
            continue
        job = state.queue[b, r]
        count = tasks_of(jobs, b, job)
        s.row = r
        if not fits:
            take_servers(exchange, state, b, count, servers)
            reduced = reduce_energy(
                jobs.first_task[b, job],
                count,
                jobs.load[b],
                jobs.efficiency[b],
                membership,
                state.limits[b],
                state.cap[b, job],
                False,
                state.placement[b],
                scratch,
            )
            if not reduced:
                s.decision = FAIL
                continue
        if vcpu_given(exchange, b, count) and vcpu_fit(state, membership, exchange, b, count):
            for i in range(count):
                state.vcpu[b, i] = exchange.actions[b, 1 + i, 1]
            s.decision = LAUNCH
        else:
            conclude(jobs, state, membership, scratch, b, r)
    return 0
