"""State and compiled dynamics of ParallelJCT, for one environment.

Between events the running tasks do their work; an event is an arrival, the completion of a task, or a tick. A
round is a sequence of decisions at one instant: each launches a job or ends the round. Waiting jobs are rows
in order of arrival (ties: by index). Running tasks are rows in order of launch, then task.

Each view turns actions into a decision (``scalars.decision``) about the job in row ``scalars.row``, with a
server and vCPU for each of its tasks; :func:`advance` carries it out, and advances time to the next decision.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import (
    SCRATCH,
    SHARED,
    Bytes,
    Floats,
    Floats32,
    Integers,
    Integers32,
    Renamed,
)
from schedgym.core.jit import helper, pure_kernel, record_dtype
from schedgym.core.rows import clear_entries, clearer, copier, resetter
from schedgym.core.stepping import ActionSpace, Exchange, advance_each, decide_each
from schedgym.core.tables import accessor
from schedgym.problems.parallel_jct.metrics import CRUMB, INSTANT, Log, Schedule
from schedgym.problems.parallel_jct.tokens import (
    COUNT_SCALE,
    GLOBAL_COLUMNS,
    JOB_COLUMNS,
    LOAD_SCALE,
    MOVE_COLUMNS,
    SERVER_COLUMNS,
    TIME_SCALE,
)
from schedgym.problems.parallel_jct.workload import Jobs, cap_of_round
from schedgym.solvers.placement import (
    Job,
    Membership,
    PlanScratch,
    add_load,
    affords,
    evaluate,
    is_alive,
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

__all__ = ["DECIDE", "Environment", "Observation", "step"]

MOVE_FEATURES = len(MOVE_COLUMNS)

PLAN, PICK, PLACE, SEARCH = range(4)  # views, in the order of the descriptor
ON_TICKS, ON_EVENTS, ON_ALL = range(3)  # rounds, in the order of the descriptor
#: decisions: none yet (a job is being planned), end the round, launch the job, its planning failed
OPEN, END, LAUNCH, FAIL = range(4)

ROUNDING = 1e-9  # share by which given vCPU may exceed a limit

SCALARS = record_dtype(
    ("reward_scale", np.float64),
    ("clock", np.float64),
    ("capacity", np.float64),  # of all servers
    ("charged", np.float64),  # job-seconds in the system that no reward has charged yet
    ("arrived", np.int64),  # also the index of the next job to arrive
    ("completed", np.int64),
    ("waiting", np.int64),  # rows of waiting jobs
    ("running", np.int64),  # rows of running tasks
    ("ticks", np.int64),  # number of the next tick
    ("was_arrival", np.bool_),
    ("was_completion", np.bool_),
    ("was_tick", np.bool_),
    ("all_alive", np.bool_),  # whether all groups have vCPU available
    ("deciding", np.bool_),  # whether a round is open
    ("acted", np.bool_),  # whether any decision was made in this episode
    ("finished", np.bool_),
    ("truncated", np.bool_),
    ("decision", np.int64),
    ("row", np.int64),  # of the job that the decision is about
    ("open_row", np.int64),  # of the job being planned task by task, or -1
    ("next_task", np.int64),  # of that job
    ("moves", np.int64),
    ("energy", np.float64),  # of its tasks that are placed
    ("jct", np.float64),  # of these tasks
    ("held", np.int64),  # waiting rows whose tasks are in the observation
    ("task_end", np.int64),  # first free row of the observation's tasks
    ("told", np.int64),  # ``open_row`` at the last observation
    ("shown", np.int64),  # waiting rows that the last observation filled
    ("shown_running", np.int64),
    ("failures", np.int64),
    ("rounds", np.int64),
    ("repaired", np.int64),
)

CONFIG = record_dtype(
    ("action_view", np.int64),
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
    ("normalize", np.int64),
)


#: a running task
RUNNING = record_dtype(
    ("task", np.int64),
    ("job", np.int64),
    ("server", np.int64),
    ("piece", np.int64),  # its current row of the log, or -1
    ("leq", np.float64),
    ("remaining", np.float64),
    ("vcpu", np.float64),  # reserved; a record cannot have a field "base"
    ("extra", np.float64),
    ("end", np.float64),
)


class Constants(NamedTuple):
    """Constants of a simulator: its configuration."""

    config: Annotated[Any, CONFIG]


class State(NamedTuple):
    """The variables of an episode, except for the plan, the schedule and the log."""

    scalars: Annotated[Any, SCALARS]
    running: Annotated[Any, RUNNING, "task"]
    queue: Annotated[Integers32, "job"]  # waiting jobs
    first_row: Annotated[Integers32, "job"]  # of each waiting row: first row of its tasks in the observation
    failed: Annotated[Bytes, "job"]  # by job: 1 if its planning failed in this round
    between: Annotated[Integers32, "job"]  # by job: rounds between ticks that it has waited in
    energy_cap: Annotated[Floats, "job"]  # by job: E_MAX in this round
    power: Annotated[Floats, "task"]  # of every task per vCPU, as planners take it: 1
    unfinished: Annotated[Integers32, "job"]  # by job: number of tasks
    reserved: Annotated[Floats, "server"]  # sum of the tasks' base vCPU
    weight: Annotated[Floats, "server"]  # sum of the tasks' leq
    available: Annotated[Floats, "server"]
    limits: Annotated[Floats, "group"]
    alive: Annotated[Bytes, "server"]  # whether all groups of the server have vCPU available


class Plan(NamedTuple):
    """The job that is being planned, task by task."""

    placement: Annotated[Integers32, "planned"]
    vcpu: Annotated[Floats, "planned"]
    least: Annotated[Floats, "planned"]  # view place: least energy on servers with vCPU available
    rest: Annotated[Floats, "planned+1"]  # their sum from a task on
    placed: Annotated[Integers, "group"]  # tasks in each group
    group_load: Annotated[Floats, "group"]
    legal: Annotated[Bytes, "move"]  # view search: whether a task may move to a server


class Observation(NamedTuple):
    """Observation buffers that the kernel writes; those of the other kind of observation have length 0."""

    # shown in exact units, in every view
    clock: Annotated[Floats, 1]
    event: Annotated[Bytes, 3]
    time_to_tick: Annotated[Floats, 1]
    job: Annotated[Integers, "unit_row"]
    arrival: Annotated[Floats, "unit_row"]
    age: Annotated[Floats, "unit_row"]
    tasks: Annotated[Integers, "unit_row"]
    first_task: Annotated[Integers, "unit_row"]
    total_load: Annotated[Floats, "unit_row"]
    least_energy: Annotated[Floats, "unit_row"]
    energy_cap: Annotated[Floats, "unit_row"]
    failed: Annotated[Bytes, "unit_row"]
    waiting: Annotated[Integers, 1]
    backlog: Annotated[Integers, 1]
    load: Annotated[Floats, "task_row"]
    efficiency: Annotated[Floats, "task_row", "server"]
    running: Annotated[Integers, 1]
    run_job: Annotated[Integers, "running_row"]
    run_server: Annotated[Integers, "running_row"]
    run_leq: Annotated[Floats, "running_row"]
    run_remaining: Annotated[Floats, "running_row"]
    run_base: Annotated[Floats, "running_row"]
    run_extra: Annotated[Floats, "running_row"]
    # in the views that plan a job task by task
    open_job: Annotated[Integers, 1]
    next_task: Annotated[Integers, 1]
    placement: Annotated[Integers32, "planned"]
    energy: Annotated[Floats, 1]
    # in both kinds of observation
    job_mask: Annotated[Bytes, "row"]
    action_mask: Annotated[Bytes, "mask"]
    # as tokens
    job_tokens: Annotated[Floats32, "token_row", len(JOB_COLUMNS)]
    server_tokens: Annotated[Floats32, "token_server", len(SERVER_COLUMNS)]
    global_tokens: Annotated[Floats32, len(GLOBAL_COLUMNS)]
    move_tokens: Annotated[Floats32, "token_move", len(MOVE_COLUMNS)]


class Environment(NamedTuple):
    """All arrays of one environment: constants, workload, state, plan, observation and scratch space."""

    constants: Annotated[Constants, SHARED]
    action_space: Annotated[ActionSpace, SHARED]
    membership: Annotated[Membership, SHARED]
    jobs: Jobs
    state: State
    plan: Plan
    schedule: Schedule
    log: Log
    observation: Observation
    exchange: Exchange
    scratch: Annotated[PlanScratch, SCRATCH, Renamed(task="planned")]


#: the values of a waiting job's task in an observation
TASK = ("load", "efficiency")
reset = resetter(SCALARS, without=("shown", "shown_running"))
show_task, move_task = copier(Jobs, Observation, only=TASK), copier(Observation, only=TASK)
clear_task = clearer(Observation, only=TASK)
clear_job = clearer(
    Observation,
    only=(
        *("job", "arrival", "age", "tasks", "first_task"),
        *("total_load", "least_energy", "energy_cap", "failed"),
    ),
)
clear_running = clearer(Observation, only=tuple(n for n in Observation._fields if n.startswith("run_")))


@helper
def same_instant(a: float, b: float) -> Any:
    """Return True if an event at time a counts as one at time b [s]."""
    return abs(a - b) <= INSTANT * max(1.0, abs(b))


@helper
def tasks_of(env: Environment, job: int) -> int:
    """Return the number of tasks of a job."""
    return env.jobs.first_task[job + 1] - env.jobs.first_task[job]


@helper
def job_of(env: Environment, job: int) -> Job:
    """Return a job as planners take it, with the limits that are available now."""
    jobs, state = env.jobs, env.state
    return Job(
        jobs.first_task[job],
        tasks_of(env, job),
        jobs.load,
        jobs.efficiency,
        env.membership,
        state.limits,
        state.energy_cap[job],
        state.power,
    )


# Running tasks --------------------------------------------------------------------------------


@helper
def recount(env: Environment) -> None:
    """Sum up the vCPU reserved on each server, and so those available to a job there and in each group."""
    s, state, jobs, membership = env.state.scalars, env.state, env.jobs, env.membership
    servers = jobs.cpu.shape[0]
    for j in range(servers):
        state.reserved[j] = 0.0
        state.weight[j] = 0.0
    for q in range(s.running):
        row = state.running[q]
        state.reserved[row.server] += row.vcpu
        state.weight[row.server] += row.leq
    for j in range(servers):
        left = jobs.cpu[j] - state.reserved[j]
        state.available[j] = left if left > CRUMB * jobs.cpu[j] else 0.0
    s.all_alive = True
    for k in range(jobs.share.shape[0]):
        available = 0.0
        for e in range(membership.group_start[k], membership.group_start[k + 1]):
            available += state.available[membership.group_server[e]]
        state.limits[k] = jobs.share[k] * available
        if state.limits[k] <= 0.0:
            s.all_alive = False
    for j in range(servers):
        state.alive[j] = is_alive(j, membership, state.limits)


@helper
def distribute(env: Environment) -> None:
    """Apply DRC: a server's unreserved vCPU go to its tasks in proportion to their equivalent loads.

    A task whose vCPU change begins a new row of the log. Call :func:`recount` before.
    """
    s, state, log = env.state.scalars, env.state, env.log
    for q in range(s.running):
        row = state.running[q]
        extra = 0.0
        if env.constants.config.drc:
            left = env.jobs.cpu[row.server] - state.reserved[row.server]
            if left > 0.0:
                extra = left * row.leq / state.weight[row.server]
        if row.piece < 0 or extra != row.extra:
            piece = log.size.rows
            log.size.rows = piece + 1
            row.extra = extra
            row.piece = piece
            log.task[piece] = row.task
            log.server[piece] = row.server
            log.start[piece] = s.clock
            log.end[piece] = s.clock
            log.base[piece] = row.vcpu
            log.extra[piece] = extra
        row.end = s.clock + row.remaining / (row.vcpu + extra)


@helper
def work_until(env: Environment, now: float) -> None:
    """Let the running tasks work until time ``now`` [s]; charge the time to the jobs in the system."""
    s = env.state.scalars
    passed = now - s.clock
    if passed <= 0.0:
        return
    for q in range(s.running):
        row = env.state.running[q]
        row.remaining -= (row.vcpu + row.extra) * passed
        env.log.end[row.piece] = now
    s.clock = now
    s.charged += passed * (s.arrived - s.completed)


@helper
def complete_tasks(env: Environment) -> Any:
    """Remove the running tasks that end now; return True if there are any."""
    s, state, schedule = env.state.scalars, env.state, env.schedule
    kept = 0
    for q in range(s.running):
        row = state.running[q]
        if row.end <= s.clock or same_instant(row.end, s.clock):
            schedule.completed[row.task] = True
            state.unfinished[row.job] -= 1
            if state.unfinished[row.job] == 0:
                schedule.completion[row.job] = s.clock
                s.completed += 1
        else:
            if kept < q:
                state.running[kept] = row
            kept += 1
    some = kept < s.running
    s.running = kept
    return some


@helper
def launch(env: Environment) -> None:
    """Start the tasks of the job in row ``scalars.row`` as planned."""
    s, state, jobs, plan = env.state.scalars, env.state, env.jobs, env.plan
    job = state.queue[s.row]
    first, count = jobs.first_task[job], tasks_of(env, job)
    energy = 0.0
    for i in range(count):
        server = plan.placement[i]
        leq = jobs.load[first + i] / jobs.efficiency[first + i, server]
        row = state.running[s.running]
        row.task = first + i
        row.job = job
        row.server = server
        row.piece = -1
        row.leq = leq
        row.remaining = leq
        row.vcpu = plan.vcpu[i]
        row.extra = 0.0
        s.running += 1
        energy += leq
    state.unfinished[job] = count
    env.schedule.launch[job] = s.clock
    env.schedule.energy[job] = energy
    s.waiting -= 1
    for r in range(s.row, s.waiting):
        state.queue[r] = state.queue[r + 1]
        state.first_row[r] = state.first_row[r + 1]
    if s.row < s.held:
        s.held -= 1


# Time -----------------------------------------------------------------------------------------


@helper
def has_candidate(env: Environment) -> Any:
    """Return True if a visible waiting job may still be launched in this round."""
    for r in range(min(env.state.scalars.waiting, env.constants.config.window)):
        if not env.state.failed[env.state.queue[r]]:
            return True
    return False


@helper
def first_tick(tick: float, time: float) -> int:
    """Return the number of the first tick at or after a time [s]."""
    number = max(int(math.floor(time / tick)) - 1, 0)
    while number * tick < time:
        number += 1
    return number


@helper
def number_of_round(env: Environment, job: int) -> int:
    """Return the number of a job's round that opens now, as :func:`energy_draw` takes it, and count it.

    The number does not depend on which rounds the parameter ``rounds`` opens: at a tick it follows from the
    arrival and the clock, and rounds between ticks are opened at all events or at none.
    """
    s, tick = env.state.scalars, env.constants.config.tick
    now = int(math.floor(s.clock / tick + 0.5))
    if same_instant(s.clock, now * tick):
        return max(now - first_tick(tick, env.jobs.arrival[job]), 0)
    env.state.between[job] += 1
    return -env.state.between[job]


@helper
def open_round(env: Environment) -> Any:
    """Draw the energy caps of a round; return True if there is a decision to make."""
    s, state = env.state.scalars, env.state
    s.rounds += 1
    for r in range(s.waiting):
        job = state.queue[r]
        state.energy_cap[job] = cap_of_round(env.jobs, job, number_of_round(env, job))
        fails = not affords(env.jobs.least_energy[job], state.energy_cap[job])
        state.failed[job] = fails
        s.failures += fails
    return has_candidate(env)


@helper
def skip_ticks(env: Environment) -> None:
    """Skip the ticks before the clock, at which no job was waiting."""
    s, tick = env.state.scalars, env.constants.config.tick
    if s.ticks * tick < s.clock:
        s.ticks = first_tick(tick, s.clock)


@helper
def next_event(env: Environment) -> float:
    """Return the time of the next event; ends of tasks close to an arrival or a tick count as at its time."""
    s = env.state.scalars
    exact = math.inf
    if s.arrived < env.jobs.size.jobs:
        exact = env.jobs.arrival[s.arrived]
    if env.constants.config.rounds != ON_EVENTS and s.waiting > 0:  # else a tick changes nothing
        exact = min(exact, s.ticks * env.constants.config.tick)
    now = exact
    for q in range(s.running):
        now = min(now, env.state.running[q].end)
    return exact if exact < math.inf and same_instant(now, exact) else now


@helper
def process_events(env: Environment, now: float) -> None:
    """Process the events of an instant: arrivals, completions of tasks, a tick."""
    s, state = env.state.scalars, env.state
    work_until(env, now)
    s.clock = now
    s.was_arrival = False
    while s.arrived < env.jobs.size.jobs and env.jobs.arrival[s.arrived] <= now:
        state.queue[s.waiting] = s.arrived
        state.between[s.arrived] = 0
        s.waiting += 1
        s.arrived += 1
        s.was_arrival = True
    s.was_completion = complete_tasks(env)
    skip_ticks(env)
    s.was_tick = env.constants.config.rounds != ON_EVENTS and s.ticks * env.constants.config.tick == now
    if s.was_tick:
        s.ticks += 1
    if s.was_completion:
        recount(env)


@helper
def cut_off(env: Environment) -> None:
    """End the episode at ``max_time``."""
    s = env.state.scalars
    work_until(env, env.constants.config.max_time)
    skip_ticks(env)
    s.was_arrival = False
    s.was_completion = False
    s.was_tick = False
    s.finished = True
    s.truncated = True


@helper
def is_due(env: Environment) -> Any:
    """Return True if the events of this instant open a round."""
    s, rounds = env.state.scalars, env.constants.config.rounds
    due = s.was_tick
    if rounds != ON_TICKS:
        due = due or s.was_arrival or s.was_completion
    return due and s.waiting > 0 and s.clock < env.constants.config.max_time


@helper
def run_on(env: Environment, changed: bool) -> None:
    """Advance time until a decision is due, the episode ends, or the log is short of rows.

    ``changed``: True if tasks were launched or completed since the shares of DRC were computed; the reserved
    vCPU have been summed up since.
    """
    s, log = env.state.scalars, env.log
    s.deciding = False
    while True:
        if changed:
            if log.size.rows + s.running > log.task.shape[0]:
                env.exchange.result.short = True
                return
            distribute(env)
        if s.completed == env.jobs.size.jobs:
            s.finished = True
            return
        now = next_event(env)
        if now > env.constants.config.max_time:
            cut_off(env)
            return
        process_events(env, now)
        changed = s.was_completion
        if is_due(env) and open_round(env):
            s.deciding = True
            return


@helper
def carry_out(env: Environment) -> Any:
    """Carry out the decision; return True if the round is over."""
    s = env.state.scalars
    if s.decision == LAUNCH:
        launch(env)
        recount(env)
    elif s.decision == FAIL:
        env.state.failed[env.state.queue[s.row]] = 1
        s.failures += 1
    else:
        return s.decision == END
    return not has_candidate(env)


@helper
def settle(env: Environment) -> None:
    """Write reward and end of episode; time before the first decision is charged with that decision."""
    s, result = env.state.scalars, env.exchange.result
    env.schedule.end.clock = s.clock
    if s.acted:
        result.reward = -s.charged * s.reward_scale
        s.charged = 0.0
        result.terminated = s.finished and not s.truncated
        result.truncated = s.finished and s.truncated


@helper
def advance(env: Environment) -> None:
    """Carry out the decision, and advance time to the next one."""
    s, result = env.state.scalars, env.exchange.result
    runs = True
    if result.short:  # the log has been enlarged
        result.short = False
    else:
        s.acted = True
        s.repaired += result.repaired
        runs = carry_out(env)
    if runs:
        run_on(env, True)
    if not result.short:
        settle(env)


@helper
def begin(env: Environment) -> None:
    """Start an episode on the loaded workload: at time 0, then on to the first round."""
    s, state, schedule = env.state.scalars, env.state, env.schedule
    if not env.constants.config.features:
        clear_tasks(env, 0, s.task_end)
    reset(s)
    for j in range(env.jobs.cpu.shape[0]):
        s.capacity += env.jobs.cpu[j]
    alone = 0.0
    for job in range(env.jobs.size.jobs):
        schedule.launch[job] = math.nan
        schedule.completion[job] = math.nan
        schedule.energy[job] = 0.0
        state.failed[job] = 0
        alone += env.jobs.least_energy[job]
    for task in range(env.jobs.first_task[env.jobs.size.jobs]):
        schedule.completed[task] = False
        state.power[task] = 1.0
    s.reward_scale = 1.0 / env.jobs.size.jobs
    if env.constants.config.normalize:
        s.reward_scale = s.capacity / alone  # per job, over their mean time if each had all servers
    s.open_row = -1
    s.told = -1
    env.log.size.rows = 0
    recount(env)
    run_on(env, False)
    settle(env)


# Plans ----------------------------------------------------------------------------------------


@helper
def may_launch(env: Environment, r: int) -> Any:
    """Return True if row r is a visible waiting job that has not failed in this round."""
    s = env.state.scalars
    if not s.deciding or r < 0 or r >= min(s.waiting, env.constants.config.window):
        return False  # the episode was over before its first round
    return env.state.failed[env.state.queue[r]] == 0


@helper
def best_efficiency(env: Environment, q: int) -> float:
    """Return a task's largest efficiency on servers whose groups all have vCPU available; 0 if none has."""
    best = 0.0
    for j in range(env.jobs.cpu.shape[0]):
        if env.jobs.efficiency[q, j] > best and env.state.alive[j]:
            best = env.jobs.efficiency[q, j]
    return best


