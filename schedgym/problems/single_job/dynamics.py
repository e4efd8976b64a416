"""State and compiled dynamics of SingleJob, for one environment.

One function per view makes the decision: it checks and repairs the action, and in view plan makes the whole
plan. :func:`advance` carries it out. Rows are tasks, in index order.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import SCRATCH, SHARED, Bytes, Floats, Floats32, Integers, Integers32, Shown, length
from schedgym.core.columns import put
from schedgym.core.jit import helper, pure_kernel, record_dtype, subroutine
from schedgym.core.kernels import Dynamics, Scoring, ViewDynamics
from schedgym.core.rows import resetter
from schedgym.core.stepping import ActionSpace, Exchange
from schedgym.problems.single_job import columns
from schedgym.problems.single_job.metrics import Schedule
from schedgym.problems.single_job.workload import LONGEST, MOST_ENERGY, Jobs
from schedgym.solvers.placement import (
    ENERGY_SLACK,
    Job,
    Membership,
    PlanScratch,
    Population,
    add_load,
    affords,
    evaluate,
    gsa,
    largest_capacity,
    most_efficient,
    most_vcpu,
    reduce_energy,
    search_mask,
    server_time,
)

PLAN, PLACE, SEARCH = 0, 1, 2  # views, in the order of the descriptor
PAIRS_SHOWN = Shown(least=-1.0, shape=("task", "server", -1))
GSA_SEED = 0  # the plan depends on the job alone

NEAR = 0.9  # share of the highest efficiency from which a server is nearly as efficient
#: a task is one of the longest if its time differs from the job's by at most this share
LONGEST_PART = 1e-9
#: a plan's vCPU may exceed a limit by this share, by rounding
LIMIT_SLACK = 1e-9

SCALARS = record_dtype(
    ("jct", np.float64),  # of the plan so far
    ("charged", np.float64),  # part of it that is in the rewards so far
    ("pooled", np.float64),  # least work over the total vCPU that the limits allow [s]
    ("mean_load", np.float64),
    ("choice", np.int64),  # views place and search: the decision
    ("sized", np.int64),  # view plan: whether the action's vCPU are the plan's
    ("decisions", np.int64),
    ("finished", np.int64),
    ("repaired", np.int64),
)

CONFIG = record_dtype(
    ("action_view", np.int64),
    ("terminal", np.int64),  # reward
    ("max_moves", np.int64),
    ("fallback", np.int64),
    ("features", np.int64),
    ("mask", np.int64),
    ("normalize", np.int64),
)


class Constants(NamedTuple):
    """Constants of a simulator: its configuration."""

    config: Annotated[Any, CONFIG]


class State(NamedTuple):
    """The variables of an episode, except for the schedule; without features some arrays have length 0."""

    scalars: Annotated[Any, SCALARS]
    next_task: Annotated[
        Integers, 1, Shown("task to be placed, N at the end", length("task"), when="view=place", single=True)
    ]
    energy: Annotated[Floats, 1, Shown("energy of the placed tasks [vCPU s]", MOST_ENERGY)]
    best: Annotated[Integers32, "task"]  # most efficient server, ties the lowest
    least: Annotated[Floats, "task"]  # equivalent load there
    rest: Annotated[Floats, "task+1"]  # the sum of the energies there, from a task on
    count: Annotated[Integers, "group"]  # type: ignore[assignment]  # tasks in a group
    group_load: Annotated[Floats, "group"]  # their equivalent load, by weight
    inverse: Annotated[Floats, "token_group"]  # 1 / B_k
    part: Annotated[Floats, "pair"]  # A_jk / B_k; with features only
    pull: Annotated[Floats, "token_server"]  # least work of the unplaced tasks most efficient there
    narrow: Annotated[Floats, "token_server"]  # most vCPU that a server's groups allow there


class Observation(NamedTuple):
    """Observation buffers that the kernel writes; those that are not shown have length 0."""

    task_mask: Annotated[Bytes, "task", Shown("which rows hold a task")]
    action_mask: Annotated[Bytes, "mask", Shown("legal actions", when="view=place|search")]  # search needs it
    job_tokens: Annotated[Floats32, "token_task", columns.JobToken]
    server_tokens: Annotated[Floats32, "token_server", "server_column", columns.SERVER_ROW]
    pair_tokens: Annotated[Floats32, "token_pair_task", "pair_column", columns.PAIR_ROW, PAIRS_SHOWN]
    global_tokens: Annotated[Floats32, columns.GlobalToken]


class Scratch(NamedTuple):
    """Scratch space of a step."""

    draft: Annotated[Integers32, "task"]  # the servers that an action of view plan, or the fallback, comes to
    group_vcpu: Annotated[Floats, "group"]  # by weight
    group_time: Annotated[Floats, "group"]
    lifted: Annotated[Floats, "group"]


class Environment(NamedTuple):
    """All arrays of one environment: constants, workload, state, observation buffers and scratch space."""

    constants: Annotated[Constants, SHARED]
    action_space: Annotated[ActionSpace, SHARED]
    jobs: Jobs
    state: State
    schedule: Schedule
    observation: Observation
    exchange: Exchange
    scratch: Annotated[Scratch, SCRATCH]
    planning: Annotated[PlanScratch, SCRATCH]
    population: Annotated[Population, SCRATCH]


reset = resetter(SCALARS)


@helper
def groups_of(jobs: Jobs) -> Membership:
    """Return the lists of groups, as solvers take them."""
    return Membership(
        jobs.server_start,
        jobs.server_group,
        jobs.server_weight,
        jobs.group_start,
        jobs.group_server,
        jobs.group_weight,
    )


@helper
def job_of(jobs: Jobs) -> Job:
    """Return the job, as planners take it."""
    return Job(
        np.int64(0),  # type: ignore[arg-type]  # a literal 0 would compile all planners once more
        jobs.size.tasks,
        jobs.load,
        jobs.efficiency,
        groups_of(jobs),
        jobs.limits,
        jobs.energy_cap[0],
        jobs.power,
    )


@helper
def leq_on(jobs: Jobs, i: int, j: int) -> float:
    """Return the equivalent load [vCPU s] of a task on a server."""
    return jobs.load[i] / jobs.efficiency[i, j]


@helper
def energy_on(jobs: Jobs, i: int, j: int) -> float:
    """Return the energy of a task on a server, whatever its vCPU."""
    return jobs.power[i] * leq_on(jobs, i, j)


@helper
def size_tasks(env: Environment) -> tuple[float, float]:
    """Set times and vCPU of the placed tasks by Eq. 16; return completion time and energy."""
    jobs, schedule, planning = env.jobs, env.schedule, env.planning
    groups = groups_of(jobs)
    n = jobs.size.tasks
    jct, energy = evaluate(job_of(jobs), schedule.placement, planning)
    for i in range(n):
        j = schedule.placement[i]
        if j >= 0:
            # by Eq. 16 all tasks of a server take as long as its slowest group
            time = server_time(j, groups, planning)
            schedule.time[i] = time
            schedule.vcpu[i] = planning.leq[i] / time
    return jct, energy


@helper
def allowance(env: Environment, i: int) -> tuple[float, float, float, float]:
    """View place: return energy placed so far, least energy after task i, the cap, least of task i."""
    state, jobs = env.state, env.jobs
    return state.energy[0], state.rest[i + 1], jobs.energy_cap[0], jobs.power[i] * state.least[i]


@helper
def affordable(allowed: tuple[float, float, float, float], own: float) -> Any:
    """View place: return True if the cap can still be kept when the next task uses this energy."""
    energy, rest, cap, least = allowed
    # the most efficient server is always allowed: only rounding of the sum could deny it
    return affords(energy + own + rest, cap) or own <= least


# Actions, view by view: the test of feasibility, and the decision (of an infeasible action the repaired one).


@helper
def decode_plan(env: Environment) -> Any:
    """View plan: turn server and vCPU of each task into a plan within cap and limits; True if feasible.

    Servers are rounded and clipped; a plan beyond the cap is changed by REC; vCPU that exceed a limit, or are
    not given for all tasks, are replaced by those of Eq. 16. The servers are left in ``scratch.draft``.
    """
    jobs, draft, numbers = env.jobs, env.scratch.draft, env.exchange.numbers
    n = jobs.size.tasks
    cap = jobs.energy_cap[0]
    feasible = True
    given = False
    energy = 0.0
    # 1. the nearest servers
    for i in range(n):
        nearest = math.floor(min(max(numbers[i, 0], 0.0), jobs.capacity.shape[0] - 1.0) + 0.5)
        feasible &= nearest == numbers[i, 0]
        given |= numbers[i, 1] != 0.0
        draft[i] = int(nearest)
        energy += energy_on(jobs, i, draft[i])
    # 2. the energy there, whatever the vCPU
    if not affords(energy, cap):
        feasible = False
        if not reduce_energy(job_of(jobs), False, draft, env.planning):
            most_efficient(0, n, jobs.efficiency, draft)  # the only plan that rounding can leave
    # 3. vCPU, if they are given and fit; else Eq. 16 sizes the tasks
    env.state.scalars.sized = given and vcpu_fit(env)
    return feasible and (not given or env.state.scalars.sized != 0)


@helper
def vcpu_fit(env: Environment) -> Any:
    """View plan: return True if the given vCPU suffice on the servers of the draft, within all limits."""
    jobs, draft, total = env.jobs, env.scratch.draft, env.scratch.group_vcpu
    for k in range(total.shape[0]):
        total[k] = 0.0
    for i in range(jobs.size.tasks):
        vcpu = env.exchange.numbers[i, 1]
        if not (vcpu > 0.0 and leq_on(jobs, i, draft[i]) / vcpu <= LONGEST):
            return False
        # a server counts in each of its groups, by its weight there
        for e in range(jobs.server_start[draft[i]], jobs.server_start[draft[i] + 1]):
            total[jobs.server_group[e]] += jobs.server_weight[e] * vcpu
    for k in range(total.shape[0]):
        if total[k] > jobs.limits[k] * (1.0 + LIMIT_SLACK):
            return False
    return True


@helper
def decide_plan(env: Environment, feasible: bool) -> None:
    """View plan: place the tasks as in the draft, which has been repaired if the action was infeasible."""
    for i in range(env.jobs.size.tasks):
        env.schedule.placement[i] = env.scratch.draft[i]


@helper
def decode_place(env: Environment) -> Any:
    """View place: return True if the energy cap allows the next task on the chosen server."""
    i = env.state.next_task[0]
    return affordable(allowance(env, i), energy_on(env.jobs, i, env.exchange.choices[0]))


@helper
def decide_place(env: Environment, feasible: bool) -> None:
    """View place: note the chosen server, or the most efficient one if the energy cap forbids it."""
    state = env.state
    state.scalars.choice = env.exchange.choices[0] if feasible else state.best[state.next_task[0]]


@helper
def decode_search(env: Environment) -> Any:
    """View search: return True if a move is legal; the last action, to stop, always is."""
    return env.observation.action_mask[env.exchange.choices[0]] != 0


@helper
def decide_search(env: Environment, feasible: bool) -> None:
    """View search: note the chosen move; an illegal one becomes a stop."""
    last = env.observation.action_mask.shape[0] - 1
    env.state.scalars.choice = env.exchange.choices[0] if feasible else last


@subroutine
def fall_back(env: Environment) -> None:
    """View search: replace the placement by GSA's if the job takes less time then."""
    draft, n = env.scratch.draft, env.jobs.size.tasks
    jct = gsa(job_of(env.jobs), np.uint64(GSA_SEED), env.population, draft, env.planning)
    if jct < env.state.scalars.jct:
        for i in range(n):
            env.schedule.placement[i] = draft[i]


