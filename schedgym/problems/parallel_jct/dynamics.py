"""Compiled dynamics of ParallelJCT, for one environment; see :mod:`schedgym.problems.parallel_jct.state`.

Between events the running tasks do their work; an event is an arrival, the completion of a task, or a tick. A
round is a sequence of decisions at one instant: each launches a job or ends the round.

Each view turns actions into a decision (``scalars.decision``) about the job in row ``scalars.row``, with a
server and vCPU for each of its tasks; :func:`advance` carries it out, and advances time to the next decision.
"""

from __future__ import annotations

import math
from typing import Any

from schedgym.core.jit import helper, subroutine
from schedgym.core.kernels import Dynamics, Scoring, ViewDynamics
from schedgym.core.rows import resetter
from schedgym.problems.parallel_jct import columns
from schedgym.problems.parallel_jct.metrics import CRUMB, INSTANT
from schedgym.problems.parallel_jct.observation import clear_tasks, observe
from schedgym.problems.parallel_jct.state import (
    SCALARS,
    Environment,
    best_efficiency,
    can_place,
    job_of,
    may_choose,
    may_launch,
    tasks_of,
)
from schedgym.problems.parallel_jct.workload import cap_of_round
from schedgym.solvers.placement import (
    add_load,
    affords,
    evaluate,
    is_alive,
    list_scheduling,
    most_efficient,
    optra_vcpu,
    reduce_energy,
    search_mask,
    tapra_fast,
    time_on,
)

ON_TICKS, ON_EVENTS, ON_ALL = range(3)  # rounds, in the order of the descriptor
TAPRA_FAST, LIST_SCHEDULING = range(2)  # planners of view pick, in the order of the descriptor
#: decisions: none yet (a job is being planned), end the round, launch the job, its planning failed
OPEN, END, LAUNCH, FAIL = range(4)

ROUNDING = 1e-9  # share by which given vCPU may exceed a limit

reset = resetter(SCALARS, without=("shown", "shown_running"))


@helper
def same_instant(a: float, b: float) -> Any:
    """Return True if an event at time a counts as one at time b [s]."""
    return abs(a - b) <= INSTANT * max(1.0, abs(b))


# Running tasks --------------------------------------------------------------------------------


@helper
def recount(env: Environment) -> None:
    """Sum up the vCPU reserved on each server, and so those available to a job there and in each group."""
    s, state, jobs, membership = env.state.scalars, env.state, env.jobs, env.membership
    servers = jobs.cpu.shape[0]
    for j in range(servers):
        state.reserved[j] = 0.0
        state.weight[j] = 0.0
    # summed up anew each time: differences would gather rounding errors
    for q in range(s.running):
        row = state.running[q]
        state.reserved[row.server] += row.vcpu
        state.weight[row.server] += row.leq
    for j in range(servers):
        left = jobs.cpu[j] - state.reserved[j]
        # a crumb that rounding leaves is nothing that a task could run on
        state.available[j] = left if left > CRUMB * jobs.cpu[j] else 0.0
    s.all_alive = True
    # a group limits a job to a share of what its servers have left
    for k in range(jobs.share.shape[0]):
        available = 0.0
        for e in range(membership.group_start[k], membership.group_start[k + 1]):
            available += membership.group_weight[e] * state.available[membership.group_server[e]]
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
        # the log has a row per piece of constant vCPU
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
        # nothing changes the speed before the next event
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
    # every job in the system costs a second a second
    s.charged += passed * (s.arrived - s.completed)


@helper
def complete_tasks(env: Environment) -> Any:
    """Remove the running tasks that end now; return True if there are any."""
    s, state, schedule = env.state.scalars, env.state, env.schedule
    kept = 0
    for q in range(s.running):
        row = state.running[q]
        # ends that rounding tears apart are one event
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
        energy += jobs.power[first + i] * leq
    state.unfinished[job] = count
    env.schedule.launch[job] = s.clock
    env.schedule.energy[job] = energy
    s.waiting -= 1
    # rows behind it move up, and with them where their tasks stand in the observation
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
    # at a tick: counted from the first one at which the job waited
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
        # no placement keeps this cap: the job is out until the next round
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
    # arrivals and ticks are exact times: an end within rounding of one takes its time
    now = exact
    for q in range(s.running):
        now = min(now, env.state.running[q].end)
    return exact if exact < math.inf and same_instant(now, exact) else now


@helper
def arrive(env: Environment) -> None:
    """Let the next job arrive, which then waits; add up what is known of the jobs that have arrived."""
    s, job = env.state.scalars, env.state.scalars.arrived
    env.state.queue[s.waiting] = job
    env.state.between[job] = 0
    s.waiting += 1
    s.arrived = job + 1
    s.was_arrival = True
    load = env.jobs.total_load[job] / s.capacity
    logarithm = math.log(load)
    s.offered += load
    s.log_load += logarithm
    s.log_squared += logarithm * logarithm


