"""State and compiled dynamics of FlowtimePacking, for one environment.

Time is slots 1, 2, ...; a job that arrives at a is visible in the slots t > a. In each slot cores are
granted, the granted work is done, and its cost is charged; slots without a visible job are skipped. Work is
measured in whole core-slots.

The visible unfinished jobs are the first rows of every array of rows, in order of arrival (ties: by index);
the rows behind them are zero. A plain job has one phase with one task; a job of kind mapreduce has two
phases with at least one task each, and its cores go to its tasks in index order.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import (
    SCRATCH,
    SHARED,
    Bytes,
    Fill,
    Floats,
    Floats32,
    Integers,
    Integers32,
    Renamed,
    Shown,
)
from schedgym.core.columns import put
from schedgym.core.jit import helper, record_dtype, subroutine
from schedgym.core.kernels import Dynamics, Scoring, ViewDynamics
from schedgym.core.rows import clear_entries, clearer, copier, copy_entries, mark, resetter
from schedgym.core.stepping import ActionSpace, Exchange, always_feasible
from schedgym.problems.flowtime import columns, rules, workload
from schedgym.problems.flowtime.metrics import Objective, Schedule
from schedgym.solvers.arithmetic import power
from schedgym.solvers.transport import TransportScratch

NONE, WASTE, UNDER, ORDER = 0, 1, 2, 3  # effects of declared demands, in the order of the descriptor


SCALARS = record_dtype(
    ("reward_scale", np.float64),
    ("slot", np.int64),  # the slot to be decided
    ("most_slots", np.int64),
    ("arrived", np.int64),  # also the index of the next job to arrive
    ("active", np.int64),  # number of rows in use
    ("completed", np.int64),
    ("cores", np.int64),  # of all servers
    ("memory", np.int64),  # of the largest server, at least 1
    ("picked", np.int64),  # view pick: the row that the decision grants cores, -1: it closes the slot
    ("shown", np.int64),  # window rows that the last observation filled
    ("observed", np.int64),  # slot of the last observation
    ("repaired", np.int64),
)

CONFIG = record_dtype(
    ("window", np.int64),
    ("pick", np.int64),  # view pick
    ("phases", np.int64),  # kind mapreduce
    ("estimation", np.int64),
    ("gamma", np.float64),
    ("normalize", np.int64),
    ("how", np.int64),  # cores come to servers in views priority and rule; see rules
    ("clairvoyant", np.int64),
    ("features", np.int64),
    ("mask", np.int64),
    ("zero_copy", np.int64),  # the observation's job arrays are the rows themselves
)


class Constants(NamedTuple):
    """Constants of a simulator: its configuration."""

    config: Annotated[Any, CONFIG]


class State(NamedTuple):
    """The variables of an episode, except for the rows and the schedule."""

    scalars: Annotated[Any, SCALARS]
    left: Annotated[Integers, "job"]  # remaining core-slots of a row
    task_left: Annotated[Integers, "task"]  # of each task
    before: Annotated[Integers, "job"]  # cores of a task in the phase that a row was in the slot before
    run: Annotated[Integers32, "job", "server", Fill(-1)]  # the row of the schedule that may go on, or -1
    free: Annotated[
        Integers, "server", Shown("not granted yet [cores]", workload.LAST_SLOT, when="view=pick")
    ]
    free_memory: Annotated[
        Integers, "server", Shown("not granted yet [GB]", workload.LAST_SLOT, when="view=pick kind=2d")
    ]
    scores: Annotated[Floats, "job"]  # view priority


class Observation(NamedTuple):
    """Buffers of the observation that the kernel writes in addition to the rows."""

    slot: Annotated[Integers, 1, Shown("the slot to be decided", workload.LAST_CLOCK)]
    eq27: Annotated[
        Floats,
        1,
        Shown(
            "Gamma of Eq. 27, by which all jobs should be done [slot]",
            workload.LAST_GAMMA,
            when="clairvoyant",
        ),
    ]
    active: Annotated[Integers, 1, Shown("number of active jobs", workload.MOST_VISIBLE)]
    backlog: Annotated[Integers, 1, Shown("active jobs beyond the window", workload.MOST_VISIBLE)]
    job_mask: Annotated[Bytes, "window", Shown("which rows hold a job")]
    action_mask: Annotated[Bytes, "mask", Shown("feasible actions", when="view=pick|rule")]
    job_tokens: Annotated[Floats32, "token_window", "job_feature", columns.JOB_ROW]
    server_tokens: Annotated[Floats32, "token_server", columns.ServerToken]
    global_tokens: Annotated[Floats32, columns.GlobalToken]


class Environment(NamedTuple):
    """All arrays of one environment: constants, state, observation buffers and scratch space."""

    constants: Annotated[Constants, SHARED]
    action_space: Annotated[ActionSpace, SHARED]
    objective: Annotated[Objective, SHARED]
    jobs: workload.Jobs
    rows: Annotated[rules.Rows, Renamed(row="job")]
    state: State
    schedule: Schedule
    observation: Observation
    shown: Annotated[rules.Rows, Renamed(row="own_window")]  # the observation's copy of the rows
    exchange: Exchange
    scratch: Annotated[rules.Scratch, SCRATCH, Renamed(row="job")]
    net: Annotated[TransportScratch, SCRATCH, Renamed(row="net_row")]


#: the score of hidden jobs in view priority: behind all visible ones that are not held
LAST = math.nextafter(rules.HOLD, 0.0)


# Rows -----------------------------------------------------------------------------------------


reset = resetter(SCALARS, without=("shown",))
copy_row, clear_row = copier(rules.Rows), clearer(rules.Rows)


@helper
def update_phases(env: Environment, r: int) -> None:
    """Update phase, cap, remaining slots and remaining work in the row of a MapReduce job."""
    jobs, rows, task_left = env.jobs, env.rows, env.state.task_left
    job = rows.job[r]
    first = jobs.first_task[job]
    half = rows.task_remaining.shape[1] // 2
    waiting = 0
    top = 0  # numerator of one fraction, so that equal lengths are equal numbers
    bottom = 1
    for z in range(2):
        longest = 0
        for q in range(jobs.tasks[job, z]):
            work = task_left[first + z * jobs.tasks[job, 0] + q]
            rows.task_remaining[r, z * half + q] = work
            longest = max(longest, work)
            if z == 0:
                waiting += work
        if longest > 0:
            top = top * jobs.cpu[job, z] + longest * bottom
            bottom *= jobs.cpu[job, z]
    # the reduce phase begins when no work of a map task is left
    z = 1 if waiting == 0 and jobs.tasks[job, 1] > 0 else 0
    rows.phase[r] = z
    cap = 0
    for q in range(jobs.tasks[job, z]):
        cap += min(jobs.cpu[job, z], task_left[first + z * jobs.tasks[job, 0] + q])
    rows.cap[r] = cap
    rows.slots_left[r] = top / bottom
    rows.remaining[r] = env.state.left[r]


@helper
def update_row(env: Environment, r: int) -> None:
    """Update cap, remaining slots and remaining work in a row."""
    config, jobs, rows = env.constants.config, env.jobs, env.rows
    if config.phases:
        update_phases(env, r)
        return
    left = env.state.left[r]
    cpu = jobs.cpu[rows.job[r], 0]
    declared = rows.demand[r]
    rows.slots_left[r] = left / cpu
    rows.remaining[r] = float(left * declared) / cpu
    # cores are granted by the declared demand, and used up to the true one
    if config.estimation == WASTE:
        rows.cap[r] = min(declared, (left * declared + cpu - 1) // cpu)
    elif config.estimation == UNDER:
        rows.cap[r] = min(min(declared, cpu), left)
    else:
        rows.cap[r] = min(cpu, left)


@helper
def submit(env: Environment) -> None:
    """Make the next job visible: append it to the rows, where all values are still zero."""
    s, jobs, rows, state = env.state.scalars, env.jobs, env.rows, env.state
    servers = rows.held.shape[1]
    half = rows.task_remaining.shape[1] // 2
    job = s.arrived
    r = s.active
    task = jobs.first_task[job]
    total = 0
    for z in range(2):
        if rows.tasks.shape[1] > 0:
            rows.tasks[r, z] = jobs.tasks[job, z]
            rows.phase_processing[r, z] = jobs.processing[job, z]
            rows.phase_demand[r, z] = jobs.cpu[job, z]
        for q in range(jobs.tasks[job, z]):
            work = jobs.processing[job, z] * jobs.cpu[job, z]
            state.task_left[task] = work
            total += work
            if rows.latency.shape[1] > 0:
                for i in range(servers):
                    rows.latency[r, (z * half + q) * servers + i] = jobs.latency[task, i]
            task += 1
    rows.job[r] = job
    rows.arrival[r] = jobs.arrival[job]
    rows.volume[r] = total
    if not env.constants.config.phases:
        rows.processing[r] = jobs.processing[job, 0]
        rows.demand[r] = jobs.declared_cpu[job]
        rows.memory[r] = jobs.declared_memory[job]
        rows.volume[r] = rows.processing[r] * rows.demand[r]
    state.left[r] = total
    # there was no slot before: the divisor of the cores held in it, which are 0
    state.before[r] = jobs.cpu[job, 0]
    for i in range(servers):
        state.run[r, i] = -1
    update_row(env, r)
    s.arrived = job + 1
    s.active = r + 1


# A slot ---------------------------------------------------------------------------------------


@helper
def serve(env: Environment, r: int, cores: int) -> None:
    """Do one slot of a row's work with ``cores`` cores, which go to the tasks of its phase in index order."""
    jobs, state = env.jobs, env.state
    job = env.rows.job[r]
    z = env.rows.phase[r]
    task = jobs.first_task[job] + z * jobs.tasks[job, 0]
    # no task uses more than its demand or its rest; what is over is wasted
    for q in range(jobs.tasks[job, z]):
        work = min(min(cores, jobs.cpu[job, z]), state.task_left[task + q])
        state.task_left[task + q] -= work
        state.left[r] -= work
        cores -= work
        if cores == 0:
            break


