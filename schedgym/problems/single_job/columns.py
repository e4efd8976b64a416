"""The tokens of SingleJob's observations, and the columns that scorers make of them."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import Floats, Floats32
from schedgym.core.columns import Columns, names_of, places, put, read
from schedgym.core.jit import helper
from schedgym.core.scorer import EDGE, log_odds, unscaled
from schedgym.core.tokens import ColumnSet, ScoredView, Scores, Tokens, TokenSet

COUNT_SCALE = 40.0  # n / (n + 40) scales the number of tasks


class JobToken(NamedTuple):
    """A task."""

    load: Annotated[float, "load / (load + mean load)"]
    best_efficiency: Annotated[float, "highest efficiency"]
    mean_efficiency: Annotated[float, "mean efficiency"]
    near: Annotated[float, "share of the servers with at least 0.9 of the highest"]
    placed: Annotated[float, "1 if it is placed"]
    next: Annotated[float, "1 if it is next (view `search`: if it takes as long as the job, within 1e-9)"]
    own_efficiency: Annotated[float, "efficiency on its server"]
    own_time: Annotated[float, "time on its server"]


class ServerToken(NamedTuple):
    """A server."""

    limit: Annotated[float, "vCPU that the groups allow on it / the largest such number"]
    time: Annotated[float, "time of its slowest group"]
    pull: Annotated[
        float,
        "time that its vCPU would need for all unplaced tasks for which it is the most efficient server",
    ]


class NextToken(NamedTuple):
    """The next task on a server, behind the server's token in view place."""

    efficiency: Annotated[float, "in view `place`, of the next task there: efficiency"]
    time_after: Annotated[float, "time"]
    energy_share: Annotated[float, "(its energy minus its least energy) / spare energy"]
    legal: Annotated[float, "1 if it is legal"]


class PairToken(NamedTuple):
    """A task on a server, views plan and search."""

    efficiency: Annotated[float, "efficiency"]
    time: Annotated[float, "time there, if no other task moves"]
    energy: Annotated[
        float,
        "change of its energy (from its least energy if it is not placed) / spare energy, at least -1",
    ]


class GlobalToken(NamedTuple):
    """The whole."""

    progress: Annotated[float, "progress (share of the tasks placed, or moves / `max_moves`)"]
    time: Annotated[float, "completion time / (completion time + pooled time)"]
    energy: Annotated[float, "energy / cap"]
    spare: Annotated[float, "spare energy / spare energy at first"]
    least_to_come: Annotated[float, "least energy of the unplaced tasks / least energy of all"]
    tasks: Annotated[float, "n / (n + 40) of the n tasks"]
    load: Annotated[float, "the first feature of the next task"]


JOB, SERVER, PAIR, GLOBAL = places(JobToken), places(ServerToken), places(PairToken), places(GlobalToken)
PAIR_FEATURES = len(PairToken._fields)
SERVER_ROW, PAIR_ROW = Columns(ServerToken, NextToken), Columns(PairToken)

# Columns of scorers -----------------------------------------------------------------------------

OF_PLACE, OF_MOVE = range(2)  # codes of the sets of columns
LONGEST = 2.0  # shares of the job's time are cut off here
LEAST_GAIN = 1e-3  # added to energies and gains before their logarithms


class PlaceColumns(NamedTuple):
    """What scorers see of a server for the next task."""

    time_after: float
    energy_share: float
    time_before: float
    pull: float
    limit: float
    efficiency: float
    log_time_after: float
    log_time_before: float
    log_pull: float
    longer: float
    energy_share_times_load: float
    energy_share_times_spare: float
    energy_share_times_progress: float
    time_after_times_load: float
    pull_times_load: float


class MoveColumns(NamedTuple):
    """What they see of the move of a task to a server."""

    longest: float
    time: float
    log_time: float
    energy: float
    longest_times_time: float
    longest_times_log_time: float
    longest_times_energy: float
    longest_times_energy_times_spare: float
    gain: float
    log_gain: float
    energy_per_gain: float
    efficiency: float
    server_time: float
    limit: float
    load: float
    own_time: float
    log_load: float
    log_inefficiency: float
    longest_times_log_inefficiency: float
    longest_times_log_load: float
    evener: float
    longest_times_evener: float
    longest_times_evener_times_spare: float
    longest_times_log_load_times_excess: float
    longest_times_log_inefficiency_times_excess: float


class Seen(NamedTuple):
    """The entries of an observation; the pairs of all tasks with all servers stand one after the other."""

    jobs: Annotated[Floats32, "job", len(JobToken._fields)]
    servers: Annotated[Floats32, "server", "server_column"]
    pairs: Annotated[Floats32, "pair", len(PairToken._fields)]
    globals: Annotated[Floats32, len(GlobalToken._fields)]


class TaskLogarithms(NamedTuple):
    """Logarithms that the moves of a task share."""

    load: float
    efficiency: float  # where it is


