"""The tokens of PartialValue's observations, and the columns that scorers make of them."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import Floats, Floats32, Integers
from schedgym.core.columns import Columns, names_of, places, put, read
from schedgym.core.jit import helper
from schedgym.core.scorer import log_odds, no_pairs, unscaled
from schedgym.core.tokens import RULE_VIEW, ColumnSet, ScoredView, Scores, Tokens, TokenSet
from schedgym.problems.partial_value.rules import MOST_SCORE
from schedgym.solvers.dual_prices import LINEAR, LOG, POWER, solve_slot

VALUE_SCALE = 3.0
TASK_SCALE = 20.0
SLOT_SCALE = 8.0
SHARE_SCALE = 0.02
DENSITY_SCALE = 50.0
COUNT_SCALE = 32.0


class JobToken(NamedTuple):
    """A job; behind it stand its shares of the resources."""

    value: Annotated[float, "q(value, 3)"]
    served: Annotated[float, "served share"]
    cap: Annotated[float, "q(u, 20)"]
    slots_left: Annotated[float, "q(slots left, 8), 0 if hidden"]
    marginal: Annotated[float, "q(marginal, 1)"]
    density: Annotated[float, "q(marginal, 50 dominant share)"]
    dominant: Annotated[float, "dominant share of u tasks, at most 1"]
    linear: Annotated[float, "1 if its utility is linear"]
    power: Annotated[float, "1 if it is a power"]
    log: Annotated[float, "1 if it is a logarithm"]
    done: Annotated[float, "q(y, 20)"]
    exponent: Annotated[float, "exponent of a power"]


class ResourceToken(NamedTuple):
    """A resource."""

    load: Annotated[float, "q(load if all active jobs got u, 1)"]
    seen: Annotated[float, "the visible jobs' part of that load"]


class GlobalToken(NamedTuple):
    """The whole."""

    slot: Annotated[float, "q(slot, 32)"]
    jobs: Annotated[float, "q(active jobs, 32)"]
    beyond: Annotated[float, "q(jobs beyond the window, 32)"]
    whole: Annotated[float, "1 if tasks are whole"]


JOB = places(JobToken)
JOB_FEATURES = len(JobToken._fields)
JOB_ROW = Columns(JobToken, "resource: q(share, 0.02) of each resource")

# Columns of scorers -----------------------------------------------------------------------------

OF_JOB, OF_RESOURCE = range(2)  # codes of the sets of columns
LEAST = 1e-6  # share of a resource, and load: smaller ones have no logarithm


class JobColumns(NamedTuple):
    """What scorers see of a job."""

    log_value: float
    served: float
    log_cap: float
    log_slots_left: float
    slots_left: float
    last_slot: float
    log_marginal: float
    log_density: float
    dominant: float
    log_dominant: float
    log_total_demand: float
    log_demand_at_load_to_the_1: float
    log_demand_at_load_to_the_4: float
    log_demand_at_dual_prices: float
    linear_times_log_demand_at_dual_prices: float
    linear_times_log_slots_left: float
    whole_times_log_dominant: float
    whole_times_log_demand_at_dual_prices: float
    contention_times_log_slots_left: float
    patience_times_log_slots_left: float
    patience_times_last_slot: float
    patience_times_log_demand_at_dual_prices: float
    patience_times_log_demand_at_load_to_the_1: float


class ResourceColumns(NamedTuple):
    """What they see of a resource."""

    log_load: float
    load: float
    seen: float


class Weights(NamedTuple):
    """By what demands for a resource are weighted."""

    load: float
    load_to_the_4: float
    dual_price: float


class Totals(NamedTuple):
    """What the columns of all jobs share: the sums of the weights, and the patience of jobs."""

    load: float
    load_to_the_4: float
    dual_price: float
    patience: float  # mean of "log slots left" over the visible jobs


class Seen(NamedTuple):
    """The entries of an observation."""

    jobs: Annotated[Floats32, "job", "feature"]
    resources: Annotated[Floats32, "resource", len(ResourceToken._fields)]
    globals: Annotated[Floats32, len(GlobalToken._fields)]


class Memo(NamedTuple):
    """Values that are the same for all jobs: sums, and the jobs and work space for computing dual prices.

    The other fields are those of :class:`~schedgym.solvers.dual_prices.SlotJobs` and
    :class:`~schedgym.solvers.dual_prices.DualScratch`.
    """

    weight: Annotated[Floats, "resources", len(Weights._fields)]
    total: Annotated[Floats, len(Totals._fields)]
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
        job = read(JobToken, seen.jobs[i])
        if job.value <= 0.0:  # no job
            continue
        memo.value[count] = unscaled(job.value, VALUE_SCALE)
        memo.cap[count] = unscaled(job.cap, TASK_SCALE)
        memo.utility[count] = LINEAR if job.linear > 0.0 else POWER if job.power > 0.0 else LOG
        memo.served[count] = unscaled(job.done, TASK_SCALE)
        memo.exponent[count] = job.exponent
        for r in range(memo.price.shape[0]):
            memo.share[count, r] = unscaled(float(seen.jobs[i, JOB_FEATURES + r]), SHARE_SCALE)
        count += 1
    return count


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Compute the loads of the resources, and the prices at which Algorithm 1 sells this slot.

    Where no resource is scarce all prices are 0, and loads take their place.
    """
    patience = load = load_to_the_4 = dual_price = 0.0
    if code == OF_JOB:
        count = enter_jobs(seen, memo)
        work: Any = memo
        solve_slot(count, work, work, memo.price, memo.x)
        for i in range(seen.jobs.shape[0]):
            job = read(JobToken, seen.jobs[i])
            if job.value > 0.0:
                patience += math.log(unscaled(job.slots_left, SLOT_SCALE) + 1.0) / count
    for r in range(seen.resources.shape[0]):
        wanted = unscaled(read(ResourceToken, seen.resources[r]).load, 1.0) + LEAST
        own = Weights(load=wanted, load_to_the_4=wanted * wanted * wanted * wanted, dual_price=memo.price[r])
        put(memo.weight[r], 0, own)
        load += own.load
        load_to_the_4 += own.load_to_the_4
        dual_price += own.dual_price
    if dual_price == 0.0:
        dual_price = load
        for r in range(seen.resources.shape[0]):
            own = read(Weights, memo.weight[r])
            put(memo.weight[r], 0, Weights(own.load, own.load_to_the_4, own.load))
    put(memo.total, 0, Totals(load, load_to_the_4, dual_price, patience))


