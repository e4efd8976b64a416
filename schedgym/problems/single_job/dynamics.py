"""State and compiled dynamics of SingleJob, batch-first: axis 0 is the environment.

A step has two halves. A ``decode`` kernel, one per view, reads the actions: it checks and repairs them, and
in view plan makes the whole plan. :func:`step` carries the decision out, and writes the observation. They
are apart so that an environment compiles only what its view needs.

Rows are tasks, in index order; rows behind the last task are zero. Environments that run drawn jobs share the
first row of the lists of groups; one with a given workload has a row of its own.
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
    I4_2,
    I8_1,
    I8_2,
    helper,
    pure_kernel,
    record_dtype,
    unpacker,
)
from schedgym.core.simulator import ACT, BEGIN, SKIP, names_action
from schedgym.problems.single_job.workload import LONGEST
from schedgym.solvers.placement import (
    ENERGY_SLACK,
    Membership,
    PlanScratch,
    add_load,
    affords,
    evaluate,
    largest_capacity,
    most_efficient,
    reduce_energy,
    search_mask,
    server_time,
)

__all__ = [
    "CONFIG",
    "GLOBAL_FEATURES",
    "JOB_FEATURES",
    "PAIR_FEATURES",
    "PLACE_FEATURES",
    "SCALARS",
    "SERVER_FEATURES",
    "Constants",
    "Exchange",
    "Jobs",
    "Observation",
    "State",
    "decode_place",
    "decode_plan",
    "decode_search",
    "settle",
    "step",
]

PLAN, PLACE, SEARCH = 0, 1, 2

#: features of a task token: load, highest and mean efficiency, share of servers nearly as efficient, placed,
#: next (view search: it takes as long as the job), efficiency and time at its server
JOB_FEATURES = 8
#: features of a server token: capacity, time, time by the unplaced tasks that are most efficient there
SERVER_FEATURES = 3
#: in view place further ones, of the next task: efficiency, time after, share of the spare energy, legal
PLACE_FEATURES = 4
#: features of a task on a server, views plan and search: efficiency (constant), time, change of energy
PAIR_FEATURES = 3
#: global features: progress, completion time, energy, spare energy, energy still to come, tasks, next load
GLOBAL_FEATURES = 7
COUNT_SCALE = 40.0  # n / (n + 40) scales the number of tasks
NEAR = 0.9  # of the highest efficiency: nearly as efficient
#: a task whose time is within this part of the job's is one of the longest
LONGEST_PART = 1e-9
#: a plan's vCPU may exceed a limit by this part, by rounding
LIMIT_SLACK = 1e-9

#: per-environment scalars
SCALARS = record_dtype(
    ("jct", np.float64),  # of the plan so far
    ("charged", np.float64),  # of it in the rewards so far
    ("pooled", np.float64),  # least energy over the vCPU that the limits allow in all [s]
    ("mean_load", np.float64),
    ("steps", np.int64),
    ("legal", np.int64),  # view search: moves that are legal
    ("finished", np.int64),
    ("shown", np.int64),  # rows of the last episode
    ("repaired", np.int64),
)

#: constants of a simulator
CONFIG = record_dtype(
    ("mode", np.int64),
    ("terminal", np.int64),  # reward
    ("max_moves", np.int64),
    ("features", np.int64),
    ("mask", np.int64),
    ("strict", np.int64),
    ("normalize", np.int64),
)


class Constants(NamedTuple):
    """What stays the same for the life of a simulator."""

    config: Annotated[npt.NDArray[Any], CONFIG, 1]  # [1]


class Jobs(NamedTuple):
    """The workload. N tasks, M servers, R groups, E pairs of a group and its server."""

    tasks: I8_1  # [B]
    load: F8_2  # [B, N] vCPU s
    efficiency: F8_3  # [B, N, M]
    cpu: F8_2  # [B, M] vCPU
    limits: F8_2  # [B, R] B_k [vCPU]
    energy_cap: F8_1  # [B] vCPU s
    least_energy: F8_1  # [B]
    lists: I8_1  # [B] row of the following that holds the groups
    server_start: I8_2  # [1 + B, M + 1] see Membership
    server_group: I8_2  # [1 + B, E]
    group_start: I8_2  # [1 + B, R + 1]
    group_server: I8_2  # [1 + B, E]


class State(NamedTuple):
    """Everything that changes in an episode; arrays that a view does not need have length 0."""

    scalars: Annotated[npt.NDArray[Any], SCALARS, 1]  # [B]
    next_task: I8_1  # [B] N: none
    placement: I4_2  # [B, N] server, -1: none
    energy: F8_2  # [B, 1] of the tasks placed
    vcpu: F8_2  # [B, N] of a whole plan
    time: F8_2  # [B, N]
    draft: I4_2  # [B, N] view plan: what the action comes to, until all are accepted
    draft_vcpu: F8_2  # [B, N]
    draft_fits: I8_1  # [B]
    best: I4_2  # [B, N] most efficient server, ties the lowest
    least: F8_2  # [B, N] equivalent load there
    rest: F8_2  # [B, N + 1] their sum from a task on
    inside: I8_2  # [B, R] tasks in a group
    group_load: F8_2  # [B, R] their equivalent load
    inverse: F8_2  # [B, R] 1 / B_k, features
    lifted: F8_2  # [B, R] work space, features
    pull: F8_2  # [B, M] least energy of the unplaced tasks that are most efficient there, features
    narrow: F8_2  # [B, M] least limit of a server's groups, features


class Observation(NamedTuple):
    """Buffers that the kernel writes; those that are not shown have length 0."""

    task_mask: I1_2  # [B, N]
    action_mask: I1_2  # [B, actions]; view search goes by it
    job_tokens: F4_3  # [B, N, JOB_FEATURES]
    server_tokens: F4_3  # [B, M, SERVER_FEATURES (+ PLACE_FEATURES)]
    pair_tokens: F4_3  # [B, N, M * PAIR_FEATURES]
    global_tokens: F4_2  # [B, GLOBAL_FEATURES]


class Exchange(NamedTuple):
    """What goes into a step and what it did. Of the two kinds of actions one has length 0."""

    choices: I8_2  # [B, 1] discrete actions
    actions: F8_3  # [B, N, 2] server and vCPU of a task
    rows: I8_1  # [B] rows of an action that count
    reward: F8_1  # [B]
    terminated: B1_1  # [B]
    truncated: B1_1  # [B]
    repaired: B1_1  # [B] whether this step's action was infeasible


unpack = unpacker(Constants, Jobs, State, Observation, Exchange)
unpack_tools = unpacker(PlanScratch)


@helper
def groups_of(jobs: Jobs, b: int) -> Membership:
    """The lists of groups of an environment."""
    row = jobs.lists[b]
    return Membership(
        jobs.server_start[row], jobs.server_group[row], jobs.group_start[row], jobs.group_server[row]
    )


@helper
def settle_plan(jobs: Jobs, state: State, scratch: PlanScratch, b: int) -> tuple[float, float]:
    """Size the tasks placed by Eq. 16: their times and vCPU; completion time and energy."""
    groups = groups_of(jobs, b)
    n = jobs.tasks[b]
    jct, energy = evaluate(
        0, n, jobs.load[b], jobs.efficiency[b], groups, jobs.limits[b], state.placement[b], scratch
    )
    for i in range(n):
        j = state.placement[b, i]
        if j >= 0:
            time = server_time(j, groups, scratch)
            state.time[b, i] = time
            state.vcpu[b, i] = scratch.leq[i] / time
    return jct, energy


@helper
def affordable(jobs: Jobs, state: State, b: int, i: int, leq: float) -> Any:
    """View place: whether the cap can still be kept when the next task has this equivalent load."""
    whole = state.energy[b, 0] + leq + state.rest[b, i + 1]
    return affords(whole, jobs.energy_cap[b]) or leq <= state.least[b, i]


@helper
def scaled(value: float, unit: float) -> float:
    """A number >= 0 between 0 and 1; 0.5 where it is the unit."""
    return value / (value + unit)


@helper
def part(value: float, whole: float) -> float:
    """A part of the whole, between -1 and 1."""
    if value == 0.0:
        return 0.0
    if abs(value) >= whole:
        return 1.0 if value > 0.0 else -1.0
    return value / whole


@helper
def begin_features(jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """Write what stays the same in an episode, and set up what the rest is made of."""
    s = state.scalars[b]
    n = jobs.tasks[b]
    servers = jobs.cpu.shape[1]
    tokens = observation.job_tokens
    row = jobs.lists[b]
    for k in range(jobs.limits.shape[1]):
        state.inverse[b, k] = 1.0 / jobs.limits[b, k] if jobs.limits[b, k] > 0.0 else 0.0
    widest = 0.0
    for j in range(servers):
        least = math.inf
        for e in range(jobs.server_start[row, j], jobs.server_start[row, j + 1]):
            least = min(least, jobs.limits[b, jobs.server_group[row, e]])
        state.narrow[b, j] = least
        state.pull[b, j] = 0.0
        widest = max(widest, least)
    whole = observation.server_tokens
    for j in range(servers):
        whole[b, j, 0] = state.narrow[b, j] / widest
    for i in range(n):
        highest = jobs.efficiency[b, i, state.best[b, i]]
        near = 0
        first = 0.0  # two sums: one would wait for itself
        second = 0.0
        for j in range(0, servers - 1, 2):
            first += jobs.efficiency[b, i, j]
            second += jobs.efficiency[b, i, j + 1]
        if servers % 2:
            first += jobs.efficiency[b, i, servers - 1]
        for j in range(servers):
            near += jobs.efficiency[b, i, j] >= NEAR * highest
        tokens[b, i, 0] = scaled(jobs.load[b, i], s.mean_load)
        tokens[b, i, 1] = highest
        tokens[b, i, 2] = (first + second) / servers
        tokens[b, i, 3] = near / servers
        for f in range(4, tokens.shape[2]):
            tokens[b, i, f] = 0.0
        state.pull[b, state.best[b, i]] += state.least[b, i]
        if observation.pair_tokens.shape[1] > 0:
            for j in range(servers):
                observation.pair_tokens[b, i, j * PAIR_FEATURES] = jobs.efficiency[b, i, j]
    for i in range(n, s.shown):
        for f in range(tokens.shape[2]):
            tokens[b, i, f] = 0.0
        if observation.pair_tokens.shape[1] > 0:
            for f in range(observation.pair_tokens.shape[2]):
                observation.pair_tokens[b, i, f] = 0.0


@helper
def begin(
    config: Any,
    jobs: Jobs,
    state: State,
    observation: Observation,
    exchange: Exchange,
    scratch: PlanScratch,
    b: int,
) -> None:
    """Start an episode on the loaded workload."""
    s = state.scalars[b]
    n = jobs.tasks[b]
    room = jobs.load.shape[1]
    for i in range(room):
        state.placement[b, i] = -1
    most_efficient(0, n, jobs.load[b], jobs.efficiency[b], state.best[b])
    mean = 0.0
    for i in range(n):
        state.least[b, i] = jobs.load[b, i] / jobs.efficiency[b, i, state.best[b, i]]
        mean += jobs.load[b, i] / n
    s.mean_load = mean
    state.rest[b, n] = 0.0
    for i in range(n - 1, -1, -1):
        state.rest[b, i] = state.rest[b, i + 1] + state.least[b, i]
    for k in range(jobs.limits.shape[1]):
        state.inside[b, k] = 0
        state.group_load[b, k] = 0.0
    s.pooled = jobs.least_energy[b] / largest_capacity(groups_of(jobs, b), jobs.limits[b], scratch)
    s.jct = 0.0
    s.charged = 0.0
    s.steps = 0
    s.legal = 0
    s.finished = 0
    s.repaired = 0
    state.energy[b, 0] = 0.0
    state.next_task[b] = 0 if config.mode == PLACE else room
    if config.features:
        begin_features(jobs, state, observation, b)
    for i in range(n):
        observation.task_mask[b, i] = 1
    for i in range(n, s.shown):
        observation.task_mask[b, i] = 0
    s.shown = n
    exchange.rows[b] = n


@helper
def keep_loads(jobs: Jobs, state: State, scratch: PlanScratch, b: int) -> None:
    """Keep the groups' loads of what was evaluated last, a whole plan."""
    for k in range(jobs.limits.shape[1]):
        state.inside[b, k] = scratch.count[k]
        state.group_load[b, k] = scratch.group_load[k]
    for j in range(state.pull.shape[1]):
        state.pull[b, j] = 0.0


