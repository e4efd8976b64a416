"""The columns of PartialValue that scorers see, and the kernels that evaluate scorers."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import Floats, Floats32, Integers
from schedgym.core.jit import helper
from schedgym.core.kernels import Scoring
from schedgym.core.scoring import (
    ColumnSet,
    log_odds,
    unscaled,
)
from schedgym.problems.partial_value.dynamics import DYNAMICS
from schedgym.problems.partial_value.tokens import (
    GLOBAL_COLUMNS,
    JOB_COLUMNS,
    RESOURCE_COLUMNS,
    SHARE_SCALE,
    SLOT_SCALE,
    TASK_SCALE,
    VALUE_SCALE,
)
from schedgym.solvers.dual_prices import LINEAR, LOG, POWER, solve_slot

__all__ = ["COLUMNS", "NUMBERS", "SCORING"]

NUMBERS = "rows.job"  # the job of each row

JOB, RESOURCE = range(2)
COLUMNS = {
    "job": ColumnSet(
        JOB,
        (
            *("log value", "served", "log cap", "log slots left", "slots left", "last slot"),
            *("log marginal", "log density", "dominant", "log dominant", "log total demand"),
            *("log demand at load^1", "log demand at load^4", "log demand at dual prices"),
            *("linear * log demand at dual prices", "linear * log slots left", "whole * log dominant"),
            *("whole * log demand at dual prices", "contention * log slots left"),
            *("patience * log slots left", "patience * last slot"),
            *("patience * log demand at dual prices", "patience * log demand at load^1"),
        ),
    ),
    "resource": ColumnSet(RESOURCE, ("log load", "load", "seen")),
}
LEAST = 1e-6  # share of a resource, and load: smaller ones have no logarithm


class Seen(NamedTuple):
    """The entries of an observation."""

    jobs: Annotated[Floats32, "job", "feature"]
    resources: Annotated[Floats32, "resource", len(RESOURCE_COLUMNS)]
    globals: Annotated[Floats32, len(GLOBAL_COLUMNS)]


class Memo(NamedTuple):
    """Values that are the same for all jobs: sums, and the jobs and work space for computing dual prices.

    The other fields are those of :class:`~schedgym.solvers.dual_prices.SlotJobs` and
    :class:`~schedgym.solvers.dual_prices.DualScratch`.
    """

    weight: Annotated[Floats, "resources", 3]  # load, its fourth power, dual price
    total: Annotated[Floats, 4]  # their sums; mean of "log slots left" over the visible jobs ("patience")
    price: Annotated[Floats, "resources"]
    x: Annotated[Floats, "jobs"]
    served: Annotated[Floats, "jobs"]
    cap: Annotated[Floats, "jobs"]
    share: Annotated[Floats, "jobs", "resources"]
    utility: Annotated[Integers, "jobs"]
    value: Annotated[Floats, "jobs"]
    exponent: Annotated[Floats, "jobs"]
    low: Annotated[Floats, "jobs"]
    high: Annotated[Floats, "jobs"]
    flat: Annotated[Floats, "jobs"]
    reach: Annotated[Floats, "jobs"]
    centre: Annotated[Floats, "jobs"]
    bend: Annotated[Floats, "jobs"]
    best: Annotated[Floats, "jobs"]
    tight: Annotated[Integers, "resources"]
    free: Annotated[Integers, "resources"]
    best_price: Annotated[Floats, "resources"]
    load: Annotated[Floats, "resources"]
    before: Annotated[Floats, "resources"]
    step: Annotated[Floats, "resources"]
    unit: Annotated[Floats, "resources"]
    curvature: Annotated[Floats, "resources", "resources"]
    matrix: Annotated[Floats, "resources", "resources"]


@helper
def enter_jobs(seen: Seen, memo: Memo) -> int:
    """Read the visible jobs from their tokens; return their number."""
    count = 0
    for i in range(seen.jobs.shape[0]):
        job = seen.jobs[i]
        if job[0] <= 0.0:  # no job
            continue
        memo.value[count] = unscaled(float(job[0]), VALUE_SCALE)
        memo.cap[count] = unscaled(float(job[2]), TASK_SCALE)
        memo.utility[count] = LINEAR if job[7] > 0.0 else POWER if job[8] > 0.0 else LOG
        memo.served[count] = unscaled(float(job[10]), TASK_SCALE)
        memo.exponent[count] = job[11]
        for r in range(memo.price.shape[0]):
            memo.share[count, r] = unscaled(float(job[len(JOB_COLUMNS) + r]), SHARE_SCALE)
        count += 1
    return count


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Compute the loads of the resources, and the prices at which Algorithm 1 sells this slot.

    Where no resource is scarce all prices are 0, and loads take their place.
    """
    weight, total = memo.weight, memo.total
    for k in range(3):
        total[k] = 0.0
    total[3] = 0.0
    if code == JOB:
        count = enter_jobs(seen, memo)
        work: Any = memo
        solve_slot(count, work, work, memo.price, memo.x)
        for i in range(seen.jobs.shape[0]):
            if seen.jobs[i, 0] > 0.0:
                total[3] += math.log(unscaled(float(seen.jobs[i, 3]), SLOT_SCALE) + 1.0) / count
    for r in range(seen.resources.shape[0]):
        wanted = unscaled(float(seen.resources[r, 0]), 1.0) + LEAST
        weight[r, 0] = wanted
        weight[r, 1] = wanted * wanted * wanted * wanted
        weight[r, 2] = memo.price[r]
        for k in range(3):
            total[k] += weight[r, k]
    if total[2] == 0.0:
        total[2] = total[0]
        for r in range(seen.resources.shape[0]):
            weight[r, 2] = weight[r, 0]


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of job i, or of resource i."""
    if code == RESOURCE:
        x[0] = log_odds(float(seen.resources[i, 0]))
        x[1] = seen.resources[i, 0]
        x[2] = seen.resources[i, 1]
        return
    job, weight, total = seen.jobs[i], memo.weight, memo.total
    left, linear, whole_tasks = float(job[3]), float(job[7]), float(seen.globals[3])
    most, whole, priced, steeply, sold, load = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for r in range(weight.shape[0]):
        demand = unscaled(float(job[len(JOB_COLUMNS) + r]), SHARE_SCALE) + LEAST
        most = max(most, demand)
        whole += demand
        priced += demand * weight[r, 0]
        steeply += demand * weight[r, 1]
        sold += demand * weight[r, 2]
        load = max(load, weight[r, 0])
    x[0] = log_odds(float(job[0]))
    x[1] = job[1]
    x[2] = log_odds(float(job[2]))
    x[3] = math.log(unscaled(left, SLOT_SCALE) + 1.0)
    x[4] = left
    x[5] = 1.0 if left < 0.01 else 0.0
    x[6] = log_odds(float(job[4]))
    x[7] = log_odds(float(job[5]))
    x[8] = job[6]
    x[9] = math.log(most)
    x[10] = math.log(whole)
    x[11] = math.log(priced / total[0])
    x[12] = math.log(steeply / total[1])
    x[13] = math.log(sold / total[2] + LEAST)
    x[14] = linear * x[13]
    x[15] = linear * x[3]
    x[16] = whole_tasks * x[9]
    x[17] = whole_tasks * x[13]
    x[18] = math.log(load) * x[3]
    x[19] = total[3] * x[3]
    x[20] = total[3] * x[5]
    x[21] = total[3] * x[13]
    x[22] = total[3] * x[11]


@helper
def pair_columns(seen: Seen, memo: Memo, code: int, i: int, j: int, x: Any) -> None:
    """Do nothing: no pairs are scored."""


SCORING = Scoring(
    __name__, DYNAMICS, Seen, Memo, prepare, token_columns, pair_columns, ("priority", "prices")
)
