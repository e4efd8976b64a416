"""State and compiled dynamics of GeoAssign and GeoFair, for one environment.

Time moves from instant to instant, where an instant is an arrival or the end of a task. At one instant all
ends are processed first, then the arrivals in job order, then one decision if one is due; then free slots are
dispatched, sites ascending.

A step has two halves. A ``decide`` kernel, one per view, turns actions into the input of dispatch: an order
of the jobs with counts of assigned tasks, or shares. :func:`step` dispatches, advances to the next instant
that needs a decision, and writes the observation. The halves are separate so that an environment compiles
only the solver that its view needs.

The active jobs are the first rows of every array of rows, in order of arrival; the rows behind are zero.
An entry e = k * A + a is the a-th available site of group k.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core import heap
from schedgym.core.arrays import (
    SCRATCH,
    SHARED,
    Bytes,
    Fill,
    Floats,
    Floats32,
    Integers,
    Integers32,
    Shown,
    length,
)
from schedgym.core.columns import put
from schedgym.core.jit import helper, record_dtype, subroutine
from schedgym.core.kernels import Dynamics, Scoring, ViewDynamics
from schedgym.core.order import differ, last_of, sort_rows
from schedgym.core.rows import clear_entries, clearer, copier, copy_entries, mark, resetter
from schedgym.core.stepping import ActionSpace, Exchange, always_feasible
from schedgym.problems.geo import columns
from schedgym.problems.geo.metrics import Schedule
from schedgym.problems.geo.orders import Assigning, Options, Placing, assign, place_in_order
from schedgym.problems.geo.rules import FairNetwork, Sharing, fair, sharing_violations, weighted_fair
from schedgym.problems.geo.workload import LAST_TIME, MOST_SLOTS, MOST_TASKS, Jobs

#: how free slots are dispatched: by the order of the jobs, by running / share, or one by one by the agent
ORDER, RATIO, SLOT = 0, 1, 2

#: shares that exceed a demand or a site's slots by less than this share are rounding, and are not repaired
SHARE_TOLERANCE = 1e-6
LARGEST_SHARE = 1e15  # slots
LEAST_SHARE = 1e-12  # slots; less is none: a solver may leave so much where nothing is meant
LEAST_TIME = 1e-9  # s, of tasks that have not ended, whose sum is kept up to rounding

SCALARS = record_dtype(
    ("clock", np.float64),
    ("response_scale", np.float64),  # of the integral of active jobs in the reward
    ("fairness_scale", np.float64),  # of the integral of the standard deviation
    ("arrived", np.int64),  # also the index of the next job to arrive
    ("active", np.int64),  # number of rows in use
    ("completed", np.int64),
    ("running", np.int64),  # tasks; also the size of the heap of ends
    ("squares", np.int64),  # sum over active jobs of the square of their running tasks
    ("waiting", np.int64),  # tasks
    ("arrival", np.int64),  # whether a job has arrived since the last decision
    ("completion", np.int64),  # whether an end that needs a decision has occurred since
    ("open_site", np.int64),  # the site whose free slot is offered, else the number of sites
    ("picked", np.int64),  # mode SLOT: the row that takes it
    ("ordered", np.int64),  # mode ORDER: rows whose place in the order is decided
    ("finished", np.int64),
    ("shown", np.int64),  # window rows that the last observation filled
    ("marked", np.int64),  # the open site of the last observation
    ("observed", np.float64),  # the clock of the last observation
    ("recomputations", np.int64),
    ("sharing_violations", np.int64),
    ("repaired", np.int64),
    ("log_durations", np.float64),  # sum over completed jobs of the log of their mean duration [s]
)

CONFIG = record_dtype(
    ("mode", np.int64),
    ("window", np.int64),
    ("associated", np.int64),  # views pick, weights: tasks start at their associated site only
    ("aggressive", np.int64),
    ("work_conserving", np.int64),
    ("clairvoyant", np.int64),
    ("features", np.int64),
    ("mask", np.int64),
    ("zero_copy", np.int64),  # the observation's job arrays are the state's rows
    ("greedy", np.int64),  # views priority and rule: placement="greedy"
    ("response_weight", np.float64),  # weight of the mean response in the reward
    ("fairness_weight", np.float64),  # weight of the fairness in the reward
    ("normalize", np.int64),
)


class Constants(NamedTuple):
    """Constants of a simulator: its configuration."""

    config: Annotated[Any, CONFIG]


class State(NamedTuple):
    """The variables of an episode, except for the schedule."""

    scalars: Annotated[Any, SCALARS]
    job: Annotated[Integers, "job"]  # job of a row
    row: Annotated[Integers32, "job"]  # row of an active job
    arrival: Annotated[Floats, "job"]  # of a row
    remaining: Annotated[Integers32, "job"]  # unfinished tasks
    waits: Annotated[Integers32, "job"]  # waiting tasks
    occupied: Annotated[Integers32, "job"]  # running tasks
    ran: Annotated[Floats, "job"]  # durations of the tasks that have ended [s]
    started: Annotated[Floats, "job"]  # sum of the starts of the running tasks [s]
    new: Annotated[Bytes, "job"]  # no decision has been taken since the job arrived
    stale: Annotated[Bytes, "job", Fill(1)]  # rows whose tokens must be written whole
    changed: Annotated[Bytes, "job"]  # rows of which a task has started or ended since the last observation
    next_task: Annotated[Integers32, "job", "group"]  # first task of a row's group that has not started
    unfinished: Annotated[Integers32, "job", "group"]  # waiting and running tasks
    waiting: Annotated[Integers32, "job", "group"]
    running: Annotated[Integers32, "job", "entry"]
    assigned: Annotated[Integers32, "job", "entry"]  # mode ORDER: waiting tasks by their entry
    seconds: Annotated[Floats, "timed_row", "group"]  # clairvoyant: durations of the unfinished tasks
    share: Annotated[Floats, "job", "entry"]  # mode RATIO: slots; negative: closed
    order: Annotated[Integers, "job"]  # mode ORDER: rows, in the order in which they are served
    cursor: Annotated[Integers32, "site"]  # mode ORDER: leading positions without a task for a site
    free: Annotated[Integers, "site", Shown("free slots of each site", MOST_SLOTS)]
    runnable: Annotated[Integers, "site"]  # waiting tasks that may run at a site
    freed: Annotated[Bytes, "site"]  # sites where dispatch may start tasks
    owner: Annotated[Integers32, "task"]  # job of a task that has started
    heap_time: Annotated[Floats, "task"]
    heap_task: Annotated[Integers32, "task"]


#: dimensions of what observations show of each site of a group; condition of what only mode ORDER has
BY_SITE = ("window", "group", "choice")
IN_ORDER = "view=assignment|priority|rule"


class Observation(NamedTuple):
    """Observation buffers that the kernel writes; those that are not shown have length 0."""

    clock: Annotated[Floats, 1, Shown("time [s]", LAST_TIME)]
    event: Annotated[
        Bytes, 3, Shown("flags: a job arrived, one completed since the last decision; a slot is free")
    ]
    arrival: Annotated[Floats, "own_window", Shown("of each visible job [s]", LAST_TIME)]
    age: Annotated[Floats, "unit_window", Shown("time since its arrival [s]", LAST_TIME)]
    ended: Annotated[Integers32, "unit_window", Shown("its tasks that have ended", MOST_TASKS)]
    duration: Annotated[Floats, "unit_window", Shown("their mean duration, 0 without any [s]", LAST_TIME)]
    elapsed: Annotated[Floats, "unit_window", Shown("mean time its running tasks have run [s]", LAST_TIME)]
    remaining: Annotated[Integers32, "own_window", Shown("its unfinished tasks", MOST_TASKS)]
    waiting: Annotated[Integers32, "own_window", "group", Shown("waiting tasks by group", MOST_TASKS)]
    running: Annotated[
        Integers32, "own_window", "entry", Shown("running tasks by group and site", MOST_TASKS, shape=BY_SITE)
    ]
    assigned: Annotated[
        Integers32,
        "own_ordered_window",
        "entry",
        Shown("waiting tasks by assigned site", MOST_TASKS, shape=BY_SITE, when=IN_ORDER),
    ]
    seconds: Annotated[
        Floats,
        "own_timed_window",
        "group",
        Shown(
            "durations of the unfinished tasks [s]", LAST_TIME, shape=("window", "group"), when="clairvoyant"
        ),
    ]
    new: Annotated[Bytes, "own_window", Shown("1 for jobs that arrived after the last decision")]
    job_mask: Annotated[Bytes, "window", Shown("which rows hold a job")]
    group_mask: Annotated[Bytes, "group", Shown("which groups exist")]
    active: Annotated[Integers, 1, Shown("number of active jobs", MOST_TASKS)]
    backlog: Annotated[Integers, 1, Shown("active jobs beyond the window", MOST_TASKS)]
    typical: Annotated[Floats, 1, Shown("geometric mean of completed jobs' `duration` [s]", LAST_TIME)]
    open_site: Annotated[
        Integers,
        1,
        Shown("site of the free slot, M at the end", length("site"), when="view=pick", single=True),
    ]
    action_mask: Annotated[Bytes, "mask", Shown("feasible actions", when="view=pick|rule|fair-rule")]
    job_tokens: Annotated[Floats32, "token_window", "feature", columns.JOB_ROW]
    site_tokens: Annotated[Floats32, "token_site", columns.SiteToken]
    global_tokens: Annotated[Floats32, columns.GlobalToken]


class Scratch(NamedTuple):
    """Scratch space of views whose actions are a number per row."""

    number: Annotated[Floats, "job"]


class Environment(NamedTuple):
    """All arrays of one environment: constants, workload, state, observation and scratch space."""

    constants: Annotated[Constants, SHARED]
    action_space: Annotated[ActionSpace, SHARED]
    jobs: Jobs
    state: State
    schedule: Schedule
    observation: Observation
    exchange: Exchange
    scratch: Annotated[Scratch, SCRATCH]
    placing: Placing
    assigning: Assigning
    sharing: Sharing
    network: FairNetwork


#: fields of the state for a row in every mode, and those of them that an observation shows
ROW = (
    *("job", "arrival", "remaining", "waits", "occupied", "ran", "started", "new"),
    *("next_task", "unfinished", "waiting", "running"),
)
SHOWN = ("arrival", "remaining", "new", "waiting", "running")
reset = resetter(SCALARS, without=("shown",))
copy_row, empty_row, show_row = (
    copier(State, only=ROW),
    clearer(State, only=ROW),
    copier(State, Observation, SHOWN),
)


@helper
def clear_row(env: Environment, r: int) -> None:
    """Set a row to zero."""
    state, mode = env.state, env.constants.config.mode
    empty_row(state, r)
    state.stale[r] = 1
    # arrays that the mode does not use stay zero
    if env.constants.config.clairvoyant:
        clear_entries(state.seconds, r, r + 1)
    if mode == ORDER:
        clear_entries(state.assigned, r, r + 1)
    elif mode == RATIO:
        clear_entries(state.share, r, r + 1)


@helper
def move_row(env: Environment, source: int, target: int) -> None:
    """Copy a row."""
    state, mode = env.state, env.constants.config.mode
    copy_row(state, source, state, target)
    # the row of a job is looked up when one of its tasks ends
    state.row[state.job[target]] = target
    state.stale[target] = 1
    if env.constants.config.clairvoyant:
        copy_entries(state.seconds, source, state.seconds, target)
    if mode == ORDER:
        copy_entries(state.assigned, source, state.assigned, target)
    elif mode == RATIO:
        copy_entries(state.share, source, state.share, target)


@helper
def scaled(count: int) -> float:
    """Scale a count to [0, 1)."""
    return count / (count + columns.COUNT_SCALE)


@helper
def tasks_at(env: Environment, counts: Integers32, r: int, j: int) -> int:
    """Return how many of a row's tasks run at a site, or are assigned to it, by their counts [row, entry]."""
    count = 0
    for position in range(env.jobs.site_start[j], env.jobs.site_start[j + 1]):
        count += counts[r, env.jobs.entries[position]]
    return count


