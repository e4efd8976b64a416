"""The columns of QueueDelay that scorers see, and the kernels that evaluate scorers."""

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
from schedgym.problems.queue_delay.dynamics import DYNAMICS
from schedgym.problems.queue_delay.tokens import (
    COUNT_SCALE,
    GLOBAL_COLUMNS,
    LOG_DAY,
    SERVER_COLUMNS,
    TASK_COLUMNS,
    WAITING_SCALE,
)

__all__ = ["COLUMNS", "NUMBERS", "SCORING"]

NUMBERS = "state.queue_task"  # the task of each row

PICK, PLACEMENT, SERVER = range(3)
QUIET = 0.9  # least token "quiet" at which no more arrivals are expected: 9 mean times between arrivals
LEAST_DEVIATION = 0.1  # of log1p(execution): what differs less counts as equal
_TASK = (
    *("log execution", "log demand", "log total demand", "cpu", "memory", "skew"),
    *("log waiting", "waiting", "slowdown", "arriving"),
    *("z execution", "log wait", "pressure", "log load", "free"),
    *("pressure * z execution", "log load * z execution", "free * z execution"),
    *("pressure * log demand", "pressure * log wait", "empty", "calm"),
    *("quiet", "quiet * z execution", "quiet * log total demand", "quiet * free"),
)
_ON_ARRIVAL = (
    *("z execution", "pressure", "log load", "free"),
    *("pressure * z execution", "log load * z execution", "free * z execution"),
)
_FIT = ("dot", "left norm", "left least", "left uneven")
COLUMNS = {
    "pick": ColumnSet(PICK, (*_TASK, "left after", "left uneven", "dot", "completion * log demand")),
    "placement": ColumnSet(
        PLACEMENT,
        _TASK,
        (
            *(f"arrival * {name}" for name in _FIT),
            *(f"completion * {name}" for name in _FIT),
            *("capacity cpu", "capacity memory", "released", "idle"),
            *("arrival * log execution", "arrival * log demand", "free share"),
            *(f"arrival * {name}" for name in _ON_ARRIVAL),
            *(f"arrival * log load * {name}" for name in _FIT),
            *(f"quiet * {name}" for name in _FIT),
        ),
    ),
    "server": ColumnSet(SERVER, tuple(f"servers {k}" for k in range(len(SERVER_COLUMNS)))),
}


class Seen(NamedTuple):
    """The entries of an observation."""

    tasks: Annotated[Floats32, "task", len(TASK_COLUMNS)]
    servers: Annotated[Floats32, "server", len(SERVER_COLUMNS)]
    globals: Annotated[Floats32, len(GLOBAL_COLUMNS)]


class Memo(NamedTuple):
    """Values that are the same for all tasks and pairs."""

    released: Annotated[Floats, 3]  # at a completion, 1 and the free cpu and memory of that server; else 0
    whole: Annotated[Floats, 9]  # see ``measure``


