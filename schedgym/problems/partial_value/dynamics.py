"""State and compiled dynamics of PartialValue, batch-first: axis 0 of every array is the environment.

Time is slots 1, 2, ...; job j is active in slot t if arrival <= t <= deadline and it was not served in full.
Active jobs are rows in order of arrival (equals by index), at the front of every [B, N, ...] array; rows
behind are zero.

A ``decode`` kernel, one per view, turns actions into the tasks ``state.x`` that the rows get in this slot;
:func:`step` serves them and writes the observation of the next slot.
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
from schedgym.problems.partial_value.metrics import FULL
from schedgym.problems.partial_value.rules import (
    CONCAVE,
    DEADLINE_AWARE,
    EDF,
    FIFO,
    M_GREEDY,
    MOST_SCORE,
    PRIMAL_DUAL,
    RULES,
    TOLERANCE,
    Scratch,
    Visible,
    allocate_by_priority,
    allocate_by_rule,
    buy,
    decode_prices,
    repair,
    unit_demand,
)
from schedgym.solvers.dual_prices import DualScratch, gain

__all__ = [
    "CONFIG",
    "GLOBAL_FEATURES",
    "JOB_FEATURES",
    "RESOURCE_FEATURES",
    "SCALARS",
    "Constants",
    "Exchange",
    "Jobs",
    "Log",
    "Observation",
    "Rows",
    "State",
    "decode_allocation",
    "decode_prices_view",
    "decode_priority",
    "decode_rule",
    "rows_to_log",
    "step",
]

MOST_RULES = len(RULES)

#: features of a job token before its shares of the resources: value, served share, tasks it may get, slots
#: left, gain of one more task, the same per dominant share, dominant share of all it may get, utility
JOB_FEATURES = 10
#: features of a resource token: the load if all active jobs got all they may get, part of it by visible jobs
RESOURCE_FEATURES = 2
#: global features: slot, active jobs, those beyond the window
GLOBAL_FEATURES = 3
VALUE_SCALE = 3.0
TASK_SCALE = 20.0
SLOT_SCALE = 8.0
SHARE_SCALE = 0.02
DENSITY_SCALE = 50.0
COUNT_SCALE = 32.0

#: per-environment scalars
SCALARS = record_dtype(
    ("reward_scale", np.float64),
    ("slot", np.int64),  # to be decided
    ("horizon", np.int64),
    ("slots", np.int64),  # run
    ("full", np.int64),  # slots in which a resource was full
    ("jobs", np.int64),
    ("arrived", np.int64),  # also the index of the next job to arrive
    ("active", np.int64),  # rows
    ("unit", np.int64),  # one resource of whole capacity, and every task needs one unit
    ("logged", np.int64),  # rows of the log
    ("finished", np.int64),
    ("shown", np.int64),  # window rows that the last observation filled
    ("repaired", np.int64),
)

#: constants of a simulator
CONFIG = record_dtype(
    ("discrete", np.int64),
    ("hidden", np.int64),  # deadlines
    ("single_task", np.int64),
    ("rule", np.int64),  # view rule
    ("prices", np.int64),  # view prices
    ("window", np.int64),
    ("features", np.int64),
    ("mask", np.int64),
    ("lent", np.int64),  # the observation's job arrays are the rows themselves
    ("strict", np.int64),
    ("normalize", np.int64),
)


class Constants(NamedTuple):
    """What stays the same for the life of a simulator."""

    config: Annotated[npt.NDArray[Any], CONFIG, 1]  # [1]


class Jobs(NamedTuple):
    """The workload. N jobs, m resources."""

    arrival: F8_2  # [B, N]
    deadline: F8_2  # [B, N]
    parallelism: F8_2  # [B, N]
    tasks: F8_2  # [B, N]
    value: F8_2  # [B, N]
    exponent: F8_2  # [B, N]
    utility: I8_2  # [B, N]
    demand: F8_3  # [B, N, m]
    share: F8_3  # [B, N, m]
    capacity: F8_2  # [B, m]


class Rows(NamedTuple):
    """The active jobs, as rules and observations take them; those that are only shown may have length 0."""

    job: I8_2  # [B, N]
    arrival: F8_2  # [B, N]
    deadline: F8_2  # [B, N]
    parallelism: F8_2  # [B, N]
    tasks: F8_2  # [B, N]
    served: F8_2  # [B, N]
    cap: F8_2  # [B, N]
    marginal: F8_2  # [B, N]
    value: F8_2  # [B, N]
    exponent: F8_2  # [B, N]
    utility: I8_2  # [B, N]
    demand: F8_3  # [B, N, m]
    share: F8_3  # [B, N, m]; not shown


class State(NamedTuple):
    """Everything else that changes in an episode."""

    scalars: Annotated[npt.NDArray[Any], SCALARS, 1]  # [B]
    served: F8_2  # [B, N] by job
    x: F8_2  # [B, N] tasks that each row gets in this slot
    scores: F8_2  # [B, N] view priority
    load: F8_2  # [B, m] summed over the slots
    now: F8_2  # [B, m] of a slot
    prices: F8_2  # [B, m] view prices
    tokens: F4_3  # [B, N, JOB_FEATURES + m] by job, but for the slots left; observation features


class Log(NamedTuple):
    """The schedule so far."""

    job: I4_2  # [B, L]
    slot: I4_2  # [B, L]
    amount: F8_2  # [B, L]


class Observation(NamedTuple):
    """Buffers that the kernel writes beside the copies of rows (W window rows)."""

    slot: I8_2  # [B, 1]
    active: I8_2  # [B, 1]
    backlog: I8_2  # [B, 1]
    job_mask: I1_2  # [B, W]
    action_mask: I1_2  # [B, rules]
    job_tokens: F4_3  # [B, W, JOB_FEATURES + m]
    resource_tokens: F4_3  # [B, m, RESOURCE_FEATURES]
    global_tokens: F4_2  # [B, GLOBAL_FEATURES]


class Exchange(NamedTuple):
    """What goes into a step and what it did. Of the two kinds of actions one has length 0."""

    choices: I8_2  # [B, 1] discrete actions
    actions: F8_2  # [B, W or m]
    rows: I8_1  # [B] numbers of an action that count
    reward: F8_1  # [B]
    terminated: B1_1  # [B]
    truncated: B1_1  # [B]
    repaired: B1_1  # [B] whether this step's action was infeasible


unpack = unpacker(Constants, Jobs, Rows, State, Log, Observation, Rows, Exchange)
unpack_tools = unpacker(Scratch, DualScratch)


@helper
def set_row(config: Any, jobs: Jobs, rows: Rows, state: State, b: int, r: int) -> None:
    """Write what follows from how far a row was served."""
    job = rows.job[b, r]
    served = rows.served[b, r]
    tasks = jobs.tasks[b, job]
    left = tasks - served
    cap = min(jobs.parallelism[b, job], math.floor(left + 0.5) if config.discrete else left)
    marginal = gain(rows.utility[b, r], rows.value[b, r], rows.exponent[b, r], served, min(1.0, cap))
    rows.cap[b, r] = cap
    if not config.features:
        rows.marginal[b, r] = marginal
        return
    dominant = 0.0
    for i in range(rows.share.shape[2]):
        dominant = max(dominant, rows.share[b, r, i])
    state.tokens[b, job, 1] = min(served / tasks, 1.0)
    state.tokens[b, job, 2] = cap / (cap + TASK_SCALE)
    state.tokens[b, job, 4] = marginal / (marginal + 1.0)
    state.tokens[b, job, 5] = marginal / (marginal + DENSITY_SCALE * dominant)
    state.tokens[b, job, 6] = min(dominant * cap, 1.0)


@helper
def enter_row(config: Any, jobs: Jobs, rows: Rows, state: State, b: int, r: int, job: int) -> None:
    """Make a row that of a job of which nothing was served."""
    rows.job[b, r] = job
    rows.arrival[b, r] = jobs.arrival[b, job]
    rows.deadline[b, r] = jobs.deadline[b, job]
    rows.served[b, r] = 0.0
    rows.value[b, r] = jobs.value[b, job]
    rows.exponent[b, r] = jobs.exponent[b, job]
    rows.utility[b, r] = jobs.utility[b, job]
    for i in range(rows.share.shape[2]):
        rows.share[b, r, i] = jobs.share[b, job, i]
    if config.features:
        value = rows.value[b, r]
        state.tokens[b, job, 0] = value / (value + VALUE_SCALE)
        for kind in range(3):
            state.tokens[b, job, 7 + kind] = rows.utility[b, r] == kind
        for i in range(rows.share.shape[2]):
            share = rows.share[b, r, i]
            state.tokens[b, job, JOB_FEATURES + i] = share / (share + SHARE_SCALE)
    else:
        rows.parallelism[b, r] = jobs.parallelism[b, job]
        rows.tasks[b, r] = jobs.tasks[b, job]
        for i in range(rows.demand.shape[2]):
            rows.demand[b, r, i] = jobs.demand[b, job, i]
    set_row(config, jobs, rows, state, b, r)


@helper
def move_row(config: Any, rows: Rows, b: int, source: int, target: int) -> None:
    """Copy a row."""
    rows.job[b, target] = rows.job[b, source]
    rows.arrival[b, target] = rows.arrival[b, source]
    rows.deadline[b, target] = rows.deadline[b, source]
    rows.served[b, target] = rows.served[b, source]
    rows.cap[b, target] = rows.cap[b, source]
    rows.value[b, target] = rows.value[b, source]
    rows.exponent[b, target] = rows.exponent[b, source]
    rows.utility[b, target] = rows.utility[b, source]
    for i in range(rows.share.shape[2]):
        rows.share[b, target, i] = rows.share[b, source, i]
    if not config.features:
        rows.parallelism[b, target] = rows.parallelism[b, source]
        rows.tasks[b, target] = rows.tasks[b, source]
        rows.marginal[b, target] = rows.marginal[b, source]
        for i in range(rows.demand.shape[2]):
            rows.demand[b, target, i] = rows.demand[b, source, i]


@helper
def clear_row(config: Any, rows: Rows, b: int, r: int) -> None:
    """Set a row to zero."""
    rows.job[b, r] = 0
    rows.arrival[b, r] = 0.0
    rows.deadline[b, r] = 0.0
    rows.served[b, r] = 0.0
    rows.cap[b, r] = 0.0
    rows.value[b, r] = 0.0
    rows.exponent[b, r] = 0.0
    rows.utility[b, r] = 0
    for i in range(rows.share.shape[2]):
        rows.share[b, r, i] = 0.0
    if not config.features:
        rows.parallelism[b, r] = 0.0
        rows.tasks[b, r] = 0.0
        rows.marginal[b, r] = 0.0
        for i in range(rows.demand.shape[2]):
            rows.demand[b, r, i] = 0.0


@helper
def open_slot(config: Any, jobs: Jobs, rows: Rows, state: State, b: int) -> None:
    """Make the rows those of slot ``scalars.slot``; ends the episode if nothing can be served any more."""
    s = state.scalars[b]
    kept = 0
    for r in range(s.active):
        tasks = jobs.tasks[b, rows.job[b, r]]
        if rows.deadline[b, r] < s.slot or rows.served[b, r] >= tasks - TOLERANCE:
            continue
        if kept < r:
            move_row(config, rows, b, r, kept)
        kept += 1
    for r in range(kept, s.active):
        clear_row(config, rows, b, r)
    while s.arrived < s.jobs and jobs.arrival[b, s.arrived] <= s.slot:
        job = s.arrived
        s.arrived += 1
        if jobs.deadline[b, job] < s.slot:
            continue
        enter_row(config, jobs, rows, state, b, kept, job)
        kept += 1
    s.active = kept
    s.finished = s.slot > s.horizon or (s.arrived == s.jobs and kept == 0)


@helper
def serve(config: Any, jobs: Jobs, rows: Rows, state: State, log: Log, b: int) -> float:
    """Serve the tasks ``state.x`` in this slot; returns the value gained."""
    s = state.scalars[b]
    resources = rows.share.shape[2]
    total = 0.0
    for i in range(resources):
        state.now[b, i] = 0.0
    for r in range(s.active):
        x = state.x[b, r]
        if x <= 0.0:
            continue
        for i in range(resources):
            state.now[b, i] += rows.share[b, r, i] * x
        total += gain(rows.utility[b, r], rows.value[b, r], rows.exponent[b, r], rows.served[b, r], x)
        rows.served[b, r] += x
        state.served[b, rows.job[b, r]] = rows.served[b, r]
        set_row(config, jobs, rows, state, b, r)
        log.job[b, s.logged] = rows.job[b, r]
        log.slot[b, s.logged] = s.slot
        log.amount[b, s.logged] = x
        s.logged += 1
    full = False
    for i in range(resources):
        state.load[b, i] += state.now[b, i]
        full = full or state.now[b, i] >= FULL
    s.full += full
    s.slots += 1
    s.slot += 1
    return total


@helper
def write_tokens(config: Any, rows: Rows, state: State, observation: Observation, b: int, count: int) -> None:
    """Write the tokens of environment b."""
    s = state.scalars[b]
    resources = rows.share.shape[2]
    tokens = observation.job_tokens
    for r in range(count):
        # all is read before anything is written: the compiler cannot know that the arrays are apart
        own = state.tokens[b, rows.job[b, r]]
        left = rows.deadline[b, r] - s.slot
        value = own[0]
        served = own[1]
        cap = own[2]
        marginal = own[4]
        density = own[5]
        dominant = own[6]
        linear = own[7]
        power = own[8]
        log = own[9]
        tokens[b, r, 0] = value
        tokens[b, r, 1] = served
        tokens[b, r, 2] = cap
        tokens[b, r, 3] = 0.0 if config.hidden else left / (left + SLOT_SCALE)
        tokens[b, r, 4] = marginal
        tokens[b, r, 5] = density
        tokens[b, r, 6] = dominant
        tokens[b, r, 7] = linear
        tokens[b, r, 8] = power
        tokens[b, r, 9] = log
        for i in range(JOB_FEATURES, tokens.shape[2]):
            tokens[b, r, i] = own[i]
    for i in range(resources):
        seen = 0.0
        for r in range(count):
            seen += rows.share[b, r, i] * rows.cap[b, r]
        state.now[b, i] = seen
    for r in range(count, s.shown):
        for f in range(tokens.shape[2]):
            tokens[b, r, f] = 0.0
    for i in range(resources):
        seen = state.now[b, i]
        wanted = seen
        for r in range(count, s.active):
            wanted += rows.share[b, r, i] * rows.cap[b, r]
        observation.resource_tokens[b, i, 0] = wanted / (wanted + 1.0)
        observation.resource_tokens[b, i, 1] = seen / wanted if wanted > 0.0 else 0.0
    observation.global_tokens[b, 0] = s.slot / (s.slot + COUNT_SCALE)
    observation.global_tokens[b, 1] = s.active / (s.active + COUNT_SCALE)
    observation.global_tokens[b, 2] = (s.active - count) / (s.active - count + COUNT_SCALE)


@helper
def copy_rows(config: Any, rows: Rows, state: State, shown: Rows, b: int, count: int) -> None:
    """Copy the visible rows into the observation."""
    for r in range(count):
        shown.job[b, r] = rows.job[b, r]
        shown.arrival[b, r] = rows.arrival[b, r]
        shown.deadline[b, r] = rows.deadline[b, r]
        shown.parallelism[b, r] = rows.parallelism[b, r]
        shown.tasks[b, r] = rows.tasks[b, r]
        shown.served[b, r] = rows.served[b, r]
        shown.cap[b, r] = rows.cap[b, r]
        shown.marginal[b, r] = rows.marginal[b, r]
        shown.value[b, r] = rows.value[b, r]
        shown.exponent[b, r] = rows.exponent[b, r]
        shown.utility[b, r] = rows.utility[b, r]
        for i in range(rows.share.shape[2]):
            shown.demand[b, r, i] = rows.demand[b, r, i]
    for r in range(count, state.scalars[b].shown):
        shown.job[b, r] = 0
        shown.arrival[b, r] = 0.0
        shown.deadline[b, r] = 0.0
        shown.parallelism[b, r] = 0.0
        shown.tasks[b, r] = 0.0
        shown.served[b, r] = 0.0
        shown.cap[b, r] = 0.0
        shown.marginal[b, r] = 0.0
        shown.value[b, r] = 0.0
        shown.exponent[b, r] = 0.0
        shown.utility[b, r] = 0
        for i in range(rows.share.shape[2]):
            shown.demand[b, r, i] = 0.0


@helper
def observe(
    config: Any,
    rows: Rows,
    state: State,
    observation: Observation,
    shown: Rows,
    exchange: Exchange,
    b: int,
) -> None:
    """Write the observation of environment b."""
    s = state.scalars[b]
    count = min(s.active, config.window)
    if config.features:
        write_tokens(config, rows, state, observation, b, count)
    else:
        if not config.lent:
            copy_rows(config, rows, state, shown, b, count)
        observation.slot[b, 0] = s.slot
        observation.active[b, 0] = s.active
        observation.backlog[b, 0] = s.active - count
    for r in range(s.shown, count):
        observation.job_mask[b, r] = 1
    for r in range(count, s.shown):
        observation.job_mask[b, r] = 0
    s.shown = count
    exchange.rows[b] = rows.share.shape[2] if config.prices else count


@helper
def can_decide(rule: int, discrete: bool, shown: bool, unit: bool) -> Any:
    """Whether a rule is for the model, the deadlines that it may see, and the resources."""
    if rule == CONCAVE:
        return not discrete
    if rule == M_GREEDY or rule == PRIMAL_DUAL:
        return discrete
    if rule == DEADLINE_AWARE:
        return discrete and shown and unit
    return shown or rule != EDF


@helper
def begin(config: Any, jobs: Jobs, rows: Rows, state: State, observation: Observation, b: int) -> None:
    """Start an episode on the loaded workload, in slot 1."""
    s = state.scalars[b]
    for r in range(s.active):
        clear_row(config, rows, b, r)
    last = 1.0
    most = 0.0  # that can be gained
    for job in range(s.jobs):
        state.served[b, job] = 0.0
        last = max(last, jobs.deadline[b, job])
        if config.normalize:
            most += gain(
                jobs.utility[b, job], jobs.value[b, job], jobs.exponent[b, job], 0.0, jobs.tasks[b, job]
            )
    for i in range(state.load.shape[1]):
        state.load[b, i] = 0.0
    s.reward_scale = 1.0 / most if config.normalize else 1.0
    s.horizon = int(math.floor(last))
    s.slot = 1
    s.slots = 0
    s.full = 0
    s.arrived = 0
    s.active = 0
    s.logged = 0
    s.repaired = 0
    if config.rule:
        s.unit = unit_demand(s.jobs, jobs.share[b], jobs.capacity[b])
        if config.mask:
            for rule in range(MOST_RULES):
                observation.action_mask[b, rule] = can_decide(
                    rule, config.discrete != 0, config.hidden == 0, s.unit != 0
                )
    open_slot(config, jobs, rows, state, b)


@pure_kernel
def rows_to_log(scalars: npt.NDArray[Any]) -> int:
    """The most rows that an environment's log can have after a slot more; ``scalars`` are SCALARS [B]."""
    most = 0
    for b in range(scalars.shape[0]):
        most = max(most, scalars[b].logged + scalars[b].active)
    return most