@subroutine
def process_events(env: Environment, now: float) -> None:
    """Process the events of an instant: arrivals, completions of tasks, a tick."""
    s = env.state.scalars
    # 1. the time up to the events
    work_until(env, now)
    s.clock = now
    s.was_arrival = False
    # 2. arrivals, ends of tasks, a tick: all before the round that they open
    while s.arrived < env.jobs.size.jobs and env.jobs.arrival[s.arrived] <= now:
        arrive(env)
    s.was_completion = complete_tasks(env)
    skip_ticks(env)
    s.was_tick = env.constants.config.rounds != ON_EVENTS and s.ticks * env.constants.config.tick == now
    if s.was_tick:
        s.ticks += 1
    # 3. what the ends have freed can be reserved in that round
    if s.was_completion:
        recount(env)


@helper
def cut_off(env: Environment) -> None:
    """End the episode at ``max_time``."""
    s = env.state.scalars
    work_until(env, env.constants.config.max_time)
    skip_ticks(env)
    # no event: the end of the episode is none of the three
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
        # running tasks share what is left over until the next event
        if changed:
            if log.size.rows + s.running > log.task.shape[0]:
                env.exchange.result.short = True
                return
            distribute(env)
        if s.completed == env.jobs.size.jobs:
            s.finished = True
            return
        now = next_event(env)
        # jobs that have not completed are charged until then
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
    # the round goes on while a job is left to be launched or to fail
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
        alone += env.jobs.least_work[job]
    for task in range(env.jobs.first_task[env.jobs.size.jobs]):
        schedule.completed[task] = False
    s.reward_scale = 1.0 / env.jobs.size.jobs
    if env.constants.config.normalize:
        s.reward_scale = s.capacity / alone  # per job, over their mean time if each had all servers
    s.open_row = -1
    # no plan has been observed
    s.told = -1
    env.log.size.rows = 0
    recount(env)
    run_on(env, False)
    settle(env)


# Plans ----------------------------------------------------------------------------------------


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
    # from the last task on: what the tasks behind one will need at least
    for i in range(count - 1, -1, -1):
        q = jobs.first_task[job] + i
        plan.placement[i] = -1
        plan.least[i] = jobs.power[q] * (jobs.load[q] / best_efficiency(env, q))
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
def decode_pick(env: Environment) -> Any:
    """View pick: return True if the action is a row that may be chosen, or ends the round."""
    choice = env.exchange.choices[0]
    return choice == env.constants.config.window or may_choose(env, choice)


@helper
def measure_work(env: Environment) -> None:
    """Add up the work that the running tasks of each server have left, for list scheduling."""
    work = env.scratch.work
    for j in range(work.shape[0]):
        work[j] = 0.0
    for q in range(env.state.scalars.running):
        work[env.state.running[q].server] += max(env.state.running[q].remaining, 0.0)


@helper
def decide_pick(env: Environment, feasible: bool) -> None:
    """View pick: plan the job in the chosen row by the planner of the view. Repair: the round ends."""
    s = env.state.scalars
    r = env.exchange.choices[0]
    s.decision = END
    if r == env.constants.config.window or not feasible:
        return
    planned = job_of(env, env.state.queue[r])
    if env.constants.config.planner == LIST_SCHEDULING:
        measure_work(env)
        decide_launch(env, r, list_scheduling(planned, env.jobs.cpu, env.plan.placement, env.scratch))
    else:
        decide_launch(env, r, tapra_fast(planned, env.plan.placement, env.scratch))


@helper
def decode_place(env: Environment) -> Any:
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
def decide_place(env: Environment, feasible: bool) -> None:
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
    s.energy += env.jobs.power[q] * leq
    # kept for observations; the job is evaluated as a whole when its last task is placed
    s.jct = max(s.jct, time_on(server, leq, env.membership, env.state.limits, plan.group_load))
    add_load(server, leq, env.membership, plan.placed, plan.group_load)
    s.next_task += 1
    if s.next_task == tasks_of(env, job):
        conclude(env, s.open_row)


@helper
def decode_search(env: Environment) -> Any:
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
def decide_search(env: Environment, feasible: bool) -> None:
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
    # the moves from the new placement
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
        # the nearest server
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
            total[membership.server_group[e]] += membership.server_weight[e] * vcpu
    for k in range(total.shape[0]):
        if total[k] > env.state.limits[k] * (1.0 + ROUNDING):
            return False
    return True


@helper
def decode_plan(env: Environment) -> Any:
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
def decide_plan(env: Environment, feasible: bool) -> None:
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
    # REC on a feasible placement would change nothing
    if not feasible and not reduce_energy(job_of(env, job), False, env.plan.placement, env.scratch):
        decide_launch(env, r, math.inf)
    elif vcpu_given(env, count) and vcpu_fit(env, count):
        for i in range(count):
            env.plan.vcpu[i] = env.exchange.numbers[1 + i, 1]
        s.row = r
        s.decision = LAUNCH
    else:
        conclude(env, r)


# Kernels --------------------------------------------------------------------------------------


VIEWS = (
    ViewDynamics("plan", decode_plan, decide_plan),
    ViewDynamics("pick", decode_pick, decide_pick),
    ViewDynamics("place", decode_place, decide_place),
    ViewDynamics("search", decode_search, decide_search),
)
DYNAMICS = Dynamics(__name__, Environment, begin, advance, observe, VIEWS)
SCORING = Scoring(DYNAMICS, columns, ("pick", "place", "search"))
