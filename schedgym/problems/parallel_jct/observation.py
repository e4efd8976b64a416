"""The observations of ParallelJCT: the part of the kernels that writes them.

Only what has changed is written: the tasks of waiting jobs stay where they are, and while a job is being
planned task by task only its plan is written.
"""

from __future__ import annotations

import math

from schedgym.core.columns import put, read
from schedgym.core.jit import helper
from schedgym.core.rows import clear_entries, clearer, copier
from schedgym.problems.parallel_jct import columns
from schedgym.problems.parallel_jct.state import (
    PLACE,
    PLAN,
    SEARCH,
    Environment,
    Observation,
    can_place,
    job_of,
    may_choose,
    tasks_of,
)
from schedgym.problems.parallel_jct.workload import Jobs
from schedgym.solvers.placement import evaluate, largest_capacity, move_time, server_time, time_on

#: the values of a waiting job's task in an observation
TASK = ("load", "efficiency", "power")
show_task, move_task = copier(Jobs, Observation, only=TASK), copier(Observation, only=TASK)
clear_task = clearer(Observation, only=TASK)
clear_job = clearer(
    Observation,
    only=(
        *("job", "arrival", "age", "tasks", "first_task"),
        *("total_load", "least_energy", "energy_cap", "least_work", "failed"),
    ),
)
clear_running = clearer(Observation, only=tuple(n for n in Observation._fields if n.startswith("run_")))


# Exact units ----------------------------------------------------------------------------------


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
    # held rows are in the order of their tasks, so that tasks only move up
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
        # tasks of launched jobs leave gaps, which are closed only when the room is needed
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
        seen.least_work[r] = jobs.least_work[job]
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
        # rounding may have taken a task below zero
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


# Tokens ---------------------------------------------------------------------------------------


@helper
def scaled_count(count: int) -> float:
    """Scale a number to [0, 1) for tokens."""
    return count / (count + columns.COUNT_SCALE)


@helper
def scaled_time(time: float) -> float:
    """Scale a time [s] to [0, 1] for tokens; infinity becomes 1."""
    return 1.0 if time == math.inf else time / (time + columns.TIME_SCALE)


@helper
def write_job_tokens(env: Environment, count: int) -> None:
    """Write the tokens of the waiting jobs."""
    s, jobs, tokens = env.state.scalars, env.jobs, env.observation.job_tokens
    pool = largest_capacity(env.membership, env.state.limits, env.scratch)
    for r in range(count):
        job = env.state.queue[r]
        load = jobs.total_load[job]
        work = jobs.least_work[job]
        token = columns.JobToken(
            age=scaled_time(s.clock - jobs.arrival[job]),
            tasks=scaled_count(tasks_of(env, job)),
            load=load / (load + columns.LOAD_SCALE * s.capacity),
            energy=min(jobs.least_energy[job] / env.state.energy_cap[job], 1.0),
            failed=env.state.failed[job],
            bound=scaled_time(work / pool) if pool > 0.0 else 1.0,
            open=r == s.open_row,
        )
        put(tokens[r], 0, token)
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
        tokens[j, columns.SERVER.capacity] = cpu[j] / top
        tokens[j, columns.SERVER.available] = state.available[j] / cpu[j]
        tokens[j, columns.SERVER.alive] = state.alive[j]
    # numbers of tasks first, scaled when all are counted
    for q in range(state.scalars.running):
        tokens[env.state.running[q].server, columns.SERVER.running] += 1.0
    for j in range(cpu.shape[0]):
        tokens[j, columns.SERVER.running] = scaled_count(tokens[j, columns.SERVER.running])
    return free


@helper
def write_arrived_tokens(env: Environment) -> None:
    """Write what is known of the jobs that have arrived so far."""
    s, values = env.state.scalars, env.observation.global_tokens
    jobs = max(s.arrived, 1)
    mean = s.log_load / jobs
    # the variance is a difference, which rounding may make negative
    deviation = math.sqrt(max(s.log_squared / jobs - mean * mean, 0.0))
    values[columns.GLOBAL.mean_load] = scaled_time(math.exp(mean)) if s.arrived > 0 else 0.0
    values[columns.GLOBAL.deviation_of_log_load] = deviation / (deviation + 1.0)
    values[columns.GLOBAL.offered_load] = 0.0
    if s.arrived > 0:
        values[columns.GLOBAL.offered_load] = s.offered / (s.offered + (s.clock - env.jobs.arrival[0]))


@helper
def write_tokens(env: Environment, count: int) -> None:
    """Write the tokens, except for those of the plan."""
    s, tick = env.state.scalars, env.constants.config.tick
    write_job_tokens(env, count)
    free = write_server_tokens(env)
    values = env.observation.global_tokens
    values[columns.GLOBAL.arrival] = s.was_arrival
    values[columns.GLOBAL.completion] = s.was_completion
    values[columns.GLOBAL.tick] = s.was_tick
    values[columns.GLOBAL.available] = min(free / s.capacity, 1.0)
    values[columns.GLOBAL.waiting] = scaled_count(s.waiting)
    values[columns.GLOBAL.beyond] = scaled_count(s.waiting - count)
    values[columns.GLOBAL.running] = s.running / (s.running + 4.0 * columns.COUNT_SCALE)
    values[columns.GLOBAL.time_to_tick] = min(max((s.ticks * tick - s.clock) / tick, 0.0), 1.0)
    values[columns.GLOBAL.drc] = env.constants.config.drc
    write_arrived_tokens(env)


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
    values[columns.GLOBAL.progress] = progress
    values[columns.GLOBAL.energy] = spent
    values[columns.GLOBAL.time] = length


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
            token = columns.MoveToken(
                efficiency=jobs.efficiency[q, j], time=scaled_time(time), legal=plan.legal[row]
            )
            put(tokens[row], 0, token)
    for row in range(tasks * servers, tokens.shape[0]):
        # moves of the last plan: behind the first that is zero all are
        if read(columns.MoveToken, tokens[row]).efficiency == 0.0:
            break
        put(tokens[row], 0, columns.MoveToken(efficiency=0.0, time=0.0, legal=0.0))


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
            tokens[j, columns.SERVER.efficiency] = jobs.efficiency[q, j]
            tokens[j, columns.SERVER.time] = scaled_time(time)
            tokens[j, columns.SERVER.legal] = legal


# Masks, and all ---------------------------------------------------------------------------------


@helper
def observe_mask(env: Environment, count: int) -> None:
    """Write the mask of feasible actions, except for the servers of a job being placed."""
    s, window, mask = env.state.scalars, env.constants.config.window, env.observation.action_mask
    for r in range(max(count, s.shown)):
        mask[r] = s.open_row < 0 and r < count and may_choose(env, r)
    # a job that is being planned must be planned to its end
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
    # while a job is placed only its servers' part changes: see observe_servers
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