@pure_kernel
def step(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """Advance the environments, each by its ``command`` [B]: ACT after a decoded decision, BEGIN an episode.

    ``table`` packs Constants, Jobs, Rows, State, Log, Observation, the Rows that are shown, and Exchange;
    ``tools``, the work space of the decode kernels, is of no use here. The log has room for
    :func:`rows_to_log`. Returns how many episodes ended.
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
        if command[b] == BEGIN:
            exchange.repaired[b] = False
            begin(config, jobs, rows, state, observation, b)
        else:
            s.repaired += exchange.repaired[b]
            exchange.reward[b] = serve(config, jobs, rows, state, log, b) * s.reward_scale
            open_slot(config, jobs, rows, state, b)
            if s.finished:
                exchange.terminated[b] = True
                ended += 1
        observe(config, rows, state, observation, shown, exchange, b)
    return ended


@helper
def visible_rows(rows: Rows, b: int) -> Visible:
    """The rows of an environment as rules take them."""
    return Visible(
        rows.arrival[b],
        rows.deadline[b],
        rows.served[b],
        rows.cap[b],
        rows.share[b],
        rows.utility[b],
        rows.value[b],
        rows.exponent[b],
    )


@helper
def finite(exchange: Exchange, b: int) -> Any:
    """Whether all numbers of an action that count are finite."""
    for r in range(exchange.rows[b]):
        if not math.isfinite(exchange.actions[b, r]):
            return False
    return True


@helper
def allocation_fits(config: Any, rows: Rows, state: State, exchange: Exchange, b: int) -> Any:
    """Whether the tasks that an action names may be served in this slot."""
    for i in range(rows.share.shape[2]):
        state.now[b, i] = 0.0
    for r in range(exchange.rows[b]):
        x = exchange.actions[b, r]
        if x < -TOLERANCE or x > rows.cap[b, r] + TOLERANCE:
            return False
        if config.discrete and x != math.floor(x):
            return False
        for i in range(rows.share.shape[2]):
            state.now[b, i] += rows.share[b, r, i] * x
    for i in range(rows.share.shape[2]):
        if state.now[b, i] > 1.0 + TOLERANCE:
            return False
    return True


@pure_kernel
def decode_allocation(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View allocation: tasks of each visible job; hidden jobs get none.

    Repair: numbers are clipped to what a job may get (discrete: rounded down); then see
    :func:`~schedgym.problems.partial_value.rules.repair`.

    Every decode kernel takes what :func:`step` takes, and ``tools``, packed work space. It sets ``state.x``
    and ``exchange.repaired`` and returns 0; or -(b + 1) for the first environment whose action is malformed,
    or with strict actions infeasible. Then nothing has changed.
    """
    constants, jobs, rows, state, log, observation, shown, exchange = unpack(table)
    scratch, dual = unpack_tools(tools)
    config = constants.config[0]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            if not finite(exchange, b):
                return -(b + 1)
            if config.strict and not allocation_fits(config, rows, state, exchange, b):
                return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        exchange.repaired[b] = not allocation_fits(config, rows, state, exchange, b)
        active = state.scalars[b].active
        for r in range(active):
            x = min(max(exchange.actions[b, r], 0.0), rows.cap[b, r]) if r < exchange.rows[b] else 0.0
            state.x[b, r] = math.floor(x) if config.discrete else x
        if exchange.repaired[b]:
            repair(config.discrete != 0, active, visible_rows(rows, b), scratch, state.x[b])
    return 0


@pure_kernel
def decode_prices_view(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View prices: logarithms of the resources' prices; every active job, hidden or not, buys what pays."""
    constants, jobs, rows, state, log, observation, shown, exchange = unpack(table)
    scratch, dual = unpack_tools(tools)
    resources = rows.share.shape[2]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            for i in range(resources):
                if not math.isfinite(exchange.actions[b, i]):
                    return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        active = state.scalars[b].active
        visible = visible_rows(rows, b)
        decode_prices(exchange.actions[b], state.prices[b])
        buy(active, state.prices[b], visible, state.x[b])
        repair(False, active, visible, scratch, state.x[b])
        exchange.repaired[b] = False  # an overload is what low prices mean
    return 0


@pure_kernel
def decode_priority(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View priority: a score per visible job, by whose exponential its value is multiplied."""
    constants, jobs, rows, state, log, observation, shown, exchange = unpack(table)
    scratch, dual = unpack_tools(tools)
    config = constants.config[0]
    for b in range(command.shape[0]):
        if names_action(command[b]) and not finite(exchange, b):
            return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        exchange.repaired[b] = False
        active = state.scalars[b].active
        for r in range(active):
            score = exchange.actions[b, r] if r < exchange.rows[b] else -MOST_SCORE
            state.scores[b, r] = min(max(score, -MOST_SCORE), MOST_SCORE)
        allocate_by_priority(
            config.discrete != 0,
            config.single_task != 0,
            active,
            state.scores[b],
            visible_rows(rows, b),
            scratch,
            state.x[b],
        )
    return 0


@helper
def rule_fits(config: Any, state: State, exchange: Exchange, b: int) -> Any:
    """Whether the named rule can decide in this environment."""
    unit = state.scalars[b].unit != 0
    return can_decide(exchange.choices[b, 0], config.discrete != 0, config.hidden == 0, unit)


@pure_kernel
def decode_rule(table: Any, tools: Any, command: npt.NDArray[np.int8]) -> int:
    """View rule: what the named rule serves, of all active jobs; one that cannot decide here becomes fifo."""
    constants, jobs, rows, state, log, observation, shown, exchange = unpack(table)
    scratch, dual = unpack_tools(tools)
    config = constants.config[0]
    for b in range(command.shape[0]):
        if names_action(command[b]):
            if not 0 <= exchange.choices[b, 0] < MOST_RULES:
                return -(b + 1)
            if config.strict and not rule_fits(config, state, exchange, b):
                return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        exchange.repaired[b] = not rule_fits(config, state, exchange, b)
        allocate_by_rule(
            FIFO if exchange.repaired[b] else exchange.choices[b, 0],
            config.discrete != 0,
            state.scalars[b].active,
            visible_rows(rows, b),
            jobs.capacity[b],
            scratch,
            dual,
            state.x[b],
        )
    return 0
