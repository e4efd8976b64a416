"""The tokens of FlowtimePacking's observations, and the columns that scorers make of them."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import Floats, Floats32
from schedgym.core.columns import Columns, names_of, places, put, read
from schedgym.core.jit import helper
from schedgym.core.scorer import log_odds, no_pairs, unscaled
from schedgym.core.tokens import RULE_VIEW, ColumnSet, ScoredView, Scores, Tokens, TokenSet

SLOT_SCALE = 50.0  # x / (x + 50 slots) scales lengths and ages
WORK_SCALE = 50.0  # w / (w + 50 slots of all cores) scales work
CLOCK_SCALE = 1000.0
COUNT_SCALE = 32.0


class JobToken(NamedTuple):
    """A job; behind it stand the shares of the servers' cores that it holds."""

    age: Annotated[float, "f(age)"]
    processing: Annotated[float, "f(p)"]
    demand: Annotated[float, "d / (d + C)"]
    memory: Annotated[float, "memory / the largest server's"]
    slots_left: Annotated[float, "f(slots left)"]
    remaining_work: Annotated[float, "w / (w + 50 C) of the work w that is left"]
    cap: Annotated[float, "cap / C"]
    held: Annotated[float, "cores held in the slot before / C"]
    granted: Annotated[float, "cores granted in this slot / C"]
    second_phase: Annotated[float, "1 in the second phase"]


class ServerToken(NamedTuple):
    """A server."""

    cores: Annotated[float, "cores / C"]
    free_cores: Annotated[float, "share of them that is free"]
    memory: Annotated[float, "memory / the largest server's"]
    free_memory: Annotated[float, "share of it that is free"]


class GlobalToken(NamedTuple):
    """The whole."""

    slot: Annotated[float, "t / (t + 1000)"]
    jobs: Annotated[float, "n / (n + 32) of the n active jobs"]
    beyond: Annotated[float, "n / (n + 32) of those beyond the window"]
    work_left: Annotated[float, "w / (w + 50 C) of all work w that is left"]
    norm: Annotated[float, "1 / k of the l_k norm"]


JOB, SERVER = places(JobToken), places(ServerToken)
JOB_FEATURES = len(JobToken._fields)
JOB_ROW = Columns(JobToken, "server: for each server cores held there / its cores")

# Columns of scorers -----------------------------------------------------------------------------

LAST_SLOT = 1.01 / (1.01 + SLOT_SCALE)  # less is left of a job in its last slot
LEAST = 1e-6  # share of the cores or of the memory, and slots: less has no logarithm
MORE = 1.01  # times the cores of a task is more than a job with one task can use


class JobColumns(NamedTuple):
    """What scorers see of a job."""

    log_work_left: float
    log_slots_left: float
    log_processing: float
    log_demand: float
    log_volume: float
    log_age: float
    age: float
    cap: float
    memory: float
    held: float
    granted: float
    held_all: float
    second_phase: float
    log_slowdown: float
    last_slot: float
    log_dominant: float
    log_priced_demand: float
    log_tasks: float
    work_share: float
    log_flowtime: float
    memory_times_log_work_left: float
    memory_times_log_demand: float
    memory_times_log_memory: float
    memory_times_log_age: float
    memory_times_log_flowtime: float
    pressure_times_log_work_left: float
    pressure_times_log_slots_left: float
    pressure_times_log_demand: float
    pressure_times_log_flowtime: float
    pressure_times_memory_times_log_work_left: float
    pressure_times_memory_times_log_slots_left: float
    pressure_times_memory_times_log_memory: float
    pressure_times_memory_times_log_age: float
    tasks_times_log_slots_left: float
    tasks_times_log_demand: float
    tasks_times_log_age: float
    tasks_times_log_flowtime: float
    linear_times_log_work_left: float
    linear_times_log_slots_left: float
    linear_times_log_demand: float
    linear_times_log_flowtime: float
    linear_times_memory_times_log_work_left: float
    linear_times_memory_times_log_memory: float
    linear_times_tasks_times_log_slots_left: float


class Whole(NamedTuple):
    """The cluster and the visible jobs, in numbers that depend on no unit of time and on no size."""

    memory: float  # of all servers over the largest one's; 0 where memory does not count
    core_price: float  # the cores that the visible jobs ask for, ...
    memory_price: float  # ... and their memory, as shares of the sum of both
    mean_work: float  # left of the visible jobs
    pressure: float  # log1p of the slots that all cores need for it all, over the mean of the slots left
    tasks: float  # 1 if a visible job has several tasks to run
    linear: float  # 2 / k - 1 of the objective's l_k norm: 1 of a sum of flowtimes, 0 of their squares


class Seen(NamedTuple):
    """The entries of an observation."""

    jobs: Annotated[Floats32, "job", "feature"]
    servers: Annotated[Floats32, "server", len(ServerToken._fields)]
    globals: Annotated[Floats32, len(GlobalToken._fields)]


