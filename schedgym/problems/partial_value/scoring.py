"""The columns of PartialValue that scorers see, and the kernels that evaluate scorers."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import SCRATCH, SHARED, Floats, Floats32
from schedgym.core.jit import helper, pure_kernel
from schedgym.core.scoring import (
    ColumnSet,
    Form,
    Given,
    Work,
    act,
    columns_each,
    log_odds,
    play_each,
    score_each,
    unscaled,
)
from schedgym.core.stepping import Exchange, always_fits
from schedgym.core.tables import accessor
from schedgym.problems.partial_value.dynamics import access, advance, observe, prioritize, sell
from schedgym.problems.partial_value.tokens import (
    GLOBAL_COLUMNS,
    JOB_COLUMNS,
    RESOURCE_COLUMNS,
    SHARE_SCALE,
    SLOT_SCALE,
)

__all__ = ["COLUMNS", "PLAY", "Acting", "columns", "score"]

JOB, RESOURCE = range(2)
COLUMNS = {
    "job": ColumnSet(
        JOB,
        (
            *("log value", "served", "log cap", "log slots left", "slots left", "last slot"),
            *("log marginal", "log density", "dominant", "log dominant", "log total demand"),
            *("log demand at load^1", "log demand at load^4"),
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
    """The load of each resource and its fourth power, and the sums of both."""

    load: Annotated[Floats, "resources", 2]
    total: Annotated[Floats, 2]


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Compute the loads of the resources."""
    load, total = memo.load, memo.total
    total[0] = 0.0
    total[1] = 0.0
    for r in range(seen.resources.shape[0]):
        wanted = unscaled(float(seen.resources[r, 0]), 1.0) + LEAST
        load[r, 0] = wanted
        load[r, 1] = wanted * wanted * wanted * wanted
        total[0] += load[r, 0]
        total[1] += load[r, 1]


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of job i, or of resource i."""
    if code == RESOURCE:
        x[0] = log_odds(float(seen.resources[i, 0]))
        x[1] = seen.resources[i, 0]
        x[2] = seen.resources[i, 1]
        return
    job, load, total = seen.jobs[i], memo.load, memo.total
    left = float(job[3])
    most, whole, priced, steeply = 0.0, 0.0, 0.0, 0.0
    for r in range(load.shape[0]):
        demand = unscaled(float(job[len(JOB_COLUMNS) + r]), SHARE_SCALE) + LEAST
        most = max(most, demand)
        whole += demand
        priced += demand * load[r, 0]
        steeply += demand * load[r, 1]
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


@helper
def pair_columns(seen: Seen, memo: Memo, code: int, i: int, j: int, x: Any) -> None:
    """Do nothing: no pairs are scored."""


class Acting(NamedTuple):
    """What a scorer reads and writes in one environment."""

    form: Annotated[Form, SHARED]
    seen: Seen
    given: Given
    exchange: Exchange
    memo: Annotated[Memo, SCRATCH]
    work: Annotated[Work, SCRATCH]


regard = accessor(Acting)


@pure_kernel
def score(table: Any, tools: Any, count: int) -> None:
    """See :func:`~schedgym.core.scoring.score_each`."""
    score_each(regard, prepare, token_columns, pair_columns, table, tools, count)


@pure_kernel
def columns(table: Any, tools: Any, rows: Any) -> None:
    """See :func:`~schedgym.core.scoring.columns_each`."""
    columns_each(regard, prepare, token_columns, pair_columns, table, tools, rows)


@helper
def choose(table: Any, tools: Any, b: int) -> Any:
    """Write the action of environment b; see :func:`~schedgym.core.scoring.act`."""
    return act(regard(table, tools, b), prepare, token_columns, pair_columns)


#: action view -> the kernel that plays whole episodes; see :func:`~schedgym.core.scoring.play_each`
PLAY: dict[str, Any] = {
    "priority": pure_kernel(
        lambda tables, played: play_each(
            access, always_fits, prioritize, advance, observe, choose, tables, played
        )
    ),
    "prices": pure_kernel(
        lambda tables, played: play_each(access, always_fits, sell, advance, observe, choose, tables, played)
    ),
}
