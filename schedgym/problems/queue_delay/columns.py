"""The tokens of QueueDelay's observations, and the columns that scorers make of them."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import Floats, Floats32, Integers
from schedgym.core.columns import Columns, names_of, places, put, read
from schedgym.core.jit import helper
from schedgym.core.scorer import EDGE, log_odds, unscaled
from schedgym.core.tokens import RULE_VIEW, ColumnSet, ScoredView, Scores, Tokens, TokenSet
from schedgym.problems.queue_delay.problem import RESOURCES

DAY = 86400.0  # [s] log1p(execution) / log1p(DAY) scales execution times, t / (t + DAY) the clock
LOG_DAY = math.log1p(DAY)
WAITING_SCALE = 3600.0  # w / (w + 1 h) scales waiting times
COUNT_SCALE = 32.0  # n / (n + 32) scales counts


class TaskToken(NamedTuple):
    """A waiting task, behind its demand of each resource, a share of the largest server."""

    log_execution: Annotated[float, "e(execution)"]
    waiting: Annotated[float, "waiting / (waiting + 3600)"]
    arriving: Annotated[float, "1 if it arrives at this epoch"]


class ServerToken(NamedTuple):
    """A server, behind the capacity of each resource and what is free of each, as shares of the largest."""

    released: Annotated[float, "1 if the epoch is its release"]


class GlobalToken(NamedTuple):
    """The epoch and the queue; behind it the mean demand of each resource, and then the next token."""

    arrival: Annotated[float, "1 at an arrival epoch"]
    completion: Annotated[float, "1 at a completion epoch"]
    waiting: Annotated[float, "n / (n + 32) of the n waiting tasks"]
    beyond: Annotated[float, "n / (n + 32) of those beyond the window"]


class SubmittedToken(NamedTuple):
    """The clock, and the tasks submitted so far."""

    clock: Annotated[float, "clock / (clock + 86400)"]
    mean_log_execution: Annotated[float, "mean of e(execution) of the tasks submitted so far"]
    deviation_of_log_execution: Annotated[float, "its standard deviation"]
    load: Annotated[
        float,
        "l / (l + 1) of the load l so far (the time that all servers together would need for these tasks, in "
        "the resource in which this is longest, over the time since the first arrival)",
    ]
    quiet: Annotated[
        float,
        "q / (q + 1), where q is the time since the last arrival over the mean time between arrivals so far "
        "(the time since the first arrival over the number of tasks submitted)",
    ]


TASK, SERVER, GLOBAL, SUBMITTED = map(places, (TaskToken, ServerToken, GlobalToken, SubmittedToken))
TASK_ROW = Columns("resource: demand of each resource", TaskToken)
SERVER_ROW = Columns("resource: capacity of each resource", "resource: what is free of each", ServerToken)
GLOBAL_ROW = Columns(GlobalToken, "resource: mean demand of each resource", SubmittedToken)

# Columns of scorers -----------------------------------------------------------------------------
#
# All are symmetrical in the resources, and per resource where they are sums, so that a scorer plays with any
# number of them.

PICK_TASK, PLACED_TASK, ROUTE_SERVER = range(3)  # codes of the sets of columns
QUIET = 0.9  # least token "quiet" at which no more arrivals are expected: 9 mean times between arrivals
MUCH = 4.0  # load above which a cluster is overloaded: of the first tasks the estimate often exceeds 1
MOST_OVERLOAD = 5.0  # when the first tasks arrive the load has no bounds
LEAST_DEVIATION = 0.1  # of log1p(execution): what differs less counts as equal


class TaskColumns(NamedTuple):
    """What scorers see of a task."""

    log_execution: float
    slowdown: float  # log of its waiting over its execution time
    arriving: float
    z_execution: float
    log_wait: float  # over the typical execution time
    log_demand: float  # of the resource of which it is largest
    log_priced_demand: float  # mean over the resources, weighted by how much of each is asked for
    spread: float  # largest less smallest demand
    pressure: float
    log_load: float
    overload: float
    free: float
    empty: float
    calm: float
    quiet: float
    completion: float
    pressure_times_z_execution: float
    free_times_z_execution: float
    pressure_times_log_priced_demand: float
    pressure_times_log_wait: float
    overload_times_free: float
    overload_times_z_execution: float
    arrival_times_z_execution: float
    arrival_times_log_load: float
    arrival_times_free: float
    arrival_times_free_times_z_execution: float
    calm_times_z_execution: float
    quiet_times_z_execution: float
    quiet_times_log_priced_demand: float
    quiet_times_pressure: float
    quiet_times_free: float
    quiet_times_pressure_times_z_execution: float


class Fit(NamedTuple):
    """How a task fits a server: of the resources that the server has."""

    dot: float  # demand times what is free, mean over the resources
    left_norm: float  # root of the mean square of what the task would leave
    left_least: float
    left_uneven: float  # most less least


class PlacementColumns(NamedTuple):
    """What they see in view placement behind these: the task on a server."""

    calm_times_left_norm: float
    arrival_times_dot: float
    arrival_times_left_norm: float
    arrival_times_left_least: float
    arrival_times_left_uneven: float
    completion_times_dot: float
    completion_times_left_norm: float
    completion_times_left_least: float
    completion_times_left_uneven: float
    quiet_times_dot: float
    quiet_times_left_norm: float
    quiet_times_left_least: float
    quiet_times_left_uneven: float
    released: float
    idle: float
    free_share: float


class ServerColumns(NamedTuple):
    """What they see of a server in view route."""

    capacity: float  # mean over the resources
    idle: float
    free_share: float
    free_least: float
    free_uneven: float


class Whole(NamedTuple):
    """What the columns of all tasks share; it depends on no unit of time or of resources."""

    mean: float  # of log1p(execution)
    scale: float  # one over its standard deviation
    #: log1p of the number of waiting tasks over the number of mean demands that all servers can hold
    pressure: float
    log_load: float  # of the load offered so far
    #: log of the load offered so far over MUCH, at least 0; 0 once no more arrivals are expected
    overload: float
    free: float  # share of the scarcest resource
    execution: float  # the typical one
    empty: float  # 1 if nothing runs
    calm: float  # 1 if that load is at most MUCH and more arrivals are expected
    quiet: float  # 1 if no more arrivals are expected
    completion: float  # 1 at a completion epoch


class Seen(NamedTuple):
    """The entries of an observation."""

    tasks: Annotated[Floats32, "task", "task_column"]
    servers: Annotated[Floats32, "server", "server_column"]
    globals: Annotated[Floats32, "global_column"]


class Memo(NamedTuple):
    """Values that are the same for all tasks and pairs."""

    released: Annotated[Integers, 1]  # the server of a completion epoch, else -1
    prices: Annotated[Floats, len(RESOURCES)]  # share of each resource in what tasks ask for
    whole: Annotated[Floats, len(Whole._fields)]


@helper
def resources_of(seen: Seen) -> int:
    """Return the number of resources."""
    return seen.tasks.shape[1] - len(TASK)


@helper
def measure(seen: Seen, prices: Any) -> Whole:
    """Measure the whole observation, and set the prices of resources."""
    resources, servers = resources_of(seen), seen.servers
    epoch = read(GlobalToken, seen.globals)
    about = read(SubmittedToken, seen.globals[len(GLOBAL) + resources :])
    free = empty = 1.0
    share = total = 0.0
    for r in range(resources):
        room = left = 0.0
        for j in range(servers.shape[0]):
            room += servers[j, r]
            left += servers[j, resources + r]
        if left < room:
            empty = 0.0
        prices[r] = 0.0
        if room > 0.0:
            prices[r] = seen.globals[len(GLOBAL) + r] / room
            free = min(free, left / room)
        share = max(share, prices[r])
        total += prices[r]
    for r in range(resources):
        prices[r] /= total + EDGE**2
    mean = about.mean_log_execution * LOG_DAY
    waiting = unscaled(epoch.waiting, COUNT_SCALE) * share
    quiet = 1.0 if about.quiet >= QUIET else 0.0
    overload = min(max(log_odds(about.load) - math.log(MUCH), 0.0), MOST_OVERLOAD) * (1.0 - quiet)
    return Whole(
        mean=mean,
        scale=1.0 / max(about.deviation_of_log_execution * LOG_DAY, LEAST_DEVIATION),
        pressure=math.log1p(waiting),
        log_load=log_odds(about.load),
        overload=overload,
        free=free,
        execution=math.exp(mean),
        empty=empty,
        calm=1.0 if overload + quiet == 0.0 else 0.0,
        quiet=quiet,
        completion=epoch.completion,
    )


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Measure the whole observation, and find the released server."""
    if code == ROUTE_SERVER:
        return
    put(memo.whole, 0, measure(seen, memo.prices))
    memo.released[0] = -1
    for j in range(seen.servers.shape[0]):
        if seen.servers[j, 2 * resources_of(seen) + SERVER.released] > 0.0:
            memo.released[0] = j
            return