@helper
def mark_moves(jobs: Jobs, state: State, observation: Observation, scratch: PlanScratch, b: int) -> None:
    """View search: mark the legal moves of what was evaluated last, and to stop."""
    s = state.scalars[b]
    n = jobs.tasks[b]
    mask = observation.action_mask[b]
    s.legal = search_mask(
        0,
        n,
        jobs.load[b],
        jobs.efficiency[b],
        groups_of(jobs, b),
        jobs.limits[b],
        state.energy[b, 0],
        jobs.energy_cap[b],
        state.placement[b],
        scratch,
        mask,
    )
    last = mask.shape[0] - 1
    for x in range(n * jobs.cpu.shape[1], last):
        mask[x] = 0
    mask[last] = 1


@helper
def observe_servers(config: Any, jobs: Jobs, state: State, tokens: Any, b: int) -> None:
    """Write the server tokens; in view place with the next task on each."""
    s = state.scalars[b]
    row = jobs.lists[b]
    unit = s.jct if config.mode == SEARCH else s.pooled
    i = state.next_task[b]
    place = config.mode == PLACE
    open_task = place and i < jobs.load.shape[1]
    amount = 0.0
    spare = 0.0
    if open_task:
        amount = jobs.load[b, i]
        spare = jobs.energy_cap[b] - state.energy[b, 0] - state.rest[b, i]
    for j in range(jobs.cpu.shape[1]):
        leq = 0.0
        if open_task:
            leq = amount / jobs.efficiency[b, i, j]
        before = 0.0
        after = 0.0
        for e in range(jobs.server_start[row, j], jobs.server_start[row, j + 1]):
            k = jobs.server_group[row, e]
            inverse = state.inverse[b, k]
            time = state.group_load[b, k] * inverse
            before = max(before, time)
            after = max(after, time + leq * inverse)
        tokens[b, j, 1] = scaled(before, unit)
        tokens[b, j, 2] = scaled(state.pull[b, j], state.narrow[b, j] * unit)
        if open_task:
            tokens[b, j, 3] = jobs.efficiency[b, i, j]
            tokens[b, j, 4] = scaled(after, unit)
            tokens[b, j, 5] = part(max(leq - state.least[b, i], 0.0), spare)
            tokens[b, j, 6] = affordable(jobs, state, b, i, leq)
        elif place:
            for f in range(3, tokens.shape[2]):
                tokens[b, j, f] = 0.0