@helper
def decide_search_or_fall_back(env: Environment, feasible: bool) -> None:
    """View search: note the chosen move; at the stop the fallback may replace the placement."""
    decide_search(env, feasible)
    last = env.observation.action_mask.shape[0] - 1
    if env.constants.config.fallback and env.state.scalars.choice == last:
        fall_back(env)


# Steps ----------------------------------------------------------------------------------------


@helper
def place_next(env: Environment) -> None:
    """View place: put the next task on the chosen server."""
    jobs, state, s = env.jobs, env.state, env.state.scalars
    i, j = state.next_task[0], s.choice
    leq = leq_on(jobs, i, j)
    add_load(j, leq, groups_of(jobs), state.count, state.group_load)
    # times of groups only grow while tasks are placed
    for e in range(jobs.server_start[j], jobs.server_start[j + 1]):
        k = jobs.server_group[e]
        s.jct = max(s.jct, state.group_load[k] / jobs.limits[k])
    env.schedule.placement[i] = j
    state.energy[0] += energy_on(jobs, i, j)
    # the task no longer draws work to its most efficient server
    if state.pull.shape[0] > 0:
        best = state.best[i]
        state.pull[best] = max(state.pull[best] - state.least[i], 0.0)
    state.next_task[0] = i + 1
    # the whole is evaluated once, so that rounding of the sums above does not count
    if i + 1 == jobs.size.tasks:
        state.next_task[0] = jobs.load.shape[0]
        s.finished = 1
        s.jct, state.energy[0] = size_tasks(env)