class Memo(NamedTuple):
    """Values that are the same for all jobs."""

    whole: Annotated[Floats, len(Whole._fields)]


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Measure the cluster and the visible jobs."""
    all_memory = several = memory = cores = work = slots = 0.0
    for j in range(seen.servers.shape[0]):
        all_memory += read(ServerToken, seen.servers[j]).memory
    count = 0
    for i in range(seen.jobs.shape[0]):
        job = read(JobToken, seen.jobs[i])
        if job.processing <= 0.0:  # no job
            continue
        demand = unscaled(job.demand, 1.0)
        if job.cap > MORE * demand:
            several = 1.0
        cores += demand
        memory += job.memory
        slots += unscaled(job.slots_left, SLOT_SCALE)
        work += unscaled(job.remaining_work, WORK_SCALE)
        count += 1
    if all_memory > 0.0:
        memory /= all_memory
    whole = Whole(
        memory=all_memory,
        core_price=cores / (cores + memory + LEAST),
        memory_price=memory / (cores + memory + LEAST),
        mean_work=work / max(count, 1) + LEAST,
        pressure=math.log1p(work / (slots / max(count, 1) + LEAST)),
        tasks=several,
        linear=2.0 * read(GlobalToken, seen.globals).norm - 1.0,
    )
    put(memo.whole, 0, whole)


@helper
def job_columns(job: JobToken, whole: Whole) -> JobColumns:
    """Return the columns of a job."""
    log_age, log_processing, log_demand = log_odds(job.age), log_odds(job.processing), log_odds(job.demand)
    log_work_left, log_slots_left = log_odds(job.remaining_work), log_odds(job.slots_left)
    held_all = 1.0 if job.held > 0.0 else 0.0
    last_slot = 1.0 if job.slots_left < LAST_SLOT else 0.0
    demand, memory, with_memory = unscaled(job.demand, 1.0) + LEAST, 0.0, 0.0
    if whole.memory > 0.0:
        with_memory = 1.0
        memory = job.memory / whole.memory
    flowtime = unscaled(job.age, SLOT_SCALE) + unscaled(job.slots_left, SLOT_SCALE) + LEAST
    log_flowtime = math.log(flowtime)
    memory_times_log_memory = with_memory * math.log(memory + LEAST)
    return JobColumns(
        log_work_left=log_work_left,
        log_slots_left=log_slots_left,
        log_processing=log_processing,
        log_demand=log_demand,
        log_volume=log_processing + log_demand,
        log_age=log_age,
        age=job.age,
        cap=job.cap,
        memory=job.memory,
        held=job.held,
        granted=job.granted,
        held_all=held_all,
        second_phase=job.second_phase,
        log_slowdown=log_age - log_processing,
        last_slot=last_slot,
        log_dominant=math.log(max(demand, memory)),
        log_priced_demand=math.log(whole.core_price * demand + whole.memory_price * memory + LEAST),
        log_tasks=math.log(max(job.cap, demand) / demand),
        work_share=unscaled(job.remaining_work, WORK_SCALE) / whole.mean_work,
        log_flowtime=log_flowtime,
        memory_times_log_work_left=with_memory * log_work_left,
        memory_times_log_demand=with_memory * log_demand,
        memory_times_log_memory=memory_times_log_memory,
        memory_times_log_age=with_memory * log_age,
        memory_times_log_flowtime=with_memory * log_flowtime,
        pressure_times_log_work_left=whole.pressure * log_work_left,
        pressure_times_log_slots_left=whole.pressure * log_slots_left,
        pressure_times_log_demand=whole.pressure * log_demand,
        pressure_times_log_flowtime=whole.pressure * log_flowtime,
        pressure_times_memory_times_log_work_left=whole.pressure * (with_memory * log_work_left),
        pressure_times_memory_times_log_slots_left=whole.pressure * with_memory * log_slots_left,
        pressure_times_memory_times_log_memory=whole.pressure * memory_times_log_memory,
        pressure_times_memory_times_log_age=whole.pressure * (with_memory * log_age),
        tasks_times_log_slots_left=whole.tasks * log_slots_left,
        tasks_times_log_demand=whole.tasks * log_demand,
        tasks_times_log_age=whole.tasks * log_age,
        tasks_times_log_flowtime=whole.tasks * log_flowtime,
        linear_times_log_work_left=whole.linear * log_work_left,
        linear_times_log_slots_left=whole.linear * log_slots_left,
        linear_times_log_demand=whole.linear * log_demand,
        linear_times_log_flowtime=whole.linear * log_flowtime,
        linear_times_memory_times_log_work_left=whole.linear * (with_memory * log_work_left),
        linear_times_memory_times_log_memory=whole.linear * memory_times_log_memory,
        linear_times_tasks_times_log_slots_left=whole.linear * (whole.tasks * log_slots_left),
    )


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of job i."""
    put(x, 0, job_columns(read(JobToken, seen.jobs[i]), read(Whole, memo.whole)))


pair_columns = no_pairs
_JOB = Scores("job", ("jobs",), "job")
TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("servers")),
    globals=names_of(GlobalToken),
    views={
        "priority": ScoredView("scores", (_JOB,), "squash", (-1.0, 1.0)),
        "pick": ScoredView("choice", (_JOB, Scores("close"))),
        "rule": RULE_VIEW,
    },
    columns={"job": ColumnSet(0, names_of(JobColumns))},
    numbers="rows.job",
    acting=("window", "packing"),
)