@helper
def note(env: Environment, r: int, i: int) -> None:
    """Record a row's cores on server i in the schedule."""
    schedule, slot = env.schedule, env.state.scalars.slot
    cores = env.rows.granted[r, i]
    run = env.state.run[r, i]
    if cores == 0:
        env.state.run[r, i] = -1
    # a row of the schedule goes on as long as the cores stay the same
    elif run >= 0 and schedule.cores[run] == cores and schedule.end[run] == slot - 1:
        schedule.end[run] = slot
    else:
        run = schedule.extent.rows
        schedule.job[run] = env.rows.job[r]
        schedule.server[run] = i
        schedule.start[run] = slot - 1
        schedule.end[run] = slot
        schedule.cores[run] = cores
        env.state.run[r, i] = run
        schedule.extent.rows = run + 1


@helper
def settle(env: Environment, r: int) -> float:
    """Let a row use the cores that it was granted; return its part of the switching cost."""
    rows, state = env.rows, env.state
    servers = rows.held.shape[1]
    cpu = env.jobs.cpu[rows.job[r], rows.phase[r]]
    total = 0
    changes = 0.0
    # 1. what the job was granted, what it changes, and the schedule
    for i in range(servers):
        cores = rows.granted[r, i]
        total += cores
        if env.objective.weights.alpha > 0.0:
            change = cores / cpu - rows.held[r, i] / state.before[r]
            changes += change * change
        if cores > 0 or state.run[r, i] >= 0:
            note(env, r, i)
    state.before[r] = cpu
    # 2. its work; a slot without cores leaves it, and where it last ran, as it was
    if total > 0:
        serve(env, r, total)
        for i in range(servers):
            rows.last[r, i] = rows.granted[r, i] > 0
        if state.left[r] > 0:
            update_row(env, r)
    # 3. this slot becomes the one before
    for i in range(servers):
        rows.held[r, i] = rows.granted[r, i]
        rows.granted[r, i] = 0
    return changes


