"""State and compiled dynamics of PartialValue, for one environment.

Time is slots 1, 2, ...; job j is active in slot t if arrival <= t <= deadline and it was not served in full.
The active jobs are the first rows of every array of rows, in order of arrival (ties: by index); the rows
behind them are zero.

A step decides, by its view, how many tasks ``state.x`` each row gets in this slot, serves them, and opens the
next slot.
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
    Shown,
)
from schedgym.core.columns import put
from schedgym.core.jit import helper, record_dtype, subroutine
from schedgym.core.kernels import Dynamics, Scoring, ViewDynamics
from schedgym.core.rows import clear_entries, clearer, copier, mark, resetter
from schedgym.core.stepping import ActionSpace, Exchange, always_feasible
from schedgym.problems.partial_value import columns, rules
from schedgym.problems.partial_value.metrics import FULL, Schedule
from schedgym.problems.partial_value.workload import Jobs, horizon
from schedgym.solvers.dual_prices import DualScratch, gain

ORDER, PROGRAM = range(2)  # how view priority serves, in the order of the descriptor

SCALARS = record_dtype(
    ("reward_scale", np.float64),
    ("slot", np.int64),  # the slot to be decided
    ("horizon", np.int64),
    ("arrived", np.int64),  # also the index of the next job to arrive
    ("active", np.int64),  # number of rows in use
    ("unit", np.int64),  # 1 if there is one resource of whole capacity and every task needs one unit
    ("logged", np.int64),  # rows of the log
    ("finished", np.int64),
    ("shown", np.int64),  # window rows that the last observation filled
    ("repaired", np.int64),
)

CONFIG = record_dtype(
    ("discrete", np.int64),
    ("hidden", np.int64),  # deadlines
    ("single_task", np.int64),
    ("serving", np.int64),
    ("prices", np.int64),  # view prices
    ("window", np.int64),
    ("features", np.int64),
    ("zero_copy", np.int64),  # the observation's job arrays are the rows themselves
    ("normalize", np.int64),
)


class Constants(NamedTuple):
    """Constants of a simulator: its configuration."""

    config: Annotated[Any, CONFIG]


class Details(NamedTuple):
    """Further values of a row, in addition to :class:`Rows`, that only observations in exact units need."""

    parallelism: Annotated[Floats, "row", Shown("X, most tasks in a slot", rules.LARGEST)]
    tasks: Annotated[Floats, "row", Shown("Y, tasks in total", rules.LARGEST)]
    marginal: Annotated[
        Floats,
        "row",
        Shown("value of one more task (or what is left): f(y + min(1, u)) - f(y)", rules.LARGEST),
    ]
    demand: Annotated[Floats, "row", "resource", Shown("of a task, in units of the resources", rules.LARGEST)]


class State(NamedTuple):
    """The variables of an episode, except for the rows, the schedule and the log."""

    scalars: Annotated[Any, SCALARS]
    x: Annotated[Floats, "job"]  # tasks that each row gets in this slot
    tokens: Annotated[Floats32, "job", "job_feature"]  # by job, without the slots left; only for features


class Log(NamedTuple):
    """The schedule so far: which job got how many tasks in which slot."""

    job: Annotated[Integers32, "run"]
    slot: Annotated[Integers32, "run"]
    amount: Annotated[Floats, "run"]


class Observation(NamedTuple):
    """Observation buffers besides the rows; those of the other kind of observation have length 0."""

    slot: Annotated[Integers, 1, Shown("the slot to be decided", rules.LAST_SLOT + 1)]
    active: Annotated[Integers, 1, Shown("number of active jobs", rules.MOST_JOBS)]
    backlog: Annotated[Integers, 1, Shown("active jobs beyond the window", rules.MOST_JOBS)]
    job_mask: Annotated[Bytes, "window", Shown("which rows hold a job")]
    action_mask: Annotated[Bytes, "mask", Shown("feasible actions", when="view=rule")]
    job_tokens: Annotated[Floats32, "token_window", "job_feature", columns.JOB_ROW]
    resource_tokens: Annotated[Floats32, "resource", columns.ResourceToken]
    global_tokens: Annotated[Floats32, columns.GlobalToken]


class Environment(NamedTuple):
    """All arrays of one environment: constants, workload, rows, state, observation and scratch space."""

    constants: Annotated[Constants, SHARED]
    action_space: Annotated[ActionSpace, SHARED]
    jobs: Jobs
    rows: Annotated[rules.Rows, Renamed(row="job")]
    details: Annotated[Details, Renamed(row="job")]
    state: State
    schedule: Schedule
    log: Log
    observation: Observation
    visible_rows: Annotated[rules.Rows, Renamed(row="own_window")]  # as the observation shows them
    visible_details: Annotated[Details, Renamed(row="own_window")]
    exchange: Exchange
    scratch: Annotated[rules.Scratch, SCRATCH, Renamed(row="job")]
    dual: Annotated[DualScratch, SCRATCH, Renamed(row="job")]


reset = resetter(SCALARS, without=("shown",))
enter_row, enter_details = copier(Jobs, rules.Rows), copier(Jobs, Details)
move_row, move_details = copier(rules.Rows), copier(Details)
show_row = copier(rules.Rows, without=("share",))
clear_row, clear_details = clearer(rules.Rows), clearer(Details)


@helper
def set_row(env: Environment, r: int) -> None:
    """Update the values of a row that depend on its served tasks."""
    jobs, rows, config = env.jobs, env.rows, env.constants.config
    job = rows.job[r]
    served = rows.served[r]
    tasks = jobs.tasks[job]
    left = tasks - served
    cap = min(jobs.parallelism[job], math.floor(left + 0.5) if config.discrete else left)
    marginal = gain(rows.utility[r], rows.value[r], rows.exponent[r], served, min(1.0, cap))
    rows.cap[r] = cap
    # exact units show the marginal value itself, tokens what follows from it
    if not config.features:
        env.details.marginal[r] = marginal
        return
    dominant = 0.0
    for i in range(rows.share.shape[1]):
        dominant = max(dominant, rows.share[r, i])
    token = env.state.tokens[job]
    token[columns.JOB.served] = min(served / tasks, 1.0)
    token[columns.JOB.cap] = cap / (cap + columns.TASK_SCALE)
    token[columns.JOB.marginal] = marginal / (marginal + 1.0)
    token[columns.JOB.density] = marginal / (marginal + columns.DENSITY_SCALE * dominant)
    token[columns.JOB.dominant] = min(dominant * cap, 1.0)
    token[columns.JOB.done] = served / (served + columns.TASK_SCALE)


@helper
def add_row(env: Environment, r: int, job: int) -> None:
    """Fill a row with a new job, of which no task is served yet."""
    rows = env.rows
    enter_row(env.jobs, job, rows, r)
    rows.job[r] = job
    rows.served[r] = 0.0
    if env.constants.config.features:
        # tokens are kept by job: a row that moves takes its token along by its number
        token = env.state.tokens[job]
        value = rows.value[r]
        token[columns.JOB.value] = value / (value + columns.VALUE_SCALE)
        for kind in range(3):
            token[columns.JOB.linear + kind] = rows.utility[r] == kind
        token[columns.JOB.exponent] = rows.exponent[r]
        for i in range(rows.share.shape[1]):
            share = rows.share[r, i]
            token[columns.JOB_FEATURES + i] = share / (share + columns.SHARE_SCALE)
    else:
        enter_details(env.jobs, job, env.details, r)
    set_row(env, r)


@helper
def clear_rows(env: Environment, first: int) -> None:
    """Set the active rows from ``first`` on to zero."""
    for r in range(first, env.state.scalars.active):
        clear_row(env.rows, r)
        if not env.constants.config.features:
            clear_details(env.details, r)


@subroutine
def open_slot(env: Environment) -> None:
    """Update the rows to slot ``scalars.slot``; end the episode if nothing can be served any more."""
    jobs, rows, s = env.jobs, env.rows, env.state.scalars
    kept = 0
    # 1. jobs leave whose deadline has passed or whose tasks are all served; the rest closes up
    for r in range(s.active):
        if rows.deadline[r] < s.slot or rows.served[r] >= jobs.tasks[rows.job[r]] - rules.TOLERANCE:
            continue
        if kept < r:
            move_row(rows, r, rows, kept)
            if not env.constants.config.features:
                move_details(env.details, r, env.details, kept)
        kept += 1
    clear_rows(env, kept)
    # 2. jobs arrive, unless no slot is left to them
    while s.arrived < jobs.size.jobs and jobs.arrival[s.arrived] <= s.slot:
        job = s.arrived
        s.arrived += 1
        if jobs.deadline[job] < s.slot:
            continue
        add_row(env, kept, job)
        kept += 1
    s.active = kept
    # 3. nobody is left, and nobody will come
    s.finished = s.slot > s.horizon or (s.arrived == jobs.size.jobs and kept == 0)


@helper
def serve(env: Environment) -> float:
    """Serve the tasks ``state.x`` in this slot; returns the value gained."""
    rows, log, schedule, s = env.rows, env.log, env.schedule, env.state.scalars
    resources = rows.share.shape[1]
    load = env.scratch.load
    load[:] = 0.0
    total = 0.0
    for r in range(s.active):
        x = env.state.x[r]
        if x <= 0.0:
            continue
        for i in range(resources):
            load[i] += rows.share[r, i] * x
        # the value of the tasks served now, on top of those served before
        total += gain(rows.utility[r], rows.value[r], rows.exponent[r], rows.served[r], x)
        rows.served[r] += x
        schedule.served[rows.job[r]] = rows.served[r]
        # with other marginal values in the next slot
        set_row(env, r)
        log.job[s.logged] = rows.job[r]
        log.slot[s.logged] = s.slot
        log.amount[s.logged] = x
        s.logged += 1
    full = False
    for i in range(resources):
        schedule.load[i] += load[i]
        full = full or load[i] >= FULL
    schedule.totals.full += full
    schedule.totals.slots += 1
    s.slot += 1
    return total


@helper
def observe_features(env: Environment, count: int) -> None:
    """Write the observation as tokens, with the first ``count`` rows."""
    rows, s, hidden = env.rows, env.state.scalars, env.constants.config.hidden
    tokens, load = env.observation.job_tokens, env.scratch.load
    resources = rows.share.shape[1]
    for r in range(count):
        own = env.state.tokens[rows.job[r]]
        left = rows.deadline[r] - s.slot
        for f in range(tokens.shape[1]):
            tokens[r, f] = own[f]
        tokens[r, columns.JOB.slots_left] = 0.0 if hidden else left / (left + columns.SLOT_SCALE)
    for i in range(resources):
        seen = 0.0
        for r in range(count):
            seen += rows.share[r, i] * rows.cap[r]
        load[i] = seen
    clear_entries(tokens, count, s.shown)
    for i in range(resources):
        seen = load[i]
        wanted = seen
        # jobs beyond the window want resources, too
        for r in range(count, s.active):
            wanted += rows.share[r, i] * rows.cap[r]
        token = columns.ResourceToken(
            load=wanted / (wanted + 1.0), seen=seen / wanted if wanted > 0.0 else 0.0
        )
        put(env.observation.resource_tokens[i], 0, token)
    hidden_jobs = s.active - count
    whole = columns.GlobalToken(
        slot=s.slot / (s.slot + columns.COUNT_SCALE),
        jobs=s.active / (s.active + columns.COUNT_SCALE),
        beyond=hidden_jobs / (hidden_jobs + columns.COUNT_SCALE),
        whole=env.constants.config.discrete,
    )
    put(env.observation.global_tokens, 0, whole)


@helper
def observe_units(env: Environment, count: int) -> None:
    """Write the observation in exact units, with the first ``count`` rows."""
    s = env.state.scalars
    if not env.constants.config.zero_copy:
        for r in range(count):
            show_row(env.rows, r, env.visible_rows, r)
            move_details(env.details, r, env.visible_details, r)
        for r in range(count, s.shown):
            clear_row(env.visible_rows, r)
            clear_details(env.visible_details, r)
    env.observation.slot[0] = s.slot
    env.observation.active[0] = s.active
    env.observation.backlog[0] = s.active - count


@helper
def observe(env: Environment) -> None:
    """Write the observation."""
    s, config = env.state.scalars, env.constants.config
    count = min(s.active, config.window)
    if config.features:
        observe_features(env, count)
    else:
        observe_units(env, count)
    mark(env.observation.job_mask, s.shown, count)
    s.shown = count
    env.exchange.result.rows = env.rows.share.shape[1] if config.prices else count


@helper
def can_decide(env: Environment, rule: int) -> Any:
    """Return True if a rule is applicable: it suits the model, the visible deadlines, and the resources."""
    discrete, hidden = env.constants.config.discrete != 0, env.constants.config.hidden != 0
    if rule == rules.CONCAVE:
        return not discrete
    if rule == rules.M_GREEDY or rule == rules.PRIMAL_DUAL:
        return discrete
    if rule == rules.DEADLINE_AWARE:
        return discrete and not hidden and env.state.scalars.unit != 0
    return not hidden or rule != rules.EDF


@helper
def begin(env: Environment) -> None:
    """Start an episode on the loaded workload, in slot 1."""
    jobs, schedule, s = env.jobs, env.schedule, env.state.scalars
    clear_rows(env, 0)  # left over when the last episode was cut off
    reset(s)
    most = 0.0  # the largest possible total value
    for job in range(jobs.size.jobs):
        schedule.served[job] = 0.0
        most += gain(jobs.utility[job], jobs.value[job], jobs.exponent[job], 0.0, jobs.tasks[job])
    schedule.load[:] = 0.0
    schedule.totals.slots = 0
    schedule.totals.full = 0
    s.reward_scale = 1.0 / most if env.constants.config.normalize else 1.0
    s.horizon = horizon(jobs)
    s.slot = 1
    s.unit = rules.unit_demand(jobs.size.jobs, jobs.share, jobs.capacity)
    # which rules are applicable is the same in the whole episode
    for rule in range(env.observation.action_mask.shape[0]):
        env.observation.action_mask[rule] = can_decide(env, rule)
    open_slot(env)


@helper
def advance(env: Environment) -> None:
    """Serve what was decided, and open the next slot."""
    s, result = env.state.scalars, env.exchange.result
    # before anything changes: the step is repeated when the log has grown
    result.short = s.logged + s.active > env.log.job.shape[0]
    if result.short:
        return
    s.repaired += result.repaired
    result.reward = serve(env) * s.reward_scale
    open_slot(env)
    result.terminated = s.finished != 0


# Actions, view by view: each sets ``state.x``, the tasks that each active job gets in this slot.


@helper
def decode_allocation(env: Environment) -> Any:
    """View allocation: return True if the tasks that the action names may be served in this slot."""
    rows, load = env.rows, env.scratch.load
    resources = rows.share.shape[1]
    load[:] = 0.0
    for r in range(env.exchange.result.rows):
        x = env.exchange.numbers[r, 0]
        if x < -rules.TOLERANCE or x > rows.cap[r] + rules.TOLERANCE:
            return False
        if env.constants.config.discrete and x != math.floor(x):
            return False
        for i in range(resources):
            load[i] += rows.share[r, i] * x
    for i in range(resources):
        if load[i] > 1.0 + rules.TOLERANCE:
            return False
    return True


@helper
def decide_allocation(env: Environment, feasible: bool) -> None:
    """View allocation: give each visible job the tasks of the action; hidden jobs get none.

    Repair: numbers are clipped to what a job may get (discrete: rounded down); then see
    :func:`~schedgym.problems.partial_value.rules.repair`.
    """
    rows, active, x = env.rows, env.state.scalars.active, env.state.x
    discrete = env.constants.config.discrete != 0
    count = env.exchange.result.rows
    for r in range(active):
        amount = min(max(env.exchange.numbers[r, 0], 0.0), rows.cap[r]) if r < count else 0.0
        x[r] = math.floor(amount) if discrete else amount
    if not feasible:
        rules.repair(discrete, active, rows, env.scratch, x)


@helper
def decide_prices(env: Environment, feasible: bool) -> None:
    """View prices: let every active job, hidden or not, buy at prices whose logarithms are the action."""
    rows, active, x, prices = env.rows, env.state.scalars.active, env.state.x, env.scratch.price
    rules.decode_prices(env.exchange.numbers[:, 0], prices)
    rules.buy(active, prices, rows, x)
    rules.repair(
        False, active, rows, env.scratch, x
    )  # low prices may cause an overload, which does not count


@helper
def read_scores(env: Environment) -> None:
    """Write the logarithms of what the active jobs' values are multiplied by; hidden jobs have the least."""
    scores = env.scratch.key
    for r in range(env.state.scalars.active):
        score = env.exchange.numbers[r, 0] if r < env.exchange.result.rows else -1.0
        scores[r] = rules.MOST_SCORE * min(max(score, -1.0), 1.0)