@subroutine
def evaluate_plan(env: Environment) -> None:
    """Views plan and search: size the tasks, which are all placed, and update the groups' loads."""
    jobs, state, schedule, planning = env.jobs, env.state, env.schedule, env.planning
    s = state.scalars
    s.jct, state.energy[0] = size_tasks(env)
    # the action's own vCPU in place of those of Eq. 16
    if s.sized:
        s.jct = 0.0
        for i in range(jobs.size.tasks):
            schedule.vcpu[i] = env.exchange.numbers[i, 1]
            schedule.time[i] = planning.leq[i] / schedule.vcpu[i]
            s.jct = max(s.jct, schedule.time[i])
    for k in range(jobs.limits.shape[0]):
        state.count[k] = planning.count[k]
        state.group_load[k] = planning.group_load[k]
    # no task is left to be placed
    for j in range(state.pull.shape[0]):
        state.pull[j] = 0.0


@subroutine
def mark_moves(env: Environment) -> int:
    """View search: mark as legal the moves from the placement evaluated last, and the stop.

    Returns the number of legal moves.
    """
    jobs, state = env.jobs, env.state
    n = jobs.size.tasks
    mask = env.observation.action_mask
    placement = env.schedule.placement
    legal = search_mask(job_of(jobs), state.energy[0], placement, env.planning, mask)
    last = mask.shape[0] - 1
    for x in range(n * jobs.capacity.shape[0], last):
        mask[x] = 0
    mask[last] = 1
    return legal