@helper
def usable_energy(env: Environment, job: int) -> float:
    """Return a job's least energy on servers whose groups all have vCPU available; inf if none has."""
    if env.state.scalars.all_alive:
        return env.jobs.least_energy[job]
    total = 0.0
    for q in range(env.jobs.first_task[job], env.jobs.first_task[job + 1]):
        best = best_efficiency(env, q)
        if best == 0.0:
            return math.inf
        total += env.jobs.load[q] / best
    return total


@helper
def may_choose(env: Environment, r: int) -> Any:
    """Return True if the job in row r may be chosen; in view place each of its tasks must fit somewhere."""
    if not may_launch(env, r):
        return False
    if env.constants.config.action_view != PLACE:
        return True
    job = env.state.queue[r]
    return affords(usable_energy(env, job), env.state.energy_cap[job])


@helper
def can_place(env: Environment, server: int) -> Any:
    """View place: return True if the next task of the job being placed may go to the server.

    The server with its least energy is always allowed: the earlier placements left enough energy for it, and
    only rounding of the sum could deny it.
    """
    s, plan = env.state.scalars, env.plan
    job = env.state.queue[s.open_row]
    q = env.jobs.first_task[job] + s.next_task
    leq = env.jobs.load[q] / env.jobs.efficiency[q, server]
    whole = s.energy + leq + plan.rest[s.next_task + 1]
    fits = affords(whole, env.state.energy_cap[job]) or leq <= plan.least[s.next_task]
    return fits and env.state.alive[server] != 0


