"""The columns of ParallelJCT that scorers see, and the kernels that evaluate scorers."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import Floats, Floats32
from schedgym.core.jit import helper
from schedgym.core.kernels import Scoring
from schedgym.core.order import sort
from schedgym.core.scoring import (
    EDGE,
    ColumnSet,
    log_odds,
    unscaled,
)
from schedgym.problems.parallel_jct.dynamics import DYNAMICS
from schedgym.problems.parallel_jct.tokens import (
    COUNT_SCALE,
    GLOBAL_COLUMNS,
    JOB_COLUMNS,
    MOVE_COLUMNS,
    SERVER_COLUMNS,
    TIME_SCALE,
)

__all__ = ["COLUMNS", "NUMBERS", "SCORING"]

NUMBERS = "state.queue"  # the job of each row

JOB, SERVER, MOVE = range(3)
LEAST_DEVIATION = 0.1  # of the logarithm of loads: what differs less counts as equal
#: columns that depend neither on the unit of time nor on the number of servers, if jobs have as many tasks
#: more: those of the whole observation, which all jobs share, and those that some of them are multiplied with
_WHOLE = ("available", "idle", "crowd", "pressure", "log offered", "pressure * available", "pressure * idle")
_BOTH = ("z load", "relative time", "log wait", "stretch", "energy")
WHOLE, BOTH = len(_WHOLE), len(_BOTH)
_SERVER = tuple(f"servers {k}" for k in range(len(SERVER_COLUMNS)))
COLUMNS = {
    "job": ColumnSet(
        JOB,
        (
            *("log bound", "log time", "log load", "log tasks", "log age", "age", "energy"),
            *("log slowdown", "available * log time", "available * log load"),
            *("z load", "relative time", "log wait", "stretch", "spread"),
            *_WHOLE,
            *(f"pressure * {name}" for name in _BOTH),
            *(f"idle * {name}" for name in _BOTH),
            *(f"available * {name}" for name in _BOTH),
        ),
    ),
    "server": ColumnSet(SERVER, _SERVER),
    "move": ColumnSet(MOVE, (), (*(f"moves {k}" for k in range(len(MOVE_COLUMNS))), *_SERVER)),
}


class Seen(NamedTuple):
    """The entries of an observation; the moves of all tasks to all servers stand one after the other."""

    jobs: Annotated[Floats32, "job", len(JOB_COLUMNS)]
    servers: Annotated[Floats32, "server", len(SERVER_COLUMNS)]
    moves: Annotated[Floats32, "move", len(MOVE_COLUMNS)]
    globals: Annotated[Floats32, len(GLOBAL_COLUMNS)]


class Memo(NamedTuple):
    """What the columns of all jobs share."""

    most: Annotated[Floats, "servers"]  # share of all vCPU that 1, 2, ... tasks can have, one on a server
    whole: Annotated[Floats, 9]  # see ``measure``


@helper
def measure(seen: Seen, whole: Any) -> None:
    """Write the columns of the whole observation, and units.

    These are: 0, the available share of all vCPU; 1, the share of servers on which no task runs; 2, log1p of
    the running tasks of a server; 3, log1p of the waiting tasks of a server ("pressure"); 4, the logarithm
    of the load offered so far; 5 and 6, products; 7, the mean of the logarithm of loads over 100 s of all
    servers; 8, one over its standard deviation.
    """
    servers, jobs, about = seen.servers, seen.jobs, seen.globals
    count = servers.shape[0]
    idle = running = tasks = 0.0
    for j in range(count):
        idle += 1.0 if servers[j, 2] == 0.0 else 0.0
        running += unscaled(float(servers[j, 2]), COUNT_SCALE)
    shown = 0
    for i in range(jobs.shape[0]):
        if jobs[i, 1] > 0.0:
            tasks += unscaled(float(jobs[i, 1]), COUNT_SCALE)
            shown += 1
    beyond = unscaled(float(about[5]), COUNT_SCALE)  # they are taken to be like those that are shown
    tasks *= 1.0 + beyond / max(shown, 1)
    deviation = unscaled(float(about[12]), 1.0)
    whole[0] = float(about[3])
    whole[1] = idle / count
    whole[2] = math.log1p(running / count)
    whole[3] = math.log1p(tasks / count)
    whole[4] = log_odds(float(about[13]))
    whole[5] = whole[3] * whole[0]
    whole[6] = whole[3] * whole[1]
    whole[7] = log_odds(float(about[11]))
    whole[8] = 1.0 / max(deviation, LEAST_DEVIATION)


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Measure the whole observation, and add up what is available, from the server with the most on."""
    if code == JOB:
        measure(seen, memo.whole)
    servers, most = seen.servers, memo.most
    count, capacity, free = servers.shape[0], 0.0, 0.0
    for j in range(count):
        capacity += float(servers[j, 0])
        most[j] = -float(servers[j, 0]) * float(servers[j, 1])
    sort(most, count)
    for j in range(count):
        free -= most[j] / capacity
        most[j] = free


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of job i, or of server i; those of a move are of the pair."""
    if code == MOVE:
        return
    if code == SERVER:
        for k in range(seen.servers.shape[1]):
            x[k] = seen.servers[i, k]
        return
    job, available = seen.jobs[i], float(seen.globals[3])
    age, tasks = float(job[0]), float(job[1])
    number = int(math.floor(unscaled(tasks, COUNT_SCALE) + 0.5))
    own = memo.most[min(max(number, 1), memo.most.shape[0]) - 1]
    log_bound, log_load = log_odds(float(job[5])), log_odds(float(job[2]))
    alone = max(log_bound, log_load - math.log(own + EDGE))
    waited = math.log1p(unscaled(age, TIME_SCALE))
    x[0] = log_bound
    x[1] = alone
    x[2] = log_load
    x[3] = log_odds(tasks)
    x[4] = waited
    x[5] = age
    x[6] = job[3]
    x[7] = waited - alone
    x[8] = available * alone
    x[9] = available * log_load
    whole, first = memo.whole, 15 + WHOLE
    x[10] = (log_load - whole[7]) * whole[8]
    x[11] = alone - whole[7]
    x[12] = math.log1p(unscaled(age, TIME_SCALE) / (TIME_SCALE * math.exp(whole[7])))
    x[13] = math.log(own + EDGE) - math.log(min(number, memo.most.shape[0]) / memo.most.shape[0])
    x[14] = math.log(number / memo.most.shape[0])
    for k in range(WHOLE):
        x[15 + k] = whole[k]
    for k in range(BOTH):
        value = x[10 + k] if k < BOTH - 1 else x[6]
        x[first + k] = whole[3] * value
        x[first + BOTH + k] = whole[1] * value
        x[first + 2 * BOTH + k] = whole[0] * value


@helper
def pair_columns(seen: Seen, memo: Memo, code: int, i: int, j: int, x: Any) -> None:
    """Write the columns of the move of task i to server j."""
    moves, servers = seen.moves, seen.servers
    for k in range(moves.shape[1]):
        x[k] = moves[i * servers.shape[0] + j, k]
    for k in range(servers.shape[1]):
        x[moves.shape[1] + k] = servers[j, k]


SCORING = Scoring(
    __name__, DYNAMICS, Seen, Memo, prepare, token_columns, pair_columns, ("pick", "place", "search")
)