@helper
def ended_tasks(env: Environment, r: int) -> int:
    """Return the number of a row's tasks that have ended."""
    job = env.state.job[r]
    return env.jobs.task_start[job + 1] - env.jobs.task_start[job] - env.state.remaining[r]


@helper
def mean_duration(env: Environment, r: int) -> float:
    """Return the mean duration of a row's tasks that have ended [s]; 0 without any."""
    return env.state.ran[r] / max(ended_tasks(env, r), 1)


@helper
def mean_elapsed(env: Environment, r: int) -> float:
    """Return the mean time for which a row's running tasks have run [s]; 0 without any."""
    running = env.state.occupied[r]
    if running == 0:
        return 0.0
    return max(env.state.scalars.clock - env.state.started[r] / running, 0.0)


@helper
def typical_duration(env: Environment) -> float:
    """Return the geometric mean over completed jobs of their mean duration [s]; 0 before the first."""
    s = env.state.scalars
    return math.exp(s.log_durations / s.completed) if s.completed > 0 else 0.0


@helper
def scaled_time(time: float) -> float:
    """Scale a time [s] to [0, 1)."""
    return time / (time + columns.AGE_SCALE)


@helper
def write_totals(env: Environment, r: int) -> None:
    """Write a row's numbers of tasks, and what is known of their durations, into its token."""
    state, tokens = env.state, env.observation.job_tokens
    tokens[r, columns.JOB.unfinished] = scaled(state.remaining[r])
    tokens[r, columns.JOB.waiting] = scaled(state.waits[r])
    tokens[r, columns.JOB.running] = scaled(state.occupied[r])
    tokens[r, columns.JOB.ended] = scaled(ended_tasks(env, r))
    tokens[r, columns.JOB.duration] = scaled_time(mean_duration(env, r))