@helper
def observe_pairs(config: Any, jobs: Jobs, state: State, tokens: Any, b: int) -> None:
    """Write what each task would be on each server; views plan and search."""
    s = state.scalars[b]
    row = jobs.lists[b]
    unit = s.jct if config.mode == SEARCH else s.pooled
    energy = state.energy[b, 0]
    lifted = state.lifted[b]  # loads without the task's
    for k in range(jobs.limits.shape[1]):
        lifted[k] = state.group_load[b, k]
    for i in range(jobs.tasks[b]):
        now = state.placement[b, i]
        own = state.least[b, i]
        spare = jobs.energy_cap[b] - jobs.least_energy[b]
        first = 0
        last = 0
        if now >= 0:
            own = jobs.load[b, i] / jobs.efficiency[b, i, now]
            spare = jobs.energy_cap[b] - energy
            first = jobs.server_start[row, now]
            last = jobs.server_start[row, now + 1]
        for e in range(first, last):
            k = jobs.server_group[row, e]
            lifted[k] = state.group_load[b, k] - own if state.inside[b, k] > 1 else 0.0
        for j in range(jobs.cpu.shape[1]):
            leq = jobs.load[b, i] / jobs.efficiency[b, i, j]
            time = 0.0
            for e in range(jobs.server_start[row, j], jobs.server_start[row, j + 1]):
                k = jobs.server_group[row, e]
                time = max(time, (lifted[k] + leq) * state.inverse[b, k])
            tokens[b, i, j * PAIR_FEATURES + 1] = scaled(time, unit)
            tokens[b, i, j * PAIR_FEATURES + 2] = part(leq - own, spare)
        for e in range(first, last):
            k = jobs.server_group[row, e]
            lifted[k] = state.group_load[b, k]


