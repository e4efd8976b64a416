"""State and compiled dynamics of GeoAssign and GeoFair, batch-first: axis 0 is the environment.

Time moves from instant to instant, an instant being an arrival or the end of a task. At one instant: all
ends, then the arrivals in job order, then one decision if one is due, then dispatch, sites ascending.

A step has two halves. A ``decode`` kernel, one per view, turns actions into what dispatch goes by: an order
of the jobs with counts of assigned tasks, or shares. :func:`step` dispatches and runs on to the next
instant that asks for a decision, and writes the observation. They are apart so that an environment compiles
only the solver that its view needs.

Active jobs are rows in order of arrival, at the front of every [B, N, ...] array; rows behind are zero.
An entry e = k * A + a is the a-th available site of group k.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core import heap
from schedgym.core.jit import (
    B1_1,
    F4_2,
    F4_3,
    F8_1,
    F8_2,
    F8_3,
    I1_2,
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
from schedgym.problems.geo.rules import (
    ASSIGN_RULES,
    FAIR_RULES,
    AssignScratch,
    FairScratch,
    assign,
    fair,
    place_in_order,
    sharing_violations,
    weighted_fair,
)
from schedgym.problems.geo.tokens import (
    AGE_SCALE,
    CLOCK_SCALE,
    COUNT_SCALE,
    GLOBAL_FEATURES,
    JOB_FEATURES,
    SITE_FEATURES,
)
from schedgym.solvers.balance import PlacementScratch, SiteLists
from schedgym.solvers.max_min import Network

__all__ = [
    "CONFIG",
    "GLOBAL_FEATURES",
    "JOB_FEATURES",
    "SCALARS",
    "SITE_FEATURES",
    "Constants",
    "Exchange",
    "Jobs",
    "Observation",
    "State",
    "decode_assignment",
    "decode_fair_rule",
    "decode_pick",
    "decode_priority",
    "decode_rule",
    "decode_shares",
    "decode_weights",
    "step",
]

#: how free slots are given away: by the order of the jobs, by running / share, or one by one by the agent
ORDER, RATIO, SLOT = 0, 1, 2

RULES, FAIR = len(ASSIGN_RULES), len(FAIR_RULES)

#: shares beyond a demand or a site's slots by less than this part are rounding, and left as they are
SHARE_TOLERANCE = 1e-6
LARGEST_SHARE = 1e15  # slots

#: per-environment scalars
SCALARS = record_dtype(
    ("clock", np.float64),
    ("response_scale", np.float64),  # of the integral of active jobs in the reward
    ("fairness_scale", np.float64),  # of the integral of the standard deviation
    ("jobs", np.int64),
    ("groups", np.int64),
    ("arrived", np.int64),  # also the index of the next job to arrive
    ("active", np.int64),  # rows
    ("completed", np.int64),
    ("running", np.int64),  # tasks; also the size of the heap of ends
    ("squares", np.int64),  # sum over active jobs of the square of their running tasks
    ("waiting", np.int64),  # tasks
    ("arrival", np.int64),  # whether a job has arrived since the last decision
    ("completion", np.int64),  # whether something that asks for a decision has ended since
    ("open_site", np.int64),  # the site whose free slot is offered, else the number of sites
    ("finished", np.int64),
    ("shown", np.int64),  # window rows that the last observation filled
    ("marked", np.int64),  # the open site of the last observation
    ("observed", np.float64),  # the clock of the last observation
    ("recomputations", np.int64),
    ("violations", np.int64),
    ("repaired", np.int64),
)

#: constants of a simulator
CONFIG = record_dtype(
    ("mode", np.int64),
    ("window", np.int64),
    ("associated", np.int64),  # views pick, weights: tasks start at their associated site only
    ("aggressive", np.int64),
    ("work_conserving", np.int64),
    ("features", np.int64),
    ("mask", np.int64),
    ("lent", np.int64),  # the observation's job arrays are the state's rows
    ("strict", np.int64),
    ("greedy", np.int64),  # views priority and rule: placement="greedy"
    ("response_weight", np.float64),  # in the reward, of the mean response,
    ("fairness_weight", np.float64),  # and of the fairness
    ("normalize", np.int64),
)


class Constants(NamedTuple):
    """What stays the same for the life of a simulator."""

    config: Annotated[npt.NDArray[Any], CONFIG, 1]  # [1]


class Jobs(NamedTuple):
    """The workload. N jobs, P parts (a job's tasks of one group), T tasks, K groups, A choices, M sites."""

    arrival: F8_2  # [B, N]
    part_start: I4_2  # [B, N + 1] first part of a job
    part_group: I4_2  # [B, P]
    part_first: I4_2  # [B, P + 1] first task of a part
    task_start: I4_2  # [B, N + 1] first task of a job
    duration: F8_2  # [B, T]
    slots: I8_2  # [B, M]
    sites: I8_3  # [B, K, A] see SiteLists
    ascending: I8_3  # [B, K, A]
    site_start: I8_2  # [B, M + 1]
    entries: I8_2  # [B, K * A]
    entry_groups: I8_2  # [B, K * A] their groups


class State(NamedTuple):
    """Everything that changes in an episode."""

    scalars: Annotated[npt.NDArray[Any], SCALARS, 1]  # [B]
    job: I4_2  # [B, N] of a row
    row: I4_2  # [B, N] of an active job
    arrival: F8_2  # [B, N] of a row
    remaining: I4_2  # [B, N] unfinished tasks
    waits: I4_2  # [B, N] waiting tasks
    occupied: I4_2  # [B, N] running tasks
    new: I1_2  # [B, N] no decision has been taken since the job arrived
    stale: I1_2  # [B, N] rows whose tokens must be written whole
    changed: I1_2  # [B, N] rows of which a task has started or ended since the last observation
    part: I4_3  # [B, N, K] part of a row's group, -1 without tasks
    unfinished: I4_3  # [B, N, K] waiting and running tasks
    waiting: I4_3  # [B, N, K]
    running: I4_3  # [B, N, K * A]
    assigned: I4_3  # [B, N, K * A] mode ORDER: waiting tasks by the site where they are to run
    share: F8_3  # [B, N, K * A] mode RATIO: slots; negative: closed
    order: I8_2  # [B, N] mode ORDER: rows, the first to be served first
    scratch: I8_2  # [B, N]
    cursor: I4_2  # [B, M] mode ORDER: places in the order that have nothing left for a site
    free: I8_2  # [B, M]
    runnable: I8_2  # [B, M] waiting tasks that may run at a site
    freed: I1_2  # [B, M] sites where dispatch has something to do
    started: I4_2  # [B, P] tasks of a part that have started
    start: F8_2  # [B, T] NaN before the start
    place: I4_2  # [B, T] place among the entries at which a task runs
    site: I4_2  # [B, T] its site
    owner: I4_2  # [B, T] job of a task that has started
    heap_time: F8_2  # [B, T]
    heap_task: I4_2  # [B, T]


class Observation(NamedTuple):
    """Buffers that the kernel writes (W window rows); those that are not shown have length 0."""

    clock: F8_2  # [B, 1]
    event: I1_2  # [B, 3]
    arrival: F8_2  # [B, W]
    age: F8_2  # [B, W]
    remaining: I4_2  # [B, W]
    waiting: I4_3  # [B, W, K]
    running: I4_3  # [B, W, K * A]
    assigned: I4_3  # [B, W, K * A]
    new: I1_2  # [B, W]
    job_mask: I1_2  # [B, W]
    group_mask: I1_2  # [B, K]
    active: I8_2  # [B, 1]
    backlog: I8_2  # [B, 1]
    open_site: I8_1  # [B]
    action_mask: I1_2  # [B, actions]
    job_tokens: F4_3  # [B, W, JOB_FEATURES + K + M, mode ORDER + M]
    site_tokens: F4_3  # [B, M, SITE_FEATURES]
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


unpack = unpacker(Constants, Jobs, State, Observation, Exchange)
unpack_order_tools = unpacker(PlacementScratch, AssignScratch)
unpack_ratio_tools = unpacker(PlacementScratch, FairScratch, Network)


@helper
def clear_row(config: Any, state: State, b: int, r: int) -> None:
    """Set a row to zero."""
    state.arrival[b, r] = 0.0
    state.remaining[b, r] = 0
    state.waits[b, r] = 0
    state.occupied[b, r] = 0
    state.new[b, r] = 0
    for k in range(state.waiting.shape[2]):
        state.waiting[b, r, k] = 0
        state.unfinished[b, r, k] = 0
        state.part[b, r, k] = -1
    for e in range(state.running.shape[2]):
        state.running[b, r, e] = 0
        if config.mode == ORDER:
            state.assigned[b, r, e] = 0
        elif config.mode == RATIO:
            state.share[b, r, e] = 0.0


@helper
def move_row(config: Any, state: State, b: int, source: int, target: int) -> None:
    """Copy a row."""
    job = state.job[b, source]
    state.job[b, target] = job
    state.row[b, job] = target
    state.arrival[b, target] = state.arrival[b, source]
    state.remaining[b, target] = state.remaining[b, source]
    state.waits[b, target] = state.waits[b, source]
    state.occupied[b, target] = state.occupied[b, source]
    state.new[b, target] = state.new[b, source]
    state.stale[b, target] = 1
    for k in range(state.waiting.shape[2]):
        state.waiting[b, target, k] = state.waiting[b, source, k]
        state.unfinished[b, target, k] = state.unfinished[b, source, k]
        state.part[b, target, k] = state.part[b, source, k]
    for e in range(state.running.shape[2]):
        state.running[b, target, e] = state.running[b, source, e]
        if config.mode == ORDER:
            state.assigned[b, target, e] = state.assigned[b, source, e]
        elif config.mode == RATIO:
            state.share[b, target, e] = state.share[b, source, e]


@helper
def scaled(count: int) -> float:
    """A count between 0 and 1."""
    return count / (count + COUNT_SCALE)


@helper
def write_job_token(
    config: Any, jobs: Jobs, state: State, tokens: npt.NDArray[np.float32], b: int, r: int
) -> None:
    """Write a row's token but for age and what depends on the open site."""
    groups = jobs.sites.shape[1]
    sites = state.free.shape[1]
    tokens[b, r, 0] = scaled(state.remaining[b, r])
    tokens[b, r, 1] = scaled(state.waits[b, r])
    tokens[b, r, 2] = scaled(state.occupied[b, r])
    tokens[b, r, 4] = state.new[b, r]
    for k in range(groups):
        tokens[b, r, JOB_FEATURES + k] = scaled(state.waiting[b, r, k])
    base = JOB_FEATURES + groups
    for j in range(sites):
        held = 0
        assigned = 0
        for position in range(jobs.site_start[b, j], jobs.site_start[b, j + 1]):
            e = jobs.entries[b, position]
            held += state.running[b, r, e]
            if config.mode == ORDER:
                assigned += state.assigned[b, r, e]
        tokens[b, r, base + j] = scaled(held)
        if config.mode == ORDER:
            tokens[b, r, base + sites + j] = scaled(assigned)


@helper
def write_counts(
    config: Any, jobs: Jobs, state: State, observation: Observation, b: int, r: int, k: int, j: int
) -> None:
    """Write what a start or an end of a task of group k at site j changes in the tokens."""
    whole = observation.site_tokens
    if whole.shape[1] == 0:
        return
    whole[b, j, 1] = state.free[b, j] / jobs.slots[b, j]
    if r >= config.window or state.stale[b, r]:
        return
    tokens = observation.job_tokens
    tokens[b, r, 0] = scaled(state.remaining[b, r])
    tokens[b, r, 1] = scaled(state.waits[b, r])
    tokens[b, r, 2] = scaled(state.occupied[b, r])
    tokens[b, r, JOB_FEATURES + k] = scaled(state.waiting[b, r, k])
    held = 0
    for position in range(jobs.site_start[b, j], jobs.site_start[b, j + 1]):
        held += state.running[b, r, jobs.entries[b, position]]
    tokens[b, r, JOB_FEATURES + jobs.sites.shape[1] + j] = scaled(held)
    state.changed[b, r] = 1


@helper
def write_runnable(state: State, observation: Observation, b: int, j: int) -> None:
    """Write how many waiting tasks may run at a site."""
    if observation.site_tokens.shape[1] > 0:
        observation.site_tokens[b, j, 2] = scaled(state.runnable[b, j])


@helper
def submit(jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """The next job arrives, at the end of the rows, which are zero there."""
    s = state.scalars[b]
    job = s.arrived
    r = s.active
    width = jobs.sites.shape[2]
    state.job[b, r] = job
    state.row[b, job] = r
    state.arrival[b, r] = jobs.arrival[b, job]
    tasks = jobs.task_start[b, job + 1] - jobs.task_start[b, job]
    state.remaining[b, r] = tasks
    state.waits[b, r] = tasks
    state.new[b, r] = 1
    state.stale[b, r] = 1
    for p in range(jobs.part_start[b, job], jobs.part_start[b, job + 1]):
        k = jobs.part_group[b, p]
        count = jobs.part_first[b, p + 1] - jobs.part_first[b, p]
        state.part[b, r, k] = p
        state.waiting[b, r, k] = count
        state.unfinished[b, r, k] = count
        for a in range(width):
            j = jobs.sites[b, k, a]
            if j >= 0:
                state.runnable[b, j] += count
                state.freed[b, j] = 1
                write_runnable(state, observation, b, j)
    s.waiting += tasks
    s.arrived = job + 1
    s.active = r + 1
    s.arrival = 1


@helper
def start_task(
    config: Any, jobs: Jobs, state: State, observation: Observation, b: int, r: int, position: int, j: int
) -> None:
    """Start a row's first waiting task of the group at this place among the entries of site j."""
    s = state.scalars[b]
    width = jobs.sites.shape[2]
    e = jobs.entries[b, position]
    k = jobs.entry_groups[b, position]
    part = state.part[b, r, k]
    task = jobs.part_first[b, part] + state.started[b, part]
    state.started[b, part] += 1
    state.start[b, task] = s.clock
    state.place[b, task] = position
    state.site[b, task] = j
    state.owner[b, task] = state.job[b, r]
    state.waiting[b, r, k] -= 1
    state.waits[b, r] -= 1
    state.running[b, r, e] += 1
    if config.mode == ORDER:
        state.assigned[b, r, e] -= 1
    s.squares += 2 * state.occupied[b, r] + 1
    state.occupied[b, r] += 1
    state.free[b, j] -= 1
    for a in range(width):
        other = jobs.sites[b, k, a]
        if other >= 0:
            state.runnable[b, other] -= 1
            write_runnable(state, observation, b, other)
    write_counts(config, jobs, state, observation, b, r, k, j)
    heap.push(state.heap_time, state.heap_task, b, s.running, s.clock + jobs.duration[b, task], task)
    s.running += 1
    s.waiting -= 1


@helper
def end_task(config: Any, jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """The running task that ends first frees its slot; its job may complete, and leaves."""
    s = state.scalars[b]
    task = heap.pop(state.heap_time, state.heap_task, b, s.running)
    s.running -= 1
    position = state.place[b, task]
    e = jobs.entries[b, position]
    k = jobs.entry_groups[b, position]
    j = state.site[b, task]
    r = state.row[b, state.owner[b, task]]
    state.free[b, j] += 1
    state.freed[b, j] = 1
    state.running[b, r, e] -= 1
    state.unfinished[b, r, k] -= 1
    state.remaining[b, r] -= 1
    s.squares -= 2 * state.occupied[b, r] - 1
    state.occupied[b, r] -= 1
    write_counts(config, jobs, state, observation, b, r, k, j)
    if config.mode == RATIO and (state.unfinished[b, r, k] == 0 or config.aggressive):
        s.completion = 1
    if state.remaining[b, r] == 0:
        s.completion = 1
        s.completed += 1
        last = s.active - 1
        for i in range(r, last):
            move_row(config, state, b, i + 1, i)
        clear_row(config, state, b, last)
        state.stale[b, last] = 1
        s.active = last


@helper
def next_by_order(jobs: Jobs, state: State, b: int, j: int) -> tuple[int, int]:
    """The first job of the order with a waiting task assigned to site j, and its lowest group's place."""
    active = state.scalars[b].active
    place = state.cursor[b, j]
    while place < active:
        r = state.order[b, place]
        if state.waits[b, r] > 0:
            for position in range(jobs.site_start[b, j], jobs.site_start[b, j + 1]):
                if state.assigned[b, r, jobs.entries[b, position]] > 0:
                    state.cursor[b, j] = place
                    return r, position
        place += 1
    state.cursor[b, j] = place
    return -1, -1


@helper
def before(share: float, held: int, other: int, best_share: float, best_held: int, best_other: int) -> Any:
    """Whether somebody is served before the best so far; equals leave the best.

    Least held / share first, then the larger share; without a share last, the fewest held first, then the
    fewest ``other``.
    """
    if share > 0.0:
        if best_share <= 0.0:
            return True
        ratio = held / share
        best_ratio = best_held / best_share
        return ratio < best_ratio or (ratio == best_ratio and share > best_share)
    return best_share <= 0.0 and (held < best_held or (held == best_held and other < best_other))


@helper
def next_by_ratio(jobs: Jobs, state: State, b: int, j: int, conserving: Any) -> tuple[int, int]:
    """The job with the least running / share that may start a task at site j, and its group's place."""
    first = jobs.site_start[b, j]
    last = jobs.site_start[b, j + 1]
    best = -1
    best_share = 0.0
    best_held = 0
    best_other = 0
    for r in range(state.scalars[b].active):
        if state.waits[b, r] == 0:
            continue
        possible = False
        share = 0.0
        held = 0
        for position in range(first, last):
            e = jobs.entries[b, position]
            held += state.running[b, r, e]
            part = state.share[b, r, e]
            if part >= 0.0:
                share += part
                possible |= state.waiting[b, r, jobs.entry_groups[b, position]] > 0
        if not possible or (share <= 0.0 and not conserving):
            continue
        other = state.occupied[b, r]
        if best < 0 or before(share, held, other, best_share, best_held, best_other):
            best = r
            best_share = share
            best_held = held
            best_other = other
    chosen = -1
    if best >= 0:
        for position in range(first, last):
            e = jobs.entries[b, position]
            share = state.share[b, best, e]
            if share >= 0.0 and state.waiting[b, best, jobs.entry_groups[b, position]] > 0:
                held = state.running[b, best, e]
                if chosen < 0 or before(share, held, 0, best_share, best_held, 0):
                    chosen = position
                    best_share = share
                    best_held = held
    return best, chosen


@helper
def place_for(config: Any, jobs: Jobs, state: State, b: int, r: int, j: int) -> int:
    """View pick: the place among the entries at which a row would use a slot of site j, or -1."""
    if state.waits[b, r] > 0:
        for position in range(jobs.site_start[b, j], jobs.site_start[b, j + 1]):
            k = jobs.entry_groups[b, position]
            if state.waiting[b, r, k] > 0 and not (config.associated and jobs.sites[b, k, 0] != j):
                return position
    return -1


@helper
def next_start(config: Any, jobs: Jobs, state: State, b: int, conserving: Any) -> tuple[int, int, int]:
    """What starts next at this instant: row, place among the entries, site; sites ascending; -1: nothing.

    In view pick a slot that a visible job can use asks for a decision: ``open_site``. Slots that only hidden
    jobs can use go to the first of them.
    """
    s = state.scalars[b]
    sites = state.free.shape[1]
    for j in range(sites):
        if state.freed[b, j] == 0:
            continue
        if state.free[b, j] > 0 and state.runnable[b, j] > 0:
            row = -1
            position = -1
            if config.mode == ORDER:
                row, position = next_by_order(jobs, state, b, j)
            elif config.mode == RATIO:
                row, position = next_by_ratio(jobs, state, b, j, conserving)
            else:
                for r in range(s.active):
                    position = place_for(config, jobs, state, b, r, j)
                    if position >= 0:
                        row = r
                        break
                if 0 <= row < config.window:
                    s.open_site = j
                    return -1, -1, -1
            if row >= 0:
                return row, position, j
        state.freed[b, j] = 0
    s.open_site = sites
    return -1, -1, -1


@helper
def run(
    config: Any, jobs: Jobs, state: State, observation: Observation, b: int, row: int, position: int, j: int
) -> float:
    """Start a task if ``row`` is not -1, dispatch, run on to the next decision; return the cost meanwhile."""
    s = state.scalars[b]
    cost = 0.0
    conserving = config.work_conserving != 0
    while True:
        while True:
            if row < 0:
                row, position, j = next_start(config, jobs, state, b, conserving)
                if row < 0:
                    break
            start_task(config, jobs, state, observation, b, row, position, j)
            row = -1
        if config.mode == SLOT and s.open_site < state.free.shape[1]:
            return cost
        instant = math.inf
        if s.arrived < s.jobs:
            instant = jobs.arrival[b, s.arrived]
        if s.running > 0:
            instant = min(instant, state.heap_time[b, 0])
        elif instant == math.inf:  # slots kept for shares of nothing would stay empty for ever
            conserving = True
            for site in range(state.free.shape[1]):
                state.freed[b, site] = 1
            continue
        elapsed = instant - s.clock
        if s.active > 0 and elapsed > 0.0:
            cost += elapsed * s.active * s.response_scale
            if s.fairness_scale > 0.0:
                spread = float(s.active * s.squares - s.running * s.running)
                cost += elapsed * (math.sqrt(spread) / s.active) * s.fairness_scale
        s.clock = instant
        while s.running > 0 and state.heap_time[b, 0] == instant:
            end_task(config, jobs, state, observation, b)
        if s.completed == s.jobs:
            s.finished = 1
            return cost
        while s.arrived < s.jobs and jobs.arrival[b, s.arrived] == instant:
            submit(jobs, state, observation, b)
        if config.mode != SLOT and s.waiting > 0 and (s.arrival or s.completion):
            return cost


@helper
def observe_rows(config: Any, state: State, observation: Observation, b: int, shown: int) -> None:
    """Copy the visible rows in exact units."""
    before = state.scalars[b].shown
    for r in range(max(shown, before)):  # rows behind the active ones are zero
        observation.arrival[b, r] = state.arrival[b, r]
        observation.remaining[b, r] = state.remaining[b, r]
        observation.new[b, r] = state.new[b, r]
        for k in range(state.waiting.shape[2]):
            observation.waiting[b, r, k] = state.waiting[b, r, k]
        for e in range(state.running.shape[2]):
            observation.running[b, r, e] = state.running[b, r, e]
        if observation.assigned.shape[1] > 0:
            for e in range(state.assigned.shape[2]):
                observation.assigned[b, r, e] = state.assigned[b, r, e]


@helper
def observe_features(
    config: Any, jobs: Jobs, state: State, observation: Observation, b: int, shown: int
) -> None:
    """Write the observation as float32 tokens, as far as it has changed."""
    s = state.scalars[b]
    sites = state.free.shape[1]
    tokens = observation.job_tokens
    moved = s.clock != s.observed
    site = s.open_site
    for r in range(shown):
        fresh = state.stale[b, r]
        if fresh:
            write_job_token(config, jobs, state, tokens, b, r)
            state.stale[b, r] = 0
        if fresh or moved:
            age = s.clock - state.arrival[b, r]
            tokens[b, r, 3] = age / (age + AGE_SCALE)
        if config.mode == SLOT and (fresh or state.changed[b, r] or site != s.marked):
            state.changed[b, r] = 0
            waiting = 0
            held = 0
            if site < sites:
                for position in range(jobs.site_start[b, site], jobs.site_start[b, site + 1]):
                    k = jobs.entry_groups[b, position]
                    held += state.running[b, r, jobs.entries[b, position]]
                    if not (config.associated and jobs.sites[b, k, 0] != site):
                        waiting += state.waiting[b, r, k]
            tokens[b, r, 5] = scaled(waiting)
            tokens[b, r, 6] = scaled(held)
    for r in range(shown, s.shown):
        state.stale[b, r] = 1
        for f in range(tokens.shape[2]):
            tokens[b, r, f] = 0.0
    whole = observation.site_tokens
    if 0 <= s.marked < sites:
        whole[b, s.marked, 4] = 0.0
    if config.mode == ORDER:
        for j in range(sites):
            assigned = 0
            for r in range(s.active):
                if state.waits[b, r] > 0:
                    for position in range(jobs.site_start[b, j], jobs.site_start[b, j + 1]):
                        assigned += state.assigned[b, r, jobs.entries[b, position]]
            whole[b, j, 3] = scaled(assigned)
    if site < sites:
        whole[b, site, 4] = 1.0
    s.marked = site
    tokens_all = observation.global_tokens
    tokens_all[b, 0] = s.arrival
    tokens_all[b, 1] = s.completion
    tokens_all[b, 2] = site < sites
    tokens_all[b, 3] = scaled(s.active)
    tokens_all[b, 4] = scaled(s.active - shown)
    tokens_all[b, 5] = scaled(s.waiting)
    tokens_all[b, 6] = s.clock / (s.clock + CLOCK_SCALE)


@helper
def observe(
    config: Any, jobs: Jobs, state: State, observation: Observation, exchange: Exchange, b: int
) -> None:
    """Write the whole observation of environment b."""
    s = state.scalars[b]
    sites = state.free.shape[1]
    shown = min(s.active, config.window)
    if config.mode == SLOT and config.mask:
        for r in range(shown):
            able = s.open_site < sites and place_for(config, jobs, state, b, r, s.open_site) >= 0
            observation.action_mask[b, r] = able
        for r in range(shown, s.shown):
            observation.action_mask[b, r] = 0
        if s.open_site == sites:
            observation.action_mask[b, 0] = 1  # at the end, where nothing can be done, anything may be named
            for r in range(1, shown):
                observation.action_mask[b, r] = 0
    if config.features:
        observe_features(config, jobs, state, observation, b, shown)
    else:
        if not config.lent:
            observe_rows(config, state, observation, b, shown)
        for r in range(shown):
            observation.age[b, r] = s.clock - state.arrival[b, r]
        for r in range(shown, s.shown):
            observation.age[b, r] = 0.0
        observation.clock[b, 0] = s.clock
        observation.event[b, 0] = s.arrival
        observation.event[b, 1] = s.completion
        observation.event[b, 2] = s.open_site < sites
        observation.active[b, 0] = s.active
        observation.backlog[b, 0] = s.active - shown
        observation.open_site[b] = s.open_site
    for r in range(s.shown, shown):
        observation.job_mask[b, r] = 1
    for r in range(shown, s.shown):
        observation.job_mask[b, r] = 0
    s.shown = shown
    s.observed = s.clock
    exchange.rows[b] = shown


@helper
def begin(config: Any, jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """Start an episode on the loaded workload: the first jobs arrive, and a decision is due."""
    s = state.scalars[b]
    sites = state.free.shape[1]
    for r in range(s.active):  # left over when the last episode was cut off
        clear_row(config, state, b, r)
        state.stale[b, r] = 1
    for p in range(jobs.part_start[b, s.jobs]):
        state.started[b, p] = 0
    for t in range(jobs.task_start[b, s.jobs]):
        state.start[b, t] = math.nan
    for j in range(sites):
        state.free[b, j] = jobs.slots[b, j]
        state.runnable[b, j] = 0
        state.freed[b, j] = 1
        state.cursor[b, j] = 0
        if observation.site_tokens.shape[1] > 0:
            observation.site_tokens[b, j, 0] = scaled(jobs.slots[b, j])
            observation.site_tokens[b, j, 1] = 1.0
            observation.site_tokens[b, j, 2] = 0.0
            observation.site_tokens[b, j, 4] = 0.0
    if observation.group_mask.shape[1] > 0:
        for k in range(jobs.sites.shape[1]):
            observation.group_mask[b, k] = k < s.groups
    last = s.jobs - 1
    span = jobs.arrival[b, last] - jobs.arrival[b, 0]
    unit = 1.0
    if config.normalize:
        tasks = jobs.task_start[b, s.jobs]
        unit = 0.0
        for t in range(tasks):
            unit += jobs.duration[b, t]
        unit /= tasks
    s.response_scale = config.response_weight / (s.jobs * unit)
    s.fairness_scale = config.fairness_weight / ((span if span > 0.0 else 1.0) * unit)
    s.arrived = 0
    s.active = 0
    s.completed = 0
    s.running = 0
    s.squares = 0
    s.waiting = 0
    s.arrival = 0
    s.completion = 0
    s.open_site = sites
    s.finished = 0
    s.marked = -1
    s.observed = math.nan
    s.recomputations = 0
    s.violations = 0
    s.repaired = 0
    s.clock = jobs.arrival[b, 0]
    while s.arrived < s.jobs and jobs.arrival[b, s.arrived] == s.clock:
        submit(jobs, state, observation, b)


@helper
def order_rows(scores: npt.NDArray[np.float64], state: State, b: int, visible: int) -> None:
    """Order the rows by falling score ``scores[r, 0]``, equals and hidden rows by arrival; a merge sort."""
    active = state.scalars[b].active
    order = state.order
    scratch = state.scratch
    for r in range(active):
        order[b, r] = r
    size = 1
    while size < visible:
        begin = 0
        while begin + size < visible:
            middle = begin + size
            end = min(middle + size, visible)
            if scores[order[b, middle - 1], 0] < scores[order[b, middle], 0]:
                left = begin
                right = middle
                for place in range(begin, end):
                    if left < middle and (
                        right >= end or scores[order[b, left], 0] >= scores[order[b, right], 0]
                    ):
                        scratch[b, place] = order[b, left]
                        left += 1
                    else:
                        scratch[b, place] = order[b, right]
                        right += 1
                for place in range(begin, end):
                    order[b, place] = scratch[b, place]
            begin = end
        size *= 2


@helper
def stay_associated(jobs: Jobs, state: State, b: int, r: int) -> None:
    """Assign a row's waiting tasks to their associated sites."""
    width = jobs.sites.shape[2]
    for k in range(state.waiting.shape[2]):
        for a in range(width):
            state.assigned[b, r, k * width + a] = 0
        state.assigned[b, r, k * width] = state.waiting[b, r, k]


@helper
def place_hidden(jobs: Jobs, state: State, b: int, visible: int) -> None:
    """Assign the new jobs beyond the window to their associated sites."""
    for r in range(visible, state.scalars[b].active):
        if state.new[b, r]:
            stay_associated(jobs, state, b, r)


@helper
def site_lists(jobs: Jobs, b: int) -> SiteLists:
    """The site lists of an environment."""
    return SiteLists(jobs.sites[b], jobs.ascending[b], jobs.site_start[b], jobs.entries[b])


@helper
def count_violations(jobs: Jobs, state: State, room: PlacementScratch, scratch: FairScratch, b: int) -> None:
    """Add the jobs of this decision whose sharing incentive is violated."""
    s = state.scalars[b]
    s.violations += sharing_violations(
        s.active,
        state.unfinished[b],
        state.share[b],
        jobs.slots[b],
        site_lists(jobs, b),
        room,
        scratch,
    )


@helper
def finite_rows(exchange: Exchange, b: int) -> Any:
    """Whether all numbers of an action that count are finite."""
    for r in range(exchange.rows[b]):
        for c in range(exchange.actions.shape[2]):
            if not math.isfinite(exchange.actions[b, r, c]):
                return False
    return True


@helper
def counts_fit(jobs: Jobs, state: State, exchange: Exchange, b: int) -> Any:
    """Whether the counts are whole and name each waiting task once, at one of its sites."""
    width = jobs.sites.shape[2]
    for r in range(exchange.rows[b]):
        for k in range(state.waiting.shape[2]):
            total = 0.0
            for a in range(width):
                count = exchange.actions[b, r, 1 + k * width + a]
                if count < 0.0 or count != math.floor(count):
                    return False
                if count > 0.0 and jobs.sites[b, k, a] < 0:
                    return False
                total += count
            if total != state.waiting[b, r, k]:
                return False
    return True


@pure_kernel
def decode_assignment(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View assignment: a score and counts [K * A] per row become the order and the assigned tasks.

    Counts are rounded down; surplus is cut from the last site, what is missing goes to the associated one.
    Hidden jobs come last, keep what they are assigned, and begin at their associated sites.

    Every decode kernel takes what :func:`step` takes, and ``tools``, the packed work space of its mode (of
    no use in view pick). It sets ``exchange.repaired`` and returns 0; or -(b + 1) for the first environment
    whose action is malformed, or with strict actions infeasible. Then nothing has changed.
    """
    constants, jobs, state, observation, exchange = unpack(table)
    width = jobs.sites.shape[2]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            if not finite_rows(exchange, b):
                return -(b + 1)
            if constants.config[0].strict and not counts_fit(jobs, state, exchange, b):
                return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        exchange.repaired[b] = not counts_fit(jobs, state, exchange, b)
        visible = exchange.rows[b]
        order_rows(exchange.actions[b], state, b, visible)
        place_hidden(jobs, state, b, visible)
        for r in range(visible):
            state.stale[b, r] = 1
            for k in range(state.waiting.shape[2]):
                left = state.waiting[b, r, k]
                for a in range(width):
                    e = k * width + a
                    count = 0
                    if left > 0 and jobs.sites[b, k, a] >= 0:
                        count = int(min(max(exchange.actions[b, r, 1 + e], 0.0), float(left)))
                    state.assigned[b, r, e] = count
                    left -= count
                state.assigned[b, r, k * width] += left
    return 0


@helper
def asked_share(exchange: Exchange, b: int, r: int, e: int) -> float:
    """What an action gives an entry: at least 0, and no more than can be added up and scaled."""
    return min(max(exchange.actions[b, r, e], 0.0), LARGEST_SHARE)


@helper
def share_of_group(jobs: Jobs, exchange: Exchange, b: int, r: int, k: int) -> float:
    """What an action gives a row's group in all."""
    width = jobs.sites.shape[2]
    total = 0.0
    for a in range(width):
        if jobs.sites[b, k, a] >= 0:
            total += asked_share(exchange, b, r, k * width + a)
    return total


@helper
def shares_fit(jobs: Jobs, state: State, exchange: Exchange, b: int) -> Any:
    """Whether shares are at most the demand and the slots, and leave each waiting task a site."""
    width = jobs.sites.shape[2]
    for r in range(exchange.rows[b]):
        for k in range(state.waiting.shape[2]):
            limit = state.unfinished[b, r, k]
            if share_of_group(jobs, exchange, b, r, k) > limit + SHARE_TOLERANCE * max(limit, 1):
                return False
            open_entry = state.waiting[b, r, k] == 0
            for a in range(width):
                share = exchange.actions[b, r, k * width + a]
                if jobs.sites[b, k, a] >= 0:
                    open_entry |= share >= 0.0
                elif share > 0.0:
                    return False
            if not open_entry:
                return False
    for j in range(state.free.shape[1]):
        total = 0.0
        for r in range(exchange.rows[b]):
            for position in range(jobs.site_start[b, j], jobs.site_start[b, j + 1]):
                total += asked_share(exchange, b, r, jobs.entries[b, position])
        if total > jobs.slots[b, j] * (1.0 + SHARE_TOLERANCE):
            return False
    return True


@helper
def repair_shares(jobs: Jobs, state: State, b: int, rows: int) -> None:
    """Scale the shares of the first rows down to the demand of each group, then to the slots of each site."""
    width = jobs.sites.shape[2]
    for r in range(rows):
        for k in range(state.waiting.shape[2]):
            limit = state.unfinished[b, r, k]
            total = 0.0
            reachable = False
            for a in range(width):
                share = state.share[b, r, k * width + a]
                if jobs.sites[b, k, a] >= 0 and share >= 0.0:
                    total += share
                    reachable = True
            if not reachable:
                state.share[b, r, k * width] = 0.0
            if total > limit:
                for a in range(width):
                    share = state.share[b, r, k * width + a]
                    if share > 0.0:
                        state.share[b, r, k * width + a] = share * limit / total
    for j in range(state.free.shape[1]):
        total = 0.0
        for r in range(rows):
            for position in range(jobs.site_start[b, j], jobs.site_start[b, j + 1]):
                total += max(state.share[b, r, jobs.entries[b, position]], 0.0)
        if total > jobs.slots[b, j]:
            for r in range(rows):
                for position in range(jobs.site_start[b, j], jobs.site_start[b, j + 1]):
                    e = jobs.entries[b, position]
                    if state.share[b, r, e] > 0.0:
                        state.share[b, r, e] = state.share[b, r, e] * jobs.slots[b, j] / total


@pure_kernel
def decode_shares(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View shares: slots [K * A] per row become the shares; see :func:`decode_assignment`.

    Shares are scaled down to the demand of each group, then to the slots of each site. A group with waiting
    tasks and no open site has its associated one opened. Hidden jobs have shares of 0 everywhere.
    """
    constants, jobs, state, observation, exchange = unpack(table)
    room, scratch, net = unpack_ratio_tools(tools)
    width = jobs.sites.shape[2]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            if not finite_rows(exchange, b):
                return -(b + 1)
            if constants.config[0].strict and not shares_fit(jobs, state, exchange, b):
                return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        exchange.repaired[b] = not shares_fit(jobs, state, exchange, b)
        visible = exchange.rows[b]
        for r in range(state.scalars[b].active):
            for e in range(state.share.shape[2]):
                share = 0.0
                if r < visible:
                    share = min(exchange.actions[b, r, e], LARGEST_SHARE)
                k = e // width
                padded = jobs.sites[b, k, e - k * width] < 0
                state.share[b, r, e] = -1.0 if share < 0.0 or padded else share
        if exchange.repaired[b]:
            repair_shares(jobs, state, b, visible)
        count_violations(jobs, state, room, scratch, b)
    return 0


@pure_kernel
def decode_priority(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View priority: a score per row becomes the order; the tasks are placed by it."""
    constants, jobs, state, observation, exchange = unpack(table)
    room, scratch = unpack_order_tools(tools)
    config = constants.config[0]
    for b in range(command.shape[0]):
        if names_action(command[b]) and not finite_rows(exchange, b):
            return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        exchange.repaired[b] = False
        visible = exchange.rows[b]
        order_rows(exchange.actions[b], state, b, visible)
        place_hidden(jobs, state, b, visible)
        place_in_order(
            config.greedy != 0,
            False,
            visible,
            state.order[b],
            state.waiting[b],
            jobs.slots[b],
            site_lists(jobs, b),
            room,
            scratch,
            state.assigned[b],
        )
        for r in range(visible):
            state.stale[b, r] = 1
    return 0


@pure_kernel
def decode_rule(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View rule: the order and the placement of the named algorithm, for all active jobs."""
    constants, jobs, state, observation, exchange = unpack(table)
    room, scratch = unpack_order_tools(tools)
    config = constants.config[0]
    for b in range(command.shape[0]):
        if names_action(command[b]) and not 0 <= exchange.choices[b, 0] < RULES:
            return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        exchange.repaired[b] = False
        active = state.scalars[b].active
        assign(
            exchange.choices[b, 0],
            False,
            False,
            config.greedy != 0,
            False,
            active,
            state.waiting[b],
            state.remaining[b],
            state.assigned[b],
            state.new[b],
            jobs.slots[b],
            site_lists(jobs, b),
            room,
            scratch,
            state.order[b],
            state.assigned[b],
        )
        for r in range(active):
            state.stale[b, r] = 1
    return 0


@pure_kernel
def decode_weights(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View weights: a weight per row becomes the weighted max-min fair shares.

    Negative weights are repaired to 0, that is to 1e-9 of the largest. Hidden jobs have weight 1.
    """
    constants, jobs, state, observation, exchange = unpack(table)
    room, scratch, net = unpack_ratio_tools(tools)
    config = constants.config[0]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            if not finite_rows(exchange, b):
                return -(b + 1)
            if config.strict:
                for r in range(exchange.rows[b]):
                    if exchange.actions[b, r, 0] < 0.0:
                        return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        exchange.repaired[b] = False
        visible = exchange.rows[b]
        active = state.scalars[b].active
        weights = scratch.rate
        for r in range(active):
            weights[r] = exchange.actions[b, r, 0] if r < visible else 1.0
            if weights[r] < 0.0:
                weights[r] = 0.0
                exchange.repaired[b] = True
        weighted_fair(
            config.associated != 0,
            active,
            weights,
            state.unfinished[b],
            jobs.slots[b],
            site_lists(jobs, b),
            net,
            scratch,
            state.share[b],
        )
        count_violations(jobs, state, room, scratch, b)
    return 0


@pure_kernel
def decode_fair_rule(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View fair-rule: the shares of the named algorithm, for all active jobs."""
    constants, jobs, state, observation, exchange = unpack(table)
    room, scratch, net = unpack_ratio_tools(tools)
    for b in range(command.shape[0]):
        if names_action(command[b]) and not 0 <= exchange.choices[b, 0] < FAIR:
            return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        exchange.repaired[b] = False
        fair(
            exchange.choices[b, 0],
            state.scalars[b].active,
            state.unfinished[b],
            jobs.slots[b],
            site_lists(jobs, b),
            net,
            room,
            scratch,
            state.share[b],
        )
        count_violations(jobs, state, room, scratch, b)
    return 0


@pure_kernel
def decode_pick(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View pick: the row that takes the open slot; one that cannot becomes the first that can."""
    constants, jobs, state, observation, exchange = unpack(table)
    config = constants.config[0]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            r = exchange.choices[b, 0]
            if r < 0 or r >= config.window:
                return -(b + 1)
            site = state.scalars[b].open_site
            if config.strict and (r >= exchange.rows[b] or place_for(config, jobs, state, b, r, site) < 0):
                return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] == ACT:
            r = exchange.choices[b, 0]
            site = state.scalars[b].open_site
            fits = r < exchange.rows[b] and place_for(config, jobs, state, b, r, site) >= 0
            exchange.repaired[b] = not fits
            if not fits:
                r = 0
                while place_for(config, jobs, state, b, r, site) < 0:
                    r += 1
                exchange.choices[b, 0] = r
    return 0


@pure_kernel
def step(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """Advance the environments, each by its ``command`` [B]: ACT after a decoded decision, BEGIN an episode.

    ``table`` packs Constants, Jobs, State, Observation and Exchange. Returns how many episodes ended.
    """
    constants, jobs, state, observation, exchange = unpack(table)
    config = constants.config[0]
    ended = 0
    for b in range(command.shape[0]):
        if command[b] == SKIP:
            continue
        s = state.scalars[b]
        exchange.reward[b] = 0.0
        exchange.terminated[b] = False
        exchange.truncated[b] = False
        row = -1
        position = -1
        site = -1
        if command[b] == BEGIN:
            exchange.repaired[b] = False
            begin(config, jobs, state, observation, b)
        else:
            s.recomputations += 1
            s.repaired += exchange.repaired[b]
            if s.arrival:
                for r in range(s.active):
                    state.stale[b, r] |= state.new[b, r]
                    state.new[b, r] = 0
            s.arrival = 0
            s.completion = 0
            if config.mode == SLOT:
                row = exchange.choices[b, 0]
                site = s.open_site
                position = place_for(config, jobs, state, b, row, site)
            else:
                for j in range(state.free.shape[1]):
                    state.freed[b, j] = 1
                    state.cursor[b, j] = 0
        if command[b] == ACT or config.mode == SLOT:  # view pick: the first decision must be found
            cost = run(config, jobs, state, observation, b, row, position, site)
            if cost != 0.0:
                exchange.reward[b] = -cost
            if s.finished:
                exchange.terminated[b] = True
                ended += 1
        observe(config, jobs, state, observation, exchange, b)
    return ended