@helper
def write_job_token(env: Environment, r: int) -> None:
    """Write a row's token, except for what changes with the clock, and the columns of the open site."""
    state, tokens = env.state, env.observation.job_tokens
    groups, sites = state.waiting.shape[1], state.free.shape[0]
    write_totals(env, r)
    tokens[r, columns.JOB.new] = state.new[r]
    for k in range(groups):
        tokens[r, columns.JOB_FEATURES + k] = scaled(state.waiting[r, k])
    base = columns.JOB_FEATURES + groups
    for j in range(sites):
        tokens[r, base + j] = scaled(tasks_at(env, state.running, r, j))
        if env.constants.config.mode == ORDER:
            tokens[r, base + sites + j] = scaled(tasks_at(env, state.assigned, r, j))


@helper
def write_counts(env: Environment, r: int, k: int, j: int) -> None:
    """Update the tokens after a start or an end of a task of group k at site j."""
    state, tokens = env.state, env.observation.job_tokens
    if env.observation.site_tokens.shape[0] == 0:
        return
    env.observation.site_tokens[j, columns.SITE.free] = state.free[j] / env.jobs.slots[j]
    # a row that is not visible, or is to be written whole, is written when it is observed
    if r >= env.constants.config.window or state.stale[r]:
        return
    write_totals(env, r)
    tokens[r, columns.JOB_FEATURES + k] = scaled(state.waiting[r, k])
    tokens[r, columns.JOB_FEATURES + state.waiting.shape[1] + j] = scaled(tasks_at(env, state.running, r, j))
    state.changed[r] = 1


@helper
def add_runnable(env: Environment, k: int, count: int) -> None:
    """Add ``count`` to the waiting tasks that may run at each site of group k."""
    for a in range(env.jobs.sites.shape[1]):
        j = env.jobs.sites[k, a]
        if j >= 0:
            env.state.runnable[j] += count
            if env.observation.site_tokens.shape[0] > 0:
                env.observation.site_tokens[j, columns.SITE.runnable] = scaled(env.state.runnable[j])


@helper
def submit(env: Environment) -> None:
    """Let the next job arrive: append it to the rows, where all values are still zero."""
    jobs, state = env.jobs, env.state
    s = state.scalars
    job, r = s.arrived, s.active
    first, last = jobs.task_start[job], jobs.task_start[job + 1]
    state.job[r] = job
    state.row[job] = r
    state.arrival[r] = jobs.arrival[job]
    state.remaining[r] = last - first
    state.waits[r] = last - first
    state.new[r] = 1
    state.stale[r] = 1
    # tasks are sorted by group: those of a group that wait are the ones from ``next_task`` on
    for task in range(first, last):
        k = jobs.group[task]
        if state.waiting[r, k] == 0:
            state.next_task[r, k] = task
        state.waiting[r, k] += 1
        if env.constants.config.clairvoyant:
            state.seconds[r, k] += jobs.duration[task]
    for k in range(state.waiting.shape[1]):
        count = state.waiting[r, k]
        state.unfinished[r, k] = count
        if count > 0:
            add_runnable(env, k, count)
            for a in range(jobs.sites.shape[1]):
                if jobs.sites[k, a] >= 0:
                    # a slot that nobody could use may be wanted now
                    state.freed[jobs.sites[k, a]] = 1
    s.waiting += last - first
    s.arrived = job + 1
    s.active = r + 1
    s.arrival = 1


@helper
def start_task(env: Environment, r: int, position: int, j: int) -> None:
    """Start a row's first waiting task of the group at this position among the entries of site j."""
    jobs, state = env.jobs, env.state
    s = state.scalars
    e, k = jobs.entries[position], jobs.entry_groups[position]
    task = state.next_task[r, k]
    state.next_task[r, k] = task + 1
    env.schedule.start[task] = s.clock
    env.schedule.choice[task] = e - k * jobs.sites.shape[1]
    state.owner[task] = state.job[r]
    state.waiting[r, k] -= 1
    state.waits[r] -= 1
    state.running[r, e] += 1
    # mode ORDER counts waiting tasks by the site that they are to run at
    if env.constants.config.mode == ORDER:
        state.assigned[r, e] -= 1
    # (n + 1)^2 - n^2: the sum of squares, of which the deviation follows, without a loop over the jobs
    s.squares += 2 * state.occupied[r] + 1
    state.occupied[r] += 1
    state.started[r] += s.clock
    state.free[j] -= 1
    add_runnable(env, k, -1)
    write_counts(env, r, k, j)
    heap.push(state.heap_time, state.heap_task, s.running, s.clock + jobs.duration[task], task)
    s.running += 1
    s.waiting -= 1


