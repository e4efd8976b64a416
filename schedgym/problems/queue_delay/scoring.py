"""The columns of QueueDelay that scorers see, and the kernels that evaluate scorers."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import SCRATCH, SHARED, Floats, Floats32
from schedgym.core.jit import helper, pure_kernel
from schedgym.core.scoring import (
    EDGE,
    ColumnSet,
    Form,
    Given,
    Work,
    act,
    columns_each,
    play_each,
    score_each,
    unscaled,
)
from schedgym.core.stepping import Exchange
from schedgym.core.tables import accessor
from schedgym.problems.queue_delay.dynamics import (
    access,
    advance,
    observe,
    pick_fits,
    placement_fits,
    route_fits,
    take_noted,
)
from schedgym.problems.queue_delay.tokens import (
    GLOBAL_COLUMNS,
    LOG_DAY,
    SERVER_COLUMNS,
    TASK_COLUMNS,
    WAITING_SCALE,
)

__all__ = ["COLUMNS", "PLAY", "Acting", "columns", "score"]

PICK, PLACEMENT, SERVER = range(3)
_TASK = (
    *("log execution", "log demand", "log total demand", "cpu", "memory", "skew"),
    *("log waiting", "waiting", "slowdown", "arriving"),
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
    """At a completion, 1 and the free cpu and memory of the released server; else zeros."""

    released: Annotated[Floats, 3]


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Find the released server."""
    servers, released = seen.servers, memo.released
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
    if code == PICK:
        completion, free_cpu, free_memory = memo.released[0], memo.released[1], memo.released[2]
        left_cpu, left_memory = max(free_cpu - cpu, 0.0), max(free_memory - memory, 0.0)
        x[10] = max(left_cpu, left_memory)
        x[11] = abs(left_cpu - left_memory)
        x[12] = cpu * free_cpu + memory * free_memory
        x[13] = completion * x[1]


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
    x[10] = arrival * dot
    x[11] = arrival * norm
    x[12] = arrival * least
    x[13] = arrival * uneven
    x[14] = completion * dot
    x[15] = completion * norm
    x[16] = completion * least
    x[17] = completion * uneven
    x[18] = cpu_all
    x[19] = memory_all
    x[20] = server[4]
    x[21] = 1.0 if cpu_free >= cpu_all and memory_free >= memory_all else 0.0
    x[22] = arrival * x[0]
    x[23] = arrival * x[1]
    x[24] = min(cpu_free / cpu_all, memory_free / memory_all)


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
    "placement": pure_kernel(
        lambda tables, played: play_each(
            access, placement_fits, take_noted, advance, observe, choose, tables, played
        )
    ),
    "pick": pure_kernel(
        lambda tables, played: play_each(
            access, pick_fits, take_noted, advance, observe, choose, tables, played
        )
    ),
    "route": pure_kernel(
        lambda tables, played: play_each(
            access, route_fits, take_noted, advance, observe, choose, tables, played
        )
    ),
}