@helper
def work_off(env: Environment) -> float:
    """Let all rows use the cores that they were granted in this slot; return the slot's cost."""
    s, rows, state = env.state.scalars, env.rows, env.state
    norm = env.objective.weights.norm
    cost = 0.0
    switching = 0.0
    kept = 0
    for r in range(s.active):
        age = float(s.slot - rows.arrival[r])
        # age^k grows by this in the slot: summed up over the slots it is flowtime^k
        cost += power(age, norm) - power(age - 1.0, norm)
        changes = settle(env, r)
        # the first slot of a job costs nothing
        if age >= 2.0:
            switching += changes
        if state.left[r] == 0:
            s.completed += 1
            continue
        # rows close up, in order of arrival
        if kept < r:
            copy_row(rows, r, rows, kept)
            copy_entries(state.run, r, state.run, kept)
            state.left[kept] = state.left[r]
            state.before[kept] = state.before[r]
        kept += 1
    for r in range(kept, s.active):
        clear_row(rows, r)
    s.active = kept
    env.schedule.extent.slot = s.slot
    return cost + env.objective.weights.alpha * switching


@subroutine
def open_slot(env: Environment) -> None:
    """Go on to the next slot with a visible job, or to the end of the episode."""
    s, jobs, rows = env.state.scalars, env.jobs, env.rows
    s.slot += 1
    # nothing can happen before the next arrival
    if s.active == 0 and s.arrived < jobs.size.jobs:
        s.slot = max(s.slot, jobs.arrival[s.arrived] + 1)
    if s.completed == jobs.size.jobs:
        env.exchange.result.terminated = True
        return
    if s.slot > s.most_slots:
        env.exchange.result.truncated = True
        env.schedule.extent.slot = s.most_slots
        return
    while s.arrived < jobs.size.jobs and jobs.arrival[s.arrived] < s.slot:
        submit(env)
    for r in range(s.active):
        rows.age[r] = s.slot - rows.arrival[r]
    # view pick grants from these in the course of the slot
    for i in range(rows.held.shape[1]):
        env.state.free[i] = jobs.server_cpu[i]
        env.state.free_memory[i] = jobs.server_memory[i]