@helper
def end_task(env: Environment) -> None:
    """End the running task with the earliest end: free its slot; remove its job if that completes."""
    jobs, state, config = env.jobs, env.state, env.constants.config
    s = state.scalars
    task = heap.pop(state.heap_time, state.heap_task, s.running)
    s.running -= 1
    k, a = jobs.group[task], env.schedule.choice[task]
    j = jobs.sites[k, a]
    r = state.row[state.owner[task]]
    state.free[j] += 1
    state.freed[j] = 1
    state.running[r, k * jobs.sites.shape[1] + a] -= 1
    state.unfinished[r, k] -= 1
    if config.clairvoyant:  # never below what one of the tasks may last, nor above 0 without tasks
        left = max(state.seconds[r, k] - jobs.duration[task], LEAST_TIME)
        state.seconds[r, k] = left if state.unfinished[r, k] > 0 else 0.0
    state.remaining[r] -= 1
    s.squares -= 2 * state.occupied[r] - 1
    state.occupied[r] -= 1
    state.ran[r] += jobs.duration[task]
    state.started[r] -= env.schedule.start[task]
    write_counts(env, r, k, j)
    # shares are decided anew when the demand that they divide has changed
    if config.mode == RATIO and (state.unfinished[r, k] == 0 or config.aggressive):
        s.completion = 1
    if state.remaining[r] == 0:
        s.completion = 1
        s.log_durations += math.log(mean_duration(env, r))
        s.completed += 1
        s.active -= 1
        # rows stay in order of arrival, so that ties go to the earlier job
        for i in range(r, s.active):
            move_row(env, i + 1, i)
        clear_row(env, s.active)


@helper
def order_none(env: Environment, j: int) -> Any:
    """Return False: the decision has ordered all rows."""
    return False


@helper
def next_by_order(env: Environment, j: int, order_next: Any) -> tuple[int, int]:
    """Return the first row by order with a task assigned to site j, and its lowest group's position.

    Behind the rows that are ordered, ``order_next(env, j)`` orders one more, or returns False if none of the
    others can have a task assigned to the site.
    """
    jobs, state = env.jobs, env.state
    place = int(state.cursor[j])
    while place < state.scalars.ordered or order_next(env, j):
        r = state.order[place]
        # what lies before it has no task for the site, and gets none before the next decision
        state.cursor[j] = place
        if state.waits[r] > 0:
            for position in range(jobs.site_start[j], jobs.site_start[j + 1]):
                if state.assigned[r, jobs.entries[position]] > 0:
                    return r, position
        place += 1
    state.cursor[j] = place
    return -1, -1


@helper
def before(share: float, held: int, other: int, best_share: float, best_held: int, best_other: int) -> Any:
    """Return True if a candidate is served before the best so far; on a tie the best stays.

    The order is by least held / share, then by larger share; candidates without a share come last, by fewest
    held, then by fewest ``other``. Solvers round shares, so ratios and shares are tied up to rounding.
    """
    if share > LEAST_SHARE:
        if best_share <= LEAST_SHARE:
            return True
        scaled, best_scaled = held * best_share, best_held * share  # held / share, times both shares
        if differ(scaled, best_scaled):
            return scaled < best_scaled
        return share > best_share and differ(share, best_share)
    return best_share <= LEAST_SHARE and (held < best_held or (held == best_held and other < best_other))


@helper
def next_by_ratio(env: Environment, j: int, conserving: Any) -> tuple[int, int]:
    """Return the row of least running / share that may start a task at site j, and its group's position."""
    jobs, state = env.jobs, env.state
    first, last = jobs.site_start[j], jobs.site_start[j + 1]
    best = -1
    best_share = 0.0
    best_held = 0
    best_other = 0
    # first the job: its ratio counts all that it runs here, its shares only where it may start
    for r in range(state.scalars.active):
        if state.waits[r] == 0:
            continue
        possible = False
        share = 0.0
        held = 0
        for position in range(first, last):
            e = jobs.entries[position]
            held += state.running[r, e]
            part = state.share[r, e]
            if part >= 0.0:
                share += part
                possible |= state.waiting[r, jobs.entry_groups[position]] > 0
        if not possible or (share <= LEAST_SHARE and not conserving):
            continue
        other = state.occupied[r]
        if best < 0 or before(share, held, other, best_share, best_held, best_other):
            best = r
            best_share = share
            best_held = held
            best_other = other
    # then its group, by the same rule
    chosen = -1
    if best >= 0:
        for position in range(first, last):
            e = jobs.entries[position]
            share = state.share[best, e]
            if share >= 0.0 and state.waiting[best, jobs.entry_groups[position]] > 0:
                held = state.running[best, e]
                if chosen < 0 or before(share, held, 0, best_share, best_held, 0):
                    chosen = position
                    best_share = share
                    best_held = held
    return best, chosen


@helper
def may_use(env: Environment, k: int, j: int) -> Any:
    """View pick: return True if tasks of group k, which has site j in its list, may start there."""
    return not (env.constants.config.associated and env.jobs.sites[k, 0] != j)


@helper
def first_place_for(env: Environment, r: int, j: int) -> int:
    """View pick: return the first position among the entries where a row can use a slot of site j, or -1."""
    jobs, state = env.jobs, env.state
    if state.waits[r] > 0:
        for position in range(jobs.site_start[j], jobs.site_start[j + 1]):
            k = jobs.entry_groups[position]
            if state.waiting[r, k] > 0 and may_use(env, k, j):
                return position
    return -1