@helper
def weigh(env: Environment, job: int) -> tuple[float, float]:
    """Return completion time and energy of a job as placed; sets the scratch space."""
    return evaluate(job_of(env, job), env.plan.placement, env.scratch)


@helper
def decide_launch(env: Environment, r: int, jct: float) -> None:
    """Decide to launch the job in row r as placed and evaluated, by Eq. 16; fail if it would never end."""
    s, plan = env.state.scalars, env.plan
    s.row = r
    s.open_row = -1
    s.decision = FAIL
    if jct < math.inf:
        optra_vcpu(job_of(env, env.state.queue[r]), plan.placement, env.scratch, plan.vcpu)
        s.decision = LAUNCH


@helper
def conclude(env: Environment, r: int) -> None:
    """Decide to launch the job in row r as placed."""
    jct, _ = weigh(env, env.state.queue[r])
    decide_launch(env, r, jct)


@helper
def start_placing(env: Environment, r: int) -> None:
    """Begin to place the tasks of the job in row r (view place)."""
    s, plan, jobs = env.state.scalars, env.plan, env.jobs
    job = env.state.queue[r]
    count = tasks_of(env, job)
    s.open_row = r
    s.next_task = 0
    s.energy = 0.0
    s.jct = 0.0
    for k in range(plan.placed.shape[0]):
        plan.placed[k] = 0
        plan.group_load[k] = 0.0
    plan.rest[count] = 0.0
    for i in range(count - 1, -1, -1):
        q = jobs.first_task[job] + i
        plan.placement[i] = -1
        plan.least[i] = jobs.load[q] / best_efficiency(env, q)
        plan.rest[i] = plan.rest[i + 1] + plan.least[i]