@helper
def begin(env: Environment) -> None:
    """Start an episode on the loaded workload, in its first slot with a visible job."""
    config, s, jobs = env.constants.config, env.state.scalars, env.jobs
    servers = env.rows.held.shape[1]
    for r in range(s.active):  # left over when the last episode was cut off
        clear_row(env.rows, r)
    reset(s)
    s.memory = 1
    for i in range(servers):
        s.cores += jobs.server_cpu[i]
        s.memory = max(s.memory, jobs.server_memory[i])
    # the cost if every job had its cores at once
    scale = 0.0
    for job in range(jobs.size.jobs):
        scale += power(float(workload.length_of(jobs, job)), env.objective.weights.norm)
    s.reward_scale = 1.0 / scale if config.normalize else 1.0
    s.most_slots = workload.slot_limit(jobs, config.gamma)
    if config.clairvoyant:
        env.observation.eq27[0] = workload.eq27_limit(jobs, True)
    s.picked = -1
    s.observed = -1
    env.schedule.extent.rows = 0
    env.schedule.extent.slot = 0
    open_slot(env)
    if config.features:
        for i in range(servers):
            env.observation.server_tokens[i, columns.SERVER.cores] = jobs.server_cpu[i] / float(s.cores)
            env.observation.server_tokens[i, columns.SERVER.memory] = jobs.server_memory[i] / float(s.memory)