@helper
def free_for(env: Environment, k: int) -> int:
    """Return the number of free slots at all sites in the list of group k."""
    free = 0
    for c in range(env.jobs.sites.shape[1]):
        if env.jobs.sites[k, c] >= 0:
            free += env.state.free[env.jobs.sites[k, c]]
    return free


@helper
def place_for(env: Environment, r: int, j: int) -> int:
    """View pick: return the position among the entries at which a row uses a slot of site j, or -1.

    A task starts of the group that has the most waiting tasks for each free slot of its sites, so that slots
    which only some groups can use are left to these; with dispatch_sites="associated" of the lowest group.
    """
    jobs, state = env.jobs, env.state
    best = first_place_for(env, r, j)
    if best < 0 or env.constants.config.associated:
        return best
    most, most_free = 0, 1
    for position in range(best, jobs.site_start[j + 1]):
        k = jobs.entry_groups[position]
        waiting = state.waiting[r, k]
        if waiting > 0:
            free = free_for(env, k)
            # compared as products: exact, and ties go to the lower group
            if waiting * most_free > most * free:
                best, most, most_free = position, waiting, free
    return best


@helper
def first_able(env: Environment, j: int) -> int:
    """View pick: return the first row that can use a slot of site j, or -1."""
    for r in range(env.state.scalars.active):
        if first_place_for(env, r, j) >= 0:
            return r
    return -1


@helper
def freest_site(env: Environment) -> int:
    """Return the site with the largest share of free slots of those where tasks may start now, or -1."""
    state = env.state
    best, free, slots = -1, 0, 1
    for j in range(state.free.shape[0]):
        # compared as products: exact, and ties go to the lower site
        if state.freed[j] != 0 and state.free[j] * slots > free * env.jobs.slots[j]:
            best, free, slots = j, state.free[j], env.jobs.slots[j]
    return best


@helper
def next_start(env: Environment, conserving: Any, order_next: Any) -> tuple[int, int, int]:
    """Find the next start at this instant: row, position among the entries, site (ascending); -1: none.

    In view pick, where tasks may use all sites of their group, the freest site comes first: the slots that
    stay free are then spread over the sites, and the next jobs find some wherever their tasks may run.
    In view pick a slot that a visible job can use needs a decision, and its site becomes ``open_site``. Slots
    that only hidden jobs can use go to the first of these.
    """
    state, config = env.state, env.constants.config
    sites = state.free.shape[0]
    spread = config.mode == SLOT and not config.associated
    for turn in range(sites):
        j = freest_site(env) if spread else turn
        # other sites had nothing to start, which only an end, an arrival or a decision can change
        if j < 0 or state.freed[j] == 0:
            continue
        if state.free[j] > 0 and state.runnable[j] > 0:
            row = -1
            position = -1
            if config.mode == ORDER:
                row, position = next_by_order(env, j, order_next)
            elif config.mode == RATIO:
                row, position = next_by_ratio(env, j, conserving)
            else:
                row = first_able(env, j)
                # the agent decides where it sees a candidate
                if 0 <= row < config.window:
                    state.scalars.open_site = j
                    return -1, -1, -1
                if row >= 0:
                    position = place_for(env, row, j)
            if row >= 0:
                return row, position, j
        state.freed[j] = 0
    state.scalars.open_site = sites
    return -1, -1, -1


@helper
def advance_clock(env: Environment, instant: float, cost: float) -> float:
    """Advance the clock to an instant, unless that is over; return ``cost`` plus the cost of this time."""
    s = env.state.scalars
    elapsed = instant - s.clock
    if s.active > 0 and elapsed > 0.0:
        cost += elapsed * s.active * s.response_scale
        if s.fairness_scale > 0.0:
            # n * (sum of squares) - (sum)^2 is n^2 times the variance, in whole numbers: no rounding
            spread = float(s.active * s.squares - s.running * s.running)
            cost += elapsed * (math.sqrt(spread) / s.active) * s.fairness_scale
    s.clock = max(s.clock, instant)
    return cost


@helper
def run_by(env: Environment, order_next: Any) -> float:
    """Dispatch, and advance to the next decision; return the cost of that time.

    Mode ORDER: ``order_next`` orders rows as far as free slots ask for them; see :func:`next_by_order`.
    """
    jobs, state, mode = env.jobs, env.state, env.constants.config.mode
    s = state.scalars
    cost = 0.0
    conserving = env.constants.config.work_conserving != 0
    while True:
        # 1. dispatch: start whatever may start now
        while True:
            row, position, j = next_start(env, conserving, order_next)
            if row < 0:
                break
            start_task(env, row, position, j)
        if mode == SLOT and s.open_site < state.free.shape[0]:
            return cost
        # 2. the next instant: an arrival or the end of a task
        instant = math.inf
        if s.arrived < jobs.size.jobs:
            instant = jobs.arrival[s.arrived]
        if s.running > 0:
            instant = min(instant, state.heap_time[0])
        elif instant == math.inf:  # otherwise slots reserved by shares would stay free for ever
            conserving = True
            for site in range(state.free.shape[0]):
                state.freed[site] = 1
            continue
        # 3. charge the time up to it, and to all that is simultaneous but for rounding; ends come before
        # arrivals, so that a slot that is freed now is free for the jobs that arrive now
        last = last_of(instant)
        while s.running > 0 and state.heap_time[0] <= last:
            cost = advance_clock(env, state.heap_time[0], cost)
            end_task(env)
        if s.completed == jobs.size.jobs:
            s.finished = 1
            return cost
        while s.arrived < jobs.size.jobs and jobs.arrival[s.arrived] <= last:
            cost = advance_clock(env, jobs.arrival[s.arrived], cost)
            submit(env)
        # 4. a decision is due if it could change something
        if mode != SLOT and s.waiting > 0 and (s.arrival or s.completion):
            return cost


@subroutine
def run(env: Environment) -> float:
    """See :func:`run_by`; the decision has ordered all rows."""
    return run_by(env, order_none)


