"""The tokens of ParallelJCT's observations, and the columns that scorers make of them."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import Floats, Floats32
from schedgym.core.columns import names_of, places, put, read
from schedgym.core.jit import helper
from schedgym.core.order import sort
from schedgym.core.scorer import EDGE, log_odds, unscaled
from schedgym.core.tokens import ColumnSet, ScoredView, Scores, Tokens, TokenSet

TIME_SCALE = 100.0  # t / (t + 100 s)
COUNT_SCALE = 32.0
LOAD_SCALE = 100.0  # work / (work + 100 s of all servers)


class JobToken(NamedTuple):
    """A waiting job."""

    age: Annotated[float, "t(age)"]
    tasks: Annotated[float, "c(tasks)"]
    load: Annotated[float, "l / (l + 100 s * all vCPU) of the load l"]
    energy: Annotated[float, "least energy / E_MAX"]
    failed: Annotated[float, "1 if it has failed"]
    bound: Annotated[float, "t(least work / vCPU that one job may reserve)"]
    open: Annotated[float, "1 if it is being planned"]


class ServerToken(NamedTuple):
    """A server."""

    capacity: Annotated[float, "capacity / the largest"]
    available: Annotated[float, "available share"]
    running: Annotated[float, "c(running tasks)"]
    alive: Annotated[float, "1 if tasks can get vCPU there"]
    efficiency: Annotated[float, "view `place`, of the next task: efficiency"]
    time: Annotated[float, "t(time that it would take)"]
    legal: Annotated[float, "1 if it may be placed there"]


class MoveToken(NamedTuple):
    """A task on a server (view search)."""

    efficiency: Annotated[float, "efficiency"]
    time: Annotated[float, "t(time of the task there)"]
    legal: Annotated[float, "1 if the move is legal"]


class GlobalToken(NamedTuple):
    """The whole."""

    arrival: Annotated[float, "1 at an arrival"]
    completion: Annotated[float, "1 at a completion"]
    tick: Annotated[float, "1 at a tick"]
    available: Annotated[float, "available share"]
    waiting: Annotated[float, "c(waiting jobs)"]
    beyond: Annotated[float, "c(jobs beyond the window)"]
    running: Annotated[float, "n / (n + 128) of the n running tasks"]
    time_to_tick: Annotated[float, "time to the next tick / `tick`"]
    progress: Annotated[float, "of the job being planned: progress"]
    energy: Annotated[float, "its energy / E_MAX"]
    time: Annotated[float, "t(its time so far)"]
    mean_load: Annotated[
        float, "of the loads of the jobs that have arrived so far, divided by all vCPU: t(geometric mean)"
    ]
    deviation_of_log_load: Annotated[float, "d / (d + 1) of the standard deviation d of their logarithms"]
    offered_load: Annotated[float, "l / (l + time since the first arrival) of their sum l"]
    drc: Annotated[float, "1 with DRC"]


SERVER, GLOBAL = places(ServerToken), places(GlobalToken)

# Columns of scorers -----------------------------------------------------------------------------

OF_JOB, OF_SERVER, OF_MOVE = range(3)  # codes of the sets of columns
LEAST_DEVIATION = 0.1  # of the logarithm of loads: what differs less counts as equal


class JobColumns(NamedTuple):
    """What scorers see of a job.

    Those from ``z_load`` on depend neither on the unit of time nor on the number of servers, if jobs have as
    many tasks more: some of the job, those of the whole observation, and products of both.
    """

    log_bound: float
    log_time: float
    log_load: float
    log_tasks: float
    log_age: float
    age: float
    energy: float
    log_slowdown: float
    available_times_log_time: float
    available_times_log_load: float
    z_load: float
    relative_time: float
    log_wait: float
    stretch: float
    spread: float
    available: float
    idle: float
    crowd: float
    pressure: float
    log_offered: float
    pressure_times_available: float
    pressure_times_idle: float
    pressure_times_z_load: float
    pressure_times_relative_time: float
    pressure_times_log_wait: float
    pressure_times_stretch: float
    pressure_times_energy: float
    available_times_z_load: float
    available_times_relative_time: float
    available_times_log_wait: float
    available_times_stretch: float
    available_times_energy: float
    idle_times_energy: float
    fixed: float
    fixed_times_available: float
    fixed_times_relative_time: float
    fixed_times_energy: float


class Whole(NamedTuple):
    """The columns of the whole observation, and units."""

    available: float  # share of all vCPU
    idle: float  # share of servers on which no task runs
    crowd: float  # log1p of the running tasks of a server
    pressure: float  # log1p of the waiting tasks of a server
    log_offered: float  # logarithm of the load offered so far
    fixed: float  # 1 if tasks keep the vCPU of their launch (no DRC)
    mean: float  # of the logarithm of loads over 100 s of all servers
    scale: float  # one over its standard deviation


class Seen(NamedTuple):
    """The entries of an observation; the moves of all tasks to all servers stand one after the other."""

    jobs: Annotated[Floats32, "job", len(JobToken._fields)]
    servers: Annotated[Floats32, "server", len(ServerToken._fields)]
    moves: Annotated[Floats32, "move", len(MoveToken._fields)]
    globals: Annotated[Floats32, len(GlobalToken._fields)]


class Memo(NamedTuple):
    """What the columns of all jobs share."""

    most: Annotated[Floats, "servers"]  # share of all vCPU that 1, 2, ... tasks can have, one on a server
    whole: Annotated[Floats, len(Whole._fields)]


@helper
def measure(seen: Seen) -> Whole:
    """Measure the whole observation."""
    servers, jobs, about = seen.servers, seen.jobs, read(GlobalToken, seen.globals)
    count = servers.shape[0]
    idle = running = tasks = 0.0
    for j in range(count):
        server = read(ServerToken, servers[j])
        idle += 1.0 if server.running == 0.0 else 0.0
        running += unscaled(server.running, COUNT_SCALE)
    shown = 0
    for i in range(jobs.shape[0]):
        job = read(JobToken, jobs[i])
        if job.tasks > 0.0:
            tasks += unscaled(job.tasks, COUNT_SCALE)
            shown += 1
    beyond = unscaled(about.beyond, COUNT_SCALE)  # they are taken to be like those that are shown
    tasks *= 1.0 + beyond / max(shown, 1)
    deviation = unscaled(about.deviation_of_log_load, 1.0)
    return Whole(
        available=about.available,
        idle=idle / count,
        crowd=math.log1p(running / count),
        pressure=math.log1p(tasks / count),
        log_offered=log_odds(about.offered_load),
        fixed=1.0 - about.drc,
        mean=log_odds(about.mean_load),
        scale=1.0 / max(deviation, LEAST_DEVIATION),
    )


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Measure the whole observation, and add up what is available, from the server with the most on."""
    if code == OF_JOB:
        put(memo.whole, 0, measure(seen))
    most = memo.most
    count, capacity, free = seen.servers.shape[0], 0.0, 0.0
    for j in range(count):
        server = read(ServerToken, seen.servers[j])
        capacity += server.capacity
        most[j] = -server.capacity * server.available
    sort(most, count)
    for j in range(count):
        free -= most[j] / capacity
        most[j] = free


