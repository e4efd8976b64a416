"""The columns of FlowtimePacking that scorers see, and the kernels that evaluate scorers."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import SCRATCH, SHARED, Floats32
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
)
from schedgym.core.stepping import Exchange, always_fits
from schedgym.core.tables import accessor
from schedgym.problems.flowtime.dynamics import access, advance, observe, pick, pick_fits, prioritize
from schedgym.problems.flowtime.tokens import GLOBAL_COLUMNS, SLOT_SCALE

__all__ = ["COLUMNS", "PLAY", "Acting", "columns", "score"]

COLUMNS = {
    "job": ColumnSet(
        0,
        (
            *("log work left", "log slots left", "log processing", "log demand", "log volume", "log age"),
            *("age", "cap", "memory", "held", "granted", "held all", "second phase", "log slowdown"),
            "last slot",
        ),
    )
}
LAST_SLOT = 1.01 / (1.01 + SLOT_SCALE)  # less is left of a job in its last slot


class Seen(NamedTuple):
    """The entries of an observation."""

    jobs: Annotated[Floats32, "job", "feature"]
    globals: Annotated[Floats32, len(GLOBAL_COLUMNS)]


class Memo(NamedTuple):
    """Work space: none is needed."""


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Do nothing: the columns of a job are made of its token alone."""


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
    "pick": pure_kernel(
        lambda tables, played: play_each(access, pick_fits, pick, advance, observe, choose, tables, played)
    ),
}
