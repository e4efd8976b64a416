"""The columns of SingleJob that scorers see, and the kernels that evaluate scorers."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import Floats, Floats32
from schedgym.core.jit import helper
from schedgym.core.kernels import Scoring
from schedgym.core.scoring import (
    EDGE,
    ColumnSet,
    log_odds,
    unscaled,
)
from schedgym.problems.single_job.dynamics import DYNAMICS
from schedgym.problems.single_job.tokens import GLOBAL_COLUMNS, JOB_COLUMNS, PAIR_COLUMNS

__all__ = ["COLUMNS", "SCORING"]

PLACE, MOVE = range(2)
COLUMNS = {
    "place": ColumnSet(
        PLACE,
        (
            *("time after", "energy share", "time before", "pull", "limit", "efficiency"),
            *("log time after", "log time before", "log pull", "longer", "energy share * load"),
            *("energy share * spare", "energy share * progress", "time after * load", "pull * load"),
        ),
    ),
    "move": ColumnSet(
        MOVE,
        (),
        (
            *("longest", "time", "log time", "energy", "longest * time", "longest * log time"),
            *("longest * energy", "longest * energy * spare", "gain", "log gain", "energy per gain"),
            *("efficiency", "server time", "limit", "load", "own time", "log load", "log inefficiency"),
            *("longest * log inefficiency", "longest * log load", "evener", "longest * evener"),
            *("longest * evener * spare", "longest * log load * excess"),
            "longest * log inefficiency * excess",
        ),
    ),
}
LONGEST = 2.0  # shares of the job's time are cut off here
LEAST_GAIN = 1e-3  # added to energies and gains before their logarithms


class Seen(NamedTuple):
    """The entries of an observation; the pairs of all tasks with all servers stand one after the other."""

    jobs: Annotated[Floats32, "job", len(JOB_COLUMNS)]
    servers: Annotated[Floats32, "server", "server_column"]
    pairs: Annotated[Floats32, "pair", len(PAIR_COLUMNS)]
    globals: Annotated[Floats32, len(GLOBAL_COLUMNS)]


class Memo(NamedTuple):
    """The servers' times as shares of the job's, and their mean; logarithms that moves of a task share."""

    level: Annotated[Floats, "servers"]
    mean: Annotated[Floats, 1]
    task: Annotated[Floats, 2]  # of its load, and of its efficiency where it is


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Compute the servers' times as shares of the job's."""
    servers, level, mean = seen.servers, memo.level, memo.mean
    mean[0] = 0.0
    for j in range(servers.shape[0]):
        level[j] = min(unscaled(float(servers[j, 1]), 1.0), LONGEST)
        mean[0] += level[j] / servers.shape[0]


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of server i for the next task; those of a move are of the pair."""
    if code == MOVE:
        memo.task[0] = log_odds(float(seen.jobs[i, 0]))
        memo.task[1] = math.log(float(seen.jobs[i, 6]) + EDGE)
        return
    server, whole = seen.servers[i], seen.globals
    before, pull, after, energy = float(server[1]), float(server[2]), float(server[4]), float(server[5])
    progress, time, spare, load = float(whole[0]), float(whole[1]), float(whole[3]), float(whole[6])
    x[0] = after
    x[1] = energy
    x[2] = before
    x[3] = pull
    x[4] = server[0]
    x[5] = server[3]
    x[6] = log_odds(after)
    x[7] = log_odds(before)
    x[8] = log_odds(pull)
    x[9] = max(after - time, 0.0)
    x[10] = energy * load
    x[11] = energy * spare
    x[12] = energy * progress
    x[13] = after * load
    x[14] = pull * load


@helper
def pair_columns(seen: Seen, memo: Memo, code: int, i: int, j: int, x: Any) -> None:
    """Write the columns of the move of task i to server j."""
    pair, job, whole = seen.pairs[i * seen.servers.shape[0] + j], seen.jobs[i], seen.globals
    efficiency, time, energy = float(pair[0]), float(pair[1]), float(pair[2])
    longest, own, own_time = float(job[5]), float(job[6]), float(job[7])
    spare, log_time, gain = float(whole[3]), log_odds(time), own_time - time
    # energy of a move per load that it takes from the longest group: own over new efficiency, less 1
    size, loss = memo.task[0], memo.task[1] - math.log(efficiency + EDGE)
    # times as shares of the job's, before and after the move, on the old and the new server; their mean
    mean, there, after = memo.mean[0], memo.level[j], min(unscaled(time, 1.0), LONGEST)
    here = min(unscaled(own_time, 1.0), LONGEST)
    left = max(here - (after - there) * efficiency / (own + EDGE), 0.0)
    # log of the job's time over its time if all limits were used evenly
    excess = min(max(log_odds(float(whole[1])), 0.0), LONGEST)
    uneven = (left - mean) ** 2 + (after - mean) ** 2
    evener = (here - mean) ** 2 + (there - mean) ** 2 - uneven
    x[0] = longest
    x[1] = time
    x[2] = log_time
    x[3] = energy
    x[4] = longest * time
    x[5] = longest * log_time
    x[6] = longest * energy
    x[7] = longest * energy * spare
    x[8] = gain
    x[9] = math.log(max(gain, 0.0) + EDGE)
    x[10] = math.log(max(energy, 0.0) + LEAST_GAIN) - math.log(gain + LEAST_GAIN)
    x[11] = efficiency
    x[12] = seen.servers[j, 1]
    x[13] = seen.servers[j, 0]
    x[14] = job[0]
    x[15] = own_time
    x[16] = size
    x[17] = loss
    x[18] = longest * loss
    x[19] = longest * size
    x[20] = evener
    x[21] = longest * evener
    x[22] = longest * evener * spare
    x[23] = longest * size * excess
    x[24] = longest * loss * excess


SCORING = Scoring(__name__, DYNAMICS, Seen, Memo, prepare, token_columns, pair_columns, ("place", "search"))