@helper
def measure(seen: Seen, whole: Any) -> None:
    """Write the columns of the whole observation that do not depend on the units of time and resources.

    These are: 0, the mean of log1p(execution); 1, one over its standard deviation; 2, the number of waiting
    tasks over the number of mean demands that all servers can hold ("pressure": log1p of it); 3, the
    logarithm of the load offered so far; 4, the free share of the scarcer resource; 5, the typical execution;
    6, 1 if nothing runs; 7, 1 / (load + 1)^4; 8, 1 if no more arrivals are expected ("quiet").
    """
    servers, about = seen.servers, seen.globals
    all_cpu = all_memory = free_cpu = free_memory = 0.0
    empty = 1.0
    for j in range(servers.shape[0]):
        all_cpu += float(servers[j, 0])
        all_memory += float(servers[j, 1])
        free_cpu += float(servers[j, 2])
        free_memory += float(servers[j, 3])
        if servers[j, 2] < servers[j, 0] or servers[j, 3] < servers[j, 1]:
            empty = 0.0
    share = max(float(about[4]) / (all_cpu + EDGE), float(about[5]) / (all_memory + EDGE))
    whole[0] = float(about[7]) * LOG_DAY
    whole[1] = 1.0 / max(float(about[8]) * LOG_DAY, LEAST_DEVIATION)
    whole[2] = math.log1p(unscaled(float(about[2]), COUNT_SCALE) * share)
    whole[3] = log_odds(float(about[9]))
    whole[4] = min(free_cpu / (all_cpu + EDGE), free_memory / (all_memory + EDGE))
    whole[5] = math.exp(whole[0])
    whole[6] = empty
    whole[7] = (1.0 - float(about[9])) ** 4
    whole[8] = 1.0 if float(about[10]) >= QUIET else 0.0


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Measure the whole observation, and find the released server."""
    servers, released = seen.servers, memo.released
    if code != SERVER:
        measure(seen, memo.whole)
    for k in range(3):
        released[k] = 0.0
    for j in range(servers.shape[0]):
        if servers[j, 4] > 0.0:
            released[0] = 1.0
            released[1] = servers[j, 2]
            released[2] = servers[j, 3]
            return


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of task i, or of server i; resources are shares of the largest server."""
    if code == SERVER:
        for k in range(seen.servers.shape[1]):
            x[k] = seen.servers[i, k]
        return
    task = seen.tasks[i]
    cpu, memory, waiting = float(task[0]), float(task[1]), float(task[3])
    waited = unscaled(waiting, WAITING_SCALE)
    x[0] = float(task[2]) * LOG_DAY
    x[1] = math.log(max(cpu, memory) + EDGE)
    x[2] = math.log(cpu + memory + EDGE)
    x[3] = cpu
    x[4] = memory
    x[5] = abs(cpu - memory)
    x[6] = math.log1p(waited)
    x[7] = waiting
    x[8] = x[6] - x[0]
    x[9] = task[4]
    whole = memo.whole
    pressure, load, free = whole[2], whole[3], whole[4]
    z = (x[0] - whole[0]) * whole[1]
    wait = math.log1p(waited / whole[5])
    x[10] = z
    x[11] = wait
    x[12] = pressure
    x[13] = load
    x[14] = free
    x[15] = pressure * z
    x[16] = load * z
    x[17] = free * z
    x[18] = pressure * x[1]
    x[19] = pressure * wait
    x[20] = whole[6]
    x[21] = whole[7]
    quiet = whole[8]
    x[22] = quiet
    x[23] = quiet * z
    x[24] = quiet * x[2]
    x[25] = quiet * free
    if code == PICK:
        completion, free_cpu, free_memory = memo.released[0], memo.released[1], memo.released[2]
        left_cpu, left_memory = max(free_cpu - cpu, 0.0), max(free_memory - memory, 0.0)
        x[26] = max(left_cpu, left_memory)
        x[27] = abs(left_cpu - left_memory)
        x[28] = cpu * free_cpu + memory * free_memory
        x[29] = completion * x[1]


@helper
def pair_columns(seen: Seen, memo: Memo, code: int, i: int, j: int, x: Any) -> None:
    """Write the columns of task i on server j, after those of task i."""
    server = seen.servers[j]
    arrival, completion = float(seen.globals[0]), float(seen.globals[1])
    cpu, memory = x[3], x[4]
    cpu_all, memory_all = float(server[0]), float(server[1])
    cpu_free, memory_free = float(server[2]), float(server[3])
    left_cpu, left_memory = max(cpu_free - cpu, 0.0), max(memory_free - memory, 0.0)
    dot = cpu * cpu_free + memory * memory_free
    norm = math.sqrt(left_cpu * left_cpu + left_memory * left_memory)
    least, uneven = min(left_cpu, left_memory), abs(left_cpu - left_memory)
    x[26] = arrival * dot
    x[27] = arrival * norm
    x[28] = arrival * least
    x[29] = arrival * uneven
    x[30] = completion * dot
    x[31] = completion * norm
    x[32] = completion * least
    x[33] = completion * uneven
    x[34] = cpu_all
    x[35] = memory_all
    x[36] = server[4]
    x[37] = 1.0 if cpu_free >= cpu_all and memory_free >= memory_all else 0.0
    x[38] = arrival * x[0]
    x[39] = arrival * x[1]
    x[40] = min(cpu_free / cpu_all, memory_free / memory_all)
    x[41] = arrival * x[10]
    for k in range(6):
        x[42 + k] = arrival * x[12 + k]
    for k in range(4):
        x[48 + k] = x[13] * x[26 + k]
        x[52 + k] = x[22] * x[30 + k]  # when it is quiet, an epoch is a completion


SCORING = Scoring(
    __name__, DYNAMICS, Seen, Memo, prepare, token_columns, pair_columns, ("placement", "pick", "route")
)
