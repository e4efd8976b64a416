"""The tokens of QueueDelay's observations, and the columns that scorers make of them."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import Floats, Floats32
from schedgym.core.columns import names_of, numbered, places, put, read
from schedgym.core.jit import helper
from schedgym.core.scorer import EDGE, log_odds, unscaled
from schedgym.core.tokens import RULE_VIEW, ColumnSet, ScoredView, Scores, Tokens, TokenSet

__all__ = [
    *("DAY", "LOG_DAY", "COUNT_SCALE", "WAITING_SCALE"),
    *("GLOBAL", "NAMED", "SERVER", "TASK", "TOKENS", "GlobalToken", "ServerToken", "TaskToken"),
    *("Memo", "Seen", "pair_columns", "prepare", "token_columns"),
]

DAY = 86400.0  # [s] log1p(execution) / log1p(DAY) scales execution times, t / (t + DAY) the clock
LOG_DAY = math.log1p(DAY)
WAITING_SCALE = 3600.0  # w / (w + 1 h) scales waiting times
COUNT_SCALE = 32.0  # n / (n + 32) scales counts


class TaskToken(NamedTuple):
    """A waiting task; resources are shares of the largest server."""

    cpu: float
    memory: float
    log_execution: float
    waiting: float
    arriving: float  # 1 if the task arrives at this epoch


class ServerToken(NamedTuple):
    """A server; resources are shares of the largest server."""

    capacity_cpu: float
    capacity_memory: float
    free_cpu: float
    free_memory: float
    released: float  # 1 if the epoch is its release


class GlobalToken(NamedTuple):
    """The whole; means are over the tasks submitted so far."""

    arrival: float  # 1 at an arrival epoch
    completion: float  # 1 at a completion epoch
    waiting: float  # waiting tasks
    beyond: float  # those beyond the window
    mean_cpu: float
    mean_memory: float
    clock: float
    mean_log_execution: float  # of the token "log execution", as is its standard deviation
    deviation_of_log_execution: float
    #: l / (l + 1) of the load l that the tasks have offered: the work of the busier resource over what all
    #: servers can do in the time since the first arrival
    load: float
    #: q / (q + 1), where q is the time since the last arrival over the mean time between arrivals so far: the
    #: time since the first arrival over the number of tasks
    quiet: float


#: number of resources in the tokens above, which scorers see; where there are more or fewer, each has a
#: column in the place of these, and the columns behind are moved
NAMED = 2
TASK, SERVER, GLOBAL = places(TaskToken), places(ServerToken), places(GlobalToken)

# Columns of scorers -----------------------------------------------------------------------------

PICK_TASK, PLACED_TASK, ROUTE_SERVER = range(3)  # codes of the sets of columns
QUIET = 0.9  # least token "quiet" at which no more arrivals are expected: 9 mean times between arrivals
LEAST_DEVIATION = 0.1  # of log1p(execution): what differs less counts as equal


class TaskColumns(NamedTuple):
    """What scorers see of a task."""

    log_execution: float
    log_demand: float
    log_total_demand: float
    cpu: float
    memory: float
    skew: float
    log_waiting: float
    waiting: float
    slowdown: float
    arriving: float
    z_execution: float
    log_wait: float
    pressure: float
    log_load: float
    free: float
    pressure_times_z_execution: float
    log_load_times_z_execution: float
    free_times_z_execution: float
    pressure_times_log_demand: float
    pressure_times_log_wait: float
    empty: float
    calm: float
    quiet: float
    quiet_times_z_execution: float
    quiet_times_log_total_demand: float
    quiet_times_free: float


class PickColumns(NamedTuple):
    """What they see in view pick behind these: the task on the released server."""

    left_after: float
    left_uneven: float
    dot: float
    completion_times_log_demand: float


class PlacementColumns(NamedTuple):
    """What they see in view placement behind these: the task on a server."""

    arrival_times_dot: float
    arrival_times_left_norm: float
    arrival_times_left_least: float
    arrival_times_left_uneven: float
    completion_times_dot: float
    completion_times_left_norm: float
    completion_times_left_least: float
    completion_times_left_uneven: float
    capacity_cpu: float
    capacity_memory: float
    released: float
    idle: float
    arrival_times_log_execution: float
    arrival_times_log_demand: float
    free_share: float
    arrival_times_z_execution: float
    arrival_times_pressure: float
    arrival_times_log_load: float
    arrival_times_free: float
    arrival_times_pressure_times_z_execution: float
    arrival_times_log_load_times_z_execution: float
    arrival_times_free_times_z_execution: float
    arrival_times_log_load_times_dot: float
    arrival_times_log_load_times_left_norm: float
    arrival_times_log_load_times_left_least: float
    arrival_times_log_load_times_left_uneven: float
    quiet_times_dot: float
    quiet_times_left_norm: float
    quiet_times_left_least: float
    quiet_times_left_uneven: float


class Whole(NamedTuple):
    """What the columns of all tasks share; it depends on no unit of time or of resources."""

    mean: float  # of log1p(execution)
    scale: float  # one over its standard deviation
    #: log1p of the number of waiting tasks over the number of mean demands that all servers can hold
    pressure: float
    log_load: float  # of the load offered so far
    free: float  # share of the scarcer resource
    execution: float  # the typical one
    empty: float  # 1 if nothing runs
    calm: float  # 1 / (load + 1)^4
    quiet: float  # 1 if no more arrivals are expected


class Released(NamedTuple):
    """The server of a completion epoch; at an arrival all are 0."""

    completion: float  # 1
    free_cpu: float
    free_memory: float


class Seen(NamedTuple):
    """The entries of an observation."""

    tasks: Annotated[Floats32, "task", len(TaskToken._fields)]
    servers: Annotated[Floats32, "server", len(ServerToken._fields)]
    globals: Annotated[Floats32, len(GlobalToken._fields)]


class Memo(NamedTuple):
    """Values that are the same for all tasks and pairs."""

    released: Annotated[Floats, len(Released._fields)]
    whole: Annotated[Floats, len(Whole._fields)]


@helper
def measure(seen: Seen) -> Whole:
    """Measure the whole observation."""
    servers, about = seen.servers, read(GlobalToken, seen.globals)
    all_cpu = all_memory = free_cpu = free_memory = 0.0
    empty = 1.0
    for j in range(servers.shape[0]):
        server = read(ServerToken, servers[j])
        all_cpu += server.capacity_cpu
        all_memory += server.capacity_memory
        free_cpu += server.free_cpu
        free_memory += server.free_memory
        if server.free_cpu < server.capacity_cpu or server.free_memory < server.capacity_memory:
            empty = 0.0
    share = max(about.mean_cpu / (all_cpu + EDGE), about.mean_memory / (all_memory + EDGE))
    mean = about.mean_log_execution * LOG_DAY
    return Whole(
        mean=mean,
        scale=1.0 / max(about.deviation_of_log_execution * LOG_DAY, LEAST_DEVIATION),
        pressure=math.log1p(unscaled(about.waiting, COUNT_SCALE) * share),
        log_load=log_odds(about.load),
        free=min(free_cpu / (all_cpu + EDGE), free_memory / (all_memory + EDGE)),
        execution=math.exp(mean),
        empty=empty,
        calm=(1.0 - about.load) ** 4,
        quiet=1.0 if about.quiet >= QUIET else 0.0,
    )


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Measure the whole observation, and find the released server."""
    if code != ROUTE_SERVER:
        put(memo.whole, 0, measure(seen))
    put(memo.released, 0, Released(completion=0.0, free_cpu=0.0, free_memory=0.0))
    for j in range(seen.servers.shape[0]):
        server = read(ServerToken, seen.servers[j])
        if server.released > 0.0:
            released = Released(completion=1.0, free_cpu=server.free_cpu, free_memory=server.free_memory)
            put(memo.released, 0, released)
            return