@helper
def task_columns(seen: Seen, memo: Memo, i: int) -> TaskColumns:
    """Return the columns of task i."""
    resources = resources_of(seen)
    task, whole = read(TaskToken, seen.tasks[i][resources:]), read(Whole, memo.whole)
    largest, smallest, priced = 0.0, math.inf, 0.0
    for r in range(resources):
        demand = float(seen.tasks[i, r])
        largest = max(largest, demand)
        smallest = min(smallest, demand)
        priced += memo.prices[r] * demand
    waited = unscaled(task.waiting, WAITING_SCALE)
    log_execution = task.log_execution * LOG_DAY
    z = (log_execution - whole.mean) * whole.scale
    log_wait, size = math.log1p(waited / whole.execution), math.log(priced + EDGE)
    pressure, free, overload, quiet = whole.pressure, whole.free, whole.overload, whole.quiet
    arrival = 1.0 - whole.completion
    return TaskColumns(
        log_execution=log_execution,
        slowdown=math.log1p(waited) - log_execution,
        arriving=task.arriving,
        z_execution=z,
        log_wait=log_wait,
        log_demand=math.log(largest + EDGE),
        log_priced_demand=size,
        spread=largest - smallest,
        pressure=pressure,
        log_load=whole.log_load,
        overload=overload,
        free=free,
        empty=whole.empty,
        calm=whole.calm,
        quiet=quiet,
        completion=whole.completion,
        pressure_times_z_execution=pressure * z,
        free_times_z_execution=free * z,
        pressure_times_log_priced_demand=pressure * size,
        pressure_times_log_wait=pressure * log_wait,
        overload_times_free=overload * free,
        overload_times_z_execution=overload * z,
        arrival_times_z_execution=arrival * z,
        arrival_times_log_load=arrival * whole.log_load,
        arrival_times_free=arrival * free,
        arrival_times_free_times_z_execution=arrival * free * z,
        calm_times_z_execution=whole.calm * z,
        quiet_times_z_execution=quiet * z,
        quiet_times_log_priced_demand=quiet * size,
        quiet_times_pressure=quiet * pressure,
        quiet_times_free=quiet * free,
        quiet_times_pressure_times_z_execution=quiet * pressure * z,
    )