@helper
def make_move(env: Environment) -> None:
    """View search: move a task, or stop. With a fallback only the stop ends the search."""
    s, config, mask = env.state.scalars, env.constants.config, env.observation.action_mask
    servers, last = env.jobs.capacity.shape[0], mask.shape[0] - 1
    if s.choice == last:
        s.finished = 1
        if config.fallback:
            evaluate_plan(env)
        return
    env.schedule.placement[s.choice // servers] = s.choice % servers
    evaluate_plan(env)
    # a fallback plans at the stop: without moves left, only that remains
    ends = mark_moves(env) == 0 or s.decisions == config.max_moves
    if not config.fallback:
        s.finished = ends
    elif ends:
        for x in range(last):
            mask[x] = 0


@helper
def advance(env: Environment) -> None:
    """Carry out the decision; the reward is minus the increase of the completion time."""
    s, result, config = env.state.scalars, env.exchange.result, env.constants.config
    s.decisions += 1
    s.repaired += result.repaired
    if config.action_view == PLACE:
        place_next(env)
    elif config.action_view == PLAN:
        evaluate_plan(env)
        s.finished = 1
    else:
        make_move(env)
    # rewards telescope: their sum is minus the completion time
    if s.finished or not config.terminal:
        result.reward = s.charged - s.jct
        if config.normalize:
            result.reward /= s.pooled
        s.charged = s.jct
    result.terminated = s.finished != 0


@helper
def begin(env: Environment) -> None:
    """Start an episode on the loaded workload."""
    jobs, state, s = env.jobs, env.state, env.state.scalars
    view = env.constants.config.action_view
    n, rows = jobs.size.tasks, jobs.load.shape[0]
    reset(s)
    most_efficient(0, n, jobs.efficiency, state.best)
    mean = 0.0
    for i in range(n):
        state.least[i] = leq_on(jobs, i, state.best[i])
        mean += jobs.load[i] / n
    s.mean_load = mean
    state.rest[n] = 0.0
    # from the last task on: the least energy of all that follow
    for i in range(n - 1, -1, -1):
        state.rest[i] = state.rest[i + 1] + energy_on(jobs, i, state.best[i])
    for k in range(jobs.limits.shape[0]):
        state.count[k] = 0
        state.group_load[k] = 0.0
    s.pooled = jobs.least_work[0] / largest_capacity(groups_of(jobs), jobs.limits, env.planning)
    state.energy[0] = 0.0
    state.next_task[0] = 0 if view == PLACE else rows
    for i in range(rows):
        env.schedule.placement[i] = -1
        env.observation.task_mask[i] = i < n
    env.exchange.result.rows = n
    if env.constants.config.features:
        begin_features(env)
    # the search starts where TaPRA-fast does
    if view == SEARCH:
        for i in range(n):
            env.schedule.placement[i] = state.best[i]
        evaluate_plan(env)
        mark_moves(env)


# Observations ---------------------------------------------------------------------------------


@helper
def scaled(value: float, unit: float) -> float:
    """Scale a value >= 0 to [0, 1): ``unit`` becomes 0.5."""
    return value / (value + unit)


@helper
def part(value: float, whole: float) -> float:
    """Return ``value`` / ``whole``, clipped to [-1, 1]."""
    if value == 0.0:
        return 0.0
    if abs(value) >= whole:
        return 1.0 if value > 0.0 else -1.0
    return value / whole


@helper
def clear(row: Any) -> None:
    """Set a token to zero."""
    for f in range(row.shape[0]):
        row[f] = 0.0


@helper
def begin_features(env: Environment) -> None:
    """Write the features that stay the same in an episode, and prepare the arrays for the others."""
    jobs, state, s = env.jobs, env.state, env.state.scalars
    n = jobs.size.tasks
    servers = jobs.capacity.shape[0]
    tokens, pairs = env.observation.job_tokens, env.observation.pair_tokens
    # products with these replace divisions in every step
    for k in range(jobs.limits.shape[0]):
        state.inverse[k] = 1.0 / jobs.limits[k] if jobs.limits[k] > 0.0 else 0.0
    widest = 0.0
    for j in range(servers):
        for e in range(jobs.server_start[j], jobs.server_start[j + 1]):
            state.part[e] = jobs.server_weight[e] * state.inverse[jobs.server_group[e]]
        state.narrow[j] = most_vcpu(j, groups_of(jobs), jobs.limits)
        state.pull[j] = 0.0
        widest = max(widest, state.narrow[j])
    for j in range(servers):
        env.observation.server_tokens[j, columns.SERVER.limit] = state.narrow[j] / widest
    for i in range(n):
        highest = jobs.efficiency[i, state.best[i]]
        near = 0
        first = 0.0  # two independent sums, which the processor adds in parallel
        second = 0.0
        for j in range(0, servers - 1, 2):
            first += jobs.efficiency[i, j]
            second += jobs.efficiency[i, j + 1]
        if servers % 2:
            first += jobs.efficiency[i, servers - 1]
        for j in range(servers):
            near += jobs.efficiency[i, j] >= NEAR * highest
        tokens[i, columns.JOB.load] = scaled(jobs.load[i], s.mean_load)
        tokens[i, columns.JOB.best_efficiency] = highest
        tokens[i, columns.JOB.mean_efficiency] = (first + second) / servers
        tokens[i, columns.JOB.near] = near / servers
        clear(tokens[i, columns.JOB.placed :])
        state.pull[state.best[i]] += state.least[i]
        if pairs.shape[0] > 0:
            for j in range(servers):
                pairs[i, j * columns.PAIR_FEATURES + columns.PAIR.efficiency] = jobs.efficiency[i, j]
    # rows of a longer job before this one
    for i in range(n, tokens.shape[0]):
        clear(tokens[i])
        if pairs.shape[0] > 0:
            clear(pairs[i])


@helper
def time_unit(env: Environment) -> float:
    """Return the time [s] by which times in tokens are scaled."""
    s = env.state.scalars
    return s.jct if env.constants.config.action_view == SEARCH else s.pooled


@helper
def observe_servers(env: Environment) -> None:
    """Write the server tokens; in view place with the columns of the next task on each server."""
    jobs, state, tokens = env.jobs, env.state, env.observation.server_tokens
    # arrays are read out of the environment before the loops, which write: they would be read again
    start, groups, part_of, times = jobs.server_start, jobs.server_group, state.part, env.scratch.group_time
    pull, narrow, load, inverse = state.pull, state.narrow, state.group_load, state.inverse
    for k in range(jobs.limits.shape[0]):
        times[k] = load[k] * inverse[k]
    unit = time_unit(env)
    i = state.next_task[0]
    place = env.constants.config.action_view == PLACE
    open_task = place and i < jobs.load.shape[0]
    spare = 0.0
    least = 0.0
    allowed = (0.0, 0.0, 0.0, 0.0)
    if open_task:
        spare = jobs.energy_cap[0] - state.energy[0] - state.rest[i]
        allowed = allowance(env, i)
        least = allowed[3]
    for j in range(jobs.capacity.shape[0]):
        leq = leq_on(jobs, i, j) if open_task else 0.0
        before = 0.0
        after = 0.0
        for e in range(start[j], start[j + 1]):
            time = times[groups[e]]
            before = max(before, time)
            after = max(after, time + leq * part_of[e])
        tokens[j, columns.SERVER.time] = scaled(before, unit)
        tokens[j, columns.SERVER.pull] = scaled(pull[j], narrow[j] * unit)
        if open_task:
            energy = jobs.power[i] * leq
            following = columns.NextToken(
                efficiency=jobs.efficiency[i, j],
                time_after=scaled(after, unit),
                energy_share=part(max(energy - least, 0.0), spare),
                legal=affordable(allowed, energy),
            )
            put(tokens[j], len(columns.SERVER), following)
        elif place:
            clear(tokens[j, len(columns.SERVER) :])


@helper
def observe_pairs(env: Environment) -> None:
    """Views plan and search: write the tokens of each task on each server."""
    jobs, state, tokens = env.jobs, env.state, env.observation.pair_tokens
    unit = time_unit(env)
    lifted = env.scratch.lifted  # group loads without the task
    for k in range(jobs.limits.shape[0]):
        lifted[k] = state.group_load[k]
    for i in range(jobs.size.tasks):
        now = env.schedule.placement[i]
        own = state.least[i]
        spare = jobs.energy_cap[0] - jobs.least_energy[0]
        first = 0
        last = 0
        if now >= 0:
            own = leq_on(jobs, i, now)
            spare = jobs.energy_cap[0] - state.energy[0]
            first = jobs.server_start[now]
            last = jobs.server_start[now + 1]
        # without the task; exactly 0 where it is alone, whatever rounding says
        for e in range(first, last):
            k = jobs.server_group[e]
            lifted[k] = state.group_load[k] - jobs.server_weight[e] * own if state.count[k] > 1 else 0.0
        for j in range(jobs.capacity.shape[0]):
            leq = leq_on(jobs, i, j)
            time = 0.0
            for e in range(jobs.server_start[j], jobs.server_start[j + 1]):
                k = jobs.server_group[e]
                time = max(time, (lifted[k] + jobs.server_weight[e] * leq) * state.inverse[k])
            tokens[i, j * columns.PAIR_FEATURES + columns.PAIR.time] = scaled(time, unit)
            tokens[i, j * columns.PAIR_FEATURES + columns.PAIR.energy] = part(
                jobs.power[i] * (leq - own), spare
            )
        # and with it again
        for e in range(first, last):
            k = jobs.server_group[e]
            lifted[k] = state.group_load[k]


@helper
def observe_features(env: Environment) -> None:
    """Write the observation as float32 tokens."""
    jobs, state, s, config = env.jobs, env.state, env.state.scalars, env.constants.config
    view = config.action_view
    n = jobs.size.tasks
    following = state.next_task[0]
    tokens, values = env.observation.job_tokens, env.observation.global_tokens
    observe_servers(env)
    if view != PLACE:
        observe_pairs(env)
    longest = s.jct * (1.0 - LONGEST_PART)
    for i in range(n):
        j = env.schedule.placement[i]
        if j < 0:
            break
        tokens[i, columns.JOB.placed] = 1.0
        tokens[i, columns.JOB.next] = view == SEARCH and env.schedule.time[i] >= longest
        tokens[i, columns.JOB.own_efficiency] = jobs.efficiency[i, j]
        tokens[i, columns.JOB.own_time] = env.observation.server_tokens[j, columns.SERVER.time]
    values[columns.GLOBAL.progress] = min(s.decisions / config.max_moves, 1.0) if view == SEARCH else 0.0
    values[columns.GLOBAL.load] = 0.0
    rest = 0.0
    if view == PLACE:
        values[columns.GLOBAL.progress] = s.decisions / n
        if following < jobs.load.shape[0]:
            rest = state.rest[following]
            tokens[following, columns.JOB.next] = 1.0
            values[columns.GLOBAL.load] = tokens[following, columns.JOB.load]
    elif view == PLAN and not s.finished:
        rest = jobs.least_energy[0]
    elif view == PLAN:
        values[columns.GLOBAL.progress] = 1.0
    cap, least = jobs.energy_cap[0], jobs.least_energy[0]
    values[columns.GLOBAL.time] = scaled(s.jct, s.pooled)
    values[columns.GLOBAL.energy] = min(state.energy[0] / cap, 1.0)
    spare = cap - state.energy[0] - rest
    if spare <= ENERGY_SLACK * cap:
        spare = 0.0  # not more than rounding
    values[columns.GLOBAL.spare] = part(spare, cap - least)
    values[columns.GLOBAL.least_to_come] = min(rest / least, 1.0)
    values[columns.GLOBAL.tasks] = scaled(n, columns.COUNT_SCALE)


@helper
def observe(env: Environment) -> None:
    """Write the mask of view place, and the features."""
    config, jobs = env.constants.config, env.jobs
    if config.action_view == PLACE and config.mask:
        i, mask = env.state.next_task[0], env.observation.action_mask
        if i < jobs.load.shape[0]:
            allowed = allowance(env, i)
            for j in range(jobs.capacity.shape[0]):
                mask[j] = affordable(allowed, energy_on(jobs, i, j))
        else:  # after the last task every choice is marked feasible
            for j in range(jobs.capacity.shape[0]):
                mask[j] = 1
    if config.features:
        observe_features(env)


# Kernels --------------------------------------------------------------------------------------


def has_no_fallback(simulator: Any) -> bool:
    """Return True if GSA, which takes long to compile, is not the fallback."""
    return simulator.parameters.fallback == "none"


VIEWS = (
    ViewDynamics("plan", decode_plan, decide_plan),
    ViewDynamics("place", decode_place, decide_place),
    ViewDynamics("search", decode_search, decide_search, has_no_fallback),
    ViewDynamics("search", decode_search, decide_search_or_fall_back),
)
DYNAMICS = Dynamics(__name__, Environment, begin, advance, observe, VIEWS)
SCORING = Scoring(DYNAMICS, columns, ("place", "search"))

access = DYNAMICS.access


@pure_kernel
def settle(table: Any, tools: Any, b: int) -> None:
    """View place: size the tasks placed so far in environment b; steps do so only after the last task."""
    size_tasks(access(table, tools, b))