@helper
def finish_step(env: Environment, cost: float) -> None:
    """Write the result of a step: the reward is minus the cost of its time."""
    if cost != 0.0:
        env.exchange.result.reward = -cost
    env.exchange.result.terminated = env.state.scalars.finished != 0


@helper
def observe_units(env: Environment, shown: int) -> None:
    """Write the observation in exact units."""
    s, observation = env.state.scalars, env.observation
    if not env.constants.config.zero_copy:
        for r in range(max(shown, s.shown)):  # rows behind the active ones are zero
            show_row(env.state, r, observation, r)
            if observation.assigned.shape[0] > 0:
                copy_entries(env.state.assigned, r, observation.assigned, r)
            if observation.seconds.shape[0] > 0:
                copy_entries(env.state.seconds, r, observation.seconds, r)
    for r in range(shown):
        observation.age[r] = s.clock - env.state.arrival[r]
        observation.ended[r] = ended_tasks(env, r)
        observation.duration[r] = mean_duration(env, r)
        observation.elapsed[r] = mean_elapsed(env, r)
    for r in range(shown, s.shown):
        observation.age[r] = 0.0
        observation.ended[r] = 0
        observation.duration[r] = 0.0
        observation.elapsed[r] = 0.0
    observation.clock[0] = s.clock
    observation.event[0] = s.arrival
    observation.event[1] = s.completion
    observation.event[2] = s.open_site < env.state.free.shape[0]
    observation.active[0] = s.active
    observation.backlog[0] = s.active - shown
    observation.typical[0] = typical_duration(env)
    observation.open_site[0] = s.open_site


@helper
def observe_open_site(env: Environment, r: int) -> None:
    """View pick: write to a row's token how many tasks it could start, and runs, at the open site."""
    jobs, state, tokens = env.jobs, env.state, env.observation.job_tokens
    site = state.scalars.open_site
    waiting = 0
    held = 0
    if site < state.free.shape[0]:
        held = tasks_at(env, state.running, r, site)
        for position in range(jobs.site_start[site], jobs.site_start[site + 1]):
            k = jobs.entry_groups[position]
            if may_use(env, k, site):
                waiting += state.waiting[r, k]
    tokens[r, columns.JOB.able_here] = scaled(waiting)
    tokens[r, columns.JOB.here] = scaled(held)


@helper
def observe_features(env: Environment, shown: int) -> None:
    """Update the observation as float32 tokens; only what has changed is written."""
    state, mode, tokens = env.state, env.constants.config.mode, env.observation.job_tokens
    s = state.scalars
    sites = state.free.shape[0]
    for r in range(shown):
        fresh = state.stale[r]
        if fresh:
            write_job_token(env, r)
            state.stale[r] = 0
        # an age changes with the clock alone, the time that running tasks have run also with starts
        if fresh or s.clock != s.observed:
            tokens[r, columns.JOB.age] = scaled_time(s.clock - state.arrival[r])
        if fresh or s.clock != s.observed or state.changed[r]:
            tokens[r, columns.JOB.elapsed] = scaled_time(mean_elapsed(env, r))
        # what a row could start changes with its own tasks and with the open site
        if mode == SLOT and (fresh or state.changed[r] or s.open_site != s.marked):
            state.changed[r] = 0
            observe_open_site(env, r)
    for r in range(shown, s.shown):
        state.stale[r] = 1
    clear_entries(tokens, shown, s.shown)
    whole = env.observation.site_tokens
    # a decision may move any waiting task: these sums are made anew
    if mode == ORDER:
        for j in range(sites):
            assigned = 0
            for r in range(s.active):
                if state.waits[r] > 0:
                    assigned += tasks_at(env, state.assigned, r, j)
            whole[j, columns.SITE.assigned] = scaled(assigned)
    if 0 <= s.marked < sites:
        whole[s.marked, columns.SITE.open] = 0.0
    if s.open_site < sites:
        whole[s.open_site, columns.SITE.open] = 1.0
    s.marked = s.open_site
    token = columns.GlobalToken(
        arrival=s.arrival,
        completion=s.completion,
        slot=s.open_site < sites,
        jobs=scaled(s.active),
        beyond=scaled(s.active - shown),
        waiting=scaled(s.waiting),
        clock=s.clock / (s.clock + columns.CLOCK_SCALE),
        duration=scaled_time(typical_duration(env)),
    )
    put(env.observation.global_tokens, 0, token)


@helper
def observe_mask(env: Environment, shown: int) -> None:
    """View pick: write which rows can use the open slot."""
    s, mask = env.state.scalars, env.observation.action_mask
    none = s.open_site == env.state.free.shape[0]
    for r in range(shown):
        mask[r] = not none and first_place_for(env, r, s.open_site) >= 0
    for r in range(shown, s.shown):
        mask[r] = 0
    if none:
        mask[0] = 1  # after the episode one choice is marked feasible


@helper
def observe(env: Environment) -> None:
    """Write the whole observation."""
    s, config = env.state.scalars, env.constants.config
    shown = min(s.active, config.window)
    if config.mode == SLOT and config.mask:
        observe_mask(env, shown)
    if config.features:
        observe_features(env, shown)
    else:
        observe_units(env, shown)
    mark(env.observation.job_mask, s.shown, shown)
    s.shown = shown
    s.observed = s.clock
    env.exchange.result.rows = shown


@helper
def set_scales(env: Environment) -> None:
    """Set the factors of active jobs and of their deviation in the reward."""
    jobs, config = env.jobs, env.constants.config
    span = jobs.arrival[jobs.size.jobs - 1] - jobs.arrival[0]
    # the mean duration of a task, or 1 s
    unit = 1.0
    if config.normalize:
        unit = 0.0
        for t in range(jobs.size.tasks):
            unit += jobs.duration[t]
        unit /= jobs.size.tasks
    env.state.scalars.response_scale = config.response_weight / (jobs.size.jobs * unit)
    env.state.scalars.fairness_scale = config.fairness_weight / ((span if span > 0.0 else 1.0) * unit)