@helper
def mark_moves(env: Environment) -> int:
    """View search: evaluate the job being planned, mark its legal moves, and return their number."""
    s = env.state.scalars
    job = env.state.queue[s.open_row]
    s.jct, s.energy = weigh(env, job)
    return search_mask(job_of(env, job), s.energy, env.plan.placement, env.scratch, env.plan.legal)


# Actions, view by view: the test of feasibility, and the decision (``scalars.decision``).


@helper
def fits_pick(env: Environment) -> Any:
    """View pick: return True if the action is a row that may be chosen, or ends the round."""
    choice = env.exchange.choices[0]
    return choice == env.constants.config.window or may_choose(env, choice)


@helper
def take_pick(env: Environment, feasible: bool) -> None:
    """View pick: plan the job in the chosen row by TaPRA-fast. Repair: the round ends."""
    s = env.state.scalars
    r = env.exchange.choices[0]
    s.decision = END
    if r == env.constants.config.window or not feasible:
        return
    decide_launch(env, r, tapra_fast(job_of(env, env.state.queue[r]), env.plan.placement, env.scratch))


@helper
def fits_place(env: Environment) -> Any:
    """View place: return True for a feasible row, the end (W), or W + 1 + server of the next task in turn."""
    choice, window = env.exchange.choices[0], env.constants.config.window
    if env.state.scalars.open_row >= 0:
        return choice > window and can_place(env, choice - window - 1)
    return choice == window or may_choose(env, choice)