class Memo(NamedTuple):
    """The servers' times as shares of the job's, and their mean; logarithms that moves of a task share."""

    level: Annotated[Floats, "servers"]
    mean: Annotated[Floats, 1]
    task: Annotated[Floats, len(TaskLogarithms._fields)]


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Compute the servers' times as shares of the job's."""
    servers, level, mean = seen.servers, memo.level, memo.mean
    mean[0] = 0.0
    for j in range(servers.shape[0]):
        level[j] = min(unscaled(read(ServerToken, servers[j]).time, 1.0), LONGEST)
        mean[0] += level[j] / servers.shape[0]


@helper
def place_columns(server: ServerToken, following: NextToken, about: GlobalToken) -> PlaceColumns:
    """Return the columns of a server for the next task."""
    after, before, pull, energy = following.time_after, server.time, server.pull, following.energy_share
    return PlaceColumns(
        time_after=after,
        energy_share=energy,
        time_before=before,
        pull=pull,
        limit=server.limit,
        efficiency=following.efficiency,
        log_time_after=log_odds(after),
        log_time_before=log_odds(before),
        log_pull=log_odds(pull),
        longer=max(after - about.time, 0.0),
        energy_share_times_load=energy * about.load,
        energy_share_times_spare=energy * about.spare,
        energy_share_times_progress=energy * about.progress,
        time_after_times_load=after * about.load,
        pull_times_load=pull * about.load,
    )


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of server i for the next task; those of a move are of the pair."""
    if code == OF_MOVE:
        job = read(JobToken, seen.jobs[i])
        own = TaskLogarithms(load=log_odds(job.load), efficiency=math.log(job.own_efficiency + EDGE))
        put(memo.task, 0, own)
    else:
        server, following = (
            read(ServerToken, seen.servers[i]),
            read(NextToken, seen.servers[i, len(SERVER) :]),
        )
        put(x, 0, place_columns(server, following, read(GlobalToken, seen.globals)))


@helper
def pair_columns(seen: Seen, memo: Memo, code: int, i: int, j: int, x: Any) -> None:
    """Write the columns of the move of task i to server j."""
    pair = read(PairToken, seen.pairs[i * seen.servers.shape[0] + j])
    job, server, about = (
        read(JobToken, seen.jobs[i]),
        read(ServerToken, seen.servers[j]),
        read(GlobalToken, seen.globals),
    )
    longest, time, energy, spare = job.next, pair.time, pair.energy, about.spare
    log_time, gain = log_odds(time), job.own_time - time
    # energy of a move per load that it takes from the longest group: own over new efficiency, less 1
    task = read(TaskLogarithms, memo.task)
    size, loss = task.load, task.efficiency - math.log(pair.efficiency + EDGE)
    # times as shares of the job's, before and after the move, on the old and the new server; their mean
    mean, there, after = memo.mean[0], memo.level[j], min(unscaled(time, 1.0), LONGEST)
    here = min(unscaled(job.own_time, 1.0), LONGEST)
    left = max(here - (after - there) * pair.efficiency / (job.own_efficiency + EDGE), 0.0)
    # log of the job's time over its time if all limits were used evenly
    excess = min(max(log_odds(about.time), 0.0), LONGEST)
    uneven = (left - mean) ** 2 + (after - mean) ** 2
    evener = (here - mean) ** 2 + (there - mean) ** 2 - uneven
    own = MoveColumns(
        longest=longest,
        time=time,
        log_time=log_time,
        energy=energy,
        longest_times_time=longest * time,
        longest_times_log_time=longest * log_time,
        longest_times_energy=longest * energy,
        longest_times_energy_times_spare=longest * energy * spare,
        gain=gain,
        log_gain=math.log(max(gain, 0.0) + EDGE),
        energy_per_gain=math.log(max(energy, 0.0) + LEAST_GAIN) - math.log(gain + LEAST_GAIN),
        efficiency=pair.efficiency,
        server_time=server.time,
        limit=server.limit,
        load=job.load,
        own_time=job.own_time,
        log_load=size,
        log_inefficiency=loss,
        longest_times_log_inefficiency=longest * loss,
        longest_times_log_load=longest * size,
        evener=evener,
        longest_times_evener=longest * evener,
        longest_times_evener_times_spare=longest * evener * spare,
        longest_times_log_load_times_excess=longest * size * excess,
        longest_times_log_inefficiency_times_excess=longest * loss * excess,
    )
    put(x, 0, own)


TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("servers"), TokenSet("pairs", axes=("jobs", "servers"))),
    globals=names_of(GlobalToken),
    views={
        "place": ScoredView("choice", (Scores("server", ("servers",), "place"),)),
        "search": ScoredView("choice", (Scores("move", ("pairs",), "move"), Scores("stop"))),
    },
    columns={
        "place": ColumnSet(OF_PLACE, names_of(PlaceColumns)),
        "move": ColumnSet(OF_MOVE, (), names_of(MoveColumns)),
    },
    acting=("max_moves", "fallback"),
)
