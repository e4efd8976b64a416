"""State and compiled dynamics of FlowtimePacking, batch-first: axis 0 of every array is the environment.

Time is slots 1, 2, ...; a job that arrives at a is visible in the slots t > a. A slot is decided, worked
off, and charged; slots without a visible job are skipped. Work is whole core-slots.

Visible unfinished jobs are rows in order of arrival (equals by index), at the front of every [B, N, ...]
array; rows behind are zero. A plain job has one phase with one task; a job of kind mapreduce two phases
with a task each or more, whose cores go to its tasks in index order.

A ``decode`` kernel, one per view, turns actions into grants (cores of each row on each server);
:func:`step` works the slot off and writes the observation.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import (
    B1_1,
    F4_2,
    F4_3,
    F8_1,
    F8_2,
    F8_3,
    I1_2,
    I1_3,
    I4_2,
    I4_3,
    I8_1,
    I8_2,
    I8_3,
    helper,
    pure_kernel,
    record_dtype,
    unpacker,
)
from schedgym.core.simulator import ACT, BEGIN, SKIP, names_action
from schedgym.problems.flowtime.rules import (
    HOLD,
    RULES,
    Scratch,
    Visible,
    allocate_by_priority,
    allocate_by_rule,
)
from schedgym.problems.flowtime.workload import slot_limit
from schedgym.solvers.transport import TransportScratch

__all__ = [
    "CONFIG",
    "GLOBAL_FEATURES",
    "JOB_FEATURES",
    "SCALARS",
    "SERVER_FEATURES",
    "Constants",
    "Exchange",
    "Jobs",
    "Log",
    "Observation",
    "Rows",
    "State",
    "decode_allocation",
    "decode_pick",
    "decode_priority",
    "decode_rule",
    "step",
]

NONE, WASTE, UNDER, ORDER = 0, 1, 2, 3  # what declared demands do, in the order of the descriptor

#: features of a job token before its servers: age, processing, demand, memory, slots left, remaining work,
#: cap, cores in the last slot, cores granted in this one, whether in its second phase
JOB_FEATURES = 10
#: features of a server token: cores of all, free share of them, memory of all, free share of it
SERVER_FEATURES = 4
#: global features: slot, visible jobs, those beyond the window, their remaining work
GLOBAL_FEATURES = 4
SLOT_SCALE = 50.0  # x / (x + 50 slots) scales lengths and ages
WORK_SCALE = 50.0  # w / (w + 50 slots of all cores) scales work
CLOCK_SCALE = 1000.0
COUNT_SCALE = 32.0

#: per-environment scalars
SCALARS = record_dtype(
    ("reward_scale", np.float64),
    ("slot", np.int64),  # to be decided
    ("last_slot", np.int64),  # that was worked off
    ("most_slots", np.int64),
    ("jobs", np.int64),
    ("arrived", np.int64),  # also the index of the next job to arrive
    ("active", np.int64),  # rows
    ("completed", np.int64),
    ("cores", np.int64),  # of all servers
    ("logged", np.int64),  # rows of the log
    ("finished", np.int64),
    ("truncated", np.int64),
    ("shown", np.int64),  # window rows that the last observation filled
    ("seen", np.int64),  # slot of the last observation
    ("repaired", np.int64),
)

#: constants of a simulator
CONFIG = record_dtype(
    ("window", np.int64),
    ("pick", np.int64),  # view pick
    ("memory", np.int64),  # kind 2d
    ("phases", np.int64),  # kind mapreduce
    ("estimation", np.int64),
    ("norm", np.float64),
    ("alpha", np.float64),
    ("gamma", np.float64),
    ("normalize", np.int64),
    ("how", np.int64),  # cores come to servers in views priority and rule; see schemes
    ("clairvoyant", np.int64),
    ("features", np.int64),
    ("mask", np.int64),
    ("lent", np.int64),  # the observation's job arrays are the rows themselves
    ("strict", np.int64),
)


class Constants(NamedTuple):
    """What stays the same for the life of a simulator."""

    config: Annotated[npt.NDArray[Any], CONFIG, 1]  # [1]


class Jobs(NamedTuple):
    """The workload. N jobs, Q tasks in all, M servers; axis of length 2: phases."""

    arrival: I8_2  # [B, N]
    tasks: I8_3  # [B, N, 2]
    processing: I8_3  # [B, N, 2] slots of a task
    cpu: I8_3  # [B, N, 2] cores of a task
    memory: I8_2  # [B, N] GB; 0 in 1D
    declared_cpu: I8_2  # [B, N]
    declared_memory: I8_2  # [B, N]
    first_task: I4_2  # [B, N + 1]
    latency: F8_3  # [B, Q, M], Q = 0 without latencies
    server_cpu: I8_2  # [B, M]
    server_memory: I8_2  # [B, M]


class Rows(NamedTuple):
    """What an observation tells of the visible unfinished jobs; the arrays of other kinds have length 0."""

    job: I8_2  # [B, N]
    arrival: I8_2  # [B, N]
    age: I8_2  # [B, N]
    processing: I8_2  # [B, N] plain
    demand: I8_2  # [B, N] plain: declared cores
    memory: I8_2  # [B, N] 2D: declared GB
    slots_left: F8_2  # [B, N]
    remaining: F8_2  # [B, N] core-slots by the declared demand
    volume: I8_2  # [B, N] core-slots by the declared demand
    cap: I8_2  # [B, N] most cores now
    held: I8_3  # [B, N, M] cores in the slot before
    last: I1_3  # [B, N, M] servers in the last slot with cores
    granted: I8_3  # [B, N, M] cores in this slot
    tasks: I8_3  # [B, N, 2] mapreduce
    phase_processing: I8_3  # [B, N, 2]
    phase_demand: I8_3  # [B, N, 2]
    phase: I8_2  # [B, N]
    task_remaining: I8_3  # [B, N, 2 * most tasks] core-slots
    latency: F8_3  # [B, N, 2 * most tasks * M]


class State(NamedTuple):
    """Everything else that changes in an episode."""

    scalars: Annotated[npt.NDArray[Any], SCALARS, 1]  # [B]
    left: I8_2  # [B, N] remaining core-slots of a row
    task_left: I8_2  # [B, Q] of each task
    before: I8_2  # [B, N] cores of a task in the phase of the slot before
    run: I4_3  # [B, N, M] the row of the log that may go on, or -1
    free: I8_2  # [B, M] cores not granted in this slot
    free_memory: I8_2  # [B, M]
    completion: I8_2  # [B, N] of a job, 0 before
    scores: F8_2  # [B, N] view priority


class Log(NamedTuple):
    """The schedule so far: runs of slots in which a job had the same cores on a server."""

    job: I4_2  # [B, R]
    server: I4_2  # [B, R]
    start: I8_2  # [B, R] first slot minus one
    end: I8_2  # [B, R] last slot
    cores: I8_2  # [B, R]


class Observation(NamedTuple):
    """Buffers that the kernel writes beside the copies of rows (W window rows)."""

    slot: I8_2  # [B, 1]
    eq27: F8_2  # [B, 1]
    active: I8_2  # [B, 1]
    backlog: I8_2  # [B, 1]
    job_mask: I1_2  # [B, W]
    action_mask: I1_2  # [B, actions]
    job_tokens: F4_3  # [B, W, JOB_FEATURES + M]
    server_tokens: F4_3  # [B, M, SERVER_FEATURES]
    global_tokens: F4_2  # [B, GLOBAL_FEATURES]


class Exchange(NamedTuple):
    """What goes into a step and what it did. Of the two kinds of actions one has length 0."""

    choices: I8_2  # [B, 1] discrete actions
    actions: F8_3  # [B, W, numbers per row]
    rows: I8_1  # [B] rows of an action that count
    reward: F8_1  # [B]
    terminated: B1_1  # [B]
    truncated: B1_1  # [B]
    repaired: B1_1  # [B] whether this step's action was infeasible


unpack = unpacker(Constants, Jobs, Rows, State, Log, Observation, Rows, Exchange)
unpack_tools = unpacker(Scratch, TransportScratch)

#: the score of hidden jobs in view priority: behind all visible ones that are not held
LAST = math.nextafter(HOLD, 0.0)
MOST_RULES = len(RULES)


@helper
def demand_of(jobs: Jobs, rows: Rows, b: int, r: int) -> int:
    """True cores of a task in the row's phase."""
    return jobs.cpu[b, rows.job[b, r], rows.phase[b, r]]