@helper
def fit(seen: Seen, i: int, j: int) -> Fit:
    """Return how task i fits server j."""
    resources = resources_of(seen)
    dot = square = most = 0.0
    least, count = math.inf, 0
    for r in range(resources):
        if seen.servers[j, r] > 0.0:
            demand, free = float(seen.tasks[i, r]), float(seen.servers[j, resources + r])
            left = max(free - demand, 0.0)
            dot += demand * free
            square += left * left
            most = max(most, left)
            least = min(least, left)
            count += 1
    least = min(least, most)
    return Fit(dot / max(count, 1), math.sqrt(square / max(count, 1)), least, most - least)


@helper
def server_columns(seen: Seen, j: int) -> ServerColumns:
    """Return the columns of server j."""
    resources = resources_of(seen)
    room = most = 0.0
    share, idle, least, count = 1.0, 1.0, math.inf, 0
    for r in range(resources):
        capacity, free = float(seen.servers[j, r]), float(seen.servers[j, resources + r])
        if capacity > 0.0:
            room += capacity
            share = min(share, free / capacity)
            most = max(most, free)
            least = min(least, free)
            count += 1
            if free < capacity:
                idle = 0.0
    least = min(least, most)
    return ServerColumns(room / max(count, 1), idle, share, least, most - least)


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of task i, or of server i."""
    if code == ROUTE_SERVER:
        put(x, 0, server_columns(seen, i))
        return
    task = task_columns(seen, memo, i)
    put(x, 0, task)
    if code == PICK_TASK:
        j = memo.released[0]
        put(x, len(task), fit(seen, i, j) if j >= 0 else Fit(0.0, 0.0, 0.0, 0.0))


@helper
def pair_columns(seen: Seen, memo: Memo, code: int, i: int, j: int, x: Any) -> None:
    """Write the columns of task i on server j, behind those of task i."""
    task, own, server = read(TaskColumns, x), fit(seen, i, j), server_columns(seen, j)
    arrival, completion, quiet = 1.0 - task.completion, task.completion, task.quiet
    released = 1.0 if j == memo.released[0] else 0.0
    pair = PlacementColumns(
        calm_times_left_norm=task.calm * own.left_norm,
        arrival_times_dot=arrival * own.dot,
        arrival_times_left_norm=arrival * own.left_norm,
        arrival_times_left_least=arrival * own.left_least,
        arrival_times_left_uneven=arrival * own.left_uneven,
        completion_times_dot=completion * own.dot,
        completion_times_left_norm=completion * own.left_norm,
        completion_times_left_least=completion * own.left_least,
        completion_times_left_uneven=completion * own.left_uneven,
        quiet_times_dot=quiet * own.dot,
        quiet_times_left_norm=quiet * own.left_norm,
        quiet_times_left_least=quiet * own.left_least,
        quiet_times_left_uneven=quiet * own.left_uneven,
        released=released,
        idle=server.idle,
        free_share=server.free_share,
    )
    put(x, len(task), pair)


TOKENS = Tokens(
    sets=(TokenSet("tasks", "task_mask"), TokenSet("servers")),
    globals=(*names_of(GlobalToken), "mean cpu", "mean memory", *names_of(SubmittedToken)),
    views={
        "placement": ScoredView(
            "pairs", (Scores("place", ("tasks", "servers"), "placement"), Scores("close"))
        ),
        "pick": ScoredView("choice", (Scores("task", ("tasks",), "pick"), Scores("close"))),
        "route": ScoredView("choice", (Scores("server", ("servers",), "server"), Scores("queue"))),
        "rule": RULE_VIEW,
    },
    columns={
        "pick": ColumnSet(PICK_TASK, names_of(TaskColumns, Fit)),
        "placement": ColumnSet(PLACED_TASK, names_of(TaskColumns), names_of(PlacementColumns)),
        "server": ColumnSet(ROUTE_SERVER, names_of(ServerColumns)),
    },
    numbers="state.queue_task",
    acting=("window", "rule", "scope", "order"),
    trained=("resources",),
    exact={"demand": "resources"},
)