@helper
def least_server(env: Environment, q: int) -> int:
    """Return the allowed server on which task q, the next to be placed, has the least equivalent load."""
    best = math.inf
    server = -1
    for j in range(env.jobs.cpu.shape[0]):
        if can_place(env, j):
            leq = env.jobs.load[q] / env.jobs.efficiency[q, j]
            if leq < best:
                best = leq
                server = j
    return server


@helper
def take_place(env: Environment, feasible: bool) -> None:
    """View place: note the task's server, and launch the job after its last one.

    Repair: a row that cannot be launched ends the round; a server that cannot take the task is replaced by
    the one that can with the least equivalent load (ties: the lowest).
    """
    s, plan, window = env.state.scalars, env.plan, env.constants.config.window
    choice = env.exchange.choices[0]
    s.decision = OPEN
    if s.open_row < 0:
        if not feasible or choice == window:
            s.decision = END
        else:
            start_placing(env, choice)
        return
    job = env.state.queue[s.open_row]
    q = env.jobs.first_task[job] + s.next_task
    server = choice - window - 1 if feasible else least_server(env, q)
    leq = env.jobs.load[q] / env.jobs.efficiency[q, server]
    plan.placement[s.next_task] = server
    s.energy += leq
    s.jct = max(s.jct, time_on(server, leq, env.membership, env.state.limits, plan.group_load))
    add_load(server, leq, env.membership, plan.placed, plan.group_load)
    s.next_task += 1
    if s.next_task == tasks_of(env, job):
        conclude(env, s.open_row)