@helper
def job_columns(seen: Seen, memo: Memo, i: int) -> JobColumns:
    """Return the columns of job i."""
    job, total = read(JobToken, seen.jobs[i]), read(Totals, memo.total)
    whole = read(GlobalToken, seen.globals).whole
    most, demands, priced, steeply, sold, load = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for r in range(memo.weight.shape[0]):
        weight = read(Weights, memo.weight[r])
        demand = unscaled(float(seen.jobs[i, JOB_FEATURES + r]), SHARE_SCALE) + LEAST
        most = max(most, demand)
        demands += demand
        priced += demand * weight.load
        steeply += demand * weight.load_to_the_4
        sold += demand * weight.dual_price
        load = max(load, weight.load)
    log_slots_left = math.log(unscaled(job.slots_left, SLOT_SCALE) + 1.0)
    last_slot = 1.0 if job.slots_left < 0.01 else 0.0
    log_dominant = math.log(most)
    log_at_load = math.log(priced / total.load)
    log_at_prices = math.log(sold / total.dual_price + LEAST)
    return JobColumns(
        log_value=log_odds(job.value),
        served=job.served,
        log_cap=log_odds(job.cap),
        log_slots_left=log_slots_left,
        slots_left=job.slots_left,
        last_slot=last_slot,
        log_marginal=log_odds(job.marginal),
        log_density=log_odds(job.density),
        dominant=job.dominant,
        log_dominant=log_dominant,
        log_total_demand=math.log(demands),
        log_demand_at_load_to_the_1=log_at_load,
        log_demand_at_load_to_the_4=math.log(steeply / total.load_to_the_4),
        log_demand_at_dual_prices=log_at_prices,
        linear_times_log_demand_at_dual_prices=job.linear * log_at_prices,
        linear_times_log_slots_left=job.linear * log_slots_left,
        whole_times_log_dominant=whole * log_dominant,
        whole_times_log_demand_at_dual_prices=whole * log_at_prices,
        contention_times_log_slots_left=math.log(load) * log_slots_left,
        patience_times_log_slots_left=total.patience * log_slots_left,
        patience_times_last_slot=total.patience * last_slot,
        patience_times_log_demand_at_dual_prices=total.patience * log_at_prices,
        patience_times_log_demand_at_load_to_the_1=total.patience * log_at_load,
    )


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of job i, or of resource i."""
    if code == OF_RESOURCE:
        resource = read(ResourceToken, seen.resources[i])
        own = ResourceColumns(log_load=log_odds(resource.load), load=resource.load, seen=resource.seen)
        put(x, 0, own)
    else:
        put(x, 0, job_columns(seen, memo, i))


pair_columns = no_pairs
TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("resources")),
    globals=names_of(GlobalToken),
    views={
        "priority": ScoredView(
            "scores", (Scores("job", ("jobs",), "job"),), "clip", (-1.0, 1.0), scale=MOST_SCORE
        ),
        "prices": ScoredView(
            "scores", (Scores("resource", ("resources",), "resource"),), "clip", (-50.0, 50.0)
        ),
        "rule": RULE_VIEW,
    },
    columns={
        "job": ColumnSet(OF_JOB, names_of(JobColumns)),
        "resource": ColumnSet(OF_RESOURCE, names_of(ResourceColumns)),
    },
    numbers="rows.job",
    acting=("window", "single_task", "serving"),
)
