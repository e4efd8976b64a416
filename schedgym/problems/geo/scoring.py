"""The columns of GeoAssign and GeoFair that scorers see, and the kernels that evaluate scorers."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import Bytes, Floats, Floats32
from schedgym.core.jit import helper
from schedgym.core.kernels import Scoring
from schedgym.core.scoring import (
    ColumnSet,
    log_odds,
    next_set,
    unscaled,
)
from schedgym.problems.geo.dynamics import DYNAMICS
from schedgym.problems.geo.tokens import AGE_SCALE, COUNT_SCALE, GLOBAL_COLUMNS, JOB_COLUMNS, SITE_COLUMNS

__all__ = ["COLUMNS", "NUMBERS", "SCORING"]

NUMBERS = "state.job"  # the job of each row

JOB = (
    *("log unfinished", "log waiting", "log running", "log age", "age", "new"),
    *("log bottleneck", "log largest group", "contention", "worst contention"),
    *("waiting share", "log able here", "log here"),
)
#: in views that order jobs, a job's token ends with its assigned tasks at each site, behind its waiting ones
COLUMNS = {"job": ColumnSet(0, JOB), "ordered job": ColumnSet(1, JOB)}
LEAST = 1e-6  # of a number that others are divided by


class Seen(NamedTuple):
    """The entries of an observation."""

    jobs: Annotated[Floats32, "job", "feature"]
    job_mask: Annotated[Bytes, "job"]
    sites: Annotated[Floats32, "site", len(SITE_COLUMNS)]
    globals: Annotated[Floats32, len(GLOBAL_COLUMNS)]


class Memo(NamedTuple):
    """The slots of each site, and how many tasks all visible jobs have there for each slot."""

    slots: Annotated[Floats, "sites"]
    load: Annotated[Floats, "sites"]


@helper
def tasks_at(seen: Seen, i: int, site: int, code: int) -> float:
    """Return the tasks of job i at a site."""
    count, first = seen.sites.shape[0], seen.jobs.shape[1] - (1 + code) * seen.sites.shape[0]
    tasks = unscaled(float(seen.jobs[i, first + site]), COUNT_SCALE)
    if code == 1:
        tasks += unscaled(float(seen.jobs[i, first + count + site]), COUNT_SCALE)
    return tasks


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Add up the tasks at each site."""
    slots, load = memo.slots, memo.load
    count = slots.shape[0]
    for m in range(count):
        slots[m] = max(unscaled(float(seen.sites[m, 0]), COUNT_SCALE), 1.0)
        load[m] = 0.0
    jobs = seen.jobs.shape[0]
    i = next_set(seen.job_mask, 0, jobs)
    while i < jobs:
        for m in range(count):
            load[m] += tasks_at(seen, i, m, code)
        i = next_set(seen.job_mask, i + 1, jobs)
    for m in range(count):
        load[m] /= slots[m]


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of job i."""
    job, slots, load = seen.jobs[i], memo.slots, memo.load
    count = slots.shape[0]
    unfinished, waiting, age = float(job[0]), float(job[1]), float(job[3])
    bottleneck, total, contention, worst, largest = 0.0, 0.0, 0.0, 0.0, 0.0
    for m in range(count):
        mine = tasks_at(seen, i, m, code)
        bottleneck = max(bottleneck, mine / slots[m])
        total += mine
        contention += mine * load[m]
        if mine > 0.0:
            worst = max(worst, load[m])
    for k in range(len(JOB_COLUMNS), job.shape[0] - (1 + code) * count):
        largest = max(largest, unscaled(float(job[k]), COUNT_SCALE))
    x[0] = log_odds(unfinished)
    x[1] = log_odds(waiting)
    x[2] = math.log1p(unscaled(float(job[2]), COUNT_SCALE))
    x[3] = math.log1p(unscaled(age, AGE_SCALE))
    x[4] = age
    x[5] = job[4]
    x[6] = math.log1p(bottleneck)
    x[7] = math.log1p(largest)
    x[8] = contention / max(total, LEAST)
    x[9] = math.log1p(worst)
    x[10] = waiting / max(unfinished, LEAST)
    x[11] = math.log1p(unscaled(float(job[5]), COUNT_SCALE))
    x[12] = math.log1p(unscaled(float(job[6]), COUNT_SCALE))


@helper
def pair_columns(seen: Seen, memo: Memo, code: int, i: int, j: int, x: Any) -> None:
    """Do nothing: no pairs are scored."""


SCORING = Scoring(__name__, DYNAMICS, Seen, Memo, prepare, token_columns, pair_columns, ("priority", "pick"))