@helper
def advance(env: Environment) -> None:
    """Grant the picked row its cores; or carry out the slot and go on to the next one."""
    s, result = env.state.scalars, env.exchange.result
    # a slot adds one run per core at most, and one per row and server
    runs = min(s.cores, s.active * env.rows.held.shape[1])
    # before anything changes: the step is repeated when the log has grown
    result.short = env.schedule.extent.rows + runs > env.schedule.job.shape[0]
    if result.short:
        return
    s.repaired += result.repaired
    # view pick: grants go on until nobody can get more
    if s.picked >= 0:
        grant_row(env, s.picked)
        for r in range(min(s.active, env.constants.config.window)):
            if can_get(env, r):
                return
        s.picked = -1
    result.reward = -work_off(env) * s.reward_scale
    open_slot(env)


# What an action means, view by view --------------------------------------------------------------


@helper
def wanted_by(env: Environment, r: int) -> int:
    """View pick: return how many more cores the row can use than it was granted."""
    wanted = env.rows.cap[r]
    for i in range(env.rows.granted.shape[1]):
        wanted -= env.rows.granted[r, i]
    return wanted


@helper
def can_get(env: Environment, r: int) -> Any:
    """View pick: return True if the row can use another core and a server has it (in 2D: with its memory)."""
    if wanted_by(env, r) > 0:
        for i in range(env.rows.granted.shape[1]):
            if rules.is_open(True, i, r, env.rows, env.state, env.rows.granted):
                return True
    return False


@helper
def grant_row(env: Environment, r: int) -> None:
    """View pick: grant the row all cores that it can use, most free servers first (ties: lower server)."""
    rows, free = env.rows, env.state.free
    wanted = wanted_by(env, r)
    while wanted > 0:
        best = rules.freest(True, r, rows, env.state, rows.granted)
        if best < 0:
            return
        cores = min(wanted, free[best])
        # memory is reserved once on each server
        if rows.granted[r, best] == 0:
            env.state.free_memory[best] -= rows.memory[r]
        rows.granted[r, best] += cores
        free[best] -= cores
        wanted -= cores


@helper
def decode_pick(env: Environment) -> Any:
    """View pick: return True if the chosen row can get cores, or the last choice closes the slot."""
    r = env.exchange.choices[0]
    return r == env.constants.config.window or (r < env.exchange.result.rows and can_get(env, r))


@helper
def decide_pick(env: Environment, feasible: bool) -> None:
    """View pick: note the row that gets cores next; an infeasible choice closes the slot."""
    r = env.exchange.choices[0]
    env.state.scalars.picked = r if feasible and r < env.constants.config.window else -1


@helper
def decode_allocation(env: Environment) -> Any:
    """View allocation: return True if cores are whole, within the caps, and within each server's capacity."""
    jobs, rows, numbers = env.jobs, env.rows, env.exchange.numbers
    count, servers = env.exchange.result.rows, rows.held.shape[1]
    for r in range(count):
        total = 0.0
        for i in range(servers):
            cores = numbers[r, i]
            if cores < 0.0 or cores != math.floor(cores):
                return False
            total += cores
        if total > rows.cap[r]:
            return False
    for i in range(servers):
        cores = 0.0
        memory = 0
        for r in range(count):
            cores += numbers[r, i]
            if numbers[r, i] > 0.0:
                memory += rows.memory[r]
        if cores > jobs.server_cpu[i] or memory > jobs.server_memory[i]:
            return False
    return True