@helper
def job_columns(job: JobToken, whole: Whole, most: Any) -> JobColumns:
    """Return the columns of a job; ``most``: of the memo."""
    servers = most.shape[0]
    number = int(math.floor(unscaled(job.tasks, COUNT_SCALE) + 0.5))
    own = most[min(max(number, 1), servers) - 1]
    log_bound, log_load = log_odds(job.bound), log_odds(job.load)
    log_time = max(log_bound, log_load - math.log(own + EDGE))
    age = unscaled(job.age, TIME_SCALE)
    log_age = math.log1p(age)
    available, idle, pressure, fixed = whole.available, whole.idle, whole.pressure, whole.fixed
    z_load, relative_time = (log_load - whole.mean) * whole.scale, log_time - whole.mean
    log_wait = math.log1p(age / (TIME_SCALE * math.exp(whole.mean)))
    stretch = math.log(own + EDGE) - math.log(min(number, servers) / servers)
    return JobColumns(
        log_bound=log_bound,
        log_time=log_time,
        log_load=log_load,
        log_tasks=log_odds(job.tasks),
        log_age=log_age,
        age=job.age,
        energy=job.energy,
        log_slowdown=log_age - log_time,
        available_times_log_time=available * log_time,
        available_times_log_load=available * log_load,
        z_load=z_load,
        relative_time=relative_time,
        log_wait=log_wait,
        stretch=stretch,
        spread=math.log(number / servers),
        available=available,
        idle=idle,
        crowd=whole.crowd,
        pressure=pressure,
        log_offered=whole.log_offered,
        pressure_times_available=pressure * available,
        pressure_times_idle=pressure * idle,
        pressure_times_z_load=pressure * z_load,
        pressure_times_relative_time=pressure * relative_time,
        pressure_times_log_wait=pressure * log_wait,
        pressure_times_stretch=pressure * stretch,
        pressure_times_energy=pressure * job.energy,
        available_times_z_load=available * z_load,
        available_times_relative_time=available * relative_time,
        available_times_log_wait=available * log_wait,
        available_times_stretch=available * stretch,
        available_times_energy=available * job.energy,
        idle_times_energy=idle * job.energy,
        fixed=fixed,
        fixed_times_available=fixed * available,
        fixed_times_relative_time=fixed * relative_time,
        fixed_times_energy=fixed * job.energy,
    )


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of job i, or of server i; those of a move are of the pair."""
    if code == OF_SERVER:
        put(x, 0, read(ServerToken, seen.servers[i]))
    elif code == OF_JOB:
        put(x, 0, job_columns(read(JobToken, seen.jobs[i]), read(Whole, memo.whole), memo.most))


@helper
def pair_columns(seen: Seen, memo: Memo, code: int, i: int, j: int, x: Any) -> None:
    """Write the columns of the move of task i to server j."""
    move = read(MoveToken, seen.moves[i * seen.servers.shape[0] + j])
    put(x, 0, move)
    put(x, len(move), read(ServerToken, seen.servers[j]))


def numbered(name: str, row: Any) -> tuple[str, ...]:
    """The names of the columns of a row that scorers see as it is: "servers 0", "servers 1", ..."""
    return tuple(f"{name} {k}" for k in range(len(row._fields)))


_PICK = (Scores("job", ("jobs",), "job"), Scores("end"))
TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("servers"), TokenSet("moves", axes=(None, "servers"))),
    globals=names_of(GlobalToken),
    views={
        "pick": ScoredView("choice", _PICK),
        "place": ScoredView("choice", (*_PICK, Scores("server", ("servers",), "server"))),
        "search": ScoredView("choice", (*_PICK, Scores("move", ("moves",), "move"), Scores("launch"))),
    },
    columns={
        "job": ColumnSet(OF_JOB, names_of(JobColumns)),
        "server": ColumnSet(OF_SERVER, numbered("servers", ServerToken)),
        "move": ColumnSet(OF_MOVE, (), (*numbered("moves", MoveToken), *numbered("servers", ServerToken))),
    },
    numbers="state.queue",
    acting=("window", "running_window", "rounds", "planner", "max_moves"),
)