@helper
def set_row(config: Any, jobs: Jobs, rows: Rows, state: State, b: int, r: int) -> None:
    """Write what a row says about its remaining work."""
    job = rows.job[b, r]
    left = state.left[b, r]
    if config.phases:
        first = jobs.first_task[b, job]
        maps = jobs.tasks[b, job, 0]
        half = rows.task_remaining.shape[2] // 2
        waiting = 0
        top = 0  # of one fraction, so that equal lengths are equal numbers
        bottom = 1
        for z in range(2):
            longest = 0
            for q in range(jobs.tasks[b, job, z]):
                work = state.task_left[b, first + z * maps + q]
                rows.task_remaining[b, r, z * half + q] = work
                longest = max(longest, work)
                if z == 0:
                    waiting += work
            if longest > 0:
                top = top * jobs.cpu[b, job, z] + longest * bottom
                bottom *= jobs.cpu[b, job, z]
        z = 1 if waiting == 0 and jobs.tasks[b, job, 1] > 0 else 0
        rows.phase[b, r] = z
        cap = 0
        for q in range(jobs.tasks[b, job, z]):
            cap += min(jobs.cpu[b, job, z], state.task_left[b, first + z * maps + q])
        rows.cap[b, r] = cap
        rows.slots_left[b, r] = top / bottom
        rows.remaining[b, r] = left
        return
    cpu = jobs.cpu[b, job, 0]
    declared = jobs.declared_cpu[b, job]
    rows.slots_left[b, r] = left / cpu
    rows.remaining[b, r] = float(left * declared) / cpu
    if config.estimation == WASTE:
        rows.cap[b, r] = min(declared, (left * declared + cpu - 1) // cpu)
    elif config.estimation == UNDER:
        rows.cap[b, r] = min(min(declared, cpu), left)
    else:
        rows.cap[b, r] = min(cpu, left)


@helper
def move_row(config: Any, rows: Rows, state: State, b: int, source: int, target: int) -> None:
    """Copy a row."""
    servers = rows.held.shape[2]
    rows.job[b, target] = rows.job[b, source]
    rows.arrival[b, target] = rows.arrival[b, source]
    rows.slots_left[b, target] = rows.slots_left[b, source]
    rows.remaining[b, target] = rows.remaining[b, source]
    rows.volume[b, target] = rows.volume[b, source]
    rows.cap[b, target] = rows.cap[b, source]
    state.left[b, target] = state.left[b, source]
    state.before[b, target] = state.before[b, source]
    for i in range(servers):
        rows.held[b, target, i] = rows.held[b, source, i]
        rows.last[b, target, i] = rows.last[b, source, i]
        rows.granted[b, target, i] = rows.granted[b, source, i]
        state.run[b, target, i] = state.run[b, source, i]
    rows.phase[b, target] = rows.phase[b, source]
    if config.memory:
        rows.memory[b, target] = rows.memory[b, source]
    if config.phases:
        for z in range(2):
            rows.tasks[b, target, z] = rows.tasks[b, source, z]
            rows.phase_processing[b, target, z] = rows.phase_processing[b, source, z]
            rows.phase_demand[b, target, z] = rows.phase_demand[b, source, z]
        for q in range(rows.task_remaining.shape[2]):
            rows.task_remaining[b, target, q] = rows.task_remaining[b, source, q]
        for q in range(rows.latency.shape[2]):
            rows.latency[b, target, q] = rows.latency[b, source, q]
    else:
        rows.processing[b, target] = rows.processing[b, source]
        rows.demand[b, target] = rows.demand[b, source]


@helper
def clear_row(config: Any, rows: Rows, state: State, b: int, r: int) -> None:
    """Set a row to zero."""
    rows.job[b, r] = 0
    rows.arrival[b, r] = 0
    rows.age[b, r] = 0
    rows.slots_left[b, r] = 0.0
    rows.remaining[b, r] = 0.0
    rows.volume[b, r] = 0
    rows.cap[b, r] = 0
    rows.phase[b, r] = 0
    state.left[b, r] = 0
    for i in range(rows.held.shape[2]):
        rows.held[b, r, i] = 0
        rows.last[b, r, i] = 0
        rows.granted[b, r, i] = 0
    if config.memory:
        rows.memory[b, r] = 0
    if config.phases:
        for z in range(2):
            rows.tasks[b, r, z] = 0
            rows.phase_processing[b, r, z] = 0
            rows.phase_demand[b, r, z] = 0
        for q in range(rows.task_remaining.shape[2]):
            rows.task_remaining[b, r, q] = 0
        for q in range(rows.latency.shape[2]):
            rows.latency[b, r, q] = 0.0
    else:
        rows.processing[b, r] = 0
        rows.demand[b, r] = 0


@helper
def submit(config: Any, jobs: Jobs, rows: Rows, state: State, b: int) -> None:
    """The next job becomes visible, at the end of the rows, which are zero there."""
    s = state.scalars[b]
    job = s.arrived
    r = s.active
    servers = rows.held.shape[2]
    rows.job[b, r] = job
    rows.arrival[b, r] = jobs.arrival[b, job]
    first = jobs.first_task[b, job]
    total = 0
    declared = 0
    task = first
    for z in range(2):
        for _ in range(jobs.tasks[b, job, z]):
            work = jobs.processing[b, job, z] * jobs.cpu[b, job, z]
            state.task_left[b, task] = work
            total += work
            task += 1
    state.left[b, r] = total
    state.before[b, r] = jobs.cpu[b, job, 0]
    declared = total
    if config.phases:
        half = rows.task_remaining.shape[2] // 2
        maps = jobs.tasks[b, job, 0]
        for z in range(2):
            rows.tasks[b, r, z] = jobs.tasks[b, job, z]
            rows.phase_processing[b, r, z] = jobs.processing[b, job, z]
            rows.phase_demand[b, r, z] = jobs.cpu[b, job, z]
            if rows.latency.shape[2] > 0:
                for q in range(jobs.tasks[b, job, z]):
                    for i in range(servers):
                        place = (z * half + q) * servers + i
                        rows.latency[b, r, place] = jobs.latency[b, first + z * maps + q, i]
    else:
        declared = jobs.processing[b, job, 0] * jobs.declared_cpu[b, job]
        rows.processing[b, r] = jobs.processing[b, job, 0]
        rows.demand[b, r] = jobs.declared_cpu[b, job]
        if config.memory:
            rows.memory[b, r] = jobs.declared_memory[b, job]
    rows.volume[b, r] = declared
    for i in range(servers):
        state.run[b, r, i] = -1
    set_row(config, jobs, rows, state, b, r)
    s.arrived = job + 1
    s.active = r + 1


@helper
def power(age: float, norm: float) -> float:
    """age^norm."""
    return age * age if norm == 2.0 else age**norm


@helper
def serve(jobs: Jobs, rows: Rows, state: State, b: int, r: int, cores: int) -> None:
    """Work off a slot of a row with so many cores, tasks of its phase in index order."""
    job = rows.job[b, r]
    z = rows.phase[b, r]
    cpu = jobs.cpu[b, job, z]
    task = jobs.first_task[b, job] + z * jobs.tasks[b, job, 0]
    for q in range(jobs.tasks[b, job, z]):
        work = min(min(cores, cpu), state.task_left[b, task + q])
        state.task_left[b, task + q] -= work
        state.left[b, r] -= work
        cores -= work
        if cores == 0:
            break


@helper
def note(jobs: Jobs, rows: Rows, state: State, log: Log, b: int, r: int, i: int) -> None:
    """Enter a row's cores on server i in the log."""
    s = state.scalars[b]
    cores = rows.granted[b, r, i]
    run = state.run[b, r, i]
    if cores == 0:
        state.run[b, r, i] = -1
    elif run >= 0 and log.cores[b, run] == cores and log.end[b, run] == s.slot - 1:
        log.end[b, run] = s.slot
    else:
        run = s.logged
        log.job[b, run] = rows.job[b, r]
        log.server[b, run] = i
        log.start[b, run] = s.slot - 1
        log.end[b, run] = s.slot
        log.cores[b, run] = cores
        state.run[b, r, i] = run
        s.logged = run + 1


@helper
def work_off(config: Any, jobs: Jobs, rows: Rows, state: State, log: Log, b: int) -> float:
    """Carry out the slot as it was granted; return its cost."""
    s = state.scalars[b]
    servers = rows.held.shape[2]
    cost = 0.0
    switching = 0.0
    kept = 0
    for r in range(s.active):
        age = float(s.slot - rows.arrival[b, r])
        cost += power(age, config.norm) - power(age - 1.0, config.norm)
        cpu = demand_of(jobs, rows, b, r)
        total = 0
        changes = 0.0
        for i in range(servers):
            cores = rows.granted[b, r, i]
            total += cores
            if config.alpha > 0.0:
                change = cores / cpu - rows.held[b, r, i] / state.before[b, r]
                changes += change * change
            if cores > 0 or state.run[b, r, i] >= 0:
                note(jobs, rows, state, log, b, r, i)
        if age >= 2.0:
            switching += changes
        state.before[b, r] = cpu
        if total > 0:
            serve(jobs, rows, state, b, r, total)
            for i in range(servers):
                rows.last[b, r, i] = rows.granted[b, r, i] > 0
        for i in range(servers):
            rows.held[b, r, i] = rows.granted[b, r, i]
            rows.granted[b, r, i] = 0
        if state.left[b, r] == 0:
            state.completion[b, rows.job[b, r]] = s.slot
            s.completed += 1
        else:
            if kept < r:
                move_row(config, rows, state, b, r, kept)
            if total > 0:
                set_row(config, jobs, rows, state, b, kept)
            kept += 1
    for r in range(kept, s.active):
        clear_row(config, rows, state, b, r)
    s.active = kept
    s.last_slot = s.slot
    return cost + config.alpha * switching


@helper
def open_slot(config: Any, jobs: Jobs, rows: Rows, state: State, b: int) -> None:
    """Go on to the next slot with a visible job, or to the end of the episode."""
    s = state.scalars[b]
    s.slot += 1
    if s.active == 0 and s.arrived < s.jobs:
        s.slot = max(s.slot, jobs.arrival[b, s.arrived] + 1)
    if s.completed == s.jobs:
        s.finished = 1
        return
    if s.slot > s.most_slots:
        s.finished = 1
        s.truncated = 1
        s.last_slot = s.most_slots
        return
    while s.arrived < s.jobs and jobs.arrival[b, s.arrived] < s.slot:
        submit(config, jobs, rows, state, b)
    for r in range(s.active):
        rows.age[b, r] = s.slot - rows.arrival[b, r]
    for i in range(rows.held.shape[2]):
        state.free[b, i] = jobs.server_cpu[b, i]
        state.free_memory[b, i] = jobs.server_memory[b, i]


@helper
def can_get(config: Any, rows: Rows, state: State, b: int, r: int) -> Any:
    """View pick: whether some server has a core for the row, and in 2D memory, beyond what it was granted."""
    granted = 0
    for i in range(rows.granted.shape[2]):
        granted += rows.granted[b, r, i]
    if granted >= rows.cap[b, r]:
        return False
    for i in range(rows.granted.shape[2]):
        if state.free[b, i] > 0 and (
            not config.memory or rows.granted[b, r, i] > 0 or rows.memory[b, r] <= state.free_memory[b, i]
        ):
            return True
    return False


@helper
def grant_row(config: Any, rows: Rows, state: State, b: int, r: int) -> None:
    """View pick: give the row what it can use, on the servers with most free cores (ties: lower server)."""
    servers = rows.granted.shape[2]
    wanted = rows.cap[b, r]
    for i in range(servers):
        wanted -= rows.granted[b, r, i]
    while wanted > 0:
        best = -1
        for i in range(servers):
            if state.free[b, i] > 0 and (best < 0 or state.free[b, i] > state.free[b, best]):
                if (
                    not config.memory
                    or rows.granted[b, r, i] > 0
                    or rows.memory[b, r] <= state.free_memory[b, i]
                ):
                    best = i
        if best < 0:
            return
        cores = min(wanted, state.free[b, best])
        if config.memory and rows.granted[b, r, best] == 0:
            state.free_memory[b, best] -= rows.memory[b, r]
        rows.granted[b, r, best] += cores
        state.free[b, best] -= cores
        wanted -= cores


@helper
def copy_rows(config: Any, rows: Rows, state: State, shown: Rows, b: int, count: int) -> None:
    """Copy the visible rows, and the zeros behind them, into the observation."""
    servers = rows.held.shape[2]
    for r in range(max(count, state.scalars[b].shown)):
        shown.job[b, r] = rows.job[b, r]
        shown.arrival[b, r] = rows.arrival[b, r]
        shown.age[b, r] = rows.age[b, r]
        shown.slots_left[b, r] = rows.slots_left[b, r]
        shown.remaining[b, r] = rows.remaining[b, r]
        shown.volume[b, r] = rows.volume[b, r]
        shown.cap[b, r] = rows.cap[b, r]
        for i in range(servers):
            shown.held[b, r, i] = rows.held[b, r, i]
            shown.last[b, r, i] = rows.last[b, r, i]
        if config.pick:
            for i in range(servers):
                shown.granted[b, r, i] = rows.granted[b, r, i]
        if config.memory:
            shown.memory[b, r] = rows.memory[b, r]
        if config.phases:
            shown.phase[b, r] = rows.phase[b, r]
            for z in range(2):
                shown.tasks[b, r, z] = rows.tasks[b, r, z]
                shown.phase_processing[b, r, z] = rows.phase_processing[b, r, z]
                shown.phase_demand[b, r, z] = rows.phase_demand[b, r, z]
            for q in range(rows.task_remaining.shape[2]):
                shown.task_remaining[b, r, q] = rows.task_remaining[b, r, q]
            for q in range(rows.latency.shape[2]):
                shown.latency[b, r, q] = rows.latency[b, r, q]
        else:
            shown.processing[b, r] = rows.processing[b, r]
            shown.demand[b, r] = rows.demand[b, r]


@helper
def write_job_token(
    config: Any, jobs: Jobs, rows: Rows, state: State, tokens: npt.NDArray[np.float32], b: int, r: int
) -> None:
    """Write a row's token."""
    s = state.scalars[b]
    servers = rows.held.shape[2]
    job = rows.job[b, r]
    z = rows.phase[b, r]
    length = float(jobs.processing[b, job, 0])
    if jobs.tasks[b, job, 1] > 0:
        length += jobs.processing[b, job, 1]
    age = float(rows.age[b, r])
    tokens[b, r, 0] = age / (age + SLOT_SCALE)
    tokens[b, r, 1] = length / (length + SLOT_SCALE)
    demand = jobs.cpu[b, job, z] if config.phases else jobs.declared_cpu[b, job]
    tokens[b, r, 2] = demand / (demand + float(s.cores))
    tokens[b, r, 4] = rows.slots_left[b, r] / (rows.slots_left[b, r] + SLOT_SCALE)
    tokens[b, r, 5] = rows.remaining[b, r] / (rows.remaining[b, r] + WORK_SCALE * s.cores)
    tokens[b, r, 6] = min(rows.cap[b, r] / float(s.cores), 1.0)
    tokens[b, r, 9] = z
    held = 0
    granted = 0
    largest = 0
    for i in range(servers):
        held += rows.held[b, r, i]
        granted += rows.granted[b, r, i]
        largest = max(largest, jobs.server_memory[b, i])
        tokens[b, r, JOB_FEATURES + i] = rows.held[b, r, i] / float(jobs.server_cpu[b, i])
    tokens[b, r, 3] = rows.memory[b, r] / float(largest) if config.memory else 0.0
    tokens[b, r, 7] = held / float(s.cores)
    tokens[b, r, 8] = granted / float(s.cores)


@helper
def observe(
    config: Any,
    jobs: Jobs,
    rows: Rows,
    state: State,
    observation: Observation,
    shown: Rows,
    exchange: Exchange,
    b: int,
    picked: int,
) -> None:
    """Write the observation of environment b; of a slot seen before only what granting ``picked`` changed."""
    s = state.scalars[b]
    servers = rows.held.shape[2]
    count = min(s.active, config.window)
    same = s.seen == s.slot and picked >= 0
    if config.pick and config.mask:
        for r in range(count):
            observation.action_mask[b, r] = can_get(config, rows, state, b, r)
        for r in range(count, s.shown):
            observation.action_mask[b, r] = 0
    if config.features:
        if same:
            granted = 0
            for i in range(servers):
                granted += rows.granted[b, picked, i]
            if picked < count:
                observation.job_tokens[b, picked, 8] = granted / float(s.cores)
        else:
            work = 0.0
            for r in range(s.active):
                work += rows.remaining[b, r]
                if r < count:
                    write_job_token(config, jobs, rows, state, observation.job_tokens, b, r)
            for r in range(count, s.shown):
                for f in range(observation.job_tokens.shape[2]):
                    observation.job_tokens[b, r, f] = 0.0
            beyond = s.active - count
            tokens = observation.global_tokens
            tokens[b, 0] = s.slot / (s.slot + CLOCK_SCALE)
            tokens[b, 1] = s.active / (s.active + COUNT_SCALE)
            tokens[b, 2] = beyond / (beyond + COUNT_SCALE)
            tokens[b, 3] = work / (work + WORK_SCALE * s.cores)
        if config.pick or not same:
            for i in range(servers):
                cores = jobs.server_cpu[b, i]
                observation.server_tokens[b, i, 1] = state.free[b, i] / float(cores)
                if config.memory:
                    memory = jobs.server_memory[b, i]
                    observation.server_tokens[b, i, 3] = state.free_memory[b, i] / float(memory)
    else:
        if same:
            if not config.lent and picked < count:
                for i in range(servers):
                    shown.granted[b, picked, i] = rows.granted[b, picked, i]
        elif not config.lent:
            copy_rows(config, rows, state, shown, b, count)
        observation.slot[b, 0] = s.slot
        observation.active[b, 0] = s.active
        observation.backlog[b, 0] = s.active - count
    for r in range(s.shown, count):
        observation.job_mask[b, r] = 1
    for r in range(count, s.shown):
        observation.job_mask[b, r] = 0
    s.shown = count
    s.seen = s.slot
    exchange.rows[b] = count


@helper
def begin(config: Any, jobs: Jobs, rows: Rows, state: State, observation: Observation, b: int) -> None:
    """Start an episode on the loaded workload, in its first slot with a visible job."""
    s = state.scalars[b]
    servers = rows.held.shape[2]
    for r in range(s.active):  # left over when the last episode was cut off
        clear_row(config, rows, state, b, r)
    s.cores = 0
    largest = 0
    for i in range(servers):
        s.cores += jobs.server_cpu[b, i]
        largest = max(largest, jobs.server_memory[b, i])
    scale = 0.0
    for job in range(s.jobs):
        state.completion[b, job] = 0
        length = jobs.processing[b, job, 0]
        if jobs.tasks[b, job, 1] > 0:
            length += jobs.processing[b, job, 1]
        scale += power(float(length), config.norm)
    s.most_slots = slot_limit(
        b,
        s.jobs,
        config.gamma,
        jobs.arrival,
        jobs.tasks,
        jobs.processing,
        jobs.cpu,
        jobs.memory,
        jobs.server_cpu,
        jobs.server_memory,
    )
    s.reward_scale = 1.0 / scale if config.normalize else 1.0
    if config.clairvoyant:
        longest = 0.0
        work = 0.0
        for job in range(s.jobs):
            length = jobs.processing[b, job, 0]
            if jobs.tasks[b, job, 1] > 0:
                length += jobs.processing[b, job, 1]
            longest = max(longest, float(max(jobs.arrival[b, job] + 2 * length, 2 * jobs.arrival[b, job])))
            if config.phases:
                for z in range(2):
                    work += jobs.tasks[b, job, z] * jobs.processing[b, job, z] * jobs.cpu[b, job, z]
            else:
                work += jobs.processing[b, job, 0] * jobs.declared_cpu[b, job]
        observation.eq27[b, 0] = max(longest, 4.0 * work / s.cores)
    s.slot = 0
    s.last_slot = 0
    s.arrived = 0
    s.active = 0
    s.completed = 0
    s.logged = 0
    s.finished = 0
    s.truncated = 0
    s.seen = -1
    s.repaired = 0
    open_slot(config, jobs, rows, state, b)
    if config.features:
        for i in range(servers):
            cores = jobs.server_cpu[b, i]
            observation.server_tokens[b, i, 0] = cores / float(s.cores)
            if config.memory:
                observation.server_tokens[b, i, 2] = jobs.server_memory[b, i] / float(largest)


@pure_kernel
def step(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """Advance the environments, each by its ``command`` [B]: ACT after a decoded decision, BEGIN an episode.

    ``table`` packs Constants, Jobs, Rows, State, Log, Observation, the Rows that are shown, and Exchange. The
    log has room for one run per core more. Returns how many episodes ended.
    """
    constants, jobs, rows, state, log, observation, shown, exchange = unpack(table)
    config = constants.config[0]
    ended = 0
    for b in range(command.shape[0]):
        if command[b] == SKIP:
            continue
        s = state.scalars[b]
        exchange.reward[b] = 0.0
        exchange.terminated[b] = False
        exchange.truncated[b] = False
        picked = -1
        if command[b] == BEGIN:
            exchange.repaired[b] = False
            begin(config, jobs, rows, state, observation, b)
        else:
            s.repaired += exchange.repaired[b]
            close = True
            if config.pick and exchange.choices[b, 0] < config.window:
                picked = exchange.choices[b, 0]
                grant_row(config, rows, state, b, picked)
                for r in range(min(s.active, config.window)):
                    if can_get(config, rows, state, b, r):
                        close = False
                        break
            if close:
                picked = -1
                exchange.reward[b] = -work_off(config, jobs, rows, state, log, b) * s.reward_scale
                open_slot(config, jobs, rows, state, b)
                if s.finished:
                    exchange.terminated[b] = s.truncated == 0
                    exchange.truncated[b] = s.truncated == 1
                    ended += 1
        observe(config, jobs, rows, state, observation, shown, exchange, b, picked)
    return ended


@helper
def finite_rows(exchange: Exchange, b: int) -> Any:
    """Whether all numbers of an action that count are finite."""
    for r in range(exchange.rows[b]):
        for c in range(exchange.actions.shape[2]):
            if not math.isfinite(exchange.actions[b, r, c]):
                return False
    return True


@helper
def grants_fit(config: Any, jobs: Jobs, rows: Rows, exchange: Exchange, b: int) -> Any:
    """Whether an action's cores are whole, and within the caps, the servers' cores and their memory."""
    servers = rows.held.shape[2]
    for r in range(exchange.rows[b]):
        total = 0.0
        for i in range(servers):
            cores = exchange.actions[b, r, i]
            if cores < 0.0 or cores != math.floor(cores):
                return False
            total += cores
        if total > rows.cap[b, r]:
            return False
    for i in range(servers):
        cores = 0.0
        memory = 0
        for r in range(exchange.rows[b]):
            cores += exchange.actions[b, r, i]
            if config.memory and exchange.actions[b, r, i] > 0.0:
                memory += rows.memory[b, r]
        if cores > jobs.server_cpu[b, i] or (config.memory and memory > jobs.server_memory[b, i]):
            return False
    return True


@pure_kernel
def decode_allocation(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View allocation: cores [M] per row become the grants; hidden jobs get none.

    Repair: cores are rounded down and at least 0; a job beyond its cap gives up cores from its last server
    on; then each server that is over its cores, or its memory, takes them back from the latest job on.

    Every decode kernel takes what :func:`step` takes, and ``tools``, packed work space (of use only to the
    views priority and rule). It sets ``exchange.repaired`` and returns 0; or -(b + 1) for the first
    environment whose action is malformed, or with strict actions infeasible. Then nothing has changed.
    """
    constants, jobs, rows, state, log, observation, shown, exchange = unpack(table)
    config = constants.config[0]
    servers = rows.held.shape[2]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            if not finite_rows(exchange, b):
                return -(b + 1)
            if config.strict and not grants_fit(config, jobs, rows, exchange, b):
                return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        exchange.repaired[b] = not grants_fit(config, jobs, rows, exchange, b)
        for r in range(exchange.rows[b]):
            left = rows.cap[b, r]
            for i in range(servers):
                cores = int(min(max(exchange.actions[b, r, i], 0.0), float(left)))
                rows.granted[b, r, i] = cores
                left -= cores
        for r in range(exchange.rows[b], state.scalars[b].active):
            for i in range(servers):
                rows.granted[b, r, i] = 0
        if exchange.repaired[b]:
            for i in range(servers):
                cores = jobs.server_cpu[b, i]
                memory = -jobs.server_memory[b, i]
                for r in range(exchange.rows[b]):
                    rows.granted[b, r, i] = min(rows.granted[b, r, i], cores)
                    cores -= rows.granted[b, r, i]
                    if config.memory and rows.granted[b, r, i] > 0:
                        memory += rows.memory[b, r]
                for r in range(exchange.rows[b] - 1, -1, -1):
                    if config.memory and memory > 0 and rows.granted[b, r, i] > 0:
                        rows.granted[b, r, i] = 0
                        memory -= rows.memory[b, r]
    return 0


@pure_kernel
def decode_pick(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View pick: the row that gets cores next; one that cannot get any closes the slot."""
    constants, jobs, rows, state, log, observation, shown, exchange = unpack(table)
    config = constants.config[0]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            r = exchange.choices[b, 0]
            if r < 0 or r > config.window:
                return -(b + 1)
            if config.strict and r < config.window:
                if r >= exchange.rows[b] or not can_get(config, rows, state, b, r):
                    return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] == ACT:
            r = exchange.choices[b, 0]
            fits = r == config.window or (r < exchange.rows[b] and can_get(config, rows, state, b, r))
            exchange.repaired[b] = not fits
            if not fits:
                exchange.choices[b, 0] = config.window
    return 0


@helper
def visible_rows(rows: Rows, b: int) -> Visible:
    """The rows of an environment as schemes take them."""
    return Visible(
        rows.demand[b],
        rows.memory[b],
        rows.slots_left[b],
        rows.remaining[b],
        rows.volume[b],
        rows.cap[b],
        rows.held[b],
        rows.phase[b],
        rows.tasks[b],
        rows.phase_demand[b],
        rows.task_remaining[b],
        rows.latency[b],
    )


@pure_kernel
def decode_priority(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View priority: a score per row; the jobs are filled up in their order, hidden ones last, and packed."""
    constants, jobs, rows, state, log, observation, shown, exchange = unpack(table)
    scratch, net = unpack_tools(tools)
    config = constants.config[0]
    for b in range(command.shape[0]):
        if names_action(command[b]) and not finite_rows(exchange, b):
            return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        exchange.repaired[b] = False
        active = state.scalars[b].active
        for r in range(active):
            state.scores[b, r] = exchange.actions[b, r, 0] if r < exchange.rows[b] else LAST
        allocate_by_priority(
            config.how,
            config.phases != 0,
            active,
            state.scores[b],
            visible_rows(rows, b),
            jobs.server_cpu[b],
            jobs.server_memory[b],
            scratch,
            net,
            rows.granted[b],
        )
    return 0


@pure_kernel
def decode_rule(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View rule: the grants of the named rule, for all visible jobs, beyond the window too."""
    constants, jobs, rows, state, log, observation, shown, exchange = unpack(table)
    scratch, net = unpack_tools(tools)
    config = constants.config[0]
    for b in range(command.shape[0]):
        if names_action(command[b]) and not 0 <= exchange.choices[b, 0] < MOST_RULES:
            return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        exchange.repaired[b] = False
        allocate_by_rule(
            exchange.choices[b, 0],
            config.how,
            config.phases != 0,
            state.scalars[b].active,
            visible_rows(rows, b),
            jobs.server_cpu[b],
            jobs.server_memory[b],
            scratch,
            net,
            rows.granted[b],
        )
    return 0