@helper
def decide_allocation(env: Environment, feasible: bool) -> None:
    """View allocation: grant each row its cores [M] of the action; hidden jobs get none.

    Repair: cores are rounded down and at least 0; a job beyond its cap gives up cores, on its last server
    first; then each server beyond its cores or its memory takes cores back, from the latest job first.
    """
    jobs, rows = env.jobs, env.rows
    count, servers = env.exchange.result.rows, rows.held.shape[1]
    for r in range(count):
        left = rows.cap[r]
        for i in range(servers):
            cores = int(min(max(env.exchange.numbers[r, i], 0.0), float(left)))
            rows.granted[r, i] = cores
            left -= cores
    clear_entries(rows.granted, count, env.state.scalars.active)
    if feasible:
        return
    # then each server takes back what it does not have: cores first, then whole jobs by memory
    for i in range(servers):
        cores = jobs.server_cpu[i]
        memory = -jobs.server_memory[i]
        for r in range(count):
            rows.granted[r, i] = min(rows.granted[r, i], cores)
            cores -= rows.granted[r, i]
            if rows.granted[r, i] > 0:
                memory += rows.memory[r]
        for r in range(count - 1, -1, -1):
            if memory > 0 and rows.granted[r, i] > 0:
                rows.granted[r, i] = 0
                memory -= rows.memory[r]


@helper
def prioritize_with(net: Any, env: Environment) -> None:
    """Allocate by a score per row, higher scores first; hidden jobs come last."""
    active, scores = env.state.scalars.active, env.state.scores
    for r in range(active):
        scores[r] = env.exchange.numbers[r, 0] if r < env.exchange.result.rows else LAST
    how, granted = env.constants.config.how, env.rows.granted
    servers: Any = env.jobs
    rules.allocate_by_priority(how, active, scores, env.rows, servers, env.scratch, net, granted)


@helper
def follow_rule_with(net: Any, env: Environment) -> None:
    """Allocate by the named rule, to all visible jobs, also those beyond the window."""
    rule, how, active = env.exchange.choices[0], env.constants.config.how, env.state.scalars.active
    servers: Any = env.jobs
    rules.allocate_by_rule(rule, how, active, env.rows, servers, env.scratch, net, env.rows.granted)


@helper
def decide_priority(env: Environment, feasible: bool) -> None:
    """View priority."""
    prioritize_with(env.net, env)


@helper
def decide_priority_anywhere(env: Environment, feasible: bool) -> None:
    """View priority where jobs have no latencies."""
    prioritize_with(None, env)


@helper
def decide_rule(env: Environment, feasible: bool) -> None:
    """View rule."""
    follow_rule_with(env.net, env)


@helper
def decide_rule_anywhere(env: Environment, feasible: bool) -> None:
    """View rule where jobs have no latencies."""
    follow_rule_with(None, env)


# Observations ---------------------------------------------------------------------------------


@helper
def write_job_token(env: Environment, r: int) -> None:
    """Write a row's token."""
    s, jobs, rows, tokens = env.state.scalars, env.jobs, env.rows, env.observation.job_tokens
    cores = float(s.cores)
    job = rows.job[r]
    z = rows.phase[r]
    length = float(workload.length_of(jobs, job))
    demand = jobs.cpu[job, z] if env.constants.config.phases else rows.demand[r]
    held = 0
    granted = 0
    for i in range(rows.held.shape[1]):
        held += rows.held[r, i]
        granted += rows.granted[r, i]
        tokens[r, columns.JOB_FEATURES + i] = rows.held[r, i] / float(jobs.server_cpu[i])
    age = float(rows.age[r])
    token = columns.JobToken(
        age=age / (age + columns.SLOT_SCALE),
        processing=length / (length + columns.SLOT_SCALE),
        demand=demand / (demand + cores),
        memory=rows.memory[r] / float(s.memory),
        slots_left=rows.slots_left[r] / (rows.slots_left[r] + columns.SLOT_SCALE),
        remaining_work=rows.remaining[r] / (rows.remaining[r] + columns.WORK_SCALE * s.cores),
        cap=min(rows.cap[r] / cores, 1.0),
        held=held / cores,
        granted=granted / cores,
        second_phase=z,
    )
    put(tokens[r], 0, token)


