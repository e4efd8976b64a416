"""State of ParallelJCT for one environment: its arrays, and which decisions they allow.

Waiting jobs are rows in order of arrival (ties: by index). Running tasks are rows in order of launch, then
task.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
    length,
)
from schedgym.core.jit import helper, record_dtype
from schedgym.core.stepping import ActionSpace, Exchange
from schedgym.problems.parallel_jct import columns
from schedgym.problems.parallel_jct.metrics import Log, Schedule
from schedgym.problems.parallel_jct.workload import LAST_TIME, MOST_JOBS, Jobs
from schedgym.problems.single_job.topology import MOST_CPU
from schedgym.problems.single_job.workload import MOST_ENERGY, MOST_LOAD, MOST_POWER
from schedgym.solvers.placement import Job, Membership, PlanScratch, affords

PLAN, PICK, PLACE, SEARCH = range(4)  # views, in the order of the descriptor
#: condition of what is shown only in the views that plan a job task by task
TASK_VIEWS = "view=place|search"


SCALARS = record_dtype(
    ("reward_scale", np.float64),
    ("clock", np.float64),
    ("capacity", np.float64),  # of all servers
    ("charged", np.float64),  # job-seconds in the system that no reward has charged yet
    ("offered", np.float64),  # sums over the jobs that have arrived: load in seconds of all servers,
    ("log_load", np.float64),  # its logarithm,
    ("log_squared", np.float64),  # and the square of that
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
    ("planner", np.int64),
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


def later(parameter: str) -> Callable[[Any], float]:
    """A limit of times [s]: that of arrivals, or a parameter that is larger."""
    return lambda simulator: max(LAST_TIME, getattr(simulator.parameters, parameter))


class Constants(NamedTuple):
    """Constants of a simulator: its configuration."""

    config: Annotated[Any, CONFIG]


class State(NamedTuple):
    """The variables of an episode, except for the plan, the schedule and the log."""

    scalars: Annotated[Any, SCALARS]
    running: Annotated[Any, RUNNING, "task"]
    queue: Annotated[Integers, "job"]  # waiting jobs
    first_row: Annotated[Integers32, "job"]  # of each waiting row: first row of its tasks in the observation
    failed: Annotated[Bytes, "job"]  # by job: 1 if its planning failed in this round
    between: Annotated[Integers32, "job"]  # by job: rounds between ticks that it has waited in
    energy_cap: Annotated[Floats, "job"]  # by job: E_MAX in this round
    unfinished: Annotated[Integers32, "job"]  # by job: number of tasks
    reserved: Annotated[Floats, "server"]  # sum of the tasks' base vCPU
    weight: Annotated[Floats, "server"]  # sum of the tasks' leq
    available: Annotated[Floats, "server", Shown("what is not reserved [vCPU]", MOST_CPU)]
    limits: Annotated[
        Floats,
        "group",
        Shown("B_k, what one job may reserve now, by weight [vCPU]", length("server", times=MOST_CPU)),
    ]
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

    clock: Annotated[Floats, 1, Shown("time [s]", later("max_time"))]
    event: Annotated[Bytes, 3, Shown("flags of what happens now: arrival, completion of a task, tick")]
    time_to_tick: Annotated[Floats, 1, Shown("time to the next tick [s]", later("tick"))]
    job: Annotated[Integers, "unit_window", Shown("its number in the workload", MOST_JOBS)]
    arrival: Annotated[Floats, "unit_window", Shown("of the job [s]", LAST_TIME)]
    age: Annotated[Floats, "unit_window", Shown("time since its arrival [s]", later("max_time"))]
    tasks: Annotated[Integers, "unit_window", Shown("number of its tasks", MOST_JOBS)]
    first_task: Annotated[
        Integers, "unit_window", Shown("row of the first in `load` and `efficiency`", MOST_JOBS)
    ]
    total_load: Annotated[Floats, "unit_window", Shown("sum of its loads [vCPU s]", MOST_ENERGY)]
    least_energy: Annotated[Floats, "unit_window", Shown("on its best servers [power * vCPU s]", MOST_ENERGY)]
    energy_cap: Annotated[Floats, "unit_window", Shown("E_MAX [power * vCPU s]", 2 * MOST_ENERGY)]
    least_work: Annotated[
        Floats,
        "unit_window",
        Shown("equivalent loads there; only where power is given [vCPU s]", MOST_ENERGY, when="powered"),
    ]
    failed: Annotated[Bytes, "unit_window", Shown("1 if the job has failed in this round")]
    waiting: Annotated[Integers, 1, Shown("number of waiting jobs", MOST_JOBS)]
    backlog: Annotated[Integers, 1, Shown("waiting jobs beyond the window", MOST_JOBS)]
    load: Annotated[Floats, "unit_task_row", Shown("of the visible jobs' tasks [vCPU s]", MOST_LOAD)]
    efficiency: Annotated[Floats, "unit_task_row", "server", Shown("of them")]
    power: Annotated[
        Floats,
        "unit_task_row",
        Shown("of them; only where it is given [per vCPU]", MOST_POWER, when="powered"),
    ]
    running: Annotated[Integers, 1, Shown("number of running tasks", MOST_JOBS)]
    run_job: Annotated[Integers, "unit_running_row", Shown("of each running task, by launch", MOST_JOBS)]
    run_server: Annotated[Integers, "unit_running_row", Shown("where it runs", length("server", -1))]
    run_leq: Annotated[Floats, "unit_running_row", Shown("its equivalent load [vCPU s]", MOST_ENERGY)]
    run_remaining: Annotated[Floats, "unit_running_row", Shown("what is left of it [vCPU s]", MOST_ENERGY)]
    run_base: Annotated[Floats, "unit_running_row", Shown("reserved for it [vCPU]", MOST_CPU)]
    run_extra: Annotated[
        Floats, "unit_running_row", Shown("given beyond that until the next round [vCPU]", MOST_CPU)
    ]
    open_job: Annotated[
        Integers, 1, Shown("row of the planned job, W: none", length("window"), when=TASK_VIEWS, single=True)
    ]
    next_task: Annotated[Integers, 1, Shown("its next task", length("planned"), when=TASK_VIEWS, single=True)]
    placement: Annotated[
        Integers32, "planned", Shown("its servers, -1: none yet", length("server", -1), -1, when=TASK_VIEWS)
    ]
    energy: Annotated[Floats, 1, Shown("of its placed tasks [power * vCPU s]", MOST_ENERGY, when=TASK_VIEWS)]
    job_mask: Annotated[Bytes, "window", Shown("1 for rows that hold a job")]
    action_mask: Annotated[Bytes, "mask", Shown("feasible actions", when="view=pick|place|search")]
    job_tokens: Annotated[Floats32, "token_window", columns.JobToken]
    server_tokens: Annotated[Floats32, "token_server", columns.ServerToken]
    global_tokens: Annotated[Floats32, columns.GlobalToken]
    move_tokens: Annotated[Floats32, "token_move", columns.MoveToken, Shown(shape=("planned", "server", -1))]


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
        jobs.power,
    )


# What may be decided --------------------------------------------------------------------------


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
        total += env.jobs.power[q] * (env.jobs.load[q] / best)
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
    own = env.jobs.power[q] * (env.jobs.load[q] / env.jobs.efficiency[q, server])
    # with all later tasks where they need least
    whole = s.energy + own + plan.rest[s.next_task + 1]
    fits = affords(whole, env.state.energy_cap[job]) or own <= plan.least[s.next_task]
    return fits and env.state.alive[server] != 0