@helper
def fits_search(env: Environment) -> Any:
    """View search: return True for a feasible row, the end (W), W + 1 + task * M + server, or the launch."""
    s, config = env.state.scalars, env.constants.config
    choice, servers = env.exchange.choices[0], env.jobs.cpu.shape[0]
    if s.open_row < 0:
        return choice == config.window or may_choose(env, choice)
    move = choice - config.window - 1
    if move == config.most_tasks * servers:
        return True
    if move < 0 or move >= tasks_of(env, env.state.queue[s.open_row]) * servers:
        return False
    return env.plan.legal[move] != 0


@helper
def take_search(env: Environment, feasible: bool) -> None:
    """View search: make the move.

    Planning starts with every task on its most efficient server, and ends when no move is legal or there
    were ``max_moves``. Repair: a row that cannot be launched ends the round; an illegal move launches.
    """
    s, jobs, placement = env.state.scalars, env.jobs, env.plan.placement
    config, servers = env.constants.config, env.jobs.cpu.shape[0]
    choice = env.exchange.choices[0]
    move = choice - config.window - 1
    s.decision = OPEN
    if s.open_row < 0:
        if not feasible or choice == config.window:
            s.decision = END
            return
        s.open_row = choice
        s.moves = 0
        job = env.state.queue[choice]
        most_efficient(jobs.first_task[job], tasks_of(env, job), jobs.efficiency, placement)
    elif feasible and move < config.most_tasks * servers:
        placement[move // servers] = move % servers
        s.moves += 1
    else:
        conclude(env, s.open_row)
        return
    legal = mark_moves(env)
    if s.moves >= config.max_moves or legal == 0:
        conclude(env, s.open_row)


@helper
def chosen_row(env: Environment) -> int:
    """View plan: return the chosen row, the window for the end of the round, or -1 if it is no row."""
    row = env.exchange.numbers[0, 0]
    if row < 0.0 or row > env.constants.config.window or row != math.floor(row):
        return -1
    return int(row)


@helper
def take_servers(env: Environment, count: int) -> Any:
    """View plan: set the placement, rounded and clipped; return True if it needed no rounding or clipping."""
    servers = env.jobs.cpu.shape[0]
    exact = True
    for i in range(count):
        server = env.exchange.numbers[1 + i, 0]
        if server < 0.0 or server >= servers or server != math.floor(server):
            exact = False
        env.plan.placement[i] = int(math.floor(min(max(server, 0.0), servers - 1.0) + 0.5))
    return exact


@helper
def vcpu_given(env: Environment, count: int) -> Any:
    """View plan: return True if the action gives any vCPU."""
    for i in range(count):
        if env.exchange.numbers[1 + i, 1] != 0.0:
            return True
    return False


@helper
def vcpu_fit(env: Environment, count: int) -> Any:
    """View plan: return True if the given vCPU are positive and within the limit of every group."""
    membership, total = env.membership, env.plan.group_load
    for k in range(total.shape[0]):
        total[k] = 0.0
    for i in range(count):
        vcpu = env.exchange.numbers[1 + i, 1]
        if vcpu <= 0.0:
            return False
        j = env.plan.placement[i]
        for e in range(membership.server_start[j], membership.server_start[j + 1]):
            total[membership.server_group[e]] += vcpu
    for k in range(total.shape[0]):
        if total[k] > env.state.limits[k] * (1.0 + ROUNDING):
            return False
    return True


@helper
def fits_plan(env: Environment) -> Any:
    """View plan: set the placement by (row or W, 0), then (server, vCPU) per task; True if it is feasible."""
    r = chosen_row(env)
    if r == env.constants.config.window:
        return True
    if not may_launch(env, r):
        return False
    job = env.state.queue[r]
    count = tasks_of(env, job)
    if not take_servers(env, count):
        return False
    _, energy = weigh(env, job)
    if not affords(energy, env.state.energy_cap[job]):
        return False
    return not vcpu_given(env, count) or vcpu_fit(env, count)


@helper
def take_plan(env: Environment, feasible: bool) -> None:
    """View plan: launch the job; if all vCPU are 0, they follow from Eq. 16.

    Repair: a row that cannot be launched ends the round; servers are rounded and clipped; energy above the
    cap is reduced by REC (if that fails the job has failed in this round); infeasible vCPU become those of
    Eq. 16.
    """
    s = env.state.scalars
    s.decision = END
    r = chosen_row(env)
    if r == env.constants.config.window or not may_launch(env, r):
        return
    job = env.state.queue[r]
    count = tasks_of(env, job)
    if not feasible and not reduce_energy(job_of(env, job), False, env.plan.placement, env.scratch):
        decide_launch(env, r, math.inf)
    elif vcpu_given(env, count) and vcpu_fit(env, count):
        for i in range(count):
            env.plan.vcpu[i] = env.exchange.numbers[1 + i, 1]
        s.row = r
        s.decision = LAUNCH
    else:
        conclude(env, r)


# Observations ---------------------------------------------------------------------------------


@helper
def clear_tasks(env: Environment, first: int, last: int) -> None:
    """Set task rows of the observation to zero."""
    for row in range(first, last):
        clear_task(env.observation, row)


@helper
def close_gaps(env: Environment) -> None:
    """Remove the tasks of launched jobs from the observation; those behind them move up."""
    s, state, observation = env.state.scalars, env.state, env.observation
    end = 0
    for r in range(s.held):
        old = state.first_row[r]
        state.first_row[r] = end
        for row in range(old, old + tasks_of(env, state.queue[r])):
            move_task(observation, row, observation, end)
            end += 1
    clear_tasks(env, end, s.task_end)
    s.task_end = end


@helper
def hold_tasks(env: Environment, count: int) -> None:
    """Add the tasks of the first ``count`` waiting jobs to the observation, unless they are there."""
    s, state, jobs, observation = env.state.scalars, env.state, env.jobs, env.observation
    while s.held < count:
        job = state.queue[s.held]
        if s.task_end + tasks_of(env, job) > observation.load.shape[0]:
            close_gaps(env)
        state.first_row[s.held] = s.task_end
        for q in range(jobs.first_task[job], jobs.first_task[job + 1]):
            show_task(jobs, q, observation, s.task_end)
            s.task_end += 1
        s.held += 1


@helper
def observe_jobs(env: Environment, count: int) -> None:
    """Write the waiting jobs in exact units, except for their tasks."""
    state, jobs, seen = env.state, env.jobs, env.observation
    for r in range(count):
        job = state.queue[r]
        seen.job[r] = job
        seen.arrival[r] = jobs.arrival[job]
        seen.age[r] = state.scalars.clock - jobs.arrival[job]
        seen.tasks[r] = tasks_of(env, job)
        seen.first_task[r] = state.first_row[r]
        seen.total_load[r] = jobs.total_load[job]
        seen.least_energy[r] = jobs.least_energy[job]
        seen.energy_cap[r] = state.energy_cap[job]
        seen.failed[r] = state.failed[job]
    for r in range(count, state.scalars.shown):
        clear_job(seen, r)


@helper
def observe_running(env: Environment) -> None:
    """Write the running tasks in exact units."""
    s, seen = env.state.scalars, env.observation
    rows = min(s.running, env.constants.config.running_window)
    seen.running[0] = s.running
    for q in range(rows):
        row = env.state.running[q]
        seen.run_job[q] = row.job
        seen.run_server[q] = row.server
        seen.run_leq[q] = row.leq
        seen.run_remaining[q] = max(row.remaining, 0.0)
        seen.run_base[q] = row.vcpu
        seen.run_extra[q] = row.extra
    for q in range(rows, s.shown_running):
        clear_running(seen, q)
    s.shown_running = rows


@helper
def observe_units(env: Environment, count: int) -> None:
    """Write everything except the plan in exact units."""
    s, seen = env.state.scalars, env.observation
    seen.clock[0] = s.clock
    seen.event[0] = s.was_arrival
    seen.event[1] = s.was_completion
    seen.event[2] = s.was_tick
    seen.time_to_tick[0] = max(s.ticks * env.constants.config.tick - s.clock, 0.0)
    seen.waiting[0] = s.waiting
    seen.backlog[0] = s.waiting - count
    hold_tasks(env, count)
    observe_jobs(env, count)
    observe_running(env)


@helper
def observe_plan(env: Environment) -> None:
    """Views place and search: write the plan of the job being planned in exact units."""
    s, config, seen = env.state.scalars, env.constants.config, env.observation
    is_open = s.open_row >= 0
    seen.open_job[0] = s.open_row if is_open else config.window
    seen.next_task[0] = s.next_task if is_open and config.action_view == PLACE else config.most_tasks
    seen.energy[0] = s.energy if is_open else 0.0
    tasks = tasks_of(env, env.state.queue[s.open_row]) if is_open else 0
    for i in range(config.most_tasks):
        seen.placement[i] = env.plan.placement[i] if i < tasks else -1


@helper
def scaled_count(count: int) -> float:
    """Scale a number to [0, 1) for tokens."""
    return count / (count + COUNT_SCALE)


@helper
def scaled_time(time: float) -> float:
    """Scale a time [s] to [0, 1] for tokens; infinity becomes 1."""
    return 1.0 if time == math.inf else time / (time + TIME_SCALE)


@helper
def write_job_tokens(env: Environment, count: int) -> None:
    """Write the tokens of the waiting jobs."""
    s, jobs, tokens = env.state.scalars, env.jobs, env.observation.job_tokens
    pool = largest_capacity(env.membership, env.state.limits, env.scratch)
    for r in range(count):
        job = env.state.queue[r]
        load = jobs.total_load[job]
        least = jobs.least_energy[job]
        tokens[r, 0] = scaled_time(s.clock - jobs.arrival[job])
        tokens[r, 1] = scaled_count(tasks_of(env, job))
        tokens[r, 2] = load / (load + LOAD_SCALE * s.capacity)
        tokens[r, 3] = min(least / env.state.energy_cap[job], 1.0)
        tokens[r, 4] = env.state.failed[job]
        tokens[r, 5] = scaled_time(least / pool) if pool > 0.0 else 1.0
        tokens[r, 6] = r == s.open_row
    clear_entries(tokens, count, s.shown)


@helper
def write_server_tokens(env: Environment) -> float:
    """Write the server tokens, except for a task to be placed; return the total of available vCPU."""
    state, cpu, tokens = env.state, env.jobs.cpu, env.observation.server_tokens
    top = 0.0
    for j in range(cpu.shape[0]):
        top = max(top, cpu[j])
    free = 0.0
    clear_entries(tokens, 0, cpu.shape[0])
    for j in range(cpu.shape[0]):
        free += state.available[j]
        tokens[j, 0] = cpu[j] / top
        tokens[j, 1] = state.available[j] / cpu[j]
        tokens[j, 3] = state.alive[j]
    for q in range(state.scalars.running):
        tokens[env.state.running[q].server, 2] += 1.0
    for j in range(cpu.shape[0]):
        tokens[j, 2] = scaled_count(tokens[j, 2])
    return free


@helper
def write_tokens(env: Environment, count: int) -> None:
    """Write the tokens, except for those of the plan."""
    s, tick = env.state.scalars, env.constants.config.tick
    write_job_tokens(env, count)
    free = write_server_tokens(env)
    values = env.observation.global_tokens
    values[0] = s.was_arrival
    values[1] = s.was_completion
    values[2] = s.was_tick
    values[3] = min(free / s.capacity, 1.0)
    values[4] = scaled_count(s.waiting)
    values[5] = scaled_count(s.waiting - count)
    values[6] = s.running / (s.running + 4.0 * COUNT_SCALE)
    values[7] = min(max((s.ticks * tick - s.clock) / tick, 0.0), 1.0)


@helper
def write_plan_tokens(env: Environment) -> None:
    """Write the tokens of the job being planned."""
    s, view = env.state.scalars, env.constants.config.action_view
    progress = 0.0
    spent = 0.0
    length = 0.0
    if s.open_row >= 0:
        job = env.state.queue[s.open_row]
        spent = min(s.energy / env.state.energy_cap[job], 1.0)
        length = scaled_time(s.jct)
        progress = s.next_task / tasks_of(env, job) if view == PLACE else scaled_count(s.moves)
    if view == SEARCH:
        write_moves(env)
    values = env.observation.global_tokens
    values[8] = progress
    values[9] = spent
    values[10] = length


@helper
def write_moves(env: Environment) -> None:
    """View search: write the tokens of the moves of the job being planned; the rest is zero."""
    s, state, jobs, plan = env.state.scalars, env.state, env.jobs, env.plan
    membership, scratch = env.membership, env.scratch
    tokens, servers = env.observation.move_tokens, jobs.cpu.shape[0]
    tasks = 0
    planned = job_of(env, state.queue[max(s.open_row, 0)])
    if s.open_row >= 0:
        evaluate(planned, plan.placement, scratch)
        tasks = planned.tasks
    for i in range(tasks):
        own = server_time(plan.placement[i], membership, scratch)
        q = planned.first + i
        for j in range(servers):
            time = own
            if j != plan.placement[i]:
                leq = jobs.load[q] / jobs.efficiency[q, j]
                time = move_time(planned, i, j, leq, plan.placement, scratch)
            row = i * servers + j
            tokens[row, 0] = jobs.efficiency[q, j]
            tokens[row, 1] = scaled_time(time)
            tokens[row, 2] = plan.legal[row]
    for row in range(tasks * servers, tokens.shape[0]):
        if tokens[row, 0] == 0.0:
            break
        for f in range(MOVE_FEATURES):
            tokens[row, f] = 0.0


@helper
def observe_servers(env: Environment) -> None:
    """View place: write the mask and tokens of the servers for the next task of the job being placed."""
    s, jobs, config, tokens = env.state.scalars, env.jobs, env.constants.config, env.observation.server_tokens
    q = jobs.first_task[env.state.queue[s.open_row]] + s.next_task
    for j in range(jobs.cpu.shape[0]):
        legal = can_place(env, j)
        if config.mask:
            env.observation.action_mask[config.window + 1 + j] = legal
        if config.features:
            leq = jobs.load[q] / jobs.efficiency[q, j]
            time = time_on(j, leq, env.membership, env.state.limits, env.plan.group_load)
            tokens[j, 4] = jobs.efficiency[q, j]
            tokens[j, 5] = scaled_time(time)
            tokens[j, 6] = legal


@helper
def observe_mask(env: Environment, count: int) -> None:
    """Write the mask of feasible actions, except for the servers of a job being placed."""
    s, window, mask = env.state.scalars, env.constants.config.window, env.observation.action_mask
    for r in range(max(count, s.shown)):
        mask[r] = s.open_row < 0 and r < count and may_choose(env, r)
    mask[window] = s.open_row < 0
    for i in range(window + 1, mask.shape[0]):
        mask[i] = 0
    if env.constants.config.action_view == SEARCH and s.open_row >= 0:
        for move in range(tasks_of(env, env.state.queue[s.open_row]) * env.jobs.cpu.shape[0]):
            mask[window + 1 + move] = env.plan.legal[move]
        mask[mask.shape[0] - 1] = 1


@helper
def observe_rows(env: Environment, count: int) -> None:
    """Write the mask of rows with a job, and how many rows of an action are read."""
    s = env.state.scalars
    longest = 0
    for r in range(count):
        longest = max(longest, tasks_of(env, env.state.queue[r]))
    for r in range(max(count, s.shown)):
        env.observation.job_mask[r] = r < count
    s.shown = count
    env.exchange.result.rows = 1 + longest


@helper
def observe(env: Environment) -> None:
    """Write the observation."""
    s, config = env.state.scalars, env.constants.config
    view = config.action_view
    count = min(s.waiting, config.window) if s.deciding else 0
    steady = s.open_row >= 0 and s.told == s.open_row  # True if only the plan of a job has changed
    s.told = s.open_row
    if config.mask and view != PLAN and not (steady and view == PLACE):
        observe_mask(env, count)
    if config.features:
        if not steady:
            write_tokens(env, count)
        write_plan_tokens(env)
    else:
        if not steady:
            observe_units(env, count)
        if view == PLACE or view == SEARCH:
            observe_plan(env)
    if view == PLACE and s.open_row >= 0:
        observe_servers(env)
    if not steady:
        observe_rows(env, count)


access = accessor(Environment)

#: action view -> the kernel that takes its actions
DECIDE: dict[str, Any] = {
    "plan": pure_kernel(
        lambda table, tools, command: decide_each(access, fits_plan, take_plan, table, tools, command)
    ),
    "pick": pure_kernel(
        lambda table, tools, command: decide_each(access, fits_pick, take_pick, table, tools, command)
    ),
    "place": pure_kernel(
        lambda table, tools, command: decide_each(access, fits_place, take_place, table, tools, command)
    ),
    "search": pure_kernel(
        lambda table, tools, command: decide_each(access, fits_search, take_search, table, tools, command)
    ),
}


@pure_kernel
def step(table: Any, tools: Any, command: Any) -> int:
    """Carry out the decisions; see :func:`~schedgym.core.stepping.advance_each`."""
    return advance_each(access, begin, advance, observe, table, tools, command)