@helper
def observe_features(config: Any, jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """Write the observation as float32 tokens."""
    s = state.scalars[b]
    n = jobs.tasks[b]
    following = state.next_task[b]
    tokens = observation.job_tokens
    whole = observation.server_tokens
    observe_servers(config, jobs, state, whole, b)
    if observation.pair_tokens.shape[1] > 0:
        observe_pairs(config, jobs, state, observation.pair_tokens, b)
    longest = s.jct * (1.0 - LONGEST_PART)
    for i in range(n):
        j = state.placement[b, i]
        if j < 0:
            break
        tokens[b, i, 4] = 1.0
        tokens[b, i, 5] = config.mode == SEARCH and state.time[b, i] >= longest
        tokens[b, i, 6] = jobs.efficiency[b, i, j]
        tokens[b, i, 7] = whole[b, j, 1]
    values = observation.global_tokens
    values[b, 0] = s.steps / config.max_moves if config.mode == SEARCH else 0.0
    values[b, 6] = 0.0
    rest = 0.0
    if config.mode == PLACE:
        values[b, 0] = s.steps / n
        if following < jobs.load.shape[1]:
            rest = state.rest[b, following]
            tokens[b, following, 5] = 1.0
            values[b, 6] = tokens[b, following, 0]
    elif config.mode == PLAN and not s.finished:
        rest = jobs.least_energy[b]
    elif config.mode == PLAN:
        values[b, 0] = 1.0
    values[b, 1] = scaled(s.jct, s.pooled)
    values[b, 2] = min(state.energy[b, 0] / jobs.energy_cap[b], 1.0)
    spare = jobs.energy_cap[b] - state.energy[b, 0] - rest
    if spare <= ENERGY_SLACK * jobs.energy_cap[b]:
        spare = 0.0  # or rounding
    values[b, 3] = part(spare, jobs.energy_cap[b] - jobs.least_energy[b])
    values[b, 4] = min(rest / jobs.least_energy[b], 1.0)
    values[b, 5] = scaled(n, COUNT_SCALE)


@helper
def observe(config: Any, jobs: Jobs, state: State, observation: Observation, b: int) -> None:
    """Write the mask of view place, and the features."""
    if config.mode == PLACE and config.mask:
        i = state.next_task[b]
        if i < jobs.load.shape[1]:
            for j in range(jobs.cpu.shape[1]):
                leq = jobs.load[b, i] / jobs.efficiency[b, i, j]
                observation.action_mask[b, j] = affordable(jobs, state, b, i, leq)
        else:  # at the end, where nothing can be done, anything may be named
            for j in range(jobs.cpu.shape[1]):
                observation.action_mask[b, j] = 1
    if config.features:
        observe_features(config, jobs, state, observation, b)


@pure_kernel
def decode_plan(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View plan: server and vCPU of each task become a plan within the cap and the limits.

    Servers are rounded and clipped; what exceeds the cap is reduced by REC; vCPU that exceed a limit, or are
    not given for all tasks, are those of Eq. 16.

    Every decode kernel takes what :func:`step` takes. It sets ``exchange.repaired`` and returns 0; or
    -(b + 1) for the first environment whose action is malformed, or with strict actions infeasible. Then
    nothing has changed.
    """
    constants, jobs, state, observation, exchange = unpack(table)
    (scratch,) = unpack_tools(tools)
    strict = constants.config[0].strict != 0
    servers = jobs.cpu.shape[1]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            for i in range(jobs.tasks[b]):
                for f in range(2):
                    if not math.isfinite(exchange.actions[b, i, f]):
                        return -(b + 1)
    for b in range(command.shape[0]):
        if not names_action(command[b]):
            continue
        n = jobs.tasks[b]
        groups = groups_of(jobs, b)
        draft = state.draft[b]
        load = jobs.load[b]
        efficiency = jobs.efficiency[b]
        limits = jobs.limits[b]
        cap = jobs.energy_cap[b]
        fits = True
        energy = 0.0
        for i in range(n):
            server = exchange.actions[b, i, 0]
            nearest = math.floor(min(max(server, 0.0), servers - 1.0) + 0.5)
            fits &= nearest == server
            draft[i] = int(nearest)
            energy += load[i] / efficiency[i, draft[i]]
        if not affords(energy, cap):
            fits = False
            if not reduce_energy(0, n, load, efficiency, groups, limits, cap, False, draft, scratch):
                most_efficient(0, n, load, efficiency, draft)  # all that rounding can leave
        given = False
        for i in range(n):
            given |= exchange.actions[b, i, 1] != 0.0
        valid = given
        if given:
            total = state.group_load[b]
            for k in range(limits.shape[0]):
                total[k] = 0.0
            for i in range(n):
                vcpu = exchange.actions[b, i, 1]
                if not (vcpu > 0.0 and load[i] / efficiency[i, draft[i]] / vcpu <= LONGEST):
                    valid = False
                    break
                for e in range(groups.server_start[draft[i]], groups.server_start[draft[i] + 1]):
                    total[groups.server_group[e]] += vcpu
            for k in range(limits.shape[0]):
                if total[k] > limits[k] * (1.0 + LIMIT_SLACK):
                    valid = False
                total[k] = 0.0
            fits &= valid
        for i in range(n):
            state.draft_vcpu[b, i] = exchange.actions[b, i, 1] if valid else 0.0
        state.draft_fits[b] = fits
        if strict and not fits:
            return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] == ACT:
            exchange.repaired[b] = state.draft_fits[b] == 0
            for i in range(jobs.tasks[b]):
                state.placement[b, i] = state.draft[b, i]
    return 0


@pure_kernel
def decode_place(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View place: the server of the next task; one that the cap forbids becomes the most efficient one."""
    constants, jobs, state, observation, exchange = unpack(table)
    strict = constants.config[0].strict != 0
    for b in range(command.shape[0]):
        if names_action(command[b]):
            j = exchange.choices[b, 0]
            if j < 0 or j >= jobs.cpu.shape[1]:
                return -(b + 1)
            i = state.next_task[b]
            if strict and not affordable(jobs, state, b, i, jobs.load[b, i] / jobs.efficiency[b, i, j]):
                return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] == ACT:
            i = state.next_task[b]
            leq = jobs.load[b, i] / jobs.efficiency[b, i, exchange.choices[b, 0]]
            fits = affordable(jobs, state, b, i, leq)
            exchange.repaired[b] = not fits
            if not fits:
                exchange.choices[b, 0] = state.best[b, i]
    return 0


@pure_kernel
def decode_search(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View search: a move, or the last action to stop; an illegal move stops."""
    constants, jobs, state, observation, exchange = unpack(table)
    strict = constants.config[0].strict != 0
    last = observation.action_mask.shape[1] - 1
    for b in range(command.shape[0]):
        if names_action(command[b]):
            choice = exchange.choices[b, 0]
            if choice < 0 or choice > last or (strict and observation.action_mask[b, choice] == 0):
                return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] == ACT:
            exchange.repaired[b] = observation.action_mask[b, exchange.choices[b, 0]] == 0
            if exchange.repaired[b]:
                exchange.choices[b, 0] = last
    return 0


@helper
def place_next(jobs: Jobs, state: State, b: int, j: int) -> None:
    """View place: put the next task on a server."""
    s = state.scalars[b]
    i = state.next_task[b]
    groups = groups_of(jobs, b)
    leq = jobs.load[b, i] / jobs.efficiency[b, i, j]
    add_load(j, leq, groups, state.inside[b], state.group_load[b])
    for e in range(groups.server_start[j], groups.server_start[j + 1]):
        k = groups.server_group[e]
        s.jct = max(s.jct, state.group_load[b, k] / jobs.limits[b, k])
    state.placement[b, i] = j
    state.energy[b, 0] += leq
    if state.pull.shape[1] > 0:
        best = state.best[b, i]
        state.pull[b, best] = max(state.pull[b, best] - state.least[b, i], 0.0)
    i += 1
    state.next_task[b] = i
    if i == jobs.tasks[b]:
        state.next_task[b] = jobs.load.shape[1]
        s.finished = 1


@pure_kernel
def settle(table: Any, tools: Any, b: int) -> None:
    """View place: size the tasks placed so far, which a step leaves to the end of the episode."""
    constants, jobs, state, observation, exchange = unpack(table)
    (scratch,) = unpack_tools(tools)
    if not state.scalars[b].finished:
        settle_plan(jobs, state, scratch, b)


@pure_kernel
def step(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """Advance the environments, each by its ``command`` [B]: ACT after a decoded decision, BEGIN an episode.

    ``table`` packs Constants, Jobs, State, Observation and Exchange, ``tools`` the work space. Returns how
    many episodes ended.
    """
    constants, jobs, state, observation, exchange = unpack(table)
    (scratch,) = unpack_tools(tools)
    config = constants.config[0]
    servers = jobs.cpu.shape[1]
    ended = 0
    for b in range(command.shape[0]):
        if command[b] == SKIP:
            continue
        s = state.scalars[b]
        exchange.reward[b] = 0.0
        exchange.terminated[b] = False
        exchange.truncated[b] = False
        changed = False  # the placement, by other than one task more
        if command[b] == BEGIN:
            exchange.repaired[b] = False
            begin(config, jobs, state, observation, exchange, scratch, b)
            if config.mode == SEARCH:
                for i in range(jobs.tasks[b]):
                    state.placement[b, i] = state.best[b, i]
                changed = True
        else:
            s.steps += 1
            s.repaired += exchange.repaired[b]
            if config.mode == PLACE:
                place_next(jobs, state, b, exchange.choices[b, 0])
                changed = s.finished != 0
            elif config.mode == PLAN:
                changed = True
                s.finished = 1
            else:
                choice = exchange.choices[b, 0]
                if choice == observation.action_mask.shape[1] - 1:
                    s.finished = 1
                else:
                    state.placement[b, choice // servers] = choice % servers
                    changed = True
                if s.steps == config.max_moves:
                    s.finished = 1
        if changed:
            s.jct, state.energy[b, 0] = settle_plan(jobs, state, scratch, b)
            if config.mode == PLAN and state.draft_vcpu[b, 0] > 0.0:
                s.jct = 0.0
                for i in range(jobs.tasks[b]):
                    state.vcpu[b, i] = state.draft_vcpu[b, i]
                    state.time[b, i] = scratch.leq[i] / state.vcpu[b, i]
                    s.jct = max(s.jct, state.time[b, i])
            if config.mode != PLACE:
                keep_loads(jobs, state, scratch, b)
            if config.mode == SEARCH:
                mark_moves(jobs, state, observation, scratch, b)
                if s.legal == 0 and command[b] == ACT:
                    s.finished = 1
        if command[b] == ACT and (s.finished or not config.terminal):
            exchange.reward[b] = s.charged - s.jct
            if config.normalize:
                exchange.reward[b] /= s.pooled
            s.charged = s.jct
        if s.finished:
            exchange.terminated[b] = True
            ended += 1
        observe(config, jobs, state, observation, b)
    return ended
