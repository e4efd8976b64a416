"""The columns of FlowtimePacking that scorers see, and the kernels that evaluate scorers."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import Floats, Floats32
from schedgym.core.jit import helper
from schedgym.core.kernels import Scoring
from schedgym.core.scoring import (
    ColumnSet,
    log_odds,
    unscaled,
)
from schedgym.problems.flowtime.dynamics import DYNAMICS
from schedgym.problems.flowtime.tokens import GLOBAL_COLUMNS, SERVER_COLUMNS, SLOT_SCALE, WORK_SCALE

__all__ = ["COLUMNS", "NUMBERS", "SCORING"]

NUMBERS = "rows.job"  # the job of each row

COLUMNS = {
    "job": ColumnSet(
        0,
        (
            *("log work left", "log slots left", "log processing", "log demand", "log volume", "log age"),
            *("age", "cap", "memory", "held", "granted", "held all", "second phase", "log slowdown"),
            "last slot",
            *("log dominant", "log priced demand", "log tasks", "work share", "log flowtime"),
            *("memory * log work left", "memory * log demand", "memory * log memory"),
            *("memory * log age", "memory * log flowtime"),
            *("pressure * log work left", "pressure * log slots left", "pressure * log demand"),
            *("pressure * log flowtime", "pressure * memory * log work left"),
            *("pressure * memory * log slots left", "pressure * memory * log memory"),
            *("pressure * memory * log age", "tasks * log slots left", "tasks * log demand"),
            *("tasks * log age", "tasks * log flowtime"),
        ),
    )
}
LAST_SLOT = 1.01 / (1.01 + SLOT_SCALE)  # less is left of a job in its last slot
LEAST = 1e-6  # share of the cores or of the memory, and slots: less has no logarithm
MORE = 1.01  # times the cores of a task is more than a job with one task can use


class Seen(NamedTuple):
    """The entries of an observation."""

    jobs: Annotated[Floats32, "job", "feature"]
    servers: Annotated[Floats32, "server", len(SERVER_COLUMNS)]
    globals: Annotated[Floats32, len(GLOBAL_COLUMNS)]


class Memo(NamedTuple):
    """Values that are the same for all jobs; see ``prepare``."""

    whole: Annotated[Floats, 6]


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Measure the cluster and the visible jobs, in numbers that depend on no unit of time and on no size.

    These are: 0, the memory of all servers over the largest one's, 0 where memory does not count; 1 and 2,
    the cores and the memory that the visible jobs ask for, as shares of their sum; 3, their mean work left;
    4, the slots that all cores need for it all, over the mean of the slots left ("pressure": log1p of it);
    5, 1 if a visible job has several tasks to run ("tasks").
    """
    jobs, whole = seen.jobs, memo.whole
    memory = cores = work = slots = 0.0
    whole[0] = 0.0
    whole[5] = 0.0
    for j in range(seen.servers.shape[0]):
        whole[0] += float(seen.servers[j, 2])
    count = 0
    for i in range(jobs.shape[0]):
        if jobs[i, 1] <= 0.0:  # no job
            continue
        demand = unscaled(float(jobs[i, 2]), 1.0)
        if float(jobs[i, 6]) > MORE * demand:
            whole[5] = 1.0
        cores += demand
        memory += float(jobs[i, 3])
        slots += unscaled(float(jobs[i, 4]), SLOT_SCALE)
        work += unscaled(float(jobs[i, 5]), WORK_SCALE)
        count += 1
    if whole[0] > 0.0:
        memory /= whole[0]
    whole[1] = cores / (cores + memory + LEAST)
    whole[2] = memory / (cores + memory + LEAST)
    whole[3] = work / max(count, 1) + LEAST
    whole[4] = math.log1p(work / (slots / max(count, 1) + LEAST))


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of job i."""
    job = seen.jobs[i]
    age, left, held = float(job[0]), float(job[4]), float(job[7])
    log_age, log_length, log_demand = log_odds(age), log_odds(float(job[1])), log_odds(float(job[2]))
    x[0] = log_odds(float(job[5]))
    x[1] = log_odds(left)
    x[2] = log_length
    x[3] = log_demand
    x[4] = log_length + log_demand
    x[5] = log_age
    x[6] = age
    x[7] = job[6]
    x[8] = job[3]
    x[9] = held
    x[10] = job[8]
    x[11] = 1.0 if held > 0.0 else 0.0
    x[12] = job[9]
    x[13] = log_age - log_length
    x[14] = 1.0 if left < LAST_SLOT else 0.0
    whole = memo.whole
    demand, memory, with_memory = unscaled(float(job[2]), 1.0) + LEAST, 0.0, 0.0
    if whole[0] > 0.0:
        with_memory = 1.0
        memory = float(job[3]) / whole[0]
    pressure, several = whole[4], whole[5]
    log_flowtime = math.log(unscaled(age, SLOT_SCALE) + unscaled(left, SLOT_SCALE) + LEAST)
    x[15] = math.log(max(demand, memory))
    x[16] = math.log(whole[1] * demand + whole[2] * memory + LEAST)
    x[17] = math.log(max(float(job[6]), demand) / demand)
    x[18] = unscaled(float(job[5]), WORK_SCALE) / whole[3]
    x[19] = log_flowtime
    x[20] = with_memory * x[0]
    x[21] = with_memory * log_demand
    x[22] = with_memory * math.log(memory + LEAST)
    x[23] = with_memory * log_age
    x[24] = with_memory * log_flowtime
    x[25] = pressure * x[0]
    x[26] = pressure * x[1]
    x[27] = pressure * log_demand
    x[28] = pressure * log_flowtime
    x[29] = pressure * x[20]
    x[30] = pressure * with_memory * x[1]
    x[31] = pressure * x[22]
    x[32] = pressure * x[23]
    x[33] = several * x[1]
    x[34] = several * log_demand
    x[35] = several * log_age
    x[36] = several * log_flowtime


@helper
def pair_columns(seen: Seen, memo: Memo, code: int, i: int, j: int, x: Any) -> None:
    """Do nothing: no pairs are scored."""


SCORING = Scoring(__name__, DYNAMICS, Seen, Memo, prepare, token_columns, pair_columns, ("priority", "pick"))