@helper
def observe_features(env: Environment, count: int, picked: int) -> None:
    """Write the observation as tokens; with ``picked`` >= 0 only what that row's grant has changed."""
    s, rows, observation = env.state.scalars, env.rows, env.observation
    tokens = observation.job_tokens
    if picked >= 0:
        if picked < count:
            granted = 0
            for i in range(rows.granted.shape[1]):
                granted += rows.granted[picked, i]
            tokens[picked, columns.JOB.granted] = granted / float(s.cores)
    else:
        # of all jobs, also those beyond the window
        work = 0.0
        for r in range(s.active):
            work += rows.remaining[r]
            if r < count:
                write_job_token(env, r)
        clear_entries(tokens, count, s.shown)
        beyond = s.active - count
        whole = columns.GlobalToken(
            slot=s.slot / (s.slot + columns.CLOCK_SCALE),
            jobs=s.active / (s.active + columns.COUNT_SCALE),
            beyond=beyond / (beyond + columns.COUNT_SCALE),
            work_left=work / (work + columns.WORK_SCALE * s.cores),
            norm=1.0 / env.objective.weights.norm,
        )
        put(observation.global_tokens, 0, whole)
    for i in range(rows.granted.shape[1]):
        memory = float(max(env.jobs.server_memory[i], 1))
        observation.server_tokens[i, columns.SERVER.free_cores] = env.state.free[i] / float(
            env.jobs.server_cpu[i]
        )
        observation.server_tokens[i, columns.SERVER.free_memory] = env.state.free_memory[i] / memory


@helper
def observe_units(env: Environment, count: int, picked: int) -> None:
    """Write the observation in exact units; with ``picked`` >= 0 only what that row's grant has changed."""
    s = env.state.scalars
    if not env.constants.config.zero_copy:
        if picked < 0:
            for r in range(max(count, s.shown)):
                copy_row(env.rows, r, env.shown, r)
        elif picked < count:
            copy_entries(env.rows.granted, picked, env.shown.granted, picked)
    env.observation.slot[0] = s.slot
    env.observation.active[0] = s.active
    env.observation.backlog[0] = s.active - count


@helper
def observe(env: Environment) -> None:
    """Write the observation; within a slot only what the grant to the picked row has changed."""
    config, s, observation = env.constants.config, env.state.scalars, env.observation
    count = min(s.active, config.window)
    # within a slot a grant changes one row; at a new slot all rows are written
    picked = s.picked if s.observed == s.slot else -1
    if config.pick and config.mask:
        for r in range(count):
            observation.action_mask[r] = can_get(env, r)
        for r in range(count, s.shown):
            observation.action_mask[r] = 0
    if config.features:
        observe_features(env, count, picked)
    else:
        observe_units(env, count, picked)
    mark(observation.job_mask, s.shown, count)
    s.shown = count
    s.observed = s.slot
    env.exchange.result.rows = count


def has_no_latencies(simulator: Any) -> bool:
    """Return True if jobs run equally well on all servers: what packs by latency need not be compiled."""
    return not simulator.latency


VIEWS = (
    ViewDynamics("allocation", decode_allocation, decide_allocation),
    ViewDynamics("priority", always_feasible, decide_priority_anywhere, has_no_latencies),
    ViewDynamics("priority", always_feasible, decide_priority),
    ViewDynamics("pick", decode_pick, decide_pick),
    ViewDynamics("rule", always_feasible, decide_rule_anywhere, has_no_latencies),
    ViewDynamics("rule", always_feasible, decide_rule),
)
DYNAMICS = Dynamics(__name__, Environment, begin, advance, observe, VIEWS)
SCORING = Scoring(DYNAMICS, columns, ("priority", "pick"))