@helper
def begin(env: Environment) -> None:
    """Start an episode on the loaded workload: the first jobs arrive, and a decision is due."""
    jobs, state, observation = env.jobs, env.state, env.observation
    s = state.scalars
    sites = state.free.shape[0]
    for r in range(s.active):  # left over when the last episode was cut off
        clear_row(env, r)
    reset(s)
    for t in range(jobs.size.tasks):
        env.schedule.start[t] = math.nan
    # every slot is free, and every site is looked at in the first dispatch
    for j in range(sites):
        state.free[j] = jobs.slots[j]
        state.runnable[j] = 0
        state.freed[j] = 1
        state.cursor[j] = 0
        if observation.site_tokens.shape[0] > 0:
            observation.site_tokens[j, columns.SITE.slots] = scaled(jobs.slots[j])
            observation.site_tokens[j, columns.SITE.free] = 1.0
            observation.site_tokens[j, columns.SITE.runnable] = 0.0
            observation.site_tokens[j, columns.SITE.open] = 0.0
    for k in range(observation.group_mask.shape[0]):
        observation.group_mask[k] = k < jobs.size.groups
    set_scales(env)
    s.open_site = sites
    # nothing has been observed: no site is marked, and no clock equals this one
    s.marked = -1
    s.observed = math.nan
    s.clock = jobs.arrival[0]
    while s.arrived < jobs.size.jobs and jobs.arrival[s.arrived] == s.clock:
        submit(env)
    if env.constants.config.mode == SLOT:  # advance to the first decision
        finish_step(env, run(env))


@helper
def begin_step(env: Environment) -> None:
    """Note that there was a decision; mode SLOT: start the picked task."""
    state = env.state
    s = state.scalars
    s.recomputations += 1
    s.repaired += env.exchange.result.repaired
    # jobs are new until the first decision after their arrival
    if s.arrival:
        for r in range(s.active):
            state.stale[r] |= state.new[r]
            state.new[r] = 0
    s.arrival = 0
    s.completion = 0
    if env.constants.config.mode == SLOT:
        start_task(env, s.picked, place_for(env, s.picked, s.open_site), s.open_site)
    else:
        # another order, or other shares: any site may start something now
        for j in range(state.free.shape[0]):
            state.freed[j] = 1
            state.cursor[j] = 0


@helper
def advance(env: Environment) -> None:
    """Carry out the decision; the reward is minus the cost until the next decision."""
    env.state.scalars.ordered = env.state.scalars.active
    begin_step(env)
    finish_step(env, run(env))


# Actions, view by view: the test of feasibility, and the decision.


@helper
def order_rows(env: Environment) -> None:
    """Order the rows by decreasing score, an action row's first number; ties and hidden rows by arrival."""
    state, number = env.state, env.scratch.number
    visible = env.exchange.result.rows
    for r in range(state.scalars.active):
        state.order[r] = r
    for r in range(visible):
        number[r] = -env.exchange.numbers[r, 0]
        state.stale[r] = 1
    sort_rows(state.order, number, visible)


@helper
def place_hidden(env: Environment) -> None:
    """Assign the new jobs beyond the window to their associated sites."""
    state, width = env.state, env.jobs.sites.shape[1]
    for r in range(env.exchange.result.rows, state.scalars.active):
        if state.new[r]:
            for k in range(state.waiting.shape[1]):
                for a in range(width):
                    state.assigned[r, k * width + a] = 0
                state.assigned[r, k * width] = state.waiting[r, k]


@helper
def decode_assignment(env: Environment) -> Any:
    """Return True if the counts are whole and place each waiting task once, at one of its sites."""
    numbers, sites = env.exchange.numbers, env.jobs.sites
    groups, width = sites.shape
    for r in range(env.exchange.result.rows):
        for k in range(groups):
            total = 0.0
            for a in range(width):
                count = numbers[r, 1 + k * width + a]
                if count < 0.0 or count != math.floor(count):
                    return False
                if count > 0.0 and sites[k, a] < 0:
                    return False
                total += count
            if total != env.state.waiting[r, k]:
                return False
    return True


@helper
def decide_assignment(env: Environment, feasible: bool) -> None:
    """View assignment: set the order by a score per row, and the assigned tasks by its counts [K * A].

    Counts are rounded down; surplus is cut from the last site, missing tasks go to the associated one. Hidden
    jobs come last and keep their assigned tasks, at first at their associated sites.
    """
    state, numbers, sites = env.state, env.exchange.numbers, env.jobs.sites
    groups, width = sites.shape
    order_rows(env)
    place_hidden(env)
    for r in range(env.exchange.result.rows):
        for k in range(groups):
            left = state.waiting[r, k]
            for a in range(width):
                e = k * width + a
                count = 0
                if left > 0 and sites[k, a] >= 0:
                    count = int(min(max(numbers[r, 1 + e], 0.0), float(left)))
                state.assigned[r, e] = count
                left -= count
            # what the action does not place stays at the associated site
            state.assigned[r, k * width] += left


@helper
def asked_share(env: Environment, r: int, e: int) -> float:
    """Return the share that an action gives an entry, clipped to a range in which sums are finite."""
    return min(max(env.exchange.numbers[r, e], 0.0), LARGEST_SHARE)


@helper
def group_fits(env: Environment, r: int, k: int) -> Any:
    """Return True if a group's shares are at most its demand, and leave its waiting tasks a site."""
    sites = env.jobs.sites
    width = sites.shape[1]
    total = 0.0
    reachable = env.state.waiting[r, k] == 0
    for a in range(width):
        share = env.exchange.numbers[r, k * width + a]
        if sites[k, a] >= 0:
            total += asked_share(env, r, k * width + a)
            reachable |= share >= 0.0
        elif share > 0.0:
            return False
    limit = env.state.unfinished[r, k]
    return reachable and total <= limit + SHARE_TOLERANCE * max(limit, 1)