@helper
def task_columns(task: TaskToken, whole: Whole) -> TaskColumns:
    """Return the columns of a task."""
    waited = unscaled(task.waiting, WAITING_SCALE)
    log_execution = task.log_execution * LOG_DAY
    log_demand = math.log(max(task.cpu, task.memory) + EDGE)
    log_total_demand = math.log(task.cpu + task.memory + EDGE)
    log_waiting = math.log1p(waited)
    z = (log_execution - whole.mean) * whole.scale
    log_wait = math.log1p(waited / whole.execution)
    return TaskColumns(
        log_execution=log_execution,
        log_demand=log_demand,
        log_total_demand=log_total_demand,
        cpu=task.cpu,
        memory=task.memory,
        skew=abs(task.cpu - task.memory),
        log_waiting=log_waiting,
        waiting=task.waiting,
        slowdown=log_waiting - log_execution,
        arriving=task.arriving,
        z_execution=z,
        log_wait=log_wait,
        pressure=whole.pressure,
        log_load=whole.log_load,
        free=whole.free,
        pressure_times_z_execution=whole.pressure * z,
        log_load_times_z_execution=whole.log_load * z,
        free_times_z_execution=whole.free * z,
        pressure_times_log_demand=whole.pressure * log_demand,
        pressure_times_log_wait=whole.pressure * log_wait,
        empty=whole.empty,
        calm=whole.calm,
        quiet=whole.quiet,
        quiet_times_z_execution=whole.quiet * z,
        quiet_times_log_total_demand=whole.quiet * log_total_demand,
        quiet_times_free=whole.quiet * whole.free,
    )


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of task i, or of server i."""
    if code == ROUTE_SERVER:
        put(x, 0, read(ServerToken, seen.servers[i]))
        return
    task = task_columns(read(TaskToken, seen.tasks[i]), read(Whole, memo.whole))
    put(x, 0, task)
    if code == PICK_TASK:
        released = read(Released, memo.released)
        left_cpu = max(released.free_cpu - task.cpu, 0.0)
        left_memory = max(released.free_memory - task.memory, 0.0)
        own = PickColumns(
            left_after=max(left_cpu, left_memory),
            left_uneven=abs(left_cpu - left_memory),
            dot=task.cpu * released.free_cpu + task.memory * released.free_memory,
            completion_times_log_demand=released.completion * task.log_demand,
        )
        put(x, len(task), own)


@helper
def pair_columns(seen: Seen, memo: Memo, code: int, i: int, j: int, x: Any) -> None:
    """Write the columns of task i on server j, behind those of task i."""
    task, server, about = (
        read(TaskColumns, x),
        read(ServerToken, seen.servers[j]),
        read(GlobalToken, seen.globals),
    )
    left_cpu, left_memory = max(server.free_cpu - task.cpu, 0.0), max(server.free_memory - task.memory, 0.0)
    dot = task.cpu * server.free_cpu + task.memory * server.free_memory
    norm = math.sqrt(left_cpu * left_cpu + left_memory * left_memory)
    least, uneven = min(left_cpu, left_memory), abs(left_cpu - left_memory)
    idle = 0.0
    if server.free_cpu >= server.capacity_cpu and server.free_memory >= server.capacity_memory:
        idle = 1.0
    arrival, completion = about.arrival, about.completion
    own = PlacementColumns(
        arrival_times_dot=arrival * dot,
        arrival_times_left_norm=arrival * norm,
        arrival_times_left_least=arrival * least,
        arrival_times_left_uneven=arrival * uneven,
        completion_times_dot=completion * dot,
        completion_times_left_norm=completion * norm,
        completion_times_left_least=completion * least,
        completion_times_left_uneven=completion * uneven,
        capacity_cpu=server.capacity_cpu,
        capacity_memory=server.capacity_memory,
        released=server.released,
        idle=idle,
        arrival_times_log_execution=arrival * task.log_execution,
        arrival_times_log_demand=arrival * task.log_demand,
        free_share=min(server.free_cpu / server.capacity_cpu, server.free_memory / server.capacity_memory),
        arrival_times_z_execution=arrival * task.z_execution,
        arrival_times_pressure=arrival * task.pressure,
        arrival_times_log_load=arrival * task.log_load,
        arrival_times_free=arrival * task.free,
        arrival_times_pressure_times_z_execution=arrival * task.pressure_times_z_execution,
        arrival_times_log_load_times_z_execution=arrival * task.log_load_times_z_execution,
        arrival_times_free_times_z_execution=arrival * task.free_times_z_execution,
        arrival_times_log_load_times_dot=task.log_load * (arrival * dot),
        arrival_times_log_load_times_left_norm=task.log_load * (arrival * norm),
        arrival_times_log_load_times_left_least=task.log_load * (arrival * least),
        arrival_times_log_load_times_left_uneven=task.log_load * (arrival * uneven),
        # when it is quiet, an epoch is a completion
        quiet_times_dot=task.quiet * (completion * dot),
        quiet_times_left_norm=task.quiet * (completion * norm),
        quiet_times_left_least=task.quiet * (completion * least),
        quiet_times_left_uneven=task.quiet * (completion * uneven),
    )
    put(x, len(task), own)


TOKENS = Tokens(
    sets=(TokenSet("tasks", "task_mask"), TokenSet("servers")),
    globals=names_of(GlobalToken),
    views={
        "placement": ScoredView(
            "pairs", (Scores("place", ("tasks", "servers"), "placement"), Scores("close"))
        ),
        "pick": ScoredView("choice", (Scores("task", ("tasks",), "pick"), Scores("close"))),
        "route": ScoredView("choice", (Scores("server", ("servers",), "server"), Scores("queue"))),
        "rule": RULE_VIEW,
    },
    columns={
        "pick": ColumnSet(PICK_TASK, names_of(TaskColumns, PickColumns)),
        "placement": ColumnSet(PLACED_TASK, names_of(TaskColumns), names_of(PlacementColumns)),
        "server": ColumnSet(ROUTE_SERVER, numbered("servers", ServerToken)),
    },
    numbers="state.queue_task",
    acting=("window", "rule", "scope", "order"),
    trained=("resources",),
    exact={"demand": "resources"},
)