@helper
def decide_priority_in_order(env: Environment, feasible: bool) -> None:
    """View priority: multiply each visible job's value by exp(MOST_SCORE * its score), and serve in order."""
    read_scores(env)
    config, active, scores = env.constants.config, env.state.scalars.active, env.scratch.key
    discrete, single_task = config.discrete != 0, config.single_task != 0
    rules.allocate_by_priority(discrete, single_task, active, scores, env.rows, env.scratch, env.state.x)


@helper
def decide_priority(env: Environment, feasible: bool) -> None:
    """View priority, by Algorithm 1 if the parameter ``serving`` says "program", else in order."""
    if env.constants.config.serving == PROGRAM:  # of the continuous model only
        read_scores(env)
        active, scores = env.state.scalars.active, env.scratch.key
        rules.allocate_by_weight(active, scores, env.rows, env.scratch, env.dual, env.state.x)
    else:
        decide_priority_in_order(env, feasible)


@helper
def decode_rule(env: Environment) -> Any:
    """View rule: return True if the named rule can decide in this environment."""
    return can_decide(env, env.exchange.choices[0])


@helper
def decide_rule(env: Environment, feasible: bool) -> None:
    """View rule: serve all active jobs by the named rule; one that cannot decide here becomes fifo."""
    rules.allocate_by_rule(
        env.exchange.choices[0] if feasible else rules.FIFO,
        env.constants.config.discrete != 0,
        env.state.scalars.active,
        env.rows,
        env.jobs.capacity,
        env.scratch,
        env.dual,
        env.state.x,
    )


def serves_in_order(simulator: Any) -> bool:
    """Return True if Algorithm 1, which takes long to compile, serves no jobs."""
    return simulator.parameters.serving == "order"


VIEWS = (
    ViewDynamics("allocation", decode_allocation, decide_allocation),
    ViewDynamics("prices", always_feasible, decide_prices),
    ViewDynamics("priority", always_feasible, decide_priority_in_order, serves_in_order),
    ViewDynamics("priority", always_feasible, decide_priority),
    ViewDynamics("rule", decode_rule, decide_rule),
)
DYNAMICS = Dynamics(__name__, Environment, begin, advance, observe, VIEWS)
SCORING = Scoring(DYNAMICS, columns, ("priority", "prices"))