@helper
def decode_shares(env: Environment) -> Any:
    """Return True if shares are at most demand and slots, and leave each waiting task a site."""
    jobs, rows = env.jobs, env.exchange.result.rows
    for r in range(rows):
        for k in range(jobs.sites.shape[0]):
            if not group_fits(env, r, k):
                return False
    # each group is within its demand; is each site within its slots?
    for j in range(jobs.slots.shape[0]):
        total = 0.0
        for r in range(rows):
            for position in range(jobs.site_start[j], jobs.site_start[j + 1]):
                total += asked_share(env, r, jobs.entries[position])
        if total > jobs.slots[j] * (1.0 + SHARE_TOLERANCE):
            return False
    return True


@helper
def repair_shares(env: Environment) -> None:
    """Scale the visible rows' shares down to the demand of each group, then to the slots of each site."""
    jobs, rows, shares = env.jobs, env.exchange.result.rows, env.state.share
    groups, width = jobs.sites.shape
    for r in range(rows):
        for k in range(groups):
            limit = env.state.unfinished[r, k]
            total = 0.0
            reachable = False
            for e in range(k * width, k * width + width):
                if shares[r, e] >= 0.0:  # padded entries are closed
                    total += shares[r, e]
                    reachable = True
            if not reachable:
                shares[r, k * width] = 0.0
            # proportional, so that the wishes keep their ratios
            if total > limit:
                for e in range(k * width, k * width + width):
                    if shares[r, e] > 0.0:
                        shares[r, e] = shares[r, e] * limit / total
    for j in range(jobs.slots.shape[0]):
        total = 0.0
        for r in range(rows):
            for position in range(jobs.site_start[j], jobs.site_start[j + 1]):
                total += max(shares[r, jobs.entries[position]], 0.0)
        if total > jobs.slots[j]:
            for r in range(rows):
                for position in range(jobs.site_start[j], jobs.site_start[j + 1]):
                    e = jobs.entries[position]
                    if shares[r, e] > 0.0:
                        shares[r, e] = shares[r, e] * jobs.slots[j] / total


@helper
def count_violations(env: Environment) -> None:
    """Count the jobs whose sharing incentive this decision violates."""
    state = env.state
    state.scalars.sharing_violations += sharing_violations(
        state.scalars.active, state.unfinished, state.share, env.jobs, env
    )


@helper
def decide_shares(env: Environment, feasible: bool) -> None:
    """View shares: set the shares to the action's slots [K * A] per row.

    Shares are scaled down to the demand of each group, then to the slots of each site. A group with waiting
    tasks and no open site gets its associated one opened. Hidden jobs have shares of 0 everywhere.
    """
    state, sites = env.state, env.jobs.sites
    groups, width = sites.shape
    for r in range(state.scalars.active):
        for k in range(groups):
            for a in range(width):
                e = k * width + a
                share = 0.0
                if r < env.exchange.result.rows:
                    share = min(env.exchange.numbers[r, e], LARGEST_SHARE)
                state.share[r, e] = -1.0 if share < 0.0 or sites[k, a] < 0 else share
    if not feasible:
        repair_shares(env)
    count_violations(env)


@helper
def decide_priority(env: Environment, feasible: bool) -> None:
    """View priority: set the order by a score per row, and place the tasks in that order."""
    state = env.state
    order_rows(env)
    place_hidden(env)
    options = Options(0, False, False, env.constants.config.greedy != 0, False)
    place_in_order(options, env.exchange.result.rows, state.order, state, env.jobs, env, state.assigned)


@helper
def decide_rule(env: Environment, feasible: bool) -> None:
    """View rule: set order and placement by the named algorithm, for all active jobs.

    Balanced placements are even to the task.
    """
    state = env.state
    options = Options(env.exchange.choices[0], True, False, env.constants.config.greedy != 0, False)
    assign(options, state.scalars.active, state, env.jobs, env, state.order, state.assigned)
    for r in range(state.scalars.active):
        state.stale[r] = 1


@helper
def decode_weights(env: Environment) -> Any:
    """Return True if no weight is negative."""
    for r in range(env.exchange.result.rows):
        if env.exchange.numbers[r, 0] < 0.0:
            return False
    return True


@helper
def decide_weights(env: Environment, feasible: bool) -> None:
    """View weights: set the weighted max-min fair shares by a weight per row.

    Negative weights are repaired to 0, which is raised to 1e-9 of the largest. Hidden jobs have weight 1.
    """
    state, number = env.state, env.scratch.number
    active = state.scalars.active
    for r in range(active):
        number[r] = max(env.exchange.numbers[r, 0], 0.0) if r < env.exchange.result.rows else 1.0
    associated = env.constants.config.associated != 0
    weighted_fair(associated, active, number, state.unfinished, env.jobs, env, state.share)
    count_violations(env)


@helper
def decide_fair_rule(env: Environment, feasible: bool) -> None:
    """View fair-rule: set the shares by the named algorithm, for all active jobs."""
    state, rule = env.state, env.exchange.choices[0]
    fair(rule, state.scalars.active, state.unfinished, state.seconds, env.jobs, env, state.share)
    count_violations(env)


@helper
def decode_pick(env: Environment) -> Any:
    """View pick: return True if the chosen row can use the open slot."""
    r = env.exchange.choices[0]
    return r < env.exchange.result.rows and first_place_for(env, r, env.state.scalars.open_site) >= 0


@helper
def decide_pick(env: Environment, feasible: bool) -> None:
    """View pick: note the row that takes the open slot; one that cannot use it becomes the first that can."""
    s = env.state.scalars
    s.picked = env.exchange.choices[0] if feasible else first_able(env, s.open_site)


VIEWS = (
    ViewDynamics("assignment", decode_assignment, decide_assignment),
    ViewDynamics("shares", decode_shares, decide_shares),
    ViewDynamics("priority", always_feasible, decide_priority),
    ViewDynamics("rule", always_feasible, decide_rule),
    ViewDynamics("weights", decode_weights, decide_weights),
    ViewDynamics("fair-rule", always_feasible, decide_fair_rule),
    ViewDynamics("pick", decode_pick, decide_pick),
)
DYNAMICS = Dynamics(__name__, Environment, begin, advance, observe, VIEWS)
SCORING = Scoring(DYNAMICS, columns, ("priority", "pick"))
