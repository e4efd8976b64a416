"""Tokens of tasks and servers for networks: their columns and scales, and what agents score in each view."""

from __future__ import annotations

import math

import numpy as np

from schedgym.core.tokens import (
    EDGE,
    RULE_VIEW,
    Columns,
    ScoredView,
    Scores,
    TokenRows,
    Tokens,
    TokenSet,
    unscaled,
)

__all__ = [
    "COUNT_SCALE",
    "DAY",
    "GLOBAL_COLUMNS",
    "LOG_DAY",
    "SERVER_COLUMNS",
    "TASK_COLUMNS",
    "TOKENS",
    "WAITING_SCALE",
]

#: columns of a task token: shares of the largest server; 1 if the task arrives at this epoch
TASK_COLUMNS = ("cpu", "memory", "log execution", "waiting", "arriving")
#: columns of a server token: shares of the largest server, capacity and free; 1 if the epoch is its release
SERVER_COLUMNS = ("capacity cpu", "capacity memory", "free cpu", "free memory", "released")
#: 1 at an arrival epoch, 1 at a completion epoch; waiting tasks, those beyond the window; mean demand; clock
GLOBAL_COLUMNS = ("arrival", "completion", "waiting", "beyond", "mean cpu", "mean memory", "clock")
DAY = 86400.0  # [s] log1p(execution) / log1p(DAY) scales execution times, t / (t + DAY) the clock
LOG_DAY = math.log1p(DAY)
WAITING_SCALE = 3600.0  # w / (w + 1 h) scales waiting times
COUNT_SCALE = 32.0  # n / (n + 32) scales counts


def _task_columns(rows: TokenRows) -> Columns:
    cpu, memory, log_execution, waiting, arriving = rows["tasks"]
    execution = log_execution * np.float32(LOG_DAY)
    waited = unscaled(waiting, WAITING_SCALE)
    largest = np.log(np.maximum(cpu, memory) + EDGE)
    return [
        ("log execution", execution),
        ("log demand", largest),
        ("log total demand", np.log(cpu + memory + EDGE)),
        ("cpu", cpu),
        ("memory", memory),
        ("skew", np.abs(cpu - memory)),
        ("log waiting", np.log1p(waited)),
        ("waiting", waiting),
        ("slowdown", np.log1p(waited) - execution),
        ("arriving", arriving),
    ]


def _pick_columns(rows: TokenRows) -> Columns:
    observation, env = rows.observation, rows.env
    released = observation["servers"][:, :, 4]
    open_server = released.max(axis=1)
    server = observation["servers"][np.arange(len(released)), released.argmax(axis=1)]
    free = (server * open_server[:, np.newaxis])[env]
    cpu, memory = rows["tasks"][:2]
    left = [np.maximum(free[:, 2 + r] - demand, 0.0) for r, demand in enumerate((cpu, memory))]
    flag = open_server[env]
    return [
        *_task_columns(rows),
        ("left after", np.maximum(*left)),
        ("left uneven", np.abs(left[0] - left[1])),
        ("dot", cpu * free[:, 2] + memory * free[:, 3]),
        ("completion * log demand", flag * np.log(np.maximum(cpu, memory) + EDGE)),
    ]


def _placement_columns(rows: TokenRows) -> Columns:
    cpu, memory = rows["tasks"][:2]
    cpu_all, memory_all, cpu_free, memory_free, released = rows["servers"]
    arrival, completion = rows["globals"][:2]
    left_cpu, left_memory = np.maximum(cpu_free - cpu, 0.0), np.maximum(memory_free - memory, 0.0)
    fit = [
        ("dot", cpu * cpu_free + memory * memory_free),
        ("left norm", np.sqrt(left_cpu**2 + left_memory**2)),
        ("left least", np.minimum(left_cpu, left_memory)),
        ("left uneven", np.abs(left_cpu - left_memory)),
    ]
    tasks = _task_columns(rows)
    both = [(f"arrival * {name}", arrival * value) for name, value in fit]
    both += [(f"completion * {name}", completion * value) for name, value in fit]
    return [
        *tasks,
        *both,
        ("capacity cpu", cpu_all),
        ("capacity memory", memory_all),
        ("released", released),
        ("idle", ((cpu_free >= cpu_all) & (memory_free >= memory_all)).astype(np.float32)),
        ("arrival * log execution", arrival * tasks[0][1]),
        ("arrival * log demand", arrival * tasks[1][1]),
        ("free share", np.minimum(cpu_free / cpu_all, memory_free / memory_all)),
    ]


TOKENS = Tokens(
    sets=(TokenSet("tasks", "task_mask"), TokenSet("servers")),
    globals=GLOBAL_COLUMNS,
    views={
        "placement": ScoredView(
            "pairs", (Scores("place", ("tasks", "servers"), _placement_columns), Scores("close"))
        ),
        "pick": ScoredView("choice", (Scores("task", ("tasks",), _pick_columns), Scores("close"))),
        "route": ScoredView("choice", (Scores("server", ("servers",)), Scores("queue"))),
        "rule": RULE_VIEW,
    },
    acting=("window", "rule", "scope", "order"),
    exact={"cpu": ("demand", 0), "memory": ("demand", 1)},
)
