"""Tokens of tasks and servers for networks: their columns and scales, and what agents score in each view."""

from __future__ import annotations

import math

from schedgym.core.tokens import RULE_VIEW, ScoredView, Scores, Tokens, TokenSet

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
#: 1 at an arrival epoch, 1 at a completion epoch; waiting tasks, those beyond the window; clock; and of the
#: tasks submitted so far: mean demand, mean and standard deviation of the token "log execution",
#: l / (l + 1) of the load l that they have offered (the work of the busier resource over what all servers
#: can do in the time since the first arrival), and q / (q + 1), where q is the time since the last arrival
#: over the mean time between arrivals so far: the time since the first arrival over the number of tasks
GLOBAL_COLUMNS = (
    *("arrival", "completion", "waiting", "beyond", "mean cpu", "mean memory", "clock"),
    *("mean log execution", "deviation of log execution", "load", "quiet"),
)
DAY = 86400.0  # [s] log1p(execution) / log1p(DAY) scales execution times, t / (t + DAY) the clock
LOG_DAY = math.log1p(DAY)
WAITING_SCALE = 3600.0  # w / (w + 1 h) scales waiting times
COUNT_SCALE = 32.0  # n / (n + 32) scales counts


TOKENS = Tokens(
    sets=(TokenSet("tasks", "task_mask"), TokenSet("servers")),
    globals=GLOBAL_COLUMNS,
    views={
        "placement": ScoredView(
            "pairs", (Scores("place", ("tasks", "servers"), "placement"), Scores("close"))
        ),
        "pick": ScoredView("choice", (Scores("task", ("tasks",), "pick"), Scores("close"))),
        "route": ScoredView("choice", (Scores("server", ("servers",), "server"), Scores("queue"))),
        "rule": RULE_VIEW,
    },
    acting=("window", "rule", "scope", "order"),
    exact={"cpu": ("demand", 0), "memory": ("demand", 1)},
)
